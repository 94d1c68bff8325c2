/* The choice of an engine for recursions on the CPU. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recursion/engines.h"
#include "recursion_policies.h"
#include "recursion_scene.h"
#include "support.h"

/* What the library would run after these runs of an engine, each of 15 tasks. */
static const dpr_engine *choice_after(dpr_recursion_call *call, const dpr_engine *engine, double seconds, int runs) {
    const char *reason;
    const dpr_recursion_report report = {.tasks = 15, .seconds = seconds};
    for (int i = 0; i < runs; i++)
        dpr_engine_note(call, engine, &report);
    return dpr_engine_choose(call, &reason);
}

/* A run that something interrupts says little about its engine, but many such runs do. */
TEST(RecursionChoice, one_slow_run_does_not_change_the_choice) {
    static const dpr_recursion none; /* of which no run is known */
    scene s = begin(NULL);
    dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1};
    (void)choice_after(&call, &dpr_engine_serial, 1e-6, 3);
    EXPECT_TRUE(choice_after(&call, &dpr_engine_cpu, 20e-6, 3) == &dpr_engine_serial);
    EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1.0, 1) == &dpr_engine_serial);
    EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1e-6, 1) == &dpr_engine_serial);
    EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1.0, 5) == &dpr_engine_serial);
    EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1.0, 20) == &dpr_engine_cpu);
    end(&s);
}

/* Whoever runs after another engine may have to fetch its memory. What happens once is excused, and no more. */
TEST(RecursionChoice, one_slow_run_after_another_engine_does_not_count) {
    static const dpr_recursion none;
    scene s = begin(NULL);
    dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = 1};
    (void)choice_after(&call, &dpr_engine_serial, 1e-6, 4);
    for (int i = 0; i < 40; i++) {
        EXPECT_TRUE(choice_after(&call, &dpr_engine_cpu, 2e-6, 4) == &dpr_engine_serial);
        EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1.0, 1) == &dpr_engine_serial);
        EXPECT_TRUE(choice_after(&call, &dpr_engine_serial, 1e-6, 1) == &dpr_engine_serial);
    }
    const dpr_engine *engine = &dpr_engine_serial;
    for (int i = 0; i < 40 && engine == &dpr_engine_serial; i++) {
        (void)choice_after(&call, &dpr_engine_cpu, 2e-6, 1);
        engine = choice_after(&call, &dpr_engine_serial, 1.0, 1);
    }
    EXPECT_TRUE(engine == &dpr_engine_cpu);
    end(&s);
}

/* What runs next, again and again, if `cpu` takes so many seconds and `serial` as many: "c" or "s" for each. */
static const char *order_of_engines(dpr_recursion_call *call, double cpu, double serial, char order[11]) {
    const char *reason;
    for (int i = 0; i < 10; i++) {
        const dpr_engine *engine = dpr_engine_choose(call, &reason);
        const dpr_recursion_report report = {.tasks = 15, .seconds = engine == &dpr_engine_cpu ? cpu : serial};
        order[i] = engine->name[0];
        dpr_engine_note(call, engine, &report);
    }
    order[10] = 0;
    return order;
}

/* Two runs of each engine, four of one that comes close to the fastest. */
TEST(RecursionChoice, the_order_in_which_engines_are_tried) {
    static const dpr_recursion none;
    static const struct {
        double cpu, serial;
        const char *order;
    } cases[] = {{1e-3, 5e-3, "ccsscccccc"},
                 {5e-3, 1e-3, "ccssssssss"},
                 {1e-3, 1.1e-3, "ccsssscccc"},
                 {1.1e-3, 1e-3, "ccssccssss"}};
    scene s = begin(NULL);
    for (int i = 0; i < (int)LENGTH(cases); i++) {
        dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = i};
        char order[11];
        EXPECT_EQ_STR(cases[i].order, order_of_engines(&call, cases[i].cpu, cases[i].serial, order));
    }
    end(&s);
}

/* Slow runs of the fastest engine make another one the fastest, but not for long. Each that was the fastest, and is
 * close, runs two times more; and again after the seventeenth run. */
TEST(RecursionChoice, an_engine_that_was_slow_is_tried_again) {
    static const dpr_recursion none;
    static const struct {
        double serial;
        const char *order;
    } cases[] = {{1.2e-3, "csscccccss"}, {0.95e-3, "ccsssssscc"}};
    scene s = begin(NULL);
    for (int i = 0; i < (int)LENGTH(cases); i++) {
        dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = i};
        const double serial = cases[i].serial;
        char order[11];
        (void)choice_after(&call, &dpr_engine_serial, serial, 4);
        (void)choice_after(&call, &dpr_engine_cpu, i == 0 ? 1e-3 : 0.9e-3, 4);
        (void)choice_after(&call, &dpr_engine_cpu, 5e-3, 2);
        EXPECT_EQ_STR(cases[i].order, order_of_engines(&call, 1e-3, serial, order));
    }
    end(&s);
}

/* An engine's runs follow each other: then the second one finds its data where it runs. */
TEST(RecursionChoice, data_that_move_do_not_hide_the_fastest_engine) {
    static const dpr_recursion none;
    scene s = begin(NULL);
    dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = 1};
    static const dpr_engine nowhere;
    const dpr_engine *last = &nowhere;
    char order[11] = "";
    for (int i = 0; i < 10; i++) {
        const char *reason;
        const dpr_engine *engine = dpr_engine_choose(&call, &reason);
        const double there = engine == &dpr_engine_cpu ? 7e-3 : 7.5e-3, elsewhere = 10.4e-3;
        const dpr_recursion_report report = {.tasks = 15, .seconds = engine == last ? there : elsewhere};
        order[i] = engine->name[0];
        dpr_engine_note(&call, engine, &report);
        last = engine;
    }
    EXPECT_EQ_STR("ccsssscccc", order);
    end(&s);
}

/* An engine that was disturbed for long is found to be the fastest later. */
TEST(RecursionChoice, engines_close_to_the_fastest_run_again_from_time_to_time) {
    static const dpr_recursion none;
    scene s = begin(NULL);
    dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = 1};
    const dpr_engine *engine = NULL;
    int runs_of_cpu[4] = {0};
    for (int i = 0; i < 2000; i++) {
        const char *reason;
        engine = dpr_engine_choose(&call, &reason);
        const double of_cpu = i < 100 ? 1.25e-3 : 0.9e-3;
        const dpr_recursion_report report = {.tasks = 15, .seconds = engine == &dpr_engine_cpu ? of_cpu : 1e-3};
        runs_of_cpu[i / 500] += engine == &dpr_engine_cpu;
        dpr_engine_note(&call, engine, &report);
    }
    EXPECT_TRUE(engine == &dpr_engine_cpu);
    EXPECT_THAT(runs_of_cpu[0] > 350 && runs_of_cpu[1] < 500 && runs_of_cpu[3] > 490, "%d, %d and %d of 500 runs",
                runs_of_cpu[0], runs_of_cpu[1], runs_of_cpu[3]);
    end(&s);
}

/* What `cpu` takes with one thread says nothing of what it takes with more. */
TEST(RecursionChoice, numbers_of_threads_are_told_apart) {
    static const dpr_recursion none;
    scene s = begin(NULL);
    for (int threads = 1; threads <= 2; threads++) {
        dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1, .size = 1, .options.threads = threads};
        char order[11];
        EXPECT_EQ_STR(threads == 1 ? "ccssssssss" : "ccsscccccc",
                      order_of_engines(&call, threads == 1 ? 5e-3 : 1e-3, threads == 1 ? 1e-3 : 5e-3, order));
    }
    end(&s);
}

/* How many of a thousand runs are by `serial`, which takes `ratio` times as long as `cpu`, if times scatter by 2 %, and
 * one in `rare` runs takes three times as long. */
static int count_slower_runs(dpr_recursion_call *call, double ratio, unsigned rare, uint32_t dice) {
    int slower = 0;
    for (int i = 0; i < 1000; i++) {
        const char *reason;
        const dpr_engine *engine = dpr_engine_choose(call, &reason);
        dice = dice * 1664525 + 1013904223;
        const double scatter = 1 + 0.02 * ((dice >> 16) % 100 / 100.0), outlier = (dice >> 8) % rare == 0 ? 3 : 1;
        const dpr_recursion_report report = {
            .tasks = 15, .seconds = 1e-3 * scatter * outlier * (engine == &dpr_engine_serial ? ratio : 1)};
        slower += engine == &dpr_engine_serial;
        dpr_engine_note(call, engine, &report);
    }
    return slower;
}

/* If the fastest engine were not tried again after slow runs, 17 % of the runs would be by the other one. */
TEST(RecursionChoice, times_that_scatter_do_not_keep_a_slower_engine) {
    enum { SEEDS = 50 };
    static const dpr_recursion none;
    static const double ratios[] = {1.05, 1.1, 1.2, 1.28};
    scene s = begin(NULL);
    dpr_recursion_call call = {.ctx = s.ctx, .recursion = &none, .n = 1}; /* larger ones follow smaller ones */
    for (size_t i = 0; i < LENGTH(ratios); i++) {
        int slower = 0;
        call.size++;
        EXPECT_TRUE(count_slower_runs(&call, ratios[i], UINT_MAX, 1) <= 4 + 6 * 2); /* six times it runs again */
        for (uint32_t seed = 0; seed < SEEDS; seed++, call.size++)
            slower += count_slower_runs(&call, ratios[i], 50, seed);
        EXPECT_THAT(slower < 25 * SEEDS, "%d of %d runs are by an engine that takes %g times as long", slower,
                    1000 * SEEDS, ratios[i]);
    }
    end(&s);
}

/* An engine is tried where tasks take as little time as any do: here `cpu`, after runs of fib(38) by `serial`. */
TEST(RecursionChoice, engines_are_tried_for_the_quickest_tasks) {
    static const dpr_recursion fib = {.most_children = 2};
    scene s = begin(NULL);
    for (int threads = 2; threads <= 16; threads *= 2) {
        dpr_recursion_call call = {
            .ctx = s.ctx, .recursion = &fib, .n = 1, .size = 30 + threads, .options.threads = threads};
        const dpr_recursion_report report = {.tasks = 126491971, .seconds = 0.127};
        const char *reason;
        for (int i = 0; i < 4; i++)
            dpr_engine_note(&call, &dpr_engine_serial, &report);
        EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_cpu);
        EXPECT_CONTAINS(reason, "could be faster");
    }
    end(&s);
}

/* On the CPU there are none, so leave for them changes nothing. */
TEST(RecursionChoice, nested_launches_are_allowed_on_the_cpu) {
    static const dpr_recursion none;
    scene s = begin(NULL);
    for (int allow = 0; allow <= 1; allow++) {
        const uint64_t roots[2] = {100, 50};
        uint64_t results[2] = {0, 0};
        char order[11];
        dpr_recursion_call call = {
            .ctx = s.ctx, .recursion = &none, .n = 1, .size = 20 + allow, .options.allow_nested = allow};
        EXPECT_EQ_STR("ccsscccccc", order_of_engines(&call, 1e-3, 5e-3, order));
        s.options.allow_nested = allow;
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, 2, NULL, results, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(101, results[0]);
        EXPECT_TRUE(strcmp("cpu", s.report.engine) == 0 || strcmp("serial", s.report.engine) == 0);
    }
    end(&s);
}

static int costs_asked;

static uint64_t cost_of_number(const void *data, const void *task) {
    (void)data;
    costs_asked++;
    return *(const uint64_t *)task;
}

/* Few tasks are done before a thread begins. */
TEST(RecursionChoice, the_first_engine_is_chosen_by_cost) {
    static const dpr_recursion numbers = {.cost = cost_of_number, .task_bytes = sizeof(uint64_t)};
    static const struct {
        uint64_t root;
        const dpr_engine *engine;
    } cases[] = {
        {1, &dpr_engine_serial}, {1000, &dpr_engine_serial}, {1000000, &dpr_engine_cpu}, {UINT64_MAX, &dpr_engine_cpu}};
    scene s = begin(NULL);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const uint64_t roots[2] = {cases[i].root, cases[i].root}; /* the sum does not wrap around */
        dpr_recursion_call call = {.ctx = s.ctx, .recursion = &numbers, .roots = roots, .n = LENGTH(roots)};
        const char *reason;
        call.options.threads = 2;
        dpr_engine_size(&call);
        EXPECT_TRUE(dpr_engine_choose(&call, &reason) == cases[i].engine);
        EXPECT_CONTAINS(reason, "what the roots cost");
    }
    end(&s);
}

/* Of many roots some are asked, of each part of the array as many, also where costs repeat. */
TEST(RecursionChoice, many_roots_are_asked_here_and_there_what_they_cost) {
    enum { MOST = 100003 };
    static const dpr_recursion numbers = {.cost = cost_of_number, .task_bytes = sizeof(uint64_t)};
    static const struct {
        size_t n, period; /* in each `period` roots, the first half costs `one`, and the second half `other` */
        uint64_t one, other;
        const dpr_engine *engine;
    } cases[] = {{65, 65, 1, 1, &dpr_engine_serial},          {1000, 1000, 2, 2, &dpr_engine_serial},
                 {1000, 1000, 1, 20000, &dpr_engine_cpu},     {1000, 1000, 20000, 1, &dpr_engine_cpu},
                 {128, 2, 1, 300000, &dpr_engine_cpu},        {4096, 2, 20000, 1, &dpr_engine_cpu},
                 {4096, 64, 1, 20000, &dpr_engine_cpu},       {6400, 100, 20000, 1, &dpr_engine_cpu},
                 {MOST, MOST, 0, 0, &dpr_engine_cpu}, /* a task each, at least */
                 {MOST, MOST, 3, 5, &dpr_engine_cpu},         {MOST, MOST, 1, UINT64_MAX / 2, &dpr_engine_cpu},
                 {MOST, MOST, UINT64_MAX, 1, &dpr_engine_cpu}};
    scene s = begin(NULL);
    uint64_t *roots = calloc(MOST, sizeof *roots);
    ASSERT_TRUE(roots != NULL);
    for (size_t c = 0; c < LENGTH(cases); c++) {
        const size_t n = cases[c].n, period = cases[c].period;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            roots[i] = i % period < period / 2 ? cases[c].one : cases[c].other;
            sum += (double)roots[i];
        }
        dpr_recursion_call call = {.ctx = s.ctx, .recursion = &numbers, .roots = roots, .n = n};
        const char *reason;
        call.options.threads = 2;
        costs_asked = 0;
        dpr_engine_size(&call);
        EXPECT_EQ_I64(64, costs_asked);
        EXPECT_NEAR_F64(fmin(sum, 0x1p64), (double)call.cost, 0.1 * fmin(sum, 0x1p64));
        EXPECT_TRUE(dpr_engine_choose(&call, &reason) == cases[c].engine);
        EXPECT_CONTAINS(reason, "what the roots cost");
    }
    free(roots);
    end(&s);
}

TEST(RecursionChoice, the_library_tries_engines_and_settles) {
    enum { ROOTS = 40 };
    scene s = begin(NULL);
    uint64_t roots[ROOTS], results[ROOTS] = {0};
    for (int i = 0; i < ROOTS; i++)
        roots[i] = 2;
    s.options.threads = 2;
    int runs_of_serial = 0, is_settled = 0;
    /* Two runs of each engine, or four if both take about as long; more where times of a busy machine scatter. */
    for (int i = 0; i < 12 || (i < 500 && !is_settled); i++) {
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, ROOTS, NULL, results, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(3, results[ROOTS - 1]);
        if (i < 2)
            EXPECT_EQ_STR("cpu", s.report.engine);
        runs_of_serial += strcmp("serial", s.report.engine) == 0;
        is_settled = strstr(s.report.reason, "it was the fastest") != NULL;
    }
    EXPECT_TRUE(runs_of_serial >= 2);
    EXPECT_TRUE(is_settled);
    roots[0] = 1000000; /* the number of tasks tells that these are not similar, so that all begins anew */
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, ROOTS, NULL, results, &s.options, &s.report, NULL));
    EXPECT_EQ_U64(1000001, results[0]);
    end(&s);
}

TEST(RecursionChoice, smaller_problems_are_predicted_from_larger_ones) {
    enum { ROOTS = 100000 };
    scene s = begin(NULL);
    uint64_t *roots = calloc(ROOTS, sizeof *roots), *results = calloc(ROOTS, sizeof *results), result = 0;
    for (int i = 0; i < ROOTS; i++)
        roots[i] = 2;
    s.options.threads = 2;
    EXPECT_STATUS(DPR_OK, other_chain_run(s.ctx, roots, ROOTS, NULL, results, &s.options, &s.report, NULL));
    EXPECT_EQ_STR("cpu", s.report.engine);
    EXPECT_STATUS(DPR_OK, other_chain_run(s.ctx, roots, 1, NULL, &result, &s.options, &s.report, NULL));
    EXPECT_EQ_U64(3, result);
    EXPECT_EQ_STR("serial", s.report.engine); /* three tasks are done before a thread begins */
    EXPECT_CONTAINS(s.report.reason, "larger problems");
    free(roots);
    free(results);
    end(&s);
}

/* What a call is similar to is found out before its results are written, here over its roots. */
TEST(RecursionChoice, results_in_place_of_roots) {
    scene s = begin(NULL);
    for (int i = 0; i < 2; i++) {
        uint64_t root = 1000;
        EXPECT_STATUS(DPR_OK, cut_ladder_run(s.ctx, &root, 1, NULL, &root, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(2001, root);
    }
    EXPECT_THAT(strstr(s.report.reason, "larger problems") == NULL, "%s", s.report.reason);
    end(&s);
}
