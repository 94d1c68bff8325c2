/* Compiles the public header first and alone, and uses its initialisers. */
#include "dpr.h"

dpr_options header_options(void);
dpr_problem header_problem(void);
size_t header_sizes(void);

dpr_options header_options(void) {
    const dpr_options options = DPR_OPTIONS_INIT;
    return options;
}

dpr_problem header_problem(void) {
    const dpr_problem problem = DPR_PROBLEM_INIT;
    return problem;
}

size_t header_sizes(void) {
    const dpr_ctx_options ctx_options = DPR_CTX_OPTIONS_INIT;
    const dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    const dpr_op_info op = DPR_OP_INFO_INIT;
    const dpr_dtype_info dtype = DPR_DTYPE_INFO_INIT;
    const dpr_strategy_info strategy = DPR_STRATEGY_INFO_INIT;
    const dpr_env_info env = DPR_ENV_INFO_INIT;
    const dpr_node_info node = DPR_NODE_INFO_INIT;
    const dpr_machine_info machine = DPR_MACHINE_INFO_INIT;
    const dpr_capability capability = DPR_CAPABILITY_INIT;
    const dpr_kernel_info kernel = DPR_KERNEL_INFO_INIT;
    const dpr_step step = DPR_STEP_INIT;
    const dpr_prediction prediction = DPR_PREDICTION_INIT;
    const dpr_recursion_options recursion = DPR_RECURSION_OPTIONS_INIT;
    const dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    return ctx_options.size + launch.size + op.size + dtype.size + strategy.size + env.size + node.size + machine.size
           + capability.size + kernel.size + step.size + prediction.size + recursion.size + report.size;
}
