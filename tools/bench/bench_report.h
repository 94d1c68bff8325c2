/* Results of `dpr bench` as a report, and what the other kinds of reports have, too. */
#ifndef DPR_TOOLS_BENCH_REPORT_H
#define DPR_TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "bench_results.h"
#include "report.h"

/* Writes all of it. Errors of the file are for the caller to look for. -1 when out of memory, else 0. */
int bench_write(FILE *f, const bench_results *r, report_format format);

/* ---- Of all kinds ----------------------------------------------------------------------------------------------- */

/* What a mode, a cache or a member means. A list of them ends with the key NULL. */
typedef struct bench_definition {
    const char *key, *text;
} bench_definition;

/* The columns of a report on arrays with many results. */
extern const bench_definition bench_definitions_of_many[];

/* Begins a report: its name, what was built, the device and the settings; `title` is the end of the first line.
 * `definitions` are those that not all kinds have; NULL: none. */
report_out bench_report_begin(FILE *f, report_format format, const char *name, const bench_results *r,
                              const char *title, const bench_definition *definitions);

/* The marks' meaning, failures and wrong results, and what was left out; and report_end(). */
int bench_report_end(report_out *out, const bench_results *r);

/* Members of a case; of times; of a measurement, with its case. For tables the last has "us", the time with the marks
 * that bench_report_end() explains. */
void bench_json_case(cJSON *object, const bench_case *at);
void bench_json_times(cJSON *object, const bench_summary *us);
void bench_json_row(const report_out *out, cJSON *object, const bench_results *r, const bench_row *row);

/* A heading: the case, with its size if `sized`, and the block size that was asked for (0: none was). */
void bench_report_case(report_out *out, const bench_case *at, int sized, int block, const char *more);

/* All rows: to the document, each beginning with its subject, if there are peers, and its strategy; to CSV in these
 * columns; to text as tables of sizes by subjects. */
void bench_report_rows(report_out *out, const bench_results *r, const char *csv, int peers);

#endif
