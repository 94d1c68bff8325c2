#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_shapes.h"
#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "defuse.h"
#include "figures.h"
#include "listings.h"
#include "wisdom_files.h"

/* The longest text of a captured machine that is read, and of an explanation, in bytes. */
enum { TEXT = 64 * 1024 };

typedef struct request {
    dpr_problem problem;
    dpr_options options; /* of the problem */
    dpr_launch_options launch;
    dpr_segments segments;
    dpr_axes axes;
    shape_array array;  /* has the extents and strides of `axes` */
    bench_shapes asked; /* arrays of several dimensions, at most one */
    const char *machine_file;
    int device; /* or CLI_NO_DEVICE */
    int explain, json, has_room;
    uint64_t count; /* to explain */
} request;

static const cli_help help = {
    "Usage: dpr plan [OPTION]...\n"
    "Shows which strategy is chosen for which number of elements, and why. Nothing is run, except\n"
    "that short runs measure what launches cost if a strategy dp.* of this machine is asked for.\n"
    "\n"
    "Examples:\n"
    "  dpr plan                                     sum of f32 on this machine\n"
    "  dpr plan --op argmax --dtype f64 -n 1e6      why, for a million elements\n"
    "  dpr plan --memory host -n 64Ki               for an array in host memory\n"
    "  dpr plan --segments 1e6 -n 2^26              for a million segments of 2^26 elements in all\n"
    "  dpr plan --axes 4096x65536:0                 along the first axis of an array\n"
    "  dpr plan --by-key i32 -n 2^26                for runs of equal keys\n"
    "  dpr info --capture > this.caps               and elsewhere:\n"
    "  dpr plan --machine this.caps -n 2^28         as it would be on that machine\n",
    list_print_all,
    "Times are from call to result: predictions, corrected by what 'dpr tune' has measured. A '*' marks the choice.\n"
    "By key they are those of reducing the runs after they are found, which is not needed where one pass does both.\n"
    "\n"
    "Numbers: 1000, 1e6, 2^20, 64Ki (1024 each), 64K (1000 each).\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int take_count(const char *text, void *out) {
    request *r = out;
    r->explain = 1;
    return cli_count(text, &r->count);
}

static int take_keys(const char *text, void *out) {
    dpr_dtype *keys = out;
    const int code = cli_dtype(text, keys);
    if (code == CLI_OK && !dpr_supported(DPR_BAND, *keys))
        return cli_usage("'%s' is no type of keys, which are integers or truth values", text);
    return code;
}

static int take_segments(const char *text, void *out) {
    uint64_t *segments = out;
    const int code = cli_count(text, segments);
    return code != CLI_OK || *segments > 0 ? code : cli_usage("'%s' is no number of segments to plan for", text);
}

static int take_room(const char *text, void *out) {
    request *r = out;
    r->has_room = 1;
    return cli_count(text, &r->problem.room);
}

static int parse(int argc, char **argv, request *r) {
    const cli_option options[] = {
        {'o', "op", "OP", cli_op, &r->problem.op, "the operation (default: sum)"},
        {'t', "dtype", "TYPE", cli_dtype, &r->problem.dtype, "type of the elements (default: f32)"},
        {'n', "count", "N", take_count, r, "explain the choice for N elements"},
        {0, "segments", "N", take_segments, &r->segments.count, "the array has N segments, which offsets tell apart"},
        {0, "axes", "ARRAY", shapes_take_axes, &r->asked,
         "extents and the dimensions that are reduced, as in\n'dpr bench --axes': 16384x16384:1; N goes by --count"},
        {0, "by-key", "TYPE", take_keys, &r->problem.key_dtype, "each run of equal keys of this type has a result"},
        {0, "room", "RUNS", take_room, r, "with --by-key: room for RUNS results (default: one for each key)"},
        {0, "nan", "RULE", cli_nan, &r->options.nan, "propagate (default) or ignore"},
        {'s', "strategy", "NAME", cli_strategy, &r->options.strategy, "ask for a strategy by name"},
        {0, "block", "N", cli_block, &r->launch.block, "threads a block, of demonstrations: 32, 64, ... or 1024"},
        {0, "depth", "N", cli_depth, &r->launch.max_depth,
         "nested launches below each other, at most\n(default: as many as the GPU takes)"},
        {0, "memory", "KIND", cli_memory, &r->problem.memory,
         "where the array lies: device, host, pinned or managed\n(default: device if there is a GPU)"},
        {'d', "device", "DEVICE", cli_device, &r->device, "auto (default), cpu, or a GPU's number"},
        {'m', "machine", "FILE", cli_file, &r->machine_file, "another machine, as 'dpr info --capture' wrote it"},
        {0, "json", NULL, cli_flag, &r->json, "one JSON document"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, NULL);
}

/* ---- Machines --------------------------------------------------------------------------------------------------- */

/* Reads a captured machine. CLI_OK, or CLI_FAILED after a message. */
static int read_machine(const char *file, dpr_machine **machine) {
    static char text[TEXT + 2];
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    size_t n = f ? fread(text, 1, TEXT + 1, f) : 0;
    int bad = !f || ferror(f), error = errno;
    if (f && f != stdin)
        fclose(f);
    if (bad)
        return cli_error("%s: cannot be read: %s", file, strerror(error));
    if (n > TEXT || memchr(text, 0, n))
        return cli_error("%s: is no captured machine: it %s", file,
                         n > TEXT ? "is longer than 64 KiB" : "has a zero byte");
    text[n] = 0;
    if (dpr_machine_parse(text, machine) != DPR_OK)
        return cli_error("%s: is no captured machine: %s", file, dpr_last_error());
    return CLI_OK;
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static double seconds_of(const dpr_decision *decision, size_t strategy, size_t count) {
    dpr_prediction p = DPR_PREDICTION_INIT;
    (void)dpr_decision_predict(decision, strategy, count, &p);
    return p.seconds;
}

static dpr_step step_at(const dpr_decision *decision, size_t count) {
    dpr_step step = DPR_STEP_INIT;
    (void)dpr_decision_step(decision, count, &step);
    return step;
}

static void add_step(cJSON *row, const dpr_decision *decision, const dpr_step *step) {
    const int is_last = step->upto == SIZE_MAX;
    report_add(row, "from=%lu", step->from);
    if (is_last)
        cJSON_AddNullToObject(row, "upto");
    else
        report_add(row, "upto=%lu", step->upto);
    report_add(row, "strategy=%s threads=%d max_blocks=%d", dpr_strategy_name(step->strategy), step->threads,
               step->max_blocks);
    if (step->max_depth > 0)
        report_add(row, "launch_seconds=%f launch_measured=%i", step->launch_seconds, step->launch_measured);
    cJSON_AddNumberToObject(row, "seconds_at_from", seconds_of(decision, step->strategy, step->from));
    if (!is_last)
        cJSON_AddNumberToObject(row, "seconds_at_upto", seconds_of(decision, step->strategy, step->upto));
}

static void show_steps(report_out *out, const dpr_decision *decision, const request *r) {
    static const report_column columns[] = {
        {"from", "elements from", UNIT_NONE},    {"upto", "to", UNIT_NONE},
        {"strategy", "strategy", UNIT_LEFT},     {"seconds_at_from", "predicted from", UNIT_SECONDS},
        {"seconds_at_upto", "to", UNIT_SECONDS}, {0}};
    cJSON *list = cJSON_AddArrayToObject(out->document, "steps");
    dpr_step step = {.upto = SIZE_MAX}; /* after which comes element 0 */
    do {
        step = step_at(decision, step.upto + 1);
        add_step(report_row(list), decision, &step);
    } while (step.upto < SIZE_MAX);
    report_table(out, r->problem.key_dtype ? "To reduce runs that were found" : NULL, list, 0, columns);
}

/* What is chosen for the number of elements that is to be explained: no strategy if one pass reduces runs of keys.
 * `refusal` is why it does not; otherwise NULL. */
static void add_choice(report_out *out, const dpr_decision *decision, const request *r, int one_pass,
                       const char *refusal) {
    report_add(out->document, "count=%lu", r->count);
    if (one_pass)
        cJSON_AddNullToObject(out->document, "choice");
    else
        report_add(out->document, "choice=%s", dpr_strategy_name(step_at(decision, r->count).strategy));
    if (one_pass || refusal)
        report_add(out->document, "one_pass=%i", one_pass);
    if (refusal)
        cJSON_AddStringToObject(out->document, "one_pass_refused", refusal);
}

/* The numbers of elements for which the text has predictions. A key is "2^" and the exponent. */
static const report_column predicted[] = {
    {"name", "strategy", UNIT_LEFT}, {"2^4", "2^4 ", UNIT_NONE},   {"2^10", "2^10 ", UNIT_NONE},
    {"2^14", "2^14 ", UNIT_NONE},    {"2^18", "2^18 ", UNIT_NONE}, {"2^22", "2^22 ", UNIT_NONE},
    {"2^26", "2^26 ", UNIT_NONE},    {"2^30", "2^30 ", UNIT_NONE}, {0}};

static void add_predictions(cJSON *row, const dpr_decision *decision, size_t strategy, int has_choice) {
    char time[32], cell[40];
    for (const report_column *c = predicted + 1; c->key; c++) {
        const size_t count = (size_t)1 << strtoul(c->key + 2, NULL, 10);
        const char *mark = has_choice && step_at(decision, count).strategy == strategy ? "*" : " ";
        snprintf(cell, sizeof cell, "%s%s", figure_time(seconds_of(decision, strategy, count), time), mark);
        cJSON_AddStringToObject(row, c->key, cell);
    }
}

static void show_strategies(report_out *out, const dpr_decision *decision, const request *r, int has_choice) {
    cJSON *list = cJSON_AddArrayToObject(out->document, "strategies");
    dpr_prediction p = DPR_PREDICTION_INIT;
    for (size_t i = 0; i < dpr_strategy_count() && dpr_decision_predict(decision, i, r->count, &p) == DPR_OK; i++) {
        if (p.refusal && report_is_text(out))
            continue;
        cJSON *row = report_row(list);
        cJSON_AddStringToObject(row, "name", dpr_strategy_name(i));
        if (p.refusal)
            cJSON_AddStringToObject(row, "refused", p.refusal);
        else if (r->explain)
            report_add(row, "seconds=%f measured=%i", p.seconds, p.measured);
        if (report_is_text(out))
            add_predictions(row, decision, i, has_choice);
    }
    report_table(out, "Predicted for", list, 0, predicted);
}

static int print_explanation(const dpr_decision *decision, size_t count) {
    static char text[TEXT];
    size_t length = sizeof text;
    if (dpr_decision_explain(decision, count, text, &length) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    putchar('\n');
    defuse_lines(stdout, text);
    return CLI_OK;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static void show_problem(report_out *out, const dpr_machine *machine, const request *r) {
    const dpr_problem *p = &r->problem;
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    char parts[80] = "";
    (void)dpr_machine_describe(machine, &info);
    const dpr_memory usual = info.gpu_name ? DPR_MEMORY_DEVICE : DPR_MEMORY_HOST;
    const char *memory = cli_memory_name(p->memory ? p->memory : usual);
    report_add(out->document, "op=%s dtype=%s memory=%s nan=%s cpu_name=%s", dpr_op_name(p->op),
               dpr_dtype_name(p->dtype), memory, r->options.nan == DPR_NAN_IGNORE ? "ignore" : "propagate",
               info.cpu_name);
    if (p->segments) {
        cJSON_AddNumberToObject(out->document, "segments", (double)r->segments.count);
        snprintf(parts, sizeof parts, " in %llu segments,", (unsigned long long)r->segments.count);
    } else if (p->key_dtype) {
        report_add(out->document, "key_dtype=%s room=%lu", dpr_dtype_name(p->key_dtype), p->room);
        snprintf(parts, sizeof parts, " by keys of %s, with room for %llu runs,", dpr_dtype_name(p->key_dtype),
                 (unsigned long long)p->room);
    } else if (p->axes) {
        report_add(out->document, "axes=%s results=%lu", r->asked.at[0].name, r->array.results);
        snprintf(parts, sizeof parts, " along axes, %llu results,", (unsigned long long)r->array.results);
    }
    if (info.gpu_name)
        cJSON_AddStringToObject(out->document, "gpu_name", info.gpu_name);
    report_text(out, REPORT_TITLE, "%s of %s%s in %s memory, %s", dpr_op_name(p->op), dpr_dtype_name(p->dtype), parts,
                memory, info.gpu_name ? info.gpu_name : info.cpu_name);
}

static int show_decision(const dpr_decision *decision, const dpr_machine *machine, const request *r) {
    report_out out = report_begin(stdout, r->json ? REPORT_JSON : REPORT_TABLE);
    const char *refusal = NULL;
    int code = CLI_OK, one_pass = 0;
    if (r->problem.key_dtype)
        one_pass = dpr_decision_one_pass(decision, r->count, &refusal) == DPR_OK && !refusal;
    show_problem(&out, machine, r);
    show_steps(&out, decision, r);
    if (r->explain)
        add_choice(&out, decision, r, one_pass, refusal);
    show_strategies(&out, decision, r, !one_pass);
    if (r->explain && !r->json)
        code = print_explanation(decision, r->count);
    else if (!r->json && !cJSON_GetObjectItem(out.document, "gpu_name"))
        list_print_left_out();
    return report_end(&out) == 0 ? code : cli_error("out of memory");
}

/* Says which option has a number that is too large. */
static int refuse_size(const request *r) {
    const dpr_problem *p = &r->problem;
    const char *dtype = dpr_dtype_name(p->dtype), *keys = dpr_dtype_name(p->key_dtype);
    if (p->axes)
        return cli_usage("--axes: '%s' of %s does not fit the address space", r->asked.at[0].name, dtype);
    if (p->segments && p->count <= PTRDIFF_MAX / dpr_dtype_size(p->dtype))
        return cli_usage("--segments: the offsets and results of %" PRIu64 " segments do not fit the address space",
                         r->segments.count);
    return cli_usage("--count: %" PRIu64 " elements of %s%s%s do not fit the address space", r->count, dtype,
                     keys ? " with keys of " : "", keys ? keys : "");
}

/* Says why the library refuses the problem, in words of the command line. */
static int refuse(const request *r, dpr_status status) {
    const char *op = dpr_op_name(r->problem.op);
    if (status == DPR_ERR_UNSUPPORTED_PAIR)
        return cli_usage("%s has no meaning for %s", op, dpr_dtype_name(r->problem.dtype));
    if (status == DPR_ERR_EMPTY)
        return cli_usage("--count: %s has no result for zero elements", op);
    if (status == DPR_ERR_SIZE)
        return refuse_size(r);
    if (status == DPR_ERR_STRATEGY_UNABLE && r->launch.block && !r->options.strategy)
        return cli_error("--block: no strategy whose block size can be chosen can run this");
    if (status == DPR_ERR_INVALID_OPTION)
        return cli_usage("%s", dpr_last_error());
    return cli_error("%s", dpr_last_error());
}

static int show(const request *r, const dpr_machine *machine) {
    dpr_decision *decision;
    const dpr_status status = dpr_decision_create(machine, &r->problem, &decision);
    if (status != DPR_OK)
        return refuse(r, status);
    const int code = show_decision(decision, machine, r);
    dpr_decision_destroy(decision);
    return code;
}

static int run(const request *r) {
    dpr_ctx *ctx = NULL;
    dpr_machine *captured = NULL;
    int code = CLI_OK;
    if (r->machine_file)
        code = read_machine(r->machine_file, &captured);
    else
        code = cli_open_device(r->device == CLI_NO_DEVICE ? DPR_DEVICE_AUTO : r->device, &ctx);
    if (ctx)
        wisdom_note_unused();
    if (code == CLI_OK)
        code = show(r, captured ? captured : dpr_ctx_machine(ctx));
    dpr_machine_destroy(captured);
    dpr_ctx_destroy(ctx);
    return code;
}

/* Makes the problem one with segments, keys or axes, if these are asked for. */
static int take_shape(request *r) {
    static const int64_t numbers[1]; /* decisions do not read them */
    if ((r->segments.count > 0) + (r->asked.n > 0) + (r->problem.key_dtype != DPR_DTYPE_NONE) > 1)
        return cli_usage("--segments, --by-key and --axes exclude each other");
    if (r->problem.key_dtype && !r->explain)
        return cli_usage("--by-key needs --count");
    if (r->has_room && !r->problem.key_dtype)
        return cli_usage("--room needs --by-key");
    if (r->problem.key_dtype && !r->has_room)
        r->problem.room = r->count;
    if (r->asked.n > 1)
        return cli_usage("--axes takes a single array");
    if (r->segments.count > 0) {
        r->segments.begins = numbers;
        r->problem.segments = &r->segments;
    }
    if (r->asked.n == 0)
        return CLI_OK;
    if (r->explain && !strchr(r->asked.at[0].name, 'N'))
        return cli_usage("--count: '%s' has no N", r->asked.at[0].name);
    r->array = shape_measures(&r->asked.at[0], r->explain ? r->count : UINT64_C(1) << 24, DPR_I64);
    if (r->array.elements == 0)
        return cli_usage("'%s' has no array of so few elements", r->asked.at[0].name);
    r->axes.dimensions = r->asked.at[0].dimensions;
    r->axes.reduced = r->asked.at[0].reduced;
    r->axes.extents = r->array.extents;
    r->axes.strides = r->array.strides;
    r->problem.axes = &r->axes;
    r->problem.count = (size_t)r->array.elements;
    r->count = r->array.elements;
    r->explain = 1;
    return CLI_OK;
}

int command_plan(int argc, char **argv) {
    request r = {.problem = DPR_PROBLEM_INIT,
                 .options = DPR_OPTIONS_INIT,
                 .launch = DPR_LAUNCH_OPTIONS_INIT,
                 .segments = DPR_SEGMENTS_INIT,
                 .axes = DPR_AXES_INIT,
                 .device = CLI_NO_DEVICE};
    int code = parse(argc, argv, &r);
    if (code != CLI_GO_ON)
        return code;
    if (r.machine_file && r.device != CLI_NO_DEVICE)
        return cli_usage("--machine and --device exclude each other");
    r.problem.options = &r.options;
    r.options.launch = &r.launch;
    r.problem.count = r.explain ? (size_t)r.count : 1;
    code = take_shape(&r);
    return code == CLI_OK ? run(&r) : code;
}
