#include "matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "reference.h"
#include "support.h"

/* Sanitized code takes some ten times as long, so the largest array is smaller there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LARGEST = 65539 };
#else
enum { LARGEST = 1000003 };
#endif

/* DPR_TEST_LARGEST leaves out larger arrays, for tools that take a thousand times as long. */
static size_t largest(void) {
    const char *text = getenv("DPR_TEST_LARGEST");
    return text ? strtoull(text, NULL, 10) : LARGEST;
}

static const size_t sizes[] = {0, 1, 2, 3, 31, 32, 33, 1000, 4095, 4096, 4097, LARGEST};

/* In units of the type's alignment, so that complex elements also start halfway. */
static const size_t offsets[] = {0, 1, 3, 7, 13};

static const dpr_memory gpu_in_kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
static const dpr_memory gpu_out_kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_HOST};

enum { OUT_BYTES = 96, OUT_AT = 32, CANARY = 0xa5, KINDS = DPR_MEMORY_DEVICE + 1 };

typedef struct matrix_test {
    struct matrix_test *next;
    char name[64];
    const char *strategy;
    int gpu;
    dpr_op op;
    dpr_dtype dtype;
} matrix_test;

/* What one test works with. */
typedef struct bench {
    const matrix_test *test;
    dpr_ctx *ctx;
    unsigned char *data;       /* the elements as they must stay, in host memory */
    unsigned char *in[KINDS];  /* room for the largest array at the greatest offset, where the kind is used */
    unsigned char *out[KINDS]; /* OUT_BYTES */
    size_t runs;
    int refused[KINDS]; /* kinds of memory that the strategy takes no arrays in */
} bench;

static size_t alignment(dpr_dtype dtype) {
    return ref_is_complex(dtype) ? ref_size(dtype) / 2 : ref_size(dtype);
}

static size_t most_bytes(dpr_dtype dtype) {
    return LARGEST * ref_size(dtype) + offsets[LENGTH(offsets) - 1] * alignment(dtype);
}

static int bench_open(bench *b) {
    const matrix_test *test = b->test;
    const dpr_memory *in_kinds = test->gpu ? gpu_in_kinds : (dpr_memory[]){DPR_MEMORY_HOST};
    const dpr_memory *out_kinds = test->gpu ? gpu_out_kinds : in_kinds;
    b->data = malloc(most_bytes(test->dtype));
    int good = b->data != NULL;
    for (size_t i = 0; i < (test->gpu ? LENGTH(gpu_in_kinds) : 1); i++)
        if (!b->in[in_kinds[i]])
            good &= (b->in[in_kinds[i]] = gpu_alloc(in_kinds[i], most_bytes(test->dtype))) != NULL;
    for (size_t i = 0; i < (test->gpu ? LENGTH(gpu_out_kinds) : 1); i++)
        good &= (b->out[out_kinds[i]] = gpu_alloc(out_kinds[i], OUT_BYTES)) != NULL;
    if (!EXPECT_THAT(good, "no memory for the test: %s", gpu_error()))
        return 0;
    return EXPECT_STATUS(DPR_OK, dpr_ctx_create(test->gpu ? 0 : DPR_DEVICE_CPU, &b->ctx));
}

static void bench_close(bench *b) {
    dpr_ctx_destroy(b->ctx);
    for (int kind = 0; kind < KINDS; kind++) {
        if (b->in[kind])
            gpu_free((dpr_memory)kind, b->in[kind]);
        if (b->out[kind])
            gpu_free((dpr_memory)kind, b->out[kind]);
    }
    free(b->data);
}

typedef struct run {
    size_t count, offset;
    data_pattern pattern;
    dpr_nan nan;
    const void *init;
    dpr_memory in_kind, out_kind;
} run;

static const char *describe(const bench *b, const run *r) {
    static _Thread_local char text[256];
    snprintf(
        text, sizeof text, "%s %s %s, count %zu, offset %zu bytes, %s, NaN policy %d%s, in memory %d, out memory %d",
        b->test->strategy, dpr_op_name(b->test->op), dpr_dtype_name(b->test->dtype), r->count, r->offset,
        data_pattern_name(r->pattern), (int)r->nan, r->init ? ", with init" : "", (int)r->in_kind, (int)r->out_kind);
    return text;
}

/* Runs once and checks status, result and the bytes around it. */
static int check_run(bench *b, const run *r, const ref_state *expected) {
    unsigned char image[OUT_BYTES], canary[OUT_BYTES];
    char why[512];
    const dpr_op op = b->test->op;
    const dpr_dtype result = ref_result_dtype(op, b->test->dtype);
    const size_t size = ref_size(result), at = OUT_AT + b->runs++ % 2 * alignment(result);
    const int empty = r->count == 0 && (op == DPR_ARGMIN || op == DPR_ARGMAX);
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = b->test->strategy;
    options.nan = r->nan;
    options.init = r->init;

    memset(canary, CANARY, sizeof canary);
    gpu_copy(b->out[r->out_kind], canary, OUT_BYTES);
    const dpr_status status = dpr_reduce_ex(b->ctx, b->in[r->in_kind] + r->offset, b->out[r->out_kind] + at, r->count,
                                            b->test->dtype, op, &options);
    gpu_copy(image, b->out[r->out_kind], OUT_BYTES);
    if (!EXPECT_THAT(status == (empty ? DPR_ERR_EMPTY : DPR_OK), "%s\n  status %s: %s", describe(b, r),
                     dpr_status_name(status), dpr_last_error()))
        return 0;
    if (!empty) {
        if (!EXPECT_THAT(ref_check(expected, image + at, why, sizeof why), "%s\n  %s", describe(b, r), why))
            return 0;
        memset(image + at, CANARY, size);
    }
    return EXPECT_THAT(memcmp(image, canary, OUT_BYTES) == 0, "%s\n  wrote beside *out", describe(b, r));
}

static int check_unmodified(const bench *b, const run *r) {
    const size_t bytes = r->count * ref_size(b->test->dtype);
    unsigned char *copy = malloc(bytes + 1);
    if (!EXPECT_TRUE(copy != NULL))
        return 0;
    gpu_copy(copy, b->in[r->in_kind] + r->offset, bytes);
    const int same = memcmp(copy, b->data, bytes) == 0;
    free(copy);
    return EXPECT_THAT(same, "%s\n  modified the input", describe(b, r));
}

/* All NaN policies and initial values on data that is in place. */
static int check_policies(bench *b, run *r, ref_state expected[2][2], int policies, const void *init) {
    for (int nan = 0; nan < policies; nan++)
        for (int with_init = 0; with_init <= (init != NULL); with_init++) {
            r->nan = (dpr_nan)nan;
            r->init = with_init ? init : NULL;
            if (b->test->gpu)
                r->out_kind = gpu_out_kinds[b->runs % LENGTH(gpu_out_kinds)];
            if (!check_run(b, r, &expected[nan][with_init]))
                return 0;
        }
    return 1;
}

static int check_pattern(bench *b, data_pattern pattern, size_t count) {
    const dpr_op op = b->test->op;
    const dpr_dtype dtype = b->test->dtype;
    const int has_nan = ref_is_float(dtype) || ref_is_complex(dtype);
    const int policies = has_nan || pattern == DATA_RANDOM ? 2 : 1;
    unsigned char init[16];
    ref_state expected[2][2];
    data_fill(b->data, op, dtype, pattern, count);
    data_init(init, op, ref_result_dtype(op, dtype), pattern);
    for (int nan = 0; nan < policies; nan++) {
        ref_reduce(&expected[nan][0], op, dtype, (dpr_nan)nan, b->data, count);
        expected[nan][1] = expected[nan][0];
        if (op != DPR_ARGMIN && op != DPR_ARGMAX)
            ref_add_init(&expected[nan][1], init);
    }
    for (size_t i = 0; i < LENGTH(offsets); i++) {
        run r = {count,          offsets[i] * alignment(dtype), pattern, DPR_NAN_PROPAGATE, NULL, DPR_MEMORY_HOST,
                 DPR_MEMORY_HOST};
        if (b->test->gpu)
            r.in_kind = b->refused[gpu_in_kinds[i % LENGTH(gpu_in_kinds)]] ? DPR_MEMORY_DEVICE
                                                                           : gpu_in_kinds[i % LENGTH(gpu_in_kinds)];
        gpu_copy(b->in[r.in_kind] + r.offset, b->data, count * ref_size(dtype));
        if (!check_policies(b, &r, expected, policies, op == DPR_ARGMIN || op == DPR_ARGMAX ? NULL : init))
            return 0;
        if (!check_unmodified(b, &r))
            return 0;
    }
    return 1;
}

/* Whether the strategy says of itself that it cannot run the pair on an array there. */
static int is_refused(const matrix_test *test, dpr_memory memory) {
    for (size_t i = 0; test->gpu && i < gpu_strategy_count(); i++)
        if (strcmp(gpu_strategy(i), test->strategy) == 0)
            return !gpu_strategy_takes(i, test->op, test->dtype, memory);
    return 0;
}

/* Then a call that asks for it by name says so, and does nothing. */
static void check_refusal(const matrix_test *test) {
    unsigned char out[16] = {CANARY}, *in = gpu_alloc(DPR_MEMORY_DEVICE, 16);
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = test->strategy;
    ASSERT_TRUE(in != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_reduce_ex(ctx, in, out, 1, test->dtype, test->op, &options));
    EXPECT_EQ_I64(CANARY, out[0]);
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, in);
}

static void matrix_body(void *context) {
    bench b = {context, NULL, NULL, {0}, {0}, 0, {0}};
    const matrix_test *test = context;
    if (test->gpu && gpu_unavailable())
        SKIP(gpu_unavailable());
    if (is_refused(test, DPR_MEMORY_DEVICE)) {
        check_refusal(test);
        SKIP(dpr_last_error());
    }
    for (int kind = DPR_MEMORY_PINNED; kind < KINDS; kind++)
        b.refused[kind] = is_refused(test, (dpr_memory)kind);
    EXPECT_EQ_I64(ref_result_dtype(test->op, test->dtype), dpr_result_dtype(test->op, test->dtype));
    if (bench_open(&b))
        for (size_t s = 0; s < LENGTH(sizes) && sizes[s] <= largest() && !test_failed(); s++)
            for (int pattern = 0; pattern < DATA_PATTERNS && !test_failed(); pattern++)
                if (data_pattern_applies((data_pattern)pattern, test->dtype))
                    check_pattern(&b, (data_pattern)pattern, sizes[s]);
    bench_close(&b);
}

static void add_pair(const char *suite, const char *strategy, int gpu, dpr_op op, dpr_dtype dtype) {
    static matrix_test *all; /* they live as long as the program */
    matrix_test *test = calloc(1, sizeof *test);
    if (!test)
        return;
    *test = (matrix_test){all, "", strategy, gpu, op, dtype};
    all = test;
    snprintf(test->name, sizeof test->name, "%s_%s_%s", strategy, dpr_op_name(op), dpr_dtype_name(dtype));
    for (char *c = test->name; *c; c++)
        if (*c == '.')
            *c = '_';
    test_add(&(test_case){suite, test->name, __FILE__, __LINE__, matrix_body, test, 0, NULL, NULL});
}

void matrix_add(const char *suite, const char *strategy, int gpu) {
    for (int op = 0; dpr_op_name((dpr_op)op); op++)
        for (int dtype = 0; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            if (ref_supported((dpr_op)op, (dpr_dtype)dtype))
                add_pair(suite, strategy, gpu, (dpr_op)op, (dpr_dtype)dtype);
}
