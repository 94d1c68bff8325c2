/* Runs of equal keys, on the CPU. */
#include <string.h>

#include "data.h"
#include "support.h"

/* Writes key i, of so many bytes. */
static void put_key(unsigned char *keys, size_t bytes, size_t i, uint64_t key) {
    memcpy(keys + i * bytes, &key, bytes); /* the low bytes come first */
}

/* Keys that change now and then. Returns how many runs there are, and where each begins. */
static uint64_t make_keys(unsigned char *keys, size_t bytes, size_t count, uint32_t chance, uint64_t *begins) {
    uint64_t seed = bytes + chance, key = 200, runs = 0;
    for (size_t i = 0; i < count; i++) {
        const int changes = data_below(&seed, 100) < chance;
        key = changes ? key ^ (1 + data_below(&seed, 255)) : key;
        put_key(keys, bytes, i, key << (8 * bytes - 8));
        if (i == 0 || changes)
            begins[runs++] = i;
    }
    return runs;
}

static void expect_runs(dpr_ctx *ctx, dpr_dtype key_dtype, size_t count, uint32_t chance) {
    const size_t bytes = dpr_dtype_size(key_dtype);
    _Alignas(8) static unsigned char keys[8 << 17], unique[8 << 17];
    static uint16_t in[1 << 17];
    static uint64_t begins[1 << 17], sums[1 << 17];
    const uint64_t known = make_keys(keys, bytes, count, chance, begins);
    uint64_t runs = count, wrong = 0;
    data_fill(in, DPR_SUM, DPR_U16, DATA_RANDOM, count);
    ASSERT_STATUS(DPR_OK,
                  dpr_reduce_by_key(ctx, keys, key_dtype, in, unique, sums, &runs, count, DPR_U16, DPR_SUM, NULL));
    ASSERT_EQ_U64(known, runs);
    for (uint64_t r = 0; r < runs; r++) {
        const size_t end = r + 1 < runs ? begins[r + 1] : count;
        uint64_t sum = 0;
        for (size_t i = begins[r]; i < end; i++)
            sum += in[i];
        wrong += sum != sums[r] || memcmp(keys + begins[r] * bytes, unique + r * bytes, bytes) != 0;
    }
    EXPECT_EQ_U64(0, wrong);
}

TEST(ByKey, runs_of_every_type) {
    static const size_t counts[] = {1, 2, 1000, 131072};
    static const uint32_t chances[] = {0, 1, 20, 100};
    dpr_ctx *ctx = cpu_ctx();
    for (size_t i = 0; i < dpr_dtype_count(); i++)
        for (size_t k = 0; k < LENGTH(counts) * LENGTH(chances); k++)
            if (dpr_supported(DPR_BAND, dpr_dtype_at(i)) && !test_failed())
                expect_runs(ctx, dpr_dtype_at(i), counts[k / LENGTH(chances)], chances[k % LENGTH(chances)]);
    dpr_ctx_destroy(ctx);
}

/* So many runs that memory for their beginnings comes in huge pages, and several threads copy their keys. */
TEST(ByKey, millions_of_runs) {
    enum { COUNT = 3 << 20 };
    static uint16_t keys[COUNT], unique[COUNT];
    static int8_t in[COUNT], out[COUNT];
    dpr_ctx *ctx = cpu_ctx();
    uint64_t runs = COUNT, wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = (uint16_t)(i * 2 / 3); /* runs of 2 and 1 */
        in[i] = (int8_t)(i % 100);
    }
    ASSERT_STATUS(DPR_OK, dpr_reduce_by_key(ctx, keys, DPR_U16, in, unique, out, &runs, COUNT, DPR_I8, DPR_MAX, NULL));
    ASSERT_EQ_U64(COUNT / 3 * 2, runs);
    for (uint64_t r = 0; r < runs; r++) {
        const size_t first = (size_t)(r * 3 + 1) / 2, n = 2 - r % 2;
        int8_t most = in[first];
        if (n == 2 && in[first + 1] > most)
            most = in[first + 1];
        wrong += unique[r] != (uint16_t)r || out[r] != most;
    }
    EXPECT_EQ_U64(0, wrong);
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, indices_are_those_in_the_run) {
    static const int32_t keys[] = {7, 7, 7, -1, 7, 7};
    static const float in[] = {1, 5, 2, 3, 4, 9};
    dpr_ctx *ctx = cpu_ctx();
    uint64_t runs = 3;
    int32_t unique[3] = {0};
    int64_t out[3] = {0};
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(ctx, keys, DPR_I32, in, unique, out, &runs, 6, DPR_F32, DPR_ARGMAX, NULL));
    EXPECT_EQ_U64(3, runs);
    EXPECT_TRUE(unique[0] == 7 && unique[1] == -1 && unique[2] == 7);
    EXPECT_TRUE(out[0] == 1 && out[1] == 0 && out[2] == 1);
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, little_room) {
    static const uint8_t keys[] = {1, 1, 2, 3};
    static const double in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    uint8_t unique[3] = {9, 9, 9};
    double out[3] = {9, 9, 9};
    uint64_t runs = 0;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL,
                  dpr_reduce_by_key(ctx, keys, DPR_U8, in, NULL, NULL, &runs, 4, DPR_F64, DPR_SUM, NULL));
    EXPECT_EQ_U64(3, runs);
    runs = 2;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL,
                  dpr_reduce_by_key(ctx, keys, DPR_U8, in, unique, out, &runs, 4, DPR_F64, DPR_SUM, NULL));
    EXPECT_EQ_STR("*runs is 2, and keys has 3 runs", dpr_last_error());
    EXPECT_EQ_U64(3, runs);
    EXPECT_TRUE(unique[0] == 9 && out[0] == 9);
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(ctx, keys, DPR_U8, in, NULL, out, &runs, 4, DPR_F64, DPR_SUM, NULL));
    EXPECT_TRUE(out[0] == 3 && out[1] == 3 && out[2] == 4);
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(ctx, NULL, DPR_U8, NULL, NULL, NULL, &runs, 0, DPR_F64, DPR_ARGMIN, NULL));
    EXPECT_EQ_U64(0, runs);
    dpr_ctx_destroy(ctx);
}

/* In the CPU's context the call is done on return. */
TEST(ByKey, in_no_stream) {
    static const uint8_t keys[] = {1, 1, 2, 3};
    static const double in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    for (uint64_t room = 0; room < 6; room++) {
        uint8_t unique[4] = {9, 9, 9, 9};
        double out[4] = {9, 9, 9, 9};
        uint64_t runs = 77;
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(ctx, keys, DPR_U8, in, unique, out, &runs, room, 4, NULL, DPR_F64,
                                                      DPR_SUM, NULL, NULL));
        EXPECT_EQ_U64(3, runs);
        if (room < 3)
            EXPECT_TRUE(unique[0] == 9 && out[0] == 9);
        else
            EXPECT_TRUE(unique[0] == 1 && unique[1] == 2 && unique[2] == 3 && out[0] == 3 && out[1] == 3
                        && out[2] == 4);
        EXPECT_TRUE(unique[3] == 9 && out[3] == 9);
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(ctx, NULL, DPR_U8, NULL, NULL, NULL, &runs, room, 0, NULL,
                                                      DPR_F64, DPR_SUM, NULL, NULL));
        EXPECT_EQ_U64(0, runs);
    }
    dpr_ctx_destroy(ctx);
}

/* More than there are keys, none, and a part of them. */
TEST(ByKey, a_number_of_keys_in_memory) {
    static const uint8_t keys[] = {1, 1, 2, 3};
    static const double in[] = {1, 2, 3, 4}, known[][3] = {{9, 9, 9}, {1, 9, 9}, {3, 9, 9}, {3, 3, 9}, {3, 3, 4}};
    dpr_ctx *ctx = cpu_ctx();
    for (uint64_t number = 0; number < 7; number++) {
        const size_t n = number < 4 ? (size_t)number : 4;
        double out[3] = {9, 9, 9};
        uint64_t runs = 77;
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(ctx, keys, DPR_U8, in, NULL, out, &runs, 4, 4, &number, DPR_F64,
                                                      DPR_SUM, NULL, NULL));
        EXPECT_EQ_U64(n < 2 ? n : n - 1, runs);
        EXPECT_EQ_BYTES(known[n], out, sizeof out);
    }
    const uint64_t number[2] = {4, 4};
    uint64_t runs = 77;
    double out[3];
    EXPECT_STATUS(DPR_ERR_MISALIGNED,
                  dpr_reduce_by_key_async(ctx, keys, DPR_U8, in, NULL, out, &runs, 4, 4,
                                          (const uint64_t *)(const void *)((const char *)number + 4), DPR_F64, DPR_SUM,
                                          NULL, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "device_count is ");
    EXPECT_EQ_U64(77, runs);
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, mistakes_in_no_stream) {
    static const int32_t keys[] = {1, 1, 2, 3};
    static const float in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    int32_t unique[4] = {9};
    double out[4] = {9};
    uint64_t runs = 77;
#define EXPECT_NONE(STATUS, SENTENCE, KEYS, UNIQUE, OUT, RUNS, STREAM)                                                 \
    EXPECT_STATUS(STATUS, dpr_reduce_by_key_async(ctx, KEYS, DPR_I32, in, UNIQUE, OUT, RUNS, 4, 4, NULL, DPR_F32,      \
                                                  DPR_SUM, NULL, STREAM));                                             \
    EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                       \
    EXPECT_TRUE(unique[0] == 9 && out[0] == 9 && runs == 77)
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "keys is NULL", NULL, unique, out, &runs, NULL);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "out is NULL", keys, unique, NULL, &runs, NULL);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "runs is NULL", keys, unique, out, NULL, NULL);
    EXPECT_NONE(DPR_ERR_MISALIGNED, "unique_keys is", keys, (char *)unique + 2, out, &runs, NULL);
    EXPECT_NONE(DPR_ERR_MISALIGNED, "runs is", keys, unique, out, (uint64_t *)(void *)((char *)out + 4), NULL);
    EXPECT_NONE(DPR_ERR_INVALID_OPTION, "stream", keys, unique, out, &runs, (dpr_stream)&runs);
#undef EXPECT_NONE
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, mistakes) {
    static const int32_t keys[] = {1, 1, 2, 3};
    static const float in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    int32_t unique[4] = {9};
    double out[4] = {9};
    uint64_t runs = 4;
#define EXPECT_NONE(STATUS, SENTENCE, CTX, KEYS, KEY_DTYPE, IN, UNIQUE, OUT, RUNS)                                     \
    EXPECT_STATUS(STATUS, dpr_reduce_by_key(CTX, KEYS, KEY_DTYPE, IN, UNIQUE, OUT, RUNS, 4, DPR_F32, DPR_SUM, NULL));  \
    EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                       \
    EXPECT_TRUE(unique[0] == 9 && out[0] == 9 && runs == 4)
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "ctx is NULL", NULL, keys, DPR_I32, in, unique, out, &runs);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "keys is NULL", ctx, NULL, DPR_I32, in, unique, out, &runs);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "in is NULL", ctx, keys, DPR_I32, NULL, unique, out, &runs);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "out is NULL", ctx, keys, DPR_I32, in, unique, NULL, &runs);
    EXPECT_NONE(DPR_ERR_NULL_POINTER, "runs is NULL", ctx, keys, DPR_I32, in, unique, out, NULL);
    EXPECT_NONE(DPR_ERR_MISALIGNED, "runs is", ctx, keys, DPR_I32, in, unique, out,
                (uint64_t *)(void *)((char *)out + 4));
    EXPECT_NONE(DPR_ERR_INVALID_DTYPE, "key_dtype is", ctx, keys, DPR_F32, in, unique, out, &runs);
    EXPECT_NONE(DPR_ERR_INVALID_DTYPE, "key_dtype is 3", ctx, keys, (dpr_dtype)3, in, unique, out, &runs);
    EXPECT_STATUS(DPR_ERR_INVALID_DTYPE,
                  dpr_reduce_by_key(ctx, NULL, (dpr_dtype)999, NULL, NULL, NULL, &runs, 0, DPR_F32, DPR_SUM, NULL));
    EXPECT_NONE(DPR_ERR_MISALIGNED, "keys is", ctx, (const char *)keys + 1, DPR_I32, in, unique, out, &runs);
    EXPECT_NONE(DPR_ERR_MISALIGNED, "unique_keys is", ctx, keys, DPR_I32, in, (char *)unique + 2, out, &runs);
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, arrays_that_overlap) {
    dpr_ctx *ctx = cpu_ctx();
    int64_t keys[8] = {1, 1, 2, 3}, unique[4], in[4] = {1, 2, 3, 4}, out[8];
    uint64_t runs = 4;
#define BY_KEY(UNIQUE, OUT) dpr_reduce_by_key(ctx, keys, DPR_I64, in, UNIQUE, OUT, &runs, 4, DPR_I64, DPR_SUM, NULL)
    EXPECT_OVERLAP("unique_keys is ", BY_KEY(keys, out));
    EXPECT_OVERLAP("overlaps keys,", BY_KEY(keys + 3, out));
    EXPECT_OVERLAP("overlaps in,", BY_KEY(in, out));
    EXPECT_OVERLAP("overlaps in,", BY_KEY(unique, in + 1));
    EXPECT_OVERLAP("overlaps keys,", BY_KEY(unique, keys));
    EXPECT_OVERLAP("overlaps unique_keys,", BY_KEY(out, out + 3));
    EXPECT_OVERLAP("overlaps runs,", dpr_reduce_by_key_async(ctx, keys, DPR_I64, in, unique, out, (uint64_t *)(out + 3),
                                                             9, 4, NULL, DPR_I64, DPR_SUM, NULL, NULL));
    EXPECT_OVERLAP("overlaps device_count,", dpr_reduce_by_key_async(ctx, keys, DPR_I64, in, unique, out, &runs, 4, 4,
                                                                     &runs, DPR_I64, DPR_SUM, NULL, NULL));
    EXPECT_TRUE(runs == 4 && keys[1] == 1 && in[1] == 2);
    EXPECT_STATUS(DPR_OK, BY_KEY(keys + 4, out));
    EXPECT_TRUE(runs == 3 && keys[4] == 1 && keys[5] == 2 && keys[6] == 3 && out[0] == 3);
    EXPECT_STATUS(DPR_OK, BY_KEY(out, out + 3)); /* there is room for three of each */
    EXPECT_TRUE(out[2] == 3 && out[3] == 3);
    runs = UINT64_MAX;
    EXPECT_STATUS(DPR_OK, BY_KEY(out, out + 4));
    runs = 0;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, BY_KEY(keys, keys));
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(ctx, keys, DPR_I64, keys, NULL, out, &runs, 4, DPR_I64, DPR_SUM, NULL));
    EXPECT_TRUE(runs == 3 && out[0] == 2); /* keys are elements, too */
#undef BY_KEY
    dpr_ctx_destroy(ctx);
}

/* ---- Plans ---- */

/* A problem of sums of 4 numbers of type F64 by keys of type U8. */
static dpr_problem problem_of_keys(uint64_t room) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_F64;
    problem.count = 4;
    problem.key_dtype = DPR_U8;
    problem.room = room;
    return problem;
}

/* A plan does what the call in a stream does, for every room and number of keys. */
TEST(ByKey, plans_run_as_calls_do) {
    static const uint8_t keys[] = {1, 1, 2, 3};
    static const double in[] = {1, 2, 3, 4};
    const double init = 10;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_ctx *ctx = cpu_ctx();
    options.init = &init;
    for (uint64_t room = 0; room < 6; room++)
        for (uint64_t number = 0; number < 6; number++) {
            uint8_t unique[2][4] = {{9, 9, 9, 9}, {9, 9, 9, 9}};
            double out[2][4] = {{9, 9, 9, 9}, {9, 9, 9, 9}};
            uint64_t runs[2] = {77, 78};
            dpr_problem problem = problem_of_keys(room);
            dpr_plan *plan = NULL;
            problem.options = &options;
            problem.device_count = number < 5 ? &number : NULL;
            ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
            EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, keys, in, unique[0], out[0], &runs[0], NULL));
            EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(ctx, keys, DPR_U8, in, unique[1], out[1], &runs[1], room, 4,
                                                          problem.device_count, DPR_F64, DPR_SUM, &options, NULL));
            const uint64_t known_runs = number < 2 ? number : number < 4 ? number - 1 : 3;
            const int is_written = known_runs > 0 && known_runs <= room;
            EXPECT_EQ_U64(known_runs, runs[0]);
            EXPECT_EQ_U64(is_written ? 1 : 9, unique[0][0]);
            EXPECT_NEAR_F64(!is_written ? 9 : number == 1 ? 11 : 13, out[0][0], 0);
            EXPECT_EQ_U64(runs[1], runs[0]);
            EXPECT_EQ_BYTES(unique[1], unique[0], sizeof unique[0]);
            EXPECT_EQ_BYTES(out[1], out[0], sizeof out[0]);
            dpr_plan_destroy(plan);
        }
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, plans_of_no_keys) {
    dpr_ctx *ctx = cpu_ctx();
    dpr_problem problem = problem_of_keys(0);
    dpr_plan *plan = NULL;
    uint64_t runs = 77;
    char text[4096];
    size_t size = sizeof text;
    problem.count = 0;
    problem.op = DPR_ARGMAX;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "problem:   argmax of 0 f64 by keys of u8, with room for 0 runs, in host memory\n");
    EXPECT_CONTAINS(
        text,
        "\nkeys:      threads of the CPU find the runs first; a strategy is chosen for their number; one pass is ");
    EXPECT_TRUE(strncmp(dpr_plan_strategy(plan), "cpu.", 4) == 0);
    EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, NULL, NULL, NULL, NULL, &runs, NULL));
    EXPECT_EQ_U64(0, runs);
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(ctx);
}

TEST(ByKey, mistakes_in_problems) {
    static const int64_t numbers[5];
    static const uint64_t extents[] = {4};
    static const dpr_op ops[] = {DPR_SUM, DPR_MAX};
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_axes axes = DPR_AXES_INIT;
    dpr_launch_report report = {0};
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_options options = DPR_OPTIONS_INIT, measure = DPR_OPTIONS_INIT;
    dpr_ctx *ctx = cpu_ctx();
    dpr_plan *plan = NULL;
    measure.effort = DPR_MEASURE;
    segments.begins = numbers;
    launch.report = &report;
    launch.report_size = sizeof report;
    options.launch = &launch;
#define EXPECT_NO_PLAN(STATUS, SENTENCE, MISTAKE)                                                                      \
    do {                                                                                                               \
        dpr_problem problem = problem_of_keys(4);                                                                      \
        MISTAKE;                                                                                                       \
        EXPECT_STATUS(STATUS, dpr_plan_create(ctx, &problem, &plan));                                                  \
        EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                   \
        EXPECT_TRUE(plan == NULL);                                                                                     \
    } while (0)
    EXPECT_NO_PLAN(DPR_ERR_INVALID_DTYPE, "problem->key_dtype is 523", problem.key_dtype = DPR_F32);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_DTYPE, "problem->key_dtype is 3;", problem.key_dtype = (dpr_dtype)3);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_DTYPE, "dtype is ", problem.dtype = DPR_DTYPE_NONE);
    EXPECT_NO_PLAN(DPR_ERR_SIZE, "count is 1152921504606846975, and the keys or the results of so many runs",
                   problem.count = SIZE_MAX / sizeof(double) / 2);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->room is 4; it should be 0", problem.key_dtype = DPR_DTYPE_NONE);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->reserved is -1", problem.reserved = -1);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->segments and problem->key_dtype", problem.segments = &segments);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->axes and problem->key_dtype", problem.axes = &axes);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->dimensions and problem->key_dtype", problem.dimensions = 1);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->extents and problem->key_dtype", problem.extents = extents);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->strides and problem->key_dtype", problem.strides = numbers);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "not available with segments, keys, axes or gaps",
                   problem.options = &measure);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "a plan of keys writes no report", problem.options = &options);
    EXPECT_NO_PLAN(DPR_ERR_INVALID_OPTION, "problem->op_count is 2; it should be 1", problem.ops = ops;
                   problem.op_count = 2);
    EXPECT_NO_PLAN(DPR_ERR_MISALIGNED, "problem->device_count is ",
                   problem.device_count = (const uint64_t *)(const void *)((const char *)numbers + 4));
#undef EXPECT_NO_PLAN
    dpr_ctx_destroy(ctx);
}

/* Each function runs plans of its own kind. */
TEST(ByKey, mistakes_with_plans) {
    static const uint8_t keys[] = {1, 1, 2, 3};
    static const double in[] = {1, 2, 3, 4};
    dpr_ctx *ctx = cpu_ctx();
    dpr_problem problem = problem_of_keys(4);
    dpr_plan *plan = NULL, *other = NULL;
    uint8_t unique[4] = {9};
    uint64_t partial[32] = {9}, runs = 77;
    double out[4] = {9};
    void *const outs[] = {out};
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    problem.key_dtype = DPR_DTYPE_NONE;
    problem.room = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &other));
#define EXPECT_NO_RUN(STATUS, SENTENCE, CALL)                                                                          \
    EXPECT_STATUS(STATUS, CALL);                                                                                       \
    EXPECT_CONTAINS(dpr_last_error(), SENTENCE);                                                                       \
    EXPECT_TRUE(unique[0] == 9 && out[0] == 9 && runs == 77 && partial[0] == 9)
    EXPECT_NO_RUN(DPR_ERR_INVALID_OPTION, "dpr_plan_run_by_key()", dpr_plan_run(plan, in, out, NULL));
    EXPECT_NO_RUN(DPR_ERR_INVALID_OPTION, "dpr_plan_run_by_key()", dpr_plan_run_fused(plan, in, outs, NULL));
    EXPECT_NO_RUN(DPR_ERR_INVALID_OPTION, "dpr_plan_run_by_key()", dpr_plan_run_partial(plan, in, partial, 0, NULL));
    EXPECT_NO_RUN(DPR_ERR_INVALID_OPTION, "without problem->key_dtype",
                  dpr_plan_run_by_key(other, keys, in, unique, out, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_NULL_POINTER, "plan is NULL", dpr_plan_run_by_key(NULL, keys, in, unique, out, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_NULL_POINTER, "keys is NULL", dpr_plan_run_by_key(plan, NULL, in, unique, out, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_NULL_POINTER, "in is NULL", dpr_plan_run_by_key(plan, keys, NULL, unique, out, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_NULL_POINTER, "out is NULL", dpr_plan_run_by_key(plan, keys, in, unique, NULL, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_NULL_POINTER, "runs is NULL", dpr_plan_run_by_key(plan, keys, in, unique, out, NULL, NULL));
    EXPECT_NO_RUN(DPR_ERR_OVERLAP, "overlaps in,",
                  dpr_plan_run_by_key(plan, keys, in, unique, (double *)in, &runs, NULL));
    EXPECT_NO_RUN(DPR_ERR_INVALID_OPTION, "the plan runs on the CPU",
                  dpr_plan_run_by_key(plan, keys, in, unique, out, &runs, (dpr_stream)&runs));
#undef EXPECT_NO_RUN
    EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, keys, in, NULL, out, &runs, NULL));
    EXPECT_TRUE(runs == 3 && out[0] == 3 && out[2] == 4);
    dpr_plan_destroy(plan);
    dpr_plan_destroy(other);
    dpr_ctx_destroy(ctx);
}
