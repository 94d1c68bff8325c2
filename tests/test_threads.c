/* Threads, forked processes, shutting down and starting again. */
#define _GNU_SOURCE /* setenv(), fork() */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "cpu/cores.h"
#include "cpu/pool.h"
#include "process.h"
#include "support.h"

enum { THREADS = 16, CALLS = 200 };

/* Large enough for cpu.threads to use its workers. */
enum { COUNT = 3000001 };

static int32_t *ramp(void) {
    int32_t *in = malloc(COUNT * sizeof *in);
    for (int32_t i = 0; in && i < COUNT; i++)
        in[i] = i % 1000;
    return in;
}

static int64_t ramp_sum(void) {
    return (int64_t)(COUNT / 1000) * 499500 + 0; /* and the element 0 of one more period */
}

/* With cpu.threads: 1 if the sum is right. */
static int reduce_ramp(dpr_ctx *ctx, const int32_t *in) {
    int64_t sum = -1;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.threads";
    return dpr_reduce_ex(ctx, in, &sum, COUNT, DPR_I32, DPR_SUM, &options) == DPR_OK && sum == ramp_sum();
}

/* ---- Threads ---- */

static void *call_often(void *argument) {
    dpr_ctx *ctx = argument;
    static const char *const strategies[] = {NULL, "cpu.serial", "cpu.simd", "cpu.threads"};
    int32_t in[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = i;
    for (int i = 0; i < CALLS; i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        int64_t result = -1;
        const size_t n = (size_t)(i * 37 % 1000) + 1;
        options.strategy = strategies[i % 4];
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, &result, n, DPR_I32, DPR_SUM, &options));
        EXPECT_EQ_I64((int64_t)n * ((int64_t)n - 1) / 2, result);
        EXPECT_STATUS(DPR_OK, dpr_reduce(in, &result, n, DPR_I32, DPR_ARGMAX));
        EXPECT_EQ_I64((int64_t)n - 1, result);
    }
    return NULL;
}

/* The CPUs of the thread that does a part; each thread does one, because it waits until all are begun. */
typedef struct places {
    atomic_int begun;
    cpu_set_t of[2];
} places;

static void note_place(void *user, int part, dpr_pool_cell *cell) {
    places *p = user;
    (void)cell;
    (void)sched_getaffinity(0, sizeof p->of[part], &p->of[part]);
    (void)atomic_fetch_add(&p->begun, 1);
    for (int i = 0; i < 10000 && atomic_load(&p->begun) < 2; i++)
        (void)usleep(1000);
}

/* Two threads of a larger pool are on two cores, wherever the caller is. */
TEST(Threads, few_of_a_large_pool_are_on_different_cores) {
    cpu_set_t all;
    const int cores = dpr_cores_count();
    if (cores < 2)
        SKIP("one core");
    ASSERT_TRUE(dpr_pool_shutdown() && sched_getaffinity(0, sizeof all, &all) == 0);
    for (int core = 0; core < cores; core += cores - 1) {
        places p = {.begun = 0};
        dpr_pool *const pool = dpr_pool_acquire(16 * (cores < 32 ? cores : 32));
        ASSERT_TRUE(pool);
        dpr_cores_pin(core);
        (void)dpr_pool_run(pool, 2, 2, note_place, &p);
        dpr_pool_release(pool);
        EXPECT_EQ_I64(2, atomic_load(&p.begun));
        EXPECT_TRUE(!CPU_EQUAL(&p.of[0], &p.of[1]));
        EXPECT_TRUE(sched_setaffinity(0, sizeof all, &all) == 0);
    }
    ASSERT_TRUE(dpr_pool_shutdown());
}

TEST(Threads, many_share_a_context) {
    dpr_ctx *ctx = NULL;
    pthread_t thread[THREADS];
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (int t = 0; t < THREADS; t++)
        ASSERT_EQ_I64(0, pthread_create(&thread[t], NULL, call_often, ctx));
    for (int t = 0; t < THREADS; t++)
        EXPECT_EQ_I64(0, pthread_join(thread[t], NULL));
    dpr_ctx_destroy(ctx);
    dpr_shutdown();
}

#if defined(__x86_64__)
/* Subnormal numbers count, also where the caller's thread takes them for zero, as in programs that GCC links with
 * -ffast-math; and the thread's mode stays as it is. */
TEST(Threads, results_do_not_depend_on_the_mode_of_the_caller) {
    enum { NUMBERS = 1 << 20, FLUSH = 0x9fc0 };
    static const char *const strategies[] = {"cpu.serial", "cpu.simd", "cpu.threads"};
    dpr_ctx *ctx = NULL;
    float *in = malloc(NUMBERS * sizeof *in);
    const unsigned before = _mm_getcsr();
    ASSERT_TRUE(in != NULL);
    for (int i = 0; i < NUMBERS; i++)
        in[i] = 0x1p-130F;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (int i = 0; i < 30; i++) {
        dpr_options options = DPR_OPTIONS_INIT;
        float sum = 0, one = 0;
        int64_t count = 0;
        uint64_t partial[8];
        options.strategy = strategies[i % 3];
        _mm_setcsr(FLUSH);
        const dpr_status summed = dpr_reduce_ex(ctx, in, &sum, NUMBERS, DPR_F32, DPR_SUM, &options);
        const dpr_status counted = dpr_reduce_ex(ctx, in, &count, 37, DPR_F32, DPR_COUNT, &options);
        const dpr_status parted = dpr_reduce_partial(ctx, in, partial, 1, DPR_F32, DPR_SUM, 0, &options);
        const dpr_status finished = dpr_partial_finish(partial, 1, DPR_F32, DPR_SUM, NULL, &one);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_TRUE(summed == DPR_OK && counted == DPR_OK && parted == DPR_OK && finished == DPR_OK);
        EXPECT_TRUE(one == in[0]);
        EXPECT_EQ_I64(FLUSH, after & ~0x3fU); /* but for the flags */
        EXPECT_THAT(sum == 0x1p-110F, "%s: %g", options.strategy, (double)sum);
        EXPECT_EQ_I64(37, count);
    }
    dpr_ctx_destroy(ctx);
    free(in);
}
#endif

typedef struct ramp_job {
    dpr_ctx *ctx;
    const int32_t *in;
} ramp_job;

static void *reduce_ramp_often(void *argument) {
    const ramp_job *job = argument;
    for (int i = 0; i < 5; i++)
        EXPECT_TRUE(reduce_ramp(job->ctx, job->in));
    return NULL;
}

TEST(Threads, many_use_the_workers_at_once) {
    ramp_job job = {NULL, ramp()};
    pthread_t thread[THREADS];
    ASSERT_TRUE(job.in != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &job.ctx));
    for (int t = 0; t < THREADS; t++)
        ASSERT_EQ_I64(0, pthread_create(&thread[t], NULL, reduce_ramp_often, &job));
    for (int t = 0; t < THREADS; t++)
        EXPECT_EQ_I64(0, pthread_join(thread[t], NULL));
    dpr_ctx_destroy(job.ctx);
    dpr_shutdown();
    free((void *)(uintptr_t)job.in);
}

static void *fail_and_look(void *argument) {
    const int op = *(const int *)argument;
    char wanted[32];
    double in = 0, out = 0;
    (void)snprintf(wanted, sizeof wanted, "op is %d", op);
    EXPECT_EQ_STR("", dpr_last_error());
    for (int i = 0; i < CALLS; i++) {
        EXPECT_STATUS(DPR_ERR_INVALID_OP, dpr_reduce(&in, &out, 1, DPR_F64, (dpr_op)op));
        EXPECT_CONTAINS(dpr_last_error(), wanted);
    }
    return NULL;
}

TEST(Threads, each_has_its_last_error) {
    pthread_t thread[THREADS];
    int op[THREADS];
    for (int t = 0; t < THREADS; t++) {
        op[t] = 100 + t;
        ASSERT_EQ_I64(0, pthread_create(&thread[t], NULL, fail_and_look, &op[t]));
    }
    for (int t = 0; t < THREADS; t++)
        EXPECT_EQ_I64(0, pthread_join(thread[t], NULL));
}

/* ---- Shutting down ---- */

static void *idle_thread(void *argument) {
    return argument;
}

TEST(Shutdown, ends_the_workers_and_the_next_call_starts_them) {
    dpr_ctx *ctx = NULL;
    int32_t *in = ramp();
    pthread_t thread;
    ASSERT_TRUE(in != NULL);
    /* With a process's first thread ThreadSanitizer starts one of its own, and so does a driver that is looked for.
     * They are not to be counted as ours. */
    ASSERT_TRUE(pthread_create(&thread, NULL, idle_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    (void)dpr_device_count();
    const int before = count_threads();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_EQ_I64(before, count_threads()); /* none until they are needed */
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(reduce_ramp(ctx, in));
        dpr_shutdown();
        EXPECT_EQ_I64(before, count_threads());
    }
    dpr_shutdown(); /* of nothing */
    dpr_ctx_destroy(ctx);
    free(in);
}

TEST(Shutdown, after_the_simple_call) {
    const float in[] = {1, 2, 3};
    float out = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(DPR_OK, dpr_reduce(in, &out, 3, DPR_F32, DPR_SUM));
        EXPECT_NEAR_F64(6.0, (double)out, 0.0);
        dpr_shutdown();
    }
}

/* ---- Processes ---- */

/* Runs `body` in a child that must end with 0 within a minute. */
static void in_child(int (*body)(dpr_ctx *ctx, const int32_t *in), dpr_ctx *ctx, const int32_t *in) {
    const pid_t child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        _exit(body(ctx, in));
    }
    int status = -1;
    EXPECT_EQ_I64(child, waitpid(child, &status, 0));
    EXPECT_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x", (unsigned)status);
}

static int child_reduces(dpr_ctx *ctx, const int32_t *in) {
    return reduce_ramp(ctx, in) && reduce_ramp(ctx, in) ? 0 : 1;
}

static int child_shuts_down(dpr_ctx *ctx, const int32_t *in) {
    dpr_shutdown();
    return child_reduces(ctx, in);
}

TEST(Fork, child_and_parent_reduce) {
#ifdef __SANITIZE_THREAD__
    SKIP("ThreadSanitizer ends a process that starts threads after it was forked from one with threads");
#endif
    dpr_ctx *ctx = NULL;
    int32_t *in = ramp();
    ASSERT_TRUE(in != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_TRUE(reduce_ramp(ctx, in)); /* the workers run */
    in_child(child_reduces, ctx, in);
    EXPECT_TRUE(reduce_ramp(ctx, in));
    in_child(child_shuts_down, ctx, in);
    EXPECT_TRUE(reduce_ramp(ctx, in));
    dpr_ctx_destroy(ctx);
    dpr_shutdown();
    free(in);
}

static int child_with_threads(dpr_ctx *ctx, const int32_t *in, const char *setting, const char *expected) {
    (void)ctx;
    dpr_ctx *own = NULL;
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    char text[4096];
    size_t len = sizeof text;
    options.strategy = "cpu.threads";
    problem.count = COUNT;
    problem.options = &options;
    if (setenv("DPR_NUM_THREADS", setting, 1) != 0)
        return 2;
    if (dpr_ctx_create(DPR_DEVICE_CPU, &own) != DPR_OK)
        return 3;
    if (dpr_plan_create(own, &problem, &plan) != DPR_OK)
        return 4;
    if (dpr_plan_explain(plan, text, &len) != DPR_OK)
        return 5;
    if (expected && !strstr(text, expected))
        return 6;
    return reduce_ramp(own, in) ? 0 : 7;
}

static int child_one_thread(dpr_ctx *ctx, const int32_t *in) {
    return child_with_threads(ctx, in, "1", "1 thread\n");
}

static int child_two_threads(dpr_ctx *ctx, const int32_t *in) {
    return child_with_threads(ctx, in, "2", NULL);
}

static int child_bad_setting(dpr_ctx *ctx, const int32_t *in) {
    return child_with_threads(ctx, in, "many", NULL);
}

static int child_zero(dpr_ctx *ctx, const int32_t *in) {
    return child_with_threads(ctx, in, "0", NULL);
}

static int child_huge(dpr_ctx *ctx, const int32_t *in) {
    return child_with_threads(ctx, in, "99999999999999999999", NULL);
}

static void *first_call(void *in) {
    int64_t sum = -1;
    return dpr_reduce(in, &sum, 4096, DPR_I32, DPR_SUM) == DPR_OK ? in : NULL;
}

static int child_calls(dpr_ctx *ctx, const int32_t *in) {
    (void)ctx;
    int64_t sum = -1;
    return dpr_reduce(in, &sum, 4096, DPR_I32, DPR_SUM) != DPR_OK;
}

/* The fork falls into the making of the context, the topology and the choice, whose locks the child must not wait for.
 */
TEST(Fork, during_the_first_call) {
#if defined(__SANITIZE_THREAD__)
    SKIP("ThreadSanitizer ends a process that starts threads after it was forked from one with threads");
#elif defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer's allocator stays locked in the child if another thread was in it at the fork");
#endif
    int32_t *in = ramp();
    ASSERT_TRUE(in != NULL);
    for (unsigned i = 0; i < 60 && !test_failed(); i++) {
        pthread_t thread;
        void *result = NULL;
        dpr_shutdown();
        ASSERT_EQ_I64(0, pthread_create(&thread, NULL, first_call, in));
        (void)usleep(i * 137 % 6000); /* a first call takes some milliseconds */
        in_child(child_calls, NULL, in);
        EXPECT_EQ_I64(0, pthread_join(thread, &result));
        EXPECT_TRUE(result != NULL);
    }
    dpr_shutdown();
    free(in);
}

TEST(Fork, DPR_NUM_THREADS) {
    int32_t *in = ramp();
    ASSERT_TRUE(in != NULL);
    in_child(child_one_thread, NULL, in);
    in_child(child_two_threads, NULL, in);
    in_child(child_bad_setting, NULL, in);
    in_child(child_zero, NULL, in);
    in_child(child_huge, NULL, in);
    free(in);
}
