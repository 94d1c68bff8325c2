#include <math.h>

#include "bench_ladder.h"
#include "bench_report.h"
#include "figures.h"
#include "lists.h"

static const bench_definition definitions[] = {
    {"read_gb_per_s", "the device's bandwidth: the rate of the best sample of 'read'"},
    {"share", "gb_per_s over read_gb_per_s, which is of one sample: medians may come to more than 1"},
    {"speedup", "median_us of " LADDER_FIRST " over that of the row"},
    {"threads", "a block, at most; shared_bytes are a block's, too, and registers a thread's"},
    {"blocks_per_sm", "blocks of the kernel that an SM holds at a time, by calculation"},
    {"blocks", "blocks that the strategy launches at most, on the whole device"},
    {"occupancy", "share of all SMs' threads that the launched blocks have at most at a time"},
    {"limited_by", "what allows no more: a resource of the SM, or '" LADDER_GRID
                   "' where the strategy launches fewer blocks than the SMs hold"},
    {NULL, NULL}};

static const char csv[] =
    "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,share,speedup,"
    "threads,registers,shared_bytes,blocks_per_sm,blocks,occupancy,limited_by,ok,chosen,settled,doubtful,block,"
    "read_gb_per_s,why,text";

static const report_column columns[] = {
    {"strategy", "strategy", UNIT_LEFT},         {"us", "us", UNIT_NONE},
    {"gb_per_s", "GB/s", UNIT_DIGITS},           {"share", "of bandwidth", UNIT_PERCENT},
    {"speedup", "speed-up", UNIT_DIGITS},        {"blocks", "blocks", UNIT_NONE},
    {"threads", "threads", UNIT_NONE},           {"registers", "registers", UNIT_NONE},
    {"shared_bytes", "shared bytes", UNIT_NONE}, {"occupancy", "occupancy", UNIT_PERCENT},
    {"text", "what it changes", UNIT_LEFT},      {NULL, NULL, UNIT_NONE}};
static const report_column reasons[] = {
    {"strategy", "strategy", UNIT_LEFT}, {"why", "why", UNIT_LEFT}, {NULL, NULL, UNIT_NONE}};

/* The row that was measured for the bandwidth, right or not. */
static void write_read(report_out *out, const ladder_results *l) {
    const bench_row *row = results_find(&l->bench, &l->read, LADDER_READER), *right = ladder_reader(l);
    const double rate = ladder_bandwidth(l);
    char digits[32], bytes[32];
    report_number(out->document, "read_gb_per_s", rate > 0 ? rate : NAN);
    cJSON *read = cJSON_AddObjectToObject(out->document, "read");
    cJSON_AddStringToObject(read, "strategy", LADDER_READER);
    if (row) {
        bench_json_row(out, read, &l->bench, row);
        report_known(read, "best_us", row->us.least);
    } else {
        bench_json_case(read, &l->read);
    }
    if (right)
        report_text(out, REPORT_NOTE,
                    "Read bandwidth: %s GB/s, the best of %d samples of " LADDER_READER ", %s of %s of %s",
                    figure_digits(rate, digits), right->us.n, dpr_ops[l->read.op].name, dpr_dtypes[l->read.dtype].name,
                    figure_bytes(l->read.count * dpr_dtypes[l->read.dtype].size, bytes));
    else
        report_text(out, REPORT_NOTE, "Read bandwidth: unknown");
}

static void add_kernel(cJSON *row, const ladder_rung *rung) {
    if (rung->use.threads == 0)
        return;
    cJSON_AddNumberToObject(row, "threads", rung->use.threads);
    cJSON_AddNumberToObject(row, "registers", rung->use.registers);
    cJSON_AddNumberToObject(row, "shared_bytes", rung->use.shared_bytes);
    cJSON_AddNumberToObject(row, "blocks_per_sm", rung->occupancy.blocks_per_sm);
    cJSON_AddNumberToObject(row, "blocks", rung->blocks);
    report_number(row, "occupancy", rung->occupancy.fraction);
    cJSON_AddStringToObject(row, "limited_by", rung->occupancy.limit);
}

static void add_rung(const report_out *out, cJSON *rows, const ladder_results *l, const ladder_rung *rung) {
    const bench_row *measured = ladder_row(l, rung);
    cJSON *row = report_row(rows);
    cJSON_AddStringToObject(row, "strategy", rung->strategy);
    if (measured) {
        bench_json_row(out, row, &l->bench, measured);
        report_known(row, "share", ladder_share(l, measured));
        report_known(row, "speedup", ladder_speedup(l, measured));
    } else {
        bench_json_case(row, &l->at);
        cJSON_AddStringToObject(row, "why", ladder_why_not(l, rung));
    }
    add_kernel(row, rung);
    if (out->format == REPORT_CSV)
        report_known(row, "read_gb_per_s", ladder_bandwidth(l));
    cJSON_AddStringToObject(row, "text", rung->text);
}

int ladder_write(FILE *f, const ladder_results *l, report_format format) {
    report_out out = bench_report_begin(f, format, "dpr bench --ladder", &l->bench, "", definitions);
    write_read(&out, l);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows"),
          *missing = cJSON_AddArrayToObject(out.document, "without_time");
    for (int i = 0; i < l->n; i++) {
        const ladder_rung *rung = &l->rungs[i];
        /* Text says once why all were left out, at its end. */
        if (ladder_row(l, rung) || rung->refusal[0] || !report_is_text(&out) || !ladder_why_none(l))
            add_rung(&out, ladder_row(l, rung) ? rows : missing, l, rung);
    }
    report_csv(&out, csv, rows);
    report_csv(&out, csv, missing);
    bench_report_case(&out, &l->at, 1, l->block, "");
    report_table(&out, NULL, rows, 0, columns);
    report_table(&out, "Without a time", missing, 0, reasons);
    return bench_report_end(&out, &l->bench);
}
