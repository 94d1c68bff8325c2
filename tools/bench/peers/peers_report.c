#include "peers_report.h"

#include "cli_json.h"

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

static void add_libraries(cJSON *object, const peers_results *r) {
    cJSON_AddStringToObject(object, "dpr", dpr_version());
    if (r->cub[0])
        cJSON_AddStringToObject(object, "cub", r->cub);
    if (r->cublas[0])
        cJSON_AddStringToObject(object, "cublas", r->cublas);
}

int peers_write(FILE *f, const peers_results *r, report_format format) {
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
    return bench_report_end(&out, all);
}
