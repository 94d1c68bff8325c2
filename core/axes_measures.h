/* The kernels of axes.tiles for the operations of measures.cuh: one for each element type and NaN policy. The operation
 * is dpr_axes_args.op. The form of the division is always DPR_AXES_ELEMENTS. */
#ifndef DPR_CORE_AXES_MEASURES_H
#define DPR_CORE_AXES_MEASURES_H

#include "strategy.h"

namespace dpr {

/* Returns the kernel that runs the key, whose operation is FUSED (ops.def), by its host address. A block needs shared
 * memory for an accumulator of each thread, in dpr_acc_words() words, and a partial result in workspace has as many. */
const void *dpr_axes_measures(const dpr_key *key);

} // namespace dpr

#endif
