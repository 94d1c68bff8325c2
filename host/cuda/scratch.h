/* Scratch memory for runs in flight on one device: a slot belongs to one stream, whose runs come one after another, or
 * to one captured call, whose graph may be replayed at any time. Only in builds with CUDA. */
#ifndef DPR_HOST_CUDA_SCRATCH_H
#define DPR_HOST_CUDA_SCRATCH_H

#include <cuda_runtime_api.h>

#include "device.h"

typedef struct dpr_scratch dpr_scratch;
typedef struct dpr_slot dpr_slot;

/* Allocates in the home, which is current; 0 or a cudaError_t. */
cudaError_t dpr_scratch_create(const dpr_home *home, dpr_scratch **out);

/* Gives the device memory back, if the home is still `there`, which waits for the work in flight. What graphs still
 * refer to of host memory stays until these are destroyed. NULL is allowed. */
void dpr_scratch_destroy(dpr_scratch *scratch, int there);

/* A slot for one run in `stream`, pinned until dpr_scratch_unpin(), so that no other stream gets it before this run is
 * enqueued, and no other run comes between the launches of this one. Takes another 4 MiB of device memory when all
 * slots are in use; where that were more than 32 MiB, it waits for the device first and takes the slots of streams, but
 * not during capture. *captured_to is the graph that the stream is being captured to, or NULL.
 *
 * *sms, for which the run is made, becomes the number of SMs on which the stream's work runs; if it is another one,
 * *out is NULL. cudaErrorInvalidResourceHandle if the stream does not belong to the home. */
cudaError_t dpr_scratch_pin(dpr_scratch *scratch, cudaStream_t stream, int *sms, dpr_slot **out,
                            cudaGraph_t *captured_to);
void dpr_scratch_unpin(dpr_slot *slot);

/* Makes a pinned slot zero again, in stream order, after a run of which perhaps a part was enqueued. A slot for which
 * that fails is zeroed before it is used again. */
void dpr_scratch_clean(dpr_slot *slot, cudaStream_t stream);

/* The slot's device memory, DPR_SCRATCH_BYTES; and the SMs on which the work of its stream runs. */
void *dpr_slot_memory(const dpr_slot *slot);

#endif
