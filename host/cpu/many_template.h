/* Many results at a time: short segments, whose elements lie one behind the other, and columns, whose neighbours are
 * elements of other results. One small file per instruction set includes this once, compiled for that set, after
 * defining
 *
 *   DPR_VECTOR_BYTES    16 or 32
 *   DPR_MANY            name of the dpr_cpu_many to define
 *   DPR_F64_FROM_F32(at), DPR_F64_FROM_F16(at)
 *                       optional: a vector of F64 made of as many elements in memory of any alignment
 *   DPR_S4_FROM_S1(x), DPR_S4_FROM_S2(x)
 *                       optional: the first lanes of a vector of integers of one and of two bytes, in four bytes each
 *
 * A piece is the elements that become one vector of accumulators. For sums and products it has LANES elements, which
 * are converted to 64 bits each; for other operations a piece is a vector of elements, which stay as wide as they are;
 * for indices of elements of one and two bytes it has as many of them as a vector has lanes of four bytes. So sums of
 * F32 are formed in F64 and do not overflow, and sums of F64 keep what they have lost to rounding. MEAN is a sum that
 * is divided where it is written. SUMSQ, NORM1 and NORM2 are sums of squares and magnitudes; VAR forms the mean of a
 * segment, and then two sums: of the distances from it and of their squares. */

#include "means.h"
#include "simd_lanes.h"

/* ---- Pairs ------------------------------------------------------------------------------------------------------ */

/* How accumulators of an operation are joined. */
DPR_INLINE dpr_op folded(dpr_op op) {
    const int is_sum = op == DPR_MEAN || op == DPR_SUMSQ || op == DPR_NORM1 || op == DPR_NORM2 || op == DPR_VAR;
    return is_sum ? DPR_SUM : op;
}

DPR_INLINE int is_arithmetic(dpr_op op) {
    return folded(op) == DPR_SUM || op == DPR_PROD;
}

DPR_INLINE int is_index(dpr_op op) {
    return op == DPR_ARGMIN || op == DPR_ARGMAX;
}

DPR_INLINE int is_float(dpr_op op, dpr_dtype dtype) {
    return is_arithmetic(op) && (op == DPR_NORM2 || op == DPR_VAR || !dpr_acc_is_integer(dtype));
}

/* True for sums that keep what they have lost. */
DPR_INLINE int keeps_lost(dpr_op op, dpr_dtype dtype) {
    return folded(op) == DPR_SUM && op != DPR_VAR && is_float(op, dtype) && dpr_pair_result(op, dtype) == DPR_F64;
}

/* True if accumulators have more than a value. */
DPR_INLINE int has_more(dpr_op op, dpr_dtype dtype) {
    return keeps_lost(op, dtype) || is_index(op) || op == DPR_VAR;
}

/* The pairs that have loops over segments here. */
DPR_INLINE int has_segments(dpr_op op, dpr_dtype dtype, dpr_nan nan) {
    if (dpr_acc_is_complex(dtype))
        return 0;
    if (op == DPR_MEAN)
        return dpr_sum_gives_mean(dpr_element_kind(dtype), dpr_element_size(dtype), nan);
    if (op == DPR_VAR)
        return dpr_acc_is_integer(dtype) || nan == DPR_NAN_PROPAGATE;
    return is_arithmetic(op) || is_index(op) || op == DPR_MIN || op == DPR_MAX || op == DPR_ALL || op == DPR_ANY
           || op == DPR_BAND || op == DPR_BOR || op == DPR_BXOR;
}

/* The pairs that have loops over columns. VAR would read every column twice, and norms of F64 whose squares leave F64's
 * range would be found only when all rows have been read. */
DPR_INLINE int has_columns(dpr_op op, dpr_dtype dtype, dpr_nan nan) {
    return has_segments(op, dtype, nan) && op != DPR_VAR && !(op == DPR_NORM2 && dpr_acc_is_scaled(dtype));
}

/* True for elements that are narrower than the lanes of their accumulators, which have room for an index. */
DPR_INLINE int widens_ranks(dpr_op op, dpr_dtype dtype) {
    return is_index(op) && dpr_element_size(dtype) < 4;
}

/* Bytes of the lanes of a vector of accumulators. */
DPR_INLINE size_t acc_size(dpr_op op, dpr_dtype dtype) {
    return is_arithmetic(op) ? 8 : widens_ranks(op, dtype) ? 4 : dpr_element_size(dtype);
}

/* Elements of a piece. */
DPR_INLINE size_t piece_of(dpr_op op, dpr_dtype dtype) {
    return VECTOR / acc_size(op, dtype);
}

/* ---- Accumulators ----------------------------------------------------------------------------------------------- */

/* An accumulator in every lane. */
typedef struct accs {
    vec value;
    vec more; /* for sums that keep it, what they have lost, in F64; for ARGMIN and ARGMAX the index of the rank; for
                 VAR, where `value` is the sum of squared distances from the mean, that of the distances */
} accs;

#if !defined(DPR_F64_FROM_F16)
/* LANES elements of F16. Normal numbers get the other exponent by an addition, infinities and NaNs by two. Those with
 * exponent 0 are multiples of 2^-24, which are put together as integers. */
DPR_INLINE vec_f8 f64_from_f16(const void *at) {
    const vec_u8 x = __builtin_convertvector(load_U16(at), vec_u8), magnitude = x & 0x7fff;
    const vec_u8 rebias = (vec_u8){0} + ((uint64_t)(1023 - 15) << 52);
    const vec_u8 normal = (magnitude << 42) + rebias + (rebias & (vec_u8)((vec_s8)magnitude >= 0x7c00));
    const vec_f8 counted = (vec_f8)(magnitude | 0x4330000000000000) - 0x1p52; /* 2^52 + magnitude */
    const vec number = select((vec)((vec_s8)magnitude < 0x400), (vec)(counted * 0x1p-24), (vec)normal);
    return (vec_f8)(number | (vec)((x & 0x8000) << 48));
}
#define DPR_F64_FROM_F16 f64_from_f16
#endif

DPR_INLINE vec_f8 floats_at(dpr_dtype dtype, const unsigned char *at) {
    if (dtype == DPR_F64)
        return (vec_f8)load(at);
    if (dtype == DPR_F16)
        return DPR_F64_FROM_F16(at);
    if (dtype == DPR_BF16) { /* the upper half of an F32 */
        const some_U32 wide = __builtin_convertvector(load_U16(at), some_U32) << 16;
        return DPR_F64_FROM_F32(&wide);
    }
    return DPR_F64_FROM_F32(at);
}

#if !defined(DPR_S4_FROM_S2)
/* The first lanes of x, in lanes of twice the size. */
DPR_INLINE vec twice_as_wide(size_t size, vec x) {
    int8_t half_s1 __attribute__((vector_size(VECTOR / 2)));
    int16_t half_s2 __attribute__((vector_size(VECTOR / 2)));
    memcpy(&half_s1, &x, sizeof half_s1);
    memcpy(&half_s2, &x, sizeof half_s2);
    return size == 1 ? (vec) __builtin_convertvector(half_s1, vec_s2) : (vec) __builtin_convertvector(half_s2, vec_s4);
}
#define DPR_S4_FROM_S1(x) twice_as_wide(2, twice_as_wide(1, x))
#define DPR_S4_FROM_S2(x) twice_as_wide(2, x)
#endif

/* A vector that begins with these bytes, at most 16. A copy to a vector would go through memory, and a load that reads
 * more than the store before it has written waits for it. */
DPR_INLINE vec load_bytes(const unsigned char *at, size_t bytes) {
    uint64_t first = 0, second = 0;
    vec_u8 x = {0};
    memcpy(&first, at, bytes < 8 ? bytes : 8);
    x[0] = first;
    if (bytes > 8) {
        memcpy(&second, at + 8, bytes - 8);
        x[1] = second;
    }
    return (vec)x;
}

/* Ranks of as many elements of one or two bytes as a vector has lanes of four. */
DPR_INLINE vec wide_ranks(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at) {
    const size_t size = dpr_element_size(dtype);
    const vec x = ranks(op, dtype, nan, load_bytes(at, VECTOR / 4 * size));
    return size == 1 ? DPR_S4_FROM_S1(x) : DPR_S4_FROM_S2(x);
}

/* Converts integers to F64. The bits of 1.5 * 2^52 plus an integer of up to four bytes are the bits of the sum of both
 * as numbers, because the last bit stands for 1. */
DPR_INLINE vec_f8 numbers_of(dpr_dtype dtype, vec_u8 x) {
    if (dpr_element_size(dtype) <= 4)
        return (vec_f8)(x + 0x4338000000000000) - 0x1.8p52;
    return dtype == DPR_U64 ? __builtin_convertvector(x, vec_f8) : __builtin_convertvector((vec_s8)x, vec_f8);
}

/* What is added up, or multiplied, for integers. */
DPR_INLINE vec integer_terms(dpr_op op, dpr_dtype dtype, vec_u8 x) {
    if (op == DPR_NORM2)
        return (vec)(numbers_of(dtype, x) * numbers_of(dtype, x));
    return op == DPR_VAR ? (vec)numbers_of(dtype, x) : (vec)whole_terms(op, dtype, x);
}

/* What is added up, or multiplied, for floating-point numbers. */
DPR_INLINE vec float_terms(dpr_op op, vec_f8 x) {
    if (op == DPR_SUMSQ || op == DPR_NORM2)
        return (vec)(x * x);
    return op == DPR_NORM1 ? magnitudes(DPR_F64, (vec)x) : (vec)x;
}

/* The piece at `at`. */
DPR_INLINE vec piece_at(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at) {
    if (widens_ranks(op, dtype))
        return wide_ranks(op, dtype, nan, at);
    if (!is_arithmetic(op))
        return lift(op, dtype, nan, load(at));
    if (dpr_acc_is_integer(dtype))
        return integer_terms(op, dtype, whole_lanes(dtype, at));
    return float_terms(op, without_nan(op, dtype, nan, floats_at(dtype, at)));
}

DPR_INLINE vec neutral_accs(dpr_op op, dpr_dtype dtype) {
    if (is_index(op))
        return splat(acc_size(op, dtype), (uint64_t)dpr_acc_neutral(op, dtype).rank);
    return is_float(op, dtype) ? (vec)((vec_f8){0} + (op == DPR_PROD ? 1.0 : 0.0)) : neutral(folded(op), dtype);
}

/* Joins the values of two vectors of accumulators that have no more than these. */
DPR_INLINE vec join(dpr_op op, dpr_dtype dtype, vec a, vec b) {
    return is_float(op, dtype) ? (vec)meet(op, (vec_f8)a, (vec_f8)b) : combine(folded(op), dtype, a, b);
}

/* *a becomes the accumulators of a's elements and b's. With equal ranks the lower index wins. */
DPR_INLINE void take(dpr_op op, dpr_dtype dtype, accs *a, accs b) {
    const size_t size = acc_size(op, dtype);
    if (op == DPR_VAR) {
        *a = (accs){(vec)((vec_f8)a->value + (vec_f8)b.value), (vec)((vec_f8)a->more + (vec_f8)b.more)};
    } else if (keeps_lost(op, dtype)) {
        vec_f8 value = (vec_f8)a->value, lost = (vec_f8)a->more + (vec_f8)b.more;
        take_in(op, &value, &lost, (vec_f8)b.value);
        *a = (accs){(vec)value, (vec)lost};
    } else if (is_index(op)) {
        const vec wins = less(size, b.value, a->value) | (equal(size, b.value, a->value) & less(size, b.more, a->more));
        *a = (accs){select(wins, b.value, a->value), select(wins, b.more, a->more)};
    } else {
        a->value = join(op, dtype, a->value, b.value);
    }
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* The elements that have these ranks: dpr_rank_bits() of every lane. */
DPR_INLINE vec elements_of_ranks(dpr_op op, dpr_dtype dtype, vec x) {
    const size_t size = dpr_element_size(dtype);
    const int64_t best = dpr_rank_least(dtype), none = dpr_rank_greatest(dtype);
    const vec is_best = equal(size, x, splat(size, (uint64_t)best));
    const vec is_none = equal(size, x, splat(size, (uint64_t)none));
    if (dpr_rank_reversed(op))
        x = ~x;
    if (dpr_element_kind(dtype) == DPR_KIND_UINT)
        x ^= splat(size, dpr_sign_bit(dtype));
    if (dpr_element_kind(dtype) == DPR_KIND_FLOAT) {
        x ^= less(size, x, (vec){0}) & ~splat(size, dpr_sign_bit(dtype));
        x = select(is_best, splat(size, dpr_rank_bits(op, dtype, best)), x);
        x = select(is_none, splat(size, dpr_rank_bits(op, dtype, none)), x);
    }
    return dtype == DPR_BOOL ? x & splat(1, 1) : x;
}

/* Accumulators of floating-point numbers with the initial value, as the numbers that are written. */
DPR_INLINE vec_f8 floats_of(dpr_op op, dpr_dtype dtype, accs x, double init) {
    accs with = {(vec)(init - (vec_f8){0}), {0}}; /* a sum with 0 would lose the sign of -0.0 */
    take(op, dtype, &with, x);
    const vec_f8 value = (vec_f8)with.value, lost = (vec_f8)with.more, total = value + lost;
    /* As in dpr_acc_total(): after an overflow `lost` is infinite or NaN, and its difference from itself NaN. */
    const vec sum = keeps_lost(op, dtype) ? select((vec)(lost - lost == 0), (vec)total, (vec)value) : (vec)value;
    return (vec_f8)select((vec)((vec_f8)sum != (vec_f8)sum), (vec)((vec_f8){0} + (double)NAN), sum);
}

DPR_INLINE vec roots(vec_f8 x) {
    for (int i = 0; i < LANES; i++)
        x[i] = sqrt(x[i]);
    return (vec)x;
}

/* The results that accumulators stand for, in the low bytes of lanes of the same size. */
DPR_INLINE vec results_of(dpr_op op, dpr_dtype dtype, dpr_nan nan, accs x, const dpr_acc *init) {
    const size_t size = acc_size(op, dtype);
    if (is_index(op)) {
        const int has_none = nan == DPR_NAN_IGNORE && dpr_element_kind(dtype) == DPR_KIND_FLOAT;
        return has_none ? x.more | equal(size, x.value, splat(size, (uint64_t)dpr_rank_greatest(dtype))) : x.more;
    }
    if (op == DPR_NORM2)
        return roots(floats_of(op, dtype, x, init->re));
    if (is_float(op, dtype))
        return (vec)floats_of(op, dtype, x, init->re);
    if (op == DPR_MIN || op == DPR_MAX)
        return elements_of_ranks(op, dtype, combine(op, dtype, x.value, splat(size, (uint64_t)init->rank)));
    if (op == DPR_ALL || op == DPR_ANY) /* flags of elements that make it false, or true */
        return ((op == DPR_ALL ? ~x.value : x.value | splat(size, init->bits))
                & (op == DPR_ALL ? splat(size, init->bits) : splat(size, 1)))
               & splat(size, 1);
    x.value = combine(folded(op), dtype, x.value, splat(size, init->bits));
    return dtype == DPR_BOOL && !is_arithmetic(op) ? x.value & splat(1, 1) : x.value;
}

/* The means of as many elements as `counts` has, of which `x` are the sums. All NaNs have the same bits. */
DPR_INLINE vec means_of(dpr_dtype dtype, vec x, vec counts) {
    const vec_f8 sums = dpr_acc_is_integer(dtype) ? __builtin_convertvector((vec_s8)x, vec_f8) : (vec_f8)x;
    const vec_f8 means = sums / __builtin_convertvector((vec_s8)counts, vec_f8);
    return select((vec)(means != means), (vec)((vec_f8){0} + (double)NAN), (vec)means);
}

/* Writes the results in lanes of 64 bits. */
DPR_INLINE void write_lanes(dpr_op op, dpr_dtype dtype, vec x, unsigned char *out) {
    const dpr_dtype result = dpr_pair_result(op, dtype);
    const some_U8 u8 = __builtin_convertvector((vec_u8)x, some_U8);
    const some_U16 u16 = __builtin_convertvector((vec_u8)x, some_U16);
    const some_U32 u32 = __builtin_convertvector((vec_u8)x, some_U32);
    const half_f4 f32 = __builtin_convertvector((vec_f8)x, half_f4);
    if (is_arithmetic(op) && result == DPR_F32)
        memcpy(out, &f32, sizeof f32);
    else if (dpr_element_size(result) == 1)
        memcpy(out, &u8, sizeof u8);
    else if (dpr_element_size(result) == 2)
        memcpy(out, &u16, sizeof u16);
    else if (dpr_element_size(result) == 4)
        memcpy(out, &u32, sizeof u32);
    else
        memcpy(out, &x, sizeof x);
}

/* Writes the results of a vector of accumulators, one behind the other. */
DPR_INLINE void write_vector(dpr_op op, dpr_dtype dtype, vec x, unsigned char *out) {
    const size_t size = acc_size(op, dtype), wide = dpr_element_size(dpr_pair_result(op, dtype));
    unsigned char bytes[VECTOR];
    if (size == 8 || wide == size) {
        if (size == 8)
            write_lanes(op, dtype, x, out);
        else
            memcpy(out, &x, sizeof x);
        return;
    }
    memcpy(bytes, &x, sizeof x);
    for (size_t i = 0; i < VECTOR / size; i++) /* truth values are one byte, indices eight */
        dpr_acc_write_bits(wide, dpr_element_load(size == 4 ? DPR_I32 : DPR_U16, bytes + i * size).bits,
                           out + i * wide);
}

/* The accumulator that the initial value adds to every result. */
DPR_INLINE dpr_acc acc_of_init(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_init *init) {
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    dpr_acc_add_init(op, dtype, nan, &acc, init);
    return acc;
}

/* ---- Segments --------------------------------------------------------------------------------------------------- */

static const uint8_t numbers_u1[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                       32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                       48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
static const uint16_t numbers_u2[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
static const uint32_t numbers_u4[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint64_t numbers_u8[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* i plus the number of each lane. */
DPR_INLINE vec numbers_from(size_t size, size_t i) {
    switch (size) {
    case 1:
        return (vec)((vec_u1)load(numbers_u1) + (uint8_t)i);
    case 2:
        return (vec)((vec_u2)load((const unsigned char *)numbers_u2) + (uint16_t)i);
    case 4:
        return (vec)((vec_u4)load((const unsigned char *)numbers_u4) + (uint32_t)i);
    default:
        return (vec)((vec_u8)load((const unsigned char *)numbers_u8) + i);
    }
}

/* True for integers that are joined with their neighbours until the results have 64 bits, which takes fewer
 * instructions than converting each. */
DPR_INLINE int joins_neighbours(dpr_op op, dpr_dtype dtype) {
    return (op == DPR_SUM || op == DPR_MEAN || op == DPR_PROD) && dpr_acc_is_integer(dtype)
           && dpr_element_size(dtype) <= 2;
}

/* Elements of a piece of a segment. */
DPR_INLINE size_t segment_piece(dpr_op op, dpr_dtype dtype) {
    return joins_neighbours(op, dtype) ? VECTOR / dpr_element_size(dtype) : piece_of(op, dtype);
}

/* Pieces that are read of every segment: enough for 16 elements, so that lengths up to that take no branch. Vectors of
 * 16 bytes read half as far. */
DPR_INLINE size_t pieces_at_once(dpr_op op, dpr_dtype dtype) {
    const size_t elements = VECTOR == 16 ? 8 : 16, piece = segment_piece(op, dtype);
    return piece < elements ? elements / piece : 1;
}

_Static_assert(DPR_MANY_LONGEST <= 64, "lanes of one byte hold the number of an element");

/* Elements i, i + 1 ... of the segment of n elements at `at`; lanes without one are neutral. */
DPR_INLINE accs some_elements(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at, size_t i, size_t n) {
    const size_t element = dpr_element_size(dtype), size = joins_neighbours(op, dtype) ? element : acc_size(op, dtype);
    const vec numbers = numbers_from(size, i), inside = less(size, numbers, splat(size, n));
    accs a = {{0}, is_index(op) ? numbers : (vec){0}};
    if (joins_neighbours(op, dtype)) {
        const vec raw = load(at + i * element), x = dtype == DPR_BOOL ? truths(raw) : raw;
        const vec some = select(inside, x, splat(size, op == DPR_PROD ? 1 : 0));
        a.value = widen(size, dpr_element_kind(dtype) == DPR_KIND_SINT, op == DPR_PROD, some);
    } else {
        a.value = select(inside, piece_at(op, dtype, nan, at + i * element), neutral_accs(op, dtype));
    }
    return a;
}

/* Folds a segment of n elements. Memory may be read up to the end of the last piece. */
DPR_INLINE accs fold_segment(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at, size_t n) {
    const size_t piece = segment_piece(op, dtype), at_once = pieces_at_once(op, dtype);
    accs a = some_elements(op, dtype, nan, at, 0, n);
    DPR_UNROLL
    for (size_t k = 1; k < at_once; k++)
        take(op, dtype, &a, some_elements(op, dtype, nan, at, k * piece, n));
    for (size_t i = at_once * piece; i < n; i += piece)
        take(op, dtype, &a, some_elements(op, dtype, nan, at, i, n));
    return a;
}

/* Elements i, i + 1 ... as F64; lanes without one are 0. */
DPR_INLINE vec_f8 some_numbers(dpr_dtype dtype, const unsigned char *at, size_t i, size_t n) {
    return (vec_f8)some_elements(DPR_VAR, dtype, DPR_NAN_PROPAGATE, at, i, n).value;
}

DPR_INLINE double mean_of_segment(dpr_dtype dtype, const unsigned char *at, size_t n) {
    vec_f8 sum = {0};
    double mean = 0;
    for (size_t i = 0; i < n; i += LANES)
        sum += some_numbers(dtype, at, i, n);
    for (int i = 0; i < LANES; i++)
        mean += sum[i];
    return mean / (double)n;
}

/* Folds a segment for VAR. Where the mean of any elements is not finite, `more` is NaN. */
DPR_INLINE accs fold_distances(dpr_dtype dtype, const unsigned char *at, size_t n) {
    const vec_f8 mean = mean_of_segment(dtype, at, n) + (vec_f8){0};
    vec_f8 squares = {0}, off = {0};
    for (size_t i = 0; i < n; i += LANES) {
        const vec inside = less(8, numbers_from(8, i), splat(8, n));
        const vec_f8 distance = (vec_f8)((vec)(some_numbers(dtype, at, i, n) - mean) & inside);
        squares += distance * distance;
        off += distance;
    }
    return (accs){(vec)squares, (vec)off};
}

/* Copies a segment to where memory may be read behind it. */
static __attribute__((noinline)) const unsigned char *copy_segment(unsigned char *to, size_t room, const void *from,
                                                                   size_t bytes) {
    memset(to, 0, room);
    if (bytes > 0)
        memcpy(to, from, bytes);
    return to;
}

/* For lanes `apart`: a's first ones, those without that bit, and b's in the places of the second ones; and a's second
 * ones in the places of the first ones, and b's. */
#if defined(__clang__)
#define DPR_LANE_FIRST(I, a, b, apart) ((I) & (apart)) ? (b)[((I) ^ (apart)) % LANES] : (a)[I]
#define DPR_LANE_SECOND(I, a, b, apart) ((I) & (apart)) ? (b)[I] : (a)[((I) ^ (apart)) % LANES]
#define DPR_LANES_FIRST(a, b, apart) (vec)(vec_u8) DPR_EACH_LANE(DPR_LANE_FIRST, a, b, apart)
#define DPR_LANES_SECOND(a, b, apart) (vec)(vec_u8) DPR_EACH_LANE(DPR_LANE_SECOND, a, b, apart)
#else /* GCC goes through memory for these, lane by lane */
#define DPR_NUMBER_FIRST(I, apart) ((I) & (apart)) ? LANES + (((I) ^ (apart)) % LANES) : (I)
#define DPR_NUMBER_SECOND(I, apart) ((I) & (apart)) ? LANES + (I) : (((I) ^ (apart)) % LANES)
#define DPR_LANES_FIRST(a, b, apart) (vec) __builtin_shuffle(a, b, (vec_s8)DPR_EACH_LANE(DPR_NUMBER_FIRST, apart))
#define DPR_LANES_SECOND(a, b, apart) (vec) __builtin_shuffle(a, b, (vec_s8)DPR_EACH_LANE(DPR_NUMBER_SECOND, apart))
#endif

/* Joins the lanes of a with those `apart`, and of b in the same way: a's come to the lanes without that bit. */
DPR_INLINE accs join_apart(dpr_op op, dpr_dtype dtype, accs a, accs b, int apart) {
    const vec_u8 av = (vec_u8)a.value, bv = (vec_u8)b.value, am = (vec_u8)a.more, bm = (vec_u8)b.more;
    accs first = {DPR_LANES_FIRST(av, bv, apart), {0}}, second = {DPR_LANES_SECOND(av, bv, apart), {0}};
    if (has_more(op, dtype)) {
        first.more = DPR_LANES_FIRST(am, bm, apart);
        second.more = DPR_LANES_SECOND(am, bm, apart);
    }
    take(op, dtype, &first, second);
    return first;
}

/* Lane i of what it returns, of 64 bits, joins all lanes of x[i]; narrower accumulators are in its low bytes. */
DPR_INLINE accs join_lanes(dpr_op op, dpr_dtype dtype, accs *x) {
    for (size_t i = 0; i < LANES; i += 2)
        x[i] = join_apart(op, dtype, x[i], x[i + 1], 1);
    for (size_t i = 0; LANES > 2 && i < LANES; i += 4)
        x[i] = join_apart(op, dtype, x[i], x[i + 2], 2);
    if (LANES > 4)
        x[0] = join_apart(op, dtype, x[0], x[4 % LANES], 4);
    for (size_t bits = 32; bits >= 8 * acc_size(op, dtype); bits /= 2) {
        const accs upper = {(vec)((vec_u8)x[0].value >> bits), (vec)((vec_u8)x[0].more >> bits)};
        take(op, dtype, &x[0], upper);
    }
    return x[0];
}

/* Results in lanes of 64 bits; an index is -1 if there is no element. */
DPR_INLINE vec segment_results(dpr_op op, dpr_dtype dtype, dpr_nan nan, accs x, const dpr_acc *init,
                               const uint64_t *lengths) {
    const vec results = results_of(op, dtype, nan, x, init);
    if (!is_index(op))
        return results;
    const vec index = acc_size(op, dtype) == 4 ? (vec)((vec_s8)((vec_u8)results << 32) >> 32) : results;
    return index | equal(8, load((const unsigned char *)lengths), (vec){0});
}

/* The variances of as many elements as `counts` has (dpr_acc_of_mean()). All NaNs have the same bits. */
DPR_INLINE vec variances_of(accs x, vec counts, const dpr_init *init) {
    const vec_f8 n = numbers_of(DPR_U32, (vec_u8)counts), off = (vec_f8)x.more;
    const vec_f8 squares = (vec_f8)x.value - off * (off / n);
    const vec_f8 result = (vec_f8)((vec)squares & ~(vec)(squares < 0)) / (n - (double)init->sample);
    return select((vec)(result != result), (vec)((vec_f8){0} + (double)NAN), (vec)result);
}

/* Which results a plain loop must find: norms whose squares leave F64's range, or may have lost some, and variances of
 * numbers whose mean is not finite. */
DPR_INLINE vec unsure_results(dpr_op op, dpr_dtype dtype, accs x, vec results) {
    const vec_f8 off = (vec_f8)x.more, norm = (vec_f8)results;
    if (op == DPR_VAR)
        return (vec)(off - off != 0);
    return op == DPR_NORM2 && dpr_acc_is_scaled(dtype) ? ~((vec)(norm >= 0x1p-450) & (vec)(norm - norm == 0))
                                                       : (vec){0};
}

/* Notes them among `some` segments from number i on. */
DPR_INLINE void note_unsure(const dpr_many_segments *s, size_t i, size_t some, vec unsure) {
    const vec_u8 lanes = (vec_u8)unsure;
    for (size_t k = 0; any_bit(unsure) && k < some; k++)
        s->unsure[i + k] = lanes[k] != 0;
}

DPR_INLINE void fold_segments(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_many_segments *s) {
    const size_t size = dpr_element_size(dtype), wide = dpr_element_size(dpr_pair_result(op, dtype));
    const size_t room = (DPR_MANY_LONGEST + VECTOR) * size,
                 reach = pieces_at_once(op, dtype) * segment_piece(op, dtype);
    const dpr_acc init = acc_of_init(op, dtype, nan, s->init);
    unsigned char copy[(DPR_MANY_LONGEST + VECTOR) * 8], results[VECTOR];
    uint64_t lengths[LANES] = {0};
    accs x[LANES] = {{{0}, {0}}};
    for (size_t i = 0; i < s->count; i += LANES) {
        const size_t some = s->count - i < LANES ? s->count - i : LANES;
        int is_short = 1; /* all of these segments are a piece at most */
        for (size_t k = 0; k < some; k++)
            is_short &= s->lengths[i + k] <= segment_piece(op, dtype);
        for (size_t k = 0; k < some; k++) {
            const size_t n = s->lengths[i + k];
            const unsigned char *at = s->in + s->begins[i + k] * size;
            if (s->in_end - at < (ptrdiff_t)((n + reach) * size))
                at = copy_segment(copy, room, at, n * size);
            const accs a = op == DPR_VAR ? fold_distances(dtype, at, n)
                           : is_short    ? some_elements(op, dtype, nan, at, 0, n)
                                         : fold_segment(op, dtype, nan, at, n);
            x[k].value = a.value;
            if (has_more(op, dtype))
                x[k].more = a.more;
            lengths[k] = n;
        }
        const accs joined = join_lanes(op, dtype, x);
        const vec counts = load((const unsigned char *)lengths);
        unsigned char *out = s->out + i * wide;
        vec lanes = op == DPR_VAR ? variances_of(joined, counts, s->init)
                                  : segment_results(op, dtype, nan, joined, &init, lengths);
        if (op == DPR_MEAN)
            lanes = means_of(dtype, lanes, counts);
        if (op == DPR_VAR || op == DPR_NORM2)
            note_unsure(s, i, some, unsure_results(op, dtype, joined, lanes));
        write_lanes(op, dtype, lanes, some == LANES ? out : results);
        if (some < LANES)
            memcpy(out, results, some * wide);
    }
}

/* ---- Columns ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 4 }; /* read at a time */

/* Bytes of the accumulators of a piece in memory: a vector of values, and one of what else they have. */
DPR_INLINE size_t accs_bytes(dpr_op op, dpr_dtype dtype) {
    return has_more(op, dtype) ? 2 * VECTOR : VECTOR;
}

DPR_INLINE accs load_accs(dpr_op op, dpr_dtype dtype, const unsigned char *space) {
    return (accs){load(space), has_more(op, dtype) ? load(space + VECTOR) : (vec){0}};
}

DPR_INLINE void store_accs(dpr_op op, dpr_dtype dtype, accs a, unsigned char *space) {
    memcpy(space, &a.value, sizeof a.value);
    if (has_more(op, dtype))
        memcpy(space + VECTOR, &a.more, sizeof a.more);
}

/* Takes an element of each column from `rows` rows, the first of which has this index. */
DPR_INLINE void take_rows(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *const *at, size_t offset,
                          size_t rows, size_t index, unsigned char *space) {
    const size_t size = acc_size(op, dtype);
    accs a = load_accs(op, dtype, space), b = {{0}, {0}};
    vec x[ROWS];
    DPR_UNROLL
    for (size_t k = 0; k < rows; k++)
        x[k] = piece_at(op, dtype, nan, at[k] + offset);
    if (is_index(op)) { /* rows come in the order of their indices */
        DPR_UNROLL
        for (size_t k = 0; k < rows; k++) {
            const vec wins = less(size, x[k], a.value);
            a = (accs){select(wins, x[k], a.value), select(wins, splat(size, index + k), a.more)};
        }
    } else {
        b.value = rows == ROWS ? join(op, dtype, join(op, dtype, x[0], x[1]), join(op, dtype, x[2], x[3])) : x[0];
        take(op, dtype, &a, b);
    }
    store_accs(op, dtype, a, space);
}

/* The first column of piece i. The last piece ends with the last column, and may begin within the one before. */
DPR_INLINE size_t column_of(size_t piece, size_t columns, size_t i) {
    return (i + 1) * piece <= columns ? i * piece : columns - piece;
}

DPR_INLINE void fold_rows(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_many_columns *c, size_t first,
                          size_t rows) {
    const size_t size = dpr_element_size(dtype), piece = piece_of(op, dtype), columns = c->columns;
    const size_t index = c->first + first;
    unsigned char *space = c->space;
    const unsigned char *at[ROWS];
    for (size_t k = 0; k < rows; k++)
        at[k] = c->in + c->offsets[first + k] * (int64_t)size;
    size_t column = 0;
    for (; column + piece <= columns; column += piece, space += accs_bytes(op, dtype))
        take_rows(op, dtype, nan, at, column * size, rows, index, space);
    if (column < columns)
        take_rows(op, dtype, nan, at, (columns - piece) * size, rows, index, space);
}

/* Lane i of a vector of accumulators, which have `count` elements each, as an accumulator of acc.h. */
DPR_INLINE dpr_acc acc_of_lane(dpr_op op, dpr_dtype dtype, dpr_nan nan, accs x, size_t i, size_t count) {
    const size_t size = acc_size(op, dtype);
    const dpr_dtype lane = size == 8 ? DPR_I64 : size == 4 ? DPR_I32 : size == 2 ? DPR_I16 : DPR_I8;
    unsigned char value[VECTOR], more[VECTOR];
    memcpy(value, &x.value, sizeof value);
    memcpy(more, &x.more, sizeof more);
    const uint64_t bits = dpr_element_load(lane, value + i * size).bits;
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    acc.bits = op == DPR_ALL ? bits == 0 : op == DPR_ANY ? bits != 0 : bits;
    acc.rank = (int64_t)bits;
    if (is_index(op)) {
        const int is_none =
            nan == DPR_NAN_IGNORE && dpr_element_kind(dtype) == DPR_KIND_FLOAT && acc.rank == dpr_rank_greatest(dtype);
        acc.index = is_none ? -1 : (int64_t)dpr_element_load(lane, more + i * size).bits;
    }
    if (is_float(op, dtype))
        acc.re = dpr_element_load(DPR_F64, value + i * 8).re;
    if (keeps_lost(op, dtype))
        acc.re_lost = dpr_element_load(DPR_F64, more + i * 8).re;
    if (op == DPR_MEAN) {
        acc.present = count;
        acc.index = (int64_t)bits < 0 ? -1 : 0; /* the upper 64 bits of a sum of integers */
    }
    return acc;
}

/* Merges the accumulators of columns `column` and following, except those before `from`, with c->accs. */
DPR_INLINE void merge_accs(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_many_columns *c, accs x, size_t column,
                           size_t from) {
    for (size_t i = from - column; i < piece_of(op, dtype); i++) {
        const dpr_acc acc = acc_of_lane(op, dtype, nan, x, i, c->folded);
        dpr_acc_combine(op, dtype, &c->accs[column + i], &acc);
    }
}

DPR_INLINE vec column_results(dpr_op op, dpr_dtype dtype, dpr_nan nan, accs x, const dpr_acc *init, size_t count) {
    const vec results = results_of(op, dtype, nan, x, init);
    return op == DPR_MEAN ? means_of(dtype, results, splat(8, count)) : results;
}

DPR_INLINE void fold_columns(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_many_columns *c) {
    const size_t piece = piece_of(op, dtype), pieces = (c->columns + piece - 1) / piece;
    const size_t wide = dpr_element_size(dpr_pair_result(op, dtype));
    const dpr_acc init = acc_of_init(op, dtype, nan, c->init);
    const accs none = {neutral_accs(op, dtype), is_index(op) ? splat(acc_size(op, dtype), c->first) : (vec){0}};
    for (size_t i = 0; c->begins && i < pieces; i++)
        store_accs(op, dtype, none, c->space + i * accs_bytes(op, dtype));
    size_t r = 0;
    for (; r + ROWS <= c->rows; r += ROWS)
        fold_rows(op, dtype, nan, c, r, ROWS);
    for (; r < c->rows; r++)
        fold_rows(op, dtype, nan, c, r, 1);
    for (size_t i = 0; c->ends && i < pieces; i++) { /* results have no more bytes than the accumulators so far */
        const accs x = load_accs(op, dtype, c->space + i * accs_bytes(op, dtype));
        const size_t column = column_of(piece, c->columns, i);
        if (c->accs)
            merge_accs(op, dtype, nan, c, x, column, i * piece);
        else
            write_vector(op, dtype, column_results(op, dtype, nan, x, &init, c->folded), c->out + column * wide);
    }
}

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

#define DPR_HAS_MANY(OP, DTYPE, NAN)                                                                                   \
    (DPR_PAIR_IS_VALID(OP, DTYPE) && has_segments(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN))

#define DPR_PAIR_DEFINE(OP, DTYPE, NAN)                                                                                \
    static int DPR_PAIR_NAME(OP, DTYPE, NAN)(const dpr_many_segments *s, const dpr_many_columns *c) {                  \
        if (!DPR_HAS_MANY(OP, DTYPE, NAN))                                                                             \
            return 0;                                                                                                  \
        if (s)                                                                                                         \
            fold_segments(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, s);                                                    \
        if (!has_columns(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN))                                                        \
            return DPR_MANY_SEGMENTS;                                                                                  \
        if (c)                                                                                                         \
            fold_columns(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, c);                                                     \
        return DPR_MANY_SEGMENTS | DPR_MANY_COLUMNS;                                                                   \
    }
DPR_PAIRS

const dpr_cpu_many DPR_MANY = {.fold = DPR_PAIRS_TABLE};
