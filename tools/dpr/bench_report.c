#include "bench_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_json.h"
#include "bench_tables.h"
#include "defuse.h"
#include "lists.h"

const char *report_format_name(size_t format) {
    static const char *const names[] = {
        [REPORT_TABLE] = "table", [REPORT_CSV] = "csv", [REPORT_JSON] = "json", [REPORT_MARKDOWN] = "markdown"};
    return format < REPORT_FORMATS ? names[format] : NULL;
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

static void write_csv(FILE *f, const bench_results *r) {
    fputs("strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,ok,chosen,"
          "settled,doubtful,block\n",
          f);
    for (size_t i = 0; i < r->row_count; i++) {
        const bench_row *row = &r->rows[i];
        const bench_case *at = &row->at;
        fprintf(f, "%s,%s,%s,%" PRIu64 ",%s,%s,%d,%d,", row->strategy, dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
                at->count, bench_mode_name(at->mode), bench_cache_name(at->cache), row->us.n, row->calls);
        if (results_timed(row))
            fprintf(f, "%.6g,%.6g,%.6g,%.4g,%.6g", row->us.median, row->us.low, row->us.high, row->us.spread,
                    row->gb_per_s);
        else
            fputs(",,,,", f);
        fprintf(f, ",%d,%d,%d,%d,%d\n", results_right(row), row->chosen, row->verdict == BENCH_SETTLED,
                results_doubtful(r, row), row->block);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static cJSON *row_json(const bench_results *r, const bench_row *row) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", row->strategy);
    bench_json_case(o, &row->at);
    bench_json_block(o, row);
    bench_json_times(o, row);
    cJSON_AddBoolToObject(o, "chosen", row->chosen);
    bench_json_checks(o, r, row);
    return o;
}

static cJSON *regret_json(const bench_regret *regret) {
    cJSON *o = cJSON_CreateObject();
    bench_json_case(o, &regret->at);
    cJSON_AddStringToObject(o, "winner", regret->winner->strategy);
    bench_json_number(o, "winner_us", regret->winner->us.median);
    cJSON_AddStringToObject(o, "chosen", regret->chosen->strategy);
    bench_json_number(o, "chosen_us", regret->chosen->us.median);
    bench_json_number(o, "regret_us", regret->us);
    bench_json_number(o, "regret_percent", 100 * regret->fraction);
    return o;
}

static int write_regrets(FILE *f, const bench_results *r) {
    const char *separator = "";
    bench_regret regret;
    int status = 0;
    for (size_t i = 0, n; i < r->row_count && status == 0; i += n) {
        n = results_case_rows(r, i);
        if (results_regret(r->rows + i, n, &regret))
            status = bench_json_item(f, &separator, regret_json(&regret));
    }
    return status;
}

static cJSON *definitions_json(void) {
    cJSON *o = bench_json_definitions();
    bench_json_define_block(o);
    return o;
}

/* A line for each row, so that files of results can be compared by line. */
static int write_json(FILE *f, const bench_results *r) {
    const char *separator = "";
    fprintf(f, "{\"benchmark\": \"dpr bench\", \"version\": \"%s\"", dpr_version());
    int status = bench_json_heads(f, r, definitions_json());
    fprintf(f, ",\n\"interrupted\": %s,\n\"rows\": [", r->interrupted ? "true" : "false");
    for (size_t i = 0; i < r->row_count; i++)
        status |= bench_json_item(f, &separator, row_json(r, &r->rows[i]));
    fputs("\n],\n\"regret\": [", f);
    status |= write_regrets(f, r);
    return status | bench_json_end(f, r);
}

int report_write(FILE *f, const bench_results *r, report_format format) {
    switch (format) {
    case REPORT_CSV:
        write_csv(f, r);
        return 0;
    case REPORT_JSON:
        return write_json(f, r);
    default:
        return tables_write(f, r, format == REPORT_MARKDOWN);
    }
}

void report_write_quoted(FILE *f, const char *text) {
    char clean[BENCH_WHY];
    snprintf(clean, sizeof clean, "%s", text);
    defuse(clean);
    fputs(",\"", f);
    for (const char *at = clean; *at; at++)
        fprintf(f, *at == '"' ? "\"%c" : "%c", *at);
    fputs("\"", f);
}
