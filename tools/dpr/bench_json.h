/* What the JSON of dpr bench and of dpr_peers has in common. */
#ifndef DPR_TOOLS_BENCH_JSON_H
#define DPR_TOOLS_BENCH_JSON_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "bench_results.h"

/* A number of six digits; null if it is none. */
void bench_json_number(cJSON *object, const char *key, double x);

/* Members of microseconds: median, interval and spread. */
void bench_json_summary(cJSON *object, const bench_summary *us);

/* Members of a row: its case; how often and how long; what came of the checks. */
void bench_json_case(cJSON *object, const bench_case *at);
void bench_json_times(cJSON *object, const bench_row *row);
void bench_json_checks(cJSON *object, const bench_results *r, const bench_row *row);

/* The row's member "block", which only rows have that were asked to. */
void bench_json_block(cJSON *object, const bench_row *row);

/* What the modes, the caches and the fields are; the caller owns the object. What that member is comes by itself. */
cJSON *bench_json_definitions(void);
void bench_json_define_block(cJSON *definitions);

/* Members of a document before its rows: what was measured on, how, and what that means; the last one, with the
 * document's end. bench_json_heads() deletes the definitions. 0, or -1 when out of memory. */
int bench_json_heads(FILE *f, const bench_results *r, cJSON *definitions);
int bench_json_end(FILE *f, const bench_results *r);

/* A member of a document, and an item of a list after *separator, on a line of its own. Deletes the value. 0, or -1
 * when out of memory. */
int bench_json_member(FILE *f, const char *key, cJSON *value);
int bench_json_item(FILE *f, const char **separator, cJSON *value);

#endif
