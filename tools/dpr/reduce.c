#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "figures.h"
#include "generate.h"
#include "jobs.h"
#include "progress.h"
#include "source.h"
#include "tables.h"

enum { DEFAULT_WINDOW = 64 << 20 };

typedef struct request {
    asked asked;
    const dpr_dtype *raw; /* &dtype, or NULL if none is named */
    dpr_dtype dtype;
    int device;        /* CLI_NO_DEVICE if none is named */
    uint64_t generate; /* bytes */
    uint64_t window;   /* bytes */
    int generating, json, quiet;
    place place;
    cJSON *arrays; /* what was done to each file */
} request;

static const cli_help help = {
    "Usage: dpr reduce [OPTION]... FILE...\n"
    "Reduces the array in each FILE ('-': standard input) and prints the result.\n"
    "\n"
    "Examples:\n"
    "  dpr reduce x.npy                              sum of a NumPy array\n"
    "  dpr reduce x.npy --op min,max,argmax          several at once\n"
    "  dpr reduce x.npy --op every --nan ignore      all operations, NaN elements skipped\n"
    "  dpr reduce samples.bin --dtype i16 --op max   a file of bare 16-bit integers\n"
    "  zcat x.npy.gz | dpr reduce -q -               the value alone, from a pipe\n"
    "  dpr reduce --generate 64MiB --strategy all    strategies compared on this machine\n",
    tables_print_all,
    "Files are .npy (versions 1.0 to 3.0, either byte order, C or Fortran order) or, with --dtype, bare\n"
    "elements in this machine's byte order. They may be larger than memory: they are mapped window by window\n"
    "and the results of the windows combined. argmin and argmax give the index in row-major order, as NumPy's\n"
    "flat index, whatever the order in the file. bfloat16 arrays, which NumPy saves as '|V2', need\n"
    "--dtype bf16.\n"
    "\n"
    "Each line of output has the operation, the value in digits that give it back when read, the strategy that\n"
    "ran, the bytes of the array over the time the reduction took, and this time. Planning, starting threads,\n"
    "loading kernels and the copy to a GPU are not in it, but the first operation on a file also waits for the\n"
    "disk; with --generate it is the median of several runs. Generated integers are uniform over all values of\n"
    "the type, floating point is uniform in [0, 1); the same on every machine.\n"
    "\n"
    "JSON: integers have all their digits, however large; NaN and infinities are the strings \"nan\", \"inf\" and\n"
    "\"-inf\"; complex numbers are [real, imaginary].\n"
    "\n"
    "Sizes: 1000, 1e6, 2^20, 64Ki, 64MiB, 64MB.\n"
    "\n"
    "Exit status: 0 if all went well, 1 if some file or operation failed (the others are still done), 2 if the\n"
    "command line makes no sense.\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int add_op(const char *word, void *out) {
    asked *a = out;
    dpr_op op;
    const int code = cli_op(word, &op);
    if (code != CLI_OK)
        return code;
    for (int i = 0; i < a->op_count; i++)
        if (a->ops[i] == op)
            return cli_usage("'%s' is asked for twice", word);
    a->ops[a->op_count++] = op;
    return CLI_OK;
}

static int take_ops(const char *text, void *out) {
    asked *a = out;
    a->op_count = 0;
    a->every_op = strcmp(text, "every") == 0;
    for (int i = 0; a->every_op && dpr_op_name((dpr_op)i); i++)
        a->ops[a->op_count++] = (dpr_op)i;
    return a->every_op ? CLI_OK : cli_each(text, add_op, a);
}

static int take_dtype(const char *text, void *out) {
    request *r = out;
    r->raw = &r->dtype;
    return cli_dtype(text, &r->dtype);
}

static int take_strategy(const char *text, void *out) {
    asked *a = out;
    a->every_strategy = strcmp(text, "all") == 0;
    a->strategy = NULL;
    return a->every_strategy ? CLI_OK : cli_strategy(text, &a->strategy);
}

static int take_generate(const char *text, void *out) {
    request *r = out;
    r->generating = 1;
    return cli_count(text, &r->generate);
}

static int take_window(const char *text, void *out) {
    uint64_t *window = out;
    const int code = cli_count(text, window);
    if (code == CLI_OK && (*window == 0 || *window > SIZE_MAX / 2))
        return cli_usage("'%s' is no number of bytes for a window", text);
    return code;
}

static int parse(int argc, char **argv, request *r, int *operands) {
    const cli_option options[] = {
        {'o', "op", "OP,...", take_ops, &r->asked,
         "operations, separated by commas (default: sum);\n'every': all that suit the elements"},
        {'t', "dtype", "TYPE", take_dtype, r, "type of the elements of raw files and generated data"},
        {0, "nan", "RULE", cli_nan, &r->asked.nan, "propagate (default) or ignore: skip NaN elements"},
        {0, "init", "VALUE", cli_text, &r->asked.init, "one more value, of the type of the result, at the end"},
        {'s', "strategy", "NAME", take_strategy, &r->asked,
         "a strategy of 'dpr info', or 'all' to compare them\n(default: the planner's choice)"},
        {'d', "device", "DEVICE", cli_device, &r->device,
         "cpu, auto (a GPU if there is one), or a GPU's number.\nDefault: cpu for files, auto for --generate"},
        {'g', "generate", "SIZE", take_generate, r, "reduce SIZE bytes of pseudo-random data, no files"},
        {'w', "window", "SIZE", take_window, &r->window, "bytes in memory at a time (default: 64MiB)"},
        {0, "json", NULL, cli_flag, &r->json, "one JSON document"},
        {'q', "quiet", NULL, cli_flag, &r->quiet, "the values alone, one a line"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, operands);
}

/* ---- Places ----------------------------------------------------------------------------------------------------- */

/* Whether the request can need a GPU: it names one or a strategy of one, or compares all. */
static int wants_gpu(const request *r) {
    if (r->device != CLI_NO_DEVICE)
        return r->device != DPR_DEVICE_CPU;
    if (r->generating || r->asked.every_strategy)
        return 1;
    return r->asked.strategy && cli_strategy_info(r->asked.strategy).on_gpu;
}

static int open_places(request *r) {
    if (dpr_ctx_create(DPR_DEVICE_CPU, &r->place.cpu) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    r->place.prefer_gpu = r->device != CLI_NO_DEVICE || r->generating;
    if (!wants_gpu(r))
        return CLI_OK;
    if (dpr_ctx_create(r->device >= 0 ? r->device : DPR_DEVICE_AUTO, &r->place.gpu) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    if (dpr_ctx_device(r->place.gpu) == DPR_DEVICE_CPU) { /* there is no GPU */
        dpr_ctx_destroy(r->place.gpu);
        r->place.gpu = NULL;
    }
    return CLI_OK;
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

/* Ends the jobs and shows their outcomes. CLI_OK, or the exit code. */
static int show(request *r, job_list *list) {
    int code = CLI_OK;
    const size_t failed = jobs_end(list);
    progress_clear();
    if (r->json)
        cli_json_append(r->arrays, jobs_json(list));
    else if (r->quiet)
        jobs_print_values(list);
    else if (failed < list->count || list->count == 0)
        code = jobs_print(list);
    return code == CLI_OK ? jobs_report_failures(list) : code;
}

static int failed_file(request *r, const char *name, const char *why) {
    cli_error("%s: %s", name, why);
    if (r->json) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "file", name);
        cJSON_AddStringToObject(object, "error", why);
        cli_json_append(r->arrays, object);
    }
    return CLI_FAILED;
}

/* All windows of an open source. 0, or -1 with s->why. */
static int reduce_windows(source *s, job_list *list) {
    const void *in;
    size_t count;
    uint64_t done = 0;
    int status, last;
    while ((status = source_next(s, &in, &count, &last)) == 1) {
        jobs_add(list, in, count, done == 0 && last, 1);
        done += count * dpr_dtype_size(s->array.dtype);
        progress_show(done);
    }
    return status;
}

static int reduce_source(request *r, source *s, const char *name) {
    job_list list;
    const size_t element = dpr_dtype_size(s->array.dtype);
    int code = CLI_FAILED;
    if (jobs_make(&list, &r->asked, &r->place, &s->array, name) == 0) {
        progress_start(name, s->array.count == UINT64_MAX ? 0 : s->array.count * element);
        if (reduce_windows(s, &list) != 0) {
            code = failed_file(r, name, s->why);
        } else {
            list.array = s->array;
            if (s->ignored)
                cli_note("%s: bytes after the array are ignored", name);
            code = show(r, &list);
        }
    }
    job_list_free(&list);
    return code;
}

static int reduce_file(request *r, const char *file) {
    source s;
    const char *name = strcmp(file, "-") == 0 ? "standard input" : file;
    const int code = source_open(&s, file, r->raw, (size_t)r->window) == 0 ? reduce_source(r, &s, name)
                                                                           : failed_file(r, name, s.why);
    source_close(&s);
    return code;
}

static int generated_bytes(uint64_t bytes, void **out) {
    const uint64_t available = memory_available();
    char wanted[32], there[32];
    if (bytes <= available && posix_memalign(out, 64, bytes ? (size_t)bytes : 64) == 0)
        return CLI_OK;
    return cli_error("there is no memory for %s of generated data: %s are available", figure_bytes(bytes, wanted),
                     figure_bytes(available, there));
}

static int reduce_generated(request *r) {
    enum { PIECE = 1 << 20, REPEATS = 15 };
    npy_header array = {.dtype = r->raw ? r->dtype : DPR_F32, .dims = 1};
    size_t element = dpr_dtype_size(array.dtype);
    void *data = NULL;
    job_list list;
    array.count = array.shape[0] = r->generate / element;
    if (r->generate % element)
        return cli_usage("%llu bytes are no whole number of %s elements", (unsigned long long)r->generate,
                         dpr_dtype_name(array.dtype));
    int code = generated_bytes(r->generate, &data);
    if (code != CLI_OK)
        return code;
    progress_start("generating", r->generate);
    for (uint64_t at = 0; at < array.count; at += PIECE) {
        size_t n = array.count - at < PIECE ? (size_t)(array.count - at) : PIECE;
        generate(array.dtype, at, (unsigned char *)data + at * element, n);
        progress_show((at + n) * element);
    }
    progress_clear();
    code = CLI_FAILED;
    if (jobs_make(&list, &r->asked, &r->place, &array, "generated") == 0) {
        if (array.count)
            jobs_add(&list, data, (size_t)array.count, 1, REPEATS);
        code = show(r, &list);
    }
    job_list_free(&list);
    free(data);
    return code;
}

static int reduce_all(request *r, char **files, int count) {
    int code = open_places(r);
    if (code != CLI_OK)
        return code;
    if (r->generating)
        return reduce_generated(r);
    for (int i = 0; i < count; i++) {
        int one = reduce_file(r, files[i]);
        if (one > code)
            code = one;
    }
    return code;
}

int command_reduce(int argc, char **argv) {
    request r = {.asked = {.ops = {DPR_SUM}, .op_count = 1}, .device = CLI_NO_DEVICE, .window = DEFAULT_WINDOW};
    int first = 0, code = parse(argc, argv, &r, &first);
    if (code != CLI_GO_ON)
        return code;
    if (r.generating && first < argc)
        return cli_usage("--generate and the file '%s' exclude each other", argv[first]);
    if (!r.generating && first == argc)
        return cli_usage("no file is named ('-' is standard input)");
    for (int i = first, standard = 0; i < argc; i++)
        if (strcmp(argv[i], "-") == 0 && standard++)
            return cli_usage("standard input ('-') is named twice");
    cJSON *document = NULL;
    if (r.json) {
        document = cJSON_CreateObject();
        cJSON_AddStringToObject(document, "version", dpr_version());
        r.arrays = cJSON_AddArrayToObject(document, "arrays");
    }
    code = reduce_all(&r, argv + first, argc - first);
    if (r.json) {
        const int printed = cli_json_print(document);
        code = printed > code ? printed : code;
    }
    dpr_ctx_destroy(r.place.gpu);
    dpr_ctx_destroy(r.place.cpu);
    return code;
}
