/* Short segments: a part of simd_template.h.
 *
 * Every segment is folded to one vector of accumulators, without a branch unless it has more than one vector. Then
 * LANES of these vectors are folded to one by a tree whose steps exchange lanes, so that each lane of 64 bits has what
 * one segment makes; and LANES results are made and written at once. Sums of floating-point numbers are formed in F64,
 * those of F64 with what rounding loses. */

/* Segments of at most so many vectors take as many steps as the longest of their neighbours, because a wrong prediction
 * of a branch takes as long as some steps. */
enum { EVEN_STEPS = 4 };

/* True if load_some() has instructions of its own. */
DPR_INLINE int has_load_some(size_t size) {
#if defined(DPR_LOAD_SOME)
    return size >= DPR_LOAD_SOME_SIZE;
#else
    (void)size;
    return 0;
#endif
}

/* The n elements at `at`, fewer than a vector or as many, and those of `fill` after them. Nothing else is read. */
DPR_INLINE vec load_some(size_t size, vec fill, const unsigned char *at, size_t n) {
#if defined(DPR_LOAD_SOME)
    if (has_load_some(size))
        return DPR_LOAD_SOME(size, fill, at, n);
#endif
    unsigned char bytes[VECTOR];
    memcpy(bytes, &fill, sizeof fill);
    for (size_t i = 0; i < n * size; i += size)
        memcpy(bytes + i, at + i, size);
    return load(bytes);
}

/* True if accumulators are sums in F64. */
DPR_INLINE int is_sum_of_floats(dpr_op op, dpr_dtype dtype) {
    return op == DPR_SUM && !dpr_acc_is_integer(dtype);
}

/* True if sums keep what they lose to rounding. */
DPR_INLINE int is_compensated(dpr_op op, dpr_dtype dtype) {
    return is_sum_of_floats(op, dtype) && dpr_part_size(dtype) == 8;
}

/* A vector of elements that change no result. */
DPR_INLINE vec neutral_elements(dpr_op op, dpr_dtype dtype) {
    const dpr_acc acc = dpr_acc_neutral(op, dtype);
    if (op == DPR_MIN || op == DPR_MAX)
        return splat(dpr_element_size(dtype), dtype == DPR_BOOL ? op == DPR_MIN : dpr_rank_bits(op, dtype, acc.rank));
    return splat(dpr_element_size(dtype), op == DPR_SUM || op == DPR_COUNT ? 0 : acc.bits);
}

/* Combines accumulators *a with b, lane by lane. `low` has what compensated sums *a have lost to rounding. */
DPR_INLINE void join(dpr_op op, dpr_dtype dtype, vec *a, vec_f8 *low, vec b) {
    vec_f8 value = (vec_f8)*a;
    if (is_sum_of_floats(op, dtype)) {
        take_in(op, &value, is_compensated(op, dtype) ? low : NULL, (vec_f8)b);
        *a = (vec)value;
    } else {
        *a = combine(op, dtype, *a, b);
    }
}

/* The accumulators of the vector of elements at `at`. */
DPR_INLINE vec lift_vector(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at) {
    vec exact = {0};
    if (is_sum_of_floats(op, dtype) && dpr_part_size(dtype) < 4)
        return (vec)meet_narrow(op, dtype, nan, 0, at, vectors_of_f32(dtype), &exact);
    if (is_sum_of_floats(op, dtype))
        return (vec)meet_tree(op, dtype, nan, at, 1);
    if (op == DPR_SUM && dpr_element_kind(dtype) == DPR_KIND_SINT)
        return widen(dpr_element_size(dtype), 1, 0, load(at));
    return lift(op, dtype, nan, load(at));
}

/* Folds a segment of n elements to *x and, if sums are compensated, *low. It has at most `steps` vectors; if that is
 * more than EVEN_STEPS, it takes as many as it has. */
DPR_INLINE void fold_segment(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at, size_t n, size_t steps,
                             vec *x, vec_f8 *low) {
    const size_t size = dpr_element_size(dtype), most = VECTOR / size;
    const vec fill = neutral_elements(op, dtype);
    vec acc = is_sum_of_floats(op, dtype) ? (vec){0} : neutral(op, dtype);
    vec_f8 lost = {0};
    if (steps > EVEN_STEPS)
        for (; n > most; n -= most, at += VECTOR) {
            __builtin_prefetch(at + AHEAD);
            join(op, dtype, &acc, &lost, lift_vector(op, dtype, nan, at));
        }
    else
        for (; steps > 1; steps--) {
            const size_t some = n < most ? n : most;
            const vec part = load_some(size, fill, at, some);
            __builtin_prefetch(at + AHEAD);
            join(op, dtype, &acc, &lost, lift_vector(op, dtype, nan, (const unsigned char *)&part));
            at += some * size;
            n -= some;
        }
    const vec last = load_some(size, fill, at, n);
    __builtin_prefetch(at + AHEAD);
    join(op, dtype, &acc, &lost, lift_vector(op, dtype, nan, (const unsigned char *)&last));
    *x = acc;
    if (is_compensated(op, dtype))
        *low = lost;
}

/* ---- LANES segments at once ------------------------------------------------------------------------------------- */

/* A vector from lanes of two vectors of F64, by numbers that count on from the first vector to the second one. GCC
 * would load each lane of a list of lanes by itself. */
#if defined(__clang__)
#define DPR_LANE_OF_TWO(I, a, b, NUMBER, ...)                                                                          \
    NUMBER(I, __VA_ARGS__) < LANES ? (a)[NUMBER(I, __VA_ARGS__) % LANES] : (b)[NUMBER(I, __VA_ARGS__) % LANES]
#define DPR_SHUFFLE(a, b, ...) (vec)(vec_f8) DPR_EACH_LANE(DPR_LANE_OF_TWO, a, b, __VA_ARGS__)
#else
#define DPR_LANE_NUMBER(I, NUMBER, ...) NUMBER(I, __VA_ARGS__)
#define DPR_SHUFFLE(a, b, ...) (vec) __builtin_shuffle(a, b, (vec_s8)DPR_EACH_LANE(DPR_LANE_NUMBER, __VA_ARGS__))
#endif
#define DPR_LANE_OF_PAIR(I, apart, other)                                                                              \
    (((I) & (apart)) ? LANES + (((I) ^ ((apart) - (other))) % LANES) : ((I) ^ (other)) % LANES)

/* Lanes of a where the lane's number has not the bit `apart`, and of b where it has: of a the lane itself, and of b the
 * one without the bit; or with `other`, of a the one with the bit, and of b the lane itself. */
DPR_INLINE vec lanes_of_pair(vec x, vec y, int apart, int other) {
    const vec_f8 a = (vec_f8)x, b = (vec_f8)y;
    switch (apart * 2 + (other != 0)) {
    case 2:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 1, 0);
    case 3:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 1, 1);
    case 4:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 2, 0);
    case 5:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 2, 2);
    case 8:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 4, 0);
    default:
        return DPR_SHUFFLE(a, b, DPR_LANE_OF_PAIR, 4, 4);
    }
}

/* One step of the tree: folds each two of `count` accumulators to one, and each two lanes that are `apart`. */
DPR_INLINE void join_pairs(dpr_op op, dpr_dtype dtype, vec *x, vec_f8 *low, size_t count, int apart) {
    DPR_UNROLL
    for (size_t i = 0; i + 1 < count; i += 2) {
        vec both = lanes_of_pair(x[i], x[i + 1], apart, 0);
        vec_f8 lost = {0};
        if (is_compensated(op, dtype))
            lost = (vec_f8)lanes_of_pair((vec)low[i], (vec)low[i + 1], apart, 0)
                   + (vec_f8)lanes_of_pair((vec)low[i], (vec)low[i + 1], apart, 1);
        join(op, dtype, &both, &lost, lanes_of_pair(x[i], x[i + 1], apart, 1));
        x[i / 2] = both;
        if (is_compensated(op, dtype))
            low[i / 2] = lost;
    }
}

/* Folds the accumulators of LANES segments to one vector. The low bits of lane i have what segment i makes. */
DPR_INLINE void join_segments(dpr_op op, dpr_dtype dtype, vec *x, vec_f8 *low) {
    join_pairs(op, dtype, x, low, LANES, 1);
    if (LANES > 2)
        join_pairs(op, dtype, x, low, LANES / 2, 2);
    if (LANES > 4)
        join_pairs(op, dtype, x, low, LANES / 4, 4);
    for (size_t half = 4; half >= lane_size(op, dtype); half /= 2)
        *x = combine(op, dtype, *x, (vec)((vec_u8)*x >> (8 * half)));
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* dpr_rank_bits() of every lane. */
DPR_INLINE vec rank_bits(dpr_op op, dpr_dtype dtype, vec rank) {
    const size_t size = dpr_element_size(dtype);
    const int64_t of_nan = dpr_rank_least(dtype), of_none = dpr_rank_greatest(dtype);
    vec x = dpr_rank_reversed(op) ? ~rank : rank;
    if (dpr_element_kind(dtype) == DPR_KIND_UINT)
        return x ^ splat(size, dpr_sign_bit(dtype));
    if (dpr_element_kind(dtype) != DPR_KIND_FLOAT)
        return x;
    x ^= less(size, x, (vec){0}) & ~splat(size, dpr_sign_bit(dtype));
    x = select(equal(size, rank, splat(size, (uint64_t)of_nan)), splat(size, dpr_rank_bits(op, dtype, of_nan)), x);
    return select(equal(size, rank, splat(size, (uint64_t)of_none)), splat(size, dpr_rank_bits(op, dtype, of_none)), x);
}

/* The totals of sums in F64; all NaNs have the same bits. */
DPR_INLINE vec_f8 totals(dpr_op op, dpr_dtype dtype, vec_f8 x, vec_f8 low) {
    const double nan = (double)NAN;
    if (is_compensated(op, dtype))
        x = (vec_f8)select((vec)(low - low == 0), (vec)(x + low), (vec)x);
    return (vec_f8)select((vec)(x == x), (vec)x, (vec)((vec_f8){0} + nan));
}

/* Writes the results of all lanes, one behind the other. */
DPR_INLINE void write_lanes(dpr_op op, dpr_dtype dtype, vec x, vec_f8 low, void *out) {
    const size_t size = dpr_pair_size(op, dtype);
    if (is_sum_of_floats(op, dtype)) {
        const vec_f8 sums = totals(op, dtype, (vec_f8)x, low);
        const half_f4 narrow = __builtin_convertvector(sums, half_f4);
        memcpy(out, size == 8 ? (const void *)&sums : (const void *)&narrow, LANES * size);
        return;
    }
    if (op == DPR_MIN || op == DPR_MAX)
        x = rank_bits(op, dtype, x);
    if (op == DPR_ALL)
        x = ~x;
    if (dpr_pair_result(op, dtype) == DPR_BOOL)
        x &= splat(1, 1);
    const some_U8 u1 = __builtin_convertvector((vec_u8)x, some_U8);
    const some_U16 u2 = __builtin_convertvector((vec_u8)x, some_U16);
    const some_U32 u4 = __builtin_convertvector((vec_u8)x, some_U32);
    memcpy(out,
           size == 8   ? (const void *)&x
           : size == 4 ? (const void *)&u4
           : size == 2 ? (const void *)&u2
                       : &u1,
           LANES * size);
}

/* The accumulator in a lane. */
DPR_INLINE dpr_acc acc_of_lane(dpr_op op, dpr_dtype dtype, vec x, vec_f8 low, size_t lane) {
    const uint64_t bits = ((vec_u8)x)[lane];
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    acc.bits = op == DPR_ALL ? ~bits & 1 : bits;
    acc.rank = dpr_sign_extend(dtype, bits);
    acc.re = ((vec_f8)x)[lane];
    acc.re_lost = is_compensated(op, dtype) ? low[lane] : 0;
    return acc;
}

/* Writes n results, each combined with the initial value. */
DPR_INLINE void write_with_init(dpr_op op, dpr_dtype dtype, dpr_nan nan, vec x, vec_f8 low, const dpr_init *init,
                                size_t n, unsigned char *out) {
    for (size_t i = 0; i < n; i++) {
        dpr_acc acc = acc_of_lane(op, dtype, x, low, i);
        dpr_acc_add_init(op, dtype, nan, &acc, init);
        dpr_acc_write(op, dtype, &acc, init, out + i * dpr_pair_size(op, dtype));
    }
}

/* Reduces LANES segments. */
DPR_INLINE void fold_group(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_init *init, const unsigned char *in,
                           const dpr_range *ranges, unsigned char *out) {
    const size_t size = dpr_element_size(dtype), most = VECTOR / size;
    vec x[LANES];
    vec_f8 low[LANES];
    size_t longest = 0;
    for (size_t k = 0; k < LANES; k++) {
        const size_t n = ranges[k].end - ranges[k].begin;
        longest = n > longest ? n : longest;
    }
    const size_t steps = has_load_some(size) ? (longest + most - 1) / most : SIZE_MAX;
    for (size_t k = 0; k < LANES; k++)
        fold_segment(op, dtype, nan, in + ranges[k].begin * size, ranges[k].end - ranges[k].begin, steps, &x[k],
                     &low[k]);
    join_segments(op, dtype, x, low);
    if (init->present)
        write_with_init(op, dtype, nan, x[0], low[0], init, LANES, out);
    else
        write_lanes(op, dtype, x[0], low[0], out);
}

DPR_INLINE void fold_segments(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_init *init, const unsigned char *in,
                              const dpr_range *ranges, size_t n, unsigned char *out) {
    const size_t size = dpr_pair_size(op, dtype), whole = n / LANES * LANES;
    unsigned char results[LANES * DPR_RESULT_BYTES];
    dpr_range last[LANES] = {{0, 0}};
    for (size_t i = 0; i <= whole; i += LANES) {
        const int is_whole = i < whole;
        if (!is_whole)
            memcpy(last, ranges + i, (n - i) * sizeof *last);
        fold_group(op, dtype, nan, init, in, is_whole ? ranges + i : last, is_whole ? out + i * size : results);
    }
    memcpy(out + whole * size, results, (n - whole) * size);
}
