#include <math.h>

#include "bench_lineup.h"
#include "bench_report.h"
#include "cli_json.h"
#include "figures.h"

#define RATIO_DEFINITION "median_us over that of the planner's choice"

static const bench_definition ladder_definitions[] = {
    {"read_gb_per_s", "the device's bandwidth: the rate of the best sample of 'read'"},
    {"share", "gb_per_s over read_gb_per_s, which is of one sample: medians may come to more than 1"},
    {"speedup", "median_us of " LADDER_FIRST " over that of the row"},
    {"ratio", RATIO_DEFINITION},
    {"threads", "a block, at most; shared_bytes are a block's, too, and registers a thread's"},
    {"blocks_per_sm", "blocks of the kernel that an SM holds at a time, by calculation"},
    {"blocks", "blocks that the strategy launches at most, on the whole device"},
    {"occupancy", "share of all SMs' threads that the launched blocks have at most at a time"},
    {"limited_by", "what allows no more: a resource of the SM, or '" LADDER_GRID
                   "' where the strategy launches fewer blocks than the SMs hold"},
    {NULL, NULL}};
static const bench_definition nested_definitions[] = {
    {"pending", "launches from kernels that may be pending on the device: its pool of them"},
    {"launches", "us of one, from the difference of the times of more and of fewer of them, between two events; of "
                 "'host' and 'graph', by the host's clock until the stream is idle"},
    {"pools", "each in a process of its own: us of one tail launch in a chain of them"},
    {"length", "of the chains of kernels, at most; differences are of this and of a shorter one"},
    {"fan", "fan-outs are from so many blocks, of so many launches each"},
    {"loaded_bytes", "device memory that loading kernels that launch kernels took"},
    {"reserved_bytes", "and what was taken when the first of them had run; device_bytes is the sum"},
    {"ratio", RATIO_DEFINITION},
    {"nested", "counters of the nested launches of one call, as in dpr_launch_report"},
    {"depth", "launches below each other, at most, as asked for; without it, the device's own"},
    {NULL, NULL}};

static const char ladder_csv[] =
    "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,share,speedup,"
    "threads,registers,shared_bytes,blocks_per_sm,blocks,occupancy,limited_by,ok,chosen,settled,doubtful,block,"
    "read_gb_per_s,why,text";
static const char nested_csv[] =
    "launch,asked,pending,device_bytes,strategy,op,dtype,count,mode,cache,samples,median_us,low_us,high_us,spread,"
    "ratio,launched,refused,failed,in_line,deepest,error,ok,chosen,settled,doubtful,block,depth,why,text";

static const report_column ladder_columns[] = {
    {"strategy", "strategy", UNIT_LEFT},         {"us", "us", UNIT_NONE},
    {"gb_per_s", "GB/s", UNIT_DIGITS},           {"share", "of bandwidth", UNIT_PERCENT},
    {"speedup", "speed-up", UNIT_DIGITS},        {"blocks", "blocks", UNIT_NONE},
    {"threads", "threads", UNIT_NONE},           {"registers", "registers", UNIT_NONE},
    {"shared_bytes", "shared bytes", UNIT_NONE}, {"occupancy", "occupancy", UNIT_PERCENT},
    {"text", "what it changes", UNIT_LEFT},      {0}};
static const report_column nested_columns[] = {{"strategy", "strategy", UNIT_LEFT}, {"us", "us", UNIT_NONE},
                                               {"ratio", "ratio", UNIT_DIGITS},     {"launched", "launched", UNIT_NONE},
                                               {"refused", "refused", UNIT_NONE},   {"failed", "failed", UNIT_NONE},
                                               {"in_line", "in line", UNIT_NONE},   {"deepest", "deepest", UNIT_NONE},
                                               {"text", "how", UNIT_LEFT},          {0}};
static const report_column launch_columns[] = {{"launch", "launch", UNIT_LEFT},    {"us", "us", UNIT_NONE},
                                               {"spread", "spread", UNIT_PERCENT}, {"text", "what it is", UNIT_LEFT},
                                               {"why", "why not", UNIT_LEFT},      {0}};
static const report_column pool_columns[] = {{"asked", "asked", UNIT_NONE},
                                             {"pending", "pending", UNIT_NONE},
                                             {"device_bytes", "device memory", UNIT_BYTES},
                                             {"us", "us", UNIT_NONE},
                                             {"spread", "spread", UNIT_PERCENT},
                                             {"why", "why not", UNIT_LEFT},
                                             {0}};
static const report_column reasons[] = {
    {"strategy", "strategy", UNIT_LEFT}, {"count", "elements", UNIT_ELEMENTS}, {"why", "why", UNIT_LEFT}, {0}};

/* ---- The bandwidth ---------------------------------------------------------------------------------------------- */

/* The rate of the best sample; 0 where it is not known, which for wrong results is always so. */
static double bandwidth_of(const lineup_results *l) {
    const bench_row *row = results_find(&l->bench, &l->read, LADDER_READER);
    return row && results_right(row) && row->us.least > 0 ? row->gb_per_s * row->us.median / row->us.least : 0;
}

static double share_of(const lineup_results *l, const bench_row *row) {
    const double bandwidth = bandwidth_of(l);
    return results_right(row) && bandwidth > 0 ? row->gb_per_s / bandwidth : 0;
}

/* The row that was measured for the bandwidth, right or not. */
static void write_read(report_out *out, const lineup_results *l) {
    const bench_row *row = results_find(&l->bench, &l->read, LADDER_READER);
    const double rate = bandwidth_of(l);
    char digits[32], bytes[32], ops[OPS_TEXT];
    report_add(out->document, "read_gb_per_s=%g", rate > 0 ? rate : NAN);
    cJSON *read = cJSON_AddObjectToObject(out->document, "read");
    cJSON_AddStringToObject(read, "strategy", LADDER_READER);
    if (row) {
        bench_json_row(out, read, &l->bench, row);
        report_known(read, "best_us", row->us.least);
    } else {
        bench_json_case(read, &l->read);
    }
    if (row && rate > 0)
        report_text(out, REPORT_NOTE,
                    "Read bandwidth: %s GB/s, the best of %d samples of " LADDER_READER ", %s of %s of %s",
                    figure_digits(rate, digits), row->us.n, ops_name(&l->read.ops, ops), dpr_dtype_name(l->read.dtype),
                    figure_bytes(l->read.count * dpr_dtype_size(l->read.dtype), bytes));
    else
        report_text(out, REPORT_NOTE, "Read bandwidth: unknown");
}

/* ---- Launches --------------------------------------------------------------------------------------------------- */

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* What the part wrote, which the caller deletes. Without a line, its only launch says why. */
static cJSON *parse(const lineup_results *l, const lineup_part *part) {
    cJSON *object = cJSON_Parse(part->line);
    if (object)
        return object;
    object = cJSON_CreateObject();
    cJSON *row = report_row(cJSON_AddArrayToObject(object, "launches"));
    report_add(row, "launch=%s why=%s", "all",
               part->why[0]           ? part->why
               : l->bench.interrupted ? "interrupted"
                                      : "not yet");
    return object;
}

/* Moves the rows of a part to a list; `asked` (0: not) comes with them. Tables have the time, with its mark. */
static void move_rows(const report_out *out, cJSON *list, cJSON *object, uint64_t asked) {
    cJSON *rows = cJSON_GetObjectItemCaseSensitive(object, "launches");
    char digits[32], text[40];
    while (cJSON_GetArraySize(rows) > 0) {
        cJSON *row = cJSON_DetachItemFromArray(rows, 0);
        const double us = number_of(row, "median_us");
        if (asked)
            report_add(row, "asked=%lu", asked);
        snprintf(text, sizeof text, "%s%s", figure_digits(us, digits),
                 cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "settled")) ? "" : "~");
        if (us > 0 && report_is_text(out))
            cJSON_AddStringToObject(row, "us", text);
        cli_json_append(list, row);
    }
}

static void write_parts(report_out *out, const lineup_results *l) {
    cJSON *launches = cJSON_CreateArray(), *pools = cJSON_CreateArray(), *member;
    char bytes[32];
    for (int i = 0; i < l->parts; i++) {
        cJSON *object = parse(l, &l->part[i]);
        move_rows(out, i == 0 ? launches : pools, object, l->part[i].asked);
        cJSON_DeleteItemFromObjectCaseSensitive(object, "launches");
        while (i == 0 && object && (member = cJSON_DetachItemViaPointer(object, object->child)))
            cli_json_add(out->document, member->string, member);
        cJSON_Delete(object);
    }
    cli_json_add(out->document, "launches", launches);
    cli_json_add(out->document, "pools", pools);
    launches = cJSON_GetObjectItemCaseSensitive(out->document, "launches"); /* NULL when out of memory */
    pools = cJSON_GetObjectItemCaseSensitive(out->document, "pools");
    if (number_of(out->document, "pending") > 0)
        report_text(out, REPORT_NOTE,
                    "Pool of pending launches: %.0f; %s of device memory once a kernel has launched one",
                    number_of(out->document, "pending"),
                    figure_bytes((uint64_t)number_of(out->document, "device_bytes"), bytes));
    report_csv(out, nested_csv, launches);
    report_csv(out, nested_csv, pools);
    report_table(out, "Launches", launches, 0, launch_columns);
    report_table(out, "Tail launches with other pools", pools, 0, pool_columns);
}

/* ---- Strategies ------------------------------------------------------------------------------------------------- */

/* How much longer a takes than b; 0 where that is not known, which for wrong results is always so. */
static double over(const bench_row *a, const bench_row *b) {
    return a && b && results_right(a) && results_right(b) && b->us.median > 0 ? a->us.median / b->us.median : 0;
}

/* Why no strategy has a row, where the case was left out; else NULL. */
static const char *why_none(const lineup_results *l, const bench_case *at) {
    for (size_t i = 0; i < l->bench.omission_count; i++)
        if (results_same_case(&l->bench.omissions[i].at, at))
            return l->bench.omissions[i].why;
    return NULL;
}

/* Why the strategy whose row this is, if it has one, has no time at the case. */
static const char *why_not(const lineup_results *l, const bench_case *at, const bench_row *row) {
    const char *none = why_none(l, at);
    if (row || none)
        return row ? row->why : none;
    return l->bench.ended ? l->bench.ended : "it was not measured";
}

static void add_kernel(cJSON *row, const bench_kernels *k) {
    if (k->info.threads == 0)
        return;
    report_add(row, "threads=%d registers=%d shared_bytes=%d blocks_per_sm=%d blocks=%d occupancy=%g limited_by=%s",
               k->info.threads, k->info.registers, k->info.shared_bytes, k->info.blocks_per_sm, k->blocks,
               k->info.occupancy, k->info.limit);
}

static void add_nested(cJSON *row, const bench_kernels *k) {
    const dpr_launch_report *n = &k->nested;
    cJSON *object = k->has_nested ? cJSON_AddObjectToObject(row, "nested") : NULL;
    if (!object)
        return;
    report_add(object, "launched=%lu refused=%lu failed=%lu in_line=%lu deepest=%lu", (uint64_t)n->launched,
               (uint64_t)n->refused, (uint64_t)n->failed, (uint64_t)n->in_line, (uint64_t)n->deepest);
    if (n->failed == 0)
        return;
    report_add(object, "error=%d error_depth=%lu error_block=%lu", n->error, (uint64_t)n->error_depth,
               (uint64_t)n->error_block);
}

static int has_run(const bench_row *row) {
    return row && row->state != BENCH_REFUSED;
}

/* A strategy at a case, with the depth that was asked for (0: none was), in the list where it belongs. */
static void add_row(const report_out *out, cJSON *list, const lineup_results *l, const bench_case *at,
                    const lineup_strategy *strategy, int depth) {
    const bench_row *found = results_find(&l->bench, at, strategy->name);
    cJSON *row = report_row(list);
    cJSON_AddStringToObject(row, "strategy", strategy->name);
    if (has_run(found)) {
        bench_json_row(out, row, &l->bench, found);
        report_known(row, "share", share_of(l, found));
        report_known(row, "speedup", over(results_find(&l->bench, at, LADDER_FIRST), found));
        report_known(row, "ratio", over(found, results_find(&l->bench, at, NULL)));
        add_kernel(row, &found->kernels);
        add_nested(row, &found->kernels);
    } else {
        bench_json_case(row, at);
        cJSON_AddStringToObject(row, "why", why_not(l, at, found));
    }
    if (depth)
        cJSON_AddNumberToObject(row, "depth", depth);
    if (out->format == REPORT_CSV)
        report_known(row, "read_gb_per_s", bandwidth_of(l));
    cJSON_AddStringToObject(row, "text", strategy->text);
}

static void write_size(report_out *out, const lineup_results *l, const bench_case *at, cJSON *rows, cJSON *missing) {
    const bench_row *choice = results_find(&l->bench, at, NULL);
    const int first = cJSON_GetArraySize(rows);
    char depth[64] = "";
    if (choice && l->nested)
        add_row(out, rows, l, at, &(lineup_strategy){choice->strategy, "the planner's choice"}, 0);
    for (int i = 0; i < l->n; i++) {
        const bench_row *row = results_find(&l->bench, at, l->strategies[i].name);
        /* Text says once, at its end, why all of them were left out. */
        if (row || !report_is_text(out) || !why_none(l, at))
            add_row(out, has_run(row) ? rows : missing, l, at, &l->strategies[i], l->depth);
    }
    if (l->depth)
        snprintf(depth, sizeof depth, ", at most %d launches below each other", l->depth);
    bench_report_case(out, at, 1, l->block, depth);
    report_table(out, NULL, rows, first, l->nested ? nested_columns : ladder_columns);
    for (const bench_row *row = l->bench.rows; row < l->bench.rows + l->bench.row_count; row++) {
        const dpr_launch_report *nested = &row->kernels.nested;
        char text[RESULTS_TEXT];
        size_t len = sizeof text;
        if (results_same_case(&row->at, at) && nested->failed > 0
            && dpr_launch_report_explain(nested, sizeof *nested, text, &len) == DPR_OK)
            report_text(out, REPORT_NOTE, "%s: %s", row->subject, text);
    }
}

int lineup_write(FILE *f, const lineup_results *l, report_format format) {
    const char *csv = l->nested ? nested_csv : ladder_csv;
    report_out out = bench_report_begin(f, format, l->nested ? "dpr bench --nested" : "dpr bench --ladder", &l->bench,
                                        "", l->nested ? nested_definitions : ladder_definitions);
    (l->nested ? write_parts : write_read)(&out, l);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows"),
          *missing = cJSON_AddArrayToObject(out.document, "without_time");
    for (int size = 0; size < l->sizes; size++)
        write_size(&out, l, &l->at[size], rows, missing);
    report_csv(&out, csv, rows);
    report_csv(&out, csv, missing);
    report_table(&out, "Without a time", missing, 0, reasons);
    return bench_report_end(&out, &l->bench);
}
