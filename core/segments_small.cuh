/* The kernels of segments.small for arrays whose blocks share slices of long segments (segments_slices.cuh). */
#ifndef DPR_CORE_SEGMENTS_SMALL_CUH
#define DPR_CORE_SEGMENTS_SMALL_CUH

#include "segments_slices.cuh"

namespace dpr {

/* Threads of the largest block; and of the largest and the smallest one for groups of its threads. */
constexpr unsigned small_threads = 1024, most_of_groups = 512, least_of_groups = 256;

/* The most elements that a warp reads. */
constexpr unsigned longest_of_warp = 1024;

/* If there are more segments than threads, and segments have fewer than most_of_short elements on average, a thread
 * reads segments_ahead of them at once, or half as many if accumulators are large: registers have no room for more. */
constexpr uint64_t most_of_short = 4;
constexpr unsigned segments_ahead = 4;
template <class M> constexpr unsigned at_once = sizeof(typename M::acc) > 8 ? segments_ahead / 2 : segments_ahead;

/* How often a block looks for slices if its own segments are so short that others must be long. */
constexpr unsigned most_looks = 6;

static_assert(most_listers / least_of_groups < UINT64_MAX / one_passed);

/* Slices whose values a block keeps apart: as many as threads combine where it would be another block that does. */
constexpr unsigned kept_slices = least_of_groups;
static_assert(list_room <= kept_slices);

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
__device__ inline int sum_of_lanes(int x) {
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
    const segment_reader<M, Kind != small_kind::few> in;
    const uint64_t segments;

    unsigned next = 0; /* number of the next slice, or of the next segment in the block's list */
    unsigned all = 0;  /* slices of all segments, or in the list */
    unsigned log_slice;

    /* The segment of the lane, where segments are few, or of the thread's group. Of many ones, whether the group, a
     * warp or the block, has yet to reduce it. */
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

    /* Reduces a piece. There is one place that merges, because the code is long. */
    __device__ void reduce(const piece &p) {
        V x = in.template read_vectors<ahead>(p.first, p.count, threadIdx.x, blockDim.x);
#pragma unroll 1
        for (bool is_whole = p.slices == 1;; is_whole = true) {
            x = reduce_block<M>(x, shared.of_warp);
            if (is_whole)
                break;
            if (!stores_last(p, x))
                return;
            x = gather(p);
        }
        if (threadIdx.x == 0)
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

    /* Tells other blocks that this one lists no more. Thread 0 calls it, so the mask of lanes before it is 0, which the
     * compiler does not know. Of atomics that add the same in all lanes the compiler makes one, and distributes the
     * answer at once, which waits; so the answer arrives while the thread goes on. */
    __device__ uint64_t pass() const {
        unsigned lanes_before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_before));
        return add_to_word(one_passed + lanes_before);
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
        uint64_t answer = 0; /* a variable of its own, because the compiler waits for it where it is copied */
        if (passes && threadIdx.x == 0)
            answer = pass();
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
            answer = pass();
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

    /* Slice `slice` of the segment of entry `i` of the block's list, or the segment if it is not cut. */
    __device__ piece long_one(unsigned round, unsigned i, unsigned slice) const {
        const uint64_t segment = segment_with(round, shared.longs[i]);
        const segment_range r = range_of(segment);
        return slice_of(segment, r, slices_of(r.count), slice, no_place);
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

    /* Each warp reduces its own segment, if it has yet to do that, and those that are listed for warps. */
    __device__ void reduce_by_warps(unsigned round) {
#pragma unroll 1
        for (unsigned i = threadIdx.x / 32; has_own || i < shared.of_warps;) {
            uint64_t segment = segment_of(round, threadIdx.x);
            segment_range r = own;
            if (!has_own) {
                segment = segment_with(round, shared.longs[i]);
                r = range_of(segment);
                i += blockDim.x / 32;
            }
            has_own = false;
            const V x = reduce_warp<M>(
                in.template read_vectors<ahead>(r.first, static_cast<unsigned>(r.count), threadIdx.x % 32, 32));
            if (threadIdx.x % 32 == 0)
                write(segment, r, x);
        }
    }

    /* Replaces `p`, the block's last piece, by its next one. Slices of one segment follow each other. */
    __device__ bool next_of_many(unsigned round, piece &p) {
        __syncthreads(); /* before of_warp is written again */
        if (next < shared.of_block) {
            const bool goes_on = p.place == no_place && p.slice + 1 < p.slices;
            p = long_one(round, most_longs - 1 - next, goes_on ? p.slice + 1 : 0);
            next += p.slice + 1 == p.slices;
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
            if (!by_blocks())
                reduce_by_warps(round);
            next = 0;
            piece p = {segment_of(round, threadIdx.x), own.first, static_cast<unsigned>(own.count), 1, 0, no_place};
#pragma unroll 1
            while (has_own || next_of_many(round, p)) {
                reduce(p);
                has_own = false;
            }
            if (!is_last(round))
                clear_lists();
        }
    }
};

template <class M, small_kind Kind>
static __global__ void __launch_bounds__(small_threads, 1) small_kernel(const __grid_constant__ dpr_segment_args args) {
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

} // namespace dpr

#endif
