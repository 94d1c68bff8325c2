#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/ctx.h"
#include "cli.h"
#include "cli_json.h"
#include "cuda/device.h"
#include "figures.h"
#include "fold.h"
#include "listings.h"
#include "progress.h"
#include "timing.h"
#include "value.h"

typedef struct job {
    fold fold;
    char why[NPY_WHY];    /* why there is no result, a clause; "" if nothing stands in its way */
    int code;             /* CLI_OK, or the exit code if the lack of a result is a failure */
    const char *strategy; /* the one that ran, "" before the first window */
    value init, result;
    double seconds; /* of reducing alone */
} job;

/* The jobs of one array. */
typedef struct job_list {
    job *items;
    size_t count;
    const npy_header *array;
    const char *name;
    const asked *asked;
} job_list;

/* Ends the job without a result, for the reason that follows: CLI_OK if that is no failure. */
#define job_stop(job, exit_code, ...) ((job)->code = (exit_code), (void)npy_fail((job)->why, __VA_ARGS__))

static dpr_dtype result_type(const job *j) {
    return dpr_result_dtype(j->fold.op, j->fold.dtype);
}

static size_t result_values(const job *j) {
    return dpr_result_values(j->fold.op);
}

/* ---- Making ----------------------------------------------------------------------------------------------------- */

int jobs_takes_init(dpr_op op) {
    return dpr_ops[DPR_ROW(op)].takes_init;
}

int jobs_parse_init(dpr_op op, dpr_dtype dtype, const char *text, value *init, char why[NPY_WHY]) {
    const dpr_dtype type = dpr_result_dtype(op, dtype);
    const size_t values = dpr_result_values(op);
    if (!jobs_takes_init(op))
        return npy_fail(why, "%s takes no initial value", dpr_op_name(op));
    if (values_parse(type, values, text, init) == 0)
        return 0;
    return npy_fail(why, "the initial value '%.64s' is not %s of %s, the type of this result", text,
                    values > 1 ? "two values, with a space between them," : "one value", dpr_dtype_name(type));
}

/* `strategy` is NULL for the planner's choice. */
static void job_make(job *j, const job_list *list, dpr_op op, const char *strategy) {
    const asked *a = list->asked;
    const dpr_dtype dtype = list->array->dtype;
    const int on_gpu = strategy ? cli_strategy_info(strategy).on_gpu : a->prefer_gpu && a->gpu;
    *j = (job){.strategy = a->every_strategy ? strategy : ""};
    j->fold = (fold){.ctx = on_gpu ? a->gpu : a->cpu,
                     .cpu = a->cpu,
                     .op = op,
                     .dtype = dtype,
                     .nan = a->nan,
                     .divisor = a->divisor,
                     .strategy = strategy};
    fold_start(&j->fold);
    if (!dpr_supported(op, dtype))
        job_stop(j, CLI_FAILED, "%s has no meaning for %s", dpr_op_name(op), dpr_dtype_name(dtype));
    else if (!j->fold.ctx)
        job_stop(j, CLI_FAILED, "%s needs a GPU", strategy);
    else if (a->init && jobs_parse_init(op, dtype, a->init, &j->init, j->why) != 0)
        j->code = CLI_USAGE;
    else if (a->init)
        j->fold.init = &j->init;
}

int jobs_include(const asked *a, dpr_op op, dpr_dtype dtype) {
    value init;
    char why[NPY_WHY];
    if (!a->every_op)
        return 1;
    return dpr_supported(op, dtype) && (!a->init || jobs_parse_init(op, dtype, a->init, &init, why) == 0);
}

/* Whether "every" operation or "all" strategies include this one: it has a meaning, and a GPU if it needs one. */
static int is_included(const job_list *list, dpr_op op, size_t strategy) {
    const asked *a = list->asked;
    return jobs_include(a, op, list->array->dtype)
           && (!a->every_strategy || a->gpu || !cli_strategy_at(strategy).on_gpu);
}

/* 0, or -1 when out of memory. */
static int make_jobs(job_list *list) {
    const asked *a = list->asked;
    const size_t strategies = a->every_strategy ? dpr_strategy_count() : 1;
    list->items = calloc((size_t)a->op_count * strategies, sizeof *list->items);
    if (!list->items)
        return -1;
    for (int o = 0; o < a->op_count; o++)
        for (size_t s = 0; s < strategies; s++)
            if (is_included(list, a->ops[o], s))
                job_make(&list->items[list->count++], list, a->ops[o],
                         a->every_strategy ? dpr_strategy_name(s) : a->strategy);
    return 0;
}

static void free_jobs(job_list *list) {
    for (size_t i = 0; i < list->count; i++)
        fold_free(&list->items[i].fold);
    free(list->items);
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* Runs the window, in whose time there is no planning. The first one comes once more before that, so that starting
 * threads and loading kernels is not in it either, and `repeats` times, each from the start, for a steadier figure. */
static dpr_status job_run(job *j, const fold_window *w, const job_list *list, int repeats) {
    enum { MOST = 16 };
    double times[MOST], begun = seconds_now();
    const int warm = j->fold.elements == 0, most = warm + repeats < MOST ? warm + repeats : MOST;
    int done = 0;
    dpr_status status = fold_prepare(&j->fold, w);
    if (status == DPR_OK && !*j->strategy)
        j->strategy = dpr_plan_strategy(j->fold.plan);
    while (status == DPR_OK && done < most && (done < 4 || seconds_now() - begun < 1)) {
        if (warm)
            fold_start(&j->fold);
        const double from = seconds_now();
        status = fold_add(&j->fold, w, list->array);
        times[done++] = seconds_now() - from;
    }
    if (status == DPR_OK)
        j->seconds += bench_summarise(times + warm, done - warm).median;
    return status;
}

/* Reduces a window of host memory in each job. Above one, `repeats` is for a window that is the whole array, and the
 * median of the times counts. */
static void add_window(job_list *list, const void *in, size_t count, int repeats) {
    const size_t bytes = count * dpr_dtype_size(list->array->dtype);
    void *device = NULL;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        const int on_gpu = j->fold.ctx != list->asked->cpu;
        if (*j->why)
            continue;
        if (on_gpu && !device && dpr_device_upload(dpr_ctx_gpu(j->fold.ctx), in, bytes, bytes, &device) != DPR_OK) {
            job_stop(j, CLI_FAILED, "%s", dpr_last_error());
            continue;
        }
        const fold_window w = {.in = on_gpu ? device : in, .host = in, .count = count};
        const dpr_status status = job_run(j, &w, list, repeats);
        /* With every strategy tried, those that cannot are part of the picture. */
        const int refused = status == DPR_ERR_STRATEGY_UNABLE && list->asked->every_strategy;
        if (status != DPR_OK)
            job_stop(j, refused ? CLI_OK : CLI_FAILED, "%s", dpr_last_error());
    }
    if (device)
        dpr_device_free(dpr_ctx_gpu(list->asked->gpu), device);
}

/* All windows. 0, or -1 with s->why. */
static int add_windows(job_list *list, source *s) {
    enum { REPEATS = 15 };
    const void *in;
    size_t count;
    uint64_t done = 0;
    int status;
    while ((status = source_next(s, &in, &count)) == 1) {
        add_window(list, in, count, s->generated ? REPEATS : 1);
        done += count * dpr_dtype_size(s->array.dtype);
        progress_show(done);
    }
    return status;
}

/* Returns how many jobs have failed. */
static size_t end_jobs(job_list *list) {
    size_t failed = 0;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        const dpr_status status = *j->why ? DPR_OK : fold_end(&j->fold, list->array, &j->result);
        if (status == DPR_ERR_EMPTY)
            job_stop(j, list->asked->every_op ? CLI_OK : CLI_FAILED, "%s has no result for zero elements",
                     dpr_op_name(j->fold.op));
        else if (status != DPR_OK)
            job_stop(j, CLI_FAILED, "%s", dpr_last_error());
        failed += j->code != CLI_OK;
    }
    return failed;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

/* Adds the row of a job. What text shows of it is in the form that people read. */
static void add_job(cJSON *results, const job_list *list, const job *j, int is_text) {
    const dpr_dtype type = result_type(j);
    const double rate = (double)(list->array->count * dpr_dtype_size(list->array->dtype)) / j->seconds;
    char text[VALUES_TEXT];
    cJSON *row = report_row(results);
    report_add(row, "op=%s strategy=%s", dpr_op_name(j->fold.op), j->strategy);
    if (*j->why) {
        cJSON_AddNullToObject(row, "value");
        cJSON_AddStringToObject(row, "error", j->why);
        return;
    }
    values_text(type, result_values(j), &j->result, text);
    cJSON_AddStringToObject(row, "result_dtype", dpr_dtype_name(type));
    cli_json_add(row, "value", is_text ? cJSON_CreateString(text) : values_json(type, result_values(j), &j->result));
    report_known(row, "seconds", j->seconds); /* neither is known without elements */
    report_known(row, is_text ? "gigabytes" : "bytes_per_second", is_text ? rate / 1e9 : rate);
}

enum { SHAPE_TEXT = 24 * NPY_DIMS };

/* The dimensions in a pair of brackets. */
static const char *shape_text(const npy_header *array, const char *brackets, char text[SHAPE_TEXT]) {
    int n = sprintf(text, "%c", brackets[0]);
    for (int d = 0; d < array->dims; d++)
        n += sprintf(text + n, "%s%" PRIu64, d ? ", " : "", array->shape[d]);
    sprintf(text + n, "%c", brackets[1]);
    return text;
}

static cJSON *add_array(cJSON *arrays, const job_list *list) {
    char shape[SHAPE_TEXT];
    const npy_header *array = list->array;
    cJSON *object = report_row(arrays);
    report_add(object, "file=%s dtype=%s", list->name, dpr_dtype_name(array->dtype));
    cJSON_AddRawToObject(object, "shape", shape_text(array, "[]", shape));
    report_add(object, "fortran_order=%i big_endian=%i count=%lu bytes=%lu", array->fortran, array->swapped,
               array->count, array->count * dpr_dtype_size(array->dtype));
    return object;
}

static void show_heading(const job_list *list, report_out *out) {
    char bytes[32], shape[SHAPE_TEXT] = "";
    const npy_header *array = list->array;
    if (array->dims != 1)
        (void)shape_text(array, "()", shape);
    report_text(out, REPORT_TITLE, "%.512s: %" PRIu64 " %s%s%s, %s%s%s", list->name, array->count,
                dpr_dtype_name(array->dtype), *shape ? ", shape " : "", shape,
                figure_bytes(array->count * dpr_dtype_size(array->dtype), bytes), array->swapped ? ", big-endian" : "",
                array->fortran ? ", Fortran order" : "");
}

/* What stands below the table: why there is no result. */
static void show_reasons(const job_list *list, report_out *out) {
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (*j->why && j->code == CLI_OK)
            report_text(out, REPORT_NOTE, "%s: %s", dpr_op_name(j->fold.op), j->why);
    }
    if (report_is_text(out) && list->asked->every_strategy && !list->asked->gpu)
        list_print_left_out();
}

static void show_jobs(const job_list *list, asked *a) {
    static const report_column columns[] = {{"op", "operation", UNIT_LEFT},      {"value", "value", UNIT_NONE},
                                            {"strategy", "strategy", UNIT_LEFT}, {"gigabytes", "GB/s", UNIT_DIGITS},
                                            {"seconds", "time", UNIT_SECONDS},   {0}};
    const int is_text = report_is_text(&a->out);
    cJSON *results = cJSON_AddArrayToObject(add_array(a->arrays, list), "results");
    for (size_t i = 0; i < list->count; i++)
        if (!is_text || !*list->items[i].why)
            add_job(results, list, &list->items[i], is_text);
    show_heading(list, &a->out);
    if (cJSON_GetArraySize(results) > 0)
        report_table(&a->out, NULL, results, 0, columns);
    show_reasons(list, &a->out);
}

static void print_values(const job_list *list) {
    char text[VALUES_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (!*j->why)
            values_text(result_type(j), result_values(j), &j->result, text);
        if (j->code == CLI_OK)
            puts(*j->why ? "-" : text);
    }
}

static int report_failures(const job_list *list) {
    int code = CLI_OK;
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (j->code != CLI_OK)
            cli_error("%s: %s", list->name, j->why);
        if (j->code > code)
            code = j->code;
    }
    return code == CLI_USAGE ? cli_usage_hint() : code;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

int jobs_reduce(asked *a, source *s, const char *name) {
    job_list list = {.array = &s->array, .name = name, .asked = a};
    int code = -1;
    if (make_jobs(&list) != 0)
        return cli_error("out of memory");
    progress_start(name, s->array.count == UINT64_MAX ? 0 : s->array.count * dpr_dtype_size(s->array.dtype));
    if (add_windows(&list, s) == 0) {
        if (s->ignored)
            cli_note("%s: bytes after the array are ignored", name);
        const size_t failed = end_jobs(&list);
        progress_clear();
        if (a->quiet)
            print_values(&list);
        else if (!report_is_text(&a->out) || failed < list.count || list.count == 0)
            show_jobs(&list, a);
        code = report_failures(&list);
    }
    free_jobs(&list);
    return code;
}
