/* SUMSQ, NORM1, NORM2, MEAN, VAR and MINMAX: a part of simd_template.h.
 *
 * SUMSQ, NORM1 and MEAN of integers are added up in lanes of 64 bits. MINMAX, and MEAN of floating-point numbers, call
 * the folds of MIN, MAX and SUM. For all others a block of the array at a time is converted to F64, changed in place,
 * and added up as a sum of F64 is. */

/* ---- Integers --------------------------------------------------------------------------------------------------- */

/* The lanes of `x` as the terms that the operation adds up. For MEAN of 64-bit integers it returns the lower halves and
 * sets *upper to the upper ones, so that sums of lanes do not overflow. */
DPR_INLINE vec_u8 halved_terms(dpr_op op, dpr_dtype dtype, vec_u8 x, vec_u8 *upper) {
    if (op != DPR_MEAN || dpr_element_size(dtype) < 8)
        return whole_terms(op, dtype, x);
    *upper = dpr_element_kind(dtype) == DPR_KIND_SINT ? (vec_u8)((vec_s8)x >> 32) : x >> 32;
    return x & UINT32_MAX;
}

DPR_INLINE uint64_t sum_of_lanes(vec_u8 x) {
    uint64_t sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += x[i];
    return sum;
}

/* Adds `sum` times 2^shift, where `sum` is signed. */
DPR_INLINE void add_long(dpr_acc *acc, int64_t sum, int shift) {
    const dpr_acc term = {.bits = (uint64_t)sum << shift, .index = shift ? sum >> (64 - shift) : -(sum < 0)};
    dpr_acc_add_long(acc, &term);
}

/* Folds `groups` groups of LANES elements, at most 2^20. */
DPR_INLINE void fold_whole_lanes(dpr_op op, dpr_dtype dtype, const unsigned char *at, size_t groups, dpr_acc *acc) {
    const size_t step = LANES * dpr_element_size(dtype);
    vec_u8 a = {0}, b = {0}, a_upper = {0}, b_upper = {0}, upper = {0};
    for (; groups >= 2; groups -= 2, at += 2 * step) {
        a += halved_terms(op, dtype, whole_lanes(dtype, at), &upper);
        a_upper += upper;
        b += halved_terms(op, dtype, whole_lanes(dtype, at + step), &upper);
        b_upper += upper;
    }
    if (groups > 0) {
        a += halved_terms(op, dtype, whole_lanes(dtype, at), &upper);
        a_upper += upper;
    }
    if (op == DPR_MEAN) {
        add_long(acc, (int64_t)sum_of_lanes(a + b), 0);
        add_long(acc, (int64_t)sum_of_lanes(a_upper + b_upper), 32);
    } else {
        acc->bits += sum_of_lanes(a + b);
    }
}

DPR_INLINE void fold_whole(dpr_op op, dpr_dtype dtype, span range, dpr_acc *acc) {
    const size_t size = dpr_element_size(dtype), most = (size_t)1 << 20, groups = range.count / LANES;
    for (size_t i = 0; i < groups; i += most)
        fold_whole_lanes(op, dtype, range.in + i * LANES * size, groups - i < most ? groups - i : most, acc);
    acc->present += op == DPR_MEAN ? groups * LANES : 0;
    for (size_t i = groups * LANES; i < range.count; i++)
        dpr_acc_add(op, dtype, DPR_NAN_PROPAGATE, acc, dpr_element_load(dtype, range.in + i * size), i);
}

/* ---- Numbers in F64 --------------------------------------------------------------------------------------------- */

enum { NUMBERS = 1024 };

/* A block of numbers; the parts of complex ones are neighbours. */
typedef struct numbers {
    _Alignas(64) double x[NUMBERS + LANES];
    size_t count; /* parts count each */
} numbers;

/* Converts the vector of elements at `at`, which are not complex. */
DPR_INLINE void convert_whole(dpr_dtype dtype, const unsigned char *at, double *to) {
    for (size_t i = 0; i < VECTOR / dpr_element_size(dtype); i += LANES, at += LANES * dpr_element_size(dtype)) {
        vec_f8 x;
        switch (dtype) {
        case DPR_I32:
            x = __builtin_convertvector(load_I32(at), vec_f8);
            break;
        case DPR_U32:
            x = __builtin_convertvector(load_U32(at), vec_f8);
            break;
        case DPR_U64:
            x = __builtin_convertvector(load_U64(at), vec_f8);
            break;
        case DPR_I64:
            x = __builtin_convertvector(load_I64(at), vec_f8);
            break;
        default:
            x = __builtin_convertvector((vec_s8)whole_lanes(dtype, at), vec_f8);
            break;
        }
        memcpy(to + i, &x, sizeof x);
    }
}

/* Converts VECTOR bytes of F32. */
DPR_INLINE void convert_f32(const void *from, double *to) {
    const unsigned char *at = from;
    const vec_f8 x[2] = {DPR_F64_FROM_F32(at), DPR_F64_FROM_F32(at + VECTOR / 2)};
    memcpy(to, x, sizeof x);
}

/* Converts the vector of elements at `at`. Narrow floats change their order, which does not matter. */
DPR_INLINE void convert_vector(dpr_dtype dtype, const unsigned char *at, double *to) {
    vec_f4 parts[sizeof(float)];
    if (dpr_acc_is_integer(dtype)) {
        convert_whole(dtype, at, to);
    } else if (dpr_part_size(dtype) == 8) {
        memcpy(to, at, VECTOR);
    } else if (dpr_part_size(dtype) == 4) {
        convert_f32(at, to);
    } else {
        f32_from(dtype, at, parts);
        for (size_t i = 0; i < vectors_of_f32(dtype); i++)
            convert_f32(&parts[i], to + i * (VECTOR / sizeof(float)));
    }
}

DPR_INLINE vec_f8 lanes_of(const numbers *b, size_t i) {
    vec_f8 x;
    memcpy(&x, b->x + i, sizeof x);
    return x;
}

DPR_INLINE void set_lanes(numbers *b, size_t i, vec_f8 x) {
    memcpy(b->x + i, &x, sizeof x);
}

/* Leaves out complex or real numbers with a NaN. */
static void drop_nans(numbers *b, size_t parts) {
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i += parts) {
        const double re = b->x[i], im = b->x[i + parts - 1];
        if (re != re || im != im)
            continue;
        b->x[kept] = re;
        b->x[kept + parts - 1] = im;
        kept += parts;
    }
    b->count = kept;
}

static int has_nan(const numbers *b) {
    vec found = {0};
    int rest = 0;
    size_t i = 0;
    for (; i + LANES <= b->count; i += LANES) {
        const vec_f8 x = lanes_of(b, i);
        found |= (vec)(x != x);
    }
    for (; i < b->count; i++)
        rest |= b->x[i] != b->x[i];
    return rest || any_bit(found);
}

/* Converts the next elements of the range, from number `first` on; returns how many. */
DPR_INLINE size_t convert_block(dpr_dtype dtype, dpr_nan nan, span range, size_t first, numbers *out) {
    const size_t parts = dpr_acc_is_complex(dtype) ? 2 : 1, size = dpr_element_size(dtype), in_vector = VECTOR / size;
    const size_t left = range.count - first, n = left < NUMBERS / parts ? left : NUMBERS / parts;
    const unsigned char *at = range.in + first * size;
    size_t i = 0;
    for (; i + in_vector <= n; i += in_vector)
        convert_vector(dtype, at + i * size, out->x + i * parts);
    for (; i < n; i++) {
        const dpr_element e = dpr_element_load(dtype, at + i * size);
        out->x[i * parts + parts - 1] = e.im;
        out->x[i * parts] = dpr_acc_number(dtype, e);
    }
    out->count = n * parts;
    if (nan == DPR_NAN_IGNORE && has_nan(out))
        drop_nans(out, parts);
    return n;
}

/* Fills the last vector with zeros. Returns the number of vectors. */
static size_t pad(numbers *b) {
    const size_t vectors = (b->count + LANES - 1) / LANES;
    for (size_t i = b->count; i < vectors * LANES; i++)
        b->x[i] = 0;
    return vectors;
}

/* The sum, of each part by itself if there are two. */
static dpr_acc sum_of_numbers(numbers *b, size_t parts) {
    const size_t vectors = pad(b);
    const unsigned char *at = (const unsigned char *)b->x;
    dpr_acc acc = parts == 2 ? fold_in_f64(DPR_SUM, DPR_C128, DPR_NAN_PROPAGATE, 0, at, vectors)
                             : fold_in_f64(DPR_SUM, DPR_F64, DPR_NAN_PROPAGATE, 0, at, vectors);
    if (parts == 1)
        acc.im = acc.im_lost = 0;
    return acc;
}

static dpr_acc squares_of_numbers(numbers *b) {
    const size_t vectors = pad(b);
    for (size_t i = 0; i < vectors * LANES; i += LANES)
        set_lanes(b, i, lanes_of(b, i) * lanes_of(b, i));
    return sum_of_numbers(b, 1);
}

/* Whether all numbers are zeros. */
static int are_zeros(const numbers *b) {
    int all = 1;
    for (size_t i = 0; i < b->count; i++)
        all &= b->x[i] == 0;
    return all;
}

/* Squares are added up without scaling first, and one by one if some may have left F64's range. */
static dpr_acc norm_of_numbers(const numbers *b) {
    numbers squares = *b;
    dpr_acc sum = squares_of_numbers(&squares), scaled = {0};
    if (sum.re >= 0x1p-900 && sum.re <= 0x1p960) /* 2^63 elements cannot leave the range then */
        return sum;
    if (sum.re == 0 && are_zeros(b))
        return sum;
    for (size_t i = 0; i < b->count; i++) {
        dpr_acc one = {0};
        dpr_acc_add_scaled(&one, b->x[i]);
        dpr_acc_add_sums(DPR_ACC_RE | DPR_ACC_IM | DPR_ACC_SQUARES, &scaled, &one);
    }
    return scaled;
}

static dpr_acc magnitudes_of_real_numbers(numbers *b) {
    const size_t vectors = pad(b);
    for (size_t i = 0; i < vectors * LANES; i += LANES)
        set_lanes(b, i, (vec_f8)((vec)lanes_of(b, i) & splat(8, INT64_MAX)));
    return sum_of_numbers(b, 1);
}

static dpr_acc magnitudes_of_complex_numbers(numbers *b) {
    b->count /= 2;
    for (size_t i = 0; i < b->count; i++) {
        const double re = b->x[2 * i], im = b->x[2 * i + 1], square = re * re + im * im;
        b->x[i] = square >= 0x1p-900 && square <= 0x1p1000 ? sqrt(square) : dpr_acc_magnitude(re, im);
    }
    return sum_of_numbers(b, 1);
}

static dpr_acc variance_of_numbers(numbers *b, size_t parts) {
    const size_t n = b->count / parts;
    const dpr_acc sum = sum_of_numbers(b, parts);
    const double mean[] = {sum.re / (double)n, sum.im / (double)n};
    double means[LANES];
    vec_f8 subtrahend;
    for (size_t i = 0; i < LANES; i++)
        means[i] = mean[i % parts];
    memcpy(&subtrahend, means, sizeof means);
    for (size_t i = 0; i < b->count; i += LANES)
        set_lanes(b, i, lanes_of(b, i) - subtrahend);
    const dpr_acc off = sum_of_numbers(b, parts), squares = squares_of_numbers(b);
    return dpr_acc_of_mean(n, mean[0], parts == 2 ? mean[1] : 0, off.re, off.im, squares.re);
}

/* The accumulator of a block, which may be empty. */
static dpr_acc acc_of_numbers(dpr_op op, int is_scaled, size_t parts, numbers *b) {
    if (op == DPR_SUMSQ || (op == DPR_NORM2 && !is_scaled))
        return squares_of_numbers(b);
    if (op == DPR_NORM2)
        return norm_of_numbers(b);
    if (op == DPR_NORM1)
        return parts == 1 ? magnitudes_of_real_numbers(b) : magnitudes_of_complex_numbers(b);
    return variance_of_numbers(b, parts);
}

DPR_INLINE void fold_blocks(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    numbers block;
    for (size_t i = 0; i < range.count;) {
        i += convert_block(dtype, nan, range, i, &block);
        const dpr_acc part = acc_of_numbers(op, dpr_acc_is_scaled(dtype), dpr_acc_is_complex(dtype) ? 2 : 1, &block);
        dpr_acc_combine(op, dtype, acc, &part);
    }
}

/* ---- By other folds --------------------------------------------------------------------------------------------- */

/* Folds elements from number `i` of the range on by the fold of another operation. */
DPR_INLINE dpr_acc fold_by(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, size_t i, size_t count) {
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    DPR_KERNELS.fold[nan][DPR_ROW(op)][DPR_ROW(dtype)](range.in, i, count, &acc);
    return acc;
}

/* The number of NaNs among the elements. */
DPR_INLINE size_t count_nans(dpr_dtype dtype, span range) {
    const size_t size = dpr_element_size(dtype);
    const vec even = (vec)(vec_u8)DPR_EACH_LANE(DPR_LANE_IS_EVEN, _);
    vec_u8 nans = {0};
    size_t rest = 0;
    for (size_t i = 0; i < range.vectors; i++) {
        const vec marks = are_nan(dtype, load(range.in + i * VECTOR));
        nans += (vec_u8)(dtype == DPR_C128 ? marks & even
                                           : widen(flag_size(dtype), 0, 0, marks & splat(flag_size(dtype), 1)));
    }
    for (size_t i = range.count - range.rest; i < range.count; i++)
        rest += (size_t)dpr_element_is_nan(dtype, dpr_element_load(dtype, range.in + i * size));
    return rest + sum_of_lanes(nans);
}

/* Elements that are read twice are read in chunks, which the second time are in the cache. */
enum { READ_TWICE_BYTES = 16384 };

/* NaNs that are left out are counted by reading once more. */
DPR_INLINE void fold_mean(dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    const size_t chunk = nan == DPR_NAN_IGNORE ? READ_TWICE_BYTES / dpr_element_size(dtype) : range.count;
    for (size_t i = 0; i < range.count; i += chunk) {
        const size_t count = range.count - i < chunk ? range.count - i : chunk;
        dpr_acc sum = fold_by(DPR_SUM, dtype, nan, range, i, count);
        sum.bits = 0;
        sum.index = 0;
        sum.present = count;
        if (nan == DPR_NAN_IGNORE)
            sum.present -= count_nans(dtype, span_of(dtype, range.in, i, count));
        dpr_acc_combine(DPR_MEAN, dtype, acc, &sum);
    }
}

DPR_INLINE void fold_minmax(dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    const size_t chunk = READ_TWICE_BYTES / dpr_element_size(dtype);
    for (size_t i = 0; i < range.count; i += chunk) {
        const size_t count = range.count - i < chunk ? range.count - i : chunk;
        dpr_rank_take_least(&acc->rank, fold_by(DPR_MIN, dtype, nan, range, i, count).rank);
        dpr_rank_take_least(&acc->index, fold_by(DPR_MAX, dtype, nan, range, i, count).rank);
    }
}

DPR_INLINE void fold_fused_only(dpr_op op, dpr_dtype dtype, dpr_nan nan, span range, dpr_acc *acc) {
    const int is_whole = dpr_acc_is_integer(dtype);
    if (op == DPR_MINMAX)
        fold_minmax(dtype, nan, range, acc);
    else if (is_whole && (op == DPR_SUMSQ || op == DPR_NORM1 || op == DPR_MEAN))
        fold_whole(op, dtype, range, acc);
    else if (op == DPR_MEAN)
        fold_mean(dtype, nan, range, acc);
    else
        fold_blocks(op, dtype, nan, range, acc);
}
