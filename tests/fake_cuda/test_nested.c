/* Nested launches as the host has to do with them: what runs are allowed, reports, and the module's loading. The
 * kernels are not run here. */
#include <stdio.h>
#include <string.h>

#include "cuda/device.h"
#include "fake_cuda.h"
#include "gpu_strategies.h"
#include "lists.h"
#include "pool_contexts.h"

enum { COUNT = 1000 };
static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2, canary = 0x5a5a5a5a;
static const char *const forms[] = {"dp.tree", "dp.recursive", "dp.nosync", "dp.recursive2"};

/* ---- Runs ---- */

/* The array 1, 2, ... COUNT on device 0, and places of all kinds for results and reports. */
typedef struct scene {
    dpr_ctx *ctx;
    int32_t host[COUNT];
    int32_t *in;
    void *place[2][DPR_MEMORY_DEVICE + 1]; /* 64 bytes of each kind: for the result, and for the report */
    dpr_stream stream;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    for (int i = 0; i < COUNT; i++)
        s->host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof s->host);
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->in && s->stream && gpu_copy(s->in, s->host, sizeof s->host));
    for (int i = 0; i < 2; i++)
        for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
            ASSERT_TRUE((s->place[i][kind] = gpu_alloc(kind, 64)) != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    for (int i = 0; i < 2; i++)
        for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
            gpu_free(kind, s->place[i][kind]);
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define NESTED_TEST(NAME) TEST_FIXTURE(Nested, NAME, scene, scene_open, scene_close)

/* Leaves canaries in the places. */
static void clear(const scene *s, dpr_memory out, dpr_memory report) {
    unsigned char bytes[64];
    memset(bytes, 0x5a, sizeof bytes);
    EXPECT_TRUE(gpu_copy(s->place[0][out], bytes, sizeof bytes));
    EXPECT_TRUE(gpu_copy(s->place[1][report], bytes, sizeof bytes));
}

static int64_t result_in(const scene *s, dpr_memory out) {
    int64_t value = -1;
    EXPECT_TRUE(gpu_copy(&value, s->place[0][out], sizeof value));
    return value;
}

/* Whether the report is that of the fake's runs, which launch one kernel, or that of a run without nested launches; and
 * nothing is written behind it. */
static void check_report(const scene *s, dpr_memory kind, int launched, const char *what) {
    struct {
        dpr_launch_report report;
        unsigned char behind;
    } got;
    const dpr_launch_report expected = {.launched = (uint32_t)launched, .deepest = (uint32_t)launched};
    EXPECT_TRUE(gpu_copy(&got, s->place[1][kind], sizeof got));
    EXPECT_THAT(memcmp(&got.report, &expected, sizeof expected) == 0 && got.behind == 0x5a,
                "%s, report in %s memory: %u launched, %u refused, %u failed, %u in line, %u deep", what,
                dpr_memory_name(kind), got.report.launched, got.report.refused, got.report.failed, got.report.in_line,
                got.report.deepest);
}

/* 1 for strategies with nested launches. */
static int launches(const char *strategy) {
    return strategy && strncmp(strategy, "dp.", 3) == 0;
}

/* Blocking calls, with results in host and in device memory. */
static void report_by_call(const scene *s, const char *strategy, dpr_memory out, dpr_memory kind) {
    const dpr_launch_options launch = {.size = sizeof launch, .report = s->place[1][kind]};
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.launch = &launch;
    clear(s, out, kind);
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(s->ctx, s->in, s->place[0][out], COUNT, DPR_I32, DPR_SUM, &options));
    if (kind != DPR_MEMORY_DEVICE) { /* done on return */
        dpr_launch_report there;
        memcpy(&there, s->place[1][kind], sizeof there);
        EXPECT_THAT(there.launched == (uint32_t)launches(strategy), "%s: the report is not there", strategy);
    }
    EXPECT_EQ_I64(expected_sum, result_in(s, out));
    check_report(s, kind, launches(strategy), strategy ? strategy : "auto");
}

NESTED_TEST(reports_of_blocking_calls_reach_every_kind_of_memory) {
    for (size_t i = 0; i <= gpu_strategy_count(); i++)
        for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
            for (dpr_memory out = DPR_MEMORY_HOST; out <= DPR_MEMORY_DEVICE; out++)
                report_by_call(fixture, gpu_strategy(i), out, kind);
}

static dpr_status enqueue(const scene *s, const char *strategy, dpr_memory out, dpr_launch_report *report) {
    const dpr_launch_options launch = {.size = sizeof launch, .report = report};
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.launch = &launch;
    return dpr_reduce_async(s->ctx, s->in, s->place[0][out], COUNT, DPR_I32, DPR_SUM, &options, s->stream);
}

NESTED_TEST(reports_of_asynchronous_calls_reach_what_the_stream_does) {
    const scene *s = fixture;
    for (size_t i = 0; i <= gpu_strategy_count(); i++) {
        const char *strategy = gpu_strategy(i);
        for (dpr_memory kind = DPR_MEMORY_PINNED; kind <= DPR_MEMORY_DEVICE; kind++) {
            clear(s, DPR_MEMORY_DEVICE, kind);
            EXPECT_STATUS(DPR_OK, enqueue(s, strategy, DPR_MEMORY_DEVICE, s->place[1][kind]));
            EXPECT_TRUE(gpu_stream_wait(s->stream));
            EXPECT_EQ_I64(expected_sum, result_in(s, DPR_MEMORY_DEVICE));
            check_report(s, kind, launches(strategy), strategy ? strategy : "auto");
        }
        clear(s, DPR_MEMORY_PINNED, DPR_MEMORY_HOST);
        EXPECT_STATUS(DPR_ERR_MEMORY_KIND, enqueue(s, strategy, DPR_MEMORY_PINNED, s->place[1][DPR_MEMORY_HOST]));
        EXPECT_CONTAINS(dpr_last_error(), "options->launch->report is");
        EXPECT_CONTAINS(dpr_last_error(), "pageable");
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        EXPECT_EQ_I64(0x5a5a5a5a5a5a5a5a, result_in(s, DPR_MEMORY_PINNED));
    }
}

/* A graph of one run, which leaves result and report in pinned memory; NULL if there is none. */
static gpu_graph *capture(const scene *s, const char *strategy) {
    if (!EXPECT_TRUE(gpu_capture_begin(s->stream)))
        return NULL;
    EXPECT_STATUS(DPR_OK, enqueue(s, strategy, DPR_MEMORY_PINNED, s->place[1][DPR_MEMORY_PINNED]));
    return gpu_capture_end(s->stream);
}

NESTED_TEST(replays_report_each_time) {
    const scene *s = fixture;
    for (size_t i = 0; i < LENGTH(forms); i++) {
        gpu_graph *graph = capture(s, forms[i]);
        ASSERT_TRUE(graph != NULL);
        for (int replay = 0; replay < 3; replay++) {
            clear(s, DPR_MEMORY_PINNED, DPR_MEMORY_PINNED);
            EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
            EXPECT_EQ_I64(expected_sum, result_in(s, DPR_MEMORY_PINNED));
            check_report(s, DPR_MEMORY_PINNED, 1, forms[i]);
        }
        gpu_graph_destroy(graph);
    }
}

/* With the next run, in any stream; and with the context, which may go before the graph does. */
NESTED_TEST(memory_of_captured_runs_goes_after_their_graphs) {
    scene *s = fixture;
    EXPECT_STATUS(DPR_OK, enqueue(s, "dp.tree", DPR_MEMORY_DEVICE, NULL));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    const int before = fake_live_objects();
    gpu_graph *graph[2] = {capture(s, "dp.tree"), capture(s, "dp.recursive")};
    ASSERT_TRUE(graph[0] && graph[1]);
    const int captured = fake_live_objects() - before;
    gpu_graph_destroy(graph[0]);
    EXPECT_EQ_I64(before + captured / 2 + 1, fake_live_objects());
    EXPECT_TRUE(gpu_graph_launch(graph[1], s->stream) && gpu_stream_wait(s->stream));
    EXPECT_STATUS(DPR_OK, enqueue(s, "dp.nosync", DPR_MEMORY_DEVICE, NULL));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(before + captured / 2, fake_live_objects());
    EXPECT_TRUE(gpu_graph_launch(graph[1], s->stream) && gpu_stream_wait(s->stream));
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    gpu_graph_destroy(graph[1]);
    EXPECT_THAT(fake_live_objects() < before, "%d objects with a context, %d without", before, fake_live_objects());
}

NESTED_TEST(captures_alone_give_back_what_dead_graphs_had) {
    const scene *s = fixture;
    int first = 0;
    for (int i = 0; i < 20; i++) {
        gpu_graph *graph = capture(s, forms[(size_t)i % LENGTH(forms)]);
        ASSERT_TRUE(graph != NULL);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        gpu_graph_destroy(graph);
        if (i == 0)
            first = fake_live_objects();
        EXPECT_THAT(fake_live_objects() == first, "%d objects after a graph, %d after %d", first, fake_live_objects(),
                    i + 1);
    }
}

static void report_by_plan(const scene *s, const char *strategy, dpr_memory kind) {
    dpr_plan *plan = NULL;
    ASSERT_STATUS(DPR_OK, plan_for(s->ctx, COUNT, strategy, s->place[1][kind], &plan));
    for (int run = 0; run < 3; run++) {
        const dpr_stream stream = run == 0 ? NULL : s->stream;
        clear(s, DPR_MEMORY_PINNED, kind);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, s->place[0][DPR_MEMORY_PINNED], stream));
        EXPECT_TRUE(gpu_stream_wait(stream));
        EXPECT_EQ_I64(expected_sum, result_in(s, DPR_MEMORY_PINNED));
        check_report(s, kind, launches(strategy), strategy ? strategy : "auto");
    }
    dpr_plan_destroy(plan);
}

NESTED_TEST(every_run_of_a_plan_reports) {
    for (size_t i = 0; i <= gpu_strategy_count(); i++) {
        dpr_plan *plan = NULL;
        for (dpr_memory kind = DPR_MEMORY_PINNED; kind <= DPR_MEMORY_DEVICE; kind++)
            report_by_plan(fixture, gpu_strategy(i), kind);
        EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                      plan_for(fixture->ctx, COUNT, gpu_strategy(i), fixture->place[1][DPR_MEMORY_HOST], &plan));
        EXPECT_CONTAINS(dpr_last_error(), "options->launch->report is");
        EXPECT_TRUE(plan == NULL);
    }
}

/* Of runs on the CPU, on a context of its own and on one of a GPU: nothing was launched. */
NESTED_TEST(runs_on_the_cpu_report_that_nothing_was_launched) {
    const scene *s = fixture;
    dpr_ctx *cpu = NULL;
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++) {
        launch.report = s->place[1][kind];
        options.launch = &launch;
        clear(s, DPR_MEMORY_HOST, kind);
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_ex(s->ctx, s->host, s->place[0][DPR_MEMORY_HOST], COUNT, DPR_I32, DPR_SUM, &options));
        EXPECT_EQ_I64(expected_sum, result_in(s, DPR_MEMORY_HOST));
        check_report(s, kind, 0, "on the context of a GPU");
        const dpr_status expected = kind == DPR_MEMORY_DEVICE ? DPR_ERR_MEMORY_KIND : DPR_OK;
        clear(s, DPR_MEMORY_HOST, kind);
        EXPECT_STATUS(expected,
                      dpr_reduce_ex(cpu, s->host, s->place[0][DPR_MEMORY_HOST], COUNT, DPR_I32, DPR_SUM, &options));
        if (expected == DPR_OK)
            check_report(s, kind, 0, "on the CPU's context");
        else
            EXPECT_CONTAINS(dpr_last_error(), "options->launch->report");
        EXPECT_STATUS(expected, plan_for(cpu, COUNT, NULL, launch.report, &plan));
        if (expected != DPR_OK)
            continue;
        clear(s, DPR_MEMORY_HOST, kind);
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->host, s->place[0][DPR_MEMORY_HOST], NULL));
        check_report(s, kind, 0, "a plan");
        dpr_plan_destroy(plan);
    }
    dpr_ctx_destroy(cpu);
}

NESTED_TEST(reports_to_another_device_are_refused) {
    const scene *s = fixture;
    dpr_plan *plan = NULL;
    int64_t out = canary;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    ASSERT_TRUE(gpu_use(1));
    launch.report = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *launch.report);
    ASSERT_TRUE(launch.report && gpu_use(0));
    options.launch = &launch;
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, dpr_reduce_ex(s->ctx, s->in, &out, COUNT, DPR_I32, DPR_SUM, &options));
    EXPECT_CONTAINS(dpr_last_error(), "options->launch->report is in memory of device 1");
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, enqueue(s, "dp.tree", DPR_MEMORY_DEVICE, launch.report));
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, plan_for(s->ctx, COUNT, "dp.tree", launch.report, &plan));
    EXPECT_EQ_I64(canary, out);
    gpu_free(DPR_MEMORY_DEVICE, launch.report);
}

/* ---- Options ---- */

NESTED_TEST(plans_say_how_many_launches_they_may_use) {
    const scene *s = fixture;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    char text[8192];
    size_t len = sizeof text;
    const dpr_launch_options launch = {.size = sizeof launch, .max_pending = 17};
    options.strategy = "dp.tree";
    options.launch = &launch;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &len));
    EXPECT_CONTAINS(text, "at most 17 launches (asked for), and the device's pool holds 2048\n");
    dpr_plan_destroy(plan);
}

/* All ways to give options refuse these, with a sentence that has the words. */
static void expect_refused(const scene *s, const dpr_options *options, dpr_status status, const char *words) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    int64_t out = canary;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.options = options;
    EXPECT_STATUS(status, dpr_reduce_ex(s->ctx, s->in, &out, COUNT, DPR_I32, DPR_SUM, options));
    EXPECT_CONTAINS(dpr_last_error(), words);
    EXPECT_EQ_I64(canary, out);
    clear(s, DPR_MEMORY_PINNED, DPR_MEMORY_PINNED);
    EXPECT_STATUS(status, dpr_reduce_async(s->ctx, s->in, s->place[0][DPR_MEMORY_PINNED], COUNT, DPR_I32, DPR_SUM,
                                           options, s->stream));
    EXPECT_CONTAINS(dpr_last_error(), words);
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(0x5a5a5a5a5a5a5a5a, result_in(s, DPR_MEMORY_PINNED));
    EXPECT_STATUS(status, dpr_plan_create(s->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), words);
    EXPECT_TRUE(plan == NULL);
}

NESTED_TEST(limits_out_of_range_are_refused) {
    for (size_t i = 0; i <= LENGTH(forms); i++) { /* the last without a name */
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
        options.strategy = i < LENGTH(forms) ? forms[i] : NULL;
        options.launch = &launch;
        launch.max_depth = -1;
        expect_refused(fixture, &options, DPR_ERR_INVALID_OPTION, "options->launch->max_depth is -1;");
        launch.max_depth = 25;
        expect_refused(fixture, &options, DPR_ERR_INVALID_OPTION, "options->launch->max_depth is 25;");
        launch.max_depth = 24;
        launch.max_pending = -2;
        expect_refused(fixture, &options, DPR_ERR_INVALID_OPTION, "options->launch->max_pending is -2;");
        launch.max_pending = 0;
        launch.reserved = 3;
        expect_refused(fixture, &options, DPR_ERR_INVALID_OPTION, "options->launch->reserved is 3;");
    }
}

NESTED_TEST(reports_to_no_boundary_are_refused) {
    for (size_t i = 0; i <= LENGTH(forms); i++)
        for (dpr_memory kind = DPR_MEMORY_HOST; kind <= DPR_MEMORY_DEVICE; kind++)
            for (int by = 1; by < 4; by++) {
                char words[64];
                dpr_options options = DPR_OPTIONS_INIT;
                dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
                options.strategy = i < LENGTH(forms) ? forms[i] : NULL;
                options.launch = &launch;
                launch.report = (dpr_launch_report *)(void *)((char *)fixture->place[1][kind] + by);
                snprintf(words, sizeof words, "options->launch->report is %p,", (void *)launch.report);
                expect_refused(fixture, &options, DPR_ERR_MISALIGNED, words);
            }
}

static void run_limited(const scene *s, dpr_ctx *ctx, const char *strategy, int max_depth, int max_pending,
                        dpr_launch_report *report) {
    int64_t out = canary;
    const dpr_launch_options launch = {
        .size = sizeof launch, .max_depth = max_depth, .max_pending = max_pending, .report = report};
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.launch = &launch;
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, s->in, &out, COUNT, DPR_I32, DPR_SUM, &options));
    EXPECT_EQ_I64(expected_sum, out);
}

/* As many as the pool has places, or fewer if so asked for. */
NESTED_TEST(runs_are_allowed_as_many_launches_as_the_pool_holds) {
    static const struct {
        size_t limit;
        int max_pending;
        unsigned launches;
    } cases[] = {
        {FIRST_LIMIT, 0, FIRST_LIMIT},
        {FIRST_LIMIT, 1, 1},
        {FIRST_LIMIT, FIRST_LIMIT, FIRST_LIMIT},
        {FIRST_LIMIT, FIRST_LIMIT + 1, FIRST_LIMIT},
        {FIRST_LIMIT, INT32_MAX, FIRST_LIMIT},
        {FIRST_LIMIT, DPR_NO_LAUNCHES, 0},
        {156, 0, 156},
        {156, 60, 60},
        {1, 0, 1},
        {65536, 0, 65536},
    };
    for (size_t i = 0; i < LENGTH(forms) * LENGTH(cases); i++) {
        const char *form = forms[i % LENGTH(forms)];
        const size_t c = i / LENGTH(forms);
        dpr_launch_report report;
        set_limit_of(0, cases[c].limit); /* anybody may, at any time */
        run_limited(fixture, fixture->ctx, form, 0, cases[c].max_pending, &report);
        EXPECT_THAT(fake_nested_launches() == cases[c].launches,
                    "%s, limit %zu, max_pending %d: %u launches are allowed", form, cases[c].limit,
                    cases[c].max_pending, fake_nested_launches());
        EXPECT_EQ_U64(cases[c].launches > 0, report.launched);
        EXPECT_EQ_U64(cases[c].launches == 0, report.refused);
        EXPECT_EQ_U64(cases[c].launches == 0, report.in_line);
        EXPECT_EQ_U64(0, report.failed);
    }
    set_limit_of(0, FIRST_LIMIT);
}

/* Launched kernels keep the stack that they were loaded with. If there is less now, nothing is launched. */
NESTED_TEST(nothing_is_launched_with_less_stack_than_at_loading) {
    static const struct {
        size_t stack;
        int launches;
    } cases[] = {{1024, 1}, {1023, 0}, {4096, 1}, {1024, 1}, {512, 0}, {1024, 1}};
    for (size_t i = 0; i < LENGTH(forms) * LENGTH(cases); i++) {
        const size_t c = i % LENGTH(cases);
        dpr_launch_report report;
        fake_set_stack(cases[c].stack);
        run_limited(fixture, fixture->ctx, forms[i / LENGTH(cases)], 0, 0, &report);
        EXPECT_EQ_U64(cases[c].launches, report.launched);
        EXPECT_EQ_U64(!cases[c].launches, report.refused);
        EXPECT_EQ_U64(cases[c].launches ? FIRST_LIMIT : 0, fake_nested_launches());
    }
    fake_set_stack(1024);
}

NESTED_TEST(a_context_with_a_larger_pool_allows_more) {
    dpr_ctx *ctx = NULL;
    dpr_launch_report report;
    ASSERT_STATUS(DPR_OK, create(0, 10000, &ctx));
    for (size_t i = 0; i < LENGTH(forms); i++) {
        run_limited(fixture, ctx, forms[i], 0, 0, &report);
        EXPECT_EQ_U64(10000, fake_nested_launches());
    }
    dpr_ctx_destroy(ctx);
    run_limited(fixture, fixture->ctx, forms[0], 0, 0, &report);
    EXPECT_EQ_U64(FIRST_LIMIT, fake_nested_launches());
}

NESTED_TEST(runs_go_as_deep_as_asked) {
    for (size_t i = 0; i < LENGTH(forms); i++)
        for (int depth = 0; depth <= 24; depth++) {
            dpr_launch_report report;
            run_limited(fixture, fixture->ctx, forms[i], depth, 0, &report);
            EXPECT_THAT(fake_nested_depth() == (unsigned)(depth ? depth : 24), "%s, max_depth %d: %u deep", forms[i],
                        depth, fake_nested_depth());
        }
}

/* ---- The module ---- */

static void explain(const dpr_plan *plan) {
    char text[8192];
    size_t len = sizeof text;
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &len));
    EXPECT_CONTAINS(text, "dp.tree");
}

static void plan_and_explain(const scene *s, const char *strategy) {
    dpr_plan *plan = NULL;
    ASSERT_STATUS(DPR_OK, plan_for(s->ctx, COUNT, strategy, NULL, &plan));
    explain(plan);
    dpr_plan_destroy(plan);
}

/* Everything that a program can do without naming a strategy that launches from kernels. */
static void do_all_else(const scene *s) {
    int64_t out = canary;
    dpr_launch_report report;
    for (size_t i = 0; i <= gpu_strategy_count(); i++) {
        if (launches(gpu_strategy(i)))
            continue;
        run_limited(s, s->ctx, gpu_strategy(i), 3, 10, &report);
        EXPECT_STATUS(DPR_OK, enqueue(s, gpu_strategy(i), DPR_MEMORY_DEVICE, NULL));
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        plan_and_explain(s, gpu_strategy(i));
    }
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++) {
            dpr_problem problem = DPR_PROBLEM_INIT;
            dpr_plan *plan = NULL;
            problem.op = dpr_op_at((size_t)op);
            problem.dtype = dpr_dtype_at((size_t)dtype);
            problem.count = (size_t)1 << 30;
            if (!dpr_supported(problem.op, problem.dtype))
                continue;
            EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &problem, &plan));
            explain(plan);
            dpr_plan_destroy(plan);
        }
    EXPECT_STATUS(DPR_OK, dpr_reduce(s->in, &out, COUNT, DPR_I32, DPR_SUM));
    EXPECT_STATUS(DPR_OK, dpr_reduce(s->host, &out, COUNT, DPR_I32, DPR_SUM));
    dpr_shutdown();
}

/* ctest has each test in a process of its own; else the module may be there already. */
NESTED_TEST(the_module_is_loaded_when_a_call_names_a_strategy_of_it) {
    const scene *s = fixture;
    dpr_launch_report report;
    if (fake_module_loads() > 0)
        SKIP("the module was loaded before, by another test in this process");
    do_all_else(s);
    EXPECT_EQ_I64(0, fake_module_loads());
    for (size_t i = 0; i < LENGTH(forms); i++) {
        run_limited(s, s->ctx, forms[i], 0, 0, &report);
        EXPECT_EQ_I64(1, fake_module_loads());
        plan_and_explain(s, forms[i]);
    }
    do_all_else(s);
    EXPECT_EQ_I64(1, fake_module_loads()); /* once, for all contexts and devices */
    dpr_ctx *far = NULL;
    int64_t out = canary;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "dp.tree";
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(1, &far));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(far, s->place[0][DPR_MEMORY_PINNED], &out, 0, DPR_I32, DPR_SUM, &options));
    EXPECT_EQ_I64(0, out);
    dpr_ctx_destroy(far);
    EXPECT_EQ_I64(1, fake_module_loads());
}
