#include "segments.h"

#include "pairs.h"
#include "partial.h"

enum { BLOCK = 256 }; /* segments that `many` takes at a time */

static int64_t number_at(dpr_dtype dtype, const void *numbers, uint64_t i) {
    switch (dtype) {
    case DPR_I32:
        return ((const int32_t *)numbers)[i];
    case DPR_U32:
        return ((const uint32_t *)numbers)[i];
    default: /* numbers of type U64 are compared as such below */
        return ((const int64_t *)numbers)[i];
    }
}

/* A segment that begins and ends at these numbers. */
static dpr_range range_of(dpr_dtype dtype, int64_t begin, int64_t end) {
    const int is_empty = dtype == DPR_U64 ? (uint64_t)begin >= (uint64_t)end : begin >= end;
    return is_empty ? (dpr_range){0, 0} : (dpr_range){(size_t)begin, (size_t)end};
}

dpr_range dpr_segment_range(const dpr_segment_list *list, uint64_t i) {
    return range_of(list->dtype, number_at(list->dtype, list->begins, i), number_at(list->dtype, list->ends, i));
}

uint64_t dpr_segment_elements(const dpr_segment_list *list, uint64_t first, uint64_t end) {
    const int is_offsets = list->ends == (const char *)list->begins + dpr_dtypes[DPR_ROW(list->dtype)].size;
    uint64_t elements = 0;
    if (is_offsets && first < end) {
        const dpr_range all = range_of(list->dtype, number_at(list->dtype, list->begins, first),
                                       number_at(list->dtype, list->ends, end - 1));
        return all.end - all.begin;
    }
    for (uint64_t i = first; i < end; i++) {
        const dpr_range r = dpr_segment_range(list, i);
        elements += r.end - r.begin;
    }
    return elements;
}

/* Bytes of a result, or of a partial result if these are wanted. */
DPR_INLINE size_t out_bytes(dpr_op op, dpr_dtype dtype, uint64_t label) {
    return label ? sizeof(uint64_t) * (size_t)dpr_partial_words(op, dtype) : dpr_pair_size(op, dtype);
}

void *dpr_segment_out(const dpr_run *run, uint64_t i) {
    return (unsigned char *)run->out + i * out_bytes(dpr_key_op(&run->key), dpr_key_dtype(&run->key), run->label);
}

/* ---- The loops, one for each pair ---- */

DPR_INLINE void fold_range(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *in, dpr_range r,
                           dpr_acc *acc) {
    for (size_t i = r.begin; i < r.end; i++)
        dpr_acc_add(op, dtype, nan, acc, dpr_element_load(dtype, in + i * dpr_element_size(dtype)), i);
}

/* Folds the same elements, at most DPR_SHORT_SEGMENT, for VAR: dpr_acc_add() divides for each element, this for the
 * mean. Four sums of squares round less than one. The mean is not finite if there are infinities or NaNs, if the sum
 * overflows, or if there is no element. */
DPR_INLINE void fold_variance(dpr_dtype dtype, dpr_nan nan, const unsigned char *in, dpr_range r, dpr_acc *acc) {
    double re[DPR_SHORT_SEGMENT], im[DPR_SHORT_SEGMENT], sum[2] = {0}, off[2] = {0}, squares[4] = {0};
    size_t n = 0;
    for (size_t i = r.begin; i < r.end; i++) {
        const dpr_element e = dpr_element_load(dtype, in + i * dpr_element_size(dtype));
        if (nan == DPR_NAN_IGNORE && dpr_element_is_nan(dtype, e))
            continue;
        re[n] = dpr_acc_number(dtype, e);
        im[n] = e.im;
        sum[0] += re[n];
        sum[1] += im[n++];
    }
    const double mean[] = {sum[0] / (double)n, sum[1] / (double)n};
    if (!isfinite(mean[0]) || !isfinite(mean[1])) {
        fold_range(DPR_VAR, dtype, nan, in, r, acc);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double re_off = re[i] - mean[0], im_off = im[i] - mean[1];
        off[0] += re_off;
        off[1] += im_off;
        squares[i % 4] += re_off * re_off + im_off * im_off;
    }
    *acc = dpr_acc_of_mean(n, mean[0], mean[1], off[0], off[1], (squares[0] + squares[1]) + (squares[2] + squares[3]));
}

/* Writes the result or the partial result of a segment. acc->index counts from the beginning of the array. */
DPR_INLINE void write_segment(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_run *run, dpr_range r, dpr_acc *acc,
                              void *out) {
    const int is_index = op == DPR_ARGMIN || op == DPR_ARGMAX;
    if (run->label) {
        dpr_acc_finish_partial(run, r.end - r.begin, acc, out);
        return;
    }
    if (is_index && acc->index >= 0 && run->segments->index == DPR_INDEX_IN_SEGMENT)
        acc->index -= (int64_t)r.begin;
    dpr_acc_add_init(op, dtype, nan, acc, &run->init);
    dpr_acc_write(op, dtype, acc, &run->init, out);
}

DPR_INLINE uint64_t reduce(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_run *run, uint64_t first, uint64_t end,
                           dpr_segment_limits limits) {
    const dpr_segment_list *list = run->segments;
    const size_t bytes = out_bytes(op, dtype, run->label);
    unsigned char *out = dpr_segment_out(run, first);
    uint64_t left_out = 0;
    for (uint64_t i = first; i < end; i++, out += bytes) {
        const dpr_range r = dpr_segment_range(list, i);
        const size_t n = r.end - r.begin;
        dpr_acc acc = dpr_acc_neutral(op, dtype);
        if (n > limits.whole) {
            left_out++;
            continue;
        }
        if (n > limits.folded)
            limits.fold(run->in, r.begin, n, &acc);
        else if (op == DPR_VAR && n <= DPR_SHORT_SEGMENT && !run->label)
            fold_variance(dtype, nan, run->in, r, &acc);
        else
            fold_range(op, dtype, nan, run->in, r, &acc);
        write_segment(op, dtype, nan, run, r, &acc, out);
    }
    return left_out;
}

#define DPR_PAIR_DEFINE(OP, DTYPE, NAN)                                                                                \
    static uint64_t DPR_PAIR_NAME(OP, DTYPE, NAN)(const dpr_run *run, uint64_t first, uint64_t end,                    \
                                                  dpr_segment_limits limits) {                                         \
        if (DPR_PAIR_IS_VALID(OP, DTYPE))                                                                              \
            return reduce(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, run, first, end, limits);                              \
        return 0;                                                                                                      \
    }
DPR_PAIRS

static uint64_t (*const reduce_pair[2][DPR_OP_COUNT][DPR_DTYPE_COUNT])(const dpr_run *run, uint64_t first, uint64_t end,
                                                                       dpr_segment_limits limits) = DPR_PAIRS_TABLE;

static uint64_t reduce_each(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits) {
    return reduce_pair[run->key.f.nan][run->key.f.op][run->key.f.dtype](run, first, end, limits);
}

/* ---- Many at a time ---- */

/* Segments first, first + 1 ... of a list. */
typedef struct block {
    uint64_t first;
    size_t count;
    uint64_t begins[BLOCK], lengths[BLOCK]; /* in elements */
    int has_long;                           /* 1: some have more than DPR_MANY_LONGEST */
} block;

#define DEFINE_RANGES(T)                                                                                               \
    static void ranges_##T(const dpr_segment_list *list, block *b) {                                                   \
        const T *begins = (const T *)list->begins + b->first, *ends = (const T *)list->ends + b->first;                \
        for (size_t i = 0; i < b->count; i++) {                                                                        \
            const int is_empty = begins[i] >= ends[i];                                                                 \
            b->begins[i] = is_empty ? 0 : (uint64_t)begins[i];                                                         \
            b->lengths[i] = is_empty ? 0 : (uint64_t)ends[i] - (uint64_t)begins[i];                                    \
            b->has_long |= b->lengths[i] > DPR_MANY_LONGEST;                                                           \
        }                                                                                                              \
    }
DEFINE_RANGES(int32_t)
DEFINE_RANGES(uint32_t)
DEFINE_RANGES(int64_t)
DEFINE_RANGES(uint64_t)

static void find_ranges(const dpr_segment_list *list, block *b) {
    b->has_long = 0;
    switch (list->dtype) {
    case DPR_I32:
        ranges_int32_t(list, b);
        break;
    case DPR_U32:
        ranges_uint32_t(list, b);
        break;
    case DPR_I64:
        ranges_int64_t(list, b);
        break;
    default:
        ranges_uint64_t(list, b);
        break;
    }
}

/* Makes indices of `count` results, which count from their segments' beginnings, those in the array. */
static void count_in_array(const uint64_t *begins, size_t count, int64_t *out) {
    for (size_t i = 0; i < count; i++)
        out[i] += out[i] >= 0 ? (int64_t)begins[i] : 0;
}

/* MINMAX of at most BLOCK short segments, as MIN and MAX. */
static void find_both_extremes(const dpr_run *run, dpr_many_segments segments) {
    const size_t size = dpr_dtypes[run->key.f.dtype].size;
    unsigned char found[BLOCK * DPR_RESULT_BYTES], *const out = segments.out;
    for (size_t k = 0; k < 2; k++) {
        const dpr_run one = dpr_run_extreme(run, (int)k);
        segments.out = found;
        segments.init = &one.init;
        (void)dpr_cpu_fold_many (&one.key)(&segments, NULL);
        dpr_results_spread(out + k * size, 2, found, segments.count, size);
    }
}

/* Reduces segments i .. end - 1 of a block, which are short. */
static void reduce_short(const dpr_run *run, const block *b, size_t i, size_t end, dpr_segment_limits limits) {
    const dpr_op op = dpr_key_op(&run->key);
    const unsigned char *in = run->in;
    const size_t may_be_unsure = op == DPR_NORM2 || op == DPR_VAR ? end - i : 0;
    unsigned char unsure[BLOCK];
    const dpr_many_segments segments = {.in = in,
                                        .in_end = in ? in + run->count * dpr_dtypes[run->key.f.dtype].size : NULL,
                                        .begins = b->begins + i,
                                        .lengths = b->lengths + i,
                                        .count = end - i,
                                        .out = dpr_segment_out(run, b->first + i),
                                        .unsure = unsure,
                                        .init = &run->init};
    memset(unsure, 0, may_be_unsure);
    if (op == DPR_MINMAX)
        find_both_extremes(run, segments);
    else
        (void)limits.many(&segments, NULL);
    for (size_t k = 0; k < may_be_unsure; k++)
        if (unsure[k])
            (void)reduce_each(run, b->first + i + k, b->first + i + k + 1, limits);
    if (dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX && run->segments->index == DPR_INDEX_IN_ARRAY)
        count_in_array(segments.begins, segments.count, dpr_segment_out(run, b->first + i));
}

/* The end of the segments from i on that are all long, or all short. */
static size_t end_of_stretch(const block *b, size_t i) {
    const int is_long = b->lengths[i] > DPR_MANY_LONGEST;
    size_t end = i + 1;
    if (!b->has_long)
        return b->count;
    while (end < b->count && (b->lengths[end] > DPR_MANY_LONGEST) == is_long)
        end++;
    return end;
}

static uint64_t reduce_many(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits) {
    uint64_t left_out = 0;
    block b;
    for (b.first = first; b.first < end; b.first += b.count) {
        b.count = end - b.first < BLOCK ? (size_t)(end - b.first) : BLOCK;
        find_ranges(run->segments, &b);
        for (size_t i = 0, next; i < b.count; i = next) {
            next = end_of_stretch(&b, i);
            if (b.lengths[i] > DPR_MANY_LONGEST)
                left_out += reduce_each(run, b.first + i, b.first + next, limits);
            else
                reduce_short(run, &b, i, next, limits);
        }
    }
    return left_out;
}

uint64_t dpr_cpu_segments(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits) {
    return limits.many && !run->label ? reduce_many(run, first, end, limits) : reduce_each(run, first, end, limits);
}
