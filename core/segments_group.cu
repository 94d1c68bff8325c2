/* segments.group: a group of neighbouring threads reduces a segment: a few lanes, a warp or a block, by the average
 * length. It runs everything that segments.merge does not: segments given by begins and ends, in any memory and on any
 * GPU, and the operations of measures.cuh (segments_measures.cu). One long segment among short ones takes it long. */
#include "family.cuh"
#include "segments.cuh"
#include "segments_cost.h"
#include "segments_measures.h"

namespace dpr {
namespace {

template <class M>
__global__ void __launch_bounds__(group_threads) group_kernel(const __grid_constant__ dpr_segment_args args) {
    let_next_launch();
    wait_for_work_before();
    const auto *in = static_cast<const typename M::storage *>(args.run.in);
    const segment_numbers begins(args.list.begins, args.list.dtype), ends(args.list.ends, args.list.dtype);
    const unsigned size = 1u << args.log_group, group = threadIdx.x / size, lane = threadIdx.x % size;
    const uint64_t segments = dpr_segment_count(&args.list), groups = group_threads / size;
    /* All threads of a block take part in each round, because shuffles and barriers need them. */
    for (uint64_t first = blockIdx.x * groups; first < segments; first += gridDim.x * groups) {
        const uint64_t i = first + group;
        const int64_t begin = i < segments ? begins[i] : 0, end = i < segments ? ends[i] : 0;
        const uint64_t from = static_cast<uint64_t>(begin), count = begins.less(begin, end) ? end - begin : 0;
        auto x = reduce_share<M>(in, from, count, lane, size);
        if (size <= 32) {
            x = reduce_group<M>(x, args.log_group);
        } else {
            x = reduce_block<M>(x);
            __syncthreads();
        }
        if (lane == 0 && i < segments)
            write_segment<M>(args, i, from, count, partial<M>::unpack(x));
    }
}

struct group_family {
    template <class M> static constexpr segment_entry entry() { return group_kernel<M>; }
};
using kernels = instances<group_family, segment_entry>;

const void *entry_of(const dpr_key *key) {
    return dpr_ops[key->f.op].fused_only ? dpr_segments_measures(key) : kernels::of(key);
}

const char *probe(const dpr_key *key, const dpr_caps *) {
    return key->f.segments ? nullptr : "reduces segments alone";
}

/* The rate is an estimate. It is so low because a single segment may have most of the elements. */
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
unsigned log_group_of(const dpr_run *run) {
    const uint64_t average = run->count / run->segments->count;
    unsigned log = 0;
    while (log < 5 && average > uint64_t{8} << log)
        ++log;
    return average > 4096 ? 8 : log;
}

int launch(const dpr_run *run) {
    const unsigned log_group = log_group_of(run);
    const uint64_t most = static_cast<uint64_t>(run->limits.max_blocks), groups = group_threads >> log_group,
                   wanted = (run->segments->count + groups - 1) / groups;
    dpr_launch launch = {};
    launch.entry = entry_of(&run->key);
    launch.blocks = static_cast<unsigned>(wanted < most ? wanted : most);
    launch.threads = group_threads;
    return dpr_launch_segments(&launch, run, log_group);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_segments_group;
const dpr_strategy dpr_segments_group = {
    .name = "segments.group",
    .text = "a few threads, a warp or a block for each segment, by the average length",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .measures = 1,
    .segmented = 1,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
