/* Reductions along axes on the CPU. */
#ifndef DPR_HOST_CPU_AXES_H
#define DPR_HOST_CPU_AXES_H

#include "ops.h"

/* Reduces along the axes of the run, by `fold`, and by `many` if that is not NULL, on up to `threads` threads. Returns
 * 0.
 */
int dpr_cpu_axes(const dpr_run *run, dpr_fold_many many, dpr_fold fold, int threads);

/* The columns of a tile that a thread reduces at a time, where neighbouring results have neighbouring elements. */
uint64_t dpr_cpu_tile_columns(const dpr_axes_layout *at, size_t element, uint64_t threads);

#endif
