/* What an example recursion is to the program that runs them all (tools/dpr/recurse.c). */
#ifndef DPR_EXAMPLES_RECURSION_EXAMPLE_H
#define DPR_EXAMPLES_RECURSION_EXAMPLE_H

#include <dpr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What came out, and whether it is the known answer. */
typedef struct recursion_answer {
    int right, failed; /* failed: the text is why there is no answer */
    char text[96];
} recursion_answer;

void recursion_set_answer(recursion_answer *answer, int right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets why there is no answer. Returns DPR_ERR_INVALID_OPTION. */
dpr_status recursion_fail(recursion_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For examples of several runs: adds the report of one run to that of all. */
void recursion_add_report(dpr_recursion_report *sum, const dpr_recursion_report *one);

/* What is asked of an example. */
typedef struct recursion_request {
    uint64_t size;
    const dpr_recursion_options *options;
    const char *input;   /* a file to read instead of making a problem of the size; NULL: none */
    const char *picture; /* where to write a picture of the result, outside of the run's time; NULL: nowhere */
    uint64_t rank;       /* of the element that is looked for, in ascending order from 0; less than the size */
    int has_rank;        /* 0: none is given */
} recursion_request;

/* Runs an example once, in time that report->seconds has. Before, the report is that of the run before, or empty. Sets
 * the answer if it returns DPR_OK. Otherwise dpr_last_error() is why, unless the answer has failed. */
typedef dpr_status recursion_run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                                 recursion_answer *answer);

typedef struct recursion_example {
    const char *name, *text;
    const char *size_text;      /* what the size is */
    uint64_t size, least, most; /* if none is given; what is possible */
    recursion_run *run;
    const char *input_text; /* what a file of input has; NULL: the example reads none */
    int draws;              /* 1: it can write a picture */
    int ranks;              /* 1: it takes a rank */
} recursion_example;

/* Example i, or NULL. */
const recursion_example *recursion_example_at(size_t i);

#ifdef __cplusplus
}
#endif

#endif
