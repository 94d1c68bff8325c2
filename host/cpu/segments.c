#include "segments.h"

#include "pairs.h"

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

dpr_range dpr_segment_range(const dpr_segment_list *list, uint64_t i) {
    const int64_t begin = number_at(list->dtype, list->begins, i), end = number_at(list->dtype, list->ends, i);
    const int is_empty = list->dtype == DPR_U64 ? (uint64_t)begin >= (uint64_t)end : begin >= end;
    return is_empty ? (dpr_range){0, 0} : (dpr_range){(size_t)begin, (size_t)end};
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

DPR_INLINE uint64_t reduce(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_run *run, uint64_t first, uint64_t end,
                           dpr_segment_limits limits) {
    const dpr_segment_list *list = run->segments;
    const int is_local = (op == DPR_ARGMIN || op == DPR_ARGMAX) && list->index == DPR_INDEX_IN_SEGMENT;
    unsigned char *out = dpr_segment_out(run, first);
    uint64_t left_out = 0;
    for (uint64_t i = first; i < end; i++, out += dpr_pair_size(op, dtype)) {
        const dpr_range r = dpr_segment_range(list, i);
        const size_t n = r.end - r.begin;
        dpr_acc acc = dpr_acc_neutral(op, dtype);
        if (n > limits.whole) {
            left_out++;
            continue;
        }
        if (n > limits.folded)
            limits.fold(run->in, r.begin, n, &acc);
        else
            fold_range(op, dtype, nan, run->in, r, &acc);
        if (is_local && acc.index >= 0)
            acc.index -= (int64_t)r.begin;
        dpr_acc_add_init(op, dtype, nan, &acc, &run->init);
        dpr_acc_write(op, dtype, &acc, &run->init, out);
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

uint64_t dpr_cpu_segments(const dpr_run *run, uint64_t first, uint64_t end, dpr_segment_limits limits) {
    return reduce_pair[run->key.f.nan][run->key.f.op][run->key.f.dtype](run, first, end, limits);
}
