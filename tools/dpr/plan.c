#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "api/request.h"
#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "defuse.h"
#include "figures.h"
#include "plan/machine.h"
#include "plan/planner.h"
#include "plan/registry.h"
#include "tables.h"

typedef struct request {
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    dpr_memory memory;
    const char *strategy, *machine_file;
    int device; /* or CLI_NO_DEVICE */
    uint64_t count;
    int explain, json;
    int block, depth; /* 0: none is asked for */
    dpr_key key;      /* what was asked for, but for memory and strategy */
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
    "  dpr info --capture > this.caps               and elsewhere:\n"
    "  dpr plan --machine this.caps -n 2^28         as it would be on that machine\n",
    tables_print_all,
    "Times are predictions from call to result. A '*' marks the choice.\n"
    "\n"
    "Numbers: 1000, 1e6, 2^20, 64Ki (1024 each), 64K (1000 each).\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static const char *memory_name(size_t i) {
    return i + 1 <= DPR_MEMORY_DEVICE ? dpr_memory_name((dpr_memory)(i + 1)) : NULL;
}

static int take_memory(const char *text, void *out) {
    size_t i = 0;
    const int code = cli_choice(text, memory_name, &i);
    if (code == CLI_OK)
        *(dpr_memory *)out = (dpr_memory)(i + 1);
    return code;
}

static int take_count(const char *text, void *out) {
    request *r = out;
    r->explain = 1;
    return cli_count(text, &r->count);
}

static int parse(int argc, char **argv, request *r) {
    const cli_option options[] = {
        {'o', "op", "OP", cli_op, &r->op, "the operation (default: sum)"},
        {'t', "dtype", "TYPE", cli_dtype, &r->dtype, "type of the elements (default: f32)"},
        {'n', "count", "N", take_count, r, "explain the choice for N elements"},
        {0, "nan", "RULE", cli_nan, &r->nan, "propagate (default) or ignore"},
        {'s', "strategy", "NAME", cli_strategy, &r->strategy, "ask for a strategy by name"},
        {0, "block", "N", cli_block, &r->block, "threads a block, of demonstrations: 32, 64, ... or 1024"},
        {0, "depth", "N", cli_depth, &r->depth,
         "nested launches below each other, at most\n(default: as many as the GPU takes)"},
        {0, "memory", "KIND", take_memory, &r->memory,
         "where the array lies: device, host, pinned or managed\n(default: device if there is a GPU)"},
        {'d', "device", "DEVICE", cli_device, &r->device, "auto (default), cpu, or a GPU's number"},
        {'m', "machine", "FILE", cli_text, &r->machine_file, "another machine, as 'dpr info --capture' wrote it"},
        {0, "json", NULL, cli_flag, &r->json, "one JSON document"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, NULL);
}

/* ---- Machines --------------------------------------------------------------------------------------------------- */

/* Reads a captured machine. CLI_OK, or CLI_FAILED after a message. */
static int read_machine(const char *file, dpr_caps *caps) {
    enum { MOST = 64 * 1024 };
    static char text[MOST + 2];
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    size_t n = f ? fread(text, 1, MOST + 1, f) : 0;
    int bad = !f || ferror(f), error = errno;
    if (f && f != stdin)
        fclose(f);
    if (bad)
        return cli_error("%s: cannot be read: %s", file, strerror(error));
    if (n > MOST || memchr(text, 0, n))
        return cli_error("%s: is no captured machine: it %s", file,
                         n > MOST ? "is longer than 64 KiB" : "has a zero byte");
    text[n] = 0;
    if (dpr_machine_parse(text, caps) != DPR_OK)
        return cli_error("%s: is no captured machine: %s", file, dpr_last_error());
    return CLI_OK;
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

static void print_steps(const dpr_choice *choice, const dpr_caps *caps) {
    char low[32], high[32];
    const int width = tables_strategy_width();
    printf("%22s    %-*s %s\n", "elements", width, "strategy", "predicted");
    size_t from = 0;
    for (int i = 0; i < choice->steps; i++) {
        const dpr_choice_step *s = &choice->step[i];
        figure_time(s->strategy->cost(&choice->key, caps, from), low);
        if (i + 1 < choice->steps) {
            figure_time(s->strategy->cost(&choice->key, caps, s->upto), high);
            printf("%10zu ..%10zu    %-*s %s .. %s\n", from, s->upto, width, s->strategy->name, low, high);
        } else {
            printf("%10zu ..%10s    %-*s %s ..\n", from, "", width, s->strategy->name, low);
        }
        from = s->upto + 1;
    }
}

/* Predictions side by side, for those strategies that can run. */
static void print_grid(const dpr_choice *choice, const dpr_caps *caps) {
    static const int exponents[] = {4, 10, 14, 18, 22, 26, 30};
    enum { COLUMNS = sizeof exponents / sizeof *exponents };
    const int width = tables_strategy_width();
    char text[32];
    printf("\n%-*s", width, "predicted for");
    for (int c = 0; c < COLUMNS; c++)
        printf("%7s2^%-2d", "", exponents[c]);
    putchar('\n');
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *s = dpr_strategies[i];
        if (dpr_refusal(s, &choice->key, caps))
            continue;
        printf("%-*s", width, s->name);
        for (int c = 0; c < COLUMNS; c++) {
            size_t count = (size_t)1 << exponents[c];
            int chosen = dpr_choice_at(choice, count)->strategy == s;
            printf(" %9s%c", figure_time(s->cost(&choice->key, caps, count), text), chosen ? '*' : ' ');
        }
        putchar('\n');
    }
}

static int print_explanation(const dpr_choice *choice, const dpr_machine *machine, size_t count) {
    size_t length = 0;
    dpr_explain(choice, machine, count, 0, NULL, &length);
    char *text = malloc(length + 1);
    if (!text || dpr_explain(choice, machine, count, 0, text, &length) != DPR_OK) {
        cli_error("%s", text ? dpr_last_error() : "out of memory");
        free(text);
        return CLI_FAILED;
    }
    printf("\n%s", text);
    free(text);
    return CLI_OK;
}

static void json_steps(cJSON *document, const dpr_choice *choice, const dpr_caps *caps) {
    cJSON *steps = cJSON_AddArrayToObject(document, "steps");
    size_t from = 0;
    for (int i = 0; i < choice->steps; i++) {
        const dpr_choice_step *s = &choice->step[i];
        cJSON *step = cJSON_CreateObject();
        cli_json_integer(step, "from", from);
        if (i + 1 < choice->steps)
            cli_json_integer(step, "upto", s->upto);
        else
            cJSON_AddNullToObject(step, "upto");
        cJSON_AddStringToObject(step, "strategy", s->strategy->name);
        cJSON_AddNumberToObject(step, "threads", s->limits.threads);
        cJSON_AddNumberToObject(step, "max_blocks", s->limits.max_blocks);
        if (s->limits.max_depth > 0) {
            cJSON_AddNumberToObject(step, "launch_seconds", s->limits.launch_seconds);
            cJSON_AddBoolToObject(step, "launch_measured", s->limits.measured);
        }
        cJSON_AddNumberToObject(step, "seconds_at_from", s->strategy->cost(&choice->key, caps, from));
        if (i + 1 < choice->steps)
            cJSON_AddNumberToObject(step, "seconds_at_upto", s->strategy->cost(&choice->key, caps, s->upto));
        cli_json_append(steps, step);
        from = s->upto + 1;
    }
}

static void json_strategies(cJSON *document, const dpr_choice *choice, const dpr_caps *caps, const request *r) {
    cJSON *list = cJSON_AddArrayToObject(document, "strategies");
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *s = dpr_strategies[i];
        const char *refusal = dpr_refusal(s, &choice->key, caps);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "name", s->name);
        if (refusal)
            cJSON_AddStringToObject(object, "refused", refusal);
        else if (r->explain)
            cJSON_AddNumberToObject(object, "seconds", s->cost(&choice->key, caps, r->count));
        cli_json_append(list, object);
    }
}

static int print_json(const dpr_choice *choice, const dpr_caps *caps, const request *r) {
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "op", dpr_op_name(r->op));
    cJSON_AddStringToObject(document, "dtype", dpr_dtype_name(r->dtype));
    cJSON_AddStringToObject(document, "memory", dpr_memory_name((dpr_memory)choice->key.f.in_memory));
    cJSON_AddStringToObject(document, "nan", r->nan == DPR_NAN_IGNORE ? "ignore" : "propagate");
    cJSON_AddStringToObject(document, "cpu_name", caps->cpu_name);
    if (caps->has_gpu)
        cJSON_AddStringToObject(document, "gpu_name", caps->gpu_name);
    json_steps(document, choice, caps);
    if (r->explain) {
        cli_json_integer(document, "count", r->count);
        cJSON_AddStringToObject(document, "choice", dpr_choice_at(choice, r->count)->strategy->name);
    }
    json_strategies(document, choice, caps, r);
    return cli_json_print(document);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static int show(const request *r, const dpr_machine *machine) {
    dpr_key key = r->key;
    dpr_choice choice;
    dpr_machine known;
    const dpr_caps *caps = &known.caps;
    dpr_memory usual = machine->caps.has_gpu ? DPR_MEMORY_DEVICE : DPR_MEMORY_HOST;
    key.f.in_memory = (uint8_t)(r->memory == DPR_MEMORY_AUTO ? usual : r->memory);
    if (r->strategy)
        key.f.strategy = (uint8_t)(dpr_strategy_find(r->strategy) + 1);
    if (dpr_choose(&key, machine, &choice) != DPR_OK || dpr_machine_known(machine, 0, &known) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    if (r->json)
        return print_json(&choice, caps, r);
    defuse(known.caps.cpu_name);
    defuse(known.caps.gpu_name);
    printf("%s of %s in %s memory, %s\n", dpr_op_name(r->op), dpr_dtype_name(r->dtype),
           dpr_memory_name((dpr_memory)key.f.in_memory), caps->has_gpu ? caps->gpu_name : caps->cpu_name);
    print_steps(&choice, caps);
    print_grid(&choice, caps);
    if (!caps->has_gpu && !r->explain)
        tables_print_left_out();
    return r->explain ? print_explanation(&choice, &known, r->count) : CLI_OK;
}

static int run(const request *r) {
    if (r->machine_file) {
        dpr_machine machine = {0};
        int code = read_machine(r->machine_file, &machine.caps);
        return code == CLI_OK ? show(r, &machine) : code;
    }
    dpr_ctx *ctx;
    if (dpr_ctx_create(r->device == CLI_NO_DEVICE ? DPR_DEVICE_AUTO : r->device, &ctx) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    int code = show(r, dpr_ctx_machine(ctx));
    dpr_ctx_destroy(ctx);
    return code;
}

int command_plan(int argc, char **argv) {
    request r = {.op = DPR_SUM, .dtype = DPR_F32, .device = CLI_NO_DEVICE};
    const int code = parse(argc, argv, &r);
    if (code != CLI_GO_ON)
        return code;
    if (r.machine_file && r.device != CLI_NO_DEVICE)
        return cli_usage("--machine and --device exclude each other");
    if (!dpr_supported(r.op, r.dtype))
        return cli_usage("%s has no meaning for %s", dpr_op_name(r.op), dpr_dtype_name(r.dtype));
    dpr_options asked = DPR_OPTIONS_INIT;
    dpr_request checked;
    asked.nan = r.nan;
    asked.block = r.block;
    asked.max_depth = r.depth;
    if (dpr_request_make(r.op, r.dtype, r.explain ? r.count : 1, &asked, &checked) != DPR_OK)
        return cli_usage("%s", dpr_last_error());
    r.key = checked.key;
    return run(&r);
}
