/* The kernel of segments.small for short arrays: each block reads its segments alone, however long they are. Blocks
 * share nothing, and there is one round, so there is little code: with cold caches, instructions are waited for, too.
 */
#ifndef DPR_CORE_SEGMENTS_ALONE_CUH
#define DPR_CORE_SEGMENTS_ALONE_CUH

#include "segments.cuh"
#include "segments_read.cuh"

namespace dpr {

/* Threads of the largest block, and the most elements of an array whose segments have groups of its threads. */
constexpr unsigned alone_threads = 1024, most_alone = 262144;

/* Elements, and vectors, that a thread loads at a time. With eight vectors, two of three kernels lack registers. */
constexpr unsigned elements_ahead = 4, vectors_ahead = 4;

/* The most elements that a lane of a group reads, and that one lane alone and that a few lanes read, which find most of
 * them in the cache. */
constexpr unsigned longest_of_lane = 4, longest_of_one = 32, longest_of_group = 64;

/* The shortest pieces of a segment that several warps read, as a logarithm of their elements. */
constexpr unsigned log_least_piece = 9;

/* Places for pieces of segments that have several: enough for segments that do not overlap, whose pieces are on average
 * longer than half of the shortest ones. */
constexpr unsigned piece_room = 2 * (most_alone >> log_least_piece);

/* Where scratch memory has the ticket of blocks that have ended. */
constexpr unsigned end_ticket = DPR_SCRATCH_BYTES / sizeof(unsigned) - 1;

/* What the threads of a block share. */
template <class V> struct alone_shared {
    V of_warp[32], of_piece[piece_room];
    uint32_t piece[piece_room]; /* the thread that has met its segment, and behind 16 bits its number in the segment */
    unsigned singles, cuts, pieces; /* long segments of one piece and of several; the pieces of the latter */
    uint32_t longs[alone_threads];  /* the threads that have met long segments: those of one piece, and from the end
                                       those of several, with the number of the first piece behind 16 bits */
};

template <class M> class alone_worker {
    using X = partial<M>;
    using V = typename X::type;

    const dpr_segment_args &args;
    alone_shared<V> &shared;
    const segment_reader<M> in;
    const uint64_t segments;

    __device__ segment_range range_of(unsigned segment) const {
        return segment < segments ? dpr::range_of(args.list, segment) : segment_range{0, 0};
    }

    __device__ void write(unsigned segment, segment_range r, V x) const {
        write_segment<M>(args, segment, r.first, r.count, X::unpack(x));
    }

    /* The segment of a thread's group. Neighbouring warps' segments, which may all be long, go to different blocks. */
    __device__ unsigned segment_of(unsigned thread) const {
        const unsigned warp = thread / 32 * gridDim.x + blockIdx.x;
        return (warp << 5 | thread % 32) >> args.groups.log_size;
    }

    __device__ bool is_long(uint64_t count) const {
        const unsigned log_size = args.groups.log_size;
        if (log_size == 5)
            return count > 1u << log_least_piece;
        return count > longest_of_lane << log_size && count > (log_size > 0 ? longest_of_group : longest_of_one);
    }

    /* The logarithm of the elements of a segment's pieces, of which there is at most one for each warp of the block. */
    static __device__ unsigned log_piece_of(unsigned count) {
        unsigned log = log_least_piece;
#pragma unroll 1
        while ((count - 1) >> log >= blockDim.x / 32)
            ++log;
        return log;
    }

    static __device__ unsigned pieces_of(unsigned count) {
        return ((count - 1) >> log_piece_of(count)) + 1;
    }

    /* Lists the thread's segment for the warps of the block. */
    __device__ void list(unsigned count) const {
        const unsigned pieces = pieces_of(count);
        if (pieces == 1) {
            shared.longs[atomicAdd(&shared.singles, 1)] = threadIdx.x;
            return;
        }
        const unsigned first = atomicAdd(&shared.pieces, pieces);
        shared.longs[alone_threads - 1 - atomicAdd(&shared.cuts, 1)] = first << 16 | threadIdx.x;
#pragma unroll 1
        for (unsigned i = 0; i < pieces && first + i < piece_room; ++i)
            shared.piece[first + i] = i << 16 | threadIdx.x;
    }

    /* Reduces the warp's own segment, if it has yet to do that, and what the block has listed. Where there is no room
     * for all pieces, a warp reads the whole segment: that does not depend on which threads were quicker. */
    __device__ void reduce_by_warps(bool has_own, segment_range own) const {
        const bool has_room = shared.pieces <= piece_room;
        const unsigned singles = shared.singles, all = singles + (has_room ? shared.pieces : shared.cuts);
#pragma unroll 1
        for (unsigned i = threadIdx.x / 32; has_own || i < all;) {
            const bool is_whole = has_own || i < singles || !has_room;
            unsigned thread = threadIdx.x, number = 0;
            if (!is_whole) {
                thread = shared.piece[i - singles] & 0xffff;
                number = shared.piece[i - singles] >> 16;
            } else if (!has_own) {
                thread = shared.longs[i < singles ? i : alone_threads - 1 - (i - singles)] & 0xffff;
            }
            const unsigned segment = segment_of(thread);
            const segment_range r = has_own ? own : range_of(segment);
            unsigned count = static_cast<unsigned>(r.count), skipped = 0;
            if (!is_whole) {
                const unsigned log = log_piece_of(count);
                skipped = number << log;
                count = min(count - skipped, 1u << log);
            }
            const V x =
                reduce_warp<M>(in.template read_vectors<vectors_ahead>(r.first + skipped, count, threadIdx.x % 32, 32));
            if (threadIdx.x % 32 == 0) {
                if (!is_whole)
                    shared.of_piece[i - singles] = x;
                else if (segment < segments)
                    write(segment, r, x);
            }
            i += has_own ? 0 : blockDim.x / 32;
            has_own = false;
        }
        if (has_room && shared.cuts > 0)
            join_pieces();
    }

    /* A warp combines the values of a segment's pieces in their order. */
    __device__ void join_pieces() const {
        __syncthreads();
#pragma unroll 1
        for (unsigned i = threadIdx.x / 32; i < shared.cuts; i += blockDim.x / 32) {
            const uint32_t cut = shared.longs[alone_threads - 1 - i];
            const unsigned segment = segment_of(cut & 0xffff);
            const segment_range r = range_of(segment);
            const unsigned pieces = pieces_of(static_cast<unsigned>(r.count));
            typename M::acc a = M::identity();
#pragma unroll 1
            for (unsigned k = threadIdx.x % 32; k < pieces; k += 32)
                a = M::merge(a, X::unpack(shared.of_piece[(cut >> 16) + k]));
            const V x = reduce_warp<M>(X::pack(a));
            if (threadIdx.x % 32 == 0)
                write(segment, r, x);
        }
    }

  public:
    __device__ alone_worker(const dpr_segment_args &a, alone_shared<V> &s)
        : args(a), shared(s), in(a.run.in), segments(dpr_segment_count(&a.list)) {}

    /* Each block has a segment. */
    __device__ void reduce_by_block() const {
        if (blockIdx.x >= segments)
            return;
        const segment_range r = range_of(blockIdx.x);
        const unsigned count = static_cast<unsigned>(r.count);
        V x;
        if (count <= elements_ahead * blockDim.x)
            x = in.template read<elements_ahead>(r.first, count, threadIdx.x, blockDim.x);
        else
            x = in.template read_vectors<vectors_ahead>(r.first, count, threadIdx.x, blockDim.x);
        x = reduce_block<M>(x, shared.of_warp);
        if (threadIdx.x == 0)
            write(blockIdx.x, r, x);
    }

    /* Each group of up to 32 threads has a segment or none. */
    __device__ void reduce_by_groups() const {
        const unsigned log_size = args.groups.log_size, lane = threadIdx.x & ((1u << log_size) - 1),
                       segment = segment_of(threadIdx.x);
        const segment_range r = range_of(segment);
        const bool lists = is_long(r.count);
        if (lists && lane == 0)
            list(static_cast<unsigned>(r.count));
        __syncthreads();
        if (log_size < 5) {
            const unsigned count = lists ? 0 : static_cast<unsigned>(r.count);
            const V x =
                reduce_group<M>(in.template read<elements_ahead>(r.first, count, lane, 1u << log_size), log_size);
            if (lane == 0 && segment < segments && !lists)
                write(segment, r, x);
        }
        reduce_by_warps(log_size == 5 && !lists && segment < segments, r);
    }
};

template <class M>
__global__ void __launch_bounds__(alone_threads, 1) alone_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ alone_shared<typename partial<M>::type> shared;
    let_next_launch();
    read_ahead(args);
    if (threadIdx.x == 0)
        shared.singles = shared.cuts = shared.pieces = 0;
    __syncthreads();
    wait_for_work_before();
    const alone_worker<M> worker(args, shared);
    if (args.groups.log_size > 5)
        worker.reduce_by_block();
    else
        worker.reduce_by_groups();
    tell_end(args.done, args.run.tag, static_cast<unsigned *>(args.run.scratch) + end_ticket);
}

} // namespace dpr

#endif
