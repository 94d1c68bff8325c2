/* Kernels that do next to nothing: what any reduction on the device takes at least. */
#ifndef DPR_PEERS_LAUNCH_H
#define DPR_PEERS_LAUNCH_H

#include <stdint.h>

#include "dpr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each enqueues one thread, launched as dpr's kernels are: before the work ahead of it is done, for which it waits
 * itself. Returns the cudaError_t. */
int peers_launch_empty(dpr_stream stream);
int peers_launch_post(uint64_t *to, uint64_t value, dpr_stream stream); /* stores `value`, for the host to see */

#ifdef __cplusplus
}
#endif

#endif
