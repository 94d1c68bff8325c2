/* A GPU as a device of the timing engine. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend.h"
#include "host_cache.h"
#include "kernels.h"

/* For what must stay in flight while the host launches: reads of `other`, or replays. */
enum { MOST_LEAD = 1024 };

static const size_t mib = (size_t)1 << 20;

typedef struct gpu {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    dpr_memory memory; /* of the pool */
    unsigned char *pool;
    host_cache host;      /* if the pool is pinned; otherwise all 0 */
    unsigned char *other; /* zeros, several times L2 */
    size_t other_bytes;
    unsigned char *results;  /* BENCH_CALLS of them */
    unsigned char *expected; /* of arrays of results; NULL: there are none */
    uint64_t *ticks;         /* two, for bench_launch_clock(), and the sink of bench_launch_read() */
    int lead; /* how many times the work ahead of a graph is done; grows when the device is quicker than the host */
} gpu;

/* Whether the device still answers, once `error` has been taken note of. */
static bench_status blame(cudaError_t error, const char *what, char *why) {
    if (error == cudaSuccess)
        return BENCH_GOOD;
    snprintf(why, BENCH_WHY, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
    (void)cudaGetLastError();
    return cudaDeviceSynchronize() == cudaSuccess ? BENCH_UNABLE : BENCH_BROKEN;
}

/* The same for what every subject needs. */
static bench_status blame_device(cudaError_t error, const char *what, char *why) {
    return blame(error, what, why) == BENCH_GOOD ? BENCH_GOOD : BENCH_BROKEN;
}

/* The first error of several calls, with what it was. */
typedef struct trouble {
    cudaError_t error;
    const char *what;
} trouble;

static int tried(trouble *t, cudaError_t error, const char *what) {
    if (t->error == cudaSuccess && error != cudaSuccess)
        *t = (trouble){error, what};
    return t->error == cudaSuccess;
}

/* ---- Opening and closing ---------------------------------------------------------------------------------------- */

static void cuda_close(void *state) {
    gpu *g = state;
    if (!g)
        return;
    (void)(g->memory == DPR_MEMORY_PINNED ? cudaFreeHost(g->pool) : cudaFree(g->pool));
    (void)cudaFree(g->other);
    (void)cudaFree(g->results);
    (void)cudaFree(g->ticks);
    (void)cudaFree(g->expected);
    if (g->begin)
        (void)cudaEventDestroy(g->begin);
    if (g->end)
        (void)cudaEventDestroy(g->end);
    if (g->stream)
        (void)cudaStreamDestroy(g->stream);
    (void)cudaGetLastError();
    host_cache_close(&g->host);
    free(g);
}

/* Shares the free memory: *other is memory to read between measurements, as much as keeps the device busy while the
 * host launches a graph, and at least four times L2; *most is what a pool may have of the rest. */
static cudaError_t share_memory(const bench_device *d, size_t *other, size_t *most) {
    const size_t least = 4 * (size_t)d->cache_bytes, wanted = 512 * mib;
    size_t free_bytes = 0, total;
    cudaError_t error = cudaSetDevice(d->ordinal);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&free_bytes, &total);
    *other = bench_aligned(least > wanted || wanted > free_bytes / 4 ? least : wanted);
    /* And some that the first kernel takes. */
    const size_t taken = *other + 64 * mib;
    *most = free_bytes > taken ? (free_bytes - taken) / 5 * 4 : 0;
    return error;
}

/* Pinned memory is taken from all programs, so a pool leaves half of what they have. */
static size_t cuda_most(const bench_device *d) {
    size_t other, most;
    if (d->memory == DPR_MEMORY_PINNED)
        return (size_t)memory_available() / 2;
    if (share_memory(d, &other, &most) == cudaSuccess)
        return most;
    (void)cudaGetLastError();
    return 0;
}

static cudaError_t take(dpr_memory memory, void **out, size_t bytes) {
    if (memory == DPR_MEMORY_PINNED)
        return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
    return memory == DPR_MEMORY_MANAGED ? cudaMallocManaged(out, bytes, cudaMemAttachGlobal) : cudaMalloc(out, bytes);
}

/* Memory that another program takes in the meantime, or that is in pieces, makes the pool smaller. */
static cudaError_t allocate_pool(gpu *g, size_t *bytes) {
    cudaError_t error;
    while ((error = take(g->memory, (void **)&g->pool, *bytes)) == cudaErrorMemoryAllocation
           && *bytes > BENCH_LEAST_POOL) {
        (void)cudaGetLastError();
        *bytes = bench_aligned(*bytes / 2 > BENCH_LEAST_POOL ? *bytes / 2 : BENCH_LEAST_POOL);
    }
    return error;
}

static cudaError_t read_other(const gpu *g) {
    return (cudaError_t)bench_launch_read(g->other, g->other_bytes, (uint32_t *)&g->ticks[2], g->stream);
}

/* Clocks rise when there is work. */
static cudaError_t wake(const gpu *g) {
    const double begin = seconds_now();
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && seconds_now() - begin < 0.3) {
        for (int i = 0; i < 16 && error == cudaSuccess; i++)
            error = read_other(g);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(g->stream);
    }
    return error;
}

static void prepare(gpu *g, bench_device *d, trouble *t) {
    size_t most;
    tried(t, share_memory(d, &g->other_bytes, &most), "the device's free memory");
    if (t->error != cudaSuccess)
        return;
    tried(t, cudaDriverGetVersion(&d->driver_version), "cudaDriverGetVersion");
    tried(t, cudaRuntimeGetVersion(&d->runtime_version), "cudaRuntimeGetVersion");
    tried(t, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    tried(t, cudaEventCreate(&g->begin), "cudaEventCreate");
    tried(t, cudaEventCreate(&g->end), "cudaEventCreate");
    tried(t, cudaMalloc((void **)&g->results, (size_t)BENCH_CALLS * BENCH_MOST_STRIDE), "device memory for results");
    tried(t, cudaMalloc((void **)&g->ticks, 3 * sizeof *g->ticks), "device memory");
    if (tried(t, cudaMalloc((void **)&g->other, g->other_bytes), "device memory to fill L2 from"))
        tried(t, cudaMemsetAsync(g->other, 0, g->other_bytes, g->stream), "cudaMemset");
    if (t->error == cudaSuccess)
        tried(t, allocate_pool(g, &d->pool_bytes), "device memory for the data");
    if (t->error == cudaSuccess)
        tried(t, wake(g), "the first kernel");
}

static bench_status cuda_open(bench_device *d, void **state, char *why) {
    trouble t = {cudaSuccess, NULL};
    gpu *g = calloc(1, sizeof *g);
    if (!g) {
        snprintf(why, BENCH_WHY, "no host memory for a timer");
        return BENCH_BROKEN;
    }
    g->lead = 1;
    g->memory = d->memory;
    int is_open = d->memory != DPR_MEMORY_PINNED || host_cache_open(d->host_cache_bytes, &g->host, why) == 0;
    if (is_open) {
        prepare(g, d, &t);
        is_open = blame(t.error, t.what, why) == BENCH_GOOD;
    }
    if (!is_open) {
        cuda_close(g);
        return BENCH_BROKEN;
    }
    *state = g;
    return BENCH_GOOD;
}

/* ---- Data ------------------------------------------------------------------------------------------------------- */

/* What is there is doubled until all is full. */
static bench_status cuda_fill(void *state, const void *block, size_t block_bytes, size_t bytes, char *why) {
    const gpu *g = state;
    cudaError_t error = cudaMemcpyAsync(g->pool, block, block_bytes, cudaMemcpyDefault, g->stream);
    for (size_t done = block_bytes; done < bytes && error == cudaSuccess; done *= 2) {
        const size_t more = done < bytes - done ? done : bytes - done;
        error = cudaMemcpyAsync(g->pool + done, g->pool, more, cudaMemcpyDefault, g->stream);
    }
    const cudaError_t end = cudaStreamSynchronize(g->stream);
    return blame_device(error != cudaSuccess ? error : end, "filling the buffers", why);
}

static bench_status cuda_put(void *state, size_t at, const void *from, size_t bytes, char *why) {
    const gpu *g = state;
    const cudaError_t error = cudaMemcpyAsync(g->pool + at, from, bytes, cudaMemcpyDefault, g->stream);
    return blame_device(error != cudaSuccess ? error : cudaStreamSynchronize(g->stream), "marking the buffers", why);
}

/* The memory lies next to the pool, which leaves a fifth of the device's. */
static bench_status cuda_expect(void *state, const bench_point *point, char *why) {
    gpu *g = state;
    trouble t = {cudaSuccess, NULL};
    tried(&t, cudaFree(g->expected), "cudaFree");
    g->expected = NULL;
    if (point->array_bytes
        && tried(&t, cudaMalloc((void **)&g->expected, point->array_bytes), "memory to compare with"))
        tried(&t, cudaMemcpyAsync(g->expected, point->expected, point->array_bytes, cudaMemcpyHostToDevice, g->stream),
              "cudaMemcpy");
    tried(&t, cudaStreamSynchronize(g->stream), "cudaMemcpy");
    return blame_device(t.error, t.what, why);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* The array of results of the call that reads buffer i. */
static unsigned char *array_of(const gpu *g, const bench_batch *batch, size_t i) {
    return g->pool + bench_offset(batch->layout, i) + bench_array_at(batch->point);
}

static cudaError_t poison_arrays(const gpu *g, const bench_batch *batch, int calls) {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < bench_arrays(batch->layout, calls) && error == cudaSuccess; i++)
        error = cudaMemsetAsync(array_of(g, batch, i), BENCH_POISON, batch->point->array_bytes, g->stream);
    return error;
}

static cudaError_t poison(const gpu *g, const bench_batch *batch, int calls) {
    if (batch->point->array_bytes)
        return poison_arrays(g, batch, calls);
    return cudaMemsetAsync(g->results, BENCH_POISON, (size_t)calls * bench_stride(batch->point), g->stream);
}

static cudaError_t fetch(const gpu *g, const bench_batch *batch, int calls) {
    if (batch->point->array_bytes)
        return cudaSuccess; /* cuda_compare() looks at them where they are */
    const size_t bytes = (size_t)calls * bench_stride(batch->point);
    const cudaError_t error = cudaMemcpyAsync(batch->results, g->results, bytes, cudaMemcpyDeviceToHost, g->stream);
    return error != cudaSuccess ? error : cudaStreamSynchronize(g->stream);
}

/* Makes the calls, in the timer's stream unless they block. */
static bench_status make_calls(const gpu *g, const bench_batch *batch, int calls) {
    unsigned char *out = batch->point->mode == BENCH_BLOCKING ? batch->results : g->results;
    return bench_make_calls(batch, calls, g->pool, 0, out, g->stream);
}

/* Whether the device still answers after a call that failed with `status`. */
static bench_status after_failure(bench_status status, char *why) {
    (void)cudaGetLastError();
    const cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ? status : blame(error, "after a call that failed", why);
}

/* The CPU may run blocking calls that read pinned memory, so its caches count, too. */
static bench_status fill_host_cache(gpu *g, char *why) {
    double seconds;
    if (!g->host.ctx || host_cache_fill(&g->host, &seconds) == DPR_OK)
        return BENCH_GOOD;
    snprintf(why, BENCH_WHY, "the caches cannot be filled: %s", dpr_last_error());
    return BENCH_BROKEN;
}

static bench_status cuda_ready(void *state, const bench_batch *batch, int calls) {
    gpu *g = state;
    const int is_cold = batch->point->cache == BENCH_COLD;
    trouble t = {cudaSuccess, NULL};
    if (is_cold && batch->point->mode == BENCH_BLOCKING && fill_host_cache(g, batch->outcome->why) != BENCH_GOOD)
        return BENCH_BROKEN;
    tried(&t, poison(g, batch, calls), "cudaMemset");
    if (is_cold)
        tried(&t, read_other(g), "filling L2");
    tried(&t, cudaStreamSynchronize(g->stream), "filling L2");
    return blame(t.error, t.what, batch->outcome->why);
}

/* The stream is empty at both looks at the host's clock. */
static bench_status cuda_time(void *state, const bench_batch *batch, int calls, double *us) {
    const gpu *g = state;
    char *why = batch->outcome->why;
    const int blocking = batch->point->mode == BENCH_BLOCKING;
    const double begin = seconds_now();
    const bench_status made = make_calls(g, batch, calls);
    const cudaError_t error = blocking || made != BENCH_GOOD ? cudaSuccess : cudaStreamSynchronize(g->stream);
    *us = 1e6 * (seconds_now() - begin) / calls;
    const bench_status status = made != BENCH_GOOD ? after_failure(made, why) : blame(error, "a batch of calls", why);
    return status != BENCH_GOOD || blocking ? status : blame(fetch(g, batch, calls), "fetching results", why);
}

/* A mark for each array in the memory of results, which calls with arrays do not use. */
static bench_status cuda_compare(void *state, const bench_batch *batch, int *wrong) {
    const gpu *g = state;
    const size_t arrays = bench_arrays(batch->layout, batch->outcome->calls);
    uint32_t *marks = (uint32_t *)(void *)g->results;
    trouble t = {cudaSuccess, NULL};
    tried(&t, cudaMemsetAsync(marks, 0, arrays * sizeof *marks, g->stream), "");
    for (size_t i = 0; i < arrays && t.error == cudaSuccess; i++)
        tried(&t,
              (cudaError_t)bench_launch_compare(array_of(g, batch, i), g->expected, batch->point->array_bytes,
                                                &marks[i], g->stream),
              "");
    tried(&t, cudaMemcpyAsync(batch->results, marks, arrays * sizeof *marks, cudaMemcpyDeviceToHost, g->stream), "");
    tried(&t, cudaStreamSynchronize(g->stream), "");
    *wrong = 0;
    for (size_t i = 0; i < arrays && t.error == cudaSuccess; i++)
        *wrong += batch->results[i * sizeof *marks] != 0;
    return blame(t.error, "comparing results", batch->outcome->why);
}

/* ---- Graphs ----------------------------------------------------------------------------------------------------- */

static bench_status cuda_capture(void *state, bench_batch *batch) {
    const gpu *g = state;
    char *why = batch->outcome->why;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t error = cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return blame(error, "cudaStreamBeginCapture", why);
    const bench_status made = make_calls(g, batch, batch->outcome->calls);
    error = cudaStreamEndCapture(g->stream, &graph);
    if (made == BENCH_GOOD && error == cudaSuccess)
        error = cudaGraphInstantiate(&exec, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    batch->graph = exec;
    if (made != BENCH_GOOD)
        return after_failure(made, why);
    if (error == cudaSuccess)
        error = cudaGraphUpload(exec, g->stream);
    return blame(error, "capturing the calls", why);
}

/* One replay behind work that keeps the device busy until all is launched. *late: it was not busy for long enough. */
static cudaError_t replay_once(const gpu *g, const bench_batch *batch, int *late, float *ms) {
    const int hot = batch->point->cache == BENCH_HOT;
    cudaGraphExec_t exec = batch->graph;
    trouble t = {cudaSuccess, NULL};
    tried(&t, poison(g, batch, batch->outcome->calls), "");
    for (int i = 0; i < g->lead && t.error == cudaSuccess; i++)
        tried(&t, hot ? cudaGraphLaunch(exec, g->stream) : read_other(g), "");
    tried(&t, cudaEventRecord(g->begin, g->stream), "");
    tried(&t, cudaGraphLaunch(exec, g->stream), "");
    tried(&t, cudaEventRecord(g->end, g->stream), "");
    *late = cudaEventQuery(g->begin) == cudaSuccess;
    (void)cudaGetLastError(); /* that it is not ready is no error */
    tried(&t, cudaStreamSynchronize(g->stream), "");
    tried(&t, cudaEventElapsedTime(ms, g->begin, g->end), "");
    return t.error;
}

static bench_status cuda_replay(void *state, const bench_batch *batch, double *us) {
    enum { TRIES = 10 };
    gpu *g = state;
    bench_outcome *o = batch->outcome;
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        int late = 0;
        cudaError_t error = replay_once(g, batch, &late, &ms);
        if (error == cudaSuccess && !late)
            error = fetch(g, batch, o->calls);
        if (error != cudaSuccess)
            return blame(error, "replaying the graph", o->why);
        *us = 1e3 * (double)ms / o->calls;
        if (!late)
            return BENCH_GOOD;
        o->late++;
        g->lead = g->lead < MOST_LEAD / 2 ? 2 * g->lead : MOST_LEAD;
    }
    snprintf(o->why, BENCH_WHY, "the host launches graphs too slowly: the device was idle before each of %d", TRIES);
    return BENCH_UNABLE;
}

static void cuda_free_graph(void *graph) {
    if (cudaGraphExecDestroy(graph) != cudaSuccess)
        (void)cudaGetLastError();
}

/* ---- Reference -------------------------------------------------------------------------------------------------- */

static bench_status cuda_look(void *state, bench_reference *out, char *why) {
    static const uint64_t cycles = 500000; /* long against the timer's step, which may be 1 us */
    const gpu *g = state;
    uint64_t ticks[2] = {0};
    float ms = 0;
    trouble t = {cudaSuccess, NULL};
    tried(&t, read_other(g), "");
    tried(&t, cudaEventRecord(g->begin, g->stream), "");
    tried(&t, read_other(g), "");
    tried(&t, cudaEventRecord(g->end, g->stream), "");
    tried(&t, (cudaError_t)bench_launch_clock(cycles, g->ticks, g->stream), "");
    tried(&t, cudaMemcpyAsync(ticks, g->ticks, sizeof ticks, cudaMemcpyDeviceToHost, g->stream), "");
    tried(&t, cudaStreamSynchronize(g->stream), "");
    tried(&t, cudaEventElapsedTime(&ms, g->begin, g->end), "");
    if (t.error == cudaSuccess && ms > 0 && ticks[1] > 0) {
        out->read_gb_per_s = 1e-6 * (double)g->other_bytes / (double)ms;
        out->clock_mhz = 1e3 * (double)ticks[0] / (double)ticks[1];
    }
    return blame_device(t.error, "timing the reference", why);
}

/* ---- Empty launches ---------------------------------------------------------------------------------------------- */

static int enqueue_nothing(void *user, const void *in, void *out, dpr_stream stream) {
    (void)user;
    (void)in;
    (void)out;
    return bench_launch_nothing(1, stream);
}

static int call_nothing(void *user, const void *in, void *host_out) {
    (void)user;
    (void)in;
    (void)host_out;
    const int error = bench_launch_nothing(0, NULL);
    return error != cudaSuccess ? error : (int)cudaStreamSynchronize(NULL);
}

static const bench_subject empty_launch = {
    .name = "launch", .enqueue = enqueue_nothing, .call = call_nothing, .accompanies = 1};

const bench_backend bench_cuda = {
    .most = cuda_most,
    .open = cuda_open,
    .close = cuda_close,
    .fill = cuda_fill,
    .expect = cuda_expect,
    .put = cuda_put,
    .ready = cuda_ready,
    .time = cuda_time,
    .compare = cuda_compare,
    .capture = cuda_capture,
    .replay = cuda_replay,
    .free_graph = cuda_free_graph,
    .look = cuda_look,
    .launch = &empty_launch,
};
