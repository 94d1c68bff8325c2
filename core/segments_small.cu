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
#include "segments_cost.h"
#include "segments_small.cuh"

namespace dpr {
namespace {

/* ---- What is to be tuned ---- */

/* Each segment has a block if there are few, or if they have more bytes on average than the first number. The block has
 * 512 threads instead of 256 above the second number, and 1024 above the third one if it can read them alone. */
constexpr uint64_t bytes_of_block = 2048, bytes_of_512 = 8192, bytes_of_1024 = 32768;

/* The most bytes that a block reads alone, if two slices are not longer: for each of its threads if segments are few,
 * and otherwise in total. To share a segment takes about as long as a block takes for this. */
constexpr uint64_t longest_of_thread = 128, longest_of_block = 65536;

/* The most bytes of an array whose blocks share nothing, because one that has all of them is not slower than blocks
 * that share them: for each thread of a block, if each of few segments has one, and in the largest block; if each of
 * many segments has a block; and if segments have groups of a block's threads, in total. */
constexpr uint64_t alone_of_few = 64, alone_of_largest = 128, alone_of_many = 512, alone_of_groups = 1 << 20;

/* ---- The strategy ---- */

template <small_kind Kind> struct small_family {
    template <class M> static constexpr segment_entry entry() { return small_kernel<M, Kind>; }
};
using few_kernels = instances_and_means<small_family<small_kind::few>>;
using many_kernels = instances_and_means<small_family<small_kind::many>>;
using short_kernels = instances_and_means<small_family<small_kind::many_short>>;

struct alone_family {
    template <class M> static constexpr segment_entry entry() { return alone_kernel<M>; }
};
using alone_kernels = instances_and_means<alone_family>;

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
