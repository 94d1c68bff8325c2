/* segments.small: as many threads for each segment as the device has for it, from one to a block. The warps of a block
 * share what is long for a group of its threads, and the whole block reduces what is long for a warp. So most short
 * arrays take as long as two reads from memory that wait for each other: of where segments begin and end, and of their
 * elements. */
#include <algorithm>

#include "family.cuh"
#include "segments.cuh"
#include "segments_cost.h"
#include "segments_read.cuh"

namespace dpr {
namespace {

constexpr unsigned most_warps = most_threads / 32;

/* Which segments are long for a group of threads: a bit for the first lane of each group of every warp. */
struct long_segments {
    unsigned of_warp[most_warps], of_block[most_warps]; /* those that a warp reduces, and those that the block does */
};

/* The code is short: with cold caches, instructions are waited for, too. */
template <class M> class small_worker {
    using X = partial<M>;
    using V = typename X::type;

    /* Elements, and vectors, that a thread loads at a time. */
    static constexpr unsigned ahead = 4, vectors_ahead = 8;

    /* The most elements that a lane reads; that a few lanes read, which find most of them in the cache; and that a warp
     * reads. */
    static constexpr unsigned longest_of_lane = 16, longest_of_group = 64, longest_of_warp = 2048;

    const dpr_segment_args &args;
    V *const of_warp; /* in shared memory: room for a value of each warp */
    long_segments &long_ones;
    const segment_reader<M> in;
    const uint64_t segments;
    const unsigned log_size; /* of a group of threads; more than 5: it is the block */

    __device__ segment_range range_of(uint64_t segment) const {
        return segment < segments ? dpr::range_of(args.list, segment) : segment_range{0, 0};
    }

    __device__ void write(uint64_t segment, segment_range r, V x) const {
        write_segment<M>(args, segment, r.first, r.count, X::unpack(x));
    }

    /* Reduces a segment by the calling warp, or by the block. */
    __device__ void reduce_by(unsigned team, uint64_t segment) const {
        const unsigned lane = threadIdx.x & (team - 1);
        const segment_range r = range_of(segment);
        V x = reduce_warp<M>(in.template read_vectors<vectors_ahead>(r.first, r.count, lane, team));
        if (team > 32) {
            if (threadIdx.x % 32 == 0)
                of_warp[threadIdx.x / 32] = x;
            __syncthreads();
            x = threadIdx.x < team / 32 ? of_warp[threadIdx.x] : X::identity();
            if (threadIdx.x < 32)
                x = reduce_warp<M>(x);
            __syncthreads(); /* before of_warp is written again */
        }
        if (lane == 0 && segment < segments)
            write(segment, r, x);
    }

    /* The first segment of a warp of the block. Neighbouring segments, which may all be long, go to different blocks.
     */
    __device__ uint64_t first_of(uint64_t round, unsigned warp) const {
        return ((round * blockDim.x / 32 + warp) * gridDim.x + blockIdx.x) << (5 - log_size);
    }

    /* Reduces long segments: first those of warps, which take turns, and then those of the block. */
    __device__ void reduce_long(uint64_t round) const {
        const unsigned warps = blockDim.x / 32;
#pragma unroll 1
        for (unsigned team = 32, turn = 0; team != 0; team = team == 32 ? blockDim.x : 0)
#pragma unroll 1
            for (unsigned warp = 0; warp < warps; ++warp)
#pragma unroll 1
                for (unsigned left = (team == 32 ? long_ones.of_warp : long_ones.of_block)[warp]; left != 0;
                     left &= left - 1) {
                    const unsigned lane = static_cast<unsigned>(__ffs(static_cast<int>(left))) - 1;
                    if (team > 32 || turn++ % warps == threadIdx.x / 32)
                        reduce_by(team, first_of(round, warp) + (lane >> log_size));
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
        if (!__syncthreads_or(is_long))
            return;
        const unsigned of_warp_mask = __ballot_sync(~0u, is_long && lane == 0 && r.count <= longest_of_warp),
                       of_block_mask = __ballot_sync(~0u, is_long && lane == 0 && r.count > longest_of_warp);
        if (threadIdx.x % 32 == 0) {
            long_ones.of_warp[threadIdx.x / 32] = of_warp_mask;
            long_ones.of_block[threadIdx.x / 32] = of_block_mask;
        }
        __syncthreads();
        reduce_long(round);
    }

  public:
    __device__ small_worker(const dpr_segment_args &a, V *shared_values, long_segments &shared)
        : args(a), of_warp(shared_values), long_ones(shared), in(a.run.in), segments(dpr_segment_count(&a.list)),
          log_size(a.groups.log_size) {}

    __device__ void reduce_all() const {
        const uint64_t groups = log_size > 5 ? gridDim.x : uint64_t{gridDim.x * blockDim.x} >> log_size;
#pragma unroll 1
        for (uint64_t round = 0; round * groups < segments; ++round)
            if (log_size > 5)
                reduce_by(blockDim.x, round * groups + blockIdx.x);
            else
                reduce_by_groups(round);
    }
};

template <class M>
__global__ void __launch_bounds__(most_threads, 1) small_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ typename partial<M>::type of_warp[most_warps];
    __shared__ long_segments long_ones;
    let_next_launch();
    wait_for_work_before();
    small_worker<M>(args, of_warp, long_ones).reduce_all();
}

struct small_family {
    template <class M> static constexpr segment_entry entry() { return small_kernel<M>; }
};
using kernels = instances<small_family, segment_entry>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!key->f.segments)
        return "reduces segments alone";
    if (key->f.partial)
        return "writes no partial results";
    return caps->gpu.max_threads_per_block < most_threads ? "needs blocks of 1024 threads" : nullptr;
}

/* On an H100, most arrays of 2^16 elements of F32 take 3 us, and those take 5 to 11 us whose elements are in few
 * segments among short ones, which a block reads. Three times the rate of an SM is between the two. segments.merge
 * takes 6 to 9 us. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return {DPR_LAUNCH_SECONDS + 1.2e-6, dpr_array_bytes(key, size), 3 * dpr_sm_rate(key, &caps->gpu)};
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
int launch(const dpr_run *run) {
    const uint64_t segments = run->segments->count, threads = uint64_t{most_threads} * run->limits.max_blocks;
    const unsigned log_block = log_block_for(run->count / segments);
    const bool by_blocks = segments <= threads >> log_block;
    dpr_segment_groups groups = {};
    while (groups.log_size < 5 && segments <= threads >> (groups.log_size + 1))
        ++groups.log_size;
    if (by_blocks)
        groups.log_size = log_block;
    dpr_launch launch = {};
    launch.entry = kernels::of(&run->key);
    launch.threads = by_blocks ? 1u << log_block : 512;
    const uint64_t of_block = by_blocks ? 1 : launch.threads >> groups.log_size;
    launch.blocks = static_cast<unsigned>(std::min((segments + of_block - 1) / of_block, threads / launch.threads));
    return dpr_launch_segments(&launch, run, groups);
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
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
