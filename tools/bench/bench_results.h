/* What dpr bench and dpr_peers have measured, and what follows from it. */
#ifndef DPR_TOOLS_BENCH_RESULTS_H
#define DPR_TOOLS_BENCH_RESULTS_H

#include "bench_ops.h"
#include "bench_shapes.h"
#include "timing.h"
#include "wisdom_files.h"

/* One combination of the axes but the subject. */
typedef struct bench_case {
    bench_ops ops;
    dpr_dtype dtype;
    bench_mode mode;
    bench_cache cache;
    dpr_memory memory; /* of the array; DPR_MEMORY_AUTO: the GPU's own, or pageable memory for the CPU */
    uint64_t count;
    const bench_shape *shape; /* NULL: one array with one result */
} bench_case;

/* What is known of a strategy's kernels apart from times. */
typedef struct bench_kernels {
    dpr_kernel_info info; /* its `threads` is 0 where nothing is known */
    int blocks;           /* launched at most, on the whole device */
    int has_nested;       /* 1: `nested` is that of one call */
    dpr_launch_report nested;
} bench_kernels;

/* One subject there. */
typedef struct bench_row {
    bench_case at;
    const char *subject;  /* its name; of dpr bench, the strategy's. Static storage */
    const char *strategy; /* of dpr that ran; NULL: another library's subject. Static storage */
    int block;            /* threads a block that were asked for; 0: the strategy's own choice */
    int chosen;           /* 1: it is the planner's choice */
    bench_state state;    /* DONE; FAILED; REFUSED: the strategy cannot run the case */
    bench_verdict verdict;
    char why[256]; /* when it failed or cannot run */
    bench_kernels kernels;
    int visit; /* 1: of the first measurement of the case; 2: of the one right after it (results_choice_seems_slow());
                  3 to 5: of a later one (results_disturbed()) */
    int calls, late;
    long checked, wrong;
    double slowdown;
    bench_summary us;
    bench_summary steady; /* bench_steady(); n is 0 where there is none */
    double launch_us;     /* the median of the empty launches in turn with it; 0: there are none */
    uint64_t results;     /* of one call; 0: those of one array */
    uint64_t bytes;       /* that one call reads, and writes if it has many results */
    double gb_per_s;      /* of these, 1e9 bytes; 0 for no elements, and for what reads nothing */
    bench_summary ratio;  /* of another library's subject: its time over that of the case's first subject, from the
                             rounds that both were in; n is 0 where there is none */
} bench_row;

/* A combination that was not measured. */
typedef struct bench_omission {
    bench_case at;
    char why[160];
} bench_omission;

/* The planner's choice compared with the best strategy, if both gave right results. */
typedef struct bench_regret {
    bench_case at;
    const bench_row *winner, *chosen;
    double us, fraction; /* how much longer the choice takes */
} bench_regret;

typedef struct bench_results {
    bench_device device;
    const char *commit;
    char wisdom[WISDOM_FILES]; /* wisdom_files_read(), when it began */
    dpr_dtype offsets;         /* of segments; DPR_DTYPE_NONE: there are none */
    bench_rule rule;           /* its time is the budget of all */
    double read_gb_per_s;      /* at which the device reads memory (bench_reference); 0: not known */
    double clock_mhz;          /* likewise; 0: not known */
    int interrupted;
    int is_partial; /* 1: the measurement goes on. A report says that it was interrupted, which is right if the program
                       is killed before the next one */
    const char *ended; /* why it ended before all was measured; NULL: it did not. Static storage */
    bench_row *rows;   /* rows of one case come one after another */
    size_t row_count;
    bench_omission *omissions;
    size_t omission_count;
} bench_results;

/* Room for one more; NULL when out of memory. */
bench_row *results_add_row(bench_results *r);
bench_omission *results_add_omission(bench_results *r);
void results_free(bench_results *r);

/* Whether two cases are the same. */
int results_same_case(const bench_case *a, const bench_case *b);

/* ", pinned memory"; "" for a case whose array lies where it usually does. The text is returned. */
enum { RESULTS_MEMORY = 32 };
const char *results_memory(const bench_case *at, char text[RESULTS_MEMORY]);

/* Names the case; says of a row which call failed or was wrong, "" if none was. The text is returned. */
enum { RESULTS_TEXT = 512 };
const char *results_name(const bench_case *at, char text[RESULTS_TEXT]);
const char *results_trouble(const bench_row *row, char text[RESULTS_TEXT]);

/* How many rows from `first` on are of the same case; with `any_count`, of cases that differ in nothing but the count
 * and the shape. */
size_t results_alike(const bench_results *r, size_t first, int any_count);

/* The row of a subject at a case, or of the planner's choice (NULL); NULL if there is none. */
const bench_row *results_find(const bench_results *r, const bench_case *at, const char *subject);

/* Whether the n rows from `first` on, which are of one case, are right, were timed by the host's clock (not in a
 * graph), and have a mean spread of more than 3 % and more than the accuracy that was asked for: then the times of
 * another run would differ. */
int results_disturbed(const bench_results *r, size_t first, size_t n);

/* The n rows from `first` on are of a case; those from `again` on, the last ones, of a later measurement of it. If
 * these are n, they take the place of the first if one of them failed or is wrong; or if the measurement was not cut
 * off, none is doubtful, and, with `only_if_calmer`, their mean spread is smaller. Removes the rows from `again` on in
 * any case. */
void results_keep_later(bench_results *r, size_t first, size_t n, size_t again, int only_if_calmer);

/* Whether the choice among the n rows from `first` on, which are of one case and right, takes more than 5 % longer than
 * another strategy of dpr. It may only seem so: the quickest of many equal ones is the one that was lucky. */
int results_choice_seems_slow(const bench_results *r, size_t first, size_t n);

/* Compares them among n rows of one case. 1; 0 if no choice was measured, or no result is right. */
int results_regret(const bench_row *rows, size_t n, bench_regret *out);

/* Regrets of many cases. */
typedef struct bench_regrets {
    int cases, past;   /* all; those of more than 5 % and 0.2 us */
    double logarithms; /* sum of those of 1 + fraction */
    bench_regret worst;
} bench_regrets;

/* Adds those of all cases to *sum, which is all 0 at first. Their geometric mean, as a fraction. */
void results_regrets(const bench_results *r, bench_regrets *sum);
double results_mean_regret(const bench_regrets *sum);

/* How many times as long a call takes as the device takes to read as many bytes; 0 if that is not known. */
double results_over_floor(const bench_results *r, const bench_row *row);

/* The quickest of n rows whose results were all right; NULL if there is none. */
const bench_row *results_winner(const bench_row *rows, size_t n);

/* Whether the row has a time; whether all its results were right, too; whether the time is to be believed as the rest
 * are. */
int results_timed(const bench_row *row);
int results_right(const bench_row *row);
int results_doubtful(const bench_results *r, const bench_row *row);

/* Whether the machine was slower around row i than around most of the 255 rows up to it, by as much as makes a time
 * doubtful. Where others share the machine, most rows may be doubtful, because the best moment was a rare one. */
int results_slower_than_usual(const bench_results *r, size_t i);

#endif
