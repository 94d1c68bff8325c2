/* How the threads of a block of segments.merge reduce a tile. */
#ifndef DPR_CORE_SEGMENTS_TILE_CUH
#define DPR_CORE_SEGMENTS_TILE_CUH

#include "segments.cuh"
#include "segments_stage.cuh"

namespace dpr {

__device__ inline void sync_workers() {
    asm volatile("bar.sync 1, %0;" ::"n"(merge_workers) : "memory");
}

/* Whether `x` is true in all workers. It is a barrier of them, too. */
__device__ inline bool all_workers(bool x) {
    unsigned all;
    asm volatile("{\n\t"
                 ".reg .pred p, q;\n\t"
                 "setp.ne.u32 p, %1, 0;\n\t"
                 "bar.red.and.pred q, 1, %2, p;\n\t"
                 "selp.u32 %0, 1, 0, q;\n\t"
                 "}"
                 : "=r"(all)
                 : "r"(static_cast<unsigned>(x)), "n"(merge_workers)
                 : "memory");
    return all != 0;
}

template <class V> __device__ V shuffle_up(V x, int delta) {
    words_of<V> words(x);
#pragma unroll
    for (int i = 0; i < words.size; ++i)
        words.w[i] = __shfl_up_sync(~0u, words.w[i], delta);
    return words.value();
}

/* The words of a value that is aligned as its parts are. */
template <class T> struct aligned_words {
    using word = cuda::std::conditional_t<
        alignof(T) == 1, uint8_t,
        cuda::std::conditional_t<alignof(T) == 2, uint16_t,
                                 cuda::std::conditional_t<alignof(T) == 4, uint32_t, uint64_t>>>;
    static constexpr unsigned size = sizeof(T) / sizeof(word);

    static __device__ T load(const unsigned char *at) {
        word w[size];
#pragma unroll
        for (unsigned i = 0; i < size; ++i)
            w[i] = reinterpret_cast<const word *>(at)[i];
        T x;
        memcpy(&x, w, sizeof x);
        return x;
    }

    static __device__ void store(unsigned char *at, const T &x) {
        word w[size];
        memcpy(w, &x, sizeof x);
#pragma unroll
        for (unsigned i = 0; i < size; ++i)
            reinterpret_cast<word *>(at)[i] = w[i];
    }
};

/* Runs over a chunk of `Vectors` vectors, whose first element is at position `from` of the stage, and leaves the value
 * of what ends at each bit of the mask: at the place of its last element, or in `value` and the places behind it.
 * Returns the value of what is behind the last end. `Split`: elements lie across vectors. */
template <class M, unsigned Vectors, bool Split, class Mask>
__device__ typename partial<M>::type run_over_chunk(unsigned char *stage, unsigned from, const Mask &mask,
                                                    typename partial<M>::type *value, uint64_t origin) {
    using T = typename M::storage;
    using R = running<M>;
    constexpr unsigned size = vector_bytes / sizeof(T);
    chunk_value<M> a;
#pragma unroll
    for (unsigned v = 0; v < Vectors; ++v) {
        auto *vector = reinterpret_cast<packet<T> *>(stage + (from + v * size) * sizeof(T));
        packet<T> elements = {}, values = {};
        if constexpr (!Split)
            elements = *vector;
#pragma unroll
        for (unsigned e = 0; e < size; ++e) {
            const unsigned i = v * size + e, p = from + i;
            a.add(Split ? aligned_words<T>::load(stage + p * sizeof(T)) : elements[e], i, p);
            const typename R::type x = a.after(i);
            if constexpr (values_in_place<M> && Split)
                aligned_words<typename R::type>::store(stage + p * sizeof(T), x);
            else if constexpr (values_in_place<M>)
                memcpy(&values.w[e * sizeof(T) / sizeof(uint32_t)], &x, sizeof x);
            else if (mask[i])
                *value++ = R::value(x, origin);
            if (mask[i])
                a.reset();
        }
        if constexpr (values_in_place<M> && !Split)
            *vector = values;
    }
    return R::value(a.after(Vectors * size - 1), origin);
}

struct tile_range {
    unsigned begin, end;
};

/* The offsets of a tile's segments in a stage, of `Words` words each. */
template <unsigned Words> class tile_offsets {
    const uint32_t *low; /* the lower words of the offsets */
    uint64_t element;

  public:
    __device__ tile_offsets(const unsigned char *at, uint64_t first_element)
        : low(reinterpret_cast<const uint32_t *>(at)), element(first_element) {}

    /* Where segment `k` of the tile begins and ends, counted from the tile's first element. */
    __device__ tile_range operator[](unsigned k) const {
        const uint32_t begin = low[k * Words], end = low[(k + 1) * Words], first = static_cast<uint32_t>(element);
        return {k == 0 ? 0 : begin - first, end - first};
    }

    /* Offset `k` itself. */
    __device__ int64_t number(unsigned k, bool is_signed) const {
        if constexpr (Words == 2)
            return reinterpret_cast<const int64_t *>(low)[k];
        else
            return is_signed ? static_cast<int64_t>(static_cast<int32_t>(low[k])) : static_cast<int64_t>(low[k]);
    }

    /* Whether the first segment begins in the tile or before it. A negative offset looks as if it did not. */
    __device__ bool begins_before() const { return static_cast<uint64_t>(number(0, false)) <= element; }

    /* Whether the upper word of the offset that ends segment `k` is right, too. */
    __device__ bool is_whole(unsigned k, unsigned end) const {
        return Words == 1 || reinterpret_cast<const uint64_t *>(low)[k + 1] == element + end;
    }
};

/* One worker's view of a tile. Positions are counted in elements from the beginning of the stage; if elements lie
 * across vectors, from the tile's first element. */
template <class M> struct tile_worker {
    using T = typename M::storage;
    using X = partial<M>;
    using V = typename X::type;
    using R = running<M>;
    static constexpr unsigned size = vector_bytes / sizeof(T), chunk = chunk_bytes / sizeof(T);
    using mask_type = chunk_mask<chunk>;
    merge_shared<M> &s;
    unsigned char *stage;
    const merge_tile tile;
    unsigned first, behind; /* positions of the tile's first element, and behind its last one */
    bool split;

    __device__ tile_worker(merge_shared<M> &shared, unsigned t)
        : s(shared), stage(shared.stage[t % merge_stages]), tile(shared.plan[plan_of_tile(t)].tile) {
        split = alignof(T) < sizeof(T) && tile.elements_at % sizeof(T) != 0;
        first = split ? 0 : tile.elements_at / sizeof(T);
        behind = first + tile.elements;
    }

    template <unsigned Words> __device__ tile_offsets<Words> offsets() const {
        return {stage + tile.numbers_at, tile.element};
    }

    __device__ unsigned char *place(unsigned position) const {
        return stage + position * sizeof(T) + (split ? tile.elements_at : 0);
    }
    __device__ T element(unsigned position) const { return aligned_words<T>::load(place(position)); }
    /* The index that an element at position 0 would have. */
    __device__ uint64_t origin() const { return tile.element - first; }

    /* Sets the flags of the segments' last elements. Returns whether none of the thread's segments has more than one
     * element in the tile. */
    template <unsigned Words> __device__ bool mark() const {
        const tile_offsets<Words> at = offsets<Words>();
        bool in_order = true, single = true;
#pragma unroll 2
        for (unsigned k = threadIdx.x; k < tile.ends; k += merge_workers) {
            const auto r = at[k];
            const bool ok = r.end <= tile.elements && r.begin <= r.end;
            if (ok && r.end > r.begin)
                s.values.flag[first + r.end - 1] = 1;
            in_order &= ok & at.is_whole(k, r.end);
            single &= r.end - r.begin <= 1;
        }
        if (!in_order || (threadIdx.x == 0 && !at.begins_before()))
            s.unsorted = true;
        return single;
    }

    /* Takes the flags of the thread's chunk, and clears them. */
    __device__ mask_type take_flags() const {
        using word =
            cuda::std::conditional_t<size == 1, uint8_t, cuda::std::conditional_t<size == 2, uint16_t, uint32_t>>;
        auto *flags = reinterpret_cast<word *>(s.values.flag + threadIdx.x * chunk);
        constexpr unsigned each = sizeof(word);
        mask_type mask;
#pragma unroll
        for (unsigned i = 0; i < chunk / each; ++i) {
            /* The product has the lowest bits of four bytes side by side in its upper four bits. */
            const uint32_t bits = each == 4   ? (flags[i] * 0x10204080u) >> 28
                                  : each == 2 ? (flags[i] * 0x81u) >> 7 & 3
                                              : flags[i];
            mask.bits |= bits << i * each;
        }
#pragma unroll
        for (unsigned i = 0; i < chunk / each; ++i)
            flags[i] = 0;
        return mask;
    }

    /* Where the value of a segment lies whose last element is at `position`. Not valid before number_values(). */
    __device__ unsigned char *value_place(unsigned position) const {
        if constexpr (values_in_place<M>) {
            return place(position);
        } else {
            const unsigned c = position / chunk;
            const unsigned i = s.values.first[c] + s.values.mask[c].before(position % chunk);
            return reinterpret_cast<unsigned char *>(&s.values.value[min(i, s.values.most - 1)]);
        }
    }

    __device__ V value_at(unsigned position) const {
        if constexpr (values_in_place<M>)
            return R::value(aligned_words<typename R::type>::load(place(position)), origin());
        else
            return *reinterpret_cast<const V *>(value_place(position));
    }

    /* The value of the element at `position`. */
    __device__ V value_of_element(unsigned position) const {
        return X::of_element(element(position), origin() + position);
    }

    /* Puts `before` before the value of the segment whose last element is at `position`. */
    __device__ void carry_to(unsigned position, V before) const {
        const V value = X::combine(before, value_at(position));
        if constexpr (values_in_place<M>)
            aligned_words<typename R::type>::store(place(position), R::of_value(value));
        else
            *reinterpret_cast<V *>(value_place(position)) = value;
    }

    /* If values do not lie in place, finds the place of the thread's first one. All workers call it. */
    __device__ void number_values(const mask_type &mask) const {
        if constexpr (!values_in_place<M>) {
            const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, own = mask.count();
            unsigned n = own;
#pragma unroll
            for (int delta = 1; delta < 32; delta *= 2) {
                const unsigned before = __shfl_up_sync(~0u, n, delta);
                n += lane >= delta ? before : 0;
            }
            if (lane == 31)
                s.values.count[warp] = static_cast<uint16_t>(n);
            sync_workers();
            n -= own;
            for (unsigned w = 0; w < warp; ++w)
                n += s.values.count[w];
            s.values.first[threadIdx.x] = static_cast<uint16_t>(n);
            s.values.mask[threadIdx.x] = mask;
        }
    }

    template <bool Split> __device__ V walk(const mask_type &mask) const {
        V *value = nullptr;
        if constexpr (!values_in_place<M>)
            value = s.values.value + s.values.first[threadIdx.x];
        return run_over_chunk<M, vectors_of_worker, Split>(place(0), threadIdx.x * chunk, mask, value, origin());
    }

    /* Runs over the thread's elements in the tile. `flags`: the ends of segments. The elements before the tile and
     * those behind it, which the chunk may have, are kept apart by a bit of the mask each. */
    __device__ V run(const mask_type &flags) const {
        const unsigned from = threadIdx.x * chunk, last = behind - 1 - from, before = first - 1 - from;
        mask_type mask = flags;
        mask.set(before);
        const bool ends_here = mask.set(last);
        number_values(mask);
        V x = X::identity();
        if (from >= behind || from + chunk <= first)
            return x;
        if constexpr (alignof(T) < sizeof(T))
            x = split ? walk<true>(mask) : walk<false>(mask);
        else
            x = walk<false>(mask);
        if (last < chunk)
            x = ends_here ? X::identity() : value_at(behind - 1);
        return x;
    }

    /* A lane's part of elements begin .. end-1, which are in the warp's share of the tile. */
    __device__ V part_of_lane(unsigned begin, unsigned end) const {
        const unsigned lane = threadIdx.x % 32;
        V x = X::identity();
        if (split) {
            typename R::type a = R::identity();
#pragma unroll 1
            for (unsigned p = begin + lane; p < end; p += 32)
                a = R::add(a, element(p), p);
            x = R::value(a, origin());
        } else {
            const unsigned from = (begin + size - 1) / size, to = end / size;
            const vectors_of_lane<T> vectors(stage, from);
            if constexpr (M::holds_index) {
                typename R::type a = R::identity();
                vectors.each_before(to, [&](const packet<T> &p, unsigned v) {
#pragma unroll
                    for (unsigned e = 0; e < size; ++e)
                        a = R::add(a, p[e], v * size + e);
                });
                x = R::value(a, origin());
            } else {
                tile_of<M> t;
                vectors.each_before(to, [&](const packet<T> &p, unsigned) { add_vectors<1, M>(t, &p, 0); });
                x = X::pack(t.fold_into(M::identity(), [](unsigned) { return uint64_t{0}; }));
            }
            /* Elements before the vectors that are filled, and those behind them. */
            const unsigned head = min(from * size, end) - begin, tail = from <= to ? end - to * size : 0;
            const unsigned position = lane < head ? begin + lane : to * size + lane - head;
            if (lane < head + tail)
                x = X::combine(x, value_of_element(position));
        }
        return x;
    }
};

/* ---- Carrying values over threads ---- */

/* What a worker's elements leave: a value behind the last end of its own, or of all its elements if it has no end. */
template <class M> struct carried {
    using X = partial<M>;
    typename X::type x;
    bool open; /* no thread before this one in its warp has an end */

    /* Makes it of what the thread itself leaves. Afterwards it is of the threads of the warp before this one. */
    __device__ void scan(warp_tails<M> &left, bool any) {
        const unsigned lane = threadIdx.x % 32, below = (1u << lane) - 1;
        const unsigned ends = __ballot_sync(~0u, any);
        /* How many threads before this one have no end between them and this one. */
        const unsigned reach = lane - (31 - __clz(ends & (below << 1 | 1) | 1));
        if (ends != ~0u) {
#pragma unroll
            for (unsigned delta = 1; delta < 32; delta *= 2) {
                const typename X::type before = shuffle_up(x, static_cast<int>(delta));
                if (reach >= delta)
                    x = X::combine(before, x);
            }
        }
        if (lane == 31) {
            left.x[threadIdx.x / 32] = x;
            left.any[threadIdx.x / 32] = ends != 0;
        }
        x = shuffle_up(x, 1);
        if (lane == 0)
            x = X::identity();
        open = (ends & below) == 0;
    }

    /* After a barrier of the workers: the value that the thread's first end receives from all threads before, and from
     * `first`, which is what lies before all of them. */
    __device__ typename M::acc value(const warp_tails<M> &left, const typename M::acc &first) const {
        typename M::acc a = X::unpack(x);
        if (open) {
            int w = static_cast<int>(threadIdx.x / 32) - 1;
            bool any = false;
            for (; w >= 0 && !any; --w) {
                a = M::merge(X::unpack(left.x[w]), a);
                any = left.any[w];
            }
            if (!any)
                a = M::merge(first, a);
        }
        return a;
    }
};

/* What the workers leave behind their last end, or all of their elements; *any: whether they have an end. */
template <class M> __device__ typename M::acc left_by_all(const warp_tails<M> &left, bool *any) {
    typename M::acc a = M::identity();
    *any = false;
    for (int w = merge_warps - 1; w >= 0 && !*any; --w) {
        a = M::merge(partial<M>::unpack(left.x[w]), a);
        *any = left.any[w];
    }
    return a;
}

/* ---- Reducing a tile ---- */

/* Runs over the tile's elements, so that every segment's value lies at value_place(). Writes what it carries on to
 * s.carry[1 - at]. `ended_before`: the tile's first end belongs to an element before the tile. */
template <class M> __device__ void run_over_tile(const tile_worker<M> &w, unsigned at, bool ended_before) {
    using X = partial<M>;
    merge_shared<M> &s = w.s;
    const auto flags = w.take_flags();
    const bool any = flags.count() > 0;
    carried<M> c;
    c.x = w.run(flags);
    c.scan(s.left, any);
    sync_workers();
    const typename M::acc before = ended_before ? M::identity() : s.carry[at];
    if (any)
        w.carry_to(threadIdx.x * w.chunk + flags.lowest(), c.open ? X::pack(c.value(s.left, before)) : c.x);
    if (threadIdx.x == 0) {
        bool has_ends;
        const typename M::acc left = left_by_all(s.left, &has_ends);
        s.carry[1 - at] = has_ends ? left : M::merge(before, left);
    }
}

/* Writes the result of the tile's first segment, whose value may be the carried one, or keeps it in s.head. */
template <unsigned Words, bool Single, class M>
__device__ void write_first(const tile_worker<M> &w, const dpr_segment_args &args, unsigned at, bool keep) {
    using X = partial<M>;
    const tile_offsets<Words> offsets = w.template offsets<Words>();
    const unsigned end = offsets[0].end;
    const bool is_signed = args.list.dtype == DPR_I32;
    typename M::acc a = w.s.carry[at];
    if (end > w.tile.elements)
        a = M::identity();
    else if (end > 0 && Single)
        a = M::merge(a, X::unpack(w.value_of_element(w.first)));
    else if (end > 0)
        a = X::unpack(w.value_at(w.first + end - 1));
    const int64_t from = offsets.number(0, is_signed), to = offsets.number(1, is_signed);
    if (keep)
        w.s.head = a;
    else
        write_segment<M>(args, w.tile.end, static_cast<uint64_t>(from), static_cast<uint64_t>(to - from), a);
}

/* Writes the results of the tile's segments. `Single`: they have at most one element in it, whose value run_over_tile()
 * has not left. */
template <unsigned Words, bool Single, class M>
__device__ void write_results(const tile_worker<M> &w, const dpr_segment_args &args, unsigned at, bool keep) {
    using X = partial<M>;
    const tile_offsets<Words> offsets = w.template offsets<Words>();
    auto *out = static_cast<typename M::result *>(args.run.out) + w.tile.end;
    const bool is_plain = has_plain_results<M> && !args.run.init.present, is_signed = args.list.dtype == DPR_I32;
    /* Where there are fewer segments than threads, the last thread has nothing else to do. */
    if (threadIdx.x == merge_workers - 1)
        write_first<Words, Single>(w, args, at, keep);
#pragma unroll 2
    for (unsigned k = threadIdx.x == 0 ? merge_workers : threadIdx.x; k < w.tile.ends; k += merge_workers) {
        const auto r = offsets[k];
        const bool some = r.end > r.begin && r.end <= w.tile.elements;
        const unsigned last = w.first + r.end - 1;
        typename X::type x = X::identity();
        if (some)
            x = Single ? w.value_of_element(last) : w.value_at(last);
        if (is_plain) {
            out[k] = plain_result<M>(x);
        } else {
            const int64_t begin = offsets.number(k, is_signed), end = offsets.number(k + 1, is_signed);
            write_segment<M>(args, w.tile.end + k, static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin),
                             X::unpack(x));
        }
    }
}

template <bool Single, class M>
__device__ void write_results(const tile_worker<M> &w, const dpr_segment_args &args, bool wide, unsigned at,
                              bool keep) {
    if (wide)
        write_results<2, Single>(w, args, at, keep);
    else
        write_results<1, Single>(w, args, at, keep);
}

/* Reduces a tile whose segments have at most one element in it, with `left` elements, 0 or 1, behind the last end. */
template <class M>
__device__ void reduce_single(const tile_worker<M> &w, const dpr_segment_args &args, bool wide, unsigned at, bool keep,
                              unsigned left) {
    w.take_flags();
    if (threadIdx.x == 0)
        w.s.carry[1 - at] = left == 0 ? M::identity() : partial<M>::unpack(w.value_of_element(w.behind - 1));
    write_results<true>(w, args, wide, at, keep);
    sync_workers(); /* so that the next tile's flags are not cleared */
}

/* The elements of the tile that are the calling warp's share: those in as many whole vectors for each warp. */
template <class Worker> __device__ tile_range share_of_warp(const Worker &w) {
    const unsigned from = w.first / Worker::size + threadIdx.x / 32 * vectors_of_warp;
    return {max(w.first, from * Worker::size), min(w.behind, (from + vectors_of_warp) * Worker::size)};
}

/* reduce_tile() for a tile in which few segments end. Each warp reduces its share in pieces, which end where segments
 * do. */
template <class M>
__device__ void reduce_pieces(const tile_worker<M> &w, const dpr_segment_args &args, bool wide, unsigned at,
                              bool keep) {
    using X = partial<M>;
    constexpr unsigned size = tile_worker<M>::size;
    merge_shared<M> &s = w.s;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, ends = w.tile.ends;
    const auto with_offsets = [&](auto f) {
        if (wide)
            f(w.template offsets<2>());
        else
            f(w.template offsets<1>());
    };
    /* Lane k knows where the segment lies that ends in the tile as number k; lane `ends`, what is behind all ends. */
    unsigned end = w.behind;
    bool in_order = true;
    if (lane < ends)
        with_offsets([&](auto offsets) {
            const unsigned to = offsets[lane].end;
            in_order = (lane > 0 || offsets.begins_before()) && to <= w.tile.elements && offsets.is_whole(lane, to);
            end = w.first + min(to, w.tile.elements);
        });
    const unsigned before = __shfl_up_sync(~0u, end, 1), begin = lane == 0 ? w.first : before;
    if (!in_order || end < begin)
        s.unsorted = true;
    const tile_range share = share_of_warp(w);
    const unsigned low = max(begin, share.begin), high = min(end, share.end);
#pragma unroll 1
    for (unsigned left = __ballot_sync(~0u, lane <= ends && low < high); left != 0; left &= left - 1) {
        const int k = __ffs(static_cast<int>(left)) - 1;
        const auto x = reduce_warp<M>(w.part_of_lane(__shfl_sync(~0u, low, k), __shfl_sync(~0u, high, k)));
        /* No other piece has this place, because pieces and shares are in order. */
        if (lane == 0)
            s.values.piece[at][warp + k] = x;
    }
    sync_workers();
    int64_t from = 0, to = 0;
    if (threadIdx.x < ends)
        with_offsets([&](auto offsets) {
            const bool is_signed = args.list.dtype == DPR_I32;
            from = offsets.number(lane, is_signed);
            to = offsets.number(lane + 1, is_signed);
        });
    s.release(w.stage);
    if (threadIdx.x > ends)
        return;
    typename M::acc a = lane == 0 ? s.carry[at] : M::identity();
    if (begin < end) {
        const auto warp_of = [&](unsigned position) { return (position / size - w.first / size) / vectors_of_warp; };
        for (unsigned i = warp_of(begin); i <= warp_of(end - 1); ++i)
            a = M::merge(a, X::unpack(s.values.piece[at][i + lane]));
    }
    if (lane == ends)
        s.carry[1 - at] = a;
    else if (lane == 0 && keep)
        s.head = a;
    else
        write_segment<M>(args, w.tile.end + lane, static_cast<uint64_t>(from), static_cast<uint64_t>(to - from), a);
}

/* Reduces a tile in which segments end. carry[at] is the value of the elements since the last end before the tile;
 * carry[1 - at] receives that for the next one. If `keep`, the result of the first end is not written but kept. `wide`:
 * offsets have two words. */
template <class M>
__device__ void reduce_tile(const tile_worker<M> &w, const dpr_segment_args &args, bool wide, unsigned at, bool keep) {
    if (w.tile.ends <= few_ends)
        return reduce_pieces(w, args, wide, at, keep);
    /* Tiles of larger elements gain little: reading them takes longer than reducing them. */
    constexpr bool looks = sizeof(typename M::storage) <= 4;
    bool none_longer = wide ? w.template mark<2>() : w.template mark<1>();
    if constexpr (looks)
        none_longer = all_workers(none_longer);
    else
        sync_workers();
    const auto end = [&](unsigned k) { return (wide ? w.template offsets<2>()[k] : w.template offsets<1>()[k]).end; };
    const unsigned left = w.tile.elements - end(w.tile.ends - 1);
    if (looks && none_longer && left <= 1) {
        reduce_single(w, args, wide, at, keep, left);
    } else {
        if (w.tile.elements > 0)
            run_over_tile(w, at, end(0) == 0);
        else if (threadIdx.x == 0)
            w.s.carry[1 - at] = end(0) == 0 ? M::identity() : w.s.carry[at];
        sync_workers();
        write_results<false>(w, args, wide, at, keep);
    }
    /* The next tile has a barrier before it changes what is read here: values, tails of warps and carried values. */
    w.s.release(w.stage);
}

} // namespace dpr

#endif
