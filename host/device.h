/* CUDA as the rest of host/ sees it: device_cuda.c, or device_none.c in a build without CUDA.
 *
 * Every function leaves the calling thread's current device as it was. */
#ifndef DPR_HOST_DEVICE_H
#define DPR_HOST_DEVICE_H

#include "occupancy.h"
#include "strategy.h"

/* ---- The driver ---- */

/* Number of usable devices; 0 without a driver. The first call initialises the driver (not a device). */
int dpr_device_count(void);

/* Why dpr_device_count() is 0, as a clause; NULL if it is not. */
const char *dpr_device_absent(void);

/* The calling thread's current device, an ordinal; 0 if it cannot be told. */
int dpr_device_current(void);

/* Capabilities and the name of device `ordinal`, which exists. Does not initialise it. */
dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]);

/* "0000:3b:00.0" */
dpr_status dpr_device_pci(int ordinal, char bus_id[16]);

/* What a kernel uses on device `ordinal`, with its block size and its dynamic shared memory. Initialises the device. */
dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use);

/* ---- Memory ---- */

typedef struct dpr_place {
    dpr_memory memory; /* never AUTO */
    int device;        /* ordinal the memory belongs to; -1 for pageable memory */
} dpr_place;

/* Where `pointer` points to. Pageable memory is whatever the driver does not know; that its first byte can be read is
 * checked where there is a driver, as freed device memory looks like it: DPR_ERR_MEMORY_KIND, naming `argument`. */
dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out);

/* Copies `bytes` from host memory to device or managed memory, in the legacy default stream; done on return. */
dpr_status dpr_device_put(int ordinal, void *to, const void *host, size_t bytes);

/* Copies `bytes` from host memory to new device memory; the caller gives it to dpr_device_free(). */
dpr_status dpr_device_upload(int ordinal, const void *host, size_t bytes, void **out);
void dpr_device_free(int ordinal, void *memory);

/* ---- An initialised device ---- */

/* A device with its scratch memory and mailboxes. Any number of threads may use one at once. */
typedef struct dpr_device dpr_device;

dpr_status dpr_device_open(int ordinal, dpr_device **out);
void dpr_device_close(dpr_device *device); /* waits for its work; NULL is allowed */

/* How many launches of dpr's may be pending of a device's pool of `pending`: half of what is left beside places that
 * the device may be emptying. On an H200 a pool of 64 hangs, after some hundred runs, where 16 of its places are left
 * free, and none did with three quarters of a larger pool in use. The other half is for kernels of others. */
static inline uint32_t dpr_credits_of(size_t pending) {
    enum { EMPTYING = 56 };
    const size_t credits = pending > EMPTYING ? (pending - EMPTYING) / 2 : 0;
    return credits < UINT32_MAX ? (uint32_t)credits : UINT32_MAX;
}

/* How many of these a run may use whose caller asks for `max_pending` (dpr_options). */
static inline uint32_t dpr_credits_asked(uint32_t credits, int max_pending) {
    if (max_pending == DPR_NO_LAUNCHES)
        return 0;
    return max_pending > 0 && (uint32_t)max_pending < credits ? (uint32_t)max_pending : credits;
}

/* Sets how many launches from kernels may be pending on the device, until it is closed. */
dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending);

/* Adds to a device's capabilities what is known where it is initialised, how many launches from kernels may be pending,
 * and with it what is assumed of them; and takes away what the code that it runs was not compiled for: PTX of an older
 * compute capability has none of what came later. */
void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu);

/* A dpr_resident: `user` is the dpr_device. A kernel that needs more shared memory or larger clusters than devices give
 * without being asked has them from here on, so that it must be called for every kernel before its first launch. */
dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out);

/* A dpr_nested_measure: `user` is the dpr_device. Measuring loads code, and takes some milliseconds more, once; where
 * nested launches do not work nothing is measured. */
dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu);

/* Enqueues the run in run->stream, with scratch memory that is the stream's or the capturing graph's own. Sets
 * run->scratch and run->programmatic. */
dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run);

/* Runs in the legacy default stream and returns when the result is there. With `host_out` not NULL the `result_bytes`
 * of the result go there by way of a mailbox, and run->out is not used. After a fault of the kernel, DPR_ERR_CUDA. */
dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes);

/* Waits for the legacy default stream, so that the host may read what work in it writes to pinned or managed memory. */
dpr_status dpr_device_wait(int ordinal);

#endif
