/* What an example recursion is to the program that runs them all (main.c, `dpr recurse`). */
#ifndef DPR_EXAMPLES_RECURSION_EXAMPLE_H
#define DPR_EXAMPLES_RECURSION_EXAMPLE_H

#include <dpr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What came out, and whether it is the known answer. */
typedef struct recursion_answer {
    int right;
    char text[96];
} recursion_answer;

void recursion_set_answer(recursion_answer *answer, int right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For examples of several runs: adds the report of one run to that of all. */
void recursion_add_report(dpr_recursion_report *sum, const dpr_recursion_report *one);

typedef struct recursion_example {
    const char *name, *text;
    const char *size_text;      /* what the size is */
    uint64_t size, least, most; /* if none is given; what is possible */
    /* Runs the recursion once, in time that report->seconds has. Sets the answer if it returns DPR_OK. */
    dpr_status (*run)(dpr_ctx *ctx, uint64_t size, const dpr_recursion_options *options, dpr_recursion_report *report,
                      recursion_answer *answer);
} recursion_example;

/* Example i, or NULL. */
const recursion_example *recursion_example_at(size_t i);

#ifdef __cplusplus
}
#endif

#endif
