/* The parts of `dpr bench` that measure nothing: its axes, data whose result is known, and what follows from results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_asked.h"
#include "bench_known.h"
#include "bench_report.h"
#include "cli.h"
#include "figures.h"
#include "lists.h"
#include "reference.h"
#include "reports.h"
#include "support.h"

/* ---- Axes ------------------------------------------------------------------------------------------------------- */

static void check_counts(const char *text, const char *wanted) {
    axis_counts counts;
    char got[512] = "";
    size_t used = 0;
    ASSERT_THAT(axis_parse_counts(text, &counts) == CLI_OK, "%s is not understood", text);
    for (int i = 0; i < counts.n && used < sizeof got; i++)
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%" PRIu64, i ? " " : "", counts.at[i]);
    EXPECT_EQ_STR(wanted, got);
}

TEST(BenchAxes, counts) {
    check_counts("1000", "1000");
    check_counts("1e3,7,2^4,7", "7 16 1000");
    check_counts("2^10:2^16:x4", "1024 4096 16384 65536");
    check_counts("2^10:2^15", "1024 4096 16384");
    check_counts("1000:5000:+1000", "1000 2000 3000 4000 5000");
    check_counts("0:10:+4,5", "0 4 5 8");
    check_counts("1:10:x1.5", "1 2 3 5 8"); /* 1.5 2.25 3.375 5.0625 7.59, each once */
    check_counts("5:5:x2", "5");
    check_counts("2^63:18446744073709551615:x2", "9223372036854775808");
}

TEST(BenchAxes, factors_close_to_1_are_refused) {
    axis_counts counts;
    check_counts("2:4:x1.001", "2 3 4");
    EXPECT_EQ_I64(CLI_USAGE, axis_parse_counts("1000:2000:x1.00000000000001", &counts));
}

TEST(BenchAxes, a_command_line_is_read_from_its_begin) {
    static const cli_help help = {"", NULL, ""};
    int quiet = 0, operands = 0;
    const cli_option options[] = {{'q', "quiet", NULL, cli_flag, &quiet, ""}, cli_help_option, {0}};
    char bad[] = "-zq", *refused[] = {bad, bad, NULL}, *good[] = {bad, "operand", NULL};
    EXPECT_EQ_I64(CLI_USAGE, cli_parse(2, refused, &help, options, &operands)); /* ends at z, before q */
    EXPECT_EQ_I64(CLI_GO_ON, cli_parse(2, good, &help, options, &operands));
    EXPECT_EQ_I64(1, operands);
    EXPECT_EQ_I64(0, quiet);
}

TEST(BenchAxes, sets) {
    axis_set set;
    ASSERT_EQ_I64(CLI_OK, axis_take_names("sum,max", &(axis_names){cli_op_name, &set}));
    EXPECT_EQ_U64(axis_one(DPR_ROW(DPR_SUM)) | axis_one(DPR_ROW(DPR_MAX)), set);
    EXPECT_EQ_I64(2, axis_members(set));
    EXPECT_EQ_I64(DPR_ROW(DPR_SUM), axis_first(set));
    ASSERT_EQ_I64(CLI_OK, axis_take_names("all", &(axis_names){cli_op_name, &set}));
    EXPECT_EQ_U64(axis_one(DPR_OP_COUNT) - 1, set);
    ASSERT_EQ_I64(CLI_OK, axis_take_names("cpu.*", &(axis_names){dpr_strategy_name, &set}));
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        EXPECT_EQ_I64(strncmp(dpr_strategy_name(i), "cpu.", 4) == 0, axis_has(set, i));
    EXPECT_TRUE(!axis_has(set, AXIS_SET));
}

/* What is asked for, in its order, with a blank between the items. */
static void check_ops(const char *text, const char *wanted) {
    static axis_ops ops;
    char got[512] = "", name[OPS_TEXT];
    ASSERT_THAT(asked_take_ops(text, &ops) == CLI_OK, "%s is not understood", text);
    for (int i = 0; i < ops.n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "", ops_name(&ops.at[i], name));
    EXPECT_EQ_STR(wanted, got);
}

TEST(BenchAxes, operations_and_sets_of_them) {
    check_ops("sum", "sum");
    check_ops("max,sum+var,sum,max", "max sum+var sum");
    check_ops("var+sum,sum+var", "var+sum sum+var"); /* the order of results differs */
    check_ops("sum+sum", "sum+sum");
    check_ops("min+max+argmin+argmax+sum+mean+var+norm2", "min+max+argmin+argmax+sum+mean+var+norm2");
    check_ops("minmax,all", "minmax sum prod min max argmin argmax all any band bor bxor count sumsq norm1 norm2 mean "
                            "var");
}

TEST(BenchAxes, what_is_no_set) {
    static const char *const bad[] = {"",         "+",        "sum+",      "+sum",
                                      "sum++var", "sum+summ", "sum+var,x", "sum+sum+sum+sum+sum+sum+sum+sum+sum"};
    axis_ops ops;
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_THAT(asked_take_ops(bad[i], &ops) == CLI_USAGE, "'%s' was taken", bad[i]);
}

TEST(BenchAxes, the_default_is_a_sum) {
    axis_ops ops = {.n = 0};
    asked_default_op(&ops);
    asked_default_op(&ops);
    EXPECT_EQ_I64(1, ops.n);
    EXPECT_TRUE(ops.at[0].n == 1 && ops.at[0].at[0] == DPR_SUM);
}

TEST(BenchAxes, times_and_shares) {
    static const struct {
        const char *text;
        double seconds;
    } times[] = {{"60", 60}, {"60s", 60}, {"1.5m", 90}, {"2min", 120}, {"1h", 3600}, {"250ms", 0.25}};
    double got = 0;
    for (size_t i = 0; i < LENGTH(times); i++) {
        EXPECT_EQ_I64(CLI_OK, axis_parse_seconds(times[i].text, &got));
        EXPECT_NEAR_F64(times[i].seconds, got, 1e-12);
    }
    EXPECT_EQ_I64(CLI_OK, axis_parse_share("0.5%", &got));
    EXPECT_NEAR_F64(0.005, got, 1e-12);
    EXPECT_EQ_I64(CLI_OK, axis_parse_share("2", &got));
    EXPECT_NEAR_F64(0.02, got, 1e-12);
}

/* ---- Known data ------------------------------------------------------------------------------------------------- */

/* The array as a call sees it. The caller frees it. */
static unsigned char *spread(const known *k, size_t count) {
    const size_t bytes = count * dpr_dtype_size(k->dtype);
    size_t marked;
    unsigned char *array = malloc(bytes + 1);
    for (size_t at = 0; array && at < bytes; at += KNOWN_BLOCK)
        memcpy(array + at, k->block, bytes - at < KNOWN_BLOCK ? bytes - at : KNOWN_BLOCK);
    const unsigned char *mark = known_mark(k, count, &marked);
    if (array)
        memcpy(array + bytes - marked, mark, marked);
    return array;
}

/* Room for the results of a call. */
typedef struct results {
    value at[DPR_FUSED_MOST];
} results;

/* Reduces the array with all operations. */
static dpr_status reduce_all(const known *k, dpr_ctx *cpu, const void *array, size_t count, results *out) {
    void *places[DPR_FUSED_MOST];
    known_places(out, places);
    return dpr_reduce_fused(cpu, array, places, count, k->dtype, k->ops.at, (size_t)k->ops.n, NULL);
}

static void check_by_reference(const known *k, const void *array, size_t count, const results *got) {
    ref_state state;
    char why[256] = "";
    for (int i = 0; i < k->ops.n; i++) {
        ref_reduce(&state, k->ops.at[i], k->dtype, DPR_NAN_PROPAGATE, array, count);
        EXPECT_THAT(ref_check(&state, got->at[i].bytes, why, sizeof why), "%s", why);
    }
}

/* The results are not what is expected if the highest byte of any value is another. There are more than three elements:
 * the variance of one 64-bit integer, 0, is expected with a tolerance that is larger than the change. */
static void check_corruption(const known *k, const known_results *expected, const results *right) {
    for (int i = 0; i < k->ops.n; i++) {
        const size_t size = dpr_dtype_size(expected->at[i].dtype), bytes = size * (size_t)expected->at[i].values;
        for (size_t at = size - 1; at < bytes; at += size) {
            results wrong = *right;
            wrong.at[i].bytes[at] ^= 0x41;
            EXPECT_THAT(!known_matches(expected, &wrong), "a wrong %s is not found out", dpr_op_name(k->ops.at[i]));
        }
    }
}

/* What is expected is right by the tests' own reference, and by a strategy of the library. */
static void check_count(const known *k, dpr_ctx *cpu, size_t count) {
    known_results expected;
    results got;
    char name[OPS_TEXT];
    unsigned char *array = spread(k, count);
    ASSERT_TRUE(array != NULL);
    if (EXPECT_STATUS(DPR_OK, known_expect(k, count, &expected))
        && EXPECT_STATUS(DPR_OK, reduce_all(k, cpu, array, count, &got))) {
        check_by_reference(k, array, count, &got);
        EXPECT_THAT(known_matches(&expected, &got), "%s of %zu %s is not what is expected", ops_name(&k->ops, name),
                    count, dpr_dtype_name(k->dtype));
        if (count > 3)
            check_corruption(k, &expected, &got);
    }
    free(array);
}

/* True if the last element changes every result: one that decides it, or one of those that are added up. Products and
 * counts, and sums of truth values, may be the same without it. */
static int needs_last(const known *k) {
    const dpr_op op = k->ops.at[0];
    return k->marks > 0 || (k->dtype != DPR_BOOL && op != DPR_PROD && op != DPR_COUNT);
}

/* A result that misses the last element is found out. */
static void check_sensitivity(const known *k, dpr_ctx *cpu, size_t count) {
    known_results expected;
    results got;
    char name[OPS_TEXT];
    if (!needs_last(k))
        return;
    unsigned char *array = spread(k, count);
    ASSERT_TRUE(array != NULL);
    if (EXPECT_STATUS(DPR_OK, known_expect(k, count, &expected))
        && EXPECT_STATUS(DPR_OK, reduce_all(k, cpu, array, count - 1, &got)))
        EXPECT_THAT(!known_matches(&expected, &got), "%s of %s does not need the last element", ops_name(&k->ops, name),
                    dpr_dtype_name(k->dtype));
    free(array);
}

/* One element of many is less than the roundings to F32 that dpr.h allows. */
static int is_narrow(const bench_ops *ops, dpr_dtype dtype) {
    int narrow = 0;
    for (int i = 0; i < ops->n; i++) {
        const dpr_dtype result = dpr_result_dtype(ops->at[i], dtype);
        narrow |= result == DPR_F32 || result == DPR_C64;
    }
    return narrow;
}

static void check_ops_of(dpr_ctx *cpu, const bench_ops *ops, dpr_dtype dtype) {
    const size_t block = KNOWN_BLOCK / dpr_dtype_size(dtype);
    const size_t counts[] = {1, 2, 3, 1000, block - 1, block, block + 1, block + 2, 2 * block, 7 * block + 13};
    known k;
    if (EXPECT_STATUS(DPR_OK, known_make(&k, cpu, ops, dtype))) {
        for (size_t i = 0; i < LENGTH(counts); i++)
            check_count(&k, cpu, counts[i]);
        if (!ops_have(ops, DPR_ARGMIN) && !ops_have(ops, DPR_ARGMAX))
            check_count(&k, cpu, 0);
        check_sensitivity(&k, cpu, is_narrow(ops, dtype) ? 1001 : 5 * block + 7);
    }
    known_free(&k);
}

/* Of all types for which they have a meaning. */
static void check_types(dpr_ctx *cpu, const bench_ops *ops) {
    for (size_t dtype = 0; dtype < dpr_dtype_count(); dtype++)
        if (ops_unsupported(ops, dpr_dtype_at(dtype)) == DPR_OP_NONE)
            check_ops_of(cpu, ops, dpr_dtype_at(dtype));
}

TEST(BenchKnown, results_are_right_for_every_pair) {
    dpr_ctx *cpu = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    for (size_t op = 0; op < dpr_op_count(); op++) {
        const bench_ops one = ops_of(dpr_op_at(op));
        check_types(cpu, &one);
    }
    dpr_ctx_destroy(cpu);
}

/* Sets whose operations need the same data, and sets that need different data; every operation is in one of these. */
TEST(BenchKnown, results_of_sets_are_right) {
    static const bench_ops sets[] = {
        {3, {DPR_MIN, DPR_ARGMIN, DPR_MINMAX}},
        {2, {DPR_ALL, DPR_BAND}},
        {2, {DPR_ANY, DPR_BOR}},
        {8, {DPR_SUM, DPR_MEAN, DPR_VAR, DPR_NORM1, DPR_NORM2, DPR_SUMSQ, DPR_MINMAX, DPR_ARGMAX}},
        {8, {DPR_PROD, DPR_MIN, DPR_ARGMIN, DPR_MAX, DPR_ARGMAX, DPR_ANY, DPR_SUM, DPR_SUM}},
        {5, {DPR_BAND, DPR_BOR, DPR_BXOR, DPR_COUNT, DPR_ANY}},
    };
    dpr_ctx *cpu = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    for (size_t i = 0; i < LENGTH(sets); i++)
        check_types(cpu, &sets[i]);
    dpr_ctx_destroy(cpu);
}

/* Each of the last two elements decides results of its own. */
TEST(BenchKnown, extremes_of_sets_are_at_the_end) {
    const bench_ops ops = {4, {DPR_ARGMIN, DPR_ARGMAX, DPR_MINMAX, DPR_SUM}};
    static const dpr_dtype dtypes[] = {DPR_I8, DPR_U8, DPR_I64, DPR_U64, DPR_F16, DPR_F64};
    const size_t count = 3 * KNOWN_BLOCK + 1;
    dpr_ctx *cpu = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    for (size_t i = 0; i < LENGTH(dtypes); i++) {
        known k;
        known_results expected;
        EXPECT_STATUS(DPR_OK, known_make(&k, cpu, &ops, dtypes[i]));
        EXPECT_STATUS(DPR_OK, known_expect(&k, count, &expected));
        EXPECT_EQ_I64((int64_t)count - 2, expected.at[0].exact.i64);
        EXPECT_EQ_I64((int64_t)count - 1, expected.at[1].exact.i64);
        known_free(&k);
    }
    dpr_ctx_destroy(cpu);
}

/* Of 2^33 elements, more than could be laid out. */
TEST(BenchKnown, results_of_huge_arrays) {
    dpr_ctx *cpu = NULL;
    known k;
    known_results all, block;
    const bench_ops sum = ops_of(DPR_SUM);
    const size_t count = (size_t)1 << 33, per_block = KNOWN_BLOCK / sizeof(float), blocks = count / per_block;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    EXPECT_STATUS(DPR_OK, known_make(&k, cpu, &sum, DPR_F32));
    EXPECT_STATUS(DPR_OK, known_expect(&k, count, &all));
    EXPECT_STATUS(DPR_OK, known_expect(&k, per_block, &block));
    EXPECT_NEAR_F64(1, all.at[0].part[0] / (block.at[0].part[0] * (double)blocks), 1e-14);
    EXPECT_TRUE(all.at[0].tolerance > 0 && all.at[0].tolerance < 1e-5 * all.at[0].part[0]);
    known_free(&k);
    EXPECT_STATUS(DPR_OK, known_make(&k, cpu, &sum, DPR_U8));
    EXPECT_STATUS(DPR_OK, known_expect(&k, count, &all));
    EXPECT_STATUS(DPR_OK, known_expect(&k, KNOWN_BLOCK, &block));
    EXPECT_EQ_U64(block.at[0].exact.u64 * (count / KNOWN_BLOCK), all.at[0].exact.u64);
    known_free(&k);
    dpr_ctx_destroy(cpu);
}

TEST(BenchKnown, a_nan_is_no_sum) {
    const known_results expected = {1, {{.dtype = DPR_F32, .parts = 1, .part = {1}, .tolerance = 1e9}}};
    const uint32_t nan = 0x7fc00000;
    const float one = 1;
    EXPECT_TRUE(known_matches(&expected, &one));
    EXPECT_TRUE(!known_matches(&expected, &nan));
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static bench_row row(const char *strategy, uint64_t count, double us) {
    return (bench_row){.at = {.ops = {1, {DPR_SUM}}, .dtype = DPR_F32, .count = count},
                       .subject = strategy,
                       .strategy = strategy,
                       .us = {.n = 7, .median = us, .low = us, .high = us},
                       .gb_per_s = (double)count * 4 / us * 1e-3,
                       .verdict = BENCH_SETTLED,
                       .checked = 7};
}

TEST(BenchResults, regret) {
    bench_row rows[] = {row("a", 1, 2), row("b", 1, 3), row("c", 1, 1)};
    bench_regret regret;
    EXPECT_EQ_I64(0, results_regret(rows, 3, &regret));
    rows[1].chosen = 1;
    rows[2].wrong = 1; /* the quickest is wrong, so it wins nothing */
    ASSERT_EQ_I64(1, results_regret(rows, 3, &regret));
    EXPECT_EQ_STR("a", regret.winner->strategy);
    EXPECT_EQ_STR("b", regret.chosen->strategy);
    EXPECT_NEAR_F64(1, regret.us, 1e-12);
    EXPECT_NEAR_F64(0.5, regret.fraction, 1e-12);
    rows[0].state = BENCH_FAILED;
    ASSERT_EQ_I64(1, results_regret(rows, 3, &regret));
    EXPECT_NEAR_F64(0, regret.fraction, 0);
    rows[1].wrong = 1;
    EXPECT_EQ_I64(0, results_regret(rows, 3, &regret));
}

/* Two rows of a case in a stream with these spreads, at the end of *r. */
static void add_pair(bench_results *r, double one, double other) {
    for (int i = 0; i < 2; i++) {
        bench_row *added = results_add_row(r);
        *added = row(i ? "b" : "a", 1, 2);
        added->at.mode = BENCH_STREAM;
        added->us.spread = i ? other : one;
    }
}

TEST(BenchResults, what_scatters_is_disturbed) {
    bench_results r = {.commit = ""};
    add_pair(&r, 0.02, 0.03);
    add_pair(&r, 0.02, 0.05);
    EXPECT_TRUE(!results_disturbed(&r, 0, 2));
    EXPECT_TRUE(results_disturbed(&r, 2, 2));
    r.rows[3].state = BENCH_REFUSED; /* it has no spread */
    EXPECT_TRUE(!results_disturbed(&r, 2, 2));
    r.rows[2].us.spread = 0.5;
    EXPECT_TRUE(results_disturbed(&r, 2, 2));
    r.rule.half_width = 0.5; /* the spread is within the accuracy */
    EXPECT_TRUE(!results_disturbed(&r, 2, 2));
    r.rule.half_width = 0.4;
    EXPECT_TRUE(results_disturbed(&r, 2, 2));
    r.rows[2].wrong = 1; /* which must be reported, so it is not measured again */
    EXPECT_TRUE(!results_disturbed(&r, 2, 2));
    r.rows[2].wrong = 0;
    r.rows[2].at.mode = BENCH_GRAPH; /* the host's programs do not disturb that */
    EXPECT_TRUE(!results_disturbed(&r, 2, 2));
    results_free(&r);
}

/* Whether a second measurement with spreads `one` and `other` replaces the first, whose spreads are 0.2 and 0.1. Row
 * `wrong` of the second is wrong (-1: none is). */
static int takes_place(int only_if_calmer, double one, double other, int wrong) {
    bench_results r = {.commit = ""};
    add_pair(&r, 0.2, 0.1);
    add_pair(&r, one, other);
    r.rows[2].us.median = r.rows[3].us.median = 1000; /* the second is slower, which must not matter */
    if (wrong >= 0)
        r.rows[2 + wrong].wrong = 1;
    results_keep_later(&r, 0, 2, 2, only_if_calmer);
    EXPECT_EQ_U64(2, r.row_count);
    EXPECT_EQ_I64(r.rows[0].us.median == 1000, r.rows[1].us.median == 1000); /* both, or none */
    const int takes = r.rows[0].us.median == 1000;
    results_free(&r);
    return takes;
}

/* A row is compared with those up to it, as they mostly were, and not with the best of them. */
TEST(BenchResults, what_is_usual_is_not_slow) {
    static const struct {
        double slowdown;
        int on_cpu, on_gpu;
    } rows[] = {{0, 0, 0},   {0.5, 1, 1},  {0.5, 0, 0},  {0.51, 0, 0}, {0.52, 0, 1},
                {0.6, 1, 1}, {0.57, 0, 1}, {0.59, 1, 1}, {0.1, 0, 0},  {0.5, 0, 0}};
    bench_results r = {.commit = ""};
    for (size_t i = 0; i < LENGTH(rows); i++) {
        bench_row one = row("a", 1, 2);
        one.slowdown = rows[i].slowdown;
        *results_add_row(&r) = one;
        r.device.ordinal = DPR_DEVICE_CPU;
        EXPECT_EQ_I64(rows[i].on_cpu, results_slower_than_usual(&r, i));
        r.device.ordinal = 0;
        EXPECT_EQ_I64(rows[i].on_gpu, results_slower_than_usual(&r, i));
    }
    results_free(&r);
}

/* A machine that has become slower is not slow for ever. */
TEST(BenchResults, what_has_become_usual_is_not_slow) {
    enum { QUICK = 400, SLOW = 128 };
    bench_results r = {.commit = "", .device.ordinal = DPR_DEVICE_CPU};
    for (size_t i = 0; i < QUICK + SLOW; i++) {
        bench_row one = row("a", 1, 2);
        one.slowdown = i < QUICK ? 0 : 0.5;
        *results_add_row(&r) = one;
        EXPECT_EQ_I64(QUICK <= i && i < QUICK + SLOW - 1, results_slower_than_usual(&r, i));
    }
    results_free(&r);
}

TEST(BenchResults, the_calmer_visit_is_kept) {
    EXPECT_TRUE(takes_place(1, 0.01, 0.28, -1));
    EXPECT_TRUE(!takes_place(1, 0.01, 0.3, -1));
    EXPECT_TRUE(takes_place(1, 0.4, 0.4, 1)); /* what is wrong shows */
    bench_results r = {.commit = ""};
    add_pair(&r, 0.2, 0.1);
    *results_add_row(&r) = row("a", 1, 2); /* the second visit was cut off */
    results_keep_later(&r, 0, 2, 2, 1);
    EXPECT_EQ_U64(2, r.row_count);
    EXPECT_NEAR_F64(0.2, r.rows[0].us.spread, 0);
    add_pair(&r, 0, 0); /* so was this, after a sample of each row */
    r.rows[3].verdict = BENCH_MORE;
    results_keep_later(&r, 0, 2, 2, 1);
    EXPECT_NEAR_F64(0.2, r.rows[0].us.spread, 0);
    add_pair(&r, 0, 0);
    r.rows[2].slowdown = 0.5; /* the machine was slower */
    results_keep_later(&r, 0, 2, 2, 1);
    EXPECT_NEAR_F64(0.2, r.rows[0].us.spread, 0);
    add_pair(&r, 0, 0);
    r.rows[2].slowdown = 0.5;
    r.rows[2].verdict = BENCH_MORE;
    r.rows[3].wrong = 1; /* a wrong result is kept although the measurement was cut off */
    results_keep_later(&r, 0, 2, 2, 1);
    EXPECT_EQ_U64(2, r.row_count);
    EXPECT_EQ_I64(1, r.rows[1].wrong);
    results_free(&r);
}

TEST(BenchResults, the_second_visit_of_a_slow_choice_is_kept) {
    EXPECT_TRUE(takes_place(0, 0.4, 0.4, -1));
    bench_results r = {.commit = ""};
    add_pair(&r, 0.2, 0.1);
    *results_add_row(&r) = row("a", 1, 2); /* cut off */
    results_keep_later(&r, 0, 2, 2, 0);
    EXPECT_EQ_U64(2, r.row_count);
    EXPECT_NEAR_F64(0.2, r.rows[0].us.spread, 0);
    add_pair(&r, 0, 0);
    r.rows[3].verdict = BENCH_MORE;
    results_keep_later(&r, 0, 2, 2, 0);
    EXPECT_NEAR_F64(0.2, r.rows[0].us.spread, 0);
    results_free(&r);
}

TEST(BenchResults, a_choice_seems_slow) {
    bench_row rows[] = {row("a", 1, 100), row("b", 1, 100), row("cub", 1, 100), row("d", 1, 200)};
    const bench_results r = {.rows = rows, .row_count = LENGTH(rows)};
    rows[2].strategy = NULL;
    EXPECT_TRUE(!results_choice_seems_slow(&r, 0, 4)); /* nothing is chosen */
    rows[0].chosen = 1;
    rows[0].us.median = 104.9;
    EXPECT_TRUE(!results_choice_seems_slow(&r, 0, 4));
    rows[0].us.median = 105.1;
    EXPECT_TRUE(results_choice_seems_slow(&r, 0, 4));
    rows[2].us.median = 90; /* another library's time is no reason to doubt the choice */
    EXPECT_TRUE(!results_choice_seems_slow(&r, 0, 4));
    rows[2].us.median = 101;
    rows[3].wrong = 1; /* which must be reported, so the case is not measured again */
    EXPECT_TRUE(!results_choice_seems_slow(&r, 0, 4));
}

TEST(BenchResults, tables_are_of_rows_alike) {
    bench_results r = {.commit = ""};
    const bench_row rows[] = {row("a", 1, 2), row("b", 1, 3), row("b", 2, 1), row("c", 2, 1), row("a", 1, 1)};
    for (size_t i = 0; i < LENGTH(rows); i++)
        *results_add_row(&r) = rows[i];
    r.rows[4].at.mode = BENCH_STREAM;
    EXPECT_EQ_U64(4, results_alike(&r, 0, 1));
    EXPECT_EQ_U64(2, results_alike(&r, 0, 0));
    EXPECT_TRUE(results_find(&r, &rows[2].at, "b") == &r.rows[2]);
    EXPECT_TRUE(results_find(&r, &rows[2].at, "a") == NULL);
    EXPECT_TRUE(results_find(&r, &r.rows[4].at, "a") == &r.rows[4]);
    results_free(&r);
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

TEST(BenchText, numbers) {
    char text[32];
    EXPECT_EQ_STR("0", figure_elements(0, text));
    EXPECT_EQ_STR("2^0", figure_elements(1, text));
    EXPECT_EQ_STR("2^63", figure_elements(UINT64_C(1) << 63, text));
    EXPECT_EQ_STR("18446744073709551615", figure_elements(UINT64_MAX, text));
    EXPECT_EQ_STR("1000", figure_elements(1000, text));
    EXPECT_EQ_STR("1.23", figure_digits(1.234, text));
    EXPECT_EQ_STR("12.3", figure_digits(12.34, text));
    EXPECT_EQ_STR("1234", figure_digits(1234.4, text));
}

static int write_bench(FILE *f, const void *what, report_format format) {
    return bench_write(f, what, format);
}

/* Three sizes, at the first of which one strategy is wrong and the other fails. */
static bench_results some_results(void) {
    bench_results r = {
        .device = {.name = "Test device", .memory = DPR_MEMORY_DEVICE}, .commit = "abc123", .rule = {0.01, 7, 500, 60}};
    const bench_row rows[] = {row("a", 1000, 2),   row("b", 1000, 1),        row("a", 2048, 1),
                              row("b", 2048, 1.5), row("a", 1 << 20, 12.34), row("b", 1 << 20, 10)};
    for (size_t i = 0; i < LENGTH(rows); i++)
        *results_add_row(&r) = rows[i];
    r.rows[0].wrong = 2;
    r.rows[1].state = BENCH_FAILED;
    r.rows[1].chosen = r.rows[3].chosen = r.rows[5].chosen = 1;
    r.rows[4].slowdown = 0.05;
    r.rows[4].block = 64;
    snprintf(r.rows[1].why, sizeof r.rows[1].why, "some fault");
    bench_omission *omission = results_add_omission(&r);
    omission->at = (bench_case){.ops = {1, {DPR_SUM}}, .dtype = DPR_F32, .count = 1 << 30};
    snprintf(omission->why, sizeof omission->why, "no room");
    return r;
}

TEST(BenchReport, tables) {
    static const char *const parts[] = {
        "Test device, dpr ",
        "abc123",
        "sum of f32, calls in a graph, cold cache, 64 threads a block where that can be chosen:\n",
        "elements     bytes      a        b  best  choice           regret\n",
        "1000  3.91 KiB  2.00!  failed*     -       -                -\n",
        "2^11  8.00 KiB   1.00    1.50*     a       b  50.0 %, 0.50 us\n",
        "2^20  4.00 MiB  12.3?    10.0*     b       b   0.0 %, 0.00 us\n",
        "\nGB/s:\nelements     bytes      a        b\n    1000  3.91 KiB  2.00!  failed*\n",
        "Regret: 22.5 % as a geometric mean of 2; at worst 50.0 %, 0.50 us (sum of f32, graph, cold, 2^11 elements: b ",
        "b chosen, a quickest); more than 5 % and 0.2 us in 1.\n",
        "the median is not certain to 1 %; ? the machine was slower than before, by up to 5 %\n",
        "1000 elements: a gave 2 WRONG results of 7\n",
        "b failed: some fault\n",
        "Left out: sum of f32, graph, cold, 2^30 elements: no room\n",
        NULL};
    bench_results r = some_results();
    check_report(write_bench, &r, REPORT_TABLE, parts);
    results_free(&r);
}

/* Text of the command line is no markup; a mark stays as it is. */
TEST(BenchReport, markdown) {
    static const char *const parts[] = {" a\\|b&lt;img src=x&gt;\n", "  1.50* |", NULL};
    bench_results r = some_results();
    r.commit = "a|b<img src=x>";
    check_report(write_bench, &r, REPORT_MARKDOWN, parts);
    results_free(&r);
}

/* The last report may be one that was written before the end. */
TEST(BenchReport, a_measurement_that_goes_on_counts_as_interrupted) {
    bench_results r = some_results();
    r.is_partial = 1;
    cJSON *document = report_json_of(write_bench, &r);
    EXPECT_TRUE(cJSON_IsTrue(member_of(document, "interrupted")));
    cJSON_Delete(document);
    results_free(&r);
}

TEST(BenchReport, csv) {
    static const char *const parts[] = {
        "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,"
        "gb_per_s,ok,chosen,settled,doubtful,block,memory\n",
        "\na,sum,f32,1048576,graph,cold,7,0,12.34,12.34,12.34,0,339.895,1,0,1,1,64,device\n",
        "\nb,sum,f32,1000,graph,cold,7,0,,,,,,0,1,1,0,0,device\n", NULL};
    bench_results r = some_results();
    check_report(write_bench, &r, REPORT_CSV, parts);
    results_free(&r);
}

TEST(BenchReport, memory_of_another_kind_is_named) {
    static const char *const tables[] =
        {"sum of f32, calls in a graph, cold cache, pinned memory, 64 threads a block where that can be chosen:\n",
         "(sum of f32, graph, cold, pinned memory, 2^11 elements: b ", NULL},
                             *const csv[] = {",1,0,1,1,64,pinned\n", NULL};
    bench_results r = some_results();
    for (size_t i = 0; i < r.row_count; i++)
        r.rows[i].at.memory = DPR_MEMORY_PINNED;
    check_report(write_bench, &r, REPORT_TABLE, tables);
    check_report(write_bench, &r, REPORT_CSV, csv);
    cJSON *document = report_json_of(write_bench, &r);
    EXPECT_EQ_STR("pinned", member_of(document, "rows.0.memory")->valuestring);
    EXPECT_EQ_STR("pinned", member_of(document, "regret.0.memory")->valuestring);
    EXPECT_TRUE(member_of(document, "left_out.0.memory") == NULL);
    cJSON_Delete(document);
    results_free(&r);
}

TEST(BenchReport, steady_times_are_in_json) {
    bench_results r = some_results();
    r.rows[4].launch_us = 4;
    r.rows[4].steady = (bench_summary){.n = 7, .median = 3, .low = 2, .high = 5};
    cJSON *document = report_json_of(write_bench, &r);
    const cJSON *row = member_of(document, "rows.4");
    EXPECT_NEAR_F64(4, number_of(row, "launch_us"), 0);
    EXPECT_NEAR_F64(3, number_of(row, "steady_us"), 0);
    EXPECT_NEAR_F64(2, number_of(row, "steady_low_us"), 0);
    EXPECT_NEAR_F64(5, number_of(row, "steady_high_us"), 0);
    EXPECT_TRUE(member_of(document, "rows.0.steady_us") == NULL);
    cJSON_Delete(document);
    results_free(&r);
}

TEST(BenchReport, json) {
    bench_results r = some_results();
    cJSON *document = report_json_of(write_bench, &r);
    EXPECT_EQ_STR("benchmark,version,commit,device,settings,interrupted,definitions,rows,regret,mean_regret_percent,"
                  "worst_regret_percent,left_out",
                  keys_of(document));
    EXPECT_EQ_STR(
        "name,kind,sm_count,cache_bytes,cuda_driver_version,cuda_runtime_version,sm_clock_khz,memory_clock_khz,"
        "memory_bus_bits,memory_bytes",
        keys_of(member_of(document, "device")));
    EXPECT_EQ_STR("accuracy,min_samples,max_samples,budget_seconds,pool_bytes,wisdom",
                  keys_of(member_of(document, "settings")));
    EXPECT_EQ_STR(DEFINITION_KEYS, keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,block," FIGURE_KEYS, keys_of(member_of(document, "rows.4")));
    EXPECT_EQ_STR(
        "strategy,op,dtype,count,mode,cache,samples,calls,visit,chosen,ok,settled,doubtful,checked,wrong,late,error",
        keys_of(member_of(document, "rows.1")));
    EXPECT_EQ_STR("op,dtype,count,mode,cache,winner,winner_us,chosen,chosen_us,regret_us,regret_percent",
                  keys_of(member_of(document, "regret.0")));
    EXPECT_EQ_STR("op,dtype,count,mode,cache,why", keys_of(member_of(document, "left_out.0")));
    EXPECT_TRUE(cJSON_IsFalse(member_of(document, "interrupted")));
    EXPECT_EQ_STR("some fault", string_of(document, "rows.1.error"));
    EXPECT_NEAR_F64(12.34, number_of(document, "rows.4.median_us"), 0);
    EXPECT_NEAR_F64(50, number_of(document, "regret.0.regret_percent"), 0);
    EXPECT_NEAR_F64(22.4745, number_of(document, "mean_regret_percent"), 1e-3);
    EXPECT_NEAR_F64(50, number_of(document, "worst_regret_percent"), 0);
    EXPECT_EQ_I64(2, cJSON_GetArraySize(member_of(document, "regret")));
    cJSON_Delete(document);
    results_free(&r);
}
