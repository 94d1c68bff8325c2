#include "fake_kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_device.h"
#include "fake_memory.h"
#include "lists.h"
#include "registry.h"

extern const dpr_strategy dpr_cpu_serial;

typedef struct known_kernel {
    const void *entry;
    const dpr_strategy *strategy;
    dpr_key key; /* with the block size, where that can be chosen */
} known_kernel;

enum { LEAST_BLOCK = 5, MOST_BLOCK = 10 }; /* log2 of the threads of blocks that can be asked for */

static known_kernel *known;
static size_t known_count;

static void add_kernels_of(const dpr_strategy *strategy, int block) {
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++)
            for (int nan = DPR_NAN_PROPAGATE; nan <= DPR_NAN_IGNORE; nan++) {
                if (!dpr_supported((dpr_op)op, (dpr_dtype)dtype))
                    continue;
                dpr_key key = {.word = 0};
                key.f.op = (uint8_t)op;
                key.f.dtype = (uint8_t)dtype;
                key.f.nan = (uint8_t)nan;
                key.f.in_memory = DPR_MEMORY_DEVICE;
                key.f.block = (uint8_t)block;
                if (!strategy->probe || !strategy->probe(&key, fake_machine()))
                    known[known_count++] = (known_kernel){strategy->kernel(&key).entry, strategy, key};
            }
}

static void learn(void) {
    const size_t most = dpr_strategy_count() * DPR_OP_COUNT * DPR_DTYPE_COUNT * 2 * (MOST_BLOCK - LEAST_BLOCK + 1);
    known = calloc(most, sizeof *known);
    if (!known)
        return;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (dpr_strategies[i]->side != DPR_ON_GPU)
            continue;
        if (!dpr_strategies[i]->block_sizes)
            add_kernels_of(dpr_strategies[i], 0);
        for (int block = LEAST_BLOCK; dpr_strategies[i]->block_sizes && block <= MOST_BLOCK; block++)
            add_kernels_of(dpr_strategies[i], block);
    }
}

/* With blocks of so many threads, where their number can be chosen; 0: any. */
static const known_kernel *find(const void *entry, unsigned threads) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, learn);
    for (size_t i = 0; i < known_count; i++)
        if (known[i].entry == entry
            && (threads == 0 || known[i].key.f.block == 0 || 1u << known[i].key.f.block == threads))
            return &known[i];
    return NULL;
}

int fake_kernel_known(const void *entry) {
    return find(entry, 0) != NULL;
}

static const cudaLaunchAttribute *attribute_of(const cudaLaunchConfig_t *config, cudaLaunchAttributeID id) {
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == id)
            return &config->attrs[i];
    return NULL;
}

int fake_kernel_is_programmatic(const cudaLaunchConfig_t *config) {
    const cudaLaunchAttribute *found = attribute_of(config, cudaLaunchAttributeProgrammaticStreamSerialization);
    return found && found->val.programmaticStreamSerializationAllowed;
}

/* Whether the linker put it among this program's functions. */
static int is_function(const void *entry) {
    extern const char __executable_start, etext;
    return (uintptr_t)entry >= (uintptr_t)&__executable_start && (uintptr_t)entry < (uintptr_t)&etext;
}

static const char *check_shape(const cudaLaunchConfig_t *config) {
    if (config->gridDim.x < 1 || config->gridDim.y != 1 || config->gridDim.z != 1)
        return "the grid is not of blocks in x";
    if (config->blockDim.x < 1 || config->blockDim.x % 32 || config->blockDim.y != 1 || config->blockDim.z != 1)
        return "the block is not of warps in x";
    const cudaLaunchAttribute *cluster = attribute_of(config, cudaLaunchAttributeClusterDimension);
    if (cluster && (cluster->val.clusterDim.x < 1 || config->gridDim.x % cluster->val.clusterDim.x))
        return "the grid is not of whole clusters";
    return NULL;
}

static const char *check_declared(const cudaLaunchConfig_t *config, const dpr_kernel *declared) {
    if (config->blockDim.x > (unsigned)declared->threads)
        return "the block has more threads than the kernel declares";
    if (config->dynamicSmemBytes != (size_t)declared->shared_bytes)
        return "the shared memory is not what the kernel declares";
    if (declared->shared_bytes > fake_shared_bytes_allowed(declared->entry))
        return "the kernel was not allowed its shared memory";
    const cudaLaunchAttribute *cluster = attribute_of(config, cudaLaunchAttributeClusterDimension);
    if (cluster && cluster->val.clusterDim.x > (unsigned)fake_cluster_allowed(declared->entry))
        return "the kernel was not allowed its cluster";
    const cudaLaunchAttribute *cooperative = attribute_of(config, cudaLaunchAttributeCooperative);
    const int64_t resident = 2048 / config->blockDim.x * fake_machine()->gpu.sm_count;
    if (cooperative && cooperative->val.cooperative && config->gridDim.x > resident)
        return "a cooperative grid is larger than the device holds at a time";
    return NULL;
}

/* Whether each element is in exactly one part of the array as the launch divides it: one by one up to the first
 * boundary of 16 bytes, in vectors of 16 bytes, and one by one to the end; and the vectors on the grid's threads. */
static const char *check_division(const cudaLaunchConfig_t *config, const dpr_kernel_args *args, size_t size) {
    const uint64_t threads = (uint64_t)config->gridDim.x * config->blockDim.x, in_vector = 16 / size;
    const uint64_t in_vectors = args->vectors * in_vector, tail = args->count - args->head - in_vectors;
    const uintptr_t body = (uintptr_t)args->in + args->head * size;
    if (args->head + in_vectors > args->count || args->head >= in_vector || tail >= in_vector)
        return "the array's parts are not its elements";
    if (args->vectors > 0 && body % 16 != 0 && (uintptr_t)args->in % size == 0)
        return "a vector is not on a boundary of 16 bytes";
    if (!(args->reading & DPR_READ_ENDS) != (args->head == 0 && tail == 0))
        return "that there are elements beside the vectors is not as the launch says";
    if (args->rounds * threads > args->vectors || args->vectors - args->rounds * threads >= threads)
        return "the vectors are not divided by the grid's threads";
    if (args->reciprocal != UINT64_MAX / threads)
        return "the reciprocal is not that of the grid's threads";
    return NULL;
}

const char *fake_kernel_prepare(const cudaLaunchConfig_t *config, const void *entry, void **arguments,
                                int follows_kernel, fake_launch *out) {
    const known_kernel *kernel = find(entry, config->blockDim.x);
    if (!kernel && !(follows_kernel && is_function(entry)))
        return "the launched kernel belongs to no strategy";
    const char *wrong = check_shape(config);
    if (wrong)
        return wrong;
    memcpy(&out->args, arguments[0], sizeof out->args);
    if (!kernel) {
        out->strategy = NULL;
        return NULL;
    }
    const dpr_kernel declared = kernel->strategy->kernel(&kernel->key);
    out->strategy = kernel->strategy;
    out->key = kernel->key;
    wrong = check_division(config, &out->args, dpr_dtypes[kernel->key.f.dtype].size);
    return wrong ? wrong : check_declared(config, &declared);
}

static const char *check_scratch(const void *scratch) {
    static const unsigned char zeros[DPR_SCRATCH_BYTES];
    if (!scratch)
        return NULL;
    const fake_block *block = fake_find(scratch, DPR_SCRATCH_BYTES);
    if (!block || block->kind != FAKE_DEVICE)
        return "scratch memory is no live device memory";
    if (memcmp(scratch, zeros, sizeof zeros) != 0)
        return "scratch memory is not zero";
    return NULL;
}

static const char *check_mailbox(const dpr_kernel_args *args) {
    const fake_block *block = fake_find(args->out, DPR_MAIL_WORDS * sizeof(uint64_t));
    if (!block || block->kind != FAKE_PINNED || (uintptr_t)args->out % 64 != 0)
        return "a mailbox is no line of live pinned memory";
    for (int i = 0; i < DPR_MAIL_WORDS; i++)
        if (atomic_load(&((_Atomic(uint64_t) *)args->out)[i]) >> 32 == args->tag)
            return "a mailbox has the tag of a run already";
    return NULL;
}

/* Each 4 bytes of the result with the tag above them; the words after those stay as they are. */
static void post(const dpr_kernel_args *args, const unsigned char result[16], size_t size) {
    _Atomic(uint64_t) *to = args->out; /* another thread may be polling it */
    for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
        uint32_t part;
        memcpy(&part, result + at, sizeof part);
        atomic_store_explicit(to++, (uint64_t)args->tag << 32 | part, memory_order_release);
    }
}

/* The number of elements, from device memory where it is there. */
static const char *find_count(const dpr_kernel_args *args, uint64_t *count) {
    *count = args->count;
    if (!args->device_count)
        return NULL;
    if (!fake_find(args->device_count, sizeof *args->device_count))
        return "a kernel reads its count from memory it cannot reach";
    if (*args->device_count < *count)
        *count = *args->device_count;
    return NULL;
}

const char *fake_kernel_run(const fake_launch *launch) {
    if (!launch->strategy)
        return NULL;
    const dpr_op op = (dpr_op)launch->key.f.op;
    const dpr_dtype dtype = (dpr_dtype)launch->key.f.dtype;
    const dpr_kernel_args *args = &launch->args;
    const size_t size = dpr_dtype_size(dpr_result_dtype(op, dtype));
    _Alignas(16) unsigned char result[16] = {0};
    uint64_t count;
    const char *wrong = find_count(args, &count);
    if (!wrong && count > 0 && !fake_find(args->in, count * dpr_dtype_size(dtype)))
        wrong = "a kernel reads memory it cannot reach";
    if (!wrong && args->tag == 0 && !fake_find(args->out, size))
        wrong = "a kernel writes memory it cannot reach";
    if (!wrong && args->tag != 0)
        wrong = check_mailbox(args);
    if (!wrong)
        wrong = check_scratch(args->scratch);
    if (wrong)
        return wrong;
    dpr_run run = {.in = args->in, .out = result, .count = count, .key = launch->key, .init = args->init};
    run.shape = (dpr_shape){.threads = 1, .max_blocks = 1};
    if (dpr_cpu_serial.launch(&run) != 0)
        return "cpu.serial failed in place of the kernel";
    if (args->tag != 0)
        post(args, result, size);
    else
        memcpy(args->out, result, size);
    return NULL;
}
