/* Rows of reports (report.h) that several kinds of them have. */
#ifndef DPR_TOOLS_BENCH_JSON_H
#define DPR_TOOLS_BENCH_JSON_H

#include "bench_results.h"
#include "report.h"

/* Members of a case; of times; of a measurement, with its case. For tables the last has "us", the time with the marks
 * that bench_report_end() explains. */
void bench_json_case(cJSON *object, const bench_case *at);
void bench_json_times(cJSON *object, const bench_summary *us);
void bench_json_row(const report_out *out, cJSON *object, const bench_results *r, const bench_row *row);

/* A figure of a row with these marks, or "failed". The buffer is returned. */
const char *bench_marked(char text[32], const bench_results *r, const bench_row *row, double figure);

#endif
