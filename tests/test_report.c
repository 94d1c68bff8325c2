/* The writers of reports, each with rows that no tool has. */
#include <math.h>
#include <stdlib.h>

#include "cli_json.h"
#include "reports.h"
#include "support.h"

static const report_column columns[] = {{"name", "name", UNIT_LEFT},         {"whole", "whole", UNIT_NONE},
                                        {"time", "time", UNIT_DIGITS},       {"share", "share", UNIT_PERCENT},
                                        {"size", "size", UNIT_BYTES},        {"count", "count", UNIT_ELEMENTS},
                                        {"inner", "\u00b1inner", UNIT_NONE}, {NULL, NULL, UNIT_NONE}};

/* A row that has all, and one that has little. */
static void add_rows(cJSON *rows) {
    cJSON *row = report_row(rows);
    cJSON_AddStringToObject(row, "name", "a, \"b\"\x1b");
    report_add(row, "whole=%lu", UINT64_MAX);
    report_add(row, "time=%g", 12.3456789);
    report_add(row, "share=%g", 0.5);
    report_add(row, "size=%d", 4096);
    report_add(row, "count=%d", 1 << 20);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(row, "part"), "inner", 7);
    row = report_row(rows);
    cJSON_AddBoolToObject(row, "is", 1);
    report_add(row, "time=%g", -0.0);
    report_add(row, "share=%g", INFINITY);
    report_known(row, "size", 0);
}

static int write_all(FILE *f, const void *what, report_format format) {
    report_out out = report_begin(f, format);
    cJSON_AddStringToObject(out.document, "title", what);
    report_text(&out, REPORT_TITLE, "A %s", (const char *)what);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows"), *none = cJSON_AddArrayToObject(out.document, "none");
    add_rows(rows);
    report_csv(&out, "name,whole,time,share,inner,is", rows);
    report_csv(&out, "name,whole,time,share,inner,is", none);
    report_text(&out, REPORT_HEADING, "Rows");
    report_table(&out, NULL, rows, 0, columns);
    report_table(&out, "None", none, 0, columns);
    report_table(&out, "Last", rows, 1, columns);
    report_text(&out, REPORT_NOTE, "One");
    report_text(&out, REPORT_NOTE, "Two\x1b");
    return report_end(&out);
}

static void check_text(report_format format, const char *wanted) {
    char *text = report_text_of(write_all, "title", format);
    EXPECT_EQ_STR(wanted, text);
    free(text);
}

TEST(Report, text) {
    check_text(REPORT_TABLE, "A title\n"
                             "\nRows:\n"
                             "name                    whole   time   share      size  count  \u00b1inner\n"
                             "a, \"b\"?  18446744073709551615   12.3  50.0 %  4.00 KiB   2^20       7\n"
                             "-                           -  -0.00       -         -      -       -\n"
                             "\nLast:\n"
                             "name  whole   time  share  size  count  \u00b1inner\n"
                             "-         -  -0.00      -     -      -       -\n"
                             "\nOne\nTwo?\n");
}

TEST(Report, markdown) {
    check_text(REPORT_MARKDOWN, "## A title\n"
                                "\n### Rows\n\n"
                                "| name    |                whole |  time |  share |     size | count | \u00b1inner |\n"
                                "|:--|--:|--:|--:|--:|--:|--:|\n"
                                "| a, \"b\"? | 18446744073709551615 |  12.3 | 50.0 % | 4.00 KiB |  2^20 |      7 |\n"
                                "| -       |                    - | -0.00 |      - |        - |     - |      - |\n"
                                "\n### Last\n\n"
                                "| name | whole |  time | share | size | count | \u00b1inner |\n"
                                "|:--|--:|--:|--:|--:|--:|--:|\n"
                                "| -    |     - | -0.00 |     - |    - |     - |      - |\n"
                                "\nOne\n\nTwo?\n");
}

static int write_bar(FILE *f, const void *name, report_format format) {
    report_out out = report_begin(f, format);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows");
    cJSON_AddStringToObject(report_row(rows), "name", name);
    report_table(&out, NULL, rows, 0, (const report_column[]){{"name", "name", UNIT_LEFT}, {NULL, NULL, UNIT_NONE}});
    return report_end(&out);
}

TEST(Report, bars_do_not_end_cells_of_markdown) {
    static const char *const in_text[] = {"\na|b\n", NULL}, *const in_markdown[] = {"| a\\|b  |\n", NULL};
    check_report(write_bar, "a|b", REPORT_TABLE, in_text);
    check_report(write_bar, "a|b", REPORT_MARKDOWN, in_markdown);
}

TEST(Report, csv) {
    check_text(REPORT_CSV, "name,whole,time,share,inner,is\n"
                           "\"a, \"\"b\"\"?\",18446744073709551615,12.3457,0.5,7,\n"
                           ",,-0.0,,,1\n");
}

TEST(Report, json) {
    check_text(REPORT_JSON, "{\"title\": \"title\",\n"
                            "\"rows\": [\n"
                            "  {\"name\":\"a, \\\"b\\\"\\u001b\",\"whole\":18446744073709551615,\"time\":12.3457,"
                            "\"share\":0.5,\"size\":4096,\"count\":1048576,\"part\":{\"inner\":7}},\n"
                            "  {\"is\":true,\"time\":-0.0,\"share\":null}\n"
                            "],\n"
                            "\"none\": []}\n");
}
