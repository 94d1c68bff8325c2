#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "api/request.h"
#include "bench_ladder.h"
#include "bench_walk.h"
#include "lists.h"
#include "occupancies.h"

typedef struct scene {
    bench_asked asked; /* the ladder's case and the bandwidth's */
    bench_walk walk;
    ladder_results *out;
    const char *choice; /* the planner's at the case */
    bench_subject subjects[BENCH_SUBJECTS];
    bench_caller callers[BENCH_SUBJECTS];
} scene;

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

static void keep_refusal(ladder_rung *rung, const char *why) {
    snprintf(rung->refusal, sizeof rung->refusal, "%.150s", why);
}

static int add_subject(scene *s, const char *strategy, int block, char why[BENCH_WHY]) {
    bench_walk *w = &s->walk;
    dpr_plan *plan = NULL;
    bench_caller *c = &s->callers[w->n];
    *c = caller_at(w->ctx, &w->at, strategy);
    caller_set_block(c, block);
    if (caller_plan(c, &plan) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    dpr_plan_destroy(plan);
    c->expected = w->expected;
    c->chosen = strcmp(c->strategy, s->choice) == 0 && !c->options.block;
    s->subjects[w->n++] = caller_subject(c);
    return 0;
}

static int find_choice(scene *s, char why[BENCH_WHY]) {
    dpr_plan *plan = NULL;
    bench_caller c = caller_at(s->walk.ctx, &s->walk.at, NULL);
    if (caller_plan(&c, &plan) != DPR_OK) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    s->choice = c.strategy;
    dpr_plan_destroy(plan);
    return 0;
}

/* A rung that cannot run the case keeps the reason. -1, with the last one, if none can. */
static int add_rungs(scene *s, char why[BENCH_WHY]) {
    ladder_results *l = s->out;
    for (int i = 0; i < l->n; i++) {
        ladder_rung *rung = &l->rungs[i];
        if (!rung->refusal[0] && add_subject(s, rung->strategy, l->block, why) != 0)
            keep_refusal(rung, why);
    }
    if (s->walk.n > 0)
        return 0;
    if (l->n > 0)
        snprintf(why, BENCH_WHY, "%s", l->rungs[l->n - 1].refusal);
    return -1;
}

/* All rungs that can run the case, or the reader alone where the case is for the bandwidth. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    w->subjects = s->subjects;
    w->n = 0;
    if (find_choice(s, why) != 0)
        return -1;
    if (!results_same_case(&w->at, &s->out->at))
        return add_subject(s, LADDER_READER, 0, why);
    return add_rungs(s, why);
}

/* ---- Rungs ------------------------------------------------------------------------------------------------------ */

/* What the strategy's kernel uses, and how much of the device its grid has. */
static void look_at_grid(scene *s, const dpr_strategy *strategy, const dpr_key *key, ladder_rung *rung) {
    dpr_ctx *ctx = s->walk.ctx;
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(ctx)->caps.gpu;
    const dpr_choice *choice;
    if (dpr_ctx_choice(ctx, *key, &choice) != DPR_OK)
        keep_refusal(rung, dpr_last_error());
    else if (occupancies_of(dpr_ctx_device(ctx), gpu, strategy, key, &rung->use, &rung->occupancy) == 0)
        ladder_set_grid(rung, gpu, dpr_choice_at(choice, (size_t)s->out->at.count)->limits.max_blocks);
    else
        rung->use = (dpr_kernel_use){0};
}

/* What can be told of the rung before it runs. */
static int look_at_rung(scene *s, const dpr_strategy *strategy, ladder_rung *rung) {
    const bench_case *at = &s->out->at;
    dpr_request request;
    bench_caller c = caller_at(s->walk.ctx, at, strategy->name);
    caller_set_block(&c, s->out->block);
    *rung = (ladder_rung){.strategy = strategy->name, .text = strategy->text};
    if (dpr_request_make(at->op, at->dtype, (size_t)at->count, &c.options, &request) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    request.key.f.in_memory = DPR_MEMORY_DEVICE;
    request.key.f.gpu_only = 1;
    const char *refusal = dpr_refusal(strategy, &request.key, &dpr_ctx_machine(s->walk.ctx)->caps);
    if (refusal)
        keep_refusal(rung, refusal);
    else
        look_at_grid(s, strategy, &request.key, rung);
    return CLI_OK;
}

static int look_at_rungs(scene *s) {
    const dpr_strategy *order[BENCH_SUBJECTS];
    const int n = ladder_order(order);
    int code = CLI_OK;
    for (int i = 0; i < n && code == CLI_OK; i++)
        code = look_at_rung(s, order[i], &s->out->rungs[i]);
    s->out->n = code == CLI_OK ? n : 0;
    return code;
}

/* ---- The two cases ---------------------------------------------------------------------------------------------- */

/* Before add_read() adds to what is asked for, there is one of each. */
static bench_case asked_case(const bench_asked *a) {
    return (bench_case){.op = (dpr_op)axis_first(a->ops),
                        .dtype = (dpr_dtype)axis_first(a->dtypes),
                        .mode = BENCH_GRAPH,
                        .cache = BENCH_COLD,
                        .count = a->counts.at[0]};
}

/* A sum of F32 keeps no device from reading. Where memory is short, half of what there is room for. */
static bench_case read_case(int device) {
    const size_t most = bench_pool_most(device) / 2;
    const size_t bytes = most < LADDER_READ_BYTES ? most : LADDER_READ_BYTES;
    return (bench_case){.op = DPR_SUM,
                        .dtype = DPR_F32,
                        .mode = BENCH_GRAPH,
                        .cache = BENCH_COLD,
                        .count = bytes / dpr_dtypes[DPR_F32].size};
}

/* Adds the bandwidth's case to what is asked for. */
static void add_read(bench_asked *a, const bench_case *read) {
    const uint64_t count = a->counts.at[0];
    a->ops[read->op] = a->dtypes[read->dtype] = 1;
    if (read->count == count)
        return;
    a->counts.n = 2;
    a->counts.at[read->count > count] = read->count;
    a->counts.at[read->count < count] = count;
}

static int wants(void *user, const bench_case *at) {
    const scene *s = user;
    return results_same_case(at, &s->out->at) || results_same_case(at, &s->out->read);
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int report_missing(const scene *s, int code) {
    const bench_results *r = &s->out->bench;
    if (r->interrupted || code == CLI_USAGE)
        return code;
    for (size_t i = 0; i < r->omission_count; i++) {
        const bench_omission *o = &r->omissions[i];
        if (results_same_case(&o->at, &s->out->at))
            code = cli_error("nothing was measured: %s", o->why);
        else if (!s->asked.quiet)
            cli_note("the bandwidth was not measured: %s", o->why);
    }
    return code;
}

static int run_scene(scene *s) {
    bench_walk *w = &s->walk;
    ladder_results *out = s->out;
    int code = walk_open(w);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return cli_error("--ladder needs a GPU, and there is none: %s", walk_why_no_gpu());
    out->at = asked_case(&s->asked);
    out->read = read_case(dpr_ctx_device(w->ctx));
    out->block = s->asked.block;
    code = look_at_rungs(s);
    if (code != CLI_OK)
        return code;
    add_read(&s->asked, &out->read);
    return report_missing(s, walk_run(w));
}

int ladder_measure(const bench_asked *asked, ladder_results *out) {
    scene *s = calloc(1, sizeof *s);
    *out = (ladder_results){.n = 0};
    if (!s)
        return cli_error("out of memory");
    s->asked = *asked;
    s->out = out;
    s->walk = (bench_walk){.asked = &s->asked, .results = &out->bench, .wants = wants, .prepare = prepare, .user = s};
    const int code = run_scene(s);
    walk_close(&s->walk);
    free(s);
    return code;
}
