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

/* What one operation has given. */
typedef struct outcome {
    dpr_op op;
    const char *strategy; /* that ran; NULL: not known */
    unsigned char *results;
    double seconds;
} outcome;

typedef struct work {
    asked *a;
    const segments_asked *s;
    const char *file, *numbers_file;
    char keys_file[PATH_MAX]; /* where the keys of runs go */
    source array;
    const void *elements;          /* in C order with offsets or keys */
    unsigned char *ordered;        /* NULL, or the elements, if the file has them in another order */
    size_t count;                  /* elements */
    npy_header numbers;            /* of the offsets or keys */
    unsigned char *given, *unique; /* the offsets or keys, in C order; the keys of runs */
    dpr_axes axes;
    uint64_t extents[DPR_MOST_DIMENSIONS];
    int64_t strides[DPR_MOST_DIMENSIONS];
    uint64_t shape[DPR_MOST_DIMENSIONS + 1]; /* of the results */
    int dims;
    uint64_t result_count;
    outcome outcomes[DPR_OP_COUNT];
    int outcome_count;   /* operations that have not failed */
    int has_bad_segment; /* 1: a segment is not within the array, so that no operation has results */
    dpr_ctx *ctx;        /* that runs them */
    /* In memory of its device: */
    const void *in, *begins;
    void *copies[2]; /* of the two, which are freed; NULL: they are in host memory */
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

static dpr_dtype result_dtype(const work *w, const outcome *o) {
    return dpr_result_dtype(o->op, dtype_of(w));
}

static size_t result_bytes(const work *w, const outcome *o) {
    return dpr_result_values(o->op) * dpr_dtype_size(result_dtype(w, o));
}

/* ---- Order ------------------------------------------------------------------------------------------------------ */

/* Goes from one index of the dimensions behind the first to the next one in C order. Returns its place in Fortran
 * order, of which `place` is the one before. */
static uint64_t next_place(const npy_header *array, uint64_t index[NPY_DIMS], uint64_t place) {
    uint64_t step = 1;
    for (int d = 1; d < array->dims - 1; d++)
        step *= array->shape[d];
    for (int d = array->dims - 1; d > 0; d--) {
        place += step;
        if (++index[d] < array->shape[d])
            return place;
        place -= step * array->shape[d];
        index[d] = 0;
        step /= d > 1 ? array->shape[d - 1] : 1;
    }
    return place;
}

/* Copies an array in Fortran order to C order: a few rows at a time, so that a cache line is read once. */
static void turn(const npy_header *array, const unsigned char *from, unsigned char *to) {
    enum { AT_A_TIME = 16 };
    const size_t size = dpr_dtype_size(array->dtype);
    const uint64_t rows = array->shape[0], columns = array->count > 0 ? array->count / rows : 0;
    for (uint64_t first = 0; first < rows && columns > 0; first += AT_A_TIME) {
        const uint64_t end = rows - first < AT_A_TIME ? rows : first + AT_A_TIME;
        uint64_t index[NPY_DIMS] = {0}, place = 0;
        for (uint64_t c = 0; c < columns; c++, place = next_place(array, index, place))
            for (uint64_t r = first; r < end; r++)
                memcpy(to + (r * columns + c) * size, from + (place * rows + r) * size, size);
    }
}

/* A copy in C order, which is freed; NULL after a message. `elements` is NULL if there are none. */
static unsigned char *copy_in_order(const npy_header *array, const char *file, const void *elements) {
    const size_t bytes = (size_t)array->count * dpr_dtype_size(array->dtype);
    unsigned char *const copy = malloc(bytes + 1);
    if (!copy)
        (void)cli_error("%s: no memory for %zu bytes", file, bytes);
    else if (elements && array->fortran && array->dims > 1)
        turn(array, elements, copy);
    else if (elements)
        memcpy(copy, elements, bytes);
    return copy;
}

/* ---- Files that are read ---------------------------------------------------------------------------------------- */

static int is_number(const work *w) {
    const dpr_dtype dtype = w->numbers.dtype;
    return w->s->by ? dpr_supported(DPR_BAND, dtype)
                    : dtype == DPR_I32 || dtype == DPR_U32 || dtype == DPR_I64 || dtype == DPR_U64;
}

static int check_numbers(const work *w) {
    if (!w->s->by && (w->numbers.dims != 1 || w->numbers.count == 0))
        return cli_error("%s: offsets are an array of one dimension with at least one number", w->numbers_file);
    if (!is_number(w))
        return cli_error("%s: %s, and these are %s", w->numbers_file,
                         w->s->by ? "keys are integers or truth values" : "offsets are i32, u32, i64 or u64",
                         dpr_dtype_name(w->numbers.dtype));
    return CLI_OK;
}

/* Reads the offsets or keys, and copies them, because only one file at a time is mapped. */
static int read_numbers(work *w) {
    source from;
    const void *elements;
    size_t count;
    int code = open_whole(&from, w->numbers_file, NULL, &elements, &count);
    w->numbers = from.array;
    if (code == CLI_OK)
        code = check_numbers(w);
    if (code == CLI_OK && !(w->given = copy_in_order(&w->numbers, w->numbers_file, elements)))
        code = CLI_FAILED;
    if (code == CLI_OK)
        code = check_unchanged(&from, w->numbers_file);
    source_close(&from);
    return code;
}

/* Fails unless each element has a key. Keys or elements of one dimension are those of any shape in C order. */
static int check_keys(const work *w) {
    const npy_header *keys = &w->numbers, *array = &w->array.array;
    if (keys->count != w->count)
        return cli_error("%s: there are %" PRIu64 " keys, and %s has %zu elements", w->numbers_file, keys->count,
                         w->file, w->count);
    if (keys->dims > 1 && array->dims > 1
        && (keys->dims != array->dims
            || memcmp(keys->shape, array->shape, (size_t)keys->dims * sizeof *keys->shape) != 0))
        return cli_error("%s: the keys have another shape than %s", w->numbers_file, w->file);
    return CLI_OK;
}

static int open_array(work *w, const dpr_dtype *raw) {
    const int code = open_whole(&w->array, w->file, raw, &w->elements, &w->count);
    const npy_header *array = &w->array.array;
    if (code != CLI_OK || w->s->axis_count > 0)
        return code;
    if (w->s->by && check_keys(w) != CLI_OK)
        return CLI_FAILED;
    if (!array->fortran || array->dims < 2)
        return CLI_OK;
    w->elements = w->ordered = copy_in_order(array, w->file, w->elements);
    return w->ordered ? CLI_OK : CLI_FAILED;
}

/* ---- Results to come -------------------------------------------------------------------------------------------- */

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

/* Room for as many results or keys of `bytes` bytes as there are. NULL after a message. */
static unsigned char *make_room(const work *w, size_t bytes) {
    unsigned char *const room = calloc((size_t)w->result_count + 1, bytes > 0 ? bytes : 1);
    if (!room)
        (void)cli_error("%s: no memory for %" PRIu64 " results", w->file, w->result_count);
    return room;
}

/* Counts the runs of equal keys, and makes room for their keys. */
static int count_runs(work *w) {
    uint64_t runs = 0; /* there is no room, so they are only counted */
    const dpr_status status = dpr_reduce_by_key(w->a->cpu, w->given, w->numbers.dtype, w->elements, NULL, NULL, &runs,
                                                w->count, dtype_of(w), DPR_COUNT, NULL);
    if (status != DPR_OK && status != DPR_ERR_BUFFER_TOO_SMALL)
        return cli_error("%s: %s", w->numbers_file, dpr_last_error());
    w->result_count = runs;
    w->unique = make_room(w, dpr_dtype_size(w->numbers.dtype));
    return w->unique ? CLI_OK : CLI_FAILED;
}

/* Finds out how many results an operation has, and of what shape. */
static int count_results(work *w) {
    int code = CLI_OK;
    if (w->s->axis_count > 0)
        return take_axes(w);
    if (w->s->by)
        code = count_runs(w);
    else
        w->result_count = w->numbers.count - 1;
    w->shape[0] = w->result_count;
    w->dims = 1;
    return code;
}

/* ---- Reducing --------------------------------------------------------------------------------------------------- */

static int set_options(const work *w, dpr_op op, value *init, dpr_options *options) {
    char why[NPY_WHY];
    options->strategy = w->a->strategy;
    options->nan = w->a->nan;
    options->divisor = w->a->divisor;
    if (!dpr_supported(op, dtype_of(w)))
        return cli_error("%s: %s has no meaning for %s", w->file, dpr_op_name(op), dpr_dtype_name(dtype_of(w)));
    if (w->a->init && jobs_parse_init(op, dtype_of(w), w->a->init, init, why) != 0)
        return cli_usage("%s", why);
    options->init = w->a->init ? init : NULL;
    return CLI_OK;
}

static dpr_segments segments_of(const work *w) {
    dpr_segments segments = DPR_SEGMENTS_INIT;
    segments.count = w->result_count;
    segments.begins = w->begins;
    segments.dtype = w->numbers.dtype;
    return segments;
}

/* Offset i, whatever its type. */
static uint64_t offset_at(const work *w, uint64_t i) {
    const size_t size = dpr_dtype_size(w->numbers.dtype);
    return dpr_element_load(w->numbers.dtype, w->given + i * size).bits;
}

/* The elements from offset `first` to offset `last`. */
static uint64_t elements_between(const work *w, uint64_t first, uint64_t last) {
    const uint64_t begin = offset_at(w, first), end = offset_at(w, last);
    const int is_empty = w->numbers.dtype == DPR_U64 ? begin >= end : (int64_t)begin >= (int64_t)end;
    return is_empty ? 0 : end - begin;
}

/* The elements by which the library chooses: the GPU's of the array, and the CPU's of the segments. */
static size_t elements_chosen_for(const work *w) {
    const uint64_t all = elements_between(w, 0, w->result_count);
    return w->ctx == w->a->cpu && all > 0 && all < w->count ? (size_t)all : w->count;
}

/* Has the planner choose, so that the strategy is known which runs. The calls for keys do not tell theirs, and may run
 * none. */
static dpr_status choose(const work *w, outcome *o, dpr_options *options) {
    const dpr_segments segments = segments_of(w);
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan;
    o->strategy = options->strategy;
    if (w->s->by || w->result_count == 0)
        return DPR_OK;
    problem.op = o->op;
    problem.dtype = dtype_of(w);
    problem.options = options;
    if (w->s->axis_count > 0) {
        problem.axes = &w->axes;
    } else {
        problem.count = elements_chosen_for(w);
        problem.segments = &segments;
    }
    const dpr_status status = dpr_plan_create(w->ctx, &problem, &plan);
    if (status != DPR_OK)
        return status;
    options->strategy = o->strategy = dpr_plan_strategy(plan);
    dpr_plan_destroy(plan);
    return DPR_OK;
}

static dpr_status run(const work *w, dpr_op op, void *out, const dpr_options *options) {
    const dpr_dtype dtype = dtype_of(w);
    uint64_t runs = w->result_count;
    dpr_segments segments = segments_of(w);
    segments.check = 1;
    if (w->s->axis_count > 0)
        return dpr_reduce_axes(w->ctx, w->in, out, dtype, op, &w->axes, options);
    if (w->s->by)
        return dpr_reduce_by_key(w->ctx, w->begins, w->numbers.dtype, w->in, w->unique, out, &runs, w->count, dtype, op,
                                 options);
    return dpr_reduce_segments(w->ctx, w->in, out, w->count, dtype, op, &segments, options);
}

static int is_on_gpu(const work *w) {
    const asked *a = w->a;
    return a->gpu && (a->strategy ? cli_strategy_info(a->strategy).on_gpu : a->prefer_gpu);
}

/* Copies an array to the device. NULL after a message. */
static void *copy_to_device(const work *w, const void *from, size_t bytes) {
    void *copy;
    if (dpr_device_upload(dpr_ctx_gpu(w->ctx), from, bytes, bytes > 0 ? bytes : 1, &copy) == DPR_OK)
        return copy;
    (void)cli_error("%s: %s", w->file, dpr_last_error());
    return NULL;
}

/* Has the elements, and the offsets or keys, lie where the operations run. */
static int place(work *w) {
    w->ctx = is_on_gpu(w) ? w->a->gpu : w->a->cpu;
    w->in = w->elements;
    w->begins = w->given;
    if (w->ctx == w->a->cpu)
        return CLI_OK;
    w->in = w->copies[0] = copy_to_device(w, w->elements, w->count * dpr_dtype_size(dtype_of(w)));
    if (w->in && w->given)
        w->begins = w->copies[1] =
            copy_to_device(w, w->given, (size_t)w->numbers.count * dpr_dtype_size(w->numbers.dtype));
    return w->in && (w->begins || !w->given) ? CLI_OK : CLI_FAILED;
}

static void free_copies(work *w) {
    for (size_t i = 0; i < sizeof w->copies / sizeof *w->copies; i++)
        if (w->copies[i])
            dpr_device_free(dpr_ctx_gpu(w->ctx), w->copies[i]);
}

/* Copies the results from the device. */
static dpr_status fetch(const work *w, const outcome *o, const void *out) {
    dpr_place at;
    if (w->result_count == 0)
        return DPR_OK;
    const dpr_status status = dpr_device_place(out, "out", &at);
    return status == DPR_OK ? dpr_device_put(at, o->results, out, (size_t)w->result_count * result_bytes(w, o))
                            : status;
}

/* A message after the library refused the call or failed. 'every' leaves out what has no result without elements. */
static int fail_reducing(work *w, dpr_status status) {
    const int code = status == DPR_ERR_EMPTY && w->a->every_op ? CLI_OK : CLI_FAILED;
    w->has_bad_segment = status == DPR_ERR_SEGMENT;
    if (w->has_bad_segment)
        return cli_error("%s: by the offsets in %s, %s", w->file, w->numbers_file, dpr_last_error());
    return cli_message(code, "%s: %s", w->file, dpr_last_error());
}

/* Runs an operation to `out`, which lies where it runs, and brings the results. */
static int run_to(work *w, outcome *o, void *out, dpr_options *options) {
    dpr_status status = choose(w, o, options);
    const double begun = seconds_now();
    if (status == DPR_OK)
        status = run(w, o->op, out, options);
    o->seconds = seconds_now() - begun;
    if (status == DPR_OK && out != o->results)
        status = fetch(w, o, out);
    w->outcome_count += status == DPR_OK;
    return status == DPR_OK ? CLI_OK : fail_reducing(w, status);
}

/* Runs an operation as the next outcome, which counts if it has results. */
static int reduce_one(work *w, outcome *o) {
    dpr_options options = DPR_OPTIONS_INIT;
    value init;
    int code = set_options(w, o->op, &init, &options);
    if (code != CLI_OK)
        return code;
    const size_t bytes = result_bytes(w, o);
    o->results = make_room(w, bytes);
    if (!o->results || w->ctx == w->a->cpu)
        return o->results ? run_to(w, o, o->results, &options) : CLI_FAILED;
    void *const out = copy_to_device(w, o->results, (size_t)w->result_count * bytes);
    if (!out)
        return CLI_FAILED;
    code = run_to(w, o, out, &options);
    dpr_device_free(dpr_ctx_gpu(w->ctx), out);
    return code;
}

/* Runs all operations, whichever of them fail, where their arrays have been placed. A bad segment fails all of them. */
static int reduce_each(work *w) {
    int code = CLI_OK;
    for (int i = 0; i < w->a->op_count && !w->has_bad_segment; i++) {
        outcome *const next = &w->outcomes[w->outcome_count];
        if (!jobs_include(w->a, w->a->ops[i], dtype_of(w)))
            continue;
        free(next->results);
        *next = (outcome){.op = w->a->ops[i]};
        const int one = reduce_one(w, next);
        code = one > code ? one : code;
    }
    return code;
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

/* Writes the results of the one operation and, if there are keys, these. */
static int write_results(const work *w) {
    const outcome *o = w->outcomes;
    output all[] = {{.file.name = w->keys_file, .dtype = w->numbers.dtype, .values = 1, .from = w->unique},
                    {.file.name = w->s->output,
                     .dtype = result_dtype(w, o),
                     .values = dpr_result_values(o->op),
                     .from = o->results}};
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
static int check_outputs(work *w) {
    const char *const inputs[] = {w->file, w->numbers_file};
    const size_t n = sizeof inputs / sizeof *inputs;
    int code = outfile_refuse_input(w->s->output, inputs, n);
    if (code != CLI_OK || !w->s->output || !w->s->by)
        return code;
    if (!outfile_is_replaceable(w->s->output))
        return cli_usage("--output: '%s' is no regular file, next to which the keys' file could be", w->s->output);
    code = name_keys(w);
    return code == CLI_OK ? outfile_refuse_input(w->keys_file, inputs, n) : code;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

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
    report_add(row, "segment=%lu elements=%lu", i, elements_between(w, i, i + 1));
}

static void add_results(const work *w, const outcome *o, cJSON *list) {
    const int is_text = report_is_text(&w->a->out);
    const dpr_dtype dtype = result_dtype(w, o);
    const size_t values = dpr_result_values(o->op);
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->result_count && i < SHOWN; i++) {
        const void *result = o->results + i * result_bytes(w, o);
        cJSON *row = report_row(list);
        add_name(w, row, i);
        values_text(dtype, values, result, text);
        cli_json_add(row, "value", is_text ? cJSON_CreateString(text) : values_json(dtype, values, result));
    }
}

static const char *parts_of(const work *w) {
    return w->s->axis_count > 0 ? "indices" : w->s->by ? "runs" : "segments";
}

/* Adds what was done. Returns the list of the results that are shown. */
static cJSON *add_outcome(const work *w, const outcome *o, double rate) {
    cJSON *row = report_row(w->a->arrays);
    report_add(row, "file=%s dtype=%s op=%s result_dtype=%s count=%lu", w->file, dpr_dtype_name(dtype_of(w)),
               dpr_op_name(o->op), dpr_dtype_name(result_dtype(w, o)), (uint64_t)w->count);
    cJSON_AddNumberToObject(row, parts_of(w), (double)w->result_count);
    if (o->strategy)
        report_add(row, "strategy=%s", o->strategy);
    report_add(row, "seconds=%g", o->seconds);
    report_known(row, "bytes_per_second", rate);
    if (w->s->output)
        report_add(row, "output=%s", w->s->output);
    cJSON *list = cJSON_AddArrayToObject(row, "results");
    add_results(w, o, list);
    cJSON_AddNumberToObject(row, "more", (double)(w->result_count - (uint64_t)cJSON_GetArraySize(list)));
    return list;
}

static void show(const work *w, const outcome *o) {
    static const report_column of_segments[] = {
        {"segment", "segment", UNIT_NONE}, {"elements", "elements", UNIT_NONE}, {"value", "value", UNIT_LEFT}, {0}};
    static const report_column of_runs[] = {{"key", "key", UNIT_NONE}, {"value", "value", UNIT_LEFT}, {0}};
    static const report_column of_axes[] = {{"index", "index", UNIT_LEFT}, {"value", "value", UNIT_LEFT}, {0}};
    const double rate = (double)(w->count * dpr_dtype_size(dtype_of(w))) / o->seconds;
    const cJSON *list = add_outcome(w, o, rate);
    report_text(&w->a->out, REPORT_TITLE, "%.512s: %s of each of %" PRIu64 " %s of %s%s%s, in %.3g ms, %.3g GB/s",
                w->file, dpr_op_name(o->op), w->result_count, parts_of(w), dpr_dtype_name(dtype_of(w)),
                o->strategy ? ", by " : "", o->strategy ? o->strategy : "", 1e3 * o->seconds, rate / 1e9);
    report_table(&w->a->out, NULL, list, 0, w->s->axis_count > 0 ? of_axes : w->s->by ? of_runs : of_segments);
    if (w->result_count > SHOWN && !w->s->output)
        report_text(&w->a->out, REPORT_NOTE, "%" PRIu64 " more; -O FILE writes all of them", w->result_count - SHOWN);
}

static void print_values(const work *w, const outcome *o) {
    char text[VALUES_TEXT];
    for (uint64_t i = 0; i < w->result_count; i++) {
        values_text(result_dtype(w, o), dpr_result_values(o->op), o->results + i * result_bytes(w, o), text);
        puts(text);
    }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* Finds out what is to be done. */
static int open_files(work *w, const dpr_dtype *raw) {
    int code = check_outputs(w);
    if (code == CLI_OK && w->s->axis_count == 0)
        code = read_numbers(w);
    if (code == CLI_OK)
        code = open_array(w, raw);
    return code == CLI_OK ? count_results(w) : code;
}

/* Hands out the results of the operations that have some. */
static int give_results(const work *w) {
    const int code = w->s->output && w->outcome_count > 0 ? write_results(w) : CLI_OK;
    if (w->array.ignored)
        cli_note("%s: bytes after the array are ignored", w->file);
    for (int i = 0; i < w->outcome_count && code == CLI_OK; i++)
        if (!w->a->quiet)
            show(w, &w->outcomes[i]);
        else if (!w->s->output)
            print_values(w, &w->outcomes[i]);
    return code;
}

static void free_work(work *w) {
    free_copies(w);
    for (int i = 0; i < w->a->op_count; i++)
        free(w->outcomes[i].results);
    free(w->given);
    free(w->unique);
    free(w->ordered);
    source_close(&w->array);
}

int segments_reduce(asked *a, const segments_asked *s, const char *file, const dpr_dtype *raw) {
    work w = {.a = a, .s = s, .file = file, .numbers_file = s->by ? s->by : s->offsets, .array.fd = -1};
    int code = open_files(&w, raw);
    if (code == CLI_OK)
        code = place(&w);
    if (code == CLI_OK) {
        code = reduce_each(&w);
        int given = check_unchanged(&w.array, file);
        if (given == CLI_OK)
            given = give_results(&w);
        code = given > code ? given : code;
    }
    free_work(&w);
    return code;
}
