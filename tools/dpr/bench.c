#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_report.h"
#include "bench_run.h"
#include "cli.h"
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

typedef struct request {
    bench_asked asked;
    bench_results results;
    report_format format;
    int format_named, help;
    const char *output; /* NULL: standard output */
    double saved;       /* when the file was last written */
} request;

/* Interrupted means: what was measured is printed. */
enum { CLI_INTERRUPTED = 130 };

static volatile sig_atomic_t interrupted;

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
    puts("\nOperations:");
    tables_print_ops();
    puts("\nTypes:");
    tables_print_dtypes();
    puts("\nStrategies of this build:");
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

static const char *format_name(size_t i) {
    return report_format_name(i);
}

static int take_format(request *r, const char *text) {
    for (size_t i = 0; format_name(i); i++)
        if (strcmp(text, format_name(i)) == 0) {
            r->format = (report_format)i;
            r->format_named = 1;
            return CLI_OK;
        }
    return cli_unknown("format", text, format_name);
}

static const char *cache_name(size_t i) {
    return i == BENCH_CACHES ? "both" : bench_cache_name(i);
}

static int take_cache(request *r, const char *text) {
    unsigned char in[AXIS_SET];
    const int code = axis_parse_set("cache", text, cache_name, in);
    for (int i = 0; code == CLI_OK && i < BENCH_CACHES; i++)
        r->asked.caches[i] = in[i] | in[BENCH_CACHES];
    return code;
}

static int take_axis(request *r, int number, const char *text) {
    bench_asked *a = &r->asked;
    switch (number) {
    case OPTION_NUMBER:
        return axis_parse_counts(text, &a->counts);
    case OPTION_OP:
        return axis_parse_set("operation", text, cli_op_name, a->ops);
    case OPTION_DTYPE:
        return axis_parse_set("type", text, cli_dtype_name, a->dtypes);
    case OPTION_MODE:
        a->modes_named = 1;
        return axis_parse_set("mode", text, bench_mode_name, a->modes);
    case OPTION_CACHE:
        return take_cache(r, text);
    case OPTION_STRATEGY:
        a->strategies_named = strcmp(text, "all") != 0;
        return axis_parse_set("strategy", text, cli_strategy_name, a->strategies);
    default:
        return cli_device(text, &a->device);
    }
}

static int take_option(void *user, int number, const char *text) {
    request *r = user;
    switch (number) {
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

static void set_defaults(request *r) {
    bench_asked *a = &r->asked;
    a->ops[DPR_SUM] = a->dtypes[DPR_F32] = a->caches[BENCH_COLD] = 1;
    memset(a->strategies, 1, sizeof a->strategies);
    a->device = DPR_DEVICE_AUTO;
    a->budget = 60;
    a->accuracy = 0.01;
    a->commit = DPR_COMMIT;
}

static int ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static void guess_format(request *r) {
    if (!r->format_named && r->output)
        r->format = ends_in(r->output, ".json")  ? REPORT_JSON
                    : ends_in(r->output, ".csv") ? REPORT_CSV
                    : ends_in(r->output, ".md")  ? REPORT_MARKDOWN
                                                 : REPORT_TABLE;
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static int failed_to_write(const char *file) {
    cli_error("%s: cannot be written: %s", file, strerror(errno));
    return CLI_FAILED;
}

static int write_to(const request *r, FILE *f) {
    if (report_write(f, &r->results, r->format) == 0)
        return CLI_OK;
    cli_error("out of memory");
    return CLI_FAILED;
}

/* Writes the report beside the file and then puts it in its place, so that the file is whole at any time. */
static int save_aside(const request *r, const char *aside) {
    FILE *f = fopen(aside, "w");
    if (!f)
        return failed_to_write(aside);
    int code = write_to(r, f);
    const int bad = ferror(f);
    if ((fclose(f) != 0) | bad || (code == CLI_OK && rename(aside, r->output) != 0))
        code = failed_to_write(r->output);
    if (code != CLI_OK)
        remove(aside);
    return code;
}

/* A device or a pipe cannot be replaced, so it is written to. */
static int is_replaceable(const char *file) {
    struct stat s;
    return lstat(file, &s) != 0 || S_ISREG(s.st_mode);
}

static int save(request *r, int at_end) {
    if (is_replaceable(r->output)) {
        const size_t size = strlen(r->output) + sizeof ".part";
        char *aside = malloc(size);
        if (!aside) {
            cli_error("out of memory");
            return CLI_FAILED;
        }
        snprintf(aside, size, "%s.part", r->output);
        const int code = save_aside(r, aside);
        free(aside);
        r->saved = cli_now();
        return code;
    }
    if (!at_end)
        return CLI_OK;
    FILE *f = fopen(r->output, "w");
    if (!f)
        return failed_to_write(r->output);
    const int code = write_to(r, f), bad = ferror(f);
    return (fclose(f) != 0) | bad ? failed_to_write(r->output) : code;
}

/* In case that the program is killed or the device hangs. */
static void save_sometimes(void *user) {
    request *r = user;
    if (r->output && cli_now() - r->saved > 5)
        (void)save(r, 0);
}

/* Finds out before the measurement whether the file can be written. */
static int try_output(const char *file) {
    if (!is_replaceable(file))
        return CLI_OK;
    FILE *f = fopen(file, "a");
    return f && fclose(f) == 0 ? CLI_OK : failed_to_write(file);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

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

static int run(request *r) {
    int code = r->output ? try_output(r->output) : CLI_OK;
    if (code != CLI_OK)
        return code;
    r->asked.grown = save_sometimes;
    r->asked.user = r;
    r->saved = cli_now();
    catch_signals();
    code = bench_measure(&r->asked, &interrupted, &r->results);
    if (code == CLI_USAGE || (code == CLI_FAILED && r->results.device.name[0] == 0)) {
        results_free(&r->results);
        return code;
    }
    if (r->results.omission_count && !r->asked.quiet)
        cli_note("%zu combination%s left out; the first: %s", r->results.omission_count,
                 r->results.omission_count == 1 ? " was" : "s were", r->results.omissions[0].why);
    const int written = r->output ? save(r, 1) : write_to(r, stdout);
    results_free(&r->results);
    if (written != CLI_OK)
        return written;
    return interrupted ? CLI_INTERRUPTED : code;
}

int command_bench(int argc, char **argv) {
    request r = {.format = REPORT_TABLE};
    int first;
    set_defaults(&r);
    const int code = cli_parse(argc, argv, options, OPTION_COUNT, take_option, &r, &first);
    if (code != CLI_OK)
        return code;
    if (r.help) {
        print_help();
        return CLI_OK;
    }
    if (first < argc)
        return cli_usage("the operand '%s' makes no sense here", argv[first]);
    guess_format(&r);
    return run(&r);
}
