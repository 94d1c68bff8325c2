/* A loop of phases in a CUDA graph that is being captured, for engine `host`: a conditional node, whose body is a
 * policy's kernel for phases and a kernel of the library's that asks whether another phase follows (condition.cu). Only
 * in builds with CUDA. */
#ifndef DPR_DP_LOOP_H
#define DPR_DP_LOOP_H

#include <cuda.h>
#include <cuda_runtime_api.h>

struct dpr_arena;

#ifdef __cplusplus
extern "C" {
#endif

/* The entry of the kernel that asks. */
const void *dpr_loop_condition(void);

/* Why graphs have no such loops here, as a clause; NULL if they have. */
const char *dpr_loop_refusal(void);

/* Puts the loop behind what is captured in `stream` so far; what is captured next comes behind the loop. The phase is
 * done once, and again while tasks are left. `condition` is the kernel of dpr_loop_condition(). Called in the device's
 * home. After an error the graph may have a part of the loop. */
cudaError_t dpr_loop_capture(cudaStream_t stream, const CUDA_KERNEL_NODE_PARAMS *phase, CUfunction condition,
                             const struct dpr_arena *arena);

#ifdef __cplusplus
}
#endif

#endif
