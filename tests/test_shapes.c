/* Problems of several dimensions. */
#include <limits.h>
#include <string.h>

#include "support.h"

typedef struct scene {
    dpr_ctx *ctx;
    dpr_problem problem;
    int32_t in[24];
} scene;

static void set_up(void *context) {
    scene *s = context;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->ctx));
    dpr_problem_init(&s->problem, sizeof s->problem);
    s->problem.dtype = DPR_I32;
    for (int i = 0; i < 24; i++)
        s->in[i] = i == 17 ? 100 : i;
}

static void tear_down(void *context) {
    const scene *s = context;
    dpr_ctx_destroy(s->ctx);
}

#define SHAPE_TEST(NAME) TEST_FIXTURE(Shapes, NAME, scene, set_up, tear_down)

static void shape(scene *s, int dimensions, const uint64_t *extents, const int64_t *strides) {
    s->problem.dimensions = dimensions;
    s->problem.extents = extents;
    s->problem.strides = strides;
}

/* Expects the problem's operation to give this result. */
static void expect_result(scene *s, dpr_op op, int64_t expected) {
    dpr_plan *plan = NULL;
    int64_t out = 0;
    s->problem.op = op;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &s->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, s->in, &out, NULL));
    EXPECT_EQ_I64(expected, out);
    dpr_plan_destroy(plan);
}

static void expect_refusal(const scene *s, dpr_status status, const char *sentence) {
    dpr_plan *plan = NULL;
    EXPECT_STATUS(status, dpr_plan_create(s->ctx, &s->problem, &plan));
    EXPECT_EQ_STR(sentence, dpr_last_error());
    EXPECT_TRUE(plan == NULL);
}

SHAPE_TEST(arrays_without_gaps_are_reduced) {
    static const uint64_t flat[] = {24}, solid[] = {2, 3, 4}, most[] = {1, 2, 1, 3, 1, 2, 2, 1};
    static const int64_t one[] = {1}, of_solid[] = {12, 4, 1}, of_most[] = {-7, 12, INT64_MAX, 4, 0, 2, 1, INT64_MIN};
    const struct {
        int dimensions;
        const uint64_t *extents;
        const int64_t *strides;
    } shapes[] = {{1, flat, NULL},      {1, flat, one},     {3, solid, NULL},
                  {3, solid, of_solid}, {8, most, of_most}, {8, most, NULL}};
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        shape(fixture, shapes[i].dimensions, shapes[i].extents, shapes[i].strides);
        for (fixture->problem.count = 0; fixture->problem.count <= 24; fixture->problem.count += 24) {
            expect_result(fixture, DPR_SUM, 276 - 17 + 100);
            expect_result(fixture, DPR_ARGMAX, 17);
        }
    }
}

SHAPE_TEST(one_element_has_any_strides) {
    static const uint64_t extents[] = {1, 1};
    static const int64_t strides[] = {-3, 0};
    shape(fixture, 2, extents, strides);
    expect_result(fixture, DPR_MAX, 0);
}

SHAPE_TEST(an_extent_of_zero_leaves_no_elements) {
    static const uint64_t extents[] = {UINT64_MAX, 0, UINT64_MAX};
    static const int64_t strides[] = {5, 5, 5};
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMAX};
    shape(fixture, 3, extents, strides);
    expect_result(fixture, DPR_PROD, 1);
    fixture->problem.op = DPR_ARGMIN;
    expect_refusal(fixture, DPR_ERR_EMPTY, "by problem->extents, count is 0; argmin has no result for zero elements");
    fixture->problem.ops = ops;
    fixture->problem.op_count = 2;
    expect_refusal(fixture, DPR_ERR_EMPTY,
                   "by problem->extents, ops[1]: count is 0; argmax has no result for zero elements");
}

/* Gaps between rows, between elements, columns before rows, and one element many times. */
SHAPE_TEST(other_strides_are_reduced) {
    static const uint64_t extents[] = {3, 4};
    static const struct {
        int64_t strides[2], sum, at_most;
    } shapes[] = {{{5, 1}, 78, 11}, {{8, 2}, 132, 11}, {{1, 3}, 66, 11}, {{5, 4}, 215, 7}, {{0, 0}, 0, 0}};
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        shape(fixture, 2, extents, shapes[i].strides);
        expect_result(fixture, DPR_SUM, shapes[i].sum);
        expect_result(fixture, DPR_ARGMAX, shapes[i].at_most);
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = "cpu.serial";
        fixture->problem.options = &options;
        expect_refusal(fixture, DPR_ERR_STRATEGY_UNABLE,
                       "strategy \"cpu.serial\" cannot run this: runs one array, not along axes or with gaps");
        fixture->problem.options = NULL;
    }
    shape(fixture, 2, extents, NULL);
    expect_result(fixture, DPR_MAX, 11);
}

/* Rows read backwards; `in` is the element with all indices 0. */
SHAPE_TEST(strides_may_be_negative) {
    static const uint64_t extents[] = {2, 4};
    static const int64_t strides[] = {12, -1};
    dpr_plan *plan = NULL;
    int64_t out = 0;
    shape(fixture, 2, extents, strides);
    fixture->problem.op = DPR_ARGMAX;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in + 8, &out, NULL));
    EXPECT_EQ_I64(7, out);
    dpr_plan_destroy(plan);
}

SHAPE_TEST(strides_beyond_the_address_space_are_refused) {
    static const uint64_t extents[] = {3, 4};
    static const int64_t strides[][2] = {{4, INT64_MAX}, {0, INT64_MIN}};
    for (size_t i = 0; i < LENGTH(strides); i++) {
        shape(fixture, 2, extents, strides[i]);
        expect_refusal(fixture, DPR_ERR_SIZE,
                       "problem->strides are so large that elements do not fit the address space");
    }
}

/* All runs write it, also one that finds no segments. */
SHAPE_TEST(reports_of_plans_whose_number_of_segments_is_read) {
    static const int32_t offsets[] = {0, 2, 4};
    uint64_t number = 0;
    int64_t out[2] = {7, 7};
    dpr_plan *plan = NULL;
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_launch_report report;
    dpr_options options = DPR_OPTIONS_INIT;
    segments.count = 2;
    segments.dtype = DPR_I32;
    segments.begins = offsets;
    segments.device_count = &number;
    launch.report = &report;
    options.launch = &launch;
    fixture->problem.segments = &segments;
    fixture->problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    for (; number < 2; number++) {
        report.launched = 77;
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, out, NULL));
        EXPECT_EQ_U64(0, report.launched);
        EXPECT_TRUE((out[0] == 7) == (number == 0) && out[1] == 7);
    }
    dpr_plan_destroy(plan);
}

SHAPE_TEST(misaligned_extents_and_strides_are_refused) {
    static const uint64_t extents[] = {2, 3, 4};
    static const int64_t strides[] = {3, 1, 1};
    dpr_plan *plan = NULL;
    shape(fixture, 2, (const uint64_t *)((const char *)extents + 4), NULL);
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem->extents is 0x");
    shape(fixture, 2, extents, (const int64_t *)((const char *)strides + 4));
    EXPECT_STATUS(DPR_ERR_MISALIGNED, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem->strides is 0x");
}

/* An array with gaps, and one with segments or axes, has no partial results and one operation. */
SHAPE_TEST(some_things_need_an_array_without_gaps) {
    static const uint64_t extents[] = {3, 4};
    static const int64_t strides[] = {5, 1};
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX};
    dpr_plan *plan = NULL;
    uint64_t partial[8];
    dpr_launch_report report;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    shape(fixture, 2, extents, strides);
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_run_partial(plan, fixture->in, partial, 0, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "plan is of an array with segments, axes or gaps");
    dpr_plan_destroy(plan);
    fixture->problem.ops = ops;
    fixture->problem.op_count = 2;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->op_count is 2; it should be 1 for an array with segments, keys, axes or gaps");
    fixture->problem.op_count = 1;
    expect_result(fixture, DPR_SUM, 78);
    fixture->problem.ops = NULL;
    fixture->problem.op_count = 0;
    launch.report = &report;
    launch.report_size = sizeof report;
    options.launch = &launch;
    fixture->problem.options = &options;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "options->launch->report is set; an array with axes or gaps is reduced without nested launches");
    fixture->problem.options = NULL;
}

/* ---- Problems with many results ---- */

SHAPE_TEST(plans_of_segments_explain_themselves) {
    static const int32_t offsets[] = {0, 7, 7, 24};
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_plan *plan = NULL;
    int64_t out[3];
    char text[8192];
    size_t size = sizeof text;
    segments.count = 3;
    segments.begins = offsets;
    segments.dtype = DPR_I32;
    fixture->problem.count = 24;
    fixture->problem.segments = &segments;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "problem:   sum of 24 i32 in 3 segments, in host memory\n");
    EXPECT_CONTAINS(text, "cpu.simd");
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, out, NULL));
    EXPECT_EQ_I64(21, out[0]);
    EXPECT_EQ_I64(0, out[1]);
    EXPECT_EQ_I64(255 + 83, out[2]);
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_plan_run(plan, fixture->in, NULL, NULL));
    dpr_plan_destroy(plan);
    segments.count = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, NULL, NULL, NULL));
    size = sizeof text;
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "problem:   sum of 24 i32 in 0 segments, in host memory\n");
    dpr_plan_destroy(plan);
}

/* A strategy of the CPU launches nothing, and the report says so. */
SHAPE_TEST(plans_of_segments_have_a_report) {
    static const int32_t offsets[] = {0, 24};
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_launch_report report = {.launched = 5, .in_line = 7}, none = {0};
    const dpr_launch_options launch = {.size = sizeof launch, .report = &report, .report_size = sizeof report};
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_plan *plan = NULL;
    int64_t out = 0;
    segments.count = 1;
    segments.begins = offsets;
    segments.dtype = DPR_I32;
    options.launch = &launch;
    fixture->problem.count = 24;
    fixture->problem.segments = &segments;
    fixture->problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, &out, NULL));
    EXPECT_EQ_I64(21 + 255 + 83, out);
    EXPECT_TRUE(memcmp(&report, &none, sizeof none) == 0);
    dpr_plan_destroy(plan);
    fixture->problem.options = NULL;
}

/* Plans a sum of a 4 x `columns` array along its first dimension, and expects its explanation to have a part. The
 * caller destroys the plan. */
static dpr_plan *plan_of_columns(scene *s, uint64_t columns, const char *part) {
    const uint64_t extents[] = {4, columns};
    dpr_axes axes = DPR_AXES_INIT;
    dpr_plan *plan = NULL;
    char text[8192];
    size_t size = sizeof text;
    axes.dimensions = 2;
    axes.reduced = 1;
    axes.extents = extents;
    s->problem.axes = &axes;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(s->ctx, &s->problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, part);
    EXPECT_CONTAINS(text, "\n  cpu.serial ");
    EXPECT_CONTAINS(text, " refused: runs one array, not along axes or with gaps\n");
    s->problem.axes = NULL;
    return plan;
}

/* A dimension that is kept has no indices, so there are no results. */
SHAPE_TEST(plans_without_results_do_nothing) {
    dpr_plan *plan = plan_of_columns(fixture, 0, "problem:   sum of 0 i32 along axes, 0 results, in host memory\n");
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, NULL, NULL, NULL));
    dpr_plan_destroy(plan);
}

/* The extents are copied, so the plan runs after they are gone. */
SHAPE_TEST(plans_along_axes_explain_themselves) {
    int64_t out[6];
    dpr_plan *plan = plan_of_columns(fixture, 6, "problem:   sum of 24 i32 along axes, 6 results, in host memory\n");
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, out, NULL));
    for (int i = 0; i < 6; i++)
        EXPECT_EQ_I64(36 + 4 * i + (i == 5 ? 83 : 0), out[i]);
    dpr_plan_destroy(plan);
}

/* Decisions predict for as many segments as the problem has. */
SHAPE_TEST(decisions_count_segments) {
    static const int32_t offsets[2] = {0, 1 << 20};
    dpr_segments segments = DPR_SEGMENTS_INIT;
    double seconds[2];
    size_t serial;
    EXPECT_STATUS(DPR_OK, dpr_strategy_parse("cpu.serial", &serial));
    segments.begins = offsets;
    segments.dtype = DPR_I32;
    fixture->problem.segments = &segments;
    for (int many = 0; many < 2; many++) {
        dpr_decision *decision = NULL;
        dpr_prediction prediction = DPR_PREDICTION_INIT;
        segments.count = many ? 1 << 20 : 1;
        ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(fixture->ctx), &fixture->problem, &decision));
        EXPECT_STATUS(DPR_OK, dpr_decision_predict(decision, serial, 1 << 20, &prediction));
        seconds[many] = prediction.seconds;
        dpr_decision_destroy(decision);
    }
    EXPECT_TRUE(seconds[1] > 2 * seconds[0]);
}

SHAPE_TEST(problems_with_many_results_are_checked) {
    static const int32_t offsets[] = {0, 24};
    static const uint64_t extents[] = {4, 6};
    const uint64_t count = 1;
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_axes axes = DPR_AXES_INIT;
    axes.dimensions = 2;
    axes.extents = extents;
    axes.reduced = 3;
    segments.count = 1;
    fixture->problem.segments = &segments;
    expect_refusal(fixture, DPR_ERR_NULL_POINTER, "segments->begins is NULL");
    segments.begins = offsets;
    segments.dtype = DPR_F32;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "segments->dtype is 523; it should be DPR_I32, DPR_U32, DPR_I64 or DPR_U64");
    segments.dtype = DPR_I32;
    segments.check = 1;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "segments->check is 1; it should be 0 in problem->segments");
    segments.count = 0;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "segments->check is 1; it should be 0 in problem->segments");
    segments.count = 1;
    segments.check = 0;
    fixture->problem.device_count = &count;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->device_count is set; it should be NULL, because problem->segments is set");
    fixture->problem.device_count = NULL;
    fixture->problem.axes = &axes;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "problem->axes and problem->segments are both set");
    fixture->problem.segments = NULL;
    shape(fixture, 2, extents, NULL);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "problem->dimensions and problem->axes are both set");
    shape(fixture, 0, NULL, NULL);
    fixture->problem.count = 23;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->count is 23; it should be 0 or 24, the product of axes->extents");
    fixture->problem.count = 24;
    expect_result(fixture, DPR_SUM, 276 + 83);
}

SHAPE_TEST(shapes_without_meaning_are_refused) {
    static const uint64_t extents[9] = {2, 3, 4, 1, 1, 1, 1, 1, 1}, huge[] = {UINT64_C(1) << 62, 2},
                          wrapping[] = {UINT64_C(1) << 63, 2};
    static const int64_t strides[] = {1};
    const uint64_t count = 1;
    shape(fixture, -1, extents, NULL);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "problem->dimensions is -1; it should be from 0 to 8");
    shape(fixture, 9, extents, NULL);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "problem->dimensions is 9; it should be from 0 to 8");
    shape(fixture, INT_MIN, extents, NULL);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION, "problem->dimensions is -2147483648; it should be from 0 to 8");
    shape(fixture, 2, NULL, strides);
    expect_refusal(fixture, DPR_ERR_NULL_POINTER, "problem->extents is NULL, and problem->dimensions is 2");
    shape(fixture, 0, extents, NULL);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->extents is set; it should be NULL, because problem->dimensions is 0");
    shape(fixture, 0, NULL, strides);
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->strides is set; it should be NULL, because problem->dimensions is 0");
    shape(fixture, 2, huge, NULL);
    expect_refusal(fixture, DPR_ERR_SIZE,
                   "problem->extents multiply to more than 9223372036854775807 elements; an array has at most "
                   "9223372036854775807 bytes");
    shape(fixture, 2, wrapping, NULL);
    expect_refusal(fixture, DPR_ERR_SIZE,
                   "problem->extents multiply to more than 9223372036854775807 elements; an array has at most "
                   "9223372036854775807 bytes");
    shape(fixture, 3, extents, NULL);
    fixture->problem.count = 23;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->count is 23; it should be 0 or 24, the product of problem->extents");
    fixture->problem.count = 24;
    fixture->problem.device_count = &count;
    expect_refusal(fixture, DPR_ERR_INVALID_OPTION,
                   "problem->device_count is set; it should be NULL, because problem->dimensions is 3");
    fixture->problem.device_count = NULL;
    expect_result(fixture, DPR_MIN, 0);
}

/* Bytes, unlike elements, do not fit. */
SHAPE_TEST(shapes_too_large_for_their_type_are_refused) {
    static const uint64_t extents[] = {UINT64_C(1) << 31, UINT64_C(1) << 31};
    shape(fixture, 2, extents, NULL);
    dpr_plan *plan = NULL;
    EXPECT_STATUS(DPR_ERR_SIZE, dpr_plan_create(fixture->ctx, &fixture->problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "by problem->extents, count is 4611686018427387904; an array has at most ");
}
