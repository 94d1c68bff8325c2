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

/* An array, and what must come of it. */
typedef struct sample {
    unsigned char *data; /* the elements, in host memory, pinned for a GPU; NULL until a test asks for them */
    unsigned char init[16];
    ref_state expected[2][2]; /* by NaN policy, and whether there is an initial value */
} sample;

/* What the tests of one operation and type have in common. Most of their time would go to finding the references of
 * large arrays again for every strategy, so the first test leaves them to those that follow. */
typedef struct pair {
    int open, gpu;
    dpr_op op;
    dpr_dtype dtype;
    unsigned char *in[KINDS];  /* room for the largest array at the greatest offset, where the kind is used */
    unsigned char *out[KINDS]; /* OUT_BYTES */
    unsigned char *back;       /* for a GPU: pinned memory for elements to look at */
    sample of[LENGTH(sizes)][DATA_PATTERNS];
} pair;

/* What one test works with. */
typedef struct bench {
    const matrix_test *test;
    pair *pair;
    dpr_ctx *ctx;
    size_t runs;
    int refused[KINDS]; /* kinds of memory that the strategy takes no arrays in */
} bench;

static size_t alignment(dpr_dtype dtype) {
    return ref_is_complex(dtype) ? ref_size(dtype) / 2 : ref_size(dtype);
}

static size_t most_bytes(dpr_dtype dtype) {
    return LARGEST * ref_size(dtype) + offsets[LENGTH(offsets) - 1] * alignment(dtype);
}

/* ---- What is common to a pair ---- */

static void pair_close(pair *p) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (p->in[kind])
            gpu_free((dpr_memory)kind, p->in[kind]);
        if (p->out[kind])
            gpu_free((dpr_memory)kind, p->out[kind]);
    }
    if (p->back)
        gpu_free(DPR_MEMORY_PINNED, p->back);
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (int pattern = 0; pattern < DATA_PATTERNS; pattern++)
            if (p->of[s][pattern].data)
                gpu_free(p->gpu ? DPR_MEMORY_PINNED : DPR_MEMORY_HOST, p->of[s][pattern].data);
    memset(p, 0, sizeof *p);
}

static int pair_alloc(pair *p, size_t bytes) {
    const dpr_memory host[] = {DPR_MEMORY_HOST};
    const dpr_memory *in_kinds = p->gpu ? gpu_in_kinds : host, *out_kinds = p->gpu ? gpu_out_kinds : host;
    int good = 1;
    for (size_t i = 0; i < (p->gpu ? LENGTH(gpu_in_kinds) : LENGTH(host)); i++)
        if (!p->in[in_kinds[i]])
            good &= (p->in[in_kinds[i]] = gpu_alloc(in_kinds[i], bytes)) != NULL;
    for (size_t i = 0; i < (p->gpu ? LENGTH(gpu_out_kinds) : LENGTH(host)); i++)
        good &= (p->out[out_kinds[i]] = gpu_alloc(out_kinds[i], OUT_BYTES)) != NULL;
    if (p->gpu)
        good &= (p->back = gpu_alloc(DPR_MEMORY_PINNED, bytes)) != NULL;
    return good;
}

/* The test's pair, which stays until a test of another one asks. NULL if there is no memory. */
static pair *pair_of(const matrix_test *test) {
    static pair last;
    if (last.open && last.gpu == test->gpu && last.op == test->op && last.dtype == test->dtype)
        return &last;
    pair_close(&last);
    last.gpu = test->gpu;
    last.op = test->op;
    last.dtype = test->dtype;
    last.open = pair_alloc(&last, most_bytes(test->dtype));
    return EXPECT_THAT(last.open, "no memory for the test: %s", gpu_error()) ? &last : NULL;
}

/* Where there is no NaN the policies make no difference, and one reference is enough. */
static void find_expected(const pair *p, sample *s, size_t count) {
    ref_reduce(&s->expected[DPR_NAN_IGNORE][0], p->op, p->dtype, DPR_NAN_IGNORE, s->data, count);
    if (s->expected[DPR_NAN_IGNORE][0].present < count) {
        ref_reduce(&s->expected[DPR_NAN_PROPAGATE][0], p->op, p->dtype, DPR_NAN_PROPAGATE, s->data, count);
    } else {
        s->expected[DPR_NAN_PROPAGATE][0] = s->expected[DPR_NAN_IGNORE][0];
        s->expected[DPR_NAN_PROPAGATE][0].nan = DPR_NAN_PROPAGATE;
    }
    for (int nan = 0; nan < 2; nan++) {
        s->expected[nan][1] = s->expected[nan][0];
        if (p->op != DPR_ARGMIN && p->op != DPR_ARGMAX)
            ref_add_init(&s->expected[nan][1], s->init);
    }
}

static const sample *sample_of(pair *p, data_pattern pattern, size_t size_index) {
    sample *s = &p->of[size_index][pattern];
    const size_t count = sizes[size_index];
    if (s->data)
        return s;
    s->data = gpu_alloc(p->gpu ? DPR_MEMORY_PINNED : DPR_MEMORY_HOST, count * ref_size(p->dtype));
    if (!EXPECT_THAT(s->data != NULL, "no memory for the test: %s", gpu_error()))
        return NULL;
    data_fill(s->data, p->op, p->dtype, pattern, count);
    data_init(s->init, p->op, ref_result_dtype(p->op, p->dtype), pattern);
    find_expected(p, s, count);
    return s;
}

/* ---- Runs ---- */

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

/* Between host memory and memory of a kind, which is idle: without the driver where that can be. */
static void move(dpr_memory kind, void *to, const void *from, size_t size) {
    if (kind == DPR_MEMORY_HOST || kind == DPR_MEMORY_PINNED)
        memcpy(to, from, size);
    else
        EXPECT_THAT(gpu_copy(to, from, size), "%s", gpu_error());
}

/* Runs once and checks status, result and the bytes around it. */
static int check_run(bench *b, const run *r, const ref_state *expected) {
    unsigned char *out = b->pair->out[r->out_kind];
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
    move(r->out_kind, out, canary, OUT_BYTES);
    const dpr_status status =
        dpr_reduce_ex(b->ctx, b->pair->in[r->in_kind] + r->offset, out + at, r->count, b->test->dtype, op, &options);
    move(r->out_kind, image, out, OUT_BYTES);
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

/* Puts the sample's elements where the run reads them. */
static void place(const bench *b, const run *r, const sample *s) {
    const size_t bytes = r->count * ref_size(b->test->dtype);
    unsigned char *to = b->pair->in[r->in_kind] + r->offset;
    if (b->test->gpu)
        EXPECT_THAT(gpu_copy(to, s->data, bytes), "%s", gpu_error());
    else
        memcpy(to, s->data, bytes);
}

static int check_unmodified(const bench *b, const run *r, const sample *s) {
    const size_t bytes = r->count * ref_size(b->test->dtype);
    const unsigned char *elements = b->pair->in[r->in_kind] + r->offset;
    if (b->test->gpu) {
        if (!EXPECT_THAT(gpu_copy(b->pair->back, elements, bytes), "%s", gpu_error()))
            return 0;
        elements = b->pair->back;
    }
    return EXPECT_THAT(memcmp(elements, s->data, bytes) == 0, "%s\n  modified the input", describe(b, r));
}

/* All NaN policies and initial values on data that is in place. */
static int check_policies(bench *b, run *r, const sample *s, int policies, int inits) {
    for (int nan = 0; nan < policies; nan++)
        for (int with_init = 0; with_init < inits; with_init++) {
            r->nan = (dpr_nan)nan;
            r->init = with_init ? s->init : NULL;
            if (b->test->gpu)
                r->out_kind = gpu_out_kinds[b->runs % LENGTH(gpu_out_kinds)];
            if (!check_run(b, r, &s->expected[nan][with_init]))
                return 0;
        }
    return 1;
}

static int check_pattern(bench *b, data_pattern pattern, size_t size_index) {
    const dpr_op op = b->test->op;
    const dpr_dtype dtype = b->test->dtype;
    const size_t count = sizes[size_index];
    const int has_nan = ref_is_float(dtype) || ref_is_complex(dtype);
    const int policies = has_nan || pattern == DATA_RANDOM ? 2 : 1,
              inits = op == DPR_ARGMIN || op == DPR_ARGMAX ? 1 : 2;
    const sample *s = sample_of(b->pair, pattern, size_index);
    if (!s)
        return 0;
    for (size_t i = 0; i < LENGTH(offsets); i++) {
        run r = {count,          offsets[i] * alignment(dtype), pattern, DPR_NAN_PROPAGATE, NULL, DPR_MEMORY_HOST,
                 DPR_MEMORY_HOST};
        if (b->test->gpu)
            r.in_kind = b->refused[gpu_in_kinds[i % LENGTH(gpu_in_kinds)]] ? DPR_MEMORY_DEVICE
                                                                           : gpu_in_kinds[i % LENGTH(gpu_in_kinds)];
        place(b, &r, s);
        if (!check_policies(b, &r, s, policies, inits) || !check_unmodified(b, &r, s))
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
    const matrix_test *test = context;
    bench b = {test, NULL, NULL, 0, {0}};
    if (test->gpu && gpu_unavailable())
        SKIP(gpu_unavailable());
    if (is_refused(test, DPR_MEMORY_DEVICE)) {
        check_refusal(test);
        SKIP(dpr_last_error());
    }
    for (int kind = DPR_MEMORY_PINNED; kind < KINDS; kind++)
        b.refused[kind] = is_refused(test, (dpr_memory)kind);
    EXPECT_EQ_I64(ref_result_dtype(test->op, test->dtype), dpr_result_dtype(test->op, test->dtype));
    b.pair = pair_of(test);
    if (b.pair && EXPECT_STATUS(DPR_OK, dpr_ctx_create(test->gpu ? 0 : DPR_DEVICE_CPU, &b.ctx)))
        for (size_t s = 0; s < LENGTH(sizes) && sizes[s] <= largest() && !test_failed(); s++)
            for (int pattern = 0; pattern < DATA_PATTERNS && !test_failed(); pattern++)
                if (data_pattern_applies((data_pattern)pattern, test->dtype))
                    check_pattern(&b, (data_pattern)pattern, s);
    dpr_ctx_destroy(b.ctx);
}

static void add_test(const char *suite, const char *strategy, int gpu, dpr_op op, dpr_dtype dtype) {
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

void matrix_add(const char *suite, const char *const *strategies, size_t count, int gpu) {
    for (int op = 0; dpr_op_name((dpr_op)op); op++)
        for (int dtype = 0; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            for (size_t i = 0; ref_supported((dpr_op)op, (dpr_dtype)dtype) && i < count; i++)
                add_test(suite, strategies[i], gpu, (dpr_op)op, (dpr_dtype)dtype);
}
