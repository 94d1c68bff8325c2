/* `dpr bench --nested`: what launches from kernels cost on a GPU, and what the strategies that make them take. */
#ifndef DPR_TOOLS_BENCH_NESTED_H
#define DPR_TOOLS_BENCH_NESTED_H

#include <stdio.h>

#include "bench_asked.h"
#include "bench_nested_part.h"
#include "bench_results.h"
#include "report.h"
#include "strategy.h"

/* Sizes at most, and strategies with nested launches. */
enum { NESTED_SIZES = 16, NESTED_STRATEGIES = 16 };

/* A strategy at a size. */
typedef struct nested_cell {
    char refusal[160]; /* why it cannot run the case; "": it can */
    int ran;           /* 1: `report` is that of one call */
    dpr_launch_report report;
} nested_cell;

typedef struct nested_results {
    bench_results bench; /* rows of the strategies below, and of the planner's choice */
    int sizes;
    bench_case at[NESTED_SIZES];
    int block, depth; /* threads a block, and depth, that were asked for; 0: none */
    size_t pending;   /* the pool of pending launches as it was found */
    int n;
    const dpr_strategy *strategies[NESTED_STRATEGIES]; /* those whose kernels launch others */
    nested_cell cells[NESTED_SIZES][NESTED_STRATEGIES];
    nested_part launches; /* with the pool as it was found */
    int pools;
    nested_part pool[ASKED_POOLS];
} nested_results;

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

/* Checks that what is asked for is one operation and type, and has defaults take the place of what is not. CLI_OK, or
 * CLI_USAGE after a message. */
int nested_complete(bench_asked *a);

/* The strategies of this build whose kernels launch others, in the registry's order. Returns how many there are, at
 * most NESTED_STRATEGIES. */
int nested_order(const dpr_strategy *out[NESTED_STRATEGIES]);

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* Measures. What was measured when *asked->stop becomes not 0 holds. results_free() of out->bench is due in any case.
 * CLI_OK; CLI_FAILED after a message, if there is no GPU, nothing could be measured at a size, the device failed or did
 * not answer, or a strategy failed or gave a wrong result. */
int nested_measure(const bench_asked *asked, nested_results *out);

/* The row of a strategy at a size, both by number; of the planner's choice, which launches nothing from kernels. NULL
 * if it was not measured. */
const bench_row *nested_row(const nested_results *n, int size, int strategy);
const bench_row *nested_choice(const nested_results *n, int size);

/* Why a strategy has no row. Why none has, where the case was left out; else NULL. */
const char *nested_why_not(const nested_results *n, int size, int strategy);
const char *nested_why_none(const nested_results *n, int size);

/* The row's time over that of the planner's choice; 0 where that is not known, which for wrong results is always so. */
double nested_ratio(const nested_results *n, int size, const bench_row *row);

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int nested_write(FILE *f, const nested_results *n, report_format format);

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

/* `dpr bench NESTED_PART DEVICE PENDING SECONDS ACCURACY LAUNCHES` measures in a process of its own, and writes a line
 * of part_write(). Returns the exit code. */
#define NESTED_PART "--nested-part"
int nested_part_main(int argc, char **argv);

#endif
