/* `dpr bench --ladder` and `dpr bench --nested`: strategies of GPUs, one after the other and next to the planner's
 * choice. The ladder has them in the order in which they are taught, with what limits their kernels; the other has
 * those whose kernels launch kernels, with counters of these launches, and before them what launches cost. */
#ifndef DPR_TOOLS_BENCH_LINEUP_H
#define DPR_TOOLS_BENCH_LINEUP_H

#include "bench_asked.h"
#include "bench_part.h"
#include "bench_results.h"
#include "report.h"

/* The first rung, which speed-ups are over, and the strategy whose rate at a large array is the device's bandwidth. */
#define LADDER_FIRST "ladder.neighbored"
#define LADDER_READER "flat.lastblock"

/* What limits the occupancy where the strategy launches fewer blocks than the device holds. */
#define LADDER_GRID "grid"

/* Sizes at most. */
enum { LINEUP_SIZES = 16 };

typedef struct lineup_strategy {
    const char *name, *text;
} lineup_strategy;

/* What a process of its own has measured: launches, with the pool of them as it was found, or of another size. */
typedef struct lineup_part {
    uint64_t asked;       /* the size of the pool; 0: as it was found */
    char line[PART_LINE]; /* what it wrote (nested.h); "": nothing */
    char why[BENCH_WHY];  /* why it wrote nothing; "": it did not run yet */
} lineup_part;

typedef struct lineup_results {
    bench_results bench;
    int nested; /* 1: --nested; 0: --ladder */
    int sizes;
    bench_case at[LINEUP_SIZES];
    bench_case read;  /* what LADDER_READER reads for the bandwidth; may be at[0] */
    int block, depth; /* threads a block, and depth, that were asked for; 0: none */
    int n;
    lineup_strategy strategies[BENCH_SUBJECTS];
    int parts; /* the first of which has the pool as it was found */
    lineup_part part[1 + ASKED_POOLS];
} lineup_results;

/* Checks that what is asked for is one operation and type, and has defaults take the place of what is not. CLI_OK, or
 * CLI_USAGE after a message. */
int lineup_complete(bench_asked *a);

/* The strategies of this build, in order. Returns how many there are, at most BENCH_SUBJECTS. */
int lineup_order(int nested, lineup_strategy out[BENCH_SUBJECTS]);

/* Has the occupancy of the kernel, which is that of as many blocks as the device holds, become that of a grid of
 * `blocks` at most. Its limit is LADDER_GRID where they are fewer. */
void lineup_set_grid(bench_kernels *kernels, const dpr_machine *machine, int blocks);

/* Measures, and adds to what is asked for. `out` is all 0 before. What was measured when *asked->stop becomes not 0
 * holds. results_free() of out->bench is due in any case. CLI_OK; CLI_FAILED after a message, if there is no GPU,
 * nothing could be measured at a size, the device failed or did not answer, or a strategy failed or gave a wrong
 * result. */
int lineup_measure(bench_asked *asked, lineup_results *out);

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int lineup_write(FILE *f, const lineup_results *l, report_format format);

#endif
