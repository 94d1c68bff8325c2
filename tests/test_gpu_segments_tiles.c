/* segments.merge with so many elements that its blocks have many tiles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_memory.h"
#include "support.h"

enum { UNEVEN = 1 << 26, UNEVEN_MOST = UNEVEN / 2 / 14 };

typedef struct uneven {
    dpr_ctx *gpu;
    uint32_t *in, *offsets, *in_device, *offsets_device;
    int64_t *got, *out_device; /* results */
    size_t segments;
} uneven;

/* A quarter of the elements are in segments of 0 to 31, half of all are in one segment, and the others are in short
 * ones again, so that segments.merge divides the path by work. */
static void make_uneven(uneven *u) {
    uint32_t random = 1, at = 0;
    u->segments = 0;
    while (at < UNEVEN && u->segments + 1 < UNEVEN_MOST) {
        u->offsets[u->segments++] = at;
        random = random * 1664525U + 1013904223U;
        at += at / (UNEVEN / 4) == 1 ? UNEVEN / 2 : random >> 16 & 31;
        at = at < UNEVEN ? at : UNEVEN;
    }
    u->offsets[u->segments] = UNEVEN;
    for (size_t i = 0; i < UNEVEN; i++) {
        random = random * 1664525U + 1013904223U;
        u->in[i] = (random ^ random >> 15) & 0xbfffffffU; /* as a float, finite and between -2 and 2 */
    }
    EXPECT_TRUE(gpu_copy(u->in_device, u->in, UNEVEN * sizeof *u->in));
    EXPECT_TRUE(gpu_copy(u->offsets_device, u->offsets, (u->segments + 1) * sizeof *u->offsets));
}

/* How many results differ from a serial loop's. */
static size_t wrong_sums(const uneven *u) {
    size_t wrong = 0;
    for (size_t i = 0; i < u->segments; i++) {
        int64_t sum = 0;
        for (size_t e = u->offsets[i]; e < u->offsets[i + 1]; e++)
            sum += (int32_t)u->in[e];
        wrong += u->got[i] != sum;
    }
    return wrong;
}

static size_t wrong_maxima(const uneven *u, dpr_op op) {
    const float *const in = (const float *)(const void *)u->in, *const got = (const float *)(const void *)u->got;
    size_t wrong = 0;
    for (size_t i = 0; i < u->segments; i++) {
        size_t best = u->offsets[i];
        for (size_t e = best; e < u->offsets[i + 1]; e++)
            best = in[e] > in[best] ? e : best;
        const int is_empty = u->offsets[i] >= u->offsets[i + 1];
        if (op == DPR_MAX)
            wrong += got[i] != (is_empty ? -INFINITY : in[best]);
        else
            wrong += u->got[i] != (is_empty ? -1 : (int64_t)(best - u->offsets[i]));
    }
    return wrong;
}

static int open_uneven(uneven *u) {
    u->in = malloc(UNEVEN * sizeof *u->in);
    u->offsets = malloc(UNEVEN_MOST * sizeof *u->offsets);
    u->in_device = gpu_alloc(DPR_MEMORY_DEVICE, UNEVEN * sizeof *u->in);
    u->offsets_device = gpu_alloc(DPR_MEMORY_DEVICE, UNEVEN_MOST * sizeof *u->offsets);
    u->got = malloc(UNEVEN_MOST * sizeof *u->got);
    u->out_device = gpu_alloc(DPR_MEMORY_DEVICE, UNEVEN_MOST * sizeof *u->got);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &u->gpu));
    const int is_open = u->in && u->offsets && u->in_device && u->offsets_device && u->got && u->out_device;
    EXPECT_TRUE(is_open);
    if (is_open)
        make_uneven(u);
    return is_open;
}

static void close_uneven(uneven *u) {
    gpu_free(DPR_MEMORY_DEVICE, u->in_device);
    gpu_free(DPR_MEMORY_DEVICE, u->offsets_device);
    gpu_free(DPR_MEMORY_DEVICE, u->out_device);
    free(u->in);
    free(u->offsets);
    free(u->got);
    dpr_ctx_destroy(u->gpu);
}

/* Reduces the segments by segments.merge, whose results are then in u->got. */
static void run_uneven(const uneven *u, dpr_op op, dpr_dtype dtype, dpr_dtype of_offsets) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    segments.count = u->segments;
    segments.begins = u->offsets_device;
    segments.dtype = of_offsets;
    options.strategy = "segments.merge";
    memset(u->got, 0x5a, UNEVEN_MOST * sizeof *u->got);
    EXPECT_TRUE(gpu_copy(u->out_device, u->got, UNEVEN_MOST * sizeof *u->got));
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_segments(u->gpu, u->in_device, u->out_device, UNEVEN, dtype, op, &segments, &options));
    EXPECT_TRUE(gpu_copy(u->got, u->out_device, UNEVEN_MOST * sizeof *u->got));
}

TEST(GpuSegments, uneven_segments_in_many_tiles_of_a_block) {
    static const struct {
        dpr_op op;
        dpr_dtype dtype;
    } pairs[] = {{DPR_SUM, DPR_I32}, {DPR_MAX, DPR_F32}, {DPR_ARGMAX, DPR_F32}};
    uneven u = {0};
    NEED_GPU();
    if (open_uneven(&u))
        for (size_t k = 0; k < LENGTH(pairs); k++) {
            run_uneven(&u, pairs[k].op, pairs[k].dtype, k % 2 ? DPR_I32 : DPR_U32);
            const size_t wrong = pairs[k].op == DPR_SUM ? wrong_sums(&u) : wrong_maxima(&u, pairs[k].op);
            EXPECT_THAT(wrong == 0, "pair %zu: %zu of %zu results are wrong", k, wrong, u.segments);
        }
    close_uneven(&u);
}

/* How many segments end before block number `block` of 528, as many as an H100 or an H200 runs. For maxima of F32, the
 * end of an uneven segment counts 40 bytes of the path: an offset, a result and the work. */
static size_t ends_before(const uneven *u, uint64_t block) {
    enum { BLOCKS = 528, END = 40 };
    const uint64_t bytes = (UNEVEN * sizeof *u->in + u->segments * END) * block / BLOCKS;
    size_t n = 0;
    while (n < u->segments && u->offsets[n + 1] * sizeof *u->in + (n + 1) * END <= bytes)
        n++;
    return n;
}

/* One offset is too large, near where two blocks meet: there, the search of one may come across it and that of the
 * other may not. */
TEST(GpuSegments, an_offset_without_order_where_blocks_meet) {
    uneven u = {0};
    NEED_GPU();
    if (open_uneven(&u))
        for (uint64_t block = 1; block < 166 && !test_failed(); block += 7) {
            uint32_t *const offset = &u.offsets[ends_before(&u, block) - 2], own = *offset;
            *offset = UNEVEN;
            EXPECT_TRUE(gpu_copy(u.offsets_device, u.offsets, (u.segments + 1) * sizeof *u.offsets));
            run_uneven(&u, DPR_MAX, DPR_F32, DPR_I32);
            const size_t wrong = wrong_maxima(&u, DPR_MAX);
            EXPECT_THAT(wrong == 0, "offset %zu of %zu: %zu results are wrong", (size_t)(offset - u.offsets),
                        u.segments, wrong);
            *offset = own;
        }
    close_uneven(&u);
}

/* ---- Segments of all lengths ---- */

/* Tiles of 20 KB in which many segments end, few, or none, also several of these in a row: behind a segment of up to
 * 2^17 elements come up to 63 short ones. The first 2^18 elements are in segments of one each, with empty ones. */
static void make_all_lengths(uneven *u, size_t count) {
    uint32_t random = 7;
    size_t at = 0;
    u->segments = 0;
    for (size_t left = 0; at < count && u->segments + 1 < UNEVEN_MOST;) {
        u->offsets[u->segments++] = (uint32_t)at;
        random = random * 1664525U + 1013904223U;
        const uint32_t bits = random >> 8;
        if (at < 1 << 18) {
            at += bits % 8 > 0;
            continue;
        }
        if (left == 0)
            left = (bits & 63) + 1;
        at += left == 1 ? bits >> 6 & ((2U << bits % 17) - 1) : bits >> 6 & 31;
        at = at < count ? at : count;
        left--;
    }
    u->offsets[u->segments] = (uint32_t)count;
}

/* An element: for sums of floats a number from 0 to 7, so that they are exact in any order. Otherwise mostly one of
 * eight numbers, and one of 2^16 has any bits, so that the results of long segments depend on few elements. */
static void put_element(unsigned char *to, dpr_op op, dpr_dtype dtype, uint64_t random) {
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    const uint64_t eighth = random >> 61, any = random >> 45 & 0xffff ? 101 + 2 * eighth : random * 0x9E3779B97F4A7C15U;
    const float small = (float)eighth, two[] = {small, small}, above = 1 + small;
    const double wide = (double)eighth, four[] = {wide, wide}, wide_above = 1 + wide;
    const uint16_t half = halves[eighth];
    const int is_sum = op == DPR_SUM, is_any = any % 2 == 0 || any > 115;
    const void *from = &any;
    if (dtype == DPR_F16 || dtype == DPR_BF16)
        from = is_sum || !is_any ? (const void *)&half : from;
    else if (dtype == DPR_F32)
        from = is_sum ? &small : is_any ? from : (const void *)&above;
    else if (dtype == DPR_F64)
        from = is_sum ? &wide : is_any ? from : (const void *)&wide_above;
    else if (dtype == DPR_C64)
        from = two;
    else if (dtype == DPR_C128)
        from = four;
    memcpy(to, from, dpr_dtype_size(dtype));
}

/* A pair whose results are compared with those of the CPU. */
typedef struct pair {
    dpr_op op;
    dpr_dtype dtype;
    int unaligned; /* 1: elements lie across vectors, if their alignment allows that; 0: the array has another shift */
    dpr_nan nan;
} pair;

/* Bytes from the memory to the array. */
static size_t shift_of(const pair *p) {
    return p->unaligned ? dpr_dtype_alignment(p->dtype) : dpr_dtype_size(p->dtype);
}

/* Compares results for the offsets as they are. */
static void expect_results_of_cpu(uneven *u, dpr_ctx *cpu, const pair *p, size_t count, const char *what) {
    const size_t result = dpr_dtype_size(dpr_result_dtype(p->op, p->dtype)), shift = shift_of(p);
    int64_t *const got = malloc(UNEVEN_MOST * sizeof *got);
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    EXPECT_TRUE(got && gpu_copy(u->offsets_device, u->offsets, (u->segments + 1) * sizeof *u->offsets));
    segments.count = u->segments;
    segments.begins = u->offsets;
    segments.dtype = DPR_U32;
    options.nan = p->nan;
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(cpu, (unsigned char *)u->in + shift, u->got, count, p->dtype, p->op,
                                              &segments, &options));
    segments.begins = u->offsets_device;
    options.strategy = "segments.merge";
    EXPECT_STATUS(DPR_OK, dpr_reduce_segments(u->gpu, (unsigned char *)u->in_device + shift, u->out_device, count,
                                              p->dtype, p->op, &segments, &options));
    EXPECT_TRUE(gpu_copy(got, u->out_device, u->segments * result));
    size_t wrong = 0, first = 0;
    for (size_t i = u->segments; i-- > 0;)
        if (memcmp((unsigned char *)got + i * result, (unsigned char *)u->got + i * result, result) != 0) {
            wrong++;
            first = i;
        }
    EXPECT_THAT(wrong == 0, "%s of %s, %s: %zu of %zu results are wrong, number %zu of %zu elements is the first",
                dpr_op_name(p->op), dpr_dtype_name(p->dtype), what, wrong, u->segments, first,
                (size_t)(u->offsets[first + 1] - u->offsets[first]));
    free(got);
}

/* Fills the array for a pair. Returns how many elements it has. */
static size_t make_elements_of(uneven *u, const pair *p) {
    const size_t size = dpr_dtype_size(p->dtype), shift = shift_of(p), most = UNEVEN * sizeof *u->in / size - 1,
                 count = most < UNEVEN / 2 ? most : UNEVEN / 2;
    uint64_t random = 1;
    for (size_t i = 0; i < count; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        put_element((unsigned char *)u->in + shift + i * size, p->op, p->dtype, random);
    }
    EXPECT_TRUE(gpu_copy(u->in_device, u->in, UNEVEN * sizeof *u->in));
    return count;
}

TEST(GpuSegments, all_lengths_in_many_tiles_of_a_block) {
    static const pair pairs[] = {
        {DPR_SUM, DPR_I32, 0, DPR_NAN_PROPAGATE},    {DPR_SUM, DPR_F32, 0, DPR_NAN_IGNORE},
        {DPR_SUM, DPR_F64, 0, DPR_NAN_PROPAGATE},    {DPR_SUM, DPR_C64, 1, DPR_NAN_PROPAGATE},
        {DPR_SUM, DPR_C64, 0, DPR_NAN_PROPAGATE},    {DPR_SUM, DPR_C128, 1, DPR_NAN_PROPAGATE},
        {DPR_SUM, DPR_F16, 0, DPR_NAN_PROPAGATE},    {DPR_SUM, DPR_U8, 0, DPR_NAN_PROPAGATE},
        {DPR_MAX, DPR_F32, 0, DPR_NAN_PROPAGATE},    {DPR_MIN, DPR_F32, 0, DPR_NAN_IGNORE},
        {DPR_MIN, DPR_F16, 0, DPR_NAN_IGNORE},       {DPR_MAX, DPR_BF16, 0, DPR_NAN_PROPAGATE},
        {DPR_MIN, DPR_I8, 0, DPR_NAN_PROPAGATE},     {DPR_MAX, DPR_U16, 0, DPR_NAN_PROPAGATE},
        {DPR_MIN, DPR_BOOL, 0, DPR_NAN_PROPAGATE},   {DPR_ARGMAX, DPR_F32, 0, DPR_NAN_IGNORE},
        {DPR_ARGMIN, DPR_F64, 0, DPR_NAN_PROPAGATE}, {DPR_ARGMAX, DPR_F16, 0, DPR_NAN_PROPAGATE},
        {DPR_ARGMIN, DPR_BF16, 0, DPR_NAN_IGNORE},   {DPR_ARGMAX, DPR_U8, 0, DPR_NAN_PROPAGATE},
        {DPR_ARGMIN, DPR_I16, 0, DPR_NAN_PROPAGATE}, {DPR_ARGMAX, DPR_I64, 0, DPR_NAN_PROPAGATE},
        {DPR_BXOR, DPR_U64, 0, DPR_NAN_PROPAGATE},   {DPR_PROD, DPR_U8, 0, DPR_NAN_PROPAGATE}};
    uneven u = {0};
    dpr_ctx *cpu = NULL;
    NEED_GPU();
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    if (open_uneven(&u))
        for (size_t k = 0; k < LENGTH(pairs) && !test_failed(); k++) {
            const size_t count = make_elements_of(&u, &pairs[k]);
            make_all_lengths(&u, count);
            expect_results_of_cpu(&u, cpu, &pairs[k], count, "all lengths");
        }
    close_uneven(&u);
    dpr_ctx_destroy(cpu);
}

/* One offset is too large or too small where few segments end in a tile. */
TEST(GpuSegments, an_offset_without_order_among_long_segments) {
    static const pair pairs[] = {{DPR_MAX, DPR_F32, 0, DPR_NAN_PROPAGATE}, {DPR_ARGMIN, DPR_F64, 0, DPR_NAN_PROPAGATE}};
    enum { PLACES = 12 };
    uneven u = {0};
    dpr_ctx *cpu = NULL;
    NEED_GPU();
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    if (open_uneven(&u))
        for (size_t k = 0; k < LENGTH(pairs) && !test_failed(); k++) {
            const size_t count = make_elements_of(&u, &pairs[k]), segments = count / 3000;
            for (size_t i = 0; i <= segments; i++)
                u.offsets[i] = (uint32_t)(i < segments ? i * 3000 + i % 100 : count);
            u.segments = segments;
            for (size_t i = 1; i < PLACES && !test_failed(); i++) {
                uint32_t *const offset = &u.offsets[segments / PLACES * i], own = *offset;
                *offset = i % 3 == 0 ? 1 : i % 3 == 1 ? own + 7000 : (uint32_t)count;
                expect_results_of_cpu(&u, cpu, &pairs[k], count, "an offset without order");
                *offset = own;
            }
        }
    close_uneven(&u);
    dpr_ctx_destroy(cpu);
}
