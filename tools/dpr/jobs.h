/* What `dpr reduce` does with one array: a job for each operation and strategy, and how their outcomes are shown. */
#ifndef DPR_TOOLS_JOBS_H
#define DPR_TOOLS_JOBS_H

#include <cjson/cJSON.h>

#include "fold.h"
#include "lists.h"

/* Where jobs run. */
typedef struct place {
    dpr_ctx *cpu;
    dpr_ctx *gpu;   /* NULL: not to be used */
    int prefer_gpu; /* 1: also where no strategy is named */
} place;

/* What is asked of every array. */
typedef struct asked {
    dpr_op ops[DPR_OP_COUNT];
    int op_count;
    int every_op;         /* 1: those of `ops` that have no meaning for the array are left out */
    const char *strategy; /* NULL: the planner's choice */
    int every_strategy;   /* 1: a job for each strategy; those that cannot run are no failure */
    dpr_nan nan;
    const char *init; /* text, NULL: none */
} asked;

/* The last two are failures: of the work, and because the command line makes no sense for the array. */
typedef enum { JOB_RUNS, JOB_EMPTY, JOB_REFUSED, JOB_NO_GPU, JOB_FAILED, JOB_MISUSED } job_state;

typedef struct job {
    fold fold;
    job_state state;
    char why[512]; /* unless the state is JOB_RUNS */
    int on_gpu;
    const char *strategy; /* the one that ran, "" before the first window */
    value init, result;
    double seconds; /* of reducing alone */
} job;

typedef struct job_list {
    job *items;
    size_t count;
    npy_header array;
    const char *name;
    const asked *asked;
    const place *place;
} job_list;

/* Makes the jobs for an array; `a` and `p` must stay. 0, or -1 after a message (out of memory). job_list_free() is due
 * in either case. */
int jobs_make(job_list *list, const asked *a, const place *p, const npy_header *array, const char *name);

/* Reduces one window of host memory in each job; `repeats` at least 1, above that the window is the whole array and the
 * median of the times counts. */
void jobs_add(job_list *list, const void *in, size_t count, int whole, int repeats);

/* Ends all jobs. Returns how many failed. */
size_t jobs_end(job_list *list);

/* Shows outcomes: a table, or values alone. CLI_OK, or CLI_FAILED after a message (out of memory). */
int jobs_print(const job_list *list);
void jobs_print_values(const job_list *list);

/* Messages about failures. CLI_OK, or the exit code. */
int jobs_report_failures(const job_list *list);

/* The outcomes as JSON. NULL when out of memory. */
cJSON *jobs_json(const job_list *list);

void job_list_free(job_list *list);

#endif
