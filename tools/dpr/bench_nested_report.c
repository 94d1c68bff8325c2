#include <inttypes.h>
#include <string.h>

#include "bench_json.h"
#include "bench_nested.h"
#include "bench_tables.h"
#include "cli_json.h"
#include "defuse.h"
#include "figures.h"
#include "grid.h"
#include "lists.h"

static const char choice_text[] = "the planner's choice";

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* A grid whose first row is these headings; `left` as in grid. 0, or -1 when out of memory. */
static int begin_grid(grid *g, const char *const *headings, size_t columns, uint32_t left) {
    *g = (grid){.columns = columns, .left = left};
    char(*line)[GRID_CELL] = grid_add(g);
    for (size_t c = 0; line && c < columns; c++)
        snprintf(line[c], GRID_CELL, "%s", headings[c]);
    return line ? 0 : -1;
}

/* Prints the grid unless there was no memory. Returns `status`. */
static int end_grid(FILE *f, grid *g, int status, int markdown) {
    if (status == 0)
        grid_print(f, g, markdown);
    grid_free(g);
    return status;
}

/* Times of a launch: two cells. */
static void print_cost(char (*line)[GRID_CELL], const bench_cost *cost) {
    char number[32];
    snprintf(line[0], GRID_CELL, "%s%s", figure_digits(cost->us.median, number), cost->settled ? "" : "~");
    snprintf(line[1], GRID_CELL, "%.1f %%", 100 * cost->us.spread);
}

static int is_unsettled(const bench_cost *cost) {
    return cost->us.n > 0 && !cost->settled;
}

static void put_line(FILE *f, const char *text) {
    defuse_put(f, text);
    fputs("\n", f);
}

/* What the mark of medians means, if there is one. */
static void print_mark(FILE *f, const nested_results *n, int unsettled) {
    if (unsettled)
        fprintf(f, "\nMark: ~ the median is not certain to %.2g %%\n", 100 * n->bench.rule.half_width);
}

/* ---- Launches --------------------------------------------------------------------------------------------------- */

static void print_pool(FILE *f, const nested_results *n) {
    const bench_costs *costs = &n->launches.costs;
    char bytes[32];
    fprintf(f, "Pool of pending launches: %zu", n->pending);
    if (n->launches.there && costs->reserved_bytes > 0)
        fprintf(f, "; %s of device memory once a kernel has launched one",
                figure_bytes(costs->loaded_bytes + costs->reserved_bytes, bytes));
    fputs("\n", f);
}

static int print_launches(FILE *f, const nested_results *n, int markdown) {
    enum { NAME, TIME, SPREAD, TEXT, LAUNCH_COLUMNS };
    static const char *const headings[] = {
        [NAME] = "launch", [TIME] = "us", [SPREAD] = "spread", [TEXT] = "what it is"};
    grid g;
    int status = begin_grid(&g, headings, LAUNCH_COLUMNS, 1U << NAME | 1U << TEXT);
    for (size_t i = 0; i < BENCH_LAUNCHES && status == 0; i++) {
        const bench_cost *cost = &n->launches.costs.of[i];
        char(*line)[GRID_CELL] = cost->us.n > 0 ? grid_add(&g) : NULL;
        if (cost->us.n > 0 && !line)
            status = -1;
        if (!line)
            continue;
        snprintf(line[NAME], GRID_CELL, "%s", bench_launch_name(i));
        print_cost(&line[TIME], cost);
        snprintf(line[TEXT], GRID_CELL, "%s", bench_launch_text(i));
    }
    return end_grid(f, &g, status, markdown);
}

/* A line for each launch without a time; one for all where the part was not measured. */
static void print_missing_launches(FILE *f, const nested_results *n, int markdown) {
    int lines = 0;
    for (size_t i = 0; i < BENCH_LAUNCHES && n->launches.there; i++) {
        const bench_cost *cost = &n->launches.costs.of[i];
        if (cost->us.n > 0)
            continue;
        if (lines++ == 0)
            fprintf(f, "\nWithout a time:\n%s", markdown ? "\n" : "");
        fprintf(f, "- %s: ", bench_launch_name(i));
        put_line(f, cost->why);
    }
}

static int write_launches(FILE *f, const nested_results *n, int markdown) {
    int unsettled = 0;
    fprintf(f, "%sLaunches%s\n%s", markdown ? "### " : "", markdown ? "" : ":", markdown ? "\n" : "");
    if (!n->launches.there) {
        fputs("Not measured: ", f);
        put_line(f, n->launches.why[0] ? n->launches.why : "not yet");
        return 0;
    }
    const int status = print_launches(f, n, markdown);
    for (size_t i = 0; i < BENCH_LAUNCHES; i++)
        unsettled |= is_unsettled(&n->launches.costs.of[i]);
    print_mark(f, n, unsettled);
    print_missing_launches(f, n, markdown);
    return status;
}

/* ---- Pools ------------------------------------------------------------------------------------------------------ */

static const bench_cost *tail_of(const nested_part *pool) {
    return &pool->costs.of[BENCH_LAUNCH_CHAIN_TAIL];
}

static const char *why_no_tail(const nested_part *pool) {
    if (pool->there)
        return tail_of(pool)->why;
    return pool->why[0] ? pool->why : "not yet";
}

enum { POOL_PENDING, POOL_BYTES, POOL_TIME, POOL_SPREAD, POOL_COLUMNS };

static int print_pool_line(grid *g, const nested_part *pool) {
    char(*line)[GRID_CELL] = grid_add(g);
    if (!line)
        return -1;
    snprintf(line[POOL_PENDING], GRID_CELL, "%zu", pool->costs.pending);
    figure_bytes(pool->costs.loaded_bytes + pool->costs.reserved_bytes, line[POOL_BYTES]);
    print_cost(&line[POOL_TIME], tail_of(pool));
    return 0;
}

static int write_pools(FILE *f, const nested_results *n, int markdown) {
    static const char *const headings[] = {
        [POOL_PENDING] = "pending", [POOL_BYTES] = "device memory", [POOL_TIME] = "us", [POOL_SPREAD] = "spread"};
    grid g;
    int status = begin_grid(&g, headings, POOL_COLUMNS, 0), missing = 0, unsettled = 0;
    for (int i = 0; i < n->pools && status == 0; i++)
        if (n->pool[i].there && tail_of(&n->pool[i])->us.n > 0)
            status = print_pool_line(&g, &n->pool[i]);
    fprintf(f, "\n%sTail launches with other pools%s\n%s", markdown ? "### " : "", markdown ? "" : ":",
            markdown ? "\n" : "");
    if (end_grid(f, &g, status, markdown) != 0)
        return -1;
    for (int i = 0; i < n->pools; i++)
        unsettled |= is_unsettled(tail_of(&n->pool[i]));
    print_mark(f, n, unsettled);
    for (int i = 0; i < n->pools; i++) {
        if (n->pool[i].there && tail_of(&n->pool[i])->us.n > 0)
            continue;
        if (missing++ == 0)
            fprintf(f, "\nWithout a time:\n%s", markdown ? "\n" : "");
        fprintf(f, "- %" PRIu64 ": ", n->pool[i].asked);
        put_line(f, why_no_tail(&n->pool[i]));
    }
    return 0;
}

/* ---- Strategies ------------------------------------------------------------------------------------------------- */

/* The columns.   X(ID, heading) */
#define STRATEGY_COLUMNS(X)                                                                                            \
    X(STRATEGY, "strategy")                                                                                            \
    X(TIME, "us")                                                                                                      \
    X(RATIO, "ratio")                                                                                                  \
    X(LAUNCHED, "launched")                                                                                            \
    X(REFUSED, "refused")                                                                                              \
    X(FAILED, "failed")                                                                                                \
    X(IN_LINE, "in line")                                                                                              \
    X(DEEPEST, "deepest")                                                                                              \
    X(TEXT, "how")

#define COLUMN_ENUM(ID, heading) COLUMN_##ID,
#define COLUMN_HEADING(ID, heading) heading,
enum { STRATEGY_COLUMNS(COLUMN_ENUM) COLUMNS };

static void print_report(char (*line)[GRID_CELL], const nested_cell *cell) {
    if (!cell || !cell->ran)
        return;
    snprintf(line[COLUMN_LAUNCHED], GRID_CELL, "%" PRIu32, cell->report.launched);
    snprintf(line[COLUMN_REFUSED], GRID_CELL, "%" PRIu32, cell->report.refused);
    snprintf(line[COLUMN_FAILED], GRID_CELL, "%" PRIu32, cell->report.failed);
    snprintf(line[COLUMN_IN_LINE], GRID_CELL, "%" PRIu32, cell->report.in_line);
    snprintf(line[COLUMN_DEEPEST], GRID_CELL, "%" PRIu32, cell->report.deepest);
}

static int print_row(grid *g, const nested_results *n, int size, const bench_row *row, const nested_cell *cell,
                     const char *text) {
    const double ratio = nested_ratio(n, size, row);
    const char *chosen = row->chosen ? "*" : "";
    char marks[4], number[32], (*line)[GRID_CELL] = grid_add(g);
    if (!line)
        return -1;
    for (int c = 0; c < COLUMNS; c++)
        snprintf(line[c], GRID_CELL, "-");
    snprintf(line[COLUMN_STRATEGY], GRID_CELL, "%s", row->strategy);
    snprintf(line[COLUMN_TEXT], GRID_CELL, "%s", text);
    if (results_timed(row))
        snprintf(line[COLUMN_TIME], GRID_CELL, "%s%s%s", figure_digits(row->us.median, number),
                 tables_marks(&n->bench, row, marks), chosen);
    else
        snprintf(line[COLUMN_TIME], GRID_CELL, "failed%s", chosen);
    if (ratio > 0)
        snprintf(line[COLUMN_RATIO], GRID_CELL, "%s", figure_digits(ratio, number));
    print_report(line, cell);
    return 0;
}

static int print_rows(FILE *f, const nested_results *n, int size, int markdown) {
    static const char *const headings[] = {STRATEGY_COLUMNS(COLUMN_HEADING)};
    const bench_row *row = nested_choice(n, size);
    grid g;
    int status = begin_grid(&g, headings, COLUMNS, 1U << COLUMN_STRATEGY | 1U << COLUMN_TEXT);
    if (row && status == 0)
        status = print_row(&g, n, size, row, NULL, choice_text);
    for (int i = 0; i < n->n && status == 0; i++)
        if ((row = nested_row(n, size, i)) != NULL)
            status = print_row(&g, n, size, row, &n->cells[size][i], n->strategies[i]->text);
    return end_grid(f, &g, status, markdown);
}

static void print_heading(FILE *f, const nested_results *n, int size, int markdown) {
    const bench_case *at = &n->at[size];
    char count[32], bytes[32];
    fprintf(f, "\n%s%s elements (%s), ", markdown ? "### " : "", figure_elements(at->count, count),
            figure_bytes(at->count * dpr_dtypes[at->dtype].size, bytes));
    tables_title(f, at, n->block);
    if (n->depth)
        fprintf(f, ", at most %d launches below each other", n->depth);
    fputs(markdown ? "\n\n" : ":\n", f);
}

/* Of a launch that failed, and of strategies without a time. */
static void print_notes(FILE *f, const nested_results *n, int size, int markdown) {
    int lines = 0;
    for (int i = 0; i < n->n; i++) {
        const dpr_nested *report = &n->cells[size][i].report;
        const char *name = n->strategies[i]->name;
        const int missing = !nested_row(n, size, i) && (n->cells[size][i].refusal[0] || !nested_why_none(n, size));
        if (!missing && report->failed == 0)
            continue;
        if (lines++ == 0)
            fputs(markdown ? "\n" : "", f);
        fprintf(f, "- %s: ", name);
        if (missing) {
            fputs("without a time: ", f);
            put_line(f, nested_why_not(n, size, i));
        } else {
            fprintf(f,
                    "the first launch that failed had cudaError_t %" PRId32 ", in block %" PRIu32 " at depth %" PRIu32
                    "\n",
                    report->error, report->error_block, report->error_depth);
        }
    }
}

static int write_strategies(FILE *f, const nested_results *n, int markdown) {
    const bench_results *r = &n->bench;
    for (int size = 0; size < n->sizes; size++) {
        print_heading(f, n, size, markdown);
        if (print_rows(f, n, size, markdown) != 0)
            return -1;
        print_notes(f, n, size, markdown);
    }
    fputs("\n", f);
    tables_legend(f, r);
    fputs(markdown && (results_bad(r) || r->omission_count) ? "\n" : "", f);
    for (size_t i = 0; i < r->row_count; i++)
        tables_trouble(f, &r->rows[i]);
    tables_omissions(f, r);
    return 0;
}

static int write_tables(FILE *f, const nested_results *n, int markdown) {
    tables_begin(f, &n->bench, markdown);
    fputs("\n\n", f);
    print_pool(f, n);
    fputs("\n", f);
    if (write_launches(f, n, markdown) != 0 || write_pools(f, n, markdown) != 0)
        return -1;
    return write_strategies(f, n, markdown);
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* A line's members; those that its part does not have are empty. */
typedef struct csv_line {
    const char *part, *name;
    const bench_case *at;
    size_t pending, bytes;
    const bench_summary *us; /* NULL: none */
    double ratio;
    const dpr_nested *report; /* NULL: none */
    const bench_row *row;     /* NULL: none */
    int settled, depth;
    const char *why, *text;
} csv_line;

static void write_csv_case(FILE *f, const csv_line *l) {
    fprintf(f, "%s,%s", l->part, l->name);
    if (l->at)
        fprintf(f, ",%s,%s,%" PRIu64 ",%s,%s", dpr_ops[l->at->op].name, dpr_dtypes[l->at->dtype].name, l->at->count,
                bench_mode_name(l->at->mode), bench_cache_name(l->at->cache));
    else
        fputs(",,,,,", f);
    if (l->pending)
        fprintf(f, ",%zu,%zu", l->pending, l->bytes);
    else
        fputs(",,", f);
}

static void write_csv_line(FILE *f, const nested_results *n, const csv_line *l) {
    write_csv_case(f, l);
    if (l->us)
        fprintf(f, ",%d,%.6g,%.6g,%.6g,%.4g", l->us->n, l->us->median, l->us->low, l->us->high, l->us->spread);
    else
        fputs(",0,,,,", f);
    if (l->ratio > 0)
        fprintf(f, ",%.6g", l->ratio);
    else
        fputs(",", f);
    if (l->report)
        fprintf(f, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRId32, l->report->launched,
                l->report->refused, l->report->failed, l->report->in_line, l->report->deepest, l->report->error);
    else
        fputs(",,,,,,", f);
    const bench_row *row = l->row;
    fprintf(f, ",%d,%d,%d,%d,%d,%d", row ? results_right(row) : l->us != NULL, row && row->chosen, l->settled,
            row && results_doubtful(&n->bench, row), row ? row->block : 0, l->depth);
    report_write_quoted(f, l->why);
    report_write_quoted(f, l->text);
    fputs("\n", f);
}

static void write_csv_row(FILE *f, const nested_results *n, int size, const bench_row *row, int strategy) {
    const nested_cell *cell = strategy >= 0 ? &n->cells[size][strategy] : NULL;
    const char *name = row ? row->strategy : n->strategies[strategy]->name;
    csv_line l = {.part = "strategy", .name = name, .at = &n->at[size], .row = row};
    l.us = row && results_timed(row) ? &row->us : NULL;
    l.ratio = row ? nested_ratio(n, size, row) : 0;
    l.report = cell && cell->ran ? &cell->report : NULL;
    l.settled = row && row->verdict == BENCH_SETTLED;
    l.depth = cell ? n->depth : 0;
    l.why = row ? row->why : nested_why_not(n, size, strategy);
    l.text = strategy >= 0 ? n->strategies[strategy]->text : choice_text;
    write_csv_line(f, n, &l);
}

static void write_csv_cost(FILE *f, const nested_results *n, const nested_part *part, size_t launch, const char *kind) {
    const bench_cost *cost = &part->costs.of[launch];
    const csv_line l = {.part = kind,
                        .name = bench_launch_name(launch),
                        .pending = part->there ? part->costs.pending : (size_t)part->asked,
                        .bytes = part->costs.loaded_bytes + part->costs.reserved_bytes,
                        .us = cost->us.n > 0 ? &cost->us : NULL,
                        .settled = cost->settled,
                        .why = part->there ? cost->why : part->why,
                        .text = bench_launch_text(launch)};
    write_csv_line(f, n, &l);
}

static void write_csv(FILE *f, const nested_results *n) {
    fputs("part,name,op,dtype,count,mode,cache,pending,device_bytes,samples,median_us,low_us,high_us,spread,ratio,"
          "launched,refused,failed,in_line,deepest,error,ok,chosen,settled,doubtful,block,depth,why,text\n",
          f);
    for (size_t i = 0; i < BENCH_LAUNCHES; i++)
        write_csv_cost(f, n, &n->launches, i, "launch");
    for (int i = 0; i < n->pools; i++)
        write_csv_cost(f, n, &n->pool[i], BENCH_LAUNCH_CHAIN_TAIL, "pool");
    for (int size = 0; size < n->sizes; size++) {
        const bench_row *choice = nested_choice(n, size);
        if (choice)
            write_csv_row(f, n, size, choice, -1);
        for (int i = 0; i < n->n; i++)
            write_csv_row(f, n, size, nested_row(n, size, i), i);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static cJSON *definitions_json(void) {
    cJSON *o = bench_json_definitions();
    bench_json_define_block(o);
    cJSON_AddStringToObject(o, "pending", "launches from kernels that may be pending on the device: its pool of them");
    cJSON_AddStringToObject(o, "launches",
                            "us of one, from the difference of the times of more and of fewer of them, between two "
                            "events; of 'host' and 'graph', by the host's clock until the stream is idle");
    cJSON_AddStringToObject(o, "pools", "each in a process of its own: us of one tail launch in a chain of them");
    cJSON_AddStringToObject(o, "length",
                            "of the chains of kernels, at most; differences are of this and of a shorter one");
    cJSON_AddStringToObject(o, "fan", "fan-outs are from so many blocks, of so many launches each");
    cJSON_AddStringToObject(o, "loaded_bytes", "device memory that loading kernels that launch kernels took");
    cJSON_AddStringToObject(o, "reserved_bytes", "and what was taken when the first of them had run");
    cJSON_AddStringToObject(o, "ratio", "median_us over that of the planner's choice");
    cJSON_AddStringToObject(o, "nested", "what the launches of one call came to, as in dpr_nested");
    cJSON_AddStringToObject(o, "depth",
                            "launches below each other, at most, as asked for; without it, the device's own");
    return o;
}

static cJSON *launch_json(const bench_cost *cost, size_t launch) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "launch", bench_launch_name(launch));
    part_cost_json(o, cost);
    cJSON_AddStringToObject(o, "text", bench_launch_text(launch));
    return o;
}

static void add_memory(cJSON *object, const bench_costs *costs) {
    cli_json_integer(object, "loaded_bytes", costs->loaded_bytes);
    cli_json_integer(object, "reserved_bytes", costs->reserved_bytes);
}

static cJSON *pool_json(const nested_part *pool) {
    cJSON *o = cJSON_CreateObject();
    cli_json_integer(o, "asked", pool->asked);
    if (!pool->there) {
        cJSON_AddStringToObject(o, "why", why_no_tail(pool));
        return o;
    }
    cli_json_integer(o, "pending", pool->costs.pending);
    add_memory(o, &pool->costs);
    part_cost_json(o, tail_of(pool));
    return o;
}

static cJSON *report_json(const dpr_nested *report) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "launched", report->launched);
    cJSON_AddNumberToObject(o, "refused", report->refused);
    cJSON_AddNumberToObject(o, "failed", report->failed);
    cJSON_AddNumberToObject(o, "in_line", report->in_line);
    cJSON_AddNumberToObject(o, "deepest", report->deepest);
    if (report->failed == 0)
        return o;
    cJSON_AddNumberToObject(o, "error", report->error);
    cJSON_AddNumberToObject(o, "error_depth", report->error_depth);
    cJSON_AddNumberToObject(o, "error_block", report->error_block);
    return o;
}

static cJSON *row_json(const nested_results *n, int size, const bench_row *row, int strategy) {
    const nested_cell *cell = strategy >= 0 ? &n->cells[size][strategy] : NULL;
    const double ratio = nested_ratio(n, size, row);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", row->strategy);
    bench_json_case(o, &row->at);
    bench_json_block(o, row);
    if (cell && n->depth)
        cJSON_AddNumberToObject(o, "depth", n->depth);
    bench_json_times(o, row);
    if (ratio > 0)
        bench_json_number(o, "ratio", ratio);
    if (cell && cell->ran)
        cli_json_add(o, "nested", report_json(&cell->report));
    cJSON_AddBoolToObject(o, "chosen", row->chosen);
    bench_json_checks(o, &n->bench, row);
    cJSON_AddStringToObject(o, "text", cell ? n->strategies[strategy]->text : choice_text);
    return o;
}

static cJSON *missing_json(const nested_results *n, int size, int strategy) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", n->strategies[strategy]->name);
    cli_json_integer(o, "count", n->at[size].count);
    cJSON_AddStringToObject(o, "why", nested_why_not(n, size, strategy));
    cJSON_AddStringToObject(o, "text", n->strategies[strategy]->text);
    return o;
}

static int write_json_parts(FILE *f, const nested_results *n) {
    const bench_costs *costs = &n->launches.costs;
    const char *separator = "";
    int status = 0;
    fprintf(f, ",\n\"pending\": %zu", n->pending);
    fprintf(f, ",\n\"loaded_bytes\": %zu, \"reserved_bytes\": %zu", costs->loaded_bytes, costs->reserved_bytes);
    fprintf(f, ",\n\"length\": %d, \"fan\": [%d, %d]", costs->length, costs->blocks, costs->each);
    if (!n->launches.there)
        status |= bench_json_member(f, "launches_why", cJSON_CreateString(n->launches.why));
    fputs(",\n\"launches\": [", f);
    for (size_t i = 0; i < BENCH_LAUNCHES && n->launches.there; i++)
        status |= bench_json_item(f, &separator, launch_json(&costs->of[i], i));
    fputs("\n],\n\"pools\": [", f);
    separator = "";
    for (int i = 0; i < n->pools; i++)
        status |= bench_json_item(f, &separator, pool_json(&n->pool[i]));
    fputs("\n]", f);
    return status;
}

static int write_json_rows(FILE *f, const nested_results *n) {
    const char *separator = "";
    int status = 0;
    for (int size = 0; size < n->sizes; size++) {
        const bench_row *row = nested_choice(n, size);
        if (row)
            status |= bench_json_item(f, &separator, row_json(n, size, row, -1));
        for (int i = 0; i < n->n; i++)
            if ((row = nested_row(n, size, i)) != NULL)
                status |= bench_json_item(f, &separator, row_json(n, size, row, i));
    }
    return status;
}

static int write_json(FILE *f, const nested_results *n) {
    const char *separator = "";
    fprintf(f, "{\"benchmark\": \"dpr bench --nested\", \"version\": \"%s\"", dpr_version());
    int status = bench_json_heads(f, &n->bench, definitions_json()) | write_json_parts(f, n);
    fprintf(f, ",\n\"interrupted\": %s,\n\"rows\": [", n->bench.interrupted ? "true" : "false");
    status |= write_json_rows(f, n);
    fputs("\n],\n\"without_time\": [", f);
    for (int size = 0; size < n->sizes; size++)
        for (int i = 0; i < n->n; i++)
            if (!nested_row(n, size, i))
                status |= bench_json_item(f, &separator, missing_json(n, size, i));
    return status | bench_json_end(f, &n->bench);
}

int nested_write(FILE *f, const nested_results *n, report_format format) {
    switch (format) {
    case REPORT_CSV:
        write_csv(f, n);
        return 0;
    case REPORT_JSON:
        return write_json(f, n);
    default:
        return write_tables(f, n, format == REPORT_MARKDOWN);
    }
}
