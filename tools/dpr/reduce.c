#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "cuda/device.h"
#include "figures.h"
#include "generate.h"
#include "jobs.h"
#include "plan/registry.h"
#include "progress.h"
#include "source.h"
#include "tables.h"

#define WINDOW_DEFAULT (UINT64_C(64) << 20)

#define REDUCE_OPTIONS(X)                                                                                              \
    X(OP, 'o', "op", "OP,...", "operations, separated by commas (default: sum);\n'every': all that suit the elements") \
    X(DTYPE, 't', "dtype", "TYPE", "type of the elements of raw files and generated data")                             \
    X(NAN, 0, "nan", "RULE", "propagate (default) or ignore: skip NaN elements")                                       \
    X(INIT, 0, "init", "VALUE", "one more value, of the type of the result, at the end")                               \
    X(STRATEGY, 's', "strategy", "NAME",                                                                               \
      "a strategy of 'dpr info', or 'all' to compare them\n(default: the planner's choice)")                           \
    X(DEVICE, 'd', "device", "DEVICE",                                                                                 \
      "cpu, auto (a GPU if there is one), or a GPU's number.\nDefault: cpu for files, auto for --generate")            \
    X(GENERATE, 'g', "generate", "SIZE", "reduce SIZE bytes of pseudo-random data, no files")                          \
    X(WINDOW, 'w', "window", "SIZE", "bytes in memory at a time (default: 64MiB)")                                     \
    X(JSON, 0, "json", NULL, "one JSON document")                                                                      \
    X(QUIET, 'q', "quiet", NULL, "the values alone, one a line")                                                       \
    X(HELP, 'h', "help", NULL, "this text")

enum { REDUCE_OPTIONS(CLI_OPTION_ENUM) OPTION_COUNT };
static const cli_option options[] = {REDUCE_OPTIONS(CLI_OPTION_ENTRY)};

typedef struct request {
    asked asked;
    const dpr_dtype *raw; /* &dtype, or NULL if none is named */
    dpr_dtype dtype;
    int device, device_named;
    uint64_t generate, window; /* bytes; generate is 0 for files */
    int generating, json, quiet;
    place place;
    cJSON *document; /* array of what was done to each file */
} request;

static void print_help(void) {
    puts("Usage: dpr reduce [OPTION]... FILE...\n"
         "Reduces the array in each FILE ('-': standard input) and prints the result.\n"
         "\n"
         "Examples:\n"
         "  dpr reduce x.npy                              sum of a NumPy array\n"
         "  dpr reduce x.npy --op min,max,argmax          several at once\n"
         "  dpr reduce x.npy --op every --nan ignore      all operations, NaN elements skipped\n"
         "  dpr reduce samples.bin --dtype i16 --op max   a file of bare 16-bit integers\n"
         "  zcat x.npy.gz | dpr reduce -q -               the value alone, from a pipe\n"
         "  dpr reduce --generate 64MiB --strategy all    strategies compared on this machine\n"
         "\n"
         "Options:");
    cli_print_options(options, OPTION_COUNT);
    tables_print_ops();
    tables_print_dtypes();
    puts(
        "\n"
        "Files are .npy (versions 1.0 to 3.0, either byte order, C or Fortran order) or, with --dtype, bare\n"
        "elements in this machine's byte order. They may be larger than memory: they are mapped window by window\n"
        "and the results of the windows combined. argmin and argmax give the index in row-major order, as NumPy's\n"
        "flat index, whatever the order in the file. bfloat16 arrays, which NumPy saves as '|V2', need\n"
        "--dtype bf16.\n"
        "\n"
        "Each line of output has the operation, the value in digits that give it back when read, the strategy that\n"
        "ran, and the bytes of the array over the time the reduction took. Planning, starting threads and loading\n"
        "kernels are not in that time, but the first operation on a file also waits for the disk. On a GPU the time\n"
        "is without the copy to the device; with --generate it is the median of several runs. Generated integers\n"
        "are uniform over all values of the type, floating point is uniform in [0, 1); the same on every machine.\n"
        "\n"
        "JSON: integers have all their digits, however large; NaN and infinities are the strings \"nan\", \"inf\" and\n"
        "\"-inf\"; complex numbers are [real, imaginary].\n"
        "\n"
        "Sizes: 1000, 1e6, 2^20, 64Ki, 64MiB, 64MB.\n"
        "\n"
        "Exit status: 0 if all went well, 1 if some file or operation failed (the others are still done), 2 if the\n"
        "command line makes no sense.");
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int take_ops(request *r, const char *text) {
    asked *a = &r->asked;
    a->op_count = 0;
    a->every_op = strcmp(text, "every") == 0;
    for (int i = 0; a->every_op && i < DPR_OP_COUNT; i++)
        a->ops[a->op_count++] = (dpr_op)i;
    while (!a->every_op) {
        char word[32];
        size_t n = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), text);
        dpr_op op;
        int status = cli_op(word, &op);
        if (status != CLI_OK)
            return status;
        for (int i = 0; i < a->op_count; i++)
            if (a->ops[i] == op)
                return cli_usage("operation '%s' is asked for twice", word);
        a->ops[a->op_count++] = op;
        if (!text[n])
            break;
        text += n + 1;
    }
    return CLI_OK;
}

static int take_strategy(request *r, const char *text) {
    r->asked.every_strategy = strcmp(text, "all") == 0;
    r->asked.strategy = NULL;
    return r->asked.every_strategy ? CLI_OK : cli_strategy(text, &r->asked.strategy);
}

static int take_window(request *r, const char *text) {
    int status = cli_count("window", text, &r->window);
    if (status == CLI_OK && (r->window == 0 || r->window > SIZE_MAX / 2))
        return cli_usage("a window of %s bytes makes no sense", text);
    return status;
}

static int take_option(void *user, int number, const char *text) {
    request *r = user;
    switch (number) {
    case OPTION_OP:
        return take_ops(r, text);
    case OPTION_DTYPE:
        r->raw = &r->dtype;
        return cli_dtype(text, &r->dtype);
    case OPTION_NAN:
        return cli_nan(text, &r->asked.nan);
    case OPTION_INIT:
        r->asked.init = text;
        return CLI_OK;
    case OPTION_STRATEGY:
        return take_strategy(r, text);
    case OPTION_DEVICE:
        r->device_named = 1;
        return cli_device(text, &r->device);
    case OPTION_GENERATE:
        r->generating = 1;
        return cli_count("size", text, &r->generate);
    case OPTION_WINDOW:
        return take_window(r, text);
    case OPTION_JSON:
        r->json = 1;
        return CLI_OK;
    default:
        r->quiet = 1;
        return CLI_OK;
    }
}

/* ---- Places ----------------------------------------------------------------------------------------------------- */

/* Whether the request can need a GPU: it names one or a strategy of one, or compares all. */
static int wants_gpu(const request *r) {
    if (r->device_named)
        return r->device != DPR_DEVICE_CPU;
    if (r->generating || r->asked.every_strategy)
        return 1;
    return r->asked.strategy && dpr_strategies[dpr_strategy_find(r->asked.strategy)]->side == DPR_ON_GPU;
}

static int open_places(request *r) {
    int must = r->device_named && r->device >= 0;
    if (dpr_ctx_create(DPR_DEVICE_CPU, &r->place.cpu) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    r->place.prefer_gpu = r->device_named || r->generating;
    if (!wants_gpu(r) || (!must && dpr_device_count() == 0))
        return CLI_OK;
    if (dpr_ctx_create(must ? r->device : 0, &r->place.gpu) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    return CLI_OK;
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

/* Shows a list of ended jobs. CLI_OK, or what jobs_report_failures() gives if a job failed. */
static int show(request *r, job_list *list, const char *remark) {
    size_t failed = jobs_end(list);
    progress_clear();
    if (r->json)
        cli_json_append(r->document, jobs_json(list));
    else if (r->quiet)
        jobs_print_values(list);
    else if (failed < list->count || list->count == 0)
        jobs_print(list, remark);
    return jobs_report_failures(list);
}

static int failed_file(request *r, const char *name, const char *why) {
    cli_error("%s: %s", name, why);
    if (r->json) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "file", name);
        cJSON_AddStringToObject(object, "error", why);
        cli_json_append(r->document, object);
    }
    return CLI_FAILED;
}

/* All windows of an open source. 0, or -1 with s->why. */
static int reduce_windows(request *r, source *s, job_list *list) {
    const void *in;
    size_t count;
    uint64_t done = 0;
    int status, last, first = 1;
    while ((status = source_next(s, &in, &count, &last)) == 1) {
        fold_window w = {in, in, count, first && last};
        jobs_add(list, &r->place, &w, 1);
        if (source_check(s) != 0)
            return -1;
        done += count * dpr_dtypes[s->array.dtype].size;
        progress_show(done);
        first = 0;
    }
    return status;
}

static int reduce_source(request *r, source *s, const char *name) {
    job_list list;
    size_t element = dpr_dtypes[s->array.dtype].size;
    int code = CLI_FAILED;
    if (jobs_make(&list, &r->asked, &r->place, &s->array, name) == 0) {
        progress_start(name, s->array.count == UINT64_MAX ? 0 : s->array.count * element);
        if (reduce_windows(r, s, &list) != 0) {
            code = failed_file(r, name, s->why);
        } else {
            list.array = s->array;
            if (s->ignored)
                cli_note("%s: bytes after the array are ignored", name);
            code = show(r, &list, NULL);
        }
    }
    job_list_free(&list);
    return code;
}

static int reduce_file(request *r, const char *file) {
    source s;
    source_request sr = {file, r->raw, (size_t)r->window};
    const char *name = strcmp(file, "-") == 0 ? "standard input" : file;
    int code = source_open(&s, &sr) == 0 ? reduce_source(r, &s, name) : failed_file(r, name, s.why);
    source_close(&s);
    return code;
}

static int generated_bytes(uint64_t bytes, void **out) {
    const uint64_t available = memory_available();
    char wanted[32], there[32];
    (void)figure_bytes(bytes, wanted);
    if (bytes > available)
        return cli_error("there is no memory for %s of generated data: %s are available", wanted,
                         figure_bytes(available, there));
    if (posix_memalign(out, 64, bytes ? (size_t)bytes : 64) != 0)
        return cli_error("there is no memory for %s of generated data", wanted);
    return CLI_OK;
}

static int reduce_generated(request *r) {
    enum { PIECE = 1 << 20, REPEATS = 15 };
    npy_header array = {.dtype = r->raw ? r->dtype : DPR_F32, .dims = 1};
    size_t element = dpr_dtypes[array.dtype].size;
    void *data = NULL;
    job_list list;
    array.count = array.shape[0] = r->generate / element;
    if (r->generate % element)
        return cli_usage("%llu bytes are no whole number of %s elements", (unsigned long long)r->generate,
                         dpr_dtypes[array.dtype].name);
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
        fold_window w = {data, data, (size_t)array.count, 1};
        if (array.count)
            jobs_add(&list, &r->place, &w, REPEATS);
        code = show(r, &list, generate_text(array.dtype));
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
    static const cli_syntax syntax = {options, OPTION_COUNT, print_help, take_option};
    request r = {.asked = {.ops = {DPR_SUM}, .op_count = 1}, .device = DPR_DEVICE_CPU, .window = WINDOW_DEFAULT};
    int first = 0, code = cli_parse(argc, argv, &syntax, &r, &first);
    if (code != CLI_GO_ON)
        return code;
    if (r.generating && first < argc)
        return cli_usage("--generate and the file '%s' exclude each other", argv[first]);
    if (!r.generating && first == argc)
        return cli_usage("no file is named ('-' is standard input)");
    for (int i = first, standard = 0; i < argc; i++)
        if (strcmp(argv[i], "-") == 0 && standard++)
            return cli_usage("standard input ('-') is named twice");
    if (r.json)
        r.document = cJSON_CreateArray();
    code = reduce_all(&r, argv + first, argc - first);
    if (r.json) {
        cJSON *document = cJSON_CreateObject();
        cJSON_AddStringToObject(document, "version", dpr_version());
        cli_json_add(document, "arrays", r.document);
        int printed = cli_json_print(document);
        code = printed > code ? printed : code;
    }
    dpr_ctx_destroy(r.place.gpu);
    dpr_ctx_destroy(r.place.cpu);
    return code;
}
