#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "cli.h"
#include "cli_json.h"
#include "cuda/device.h"
#include "defuse.h"
#include "figures.h"
#include "tables.h"
#include "timing.h"

static void job_stop(job *j, job_state state, const char *why) {
    j->state = state;
    snprintf(j->why, sizeof j->why, "%s", why);
}

/* ---- Making ----------------------------------------------------------------------------------------------------- */

static void set_init(job *j, const char *text) {
    dpr_dtype type = dpr_result_dtype(j->fold.op, j->fold.dtype);
    char why[256] = "";
    if (j->fold.op == DPR_ARGMIN || j->fold.op == DPR_ARGMAX) {
        snprintf(why, sizeof why, "%s takes no initial value", dpr_op_name(j->fold.op));
    } else if (value_parse(type, text, &j->init) != 0) {
        snprintf(why, sizeof why, "the initial value '%.64s' is no %s, the type of this result", text,
                 dpr_dtype_name(type));
    } else {
        j->fold.init = &j->init;
        return;
    }
    j->misused = 1;
    job_stop(j, JOB_FAILED, why);
}

/* `strategy` is NULL for the planner's choice. */
static void job_make(job *j, const asked *a, const place *p, dpr_op op, dpr_dtype dtype, const char *strategy) {
    *j = (job){.strategy = ""};
    j->optional = a->every_strategy;
    j->on_gpu = strategy ? cli_strategy_info(strategy).on_gpu : p->prefer_gpu && p->gpu;
    j->fold.ctx = j->on_gpu ? p->gpu : p->cpu;
    j->fold.cpu = p->cpu;
    j->fold.op = op;
    j->fold.dtype = dtype;
    j->fold.nan = a->nan;
    j->fold.strategy = strategy;
    fold_start(&j->fold);
    if (strategy && j->optional)
        j->strategy = strategy;
    char why[128];
    if (!dpr_supported(op, dtype)) {
        snprintf(why, sizeof why, "%s has no meaning for %s", dpr_op_name(op), dpr_dtype_name(dtype));
        job_stop(j, JOB_FAILED, why);
    } else if (!j->fold.ctx) {
        snprintf(why, sizeof why, "%s needs a GPU", strategy);
        job_stop(j, j->optional ? JOB_REFUSED : JOB_FAILED, why);
        j->no_gpu = j->optional;
    } else if (a->init) {
        set_init(j, a->init);
    }
}

int jobs_make(job_list *list, const asked *a, const place *p, const npy_header *array, const char *name) {
    size_t strategies = a->every_strategy ? dpr_strategy_count() : 1;
    *list = (job_list){.array = *array, .name = name, .every_op = a->every_op};
    list->items = calloc((size_t)a->op_count * strategies, sizeof *list->items);
    if (!list->items) {
        cli_error("out of memory");
        return -1;
    }
    for (int o = 0; o < a->op_count; o++) {
        if (a->every_op && !dpr_supported(a->ops[o], array->dtype))
            continue;
        for (size_t s = 0; s < strategies; s++)
            job_make(&list->items[list->count++], a, p, a->ops[o], array->dtype,
                     a->every_strategy ? dpr_strategy_name(s) : a->strategy);
    }
    return 0;
}

void job_list_free(job_list *list) {
    for (size_t i = 0; i < list->count; i++)
        fold_free(&list->items[i].fold);
    free(list->items);
    list->items = NULL;
    list->count = 0;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* One window; repeats for a steadier figure start the fold afresh. */
static void job_add(job *j, const fold_window *w, const npy_header *array, int repeats) {
    enum { MOST = 15 };
    double times[MOST], begun = bench_now();
    int done = 0;
    const char *strategy = "";
    dpr_status status = fold_prepare(&j->fold, w, &strategy);
    if (!*j->strategy)
        j->strategy = strategy;
    if (status == DPR_OK && repeats == 1 && j->fold.elements == 0)
        fold_warm_up(&j->fold, w);
    while (status == DPR_OK && done < repeats && done < MOST && (done < 3 || bench_now() - begun < 1)) {
        if (repeats > 1)
            fold_start(&j->fold);
        double from = bench_now();
        status = fold_add(&j->fold, w, array);
        times[done++] = bench_now() - from;
    }
    if (status != DPR_OK) {
        /* With every strategy tried, those that cannot are part of the picture. */
        int refused = status == DPR_ERR_STRATEGY_UNABLE && j->optional;
        job_stop(j, refused ? JOB_REFUSED : JOB_FAILED, dpr_last_error());
        return;
    }
    j->seconds += bench_summarise(times, done).median;
}

static dpr_status upload(dpr_ctx *gpu, const void *host, size_t bytes, void **device) {
    return dpr_device_upload(dpr_ctx_gpu(gpu), host, bytes, bytes, device);
}

void jobs_add(job_list *list, const place *p, const fold_window *w, int repeats) {
    void *device = NULL;
    dpr_status uploaded = DPR_OK;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        if (j->state != JOB_RUNS)
            continue;
        if (j->on_gpu && !device && uploaded == DPR_OK)
            uploaded = upload(p->gpu, w->host, w->count * dpr_dtype_size(j->fold.dtype), &device);
        if (j->on_gpu && uploaded != DPR_OK) {
            job_stop(j, JOB_FAILED, dpr_last_error());
            continue;
        }
        fold_window window = *w;
        if (j->on_gpu)
            window.in = device;
        job_add(j, &window, &list->array, repeats);
    }
    if (device)
        dpr_device_free(dpr_ctx_gpu(p->gpu), device);
}

size_t jobs_end(job_list *list) {
    size_t failed = 0;
    for (size_t i = 0; i < list->count; i++) {
        job *j = &list->items[i];
        if (j->state == JOB_RUNS) {
            dpr_status status = fold_end(&j->fold, &j->result);
            if (status != DPR_OK)
                job_stop(j, status == DPR_ERR_EMPTY && list->every_op ? JOB_EMPTY : JOB_FAILED, dpr_last_error());
        }
        failed += j->state == JOB_FAILED;
    }
    return failed;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

static void outcome_text(const job *j, char text[VALUE_TEXT]) {
    if (j->state == JOB_RUNS)
        value_text(dpr_result_dtype(j->fold.op, j->fold.dtype), &j->result, text);
    else
        strcpy(text, "-");
}

static double bytes_per_second(const job_list *list, const job *j) {
    double bytes = (double)(list->array.count * dpr_dtype_size(list->array.dtype));
    return j->seconds > 0 ? bytes / j->seconds : 0;
}

static void print_shape(const npy_header *array) {
    putchar('(');
    for (int d = 0; d < array->dims; d++)
        printf("%s%" PRIu64, d ? ", " : "", array->shape[d]);
    printf(array->dims == 1 ? ",)" : ")");
}

static void print_heading(const job_list *list, const char *remark) {
    char bytes[32];
    const npy_header *array = &list->array;
    defuse_put(stdout, list->name);
    printf(": %" PRIu64 " %s", array->count, dpr_dtype_name(array->dtype));
    if (array->dims != 1) {
        printf(", shape ");
        print_shape(array);
    }
    printf(", %s%s%s%s%s\n", figure_bytes(array->count * dpr_dtype_size(array->dtype), bytes),
           array->swapped ? ", big-endian" : "", array->fortran ? ", Fortran order" : "", remark ? ", " : "",
           remark ? remark : "");
}

static void print_reason(const char *why) {
    fputs("  ", stdout);
    defuse_put(stdout, why);
    putchar('\n');
}

void jobs_print(const job_list *list, const char *remark) {
    int op_width = 0, value_width = 0, strategy_width = 0, left_out = 0;
    char text[VALUE_TEXT], time[32];
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        left_out |= j->no_gpu;
        if (j->no_gpu)
            continue;
        outcome_text(j, text);
        int widths[] = {(int)strlen(dpr_op_name(j->fold.op)), (int)strlen(text), (int)strlen(j->strategy)};
        op_width = widths[0] > op_width ? widths[0] : op_width;
        value_width = widths[1] > value_width ? widths[1] : value_width;
        strategy_width = widths[2] > strategy_width ? widths[2] : strategy_width;
    }
    print_heading(list, remark);
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (j->state == JOB_FAILED || j->no_gpu)
            continue;
        outcome_text(j, text);
        printf("  %-*s  %*s  %-*s", op_width, dpr_op_name(j->fold.op), value_width, text, strategy_width, j->strategy);
        if (j->state != JOB_RUNS)
            print_reason(j->why);
        else if (j->seconds > 0)
            printf("  %8.3f GB/s  %8s\n", bytes_per_second(list, j) / 1e9, figure_time(j->seconds, time));
        else
            printf("%s\n", *j->strategy ? "" : "  no elements");
    }
    if (left_out)
        tables_print_left_out();
}

void jobs_print_values(const job_list *list) {
    char text[VALUE_TEXT];
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].state == JOB_FAILED || list->items[i].state == JOB_REFUSED)
            continue;
        outcome_text(&list->items[i], text);
        puts(text);
    }
}

int jobs_report_failures(const job_list *list) {
    int code = CLI_OK;
    for (size_t i = 0; i < list->count; i++) {
        const job *j = &list->items[i];
        if (j->state != JOB_FAILED)
            continue;
        cli_error("%s: %s", list->name, j->why);
        if (code != CLI_USAGE)
            code = j->misused ? CLI_USAGE : CLI_FAILED;
    }
    return code == CLI_USAGE ? cli_usage_hint() : code;
}

static cJSON *job_json(const job_list *list, const job *j) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "op", dpr_op_name(j->fold.op));
    cJSON_AddStringToObject(object, "strategy", j->strategy);
    if (j->state == JOB_RUNS) {
        dpr_dtype type = dpr_result_dtype(j->fold.op, j->fold.dtype);
        cJSON_AddStringToObject(object, "result_dtype", dpr_dtype_name(type));
        cli_json_add(object, "value", value_json(type, &j->result));
        cJSON_AddNumberToObject(object, "seconds", j->seconds);
        cJSON_AddNumberToObject(object, "bytes_per_second", bytes_per_second(list, j));
    } else {
        cJSON_AddNullToObject(object, "value");
        cJSON_AddStringToObject(object, "error", j->why);
    }
    return object;
}

cJSON *jobs_json(const job_list *list) {
    cJSON *object = cJSON_CreateObject();
    const npy_header *array = &list->array;
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
