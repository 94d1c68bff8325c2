/* The parts of `dpr bench --ladder` that measure nothing: what is asked for, the order of teaching, what follows from
 * results, and the reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_caller.h"
#include "bench_ladder.h"
#include "cli.h"
#include "plan/registry.h"
#include "reports.h"
#include "support.h"

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

TEST(BenchLadder, defaults) {
    bench_asked a = {.device = DPR_DEVICE_AUTO};
    ASSERT_EQ_I64(CLI_OK, ladder_complete(&a));
    EXPECT_EQ_I64(1, a.counts.n);
    EXPECT_EQ_U64(1 << 24, a.counts.at[0]);
    for (int i = 0; i < AXIS_SET; i++) {
        EXPECT_EQ_I64(i == DPR_SUM, a.ops[i]);
        EXPECT_EQ_I64(i == DPR_I32, a.dtypes[i]);
        EXPECT_EQ_I64(i == BENCH_GRAPH, a.modes[i]);
        EXPECT_EQ_I64(i == BENCH_COLD, a.caches[i]);
    }
}

TEST(BenchLadder, what_is_asked_for_stays) {
    bench_asked a = {.device = 0, .counts = {.n = 1, .at = {1000}}};
    a.ops[DPR_MAX] = a.dtypes[DPR_U8] = a.modes[BENCH_GRAPH] = a.caches[BENCH_COLD] = 1;
    ASSERT_EQ_I64(CLI_OK, ladder_complete(&a));
    EXPECT_EQ_U64(1000, a.counts.at[0]);
    EXPECT_TRUE(a.ops[DPR_MAX] && !a.ops[DPR_SUM] && a.dtypes[DPR_U8] && !a.dtypes[DPR_I32]);
}

TEST(BenchLadder, what_it_does_not_have_is_refused) {
    bench_asked good = {.device = DPR_DEVICE_AUTO}, a;
    a = good, a.device = DPR_DEVICE_CPU;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.modes[BENCH_STREAM] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.caches[BENCH_COLD] = a.caches[BENCH_HOT] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.strategies[0] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.counts.n = 2;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.ops[DPR_SUM] = a.ops[DPR_MIN] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.dtypes[DPR_I32] = a.dtypes[DPR_I8] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
    a = good, a.ops[DPR_BAND] = a.dtypes[DPR_F32] = 1;
    EXPECT_EQ_I64(CLI_USAGE, ladder_complete(&a));
}

TEST(BenchLadder, block_sizes) {
    static const char *const bad[] = {"0", "16", "33", "96", "2048", "-32", "x", "", "32 ", "2^63"};
    int taken = 0;
    char text[16];
    for (int block = 32; block <= 1024; block *= 2) {
        snprintf(text, sizeof text, "%d", block);
        EXPECT_EQ_I64(CLI_OK, cli_block(text, &taken));
        EXPECT_EQ_I64(block, taken);
    }
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_EQ_I64(CLI_USAGE, cli_block(bad[i], &taken));
    EXPECT_EQ_I64(1024, taken);
}

/* Only strategies that let it be chosen have it. */
TEST(BenchLadder, block_sizes_of_calls) {
    const bench_case at = {.op = DPR_SUM, .dtype = DPR_I32, .count = 100};
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        bench_caller c = caller_at(NULL, &at, dpr_strategy_name(i));
        EXPECT_EQ_I64(0, c.options.block);
        caller_set_block(&c, 64);
        EXPECT_EQ_I64(dpr_strategies[i]->block_sizes ? 64 : 0, c.options.block);
    }
}

/* ---- Order ------------------------------------------------------------------------------------------------------ */

static int rank(const char *name) {
    static const char *const families[] = {"ladder.", "atomic.", "coop.", "flat."};
    for (int i = 0; i < (int)LENGTH(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return i;
    return LENGTH(families);
}

TEST(BenchLadder, order_of_teaching) {
    const dpr_strategy *order[BENCH_SUBJECTS];
    const int n = ladder_order(order);
    int of_gpu = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        of_gpu += dpr_strategies[i]->side == DPR_ON_GPU && !dpr_strategies[i]->workspace_bytes;
    EXPECT_EQ_I64(of_gpu, n);
    for (int i = 0; i < n; i++)
        EXPECT_EQ_I64(DPR_ON_GPU, order[i]->side);
    for (int i = 1; i < n; i++) {
        const int before = rank(order[i - 1]->name), after = rank(order[i]->name);
        EXPECT_THAT(
            before < after
                || (before == after && dpr_strategy_find(order[i - 1]->name) < dpr_strategy_find(order[i]->name)),
            "%s comes before %s", order[i - 1]->name, order[i]->name);
    }
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

enum { FIRST, SECOND, FLAT, REFUSED, RUNGS };

static const bench_case ladder_case = {.op = DPR_SUM, .dtype = DPR_I32, .count = 1 << 24};
static const bench_case read_case = {.op = DPR_SUM, .dtype = DPR_F32, .count = 1 << 28};

static void add_row(ladder_results *l, const bench_case *at, const char *strategy, double us, double least) {
    bench_row *row = results_add_row(&l->bench);
    ASSERT_TRUE(row != NULL);
    *row = (bench_row){.at = *at,
                       .subject = strategy,
                       .strategy = strategy,
                       .us = {.n = 9, .median = us, .least = least, .low = us, .high = us},
                       .gb_per_s = (double)at->count * 4 / us * 1e-3,
                       .calls = 32,
                       .verdict = BENCH_SETTLED,
                       .checked = 288};
}

/* Three rungs of 100, 40 and 20 us, and one that cannot run. The device reads 1 GiB in 256 us, at best. */
static void set_up(void *state) {
    ladder_results *l = state;
    l->bench.device = (bench_device){.ordinal = 0, .name = "Test device"};
    l->bench.commit = "abc123";
    l->bench.rule.half_width = 0.01;
    l->at = ladder_case;
    l->read = read_case;
    l->n = RUNGS;
    l->rungs[FIRST] = (ladder_rung){.strategy = LADDER_FIRST,
                                    .text = "threads add \"neighbours\", further apart",
                                    .blocks = 40,
                                    .use = {.threads = 512, .registers = 20, .shared_bytes = 4096},
                                    .occupancy = {.blocks_per_sm = 4, .fraction = 1, .limit = "threads"}};
    l->rungs[SECOND] = (ladder_rung){.strategy = "ladder.unroll8",
                                     .text = "eight elements",
                                     .blocks = 30,
                                     .use = {.threads = 512, .registers = 40, .shared_bytes = 4096},
                                     .occupancy = {.blocks_per_sm = 3, .fraction = 0.75, .limit = "registers"}};
    l->rungs[FLAT] = (ladder_rung){.strategy = LADDER_READER, .text = "all SMs read"};
    l->rungs[REFUSED] = (ladder_rung){.strategy = "coop.tile", .text = "tiles", .refusal = "is for other types"};
    add_row(l, &ladder_case, LADDER_FIRST, 100, 99);
    add_row(l, &ladder_case, "ladder.unroll8", 40, 39);
    add_row(l, &ladder_case, LADDER_READER, 20, 19);
    add_row(l, &read_case, LADDER_READER, 320, 256);
}

static void tear_down(void *state) {
    results_free(&((ladder_results *)state)->bench);
}

#define LADDER_TEST(NAME) TEST_FIXTURE(BenchLadder, NAME, ladder_results, set_up, tear_down)

LADDER_TEST(figures) {
    const double bandwidth = 1073741824.0 / 256e3, bytes = 67108864;
    const bench_row *second = ladder_row(fixture, &fixture->rungs[SECOND]);
    ASSERT_TRUE(second == &fixture->bench.rows[1]);
    EXPECT_TRUE(ladder_row(fixture, &fixture->rungs[FLAT]) == &fixture->bench.rows[2]);
    EXPECT_TRUE(ladder_row(fixture, &fixture->rungs[REFUSED]) == NULL);
    EXPECT_TRUE(ladder_reader(fixture) == &fixture->bench.rows[3]);
    EXPECT_NEAR_F64(bandwidth, ladder_bandwidth(fixture), 1e-9);
    EXPECT_NEAR_F64(bytes / 40e3 / bandwidth, ladder_share(fixture, second), 1e-12);
    EXPECT_NEAR_F64(2.5, ladder_speedup(fixture, second), 1e-12);
    EXPECT_NEAR_F64(1, ladder_speedup(fixture, &fixture->bench.rows[0]), 0);
}

LADDER_TEST(wrong_results_have_no_figures) {
    bench_row *rows = fixture->bench.rows;
    rows[1].wrong = 1;
    EXPECT_NEAR_F64(0, ladder_speedup(fixture, &rows[1]), 0);
    EXPECT_NEAR_F64(0, ladder_share(fixture, &rows[1]), 0);
    EXPECT_TRUE(ladder_share(fixture, &rows[2]) > 0 && ladder_speedup(fixture, &rows[2]) > 0);
    rows[0].state = BENCH_FAILED;
    EXPECT_NEAR_F64(0, ladder_speedup(fixture, &rows[2]), 0);
    EXPECT_TRUE(ladder_share(fixture, &rows[2]) > 0);
    rows[3].wrong = 1;
    EXPECT_TRUE(ladder_reader(fixture) == NULL);
    EXPECT_NEAR_F64(0, ladder_bandwidth(fixture), 0);
    EXPECT_NEAR_F64(0, ladder_share(fixture, &rows[2]), 0);
}

/* The array of the ladder may be that of the bandwidth. */
LADDER_TEST(one_case_for_both) {
    fixture->read = fixture->at;
    EXPECT_TRUE(ladder_reader(fixture) == &fixture->bench.rows[2]);
    EXPECT_NEAR_F64(67108864 / 19e3, ladder_bandwidth(fixture), 1e-9);
}

/* Four blocks of 512 threads fill each of ten SMs. */
LADDER_TEST(occupancy_of_grids) {
    static const struct {
        int blocks;
        double fraction;
        const char *limit;
    } grids[] = {{1, 0.025, LADDER_GRID},
                 {10, 0.25, LADDER_GRID},
                 {39, 0.975, LADDER_GRID},
                 {40, 1, "threads"},
                 {400, 1, "threads"}};
    const dpr_gpu_caps gpu = {.sm_count = 10, .max_threads_per_sm = 2048};
    for (size_t i = 0; i < LENGTH(grids); i++) {
        ladder_rung rung = fixture->rungs[FIRST];
        ladder_set_grid(&rung, &gpu, grids[i].blocks);
        EXPECT_EQ_I64(grids[i].blocks, rung.blocks);
        EXPECT_EQ_I64(4, rung.occupancy.blocks_per_sm);
        EXPECT_NEAR_F64(grids[i].fraction, rung.occupancy.fraction, 1e-12);
        EXPECT_EQ_STR(grids[i].limit, rung.occupancy.limit);
    }
    ladder_rung none = {.use = {.threads = 1024}, .occupancy = {.limit = "does not fit"}};
    ladder_set_grid(&none, &gpu, 1);
    EXPECT_EQ_STR("does not fit", none.occupancy.limit);
    EXPECT_NEAR_F64(0, none.occupancy.fraction, 0);
}

LADDER_TEST(why_there_is_no_time) {
    const ladder_rung *refused = &fixture->rungs[REFUSED];
    ladder_rung rung = {.strategy = "atomic.cas", .text = "compare and swap"};
    EXPECT_EQ_STR("is for other types", ladder_why_not(fixture, refused));
    EXPECT_EQ_STR("it was not measured", ladder_why_not(fixture, &rung));
    EXPECT_TRUE(ladder_why_none(fixture) == NULL);
    fixture->bench.ended = "interrupted";
    EXPECT_EQ_STR("interrupted", ladder_why_not(fixture, &rung));
    bench_omission *omission = results_add_omission(&fixture->bench);
    ASSERT_TRUE(omission != NULL);
    omission->at = ladder_case;
    snprintf(omission->why, sizeof omission->why, "no room");
    EXPECT_EQ_STR("no room", ladder_why_not(fixture, &rung));
    EXPECT_EQ_STR("no room", ladder_why_none(fixture));
    EXPECT_EQ_STR("is for other types", ladder_why_not(fixture, refused));
}

/* ---- Reports ---------------------------------------------------------------------------------------------------- */

static int write_ladder(FILE *f, const void *what, report_format format) {
    return ladder_write(f, what, format);
}

LADDER_TEST(table) {
    static const char *const parts[] = {
        "\nRead bandwidth: 4194 GB/s, the best of 9 samples of flat.lastblock, sum of f32 of 1.00 GiB\n\n"
        "2^24 elements (64.0 MiB), sum of i32, calls in a graph, cold cache, 256 threads a block where that can be "
        "chosen:\n"
        "strategy               us  GB/s  of bandwidth  speed-up  blocks  threads  registers  shared bytes  occupancy "
        " "
        "what it changes\n"
        "ladder.neighbored     100   671        16.0 %      1.00      40      512         20          4096    100.0 % "
        " "
        "threads add \"neighbours\", further apart\n"
        "ladder.unroll8     failed     -             -         -      30      512         40          4096     75.0 % "
        " "
        "eight elements\n"
        "flat.lastblock     20.0~*  3355        80.0 %      5.00       -        -          -             -          - "
        " "
        "all SMs read\n",
        "\nWithout a time:\nstrategy   why\ncoop.tile  is for other types\n",
        "2^24 elements: ladder.unroll8 failed: a fault\n", NULL};
    fixture->block = 256;
    fixture->bench.rows[1].state = BENCH_FAILED;
    snprintf(fixture->bench.rows[1].why, sizeof fixture->bench.rows[1].why, "a fault");
    fixture->bench.rows[2].chosen = 1;
    fixture->bench.rows[2].verdict = BENCH_OUT_OF_TIME;
    check_report(write_ladder, fixture, REPORT_TABLE, parts);
}

LADDER_TEST(csv) {
    static const char *const parts[] = {
        "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,share,speedup,"
        "threads,registers,shared_bytes,blocks_per_sm,blocks,occupancy,limited_by,ok,chosen,settled,doubtful,block,"
        "read_gb_per_s,why,text\n",
        "\nladder.neighbored,sum,i32,16777216,graph,cold,9,32,100,100,100,0,671.089,0.16,1,512,20,4096,4,40,1,threads,"
        "1,0,1,0,256,4194.3,,\"threads add \"\"neighbours\"\", further apart\"\n",
        "\nladder.unroll8,sum,i32,16777216,graph,cold,9,32,,,,,,,,512,40,4096,3,30,0.75,registers,0,0,1,0,0,4194.3,"
        "a fault,eight elements\n",
        "\ncoop.tile,sum,i32,16777216,graph,cold,,,,,,,,,,,,,,,,,,,,,,4194.3,is for other types,tiles\n", NULL};
    bench_row *rows = fixture->bench.rows;
    rows[0].block = 256;
    rows[1].state = BENCH_FAILED;
    snprintf(rows[1].why, sizeof rows[1].why, "a fault");
    check_report(write_ladder, fixture, REPORT_CSV, parts);
}

LADDER_TEST(json) {
    fixture->bench.rows[2].wrong = 2;
    cJSON *document = report_json_of(write_ladder, fixture);
    EXPECT_EQ_STR("benchmark,version,commit,device,settings,interrupted,definitions,read_gb_per_s,read,rows,"
                  "without_time,left_out",
                  keys_of(document));
    EXPECT_EQ_STR("graph,stream,blocking,cold,hot,interval,spread,block,read_gb_per_s,share,speedup,threads,"
                  "blocks_per_sm,blocks,occupancy,limited_by",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,chosen,ok,"
                  "settled,doubtful,checked,wrong,late,best_us",
                  keys_of(member_of(document, "read")));
    EXPECT_EQ_STR(
        "strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,chosen,ok,"
        "settled,doubtful,checked,wrong,late,share,speedup,threads,registers,shared_bytes,blocks_per_sm,blocks,"
        "occupancy,limited_by,text",
        keys_of(member_of(document, "rows.1")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,why,text", keys_of(member_of(document, "without_time.0")));
    EXPECT_EQ_I64(3, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_NEAR_F64(4194.3, number_of(document, "read_gb_per_s"), 1e-9);
    EXPECT_NEAR_F64(256, number_of(document, "read.best_us"), 0);
    EXPECT_NEAR_F64(0.4, number_of(document, "rows.1.share"), 0);
    EXPECT_NEAR_F64(2.5, number_of(document, "rows.1.speedup"), 0);
    EXPECT_NEAR_F64(0.75, number_of(document, "rows.1.occupancy"), 0);
    EXPECT_EQ_STR("registers", string_of(document, "rows.1.limited_by"));
    EXPECT_EQ_STR("is for other types", string_of(document, "without_time.0.why"));
    /* Wrong results have no share, and no kernel is known there. */
    EXPECT_TRUE(!member_of(document, "rows.2.share") && !member_of(document, "rows.2.threads"));
    cJSON_Delete(document);
}

/* A reason that all have is said once. */
LADDER_TEST(case_that_was_left_out) {
    static const char *const parts[] = {"\nWithout a time:\nstrategy   why\ncoop.tile  is for other types\n", NULL};
    results_free(&fixture->bench);
    fixture->bench = (bench_results){.device = {.name = "Test device"}, .commit = ""};
    bench_omission *omission = results_add_omission(&fixture->bench);
    ASSERT_TRUE(omission != NULL);
    omission->at = ladder_case;
    snprintf(omission->why, sizeof omission->why, "no room");
    check_report(write_ladder, fixture, REPORT_TABLE, parts);
    char *text = report_text_of(write_ladder, fixture, REPORT_TABLE);
    const char *said = text ? strstr(text, "no room") : NULL;
    EXPECT_TRUE(said && !strstr(said + 1, "no room"));
    free(text);
}

/* The file is written while the measurement goes on, so also before there is anything in it. */
LADDER_TEST(reports_of_nothing) {
    static const char *const parts[] = {"Read bandwidth: unknown\n", "\nladder.neighbored  interrupted\n",
                                        "\ncoop.tile          is for other types\n", NULL};
    results_free(&fixture->bench);
    fixture->bench = (bench_results){.device = {.name = "Test device"}, .commit = "", .ended = "interrupted"};
    check_report(write_ladder, fixture, REPORT_TABLE, parts);
    cJSON *document = report_json_of(write_ladder, fixture);
    EXPECT_TRUE(cJSON_IsNull(member_of(document, "read_gb_per_s")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache", keys_of(member_of(document, "read")));
    EXPECT_EQ_I64(0, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_EQ_I64(RUNGS, cJSON_GetArraySize(member_of(document, "without_time")));
    cJSON_Delete(document);
}
