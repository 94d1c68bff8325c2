/* The functions that start the structs of dpr.h, as the ..._INIT macros do. */
#include <string.h>

#include "error.h"

/* Struct and macro. */
#define STRUCTS(X)                                                                                                     \
    X(ctx_options, CTX_OPTIONS)                                                                                        \
    X(options, OPTIONS)                                                                                                \
    X(launch_options, LAUNCH_OPTIONS)                                                                                  \
    X(problem, PROBLEM)                                                                                                \
    X(partial_info, PARTIAL_INFO)                                                                                      \
    X(op_info, OP_INFO)                                                                                                \
    X(dtype_info, DTYPE_INFO)                                                                                          \
    X(strategy_info, STRATEGY_INFO)                                                                                    \
    X(env_info, ENV_INFO)                                                                                              \
    X(node_info, NODE_INFO)                                                                                            \
    X(machine_info, MACHINE_INFO)                                                                                      \
    X(capability, CAPABILITY)                                                                                          \
    X(kernel_info, KERNEL_INFO)                                                                                        \
    X(step, STEP)                                                                                                      \
    X(prediction, PREDICTION)                                                                                          \
    X(axes, AXES)                                                                                                      \
    X(segments, SEGMENTS)                                                                                              \
    X(recursion_options, RECURSION_OPTIONS)                                                                            \
    X(recursion_report, RECURSION_REPORT)

/* The caller's struct may be smaller than this version's, or larger: what this version does not know is 0. */
static void start(void *out, size_t size, const void *from, size_t own_size) {
    if (!out || !dpr_is_struct_size(size))
        return;
    memset(out, 0, size);
    memcpy(out, from, size < own_size ? size : own_size);
    memcpy(out, &size, sizeof size);
}

#define DEFINE_INIT(name, NAME)                                                                                        \
    void dpr_##name##_init(dpr_##name *out, size_t size) {                                                             \
        const dpr_##name own = DPR_##NAME##_INIT;                                                                      \
        start(out, size, &own, sizeof own);                                                                            \
    }
STRUCTS(DEFINE_INIT)
