#include "fake_kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake_memory.h"
#include "lists.h"
#include "registry.h"

extern const dpr_strategy dpr_cpu_serial;

typedef struct known_kernel {
    const void *entry;
    const dpr_strategy *strategy;
    dpr_key key;
} known_kernel;

static known_kernel *known;
static size_t known_count;

static void add_kernels_of(const dpr_strategy *strategy) {
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++)
            for (int nan = DPR_NAN_PROPAGATE; nan <= DPR_NAN_IGNORE; nan++) {
                if (!dpr_supported((dpr_op)op, (dpr_dtype)dtype))
                    continue;
                dpr_key key = {.word = 0};
                key.f.op = (uint8_t)op;
                key.f.dtype = (uint8_t)dtype;
                key.f.nan = (uint8_t)nan;
                key.f.in_memory = DPR_MEMORY_HOST;
                known[known_count++] = (known_kernel){strategy->kernel(&key).entry, strategy, key};
            }
}

static void learn(void) {
    const size_t most = dpr_strategy_count() * DPR_OP_COUNT * DPR_DTYPE_COUNT * 2;
    known = calloc(most, sizeof *known);
    if (!known)
        return;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (dpr_strategies[i]->side == DPR_ON_GPU)
            add_kernels_of(dpr_strategies[i]);
}

static const known_kernel *find(const void *entry) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, learn);
    for (size_t i = 0; i < known_count; i++)
        if (known[i].entry == entry)
            return &known[i];
    return NULL;
}

int fake_kernel_known(const void *entry) {
    return find(entry) != NULL;
}

const char *fake_kernel_prepare(const cudaLaunchConfig_t *config, const void *entry, void **arguments,
                                fake_launch *out) {
    const known_kernel *kernel = find(entry);
    if (!kernel)
        return "the launched kernel belongs to no strategy";
    const dpr_kernel declared = kernel->strategy->kernel(&kernel->key);
    if (config->gridDim.x < 1 || config->gridDim.y != 1 || config->gridDim.z != 1)
        return "the grid is not of blocks in x";
    if (config->blockDim.x != (unsigned)declared.threads || config->blockDim.y != 1 || config->blockDim.z != 1)
        return "the block is not of the threads that the kernel declares";
    if (config->dynamicSmemBytes != (size_t)declared.shared_bytes)
        return "the shared memory is not what the kernel declares";
    out->strategy = kernel->strategy;
    out->key = kernel->key;
    memcpy(&out->args, arguments[0], sizeof out->args);
    return NULL;
}

static const char *check_scratch(const void *scratch) {
    static const unsigned char zeros[DPR_SCRATCH_ZEROED];
    if (!scratch)
        return NULL;
    const fake_block *block = fake_find(scratch, DPR_SCRATCH_BYTES);
    if (!block || block->kind != FAKE_DEVICE)
        return "scratch memory is no live device memory";
    if (memcmp(scratch, zeros, sizeof zeros) != 0)
        return "scratch memory does not start with zeros";
    return NULL;
}

const char *fake_kernel_run(const fake_launch *launch) {
    const dpr_op op = (dpr_op)launch->key.f.op;
    const dpr_dtype dtype = (dpr_dtype)launch->key.f.dtype;
    const dpr_kernel_args *args = &launch->args;
    if (args->count > 0 && !fake_find(args->in, args->count * dpr_dtype_size(dtype)))
        return "a kernel reads memory it cannot reach";
    if (!fake_find(args->out, dpr_dtype_size(dpr_result_dtype(op, dtype))))
        return "a kernel writes memory it cannot reach";
    const char *wrong = check_scratch(args->scratch);
    if (wrong)
        return wrong;
    dpr_run run = {.in = args->in, .out = args->out, .count = args->count, .key = launch->key, .init = args->init};
    run.shape = (dpr_shape){1, 1, SIZE_MAX, 0};
    return dpr_cpu_serial.launch(&run) == 0 ? NULL : "cpu.serial failed in place of the kernel";
}
