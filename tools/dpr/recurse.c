#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "cli.h"
#include "commands.h"
#include "dpr_commit.h"
#include "example.h"
#include "outfile.h"
#include "report.h"
#include "statistics.h"

/* Runs of an engine: as many as fit SECONDS, but at least one and at most RUNS. Of short ones, whose times scatter,
 * there are up to MANY_RUNS, while all, with their checks, take less than SHORT seconds. The median of their times
 * counts. Runs that end within WARM seconds do not count: a GPU without work lowers its clock, and needs some time to
 * raise it. If the library chooses the engine, as many come before as fit TRYING seconds, at most TRIES, in which it
 * tries them. */
enum { RUNS = 9, TRIES = 32, MANY_RUNS = 500 };
static const double SECONDS = 1.0, SHORT = 0.1, TRYING = 4.0, WARM = 0.03;

typedef struct request {
    const char *engine;                  /* a name, "all", or NULL: the library chooses */
    const char *input, *picture, *trace; /* files, or NULL */
    uint64_t size;                       /* if has_size is 0, the example's own */
    uint64_t rank, cutoff;
    int device, threads, list, json, has_size, has_rank, nested;
} request;

static void print_examples(void) {
    const recursion_example *e;
    puts("\nRecursions:");
    for (size_t i = 0; (e = recursion_example_at(i)); i++) {
        printf("%-11s %s\n%-11s --size: %s, %" PRIu64 " to %" PRIu64 " (default: %" PRIu64 ")%s\n", e->name, e->text,
               "", e->size_text, e->least, e->most, e->size, e->draws ? "; -O draws it" : "");
        if (e->ranks)
            printf("%-11s --rank: its place in ascending order; 0 is the smallest (default: the median)\n", "");
        if (e->input_text)
            printf("%-11s --input: %s\n", "", e->input_text);
    }
    puts("\nEngines:");
    for (size_t i = 0; dpr_engine_name(i); i++)
        printf("%-11s %s\n", dpr_engine_name(i), dpr_engine_text(i));
}

static const cli_help help = {
    "Usage: dpr recurse NAME [OPTION]...\n"
    "Runs an example recursion, checks its answer, and shows what its engines take for it.\n"
    "examples/recursions has a file for each.\n"
    "\n"
    "Examples:\n"
    "  dpr recurse --list                        which recursions and engines there are\n"
    "  dpr recurse fib                           the Fibonacci number 35\n"
    "  dpr recurse nqueens --size 11 --engine all  every engine that can run here\n"
    "  dpr recurse mandelbrot -O set.png         a picture of the result\n"
    "  dpr recurse uts --trace uts.json          what each worker did when, for Perfetto\n",
    print_examples,
    "levels: how many levels of the tree were divided before lanes solved the sub-trees below, and\n"
    "again where few lanes had any; widest: the most tasks of one such level. A '-' is shown for\n"
    "what is not known, such as these on the CPU, and for an engine that cannot run here or has\n"
    "failed.\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static const char *engine_name(size_t i) {
    static const char *const others[] = {"all", "auto", NULL};
    const size_t n = dpr_engine_count();
    return i < n ? dpr_engine_name(i) : others[i - n];
}

static int take_engine(const char *text, void *out) {
    int i = 0;
    const int code = cli_choice(text, engine_name, &i);
    if (code == CLI_OK)
        *(const char **)out = strcmp(engine_name((size_t)i), "auto") == 0 ? NULL : engine_name((size_t)i);
    return code;
}

static int take_threads(const char *text, void *out) {
    uint64_t n = 0;
    const int code = cli_count(text, &n);
    if (code == CLI_OK && (n == 0 || n > 1024))
        return cli_usage("'%s' is no number of threads from 1 to 1024", text);
    *(int *)out = (int)n;
    return code;
}

static int take_size(const char *text, void *out) {
    request *r = out;
    r->has_size = 1;
    return cli_count(text, &r->size);
}

static int take_cutoff(const char *text, void *out) {
    if (strcmp(text, "none") != 0)
        return cli_count(text, out);
    *(uint64_t *)out = DPR_NO_CUTOFF;
    return CLI_OK;
}

static int take_rank(const char *text, void *out) {
    request *r = out;
    r->has_rank = 1;
    return cli_count(text, &r->rank);
}

static int parse(int argc, char **argv, request *r, int *first) {
    const cli_option options[] = {
        {'e', "engine", "NAME", take_engine, &r->engine,
         "an engine, 'all' to compare them, or 'auto' to let\nthe library choose (default)"},
        {0, "nested", NULL, cli_flag, &r->nested,
         "with 'auto', the library may also choose engines\nwhose kernels launch kernels or graphs"},
        {'n', "size", "N", take_size, r, "the size of the problem (see below)"},
        {0, "rank", "K", take_rank, r, "find element K in ascending order; 0 is the smallest\n(select)"},
        {'d', "device", "DEVICE", cli_device, &r->device, "auto (default), cpu, or a GPU's number"},
        {0, "threads", "N", take_threads, &r->threads,
         "threads of engine cpu (default: one for each core\nthat the process may use, or DPR_NUM_THREADS)"},
        {0, "cutoff", "N", take_cutoff, &r->cutoff,
         "tasks that cost at most N are solved by one thread\nat once, where a policy has serial() (nqueens);\n0 "
         "(default): as the policy says; none: no cutoff"},
        {0, "input", "FILE", cli_file, &r->input, "read the problem from there, without --size (expression)"},
        {'O', "output", "FILE", cli_file, &r->picture, "draw the result there, as a PNG file"},
        {0, "trace", "FILE", cli_file, &r->trace,
         "after measuring, run once more and write a timeline\nof threads or blocks there, for ui.perfetto.dev"},
        {'l', "list", NULL, cli_flag, &r->list, "list recursions and engines, and do nothing else"},
        {0, "json", NULL, cli_flag, &r->json, "one JSON document"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, first);
}

static const char *example_name(size_t i) {
    const recursion_example *e = recursion_example_at(i);
    return e ? e->name : NULL;
}

/* ---- Measuring -------------------------------------------------------------------------------------------------- */

/* The runs of one engine. */
typedef struct measured {
    dpr_status status;
    dpr_recursion_report report; /* of the last run */
    recursion_answer answer;
    bench_summary seconds;
    char error[256]; /* a sentence, if status is not DPR_OK */
} measured;

static dpr_recursion_options options_of(const request *r, const char *engine) {
    dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    options.engine = engine;
    options.threads = r->threads;
    options.cutoff = r->cutoff;
    options.allow_nested = r->nested;
    return options;
}

/* Whether another run fits, after so many since `began`, which took `spent` seconds without their checks. */
static int fits(int trying, int runs, double spent, double began) {
    if (trying)
        return runs < TRIES && spent < TRYING;
    return runs < RUNS ? spent < SECONDS : runs < MANY_RUNS && seconds_now() - began < SHORT;
}

static recursion_request asked_of(const request *r, const dpr_recursion_options *options) {
    return (recursion_request){
        .size = r->size, .options = options, .input = r->input, .rank = r->rank, .has_rank = r->has_rank};
}

/* Why a run has failed. */
static const char *reason_of(const recursion_answer *answer) {
    return answer->failed ? answer->text : dpr_last_error();
}

/* As many runs as fit; `trying` is 1 while the library tries engines. `last` is the report of the run before, or an
 * empty one. */
static measured measure(dpr_ctx *ctx, const recursion_example *e, const request *r, const char *engine,
                        dpr_recursion_report last, int trying) {
    const dpr_recursion_options options = options_of(r, engine);
    recursion_request asked = asked_of(r, &options);
    const double warm = seconds_now() + (trying ? 0 : WARM);
    double seconds[MANY_RUNS], spent = 0;
    int runs = 0;
    measured m = {.report = last};
    asked.picture = r->picture;
    do {
        m.status = e->run(ctx, &asked, &m.report, &m.answer);
        if (m.status != DPR_OK) {
            (void)snprintf(m.error, sizeof m.error, "%s", reason_of(&m.answer));
            return m;
        }
        asked.picture = NULL;
        if (seconds_now() < warm)
            continue;
        seconds[runs++] = m.report.seconds;
        spent += m.report.seconds;
    } while (fits(trying, runs, spent, warm));
    m.seconds = bench_summarise(seconds, runs);
    return m;
}

/* The same, after the library has tried its engines if none is named. */
static measured measure_settled(dpr_ctx *ctx, const recursion_example *e, const request *r, const char *engine) {
    const dpr_recursion_report none = DPR_RECURSION_REPORT_INIT;
    const measured m = measure(ctx, e, r, engine, none, !engine);
    return engine || m.status != DPR_OK ? m : measure(ctx, e, r, engine, m.report, 0);
}

/* What other engines are compared with; seconds are 0 if it did not run. */
typedef struct yardsticks {
    double cpu, naive;
} yardsticks;

/* Whether the engine runs in a context of a GPU alone, which the request does not have. */
static int is_left_out(const measured *m) {
    return m->status == DPR_ERR_STRATEGY_UNABLE;
}

/* Whether no engine takes the request, because of an option or of what is in a file. */
static int is_refused(const measured *m) {
    return m->status == DPR_ERR_INVALID_OPTION;
}

/* What is not known is left out. */
static void add_levels(cJSON *row, const dpr_recursion_report *report) {
    if (report->levels > 0)
        report_add(row, "levels=%lu", report->levels);
    if (report->widest > 0)
        report_add(row, "widest=%lu", report->widest);
    if (report->rounds > 0)
        report_add(row, "rounds=%lu", report->rounds);
}

static void add_row(cJSON *list, const measured *m, const char *engine, yardsticks than) {
    cJSON *row = report_row(list);
    const bench_summary *s = &m->seconds;
    const double rate = s->median > 0 ? (double)m->report.tasks / s->median : 0;
    report_add(row, "engine=%s", engine ? engine : "auto");
    if (m->status != DPR_OK) {
        report_add(row, "error=%s unable=%i", m->error, is_left_out(m));
        return;
    }
    report_add(row, "answer=%s right=%i seconds=%f tasks=%lu tasks_a_second=%g", m->answer.text, m->answer.right,
               s->median, m->report.tasks, rate);
    report_add(row, "samples=%d median_us=%g low_us=%g high_us=%g spread=%g", s->n, 1e6 * s->median, 1e6 * s->low,
               1e6 * s->high, s->spread);
    report_known(row, "over_cpu", than.cpu / s->median);
    report_known(row, "over_naive", than.naive / s->median);
    report_add(row, "ran=%s deepest=%lu launches=%lu handed_out=%lu serialised=%lu steals=%lu reason=%s",
               m->report.engine, m->report.deepest, m->report.launches, m->report.handed_out, m->report.serialised,
               m->report.steals, m->report.reason);
    add_levels(row, &m->report);
}

static const report_column columns[] = {{"engine", "engine", UNIT_LEFT},
                                        {"ran", "ran", UNIT_LEFT},
                                        {"seconds", "time", UNIT_SECONDS},
                                        {"tasks", "tasks", UNIT_NONE},
                                        {"tasks_a_second", "tasks/s", UNIT_DIGITS},
                                        {"over_cpu", "over cpu", UNIT_DIGITS},
                                        {"over_naive", "over naive", UNIT_DIGITS},
                                        {"launches", "launches", UNIT_NONE},
                                        {"handed_out", "handed out", UNIT_NONE},
                                        {"deepest", "deepest", UNIT_NONE},
                                        {"levels", "levels", UNIT_NONE},
                                        {"widest", "widest", UNIT_NONE},
                                        {0}};

/* Complains of a failed run, and of a wrong answer. */
static int check(const recursion_example *e, const request *r, const measured *m) {
    if (is_refused(m) && !m->answer.failed)
        return r->cutoff ? cli_usage("--cutoff: the policy of %s has no serial()", e->name)
                         : cli_usage("%s: %s", e->name, m->error);
    if (m->status != DPR_OK)
        return cli_error("%s: %s", e->name, m->error);
    if (!m->answer.right)
        return cli_error("%s: engine %s: the answer is wrong: %s", e->name, m->report.engine, m->answer.text);
    return CLI_OK;
}

/* Runs every engine that can, and then what the library chooses. The list stays empty if the request is refused. */
static int run_all(dpr_ctx *ctx, const recursion_example *e, const request *r, cJSON *list) {
    const size_t n = dpr_engine_count();
    measured *of = calloc(n + 1, sizeof *of);
    yardsticks than = {0, 0};
    int code = CLI_OK, drawn = 0;
    for (size_t i = 0; of && i <= n; i++) {
        const char *engine = dpr_engine_name(i);
        request one = *r;
        one.picture = drawn ? NULL : r->picture; /* every engine would draw the same */
        of[i] = measure_settled(ctx, e, &one, engine);
        if (is_refused(&of[i])) {
            code = check(e, r, &of[i]);
            free(of);
            return code;
        }
        drawn |= of[i].status == DPR_OK;
        if (!is_left_out(&of[i]) && check(e, r, &of[i]) != CLI_OK)
            code = CLI_FAILED;
        if (engine && strcmp(engine, "cpu") == 0)
            than.cpu = of[i].seconds.median;
        if (engine && strcmp(engine, "naive") == 0)
            than.naive = of[i].seconds.median;
    }
    for (size_t i = 0; of && i <= n; i++)
        add_row(list, &of[i], dpr_engine_name(i), than);
    free(of);
    return of ? code : cli_error("out of memory");
}

static int run_engines(dpr_ctx *ctx, const recursion_example *e, const request *r, cJSON *list) {
    const yardsticks none = {0, 0};
    if (r->engine && strcmp(r->engine, "all") == 0)
        return run_all(ctx, e, r, list);
    const measured m = measure_settled(ctx, e, r, r->engine);
    if (!is_refused(&m))
        add_row(list, &m, r->engine, none);
    return check(e, r, &m);
}

/* ---- The timeline ----------------------------------------------------------------------------------------------- */

/* Events of one engine, as Chrome's trace event format has them. */
typedef struct timeline {
    cJSON *events;
    int number;                         /* of the engine */
    const dpr_recursion_report *before; /* what was run before, for examples of several runs */
} timeline;

static void add_event(void *user, const dpr_recursion_event *e) {
    const timeline *t = user;
    report_add(report_row(t->events), "name=%s ph=%s pid=%d tid=%lu ts=%f dur=%f", e->what, "X", t->number,
               (uint64_t)e->worker, 1e6 * (t->before->seconds + e->begin), 1e6 * (e->end - e->begin));
}

static void add_name(const timeline *t, const char *engine) {
    cJSON *row = report_row(t->events);
    report_add(row, "name=%s ph=%s pid=%d", "process_name", "M", t->number);
    report_add(cJSON_AddObjectToObject(row, "args"), "name=%s", engine);
}

/* Runs an engine once more. */
static dpr_status trace_engine(dpr_ctx *ctx, const recursion_example *e, const request *r, const char *engine,
                               timeline *t, recursion_answer *answer) {
    dpr_recursion_options options = options_of(r, engine);
    dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    const recursion_request asked = asked_of(r, &options);
    options.trace = add_event;
    options.trace_user = t;
    t->before = &report;
    const dpr_status status = e->run(ctx, &asked, &report, answer);
    if (status == DPR_OK)
        add_name(t, report.engine);
    t->number++;
    return status;
}

static int write_trace(const timeline *t, const char *name) {
    char *text = cJSON_PrintUnformatted(t->events);
    FILE *file = text ? fopen(name, "w") : NULL;
    int failed = !file || fputs(text, file) < 0;
    if (file && fclose(file) != 0)
        failed = 1;
    free(text);
    return failed ? cli_error("the timeline '%s' cannot be written", name) : CLI_OK;
}

static int trace(dpr_ctx *ctx, const recursion_example *e, const request *r) {
    timeline t = {.events = cJSON_CreateArray()};
    recursion_answer answer = {0};
    if (r->engine && strcmp(r->engine, "all") == 0)
        for (size_t i = 0; i < dpr_engine_count(); i++)
            (void)trace_engine(ctx, e, r, dpr_engine_name(i), &t, &answer); /* those that cannot run are left out */
    else if (trace_engine(ctx, e, r, r->engine, &t, &answer) != DPR_OK)
        (void)cli_error("%s: %s", e->name, reason_of(&answer));
    const int code = cJSON_GetArraySize(t.events) > 0 ? write_trace(&t, r->trace) : CLI_FAILED;
    cJSON_Delete(t.events);
    return code;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

/* What was run, and where. */
static void add_heads(report_out *out, const dpr_ctx *ctx, const recursion_example *e, const request *r) {
    const int device = dpr_ctx_device(ctx);
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *machine;
    report_add(out->document, "benchmark=%s version=%s commit=%s recursion=%s", "dpr recurse", dpr_version(),
               DPR_COMMIT, e->name);
    if (r->input)
        report_add(out->document, "input=%s", r->input);
    else
        report_add(out->document, "size=%lu", r->size);
    if (r->has_rank)
        report_add(out->document, "rank=%lu", r->rank);
    if (r->cutoff == DPR_NO_CUTOFF)
        report_add(out->document, "cutoff=%s", "none");
    else if (r->cutoff)
        report_add(out->document, "cutoff=%lu", r->cutoff);
    if (r->threads)
        report_add(out->document, "threads=%d", r->threads);
    if (r->nested)
        report_add(out->document, "nested=%s", "allowed");
    if (dpr_machine_read(device, 0, &machine) != DPR_OK)
        return;
    (void)dpr_machine_describe(machine, &info);
    report_add(cJSON_AddObjectToObject(out->document, "device"), "name=%s cpu=%s",
               device == DPR_DEVICE_CPU ? info.cpu_name : info.gpu_name, info.cpu_name);
    dpr_machine_destroy(machine);
}

/* Why the library chose its engine, and why engines cannot run here. */
static void print_reasons(report_out *out, const cJSON *list) {
    const cJSON *row;
    cJSON_ArrayForEach(row, list) {
        const char *engine = cJSON_GetObjectItem(row, "engine")->valuestring;
        if (cJSON_IsTrue(cJSON_GetObjectItem(row, "unable")))
            report_text(out, REPORT_NOTE, "%s", cJSON_GetObjectItem(row, "error")->valuestring);
        else if (strcmp(engine, "auto") == 0 && cJSON_GetObjectItem(row, "reason"))
            report_text(out, REPORT_NOTE, "auto: engine %s, because %s", cJSON_GetObjectItem(row, "ran")->valuestring,
                        cJSON_GetObjectItem(row, "reason")->valuestring);
    }
}

static int print(report_out *out, const recursion_example *e, const cJSON *list) {
    const cJSON *answer = NULL, *row;
    cJSON_ArrayForEach(row, list) if (!answer) answer = cJSON_GetObjectItem(row, "answer");
    if (answer)
        report_text(out, REPORT_TITLE, "%s: %s", e->name, answer->valuestring);
    report_table(out, NULL, list, 0, columns);
    print_reasons(out, list);
    return report_end(out) == 0 ? CLI_OK : cli_error("out of memory");
}

/* Whether the file can be written, before anything is measured for it. NULL: there is none. */
static int try_file(const char *name) {
    outfile file = {.name = name};
    const int code = outfile_try(&file);
    outfile_abandon(&file);
    return code;
}

static int show(const recursion_example *e, const request *r) {
    dpr_ctx *ctx;
    if (try_file(r->picture) != CLI_OK || try_file(r->trace) != CLI_OK)
        return CLI_FAILED;
    if (cli_open_device(r->device, &ctx) != CLI_OK)
        return CLI_FAILED;
    report_out out = report_begin(stdout, r->json ? REPORT_JSON : REPORT_TABLE);
    add_heads(&out, ctx, e, r);
    cJSON *list = cJSON_AddArrayToObject(out.document, "engines");
    int code = run_engines(ctx, e, r, list);
    if (code == CLI_OK || cJSON_GetArraySize(list) > 0) {
        const int printed = print(&out, e, list);
        code = printed == CLI_OK ? code : printed;
    } else
        cJSON_Delete(out.document);
    if (r->trace && code == CLI_OK)
        code = trace(ctx, e, r);
    dpr_ctx_destroy(ctx);
    return code;
}

/* Whether the options go together with the example. CLI_OK, or CLI_USAGE after a message. */
static int check_request(const recursion_example *e, const request *r) {
    if (r->size < e->least || r->size > e->most)
        return cli_usage("--size: %s has sizes from %" PRIu64 " to %" PRIu64, e->name, e->least, e->most);
    if (r->input && !e->input_text)
        return cli_usage("--input: %s reads no file", e->name);
    if (r->input && r->has_size)
        return cli_usage("--size and --input exclude each other, because the problem is in the file");
    if (r->has_rank && !e->ranks)
        return cli_usage("--rank: %s looks for no element", e->name);
    if (r->has_rank && r->rank >= r->size)
        return cli_usage("--rank: there are %" PRIu64 " elements, so K is at most %" PRIu64, r->size, r->size - 1);
    if (r->picture && !e->draws)
        return cli_usage("--output: %s draws no picture", e->name);
    if (r->picture && r->trace && strcmp(r->picture, r->trace) == 0)
        return cli_usage("--output and --trace both name '%s'", r->trace);
    return CLI_OK;
}

int command_recurse(int argc, char **argv) {
    request r = {.device = DPR_DEVICE_AUTO};
    int first = 0, i = 0, code = parse(argc, argv, &r, &first);
    if (code != CLI_GO_ON)
        return code;
    if (r.list) {
        if (argc != 2)
            return cli_usage("--list takes no recursion and no other option");
        print_examples();
        return CLI_OK;
    }
    if (argc - first != 1)
        return cli_usage(argc == first ? "no recursion is named; --list shows them"
                                       : "more than one recursion is named");
    code = cli_choice(argv[first], example_name, &i);
    if (code != CLI_OK)
        return code;
    const recursion_example *e = recursion_example_at((size_t)i);
    r.size = r.has_size ? r.size : e->size;
    code = check_request(e, &r);
    return code == CLI_OK ? show(e, &r) : code;
}
