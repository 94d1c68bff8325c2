/* segments.small: as many threads for each segment as the device has for it, from one to a block. In short arrays each
 * block reads its segments alone (segments_alone.cuh). If there are more segments than threads, threads go through them
 * in rounds; a kernel of its own does several rounds at once if segments are short.
 *
 * In longer arrays, segments that are long for a block are cut into slices. The block that finishes a segment's last
 * slice combines the values of all of them in their order. How a segment is cut depends on lengths and on the launch
 * alone, so the bits of a result do not depend on timing. There are two ways to share slices; the second has two
 * kernels:
 *
 * - If there are at most 32 segments, every warp reads all lengths, and blocks take slices by their numbers.
 * - Otherwise the block that meets a long segment lists its slices in scratch memory. A block that is done with its own
 *   segments takes slices that it finds there. Help is an offer: a block ends only when it finds no slice in the list,
 *   so the block that has listed a segment takes what others have left, and no block waits for another. */
#include <algorithm>

#include "family.cuh"
#include "segments_alone.cuh"
#include "segments_cost.h"

namespace dpr {
namespace {

/* ---- What is to be tuned ---- */

/* Threads of the largest block; and of the largest and the smallest one for groups of its threads. */
constexpr unsigned small_threads = 1024, most_of_groups = 512, least_of_groups = 256;

/* Each segment has a block if there are few, or if they have more bytes on average than the first number. The block has
 * 512 threads instead of 256 above the second number, and 1024 above the third one if it can read them alone. */
constexpr uint64_t few_segments = 32, bytes_of_block = 2048, bytes_of_512 = 8192, bytes_of_1024 = 32768;

/* The most elements that a warp reads. */
constexpr unsigned longest_of_warp = 1024;

/* The most bytes that a block reads alone, if two slices are not longer: for each of its threads if segments are few,
 * and otherwise in total. To share a segment takes about as long as a block takes for this. */
constexpr uint64_t longest_of_thread = 128, longest_of_block = 65536;

/* The most bytes of an array whose blocks share nothing, because one that has all of them is not slower than blocks
 * that share them: for each thread of a block, if each of few segments has one, and in the largest block; if each of
 * many segments has a block; and if segments have groups of a block's threads, in total. */
constexpr uint64_t alone_of_few = 64, alone_of_largest = 128, alone_of_many = 512, alone_of_groups = 1 << 20;

/* The shortest slice, as a logarithm; and the most slices that the elements of few segments would fill. */
constexpr unsigned log_least_slice = 11;
constexpr uint64_t most_slices = 256;

/* If there are more segments than threads, and segments have fewer than most_of_short elements on average, a thread
 * reads segments_ahead of them at once, or half as many if accumulators are large: registers have no room for more. */
constexpr uint64_t most_of_short = 4;
constexpr unsigned segments_ahead = 4;
template <class M> constexpr unsigned at_once = sizeof(typename M::acc) > 8 ? segments_ahead / 2 : segments_ahead;

/* How often a block looks for slices if its own segments are so short that others must be long. */
constexpr unsigned most_looks = 6;

/* ---- Shared state ---- */

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
static_assert(most_listers / least_of_groups < UINT64_MAX / one_passed);

/* What a block or a warp reduces: a segment, or one slice of it. */
struct piece {
    uint64_t segment, first;
    unsigned count;         /* elements, from `first` on */
    unsigned slices, slice; /* of the segment; the number of this one */
    unsigned place;         /* of the value of slice 0, or no_place: the block reduces all slices itself */
};

constexpr unsigned no_place = ~0u;

/* Slices whose values a block keeps apart: as many as threads combine where it would be another block that does. */
constexpr unsigned kept_slices = least_of_groups;
static_assert(list_room <= kept_slices);

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

/* Segments that a block lists at most: one for each thread of the largest block, or several in blocks for groups. */
constexpr unsigned most_longs = segments_ahead * most_of_groups;
static_assert(most_longs >= small_threads);

/* The most elements of a segment that count where missing ones are summed up. */
constexpr unsigned most_counted = 1 << 20;
static_assert(uint64_t{most_longs} * most_counted <= uint64_t{1} << 31, "the sum of a block fits an int");

/* What the threads of a block share. */
template <class M> struct small_shared {
    typename partial<M>::type of_warp[small_threads / 32];
    typename M::acc kept[kept_slices]; /* of the segment whose slices the block reduces itself */
    piece taken;
    unsigned of_warps, of_block; /* segments that are long for a group: those for warps, and for the block */
    uint16_t longs[most_longs];  /* their numbers (segment_with()): for warps, and from the end for the block */
    bool is_full;                /* the list has had no room for a segment */
    int missing;                 /* elements that the block's segments would have if they were of ordinary length */
    unsigned listed, nearest;    /* slices in the list; distance of the nearest one that nobody has taken */
};

/* The sum of all lanes' numbers. */
__device__ int sum_of_lanes(int x) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, x);
#else
    for (int delta = 16; delta > 0; delta /= 2)
        x += __shfl_xor_sync(~0u, x, delta);
    return x;
#endif
}

/* ---- The kernel ---- */

/* What a kernel is for: few segments; many; or more than threads, and short (most_of_short). */
enum class small_kind { few, many, many_short };

/* The code is short: with cold caches, instructions are waited for, too. */
template <class M, small_kind Kind> class small_worker {
    using X = partial<M>;
    using V = typename X::type;

    /* Products of complex numbers of C64 lack registers otherwise. */
    static constexpr unsigned ahead = sizeof(V) > 8 && sizeof(V) > sizeof(typename M::storage) && !M::holds_index
                                          ? 2
                                          : vectors_ahead;

    const dpr_segment_args &args;
    small_shared<M> &shared;
    const segment_reader<M> in;
    const uint64_t segments;

    unsigned team = 32; /* threads that reduce the next piece together */
    unsigned next = 0;  /* number of the next slice, or of the next segment in a list of the block */
    unsigned all = 0;   /* slices of all segments, or in the list */
    unsigned log_slice;
    unsigned own_slice = 0; /* the next one of a segment that the block reduces itself */

    /* The segment of the lane, where segments are few, or of the thread's group. Of many ones, whether the group has
     * yet to reduce it as a piece. */
    segment_range own = {0, 0};
    bool has_own = false;

    /* Of few segments, the slices of the lane's, and in the upper half those of segments before it. Of many ones, in
     * thread 0, what the word was when the block passed, and later when it combined a segment. */
    uint64_t word = 0;

    static constexpr __device__ bool is_few() { return Kind == small_kind::few; }

    /* How many rounds begin together. */
    static constexpr __device__ unsigned rounds() { return Kind == small_kind::many_short ? at_once<M> : 1; }

    __device__ bool by_blocks() const { return args.groups.log_size > 5; }
    __device__ uint64_t size_of_slice() const { return uint64_t{1} << log_slice; }

    /* Atomics on memory that the compiler knows to be global are one instruction. */
    __device__ uint64_t *words() const {
        __builtin_assume(__isGlobal(args.run.scratch));
        return static_cast<uint64_t *>(args.run.scratch);
    }
    __device__ uint64_t *entry_at(unsigned i) const { return words() + entries_at + 2 * i; }
    __device__ V *values() const {
        return reinterpret_cast<V *>(reinterpret_cast<char *>(words()) + (is_few() ? values_of_few : values_of_many));
    }

    __device__ segment_range range_of(uint64_t segment) const {
        return segment < segments ? dpr::range_of(args.list, segment) : segment_range{0, 0};
    }

    /* Brings the numbers of a segment to L2. No instruction waits for them, as one would for a load that is used behind
     * branches. */
    __device__ void prefetch_range(uint64_t segment) const {
        if (segment >= segments)
            return;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(segment_numbers(args.list.begins, args.list.dtype).at(segment)));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(segment_numbers(args.list.ends, args.list.dtype).at(segment)));
    }

    /* ---- Slices ---- */

    __device__ unsigned slices_of(uint64_t count) const {
        const uint64_t size = size_of_slice();
        if (count <= args.groups.longest || count <= size)
            return 1;
        return static_cast<unsigned>((count + size - 1) >> log_slice);
    }

    __device__ piece slice_of(uint64_t segment, segment_range r, unsigned slices, unsigned slice,
                              unsigned place) const {
        const uint64_t skipped = uint64_t{slice} << log_slice, left = r.count - skipped, size = size_of_slice();
        const uint64_t count = slices > 1 && left > size ? size : left;
        return {segment, r.first + skipped, static_cast<unsigned>(count), slices, slice, place};
    }

    __device__ unsigned *ticket_of(const piece &p) const {
        return static_cast<unsigned *>(args.run.scratch) + (is_few() ? 0 : tickets_behind_list) + p.place;
    }

    /* Stores the value of a slice. Returns true to all threads of the block that stores a segment's last one. */
    __device__ bool stores_last(const piece &p, const V &x) const {
        if (!is_few() && p.place == no_place) {
            typename M::acc &kept = shared.kept[p.slice % kept_slices];
            if (threadIdx.x == 0)
                kept = M::merge(p.slice < kept_slices ? M::identity() : kept, X::unpack(x));
            __syncthreads();
            return p.slice + 1 == p.slices;
        }
        if (threadIdx.x == 0)
            values()[p.place + p.slice] = x;
        return last_to_arrive(ticket_of(p), p.slices);
    }

    /* The value of the slices that a thread combines. */
    __device__ V gather(const piece &p) {
        typename M::acc a = M::identity();
        if (!is_few() && p.place == no_place) {
            if (threadIdx.x < p.slices && threadIdx.x < kept_slices)
                a = shared.kept[threadIdx.x];
            return X::pack(a);
        }
        if (threadIdx.x == 0) {
            *ticket_of(p) = 0;
            if constexpr (!is_few())
                word = add_to_word(p.slices); /* which arrives while values are read */
        }
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < p.slices; i += blockDim.x) {
            a = M::merge(a, X::unpack(values()[p.place + i]));
            memset(&values()[p.place + i], 0, sizeof(V));
        }
        return X::pack(a);
    }

    /* ---- Pieces ---- */

    /* The value of the threads of a warp or of the block, valid in the first one. */
    __device__ V merge(V x) const {
        x = reduce_warp<M>(x);
        if (team > 32) {
            if (threadIdx.x % 32 == 0)
                shared.of_warp[threadIdx.x / 32] = x;
            __syncthreads();
            if (threadIdx.x < 32)
                x = reduce_warp<M>(threadIdx.x < team / 32 ? shared.of_warp[threadIdx.x] : X::identity());
        }
        return x;
    }

    /* Reduces a piece. There is one place that merges, because the code is long. */
    __device__ void reduce(const piece &p) {
        const unsigned lane = threadIdx.x & (team - 1);
        V x = in.template read_vectors<ahead>(p.first, p.count, lane, team);
#pragma unroll 1
        for (bool is_whole = p.slices == 1;; is_whole = true) {
            x = merge(x);
            if (is_whole)
                break;
            if (!stores_last(p, x))
                return;
            x = gather(p);
        }
        if (lane == 0)
            write(p.segment, p.slices == 1 ? segment_range{p.first, p.count} : range_of(p.segment), x);
        if (!is_few() && threadIdx.x == 0 && p.place != no_place)
            settle(word + p.slices);
    }

    __device__ void write(uint64_t segment, segment_range r, V x) const {
        write_segment<M>(args, segment, r.first, r.count, X::unpack(x));
    }

    /* ---- Few segments ---- */

    /* Counts slices; each lane has a segment. Where segments overlap, there may be more slices than places, and slices
     * become longer. */
    __device__ void count_slices() {
        const unsigned lane = threadIdx.x % 32;
        team = blockDim.x;
        next = blockIdx.x;
        own = range_of(lane);
#pragma unroll 1
        for (;; ++log_slice) {
            const unsigned mine = lane < segments ? slices_of(own.count) : 0;
            unsigned sum = mine;
#pragma unroll
            for (unsigned delta = 1; delta < 32; delta *= 2) {
                const unsigned other = __shfl_up_sync(~0u, sum, delta);
                sum += lane < delta ? 0 : other;
            }
            word = uint64_t{sum - mine} << 32 | mine;
            all = __shfl_sync(~0u, sum, 31);
            if (all <= places_of_few)
                break;
        }
    }

    __device__ bool next_of_few(piece &p) {
        if (next >= all)
            return false;
        __syncthreads(); /* before of_warp is written again */
        const unsigned mine = static_cast<unsigned>(word), before = static_cast<unsigned>(word >> 32);
        const int lane = __ffs(static_cast<int>(__ballot_sync(~0u, next - before < mine))) - 1;
        const segment_range r = {__shfl_sync(~0u, own.first, lane), __shfl_sync(~0u, own.count, lane)};
        const unsigned place = __shfl_sync(~0u, before, lane);
        p = slice_of(static_cast<unsigned>(lane), r, __shfl_sync(~0u, mine, lane), next - place, place);
        next += gridDim.x;
        return true;
    }

    /* ---- Many segments ---- */

    __device__ uint64_t groups_of_grid() const {
        return uint64_t{gridDim.x * blockDim.x} >> args.groups.log_size;
    }

    /* The segment of a thread's group. Neighbouring warps' segments, which may all be long, go to different blocks. */
    __device__ uint64_t segment_of(unsigned round, unsigned thread) const {
        if (by_blocks())
            return uint64_t{round} * gridDim.x + blockIdx.x;
        const uint64_t warp = (uint64_t{round} * blockDim.x / 32 + thread / 32) * gridDim.x + blockIdx.x;
        return (warp << 5 | thread % 32) >> args.groups.log_size;
    }

    /* Adds to the word, and returns what it was: the sum is made where it is needed, because an instruction that uses
     * the answer waits for it. */
    __device__ uint64_t add_to_word(uint64_t n) const {
        return atomicAdd(reinterpret_cast<unsigned long long *>(words()), n);
    }

    static __device__ uint64_t listed_in(uint64_t word) {
        return word % one_passed / one_listed;
    }
    static __device__ bool is_done(uint64_t word) {
        return listed_in(word) == word % one_listed;
    }

    /* Zeroes the word if it will not change any more. Only one sum is the last one. */
    __device__ void settle(uint64_t sum) const {
        if (sum / one_passed == gridDim.x && is_done(sum))
            *words() = 0;
    }

    __device__ uint64_t look() const {
        return entry::word(*words()).load(cuda::memory_order_relaxed);
    }

    static __device__ unsigned entries_in(uint64_t word) {
        return static_cast<unsigned>(min(listed_in(word), uint64_t{list_room}));
    }

    /* Takes places in the list for slices of a segment, and returns the first. Slices without a place are counted as
     * combined. Once a thread of the block has found no room, later ones do not try, so that counters do not overflow.
     */
    __device__ unsigned places_for(uint64_t segment, segment_range r) const {
        const unsigned slices = slices_of(r.count);
        if (shared.is_full || slices > list_room || !entry::fits(segment, r))
            return no_place;
        const unsigned place = static_cast<unsigned>(listed_in(add_to_word(slices * one_listed)));
        if (place + slices <= list_room)
            return place;
        shared.is_full = true;
        add_to_word(slices);
        return no_place;
    }

    /* Lists the segments of those lanes that have long ones. Returns whether the list has no room for the lane's. */
    __device__ bool finds_no_room(bool has_long, uint64_t segment, segment_range r) const {
        const unsigned place = has_long ? places_for(segment, r) : no_place;
#pragma unroll 1
        for (unsigned left = __ballot_sync(~0u, place != no_place); left != 0; left &= left - 1) {
            const int lane = __ffs(static_cast<int>(left)) - 1;
            const unsigned first = __shfl_sync(~0u, place, lane);
            const uint64_t number = __shfl_sync(~0u, segment, lane);
            const segment_range whole = {__shfl_sync(~0u, r.first, lane), __shfl_sync(~0u, r.count, lane)};
            const unsigned slices = slices_of(whole.count);
            for (unsigned i = threadIdx.x % 32; i < slices; i += 32)
                entry::write(entry_at(first + i), slice_of(number, whole, slices, i, first));
        }
        return has_long && place == no_place;
    }

    /* The segment of number thread + k * blockDim.x among those of the block: that of the thread in round `round` + k.
     * With one round k is 0, and a division is saved. */
    __device__ uint64_t segment_with(unsigned round, unsigned number) const {
        return rounds() == 1 ? segment_of(round, number) : segment_of(round + number / blockDim.x, number % blockDim.x);
    }

    /* Puts long segments where they belong: the list of slices, or those of warps or of the block. `number` is that of
     * the thread's segment (segment_with()). */
    __device__ void sort_long(bool has_long, unsigned number, uint64_t segment, segment_range r) const {
        const bool is_cut = has_long && slices_of(r.count) > 1;
        bool by_block = has_long && r.count > longest_of_warp && !is_cut;
        if (__any_sync(~0u, is_cut))
            by_block |= finds_no_room(is_cut, segment, r);
        if (by_block)
            shared.longs[most_longs - 1 - atomicAdd(&shared.of_block, 1)] = static_cast<uint16_t>(number);
        else if (has_long && !is_cut)
            shared.longs[atomicAdd(&shared.of_warps, 1)] = static_cast<uint16_t>(number);
    }

    /* Returns how many slices are listed, or 0 if all of them are combined. All threads call it. */
    __device__ unsigned find_list() const {
        if (threadIdx.x == 0) {
            uint64_t last = word + one_passed;
            settle(last);
            unsigned looks = shared.missing > 0 ? most_looks : 0;
#pragma unroll 1
            for (; looks > 0 && last / one_passed < gridDim.x && last != 0 && is_done(last); --looks)
                last = look();
            shared.listed = is_done(last) ? 0 : entries_in(last);
        }
        __syncthreads();
        return shared.listed;
    }

    __device__ bool is_last(unsigned round) const {
        return (uint64_t{round} + rounds()) * groups_of_grid() >= segments;
    }

    /* The elements that a segment lacks. */
    __device__ int missing_in(uint64_t count) const {
        return static_cast<int>(args.groups.ordinary) - static_cast<int>(min(count, uint64_t{most_counted}));
    }

    /* Adds how many elements the block's segments lack. Then other blocks have long ones. */
    __device__ void count_missing(int lacks) const {
        const int sum = sum_of_lanes(lacks);
        if (threadIdx.x % 32 == 0 && sum != 0)
            atomicAdd(&shared.missing, sum);
    }

    __device__ bool is_long_for_group() const {
        const unsigned log_size = args.groups.log_size;
        return own.count > longest_of_lane << log_size
               && own.count > (log_size > 0 ? longest_of_group : longest_of_one);
    }

    /* Reads the ranges of a round, and reduces a segment for each group of less than a block. Returns whether there is
     * more to do in this round. */
    __device__ bool begin_round(unsigned round) {
        const unsigned size = 1u << args.groups.log_size, lane = threadIdx.x & (size - 1);
        const uint64_t segment = segment_of(round, threadIdx.x);
        own = range_of(segment);
        team = by_blocks() ? size : 32;
        next = by_blocks() ? 0 : threadIdx.x / 32;
        const bool is_long = by_blocks() ? slices_of(own.count) > 1 : is_long_for_group();
        has_own = by_blocks() ? segment < segments && !is_long : size == 32 && is_long && own.count <= longest_of_warp;
        if (__any_sync(~0u, is_long && !has_own))
            sort_long(is_long && !has_own && lane == 0, threadIdx.x, segment, own);
        const bool passes = is_last(round);
        if (passes) {
            count_missing(lane == 0 && segment < segments ? missing_in(own.count) : 0);
            if (threadIdx.x == 0 && by_blocks() && segment >= segments)
                shared.missing = 1; /* a block without a segment looks for slices */
        }
        const bool has_more = __syncthreads_or(is_long);
        /* Tells other blocks that this one lists no more. The answer has a variable of its own, so that it arrives
         * while elements are read: the compiler waits for it where it is copied. */
        uint64_t answer = 0;
        if (passes && threadIdx.x == 0)
            answer = add_to_word(one_passed);
        if (by_blocks()) {
            word = answer;
            return true;
        }
        if (!passes)
            prefetch_range(segment_of(round + 1, threadIdx.x));
        const unsigned count = is_long ? 0 : static_cast<unsigned>(own.count);
        const V x =
            reduce_group<M>(in.template read<elements_ahead>(own.first, count, lane, size), args.groups.log_size);
        if (lane == 0 && segment < segments && !is_long)
            write(segment, own, x);
        word = answer;
        return has_more || passes;
    }

    /* The same for several rounds, where a group is one thread: the numbers of its segments are in flight together, and
     * so are their elements. */
    __device__ bool begin_rounds(unsigned round) {
        constexpr unsigned n = at_once<M>;
        const uint64_t segment = segment_of(round, threadIdx.x), apart = groups_of_grid();
        segment_range r[n];
        read_ranges(args.list, segment, apart, segments, r);
        unsigned longs = 0, most = 0;
        int lacks = 0;
#pragma unroll
        for (unsigned k = 0; k < n; ++k) {
            if (args.groups.ordinary > 0 && segment + k * apart < segments) /* otherwise none lacks any */
                lacks += missing_in(r[k].count);
            if (r[k].count > longest_of_one) {
                longs |= 1u << k;
                r[k].count = 0;
            }
            most = max(most, static_cast<unsigned>(r[k].count));
        }
        team = 32;
        next = threadIdx.x / 32;
        if (__any_sync(~0u, longs != 0)) {
#pragma unroll 1
            for (unsigned k = 0; k < n; ++k)
                sort_long(longs >> k & 1, k * blockDim.x + threadIdx.x, segment + k * apart,
                          range_of(segment + k * apart));
        }
        const bool passes = is_last(round);
        if (passes && args.groups.ordinary > 0)
            count_missing(lacks);
        const bool has_more = __syncthreads_or(longs != 0);
        uint64_t answer = 0;
        if (passes && threadIdx.x == 0)
            answer = add_to_word(one_passed);
        if (!passes) {
#pragma unroll 1
            for (unsigned k = 0; k < n; ++k)
                prefetch_range(segment + (n + k) * apart);
        }
        typename M::acc a[n];
#pragma unroll
        for (unsigned k = 0; k < n; ++k)
            a[k] = X::unpack(r[k].count > 0 ? in.at(r[k].first) : X::identity());
#pragma unroll 1
        for (unsigned i = 1; i < most; ++i) {
#pragma unroll
            for (unsigned k = 0; k < n; ++k)
                if (i < static_cast<unsigned>(r[k].count))
                    a[k] = M::merge(a[k], X::unpack(in.at(r[k].first + i)));
        }
#pragma unroll
        for (unsigned k = 0; k < n; ++k)
            if (segment + k * apart < segments && (longs >> k & 1) == 0)
                write_segment<M>(args, segment + k * apart, r[k].first, r[k].count, a[k]);
        word = answer;
        return has_more || passes;
    }

    /* The next slice of the segment of entry `i` of the block's list, or the segment if it is not cut. */
    __device__ piece long_one(unsigned round, unsigned i) const {
        const uint64_t segment = segment_with(round, shared.longs[i]);
        const segment_range r = range_of(segment);
        return slice_of(segment, r, slices_of(r.count), own_slice, no_place);
    }

    /* The nearest entry of the list, from the block's first one on, or no_place. Sees whether the list has grown. */
    __device__ unsigned find_entry() {
        const unsigned start = blockIdx.x % all;
        if (threadIdx.x == 0)
            shared.nearest = no_place;
        __syncthreads();
        const uint64_t seen = threadIdx.x == 0 ? look() : 0;
        for (unsigned i = threadIdx.x; i < all; i += blockDim.x) {
            if (entry::word(entry_at(i)[1]).load(cuda::memory_order_relaxed) != 0)
                atomicMin(&shared.nearest, i < start ? i + all - start : i - start);
        }
        if (threadIdx.x == 0)
            shared.listed = entries_in(seen);
        __syncthreads();
        const unsigned distance = shared.nearest, at = distance == no_place ? no_place : (start + distance) % all;
        all = shared.listed;
        return at;
    }

    /* Takes a slice from the list. The first attempt is made without a look at the entry. */
    __device__ bool takes_slice(piece &p) {
        if (next == shared.of_block)
            all = find_list();
#pragma unroll 1
        while (all > 0) {
            const unsigned known = all, at = next++ == shared.of_block ? blockIdx.x % all : find_entry();
            if (at == no_place && all <= known)
                break;
            if (threadIdx.x == 0)
                shared.taken = at == no_place ? piece{0, 0, 0, 0, 0, 0} : entry::take(entry_at(at));
            __syncthreads();
            p = shared.taken;
            if (p.slices > 0)
                return true;
        }
        return false;
    }

    __device__ bool next_of_many(unsigned round, piece &p) {
        if (team == 32) {
            if (next < shared.of_warps) {
                p = long_one(round, next);
                next += blockDim.x / 32;
                return true;
            }
            team = blockDim.x;
            next = 0;
        }
        __syncthreads(); /* before of_warp is written again */
        if (next < shared.of_block) {
            p = long_one(round, most_longs - 1 - next);
            own_slice = p.slice + 1 < p.slices ? own_slice + 1 : 0;
            next += own_slice == 0;
            return true;
        }
        return is_last(round) && takes_slice(p);
    }

    __device__ void clear_lists() const {
        __syncthreads();
        if (threadIdx.x == 0)
            shared.of_warps = shared.of_block = 0;
        __syncthreads();
    }

  public:
    __device__ small_worker(const dpr_segment_args &a, small_shared<M> &s)
        : args(a), shared(s), in(a.run.in), segments(dpr_segment_count(&a.list)), log_slice(a.groups.log_slice) {}

    __device__ void reduce_few() {
        piece p;
        count_slices();
#pragma unroll 1
        while (next_of_few(p))
            reduce(p);
    }

    __device__ bool begin(unsigned round) {
        if constexpr (Kind == small_kind::many_short)
            return begin_rounds(round);
        else
            return begin_round(round);
    }

    __device__ void reduce_many() {
#pragma unroll 1
        for (unsigned round = 0; round * groups_of_grid() < segments; round += rounds()) {
            if (!begin(round))
                continue;
            piece p = {segment_of(round, threadIdx.x), own.first, static_cast<unsigned>(own.count), 1, 0, no_place};
#pragma unroll 1
            for (bool has_piece = has_own || next_of_many(round, p); has_piece; has_piece = next_of_many(round, p))
                reduce(p);
            if (!is_last(round))
                clear_lists();
        }
    }
};

template <class M, small_kind Kind>
__global__ void __launch_bounds__(small_threads, 1) small_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ small_shared<M> shared;
    let_next_launch();
    read_ahead(args);
    if (threadIdx.x == 0) {
        shared.of_warps = shared.of_block = 0;
        shared.is_full = false;
        shared.missing = 0;
    }
    __syncthreads();
    wait_for_work_before();
    small_worker<M, Kind> worker(args, shared);
    if constexpr (Kind == small_kind::few)
        worker.reduce_few();
    else
        worker.reduce_many();
    tell_end(args.done, args.run.tag, static_cast<unsigned *>(args.run.scratch) + end_ticket);
}

template <small_kind Kind> struct small_family {
    template <class M> static constexpr segment_entry entry() { return small_kernel<M, Kind>; }
};
using few_kernels = instances<small_family<small_kind::few>, segment_entry>;
using many_kernels = instances<small_family<small_kind::many>, segment_entry>;
using short_kernels = instances<small_family<small_kind::many_short>, segment_entry>;

struct alone_family {
    template <class M> static constexpr segment_entry entry() { return alone_kernel<M>; }
};
using alone_kernels = instances<alone_family, segment_entry>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!key->f.segments)
        return "reduces segments alone";
    if (key->f.partial)
        return "writes no partial results";
    return caps->gpu.max_threads_per_block < static_cast<int>(small_threads) ? "needs blocks of 1024 threads" : nullptr;
}

/* On an H100, arrays of 2^16 elements of F32 take 2 to 6 us, and those of 2^20 5 to 11; segments.merge takes 6 to 9 and
 * 11 to 17. Elements at less than half the rate of memory, and results and numbers at all of it, make segments.merge
 * take over from 2^21 elements on, and from 2^22 if segments have one. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double array = dpr_array_bytes(key, size), rest = dpr_segment_bytes(key, size) - array,
                 rate = dpr_memory_rate(&caps->gpu);
    return {DPR_LAUNCH_SECONDS + 1.2e-6, array + rest / 2.2, rate / 2.2};
}

dpr_kernel kernel(const dpr_key *key) {
    return {many_kernels::of(key),
            small_threads,
            0,
            1,
            0,
            nullptr,
            {few_kernels::of(key), short_kernels::of(key), alone_kernels::of(key)}};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = {};
    limits.threads = small_threads;
    limits.max_blocks = resident.blocks;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

uint64_t threads_of(const dpr_run *run) {
    return std::min(uint64_t{small_threads} * static_cast<uint64_t>(run->limits.max_blocks), most_listers);
}

/* The logarithm of the threads of a block for a segment of average length, if each segment has one; otherwise that of a
 * group of up to 32 threads. */
uint32_t log_size_of(const dpr_run *run) {
    const uint64_t segments = run->segments->count, threads = threads_of(run);
    const uint64_t bytes = run->count / segments * dpr_dtypes[run->key.f.dtype].size;
    const bool is_large = bytes > bytes_of_1024 && bytes <= longest_of_thread * small_threads;
    const uint32_t log_block = bytes <= bytes_of_512 ? 8 : is_large ? 10 : 9;
    if (segments <= threads >> log_block && (segments <= few_segments || bytes > bytes_of_block))
        return log_block;
    uint32_t log = 0;
    while (log < 5 && segments <= threads >> (log + 1))
        ++log;
    return log;
}

/* The elements that a segment of ordinary length has at least, on average over the segments of a block: the average
 * less two to three standard deviations if lengths are uniformly distributed, or half of it where a block has few
 * segments. */
uint32_t ordinary_of(const dpr_run *run, uint32_t log_size) {
    const uint64_t average = std::min(run->count / run->segments->count, uint64_t{1} << 20);
    const uint32_t log_of_block = log_size > 5 ? 0 : 9 - log_size;
    const uint64_t deviation = average >> (log_of_block < 4 ? 1 : log_of_block / 2 - 1);
    return static_cast<uint32_t>(average - std::min(average, std::max(uint64_t{1}, deviation)));
}

dpr_segment_groups groups_of(const dpr_run *run) {
    dpr_segment_groups groups = {};
    groups.log_size = log_size_of(run);
    groups.log_slice = log_least_slice;
    /* Slices of few segments have fewer than 2^32 elements, also where they become longer. */
    const bool are_few = groups.log_size > 5 && run->segments->count <= few_segments && run->count >> 32 == 0;
    while (groups.log_slice < entry::count_bits - 1
           && run->count >> groups.log_slice > (are_few ? most_slices : most_listed))
        ++groups.log_slice;
    const uint64_t bytes = are_few ? longest_of_thread << groups.log_size : longest_of_block;
    groups.longest =
        static_cast<uint32_t>(std::max(bytes / dpr_dtypes[run->key.f.dtype].size, uint64_t{2} << groups.log_slice));
    groups.room = are_few ? places_of_few : list_room;
    groups.ordinary = ordinary_of(run, groups.log_size);
    return groups;
}

/* Blocks of `threads` threads for what the launch divides: slices, or groups. Groups have at least as many blocks as
 * the elements fill of the shortest slices: neighbouring warps' segments go to different blocks, and what is long for a
 * warp is for one block. */
uint64_t blocks_of(const dpr_run *run, dpr_segment_groups groups, unsigned threads) {
    const uint64_t segments = run->segments->count;
    if (groups.room == places_of_few)
        return segments + (run->count >> groups.log_slice);
    if (groups.log_size > 5)
        return std::max(segments, uint64_t{run->count} >> groups.log_slice);
    const uint64_t of_block = threads >> groups.log_size;
    return std::max((segments + of_block - 1) / of_block, uint64_t{run->count} >> log_least_slice);
}

/* ---- Blocks that share nothing ---- */

/* The logarithm of the threads of a block, if each segment has one and reads it alone; otherwise 0. */
uint32_t log_block_alone(const dpr_run *run) {
    const uint64_t segments = run->segments->count, bytes = dpr_run_bytes(run);
    const bool are_few = segments <= few_segments;
    for (uint32_t log = 8; log <= (are_few ? 10 : 9); ++log) {
        const uint64_t most = !are_few ? alone_of_many : log < 10 ? alone_of_few : alone_of_largest;
        if (bytes <= most << log)
            return are_few || segments <= threads_of(run) >> log ? log : 0;
    }
    return 0;
}

/* Whether groups of 2^log_size threads reduce the array in one round without help from other blocks. */
bool are_groups_alone(const dpr_run *run, uint32_t log_size) {
    return log_size <= 5 && run->count <= most_alone && dpr_run_bytes(run) <= alone_of_groups
           && run->segments->count <= threads_of(run) >> log_size;
}

/* Launches the kernel of segments_alone.cuh. */
int launch_alone(const dpr_run *run, uint32_t log_size) {
    const uint64_t segments = run->segments->count;
    dpr_segment_groups groups = {};
    dpr_launch launch = {};
    groups.log_size = log_size;
    launch.entry = alone_kernels::of(&run->key);
    launch.threads = log_size > 5 ? 1u << log_size : least_of_groups;
    while (log_size <= 5 && launch.threads < alone_threads && dpr_run_bytes(run) > alone_of_largest * launch.threads)
        launch.threads *= 2;
    const uint64_t of_block = log_size > 5 ? 1 : launch.threads >> log_size;
    launch.blocks = static_cast<unsigned>((segments + of_block - 1) / of_block);
    return dpr_launch_segments(&launch, run, groups);
}

/* ---- The launch ---- */

const void *entry_of(const dpr_run *run, dpr_segment_groups groups) {
    if (groups.room == places_of_few)
        return few_kernels::of(&run->key);
    const bool are_short = run->segments->count > threads_of(run) && run->count / run->segments->count < most_of_short;
    return are_short ? short_kernels::of(&run->key) : many_kernels::of(&run->key);
}

int launch(const dpr_run *run) {
    const uint32_t log_block = log_block_alone(run);
    if (log_block > 0)
        return launch_alone(run, log_block);
    const dpr_segment_groups groups = groups_of(run);
    if (are_groups_alone(run, groups.log_size))
        return launch_alone(run, groups.log_size);
    const uint64_t most = threads_of(run) / most_of_groups;
    dpr_launch launch = {};
    launch.entry = entry_of(run, groups);
    launch.threads = groups.log_size > 5 ? 1u << groups.log_size : most_of_groups;
    while (groups.log_size <= 5 && launch.threads > least_of_groups
           && blocks_of(run, groups, launch.threads / 2) <= most)
        launch.threads /= 2;
    launch.blocks =
        static_cast<unsigned>(std::min(blocks_of(run, groups, launch.threads), threads_of(run) / launch.threads));
    return dpr_launch_segments(&launch, run, groups);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_segments_small;
const dpr_strategy dpr_segments_small = {
    .name = "segments.small",
    .text = "as many threads for each segment as there are; long ones in slices",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .segmented = 1,
    .tells_end = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
