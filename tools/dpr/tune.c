/* dpr tune: measures the strategies that the planner chooses among, and keeps their times as wisdom. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "available.h"
#include "bench_walk.h"
#include "commands.h"
#include "cpu/pool.h"
#include "defuse.h"

static const cli_help help = {
    "Usage: dpr tune [OPTION]...\n"
    "Measures the strategies that the planner chooses among, on this machine's GPU and CPU, and writes the times to\n"
    "a file of wisdom. Every program that uses dpr reads it, and chooses by what was measured.\n"
    "\n"
    "Examples:\n"
    "  dpr tune                                     sums, maxima and their indices of three types: a minute\n"
    "  dpr tune --quick                             ten seconds\n"
    "  dpr tune -o all -t all -b 1h                 everything\n"
    "  dpr tune -d cpu -O wisdom && DPR_WISDOM=wisdom dpr plan -d cpu -n 2^20\n",
    NULL,
    "A case is not measured again if the file has the times of all its strategies, unless --again is given. So a\n"
    "tuning that was interrupted or ran out of time goes on where it stopped. For each kind of call (graphs before\n"
    "blocking calls), every fourth size of all operations and types comes first, then the sizes between them. Times\n"
    "that were measured on another machine, or with another driver, stay in the file and are not used.\n"
    "\n"
    "Calls of one operation on one array are tuned. Segments, axes, runs of equal keys and several operations in\n"
    "one pass are not: the planner predicts their times.\n"
    "\n"
    "The file is the one in DPR_WISDOM; without that variable it is $XDG_STATE_HOME/dpr/wisdom, or\n"
    "~/.local/state/dpr/wisdom. Times on a GPU are those of graphs, for calls in a stream, and of calls that block;\n"
    "times on the CPU are of calls. With pinned memory, GPU strategies are measured in graphs, and strategies of\n"
    "both in calls that block. For managed memory the planner uses the times of device memory. Unless --device\n"
    "names a GPU or --memory a kind, sums of f64 are measured first, whatever --op, --dtype and --count are. They\n"
    "tell how fast the CPU reads memory and how long its threads take to begin; without them, predictions assume\n"
    "both.\n"
    "Caches are cold in all measurements. Numbers and times as in 'dpr bench', and what is disturbed is measured\n"
    "again as there.\n"
    "\n"
    "Exit status: 0 if all went well, even if the budget was spent before all was measured; 1 if a strategy failed\n"
    "or gave a wrong result, if --memory is device or pinned and there is no GPU, or if the file is refused or\n"
    "cannot be written; 2 if the command line makes no sense; 130 after an interrupt (Ctrl-C), 143 after SIGTERM\n"
    "and 129 after SIGHUP, all of which save what was measured.\n"};

/* What is measured, in this order: sums that show how fast the CPU reads memory and how long its threads take to begin,
 * unless a GPU or a kind of memory is named; the GPU with device memory, the CPU with pageable memory, and both with
 * pinned memory. */
enum { FIGURES_PART, GPU_PART, CPU_PART, PINNED_PART, PARTS };

typedef struct tuning {
    bench_asked asked;
    bench_results results[PARTS];
    const char *path; /* NULL: the user's file */
    int quick, again;
    int part;               /* that is measured */
    const bench_walk *walk; /* of that part */
    size_t seen;            /* rows of the part that were learned from */
    double saved;           /* when the file was last written */
    int code;               /* of writing it meanwhile */
    /* of the planner's choices when the part began (the CPU's with its figures known), and by all times that were
     * learned */
    bench_regrets before, after;
} tuning;

static int parse(int argc, char **argv, tuning *t) {
    bench_asked *a = &t->asked;
    const axis_names dtypes = {cli_dtype_name, &a->dtypes};
    axis_names given = dtypes;
    const cli_option options[] = {
        {'d', "device", "DEVICE", cli_device, &a->device,
         "auto (default: a GPU, if there is one, and the CPU),\ncpu, or a GPU's number"},
        {'o', "op", "OP,...", asked_take_ops, &a->ops, "operations, or all (default: sum,max,argmax)"},
        {'t', "dtype", "TYPE,...", axis_take_names, &given, "types of elements, or all (default: f32,f64,i32)"},
        {'n', "count", "N,...", axis_parse_counts, &a->counts,
         "numbers of elements, ranges LOW:HIGH:xFACTOR\n(default: 2^8:2^28:x4 in device memory, 2^4:2^24:x4 in\n"
         "host and pinned memory)"},
        {0, "memory", "KIND", cli_memory, &a->memory, "only this kind: device, host or pinned (default: all)"},
        {'b', "budget", "TIME", axis_parse_seconds, &a->budget, "for all together: 60s (default), 5m, 1h"},
        {0, "quick", NULL, cli_flag, &t->quick, "ten seconds, if there is no --budget"},
        {0, "again", NULL, cli_flag, &t->again, "also what the file has already"},
        {'O', "output", "FILE", cli_file, &t->path, "the file of wisdom (default: DPR_WISDOM, or the user's)"},
        {'q', "quiet", NULL, cli_flag, &a->quiet, "no live line and no notes"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, NULL);
}

/* Whether a kind of memory is tuned. */
static int is_asked(const tuning *t, dpr_memory memory) {
    return t->asked.memory == DPR_MEMORY_AUTO || t->asked.memory == memory;
}

static int has_gpu(const tuning *t) {
    return t->asked.device >= 0 || (t->asked.device == DPR_DEVICE_AUTO && dpr_device_count() > 0);
}

static int check_memory(const tuning *t) {
    const bench_asked *a = &t->asked;
    if (a->memory == DPR_MEMORY_MANAGED)
        return cli_usage(
            "--memory: managed memory is not measured, because the planner uses the times of device memory "
            "for it; use --memory device");
    if (a->memory == DPR_MEMORY_HOST && a->device >= 0)
        return cli_usage("--memory: host memory is the CPU's, and --device is a GPU");
    const int is_a_gpus = a->memory == DPR_MEMORY_DEVICE || a->memory == DPR_MEMORY_PINNED;
    return is_a_gpus && !has_gpu(t) ? walk_refuse_memory(a) : CLI_OK;
}

/* Checks --count, --op and --dtype. CLI_OK, or CLI_USAGE after a message. */
static int check_problems(const bench_asked *a) {
    int pairs = 0;
    for (int i = 0; i < a->counts.n; i++)
        if (a->counts.at[i] == 0)
            return cli_usage("--count: 0 elements take no time to measure");
    for (int i = 0; i < a->ops.n; i++) {
        char text[OPS_TEXT];
        if (a->ops.at[i].n > 1)
            return cli_usage("--op: '%s' has several operations in one pass; only single operations are tuned",
                             ops_name(&a->ops.at[i], text));
        for (size_t dtype = 0; dtype < dpr_dtype_count(); dtype++)
            pairs += axis_has(a->dtypes, dtype) && dpr_supported(a->ops.at[i].at[0], dpr_dtype_at(dtype));
    }
    return pairs ? CLI_OK : cli_usage("--op and --dtype: none of these operations exists for any of these types");
}

/* Defaults take the place of what is not asked for. */
static void put_defaults(tuning *t) {
    bench_asked *a = &t->asked;
    if (a->ops.n == 0)
        (void)asked_take_ops("sum,max,argmax", &a->ops);
    if (!a->dtypes)
        a->dtypes = axis_one(DPR_ROW(DPR_F32)) | axis_one(DPR_ROW(DPR_F64)) | axis_one(DPR_ROW(DPR_I32));
    a->caches = axis_one(BENCH_COLD);
    if (a->budget <= 0)
        a->budget = t->quick ? 10 : 60;
}

/* ---- What is measured -------------------------------------------------------------------------------------------- */

/* Kinds of memory in which an array takes a device the same time as that of the case. Managed memory moves to the GPU
 * that reads it, and is read there as device memory. */
static const dpr_memory *kinds_of(const bench_walk *w) {
    static const dpr_memory device[] = {DPR_MEMORY_DEVICE, DPR_MEMORY_MANAGED, DPR_MEMORY_AUTO},
                            pinned[] = {DPR_MEMORY_PINNED, DPR_MEMORY_AUTO},
                            host[] = {DPR_MEMORY_HOST, DPR_MEMORY_AUTO};
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return host;
    return w->asked->memory == DPR_MEMORY_PINNED ? pinned : device;
}

/* The problem of a case, with a strategy. */
static dpr_problem problem_of(const bench_case *at, const char *strategy, dpr_memory memory, dpr_options *options) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    const dpr_options defaults = DPR_OPTIONS_INIT;
    *options = defaults;
    options->strategy = strategy;
    problem.op = at->ops.at[0];
    problem.dtype = at->dtype;
    problem.count = (size_t)at->count;
    problem.memory = memory;
    problem.options = options;
    return problem;
}

static int is_candidate(size_t i, int on_gpu) {
    const dpr_strategy_info info = cli_strategy_at(i);
    return info.role == DPR_ROLE_CANDIDATE && info.on_gpu == on_gpu;
}

/* Whether strategy i is measured in calls of this mode, provided that it can run the case. In calls that block and read
 * pinned memory, strategies of both the GPU and the CPU are. The figures leave out cpu.serial, which would take seconds
 * for the longest sum. */
static int takes_part(const tuning *t, size_t i, bench_mode mode) {
    const int on_gpu = dpr_ctx_device(t->walk->ctx) != DPR_DEVICE_CPU;
    return (is_candidate(i, on_gpu) || (t->part == PINNED_PART && mode == BENCH_BLOCKING && is_candidate(i, 0)))
           && !(t->part == FIGURES_PART && strcmp(dpr_strategy_name(i), "cpu.serial") == 0);
}

/* Whether a strategy, which can run the case, lacks its time with some kind of memory. */
static int lacks_time(const bench_walk *w, const bench_case *at, const char *strategy) {
    for (const dpr_memory *memory = kinds_of(w); *memory != DPR_MEMORY_AUTO; memory++) {
        dpr_options options;
        const dpr_problem problem = problem_of(at, strategy, *memory, &options);
        double seconds;
        if (dpr_wisdom_find(dpr_ctx_machine(w->ctx), &problem, at->mode != BENCH_BLOCKING, &seconds) == DPR_ERR_WISDOM)
            return 1;
    }
    return 0;
}

/* Whether some strategy can run the case and has no time yet. */
static int wants(void *user, const bench_case *at) {
    const tuning *t = user;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (takes_part(t, i, at->mode) && (t->again || lacks_time(t->walk, at, dpr_strategy_name(i))))
            return 1;
    return 0;
}

/* Every fourth count of all operations and types comes first in each mode, so that a budget which is soon spent is
 * spent evenly. More passes would take longer, because each fills memory with the data of every operation and type. */
static int is_later(void *user, const bench_case *at) {
    const axis_counts *counts = &((const tuning *)user)->walk->asked->counts;
    int i = 0;
    while (counts->at[i] != at->count)
        i++;
    return i % 4 != 0;
}

/* All candidates that can run the case. */
static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    char unused[BENCH_WHY];
    if (walk_choose(w, why) != 0)
        return -1;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (takes_part(w->user, i, w->at.mode))
            (void)walk_add(w, dpr_strategy_name(i), 0, unused);
    return w->n > 0 ? 0 : -1;
}

/* ---- What is learned --------------------------------------------------------------------------------------------- */

/* Adds a row's time to the wisdom. */
static dpr_status learn(const bench_walk *w, const bench_row *row) {
    dpr_status status = DPR_OK;
    for (const dpr_memory *memory = kinds_of(w); *memory != DPR_MEMORY_AUTO && status == DPR_OK; memory++) {
        dpr_options options;
        const dpr_problem problem = problem_of(&row->at, row->strategy, *memory, &options);
        status =
            dpr_wisdom_add(dpr_ctx_machine(w->ctx), &problem, row->at.mode != BENCH_BLOCKING, 1e-6 * row->us.median);
        if (status == DPR_ERR_STRATEGY_UNABLE && memory != kinds_of(w))
            status = DPR_OK; /* coop.bulk reads no managed memory */
    }
    return status;
}

/* Whether the machine was slower around row i of a part than it usually was. The few rows of figures, which differ most
 * in what they read, do not show what is usual. */
static int is_slow(const tuning *t, int part, size_t i) {
    return part != FIGURES_PART && results_slower_than_usual(&t->results[part], i);
}

/* Learns from the rows that are new. */
static int learn_more(tuning *t, const bench_walk *w) {
    const bench_results *r = w->results;
    for (size_t i = t->seen; i < r->row_count; i++)
        if (results_right(&r->rows[i]) && !is_slow(t, t->part, i) && learn(w, &r->rows[i]) != DPR_OK)
            return cli_error("%s", dpr_last_error());
    t->seen = r->row_count;
    return CLI_OK;
}

/* Marks what the planner chooses by what was learned, which a new context knows. Whether there is such a context. */
static int choose_again(const bench_walk *w) {
    bench_results *r = w->results;
    dpr_ctx *ctx = NULL;
    if (r->row_count == 0)
        return 0;
    if (dpr_ctx_create(w->asked->device, &ctx) != DPR_OK) {
        if (!w->asked->quiet)
            cli_note("the choices by the new times are not known: %s", dpr_last_error());
        return 0;
    }
    for (size_t i = 0; i < r->row_count; i++) {
        bench_row *row = &r->rows[i];
        bench_caller c = caller_at(ctx, &row->at, NULL);
        row->chosen = caller_choose(&c, row->at.mode) == DPR_OK && strcmp(c.strategy, row->strategy) == 0;
    }
    dpr_ctx_destroy(ctx);
    return 1;
}

/* The number of right times that were taken while the machine was slower than usual (1) or was not (0). */
static size_t count_times(const tuning *t, int slower) {
    size_t n = 0;
    for (int i = 0; i < PARTS; i++)
        for (size_t k = 0; k < t->results[i].row_count; k++)
            n += results_right(&t->results[i].rows[k]) && is_slow(t, i, k) == slower;
    return n;
}

static int write_file(const tuning *t) {
    return dpr_wisdom_export(t->path) == DPR_OK ? CLI_OK : cli_error("%s", dpr_last_error());
}

/* Writes the file once in some seconds, in case that the program is killed or the device hangs. Choices do not change
 * by that, because a context keeps the wisdom that it began with. */
static void save(bench_walk *w) {
    static const double seconds = 5;
    tuning *t = w->user;
    if (t->code != CLI_OK || seconds_now() - t->saved < seconds)
        return;
    t->code = learn_more(t, w);
    if (t->code == CLI_OK)
        t->code = write_file(t);
    if (t->code != CLI_OK)
        w->results->ended = "the file cannot be written";
    t->saved = seconds_now();
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

/* Sums of an array of which each thread has a part of its own, and of one that the caches do not hold; of the type
 * whose sums take the least arithmetic for a byte. */
static void put_figures(const dpr_machine *machine, bench_asked *asked) {
    const uint64_t cache = (uint64_t)machine_value(machine, "cpu.cache_bytes");
    const uint64_t parts = (uint64_t)machine_value(machine, "cpu.threads") * (DPR_POOL_PART_BYTES / sizeof(double));
    uint64_t count = UINT64_C(1) << 23;
    while (count <= parts || count * sizeof(double) <= 2 * cache)
        count *= 2;
    (void)asked_take_ops("sum", &asked->ops);
    asked->dtypes = axis_one(DPR_ROW(DPR_F64));
    asked->counts = (axis_counts){2, {parts, count}};
}

static void put_counts(int part, axis_counts *out) {
    static const char *const of[PARTS] = {
        [GPU_PART] = "2^8:2^28:x4", [CPU_PART] = "2^4:2^24:x4", [PINNED_PART] = "2^4:2^24:x4"};
    (void)axis_parse_counts(of[part], out);
}

/* Measures one part within its budget, and learns. */
static int tune_part(tuning *t, int part, int device, double budget) {
    static const axis_set graph = UINT64_C(1) << BENCH_GRAPH, blocking = UINT64_C(1) << BENCH_BLOCKING;
    static const axis_set modes[] = {[FIGURES_PART] = blocking,
                                     [GPU_PART] = graph | blocking,
                                     [CPU_PART] = blocking,
                                     [PINNED_PART] = graph | blocking};
    static const char *const names[] = {[FIGURES_PART] = "CPU, rates of memory and the time that threads take to begin",
                                        [GPU_PART] = "GPU",
                                        [CPU_PART] = "CPU",
                                        [PINNED_PART] = "pinned memory"};
    bench_results *results = &t->results[part];
    bench_asked asked = t->asked;
    bench_walk w = {.asked = &asked,
                    .results = results,
                    .wants = wants,
                    .is_later = is_later,
                    .prepare = prepare,
                    .after = save,
                    .user = t,
                    .without_launches = 1};
    asked.device = device;
    asked.budget = budget;
    asked.memory = part == PINNED_PART ? DPR_MEMORY_PINNED : DPR_MEMORY_AUTO;
    asked.modes = modes[part];
    int code = walk_open(&w);
    if (code == CLI_OK && part == FIGURES_PART)
        put_figures(dpr_ctx_machine(w.cpu), &asked);
    else if (code == CLI_OK && asked.counts.n == 0)
        put_counts(part, &asked.counts);
    t->part = part;
    t->walk = &w;
    t->seen = 0;
    t->saved = seconds_now();
    if (code == CLI_OK && walk_cases(&w) == 0) {
        if (!asked.quiet)
            cli_note("%s: all of this is known; --again measures it anew", names[part]);
    } else if (code == CLI_OK)
        code = walk_run(&w);
    t->seen = 0;                           /* rows may have been measured again, or no longer count as slow */
    const int learned = learn_more(t, &w); /* also what was measured before a failure */
    results_regrets(results, &t->before);
    if (choose_again(&w))
        results_regrets(results, &t->after);
    code = code != CLI_OK ? code : learned != CLI_OK ? learned : t->code;
    walk_close(&w);
    t->walk = NULL;
    return code;
}

static int measure(tuning *t) {
    /* What the figures do not need is handed on. To fill memory for them takes seconds where the caches are large. */
    static const double shares[PARTS] = {[FIGURES_PART] = 2, [GPU_PART] = 3, [CPU_PART] = 2, [PINNED_PART] = 2};
    const double end = seconds_now() + t->asked.budget;
    const int device = t->asked.device, gpu = device < 0 ? 0 : device;
    const int has[PARTS] = {[FIGURES_PART] = device < 0 && t->asked.memory == DPR_MEMORY_AUTO,
                            [GPU_PART] = has_gpu(t) && is_asked(t, DPR_MEMORY_DEVICE),
                            [CPU_PART] = device < 0 && is_asked(t, DPR_MEMORY_HOST),
                            [PINNED_PART] = has_gpu(t) && is_asked(t, DPR_MEMORY_PINNED)};
    double left = 0; /* shares of the parts that are not measured yet */
    int code = CLI_OK;
    for (int i = 0; i < PARTS; i++)
        left += has[i] ? shares[i] : 0;
    for (int i = 0; i < PARTS && code == CLI_OK && !asked_stopped(&t->asked); i++) {
        const int on_gpu = i == GPU_PART || i == PINNED_PART;
        if (!has[i])
            continue;
        code = tune_part(t, i, on_gpu ? gpu : DPR_DEVICE_CPU, fmax(0, end - seconds_now()) * shares[i] / left);
        left -= shares[i];
    }
    return code;
}

/* The path of the file that is written. */
static int find_path(tuning *t, char *path, size_t size) {
    if (t->path)
        return snprintf(path, size, "%s", t->path) < (int)size ? CLI_OK : cli_usage("--output: the path is too long");
    return dpr_wisdom_path(path, &size) == DPR_OK ? CLI_OK : cli_error("%s", dpr_last_error());
}

/* A file that is there should be understood before anything is measured. Other files that the process reads do not
 * count: what they have would not be measured, and be missing where this file is used alone. */
static int read_file(const char *path) {
    dpr_wisdom_forget();
    const dpr_status status = dpr_wisdom_import(path);
    FILE *there = status == DPR_ERR_FILE ? fopen(path, "r") : NULL;
    if (there)
        fclose(there);
    if (status == DPR_OK || (status == DPR_ERR_FILE && !there))
        return CLI_OK;
    return cli_error(status == DPR_ERR_WISDOM ? "%s; delete or rename the file to begin a new one" : "%s",
                     dpr_last_error());
}

static void say_regrets(const tuning *t) {
    const bench_regrets *before = &t->before, *after = &t->after;
    char name[RESULTS_TEXT];
    if (before->cases > 0)
        printf(
            "The planner's choices before took %.1f %% longer than the best strategy, as a geometric mean of %d, and "
            "at worst %.1f %% (%s).\n",
            100 * results_mean_regret(before), before->cases, 100 * before->worst.fraction,
            results_name(&before->worst.at, name));
    if (after->cases > 0)
        printf(
            "Its choices by these times take %.1f %% longer, as a geometric mean of %d, and at worst %.1f %% (%s).\n",
            100 * results_mean_regret(after), after->cases, 100 * after->worst.fraction,
            results_name(&after->worst.at, name));
}

static void summarise(const tuning *t, const char *path) {
    const size_t slower = count_times(t, 1);
    const bench_omission *first = NULL;
    size_t left_out = 0;
    char shown[4096];
    for (int i = 0; i < PARTS; i++) {
        left_out += t->results[i].omission_count;
        first = first || !t->results[i].omission_count ? first : t->results[i].omissions;
    }
    snprintf(shown, sizeof shown, "%s", path);
    defuse(shown);
    printf("%zu times were measured, and are in %s\n", count_times(t, 0), shown);
    say_regrets(t);
    if (slower > 0 && !t->asked.quiet)
        cli_note("%zu times are not kept, because the machine was slower than usual meanwhile: other programs, or heat",
                 slower);
    if (first && !t->asked.quiet)
        cli_note("%zu combination%s left out, the first because %s; run it again to go on", left_out,
                 left_out == 1 ? " was" : "s were", first->why);
}

int command_tune(int argc, char **argv) {
    static tuning t;
    char path[4096];
    outfile none = {.name = NULL}; /* there is no report to keep up to date */
    t.asked = (bench_asked){.device = DPR_DEVICE_AUTO, .accuracy = 0.01, .file = &none};
    int code = parse(argc, argv, &t);
    if (code != CLI_GO_ON)
        return code;
    put_defaults(&t);
    code = check_problems(&t.asked);
    if (code == CLI_OK)
        code = check_memory(&t);
    if (code == CLI_OK)
        code = cli_check_device(t.asked.device);
    if (code != CLI_OK)
        return code;
    code = find_path(&t, path, sizeof path);
    if (code == CLI_OK)
        code = read_file(path);
    if (code == CLI_OK)
        code = write_file(&t); /* whether that works should be known before anything is measured */
    if (code != CLI_OK)
        return code;
    asked_catch_signals(&t.asked);
    code = measure(&t);
    if (t.code == CLI_OK && count_times(&t, 0) > 0 && write_file(&t) != CLI_OK)
        code = CLI_FAILED;
    else if (code == CLI_OK)
        summarise(&t, path);
    if (code == CLI_OK && asked_stopped(&t.asked))
        code = CLI_SIGNAL + *t.asked.stop;
    for (int i = 0; i < PARTS; i++)
        results_free(&t.results[i]);
    return code;
}
