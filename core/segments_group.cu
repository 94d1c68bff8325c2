/* segments.group: a group of neighbouring threads reduces a segment: a few lanes, a warp or a block, by the average
 * length; and all blocks those that are long (segments_rounds.cuh). It runs everything that segments.merge
 * does not: segments given by begins and ends, in any memory and on GPUs of any compute capability, and the operations
 * of measures.cuh (segments_measures.cu). */
#include "segments_group.h"

#include <algorithm>

#include "family.cuh"
#include "means.h"
#include "segments_cost.h"
#include "segments_rounds.cuh"
#include "segments_values.cuh"

namespace dpr {
namespace {

template <class M> struct group_worker {
    using X = partial<M>;
    using value = typename X::type;
    using row = value;
    const dpr_segment_args &args;

    __device__ value read(segment_range r, unsigned lane, unsigned step) const {
        const typename M::storage *in = static_cast<const typename M::storage *>(args.run.in);
        if constexpr (!M::holds_index)
            return reduce_share<M>(in, r.first, r.count, lane, step);
        else
            return reduce_positions(in, r, lane, step);
    }

    /* The same where a thread keeps positions of 32 bits, because indices would take too many registers. */
    static __device__ value reduce_positions(const typename M::storage *in, segment_range r, unsigned lane,
                                             unsigned step) {
        using R = running<M>;
        constexpr uint64_t most = uint64_t{1} << 31;
        typename M::acc a = M::identity();
#pragma unroll 1
        for (;; r.first += most, r.count -= most) {
            const unsigned count = static_cast<unsigned>(r.count < most ? r.count : most);
            typename R::type some = R::identity();
#pragma unroll 8
            for (unsigned i = lane; i < count; i += step)
                some = R::add(some, in[r.first + i], i);
            a = M::merge(a, R::value(some, r.first));
            if (r.count <= most)
                return X::pack(a);
        }
    }

    __device__ value merge(value x, unsigned size) const {
        if (size <= 32)
            return reduce_group<M>(x, 31 - __clz(static_cast<int>(size)));
        x = reduce_block<M>(x);
        __syncthreads();
        return x;
    }

    __device__ value gather(row_range<row> rows) const {
        typename M::acc a = M::identity();
#pragma unroll 1
        for (unsigned i = 0; i < rows.share(); ++i)
            a = M::merge(a, X::unpack(rows[i]));
        return X::pack(a);
    }

    __device__ row row_of(value x) const {
        return x;
    }

    __device__ void write(uint64_t i, segment_range r, value x) const {
        write_segment<M, true>(args, i, r.first, r.count, X::unpack(x));
    }
};

/* Blocks on an SM that have enough registers: reading one element a load takes all threads that an SM holds, 1024 to
 * 2048. Large accumulators would be spilled with 8 blocks. */
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
template <class M> constexpr int group_blocks = sizeof(typename M::acc) > 16 ? 5 : sizeof(typename M::acc) > 8 ? 6 : 8;
#else
template <class M> constexpr int group_blocks = 4;
#endif

template <class M>
__global__ void __launch_bounds__(group_threads, group_blocks<M>)
    group_kernel(const __grid_constant__ dpr_segment_args args) {
    let_next_launch();
    wait_for_work_before();
    reduce_segments(args, group_worker<M>{args});
}

struct group_family {
    template <class M> static constexpr segment_entry entry() { return group_kernel<M>; }
};
using kernels = instances<group_family, segment_entry>;

/* Room in the list of long segments, whatever the size of the array: for some that overlap, and at most 4 MiB, with
 * 8 MiB for the values of their slices. */
constexpr uint64_t least_room = 1 << 10, most_room = 1 << 17;

/* Slices for each block, of all long segments together: more of them are divided more evenly among the blocks, and take
 * longer to combine. */
constexpr uint32_t slices_of_block = 4;

const void *entry_of(const dpr_key *key) {
    return dpr_runs_as_measure(key) ? dpr_segments_measures(key) : kernels::of(key);
}

const char *probe(const dpr_key *key, const dpr_caps *) {
    return key->f.segments ? nullptr : "reduces segments alone";
}

/* On an H100, measures of F32 take 1.1 to 4.7 times as long as memory takes for elements, offsets and results
 * (tests/results/h100-segments-measures.json). The latency is an estimate. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return {DPR_LAUNCH_SECONDS + 4e-6, dpr_segment_bytes(key, size), dpr_memory_rate(&caps->gpu) / 4};
}

dpr_kernel kernel(const dpr_key *key) {
    return {entry_of(key), group_threads, 0, 1, 0, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = {};
    limits.threads = group_threads;
    limits.max_blocks = resident.blocks;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

/* The logarithm of the threads for a segment of average length: each reads some eight elements, up to a warp; a block
 * reads long ones. */
uint32_t log_size_of(const dpr_run *run) {
    const uint64_t average = run->count / run->segments->count;
    uint32_t log = 0;
    while (log < 5 && average > uint64_t{8} << log)
        ++log;
    return average > 4096 ? log_group_threads : log;
}

/* The list has room for all long segments that do not overlap, up to `most_room`. */
dpr_segment_groups groups_of(const dpr_run *run) {
    dpr_segment_groups groups = {log_size_of(run), DPR_SEGMENTS_ALL, 0, 0, 0};
    groups.longest = groups.log_size == log_group_threads ? longest_of_block : longest_of_warp;
    if (run->count > groups.longest) {
        const uint64_t room = std::clamp(uint64_t{run->count} / groups.longest, least_room, most_room);
        groups.which = DPR_SEGMENTS_SHORT;
        groups.room = static_cast<uint32_t>(std::min(room, run->segments->count));
        groups.slices = slices_of_block * static_cast<uint32_t>(run->limits.max_blocks);
    }
    return groups;
}

size_t workspace_bytes(const dpr_run *run) {
    const dpr_segment_groups groups = groups_of(run);
    return size_t{groups.room} * (sizeof(listed_segment) + slice_bytes) + size_t{groups.slices} * slice_bytes;
}

/* Launches a block for as many items as it has groups, up to the limit. */
int launch_for(const dpr_run *run, dpr_segment_groups groups, uint64_t items) {
    const uint64_t most = static_cast<uint64_t>(run->limits.max_blocks), of_block = group_threads >> groups.log_size,
                   wanted = (items + of_block - 1) / of_block;
    dpr_launch launch = {};
    launch.entry = entry_of(&run->key);
    launch.blocks = static_cast<unsigned>(wanted < most ? wanted : most);
    launch.threads = group_threads;
    return dpr_launch_segments(&launch, run, groups);
}

/* The second launch has blocks for the slices of long segments that do not overlap. It is of the same kernel, so that
 * what would refuse it refuses the first one, before results are written. */
int launch(const dpr_run *run) {
    dpr_segment_groups groups = groups_of(run);
    const int error = launch_for(run, groups, run->segments->count);
    if (error || groups.which == DPR_SEGMENTS_ALL)
        return error;
    groups.log_size = log_group_threads;
    groups.which = DPR_SEGMENTS_LONG;
    return launch_for(run, groups, run->count / slice_unit + 1);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_segments_group;
const dpr_strategy dpr_segments_group = {
    .name = "segments.group",
    .text = "a few threads, a warp or a block for each segment; all blocks for long ones",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .measures = 1,
    .segmented = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
