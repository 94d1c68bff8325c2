/* What programs rely on that were compiled with this version's header, or an earlier or later one: sizes, offsets,
 * values, and structs of other sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- Layout ---- */

#define EXPECT_SIZE(TYPE, SIZE) EXPECT_EQ_U64(SIZE, sizeof(TYPE))
#define EXPECT_AT(TYPE, MEMBER, OFFSET) EXPECT_EQ_U64(OFFSET, offsetof(TYPE, MEMBER))

TEST(Abi, layout_of_options) {
    EXPECT_SIZE(dpr_ctx_options, 16);
    EXPECT_AT(dpr_ctx_options, size, 0);
    EXPECT_AT(dpr_ctx_options, pending_launches, 8);
    EXPECT_SIZE(dpr_options, 56);
    EXPECT_AT(dpr_options, size, 0);
    EXPECT_AT(dpr_options, strategy, 8);
    EXPECT_AT(dpr_options, mode, 16);
    EXPECT_AT(dpr_options, nan, 20);
    EXPECT_AT(dpr_options, init, 24);
    EXPECT_AT(dpr_options, stream, 32);
    EXPECT_AT(dpr_options, launch, 40);
    EXPECT_AT(dpr_options, divisor, 48);
    EXPECT_AT(dpr_options, effort, 52);
    EXPECT_SIZE(dpr_launch_options, 40);
    EXPECT_AT(dpr_launch_options, size, 0);
    EXPECT_AT(dpr_launch_options, block, 8);
    EXPECT_AT(dpr_launch_options, max_depth, 12);
    EXPECT_AT(dpr_launch_options, max_pending, 16);
    EXPECT_AT(dpr_launch_options, reserved, 20);
    EXPECT_AT(dpr_launch_options, report, 24);
    EXPECT_AT(dpr_launch_options, report_size, 32);
    EXPECT_SIZE(dpr_problem, 112);
    EXPECT_AT(dpr_problem, ops, 48);
    EXPECT_AT(dpr_problem, op_count, 56);
    EXPECT_AT(dpr_problem, size, 0);
    EXPECT_AT(dpr_problem, op, 8);
    EXPECT_AT(dpr_problem, dtype, 12);
    EXPECT_AT(dpr_problem, count, 16);
    EXPECT_AT(dpr_problem, memory, 24);
    EXPECT_AT(dpr_problem, dimensions, 28);
    EXPECT_AT(dpr_problem, options, 32);
    EXPECT_AT(dpr_problem, device_count, 40);
    EXPECT_AT(dpr_problem, extents, 64);
    EXPECT_AT(dpr_problem, strides, 72);
    EXPECT_AT(dpr_problem, segments, 80);
    EXPECT_AT(dpr_problem, axes, 88);
    EXPECT_AT(dpr_problem, room, 96);
    EXPECT_AT(dpr_problem, key_dtype, 104);
    EXPECT_AT(dpr_problem, reserved, 108);
}

TEST(Abi, layout_of_segments) {
    EXPECT_SIZE(dpr_segments, 56);
    EXPECT_AT(dpr_segments, size, 0);
    EXPECT_AT(dpr_segments, count, 8);
    EXPECT_AT(dpr_segments, begins, 16);
    EXPECT_AT(dpr_segments, ends, 24);
    EXPECT_AT(dpr_segments, dtype, 32);
    EXPECT_AT(dpr_segments, index, 36);
    EXPECT_AT(dpr_segments, check, 40);
    EXPECT_AT(dpr_segments, device_count, 48);
}

TEST(Abi, layout_of_axes) {
    EXPECT_SIZE(dpr_axes, 40);
    EXPECT_AT(dpr_axes, size, 0);
    EXPECT_AT(dpr_axes, dimensions, 8);
    EXPECT_AT(dpr_axes, reduced, 12);
    EXPECT_AT(dpr_axes, extents, 16);
    EXPECT_AT(dpr_axes, strides, 24);
    EXPECT_AT(dpr_axes, out_strides, 32);
}

TEST(Abi, layout_of_recursions) {
    EXPECT_SIZE(dpr_recursion_options, 88);
    EXPECT_AT(dpr_recursion_options, size, 0);
    EXPECT_AT(dpr_recursion_options, engine, 8);
    EXPECT_AT(dpr_recursion_options, max_depth, 16);
    EXPECT_AT(dpr_recursion_options, max_tasks, 24);
    EXPECT_AT(dpr_recursion_options, arena_tasks, 32);
    EXPECT_AT(dpr_recursion_options, threads, 40);
    EXPECT_AT(dpr_recursion_options, max_pending, 44);
    EXPECT_AT(dpr_recursion_options, cutoff, 48);
    EXPECT_AT(dpr_recursion_options, trace, 56);
    EXPECT_AT(dpr_recursion_options, trace_user, 64);
    EXPECT_AT(dpr_recursion_options, max_seconds, 72);
    EXPECT_AT(dpr_recursion_options, allow_nested, 80);
    EXPECT_AT(dpr_recursion_options, max_nesting, 84);
    EXPECT_SIZE(dpr_recursion_event, 32);
    EXPECT_AT(dpr_recursion_event, what, 0);
    EXPECT_AT(dpr_recursion_event, worker, 8);
    EXPECT_AT(dpr_recursion_event, begin, 16);
    EXPECT_AT(dpr_recursion_event, end, 24);
    EXPECT_SIZE(dpr_recursion_report, 104);
    EXPECT_AT(dpr_recursion_report, size, 0);
    EXPECT_AT(dpr_recursion_report, engine, 8);
    EXPECT_AT(dpr_recursion_report, reason, 16);
    EXPECT_AT(dpr_recursion_report, tasks, 24);
    EXPECT_AT(dpr_recursion_report, deepest, 32);
    EXPECT_AT(dpr_recursion_report, levels, 40);
    EXPECT_AT(dpr_recursion_report, widest, 48);
    EXPECT_AT(dpr_recursion_report, rounds, 56);
    EXPECT_AT(dpr_recursion_report, launches, 64);
    EXPECT_AT(dpr_recursion_report, handed_out, 72);
    EXPECT_AT(dpr_recursion_report, serialised, 80);
    EXPECT_AT(dpr_recursion_report, steals, 88);
    EXPECT_AT(dpr_recursion_report, seconds, 96);
    EXPECT_SIZE(dpr_recursion_outcome, 48);
    EXPECT_AT(dpr_recursion_outcome, tasks, 0);
    EXPECT_AT(dpr_recursion_outcome, status, 8);
    EXPECT_AT(dpr_recursion_outcome, wrong, 12);
    EXPECT_AT(dpr_recursion_outcome, deepest, 16);
    EXPECT_AT(dpr_recursion_outcome, rounds, 20);
    EXPECT_AT(dpr_recursion_outcome, levels, 24);
    EXPECT_AT(dpr_recursion_outcome, widest, 28);
    EXPECT_AT(dpr_recursion_outcome, handed_out, 32);
    EXPECT_AT(dpr_recursion_outcome, serialised, 36);
    EXPECT_AT(dpr_recursion_outcome, launched, 40);
    EXPECT_AT(dpr_recursion_outcome, spans, 44);
}

TEST(Abi, layout_of_launches) {
    EXPECT_SIZE(dpr_launch_report, 32);
    EXPECT_AT(dpr_launch_report, launched, 0);
    EXPECT_AT(dpr_launch_report, refused, 4);
    EXPECT_AT(dpr_launch_report, failed, 8);
    EXPECT_AT(dpr_launch_report, in_line, 12);
    EXPECT_AT(dpr_launch_report, deepest, 16);
    EXPECT_AT(dpr_launch_report, error, 20);
    EXPECT_AT(dpr_launch_report, error_depth, 24);
    EXPECT_AT(dpr_launch_report, error_block, 28);
    EXPECT_SIZE(dpr_launcher, 40);
    EXPECT_AT(dpr_launcher, device, 0);
    EXPECT_AT(dpr_launcher, launches, 4);
    EXPECT_AT(dpr_launcher, within, 8);
    EXPECT_AT(dpr_launcher, version, 12);
    EXPECT_AT(dpr_launcher, table, 16);
    EXPECT_AT(dpr_launcher, memory, 24);
    EXPECT_AT(dpr_launcher, line, 32);
}

TEST(Abi, layout_of_descriptions) {
    EXPECT_SIZE(dpr_c64, 8);
    EXPECT_AT(dpr_c64, im, 4);
    EXPECT_SIZE(dpr_c128, 16);
    EXPECT_AT(dpr_c128, im, 8);
    EXPECT_SIZE(dpr_partial_info, 32);
    EXPECT_AT(dpr_partial_info, op, 8);
    EXPECT_AT(dpr_partial_info, dtype, 12);
    EXPECT_AT(dpr_partial_info, nan, 16);
    EXPECT_AT(dpr_partial_info, reserved, 20);
    EXPECT_AT(dpr_partial_info, count, 24);
    EXPECT_SIZE(dpr_op_info, 40);
    EXPECT_AT(dpr_op_info, id, 8);
    EXPECT_AT(dpr_op_info, text, 16);
    EXPECT_AT(dpr_op_info, types, 24);
    EXPECT_AT(dpr_op_info, result, 32);
    EXPECT_SIZE(dpr_dtype_info, 40);
    EXPECT_AT(dpr_dtype_info, id, 8);
    EXPECT_AT(dpr_dtype_info, text, 16);
    EXPECT_AT(dpr_dtype_info, npy, 24);
    EXPECT_AT(dpr_dtype_info, kind, 32);
    EXPECT_AT(dpr_dtype_info, reserved, 36);
    EXPECT_SIZE(dpr_strategy_info, 24);
    EXPECT_AT(dpr_strategy_info, role, 8);
    EXPECT_AT(dpr_strategy_info, on_gpu, 12);
    EXPECT_AT(dpr_strategy_info, takes_block, 16);
    EXPECT_AT(dpr_strategy_info, reserved, 20);
    EXPECT_SIZE(dpr_env_info, 56);
    EXPECT_AT(dpr_env_info, name, 8);
    EXPECT_AT(dpr_env_info, text, 16);
    EXPECT_AT(dpr_env_info, values, 24);
    EXPECT_AT(dpr_env_info, by_default, 32);
    EXPECT_AT(dpr_env_info, value, 40);
    EXPECT_AT(dpr_env_info, understood, 48);
    EXPECT_AT(dpr_env_info, reserved, 52);
    EXPECT_SIZE(dpr_node_info, 160);
    EXPECT_AT(dpr_node_info, number, 8);
    EXPECT_AT(dpr_node_info, cores, 12);
    EXPECT_AT(dpr_node_info, threads, 16);
    EXPECT_AT(dpr_node_info, reserved, 20);
    EXPECT_AT(dpr_node_info, memory_bytes, 24);
    EXPECT_AT(dpr_node_info, cpus, 32);
    EXPECT_SIZE(dpr_machine_info, 48);
    EXPECT_AT(dpr_machine_info, cpu_name, 8);
    EXPECT_AT(dpr_machine_info, gpu_name, 16);
    EXPECT_AT(dpr_machine_info, near_node, 24);
    EXPECT_AT(dpr_machine_info, pci, 28);
}

TEST(Abi, layout_of_decisions) {
    EXPECT_SIZE(dpr_capability, 32);
    EXPECT_AT(dpr_capability, key, 8);
    EXPECT_AT(dpr_capability, text, 16);
    EXPECT_AT(dpr_capability, value, 24);
    EXPECT_SIZE(dpr_kernel_info, 40);
    EXPECT_AT(dpr_kernel_info, threads, 8);
    EXPECT_AT(dpr_kernel_info, registers, 12);
    EXPECT_AT(dpr_kernel_info, shared_bytes, 16);
    EXPECT_AT(dpr_kernel_info, blocks_per_sm, 20);
    EXPECT_AT(dpr_kernel_info, occupancy, 24);
    EXPECT_AT(dpr_kernel_info, limit, 32);
    EXPECT_SIZE(dpr_step, 56);
    EXPECT_AT(dpr_step, from, 8);
    EXPECT_AT(dpr_step, upto, 16);
    EXPECT_AT(dpr_step, strategy, 24);
    EXPECT_AT(dpr_step, threads, 32);
    EXPECT_AT(dpr_step, max_blocks, 36);
    EXPECT_AT(dpr_step, max_depth, 40);
    EXPECT_AT(dpr_step, launch_measured, 44);
    EXPECT_AT(dpr_step, launch_seconds, 48);
    EXPECT_SIZE(dpr_prediction, 32);
    EXPECT_AT(dpr_prediction, seconds, 8);
    EXPECT_AT(dpr_prediction, refusal, 16);
    EXPECT_AT(dpr_prediction, measured, 24);
}

/* ---- Values ---- */

TEST(Abi, values_of_operations_and_types) {
    static const dpr_op ops[] = {DPR_SUM,   DPR_PROD,  DPR_MIN,   DPR_MAX,  DPR_ARGMIN, DPR_ARGMAX,
                                 DPR_ALL,   DPR_ANY,   DPR_BAND,  DPR_BOR,  DPR_BXOR,   DPR_COUNT,
                                 DPR_SUMSQ, DPR_NORM1, DPR_NORM2, DPR_MEAN, DPR_VAR,    DPR_MINMAX};
    static const dpr_dtype dtypes[] = {DPR_BOOL, DPR_I8,  DPR_U8,   DPR_I16, DPR_U16, DPR_I32, DPR_U32, DPR_I64,
                                       DPR_U64,  DPR_F16, DPR_BF16, DPR_F32, DPR_F64, DPR_C64, DPR_C128};
    EXPECT_EQ_I64(0, DPR_OP_NONE);
    EXPECT_EQ_I64(0, DPR_DTYPE_NONE);
    for (size_t i = 0; i < LENGTH(ops); i++)
        EXPECT_EQ_U64(0x100 + i, ops[i]);
    for (size_t i = 0; i < LENGTH(dtypes); i++)
        EXPECT_EQ_U64(0x200 + i, dtypes[i]);
    EXPECT_SIZE(dpr_op, 4);
    EXPECT_SIZE(dpr_dtype, 4);
}

TEST(Abi, values_of_statuses) {
    static const dpr_status statuses[] = {DPR_OK,
                                          DPR_ERR_NULL_POINTER,
                                          DPR_ERR_INVALID_OP,
                                          DPR_ERR_INVALID_DTYPE,
                                          DPR_ERR_INVALID_OPTION,
                                          DPR_ERR_UNSUPPORTED_PAIR,
                                          DPR_ERR_MISALIGNED,
                                          DPR_ERR_EMPTY,
                                          DPR_ERR_SIZE,
                                          DPR_ERR_MEMORY_KIND,
                                          DPR_ERR_WRONG_DEVICE,
                                          DPR_ERR_UNKNOWN_STRATEGY,
                                          DPR_ERR_STRATEGY_UNABLE,
                                          DPR_ERR_NO_DEVICE,
                                          DPR_ERR_OUT_OF_MEMORY,
                                          DPR_ERR_CUDA,
                                          DPR_ERR_BUFFER_TOO_SMALL,
                                          DPR_ERR_INVALID_PARTIAL,
                                          DPR_ERR_DIVIDE,
                                          DPR_ERR_LIMIT,
                                          DPR_ERR_UNKNOWN_ENGINE,
                                          DPR_ERR_SEGMENT,
                                          DPR_ERR_WISDOM,
                                          DPR_ERR_FILE,
                                          DPR_ERR_OVERLAP};
    for (size_t i = 0; i < LENGTH(statuses); i++)
        EXPECT_EQ_U64(i, statuses[i]);
    EXPECT_EQ_STR("DPR_ERR_?", dpr_status_name((dpr_status)LENGTH(statuses)));
    EXPECT_SIZE(dpr_status, 4);
}

TEST(Abi, values_of_options) {
    EXPECT_EQ_I64(0, DPR_MODE_DEFAULT);
    EXPECT_EQ_I64(0x300, DPR_FAST);
    EXPECT_SIZE(dpr_mode, 4);
    EXPECT_EQ_I64(0, DPR_EFFORT_DEFAULT);
    EXPECT_EQ_I64(1, DPR_ESTIMATE);
    EXPECT_EQ_I64(2, DPR_WISDOM_ONLY);
    EXPECT_EQ_I64(3, DPR_MEASURE);
    EXPECT_EQ_I64(0, DPR_NAN_PROPAGATE);
    EXPECT_EQ_I64(1, DPR_NAN_IGNORE);
    EXPECT_SIZE(dpr_nan, 4);
    EXPECT_EQ_I64(0, DPR_MEMORY_AUTO);
    EXPECT_EQ_I64(1, DPR_MEMORY_HOST);
    EXPECT_EQ_I64(2, DPR_MEMORY_PINNED);
    EXPECT_EQ_I64(3, DPR_MEMORY_MANAGED);
    EXPECT_EQ_I64(4, DPR_MEMORY_DEVICE);
    EXPECT_SIZE(dpr_memory, 4);
    EXPECT_EQ_I64(-1, DPR_DEVICE_CPU);
    EXPECT_EQ_I64(-2, DPR_DEVICE_AUTO);
    EXPECT_EQ_I64(-1, DPR_NO_LAUNCHES);
}

TEST(Abi, values_in_descriptions) {
    EXPECT_EQ_I64(0, DPR_ROLE_CANDIDATE);
    EXPECT_EQ_I64(1, DPR_ROLE_DEMONSTRATION);
    EXPECT_EQ_I64(2, DPR_ROLE_NESTED);
    EXPECT_SIZE(dpr_role, 4);
    EXPECT_EQ_I64(1, DPR_KIND_BOOL);
    EXPECT_EQ_I64(2, DPR_KIND_SINT);
    EXPECT_EQ_I64(4, DPR_KIND_UINT);
    EXPECT_EQ_I64(8, DPR_KIND_FLOAT);
    EXPECT_EQ_I64(16, DPR_KIND_COMPLEX);
    EXPECT_SIZE(dpr_kind, 4);
}

/* ---- Structs that the library reads, of other versions ---- */

/* A struct as an earlier or later header has it: `size` bytes at the end of memory of exactly that size, so that
 * AddressSanitizer finds accesses behind it. What is behind the first `own_size` bytes is `tail`. The caller frees
 * it. */
static void *resized(const void *known, size_t own_size, size_t size, int tail) {
    const size_t room = size < sizeof size ? sizeof size : size;
    unsigned char *bytes = malloc(room);
    if (!EXPECT_TRUE(bytes != NULL))
        abort();
    memset(bytes, tail, room);
    memcpy(bytes, known, room < own_size ? room : own_size);
    memcpy(bytes, &size, sizeof size);
    return bytes;
}

typedef struct scene {
    dpr_ctx *ctx;
    dpr_decision *decision;
} scene;

static void scene_open(void *state) {
    scene *s = state;
    dpr_problem problem = DPR_PROBLEM_INIT;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->ctx));
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(s->ctx), &problem, &s->decision));
}

static void scene_close(void *state) {
    scene *s = state;
    dpr_decision_destroy(s->decision);
    dpr_ctx_destroy(s->ctx);
}

#define ABI_TEST(NAME) TEST_FIXTURE(Abi, NAME, scene, scene_open, scene_close)

static dpr_status sum_with(dpr_ctx *ctx, const dpr_options *options, double *out) {
    static const double in[] = {1, 2, 4};
    return dpr_reduce_ex(ctx, in, out, 3, DPR_F64, DPR_SUM, options);
}

static dpr_status sum_resized(const scene *s, const dpr_options *options, size_t size, int tail, double *out) {
    dpr_options *given = resized(options, sizeof *options, size, tail);
    const dpr_status status = sum_with(s->ctx, given, out);
    free(given);
    return status;
}

ABI_TEST(options_of_other_versions) {
    const double init = 100;
    double out = 0;
    char known[32];
    const dpr_launch_options refused = {.size = sizeof refused, .max_depth = 25};
    dpr_options options = DPR_OPTIONS_INIT;
    options.init = &init;
    snprintf(known, sizeof known, "past byte %zu,", sizeof options);
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, sizeof options, 0, &out));
    EXPECT_NEAR_F64(107.0, out, 0.0);
    /* an earlier one without `init`: the initial value is not looked at */
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, offsetof(dpr_options, init), 0, &out));
    EXPECT_NEAR_F64(7.0, out, 0.0);
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, sizeof(size_t), 0, &out));
    EXPECT_NEAR_F64(7.0, out, 0.0);
    /* ones that end before `stream` and before `launch` */
    options.stream = (dpr_stream)(uintptr_t)16;
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, offsetof(dpr_options, stream), 0, &out));
    EXPECT_NEAR_F64(107.0, out, 0.0);
    options.stream = NULL;
    options.launch = &refused;
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, offsetof(dpr_options, launch), 0, &out));
    EXPECT_NEAR_F64(107.0, out, 0.0);
    options.launch = NULL;
    /* a later one whose new fields have their defaults, and one that asks for something unknown */
    EXPECT_STATUS(DPR_OK, sum_resized(fixture, &options, sizeof options + 24, 0, &out));
    EXPECT_NEAR_F64(107.0, out, 0.0);
    out = -1;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, sum_resized(fixture, &options, sizeof options + 24, 1, &out));
    EXPECT_CONTAINS(dpr_last_error(), known);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, sum_resized(fixture, &options, 0, 0, &out));
    EXPECT_CONTAINS(dpr_last_error(), "options->size is 0; it should be sizeof(dpr_options)");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, sum_resized(fixture, &options, 7, 0, &out));
    EXPECT_NEAR_F64(-1.0, out, 0.0);
}

static dpr_status sum_with_launch(const scene *s, const dpr_launch_options *launch, size_t size, int tail,
                                  double *out) {
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_launch_options *given = resized(launch, sizeof *launch, size, tail);
    options.launch = given;
    const dpr_status status = sum_with(s->ctx, &options, out);
    free(given);
    return status;
}

ABI_TEST(launch_options_of_other_versions) {
    dpr_launch_report unseen = {.launched = 77};
    double out = 0;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    launch.report = &unseen;
    /* earlier ones without the report */
    for (size_t size = sizeof size; size <= offsetof(dpr_launch_options, report); size += sizeof size) {
        EXPECT_STATUS(DPR_OK, sum_with_launch(fixture, &launch, size, 0, &out));
        EXPECT_EQ_U64(77, unseen.launched);
    }
    /* one without its size: the report is one of version 0.2 */
    launch.report_size = 1;
    EXPECT_STATUS(DPR_OK, sum_with_launch(fixture, &launch, offsetof(dpr_launch_options, report_size), 0, &out));
    EXPECT_EQ_U64(0, unseen.launched);
    launch.report_size = 0;
    EXPECT_STATUS(DPR_OK, sum_with_launch(fixture, &launch, sizeof launch + 16, 0, &out));
    EXPECT_NEAR_F64(7.0, out, 0.0);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, sum_with_launch(fixture, &launch, sizeof launch + 16, 1, &out));
    EXPECT_CONTAINS(dpr_last_error(), "options->launch->size is 56");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, sum_with_launch(fixture, &launch, 12, 0, &out));
}

static dpr_status create_resized(size_t size, int tail, dpr_ctx **out) {
    const dpr_ctx_options options = DPR_CTX_OPTIONS_INIT;
    dpr_ctx_options *given = resized(&options, sizeof options, size, tail);
    const dpr_status status = dpr_ctx_create_ex(DPR_DEVICE_CPU, given, out);
    free(given);
    return status;
}

TEST(Abi, ctx_options_of_other_versions) {
    const size_t good[] = {sizeof(dpr_ctx_options), sizeof(size_t), sizeof(dpr_ctx_options) + 16};
    const dpr_ctx_options defaults = DPR_CTX_OPTIONS_INIT;
    dpr_ctx *ctx = NULL;
    for (size_t i = 0; i < LENGTH(good); i++) {
        ASSERT_STATUS(DPR_OK, create_resized(good[i], 0, &ctx));
        EXPECT_EQ_I64(DPR_DEVICE_CPU, dpr_ctx_device(ctx));
        dpr_ctx_destroy(ctx);
    }
    EXPECT_EQ_U64(sizeof defaults, defaults.size);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(DPR_DEVICE_CPU, &defaults, &ctx));
    dpr_ctx_destroy(ctx);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create_ex(DPR_DEVICE_CPU, NULL, &ctx));
    EXPECT_EQ_I64(DPR_DEVICE_CPU, dpr_ctx_device(ctx));
    dpr_ctx_destroy(ctx);
    ctx = NULL;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, create_resized(sizeof(dpr_ctx_options) + 16, 1, &ctx));
    EXPECT_CONTAINS(dpr_last_error(), "ctx_options->size is 32");
    EXPECT_EQ_PTR(NULL, ctx);
}

static dpr_status plan_resized(const scene *s, const dpr_problem *problem, size_t size, int tail, dpr_plan **out) {
    dpr_problem *given = resized(problem, sizeof *problem, size, tail);
    const dpr_status status = dpr_plan_create(s->ctx, given, out);
    free(given);
    return status;
}

ABI_TEST(problems_of_other_versions) {
    static const double in[] = {1, 2, 4};
    const size_t good[] = {sizeof(dpr_problem),
                           offsetof(dpr_problem, device_count),
                           offsetof(dpr_problem, options),
                           offsetof(dpr_problem, memory),
                           sizeof(dpr_problem) + 16,
                           offsetof(dpr_problem, room)};
    const uint64_t unseen = 1;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    problem.dtype = DPR_F64;
    problem.count = 3;
    for (size_t i = 0; i < LENGTH(good); i++) {
        double out = 0;
        problem.device_count = i == 1 ? &unseen : NULL; /* past the end of that one */
        problem.key_dtype = i == 5 ? DPR_I32 : DPR_DTYPE_NONE;
        ASSERT_STATUS(DPR_OK, plan_resized(fixture, &problem, good[i], 0, &plan));
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
        EXPECT_NEAR_F64(7.0, out, 0.0);
        dpr_plan_destroy(plan);
    }
    problem.key_dtype = DPR_DTYPE_NONE;
    plan = NULL;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, plan_resized(fixture, &problem, sizeof problem + 16, 1, &plan));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, plan_resized(fixture, &problem, 0, 0, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem");
    EXPECT_TRUE(plan == NULL);
}

/* ---- Structs that the library writes, of other versions ---- */

static dpr_status fill_partial(const scene *s, void *out) {
    static const double in[] = {1, 2, 4};
    uint64_t partial[32];
    const dpr_status status = dpr_reduce_partial(s->ctx, in, partial, 3, DPR_F64, DPR_SUM, 0, NULL);
    return status == DPR_OK ? dpr_partial_describe(partial, out) : status;
}
static dpr_status fill_op(const scene *s, void *out) {
    (void)s;
    return dpr_op_describe(DPR_SUM, out);
}
static dpr_status fill_dtype(const scene *s, void *out) {
    (void)s;
    return dpr_dtype_describe(DPR_F64, out);
}
static dpr_status fill_strategy(const scene *s, void *out) {
    (void)s;
    return dpr_strategy_describe(0, out);
}
static dpr_status fill_env(const scene *s, void *out) {
    (void)s;
    return dpr_env_describe(0, out);
}
static dpr_status fill_node(const scene *s, void *out) {
    (void)s;
    return dpr_node_describe(0, out);
}
static dpr_status fill_machine(const scene *s, void *out) {
    return dpr_machine_describe(dpr_ctx_machine(s->ctx), out);
}
static dpr_status fill_capability(const scene *s, void *out) {
    return dpr_machine_capability(dpr_ctx_machine(s->ctx), 0, out);
}
static dpr_status fill_step(const scene *s, void *out) {
    return dpr_decision_step(s->decision, 1, out);
}
static dpr_status fill_prediction(const scene *s, void *out) {
    return dpr_decision_predict(s->decision, 0, 1, out);
}

/* dpr_kernel_info is missing: only a GPU has kernels. */
static const struct written {
    const char *name, *macro;
    size_t own_size;
    dpr_status (*fill)(const scene *s, void *out);
} written[] = {
    {"dpr_partial_info", "DPR_PARTIAL_INFO_INIT", sizeof(dpr_partial_info), fill_partial},
    {"dpr_op_info", "DPR_OP_INFO_INIT", sizeof(dpr_op_info), fill_op},
    {"dpr_dtype_info", "DPR_DTYPE_INFO_INIT", sizeof(dpr_dtype_info), fill_dtype},
    {"dpr_strategy_info", "DPR_STRATEGY_INFO_INIT", sizeof(dpr_strategy_info), fill_strategy},
    {"dpr_env_info", "DPR_ENV_INFO_INIT", sizeof(dpr_env_info), fill_env},
    {"dpr_node_info", "DPR_NODE_INFO_INIT", sizeof(dpr_node_info), fill_node},
    {"dpr_machine_info", "DPR_MACHINE_INFO_INIT", sizeof(dpr_machine_info), fill_machine},
    {"dpr_capability", "DPR_CAPABILITY_INIT", sizeof(dpr_capability), fill_capability},
    {"dpr_step", "DPR_STEP_INIT", sizeof(dpr_step), fill_step},
    {"dpr_prediction", "DPR_PREDICTION_INIT", sizeof(dpr_prediction), fill_prediction},
};

enum { MOST_STRUCT = 4096, CANARY = 0xa5 };

/* The struct of `size` bytes has what `whole` has, and nothing else has changed. */
static void expect_filled(const struct written *w, const scene *s, size_t size, const unsigned char *whole) {
    const size_t known = size < w->own_size ? size : w->own_size;
    unsigned char *bytes = resized(&size, sizeof size, size, CANARY);
    EXPECT_THAT(w->fill(s, bytes) == DPR_OK, "%s of %zu bytes: %s", w->name, size, dpr_last_error());
    EXPECT_THAT(memcmp(bytes, &size, sizeof size) == 0, "%s of %zu bytes: its size has changed", w->name, size);
    EXPECT_THAT(memcmp(bytes + sizeof size, whole + sizeof size, known - sizeof size) == 0,
                "%s of %zu bytes is not filled in", w->name, size);
    for (size_t i = known; i < size; i++)
        if (!EXPECT_THAT(bytes[i] == CANARY, "%s of %zu bytes: byte %zu has changed", w->name, size, i))
            break;
    free(bytes);
}

ABI_TEST(descriptions_of_other_versions) {
    for (size_t i = 0; i < LENGTH(written); i++) {
        const struct written *w = &written[i];
        unsigned char whole[256] = {0};
        ASSERT_TRUE(w->own_size <= sizeof whole);
        memcpy(whole, &w->own_size, sizeof w->own_size);
        ASSERT_STATUS(DPR_OK, w->fill(fixture, whole));
        for (size_t size = sizeof size; size <= w->own_size + 24; size += sizeof size)
            expect_filled(w, fixture, size, whole);
        expect_filled(w, fixture, MOST_STRUCT, whole);
    }
}

ABI_TEST(descriptions_of_no_size) {
    for (size_t i = 0; i < LENGTH(written); i++) {
        const size_t wrong[] = {0, 4, 7, written[i].own_size - 1, written[i].own_size + 4, MOST_STRUCT + 8, SIZE_MAX};
        for (size_t j = 0; j < LENGTH(wrong); j++) {
            unsigned char bytes[256], before[256];
            memset(bytes, CANARY, sizeof bytes);
            memcpy(bytes, &wrong[j], sizeof wrong[j]);
            memcpy(before, bytes, sizeof bytes);
            EXPECT_THAT(written[i].fill(fixture, bytes) == DPR_ERR_INVALID_OPTION, "%s of %zu bytes", written[i].name,
                        wrong[j]);
            EXPECT_CONTAINS(dpr_last_error(), written[i].macro);
            EXPECT_EQ_BYTES(before, bytes, sizeof bytes);
        }
    }
}

/* ---- Reports of other versions ---- */

/* A call on the CPU with a report of `size` bytes in memory of exactly that size, which the call makes zero. */
static void expect_cleared(const scene *s, size_t size) {
    double out = 0;
    unsigned char *bytes = malloc(size);
    const dpr_launch_options launch = {
        .size = sizeof launch, .report = (dpr_launch_report *)(void *)bytes, .report_size = size};
    dpr_options options = DPR_OPTIONS_INIT;
    options.launch = &launch;
    ASSERT_TRUE(bytes != NULL);
    memset(bytes, CANARY, size);
    EXPECT_STATUS(DPR_OK, sum_with(s->ctx, &options, &out));
    for (size_t i = 0; i < size; i++)
        if (!EXPECT_THAT(bytes[i] == 0, "byte %zu of %zu is not zero", i, size))
            break;
    free(bytes);
}

ABI_TEST(reports_of_other_versions) {
    for (size_t size = 4; size <= sizeof(dpr_launch_report) + 12; size += 4)
        expect_cleared(fixture, size);
    expect_cleared(fixture, MOST_STRUCT);
}

/* ---- What structs start from ---- */

#define CHECK_INIT(NAME, MACRO)                                                                                        \
    static void check_##NAME(void *out, size_t size, const void **expected, size_t *own_size) {                        \
        static const dpr_##NAME from = MACRO;                                                                          \
        *expected = &from;                                                                                             \
        *own_size = sizeof from;                                                                                       \
        dpr_##NAME##_init(out, size);                                                                                  \
    }
#define STRUCTS(X)                                                                                                     \
    X(ctx_options, DPR_CTX_OPTIONS_INIT)                                                                               \
    X(options, DPR_OPTIONS_INIT)                                                                                       \
    X(launch_options, DPR_LAUNCH_OPTIONS_INIT)                                                                         \
    X(problem, DPR_PROBLEM_INIT)                                                                                       \
    X(partial_info, DPR_PARTIAL_INFO_INIT)                                                                             \
    X(op_info, DPR_OP_INFO_INIT)                                                                                       \
    X(dtype_info, DPR_DTYPE_INFO_INIT)                                                                                 \
    X(strategy_info, DPR_STRATEGY_INFO_INIT)                                                                           \
    X(env_info, DPR_ENV_INFO_INIT)                                                                                     \
    X(node_info, DPR_NODE_INFO_INIT)                                                                                   \
    X(machine_info, DPR_MACHINE_INFO_INIT)                                                                             \
    X(capability, DPR_CAPABILITY_INIT)                                                                                 \
    X(kernel_info, DPR_KERNEL_INFO_INIT)                                                                               \
    X(step, DPR_STEP_INIT)                                                                                             \
    X(prediction, DPR_PREDICTION_INIT)                                                                                 \
    X(recursion_options, DPR_RECURSION_OPTIONS_INIT)                                                                   \
    X(recursion_report, DPR_RECURSION_REPORT_INIT)
STRUCTS(CHECK_INIT)

/* The first `size` bytes are what the macro gives, with this size; what the macro does not know is 0. */
static void expect_started(void (*check)(void *, size_t, const void **, size_t *), const char *name, size_t size) {
    unsigned char bytes[512], expected[512] = {0};
    const void *from;
    size_t own_size;
    memset(bytes, CANARY, sizeof bytes);
    check(bytes, size, &from, &own_size);
    memcpy(expected, from, own_size < size ? own_size : size);
    memcpy(expected, &size, sizeof size);
    memset(expected + size, CANARY, sizeof expected - size);
    EXPECT_THAT(memcmp(expected, bytes, sizeof bytes) == 0, "%s of %zu bytes", name, size);
}

/* A start for no size, or of no struct, changes nothing. */
static void expect_not_started(void (*check)(void *, size_t, const void **, size_t *), size_t size) {
    unsigned char bytes[64], before[64];
    const void *from;
    size_t own_size;
    memset(bytes, CANARY, sizeof bytes);
    memset(before, CANARY, sizeof before);
    check(bytes, size, &from, &own_size);
    check(NULL, own_size, &from, &own_size);
    EXPECT_EQ_BYTES(before, bytes, sizeof bytes);
}

TEST(Abi, structs_start_alike_from_functions_and_macros) {
#define ENTRY(NAME, MACRO) {"dpr_" #NAME, sizeof(dpr_##NAME), check_##NAME},
    static const struct {
        const char *name;
        size_t own_size;
        void (*check)(void *out, size_t size, const void **expected, size_t *own_size);
    } structs[] = {STRUCTS(ENTRY)};
#undef ENTRY
    for (size_t i = 0; i < LENGTH(structs); i++) {
        for (size_t size = sizeof size; size <= structs[i].own_size + 32; size += sizeof size)
            expect_started(structs[i].check, structs[i].name, size);
        expect_not_started(structs[i].check, 0);
        expect_not_started(structs[i].check, 12);
        expect_not_started(structs[i].check, SIZE_MAX - 7);
    }
}
