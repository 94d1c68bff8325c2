/* The parts of `dpr bench --nested` that need no GPU: what is asked for, processes and the lines that they write, what
 * follows from results, and the reports. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_nested.h"
#include "cli.h"
#include "cuda/device.h"
#include "plan/registry.h"
#include "reports.h"
#include "support.h"

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

TEST(BenchNested, defaults) {
    bench_asked a = {.device = DPR_DEVICE_AUTO};
    ASSERT_EQ_I64(CLI_OK, nested_complete(&a));
    ASSERT_EQ_I64(2, a.counts.n);
    EXPECT_EQ_U64(1 << 20, a.counts.at[0]);
    EXPECT_EQ_U64(1 << 24, a.counts.at[1]);
    for (int i = 0; i < AXIS_SET; i++) {
        EXPECT_EQ_I64(i == DPR_SUM, a.ops[i]);
        EXPECT_EQ_I64(i == DPR_I32, a.dtypes[i]);
        EXPECT_EQ_I64(i == BENCH_GRAPH, a.modes[i]);
        EXPECT_EQ_I64(i == BENCH_COLD, a.caches[i]);
    }
    ASSERT_EQ_I64(5, a.pool_count);
    EXPECT_EQ_U64(64, a.pools[0]);
    EXPECT_EQ_U64(65536, a.pools[4]);
}

TEST(BenchNested, what_is_asked_for_stays) {
    bench_asked a = {.device = 0, .counts = {.n = 1, .at = {1000}}, .pool_count = 1, .pools = {777}, .depth = 3};
    a.ops[DPR_MAX] = a.dtypes[DPR_F32] = a.modes[BENCH_GRAPH] = a.caches[BENCH_COLD] = 1;
    ASSERT_EQ_I64(CLI_OK, nested_complete(&a));
    EXPECT_EQ_I64(1, a.counts.n);
    EXPECT_EQ_U64(1000, a.counts.at[0]);
    EXPECT_TRUE(a.ops[DPR_MAX] && !a.ops[DPR_SUM] && a.dtypes[DPR_F32] && !a.dtypes[DPR_I32]);
    EXPECT_EQ_I64(1, a.pool_count);
    EXPECT_EQ_U64(777, a.pools[0]);
    EXPECT_EQ_I64(3, a.depth);
}

TEST(BenchNested, what_it_does_not_have_is_refused) {
    bench_asked good = {.device = DPR_DEVICE_AUTO}, a;
    a = good, a.ladder = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.device = DPR_DEVICE_CPU;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.modes[BENCH_BLOCKING] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.caches[BENCH_HOT] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.strategies[0] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.counts.n = NESTED_SIZES + 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.ops[DPR_SUM] = a.ops[DPR_MIN] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.dtypes[DPR_I32] = a.dtypes[DPR_I8] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.ops[DPR_BAND] = a.dtypes[DPR_F32] = 1;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good, a.depth = 1000;
    EXPECT_EQ_I64(CLI_USAGE, nested_complete(&a));
    a = good;
    EXPECT_EQ_I64(CLI_OK, nested_complete(&a));
}

TEST(BenchNested, pools) {
    static const char *const bad[] = {"", "64,", ",64", "15", "2^25", "x", "64;128", "-64", "64 "};
    bench_asked a = {.pool_count = 0};
    ASSERT_EQ_I64(CLI_OK, asked_take_pools("2048,64,2^16", &a));
    ASSERT_EQ_I64(3, a.pool_count);
    EXPECT_EQ_U64(2048, a.pools[0]);
    EXPECT_EQ_U64(64, a.pools[1]);
    EXPECT_EQ_U64(65536, a.pools[2]);
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_THAT(asked_take_pools(bad[i], &a) == CLI_USAGE, "'%s' was taken", bad[i]);
    char many[ASKED_POOLS * 3 + 3] = "16";
    for (int i = 1; i < ASKED_POOLS; i++)
        strcat(many, ",16");
    EXPECT_EQ_I64(CLI_OK, asked_take_pools(many, &a));
    EXPECT_EQ_I64(ASKED_POOLS, a.pool_count);
    strcat(many, ",16");
    EXPECT_EQ_I64(CLI_USAGE, asked_take_pools(many, &a));
}

TEST(BenchNested, depths) {
    static const char *const bad[] = {"0", "", "x", "-1", "1.5", "2^40"};
    int taken = 0;
    EXPECT_EQ_I64(CLI_OK, cli_depth("12", &taken));
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_THAT(cli_depth(bad[i], &taken) == CLI_USAGE, "'%s' was taken", bad[i]);
    EXPECT_EQ_I64(12, taken);
}

/* Those whose name says so, and no others. */
TEST(BenchNested, strategies) {
    const dpr_strategy *order[NESTED_STRATEGIES];
    const int n = nested_order(order);
    int named = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        named += strncmp(dpr_strategy_name(i), "dp.", 3) == 0;
    EXPECT_EQ_I64(named, n);
    for (int i = 0; i < n; i++)
        EXPECT_THAT(strncmp(order[i]->name, "dp.", 3) == 0, "%s launches from kernels", order[i]->name);
}

TEST(BenchNested, every_launch_has_a_name_and_a_text) {
    for (size_t i = 0; i < BENCH_LAUNCHES; i++) {
        EXPECT_TRUE(strlen(bench_launch_name(i)) > 0 && strlen(bench_launch_text(i)) > 0);
        for (size_t j = 0; j < i; j++)
            EXPECT_THAT(strcmp(bench_launch_name(i), bench_launch_name(j)) != 0, "%s twice", bench_launch_name(i));
    }
    EXPECT_TRUE(bench_launch_name(BENCH_LAUNCHES) == NULL && bench_launch_text(BENCH_LAUNCHES) == NULL);
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

static const bench_costs some_costs = {
    .pending = 2048,
    .loaded_bytes = 2 << 20,
    .reserved_bytes = 98 << 20,
    .length = 72,
    .blocks = 64,
    .each = 8,
    .of = {[BENCH_LAUNCH_EMPTY] = {.us = {.n = 20, .median = 1.25, .low = 1.2, .high = 1.3, .spread = 0.05}},
           [BENCH_LAUNCH_CHAIN_TAIL] = {.us = {.n = 9, .median = 11.25, .low = 11, .high = 12, .spread = 0.02},
                                        .settled = 1},
           [BENCH_LAUNCH_DEVICE_GRAPH] = {.why = "making a graph that \"kernels\" can launch: no"}}};

/* What a function writes: in static memory, until the next call. */
static const char *text_of(int (*write)(FILE *f, const void *what), const void *what) {
    static char text[2 * PART_LINE];
    text[0] = 0;
    FILE *f = fmemopen(text, sizeof text, "w");
    if (EXPECT_TRUE(f != NULL)) {
        EXPECT_EQ_I64(0, write(f, what));
        EXPECT_EQ_I64(0, fclose(f));
    }
    return text;
}

static int write_costs(FILE *f, const void *what) {
    return part_write(f, what);
}

static int write_failure(FILE *f, const void *what) {
    return part_write_failure(f, what);
}

TEST(BenchNestedPart, lines_come_back) {
    nested_part part = {.asked = 5, .why = "not tried"};
    const char *line = text_of(write_costs, &some_costs);
    EXPECT_TRUE(strlen(line) < PART_LINE && strchr(line, '\n') == line + strlen(line) - 1);
    ASSERT_EQ_I64(0, part_read(line, &part));
    EXPECT_TRUE(part.there && !part.why[0] && part.asked == 5 && !part.costs.hung);
    EXPECT_EQ_U64(2048, part.costs.pending);
    EXPECT_EQ_U64(2 << 20, part.costs.loaded_bytes);
    EXPECT_EQ_U64(98 << 20, part.costs.reserved_bytes);
    EXPECT_TRUE(part.costs.length == 72 && part.costs.blocks == 64 && part.costs.each == 8);
    for (size_t i = 0; i < BENCH_LAUNCHES; i++) {
        const bench_cost *a = &some_costs.of[i], *b = &part.costs.of[i];
        EXPECT_EQ_STR(a->why, b->why);
        EXPECT_EQ_I64(a->us.n, b->us.n);
        EXPECT_EQ_I64(a->settled, b->settled);
        EXPECT_NEAR_F64(a->us.median, b->us.median, 0);
        EXPECT_NEAR_F64(a->us.low, b->us.low, 0);
        EXPECT_NEAR_F64(a->us.high, b->us.high, 0);
        EXPECT_NEAR_F64(a->us.spread, b->us.spread, 0);
    }
}

/* With every launch refused at length, as the longest line has it. */
TEST(BenchNestedPart, the_longest_line_is_not_too_long) {
    bench_costs costs = {.pending = SIZE_MAX};
    for (size_t i = 0; i < BENCH_LAUNCHES; i++)
        memset(costs.of[i].why, '\x01', sizeof costs.of[i].why - 1);
    const size_t length = strlen(text_of(write_costs, &costs));
    EXPECT_THAT(length > 0 && length < PART_LINE, "%zu bytes", length);
}

TEST(BenchNestedPart, failures_come_back) {
    nested_part part = {.there = 1};
    ASSERT_EQ_I64(0, part_read(text_of(write_failure, "no \"GPU\""), &part));
    EXPECT_TRUE(!part.there);
    EXPECT_EQ_STR("no \"GPU\"", part.why);
}

TEST(BenchNestedPart, other_lines_are_none) {
    static const char *const lines[] = {
        "", "dpr", "{", "{}", "[]", "{\"why\": 1}", "{\"why\": \"\"}", "{\"costs\": 3}"};
    for (size_t i = 0; i < LENGTH(lines); i++) {
        nested_part part = {.why = "as it was"};
        EXPECT_THAT(part_read(lines[i], &part) == -1, "%s was taken", lines[i]);
        EXPECT_EQ_STR("as it was", part.why);
    }
}

/* Of another program, or of another version. */
TEST(BenchNestedPart, members_that_make_no_sense) {
    nested_part part = {.there = 0};
    ASSERT_EQ_I64(0, part_read("{\"costs\": [{\"launch\": \"none\"}, 3, {\"launch\": \"host\", \"samples\": -1, "
                               "\"median_us\": \"x\"}], \"pending\": -7}",
                               &part));
    EXPECT_TRUE(part.there && part.costs.pending == 0);
    for (size_t i = 0; i < BENCH_LAUNCHES; i++)
        EXPECT_TRUE(part.costs.of[i].us.n == 0 && part.costs.of[i].us.median <= 0);
}

/* ---- Processes -------------------------------------------------------------------------------------------------- */

/* What a shell's script comes to. */
typedef struct script_end {
    int status;
    double seconds;
    char line[PART_LINE], why[BENCH_WHY];
} script_end;

static script_end run_script(const char *script, double seconds, const volatile sig_atomic_t *stop) {
    script_end end = {.line = "", .why = ""};
    char name[] = "sh", option[] = "-c", text[200];
    snprintf(text, sizeof text, "%s", script);
    char *const argv[] = {name, option, text, NULL};
    const double began = test_now();
    end.status = part_run("/bin/sh", argv, seconds, stop, end.line, end.why);
    end.seconds = test_now() - began;
    return end;
}

TEST(BenchNestedPart, the_first_line_is_taken) {
    script_end end = run_script("echo first; echo second", 60, NULL);
    EXPECT_EQ_I64(0, end.status);
    EXPECT_EQ_STR("first", end.line);
    end = run_script("printf fi; sleep 0.2; printf 'rst'; exit 1", 60, NULL);
    EXPECT_EQ_I64(0, end.status);
    EXPECT_EQ_STR("first", end.line);
}

/* A program that hangs on its way out. */
TEST(BenchNestedPart, the_end_is_not_waited_for_long) {
    const script_end end = run_script("echo first; exec sleep 60", 60, NULL);
    EXPECT_EQ_I64(0, end.status);
    EXPECT_EQ_STR("first", end.line);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchNestedPart, programs_without_a_line) {
    script_end end = run_script("exit 3", 60, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("its process wrote nothing, and ended with code 3", end.why);
    end = run_script("kill -9 $$", 60, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("its process wrote nothing, and ended with signal 9", end.why);
    end = run_script("while :; do echo -n xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", 60, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_CONTAINS(end.why, "its process wrote more than");
}

TEST(BenchNestedPart, programs_that_take_too_long) {
    const script_end end = run_script("exec sleep 60", 0.2, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("its process took more than 0.2 s", end.why);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchNestedPart, interrupted) {
    static const volatile sig_atomic_t stop = 1;
    const script_end end = run_script("exec sleep 60", 60, &stop);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("interrupted", end.why);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchNestedPart, no_program) {
    char name[] = "none", line[PART_LINE], why[BENCH_WHY] = "";
    char *const argv[] = {name, NULL};
    EXPECT_EQ_I64(-1, part_run("/none/such", argv, 60, NULL, line, why));
    EXPECT_CONTAINS(why, "no process: ");
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

enum { TREE, BOOK, OTHER, STRATEGIES };

static const dpr_strategy strategies[STRATEGIES] = {[TREE] = {.name = "dp.tree", .text = "leaves, then \"nodes\""},
                                                    [BOOK] = {.name = "dp.book", .text = "halves"},
                                                    [OTHER] = {.name = "dp.other", .text = "for other types"}};

static void add_row(nested_results *n, int size, const char *strategy, double us, int chosen) {
    bench_row *row = results_add_row(&n->bench);
    ASSERT_TRUE(row != NULL);
    *row = (bench_row){.at = n->at[size],
                       .subject = strategy,
                       .strategy = strategy,
                       .chosen = chosen,
                       .us = {.n = 9, .median = us, .least = us, .low = us, .high = us},
                       .gb_per_s = (double)n->at[size].count * 4 / us * 1e-3,
                       .calls = 32,
                       .verdict = BENCH_SETTLED,
                       .checked = 288};
}

/* Two sizes, at which one strategy cannot run; launches; two pools, of which one was refused. */
static void set_up(void *state) {
    nested_results *n = state;
    n->bench.device = (bench_device){.ordinal = 0, .name = "Test device"};
    n->bench.commit = "abc123";
    n->bench.rule.half_width = 0.01;
    n->sizes = 2;
    n->at[0] = (bench_case){.op = DPR_SUM, .dtype = DPR_I32, .count = 1 << 20};
    n->at[1] = (bench_case){.op = DPR_SUM, .dtype = DPR_I32, .count = 1 << 24};
    n->pending = 2048;
    n->n = STRATEGIES;
    for (int i = 0; i < STRATEGIES; i++)
        n->strategies[i] = &strategies[i];
    for (int size = 0; size < 2; size++) {
        add_row(n, size, "flat.lastblock", size ? 20 : 4, 1);
        add_row(n, size, "dp.tree", size ? 50 : 30, 0);
        add_row(n, size, "dp.book", size ? 80000 : 6000, 0);
        n->cells[size][TREE] = (nested_cell){.ran = 1, .report = {.launched = 1, .deepest = 1}};
        n->cells[size][BOOK] =
            (nested_cell){.ran = 1, .report = {.launched = 900, .refused = 77, .in_line = 78, .deepest = 8}};
        snprintf(n->cells[size][OTHER].refusal, sizeof n->cells[size][OTHER].refusal, "it is for other types");
    }
    n->launches = (nested_part){.there = 1, .costs = some_costs};
    for (size_t i = 0; i < BENCH_LAUNCHES; i++)
        if (n->launches.costs.of[i].us.n == 0 && !n->launches.costs.of[i].why[0])
            n->launches.costs.of[i].us = (bench_summary){.n = 7, .median = 2, .low = 2, .high = 2};
    n->pools = 2;
    n->pool[0] = (nested_part){.asked = 64, .there = 1, .costs = some_costs};
    n->pool[0].costs.pending = 64;
    n->pool[1] = (nested_part){.asked = 65536, .why = "the size of the pool: out of memory"};
}

static void tear_down(void *state) {
    results_free(&((nested_results *)state)->bench);
}

#define NESTED_TEST(NAME) TEST_FIXTURE(BenchNested, NAME, nested_results, set_up, tear_down)

NESTED_TEST(figures) {
    const bench_row *rows = fixture->bench.rows;
    EXPECT_TRUE(nested_choice(fixture, 0) == &rows[0] && nested_choice(fixture, 1) == &rows[3]);
    EXPECT_TRUE(nested_row(fixture, 0, TREE) == &rows[1] && nested_row(fixture, 1, BOOK) == &rows[5]);
    EXPECT_TRUE(nested_row(fixture, 0, OTHER) == NULL);
    EXPECT_NEAR_F64(7.5, nested_ratio(fixture, 0, &rows[1]), 1e-12);
    EXPECT_NEAR_F64(2.5, nested_ratio(fixture, 1, &rows[4]), 1e-12);
    EXPECT_NEAR_F64(1, nested_ratio(fixture, 1, &rows[3]), 0);
}

NESTED_TEST(wrong_results_have_no_ratio) {
    bench_row *rows = fixture->bench.rows;
    rows[1].wrong = 1;
    EXPECT_NEAR_F64(0, nested_ratio(fixture, 0, &rows[1]), 0);
    EXPECT_TRUE(nested_ratio(fixture, 0, &rows[2]) > 0);
    rows[0].state = BENCH_FAILED;
    EXPECT_NEAR_F64(0, nested_ratio(fixture, 0, &rows[2]), 0);
    EXPECT_TRUE(nested_ratio(fixture, 1, &rows[4]) > 0);
}

NESTED_TEST(why_there_is_no_time) {
    EXPECT_EQ_STR("it is for other types", nested_why_not(fixture, 0, OTHER));
    EXPECT_EQ_STR("it was not measured", nested_why_not(fixture, 0, TREE));
    EXPECT_TRUE(nested_why_none(fixture, 0) == NULL);
    fixture->bench.ended = "interrupted";
    EXPECT_EQ_STR("interrupted", nested_why_not(fixture, 0, TREE));
    bench_omission *omission = results_add_omission(&fixture->bench);
    ASSERT_TRUE(omission != NULL);
    omission->at = fixture->at[1];
    snprintf(omission->why, sizeof omission->why, "no room");
    EXPECT_EQ_STR("no room", nested_why_not(fixture, 1, TREE));
    EXPECT_EQ_STR("no room", nested_why_none(fixture, 1));
    EXPECT_TRUE(nested_why_none(fixture, 0) == NULL);
}

/* ---- Reports ---------------------------------------------------------------------------------------------------- */

static int write_nested(FILE *f, const void *what, report_format format) {
    return nested_write(f, what, format);
}

NESTED_TEST(tables) {
    static const char *const parts[] = {
        "\nPool of pending launches: 2048; 100 MiB of device memory once a kernel has launched one\n\nLaunches:\n",
        "\nempty              1.25~   5.0 %  a kernel that does nothing, in a stream ",
        "\nchain.tail          11.2   2.0 %  a level of a chain in which each kernel tail-launches the next ",
        "\ndevice_graph           -       -  a graph of one kernel that a kernel launches, fire-and-forget  ",
        "  making a graph that \"kernels\" can launch: no\n",
        "\nTail launches with other pools:\n"
        "asked  pending  device memory    us  spread  why not\n"
        "   64       64        100 MiB  11.2   2.0 %  -\n"
        "65536        -              -     -       -  the size of the pool: out of memory\n",
        "\n2^20 elements (4.00 MiB), sum of i32, calls in a graph, cold cache, 64 threads a block where that can be "
        "chosen, "
        "at most 4 launches below each other:\n"
        "strategy            us  ratio  launched  refused  failed  in line  deepest  how\n"
        "flat.lastblock   4.00*   1.00         -        -       -        -        -  the planner's choice\n"
        "dp.tree          30.0!      -         1        0       1        0        1  leaves, then \"nodes\"\n"
        "dp.book         failed      -         -        -       -        -        -  halves\n"
        "\ndp.tree: the first launch that failed had cudaError_t 69, in block 5 at depth 2\n",
        "\n2^24 elements (64.0 MiB), ",
        "\nWithout a time:\n"
        "strategy  elements  why\n"
        "dp.other      2^20  it is for other types\n",
        "2^20 elements: dp.tree gave 3 WRONG results of 288\n",
        "2^20 elements: dp.book failed: some fault\n",
        NULL};
    bench_row *rows = fixture->bench.rows;
    dpr_launch_report *nested = &fixture->cells[0][TREE].report;
    fixture->block = 64;
    fixture->depth = 4;
    rows[1].wrong = 3;
    nested->failed = 1;
    nested->error = 69;
    nested->error_block = 5;
    nested->error_depth = 2;
    rows[2].state = BENCH_FAILED;
    snprintf(rows[2].why, sizeof rows[2].why, "some fault");
    fixture->cells[0][BOOK].ran = 0;
    check_report(write_nested, fixture, REPORT_TABLE, parts);
}

NESTED_TEST(csv) {
    static const char *const parts[] = {
        "part,name,op,dtype,count,mode,cache,pending,device_bytes,samples,median_us,low_us,high_us,spread,ratio,"
        "launched,refused,failed,in_line,deepest,error,ok,chosen,settled,doubtful,block,depth,why,text\n",
        "\nlaunch,empty,,,,,,2048,104857600,20,1.25,1.2,1.3,0.05,,,,,,,,1,,0,,,,,\"a kernel that does nothing, ",
        "\nlaunch,device_graph,,,,,,2048,104857600,,,,,,,,,,,,,0,,,,,,\"making a graph that \"\"kernels\"\" can ",
        "\npool,chain.tail,,,,,,65536,,,,,,,,,,,,,,0,,,,,,the size of the pool: out of memory,",
        "\nstrategy,dp.tree,sum,i32,16777216,graph,cold,,,9,50,50,50,0,2.5,1,0,0,0,1,,1,0,1,0,0,4,,\"leaves, then "
        "\"\"nodes\"\"\"\n",
        "\nstrategy,dp.other,sum,i32,16777216,graph,cold,,,,,,,,,,,,,,,,,,,,4,it is for other types,for other "
        "types\n",
        NULL};
    fixture->depth = 4;
    check_report(write_nested, fixture, REPORT_CSV, parts);
}

NESTED_TEST(json) {
    fixture->cells[0][TREE].report.failed = 1;
    fixture->depth = 4;
    cJSON *document = report_json_of(write_nested, fixture);
    EXPECT_EQ_STR(
        "benchmark,version,commit,device,settings,interrupted,definitions,pending,loaded_bytes,reserved_bytes,"
        "length,fan,launches,pools,rows,without_time,left_out",
        keys_of(document));
    EXPECT_EQ_STR("graph,stream,blocking,cold,hot,interval,spread,block,pending,launches,pools,length,fan,loaded_bytes,"
                  "reserved_bytes,ratio,nested,depth",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("launch,samples,median_us,low_us,high_us,spread,settled,text",
                  keys_of(member_of(document, "launches.0")));
    EXPECT_EQ_STR(
        "launch,why,text",
        keys_of(member_of(cJSON_GetArrayItem(member_of(document, "launches"), BENCH_LAUNCH_DEVICE_GRAPH), "")));
    EXPECT_EQ_STR("asked,pending,loaded_bytes,reserved_bytes,samples,median_us,low_us,high_us,spread,settled",
                  keys_of(member_of(document, "pools.0")));
    EXPECT_EQ_STR("asked,why", keys_of(member_of(document, "pools.1")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,chosen,ok,"
                  "settled,doubtful,checked,wrong,late,ratio,depth,nested,text",
                  keys_of(member_of(document, "rows.1")));
    EXPECT_EQ_STR("launched,refused,failed,in_line,deepest,error,error_depth,error_block",
                  keys_of(member_of(document, "rows.1.nested")));
    EXPECT_EQ_STR("launched,refused,failed,in_line,deepest", keys_of(member_of(document, "rows.2.nested")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,why,depth,text", keys_of(member_of(document, "without_time.0")));
    EXPECT_TRUE(!member_of(document, "rows.0.nested") && !member_of(document, "rows.0.depth"));
    EXPECT_EQ_I64(BENCH_LAUNCHES, cJSON_GetArraySize(member_of(document, "launches")));
    EXPECT_EQ_I64(6, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_TRUE(number_of(document, "pending") == 2048 && number_of(document, "reserved_bytes") == 98 << 20);
    EXPECT_TRUE(number_of(document, "fan.0") == 64 && number_of(document, "fan.1") == 8);
    EXPECT_NEAR_F64(1.25, number_of(document, "launches.0.median_us"), 0);
    EXPECT_NEAR_F64(11.25, number_of(document, "pools.0.median_us"), 0);
    EXPECT_NEAR_F64(1500, number_of(document, "rows.2.ratio"), 0);
    EXPECT_TRUE(number_of(document, "rows.2.nested.launched") == 900
                && number_of(document, "rows.2.nested.in_line") == 78);
    EXPECT_EQ_STR("it is for other types", string_of(document, "without_time.1.why"));
    EXPECT_TRUE(number_of(document, "without_time.1.count") == 1 << 24);
    cJSON_Delete(document);
}

/* A reason that all have is said once. */
NESTED_TEST(case_that_was_left_out) {
    results_free(&fixture->bench);
    fixture->bench = (bench_results){.device = {.name = "Test device"}, .commit = ""};
    bench_omission *omission = results_add_omission(&fixture->bench);
    ASSERT_TRUE(omission != NULL);
    omission->at = fixture->at[0];
    snprintf(omission->why, sizeof omission->why, "no room");
    char *text = report_text_of(write_nested, fixture, REPORT_TABLE);
    const char *said = text ? strstr(text, "no room") : NULL;
    EXPECT_TRUE(said && !strstr(said + 1, "no room"));
    free(text);
}

/* The file is written while the measurement goes on, so also before there is anything in it. */
NESTED_TEST(reports_of_nothing) {
    static const char *const parts[] = {"\nLaunches were not measured: not yet\n",
                                        "\n   64        -              -   -       -  not yet\n",
                                        "\ndp.tree       2^20  interrupted\n", NULL};
    results_free(&fixture->bench);
    fixture->bench = (bench_results){.device = {.name = "Test device"}, .commit = "", .ended = "interrupted"};
    fixture->launches = (nested_part){.asked = 0};
    fixture->pool[0] = (nested_part){.asked = 64};
    check_report(write_nested, fixture, REPORT_TABLE, parts);
    cJSON *document = report_json_of(write_nested, fixture);
    EXPECT_EQ_STR("not yet", cJSON_GetStringValue(member_of(document, "launches_why")));
    EXPECT_EQ_I64(0, cJSON_GetArraySize(member_of(document, "launches")));
    EXPECT_EQ_I64(0, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_EQ_I64(2, cJSON_GetArraySize(member_of(document, "pools")));
    EXPECT_EQ_I64(2 * STRATEGIES, cJSON_GetArraySize(member_of(document, "without_time")));
    cJSON_Delete(document);
}
