/* Code that demonstrations share: the pairs of operation and type that they take, and the block size, which the caller
 * may choose. */
#ifndef DPR_CORE_DEMONSTRATION_CUH
#define DPR_CORE_DEMONSTRATION_CUH

#include <algorithm>

#include "cost.h"
#include "family.cuh"

namespace dpr {

constexpr bool is_demonstrated_type(dpr_dtype dtype) {
    return dtype == DPR_I32 || dtype == DPR_I64 || dtype == DPR_F32 || dtype == DPR_F64;
}

template <class M> constexpr bool is_demonstrated = false;
template <dpr_dtype D, dpr_nan N> constexpr bool is_demonstrated<monoid<DPR_SUM, D, N>> = is_demonstrated_type(D);
template <dpr_dtype D, dpr_nan N> constexpr bool is_demonstrated<monoid<DPR_MIN, D, N>> = is_demonstrated_type(D);
template <dpr_dtype D, dpr_nan N> constexpr bool is_demonstrated<monoid<DPR_MAX, D, N>> = is_demonstrated_type(D);

constexpr const char *why_not_demonstrated = "it is there to show sums, minima and maxima of i32, i64, f32 and f64";

/* True for the only one of these pairs whose partial results are wider than its elements. */
template <class M> constexpr bool is_sum_of_i32 = false;
template <dpr_nan N> constexpr bool is_sum_of_i32<monoid<DPR_SUM, DPR_I32, N>> = true;

/* Bytes of the largest value that threads exchange for such a pair. */
constexpr int demonstrated_bytes = 8;

/* How many such partial results scratch memory has room for with their tags, which take as much again. */
constexpr int demonstrated_partials = DPR_SCRATCH_BYTES / (2 * demonstrated_bytes);

/* Threads a block: the caller's choice, or 512 as in the literature (core/README.md). */
constexpr int literature_block = 512;
inline int block_of(const dpr_key *key) {
    return key->f.block ? 1 << key->f.block : literature_block;
}

/* Defaults for forms. */
struct demonstrated_form {
    static const char *why_not(const dpr_key *) { return why_not_demonstrated; }
    static int shared_bytes(const dpr_key *) { return 0; }
};

/* A strategy whose threads take `Bytes` bytes of the array at a time. It launches at most as many blocks as the device
 * holds, and at most `Partials`. If `ThreadsPerSm` is not 0, it also launches no more blocks than make that many
 * threads an SM, but at least one on each SM. Form::of(key) is its kernel, or NULL for pairs that it does not take;
 * Form::why_not(key) is then the reason. Form::shared_bytes(key) is dynamic shared memory a thread, in bytes. */
template <class Form, unsigned Bytes, int Partials, int ThreadsPerSm = 0> struct demonstration {
    static constexpr int static_shared_bytes = 1024; /* at least what any of their kernels has besides, in bytes */

    static const char *probe(const dpr_key *key, const dpr_caps *caps) {
        const int threads = block_of(key);
        if (!Form::of(key))
            return Form::why_not(key);
        if (caps->gpu.max_threads_per_block < threads)
            return "its blocks have too many threads";
        const int shared = threads * Form::shared_bytes(key);
        return shared > 0 && caps->gpu.shared_per_block_optin < shared + static_shared_bytes
                   ? "blocks of this size need more shared memory"
                   : nullptr;
    }

    static dpr_kernel kernel(const dpr_key *key) {
        const int threads = block_of(key);
        return {Form::of(key), threads, threads * Form::shared_bytes(key), most_threads / threads, 0, nullptr};
    }

    static dpr_launch_limits limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
        const int threads = block_of(key), per_sm = std::max(ThreadsPerSm / threads, 1);
        dpr_launch_limits limits = {};
        limits.threads = threads;
        limits.max_blocks = std::min(resident.blocks, Partials);
        if (ThreadsPerSm > 0)
            limits.max_blocks = std::min(limits.max_blocks, per_sm * static_cast<int>(caps->gpu.sm_count));
        limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
        return limits;
    }

    static int launch(const dpr_run *run) {
        const size_t at_once = static_cast<size_t>(run->limits.threads) * Bytes;
        const size_t wanted = (dpr_run_bytes(run) + at_once - 1) / at_once;
        dpr_launch launch = {};
        launch.entry = Form::of(&run->key);
        launch.blocks = static_cast<unsigned>(
            std::clamp(wanted, static_cast<size_t>(1), static_cast<size_t>(run->limits.max_blocks)));
        launch.threads = static_cast<unsigned>(run->limits.threads);
        launch.shared_bytes = run->limits.threads * Form::shared_bytes(&run->key);
        return dpr_launch_run(&launch, run);
    }
};

/* The cost of a demonstration that reads at `share` of the memory's rate. The shares are from
 * tests/results/h200-ladder-28.json, after the time of a call without reading is subtracted, which is an estimate. */
inline dpr_cost demonstration_cost(const dpr_key *key, const dpr_caps *caps, dpr_size size, double share) {
    return {DPR_LAUNCH_SECONDS + 2.5e-6, dpr_array_bytes(key, size), share * dpr_memory_rate(&caps->gpu)};
}

/* The table of one demonstration. */
#define DPR_DEMONSTRATION(ID, NAME, FORM, SHARE, TEXT)                                                                 \
    extern "C" const dpr_strategy dpr_##ID;                                                                            \
    const dpr_strategy dpr_##ID = {                                                                                    \
        .name = NAME,                                                                                                  \
        .text = TEXT,                                                                                                  \
        .side = DPR_ON_GPU,                                                                                            \
        .role = DPR_ROLE_DEMONSTRATION,                                                                                \
        .takes_block = 1,                                                                                              \
        .scratch_bytes = DPR_SCRATCH_BYTES,                                                                            \
        .probe = FORM::probe,                                                                                          \
        .cost = [](const dpr_key *key, const dpr_caps *caps,                                                           \
                   dpr_size size) { return dpr::demonstration_cost(key, caps, size, SHARE); },                         \
        .kernel = FORM::kernel,                                                                                        \
        .limits = FORM::limits,                                                                                        \
        .launch = FORM::launch,                                                                                        \
    };

} // namespace dpr

#endif
