#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli_json.h"
#include "defuse.h"
#include "figures.h"

/* Bytes of a cell's text, with the zero at its end. Longer texts are cut. */
enum { REPORT_CELL = 512 };

const char *report_format_name(size_t format) {
    static const char *const names[] = {
        [REPORT_TABLE] = "table", [REPORT_CSV] = "csv", [REPORT_JSON] = "json", [REPORT_MARKDOWN] = "markdown"};
    return format < REPORT_FORMATS ? names[format] : NULL;
}

report_out report_begin(FILE *f, report_format format) {
    return (report_out){.f = f, .format = format, .document = cJSON_CreateObject()};
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

static cJSON *six_digits(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", x);
    return isfinite(x) ? cli_json_digits(text) : cJSON_CreateNull();
}

static cJSON *whole(uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return cli_json_digits(text);
}

/* The next argument, of the conversion that begins at `at`. */
static cJSON *next_value(const char *at, va_list *arguments) {
    switch (at[1]) {
    case 's':
        return cJSON_CreateString(va_arg(*arguments, const char *));
    case 'i':
        return cJSON_CreateBool(va_arg(*arguments, int));
    case 'd':
        return cJSON_CreateNumber(va_arg(*arguments, int));
    case 'l':
        return whole(va_arg(*arguments, unsigned long));
    case 'f':
        return cJSON_CreateNumber(va_arg(*arguments, double));
    default:
        return six_digits(va_arg(*arguments, double));
    }
}

void report_add(cJSON *object, const char *format, ...) {
    char key[32];
    va_list arguments;
    va_start(arguments, format);
    for (const char *at = format, *value; *at; at = value + strcspn(value, " ")) {
        at += *at == ' ';
        value = strchr(at, '%');
        snprintf(key, sizeof key, "%.*s", (int)(value - at - 1), at);
        cli_json_add(object, key, next_value(value, &arguments));
    }
    va_end(arguments);
}

void report_known(cJSON *object, const char *key, double x) {
    if (x > 0)
        cli_json_add(object, key, six_digits(x));
}

cJSON *report_row(cJSON *list) {
    cJSON *row = cJSON_CreateObject();
    cli_json_append(list, row);
    return list ? row : NULL;
}

/* The row's member, or its members' member; NULL if there is none. */
static const cJSON *find(const cJSON *row, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key), *member = NULL;
    cJSON_ArrayForEach(member, row) {
        if (!item && cJSON_IsObject(member))
            item = find(member, key);
    }
    return item;
}

/* A number's digits; NULL for what is none. */
static const char *digits_of(const cJSON *item, char text[32]) {
    snprintf(text, 32, "%.15g", cJSON_IsNumber(item) ? item->valuedouble : 0);
    return cJSON_IsRaw(item) ? item->valuestring : cJSON_IsNumber(item) ? text : NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void put_value(FILE *f, const cJSON *value) {
    char *text = cJSON_PrintUnformatted(value);
    cli_json_put(f, text ? text : "");
    cJSON_free(text);
}

/* A line for each member and for each row of a list, so that files of results can be compared by line. */
static void put_document(FILE *f, const cJSON *document) {
    const cJSON *member = NULL, *row = NULL;
    const char *before = "{";
    cJSON_ArrayForEach(member, document) {
        fprintf(f, "%s\"%s\": ", before, member->string);
        before = ",\n";
        if (!cJSON_IsArray(member) || !cJSON_IsObject(member->child)) {
            put_value(f, member);
            continue;
        }
        cJSON_ArrayForEach(row, member) {
            fputs(row == member->child ? "[\n  " : ",\n  ", f);
            put_value(f, row);
        }
        fputs("\n]", f);
    }
    fputs("}\n", f);
}

int report_end(report_out *out) {
    if (out->format == REPORT_JSON)
        put_document(out->f, out->document);
    cJSON_Delete(out->document);
    return cli_json_failed() ? -1 : 0;
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* Text is defused, and in quotes if it has characters that need them. */
static void put_field(FILE *f, const cJSON *item) {
    char text[REPORT_CELL], digits[32];
    const char *number = digits_of(item, digits), *truth = cJSON_IsTrue(item) ? "1" : cJSON_IsFalse(item) ? "0" : "";
    snprintf(text, sizeof text, "%s", cJSON_IsString(item) ? item->valuestring : number ? number : truth);
    defuse(text);
    const char *quote = strpbrk(text, ",\"") ? "\"" : "";
    fputs(quote, f);
    for (const char *at = text; *at; at++)
        fprintf(f, *at == '"' ? "\"%c" : "%c", *at);
    fputs(quote, f);
}

void report_csv(report_out *out, const char *columns, const cJSON *list) {
    const cJSON *row = NULL;
    char key[32];
    if (out->format != REPORT_CSV)
        return;
    if (!out->has_header)
        fprintf(out->f, "%s\n", columns);
    out->has_header = 1;
    cJSON_ArrayForEach(row, list) {
        for (const char *at = columns; *at; at += strcspn(at, ",")) {
            at += *at == ',';
            snprintf(key, sizeof key, "%.*s", (int)strcspn(at, ","), at);
            fputs(at > columns ? "," : "", out->f);
            put_field(out->f, find(row, key));
        }
        fputs("\n", out->f);
    }
}

/* ---- Text and Markdown ------------------------------------------------------------------------------------------ */

int report_is_text(const report_out *out) {
    return out->format == REPORT_TABLE || out->format == REPORT_MARKDOWN;
}

/* Whether the character begins markup in Markdown, or ends a cell. A star or a low line does so only before text, and a
 * link without a definition elsewhere needs "](" (CommonMark 0.31, 6.2 and 6.3). */
static int is_markup(const char *at) {
    const int before_text = at[1] && at[1] != ' ';
    return strchr("\\`|", *at) || (strchr("*_", *at) && before_text) || (*at == ']' && at[1] == '(');
}

/* Writes text, in Markdown so that it has no markup. HTML takes references, because not all dialects know \<. */
static void put_text(const report_out *out, const char *text) {
    for (; *text; text++) {
        if (out->format != REPORT_MARKDOWN)
            fputc(*text, out->f);
        else if (*text == '<' || *text == '>' || *text == '&')
            fputs(*text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", out->f);
        else
            fprintf(out->f, is_markup(text) ? "\\%c" : "%c", *text);
    }
}

/* A heading has an empty line before it. So has a note, but not after a heading, or in text after another note. */
void report_text(report_out *out, report_place place, const char *format, ...) {
    static const char *const marks[] = {[REPORT_TITLE] = "## ", [REPORT_HEADING] = "### ", [REPORT_NOTE] = ""};
    const int markdown = out->format == REPORT_MARKDOWN;
    const int joins = out->last == REPORT_HEADING || (out->last == REPORT_NOTE && !markdown);
    char text[1024];
    va_list arguments;
    if (!report_is_text(out))
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs(place == REPORT_HEADING || (place == REPORT_NOTE && !joins) ? "\n" : "", out->f);
    fputs(markdown ? marks[place] : "", out->f);
    defuse(text);
    put_text(out, text);
    fputs(place != REPORT_HEADING ? "\n" : markdown ? "\n\n" : ":\n", out->f);
    out->last = (int)place;
}

static void print_cell(char text[REPORT_CELL], const cJSON *item, column_unit unit) {
    char buffer[32];
    const char *digits = digits_of(item, buffer);
    const double x = digits ? strtod(digits, NULL) : 0;
    if (digits && unit == UNIT_DIGITS)
        digits = figure_digits(x, buffer);
    else if (digits && unit == UNIT_BYTES)
        digits = figure_bytes(strtoull(digits, NULL, 10), buffer);
    else if (digits && unit == UNIT_ELEMENTS)
        digits = figure_elements(strtoull(digits, NULL, 10), buffer);
    else if (digits && unit == UNIT_SECONDS)
        digits = figure_time(x, buffer);
    if (digits && unit == UNIT_PERCENT)
        snprintf(text, REPORT_CELL, "%.1f %%", 100 * x);
    else
        snprintf(text, REPORT_CELL, "%s", digits ? digits : cJSON_IsString(item) ? item->valuestring : "-");
    defuse(text);
}

/* The heading (row NULL), or the cell of a row. */
static void print_text(char text[REPORT_CELL], const report_column *column, const cJSON *row) {
    if (row)
        print_cell(text, find(row, column->key), column->unit);
    else
        snprintf(text, REPORT_CELL, "%s", column->heading);
}

/* Characters, of which all but the first bytes of UTF-8 sequences are parts. */
static int characters(const char *text) {
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static int width_of(const report_column *column, const cJSON *first) {
    char text[REPORT_CELL];
    int width = characters(column->heading);
    for (const cJSON *row = first; row; row = row->next) {
        print_text(text, column, row);
        width = characters(text) > width ? characters(text) : width;
    }
    return width;
}

/* A line of cells, or of headings. Text at the left of the last column is not filled up. */
static void put_row(const report_out *out, const report_column *columns, const int *widths, const cJSON *row) {
    const int markdown = out->format == REPORT_MARKDOWN;
    char text[REPORT_CELL];
    for (const report_column *c = columns; c->key; c++) {
        print_text(text, c, row);
        const int blanks = widths[c - columns] - characters(text), left = c->unit == UNIT_LEFT;
        const int after = left && (markdown || c[1].key) ? blanks : 0;
        fputs(markdown ? "| " : c > columns ? "  " : "", out->f);
        fprintf(out->f, "%*s", left ? 0 : blanks, "");
        put_text(out, text);
        fprintf(out->f, "%*s%s", after, "", markdown ? " " : "");
    }
    fputs(markdown ? "|\n" : "\n", out->f);
}

void report_table(report_out *out, const char *heading, const cJSON *list, int first, const report_column *columns) {
    const cJSON *row = cJSON_GetArrayItem(list, first);
    const int markdown = out->format == REPORT_MARKDOWN;
    int widths[REPORT_COLUMNS] = {0};
    if (!report_is_text(out) || (heading && !row))
        return;
    if (heading)
        report_text(out, REPORT_HEADING, "%s", heading);
    for (size_t c = 0; columns[c].key; c++)
        widths[c] = width_of(&columns[c], row);
    fputs(markdown && out->last != REPORT_HEADING ? "\n" : "", out->f);
    put_row(out, columns, widths, NULL);
    for (const report_column *c = columns; markdown && c->key; c++)
        fprintf(out->f, "%s%s", c->unit == UNIT_LEFT ? "|:--" : "|--:", c[1].key ? "" : "|\n");
    for (; row; row = row->next)
        put_row(out, columns, widths, row);
    out->last = REPORT_ROWS;
}
