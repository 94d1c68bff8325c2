/* Short segments by the CPU strategies: every length and every beginning around a special value, next to memory that
 * nobody may read. Run for each instruction set. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data.h"
#include "reference.h"
#include "support.h"

enum {
    LONGEST = 70,                 /* elements of a segment */
    BEGINS = 36,                  /* where segments begin; 35 is the place of the special value */
    COUNT = BEGINS + LONGEST - 1, /* elements */
    SEGMENTS = BEGINS * (LONGEST + 1)
};

static const char *const strategies[] = {"cpu.simd", "cpu.threads"};

/* An array between two pages that nobody may touch. */
typedef struct fenced {
    unsigned char *pages;
    size_t page;
} fenced;

static fenced make_fenced(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fenced f = {mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page};
    EXPECT_TRUE(f.pages != MAP_FAILED);
    EXPECT_TRUE(mprotect(f.pages + page, page, PROT_READ | PROT_WRITE) == 0);
    return f;
}

static void free_fenced(fenced f) {
    (void)munmap(f.pages, 3 * f.page);
}

/* Every length from every beginning, in an order in which neighbours have different lengths. */
static void choose_ranges(int32_t *begins, int32_t *ends) {
    for (int i = 0; i < SEGMENTS; i++) {
        const int k = (int)((int64_t)i * 1009 % SEGMENTS); /* 1009 is prime, and no factor of SEGMENTS */
        begins[i] = k / (LONGEST + 1);
        ends[i] = begins[i] + k % (LONGEST + 1);
        ends[i] = ends[i] <= COUNT ? ends[i] : COUNT;
    }
}

typedef struct problem {
    dpr_op op;
    dpr_dtype dtype;
    dpr_options options;
    dpr_segments segments;
    const unsigned char *in;
    const void *init;
} problem;

/* What segment i must give. */
static ref_state expected(const problem *p, int i) {
    const int32_t begin = ((const int32_t *)p->segments.begins)[i], end = ((const int32_t *)p->segments.ends)[i];
    ref_state state;
    ref_reduce(&state, p->op, p->dtype, p->options.nan, p->in + (size_t)begin * ref_size(p->dtype),
               (size_t)(end - begin));
    if (p->init)
        ref_add_init(&state, p->init);
    return state;
}

/* Compares the results of all segments by all strategies. */
static void check(dpr_ctx *ctx, problem *p) {
    static _Alignas(16) unsigned char out[LENGTH(strategies)][SEGMENTS * 16];
    const size_t size = ref_result_size(p->op, p->dtype);
    const int is_index = p->op == DPR_ARGMIN || p->op == DPR_ARGMAX;
    char why[512];
    p->options.init = p->init;
    for (size_t s = 0; s < LENGTH(strategies); s++) {
        p->options.strategy = strategies[s];
        ASSERT_STATUS(DPR_OK,
                      dpr_reduce_segments(ctx, p->in, out[s], COUNT, p->dtype, p->op, &p->segments, &p->options));
    }
    EXPECT_TRUE(memcmp(out[0], out[1], SEGMENTS * size) == 0);
    for (int i = 0; i < SEGMENTS; i++) {
        const ref_state state = expected(p, i);
        const unsigned char *got = out[0] + (size_t)i * size;
        const int64_t none = -1;
        const int good = is_index && state.count == 0 ? memcmp(got, &none, sizeof none) == 0
                                                      : ref_check(&state, got, why, sizeof why);
        if (!EXPECT_THAT(good, "%s of %s, elements %d to %d, NaN policy %d%s\n  %s", dpr_op_name(p->op),
                         dpr_dtype_name(p->dtype), ((const int32_t *)p->segments.begins)[i],
                         ((const int32_t *)p->segments.ends)[i], (int)p->options.nan, p->init ? ", with init" : "",
                         why))
            return;
    }
}

static void check_pattern(dpr_ctx *ctx, problem *p, fenced f, data_pattern pattern) {
    static _Alignas(16) unsigned char init[16];
    const size_t bytes = COUNT * ref_size(p->dtype);
    if (!data_pattern_applies(pattern, p->op, p->dtype))
        return;
    unsigned char *in =
        f.pages + (pattern % 2 ? f.page : 2 * f.page - bytes); /* after the one page, before the other */
    data_fill(in, p->op, p->dtype, pattern, COUNT);
    if (pattern == DATA_NAN_MIDDLE || pattern == DATA_INF_MIDDLE) { /* moved to the place that all segments may reach */
        memmove(f.pages + f.page + f.page / 2, in + COUNT / 2 * ref_size(p->dtype), ref_size(p->dtype));
        data_fill(in, p->op, p->dtype, DATA_RANDOM, COUNT);
        memmove(in + (BEGINS - 1) * ref_size(p->dtype), f.pages + f.page + f.page / 2, ref_size(p->dtype));
    }
    p->in = in;
    for (int k = 0; k < 4 && !test_failed(); k++) {
        p->options.nan = k % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
        p->init = k / 2 && ref_takes_init(p->op) ? init : NULL;
        data_init(init, p->op, ref_result_dtype(p->op, p->dtype), pattern);
        if (k < 2 || p->init)
            check(ctx, p);
    }
}

TEST(CpuSegments, all_lengths_around_special_values) {
    static const data_pattern patterns[] = {DATA_RANDOM,  DATA_EXTREMES,    DATA_NAN_MIDDLE, DATA_INF_MIDDLE,
                                            DATA_NAN_ALL, DATA_ALTERNATING, DATA_SPECIALS};
    static int32_t begins[SEGMENTS], ends[SEGMENTS];
    const dpr_segments segments = DPR_SEGMENTS_INIT;
    const dpr_options options = DPR_OPTIONS_INIT;
    const fenced f = make_fenced();
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &ctx));
    choose_ranges(begins, ends);
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count(); i++) {
        problem p = {.op = dpr_op_at(i / dpr_dtype_count()), .dtype = dpr_dtype_at(i % dpr_dtype_count())};
        p.options = options;
        p.segments = segments;
        p.segments.count = SEGMENTS;
        p.segments.begins = begins;
        p.segments.ends = ends;
        p.segments.dtype = DPR_I32;
        for (size_t k = 0; k < LENGTH(patterns) && dpr_supported(p.op, p.dtype) && !test_failed(); k++)
            check_pattern(ctx, &p, f, patterns[k]);
    }
    dpr_ctx_destroy(ctx);
    free_fenced(f);
}
