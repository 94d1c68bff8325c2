/* Time of one call inside a captured graph of many, for each GPU strategy, size and some pairs of operation and type.
 * Every call reads another buffer, and before each replay L2 is filled with other data, by reading, so that it is cold.
 * Prints JSON, with DPR_COMMIT of the environment as the commit; integer sums are checked, and a wrong one exits
 * with 1. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "lists.h"

enum { REPLAYS = 21 };

/* Several times the L2 of any device. */
static const size_t flush_bytes = (size_t)512 << 20;

typedef struct bench {
    dpr_ctx *ctx;
    cudaStream_t stream;
    unsigned char *data; /* all ones bytes of value 1, so that sums are known */
    size_t bytes;
    void *out;
    void *flush; /* flush_bytes */
} bench;

typedef struct timing {
    double median_us, low_us, high_us;
} timing;

static void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

static void must_dpr(dpr_status status) {
    if (status == DPR_OK)
        return;
    fprintf(stderr, "%s: %s\n", dpr_status_name(status), dpr_last_error());
    exit(1);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every call in its own part of the data, the parts as far apart as they can be. */
static cudaGraphExec_t capture(const bench *b, const char *strategy, dpr_op op, dpr_dtype dtype, size_t count,
                               size_t calls) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    const size_t stride = (count * dpr_dtype_size(dtype) + 255) / 256 * 256;
    const size_t parts = b->bytes / stride;
    const size_t hop = parts > calls ? parts / calls : 1;
    must(cudaStreamBeginCapture(b->stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (size_t i = 0; i < calls; i++)
        must_dpr(dpr_reduce_async(b->ctx, b->data + i * hop % parts * stride, b->out, count, dtype, op, &options,
                                  b->stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    must(cudaStreamEndCapture(b->stream, &graph), "end of capture");
    must(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    must(cudaGraphDestroy(graph), "destroy");
    return exec;
}

static timing time_graph(const bench *b, cudaGraphExec_t exec, size_t calls) {
    cudaEvent_t begin, end;
    double us[REPLAYS];
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    for (int r = -3; r < REPLAYS; r++) {
        float ms;
        must_dpr(dpr_reduce_async(b->ctx, b->flush, b->out, flush_bytes / 4, DPR_I32, DPR_SUM, NULL, b->stream));
        must(cudaEventRecord(begin, b->stream), "record");
        must(cudaGraphLaunch(exec, b->stream), "launch");
        must(cudaEventRecord(end, b->stream), "record");
        must(cudaStreamSynchronize(b->stream), "replay");
        must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
        if (r >= 0)
            us[r] = 1e3 * (double)ms / (double)calls;
    }
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
    qsort(us, REPLAYS, sizeof us[0], by_value);
    return (timing){us[REPLAYS / 2], us[REPLAYS / 10], us[REPLAYS - 1 - REPLAYS / 10]};
}

/* The data are bytes of value 1: integer sums are count times a repunit in base 256; other pairs go unchecked here. */
static void check(const bench *b, dpr_op op, dpr_dtype dtype, size_t count) {
    uint64_t sum;
    must(cudaMemcpy(&sum, b->out, sizeof sum, cudaMemcpyDeviceToHost), "copy");
    if (op != DPR_SUM || !(dpr_dtypes[dtype].kind & (DPR_KIND_SINT | DPR_KIND_UINT)))
        return;
    const uint64_t one = UINT64_C(0x0101010101010101) >> (64 - 8 * dpr_dtype_size(dtype));
    if (sum != (uint64_t)count * one) {
        fprintf(stderr, "sum of %zu %s is wrong: %llu\n", count, dpr_dtype_name(dtype), (unsigned long long)sum);
        exit(1);
    }
}

static void measure(const bench *b, const char *strategy, dpr_op op, dpr_dtype dtype, int log2_count) {
    static const char *separator = "";
    const size_t count = (size_t)1 << log2_count;
    const size_t bytes = count * dpr_dtype_size(dtype);
    if (bytes > b->bytes)
        return;
    const size_t calls = bytes < (1u << 24) ? 100 : bytes < (1u << 28) ? 20 : 5;
    cudaGraphExec_t exec = capture(b, strategy, op, dtype, count, calls);
    const timing t = time_graph(b, exec, calls);
    must(cudaGraphExecDestroy(exec), "destroy");
    check(b, op, dtype, count);
    printf("%s\n  {\"strategy\": \"%s\", \"op\": \"%s\", \"dtype\": \"%s\", \"log2_count\": %d, \"median_us\": %.3f, "
           "\"p10_us\": %.3f, \"p90_us\": %.3f, \"tb_per_s\": %.3f}",
           separator, strategy, dpr_op_name(op), dpr_dtype_name(dtype), log2_count, t.median_us, t.low_us, t.high_us,
           1e-6 * (double)bytes / t.median_us);
    separator = ",";
}

static void measure_all(const bench *b) {
    static const dpr_dtype dtypes[] = {DPR_F32, DPR_F64, DPR_I32, DPR_U8, DPR_F16};
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX, DPR_ARGMAX};
    for (int n = 0; n <= 16; n++)
        measure(b, "flat.block", DPR_SUM, DPR_F32, n);
    for (int n = 0; n <= 31; n++)
        measure(b, "flat.ticket", DPR_SUM, DPR_F32, n);
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            if (ops[o] == DPR_SUM && dtypes[d] == DPR_F32)
                continue;
            measure(b, "flat.block", ops[o], dtypes[d], 12);
            measure(b, "flat.ticket", ops[o], dtypes[d], 20);
            measure(b, "flat.ticket", ops[o], dtypes[d], 28);
        }
    }
}

int main(void) {
    bench b = {.bytes = (size_t)8 << 30};
    if (dpr_device_count() == 0) {
        fprintf(stderr, "skipped: no GPU: %s\n", dpr_device_absent());
        return 77;
    }
    must_dpr(dpr_ctx_create(0, &b.ctx));
    must(cudaStreamCreate(&b.stream), "stream");
    must(cudaMalloc((void **)&b.data, b.bytes), "memory");
    must(cudaMalloc(&b.out, 16), "memory");
    must(cudaMalloc(&b.flush, flush_bytes), "memory");
    must(cudaMemset(b.flush, 0, flush_bytes), "fill");
    must(cudaMemset(b.data, 1, b.bytes), "fill");
    dpr_gpu_caps caps;
    char name[64];
    must_dpr(dpr_device_caps(0, &caps, name));
    const char *commit = getenv("DPR_COMMIT");
    printf("{\"benchmark\": \"gpu\", \"device\": \"%s\", \"commit\": \"%s\", \"mode\": \"graph, cold L2\", \"runs\": [",
           name, commit ? commit : "");
    measure_all(&b);
    printf("\n]}\n");
    must(cudaFree(b.data), "free");
    must(cudaFree(b.out), "free");
    must(cudaFree(b.flush), "free");
    must(cudaStreamDestroy(b.stream), "destroy");
    dpr_ctx_destroy(b.ctx);
    return 0;
}
