/* What kernels of segments share: the numbers where segments begin and end, and the result of a segment. */
#ifndef DPR_CORE_SEGMENTS_CUH
#define DPR_CORE_SEGMENTS_CUH

#include "args.h"
#include "finish.cuh"

namespace dpr {

/* An array of offsets, of one of the four types that the API takes. */
class segment_numbers {
    const void *numbers;
    dpr_dtype dtype;

  public:
    __device__ segment_numbers(const void *at, dpr_dtype type) : numbers(at), dtype(type) {}

    __device__ bool is_signed() const { return dtype == DPR_I32 || dtype == DPR_I64; }
    __device__ unsigned size() const { return dtype == DPR_I32 || dtype == DPR_U32 ? 4 : 8; }
    __device__ const unsigned char *at(uint64_t i) const {
        return static_cast<const unsigned char *>(numbers) + i * size();
    }

    /* Number i; one of type U64 modulo 2^64. */
    __device__ int64_t operator[](uint64_t i) const {
        if (dtype == DPR_I32)
            return static_cast<const int32_t *>(numbers)[i];
        if (dtype == DPR_U32)
            return static_cast<const uint32_t *>(numbers)[i];
        return static_cast<const int64_t *>(numbers)[i];
    }

    /* The bits of number i, and the number that has these bits. A thread that loads bits waits for them only when it
     * asks for the number. */
    __device__ uint64_t bits(uint64_t i) const {
        if (size() == 4)
            return static_cast<const uint32_t *>(numbers)[i];
        return static_cast<const uint64_t *>(numbers)[i];
    }
    __device__ int64_t of_bits(uint64_t bits) const {
        return dtype == DPR_I32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
    }

    /* Whether number a comes before number b. */
    __device__ bool less(int64_t a, int64_t b) const {
        return dtype == DPR_U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
    }
};

struct segment_range {
    uint64_t first, count; /* in elements */
};

/* The grid brings to L2 what it will read, so that it waits once for where segments begin and for their elements. */
__device__ inline void read_ahead(const dpr_segment_args &args) {
    prefetch_lines(args.list.begins, args.ahead.begins);
    prefetch_lines(args.list.ends, args.ahead.ends);
    prefetch_lines(args.run.in, args.ahead.elements);
}

/* The elements of segment `i`: none if its end is not behind its begin. */
__device__ inline segment_range range_of(const dpr_segment_list &list, uint64_t i) {
    const segment_numbers begins(list.begins, list.dtype), ends(list.ends, list.dtype);
    const int64_t begin = begins[i], end = ends[i];
    return {static_cast<uint64_t>(begin), begins.less(begin, end) ? static_cast<uint64_t>(end - begin) : 0};
}

/* Reads the elements of N segments: `segment`, segment + apart, segment + 2 * apart ... Those from number `segments` on
 * are empty. All loads are in flight at once. */
template <class Number, unsigned N>
__device__ void read_ranges_of(const dpr_segment_list &list, uint64_t segment, uint64_t apart, uint64_t segments,
                               segment_range (&r)[N]) {
    const Number *const begins = static_cast<const Number *>(list.begins) + segment;
    const Number *const ends = static_cast<const Number *>(list.ends) + segment;
    Number begin[N] = {}, end[N] = {};
#pragma unroll
    for (unsigned k = 0; k < N; ++k)
        if (segment + k * apart < segments) {
            begin[k] = begins[k * apart];
            end[k] = ends[k * apart];
        }
#pragma unroll
    for (unsigned k = 0; k < N; ++k)
        r[k] = {static_cast<uint64_t>(begin[k]),
                begin[k] < end[k] ? static_cast<uint64_t>(end[k]) - static_cast<uint64_t>(begin[k]) : 0};
}

template <unsigned N>
__device__ void read_ranges(const dpr_segment_list &list, uint64_t segment, uint64_t apart, uint64_t segments,
                            segment_range (&r)[N]) {
    switch (list.dtype) {
    case DPR_I32:
        return read_ranges_of<int32_t>(list, segment, apart, segments, r);
    case DPR_U32:
        return read_ranges_of<uint32_t>(list, segment, apart, segments, r);
    case DPR_I64:
        return read_ranges_of<int64_t>(list, segment, apart, segments, r);
    default:
        return read_ranges_of<uint64_t>(list, segment, apart, segments, r);
    }
}

/* The value of a thread's share of `count` elements from number `begin` on: number `lane` and every `step`-th after it.
 */
template <class M>
__device__ typename partial<M>::type reduce_share(const typename M::storage *in, uint64_t begin, uint64_t count,
                                                  unsigned lane, unsigned step) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (uint64_t i = lane; i < count; i += step) {
        if constexpr (M::holds_index)
            a = M::merge(a, M::of_element(in[begin + i], begin + i));
        else
            a = M::fold(a, M::add(M::lane_identity(), in[begin + i]));
    }
    return partial<M>::pack(a);
}

/* Whether values that threads exchange are results, if there is no initial value. */
template <class M> constexpr bool has_plain_results = M::has_neutral && !M::holds_index && !M::is_mean;

/* The result of a segment whose elements have the value `x`. */
template <class M> __device__ typename M::result plain_result(typename partial<M>::type x) {
    if constexpr (cuda::std::is_same_v<typename partial<M>::type, typename M::result>)
        return x;
    else
        return M::finish(partial<M>::unpack(x));
}

/* Writes the result of segment `i`: `a` is the accumulator of its `count` elements from number `begin` on. Writes the
 * partial result instead if the run wants it and the kernel has `Partials`. */
template <class M, bool Partials = false>
__device__ void write_segment(const dpr_segment_args &args, uint64_t i, uint64_t begin, uint64_t count,
                              typename M::acc a) {
    const bool is_partial = Partials && args.run.init.present == DPR_PARTIAL_WANTED;
    if constexpr (M::holds_index) {
        if (!is_partial && args.list.index == DPR_INDEX_IN_SEGMENT && a.index != M::none)
            a.index -= begin;
    }
    if constexpr (!M::has_neutral) {
        if (count == 1)
            a = M::lift(static_cast<const typename M::storage *>(args.run.in)[begin]);
    }
    auto *out = static_cast<unsigned char *>(args.run.out)
                + i * (is_partial ? sizeof(partial_row<M>) : sizeof(typename M::result));
    write_completed<M, Partials, Partials>(place_writer{args.run, out}, count, a);
}

} // namespace dpr

#endif
