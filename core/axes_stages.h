/* The kernel of axes.tiles for results of few elements. */
#ifndef DPR_CORE_AXES_STAGES_H
#define DPR_CORE_AXES_STAGES_H

#include "args.h"

namespace dpr {

/* Makes `launch` one of this kernel, for `tiles` tiles. */
void dpr_axes_stages(const dpr_run *run, uint64_t tiles, dpr_launch *launch);

} // namespace dpr

#endif
