/* Workspace for a strategy that launches no kernels from kernels: whose it is, when CUDA fails, and that nothing takes
 * the strategy for one with nested launches. */
#include <string.h>

#include "error.h"
#include "fake_cuda.h"
#include "workspace_scene.h"

enum { COUNT = 100000, MOST_CALLS = 1000 };
static const int64_t canary = 0x5a5a5a5a;

static void open_scene(void *state) {
    workspace_scene_open(state);
}

static void close_scene(void *state) {
    workspace_scene_close(state);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define WORKSPACE_TEST(NAME) TEST_FIXTURE(Workspace, NAME, workspace_scene, open_scene, close_scene)

/* ---- Memory ---- */

static gpu_graph *capture(const workspace_scene *s, size_t count) {
    if (!EXPECT_TRUE(gpu_capture_begin(s->stream)))
        return NULL;
    EXPECT_STATUS(DPR_OK, workspace_run(s, count, NULL));
    return gpu_capture_end(s->stream);
}

static void run_once(const workspace_scene *s, size_t count) {
    EXPECT_STATUS(DPR_OK, workspace_run(s, count, NULL));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(workspace_sum(count), *s->out);
}

WORKSPACE_TEST(runs_give_theirs_back) {
    const workspace_scene *s = fixture;
    run_once(s, COUNT);
    const int before = fake_live_objects();
    for (int i = 0; i < 10; i++)
        run_once(s, COUNT + (size_t)i * 10000);
    EXPECT_EQ_I64(before, fake_live_objects());
    EXPECT_EQ_I64(0, fake_module_loads());
}

/* It goes with the next run, or with the context. */
WORKSPACE_TEST(a_captured_run_keeps_its_own_while_the_graph_lives) {
    workspace_scene *s = fixture;
    run_once(s, COUNT);
    const int before = fake_live_objects();
    gpu_graph *graph[2] = {capture(s, COUNT), capture(s, WORKSPACE_MOST)};
    ASSERT_TRUE(graph[0] && graph[1]);
    const int captured = fake_live_objects() - before;
    EXPECT_TRUE(captured >= 4); /* two graphs, and memory for each */
    gpu_graph_destroy(graph[0]);
    run_once(s, 7);
    EXPECT_EQ_I64(before + captured / 2, fake_live_objects());
    EXPECT_TRUE(gpu_graph_launch(graph[1], s->stream) && gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(workspace_sum(WORKSPACE_MOST), *s->out);
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    gpu_graph_destroy(graph[1]);
    EXPECT_THAT(fake_live_objects() < before, "%d objects with a context, %d without", before, fake_live_objects());
}

/* ---- Failing calls ---- */

/* A run during which call number `fail` fails, in a context of its own, which has no pool yet. */
typedef struct attempt {
    workspace_scene at;
    int fail;
    cudaError_t error;
    const char *failed; /* the call that failed; NULL: the run makes fewer calls */
} attempt;

static void begin_to_fail(const attempt *a) {
    *a->at.out = canary;
    fake_fail_call(a->fail, a->error);
}

static void end_failing(attempt *a) {
    a->failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
}

/* The run has failed and left the result alone, or has given the right one. */
static void check(const attempt *a, dpr_status status, int64_t result) {
    const int right = status == DPR_OK ? result == workspace_sum(COUNT)
                                       : a->failed && result == canary && dpr_last_error()[0] != '\0';
    EXPECT_THAT(right, "call %d, %s, failing: %s, the result is %lld", a->fail, a->failed ? a->failed : "none",
                dpr_status_name(status), (long long)result);
}

static void try_in_a_stream(attempt *a) {
    begin_to_fail(a);
    const dpr_status status = workspace_run(&a->at, COUNT, NULL);
    end_failing(a);
    EXPECT_TRUE(gpu_stream_wait(a->at.stream));
    check(a, status, *a->at.out);
}

static void try_blocking(attempt *a) {
    int64_t result = canary;
    begin_to_fail(a);
    const dpr_status status = workspace_run(&a->at, COUNT, &result);
    end_failing(a);
    check(a, status, result);
}

/* The graph of what did not fail can be launched, unless the library could not protect the capture from its calls. */
static void try_captured(attempt *a) {
    ASSERT_TRUE(gpu_capture_begin(a->at.stream));
    begin_to_fail(a);
    const dpr_status status = workspace_run(&a->at, COUNT, NULL);
    end_failing(a);
    gpu_graph *graph = gpu_capture_end(a->at.stream);
    const int is_spoilt = a->failed && strcmp(a->failed, "cuThreadExchangeStreamCaptureMode") == 0;
    EXPECT_TRUE(graph || is_spoilt);
    if (graph)
        EXPECT_TRUE(gpu_graph_launch(graph, a->at.stream) && gpu_stream_wait(a->at.stream));
    check(a, status, *a->at.out);
    gpu_graph_destroy(graph);
}

/* Objects that the failed call should have given back. */
static int lost(const attempt *a) {
    static const char *const give_back[] = {"cudaFree", "cudaFreeAsync", "cudaStreamDestroy", "cudaMemPoolDestroy"};
    int is_one = 0;
    for (size_t i = 0; a->failed && i < LENGTH(give_back); i++)
        is_one |= strcmp(a->failed, give_back[i]) == 0;
    return is_one;
}

static void fail_every_call(const workspace_scene *s, void (*try)(attempt *a)) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (size_t e = 0; e < LENGTH(errors); e++) {
        attempt a = {.at = *s, .error = errors[e]};
        do {
            const int before = fake_live_objects();
            a.fail++;
            ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &a.at.ctx));
            try(&a);
            run_once(&a.at, COUNT); /* in the same context */
            dpr_ctx_destroy(a.at.ctx);
            EXPECT_THAT(fake_live_objects() == before + lost(&a), "%d objects before, %d after %s failed", before,
                        fake_live_objects(), a.failed ? a.failed : "nothing");
        } while (a.failed && a.fail < MOST_CALLS && !test_failed());
        EXPECT_THAT(a.fail > 3 && a.fail < MOST_CALLS, "%d calls", a.fail);
    }
}

WORKSPACE_TEST(calls_that_fail_in_a_stream) {
    fail_every_call(fixture, try_in_a_stream);
}

WORKSPACE_TEST(calls_that_fail_in_a_blocking_run) {
    fail_every_call(fixture, try_blocking);
}

WORKSPACE_TEST(calls_that_fail_in_a_capture) {
    fail_every_call(fixture, try_captured);
}

/* ---- Not nested ---- */

WORKSPACE_TEST(explained_as_a_candidate_with_workspace) {
    const dpr_machine *machine = dpr_ctx_machine(fixture->ctx);
    const dpr_choice choice = workspace_choice(machine, DPR_MEMORY_DEVICE);
    char text[8192];
    size_t len = sizeof text;
    ASSERT_STATUS(DPR_OK, dpr_explain(&choice, machine, &(dpr_run){.count = 40960}, NULL, text, &len));
    EXPECT_CONTAINS(text, "strategy:  test.workspace, ");
    EXPECT_CONTAINS(text, "0 bytes of scratch memory, 88 bytes of workspace\n"); /* 11 blocks, 8 bytes each */
    EXPECT_TRUE(strstr(text, "nesting:") == NULL && strstr(text, "limits:") == NULL && strstr(text, "costs:") == NULL);
}

/* It runs where kernels cannot launch kernels, and not where nobody can give it workspace. */
WORKSPACE_TEST(refused_for_lack_of_workspace_alone) {
    dpr_caps caps = dpr_ctx_machine(fixture->ctx)->caps;
    const dpr_choice choice = workspace_choice(dpr_ctx_machine(fixture->ctx), DPR_MEMORY_DEVICE);
    caps.gpu.mps = 1;
    caps.gpu.cc_major = 6;
    caps.gpu.nested_bytes = caps.gpu.memory_bytes;
    EXPECT_TRUE(dpr_refusal(&test_workspace_strategy, &choice.key, &caps) == NULL);
    caps.gpu.memory_pools = 0;
    const char *refusal = dpr_refusal(&test_workspace_strategy, &choice.key, &caps);
    ASSERT_TRUE(refusal != NULL);
    EXPECT_EQ_STR("needs memory that is allocated in stream order", refusal);
}
