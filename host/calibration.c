#define _POSIX_C_SOURCE 199309L /* nanosleep() */
#include "calibration.h"

#include <assert.h>
#include <time.h>

#include "capture.h"
#include "current.h"
#include "module.h"
#include "nested_host.h"

extern const dpr_strategy dpr_dp_recursive2, dpr_dp_nosync;

/* ---- Memory ---- */

/* A pool of another size than when the code was loaded takes as much more as it has more places. */
static dpr_status load(dpr_device *device, const dpr_gpu_caps *gpu, int64_t *bytes) {
    const dpr_key key = {.f = {.op = DPR_SUM, .dtype = DPR_I32}};
    const dpr_kernel kernel = dpr_dp_recursive2.kernel(&key);
    dpr_residency unused;
    const dpr_status status = dpr_device_resident(device, &kernel, &unused);
    const dpr_module_arrival code = dpr_module_arrived(kernel.module, dpr_device_current());
    if (status == DPR_OK && code.bytes > 0)
        *bytes = (int64_t)code.bytes + DPR_PENDING_BYTES * (gpu->pending_launches - (int64_t)code.pending);
    return status;
}

/* ---- Times ---- */

/* Runs that differ in what they launch alone: of one tile no level, one, and nine; and of blocks with a launch each
 * one, and many. Those that take longest come first, so that the others are enqueued before their turn. */
enum { MANY, NINE_LEVELS, ONE_LEVEL, NO_LEVEL, SINGLE, KINDS };
enum { ROUNDS = 4, RUNS = ROUNDS * KINDS, LEVELS = 9, WORDS = 32, MOST_BLOCKS = 256, LEAST_BLOCKS = 16 };

static const struct {
    const dpr_strategy *form;
    uint8_t log_block, depth;
    size_t count;
} kinds[KINDS] = {
    [MANY] = {&dpr_dp_nosync, 5, 1, 0}, /* as the pool allows */
    [NINE_LEVELS] = {&dpr_dp_recursive2, 10, LEVELS, 2 << LEVELS},
    [ONE_LEVEL] = {&dpr_dp_recursive2, 10, LEVELS, 4},
    [NO_LEVEL] = {&dpr_dp_recursive2, 10, LEVELS, 2},
    [SINGLE] = {&dpr_dp_nosync, 5, 1, WORDS},
};
static_assert(LEAST_BLOCKS > LEVELS, "where there is leave for so many launches, there is for a chain");

/* Device memory of the runs. */
typedef struct workplace {
    int32_t in[MOST_BLOCKS * WORDS];
    int64_t out;
    dpr_nested reports[RUNS];
} workplace;

typedef struct trials {
    dpr_device *device;
    dpr_caps caps;
    uint32_t blocks; /* that launch one each, where there are many */
    cudaStream_t stream;
    workplace *memory;
    int events;
    cudaEvent_t event[RUNS + 1]; /* before each run, and after the last */
} trials;

static dpr_status failed(cudaError_t error) {
    return dpr_current_failed(error, "measuring what nested launches cost");
}

static cudaError_t set_up(trials *t, dpr_nesting *nesting) {
    cudaError_t error = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = dpr_nesting_allocate(nesting, sizeof *t->memory, t->stream, (void **)&t->memory);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(t->memory, 0, sizeof *t->memory, t->stream);
    for (; error == cudaSuccess && t->events < RUNS + 1; t->events += error == cudaSuccess)
        error = cudaEventCreateWithFlags(&t->event[t->events], cudaEventDefault);
    return error;
}

/* Waits for nothing: what is still at work goes when it is done. */
static void tear_down(trials *t) {
    for (int i = 0; i < t->events; i++)
        (void)cudaEventDestroy(t->event[i]);
    if (t->memory)
        (void)cudaFreeAsync(t->memory, t->stream);
    if (t->stream)
        (void)cudaStreamDestroy(t->stream);
    (void)cudaGetLastError();
}

static dpr_status enqueue(const trials *t, int number) {
    const int kind = number % KINDS;
    dpr_run run = {.in = t->memory->in, .out = &t->memory->out, .count = kinds[kind].count, .stream = t->stream};
    if (kind == MANY)
        run.count = t->blocks * WORDS;
    run.key.f.op = DPR_SUM;
    run.key.f.dtype = DPR_I32;
    run.key.f.in_memory = DPR_MEMORY_DEVICE;
    run.key.f.gpu_only = 1;
    run.key.f.block = kinds[kind].log_block;
    run.key.f.depth = kinds[kind].depth;
    run.shape = kinds[kind].form->shape(&run.key, &t->caps, (dpr_residency){1, 0});
    run.report = &t->memory->reports[number];
    return dpr_device_run(t->device, kinds[kind].form, &run);
}

static dpr_status enqueue_all(const trials *t) {
    cudaError_t error = cudaEventRecord(t->event[0], t->stream);
    for (int i = 0; i < RUNS && error == cudaSuccess; i++) {
        const dpr_status status = enqueue(t, i);
        if (status != DPR_OK)
            return status;
        error = cudaEventRecord(t->event[i + 1], t->stream);
    }
    return error == cudaSuccess ? DPR_OK : failed(error);
}

/* cudaErrorNotReady if it is not done in time. */
static cudaError_t await(cudaEvent_t event) {
    enum { NAPS = 1000, NAP_NS = 50 * 1000 };
    const struct timespec nap = {.tv_nsec = NAP_NS};
    cudaError_t error = cudaEventQuery(event);
    for (int i = 0; i < NAPS && error == cudaErrorNotReady; i++) {
        (void)cudaGetLastError();
        (void)nanosleep(&nap, NULL);
        error = cudaEventQuery(event);
    }
    return error;
}

/* The shortest time of each kind, of the runs in which every launch was made that was asked for: others may have had
 * the credits. The first round also loads what it needs. Whether every kind has one. */
static cudaError_t read_times(const trials *t, double ns[KINDS], int *complete) {
    dpr_nested reports[RUNS];
    int found = 0;
    cudaError_t error = cudaMemcpyAsync(reports, t->memory->reports, sizeof reports, cudaMemcpyDefault, t->stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(t->stream);
    for (int i = KINDS; i < RUNS && error == cudaSuccess; i++) {
        const int kind = i % KINDS;
        float ms = 0;
        error = cudaEventElapsedTime(&ms, t->event[i], t->event[i + 1]);
        if (reports[i].refused > 0 || reports[i].error != 0)
            continue;
        if (!(found & 1 << kind) || 1e6 * ms < ns[kind])
            ns[kind] = 1e6 * ms;
        found |= 1 << kind;
    }
    *complete = found == (1 << KINDS) - 1;
    return error;
}

static int64_t at_least(int64_t least, double ns) {
    return ns > (double)least ? (int64_t)(ns + 0.5) : least;
}

static dpr_status find_times(trials *t, dpr_nested_costs *out) {
    double ns[KINDS] = {0};
    int complete = 0;
    const dpr_status status = enqueue_all(t);
    if (status != DPR_OK)
        return status;
    cudaError_t error = await(t->event[RUNS]);
    if (error == cudaErrorNotReady)
        return DPR_OK;
    if (error == cudaSuccess)
        error = read_times(t, ns, &complete);
    if (error != cudaSuccess)
        return failed(error);
    if (!complete)
        return DPR_OK;
    out->level_ns = at_least(1, (ns[NINE_LEVELS] - ns[ONE_LEVEL]) / (LEVELS - 1));
    out->first_ns = at_least(1, ns[ONE_LEVEL] - ns[NO_LEVEL] - (double)out->level_ns);
    out->fan_ns = at_least(1, (ns[MANY] - ns[SINGLE]) / (t->blocks - 1));
    return DPR_OK;
}

/* With a stream of its own, which is not being captured. */
static dpr_status measure(dpr_device *device, dpr_nesting *nesting, const dpr_gpu_caps *gpu, dpr_nested_costs *out) {
    const uint32_t credits = dpr_credits_of((size_t)gpu->pending_launches);
    trials t = {.device = device, .caps = {.has_gpu = 1, .gpu = *gpu}};
    t.blocks = credits < MOST_BLOCKS ? credits : MOST_BLOCKS;
    if (credits < LEAST_BLOCKS)
        return DPR_OK;
    const cudaError_t error = set_up(&t, nesting);
    const dpr_status status = error == cudaSuccess ? find_times(&t, out) : failed(error);
    tear_down(&t);
    return status;
}

dpr_status dpr_calibrate(dpr_device *device, dpr_nesting *nesting, const dpr_gpu_caps *gpu, dpr_nested_costs *out) {
    *out = (dpr_nested_costs){0};
    dpr_status status = load(device, gpu, &out->bytes);
    if (status != DPR_OK)
        return status;
    const enum cudaStreamCaptureMode mode = dpr_capture_relax();
    status = measure(device, nesting, gpu, out);
    dpr_capture_restore(mode);
    return status;
}
