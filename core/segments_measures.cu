/* A group of neighbouring threads reduces a segment, as in segments_group.cu. A segment of more than `longest_share`
 * elements for each thread of its group is left to the whole block. */
#include "segments_measures.h"

#include "family.cuh"
#include "operation.cuh"
#include "segments.cuh"

namespace dpr {
namespace {

constexpr unsigned group_warps = group_threads / 32;

/* A group leaves a segment to the block if each of its threads would read more elements than this. An estimate. */
constexpr unsigned longest_share = 128;

struct segment_range {
    uint64_t first, count; /* in elements */
};

/* What a block does for one operation. All of its threads call the functions together, because shuffles and barriers
 * need them. */
template <class O> struct segment_worker {
    using storage = typename O::M::storage;
    const dpr_segment_args &args;
    uint64_t *of_warp; /* in shared memory: room for an accumulator of each warp */

    __device__ segment_range range_of(uint64_t i) const {
        const segment_numbers begins(args.list.begins, args.list.dtype), ends(args.list.ends, args.list.dtype);
        const int64_t begin = begins[i], end = ends[i];
        return {static_cast<uint64_t>(begin), begins.less(begin, end) ? static_cast<uint64_t>(end - begin) : 0};
    }

    /* Reads elements `lane`, `lane + step` ... of a segment. */
    __device__ dpr_acc read(segment_range r, unsigned lane, unsigned step) const {
        constexpr unsigned some = 4; /* in flight */
        const storage *in = static_cast<const storage *>(args.run.in) + r.first;
        accumulation<O> a;
        uint64_t i = lane;
#pragma unroll 1
        for (; i + (some - 1) * step < r.count; i += some * step) {
            storage e[some];
#pragma unroll
            for (unsigned k = 0; k < some; ++k)
                e[k] = in[i + k * step];
            a.template add<some>([&](int k) { return e[k]; });
        }
#pragma unroll 1
        for (; i < r.count; i += step) {
            const storage x = in[i];
            a.template add<1>([&](int) { return x; });
        }
        return a.general();
    }

    /* Merges the accumulators of each `size` neighbouring threads: up to a warp, or all of the block. The results are
     * valid in the first thread of each group. There is one place that merges, because the code is long. */
    __device__ dpr_acc merge(dpr_acc a, unsigned size) const {
        constexpr int words = O::M::words;
        unsigned n = 1, lanes = size < 32 ? size : 32;
        if (size == 1)
            return a;
#pragma unroll 1
        for (bool of_warps = false;; of_warps = true) {
            a = merge_lanes<O::op, O::dtype>(n, lanes, [&](unsigned) { return a; });
            if (size <= 32 || of_warps)
                return a;
            if (threadIdx.x % 32 == 0)
                dpr_acc_store(O::op, O::dtype, &a, of_warp + threadIdx.x / 32 * words);
            __syncthreads();
            lanes = group_warps;
            n = threadIdx.x < lanes;
            if (n > 0)
                a = dpr_acc_load(O::op, O::dtype, 1, of_warp + threadIdx.x * words);
            __syncthreads(); /* before the next accumulators are stored */
        }
    }

    /* Reduces segments first, first + 1 ..., one for each group: job 0 is all groups together, each for its own
     * segment, and job g is the block for the segment of group g - 1, if that is a long one. */
    __device__ void reduce(uint64_t first, uint64_t segments) const {
        const unsigned size = 1u << args.log_group, groups = group_threads / size;
        const uint64_t longest = groups == 1 ? 0 : uint64_t{longest_share} * size;
        auto *out = static_cast<result_values<O::op, O::dtype> *>(args.run.out);
#pragma unroll 1
        for (unsigned job = groups == 1; job <= groups; ++job) {
            const bool is_whole = job > 0; /* the whole block */
            const unsigned step = is_whole ? group_threads : size, lane = threadIdx.x % step;
            const uint64_t i = first + (is_whole ? job - 1 : threadIdx.x / size);
            segment_range r = i < segments ? range_of(i) : segment_range{0, 0};
            const bool is_long = groups == 1 || r.count > longest;
            if (is_whole && !is_long)
                continue;
            if (is_long && !is_whole)
                r.count = 0;
            const dpr_acc a = merge(read(r, lane, step), step);
            if (lane == 0 && i < segments && is_long == is_whole)
                write_measure<O>(args.run.init, out + i, r.count, a);
            if (!is_whole && !__syncthreads_or(is_long))
                break;
        }
    }

    __device__ void reduce_all() const {
        const uint64_t segments = dpr_segment_count(&args.list), groups = group_threads >> args.log_group;
#pragma unroll 1
        for (uint64_t first = blockIdx.x * groups; first < segments; first += gridDim.x * groups)
            reduce(first, segments);
    }
};

template <dpr_dtype D, dpr_nan N>
__global__ void __launch_bounds__(group_threads, 2) measures_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ uint64_t of_warp[group_warps * DPR_ACC_WORDS];
    const auto work = [&](auto o) { segment_worker<decltype(o)>{args, of_warp}.reduce_all(); };
    let_next_launch();
    wait_for_work_before();
    call_operation<true, D, N>(args.op, work);
}

struct measures_family {
    using instance = const void *;
    template <dpr_dtype D, dpr_nan N> static constexpr instance of() {
        return reinterpret_cast<const void *>(&measures_kernel<D, N>);
    }
};

} // namespace

const void *dpr_segments_measures(const dpr_key *key) {
    return *type_instances<measures_family>::of(key);
}

} // namespace dpr
