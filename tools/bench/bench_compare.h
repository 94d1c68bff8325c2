/* Two results of `dpr bench`, `dpr_peers` or `dpr recurse`, row by row: which times differ, and by how much at least.
 * Pure: it reads parsed documents, and neither files nor the clock. */
#ifndef DPR_TOOLS_BENCH_COMPARE_H
#define DPR_TOOLS_BENCH_COMPARE_H

#include <stddef.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "report.h"

enum { COMPARE_WHY = 512, COMPARE_NAME = 320 };

/* ---- Times ------------------------------------------------------------------------------------------------------ */

/* A median in microseconds with its 95 % confidence interval within one run: 0 < low <= median <= high, all finite. */
typedef struct compare_time {
    double median, low, high;
    double spread; /* the distance of the 10 % and 90 % quantiles over the median */
    int bounded;   /* 1: there were enough samples for the interval; 0: low and high are the extremes */
    int doubtful;  /* 1: a fixed piece of work ran slower around it than before */
    int settled;   /* 1: the interval is as narrow as was asked for */
    int is_steady; /* 1: it is what the call would take if a launch took a fixed time (bench_steady()) */
} compare_time;

typedef enum compare_verdict {
    COMPARE_SAME,
    COMPARE_FASTER,
    COMPARE_SLOWER,
    COMPARE_UNSURE, /* the intervals are too wide to tell, or there is a reason not to believe a time */
    COMPARE_FAILED, /* NEW has a wrong result or none */
    COMPARE_VERDICTS
} compare_verdict;

/* "same", "faster", "slower", "unsure", "failed"; NULL past the end. Static storage. */
const char *compare_verdict_name(size_t verdict);

/* NEW's time over OLD's. */
typedef struct compare_ratio {
    double ratio, low, high; /* with a 95 % interval for runs that differ; all 0: there is none */
    compare_verdict verdict;
    const char *why; /* a clause, if the interval alone does not say why it is unsure or failed; else NULL. Static */
    int is_steady;   /* 1: of steady times */
} compare_ratio;

typedef struct compare_rule {
    double threshold;        /* changes of up to this, a fraction more than 0, are not relevant */
    double steady_threshold; /* the same, of rows that both have a steady time; compare_times() does not use it */
    double drift; /* how much slower a fixed piece of work ran in one run than in the other, a fraction from 0 on */
} compare_rule;

compare_ratio compare_times(const compare_time *old, const compare_time *new, const compare_rule *rule);

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* What the planner's choice is called where it is compared with another strategy, which was the choice in OLD. */
#define COMPARE_CHOICE "planner's choice"

typedef struct compare_row {
    cJSON *identity; /* an object of what tells the row from all others of its file: strategy, op, dtype, count, ... */
    char *key;       /* the same as text */
    const char *choice;  /* the strategy behind COMPARE_CHOICE; NULL: it is a row of the file */
    int ok;              /* 1: it has a time, and no result was wrong */
    compare_time us;     /* if ok */
    compare_time steady; /* of a call that a launch may have limited; is_steady is 0 if there is none */
} compare_row;

/* Whether both rows are there and have a steady time: then that counts, too, and the threshold is
 * rule->steady_threshold. */
static inline int compare_has_steady(const compare_row *old, const compare_row *new) {
    return old && new ? old->steady.is_steady &&new->steady.is_steady : 0;
}

typedef struct compare_side {
    const char *name;      /* of the file */
    const cJSON *document; /* what a program has written, or a list of such documents; then the first of them, after
                              which come the others */
    compare_row *rows;     /* in the file's order, with a second one for each planner's choice behind it */
    size_t count;
    size_t in_file;       /* rows of the file */
    compare_row **sorted; /* private */
} compare_side;

/* Reads the rows of side->document. 0; -1 with a clause in `why` if they make no sense: none, a row without a median, a
 * number that is no time, two rows of one identity; or if memory has run out. compare_free_side() is due in any case.
 */
int compare_read(compare_side *side, char why[COMPARE_WHY]);
void compare_free_side(compare_side *side);

/* What a row, or its identity, is of: its subject, strategy or engine. NULL if none of them is a text. */
const char *compare_subject(const cJSON *row);

/* Names a row, as in "cpu.simd, sum of f32, 2^20 elements, blocking, cold". The text is returned. */
const char *compare_name(const compare_row *row, char text[COMPARE_NAME]);

/* ---- Sides ------------------------------------------------------------------------------------------------------ */

/* A row of both sides, or of one, where the other is NULL. */
typedef struct compare_pair {
    const compare_row *old, *new;
    compare_ratio ratio; /* if it has a verdict */
} compare_pair;

/* Whether both sides have the row; or NEW alone, and failed: then the verdict is COMPARE_FAILED. */
static inline int compare_has_verdict(const compare_pair *p) {
    return p->new && (p->old || !p->new->ok);
}

typedef struct compare_results {
    const compare_side *old, *new;
    compare_rule rule;
    compare_pair *pairs; /* in the order of NEW, those that OLD alone has at the end. The planner's choice is one where
                            it changed */
    size_t count;
    size_t verdicts[COMPARE_VERDICTS]; /* how many have each */
    size_t both, only_old, only_new;   /* rows of the files. Choices that differ are pairs that are in no file */
    size_t lacking;                    /* rows that OLD alone has, and that are not compared as the planner's choice */
    size_t timed;                      /* pairs with a ratio */
    double mean;                       /* geometric mean of their ratios; 0 if there is none */
    const compare_pair *worst;         /* the greatest ratio; NULL if there is none */
} compare_results;

/* Matches the rows of both sides, and compares their times by the thresholds of `rule`. Its drift is found here: if the
 * devices have one name, and the documents the rates of a fixed piece of work (`reference`); else it is 0. 0, or -1
 * when out of memory. compare_free() is due in any case, before the sides are freed. */
int compare_match(const compare_side *old, const compare_side *new, const compare_rule *rule, compare_results *out);
void compare_free(compare_results *r);

/* Whether a row is slower or failed. */
int compare_is_worse(const compare_results *r);

/* Whether a document of the side is of a measurement that was interrupted, or killed. */
int compare_is_interrupted(const compare_side *side);

/* Why the comparison says too little to tell that nothing is slower, as a clause in `why`, which is returned: no row is
 * in both, NEW was interrupted, it lacks rows of OLD, or most rows are unsure. NULL if it says enough. */
const char *compare_lacks(const compare_results *r, char why[COMPARE_WHY]);

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int compare_write(FILE *f, const compare_results *r, report_format format);

#endif
