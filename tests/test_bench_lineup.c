/* The parts of `dpr bench --ladder` and `dpr bench --nested` that need no GPU: what is asked for, the order of
 * strategies, grids, and the reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_caller.h"
#include "bench_lineup.h"
#include "cli.h"
#include "plan/planner.h"
#include "plan/registry.h"
#include "reports.h"
#include "support.h"

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

static axis_ops one_op(dpr_op op) {
    return (axis_ops){.n = 1, .at = {ops_of(op)}};
}

static int is_only(const bench_ops *ops, dpr_op op) {
    return ops->n == 1 && ops->at[0] == op;
}

TEST(BenchLineup, defaults) {
    for (int nested = 0; nested < 2; nested++) {
        bench_asked a = {.device = DPR_DEVICE_AUTO, .nested = nested, .ladder = !nested};
        ASSERT_EQ_I64(CLI_OK, lineup_complete(&a));
        ASSERT_EQ_I64(1 + nested, a.counts.n);
        EXPECT_EQ_U64(1 << 24, a.counts.at[nested]);
        ASSERT_EQ_I64(1, a.ops.n);
        EXPECT_TRUE(is_only(&a.ops.at[0], DPR_SUM));
        EXPECT_EQ_U64(axis_one(DPR_ROW(DPR_I32)), a.dtypes);
        EXPECT_EQ_U64(axis_one(BENCH_GRAPH), a.modes);
        EXPECT_EQ_U64(axis_one(BENCH_COLD), a.caches);
        ASSERT_EQ_I64(5, a.pools.n);
        EXPECT_TRUE(a.pools.at[0] == 64 && a.pools.at[4] == 65536);
    }
}

TEST(BenchLineup, what_is_asked_for_stays) {
    for (int nested = 0; nested < 2; nested++) {
        bench_asked a = {.counts = {.n = 1, .at = {1000}}, .pools = {.n = 1, .at = {777}}, .depth = 3};
        a.nested = nested;
        a.ops = one_op(DPR_MAX);
        a.dtypes = axis_one(DPR_ROW(DPR_F32));
        ASSERT_EQ_I64(CLI_OK, lineup_complete(&a));
        EXPECT_TRUE(a.counts.n == 1 && a.counts.at[0] == 1000);
        EXPECT_TRUE(a.ops.n == 1 && is_only(&a.ops.at[0], DPR_MAX) && a.dtypes == axis_one(DPR_ROW(DPR_F32)));
        EXPECT_TRUE(a.pools.n == 1 && a.pools.at[0] == 777 && a.depth == 3);
    }
}

static void check_refused(bench_asked a, const char *what) {
    EXPECT_THAT(lineup_complete(&a) == CLI_USAGE, "%s was taken", what);
}

TEST(BenchLineup, what_it_does_not_have_is_refused) {
    for (int nested = 0; nested < 2; nested++) {
        const bench_asked good = {.device = DPR_DEVICE_AUTO, .nested = nested, .ladder = !nested};
        bench_asked a;
        a = good, a.ladder = a.nested = 1, check_refused(a, "both");
        a = good, a.device = DPR_DEVICE_CPU, check_refused(a, "the CPU");
        a = good, a.modes = axis_one(BENCH_BLOCKING), check_refused(a, "a mode");
        a = good, a.caches = axis_one(BENCH_COLD) | axis_one(BENCH_HOT), check_refused(a, "a cache");
        a = good, a.strategies = 1, check_refused(a, "a strategy");
        a = good, a.counts.n = LINEUP_SIZES + 1, check_refused(a, "many sizes");
        a = good, a.ops = one_op(DPR_SUM), a.ops.n = 2, check_refused(a, "two operations");
        a = good, a.ops = one_op(DPR_SUM), a.ops.at[0].n = 2, check_refused(a, "a set of operations");
        a = good, a.dtypes = axis_one(DPR_ROW(DPR_I32)) | axis_one(DPR_ROW(DPR_I8)), check_refused(a, "two types");
        a = good, a.ops = one_op(DPR_BAND), a.dtypes = axis_one(DPR_ROW(DPR_F32)), check_refused(a, "no pair");
        a = good;
        EXPECT_EQ_I64(CLI_OK, lineup_complete(&a));
    }
}

TEST(BenchLineup, pools) {
    static const char *const bad[] = {"", "64,", ",64", "15", "2^25", "x", "64;128", "-64", "64 "};
    axis_counts pools;
    ASSERT_EQ_I64(CLI_OK, asked_take_pools("2048,64,2^16", &pools));
    ASSERT_EQ_I64(3, pools.n);
    EXPECT_TRUE(pools.at[0] == 64 && pools.at[1] == 2048 && pools.at[2] == 65536);
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_THAT(asked_take_pools(bad[i], &pools) == CLI_USAGE, "'%s' was taken", bad[i]);
    EXPECT_EQ_I64(CLI_OK, asked_take_pools("16:31:+1", &pools));
    EXPECT_EQ_I64(ASKED_POOLS, pools.n);
    EXPECT_EQ_I64(CLI_USAGE, asked_take_pools("16:32:+1", &pools));
}

/* Whether the library plans with this depth. */
static int takes_depth(const dpr_machine *machine, int depth) {
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_decision *decision = NULL;
    launch.max_depth = depth;
    options.launch = &launch;
    problem.op = DPR_SUM;
    problem.dtype = DPR_I32;
    problem.options = &options;
    const dpr_status status = dpr_decision_create(machine, &problem, &decision);
    dpr_decision_destroy(decision);
    return status == DPR_OK;
}

TEST(BenchLineup, depths_are_those_that_the_library_takes) {
    dpr_machine *machine = NULL;
    char text[16];
    int taken = 0, most = 0;
    ASSERT_STATUS(DPR_OK, dpr_machine_read(DPR_DEVICE_CPU, 0, &machine));
    for (int depth = 1; depth <= 64; depth++) {
        snprintf(text, sizeof text, "%d", depth);
        EXPECT_EQ_I64(takes_depth(machine, depth) ? CLI_OK : CLI_USAGE, cli_depth(text, &taken));
        most = takes_depth(machine, depth) ? depth : most;
    }
    EXPECT_TRUE(most > 0 && most < 64);
    EXPECT_EQ_I64(most, taken);
    dpr_machine_destroy(machine);
}

TEST(BenchLineup, depths) {
    static const char *const bad[] = {"0", "", "x", "-1", "1.5", "2^40"};
    int taken = 0;
    EXPECT_EQ_I64(CLI_OK, cli_depth("12", &taken));
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_THAT(cli_depth(bad[i], &taken) == CLI_USAGE, "'%s' was taken", bad[i]);
    EXPECT_EQ_I64(12, taken);
}

TEST(BenchLineup, block_sizes) {
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
TEST(BenchLineup, block_sizes_of_calls) {
    const bench_case at = {.ops = {1, {DPR_SUM}}, .dtype = DPR_I32, .count = 100};
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        bench_caller c = caller_at(NULL, &at, dpr_strategy_name(i));
        EXPECT_EQ_I64(0, c.launch.block);
        caller_set_block(&c, 64);
        EXPECT_EQ_I64(dpr_strategies[i]->takes_block ? 64 : 0, c.launch.block);
    }
}

/* ---- Order ------------------------------------------------------------------------------------------------------ */

static int rank(const char *name) {
    static const char *const families[] = {"ladder.", "atomic.", "coop.", "flat.", "dp."};
    for (int i = 0; i < (int)LENGTH(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return i;
    return LENGTH(families);
}

/* All of a GPU, in the order of teaching; those that launch kernels apart. */
TEST(BenchLineup, order) {
    for (int nested = 0; nested < 2; nested++) {
        lineup_strategy order[BENCH_SUBJECTS];
        const int n = lineup_order(nested, order);
        int wanted = 0;
        for (size_t i = 0; i < dpr_strategy_count(); i++)
            wanted += dpr_strategies[i]->side == DPR_ON_GPU && (dpr_strategies[i]->role == DPR_ROLE_NESTED) == nested
                      && !dpr_strategies[i]->segmented && !dpr_strategies[i]->strided;
        EXPECT_EQ_I64(wanted, n);
        for (int i = 0; i < n; i++) {
            const dpr_strategy *s = dpr_strategies[dpr_strategy_find(order[i].name)];
            EXPECT_TRUE(s->side == DPR_ON_GPU && (s->role == DPR_ROLE_NESTED) == nested);
        }
        for (int i = 1; i < n; i++) {
            const int before = rank(order[i - 1].name), after = rank(order[i].name);
            EXPECT_THAT(
                before < after
                    || (before == after && dpr_strategy_find(order[i - 1].name) < dpr_strategy_find(order[i].name)),
                "%s comes before %s", order[i - 1].name, order[i].name);
        }
    }
}

/* ---- Grids ------------------------------------------------------------------------------------------------------ */

/* Four blocks of 512 threads fill each of ten SMs. */
TEST(BenchLineup, occupancy_of_grids) {
    static const struct {
        int blocks;
        double fraction;
        const char *limit;
    } grids[] = {{1, 0.025, LADDER_GRID},
                 {10, 0.25, LADDER_GRID},
                 {39, 0.975, LADDER_GRID},
                 {40, 1, "threads"},
                 {400, 1, "threads"}};
    const dpr_machine machine = {.caps = {.has_gpu = 1, .gpu = {.sm_count = 10, .max_threads_per_sm = 2048}}};
    for (size_t i = 0; i < LENGTH(grids); i++) {
        bench_kernels got = {.info = {.threads = 512, .blocks_per_sm = 4, .occupancy = 1, .limit = "threads"}};
        lineup_set_grid(&got, &machine, grids[i].blocks);
        EXPECT_EQ_I64(grids[i].blocks, got.blocks);
        EXPECT_EQ_I64(4, got.info.blocks_per_sm);
        EXPECT_NEAR_F64(grids[i].fraction, got.info.occupancy, 1e-12);
        EXPECT_EQ_STR(grids[i].limit, got.info.limit);
    }
    bench_kernels none = {.info = {.threads = 1024, .limit = "does not fit"}};
    lineup_set_grid(&none, &machine, 1);
    EXPECT_EQ_STR("does not fit", none.info.limit);
    EXPECT_NEAR_F64(0, none.info.occupancy, 0);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static const bench_case large = {.ops = {1, {DPR_SUM}}, .dtype = DPR_I32, .count = 1 << 24};

static void set_heads(lineup_results *l) {
    l->bench.device = (bench_device){.ordinal = 0, .name = "Test device"};
    l->bench.commit = "abc123";
    l->bench.rule.half_width = 0.01;
}

static void add_row(lineup_results *l, bench_case at, const char *strategy, double us, double least) {
    bench_row *row = results_add_row(&l->bench);
    ASSERT_TRUE(row != NULL);
    *row = (bench_row){.at = at,
                       .subject = strategy,
                       .strategy = strategy,
                       .us = {.n = 9, .median = us, .least = least, .low = us, .high = us},
                       .gb_per_s = (double)at.count * 4 / us * 1e-3,
                       .calls = 32,
                       .verdict = BENCH_SETTLED,
                       .checked = 288};
}

/* The strategy cannot run the case. */
static void refuse(lineup_results *l, bench_case at, const char *strategy, const char *why) {
    add_row(l, at, strategy, 1, 1);
    bench_row *row = &l->bench.rows[l->bench.row_count - 1];
    row->state = BENCH_REFUSED;
    snprintf(row->why, sizeof row->why, "%s", why);
}

static void leave_out(lineup_results *l, bench_case at) {
    results_free(&l->bench);
    set_heads(l);
    bench_omission *omission = results_add_omission(&l->bench);
    ASSERT_TRUE(omission != NULL);
    omission->at = at;
    snprintf(omission->why, sizeof omission->why, "no room");
}

static int write_lineup(FILE *f, const void *what, report_format format) {
    return lineup_write(f, what, format);
}

/* What all have in common is said once. */
static void check_said_once(const lineup_results *l, const char *what) {
    char *text = report_text_of(write_lineup, l, REPORT_TABLE);
    const char *said = text ? strstr(text, what) : NULL;
    EXPECT_TRUE(said && !strstr(said + 1, what));
    free(text);
}

static void tear_down(void *state) {
    results_free(&((lineup_results *)state)->bench);
}

/* ---- The ladder ------------------------------------------------------------------------------------------------- */

enum { FIRST, SECOND, FLAT, REFUSED, RUNGS };

static const lineup_strategy rungs[RUNGS] = {
    [FIRST] = {.name = LADDER_FIRST, .text = "threads add \"neighbours\", further apart"},
    [SECOND] = {.name = "ladder.unroll8", .text = "eight elements"},
    [FLAT] = {.name = LADDER_READER, .text = "all SMs read"},
    [REFUSED] = {.name = "coop.tile", .text = "tiles"}};

/* Three rungs of 100, 40 and 20 us, and one that cannot run. The device reads 1 GiB in 256 us, at best. */
static void set_up_ladder(void *state) {
    lineup_results *l = state;
    set_heads(l);
    l->sizes = 1;
    l->at[0] = large;
    l->read = (bench_case){.ops = {1, {DPR_SUM}}, .dtype = DPR_F32, .count = 1 << 28};
    l->n = RUNGS;
    for (int i = 0; i < RUNGS; i++)
        l->strategies[i] = rungs[i];
    add_row(l, large, LADDER_FIRST, 100, 99);
    add_row(l, large, "ladder.unroll8", 40, 39);
    add_row(l, large, LADDER_READER, 20, 19);
    add_row(l, l->read, LADDER_READER, 320, 256);
    refuse(l, large, "coop.tile", "is for other types");
    l->bench.rows[FLAT].chosen = 1;
    l->bench.rows[FIRST].kernels = (bench_kernels){.blocks = 40,
                                                   .info = {.threads = 512,
                                                            .registers = 20,
                                                            .shared_bytes = 4096,
                                                            .blocks_per_sm = 4,
                                                            .occupancy = 1,
                                                            .limit = "threads"}};
    l->bench.rows[SECOND].kernels = (bench_kernels){.blocks = 30,
                                                    .info = {.threads = 512,
                                                             .registers = 40,
                                                             .shared_bytes = 4096,
                                                             .blocks_per_sm = 3,
                                                             .occupancy = 0.75,
                                                             .limit = "registers"}};
}

#define LADDER_TEST(NAME) TEST_FIXTURE(BenchLadder, NAME, lineup_results, set_up_ladder, tear_down)

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
        "\nWithout a time:\nstrategy   elements  why\ncoop.tile      2^24  is for other types\n",
        "2^24 elements: ladder.unroll8 failed: a fault\n", NULL};
    fixture->block = 256;
    fixture->bench.rows[SECOND].state = BENCH_FAILED;
    snprintf(fixture->bench.rows[SECOND].why, sizeof fixture->bench.rows[SECOND].why, "a fault");
    fixture->bench.rows[FLAT].verdict = BENCH_OUT_OF_TIME;
    check_report(write_lineup, fixture, REPORT_TABLE, parts);
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
    rows[FIRST].block = 256;
    rows[SECOND].state = BENCH_FAILED;
    snprintf(rows[SECOND].why, sizeof rows[SECOND].why, "a fault");
    check_report(write_lineup, fixture, REPORT_CSV, parts);
}

LADDER_TEST(json) {
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("benchmark,version,commit,device,settings,interrupted,definitions,read_gb_per_s,read,rows,"
                  "without_time,left_out",
                  keys_of(document));
    EXPECT_EQ_STR(DEFINITION_KEYS
                  ",read_gb_per_s,share,speedup,ratio,threads,blocks_per_sm,blocks,occupancy,limited_by",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache," FIGURE_KEYS ",best_us", keys_of(member_of(document, "read")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache," FIGURE_KEYS
                  ",share,speedup,ratio,threads,registers,shared_bytes,blocks_per_sm,blocks,occupancy,limited_by,text",
                  keys_of(member_of(document, "rows.1")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,why,text", keys_of(member_of(document, "without_time.0")));
    EXPECT_EQ_I64(3, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_NEAR_F64(4194.3, number_of(document, "read_gb_per_s"), 1e-9);
    EXPECT_NEAR_F64(256, number_of(document, "read.best_us"), 0);
    EXPECT_NEAR_F64(0.4, number_of(document, "rows.1.share"), 0);
    EXPECT_NEAR_F64(2.5, number_of(document, "rows.1.speedup"), 0);
    EXPECT_NEAR_F64(2, number_of(document, "rows.1.ratio"), 0);
    EXPECT_NEAR_F64(0.75, number_of(document, "rows.1.occupancy"), 0);
    EXPECT_EQ_STR("registers", string_of(document, "rows.1.limited_by"));
    EXPECT_EQ_STR("is for other types", string_of(document, "without_time.0.why"));
    EXPECT_TRUE(!member_of(document, "rows.2.threads"));
    cJSON_Delete(document);
}

/* Which of the members that compare a row with others it has. */
static const char *compared(const cJSON *document, int row) {
    static const char *const keys[] = {"share", "speedup", "ratio"};
    static char text[32];
    char path[32];
    text[0] = 0;
    for (size_t i = 0; i < LENGTH(keys); i++) {
        snprintf(path, sizeof path, "rows.%d.%s", row, keys[i]);
        strcat(text, member_of(document, path) ? keys[i] : "-");
        strcat(text, i + 1 < LENGTH(keys) ? " " : "");
    }
    return text;
}

LADDER_TEST(wrong_results_are_compared_with_nothing) {
    bench_row *rows = fixture->bench.rows;
    rows[SECOND].wrong = 1;
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("share speedup ratio", compared(document, FIRST));
    EXPECT_EQ_STR("- - -", compared(document, SECOND));
    EXPECT_EQ_STR("share speedup ratio", compared(document, FLAT));
    cJSON_Delete(document);
    rows[SECOND].wrong = 0;
    rows[FIRST].state = BENCH_FAILED;
    document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("share - ratio", compared(document, SECOND));
    cJSON_Delete(document);
    rows[RUNGS - 1].wrong = 1; /* the reader */
    document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("- - ratio", compared(document, SECOND));
    EXPECT_TRUE(cJSON_IsNull(member_of(document, "read_gb_per_s")));
    cJSON_Delete(document);
}

/* The array of the ladder may be that of the bandwidth. */
LADDER_TEST(one_case_for_both) {
    fixture->read = fixture->at[0];
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_NEAR_F64(3532.05, number_of(document, "read_gb_per_s"), 1e-9); /* 64 MiB in 19 us */
    cJSON_Delete(document);
}

LADDER_TEST(case_that_was_left_out) {
    static const char *const parts[] = {
        "\nWithout a time:\nstrategy   elements  why\ncoop.tile      2^24  is for other types\n", NULL};
    leave_out(fixture, large);
    refuse(fixture, large, "coop.tile", "is for other types");
    check_report(write_lineup, fixture, REPORT_TABLE, parts);
    check_said_once(fixture, "no room");
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("no room", string_of(document, "without_time.0.why"));
    EXPECT_EQ_STR("is for other types", string_of(document, "without_time.3.why"));
    cJSON_Delete(document);
}

/* The file is written while the measurement goes on, so also before there is anything in it. */
LADDER_TEST(reports_of_nothing) {
    static const char *const parts[] = {"Read bandwidth: unknown\n", "\nladder.neighbored      2^24  interrupted\n",
                                        "\ncoop.tile              2^24  interrupted\n", NULL};
    results_free(&fixture->bench);
    set_heads(fixture);
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("it was not measured", string_of(document, "without_time.0.why"));
    EXPECT_TRUE(cJSON_IsNull(member_of(document, "read_gb_per_s")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache", keys_of(member_of(document, "read")));
    EXPECT_EQ_I64(0, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_EQ_I64(RUNGS, cJSON_GetArraySize(member_of(document, "without_time")));
    cJSON_Delete(document);
    fixture->bench.ended = "interrupted";
    check_report(write_lineup, fixture, REPORT_TABLE, parts);
}

/* ---- Nested launches -------------------------------------------------------------------------------------------- */

enum { TREE, BOOK, OTHER, STRATEGIES };

static const lineup_strategy strategies[STRATEGIES] = {[TREE] = {.name = "dp.tree", .text = "leaves, then \"nodes\""},
                                                       [BOOK] = {.name = "dp.book", .text = "halves"},
                                                       [OTHER] = {.name = "dp.other", .text = "for other types"}};

static const char some_launches[] =
    "{\"pending\":2048,\"loaded_bytes\":2097152,\"reserved_bytes\":102760448,\"device_bytes\":104857600,"
    "\"length\":72,\"fan\":[64,8],\"launches\":["
    "{\"pending\":2048,\"device_bytes\":104857600,\"launch\":\"empty\",\"samples\":20,\"median_us\":1.25,"
    "\"low_us\":1.2,\"high_us\":1.3,\"spread\":0.05,\"settled\":false,\"text\":\"a kernel that does nothing\"},"
    "{\"pending\":2048,\"device_bytes\":104857600,\"launch\":\"device_graph\",\"why\":\"making a graph that "
    "\\\"kernels\\\" can launch: no\",\"text\":\"a graph\"}]}";
static const char some_pool[] =
    "{\"pending\":64,\"launches\":[{\"pending\":64,\"device_bytes\":104857600,\"launch\":\"chain.tail\",\"samples\":9,"
    "\"median_us\":11.25,\"low_us\":11,\"high_us\":12,\"spread\":0.02,\"settled\":true,\"text\":\"a level\"}]}";

/* Two sizes, at which one strategy cannot run; launches; two pools, of which one was refused. */
static void set_up_nested(void *state) {
    lineup_results *l = state;
    set_heads(l);
    l->nested = 1;
    l->sizes = 2;
    l->at[0] = l->at[1] = large;
    l->at[0].count = 1 << 20;
    l->n = STRATEGIES;
    for (int i = 0; i < STRATEGIES; i++)
        l->strategies[i] = strategies[i];
    for (int size = 0; size < 2; size++) {
        add_row(l, l->at[size], "flat.lastblock", size ? 20 : 4, 1);
        l->bench.rows[l->bench.row_count - 1].chosen = 1;
        add_row(l, l->at[size], "dp.tree", size ? 50 : 30, 1);
        add_row(l, l->at[size], "dp.book", size ? 80000 : 6000, 1);
        refuse(l, l->at[size], "dp.other", "it is for other types");
        bench_row *rows = &l->bench.rows[4 * size];
        rows[1].kernels = (bench_kernels){.has_nested = 1, .nested = {.launched = 1, .deepest = 1}};
        rows[2].kernels =
            (bench_kernels){.has_nested = 1, .nested = {.launched = 900, .refused = 77, .in_line = 78, .deepest = 8}};
    }
    l->parts = 3;
    snprintf(l->part[0].line, sizeof l->part[0].line, "%s", some_launches);
    l->part[1].asked = 64;
    snprintf(l->part[1].line, sizeof l->part[1].line, "%s", some_pool);
    l->part[2] = (lineup_part){.asked = 65536, .why = "its process ended with signal 9"};
}

#define NESTED_TEST(NAME) TEST_FIXTURE(BenchNested, NAME, lineup_results, set_up_nested, tear_down)

NESTED_TEST(tables) {
    static const char *const parts[] = {
        "\nPool of pending launches: 2048; 100 MiB of device memory once a kernel has launched one\n\nLaunches:\n"
        "launch           us  spread  what it is                  why not\n"
        "empty         1.25~   5.0 %  a kernel that does nothing  -\n"
        "device_graph      -       -  a graph                     making a graph that \"kernels\" can launch: no\n",
        "\nTail launches with other pools:\n"
        "asked  pending  device memory    us  spread  why not\n"
        "   64       64        100 MiB  11.2   2.0 %  -\n"
        "65536        -              -     -       -  its process ended with signal 9\n",
        "\n2^20 elements (4.00 MiB), sum of i32, calls in a graph, cold cache, 64 threads a block where that can be "
        "chosen, "
        "at most 4 launches below each other:\n"
        "strategy            us  ratio  launched  refused  failed  in line  deepest  how\n"
        "flat.lastblock   4.00*   1.00         -        -       -        -        -  the planner's choice\n"
        "dp.tree          30.0!      -         1        0       1        0        1  leaves, then \"nodes\"\n"
        "dp.book         failed      -         -        -       -        -        -  halves\n"
        "\ndp.tree: kernels made 1 launch, the deepest at depth 1; 0 were refused; 1 failed, the first with "
        "cudaError_t 69 in "
        "block 5 at depth 2; 0 sub-trees were done in line",
        "\n2^24 elements (64.0 MiB), ",
        "\nWithout a time:\n"
        "strategy  elements  why\n"
        "dp.other      2^20  it is for other types\n",
        "2^20 elements: dp.tree gave 3 WRONG results of 288\n",
        "2^20 elements: dp.book failed: some fault\n",
        NULL};
    bench_row *rows = fixture->bench.rows;
    dpr_launch_report *nested = &rows[1].kernels.nested;
    fixture->block = 64;
    fixture->depth = 4;
    rows[1].wrong = 3;
    nested->failed = 1;
    nested->error = 69;
    nested->error_block = 5;
    nested->error_depth = 2;
    rows[2].state = BENCH_FAILED;
    snprintf(rows[2].why, sizeof rows[2].why, "some fault");
    rows[2].kernels.has_nested = 0;
    check_report(write_lineup, fixture, REPORT_TABLE, parts);
}

NESTED_TEST(csv) {
    static const char *const parts[] = {
        "launch,asked,pending,device_bytes,strategy,op,dtype,count,mode,cache,samples,median_us,low_us,high_us,spread,"
        "ratio,launched,refused,failed,in_line,deepest,error,ok,chosen,settled,doubtful,block,depth,why,text\n",
        "\nempty,,2048,104857600,,,,,,,20,1.25,1.2,1.3,0.05,,,,,,,,,,0,,,,,a kernel that does nothing\n",
        "\ndevice_graph,,2048,104857600,,,,,,,,,,,,,,,,,,,,,,,,,\"making a graph that \"\"kernels\"\" can ",
        "\nchain.tail,64,64,104857600,,,,,,,9,11.25,11,12,0.02,,,,,,,,,,1,,,,,a level\n",
        "\nall,65536,,,,,,,,,,,,,,,,,,,,,,,,,,,its process ended with signal 9,\n",
        "\n,,,,dp.tree,sum,i32,16777216,graph,cold,9,50,50,50,0,2.5,1,0,0,0,1,,1,0,1,0,0,4,,\"leaves, then "
        "\"\"nodes\"\"\"\n",
        "\n,,,,dp.other,sum,i32,16777216,graph,cold,,,,,,,,,,,,,,,,,,4,it is for other types,for other types\n",
        NULL};
    fixture->depth = 4;
    check_report(write_lineup, fixture, REPORT_CSV, parts);
}

NESTED_TEST(json) {
    fixture->bench.rows[1].kernels.nested.failed = 1;
    fixture->depth = 4;
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR(
        "benchmark,version,commit,device,settings,interrupted,definitions,pending,loaded_bytes,reserved_bytes,"
        "device_bytes,length,fan,launches,pools,rows,without_time,left_out",
        keys_of(document));
    EXPECT_EQ_STR(DEFINITION_KEYS ",pending,launches,pools,length,fan,loaded_bytes,reserved_bytes,ratio,nested,depth",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("pending,device_bytes,launch,samples,median_us,low_us,high_us,spread,settled,text",
                  keys_of(member_of(document, "launches.0")));
    EXPECT_EQ_STR("pending,device_bytes,launch,why,text", keys_of(member_of(document, "launches.1")));
    EXPECT_EQ_STR("pending,device_bytes,launch,samples,median_us,low_us,high_us,spread,settled,text,asked",
                  keys_of(member_of(document, "pools.0")));
    EXPECT_EQ_STR("launch,why,asked", keys_of(member_of(document, "pools.1")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache," FIGURE_KEYS ",ratio,nested,depth,text",
                  keys_of(member_of(document, "rows.1")));
    EXPECT_EQ_STR("launched,refused,failed,in_line,deepest,error,error_depth,error_block",
                  keys_of(member_of(document, "rows.1.nested")));
    EXPECT_EQ_STR("launched,refused,failed,in_line,deepest", keys_of(member_of(document, "rows.2.nested")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,why,depth,text", keys_of(member_of(document, "without_time.0")));
    EXPECT_TRUE(!member_of(document, "rows.0.nested") && !member_of(document, "rows.0.depth"));
    EXPECT_EQ_I64(6, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_TRUE(number_of(document, "pending") == 2048 && number_of(document, "reserved_bytes") == 98 << 20);
    EXPECT_TRUE(number_of(document, "fan.0") == 64 && number_of(document, "fan.1") == 8);
    EXPECT_NEAR_F64(1.25, number_of(document, "launches.0.median_us"), 0);
    EXPECT_NEAR_F64(11.25, number_of(document, "pools.0.median_us"), 0);
    EXPECT_NEAR_F64(64, number_of(document, "pools.0.asked"), 0);
    EXPECT_NEAR_F64(1500, number_of(document, "rows.2.ratio"), 0);
    EXPECT_TRUE(number_of(document, "rows.2.nested.launched") == 900
                && number_of(document, "rows.2.nested.in_line") == 78);
    EXPECT_EQ_STR("it is for other types", string_of(document, "without_time.1.why"));
    EXPECT_TRUE(number_of(document, "without_time.1.count") == 1 << 24);
    cJSON_Delete(document);
}

/* Of another program, or of another version. */
NESTED_TEST(lines_that_make_no_sense) {
    static const char *const lines[] = {"dpr",
                                        "{",
                                        "{}",
                                        "[]",
                                        "3",
                                        "{\"launches\": 3}",
                                        "{\"launches\": [3]}",
                                        "{\"launches\": [{\"median_us\": \"x\"}]}"};
    for (size_t i = 0; i < LENGTH(lines); i++) {
        snprintf(fixture->part[0].line, sizeof fixture->part[0].line, "%s", lines[i]);
        snprintf(fixture->part[1].line, sizeof fixture->part[1].line, "%s", lines[i]);
        free(report_text_of(write_lineup, fixture, REPORT_TABLE));
        cJSON *document = report_json_of(write_lineup, fixture);
        EXPECT_THAT(cJSON_IsArray(member_of(document, "launches")), "%s", lines[i]);
        cJSON_Delete(document);
    }
}

NESTED_TEST(case_that_was_left_out) {
    leave_out(fixture, fixture->at[0]);
    check_said_once(fixture, "no room");
}

NESTED_TEST(reports_of_nothing) {
    static const char *const parts[] = {
        "\nLaunches:\nlaunch  us  spread  what it is  why not\nall      -       -  -           not yet\n",
        "\n   64        -              -   -       -  not yet\n", "\ndp.tree       2^20  interrupted\n", NULL};
    results_free(&fixture->bench);
    set_heads(fixture);
    fixture->bench.ended = "interrupted";
    fixture->part[0].line[0] = fixture->part[1].line[0] = 0;
    check_report(write_lineup, fixture, REPORT_TABLE, parts);
    cJSON *document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("not yet", string_of(document, "launches.0.why"));
    EXPECT_EQ_I64(0, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_EQ_I64(2, cJSON_GetArraySize(member_of(document, "pools")));
    EXPECT_EQ_I64(2 * STRATEGIES, cJSON_GetArraySize(member_of(document, "without_time")));
    cJSON_Delete(document);
    fixture->bench.interrupted = 1;
    document = report_json_of(write_lineup, fixture);
    EXPECT_EQ_STR("interrupted", string_of(document, "launches.0.why"));
    cJSON_Delete(document);
}
