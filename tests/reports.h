/* Reports as text, for tests of what the tools print. */
#ifndef DPR_TESTS_REPORTS_H
#define DPR_TESTS_REPORTS_H

#include <cjson/cJSON.h>

#include "report.h"

/* Writes all of a report of `what`, as the tools' own functions do. */
typedef int report_writer(FILE *f, const void *what, report_format format);

/* The report as text; as a JSON document. The caller frees it, or deletes it. NULL after a failure. */
char *report_text_of(report_writer *write, const void *what, report_format format);
cJSON *report_json_of(report_writer *write, const void *what);

/* Each of the parts, which end with NULL, is in the report. */
void check_report(report_writer *write, const void *what, report_format format, const char *const *parts);

/* The keys of an object in their order, with commas between them: in static memory, until the next call. */
const char *keys_of(const cJSON *object);

/* Keys that reports of measurements share: their definitions, and the figures of a row with a time. */
#define DEFINITION_KEYS "graph,stream,blocking,cold,hot,launch_us,steady,interval,spread,memory,block,visit,reference"
#define FIGURE_KEYS                                                                                                    \
    "samples,calls,visit,median_us,low_us,high_us,spread,gb_per_s,chosen,ok,settled,doubtful,checked,wrong,late"

/* The member of a path such as "rows.0.nested.launched". */
const cJSON *member_of(const cJSON *document, const char *path);
double number_of(const cJSON *document, const char *path);
const char *string_of(const cJSON *document, const char *path); /* "(none)" if it is no string */

#endif
