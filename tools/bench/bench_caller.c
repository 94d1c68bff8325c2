#include "bench_caller.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

bench_caller caller_at(dpr_ctx *ctx, const bench_case *at, const char *strategy) {
    bench_caller c = {.ctx = ctx,
                      .ops = at->ops,
                      .dtype = at->dtype,
                      .count = (size_t)at->count,
                      .memory = at->memory,
                      .options = DPR_OPTIONS_INIT,
                      .launch = DPR_LAUNCH_OPTIONS_INIT};
    c.options.strategy = strategy;
    return c;
}

void caller_set_block(bench_caller *c, int block) {
    if (cli_strategy_info(c->options.strategy).takes_block)
        c->launch.block = block;
}

/* Callers are copied, so the pointer from one member to the other is set here. */
static const dpr_options *options_of(bench_caller *c) {
    c->options.launch = &c->launch;
    return &c->options;
}

dpr_problem caller_problem(bench_caller *c) {
    const int is_set = c->ops.n > 1;
    return (dpr_problem){.size = sizeof(dpr_problem),
                         .op = c->ops.at[0],
                         .dtype = c->dtype,
                         .count = c->count,
                         .memory = c->memory,
                         .options = options_of(c),
                         .ops = is_set ? c->ops.at : NULL,
                         .op_count = is_set ? (size_t)c->ops.n : 0};
}

dpr_status caller_plan(bench_caller *c, dpr_plan **out) {
    const dpr_problem problem = caller_problem(c);
    dpr_plan *plan = NULL;
    const dpr_status status = dpr_plan_create(c->ctx, &problem, &plan);
    if (status != DPR_OK)
        return status;
    c->strategy = dpr_plan_strategy(plan);
    if (out)
        *out = plan;
    else
        dpr_plan_destroy(plan);
    return DPR_OK;
}

/* A GPU's calls that block have wisdom of their own, and those that read pinned memory may be the CPU's. */
static dpr_status decide(bench_caller *c) {
    const dpr_problem problem = caller_problem(c);
    dpr_decision *decision = NULL;
    dpr_step step = DPR_STEP_INIT;
    dpr_status status = dpr_decision_create(dpr_ctx_machine(c->ctx), &problem, &decision);
    if (status == DPR_OK)
        status = dpr_decision_step(decision, c->count, &step);
    if (status == DPR_OK)
        c->strategy = dpr_strategy_name((size_t)step.strategy);
    dpr_decision_destroy(decision);
    return status;
}

dpr_status caller_choose(bench_caller *c, bench_mode mode) {
    const int on_gpu = dpr_ctx_device(c->ctx) != DPR_DEVICE_CPU;
    /* A decision is for any count; a plan tells of operations that have no result for no elements. */
    return mode == BENCH_BLOCKING && on_gpu && c->count > 0 ? decide(c) : caller_plan(c, NULL);
}

dpr_status caller_run(const bench_caller *c, dpr_plan *plan, const void *in, void *out, dpr_stream stream) {
    void *places[DPR_FUSED_MOST];
    if (c->ops.n == 1)
        return dpr_plan_run(plan, in, out, stream);
    known_places(out, places);
    return dpr_plan_run_fused(plan, in, places, stream);
}

int caller_note(bench_caller *c, dpr_status status) {
    if (status != DPR_OK)
        snprintf(c->why, sizeof c->why, "%.250s", dpr_last_error());
    c->unable = status == DPR_ERR_STRATEGY_UNABLE;
    return (int)status;
}

/* Counters of launches follow the result of a single operation: sets of operations launch no kernels from kernels. */
static_assert(KNOWN_PLACE + sizeof(dpr_launch_report) <= BENCH_RESULT_STRIDE, "a result has no room for counters");
static_assert(DPR_FUSED_MOST * KNOWN_PLACE <= BENCH_MOST_STRIDE, "a call has no room for all results");

size_t caller_stride(const bench_ops *ops) {
    return ops->n == 1 ? BENCH_RESULT_STRIDE : BENCH_MOST_STRIDE;
}

int caller_enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    bench_caller *c = user;
    const dpr_options *options = options_of(c);
    void *places[DPR_FUSED_MOST];
    if (c->array)
        return caller_note(c, shaped_enqueue(c->array, c->ctx, in, out, c->dtype, c->ops.at[0], options, stream));
    if (c->counts_launches)
        c->launch.report = (void *)((unsigned char *)out + KNOWN_PLACE);
    if (c->ops.n == 1)
        return caller_note(c, dpr_reduce_async(c->ctx, in, out, c->count, c->dtype, c->ops.at[0], options, stream));
    known_places(out, places);
    return caller_note(c, dpr_reduce_fused_async(c->ctx, in, places, c->count, c->dtype, c->ops.at, (size_t)c->ops.n,
                                                 options, stream));
}

int caller_call(void *user, const void *in, void *host_out) {
    bench_caller *c = user;
    const dpr_options *options = options_of(c);
    void *places[DPR_FUSED_MOST];
    if (c->array)
        return caller_note(c, shaped_reduce(c->array, c->ctx, in, host_out, c->dtype, c->ops.at[0], options));
    if (c->ops.n == 1)
        return caller_note(c, dpr_reduce_ex(c->ctx, in, host_out, c->count, c->dtype, c->ops.at[0], options));
    known_places(host_out, places);
    return caller_note(c,
                       dpr_reduce_fused(c->ctx, in, places, c->count, c->dtype, c->ops.at, (size_t)c->ops.n, options));
}

int caller_count_wrong(void *user, const void *results, int n) {
    bench_caller *c = user;
    const unsigned char *at = results;
    int wrong = 0;
    const size_t stride = caller_stride(&c->ops);
    for (int i = 0; i < n; i++, at += stride)
        wrong += !known_matches(&c->expected, at);
    if (c->counts_launches)
        memcpy(&c->kernels.nested, at - stride + KNOWN_PLACE, sizeof c->kernels.nested);
    c->kernels.has_nested = c->counts_launches;
    return wrong;
}
