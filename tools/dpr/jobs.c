#include "jobs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "cli.h"
#include "cli_json.h"
#include "cuda/device.h"
#include "defuse.h"
#include "figures.h"
#include "report.h"
#include "tables.h"
#include "timing.h"

__attribute__((format(printf, 3, 4))) static void job_stop(job *j, job_state state, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(j->why, sizeof j->why, format, args);
    va_end(args);
    j->state = state;
}

static dpr_dtype result_type(const job *j) {
    return dpr_result_dtype(j->fold.op, j->fold.dtype);
}

/* ---- Making ----------------------------------------------------------------------------------------------------- */

static void set_init(job *j, const char *text) {
    if (j->fold.op == DPR_ARGMIN || j->fold.op == DPR_ARGMAX)
        job_stop(j, JOB_MISUSED, "%s takes no initial value", dpr_op_name(j->fold.op));
    else if (value_parse(result_type(j), text, &j->init) != 0)
        job_stop(j, JOB_MISUSED, "the initial value '%.64s' is no %s, the type of this result", text,
                 dpr_dtype_name(result_type(j)));
    else
        j->fold.init = &j->init;
}

/* `strategy` is NULL for the planner's choice. */
static void job_make(job *j, const job_list *list, dpr_op op, const char *strategy) {
    const asked *a = list->asked;
    const place *p = list->place;
    const dpr_dtype dtype = list->array.dtype;
    const int on_gpu = strategy ? cli_strategy_info(strategy).on_gpu : p->prefer_gpu && p->gpu;
    *j = (job){.strategy = a->every_strategy ? strategy : "", .on_gpu = on_gpu};
    j->fold = (fold){
        .ctx = on_gpu ? p->gpu : p->cpu, .cpu = p->cpu, .op = op, .dtype = dtype, .nan = a->nan, .strategy = strategy};
    fold_start(&j->fold);
    if (!dpr_supported(op, dtype))
        job_stop(j, JOB_FAILED, "%s has no meaning for %s", dpr_op_name(op), dpr_dtype_name(dtype));
    else if (!j->fold.ctx)
        job_stop(j, a->every_strategy ? JOB_NO_GPU : JOB_FAILED, "%s needs a GPU", strategy);
    else if (a->init)
        set_init(j, a->init);
}

int jobs_make(job_list *list, const asked *a, const place *p, const npy_header *array, const char *name) {
    const size_t strategies = a->every_strategy ? dpr_strategy_count() : 1;
    *list = (job_list){.array = *array, .name = name, .asked = a, .place = p};
    list->items = calloc((size_t)a->op_count * strategies, sizeof *list->items);
    if (!list->items) {
        cli_error("out of memory");
        return -1;
    }
    for (int o = 0; o < a->op_count; o++)
        for (size_t s = 0; s < strategies; s++)
            if (!a->every_op || dpr_supported(a->ops[o], array->dtype))
                job_make(&list->items[list->count++], list, a->ops[o],
                         a->every_strategy ? dpr_strategy_name(s) : a->strategy);
    return 0;
}

void job_list_free(job_list *list) {
    for (size_t i = 0; i < list->count; i++)
        fold_free(&list->items[i].fold);
    free(list->items);
    *list = (job_list){.items = NULL};
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* Runs the window, in whose time there is no planning. The first one comes once more before that, so that starting
 * threads and loading kernels is not in it either, and `repeats` times, each from the start, for a steadier figure. */
static dpr_status job_run(job *j, const fold_window *w, const job_list *list, int repeats) {
    enum { MOST = 16 };
    double times[MOST], begun = bench_now();
    const int warm = j->fold.elements == 0, most = warm + repeats < MOST ? warm + repeats : MOST;
    int done = 0;
    dpr_status status = fold_prepare(&j->fold, w);
    if (status == DPR_OK && !*j->strategy)
        j->strategy = dpr_plan_strategy(j->fold.plan);
    while (status == DPR_OK && done < most && (done < 4 || bench_now() - begun < 1)) {
        if (warm)
            fold_start(&j->fold);
        const double from = bench_now();
        status = fold_add(&j->fold, w, &list->array);
        times[done++] = bench_now() - from;
    }
    if (status == DPR_OK)
        j->seconds += bench_summarise(times + warm, done - warm).median;
    return status;
}

void jobs_add(job_list *list, const void *in, size_t count, int whole, int repeats) {
    const size_t bytes = count * dpr_dtype_size(list->array.dtype);
    void *device = NULL;
    dpr_status uploaded = DPR_OK;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        if (j->state != JOB_RUNS)
            continue;
        if (j->on_gpu && !device && uploaded == DPR_OK)
            uploaded = dpr_device_upload(dpr_ctx_gpu(j->fold.ctx), in, bytes, bytes, &device);
        if (j->on_gpu && uploaded != DPR_OK) {
            job_stop(j, JOB_FAILED, "%s", dpr_last_error());
            continue;
        }
        const fold_window w = {.in = j->on_gpu ? device : in, .host = in, .count = count, .whole = whole};
        const dpr_status status = job_run(j, &w, list, repeats);
        /* With every strategy tried, those that cannot are part of the picture. */
        const int refused = status == DPR_ERR_STRATEGY_UNABLE && list->asked->every_strategy;
        if (status != DPR_OK)
            job_stop(j, refused ? JOB_REFUSED : JOB_FAILED, "%s", dpr_last_error());
    }
    if (device)
        dpr_device_free(dpr_ctx_gpu(list->place->gpu), device);
}

size_t jobs_end(job_list *list) {
    size_t failed = 0;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        const dpr_status status = j->state == JOB_RUNS ? fold_end(&j->fold, &j->result) : DPR_OK;
        const int is_empty = status == DPR_ERR_EMPTY && list->asked->every_op;
        if (status != DPR_OK)
            job_stop(j, is_empty ? JOB_EMPTY : JOB_FAILED, "%s", dpr_last_error());
        failed += j->state >= JOB_FAILED;
    }
    return failed;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

static cJSON *job_json(const job_list *list, const job *j) {
    const double bytes = (double)(list->array.count * dpr_dtype_size(list->array.dtype));
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "op", dpr_op_name(j->fold.op));
    cJSON_AddStringToObject(object, "strategy", j->strategy);
    if (j->state == JOB_RUNS) {
        cJSON_AddStringToObject(object, "result_dtype", dpr_dtype_name(result_type(j)));
        cli_json_add(object, "value", value_json(result_type(j), &j->result));
        cJSON_AddNumberToObject(object, "seconds", j->seconds);
        cJSON_AddNumberToObject(object, "bytes_per_second", j->seconds > 0 ? bytes / j->seconds : 0);
    } else {
        cJSON_AddNullToObject(object, "value");
        cJSON_AddStringToObject(object, "error", j->why);
    }
    return object;
}

cJSON *jobs_json(const job_list *list) {
    const npy_header *array = &list->array;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "file", list->name);
    cJSON_AddStringToObject(object, "dtype", dpr_dtype_name(array->dtype));
    cJSON *shape = cJSON_AddArrayToObject(object, "shape");
    for (int d = 0; d < array->dims; d++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, array->shape[d]);
        cli_json_append(shape, cJSON_CreateRaw(text));
    }
    cJSON_AddBoolToObject(object, "fortran_order", array->fortran);
    cJSON_AddBoolToObject(object, "big_endian", array->swapped);
    cli_json_integer(object, "count", array->count);
    cli_json_integer(object, "bytes", array->count * dpr_dtype_size(array->dtype));
    cJSON *results = cJSON_AddArrayToObject(object, "results");
    for (size_t i = 0; i < list->count; i++)
        cli_json_append(results, job_json(list, &list->items[i]));
    return object;
}

/* What people read of a job. */
static cJSON *table_row(const job_list *list, const job *j) {
    const double bytes = (double)(list->array.count * dpr_dtype_size(list->array.dtype));
    char text[VALUE_TEXT], time[32];
    cJSON *row = cJSON_CreateObject();
    value_text(result_type(j), &j->result, text);
    cJSON_AddStringToObject(row, "op", dpr_op_name(j->fold.op));
    cJSON_AddStringToObject(row, "value", text);
    cJSON_AddStringToObject(row, "strategy", j->strategy);
    report_known(row, "gigabytes", bytes / j->seconds / 1e9); /* not known without elements */
    cJSON_AddStringToObject(row, "time", j->seconds > 0 ? figure_time(j->seconds, time) : "-");
    return row;
}

static void print_heading(const job_list *list) {
    char bytes[32];
    const npy_header *array = &list->array;
    defuse_put(stdout, list->name);
    printf(": %" PRIu64 " %s", array->count, dpr_dtype_name(array->dtype));
    if (array->dims != 1) {
        printf(", shape (");
        for (int d = 0; d < array->dims; d++)
            printf("%s%" PRIu64, d ? ", " : "", array->shape[d]);
        putchar(')');
    }
    printf(", %s%s%s\n", figure_bytes(array->count * dpr_dtype_size(array->dtype), bytes),
           array->swapped ? ", big-endian" : "", array->fortran ? ", Fortran order" : "");
}

int jobs_print(const job_list *list) {
    static const report_column columns[] = {{"op", "operation", UNIT_LEFT},      {"value", "value", UNIT_NONE},
                                            {"strategy", "strategy", UNIT_LEFT}, {"gigabytes", "GB/s", UNIT_DIGITS},
                                            {"time", "time", UNIT_NONE},         {0}};
    report_out out = report_begin(stdout, REPORT_TABLE);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "results");
    int left_out = 0;
    print_heading(list);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].state == JOB_RUNS)
            cli_json_append(rows, table_row(list, &list->items[i]));
    if (cJSON_GetArraySize(rows) > 0)
        report_table(&out, NULL, rows, 0, columns);
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        left_out |= j->state == JOB_NO_GPU;
        if (j->state == JOB_REFUSED || j->state == JOB_EMPTY)
            report_text(&out, REPORT_NOTE, "%s: %s", dpr_op_name(j->fold.op), j->why);
    }
    if (left_out)
        tables_print_left_out();
    return report_end(&out) == 0 ? CLI_OK : cli_error("out of memory");
}

void jobs_print_values(const job_list *list) {
    char text[VALUE_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (j->state == JOB_RUNS)
            value_text(result_type(j), &j->result, text);
        if (j->state <= JOB_EMPTY)
            puts(j->state == JOB_RUNS ? text : "-");
    }
}

int jobs_report_failures(const job_list *list) {
    int code = CLI_OK;
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (j->state < JOB_FAILED)
            continue;
        cli_error("%s: %s", list->name, j->why);
        if (code != CLI_USAGE)
            code = j->state == JOB_MISUSED ? CLI_USAGE : CLI_FAILED;
    }
    return code == CLI_USAGE ? cli_usage_hint() : code;
}
