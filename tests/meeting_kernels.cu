#include "meeting_kernels.h"

#include "cluster.cuh"
#include "meetings.cuh"

namespace dpr {
namespace {

/* ---- An operation with accumulators of 1 KiB ---- */

struct counts {
    uint64_t of[LARGE_BINS];
};
static_assert(sizeof(counts) == largest_partial);

struct counts_of_tile {
    counts c = {};

    __device__ void add(const packet<uint8_t> &p, unsigned) {
        for (int e = 0; e < p.size; ++e)
            ++c.of[p[e] % LARGE_BINS];
    }

    template <class IndexOf> __device__ counts fold_into(counts a, IndexOf) {
        for (int i = 0; i < LARGE_BINS; ++i)
            a.of[i] += c.of[i];
        return a;
    }
};

struct histogram : common {
    using storage = uint8_t;
    using lane = int; /* an element; -1: none */
    using acc = counts;
    using result = counts;
    using tile = counts_of_tile;
    static constexpr int vectors = 2;
    static constexpr int words = LARGE_BINS;

    static constexpr __device__ lane lane_identity() { return -1; }
    static __device__ acc identity() { return {}; }
    static __device__ lane add(lane, storage x) { return x % LARGE_BINS; }
    static __device__ acc lift(result r) { return r; }
    static __device__ result finish(acc a) { return a; }
    static __device__ void store(acc a, uint64_t *w) { memcpy(w, a.of, sizeof a.of); }

    static __device__ acc fold(acc a, lane l) {
        if (l >= 0)
            ++a.of[l];
        return a;
    }

    static __device__ acc merge(acc a, const acc &b) {
        for (int i = 0; i < LARGE_BINS; ++i)
            a.of[i] += b.of[i];
        return a;
    }
};

/* ---- Elements with gaps between them ---- */

/* What such kernels get: the arguments of every kernel first. args.in is NULL. */
struct strided_args {
    dpr_kernel_args run;
    const void *from;
    int64_t stride;
};

/* A place is the number of a vector, whose elements are read one by one. */
template <class T> struct strided_view {
    using element_type = T;
    using place = uint64_t;
    static constexpr bool may_be_split = false;
    const T *from;
    int64_t stride;
    uint64_t count, vectors;
    uint32_t head = 0;
    bool ends;

    __device__ explicit strided_view(const dpr_kernel_args &args) : strided_view(args, args.count) {}

    __device__ strided_view(const dpr_kernel_args &args, uint64_t n)
        : from(static_cast<const T *>(reinterpret_cast<const strided_args &>(args).from)),
          stride(reinterpret_cast<const strided_args &>(args).stride), count(n), vectors(n / packet<T>::size),
          ends(n % packet<T>::size != 0) {}

    __device__ place body() const { return 0; }
    __device__ uint64_t tail() const { return vectors * packet<T>::size; }
    __device__ T element(uint64_t i) const { return from[static_cast<int64_t>(i) * stride]; }
    __device__ uint64_t index(place p) const { return p * packet<T>::size; }

    template <bool Streaming> __device__ packet<T> load(place p) const {
        T x[packet<T>::size];
        for (int e = 0; e < packet<T>::size; ++e)
            x[e] = element(index(p) + e);
        packet<T> all;
        memcpy(all.w, x, sizeof all.w);
        return all;
    }

    static __device__ void prefetch(place) {}
    static __device__ void keep(place &p) { asm volatile("" : "+l"(p)); }
};

template <dpr_op O, dpr_dtype D> struct strided : monoid<O, D, DPR_NAN_PROPAGATE> {
    using reader = strided_view<storage_of<D>>;
};

/* ---- Kernels ---- */

template <class M>
__global__ void __launch_bounds__(256) lastblock_kernel(const __grid_constant__ dpr_kernel_args args) {
    const thread_slice<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_slice<M>(args, mine));
    meet<M>(args, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

template <dpr_op O, dpr_dtype D>
__global__ void __launch_bounds__(256) strided_kernel(const __grid_constant__ strided_args args) {
    using M = strided<O, D>;
    const thread_slice<M> mine = begin<M>(args.run);
    const auto x = reduce_block<M>(reduce_slice<M>(args.run, mine));
    meet<M>(args.run, mine.d.count, x, blockIdx.x, gridDim.x - 1);
}

int launch(kernel_entry kernel, const dpr_launch &launch, const dpr_run *run) {
    dpr_kernel_args args = dpr_args_of(&launch, run);
    void *arguments[] = {&args};
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = launch.blocks;
    config.blockDim = launch.threads;
    config.attrs = &attribute;
    config.numAttrs = launch.cooperative || launch.cluster ? 1 : 0;
    attribute.id = launch.cooperative ? cudaLaunchAttributeCooperative : cudaLaunchAttributeClusterDimension;
    if (launch.cooperative)
        attribute.val.cooperative = 1;
    else
        attribute.val.clusterDim = {launch.cluster, 1, 1};
    return static_cast<int>(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), arguments));
}

} // namespace
} // namespace dpr

int large_has_clusters(void) {
    int major = 0;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess && major >= 9;
}

/* So few in a grid that it meets in several rounds. */
unsigned large_threads(large_meeting meeting) {
    return meeting == LARGE_GRID ? 64 : meeting == LARGE_CLUSTER ? dpr::cluster_threads : 256;
}

unsigned large_most_blocks(large_meeting meeting) {
    const auto kernel = meeting == LARGE_CLUSTER     ? dpr::cluster_kernel<dpr::histogram>
                        : meeting == LARGE_LASTBLOCK ? dpr::lastblock_kernel<dpr::histogram>
                                                     : dpr::meetings_kernel<dpr::histogram>;
    int sms = 0, blocks = 0;
    if (cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) != cudaSuccess
        || cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(large_threads(meeting)), 0)
               != cudaSuccess)
        return 0;
    return static_cast<unsigned>(blocks * sms);
}

size_t large_workspace(unsigned blocks) {
    return 2 * sizeof(dpr::counts) * blocks;
}

int large_count(large_meeting meeting, const dpr_run *run, unsigned blocks) {
    using dpr::histogram;
    dpr_launch launch = {};
    launch.blocks = blocks;
    launch.threads = large_threads(meeting);
    if (meeting == LARGE_LASTBLOCK)
        return dpr::launch(dpr::lastblock_kernel<histogram>, launch, run);
    if (meeting == LARGE_CLUSTER) {
        launch.cluster = 8;
        return dpr::launch(dpr::cluster_kernel<histogram>, launch, run);
    }
    launch.cooperative = meeting == LARGE_GRID;
    launch.meeting = meeting == LARGE_GRID     ? DPR_MEET_IN_GRID
                     : meeting == LARGE_TICKET ? DPR_MEET_BY_TICKET
                                               : DPR_MEET_LATER;
    const int error = dpr::launch(dpr::meetings_kernel<histogram>, launch, run);
    if (error || meeting != LARGE_TWOPASS)
        return error;
    launch.meeting = DPR_MEET_NOW;
    launch.partials = blocks;
    launch.blocks = 1;
    return dpr::launch(dpr::meetings_kernel<histogram>, launch, run);
}

int strided_reduce(const void *from, int64_t stride, const dpr_run *run, unsigned blocks) {
    dpr_launch launch = {};
    launch.blocks = blocks;
    launch.threads = 256;
    dpr::strided_args args = {dpr_args_of(&launch, run), from, stride};
#define LAUNCH(OP, DTYPE)                                                                                              \
    if (dpr_key_op(&run->key) == DPR_##OP && dpr_key_dtype(&run->key) == DPR_##DTYPE)                                  \
        dpr::strided_kernel<DPR_##OP, DPR_##DTYPE><<<blocks, launch.threads>>>(args);
    STRIDED_PAIRS(LAUNCH)
#undef LAUNCH
    return static_cast<int>(cudaGetLastError());
}
