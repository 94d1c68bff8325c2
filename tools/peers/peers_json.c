#include <stdlib.h>

#include "bench_json.h"
#include "cli_json.h"
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
    const int status = peers_write_tables(f, r, format == PEERS_MARKDOWN);
    if (with_floors)
        peers_write_floors(f, &r->common, format == PEERS_MARKDOWN);
    return status;
}

/* ---- Objects ---------------------------------------------------------------------------------------------------- */

static cJSON *row_json(const bench_results *r, const bench_row *row) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "subject", row->subject);
    if (row->strategy)
        cJSON_AddStringToObject(o, "strategy", row->strategy);
    bench_json_case(o, &row->at);
    bench_json_times(o, row);
    if (row->ratio.n) {
        bench_json_number(o, "ratio", row->ratio.median);
        bench_json_number(o, "ratio_low", row->ratio.low);
        bench_json_number(o, "ratio_high", row->ratio.high);
    }
    bench_json_checks(o, r, row);
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

/* Of what every measurement has, and of the peers. */
static cJSON *definitions_json(void) {
    static const struct {
        const char *key, *text;
    } all[] = {
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
        {"launch", "a kernel of one thread that reads nothing, launched as dpr's are; in blocking mode the host waits "
                   "for a word that it writes"},
    };
    cJSON *o = bench_json_definitions();
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
    bench_json_number(o, "bound", rule->bound);
    cJSON_AddNumberToObject(o, "counts", v->counts);
    cJSON_AddNumberToObject(o, "missed", v->missed);
    if (v->worst_count) {
        bench_json_number(o, "worst", v->worst);
        cli_json_integer(o, "worst_count", v->worst_count);
    }
    return o;
}

/* ---- The document ----------------------------------------------------------------------------------------------- */

static int write_floors(FILE *f, const bench_results *r) {
    const char *separator = "";
    floor_rule rule;
    int status = 0;
    fputs("\n],\n\"floors\": [", f);
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const floor_verdict v = floors_judge(&rule, r);
        status |= bench_json_item(f, &separator, floor_json(&rule, &v));
    }
    return status;
}

int peers_write_json(FILE *f, const peers_results *r, int with_floors) {
    const bench_results *all = &r->common;
    const char *separator = "";
    fputs("{\"benchmark\": \"dpr peers\"", f);
    int status = bench_json_member(f, "libraries", libraries_json(r));
    status |= bench_json_heads(f, all, definitions_json());
    status |= bench_json_member(f, "ended_early", all->ended ? cJSON_CreateString(all->ended) : cJSON_CreateNull());
    fputs(",\n\"rows\": [", f);
    for (size_t i = 0; i < all->row_count; i++)
        status |= bench_json_item(f, &separator, row_json(all, &all->rows[i]));
    if (with_floors)
        status |= write_floors(f, all);
    return status | bench_json_end(f, all);
}
