#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defuse.h"
#include "lists.h"
#include "progress.h"

static const char *program_name = "dpr", *command_name = "";

void cli_set_program(const char *name) {
    program_name = name;
}

void cli_set_command(const char *name) {
    command_name = name;
}

void cli_begin(void) {
    static const int other_way[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", other_way[fd]);
}

/* ---- Messages --------------------------------------------------------------------------------------------------- */

static void message(const char *prefix, const char *format, va_list args) {
    char text[8192];
    vsnprintf(text, sizeof text, format, args);
    defuse(text);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "%s: %s%s%s%s\n", program_name, command_name, *command_name ? ": " : "", prefix, text);
}

int cli_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    message("", format, args);
    va_end(args);
    return CLI_FAILED;
}

void cli_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    message("note: ", format, args);
    va_end(args);
}

int cli_usage_hint(void) {
    fprintf(stderr, "Try '%s %s%s--help' for more.\n", program_name, command_name, *command_name ? " " : "");
    return CLI_USAGE;
}

int cli_usage(const char *format, ...) {
    va_list args;
    va_start(args, format);
    message("", format, args);
    va_end(args);
    return cli_usage_hint();
}

/* Levenshtein distance, of words cut to what names here can be. */
static size_t distance(const char *a, const char *b) {
    enum { LONGEST = 32 };
    size_t row[LONGEST + 1], n = strnlen(b, LONGEST), m = strnlen(a, LONGEST);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

static const char *nearest(const char *word, const char *(*name)(size_t i)) {
    const char *best = NULL;
    size_t least = strlen(word) < 4 ? 2 : 3; /* further away is no typing error */
    for (size_t i = 0; name(i); i++) {
        size_t d = distance(word, name(i));
        if (d < least) {
            least = d;
            best = name(i);
        }
    }
    return best;
}

int cli_unknown(const char *what, const char *word, const char *(*name)(size_t i)) {
    const char *best = nearest(word, name);
    if (best)
        return cli_usage("unknown %s '%s' (did you mean '%s'?)", what, word, best);
    return cli_usage("unknown %s '%s'", what, word);
}

int cli_choice(const char *what, const char *word, const char *(*name)(size_t i), size_t *out) {
    for (size_t i = 0; name(i); i++)
        if (strcmp(word, name(i)) == 0) {
            *out = i;
            return CLI_OK;
        }
    return cli_unknown(what, word, name);
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static const cli_option *current_options;
static int current_count;

static const char *option_name(size_t i) {
    return i < (size_t)current_count ? current_options[i].name : NULL;
}

/* Whether several options begin like this; their names, for a message, in `list`. */
static int is_ambiguous(const char *name, char *list, size_t size) {
    size_t found = 0, length = 0;
    for (size_t i = 0; option_name(i) && length < size; i++)
        if (strncmp(name, option_name(i), strlen(name)) == 0)
            length += (size_t)snprintf(list + length, size - length, "%s'--%s'", found++ ? ", " : "", option_name(i));
    return found > 1;
}

static int bad_option(char **argv) {
    const char *word = argv[optind - 1];
    if (optopt && (strncmp(word, "--", 2) != 0 || optopt > UCHAR_MAX)) {
        if (optopt > UCHAR_MAX)
            return cli_usage("option '%s' takes no argument", word);
        return cli_usage("unknown option '-%c'", optopt);
    }
    char name[64], list[512];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    if (is_ambiguous(name, list, sizeof list))
        return cli_usage("option '--%s' is ambiguous: %s", name, list);
    const char *best = nearest(name, option_name);
    if (best)
        return cli_usage("unknown option '--%s' (did you mean '--%s'?)", name, best);
    return cli_usage("unknown option '--%s'", name);
}

/* As getopt_long() wants them: a long option's value is LONG_BASE and its number, a short one's its letter. */
enum { MOST_OPTIONS = 32, LONG_BASE = UCHAR_MAX + 1 };

static void describe_options(const cli_syntax *syntax, struct option longs[], char shorts[]) {
    size_t n = 0;
    shorts[n++] = ':';
    for (int i = 0; i < syntax->count; i++) {
        const cli_option *o = &syntax->options[i];
        longs[i].name = o->name;
        longs[i].has_arg = o->argument ? required_argument : no_argument;
        longs[i].val = LONG_BASE + i;
        if (o->letter) {
            shorts[n++] = o->letter;
            if (o->argument)
                shorts[n++] = ':';
        }
    }
}

static int number_of(const cli_syntax *syntax, int code) {
    for (int i = 0; code < LONG_BASE && i < syntax->count; i++)
        if (syntax->options[i].letter == code)
            return i;
    return code - LONG_BASE;
}

int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *user, int *operands) {
    struct option longs[MOST_OPTIONS + 1] = {0};
    char shorts[2 * MOST_OPTIONS + 2] = "";
    int code, help = 0;
    describe_options(syntax, longs, shorts);
    current_options = syntax->options;
    current_count = syntax->count;
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (code == '?')
            return bad_option(argv);
        if (code == ':')
            return cli_usage("option '%s' needs an argument", argv[optind - 1]);
        const int number = number_of(syntax, code);
        const int is_help = strcmp(syntax->options[number].name, "help") == 0;
        const int status = is_help ? CLI_OK : syntax->take(user, number, optarg);
        if (status != CLI_OK)
            return status;
        help |= is_help;
    }
    if (help) {
        syntax->help();
        return CLI_OK;
    }
    if (operands)
        *operands = optind;
    else if (optind < argc)
        return cli_usage("the operand '%s' makes no sense here", argv[optind]);
    return CLI_GO_ON;
}

int cli_finish(int code) {
    /* A full disk shows only here. */
    if ((fflush(stdout) != 0) | ferror(stdout) | (fclose(stdout) != 0)) {
        cli_set_command("");
        cli_error("standard output cannot be written: %s", strerror(errno));
        return code > CLI_FAILED ? code : CLI_FAILED;
    }
    return code;
}

void cli_print_options(const cli_option *options, int count) {
    for (int i = 0; i < count; i++) {
        char left[64];
        char letter[] = {'-', options[i].letter, ',', ' ', 0};
        snprintf(left, sizeof left, "%s--%s%s%s", options[i].letter ? letter : "    ", options[i].name,
                 options[i].argument ? " " : "", options[i].argument ? options[i].argument : "");
        printf("  %-24s ", left);
        for (const char *c = options[i].text; *c; c++) {
            putchar(*c);
            if (*c == '\n')
                printf("%27s", "");
        }
        putchar('\n');
    }
}

/* ---- Names and numbers ------------------------------------------------------------------------------------------ */

const char *cli_op_name(size_t i) {
    return i < DPR_OP_COUNT ? dpr_ops[i].name : NULL;
}
const char *cli_dtype_name(size_t i) {
    return i < DPR_DTYPE_COUNT ? dpr_dtypes[i].name : NULL;
}
const char *cli_strategy_name(size_t i) {
    return dpr_strategy_name(i);
}

int cli_op(const char *text, dpr_op *out) {
    return dpr_op_parse(text, out) == DPR_OK ? CLI_OK : cli_unknown("operation", text, cli_op_name);
}

int cli_dtype(const char *text, dpr_dtype *out) {
    return dpr_dtype_parse(text, out) == DPR_OK ? CLI_OK : cli_unknown("type", text, cli_dtype_name);
}

static const char *nan_name(size_t i) {
    static const char *const names[] = {"propagate", "ignore"};
    return i < 2 ? names[i] : NULL;
}

int cli_nan(const char *text, dpr_nan *out) {
    size_t i = 0;
    const int code = cli_choice("NaN rule", text, nan_name, &i);
    if (code == CLI_OK)
        *out = i ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
    return code;
}

int cli_strategy(const char *text, const char **out) {
    size_t i = 0;
    const int code = cli_choice("strategy", text, cli_strategy_name, &i);
    if (code == CLI_OK)
        *out = cli_strategy_name(i);
    return code;
}

int cli_device(const char *text, int *out) {
    if (strcmp(text, "cpu") == 0 || strcmp(text, "auto") == 0) {
        *out = *text == 'c' ? DPR_DEVICE_CPU : DPR_DEVICE_AUTO;
        return CLI_OK;
    }
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || !isdigit((unsigned char)*text) || n > 1023)
        return cli_usage("'%s' is no device: use auto, cpu or a GPU's number (0, 1, ...)", text);
    *out = (int)n;
    return CLI_OK;
}

int cli_block(const char *text, int *out) {
    uint64_t block = 0;
    const int code = cli_count("block", text, &block);
    if (code != CLI_OK)
        return code;
    if (block < 32 || block > 1024 || (block & (block - 1)) != 0)
        return cli_usage("block '%s' is none of 32, 64, 128, 256, 512 and 1024", text);
    *out = (int)block;
    return CLI_OK;
}

int cli_depth(const char *text, int *out) {
    uint64_t depth = 0;
    const int code = cli_count("depth", text, &depth);
    if (code != CLI_OK)
        return code;
    if (depth < 1 || depth > INT_MAX)
        return cli_usage("depth '%s' is no number of launches below each other", text);
    *out = (int)depth;
    return CLI_OK;
}

/* The factor that a suffix stands for; 0 if it is none. */
static double suffix_factor(const char *text) {
    const char *letters = "KMGTP", *at = *text ? strchr(letters, toupper((unsigned char)*text)) : NULL;
    if (!*text || strcmp(text, "B") == 0)
        return 1;
    if (!at)
        return 0;
    const char *rest = text + 1;
    double base = 1000;
    if (*rest == 'i') {
        base = 1024;
        rest++;
    }
    if (*rest == 'B')
        rest++;
    return *rest ? 0 : pow(base, (double)(at - letters + 1));
}

/* 2^EXPONENT, where `text` is the exponent. */
static int power_of_two(const char *what, const char *text, uint64_t *out) {
    char *end;
    unsigned long exponent = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || exponent > 63)
        return cli_usage("%s '2^%s' is no number: only powers 2^0 to 2^63 are", what, text);
    *out = UINT64_C(1) << exponent;
    return CLI_OK;
}

int cli_count(const char *what, const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    if (strncmp(text, "2^", 2) == 0)
        return power_of_two(what, text + 2, out);
    if (!isdigit((unsigned char)*text) || strpbrk(text, "xXpn"))
        return cli_usage("%s '%s' is no number such as 1000, 1e6, 2^20, 64Ki or 64MiB", what, text);
    *out = strtoull(text, &end, 10);
    if (!*end && errno == 0)
        return CLI_OK;
    double value = strtod(text, &end), factor = suffix_factor(end);
    if (factor == 0)
        return cli_usage("%s '%s' is no number such as 1000, 1e6, 2^20, 64Ki or 64MiB", what, text);
    value *= factor;
    if (!(value < 18446744073709551616.0))
        return cli_usage("%s '%s' is more than 2^64 - 1", what, text);
    if (value != floor(value))
        return cli_usage("%s '%s' is not a whole number", what, text);
    *out = (uint64_t)value;
    return CLI_OK;
}
