/* Several operations in one pass, without a GPU. */
#include "fused_sets.h"

TEST(Fused, random_sets_on_the_cpu) {
    static _Alignas(16) unsigned char in[FUSED_BYTES];
    static const char *const strategies[] = {"cpu.serial", "cpu.simd", "cpu.threads", NULL};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t seed = 18;
    for (size_t i = 0; i < 20 * dpr_dtype_count() && !test_failed(); i++) {
        fused_set set = {.dtype = dpr_dtype_at(i % dpr_dtype_count()), .in = in};
        fused_choose(&set, &seed);
        data_fill(in, set.ops[0], set.dtype, set.pattern, set.count);
        for (size_t s = 0; s < LENGTH(strategies); s++)
            fused_reduce(&set, ctx, strategies[s], in);
    }
    dpr_ctx_destroy(ctx);
}

TEST(Fused, plans_of_several_operations) {
    static const int32_t in[] = {4, -2, 7, 7};
    static const dpr_op ops[] = {DPR_MINMAX, DPR_MEAN, DPR_ARGMAX};
    dpr_ctx *ctx = cpu_ctx();
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    int32_t least_and_greatest[2] = {0};
    double mean = 0;
    int64_t index = -1;
    void *const outs[] = {least_and_greatest, &mean, &index};
    problem.dtype = DPR_I32;
    problem.count = 4;
    problem.ops = ops;
    problem.op_count = 3;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run_fused(plan, in, outs, NULL));
    EXPECT_EQ_I64(-2, least_and_greatest[0]);
    EXPECT_EQ_I64(7, least_and_greatest[1]);
    EXPECT_TRUE(mean == 4);
    EXPECT_EQ_I64(2, index);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_run(plan, in, &mean, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "plan is of 3 operations");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_run_partial(plan, in, &mean, 0, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_plan_run_fused(plan, in, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_plan_run_fused(NULL, in, outs, NULL));
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

/* A plan of one operation runs by either call. */
TEST(Fused, plans_name_all_operations) {
    static const dpr_op ops[] = {DPR_VAR, DPR_SUM, DPR_VAR};
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    char text[4096];
    size_t length = sizeof text;
    dpr_ctx *ctx = cpu_ctx();
    problem.dtype = DPR_F64;
    problem.count = 4;
    problem.ops = ops;
    problem.op_count = 3;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &length));
    EXPECT_CONTAINS(text, "problem:   var, sum of 4 f64");
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(Fused, plans_of_one_operation) {
    static const float in[] = {3, 4};
    dpr_ctx *ctx = cpu_ctx();
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    float norm = 0;
    void *const outs[] = {&norm};
    problem.op = DPR_NORM2;
    problem.count = 2;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run_fused(plan, in, outs, NULL));
    EXPECT_TRUE(norm == 5);
    norm = 0;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &norm, NULL));
    EXPECT_TRUE(norm == 5);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

static dpr_status fuse(dpr_ctx *ctx, const void *in, double *out, dpr_dtype dtype, const dpr_op *ops, size_t n,
                       const dpr_options *options) {
    void *outs[DPR_FUSED_MOST + 1];
    for (size_t i = 0; i <= DPR_FUSED_MOST; i++)
        outs[i] = &out[i];
    return dpr_reduce_fused(ctx, in, outs, 4, dtype, ops, n, options);
}

/* What is wrong is named, and nothing is written. */
TEST(Fused, numbers_of_operations_without_operations) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    dpr_ctx *ctx = cpu_ctx();
    problem.op = DPR_SUM;
    problem.dtype = DPR_F64;
    problem.count = 4;
    problem.op_count = 3;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem->op_count is 3; it should be 0, because problem->ops is NULL");
    const dpr_op op = DPR_SUM;
    problem.ops = &op;
    for (problem.op_count = 0; problem.op_count <= 9; problem.op_count += 9) {
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(ctx, &problem, &plan));
        EXPECT_CONTAINS(dpr_last_error(), problem.op_count ? "problem->op_count is 9; it should be from 1 to 8"
                                                           : "problem->op_count is 0; it should be from 1 to 8");
    }
    dpr_ctx_destroy(ctx);
}

TEST(Fused, what_is_refused) {
    static const double in[] = {1, 2, 3, 4};
    static const dpr_op ops[DPR_FUSED_MOST + 1] = {DPR_SUM, DPR_MAX, DPR_VAR,  DPR_MIN, DPR_MEAN,
                                                   DPR_SUM, DPR_SUM, DPR_PROD, DPR_SUM};
    static const dpr_op odd[] = {DPR_SUM, DPR_BAND}, none[] = {DPR_SUM, (dpr_op)99}, typed[] = {(dpr_op)DPR_F64};
    double out[2 * DPR_FUSED_MOST] = {0};
    void *const unset[] = {out, NULL}, *const askew[] = {out, (char *)(out + 1) + 4};
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_ctx *ctx = cpu_ctx();
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, fuse(ctx, in, out, DPR_F64, ops, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "n is 0");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, fuse(ctx, in, out, DPR_F64, ops, 9, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "n is 9");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, fuse(ctx, in, out, DPR_F64, NULL, 2, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, fuse(NULL, in, out, DPR_F64, ops, 2, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, fuse(ctx, NULL, out, DPR_F64, ops, 2, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce_fused(ctx, in, NULL, 4, DPR_F64, ops, 2, NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_reduce_fused(ctx, in, unset, 4, DPR_F64, ops, 2, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "outs[1] is NULL");
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_reduce_fused(ctx, in, askew, 4, DPR_F64, ops, 2, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "outs[1] is ");
    EXPECT_STATUS(DPR_ERR_UNSUPPORTED_PAIR, fuse(ctx, in, out, DPR_F64, odd, 2, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "ops[1]: op band has no meaning for dtype f64");
    EXPECT_STATUS(DPR_ERR_INVALID_OP, fuse(ctx, in, out, DPR_F64, none, 2, NULL));
    EXPECT_EQ_STR("ops[1]: op is 99, which is no dpr_op", dpr_last_error());
    EXPECT_STATUS(DPR_ERR_INVALID_OP, fuse(ctx, in, out, DPR_F64, typed, 1, NULL));
    options.init = (const void *)(uintptr_t)8; /* is not read: it may be of any operation */
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, fuse(ctx, in, out, DPR_F64, ops, 2, &options));
    EXPECT_CONTAINS(dpr_last_error(), "options->init is set");
    for (size_t i = 0; i < LENGTH(out); i++)
        EXPECT_TRUE(out[i] == 0);
    EXPECT_STATUS(DPR_OK, fuse(ctx, in, out, DPR_F64, ops, 8, NULL));
    EXPECT_TRUE(out[0] == 10 && out[1] == 4 && out[2] == 1.25 && out[3] == 1 && out[4] == 2.5 && out[7] == 24);
    dpr_ctx_destroy(ctx);
}
