/* dp.segments, on the host. */
#include <stdio.h>

#include "means.h"
#include "nested_host.h"
#include "pairs.h"
#include "segments_args.h"
#include "segments_cost.h"

#define NAME(OP, DTYPE, NAN) [DPR_ROW(DPR_##OP)][DPR_ROW(DPR_##DTYPE)][NAN] = "dpr_segments_" #OP "_" #DTYPE "_" #NAN,

/* The first kernel's name; NULL for pairs without a kernel. */
static const char *entry(const dpr_key *key) {
    static const char *const names[DPR_OP_COUNT][DPR_DTYPE_COUNT][2] = {DPR_DEMONSTRATED_PAIRS(NAME)};
    const int has_nan = dpr_dtypes[key->f.dtype].kind & (DPR_KIND_FLOAT | DPR_KIND_COMPLEX);
    return names[key->f.op][key->f.dtype][has_nan ? key->f.nan : 0];
}

static const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!key->f.segments)
        return "reduces segments alone";
    if (key->f.partial)
        return "writes no partial results";
    if (dpr_is_divided_sum(key))
        return "writes no means";
    if (!entry(key))
        return "it is there to show sums, minima and maxima of i32, i64, f32 and f64";
    if (caps->gpu.max_threads_per_block < DPR_SEGMENTS_THREADS)
        return "its blocks have too many threads";
    return dpr_nested_probe(key, &caps->gpu);
}

/* An estimate, because the key does not tell how many segments are long: one launch for all of them, and 0.2 ns for
 * each segment. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double launches = dpr_first_nested_seconds(&caps->gpu) + dpr_level_seconds(&caps->gpu);
    return (dpr_cost){.latency = 2 * DPR_LAUNCH_SECONDS + launches + 0.2e-9 * (double)size.segments,
                      .bytes = dpr_segment_bytes(key, size),
                      .rate = 0.8 * dpr_memory_rate(&caps->gpu)};
}

static dpr_kernel kernel(const dpr_key *key) {
    return (dpr_kernel){
        .entry = entry(key), .threads = DPR_SEGMENTS_THREADS, .min_blocks = 4, .module = &dpr_dp_module};
}

static dpr_launch_limits limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    return dpr_nested_limits(key, caps, DPR_SEGMENTS_THREADS, resident.blocks, dpr_level_seconds(&caps->gpu));
}

static uint32_t room_of(const dpr_run *run) {
    return run->count > DPR_LONGEST_OF_WARP ? dpr_places_of(run->count) : 0;
}

static size_t workspace_bytes(const dpr_run *run) {
    return DPR_REPORT_BYTES + (size_t)room_of(run) * DPR_PLACE_BYTES;
}

/* How many segments are long is known on the device alone. */
static void describe(const dpr_run *run, char *text, size_t size) {
    if (room_of(run) > 0)
        snprintf(text, size, "a launch for each segment of more than %d elements", DPR_LONGEST_OF_WARP);
    else
        snprintf(text, size, "no launches, because no segment can have more than %d elements", DPR_LONGEST_OF_WARP);
}

/* Launches a warp for each segment, up to the limit, and the kernel that writes the report. */
static int launch(const dpr_run *run) {
    static const char end[] = "dpr_end_segments";
    const uint64_t warps = DPR_SEGMENTS_THREADS / 32, wanted = (run->segments->count + warps - 1) / warps,
                   most = (uint64_t)run->limits.max_blocks;
    dpr_launch launch = {.entry = entry(&run->key),
                         .module = &dpr_dp_module,
                         .blocks = (unsigned)(wanted < most ? wanted : most),
                         .threads = DPR_SEGMENTS_THREADS};
    dpr_nested_segments_args args = {
        .nested = dpr_nested_args_of(&launch, run), .list = *run->segments, .room = room_of(run)};
    const int error = run->enqueue(run, &launch, &args.nested.run);
    if (error)
        return error;
    launch.entry = end;
    launch.blocks = 1;
    launch.threads = 32;
    return run->enqueue(run, &launch, &args.nested.run);
}

const dpr_strategy dpr_dp_segments = {
    .name = "dp.segments",
    .text = "a warp for each segment; warps launch a grid for each long one",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_NESTED,
    .segmented = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost,
    .kernel = kernel,
    .limits = limits,
    .launch = launch,
    .workspace_bytes = workspace_bytes,
    .describe = describe,
};
