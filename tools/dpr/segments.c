#include "segments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"
#include "timing.h"
#include "value.h"

enum { SHOWN = 10 }; /* results, if there is no file for all of them */

typedef struct work {
    asked *a;
    const segments_asked *s;
    const char *file;
    source array;
    const void *elements;
    size_t count;
    dpr_segments segments;
    unsigned char *offsets, *results;
    size_t result_bytes;
    double seconds;
} work;

/* Opens a file whose whole array is one window. CLI_OK, or CLI_FAILED after a message; source_close() is due in either
 * case. */
static int open_whole(source *from, const char *file, const dpr_dtype *raw, const void **elements, size_t *count) {
    *elements = NULL;
    *count = 0;
    int status = source_open(from, file, raw, SIZE_MAX / 2);
    if (status == 0)
        status = source_next(from, elements, count);
    return status < 0 ? cli_error("%s: %s", file, from->why) : CLI_OK;
}

/* After the last look at the elements: the file may have changed meanwhile. */
static int check_unchanged(source *from, const char *file) {
    const void *more;
    size_t count;
    return source_next(from, &more, &count) < 0 ? cli_error("%s: %s", file, from->why) : CLI_OK;
}

static dpr_dtype dtype_of(const work *w) {
    return w->array.array.dtype;
}

static dpr_dtype result_dtype(const work *w) {
    return dpr_result_dtype(w->a->ops[0], dtype_of(w));
}

/* ---- Reducing --------------------------------------------------------------------------------------------------- */

static int is_offset(dpr_dtype dtype) {
    return dtype == DPR_I32 || dtype == DPR_U32 || dtype == DPR_I64 || dtype == DPR_U64;
}

/* Copies the offsets, because only one file at a time is mapped. */
static int copy_offsets(work *w, const source *from, const void *elements, size_t count) {
    const dpr_segments init = DPR_SEGMENTS_INIT;
    const size_t bytes = count * dpr_dtype_size(from->array.dtype);
    if (from->array.dims != 1 || count == 0)
        return cli_error("%s: offsets are an array of one dimension with at least one number", w->s->offsets);
    if (!is_offset(from->array.dtype))
        return cli_error("%s: offsets are i32, u32, i64 or u64, and these are %s", w->s->offsets,
                         dpr_dtype_name(from->array.dtype));
    w->offsets = malloc(bytes);
    if (!w->offsets)
        return cli_error("%s: no memory for %zu bytes", w->s->offsets, bytes);
    memcpy(w->offsets, elements, bytes);
    w->segments = init;
    w->segments.count = count - 1;
    w->segments.begins = w->offsets;
    w->segments.dtype = from->array.dtype;
    w->segments.check = 1;
    return CLI_OK;
}

static int read_offsets(work *w) {
    source from;
    const void *elements;
    size_t count;
    int code = open_whole(&from, w->s->offsets, NULL, &elements, &count);
    if (code == CLI_OK)
        code = copy_offsets(w, &from, elements, count);
    if (code == CLI_OK)
        code = check_unchanged(&from, w->s->offsets);
    source_close(&from);
    return code;
}

static int open_array(work *w, const dpr_dtype *raw) {
    const int code = open_whole(&w->array, w->file, raw, &w->elements, &w->count);
    if (code != CLI_OK)
        return code;
    if (w->array.array.fortran && w->array.array.dims > 1)
        return cli_error("%s: segments of an array in Fortran order are not supported", w->file);
    w->result_bytes = dpr_result_values(w->a->ops[0]) * dpr_dtype_size(result_dtype(w));
    w->results = calloc((size_t)w->segments.count + 1, w->result_bytes > 0 ? w->result_bytes : 1);
    return w->results ? CLI_OK : cli_error("%s: no memory for %" PRIu64 " results", w->file, w->segments.count);
}

static int reduce(work *w) {
    dpr_options options = DPR_OPTIONS_INIT;
    value init;
    options.strategy = w->a->strategy;
    options.nan = w->a->nan;
    options.divisor = w->a->divisor;
    if (w->a->init && values_parse(result_dtype(w), dpr_result_values(w->a->ops[0]), w->a->init, &init) != 0)
        return cli_usage("the initial value '%.64s' is none of %s, the type of this result", w->a->init,
                         dpr_dtype_name(result_dtype(w)));
    options.init = w->a->init ? &init : NULL;
    const double begun = seconds_now();
    if (dpr_reduce_segments(w->a->cpu, w->elements, w->results, w->count, dtype_of(w), w->a->ops[0], &w->segments,
                            &options)
        != DPR_OK)
        return cli_error("%s: %s", w->file, dpr_last_error());
    w->seconds = seconds_now() - begun;
    return check_unchanged(&w->array, w->file);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static int write_results(const work *w) {
    const size_t values = dpr_result_values(w->a->ops[0]);
    const uint64_t shape[] = {w->segments.count, values};
    FILE *f = fopen(w->s->output, "wb");
    if (!f)
        return cli_error("'%s' cannot be written: %s", w->s->output, strerror(errno));
    npy_write_header(f, result_dtype(w), values > 1 ? 2 : 1, shape);
    const size_t written = fwrite(w->results, w->result_bytes, (size_t)w->segments.count, f);
    const int failed = ferror(f) || written < w->segments.count;
    if (fclose(f) != 0 || failed)
        return cli_error("'%s' cannot be written: %s", w->s->output, strerror(errno));
    return CLI_OK;
}

/* Offset i, whatever its type. */
static uint64_t offset_at(const work *w, uint64_t i) {
    const size_t size = dpr_dtype_size(w->segments.dtype);
    return dpr_element_load(w->segments.dtype, w->offsets + i * size).bits;
}

static void add_results(const work *w, cJSON *list) {
    const int is_text = report_is_text(&w->a->out);
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->segments.count && i < SHOWN; i++) {
        const void *result = w->results + i * w->result_bytes;
        const size_t values = dpr_result_values(w->a->ops[0]);
        const uint64_t begin = offset_at(w, i), end = offset_at(w, i + 1);
        cJSON *row = report_row(list);
        values_text(result_dtype(w), values, result, text);
        report_add(row, "segment=%lu elements=%lu", i, begin < end ? end - begin : 0);
        cli_json_add(row, "value", is_text ? cJSON_CreateString(text) : values_json(result_dtype(w), values, result));
    }
}

static void show(const work *w) {
    static const report_column columns[] = {
        {"segment", "segment", UNIT_NONE}, {"elements", "elements", UNIT_NONE}, {"value", "value", UNIT_LEFT}, {0}};
    const char *op = dpr_op_name(w->a->ops[0]), *dtype = dpr_dtype_name(dtype_of(w));
    cJSON *row = report_row(w->a->arrays);
    report_add(row, "file=%s dtype=%s op=%s result_dtype=%s count=%lu segments=%lu seconds=%g", w->file, dtype, op,
               dpr_dtype_name(result_dtype(w)), (uint64_t)w->count, w->segments.count, w->seconds);
    cJSON *list = cJSON_AddArrayToObject(row, "results");
    if (w->s->output)
        report_add(row, "output=%s", w->s->output);
    add_results(w, list);
    report_text(&w->a->out, REPORT_TITLE, "%.512s: %s of each of %" PRIu64 " segments of %s, in %.3g ms", w->file, op,
                w->segments.count, dtype, 1e3 * w->seconds);
    report_table(&w->a->out, NULL, list, 0, columns);
    if (w->segments.count > SHOWN && !w->s->output)
        report_text(&w->a->out, REPORT_NOTE, "%" PRIu64 " more; -O FILE writes all of them", w->segments.count - SHOWN);
}

static void print_values(const work *w) {
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->segments.count; i++) {
        values_text(result_dtype(w), dpr_result_values(w->a->ops[0]), w->results + i * w->result_bytes, text);
        puts(text);
    }
}

int segments_reduce(asked *a, const segments_asked *s, const char *file, const dpr_dtype *raw) {
    work w = {.a = a, .s = s, .file = file, .array.fd = -1};
    int code = read_offsets(&w);
    if (code == CLI_OK)
        code = open_array(&w, raw);
    if (code == CLI_OK)
        code = reduce(&w);
    if (code == CLI_OK && s->output)
        code = write_results(&w);
    if (code == CLI_OK && a->quiet)
        print_values(&w);
    else if (code == CLI_OK)
        show(&w);
    free(w.offsets);
    free(w.results);
    source_close(&w.array);
    return code;
}
