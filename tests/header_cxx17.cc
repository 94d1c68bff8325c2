// Compiles the public header first and alone as C++, and uses its initialisers.
#include "dpr.h"

dpr_options header_options();
dpr_problem header_problem();

dpr_options header_options() {
    dpr_options options = DPR_OPTIONS_INIT;
    return options;
}

dpr_problem header_problem() {
    dpr_problem problem = DPR_PROBLEM_INIT;
    return problem;
}
