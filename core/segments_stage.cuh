/* The tiles of segments.merge: what a block keeps in shared memory, and the warp that fetches tiles to it. */
#ifndef DPR_CORE_SEGMENTS_STAGE_CUH
#define DPR_CORE_SEGMENTS_STAGE_CUH

#include <cuda/ptx>

#include "segments_path.cuh"
#include "segments_vectors.cuh"

namespace dpr {

/* A tile, as the fetching warp describes it. */
struct merge_tile {
    uint64_t element, end;   /* the place on the path where it begins */
    unsigned elements, ends; /* how many it has */
    unsigned elements_at;    /* byte of the stage where its first element lies */
    unsigned numbers_at;     /* byte of the stage where offset number `end` lies */
};

/* Bytes begin .. end-1 of global memory, which are copied to a stage together with those around them up to the
 * boundaries of vectors. Only bytes of low .. high-1 are read. In the stage they have the same place in a line. */
struct line_copy {
    const unsigned char *begin, *end, *from, *to; /* from .. to: the whole vectors, which the copy engine copies */

    __device__ line_copy(const unsigned char *first, const unsigned char *behind, const unsigned char *low,
                         const unsigned char *high)
        : begin(first), end(behind) {
        constexpr uintptr_t mask = vector_bytes - 1;
        uintptr_t a = reinterpret_cast<uintptr_t>(first) & ~mask,
                  b = (reinterpret_cast<uintptr_t>(behind) + mask) & ~mask;
        if (a < reinterpret_cast<uintptr_t>(low))
            a += vector_bytes;
        if (b > reinterpret_cast<uintptr_t>(high))
            b -= vector_bytes;
        from = reinterpret_cast<const unsigned char *>(a);
        to = reinterpret_cast<const unsigned char *>(first < behind && a < b ? b : a);
    }

    __device__ unsigned bytes() const { return static_cast<unsigned>(to - from); }
    __device__ bool has_edges() const { return begin < end && (from > begin || to < end); }

    /* Where byte `p` lies in the stage, of which byte `begin` lies in the first line. */
    __device__ unsigned at(const unsigned char *p) const {
        return static_cast<unsigned>(p - begin + reinterpret_cast<uintptr_t>(begin) % line_bytes);
    }

    /* Copies the few bytes that are not in whole vectors. A warp calls it. */
    __device__ void copy_edges(unsigned char *stage) const {
        const unsigned lane = threadIdx.x % 32;
        const unsigned char *head = begin + lane, *tail = (to > begin ? to : begin) + lane;
        if (head < from && head < end)
            stage[at(head)] = *head;
        if (tail >= from && tail < end)
            stage[at(tail)] = *tail;
    }
};

/* Where a block's arrays lie, for the fetching warp. */
struct merge_arrays {
    const unsigned char *in;
    uint64_t elements, segments;
    segment_numbers offsets;
    unsigned element_bytes, end_bytes;

    __device__ line_copy elements_of(const merge_tile &tile) const {
        const unsigned char *first = in + tile.element * element_bytes;
        return {first, first + uint64_t{tile.elements} * element_bytes, in, in + elements * element_bytes};
    }
    __device__ line_copy offsets_of(const merge_tile &tile) const {
        const uint64_t behind = tile.ends > 0 ? tile.end + tile.ends + 1 : tile.end;
        return {offsets.at(tile.end), offsets.at(behind), offsets.at(0), offsets.at(segments + 1)};
    }
};

/* A tile and its two copies. */
struct merge_plan {
    merge_tile tile;
    const unsigned char *elements, *offsets; /* where the copies begin in global memory, */
    unsigned elements_to, offsets_to;        /* and in the stage */
    unsigned elements_bytes, offsets_bytes;
    unsigned offset_lines; /* byte of the stage from which on offsets lie */
    bool has_edges;
};

/* What the elements of each warp leave behind their last end, or all of them; whether there is an end. */
template <class M> struct warp_tails {
    typename partial<M>::type x[merge_warps];
    bool any[merge_warps];
};

constexpr unsigned planned_tiles = 64;            /* two batches, one of them being prepared */
constexpr unsigned first_tiles = merge_warps - 1; /* of the first batch; the others have 32 */

/* The place of tile `t` among the planned ones. */
__device__ inline unsigned plan_of_tile(unsigned t) {
    return (t + 32 - first_tiles) % planned_tiles;
}

/* The shared memory of a block. */
template <class M> struct merge_shared {
    /* Elements and offsets, each from the beginning of a line on. */
    alignas(line_bytes) unsigned char stage[merge_stages][tile_elements_bytes + 4 * line_bytes];
    cuda::std::conditional_t<goes_by_vector<M>, vector_values<M>, chunk_values<M>> values;
    warp_tails<M> left;
    typename M::acc carry[2], head;
    merge_plan plan[planned_tiles];
    uint64_t full[merge_stages], empty[merge_stages];
    path_place place[merge_warps + 1]; /* where the block's first tiles begin and end, and where its part ends */
    unsigned tiles;                    /* of the block, at least one; valid when the first one has been fetched */
    bool unsorted;

    /* Lets a stage be filled again when all warps of workers have called it, each after its last use of the stage. */
    __device__ void release(const void *of) {
        __syncwarp();
        if (threadIdx.x % 32 == 0)
            cuda::ptx::mbarrier_arrive(&empty[static_cast<const unsigned char *>(of) != stage[0]]);
    }
};

__device__ inline void wait_for_parity(uint64_t *barrier, unsigned round) {
    while (!cuda::ptx::mbarrier_try_wait_parity(barrier, round % 2)) {}
}

/* The warp that fetches a block's tiles. It plans them in batches, a lane each: the first from places that all warps
 * have found, on the path by work if segments are uneven; then each lane looks for the end of a tile on the path by
 * bytes, a step or two whenever a tile has been fetched. */
template <class M> class tile_fetcher {
    merge_shared<M> &s;
    const merge_arrays &arrays;
    const merge_path &path;
    path_place before;  /* where the batch begins that is being looked for */
    uint64_t d;         /* bytes of the path before the end of the lane's tile, */
    unsigned low, high; /* the least and the most ends between `before` and there, */
    uint64_t ahead;     /* and the bits of the offset at the end in the middle, or, once found, at the next one */

    __device__ uint64_t middle() const { return before.end + (low + high) / 2; }

    __device__ void step() {
        if (low < high) {
            if (path.before(middle(), ahead, d))
                low = (low + high) / 2 + 1;
            else
                high = (low + high) / 2;
            ahead = path.bits_of_end(middle());
        }
    }

    /* Bytes of the path before tile `t`, which is not of the first batch. */
    __device__ uint64_t begin(unsigned t) const {
        const uint64_t behind_first = path.distance(s.place[first_tiles]);
        return min(behind_first + uint64_t{t - first_tiles} * tile_bytes, path.distance(s.place[merge_warps]));
    }

    /* Begins to look for the ends of tiles t .. t+31. */
    __device__ void seek(unsigned t) {
        d = begin(t + threadIdx.x % 32 + 1);
        low = 0;
        high = path.most(before.end, d - begin(t));
        ahead = path.bits_of_end(middle());
    }

    /* Plans a tile between two places; an empty one if they cannot be a tile's because offsets have no order. */
    __device__ void plan(merge_plan &p, path_place a, path_place b) const {
        const uint64_t elements = b.element - a.element, ends = b.end - a.end;
        const bool sound = b.element >= a.element && b.end >= a.end && elements <= tile_bytes + 31 && ends <= tile_bytes
                           && elements * arrays.element_bytes + ends * arrays.end_bytes <= tile_bytes + 31;
        if (!sound)
            s.unsorted = true;
        p.tile = {
            a.element, a.end, sound ? static_cast<unsigned>(elements) : 0, sound ? static_cast<unsigned>(ends) : 0,
            0,         0};
        const line_copy of_elements = arrays.elements_of(p.tile), of_offsets = arrays.offsets_of(p.tile);
        /* The chunk of the last element may end behind it. */
        const unsigned behind = of_elements.at(of_elements.end) + chunk_bytes;
        p.offset_lines = (behind + line_bytes - 1) / line_bytes * line_bytes;
        p.tile.elements_at = of_elements.at(of_elements.begin);
        p.tile.numbers_at = p.offset_lines + of_offsets.at(of_offsets.begin);
        p.elements = of_elements.from;
        p.elements_to = of_elements.at(of_elements.from);
        p.elements_bytes = of_elements.bytes();
        p.offsets = of_offsets.from;
        p.offsets_to = p.offset_lines + of_offsets.at(of_offsets.from);
        p.offsets_bytes = of_offsets.bytes();
        p.has_edges = of_elements.has_edges() || of_offsets.has_edges();
    }

    /* Plans the batch of tiles t .. t+31, of which the calling lane knows where its own ends, and seeks the next. */
    __device__ void plan_batch(unsigned t) {
#pragma unroll 1
        while (__any_sync(~0u, low < high))
            step();
        const path_place end = path.place(d, middle(), ahead);
        /* The next block begins where find() found its place. That is another one only if offsets have no order. */
        if (d == path.distance(s.place[merge_warps]) && end != s.place[merge_warps])
            s.unsorted = true;
        path_place begin = {__shfl_up_sync(~0u, end.element, 1), __shfl_up_sync(~0u, end.end, 1)};
        if (threadIdx.x % 32 == 0)
            begin = before;
        plan(s.plan[plan_of_tile(t + threadIdx.x % 32)], begin, end);
        before = {__shfl_sync(~0u, end.element, 31), __shfl_sync(~0u, end.end, 31)};
        seek(t + 32);
    }

    __device__ void copy_edges(const merge_plan &p, unsigned char *stage) const {
        arrays.elements_of(p.tile).copy_edges(stage);
        arrays.offsets_of(p.tile).copy_edges(stage + p.offset_lines);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }

    /* Starts the copies of a tile. One lane calls it. */
    __device__ void copy(const merge_plan &p, unsigned char *stage, uint64_t *full) const {
        namespace ptx = cuda::ptx;
        /* Workers that reduce by chunks have stored values in the stage, through another proxy than the copies'. */
        ptx::fence_proxy_async(ptx::space_shared);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                       p.elements_bytes + p.offsets_bytes);
        if (p.elements_bytes > 0)
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage + p.elements_to, p.elements,
                               p.elements_bytes, full);
        if (p.offsets_bytes > 0)
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage + p.offsets_to, p.offsets, p.offsets_bytes,
                               full);
    }

  public:
    /* `most`: bytes of the block's part, or more. */
    __device__ tile_fetcher(merge_shared<M> &shared, const merge_arrays &of, const merge_path &along, uint64_t most)
        : s(shared), arrays(of), path(along), before(shared.place[first_tiles]) {
        const unsigned lane = threadIdx.x % 32;
        const uint64_t rest = path.distance(s.place[merge_warps]) - path.distance(before);
        bool some = lane == 0;
        if (lane < first_tiles) {
            plan(s.plan[plan_of_tile(lane)], s.place[lane], s.place[lane + 1]);
            some |= s.place[lane] != s.place[lane + 1];
        }
        const unsigned of_first = __popc(__ballot_sync(~0u, some));
        if (lane == 0) {
            s.tiles = rest > most ? 1 : of_first + static_cast<unsigned>((rest + tile_bytes - 1) / tile_bytes);
            if (rest > most || (rest == 0 && before != s.place[merge_warps])) /* offsets have no order */
                s.unsorted = true;
        }
        __syncwarp();
        seek(first_tiles);
    }

    __device__ void fetch_all() {
        for (unsigned t = 0; t < s.tiles; ++t) {
            if (t >= first_tiles && (t - first_tiles) % 32 == 0)
                plan_batch(t);
            __syncwarp();
            const merge_plan &p = s.plan[plan_of_tile(t)];
            const unsigned slot = t % merge_stages, round = t / merge_stages;
            if (round > 0)
                wait_for_parity(&s.empty[slot], round - 1);
            if (p.has_edges) {
                copy_edges(p, s.stage[slot]);
                __syncwarp();
            }
            /* Every lane arrives, because the workers read what it has written. */
            if (threadIdx.x % 32 == 0)
                copy(p, s.stage[slot], &s.full[slot]);
            else
                cuda::ptx::mbarrier_arrive(&s.full[slot]);
            step();
            if (t < first_tiles) /* there are fewer tiles until the next batch */
                step();
        }
    }
};

} // namespace dpr

#endif
