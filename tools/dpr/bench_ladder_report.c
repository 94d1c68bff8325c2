#include <inttypes.h>
#include <string.h>

#include "bench_json.h"
#include "bench_ladder.h"
#include "bench_tables.h"
#include "defuse.h"
#include "figures.h"
#include "grid.h"
#include "lists.h"

/* ---- Table ------------------------------------------------------------------------------------------------------ */

/* The table's columns.   X(ID, heading) */
#define LADDER_COLUMNS(X)                                                                                              \
    X(STRATEGY, "strategy")                                                                                            \
    X(TIME, "us")                                                                                                      \
    X(RATE, "GB/s")                                                                                                    \
    X(SHARE, "of bandwidth")                                                                                           \
    X(SPEEDUP, "speed-up")                                                                                             \
    X(BLOCKS, "blocks")                                                                                                \
    X(THREADS, "threads")                                                                                              \
    X(REGISTERS, "registers")                                                                                          \
    X(SHARED, "shared bytes")                                                                                          \
    X(OCCUPANCY, "occupancy")                                                                                          \
    X(TEXT, "what it changes")

#define COLUMN_ENUM(ID, heading) COLUMN_##ID,
#define COLUMN_HEADING(ID, heading) heading,
enum { LADDER_COLUMNS(COLUMN_ENUM) COLUMNS };
static const char *const headings[] = {LADDER_COLUMNS(COLUMN_HEADING)};

/* Small shares, as of one block on the whole device, with a digit more. */
static void print_share(char cell[GRID_CELL], double share) {
    snprintf(cell, GRID_CELL, "%.*f %%", share < 0.0995 ? 1 : 0, 100 * share);
}

static void print_kernel(char (*line)[GRID_CELL], const ladder_rung *rung) {
    if (rung->use.threads == 0)
        return;
    snprintf(line[COLUMN_BLOCKS], GRID_CELL, "%d", rung->blocks);
    snprintf(line[COLUMN_THREADS], GRID_CELL, "%d", rung->use.threads);
    snprintf(line[COLUMN_REGISTERS], GRID_CELL, "%d", rung->use.registers);
    snprintf(line[COLUMN_SHARED], GRID_CELL, "%d", rung->use.shared_bytes);
    print_share(line[COLUMN_OCCUPANCY], rung->occupancy.fraction);
}

static void print_times(char (*line)[GRID_CELL], const ladder_results *l, const bench_row *row) {
    const double share = ladder_share(l, row), speedup = ladder_speedup(l, row);
    const char *chosen = row->chosen ? "*" : "";
    char marks[4], number[32];
    if (!results_timed(row)) {
        snprintf(line[COLUMN_TIME], GRID_CELL, "failed%s", chosen);
        return;
    }
    snprintf(line[COLUMN_TIME], GRID_CELL, "%s%s%s", figure_digits(row->us.median, number),
             tables_marks(&l->bench, row, marks), chosen);
    snprintf(line[COLUMN_RATE], GRID_CELL, "%s", figure_digits(row->gb_per_s, number));
    if (share > 0)
        snprintf(line[COLUMN_SHARE], GRID_CELL, "%.1f %%", 100 * share);
    if (speedup > 0)
        snprintf(line[COLUMN_SPEEDUP], GRID_CELL, "%s", figure_digits(speedup, number));
}

static int print_rung(grid *g, const ladder_results *l, const ladder_rung *rung) {
    const bench_row *row = ladder_row(l, rung);
    char(*line)[GRID_CELL] = row ? grid_add(g) : NULL;
    if (!line)
        return row ? -1 : 0;
    for (int c = 0; c < COLUMNS; c++)
        snprintf(line[c], GRID_CELL, "-");
    snprintf(line[COLUMN_STRATEGY], GRID_CELL, "%s", rung->strategy);
    snprintf(line[COLUMN_TEXT], GRID_CELL, "%s", rung->text);
    print_times(line, l, row);
    print_kernel(line, rung);
    return 0;
}

static int print_rungs(FILE *f, const ladder_results *l, int markdown) {
    grid g = {.columns = COLUMNS, .left = 1U << COLUMN_STRATEGY | 1U << COLUMN_TEXT};
    char(*line)[GRID_CELL] = grid_add(&g);
    int status = line ? 0 : -1;
    for (int c = 0; line && c < COLUMNS; c++)
        snprintf(line[c], GRID_CELL, "%s", headings[c]);
    for (int i = 0; i < l->n && status == 0; i++)
        status = print_rung(&g, l, &l->rungs[i]);
    if (status == 0)
        grid_print(f, &g, markdown);
    grid_free(&g);
    return status;
}

static void print_bandwidth(FILE *f, const ladder_results *l) {
    const bench_row *row = ladder_reader(l);
    char rate[32], bytes[32], marks[4];
    if (!row) {
        fputs("Read bandwidth: unknown\n", f);
        return;
    }
    fprintf(f, "Read bandwidth: %s%s GB/s, the best of %d samples of " LADDER_READER ", %s of %s of %s\n",
            figure_digits(ladder_bandwidth(l), rate), tables_marks(&l->bench, row, marks), row->us.n,
            dpr_ops[l->read.op].name, dpr_dtypes[l->read.dtype].name,
            figure_bytes(l->read.count * dpr_dtypes[l->read.dtype].size, bytes));
}

static void print_heading(FILE *f, const ladder_results *l, int markdown) {
    char count[32], bytes[32];
    tables_begin(f, &l->bench, markdown);
    fputs("\n\n", f);
    print_bandwidth(f, l);
    fprintf(f, "\n%s%s elements (%s), ", markdown ? "### " : "", figure_elements(l->at.count, count),
            figure_bytes(l->at.count * dpr_dtypes[l->at.dtype].size, bytes));
    tables_title(f, &l->at, l->block);
    fputs(markdown ? "\n\n" : ":\n", f);
}

/* Why the rung is in the list of those without a time; NULL if it is not, as it has one, or as tables_omissions() has
 * said why none has. */
static const char *why_listed(const ladder_results *l, const ladder_rung *rung) {
    if (ladder_row(l, rung) || (!rung->refusal[0] && ladder_why_none(l)))
        return NULL;
    return ladder_why_not(l, rung);
}

/* The first rung from `from` on that is listed with that reason; l->n if there is none. */
static int next_listed(const ladder_results *l, int from, const char *why) {
    for (; from < l->n; from++) {
        const char *other = why_listed(l, &l->rungs[from]);
        if (other && strcmp(why, other) == 0)
            break;
    }
    return from;
}

/* A line for each reason. */
static void print_missing(FILE *f, const ladder_results *l, int markdown) {
    int lines = 0;
    for (int first = 0; first < l->n; first++) {
        const char *why = why_listed(l, &l->rungs[first]);
        if (!why || next_listed(l, 0, why) < first)
            continue;
        if (lines++ == 0)
            fprintf(f, "\nWithout a time:\n%s", markdown ? "\n" : "");
        for (int i = first; i < l->n; i = next_listed(l, i + 1, why))
            fprintf(f, "%s%s", i == first ? "- " : ", ", l->rungs[i].strategy);
        fputs(": ", f);
        defuse_put(f, why);
        fputs("\n", f);
    }
}

static int write_table(FILE *f, const ladder_results *l, int markdown) {
    const bench_results *r = &l->bench;
    print_heading(f, l, markdown);
    if (print_rungs(f, l, markdown) != 0)
        return -1;
    fputs("\n", f);
    tables_legend(f, r);
    fputs(markdown && (results_bad(r) || r->omission_count) ? "\n" : "", f);
    for (size_t i = 0; i < r->row_count; i++)
        tables_trouble(f, &r->rows[i]);
    tables_omissions(f, r);
    print_missing(f, l, markdown);
    return 0;
}

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* A number of which 0 says that it is not known. */
static void write_known(FILE *f, double x) {
    if (x > 0)
        fprintf(f, ",%.6g", x);
    else
        fputs(",", f);
}

static void write_csv_times(FILE *f, const ladder_results *l, const bench_row *row) {
    if (!row || !results_timed(row)) {
        fprintf(f, ",0,%d,,,,,,,", row ? row->calls : 0);
        return;
    }
    fprintf(f, ",%d,%d,%.6g,%.6g,%.6g,%.4g,%.6g", row->us.n, row->calls, row->us.median, row->us.low, row->us.high,
            row->us.spread, row->gb_per_s);
    write_known(f, ladder_share(l, row));
    write_known(f, ladder_speedup(l, row));
}

static void write_csv_rung(FILE *f, const ladder_results *l, const ladder_rung *rung) {
    const bench_row *row = ladder_row(l, rung);
    const dpr_kernel_use *use = &rung->use;
    fprintf(f, "%s,%s,%s,%" PRIu64 ",%s,%s", rung->strategy, dpr_ops[l->at.op].name, dpr_dtypes[l->at.dtype].name,
            l->at.count, bench_mode_name(l->at.mode), bench_cache_name(l->at.cache));
    write_csv_times(f, l, row);
    if (use->threads)
        fprintf(f, ",%d,%d,%d,%d,%d,%.6g,%s", use->threads, use->registers, use->shared_bytes,
                rung->occupancy.blocks_per_sm, rung->blocks, rung->occupancy.fraction, rung->occupancy.limit);
    else
        fputs(",,,,,,,", f);
    fprintf(f, ",%d,%d,%d,%d,%d", row && results_right(row), row && row->chosen, row && row->verdict == BENCH_SETTLED,
            row && results_doubtful(&l->bench, row), row ? row->block : 0);
    write_known(f, ladder_bandwidth(l));
    report_write_quoted(f, row ? row->why : ladder_why_not(l, rung));
    report_write_quoted(f, rung->text);
    fputs("\n", f);
}

static void write_csv(FILE *f, const ladder_results *l) {
    fputs("strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,share,speedup,"
          "threads,registers,shared_bytes,blocks_per_sm,blocks,occupancy,limited_by,ok,chosen,settled,doubtful,block,"
          "read_gb_per_s,why,text\n",
          f);
    for (int i = 0; i < l->n; i++)
        write_csv_rung(f, l, &l->rungs[i]);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static cJSON *definitions_json(void) {
    cJSON *o = bench_json_definitions();
    bench_json_define_block(o);
    cJSON_AddStringToObject(o, "read_gb_per_s", "the device's bandwidth: the rate of the best sample of 'read'");
    cJSON_AddStringToObject(o, "share",
                            "gb_per_s over read_gb_per_s, which is of one sample: medians may come to more than 1");
    cJSON_AddStringToObject(o, "speedup", "median_us of " LADDER_FIRST " over that of the row");
    cJSON_AddStringToObject(o, "threads",
                            "a block, at most; shared_bytes are a block's, too, and registers a thread's");
    cJSON_AddStringToObject(o, "blocks_per_sm", "blocks of the kernel that an SM holds at a time, by calculation");
    cJSON_AddStringToObject(o, "blocks", "blocks that the strategy launches at most, on the whole device");
    cJSON_AddStringToObject(o, "occupancy",
                            "share of all SMs' threads that the launched blocks have at most at a time");
    cJSON_AddStringToObject(o, "limited_by",
                            "what allows no more: a resource of the SM, or '" LADDER_GRID
                            "' where the strategy launches fewer blocks than the SMs hold");
    return o;
}

static void add_known(cJSON *object, const char *key, double x) {
    if (x > 0)
        bench_json_number(object, key, x);
}

static void add_kernel(cJSON *object, const ladder_rung *rung) {
    if (rung->use.threads == 0)
        return;
    cJSON_AddNumberToObject(object, "threads", rung->use.threads);
    cJSON_AddNumberToObject(object, "registers", rung->use.registers);
    cJSON_AddNumberToObject(object, "shared_bytes", rung->use.shared_bytes);
    cJSON_AddNumberToObject(object, "blocks_per_sm", rung->occupancy.blocks_per_sm);
    cJSON_AddNumberToObject(object, "blocks", rung->blocks);
    bench_json_number(object, "occupancy", rung->occupancy.fraction);
    cJSON_AddStringToObject(object, "limited_by", rung->occupancy.limit);
}

static cJSON *rung_json(const ladder_results *l, const ladder_rung *rung, const bench_row *row) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", rung->strategy);
    bench_json_case(o, &row->at);
    bench_json_block(o, row);
    bench_json_times(o, row);
    add_known(o, "share", ladder_share(l, row));
    add_known(o, "speedup", ladder_speedup(l, row));
    add_kernel(o, rung);
    cJSON_AddBoolToObject(o, "chosen", row->chosen);
    bench_json_checks(o, &l->bench, row);
    cJSON_AddStringToObject(o, "text", rung->text);
    return o;
}

static cJSON *missing_json(const ladder_results *l, const ladder_rung *rung) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", rung->strategy);
    cJSON_AddStringToObject(o, "why", ladder_why_not(l, rung));
    cJSON_AddStringToObject(o, "text", rung->text);
    return o;
}

/* Of the row that was measured for the bandwidth, right or not. */
static cJSON *read_json(const ladder_results *l) {
    const bench_row *row = results_find(&l->bench, &l->read, LADDER_READER);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", LADDER_READER);
    bench_json_case(o, &l->read);
    if (!row)
        return o;
    bench_json_times(o, row);
    add_known(o, "best_us", row->us.least);
    bench_json_checks(o, &l->bench, row);
    return o;
}

static int write_bandwidth(FILE *f, const ladder_results *l) {
    const double rate = ladder_bandwidth(l);
    if (rate > 0)
        fprintf(f, ",\n\"read_gb_per_s\": %.6g", rate);
    else
        fputs(",\n\"read_gb_per_s\": null", f);
    return bench_json_member(f, "read", read_json(l));
}

static int write_json(FILE *f, const ladder_results *l) {
    const char *separator = "";
    const bench_row *row = NULL;
    fprintf(f, "{\"benchmark\": \"dpr bench --ladder\", \"version\": \"%s\"", dpr_version());
    int status = bench_json_heads(f, &l->bench, definitions_json()) | write_bandwidth(f, l);
    fprintf(f, ",\n\"interrupted\": %s,\n\"rows\": [", l->bench.interrupted ? "true" : "false");
    for (int i = 0; i < l->n; i++)
        if ((row = ladder_row(l, &l->rungs[i])) != NULL)
            status |= bench_json_item(f, &separator, rung_json(l, &l->rungs[i], row));
    fputs("\n],\n\"without_time\": [", f);
    separator = "";
    for (int i = 0; i < l->n; i++)
        if (!ladder_row(l, &l->rungs[i]))
            status |= bench_json_item(f, &separator, missing_json(l, &l->rungs[i]));
    return status | bench_json_end(f, &l->bench);
}

int ladder_write(FILE *f, const ladder_results *l, report_format format) {
    switch (format) {
    case REPORT_CSV:
        write_csv(f, l);
        return 0;
    case REPORT_JSON:
        return write_json(f, l);
    default:
        return write_table(f, l, format == REPORT_MARKDOWN);
    }
}
