/* A GPU as a device of the timing engine. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "backend.h"
#include "kernels.h"

/* For what must stay in flight while the host launches: reads of `other`, or replays. */
enum { MOST_LEAD = 1024 };

static const size_t mib = (size_t)1 << 20;

typedef struct gpu {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    unsigned char *pool;
    unsigned char *other; /* zeros, several times L2 */
    size_t other_bytes;
    unsigned char *results; /* BENCH_CALLS of them */
    uint64_t *ticks;        /* two, for bench_launch_clock(), and the sink of bench_launch_read() */
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

static bench_status callback_failed(int code, char *why) {
    (void)cudaGetLastError();
    const cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) {
        snprintf(why, BENCH_WHY, "the call failed with %d", code);
        return BENCH_CALLBACK;
    }
    return blame(error, "after a call that failed", why);
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
    (void)cudaFree(g->pool);
    (void)cudaFree(g->other);
    (void)cudaFree(g->results);
    (void)cudaFree(g->ticks);
    if (g->begin)
        (void)cudaEventDestroy(g->begin);
    if (g->end)
        (void)cudaEventDestroy(g->end);
    if (g->stream)
        (void)cudaStreamDestroy(g->stream);
    (void)cudaGetLastError();
    free(g);
}

static cudaError_t allocate(unsigned char **out, size_t bytes) {
    return cudaMalloc((void **)out, bytes);
}

/* Memory to read between measurements: as much as keeps the device busy while the host launches a graph, and at least
 * four times L2. */
static size_t other_bytes(size_t l2, size_t free_bytes) {
    const size_t least = 4 * l2, wanted = 512 * mib;
    return least > wanted || wanted > free_bytes / 4 ? least : wanted;
}

static size_t most_of(size_t free_bytes) {
    return free_bytes / 5 * 4;
}

static dpr_status describe(bench_device *d) {
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *m;
    const dpr_status status = dpr_machine_read(d->ordinal, 0, &m);
    if (status != DPR_OK)
        return status;
    (void)dpr_machine_describe(m, &info);
    const uint64_t l2 = (uint64_t)machine_value(m, "gpu.l2_bytes");
    snprintf(d->name, sizeof d->name, "%s", info.gpu_name);
    d->sm_count = (int)machine_value(m, "gpu.sm_count");
    d->sm_clock_khz = (int)machine_value(m, "gpu.sm_clock_khz");
    d->memory_clock_khz = (int)machine_value(m, "gpu.memory_clock_khz");
    d->memory_bus_bits = (int)machine_value(m, "gpu.memory_bus_bits");
    d->cache_bytes = l2 > 0 ? l2 : 4 * mib;
    d->memory_bytes = (uint64_t)machine_value(m, "gpu.memory_bytes");
    dpr_machine_destroy(m);
    if (cudaDriverGetVersion(&d->driver_version) != cudaSuccess
        || cudaRuntimeGetVersion(&d->runtime_version) != cudaSuccess)
        (void)cudaGetLastError();
    return status;
}

static size_t cuda_most(int ordinal) {
    bench_device d = {.ordinal = ordinal};
    size_t free_bytes = 0, total;
    if (describe(&d) != DPR_OK || cudaSetDevice(ordinal) != cudaSuccess
        || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    /* And some that the first kernel takes. */
    const size_t taken = other_bytes(d.cache_bytes, free_bytes) + 64 * mib;
    return free_bytes > taken ? most_of(free_bytes - taken) : 0;
}

/* Memory that another program takes in the meantime, or that is in pieces, makes the pool smaller. */
static cudaError_t allocate_pool(gpu *g, size_t wanted, size_t *got) {
    const size_t least = 16 * mib;
    size_t free_bytes, total;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total);
    if (error != cudaSuccess)
        return error;
    size_t bytes = wanted < most_of(free_bytes) ? wanted : most_of(free_bytes);
    for (; bytes > least; bytes /= 2) {
        *got = bytes / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
        if ((error = allocate(&g->pool, *got)) != cudaErrorMemoryAllocation)
            return error;
        (void)cudaGetLastError();
    }
    *got = least;
    return allocate(&g->pool, least);
}

static void prepare(gpu *g, bench_device *d, size_t pool_bytes, trouble *t) {
    size_t free_bytes = 0, total;
    tried(t, cudaSetDevice(d->ordinal), "cudaSetDevice");
    tried(t, cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
    if (t->error != cudaSuccess)
        return;
    g->other_bytes = other_bytes(d->cache_bytes, free_bytes) / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
    tried(t, cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "cudaStreamCreate");
    tried(t, cudaEventCreate(&g->begin), "cudaEventCreate");
    tried(t, cudaEventCreate(&g->end), "cudaEventCreate");
    tried(t, allocate(&g->results, (size_t)BENCH_CALLS * BENCH_RESULT_STRIDE), "device memory for results");
    tried(t, cudaMalloc((void **)&g->ticks, 3 * sizeof *g->ticks), "device memory");
    if (tried(t, allocate(&g->other, g->other_bytes), "device memory to fill L2 from"))
        tried(t, cudaMemsetAsync(g->other, 0, g->other_bytes, g->stream), "cudaMemset");
    if (t->error == cudaSuccess)
        tried(t, allocate_pool(g, pool_bytes, &d->pool_bytes), "device memory for the data");
    if (t->error == cudaSuccess)
        tried(t, cudaStreamSynchronize(g->stream), "cudaStreamSynchronize");
}

static cudaError_t read_other(const gpu *g) {
    return (cudaError_t)bench_launch_read(g->other, g->other_bytes, (uint32_t *)&g->ticks[2], g->stream);
}

/* Clocks rise when there is work. */
static cudaError_t wake(const gpu *g) {
    const double begin = bench_now();
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && bench_now() - begin < 0.3) {
        for (int i = 0; i < 16 && error == cudaSuccess; i++)
            error = read_other(g);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(g->stream);
    }
    return error;
}

static bench_status cuda_open(bench_device *d, size_t pool_bytes, void **state, char *why) {
    trouble t = {cudaSuccess, NULL};
    gpu *g = calloc(1, sizeof *g);
    if (!g || describe(d) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%.500s", g ? dpr_last_error() : "no host memory for a timer");
        free(g);
        return BENCH_BROKEN;
    }
    g->lead = 1;
    prepare(g, d, pool_bytes, &t);
    if (t.error == cudaSuccess)
        tried(&t, wake(g), "the first kernel");
    if (t.error != cudaSuccess) {
        (void)blame(t.error, t.what, why);
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
    cudaError_t error = cudaMemcpyAsync(g->pool, block, block_bytes, cudaMemcpyHostToDevice, g->stream);
    for (size_t done = block_bytes; done < bytes && error == cudaSuccess; done *= 2) {
        const size_t more = done < bytes - done ? done : bytes - done;
        error = cudaMemcpyAsync(g->pool + done, g->pool, more, cudaMemcpyDeviceToDevice, g->stream);
    }
    const cudaError_t end = cudaStreamSynchronize(g->stream);
    return blame_device(error != cudaSuccess ? error : end, "filling the buffers", why);
}

static bench_status cuda_put(void *state, size_t at, const void *from, size_t bytes, char *why) {
    const gpu *g = state;
    const cudaError_t error = cudaMemcpyAsync(g->pool + at, from, bytes, cudaMemcpyHostToDevice, g->stream);
    return blame_device(error != cudaSuccess ? error : cudaStreamSynchronize(g->stream), "marking the buffers", why);
}

static const unsigned char *input(const gpu *g, const bench_batch *batch, int i) {
    return g->pool + bench_offset(batch->layout, (size_t)i);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* 0, or what the first callback returned that failed. */
static int enqueue_calls(const gpu *g, bench_batch *batch) {
    const bench_subject *s = batch->subject;
    for (int i = 0; i < batch->calls; i++) {
        unsigned char *out = g->results + (size_t)i * BENCH_RESULT_STRIDE;
        if ((batch->code = s->enqueue(s->user, input(g, batch, i), out, g->stream)) != 0)
            return batch->code;
    }
    return 0;
}

static size_t result_bytes(const bench_batch *batch) {
    return (size_t)batch->calls * BENCH_RESULT_STRIDE;
}

static cudaError_t poison(const gpu *g, const bench_batch *batch) {
    return cudaMemsetAsync(g->results, BENCH_POISON, result_bytes(batch), g->stream);
}

static cudaError_t fetch(const gpu *g, const bench_batch *batch) {
    const cudaError_t error =
        cudaMemcpyAsync(batch->results, g->results, result_bytes(batch), cudaMemcpyDeviceToHost, g->stream);
    return error != cudaSuccess ? error : cudaStreamSynchronize(g->stream);
}

/* ---- Blocking calls and streams --------------------------------------------------------------------------------- */

/* A batch between two looks at the host's clock; the stream is empty at both. */
static bench_status time_calls(gpu *g, bench_batch *batch, double *us, char *why) {
    const int blocking = batch->point->mode == BENCH_BLOCKING;
    const double begin = bench_now();
    const int code = blocking ? bench_make_calls(batch, g->pool, 0) : enqueue_calls(g, batch);
    const cudaError_t error = blocking || code != 0 ? cudaSuccess : cudaStreamSynchronize(g->stream);
    *us = 1e6 * (bench_now() - begin) / batch->calls;
    return code != 0 ? callback_failed(code, why) : blame(error, "a batch of calls", why);
}

/* One call, for its effect on the cache. */
static bench_status heat(gpu *g, bench_batch *batch, char *why) {
    const int all = batch->calls;
    double us;
    batch->calls = 1;
    const bench_status status = time_calls(g, batch, &us, why);
    batch->calls = all;
    return status;
}

static bench_status sample_calls(gpu *g, bench_batch *batch, double *us, char *why) {
    const int hot = batch->point->cache == BENCH_HOT, blocking = batch->point->mode == BENCH_BLOCKING;
    bench_status status = hot ? heat(g, batch, why) : BENCH_GOOD;
    if (status != BENCH_GOOD)
        return status;
    trouble t = {cudaSuccess, NULL};
    memset(batch->results, BENCH_POISON, result_bytes(batch));
    tried(&t, poison(g, batch), "cudaMemset");
    if (!hot)
        tried(&t, read_other(g), "filling L2");
    tried(&t, cudaStreamSynchronize(g->stream), "filling L2");
    status = blame(t.error, t.what, why);
    if (status == BENCH_GOOD)
        status = time_calls(g, batch, us, why);
    if (status == BENCH_GOOD && !blocking)
        status = blame(fetch(g, batch), "fetching results", why);
    return status;
}

/* ---- Graphs ----------------------------------------------------------------------------------------------------- */

static bench_status capture(gpu *g, bench_batch *batch, char *why) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t error = cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return blame(error, "cudaStreamBeginCapture", why);
    const int code = enqueue_calls(g, batch);
    error = cudaStreamEndCapture(g->stream, &graph);
    if (code == 0 && error == cudaSuccess)
        error = cudaGraphInstantiate(&exec, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    batch->graph = exec;
    if (code != 0)
        return callback_failed(code, why);
    if (error == cudaSuccess)
        error = cudaGraphUpload(exec, g->stream);
    return blame(error, "capturing the calls", why);
}

/* One replay behind work that keeps the device busy until all is launched. *late: it was not busy for long enough. */
static cudaError_t replay(gpu *g, bench_batch *batch, int *late, float *ms) {
    const int hot = batch->point->cache == BENCH_HOT;
    cudaGraphExec_t exec = batch->graph;
    trouble t = {cudaSuccess, NULL};
    tried(&t, poison(g, batch), "");
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

static bench_status sample_graph(gpu *g, bench_batch *batch, double *us, char *why) {
    enum { TRIES = 10 };
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        int late = 0;
        cudaError_t error = replay(g, batch, &late, &ms);
        if (error == cudaSuccess && !late)
            error = fetch(g, batch);
        if (error != cudaSuccess)
            return blame(error, "replaying the graph", why);
        *us = 1e3 * (double)ms / batch->calls;
        if (!late)
            return BENCH_GOOD;
        batch->late++;
        g->lead = g->lead < MOST_LEAD / 2 ? 2 * g->lead : MOST_LEAD;
    }
    snprintf(why, BENCH_WHY, "the host launches graphs too slowly: the device was idle before each of %d", TRIES);
    return BENCH_UNABLE;
}

/* ---- Batches ---------------------------------------------------------------------------------------------------- */

/* The first call of a subject loads its kernels; the quickest of the next tells how long one takes. */
static bench_status cuda_warm(void *state, bench_batch *batch, char *why) {
    gpu *g = state;
    const int most = batch->subject->most_captured;
    double us = 0, least = 0;
    batch->calls = 1;
    /* Slow calls are not worth many. */
    for (int i = 0; i < 5 && (i < 2 || us < 1e4); i++) {
        const bench_status status = time_calls(g, batch, &us, why);
        if (status != BENCH_GOOD)
            return status;
        least = i < 2 || us < least ? us : least;
    }
    batch->calls = bench_calls(batch->layout, 1e-6 * least, batch->seconds);
    if (batch->point->mode == BENCH_GRAPH && most > 0 && batch->calls > most)
        batch->calls = most;
    bench_status status = batch->point->mode == BENCH_GRAPH ? capture(g, batch, why) : BENCH_GOOD;
    for (int i = 0; i < 2 && status == BENCH_GOOD; i++)
        status = batch->graph ? sample_graph(g, batch, &us, why) : sample_calls(g, batch, &us, why);
    return status;
}

static bench_status cuda_sample(void *state, bench_batch *batch, double *us, char *why) {
    return batch->graph ? sample_graph(state, batch, us, why) : sample_calls(state, batch, us, why);
}

static void cuda_cool(void *state, bench_batch *batch) {
    (void)state;
    if (batch->graph && cudaGraphExecDestroy(batch->graph) != cudaSuccess)
        (void)cudaGetLastError();
    batch->graph = NULL;
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

const bench_backend bench_cuda = {
    .most = cuda_most,
    .open = cuda_open,
    .close = cuda_close,
    .fill = cuda_fill,
    .put = cuda_put,
    .warm = cuda_warm,
    .sample = cuda_sample,
    .cool = cuda_cool,
    .look = cuda_look,
};
