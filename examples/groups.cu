/* Cooperative groups: a group is a set of threads that meet and compute together; each has its rank in it.
 *
 * Every kernel below makes a group of one kind and uses it. parts[] says for each kernel what a thread must write. A
 * line of output shows a kernel, its first results, and whether all are right.
 *
 * Two rules hold for all groups. Dividing a group by a partition, and every operation of a group, is collective: all
 * its threads must get there, otherwise those that did wait forever. And the group says which threads take part: no
 * kernel may rely on which threads of a warp happen to run together. */
#include "example.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <utility>

namespace {

namespace cg = cooperative_groups;

enum { block_threads = 128, warp_threads = 32, tile_threads = 4, labels = 3, cluster_blocks = 4 };

constexpr size_t count = 1 << 14; /* threads, and elements */
constexpr int shown = 6;

/* One element of x and out for each thread of the grid. out and *ticket are 0 before the kernel starts. */
struct arrays {
    int *x, *out, *ticket;
};

using warp_tile = cg::thread_block_tile<warp_threads, cg::thread_block>;

__device__ unsigned here() {
    return blockIdx.x * block_threads + threadIdx.x;
}

__device__ warp_tile this_warp() {
    return cg::tiled_partition<warp_threads>(cg::this_thread_block());
}

/* Tiles: neighbours, in parts of a size that is known when compiling. Ranks and shuffles are within the tile. */
__global__ void tiled(arrays a) {
    const auto tile = cg::tiled_partition<tile_threads>(cg::this_thread_block());
    int sum = a.x[here()];
    for (unsigned distance = tile.num_threads() / 2; distance > 0; distance /= 2)
        sum += tile.shfl_xor(sum, distance);
    a.out[here()] = sum;
}

/* Labels: threads with equal labels form a group, wherever in the warp they are. */
__global__ void labeled(arrays a) {
    const int x = a.x[here()];
    const cg::coalesced_group alike = cg::labeled_partition(this_warp(), x % labels);
    a.out[here()] = cg::reduce(alike, x, cg::plus<int>());
}

/* A yes or no makes two groups: those who say yes, and those who say no. */
__global__ void binary(arrays a) {
    const int x = a.x[here()];
    const cg::coalesced_group alike = cg::binary_partition(this_warp(), x % 2 == 1);
    a.out[here()] = cg::reduce(alike, x, cg::plus<int>());
}

/* Coalesced threads: those of the warp that are at this place now. In a branch these are some or all of the threads
 * that took it: threads need not run in step, so one warp may come by as several groups. The result must be right
 * however many there are, as it is here: each group adds its size to out[0], and 1 to out[1]. */
__global__ void coalesced(arrays a) {
    if (a.x[here()] % 2 == 1) {
        const cg::coalesced_group active = cg::coalesced_threads();
        if (active.thread_rank() == 0) {
            atomicAdd(&a.out[0], static_cast<int>(active.num_threads()));
            atomicAdd(&a.out[1], 1);
        }
    }
}

/* One thread of the group does it; which one, is not said. The calls are counted at each warp's first element. */
__global__ void one(arrays a) {
    int *const calls = &a.out[here() / warp_threads * warp_threads];
    cg::invoke_one(this_warp(), [&] { atomicAdd(calls, 1); });
}

/* One thread does it, and all of the group get what it returned: here the first of 32 places that no other has. */
__global__ void one_broadcast(arrays a) {
    const warp_tile warp = this_warp();
    const int first = cg::invoke_one_broadcast(warp, [&] { return atomicAdd(a.ticket, warp_threads); });
    a.out[here()] = first + static_cast<int>(warp.thread_rank());
}

/* Scans: what the threads of the group up to this one have together, with this one, or without it. */
__global__ void inclusive(arrays a) {
    a.out[here()] = cg::inclusive_scan(this_warp(), a.x[here()]);
}

__global__ void exclusive(arrays a) {
    a.out[here()] = cg::exclusive_scan(this_warp(), a.x[here()]);
}

/* Work that needs no other thread. */
__host__ __device__ int own_work(int x) {
    for (int round = 0; round < 8; ++round)
        x = (5 * x + 3) % 1000;
    return x;
}

/* A barrier in two halves: arrive says "mine is there", wait says "now I need the others'". The work between them can
 * fill the time until the last thread arrives; it must not touch what the barrier guards. The block's group has
 * barrier_arrive() and barrier_wait() too, but CUDA 13.0's headers leave the whole meeting to the second of them. A
 * cuda::barrier counts who has arrived. */
__global__ void block_barrier(arrays a) {
    __shared__ int shared[block_threads];
#pragma nv_diagnostic push
#pragma nv_diag_suppress static_var_with_dynamic_init /* init() initializes it */
    __shared__ cuda::barrier<cuda::thread_scope_block> all_there;
#pragma nv_diagnostic pop
    if (threadIdx.x == 0)
        init(&all_there, block_threads);
    __syncthreads(); /* nobody arrives at a barrier that is not made yet */
    shared[threadIdx.x] = a.x[here()];
    auto arrived = all_there.arrive();
    const int own = own_work(a.x[here()]);
    all_there.wait(std::move(arrived));
    a.out[here()] = shared[(threadIdx.x + 1) % block_threads] + own;
}

/* A cluster: blocks that run at the same time and can read each other's shared memory, here the next block's. The
 * halves of its group's barrier are two instructions; no other operation of the group may stand between them. */
__global__ void cluster(arrays a) {
#if __CUDA_ARCH__ >= 900
    __shared__ int shared[block_threads];
    const cg::cluster_group group = cg::this_cluster();
    shared[threadIdx.x] = a.x[here()];
    auto arrived = group.barrier_arrive();
    const int own = own_work(a.x[here()]);
    group.barrier_wait(std::move(arrived));
    const int next = static_cast<int>((group.block_rank() + 1) % group.num_blocks());
    a.out[here()] = group.map_shared_rank(shared, next)[threadIdx.x] + own;
    group.sync(); /* a block that ends takes its shared memory along, so it waits for its reader */
#else
    a.out[here()] = 0; /* not launched: lacking_clusters() */
#endif
}

/* What the kernels read and wrote, on the host. */
struct results {
    std::vector<int> x, out;
};

unsigned warp_start(unsigned i) {
    return i / warp_threads * warp_threads;
}

/* Whether out[i] is expected(i) for every i. */
template <class Expected> bool each(const results &r, Expected expected) {
    for (unsigned i = 0; i < r.out.size(); ++i)
        if (r.out[i] != expected(i))
            return false;
    return true;
}

/* Whether out[i] is the sum of all x[k] in the same warp for which taken(i, k) holds. */
template <class Taken> bool sums(const results &r, Taken taken) {
    return each(r, [&](unsigned i) {
        int sum = 0;
        for (unsigned k = warp_start(i); k < warp_start(i) + warp_threads; ++k)
            sum += taken(i, k) ? r.x[k] : 0;
        return sum;
    });
}

/* Whether each thread has added its own work to the x of the thread that lies `next` further in its ring. */
bool ring_right(const results &r, unsigned threads, unsigned next) {
    return each(r, [&](unsigned i) { return r.x[i / threads * threads + (i + next) % threads] + own_work(r.x[i]); });
}

bool coalesced_right(const results &r) {
    int odd = 0;
    for (int x : r.x)
        odd += x % 2;
    const int groups = r.out[1];
    return groups <= odd && groups >= (odd + warp_threads - 1) / warp_threads && each(r, [&](unsigned i) {
               return i == 0 ? odd : i == 1 ? groups : 0;
           });
}

/* Every place is taken once, and a warp has 32 in a row. */
bool one_broadcast_right(const results &r) {
    results places = r;
    std::sort(places.out.begin(), places.out.end());
    return each(places, [](unsigned i) { return static_cast<int>(i); })
           && each(r, [&](unsigned i) { return r.out[warp_start(i)] + static_cast<int>(i % warp_threads); });
}

struct part {
    const char *name, *what;
    void (*kernel)(arrays);
    unsigned cluster; /* blocks of one */
    bool (*right)(const results &);
};

const part parts[] = {
    {"tiled partition", "sum in each tile of 4", tiled, 1,
     [](const results &r) {
         return sums(r, [](unsigned i, unsigned k) { return k / tile_threads == i / tile_threads; });
     }},
    {"labeled partition", "sum of those with equal x mod 3", labeled, 1,
     [](const results &r) {
         return sums(r, [&](unsigned i, unsigned k) { return r.x[k] % labels == r.x[i] % labels; });
     }},
    {"binary partition", "sum of the odd, or of the even", binary, 1,
     [](const results &r) { return sums(r, [&](unsigned i, unsigned k) { return r.x[k] % 2 == r.x[i] % 2; }); }},
    {"coalesced group", "threads in the branch; groups", coalesced, 1, coalesced_right},
    {"invoke_one", "calls in each warp", one, 1,
     [](const results &r) { return each(r, [](unsigned i) { return i == warp_start(i) ? 1 : 0; }); }},
    {"invoke_one_broadcast", "places taken, 32 at a time", one_broadcast, 1, one_broadcast_right},
    {"inclusive scan", "sum of x up to here", inclusive, 1,
     [](const results &r) { return sums(r, [](unsigned i, unsigned k) { return k <= i; }); }},
    {"exclusive scan", "the same without this x", exclusive, 1,
     [](const results &r) { return sums(r, [](unsigned i, unsigned k) { return k < i; }); }},
    {"barrier arrive, wait", "next thread's x + own work", block_barrier, 1,
     [](const results &r) { return ring_right(r, block_threads, 1); }},
    {"cluster", "next block's x + own work", cluster, cluster_blocks,
     [](const results &r) { return ring_right(r, cluster_blocks * block_threads, block_threads); }},
};

/* Why clusters are left out, or nullptr. What the kernel was compiled for counts as much as the device. */
const char *lacking_clusters(const cudaDeviceProp &device) {
    cudaFuncAttributes attributes;
    TRY(cudaFuncGetAttributes(&attributes, cluster));
    if (device.major < 9)
        return "needs a device of compute capability 9.0";
    return attributes.ptxVersion < 90 ? "was compiled for a compute capability below 9.0" : nullptr;
}

void launch(const part &p, arrays a) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {p.cluster, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = static_cast<unsigned>(count / block_threads);
    config.blockDim = block_threads;
    config.attrs = &attribute;
    config.numAttrs = p.cluster > 1; /* older devices do not know the attribute */
    TRY(cudaLaunchKernelEx(&config, p.kernel, a));
}

void show(const char *name, const char *what, const std::vector<int> &values, const char *verdict) {
    std::printf("%-20s  %-31s", name, what);
    for (int i = 0; i < shown; ++i)
        std::printf(" %5d", values[i]);
    std::printf("  %s\n", verdict);
}

void run(const part &p, arrays a, results &r) {
    TRY(cudaMemset(a.out, 0, count * sizeof *a.out));
    TRY(cudaMemset(a.ticket, 0, sizeof *a.ticket));
    launch(p, a);
    TRY(cudaMemcpy(r.out.data(), a.out, count * sizeof *a.out, cudaMemcpyDeviceToHost));
    show(p.name, p.what, r.out, expect(p.right(r), p.name) ? "right" : "WRONG");
}

} // namespace

int main(int argc, char **argv) {
    example_is_check(argc, argv, "Cooperative groups: one small kernel for each kind.");
    const cudaDeviceProp device = example_device(7, 0);
    results r = {std::vector<int>(count), std::vector<int>(count)};
    for (size_t i = 0; i < count; ++i)
        r.x[i] = static_cast<int>((scatter(i) >> 16) % 100);
    arrays a;
    TRY(cudaMalloc(&a.x, count * sizeof *a.x));
    TRY(cudaMalloc(&a.out, count * sizeof *a.out));
    TRY(cudaMalloc(&a.ticket, sizeof *a.ticket));
    TRY(cudaMemcpy(a.x, r.x.data(), count * sizeof *a.x, cudaMemcpyHostToDevice));

    std::printf("%s, %zu threads in blocks of %d\n\n", device.name, count, block_threads);
    show("x", "of the first threads", r.x, "");
    for (const part &p : parts) {
        const char *lacking = p.kernel == cluster ? lacking_clusters(device) : nullptr;
        if (lacking)
            leave_out(p.name, lacking);
        else
            run(p, a, r);
    }
    TRY(cudaFree(a.x));
    TRY(cudaFree(a.out));
    TRY(cudaFree(a.ticket));
    return example_end();
}
