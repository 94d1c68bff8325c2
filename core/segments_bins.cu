/* segments.bins: the first launch sorts segments by their lengths into three lists, in workspace; the second one works
 * through the lists: a thread reduces a short segment, a warp a medium one, and a block a long one. The host does not
 * learn how many there are of each. The order of a list differs from run to run, and no result depends on it. */
#include <cuda/atomic>

#include "segments_demonstration.cuh"
#include "segments_teams.cuh"

namespace dpr {
namespace {

/* The most elements of a short and of a medium segment: estimates. */
constexpr uint64_t most_of_thread = 16, most_of_warp = 2048;

enum bin { short_ones, medium_ones, long_ones, bins };

/* What scratch memory has from the first launch until the end of the second one. */
struct bins_scratch {
    uint64_t count[bins]; /* segments in each list */
    unsigned ticket;      /* of the blocks of the second launch */
};

/* The lists, of numbers of segments. Short and long segments share an array, from both ends, because together they are
 * not more than all segments; medium ones have another one. */
struct bin_lists {
    bins_scratch *scratch;
    uint64_t *ends, *medium; /* `most` numbers each */
    uint64_t most;

    __device__ explicit bin_lists(const dpr_segment_args &args)
        : scratch(static_cast<bins_scratch *>(args.run.scratch)), ends(static_cast<uint64_t *>(args.run.workspace)),
          medium(ends + args.list.count), most(args.list.count) {}

    __device__ uint64_t &at(int bin, uint64_t i) const {
        return bin == medium_ones ? medium[i] : ends[bin == short_ones ? i : most - 1 - i];
    }

    static __device__ int bin_of(uint64_t elements) {
        return elements <= most_of_thread ? short_ones : elements <= most_of_warp ? medium_ones : long_ones;
    }

    /* Puts a segment into its list; `bin` is `bins` in threads without a segment. All threads of a warp call it, so
     * that one of them takes the places of all that have the same list. */
    __device__ void add(int bin, uint64_t segment) const {
        const unsigned lane = threadIdx.x % 32;
        for (int b = 0; b < bins; ++b) {
            const unsigned same = __ballot_sync(~0u, bin == b);
            if (bin != b)
                continue;
            const int leader = __ffs(static_cast<int>(same)) - 1;
            uint64_t first = 0;
            if (lane == static_cast<unsigned>(leader))
                first = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(scratch->count[b])
                            .fetch_add(__popc(same), cuda::memory_order_relaxed);
            first = __shfl_sync(same, first, leader);
            at(b, first + __popc(same & ((1u << lane) - 1))) = segment;
        }
    }

    __device__ void sort(const dpr_segment_list &list) const {
        const uint64_t segments = dpr_segment_count(&list);
        for (uint64_t first = blockIdx.x * blockDim.x; first < segments; first += threads_of_grid()) {
            const uint64_t i = first + threadIdx.x;
            add(i < segments ? bin_of(range_of(list, i).count) : bins, i);
        }
    }
};

template <class M, team Team>
__device__ void reduce_bin(const dpr_segment_args &args, const bin_lists &lists, int bin) {
    reduce_each<M, Team>(args, lists.scratch->count[bin], [&](uint64_t i) { return lists.at(bin, i); });
}

/* Long segments come first, so that none of them is left for the end. */
template <class M> __device__ void reduce_bins(const dpr_segment_args &args, const bin_lists &lists) {
    reduce_bin<M, team::block>(args, lists, long_ones);
    reduce_bin<M, team::warp>(args, lists, medium_ones);
    reduce_bin<M, team::thread>(args, lists, short_ones);
    __syncthreads(); /* all threads have read what the last block sets to zero */
    if (threadIdx.x == 0 && take_ticket(&lists.scratch->ticket, gridDim.x))
        *lists.scratch = {};
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) bins_kernel(const __grid_constant__ dpr_segment_args args) {
    let_next_launch();
    wait_for_work_before();
    const bin_lists lists(args);
    if (args.groups.which == DPR_SEGMENTS_LONG)
        reduce_bins<M>(args, lists);
    else
        lists.sort(args.list);
}

struct bins_form : demonstrated_form {
    template <class M> static constexpr segment_entry entry() {
        if constexpr (is_demonstrated<M>)
            return bins_kernel<M>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<bins_form, segment_entry>::of(key); }
};

struct by_bins : of_segments<bins_form> {
    static size_t workspace_bytes(const dpr_run *run) {
        return 2 * static_cast<size_t>(run->segments->count) * sizeof(uint64_t);
    }

    /* The second launch has a block for each segment, up to the limit, because all may be long. */
    static int launch(const dpr_run *run) {
        const auto threads = static_cast<uint64_t>(run->limits.threads), segments = run->segments->count;
        dpr_segment_groups groups = {};
        groups.which = DPR_SEGMENTS_SHORT;
        const int error = launch_for_segments<bins_form>(run, segments, threads, groups);
        if (error)
            return error;
        groups.which = DPR_SEGMENTS_LONG;
        return launch_for_segments<bins_form>(run, segments, 1, groups);
    }
};

} // namespace
} // namespace dpr

DPR_SEGMENTS_DEMONSTRATION(segments_bins, "segments.bins", dpr::by_bins, 0.7, 0.05e-9, DPR_SCRATCH_BYTES,
                           dpr::by_bins::workspace_bytes,
                           "sorted by length on the device: a thread, a warp or a block for each")
