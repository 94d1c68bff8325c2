#include "fake_kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/runs.h"
#include "cuda/device.h"
#include "fake_cuda.h"
#include "fake_device.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "fake_streams.h"
#include "lists.h"
#include "meetings.h"
#include "partial.h"
#include "plan/registry.h"
#include "segments_args.h"
#include "workspace_strategy.h"

extern const dpr_strategy dpr_cpu_serial, dpr_recursion_probe;

typedef struct known_kernel {
    const void *entry;
    const dpr_strategy *strategy;
    const dpr_module *module;
    dpr_key key; /* with the block size, where that can be chosen */
} known_kernel;

enum { LEAST_BLOCK = 5, MOST_BLOCK = 10 }; /* log2 of the threads of blocks that can be asked for */

static known_kernel *known;
static size_t known_count;

static void add_kernels_of(const dpr_strategy *strategy, int block) {
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++)
            for (int nan = DPR_NAN_PROPAGATE; nan <= DPR_NAN_IGNORE; nan++) {
                if (!dpr_supported(dpr_op_at((size_t)op), dpr_dtype_at((size_t)dtype)))
                    continue;
                dpr_key key = {.words = {0}};
                key.f.op = DPR_ROW(op);
                key.f.dtype = DPR_ROW(dtype);
                key.f.nan = (uint8_t)nan;
                key.f.in_memory = DPR_MEMORY_DEVICE;
                key.f.block = (uint8_t)block;
                key.f.segments = strategy->segmented != 0;
                if (strategy->probe && strategy->probe(&key, fake_machine()))
                    continue;
                const dpr_kernel kernel = strategy->kernel(&key);
                known[known_count++] = (known_kernel){kernel.entry, strategy, kernel.module, key};
                for (int i = 0; i < DPR_OTHER_KERNELS; i++)
                    if (kernel.others[i])
                        known[known_count++] = (known_kernel){kernel.others[i], strategy, NULL, key};
            }
}

static void learn(void) {
    const size_t most = (dpr_strategy_count() + 5) * DPR_OP_COUNT * DPR_DTYPE_COUNT * 2 * (MOST_BLOCK - LEAST_BLOCK + 1)
                        * (1 + DPR_OTHER_KERNELS);
    known = calloc(most, sizeof *known);
    if (!known)
        return;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (dpr_strategies[i]->side != DPR_ON_GPU)
            continue;
        if (!dpr_strategies[i]->takes_block)
            add_kernels_of(dpr_strategies[i], 0);
        for (int block = LEAST_BLOCK; dpr_strategies[i]->takes_block && block <= MOST_BLOCK; block++)
            add_kernels_of(dpr_strategies[i], block);
    }
    add_kernels_of(&test_workspace_strategy, 0);
    add_kernels_of(dpr_this_build.partials, 0);
    add_kernels_of(dpr_this_build.key_runs, 0);
    add_kernels_of(dpr_this_build.key_reduce, 0);
    add_kernels_of(&dpr_recursion_probe, 0);
}

static void learn_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, learn);
}

/* For which blocks of so many threads were asked for, where their number can be chosen; 0: any. */
static const known_kernel *find(const void *entry, unsigned threads) {
    learn_once();
    for (size_t i = 0; i < known_count; i++)
        if (known[i].entry == entry
            && (threads == 0 || known[i].key.f.block == 0 || 1u << known[i].key.f.block == threads))
            return &known[i];
    return NULL;
}

int fake_kernel_known(const void *entry) {
    const known_kernel *found = find(entry, 0);
    return found && !found->module;
}

int fake_kernel_is_of_module(const void *entry) {
    const known_kernel *found = find(entry, 0);
    return found && found->module;
}

const char *fake_kernel_named(const void *image, const char *name) {
    learn_once();
    for (size_t i = 0; i < known_count; i++)
        if (known[i].module && known[i].module->image == image && strcmp(known[i].entry, name) == 0)
            return known[i].entry;
    return NULL;
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

static int is_cooperative(const cudaLaunchConfig_t *config) {
    const cudaLaunchAttribute *found = attribute_of(config, cudaLaunchAttributeCooperative);
    return found && found->val.cooperative;
}

/* Blocks that so many SMs hold at a time. */
static int64_t count_resident(const cudaLaunchConfig_t *config, int64_t sms) {
    const dpr_gpu_caps *gpu = &fake_machine()->gpu;
    const int64_t by_threads = config->blockDim.x ? 2048 / config->blockDim.x : 0,
                  by_memory = gpu->shared_per_sm / ((int64_t)config->dynamicSmemBytes + gpu->shared_reserved_per_block);
    return sms * (by_threads < by_memory ? by_threads : by_memory);
}

/* A device as a whole has room for what the library may launch: what is too large for it is a violation. */
cudaError_t fake_kernel_fits(const cudaLaunchConfig_t *config, int sms) {
    const cudaLaunchAttribute *cluster = attribute_of(config, cudaLaunchAttributeClusterDimension);
    if (sms == fake_machine()->gpu.sm_count)
        return cudaSuccess;
    if (cluster && cluster->val.clusterDim.x > (unsigned)sms)
        return cudaErrorInvalidClusterSize;
    if (is_cooperative(config) && config->gridDim.x > count_resident(config, sms))
        return cudaErrorCooperativeLaunchTooLarge;
    return cudaSuccess;
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
    if (is_cooperative(config) && config->gridDim.x > count_resident(config, fake_machine()->gpu.sm_count))
        return "a cooperative grid is larger than the device holds at a time";
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
    return NULL;
}

static const char *check_meeting(const cudaLaunchConfig_t *config, const dpr_kernel_args *args, int follows_kernel) {
    if (is_cooperative(config) != (args->meeting == DPR_MEET_IN_GRID))
        return "a grid whose blocks meet at its barriers is cooperative, and no other";
    if (args->meeting == DPR_MEET_NOW && (!follows_kernel || config->gridDim.x != 1 || args->partials == 0))
        return "partial results are folded that no launch before has left, or by several blocks";
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

/* ---- Runs with workspace, among them those whose kernels may launch others ---- */

static int count_launch(const dpr_run *run, const dpr_launch *launch, dpr_kernel_args *args) {
    (void)launch, (void)args;
    ++*(int *)run->enqueuer;
    return 0;
}

/* What the strategy says of the run that this is the first kernel of. */
static const char *ask_strategy(fake_launch *launch) {
    const dpr_strategy *strategy = launch->strategy;
    dpr_caps caps = *fake_machine();
    caps.gpu.pending_launches = (int64_t)fake_pending_launches();
    int launches = 0;
    dpr_run run = {.scratch = launch->args.run.scratch,
                   .in = launch->args.run.in,
                   .out = launch->args.run.out,
                   .count = launch->args.run.count,
                   .key = launch->key,
                   .segments = &launch->segments,
                   .limits = strategy->limits(&launch->key, &caps, (dpr_residency){1, 0}),
                   .workspace = launch->args.run.workspace,
                   .report = launch->args.report,
                   .enqueue = count_launch,
                   .enqueuer = &launches};
    if (launch->of_module)
        run.limits.max_depth = (int)launch->args.max_depth;
    if (launch->of_module && (strategy->role != DPR_ROLE_NESTED || !strategy->workspace_bytes))
        return "a kernel of a module has no account of what it launches";
    launch->workspace_bytes = strategy->workspace_bytes(&run) - (launch->of_module ? DPR_REPORT_BYTES : 0);
    if (strategy->launch(&run) != 0)
        return "a strategy's launches cannot be counted";
    launch->to_come = launches - 1;
    return NULL;
}

static const char *check_module_launch(const cudaLaunchConfig_t *config, const dpr_nested_args *args) {
    if (fake_kernel_is_programmatic(config))
        return "a kernel that launches others does not wait for the work ahead of it, but may start before its end";
    if (is_cooperative(config))
        return "a kernel that launches others is launched cooperatively";
    if (args->launches > fake_pending_launches())
        return "a run may make more launches than may be pending";
    if (args->depth != 0)
        return "a kernel that the host launches is not at depth 0";
    return NULL;
}

/* ---- Launches ---- */

/* Runs that lack kernels, by their last launch: the latest ones, as a run may lack them for ever. Another thread's work
 * in the same stream may come in between. */
enum { MOST_OPEN = 256 };
static fake_launch open_runs[MOST_OPEN];
static unsigned opened;

static fake_launch *open_run_of(const fake_launch *launch) {
    for (unsigned i = 0; i < MOST_OPEN; i++)
        if (open_runs[i].to_come > 0 && open_runs[i].args.run.workspace == launch->args.run.workspace
            && open_runs[i].stream == launch->stream)
            return &open_runs[i];
    return NULL;
}

static void keep_open(const fake_launch *launch) {
    fake_launch *there = open_run_of(launch); /* of a run that has failed */
    if (launch->to_come > 0)
        *(there ? there : &open_runs[opened++ % MOST_OPEN]) = *launch;
}

/* The arguments of a kernel that runs any operations, and the key of its run. */
static const char *take_fused(fake_launch *out, const dpr_fused_args *args) {
    const char *in_scratch = (const char *)args->run.scratch + 128;
    out->fused = *args;
    out->key.f.op = args->op[0];
    out->key.f.ops = args->ops;
    out->key.f.fused = args->results > 1;
    if (args->partials != (args->run.workspace ? args->run.workspace : (const void *)in_scratch))
        return "rows of accumulators lie neither in the workspace nor behind the ticket";
    return NULL;
}

static int is_in_device_memory(const void *at) {
    const fake_block *block = fake_find(at, 1);
    return block && block->kind == FAKE_DEVICE;
}

/* Some kernels of segments run several operations. */
static const char *take_segments(fake_launch *out, const dpr_segment_args *args) {
    const int on_device = is_in_device_memory(args->list.begins) && is_in_device_memory(args->list.ends);
    out->segments = args->list;
    out->done = args->done;
    if (dpr_ops[out->key.f.op].fused_only)
        out->key.f.op = (uint8_t)args->op;
    return args->list.on_device == on_device ? NULL : "a list of segments is wrong about where its numbers lie";
}

static void take_nested_segments(fake_launch *out, const dpr_nested_segments_args *args) {
    out->segments = args->list;
}

/* Whether a run in the stream that is of no module lacks kernels. */
static int is_open(cudaStream_t stream) {
    for (unsigned i = 0; i < MOST_OPEN; i++)
        if (open_runs[i].to_come > 0 && !open_runs[i].of_module && open_runs[i].stream == stream)
            return 1;
    return 0;
}

/* Whether it is the second launch of a run of segments. */
static int reduces_listed(const known_kernel *kernel, const void *args) {
    return kernel && kernel->key.f.segments && !kernel->module
           && ((const dpr_segment_args *)args)->groups.which == DPR_SEGMENTS_LONG;
}

/* A kernel that no strategy declares, or a further one of a run. */
static const char *prepare_further(fake_launch *out) {
    if (!out->of_module && !is_open(out->stream))
        return NULL;
    fake_launch *run = open_run_of(out);
    if (!run)
        return "the launched kernel belongs to no run";
    run->to_come--;
    out->strategy = run->strategy;
    out->key = run->key;
    out->segments = run->segments;
    out->to_come = run->to_come;
    out->workspace_bytes = run->workspace_bytes;
    return NULL;
}

/* The kernel that merges partial results is one for every pair; their label says which. */
static const char *prepare_merge(const cudaLaunchConfig_t *config, const dpr_merge_args *args, fake_launch *out) {
    const uint64_t label = args->label;
    out->label = label;
    out->strategy = dpr_this_build.partials;
    out->key.f.op = DPR_ROW(dpr_partial_op(label));
    out->key.f.dtype = DPR_ROW(dpr_partial_dtype(label));
    out->key.f.nan = (uint8_t)dpr_partial_nan(label);
    const dpr_kernel declared = out->strategy->kernel(&out->key);
    return check_declared(config, &declared);
}

/* One kernel finds runs of keys of all types. */
static const char *prepare_key_runs(const cudaLaunchConfig_t *config, const dpr_key_runs_args *args, fake_launch *out) {
    out->key_runs = *args;
    out->strategy = dpr_this_build.key_runs;
    const dpr_kernel declared = out->strategy->kernel(&out->key);
    return check_declared(config, &declared);
}

static const char *prepare_keyed(const cudaLaunchConfig_t *config, const known_kernel *kernel,
                                 const dpr_keyed_args *args, fake_launch *out) {
    out->keyed = *args;
    out->strategy = kernel->strategy;
    out->key = kernel->key;
    const dpr_kernel declared = out->strategy->kernel(&out->key);
    return check_declared(config, &declared);
}

static const char *prepare_probe(const cudaLaunchConfig_t *config, const dpr_probe_args *args, fake_launch *out) {
    out->probe = *args;
    out->strategy = &dpr_recursion_probe;
    const dpr_kernel declared = out->strategy->kernel(&out->key);
    const char *wrong = fake_probe_prepare(config, is_cooperative(config), args);
    return wrong ? wrong : check_declared(config, &declared);
}

const char *fake_kernel_prepare(const cudaLaunchConfig_t *config, const void *entry, void **arguments,
                                int follows_kernel, fake_launch *out) {
    const int of_module = fake_module_gave(entry), of_recursion = fake_recursion_has(entry);
    const dpr_nested_args *nested = arguments[0]; /* of a module's kernel */
    const known_kernel *kernel =
        fake_relaunch_has(entry) ? NULL : find(entry, of_module ? nested->block : config->blockDim.x);
    if (kernel && (kernel->module != NULL) != of_module)
        return "a module's kernel is launched that nobody has asked it for";
    if (!kernel && !of_module && !of_recursion && !(follows_kernel && is_function(entry)))
        return "the launched kernel belongs to no strategy";
    const char *wrong = check_shape(config);
    if (wrong)
        return wrong;
    memset(out, 0, sizeof *out);
    if (fake_relaunch_has(entry)) {
        out->relaunch = *(const dpr_relaunch_args *)arguments[0];
        return fake_relaunch_prepare(&out->relaunch);
    }
    if (of_recursion)
        return fake_recursion_prepare(config, is_cooperative(config), entry, arguments, &out->recursion);
    out->of_module = of_module;
    out->stream = config->stream;
    memcpy(&out->args, arguments[0], of_module ? sizeof out->args : sizeof out->args.run);
    if (of_module)
        wrong = check_module_launch(config, &out->args);
    if (wrong)
        return wrong;
    if (kernel && kernel->strategy == dpr_this_build.partials)
        return prepare_merge(config, arguments[0], out);
    if (kernel && kernel->strategy == dpr_this_build.key_runs)
        return prepare_key_runs(config, arguments[0], out);
    if (kernel && kernel->strategy == dpr_this_build.key_reduce)
        return prepare_keyed(config, kernel, arguments[0], out);
    if (kernel && kernel->strategy == &dpr_recursion_probe)
        return prepare_probe(config, arguments[0], out);
    wrong = of_module ? NULL : check_meeting(config, &out->args.run, follows_kernel);
    if (wrong || (kernel && out->args.run.meeting == DPR_MEET_NOW))
        return wrong;
    if (!kernel || reduces_listed(kernel, arguments[0]))
        return prepare_further(out);
    out->strategy = kernel->strategy;
    out->key = kernel->key;
    const int has_workspace = out->strategy->workspace_bytes != NULL;
    if (out->strategy->fuses)
        wrong = take_fused(out, arguments[0]);
    if (out->key.f.segments && of_module)
        take_nested_segments(out, arguments[0]);
    else if (out->key.f.segments)
        wrong = take_segments(out, arguments[0]);
    const dpr_kernel declared = out->strategy->kernel(&out->key);
    if (!wrong)
        wrong = check_division(config, &out->args.run, dpr_dtypes[out->key.f.dtype].size);
    if (!wrong)
        wrong = check_declared(config, &declared);
    if (!wrong && (has_workspace || of_module))
        wrong = ask_strategy(out);
    if (!wrong)
        keep_open(out);
    return wrong;
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

static const char *check_mailbox(void *mailbox, uint32_t tag) {
    const fake_block *block = fake_find(mailbox, DPR_MAIL_WORDS * sizeof(uint64_t));
    if (!block || block->kind != FAKE_PINNED || (uintptr_t)mailbox % 64 != 0)
        return "a mailbox is no line of live pinned memory";
    for (int i = 0; i < DPR_MAIL_WORDS; i++)
        if (atomic_load(&((_Atomic(uint64_t) *)mailbox)[i]) >> 32 == tag)
            return "a mailbox has the tag of a run already";
    return NULL;
}

/* Each 4 bytes of the result with the tag above them; the words after those stay as they are. */
static void post_to(void *mailbox, uint32_t tag, const unsigned char *result, size_t size) {
    _Atomic(uint64_t) *to = mailbox; /* another thread may be polling it */
    for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
        uint32_t part;
        memcpy(&part, result + at, sizeof part);
        atomic_store_explicit(to++, (uint64_t)tag << 32 | part, memory_order_release);
    }
}

static void post(const dpr_kernel_args *args, const unsigned char *result, size_t size) {
    post_to(args->out, args->tag, result, size);
}

/* The number that the device has at `there`, if it has any; at most *count. */
static const char *find_count(const uint64_t *there, uint64_t *count) {
    if (!there)
        return NULL;
    if (!fake_find(there, sizeof *there))
        return "a kernel reads its count from memory it cannot reach";
    if (*there < *count)
        *count = *there;
    return NULL;
}

static const char *check_workspace(const fake_launch *launch) {
    const fake_block *work = fake_find(launch->args.run.workspace, launch->workspace_bytes);
    if (launch->workspace_bytes > 0 && (!work || work->kind != FAKE_DEVICE))
        return "the workspace is no live device memory, or too little";
    if ((uintptr_t)launch->args.run.workspace % 256 != 0)
        return "the workspace is not on a boundary of 256 bytes";
    return NULL;
}

static const char *check_nested(const fake_launch *launch) {
    const dpr_nested_args *args = &launch->args;
    if ((args->report_bytes > 0 && !fake_find(args->report, args->report_bytes))
        || (uintptr_t)args->report % _Alignof(dpr_launch_report) != 0)
        return "a kernel writes its report to memory it cannot reach";
    return args->run.scratch ? NULL : "a kernel that launches others has no scratch memory";
}

/* Whether all results of a kernel that runs any operations have places. */
static int reaches_results(const dpr_fused_args *args, dpr_dtype dtype) {
    int reached = 1;
    for (uint32_t i = 0; i < args->results && args->run.tag == 0; i++) {
        const dpr_op op = (dpr_op)(DPR_FIRST_OP + args->op[i]);
        const size_t size =
            args->run.init.present == DPR_PARTIAL_WANTED ? dpr_partial_size(op, dtype) : dpr_pair_size(op, dtype);
        reached &= fake_find(args->out[i], size) != NULL;
    }
    return reached;
}

static int reaches_numbers(const dpr_segment_list *list) {
    const size_t size = list->count * dpr_dtypes[DPR_ROW(list->dtype)].size;
    return fake_find(list->begins, size) && fake_find(list->ends, size);
}

static const char *check_memory(const fake_launch *launch, uint64_t count, size_t result_size) {
    const dpr_kernel_args *args = &launch->args.run;
    if (launch->strategy->fuses && !reaches_results(&launch->fused, dpr_key_dtype(&launch->key)))
        return "a kernel writes memory it cannot reach";
    if (launch->key.f.segments && !reaches_numbers(&launch->segments))
        return "a kernel reads numbers of segments that it cannot reach";
    if (count > 0 && !fake_find(args->in, count * dpr_dtype_size(dpr_key_dtype(&launch->key))))
        return "a kernel reads memory it cannot reach";
    const int has_mail = args->tag != 0 && !launch->done;
    if (!has_mail && !launch->strategy->fuses && !fake_find(args->out, result_size))
        return "a kernel writes memory it cannot reach";
    if (launch->done && (args->tag == 0 || !launch->strategy->tells_end))
        return "a kernel that cannot tell its end is to tell it";
    const char *wrong = args->tag != 0 ? check_mailbox(has_mail ? args->out : launch->done, args->tag) : NULL;
    if (!wrong)
        wrong = check_scratch(args->scratch);
    if (!wrong)
        wrong = check_workspace(launch);
    return wrong || !launch->of_module ? wrong : check_nested(launch);
}

static atomic_uint last_launches, last_depth;
static atomic_int refusing;

void fake_refuse_launches(int on) {
    atomic_store(&refusing, on);
}

unsigned fake_nested_launches(void) {
    return atomic_load(&last_launches);
}

unsigned fake_nested_depth(void) {
    return atomic_load(&last_depth);
}

/* One nested launch, if any is allowed; else what it is for is done in line. */
static void report(const dpr_nested_args *args) {
    const uint32_t launched = args->launches > 0 && args->max_depth > 0;
    const dpr_launch_report all = {.launched = launched,
                                   .refused = args->launches == 0 || atomic_load(&refusing),
                                   .in_line = !launched,
                                   .deepest = launched};
    memcpy(args->report, &all, args->report_bytes);
    atomic_store(&last_launches, args->launches);
    atomic_store(&last_depth, args->max_depth);
}

/* The first kernel of a run takes its levels, one after the other, and each tile where these launch for themselves.
 * Launches for segments take no time. */
double fake_kernel_ns(const fake_launch *launch) {
    const dpr_nested_args *args = &launch->args;
    if (!launch->strategy || launch->to_come == 0 || args->launches == 0 || launch->key.f.segments)
        return 0;
    const uint32_t words = args->block ? dpr_words_of_tile(args->run.count, args->block, 0) : 0;
    const uint32_t wanted = args->block ? dpr_halvings(dpr_halved(words)) : args->tree.levels - 1;
    const uint32_t levels = wanted < args->max_depth ? wanted : args->max_depth;
    const int apart = strcmp(launch->strategy->name, "dp.nosync") == 0;
    if (levels == 0)
        return 0;
    return FAKE_FIRST_NS + (double)levels * (args->block ? FAKE_LEVEL_NS : FAKE_TAIL_NS)
           + (apart ? (double)args->tiles * FAKE_FAN_NS : 0);
}

static const char serial_failed[] = "cpu.serial, which runs in the kernel's place, failed";

/* Runs the operations of a kernel that runs any, one after the other. */
static const char *run_fused(const fake_launch *launch, dpr_run run) {
    const dpr_fused_args *args = &launch->fused;
    for (uint32_t i = 0; i < args->results; i++) {
        _Alignas(16) unsigned char result[sizeof(uint64_t) * DPR_PARTIAL_WORDS] = {0};
        const dpr_op op = (dpr_op)(DPR_FIRST_OP + args->op[i]);
        const dpr_dtype dtype = dpr_key_dtype(&launch->key);
        const size_t size = run.label ? dpr_partial_size(op, dtype) : dpr_pair_size(op, dtype);
        dpr_kernel_args to = args->run;
        run.key.f.op = args->op[i];
        run.out = result;
        if (dpr_cpu_serial.launch(&run) != 0)
            return serial_failed;
        to.out = (uint64_t *)args->run.out + i * (DPR_RESULT_BYTES / sizeof(uint32_t));
        if (to.tag != 0)
            post(&to, result, args->results > 1 ? DPR_RESULT_BYTES : size);
        else
            memcpy(args->out[i], result, size);
    }
    return NULL;
}

/* Merges partial results, and finishes them if it is to. */
static const char *run_merge(const dpr_kernel_args *args, uint64_t label, dpr_op op, dpr_dtype dtype) {
    const size_t words = (size_t)dpr_partial_words(op, dtype), finishes = args->meeting == DPR_PARTIALS_FINISHED;
    const size_t size = finishes ? dpr_pair_size(op, dtype) : words * sizeof(uint64_t);
    const uint64_t *from = args->in;
    dpr_merged merged = {.some = 0};
    int good = 1;
    if (!fake_find(from, args->count * words * sizeof *from) || !fake_find(args->out, size))
        return "the kernel that merges partial results uses memory it cannot reach";
    for (uint64_t i = 0; i < args->count && good; i++, from += words) {
        good = from[0] == label;
        if (good)
            dpr_partial_add(&merged, from);
    }
    if (!good && !finishes)
        memset(args->out, 0, size);
    else if (good && !finishes)
        dpr_partial_store(label, merged.count, &merged.acc, args->out);
    else if (good) {
        dpr_acc_add_init(op, dtype, dpr_partial_nan(label), &merged.acc, &args->init);
        dpr_acc_write(op, dtype, &merged.acc, &args->init, args->out);
    }
    return NULL;
}

/* Counts runs of keys, or writes them. */
static const char *run_key_runs(const dpr_key_runs_args *args) {
    static const char out_of_reach[] = "the kernel that finds runs of keys uses memory it cannot reach";
    uint64_t count = args->run.count, *const counts = args->counts;
    const char *wrong = find_count(args->run.device_count, &count);
    if (wrong)
        return wrong;
    if ((args->run.count > 0 && !fake_find(args->run.in, args->run.count * args->key_bytes))
        || !fake_find(counts, DPR_RUNS_WORDS * sizeof *counts))
        return out_of_reach;
    if (dpr_key_runs_type(args->run.count) != DPR_U32)
        return "the fake kernel takes fewer than 2^32 keys";
    if (!args->run.scratch)
        return "the kernel that finds runs of keys has no scratch memory";
    wrong = check_scratch(args->run.scratch);
    dpr_runs found = {.keys = args->run.in, .key_bytes = args->key_bytes, .count = count, .threads = 1};
    const int is_found = dpr_runs_find(&found);
    const uint64_t runs = count > 0 ? found.number : 0, written = runs <= args->room ? runs : 0;
    if (!wrong && !is_found)
        wrong = "there is no memory for runs of keys";
    if (is_found && !args->begins) {
        counts[DPR_RUNS_WRITTEN] = written;
        if (args->run.tag != 0)
            post(&args->run, (const unsigned char *)&runs, sizeof runs);
        else if (fake_find(args->run.out, sizeof runs))
            memcpy(args->run.out, &runs, sizeof runs);
        else
            wrong = out_of_reach;
    } else if (is_found && counts[DPR_RUNS_WRITTEN] != written) {
        wrong = "the number of runs written is not the number counted";
    } else if (is_found && fake_find(args->begins, (written + 1) * sizeof(uint32_t))
               && (!args->unique || written == 0 || fake_find(args->unique, written * args->key_bytes))) {
        if (written > 0)
            memcpy(args->begins, found.begins, (written + 1) * sizeof(uint32_t));
        if (args->unique)
            dpr_runs_keys(&found, written, args->unique);
    } else if (is_found) {
        wrong = out_of_reach;
    }
    free(found.begins);
    return wrong;
}

/* Writes the results of runs of keys, and their keys. */
static const char *write_keyed(const fake_launch *launch, const dpr_runs *runs) {
    const dpr_keyed_args *args = &launch->keyed;
    const dpr_dtype type = dpr_key_runs_type(runs->count);
    const void *const ends = (const char *)runs->begins + dpr_dtype_size(type);
    const dpr_segment_list list = {.count = runs->number, .begins = runs->begins, .ends = ends, .dtype = type};
    dpr_run run = {.in = args->run.in, .out = args->results, .count = args->run.count, .key = launch->key};
    run.key.f.segments = 1;
    run.init = args->run.init;
    run.segments = &list;
    run.limits = (dpr_launch_limits){.threads = 1, .max_blocks = 1};
    if (dpr_cpu_serial.launch(&run) != 0)
        return serial_failed;
    if (args->unique)
        dpr_runs_keys(runs, runs->number, args->unique);
    return NULL;
}

static int reaches_keyed(const fake_launch *launch, uint64_t runs) {
    const dpr_keyed_args *args = &launch->keyed;
    const dpr_op op = dpr_key_op(&launch->key);
    const dpr_dtype dtype = dpr_key_dtype(&launch->key);
    return fake_find(args->run.in, args->run.count * dpr_dtype_size(dtype))
           && fake_find(args->results, runs * dpr_pair_size(op, dtype))
           && (!args->unique || fake_find(args->unique, runs * args->key_bytes))
           && (args->run.tag != 0 || fake_find(args->run.out, sizeof runs));
}

/* Reduces runs of keys. */
static const char *run_keyed(const fake_launch *launch) {
    static const char out_of_reach[] = "the kernel that reduces runs of keys uses memory it cannot reach";
    /* What tells zeroed records from fresh memory, which may be zero, too. */
    static const uint64_t zeroed = UINT64_C(0x7a65726f6564);
    const dpr_keyed_args *args = &launch->keyed;
    if (!args->run.scratch || !fake_find(args->places, sizeof *args->places)
        || !fake_find(args->keys, args->run.count * args->key_bytes))
        return out_of_reach;
    const char *wrong = check_scratch(args->run.scratch);
    if (!wrong && args->clears)
        *args->places = zeroed;
    else if (!wrong && !args->in_scratch && *args->places != zeroed)
        wrong = "no launch has zeroed the records of tiles";
    if (wrong || args->clears)
        return wrong;
    if (!args->in_scratch)
        *args->places = 0;
    dpr_runs runs = {.keys = args->keys, .key_bytes = args->key_bytes, .count = args->run.count, .threads = 1};
    if (!dpr_runs_find(&runs))
        return "there is no memory for runs of keys";
    wrong = reaches_keyed(launch, runs.number) ? write_keyed(launch, &runs) : out_of_reach;
    free(runs.begins);
    if (!wrong && args->run.tag != 0)
        post(&args->run, (const unsigned char *)&runs.number, sizeof runs.number);
    else if (!wrong)
        memcpy(args->run.out, &runs.number, sizeof runs.number);
    return wrong;
}

const char *fake_kernel_run(const fake_launch *launch) {
    if (launch->asked)
        return fake_loop_set(launch->loop, fake_recursion_is_unfinished(launch->asked));
    if (launch->recursion.kernel)
        return fake_recursion_run(&launch->recursion);
    if (launch->relaunch.run.tag != 0)
        return fake_relaunch_run(&launch->relaunch);
    if (!launch->strategy)
        return NULL;
    const dpr_kernel_args *args = &launch->args.run;
    const dpr_op op = dpr_key_op(&launch->key);
    const dpr_dtype dtype = dpr_key_dtype(&launch->key);
    if (launch->strategy == dpr_this_build.partials)
        return run_merge(args, launch->label, op, dtype);
    if (launch->strategy == dpr_this_build.key_runs)
        return run_key_runs(&launch->key_runs);
    if (launch->strategy == dpr_this_build.key_reduce)
        return run_keyed(launch);
    if (launch->strategy == &dpr_recursion_probe)
        return fake_probe_run(&launch->probe);
    dpr_wanted wanted = {0, 0};
    if (args->init.present == DPR_PARTIAL_WANTED)
        memcpy(&wanted, args->init.bytes, sizeof wanted);
    /* It would take the label for an initial value. */
    if (wanted.label && strcmp(launch->strategy->name, "coop.cluster") == 0)
        return "a kernel of coop.cluster, which writes no partial results, is to write one";
    const size_t results = launch->key.f.segments ? launch->segments.count : 1;
    const size_t size = wanted.label ? dpr_partial_size(op, dtype) : results * dpr_pair_size(op, dtype);
    _Alignas(16) unsigned char result[sizeof(uint64_t) * DPR_PARTIAL_WORDS] = {0};
    uint64_t count = args->count;
    const char *wrong = find_count(args->device_count, &count);
    if (!wrong)
        wrong = check_memory(launch, count, size);
    if (wrong || launch->to_come > 0)
        return wrong;
    dpr_run run = {.in = args->in, .out = result, .count = count, .key = launch->key};
    run.label = wanted.label;
    run.first_index = wanted.first_index;
    if (!wanted.label)
        run.init = args->init;
    if (args->init.present == DPR_MEAN_WANTED) {
        run.init.present = 0;
        run.key.f.op = DPR_ROW(DPR_MEAN);
    }
    run.limits = (dpr_launch_limits){.threads = 1, .max_blocks = 1};
    if (launch->key.f.segments) {
        dpr_segment_list list = launch->segments;
        wrong = find_count(list.device_count, &list.count);
        if (wrong)
            return wrong;
        run.segments = &list;
        run.out = args->out;
        if (dpr_cpu_serial.launch(&run) != 0)
            return serial_failed;
        if (launch->of_module)
            report(&launch->args);
        if (launch->done)
            post_to(launch->done, args->tag, (const unsigned char *)"end", sizeof(uint32_t));
        return NULL;
    }
    if (launch->strategy->fuses)
        return run_fused(launch, run);
    if (dpr_cpu_serial.launch(&run) != 0)
        return serial_failed;
    if (args->tag != 0)
        post(args, result, size);
    else
        memcpy(args->out, result, size);
    if (launch->of_module)
        report(&launch->args);
    return NULL;
}
