/* Results of `dpr bench` as text. */
#ifndef DPR_TOOLS_BENCH_REPORT_H
#define DPR_TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "bench_results.h"

typedef enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON, REPORT_MARKDOWN, REPORT_FORMATS } report_format;

/* "table", "csv", "json", "markdown"; NULL past the end. Static storage. */
const char *report_format_name(size_t format);

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int report_write(FILE *f, const bench_results *r, report_format format);

/* A further field of a line of CSV, in quotes and defused: a sentence, which is cut at BENCH_WHY bytes. */
void report_write_quoted(FILE *f, const char *text);

#endif
