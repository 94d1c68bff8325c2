/* CUDA as other rooms see it: device.c, residency.c, memory.c and run.c, or device_none.c in a build without CUDA.
 *
 * Every function leaves the calling thread's CUDA contexts as they were, and makes none but those it says. */
#ifndef DPR_HOST_CUDA_DEVICE_H
#define DPR_HOST_CUDA_DEVICE_H

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

/* A CUDA context: whatever the library has on a device belongs to one. */
typedef struct dpr_home {
    void *context; /* CUcontext */
    void *regular; /* the regular context that it is, or that it was made from; once the device is open */
    uint64_t id;   /* unique in the process, also after the context is gone */
    int ordinal;   /* of its device */
} dpr_home;

/* The context to work in on device `ordinal`: the calling thread's current one if it is of that device, else `owner`, a
 * CUcontext or NULL, else the device's primary one, which is made if need be. */
dpr_status dpr_device_home(int ordinal, void *owner, dpr_home *out);

/* What a kernel uses on device `ordinal`, with its block size and its dynamic shared memory. Initialises the device. */
dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use);

/* ---- Memory ---- */

typedef struct dpr_place {
    dpr_memory memory; /* never AUTO */
    int device;        /* ordinal the memory belongs to; -1 for pageable memory */
    void *owner;       /* the CUcontext that it was allocated in; NULL: it is of none, or of a pool */
} dpr_place;

/* Where `pointer` points to. Pageable memory is whatever the driver does not know; that its first byte can be read is
 * checked where there is a driver, as freed device memory looks like it: DPR_ERR_MEMORY_KIND, naming `argument`. */
dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out);

/* The context that memory belongs to; if it belongs to none, that of dpr_device_home(). */
dpr_status dpr_device_home_owning(const dpr_place *place, dpr_home *out);

/* Copies `bytes` from host memory to device or managed memory at `place`, after the work in the legacy default
 * stream; done on return. */
dpr_status dpr_device_put(dpr_place place, void *to, const void *host, size_t bytes);

/* Waits for the legacy default stream, so that the host may read what work in it writes to memory at `place`, which is
 * pinned or managed. */
dpr_status dpr_device_wait(dpr_place place);

/* ---- An initialised device ---- */

/* What a build has for every device. */
typedef struct dpr_build {
    const dpr_strategy *any; /* a strategy on GPUs, whose kernels tell what all are compiled for */
    const struct dpr_hook *hook;
} dpr_build; /* both NULL in a build without CUDA, where nothing is opened */

/* A device with its scratch memory and mailboxes. Any number of threads may use one at once. */
typedef struct dpr_device dpr_device;

dpr_status dpr_device_open(const dpr_home *home, const dpr_build *build, dpr_device **out);

/* Waits for its work. If its context is gone it gives back host memory alone. NULL is allowed. */
void dpr_device_close(dpr_device *device);

/* What it was opened with. */
const dpr_home *dpr_device_home_of(const dpr_device *device);

/* Whether the device's CUDA context is there no more. */
int dpr_device_is_gone(const dpr_device *device);

/* Copies `bytes` from host memory to the beginning of `room` bytes of new device memory, which the caller gives to
 * dpr_device_free(). Done on return, for all streams. */
dpr_status dpr_device_upload(const dpr_device *device, const void *host, size_t bytes, size_t room, void **out);
void dpr_device_free(const dpr_device *device, void *memory);

/* Sets how many launches from kernels may be pending on the device, until it is closed. */
dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending);

/* Adds to a device's capabilities what is known where it is initialised, how many launches from kernels may be pending,
 * and with it what is assumed of them; and takes away what the code that it runs was not compiled for: PTX of an older
 * compute capability has none of what came later. */
void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu);

/* SMs on which kernels run: those of the device's context, or of a stream with fewer. */
typedef struct dpr_residence {
    dpr_device *device;
    dpr_stream stream; /* NULL: any of the context's own */
    int sms;
} dpr_residence;

/* The residence of streams that were created in the device's CUDA context. */
dpr_residence dpr_device_residence(dpr_device *device);

/* A dpr_resident: `user` is a dpr_residence. A kernel that needs more shared memory or larger clusters than devices
 * give without being asked has them from here on, so that it must be called for every kernel before its first launch.
 */
dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out);

/* A dpr_nested_measure: `user` is a dpr_residence. Measuring loads code, and takes some milliseconds more, once; where
 * nested launches do not work nothing is measured. */
dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu);

/* Why a choice does not fit the stream that it is to run in, so that another must be made. The status is
 * DPR_ERR_STRATEGY_UNABLE then, and no kernel was enqueued. */
typedef struct dpr_misfit {
    int sms;       /* the SMs of the stream, if they are not run->sms; else 0 */
    int too_large; /* 1: more blocks must be resident at a time than the SMs have room for */
} dpr_misfit;

/* Enqueues the run in run->stream, with scratch memory that is the stream's or the capturing graph's own. Sets
 * run->scratch and run->programmatic. *misfit is all 0 before the call. */
dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit);

/* Runs in the legacy default stream and returns when the result is there; while CUDA forbids that stream, after all
 * work in another one. With `host_out` not NULL the `result_bytes` of the result go there by way of a mailbox, and
 * run->out is not used. After a fault of the kernel, DPR_ERR_CUDA. */
dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes, dpr_misfit *misfit);

#endif
