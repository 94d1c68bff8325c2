#include <stdio.h>
#include <string.h>

#include "bench_ladder.h"
#include "bench_nested.h"
#include "bench_report.h"
#include "bench_run.h"
#include "commands.h"
#include "dpr_commit.h"
#include "plan/registry.h"
#include "tables.h"

#define BENCH_OPTIONS(X)                                                                                               \
    X(NUMBER, 'n', "count", "N,...",                                                                                   \
      "numbers of elements, and ranges of them: 2^10:2^30:x4,\n1000:5000:+1000 (default: from 2^10 by factors of 4)")  \
    X(OP, 'o', "op", "OP,...", "operations, or 'all' (default: sum)")                                                  \
    X(DTYPE, 't', "dtype", "TYPE,...", "types of the elements, or 'all' (default: f32)")                               \
    X(LADDER, 0, "ladder", NULL,                                                                                       \
      "all strategies of the GPU but dp.* at one size, in the\norder of teaching (default: sum of i32, 2^24 "          \
      "elements)")                                                                                                     \
    X(NESTED, 0, "nested", NULL,                                                                                       \
      "what launches from kernels cost, and strategies that make\nthem (default: sum of i32, 2^20 and 2^24 elements)") \
    X(MODE, 'm', "mode", "MODE,...",                                                                                   \
      "graph, stream, blocking, or 'all'\n(default: graph on a GPU; the CPU has blocking alone)")                      \
    X(CACHE, 'c', "cache", "CACHE", "cold (default), hot, or both")                                                    \
    X(STRATEGY, 's', "strategy", "NAME,...",                                                                           \
      "strategies, families such as 'flat.*', or 'all' that can\n"                                                     \
      "(default: all but dp.* and demonstrations, which are\nbelow). The planner's choice comes along")                \
    X(DEVICE, 'd', "device", "DEVICE", "auto (default), cpu, or a GPU's number")                                       \
    X(BLOCK, 0, "block", "N", "threads a block, at most, of demonstrations: 32, 64, ...\nor 1024 (default: 512)")      \
    X(POOLS, 0, "pools", "N,...",                                                                                      \
      "with --nested: sizes of the pool of pending launches\n(default: 64,512,2048,4096,65536)")                       \
    X(DEPTH, 0, "depth", "N",                                                                                          \
      "with --nested: launches below each other, at most\n(default: as many as the GPU takes)")                        \
    X(BUDGET, 'b', "budget", "TIME", "for all together: 60s, 5m, 1h (default: 60s)")                                   \
    X(ACCURACY, 'a', "accuracy", "SHARE", "how certain medians shall be (default: 1%)")                                \
    X(FORMAT, 'f', "format", "FORMAT",                                                                                 \
      "table, csv, json or markdown (default: as FILE ends:\n.csv, .json, .md; else table)")                           \
    X(OUTPUT, 'O', "output", "FILE", "write there, and not to standard output")                                        \
    X(COMMIT, 0, "commit", "TEXT", "what JSON names as the commit\n(default: the one that was built)")                 \
    X(QUIET, 'q', "quiet", NULL, "no live line and no notes")                                                          \
    X(HELP, 'h', "help", NULL, "this text")

enum { BENCH_OPTIONS(CLI_OPTION_ENUM) OPTION_COUNT };
static const cli_option options[] = {BENCH_OPTIONS(CLI_OPTION_ENTRY)};

/* Strategies that let their block size be chosen. */
static void print_demonstrations(void) {
    const char *before = "\nDemonstrations, to learn from, which let their block size be chosen (--block):";
    int column = 120;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const int width = (int)strlen(dpr_strategies[i]->name) + 2;
        if (!dpr_strategies[i]->block_sizes)
            continue;
        printf("%s%s%s", before, column + width > 110 ? "\n  " : " ", dpr_strategies[i]->name);
        column = column + width > 110 ? width : column + width;
        before = ",";
    }
    fputs(column < 120 ? "\n" : "", stdout);
}

static void print_help(void) {
    puts("Usage: dpr bench [OPTION]...\n"
         "Measures strategies on this machine, for every combination of the options' lists, checks every result, and\n"
         "shows the quickest and how far the planner's choice is from it.\n"
         "\n"
         "Examples:\n"
         "  dpr bench                                    sum of f32, all strategies but demonstrations\n"
         "  dpr bench -d cpu -n 2^10:2^22:x4 -b 5s       on the CPU, for five seconds\n"
         "  dpr bench -o sum,max,argmax -t f32,i32,u8 -m graph,blocking -b 10m -O h200.json\n"
         "  dpr bench -s 'flat.*' -n 2^13:2^23:x2 -c both > flat.txt\n"
         "  dpr bench --ladder                           what each way to reduce is worth on this GPU\n"
         "  dpr bench --ladder -n 2^28 --block 256 -O ladder.md\n"
         "  dpr bench --nested                           what launches from kernels cost on this GPU\n"
         "  dpr bench --nested -n 2^22 --pools 2048,8192 --depth 4\n"
         "\n"
         "Options:");
    cli_print_options(options, OPTION_COUNT);
    tables_print_ops();
    tables_print_dtypes();
    tables_print_strategies(1);
    print_demonstrations();
    puts(
        "\n"
        "Modes, that is what the time of a call is:\n"
        "  graph      many calls captured in a CUDA graph: one replay between two events, over the calls\n"
        "  stream     many calls into an idle stream until the last has completed, by the host's clock, over the "
        "calls\n"
        "  blocking   calls that return with the result in host memory, one after another, by the host's clock\n"
        "\n"
        "Caches: 'cold' calls read memory that is in no cache: L2 (on the CPU: the last-level caches) is filled with\n"
        "other data first, and every call reads another buffer. 'hot' calls all read the same buffer, and sizes that\n"
        "do not stay in the cache are left out.\n"
        "\n"
        "Strategies take turns on the same buffers. Sampling of a combination ends when the median's 95 % confidence\n"
        "interval is within the accuracy, or when its share of the budget is spent, but not before a few samples.\n"
        "Everything ends when the whole budget is spent. Making the data counts, and takes longer than reading it on\n"
        "the CPU. A message names what is left out for lack of time or memory. Results that are wrong are shown, and\n"
        "so are times taken while a fixed piece of work ran slower than before (a falling clock, another program).\n"
        "\n"
        "The ladder is measured in a graph with a cold cache. Its table has, for each strategy:\n"
        "  us, GB/s                 median time of a call, and bytes of the array over it\n"
        "  of bandwidth             that rate over the device's bandwidth, which is the rate of the best single sample "
        "of a\n"
        "                           sum of f32 by " LADDER_READER
        " over 1 GiB (less where memory is short) in the same "
        "run:\n"
        "                           a median can come to more than 100 %\n"
        "  speed-up                 time of the first rung, " LADDER_FIRST ", over this one\n"
        "  blocks                   launched at most, on the whole device\n"
        "  threads                  threads a block, at most\n"
        "  registers, shared bytes  of a thread; of a block\n"
        "  occupancy                share of all SMs' threads that the launched blocks have at most at a time, by\n"
        "                           calculation\n"
        "  what it changes          of a rung: beside the one before\n"
        "\n"
        "--nested has three kinds of tables:\n"
        "  launches    microseconds of one launch: of kernels by the host, in graphs and by kernels (in chains, and\n"
        "              many at once), and of graphs by kernels. Each is the difference of the times of more launches\n"
        "              and of fewer\n"
        "  pools       the same of a tail launch where other numbers of launches may be pending, each in a process\n"
        "              of its own, and the device memory that is taken once a kernel has launched another\n"
        "  strategies  those that launch from kernels, measured as the ladder is: the time; its ratio to that of the\n"
        "              planner's choice; what the launches of a call came to: made, refused as too many were\n"
        "              pending, failed, done in line by the parent; the depth of the deepest. --block is for those\n"
        "              that let it be chosen\n"
        "Launches and pools have a fifth of the budget each. Launches and strategies leave the pool as it is.\n"
        "\n"
        "Numbers: 1000, 1e6, 2^20, 64Ki (1024 each), 64K (1000 each). Range: LOW:HIGH, LOW:HIGH:xFACTOR, "
        "LOW:HIGH:+STEP.\n"
        "\n"
        "An interrupt (Ctrl-C) ends the measurement after the call that runs, and shows what there is; a second one\n"
        "ends the program. FILE is kept up to date while it runs.\n"
        "\n"
        "Exit status: 0 if all went well, 1 if a strategy failed or gave a wrong result, or there is no GPU that\n"
        "--ladder, --nested, --block or --device needs, 2 if the command line makes no sense, 130 after an interrupt,\n"
        "143 after a request to end (SIGTERM).");
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static const char *cache_name(size_t i) {
    return i == BENCH_CACHES ? "both" : bench_cache_name(i);
}

static int take_cache(bench_asked *a, const char *text) {
    unsigned char in[AXIS_SET];
    const int code = axis_parse_set("cache", text, cache_name, in);
    for (int i = 0; code == CLI_OK && i < BENCH_CACHES; i++)
        a->caches[i] = in[i] | in[BENCH_CACHES];
    return code;
}

static int take_option(void *user, int number, const char *text) {
    bench_asked *a = user;
    switch (number) {
    case OPTION_CACHE:
        return take_cache(a, text);
    case OPTION_BLOCK:
        return cli_block(text, &a->block);
    case OPTION_LADDER:
        a->ladder = 1;
        return CLI_OK;
    case OPTION_NESTED:
        a->nested = 1;
        return CLI_OK;
    case OPTION_POOLS:
        return asked_take_pools(a, text);
    case OPTION_DEPTH:
        return cli_depth(text, &a->depth);
    default:
        return asked_take(a, &options[number], text);
    }
}

static void set_defaults(bench_asked *a) {
    a->device = DPR_DEVICE_AUTO;
    a->budget = 60;
    a->accuracy = 0.01;
    a->commit = DPR_COMMIT;
}

/* Defaults take the place of lists that are not asked for. */
static int complete_bench(bench_asked *a) {
    a->ops[DPR_SUM] |= (unsigned char)!axis_members(a->ops);
    a->dtypes[DPR_F32] |= (unsigned char)!axis_members(a->dtypes);
    a->caches[BENCH_COLD] |= (unsigned char)!axis_members(a->caches);
    if (!axis_members(a->strategies))
        for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++)
            a->strategies[i] = !dpr_strategies[i]->block_sizes && !dpr_strategies[i]->work_bytes;
    return CLI_OK;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

/* What is measured: all three begin with the results that they have in common. */
typedef union outcome {
    bench_results bench;
    ladder_results ladder;
    nested_results nested;
} outcome;

static int measure_bench(const bench_asked *asked, outcome *out) {
    return bench_measure(asked, &out->bench);
}

static int measure_ladder(const bench_asked *asked, outcome *out) {
    return ladder_measure(asked, &out->ladder);
}

static int measure_nested(const bench_asked *asked, outcome *out) {
    return nested_measure(asked, &out->nested);
}

static int write_bench(void *user, FILE *f, int format) {
    return bench_write(f, &((const outcome *)user)->bench, (report_format)format);
}

static int write_ladder(void *user, FILE *f, int format) {
    return ladder_write(f, &((const outcome *)user)->ladder, (report_format)format);
}

static int write_nested(void *user, FILE *f, int format) {
    return nested_write(f, &((const outcome *)user)->nested, (report_format)format);
}

/* A way to measure. */
typedef struct bench_kind {
    int (*complete)(bench_asked *a); /* checks, and puts defaults in place */
    int (*measure)(const bench_asked *asked, outcome *out);
    int (*write)(void *user, FILE *f, int format); /* `user` is the outcome */
    int says_omissions;                            /* 1: its report names what was left out, and why */
} bench_kind;

static const bench_kind *kind_of(const bench_asked *a) {
    static const bench_kind plain = {complete_bench, measure_bench, write_bench, 0},
                            ladder = {ladder_complete, measure_ladder, write_ladder, 1},
                            nested = {nested_complete, measure_nested, write_nested, 1};
    return a->nested ? &nested : a->ladder ? &ladder : &plain;
}

static int check_nested_options(const bench_asked *a) {
    if (!a->nested && a->pool_count > 0)
        return cli_usage("--pools belongs to --nested, which is not asked for");
    if (!a->nested && a->depth)
        return cli_usage("--depth belongs to --nested, which is not asked for");
    return CLI_OK;
}

static int report(const bench_asked *asked, const bench_results *results) {
    if (results->omission_count && !asked->quiet && !kind_of(asked)->says_omissions)
        cli_note("%zu combination%s left out; the first: %s", results->omission_count,
                 results->omission_count == 1 ? " was" : "s were", results->omissions[0].why);
    return outfile_finish(asked->file);
}

static int run(bench_asked *asked, outcome *all) {
    const bench_kind *kind = kind_of(asked);
    bench_results *results = &all->bench;
    int code = check_nested_options(asked);
    if (code == CLI_OK)
        code = kind->complete(asked);
    if (code == CLI_OK)
        code = outfile_try(asked->file);
    if (code != CLI_OK)
        return code;
    asked_catch_signals(asked);
    code = kind->measure(asked, all);
    if (code != CLI_USAGE && results->device.name[0]) {
        const int written = report(asked, results);
        code = written != CLI_OK ? written : results->interrupted ? CLI_SIGNAL + *asked->stop : code;
    } else {
        outfile_abandon(asked->file);
    }
    results_free(results);
    return code;
}

int command_bench(int argc, char **argv) {
    static const cli_syntax syntax = {options, OPTION_COUNT, print_help, take_option};
    static outcome results;
    outfile file = {.format_name = report_format_name, .format = OUTFILE_GUESS};
    bench_asked asked = {.file = &file};
    if (argc > 1 && strcmp(argv[1], NESTED_PART) == 0)
        return nested_part_main(argc, argv);
    set_defaults(&asked);
    const int code = cli_parse(argc, argv, &syntax, &asked, NULL);
    if (code != CLI_GO_ON)
        return code;
    file.write = kind_of(&asked)->write;
    file.user = &results;
    return run(&asked, &results);
}
