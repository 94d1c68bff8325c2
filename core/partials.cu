/* Partial results on the device: one warp merges any number of them in order, and may finish what it has merged.
 *
 * This is no strategy of the registry, but it is launched as a run of one: `in` has `count` partial results of the
 * key's operation, type and NaN policy. A run with a label writes one partial result; a run without a label the result.
 *
 * The CPU merges in the same order with the same functions (acc.h), and this file is compiled without contraction of
 * products and sums, so that both give the same bits. */
#include "family.cuh"
#include "finish.cuh"
#include "partial.h"

namespace dpr {
namespace {

constexpr unsigned at_a_time = 32;

/* The warp loads up to 32 partial results, of `words` words each. Returns whether all of them have the label. */
__device__ bool load(uint64_t (*to)[DPR_PARTIAL_WORDS], const uint64_t *from, unsigned n, int words, uint64_t label) {
    bool good = true;
    if (threadIdx.x < n) {
        for (int w = 0; w < words; ++w)
            to[threadIdx.x][w] = from[threadIdx.x * words + w];
        good = to[threadIdx.x][0] == label;
    }
    __syncwarp(); /* a vote does not make what lanes have written visible */
    return __all_sync(~0u, good);
}

/* Merges all partial results in thread 0. Returns whether all of them have the label. */
__device__ bool merge_all(const dpr_merge_args &args, dpr_merged &merged) {
    __shared__ uint64_t loaded[at_a_time][DPR_PARTIAL_WORDS];
    const int words = dpr_partial_words(dpr_partial_op(args.label), dpr_partial_dtype(args.label));
    const auto *from = static_cast<const uint64_t *>(args.run.in);
    for (uint64_t at = 0; at < args.run.count; at += at_a_time) {
        const unsigned n = args.run.count - at < at_a_time ? static_cast<unsigned>(args.run.count - at) : at_a_time;
        if (!load(loaded, from + at * words, n, words, args.label))
            return false;
        for (unsigned i = 0; threadIdx.x == 0 && i < n; ++i)
            dpr_partial_add(&merged, loaded[i]);
        __syncwarp();
    }
    return true;
}

/* A partial result of something else makes the merged one a row of zeros, which nobody takes; without a partial result
 * to write, it leaves `out` as it is. */
__global__ void __launch_bounds__(at_a_time) partials_kernel(const __grid_constant__ dpr_merge_args args) {
    __shared__ union {
        uint64_t words[DPR_PARTIAL_WORDS];
        unsigned char bytes[sizeof(uint64_t) * DPR_PARTIAL_WORDS];
    } out;
    const dpr_op op = dpr_partial_op(args.label);
    const dpr_dtype dtype = dpr_partial_dtype(args.label);
    dpr_merged merged = {};
    let_next_launch();
    wait_for_work_before();
    const bool good = merge_all(args, merged);
    if (threadIdx.x != 0 || (!good && args.run.meeting == DPR_PARTIALS_FINISHED))
        return;
    if (args.run.meeting == DPR_PARTIALS_FINISHED) {
        dpr_acc_add_init(op, dtype, dpr_partial_nan(args.label), &merged.acc, &args.run.init);
        dpr_acc_write(op, dtype, &merged.acc, &args.run.init, out.bytes);
        memcpy(args.run.out, out.bytes, dpr_pair_size(op, dtype));
        return;
    }
    memset(out.words, 0, sizeof out.words);
    if (good)
        dpr_partial_store(args.label, merged.count, &merged.acc, out.words);
    memcpy(args.run.out, out.words, dpr_partial_words(op, dtype) * sizeof *out.words);
}

dpr_kernel kernel(const dpr_key *) {
    return {reinterpret_cast<const void *>(&partials_kernel), at_a_time, 0, 1, 0, nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *, dpr_residency) {
    dpr_launch_limits limits = {};
    limits.threads = at_a_time;
    limits.max_blocks = 1;
    return limits;
}

int launch(const dpr_run *run) {
    dpr_launch launch = {};
    launch.entry = reinterpret_cast<const void *>(&partials_kernel);
    launch.blocks = 1;
    launch.threads = at_a_time;
    launch.meeting = run->label ? DPR_PARTIALS_MERGED : DPR_PARTIALS_FINISHED;
    dpr_merge_args args = {};
    args.run = dpr_args_of(&launch, run);
    args.run.init = run->init; /* the label is an argument of its own here */
    args.label = dpr_partial_label(dpr_key_op(&run->key), dpr_key_dtype(&run->key), (dpr_nan)run->key.f.nan);
    return run->enqueue(run, &launch, &args.run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_partials;
const dpr_strategy dpr_partials = {
    .name = "partial results",
    .text = "one warp merges partial results in order",
    .side = DPR_ON_GPU,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
};
