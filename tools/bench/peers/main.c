/* dpr_peers: dpr beside CUB, cuBLAS, plain copies and empty kernels, on one GPU, in one process, in turn. */
#include <stdio.h>
#include <string.h>

#include "cli_json.h"
#include "dpr_commit.h"
#include "peer_set.h"
#include "peers_floors.h"
#include "peers_report.h"
#include "peers_run.h"

#define PEERS_OPTIONS(X)                                                                                               \
    X(NUMBER, 'n', "count", "N,...",                                                                                   \
      "numbers of elements, and ranges of them: 2^10:2^30:x4,\n1000:5000:+1000 (default: 2^0:2^33:x2)")                \
    X(OP, 'o', "op", "OP,...", "operations, or 'all' (default: sum)")                                                  \
    X(DTYPE, 't', "dtype", "TYPE,...", "types of the elements, or 'all' (default: f32)")                               \
    X(MODE, 'm', "mode", "MODE,...", "graph (default), stream, blocking, or 'all'")                                    \
    X(CACHE, 'c', "cache", "CACHE", "cold (default), hot, or 'all'")                                                   \
    X(PEER, 'p', "peer", "PEER,...", "cub, cublas, copy, launch, or 'all' (default: all)")                             \
    X(STRATEGY, 's', "strategy", "NAME,...",                                                                           \
      "strategies to time beside the planner's choice, or families\nsuch as 'flat.*' (default: none)")                 \
    X(FLOORS, 'F', "floors", NULL,                                                                                     \
      "measure what dpr has to reach, and say whether it does;\nother options may narrow it (default: all of it)")     \
    X(DEVICE, 'd', "device", "DEVICE", "auto (default), or a GPU's number")                                            \
    X(BUDGET, 'b', "budget", "TIME", "for all together: 60s, 5m, 1h (default: 60s;\nwith --floors 8m)")                \
    X(ACCURACY, 'a', "accuracy", "SHARE", "how certain medians shall be (default: 0.5%)")                              \
    X(FORMAT, 'f', "format", "FORMAT", "table, json or markdown (default: as FILE ends: .json,\n.md; else table)")     \
    X(OUTPUT, 'O', "output", "FILE",                                                                                   \
      "write there; with another format than 'table' the table\nstill goes to standard output")                        \
    X(COMMIT, 0, "commit", "TEXT", "what JSON names as the commit\n(default: the one that was built)")                 \
    X(QUIET, 'q', "quiet", NULL, "no live line")                                                                       \
    X(HELP, 'h', "help", NULL, "this text")

enum { PEERS_OPTIONS(CLI_OPTION_ENUM) OPTION_COUNT };
static const cli_option options[] = {PEERS_OPTIONS(CLI_OPTION_ENTRY)};

typedef struct request {
    peers_asked asked;
    peers_results results;
    outfile file;
    unsigned char named[OPTION_COUNT]; /* 1: the option is on the command line */
} request;

static void print_help(void) {
    puts("Usage: dpr_peers [OPTION]...\n"
         "Times dpr beside CUB, cuBLAS, copies and empty kernels on one GPU: in turn, on the same rotating buffers.\n"
         "Every result is checked.\n"
         "\n"
         "Examples:\n"
         "  dpr_peers                                     sum of f32\n"
         "  dpr_peers -o sum,max -t f32,f64 -m all -c all -b 10m -O peers.json\n"
         "  dpr_peers -n 2^20 -s 'flat.*' -p cub          strategies by name too\n"
         "  dpr_peers --floors -O h200-peers.json         what dpr has to reach\n"
         "  dpr_peers --floors -o sum -t f32 -m stream    a part of that\n"
         "\n"
         "Options:");
    cli_print_options(options, OPTION_COUNT);
    puts(
        "\n"
        "Subjects:\n"
        "  dpr             the planner's choice, as a plan; dpr_reduce_ex() in blocking mode\n"
        "  dpr.async       the same through dpr_reduce_async() (stream mode)\n"
        "  cub             CUB's function for it, accumulating as dpr does; in blocking mode with a copy in the "
        "stream\n"
        "  cub.memcpy      with cudaMemcpy() in its place; cub.pinned: with the result in pinned memory (blocking)\n"
        "  cub.native      sums of 32-bit integers in 32 bits; cub.transform: widened by a transform iterator (graph)\n"
        "  cublas.asum, cublas.dot (with itself), cublas.iamax\n"
        "                  beside sums and argmax of f32 and f64\n"
        "  copy            of half the array to other device memory: as many bytes read and written as others read;\n"
        "                  not of more than a quarter of the device's memory\n"
        "  launch          a kernel of one thread that reads nothing, launched as dpr's are: what a call takes at "
        "least;\n"
        "                  beside arrays of up to 8 MiB\n"
        "\n"
        "Modes: see 'dpr bench --help'. An interrupt (Ctrl-C) ends the measurement and shows what there is.\n"
        "\n"
        "Exit status: 0 if all went well, 1 if a subject failed or gave a wrong result, or a floor is missed, 2 if\n"
        "the command line makes no sense, 130 after an interrupt, 143 after a request to end (SIGTERM).");
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int take_option(void *user, int number, const char *text) {
    request *r = user;
    r->named[number] = 1;
    switch (number) {
    case OPTION_FLOORS:
        r->asked.floors = 1;
        return CLI_OK;
    case OPTION_PEER:
        return axis_parse_set("peer", text, peer_group_name, r->asked.groups);
    default:
        return asked_take(&r->asked.common, &options[number], text);
    }
}

/* The default of an axis: one of its values, or with --floors all. */
static void default_axis(const request *r, int option, unsigned char in[AXIS_SET], size_t one) {
    if (r->named[option])
        return;
    memset(in, r->asked.floors, AXIS_SET);
    in[one] = 1;
}

static int set_defaults(request *r) {
    char all_counts[] = "2^0:2^33:x2";
    bench_asked *a = &r->asked.common;
    default_axis(r, OPTION_OP, a->ops, DPR_SUM);
    default_axis(r, OPTION_DTYPE, a->dtypes, DPR_F32);
    default_axis(r, OPTION_MODE, a->modes, BENCH_GRAPH);
    default_axis(r, OPTION_CACHE, a->caches, BENCH_COLD);
    if (!r->named[OPTION_PEER])
        memset(r->asked.groups, 1, PEER_GROUPS);
    if (!r->named[OPTION_DEVICE])
        a->device = DPR_DEVICE_AUTO;
    if (!r->named[OPTION_BUDGET])
        a->budget = r->asked.floors ? 480 : 60;
    if (!r->named[OPTION_ACCURACY])
        a->accuracy = 0.005;
    if (!r->named[OPTION_COMMIT])
        a->commit = DPR_COMMIT;
    if (r->asked.floors && !r->asked.groups[PEER_CUB])
        return cli_usage("--floors needs CUB among the peers");
    return r->named[OPTION_NUMBER] ? CLI_OK : axis_parse_counts(all_counts, &a->counts);
}

/* ---- The program ------------------------------------------------------------------------------------------------ */

static int write_report(void *user, FILE *f, int format) {
    const request *r = user;
    return peers_write(f, &r->results, (report_format)format, r->asked.floors);
}

/* The table also goes to standard output where the file has something else. */
static int report(request *r) {
    outfile table = {.format = REPORT_TABLE, .write = write_report, .user = r};
    const int code = outfile_finish(&r->file);
    return code == CLI_OK && r->file.name && r->file.format != REPORT_TABLE ? outfile_finish(&table) : code;
}

/* Floors that were not measured because it ended early are not held either. */
static int judge(const request *r) {
    const bench_results *results = &r->results.common;
    const floors_tally t = floors_count(results);
    if (!r->asked.floors)
        return CLI_OK;
    return t.missed || t.held == 0 || results->ended ? CLI_FAILED : CLI_OK;
}

static int run(request *r) {
    const bench_results *results = &r->results.common;
    int code = outfile_try(&r->file);
    if (code != CLI_OK)
        return code;
    asked_catch_signals(&r->asked.common);
    code = peers_measure(&r->asked, &r->results);
    if (code != CLI_USAGE && results->device.name[0]) {
        const int written = report(r), judged = judge(r);
        code = code != CLI_OK ? code : written != CLI_OK ? written : judged;
        code = results->interrupted ? CLI_SIGNAL + *r->asked.common.stop : code;
    } else {
        outfile_abandon(&r->file);
    }
    results_free(&r->results.common);
    return code;
}

static int start(int argc, char **argv, request *r) {
    static const cli_syntax syntax = {options, OPTION_COUNT, print_help, take_option};
    r->file = (outfile){.format_name = report_format_name, .format = OUTFILE_GUESS, .write = write_report, .user = r};
    r->asked.common.file = &r->file;
    int code = cli_parse(argc, argv, &syntax, r, NULL);
    if (code != CLI_GO_ON)
        return code;
    code = set_defaults(r);
    return code == CLI_OK ? run(r) : code;
}

int main(int argc, char **argv) {
    static request r;
    cli_begin();
    cli_set_program("dpr_peers");
    cli_json_watch();
    return cli_finish(start(argc, argv, &r));
}
