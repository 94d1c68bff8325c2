/* What the tiles of key_reduce.cu tell each other: how many runs end before a tile, and the value of the run that is
 * open where the tile begins. Each tile posts a record of its own; the last one of each group of 32 tiles also posts a
 * record of all tiles up to itself. The first warp of a block waits for the records of the tiles before in its own
 * group, and each other warp for one of the seven groups before that: it takes the record of all if that is there, and
 * otherwise the records of the group's tiles. The warp of the oldest group takes only the record of all.
 *
 * Values are combined in a fixed tree within a group, and one group after the other. So it does not change the result
 * which records a block finds, and sums of floats have the same bits in each run.
 *
 * Blocks wait for tiles of lower numbers, whose blocks have started before: a GPU starts the blocks of a grid in the
 * order of their numbers, on which CUB's scans rely, too. */
#ifndef DPR_CORE_KEY_LOOKBACK_CUH
#define DPR_CORE_KEY_LOOKBACK_CUH

#include "segments_tile.cuh"

namespace dpr {

constexpr unsigned tiles_of_group = 32;

/* Of some neighbouring elements: how many runs end there, and the value behind the last end, or of all elements if no
 * run ends. `X` is what threads exchange, or an accumulator. */
template <class X> struct key_record {
    uint32_t ends;
    X open;
};

/* Records in memory. All are zero, and so not complete, when the kernel starts. */
template <class M> class key_places {
    using acc = typename M::acc;
    using of_tile = tagged_partial<key_record<typename partial<M>::type>>;
    using of_all = tagged_partial<key_record<acc>>;

    uint64_t *tiles, *groups;

  public:
    using record = key_record<acc>;

    static constexpr __host__ __device__ size_t words(size_t n) {
        return n * of_tile::words + (n + tiles_of_group - 1) / tiles_of_group * of_all::words;
    }

    __device__ key_places(uint64_t *at, unsigned n) : tiles(at), groups(at + size_t{n} * of_tile::words) {}

    static __device__ record none() { return {0, M::identity()}; }

    static __device__ record combine(const record &a, const record &b) {
        return {a.ends + b.ends, b.ends > 0 ? b.open : M::merge(a.open, b.open)};
    }

    __device__ void post(unsigned tile, const key_record<typename partial<M>::type> &r) const {
        of_tile::post(tiles + size_t{tile} * of_tile::words, r);
    }
    __device__ void post_all(unsigned group, const record &r) const {
        of_all::post(groups + size_t{group} * of_all::words, r);
    }

    /* Combines the records of a warp's lanes, in lane 0. */
    static __device__ record combine_lanes(record r) {
#pragma unroll
        for (unsigned delta = 1; delta < 32; delta *= 2) {
            const record later = {__shfl_down_sync(~0u, r.ends, delta), shuffle_down(r.open, static_cast<int>(delta))};
            if (threadIdx.x % (2 * delta) == 0)
                r = combine(r, later);
        }
        return r;
    }

    /* Waits for the records of a group's first `n` tiles, one in each lane; the other lanes get an empty record. */
    __device__ record wait_for_tiles(unsigned group, unsigned n) const {
        const unsigned lane = threadIdx.x % 32;
        of_tile seen;
        do {
            if (lane < n)
                seen.look(tiles + size_t{group * tiles_of_group + lane} * of_tile::words);
        } while (__any_sync(~0u, lane < n && !seen.complete()));
        if (lane >= n)
            return none();
        const auto r = seen.value();
        return {r.ends, partial<M>::unpack(r.open)};
    }

    /* Waits for the record of all tiles up to the end of a group, or for those of the group's tiles. Returns, in lane
     * 0, which of both has come, and sets *of_everything if it is the first. The oldest group that a block looks at
     * must post the first. */
    __device__ record wait_for_group(unsigned group, bool oldest, bool *of_everything) const {
        const unsigned lane = threadIdx.x % 32;
        of_all all;
        of_tile own;
        for (;;) {
            all.look(groups + size_t{group} * of_all::words);
            own.look(tiles + size_t{group * tiles_of_group + lane} * of_tile::words);
            *of_everything = all.complete();
            if (__all_sync(~0u, *of_everything))
                return all.value();
            if (!oldest && __all_sync(~0u, own.complete()))
                break;
        }
        *of_everything = false;
        const auto r = own.value();
        return combine_lanes({r.ends, partial<M>::unpack(r.open)});
    }

    /* What lies before the group of a block: `seen` has what its warps have found in the groups before. */
    static __device__ record before_group(const record *seen, const bool *of_everything) {
        unsigned w = 1;
        while (w < merge_warps - 1 && !of_everything[w])
            ++w;
        record r = seen[w];
        while (--w > 0)
            r = combine(r, seen[w]);
        return r;
    }
};

} // namespace dpr

#endif
