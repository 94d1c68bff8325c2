/* Every CUDA call that the library makes is made to fail, one after the other. Each time the library must give a status
 * and leave *out alone, or give the right result; and the next call must work. */
#define _GNU_SOURCE /* fork() */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/topology.h"
#include "fake_cuda.h"
#include "fake_kernel.h"
#include "gpu_memory.h"
#include "support.h"

enum { COUNT = 1000, FAR_DEVICE = 1, MOST_CALLS = 10000 };
static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2, canary = 0x5a5a5a5a;

/* What the scenarios work on; made before calls begin to fail. */
typedef struct scene {
    int32_t host[COUNT];
    int32_t *in[2];  /* on device 0 and 1 */
    int64_t *out[2]; /* device memory */
    int64_t *pinned_out;
    dpr_launch_report *pinned_nested;
    dpr_stream stream;
    const char *strategy; /* of the scenario */
} scene;

/* 1 if the outcome is right; else says what is not. */
static int is_right(const char *what, dpr_status status, int64_t result) {
    const char *failed = fake_failed_call();
    if (status == DPR_OK && result == expected_sum)
        return 1;
    if (status != DPR_OK && failed && result == canary && dpr_last_error()[0] && fake_last_error() == cudaSuccess)
        return 1;
    printf("%s: with %s failing: %s, *out is %lld, last error \"%s\", CUDA's last error %d\n", what,
           failed ? failed : "nothing", dpr_status_name(status), (long long)result, dpr_last_error(),
           (int)fake_last_error());
    return 0;
}

/* Reads a result from device memory. If that call is the one to fail, another will not. */
static int64_t read_out(const int64_t *out) {
    int64_t value = -1;
    if (!gpu_copy(&value, out, sizeof value))
        (void)gpu_copy(&value, out, sizeof value);
    return value;
}

/* Asked again if asking fails. */
static int stays_on(int device) {
    const char *failed = fake_failed_call();
    int current = gpu_current();
    if (current < 0)
        current = gpu_current();
    if (current != device)
        printf("the current device is %d, not %d, after %s failed\n", current, device, failed ? failed : "nothing");
    return current == device;
}

/* Whether the call that failed is the one without which the library's own calls spoil a capture. */
static int is_unprotected(void) {
    const char *failed = fake_failed_call();
    return failed && strcmp(failed, "cuThreadExchangeStreamCaptureMode") == 0;
}

/* ---- Scenarios: each makes calls of which number `fail` fails, and returns 1 if all that followed was right ---- */

typedef struct scenario {
    const char *name;
    int (*run)(scene *s, int fail, cudaError_t error);
    const char *strategy; /* that it runs; NULL: the planner's choice */
    int unmeasured;       /* 1: with a pool too small to measure in what nested launches cost, which is many calls */
} scenario;

/* The scenario's strategy, with a report to `report`; *launch is a part of the options. */
static dpr_options options_of(const scene *s, dpr_launch_report *report, dpr_launch_options *launch) {
    dpr_options options = DPR_OPTIONS_INIT;
    *launch = (dpr_launch_options)DPR_LAUNCH_OPTIONS_INIT;
    launch->report = report;
    options.strategy = s->strategy;
    options.launch = launch;
    memset(report, 0xee, sizeof *report);
    return options;
}

/* Whether a run that ended with `status` says that its kernels launched others if, and only if, it may; and nothing of
 * the kind if one of its own could not be launched. */
static int is_reported(const scene *s, dpr_status status, const dpr_launch_report *report) {
    const uint32_t launched = s->strategy && strncmp(s->strategy, "dp.", 3) == 0;
    const char *failed = fake_failed_call();
    const int partial = status != DPR_OK && failed && strcmp(failed, "cuLaunchKernelEx") == 0;
    if (partial ? report->launched != 1 : status != DPR_OK || (report->launched == launched && report->error == 0))
        return 1;
    printf("%s: %u launches are reported\n", s->strategy ? s->strategy : "auto", report->launched);
    return 0;
}

static int finish(const char *what, dpr_status status, const int64_t *out) {
    const int64_t result = read_out(out);
    return is_right(what, status, result);
}

/* dpr_reduce(), which makes its context by itself, from a thread on another device. */
static int run_simple(scene *s, int fail, cudaError_t error) {
    int64_t result = canary;
    fake_fail_call(fail, error);
    const dpr_status status = dpr_reduce(s->in[FAR_DEVICE], &result, COUNT, DPR_I32, DPR_SUM);
    const int good = is_right("dpr_reduce", status, result);
    return stays_on(0) && good;
}

static int run_simple_to_device(scene *s, int fail, cudaError_t error) {
    (void)gpu_copy(s->out[FAR_DEVICE], &canary, sizeof canary);
    fake_fail_call(fail, error);
    const dpr_status status = dpr_reduce(s->in[FAR_DEVICE], s->out[FAR_DEVICE], COUNT, DPR_I32, DPR_SUM);
    const int good = finish("dpr_reduce to device memory", status, s->out[FAR_DEVICE]);
    return stays_on(0) && good;
}

static int run_host_to_device(scene *s, int fail, cudaError_t error) {
    (void)gpu_copy(s->out[FAR_DEVICE], &canary, sizeof canary);
    fake_fail_call(fail, error);
    const dpr_status status = dpr_reduce(s->host, s->out[FAR_DEVICE], COUNT, DPR_I32, DPR_SUM);
    const int good = finish("dpr_reduce from host to device memory", status, s->out[FAR_DEVICE]);
    return stays_on(0) && good;
}

static int run_context(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    int64_t result = canary;
    int good = 1;
    dpr_launch_report report;
    dpr_launch_options launch;
    const dpr_options options = options_of(s, &report, &launch);
    fake_fail_call(fail, error);
    dpr_status status = dpr_ctx_create(FAR_DEVICE, &ctx);
    if (status == DPR_OK) {
        status = dpr_reduce_ex(ctx, s->in[FAR_DEVICE], &result, COUNT, DPR_I32, DPR_SUM, &options);
        good &= is_right("dpr_reduce_ex", status, result) && is_reported(s, status, &report);
    } else {
        good &= ctx == NULL && is_right("dpr_ctx_create", status, result);
    }
    good &= stays_on(0);
    fake_fail_call(0, cudaSuccess);
    if (ctx) { /* the context that saw the failure goes on working */
        result = canary;
        status = dpr_reduce_ex(ctx, s->in[FAR_DEVICE], &result, COUNT, DPR_I32, DPR_SUM, &options);
        good &=
            status == DPR_OK && is_right("dpr_reduce_ex afterwards", status, result) && is_reported(s, status, &report);
    }
    dpr_ctx_destroy(ctx);
    return good;
}

static int run_async(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    dpr_launch_options launch;
    const dpr_options options = options_of(s, s->pinned_nested, &launch);
    *s->pinned_out = canary;
    if (dpr_ctx_create(0, &ctx) != DPR_OK)
        return 0;
    fake_fail_call(fail, error);
    const dpr_status status =
        dpr_reduce_async(ctx, s->in[0], s->pinned_out, COUNT, DPR_I32, DPR_SUM, &options, s->stream);
    const char *failed = fake_failed_call();
    int good = fake_last_error() == cudaSuccess;
    if (!failed)
        fake_fail_call(0, cudaSuccess); /* the wait below is the test's own */
    good &= gpu_stream_wait(s->stream);
    good &= is_right("dpr_reduce_async", status, *s->pinned_out) && is_reported(s, status, s->pinned_nested);
    good &= stays_on(0);
    dpr_ctx_destroy(ctx);
    return good;
}

/* A partial result that a stream finishes; after a call that failed, nothing follows it. */
static int run_partial(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    uint64_t *partial = gpu_alloc(DPR_MEMORY_PINNED, dpr_partial_size(DPR_SUM, DPR_I32));
    *s->pinned_out = canary;
    if (!partial || dpr_ctx_create(0, &ctx) != DPR_OK)
        return 0;
    fake_fail_call(fail, error);
    dpr_status status = dpr_reduce_partial_async(ctx, s->in[0], partial, COUNT, DPR_I32, DPR_SUM, 0, NULL, s->stream);
    if (status == DPR_OK)
        status = dpr_partial_finish_async(ctx, partial, 1, DPR_I32, DPR_SUM, NULL, s->pinned_out, s->stream);
    if (!fake_failed_call())
        fake_fail_call(0, cudaSuccess);
    int good = fake_last_error() == cudaSuccess && gpu_stream_wait(s->stream);
    good &= is_right("partial result", status, *s->pinned_out) && stays_on(0);
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_PINNED, partial);
    return good;
}

/* Two operations with places in host and in device memory, of which the first is asked for in host memory. */
static int run_fused(scene *s, int fail, cudaError_t error) {
    static const dpr_op ops[] = {DPR_SUM, DPR_NORM1};
    dpr_ctx *ctx = NULL;
    int64_t result = canary;
    void *const outs[] = {&result, s->out[FAR_DEVICE]};
    (void)gpu_copy(s->out[FAR_DEVICE], &canary, sizeof canary);
    if (dpr_ctx_create(FAR_DEVICE, &ctx) != DPR_OK)
        return 0;
    fake_fail_call(fail, error);
    const dpr_status status = dpr_reduce_fused(ctx, s->in[FAR_DEVICE], outs, COUNT, DPR_I32, ops, LENGTH(ops), NULL);
    int good = is_right("dpr_reduce_fused, host memory", status, result);
    if (status == DPR_OK)
        good &= finish("dpr_reduce_fused, device memory", status, s->out[FAR_DEVICE]);
    good &= stays_on(0);
    dpr_ctx_destroy(ctx);
    return good;
}

static int run_plan(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_launch_options launch;
    const dpr_options options = options_of(s, s->pinned_nested, &launch);
    dpr_problem problem = DPR_PROBLEM_INIT;
    int good = 1;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.options = &options;
    *s->pinned_out = canary;
    if (dpr_ctx_create(FAR_DEVICE, &ctx) != DPR_OK)
        return 0;
    fake_fail_call(fail, error);
    dpr_status status = dpr_plan_create(ctx, &problem, &plan);
    if (status == DPR_OK) {
        status = dpr_plan_run(plan, s->in[FAR_DEVICE], s->pinned_out, NULL);
        if (!fake_failed_call())
            fake_fail_call(0, cudaSuccess);
        good &= gpu_stream_wait(NULL);
    } else {
        good &= plan == NULL;
    }
    good &= is_right("plan", status, *s->pinned_out) && is_reported(s, status, s->pinned_nested);
    good &= stays_on(0);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
    return good;
}

/* A call is captured; if it fails, the graph of the rest is instantiated, run and destroyed all the same. */
static int run_capture(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    dpr_launch_options launch;
    const dpr_options options = options_of(s, s->pinned_nested, &launch);
    *s->pinned_out = canary;
    if (dpr_ctx_create(0, &ctx) != DPR_OK || !gpu_capture_begin(s->stream))
        return 0;
    fake_fail_call(fail, error);
    const dpr_status status =
        dpr_reduce_async(ctx, s->in[0], s->pinned_out, COUNT, DPR_I32, DPR_SUM, &options, s->stream);
    if (!fake_failed_call())
        fake_fail_call(0, cudaSuccess);
    gpu_graph *graph = gpu_capture_end(s->stream);
    const int spoilt = !graph && is_unprotected();
    int good = spoilt || (graph && gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
    good &= is_right("captured call", status, *s->pinned_out) && is_reported(s, status, s->pinned_nested);
    gpu_graph_destroy(graph);
    dpr_ctx_destroy(ctx);
    return good;
}

/* Blocking calls in a stream, on device 0: `s->strategy` with an array that it reads, and a place for the result. */
static int call_in_stream(scene *s, const void *in, int64_t *out, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = s->strategy;
    options.stream = s->stream;
    if (dpr_ctx_create(0, &ctx) != DPR_OK || !gpu_copy(out, &canary, sizeof canary))
        return 0;
    fake_fail_call(fail, error);
    const dpr_status status = dpr_reduce_ex(ctx, in, out, COUNT, DPR_I32, DPR_SUM, &options);
    if (!fake_failed_call())
        fake_fail_call(0, cudaSuccess);
    int good = fake_last_error() == cudaSuccess && finish("a call in a stream", status, out);
    good &= stays_on(0) && gpu_stream_wait(s->stream);
    good &= status == DPR_OK || read_out(out) == canary;
    dpr_ctx_destroy(ctx);
    return good;
}

static int run_in_stream(scene *s, int fail, cudaError_t error) {
    int64_t result;
    return call_in_stream(s, s->in[0], &result, fail, error);
}

static int run_in_stream_to_device(scene *s, int fail, cudaError_t error) {
    return call_in_stream(s, s->in[0], s->out[0], fail, error);
}

static int run_in_stream_from_host(scene *s, int fail, cudaError_t error) {
    return call_in_stream(s, s->host, s->pinned_out, fail, error);
}

static int run_in_stream_from_host_to_device(scene *s, int fail, cudaError_t error) {
    return call_in_stream(s, s->host, s->out[0], fail, error);
}

/* ---- The limit of pending launches ---- */

enum { SMALL_LIMIT = 12, NEAR_LIMIT = 1000, FAR_LIMIT = 3000, SET_LIMIT = 4096 };

static size_t limit_of(int device) {
    size_t limit = 0;
    return gpu_use(device) && cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount) == cudaSuccess
                   && gpu_use(0)
               ? limit
               : 0;
}

static int set_limit_of(int device, size_t limit) {
    return gpu_use(device) && cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, limit) == cudaSuccess
           && gpu_use(0);
}

/* Whether the call that failed is one without which the library cannot get into a CUDA context. */
static int is_shut_out(void) {
    const char *failed = fake_failed_call();
    return failed && (strcmp(failed, "cuCtxGetId") == 0 || strcmp(failed, "cuCtxPushCurrent") == 0);
}

/* Whether the devices have the limits that they had. Where the library could not get to the device, or set the limit,
 * it could not put it back. */
static int limits_are_back(int was_set) {
    const char *failed = fake_failed_call();
    const int excused = failed && was_set && (is_shut_out() || strcmp(failed, "cudaDeviceSetLimit") == 0);
    fake_fail_call(0, cudaSuccess);
    const size_t near = limit_of(0), far = limit_of(FAR_DEVICE);
    if (near == NEAR_LIMIT && (far == FAR_LIMIT || (excused && far == SET_LIMIT)))
        return 1;
    printf("the limits are %zu and %zu after %s failed\n", near, far, failed ? failed : "nothing");
    return 0;
}

static int run_limit(scene *s, int fail, cudaError_t error) {
    dpr_ctx *ctx = NULL;
    dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    int64_t result = canary;
    options.pending_launches = SET_LIMIT;
    if (!set_limit_of(0, NEAR_LIMIT) || !set_limit_of(FAR_DEVICE, FAR_LIMIT))
        return 0;
    fake_fail_call(fail, error);
    const dpr_status status = dpr_ctx_create_ex(FAR_DEVICE, &options, &ctx);
    int good = status == DPR_OK ? ctx != NULL : ctx == NULL && is_right("dpr_ctx_create_ex", status, result);
    dpr_ctx_destroy(ctx);
    good &= stays_on(0);
    good &= limits_are_back(status == DPR_OK);
    /* Nobody's number stands in the way of another. */
    options.pending_launches = 2 * SET_LIMIT;
    ctx = NULL;
    good &= dpr_ctx_create_ex(FAR_DEVICE, &options, &ctx) == DPR_OK && limit_of(FAR_DEVICE) == 2 * SET_LIMIT;
    good &= dpr_reduce_ex(ctx, s->in[FAR_DEVICE], &result, COUNT, DPR_I32, DPR_SUM, NULL) == DPR_OK
            && result == expected_sum;
    dpr_ctx_destroy(ctx);
    return good;
}

static const scenario scenarios[] = {
    {"simple", run_simple, NULL, 0},
    {"simple_to_device", run_simple_to_device, NULL, 0},
    {"host_to_device", run_host_to_device, NULL, 0},
    {"context", run_context, "flat.ticket", 0},
    {"async", run_async, "flat.ticket", 0},
    {"partial", run_partial, NULL, 0},
    {"fused", run_fused, NULL, 0},
    {"plan", run_plan, NULL, 0},
    {"capture", run_capture, "flat.ticket", 0},
    {"limit", run_limit, NULL, 0},
    {"in_stream", run_in_stream, "flat.ticket", 0},
    {"in_stream_to_device", run_in_stream_to_device, "flat.block", 0},
    {"in_stream_from_host", run_in_stream_from_host, NULL, 0},
    {"in_stream_from_host_to_device", run_in_stream_from_host_to_device, "cpu.serial", 0},
    {"in_stream_tree", run_in_stream, "dp.tree", 1},
    {"context_tree", run_context, "dp.tree", 0},
    {"async_tree", run_async, "dp.tree", 1},
    {"plan_tree", run_plan, "dp.tree", 1},
    {"capture_tree", run_capture, "dp.tree", 1},
    {"async_recursive", run_async, "dp.recursive", 1},
    {"async_nosync", run_async, "dp.nosync", 1},
    {"async_recursive2", run_async, "dp.recursive2", 1},
    {"plan_recursive2", run_plan, "dp.recursive2", 1},
    {"capture_recursive2", run_capture, "dp.recursive2", 1},
};

/* ---- One scenario in a process of its own, as the library looks for a driver once in a process ---- */

enum { RIGHT = 0, WRONG = 1, NOTHING_FAILED = 2, LEAKED = 3, VIOLATED = 4 };

/* Whether more is alive than before. What could not be given back because that call itself failed does not count. */
static int leaked(int before) {
    static const char *const give_back[] = {"cudaFree",      "cudaFreeHost",       "cudaStreamDestroy",
                                            "cudaFreeAsync", "cudaMemPoolDestroy", "cudaEventDestroy"};
    const char *failed = fake_failed_call();
    int excused = 0;
    for (size_t i = 0; failed && i < LENGTH(give_back); i++)
        excused |= strcmp(failed, give_back[i]) == 0;
    const int now = fake_live_objects();
    if (now != before + excused)
        printf("%d objects before, %d afterwards; %s failed\n", before, now, failed ? failed : "nothing");
    return now != before + excused;
}

static int open_scene(scene *s) {
    int good = 1;
    for (int i = 0; i < COUNT; i++)
        s->host[i] = i + 1;
    for (int device = 0; device < 2; device++) {
        good &= gpu_use(device);
        s->in[device] = gpu_alloc(DPR_MEMORY_DEVICE, sizeof s->host);
        s->out[device] = gpu_alloc(DPR_MEMORY_DEVICE, sizeof(int64_t));
        good &= s->in[device] && s->out[device] && gpu_copy(s->in[device], s->host, sizeof s->host);
    }
    good &= gpu_use(0);
    s->pinned_out = gpu_alloc(DPR_MEMORY_PINNED, sizeof(int64_t));
    s->pinned_nested = gpu_alloc(DPR_MEMORY_PINNED, sizeof(dpr_launch_report));
    s->stream = gpu_stream_create();
    return good && s->pinned_out && s->pinned_nested && s->stream;
}

/* A scenario with call number `fail` failing. */
typedef struct attempt {
    const scenario *of;
    int fail;
    cudaError_t error;
    int loaded; /* 1: contexts that were there before have loaded their kernels, which is more than a thousand calls */
} attempt;

static int load_kernels(void) {
    int good = 1;
    for (int device = 0; device <= FAR_DEVICE; device++) {
        dpr_ctx *ctx = NULL;
        good &= dpr_ctx_create(device, &ctx) == DPR_OK;
        dpr_ctx_destroy(ctx);
    }
    return good;
}

static int run_one(const attempt *a) {
    const scenario *const of = a->of;
    scene s;
    int64_t result = canary;
    if (!open_scene(&s))
        return WRONG;
    s.strategy = of->strategy;
    if (of->unmeasured && !(set_limit_of(0, SMALL_LIMIT) && set_limit_of(FAR_DEVICE, SMALL_LIMIT)))
        return WRONG;
    if (dpr_reduce(s.host, &result, COUNT, DPR_I32, DPR_SUM) != DPR_OK)
        return WRONG; /* finds the driver */
    if (a->loaded && !load_kernels())
        return WRONG;
    dpr_shutdown();
    const int before = fake_live_objects();
    const int good = of->run(&s, a->fail, a->error);
    const int failed = fake_failed_call() != NULL;
    fake_fail_call(0, cudaSuccess);
    result = canary;
    const dpr_status status = dpr_reduce(s.in[FAR_DEVICE], &result, COUNT, DPR_I32, DPR_SUM);
    if (status != DPR_OK || result != expected_sum)
        printf("the next call: %s, result %lld, \"%s\"\n", dpr_status_name(status), (long long)result,
               dpr_last_error());
    if (!good || status != DPR_OK || result != expected_sum)
        return WRONG;
    dpr_shutdown();
    if (fake_violation()) {
        printf("%s\n", fake_violation());
        return VIOLATED;
    }
    if (!is_shut_out() && !is_unprotected() && leaked(before))
        return LEAKED;
    return failed ? RIGHT : NOTHING_FAILED;
}

static int in_child(const attempt *a) {
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        const int outcome = run_one(a);
        (void)fflush(NULL);
        _exit(outcome);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        printf("the child ended with 0x%x\n", (unsigned)status);
        return WRONG;
    }
    return WEXITSTATUS(status);
}

static void fail_every_call(void *context) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    /* What each child would do anew: the fake's list of kernels, and what is known of the processor. */
    (void)fake_kernel_known(NULL);
    (void)dpr_topology_get();
    for (int i = 0; i < 2 * (int)LENGTH(errors); i++) {
        attempt a = {.of = context, .fail = 1, .error = errors[i / 2], .loaded = i % 2};
        int outcome = RIGHT;
        while (a.fail < MOST_CALLS && outcome == RIGHT) {
            outcome = in_child(&a);
            EXPECT_THAT(outcome == RIGHT || outcome == NOTHING_FAILED, "%s: call %d failing with error %d: outcome %d",
                        a.of->name, a.fail, (int)a.error, outcome);
            a.fail += !a.loaded && a.fail > 60 ? 41 : 1; /* past the first ones only kernels are loaded */
        }
        EXPECT_THAT(a.fail > 3 && a.fail < MOST_CALLS, "%s: only %d calls", a.of->name, a.fail);
    }
}

TEST_GENERATOR(faults) {
    for (size_t i = 0; i < LENGTH(scenarios); i++)
        test_add(&(test_case){"Faults", scenarios[i].name, __FILE__, __LINE__, fail_every_call,
                              (void *)(uintptr_t)&scenarios[i], 0, NULL, NULL});
}

/* ---- The error itself ---- */

/* Calls dpr_reduce() with one CUDA call after another failing, until it ends with `wanted`. Returns whether it did. */
static int fail_some_call(const scene *s, cudaError_t error, dpr_status wanted) {
    for (int fail = 1; fail < 100; fail++) {
        int64_t result = canary;
        fake_fail_call(fail, error);
        const dpr_status status = dpr_reduce(s->in[0], &result, COUNT, DPR_I32, DPR_SUM);
        fake_fail_call(0, cudaSuccess);
        if (status == wanted)
            return 1;
    }
    return 0;
}

TEST(Faults, the_error_is_there_until_the_next_failure) {
    scene s;
    int64_t result = canary;
    ASSERT_TRUE(open_scene(&s));
    EXPECT_STATUS(DPR_OK, dpr_reduce(s.in[0], &result, COUNT, DPR_I32, DPR_SUM));
    EXPECT_TRUE(fail_some_call(&s, cudaErrorUnknown, DPR_ERR_CUDA));
    EXPECT_EQ_I64(cudaErrorUnknown, dpr_last_cuda_error());
    EXPECT_STATUS(DPR_OK, dpr_reduce(s.in[0], &result, COUNT, DPR_I32, DPR_SUM));
    EXPECT_EQ_I64(cudaErrorUnknown, dpr_last_cuda_error());
    EXPECT_TRUE(fail_some_call(&s, cudaErrorMemoryAllocation, DPR_ERR_OUT_OF_MEMORY));
    EXPECT_EQ_I64(cudaErrorMemoryAllocation, dpr_last_cuda_error());
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce(NULL, &result, COUNT, DPR_I32, DPR_SUM));
    EXPECT_EQ_I64(0, dpr_last_cuda_error());
    dpr_shutdown();
}

/* ---- Looking for the driver ---- */

static int discover(int fail) {
    const int32_t host[3] = {1, 2, 3};
    const int devices[] = {0, DPR_DEVICE_AUTO};
    fake_fail_call(fail, cudaErrorUnknown);
    for (size_t i = 0; i < LENGTH(devices); i++) {
        int64_t result = 0;
        dpr_ctx *ctx = NULL;
        const dpr_status status = dpr_ctx_create(devices[i], &ctx);
        fake_fail_call(0, cudaSuccess);
        if (status != DPR_OK && (ctx || !dpr_last_error()[0] || devices[i] == DPR_DEVICE_AUTO))
            return WRONG;
        if (status != DPR_OK)
            continue;
        if (dpr_reduce_ex(ctx, host, &result, 3, DPR_I32, DPR_SUM, NULL) != DPR_OK || result != 6)
            return WRONG;
        dpr_ctx_destroy(ctx);
    }
    dpr_shutdown();
    return leaked(0) ? LEAKED : fake_failed_call() ? RIGHT : NOTHING_FAILED;
}

TEST(Faults, discovery) {
    int outcome = RIGHT, call = 1;
    for (; call < 200 && outcome == RIGHT; call++) {
        (void)fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            const int ended = discover(call);
            (void)fflush(NULL);
            _exit(ended);
        }
        int status = -1;
        ASSERT_EQ_I64(child, waitpid(child, &status, 0));
        outcome = WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
        EXPECT_THAT(outcome == RIGHT || outcome == NOTHING_FAILED, "call %d failing: outcome %d", call, outcome);
    }
    EXPECT_TRUE(call > 3);
}
