/* Sets of operations in one pass, on one or several contexts, against the reference. */
#ifndef DPR_TESTS_FUSED_SETS_H
#define DPR_TESTS_FUSED_SETS_H

#include <stdio.h>
#include <string.h>

#include "data.h"
#include "reference.h"
#include "support.h"

enum { FUSED_ELEMENTS = 70001, FUSED_BYTES = FUSED_ELEMENTS * 16 };

/* A place for one result, between bytes that must stay as they are. */
typedef struct fused_out {
    _Alignas(16) unsigned char before[16], result[16], after[16];
} fused_out;

/* A set of operations on an array in host memory. */
typedef struct fused_set {
    dpr_dtype dtype;
    dpr_nan nan;
    data_pattern pattern;
    size_t count, n;
    dpr_op ops[DPR_FUSED_MOST];
    const unsigned char *in;
    dpr_divisor divisor;
} fused_set;

static int fused_describe(const fused_set *set, char text[256]) {
    int at = snprintf(text, 256, "%zu of %s, NaN policy %d, pattern %s:", set->count, dpr_dtype_name(set->dtype),
                      (int)set->nan, data_pattern_name(set->pattern));
    for (size_t i = 0; i < set->n; i++)
        at += snprintf(text + at, (size_t)(256 - at), " %s", dpr_op_name(set->ops[i]));
    return at;
}

/* Chooses 1 to DPR_FUSED_MOST operations of the type, some of them perhaps twice, and a number of elements. */
static void fused_choose(fused_set *set, uint64_t *seed) {
    static const size_t counts[] = {1, 2, 31, 33, 1000, 4097, FUSED_ELEMENTS};
    set->n = 1 + data_below(seed, DPR_FUSED_MOST);
    for (size_t i = 0; i < set->n;) {
        set->ops[i] = dpr_op_at(data_below(seed, (uint32_t)dpr_op_count()));
        i += ref_supported(set->ops[i], set->dtype) ? 1 : 0;
    }
    set->count = counts[data_below(seed, LENGTH(counts))];
    set->nan = data_below(seed, 2) ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
    set->divisor = data_below(seed, 2) ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
    do
        set->pattern = (data_pattern)data_below(seed, DATA_PATTERNS);
    while (!data_pattern_applies(set->pattern, set->ops[0], set->dtype));
}

static dpr_options fused_options(const fused_set *set, const char *strategy) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = set->nan;
    options.divisor = set->divisor;
    options.strategy = strategy;
    return options;
}

/* Sets the places of all results. */
static void fused_outs(fused_out *outs, void **places) {
    memset(outs, 0x5a, DPR_FUSED_MOST * sizeof *outs);
    for (size_t i = 0; i < DPR_FUSED_MOST; i++)
        places[i] = outs[i].result;
}

static int fused_is_untouched(const unsigned char *bytes, size_t size) {
    size_t same = 0;
    while (same < size && bytes[same] == 0x5a)
        same++;
    return same == size;
}

/* Whether the results are right and the bytes around them are unchanged. */
static int fused_check(const fused_set *set, const fused_out *outs, const char *how) {
    char text[256], why[512];
    fused_describe(set, text);
    for (size_t i = 0; i < DPR_FUSED_MOST; i++) {
        ref_state state;
        const size_t size = i < set->n ? ref_result_size(set->ops[i], set->dtype) : 0;
        if (!EXPECT_THAT(fused_is_untouched(outs[i].before, 16) && fused_is_untouched(outs[i].result + size, 32 - size),
                         "%s, %s: bytes around result %zu have changed", how, text, i))
            return 0;
        if (size == 0)
            continue;
        ref_reduce(&state, set->ops[i], set->dtype, set->nan, set->in, set->count);
        state.sample = set->divisor == DPR_DIVISOR_SAMPLE;
        if (!EXPECT_THAT(ref_check(&state, outs[i].result, why, sizeof why), "%s, %s: %s\n  %s", how, text,
                         dpr_op_name(set->ops[i]), why))
            return 0;
    }
    return 1;
}

/* Reduces with a blocking call; `in` is the array where the context reaches it. */
static int fused_reduce(const fused_set *set, dpr_ctx *ctx, const char *strategy, const void *in) {
    fused_out outs[DPR_FUSED_MOST];
    void *places[DPR_FUSED_MOST];
    const dpr_options options = fused_options(set, strategy);
    fused_outs(outs, places);
    return EXPECT_STATUS(DPR_OK, dpr_reduce_fused(ctx, in, places, set->count, set->dtype, set->ops, set->n, &options))
           && fused_check(set, outs, strategy ? strategy : "the planner's choice");
}

#endif
