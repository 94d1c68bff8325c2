#include <stdlib.h>

#include "cli.h"
#include "lists.h"
#include "peers_floors.h"
#include "peers_report.h"

const char *peers_format_name(size_t format) {
    static const char *const names[] = {[PEERS_TABLE] = "table", [PEERS_JSON] = "json", [PEERS_MARKDOWN] = "markdown"};
    return format < PEERS_FORMATS ? names[format] : NULL;
}

int peers_write(FILE *f, const peers_results *r, peers_format format, int with_floors) {
    if (format == PEERS_JSON)
        return peers_write_json(f, r, with_floors);
    peers_write_tables(f, r, format == PEERS_MARKDOWN);
    if (with_floors)
        peers_write_floors(f, r, format == PEERS_MARKDOWN);
    return 0;
}

/* ---- Objects ---------------------------------------------------------------------------------------------------- */

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

static cJSON *row_json(const peers_results *r, const peers_row *row) {
    const bench_row *b = &row->row;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "subject", b->strategy);
    if (row->ran)
        cJSON_AddStringToObject(o, "strategy", row->ran);
    add_case(o, &b->at);
    cJSON_AddNumberToObject(o, "samples", b->us.n);
    cJSON_AddNumberToObject(o, "calls", b->calls);
    if (results_timed(b)) {
        number(o, "median_us", b->us.median);
        number(o, "low_us", b->us.low);
        number(o, "high_us", b->us.high);
        number(o, "spread", b->us.spread);
        number(o, "gb_per_s", b->gb_per_s);
    }
    if (row->ratio.n) {
        number(o, "ratio", row->ratio.median);
        number(o, "ratio_low", row->ratio.low);
        number(o, "ratio_high", row->ratio.high);
    }
    cJSON_AddBoolToObject(o, "ok", peers_good(row));
    cJSON_AddBoolToObject(o, "settled", b->verdict == BENCH_SETTLED);
    cJSON_AddBoolToObject(o, "doubtful", results_doubtful(&r->common, b));
    cli_json_integer(o, "checked", (uint64_t)b->checked);
    cli_json_integer(o, "wrong", (uint64_t)b->wrong);
    cJSON_AddNumberToObject(o, "late", b->late);
    if (b->why[0])
        cli_json_string(o, "error", b->why);
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
    cli_json_string(o, "name", d->name);
    cJSON_AddStringToObject(o, "kind", "gpu");
    cJSON_AddNumberToObject(o, "sm_count", d->sm_count);
    cli_json_integer(o, "cache_bytes", d->cache_bytes);
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

static cJSON *libraries_json(const peers_results *r) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "dpr", dpr_version());
    if (r->cub[0])
        cJSON_AddStringToObject(o, "cub", r->cub);
    if (r->cublas[0])
        cJSON_AddStringToObject(o, "cublas", r->cublas);
    return o;
}

static cJSON *definitions_json(void) {
    static const struct {
        const char *key, *text;
    } all[] = {
        {"graph", "one replay of a CUDA graph of many calls, between two events, over the calls"},
        {"stream", "wall time of many calls into an idle stream and of waiting for the last, over the calls"},
        {"blocking", "wall time of calls that return with the result in host memory, one after another"},
        {"cold", "the cache is filled with other data before, by reading; calls rotate over buffers"},
        {"hot", "all calls read one buffer that was read just before"},
        {"interval", "low_us to high_us is a confidence interval of the median, 95 %"},
        {"spread", "distance of the 10 % and 90 % quantiles over the median"},
        {"ratio", "median of a peer's time over that of dpr in the same round: above 1, dpr is faster"},
        {"dpr", "the planner's choice: dpr_plan_run(), and dpr_reduce_ex() in blocking mode"},
        {"dpr.async", "the same with dpr_reduce_async()"},
        {"cub", "accumulated as dpr does; in blocking mode with cudaMemcpyAsync() and cudaStreamSynchronize()"},
        {"cub.memcpy", "with cudaMemcpy()"},
        {"cub.pinned", "the result written to pinned memory, and cudaStreamSynchronize()"},
        {"cub.native", "summed in the type of the elements"},
        {"cub.transform", "elements widened by a transform iterator"},
        {"cublas.dot", "dot product of the array with itself"},
        {"copy", "half of the array to other device memory: gb_per_s are read and written"},
    };
    cJSON *o = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        cJSON_AddStringToObject(o, all[i].key, all[i].text);
    return o;
}

static cJSON *floor_json(const floor_rule *rule, const floor_verdict *v) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "op", dpr_ops[rule->op].name);
    cJSON_AddStringToObject(o, "dtype", dpr_dtypes[rule->dtype].name);
    cJSON_AddStringToObject(o, "mode", bench_mode_name(rule->mode));
    cJSON_AddStringToObject(o, "cache", bench_cache_name(rule->cache));
    cli_json_integer(o, "low_count", rule->low);
    cli_json_integer(o, "high_count", rule->high);
    cJSON_AddStringToObject(o, "what", floors_kind_text(rule->kind));
    number(o, "bound", rule->bound);
    cJSON_AddNumberToObject(o, "counts", v->counts);
    cJSON_AddNumberToObject(o, "missed", v->missed);
    if (v->worst_count) {
        number(o, "worst", v->worst);
        cli_json_integer(o, "worst_count", v->worst_count);
    }
    return o;
}

/* ---- The document ----------------------------------------------------------------------------------------------- */

/* One member, on a line of its own. Deletes it. 0, or -1 when out of memory. */
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

static int write_floors(FILE *f, const peers_results *r) {
    const char *separator = "";
    floor_rule rule;
    int status = 0;
    fputs("\n],\n\"floors\": [", f);
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const floor_verdict v = floors_judge(&rule, r);
        status |= write_item(f, &separator, floor_json(&rule, &v));
    }
    return status;
}

int peers_write_json(FILE *f, const peers_results *r, int with_floors) {
    const char *separator = "";
    fputs("{\"benchmark\": \"dpr peers\"", f);
    int status = write_member(f, "libraries", libraries_json(r));
    status |= write_member(f, "commit", cJSON_CreateString(r->common.commit));
    status |= write_member(f, "device", device_json(&r->common.device));
    status |= write_member(f, "settings", settings_json(&r->common));
    status |= write_member(f, "definitions", definitions_json());
    status |= write_member(f, "ended_early", r->ended ? cJSON_CreateString(r->ended) : cJSON_CreateNull());
    fputs(",\n\"rows\": [", f);
    for (size_t i = 0; i < r->count; i++)
        status |= write_item(f, &separator, row_json(r, &r->rows[i]));
    if (with_floors)
        status |= write_floors(f, r);
    fputs("\n],\n\"left_out\": [", f);
    separator = "";
    for (size_t i = 0; i < r->common.omission_count; i++)
        status |= write_item(f, &separator, omission_json(&r->common.omissions[i]));
    fputs("\n]}\n", f);
    return status;
}
