#include "nested.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"
#include "kernels.h"
#include "nested_stage.h"

/* Of the first times, which load and set up what later ones find. */
enum { WARM_UPS = 2 };

/* ---- What is timed ---------------------------------------------------------------------------------------------- */

typedef struct work {
    cudaError_t (*run)(bench_stage *s, unsigned amount);
    unsigned amount;
} work;

/* Between events are all but those by the host's clock; launches from kernels are the last three. */
typedef enum { BY_HOST, BY_EVENTS, NESTED, CHAIN, FAN } probe_kind;

typedef struct probe {
    probe_kind kind;
    work more, fewer;
    cudaError_t (*prepare)(bench_stage *s); /* NULL: nothing */
} probe;

static const probe probes[BENCH_LAUNCHES] = {
    [BENCH_LAUNCH_EMPTY] = {BY_EVENTS, {stage_nothing, 1}, {stage_nothing, 0}, NULL},
    [BENCH_LAUNCH_HOST] = {BY_HOST, {stage_nothing, STAGE_MORE}, {stage_nothing, STAGE_FEWER}, NULL},
    [BENCH_LAUNCH_GRAPH_NODE] = {BY_EVENTS, {stage_nodes, STAGE_MORE}, {stage_nodes, STAGE_FEWER}, stage_make_nodes},
    [BENCH_LAUNCH_GRAPH] = {BY_HOST, {stage_graphs, STAGE_MORE}, {stage_graphs, STAGE_FEWER}, stage_make_single},
    [BENCH_LAUNCH_FIRST_TAIL] = {NESTED, {stage_tail_chain, 1}, {stage_nothing, 1}, NULL},
    [BENCH_LAUNCH_FIRST_FORGET] = {NESTED, {stage_forget_chain, 1}, {stage_nothing, 1}, NULL},
    [BENCH_LAUNCH_CHAIN_TAIL] = {CHAIN, {stage_tail_chain, STAGE_MORE}, {stage_tail_chain, STAGE_FEWER}, NULL},
    [BENCH_LAUNCH_CHAIN_FORGET] = {CHAIN, {stage_forget_chain, STAGE_MORE}, {stage_forget_chain, STAGE_FEWER}, NULL},
    [BENCH_LAUNCH_FAN_FORGET] = {FAN, {stage_forget_fan, STAGE_EACH_MORE}, {stage_forget_fan, STAGE_EACH_FEWER}, NULL},
    [BENCH_LAUNCH_FAN_BLOCK] = {FAN, {stage_block_fan, STAGE_EACH_MORE}, {stage_block_fan, STAGE_EACH_FEWER}, NULL},
    [BENCH_LAUNCH_FAN_TAIL] = {FAN, {stage_tail_fan, STAGE_EACH_MORE}, {stage_tail_fan, STAGE_EACH_FEWER}, NULL},
    [BENCH_LAUNCH_DEVICE_GRAPH] = {BY_EVENTS,
                                   {stage_device_graphs, STAGE_MORE},
                                   {stage_device_graphs, STAGE_FEWER},
                                   stage_make_device_graphs},
    [BENCH_LAUNCH_DEVICE_GRAPH_TAIL] = {BY_EVENTS,
                                        {stage_repeated_graph, STAGE_MORE},
                                        {stage_repeated_graph, STAGE_FEWER},
                                        stage_make_repeated_graph},
};

/* A kernel counts as pending until those that it has launched are done, for all that is known. */
static unsigned amount_of(const bench_stage *s, const probe *p, const work *w) {
    return p->kind == CHAIN && w->amount == STAGE_MORE ? s->length : w->amount;
}

/* Launches by which the two times differ. */
static double difference(const bench_stage *s, const probe *p) {
    const unsigned more = amount_of(s, p, &p->more), fewer = p->fewer.run == p->more.run ? p->fewer.amount : 0;
    return (double)(more - fewer) * (p->kind == FAN ? s->blocks : 1);
}

/* Why it cannot be tried, or NULL. */
static const char *refusal(const bench_stage *s, const probe *p) {
    if (p->kind >= NESTED && s->no_nesting[0])
        return s->no_nesting;
    if ((p->kind == FAN && s->blocks == 0) || (p->kind == CHAIN && s->length <= STAGE_FEWER))
        return "half of the pool is too little for it";
    return NULL;
}

/* ---- Times ------------------------------------------------------------------------------------------------------ */

/* Behind work of the device. *late: that was done before all was launched. */
static cudaError_t run_between_events(bench_stage *s, const work *w, unsigned amount, float *ms, int *late) {
    cudaError_t error = (cudaError_t)bench_launch_clock(s->lead_cycles, s->ticks, s->stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(s->begin, s->stream);
    if (error == cudaSuccess)
        error = w->run(s, amount);
    if (error == cudaSuccess)
        error = cudaEventRecord(s->end, s->stream);
    *late = cudaEventQuery(s->begin) == cudaSuccess;
    if (error == cudaSuccess)
        error = stage_read_account(s);
    const cudaError_t ended = stage_wait(s);
    (void)cudaGetLastError(); /* that it was not ready is no error */
    error = error == cudaSuccess ? ended : error;
    return error == cudaSuccess ? cudaEventElapsedTime(ms, s->begin, s->end) : error;
}

static cudaError_t time_by_events(bench_stage *s, const work *w, unsigned amount, double *us) {
    enum { TRIES = 10 };
    static const uint64_t most_cycles = 20000000;
    for (int i = 0; i < TRIES; i++) {
        float ms = 0;
        int late = 0;
        cudaError_t error = stage_set_account(s, amount);
        s->step = "a launch";
        if (error == cudaSuccess)
            error = run_between_events(s, w, amount, &ms, &late);
        *us = 1e3 * (double)ms;
        if (error != cudaSuccess || !late)
            return error;
        s->lead_cycles = s->lead_cycles < most_cycles / 2 ? 2 * s->lead_cycles : most_cycles;
    }
    s->step = "the host launches too slowly: the device was idle before each try";
    return cudaErrorNotReady;
}

static cudaError_t time_by_host(bench_stage *s, const work *w, unsigned amount, double *us) {
    cudaError_t error = stage_set_account(s, amount);
    if (error == cudaSuccess)
        error = stage_wait(s);
    if (error != cudaSuccess)
        return error;
    s->step = "a launch";
    const double begin = bench_now();
    error = w->run(s, amount);
    const cudaError_t ended = stage_wait(s);
    *us = 1e6 * (bench_now() - begin);
    error = error == cudaSuccess ? ended : error;
    if (error == cudaSuccess)
        error = stage_read_account(s);
    return error == cudaSuccess ? stage_wait(s) : error;
}

static int time_work(bench_stage *s, const probe *p, const work *w, double *us, char *why, size_t size) {
    const unsigned amount = amount_of(s, p, w);
    return stage_blame(s, p->kind == BY_HOST ? time_by_host(s, w, amount, us) : time_by_events(s, w, amount, us), why,
                       size);
}

/* One sample: microseconds of one launch. 0, or -1 with the reason. */
static int take_sample(bench_stage *s, const probe *p, double *us, char *why, size_t size) {
    double more = 0, fewer = 0;
    if (time_work(s, p, &p->more, &more, why, size) != 0 || time_work(s, p, &p->fewer, &fewer, why, size) != 0)
        return -1;
    *us = (more - fewer) / difference(s, p);
    return 0;
}

/* ---- Rounds ----------------------------------------------------------------------------------------------------- */

typedef struct round_state {
    int n;
    bench_verdict verdict;
    double samples[BENCH_SAMPLES];
} round_state;

/* Makes a launch ready. Whether it can be timed. */
static int start(bench_stage *s, bench_launch i, bench_cost *cost) {
    const probe *p = &probes[i];
    const char *why_not = refusal(s, p);
    double us;
    if (why_not) {
        snprintf(cost->why, sizeof cost->why, "%s", why_not);
        return 0;
    }
    const cudaError_t error = p->prepare ? p->prepare(s) : cudaSuccess;
    if (error != cudaSuccess) {
        (void)stage_blame(s, error, cost->why, sizeof cost->why);
        return 0;
    }
    for (int warm = 0; warm < WARM_UPS; warm++)
        if (take_sample(s, p, &us, cost->why, sizeof cost->why) != 0)
            return 0;
    return 1;
}

/* Takes one sample. Whether there should be more. */
static int take(bench_stage *s, const bench_costs_asked *asked, bench_launch i, round_state *r, bench_cost *cost,
                double began) {
    if (take_sample(s, &probes[i], &r->samples[r->n], cost->why, sizeof cost->why) != 0)
        return 0;
    r->n++;
    const bench_summary summary = bench_summarise(r->samples, r->n);
    r->verdict = bench_judge(&asked->rule, &summary, bench_now() - began);
    return r->verdict == BENCH_MORE && r->n < BENCH_SAMPLES;
}

static void take_rounds(bench_stage *s, const bench_costs_asked *asked, round_state *rounds, bench_costs *out) {
    const double began = bench_now();
    int wants[BENCH_LAUNCHES] = {0}, some = 0;
    for (int i = 0; i < BENCH_LAUNCHES && !s->hung; i++)
        if (asked->wanted[i])
            some |= wants[i] = start(s, (bench_launch)i, &out->of[i]);
    while (some && !s->hung) {
        some = 0;
        for (int i = 0; i < BENCH_LAUNCHES && !s->hung; i++)
            if (wants[i])
                some |= wants[i] = take(s, asked, (bench_launch)i, &rounds[i], &out->of[i], began);
    }
}

static void summarise(const bench_costs_asked *asked, const round_state *rounds, bench_costs *out) {
    for (int i = 0; i < BENCH_LAUNCHES; i++) {
        bench_cost *cost = &out->of[i];
        if (!asked->wanted[i] || cost->why[0])
            continue;
        cost->us = bench_summarise(rounds[i].samples, rounds[i].n);
        cost->settled = rounds[i].verdict == BENCH_SETTLED;
        if (rounds[i].n == 0)
            snprintf(cost->why, sizeof cost->why, "the device has not ended the launches before it");
        else if (cost->us.median <= 0)
            snprintf(cost->why, sizeof cost->why, "it takes less than can be told from the difference of two times");
        if (cost->why[0])
            cost->us.n = cost->settled = 0;
    }
}

static void refuse_all(const bench_costs_asked *asked, const char *why, bench_costs *out) {
    for (int i = 0; i < BENCH_LAUNCHES; i++)
        if (asked->wanted[i])
            snprintf(out->of[i].why, sizeof out->of[i].why, "%s", why);
}

static cudaError_t measure(bench_stage *s, const bench_costs_asked *asked, round_state *rounds, bench_costs *out) {
    cudaError_t error = stage_open(s, asked, out);
    if (error != cudaSuccess)
        return error;
    stage_start_nesting(s, out);
    if (s->hung) {
        refuse_all(asked, s->no_nesting, out);
        return cudaSuccess;
    }
    error = stage_load_graph_kernels(s);
    if (error == cudaSuccess)
        take_rounds(s, asked, rounds, out);
    return error;
}

int bench_costs_measure(const bench_costs_asked *asked, bench_costs *out, char why[BENCH_WHY]) {
    bench_stage s = {.step = ""};
    *out = (bench_costs){0};
    if (dpr_device_count() == 0) {
        snprintf(why, BENCH_WHY, "no GPU: %s", dpr_device_absent());
        return -1;
    }
    round_state *rounds = calloc(BENCH_LAUNCHES, sizeof *rounds);
    if (!rounds) {
        snprintf(why, BENCH_WHY, "no host memory");
        return -1;
    }
    const cudaError_t error = measure(&s, asked, rounds, out);
    out->hung = s.hung;
    if (error == cudaSuccess)
        summarise(asked, rounds, out);
    else
        (void)stage_blame(&s, error, why, BENCH_WHY);
    free(rounds);
    stage_close(&s);
    return error == cudaSuccess ? 0 : -1;
}

/* ---- Pinned memory ---------------------------------------------------------------------------------------------- */

void *bench_pinned(size_t bytes) {
    void *memory = NULL;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

void bench_pinned_free(void *memory) {
    if (memory && cudaFreeHost(memory) != cudaSuccess)
        (void)cudaGetLastError();
}
