#include "bench_report.h"

#include <string.h>

#include "cli.h"
#include "cli_json.h"
#include "figures.h"

/* ---- The beginning ---------------------------------------------------------------------------------------------- */

static void add_device(cJSON *object, const bench_device *d) {
    const int gpu = d->ordinal != DPR_DEVICE_CPU;
    report_add(object, "name=%s kind=%s", d->name, gpu ? "gpu" : "cpu");
    cJSON_AddNumberToObject(object, gpu ? "sm_count" : "cores", d->sm_count);
    report_add(object, "cache_bytes=%lu", d->cache_bytes);
    if (!gpu)
        return;
    report_add(object,
               "cuda_driver_version=%d cuda_runtime_version=%d sm_clock_khz=%d memory_clock_khz=%d memory_bus_bits=%d "
               "memory_bytes=%lu",
               d->driver_version, d->runtime_version, d->sm_clock_khz, d->memory_clock_khz, d->memory_bus_bits,
               d->memory_bytes);
}

static void add_settings(cJSON *object, const bench_results *r) {
    report_add(object, "accuracy=%g min_samples=%d max_samples=%d budget_seconds=%g pool_bytes=%lu", r->rule.half_width,
               r->rule.min_samples, r->rule.max_samples, r->rule.seconds, r->device.pool_bytes);
    cJSON_AddStringToObject(object, "wisdom", r->wisdom);
    if (r->offsets != DPR_DTYPE_NONE)
        cJSON_AddStringToObject(object, "offsets", dpr_dtype_name(r->offsets));
}

static void add_heads(report_out *out, const char *name, const bench_results *r) {
    report_add(out->document, "benchmark=%s version=%s commit=%s", name, dpr_version(), r->commit);
    add_device(cJSON_AddObjectToObject(out->document, "device"), &r->device);
    add_settings(cJSON_AddObjectToObject(out->document, "settings"), r);
    if (r->clock_mhz > 0)
        report_add(cJSON_AddObjectToObject(out->document, "reference"), "clock_mhz=%g read_gb_per_s=%g", r->clock_mhz,
                   r->read_gb_per_s);
    cJSON_AddBoolToObject(out->document, "interrupted", r->interrupted || r->is_partial);
    if (r->row_count > 0 && r->rows[0].at.shape)
        report_known(out->document, "read_gb_per_s", r->read_gb_per_s);
}

static void define(report_out *out, const bench_definition *definitions) {
    static const bench_definition all[] = {
        {"graph", "one replay of a CUDA graph of many calls, between two events, over the calls"},
        {"stream", "wall time of many calls into an idle stream and of waiting for the last, over the calls"},
        {"blocking", "wall time of calls that return with the result in host memory, one after another"},
        {"cold", "the cache is filled with other data before, by reading; calls rotate over buffers"},
        {"hot", "all calls read one buffer that was read just before"},
        {"launch_us", "the median of an empty launch, and of the wait for it if calls block, in turn with the others"},
        {"steady",
         "what short calls would take if an empty launch took 3.5 us in a stream, 10 us blocking, and limited them"},
        {"interval", "low_us to high_us is a confidence interval of the median, 95 %"},
        {"spread", "distance of the 10 % and 90 % quantiles over the median"},
        {"memory", "where the array lies; without it, in device memory, or for the CPU in pageable memory"},
        {"block", "threads a block, at most, as asked for; without it, the strategy has its own"},
        {"visit", "1: of the first measurement of the case; 2: of the one right after it, because the choice took more "
                  "than 5 % longer than the winner; 3 to 5: of a later one, because samples scattered"},
        {"reference", "the best rates of a fixed piece of work, which was repeated during the measurement"},
        {NULL, NULL}};
    cJSON *object = cJSON_AddObjectToObject(out->document, "definitions");
    for (const bench_definition *d = all; d->key; d++)
        cJSON_AddStringToObject(object, d->key, d->text);
    for (; definitions && definitions->key; definitions++)
        cJSON_AddStringToObject(object, definitions->key, definitions->text);
}

const bench_definition bench_definitions_of_many[] = {
    {"planner", "the planner's choice, whichever strategy that is"},
    {"results", "results of one call"},
    {"bytes", "elements, offsets of segments and results of one call; gb_per_s are of these"},
    {"over_floor", "the median over the time in which the device reads as many bytes, at read_gb_per_s"},
    {NULL, NULL}};

report_out bench_report_begin(FILE *f, report_format format, const char *name, const bench_results *r,
                              const char *title, const bench_definition *definitions) {
    report_out out = report_begin(f, format);
    add_heads(&out, name, r);
    define(&out, definitions);
    report_text(&out, REPORT_TITLE, "%s, dpr %s%s%s%s", r->device.name, dpr_version(), *r->commit ? " " : "", r->commit,
                title);
    return out;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* What arrays with many results are called by: their member, and the heading of their column. */
static const char *shape_key(const bench_case *at) {
    return at->shape->dimensions ? "axes" : "segments";
}

void bench_json_case(cJSON *object, const bench_case *at) {
    char ops[OPS_TEXT];
    if (at->shape)
        cJSON_AddStringToObject(object, shape_key(at), at->shape->name);
    report_add(object, "op=%s dtype=%s count=%lu mode=%s cache=%s", ops_name(&at->ops, ops), dpr_dtype_name(at->dtype),
               at->count, bench_mode_name(at->mode), bench_cache_name(at->cache));
    if (at->memory != DPR_MEMORY_AUTO)
        cJSON_AddStringToObject(object, "memory", cli_memory_name(at->memory));
}

void bench_json_times(cJSON *object, const bench_summary *us) {
    report_add(object, "median_us=%g low_us=%g high_us=%g spread=%g", us->median, us->low, us->high, us->spread);
}

/* A figure of a row with the marks that bench_report_end() explains, or "failed". The buffer is returned. */
static const char *marked(char text[32], const bench_results *r, const bench_row *row, double figure) {
    char digits[32];
    if (results_timed(row))
        snprintf(text, 32, "%.20s%s%s%s%s", figure_digits(figure, digits), row->wrong ? "!" : "",
                 row->verdict == BENCH_SETTLED ? "" : "~", results_doubtful(r, row) ? "?" : "", row->chosen ? "*" : "");
    else
        snprintf(text, 32, "failed%s", row->chosen ? "*" : "");
    return text;
}

void bench_json_row(const report_out *out, cJSON *object, const bench_results *r, const bench_row *row) {
    char text[32];
    bench_json_case(object, &row->at);
    if (out->format == REPORT_CSV && row->at.memory == DPR_MEMORY_AUTO)
        cJSON_AddStringToObject(object, "memory", cli_memory_name(r->device.memory));
    if (row->block || out->format == REPORT_CSV)
        cJSON_AddNumberToObject(object, "block", row->block);
    report_add(object, "samples=%d calls=%d visit=%d", row->us.n, row->calls, row->visit);
    if (results_timed(row)) {
        bench_json_times(object, &row->us);
        report_add(object, "gb_per_s=%g", row->gb_per_s);
    }
    if (row->launch_us > 0)
        report_add(object, "launch_us=%g", row->launch_us);
    if (row->steady.n)
        report_add(object, "steady_us=%g steady_low_us=%g steady_high_us=%g", row->steady.median, row->steady.low,
                   row->steady.high);
    if (row->at.shape) {
        report_add(object, "results=%lu bytes=%lu", row->results, row->bytes);
        report_known(object, "over_floor", results_timed(row) ? results_over_floor(r, row) : 0);
    }
    report_add(object, "chosen=%i ok=%i settled=%i doubtful=%i checked=%lu wrong=%lu late=%d", row->chosen,
               results_right(row), row->verdict == BENCH_SETTLED, results_doubtful(r, row), (uint64_t)row->checked,
               (uint64_t)row->wrong, row->late);
    if (row->why[0])
        cJSON_AddStringToObject(object, out->format == REPORT_CSV ? "why" : "error", row->why);
    if (row->ratio.n) {
        report_add(object, "ratio=%g ratio_low=%g ratio_high=%g", row->ratio.median, row->ratio.low, row->ratio.high);
    }
    if (report_is_text(out))
        cJSON_AddStringToObject(object, "us", marked(text, r, row, row->us.median));
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

void bench_report_case(report_out *out, const bench_case *at, int sized, int block, const char *more) {
    static const char *const calls[] = {[BENCH_GRAPH] = "calls in a graph",
                                        [BENCH_STREAM] = "calls into a stream",
                                        [BENCH_BLOCKING] = "blocking calls"};
    char size[96] = "", threads[64] = "", count[32], bytes[32], ops[OPS_TEXT], memory[RESULTS_MEMORY];
    if (sized)
        snprintf(size, sizeof size, "%s elements (%s), ", figure_elements(at->count, count),
                 figure_bytes(at->count * dpr_dtype_size(at->dtype), bytes));
    if (block)
        snprintf(threads, sizeof threads, ", %d threads a block where that can be chosen", block);
    report_text(out, REPORT_HEADING, "%s%s of %s, %s, %s cache%s%s%s", size, ops_name(&at->ops, ops),
                dpr_dtype_name(at->dtype), calls[at->mode], bench_cache_name(at->cache), results_memory(at, memory),
                threads, more);
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

/* A line for each reason: of the first that it left out, with how many more. */
static void say_omission(report_out *out, const bench_results *r, size_t first) {
    const char *why = r->omissions[first].why;
    size_t same = 0;
    char name[RESULTS_TEXT], more[48] = "";
    for (size_t i = 0; i < r->omission_count; i++) {
        const int is_same = strcmp(r->omissions[i].why, why) == 0;
        if (is_same && i < first)
            return;
        same += (size_t)is_same;
    }
    if (same > 1)
        snprintf(more, sizeof more, ", and %zu more", same - 1);
    report_text(out, REPORT_NOTE, "Left out: %s%s: %s", results_name(&r->omissions[first].at, name), more, why);
}

int bench_report_end(report_out *out, const bench_results *r) {
    cJSON *left_out = cJSON_AddArrayToObject(out->document, "left_out");
    char trouble[RESULTS_TEXT];
    if (r->row_count > 0)
        say_marks(out, r);
    for (size_t i = 0; i < r->row_count; i++)
        if (*results_trouble(&r->rows[i], trouble))
            report_text(out, REPORT_NOTE, "%s", trouble);
    for (size_t i = 0; i < r->omission_count; i++) {
        cJSON *omission = report_row(left_out);
        bench_json_case(omission, &r->omissions[i].at);
        cJSON_AddStringToObject(omission, "why", r->omissions[i].why);
        say_omission(out, r, i);
    }
    return report_end(out);
}

/* ---- Sizes by subjects ------------------------------------------------------------------------------------------ */

/* A table of sizes by subjects: times, and which is best and what the planner's choice loses by comparison, or with
 * peers their spreads; times over that of the first subject, and their interval; rates; of arrays with many results
 * also times over that of reading as many bytes. */
typedef enum table_measure { TABLE_TIME, TABLE_RATIO, TABLE_RATE, TABLE_FLOOR, TABLE_MEASURES } table_measure;

/* Whether rows like these have such a table. */
static int is_measured(const bench_results *r, const bench_row *row, table_measure measure, int peers) {
    if (measure == TABLE_FLOOR)
        return row->at.shape && r->read_gb_per_s > 0;
    return measure != TABLE_RATIO || peers;
}

/* Adds the row's figure, if it has one. Whether it has. */
static int add_measure(cJSON *line, const bench_results *r, const bench_row *row, table_measure measure, int peers) {
    const bench_summary *ratio = &row->ratio;
    char text[96], time[32];
    if ((measure == TABLE_RATE && row->gb_per_s <= 0) || (measure == TABLE_RATIO && ratio->n == 0)
        || (measure == TABLE_FLOOR && row->us.median <= 0))
        return 0;
    if (measure == TABLE_FLOOR)
        marked(text, r, row, results_over_floor(r, row));
    else if (measure == TABLE_RATE)
        marked(text, r, row, row->gb_per_s);
    else if (measure == TABLE_RATIO)
        snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", ratio->median, ratio->low, ratio->high);
    else if (measure == TABLE_TIME && peers && results_timed(row))
        snprintf(text, sizeof text, "%s \u00b1%.1f%%", marked(time, r, row, row->us.median), 50 * row->us.spread);
    else
        marked(text, r, row, row->us.median);
    cJSON_AddStringToObject(line, row->subject, text);
    return 1;
}

/* What the n rows of a case say of the planner's choice. */
static void add_verdict(cJSON *line, const bench_row *rows, size_t n, int peers) {
    const bench_row *winner = results_winner(rows, n);
    bench_regret regret;
    char text[64];
    for (size_t i = 0; i < n && peers; i++)
        if (rows[i].chosen)
            cJSON_AddStringToObject(line, "choice", rows[i].strategy);
    if (peers)
        return;
    if (winner)
        cJSON_AddStringToObject(line, "best", winner->subject);
    if (!results_regret(rows, n, &regret))
        return;
    snprintf(text, sizeof text, "%.1f %%, %.2f us", 100 * regret.fraction, regret.us);
    report_add(line, "choice=%s regret=%s", regret.chosen->strategy, text);
}

/* Adds a column for the key, if it has none. Returns how many columns there are. */
static int add_column(report_column *columns, int n, const char *key) {
    for (int i = 0; i < n; i++)
        if (strcmp(columns[i].key, key) == 0)
            return n;
    if (n < REPORT_COLUMNS - 1)
        columns[n++] = (report_column){key, key, UNIT_NONE};
    return n;
}

/* The columns that say what a line is of. Returns how many there are. */
static int begin_columns(report_column *columns, const bench_case *at) {
    static const report_column of_one[] = {{"elements", "elements", UNIT_ELEMENTS}, {"bytes", "bytes", UNIT_BYTES}};
    static const report_column of_many[] = {
        {"name", NULL, UNIT_LEFT}, {"elements", "elements", UNIT_ELEMENTS}, {"results", "results", UNIT_ELEMENTS}};
    if (!at->shape) {
        memcpy(columns, of_one, sizeof of_one);
        return sizeof of_one / sizeof *of_one;
    }
    memcpy(columns, of_many, sizeof of_many);
    columns[0].heading = shape_key(at);
    return sizeof of_many / sizeof *of_many;
}

/* What a line is of. */
static void begin_line(cJSON *line, const bench_row *row) {
    if (row->at.shape)
        report_add(line, "name=%s elements=%lu results=%lu", row->at.shape->name, row->at.count, row->results);
    else
        report_add(line, "elements=%lu bytes=%lu", row->at.count, row->at.count * dpr_dtype_size(row->at.dtype));
}

/* The n rows from `first` on as a table of sizes by subjects. */
static void write_sizes(report_out *out, const bench_results *r, size_t first, size_t n, table_measure measure,
                        int peers) {
    static const char *const titles[] = {[TABLE_TIME] = "Microseconds a call:",
                                         [TABLE_RATIO] = "Time over that of the first subject:",
                                         [TABLE_RATE] = "GB/s:",
                                         [TABLE_FLOOR] = ("Time over that of reading as many bytes as a call reads "
                                                          "and writes:")};
    report_column columns[REPORT_COLUMNS] = {{NULL, NULL, UNIT_NONE}};
    static const char *const verdicts[][4] = {{"best", "choice", "regret"}, {"choice"}};
    cJSON *list = cJSON_CreateArray(), *line = NULL;
    int n_columns = begin_columns(columns, &r->rows[first].at);
    for (size_t i = first; i < first + n; i++) {
        const bench_row *row = &r->rows[i];
        if (i == first || !results_same_case(&row->at, &row[-1].at)) {
            line = report_row(list);
            begin_line(line, row);
            if (measure == TABLE_TIME)
                add_verdict(line, row, results_alike(r, i, 0), peers);
        }
        if (add_measure(line, r, row, measure, peers))
            n_columns = add_column(columns, n_columns, row->subject);
    }
    for (int i = 0; measure == TABLE_TIME && verdicts[peers][i]; i++)
        n_columns = add_column(columns, n_columns, verdicts[peers][i]);
    report_text(out, REPORT_NOTE, "%s", titles[measure]);
    report_table(out, NULL, list, 0, columns);
    cJSON_Delete(list);
}

/* The block size that some of the rows were asked to have; 0: none was. */
static int block_of(const bench_row *rows, size_t n) {
    int block = 0;
    for (size_t i = 0; i < n; i++)
        block = rows[i].block ? rows[i].block : block;
    return block;
}

void bench_report_rows(report_out *out, const bench_results *r, const char *csv, int peers) {
    cJSON *rows = cJSON_AddArrayToObject(out->document, "rows");
    for (size_t i = 0; i < r->row_count; i++) {
        cJSON *row = report_row(rows);
        if (peers)
            cJSON_AddStringToObject(row, "subject", r->rows[i].subject);
        if (r->rows[i].strategy)
            cJSON_AddStringToObject(row, "strategy", r->rows[i].strategy);
        bench_json_row(out, row, r, &r->rows[i]);
    }
    report_csv(out, csv, rows);
    for (size_t i = 0, n; report_is_text(out) && i < r->row_count; i += n) {
        n = results_alike(r, i, 1);
        bench_report_case(out, &r->rows[i].at, 0, block_of(&r->rows[i], n), "");
        for (int measure = 0; measure < TABLE_MEASURES; measure++)
            if (is_measured(r, &r->rows[i], (table_measure)measure, peers))
                write_sizes(out, r, i, n, (table_measure)measure, peers);
    }
}

/* ---- dpr bench -------------------------------------------------------------------------------------------------- */

static void add_regret(cJSON *row, const bench_regret *regret) {
    bench_json_case(row, &regret->at);
    report_add(row, "winner=%s winner_us=%g chosen=%s chosen_us=%g regret_us=%g regret_percent=%g",
               regret->winner->strategy, regret->winner->us.median, regret->chosen->strategy, regret->chosen->us.median,
               regret->us, 100 * regret->fraction);
}

static void write_regrets(report_out *out, const bench_results *r) {
    cJSON *list = cJSON_AddArrayToObject(out->document, "regret");
    bench_regrets all = {.cases = 0};
    bench_regret one;
    char name[RESULTS_TEXT];
    for (size_t i = 0; i < r->row_count; i += results_alike(r, i, 0))
        if (results_regret(r->rows + i, results_alike(r, i, 0), &one))
            add_regret(report_row(list), &one);
    results_regrets(r, &all);
    if (all.cases == 0)
        return;
    report_add(out->document, "mean_regret_percent=%g worst_regret_percent=%g", 100 * results_mean_regret(&all),
               100 * all.worst.fraction);
    if (all.worst.fraction <= 0)
        report_text(out, REPORT_NOTE, "The planner's choice is the quickest in %d of %d.", all.cases, all.cases);
    else
        report_text(
            out, REPORT_NOTE,
            "Regret: %.1f %% as a geometric mean of %d; at worst %.1f %%, %.2f us (%s: %s chosen, %s quickest); "
            "more than 5 %% and 0.2 us in %d.",
            100 * results_mean_regret(&all), all.cases, 100 * all.worst.fraction, all.worst.us,
            results_name(&all.worst.at, name), all.worst.chosen->strategy, all.worst.winner->strategy, all.past);
}

int bench_write(FILE *f, const bench_results *r, report_format format) {
    static const char csv[] = "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,"
                              "gb_per_s,ok,chosen,settled,doubtful,block,memory";
    static const char csv_of_many[] =
        "strategy,op,dtype,segments,axes,count,results,bytes,mode,cache,samples,calls,median_us,low_us,high_us,spread,"
        "gb_per_s,over_floor,ok,chosen,settled,doubtful";
    const int is_of_many = r->row_count > 0 && r->rows[0].at.shape;
    report_out out = bench_report_begin(f, format, "dpr bench", r, "", is_of_many ? bench_definitions_of_many : NULL);
    bench_report_rows(&out, r, is_of_many ? csv_of_many : csv, 0);
    write_regrets(&out, r);
    return bench_report_end(&out, r);
}
