#include "bench_json.h"

#include <math.h>

#include "cli_json.h"
#include "lists.h"

void bench_json_number(cJSON *object, const char *key, double x) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", x);
    cli_json_add(object, key, isfinite(x) ? cli_json_digits(text) : cJSON_CreateNull());
}

void bench_json_case(cJSON *object, const bench_case *at) {
    cJSON_AddStringToObject(object, "op", dpr_ops[at->op].name);
    cJSON_AddStringToObject(object, "dtype", dpr_dtypes[at->dtype].name);
    cli_json_integer(object, "count", at->count);
    cJSON_AddStringToObject(object, "mode", bench_mode_name(at->mode));
    cJSON_AddStringToObject(object, "cache", bench_cache_name(at->cache));
}

void bench_json_summary(cJSON *object, const bench_summary *us) {
    bench_json_number(object, "median_us", us->median);
    bench_json_number(object, "low_us", us->low);
    bench_json_number(object, "high_us", us->high);
    bench_json_number(object, "spread", us->spread);
}

void bench_json_times(cJSON *object, const bench_row *row) {
    cJSON_AddNumberToObject(object, "samples", row->us.n);
    cJSON_AddNumberToObject(object, "calls", row->calls);
    if (results_timed(row)) {
        bench_json_summary(object, &row->us);
        bench_json_number(object, "gb_per_s", row->gb_per_s);
    }
}

void bench_json_checks(cJSON *object, const bench_results *r, const bench_row *row) {
    cJSON_AddBoolToObject(object, "ok", results_right(row));
    cJSON_AddBoolToObject(object, "settled", row->verdict == BENCH_SETTLED);
    cJSON_AddBoolToObject(object, "doubtful", results_doubtful(r, row));
    cli_json_integer(object, "checked", (uint64_t)row->checked);
    cli_json_integer(object, "wrong", (uint64_t)row->wrong);
    cJSON_AddNumberToObject(object, "late", row->late);
    if (row->why[0])
        cJSON_AddStringToObject(object, "error", row->why);
}

void bench_json_block(cJSON *object, const bench_row *row) {
    if (row->block)
        cJSON_AddNumberToObject(object, "block", row->block);
}

static cJSON *omission_json(const bench_omission *omission) {
    cJSON *o = cJSON_CreateObject();
    bench_json_case(o, &omission->at);
    cJSON_AddStringToObject(o, "why", omission->why);
    return o;
}

static cJSON *device_json(const bench_device *d) {
    cJSON *o = cJSON_CreateObject();
    const int gpu = d->ordinal != DPR_DEVICE_CPU;
    cJSON_AddStringToObject(o, "name", d->name);
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
    bench_json_number(o, "accuracy", r->rule.half_width);
    cJSON_AddNumberToObject(o, "min_samples", r->rule.min_samples);
    cJSON_AddNumberToObject(o, "max_samples", r->rule.max_samples);
    bench_json_number(o, "budget_seconds", r->rule.seconds);
    cli_json_integer(o, "pool_bytes", r->pool_bytes);
    return o;
}

cJSON *bench_json_definitions(void) {
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

void bench_json_define_block(cJSON *definitions) {
    cJSON_AddStringToObject(definitions, "block",
                            "threads a block, at most, as asked for; without it, the strategy has its own");
}

int bench_json_member(FILE *f, const char *key, cJSON *value) {
    char *text = cli_json_take(value, 0);
    if (!text)
        return -1;
    fprintf(f, ",\n\"%s\": ", key);
    cli_json_put(f, text);
    cJSON_free(text);
    return 0;
}

int bench_json_item(FILE *f, const char **separator, cJSON *value) {
    char *text = cli_json_take(value, 0);
    if (!text)
        return -1;
    fprintf(f, "%s\n  ", *separator);
    cli_json_put(f, text);
    cJSON_free(text);
    *separator = ",";
    return 0;
}

int bench_json_heads(FILE *f, const bench_results *r, cJSON *definitions) {
    int status = bench_json_member(f, "commit", cJSON_CreateString(r->commit));
    status |= bench_json_member(f, "device", device_json(&r->device));
    status |= bench_json_member(f, "settings", settings_json(r));
    return status | bench_json_member(f, "definitions", definitions);
}

int bench_json_end(FILE *f, const bench_results *r) {
    const char *separator = "";
    int status = 0;
    fputs("\n],\n\"left_out\": [", f);
    for (size_t i = 0; i < r->omission_count; i++)
        status |= bench_json_item(f, &separator, omission_json(&r->omissions[i]));
    fputs("\n]}\n", f);
    return status;
}
