#include "bench_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_walk.h"

typedef struct scene {
    bench_asked asked; /* with the device's defaults */
    bench_walk walk;
    bench_subject subjects[BENCH_SUBJECTS];
    bench_caller callers[BENCH_SUBJECTS];
    char refusals[AXIS_SET][160]; /* of strategies, the last */
    axis_set measured;            /* the strategies that ran somewhere */
} scene;

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* The strategies that are asked for and can run the case, and the planner's choice. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    bench_caller choice;
    w->subjects = s->subjects;
    w->n = 0;
    if (walk_caller(w, NULL, 0, &choice) != 0) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++) {
        const int chosen = strcmp(dpr_strategy_name(i), choice.strategy) == 0;
        bench_caller *c = &s->callers[w->n];
        if (!axis_has(s->asked.strategies, i) && !chosen)
            continue;
        if (walk_caller(w, dpr_strategy_name(i), s->asked.block, c) != 0) {
            snprintf(s->refusals[i], sizeof s->refusals[i], "%.150s", dpr_last_error());
            continue;
        }
        s->measured |= axis_one((int)i);
        c->chosen = chosen && !c->options.block;
        s->subjects[w->n++] = caller_subject(c);
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

static int choose_axes(scene *s) {
    char gpu_counts[] = "2^10:2^28:x4", cpu_counts[] = "2^10:2^24:x4";
    bench_asked *a = &s->asked;
    const int on_gpu = dpr_ctx_device(s->walk.ctx) != DPR_DEVICE_CPU;
    if (a->counts.n == 0)
        (void)axis_parse_counts(on_gpu ? gpu_counts : cpu_counts, &a->counts);
    axis_default(&a->modes, on_gpu ? BENCH_GRAPH : BENCH_BLOCKING);
    if (!on_gpu && a->modes != axis_one(BENCH_BLOCKING))
        return cli_usage("the CPU has blocking calls only: --mode blocking");
    return check_block(a, on_gpu);
}

static void note_refusals(const scene *s) {
    const bench_asked *a = &s->asked;
    for (size_t i = 0; i < AXIS_SET && a->strategies_named && !a->quiet; i++)
        if (axis_has(a->strategies & ~s->measured, i) && s->refusals[i][0])
            cli_note("%s", s->refusals[i]);
}

static int run_scene(scene *s) {
    int code = walk_open(&s->walk);
    if (code == CLI_OK)
        code = choose_axes(s);
    if (code != CLI_OK)
        return code;
    code = walk_run(&s->walk);
    note_refusals(s);
    return code;
}

int bench_measure(const bench_asked *asked, bench_results *out) {
    scene *s = calloc(1, sizeof *s);
    *out = (bench_results){0};
    if (!s)
        return cli_error("out of memory");
    s->asked = *asked;
    s->walk = (bench_walk){.asked = &s->asked, .results = out, .prepare = prepare, .user = s};
    const int code = run_scene(s);
    walk_close(&s->walk);
    free(s);
    return code;
}
