#include "bench_run.h"

#include <string.h>

#include "bench_walk.h"

/* Strategies that are asked for. */
typedef struct scene {
    char refusals[AXIS_SET][BENCH_WHY]; /* why they cannot run a case, the last */
    axis_set measured;                  /* those that ran somewhere */
} scene;

/* The strategies that are asked for and can run the case, and the planner's choice. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    if (walk_choose(w, why) != 0)
        return -1;
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++) {
        const char *name = dpr_strategy_name(i);
        if (!axis_has(w->asked->strategies, i) && strcmp(name, w->choice) != 0)
            continue;
        if (walk_add(w, name, 1, s->refusals[i]))
            s->measured |= axis_one((int)i);
    }
    return 0;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int lets_block_be_chosen(const bench_asked *a) {
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (axis_has(a->strategies, i) && cli_strategy_at(i).takes_block)
            return 1;
    return 0;
}

static int check_block(const bench_asked *a, int on_gpu) {
    if (!a->block)
        return CLI_OK;
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("--block is of GPU strategies: the CPU has none of them");
    if (!on_gpu)
        return cli_error("--block is of GPU strategies, and there is no GPU: %s", walk_why_no_gpu());
    if (!lets_block_be_chosen(a))
        return cli_usage("--block: no strategy that is asked for lets its block size be chosen%s",
                         a->strategies_named ? "" : " (name some, as -s 'ladder.*', or use --ladder)");
    return CLI_OK;
}

static int choose_axes(bench_walk *w) {
    bench_asked *a = w->asked;
    const int on_gpu = dpr_ctx_device(w->ctx) != DPR_DEVICE_CPU;
    if (a->counts.n == 0)
        (void)axis_parse_counts(on_gpu ? "2^10:2^28:x4" : "2^10:2^24:x4", &a->counts);
    axis_default(&a->modes, on_gpu ? BENCH_GRAPH : BENCH_BLOCKING);
    if (!on_gpu && a->modes != axis_one(BENCH_BLOCKING))
        return cli_usage("the CPU has blocking calls only: --mode blocking");
    return check_block(a, on_gpu);
}

static void say_what_is_missing(const bench_walk *w) {
    const scene *s = w->user;
    const bench_asked *a = w->asked;
    const bench_results *r = w->results;
    for (size_t i = 0; i < AXIS_SET && a->strategies_named; i++)
        if (axis_has(a->strategies & ~s->measured, i) && s->refusals[i][0])
            cli_note("%s", s->refusals[i]);
    if (r->omission_count)
        cli_note("%zu combination%s left out; the first: %s", r->omission_count,
                 r->omission_count == 1 ? " was" : "s were", r->omissions[0].why);
}

void bench_complete(bench_asked *a) {
    axis_default(&a->ops, DPR_SUM);
    axis_default(&a->dtypes, DPR_F32);
    axis_default(&a->caches, BENCH_COLD);
    if (a->strategies)
        return;
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++)
        if (cli_strategy_at(i).role == DPR_ROLE_CANDIDATE)
            a->strategies |= axis_one((int)i);
}

int bench_measure(bench_asked *asked, bench_results *out) {
    scene s = {.measured = 0};
    bench_walk w = {.asked = asked, .results = out, .prepare = prepare, .user = &s};
    int code = walk_open(&w);
    if (code == CLI_OK)
        code = choose_axes(&w);
    if (code == CLI_OK)
        code = walk_run(&w);
    if (!asked->quiet)
        say_what_is_missing(&w);
    walk_close(&w);
    return code;
}
