/* Every status: provoked, with a sentence that names argument and value, *out untouched, and the next call working. */
#include <limits.h>
#include <string.h>

#include "support.h"

/* The arguments of the calls that provoke errors. The canaries must be as they were after every call. */
typedef struct scene {
    dpr_ctx *cpu;
    dpr_plan *plan;                     /* for 4 elements of F64 on the CPU */
    _Alignas(16) double in[8];          /* 1 to 8 */
    _Alignas(16) unsigned char out[32]; /* canary */
    dpr_ctx *ctx_out;                   /* canary */
    dpr_plan *plan_out;                 /* canary */
    dpr_op op_out;                      /* canary */
    dpr_dtype dtype_out;                /* canary */
    char text[16];                      /* canary */
    dpr_launch_report report[2];        /* canary */
} scene;

static void set_canaries(scene *s) {
    memset(s->out, 0xa5, sizeof s->out);
    memset(s->text, 0xa5, sizeof s->text);
    memset(s->report, 0xa5, sizeof s->report);
    s->ctx_out = (dpr_ctx *)(void *)s->in;
    s->plan_out = (dpr_plan *)(void *)s->in;
    s->op_out = DPR_COUNT;
    s->dtype_out = DPR_C128;
}

static void expect_canaries(const char *what, const scene *s) {
    scene fresh;
    set_canaries(&fresh);
    EXPECT_THAT(memcmp(fresh.out, s->out, sizeof s->out) == 0, "%s: *out changed", what);
    EXPECT_THAT(memcmp(fresh.text, s->text, sizeof s->text) == 0, "%s: *text changed", what);
    EXPECT_THAT(memcmp(fresh.report, s->report, sizeof s->report) == 0, "%s: *report changed", what);
    EXPECT_THAT(s->ctx_out == (const void *)s->in && s->plan_out == (const void *)s->in, "%s: *out changed", what);
    EXPECT_THAT(s->op_out == DPR_COUNT && s->dtype_out == DPR_C128, "%s: *out changed", what);
}

static void scene_setup(void *state) {
    scene *s = state;
    for (int i = 0; i < 8; i++)
        s->in[i] = i + 1;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_F64;
    problem.count = 4;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(s->cpu, &problem, &s->plan));
    set_canaries(s);
}

static void scene_teardown(void *state) {
    scene *s = state;
    dpr_plan_destroy(s->plan);
    dpr_ctx_destroy(s->cpu);
}

#define SUM_OF(COUNT, DTYPE, OP) dpr_reduce(s->in, s->out, COUNT, DTYPE, OP)

static dpr_status with_options(scene *s, const char *strategy, int mode, int nan, const void *init, dpr_op op) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    options.mode = (dpr_mode)mode;
    options.nan = (dpr_nan)nan;
    options.init = init;
    return dpr_reduce_ex(s->cpu, s->in, s->out, 8, DPR_F64, op, &options);
}

static dpr_status with_launch(scene *s, dpr_launch_options launch, size_t report_at) {
    dpr_options options = DPR_OPTIONS_INIT;
    launch.size = sizeof launch;
    launch.report = (dpr_launch_report *)(void *)((char *)s->report + report_at);
    options.launch = &launch;
    return dpr_reduce_ex(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, &options);
}

#define WITH_LAUNCH(FIELD, VALUE) with_launch(s, (dpr_launch_options){.FIELD = (VALUE)}, 0)

/* This is no stream; a call must refuse it without reading it. */
static dpr_options options_with_stream(void) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.stream = (dpr_stream)(uintptr_t)16;
    return options;
}

static dpr_status with_stream(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_reduce_ex(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, &options);
}

static dpr_status with_stream_async(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_reduce_async(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, &options, NULL);
}

static dpr_status partial_with_stream(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_reduce_partial(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, 0, &options);
}

static dpr_status partial_with_stream_async(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_reduce_partial_async(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, 0, &options, NULL);
}

static dpr_status merge_with_stream(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_partial_merge(s->in, 1, DPR_F64, DPR_SUM, &options, s->out);
}

static dpr_status finish_with_stream(scene *s) {
    const dpr_options options = options_with_stream();
    return dpr_partial_finish_async(s->cpu, s->in, 1, DPR_F64, DPR_SUM, &options, s->out, NULL);
}

static dpr_status plan_with_stream(scene *s) {
    const dpr_options options = options_with_stream();
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.count = 4;
    problem.options = &options;
    return dpr_plan_create(s->cpu, &problem, &s->plan_out);
}

static dpr_status with_launch_size(scene *s, size_t size) {
    const dpr_launch_options launch = {.size = size};
    dpr_options options = DPR_OPTIONS_INIT;
    options.launch = &launch;
    return dpr_reduce_ex(s->cpu, s->in, s->out, 8, DPR_F64, DPR_SUM, &options);
}

static dpr_status with_pool(scene *s, int device, size_t size, size_t pending_launches) {
    const dpr_ctx_options options = {.size = size, .pending_launches = pending_launches};
    return dpr_ctx_create_ex(device, &options, &s->ctx_out);
}

static const dpr_launch_report some_failed = {.launched = 900,
                                              .refused = 77,
                                              .failed = 3,
                                              .in_line = 80,
                                              .deepest = 8,
                                              .error = 69,
                                              .error_depth = 2,
                                              .error_block = 5};

static dpr_status with_problem(scene *s, int op, int dtype, size_t count, int memory) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.op = (dpr_op)op;
    problem.dtype = (dpr_dtype)dtype;
    problem.count = count;
    problem.memory = (dpr_memory)memory;
    return dpr_plan_create(s->cpu, &problem, &s->plan_out);
}

static dpr_status short_explanation(scene *s) {
    size_t len = 3;
    const dpr_status status = dpr_plan_explain(s->plan, s->text, &len);
    EXPECT_TRUE(len > 3);
    return status;
}

/* Each provocation: an identifier, the status, what its sentence must contain, and the call. */
#define PROVOCATIONS(X)                                                                                                \
    X(in_null, ERR_NULL_POINTER, "in is NULL", dpr_reduce(NULL, s->out, 3, DPR_F64, DPR_SUM))                          \
    X(out_null, ERR_NULL_POINTER, "out is NULL", dpr_reduce(s->in, NULL, 3, DPR_F64, DPR_SUM))                         \
    X(out_null_empty, ERR_NULL_POINTER, "out is NULL", dpr_reduce(NULL, NULL, 0, DPR_F64, DPR_SUM))                    \
    X(ctx_null, ERR_NULL_POINTER, "ctx is NULL", dpr_reduce_ex(NULL, s->in, s->out, 3, DPR_F64, DPR_SUM, NULL))        \
    X(async_ctx_null, ERR_NULL_POINTER, "ctx is NULL",                                                                 \
      dpr_reduce_async(NULL, s->in, s->out, 3, DPR_F64, DPR_SUM, NULL, NULL))                                          \
    X(async_in_null, ERR_NULL_POINTER, "in is NULL",                                                                   \
      dpr_reduce_async(s->cpu, NULL, s->out, 3, DPR_F64, DPR_SUM, NULL, NULL))                                         \
    X(ctx_out_null, ERR_NULL_POINTER, "out is NULL", dpr_ctx_create(DPR_DEVICE_CPU, NULL))                             \
    X(op_name_null, ERR_NULL_POINTER, "name is NULL", dpr_op_parse(NULL, &s->op_out))                                  \
    X(op_out_null, ERR_NULL_POINTER, "out is NULL", dpr_op_parse("sum", NULL))                                         \
    X(dtype_name_null, ERR_NULL_POINTER, "name is NULL", dpr_dtype_parse(NULL, &s->dtype_out))                         \
    X(dtype_out_null, ERR_NULL_POINTER, "out is NULL", dpr_dtype_parse("f32", NULL))                                   \
    X(plan_ctx_null, ERR_NULL_POINTER, "ctx is NULL",                                                                  \
      dpr_plan_create(NULL, &(dpr_problem)DPR_PROBLEM_INIT, &s->plan_out))                                             \
    X(plan_problem_null, ERR_NULL_POINTER, "problem is NULL", dpr_plan_create(s->cpu, NULL, &s->plan_out))             \
    X(plan_out_null, ERR_NULL_POINTER, "out is NULL", dpr_plan_create(s->cpu, &(dpr_problem)DPR_PROBLEM_INIT, NULL))   \
    X(run_plan_null, ERR_NULL_POINTER, "plan is NULL", dpr_plan_run(NULL, s->in, s->out, NULL))                        \
    X(run_in_null, ERR_NULL_POINTER, "in is NULL", dpr_plan_run(s->plan, NULL, s->out, NULL))                          \
    X(run_out_null, ERR_NULL_POINTER, "out is NULL", dpr_plan_run(s->plan, s->in, NULL, NULL))                         \
    X(explain_plan_null, ERR_NULL_POINTER, "plan is NULL", dpr_plan_explain(NULL, s->text, &(size_t){16}))             \
    X(explain_len_null, ERR_NULL_POINTER, "len is NULL", dpr_plan_explain(s->plan, s->text, NULL))                     \
    X(op_99, ERR_INVALID_OP, "op is 99", SUM_OF(3, DPR_F64, (dpr_op)99))                                               \
    X(op_negative, ERR_INVALID_OP, "op is -1", SUM_OF(3, DPR_F64, (dpr_op)-1))                                         \
    X(op_past_last, ERR_INVALID_OP, "op is 274", SUM_OF(3, DPR_F64, (dpr_op)(DPR_MINMAX + 1)))                         \
    X(op_is_dtype, ERR_INVALID_OP, "op is the type f32; it and dtype may be swapped",                                  \
      SUM_OF(3, DPR_F64, (dpr_op)DPR_F32))                                                                             \
    X(op_and_dtype_swapped, ERR_INVALID_DTYPE, "dtype is the operation sum; it and op may be swapped",                 \
      SUM_OF(3, (dpr_dtype)DPR_SUM, (dpr_op)DPR_F32))                                                                  \
    X(op_of_problem, ERR_INVALID_OP, "op is 99", with_problem(s, 99, DPR_F64, 4, 0))                                   \
    X(op_name, ERR_INVALID_OP, "\"summ\"", dpr_op_parse("summ", &s->op_out))                                           \
    X(op_name_empty, ERR_INVALID_OP, "\"\"", dpr_op_parse("", &s->op_out))                                             \
    X(op_name_case, ERR_INVALID_OP, "\"SUM\"", dpr_op_parse("SUM", &s->op_out))                                        \
    X(partial_of_nothing, ERR_INVALID_PARTIAL, "begins with 0x0000000000000000",                                       \
      dpr_partial_finish((const uint64_t[6]){0}, 1, DPR_F64, DPR_SUM, NULL, s->out))                                   \
    X(partial_null, ERR_NULL_POINTER, "partial is NULL",                                                               \
      dpr_reduce_partial(s->cpu, s->in, NULL, 8, DPR_F64, DPR_SUM, 0, NULL))                                           \
    X(partial_misaligned, ERR_MISALIGNED, "partial is 0x",                                                             \
      dpr_reduce_partial(s->cpu, s->in, s->out + 4, 8, DPR_F64, DPR_SUM, 0, NULL))                                     \
    X(partial_swapped, ERR_INVALID_DTYPE, "dtype is the operation sum",                                                \
      dpr_reduce_partial(s->cpu, s->in, s->out, 8, (dpr_dtype)DPR_SUM, (dpr_op)DPR_F64, 0, NULL))                      \
    X(partials_most, ERR_SIZE, "n is 18446744073709551615",                                                            \
      dpr_partial_merge(s->in, SIZE_MAX, DPR_F64, DPR_SUM, NULL, s->out))                                              \
    X(dtype_99, ERR_INVALID_DTYPE, "dtype is 99", SUM_OF(3, (dpr_dtype)99, DPR_SUM))                                   \
    X(dtype_negative, ERR_INVALID_DTYPE, "dtype is -1", SUM_OF(3, (dpr_dtype)-1, DPR_SUM))                             \
    X(dtype_past_last, ERR_INVALID_DTYPE, "dtype is 527", SUM_OF(3, (dpr_dtype)(DPR_C128 + 1), DPR_SUM))               \
    X(dtype_of_problem, ERR_INVALID_DTYPE, "dtype is 99", with_problem(s, DPR_SUM, 99, 4, 0))                          \
    X(dtype_name, ERR_INVALID_DTYPE, "\"float\"", dpr_dtype_parse("float", &s->dtype_out))                             \
    X(report_null, ERR_NULL_POINTER, "report is NULL", dpr_launch_report_explain(NULL, 0, s->text, &(size_t){16}))     \
    X(report_len_null, ERR_NULL_POINTER, "len is NULL", dpr_launch_report_explain(&some_failed, 0, s->text, NULL))     \
    X(report_size, ERR_INVALID_OPTION, "report_size is 30",                                                            \
      dpr_launch_report_explain(&some_failed, 30, s->text, &(size_t){16}))                                             \
    X(report_short, ERR_BUFFER_TOO_SMALL, "*len is 16",                                                                \
      dpr_launch_report_explain(&some_failed, 0, s->text, &(size_t){16}))                                              \
    X(ctx_ex_out_null, ERR_NULL_POINTER, "out is NULL", dpr_ctx_create_ex(DPR_DEVICE_CPU, NULL, NULL))                 \
    X(ctx_ex_device, ERR_INVALID_OPTION, "device is -3", with_pool(s, -3, sizeof(dpr_ctx_options), 0))                 \
    X(pool_of_cpu, ERR_INVALID_OPTION, "ctx_options->pending_launches is 64",                                          \
      with_pool(s, DPR_DEVICE_CPU, sizeof(dpr_ctx_options), 64))                                                       \
    X(ctx_options_size_0, ERR_INVALID_OPTION, "ctx_options->size is 0", with_pool(s, DPR_DEVICE_CPU, 0, 0))            \
    X(ctx_options_size_odd, ERR_INVALID_OPTION, "ctx_options->size is 12", with_pool(s, DPR_DEVICE_CPU, 12, 0))        \
    X(ctx_options_size_huge, ERR_INVALID_OPTION, "sizeof(dpr_ctx_options)", with_pool(s, DPR_DEVICE_CPU, SIZE_MAX, 0)) \
    X(option_stream_on_cpu, ERR_INVALID_OPTION, "options->stream is 0x10, and the context is the CPU's",               \
      with_stream(s))                                                                                                  \
    X(async_option_stream, ERR_INVALID_OPTION, "options->stream is 0x10; it is for calls that wait",                   \
      with_stream_async(s))                                                                                            \
    X(plan_option_stream, ERR_INVALID_OPTION, "problem->options->stream is 0x10; it is for calls that wait",           \
      plan_with_stream(s))                                                                                             \
    X(partial_option_stream_on_cpu, ERR_INVALID_OPTION, "options->stream is 0x10, and the context is the CPU's",       \
      partial_with_stream(s))                                                                                          \
    X(partial_async_option_stream, ERR_INVALID_OPTION, "options->stream is 0x10; it is for calls that wait",           \
      partial_with_stream_async(s))                                                                                    \
    X(merge_option_stream, ERR_INVALID_OPTION, "options->stream is 0x10; it is for calls that wait",                   \
      merge_with_stream(s))                                                                                            \
    X(finish_option_stream, ERR_INVALID_OPTION, "options->stream is 0x10; it is for calls that wait",                  \
      finish_with_stream(s))                                                                                           \
    X(launch_size_0, ERR_INVALID_OPTION, "options->launch->size is 0; it should be sizeof(dpr_launch_options)",        \
      with_launch_size(s, 0))                                                                                          \
    X(depth_negative, ERR_INVALID_OPTION, "options->launch->max_depth is -1", WITH_LAUNCH(max_depth, -1))              \
    X(depth_past_most, ERR_INVALID_OPTION, "options->launch->max_depth is 25", WITH_LAUNCH(max_depth, 25))             \
    X(depth_of_a_byte, ERR_INVALID_OPTION, "options->launch->max_depth is 256", WITH_LAUNCH(max_depth, 256))           \
    X(pending_negative, ERR_INVALID_OPTION, "options->launch->max_pending is -2", WITH_LAUNCH(max_pending, -2))        \
    X(pending_least, ERR_INVALID_OPTION, "options->launch->max_pending is -2147483648",                                \
      WITH_LAUNCH(max_pending, INT_MIN))                                                                               \
    X(reserved, ERR_INVALID_OPTION, "options->launch->reserved is 7", WITH_LAUNCH(reserved, 7))                        \
    X(report_misaligned, ERR_MISALIGNED, "options->launch->report is 0x", with_launch(s, (dpr_launch_options){0}, 2))  \
    X(report_size_odd, ERR_INVALID_OPTION, "options->launch->report_size is 33", WITH_LAUNCH(report_size, 33))         \
    X(report_size_huge, ERR_INVALID_OPTION, "options->launch->report_size is 4100", WITH_LAUNCH(report_size, 4100))    \
    X(report_of_a_refused_call, ERR_STRATEGY_UNABLE, "options->launch->block", WITH_LAUNCH(block, 256))                \
    X(device_number, ERR_INVALID_OPTION, "device is -3", dpr_ctx_create(-3, &s->ctx_out))                              \
    X(mode_1, ERR_INVALID_OPTION, "mode is 1", with_options(s, NULL, 1, 0, NULL, DPR_SUM))                             \
    X(mode_later, ERR_INVALID_OPTION, "mode is 770", with_options(s, NULL, 0x302, 0, NULL, DPR_SUM))                   \
    X(mode, ERR_INVALID_OPTION, "mode is 7", with_options(s, NULL, 7, 0, NULL, DPR_SUM))                               \
    X(nan, ERR_INVALID_OPTION, "nan is 2", with_options(s, NULL, 0, 2, NULL, DPR_SUM))                                 \
    X(nan_negative, ERR_INVALID_OPTION, "nan is -1", with_options(s, NULL, 0, -1, NULL, DPR_SUM))                      \
    X(init_of_argmin, ERR_INVALID_OPTION, "init", with_options(s, NULL, 0, 0, s->in, DPR_ARGMIN))                      \
    X(init_of_argmax, ERR_INVALID_OPTION, "init", with_options(s, NULL, 0, 0, s->in, DPR_ARGMAX))                      \
    X(memory, ERR_INVALID_OPTION, "memory is 17", with_problem(s, DPR_SUM, DPR_F64, 4, 17))                            \
    X(memory_negative, ERR_INVALID_OPTION, "memory is -1", with_problem(s, DPR_SUM, DPR_F64, 4, -1))                   \
    X(stream_on_cpu, ERR_INVALID_OPTION, "stream is 0x10",                                                             \
      dpr_reduce_async(s->cpu, s->in, s->out, 3, DPR_F64, DPR_SUM, NULL, (dpr_stream)(uintptr_t)16))                   \
    X(stream_of_cpu_plan, ERR_INVALID_OPTION, "stream is 0x10",                                                        \
      dpr_plan_run(s->plan, s->in, s->out, (dpr_stream)(uintptr_t)16))                                                 \
    X(band_f32, ERR_UNSUPPORTED_PAIR, "band", SUM_OF(3, DPR_F32, DPR_BAND))                                            \
    X(band_f32_type, ERR_UNSUPPORTED_PAIR, "f32", SUM_OF(3, DPR_F32, DPR_BAND))                                        \
    X(min_c64, ERR_UNSUPPORTED_PAIR, "min", SUM_OF(3, DPR_C64, DPR_MIN))                                               \
    X(pair_of_problem, ERR_UNSUPPORTED_PAIR, "bxor", with_problem(s, DPR_BXOR, DPR_BF16, 4, 0))                        \
    X(in_misaligned, ERR_MISALIGNED, "in is 0x", dpr_reduce((const char *)s->in + 1, s->out, 3, DPR_F64, DPR_SUM))     \
    X(in_misaligned_2, ERR_MISALIGNED, "f16", dpr_reduce((const char *)s->in + 1, s->out, 3, DPR_F16, DPR_SUM))        \
    X(in_misaligned_complex, ERR_MISALIGNED, "c64", dpr_reduce((const char *)s->in + 2, s->out, 3, DPR_C64, DPR_SUM))  \
    X(out_misaligned, ERR_MISALIGNED, "out is 0x", dpr_reduce(s->in, s->out + 4, 3, DPR_I32, DPR_SUM))                 \
    X(out_misaligned_result, ERR_MISALIGNED, "i64", dpr_reduce(s->in, s->out + 4, 3, DPR_I8, DPR_ARGMAX))              \
    X(run_misaligned, ERR_MISALIGNED, "in is 0x", dpr_plan_run(s->plan, (const char *)s->in + 4, s->out, NULL))        \
    X(argmin_empty, ERR_EMPTY, "argmin", SUM_OF(0, DPR_F64, DPR_ARGMIN))                                               \
    X(argmax_empty, ERR_EMPTY, "count is 0", dpr_reduce(NULL, s->out, 0, DPR_BOOL, DPR_ARGMAX))                        \
    X(plan_empty, ERR_EMPTY, "argmax", with_problem(s, DPR_ARGMAX, DPR_F64, 0, 0))                                     \
    X(count_overflow, ERR_SIZE, "count is 2305843009213693952", SUM_OF((size_t)1 << 61, DPR_F64, DPR_SUM))             \
    X(count_half, ERR_SIZE, "f64", SUM_OF((size_t)1 << 60, DPR_F64, DPR_SUM))                                          \
    X(count_most, ERR_SIZE, "count is 18446744073709551615", SUM_OF(SIZE_MAX, DPR_U8, DPR_SUM))                        \
    X(count_of_problem, ERR_SIZE, "count is ", with_problem(s, DPR_SUM, DPR_F64, SIZE_MAX, 0))                         \
    X(device_memory, ERR_MEMORY_KIND, "DPR_MEMORY_DEVICE", with_problem(s, DPR_SUM, DPR_F64, 4, DPR_MEMORY_DEVICE))    \
    X(strategy_unknown, ERR_UNKNOWN_STRATEGY, "\"cpu.serail\"", with_options(s, "cpu.serail", 0, 0, NULL, DPR_SUM))    \
    X(strategy_prefix, ERR_UNKNOWN_STRATEGY, "\"cpu.\"", with_options(s, "cpu.", 0, 0, NULL, DPR_SUM))                 \
    X(no_device, ERR_NO_DEVICE, "device is 1000", dpr_ctx_create(1000, &s->ctx_out))                                   \
    X(short_buffer, ERR_BUFFER_TOO_SMALL, "3", short_explanation(s))                                                   \
    PROVOCATIONS_WITH_GPU(X)

#ifdef DPR_WITH_CUDA
#define PROVOCATIONS_WITH_GPU(X)                                                                                       \
    X(strategy_unable, ERR_STRATEGY_UNABLE, "flat.block", with_options(s, "flat.block", 0, 0, NULL, DPR_SUM))
#else
#define PROVOCATIONS_WITH_GPU(X)
#endif

#define DEFINE_CALL(ID, STATUS, SAYS, CALL)                                                                            \
    static dpr_status provoke_##ID(scene *s) {                                                                         \
        (void)s;                                                                                                       \
        return CALL;                                                                                                   \
    }
PROVOCATIONS(DEFINE_CALL)

static const struct provocation {
    const char *name;
    dpr_status status;
    const char *says;
    dpr_status (*call)(scene *s);
} provocations[] = {
#define TABLE_ENTRY(ID, STATUS, SAYS, CALL) {#ID, DPR_##STATUS, SAYS, provoke_##ID},
    PROVOCATIONS(TABLE_ENTRY)};

TEST_FIXTURE(Api, bad_input, scene, scene_setup, scene_teardown) {
    for (size_t i = 0; i < LENGTH(provocations); i++) {
        const struct provocation *p = &provocations[i];
        const dpr_status status = p->call(fixture);
        EXPECT_THAT(status == p->status, "%s: %s, expected %s; %s", p->name, dpr_status_name(status),
                    dpr_status_name(p->status), dpr_last_error());
        EXPECT_THAT(strstr(dpr_last_error(), p->says) != NULL, "%s: \"%s\" does not contain \"%s\"", p->name,
                    dpr_last_error(), p->says);
        expect_canaries(p->name, fixture);
        double sum = 0;
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->cpu, fixture->in, &sum, 8, DPR_F64, DPR_SUM, NULL));
        EXPECT_NEAR_F64(36.0, sum, 0.0);
    }
}

/* Statuses without a provocation above, and the tests that check them. */
static const struct elsewhere {
    dpr_status status;
    const char *where;
} tested_elsewhere[] = {
    {DPR_OK, "every other test"},
    {DPR_ERR_WRONG_DEVICE, "Gpu.memory_of_another_device_is_refused, also on the fake devices"},
    {DPR_ERR_OUT_OF_MEMORY, "Allocations.every_failure_is_a_status"},
    {DPR_ERR_CUDA, "Faults.*"},
    {DPR_ERR_DIVIDE, "Recursion.a_wrong_number_of_children"},
    {DPR_ERR_LIMIT, "Recursion.limits_of_depth_and_tasks"},
    {DPR_ERR_UNKNOWN_ENGINE, "Recursion.bad_arguments"},
    {DPR_ERR_SEGMENT, "Segments.outside_of_the_array"},
    {DPR_ERR_WISDOM, "Wisdom.text_that_is_refused"},
    {DPR_ERR_FILE, "Wisdom.files_that_cannot_be_read_or_written"},
    {DPR_ERR_OVERLAP, "Segments.arrays_that_overlap"},
};

TEST(Api, every_status_is_tested) {
#define ENTRY(A, NAME, number, text) DPR_##NAME,
    static const dpr_status all[] = {DPR_STATUS_LIST(ENTRY, _)};
#undef ENTRY
    for (size_t s = 0; s < LENGTH(all); s++) {
        int seen = 0;
        for (size_t i = 0; i < LENGTH(provocations); i++)
            seen += provocations[i].status == all[s];
        for (size_t i = 0; i < LENGTH(tested_elsewhere); i++)
            seen += tested_elsewhere[i].status == all[s];
        EXPECT_THAT(seen > 0, "no test provokes %s", dpr_status_name(all[s]));
    }
}

TEST(Api, success_leaves_the_last_error_alone) {
    const int32_t in[] = {1, 2, 3};
    int64_t out = 0;
    EXPECT_STATUS(DPR_ERR_INVALID_OP, dpr_reduce(in, &out, 3, DPR_I32, (dpr_op)99));
    EXPECT_STATUS(DPR_OK, dpr_reduce(in, &out, 3, DPR_I32, DPR_SUM));
    EXPECT_CONTAINS(dpr_last_error(), "op is 99");
}

TEST(Api, no_cuda_error_is_behind_bad_input) {
    const int32_t in[] = {1, 2, 3};
    int64_t out = 0;
    EXPECT_STATUS(DPR_ERR_INVALID_OP, dpr_reduce(in, &out, 3, DPR_I32, (dpr_op)99));
    EXPECT_EQ_I64(0, dpr_last_cuda_error());
}

/* The text of a report of `size` bytes; static storage. */
static const char *explain(const dpr_launch_report *report, size_t size) {
    static char text[512];
    size_t len = sizeof text, needed = 0;
    EXPECT_STATUS(DPR_OK, dpr_launch_report_explain(report, size, NULL, &needed));
    EXPECT_STATUS(DPR_OK, dpr_launch_report_explain(report, size, text, &len));
    EXPECT_TRUE(len == needed && len == strlen(text) + 1);
    return text;
}

TEST(Api, reports_are_explained) {
    dpr_launch_report report = some_failed;
    EXPECT_EQ_STR("kernels made 900 launches, the deepest at depth 8; 77 were refused; 3 failed, the first with "
                  "cudaError_t 69 in block 5 at depth 2; 80 sub-trees were done in line",
                  explain(&report, sizeof report));
    EXPECT_EQ_BYTES(&some_failed, &report, sizeof report);
    memset(&report, 0xff, sizeof report);
    EXPECT_TRUE(strlen(explain(&report, sizeof report)) < 300);
    report = (dpr_launch_report){.launched = 1, .refused = 1, .in_line = 1, .deepest = 1, .error = 69};
    EXPECT_EQ_STR("kernels made 1 launch, the deepest at depth 1; 1 was refused; 1 sub-tree was done in line",
                  explain(&report, 0)); /* `error` counts only if `failed` is not 0 */
    report = (dpr_launch_report){0};
    EXPECT_EQ_STR("kernels made 0 launches; 0 were refused; 0 sub-trees were done in line", explain(&report, 0));
}

/* The library reads the counters that a smaller report has, and ignores those of a larger one that it does not know. */
TEST(Api, reports_of_other_versions_are_explained) {
    struct {
        dpr_launch_report known;
        uint32_t later[2];
    } larger = {some_failed, {7, 7}};
    EXPECT_CONTAINS(explain(&larger.known, sizeof larger), "in block 5 at depth 2");
    EXPECT_EQ_STR("kernels made 900 launches, the deepest at depth 0; 77 were refused; 0 sub-trees were done in line",
                  explain(&some_failed, offsetof(dpr_launch_report, failed)));
}

TEST(Api, an_empty_name_leaves_the_choice_to_the_planner) {
    const double in[] = {1, 2};
    double out = 0;
    dpr_ctx *ctx = NULL;
    dpr_plan *plan = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    options.strategy = "";
    problem.dtype = DPR_F64;
    problem.count = LENGTH(in);
    problem.options = &options;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(ctx, in, &out, LENGTH(in), DPR_F64, DPR_SUM, &options));
    EXPECT_TRUE(out == 3);
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_TRUE(dpr_plan_strategy(plan)[0] != 0);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(Api, long_names_are_cut) {
    char name[2000];
    double in = 1, out = 2;
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    options.strategy = name;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    EXPECT_STATUS(DPR_ERR_UNKNOWN_STRATEGY, dpr_reduce_ex(ctx, &in, &out, 1, DPR_F64, DPR_SUM, &options));
    EXPECT_TRUE(strlen(dpr_last_error()) < 512);
    EXPECT_CONTAINS(dpr_last_error(), "xxxx");
    dpr_ctx_destroy(ctx);
}

TEST(Api, null_may_be_destroyed) {
    dpr_ctx_destroy(NULL);
    dpr_plan_destroy(NULL);
    EXPECT_EQ_I64(DPR_DEVICE_CPU, dpr_ctx_device(NULL));
}

TEST(Api, result_may_overlap_the_input) {
    double both[] = {1, 2, 3};
    EXPECT_STATUS(DPR_OK, dpr_reduce(both, both, 3, DPR_F64, DPR_SUM));
    EXPECT_NEAR_F64(6.0, both[0], 0.0);
}
