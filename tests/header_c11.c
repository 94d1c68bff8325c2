/* Compiles the public header first and alone, and uses its initialisers. */
#include "dpr.h"

dpr_options header_options(void);
dpr_problem header_problem(void);

dpr_options header_options(void) {
    const dpr_options options = DPR_OPTIONS_INIT;
    return options;
}

dpr_problem header_problem(void) {
    const dpr_problem problem = DPR_PROBLEM_INIT;
    return problem;
}
