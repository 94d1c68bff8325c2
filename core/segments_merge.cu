/* segments.merge: a merge path divides elements and ends of segments equally among blocks, so neither empty nor long
 * segments unbalance them. A block walks its part of the path in tiles, which the copy engine brings to shared memory
 * while the tile before is reduced. In a tile each thread runs over a chunk of neighbouring elements and leaves a value
 * at the end of each segment; a scan over the threads carries what they have left to the segments' next ends. If few
 * segments end in a tile, the warps reduce the pieces between the ends instead. Tiles of small elements are reduced by
 * vectors (segments_by_vector.cuh). The block that finishes last joins the segments that cross blocks, in their order.
 */
#include "family.cuh"
#include "finish.cuh"
#include "segments_by_vector.cuh"
#include "segments_cost.h"

namespace dpr {
namespace {

constexpr int record_bytes = 128; /* room for one of these records */

/* What a block leaves of the segments at the ends of its part of the path. */
template <class M> struct merge_record {
    typename M::acc head;           /* of the elements before its first end */
    typename partial<M>::type tail; /* of those behind its last end, or of all if it has none */
    uint64_t first;                 /* its first end */
    uint32_t has_ends;
};

/* Waits for tile `t` of the block. Returns how many segments end in it. */
template <class M> __device__ unsigned wait_for_tile(merge_shared<M> &s, unsigned t) {
    wait_for_parity(&s.full[t % merge_stages], t / merge_stages);
    return s.plan[plan_of_tile(t)].tile.ends;
}

/* Reduces tile `t`, which has no ends, and those after it until one has ends, and adds them to `carry`. Each worker
 * adds up its own part of all of them, so they need no barrier. Returns the number of the next tile. */
template <class M> __device__ unsigned reduce_inner_tiles(merge_shared<M> &s, unsigned t, typename M::acc &carry) {
    using X = partial<M>;
    typename M::acc mine = M::identity();
    do {
        const worker_of<M> worker(s, t);
        const tile_range share = share_of_warp(worker);
        if (share.begin < share.end)
            mine = M::merge(mine, X::unpack(worker.part_of_lane(share.begin, share.end)));
        s.release(worker.stage);
    } while (++t < s.tiles && wait_for_tile(s, t) == 0);
    const typename X::type x = reduce_warp<M>(X::pack(mine));
    if (threadIdx.x % 32 == 0)
        s.left.x[threadIdx.x / 32] = x;
    sync_workers();
    if (threadIdx.x == 0)
        for (unsigned i = 0; i < merge_warps; ++i)
            carry = M::merge(carry, X::unpack(s.left.x[i]));
    return t;
}

/* Reduces the block's tiles. Returns which of s.carry has what lies behind the last end. */
template <class M>
__device__ unsigned reduce_part(merge_shared<M> &s, const dpr_segment_args &args, bool wide, uint64_t kept) {
    /* With `kept` read from shared memory, sums of F16 took 6 to 9 % longer. */
    unsigned at = 0, t = 0;
    do {
        if (wait_for_tile(s, t) == 0) {
            t = reduce_inner_tiles(s, t, s.carry[at]);
        } else {
            const worker_of<M> worker(s, t++);
            reduce_tile(worker, args, wide, at, worker.tile.end == kept);
            at = 1 - at;
        }
    } while (t < s.tiles);
    sync_workers();
    return at;
}

/* ---- Joining blocks ---- */

/* Writes the results of the blocks' first ends. All threads of the block that finishes last call it. */
template <class M>
__device__ void join_blocks(merge_shared<M> &s, const dpr_segment_args &args, const segment_numbers &numbers) {
    using X = partial<M>;
    const auto *records = static_cast<const merge_record<M> *>(args.run.workspace);
    const unsigned each = (gridDim.x + merge_workers - 1) / merge_workers;
    const unsigned from = min(threadIdx.x * each, gridDim.x), to = min(from + each, gridDim.x);
    carried<M> c;
    c.x = X::identity();
    bool any = false;
    for (unsigned b = from; b < to; ++b) {
        c.x = records[b].has_ends ? records[b].tail : X::combine(c.x, records[b].tail);
        any = any || records[b].has_ends;
    }
    const bool works = threadIdx.x < merge_workers; /* the others have no part */
    if (works)
        c.scan(s.left, any);
    __syncthreads();
    if (!works)
        return;
    typename M::acc a = c.value(s.left, M::identity());
    for (unsigned b = from; b < to; ++b) {
        const merge_record<M> r = records[b];
        if (r.has_ends) {
            const uint64_t begin = static_cast<uint64_t>(numbers[r.first]);
            const uint64_t count = static_cast<uint64_t>(numbers[r.first + 1]) - begin;
            write_segment<M>(args, r.first, begin, count, M::merge(a, r.head));
            a = M::identity();
        }
        a = M::merge(a, X::unpack(r.tail));
    }
}

/* Reduces all segments one by one, for offsets without order, which the merge path cannot divide. */
template <class M>
__device__ void reduce_without_order(const dpr_segment_args &args, const segment_numbers &numbers, uint64_t segments) {
    using X = partial<M>;
    const auto *in = static_cast<const typename M::storage *>(args.run.in);
    for (uint64_t i = threadIdx.x / 32; i < segments; i += merge_threads / 32) {
        const int64_t a = numbers[i], b = numbers[i + 1];
        const uint64_t begin = static_cast<uint64_t>(a), count = numbers.less(a, b) ? static_cast<uint64_t>(b - a) : 0;
        const auto x = reduce_warp<M>(reduce_share<M>(in, begin, count, threadIdx.x % 32, 32));
        if (threadIdx.x % 32 == 0)
            write_segment<M>(args, i, begin, count, X::unpack(x));
    }
}

/* Counts the block's arrival. Returns true in all threads of the one that comes last. Then s.unsorted is, in thread 0,
 * whether one has found offsets without order. */
template <class M> __device__ bool arrive(merge_shared<M> &s, const dpr_segment_args &args) {
    auto *scratch = static_cast<unsigned *>(args.run.scratch); /* ticket; 1 if offsets have no order */
    bool is_last = gridDim.x == 1;
    if (threadIdx.x == 0 && !is_last) {
        if (s.unsorted)
            cuda::atomic_ref<unsigned, cuda::thread_scope_device>(scratch[1]).store(1, cuda::memory_order_relaxed);
        is_last = take_ticket(&scratch[0], gridDim.x);
        if (is_last) {
            s.unsorted = scratch[1] != 0;
            scratch[0] = scratch[1] = 0;
        }
    }
    return __syncthreads_or(is_last);
}

/* Leaves the block's record. One thread calls it, after the last tile. */
template <class M> __device__ void leave_record(const merge_shared<M> &s, const dpr_segment_args &args, unsigned at) {
    const uint64_t first = s.place[0].end;
    merge_record<M> &record = static_cast<merge_record<M> *>(args.run.workspace)[blockIdx.x];
    record.head = s.head;
    record.tail = partial<M>::pack(s.carry[at]);
    record.first = first;
    const merge_tile &last = s.plan[plan_of_tile(s.tiles - 1)].tile;
    record.has_ends = last.end + last.ends > first;
}

template <class M> __device__ void open_block(merge_shared<M> &s) {
    if constexpr (!goes_by_vector<M>) {
        for (unsigned i = threadIdx.x; i < sizeof s.values.flag / vector_bytes; i += merge_threads)
            reinterpret_cast<uint4 *>(s.values.flag)[i] = {0, 0, 0, 0};
    }
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < merge_stages; ++i) {
            cuda::ptx::mbarrier_init(&s.full[i], 32); /* the lanes of the fetching warp */
            cuda::ptx::mbarrier_init(&s.empty[i], uint32_t{merge_warps});
        }
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        s.unsorted = false;
        s.carry[0] = M::identity();
        s.head = M::identity();
    }
}

/* Bytes of the path that take as long as the work that an end makes besides its own bytes. Measured on an H200: with
 * half of the elements in short segments and half in a long one, these make all blocks end at about the same time. */
template <class M> constexpr unsigned end_work = M::has_inverse ? 24 : goes_by_vector<M> ? 64 : 32;

/* Finds the places of the block's part of the path, and of the tiles of the first batch. Returns the length of
 * the part in bytes, with those that stand for work. */
template <class M> __device__ uint64_t find_part(merge_shared<M> &s, const merge_path &path) {
    /* If segments are uneven and blocks have many tiles, blocks get equal work instead of equal bytes. Otherwise that
     * would cost time, because the first tiles are then smaller where segments are short. */
    const bool by_bytes = path.length() / gridDim.x < uint64_t{16} * tile_bytes || !path.is_uneven();
    const merge_path by_work = path.with_longer_ends(by_bytes ? 0 : end_work<M>);
    const uint64_t length = by_work.length(), from = length * blockIdx.x / gridDim.x,
                   to = length * (blockIdx.x + 1) / gridDim.x;
    const unsigned warp = threadIdx.x / 32;
    const path_place mine = by_work.find(warp == merge_warps ? to : min(from + uint64_t{warp} * tile_bytes, to));
    if (threadIdx.x % 32 == 0)
        s.place[warp] = mine;
    __syncthreads();
    return to - from;
}

template <class M> __device__ void reduce_by_merge_path(const dpr_segment_args &args, merge_shared<M> &s) {
    let_next_launch();
    open_block(s);
    wait_for_work_before();
    const uint64_t segments = dpr_segment_count(&args.list);
    if (segments == 0)
        return;
    const segment_numbers numbers(args.list.begins, args.list.dtype);
    const merge_arrays arrays = {static_cast<const unsigned char *>(args.run.in),
                                 elements(args.run),
                                 segments,
                                 numbers,
                                 sizeof(typename M::storage),
                                 numbers.size() + static_cast<unsigned>(sizeof(typename M::result))};
    const merge_path path(numbers, segments, arrays.elements, arrays.element_bytes, arrays.end_bytes);
    const uint64_t most = find_part(s, path);
    const unsigned warp = threadIdx.x / 32;
    if (warp == merge_warps) {
        tile_fetcher<M>(s, arrays, path, most).fetch_all();
    } else {
        const uint64_t kept = gridDim.x > 1 ? s.place[0].end : ~uint64_t{0};
        const unsigned at = reduce_part(s, args, numbers.size() == 8, kept);
        if (threadIdx.x == 0 && gridDim.x > 1)
            leave_record(s, args, at);
    }
    __syncthreads();
    if (!arrive(s, args))
        return;
    if (__syncthreads_or(threadIdx.x == 0 && s.unsorted))
        reduce_without_order<M>(args, numbers, segments);
    else if (gridDim.x > 1)
        join_blocks(s, args, numbers);
}

/* Blocks on an SM: four, or as many as have enough registers, or as shared memory allows on a device with 227 KiB of it
 * for blocks, of which each takes 1 KiB more. */
template <class M>
constexpr int merge_blocks = sizeof(merge_shared<M>) > 55 * 1024 ? 227 * 1024 / (sizeof(merge_shared<M>) + 1024)
                             : sizeof(typename M::storage) > 8   ? 3
                                                                 : 4;

template <class M>
__global__ void __launch_bounds__(merge_threads, merge_blocks<M>)
    merge_kernel(const __grid_constant__ dpr_segment_args args) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char shared[];
    reduce_by_merge_path<M>(args, *reinterpret_cast<merge_shared<M> *>(shared));
#else
    __trap(); /* probe() refuses devices without the copy engine */
#endif
}

struct merge_family {
    template <class M> static constexpr segment_entry entry() {
        static_assert(sizeof(merge_record<M>) <= record_bytes);
        return merge_kernel<M>;
    }
};

struct shared_memory {
    template <class M> static constexpr int of = sizeof(merge_shared<M>);
};
struct blocks_on_sm {
    template <class M> static constexpr int of = merge_blocks<M>;
};

using kernels = instances_and_means<merge_family>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!key->f.segments)
        return "reduces segments alone";
    if (key->f.partial)
        return "writes no partial results";
    if (caps->gpu.cc_major < 9)
        return "needs bulk asynchronous copies (compute capability 9.0)";
    if (key->f.ranges)
        return "takes offsets, not begins and ends";
    if (key->f.in_memory != DPR_MEMORY_DEVICE)
        return "copies from device memory alone";
    return caps->gpu.shared_per_block_optin < kernels::number_of<shared_memory>(key)
               ? "needs more shared memory a block"
               : nullptr;
}

/* On an H200: 6 us in addition to reading, and 1.2 times as long as memory takes for elements, offsets and results. */
dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return {DPR_LAUNCH_SECONDS + 3e-6, dpr_segment_bytes(key, size), dpr_memory_rate(&caps->gpu) / 1.2};
}

dpr_kernel kernel(const dpr_key *key) {
    return {kernels::of(key),
            merge_threads,
            kernels::number_of<shared_memory>(key),
            kernels::number_of<blocks_on_sm>(key),
            0,
            nullptr};
}

dpr_launch_limits limits(const dpr_key *, const dpr_caps *caps, dpr_residency resident) {
    dpr_launch_limits limits = {};
    limits.threads = merge_threads;
    limits.max_blocks = resident.blocks;
    limits.cached_bytes = static_cast<size_t>(caps->gpu.l2_bytes);
    return limits;
}

/* A block for each tile, up to the limit. */
unsigned blocks_of(const dpr_run *run) {
    const dpr_size size = {run->count, run->segments->count};
    const double bytes = dpr_segment_bytes(&run->key, size);
    const double most = run->limits.max_blocks, wanted = bytes / tile_bytes + 1;
    return static_cast<unsigned>(wanted < most ? wanted : most);
}

size_t workspace_bytes(const dpr_run *run) {
    return size_t{record_bytes} * blocks_of(run);
}

int launch(const dpr_run *run) {
    dpr_launch launch = {};
    launch.entry = kernels::of(&run->key);
    launch.blocks = blocks_of(run);
    launch.threads = merge_threads;
    launch.shared_bytes = kernels::number_of<shared_memory>(&run->key);
    return dpr_launch_segments(&launch, run, {});
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_segments_merge;
const dpr_strategy dpr_segments_merge = {
    .name = "segments.merge",
    .text = "elements and ends of segments divided equally among blocks",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .segmented = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::kernel,
    .limits = dpr::limits,
    .launch = dpr::launch,
    .workspace_bytes = dpr::workspace_bytes,
};
