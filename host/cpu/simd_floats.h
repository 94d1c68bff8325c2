/* Sums and products of floats and complex numbers: a part of simd_template.h.
 *
 * A stretch of the array is first folded without looking for NaNs, and in F32 as far as that
 * is exact or rounds only a few times. If F32 overflows, if a product is not exact, or if there is a NaN, the result is
 * infinite or NaN. Then the stretch is folded again, in F64 and with the NaN policy. */

enum {
    TREE = 16,           /* vectors of F32 added as a tree in F32, then the two halves of the vector: five roundings */
    STRETCH = 16 * BLOCK /* vectors of a stretch, 256 KiB */
};

#if !defined(DPR_F32_FROM_F16)
/* Converts F16 in the upper halves of the lanes. An integer addition rebiases the exponent. A value with exponent 0
 * becomes 2^-14 + value, exactly, from which 2^-14 is subtracted. */
DPR_INLINE vec_f4 f32_from_f16(vec_u4 x) {
    const vec_f4 two_to_minus_14 = (vec_f4){0} + 0x1p-14F;
    vec_u4 sign = x & 0x80000000, magnitude = (x & 0x7fff0000) >> 3;
    vec_u4 rebias = (vec_u4)((vec_s4)magnitude > 0x0f7fffff) & ((127 - 15) << 23); /* infinity or NaN: twice */
    vec_u4 tiny = (vec_u4)((vec_s4)magnitude < 0x00800000);
    vec_u4 normal = magnitude + ((127 - 15) << 23) + rebias;
    vec_u4 subnormal = (vec_u4)((vec_f4)(magnitude + (113 << 23)) - two_to_minus_14);
    return (vec_f4)(sign | (tiny & subnormal) | (~tiny & normal));
}
#endif

/* Number of vectors of F32 that one vector of elements becomes. */
DPR_INLINE size_t vectors_of_f32(dpr_dtype dtype) {
    return sizeof(float) / dpr_part_size(dtype);
}

/* Converts the vector of elements at `at` to F32, in any order, except that complex numbers stay in pairs of lanes. */
DPR_INLINE void f32_from(dpr_dtype dtype, const unsigned char *at, vec_f4 *out) {
    vec_u4 x = (vec_u4)load(at), upper = x & 0xffff0000;
    out[0] = (vec_f4)x;
    if (dtype == DPR_BF16) { /* the upper half of an F32 */
        out[0] = (vec_f4)(x << 16);
        out[1] = (vec_f4)upper;
    }
    if (dtype == DPR_F16) {
#if defined(DPR_F32_FROM_F16)
        out[0] = DPR_F32_FROM_F16(at);
        out[1] = DPR_F32_FROM_F16(at + VECTOR / 2);
#else
        out[0] = f32_from_f16(x << 16);
        out[1] = f32_from_f16(upper);
#endif
    }
}

/* ---- In F32 ---- */

/* Adds x[half .. 2*half-1] to x[0 .. half-1]; does nothing if `count` is at most `half`. */
DPR_INLINE void add_upper_half(vec_f4 *x, size_t count, size_t half) {
    DPR_UNROLL
    for (size_t i = 0; count > half && i < half; i++)
        x[i] += x[i + half];
}

/* The sum of `vectors` vectors of elements, which become 1, 2, 4, 8 or 16 vectors of F32. */
DPR_INLINE vec_f4 add_tree(dpr_dtype dtype, const unsigned char *at, size_t vectors) {
    vec_f4 x[TREE], y[sizeof(float)];
    size_t parts = vectors_of_f32(dtype), count = vectors * parts;
    DPR_UNROLL
    for (size_t i = 0; i < vectors; i++) {
        f32_from(dtype, at + i * VECTOR, y);
        for (size_t k = 0; k < parts; k++)
            x[i + k * vectors] = y[k];
    }
    add_upper_half(x, count, 8);
    add_upper_half(x, count, 4);
    add_upper_half(x, count, 2);
    add_upper_half(x, count, 1);
    return x[0];
}

/* ---- In F64 ---- */

DPR_INLINE void meet_upper_half(dpr_op op, vec_f8 *x, size_t count, size_t half) {
    DPR_UNROLL
    for (size_t i = 0; count > half && i < half; i++)
        x[i] = meet(op, x[i], x[i + half]);
}

/* The sum or product of 1, 2, 4 or 8 vectors of F32 or F64 as a tree in F64. */
DPR_INLINE vec_f8 meet_tree(dpr_op op, dpr_dtype dtype, dpr_nan nan, const void *in, size_t vectors) {
    const unsigned char *at = in;
    vec_f8 x[8];
    DPR_UNROLL
    for (size_t i = 0; i < vectors; i++, at += VECTOR) {
        if (dpr_part_size(dtype) == 8)
            x[i] = without_nan(op, dtype, nan, (vec_f8)load(at));
        else
            x[i] = meet(op, without_nan(op, dtype, nan, DPR_F64_FROM_F32(at)),
                        without_nan(op, dtype, nan, DPR_F64_FROM_F32(at + VECTOR / 2)));
    }
    meet_upper_half(op, x, vectors, 4);
    meet_upper_half(op, x, vectors, 2);
    meet_upper_half(op, x, vectors, 1);
    return x[0];
}

/* meet_tree() for narrower elements, which become `count` vectors of F32, or with `pairs`, `count` vectors of products
 * of two elements. The asm statement makes these vectors go through memory, because converting to F64 takes fewer
 * instructions from memory than from a register.
 *
 * Products of two F16 are exact in F32. Products of two BF16 are exact or infinite if both magnitudes are at least
 * 2^-63. Bit 14 of the elements of `exact` stays set while the upper two bits of all exponents differ, that is for
 * magnitudes from 2^-63 to 2^65. */
DPR_INLINE vec_f8 meet_narrow(dpr_op op, dpr_dtype dtype, dpr_nan nan, int pairs, const unsigned char *at, size_t count,
                              vec *exact) {
    vec_f4 stage[8], x[sizeof(float)];
    DPR_UNROLL
    for (size_t i = 0; i < count; at += VECTOR) {
        vec_u4 bits = (vec_u4)load(at);
        *exact &= (vec)(bits ^ (bits + bits));
        f32_from(dtype, at, x);
        if (pairs)
            stage[i++] = x[0] * x[1];
        for (size_t k = 0; !pairs && k < vectors_of_f32(dtype); k++)
            stage[i++] = x[k];
    }
    __asm__("" : "+m"(stage));
    return meet_tree(op, DPR_F32, nan, stage, count);
}

DPR_INLINE void take_in_lanes(dpr_op op, vec_f8 *value, vec_f8 *low, int apart) {
    if (low)
        *low += swap_lanes(*low, apart);
    take_in(op, value, low, swap_lanes(*value, apart));
}

/* Folds all lanes to one accumulator; for complex types the even lanes to `re` and the odd ones to `im`. */
DPR_INLINE dpr_acc gather_floats(dpr_op op, dpr_dtype dtype, vec_f8 value, vec_f8 *low) {
    size_t im = dpr_acc_is_complex(dtype) ? 1 : 0;
    if (LANES > 4)
        take_in_lanes(op, &value, low, 4);
    if (LANES > 2)
        take_in_lanes(op, &value, low, 2);
    if (im == 0)
        take_in_lanes(op, &value, low, 1);
    dpr_acc acc = {.re = value[0], .im = value[im]};
    if (low) {
        acc.re_lost = (*low)[0];
        acc.im_lost = (*low)[im];
    }
    return acc;
}

/* ---- Ways to fold a stretch ---- */

/* Adds the next `vectors` vectors of elements to `sum`. */
DPR_INLINE void take_in_tree(dpr_dtype dtype, const unsigned char **at, size_t vectors, vec_f8 *sum) {
    half_f4 halves[2];
    vec_f4 x = add_tree(dtype, *at, vectors);
    memcpy(halves, &x, sizeof x);
    halves[0] += halves[1];
    *sum += DPR_F64_FROM_F32(halves);
    *at += vectors * VECTOR;
}

/* The sum of elements whose parts have at most 32 bits, by trees in F32 whose sums are added in F64. It is infinite or
 * NaN if a tree overflows. */
DPR_INLINE dpr_acc fold_in_trees(dpr_dtype dtype, const unsigned char *at, size_t vectors) {
    size_t most = TREE / vectors_of_f32(dtype);
    vec_f8 sum = {0};
    for (const unsigned char *end = at + vectors / most * most * VECTOR; at < end;)
        take_in_tree(dtype, &at, most, &sum);
    if (most > 8 && vectors & 8)
        take_in_tree(dtype, &at, 8, &sum);
    if (most > 4 && vectors & 4)
        take_in_tree(dtype, &at, 4, &sum);
    if (vectors & 2)
        take_in_tree(dtype, &at, 2, &sum);
    if (vectors & 1)
        take_in_tree(dtype, &at, 1, &sum);
    return gather_floats(DPR_SUM, dtype, sum, NULL);
}

/* Folds in F64, but with `pairs` forms products of two 16-bit floats in F32. The result is NaN if one of these products
 * is not exact. */
DPR_INLINE dpr_acc fold_in_f64(dpr_op op, dpr_dtype dtype, dpr_nan nan, int pairs, const unsigned char *in,
                               size_t vectors) {
    vec_f8 value = (vec_f8){0} + (op == DPR_PROD ? 1.0 : 0.0), lost = {0};
    vec_f8 *low = op == DPR_SUM && dpr_part_size(dtype) == 8 ? &lost : NULL;
    vec exact = splat(8, UINT64_MAX);
    int narrow = dpr_part_size(dtype) < 4;
    size_t i = 0, makes = narrow && !pairs ? vectors_of_f32(dtype) : 1, most = 8 / makes;
    for (; i + most <= vectors; i += most) {
        const unsigned char *at = in + i * VECTOR;
        if (op == DPR_PROD)
            prefetch(at, most * VECTOR);
        take_in(op, &value, low,
                narrow ? meet_narrow(op, dtype, nan, pairs, at, 8, &exact) : meet_tree(op, dtype, nan, at, 8));
    }
    for (; i < vectors; i++) {
        const unsigned char *at = in + i * VECTOR;
        take_in(op, &value, low,
                narrow ? meet_narrow(op, dtype, nan, pairs, at, makes, &exact) : meet_tree(op, dtype, nan, at, 1));
    }
    dpr_acc acc = gather_floats(op, dtype, value, low);
    if (pairs && dtype == DPR_BF16 && any_bit(~exact & splat(2, 0x4000)))
        acc.re = (double)NAN;
    return acc;
}

/* Complex numbers, one in every lane. */
typedef struct factors {
    vec_f8 re, im;
    vec present; /* with DPR_NAN_IGNORE, the lanes that have a number */
} factors;

#define DPR_LANE_RE(I, a, b) ((I)&1) ? (b)[(I) & ~1] : (a)[I]
#define DPR_LANE_IM(I, a, b) ((I)&1) ? (b)[I] : (a)[(I) | 1]

/* The elements of one vector of C64, or of two vectors of C128. */
DPR_INLINE factors factors_at(dpr_dtype dtype, const unsigned char *at) {
    vec_f8 a = dtype == DPR_C64 ? DPR_F64_FROM_F32(at) : (vec_f8)load(at);
    vec_f8 b = dtype == DPR_C64 ? DPR_F64_FROM_F32(at + VECTOR / 2) : (vec_f8)load(at + VECTOR);
    factors f = {(vec_f8)DPR_EACH_LANE(DPR_LANE_RE, a, b), (vec_f8)DPR_EACH_LANE(DPR_LANE_IM, a, b), {0}};
    f.present = (vec)(f.re == f.re) & (vec)(f.im == f.im);
    return f;
}

/* Multiplies *a by b. With DPR_NAN_IGNORE, a lane without a number is left out, as in dpr_acc_multiply(). */
DPR_INLINE void multiply(dpr_nan nan, factors *a, factors b) {
    vec_f8 re = a->re * b.re - a->im * b.im, im = a->re * b.im + a->im * b.re;
    if (nan == DPR_NAN_IGNORE) {
        re = (vec_f8)select(a->present, select(b.present, (vec)re, (vec)a->re), (vec)b.re);
        im = (vec_f8)select(a->present, select(b.present, (vec)im, (vec)a->im), (vec)b.im);
    }
    *a = (factors){re, im, a->present | b.present};
}

DPR_INLINE dpr_acc gather_factors(dpr_op op, dpr_dtype dtype, dpr_nan nan, factors f) {
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    for (size_t lane = 0; lane < LANES; lane++) {
        int present = nan != DPR_NAN_IGNORE || ((vec_u8)f.present)[lane];
        dpr_acc one = {.re = f.re[lane], .im = f.im[lane], .index = present ? 0 : -1};
        dpr_acc_combine(op, dtype, &acc, &one);
    }
    return acc;
}

/* The product of the complex numbers of at least one vector. Four products at a time hide the latency of
 * multiplications. */
DPR_INLINE dpr_acc fold_factors(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *in, size_t vectors) {
    size_t step = dtype == DPR_C64 ? VECTOR : 2 * VECTOR, count = vectors * VECTOR / step, i = 1;
    factors f[4] = {factors_at(dtype, in)};
    if (count >= 4) {
        for (; i < 4; i++)
            f[i] = factors_at(dtype, in + i * step);
        for (; i + 4 <= count; i += 4) {
            prefetch(in + i * step, 4 * step);
            DPR_UNROLL
            for (size_t k = 0; k < 4; k++)
                multiply(nan, &f[k], factors_at(dtype, in + (i + k) * step));
        }
        multiply(nan, &f[0], f[1]);
        multiply(nan, &f[2], f[3]);
        multiply(nan, &f[0], f[2]);
    }
    for (; i < count; i++)
        multiply(nan, &f[0], factors_at(dtype, in + i * step));
    return gather_factors(op, dtype, nan, f[0]);
}

/* Combines *acc with the sum or product of a stretch. Sums of narrow elements need no compensation: each addition in
 * F64 has a relative error of at most 2^-53, so the 2^22 stretches of 1 TiB together stay far below the 2^-24 of an
 * F32. */
DPR_INLINE void take_in_stretch(dpr_op op, dpr_dtype dtype, dpr_acc *acc, const dpr_acc *stretch) {
    if (op == DPR_PROD || dpr_part_size(dtype) == 8) {
        dpr_acc_combine(op, dtype, acc, stretch);
    } else {
        acc->re += stretch->re;
        if (dpr_acc_is_complex(dtype))
            acc->im += stretch->im;
    }
}

DPR_INLINE void fold_floats(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    int complex_product = op == DPR_PROD && dpr_acc_is_complex(dtype);
    int in_f32 = op == DPR_SUM ? dpr_part_size(dtype) < 8 : dpr_part_size(dtype) == 2;
    for (size_t i = 0; i < range.vectors; i += STRETCH) {
        size_t stretch = range.vectors - i < STRETCH ? range.vectors - i : STRETCH;
        const unsigned char *at = range.in + i * VECTOR;
        dpr_acc part = complex_product           ? fold_factors(op, dtype, DPR_NAN_PROPAGATE, at, stretch)
                       : op == DPR_SUM && in_f32 ? fold_in_trees(dtype, at, stretch)
                                                 : fold_in_f64(op, dtype, DPR_NAN_PROPAGATE, in_f32, at, stretch);
        if ((in_f32 || nan == DPR_NAN_IGNORE) && !(isfinite(part.re) && isfinite(part.im)))
            part = complex_product ? fold_factors(op, dtype, nan, at, stretch)
                                   : fold_in_f64(op, dtype, nan, 0, at, stretch);
        take_in_stretch(op, dtype, acc, &part);
    }
}

#define DPR_LANE_OF_ONES(I, ...) UINT64_MAX

/* Folds the elements after the whole vectors. For sums of narrow elements it loads the last vector of the range and
 * masks the elements that have already been added. */
DPR_INLINE void fold_rest_of_floats(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    static const vec_u8 masks[2] = {{0}, DPR_EACH_LANE(DPR_LANE_OF_ONES, _)};
    size_t size = dpr_element_size(dtype);
    if (op == DPR_PROD || dpr_part_size(dtype) == 8 || range.vectors == 0) {
        fold_rest(op, dtype, nan, range, acc);
        return;
    }
    vec last = load(range.in + range.count * size - VECTOR);
    last &= load((const unsigned char *)masks + range.rest * size);
    dpr_acc rest = fold_in_f64(op, dtype, nan, 0, (const unsigned char *)&last, 1);
    take_in_stretch(op, dtype, acc, &rest);
}
