/* Rows of reports (report.h) that several kinds of them have. */
#ifndef DPR_TOOLS_BENCH_JSON_H
#define DPR_TOOLS_BENCH_JSON_H

#include "bench_results.h"
#include "nested.h"
#include "report.h"

/* Members of a case; of a measurement, with its case; of what a launch costs: times, or why there are none. For tables
 * the latter two have "us", the time with the marks that bench_report_end() explains. */
void bench_json_case(cJSON *object, const bench_case *at);
void bench_json_row(const report_out *out, cJSON *object, const bench_results *r, const bench_row *row);
void bench_json_cost(cJSON *object, const bench_cost *cost);

/* A figure of a row with these marks, or "failed". The buffer is returned. */
const char *bench_marked(char text[32], const bench_results *r, const bench_row *row, double figure);

#endif
