/* SUMSQ, NORM1, NORM2, MEAN, VAR and MINMAX as device functors (monoid.cuh). Only kernels that get their operations as
 * arguments (operation.cuh) run them, and finish them with the algebra of acc.h, so they have no finish() and no
 * lift().
 */
#ifndef DPR_CORE_MEASURES_CUH
#define DPR_CORE_MEASURES_CUH

#include "acc.h"
#include "tile.cuh"

namespace dpr {

template <dpr_dtype D> constexpr bool is_whole = (element<D>::kind & DPR_DOMAIN_BITS) != 0;
template <dpr_dtype D> constexpr bool is_small = is_whole<D> && sizeof(storage_of<D>) <= 2;
/* Narrow types: the distances between their elements, and the squares of these, are in the range of F64. */
constexpr bool is_narrow_type(dpr_dtype dtype) {
    return dtype == DPR_F16 || dtype == DPR_BF16 || dtype == DPR_F32 || dtype == DPR_C64;
}
template <dpr_dtype D> constexpr bool is_narrow = is_narrow_type(D);

/* ---- Sums of squares and magnitudes ---- */

/* Zero of the type that adds up lanes of type L. `Compensates` is for results of F64 and C128. */
template <bool Compensates, class L> constexpr auto sum_of_lanes() {
    if constexpr (Compensates && sizeof(L) == sizeof(double))
        return compensated{0, 0};
    else if constexpr (Compensates)
        return complex<compensated>{{0, 0}, {0, 0}};
    else if constexpr (cuda::std::is_same_v<L, float>)
        return double{0};
    else
        return L{};
}

/* The sum of terms: `Term` has of(x), the term of an element, of type Term::type. Integers are added modulo 2^64. Other
 * terms are added as they are within a tile, and in F64 between tiles, with compensation if the result has that
 * precision. */
template <dpr_dtype D, dpr_nan N, class Term> struct sum_of_terms : common {
    using storage = storage_of<D>;
    using lane = typename Term::type;
    static constexpr bool integer = cuda::std::is_same_v<lane, uint64_t>;
    static constexpr bool in_parts = sizeof(lane) == 2 * sizeof(double);
    static constexpr bool of_whole = is_whole<D> && !integer; /* NORM2, whose result is F64 */
    static constexpr bool compensates = D == DPR_F64 || D == DPR_C128 || of_whole;
    using acc = decltype(sum_of_lanes<compensates, lane>());
    static constexpr __device__ lane lane_identity() { return lane{}; }
    static constexpr __device__ acc identity() { return acc{}; }

    static constexpr __device__ acc from_lane(lane l) {
        if constexpr (compensates && in_parts)
            return {{l.re, 0}, {l.im, 0}};
        else if constexpr (compensates)
            return {l, 0};
        else
            return l;
    }

    static __device__ lane add(lane l, storage x) { return is_absent<D, N>(x) ? l : l + Term::of(x); }
    static __device__ lane join(lane a, lane b) { return a + b; }
    static __device__ acc fold(acc a, lane l) { return a + from_lane(l); }
    static __device__ acc merge(acc a, acc b) { return a + b; }

    static constexpr int words = integer ? 1 : in_parts ? 4 : 2;
    static __device__ void store(acc a, uint64_t *w) {
        if constexpr (integer) {
            w[0] = a;
        } else if constexpr (in_parts) {
            store_sum(a.re, w);
            store_sum(a.im, w + 2);
        } else {
            store_sum(a, w);
        }
    }
};

/* An integer modulo 2^64. */
template <dpr_dtype D> __device__ uint64_t whole(storage_of<D> x) {
    if constexpr (element<D>::kind == DPR_KIND_SINT)
        return static_cast<uint64_t>(static_cast<int64_t>(x));
    else
        return static_cast<uint64_t>(number<D>(x));
}

/* Products of two F32 and of narrower floats are exact in F64. */
template <dpr_dtype D> using whole_or_f64 = cuda::std::conditional_t<is_whole<D>, uint64_t, double>;

template <dpr_dtype D> struct square {
    using type = whole_or_f64<D>;
    static __device__ type of(storage_of<D> x) {
        if constexpr (is_whole<D>) {
            const uint64_t value = whole<D>(x);
            return value * value;
        } else if constexpr (is_complex<D>) {
            const double re = x.re, im = x.im;
            return re * re + im * im;
        } else {
            const double value = number<D>(x);
            return value * value;
        }
    }
};

template <dpr_dtype D> struct square_in_f64 {
    using type = double;
    static __device__ double of(storage_of<D> x) {
        const double value = static_cast<double>(number<D>(x));
        return value * value;
    }
};

template <dpr_dtype D> struct magnitude {
    static constexpr bool wide = D == DPR_F64 || D == DPR_C128;
    using type = cuda::std::conditional_t<is_whole<D>, uint64_t, cuda::std::conditional_t<wide, double, float>>;
    static __device__ type of(storage_of<D> x) {
        if constexpr (is_whole<D>) {
            const uint64_t value = whole<D>(x);
            return element<D>::kind == DPR_KIND_SINT && static_cast<int64_t>(value) < 0 ? 0 - value : value;
        } else if constexpr (D == DPR_C64) {
            return is_nan<D>(x) ? x.re + x.im : hypotf(x.re, x.im);
        } else if constexpr (D == DPR_C128) {
            return dpr_acc_magnitude(x.re, x.im);
        } else {
            return fabs(number<D>(x));
        }
    }
};

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_SUMSQ, D, N> : sum_of_terms<D, N, square<D>> {};
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_NORM1, D, N> : sum_of_terms<D, N, magnitude<D>> {};

/* Squares of F64 parts in three ranges, as dpr_acc_add_scaled() takes them. */
template <dpr_dtype D, dpr_nan N> struct scaled_norm : common {
    using storage = storage_of<D>;
    struct lane {
        double middle, great, little;
    };
    struct acc {
        compensated middle, great, little;
    };
    static constexpr int vectors = 2;
    static constexpr int lanes = 2;
    static constexpr __device__ lane lane_identity() { return {0, 0, 0}; }
    static constexpr __device__ acc identity() { return {{0, 0}, {0, 0}, {0, 0}}; }

    static __device__ lane with_part(lane l, double x) {
        const double size = fabs(x);
        if (size > 0x1p486)
            l.great += (x * 0x1p-538) * (x * 0x1p-538);
        else if (size < 0x1p-511)
            l.little += (x * 0x1p537) * (x * 0x1p537);
        else
            l.middle += x * x;
        return l;
    }

    static __device__ lane add(lane l, storage x) {
        if (is_absent<D, N>(x))
            return l;
        if constexpr (is_complex<D>)
            return with_part(with_part(l, x.re), x.im);
        else
            return with_part(l, x);
    }

    static __device__ lane join(lane a, lane b) {
        return {a.middle + b.middle, a.great + b.great, a.little + b.little};
    }
    static __device__ acc merge(acc a, acc b) { return {a.middle + b.middle, a.great + b.great, a.little + b.little}; }
    static __device__ acc fold(acc a, lane l) { return merge(a, {{l.middle, 0}, {l.great, 0}, {l.little, 0}}); }

    static constexpr int words = 6;
    static __device__ void store(acc a, uint64_t *w) {
        store_sum(a.middle, w);
        store_sum(a.great, w + 2);
        store_sum(a.little, w + 4);
    }
};

/* NORM2 of integers of up to 16 bits: squares are added up exactly, and become a sum in F64 at the end. */
template <dpr_dtype D, dpr_nan N> struct norm_of_small : sum_of_terms<D, N, square<D>> {
    static constexpr int words = 2;
    static __device__ void store(uint64_t a, uint64_t *w) {
        const double rounded = static_cast<double>(a);
        w[0] = dpr_word_of(rounded);
        w[1] = dpr_word_of(static_cast<double>(static_cast<int64_t>(a - static_cast<uint64_t>(rounded))));
    }
};

template <dpr_dtype D, dpr_nan N> constexpr auto norm2_of() {
    if constexpr (D == DPR_F64 || D == DPR_C128)
        return cuda::std::type_identity<scaled_norm<D, N>>{};
    else if constexpr (is_small<D>)
        return cuda::std::type_identity<norm_of_small<D, N>>{};
    else if constexpr (is_whole<D>)
        return cuda::std::type_identity<sum_of_terms<D, N, square_in_f64<D>>>{};
    else
        return cuda::std::type_identity<sum_of_terms<D, N, square<D>>>{};
}
template <dpr_dtype D, dpr_nan N> struct monoid<DPR_NORM2, D, N> : decltype(norm2_of<D, N>())::type {};

/* ---- Means ---- */

/* A number of 128 bits, for sums of integers. */
struct long_sum {
    uint64_t lower, upper;
};

__device__ inline long_sum operator+(long_sum a, long_sum b) {
    const uint64_t lower = a.lower + b.lower;
    return {lower, a.upper + b.upper + (lower < a.lower)};
}

/* MEAN of integers, whose sum has 128 bits. Within a tile, 64 are enough for elements of up to 32 bits. */
template <dpr_dtype D, dpr_nan N> struct mean_of_whole : common {
    using storage = storage_of<D>;
    static constexpr bool wide = sizeof(storage) == sizeof(uint64_t);
    using lane = cuda::std::conditional_t<wide, long_sum, uint64_t>;
    using acc = long_sum;
    static constexpr int vectors = 4;

    static __device__ long_sum extended(uint64_t value) {
        const bool negative = element<D>::kind == DPR_KIND_SINT && static_cast<int64_t>(value) < 0;
        return {value, negative ? ~uint64_t{0} : 0};
    }

    static constexpr __device__ lane lane_identity() { return lane{}; }
    static constexpr __device__ acc identity() { return {0, 0}; }

    static __device__ lane add(lane l, storage x) {
        if constexpr (wide)
            return l + extended(whole<D>(x));
        else
            return l + whole<D>(x);
    }

    static __device__ lane join(lane a, lane b) { return a + b; }
    static __device__ acc merge(acc a, acc b) { return a + b; }

    static __device__ acc fold(acc a, lane l) {
        if constexpr (wide)
            return a + l;
        else
            return a + extended(l);
    }

    static constexpr int words = 3;
    static __device__ void store(acc a, uint64_t *w) {
        w[0] = a.lower;
        w[1] = a.upper;
        w[2] = 0; /* the kernel knows how many elements there are */
    }
};

/* Elements of F32 are added in F64, so that a mean far below its elements is as good as one computed in F64. */
template <dpr_dtype D> struct itself {
    using number_type = cuda::std::conditional_t<D == DPR_F16 || D == DPR_BF16, float, double>;
    using type = cuda::std::conditional_t<is_complex<D>, complex<double>, number_type>;
    static __device__ type of(storage_of<D> x) {
        if constexpr (is_complex<D>)
            return {x.re, x.im};
        else
            return number<D>(x);
    }
};

/* MEAN of other types: a sum, and if NaNs are left out also the number of elements that are not NaN. */
template <dpr_dtype D, dpr_nan N> struct mean_of_numbers : sum_of_terms<D, N, itself<D>> {
    static constexpr int words = sum_of_terms<D, N, itself<D>>::words + 1;
    static __device__ void store(typename sum_of_terms<D, N, itself<D>>::acc a, uint64_t *w) {
        sum_of_terms<D, N, itself<D>>::store(a, w);
        w[words - 1] = 0; /* the kernel knows how many elements there are */
    }
};

template <dpr_dtype D> struct mean_of_numbers<D, DPR_NAN_IGNORE> : common {
    using sum = sum_of_terms<D, DPR_NAN_IGNORE, itself<D>>;
    using storage = storage_of<D>;
    struct lane {
        typename sum::lane sum;
        uint32_t present;
    };
    struct acc {
        typename sum::acc sum;
        uint64_t present;
    };
    static constexpr __device__ lane lane_identity() { return {sum::lane_identity(), 0}; }
    static constexpr __device__ acc identity() { return {sum::identity(), 0}; }
    static __device__ lane add(lane l, storage x) { return {sum::add(l.sum, x), l.present + !is_nan<D>(x)}; }
    static __device__ lane join(lane a, lane b) { return {sum::join(a.sum, b.sum), a.present + b.present}; }
    static __device__ acc fold(acc a, lane l) { return {sum::fold(a.sum, l.sum), a.present + l.present}; }
    static __device__ acc merge(acc a, acc b) { return {sum::merge(a.sum, b.sum), a.present + b.present}; }

    static constexpr int words = sum::words + 1;
    static __device__ void store(acc a, uint64_t *w) {
        sum::store(a.sum, w);
        w[words - 1] = a.present;
    }
};

template <dpr_dtype D, dpr_nan N>
struct monoid<DPR_MEAN, D, N> : cuda::std::conditional_t<is_whole<D>, mean_of_whole<D, N>, mean_of_numbers<D, N>> {};

/* ---- Variances ---- */

/* A part of an element as a number; 64-bit integers are rounded to F64. */
template <dpr_dtype D, class X = double> __device__ X part_of(storage_of<D> x, int part) {
    if constexpr (is_complex<D>)
        return static_cast<X>(part == 0 ? x.re : x.im);
    else
        return static_cast<X>(number<D>(x));
}

template <dpr_dtype D, dpr_nan N> struct variance;

/* The accumulator of a thread, to which the elements of a tile are added. */
template <dpr_dtype D, dpr_nan N> struct variance_tile {
    using acc = typename variance<D, N>::acc;
    acc a;

    __device__ explicit variance_tile(const acc &before) : a(before) {}
    template <int K> __device__ void add_all(const packet<storage_of<D>> *p) {
        a = variance<D, N>::template with_vectors<K>(a, p);
    }
    template <class IndexOf> __device__ acc fold_into(acc, IndexOf) { return a; }
};

/* A thread adds up the distances of its elements from a point near them, and the squares of these distances. Squared
 * distances from zero can be far greater than the result, which would be the small difference of two large sums.
 *
 * If the result is F32, the point is first one element. Otherwise it is first the mean of one tile or, if the thread
 * has no tile, of about half of its vectors. Whenever the thread has four times as many tiles, it becomes the mean of
 * all elements so far. If S is the sum of the squared distances of all elements from their mean, the mean of n of them
 * differs from that mean by at most sqrt(S / n). So until the next move the sum of squares is at most 9 S, and the
 * subtraction that leaves S loses about 3 bits. */
template <dpr_dtype D, dpr_nan N> struct variance : common {
    using storage = storage_of<D>;
    using tile = variance_tile<D, N>;
    using lane = void; /* there are no lanes, only variance_tile */
    static constexpr bool takes_all = true;
    static constexpr int parts = is_complex<D> ? 2 : 1;
    static constexpr bool in_f32 = is_narrow<D>;                        /* the result */
    static constexpr bool may_overflow = D == DPR_F64 || D == DPR_C128; /* squares of finite distances */
    struct acc {
        double point[parts];
        compensated distance[parts], squares; /* sums */
        uint64_t present;
    };
    /* A point that is NaN is not chosen yet. */
    static __device__ acc identity() {
        acc a = {};
        a.point[0] = NAN;
        return a;
    }

    /* Sets the point to the mean of n elements, which at(i) returns, or to one of them if the result is F32, because
     * that is precise enough. Another element takes the place of one that is absent. */
    template <int n, class Elements> static __device__ void set_point(acc &a, Elements at) {
        using sum_type = cuda::std::conditional_t<is_whole<D> && sizeof(storage) < sizeof(int64_t), int64_t, double>;
        constexpr sum_type divisor = sizeof(storage) < sizeof(int64_t) ? 1 : n; /* the sum may overflow */
        storage x = at(n - 1);
        sum_type sum[parts] = {};
#pragma unroll
        for (int i = n - 2; i >= 0; --i)
            x = is_absent<D, N>(at(i)) ? x : at(i);
        if (is_absent<D, N>(x))
            return;
#pragma unroll
        for (int i = 0; i < n && !in_f32; ++i) {
            x = is_absent<D, N>(at(i)) ? x : at(i);
#pragma unroll
            for (int k = 0; k < parts; ++k)
                sum[k] += part_of<D, sum_type>(x, k) / divisor;
        }
#pragma unroll
        for (int k = 0; k < parts; ++k) {
            a.point[k] = in_f32 ? part_of<D>(x, k) : static_cast<double>(sum[k]) * (divisor / static_cast<double>(n));
            if (!isfinite(a.point[k]))
                a.point[k] = 0; /* the distance of an infinity from an infinity is NaN, but their sum is not */
        }
    }

    /* Adds n elements. If the type is narrow, squares that are infinite stay so, because squares_of() makes the results
     * of SUMSQ and NORM2 of them, which are infinite, too. complete() makes NaN of them for VAR. */
    template <int n, class Elements> static __device__ acc with(acc a, Elements at) {
        constexpr int lanes = in_f32 ? 1 : 2; /* one lane has more rounding errors, which do not count in F32 */
        double distance[parts][lanes] = {}, squares[lanes] = {};
        unsigned present = 0;
        if (isnan(a.point[0]))
            set_point<n>(a, at);
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const storage x = at(i);
            present += !is_absent<D, N>(x);
#pragma unroll
            for (int k = 0; k < parts; ++k) {
                const double d = is_absent<D, N>(x) ? 0 : part_of<D>(x, k) - a.point[k];
                distance[k][i % lanes] += d;
                squares[i % lanes] = fma(d, d, squares[i % lanes]);
            }
        }
#pragma unroll
        for (int k = 0; k < parts; ++k)
            a.distance[k] = a.distance[k] + compensated{distance[k][0] + (lanes == 2 ? distance[k][lanes - 1] : 0), 0};
        a.squares = a.squares + compensated{squares[0] + (lanes == 2 ? squares[lanes - 1] : 0), 0};
        if (may_overflow && !isfinite(a.squares.sum))
            a.squares.sum += distances_of_themselves<n>(at);
        a.present += present;
        return a;
    }

    /* 0; or NaN if there are infinities or NaNs, which have no distance from a point. */
    template <int n, class Elements> static __device__ double distances_of_themselves(Elements at) {
        double sum = 0;
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const storage x = at(i);
#pragma unroll
            for (int k = 0; k < parts; ++k)
                sum += is_absent<D, N>(x) ? 0 : part_of<D>(x, k) - part_of<D>(x, k);
        }
        return sum;
    }

    /* Chooses the first point, unless the result is F32: add() and with_vectors() choose it then. */
    template <int K> static __device__ void begin_at(acc &a, const packet<storage> *p) {
        constexpr int size = packet<storage>::size;
        if constexpr (!in_f32)
            set_point<K * size>(a, [&](int i) { return p[i / size][i % size]; });
    }

    static __device__ acc add(acc a, storage x) {
        return with<1>(a, [&](int) { return x; });
    }

    template <int K> static __device__ acc with_vectors(const acc &a, const packet<storage> *p) {
        constexpr int size = packet<storage>::size;
        return with<K * size>(a, [&](int i) { return p[i / size][i % size]; });
    }

    /* Moves the point to the mean of the elements so far. */
    static __device__ acc recentred(acc a) {
        const double n = static_cast<double>(a.present);
        if (!isfinite(a.squares.sum) || a.present == 0)
            return a;
#pragma unroll
        for (int k = 0; k < parts; ++k) {
            const double before = total(a.distance[k]);
            const compensated point = compensated{a.point[k], 0} + compensated{before / n, 0};
            const double step = before / n - point.lost, moved = n * step;
            const compensated after = a.distance[k] + compensated{-moved, -fma(n, step, -moved)};
            a.point[k] = point.sum;
            a.squares = a.squares + compensated{-step * (before + total(after)), 0};
            a.distance[k] = after;
        }
        return a;
    }

    static constexpr int words = 2 * parts + 3;
    static __device__ void store(acc a, uint64_t *w) {
        constexpr int last = parts - 1; /* the imaginary part, if there is one */
        const double squares = total(a.squares);
        dpr_acc all = dpr_acc_of_mean(a.present, a.point[0], parts == 2 ? a.point[last] : 0, total(a.distance[0]),
                                      parts == 2 ? total(a.distance[last]) : 0, squares);
        if (is_narrow<D> && !isfinite(squares))
            all.squares = squares;
        dpr_acc_store(DPR_VAR, D, &all, w);
    }
};

/* Merges variances in a warp: each lane has `n` accumulators, which at(i) returns, and only the first `lanes` lanes
 * have any. The result is valid in lane 0.
 *
 * dpr_acc_join_variances() would do the same pair by pair, with two divisions for each pair. This function first
 * computes the mean of all elements. It changes the squares of each accumulator to those of distances from that mean,
 * and adds them up. The mean is rounded; what that adds to the squares is subtracted at the end.
 *
 * Squares of a narrow type that are infinite stay so: there are infinities, but no NaN. */
template <dpr_dtype D, class At> __device__ dpr_acc merge_variances(unsigned n, unsigned lanes, At at) {
    constexpr int parts = is_complex<D> ? 2 : 1;
    double mean[parts] = {}, all = 0, off[parts] = {}, squares = 0;
    dpr_acc a = {};
    const auto sum = [](dpr_acc &b, int k) -> double & { return k == 0 ? b.re : b.im; };
    const auto lost = [](dpr_acc &b, int k) -> double & { return k == 0 ? b.re_lost : b.im_lost; };
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        dpr_acc next = at(i);
        all += static_cast<double>(next.present);
        for (int k = 0; k < parts; ++k)
            mean[k] += sum(next, k);
    }
#pragma unroll 1
    for (unsigned delta = lanes / 2; delta > 0; delta /= 2) {
        all += __shfl_xor_sync(~0u, all, delta);
        for (int k = 0; k < parts; ++k)
            mean[k] += __shfl_xor_sync(~0u, mean[k], delta);
    }
    const double part = 1 / all; /* multiplying by it is quicker than dividing, and precise enough */
    for (int k = 0; k < parts; ++k)
        mean[k] *= part;
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        dpr_acc next = at(i);
        const double present = static_cast<double>(next.present), part_of_next = 1 / present;
        squares += next.squares;
        for (int k = 0; k < parts && next.present > 0; ++k) {
            const double distance = fma(-present, mean[k], sum(next, k)) + lost(next, k);
            off[k] += distance;
            dpr_two_sum(&next.squares, &next.squares_lost, distance * (distance * part_of_next), 0);
        }
        dpr_acc_add_sums(dpr_acc_sums(DPR_VAR, D), &a, &next);
        a.present += next.present;
    }
#pragma unroll 1
    for (unsigned delta = lanes / 2; delta > 0; delta /= 2) {
        dpr_acc next = {};
        for (int k = 0; k < parts; ++k) {
            sum(next, k) = __shfl_down_sync(~0u, sum(a, k), delta);
            lost(next, k) = __shfl_down_sync(~0u, lost(a, k), delta);
            off[k] += __shfl_down_sync(~0u, off[k], delta);
        }
        squares += __shfl_down_sync(~0u, squares, delta);
        next.squares = __shfl_down_sync(~0u, a.squares, delta);
        next.squares_lost = __shfl_down_sync(~0u, a.squares_lost, delta);
        dpr_acc_add_sums(dpr_acc_sums(DPR_VAR, D), &a, &next);
        a.present += __shfl_down_sync(~0u, a.present, delta);
    }
    for (int k = 0; k < parts && all > 0; ++k)
        dpr_two_sum(&a.squares, &a.squares_lost, -off[k] * (off[k] * part), 0);
    if (a.squares + a.squares_lost < 0)
        a.squares = a.squares_lost = 0;
    if (is_narrow<D> && !isfinite(squares)) {
        a.squares = squares;
        a.squares_lost = 0;
    }
    return a;
}

/* VAR of integers of up to 16 bits: the sums of the elements and of their squares are exact, and the sum of the squared
 * distances follows from them in 128 bits. */
template <dpr_dtype D, dpr_nan N> struct variance_of_small : common {
    using storage = storage_of<D>;
    struct lane {
        int32_t sum;
        uint32_t present;
        uint64_t squares;
    };
    struct acc {
        int64_t sum;
        uint64_t present, squares;
    };
    static constexpr int lanes = 2;
    static constexpr __device__ lane lane_identity() { return {0, 0, 0}; }
    static constexpr __device__ acc identity() { return {0, 0, 0}; }

    static __device__ lane add(lane l, storage x) {
        const int32_t value = number<D>(x);
        return {l.sum + value, l.present + 1, l.squares + square<D>::of(x)};
    }
    static __device__ lane join(lane a, lane b) {
        return {a.sum + b.sum, a.present + b.present, a.squares + b.squares};
    }
    static __device__ acc merge(acc a, acc b) { return {a.sum + b.sum, a.present + b.present, a.squares + b.squares}; }
    static __device__ acc fold(acc a, lane l) { return merge(a, {l.sum, l.present, l.squares}); }

    static constexpr int words = 5;
    static __device__ void store(acc a, uint64_t *w) {
        dpr_acc all = {};
        const double n = static_cast<double>(a.present);
        const __int128 distances = static_cast<__int128>(a.squares) * a.present - static_cast<__int128>(a.sum) * a.sum;
        all.re = static_cast<double>(a.sum);
        all.re_lost = static_cast<double>(a.sum - static_cast<int64_t>(all.re));
        all.squares = a.present > 0 ? static_cast<double>(distances) / n : 0;
        all.present = a.present;
        dpr_acc_store(DPR_VAR, D, &all, w);
    }
};

template <dpr_dtype D, dpr_nan N>
struct monoid<DPR_VAR, D, N> : cuda::std::conditional_t<is_small<D>, variance_of_small<D, N>, variance<D, N>> {};

/* ---- Both extremes ---- */

template <dpr_dtype D, dpr_nan N> struct both_tiles;

template <dpr_dtype D, dpr_nan N> struct monoid<DPR_MINMAX, D, N> : common {
    using storage = storage_of<D>;
    using least = monoid<DPR_MIN, D, N>;
    using greatest = monoid<DPR_MAX, D, N>;
    struct acc {
        typename least::acc least;
        typename greatest::acc greatest;
    };
    using lane = acc;
    using tile = both_tiles<D, N>;
    static constexpr __device__ acc identity() { return {least::identity(), greatest::identity()}; }
    static constexpr __device__ lane lane_identity() { return identity(); }

    static __device__ lane add(lane l, storage x) { return {least::add(l.least, x), greatest::add(l.greatest, x)}; }
    static __device__ acc merge(acc a, acc b) {
        return {least::merge(a.least, b.least), greatest::merge(a.greatest, b.greatest)};
    }
    static __device__ lane join(lane a, lane b) { return merge(a, b); }
    static __device__ acc fold(acc a, lane l) { return merge(a, l); }

    static constexpr int words = 2;
    static __device__ void store(acc a, uint64_t *w) {
        least::store(a.least, w);
        greatest::store(a.greatest, w + 1);
    }
};

template <dpr_dtype D, dpr_nan N> struct both_tiles {
    using both = monoid<DPR_MINMAX, D, N>;
    tile_of<typename both::least> least;
    tile_of<typename both::greatest> greatest;

    __device__ void add(const packet<storage_of<D>> &p, unsigned v) {
        least.add(p, v);
        greatest.add(p, v);
    }

    template <class IndexOf> __device__ typename both::acc fold_into(typename both::acc a, IndexOf index_of) {
        return {least.fold_into(a.least, index_of), greatest.fold_into(a.greatest, index_of)};
    }
};

} // namespace dpr

#endif
