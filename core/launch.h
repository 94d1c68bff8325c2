/* Launching a reduction kernel from a strategy. */
#ifndef DPR_CORE_LAUNCH_H
#define DPR_CORE_LAUNCH_H

#include <string.h>

#include "args.h"
#include "lists.h"
#include "means.h"

static inline size_t dpr_run_bytes(const dpr_run *run) {
    return run->count * dpr_dtypes[run->key.f.dtype].size;
}

/* The launch limits of a kernel that runs one block on each SM and keeps at most `partials` partial results in scratch
 * memory. With more than one block an SM, the blocks would not all start together while blocks of the previous kernel
 * are still running, and some SMs would get more of them than others. */
static inline dpr_launch_limits dpr_block_per_sm(const dpr_caps *caps, dpr_residency resident, int threads,
                                                 int partials) {
    int blocks = resident.blocks < (int)caps->gpu.sm_count ? resident.blocks : (int)caps->gpu.sm_count;
    if (blocks > partials)
        blocks = partials;
    dpr_launch_limits limits;
    memset(&limits, 0, sizeof limits);
    limits.threads = threads;
    limits.max_blocks = blocks;
    limits.cached_bytes = (size_t)caps->gpu.l2_bytes;
    return limits;
}

/* Chooses a launch of blocks of `threads` threads or more, up to the limit, with no more threads than the array
 * has vectors of 16 bytes, rounded up to whole blocks. It first takes more blocks, so that all SMs read. If threads
 * would read more vectors than the `in_flight` that they load at a time, it takes larger blocks; the largest only from
 * twice as many vectors on. More threads have more loads in flight, but each thread costs some hundred instructions. */
static inline dpr_launch dpr_spread(const void *entry, unsigned threads, unsigned in_flight, const dpr_run *run) {
    const size_t vectors = dpr_run_bytes(run) / 16 + 1, most = (size_t)run->limits.max_blocks;
    while (threads < (unsigned)run->limits.threads && vectors > (threads < 512 ? 1 : 2) * in_flight * most * threads)
        threads *= 2;
    const size_t wanted = (vectors + threads - 1) / threads;
    dpr_launch launch;
    memset(&launch, 0, sizeof launch);
    launch.entry = entry;
    launch.blocks = (unsigned)(wanted < most ? wanted : most);
    launch.threads = threads;
    return launch;
}

/* Bytes that each block may prefetch to L2 while the work before is ending: enough to keep memory busy until the block
 * reads. More slows that work: with 64 KiB a chain of runs is slower on an H200. */
enum { DPR_PREFETCH_BYTES = 32768, DPR_PREFETCH_VECTORS = 8 };

/* Bytes that all blocks together may prefetch, however few they are: that leaves most of memory's rate to the work
 * before. */
enum { DPR_PREFETCH_OF_FEW = 1 << 20 };

/* From this array size on, each block reads a contiguous part of the array: 0.2 % faster than blocks in turn from 2 GiB
 * on, on an H200, presumably because an SM then needs fewer pages at a time. At 64 MiB it is 1 % slower. */
enum { DPR_RUNS_BYTES = 1 << 29 };

/* Sets how the launch reads the run's array. */
static inline void dpr_read_as(dpr_kernel_args *args, const dpr_launch *launch, const dpr_run *run) {
    const size_t size = dpr_dtypes[run->key.f.dtype].size;
    const size_t before = (0 - (uintptr_t)run->in) % 16 / size, in_vector = 16 / size;
    const size_t head = before < run->count ? before : run->count;
    const uint64_t threads = (uint64_t)launch->blocks * launch->threads;
    args->head = (uint32_t)head;
    args->vectors = (run->count - head) / in_vector;
    args->rounds = args->vectors / threads;
    args->reciprocal = UINT64_MAX / threads;
    if (head > 0 || (run->count - head) % in_vector > 0)
        args->reading |= DPR_READ_ENDS;
    if (dpr_run_bytes(run) > run->limits.cached_bytes)
        args->reading |= DPR_READ_STREAMING;
    if (dpr_run_bytes(run) >= DPR_RUNS_BYTES)
        args->reading |= DPR_READ_RUNS;
    /* If the count is in device memory, the host does not know how many elements there are to prefetch. */
    if (run->programmatic && !launch->cooperative && run->key.f.in_memory == DPR_MEMORY_DEVICE && !run->device_count) {
        args->prefetch = DPR_PREFETCH_BYTES / 16 / launch->threads;
        if (args->prefetch > DPR_PREFETCH_VECTORS)
            args->prefetch = DPR_PREFETCH_VECTORS;
    }
}

static inline dpr_kernel_args dpr_args_of(const dpr_launch *launch, const dpr_run *run) {
    dpr_kernel_args args;
    memset(&args, 0, sizeof args);
    args.in = run->in;
    args.out = run->out;
    args.count = run->count;
    args.device_count = run->device_count;
    args.scratch = run->scratch;
    args.workspace = run->workspace;
    args.tag = run->tag;
    args.partials = launch->partials;
    args.meeting = launch->meeting;
    args.init = run->init;
    if (run->label != 0) {
        const dpr_wanted wanted = {run->label, run->first_index};
        memcpy(args.init.bytes, &wanted, sizeof wanted);
        args.init.present = DPR_PARTIAL_WANTED;
    }
    if (dpr_is_divided_sum(&run->key))
        args.init.present = DPR_MEAN_WANTED;
    dpr_read_as(&args, launch, run);
    return args;
}

/* Launches a kernel for the run. Returns the cudaError_t. */
static inline int dpr_launch_run(const dpr_launch *launch, const dpr_run *run) {
    dpr_kernel_args args = dpr_args_of(launch, run);
    return run->enqueue(run, launch, &args);
}

/* Whether the grid may bring all `bytes` of the memory that it reads to L2 ahead. */
static inline int dpr_may_read_ahead(const dpr_launch *launch, const dpr_run *run, uint64_t bytes) {
    const uint64_t shares = (uint64_t)launch->blocks * DPR_PREFETCH_BYTES;
    return run->key.f.in_memory == DPR_MEMORY_DEVICE && !run->device_count
           && (bytes <= shares || bytes <= DPR_PREFETCH_OF_FEW);
}

/* What a grid of segments may bring to L2 ahead. Its threads read first where segments begin, and then elements: they
 * wait for memory once instead of twice. */
static inline dpr_segment_ahead dpr_segments_ahead(const dpr_launch *launch, const dpr_run *run) {
    const dpr_segment_list *list = run->segments;
    const uint64_t size = dpr_dtypes[DPR_ROW(list->dtype)].size, elements = dpr_run_bytes(run);
    const uint64_t begins = (list->count + !run->key.f.ranges) * size, ends = run->key.f.ranges ? begins : 0;
    const dpr_segment_ahead all = {elements, begins, ends}, none = {0, 0, 0};
    const int may = list->on_device && !list->device_count;
    return may && dpr_may_read_ahead(launch, run, elements + begins + ends) ? all : none;
}

/* The same for a kernel of segments. */
static inline int dpr_launch_segments(const dpr_launch *launch, const dpr_run *run, dpr_segment_groups groups) {
    dpr_segment_args args;
    memset(&args, 0, sizeof args);
    args.run = dpr_args_of(launch, run);
    args.list = *run->segments;
    args.ahead = dpr_segments_ahead(launch, run);
    args.groups = groups;
    args.op = run->key.f.op;
    args.done = run->done;
    return run->enqueue(run, launch, &args.run);
}

#endif
