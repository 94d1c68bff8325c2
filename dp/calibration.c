#define _POSIX_C_SOURCE 199309L /* nanosleep() */
#include "calibration.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "apart.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/elapsed.h"
#include "cuda/home.h"
#include "cuda/module.h"
#include "nested_host.h"

extern const dpr_strategy dpr_dp_recursive2, dpr_dp_nosync, dpr_dp_tree;

/* ---- The runs that are timed ---- */

/* Kinds of runs, which differ only in what they launch: one tile with no level of launches, with one, and with nine;
 * trees with one level above the leaves and with five, whose leaves are read side by side; and one block, or many, with
 * a launch each. The kinds that take longest come first, so that the others are enqueued meanwhile. */
enum { MANY, NINE_LEVELS, FIVE_TAILS, ONE_TAIL, ONE_LEVEL, SINGLE, NO_LEVEL, KINDS };
enum { LEVELS = 9, TAILS = 5, WORDS = 32, MOST_BLOCKS = 256, LEAST_BLOCKS = 16 };
enum { LEAF = DPR_TREE_UNIT * 16 / sizeof(int32_t), WHOLE = LEAF << TAILS };
enum { ROUNDS = 4, RUNS = ROUNDS * KINDS }; /* the first round also loads what the runs need */

static const struct {
    const dpr_strategy *form;
    uint8_t log_block, depth;
    size_t count;
} kinds[KINDS] = {
    [MANY] = {&dpr_dp_nosync, 5, 1, 0}, /* blocks * WORDS, as the pool allows */
    [SINGLE] = {&dpr_dp_nosync, 5, 1, WORDS},
    [NINE_LEVELS] = {&dpr_dp_recursive2, 10, LEVELS, 2 << LEVELS},
    [ONE_LEVEL] = {&dpr_dp_recursive2, 10, LEVELS, 4},
    [NO_LEVEL] = {&dpr_dp_recursive2, 10, LEVELS, 2},
    [FIVE_TAILS] = {&dpr_dp_tree, 0, TAILS, WHOLE},
    [ONE_TAIL] = {&dpr_dp_tree, 0, TAILS, 2 * LEAF},
};
static_assert((int)LEAST_BLOCKS > (int)LEVELS, "a pool of so many places has room for a chain");
static_assert((int)WHOLE >= MOST_BLOCKS * WORDS, "the largest array");

/* The longest wait, for graphs and for the runs that are timed. */
static const double PATIENCE_SECONDS = 0.05;

/* One thread of the process measures at a time, because others would disturb it. */
static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;

struct dpr_calibration {
    atomic_int done; /* 1: the members below are set */
    int64_t bytes;   /* 0: not measured; the times likewise */
    int64_t level_ns, tail_ns, first_ns, fan_ns;
    dpr_launch_report *reports; /* RUNS reports in pinned memory. They are kept to the end, because freeing them may
                            wait for all work */
};

dpr_calibration *dpr_calibration_create(void) {
    return calloc(1, sizeof(dpr_calibration));
}

void dpr_calibration_destroy(dpr_calibration *c, int there) {
    if (!c)
        return;
    if (there && c->reports && cudaFreeHost(c->reports) != cudaSuccess)
        (void)cudaGetLastError();
    free(c);
}

void dpr_calibration_read(const dpr_calibration *c, dpr_gpu_caps *gpu) {
    if (!atomic_load(&c->done))
        return;
    if (c->bytes > 0) {
        gpu->nested_bytes = c->bytes;
        gpu->nested_bytes_measured = 1;
    }
    if (c->level_ns > 0) {
        gpu->nested_level_ns = c->level_ns;
        gpu->nested_tail_ns = c->tail_ns;
        gpu->nested_first_ns = c->first_ns;
        gpu->nested_fan_ns = c->fan_ns;
        gpu->nested_times_measured = 1;
    }
}

/* ---- Memory ---- */

/* Finds the memory that was taken when the code was loaded. It counts only if the pool had this size then and if the
 * number is plausible, because others may have taken or freed memory at the same time. */
static dpr_status find_bytes(dpr_calibration *c, dpr_device *device, const dpr_gpu_caps *gpu) {
    enum { TIMES = 4 };
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_I32)}};
    const dpr_kernel kernel = dpr_dp_recursive2.kernel(&key);
    const int64_t assumed = dpr_nested_bytes(gpu->pending_launches);
    dpr_residence at = dpr_device_residence(device);
    dpr_residency unused;
    const dpr_status status = dpr_device_resident(&at, &kernel, &unused);
    const dpr_module_arrival code = dpr_module_arrived(kernel.module);
    const int64_t bytes = (int64_t)code.bytes;
    if (status == DPR_OK && (int64_t)code.pending == gpu->pending_launches && bytes > assumed / TIMES
        && bytes < assumed * TIMES)
        c->bytes = bytes;
    return status;
}

/* ---- Times ---- */

/* Device memory of the runs. */
typedef struct workplace {
    int32_t in[WHOLE];
    int64_t out;
} workplace;

typedef struct trials {
    dpr_device *device;
    dpr_caps caps;
    uint32_t blocks; /* blocks that launch one kernel each in MANY */
    cudaStream_t stream;
    workplace *memory;
    dpr_launch_report *reports;
    int pending; /* 1: nested launches of the runs may be pending */
    int events;
    cudaEvent_t event[RUNS + 1]; /* before each run, and after the last */
} trials;

/* The status of an error. Without memory for measuring there is no need to measure. */
static dpr_status outcome_of(cudaError_t error) {
    if (error == cudaErrorMemoryAllocation)
        (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation || error == cudaSuccess)
        return DPR_OK;
    return dpr_cuda_failed(error, "measuring what nested launches cost");
}

static cudaError_t create_events(trials *t) {
    for (; t->events < RUNS + 1; t->events++) {
        const cudaError_t error = cudaEventCreateWithFlags(&t->event[t->events], cudaEventDefault);
        if (error != cudaSuccess)
            return error;
    }
    return cudaSuccess;
}

static cudaError_t set_up(trials *t, dpr_calibration *c, dpr_workspaces *work) {
    cudaError_t error = cudaSuccess;
    if (!c->reports)
        error = cudaHostAlloc((void **)&c->reports, RUNS * sizeof *c->reports, cudaHostAllocDefault);
    t->reports = c->reports;
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = dpr_workspaces_allocate(work, sizeof *t->memory, t->stream, (void **)&t->memory);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(t->memory, 0, sizeof *t->memory, t->stream);
    return error == cudaSuccess ? create_events(t) : error;
}

/* Does not wait: what is still in use is freed when it is done. */
static void tear_down(const trials *t) {
    int failures = 0;
    for (int i = 0; i < t->events; i++)
        failures += cudaEventDestroy(t->event[i]) != cudaSuccess;
    if (t->memory)
        failures += cudaFreeAsync(t->memory, t->stream) != cudaSuccess;
    if (t->stream)
        failures += cudaStreamDestroy(t->stream) != cudaSuccess;
    if (failures > 0)
        (void)cudaGetLastError();
}

/* Enqueues run `number`. Trees are planned as if levels took no time, which makes them as high as possible. */
static dpr_status enqueue(const trials *t, int number) {
    const int kind = number % KINDS;
    dpr_run run = {.in = t->memory->in, .out = &t->memory->out, .count = kinds[kind].count, .stream = t->stream};
    if (kind == MANY)
        run.count = t->blocks * WORDS;
    run.key.f.op = DPR_ROW(DPR_SUM);
    run.key.f.dtype = DPR_ROW(DPR_I32);
    run.key.f.in_memory = DPR_MEMORY_DEVICE;
    run.key.f.gpu_only = 1;
    run.key.f.block = kinds[kind].log_block;
    run.key.f.depth = kinds[kind].depth;
    run.limits = kinds[kind].form->limits(&run.key, &t->caps, (dpr_residency){1, 0});
    run.limits.launch_seconds = 0;
    run.report = &t->reports[number];
    run.report_size = sizeof t->reports[number];
    run.sms = dpr_device_residence(t->device).sms; /* of its own stream; the caller's may have fewer */
    run.is_apart = 1;
    return dpr_device_run(t->device, kinds[kind].form, &run, &(dpr_misfit){0});
}

static dpr_status enqueue_all(trials *t, int *complete) {
    cudaError_t error = cudaEventRecord(t->event[0], t->stream);
    t->pending = 1;
    for (int i = 0; i < RUNS && error == cudaSuccess; i++) {
        const dpr_status status = enqueue(t, i);
        if (status != DPR_OK)
            return status == DPR_ERR_OUT_OF_MEMORY ? DPR_OK : status;
        error = cudaEventRecord(t->event[i + 1], t->stream);
    }
    *complete = error == cudaSuccess;
    return outcome_of(error);
}

/* Waits for the event. Returns cudaErrorNotReady if it is not done in time. It asks the driver, because the runtime
 * would keep "not ready" as the caller's last error. */
static cudaError_t await(cudaEvent_t event) {
    const struct timespec nap = {.tv_nsec = 50 * 1000}, start = dpr_now();
    const long patience_ns = (long)(1e9 * PATIENCE_SECONDS);
    CUresult result = dpr_driver()->event_query(event);
    while (result == CUDA_ERROR_NOT_READY && dpr_ns_since(start) < patience_ns) {
        (void)nanosleep(&nap, NULL);
        result = dpr_driver()->event_query(event);
    }
    return (cudaError_t)result;
}

/* Finds the shortest time of each kind, among the runs in which no launch was refused or failed: others may have had
 * the pool's places. Sets *complete if every kind has a time. */
static cudaError_t read_times(const trials *t, double ns[KINDS], int *complete) {
    cudaError_t error = cudaSuccess;
    int found = 0;
    for (int i = KINDS; i < RUNS && error == cudaSuccess; i++) {
        const int kind = i % KINDS;
        float ms = 0;
        error = cudaEventElapsedTime(&ms, t->event[i], t->event[i + 1]);
        if (t->reports[i].refused > 0 || t->reports[i].error != 0)
            continue;
        if (!(found & 1 << kind) || 1e6 * ms < ns[kind])
            ns[kind] = 1e6 * ms;
        found |= 1 << kind;
    }
    *complete = found == (1 << KINDS) - 1;
    return error;
}

/* True if every run took longer than the one that does less. Otherwise others were at work on the device. */
static int plausible(const double ns[KINDS]) {
    return ns[NINE_LEVELS] > ns[ONE_LEVEL] && ns[ONE_LEVEL] > ns[NO_LEVEL] && ns[FIVE_TAILS] > ns[ONE_TAIL]
           && ns[MANY] > ns[SINGLE];
}

/* Rounds to at least 1, because 0 means "not measured". */
static int64_t rounded(double ns) {
    return ns > 1 ? (int64_t)(ns + 0.5) : 1;
}

static dpr_status find_times(trials *t, dpr_calibration *c) {
    double ns[KINDS] = {0};
    int complete = 0;
    const dpr_status status = enqueue_all(t, &complete);
    if (status != DPR_OK || !complete)
        return status;
    cudaError_t error = await(t->event[RUNS]);
    if (error == cudaErrorNotReady)
        return DPR_OK;
    if (error == cudaSuccess) {
        t->pending = 0;
        error = read_times(t, ns, &complete);
    }
    if (error != cudaSuccess || !complete || !plausible(ns))
        return outcome_of(error);
    c->level_ns = rounded((ns[NINE_LEVELS] - ns[ONE_LEVEL]) / (LEVELS - 1));
    c->tail_ns = rounded((ns[FIVE_TAILS] - ns[ONE_TAIL]) / (TAILS - 1));
    c->first_ns = rounded(ns[ONE_LEVEL] - ns[NO_LEVEL] - (double)c->level_ns);
    c->fan_ns = rounded((ns[MANY] - ns[SINGLE]) / (t->blocks - 1));
    return DPR_OK;
}

/* Measures times, in a stream of its own, which is not being captured. */
static dpr_status measure(dpr_calibration *c, dpr_device *device, dpr_workspaces *work, const dpr_gpu_caps *gpu) {
    trials t = {.device = device, .caps = {.has_gpu = 1, .gpu = *gpu}};
    if (gpu->pending_launches < LEAST_BLOCKS)
        return DPR_OK;
    t.blocks = gpu->pending_launches < MOST_BLOCKS ? (uint32_t)gpu->pending_launches : MOST_BLOCKS;
    const cudaError_t error = set_up(&t, c, work);
    const dpr_status status = error == cudaSuccess ? find_times(&t, c) : outcome_of(error);
    if (t.pending)
        (void)dpr_apart_launches(1); /* nobody says when they are done */
    tear_down(&t);
    return status;
}

dpr_status dpr_calibrate(dpr_calibration *c, dpr_device *device, dpr_workspaces *work, const dpr_gpu_caps *gpu) {
    dpr_status status = DPR_OK;
    if (atomic_load(&c->done))
        return DPR_OK;
    if (dpr_apart_begin(DPR_APART_NESTED, PATIENCE_SECONDS) == DPR_APART_LATE)
        return DPR_OK; /* a later call measures */
    pthread_mutex_lock(&measuring);
    if (!atomic_load(&c->done)) {
        status = find_bytes(c, device, gpu);
        if (status == DPR_OK)
            status = measure(c, device, work, gpu);
        atomic_store(&c->done, status == DPR_OK);
    }
    pthread_mutex_unlock(&measuring);
    dpr_apart_end(DPR_APART_NESTED);
    return status;
}
