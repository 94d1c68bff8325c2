/* Arrays reduced in pieces, on one or several contexts, against the same array reduced in one. */
#ifndef DPR_TESTS_PARTIAL_SPLITS_H
#define DPR_TESTS_PARTIAL_SPLITS_H

#include <stdio.h>
#include <string.h>

#include "data.h"
#include "reference.h"
#include "support.h"

/* The longest partial result, that of a variance of complex numbers, has 72 bytes. */
enum { SPLIT_ELEMENTS = 3001, SPLIT_PIECES = 1000, PARTIAL_MOST = 80 };

/* Where pieces are reduced. */
typedef struct split_place {
    dpr_ctx *ctx;
    const char *strategy;    /* NULL: the planner's choice */
    const unsigned char *in; /* the array, where the context reaches it */
} split_place;

/* What is split. */
typedef struct split {
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    data_pattern pattern;
    const unsigned char *in; /* host memory */
    ref_state expected;
    const split_place *places;
    size_t place_count;
    size_t most_pieces; /* up to SPLIT_PIECES */
    /* Partial results of pieces, one behind the other. */
    size_t pieces, bytes;
    _Alignas(16) unsigned char partials[SPLIT_PIECES * PARTIAL_MOST];
} split;

static int split_describe(const split *s, char text[160]) {
    return snprintf(text, 160, "%s of %s, NaN policy %d, pattern %s, %zu pieces", dpr_op_name(s->op),
                    dpr_dtype_name(s->dtype), (int)s->nan, data_pattern_name(s->pattern), s->pieces);
}

/* Whether the partial result is the same whatever the pieces are. Sums and products of floats depend on them, and so do
 * norms and variances, which are sums of floats for all types. Sums of integers, also those of means, do not. */
static int split_is_exact(const split *s) {
    const int is_sum = s->op == DPR_SUM || s->op == DPR_PROD || s->op == DPR_SUMSQ || s->op == DPR_NORM1
                       || s->op == DPR_MEAN,
              rounds = s->op == DPR_NORM2 || s->op == DPR_VAR;
    return !rounds && !(is_sum && (ref_is_float(s->dtype) || ref_is_complex(s->dtype)));
}

static dpr_options split_options(const split *s, const char *strategy) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.nan = s->nan;
    options.strategy = strategy;
    return options;
}

/* Reduces [from, to) to partial result `piece`, on a place that the seed chooses among those that can. */
static int split_piece(split *s, size_t piece, size_t from, size_t to, uint64_t *seed) {
    void *partial = s->partials + piece * s->bytes;
    for (size_t first = data_below(seed, (uint32_t)s->place_count), i = 0; i < s->place_count; i++) {
        const split_place *place = &s->places[(first + i) % s->place_count];
        const dpr_options options = split_options(s, place->strategy);
        const dpr_status status = dpr_reduce_partial(place->ctx, place->in + from * ref_size(s->dtype), partial,
                                                     to - from, s->dtype, s->op, from, &options);
        if (status != DPR_ERR_STRATEGY_UNABLE)
            return EXPECT_STATUS(DPR_OK, status);
    }
    return EXPECT_THAT(0, "no place reduces this pair");
}

/* Splits into `pieces` pieces of random lengths, some of them empty. */
static int split_into(split *s, size_t pieces, uint64_t *seed) {
    size_t from = 0;
    int good = 1;
    s->pieces = pieces;
    for (size_t i = 0; i < pieces && good; i++) {
        const size_t left = SPLIT_ELEMENTS - from, average = 2 * left / (pieces - i) + 1;
        const size_t length = data_below(seed, (uint32_t)average), to = from + (length < left ? length : left);
        good = split_piece(s, i, from, i + 1 == pieces ? SPLIT_ELEMENTS : to, seed);
        from = to;
    }
    return good;
}

/* Merging from the first on in steps gives the same bytes as merging at once. */
static int split_merges(split *s, unsigned char merged[PARTIAL_MOST], uint64_t *seed) {
    const dpr_options options = split_options(s, NULL);
    _Alignas(16) unsigned char steps[PARTIAL_MOST * SPLIT_PIECES];
    size_t at = 1 + data_below(seed, (uint32_t)s->pieces);
    int good = EXPECT_STATUS(DPR_OK, dpr_partial_merge(s->partials, s->pieces, s->dtype, s->op, &options, merged))
               && EXPECT_STATUS(DPR_OK, dpr_partial_merge(s->partials, at, s->dtype, s->op, &options, steps));
    while (good && at < s->pieces) {
        const size_t n = 1 + data_below(seed, (uint32_t)(s->pieces - at));
        memcpy(steps + s->bytes, s->partials + at * s->bytes, n * s->bytes);
        good = EXPECT_STATUS(DPR_OK, dpr_partial_merge(steps, n + 1, s->dtype, s->op, &options, steps));
        at += n;
    }
    char text[160];
    split_describe(s, text);
    return good && EXPECT_THAT(memcmp(steps, merged, s->bytes) == 0, "%s: steps give other bytes", text);
}

/* Finishes the merged partial result, a variance with both divisors. */
static int split_finish(split *s, const unsigned char *merged) {
    dpr_options options = split_options(s, NULL);
    _Alignas(16) unsigned char out[16];
    char why[512], text[160];
    int good = 1;
    split_describe(s, text);
    for (int sample = 0; sample <= (s->op == DPR_VAR) && good; sample++) {
        options.divisor = sample ? DPR_DIVISOR_SAMPLE : DPR_DIVISOR_POPULATION;
        s->expected.sample = sample;
        good = EXPECT_STATUS(DPR_OK, dpr_partial_finish(merged, 1, s->dtype, s->op, &options, out))
               && EXPECT_THAT(ref_check(&s->expected, out, why, sizeof why), "%s, divisor %d\n  %s", text, sample, why);
    }
    return good;
}

static int split_check(split *s, size_t pieces, const unsigned char *whole, uint64_t *seed) {
    _Alignas(16) unsigned char merged[PARTIAL_MOST];
    char text[160];
    if (!split_into(s, pieces, seed) || !split_merges(s, merged, seed))
        return 0;
    split_describe(s, text);
    if (split_is_exact(s) && !EXPECT_THAT(memcmp(merged, whole, s->bytes) == 0, "%s: other bytes than whole", text))
        return 0;
    return split_finish(s, merged);
}

/* Checks splits of one array of the pair. `places` reach the array at `in`, of SPLIT_ELEMENTS elements. */
static int split_check_pair(split *s, uint64_t *seed) {
    static const size_t pieces[] = {1, 2, 7, 61, SPLIT_PIECES};
    _Alignas(16) unsigned char whole[PARTIAL_MOST];
    dpr_ctx *cpu = s->places[0].ctx;
    const dpr_options options = split_options(s, "cpu.serial");
    s->bytes = dpr_partial_size(s->op, s->dtype);
    ref_reduce(&s->expected, s->op, s->dtype, s->nan, s->in, SPLIT_ELEMENTS);
    int good =
        EXPECT_TRUE(s->bytes > 16 && s->bytes <= PARTIAL_MOST)
        && EXPECT_STATUS(DPR_OK, dpr_reduce_partial(cpu, s->in, whole, SPLIT_ELEMENTS, s->dtype, s->op, 0, &options));
    for (size_t i = 0; i < LENGTH(pieces) && pieces[i] <= s->most_pieces && good; i++)
        good = split_check(s, pieces[i], whole, seed);
    return good;
}

#endif
