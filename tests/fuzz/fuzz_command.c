/* The command line: words that are divided by ends of lines. They are taken as options of each kind, as the options of
 * `dpr plan`, and each by itself as a value of every type. */
#define _POSIX_C_SOURCE 200809L /* strdup() */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_asked.h"
#include "bench_shapes.h"
#include "cli.h"
#include "commands.h"
#include "fuzz.h"
#include "value.h"

enum { WORDS = 64, BYTES = 4096 };

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* CLI_USAGE comes with a message, and no other code does. */
static void check_code(int code) {
    const char *message = fuzz_heard();
    FUZZ_CHECK(code == CLI_GO_ON || code == CLI_OK || code == CLI_FAILED || code == CLI_USAGE, "code %d", code);
    FUZZ_CHECK((code == CLI_GO_ON) == !*message, "code %d: %s", code, message);
    if (*message)
        fuzz_check_text(message, 1);
}

static void check_counts(const axis_counts *c) {
    FUZZ_CHECK(c->n >= 0 && c->n <= AXIS_COUNTS, "%d counts", c->n);
    for (int i = 1; i < c->n; i++)
        FUZZ_CHECK(c->at[i - 1] < c->at[i], "%" PRIu64 " before %" PRIu64, c->at[i - 1], c->at[i]);
}

static void check_shapes(const bench_shapes *s) {
    static const uint64_t counts[] = {0, 1, 1000, UINT64_C(1) << 24, UINT64_C(1) << 40};
    FUZZ_CHECK(s->n >= 0 && s->n <= SHAPES_MOST, "%d shapes", s->n);
    for (int i = 0; i < s->n; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const bench_shape *shape = &s->at[i];
            const shape_array a = shape_measures(shape, counts[k], DPR_I64);
            FUZZ_CHECK(a.elements <= counts[k] || !shape_scales(shape), "%s: %" PRIu64, shape->name, a.elements);
            FUZZ_CHECK(a.elements == 0 || a.span >= a.elements, "%s: %" PRIu64 " of %" PRIu64, shape->name, a.elements,
                       a.span);
            FUZZ_CHECK(a.span <= UINT64_MAX / 64 && a.results <= UINT64_MAX / 64, "%s: %" PRIu64, shape->name, a.span);
        }
}

static void check_asked(const bench_asked *a) {
    check_counts(&a->counts);
    check_counts(&a->pools);
    check_shapes(&a->segments);
    check_shapes(&a->axes);
    FUZZ_CHECK(a->ops.n >= 0 && a->ops.n <= AXIS_SET && a->pools.n <= ASKED_POOLS, "%d, %d", a->ops.n, a->pools.n);
    FUZZ_CHECK(isfinite(a->budget) && a->budget >= 0, "%g s", a->budget);
    FUZZ_CHECK(a->accuracy >= 0 && a->accuracy <= 1, "%g", a->accuracy);
    FUZZ_CHECK(a->block == 0 || (a->block >= 32 && a->block <= 1024), "%d threads", a->block);
    FUZZ_CHECK(a->device >= DPR_DEVICE_AUTO && a->device < 1024 && a->depth >= 0, "%d, %d", a->device, a->depth);
}

/* An option of each kind. */
static void parse_options(int argc, char **argv) {
    static const cli_help help = {"Usage: fuzz", NULL, ""};
    static bench_asked a;
    dpr_op op;
    dpr_dtype dtype;
    dpr_nan nan;
    const char *strategy = NULL;
    int operands = 0;
    a = (bench_asked){.device = DPR_DEVICE_CPU};
    const cli_option options[] = {{'n', "count", "N", axis_parse_counts, &a.counts, ""},
                                  {'o', "op", "OP", asked_take_ops, &a.ops, ""},
                                  {'t', "dtype", "T", axis_take_names, &(axis_names){cli_dtype_name, &a.dtypes}, ""},
                                  {'c', "cache", "C", asked_take_caches, &a.caches, ""},
                                  {'s', "strategy", "NAME", asked_take_strategies, &a, ""},
                                  {'d', "device", "DEVICE", cli_device, &a.device, ""},
                                  {'b', "budget", "TIME", axis_parse_seconds, &a.budget, ""},
                                  {'a', "accuracy", "SHARE", axis_parse_share, &a.accuracy, ""},
                                  {'q', "quiet", NULL, cli_flag, &a.quiet, ""},
                                  {0, "segments", "NAME", shapes_take_segments, &a.segments, ""},
                                  {0, "axes", "ARRAY", shapes_take_axes, &a.axes, ""},
                                  {0, "offsets", "TYPE", asked_take_offsets, &a.offsets, ""},
                                  {0, "pools", "N", asked_take_pools, &a.pools, ""},
                                  {0, "block", "N", cli_block, &a.block, ""},
                                  {0, "depth", "N", cli_depth, &a.depth, ""},
                                  {0, "one-op", "OP", cli_op, &op, ""},
                                  {0, "one-dtype", "TYPE", cli_dtype, &dtype, ""},
                                  {0, "nan", "RULE", cli_nan, &nan, ""},
                                  {0, "one-strategy", "NAME", cli_strategy, &strategy, ""},
                                  cli_help_option,
                                  {0}};
    fuzz_listen();
    const int code = cli_parse(argc, argv, &help, options, &operands);
    check_code(code);
    if (code != CLI_GO_ON)
        return;
    FUZZ_CHECK(operands > 0 && operands <= argc, "operand %d of %d", operands, argc);
    check_asked(&a);
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

/* The shortest text of a value reads back as the value. */
static void check_value(dpr_dtype dtype, const char *word) {
    char text[VALUE_TEXT], again[VALUE_TEXT];
    value v = {{0}}, same = {{0}};
    if (value_parse(dtype, word, &v) != 0)
        return;
    value_text(dtype, &v, text);
    fuzz_check_text(text, 0);
    FUZZ_CHECK(value_parse(dtype, text, &same) == 0, "%s of '%s' is '%s'", dpr_dtype_name(dtype), word, text);
    value_text(dtype, &same, again);
    FUZZ_CHECK(strcmp(text, again) == 0, "%s of '%s' is '%s', then '%s'", dpr_dtype_name(dtype), word, text, again);
}

/* A number of elements is whole, and its digits read back. */
static void check_count(const char *word) {
    char digits[32];
    uint64_t count = 0, again = 0;
    fuzz_listen();
    const int code = cli_count(word, &count);
    const char *message = fuzz_heard();
    FUZZ_CHECK((code == CLI_OK) == !*message, "%s", message);
    if (code != CLI_OK)
        return;
    (void)snprintf(digits, sizeof digits, "%" PRIu64, count);
    FUZZ_CHECK(cli_count(digits, &again) == CLI_OK && again == count, "'%s' is %s", word, digits);
}

static void check_word(const char *word) {
    check_count(word);
    for (size_t i = 0; i < dpr_dtype_count(); i++)
        check_value(dpr_dtype_at(i), word);
}

/* ---- Words ------------------------------------------------------------------------------------------------------ */

/* Words of the text, behind the program's name. Returns how many there are. */
static int split(char *text, char *words[WORDS + 1]) {
    static char program[] = "fuzz";
    int n = 0;
    words[n++] = program;
    for (char *next = text; next && n < WORDS; n++) {
        words[n] = next;
        next = strchr(next, '\n');
        if (next)
            *next++ = 0;
    }
    words[n] = NULL;
    return n;
}

/* No file is read: a machine may be a device that never ends. */
static int names_file(int n, char **words) {
    for (int i = 1; i < n; i++)
        if (words[i][0] == '-' && strchr(words[i], 'm'))
            return 1;
    return 0;
}

static void plan(int argc, char **argv) {
    if (names_file(argc, argv))
        return;
    fuzz_listen();
    const int code = command_plan(argc, argv);
    FUZZ_CHECK(code != CLI_GO_ON, "it went on");
    fuzz_check_text(fuzz_heard(), 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *words[WORDS + 1];
    if (size > BYTES)
        return 0;
    char *text = fuzz_text(bytes, size), *copy = strdup(text);
    int n = split(text, words);
    for (int i = 1; i < n; i++)
        check_word(words[i]);
    parse_options(n, words);
    n = split(copy, words);
    plan(n, words);
    free(text);
    free(copy);
    return 0;
}
