/* Every allocation of host memory is made to fail, one after the other, by standing between the library and malloc().
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

extern __typeof__(malloc) __wrap_malloc, __real_malloc;
extern __typeof__(calloc) __wrap_calloc, __real_calloc;
extern __typeof__(realloc) __wrap_realloc, __real_realloc;
extern __typeof__(aligned_alloc) __wrap_aligned_alloc, __real_aligned_alloc;
extern int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
extern int __real_posix_memalign(void **out, size_t alignment, size_t size);

static int calls, fail_at;

static int fails(void) {
    return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == fail_at;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    return fails() ? 12 : __real_posix_memalign(out, alignment, size);
}

enum { RIGHT, WRONG, NOTHING_FAILED, COUNT = 2000003 };

static int32_t in[COUNT];

/* A status with everything as it was, or the right result. */
static int is_right(const char *what, dpr_status status, const int64_t *out) {
    const int64_t result = *out;
    if (status == DPR_OK && result == COUNT)
        return 1;
    if (status == DPR_ERR_OUT_OF_MEMORY && result == -1 && dpr_last_error()[0])
        return 1;
    printf("%s: %s, result %lld, last error \"%s\"\n", what, dpr_status_name(status), (long long)result,
           dpr_last_error());
    return 0;
}

static int scenario(int fail) {
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_machine *machine = NULL;
    dpr_decision *decision = NULL;
    int64_t simple = -1, threads = -1, planned = -1;
    int good = 1;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.strategy = "cpu.threads";
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    calls = 0;
    fail_at = fail;
    good &= is_right("dpr_reduce", dpr_reduce(in, &simple, COUNT, DPR_I32, DPR_SUM), &simple);
    dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    if (status == DPR_OK) {
        good &= is_right("cpu.threads", dpr_reduce_ex(ctx, in, &threads, COUNT, DPR_I32, DPR_SUM, &options), &threads);
        status = dpr_plan_create(ctx, &problem, &plan);
        if (status == DPR_OK)
            good &= is_right("dpr_plan_run", dpr_plan_run(plan, in, &planned, NULL), &planned);
    }
    if (status == DPR_OK)
        status = dpr_machine_read(DPR_DEVICE_CPU, 1, &machine);
    if (status == DPR_OK)
        status = dpr_decision_create(machine, &problem, &decision);
    good &= status == DPR_OK ? decision != NULL : status == DPR_ERR_OUT_OF_MEMORY && !decision;
    const int failed = calls >= fail;
    fail_at = 0;
    simple = -1;
    good &= dpr_reduce(in, &simple, COUNT, DPR_I32, DPR_SUM) == DPR_OK && simple == COUNT;
    dpr_decision_destroy(decision);
    dpr_machine_destroy(machine);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
    dpr_shutdown();
    return !good ? WRONG : failed ? RIGHT : NOTHING_FAILED;
}

TEST(Allocations, every_failure_is_a_status) {
    for (int i = 0; i < COUNT; i++)
        in[i] = 1;
    int outcome = RIGHT, fail = 1;
    for (; fail < 1000 && outcome == RIGHT; fail++) {
        (void)fflush(NULL);
        const pid_t child = fork();
        ASSERT_TRUE(child >= 0);
        if (child == 0) {
            (void)alarm(60);
            const int ended = scenario(fail);
            (void)fflush(NULL);
            _exit(ended);
        }
        int status = -1;
        ASSERT_EQ_I64(child, waitpid(child, &status, 0));
        outcome = WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
        EXPECT_THAT(outcome != WRONG, "allocation %d failing: the child ended with 0x%x", fail, (unsigned)status);
    }
    EXPECT_THAT(fail > 3 && fail < 1000, "%d allocations", fail);
}
