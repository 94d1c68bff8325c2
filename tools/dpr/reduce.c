#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "jobs.h"
#include "listings.h"
#include "segments.h"

enum { DEFAULT_WINDOW = 64 << 20 };

typedef struct request {
    asked asked;
    const dpr_dtype *raw; /* &dtype, or NULL if none is named */
    dpr_dtype dtype;      /* of files without header and generated data */
    int device;           /* CLI_NO_DEVICE if none is named */
    uint64_t generate;    /* bytes */
    uint64_t window;      /* bytes; 0: none are named */
    int generating, json;
    segments_asked segments; /* no files are named if the array has none */
} request;

static const cli_help help = {
    "Usage: dpr reduce [OPTION]... FILE...\n"
    "Reduces the array in each FILE ('-': standard input) and prints the result.\n"
    "\n"
    "Examples:\n"
    "  dpr reduce x.npy                              sum of a NumPy array\n"
    "  dpr reduce x.npy --op min,max,argmax          several at once\n"
    "  dpr reduce x.npy --op every --nan ignore      all operations, NaN elements skipped\n"
    "  dpr reduce x.npy -o mean,var --divisor sample mean, and an estimate of the variance\n"
    "  dpr reduce samples.bin --dtype i16 --op max   a file of bare 16-bit integers\n"
    "  dpr reduce image.npy --op mean --axis 0,1     the mean of each colour of an image\n"
    "  dpr reduce x.npy --offsets rows.npy -O sums.npy  the sum of each row of a ragged array\n"
    "  dpr reduce x.npy --by days.npy -O sums.npy    the sum of each day; the days go to sums.keys.npy\n"
    "  zcat x.npy.gz | dpr reduce -q -               the value alone, from a pipe\n"
    "  dpr reduce --generate 64MiB --strategy all    strategies compared on this machine\n",
    list_print_all,
    "Files are .npy (versions 1.0 to 3.0, either byte order, C or Fortran order) or, with --dtype, bare\n"
    "elements in this machine's byte order. They may be larger than memory: they are mapped window by window\n"
    "and the results of the windows combined. argmin and argmax give the index in row-major order, as NumPy's\n"
    "flat index, whatever the order in the file. bfloat16 arrays, which NumPy saves as '|V2', need\n"
    "--dtype bf16.\n"
    "\n"
    "With --axis each index of the other dimensions has a result, as in NumPy; -O writes an array of their shape.\n"
    "--axis takes arrays of at most 8 dimensions.\n"
    "With --offsets each segment has a result: segment i begins at offset i and ends where segment i + 1 begins,\n"
    "and is empty if it begins at its end or after it. The file of --offsets is an array of one dimension with one\n"
    "offset more than there are segments. Offsets count elements from 0, and are i32, u32, i64 or u64; a segment\n"
    "that is not empty and not within the array is an error. argmin and argmax give the index in the segment.\n"
    "With --by, elements with the same key next to each other have a result. The file of --by has a key for each\n"
    "element, an integer or a truth value; it has the shape of FILE or one dimension. -O also writes the keys, to a\n"
    "file with '.keys' in its name. --offsets and --by take elements in row-major order, whatever the shape.\n"
    "Several operations run one after another, and each has its own results; -q prints all results of one\n"
    "operation, then those of the next. The heading has the time, the bytes of the array over it, and the strategy\n"
    "that ran; with --by it names a strategy only if --strategy does, because calls by keys do not tell which one\n"
    "ran. The first ten results are shown; -O writes all of them to a .npy file, which must not be one that is\n"
    "read, and takes one operation.\n"
    "All files and results must fit in memory, so --window has no meaning. The CPU does the work, whose time\n"
    "includes starting threads, unless --device or --strategy asks for a GPU.\n"
    "\n"
    "Without these options, each line of output has the operation, the value in digits that give it back when\n"
    "read, the strategy that ran, the bytes of the array over the time the reduction took, and this time. The time\n"
    "does not include planning, starting threads, loading kernels and the copy to a GPU. If a file is longer than a\n"
    "window, it includes waiting for the disk. With --generate it is the median of several runs.\n"
    "minmax has two values, the least and the greatest element, with a space between them. Generated integers are\n"
    "uniform over all values of the type, floating point is uniform in [0, 1); the same on every machine.\n"
    "\n"
    "JSON: integers have all their digits, however large; NaN and infinities are the strings \"nan\", \"inf\" and\n"
    "\"-inf\"; complex numbers are [real, imaginary], and the result of minmax is [least, greatest]. With --offsets,\n"
    "--by or --axis it has the first ten results, too, and `more` says how many are left out.\n"
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
    for (size_t i = 0; a->every_op && i < dpr_op_count(); i++)
        a->ops[a->op_count++] = dpr_op_at(i);
    return a->every_op ? CLI_OK : cli_each(text, add_op, a);
}

static int take_dtype(const char *text, void *out) {
    request *r = out;
    r->raw = &r->dtype;
    return cli_dtype(text, &r->dtype);
}

static const char *divisor_name(size_t i) {
    static const char *const names[] = {[DPR_DIVISOR_POPULATION] = "population", [DPR_DIVISOR_SAMPLE] = "sample"};
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

static int take_divisor(const char *text, void *out) {
    return cli_choice(text, divisor_name, out);
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

static int add_axis(const char *word, void *out) {
    segments_asked *s = out;
    char *end;
    errno = 0;
    const long axis = strtol(word, &end, 10);
    if (end == word || *end || errno || axis < -DPR_MOST_DIMENSIONS || axis >= DPR_MOST_DIMENSIONS)
        return cli_usage("'%s' is no dimension from %d to %d", word, -DPR_MOST_DIMENSIONS, DPR_MOST_DIMENSIONS - 1);
    if (s->axis_count == DPR_MOST_DIMENSIONS)
        return cli_usage("more than %d dimensions are named", DPR_MOST_DIMENSIONS);
    s->axes[s->axis_count++] = (int)axis;
    return CLI_OK;
}

static int take_axes(const char *text, void *out) {
    ((segments_asked *)out)->axis_count = 0;
    return cli_each(text, add_axis, out);
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
         "operations, separated by commas (default: sum);\n'every': all that suit the elements, and --init"},
        {'t', "dtype", "TYPE", take_dtype, r, "type of the elements of raw files and generated data"},
        {0, "nan", "RULE", cli_nan, &r->asked.nan, "propagate (default) or ignore: skip NaN elements"},
        {0, "divisor", "DIVISOR", take_divisor, &r->asked.divisor,
         "what var divides by: population (default), the number\nof elements; or sample, one less"},
        {0, "init", "VALUE", cli_text, &r->asked.init,
         "a value of the type of the result that is combined with\nit (sumsq, norm1 and count add it); for minmax two: "
         "'LEAST GREATEST'"},
        {'s', "strategy", "NAME", take_strategy, &r->asked,
         "a strategy of 'dpr info', or 'all' to compare them\n(default: the planner's choice)"},
        {'d', "device", "DEVICE", cli_device, &r->device,
         "cpu, auto (a GPU if there is one), or a GPU's number.\nDefault: cpu for files, auto for --generate"},
        {'g', "generate", "SIZE", take_generate, r, "reduce SIZE bytes of pseudo-random data, no files"},
        {'w', "window", "SIZE", take_window, &r->window, "bytes in memory at a time (default: 64MiB)"},
        {0, "offsets", "FILE", cli_file, &r->segments.offsets,
         "reduce each segment by itself; FILE says where they\nbegin, and where the last one ends"},
        {0, "axis", "K,...", take_axes, &r->segments, "reduce along these dimensions; -1 is the last one"},
        {0, "keepdims", NULL, cli_flag, &r->segments.keepdims,
         "with --axis: results keep the reduced dimensions,\nwith extent 1"},
        {0, "by", "FILE", cli_file, &r->segments.by,
         "reduce each run of equal keys by itself; FILE has a\nkey for each element"},
        {'O', "output", "FILE", cli_file, &r->segments.output, "with these options: write the results there (.npy)"},
        {0, "json", NULL, cli_flag, &r->json, "one JSON document"},
        {'q', "quiet", NULL, cli_flag, &r->asked.quiet, "the values alone, one a line"},
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
    if (cli_open_device(DPR_DEVICE_CPU, &r->asked.cpu) != CLI_OK)
        return CLI_FAILED;
    r->asked.prefer_gpu = r->device != CLI_NO_DEVICE || r->generating;
    if (!wants_gpu(r))
        return CLI_OK;
    if (cli_open_device(r->device >= 0 ? r->device : DPR_DEVICE_AUTO, &r->asked.gpu) != CLI_OK)
        return CLI_FAILED;
    if (dpr_ctx_device(r->asked.gpu) == DPR_DEVICE_CPU) { /* there is no GPU */
        dpr_ctx_destroy(r->asked.gpu);
        r->asked.gpu = NULL;
    }
    return CLI_OK;
}

/* ---- Work ------------------------------------------------------------------------------------------------------- */

/* The option that asks for many results; NULL if none does. */
static const char *option_of_parts(const segments_asked *s) {
    return s->offsets ? "--offsets" : s->by ? "--by" : s->axis_count > 0 ? "--axis" : NULL;
}

/* Reduces the array in a file, or the generated one if `file` is NULL. CLI_OK, or the exit code. */
static int reduce_one(request *r, const char *file) {
    source s;
    const char *name = !file ? "generated" : strcmp(file, "-") == 0 ? "standard input" : file;
    const size_t window = r->window > 0 ? (size_t)r->window : DEFAULT_WINDOW;
    const int opened = file ? source_open(&s, file, r->raw, window) : source_generate(&s, r->dtype, r->generate);
    int code = opened == 0 ? jobs_reduce(&r->asked, &s, name) : -1;
    if (code < 0) {
        cJSON *row = report_row(r->asked.arrays);
        report_add(row, "file=%s error=%s", name, s.why);
        code = cli_error("%s: %s", name, s.why);
    }
    source_close(&s);
    return code;
}

static int reduce_all(request *r, char **files, int count) {
    int code = open_places(r);
    if (code != CLI_OK)
        return code;
    if (option_of_parts(&r->segments))
        return segments_reduce(&r->asked, &r->segments, files[0], r->raw);
    if (r->generating)
        return reduce_one(r, NULL);
    for (int i = 0; i < count; i++) {
        const int one = reduce_one(r, files[i]);
        code = one > code ? one : code;
    }
    return code;
}

/* Whether --offsets, --by, --axis and --output go together with the other options. */
static int check_parts(const request *r, int count) {
    const segments_asked *s = &r->segments;
    const char *option = option_of_parts(s), *numbers = s->by ? s->by : s->offsets;
    if (s->keepdims && s->axis_count == 0)
        return cli_usage("--keepdims goes with --axis");
    if (!option && s->output)
        return cli_usage("--output is for many results, by --offsets, --by or --axis");
    if (!option)
        return CLI_OK;
    if ((s->offsets != NULL) + (s->by != NULL) + (s->axis_count > 0) > 1)
        return cli_usage("--offsets, --by and --axis exclude each other");
    if (r->generating || count != 1)
        return cli_usage("%s goes with one file", option);
    if ((numbers && strcmp(numbers, "-") == 0) || (s->output && strcmp(s->output, "-") == 0))
        return cli_usage("%s and --output take the names of files, not '-'", option);
    if (s->output && r->asked.op_count != 1)
        return cli_usage("--output goes with one operation");
    if (r->window > 0)
        return cli_usage("--window does not go with %s, for which whole files are in memory", option);
    if (r->asked.every_strategy)
        return cli_usage("%s goes with one strategy", option);
    return CLI_OK;
}

/* Whether files and options go together. CLI_OK, or CLI_USAGE after a message. */
static int check(const request *r, char **files, int count) {
    int standard = 0;
    if (r->generating && count > 0)
        return cli_usage("--generate and the file '%s' exclude each other", files[0]);
    if (!r->generating && count == 0)
        return cli_usage("no file is named ('-' is standard input)");
    if (r->generate % dpr_dtype_size(r->dtype))
        return cli_usage("%" PRIu64 " bytes are no whole number of %s elements", r->generate, dpr_dtype_name(r->dtype));
    for (int i = 0; i < count; i++)
        if (strcmp(files[i], "-") == 0 && standard++)
            return cli_usage("standard input ('-') is named twice");
    for (int i = 0; i < r->asked.op_count; i++)
        if (r->asked.init && !r->asked.every_op && !jobs_takes_init(r->asked.ops[i]))
            return cli_usage("--init: %s takes no initial value", dpr_op_name(r->asked.ops[i]));
    return check_parts(r, count);
}

int command_reduce(int argc, char **argv) {
    request r = {.asked = {.ops = {DPR_SUM}, .op_count = 1}, .dtype = DPR_F32, .device = CLI_NO_DEVICE};
    int first = 0, code = parse(argc, argv, &r, &first);
    if (code != CLI_GO_ON)
        return code;
    code = check(&r, argv + first, argc - first);
    if (code != CLI_OK)
        return code;
    asked *a = &r.asked;
    a->quiet &= !r.json;
    a->out = report_begin(stdout, r.json ? REPORT_JSON : REPORT_TABLE);
    cJSON_AddStringToObject(a->out.document, "version", dpr_version());
    a->arrays = cJSON_AddArrayToObject(a->out.document, "arrays");
    code = reduce_all(&r, argv + first, argc - first);
    if (report_end(&a->out) != 0 && cli_error("out of memory") > code)
        code = CLI_FAILED;
    dpr_ctx_destroy(a->gpu);
    dpr_ctx_destroy(a->cpu);
    return code;
}
