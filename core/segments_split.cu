/* segments.split: blocks reduce pieces of segments. The first launch has a block for each segment that is one piece,
 * and lists the pieces of the others in workspace; the blocks of the second launch take turns at these. The block that
 * stores the value of a segment's last piece combines the values of all of them in their order, whichever block it is,
 * so that the results are the same in each run. */
#include "segments_demonstration.cuh"
#include "segments_pieces.cuh"
#include "segments_teams.cuh"

namespace dpr {
namespace {

/* A piece of a long segment, in workspace. */
struct listed_piece {
    uint64_t segment;
    unsigned first;   /* place of the segment's first piece in the list */
    unsigned arrived; /* in the segment's first piece: how many of its pieces are reduced */
};

constexpr int place_bytes = static_cast<int>(sizeof(listed_piece)) + demonstrated_bytes;

/* What scratch memory has from the first launch until the end of the second one. */
struct split_scratch {
    unsigned listed; /* pieces */
    unsigned ticket; /* of the blocks of the second launch */
};

template <class M> struct splitter {
    using X = partial<M>;
    using T = typename X::type;
    static_assert(sizeof(T) <= demonstrated_bytes);
    const dpr_segment_args &args;

    __device__ split_scratch *scratch() const { return static_cast<split_scratch *>(args.run.scratch); }
    __device__ listed_piece *list() const { return static_cast<listed_piece *>(args.run.workspace); }
    __device__ T *values() const { return reinterpret_cast<T *>(list() + args.groups.room); }

    /* Combines `mine`, which are the threads' shares of the values of all pieces, and writes the segment's result. */
    __device__ void write(uint64_t segment, segment_range whole, T mine) const {
        const T x = reduce_block<M>(mine);
        if (threadIdx.x == 0)
            write_segment<M>(args, segment, whole.first, whole.count, X::unpack(x));
        __syncthreads();
    }

    /* Lists the pieces of a segment. Returns whether there is room. */
    __device__ bool lists(uint64_t segment, unsigned pieces) const {
        __shared__ unsigned first;
        if (threadIdx.x == 0)
            first = take_places(&scratch()->listed, pieces, args.groups.room);
        __syncthreads();
        const unsigned at = first;
        __syncthreads(); /* before the block's next segment changes it */
        if (at == no_place)
            return false;
        for (unsigned i = threadIdx.x; i < pieces; i += blockDim.x)
            list()[at + i] = {segment, at, 0};
        return true;
    }

    /* Reduces a segment for which the list has no room, in the same order as several blocks would. */
    __device__ void reduce_alone(uint64_t segment, segment_range whole, unsigned pieces) const {
        __shared__ T value;
        typename M::acc mine = M::identity();
        for (unsigned i = 0; i < pieces; ++i) {
            const T x = reduce_range<M, team::block>(args, range_of_piece(whole, i));
            if (threadIdx.x == 0)
                value = x;
            __syncthreads();
            if (threadIdx.x == i % blockDim.x)
                mine = M::merge(mine, X::unpack(value));
            __syncthreads();
        }
        write(segment, whole, X::pack(mine));
    }

    __device__ void reduce_short_and_list_long() const {
        const uint64_t segments = dpr_segment_count(&args.list);
        for (uint64_t i = blockIdx.x; i < segments; i += gridDim.x) {
            const segment_range whole = range_of(args.list, i);
            const auto pieces = static_cast<unsigned>(dpr_pieces_of(whole.count));
            if (pieces <= 1)
                reduce_segment<M, team::block>(args, i);
            else if (!lists(i, pieces))
                reduce_alone(i, whole, pieces);
        }
    }

    /* Stores the value of a piece. Returns true in all threads of the block that stores a segment's last one. */
    __device__ bool stores_last(unsigned place, unsigned first, unsigned pieces, T x) const {
        if (threadIdx.x == 0)
            values()[place] = x;
        return last_to_arrive(&list()[first].arrived, pieces);
    }

    __device__ void reduce_listed() const {
        const unsigned listed = scratch()->listed;
        for (unsigned place = blockIdx.x; place < listed; place += gridDim.x) {
            const uint64_t segment = list()[place].segment;
            const unsigned first = list()[place].first;
            const segment_range whole = range_of(args.list, segment);
            const auto pieces = static_cast<unsigned>(dpr_pieces_of(whole.count));
            const T x = reduce_range<M, team::block>(args, range_of_piece(whole, place - first));
            const bool is_last = stores_last(place, first, pieces, x);
            __syncthreads();
            if (is_last)
                write(segment, whole, merge_share<M>(values() + first, pieces, threadIdx.x, blockDim.x));
        }
        __syncthreads(); /* all threads have read what the last block sets to zero */
        if (threadIdx.x == 0 && take_ticket(&scratch()->ticket, gridDim.x))
            *scratch() = {0, 0};
    }
};

template <class M>
__global__ void __launch_bounds__(most_threads, 1) split_kernel(const __grid_constant__ dpr_segment_args args) {
    let_next_launch();
    wait_for_work_before();
    const splitter<M> split{args};
    if (args.groups.which == DPR_SEGMENTS_LONG)
        split.reduce_listed();
    else
        split.reduce_short_and_list_long();
}

struct split_form : demonstrated_form {
    template <class M> static constexpr segment_entry entry() {
        if constexpr (is_demonstrated<M>)
            return split_kernel<M>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<split_form, segment_entry>::of(key); }
};

/* Places in the list; none if no segment can be long. */
uint32_t room_of(const dpr_run *run) {
    return run->count > DPR_PIECE ? dpr_places_of(run->count) : 0;
}

struct split : of_segments<split_form> {
    static size_t workspace_bytes(const dpr_run *run) { return size_t{room_of(run)} * place_bytes; }

    /* If there are two launches, they are of one kernel, so that what would refuse the second one refuses the first
     * one, before results are written. */
    static int launch(const dpr_run *run) {
        dpr_segment_groups groups = {};
        groups.room = room_of(run);
        groups.which = groups.room > 0 ? DPR_SEGMENTS_SHORT : DPR_SEGMENTS_ALL;
        const int error = launch_for_segments<split_form>(run, run->segments->count, 1, groups);
        if (error || groups.room == 0)
            return error;
        groups.which = DPR_SEGMENTS_LONG;
        return launch_for_segments<split_form>(run, dpr_pieces_of(run->count), 1, groups);
    }
};

} // namespace
} // namespace dpr

DPR_SEGMENTS_DEMONSTRATION(segments_split, "segments.split", dpr::split, 0.9, 4e-9, DPR_SCRATCH_BYTES,
                           dpr::split::workspace_bytes,
                           "a block for each piece of a segment; the last one to be done combines them")
