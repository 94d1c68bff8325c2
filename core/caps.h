/* What a machine can do, as far as choices depend on it: one struct, filled from the CUDA runtime and hwloc
 * (host/caps.c) or read from a captured machine (host/machine.c). The planner sees the hardware only through this. */
#ifndef DPR_CORE_CAPS_H
#define DPR_CORE_CAPS_H

#include <stddef.h>
#include <stdint.h>

/* The list of GPU capabilities.
 *
 *   X(A, NAME, ATTRIBUTE, text)
 *
 *   NAME        the field, and the key in a captured machine
 *   ATTRIBUTE   cudaDevAttr<ATTRIBUTE> is its source */
#define DPR_GPU_CAPS_LIST(X, A)                                                                                        \
    X(A, cc_major, ComputeCapabilityMajor, "compute capability, major number")                                         \
    X(A, cc_minor, ComputeCapabilityMinor, "compute capability, minor number")                                         \
    X(A, sm_count, MultiProcessorCount, "multiprocessors (SM)")                                                        \
    X(A, sm_clock_khz, ClockRate, "SM clock, kHz")                                                                     \
    X(A, memory_clock_khz, MemoryClockRate, "memory clock, kHz")                                                       \
    X(A, memory_bus_bits, GlobalMemoryBusWidth, "memory bus width, bits")                                              \
    X(A, l2_bytes, L2CacheSize, "L2 cache, bytes")                                                                     \
    X(A, warp_size, WarpSize, "threads a warp")                                                                        \
    X(A, max_threads_per_block, MaxThreadsPerBlock, "threads a block, at most")                                        \
    X(A, max_threads_per_sm, MaxThreadsPerMultiProcessor, "threads an SM, at most")                                    \
    X(A, max_blocks_per_sm, MaxBlocksPerMultiprocessor, "blocks an SM, at most")                                       \
    X(A, registers_per_block, MaxRegistersPerBlock, "32-bit registers a block, at most")                               \
    X(A, registers_per_sm, MaxRegistersPerMultiprocessor, "32-bit registers an SM")                                    \
    X(A, shared_per_block, MaxSharedMemoryPerBlock, "shared memory a block, bytes, without opting in")                 \
    X(A, shared_per_block_optin, MaxSharedMemoryPerBlockOptin, "shared memory a block, bytes, with opting in")         \
    X(A, shared_per_sm, MaxSharedMemoryPerMultiprocessor, "shared memory an SM, bytes")                                \
    X(A, shared_reserved_per_block, ReservedSharedMemoryPerBlock, "shared memory a block loses to the driver, bytes")  \
    X(A, max_grid_x, MaxGridDimX, "blocks along x, at most")                                                           \
    X(A, cooperative_launch, CooperativeLaunch, "cooperative launch")                                                  \
    X(A, cluster_launch, ClusterLaunch, "thread-block clusters")                                                       \
    X(A, managed_memory, ManagedMemory, "managed memory")                                                              \
    X(A, concurrent_managed, ConcurrentManagedAccess, "managed memory shared while kernels run")                       \
    X(A, pageable_access, PageableMemoryAccess, "kernels reach pageable host memory")                                  \
    X(A, registered_pointers, CanUseHostPointerForRegisteredMem, "kernels reach registered memory by host pointers")   \
    X(A, integrated, Integrated, "memory shared with the host")                                                        \
    X(A, memory_pools, MemoryPoolsSupported, "memory allocated in stream order")                                       \
    X(A, mps, MpsEnabled, "runs under MPS")                                                                            \
    X(A, numa_node, HostNumaId, "nearest NUMA node, -1 if unknown")

/* What no attribute tells: the GPU's memory, and limits and costs of nested launches.
 *
 *   X(A, NAME, text)
 *
 * The pool's size is asked for where the device is initialised. How deep launches may nest cannot be asked, and is what
 * the CUDA programming guide has as the maximum. Costs are measured where a strategy with nested launches is first
 * asked for (host/calibration.h), and are those of an H200 with a pool of that size until then (dp/nested_host.h). */
#define DPR_NESTED_CAPS_LIST(X, A)                                                                                     \
    X(A, memory_bytes, "device memory, bytes")                                                                         \
    X(A, pending_launches, "nested launches that may be pending at a time")                                            \
    X(A, nesting_depth, "nested launches below each other, at most")                                                   \
    X(A, nested_level_ns, "a level of nested launches, fire-and-forget, ns")                                           \
    X(A, nested_tail_ns, "a level of nested launches, tail-launched, ns")                                              \
    X(A, nested_first_ns, "what the first of these takes longer, ns")                                                  \
    X(A, nested_fan_ns, "one of many nested launches from many blocks, ns")                                            \
    X(A, nested_bytes, "memory of nested launches' code and pool, bytes")                                              \
    X(A, nested_times_measured, "times of nested launches were measured here")                                         \
    X(A, nested_bytes_measured, "memory of nested launches was measured here")

/* The same for the CPU.   X(A, NAME, text) */
#define DPR_CPU_CAPS_LIST(X, A)                                                                                        \
    X(A, cores, "physical cores this process may use")                                                                 \
    X(A, threads, "worker threads of cpu.threads")                                                                     \
    X(A, numa_nodes, "NUMA nodes these cores are on")                                                                  \
    X(A, cache_bytes, "last-level cache those cores share, bytes, all nodes")                                          \
    X(A, vector_bytes, "bytes of the vector registers cpu.simd uses")                                                  \
    X(A, core_mb_per_s, "memory read bandwidth of one core, MB/s")                                                     \
    X(A, total_mb_per_s, "memory read bandwidth of all cores, MB/s")

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
