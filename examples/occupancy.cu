/* Occupancy: the number of warps that an SM holds at a time, as a fraction of the maximum. Block size, shared memory
 * and registers each limit it, and it matters only as far as it keeps the memory busy.
 *
 * The first tables show one sum in two forms: a thread waits for each element before it requests the next, or it
 * requests eight at once. Each row is a block size and a size of shared memory, with the occupancy that the API gives.
 * The bytes that are then in flight give a rate (Little's law): all of them come within the time of one load, which the
 * program measures. The memory's clock and bus give another limit, and the lower of the two is shown.
 *
 * The last table shows what launch bounds do to a kernel that wants many registers: more blocks fit, because values
 * move from registers to local memory ("spilling"), and each use of such a value is then a load and a store.
 */
#include "example.cuh"

namespace {

constexpr int warp = 32;
constexpr int group_block = 256; /* threads of a block of sum_by_group() */
constexpr int groups = 48;       /* each a sum of 64 bits: 96 registers */
constexpr int runs = 9;          /* of which the median is taken */

/* One load after the other, each `stride` elements further. No element is more than `largest`, but that the compiler
 * does not know: the next address waits for the value. */
__global__ void chase(const int *x, size_t at, size_t stride, int loads, int largest, size_t *end) {
#pragma unroll 1
    for (int i = 0; i < loads; ++i)
        at += x[at] <= largest ? stride : 0;
    *end = at;
}

__device__ void add_to(long long *result, long long sum) {
    /* Numbers with and without sign add up alike, bit by bit, and atomicAdd() has the form without. */
    atomicAdd(reinterpret_cast<unsigned long long *>(result), static_cast<unsigned long long>(sum));
}

/* Each thread has `Loads` loads in flight: the loops are not unrolled further, so that occupancy is what differs. */
template <int Loads> __global__ void __launch_bounds__(1024) sum_all(const int *x, size_t count, long long *result) {
    __shared__ long long of_warp[1024 / warp];
    const size_t threads = size_t{gridDim.x} * blockDim.x;
    size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    long long sum = 0;
#pragma unroll 1
    for (; i + (Loads - 1) * threads < count; i += Loads * threads) {
        int value[Loads];
#pragma unroll
        for (int k = 0; k < Loads; ++k)
            value[k] = x[i + k * threads];
#pragma unroll
        for (int k = 0; k < Loads; ++k)
            sum += value[k];
    }
#pragma unroll 1
    for (; i < count; i += threads)
        sum += x[i];

    sum = warp_sum(sum);
    if (threadIdx.x % warp == 0)
        of_warp[threadIdx.x / warp] = sum;
    __syncthreads();
    if (threadIdx.x < warp) {
        sum = warp_sum(threadIdx.x < blockDim.x / warp ? of_warp[threadIdx.x] : 0);
        if (threadIdx.x == 0)
            add_to(result, sum);
    }
}

/* The sums of the values (x) of each group (y). A thread keeps all of them, in registers as far as the bounds let it:
 * MinBlocks blocks must fit on an SM. */
template <int MinBlocks>
__global__ void __launch_bounds__(group_block, MinBlocks)
    sum_by_group(const int2 *items, size_t count, long long *results) {
    const size_t threads = size_t{gridDim.x} * blockDim.x;
    long long sum[groups] = {};
#pragma unroll 1
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += threads) {
        const int2 item = items[i];
#pragma unroll
        for (int g = 0; g < groups; ++g) /* sum[item.y] would be an index that registers do not have */
            sum[g] += item.y == g ? item.x : 0;
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {
        const long long of_warp = warp_sum(sum[g]);
        if (threadIdx.x % warp == 0)
            add_to(results + g, of_warp);
    }
}

struct residency {
    cudaFuncAttributes kernel;
    int blocks;  /* that an SM holds at a time */
    double part; /* of the threads that it could hold */
};

/* What the occupancy API says, and that it agrees with what an SM has. */
template <class Kernel>
residency resident(const cudaDeviceProp &gpu, Kernel *kernel, int threads, size_t dynamic_shared) {
    residency r;
    /* More than 48 KiB must be asked for. Shared memory is the same memory as the L1 cache. It is divided in one way
     * for all kernels and shapes, so that occupancy is what differs: as much for shared memory as there can be. */
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic_shared)));
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    TRY(cudaFuncGetAttributes(&r.kernel, kernel));
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks, kernel, threads, dynamic_shared));
    r.part = 1.0 * r.blocks * threads / gpu.maxThreadsPerMultiProcessor;

    const size_t shared = r.kernel.sharedSizeBytes + dynamic_shared;
    expect(r.blocks >= 1, "a block fits");
    expect(r.blocks <= gpu.maxBlocksPerMultiProcessor, "blocks: no more than an SM holds");
    expect(r.blocks * threads <= gpu.maxThreadsPerMultiProcessor, "threads: no more than an SM holds");
    expect(r.blocks * shared <= gpu.sharedMemPerMultiprocessor, "shared memory: no more than an SM has");
    expect(r.blocks * threads * r.kernel.numRegs <= gpu.regsPerMultiprocessor, "registers: no more than an SM has");
    return r;
}

/* What a row is measured with, and against. */
struct bench {
    cudaDeviceProp gpu;
    bool check;
    const int *x;
    size_t count;
    long long right;   /* the sum of x */
    double latency_ns; /* of a load when nothing else is under way */
    double peak;       /* GB/s by the memory's clock and bus, or 0 where the device does not tell them */
};

/* GB/s: what all SMs together have in flight comes once in every latency, and no faster than the memory gives it. */
double limit(const bench &b, double bytes_of_sm) {
    const double flow = bytes_of_sm * b.gpu.multiProcessorCount / b.latency_ns;
    return b.peak > 0 ? std::min(flow, b.peak) : flow;
}

/* A run must find nothing in a cache that an earlier one brought there, so each goes on where the last one ended. */
double measure_latency_ns(const bench &b) {
    constexpr size_t stride = 1024; /* further than what memory brings at once */
    constexpr int largest = 523;    /* small_number() */
    const int loads = static_cast<int>(std::min(size_t{4096}, b.count / stride / (runs + 1)));
    size_t at = 0, got, *end;
    TRY(cudaMalloc(&end, sizeof *end));
    const double us = example_median_us(runs, [&] {
        chase<<<1, 1>>>(b.x, at, stride, loads, largest, end);
        at += loads * stride;
    });
    TRY(cudaMemcpy(&got, end, sizeof got, cudaMemcpyDeviceToHost));
    TRY(cudaFree(end));
    expect(got == at, "the last address of the chase");
    return 1e3 * us / loads;
}

/* Memory gives two bits a clock and line of the bus: the reckoning of CUDA's deviceQuery sample. */
double peak_rate() {
    int khz, bits;
    TRY(cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, 0));
    TRY(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0));
    return 2.0 * khz * bits / 8 / 1e6;
}

/* Dynamic shared memory that lets about `blocks` blocks fit on an SM. */
size_t shared_for(const cudaDeviceProp &gpu, const cudaFuncAttributes &kernel, int blocks) {
    const size_t part = gpu.sharedMemPerMultiprocessor / blocks - gpu.reservedSharedMemPerBlock;
    return (std::min(part, gpu.sharedMemPerBlockOptin) - kernel.sharedSizeBytes) / 1024 * 1024;
}

/* One row. The grid is as many blocks as the GPU holds at a time, so that the occupancy lasts to the end. */
template <int Loads> void show_shape(const bench &b, int threads, size_t shared) {
    const residency r = resident(b.gpu, sum_all<Loads>, threads, shared);
    long long *result, got;
    TRY(cudaMalloc(&result, sizeof *result));
    const auto run = [&] {
        sum_all<Loads><<<r.blocks * b.gpu.multiProcessorCount, threads, shared>>>(b.x, b.count, result);
    };
    TRY(cudaMemset(result, 0, sizeof *result));
    run();
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(&got, result, sizeof got, cudaMemcpyDeviceToHost));
    expect(got == b.right, "the sum");

    const double in_flight = 1.0 * r.blocks * threads * Loads * sizeof *b.x;
    std::printf("%8d %12zu %8d %8.0f %% %15.0f ", threads, shared / 1024, r.blocks, 100 * r.part, in_flight / 1024);
    if (b.check) {
        std::printf("%12s %8s %10s\n", "-", "-", "-");
    } else {
        const double rate = b.count * sizeof *b.x / example_median_us(runs, run) / 1e3, most = limit(b, in_flight);
        std::printf("%12.0f %8.0f %8.0f %%\n", most, rate, 100 * rate / most);
    }
    TRY(cudaFree(result));
}

template <int Loads> void show_shapes(const bench &b) {
    const cudaFuncAttributes kernel = resident(b.gpu, sum_all<Loads>, 1024, 0).kernel;
    std::printf("\nloads in flight in a thread: %d, registers of a thread: %d\n", Loads, kernel.numRegs);
    std::printf("%8s %12s %8s %10s %15s %12s %8s %10s\n", "threads", "shared, KiB", "blocks", "occupancy",
                "in flight, KiB", "limit, GB/s", "GB/s", "of limit");
    for (int threads = warp; threads <= 1024; threads *= 2)
        show_shape<Loads>(b, threads, 0);
    for (const int blocks : {4, 2, 1})
        show_shape<Loads>(b, 256, shared_for(b.gpu, kernel, blocks));
}

struct bounded_run {
    residency r;
    double rate; /* GB/s, or 0 where it is not measured */
};

template <int MinBlocks>
bounded_run show_bounds(const cudaDeviceProp &gpu, bool check, const int2 *items, size_t count,
                        const std::vector<long long> &right) {
    bounded_run b = {resident(gpu, sum_by_group<MinBlocks>, group_block, 0), 0};
    expect(b.r.blocks >= MinBlocks, "as many blocks fit as the launch bounds ask for");
    long long *results;
    std::vector<long long> got(groups);
    const size_t bytes = groups * sizeof *results;
    TRY(cudaMalloc(&results, bytes));
    TRY(cudaMemset(results, 0, bytes));
    const auto run = [&] {
        sum_by_group<MinBlocks><<<b.r.blocks * gpu.multiProcessorCount, group_block>>>(items, count, results);
    };
    run();
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(got.data(), results, bytes, cudaMemcpyDeviceToHost));
    expect(got == right, "the sums of the groups");
    std::printf("(%d, %d)     %10d %15zu %8d %8.0f %% ", group_block, MinBlocks, b.r.kernel.numRegs,
                b.r.kernel.localSizeBytes, b.r.blocks, 100 * b.r.part);
    if (check) {
        std::printf("%10s\n", "-");
    } else {
        b.rate = count * sizeof *items / example_median_us(runs, run) / 1e3;
        std::printf("%10.0f\n", b.rate);
    }
    TRY(cudaFree(results));
    return b;
}

void sums(const cudaDeviceProp &gpu, bool check) {
    const size_t count = check ? 4000003 : size_t{1} << 27;
    std::vector<int> host(count);
    long long right = 0;
    for (size_t i = 0; i < count; ++i)
        right += host[i] = small_number(i);
    int *x;
    TRY(cudaMalloc(&x, count * sizeof *x));
    TRY(cudaMemcpy(x, host.data(), count * sizeof *x, cudaMemcpyHostToDevice));
    bench b = {gpu, check, x, count, right, 0, peak_rate()};
    b.latency_ns = measure_latency_ns(b);
    if (!check)
        std::printf("a load takes %.0f ns when nothing else is under way; the memory's clock and bus allow %.0f GB/s\n",
                    b.latency_ns, b.peak);
    show_shapes<1>(b);
    show_shapes<8>(b);
    TRY(cudaFree(x));

    int grid, block;
    TRY(cudaOccupancyMaxPotentialBlockSize(&grid, &block, sum_all<8>));
    std::printf("The occupancy API proposes blocks of %d for eight loads, and at least %d of them.\n", block, grid);
    for (int threads = warp; threads <= 1024; threads *= 2)
        expect(resident(gpu, sum_all<8>, block, 0).part >= resident(gpu, sum_all<8>, threads, 0).part,
               "no other block size fills an SM more than the proposed one");
}

void sums_by_group(const cudaDeviceProp &gpu, bool check) {
    const size_t count = check ? 400003 : size_t{1} << 24;
    std::vector<int2> host(count);
    std::vector<long long> right(groups);
    for (size_t i = 0; i < count; ++i) {
        host[i] = {small_number(i), static_cast<int>((scatter(i) >> 4) % groups)};
        right[host[i].y] += host[i].x;
    }
    int2 *items;
    TRY(cudaMalloc(&items, count * sizeof *items));
    TRY(cudaMemcpy(items, host.data(), count * sizeof *items, cudaMemcpyHostToDevice));
    std::printf("\n%d sums in each thread\n%-12s %10s %15s %8s %10s %10s\n", groups, "bounds", "registers",
                "local, bytes", "blocks", "occupancy", "GB/s");
    const bounded_run loose = show_bounds<1>(gpu, check, items, count, right);
    show_bounds<3>(gpu, check, items, count, right);
    const bounded_run tight = show_bounds<4>(gpu, check, items, count, right);
    TRY(cudaFree(items));

    /* 4 blocks of 256 threads leave each thread 64 of an SM's 65536 registers, and the sums alone are 96. */
    expect(loose.r.kernel.localSizeBytes == 0, "nothing is in local memory that fits in registers");
    expect(tight.r.kernel.localSizeBytes > 0, "bounds that leave too few registers make the compiler spill");
    expect(tight.r.kernel.numRegs < loose.r.kernel.numRegs, "bounds take registers away");
    if (!check)
        std::printf(
            "The tightest bounds put %zu bytes a thread into local memory for %.1f times the occupancy, and the "
            "rate was %.2f times that of the loosest.\n",
            tight.r.kernel.localSizeBytes, tight.r.part / loose.r.part, tight.rate / loose.rate);
}

} // namespace

int main(int argc, char **argv) {
    const bool check = example_is_check(argc, argv, "Occupancy: what limits it, and what it is worth.");
    const cudaDeviceProp gpu = example_device(7, 0);
    std::printf("%s: an SM holds %d threads and %d blocks, and has %d registers and %zu KiB of shared memory\n",
                gpu.name, gpu.maxThreadsPerMultiProcessor, gpu.maxBlocksPerMultiProcessor, gpu.regsPerMultiprocessor,
                gpu.sharedMemPerMultiprocessor / 1024);
    sums(gpu, check);
    sums_by_group(gpu, check);
    return example_end();
}
