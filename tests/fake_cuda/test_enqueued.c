/* The host's half of recursions that are enqueued: memory, streams, captured graphs, outcomes, and CUDA calls that
 * fail. */
#define _GNU_SOURCE /* fork() */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/driver.h"
#include "fake_cuda.h"
#include "fake_recursion.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "successor.h"
#include "support.h"

static const dpr_recursion successor = RECURSION(&kernels, 0, NULL), of_the_cpu = RECURSION(NULL, 0, NULL);

/* ---- The scene ---- */

typedef struct scene {
    dpr_ctx *ctx;
    dpr_stream stream;
    const dpr_recursion *recursion;
    dpr_recursion_options options;
    dpr_memory memory;
    size_t n;
    uint64_t *in;
    answer *out;
    dpr_recursion_outcome *outcome;
    uint64_t first; /* root */
} scene;

static const dpr_memory memories[] = {DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_DEVICE};

/* Other roots in the same memory. */
static void change_roots(scene *s, uint64_t first) {
    uint64_t roots[MOST];
    s->first = first;
    make_roots(roots, first, s->n);
    EXPECT_TRUE(gpu_copy(s->in, roots, s->n * sizeof *s->in));
}

static void place(scene *s, dpr_memory memory, size_t n) {
    s->memory = memory;
    s->n = n;
    s->in = gpu_alloc(memory, n * sizeof *s->in);
    s->out = gpu_alloc(memory, n * sizeof *s->out);
    s->outcome = gpu_alloc(memory, sizeof *s->outcome);
    ASSERT_TRUE(s->in && s->out && s->outcome);
    change_roots(s, 1);
}

static void displace(const scene *s) {
    gpu_free(s->memory, s->in);
    gpu_free(s->memory, s->out);
    gpu_free(s->memory, s->outcome);
}

static void open_scene(void *state) {
    scene *s = state;
    const dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    s->options = options;
    s->recursion = &successor;
    s->stream = gpu_stream_create();
    fake_recursion = (fake_recursion_state){.of = &successor, .outcome = {.tasks = 12, .deepest = 3}, .phases = 11};
    fake_set_memory((size_t)1 << 34); /* for several graphs; and some is lost with a call that gives it back */
    place(s, DPR_MEMORY_DEVICE, MOST);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    displace(s);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define ENQUEUE_TEST(NAME) TEST_FIXTURE(RecursionsEnqueued, NAME, scene, open_scene, close_scene)

static void clear_results(const scene *s) {
    unsigned char canaries[MOST * sizeof(answer)];
    memset(canaries, CANARY, sizeof canaries);
    EXPECT_TRUE(gpu_copy(s->out, canaries, s->n * sizeof *s->out)
                && gpu_copy(s->outcome, canaries, sizeof *s->outcome));
}

static dpr_status enqueue(const scene *s, dpr_stream stream) {
    const uint64_t addend = ADDEND; /* which is gone when the kernels run */
    return dpr_recursion_enqueue(s->ctx, s->recursion, s->in, s->n, &addend, s->out, &s->options, s->outcome, stream);
}

static dpr_recursion_outcome outcome_of(const scene *s) {
    dpr_recursion_outcome outcome;
    EXPECT_TRUE(gpu_copy(&outcome, s->outcome, sizeof outcome));
    return outcome;
}

/* Whether the results are right, or those that clear_results() left where there are to be none. */
static int has_results(const scene *s, int wanted) {
    answer got[MOST];
    EXPECT_TRUE(gpu_copy(got, s->out, s->n * sizeof *got));
    return are_answers(got, s->first, s->n, wanted);
}

/* Checks what the work of a stream has left. */
static void expect_end(const scene *s, dpr_stream stream, dpr_status status) {
    EXPECT_TRUE(gpu_stream_wait(stream));
    const dpr_recursion_outcome outcome = outcome_of(s);
    EXPECT_STATUS(status, dpr_recursion_check(s->recursion, &outcome));
    EXPECT_EQ_U64(12, outcome.tasks);
    EXPECT_EQ_U64(3, outcome.deepest);
    EXPECT_TRUE(has_results(s, status == DPR_OK));
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
}

static void expect_run(const scene *s, dpr_stream stream) {
    clear_results(s);
    EXPECT_STATUS(DPR_OK, enqueue(s, stream));
    expect_end(s, stream, DPR_OK);
}

/* Checks that the call fails, with `part` in its sentence, writes nothing, and that the next one succeeds. */
static void expect_refusal(scene *s, dpr_stream stream, dpr_status expected, const char *part) {
    const dpr_recursion_options options = s->options, init = DPR_RECURSION_OPTIONS_INIT;
    clear_results(s);
    EXPECT_STATUS(expected, enqueue(s, stream));
    EXPECT_CONTAINS(dpr_last_error(), part);
    EXPECT_TRUE(gpu_stream_wait(s->stream) && has_results(s, 0));
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
    s->options = init;
    fake_recursion.missing = cudaSuccess;
    expect_run(s, s->stream);
    s->options = options;
}

/* ---- Results ---- */

ENQUEUE_TEST(results_and_outcome_come_in_the_order_of_the_stream) {
    static const size_t sizes[] = {1, 8, 9, MOST};
    for (size_t i = 0; i < LENGTH(sizes) * LENGTH(memories); i++) {
        displace(fixture);
        place(fixture, memories[i % LENGTH(memories)], sizes[i / LENGTH(memories)]);
        clear_results(fixture);
        EXPECT_STATUS(DPR_OK, enqueue(fixture, fixture->stream));
        EXPECT_TRUE(fake_is_working() && has_results(fixture, 0));
        expect_end(fixture, fixture->stream, DPR_OK);
        expect_run(fixture, NULL);
        expect_run(fixture, gpu_stream_per_thread());
    }
}

ENQUEUE_TEST(several_runs_wait_in_one_stream) {
    for (uint64_t i = 0; i < 5; i++)
        EXPECT_STATUS(DPR_OK, enqueue(fixture, fixture->stream));
    expect_end(fixture, fixture->stream, DPR_OK);
}

/* The grid does not depend on what runs before had to do. */
ENQUEUE_TEST(sizes_are_those_of_any_number_of_tasks) {
    dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    const uint64_t addend = ADDEND;
    fake_recursion.least_capacity = 100000;
    for (int i = 0; i < 3; i++) {
        fixture->options.engine = "persistent";
        EXPECT_STATUS(DPR_OK, dpr_recursion_run(fixture->ctx, &successor, fixture->in, fixture->n, &addend,
                                                fixture->out, &fixture->options, &report, NULL));
        expect_run(fixture, fixture->stream);
        EXPECT_TRUE(fake_recursion.capacity >= 100000 && fake_recursion.blocks > 1 && fake_recursion.cooperative);
    }
    fixture->options.arena_tasks = MOST;
    fake_recursion.least_capacity = 0;
    expect_run(fixture, fixture->stream);
    EXPECT_EQ_U64(MOST, fake_recursion.capacity);
}

ENQUEUE_TEST(no_roots_give_an_outcome_of_zeros) {
    static const dpr_recursion_outcome zero;
    dpr_recursion_outcome outcome;
    for (int i = 0; i < 2; i++) {
        clear_results(fixture);
        EXPECT_STATUS(DPR_OK, dpr_recursion_enqueue(fixture->ctx, &successor, NULL, 0, NULL, NULL, NULL,
                                                    fixture->outcome, i ? fixture->stream : NULL));
        EXPECT_TRUE(gpu_stream_wait(fixture->stream) && gpu_stream_wait(NULL));
        outcome = outcome_of(fixture);
        EXPECT_TRUE(memcmp(&outcome, &zero, sizeof zero) == 0);
        EXPECT_STATUS(DPR_OK, dpr_recursion_check(&successor, &outcome));
    }
}

/* ---- Outcomes ---- */

ENQUEUE_TEST(outcomes_become_statuses) {
    static const struct {
        dpr_status status;
        int32_t wrong;
        const char *part;
    } all[] = {
        {DPR_ERR_DIVIDE, -4, "\"successor\" returned -4, and must return 0 to 3"},
        {DPR_ERR_LIMIT, 0, "has more tasks than options->max_tasks"},
        {DPR_ERR_LIMIT, 1, "takes longer than its limit (options->max_seconds)"},
        {DPR_ERR_LIMIT, 2, "has a task that is deeper than options->max_depth"},
        {DPR_ERR_OUT_OF_MEMORY, 0, "because options->arena_tasks is too small"},
        {DPR_ERR_CUDA, 0, "the GPU lost tasks of recursion \"successor\""},
    };
    for (size_t i = 0; i < LENGTH(all); i++) {
        fake_recursion.outcome.status = all[i].status;
        fake_recursion.outcome.wrong = all[i].wrong;
        clear_results(fixture);
        EXPECT_STATUS(DPR_OK, enqueue(fixture, fixture->stream));
        expect_end(fixture, fixture->stream, all[i].status);
        EXPECT_CONTAINS(dpr_last_error(), all[i].part);
        fake_recursion.outcome.status = DPR_OK;
        fake_recursion.outcome.wrong = 0;
        expect_run(fixture, fixture->stream);
    }
}

ENQUEUE_TEST(an_outcome_is_read_where_the_host_reads) {
    displace(fixture);
    place(fixture, DPR_MEMORY_PINNED, 1);
    expect_run(fixture, fixture->stream);
    EXPECT_STATUS(DPR_OK, dpr_recursion_check(&successor, fixture->outcome));
    memset(fixture->outcome, CANARY, sizeof *fixture->outcome);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_recursion_check(&successor, fixture->outcome));
    EXPECT_CONTAINS(dpr_last_error(), "outcome->status is 1515870810, which no run");
    displace(fixture);
    place(fixture, DPR_MEMORY_DEVICE, 1);
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_recursion_check(&successor, fixture->outcome));
    EXPECT_CONTAINS(dpr_last_error(), "in memory of device 0");
}

/* ---- Refusals ---- */

ENQUEUE_TEST(pageable_memory_is_refused) {
    uint64_t root = 1;
    answer result = {5, 5};
    dpr_recursion_outcome outcome = {.tasks = 5};
    const uint64_t addend = ADDEND;
    scene s = *fixture;
    s.n = 1;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_recursion_enqueue(s.ctx, &successor, &root, 1, &addend, s.out, NULL, s.outcome, s.stream));
    EXPECT_CONTAINS(dpr_last_error(), "roots is ");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_recursion_enqueue(s.ctx, &successor, s.in, 1, &addend, &result, NULL, s.outcome, s.stream));
    EXPECT_CONTAINS(dpr_last_error(), "out is ");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_recursion_enqueue(s.ctx, &successor, s.in, 1, &addend, s.out, NULL, &outcome, s.stream));
    EXPECT_CONTAINS(dpr_last_error(), "outcome is ");
    EXPECT_CONTAINS(dpr_last_error(), "in pageable memory");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_recursion_enqueue(s.ctx, &successor, NULL, 0, NULL, NULL, NULL, &outcome, s.stream));
    EXPECT_TRUE(!fake_is_working() && result.sum == 5 && outcome.tasks == 5);
}

ENQUEUE_TEST(engines_that_need_the_host_are_refused) {
    static const struct {
        const char *engine, *part;
    } all[] = {{"cpu", "because it runs on threads of the host: use engine \"persistent\""},
               {"serial", "because it runs on threads of the host"},
               {"level", "because it launches kernels from kernels"},
               {"graph", "because it launches kernels from kernels"},
               {"naive", "because it launches kernels from kernels"},
               {"host", "because it is not being captured"}};
    for (size_t i = 0; i < LENGTH(all); i++) {
        fixture->options.engine = all[i].engine;
        expect_refusal(fixture, fixture->stream, DPR_ERR_STRATEGY_UNABLE, all[i].part);
        expect_refusal(fixture, NULL, DPR_ERR_STRATEGY_UNABLE, all[i].part);
    }
    fixture->options.engine = "steam";
    expect_refusal(fixture, NULL, DPR_ERR_UNKNOWN_ENGINE, "steam");
}

static void trace(void *user, const dpr_recursion_event *event) {
    (void)user, (void)event;
}

ENQUEUE_TEST(options_are_checked) {
    fixture->options.trace = trace;
    expect_refusal(fixture, fixture->stream, DPR_ERR_INVALID_OPTION, "options->trace is not NULL");
    fixture->options.trace = NULL;
    fixture->options.max_seconds = -1;
    expect_refusal(fixture, fixture->stream, DPR_ERR_INVALID_OPTION, "options->max_seconds is -1");
    fixture->options.max_seconds = 0;
    fixture->options.arena_tasks = MOST - 1;
    expect_refusal(fixture, fixture->stream, DPR_ERR_INVALID_OPTION, "options->arena_tasks is 999");
    fixture->options.arena_tasks = UINT64_C(1) << 30;
    expect_refusal(fixture, fixture->stream, DPR_ERR_OUT_OF_MEMORY, "out of memory");
    fixture->options.arena_tasks = 0;
    fake_recursion.missing = cudaErrorNoKernelImageForDevice;
    expect_refusal(fixture, fixture->stream, DPR_ERR_STRATEGY_UNABLE, "has no kernel for device 0");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER,
                  dpr_recursion_enqueue(fixture->ctx, &successor, NULL, 0, NULL, NULL, NULL, NULL, fixture->stream));
    EXPECT_CONTAINS(dpr_last_error(), "outcome is NULL");
    fixture->recursion = &of_the_cpu;
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, enqueue(fixture, fixture->stream));
    EXPECT_CONTAINS(dpr_last_error(), "needs a policy that nvcc has compiled");
    fixture->recursion = &successor;
}

/* ---- Streams ---- */

ENQUEUE_TEST(a_stream_of_another_device_is_refused) {
    ASSERT_TRUE(gpu_use(1));
    dpr_stream far = gpu_stream_create();
    ASSERT_TRUE(gpu_use(0));
    expect_refusal(fixture, far, DPR_ERR_WRONG_DEVICE, "does not belong to the CUDA context of ctx");
    EXPECT_TRUE(gpu_use(1) && gpu_stream_destroy(far) && gpu_use(0));
}

ENQUEUE_TEST(grids_fit_a_stream_with_few_sms) {
    enum { FEW = 8 };
    gpu_context *green = gpu_green_create(0, FEW);
    ASSERT_TRUE(green && gpu_context_push(green));
    dpr_stream narrow = gpu_stream_create();
    ASSERT_TRUE(narrow && gpu_context_pop());
    expect_run(fixture, fixture->stream);
    const unsigned blocks = fake_recursion.blocks;
    expect_run(fixture, narrow);
    EXPECT_EQ_U64(blocks / 132 * FEW, fake_recursion.blocks);
    EXPECT_TRUE(gpu_stream_destroy(narrow) && gpu_context_destroy(green));
}

/* ---- Captured graphs ---- */

static const char *const captured_engines[] = {NULL, "persistent", "host"};

/* Captures a run. NULL if the call or the capture fails. */
static gpu_graph *capture(const scene *s, dpr_status *status) {
    if (!EXPECT_TRUE(gpu_capture_begin(s->stream)))
        return NULL;
    *status = enqueue(s, s->stream);
    return gpu_capture_end(s->stream);
}

/* CUDA runs what is in a loop on all SMs. */
ENQUEUE_TEST(loops_are_refused_in_a_stream_with_few_sms) {
    gpu_context *green = gpu_green_create(0, 8);
    dpr_stream wide = fixture->stream;
    dpr_status status = DPR_OK;
    ASSERT_TRUE(green && gpu_context_push(green));
    fixture->stream = gpu_stream_create();
    ASSERT_TRUE(fixture->stream && gpu_context_pop());
    fixture->options.engine = "host";
    gpu_graph_destroy(capture(fixture, &status));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, status);
    EXPECT_CONTAINS(dpr_last_error(), "does not keep to the stream's 8 SMs: use engine \"persistent\"");
    fixture->options.engine = "persistent";
    gpu_graph_destroy(capture(fixture, &status));
    EXPECT_STATUS(DPR_OK, status);
    EXPECT_TRUE(gpu_stream_destroy(fixture->stream) && gpu_context_destroy(green));
    fixture->stream = wide;
    fixture->options.engine = NULL;
    expect_run(fixture, wide);
}

/* Launches a graph several times, with other roots each time. */
static void expect_launches(scene *s, gpu_graph *graph) {
    for (uint64_t i = 0; i < 3; i++) {
        change_roots(s, 100 * i);
        clear_results(s);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream));
        expect_end(s, s->stream, DPR_OK);
    }
}

ENQUEUE_TEST(each_launch_of_a_graph_is_a_run) {
    for (size_t i = 0; i < LENGTH(captured_engines) * LENGTH(memories); i++) {
        dpr_status status = DPR_ERR_CUDA;
        displace(fixture);
        place(fixture, memories[i % LENGTH(memories)], MOST);
        fixture->options.engine = captured_engines[i / LENGTH(memories)];
        clear_results(fixture);
        gpu_graph *graph = capture(fixture, &status);
        ASSERT_TRUE(graph != NULL);
        EXPECT_STATUS(DPR_OK, status);
        EXPECT_TRUE(has_results(fixture, 0));
        expect_launches(fixture, graph);
        fixture->options.engine = NULL;
        expect_run(fixture, fixture->stream);
        gpu_graph_destroy(graph);
        expect_run(fixture, fixture->stream);
    }
}

ENQUEUE_TEST(an_error_of_a_launch_is_not_the_next_ones) {
    for (size_t e = 0; e < LENGTH(captured_engines); e++) {
        dpr_status status = DPR_ERR_CUDA;
        fixture->options.engine = captured_engines[e];
        gpu_graph *graph = capture(fixture, &status);
        ASSERT_STATUS(DPR_OK, status);
        fake_recursion.outcome.status = DPR_ERR_LIMIT;
        clear_results(fixture);
        EXPECT_TRUE(gpu_graph_launch(graph, fixture->stream));
        expect_end(fixture, fixture->stream, DPR_ERR_LIMIT);
        fake_recursion.outcome.status = DPR_OK;
        expect_launches(fixture, graph);
        gpu_graph_destroy(graph);
    }
}

/* Two runs behind each other, each with a loop. */
ENQUEUE_TEST(a_graph_may_have_several_runs) {
    fixture->options.engine = "host";
    ASSERT_TRUE(gpu_capture_begin(fixture->stream));
    EXPECT_STATUS(DPR_OK, enqueue(fixture, fixture->stream));
    EXPECT_STATUS(DPR_OK, enqueue(fixture, fixture->stream));
    gpu_graph *graph = gpu_capture_end(fixture->stream);
    ASSERT_TRUE(graph != NULL);
    expect_launches(fixture, graph);
    gpu_graph_destroy(graph);
}

ENQUEUE_TEST(no_roots_are_captured) {
    for (size_t e = 0; e < LENGTH(captured_engines); e++) {
        fixture->options.engine = captured_engines[e];
        ASSERT_TRUE(gpu_capture_begin(fixture->stream));
        EXPECT_STATUS(DPR_OK, dpr_recursion_enqueue(fixture->ctx, &successor, NULL, 0, NULL, NULL, &fixture->options,
                                                    fixture->outcome, fixture->stream));
        gpu_graph *graph = gpu_capture_end(fixture->stream);
        clear_results(fixture);
        EXPECT_TRUE(graph && gpu_graph_launch(graph, fixture->stream) && gpu_stream_wait(fixture->stream));
        EXPECT_EQ_U64(0, outcome_of(fixture).tasks);
        gpu_graph_destroy(graph);
    }
}

/* An older driver has no conditional nodes. */
ENQUEUE_TEST(a_driver_without_loops_is_named) {
    dpr_driver_calls *calls = (dpr_driver_calls *)(uintptr_t)dpr_driver();
    const dpr_driver_calls known = *calls;
    dpr_status status = DPR_OK;
    fixture->options.engine = "host";
    calls->graph_create_condition = NULL;
    gpu_graph *graph = capture(fixture, &status);
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, status);
    EXPECT_CONTAINS(dpr_last_error(), "because it needs a driver of CUDA 12.4 or newer: use engine \"persistent\"");
    EXPECT_TRUE(graph != NULL);
    *calls = known;
    gpu_graph_destroy(graph);
}

/* ---- Calls that fail, in processes of their own, which find the driver anew ---- */

/* Runs the body there, for a minute at most. */
static void expect_in_child(void (*body)(const void *), const void *context) {
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        body(context);
        (void)fflush(NULL);
        _exit(test_failed());
    }
    int status = -1;
    ASSERT_EQ_I64(child, waitpid(child, &status, 0));
    EXPECT_THAT(status == 0, "the child ended with 0x%x", (unsigned)status);
}

typedef struct variant {
    const char *name, *engine;
    size_t n;
    int in_stream, captured;
} variant;

static const variant variants[] = {
    {"in_a_stream", NULL, MOST, 1, 0},     {"in_the_legacy_stream", NULL, 2, 0, 0},
    {"of_no_roots", NULL, 0, 1, 0},        {"captured_persistent", NULL, MOST, 1, 1},
    {"captured_host", "host", MOST, 1, 1}, {"captured_no_roots", "host", 0, 1, 1},
};

/* What the failing call has left: a graph that can be launched has all of the run, or nothing of it. */
static void expect_whole(const scene *s, gpu_graph *graph, dpr_status status) {
    if (!graph)
        return;
    EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
    EXPECT_TRUE(has_results(s, status == DPR_OK));
    gpu_graph_destroy(graph);
}

/* Enqueues no roots where the variant has none. */
static dpr_status call(const scene *s, const variant *v) {
    scene with = *s;
    dpr_stream stream = v->in_stream ? s->stream : NULL;
    with.n = v->n;
    return enqueue(&with, stream);
}

/* A call in which CUDA call number `fail` fails. Returns that call's name; NULL if it makes fewer calls. */
static const char *fail_call(scene *s, const variant *v, int fail, cudaError_t error) {
    clear_results(s);
    if (v->captured)
        EXPECT_TRUE(gpu_capture_begin(s->stream));
    fake_fail_call(fail, error);
    const dpr_status status = call(s, v);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    EXPECT_THAT((status == DPR_OK || (failed && dpr_last_error()[0])) && fake_last_error() == cudaSuccess,
                "%s: call %d, %s, failing: %s, CUDA's last error %d", v->name, fail, failed ? failed : "none",
                dpr_status_name(status), (int)fake_last_error());
    if (v->captured)
        expect_whole(s, gpu_capture_end(s->stream), v->n > 0 ? status : DPR_ERR_CUDA);
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_stream_wait(NULL));
    EXPECT_THAT(has_results(s, status == DPR_OK && v->n > 0), "%s: call %d, %s, failing", v->name, fail,
                failed ? failed : "none");
    return failed;
}

/* In a context of its own, which has no pool yet. Only what is given back by the failing call itself may stay. */
static const char *fail_in_new_context(scene *s, const variant *v, int fail, cudaError_t error) {
    const char *const engine = s->options.engine;
    const int before = fake_live_objects();
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    const char *failed = fail_call(s, v, fail, error);
    s->options.engine = NULL;
    expect_run(s, s->stream);
    s->options.engine = engine;
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    const int lost = failed && (strcmp(failed, "cudaFreeAsync") == 0 || strcmp(failed, "cudaStreamDestroy") == 0);
    EXPECT_THAT(fake_live_objects() == before + lost, "%s: %d objects before, %d after %s failed", v->name, before,
                fake_live_objects(), failed ? failed : "nothing");
    return failed;
}

static void fail_every_call(const void *context) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    const variant *v = context;
    scene s = {0};
    open_scene(&s);
    dpr_ctx_destroy(s.ctx); /* which has found the driver */
    s.ctx = NULL;
    displace(&s);
    place(&s, DPR_MEMORY_DEVICE, v->n > 0 ? v->n : MOST);
    s.options.engine = v->engine;
    for (size_t e = 0; e < LENGTH(errors); e++) {
        int fail = 1;
        while (fail < MOST_CALLS && !test_failed() && fail_in_new_context(&s, v, fail, errors[e]))
            fail++;
        EXPECT_THAT(fail > 2 && fail < MOST_CALLS, "%s: %d calls", v->name, fail);
    }
    close_scene(&s);
}

static void fail_every_call_in_child(void *context) {
    expect_in_child(fail_every_call, context);
}

TEST_GENERATOR(faults_of_enqueued_recursions) {
    for (size_t i = 0; i < LENGTH(variants); i++)
        test_add(&(test_case){"RecursionsEnqueuedFaults", variants[i].name, __FILE__, __LINE__,
                              fail_every_call_in_child, (void *)(uintptr_t)&variants[i], 0, NULL, NULL});
}
