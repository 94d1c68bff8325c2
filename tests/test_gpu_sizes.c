/* Lengths at which a launch changes its shape or an array ends a tile, and those beside them, on every GPU strategy.
 * The pairs are those whose threads have two, four and eight vectors in flight. All arrays of a test begin in one place
 * of device memory, and it waits once for all runs of a strategy, so they also overlap as much as they may. */
#include <stdlib.h>
#include <string.h>

#include "cycle.h"
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "support.h"

enum { VECTOR_BYTES = 16, DENSE = 4200, MOST_LENGTHS = 8192 };
enum { OUT_BYTES = 8, UNTOUCHED = 0xee, FRONT_BYTES = 256 };

typedef struct world {
    dpr_ctx *ctx;
    dpr_stream stream;
    dpr_dtype dtype;
    size_t size;       /* bytes of an element */
    unsigned char *in; /* device memory, aligned; FRONT_BYTES before it and FRONT_BYTES past the longest are elements */
    size_t bytes;      /* of all of them */
    unsigned char *out;  /* device memory: OUT_BYTES for each length */
    unsigned char *got;  /* the same in host memory */
    size_t *lengths;     /* in elements, each once, rising */
    size_t length_count; /* at most MOST_LENGTHS */
} world;

/* ---- Lengths ---- */

static void add_length(world *w, size_t length) {
    if (length > test_largest())
        return;
    if (EXPECT_THAT(w->length_count < MOST_LENGTHS, "more than %d lengths", MOST_LENGTHS))
        w->lengths[w->length_count++] = length;
}

/* A number of vectors, and one more: a thread has then one vector more than the others. */
static void add_around(world *w, size_t vectors) {
    const size_t each = VECTOR_BYTES / w->size, n = vectors * each;
    for (size_t i = 0; i < 5; i++)
        add_length(w, n + i - 2);
    add_length(w, n + each - 1);
    add_length(w, n + each);
}

static int by_value(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Grids of launch.h are of 32 to 1024 threads on one SM and of 256 to 1024 on more of them, and their threads have up
 * to 8 vectors in flight; a cluster of 16 blocks and a stage of the copy engine are multiples of these too, of which
 * there are eight. The longest wrap around the stages three times. */
static void find_lengths(world *w, const dpr_caps *caps) {
    const size_t few[] = {32, 64, 128}, threads[] = {256, 512, 1024}, tiles[] = {1, 2, 3, 4, 7, 8, 16, 24};
    const size_t sms = (size_t)caps->gpu.sm_count, blocks[] = {1, 2, 3, 16, 64, sms - 1, sms};
    for (size_t n = 0; n <= DENSE; n++)
        add_length(w, n);
    for (size_t t = 0; t < LENGTH(few); t++)
        for (size_t v = 0; v < LENGTH(tiles); v++)
            add_around(w, few[t] * tiles[v]);
    for (size_t t = 0; t < LENGTH(threads); t++)
        for (size_t b = 0; b < LENGTH(blocks); b++)
            for (size_t v = 0; v < LENGTH(tiles); v++)
                if (blocks[b] > 0)
                    add_around(w, threads[t] * blocks[b] * tiles[v]);
    add_around(w, (size_t)caps->gpu.l2_bytes / VECTOR_BYTES); /* past it arrays are read as a stream */
    qsort(w->lengths, w->length_count, sizeof *w->lengths, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < w->length_count; i++)
        if (kept == 0 || w->lengths[i] != w->lengths[kept - 1])
            w->lengths[kept++] = w->lengths[i];
    w->length_count = kept;
}

/* ---- What a test works with ---- */

static void world_close(world *w) {
    dpr_ctx_destroy(w->ctx);
    if (w->stream)
        EXPECT_TRUE(gpu_stream_destroy(w->stream));
    if (w->in)
        gpu_free(DPR_MEMORY_DEVICE, w->in - FRONT_BYTES);
    if (w->out)
        gpu_free(DPR_MEMORY_DEVICE, w->out);
    free(w->got);
    free(w->lengths);
}

static int world_open(world *w, dpr_dtype dtype) {
    const dpr_caps *caps = gpu_caps();
    w->dtype = dtype;
    w->size = dpr_dtype_size(dtype);
    w->lengths = malloc(MOST_LENGTHS * sizeof *w->lengths);
    if (!EXPECT_THAT(caps && w->lengths, "%s", dpr_last_error()))
        return 0;
    find_lengths(w, caps);
    w->bytes = w->lengths[w->length_count - 1] * w->size + (size_t)2 * FRONT_BYTES;
    unsigned char *memory = gpu_alloc(DPR_MEMORY_DEVICE, w->bytes);
    w->in = memory ? memory + FRONT_BYTES : NULL;
    w->out = gpu_alloc(DPR_MEMORY_DEVICE, w->length_count * OUT_BYTES);
    w->got = malloc(w->length_count * OUT_BYTES);
    w->stream = gpu_stream_create();
    return EXPECT_THAT(w->in && w->out && w->got && w->stream, "%s", gpu_error())
           && EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &w->ctx));
}

/* One strategy on arrays that begin `shift` elements past a vector's boundary. */
typedef struct pass {
    size_t strategy, shift;
    dpr_op op;
    int block; /* threads a block; 0: the strategy's choice */
} pass;

static const char *name_of(size_t strategy) {
    return gpu_strategy(strategy) ? gpu_strategy(strategy) : "auto";
}

static unsigned char *array_of(const world *w, const pass *p) {
    return w->in + p->shift * w->size;
}

static int enqueue(const world *w, const pass *p, size_t i) {
    const dpr_launch_options launch = {.size = sizeof launch, .block = p->block};
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = gpu_strategy(p->strategy);
    options.launch = &launch;
    return EXPECT_STATUS(DPR_OK, dpr_reduce_async(w->ctx, array_of(w, p), w->out + i * OUT_BYTES, w->lengths[i],
                                                  w->dtype, p->op, &options, w->stream));
}

static int clear_results(const world *w) {
    return EXPECT_THAT(gpu_fill_async(w->out, UNTOUCHED, w->length_count * OUT_BYTES, w->stream), "%s", gpu_error());
}

static int fetch_results(const world *w) {
    return EXPECT_THAT(gpu_stream_wait(w->stream) && gpu_copy(w->got, w->out, w->length_count * OUT_BYTES), "%s",
                       gpu_error());
}

/* Whether result number i is the `size` bytes at `expected`, and nothing was written behind it. */
static int check_bytes(const world *w, const pass *p, size_t i, const void *expected, size_t size) {
    const unsigned char *got = w->got + i * OUT_BYTES;
    unsigned char image[OUT_BYTES];
    memset(image, UNTOUCHED, sizeof image);
    memcpy(image, expected, size);
    return EXPECT_THAT(memcmp(got, image, OUT_BYTES) == 0,
                       "%s %s of %s, %zu elements, %zu past a boundary, block %d: bytes %02x %02x %02x %02x, not %02x "
                       "%02x %02x %02x",
                       name_of(p->strategy), dpr_op_name(p->op), dpr_dtype_name(w->dtype), w->lengths[i], p->shift,
                       p->block, got[0], got[1], got[2], got[3], image[0], image[1], image[2], image[3]);
}

/* Fills all elements with repetitions of `period`, and has every strategy that runs the operation checked on arrays at
 * `shifts` distances from a vector's boundary. */
static void on_all_lengths(dpr_op op, dpr_dtype dtype, const void *period, size_t period_bytes, size_t shifts,
                           void (*check)(const world *w, const pass *p)) {
    world w = {0};
    if (world_open(&w, dtype)
        && EXPECT_THAT(gpu_repeat(w.in - FRONT_BYTES, w.bytes, period, period_bytes), "%s", gpu_error()))
        for (size_t s = 0; s <= gpu_strategy_count() && !test_failed(); s++)
            for (size_t shift = 0; shift < shifts && gpu_strategy_runs(s, op, dtype); shift++)
                check(&w, &(pass){s, shift, op, 0});
    world_close(&w);
}

/* The same for every block size that a strategy can be asked for, on arrays that begin beside a vector's boundary. */
static void on_all_blocks(dpr_op op, dpr_dtype dtype, const void *period, size_t period_bytes,
                          void (*check)(const world *w, const pass *p)) {
    world w = {0};
    int passes = 0;
    if (world_open(&w, dtype)
        && EXPECT_THAT(gpu_repeat(w.in - FRONT_BYTES, w.bytes, period, period_bytes), "%s", gpu_error()))
        for (size_t s = 0; s < gpu_strategy_count() && !test_failed(); s++)
            for (int block = 32; block <= 1024; block *= 2)
                if (gpu_strategy_takes(s, op, dtype, DPR_MEMORY_DEVICE, block)) {
                    check(&w, &(pass){s, 1, op, block});
                    passes++;
                }
    EXPECT_TRUE(passes > 0);
    world_close(&w);
}

/* ---- Sums ---- */

static cycle cycle_of(dpr_dtype dtype) {
    return dtype == DPR_U8 ? (cycle){1, 0} : cycle_without_zero;
}

static double result_of(const world *w, size_t i) {
    uint64_t u64 = 0;
    float f32 = 0;
    double f64 = 0;
    memcpy(&u64, w->got + i * OUT_BYTES, sizeof u64);
    memcpy(&f32, w->got + i * OUT_BYTES, sizeof f32);
    memcpy(&f64, w->got + i * OUT_BYTES, sizeof f64);
    return w->dtype == DPR_F32 ? (double)f32 : w->dtype == DPR_F64 ? f64 : (double)u64;
}

/* The same operation on arrays of all lengths. */
static int run_all(const world *w, const pass *p) {
    if (!clear_results(w))
        return 0;
    for (size_t i = 0; i < w->length_count; i++)
        if (!enqueue(w, p, i))
            break;
    return fetch_results(w);
}

/* The first length that is wrong ends the pass. Sums are exact in F64: they are below 2^31. */
static void check_sums(const world *w, const pass *p) {
    if (!run_all(w, p))
        return;
    const uint64_t from = FRONT_BYTES / w->size + p->shift;
    for (size_t i = 0; i < w->length_count; i++) {
        const double expected = (double)cycle_sum(cycle_of(w->dtype), from, w->lengths[i]), got = result_of(w, i);
        if (!EXPECT_THAT(got == expected, "%s, %zu elements, %zu past a boundary: %.17g, not %.17g",
                         name_of(p->strategy), w->lengths[i], p->shift, got, expected))
            return;
    }
}

/* At each distance that there is. */
static void sums(dpr_dtype dtype) {
    NEED_GPU();
    unsigned char period[CYCLE * sizeof(double)];
    const size_t bytes = cycle_period(cycle_of(dtype), dtype, period);
    on_all_lengths(DPR_SUM, dtype, period, bytes, VECTOR_BYTES / dpr_dtype_size(dtype), check_sums);
}

TEST(GpuSizes, sum_f32) {
    sums(DPR_F32);
}

TEST(GpuSizes, sum_f32_in_all_blocks) {
    NEED_GPU();
    unsigned char period[CYCLE * sizeof(double)];
    const size_t bytes = cycle_period(cycle_of(DPR_F32), DPR_F32, period);
    on_all_blocks(DPR_SUM, DPR_F32, period, bytes, check_sums);
}

TEST(GpuSizes, sum_u8) {
    sums(DPR_U8);
}

TEST(GpuSizes, sum_f64) {
    sums(DPR_F64);
}

/* Arrays of one number: as far from zero as its type has one, so that what adds up in fewer bits overflows. */
static int64_t number_of(dpr_dtype dtype) {
    switch (dtype) {
    case DPR_I8:
        return INT8_MIN;
    case DPR_I16:
        return INT16_MIN;
    case DPR_U16:
        return UINT16_MAX;
    case DPR_I32:
        return INT32_MIN;
    default:
        return UINT32_MAX;
    }
}

static void check_multiples(const world *w, const pass *p) {
    if (!run_all(w, p))
        return;
    for (size_t i = 0; i < w->length_count; i++) {
        const uint64_t expected = (uint64_t)number_of(w->dtype) * w->lengths[i];
        if (!check_bytes(w, p, i, &expected, sizeof expected))
            return;
    }
}

static void multiples(dpr_dtype dtype) {
    NEED_GPU();
    const int64_t number = number_of(dtype); /* whose lowest bytes are an element */
    on_all_lengths(DPR_SUM, dtype, &number, dpr_dtype_size(dtype), 2, check_multiples);
}

TEST(GpuSizes, least_i8) {
    multiples(DPR_I8);
}

TEST(GpuSizes, least_i16) {
    multiples(DPR_I16);
}

TEST(GpuSizes, greatest_u16) {
    multiples(DPR_U16);
}

TEST(GpuSizes, least_i32) {
    multiples(DPR_I32);
}

TEST(GpuSizes, least_i32_in_all_blocks) {
    const int32_t number = INT32_MIN;
    NEED_GPU();
    on_all_blocks(DPR_SUM, DPR_I32, &number, sizeof number, check_multiples);
}

TEST(GpuSizes, greatest_u32) {
    multiples(DPR_U32);
}

/* ---- Products ---- */

/* Signs in a sequence of maximal length: of the seven places where a run of elements may begin, its product is -1 at
 * four, whatever its length, unless that is a multiple of seven. So a vector that is lost or read twice shows at more
 * than half of its places. All seven multiply to 1. */
enum { SIGNS = 7 };
static const int signs[SIGNS] = {-1, -1, -1, 1, -1, 1, 1};

static int64_t sign_of(uint64_t from, uint64_t count) {
    int64_t product = 1;
    for (uint64_t i = 0; i < count % SIGNS; i++)
        product *= signs[(from + i) % SIGNS];
    return product;
}

static size_t signs_period(dpr_dtype dtype, unsigned char out[SIGNS * sizeof(float)]) {
    for (size_t i = 0; i < SIGNS; i++) {
        const float f32 = (float)signs[i];
        const int8_t i8 = (int8_t)signs[i];
        if (dtype == DPR_F32)
            memcpy(out + i * sizeof f32, &f32, sizeof f32);
        else
            memcpy(out + i * sizeof i8, &i8, sizeof i8);
    }
    return SIGNS * dpr_dtype_size(dtype);
}

static void check_products(const world *w, const pass *p) {
    if (!run_all(w, p))
        return;
    const uint64_t from = FRONT_BYTES / w->size + p->shift;
    for (size_t i = 0; i < w->length_count; i++) {
        const int64_t i64 = sign_of(from, w->lengths[i]);
        const float f32 = (float)i64;
        const int is_f32 = w->dtype == DPR_F32;
        if (!check_bytes(w, p, i, is_f32 ? (const void *)&f32 : &i64, is_f32 ? sizeof f32 : sizeof i64))
            return;
    }
}

static void products(dpr_dtype dtype) {
    NEED_GPU();
    unsigned char period[SIGNS * sizeof(float)];
    const size_t bytes = signs_period(dtype, period);
    on_all_lengths(DPR_PROD, dtype, period, bytes, 2, check_products);
}

TEST(GpuSizes, prod_f32) {
    products(DPR_F32);
}

TEST(GpuSizes, prod_i8) {
    products(DPR_I8);
}

/* ---- Truth ---- */

/* Bytes of which the last of every four decides: the highest of a word that kernels read. Partial results then differ
 * from those of nothing in the highest bit alone, if at all, and where they are added up as they are, those of an even
 * number of blocks may come to nothing. */
enum { WORD_BYTES = 4 };
static const unsigned char word_for_all[WORD_BYTES] = {1, 1, 1, 0}, word_for_any[WORD_BYTES] = {0, 0, 0, 0x80};

/* What decides makes ALL false and ANY true. */
static void check_truths(const world *w, const pass *p) {
    if (!run_all(w, p))
        return;
    const size_t first = WORD_BYTES - 1 - (FRONT_BYTES + p->shift) % WORD_BYTES; /* index of the first that decides */
    for (size_t i = 0; i < w->length_count; i++) {
        const unsigned char expected = (w->lengths[i] > first) == (p->op == DPR_ANY);
        if (!check_bytes(w, p, i, &expected, sizeof expected))
            return;
    }
}

static void truths(dpr_op op, dpr_dtype dtype) {
    NEED_GPU();
    on_all_lengths(op, dtype, op == DPR_ALL ? word_for_all : word_for_any, WORD_BYTES, 2, check_truths);
}

TEST(GpuSizes, all_bool) {
    truths(DPR_ALL, DPR_BOOL);
}

TEST(GpuSizes, all_u8) {
    truths(DPR_ALL, DPR_U8);
}

TEST(GpuSizes, all_i8) {
    truths(DPR_ALL, DPR_I8);
}

TEST(GpuSizes, any_bool) {
    truths(DPR_ANY, DPR_BOOL);
}

TEST(GpuSizes, any_u8) {
    truths(DPR_ANY, DPR_U8);
}

TEST(GpuSizes, any_i8) {
    truths(DPR_ANY, DPR_I8);
}

/* ---- Extremes ---- */

/* Bytes of elements: the greatest of the array, greater ones right before and behind it, and the others. Floats of
 * such bytes are in the same order. */
enum { PEAK = 0x40, OUTSIDE = 0x50, OTHERS = 0x01 };

/* Where the greatest is: at the ends of the array and of its part in whole vectors, and between. */
static size_t place_of_peak(const world *w, const pass *p, size_t i) {
    const size_t n = w->lengths[i], each = VECTOR_BYTES / w->size, before = p->shift ? each - p->shift : 0;
    const size_t head = before < n ? before : n, tail = head + (n - head) / each * each;
    const size_t places[] = {0, head, tail, n - 1, tail ? tail - 1 : 0, n / 2, n / 3};
    const size_t place = places[(i + p->strategy) % LENGTH(places)];
    return place < n ? place : n - 1;
}

static int put(const world *w, unsigned char *element, int byte) {
    return EXPECT_THAT(gpu_fill_async(element, byte, w->size, w->stream), "%s", gpu_error());
}

/* The greatest comes twice where there is room behind the first. */
static int enqueue_with_peak(const world *w, const pass *p, size_t i) {
    const size_t n = w->lengths[i], place = place_of_peak(w, p, i);
    unsigned char *first = array_of(w, p), *before = first - w->size, *behind = first + n * w->size;
    unsigned char *peak = first + place * w->size, *again = peak + (n - place) / 2 * w->size;
    return put(w, before, OUTSIDE) && put(w, behind, OUTSIDE) && put(w, peak, PEAK) && put(w, again, PEAK)
           && enqueue(w, p, i) && put(w, before, OTHERS) && put(w, behind, OTHERS) && put(w, peak, OTHERS)
           && put(w, again, OTHERS);
}

static void check_peaks(const world *w, const pass *p) {
    const size_t first = w->lengths[0] == 0; /* there is no extreme of nothing */
    if (!clear_results(w))
        return;
    for (size_t i = first; i < w->length_count; i++)
        if (!enqueue_with_peak(w, p, i))
            break;
    if (!fetch_results(w))
        return;
    for (size_t i = first; i < w->length_count; i++) {
        const uint64_t place = place_of_peak(w, p, i);
        const unsigned char *got = w->got + i * OUT_BYTES;
        unsigned char expected[OUT_BYTES];
        memset(expected, UNTOUCHED, sizeof expected);
        if (p->op == DPR_ARGMAX)
            memcpy(expected, &place, sizeof place);
        else
            memset(expected, PEAK, w->size);
        if (!EXPECT_THAT(
                memcmp(got, expected, OUT_BYTES) == 0,
                "%s, %zu elements, %zu past a boundary, block %d, the greatest at %llu: bytes %02x %02x %02x %02x",
                name_of(p->strategy), w->lengths[i], p->shift, p->block, (unsigned long long)place, got[0], got[1],
                got[2], got[3]))
            return;
    }
}

static void peaks(dpr_op op, dpr_dtype dtype) {
    const unsigned char others = OTHERS;
    NEED_GPU();
    on_all_lengths(op, dtype, &others, sizeof others, 2, check_peaks);
}

TEST(GpuSizes, max_f32) {
    peaks(DPR_MAX, DPR_F32);
}

static void peaks_in_all_blocks(dpr_dtype dtype) {
    const unsigned char others = OTHERS;
    NEED_GPU();
    on_all_blocks(DPR_MAX, dtype, &others, sizeof others, check_peaks);
}

TEST(GpuSizes, max_i32_in_all_blocks) {
    peaks_in_all_blocks(DPR_I32);
}

TEST(GpuSizes, max_f64_in_all_blocks) {
    peaks_in_all_blocks(DPR_F64);
}

TEST(GpuSizes, argmax_u8) {
    peaks(DPR_ARGMAX, DPR_U8);
}

TEST(GpuSizes, argmax_f32) {
    peaks(DPR_ARGMAX, DPR_F32);
}

/* Of equal elements the first. */
static void check_firsts(const world *w, const pass *p) {
    const int64_t first = 0;
    if (!clear_results(w))
        return;
    for (size_t i = w->lengths[0] == 0; i < w->length_count; i++) /* there is no least of nothing */
        if (!enqueue(w, p, i))
            break;
    if (!fetch_results(w))
        return;
    for (size_t i = w->lengths[0] == 0; i < w->length_count; i++)
        if (!check_bytes(w, p, i, &first, sizeof first))
            return;
}

TEST(GpuSizes, argmin_of_equals) {
    const unsigned char others = OTHERS;
    NEED_GPU();
    on_all_lengths(DPR_ARGMIN, DPR_F64, &others, sizeof others, 2, check_firsts);
}
