/* How segments.merge reduces a tile by vectors: first each vector, then each segment, whose value is that of the
 * vectors that it fills and of the elements before and behind them. If there is an inverse, it is that of all elements
 * up to the segment's end without those up to its begin, so a segment costs as little as a vector, however long it is.
 */
#ifndef DPR_CORE_SEGMENTS_BY_VECTOR_CUH
#define DPR_CORE_SEGMENTS_BY_VECTOR_CUH

#include "segments_tile.cuh"

namespace dpr {

/* One worker's view of a tile. Positions are counted in elements from the beginning of the stage. */
template <class M> struct vector_worker {
    using T = typename M::storage;
    using X = partial<M>;
    using V = typename X::type;
    using run = vector_run<M>;
    using vector = packet<T>;
    static constexpr unsigned size = vector::size;
    /* Vectors of a segment for each thread that reduces it. If there are more, a warp does. A sum of floats of so many
     * rounds 14 times on the longest way: in a vector of eight three times, in sums of four vectors twice, when eight
     * of these are added seven times, and twice for the elements around them. dpr.h allows 16, log2(256) + 8, so there
     * is one for packing and one for what is carried to the tile. */
    static constexpr unsigned most_of_thread = 32;

    merge_shared<M> &s;
    const vector *const stage;
    const merge_tile tile;
    const unsigned first, behind; /* positions of the tile's first element, and behind its last one */

    __device__ vector_worker(merge_shared<M> &shared, unsigned t)
        : s(shared), stage(reinterpret_cast<const vector *>(shared.stage[t % merge_stages])),
          tile(shared.plan[plan_of_tile(t)].tile), first(tile.elements_at / sizeof(T)), behind(first + tile.elements) {}

    template <unsigned Words> __device__ tile_offsets<Words> offsets() const {
        return {reinterpret_cast<const unsigned char *>(stage) + tile.numbers_at, tile.element};
    }

    __device__ T element(unsigned position) const { return reinterpret_cast<const T *>(stage)[position]; }
    /* The index that an element at position 0 would have. */
    __device__ uint64_t origin() const { return tile.element - first; }

    /* Elements at positions begin .. end-1, and the vectors that they fill: from .. to-1, none if from >= to. */
    struct range {
        unsigned begin, end, from, to;
        __device__ range(unsigned a, unsigned b) : begin(a), end(b), from((a + size - 1) / size), to(b / size) {}
        __device__ bool has_head() const { return begin < end && from > begin / size; }
        __device__ bool has_tail() const { return from <= to && end % size > 0; }
    };

    /* The value of one element or none. */
    __device__ V single(unsigned begin, unsigned end) const {
        return begin < end ? X::of_element(element(begin), origin() + begin) : X::identity();
    }

    /* Adds the elements before the vectors that the range fills, or all of them if they are within a vector. */
    __device__ typename run::type with_head(typename run::type a, const range &r) const {
        const unsigned v = r.begin / size;
        return r.has_head() ? run::with(a, run::of_part(stage[v], r.begin % size, v == r.to ? r.end % size : size), v)
                            : a;
    }
    /* Adds those behind them. */
    __device__ typename run::type with_tail(typename run::type a, const range &r) const {
        return r.has_tail() ? run::with(a, run::of_part(stage[r.to], 0, r.end % size), r.to) : a;
    }
    /* Both, if several lanes reduce the range: the value of what lane 0 or lane 1 has of them. */
    __device__ typename run::type edge(const range &r, unsigned lane) const {
        const bool is_head = lane == 0;
        const unsigned v = is_head ? r.begin / size : r.to;
        const unsigned low = is_head ? r.begin % size : 0, high = is_head && v < r.to ? size : r.end % size;
        typename run::type a = run::identity();
        if (is_head ? r.has_head() : lane == 1 && r.has_tail())
            a = run::with(a, run::of_part(stage[v], low, high), v);
        return a;
    }

    /* Keeps the values of the tile's vectors. */
    __device__ void keep_vectors() const {
        const range all(first, behind);
#pragma unroll
        for (unsigned i = 0; i < vectors_of_worker; ++i) {
            const unsigned v = threadIdx.x + i * merge_workers;
            if (v >= all.from && v < all.to)
                s.values.of[v] = run::of(stage[v]);
        }
    }

    /* Keeps, for each vector, the value of all before it in the stage. What lies around the tile's elements is in it,
     * too; it does not matter to differences. */
    __device__ void keep_prefixes() const {
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, from = threadIdx.x * vectors_of_worker;
        static_assert(tile_elements_bytes / sizeof(T) < 1 << 15, "sums of a tile's elements have 32 bits");
        typename run::type before[vectors_of_worker], sum = run::identity();
#pragma unroll
        for (unsigned i = 0; i < vectors_of_worker; ++i) {
            before[i] = sum;
            sum = run::join(sum, run::of(stage[from + i]));
        }
        typename run::type up_to = sum;
#pragma unroll
        for (unsigned delta = 1; delta < 32; delta *= 2) {
            const typename run::type lower = shuffle_up(up_to, static_cast<int>(delta));
            if (lane >= delta)
                up_to = run::join(lower, up_to);
        }
        if (lane == 31)
            s.values.of_warp[warp] = up_to;
        sync_workers();
        typename run::type base = M::without(up_to, sum);
#pragma unroll
        for (unsigned i = 0; i + 1 < merge_warps; ++i)
            if (i < warp)
                base = run::join(base, s.values.of_warp[i]);
#pragma unroll
        for (unsigned i = 0; i < vectors_of_worker; ++i)
            s.values.of[from + i] = run::join(base, before[i]);
    }

    /* The value of all elements in the stage before a position. */
    __device__ typename run::type prefix(unsigned position) const {
        const unsigned v = position / size;
        return run::join(s.values.of[v], run::of_part(stage[v], 0, position % size));
    }

    /* What threads exchange of a thread's value. */
    __device__ V value(const typename run::type &a, const range &r) const {
        if constexpr (M::holds_index) {
            if (a.vector == run::none)
                return M::identity();
            const unsigned at = a.vector * size;
            const int from = static_cast<int>(r.begin - at);
            return {a.best, origin() + at + run::find(stage[a.vector], a.best, from)};
        } else {
            return run::value(a);
        }
    }

    /* The value of what the lanes of a warp have. All of them call it; the result is valid in lane 0. */
    __device__ V value_of_warp(const typename run::type &a, const range &r) const {
        if constexpr (M::holds_index) {
            const auto best = redux<run::in_warp>(a.best);
            const unsigned v = __reduce_min_sync(~0u, a.best == best ? a.vector : run::none), lane = threadIdx.x % 32;
            if (v == run::none)
                return M::identity();
            const unsigned position = v * size + lane;
            const bool has = lane < size && position >= r.begin && M::has_key(element(position), best);
            const unsigned found = __ffs(static_cast<int>(__ballot_sync(~0u, has))) - 1;
            return {best, origin() + v * size + found};
        } else {
            return reduce_warp<M>(value(a, r));
        }
    }

    /* Adds the kept vectors v, v + step ... of a range. */
    __device__ typename run::type with_vectors(typename run::type a, const range &r, unsigned v, unsigned step) const {
        const auto *of = s.values.of;
        if constexpr (M::exchanges_lanes) {
            /* Sums of sums of four, so that fewer additions round. */
            typename run::type b = run::identity();
#pragma unroll 1
            for (; v + 3 * step < r.to; v += 4 * step)
                b = run::join(b,
                              run::join(run::join(of[v], of[v + step]), run::join(of[v + 2 * step], of[v + 3 * step])));
            a = run::join(a, b);
            b = run::identity();
            for (; v < r.to; v += step)
                b = run::join(b, of[v]);
            return run::join(a, b);
        } else {
            for (; v < r.to; v += step)
                a = run::with(a, of[v], v);
            return a;
        }
    }

    /* Reduces a range by this thread. */
    __device__ V reduce(const range &r) const {
        return value(with_tail(with_vectors(with_head(run::identity(), r), r, r.from, 1), r), r);
    }

    /* Reduces a range by a team of 2^log lanes, at least two. All lanes of a warp call it; the result is valid in the
     * first lane of each team. */
    __device__ V reduce_by_team(const range &r, unsigned log) const {
        const unsigned step = 1u << log, lane = threadIdx.x & (step - 1);
        typename run::type a = run::join(edge(r, lane), with_vectors(run::identity(), r, r.from + lane, step));
#pragma unroll 1
        for (unsigned delta = step / 2; delta > 0; delta /= 2)
            a = run::join(a, shuffle_down(a, static_cast<int>(delta)));
        return value(a, r);
    }

    /* Reduces a range by the lanes of a warp, all of which call it. The result is valid in lane 0. */
    __device__ V reduce_by_warp(const range &r) const {
        const unsigned lane = threadIdx.x % 32;
        typename run::type a = edge(r, lane);
        unsigned v = r.from + lane;
        if constexpr (M::exchanges_lanes) {
            constexpr unsigned at_once = 8;
            typename M::acc all = M::identity();
#pragma unroll 1
            for (; v + 32 * (at_once - 1) < r.to; v += 32 * at_once) {
                V part[at_once];
#pragma unroll
                for (unsigned i = 0; i < at_once; ++i)
                    part[i] = s.values.of[v + 32 * i];
                all = M::merge(all, X::unpack(reduce_array<M>(part)));
            }
            a = run::join(a, X::pack(all));
        }
        return value_of_warp(run::join(a, with_vectors(run::identity(), r, v, 32)), r);
    }

    /* A lane's part of elements begin .. end-1, which are in the warp's share of the tile; of indices, lane 0 has all.
     * All lanes call it. */
    __device__ V part_of_lane(unsigned begin, unsigned end) const {
        const range r(begin, end);
        const unsigned lane = threadIdx.x % 32;
        typename run::type a = run::identity();
        const vectors_of_lane<T> vectors(reinterpret_cast<const unsigned char *>(stage), r.from);
        vectors.each_before(r.to, [&](const vector &p, unsigned v) { a = run::with(a, run::of(p), v); });
        a = run::join(a, edge(r, lane));
        if constexpr (M::holds_index) {
            const V x = value_of_warp(a, r);
            return lane == 0 ? x : X::identity();
        } else {
            return run::value(a);
        }
    }

    /* Reduces a segment for each lane of a warp, or for each team of 2^log lanes, whose first lane then has the result.
     * All lanes of the warp call it. */
    template <bool Teams> __device__ V reduce_in_warp(unsigned begin, unsigned end, unsigned log) const {
        if (!Teams && __all_sync(~0u, end - begin <= 1))
            return single(begin, end);
        const bool is_long = end - begin > (Teams ? (most_of_thread << log) + 1 : most_of_thread + 1) * size;
        const range r(begin, is_long ? begin : end);
        V x = Teams ? reduce_by_team(r, log) : reduce(r);
        const bool leads = !Teams || (threadIdx.x & ((1u << log) - 1)) == 0;
        for (unsigned left = __ballot_sync(~0u, is_long && leads); left != 0; left &= left - 1) {
            const int lane = __ffs(static_cast<int>(left)) - 1;
            const V y = shuffle_up(reduce_by_warp({__shfl_sync(~0u, begin, lane), __shfl_sync(~0u, end, lane)}), lane);
            if (threadIdx.x % 32 == lane)
                x = y;
        }
        return x;
    }
};

/* Writes the results of a tile's segments. */
template <class M, unsigned Words> class vector_writer {
    const vector_worker<M> &w;
    const dpr_segment_args &args;
    const tile_offsets<Words> offsets;
    const unsigned at;
    const bool keep, is_plain;

  public:
    __device__ vector_writer(const vector_worker<M> &of, const dpr_segment_args &a, unsigned carry_at, bool keep_first)
        : w(of), args(a), offsets(of.template offsets<Words>()), at(carry_at), keep(keep_first),
          is_plain(has_plain_results<M> && !a.run.init.present) {}

    /* The positions of segment `k`, or if k == tile.ends, of what lies behind all segments. If offsets have no order,
     * *in_order becomes false, and the positions are still the tile's. */
    __device__ tile_range positions(unsigned k, bool *in_order) const {
        const tile_range r = k < w.tile.ends ? offsets[k] : tile_range{offsets[k - 1].end, w.tile.elements};
        const bool ok = r.end <= w.tile.elements && r.begin <= r.end;
        *in_order &= ok && (k == w.tile.ends || offsets.is_whole(k, r.end));
        return ok ? tile_range{w.first + r.begin, w.first + r.end} : tile_range{0, 0};
    }

    /* Takes the value `x` of segment `k`'s elements in the tile. What lies behind the segments is carried on, and the
     * first segment also has what was carried to the tile. */
    __device__ void put(unsigned k, typename partial<M>::type x) const {
        using X = partial<M>;
        if (k == w.tile.ends) {
            w.s.carry[1 - at] = X::unpack(x);
        } else if (is_plain && k > 0) {
            static_cast<typename M::result *>(args.run.out)[w.tile.end + k] = plain_result<M>(x);
        } else {
            typename M::acc a = X::unpack(x);
            if (k == 0)
                a = offsets[0].end > 0 ? M::merge(w.s.carry[at], a) : w.s.carry[at];
            const bool is_signed = args.list.dtype == DPR_I32;
            const uint64_t begin = static_cast<uint64_t>(offsets.number(k, is_signed)),
                           end = static_cast<uint64_t>(offsets.number(k + 1, is_signed));
            if (k == 0 && keep)
                w.s.head = a;
            else
                write_segment<M>(args, w.tile.end + k, begin, end - begin, a);
        }
    }

    /* Reduces the segments: as differences, or each by as many threads of a warp as there are for it. */
    __device__ void reduce() const {
        const unsigned segments = w.tile.ends + 1;
        bool in_order = threadIdx.x > 0 || offsets.begins_before();
        if constexpr (M::has_inverse)
            subtract(segments, &in_order);
        else if (segments > merge_workers / 2)
            reduce_in_warps<false>(segments, 0, &in_order);
        else if (segments > 2 * merge_warps)
            reduce_in_warps<true>(segments, log_team(segments), &in_order);
        else
            reduce_by_warps(segments, &in_order);
        if (!in_order)
            w.s.unsorted = true;
    }

  private:
    /* The value of a segment is that of all elements up to its end without those up to its begin. Each lane has a
     * boundary between segments, and lane 0 one that another warp has, too. */
    __device__ void subtract(unsigned segments, bool *in_order) const {
        const unsigned lane = threadIdx.x % 32, elements = w.tile.elements, ends = w.tile.ends;
#pragma unroll 1
        for (unsigned i = threadIdx.x / 32 * 31; i < segments; i += merge_warps * 31) {
            const unsigned boundary = i + lane;
            unsigned at_element = boundary == 0 ? 0 : elements;
            bool ok = true;
            if (boundary - 1 < ends) {
                at_element = offsets[boundary - 1].end;
                ok = offsets.is_whole(boundary - 1, at_element) && at_element <= elements;
                at_element = min(at_element, elements);
            }
            const unsigned before = __shfl_up_sync(~0u, at_element, 1);
            *in_order &= ok && (lane == 0 || before <= at_element);
            typename partial<M>::type x;
            if (__all_sync(~0u, lane == 0 || at_element - before <= 1)) {
                x = w.single(w.first + before, w.first + at_element);
            } else {
                const auto up_to = w.prefix(w.first + at_element);
                x = vector_run<M>::value(M::without(up_to, shuffle_up(up_to, 1)));
            }
            if (lane > 0 && boundary <= segments)
                put(boundary - 1, x);
        }
    }

    /* The most lanes, as a power of two, that so many segments can have. */
    static __device__ unsigned log_team(unsigned segments) {
        return __clz(static_cast<int>(segments - 1)) - __clz(merge_workers) - 1;
    }

    __device__ void reduce_by_warps(unsigned segments, bool *in_order) const {
#pragma unroll 1
        for (unsigned k = threadIdx.x / 32; k < segments; k += merge_warps) {
            const tile_range r = positions(k, in_order);
            const auto x = w.reduce_by_warp({r.begin, r.end});
            if (threadIdx.x % 32 == 0)
                put(k, x);
        }
    }

    /* A thread each, or a team of 2^log threads. */
    template <bool Teams> __device__ void reduce_in_warps(unsigned segments, unsigned log, bool *in_order) const {
        /* All lanes of a warp take part if one of them has a segment. */
#pragma unroll 1
        for (unsigned i = threadIdx.x / 32 * 32; (Teams ? i >> log : i) < segments; i += merge_workers) {
            const unsigned at_lane = i + threadIdx.x % 32, k = Teams ? at_lane >> log : at_lane;
            tile_range r = {0, 0};
            if (k < segments)
                r = positions(k, in_order);
            const auto x = w.template reduce_in_warp<Teams>(r.begin, r.end, log);
            if (k < segments && (!Teams || (threadIdx.x & ((1u << log) - 1)) == 0))
                put(k, x);
        }
    }
};

/* Reduces a tile in which segments end. Arguments are those of the function for tiles that are reduced by chunks. */
template <class M>
__device__ void reduce_tile(const vector_worker<M> &w, const dpr_segment_args &args, bool wide, unsigned at,
                            bool keep) {
    if constexpr (M::has_inverse)
        w.keep_prefixes();
    else
        w.keep_vectors();
    sync_workers();
    if (wide)
        vector_writer<M, 2>(w, args, at, keep).reduce();
    else
        vector_writer<M, 1>(w, args, at, keep).reduce();
    w.s.release(w.stage);
    sync_workers();
}

template <class M> using worker_of = cuda::std::conditional_t<goes_by_vector<M>, vector_worker<M>, tile_worker<M>>;

} // namespace dpr

#endif
