#include "bench_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tables.h"
#include "cli.h"
#include "lists.h"

const char *report_format_name(size_t format) {
    static const char *const names[] = {
        [REPORT_TABLE] = "table", [REPORT_CSV] = "csv", [REPORT_JSON] = "json", [REPORT_MARKDOWN] = "markdown"};
    return format < REPORT_FORMATS ? names[format] : NULL;
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

static void write_csv(FILE *f, const bench_results *r) {
    fputs("strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,ok,chosen,"
          "settled,doubtful\n",
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
        fprintf(f, ",%d,%d,%d,%d\n", results_timed(row) && row->wrong == 0, row->chosen, row->verdict == BENCH_SETTLED,
                results_doubtful(r, row));
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void number(cJSON *object, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", x);
    cJSON_AddRawToObject(object, key, text);
}

static void add_case(cJSON *object, const bench_case *at) {
    cJSON_AddStringToObject(object, "op", dpr_ops[at->op].name);
    cJSON_AddStringToObject(object, "dtype", dpr_dtypes[at->dtype].name);
    cli_json_integer(object, "count", at->count);
    cJSON_AddStringToObject(object, "mode", bench_mode_name(at->mode));
    cJSON_AddStringToObject(object, "cache", bench_cache_name(at->cache));
}

static cJSON *row_json(const bench_results *r, const bench_row *row) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", row->strategy);
    add_case(o, &row->at);
    cJSON_AddNumberToObject(o, "samples", row->us.n);
    cJSON_AddNumberToObject(o, "calls", row->calls);
    if (results_timed(row)) {
        number(o, "median_us", row->us.median);
        number(o, "low_us", row->us.low);
        number(o, "high_us", row->us.high);
        number(o, "spread", row->us.spread);
        number(o, "gb_per_s", row->gb_per_s);
    }
    cJSON_AddBoolToObject(o, "ok", results_timed(row) && row->wrong == 0);
    cJSON_AddBoolToObject(o, "chosen", row->chosen);
    cJSON_AddBoolToObject(o, "settled", row->verdict == BENCH_SETTLED);
    cJSON_AddBoolToObject(o, "doubtful", results_doubtful(r, row));
    cli_json_integer(o, "checked", (uint64_t)row->checked);
    cli_json_integer(o, "wrong", (uint64_t)row->wrong);
    cJSON_AddNumberToObject(o, "late", row->late);
    if (row->why[0])
        cli_json_string(o, "error", row->why);
    return o;
}

static cJSON *regret_json(const bench_regret *regret) {
    cJSON *o = cJSON_CreateObject();
    add_case(o, &regret->at);
    cJSON_AddStringToObject(o, "winner", regret->winner->strategy);
    number(o, "winner_us", regret->winner->us.median);
    cJSON_AddStringToObject(o, "chosen", regret->chosen->strategy);
    number(o, "chosen_us", regret->chosen->us.median);
    number(o, "regret_us", regret->us);
    number(o, "regret_percent", 100 * regret->fraction);
    return o;
}

static cJSON *omission_json(const bench_omission *omission) {
    cJSON *o = cJSON_CreateObject();
    add_case(o, &omission->at);
    cli_json_string(o, "why", omission->why);
    return o;
}

static cJSON *device_json(const bench_device *d) {
    cJSON *o = cJSON_CreateObject();
    const int gpu = d->ordinal != DPR_DEVICE_CPU;
    cli_json_string(o, "name", d->name);
    cJSON_AddStringToObject(o, "kind", gpu ? "gpu" : "cpu");
    cJSON_AddNumberToObject(o, gpu ? "sm_count" : "cores", d->sm_count);
    cli_json_integer(o, "cache_bytes", d->cache_bytes);
    if (!gpu)
        return o;
    cJSON_AddNumberToObject(o, "cuda_driver_version", d->driver_version);
    cJSON_AddNumberToObject(o, "cuda_runtime_version", d->runtime_version);
    cJSON_AddNumberToObject(o, "sm_clock_khz", d->sm_clock_khz);
    cJSON_AddNumberToObject(o, "memory_clock_khz", d->memory_clock_khz);
    cJSON_AddNumberToObject(o, "memory_bus_bits", d->memory_bus_bits);
    cli_json_integer(o, "memory_bytes", d->memory_bytes);
    return o;
}

static cJSON *settings_json(const bench_results *r) {
    cJSON *o = cJSON_CreateObject();
    number(o, "accuracy", r->rule.half_width);
    cJSON_AddNumberToObject(o, "min_samples", r->rule.min_samples);
    cJSON_AddNumberToObject(o, "max_samples", r->rule.max_samples);
    number(o, "budget_seconds", r->rule.seconds);
    cli_json_integer(o, "pool_bytes", r->pool_bytes);
    return o;
}

static cJSON *definitions_json(void) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "graph", "one replay of a CUDA graph of many calls, between two events, over the calls");
    cJSON_AddStringToObject(o, "stream",
                            "wall time of many calls into an idle stream and of waiting for the last, over the calls");
    cJSON_AddStringToObject(o, "blocking",
                            "wall time of calls that return with the result in host memory, one after another");
    cJSON_AddStringToObject(o, "cold",
                            "the cache is filled with other data before, by reading; calls rotate over buffers");
    cJSON_AddStringToObject(o, "hot", "all calls read one buffer that was read just before");
    cJSON_AddStringToObject(o, "interval", "low_us to high_us is a confidence interval of the median, 95 %");
    cJSON_AddStringToObject(o, "spread", "distance of the 10 % and 90 % quantiles over the median");
    return o;
}

/* One member of the document, on a line of its own. Deletes it. 0, or -1 when out of memory. */
static int write_member(FILE *f, const char *key, cJSON *value) {
    char *text = cJSON_PrintUnformatted(value);
    cJSON_Delete(value);
    if (text)
        fprintf(f, ",\n\"%s\": %s", key, text);
    cJSON_free(text);
    return text ? 0 : -1;
}

/* One item of a list, on a line of its own. */
static int write_item(FILE *f, const char **separator, cJSON *value) {
    char *text = cJSON_PrintUnformatted(value);
    cJSON_Delete(value);
    if (text)
        fprintf(f, "%s\n  %s", *separator, text);
    cJSON_free(text);
    *separator = ",";
    return text ? 0 : -1;
}

static int write_regrets(FILE *f, const bench_results *r) {
    const char *separator = "";
    bench_regret regret;
    int status = 0;
    for (size_t i = 0, n; i < r->row_count && status == 0; i += n) {
        n = results_case_rows(r, i);
        if (results_regret(r->rows + i, n, &regret))
            status = write_item(f, &separator, regret_json(&regret));
    }
    return status;
}

/* A line for each row, so that files of results can be compared by line. */
static int write_json(FILE *f, const bench_results *r) {
    const char *separator = "";
    fprintf(f, "{\"benchmark\": \"dpr bench\", \"version\": \"%s\"", dpr_version());
    int status = write_member(f, "commit", cJSON_CreateString(r->commit));
    status |= write_member(f, "device", device_json(&r->device));
    status |= write_member(f, "settings", settings_json(r));
    status |= write_member(f, "definitions", definitions_json());
    fprintf(f, ",\n\"interrupted\": %s,\n\"rows\": [", r->interrupted ? "true" : "false");
    for (size_t i = 0; i < r->row_count; i++)
        status |= write_item(f, &separator, row_json(r, &r->rows[i]));
    fputs("\n],\n\"regret\": [", f);
    status |= write_regrets(f, r);
    fputs("\n],\n\"left_out\": [", f);
    separator = "";
    for (size_t i = 0; i < r->omission_count; i++)
        status |= write_item(f, &separator, omission_json(&r->omissions[i]));
    fputs("\n]}\n", f);
    return status;
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
