/* The library's lists as tables of help texts and of `dpr info`. */
#ifndef DPR_TOOLS_LISTINGS_H
#define DPR_TOOLS_LISTINGS_H

#include "report.h"

/* Add a list of operations, types or strategies to the report's document, and show it as a table. Without `with_gpu`
 * the strategies that run on a GPU are left out, and one line counts them. */
void list_ops(report_out *out);
void list_dtypes(report_out *out);
void list_strategies(report_out *out, int with_gpu);

/* Prints all three. */
void list_print_all(void);

/* Prints the line that counts the strategies for GPUs; nothing in a build without them. */
void list_print_left_out(void);

#endif
