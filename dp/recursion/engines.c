/* The list of engines. */
#include "engines.h"

#include <stddef.h>

const dpr_engine *const dpr_engines[] = {
#ifdef DPR_WITH_CUDA
    &dpr_engine_persistent,
#endif
    &dpr_engine_cpu,
    &dpr_engine_serial,
#ifdef DPR_WITH_CUDA
    &dpr_engine_host,
    &dpr_engine_level,
    &dpr_engine_graph,
    &dpr_engine_naive,
#endif
    NULL,
};
