#include "example.h"

#include <stdarg.h>
#include <stdio.h>

extern const recursion_example recursion_sum_tree, recursion_fib, recursion_nqueens, recursion_quadrature;
extern const recursion_example recursion_mandelbrot, recursion_mergesort, recursion_select;
extern const recursion_example recursion_uts, recursion_uts_t3, recursion_quadtree, recursion_expression;

static const recursion_example *const examples[] = {&recursion_sum_tree,   &recursion_fib,        &recursion_nqueens,
                                                    &recursion_quadrature, &recursion_mandelbrot, &recursion_mergesort,
                                                    &recursion_select,     &recursion_uts,        &recursion_uts_t3,
                                                    &recursion_quadtree,   &recursion_expression, NULL};

const recursion_example *recursion_example_at(size_t i) {
    size_t n = 0;
    while (examples[n] && n < i)
        n++;
    return examples[n];
}

void recursion_set_answer(recursion_answer *answer, int right, const char *format, ...) {
    va_list values;
    va_start(values, format);
    answer->right = right;
    (void)vsnprintf(answer->text, sizeof answer->text, format, values);
    va_end(values);
}

dpr_status recursion_fail(recursion_answer *answer, const char *format, ...) {
    va_list values;
    va_start(values, format);
    answer->failed = 1;
    (void)vsnprintf(answer->text, sizeof answer->text, format, values);
    va_end(values);
    return DPR_ERR_INVALID_OPTION;
}

void recursion_add_report(dpr_recursion_report *sum, const dpr_recursion_report *one) {
    sum->engine = one->engine;
    sum->reason = one->reason;
    sum->tasks += one->tasks;
    sum->deepest = one->deepest > sum->deepest ? one->deepest : sum->deepest;
    sum->levels = one->levels > sum->levels ? one->levels : sum->levels;
    sum->widest = one->widest > sum->widest ? one->widest : sum->widest;
    sum->rounds += one->rounds;
    sum->launches += one->launches;
    sum->handed_out += one->handed_out;
    sum->serialised += one->serialised;
    sum->steals += one->steals;
    sum->seconds += one->seconds;
}
