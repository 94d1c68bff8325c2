#include "bench_json.h"

#include "cli_json.h"
#include "figures.h"

void bench_json_case(cJSON *object, const bench_case *at) {
    cJSON_AddStringToObject(object, "op", dpr_op_name(at->op));
    cJSON_AddStringToObject(object, "dtype", dpr_dtype_name(at->dtype));
    cli_json_integer(object, "count", at->count);
    cJSON_AddStringToObject(object, "mode", bench_mode_name(at->mode));
    cJSON_AddStringToObject(object, "cache", bench_cache_name(at->cache));
}

static void add_summary(cJSON *object, const bench_summary *us) {
    report_number(object, "median_us", us->median);
    report_number(object, "low_us", us->low);
    report_number(object, "high_us", us->high);
    report_number(object, "spread", us->spread);
}

const char *bench_marked(char text[32], const bench_results *r, const bench_row *row, double figure) {
    char digits[32];
    if (results_timed(row))
        snprintf(text, 32, "%.20s%s%s%s%s", figure_digits(figure, digits), row->wrong ? "!" : "",
                 row->verdict == BENCH_SETTLED ? "" : "~", results_doubtful(r, row) ? "?" : "", row->chosen ? "*" : "");
    else
        snprintf(text, 32, "failed%s", row->chosen ? "*" : "");
    return text;
}

void bench_json_row(const report_out *out, cJSON *object, const bench_results *r, const bench_row *row) {
    char text[32];
    bench_json_case(object, &row->at);
    if (row->block || out->format == REPORT_CSV)
        cJSON_AddNumberToObject(object, "block", row->block);
    cJSON_AddNumberToObject(object, "samples", row->us.n);
    cJSON_AddNumberToObject(object, "calls", row->calls);
    if (results_timed(row)) {
        add_summary(object, &row->us);
        report_number(object, "gb_per_s", row->gb_per_s);
    }
    cJSON_AddBoolToObject(object, "chosen", row->chosen);
    cJSON_AddBoolToObject(object, "ok", results_right(row));
    cJSON_AddBoolToObject(object, "settled", row->verdict == BENCH_SETTLED);
    cJSON_AddBoolToObject(object, "doubtful", results_doubtful(r, row));
    cli_json_integer(object, "checked", (uint64_t)row->checked);
    cli_json_integer(object, "wrong", (uint64_t)row->wrong);
    cJSON_AddNumberToObject(object, "late", row->late);
    if (row->why[0])
        cJSON_AddStringToObject(object, out->format == REPORT_CSV ? "why" : "error", row->why);
    if (report_is_text(out))
        cJSON_AddStringToObject(object, "us", bench_marked(text, r, row, row->us.median));
}

void bench_json_cost(cJSON *object, const bench_cost *cost) {
    if (cost->us.n == 0) {
        cJSON_AddStringToObject(object, "why", cost->why);
        return;
    }
    cJSON_AddNumberToObject(object, "samples", cost->us.n);
    add_summary(object, &cost->us);
    cJSON_AddBoolToObject(object, "settled", cost->settled);
}
