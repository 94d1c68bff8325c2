/* Reductions that kernels ask for: every form of them on a launcher, under every shortage of launches. */
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "gpu_memory.h"
#include "launcher_kernels.h"
#include "launcher_memory.h"
#include "reference.h"
#include "support.h"

static const uint64_t counts[] = {0, 1, 31, 1000, 100003};

/* Elements that an array begins behind a boundary of 16 bytes, and by which in the largest type it is longer. */
static const size_t shifts[] = {0, 1, 3};

enum { MOST_CALLS = 8192, LONGEST = 1 << 20, WIDEST = 16 };

typedef struct scene {
    dpr_ctx *ctx;
    unsigned char *data;  /* host memory: LONGEST elements of the widest type */
    unsigned char *in;    /* device memory: the same */
    launcher_call *calls; /* host memory: MOST_CALLS */
    launcher_call *asked; /* device memory: the same */
    int64_t *sums;        /* device memory: MOST_CALLS, and a word */
    dpr_stream stream, other;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    s->data = calloc(LONGEST, WIDEST);
    s->calls = calloc(MOST_CALLS, sizeof *s->calls);
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, LONGEST * WIDEST);
    s->asked = gpu_alloc(DPR_MEMORY_DEVICE, MOST_CALLS * sizeof *s->asked);
    s->sums = gpu_alloc(DPR_MEMORY_DEVICE, (MOST_CALLS + 1) * sizeof *s->sums);
    s->stream = gpu_stream_create();
    s->other = gpu_stream_create();
    ASSERT_THAT(s->data && s->calls && s->in && s->asked && s->sums && s->stream && s->other, "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->asked);
    gpu_free(DPR_MEMORY_DEVICE, s->sums);
    EXPECT_TRUE(gpu_stream_destroy(s->stream) && gpu_stream_destroy(s->other));
    free(s->data);
    free(s->calls);
}

#define LAUNCHER_TEST(NAME) TEST_FIXTURE(GpuLauncher, NAME, scene, scene_open, scene_close)

/* ---- Calls ---- */

/* Puts the calls on the device, with results that no reduction gives. */
static int send(const scene *s, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        memset(s->calls[i].result, 0xa5, sizeof s->calls[i].result);
        s->calls[i].outcome = UINT32_MAX;
        s->calls[i].followed = s->calls[i].misled = 0;
        s->calls[i].ticket = 0;
    }
    return EXPECT_THAT(gpu_copy(s->asked, s->calls, n * sizeof *s->calls), "%s", gpu_error());
}

static int receive(const scene *s, unsigned n) {
    return EXPECT_THAT(gpu_stream_wait(s->stream) && gpu_copy(s->calls, s->asked, n * sizeof *s->calls), "%s",
                       gpu_error());
}

/* Asks for the calls' reductions, and gets what came of them. */
static int ask(const scene *s, const dpr_launcher *launcher, const launcher_pair *pair, launcher_form form,
               unsigned n) {
    return send(s, n) && EXPECT_EQ_I64(0, launcher_ask(launcher, pair, form, s->asked, n, s->stream)) && receive(s, n);
}

/* The continuation was called once, and with the result. */
static void expect_followed(const launcher_call *call) {
    EXPECT_EQ_U64(1, call->followed);
    EXPECT_EQ_U64(0, call->misled);
}

static uint64_t count_outcomes(const scene *s, unsigned n, launcher_outcome outcome) {
    uint64_t found = 0;
    for (unsigned i = 0; i < n; i++)
        found += s->calls[i].outcome == (uint32_t)outcome;
    return found;
}

/* The report says what the calls' outcomes were, and that no launch failed; *out receives it, if wanted. */
static void expect_report(const scene *s, const dpr_launcher *launcher, unsigned n, dpr_launch_report *out) {
    dpr_launch_report report;
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(launcher, &report, sizeof report));
    EXPECT_EQ_U64(0, report.failed);
    EXPECT_EQ_U64(count_outcomes(s, n, LAUNCHER_LAUNCHED), report.launched);
    EXPECT_EQ_U64(count_outcomes(s, n, LAUNCHER_IN_LINE), report.in_line);
    EXPECT_EQ_U64(n, (uint64_t)report.launched + report.refused);
    EXPECT_EQ_U64(report.refused, report.in_line);
    EXPECT_EQ_U64(report.launched > 0, report.deepest);
    EXPECT_EQ_U64(0, report.failed);
    EXPECT_EQ_I64(0, report.error);
    if (out)
        *out = report;
}

/* Every slot has come back, and every queue. */
static void expect_all_back(const dpr_launcher *launcher) {
    dpr_launcher_state state = {.held = UINT32_MAX};
    EXPECT_TRUE(gpu_copy(&state, launcher->memory, sizeof state));
    EXPECT_EQ_U64(0, state.held);
    for (int i = 0; i < DPR_LAUNCHER_QUEUE_WORDS; i++)
        EXPECT_EQ_U64(UINT32_MAX, state.free_queues[i]);
}

static void close_launcher(dpr_launcher *launcher) {
    expect_all_back(launcher);
    dpr_launcher_destroy(launcher);
    EXPECT_EQ_PTR(NULL, launcher->memory);
}

static void fill_with(const scene *s, dpr_op op, dpr_dtype dtype, data_pattern pattern) {
    data_fill(s->data, op, dtype, pattern, LONGEST);
    EXPECT_THAT(gpu_copy(s->in, s->data, LONGEST * dpr_dtype_size(dtype)), "%s", gpu_error());
}

static void fill(const scene *s, dpr_op op, dpr_dtype dtype) {
    fill_with(s, op, dtype, DATA_RANDOM);
}

/* The pair's, of what propagates NaN. */
static const launcher_pair *pair_of(dpr_op op, dpr_dtype dtype) {
    size_t n;
    const launcher_pair *pairs = launcher_pairs(&n);
    for (size_t i = 0; i < n; i++)
        if (pairs[i].op == op && pairs[i].dtype == dtype && pairs[i].nan == DPR_NAN_PROPAGATE)
            return &pairs[i];
    return NULL;
}

/* ---- Results ---- */

static void add_call(const scene *s, unsigned *n, dpr_dtype dtype, size_t shift, uint64_t count) {
    if (count <= test_largest())
        s->calls[(*n)++] = (launcher_call){.in = s->in + shift * dpr_dtype_alignment(dtype), .count = count};
}

/* One call for each length and each place, and one of nearly everything; the number of them. */
static unsigned plan_lengths(const scene *s, dpr_dtype dtype) {
    unsigned n = 0;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t i = 0; i < LENGTH(shifts); i++)
            add_call(s, &n, dtype, shifts[i], counts[c]);
    add_call(s, &n, dtype, 1, LONGEST - 5);
    return n;
}

static void expect_results(const scene *s, const launcher_pair *pair, unsigned n, const char *how) {
    for (unsigned i = 0; i < n; i++) {
        const launcher_call *call = &s->calls[i];
        const size_t offset = (size_t)((const unsigned char *)call->in - s->in);
        ref_state expected;
        char why[256] = "";
        ref_reduce(&expected, pair->op, pair->dtype, pair->nan, s->data + offset, call->count);
        EXPECT_THAT(ref_check(&expected, call->result, why, sizeof why), "%s %s of %" PRIu64 " from byte %zu, %s: %s",
                    dpr_op_name(pair->op), dpr_dtype_name(pair->dtype), call->count, offset, how, why);
        expect_followed(call);
    }
}

static void check_calls(const scene *s, const launcher_pair *pair, const dpr_launcher *launcher, launcher_form form,
                        launcher_outcome outcome, const char *how) {
    const unsigned n = plan_lengths(s, pair->dtype);
    ASSERT_TRUE(ask(s, launcher, pair, form, n));
    expect_results(s, pair, n, how);
    EXPECT_EQ_U64(n, count_outcomes(s, n, outcome));
    expect_report(s, launcher, n, NULL);
}

static void check_pair(const scene *s, const launcher_pair *pair, const dpr_launcher *launcher,
                       const dpr_launcher *without) {
    check_calls(s, pair, launcher, LAUNCHER_AT_ONCE, LAUNCHER_LAUNCHED, "at once");
    check_calls(s, pair, launcher, LAUNCHER_AFTER_GRID, LAUNCHER_LAUNCHED, "after the grid");
    check_calls(s, pair, without, LAUNCHER_AT_ONCE, LAUNCHER_IN_LINE, "in line");
}

LAUNCHER_TEST(every_pair_and_length) {
    NEED_GPU();
    dpr_launcher launcher, without;
    size_t n;
    const launcher_pair *pairs = launcher_pairs(&n);
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, DPR_NO_LAUNCHES, &without));
    for (size_t i = 0; i < n && !test_failed(); i++) {
        fill(fixture, pairs[i].op, pairs[i].dtype);
        check_pair(fixture, &pairs[i], &launcher, &without);
        if (!data_pattern_applies(DATA_NAN_FIRST, pairs[i].op, pairs[i].dtype))
            continue;
        fill_with(fixture, pairs[i].op, pairs[i].dtype, DATA_NAN_FIRST);
        check_pair(fixture, &pairs[i], &launcher, &without);
    }
    close_launcher(&launcher);
    close_launcher(&without);
}

/* The sum of what all blocks of a grid write, with as many launches as `launches` says and this outcome. */
static void sum_written(const scene *s, int launches, launcher_outcome outcome) {
    const int64_t expected = (int64_t)LONGEST * (LONGEST - 1) / 2;
    dpr_launcher launcher;
    launcher_call *call = s->calls;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(s->ctx, launches, &launcher));
    for (int again = 0; again < 20 && !test_failed(); again++) {
        *call = (launcher_call){.in = s->in, .count = LONGEST};
        EXPECT_TRUE(gpu_fill_async(s->in, 0xff, LONGEST * sizeof(int32_t), s->stream));
        ASSERT_TRUE(send(s, 1));
        EXPECT_EQ_I64(0, launcher_ask_for_written(&launcher, s->asked, s->stream));
        ASSERT_TRUE(receive(s, 1));
        EXPECT_EQ_BYTES(&expected, call->result, sizeof expected);
        EXPECT_EQ_U64(outcome, call->outcome);
        EXPECT_EQ_U64(0, call->ticket);
        expect_followed(call);
        expect_report(s, &launcher, 1, NULL);
    }
    close_launcher(&launcher);
}

LAUNCHER_TEST(after_the_grid_is_after_all_its_blocks) {
    NEED_GPU();
    sum_written(fixture, 4, LAUNCHER_LAUNCHED);
}

LAUNCHER_TEST(after_the_grid_in_line) {
    NEED_GPU();
    sum_written(fixture, DPR_NO_LAUNCHES, LAUNCHER_IN_LINE);
}

/* ---- Shortage ---- */

/* Calls of all lengths below 3000, and of some above, all over the array. */
static void plan_many(const scene *s, unsigned n, size_t size) {
    uint64_t random = 4711;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t most = i % 64 == 0 ? LONGEST / 8 : 3000;
        s->calls[i].count = data_next(&random) % most;
        s->calls[i].in = s->in + data_next(&random) % (LONGEST / 2) * size;
    }
}

/* As many calls at once as there are; what it came to in *report. */
static void ask_many(const scene *s, const dpr_launcher *launcher, const launcher_pair *pair, unsigned n,
                     dpr_launch_report *report) {
    plan_many(s, n, dpr_dtype_size(pair->dtype));
    ASSERT_TRUE(ask(s, launcher, pair, LAUNCHER_AT_ONCE, n));
    expect_results(s, pair, n, "many at once");
    expect_report(s, launcher, n, report);
    expect_all_back(launcher);
}

LAUNCHER_TEST(more_calls_than_launches) {
    static const int most[] = {0, 64, 33, 1};
    NEED_GPU();
    fill(fixture, DPR_SUM, DPR_F32);
    for (size_t i = 0; i < LENGTH(most); i++) {
        dpr_launcher launcher;
        dpr_launch_report report = {0};
        ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, most[i], &launcher));
        for (int again = 0; again < 3 && !test_failed(); again++)
            ask_many(fixture, &launcher, pair_of(DPR_SUM, DPR_F32), MOST_CALLS, &report);
        test_record("launched", "%u of %d calls where %u may be pending", report.launched, MOST_CALLS,
                    launcher.launches);
        EXPECT_TRUE(report.launched > 0);
        if (most[i] == 1)
            EXPECT_TRUE(report.in_line > 0);
        close_launcher(&launcher);
    }
}

LAUNCHER_TEST(one_launch_at_a_time) {
    NEED_GPU();
    dpr_launcher launcher;
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 1, &launcher));
    EXPECT_EQ_U64(1, launcher.launches);
    fill(fixture, DPR_MAX, DPR_I32);
    for (int again = 0; again < 100 && !test_failed(); again++) {
        plan_many(fixture, 1, sizeof(int32_t));
        ASSERT_TRUE(ask(fixture, &launcher, pair_of(DPR_MAX, DPR_I32), LAUNCHER_AT_ONCE, 1));
        EXPECT_EQ_U64(LAUNCHER_LAUNCHED, fixture->calls[0].outcome);
        expect_results(fixture, pair_of(DPR_MAX, DPR_I32), 1, "one at a time");
        expect_report(fixture, &launcher, 1, NULL);
    }
    close_launcher(&launcher);
}

LAUNCHER_TEST(launches_are_at_most_those_of_the_pool) {
    NEED_GPU();
    dpr_ctx *ctx;
    dpr_launcher launcher;
    dpr_launch_report report = {0};
    dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    options.pending_launches = 120;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(0, &options, &ctx));
    fill(fixture, DPR_ARGMIN, DPR_U8);
    static const int asked[] = {0, 5, 120, 1000000};
    static const uint32_t given[] = {120, 5, 120, 120};
    for (size_t i = 0; i < LENGTH(asked); i++) {
        ASSERT_STATUS(DPR_OK, dpr_launcher_create(ctx, asked[i], &launcher));
        EXPECT_EQ_U64(given[i], launcher.launches);
        ask_many(fixture, &launcher, pair_of(DPR_ARGMIN, DPR_U8), MOST_CALLS, &report);
        EXPECT_TRUE(report.launched > 0);
        close_launcher(&launcher);
    }
    dpr_ctx_destroy(ctx);
}

/* ---- Beside others ---- */

LAUNCHER_TEST(nests_and_nested_strategies_share_the_pool) {
    NEED_GPU();
    enum { RUNS = 40 };
    dpr_launcher launcher;
    dpr_options options = DPR_OPTIONS_INIT;
    const launcher_pair *pair = pair_of(DPR_SUM, DPR_I32);
    int64_t expected = 0, sums[RUNS];
    options.strategy = "dp.tree";
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    fill(fixture, DPR_SUM, DPR_I32);
    EXPECT_STATUS(DPR_OK, dpr_reduce(fixture->data, &expected, LONGEST, DPR_I32, DPR_SUM));
    plan_many(fixture, MOST_CALLS, sizeof(int32_t));
    ASSERT_TRUE(send(fixture, MOST_CALLS));
    EXPECT_EQ_I64(0, launcher_ask(&launcher, pair, LAUNCHER_AT_ONCE, fixture->asked, MOST_CALLS, fixture->stream));
    for (int i = 0; i < RUNS; i++)
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(fixture->ctx, fixture->in, fixture->sums + i, LONGEST, DPR_I32, DPR_SUM,
                                               &options, fixture->other));
    ASSERT_TRUE(receive(fixture, MOST_CALLS));
    EXPECT_TRUE(gpu_stream_wait(fixture->other) && gpu_copy(sums, fixture->sums, sizeof sums));
    for (int i = 0; i < RUNS; i++)
        EXPECT_EQ_I64(expected, sums[i]);
    expect_results(fixture, pair, MOST_CALLS, "beside dp.tree");
    expect_report(fixture, &launcher, MOST_CALLS, NULL);
    close_launcher(&launcher);
}

/* All continuations launch, while those that launched them still have their places in the pool. */
static void ask_all_twice(const scene *s, const dpr_launcher *launcher) {
    dpr_launch_report report = {0};
    plan_many(s, MOST_CALLS, sizeof(int32_t));
    ASSERT_TRUE(send(s, MOST_CALLS));
    EXPECT_EQ_I64(0, launcher_ask_twice(launcher, s->asked, MOST_CALLS, s->sums, s->stream));
    ASSERT_TRUE(receive(s, MOST_CALLS));
    expect_results(s, pair_of(DPR_SUM, DPR_I32), MOST_CALLS, "twice");
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(launcher, &report, sizeof report));
    EXPECT_EQ_U64(2 * MOST_CALLS, (uint64_t)report.launched + report.in_line);
    EXPECT_EQ_U64(2 * MOST_CALLS, (uint64_t)report.launched + report.refused);
    EXPECT_TRUE(report.deepest <= 2);
    test_record("launched", "%u of %d reductions where %u may be pending, %u deep", report.launched, 2 * MOST_CALLS,
                launcher->launches, report.deepest);
    expect_all_back(launcher);
}

LAUNCHER_TEST(continuations_may_ask_too) {
    static const size_t pools[] = {0, 64};
    NEED_GPU();
    fill(fixture, DPR_SUM, DPR_I32);
    for (size_t i = 0; i < LENGTH(pools); i++) {
        dpr_ctx *ctx;
        dpr_launcher launcher;
        dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
        options.pending_launches = pools[i];
        ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(0, &options, &ctx));
        ASSERT_STATUS(DPR_OK, dpr_launcher_create(ctx, 0, &launcher));
        for (int again = 0; again < 3 && !test_failed(); again++)
            ask_all_twice(fixture, &launcher);
        close_launcher(&launcher);
        dpr_ctx_destroy(ctx);
    }
}

/* Of these, the last one sees what the others have left, and each launch is noted at its depth. */
LAUNCHER_TEST(continuations_go_on_with_all_results) {
    NEED_GPU();
    enum { ROWS = 80 }; /* far fewer than the pool has places, so that none is refused */
    dpr_launcher launcher;
    unsigned *arrived = (unsigned *)(fixture->sums + MOST_CALLS);
    fill(fixture, DPR_SUM, DPR_I32);
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    plan_many(fixture, ROWS, sizeof(int32_t));
    int64_t expected = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        int64_t sum = 0;
        const size_t offset = (size_t)((const unsigned char *)fixture->calls[i].in - fixture->in);
        EXPECT_STATUS(DPR_OK, dpr_reduce(fixture->data + offset, &sum, fixture->calls[i].count, DPR_I32, DPR_SUM));
        expected += sum;
    }
    fixture->calls[ROWS] = (launcher_call){.in = NULL};
    for (int again = 0; again < 10 && !test_failed(); again++) {
        ASSERT_TRUE(send(fixture, ROWS + 1));
        EXPECT_TRUE(gpu_fill_async(arrived, 0, sizeof *arrived, fixture->stream));
        EXPECT_EQ_I64(0, launcher_ask_in_two_steps(&launcher, fixture->asked, ROWS, fixture->sums, arrived,
                                                   fixture->asked + ROWS, fixture->stream));
        ASSERT_TRUE(receive(fixture, ROWS + 1));
        const launcher_call *total = &fixture->calls[ROWS];
        EXPECT_EQ_BYTES(&expected, total->result, sizeof expected);
        expect_followed(total);
        dpr_launch_report report;
        ASSERT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
        EXPECT_EQ_U64(ROWS + 1, report.launched);
        EXPECT_EQ_U64(2, report.deepest);
    }
    close_launcher(&launcher);
}

/* ---- Continuations in line ---- */

/* Threads that go down by continuations, each of which asks for `fan` sums, until `depth` levels are done; what is not
 * launched is done in line by a thread with the stack that CUDA gives it. */
static void go_down(const scene *s, int launches, unsigned threads, unsigned depth, unsigned fan, launcher_side side) {
    const uint64_t calls = launcher_calls_below(depth, fan, side);
    dpr_launcher launcher;
    dpr_launch_report report;
    uint64_t sums[2] = {0}; /* of all results, and how many there were */
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(s->ctx, launches, &launcher));
    ASSERT_TRUE(gpu_copy(s->sums, sums, sizeof sums));
    EXPECT_EQ_I64(0,
                  launcher_go_down(&launcher, (const int32_t *)s->in, threads, depth, fan, side, s->sums, s->stream));
    ASSERT_THAT(gpu_stream_wait(s->stream) && gpu_copy(sums, s->sums, sizeof sums), "%u threads, %u levels of %u: %s",
                threads, depth, fan, gpu_error());
    EXPECT_THAT(sums[1] == threads * calls && sums[0] == 3 * threads * calls,
                "%u threads, %u levels of %u: %" PRIu64 " results, their sum %" PRIu64 ", expected %" PRIu64, threads,
                depth, fan, sums[1], sums[0], threads * calls);
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
    EXPECT_EQ_U64(0, report.failed);
    EXPECT_EQ_U64(threads * calls, (uint64_t)report.launched + report.in_line);
    EXPECT_EQ_U64(threads * calls, (uint64_t)report.launched + report.refused);
    EXPECT_TRUE(launches != DPR_NO_LAUNCHES || report.launched == 0);
    close_launcher(&launcher);
}

LAUNCHER_TEST(continuations_in_line_go_to_any_depth) {
    static const int launches[] = {DPR_NO_LAUNCHES, 1, 0};
    const int32_t three[] = {1, 2};
    NEED_GPU();
    ASSERT_TRUE(gpu_copy(fixture->in, three, sizeof three));
    for (size_t i = 0; i < LENGTH(launches) && !test_failed(); i++) {
        go_down(fixture, launches[i], 1, 10000, 1, LAUNCHER_EVEN);
        go_down(fixture, launches[i], 300, 200, 1, LAUNCHER_EVEN);
        go_down(fixture, launches[i], 1, 14, 2, LAUNCHER_EVEN);
        go_down(fixture, launches[i], 1, 6, 5, LAUNCHER_EVEN);
        go_down(fixture, launches[i], 1, 1, 5000, LAUNCHER_EVEN);
        go_down(fixture, launches[i], 1, 3000, 2, LAUNCHER_DEEP_FIRST);
        go_down(fixture, launches[i], 1, 3000, 2, LAUNCHER_DEEP_LAST);
        go_down(fixture, launches[i], 2000, 7, 2, LAUNCHER_EVEN);
    }
}

/* ---- Launchers of other versions ---- */

/* Nothing is launched, and of what the launcher points to only the account is touched: it has no table. All counters
 * that the account can have are there. */
static void ask_unknown(const scene *s, const dpr_launcher *unknown, const launcher_pair *pair) {
    plan_many(s, 300, dpr_dtype_size(pair->dtype));
    ASSERT_TRUE(ask(s, unknown, pair, LAUNCHER_AT_ONCE, 300));
    expect_results(s, pair, 300, "another version");
    EXPECT_EQ_U64(300, count_outcomes(s, 300, LAUNCHER_IN_LINE));
    plan_many(s, 100, dpr_dtype_size(pair->dtype));
    ASSERT_TRUE(ask(s, unknown, pair, LAUNCHER_AFTER_GRID, 100));
    expect_results(s, pair, 100, "another version, after the grid");
    EXPECT_EQ_U64(100, count_outcomes(s, 100, LAUNCHER_IN_LINE));
}

/* Continuations ask again: each for one more sum, 1000 levels deep, and each for two, on one level. */
static void go_down_unknown(const scene *s, const dpr_launcher *unknown) {
    static const unsigned depths[] = {1000, 1}, fans[] = {1, 2};
    const int32_t three[] = {1, 2};
    ASSERT_TRUE(gpu_copy(s->in, three, sizeof three));
    for (size_t i = 0; i < LENGTH(depths); i++) {
        const uint64_t calls = launcher_calls_below(depths[i], fans[i], LAUNCHER_EVEN);
        uint64_t sums[2] = {0};
        ASSERT_TRUE(gpu_copy(s->sums, sums, sizeof sums));
        EXPECT_EQ_I64(0, launcher_go_down(unknown, (const int32_t *)s->in, 50, depths[i], fans[i], LAUNCHER_EVEN,
                                          s->sums, s->stream));
        ASSERT_THAT(gpu_stream_wait(s->stream) && gpu_copy(sums, s->sums, sizeof sums), "%s", gpu_error());
        EXPECT_EQ_U64(50 * calls, sums[1]);
        EXPECT_EQ_U64(3 * 50 * calls, sums[0]);
    }
}

LAUNCHER_TEST(launchers_of_other_versions_launch_nothing) {
    NEED_GPU();
    dpr_launcher launcher;
    dpr_launch_report report;
    const uint64_t below =
        50 * (launcher_calls_below(1000, 1, LAUNCHER_EVEN) + launcher_calls_below(1, 2, LAUNCHER_EVEN));
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
    for (int32_t change = -1; change <= 1; change += 2) {
        dpr_launcher unknown = launcher;
        unknown.version += (uint32_t)change;
        unknown.table = NULL;
        unknown.launches = UINT32_MAX;
        fill(fixture, DPR_SUM, DPR_F32);
        ask_unknown(fixture, &unknown, pair_of(DPR_SUM, DPR_F32));
        go_down_unknown(fixture, &unknown);
        ASSERT_STATUS(DPR_OK, dpr_launcher_report(&launcher, &report, sizeof report));
        EXPECT_EQ_U64(0, report.launched + report.failed);
        EXPECT_EQ_U64(400 + below, report.refused);
        EXPECT_EQ_U64(400 + below, report.in_line);
        expect_all_back(&launcher);
    }
    fill(fixture, DPR_SUM, DPR_F32);
    check_calls(fixture, pair_of(DPR_SUM, DPR_F32), &launcher, LAUNCHER_AT_ONCE, LAUNCHER_LAUNCHED, "afterwards");
    close_launcher(&launcher);
}

/* Nobody counts its calls. */
LAUNCHER_TEST(launchers_of_zeros_launch_nothing) {
    NEED_GPU();
    const dpr_launcher none = {0};
    fill(fixture, DPR_SUM, DPR_I32);
    ask_unknown(fixture, &none, pair_of(DPR_SUM, DPR_I32));
    go_down_unknown(fixture, &none);
}

/* ---- Making and giving back ---- */

LAUNCHER_TEST(nests_come_and_go) {
    NEED_GPU();
    enum { TIMES = 40, MOST_BYTES = 16 << 20 };
    fill(fixture, DPR_COUNT, DPR_F64);
    size_t before = 0;
    for (int i = 0; i <= TIMES && !test_failed(); i++) {
        dpr_launcher launcher;
        dpr_launch_report report;
        ASSERT_STATUS(DPR_OK, dpr_launcher_create(fixture->ctx, 0, &launcher));
        ask_many(fixture, &launcher, pair_of(DPR_COUNT, DPR_F64), 100, &report);
        ASSERT_STATUS(DPR_OK,
                      dpr_launcher_report(&launcher, &report, sizeof report)); /* the one before has made it zero */
        EXPECT_EQ_U64(0, report.launched + report.refused + report.in_line + report.deepest);
        close_launcher(&launcher);
        EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_launcher_report(&launcher, &report, sizeof report));
        if (i == 0)
            before = gpu_free_bytes();
    }
    const size_t after = gpu_free_bytes();
    EXPECT_THAT(after + MOST_BYTES > before, "%zu bytes are free, and %zu were", after, before);
}
