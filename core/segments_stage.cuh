/* The tiles of segments.merge: what a block keeps in shared memory, and the warp that fetches tiles to it. */
#ifndef DPR_CORE_SEGMENTS_STAGE_CUH
#define DPR_CORE_SEGMENTS_STAGE_CUH

#include <cuda/ptx>

#include "segments_path.cuh"
#include "segments_values.cuh"

namespace dpr {

/* A tile, as the fetching warp describes it. */
struct merge_tile {
    uint64_t element, end;   /* the place on the path where it begins */
    unsigned elements, ends; /* how many it has */
    unsigned elements_at;    /* byte of the stage where its first element lies */
    unsigned numbers_at;     /* byte of the stage where offset number `end` lies */
};

/* What the elements of each warp leave behind their last end, or all of them; whether there is an end. */
template <class M> struct warp_tails {
    typename partial<M>::type x[merge_warps];
    bool any[merge_warps];
};

/* The shared memory of a block. */
template <class M> struct merge_shared {
    static constexpr unsigned elements = tile_elements_bytes / sizeof(typename M::storage);
    /* Elements and offsets, each from the beginning of a line on. */
    alignas(line_bytes) unsigned char stage[merge_stages][tile_elements_bytes + 4 * line_bytes];
    alignas(16) unsigned char flag[elements]; /* 1: the last element of a segment */
    end_values<M> ends;
    warp_tails<M> left[2]; /* of tiles in turn, because no barrier is between two tiles without ends */
    typename M::acc carry[2], head;
    merge_tile tile[merge_stages];
    uint64_t full[merge_stages], empty[merge_stages];
    path_place place[merge_warps + 1]; /* where the block's first tiles begin */
    bool unsorted, last;
};

/* ---- Fetching ---- */

/* The places where a block's tiles begin. The first ones are found by all warps; for the others each lane of the
 * fetching warp looks for one, by steps between the tiles that it fetches. */
class tile_places {
    const merge_path &path;
    const path_place *early;
    uint64_t from, to; /* the block's part of the path, in bytes */
    path_place known;  /* of a lane: of the tiles that are being fetched */
    uint64_t d, low, high;

    __device__ void step() {
        if (low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (path.before(middle, d))
                low = middle + 1;
            else
                high = middle;
        }
    }

    /* Begins to look for tiles t .. t+31; the tile before begins at `place`. */
    __device__ void seek(uint64_t t, path_place place) {
        d = distance(from, to, t + threadIdx.x % 32);
        low = place.end;
        high = path.most(low, distance(from, to, t - 1), d);
    }

  public:
    static constexpr uint64_t early_tiles = merge_warps + 1;

    static __device__ uint64_t distance(uint64_t from, uint64_t to, uint64_t t) {
        return min(from + t * tile_bytes, to);
    }

    __device__ tile_places(const merge_path &of, const path_place *first, uint64_t begin, uint64_t end)
        : path(of), early(first), from(begin), to(end), known{0, 0} {
        seek(early_tiles, early[early_tiles - 1]);
    }

    __device__ void advance() { step(); }

    /* Where tile `t` begins. Called for each in turn. */
    __device__ path_place operator()(uint64_t t) {
        if (t < early_tiles)
            return early[t];
        const int lane = static_cast<int>((t - early_tiles) % 32);
        if (lane == 0) {
            while (__any_sync(~0u, low < high))
                step();
            known = path.place(d, low);
            const path_place last = {__shfl_sync(~0u, known.element, 31), __shfl_sync(~0u, known.end, 31)};
            seek(t + 32, last);
        }
        return {__shfl_sync(~0u, known.element, lane), __shfl_sync(~0u, known.end, lane)};
    }
};

/* Copies bytes from .. to-1 of global memory to `stage`, where they have the same place in a line, and what surrounds
 * them up to the boundaries of vectors, but nothing outside of low .. high-1. A warp calls it. Returns the bytes that
 * `full` has to wait for, for its first lane, which must add them to the barrier before. */
struct line_copy {
    const unsigned char *from, *to; /* whole vectors: the copy engine's part */
    const unsigned char *begin, *end;

    __device__ line_copy(const unsigned char *first, const unsigned char *behind, const unsigned char *low,
                         const unsigned char *high)
        : begin(first), end(behind) {
        constexpr uintptr_t mask = vector_bytes - 1;
        uintptr_t a = reinterpret_cast<uintptr_t>(first) & ~mask, b = (reinterpret_cast<uintptr_t>(behind) + mask) & ~mask;
        if (a < reinterpret_cast<uintptr_t>(low))
            a += vector_bytes;
        if (b > reinterpret_cast<uintptr_t>(high))
            b -= vector_bytes;
        from = reinterpret_cast<const unsigned char *>(a);
        to = reinterpret_cast<const unsigned char *>(first < behind && a < b ? b : a);
    }

    __device__ unsigned bytes() const { return static_cast<unsigned>(to - from); }

    /* Where byte `p` of memory lies in the stage, of which byte `begin` lies in the first line. */
    __device__ unsigned at(const unsigned char *p) const {
        return static_cast<unsigned>(p - begin + reinterpret_cast<uintptr_t>(begin) % line_bytes);
    }

    /* Copies the few bytes that are not in whole vectors. */
    __device__ void edges(unsigned char *stage) const {
        const unsigned lane = threadIdx.x % 32;
        const unsigned char *head = begin + lane;
        if (head < from && head < end)
            stage[at(head)] = *head;
        const unsigned char *tail = (to > begin ? to : begin) + lane;
        if (tail >= from && tail < end)
            stage[at(tail)] = *tail;
    }

    __device__ void bulk(unsigned char *stage, uint64_t *full) const {
        namespace ptx = cuda::ptx;
        if (to > from)
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage + at(from), from, bytes(), full);
    }
};

__device__ inline void wait_for_parity(uint64_t *barrier, unsigned round) {
    while (!cuda::ptx::mbarrier_try_wait_parity(barrier, round % 2)) {}
}

/* Describes the tile between two places, or an empty one if they cannot be a tile's because offsets have no order. */
template <class M>
__device__ merge_tile tile_between(merge_shared<M> &s, path_place a, path_place b, unsigned end_bytes) {
    const uint64_t elements = b.element - a.element, ends = b.end - a.end;
    const bool sound = b.element >= a.element && b.end >= a.end && elements <= tile_bytes + 31 && ends <= tile_bytes
                       && elements * sizeof(typename M::storage) + ends * end_bytes <= tile_bytes + 31;
    if (!sound)
        s.unsorted = true;
    return {a.element, a.end, sound ? static_cast<unsigned>(elements) : 0, sound ? static_cast<unsigned>(ends) : 0, 0, 0};
}

/* Bytes from the beginning of the stage up to the line that follows the chunks with its first `bytes` bytes. */
__device__ inline unsigned lines_of_chunks(unsigned bytes) {
    const unsigned chunks = (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    return (chunks + line_bytes - 1) / line_bytes * line_bytes;
}

/* Fetches the block's tiles one after another. The fetching warp calls it. */
template <class M>
__device__ void fetch_tiles(merge_shared<M> &s, const dpr_segment_args &args, const merge_path &path,
                            const segment_numbers &numbers, uint64_t segments, uint64_t from, uint64_t to) {
    using T = typename M::storage;
    namespace ptx = cuda::ptx;
    const unsigned end_bytes = numbers.size() + sizeof(typename M::result);
    const auto *in = static_cast<const unsigned char *>(args.run.in);
    tile_places places(path, s.place, from, to);
    path_place a = places(0);
    for (uint64_t t = 0; from + t * tile_bytes < to; ++t) {
        const path_place b = places(t + 1);
        const unsigned slot = t % merge_stages, round = static_cast<unsigned>(t / merge_stages);
        merge_tile tile = tile_between(s, a, b, end_bytes);
        const line_copy elements(in + tile.element * sizeof(T), in + (tile.element + tile.elements) * sizeof(T), in,
                                 in + args.run.count * sizeof(T));
        const line_copy offsets(numbers.at(tile.end), numbers.at(tile.end + tile.ends + 1), numbers.at(0),
                                numbers.at(segments + 1));
        tile.elements_at = elements.at(elements.begin);
        const unsigned lines = lines_of_chunks(elements.at(elements.end) + vector_bytes);
        tile.numbers_at = lines + offsets.at(offsets.begin);
        if (round > 0)
            wait_for_parity(&s.empty[slot], round - 1);
        elements.edges(s.stage[slot]);
        if (tile.ends > 0)
            offsets.edges(s.stage[slot] + lines);
        ptx::fence_proxy_async(ptx::space_shared);
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            s.tile[slot] = tile;
            const unsigned bytes = elements.bytes() + (tile.ends > 0 ? offsets.bytes() : 0);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &s.full[slot], bytes);
            elements.bulk(s.stage[slot], &s.full[slot]);
            if (tile.ends > 0)
                offsets.bulk(s.stage[slot] + lines, &s.full[slot]);
        }
        places.advance();
        a = b;
    }
}

} // namespace dpr

#endif
