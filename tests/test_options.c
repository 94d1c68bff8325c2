/* Names, tables, options, plans, the buffer protocol of texts. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"
#include "support.h"

/* ---- Names ---- */

TEST(Names, ops_and_dtypes_round_trip) {
    int op = DPR_SUM, dtype = DPR_BOOL;
    for (; dpr_op_name((dpr_op)op); op++) {
        dpr_op parsed = (dpr_op)-1;
        EXPECT_STATUS(DPR_OK, dpr_op_parse(dpr_op_name((dpr_op)op), &parsed));
        EXPECT_EQ_I64(op, parsed);
    }
    for (; dpr_dtype_name((dpr_dtype)dtype); dtype++) {
        dpr_dtype parsed = (dpr_dtype)-1;
        EXPECT_STATUS(DPR_OK, dpr_dtype_parse(dpr_dtype_name((dpr_dtype)dtype), &parsed));
        EXPECT_EQ_I64(dtype, parsed);
    }
    EXPECT_EQ_I64(DPR_MINMAX + 1, op);
    EXPECT_EQ_I64(DPR_C128 + 1, dtype);
    EXPECT_EQ_STR("sum", dpr_op_name(DPR_SUM));
    EXPECT_EQ_STR("minmax", dpr_op_name(DPR_MINMAX));
    EXPECT_EQ_STR("bf16", dpr_dtype_name(DPR_BF16));
    EXPECT_TRUE(dpr_op_name((dpr_op)-1) == NULL);
    EXPECT_TRUE(dpr_dtype_name((dpr_dtype)-1) == NULL);
    EXPECT_TRUE(dpr_dtype_name((dpr_dtype)1000000) == NULL);
}

TEST(Names, statuses) {
#define CHECK(A, NAME, number, TEXT)                                                                                   \
    EXPECT_EQ_STR("DPR_" #NAME, dpr_status_name(DPR_##NAME));                                                          \
    EXPECT_EQ_STR(TEXT, dpr_status_text(DPR_##NAME));
    DPR_STATUS_LIST(CHECK, _)
#undef CHECK
    EXPECT_EQ_I64(0, DPR_OK);
    EXPECT_EQ_STR("DPR_ERR_?", dpr_status_name((dpr_status)-1));
    EXPECT_EQ_STR("DPR_ERR_?", dpr_status_name((dpr_status)1000));
    EXPECT_TRUE(dpr_status_text((dpr_status)-1) != NULL && dpr_status_text((dpr_status)1000) != NULL);
}

TEST(Names, strategies) {
    EXPECT_TRUE(dpr_strategy_count() >= 3);
    EXPECT_EQ_STR("cpu.serial", dpr_strategy_name(0));
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        EXPECT_TRUE(dpr_strategy_name(i) != NULL && strchr(dpr_strategy_name(i), '.') != NULL);
        EXPECT_TRUE(dpr_strategy_text(i) != NULL && dpr_strategy_text(i)[0] != '\0');
        for (size_t j = 0; j < i; j++)
            EXPECT_TRUE(strcmp(dpr_strategy_name(i), dpr_strategy_name(j)) != 0);
    }
    EXPECT_TRUE(dpr_strategy_name(dpr_strategy_count()) == NULL);
    EXPECT_TRUE(dpr_strategy_text(SIZE_MAX) == NULL);
}

TEST(Names, strategies_are_found_by_name) {
    size_t found = 99;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        EXPECT_EQ_I64(DPR_OK, dpr_strategy_parse(dpr_strategy_name(i), &found));
        EXPECT_EQ_U64(i, found);
    }
    found = 99;
    EXPECT_EQ_I64(DPR_ERR_UNKNOWN_STRATEGY, dpr_strategy_parse("cpu", &found));
    EXPECT_EQ_STR("name is \"cpu\", and no strategy of this build has that name", dpr_last_error());
    EXPECT_EQ_I64(DPR_ERR_NULL_POINTER, dpr_strategy_parse(NULL, &found));
    EXPECT_EQ_U64(99, found);
    EXPECT_EQ_I64(DPR_ERR_NULL_POINTER, dpr_strategy_parse("cpu.simd", NULL));
}

TEST(Names, former_names_of_strategies) {
    static const char *const names[][2] = {{"flat.lookback", "flat.lastblock"}, {"atomic.tls", "atomic.thread"}};
    size_t found;
    if (dpr_strategy_parse("flat.lastblock", &found) != DPR_OK)
        SKIP("a build without CUDA");
    for (size_t i = 0; i < LENGTH(names); i++) {
        ASSERT_EQ_I64(DPR_OK, dpr_strategy_parse(names[i][0], &found));
        EXPECT_EQ_STR(names[i][1], dpr_strategy_name(found));
    }
}

TEST(Names, strategies_are_described) {
    size_t candidates = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        dpr_strategy_info info = DPR_STRATEGY_INFO_INIT;
        ASSERT_EQ_I64(DPR_OK, dpr_strategy_describe(i, &info));
        const char *name = dpr_strategy_name(i);
        EXPECT_EQ_I64(strncmp(name, "cpu.", 4) != 0, info.on_gpu);
        EXPECT_EQ_I64(strncmp(name, "dp.", 3) == 0, info.role == DPR_ROLE_NESTED);
        EXPECT_TRUE(info.role != DPR_ROLE_DEMONSTRATION || info.takes_block);
        EXPECT_TRUE(info.role != DPR_ROLE_CANDIDATE || !info.takes_block);
        candidates += info.role == DPR_ROLE_CANDIDATE;
    }
    EXPECT_TRUE(candidates >= 3);
}

TEST(Names, what_cannot_be_described) {
    dpr_strategy_info info = DPR_STRATEGY_INFO_INIT, small = DPR_STRATEGY_INFO_INIT;
    EXPECT_EQ_I64(DPR_ERR_NULL_POINTER, dpr_strategy_describe(0, NULL));
    EXPECT_EQ_I64(DPR_ERR_UNKNOWN_STRATEGY, dpr_strategy_describe(dpr_strategy_count(), &info));
    small.size--;
    EXPECT_EQ_I64(DPR_ERR_INVALID_OPTION, dpr_strategy_describe(0, &small));
}

TEST(Names, version) {
    char expected[32];
    EXPECT_TRUE(snprintf(expected, sizeof expected, "%d.%d.%d", DPR_VERSION_MAJOR, DPR_VERSION_MINOR, DPR_VERSION_PATCH)
                > 0);
    EXPECT_EQ_STR(expected, dpr_version());
    EXPECT_EQ_STR("0.2.0", dpr_version());
    EXPECT_EQ_I64(DPR_VERSION_NUMBER, dpr_version_number());
    EXPECT_EQ_I64(200, dpr_version_number());
}

/* ---- Tables ---- */

TEST(Tables, agree_with_the_reference) {
    for (int op = DPR_SUM; op <= DPR_MINMAX; op++) {
        EXPECT_EQ_U64(ref_result_values((dpr_op)op), dpr_result_values((dpr_op)op));
        for (int dtype = DPR_BOOL; dtype <= DPR_C128; dtype++) {
            const int supported = ref_supported((dpr_op)op, (dpr_dtype)dtype);
            EXPECT_EQ_I64(supported, dpr_supported((dpr_op)op, (dpr_dtype)dtype));
            const dpr_dtype result = dpr_result_dtype((dpr_op)op, (dpr_dtype)dtype);
            if (supported)
                EXPECT_EQ_I64(ref_result_dtype((dpr_op)op, (dpr_dtype)dtype), result);
            else
                EXPECT_EQ_I64(DPR_DTYPE_NONE, result);
        }
    }
}

TEST(Tables, sizes_and_alignments) {
    for (int d = DPR_BOOL; d <= DPR_C128; d++) {
        const dpr_dtype dtype = (dpr_dtype)d;
        EXPECT_EQ_U64(ref_size(dtype), dpr_dtype_size(dtype));
        EXPECT_EQ_U64(ref_size(dtype) / (ref_is_complex(dtype) ? 2 : 1), dpr_dtype_alignment(dtype));
    }
    EXPECT_EQ_U64(sizeof(dpr_c64), dpr_dtype_size(DPR_C64));
    EXPECT_EQ_U64(sizeof(dpr_c128), dpr_dtype_size(DPR_C128));
}

TEST(Tables, values_that_are_no_enum) {
    const int outside[] = {-1, 0, 15, 99, DPR_SUM - 1, DPR_MINMAX + 1, DPR_BOOL - 1, DPR_C128 + 1, 1000000};
    for (size_t i = 0; i < LENGTH(outside); i++) {
        EXPECT_EQ_U64(0, dpr_dtype_size((dpr_dtype)outside[i]));
        EXPECT_EQ_U64(0, dpr_dtype_alignment((dpr_dtype)outside[i]));
        EXPECT_EQ_I64(0, dpr_supported(DPR_SUM, (dpr_dtype)outside[i]));
        EXPECT_EQ_I64(0, dpr_supported((dpr_op)outside[i], DPR_F32));
        EXPECT_EQ_U64(0, dpr_result_values((dpr_op)outside[i]));
        EXPECT_EQ_I64(DPR_DTYPE_NONE, dpr_result_dtype((dpr_op)outside[i], DPR_F32));
        EXPECT_EQ_I64(DPR_DTYPE_NONE, dpr_result_dtype(DPR_SUM, (dpr_dtype)outside[i]));
        EXPECT_TRUE(dpr_dtype_name((dpr_dtype)outside[i]) == NULL);
        EXPECT_TRUE(dpr_op_name((dpr_op)outside[i]) == NULL);
    }
}

/* ---- Block sizes ---- */

static dpr_status with_block(dpr_ctx *ctx, int block, double *out) {
    static const double in[] = {1, 2, 4};
    const dpr_launch_options launch = {.size = sizeof launch, .block = block};
    dpr_options options = DPR_OPTIONS_INIT;
    options.launch = &launch;
    return dpr_reduce_ex(ctx, in, out, 3, DPR_F64, DPR_SUM, &options);
}

TEST(Options, block_is_a_power_of_two_of_warps) {
    static const int wrong[] = {-32, -1, 1, 16, 31, 33, 48, 96, 1023, 1025, 2048, 1 << 30};
    dpr_ctx *ctx = NULL;
    double out = -1;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        char value[16];
        snprintf(value, sizeof value, "is %d;", wrong[i]);
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, with_block(ctx, wrong[i], &out));
        EXPECT_CONTAINS(dpr_last_error(), "options->launch->block");
        EXPECT_CONTAINS(dpr_last_error(), value);
    }
    EXPECT_NEAR_F64(-1.0, out, 0.0);
    EXPECT_STATUS(DPR_OK, with_block(ctx, 0, &out));
    EXPECT_NEAR_F64(7.0, out, 0.0);
    dpr_ctx_destroy(ctx);
}

/* The CPU's strategies have no blocks. */
TEST(Options, block_needs_a_strategy_that_has_it) {
    dpr_ctx *ctx = NULL;
    double out = -1;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, with_block(ctx, 256, &out));
    EXPECT_CONTAINS(dpr_last_error(), "block");
    EXPECT_NEAR_F64(-1.0, out, 0.0);
    dpr_ctx_destroy(ctx);
}

/* ---- Nested launches, of which the CPU makes none ---- */

typedef struct reported {
    dpr_ctx *cpu;
    dpr_launch_report before, report, none; /* `report` is as `before` until a call reports */
    double out;
    dpr_options options;
    dpr_launch_options launch;
} reported;

static void report_open(void *state) {
    reported *r = state;
    memset(&r->before, 0xa5, sizeof r->before);
    r->report = r->before;
    r->options = (dpr_options)DPR_OPTIONS_INIT;
    r->launch = (dpr_launch_options){.size = sizeof r->launch, .report = &r->report};
    r->options.launch = &r->launch;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &r->cpu));
}

static void report_close(void *state) {
    dpr_ctx_destroy(((reported *)state)->cpu);
}

#define REPORT_TEST(NAME) TEST_FIXTURE(Options, NAME, reported, report_open, report_close)

static const double one_two_four[] = {1, 2, 4};

/* The last call's result is there, and its report, which is all zero. */
static void expect_reported(reported *r) {
    EXPECT_NEAR_F64(7.0, r->out, 0.0);
    EXPECT_EQ_BYTES(&r->none, &r->report, sizeof r->report);
    r->report = r->before;
    r->out = -1;
}

REPORT_TEST(calls_on_the_cpu_report_no_launches) {
    static const char *const strategies[] = {NULL, "cpu.serial", "cpu.simd", "cpu.threads"};
    for (size_t i = 0; i < LENGTH(strategies); i++) {
        fixture->options.strategy = strategies[i];
        EXPECT_STATUS(DPR_OK,
                      dpr_reduce_ex(fixture->cpu, one_two_four, &fixture->out, 3, DPR_F64, DPR_SUM, &fixture->options));
        expect_reported(fixture);
        EXPECT_STATUS(DPR_OK, dpr_reduce_async(fixture->cpu, one_two_four, &fixture->out, 3, DPR_F64, DPR_SUM,
                                               &fixture->options, NULL));
        expect_reported(fixture);
    }
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->cpu, NULL, &fixture->out, 0, DPR_F64, DPR_SUM, &fixture->options));
    EXPECT_EQ_BYTES(&fixture->none, &fixture->report, sizeof fixture->report);
}

/* Each run of a plan, and not the plan itself. */
REPORT_TEST(plans_on_the_cpu_report_no_launches) {
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_F64;
    problem.count = LENGTH(one_two_four);
    problem.options = &fixture->options;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->cpu, &problem, &plan));
    EXPECT_EQ_BYTES(&fixture->before, &fixture->report, sizeof fixture->report);
    for (int run = 0; run < 2; run++) {
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, one_two_four, &fixture->out, NULL));
        expect_reported(fixture);
    }
    dpr_plan_destroy(plan);
}

/* They are limits, so what makes no launches keeps within all of them. */
REPORT_TEST(limits_of_launches_mean_nothing_to_the_cpu) {
    static const int depths[] = {0, 1, 23, 24}, pendings[] = {DPR_NO_LAUNCHES, 0, 1, INT_MAX};
    for (size_t d = 0; d < LENGTH(depths); d++)
        for (size_t p = 0; p < LENGTH(pendings); p++) {
            fixture->launch.max_depth = depths[d];
            fixture->launch.max_pending = pendings[p];
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->cpu, one_two_four, &fixture->out, 3, DPR_F64, DPR_SUM,
                                                &fixture->options));
            expect_reported(fixture);
        }
}

/* ---- Plans ---- */

TEST(Plans, explanation_fills_a_buffer_of_the_size_it_asks_for) {
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.count = 1000;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    size_t needed = 0;
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, NULL, &needed));
    ASSERT_TRUE(needed > 1);
    char *text = malloc(needed);
    ASSERT_TRUE(text != NULL);
    size_t len = needed;
    memset(text, 0x7f, needed);
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &len));
    EXPECT_EQ_U64(needed, len);
    EXPECT_EQ_U64(needed, strlen(text) + 1);
    EXPECT_CONTAINS(text, dpr_plan_strategy(plan));
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (strncmp(dpr_strategy_name(i), "cpu.", 4) == 0)
            EXPECT_CONTAINS(text, dpr_strategy_name(i));
    EXPECT_CONTAINS(text, "1000");

    len = needed - 1;
    memset(text, 0x7f, needed);
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_plan_explain(plan, text, &len));
    EXPECT_EQ_U64(needed, len);
    for (size_t i = 0; i < needed; i++)
        ASSERT_EQ_I64(0x7f, text[i]);
    free(text);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(Plans, run_the_strategy_asked_for) {
    static const float in[] = {1, -2, 3, 7, 0};
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (strncmp(dpr_strategy_name(i), "cpu.", 4) != 0)
            continue;
        dpr_options options = DPR_OPTIONS_INIT;
        dpr_problem problem = DPR_PROBLEM_INIT;
        options.strategy = dpr_strategy_name(i);
        problem.op = DPR_ARGMAX;
        problem.count = LENGTH(in);
        problem.options = &options;
        dpr_plan *plan = NULL;
        int64_t out = -1;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
        EXPECT_EQ_STR(options.strategy, dpr_plan_strategy(plan));
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
        EXPECT_EQ_I64(3, out);
        dpr_plan_destroy(plan);
    }
    dpr_ctx_destroy(ctx);
}

TEST(Plans, keep_the_initial_value) {
    static const int32_t in[] = {1, 2, 3};
    int64_t init = 1000, out = 0;
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.init = &init;
    problem.dtype = DPR_I32;
    problem.count = 3;
    problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    init = 5;
    options.size = 0;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
    EXPECT_EQ_I64(1006, out);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(Plans, of_nothing_give_the_identity) {
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    double out = 5;
    problem.op = DPR_PROD;
    problem.dtype = DPR_F64;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, NULL, &out, NULL));
    EXPECT_NEAR_F64(1.0, out, 0.0);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

/* ---- A number of elements that is read when the plan runs ---- */

/* Elements 1, 2, ... 9. */
static int64_t run_counted(dpr_ctx *ctx, const char *strategy, dpr_op op, uint64_t count) {
    static const int32_t in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint64_t at = 99; /* not what it is when the plan is made */
    int64_t out = -77;
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.strategy = strategy;
    problem.op = op;
    problem.dtype = DPR_I32;
    problem.count = LENGTH(in);
    problem.options = &options;
    problem.device_count = &at;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    at = count;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
    EXPECT_EQ_U64(count, at);
    dpr_plan_destroy(plan);
    return out;
}

TEST(Plans, follow_a_count) {
    const char *const strategies[] = {NULL, "cpu.serial", "cpu.simd", "cpu.threads"};
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    for (size_t s = 0; s < LENGTH(strategies); s++) {
        for (uint64_t count = 0; count <= 9; count++) {
            EXPECT_EQ_I64(count * (count + 1) / 2, run_counted(ctx, strategies[s], DPR_SUM, count));
            EXPECT_EQ_I64((int64_t)count - 1, run_counted(ctx, strategies[s], DPR_ARGMAX, count)); /* -1 of none */
            EXPECT_EQ_I64(count ? 0 : -1, run_counted(ctx, strategies[s], DPR_ARGMIN, count));
        }
        EXPECT_EQ_I64(45, run_counted(ctx, strategies[s], DPR_SUM, 10));
        EXPECT_EQ_I64(45, run_counted(ctx, strategies[s], DPR_SUM, UINT64_MAX));
        EXPECT_EQ_I64(8, run_counted(ctx, strategies[s], DPR_ARGMAX, UINT64_MAX));
    }
    dpr_ctx_destroy(ctx);
}

TEST(Plans, refuse_a_misplaced_count) {
    const uint64_t counts[2] = {1, 1};
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.device_count = (const uint64_t *)(const void *)((const char *)counts + 4);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem->device_count is 0x");
    problem.device_count = counts;
    problem.op = DPR_ARGMAX;
    EXPECT_STATUS(DPR_ERR_EMPTY, dpr_plan_create(ctx, &problem, &plan)); /* `count` itself is 0 */
    EXPECT_TRUE(plan == NULL);
    dpr_ctx_destroy(ctx);
}
