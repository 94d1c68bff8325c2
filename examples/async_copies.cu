/* The same sum with three ways to bring the array to the threads:
 *
 *   plain loads          into registers; a load in flight occupies a register for its result
 *   cg::memcpy_async()   into shared memory, past the registers; every thread of the block copies a part
 *   bulk copies (TMA)    into shared memory; one thread requests a whole stage, and the copy engine does the rest
 *
 * With the last two, each block has room for two stages: it adds up one while the other is being copied. After
 * memcpy_async() of cooperative groups, each thread waits for its own copies and then, at a barrier of the block, for
 * the other threads. The engine counts the bytes that it has copied at a barrier in shared memory (mbarrier), where the
 * threads wait for them.
 *
 * The engine and the threads do not see shared memory in the same way: loads and stores of threads go through the
 * generic proxy, accesses of the engine through the async proxy. __syncthreads() orders only the first. When memory
 * passes from the threads to the engine, a proxy fence is needed, too: the kernel says at three places why.
 *
 * Each kernel divides the array into whole stages, block after block, and block 0 adds the rest with plain loads. Each
 * warp writes one sum, and the host adds these up. The table shows the rate at which each kernel reads the array.
 */
#include "example.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace {

namespace cg = cooperative_groups;

constexpr int block_threads = 256;
constexpr int warps = block_threads / 32;
constexpr int stage_vectors = 4 * block_threads; /* a vector is an int4: 16 bytes, what one copy of a thread can move */
constexpr int stage_bytes = stage_vectors * static_cast<int>(sizeof(int4));
constexpr int stage_ints = 4 * stage_vectors;
constexpr int slots = 2; /* stages that fit in the shared memory of a block */

/* What a thread adds of a stage, which may be in global or in shared memory. */
__device__ long long sum_stage(const int4 *stage) {
    long long sum = 0;
#pragma unroll
    for (int i = 0; i < stage_vectors; i += block_threads) {
        const int4 v = stage[i + threadIdx.x];
        sum += static_cast<long long>(v.x) + v.y + v.z + v.w;
    }
    return sum;
}

/* What a thread adds of the elements after the last whole stage. */
__device__ long long sum_rest(const int *x, size_t count) {
    long long sum = 0;
    if (blockIdx.x == 0) {
        for (size_t i = count - count % stage_ints + threadIdx.x; i < count; i += block_threads)
            sum += x[i];
    }
    return sum;
}

__device__ void write_warp(long long sum, long long *of_warp) {
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        of_warp[blockIdx.x * warps + threadIdx.x / 32] = sum;
}

__global__ void __launch_bounds__(block_threads) plain_loads(const int *x, size_t count, long long *of_warp) {
    const int4 *vectors = reinterpret_cast<const int4 *>(x);
    long long sum = 0;
    for (size_t s = blockIdx.x; s < count / stage_ints; s += gridDim.x)
        sum += sum_stage(vectors + s * stage_vectors);
    write_warp(sum + sum_rest(x, count), of_warp);
}

__global__ void __launch_bounds__(block_threads) memcpy_async(const int *x, size_t count, long long *of_warp) {
    __shared__ int4 slot[slots][stage_vectors];
    const auto block = cg::this_thread_block();
    const int4 *vectors = reinterpret_cast<const int4 *>(x);
    const size_t stages = count / stage_ints;

    /* The type of the size promises that both sides begin at a multiple of 16 bytes: each copy is of a vector. */
    const auto fetch = [&](size_t s, int into) {
        cg::memcpy_async(block, slot[into], vectors + s * stage_vectors, cuda::aligned_size_t<16>(stage_bytes));
    };
    long long sum = 0;
    int now = 0;
    if (blockIdx.x < stages)
        fetch(blockIdx.x, now);
    for (size_t s = blockIdx.x; s < stages; s += gridDim.x) {
        /* Both ways of waiting end with a barrier of the block: every thread sees what the others have copied. */
        if (s + gridDim.x < stages) {
            fetch(s + gridDim.x, 1 - now);
            cg::wait_prior<1>(block); /* all but the latest stage asked for */
        } else {
            cg::wait(block);
        }
        sum += sum_stage(slot[now]);
        block.sync(); /* all have read this stage before the next turn copies over it */
        now = 1 - now;
    }
    write_warp(sum + sum_rest(x, count), of_warp);
}

#if __CUDA_ARCH__ >= 900
/* Waits for the end of the barrier's phase with this parity. A copy that never comes ends the kernel with an error: a
 * try lasts until the phase ends or a time limit of the hardware's. */
__device__ void wait_phase(uint64_t *barrier, unsigned parity) {
    for (int tries = 0; !cuda::ptx::mbarrier_try_wait_parity(barrier, parity); ++tries)
        if (tries == 1 << 22)
            __trap();
}
#endif

__global__ void __launch_bounds__(block_threads) bulk_copies(const int *x, size_t count, long long *of_warp) {
#if __CUDA_ARCH__ >= 900
    namespace ptx = cuda::ptx;
    __shared__ alignas(128) int4 slot[slots][stage_vectors];
    __shared__ alignas(16) long long sums[warps];
    __shared__ uint64_t full[slots];
    const int4 *vectors = reinterpret_cast<const int4 *>(x);
    const size_t stages = count / stage_ints, stride = gridDim.x;

    /* For one thread. A phase of the barrier ends when this thread has arrived and all the bytes have come. */
    const auto fetch = [&](size_t s, unsigned into) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[into], stage_bytes);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot[into], vectors + s * stage_vectors, stage_bytes,
                           &full[into]);
    };
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < slots; ++i)
            ptx::mbarrier_init(&full[i], 1);
        /* First fence: this thread has made the barriers, and the engine will count at them. */
        ptx::fence_proxy_async(ptx::space_shared);
        for (unsigned i = 0; i < slots && blockIdx.x + i * stride < stages; ++i)
            fetch(blockIdx.x + i * stride, i);
    }
    __syncthreads(); /* nobody waits at a barrier that is not made yet */

    long long sum = 0;
    unsigned round = 0;
    for (size_t s = blockIdx.x; s < stages; s += stride, ++round) {
        const unsigned now = round % slots, phase = round / slots % 2;
        wait_phase(&full[now], phase);
        /* What the engine wrote needs no fence: to see the phase end is to see the bytes. */
        sum += sum_stage(slot[now]);
        /* Second fence: the threads have read the stage, and the engine will write over it. */
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0 && s + slots * stride < stages)
            fetch(s + slots * stride, now);
    }

    sum = warp_sum(sum + sum_rest(x, count));
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    /* Third fence: the threads have written the sums, and the engine will read them. Each fences what it wrote. */
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, of_warp + blockIdx.x * warps, sums,
                           static_cast<unsigned>(sizeof sums));
        ptx::cp_async_bulk_commit_group();
        /* Shared memory must outlive the reading of it; the end of the kernel completes the writing. */
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
#else
    __trap(); /* not launched: can_copy_in_bulk() */
#endif
}

using kernel = void (*)(const int *, size_t, long long *);

struct variant {
    const char *name;
    kernel run;
    int blocks;  /* that an SM holds at a time */
    double rate; /* GB/s, or 0 where it is not measured */
};

struct arrays {
    int *x;
    long long *of_warp;
};

/* The sum of the first `count` elements, by `blocks` blocks. */
long long sum(kernel run, const arrays &a, size_t count, int blocks) {
    std::vector<long long> of_warp(static_cast<size_t>(blocks) * warps);
    const size_t bytes = of_warp.size() * sizeof of_warp[0];
    TRY(cudaMemset(a.of_warp, 0xff, bytes)); /* a sum that no warp wrote is to show */
    run<<<blocks, block_threads>>>(a.x, count, a.of_warp);
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(of_warp.data(), a.of_warp, bytes, cudaMemcpyDeviceToHost));
    long long sum = 0;
    for (const long long part : of_warp)
        sum += part;
    return sum;
}

void check_sums(const cudaDeviceProp &gpu, const variant &v, const arrays &a, const std::vector<int> &x) {
    /* Nothing, less than a vector, less than a stage, stages with and without a rest; and 3 blocks, so that each uses
     * its shared memory again and again. */
    constexpr size_t stage = stage_ints;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, stage - 1, stage, stage + 1, 3 * stage, 5 * stage + 2,
                               100 * stage + 77, x.size()}) {
        long long right = 0;
        for (size_t i = 0; i < count; ++i)
            right += x[i];
        for (const int blocks : {1, 3, v.blocks * gpu.multiProcessorCount}) {
            if (!expect(sum(v.run, a, count, blocks) == right, v.name))
                std::fprintf(stderr, "%zu elements, %d blocks\n", count, blocks);
        }
    }
}

/* What the kernel was compiled for counts as much as the device. */
bool can_copy_in_bulk(const cudaDeviceProp &gpu) {
    cudaFuncAttributes attributes;
    TRY(cudaFuncGetAttributes(&attributes, bulk_copies));
    return gpu.major >= 9 && attributes.ptxVersion >= 90;
}

std::vector<variant> variants_for(const cudaDeviceProp &gpu) {
    std::vector<variant> variants = {{"plain loads", plain_loads, 0, 0}, {"cg::memcpy_async", memcpy_async, 0, 0}};
    if (gpu.major < 8)
        std::puts("cg::memcpy_async copies through registers, as this device has no other way (8.0 or later has)");
    if (can_copy_in_bulk(gpu))
        variants.push_back({"bulk copies (TMA)", bulk_copies, 0, 0});
    else
        leave_out("bulk copies (TMA)", "needs compute capability 9.0, and code made for it");
    for (variant &v : variants) {
        /* Shared memory is taken from the L1 cache: as much as the blocks can use. */
        if (v.run != plain_loads)
            TRY(cudaFuncSetAttribute(v.run, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared));
        TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v.blocks, v.run, block_threads, 0));
    }
    return variants;
}

arrays make_arrays(const std::vector<int> &x, const std::vector<variant> &variants, int sms) {
    int blocks = 3; /* check_sums() */
    for (const variant &v : variants)
        blocks = std::max(blocks, v.blocks * sms);
    arrays a;
    TRY(cudaMalloc(&a.x, x.size() * sizeof *a.x));
    TRY(cudaMalloc(&a.of_warp, sizeof *a.of_warp * blocks * warps));
    TRY(cudaMemcpy(a.x, x.data(), x.size() * sizeof *a.x, cudaMemcpyHostToDevice));
    return a;
}

} // namespace

int main(int argc, char **argv) {
    const bool check = example_is_check(argc, argv, "Plain loads, asynchronous copies and bulk copies: the same sum.");
    const cudaDeviceProp gpu = example_device(7, 0);
    std::printf("%s\n", gpu.name);
    std::vector<variant> variants = variants_for(gpu);
    std::vector<int> x(check ? 1000003 : size_t{1} << 28);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] = small_number(i);
    const arrays a = make_arrays(x, variants, gpu.multiProcessorCount);

    std::printf("\n%-20s %15s %10s %16s\n", "", "blocks on an SM", "GB/s", "to plain loads");
    for (variant &v : variants) {
        check_sums(gpu, v, a, x);
        std::printf("%-20s %15d ", v.name, v.blocks);
        if (check) {
            std::printf("%10s %16s\n", "-", "-");
            continue;
        }
        const auto run = [&] {
            v.run<<<v.blocks * gpu.multiProcessorCount, block_threads>>>(a.x, x.size(), a.of_warp);
        };
        v.rate = x.size() * sizeof *a.x / example_median_us(9, run) / 1e3;
        std::printf("%10.0f %16.2f\n", v.rate, v.rate / variants[0].rate);
    }
    if (!check) {
        const variant &fastest = *std::max_element(variants.begin(), variants.end(),
                                                   [](const variant &l, const variant &r) { return l.rate < r.rate; });
        std::printf("\nFastest: %s", fastest.name);
        if (&fastest != variants.data())
            std::printf(", at %.2f times the rate of plain loads", fastest.rate / variants[0].rate);
        std::printf(".\n");
    }
    TRY(cudaFree(a.x));
    TRY(cudaFree(a.of_warp));
    return example_end();
}
