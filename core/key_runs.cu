/* Runs of equal consecutive keys. Each warp has a part of the keys: it counts the runs that begin there. A second
 * launch writes them, because only then each warp knows how many runs begin before its part. */
#include "key_runs.h"

#include "finish.cuh"
#include "launch.h"

namespace dpr {
namespace {

constexpr unsigned most_blocks = DPR_RUNS_BLOCKS, runs_threads = 32 * DPR_RUNS_WARPS;
constexpr unsigned keys_ahead = 8; /* loads in flight, of each lane */

/* The warp's part of the keys: the same in both launches. */
struct keys_part {
    uint64_t from, to;

    __device__ keys_part(uint64_t count, unsigned part, unsigned parts) {
        constexpr uint64_t step = 32 * keys_ahead;
        const uint64_t share = (count > 0 ? (count - 1) / parts / step + 1 : 1) * step;
        from = min(part * share, count);
        to = min(from + share, count);
    }
};

/* Calls take(i, key, begins) in all lanes of the warp for 32 neighbouring keys at a time. `begins` says whether a run
 * begins at key i; it is false beyond the part, where `key` is 0. */
template <class Key, class Take> __device__ void look_at_keys(const Key *keys, keys_part part, Take take) {
    using word = cuda::std::conditional_t<sizeof(Key) == 8, unsigned long long, unsigned>;
    const unsigned lane = threadIdx.x % 32;
    word last = part.from > 0 && part.from < part.to ? keys[part.from - 1] : 0;
    for (uint64_t at = part.from + lane; at - lane < part.to; at += 32 * keys_ahead) {
        word key[keys_ahead];
#pragma unroll
        for (unsigned k = 0; k < keys_ahead; ++k)
            key[k] = at + 32 * k < part.to ? keys[at + 32 * k] : 0;
#pragma unroll
        for (unsigned k = 0; k < keys_ahead; ++k) {
            const uint64_t i = at + 32 * k;
            word before = __shfl_up_sync(~0u, key[k], 1);
            before = lane == 0 ? last : before;
            last = __shfl_sync(~0u, key[k], 31);
            take(i, static_cast<Key>(key[k]), i < part.to && (i == 0 || key[k] != before));
        }
    }
}

template <class Key> __device__ uint64_t count_part(const dpr_key_runs_args &args, keys_part part) {
    uint64_t n = 0;
    look_at_keys(static_cast<const Key *>(args.run.in), part,
                 [&](uint64_t, Key, bool begins) { n += __popc(__ballot_sync(~0u, begins)); });
    return n;
}

/* Sets number `at` of args.begins to i. */
__device__ void write_begin(const dpr_key_runs_args &args, uint64_t at, uint64_t i) {
    if (dpr_key_runs_type(args.run.count) == DPR_U32)
        static_cast<uint32_t *>(args.begins)[at] = static_cast<uint32_t>(i);
    else
        static_cast<int64_t *>(args.begins)[at] = static_cast<int64_t>(i);
}

template <class Key> __device__ void write_part(const dpr_key_runs_args &args, keys_part part, uint64_t before) {
    const unsigned lower = (1u << threadIdx.x % 32) - 1;
    look_at_keys(static_cast<const Key *>(args.run.in), part, [&](uint64_t i, Key key, bool begins) {
        const unsigned all = __ballot_sync(~0u, begins);
        const uint64_t at = before + __popc(all & lower);
        if (begins) {
            write_begin(args, at, i);
            if (args.unique)
                static_cast<Key *>(args.unique)[at] = key;
        }
        before += __popc(all);
    });
}

/* The last block replaces each part's count by the number of runs that begin before the part, and writes the number of
 * all runs as the result. */
__device__ void add_up(const dpr_key_runs_args &args, unsigned parts) {
    __shared__ uint64_t sums[runs_threads];
    uint64_t *const counts = args.counts + DPR_RUNS_PARTS;
    const unsigned each = (parts + runs_threads - 1) / runs_threads;
    const unsigned from = min(threadIdx.x * each, parts), to = min(from + each, parts);
    uint64_t sum = 0;
    for (unsigned i = from; i < to; ++i)
        sum += counts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned distance = 1; distance < runs_threads; distance *= 2) {
        const uint64_t other = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    uint64_t before = sums[threadIdx.x] - sum;
    for (unsigned i = from; i < to; ++i) {
        const uint64_t of_part = counts[i];
        counts[i] = before;
        before += of_part;
    }
    const uint64_t all = sums[runs_threads - 1];
    if (threadIdx.x == 0)
        args.counts[DPR_RUNS_WRITTEN] = all <= args.room ? all : 0;
    __threadfence(); /* whoever sees the number may launch the kernel that writes, in any stream */
    __syncthreads();
    if (threadIdx.x == 0) {
        *static_cast<unsigned *>(args.run.scratch) = 0;
        result_writer{args.run}.write(all);
    }
}

template <class Key> __device__ void count_runs(const dpr_key_runs_args &args, unsigned part, unsigned parts) {
    const uint64_t n = count_part<Key>(args, {elements(args.run), part, parts});
    if (threadIdx.x % 32 == 0)
        args.counts[DPR_RUNS_PARTS + part] = n;
    __syncthreads();
    if (last_to_arrive(static_cast<unsigned *>(args.run.scratch)))
        add_up(args, parts);
}

template <class Key> __device__ void write_runs(const dpr_key_runs_args &args, unsigned part, unsigned parts) {
    const uint64_t written = args.counts[DPR_RUNS_WRITTEN];
    if (written == 0)
        return;
    const uint64_t count = elements(args.run);
    write_part<Key>(args, {count, part, parts}, args.counts[DPR_RUNS_PARTS + part]);
    if (part == 0 && threadIdx.x == 0)
        write_begin(args, written, count);
}

template <class Key> __device__ void find_runs(const dpr_key_runs_args &args) {
    const unsigned part = blockIdx.x * DPR_RUNS_WARPS + threadIdx.x / 32, parts = gridDim.x * DPR_RUNS_WARPS;
    if (args.begins)
        write_runs<Key>(args, part, parts);
    else
        count_runs<Key>(args, part, parts);
}

__global__ void __launch_bounds__(runs_threads) runs_kernel(const __grid_constant__ dpr_key_runs_args args) {
    let_next_launch();
    wait_for_work_before();
    switch (args.key_bytes) {
    case 1:
        return find_runs<uint8_t>(args);
    case 2:
        return find_runs<uint16_t>(args);
    case 4:
        return find_runs<uint32_t>(args);
    default:
        return find_runs<uint64_t>(args);
    }
}

dpr_kernel kernel(const dpr_key *) {
    return {reinterpret_cast<const void *>(&runs_kernel), runs_threads, 0, 1, 0, nullptr};
}

int launch(const dpr_run *run) {
    const dpr_keys_run *const runs = reinterpret_cast<const dpr_keys_run *>(run); /* whose first member it is */
    const size_t wanted = run->count > 0 ? (run->count - 1) / (runs_threads * keys_ahead) + 1 : 1;
    dpr_launch launch = {};
    launch.entry = reinterpret_cast<const void *>(&runs_kernel);
    launch.blocks = wanted < most_blocks ? static_cast<unsigned>(wanted) : most_blocks;
    launch.threads = runs_threads;
    dpr_key_runs_args args = {};
    args.run = dpr_args_of(&launch, run);
    args.counts = runs->counts;
    args.room = runs->room;
    args.begins = runs->begins;
    args.unique = runs->unique;
    args.key_bytes = static_cast<uint32_t>(dpr_dtypes[run->key.f.dtype].size);
    return run->enqueue(run, &launch, &args.run);
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_key_runs;
const dpr_strategy dpr_key_runs = {
    .name = "runs of keys",
    .text = "each warp counts and writes the runs that begin in its part of the keys",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .kernel = dpr::kernel,
    .launch = dpr::launch,
};
