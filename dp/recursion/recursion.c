/* dpr_recursion_run(): checks the call, chooses the engine, and runs it. */
#include "recursion.h"

#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "api/request.h"
#include "clock.h"
#include "cuda/range.h"
#include "engines.h"
#include "error.h"
#include "log.h"
#include "uncancelled.h"

size_t dpr_engine_count(void) {
    size_t n = 0;
    while (dpr_engines[n])
        n++;
    return n;
}

const char *dpr_engine_name(size_t i) {
    return i < dpr_engine_count() ? dpr_engines[i]->name : NULL;
}

const char *dpr_engine_text(size_t i) {
    return i < dpr_engine_count() ? dpr_engines[i]->text : NULL;
}

/* ---- The choice ---- */

/* Also sets call->tasks. */
static const dpr_engine *choose(dpr_recursion_call *call, const char **reason, dpr_status *status) {
    const dpr_engine *engine = &dpr_engine_serial;
    *reason = "there are no roots";
    if (call->options.engine) {
        dpr_engine_expect(call);
        *reason = "it was asked for";
        *status = dpr_call_engine(call->options.engine, &engine);
    } else if (call->n > 0) {
        engine = dpr_engine_choose(call, reason);
    }
    if (*status == DPR_OK)
        *status = dpr_call_able(call, engine);
    return *status == DPR_OK ? engine : NULL;
}

/* ---- Memory that the host does not reach ---- */

static int is_of_host(dpr_place place) {
    return place.memory == DPR_MEMORY_HOST || place.memory == DPR_MEMORY_PINNED;
}

/* Waits for the work that the call comes after, where there may be any: it may write what the policy's data point to.
 */
static dpr_status wait_before_cpu(const dpr_recursion_call *call, dpr_place from, dpr_place to) {
    dpr_device *gpu = dpr_ctx_gpu(call->ctx);
    if (call->stream)
        return dpr_device_wait_for_stream(gpu, call->stream);
    if (gpu && call->recursion->data_bytes > 0)
        return dpr_device_wait(
            (dpr_place){DPR_MEMORY_PINNED, dpr_ctx_device(call->ctx), dpr_device_home_of(gpu)->context});
    return from.device >= 0 || to.device >= 0 ? dpr_device_wait(from.device >= 0 ? from : to) : DPR_OK;
}

/* Copies between host memory and memory at `place` that the host does not reach. */
static dpr_status copy(const dpr_recursion_call *call, dpr_place place, void *to, const void *from, size_t bytes) {
    return call->stream ? dpr_device_put_in_stream(dpr_ctx_gpu(call->ctx), call->stream, to, from, bytes)
                        : dpr_device_put(place, to, from, bytes);
}

/* Copies the roots from device memory to host memory, which the caller frees. */
static dpr_status fetch(const dpr_recursion_call *call, dpr_place from, void **roots) {
    const size_t bytes = call->n * call->recursion->task_bytes;
    *roots = malloc(bytes);
    if (!*roots)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu bytes of roots", bytes);
    return copy(call, from, *roots, call->roots, bytes);
}

/* Runs an engine of the CPU. In a context of a GPU, `roots` and `out` may be in device memory. */
static dpr_status run_on_cpu(const dpr_engine *engine, dpr_recursion_call call, dpr_recursion_report *report) {
    dpr_place from, to;
    void *roots = NULL, *results = NULL, *out = call.out;
    dpr_status status = dpr_device_place(call.roots, "roots", &from);
    if (status == DPR_OK)
        status = dpr_device_place(call.out, "out", &to);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(call.ctx, "roots", from);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(call.ctx, "out", to);
    if (status == DPR_OK)
        status = wait_before_cpu(&call, from, to);
    if (status == DPR_OK && !is_of_host(from)) {
        status = fetch(&call, from, &roots);
        call.roots = roots;
    }
    if (status == DPR_OK && !is_of_host(to)) {
        call.out = results = malloc(call.n * call.recursion->result_bytes);
        if (!results)
            status = dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu results", call.n);
    }
    if (status == DPR_OK)
        status = engine->run(&call, report);
    if (status == DPR_OK && results)
        status = copy(&call, to, out, results, call.n * call.recursion->result_bytes);
    free(roots);
    free(results);
    return status;
}

/* ---- The log ---- */

static void log_choice(const dpr_recursion_call *call, const dpr_engine *engine, const char *reason) {
    if (call->tasks > 0)
        dpr_log(DPR_LOG_RECURSION, "%s of %zu roots: engine %s, because %s; some %llu tasks are expected",
                call->recursion->name, call->n, engine->name, reason, (unsigned long long)call->tasks);
    else
        dpr_log(DPR_LOG_RECURSION, "%s of %zu roots: engine %s, because %s", call->recursion->name, call->n,
                engine->name, reason);
}

static void log_end(const dpr_recursion_call *call, const dpr_engine *engine, dpr_status status,
                    const dpr_recursion_report *report) {
    if (status == DPR_OK)
        dpr_log(
            DPR_LOG_RECURSION, "%s: engine %s did %llu tasks, the deepest at depth %llu, with %llu launches in %.1f us",
            call->recursion->name, engine->name, (unsigned long long)report->tasks, (unsigned long long)report->deepest,
            (unsigned long long)report->launches, 1e6 * (dpr_recursion_now() - call->began));
    else
        dpr_log(DPR_LOG_RECURSION, "%s: engine %s failed with %s: %s", call->recursion->name, engine->name,
                dpr_status_name(status), dpr_last_error());
}

/* ---- The call ---- */

/* Whether the library chose an engine with nested launches, which could not run although others may: there is no memory
 * for a pool of launches, stacks are too small, or its arena is full. */
static int lacks_launches(const dpr_recursion_call *call, const dpr_engine *engine, dpr_status status) {
    return engine->nested && !call->options.engine
           && (status == DPR_ERR_STRATEGY_UNABLE || status == DPR_ERR_OUT_OF_MEMORY);
}

/* Chooses again, without nested launches. */
static const dpr_engine *choose_other(const dpr_recursion_call *call, const dpr_engine *engine,
                                      dpr_recursion_report *report) {
    dpr_recursion_call without = *call;
    without.options.allow_nested = 0;
    dpr_engine_note_unable(call, engine);
    engine = dpr_engine_choose(&without, &report->reason);
    if (DPR_LOGS(RECURSION))
        log_choice(call, engine, report->reason);
    return engine;
}

/* Runs the engine. If the library chose one of the GPU that turns out to be unable, because the policy has no kernel
 * for the device or the stream has too few SMs, `cpu` runs instead, provided that it reaches the data. */
static dpr_status run_chosen(const dpr_recursion_call *call, const dpr_engine **engine, dpr_recursion_report *report) {
    if (!(*engine)->on_gpu)
        return run_on_cpu(*engine, *call, report);
    dpr_status status = (*engine)->run(call, report);
    if (status == DPR_ERR_OUT_OF_MEMORY && call->tasks > 0 && call->options.arena_tasks == 0) {
        dpr_recursion_call larger = *call; /* similar runs had fewer tasks, and sizes were chosen for these */
        larger.tasks = 0;
        status = (*engine)->run(&larger, report);
    }
    if (lacks_launches(call, *engine, status)) {
        *engine = choose_other(call, *engine, report);
        return run_chosen(call, engine, report);
    }
    if (status != DPR_ERR_STRATEGY_UNABLE || call->options.engine || !call->recursion->host_data)
        return status;
    dpr_engine_note_unable(call, *engine);
    *engine = &dpr_engine_cpu;
    report->reason = "the engine of the GPU that was chosen could not run it";
    if (DPR_LOGS(RECURSION))
        log_choice(call, *engine, report->reason);
    return run_on_cpu(*engine, *call, report);
}

/* Profilers show a range with the engine's name in one with the recursion's. */
static dpr_status run_engine(const dpr_recursion_call *call, const dpr_engine **engine, dpr_recursion_report *report) {
    if (DPR_LOGS(RECURSION))
        log_choice(call, *engine, report->reason);
    dpr_range_begin(call->recursion->name);
    dpr_range_begin((*engine)->name);
    const dpr_status status = run_chosen(call, engine, report);
    dpr_range_end();
    dpr_range_end();
    if (DPR_LOGS(RECURSION))
        log_end(call, *engine, status, report);
    return status;
}

/* Keeps what the engine has taken. A traced run takes longer, and waiting for other threads and measuring costs say
 * nothing about it. */
static void note(const dpr_recursion_call *call, const dpr_engine *engine, const dpr_recursion_report *report) {
    dpr_recursion_report own = *report;
    own.seconds -= *call->waited;
    if (call->n > 0 && !call->options.trace)
        dpr_engine_note(call, engine, &own);
}

static dpr_status run(dpr_recursion_call call, const dpr_recursion_options *options, dpr_recursion_report *report) {
    dpr_recursion_report found = DPR_RECURSION_REPORT_INIT;
    const dpr_engine *engine = NULL;
    double waited = 0;
    call.waited = &waited;
    dpr_status status = dpr_call_check(&call, options);
    if (status == DPR_OK && call.stream && !dpr_ctx_gpu(call.ctx))
        status = dpr_fail(DPR_ERR_INVALID_OPTION, "stream is %p, and ctx has no GPU", (void *)call.stream);
    if (status == DPR_OK && report)
        status = dpr_check_out("report", report, "DPR_RECURSION_REPORT_INIT");
    if (status == DPR_OK) {
        dpr_engine_size(&call);
        engine = choose(&call, &found.reason, &status);
    }
    if (!engine)
        return status;
    if (call.n > 0)
        status = run_engine(&call, &engine, &found);
    if (status != DPR_OK)
        return status;
    found.engine = engine->name;
    found.seconds = dpr_recursion_now() - call.began;
    note(&call, engine, &found);
    return report ? dpr_fill_out(report, &found, sizeof found) : DPR_OK;
}

/* The policy's functions and trace() may have cancellation points, at which the thread must not end: the run's memory,
 * and threads that work for it, would be left behind. */
dpr_status dpr_recursion_run(dpr_ctx *ctx, const dpr_recursion *recursion, const void *roots, size_t n,
                             const void *data, void *out, const dpr_recursion_options *options,
                             dpr_recursion_report *report, dpr_stream stream) {
    const dpr_recursion_call call = {.ctx = ctx,
                                     .recursion = recursion,
                                     .roots = roots,
                                     .data = data,
                                     .out = out,
                                     .n = n,
                                     .stream = stream,
                                     .began = dpr_recursion_now()};
    const int held = dpr_cancel_hold();
    const dpr_status status = run(call, options, report);
    dpr_cancel_release(held);
    return status;
}
