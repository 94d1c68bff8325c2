/* Kernels of one thread that read nothing: a call that needs a kernel takes as long as these at least. */
#ifndef DPR_PEERS_LAUNCH_H
#define DPR_PEERS_LAUNCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* Host addresses of __global__ functions, as cudaGetFuncBySymbol() takes them. Both wait for the work before them, if
 * they were launched ahead of it. */
const void *peers_empty_kernel(void);
const void *peers_post_kernel(void); /* (uint64_t *to, uint64_t value): stores it for the host to see */

#ifdef __cplusplus
}
#endif

#endif
