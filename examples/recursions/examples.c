#include "example.h"

#include <stdarg.h>
#include <stdio.h>

extern const recursion_example recursion_sum_tree, recursion_fib, recursion_nqueens, recursion_quadrature;
extern const recursion_example recursion_mandelbrot, recursion_mergesort;

static const recursion_example *const examples[] = {&recursion_sum_tree,
                                                    &recursion_fib,
                                                    &recursion_nqueens,
                                                    &recursion_quadrature,
                                                    &recursion_mandelbrot,
                                                    &recursion_mergesort,
                                                    NULL};

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
