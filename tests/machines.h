/* The captured machines. */
#ifndef DPR_TESTS_MACHINES_H
#define DPR_TESTS_MACHINES_H

#include "plan/planner.h"

/* Names of the files in machines/, without ".caps". */
#define MACHINE_LIST(X)                                                                                                \
    X(h200, "h200")                                                                                                    \
    X(h100, "h100")                                                                                                    \
    X(rtx5060ti, "rtx5060ti")                                                                                          \
    X(cc100, "cc100")                                                                                                  \
    X(cpu_only, "cpu-only")                                                                                            \
    X(one_core, "one-core")

/* Whole file machines/<name><ending> as a string that the caller frees; NULL, with a test failure, if it cannot be. */
char *machine_file(const char *name, const char *ending);

/* The machine, with the kernels' declared occupancy. 0, with a test failure, if it cannot be read. */
int machine_load(const char *name, dpr_machine *out);

#endif
