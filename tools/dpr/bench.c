#include <stdio.h>
#include <string.h>

#include "bench_lineup.h"
#include "bench_plot.h"
#include "bench_report.h"
#include "bench_walk.h"
#include "commands.h"
#include "compare.h"
#include "dpr_commit.h"
#include "listings.h"
#include "nested.h"
#include "terminal.h"

static void print_tables(void) {
    const char *before = "\nDemonstrations, to learn from, which let their block size be chosen (--block):\n  ";
    int column = 0;
    list_print_all();
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const char *name = dpr_strategy_name(i);
        if (!cli_strategy_at(i).takes_block)
            continue;
        printf("%s%s", before, name);
        column += (int)strlen(name) + 2;
        before = column > 80 ? ",\n  " : ", ";
        column = column > 80 ? 0 : column;
    }
    fputs(*before == '\n' ? "" : "\n", stdout);
}

static const cli_help help = {
    "Usage: dpr bench [OPTION]...\n"
    "       dpr bench --compare OLD NEW [--threshold SHARE] [-f FORMAT] [-O FILE]\n"
    "Measures strategies on this machine, for every combination of the options' lists, checks every result, and\n"
    "shows the quickest and how far the planner's choice is from it.\n"
    "\n"
    "Examples:\n"
    "  dpr bench                                    sum of f32, all strategies but demonstrations\n"
    "  dpr bench -d cpu -n 2^10:2^22:x4 -b 5s       on the CPU, for five seconds\n"
    "  dpr bench -o sum,max,argmax -t f32,i32,u8 -m graph,blocking -b 10m -O h200.json\n"
    "  dpr bench -o sum,var,sum+var                 the last with both operations in one pass\n"
    "  dpr bench -s 'flat.*' -n 2^13:2^23:x2 -c both > flat.txt\n"
    "  dpr bench --memory pinned -m graph,blocking  pinned memory: for the GPU, and for the CPU where calls block\n"
    "  dpr bench -d cpu -n 2^6:2^24:x2 --plot -O cpu.json  times against sizes, drawn in the terminal\n"
    "  dpr bench --segments all                     an array with many results: nine distributions of lengths\n"
    "  dpr bench --axes all -d cpu -n 2^20          the same along axes, of twelve arrays of several dimensions\n"
    "  dpr bench --segments zipf,ones -o max -t f16 --offsets i64\n"
    "  dpr bench --ladder                           what each way to reduce is worth on this GPU\n"
    "  dpr bench --ladder -n 2^28 --block 256 -O ladder.md\n"
    "  dpr bench --nested                           what launches from kernels cost on this GPU\n"
    "  dpr bench --nested -n 2^22 --pools 2048,8192 --depth 4\n"
    "  dpr bench --compare old.json new.json        which times of two builds differ\n"
    "  dpr bench --compare old.json new.json --threshold 10% -O changes.md\n",
    print_tables,
    "Modes define the time of a call:\n"
    "  graph      one replay of a CUDA graph of many calls, between two events, divided by their number\n"
    "  stream     many calls into an idle stream until the last has completed, divided by their number\n"
    "  blocking   one call, which returns with the result in host memory\n"
    "\n"
    "Calls with a 'cold' cache read data that is in no cache (L2; on the CPU the last-level caches): other data\n"
    "fills it first, and every call reads another buffer. Calls with a 'hot' cache read the same buffer; sizes that\n"
    "do not stay in the cache are left out.\n"
    "\n"
    "A set such as sum+var is one item of --op: up to 8 operations in one pass over the array, by the strategies\n"
    "that can run it. The results of all its operations are checked. GB/s are those of the array, read once.\n"
    "\n"
    "Strategies take turns on the same buffers. A combination ends when the median's 95 % confidence interval is\n"
    "within the accuracy, or when its share of the budget is spent, after a few samples at least. One whose choice\n"
    "takes more than 5 % longer than the best is measured once more, which counts. Calls in a stream or\n"
    "blocking whose times scatter by more than 3 % and the accuracy are measured up to three times more, within\n"
    "the budget and for at most as long as the first pass took, and the steadiest are kept.\n"
    "A message names what is left out for lack of time or memory. Marks show wrong results, and times taken while\n"
    "a fixed piece of work ran slower than before (a falling clock, another program).\n"
    "\n"
    "--segments and --axes measure calls with many results. Distributions of segments' lengths: ones, uniform-8,\n"
    "uniform-32, uniform-256, uniform-4096 (0 to twice the average), equal-2^20, one-huge (half of all elements,\n"
    "between lengths from 0 to 16), zipf, three. An array is its extents and the dimensions that are reduced:\n"
    "16384x16384:1 for the rows of a matrix, 16384x16384:0 for its columns. N is as many as --count has elements\n"
    "for; EXTENT/PITCH is as many of PITCH in memory; 'all' are twelve arrays. GB/s count elements, offsets and\n"
    "results; the last table has the time over that of reading as many bytes.\n"
    "\n"
    "--ladder measures in a graph with a cold cache; core/ladder.md describes its table. 'of bandwidth' is over\n"
    "the best sample of a sum of f32 by " LADDER_READER " over 1 GiB (less where memory is short), so a median can\n"
    "exceed 100 %. 'speed-up' is over " LADDER_FIRST ". Occupancy is calculated for the launched blocks.\n"
    "\n"
    "--nested measures launches by the host, in graphs and by kernels, tail launches with several sizes of the\n"
    "launch pool, and strategies dp.*; tools/bench/README.md describes its tables. Launches and pools have a\n"
    "fifth of the budget each.\n"
    "\n"
    "Numbers: 1000, 1e6, 2^20, 64Ki (1024 each), 64K (1000 each). Range: LOW:HIGH, LOW:HIGH:xFACTOR,\n"
    "LOW:HIGH:+STEP.\n"
    "\n"
    "An interrupt (Ctrl-C) ends the measurement, and shows what there is; a second one ends the program. FILE is\n"
    "kept up to date while it runs; a device or a pipe is written at the end.\n"
    "\n"
    "--compare measures nothing. It reads two files of JSON that dpr bench, dpr_peers or dpr recurse wrote ('-' is\n"
    "standard input), compares the times of rows that both have, and names rows that one of them has. A row of NEW\n"
    "is slower or faster if the ratio of the times is beyond the threshold (3 %; 10 % for short calls that the host\n"
    "launches while its clock runs), and its 95 % confidence interval does not contain 1. Other rows are the same\n"
    "or unsure (tools/bench/README.md). Warnings name devices and settings that differ, and interrupted files.\n"
    "\n"
    "Exit status: 0 if all went well, even if every combination was left out; 1 if a strategy failed or gave a\n"
    "wrong result, if --ladder or --nested left a size out, or if there is no GPU that --ladder, --nested, --block\n"
    "or --device needs; 2 if the command line makes no sense, 130 after an interrupt, 143 after SIGTERM, 129\n"
    "after SIGHUP. With --compare: 0 if no row of NEW is slower; 1 if one is, or failed or gave a wrong result; 2\n"
    "if a file cannot be read, compared or written, or if the comparison says too little: no row is in both,\n"
    "NEW was interrupted or lacks rows of OLD, or more than half of the rows are unsure.\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* One run of the command. Without --ladder and --nested, only what all results have in common is used. */
typedef struct request {
    bench_asked asked;
    compare_asked compare;
    lineup_results results;
    int plot;  /* 1: times are drawn against sizes */
    int first; /* operand */
} request;

static int parse(int argc, char **argv, request *r) {
    bench_asked *a = &r->asked;
    const cli_option options[] = {
        {'n', "count", "N,...", axis_parse_counts, &a->counts,
         "numbers of elements, and ranges of them: 2^10:2^30:x4,\n1000:5000:+1000 (default: from 2^10 by factors of "
         "4)"},
        {'o', "op", "OP,...", asked_take_ops, &a->ops,
         "operations, sets in one pass such as sum+var, or 'all'\n(default: sum)"},
        {'t', "dtype", "TYPE,...", axis_take_names, &(axis_names){cli_dtype_name, &a->dtypes},
         "types of the elements, or 'all' (default: f32)"},
        {0, "segments", "NAME,...", shapes_take_segments, &a->segments,
         "calls with a result for each segment: distributions of\nlengths, or 'all'"},
        {0, "axes", "ARRAY,...", shapes_take_axes, &a->axes,
         "calls that reduce along axes: arrays such as\n16384x16384:1, or 'all'"},
        {0, "offsets", "TYPE", asked_take_offsets, &a->offsets, "with --segments: i32 (default), u32, i64 or u64"},
        {0, "ladder", NULL, cli_flag, &a->ladder,
         "the GPU's strategies for one array but dp.*, in the\norder of teaching (default: sum of i32, 2^24 elements)"},
        {0, "nested", NULL, cli_flag, &a->nested,
         "what launches from kernels cost, and strategies that make\nthem (default: sum of i32, 2^20 and 2^24 "
         "elements)"},
        {'m', "mode", "MODE,...", axis_take_names, &(axis_names){bench_mode_name, &a->modes},
         "graph, stream, blocking, or 'all'\n(default: graph on a GPU; the CPU has blocking alone)"},
        {'c', "cache", "CACHE", asked_take_caches, &a->caches, "cold (default), hot, or both"},
        {'s', "strategy", "NAME,...", asked_take_strategies, a,
         "strategies, families such as 'flat.*', or 'all' that can\n"
         "(default: all but dp.* and demonstrations, which are\nbelow). The planner's choice comes along"},
        {'d', "device", "DEVICE", cli_device, &a->device, "auto (default), cpu, or a GPU's number"},
        {0, "memory", "KIND", cli_memory, &a->memory,
         "where the array lies: on a GPU device (default), pinned\nor managed; on the CPU host"},
        {0, "block", "N", cli_block, &a->block,
         "threads a block, at most, of demonstrations: 32, 64, ...\nor 1024 (default: 512)"},
        {0, "pools", "N,...", asked_take_pools, &a->pools,
         "with --nested: sizes of the pool of pending launches\n(default: 64,512,2048,4096,65536)"},
        {0, "depth", "N", cli_depth, &a->depth,
         "with --nested: launches below each other, at most\n(default: as many as the GPU takes)"},
        {0, "compare", NULL, cli_flag, &r->compare.wanted, "compare two files of results, OLD and NEW, row by row"},
        {0, "threshold", "SHARE", axis_parse_share, &r->compare.threshold,
         "with --compare: changes that are not relevant, in\npercent (default: 3%, "
         "and 10% for\nshort calls that the host launches)"},
        {'b', "budget", "TIME", axis_parse_seconds, &a->budget, "for all together: 60s, 5m, 1h (default: 60s)"},
        {'a', "accuracy", "SHARE", axis_parse_share, &a->accuracy, "how certain medians shall be (default: 1%)"},
        {0, "plot", NULL, cli_flag, &r->plot, "also draw times against sizes, with characters"},
        {'f', "format", "FORMAT", outfile_set_format, a->file,
         "table, csv, json or markdown (default: as FILE ends:\n.csv, .json, .md; else table)"},
        {'O', "output", "FILE", cli_file, &a->file->name, "write there, and not to standard output"},
        {0, "commit", "TEXT", cli_text, &a->commit, "what JSON names as the commit\n(default: the one that was built)"},
        {'q', "quiet", NULL, cli_flag, &a->quiet, "no live line and no notes"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, &r->first);
}

/* ---- What is measured without --ladder and --nested -------------------------------------------------------------- */

/* Whether a strategy is measured that nobody has named. Managed memory would move to the CPU that reads it, and back.
 */
static int is_usual(const bench_asked *a, size_t i) {
    const dpr_strategy_info info = cli_strategy_at(i);
    return info.role == DPR_ROLE_CANDIDATE && (info.on_gpu || a->memory != DPR_MEMORY_MANAGED);
}

/* Defaults take the place of lists that are not asked for. */
static void put_defaults(bench_asked *a) {
    asked_default_op(&a->ops);
    axis_default(&a->dtypes, DPR_ROW(DPR_F32));
    axis_default(&a->caches, BENCH_COLD);
    if (a->strategies)
        return;
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++)
        if (is_usual(a, i))
            a->strategies |= axis_one((int)i);
}

/* Strategies that are asked for. */
typedef struct scene {
    char refusals[AXIS_SET][BENCH_WHY]; /* why they cannot run a case, the last */
    axis_set measured;                  /* those that ran somewhere */
} scene;

/* The strategies that are asked for and can run the case, and the planner's choice. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    scene *s = w->user;
    if (walk_choose(w, why) != 0 || (w->at.shape && !walk_add(w, w->choice, 1, why)))
        return -1;
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++) {
        const char *name = dpr_strategy_name(i);
        if (!axis_has(w->asked->strategies, i) && strcmp(name, w->choice) != 0)
            continue;
        if (walk_add(w, name, 1, s->refusals[i]))
            s->measured |= axis_one((int)i);
    }
    return 0;
}

/* Takes note of a strategy that cannot run a case after all. */
static void take_refusal(bench_walk *w, const char *strategy, const char *why) {
    scene *s = w->user;
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++)
        if (strcmp(dpr_strategy_name(i), strategy) == 0) {
            snprintf(s->refusals[i], BENCH_WHY, "%.500s", why);
            s->measured &= ~axis_one((int)i);
        }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int lets_block_be_chosen(const bench_asked *a) {
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (axis_has(a->strategies, i) && cli_strategy_at(i).takes_block)
            return 1;
    return 0;
}

static int check_block(const bench_asked *a, int on_gpu) {
    if (!a->block)
        return CLI_OK;
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("--block is of GPU strategies: the CPU has none of them");
    if (!on_gpu)
        return cli_error("--block is of GPU strategies, and there is no GPU: %s", walk_why_no_gpu());
    if (!lets_block_be_chosen(a))
        return cli_usage("--block: no strategy that is asked for lets its block size be chosen%s",
                         a->strategies_named ? "" : " (name some, as -s 'ladder.*', or use --ladder)");
    return CLI_OK;
}

/* The device's usual kind of memory becomes DPR_MEMORY_AUTO. */
static int check_memory(bench_asked *a, int on_gpu) {
    const dpr_memory usual = on_gpu ? DPR_MEMORY_DEVICE : DPR_MEMORY_HOST;
    if (a->memory == usual)
        a->memory = DPR_MEMORY_AUTO;
    if (a->memory == DPR_MEMORY_HOST)
        return cli_usage("--memory: the GPU does not read host memory that is not pinned; --device cpu measures that");
    if (a->memory == DPR_MEMORY_AUTO || on_gpu)
        return CLI_OK;
    return walk_refuse_memory(a);
}

static int choose_axes(bench_walk *w) {
    bench_asked *a = w->asked;
    const int on_gpu = dpr_ctx_device(w->ctx) != DPR_DEVICE_CPU;
    if (a->counts.n == 0 && asked_shape_option(a))
        (void)axis_parse_counts(on_gpu ? "2^28" : "2^24", &a->counts);
    if (a->counts.n == 0)
        (void)axis_parse_counts(on_gpu ? "2^10:2^28:x4" : "2^10:2^24:x4", &a->counts);
    axis_default(&a->modes, on_gpu ? BENCH_GRAPH : BENCH_BLOCKING);
    if (!on_gpu && a->modes != axis_one(BENCH_BLOCKING))
        return cli_usage("the CPU has blocking calls only: --mode blocking");
    const int code = check_memory(a, on_gpu);
    return code == CLI_OK ? check_block(a, on_gpu) : code;
}

static void say_what_is_missing(const bench_walk *w) {
    const scene *s = w->user;
    const bench_asked *a = w->asked;
    const bench_results *r = w->results;
    for (size_t i = 0; i < AXIS_SET && a->strategies_named; i++)
        if (axis_has(a->strategies & ~s->measured, i) && s->refusals[i][0])
            cli_note("%s", s->refusals[i]);
    if (r->omission_count)
        cli_note("%zu combination%s left out; the first: %s", r->omission_count,
                 r->omission_count == 1 ? " was" : "s were", r->omissions[0].why);
}

static int measure_asked(bench_asked *asked, bench_results *out) {
    scene s = {.measured = 0};
    bench_walk w = {.asked = asked, .results = out, .prepare = prepare, .unable = take_refusal, .user = &s};
    int code = walk_open(&w);
    if (code == CLI_OK)
        code = choose_axes(&w);
    if (code == CLI_OK)
        code = walk_run(&w);
    if (!asked->quiet)
        say_what_is_missing(&w);
    walk_close(&w);
    return code;
}

/* ---- Measuring -------------------------------------------------------------------------------------------------- */

static int is_lineup(const bench_asked *a) {
    return a->nested || a->ladder;
}

static int check_plot(const bench_asked *a) {
    const int has_text = a->file->name || a->file->format == OUTFILE_GUESS || a->file->format == REPORT_TABLE;
    if (is_lineup(a) || asked_shape_option(a))
        return cli_usage("--plot is without --ladder, --nested, --segments and --axes");
    return has_text
               ? CLI_OK
               : cli_usage("--plot draws on standard output, which has the report as %s: name a file with --output",
                           report_format_name((size_t)a->file->format));
}

static void put_common_defaults(bench_asked *a) {
    a->offsets = a->offsets == DPR_DTYPE_NONE ? DPR_I32 : a->offsets;
    a->budget = a->budget > 0 ? a->budget : 60;
    a->accuracy = a->accuracy > 0 ? a->accuracy : 0.01;
    a->commit = a->commit ? a->commit : DPR_COMMIT;
}

static int complete(bench_asked *a) {
    if (asked_shape_option(a) && (is_lineup(a) || a->block))
        return cli_usage("%s is measured without --ladder, --nested and --block", asked_shape_option(a));
    if (asked_check_shapes(a) != CLI_OK)
        return CLI_USAGE;
    if (a->offsets != DPR_DTYPE_NONE && !a->segments.n)
        return cli_usage("--offsets belongs to --segments, which is not asked for");
    put_common_defaults(a);
    const int may_be_usual = a->memory == DPR_MEMORY_AUTO || a->memory == DPR_MEMORY_DEVICE
                             || (a->memory == DPR_MEMORY_HOST && !is_lineup(a));
    if (!may_be_usual && (is_lineup(a) || asked_shape_option(a)))
        return cli_usage(
            "--memory: --ladder and --nested measure device memory, and --segments and --axes the device's "
            "usual kind");
    if (!a->nested && a->pools.n > 0)
        return cli_usage("--pools belongs to --nested, which is not asked for");
    if (!a->nested && a->depth)
        return cli_usage("--depth belongs to --nested, which is not asked for");
    if (is_lineup(a))
        return lineup_complete(a);
    put_defaults(a);
    return CLI_OK;
}

static int measure(void *user) {
    request *r = user;
    if (!r->asked.quiet)
        wisdom_note_unused();
    return is_lineup(&r->asked) ? lineup_measure(&r->asked, &r->results) : measure_asked(&r->asked, &r->results.bench);
}

/* Below the table, if it is on standard output, too. */
static int show_plot(void *user) {
    const request *r = user;
    const plot_style style = {.columns = terminal_columns(stdout), .utf8 = terminal_has_utf8()};
    return plot_write(stdout, &r->results.bench, &style) == 0 ? CLI_OK : cli_error("out of memory");
}

static int write_report(void *user, FILE *f, int format) {
    const request *r = user;
    return is_lineup(&r->asked) ? lineup_write(f, &r->results, (report_format)format)
                                : bench_write(f, &r->results.bench, (report_format)format);
}

/* ---- Comparing -------------------------------------------------------------------------------------------------- */

/* Whether anything is asked for that belongs to measuring. Defaults are set later. */
static int measures(const bench_asked *a) {
    return a->counts.n || a->ops.n || a->dtypes || asked_shape_option(a) || a->offsets != DPR_DTYPE_NONE || is_lineup(a)
           || a->modes || a->caches || a->strategies || a->device != DPR_DEVICE_AUTO || a->memory != DPR_MEMORY_AUTO
           || a->block || a->pools.n || a->depth || a->budget > 0 || a->accuracy > 0 || a->commit;
}

static int compare(const request *r, int argc, char **argv) {
    const char *const *files = (const char *const *)argv + r->first;
    if (measures(&r->asked) || r->plot)
        return cli_usage("--compare measures nothing: it takes --threshold, --format, --output and --quiet");
    if (argc - r->first != 2)
        return cli_usage("--compare takes two files, OLD and NEW");
    if (strcmp(files[0], "-") == 0 && strcmp(files[1], "-") == 0)
        return cli_usage("standard input ('-') is named twice");
    return compare_files(files[0], files[1], &r->compare, r->asked.file);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

int command_bench(int argc, char **argv) {
    static request r;
    outfile file = {.format = OUTFILE_GUESS, .write = write_report, .user = &r};
    r.asked = (bench_asked){.device = DPR_DEVICE_AUTO, .file = &file};
    if (argc > 1 && strcmp(argv[1], NESTED_PART) == 0)
        return nested_part_main(argc, argv);
    int code = parse(argc, argv, &r);
    if (code != CLI_GO_ON)
        return code;
    if (r.compare.wanted)
        return compare(&r, argc, argv);
    if (r.compare.threshold > 0)
        return cli_usage("--threshold belongs to --compare, which is not asked for");
    if (r.first < argc)
        return cli_usage("the operand '%s' makes no sense here", argv[r.first]);
    if (r.plot && check_plot(&r.asked) != CLI_OK)
        return CLI_USAGE;
    r.asked.show = r.plot ? show_plot : NULL;
    code = complete(&r.asked);
    return code == CLI_OK ? asked_run(&r.asked, &r.results.bench, measure, &r) : code;
}
