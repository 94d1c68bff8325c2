#include "segments.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "cli.h"
#include "cli_json.h"
#include "cuda/device.h"
#include "newfile.h"
#include "outfile.h"
#include "timing.h"
#include "value.h"

enum { SHOWN = 10 }; /* results, if there is no file for all of them */

typedef struct work {
    asked *a;
    const segments_asked *s;
    const char *file, *numbers_file;
    char keys_file[PATH_MAX]; /* where the keys of runs go */
    source array;
    const void *elements;
    size_t count;                            /* elements */
    npy_header numbers;                      /* of the offsets or keys */
    unsigned char *given, *unique, *results; /* the offsets or keys; the keys of runs; the results */
    dpr_axes axes;
    uint64_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS];
    uint64_t shape[DPR_MOST_DIMENSIONS + 1]; /* of the results */
    int dims;
    uint64_t result_count;
    size_t result_bytes;
    double seconds;
    dpr_ctx *ctx; /* that runs it */
    /* In memory of its device: */
    const void *in, *begins;
    void *out;
    void *copies[3]; /* those of the three that are freed; NULL: they are in host memory */
} work;

/* Opens a file whose whole array is one window. CLI_OK, or CLI_FAILED after a message; source_close() is due in either
 * case. */
static int open_whole(source *from, const char *file, const dpr_dtype *raw, const void **elements, size_t *count) {
    *elements = NULL;
    *count = 0;
    int status = source_open(from, file, raw, SIZE_MAX / 2);
    if (status == 0 && from->array.count == UINT64_MAX)
        status = npy_fail(from->why, "has bare elements, whose number must be known here: a pipe or an empty file "
                                     "cannot be used");
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

static int is_number(const work *w) {
    const dpr_dtype dtype = w->numbers.dtype;
    return w->s->by ? dpr_supported(DPR_BAND, dtype)
                    : dtype == DPR_I32 || dtype == DPR_U32 || dtype == DPR_I64 || dtype == DPR_U64;
}

static int check_numbers(const work *w) {
    if (w->numbers.dims != 1 || (w->numbers.count == 0 && !w->s->by))
        return cli_error("%s: %s", w->numbers_file,
                         w->s->by ? "keys are an array of one dimension"
                                  : "offsets are an array of one dimension with at least one number");
    if (!is_number(w))
        return cli_error("%s: %s, and these are %s", w->numbers_file,
                         w->s->by ? "keys are integers or truth values" : "offsets are i32, u32, i64 or u64",
                         dpr_dtype_name(w->numbers.dtype));
    return CLI_OK;
}

/* Copies the offsets or keys, because only one file at a time is mapped. */
static int copy_numbers(work *w, const void *elements, size_t count) {
    const size_t bytes = count * dpr_dtype_size(w->numbers.dtype);
    w->given = malloc(bytes + 1);
    if (!w->given)
        return cli_error("%s: no memory for %zu bytes", w->numbers_file, bytes);
    if (bytes > 0)
        memcpy(w->given, elements, bytes);
    return CLI_OK;
}

static int read_numbers(work *w) {
    source from;
    const void *elements;
    size_t count;
    int code = open_whole(&from, w->numbers_file, NULL, &elements, &count);
    w->numbers = from.array;
    if (code == CLI_OK)
        code = check_numbers(w);
    if (code == CLI_OK)
        code = copy_numbers(w, elements, count);
    if (code == CLI_OK)
        code = check_unchanged(&from, w->numbers_file);
    source_close(&from);
    return code;
}

static int open_array(work *w, const dpr_dtype *raw) {
    const int code = open_whole(&w->array, w->file, raw, &w->elements, &w->count);
    if (code != CLI_OK)
        return code;
    if (w->array.array.fortran && w->array.array.dims > 1 && w->s->axis_count == 0)
        return cli_error("%s: segments of an array in Fortran order are not supported", w->file);
    if (w->s->by && w->numbers.count != w->count)
        return cli_error("%s: there are %" PRIu64 " keys, and %s has %zu elements", w->numbers_file, w->numbers.count,
                         w->file, w->count);
    w->result_bytes = dpr_result_values(w->a->ops[0]) * dpr_dtype_size(result_dtype(w));
    return CLI_OK;
}

/* Notes that dimension `axis` is reduced, which counts from the last one if it is negative. */
static int take_axis(work *w, int axis) {
    const int dims = w->array.array.dims, d = axis < 0 ? axis + dims : axis;
    if (d < 0 || d >= dims)
        return cli_error("%s: axis %d is none of its %d dimensions", w->file, axis, dims);
    if (w->axes.reduced >> d & 1)
        return cli_error("%s: axis %d is named twice", w->file, axis);
    w->axes.reduced |= UINT32_C(1) << d;
    return CLI_OK;
}

/* Finds the shape of the results, and how many there are. If the array has no elements, the extents that are not 0 may
 * multiply to more than 64 bits hold. */
static int count_kept(work *w) {
    const npy_header *array = &w->array.array;
    int is_empty = 0, overflows = 0;
    w->result_count = 1;
    for (int d = 0; d < array->dims; d++) {
        const int is_kept = !(w->axes.reduced >> d & 1);
        const uint64_t extent = is_kept ? array->shape[d] : 1;
        if (is_kept || w->s->keepdims)
            w->shape[w->dims++] = extent;
        is_empty |= extent == 0;
        overflows |= __builtin_mul_overflow(w->result_count, extent, &w->result_count);
    }
    if (is_empty)
        w->result_count = 0;
    if (overflows && !is_empty)
        return cli_error("%s: without the dimensions of --axis, its shape has more than 2^64 - 1 indices", w->file);
    return CLI_OK;
}

/* Finds the array's shape and that of the results. */
static int take_axes(work *w) {
    const npy_header *array = &w->array.array;
    const dpr_axes init = DPR_AXES_INIT;
    int code = CLI_OK;
    if (array->dims < 1 || array->dims > DPR_MOST_DIMENSIONS)
        return cli_error("%s: has %d dimensions; with --axis it should have 1 to %d", w->file, array->dims,
                         DPR_MOST_DIMENSIONS);
    w->axes = init;
    w->axes.dimensions = array->dims;
    w->axes.extents = w->extents;
    w->axes.strides = w->strides;
    for (int i = 0; i < w->s->axis_count && code == CLI_OK; i++)
        code = take_axis(w, w->s->axes[i]);
    int64_t step = 1;
    for (int i = 0; i < array->dims; i++) {
        const int d = array->fortran ? i : array->dims - 1 - i;
        w->extents[d] = array->shape[d];
        w->strides[d] = step;
        step = (int64_t)((uint64_t)step * array->shape[d]);
    }
    return code == CLI_OK ? count_kept(w) : code;
}

/* Room for as many results as there are. */
static int make_room(work *w) {
    w->results = calloc((size_t)w->result_count + 1, w->result_bytes > 0 ? w->result_bytes : 1);
    if (w->s->by)
        w->unique = calloc((size_t)w->result_count + 1, dpr_dtype_size(w->numbers.dtype));
    if (w->results && (w->unique || !w->s->by))
        return CLI_OK;
    return cli_error("%s: no memory for %" PRIu64 " results", w->file, w->result_count);
}

static int set_options(const work *w, value *init, dpr_options *options) {
    char why[NPY_WHY];
    options->strategy = w->a->strategy;
    options->nan = w->a->nan;
    options->divisor = w->a->divisor;
    if (!dpr_supported(w->a->ops[0], dtype_of(w)))
        return cli_error("%s: %s has no meaning for %s", w->file, dpr_op_name(w->a->ops[0]),
                         dpr_dtype_name(dtype_of(w)));
    if (w->a->init && jobs_parse_init(w->a->ops[0], dtype_of(w), w->a->init, init, why) != 0)
        return cli_usage("%s", why);
    options->init = w->a->init ? init : NULL;
    return CLI_OK;
}

static dpr_status by_key(work *w, const void *in, const void *keys, void *out, const dpr_options *options) {
    return dpr_reduce_by_key(w->ctx, keys, w->numbers.dtype, in, w->unique, out, &w->result_count, w->count,
                             dtype_of(w), w->a->ops[0], options);
}

static dpr_status by_segment(const work *w, const dpr_options *options) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    segments.count = w->result_count;
    segments.begins = w->begins;
    segments.dtype = w->numbers.dtype;
    segments.check = 1;
    return dpr_reduce_segments(w->ctx, w->in, w->out, w->count, dtype_of(w), w->a->ops[0], &segments, options);
}

/* How many segments or runs there are. */
static dpr_status count_results(work *w, const dpr_options *options) {
    dpr_status status = DPR_OK;
    if (w->s->axis_count > 0)
        return DPR_OK;
    w->result_count = w->s->by ? 0 : w->numbers.count - 1;
    if (w->s->by)
        status = by_key(w, w->elements, w->given, NULL, options);
    w->shape[0] = w->result_count;
    w->dims = 1;
    return status == DPR_ERR_BUFFER_TOO_SMALL ? DPR_OK : status;
}

static dpr_status run(work *w, const dpr_options *options) {
    if (w->s->axis_count > 0)
        return dpr_reduce_axes(w->ctx, w->in, w->out, dtype_of(w), w->a->ops[0], &w->axes, options);
    return w->s->by ? by_key(w, w->in, w->begins, w->out, options) : by_segment(w, options);
}

static int is_on_gpu(const work *w) {
    const asked *a = w->a;
    return a->gpu && (a->strategy ? cli_strategy_info(a->strategy).on_gpu : a->prefer_gpu);
}

/* Copies an array to the device, as number i of the copies. NULL after a message. */
static void *copy_to_device(work *w, int i, const void *from, size_t bytes) {
    const size_t room = bytes > 0 ? bytes : 1;
    if (dpr_device_upload(dpr_ctx_gpu(w->ctx), from, bytes, room, &w->copies[i]) == DPR_OK)
        return w->copies[i];
    w->copies[i] = NULL;
    (void)cli_error("%s: %s", w->file, dpr_last_error());
    return NULL;
}

static size_t all_result_bytes(const work *w) {
    return (size_t)w->result_count * w->result_bytes;
}

/* Has the arrays lie where the call is run. */
static int place(work *w) {
    w->in = w->elements;
    w->begins = w->given;
    w->out = w->results;
    if (w->ctx == w->a->cpu)
        return CLI_OK;
    w->in = copy_to_device(w, 0, w->elements, w->count * dpr_dtype_size(dtype_of(w)));
    w->out = w->in ? copy_to_device(w, 1, w->results, all_result_bytes(w)) : NULL;
    if (w->out && w->given)
        w->begins = copy_to_device(w, 2, w->given, (size_t)w->numbers.count * dpr_dtype_size(w->numbers.dtype));
    return w->out && (w->begins || !w->given) ? CLI_OK : CLI_FAILED;
}

/* Copies the results from the device. */
static dpr_status fetch(const work *w) {
    dpr_place at;
    if (w->out == w->results || w->result_count == 0)
        return DPR_OK;
    const dpr_status status = dpr_device_place(w->out, "out", &at);
    return status == DPR_OK ? dpr_device_put(at, w->results, w->out, all_result_bytes(w)) : status;
}

static void free_copies(work *w) {
    for (size_t i = 0; i < sizeof w->copies / sizeof *w->copies; i++)
        if (w->copies[i])
            dpr_device_free(dpr_ctx_gpu(w->ctx), w->copies[i]);
}

/* A message after the library refused the call or failed. */
static int fail_reducing(const work *w, dpr_status status) {
    if (status == DPR_ERR_SEGMENT)
        return cli_error("%s: by the offsets in %s, %s", w->file, w->numbers_file, dpr_last_error());
    return cli_error("%s: %s", w->file, dpr_last_error());
}

static int reduce(work *w) {
    dpr_options options = DPR_OPTIONS_INIT;
    value init;
    int code = set_options(w, &init, &options);
    if (code != CLI_OK)
        return code;
    w->ctx = is_on_gpu(w) ? w->a->gpu : w->a->cpu;
    dpr_status status = count_results(w, &options);
    if (status == DPR_OK)
        code = make_room(w);
    if (code == CLI_OK && status == DPR_OK)
        code = place(w);
    if (code != CLI_OK)
        return code;
    const double begun = seconds_now();
    if (status == DPR_OK)
        status = run(w, &options);
    w->seconds = seconds_now() - begun;
    if (status == DPR_OK)
        status = fetch(w);
    return status == DPR_OK ? check_unchanged(&w->array, w->file) : fail_reducing(w, status);
}

/* ---- Files of results ------------------------------------------------------------------------------------------- */

/* All results, or all keys. An older file stays until all are written. */
typedef struct output {
    newfile file;
    dpr_dtype dtype;
    size_t values; /* of one result */
    const void *from;
} output;

static int failed_to_write(const output *o) {
    return cli_error("'%s' cannot be written: %s", o->file.name, strerror(errno));
}

static int write_output(const work *w, output *o) {
    uint64_t shape[DPR_MOST_DIMENSIONS + 1];
    FILE *f = newfile_open(&o->file);
    if (!f)
        return failed_to_write(o);
    memcpy(shape, w->shape, sizeof shape);
    shape[w->dims] = o->values;
    npy_write_header(f, o->dtype, w->dims + (o->values > 1), shape);
    const size_t written = fwrite(o->from, o->values * dpr_dtype_size(o->dtype), (size_t)w->result_count, f);
    const int failed = ferror(f) || written < w->result_count;
    return fclose(f) != 0 || failed ? failed_to_write(o) : CLI_OK;
}

/* Writes the results and, if there are keys, these. */
static int write_results(const work *w) {
    output all[] = {{.file.name = w->keys_file, .dtype = w->numbers.dtype, .values = 1, .from = w->unique},
                    {.file.name = w->s->output,
                     .dtype = result_dtype(w),
                     .values = dpr_result_values(w->a->ops[0]),
                     .from = w->results}};
    const int first = w->s->by ? 0 : 1, count = sizeof all / sizeof *all;
    int code = CLI_OK;
    for (int i = first; i < count && code == CLI_OK; i++)
        code = write_output(w, &all[i]);
    for (int i = first; i < count && code == CLI_OK; i++)
        code = newfile_put(&all[i].file) == 0 ? CLI_OK : failed_to_write(&all[i]);
    for (int i = first; i < count; i++)
        newfile_drop(&all[i].file);
    return code;
}

/* Names the file of the keys: that of the results with ".keys" before its ending. */
static int name_keys(work *w) {
    const char *name = w->s->output, *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - name) : strlen(name);
    const int length = snprintf(w->keys_file, sizeof w->keys_file, "%.*s.keys%s", (int)stem, name, name + stem);
    return length < (int)sizeof w->keys_file ? CLI_OK
                                             : cli_error("'%s' is too long a name for a file next to it", name);
}

/* Fails if an output is a file that is read. */
static int check_output(const work *w, const char *what, const char *name) {
    const char *const files[] = {w->file, w->numbers_file};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] && outfile_overwrites(name, files[i]))
            return cli_usage("--output: the %s would overwrite '%s', the same file as the input '%s'", what, name,
                             files[i]);
    return CLI_OK;
}

static int check_outputs(work *w) {
    if (!w->s->output)
        return CLI_OK;
    int code = check_output(w, "results", w->s->output);
    if (code == CLI_OK && w->s->by)
        code = name_keys(w);
    return code == CLI_OK && w->s->by ? check_output(w, "keys", w->keys_file) : code;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

/* Offset i, whatever its type. */
static uint64_t offset_at(const work *w, uint64_t i) {
    const size_t size = dpr_dtype_size(w->numbers.dtype);
    return dpr_element_load(w->numbers.dtype, w->given + i * size).bits;
}

/* The indices of result i, with commas between them. */
static void add_index(const work *w, cJSON *row, uint64_t i) {
    uint64_t index[DPR_MOST_DIMENSIONS];
    char text[DPR_MOST_DIMENSIONS * 22 + 1] = "";
    size_t length = 0;
    for (int d = w->dims - 1; d >= 0; d--) {
        index[d] = i % w->shape[d];
        i /= w->shape[d];
    }
    for (int d = 0; d < w->dims; d++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64, d ? ", " : "", index[d]);
    report_add(row, "index=%s", text);
}

/* Which segment, run or index a row is of. */
static void add_name(const work *w, cJSON *row, uint64_t i) {
    const size_t size = dpr_dtype_size(w->numbers.dtype);
    if (w->s->axis_count > 0) {
        add_index(w, row, i);
        return;
    }
    if (w->s->by) {
        cli_json_add(row, "key", value_json(w->numbers.dtype, w->unique + i * size));
        return;
    }
    const uint64_t begin = offset_at(w, i), end = offset_at(w, i + 1);
    const int is_empty = w->numbers.dtype == DPR_U64 ? begin >= end : (int64_t)begin >= (int64_t)end;
    report_add(row, "segment=%lu elements=%lu", i, is_empty ? 0 : end - begin);
}

static void add_results(const work *w, cJSON *list) {
    const int is_text = report_is_text(&w->a->out);
    const size_t values = dpr_result_values(w->a->ops[0]);
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->result_count && i < SHOWN; i++) {
        const void *result = w->results + i * w->result_bytes;
        cJSON *row = report_row(list);
        add_name(w, row, i);
        values_text(result_dtype(w), values, result, text);
        cli_json_add(row, "value", is_text ? cJSON_CreateString(text) : values_json(result_dtype(w), values, result));
    }
}

static void show(const work *w) {
    static const report_column of_segments[] = {
        {"segment", "segment", UNIT_NONE}, {"elements", "elements", UNIT_NONE}, {"value", "value", UNIT_LEFT}, {0}};
    static const report_column of_runs[] = {{"key", "key", UNIT_NONE}, {"value", "value", UNIT_LEFT}, {0}};
    static const report_column of_axes[] = {{"index", "index", UNIT_LEFT}, {"value", "value", UNIT_LEFT}, {0}};
    const char *op = dpr_op_name(w->a->ops[0]), *dtype = dpr_dtype_name(dtype_of(w));
    const char *parts = w->s->axis_count > 0 ? "indices" : w->s->by ? "runs" : "segments";
    cJSON *row = report_row(w->a->arrays);
    report_add(row, "file=%s dtype=%s op=%s result_dtype=%s count=%lu", w->file, dtype, op,
               dpr_dtype_name(result_dtype(w)), (uint64_t)w->count);
    cJSON_AddNumberToObject(row, parts, (double)w->result_count);
    report_add(row, "seconds=%g", w->seconds);
    if (w->s->output)
        report_add(row, "output=%s", w->s->output);
    cJSON *list = cJSON_AddArrayToObject(row, "results");
    add_results(w, list);
    report_text(&w->a->out, REPORT_TITLE, "%.512s: %s of each of %" PRIu64 " %s of %s, in %.3g ms", w->file, op,
                w->result_count, parts, dtype, 1e3 * w->seconds);
    report_table(&w->a->out, NULL, list, 0, w->s->axis_count > 0 ? of_axes : w->s->by ? of_runs : of_segments);
    if (w->result_count > SHOWN && !w->s->output)
        report_text(&w->a->out, REPORT_NOTE, "%" PRIu64 " more; -O FILE writes all of them", w->result_count - SHOWN);
}

static void print_values(const work *w) {
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->result_count; i++) {
        values_text(result_dtype(w), dpr_result_values(w->a->ops[0]), w->results + i * w->result_bytes, text);
        puts(text);
    }
}

int segments_reduce(asked *a, const segments_asked *s, const char *file, const dpr_dtype *raw) {
    work w = {.a = a, .s = s, .file = file, .numbers_file = s->by ? s->by : s->offsets, .array.fd = -1};
    int code = check_outputs(&w);
    if (code == CLI_OK && s->axis_count == 0)
        code = read_numbers(&w);
    if (code == CLI_OK)
        code = open_array(&w, raw);
    if (code == CLI_OK && s->axis_count > 0)
        code = take_axes(&w);
    if (code == CLI_OK)
        code = reduce(&w);
    if (code == CLI_OK && s->output)
        code = write_results(&w);
    if (code == CLI_OK && w.array.ignored)
        cli_note("%s: bytes after the array are ignored", file);
    if (code == CLI_OK && !a->quiet)
        show(&w);
    else if (code == CLI_OK && !s->output)
        print_values(&w);
    free_copies(&w);
    free(w.given);
    free(w.unique);
    free(w.results);
    source_close(&w.array);
    return code;
}
