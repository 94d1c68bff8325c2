#include "bench_report.h"

#include <assert.h>
#include <string.h>

#include "cli_json.h"
#include "figures.h"

/* ---- The beginning ---------------------------------------------------------------------------------------------- */

static void add_device(cJSON *object, const bench_device *d) {
    const int gpu = d->ordinal != DPR_DEVICE_CPU;
    cJSON_AddStringToObject(object, "name", d->name);
    cJSON_AddStringToObject(object, "kind", gpu ? "gpu" : "cpu");
    cJSON_AddNumberToObject(object, gpu ? "sm_count" : "cores", d->sm_count);
    cli_json_integer(object, "cache_bytes", d->cache_bytes);
    if (!gpu)
        return;
    cJSON_AddNumberToObject(object, "cuda_driver_version", d->driver_version);
    cJSON_AddNumberToObject(object, "cuda_runtime_version", d->runtime_version);
    cJSON_AddNumberToObject(object, "sm_clock_khz", d->sm_clock_khz);
    cJSON_AddNumberToObject(object, "memory_clock_khz", d->memory_clock_khz);
    cJSON_AddNumberToObject(object, "memory_bus_bits", d->memory_bus_bits);
    cli_json_integer(object, "memory_bytes", d->memory_bytes);
}

static void add_settings(cJSON *object, const bench_results *r) {
    report_number(object, "accuracy", r->rule.half_width);
    cJSON_AddNumberToObject(object, "min_samples", r->rule.min_samples);
    cJSON_AddNumberToObject(object, "max_samples", r->rule.max_samples);
    report_number(object, "budget_seconds", r->rule.seconds);
    cli_json_integer(object, "pool_bytes", r->pool_bytes);
}

static void add_heads(report_out *out, const char *name, const bench_results *r) {
    cJSON_AddStringToObject(out->document, "benchmark", name);
    cJSON_AddStringToObject(out->document, "version", dpr_version());
    cJSON_AddStringToObject(out->document, "commit", r->commit);
    add_device(cJSON_AddObjectToObject(out->document, "device"), &r->device);
    add_settings(cJSON_AddObjectToObject(out->document, "settings"), r);
    cJSON_AddBoolToObject(out->document, "interrupted", r->interrupted);
}

static void define(report_out *out, const bench_definition *definitions) {
    static const bench_definition all[] = {
        {"graph", "one replay of a CUDA graph of many calls, between two events, over the calls"},
        {"stream", "wall time of many calls into an idle stream and of waiting for the last, over the calls"},
        {"blocking", "wall time of calls that return with the result in host memory, one after another"},
        {"cold", "the cache is filled with other data before, by reading; calls rotate over buffers"},
        {"hot", "all calls read one buffer that was read just before"},
        {"interval", "low_us to high_us is a confidence interval of the median, 95 %"},
        {"spread", "distance of the 10 % and 90 % quantiles over the median"},
        {"block", "threads a block, at most, as asked for; without it, the strategy has its own"},
        {NULL, NULL}};
    cJSON *object = cJSON_AddObjectToObject(out->document, "definitions");
    for (const bench_definition *d = all; d->key; d++)
        cJSON_AddStringToObject(object, d->key, d->text);
    for (; definitions && definitions->key; definitions++)
        cJSON_AddStringToObject(object, definitions->key, definitions->text);
}

report_out bench_report_begin(FILE *f, report_format format, const char *name, const bench_results *r,
                              const char *title, const bench_definition *definitions) {
    report_out out = report_begin(f, format);
    add_heads(&out, name, r);
    define(&out, definitions);
    report_text(&out, REPORT_TITLE, "%s, dpr %s%s%s%s", r->device.name, dpr_version(), *r->commit ? " " : "", r->commit,
                title);
    return out;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static const char *describe(char text[160], const bench_case *at) {
    char count[32];
    snprintf(text, 160, "%s of %s, %s, %s, %s elements", dpr_op_name(at->op), dpr_dtype_name(at->dtype),
             bench_mode_name(at->mode), bench_cache_name(at->cache), figure_elements(at->count, count));
    return text;
}

void bench_report_case(report_out *out, const bench_case *at, int sized, int block, const char *more) {
    static const char *const calls[] = {[BENCH_GRAPH] = "calls in a graph",
                                        [BENCH_STREAM] = "calls into a stream",
                                        [BENCH_BLOCKING] = "blocking calls"};
    char size[96] = "", threads[64] = "", count[32], bytes[32];
    if (sized)
        snprintf(size, sizeof size, "%s elements (%s), ", figure_elements(at->count, count),
                 figure_bytes(at->count * dpr_dtype_size(at->dtype), bytes));
    if (block)
        snprintf(threads, sizeof threads, ", %d threads a block where that can be chosen", block);
    report_text(out, REPORT_HEADING, "%s%s of %s, %s, %s cache%s%s", size, dpr_op_name(at->op),
                dpr_dtype_name(at->dtype), calls[at->mode], bench_cache_name(at->cache), threads, more);
}

/* ---- The end ---------------------------------------------------------------------------------------------------- */

static void say_marks(report_out *out, const bench_results *r) {
    double slowdown = 0;
    char slower[80] = "";
    for (size_t i = 0; i < r->row_count; i++)
        if (results_timed(&r->rows[i]) && results_doubtful(r, &r->rows[i]) && r->rows[i].slowdown > slowdown)
            slowdown = r->rows[i].slowdown;
    if (slowdown > 0)
        snprintf(slower, sizeof slower, "; ? the machine was slower than before, by up to %.0f %%", 100 * slowdown);
    report_text(out, REPORT_NOTE,
                "Marks: * the planner's choice; ! wrong results; ~ the median is not certain to %.2g %%%s",
                100 * r->rule.half_width, slower);
}

static void say_trouble(report_out *out, const bench_row *row) {
    char text[160];
    if (row->wrong)
        report_text(out, REPORT_NOTE, "%s: %s gave %ld WRONG results of %ld", describe(text, &row->at), row->subject,
                    row->wrong, row->checked);
    else if (row->state == BENCH_FAILED)
        report_text(out, REPORT_NOTE, "%s: %s failed: %s", describe(text, &row->at), row->subject, row->why);
}

/* A line for each reason: of the first that it left out, with how many more. */
static void say_omission(report_out *out, const bench_results *r, size_t first) {
    const char *why = r->omissions[first].why;
    size_t same = 0;
    char text[160], more[48] = "";
    for (size_t i = 0; i < r->omission_count; i++) {
        const int is_same = strcmp(r->omissions[i].why, why) == 0;
        if (is_same && i < first)
            return;
        same += (size_t)is_same;
    }
    if (same > 1)
        snprintf(more, sizeof more, ", and %zu more", same - 1);
    report_text(out, REPORT_NOTE, "Left out: %s%s: %s", describe(text, &r->omissions[first].at), more, why);
}

int bench_report_end(report_out *out, const bench_results *r) {
    cJSON *left_out = cJSON_AddArrayToObject(out->document, "left_out");
    if (r->row_count > 0)
        say_marks(out, r);
    for (size_t i = 0; i < r->row_count; i++)
        say_trouble(out, &r->rows[i]);
    for (size_t i = 0; i < r->omission_count; i++) {
        cJSON *omission = report_row(left_out);
        bench_json_case(omission, &r->omissions[i].at);
        cJSON_AddStringToObject(omission, "why", r->omissions[i].why);
        say_omission(out, r, i);
    }
    return report_end(out);
}

/* ---- Sizes by subjects ------------------------------------------------------------------------------------------ */

static void add_measure(cJSON *line, const bench_results *r, const bench_row *row, table_measure measure) {
    const bench_summary *ratio = &row->ratio;
    char text[96], time[32];
    if ((measure == TABLE_RATE && row->gb_per_s <= 0) || (measure == TABLE_RATIO && ratio->n == 0))
        return;
    if (measure == TABLE_RATE)
        bench_marked(text, r, row, row->gb_per_s);
    else if (measure == TABLE_RATIO)
        snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", ratio->median, ratio->low, ratio->high);
    else if (measure == TABLE_SPREAD && results_timed(row))
        snprintf(text, sizeof text, "%s \u00b1%.1f%%", bench_marked(time, r, row, row->us.median), 50 * row->us.spread);
    else
        bench_marked(text, r, row, row->us.median);
    cJSON_AddStringToObject(line, row->subject, text);
}

/* The n rows of a case. */
static void add_case(cJSON *line, const bench_results *r, const bench_row *rows, size_t n, table_measure measure) {
    const bench_row *winner = results_winner(rows, n);
    bench_regret regret;
    char text[64];
    cli_json_integer(line, "elements", rows->at.count);
    cli_json_integer(line, "bytes", rows->at.count * dpr_dtype_size(rows->at.dtype));
    for (size_t i = 0; i < n; i++) {
        add_measure(line, r, &rows[i], measure);
        if (measure == TABLE_SPREAD && rows[i].chosen)
            cJSON_AddStringToObject(line, "choice", rows[i].strategy);
    }
    if (measure != TABLE_TIME)
        return;
    if (winner)
        cJSON_AddStringToObject(line, "best", winner->subject);
    if (!results_regret(rows, n, &regret))
        return;
    snprintf(text, sizeof text, "%.1f %%, %.2f us", 100 * regret.fraction, regret.us);
    cJSON_AddStringToObject(line, "choice", regret.chosen->strategy);
    cJSON_AddStringToObject(line, "regret", text);
}

static int some_have(const cJSON *list, const char *key) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, list) {
        if (cJSON_GetObjectItemCaseSensitive(row, key))
            return 1;
    }
    return 0;
}

static_assert(BENCH_SUBJECTS + 6 <= REPORT_COLUMNS, "a table has a column for each subject");

void bench_report_sizes(report_out *out, const results_table *t, table_measure measure) {
    static const char *const titles[] = {[TABLE_TIME] = "Microseconds a call:",
                                         [TABLE_SPREAD] = "Microseconds a call, and their spread:",
                                         [TABLE_RATIO] = "Time over that of the first subject:",
                                         [TABLE_RATE] = "GB/s:"};
    static const char *const verdict[] = {"best", "choice", "regret"};
    report_column columns[BENCH_SUBJECTS + 6] = {{"elements", "elements", UNIT_ELEMENTS},
                                                 {"bytes", "bytes", UNIT_BYTES}};
    int c = 2;
    cJSON *list = cJSON_CreateArray();
    for (size_t i = t->first, n; i < t->first + t->n; i += n) {
        n = results_case_rows(t->results, i);
        add_case(report_row(list), t->results, &t->results->rows[i], n, measure);
    }
    for (int i = 0; i < t->subjects; i++)
        if (some_have(list, t->subject[i]))
            columns[c++] = (report_column){t->subject[i], t->subject[i], UNIT_DIGITS};
    for (int i = 0; i < 3; i++)
        if (measure == TABLE_TIME || (measure == TABLE_SPREAD && i == 1))
            columns[c++] = (report_column){verdict[i], verdict[i], UNIT_NONE};
    report_text(out, REPORT_NOTE, "%s", titles[measure]);
    report_table(out, NULL, list, 0, columns);
    cJSON_Delete(list);
}

/* ---- dpr bench -------------------------------------------------------------------------------------------------- */

static void write_rows(report_out *out, const bench_results *r) {
    cJSON *rows = cJSON_AddArrayToObject(out->document, "rows");
    for (size_t i = 0; i < r->row_count; i++) {
        cJSON *row = report_row(rows);
        cJSON_AddStringToObject(row, "strategy", r->rows[i].strategy);
        bench_json_row(out, row, r, &r->rows[i]);
    }
    report_csv(out,
               "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,ok,chosen,"
               "settled,doubtful,block",
               rows);
}

static void add_regret(cJSON *row, const bench_regret *regret) {
    bench_json_case(row, &regret->at);
    cJSON_AddStringToObject(row, "winner", regret->winner->strategy);
    report_number(row, "winner_us", regret->winner->us.median);
    cJSON_AddStringToObject(row, "chosen", regret->chosen->strategy);
    report_number(row, "chosen_us", regret->chosen->us.median);
    report_number(row, "regret_us", regret->us);
    report_number(row, "regret_percent", 100 * regret->fraction);
}

static void write_regrets(report_out *out, const bench_results *r) {
    cJSON *regrets = cJSON_AddArrayToObject(out->document, "regret");
    bench_regret worst = {.fraction = -1}, one;
    int cases = 0, past = 0;
    char text[160];
    for (size_t i = 0; i < r->row_count; i += results_case_rows(r, i)) {
        if (!results_regret(r->rows + i, results_case_rows(r, i), &one))
            continue;
        add_regret(report_row(regrets), &one);
        cases++;
        past += one.fraction > 0.05 && one.us > 0.2;
        worst = one.fraction > worst.fraction ? one : worst;
    }
    if (worst.chosen && worst.fraction <= 0)
        report_text(out, REPORT_NOTE, "The planner's choice is the quickest in %d of %d.", cases, cases);
    else if (worst.chosen)
        report_text(
            out, REPORT_NOTE,
            "Worst regret: %.1f %%, %.2f us (%s: %s chosen, %s quickest); more than 5 %% and 0.2 us in %d of %d.",
            100 * worst.fraction, worst.us, describe(text, &worst.at), worst.chosen->strategy, worst.winner->strategy,
            past, cases);
}

/* The block size that rows of the table were asked to have; 0: none was. */
static int block_of(const results_table *t) {
    int block = 0;
    for (size_t i = t->first; i < t->first + t->n; i++)
        block = t->results->rows[i].block ? t->results->rows[i].block : block;
    return block;
}

int bench_write(FILE *f, const bench_results *r, report_format format) {
    report_out out = bench_report_begin(f, format, "dpr bench", r, "", NULL);
    write_rows(&out, r);
    for (size_t i = 0, n; report_is_text(&out) && i < r->row_count; i += n) {
        const results_table t = results_table_at(r, i);
        n = t.n;
        bench_report_case(&out, &r->rows[i].at, 0, block_of(&t), "");
        bench_report_sizes(&out, &t, TABLE_TIME);
        bench_report_sizes(&out, &t, TABLE_RATE);
    }
    write_regrets(&out, r);
    return bench_report_end(&out, r);
}
