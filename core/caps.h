/* What a machine can do, as far as choices depend on it: one struct, filled from the CUDA runtime and hwloc
 * (host/plan/caps_read.c) or from the text of a captured machine (host/plan/caps_text.c). The planner sees the hardware
 * only through this. */
#ifndef DPR_CORE_CAPS_H
#define DPR_CORE_CAPS_H

#include <stdint.h>

/* The list of GPU capabilities.
 *
 *   X(A, NAME, ATTRIBUTE, LEAST, MOST, text)
 *
 *   NAME          the field, and the key in a captured machine
 *   ATTRIBUTE     cudaDevAttr<ATTRIBUTE> is its source
 *   LEAST, MOST   the values that a machine may have
 *
 * Flags are 0 or 1. A warp has 32 threads on every CUDA device. Launches may nest up to 24 levels deep, and a grid
 * may have up to 2^31 - 1 blocks along x (CUDA programming guide). The limits of the other fields are ten to a thousand
 * times what devices have today. Within these limits every value calculated from the fields fits its type: numbers of
 * threads and blocks, also on all SMs together, fit in an int, no divisor in a cost is 0, and every cost is finite and
 * above 0. */
#define DPR_GPU_CAPS_LIST(X, A)                                                                                        \
    X(A, cc_major, ComputeCapabilityMajor, 1, 99, "compute capability, major number")                                  \
    X(A, cc_minor, ComputeCapabilityMinor, 0, 9, "compute capability, minor number")                                   \
    X(A, sm_count, MultiProcessorCount, 1, 65536, "multiprocessors (SM)")                                              \
    X(A, sm_clock_khz, ClockRate, 1000, 100000000, "SM clock, kHz")                                                    \
    X(A, memory_clock_khz, MemoryClockRate, 1000, 100000000, "memory clock, kHz")                                      \
    X(A, memory_bus_bits, GlobalMemoryBusWidth, 8, 1048576, "memory bus width, bits")                                  \
    X(A, l2_bytes, L2CacheSize, 0, INT64_C(1) << 40, "L2 cache, bytes")                                                \
    X(A, warp_size, WarpSize, 32, 32, "threads a warp")                                                                \
    X(A, max_threads_per_block, MaxThreadsPerBlock, 32, 65536, "threads a block, at most")                             \
    X(A, max_threads_per_sm, MaxThreadsPerMultiProcessor, 32, 65536, "threads an SM, at most")                         \
    X(A, max_blocks_per_sm, MaxBlocksPerMultiprocessor, 1, 1024, "blocks an SM, at most")                              \
    X(A, registers_per_block, MaxRegistersPerBlock, 1024, 1 << 24, "32-bit registers a block, at most")                \
    X(A, registers_per_sm, MaxRegistersPerMultiprocessor, 1024, 1 << 24, "32-bit registers an SM")                     \
    X(A, shared_per_block, MaxSharedMemoryPerBlock, 0, 1 << 28, "shared memory a block, bytes, without opting in")     \
    X(A, shared_per_block_optin, MaxSharedMemoryPerBlockOptin, 0, 1 << 28,                                             \
      "shared memory a block, bytes, with opting in")                                                                  \
    X(A, shared_per_sm, MaxSharedMemoryPerMultiprocessor, 0, 1 << 28, "shared memory an SM, bytes")                    \
    X(A, shared_reserved_per_block, ReservedSharedMemoryPerBlock, 0, 1 << 20,                                          \
      "shared memory a block loses to the driver, bytes")                                                              \
    X(A, max_grid_x, MaxGridDimX, 65535, INT32_MAX, "blocks along x, at most")                                         \
    X(A, cooperative_launch, CooperativeLaunch, 0, 1, "cooperative launch")                                            \
    X(A, cluster_launch, ClusterLaunch, 0, 1, "thread-block clusters")                                                 \
    X(A, managed_memory, ManagedMemory, 0, 1, "managed memory")                                                        \
    X(A, concurrent_managed, ConcurrentManagedAccess, 0, 1, "managed memory shared while kernels run")                 \
    X(A, pageable_access, PageableMemoryAccess, 0, 1, "kernels reach pageable host memory")                            \
    X(A, registered_pointers, CanUseHostPointerForRegisteredMem, 0, 1,                                                 \
      "kernels reach registered memory by host pointers")                                                              \
    X(A, integrated, Integrated, 0, 1, "memory shared with the host")                                                  \
    X(A, memory_pools, MemoryPoolsSupported, 0, 1, "memory allocated in stream order")                                 \
    X(A, mps, MpsEnabled, 0, 1, "runs under MPS")                                                                      \
    X(A, numa_node, HostNumaId, -1, 65535, "nearest NUMA node, -1 if unknown")

/* Capabilities that no attribute tells: the GPU's memory, and limits and costs of nested launches.
 *
 *   X(A, NAME, LEAST, MOST, text)
 *
 * The size of the launch pool is asked for when the device is initialised. How deep launches may nest cannot be
 * asked; it is the CUDA programming guide's maximum. Costs are measured when a strategy with nested launches is first
 * named (dp/calibration.h). Until then they are those of an H200 with a pool of that size (dp/nested_host.h). */
#define DPR_NESTED_CAPS_LIST(X, A)                                                                                     \
    X(A, memory_bytes, 1 << 20, INT64_C(1) << 50, "device memory, bytes")                                              \
    X(A, pending_launches, 0, INT32_MAX, "nested launches that may be pending at a time")                              \
    X(A, nesting_depth, 1, 24, "nested launches below each other, at most")                                            \
    X(A, nested_level_ns, 0, 1000000000, "a level of nested launches, fire-and-forget, ns")                            \
    X(A, nested_tail_ns, 0, 1000000000, "a level of nested launches, tail-launched, ns")                               \
    X(A, nested_first_ns, 0, 1000000000, "what the first of these takes longer, ns")                                   \
    X(A, nested_fan_ns, 0, 1000000000, "one of many nested launches from many blocks, ns")                             \
    X(A, nested_bytes, 0, INT64_C(1) << 50, "memory of nested launches' code and pool, bytes")                         \
    X(A, nested_times_measured, 0, 1, "times of nested launches were measured here")                                   \
    X(A, nested_bytes_measured, 0, 1, "memory of nested launches was measured here")

/* The most threads that DPR_NUM_THREADS may ask for; greater numbers are taken as this one. */
enum { DPR_THREADS_MAX = 1024 };

/* The list of CPU capabilities.   X(A, NAME, LEAST, MOST, text) */
#define DPR_CPU_CAPS_LIST(X, A)                                                                                        \
    X(A, cores, 1, 65536, "physical cores this process may use")                                                       \
    X(A, threads, 1, DPR_THREADS_MAX, "worker threads of cpu.threads")                                                 \
    X(A, numa_nodes, 1, 65536, "NUMA nodes these cores are on")                                                        \
    X(A, cache_bytes, 0, INT64_C(1) << 40, "last-level cache those cores share, bytes, all nodes")                     \
    X(A, vector_bytes, 1, 1024, "bytes of the vector registers cpu.simd uses")                                         \
    X(A, core_mb_per_s, 1, 1000000000, "bandwidth of one core (a Xeon's, until 'dpr tune' measures it), MB/s")         \
    X(A, total_mb_per_s, 1, 1000000000, "bandwidth of all cores (likewise), MB/s")                                     \
    X(A, wake_ns, 1, 1000000000, "threads of cpu.threads take to begin and to end (likewise), ns")

#define DPR_CAPS_FIELD(A, NAME, ...) int64_t NAME;

typedef struct dpr_gpu_caps {
    DPR_GPU_CAPS_LIST(DPR_CAPS_FIELD, _)
    DPR_NESTED_CAPS_LIST(DPR_CAPS_FIELD, _)
} dpr_gpu_caps;

typedef struct dpr_cpu_caps {
    DPR_CPU_CAPS_LIST(DPR_CAPS_FIELD, _)
} dpr_cpu_caps;

#undef DPR_CAPS_FIELD

typedef struct dpr_caps {
    int has_gpu; /* 0: no GPU, and `gpu` is all zero */
    char gpu_name[64];
    char cpu_name[64];
    dpr_gpu_caps gpu;
    dpr_cpu_caps cpu;
} dpr_caps;

#endif
