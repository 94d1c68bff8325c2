#include "matrix.h"

#include <math.h>
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
enum { LARGEST = 65539, LARGEST_SUM = 262145 };
#else
enum { LARGEST = 1000003, LARGEST_SUM = 4000037 };
#endif

/* The last ones are for the patterns of sums, and for sums alone. */
enum { USUAL_SIZES = 12 };
static const size_t sizes[] = {0,    1,    2,    3,       31,    32,     33,     1000,
                               4095, 4096, 4097, LARGEST, 65537, 131073, 135174, LARGEST_SUM};

/* In units of the type's alignment, so that complex elements also start halfway. */
static const size_t offsets[] = {0, 1, 3, 7, 13};

static const dpr_memory gpu_in_kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED};
static const dpr_memory gpu_out_kinds[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_HOST};

/* A run has OUT_BYTES for its result, which begins OUT_AT or a little later. */
enum { OUT_BYTES = 96, OUT_AT = 32, CANARY = 0xa5, KINDS = DPR_MEMORY_DEVICE + 1 };

/* Calls in a row in a stream, so that kernels are launched, and read ahead, while those before them run. */
enum { CHAIN = 4 };

typedef struct matrix_test {
    struct matrix_test *next;
    char name[64];
    const char *strategy;
    int gpu;
    dpr_op op;
    dpr_dtype dtype;
    matrix_takes takes; /* NULL but for the test of the pairs that it leaves out */
} matrix_test;

/* An array, and what must come of it. */
typedef struct sample {
    unsigned char *data; /* the elements, in host memory, pinned for a GPU; NULL until a test asks for them */
    unsigned char init[16];
    ref_state expected[2][2]; /* by NaN policy and form */
} sample;

/* The second form of a reduction has an initial value or, if it is a variance, the divisor of a sample. */
typedef enum form { PLAIN, WITH_INIT, WITH_SAMPLE } form;

static form second_form(dpr_op op) {
    return op == DPR_VAR ? WITH_SAMPLE : ref_takes_init(op) ? WITH_INIT : PLAIN;
}

/* What the tests of one operation and type have in common. Most of their time would go to finding the references of
 * large arrays again for every strategy, so the first test leaves them to those that follow. */
typedef struct pair {
    int open, gpu;
    dpr_op op;
    dpr_dtype dtype;
    unsigned char *in[KINDS];  /* room for the largest array at the greatest offset, where the kind is used */
    unsigned char *out[KINDS]; /* OUT_BYTES for each call of a chain */
    unsigned char *back;       /* for a GPU: pinned memory for elements to look at */
    sample of[LENGTH(sizes)][DATA_PATTERNS];
} pair;

/* What one test works with. */
typedef struct bench {
    const matrix_test *test;
    pair *pair;
    dpr_ctx *ctx;
    dpr_stream stream;   /* of chains; NULL on the CPU */
    size_t runs, arrays; /* so far */
    int refused[KINDS];  /* kinds of memory that the strategy takes no arrays in */
} bench;

static size_t alignment(dpr_dtype dtype) {
    return ref_is_complex(dtype) ? ref_size(dtype) / 2 : ref_size(dtype);
}

/* Whether the pair is a sum that rounds. */
static int is_rounded_sum(dpr_op op, dpr_dtype dtype) {
    return op == DPR_SUM && data_pattern_applies(DATA_POWERS, op, dtype);
}

/* Whether there are arrays of the pattern of this length. */
static int is_wanted(dpr_op op, dpr_dtype dtype, data_pattern pattern, size_t size_index) {
    const int takes_all_sizes = is_rounded_sum(op, dtype) && data_pattern_is_of_sums(pattern);
    /* The references of these operations take most of the time of all, so one pattern in four has the largest array. */
    const int leaves_largest = op >= DPR_SUMSQ && op != DPR_MINMAX && pattern % 4 != 0;
    if (sizes[size_index] == LARGEST && leaves_largest)
        return 0;
    return data_pattern_applies(pattern, op, dtype) && (size_index < USUAL_SIZES || takes_all_sizes);
}

static size_t most_bytes(dpr_op op, dpr_dtype dtype) {
    const size_t most = is_rounded_sum(op, dtype) ? LARGEST_SUM : LARGEST;
    return most * ref_size(dtype) + offsets[LENGTH(offsets) - 1] * alignment(dtype);
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
        good &= (p->out[out_kinds[i]] = gpu_alloc(out_kinds[i], (size_t)CHAIN * OUT_BYTES)) != NULL;
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
    last.open = pair_alloc(&last, most_bytes(test->op, test->dtype));
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
        s->expected[nan][1].sample = second_form(p->op) == WITH_SAMPLE;
        if (second_form(p->op) == WITH_INIT)
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
    int sample; /* a variance with the divisor of a sample */
    dpr_memory in_kind, out_kind;
    int chained; /* one of several in a stream */
} run;

static const char *describe(const bench *b, const run *r) {
    static _Thread_local char text[256];
    snprintf(text, sizeof text,
             "%s %s %s, count %zu, offset %zu bytes, %s, NaN policy %d%s%s, in memory %d, out memory %d%s",
             b->test->strategy, dpr_op_name(b->test->op), dpr_dtype_name(b->test->dtype), r->count, r->offset,
             data_pattern_name(r->pattern), (int)r->nan, r->init ? ", with init" : "", r->sample ? ", of a sample" : "",
             (int)r->in_kind, (int)r->out_kind, r->chained ? ", in a stream" : "");
    return text;
}

/* Between host memory and memory of a kind, which is idle: without the driver where that can be. */
static void move(dpr_memory kind, void *to, const void *from, size_t size) {
    if (kind == DPR_MEMORY_HOST || kind == DPR_MEMORY_PINNED)
        memcpy(to, from, size);
    else
        EXPECT_THAT(gpu_copy(to, from, size), "%s", gpu_error());
}

static int is_of_nothing(const bench *b, const run *r) {
    return r->count == 0 && (b->test->op == DPR_ARGMIN || b->test->op == DPR_ARGMAX);
}

static dpr_options options_of(const bench *b, const run *r) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = b->test->strategy;
    options.nan = r->nan;
    options.init = r->init;
    options.divisor = r->sample ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
    return options;
}

/* Where in its OUT_BYTES run number `number` has its result: not always on the boundary of a vector. */
static size_t place_of_result(const bench *b, size_t number) {
    return OUT_AT + number / LENGTH(gpu_out_kinds) % 2 * alignment(ref_result_dtype(b->test->op, b->test->dtype));
}

static int check_status(const bench *b, const run *r, dpr_status status) {
    return EXPECT_THAT(status == (is_of_nothing(b, r) ? DPR_ERR_EMPTY : DPR_OK), "%s\n  status %s: %s", describe(b, r),
                       dpr_status_name(status), dpr_last_error());
}

/* Checks what a run has left in its OUT_BYTES, of which `image` is a copy: the result, which begins at `at`, and the
 * bytes around it. */
static int check_image(const bench *b, const run *r, unsigned char *image, size_t at, const ref_state *expected) {
    unsigned char canary[OUT_BYTES];
    char why[512];
    memset(canary, CANARY, sizeof canary);
    if (!is_of_nothing(b, r)) {
        if (!EXPECT_THAT(ref_check(expected, image + at, why, sizeof why), "%s\n  %s", describe(b, r), why))
            return 0;
        memset(image + at, CANARY, ref_result_size(b->test->op, b->test->dtype));
    }
    return EXPECT_THAT(memcmp(image, canary, OUT_BYTES) == 0, "%s\n  wrote beside *out", describe(b, r));
}

/* Runs once and checks status, result and the bytes around it. */
static int check_blocking(bench *b, const run *r, const ref_state *expected) {
    unsigned char *out = b->pair->out[r->out_kind], image[OUT_BYTES];
    const size_t at = place_of_result(b, b->runs++);
    const dpr_options options = options_of(b, r);
    memset(image, CANARY, sizeof image);
    move(r->out_kind, out, image, OUT_BYTES);
    const dpr_status status = dpr_reduce_ex(b->ctx, b->pair->in[r->in_kind] + r->offset, out + at, r->count,
                                            b->test->dtype, b->test->op, &options);
    move(r->out_kind, image, out, OUT_BYTES);
    return check_status(b, r, status) && check_image(b, r, image, at, expected);
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

/* The NaN policies and forms that there are to run with on data that is in place. */
typedef struct variants {
    int policies, forms;
    form second;
} variants;

static variants variants_of(const matrix_test *test, data_pattern pattern) {
    const int has_nan = ref_is_float(test->dtype) || ref_is_complex(test->dtype);
    const form second = second_form(test->op);
    /* Kernels of SUM that divide do not know how many elements NaNs leave. */
    const int divides = test->gpu && test->op == DPR_MEAN && has_nan && strcmp(test->strategy, "flat.fused") != 0;
    const int policies = !divides && (has_nan || pattern == DATA_RANDOM) ? 2 : 1;
    return (variants){policies, second == PLAIN ? 1 : 2, second};
}

/* Makes the run one of variant i, each in turn. What must come of it. */
static const ref_state *take_variant(run *r, const sample *s, variants v, int i) {
    const int at = i % v.forms, nan = i / v.forms % v.policies;
    r->nan = (dpr_nan)nan;
    r->init = at && v.second == WITH_INIT ? s->init : NULL;
    r->sample = at && v.second == WITH_SAMPLE;
    return &s->expected[nan][at];
}

/* All variants, one after the other. */
static int check_each(bench *b, run *r, const sample *s, variants v) {
    for (int i = 0; i < v.policies * v.forms; i++) {
        const ref_state *expected = take_variant(r, s, v, i);
        if (b->test->gpu)
            r->out_kind = gpu_out_kinds[b->runs % LENGTH(gpu_out_kinds)];
        if (!check_blocking(b, r, expected))
            return 0;
    }
    return 1;
}

/* Enqueues the calls of a chain, each with OUT_BYTES of its own at `out`. */
static int enqueue_chain(const bench *b, run *r, const sample *s, variants v, unsigned char *out) {
    for (int i = 0; i < CHAIN; i++) {
        (void)take_variant(r, s, v, i);
        const dpr_options options = options_of(b, r);
        unsigned char *to = out + i * OUT_BYTES + place_of_result(b, b->runs + (size_t)i);
        if (!check_status(b, r,
                          dpr_reduce_async(b->ctx, b->pair->in[r->in_kind] + r->offset, to, r->count, b->test->dtype,
                                           b->test->op, &options, b->stream)))
            return 0;
    }
    return 1;
}

/* All variants, some of them several times, in a row in the stream. It counts as one run, so that the variants change
 * places with regard to the kinds of memory that blocking runs write to. */
static int check_chain(bench *b, run *r, const sample *s, variants v) {
    const size_t bytes = (size_t)CHAIN * OUT_BYTES;
    unsigned char *out = b->pair->out[DPR_MEMORY_DEVICE], *images = b->pair->out[DPR_MEMORY_PINNED];
    r->out_kind = DPR_MEMORY_DEVICE;
    r->chained = 1;
    int good =
        EXPECT_THAT(gpu_fill_async(out, CANARY, bytes, b->stream), "%s", gpu_error()) && enqueue_chain(b, r, s, v, out);
    good &= EXPECT_THAT(gpu_stream_wait(b->stream) && gpu_copy(images, out, bytes), "%s", gpu_error());
    for (int i = 0; i < CHAIN && good; i++) {
        const ref_state *expected = take_variant(r, s, v, i);
        good = check_image(b, r, images + i * OUT_BYTES, place_of_result(b, b->runs + (size_t)i), expected);
    }
    b->runs++;
    return good;
}

/* Where arrays at the offset of this number lie. */
static dpr_memory in_kind_of(const bench *b, size_t offset_index) {
    const dpr_memory kind = gpu_in_kinds[offset_index % LENGTH(gpu_in_kinds)];
    if (!b->test->gpu)
        return DPR_MEMORY_HOST;
    return b->refused[kind] ? DPR_MEMORY_DEVICE : kind;
}

/* On a GPU every other array is reduced by a chain. The number of offsets is odd, so from one pattern to the next all
 * of them change from one way to the other. */
static int check_pattern(bench *b, data_pattern pattern, size_t size_index) {
    const variants v = variants_of(b->test, pattern);
    const sample *s = sample_of(b->pair, pattern, size_index);
    if (!s)
        return 0;
    for (size_t i = 0; i < LENGTH(offsets); i++) {
        run r = {.count = sizes[size_index],
                 .offset = offsets[i] * alignment(b->test->dtype),
                 .pattern = pattern,
                 .in_kind = in_kind_of(b, i),
                 .out_kind = DPR_MEMORY_HOST};
        const int chained = b->test->gpu && b->arrays++ % 2;
        place(b, &r, s);
        if (!(chained ? check_chain : check_each)(b, &r, s, v) || !check_unmodified(b, &r, s))
            return 0;
    }
    return 1;
}

/* ---- What a sum may lose ---- */

/* An array for a sum that is to be 1. */
typedef struct trap {
    run r;
    unsigned char *elements; /* in host memory */
    size_t size;             /* of one */
} trap;

static void set_element(const bench *b, const trap *t, size_t index, const unsigned char *element) {
    unsigned char *to = b->pair->in[t->r.in_kind] + t->r.offset + index * t->size;
    memcpy(t->elements + index * t->size, element, t->size);
    move(t->r.in_kind, to, element, t->size);
}

static int is_one(const bench *b, const trap *t, int *good) {
    unsigned char *out = b->pair->out[DPR_MEMORY_HOST] + OUT_AT;
    const unsigned char *in = b->pair->in[t->r.in_kind] + t->r.offset;
    const dpr_options options = options_of(b, &t->r);
    *good = check_status(b, &t->r, dpr_reduce_ex(b->ctx, in, out, t->r.count, b->test->dtype, b->test->op, &options));
    return *good && ref_value(ref_result_dtype(b->test->op, b->test->dtype), out, 0) == 1;
}

/* Finds out how often the strategy rounds on the way from the element at `at`, which is 1, to the result. Makes other
 * elements half a unit in the last place of 1, one after another, and makes those zero again that change the result.
 * The strategy loses each of the others in an addition of its own to the partial sum that has the 1, so their number is
 * a number of roundings. Nobody needs to know in which order the strategy adds. */
static void spring(bench *b, const trap *t, size_t at) {
    enum { TRIES = 200 };
    const double promised = log2((double)t->r.count) + 8;
    unsigned char first[2 * 16], zero[16] = {0};
    uint64_t state = t->r.count + at;
    size_t lost = 0;
    int good = 1;
    data_fill(first, b->test->op, b->test->dtype, DATA_POWERS, 2);
    move(t->r.in_kind, b->pair->in[t->r.in_kind] + t->r.offset, t->elements, t->r.count * t->size);
    set_element(b, t, at, first);
    for (size_t i = 0; i < TRIES && good; i++) {
        const size_t index = (i < 32 ? at ^ (size_t)1 << i : (size_t)data_next(&state)) % t->r.count;
        if (memcmp(t->elements + index * t->size, zero, t->size) != 0)
            continue;
        set_element(b, t, index, first + t->size);
        if (is_one(b, t, &good))
            lost++;
        else
            set_element(b, t, index, zero);
    }
    EXPECT_THAT((double)lost <= promised, "%s\n  rounds %zu times, beginning with element %zu", describe(b, &t->r),
                lost, at);
}

static void check_losses(bench *b) {
    static const size_t counts[] = {5, 300, 4097, 65537, 135174};
    const dpr_memory in_kind = in_kind_of(b, 0);
    for (size_t i = 0; i < LENGTH(counts) && counts[i] <= test_largest(); i++) {
        for (size_t at = 0; at < counts[i] && !test_failed(); at += counts[i] / 2) {
            trap t = {
                .r = {.count = counts[i], .pattern = DATA_POWERS, .in_kind = in_kind, .out_kind = DPR_MEMORY_HOST},
                .elements = calloc(counts[i], ref_size(b->test->dtype)),
                .size = ref_size(b->test->dtype)};
            if (EXPECT_THAT(t.elements != NULL, "no memory for the test"))
                spring(b, &t, at);
            free(t.elements);
        }
    }
}

/* Whether the strategy says of itself that it cannot run the pair on an array there. */
static int is_refused(const matrix_test *test, dpr_memory memory) {
    for (size_t i = 0; test->gpu && i < gpu_strategy_count(); i++)
        if (strcmp(gpu_strategy(i), test->strategy) == 0)
            return !gpu_strategy_takes(i, test->op, test->dtype, memory, 0);
    return 0;
}

/* Whether it is one that the strategy is to refuse in this test: its own, or one of the others. */
static int is_to_be_refused(const matrix_test *test, dpr_op op, dpr_dtype dtype) {
    return test->takes ? !test->takes(test->strategy, op, dtype) : op == test->op && dtype == test->dtype;
}

static void check_refusal(const matrix_test *test, dpr_ctx *ctx, const void *in, dpr_op op, dpr_dtype dtype) {
    unsigned char out[16] = {CANARY};
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = test->strategy;
    const dpr_status status = dpr_reduce_ex(ctx, in, out, 1, dtype, op, &options);
    EXPECT_THAT(status == DPR_ERR_STRATEGY_UNABLE && out[0] == CANARY, "%s of %s by %s: status %s%s", dpr_op_name(op),
                dpr_dtype_name(dtype), test->strategy, dpr_status_name(status), out[0] == CANARY ? "" : ", wrote *out");
}

/* Calls that ask for the strategy by name say that it cannot, and do nothing. */
static void check_refusals(const matrix_test *test) {
    void *in = gpu_alloc(DPR_MEMORY_DEVICE, 16);
    dpr_ctx *ctx = NULL;
    ASSERT_TRUE(in != NULL);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &ctx));
    for (int op = DPR_SUM; dpr_op_name((dpr_op)op); op++)
        for (int dtype = DPR_BOOL; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            if (ref_supported((dpr_op)op, (dpr_dtype)dtype) && is_to_be_refused(test, (dpr_op)op, (dpr_dtype)dtype))
                check_refusal(test, ctx, in, (dpr_op)op, (dpr_dtype)dtype);
    dpr_ctx_destroy(ctx);
    gpu_free(DPR_MEMORY_DEVICE, in);
}

static int bench_open(bench *b) {
    const int gpu = b->test->gpu;
    for (int kind = DPR_MEMORY_PINNED; kind < KINDS; kind++)
        b->refused[kind] = is_refused(b->test, (dpr_memory)kind);
    b->pair = pair_of(b->test);
    if (!b->pair || !EXPECT_STATUS(DPR_OK, dpr_ctx_create(gpu ? 0 : DPR_DEVICE_CPU, &b->ctx)))
        return 0;
    if (gpu)
        b->stream = gpu_stream_create();
    return EXPECT_THAT(!gpu || b->stream, "%s", gpu_error());
}

static void bench_close(bench *b) {
    dpr_ctx_destroy(b->ctx);
    if (b->stream)
        EXPECT_THAT(gpu_stream_destroy(b->stream), "%s", gpu_error());
}

static void matrix_body(void *context) {
    const matrix_test *test = context;
    bench b = {.test = test};
    if (test->gpu && gpu_unavailable())
        SKIP(gpu_unavailable());
    if (is_refused(test, DPR_MEMORY_DEVICE)) {
        check_refusals(test);
        SKIP(dpr_last_error());
    }
    EXPECT_EQ_I64(ref_result_dtype(test->op, test->dtype), dpr_result_dtype(test->op, test->dtype));
    EXPECT_EQ_U64(ref_result_values(test->op), dpr_result_values(test->op));
    if (bench_open(&b))
        for (size_t s = 0; s < LENGTH(sizes) && sizes[s] <= test_largest() && !test_failed(); s++)
            for (int pattern = 0; pattern < DATA_PATTERNS && !test_failed(); pattern++)
                if (is_wanted(test->op, test->dtype, (data_pattern)pattern, s))
                    check_pattern(&b, (data_pattern)pattern, s);
    if (!test_failed() && is_rounded_sum(test->op, test->dtype) && test->dtype != DPR_F64 && test->dtype != DPR_C128)
        check_losses(&b);
    bench_close(&b);
}

static void others_body(void *context) {
    NEED_GPU();
    check_refusals(context);
}

/* Adds the test, of what its name tells beside the strategy. */
static void add_test(const char *suite, const matrix_test *content, const char *what, void (*body)(void *)) {
    static matrix_test *all; /* they live as long as the program */
    matrix_test *test = malloc(sizeof *test);
    if (!test)
        return;
    *test = *content;
    test->next = all;
    all = test;
    snprintf(test->name, sizeof test->name, "%s_%s", test->strategy, what);
    for (char *c = test->name; *c; c++)
        if (*c == '.')
            *c = '_';
    test_add(&(test_case){suite, test->name, __FILE__, __LINE__, body, test, 0, NULL, NULL});
}

static void add_pair(const char *suite, const char *strategy, int gpu, dpr_op op, dpr_dtype dtype) {
    char what[32];
    snprintf(what, sizeof what, "%s_%s", dpr_op_name(op), dpr_dtype_name(dtype));
    add_test(suite, &(matrix_test){.strategy = strategy, .gpu = gpu, .op = op, .dtype = dtype}, what, matrix_body);
}

static int leaves_out_some(const char *strategy, matrix_takes takes) {
    for (int op = DPR_SUM; dpr_op_name((dpr_op)op); op++)
        for (int dtype = DPR_BOOL; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            if (ref_supported((dpr_op)op, (dpr_dtype)dtype) && !takes(strategy, (dpr_op)op, (dpr_dtype)dtype))
                return 1;
    return 0;
}

void matrix_add(const char *suite, const char *const *strategies, size_t count, int gpu, matrix_takes takes) {
    for (int op = DPR_SUM; dpr_op_name((dpr_op)op); op++)
        for (int dtype = DPR_BOOL; dpr_dtype_name((dpr_dtype)dtype); dtype++)
            for (size_t i = 0; ref_supported((dpr_op)op, (dpr_dtype)dtype) && i < count; i++)
                if (!takes || takes(strategies[i], (dpr_op)op, (dpr_dtype)dtype))
                    add_pair(suite, strategies[i], gpu, (dpr_op)op, (dpr_dtype)dtype);
    for (size_t i = 0; takes && i < count; i++)
        if (leaves_out_some(strategies[i], takes))
            add_test(suite, &(matrix_test){.strategy = strategies[i], .gpu = gpu, .takes = takes}, "refuses_others",
                     others_body);
}
