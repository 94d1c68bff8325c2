/* Every allocation of a JSON document, or of a report that is made of one, is made to fail, one after the other, by
 * standing between the hooks and malloc(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_compare.h"
#include "bench_lineup.h"
#include "bench_report.h"
#include "cli_json.h"
#include "support.h"
#include "value.h"

extern __typeof__(malloc) __wrap_malloc, __real_malloc;

static long calls, fail_at; /* fail_at is 0: none fails */

void *__wrap_malloc(size_t size) {
    calls++;
    return calls == fail_at ? NULL : __real_malloc(size);
}

/* The document, written with allocation number `fail` failing; 0: none. The caller frees it. */
static char *document(int (*write)(FILE *f), long fail, int *status) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    calls = 0;
    fail_at = fail;
    *status = write(f);
    fail_at = 0;
    (void)fclose(f);
    return text;
}

static void check_allocations(int (*write)(FILE *f)) {
    int status = -1;
    cli_json_watch();
    char *whole = document(write, 0, &status), *again = NULL;
    const long allocations = calls;
    EXPECT_EQ_I64(0, status);
    EXPECT_THAT(allocations > 3, "%ld allocations", allocations);
    for (long fail = 1; fail <= allocations; fail++) {
        free(document(write, fail, &status));
        EXPECT_THAT(status != 0, "allocation %ld of %ld failed, and nobody noticed", fail, allocations);
    }
    again = document(write, 0, &status);
    EXPECT_EQ_I64(0, status);
    EXPECT_EQ_STR(whole, again);
    free(whole);
    free(again);
}

/* ---- Documents -------------------------------------------------------------------------------------------------- */

static bench_row rows[] = {{.at = {.count = 1000},
                            .subject = "flat.lastblock",
                            .strategy = "flat.lastblock",
                            .chosen = 1,
                            .us = {.n = 7, .median = 2}},
                           {.at = {.count = 1000},
                            .subject = "dp.tree",
                            .strategy = "dp.tree",
                            .block = 64,
                            .why = "why",
                            .kernels = {.info = {.threads = 1, .limit = "x"}, .has_nested = 1, .nested = {.failed = 1}},
                            .us = {.n = 7, .median = 1}}};
static bench_omission omissions[] = {{.at = {.count = 10}, .why = "why"}};

static bench_results results(void) {
    return (bench_results){.device = {.ordinal = 0, .name = "name"},
                           .commit = "commit",
                           .rows = rows,
                           .row_count = LENGTH(rows),
                           .omissions = omissions,
                           .omission_count = LENGTH(omissions)};
}

static int write_bench(FILE *f) {
    const bench_results r = results();
    return bench_write(f, &r, REPORT_JSON);
}

static int write_csv(FILE *f) {
    const bench_results r = results();
    return bench_write(f, &r, REPORT_CSV);
}

static int write_table(FILE *f) {
    const bench_results r = results();
    return bench_write(f, &r, REPORT_TABLE);
}

static const lineup_strategy strategies[] = {{"dp.tree", "text"}, {"dp.other", "text"}};

/* Two strategies, one of which has a row. */
static lineup_results *lineup(int nested) {
    static lineup_results l;
    memset(&l, 0, sizeof l);
    l.bench = results();
    l.nested = nested;
    l.sizes = 1;
    l.at[0] = l.read = rows[0].at;
    l.n = 2;
    for (int i = 0; i < 2; i++)
        l.strategies[i] = strategies[i];
    return &l;
}

static int write_ladder(FILE *f) {
    return lineup_write(f, lineup(0), REPORT_JSON);
}

static int write_nested(FILE *f) {
    lineup_results *l = lineup(1);
    l->depth = 3;
    l->parts = 3;
    snprintf(l->part[0].line, sizeof l->part[0].line,
             "{\"pending\":1,\"launches\":[{\"launch\":\"x\",\"median_us\":1}]}");
    return lineup_write(f, l, REPORT_JSON);
}

/* Reads both sides, too. */
static int write_comparison(FILE *f) {
    static const char text[] =
        "{\"rows\":[{\"strategy\":\"a\",\"count\":8,\"chosen\":true,\"samples\":9,\"median_us\":1,\"low_us\":1,"
        "\"high_us\":1,\"spread\":0}]}";
    char why[COMPARE_WHY];
    cJSON *document = cJSON_Parse(text);
    compare_side old = {.name = "old", .document = document}, new = {.name = "new", .document = document};
    compare_results r = {.old = NULL};
    int status = compare_read(&old, why) | compare_read(&new, why);
    if (status == 0)
        status = compare_match(&old, &new, &(compare_rule){0.03, 0.1, 0}, &r) | compare_write(f, &r, REPORT_JSON);
    compare_free(&r);
    compare_free_side(&old);
    compare_free_side(&new);
    cJSON_Delete(document);
    return status;
}

static int write_values(FILE *f) {
    cJSON *list = cJSON_CreateArray();
    value v = {.c128 = {-0.0, 1}};
    cli_json_append(list, value_json(DPR_C128, &v));
    cli_json_append(list, value_json(DPR_F64, &v));
    cli_json_append(list, value_json(DPR_I64, &v));
    cli_json_append(list, value_json(DPR_BOOL, &v));
    char *text = cli_json_take(list);
    if (!text)
        return -1;
    cli_json_put(f, text);
    cJSON_free(text);
    return 0;
}

#define DOCUMENT(NAME)                                                                                                 \
    TEST(JsonAllocations, NAME) {                                                                                      \
        check_allocations(write_##NAME);                                                                               \
    }
DOCUMENT(bench)
DOCUMENT(csv)
DOCUMENT(table)
DOCUMENT(ladder)
DOCUMENT(nested)
DOCUMENT(comparison)
DOCUMENT(values)
