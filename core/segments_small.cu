/* segments.small: as many threads for each segment as the device has for it, from one to a block. The whole block
 * reduces segments that are long for a group of its threads. So most short arrays take as long as two reads from memory
 * that wait for each other: of where segments begin and end, and of their elements. Where one block would read for too
 * long, it lists the segment, and all blocks share it in a second launch, as in segments.group (segments_rounds.cuh).
 */
#include <algorithm>

#include "family.cuh"
#include "segments_cost.h"
#include "segments_read.cuh"
#include "segments_rounds.cuh"

namespace dpr {
namespace {

constexpr unsigned most_warps = most_threads / 32;

/* The code is short: with cold caches, instructions are waited for, too. */
template <class M> class small_worker {
    using X = partial<M>;
    using V = typename X::type;

    /* Elements, and vectors, that a thread loads at a time. */
    static constexpr unsigned ahead = 4, vectors_ahead = 8;

    /* The most elements that a lane reads, and that a few lanes read, which find most of them in the cache. */
    static constexpr unsigned longest_of_lane = 8, longest_of_group = 64;

    const dpr_segment_args &args;
    V *const of_warp;          /* in shared memory: room for a value of each warp, */
    unsigned *const long_ones; /* and for a bit for each lane of each */
    const segment_reader<M> in;
    const uint64_t segments;
    const uint64_t longest;  /* of segments that are not left to a second launch, in elements */
    const unsigned log_size; /* of a group of threads; more than 5: it is the block */

    __device__ segment_range range_of(uint64_t segment) const {
        return segment < segments ? dpr::range_of(args.list, segment) : segment_range{0, 0};
    }

    __device__ void write(uint64_t segment, segment_range r, V x) const {
        write_segment<M>(args, segment, r.first, r.count, X::unpack(x));
    }

    __device__ void reduce_by_block(uint64_t segment) const {
        const segment_range r = range_of(segment);
        if (r.count > longest) {
            if (threadIdx.x == 0)
                list_segment(args, segment, r.count);
            return;
        }
        const V x = in.template read_vectors<vectors_ahead>(r.first, r.count, threadIdx.x, blockDim.x);
        const V all = reduce_block<M>(x, of_warp);
        if (threadIdx.x == 0 && segment < segments)
            write(segment, r, all);
        __syncthreads(); /* before of_warp is written again */
    }

    /* The first segment of a warp of the block. Neighbouring segments, which may all be long, go to different blocks.
     */
    __device__ uint64_t first_of(uint64_t round, unsigned warp) const {
        return ((round * blockDim.x / 32 + warp) * gridDim.x + blockIdx.x) << (5 - log_size);
    }

    /* Reduces the segments of the lanes that are set in the `mask` of every warp. */
    __device__ void reduce_long(uint64_t round, unsigned mask) const {
        if (threadIdx.x % 32 == 0)
            long_ones[threadIdx.x / 32] = mask;
        __syncthreads();
#pragma unroll 1
        for (unsigned warp = 0; warp < blockDim.x / 32; ++warp)
#pragma unroll 1
            for (unsigned left = long_ones[warp]; left != 0; left &= left - 1) {
                const unsigned lane = static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1;
                reduce_by_block(first_of(round, warp) + (lane >> log_size));
            }
        __syncthreads(); /* before long_ones is written again */
    }

    __device__ void reduce_by_groups(uint64_t round) const {
        const unsigned size = 1u << log_size, lane = threadIdx.x % size;
        const uint64_t segment = first_of(round, threadIdx.x / 32) + threadIdx.x % 32 / size;
        const segment_range r = range_of(segment);
        const bool is_long = r.count > longest_of_lane * size && r.count > longest_of_group;
        const V x = reduce_group<M>(in.template read<ahead>(r.first, is_long ? 0 : r.count, lane, size), log_size);
        if (lane == 0 && segment < segments && !is_long)
            write(segment, r, x);
        const unsigned mask = __ballot_sync(~0u, is_long && lane == 0);
        if (__syncthreads_or(static_cast<int>(mask)))
            reduce_long(round, mask);
    }

  public:
    __device__ small_worker(const dpr_segment_args &a, V *shared_values, unsigned *shared_bits)
        : args(a), of_warp(shared_values), long_ones(shared_bits), in(a.run.in), segments(dpr_segment_count(&a.list)),
          longest(a.groups.which == DPR_SEGMENTS_ALL ? UINT64_MAX : a.groups.longest), log_size(a.groups.log_size) {}

    __device__ void reduce_all() const {
        const uint64_t groups = log_size > 5 ? gridDim.x : uint64_t{gridDim.x * blockDim.x} >> log_size;
#pragma unroll 1
        for (uint64_t round = 0; round * groups < segments; ++round)
            if (log_size > 5)
                reduce_by_block(round * groups + blockIdx.x);
            else
                reduce_by_groups(round);
    }
};

/* What a block of the second launch does. */
template <class M> struct long_worker : monoid_worker<M> {
    __device__ typename partial<M>::type read(segment_range r, unsigned lane, unsigned step) const {
        return segment_reader<M>(this->args.run.in).template read_vectors<8>(r.first, r.count, lane, step);
    }
};

/* A function of its own in machine code, too: the first launch has more registers without it. */
template <class M> __device__ __noinline__ void share_long(const dpr_segment_args &args) {
    reduce_segments(args, long_worker<M>{{args}});
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) small_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ typename partial<M>::type of_warp[most_warps];
    __shared__ unsigned long_ones[most_warps];
    let_next_launch();
    wait_for_work_before();
    if (args.groups.which == DPR_SEGMENTS_LONG)
        share_long<M>(args);
    else
        small_worker<M>(args, of_warp, long_ones).reduce_all();
}

struct small_family {
    template <class M> static constexpr segment_entry entry() { return small_kernel<M>; }
};
using kernels = instances<small_family, segment_entry>;

/* The bytes that one block may read alone: an H100's takes about 2 us for so many. */
constexpr size_t most_of_block = 1 << 18;

/* In larger arrays, the most elements of a segment that one block reduces. */
constexpr uint32_t longest_of_small = 1 << 13;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!key->f.segments)
        return "reduces segments alone";
    if (key->f.partial)
        return "writes no partial results";
    return caps->gpu.max_threads_per_block < most_threads ? "needs blocks of 1024 threads" : nullptr;
}

/* Half of the elements may be in one segment, which one SM reads. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return {DPR_LAUNCH_SECONDS + 1.5e-6, dpr_segment_bytes(key, size), 2 * dpr_sm_rate(key, &caps->gpu)};
}

dpr_kernel kernel(const dpr_key *key) {
    return {kernels::of(key), most_threads, 0, 1, 0, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = {};
    limits.threads = most_threads;
    limits.max_blocks = resident.blocks;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

/* The logarithm of the threads of a block for a segment of average length: one for each eight elements. */
unsigned log_block_for(uint64_t average) {
    unsigned log = 8;
    while (log < 10 && average > uint64_t{8} << log)
        ++log;
    return log;
}

/* Each segment has a block, if there are so few; otherwise a group of up to 32 threads. */
dpr_segment_groups groups_of(const dpr_run *run) {
    const uint64_t segments = run->segments->count, threads = uint64_t{most_threads} * run->limits.max_blocks;
    const unsigned log_block = log_block_for(run->count / segments);
    dpr_segment_groups groups = {0, DPR_SEGMENTS_ALL, 0, 0, longest_of_small};
    while (groups.log_size < 5 && segments <= threads >> (groups.log_size + 1))
        ++groups.log_size;
    if (segments <= threads >> log_block)
        groups.log_size = log_block;
    if (dpr_run_bytes(run) > most_of_block)
        share_long_segments(run, &groups);
    return groups;
}

size_t workspace_bytes(const dpr_run *run) {
    return list_bytes(groups_of(run));
}

/* Launches blocks of `threads` threads for `items` items, at most as many as there are at a time. */
int launch_for(const dpr_run *run, dpr_segment_groups groups, unsigned threads, uint64_t items) {
    const uint64_t of_block = groups.log_size > 5 ? 1 : threads >> groups.log_size,
                   most = uint64_t{most_threads} * run->limits.max_blocks / threads;
    dpr_launch launch = {};
    launch.entry = kernels::of(&run->key);
    launch.blocks = static_cast<unsigned>(std::min((items + of_block - 1) / of_block, most));
    launch.threads = threads;
    return dpr_launch_segments(&launch, run, groups);
}

/* The second launch is of the same kernel, so that what would refuse it refuses the first one. */
int launch(const dpr_run *run) {
    dpr_segment_groups groups = groups_of(run);
    const unsigned threads = groups.log_size > 5 ? 1u << groups.log_size : 512;
    const int error = launch_for(run, groups, threads, run->segments->count);
    if (error || groups.which == DPR_SEGMENTS_ALL)
        return error;
    groups.log_size = log_group_threads;
    groups.which = DPR_SEGMENTS_LONG;
    return launch_for(run, groups, group_threads, run->count / slice_unit + 1);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_segments_small;
const dpr_strategy dpr_segments_small = {
    .name = "segments.small",
    .text = "as many threads for each segment as there are; a block for long ones",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .segmented = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
