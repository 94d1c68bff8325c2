/* From case to case: what dpr bench and dpr_peers have in common, on the CPU. */
#include <string.h>
#include <time.h>

#include "bench_walk.h"
#include "data.h"
#include "support.h"

/* Two subjects: the planner's choice, and the same call as if it were another library's. */
typedef struct pair {
    int prepared;
    volatile sig_atomic_t stop;
    int stops_at; /* `stop` is set when so many cases are prepared; 0: never */
    int (*call)(void *user, const void *in, void *host_out); /* theirs; NULL: as ours */
    double accuracy;                                         /* of the measurement; 0: 0.5 */
    int (*prepare)(bench_walk *w, char why[BENCH_WHY]);      /* NULL: prepare() */
} pair;

static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    pair *p = w->user;
    if (walk_choose(w, why) != 0 || !walk_add(w, w->choice, 0, why))
        return -1;
    w->callers[1] = caller_at(w->ctx, &w->at, NULL);
    w->callers[1].expected = w->expected;
    w->subjects[w->n++] = w->subjects[0];
    w->subjects[0].name = "ours";
    w->subjects[1].name = "theirs";
    w->subjects[1].user = &w->callers[1];
    if (p->call)
        w->subjects[1].call = p->call;
    p->stop = ++p->prepared == p->stops_at;
    return 0;
}

static int is_odd(void *user, const bench_case *at) {
    (void)user;
    return at->count % 2 == 1;
}

/* Measures operations of f32 of the counts. The results are the caller's. */
static int measure_all(pair *p, const char *ops, const char *counts, int (*wants)(void *user, const bench_case *at),
                       int (*is_later)(void *user, const bench_case *at), bench_results *out) {
    outfile file = {.name = NULL};
    bench_asked asked = {.device = DPR_DEVICE_CPU,
                         .budget = 60,
                         .accuracy = p->accuracy > 0 ? p->accuracy : 0.5,
                         .commit = "abc",
                         .file = &file,
                         .stop = &p->stop};
    bench_walk w = {.asked = &asked,
                    .results = out,
                    .wants = wants,
                    .is_later = is_later,
                    .prepare = p->prepare ? p->prepare : prepare,
                    .user = p};
    asked.dtypes = axis_one(DPR_ROW(DPR_F32));
    asked.modes = axis_one(BENCH_BLOCKING);
    asked.caches = axis_one(BENCH_COLD);
    int code = axis_parse_counts(counts, &asked.counts);
    if (code == CLI_OK)
        code = asked_take_ops(ops, &asked.ops);
    if (code == CLI_OK)
        code = walk_open(&w);
    if (code == CLI_OK)
        code = walk_run(&w);
    walk_close(&w);
    return code;
}

static int measure(pair *p, const char *ops, const char *counts, int (*wants)(void *user, const bench_case *at),
                   bench_results *out) {
    return measure_all(p, ops, counts, wants, NULL, out);
}

TEST(BenchWalk, rows_of_every_case) {
    pair p = {.prepared = 0};
    bench_results r = {.row_count = 0};
    ASSERT_EQ_I64(CLI_OK, measure(&p, "sum,argmax", "100,1000", NULL, &r));
    ASSERT_EQ_U64(8, r.row_count);
    EXPECT_EQ_U64(0, r.omission_count);
    EXPECT_EQ_STR("abc", r.commit);
    EXPECT_TRUE(!r.ended && !r.interrupted && r.device.name[0]);
    for (size_t i = 0; i < r.row_count; i++) {
        const bench_row *row = &r.rows[i];
        const int ours = i % 2 == 0;
        EXPECT_EQ_I64(i < 4 ? DPR_SUM : DPR_ARGMAX, row->at.ops.at[0]);
        EXPECT_EQ_U64(i % 4 < 2 ? 100 : 1000, row->at.count);
        EXPECT_EQ_STR(ours ? "ours" : "theirs", row->subject);
        EXPECT_EQ_I64(ours, row->strategy != NULL);
        EXPECT_EQ_I64(ours, row->chosen);
        EXPECT_EQ_I64(ours, row->ratio.n == 0);
        EXPECT_TRUE(results_right(row) && row->checked > 0);
        EXPECT_NEAR_F64(1, row->gb_per_s * row->us.median / ((double)row->at.count * 4e-3), 1e-9);
    }
    results_free(&r);
}

TEST(BenchWalk, what_is_not_wanted_or_cannot_be_is_no_row) {
    pair p = {.prepared = 0};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum,argmax", "0,100,101", is_odd, &r));
    EXPECT_EQ_U64(4, r.row_count);
    EXPECT_EQ_U64(0, r.omission_count);
    results_free(&r);
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum,argmax", "0,2^62", NULL, &r));
    EXPECT_EQ_U64(2, r.row_count);
    ASSERT_EQ_U64(3, r.omission_count); /* what does not fit, and argmax of nothing */
    EXPECT_CONTAINS(r.omissions[0].why, "memory for");
    EXPECT_CONTAINS(r.omissions[1].why, "argmax has no result for zero elements");
    EXPECT_TRUE(!r.ended);
    results_free(&r);
}

/* Even counts of all operations come before odd ones. */
TEST(BenchWalk, two_passes) {
    static const uint64_t counts[] = {100, 102, 100, 102, 101, 103, 101, 103};
    pair p = {.prepared = 0};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_OK, measure_all(&p, "sum,max", "100,101,102,103", NULL, is_odd, &r));
    ASSERT_EQ_U64(2 * LENGTH(counts), r.row_count);
    for (size_t i = 0; i < r.row_count; i++) {
        EXPECT_EQ_U64(counts[i / 2], r.rows[i].at.count);
        EXPECT_EQ_I64(i / 4 % 2 == 0 ? DPR_SUM : DPR_MAX, r.rows[i].at.ops.at[0]);
    }
    results_free(&r);
}

TEST(BenchWalk, an_interrupt_leaves_out_the_rest) {
    pair p = {.stops_at = 2};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum,argmax", "100,101,102", NULL, &r));
    EXPECT_EQ_U64(2, r.row_count);
    ASSERT_EQ_U64(5, r.omission_count); /* the case that was begun included */
    EXPECT_EQ_STR("interrupted", r.omissions[0].why);
    EXPECT_EQ_STR("interrupted", r.ended);
    EXPECT_TRUE(r.interrupted);
    results_free(&r);
}

/* Calls take up to two milliseconds. Their mean scatters, too, however many are timed together. */
static int call_that_scatters(void *user, const void *in, void *host_out) {
    static uint64_t seed = 1;
    const struct timespec pause = {.tv_nsec = data_below(&seed, 2000000)};
    (void)nanosleep(&pause, NULL);
    return caller_call(user, in, host_out);
}

TEST(BenchWalk, what_scatters_is_measured_again) {
    pair p = {.call = call_that_scatters, .accuracy = 0.03};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum", "2^20", NULL, &r));
    EXPECT_TRUE(p.prepared >= 2 && p.prepared <= 4);
    ASSERT_EQ_U64(2, r.row_count);
    EXPECT_TRUE(results_right(&r.rows[0]) && results_right(&r.rows[1]));
    EXPECT_EQ_I64(r.rows[0].visit, r.rows[1].visit);
    EXPECT_TRUE(r.rows[0].visit == 1 || (r.rows[0].visit >= 3 && r.rows[0].visit <= p.prepared + 1));
    EXPECT_TRUE(!r.ended);
    results_free(&r);
    p = (pair){.call = call_that_scatters, .accuracy = 0.03, .stops_at = 2};
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum", "2^20", NULL, &r));
    EXPECT_EQ_I64(2, p.prepared);
    EXPECT_EQ_U64(2, r.row_count); /* of the first visit */
    EXPECT_EQ_U64(0, r.omission_count);
    EXPECT_TRUE(r.interrupted && r.rows[0].visit == 1);
    results_free(&r);
}

/* A call that takes at least 0.1 ms longer. */
static int call_slow(void *user, const void *in, void *host_out) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)nanosleep(&pause, NULL);
    return caller_call(user, in, host_out);
}

/* The choice is slow the first time; theirs is another strategy of dpr, which is slow later. */
static int prepare_slow_choice(bench_walk *w, char why[BENCH_WHY]) {
    pair *p = w->user;
    if (prepare(w, why) != 0)
        return -1;
    w->callers[1].strategy = "cpu.simd";
    w->callers[1].chosen = 0;
    w->subjects[p->prepared > 1].call = call_slow;
    return 0;
}

TEST(BenchWalk, a_choice_that_seems_slow_is_measured_again) {
    pair p = {.prepare = prepare_slow_choice};
    bench_results r = {.row_count = 0};
    bench_regret regret;
    for (int i = 0; i < 10; i++) { /* the second measurement does not count if the machine was slow meanwhile */
        p.prepared = 0;
        EXPECT_EQ_I64(CLI_OK, measure(&p, "sum", "100", NULL, &r));
        EXPECT_TRUE(p.prepared >= 2);
        ASSERT_EQ_U64(2, r.row_count);
        if (r.rows[0].visit == 2)
            break;
        results_free(&r);
    }
    ASSERT_EQ_U64(2, r.row_count);
    EXPECT_TRUE(r.rows[0].visit == 2 && r.rows[1].visit == 2);
    EXPECT_TRUE(results_regret(r.rows, 2, &regret) && regret.fraction == 0);
    EXPECT_TRUE(!r.ended);
    results_free(&r);
    p = (pair){.prepare = prepare_slow_choice, .stops_at = 2};
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum", "100", NULL, &r));
    ASSERT_EQ_U64(2, r.row_count); /* of the first visit */
    EXPECT_EQ_U64(0, r.omission_count);
    EXPECT_TRUE(r.interrupted && r.rows[0].visit == 1);
    results_free(&r);
    p = (pair){.call = call_slow}; /* the choice is the quicker one */
    EXPECT_EQ_I64(CLI_OK, measure(&p, "sum", "100", NULL, &r));
    EXPECT_TRUE(r.row_count == 2 && r.rows[0].visit != 2);
    results_free(&r);
}

static int call_failing(void *user, const void *in, void *host_out) {
    (void)user, (void)in, (void)host_out;
    return -1;
}

static int call_without_result(void *user, const void *in, void *host_out) {
    (void)user, (void)in, (void)host_out;
    return 0;
}

/* Theirs fails or is wrong at each of n cases. */
static void check_theirs(int (*call)(void *user, const void *in, void *host_out), const char *ops, size_t n) {
    pair p = {.call = call};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_FAILED, measure(&p, ops, "100", NULL, &r));
    ASSERT_EQ_U64(2 * n, r.row_count); /* also ours, which is right */
    for (size_t i = 0; i < r.row_count; i++)
        EXPECT_EQ_I64(strcmp(r.rows[i].subject, "ours") == 0, results_right(&r.rows[i]));
    EXPECT_TRUE(!r.ended);
    results_free(&r);
}

TEST(BenchWalk, a_failing_subject_fails_the_whole) {
    check_theirs(call_failing, "sum,argmax", 2);
}

TEST(BenchWalk, a_wrong_result_fails_the_whole) {
    check_theirs(call_without_result, "sum,argmax,sum+argmax", 3);
}

/* The member whose result the next call spoils. */
static int spoilt;

static int call_spoilt(void *user, const void *in, void *host_out) {
    const int code = caller_call(user, in, host_out);
    ((unsigned char *)host_out)[spoilt * KNOWN_PLACE + 3] ^= 0x41; /* the sign and the exponent of F32 */
    return code;
}

TEST(BenchWalk, a_wrong_member_of_a_set_fails_the_whole) {
    for (spoilt = 0; spoilt < 4; spoilt++)
        check_theirs(call_spoilt, "sum+argmax+var+max", 1);
}

TEST(BenchWalk, rows_of_sets) {
    pair p = {.prepared = 0};
    bench_results r = {.row_count = 0};
    char name[OPS_TEXT];
    ASSERT_EQ_I64(CLI_OK, measure(&p, "min+max+mean,sum,sum+prod", "1,16385", NULL, &r));
    ASSERT_EQ_U64(12, r.row_count);
    EXPECT_EQ_STR("min+max+mean", ops_name(&r.rows[0].at.ops, name));
    EXPECT_EQ_STR("sum", ops_name(&r.rows[4].at.ops, name));
    EXPECT_EQ_STR("sum+prod", ops_name(&r.rows[8].at.ops, name));
    for (size_t i = 0; i < r.row_count; i++)
        EXPECT_TRUE(results_right(&r.rows[i]) && r.rows[i].checked > 0);
    results_free(&r);
}

TEST(BenchWalk, a_set_without_a_meaning_is_refused) {
    pair p = {.prepared = 0};
    bench_results r = {.row_count = 0};
    EXPECT_EQ_I64(CLI_USAGE, measure(&p, "sum,sum+band", "100", NULL, &r));
    EXPECT_EQ_U64(0, r.row_count + r.omission_count);
    results_free(&r);
}
