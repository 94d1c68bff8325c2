#include "segments.h"

#include "pairs.h"

enum {
    PLAIN = 16,         /* elements up to which a plain loop takes less time than cpu.simd's take to begin and end */
    SHORT_BYTES = 4096, /* the same for the loops over short segments */
};

/* ---- Numbers ---- */

/* What some segments have. */
typedef struct lengths {
    uint64_t sum;
    size_t longest;
} lengths;

#define DEFINE_READ(T)                                                                                                 \
    static lengths read_##T(const T *begins, const T *ends, size_t n, dpr_range *to) {                                 \
        lengths found = {0, 0};                                                                                        \
        for (size_t i = 0; i < n; i++) {                                                                               \
            const size_t used = begins[i] < ends[i] ? SIZE_MAX : 0, begin = (size_t)begins[i] & used;                  \
            const size_t end = (size_t)ends[i] & used, length = end - begin;                                           \
            to[i] = (dpr_range){begin, end};                                                                           \
            found.sum += length;                                                                                       \
            found.longest = length > found.longest ? length : found.longest;                                           \
        }                                                                                                              \
        return found;                                                                                                  \
    }
DEFINE_READ(int32_t)
DEFINE_READ(uint32_t)
DEFINE_READ(int64_t)
DEFINE_READ(uint64_t)

/* Writes the elements of segments first .. first+n-1. */
static lengths read_ranges(const dpr_segment_list *list, uint64_t first, size_t n, dpr_range *to) {
    const size_t at = (size_t)first * dpr_dtypes[DPR_ROW(list->dtype)].size;
    const void *begins = (const unsigned char *)list->begins + at, *ends = (const unsigned char *)list->ends + at;
    switch (list->dtype) {
    case DPR_I32:
        return read_int32_t(begins, ends, n, to);
    case DPR_U32:
        return read_uint32_t(begins, ends, n, to);
    case DPR_I64:
        return read_int64_t(begins, ends, n, to);
    default:
        return read_uint64_t(begins, ends, n, to);
    }
}

dpr_range dpr_segment_range(const dpr_segment_list *list, uint64_t i) {
    dpr_range r;
    (void)read_ranges(list, i, 1, &r);
    return r;
}

void *dpr_segment_out(const dpr_run *run, uint64_t i) {
    return (unsigned char *)run->out + i * dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
}

/* ---- The loops, one for each pair ---- */

DPR_INLINE void fold_range(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *in, dpr_range r,
                           dpr_acc *acc) {
    for (size_t i = r.begin; i < r.end; i++)
        dpr_acc_add(op, dtype, nan, acc, dpr_element_load(dtype, in + i * dpr_element_size(dtype)), i);
}

DPR_INLINE void reduce(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_run *run, const dpr_range *ranges, size_t n,
                       dpr_segment_limits limits, unsigned char *out) {
    const int seeks_index = op == DPR_ARGMIN || op == DPR_ARGMAX;
    const int is_local = seeks_index && !(run->segments && run->segments->index == DPR_INDEX_IN_ARRAY);
    for (size_t i = 0; i < n; i++, out += dpr_pair_size(op, dtype)) {
        const dpr_range r = ranges[i];
        dpr_acc acc = dpr_acc_neutral(op, dtype);
        if (r.end - r.begin > limits.folded)
            limits.fold(run->in, r.begin, r.end - r.begin, &acc);
        else
            fold_range(op, dtype, nan, run->in, r, &acc);
        if (is_local && acc.index >= 0)
            acc.index -= (int64_t)r.begin;
        dpr_acc_add_init(op, dtype, nan, &acc, &run->init);
        dpr_acc_write(op, dtype, &acc, &run->init, out);
    }
}

#define DPR_PAIR_DEFINE(OP, DTYPE, NAN)                                                                                \
    static void DPR_PAIR_NAME(OP, DTYPE, NAN)(const dpr_run *run, const dpr_range *ranges, size_t n,                   \
                                              dpr_segment_limits limits, unsigned char *out) {                         \
        if (DPR_PAIR_IS_VALID(OP, DTYPE))                                                                              \
            reduce(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, run, ranges, n, limits, out);                                 \
    }
DPR_PAIRS

static void (*const reduce_pair[2][DPR_OP_COUNT][DPR_DTYPE_COUNT])(const dpr_run *run, const dpr_range *ranges,
                                                                   size_t n, dpr_segment_limits limits,
                                                                   unsigned char *out) = DPR_PAIRS_TABLE;

/* ---- Ranges ---- */

/* Ranges that are taken out of others, which leaves empty ones. */
typedef struct taken {
    size_t n;
    uint16_t place[DPR_RANGES];
    dpr_range range[DPR_RANGES];
} taken;

static void take_out_longer(dpr_range *ranges, size_t n, size_t than, taken *to) {
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].end - ranges[i].begin <= than)
            continue;
        to->place[to->n] = (uint16_t)i;
        to->range[to->n++] = ranges[i];
        ranges[i] = (dpr_range){0, 0};
    }
}

void dpr_cpu_ranges(const dpr_run *run, dpr_range *ranges, size_t n, size_t longest, dpr_segment_limits limits,
                    void *out) {
    const size_t size = dpr_pair_size(dpr_key_op(&run->key), dpr_key_dtype(&run->key));
    unsigned char *to = out;
    taken longer;
    longer.n = 0;
    if (!limits.segments) {
        reduce_pair[run->key.f.nan][run->key.f.op][run->key.f.dtype](run, ranges, n, limits, to);
        return;
    }
    if (longest > limits.folded)
        take_out_longer(ranges, n, limits.folded, &longer);
    (void)limits.segments(&run->init, run->in, ranges, n, to);
    for (size_t i = 0; i < longer.n; i++)
        reduce_pair[run->key.f.nan][run->key.f.op][run->key.f.dtype](run, &longer.range[i], 1, limits,
                                                                     to + longer.place[i] * size);
}

dpr_segment_limits dpr_cpu_segment_limits(const dpr_key *key, size_t whole) {
    const dpr_init none = {{0}, 0, 0};
    const dpr_fold_segments segments = dpr_cpu_fold_segments(key);
    if (!segments(&none, NULL, NULL, 0, NULL))
        return (dpr_segment_limits){NULL, dpr_cpu_fold(key), PLAIN, whole};
    return (dpr_segment_limits){segments, dpr_cpu_fold(key), SHORT_BYTES / dpr_dtypes[key->f.dtype].size, whole};
}

uint64_t dpr_cpu_segments(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits, dpr_leave *leave,
                          void *user) {
    dpr_range ranges[DPR_RANGES];
    uint64_t elements = 0;
    taken longer;
    for (uint64_t i = first; i < end; i += DPR_RANGES) {
        const size_t n = end - i < DPR_RANGES ? (size_t)(end - i) : DPR_RANGES;
        const lengths found = read_ranges(run->segments, i, n, ranges);
        longer.n = 0;
        if (found.longest > limits.whole)
            take_out_longer(ranges, n, limits.whole, &longer);
        dpr_cpu_ranges(run, ranges, n, found.longest, limits, dpr_segment_out(run, i));
        elements += found.sum;
        for (size_t k = 0; k < longer.n; k++) {
            elements -= longer.range[k].end - longer.range[k].begin;
            leave(user, i + longer.place[k], longer.range[k]);
        }
    }
    return elements;
}
