/* Reports as text, Markdown, CSV or JSON. Every report is built as a JSON document, whose lists of rows the other
 * formats show, too. There is one writer for each format, and none knows what the rows are. */
#ifndef DPR_TOOLS_REPORT_H
#define DPR_TOOLS_REPORT_H

#include <stdio.h>

#include <cjson/cJSON.h>

typedef enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON, REPORT_MARKDOWN, REPORT_FORMATS } report_format;

/* "table", "csv", "json", "markdown"; NULL past the end. Static storage. */
const char *report_format_name(size_t format);

typedef struct report_out {
    FILE *f;
    report_format format;
    cJSON *document;

    /* Private. */
    int last, has_header; /* a report_place; 1: CSV has its header */
} report_out;

report_out report_begin(FILE *f, report_format format);

/* Writes the document as JSON where that is the format, and deletes it. Errors of the file are for the caller to look
 * for. Returns 0, or -1 when memory has run out. */
int report_end(report_out *out);

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* Adds members to an object: "key=%s other=%d", with one blank between them and a value for each. %s is text, %d and
 * %lu are whole numbers, %i is a truth value, %f a number, and %g a number of six digits; null if it is none. */
void report_add(cJSON *object, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a number of six digits if it is more than 0; else nothing: it is not known. */
void report_known(cJSON *object, const char *key, double x);

/* A new row at a list's end. NULL when out of memory, which cJSON's functions take for an object; report_end() says so.
 */
cJSON *report_row(cJSON *list);

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* Writes rows, below the keys of `columns` (with commas) if nothing is above them. Members of members count as the
 * row's own; those that it lacks are empty. */
void report_csv(report_out *out, const char *columns, const cJSON *list);

/* ---- Text and Markdown ------------------------------------------------------------------------------------------ */

/* 1: these are the format. What follows does nothing otherwise. */
int report_is_text(const report_out *out);

typedef enum report_place { REPORT_TITLE, REPORT_HEADING, REPORT_NOTE, REPORT_ROWS } report_place;
void report_text(report_out *out, report_place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* How numbers are shown: as they are, with about three digits, in percent, in KiB and so on, as a power of
 * two, in us and so on. UNIT_LEFT is for text at the left of its column. */
typedef enum column_unit {
    UNIT_NONE,
    UNIT_LEFT,
    UNIT_DIGITS,
    UNIT_PERCENT,
    UNIT_BYTES,
    UNIT_ELEMENTS,
    UNIT_SECONDS
} column_unit;

typedef struct report_column {
    const char *key, *heading;
    column_unit unit;
} report_column;

/* Writes the rows from number `first` on as a table; `columns`, less than REPORT_COLUMNS, end with the key NULL. With a
 * heading, which is left out with the table where there are no rows. */
enum { REPORT_COLUMNS = 96 };
void report_table(report_out *out, const char *heading, const cJSON *list, int first, const report_column *columns);

#endif
