#include "peers_report.h"

#include "cli_json.h"
#include "lists.h"
#include "peers_floors.h"

static const bench_definition definitions[] = {
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
    {"launch",
     "a kernel of one thread that reads nothing, launched as dpr's are; in blocking mode the host waits for a "
     "word that it writes"},
    {NULL, NULL}};

static const report_column floor_columns[] = {{"op", "operation", UNIT_NONE},       {"dtype", "type", UNIT_NONE},
                                              {"mode", "mode", UNIT_NONE},          {"cache", "cache", UNIT_NONE},
                                              {"low_count", "from", UNIT_ELEMENTS}, {"high_count", "to", UNIT_ELEMENTS},
                                              {"what", "what", UNIT_NONE},          {"bound", "bound", UNIT_NONE},
                                              {"verdict", "verdict", UNIT_LEFT},    {"worst", "worst", UNIT_NONE},
                                              {"worst_count", "at", UNIT_ELEMENTS}, {"counts", "sizes", UNIT_NONE},
                                              {"missed", "missed", UNIT_NONE},      {NULL, NULL, UNIT_NONE}};

static void add_row(const report_out *out, cJSON *row, const bench_results *r, const bench_row *from) {
    cJSON_AddStringToObject(row, "subject", from->subject);
    if (from->strategy)
        cJSON_AddStringToObject(row, "strategy", from->strategy);
    bench_json_row(out, row, r, from);
    if (from->ratio.n) {
        report_number(row, "ratio", from->ratio.median);
        report_number(row, "ratio_low", from->ratio.low);
        report_number(row, "ratio_high", from->ratio.high);
    }
}

static void write_tables(report_out *out, const peers_results *r) {
    const bench_results *all = &r->common;
    for (size_t i = 0, n; i < all->row_count; i += n) {
        const results_table t = results_table_at(all, i);
        n = t.n;
        bench_report_case(out, &all->rows[i].at, 0, 0, "");
        bench_report_sizes(out, &t, TABLE_SPREAD);
        bench_report_sizes(out, &t, TABLE_RATIO);
        bench_report_sizes(out, &t, TABLE_RATE);
    }
    report_text(out, REPORT_NOTE, "Times are medians, with half the distance of the 10 %% and 90 %% quantiles.");
    report_text(out, REPORT_NOTE,
                "Ratios are taken round by round: above 1, dpr is faster. In brackets: a 95 %% interval "
                "of the median.");
    report_text(out, REPORT_NOTE,
                "Copies move half of the array to other memory, so that as many bytes are read and "
                "written as others read.");
    if (!r->cublas[0])
        report_text(out, REPORT_NOTE, "Without cuBLAS.");
    if (all->ended)
        report_text(out, REPORT_NOTE, "It ended early: %s.", all->ended);
}

static void add_floor(const report_out *out, cJSON *row, const floor_rule *rule, const floor_verdict *v) {
    cJSON_AddStringToObject(row, "op", dpr_ops[rule->op].name);
    cJSON_AddStringToObject(row, "dtype", dpr_dtypes[rule->dtype].name);
    cJSON_AddStringToObject(row, "mode", bench_mode_name(rule->mode));
    cJSON_AddStringToObject(row, "cache", bench_cache_name(rule->cache));
    cli_json_integer(row, "low_count", rule->low);
    cli_json_integer(row, "high_count", rule->high);
    cJSON_AddStringToObject(row, "what", floors_kind_text(rule->kind));
    report_number(row, "bound", rule->bound);
    cJSON_AddNumberToObject(row, "counts", v->counts);
    cJSON_AddNumberToObject(row, "missed", v->missed);
    if (v->worst_count) {
        report_number(row, "worst", v->worst);
        cli_json_integer(row, "worst_count", v->worst_count);
    }
    if (report_is_text(out))
        cJSON_AddStringToObject(row, "verdict", v->counts == 0 ? "not measured" : v->missed ? "MISSES" : "holds");
}

static void write_floors(report_out *out, const bench_results *r) {
    const floors_tally t = floors_count(r);
    cJSON *floors = cJSON_AddArrayToObject(out->document, "floors");
    floor_rule rule;
    for (size_t i = 0; floors_rule(i, &rule) == 0; i++) {
        const floor_verdict v = floors_judge(&rule, r);
        add_floor(out, report_row(floors), &rule, &v);
    }
    report_table(out, "Floors", floors, 0, floor_columns);
    report_text(out, REPORT_NOTE,
                "Bounds of us and of growth are upper ones, the others lower ones. %d hold, %d are missed, %d were not "
                "measured.",
                t.held, t.missed, t.unmeasured);
}

static void add_libraries(cJSON *object, const peers_results *r) {
    cJSON_AddStringToObject(object, "dpr", dpr_version());
    if (r->cub[0])
        cJSON_AddStringToObject(object, "cub", r->cub);
    if (r->cublas[0])
        cJSON_AddStringToObject(object, "cublas", r->cublas);
}

int peers_write(FILE *f, const peers_results *r, report_format format, int with_floors) {
    const bench_results *all = &r->common;
    char title[96];
    snprintf(title, sizeof title, "%s%s%s%s", *r->cub ? ", CUB " : "", r->cub, *r->cublas ? ", cuBLAS " : "",
             r->cublas);
    report_out out = bench_report_begin(f, format, "dpr peers", all, title, definitions);
    add_libraries(cJSON_AddObjectToObject(out.document, "libraries"), r);
    cli_json_add(out.document, "ended_early", all->ended ? cJSON_CreateString(all->ended) : cJSON_CreateNull());
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows");
    for (size_t i = 0; i < all->row_count; i++)
        add_row(&out, report_row(rows), all, &all->rows[i]);
    report_csv(
        &out,
        "subject,strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,ratio,"
        "ratio_low,ratio_high,ok,settled,doubtful,why",
        rows);
    if (report_is_text(&out))
        write_tables(&out, r);
    if (with_floors)
        write_floors(&out, all);
    return bench_report_end(&out, all);
}
