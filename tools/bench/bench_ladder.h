/* `dpr bench --ladder`: every strategy of a GPU at one size, in the order in which they are taught. */
#ifndef DPR_TOOLS_BENCH_LADDER_H
#define DPR_TOOLS_BENCH_LADDER_H

#include <stdio.h>

#include "bench_asked.h"
#include "bench_results.h"
#include "plan/occupancy.h"
#include "report.h"
#include "strategy.h"

/* The first rung, which speed-ups are over, and the strategy whose rate at a large array is the device's bandwidth. */
#define LADDER_FIRST "ladder.neighbored"
#define LADDER_READER "flat.lastblock"

/* What limits the occupancy where the strategy launches fewer blocks than the device holds. */
#define LADDER_GRID "grid"

/* Bytes of that array, where there is memory for two. */
#define LADDER_READ_BYTES ((size_t)1 << 30)

typedef struct ladder_rung {
    const char *strategy, *text; /* static storage */
    char refusal[160];           /* why it cannot run the case; "": it can */
    int blocks;                  /* launched at most, on the whole device */
    dpr_kernel_use use;          /* its `threads` is 0 where nothing is known of the kernel */
    dpr_occupancy occupancy;     /* its `fraction` and `limit` are those of that many blocks: ladder_set_grid() */
} ladder_rung;

typedef struct ladder_results {
    bench_results bench; /* with rows of both cases */
    bench_case at;       /* what the rungs run */
    bench_case read;     /* what LADDER_READER reads for the bandwidth; may be the same */
    int block;           /* threads a block that were asked for; 0: none were */
    int n;
    ladder_rung rungs[BENCH_SUBJECTS]; /* in the order of teaching */
} ladder_results;

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

/* Checks that what is asked for is one size, operation and type, and has the ladder's defaults take the place of what
 * is not. CLI_OK, or CLI_USAGE after a message. */
int ladder_complete(bench_asked *a);

/* The strategies of GPUs of this build: families as they are taught, and within one the registry's order. Returns how
 * many there are, at most BENCH_SUBJECTS. */
int ladder_order(const dpr_strategy *out[BENCH_SUBJECTS]);

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* Has the occupancy of the rung's kernel, which is that of as many blocks as the device holds, become that of a grid of
 * `blocks` at most. Its limit is LADDER_GRID where they are fewer. */
void ladder_set_grid(ladder_rung *rung, const dpr_gpu_caps *gpu, int blocks);

/* Measures. What was measured when *asked->stop becomes not 0 holds. results_free() of out->bench is due in any case.
 * CLI_OK; CLI_FAILED after a message, if there is no GPU, nothing could be measured, the device failed, or a strategy
 * failed or gave a wrong result. */
int ladder_measure(const bench_asked *asked, ladder_results *out);

/* The rung's row; NULL if it was not measured. */
const bench_row *ladder_row(const ladder_results *l, const ladder_rung *rung);

/* Why the rung has no row. Why none has, where the case was left out; else NULL. */
const char *ladder_why_not(const ladder_results *l, const ladder_rung *rung);
const char *ladder_why_none(const ladder_results *l);

/* The row that the bandwidth comes from; NULL if it was not measured, or had wrong results. */
const bench_row *ladder_reader(const ladder_results *l);

/* The device's bandwidth, the rate of that row's best sample, in GB/s (1e9 bytes); the share of it that the row's
 * median has, as a fraction; the time of the first rung over the row's. 0 where that is not known, which for wrong
 * results is always so. */
double ladder_bandwidth(const ladder_results *l);
double ladder_share(const ladder_results *l, const bench_row *row);
double ladder_speedup(const ladder_results *l, const bench_row *row);

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int ladder_write(FILE *f, const ladder_results *l, report_format format);

#endif
