/* Recursions on the CPU: engines `cpu` and `serial`, against plain recursive functions. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "recursion/engines.h"
#include "recursion_checks.h"
#include "recursion_policies.h"
#include "recursion_scene.h"
#include "recursion_stress.h"
#include "support.h"

/* The linker sends the library's calls of sysconf() here. */
long __real_sysconf(int name);
long __wrap_sysconf(int name);

static atomic_long memory_pages; /* that the machine is said to have; 0: what it has */

long __wrap_sysconf(int name) {
    const long pages = atomic_load(&memory_pages);
    return name == _SC_PHYS_PAGES && pages > 0 ? pages : __real_sysconf(name);
}

/* Now and then a thread that takes a lock waits first, for a random time, if this is not 0. */
static atomic_uint schedule;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock) {
    unsigned dice = atomic_load_explicit(&schedule, memory_order_relaxed);
    if (dice != 0) {
        dice = dice * 1664525u + 1013904223u;
        atomic_store_explicit(&schedule, dice | 1, memory_order_relaxed);
        if (dice >> 29 == 0)
            (void)thrd_sleep(&(struct timespec){.tv_nsec = dice >> 12 & 0xffff}, NULL);
    }
    return __real_pthread_mutex_lock(lock);
}

static const char *const engines[] = {"serial", "cpu"};

/* ---- Results ---- */

/* Solves some trees as roots of one run, and compares them with the reference. */
static void expect_trees(scene *s, const tree_shape *shape, uint64_t seed) {
    enum { ROOTS = 5 };
    tree_task roots[ROOTS];
    tree_result results[ROOTS];
    uint64_t nodes = 0;
    for (int i = 0; i < ROOTS; i++)
        roots[i] = (tree_task){seed + 1000 * (uint64_t)i, 0, 0};
    for (int teams = 0; teams < 2; teams++) {
        ASSERT_STATUS(DPR_OK, (teams ? team_tree_run : tree_run)(s->ctx, roots, ROOTS, shape, results, &s->options,
                                                                 &s->report, NULL));
        nodes = 0;
        for (int i = 0; i < ROOTS; i++) {
            EXPECT_TRUE(same(tree_reference(shape, roots[i]), results[i]));
            nodes += results[i].nodes;
        }
        EXPECT_EQ_U64(nodes, s->report.tasks);
        EXPECT_TRUE(s->report.deepest <= shape->deepest);
        EXPECT_EQ_STR(s->options.engine, s->report.engine);
    }
}

TEST(Recursion, random_trees) {
    for (int e = 0; e < 2; e++)
        for (int threads = 1; threads <= 5; threads += 2)
            for (uint64_t seed = 0; seed < 40; seed++) {
                scene s = begin(engines[e]);
                const tree_shape shape = {.deepest = 1 + (uint32_t)seed * 7 % 30,
                                          .chance = 60 + (uint32_t)seed % 60,
                                          .most = 1 + (uint32_t)seed % TREE_MOST};
                s.options.threads = threads;
                expect_trees(&s, &shape, seed);
                end(&s);
            }
}

/* The smallest arena has room for the roots alone. */
TEST(Recursion, any_arena_gives_the_same_bits) {
    static const tree_shape small = {.deepest = 15, .chance = 90, .most = TREE_MOST};
    for (uint64_t arena = 5; arena < 300; arena += arena < 64 ? 1 : 59) {
        scene s = begin("cpu");
        s.options.threads = 4;
        s.options.arena_tasks = arena;
        expect_trees(&s, &small, arena);
        expect_folds(s.ctx, &s.options, &s.report, &small, arena, 5);
        if (arena % 59 == 5)
            expect_trees(&s, &large, 7);
        end(&s);
    }
}

TEST(Recursion, large_results) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        s.options.threads = 3;
        expect_large_result(s.ctx, &s.options, &s.report);
        end(&s);
    }
}

/* Half of the runs have an arena that has room for little more than the roots; half do without serial(). */
TEST(Recursion, random_policies) {
    for (int e = 0; e < 2; e++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            scene s = begin(engines[e]);
            const size_t n = 1 + 5 * (size_t)seed;
            const random_policy *p;
            s.options.threads = 1 + (int)seed % 4;
            s.options.arena_tasks = seed % 2 ? n + seed : 0;
            for (size_t i = 0; (p = random_policy_at(i)) && !test_failed(); i++) {
                s.options.cutoff = p->serial && seed % 4 < 2 ? DPR_NO_CUTOFF : 0;
                expect_random_trees(p, s.ctx, &s.options, &s.report, seed, n);
            }
            end(&s);
        }
}

TEST(Recursion, threads_without_work_take_some) {
    scene s = begin("cpu");
    s.options.threads = 4;
    uint64_t steals = 0;
    for (int run = 0; run < 50 && steals == 0; run++) {
        expect_trees(&s, &large, (uint64_t)run);
        steals += s.report.steals;
    }
    EXPECT_TRUE(steals > 0);
    end(&s);
}

TEST(Recursion, random_schedules) {
    uint64_t steals = 0;
    for (unsigned seed = 0; seed < 120; seed++) {
        scene s = begin("cpu");
        s.options.threads = 2 + (int)seed % 5;
        s.options.arena_tasks = seed % 3 == 0 ? 0 : 5 + 10 * (uint64_t)seed;
        atomic_store(&schedule, 2 * seed + 1);
        expect_trees(&s, &large, seed);
        atomic_store(&schedule, 0);
        steals += s.report.steals;
        end(&s);
    }
    EXPECT_TRUE(steals > 0);
}

/* An arena that the root fills leaves no room to write tasks out for threads that ask for some. */
TEST(Recursion, the_arena_limits_what_is_handed_out) {
    scene s = begin("cpu");
    s.options.threads = 4;
    s.options.arena_tasks = 1;
    uint64_t refused = 0;
    for (uint64_t run = 0; run < 50 && refused == 0; run++) {
        const tree_task root = {run, 0, 0};
        tree_result result;
        EXPECT_STATUS(DPR_OK, tree_run(s.ctx, &root, 1, &large, &result, &s.options, &s.report, NULL));
        EXPECT_TRUE(same(tree_reference(&large, root), result));
        EXPECT_EQ_U64(0, s.report.handed_out);
        refused += s.report.serialised;
    }
    EXPECT_TRUE(refused > 0);
    end(&s);
}

TEST(Recursion, a_chain_of_a_million) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        const uint64_t root = 1000000;
        uint64_t result = 0;
        s.options.threads = 3;
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(root + 1, result);
        EXPECT_EQ_U64(root + 1, s.report.tasks);
        EXPECT_EQ_U64(root, s.report.deepest);
        end(&s);
    }
}

TEST(Recursion, a_star_of_a_million) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        const uint64_t root = STAR_MOST;
        uint64_t result = 0;
        s.options.threads = 3;
        EXPECT_STATUS(DPR_OK, star_run(s.ctx, &root, 1, NULL, &result, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(root + 1, result);
        EXPECT_EQ_U64(1, s.report.deepest);
        end(&s);
    }
}

TEST(Recursion, no_roots_and_many) {
    enum { ROOTS = 20000 };
    static uint64_t roots[ROOTS], results[ROOTS];
    scene s = begin(NULL);
    EXPECT_STATUS(DPR_OK, chain_run(s.ctx, NULL, 0, NULL, NULL, &s.options, &s.report, NULL));
    EXPECT_EQ_U64(0, s.report.tasks);
    EXPECT_CONTAINS(s.report.reason, "no roots");
    for (uint64_t i = 0; i < ROOTS; i++)
        roots[i] = i % 100;
    EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, ROOTS, NULL, results, NULL, NULL, NULL));
    for (uint64_t i = 0; i < ROOTS; i++)
        EXPECT_EQ_U64(roots[i] + 1, results[i]);
    end(&s);
}

TEST(Recursion, folds) {
    for (int e = 0; e < 2; e++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            scene s = begin(engines[e]);
            const tree_shape shape = {
                .deepest = 1 + (uint32_t)seed, .chance = 60 + (uint32_t)seed, .most = 1 + (uint32_t)seed % TREE_MOST};
            s.options.threads = 4;
            expect_folds(s.ctx, &s.options, &s.report, &shape, seed, 5);
            end(&s);
        }
}

TEST(Recursion, tasks_that_serial_solves) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        const uint64_t root = 1000;
        static const uint64_t cutoffs[] = {0, 1, 100, 1000, 2000, DPR_NO_CUTOFF};
        static const uint64_t tasks[] = {1991, 1999, 1801, 1, 1, 2001};
        for (size_t i = 0; i < LENGTH(cutoffs); i++) {
            uint64_t result = 0;
            s.options.cutoff = cutoffs[i];
            EXPECT_STATUS(DPR_OK, cut_ladder_run(s.ctx, &root, 1, NULL, &result, &s.options, &s.report, NULL));
            EXPECT_EQ_U64(2001, result);
            EXPECT_EQ_U64(tasks[i], s.report.tasks);
        }
        uint64_t result = 7;
        s.options.cutoff = 5;
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_TRUE(strstr(dpr_last_error(), "cutoff is 5") != NULL);
        EXPECT_EQ_U64(7, result);
        end(&s);
    }
}

TEST(Recursion, spans_of_time) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        events seen = {0, 0};
        s.options.threads = 3;
        s.options.trace = note_event;
        s.options.trace_user = &seen;
        expect_trees(&s, &large, 7);
        EXPECT_TRUE(seen.count >= 2);
        EXPECT_EQ_U64(0, seen.wrong);
        end(&s);
    }
}

/* ---- Errors ---- */

TEST(Recursion, a_wrong_number_of_children) {
    static const int32_t wrong[] = {-1, TREE_MOST + 1, INT32_MAX, INT32_MIN};
    for (int e = 0; e < 2; e++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            scene s = begin(engines[e]);
            tree_shape shape = large;
            const tree_task root = {7, 0, 0};
            tree_result result = {77, 77};
            char text[32];
            shape.wrong = 1;
            shape.returned = wrong[i];
            s.options.threads = 3;
            EXPECT_STATUS(DPR_ERR_DIVIDE, tree_run(s.ctx, &root, 1, &shape, &result, &s.options, &s.report, NULL));
            EXPECT_EQ_U64(77, result.nodes);
            (void)snprintf(text, sizeof text, "returned %d", wrong[i]);
            EXPECT_TRUE(strstr(dpr_last_error(), text) != NULL);
            shape.wrong = 0;
            expect_trees(&s, &shape, 3);
            end(&s);
        }
}

TEST(Recursion, limits_of_depth_and_tasks) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        uint64_t root = 100, result = 5;
        s.options.max_depth = 100;
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_EQ_U64(101, result);
        root = 101;
        EXPECT_STATUS(DPR_ERR_LIMIT, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_TRUE(strstr(dpr_last_error(), "max_depth is 100") != NULL);
        EXPECT_EQ_U64(101, result);
        s.options.max_depth = 1000;
        EXPECT_STATUS(DPR_ERR_LIMIT, endless_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        s.options.max_depth = 0;
        s.options.max_tasks = 100000;
        EXPECT_STATUS(DPR_ERR_LIMIT, endless_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "has more tasks than options->max_tasks, which is 100000");
        EXPECT_EQ_U64(101, result);
        root = 16; /* 2^17 - 1 tasks, of all threads together */
        for (s.options.max_tasks = (1 << 17) - 2; s.options.max_tasks < 1 << 17; s.options.max_tasks++) {
            const int has_room = s.options.max_tasks == (1 << 17) - 1;
            result = 101;
            EXPECT_STATUS(has_room ? DPR_OK : DPR_ERR_LIMIT,
                          binary_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
            EXPECT_EQ_U64(has_room ? (1 << 17) - 1 : 101, result);
        }
        for (s.options.max_tasks = UINT64_MAX - 300; s.options.max_tasks != 0; s.options.max_tasks++) {
            root = 2000;
            EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
            EXPECT_EQ_U64(2001, result);
        }
        end(&s);
    }
}

/* Tasks that wait take half of the machine's memory at most. */
TEST(Recursion, limit_of_memory) {
    static const uint64_t megabyte = 1 << 20;
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        uint64_t root = 1, result = 5;
        s.options.max_depth = 1 << 30;
        atomic_store(&memory_pages, (long)(800 * megabyte) / __real_sysconf(_SC_PAGESIZE));
        EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, endless_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        const char *number = strpbrk(dpr_last_error(), "0123456789");
        const uint64_t bytes = number ? strtoull(number, NULL, 10) : 0;
        EXPECT_TRUE(bytes > 390 * megabyte && bytes <= 400 * megabyte);
        EXPECT_CONTAINS(dpr_last_error(), " bytes, half of the host's memory");
        EXPECT_EQ_U64(5, result);
        root = 1000000; /* which take some 150 MiB: so those of the run before are not counted any more */
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_EQ_U64(1000001, result);
        atomic_store(&memory_pages, 0);
        end(&s);
    }
}

/* Nothing is read of roots for which there is no room, so these take no memory either. */
TEST(Recursion, roots_beyond_the_limit_of_memory) {
    enum { ROOTS = (1 << 25) + 1 }; /* 256 MiB of frames are always allowed */
    uint64_t *roots = calloc(2 * (size_t)ROOTS, sizeof *roots);
    ASSERT_TRUE(roots != NULL);
    uint64_t *const results = roots + ROOTS;
    atomic_store(&memory_pages, 1);
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY,
                      chain_run(s.ctx, roots, ROOTS, NULL, results, &s.options, &s.report, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "half of the host's memory");
        EXPECT_EQ_U64(0, results[0]);
        EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, 2, NULL, results, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(1, results[1]);
        results[0] = 0;
        end(&s);
    }
    atomic_store(&memory_pages, 0);
    free(roots);
}

TEST(Recursion, limit_of_time) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        uint64_t root = BINARY_MOST, result = 5;
        s.options.max_seconds = 0.05;
        const double began = test_now();
        EXPECT_STATUS(DPR_ERR_LIMIT, binary_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_TRUE(test_now() - began >= 0.05);
        EXPECT_CONTAINS(dpr_last_error(), "\"binary\" takes longer than 0.05 seconds");
        EXPECT_EQ_U64(5, result);
        s.options.max_seconds = HUGE_VAL;
        root = 10;
        EXPECT_STATUS(DPR_OK, binary_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_EQ_U64(2047, result);
        end(&s);
    }
}

/* The seconds that a run of `slow` takes. */
static double run_slow(scene *s, slow_task root, slow_times times, dpr_status expected, uint64_t result) {
    uint64_t got = 5;
    const double began = test_now();
    EXPECT_STATUS(expected, slow_run(s->ctx, &root, 1, &times, &got, &s->options, NULL, NULL));
    EXPECT_EQ_U64(result, got);
    return test_now() - began;
}

TEST(Recursion, limit_of_time_where_combining_is_slow) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        s.options.max_seconds = 0.02;
        (void)run_slow(&s, (slow_task){.links = 30}, (slow_times){.combine_us = 1000}, DPR_ERR_LIMIT, 5);
        EXPECT_CONTAINS(dpr_last_error(), "\"slow\" takes longer than 0.02 seconds");
        (void)run_slow(&s, (slow_task){0}, (slow_times){.base_us = 30000}, DPR_ERR_LIMIT, 5);
        /* More levels than a thread's stack has: the rest is not combined. */
        EXPECT_TRUE(run_slow(&s, (slow_task){.links = 3000}, (slow_times){.combine_us = 1000}, DPR_ERR_LIMIT, 5) < 2);
        s.options.max_seconds = 60;
        (void)run_slow(&s, (slow_task){.links = 10}, (slow_times){0}, DPR_OK, 1);
        end(&s);
    }
}

/* 128 base cases of 10 ms, after tasks that are quick. */
TEST(Recursion, slow_tasks_after_quick_ones) {
    const slow_task root = {.links = 20000, .levels = 7};
    const slow_times times = {.base_us = 10000};
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        s.options.max_seconds = 0.05;
        EXPECT_TRUE(run_slow(&s, root, times, DPR_ERR_LIMIT, 5) < 0.8);
        s.options.max_seconds = 0;
        s.options.threads = 8;
        if (e == 1)
            EXPECT_TRUE(run_slow(&s, root, times, DPR_OK, 128) < 0.8);
        end(&s);
    }
}

TEST(Recursion, bad_arguments) {
    scene s = begin("cpu");
    const uint64_t root = 3;
    const tree_task task = {1, 0, 0};
    tree_result tree;
    uint64_t result = 9;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_run(NULL, &root, 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_run(s.ctx, NULL, 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_run(s.ctx, &root, 1, NULL, NULL, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, tree_run(s.ctx, &task, 1, NULL, &tree, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_recursion_run(s.ctx, NULL, &root, 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_MISALIGNED,
                  chain_run(s.ctx, (const uint64_t *)((const char *)&root + 1), 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_MISALIGNED,
                  tree_run(s.ctx, &task, 1, (const tree_shape *)((const char *)&large + 1), &tree, NULL, NULL, NULL));
    EXPECT_TRUE(strncmp(dpr_last_error(), "data is ", 8) == 0);
    EXPECT_STATUS(DPR_OK, tree_run(s.ctx, NULL, 0, NULL, NULL, NULL, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_SIZE, chain_run(s.ctx, &root, SIZE_MAX, NULL, &result, NULL, NULL, NULL));
    s.options.engine = "steam";
    EXPECT_STATUS(DPR_ERR_UNKNOWN_ENGINE, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    EXPECT_TRUE(strstr(dpr_last_error(), "steam") != NULL);
    s.options.engine = NULL;
    static const int too_few_or_many[] = {INT_MIN, -1, 1025, INT_MAX};
    for (size_t i = 0; i < LENGTH(too_few_or_many); i++) {
        s.options.threads = too_few_or_many[i];
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "it should be from 0 to 1024");
    }
    s.options.threads = 1024;
    EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    result = 9;
    s.options.threads = 0;
    static const double wrong[] = {-1, -1e-300, -HUGE_VAL, NAN};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        s.options.max_seconds = wrong[i];
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "options->max_seconds is");
    }
    s.options.max_seconds = copysign(NAN, -1);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "options->max_seconds is nan,");
    s.options.max_seconds = 0;
    static const int neither[] = {-1, 2, INT_MAX};
    for (size_t i = 0; i < LENGTH(neither); i++) {
        s.options.allow_nested = neither[i];
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "options->allow_nested is");
    }
    s.options.allow_nested = 0;
    s.options.max_pending = -2;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    s.options.max_pending = 0;
    for (s.options.max_nesting = -1; s.options.max_nesting <= 25; s.options.max_nesting += 26)
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "options->max_nesting is 25; it should be from 0 to 24");
    s.options.max_nesting = 0;
    s.options.max_depth = UINT64_MAX;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    s.options.max_depth = 0;
    s.options.arena_tasks = UINT64_MAX;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, &s.options, NULL, NULL));
    s.report.size = 7;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, 1, NULL, &result, NULL, &s.report, NULL));
    for (size_t n = 0; n < 2; n++) {
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_run(s.ctx, &root, n, NULL, &result, NULL, NULL, (dpr_stream)&root));
        EXPECT_CONTAINS(dpr_last_error(), ", and ctx has no GPU");
    }
    EXPECT_EQ_U64(9, result);
    EXPECT_STATUS(DPR_OK, chain_run(s.ctx, &root, 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_EQ_U64(4, result);
    end(&s);
}

/* ---- Runs that are enqueued, which need a GPU ---- */

static const char unable_on_cpu[] =
    "engine \"persistent\" cannot run recursion \"chain\" here: it needs a context of a GPU";

/* The sentence that refuses every run in a context of the CPU. */
static const char *cpu_refusal(void) {
    return strcmp(dpr_engine_name(0), "persistent") == 0 ? unable_on_cpu
                                                         : "no engine can enqueue a run: this build of dpr has no CUDA";
}

TEST(Recursion, nothing_is_enqueued_on_the_cpu) {
    static const char *const by_threads[] = {"cpu", "serial"};
    scene s = begin(NULL);
    const uint64_t root = 3;
    uint64_t result = 9;
    dpr_recursion_outcome outcome = {.tasks = 9};
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, chain_enqueue(s.ctx, &root, 1, NULL, &result, NULL, &outcome, NULL));
    EXPECT_CONTAINS(dpr_last_error(), cpu_refusal());
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, chain_enqueue(s.ctx, NULL, 0, NULL, NULL, NULL, &outcome, NULL));
    for (size_t i = 0; i < LENGTH(by_threads); i++) {
        s.options.engine = by_threads[i];
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                      chain_enqueue(s.ctx, &root, 1, NULL, &result, &s.options, &outcome, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "cannot enqueue a run, because it runs on threads of the host");
    }
    EXPECT_TRUE(result == 9 && outcome.tasks == 9);
    end(&s);
}

TEST(Recursion, bad_arguments_of_an_enqueued_run) {
    scene s = begin(NULL);
    const uint64_t root = 3;
    uint64_t result = 9;
    dpr_recursion_outcome outcome;
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_enqueue(s.ctx, &root, 1, NULL, &result, NULL, NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "outcome is NULL");
    EXPECT_STATUS(DPR_ERR_MISALIGNED, chain_enqueue(s.ctx, &root, 1, NULL, &result, NULL,
                                                    (dpr_recursion_outcome *)(void *)((char *)&outcome + 4), NULL));
    EXPECT_CONTAINS(dpr_last_error(), "outcome is ");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_enqueue(NULL, &root, 1, NULL, &result, NULL, &outcome, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_enqueue(s.ctx, NULL, 1, NULL, &result, NULL, &outcome, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_enqueue(s.ctx, &root, 1, NULL, NULL, NULL, &outcome, NULL));
    EXPECT_STATUS(DPR_ERR_SIZE, chain_enqueue(s.ctx, &root, SIZE_MAX, NULL, &result, NULL, &outcome, NULL));
    s.options.engine = "steam";
    EXPECT_STATUS(DPR_ERR_UNKNOWN_ENGINE, chain_enqueue(s.ctx, &root, 1, NULL, &result, &s.options, &outcome, NULL));
    s.options.engine = NULL;
    s.options.max_pending = -2;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_enqueue(s.ctx, &root, 1, NULL, &result, &s.options, &outcome, NULL));
    s.options.max_pending = 0;
    s.options.trace = note_event;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, chain_enqueue(s.ctx, &root, 1, NULL, &result, &s.options, &outcome, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "options->trace is not NULL");
    EXPECT_EQ_U64(9, result);
    end(&s);
}

TEST(Recursion, outcomes_are_explained) {
    static const struct {
        dpr_recursion_outcome outcome;
        dpr_status status;
        const char *part;
    } all[] = {
        {{.status = DPR_ERR_DIVIDE, .wrong = 8},
         DPR_ERR_DIVIDE,
         "divide() of recursion \"chain\" returned 8, and must"},
        {{.status = DPR_ERR_LIMIT}, DPR_ERR_LIMIT, "\"chain\" has more tasks than options->max_tasks"},
        {{.status = DPR_ERR_LIMIT, .wrong = 1}, DPR_ERR_LIMIT, "its limit (options->max_seconds)"},
        {{.status = DPR_ERR_LIMIT, .wrong = 2}, DPR_ERR_LIMIT, "has a task that is deeper than options->max_depth"},
        {{.status = DPR_ERR_OUT_OF_MEMORY}, DPR_ERR_OUT_OF_MEMORY, "because options->arena_tasks is too small"},
        {{.status = DPR_ERR_CUDA}, DPR_ERR_CUDA, "lost tasks of recursion \"chain\""},
        {{.status = 77}, DPR_ERR_INVALID_OPTION, "outcome->status is 77, which no run of recursion \"chain\""},
        {{.status = DPR_ERR_SIZE}, DPR_ERR_INVALID_OPTION, "outcome->status is "},
    };
    static const dpr_recursion_outcome good;
    const dpr_recursion older = {.size = sizeof older, .version = DPR_RECURSION_VERSION - 1};
    for (size_t i = 0; i < LENGTH(all); i++) {
        EXPECT_STATUS(all[i].status, chain_check(&all[i].outcome));
        EXPECT_CONTAINS(dpr_last_error(), all[i].part);
    }
    EXPECT_STATUS(DPR_OK, chain_check(&good));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, chain_check(NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_recursion_check(NULL, &good));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_recursion_check(&older, &good));
    EXPECT_CONTAINS(dpr_last_error(), "was compiled with dpr_recursion.cuh of version");
    EXPECT_STATUS(DPR_ERR_MISALIGNED,
                  chain_check((const dpr_recursion_outcome *)(const void *)((const char *)&good + 4)));
}

/* ---- Cancelled threads ---- */

static void pass_cancellation_point(void *user, const dpr_recursion_event *e) {
    (void)e;
    pthread_testcancel();
    atomic_fetch_add((atomic_int *)user, 1);
}

typedef struct cancelled_run {
    const char *engine;
    atomic_int events, completed, survived;
    uint64_t result;
} cancelled_run;

static void *run_with_pending_request(void *user) {
    cancelled_run *r = user;
    scene s = begin(r->engine);
    const uint64_t root = 1000;
    s.options.threads = 2;
    s.options.trace = pass_cancellation_point;
    s.options.trace_user = &r->events;
    (void)pthread_cancel(pthread_self());
    if (chain_run(s.ctx, &root, 1, NULL, &r->result, &s.options, NULL, NULL) == DPR_OK)
        atomic_store(&r->completed, 1);
    int unused;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
    end(&s);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &unused);
    pthread_testcancel();
    atomic_store(&r->survived, 1);
    return NULL;
}

/* The caller's functions may be cancellation points; the request takes effect after the run. */
TEST(Recursion, a_cancelled_thread_completes_its_run) {
    for (int e = 0; e < 2; e++) {
        cancelled_run r = {.engine = engines[e]};
        pthread_t thread;
        ASSERT_TRUE(pthread_create(&thread, NULL, run_with_pending_request, &r) == 0);
        EXPECT_TRUE(pthread_join(thread, NULL) == 0);
        EXPECT_TRUE(atomic_load(&r.events) > 0);
        EXPECT_EQ_I64(1, atomic_load(&r.completed));
        EXPECT_EQ_I64(0, atomic_load(&r.survived));
        EXPECT_EQ_U64(1001, r.result);
    }
}

TEST(Recursion, engines_have_names) {
    EXPECT_TRUE(dpr_engine_count() >= 2);
    for (size_t i = 0; i < dpr_engine_count(); i++)
        EXPECT_TRUE(dpr_engine_name(i) != NULL && dpr_engine_text(i) != NULL);
    EXPECT_TRUE(dpr_engine_name(dpr_engine_count()) == NULL && dpr_engine_text(dpr_engine_count()) == NULL);
}

TEST(Recursion, ladders) {
    for (int e = 0; e < 2; e++) {
        scene s = begin(engines[e]);
        const uint64_t root = 100000;
        uint64_t result = 0;
        EXPECT_STATUS(DPR_OK, ladder_run(s.ctx, &root, 1, NULL, &result, &s.options, &s.report, NULL));
        EXPECT_EQ_U64(200001, result);
        end(&s);
    }
}

static atomic_int stopping;

static void *run_until_stopped(void *argument) {
    scene *s = argument;
    const uint64_t root = 3;
    uint64_t result = 4;
    while (!atomic_load(&stopping) && result == 4)
        if (chain_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL) != DPR_OK)
            result = 0;
    return result == 4 ? argument : NULL;
}

static int runs_in_a_child(scene *s) {
    const uint64_t root = 5;
    uint64_t result = 0;
    (void)alarm(20);
    return chain_run(s->ctx, &root, 1, NULL, &result, &s->options, NULL, NULL) == DPR_OK && result == 6 ? 0 : 1;
}

/* A child is forked while other threads choose engines and note what runs have taken. */
TEST(Recursion, runs_in_forked_processes) {
    enum { THREADS = 3, FORKS = 500 };
    pthread_t threads[THREADS];
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer's allocator stays locked in the child if another thread was in it at the fork");
#endif
    scene s = begin("serial");
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_create(&threads[i], NULL, run_until_stopped, &s));
    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();
        int status = -1;
        ASSERT_TRUE(child >= 0);
        if (child == 0)
            _exit(runs_in_a_child(&s));
        ASSERT_EQ_I64(child, waitpid(child, &status, 0));
        ASSERT_EQ_I64(0, status);
    }
    atomic_store(&stopping, 1);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        EXPECT_EQ_I64(0, pthread_join(threads[i], &result));
        EXPECT_TRUE(result == &s);
    }
    end(&s);
}

static void fork_once(void *user, const dpr_recursion_event *event) {
    pid_t *child = user;
    (void)event;
    if (*child < 0)
        *child = fork();
}

/* The child ends the run that forked, and then does another, of fewer roots. */
TEST(Recursion, a_run_that_forks) {
    scene s = begin("serial");
    const uint64_t roots[] = {100000, 1, 2, 3};
    uint64_t results[] = {0, 0, 0, 0};
    pid_t child = -1;
    int status = -1;
    s.options.trace = fork_once;
    s.options.trace_user = &child;
    EXPECT_STATUS(DPR_OK, chain_run(s.ctx, roots, LENGTH(roots), NULL, results, &s.options, NULL, NULL));
    EXPECT_TRUE(results[0] == 100001 && results[3] == 4);
    if (child == 0) {
        s.options.trace = NULL;
        (void)alarm(60);
        _exit(chain_run(s.ctx, roots, 1, NULL, results, &s.options, NULL, NULL) == DPR_OK ? 0 : 1);
    }
    ASSERT_TRUE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ_I64(0, status);
    end(&s);
}

/* ---- All at once ---- */

TEST(Recursion, threads_at_once) {
    stress_recursions(DPR_DEVICE_CPU, NULL, NULL);
}
