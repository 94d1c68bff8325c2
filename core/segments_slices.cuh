/* Slices of long segments that blocks of segments.small share: their places in scratch memory, and the list of those
 * that nobody has taken. */
#ifndef DPR_CORE_SEGMENTS_SLICES_CUH
#define DPR_CORE_SEGMENTS_SLICES_CUH

#include "segments_alone.cuh"

namespace dpr {

/* At most so many segments are few: every warp reads all lengths. */
constexpr uint64_t few_segments = 32;

/* The shortest slice, as a logarithm; and the most slices that the elements of few segments would fill. */
constexpr unsigned log_least_slice = 11;
constexpr uint64_t most_slices = 256;

/* Scratch memory has a ticket for each segment that is cut. Where segments are many, it begins with a word, and entries
 * of the list follow. The word counts slices that are combined, slices that are listed, and blocks that list no more.
 * Whoever takes an entry zeroes it, and tickets return to zero with their segment's last slice. Whoever completes the
 * word zeroes it. */
constexpr unsigned list_room = 224, entries_at = 2, tickets_behind_list = 2 * (entries_at + 2 * list_room);
constexpr int counter_bits = 26;
constexpr uint64_t one_listed = uint64_t{1} << counter_bits, one_passed = one_listed << counter_bits;

/* The most threads of a grid, because each may once try to list a segment after the list is full. */
constexpr uint64_t most_listers = one_listed / (list_room + 1);

/* Places for values of slices of few segments: enough for segments that do not overlap. */
constexpr unsigned places_of_few = most_slices + few_segments;

/* Bytes of scratch memory before these values, which are zero between runs. So a run needs no workspace, which would
 * take a call in a stream 3 us (H100). */
constexpr unsigned values_of_few = places_of_few * sizeof(unsigned),
                   values_of_many = (tickets_behind_list + list_room) * sizeof(unsigned);

/* The most slices that the elements of an array of many segments would fill. Each segment that is cut has more than two
 * slices, so rounding up adds less than half: there is room for all segments that do not overlap. */
constexpr uint64_t most_listed = list_room * 2 / 3;

static_assert(places_of_few != list_room, "the number says how segments are divided");
static_assert(values_of_few % largest_small == 0 && values_of_many % largest_small == 0);
static_assert(values_of_few + places_of_few * largest_small <= end_ticket * sizeof(unsigned));
static_assert(values_of_many + list_room * largest_small <= end_ticket * sizeof(unsigned));

/* What a block reduces: a segment, or one slice of it. */
struct piece {
    uint64_t segment, first;
    unsigned count;         /* elements, from `first` on */
    unsigned slices, slice; /* of the segment; the number of this one */
    unsigned place;         /* of the value of slice 0, or no_place: the block reduces all slices itself */
};

constexpr unsigned no_place = ~0u;

/* An entry of the list: two words that are not zero. */
struct entry {
    static constexpr int slice_bits = 9, count_bits = 25;
    static constexpr int first_bits = 64 - count_bits, segment_bits = 64 - 3 * slice_bits;
    static_assert(list_room < 1 << slice_bits);

    static __device__ bool fits(uint64_t segment, segment_range r) {
        return segment >> segment_bits == 0 && (r.first + r.count) >> first_bits == 0;
    }

    using word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

    static __device__ void write(uint64_t *to, const piece &p) {
        const unsigned numbers = (p.place << slice_bits | p.slices) << slice_bits | p.slice;
        word(to[0]).store(p.first << count_bits | p.count, cuda::memory_order_relaxed);
        word(to[1]).store(p.segment << 3 * slice_bits | numbers, cuda::memory_order_relaxed);
    }

    /* Takes an entry. A piece without slices means that there is none, or that another block has taken it. The words
     * are independent, so both accesses are in flight at once; the first one is repeated only if it came before the
     * entry was written. */
    static __device__ piece take(uint64_t *from) {
        const word first(from[0]);
        uint64_t range = first.load(cuda::memory_order_relaxed);
        const uint64_t numbers = word(from[1]).exchange(0, cuda::memory_order_relaxed);
        if (numbers == 0)
            return {0, 0, 0, 0, 0, 0};
        while (range == 0)
            range = first.load(cuda::memory_order_relaxed);
        first.store(0, cuda::memory_order_relaxed);
        constexpr uint64_t mask = (1 << slice_bits) - 1, count_mask = (1 << count_bits) - 1;
        return {numbers >> 3 * slice_bits,
                range >> count_bits,
                static_cast<unsigned>(range & count_mask),
                static_cast<unsigned>(numbers >> slice_bits & mask),
                static_cast<unsigned>(numbers & mask),
                static_cast<unsigned>(numbers >> 2 * slice_bits & mask)};
    }
};

} // namespace dpr

#endif
