#include <inttypes.h>

#include "bench_nested.h"
#include "bench_report.h"
#include "cli_json.h"
#include "figures.h"

static const bench_definition definitions[] = {
    {"pending", "launches from kernels that may be pending on the device: its pool of them"},
    {"launches", "us of one, from the difference of the times of more and of fewer of them, between two events; of "
                 "'host' and 'graph', by the host's clock until the stream is idle"},
    {"pools", "each in a process of its own: us of one tail launch in a chain of them"},
    {"length", "of the chains of kernels, at most; differences are of this and of a shorter one"},
    {"fan", "fan-outs are from so many blocks, of so many launches each"},
    {"loaded_bytes", "device memory that loading kernels that launch kernels took"},
    {"reserved_bytes", "and what was taken when the first of them had run"},
    {"ratio", "median_us over that of the planner's choice"},
    {"nested", "counters of the nested launches of one call, as in dpr_launch_report"},
    {"depth", "launches below each other, at most, as asked for; without it, the device's own"},
    {NULL, NULL}};

static const char csv[] =
    "part,name,op,dtype,count,mode,cache,pending,device_bytes,samples,median_us,low_us,high_us,spread,ratio,"
    "launched,refused,failed,in_line,deepest,error,ok,chosen,settled,doubtful,block,depth,why,text";

static const report_column launch_columns[] = {{"launch", "launch", UNIT_LEFT},    {"us", "us", UNIT_NONE},
                                               {"spread", "spread", UNIT_PERCENT}, {"text", "what it is", UNIT_LEFT},
                                               {"why", "why not", UNIT_LEFT},      {NULL, NULL, UNIT_NONE}};
static const report_column pool_columns[] = {
    {"asked", "asked", UNIT_NONE}, {"pending", "pending", UNIT_NONE},  {"device_bytes", "device memory", UNIT_BYTES},
    {"us", "us", UNIT_NONE},       {"spread", "spread", UNIT_PERCENT}, {"why", "why not", UNIT_LEFT},
    {NULL, NULL, UNIT_NONE}};
static const report_column columns[] = {{"strategy", "strategy", UNIT_LEFT}, {"us", "us", UNIT_NONE},
                                        {"ratio", "ratio", UNIT_DIGITS},     {"launched", "launched", UNIT_NONE},
                                        {"refused", "refused", UNIT_NONE},   {"failed", "failed", UNIT_NONE},
                                        {"in_line", "in line", UNIT_NONE},   {"deepest", "deepest", UNIT_NONE},
                                        {"text", "how", UNIT_LEFT},          {NULL, NULL, UNIT_NONE}};
static const report_column reasons[] = {{"strategy", "strategy", UNIT_LEFT},
                                        {"count", "elements", UNIT_ELEMENTS},
                                        {"why", "why", UNIT_LEFT},
                                        {NULL, NULL, UNIT_NONE}};

/* ---- Launches --------------------------------------------------------------------------------------------------- */

static const char *why_not_there(const nested_part *part) {
    return part->why[0] ? part->why : "not yet";
}

/* Adds what a launch costs, and for tables and CSV its name and description. */
static void add_cost(const report_out *out, cJSON *row, const nested_part *part, size_t launch, const char *kind) {
    const bench_cost *cost = &part->costs.of[launch];
    char text[40], digits[32];
    if (part->there)
        bench_json_cost(row, cost);
    else
        cJSON_AddStringToObject(row, "why", why_not_there(part));
    if (out->format == REPORT_JSON)
        return;
    cJSON_AddStringToObject(row, "part", kind);
    cJSON_AddStringToObject(row, "name", bench_launch_name(launch));
    cJSON_AddBoolToObject(row, "ok", cost->us.n > 0);
    if (part->there)
        cli_json_integer(row, "device_bytes", part->costs.loaded_bytes + part->costs.reserved_bytes);
    snprintf(text, sizeof text, "%s%s", figure_digits(cost->us.median, digits), cost->settled ? "" : "~");
    cJSON_AddStringToObject(row, "us", cost->us.n > 0 ? text : "-");
}

static void write_launches(report_out *out, const nested_part *part) {
    cJSON *launches = cJSON_AddArrayToObject(out->document, "launches");
    for (size_t i = 0; i < BENCH_LAUNCHES && (part->there || out->format == REPORT_CSV); i++) {
        cJSON *row = report_row(launches);
        cJSON_AddStringToObject(row, "launch", bench_launch_name(i));
        add_cost(out, row, part, i, "launch");
        if (out->format == REPORT_CSV && part->there)
            cli_json_integer(row, "pending", part->costs.pending);
        cJSON_AddStringToObject(row, "text", bench_launch_text(i));
    }
    report_csv(out, csv, launches);
    report_table(out, "Launches", launches, 0, launch_columns);
    if (!part->there)
        report_text(out, REPORT_NOTE, "Launches were not measured: %s", why_not_there(part));
}

static void write_pools(report_out *out, const nested_results *n) {
    cJSON *pools = cJSON_AddArrayToObject(out->document, "pools");
    for (int i = 0; i < n->pools; i++) {
        const nested_part *pool = &n->pool[i];
        cJSON *row = report_row(pools);
        cli_json_integer(row, "asked", pool->asked);
        if (pool->there || out->format == REPORT_CSV)
            cli_json_integer(row, "pending", pool->there ? pool->costs.pending : pool->asked);
        if (pool->there) {
            cli_json_integer(row, "loaded_bytes", pool->costs.loaded_bytes);
            cli_json_integer(row, "reserved_bytes", pool->costs.reserved_bytes);
        }
        add_cost(out, row, pool, BENCH_LAUNCH_CHAIN_TAIL, "pool");
        if (out->format == REPORT_CSV)
            cJSON_AddStringToObject(row, "text", bench_launch_text(BENCH_LAUNCH_CHAIN_TAIL));
    }
    report_csv(out, csv, pools);
    report_table(out, "Tail launches with other pools", pools, 0, pool_columns);
}

static void write_pending(report_out *out, const nested_results *n) {
    const bench_costs *costs = &n->launches.costs;
    char bytes[32], taken[96] = "";
    cli_json_integer(out->document, "pending", n->pending);
    cli_json_integer(out->document, "loaded_bytes", costs->loaded_bytes);
    cli_json_integer(out->document, "reserved_bytes", costs->reserved_bytes);
    cJSON_AddNumberToObject(out->document, "length", costs->length);
    cli_json_add(out->document, "fan", cJSON_CreateIntArray((const int[]){costs->blocks, costs->each}, 2));
    if (!n->launches.there)
        cJSON_AddStringToObject(out->document, "launches_why", why_not_there(&n->launches));
    if (n->launches.there && costs->reserved_bytes > 0)
        snprintf(taken, sizeof taken, "; %s of device memory once a kernel has launched one",
                 figure_bytes(costs->loaded_bytes + costs->reserved_bytes, bytes));
    report_text(out, REPORT_NOTE, "Pool of pending launches: %zu%s", n->pending, taken);
}

/* ---- Strategies ------------------------------------------------------------------------------------------------- */

static void add_nested(cJSON *object, const dpr_launch_report *nested) {
    cJSON_AddNumberToObject(object, "launched", nested->launched);
    cJSON_AddNumberToObject(object, "refused", nested->refused);
    cJSON_AddNumberToObject(object, "failed", nested->failed);
    cJSON_AddNumberToObject(object, "in_line", nested->in_line);
    cJSON_AddNumberToObject(object, "deepest", nested->deepest);
    if (nested->failed == 0)
        return;
    cJSON_AddNumberToObject(object, "error", nested->error);
    cJSON_AddNumberToObject(object, "error_depth", nested->error_depth);
    cJSON_AddNumberToObject(object, "error_block", nested->error_block);
}

/* A strategy, or the planner's choice (strategy -1), which has been measured. */
static void add_row(const report_out *out, cJSON *list, const nested_results *n, int size, int strategy) {
    const nested_cell *cell = strategy >= 0 ? &n->cells[size][strategy] : NULL;
    const bench_row *measured = cell ? nested_row(n, size, strategy) : nested_choice(n, size);
    const char *name = cell ? n->strategies[strategy]->name : measured->strategy;
    cJSON *row = report_row(list);
    cJSON_AddStringToObject(row, "strategy", name);
    if (measured) {
        bench_json_row(out, row, &n->bench, measured);
        report_known(row, "ratio", nested_ratio(n, size, measured));
    } else {
        bench_json_case(row, &n->at[size]);
        cJSON_AddStringToObject(row, "why", nested_why_not(n, size, strategy));
    }
    if (cell && n->depth)
        cJSON_AddNumberToObject(row, "depth", n->depth);
    if (cell && cell->ran)
        add_nested(cJSON_AddObjectToObject(row, "nested"), &cell->report);
    cJSON_AddStringToObject(row, "text", cell ? n->strategies[strategy]->text : "the planner's choice");
    if (out->format == REPORT_CSV) {
        cJSON_AddStringToObject(row, "part", "strategy");
        cJSON_AddStringToObject(row, "name", name);
    }
}

static void say_failed_launch(report_out *out, const char *name, const dpr_launch_report *nested) {
    if (nested->failed)
        report_text(out, REPORT_NOTE,
                    "%s: the first launch that failed had cudaError_t %" PRId32 ", in block %" PRIu32
                    " at depth %" PRIu32,
                    name, nested->error, nested->error_block, nested->error_depth);
}

static void write_size(report_out *out, const nested_results *n, int size, cJSON *rows, cJSON *missing) {
    const int first = cJSON_GetArraySize(rows);
    char depth[64] = "";
    if (nested_choice(n, size))
        add_row(out, rows, n, size, -1);
    for (int i = 0; i < n->n; i++) {
        const int measured = nested_row(n, size, i) != NULL;
        /* Text says once, at its end, why all of them were left out. */
        if (measured || n->cells[size][i].refusal[0] || !report_is_text(out) || !nested_why_none(n, size))
            add_row(out, measured ? rows : missing, n, size, i);
    }
    if (n->depth)
        snprintf(depth, sizeof depth, ", at most %d launches below each other", n->depth);
    bench_report_case(out, &n->at[size], 1, n->block, depth);
    report_table(out, NULL, rows, first, columns);
    for (int i = 0; i < n->n; i++)
        say_failed_launch(out, n->strategies[i]->name, &n->cells[size][i].report);
}

int nested_write(FILE *f, const nested_results *n, report_format format) {
    report_out out = bench_report_begin(f, format, "dpr bench --nested", &n->bench, "", definitions);
    write_pending(&out, n);
    write_launches(&out, &n->launches);
    write_pools(&out, n);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows"),
          *missing = cJSON_AddArrayToObject(out.document, "without_time");
    for (int size = 0; size < n->sizes; size++)
        write_size(&out, n, size, rows, missing);
    report_csv(&out, csv, rows);
    report_csv(&out, csv, missing);
    report_table(&out, "Without a time", missing, 0, reasons);
    return bench_report_end(&out, &n->bench);
}
