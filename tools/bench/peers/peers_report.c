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

/* Of segments. */
static const bench_definition of_segments[] = {
    {"ratio", "median of a peer's time over that of dpr in the same round: above 1, dpr is faster"},
    {"dpr", "dpr_reduce_segments_async(), and dpr_reduce_segments() in blocking mode"},
    {"cub", "cub::DeviceSegmentedReduce, accumulated as dpr does"},
    {"cub.bykey", "cub::DeviceReduce::ReduceByKey with the number of its segment as an element's key, which is read "
                  "in addition; not of empty segments"},
    {"dpr.bykey", "dpr_reduce_by_key_async(), and dpr_reduce_by_key() in blocking mode, with the keys of cub.bykey, "
                  "which are read in addition. Its ratio is to dpr, which is given the offsets"},
    {"cusparse", "product of a sparse matrix, whose rows the segments are, and a vector of ones; indices of columns "
                 "are read in addition"},
    {"bytes", "elements, offsets and results of one call; gb_per_s are of these"},
    {"over_floor", "the median over the time in which the device reads as many bytes, at read_gb_per_s"},
    {NULL, NULL}};

static const bench_definition of_axes[] = {
    {"ratio", "median of a peer's time over that of dpr in the same round: above 1, dpr is faster"},
    {"dpr", "dpr_reduce_axes_async(), and dpr_reduce_axes() in blocking mode"},
    {"cub", "cub::DeviceSegmentedReduce, accumulated as dpr does, with segments of one length since CUB 3.1; where "
            "others lie between a result's elements, through an iterator that computes where each is"},
    {"cublas.gemv", "product of a matrix, or of several, and a vector of ones, which is read in addition"},
    {"bytes", "elements and results of one call; gb_per_s are of these"},
    {"over_floor", "the median over the time in which the device reads as many bytes, at read_gb_per_s"},
    {NULL, NULL}};

static const char csv_of_many[] =
    "subject,strategy,op,dtype,segments,axes,count,results,bytes,mode,cache,samples,calls,median_us,low_us,high_us,"
    "spread,gb_per_s,over_floor,ratio,ratio_low,ratio_high,ok,settled,doubtful,why";

static const char csv[] = "subject,strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,"
                          "gb_per_s,ratio,ratio_low,ratio_high,ok,settled,doubtful,why";

/* NULL: results are of whole arrays. */
static const bench_shape *shape_of(const peers_results *r) {
    return r->common.row_count > 0 ? r->common.rows[0].at.shape : NULL;
}

static void say_notes(report_out *out, const peers_results *r) {
    const bench_shape *shape = shape_of(r);
    report_text(out, REPORT_NOTE, "Times are medians, with half the distance of the 10 %% and 90 %% quantiles.");
    report_text(out, REPORT_NOTE,
                "Ratios are taken round by round: above 1, dpr is faster. In brackets: a 95 %% interval "
                "of the median.");
    if (!shape)
        report_text(out, REPORT_NOTE,
                    "Copies move half of the array to other memory, so that as many bytes are read and "
                    "written as others read.");
    if (!r->cublas[0] && (!shape || shape->dimensions > 0))
        report_text(out, REPORT_NOTE, "Without cuBLAS.");
    if (r->common.ended)
        report_text(out, REPORT_NOTE, "It ended early: %s.", r->common.ended);
}

static void add_libraries(cJSON *object, const peers_results *r) {
    cJSON_AddStringToObject(object, "dpr", dpr_version());
    if (r->cub[0])
        cJSON_AddStringToObject(object, "cub", r->cub);
    if (r->cublas[0])
        cJSON_AddStringToObject(object, "cublas", r->cublas);
    if (r->cusparse[0])
        cJSON_AddStringToObject(object, "cusparse", r->cusparse);
}

int peers_write(FILE *f, const peers_results *r, report_format format) {
    const char *ended = r->common.ended;
    const bench_shape *shape = shape_of(r);
    char title[128];
    snprintf(title, sizeof title, "%s%s%s%s%s%s", *r->cub ? ", CUB " : "", r->cub, *r->cublas ? ", cuBLAS " : "",
             r->cublas, *r->cusparse ? ", cuSPARSE " : "", r->cusparse);
    report_out out = bench_report_begin(f, format, "dpr peers", &r->common, title,
                                        !shape                  ? definitions
                                        : shape->dimensions > 0 ? of_axes
                                                                : of_segments);
    add_libraries(cJSON_AddObjectToObject(out.document, "libraries"), r);
    cli_json_add(out.document, "ended_early", ended ? cJSON_CreateString(ended) : cJSON_CreateNull());
    bench_report_rows(&out, &r->common, shape ? csv_of_many : csv, 1);
    say_notes(&out, r);
    return bench_report_end(&out, &r->common);
}
