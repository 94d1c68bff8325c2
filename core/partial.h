/* Partial results (strategy.h): accumulators of some elements as bytes that any machine can merge with others and
 * finish. Their words are little-endian, as those of every machine are that dpr is built for. */
#ifndef DPR_CORE_PARTIAL_H
#define DPR_CORE_PARTIAL_H

#include "acc.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dpr's partial results are little-endian, and this machine's words are not"
#endif

enum { DPR_PARTIAL_VERSION = 1, DPR_PARTIAL_WORDS = DPR_PARTIAL_HEAD + DPR_ACC_WORDS };

/* What the kernel that merges partial results writes: `meeting` in dpr_launch. */
enum { DPR_PARTIALS_MERGED, DPR_PARTIALS_FINISHED };

/* The first word: "dp", the version, the NaN policy, the operation and the type, each in its byte or two bytes. It is
 * never 0. */
DPR_INLINE uint64_t dpr_partial_label(dpr_op op, dpr_dtype dtype, dpr_nan nan) {
    return UINT64_C(0x7064) | (uint64_t)DPR_PARTIAL_VERSION << 16 | (uint64_t)nan << 24 | (uint64_t)op << 32
           | (uint64_t)dtype << 48;
}

DPR_INLINE dpr_op dpr_partial_op(uint64_t label) {
    return (dpr_op)(label >> 32 & 0xffff);
}
DPR_INLINE dpr_dtype dpr_partial_dtype(uint64_t label) {
    return (dpr_dtype)(label >> 48);
}
DPR_INLINE dpr_nan dpr_partial_nan(uint64_t label) {
    return (dpr_nan)(label >> 24 & 0xff);
}

DPR_INLINE int dpr_partial_words(dpr_op op, dpr_dtype dtype) {
    return DPR_PARTIAL_HEAD + dpr_acc_words(op, dtype);
}

/* Writes the partial result of `count` elements. */
DPR_INLINE void dpr_partial_store(uint64_t label, uint64_t count, const dpr_acc *acc, uint64_t *words) {
    words[0] = label;
    words[1] = count;
    dpr_acc_store(dpr_partial_op(label), dpr_partial_dtype(label), acc, words + DPR_PARTIAL_HEAD);
}

DPR_INLINE dpr_acc dpr_partial_load(const uint64_t *words) {
    return dpr_acc_load(dpr_partial_op(words[0]), dpr_partial_dtype(words[0]), words[1], words + DPR_PARTIAL_HEAD);
}

/* What has been merged so far. Begins as all zeros. */
typedef struct dpr_merged {
    dpr_acc acc;
    uint64_t count;
    int some; /* 0: nothing */
} dpr_merged;

/* Merges the next partial result, which has the label of those before. */
DPR_INLINE void dpr_partial_add(dpr_merged *merged, const uint64_t *words) {
    const dpr_acc next = dpr_partial_load(words);
    if (merged->some)
        dpr_acc_combine(dpr_partial_op(words[0]), dpr_partial_dtype(words[0]), &merged->acc, &next);
    else
        merged->acc = next;
    merged->count += words[1];
    merged->some = 1;
}

#endif
