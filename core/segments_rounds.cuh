/* How the blocks of segments.group go through segments. In each round every group of neighbouring threads reduces one
 * segment. Each warp then reduces, one after the other, those that are too long for its groups. A segment that is long
 * for a warp, or for a block if blocks are the groups, is left to a second launch, in which all blocks share it: the
 * first launch lists these segments in workspace, and the second one divides them into slices of about the same size.
 * The block that reduces the last slice of a segment combines the values of all of them.
 *
 * How a segment is divided depends on its length and on the lengths of all long segments together, not on the order of
 * the list, which differs from run to run. So the results are the same in each run.
 *
 * A worker W does what depends on the operation. The threads of a warp, or of the block if `size` is more than 32, call
 * its functions together, because shuffles and barriers need them; one calls row_of() and write().
 *
 *   value                     what threads exchange
 *   row, row_of(value)        its form in workspace
 *   read(r, lane, step)       the value of elements `lane`, `lane + step` ... of a range
 *   merge(value, size)        the value of each `size` neighbouring threads, valid in the first of them. `size` is that
 *                             of a group, a warp or the block
 *   gather(rows)              the value of the rows that a thread shares
 *   write(i, r, value)        writes the result of segment `i`, which is this range */
#ifndef DPR_CORE_SEGMENTS_ROUNDS_CUH
#define DPR_CORE_SEGMENTS_ROUNDS_CUH

#include "finish.cuh"
#include "segments.cuh"
#include "segments_group.h"

namespace dpr {

/* A group leaves a segment to its warp if each of its threads would read more elements than this. An estimate. */
constexpr unsigned longest_share = 128;

/* The values of slices. */
template <class Row> struct row_range {
    const Row *first;
    unsigned count;

    /* How many of them a thread merges: number threadIdx.x and every group_threads-th after it. */
    __device__ unsigned share() const { return (count + group_threads - 1 - threadIdx.x) / group_threads; }
    __device__ const Row &operator[](unsigned i) const { return first[threadIdx.x + i * group_threads]; }
};

/* ---- The list ---- */

/* 20 bits count segments: at most one more than the list has room for, and one for each thread of a grid. 44 bits count
 * units of 2^13 elements: enough for 2^19 segments of 2^38 elements each. */
constexpr int unit_bits = 44;
constexpr uint64_t one_listed = uint64_t{1} << unit_bits;

/* What scratch memory has from the first launch until the end of the second one. */
struct list_scratch {
    uint64_t listed; /* `one_listed` for each long segment, and in the lower bits the units of all of them */
    unsigned ticket; /* of the blocks of the second launch */
};

__device__ inline list_scratch *scratch_of(const dpr_segment_args &args) {
    return static_cast<list_scratch *>(args.run.scratch);
}

__device__ inline listed_segment *list_of(const dpr_segment_args &args) {
    return static_cast<listed_segment *>(args.run.workspace);
}

__device__ inline uint64_t units_of(uint64_t count) {
    return (count + slice_unit - 1) / slice_unit;
}

/* Lists segment `i`, which has `count` elements. One thread calls it. Segments that find no room are only counted, and
 * not even that once it is known that there are too many, so the counter does not overflow. */
__device__ inline void list_segment(const dpr_segment_args &args, uint64_t i, uint64_t count) {
    const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> listed(scratch_of(args)->listed);
    if (listed.load(cuda::memory_order_relaxed) / one_listed > args.groups.room)
        return;
    const uint64_t before = listed.fetch_add(one_listed + units_of(count), cuda::memory_order_relaxed);
    if (before / one_listed < args.groups.room)
        list_of(args)[before / one_listed] = {i, before % one_listed, 0};
}

/* ---- Rounds ---- */

template <class W> struct segment_rounds {
    using row = typename W::row;
    static_assert(sizeof(row) <= slice_bytes);
    const dpr_segment_args &args;
    const W &worker;
    /* What is reduced: segments; or, if `listed` is not 0, the slices of so many segments, which have at most `longest`
     * units each. Slices are numbered in the order of the list. There may be a number without a slice behind those of
     * each segment, so that first_slice() is quickly known. */
    uint64_t items;
    unsigned listed, longest;

    __device__ segment_rounds(const dpr_segment_args &a, const W &w)
        : args(a), worker(w), items(dpr_segment_count(&a.list)), listed(0), longest(0) {}

    __device__ segment_range range_of(uint64_t segment) const { return dpr::range_of(args.list, segment); }

    /* ---- Slices ---- */

    /* Makes items of the slices of the listed segments. Items stay segments if the list had no room for all of them, or
     * if the units need more than 31 bits: sums with them then fit 32 bits, and 64-bit divisions would be calls. */
    __device__ void take_list(uint64_t found) {
        const uint64_t segments = found / one_listed, units = found % one_listed;
        if (segments > args.groups.room || units > UINT32_MAX / 2)
            return;
        listed = static_cast<unsigned>(segments);
        longest = (static_cast<unsigned>(units) + args.groups.slices - 1) / args.groups.slices;
        items = static_cast<unsigned>(units) / longest + listed;
    }

    __device__ unsigned first_slice(unsigned slot) const {
        return static_cast<unsigned>(list_of(args)[slot].before) / longest + slot;
    }

    /* Returns where the segment of a slice is in the list. */
    __device__ unsigned slot_of(unsigned slice) const {
        unsigned slot = 0, behind = listed;
#pragma unroll 1
        while (behind - slot > 1) {
            const unsigned middle = (slot + behind) / 2;
            if (first_slice(middle) <= slice)
                slot = middle;
            else
                behind = middle;
        }
        return slot;
    }

    __device__ unsigned slices_of(const segment_range &whole) const {
        return (static_cast<unsigned>(units_of(whole.count)) + longest - 1) / longest;
    }

    /* The slices of a segment have about the same size. */
    __device__ segment_range range_of_slice(unsigned slice, unsigned slot) const {
        const segment_range whole = range_of(list_of(args)[slot].number);
        const unsigned slices = slices_of(whole);
        const uint64_t size = (static_cast<unsigned>(units_of(whole.count)) + slices - 1) / slices * slice_unit;
        const uint64_t before = (slice - first_slice(slot)) * size;
        if (before >= whole.count)
            return {whole.first, 0};
        return {whole.first + before, whole.count - before < size ? whole.count - before : size};
    }

    /* Stores the value of a slice. Returns the rows of all slices of its segment to the block that stores the last one,
     * and none to the others. */
    __device__ row_range<row> meet(const typename W::value &x, unsigned slice) const {
        const unsigned slot = slot_of(slice);
        listed_segment *segment = list_of(args) + slot;
        row *rows = reinterpret_cast<row *>(list_of(args) + args.groups.room);
        const unsigned slices = slices_of(range_of(segment->number));
        if (threadIdx.x == 0)
            rows[slice] = worker.row_of(x);
        if (!last_to_arrive(&segment->arrived, slices))
            return {rows, 0};
        return {rows + first_slice(slot), slices};
    }

    /* ---- Items ---- */

    /* Whether the launch reduces an item of so many elements. */
    __device__ bool takes(uint64_t count) const {
        if (args.groups.which == DPR_SEGMENTS_ALL)
            return true;
        return args.groups.which == DPR_SEGMENTS_SHORT ? count <= args.groups.longest
                                                       : count > (listed > 0 ? 0 : args.groups.longest);
    }

    __device__ void write(uint64_t item, segment_range r, const typename W::value &x) const {
        if (listed > 0) {
            item = list_of(args)[slot_of(item)].number;
            r = range_of(item);
        }
        worker.write(item, r, x);
    }

    /* Reduces an item by `step` threads, of which this is number `lane`, and writes its result. There is one place that
     * reads and one that merges, because the code is long. */
    __device__ void reduce_item(uint64_t item, segment_range r, unsigned lane, unsigned step, bool writes) const {
        typename W::value x = worker.read(r, lane, step);
#pragma unroll 1
        for (bool has_met = listed == 0;; has_met = true) {
            x = worker.merge(x, step);
            if (has_met)
                break;
            const row_range<row> rows = meet(x, item);
            writes = rows.count > 0;
            if (!writes)
                break;
            x = worker.gather(rows);
        }
        if (lane == 0 && writes)
            write(item, r, x);
    }

    /* Reduces items first, first + 1 ..., one for each group, and then by the whole warp those of its groups that are
     * long for a group. Groups of more than a warp are the block. */
    __device__ void reduce(uint64_t first) const {
        const unsigned size = 1u << args.groups.log_size;
        unsigned step = size, lane = threadIdx.x % size,
                 left = 0; /* a bit for the first lane of each group whose item is too long for it */
        uint64_t item = first + threadIdx.x / size;
#pragma unroll 1
        for (bool by_groups = true;; by_groups = false) {
            segment_range r = {0, 0};
            if (item < items)
                r = listed > 0 ? range_of_slice(item, slot_of(item)) : range_of(item);
            const bool is_taken = item < items && takes(r.count);
            const bool is_long = is_taken && by_groups && size < 32 && r.count > uint64_t{longest_share} * size;
            const bool writes = is_taken && !is_long;
            if (args.groups.which == DPR_SEGMENTS_SHORT && item < items && !is_taken && lane == 0)
                list_segment(args, item, r.count);
            if (size > 32 && !writes)
                return;
            if (!writes)
                r.count = 0;
            reduce_item(item, r, lane, step, writes);
            if (by_groups && size < 32)
                left = __ballot_sync(~0u, is_long && lane == 0);
            if (left == 0)
                return;
            item = first + (threadIdx.x / 32 * 32 + static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1) / size;
            left &= left - 1;
            step = 32;
            lane = threadIdx.x % 32;
        }
    }

    __device__ void reduce_all() const {
        const uint64_t groups = group_threads >> args.groups.log_size;
#pragma unroll 1
        for (uint64_t first = blockIdx.x * groups; first < items; first += gridDim.x * groups)
            reduce(first);
    }
};

/* What a kernel of segments.group does. All threads call it. */
template <class W> __device__ void reduce_segments(const dpr_segment_args &args, const W &worker) {
    segment_rounds<W> rounds(args, worker);
    const bool of_list = args.groups.which == DPR_SEGMENTS_LONG;
    if (of_list) {
        const uint64_t found = scratch_of(args)->listed;
        if (found == 0)
            return;
        rounds.take_list(found);
    }
    rounds.reduce_all();
    if (!of_list)
        return;
    __syncthreads(); /* all threads have read what the last block sets to zero */
    if (threadIdx.x == 0 && take_ticket(&scratch_of(args)->ticket, gridDim.x))
        *scratch_of(args) = {0, 0};
}

} // namespace dpr

#endif
