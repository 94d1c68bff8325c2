/* CUDA as other rooms see it: device.c, residency.c, memory.c and run.c, or device_none.c in a build without CUDA.
 *
 * Every function leaves the calling thread's CUDA contexts as they were. A function that makes a context says so. */
#ifndef DPR_HOST_CUDA_DEVICE_H
#define DPR_HOST_CUDA_DEVICE_H

#include "strategy.h"

/* ---- The driver ---- */

/* Ordinal of the calling thread's current device; 0 if it is unknown. */
int dpr_device_current(void);

/* The version of the CUDA driver, as 13000 for 13.0; 0 if it is unknown. */
int dpr_device_driver(void);

/* Capabilities and the name of device `ordinal`, which exists. Does not initialise it. */
dpr_status dpr_device_caps(int ordinal, dpr_gpu_caps *gpu, char name[64]);

/* The device's PCI bus id, e.g. "0000:3b:00.0". */
dpr_status dpr_device_pci(int ordinal, char bus_id[16]);

/* A CUDA context that the library works in. Everything that the library holds on a device belongs to one. */
typedef struct dpr_home {
    void *context; /* CUcontext */
    void *regular; /* `context`, or the regular context that a green one was made from; set when the device is opened */
    uint64_t id;   /* unique in the process, also after the context is gone */
    int ordinal;   /* of its device */
} dpr_home;

/* Finds the context to work in on device `ordinal`: the calling thread's current one if it is of that device, otherwise
 * `owner` (a CUcontext or NULL) if it still exists, otherwise the device's primary one, which is made if necessary.
 * DPR_ERR_NO_DEVICE, DPR_ERR_OUT_OF_MEMORY, DPR_ERR_CUDA. */
dpr_status dpr_device_home(int ordinal, void *owner, dpr_home *out);

/* The registers and shared memory, static and dynamic, that a kernel uses on device `ordinal`, and its block size.
 * Initialises the device. */
dpr_status dpr_device_kernel_use(int ordinal, const dpr_kernel *kernel, dpr_kernel_use *use);

/* ---- Memory ---- */

typedef struct dpr_place {
    dpr_memory memory; /* never AUTO */
    int device;        /* ordinal the memory belongs to; -1 for pageable memory */
    void *owner;       /* the CUcontext in which it was allocated; NULL if it belongs to none, or to a pool */
} dpr_place;

/* Finds out where `pointer` points to. Memory that the driver does not know counts as pageable. Freed device memory is
 * unknown, too, so with a driver the first byte must be readable: otherwise DPR_ERR_MEMORY_KIND, or DPR_ERR_CUDA if a
 * device has failed before. The sentence names `argument`. */
dpr_status dpr_device_place(const void *pointer, const char *argument, dpr_place *out);

/* Finds the context that memory belongs to; if it belongs to none, the one that dpr_device_home() finds. */
dpr_status dpr_device_home_owning(const dpr_place *place, dpr_home *out);

/* Copies `bytes` bytes between host memory and device or managed memory at `place`, after the work in the legacy
 * default stream. The copy is done on return. */
dpr_status dpr_device_put(dpr_place place, void *to, const void *from, size_t bytes);

/* Waits for the legacy default stream, so that the host may read what work in it writes to memory at `place`, which is
 * pinned or managed. */
dpr_status dpr_device_wait(dpr_place place);

/* ---- An initialised device ---- */

/* What a build provides for every device. All are NULL in a build without CUDA, where no device is opened. */
typedef struct dpr_build {
    const dpr_strategy *any; /* any GPU strategy: all kernels are compiled for the same architectures as its own */
    const struct dpr_hook *hook;
    /* Not in the registry: */
    const dpr_strategy *partials;   /* merges partial results */
    const dpr_strategy *key_runs;   /* finds runs of equal keys (key_runs.h) */
    const dpr_strategy *key_reduce; /* finds and reduces them in one pass (key_reduce.h) */
} dpr_build;

/* A device with its scratch memory and mailboxes. Any number of threads may use one at once. */
typedef struct dpr_device dpr_device;

/* Opens the device of a home: checks that it can run the build's kernels, and allocates scratch memory and mailboxes.
 * The caller closes it with dpr_device_close(). DPR_ERR_NO_DEVICE, DPR_ERR_OUT_OF_MEMORY, DPR_ERR_CUDA. */
dpr_status dpr_device_open(const dpr_home *home, const dpr_build *build, dpr_device **out);

/* Waits for the device's work and frees what it holds; only host memory if its context is gone. NULL is allowed. */
void dpr_device_close(dpr_device *device);

/* The home that the device was opened with. */
const dpr_home *dpr_device_home_of(const dpr_device *device);

/* The state of the device's hook (hook.h). */
void *dpr_device_hooked(const dpr_device *device);

/* Whether the device's CUDA context is gone. */
int dpr_device_is_gone(const dpr_device *device);

/* Allocates `room` bytes of device memory, and copies `bytes` bytes from host memory to their beginning; `host` may be
 * NULL if that is 0. The copy is done on return, for all streams. The caller frees the memory with dpr_device_free().
 */
dpr_status dpr_device_upload(const dpr_device *device, const void *host, size_t bytes, size_t room, void **out);
void dpr_device_free(const dpr_device *device, void *memory);

/* Takes `bytes` bytes (at least 1) of device, pinned or managed memory; pinned memory is zeros. Waits for other work of
 * the CUDA context. The caller gives the memory back with dpr_device_give() as memory of the same kind, for which NULL
 * is allowed. */
dpr_status dpr_device_take(const dpr_device *device, dpr_memory memory, size_t bytes, void **out);
void dpr_device_give(const dpr_device *device, dpr_memory memory, void *at);

/* Device memory from the pool of workspace that several runs use. */
typedef struct dpr_loan {
    void *memory;
    void *graph; /* a cudaGraph_t: to which the stream was being captured, or NULL */
} dpr_loan;

/* Lends `bytes` bytes of device memory, at least 1. Work in `stream`, which may be being captured, may use them at
 * once, and work in other streams when it comes after `stream`. Unlike dpr_device_upload(), this does not wait for
 * other work of the CUDA context. The caller gives the memory back in a stream in which all its uses come before. The
 * pool keeps it for others. Errors for `stream` are those of dpr_device_run(). */
dpr_status dpr_device_lend(dpr_device *device, size_t bytes, dpr_stream stream, dpr_loan *out);
void dpr_device_take_back(dpr_device *device, dpr_loan loan, dpr_stream stream);

/* Finds a stream of the device's own, which does not wait for the legacy default stream. Threads share it. */
dpr_status dpr_device_own_stream(dpr_device *device, dpr_stream *out);

/* Sets how many nested launches may be pending on the device, until it is closed. */
dpr_status dpr_device_allow_pending(dpr_device *device, size_t pending);

/* Adapts capabilities to the open device: the SMs of its home, the places of its launch pool, and the costs that are
 * assumed for a pool of that size. Takes away what its kernels were not compiled for: PTX for an older compute
 * capability has no later features. */
void dpr_device_limit(const dpr_device *device, dpr_gpu_caps *gpu);

/* The SMs on which kernels run: those of the device's context, or of a stream that has fewer. */
typedef struct dpr_residence {
    dpr_device *device;
    dpr_stream stream; /* NULL: any stream of the context's own */
    int sms;
} dpr_residence;

/* The residence of streams that were created in the device's CUDA context. */
dpr_residence dpr_device_residence(dpr_device *device);

/* A dpr_resident, whose `user` is a dpr_residence. Also permits the kernel more than 48 KiB of shared memory and
 * clusters of more than 8 blocks, if it needs them. It must be called for every kernel before its first launch. */
dpr_status dpr_device_resident(void *user, const dpr_kernel *kernel, dpr_residency *out);

/* A dpr_nested_measure, whose `user` is a dpr_residence. Measures once; this loads code, and takes some milliseconds
 * more. Measures nothing if nested launches do not work on the device. */
dpr_status dpr_device_nested(void *user, int measure, dpr_gpu_caps *gpu);

/* Why a choice does not fit the stream in which it should run, so that another choice must be made. If a field is not
 * 0, the status is DPR_ERR_STRATEGY_UNABLE and no kernel was enqueued. */
typedef struct dpr_misfit {
    int sms;       /* number of the stream's SMs if it is not run->sms, otherwise 0 */
    int too_large; /* 1: the SMs have no room for all blocks that must be resident at a time */
} dpr_misfit;

/* Enqueues the run in run->stream, with scratch memory that belongs to the stream, or to the graph that is being
 * captured. Sets run->scratch and run->programmatic. *misfit is all 0 before the call. */
dpr_status dpr_device_run(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, dpr_misfit *misfit);

/* Waits for the work in `stream`, which is not NULL. DPR_ERR_WRONG_DEVICE if the stream does not belong to the device's
 * home, DPR_ERR_INVALID_OPTION if it is being captured, DPR_ERR_CUDA. */
dpr_status dpr_device_wait_for_stream(dpr_device *device, dpr_stream stream);

/* Waits for the work in `stream`, which is not being captured, after another error, which stays the last one. NULL: in
 * the legacy default stream. */
void dpr_device_drain(dpr_device *device, dpr_stream stream);

/* Copies `bytes` bytes between host memory and device or managed memory in `stream`, which is not NULL, and waits for
 * it. If `to` is NULL it only waits. Errors are those of dpr_device_wait_for_stream(). */
dpr_status dpr_device_put_in_stream(dpr_device *device, dpr_stream stream, void *to, const void *from, size_t bytes);

/* Runs in run->stream, where that is not NULL, or in the legacy default stream, and returns when the result is there.
 * While CUDA forbids the legacy default stream, waits for all work of the context and runs in another stream. Errors
 * for run->stream are those of dpr_device_wait_for_stream(). If `host_out` is not NULL, the `result_bytes` bytes of the
 * result go there through a mailbox, and run->out is ignored. Otherwise a kernel of a strategy that `tells_end` may
 * still be running, but has done all its reads and writes. DPR_ERR_CUDA after a fault of the kernel. */
dpr_status dpr_device_run_blocking(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                   size_t result_bytes, dpr_misfit *misfit);

/* The same, but waits at most about `seconds` seconds (0: without limit). After that DPR_ERR_CUDA with
 * cudaErrorNotReady: kernels of the run are in flight, and may write run->workspace and what the run's arguments point
 * to. A strategy whose launch() waits gives up by returning cudaErrorNotReady. */
dpr_status dpr_device_run_limited(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                  size_t result_bytes, dpr_misfit *misfit, double seconds);

/* Runs in the device's own stream, whatever runs in others, and returns when the `result_bytes` bytes of the result are
 * at host_out, or after about so many seconds: then DPR_ERR_CUDA, and the run may still come to its turn, without
 * writing host_out. The strategy takes scratch memory, and the SMs are run->sms. DPR_ERR_STRATEGY_UNABLE if the SMs do
 * not fit, or if the host may not touch managed memory while a kernel runs. */
dpr_status dpr_device_run_within(dpr_device *device, const dpr_strategy *strategy, dpr_run *run, void *host_out,
                                 size_t result_bytes, double seconds);

#endif
