/* Every allocation of a JSON document, or of a report that is made of one, is made to fail, one after the other, by
 * standing between the hooks and malloc(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_ladder.h"
#include "bench_nested.h"
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

static int write_ladder(FILE *f) {
    static ladder_results l;
    l = (ladder_results){.bench = results(), .at = rows[0].at, .read = rows[0].at, .n = 2};
    l.rungs[0] =
        (ladder_rung){.strategy = "flat.lastblock", .text = "text", .use = {.threads = 1}, .occupancy = {.limit = "x"}};
    l.rungs[1] = (ladder_rung){.strategy = "atomic.thread", .text = "text", .refusal = "why"};
    return ladder_write(f, &l, REPORT_JSON);
}

static int write_nested(FILE *f) {
    static const dpr_strategy tree = {.name = "dp.tree", .text = "text"}, other = {.name = "dp.other", .text = "text"};
    static nested_results n;
    memset(&n, 0, sizeof n);
    n.bench = results();
    n.sizes = 1;
    n.at[0] = rows[0].at;
    n.n = 2;
    n.depth = 3;
    n.strategies[0] = &tree;
    n.strategies[1] = &other;
    n.cells[0][0] = (nested_cell){.ran = 1, .report = {.failed = 1}};
    n.pools = 2;
    n.pool[1].there = 1;
    return nested_write(f, &n, REPORT_JSON);
}

static int write_part(FILE *f) {
    static bench_costs costs;
    costs.of[0].us.n = 7;
    costs.of[1].why[0] = 'x';
    return part_write(f, &costs);
}

static int write_failed_part(FILE *f) {
    return part_write_failure(f, "why");
}

static int write_values(FILE *f) {
    cJSON *list = cJSON_CreateArray();
    value v = {.c128 = {-0.0, 1}};
    cli_json_append(list, value_json(DPR_C128, &v));
    cli_json_append(list, value_json(DPR_F64, &v));
    cli_json_append(list, value_json(DPR_I64, &v));
    cli_json_append(list, value_json(DPR_BOOL, &v));
    char *text = cli_json_take(list, 1);
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
DOCUMENT(part)
DOCUMENT(failed_part)
DOCUMENT(values)
