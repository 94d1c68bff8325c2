/* dpr_peers: dpr beside CUB, cuBLAS and plain copies, on one GPU, in one process, in turn. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
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
    X(PEER, 'p', "peer", "PEER,...", "cub, cublas, copy, or 'all' (default: all)")                                     \
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
    peers_format format;
    int format_named, help;
    unsigned char named[OPTION_COUNT]; /* 1: the option is on the command line */
    const char *output;                /* NULL: standard output */
    double saved;                      /* when the file was last written */
} request;

/* Interrupted means: what was measured is printed. */
enum { CLI_INTERRUPTED = 130 };

static volatile sig_atomic_t interrupted;

static void print_help(void) {
    puts("Usage: dpr_peers [OPTION]...\n"
         "Times dpr beside CUB, cuBLAS and copies on one GPU: in turn, on the same rotating buffers. Every result is\n"
         "checked.\n"
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
        "\n"
        "Modes: see 'dpr bench --help'. An interrupt (Ctrl-C) ends the measurement and shows what there is.\n"
        "\n"
        "Exit status: 0 if all went well, 1 if a subject failed or gave a wrong result, or a floor is missed, 2 if\n"
        "the command line makes no sense, 130 after an interrupt.");
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int take_format(request *r, const char *text) {
    for (size_t i = 0; peers_format_name(i); i++)
        if (strcmp(text, peers_format_name(i)) == 0) {
            r->format = (peers_format)i;
            return CLI_OK;
        }
    return cli_unknown("format", text, peers_format_name);
}

static int take_axis(request *r, int number, const char *text) {
    peers_asked *a = &r->asked;
    switch (number) {
    case OPTION_NUMBER:
        return axis_parse_counts(text, &a->counts);
    case OPTION_OP:
        return axis_parse_set("operation", text, cli_op_name, a->ops);
    case OPTION_DTYPE:
        return axis_parse_set("type", text, cli_dtype_name, a->dtypes);
    case OPTION_MODE:
        return axis_parse_set("mode", text, bench_mode_name, a->modes);
    case OPTION_CACHE:
        return axis_parse_set("cache", text, bench_cache_name, a->caches);
    case OPTION_PEER:
        return axis_parse_set("peer", text, peer_group_name, a->groups);
    case OPTION_STRATEGY:
        return axis_parse_set("strategy", text, cli_strategy_name, a->strategies);
    default:
        return cli_device(text, &a->device);
    }
}

static int take_option(void *user, int number, const char *text) {
    request *r = user;
    r->named[number] = 1;
    switch (number) {
    case OPTION_FLOORS:
        r->asked.floors = 1;
        return CLI_OK;
    case OPTION_BUDGET:
        return axis_parse_seconds("budget", text, &r->asked.budget);
    case OPTION_ACCURACY:
        return axis_parse_share("accuracy", text, &r->asked.accuracy);
    case OPTION_FORMAT:
        return take_format(r, text);
    case OPTION_OUTPUT:
        r->output = text;
        return CLI_OK;
    case OPTION_COMMIT:
        r->asked.commit = text;
        return CLI_OK;
    case OPTION_QUIET:
        r->asked.quiet = 1;
        return CLI_OK;
    case OPTION_HELP:
        r->help = 1;
        return CLI_OK;
    default:
        return take_axis(r, number, text);
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
    peers_asked *a = &r->asked;
    default_axis(r, OPTION_OP, a->ops, DPR_SUM);
    default_axis(r, OPTION_DTYPE, a->dtypes, DPR_F32);
    default_axis(r, OPTION_MODE, a->modes, BENCH_GRAPH);
    default_axis(r, OPTION_CACHE, a->caches, BENCH_COLD);
    if (!r->named[OPTION_PEER])
        memset(a->groups, 1, PEER_GROUPS);
    if (!r->named[OPTION_DEVICE])
        a->device = DPR_DEVICE_AUTO;
    if (!r->named[OPTION_BUDGET])
        a->budget = a->floors ? 480 : 60;
    if (!r->named[OPTION_ACCURACY])
        a->accuracy = 0.005;
    if (!r->named[OPTION_COMMIT])
        a->commit = DPR_COMMIT;
    if (a->floors && !a->groups[PEER_CUB])
        return cli_usage("--floors needs CUB among the peers");
    return r->named[OPTION_NUMBER] ? CLI_OK : axis_parse_counts(all_counts, &a->counts);
}

static int ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static void guess_format(request *r) {
    if (!r->named[OPTION_FORMAT] && r->output)
        r->format = ends_in(r->output, ".json") ? PEERS_JSON : ends_in(r->output, ".md") ? PEERS_MARKDOWN : PEERS_TABLE;
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static int failed_to_write(const char *file) {
    cli_error("%s: cannot be written: %s", file, strerror(errno));
    return CLI_FAILED;
}

static int write_to(const request *r, FILE *f, peers_format format) {
    if (peers_write(f, &r->results, format, r->asked.floors) == 0)
        return CLI_OK;
    cli_error("out of memory");
    return CLI_FAILED;
}

/* Written beside the file and then put in its place, so that the file is whole at any time. */
static int save(request *r) {
    char aside[4096];
    if ((size_t)snprintf(aside, sizeof aside, "%s.part", r->output) >= sizeof aside) {
        cli_error("the name of the file is too long");
        return CLI_FAILED;
    }
    r->saved = cli_now();
    FILE *f = fopen(aside, "w");
    if (!f)
        return failed_to_write(aside);
    int code = write_to(r, f, r->format);
    const int bad = ferror(f);
    if ((fclose(f) != 0) | bad || (code == CLI_OK && rename(aside, r->output) != 0))
        code = failed_to_write(r->output);
    if (code != CLI_OK)
        (void)remove(aside);
    return code;
}

/* In case that the program is killed or the device hangs. */
static void save_sometimes(void *user) {
    request *r = user;
    if (r->output && cli_now() - r->saved > 10)
        (void)save(r);
}

/* The table also goes to standard output where FILE has the JSON. */
static int write_all(request *r) {
    int code = CLI_OK;
    if (!r->output)
        return write_to(r, stdout, r->format);
    code = save(r);
    if (code == CLI_OK && r->format != PEERS_TABLE)
        code = write_to(r, stdout, PEERS_TABLE);
    return code;
}

/* ---- The program ------------------------------------------------------------------------------------------------ */

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

/* The first signal asks for an end, the second has its usual effect. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Floors that were not measured because it ended early are not held either. */
static int judge(const request *r) {
    const floors_tally t = floors_count(&r->results);
    if (!r->asked.floors)
        return CLI_OK;
    return t.missed || t.held == 0 || r->results.ended ? CLI_FAILED : CLI_OK;
}

static int run(request *r) {
    r->asked.grown = save_sometimes;
    r->asked.user = r;
    r->saved = cli_now();
    if (r->output) { /* finds out before the measurement whether the file can be written */
        FILE *f = fopen(r->output, "a");
        if (!f || fclose(f) != 0)
            return failed_to_write(r->output);
    }
    catch_signals();
    int code = peers_measure(&r->asked, &interrupted, &r->results);
    if (code != CLI_USAGE && r->results.common.device.name[0]) {
        const int written = write_all(r), judged = judge(r);
        code = code != CLI_OK ? code : written != CLI_OK ? written : judged;
        code = interrupted ? CLI_INTERRUPTED : code;
    }
    peers_free(&r->results);
    return code;
}

static int start(int argc, char **argv, request *r) {
    int first = 0;
    int code = cli_parse(argc, argv, options, OPTION_COUNT, take_option, r, &first);
    if (code != CLI_OK)
        return code;
    if (r->help) {
        print_help();
        return CLI_OK;
    }
    if (first < argc)
        return cli_usage("the operand '%s' makes no sense here", argv[first]);
    guess_format(r);
    code = set_defaults(r);
    return code == CLI_OK ? run(r) : code;
}

int main(int argc, char **argv) {
    static request r;
    cli_set_command("peers");
    int code = start(argc, argv, &r);
    /* A full disk shows only here. */
    if ((fflush(stdout) != 0) | ferror(stdout) | (fclose(stdout) != 0)) {
        cli_error("standard output cannot be written: %s", strerror(errno));
        return code > CLI_FAILED ? code : CLI_FAILED;
    }
    return code;
}
