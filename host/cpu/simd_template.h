/* The vector loops of cpu.simd. One small file per instruction set includes this once, compiled for that set, after
 * defining
 *
 *   DPR_VECTOR_BYTES        16, 32 or 64
 *   DPR_KERNELS             name of the dpr_cpu_kernels to define
 *   DPR_KERNELS_NAME        its string
 *   DPR_MANY                name of the dpr_cpu_many that it points to
 *   DPR_F32_FROM_F16(at), DPR_F64_FROM_F32(at)
 *                           optional, both or none: a vector made of as many elements in memory of any alignment
 *
 * The loops fold whole vectors; acc.h folds the elements after the last whole vector. */

#include "simd_lanes.h"

enum { AHEAD = 2048 }; /* distance in bytes from the load to the prefetch */

/* Prefetches the `bytes` bytes that begin AHEAD bytes after `at`. Loops that read more slowly than memory delivers need
 * it, because the hardware prefetches too late for them; most other loops would take longer. */
DPR_INLINE void prefetch(const unsigned char *at, size_t bytes) {
    DPR_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + AHEAD + i);
}

/* Whether the loop of fold_vectors() for this operation and type gains by prefetch(). With AVX2 on an EPYC, these pairs
 * take 2 to 24 % less time in long arrays; the others would take up to 31 % more. */
DPR_INLINE int reads_slowly(dpr_op op, dpr_dtype dtype) {
    switch (op) {
    case DPR_SUM:
        return dpr_element_size(dtype) <= 2;
    case DPR_PROD:
        return 1;
    case DPR_COUNT:
        return dpr_element_size(dtype) <= 4;
    case DPR_MIN:
    case DPR_MAX:
    case DPR_ARGMIN:
    case DPR_ARGMAX:
        return dpr_element_kind(dtype) == DPR_KIND_FLOAT;
    default:
        return 0;
    }
}

/* Folds `vectors` vectors of elements. Four accumulators hide the latency of combine(). */
DPR_INLINE vec fold_vectors(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *in, size_t vectors) {
    vec a = neutral(op, dtype), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 4 <= vectors; i += 4) {
        if (reads_slowly(op, dtype))
            prefetch(in + i * VECTOR, 4 * VECTOR);
        a = combine(op, dtype, a, lift(op, dtype, nan, load(in + i * VECTOR)));
        b = combine(op, dtype, b, lift(op, dtype, nan, load(in + (i + 1) * VECTOR)));
        c = combine(op, dtype, c, lift(op, dtype, nan, load(in + (i + 2) * VECTOR)));
        d = combine(op, dtype, d, lift(op, dtype, nan, load(in + (i + 3) * VECTOR)));
    }
    for (; i < vectors; i++)
        a = combine(op, dtype, a, lift(op, dtype, nan, load(in + i * VECTOR)));
    return combine(op, dtype, combine(op, dtype, a, b), combine(op, dtype, c, d));
}

/* Folds the lanes of a vector of accumulators to one accumulator. */
DPR_INLINE dpr_acc gather(dpr_op op, dpr_dtype dtype, vec x) {
    unsigned char bytes[VECTOR];
    size_t size = lane_size(op, dtype);
    dpr_dtype lane = size == 8 ? DPR_I64 : size == 4 ? DPR_I32 : size == 2 ? DPR_I16 : DPR_I8;
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    memcpy(bytes, &x, sizeof x);
    for (size_t at = 0; at < VECTOR; at += size) {
        uint64_t bits = dpr_element_load(lane, bytes + at).bits;
        dpr_acc one = {.bits = bits, .rank = (int64_t)bits};
        dpr_acc_combine(op, dtype, &acc, &one);
    }
    return acc;
}

/* ---- The whole vectors of a range ------------------------------------------------------------------------------- */

/* A range of elements: `vectors` whole vectors, and the `rest` elements after them. */
typedef struct span {
    const unsigned char *in;
    size_t first, count, vectors, rest;
} span;

DPR_INLINE span span_of(dpr_dtype dtype, const void *in, size_t first, size_t count) {
    size_t size = dpr_element_size(dtype), vectors = count / (VECTOR / size);
    if (dtype == DPR_C128) /* factors_at() takes two vectors */
        vectors -= vectors % 2;
    return (span){(const unsigned char *)in + first * size, first, count, vectors, count - vectors * (VECTOR / size)};
}

/* Folds the whole vectors for operations whose vectors of accumulators become one without a search. */
DPR_INLINE void fold_lanes(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    dpr_acc whole = gather(op, dtype, fold_vectors(op, dtype, nan, range.in, range.vectors));
    if (op == DPR_SUM && dpr_element_kind(dtype) == DPR_KIND_SINT)
        whole.bits -= range.vectors * (VECTOR / dpr_element_size(dtype)) * dpr_sign_bit(dtype);
    dpr_acc_combine(op, dtype, acc, &whole);
}

/* Folds the whole vectors for ALL and ANY, block by block, until the answer is known. */
DPR_INLINE void fold_truth(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    for (size_t i = 0; i < range.vectors; i += BLOCK) {
        size_t block = range.vectors - i < BLOCK ? range.vectors - i : BLOCK;
        if (any_bit(fold_vectors(op, dtype, nan, range.in + i * VECTOR, block))) {
            acc->bits = op == DPR_ANY;
            break;
        }
    }
}

/* Index of the first element with this rank, which must be in these vectors. */
DPR_INLINE size_t find_rank(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *in, int64_t rank) {
    size_t size = dpr_element_size(dtype);
    vec wanted = splat(size, (uint64_t)rank);
    const unsigned char *at = in;
    while (!any_bit(equal(size, ranks(op, dtype, nan, load(at)), wanted)))
        at += VECTOR;
    while (dpr_rank_of(op, dtype, dpr_element_load(dtype, at)) != rank)
        at += size;
    return (size_t)(at - in) / size;
}

/* Folds the whole vectors for ARGMIN and ARGMAX. Finds the best rank of each block, and its index only if the rank is
 * better than all before. */
DPR_INLINE void fold_index(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    int has_none = nan == DPR_NAN_IGNORE && dpr_element_kind(dtype) == DPR_KIND_FLOAT;
    dpr_op best_op = dpr_rank_reversed(op) ? DPR_MAX : DPR_MIN;
    for (size_t i = 0; i < range.vectors; i += BLOCK) {
        size_t block = range.vectors - i < BLOCK ? range.vectors - i : BLOCK;
        const unsigned char *at = range.in + i * VECTOR;
        dpr_acc best = gather(best_op, dtype, fold_vectors(op, dtype, nan, at, block));
        if (has_none && best.rank == dpr_rank_greatest(dtype))
            continue;
        if (acc->index < 0 || best.rank < acc->rank) {
            size_t index = i * (VECTOR / dpr_element_size(dtype)) + find_rank(op, dtype, nan, at, best.rank);
            acc->rank = best.rank;
            acc->index = (int64_t)(range.first + index);
        }
    }
}

/* Folds the elements after the whole vectors one by one, in an accumulator that stays in registers. */
DPR_INLINE void fold_rest(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    size_t size = dpr_element_size(dtype);
    dpr_acc rest = dpr_acc_neutral(op, dtype);
    for (size_t i = range.count - range.rest; i < range.count; i++)
        dpr_acc_add(op, dtype, nan, &rest, dpr_element_load(dtype, range.in + i * size), range.first + i);
    dpr_acc_combine(op, dtype, acc, &rest);
}

#include "simd_floats.h"
#include "simd_numbers.h"

/* ---- All together ----------------------------------------------------------------------------------------------- */

/* Which template folds the whole vectors of a pair. */
#define DPR_IS_FLOAT_ARITHMETIC(OP, DTYPE)                                                                             \
    ((DPR_##OP == DPR_SUM || DPR_##OP == DPR_PROD) && !((int)DPR_KIND_OF_##DTYPE & (int)DPR_DOMAIN_BITS))
#define DPR_IS_INDEX(OP) (DPR_##OP == DPR_ARGMIN || DPR_##OP == DPR_ARGMAX)
#define DPR_IS_TRUTH(OP) (DPR_##OP == DPR_ALL || DPR_##OP == DPR_ANY)

#define DPR_IS_FUSED_ONLY(OP) ((int)DPR_KERNEL_OF_##OP == (int)DPR_KERNEL_FUSED)

#define DPR_PAIR_FOLD(OP, DTYPE)                                                                                       \
    (DPR_IS_FLOAT_ARITHMETIC(OP, DTYPE) ? fold_floats                                                                  \
     : DPR_IS_INDEX(OP)                 ? fold_index                                                                   \
     : DPR_IS_TRUTH(OP)                 ? fold_truth                                                                   \
                                        : fold_lanes)
#define DPR_PAIR_FOLD_REST(OP, DTYPE) (DPR_IS_FLOAT_ARITHMETIC(OP, DTYPE) ? fold_rest_of_floats : fold_rest)

#define DPR_PAIR_DEFINE(OP, DTYPE, NAN)                                                                                \
    static void DPR_PAIR_NAME(OP, DTYPE, NAN)(const void *in, size_t first, size_t count, dpr_acc *acc) {              \
        if (!DPR_PAIR_IS_VALID(OP, DTYPE))                                                                             \
            return;                                                                                                    \
        span range = span_of(DPR_##DTYPE, in, first, count);                                                           \
        if (DPR_IS_FUSED_ONLY(OP)) {                                                                                   \
            fold_fused_only(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, range, acc);                                         \
            return;                                                                                                    \
        }                                                                                                              \
        if (range.vectors > 0)                                                                                         \
            DPR_PAIR_FOLD(OP, DTYPE)(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, range, acc);                                \
        if (range.rest > 0)                                                                                            \
            DPR_PAIR_FOLD_REST(OP, DTYPE)(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, range, acc);                           \
    }
DPR_PAIRS

const dpr_cpu_kernels DPR_KERNELS = {
    .name = DPR_KERNELS_NAME,
    .vector_bytes = DPR_VECTOR_BYTES,
    .many = &DPR_MANY,
    .fold = DPR_PAIRS_TABLE,
};
