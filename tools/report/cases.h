/* Grids of the rows of one case (page_results.h): sizes by subject. */
#ifndef DPR_TOOLS_CASES_H
#define DPR_TOOLS_CASES_H

#include "page.h"

/* Names with one colour each on the whole page. */
typedef struct palette {
    char names[GRID_COLUMNS][GRID_NAME];
    size_t count;
} palette;

/* The columns of all rows without a shape of a kind, in the order of the files. */
void palette_fill(palette *colours, const results *r, result_kind kind);

/* The colours of a grid's columns. */
void palette_of(const palette *colours, const grid *g, int out[GRID_COLUMNS]);

/* The rows of a case that one result has, which are together: those from row i on; none if row i is not its first. */
result_case case_of_result(const result_case *c, size_t i);

/* The value of a row that a grid shows. */
typedef double (*case_value)(const result_row *row);
double case_time(const result_row *row);
double case_rate(const result_row *row);
double case_ratio(const result_row *row);

/* Values of the rows of one result, by size and subject; with the shape, if they have one, by shape and subject. */
void case_fill(grid *g, const result_case *own, case_value value);

/* The least and the greatest value and size of all results, so that plots side by side have the same axes. `rule` is
 * the greatest rule of these plots, which is on the axes, too. NAN: there is none. */
void case_ranges(const result_case *c, case_value value, double rule, plot_look *look);

/* Where the planner's choice changes between two sizes that were measured: halfway, as its logarithm. */
enum { CASE_CHOICES = 64 };
typedef struct case_choice {
    double from, to; /* numbers of elements, of the first and the last size */
    const char *strategy;
} case_choice;

/* The choices of one result. Returns how many there are; *left_out is how many larger sizes had no room. */
size_t case_choices(const result_case *own, case_choice choices[CASE_CHOICES], size_t *left_out);
size_t case_crossovers(const case_choice *choices, size_t n, double places[CASE_CHOICES]);

/* A sentence with the choices of a result. */
void case_put_choices(html *h, const result *one, const case_choice *choices, size_t n, size_t left_out);

/* Writes the beginning of a case that can be opened and closed, and its end. */
void case_open(page *p, const result_case *c, int open);
void case_close(page *p);

/* The case that is open at first: the sum of F32, or the first one. */
size_t case_main(const result_cases *cases);

#endif
