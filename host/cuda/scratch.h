/* Scratch memory for runs in flight on one device. A slot belongs to one stream, whose runs come one after another, or
 * to one captured call, whose graph may be launched at any time. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_SCRATCH_H
#define DPR_HOST_CUDA_SCRATCH_H

#include <cuda_runtime_api.h>

#include "device.h"

typedef struct dpr_scratch dpr_scratch;
typedef struct dpr_slot dpr_slot;

/* Allocates in the home, which is the current context. Returns 0 or a cudaError_t. */
cudaError_t dpr_scratch_create(const dpr_home *home, dpr_scratch **out);

/* Frees the device memory if the home is still `there`, which waits for the work in flight. Host memory stays until all
 * graphs that hold a slot are destroyed. NULL is allowed. */
void dpr_scratch_destroy(dpr_scratch *scratch, int there);

/* Finds a slot for one run in `stream`, and pins it until dpr_scratch_unpin(): no other stream gets it before this run
 * is enqueued, and no other run comes between the launches of this one. If all slots are in use, takes another 4 MiB of
 * device memory. Above 32 MiB it first waits for the device and takes back the slots of streams, but not for a captured
 * run. Sets *captured_to to the graph to which the stream is being captured, or to NULL.
 *
 * *sms is the number of SMs that the run is made for, and becomes the number on which the stream's work runs. If the
 * two differ, *out is NULL. cudaErrorInvalidResourceHandle if the stream does not belong to the home. */
cudaError_t dpr_scratch_pin(dpr_scratch *scratch, cudaStream_t stream, int *sms, dpr_slot **out,
                            cudaGraph_t *captured_to);
void dpr_scratch_unpin(dpr_slot *slot);

/* Zeroes a pinned slot in stream order, after a run of which a part may have been enqueued. If this fails, the slot is
 * zeroed before it is used again. */
void dpr_scratch_clean(dpr_slot *slot, cudaStream_t stream);

/* The slot's device memory, of DPR_SCRATCH_BYTES bytes. */
void *dpr_slot_memory(const dpr_slot *slot);

#endif
