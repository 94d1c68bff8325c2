/* What `dpr reduce` does with one array: a job for each operation and strategy, and how their outcomes are shown. */
#ifndef DPR_TOOLS_JOBS_H
#define DPR_TOOLS_JOBS_H

#include "lists.h"
#include "report.h"
#include "source.h"
#include "value.h"

/* What is asked of every array. */
typedef struct asked {
    dpr_op ops[DPR_OP_COUNT];
    int op_count;
    int every_op;         /* 1: those of `ops` that have no meaning for the array are left out */
    const char *strategy; /* NULL: the planner's choice */
    int every_strategy;   /* 1: a job for each strategy; those that cannot run are no failure */
    dpr_nan nan;
    dpr_divisor divisor; /* of VAR */
    const char *init;    /* text, NULL: none */
    int quiet;           /* 1: the values alone are printed; the report does not show them */

    /* Where jobs run. */
    dpr_ctx *cpu;
    dpr_ctx *gpu;   /* NULL: not to be used */
    int prefer_gpu; /* 1: also where no strategy is named */

    report_out out;
    cJSON *arrays; /* the document's list of what was done to each array */
} asked;

int jobs_takes_init(dpr_op op);

/* Whether the operation is asked for; "every" operation only if it suits the type and the initial value. */
int jobs_include(const asked *a, dpr_op op, dpr_dtype dtype);

/* Reads the initial value of an operation on elements of a type. 0, or -1 with why it cannot be used, a clause. */
int jobs_parse_init(dpr_op op, dpr_dtype dtype, const char *text, value *init, char why[NPY_WHY]);

/* Reduces an open source, and shows the outcomes. CLI_OK, the exit code after messages, or -1 with s->why. */
int jobs_reduce(asked *a, source *s, const char *name);

#endif
