#define _POSIX_C_SOURCE 200809L /* clock_gettime() */
#include "measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "plan/registry.h"
#include "start.h"
#include "wisdom.h"

/* A batch has as many runs as take this long, by the second run, but no more than MOST_RUNS. The time of a strategy is
 * that of the quickest of BATCHES: what disturbs a batch makes it slower. A strategy that takes HOPELESS times as long
 * as the best one so far has no batches. */
enum { BATCHES = 5, MOST_RUNS = 64, HOPELESS = 4 };
static const double batch_seconds = 1e-3;

/* The arrays that all candidates work on. */
typedef struct arrays {
    dpr_ctx *ctx;
    const dpr_request *request;
    dpr_memory memory; /* host memory, or of a kind that the context's GPU reaches */
    dpr_stream stream; /* where the GPU runs them: not the legacy default stream, which a capture may forbid */
    void *in, *out;    /* results are DPR_RESULT_BYTES apart */
} arrays;

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What all bytes of the array are: ANY ends at the first element that is not 0, and ALL at the first that is; the other
 * operations get numbers near 1 or, in wide types, small ones, which no operation is slow for. Device and managed
 * memory is left as it is. */
static int fill_of(const dpr_request *request) {
    return request->fused.count == 0 && dpr_key_op(&request->key) == DPR_ANY ? 0 : 0x3c;
}

static dpr_status allocate(arrays *a) {
    const size_t bytes = a->request->count * a->request->dtype->size, results = DPR_FUSED_MOST * DPR_RESULT_BYTES;
    if (a->memory != DPR_MEMORY_HOST) {
        const dpr_status status = dpr_device_take(dpr_ctx_gpu(a->ctx), a->memory, bytes + 1, &a->in);
        if (status == DPR_OK && a->memory == DPR_MEMORY_PINNED)
            memset(a->in, fill_of(a->request), bytes + 1);
        return status == DPR_OK ? dpr_device_take(dpr_ctx_gpu(a->ctx), DPR_MEMORY_DEVICE, results, &a->out) : status;
    }
    a->in = malloc(bytes + 1);
    a->out = malloc(results);
    if (!a->in || !a->out)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for an array of %zu bytes to measure with", bytes);
    memset(a->in, fill_of(a->request), bytes + 1);
    return DPR_OK;
}

static void release(arrays *a) {
    if (a->memory == DPR_MEMORY_HOST) {
        free(a->in);
        free(a->out);
        return;
    }
    dpr_device_give(dpr_ctx_gpu(a->ctx), a->memory, a->in);
    dpr_device_give(dpr_ctx_gpu(a->ctx), DPR_MEMORY_DEVICE, a->out);
}

/* Runs `n` times, the last time blocking, which waits for all. *seconds is the time of one run. */
static dpr_status run(const arrays *a, const dpr_choice *choice, int n, double *seconds) {
    const dpr_choice_step *step = dpr_choice_at(choice, a->request->count);
    void *outs[DPR_FUSED_MOST];
    dpr_status status = DPR_OK;
    dpr_run of;
    for (int i = 0; i < DPR_FUSED_MOST; i++)
        outs[i] = (char *)a->out + (size_t)i * DPR_RESULT_BYTES;
    const dpr_outputs fused = dpr_request_outputs(a->request, outs);
    const double began = now();
    for (int i = 0; i < n && status == DPR_OK; i++) {
        dpr_request_run(a->request, &of);
        of.key = choice->key;
        of.report = of.launch_report = NULL; /* it is for the caller's runs */
        of.report_size = 0;
        of.in = a->in;
        of.out = a->out;
        of.fused = fused.count > 0 ? &fused : NULL;
        of.limits = step->limits;
        of.stream = a->stream;
        if (step->strategy->side == DPR_ON_GPU)
            status = dpr_ctx_run(a->ctx, choice, &of, i + 1 < n ? NULL : &(dpr_host_result){NULL, 0});
        else
            dpr_start_on_cpu(step->strategy, &of);
    }
    *seconds = (now() - began) / n;
    return status;
}

/* `best` is the time of the best strategy so far; 0: there is none. */
static dpr_status measure(const arrays *a, const dpr_strategy *strategy, double best, double *least) {
    const dpr_choice *choice = NULL;
    dpr_key key = a->request->key;
    double seconds = 0;
    key.f.strategy = (uint8_t)(dpr_strategy_index(strategy) + 1);
    key.f.effort = DPR_EFFORT_DEFAULT;
    dpr_status status = dpr_ctx_choice(a->ctx, key, &choice);
    if (status == DPR_OK)
        status = run(a, choice, 1, &seconds); /* loads kernels, and starts threads */
    if (status == DPR_OK)
        status = run(a, choice, 1, &seconds);
    *least = seconds;
    const int n = seconds * MOST_RUNS < batch_seconds ? MOST_RUNS : 1 + (int)(batch_seconds / seconds);
    const int batches = best > 0 && seconds > HOPELESS * best ? 0 : BATCHES;
    for (int i = 0; i < batches && status == DPR_OK; i++) {
        status = run(a, choice, n, &seconds);
        *least = seconds < *least || i == 0 ? seconds : *least;
    }
    return status;
}

/* Times that are outside of what wisdom holds are not added, and those of one NaN policy stand for both. */
static void learn(const arrays *a, const dpr_strategy *strategy, double seconds) {
    if (dpr_wise_key(&a->request->key) && a->request->key.f.nan == DPR_NAN_PROPAGATE)
        (void)dpr_wisdom_learn(dpr_ctx_machine(a->ctx), strategy, &a->request->key, a->request->count, seconds);
}

static dpr_status measure_all(const arrays *a, const dpr_strategy **out) {
    const dpr_strategy *candidates[DPR_STRATEGY_COUNT];
    const int n = dpr_candidates(&a->request->key, dpr_ctx_machine(a->ctx), candidates);
    double best = 0;
    *out = NULL;
    for (int i = 0; i < n; i++) {
        double seconds;
        const dpr_status status = measure(a, candidates[i], best, &seconds);
        if (status == DPR_ERR_STRATEGY_UNABLE) /* the device has no room for it after all */
            continue;
        if (status != DPR_OK)
            return status;
        learn(a, candidates[i], seconds);
        if (!*out || seconds < best) {
            best = seconds;
            *out = candidates[i];
        }
    }
    return *out ? DPR_OK : dpr_fail(DPR_ERR_STRATEGY_UNABLE, "there is no candidate to measure for this problem");
}

dpr_status dpr_measure(dpr_ctx *ctx, const dpr_request *request, const dpr_strategy **out) {
    arrays a = {.ctx = ctx, .request = request, .memory = DPR_MEMORY_HOST};
    dpr_status status = DPR_OK;
    if (dpr_ctx_gpu(ctx)) {
        a.memory = (dpr_memory)request->key.f.in_memory;
        status = dpr_device_own_stream(dpr_ctx_gpu(ctx), &a.stream);
    }
    if (status == DPR_OK)
        status = allocate(&a);
    if (status == DPR_OK)
        status = measure_all(&a, out);
    release(&a);
    return status;
}
