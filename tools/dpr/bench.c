#include <stdio.h>
#include <string.h>

#include "bench_report.h"
#include "bench_run.h"
#include "commands.h"
#include "dpr_commit.h"
#include "tables.h"

#define BENCH_OPTIONS(X)                                                                                               \
    X(NUMBER, 'n', "count", "N,...",                                                                                   \
      "numbers of elements, and ranges of them: 2^10:2^30:x4,\n1000:5000:+1000 (default: from 2^10 by factors of 4)")  \
    X(OP, 'o', "op", "OP,...", "operations, or 'all' (default: sum)")                                                  \
    X(DTYPE, 't', "dtype", "TYPE,...", "types of the elements, or 'all' (default: f32)")                               \
    X(MODE, 'm', "mode", "MODE,...",                                                                                   \
      "graph, stream, blocking, or 'all'\n(default: graph on a GPU; the CPU has blocking alone)")                      \
    X(CACHE, 'c', "cache", "CACHE", "cold (default), hot, or both")                                                    \
    X(STRATEGY, 's', "strategy", "NAME,...",                                                                           \
      "strategies, families such as 'flat.*', or 'all' that can\n(default: all). The planner's choice comes along")    \
    X(DEVICE, 'd', "device", "DEVICE", "auto (default), cpu, or a GPU's number")                                       \
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

static void print_help(void) {
    puts("Usage: dpr bench [OPTION]...\n"
         "Measures strategies on this machine, for every combination of the options' lists, checks every result, and\n"
         "shows the quickest and how far the planner's choice is from it.\n"
         "\n"
         "Examples:\n"
         "  dpr bench                                    sum of f32, all strategies\n"
         "  dpr bench -d cpu -n 2^10:2^22:x4 -b 5s       on the CPU, for five seconds\n"
         "  dpr bench -o sum,max,argmax -t f32,i32,u8 -m graph,blocking -b 10m -O h200.json\n"
         "  dpr bench -s 'flat.*' -n 2^13:2^23:x2 -c both > flat.txt\n"
         "\n"
         "Options:");
    cli_print_options(options, OPTION_COUNT);
    tables_print_ops();
    tables_print_dtypes();
    tables_print_strategies();
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
        "Strategies take turns on the same buffers. Sampling ends when the median's 95 % confidence interval is "
        "within\n"
        "the accuracy, or the combination's share of the budget is spent; each has a few samples in any case, so that\n"
        "a small budget may leave combinations out, which is said. Results that are wrong are shown, and so are times\n"
        "taken while a fixed piece of work ran slower than before (a falling clock, another program).\n"
        "\n"
        "Numbers: 1000, 1e6, 2^20, 64Ki (1024 each), 64K (1000 each). Range: LOW:HIGH, LOW:HIGH:xFACTOR, "
        "LOW:HIGH:+STEP.\n"
        "\n"
        "An interrupt (Ctrl-C) ends the measurement and shows what there is; a second one ends the program. FILE is\n"
        "kept up to date while it runs.\n"
        "\n"
        "Exit status: 0 if all went well, 1 if a strategy failed or gave a wrong result, 2 if the command line makes "
        "no\n"
        "sense, 130 after an interrupt.");
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
    return number == OPTION_CACHE ? take_cache(user, text) : asked_take(user, &options[number], text);
}

static void set_defaults(bench_asked *a) {
    a->ops[DPR_SUM] = a->dtypes[DPR_F32] = a->caches[BENCH_COLD] = 1;
    memset(a->strategies, 1, sizeof a->strategies);
    a->device = DPR_DEVICE_AUTO;
    a->budget = 60;
    a->accuracy = 0.01;
    a->commit = DPR_COMMIT;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static int write_report(void *user, FILE *f, int format) {
    return report_write(f, user, (report_format)format);
}

static int report(const bench_asked *asked, const bench_results *results) {
    if (results->omission_count && !asked->quiet)
        cli_note("%zu combination%s left out; the first: %s", results->omission_count,
                 results->omission_count == 1 ? " was" : "s were", results->omissions[0].why);
    return outfile_finish(asked->file);
}

static int run(bench_asked *asked, bench_results *results) {
    int code = outfile_try(asked->file);
    if (code != CLI_OK)
        return code;
    asked_catch_signals(asked);
    code = bench_measure(asked, results);
    if (code != CLI_USAGE && results->device.name[0]) {
        const int written = report(asked, results);
        code = written != CLI_OK ? written : results->interrupted ? CLI_INTERRUPTED : code;
    }
    results_free(results);
    return code;
}

int command_bench(int argc, char **argv) {
    static const cli_syntax syntax = {options, OPTION_COUNT, print_help, take_option};
    bench_results results = {0};
    outfile file = {
        .format_name = report_format_name, .format = OUTFILE_GUESS, .write = write_report, .user = &results};
    bench_asked asked = {.file = &file};
    set_defaults(&asked);
    const int code = cli_parse(argc, argv, &syntax, &asked, NULL);
    return code == CLI_GO_ON ? run(&asked, &results) : code;
}
