/* Columns: the elements of neighbouring results are neighbours. A part of simd_template.h.
 *
 * A strip has as many columns as its vectors of accumulators have lanes. Some rows at a time are added to the
 * accumulators of all columns, which stay in the cache. Sums of floating-point numbers are formed in F64, those of F64
 * with what rounding loses. */

enum {
    ROWS_AT_ONCE = 8 /* rows that are added to a strip's accumulators while these are in registers */
};

/* True if integers become numbers of 64 bits. */
DPR_INLINE int is_wide(dpr_op op) {
    return op == DPR_SUM || op == DPR_PROD || op == DPR_COUNT;
}

DPR_INLINE size_t strip_columns(dpr_op op, dpr_dtype dtype) {
    if (is_sum_of_floats(op, dtype))
        return is_compensated(op, dtype) ? LANES : 2 * LANES;
    return is_wide(op) ? LANES : VECTOR / dpr_element_size(dtype);
}

/* Two for sums of floating-point numbers: those of F64 and what they have lost, or two vectors of sums. */
DPR_INLINE size_t strip_vectors(dpr_op op, dpr_dtype dtype) {
    return is_sum_of_floats(op, dtype) ? 2 : 1;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* 2 * LANES elements of F16 or BF16, in their order. */
DPR_INLINE vec_f4 f32_in_order(dpr_dtype dtype, const unsigned char *at) {
    typedef uint16_t half_u2 __attribute__((vector_size(DPR_VECTOR_BYTES / 2)));
    half_u2 narrow;
    memcpy(&narrow, at, sizeof narrow);
    const vec_u4 upper = __builtin_convertvector(narrow, vec_u4) << 16;
    if (dtype == DPR_BF16)
        return (vec_f4)upper;
#if defined(DPR_F32_FROM_F16)
    return DPR_F32_FROM_F16(at);
#else
    return f32_from_f16(upper);
#endif
}

/* Adds a strip of a row to its accumulators, of which there may be a second vector. */
DPR_INLINE void add_strip(dpr_op op, dpr_dtype dtype, dpr_nan nan, const unsigned char *at, vec *acc, vec *second) {
    vec_f4 narrow = {0};
    if (is_compensated(op, dtype)) {
        vec_f8 low = (vec_f8)*second;
        join(op, dtype, acc, &low, (vec)without_nan(op, dtype, nan, (vec_f8)load(at)));
        *second = (vec)low;
    } else if (is_sum_of_floats(op, dtype)) {
        if (dpr_element_size(dtype) == 2) {
            narrow = f32_in_order(dtype, at);
            at = (const unsigned char *)&narrow;
        }
        join(op, dtype, acc, NULL, (vec)without_nan(op, dtype, nan, DPR_F64_FROM_F32(at)));
        join(op, dtype, second, NULL, (vec)without_nan(op, dtype, nan, DPR_F64_FROM_F32(at + VECTOR / 2)));
    } else if (is_wide(op)) {
        const vec_u8 x = whole_lanes(dtype, at);
        join(op, dtype, acc, NULL, op == DPR_COUNT ? (vec)((vec_u8)(x != 0) & 1) : (vec)x);
    } else {
        join(op, dtype, acc, NULL, lift(op, dtype, nan, load(at)));
    }
}

/* Adds n rows, at most ROWS_AT_ONCE. The rows after them are prefetched, because the hardware does not follow as many
 * rows at once. */
DPR_INLINE void add_rows(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_columns *c, size_t first, size_t n) {
    const size_t size = dpr_element_size(dtype), vectors = strip_vectors(op, dtype);
    const size_t step = strip_columns(op, dtype) * size;
    const unsigned char *rows[ROWS_AT_ONCE], *next[ROWS_AT_ONCE];
    vec *accs = c->accs;
    for (size_t r = 0; r < n; r++) {
        const size_t after = first + n + r < c->rows ? first + n + r : first + r;
        rows[r] = (const unsigned char *)c->in + c->offsets[first + r] * (int64_t)size;
        next[r] = (const unsigned char *)c->in + c->offsets[after] * (int64_t)size;
    }
    for (size_t s = 0; s < c->strips; s++, accs += vectors) {
        vec acc = accs[0], second = accs[vectors - 1];
        for (size_t r = 0; r < n; r++) {
            __builtin_prefetch(next[r] + s * step, 0, 2);
            add_strip(op, dtype, nan, rows[r] + s * step, &acc, &second);
        }
        accs[0] = acc;
        if (vectors > 1)
            accs[1] = second;
    }
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

DPR_INLINE void unpack_strip(dpr_op op, dpr_dtype dtype, const vec *acc, dpr_acc *to) {
    const size_t size = is_wide(op) ? 8 : dpr_element_size(dtype), columns = strip_columns(op, dtype);
    const dpr_dtype lane = size == 8 ? DPR_I64 : size == 4 ? DPR_I32 : size == 2 ? DPR_I16 : DPR_I8;
    const unsigned char *bytes = (const unsigned char *)acc;
    for (size_t i = 0; i < columns; i++) {
        uint64_t bits = 0;
        double sum = 0, lost = 0;
        to[i] = dpr_acc_neutral(op, dtype);
        if (is_sum_of_floats(op, dtype)) {
            memcpy(&sum, bytes + 8 * i, sizeof sum);
            if (is_compensated(op, dtype))
                memcpy(&lost, bytes + VECTOR + 8 * i, sizeof lost);
            to[i].re = sum;
            to[i].re_lost = lost;
        } else {
            bits = dpr_element_load(lane, bytes + size * i).bits;
            to[i].bits = op == DPR_ALL ? ~bits & 1 : bits;
            to[i].rank = (int64_t)bits;
        }
    }
}

DPR_INLINE void write_strip(dpr_op op, dpr_dtype dtype, const vec *acc, unsigned char *out) {
    const size_t size = dpr_element_size(dtype);
    vec x = acc[0];
    if (is_compensated(op, dtype)) {
        write_lanes(op, dtype, acc[0], (vec_f8)acc[1], out);
    } else if (is_sum_of_floats(op, dtype)) {
        write_lanes(op, dtype, acc[0], (vec_f8){0}, out);
        write_lanes(op, dtype, acc[1], (vec_f8){0}, out + LANES * sizeof(float));
    } else if (op == DPR_ALL || op == DPR_ANY) {
        x = op == DPR_ALL ? ~x : x;
        for (size_t i = 0; i < VECTOR / size; i++)
            out[i] = ((const unsigned char *)&x)[i * size] & 1;
    } else {
        if (op == DPR_MIN || op == DPR_MAX)
            x = rank_bits(op, dtype, x);
        x = dtype == DPR_BOOL && !is_wide(op) ? x & splat(1, 1) : x;
        memcpy(out, &x, sizeof x);
    }
}

DPR_INLINE size_t fold_columns(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_columns *c) {
    const size_t vectors = strip_vectors(op, dtype), columns = strip_columns(op, dtype);
    const vec start = is_sum_of_floats(op, dtype) ? (vec){0} : neutral(op, dtype);
    vec *accs = c->accs;
    size_t i = 0;
    for (size_t s = 0; c->is_first && s < c->strips * vectors; s++)
        accs[s] = start;
    for (; i + ROWS_AT_ONCE <= c->rows; i += ROWS_AT_ONCE)
        add_rows(op, dtype, nan, c, i, ROWS_AT_ONCE);
    if (i < c->rows)
        add_rows(op, dtype, nan, c, i, c->rows - i);
    for (size_t s = 0; c->unpacked && s < c->strips; s++)
        unpack_strip(op, dtype, accs + s * vectors, c->unpacked + s * columns);
    for (size_t s = 0; c->out && s < c->strips; s++)
        write_strip(op, dtype, accs + s * vectors, (unsigned char *)c->out + s * columns * dpr_pair_size(op, dtype));
    return columns;
}
