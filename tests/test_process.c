/* How the library lives in a process: threads that are cancelled, exit(), fork() at awkward moments. Each case has a
 * process of its own. */
#define _GNU_SOURCE /* memfd_create(), setenv(), syscall() */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/processors.h"
#include "process.h"
#include "support.h"

/* Large enough for cpu.threads to use its workers. */
enum { COUNT = 3000001, THREADS = 4 };

static int32_t ones[COUNT];

static void fill_ones(void) {
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
}

/* Runs `body` in a child that must end with 0 within a minute. */
static void in_child(const char *what, int (*body)(void)) {
    (void)fflush(NULL);
    const pid_t child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        fill_ones();
        _exit(body());
    }
    int status = -1;
    EXPECT_EQ_I64(child, waitpid(child, &status, 0));
    EXPECT_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ended with status 0x%x", what,
                (unsigned)status);
}

static dpr_status reduce_small(void) {
    int64_t sum = -1;
    const dpr_status status = dpr_reduce(ones, &sum, 16, DPR_I32, DPR_SUM);
    return status != DPR_OK || sum == 16 ? status : DPR_ERR_CUDA;
}

/* With cpu.threads; DPR_ERR_CUDA for a wrong sum. */
static dpr_status reduce_large_on(dpr_ctx *ctx) {
    int64_t sum = -1;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.threads";
    const dpr_status status = dpr_reduce_ex(ctx, ones, &sum, COUNT, DPR_I32, DPR_SUM, &options);
    return status != DPR_OK || sum == COUNT ? status : DPR_ERR_CUDA;
}

/* The same in a context of its own, with so many threads. */
static dpr_status reduce_large(const char *threads) {
    dpr_ctx *ctx = NULL;
    if (setenv("DPR_NUM_THREADS", threads, 1) != 0)
        return DPR_ERR_OUT_OF_MEMORY;
    dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    if (status == DPR_OK)
        status = reduce_large_on(ctx);
    dpr_ctx_destroy(ctx);
    return status;
}

/* ---- Cancelled threads ---- */

static dpr_status make_context(void) {
    dpr_ctx *ctx = NULL;
    const dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status make_plan(void) {
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.count = COUNT;
    dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    if (status == DPR_OK)
        status = dpr_plan_create(ctx, &problem, &plan);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
    return status;
}

static dpr_status start_workers(void) {
    return reduce_large("4");
}

static dpr_status start_more_workers(void) {
    return reduce_large("6");
}

static dpr_status ask_for_node(void) {
    (void)dpr_numa_node_of_pci("0000:00:00.0");
    return DPR_OK;
}

static dpr_status shut_down(void) {
    dpr_shutdown();
    return DPR_OK;
}

typedef struct cancelled_call {
    const char *name;
    dpr_status (*before)(void); /* NULL: this is the first call of the process */
    dpr_status (*call)(void);
} cancelled_call;

static const cancelled_call cancelled_calls[] = {
    {"dpr_reduce", NULL, reduce_small},
    {"dpr_ctx_create", NULL, make_context},
    {"dpr_plan_create", NULL, make_plan},
    {"starting the workers", NULL, start_workers},
    {"starting more workers", start_workers, start_more_workers},
    {"the node of a PCI device", make_context, ask_for_node},
    {"dpr_shutdown", start_workers, shut_down},
};

static const cancelled_call *cancelled;
static atomic_int completed, survived;

static void *call_with_pending_request(void *argument) {
    (void)pthread_cancel(pthread_self());
    if (cancelled->call() == DPR_OK)
        atomic_store(&completed, 1);
    pthread_testcancel();
    atomic_store(&survived, 1);
    return argument;
}

static int grandchild_reduces(void) {
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        _exit(reduce_small() != DPR_OK);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int outlives_a_cancelled_call(void) {
    pthread_t thread;
    void *result = NULL;
    if (cancelled->before && cancelled->before() != DPR_OK)
        return 1;
    const int files = count_files();
    if (pthread_create(&thread, NULL, call_with_pending_request, NULL) != 0 || pthread_join(thread, &result) != 0)
        return 2;
    if (result != PTHREAD_CANCELED || atomic_load(&survived))
        return 3;
    if (!atomic_load(&completed))
        return 4;
    if (dpr_device_absent() && count_files() != files) /* a driver keeps files open */
        return 5;
    if (!grandchild_reduces())
        return 6;
    return reduce_small() == DPR_OK && reduce_large("5") == DPR_OK ? 0 : 7;
}

TEST(Cancel, requests_stay_pending_in_calls) {
    for (size_t i = 0; i < LENGTH(cancelled_calls); i++) {
        cancelled = &cancelled_calls[i];
        in_child(cancelled->name, outlives_a_cancelled_call);
    }
}

/* ---- The end of the program ---- */

static dpr_ctx *shared;

/* 1 if the sum is right, and all workers are there. */
static int reduces_with_workers(void) {
    long id;
    if (setenv("DPR_NUM_THREADS", "4", 1) != 0 || dpr_ctx_create(DPR_DEVICE_CPU, &shared) != DPR_OK
        || reduce_large_on(shared) != DPR_OK)
        return 0;
    for (int i = 0; i < 10000 && count_workers(&id) < THREADS; i++)
        (void)usleep(1000);
    return count_workers(&id) == THREADS;
}

static atomic_int stopping;

static void *reduce_until_stopped(void *argument) {
    dpr_status status = DPR_OK;
    while (!atomic_load(&stopping) && status == DPR_OK) {
        status = reduce_large_on(shared);
        if (status == DPR_OK)
            status = reduce_small();
    }
    return argument;
}

static int exits_while_others_reduce(void) {
    pthread_t thread;
    if (!reduces_with_workers())
        return 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, NULL, reduce_until_stopped, NULL) != 0)
            return 2;
    (void)usleep((useconds_t)getpid() * 137 % 20000); /* another moment in every child */
    exit(0);
}

TEST(Exit, while_other_threads_reduce) {
    for (int i = 0; i < 5; i++)
        in_child("exit()", exits_while_others_reduce);
}

/* Called by exit(). */
static void use_everything(void) {
    if (reduce_small() != DPR_OK || reduce_large_on(shared) != DPR_OK)
        _exit(3);
    dpr_shutdown();
    if (reduce_small() != DPR_OK || reduce_large_on(shared) != DPR_OK)
        _exit(4);
}

/* In the first thread that comes here; exit() is not for several. */
static void exit_from_handler(int signal) {
    static atomic_flag exiting = ATOMIC_FLAG_INIT;
    (void)signal;
    while (atomic_flag_test_and_set(&exiting))
        (void)pause();
    exit(0); /* not allowed here, and common */
}

static int exit_on_bus_errors(void) {
    const struct sigaction action = {.sa_handler = exit_from_handler};
    return atexit(use_everything) == 0 && sigaction(SIGBUS, &action, NULL) == 0;
}

/* The file ends at `bytes` of the array's. */
static const int32_t *map_too_much(off_t bytes) {
    const int file = memfd_create("array", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, bytes) != 0)
        return NULL;
    const void *map = mmap(NULL, sizeof ones, PROT_READ, MAP_SHARED, file, 0);
    return map == MAP_FAILED ? NULL : map;
}

static int exits_in_a_call(off_t readable) {
    int64_t sum;
    dpr_options options = DPR_OPTIONS_INIT;
    const int32_t *in = map_too_much(readable);
    options.strategy = "cpu.threads";
    if (!in || !reduces_with_workers() || !exit_on_bus_errors())
        return 1;
    (void)dpr_reduce_ex(shared, in, &sum, COUNT, DPR_I32, DPR_SUM, &options);
    return 2;
}

/* The array begins with a readable page, because calls on machines with a CUDA driver refuse pointers that they cannot
 * read. */
static int exits_in_the_first_part(void) {
    return exits_in_a_call(4096);
}

static int exits_in_the_last_part(void) {
    return exits_in_a_call((off_t)(sizeof ones - sizeof ones / 16));
}

/* The caller's handler, or a worker's, calls exit(): the call never returns. */
TEST(Exit, in_a_call) {
#if defined(__SANITIZE_THREAD__)
    SKIP("ThreadSanitizer takes exit() in a signal handler for a fault");
#endif
    for (int i = 0; i < 10; i++) {
        in_child("a fault in the first part", exits_in_the_first_part);
        in_child("a fault in the last part", exits_in_the_last_part);
    }
}

static int exits_on_an_idle_worker(void) {
    long worker = 0;
    if (!reduces_with_workers() || !exit_on_bus_errors())
        return 1;
    if (count_workers(&worker) == 0 || syscall(SYS_tgkill, getpid(), worker, SIGBUS) != 0)
        return 2;
    for (;;)
        (void)pause();
}

TEST(Exit, on_an_idle_worker) {
#if defined(__SANITIZE_THREAD__)
    SKIP("ThreadSanitizer takes exit() in a signal handler for a fault");
#endif
    in_child("exit() on a worker", exits_on_an_idle_worker);
}

static int late_calls;

/* Runs after the library's own destructor, which has the same priority: those of objects that are linked later run
 * first. */
__attribute__((destructor(101))) static void call_late(void) {
    if (!late_calls)
        return;
    long id;
    if (count_workers(&id) != 0)
        _exit(5);
    const int threads = count_threads();
    use_everything();
    if (count_threads() != threads)
        _exit(6); /* new ones would run code that is about to be unmapped */
}

static int exits_and_calls_later(void) {
    late_calls = 1;
    if (!reduces_with_workers())
        return 1;
    exit(0);
}

TEST(Exit, ends_idle_workers_and_later_calls_start_none) {
    in_child("calls of a later destructor", exits_and_calls_later);
}

static int child_exits(pid_t child) {
    int status = -1;
    if (child == 0) {
        (void)alarm(20);
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* The second child comes about without the handlers of fork(), as those of some sandboxes do. */
static int children_exit(void) {
    if (!reduces_with_workers())
        return 1;
    if (!child_exits(fork()))
        return 2;
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    if (!child_exits((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)))
        return 3;
#endif
    return reduce_large_on(shared) == DPR_OK ? 0 : 4;
}

TEST(Exit, in_children) {
    in_child("children that exit", children_exit);
}

/* ---- fork() ---- */

extern __typeof__(pthread_atfork) __wrap_pthread_atfork, __real_pthread_atfork;

static atomic_int registering_slowly, registered;

/* Stands between the library and pthread_atfork(). */
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    const int result = __real_pthread_atfork(prepare, parent, child);
    atomic_store(&registered, 1);
    if (atomic_load(&registering_slowly))
        (void)usleep(100000);
    return result;
}

/* Stays until the fork is over: ThreadSanitizer would miss a join in the child. */
static void *first_call(void *argument) {
    const dpr_status status = reduce_small();
    while (!atomic_load(&stopping))
        (void)usleep(1000);
    return status == DPR_OK ? argument : NULL;
}

/* A child forked when a handler has just been registered must not register it again: its own children would find the
 * lock taken twice. */
static int forks_in_the_first_call(void) {
    pthread_t thread;
    void *result = NULL;
    atomic_store(&registering_slowly, 1);
    if (pthread_create(&thread, NULL, first_call, ones) != 0)
        return 1;
    (void)usleep(50000);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(20);
        _exit(reduce_small() == DPR_OK && grandchild_reduces() ? 0 : 1);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 2;
    atomic_store(&stopping, 1);
    return pthread_join(thread, &result) == 0 && result ? 0 : 3;
}

TEST(Fork, handlers_are_registered_once) {
    EXPECT_TRUE(atomic_load(&registered)); /* this program sees it */
    in_child("fork() in the first call", forks_in_the_first_call);
}

/* The forking thread had `files` open. ThreadSanitizer ends a process that starts threads after it was forked from one
 * with threads. */
static int reduces_in_a_child(int files) {
    if (count_files() != files)
        return 1;
    if (reduce_small() != DPR_OK || make_context() != DPR_OK)
        return 2;
#if !defined(__SANITIZE_THREAD__)
    if (reduce_large_on(shared) != DPR_OK)
        return 3;
#endif
    dpr_shutdown();
    return reduce_small() == DPR_OK ? 0 : 4;
}

static void *make_contexts_until_stopped(void *argument) {
    dpr_status status = DPR_OK;
    while (!atomic_load(&stopping) && status == DPR_OK)
        status = make_context();
    return argument;
}

/* 0, or what the first child that failed returned. */
static int fork_often(int files) {
    int status = 0;
    for (int i = 0; i < 100 && status == 0; i++) {
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(20);
            _exit(reduces_in_a_child(files));
        }
        status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

static int forks_while_others_call(void) {
    pthread_t thread[THREADS];
    if (!reduces_with_workers() || unsetenv("DPR_NUM_THREADS") != 0)
        return 10;
    const int files = count_files();
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, i % 2 ? make_contexts_until_stopped : reduce_until_stopped, NULL) != 0)
            return 11;
    const int status = fork_often(files);
    atomic_store(&stopping, 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_join(thread[i], NULL) != 0)
            return 12;
    return status;
}

TEST(Fork, while_other_threads_call) {
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer's allocator stays locked in the child if another thread was in it at the fork");
#endif
    in_child("fork() while others call", forks_while_others_call);
}
