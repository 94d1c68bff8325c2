#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defuse.h"
#include "progress.h"

static const char *program_name = "dpr", *command_name = "";
static const char *option_name; /* the option that is being taken, or NULL */

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

int cli_usage_hint(void) {
    fprintf(stderr, "Try '%s %s%s--help' for more.\n", program_name, command_name, *command_name ? " " : "");
    return CLI_USAGE;
}

int cli_message(int code, const char *format, ...) {
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    defuse(text);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "%s: %s%s", program_name, command_name, *command_name ? ": " : "");
    if (option_name)
        fprintf(stderr, "--%s: ", option_name);
    fprintf(stderr, "%s%s\n", code == CLI_OK ? "note: " : "", text);
    return code == CLI_USAGE ? cli_usage_hint() : code;
}

int cli_unknown(const char *word, const char *(*name)(size_t i)) {
    char list[2048] = "";
    for (size_t i = 0, length = 0; name(i) && length < sizeof list; i++, length = strlen(list))
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", name(i));
    return cli_usage("'%s' is none of %s", word, list);
}

int cli_choice(const char *word, const char *(*name)(size_t i), int *out) {
    for (size_t i = 0; name(i); i++)
        if (strcmp(word, name(i)) == 0) {
            *out = (int)i;
            return CLI_OK;
        }
    return cli_unknown(word, name);
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

const cli_option cli_help_option = {'h', "help", NULL, NULL, NULL, "this text"};

/* As getopt_long() wants them: a long option's value is LONG_BASE and its number, a short one's its letter. */
enum { MOST_OPTIONS = 32, LONG_BASE = UCHAR_MAX + 1 };

static void describe_options(const cli_option *options, struct option longs[], char shorts[]) {
    *shorts++ = ':';
    for (int i = 0; options[i].name; i++) {
        const int has_argument = options[i].argument ? required_argument : no_argument;
        longs[i] = (struct option){options[i].name, has_argument, NULL, LONG_BASE + i};
        if (options[i].letter)
            shorts += sprintf(shorts, "%c%s", options[i].letter, options[i].argument ? ":" : "");
    }
}

/* What getopt_long() refuses: a short option, or else a long one. */
static int bad_option(const char *word) {
    if (optopt > UCHAR_MAX)
        return cli_usage("option '%s' takes no argument", word);
    if (optopt)
        return cli_usage("unknown option '-%c'", optopt);
    return cli_usage("unknown or ambiguous option '%s'", word);
}

static int take_option(const cli_option *options, int code, int *help) {
    while (code < LONG_BASE && options->letter != code)
        options++;
    if (code >= LONG_BASE)
        options += code - LONG_BASE;
    if (!options->take) {
        *help = 1;
        return CLI_OK;
    }
    option_name = options->name;
    const int status = options->take(optarg, options->out);
    option_name = NULL;
    return status;
}

static void print_help(const cli_help *help, const cli_option *options) {
    printf("%s\nOptions:\n", help->usage);
    for (; options->name; options++) {
        char left[64];
        const char letter[] = {'-', options->letter, ',', ' ', 0};
        snprintf(left, sizeof left, "%s--%s %s", options->letter ? letter : "    ", options->name,
                 options->argument ? options->argument : "");
        printf("  %-24s ", left);
        for (const char *c = options->text; *c; c++)
            printf("%c%*s", *c, *c == '\n' ? 27 : 0, "");
        putchar('\n');
    }
    if (help->tables)
        help->tables();
    printf("\n%s", help->notes);
}

int cli_parse(int argc, char **argv, const cli_help *help, const cli_option *options, int *operands) {
    struct option longs[MOST_OPTIONS + 1] = {0};
    char shorts[2 * MOST_OPTIONS + 2] = "";
    int code, wants_help = 0;
    describe_options(options, longs, shorts);
    opterr = 0;
    optind = 0; /* begins anew, also if an earlier call ended within a word of several options */
    while ((code = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (code == '?')
            return bad_option(argv[optind - 1]);
        if (code == ':')
            return cli_usage("option '%s' needs an argument", argv[optind - 1]);
        const int status = take_option(options, code, &wants_help);
        if (status != CLI_OK)
            return status;
    }
    if (wants_help) {
        print_help(help, options);
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

/* ---- Arguments of options --------------------------------------------------------------------------------------- */

const char *cli_op_name(size_t i) {
    return dpr_op_name(dpr_op_at(i));
}
const char *cli_dtype_name(size_t i) {
    return dpr_dtype_name(dpr_dtype_at(i));
}

int cli_next_word(const char **text, char separator, char word[CLI_WORD]) {
    const char *from = *text ? *text : "", *end = strchr(from, separator);
    const size_t length = end ? (size_t)(end - from) : strlen(from);
    if (length >= CLI_WORD)
        return cli_usage("'%s' is too long", from);
    memcpy(word, from, length);
    word[length] = 0;
    *text = end ? end + 1 : NULL;
    return CLI_OK;
}

int cli_each(const char *text, int (*take)(const char *word, void *out), void *out) {
    char word[CLI_WORD];
    int code = CLI_OK;
    while (text && code == CLI_OK) {
        code = cli_next_word(&text, ',', word);
        if (code == CLI_OK)
            code = take(word, out);
    }
    return code;
}

int cli_flag(const char *text, void *out) {
    (void)text;
    *(int *)out = 1;
    return CLI_OK;
}

int cli_text(const char *text, void *out) {
    *(const char **)out = text;
    return CLI_OK;
}

int cli_file(const char *text, void *out) {
    return *text ? cli_text(text, out) : cli_usage("'' is no name of a file");
}

int cli_op(const char *text, void *out) {
    return dpr_op_parse(text, out) == DPR_OK ? CLI_OK : cli_unknown(text, cli_op_name);
}

int cli_dtype(const char *text, void *out) {
    return dpr_dtype_parse(text, out) == DPR_OK ? CLI_OK : cli_unknown(text, cli_dtype_name);
}

static const char *nan_name(size_t i) {
    static const char *const names[] = {[DPR_NAN_PROPAGATE] = "propagate", [DPR_NAN_IGNORE] = "ignore"};
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

int cli_nan(const char *text, void *out) {
    return cli_choice(text, nan_name, out);
}

int cli_strategy(const char *text, void *out) {
    size_t i;
    if (dpr_strategy_parse(text, &i) != DPR_OK)
        return cli_unknown(text, dpr_strategy_name);
    *(const char **)out = dpr_strategy_name(i);
    return CLI_OK;
}

dpr_strategy_info cli_strategy_at(size_t i) {
    dpr_strategy_info info = DPR_STRATEGY_INFO_INIT;
    (void)dpr_strategy_describe(i, &info);
    return info;
}

dpr_strategy_info cli_strategy_info(const char *name) {
    const dpr_strategy_info none = DPR_STRATEGY_INFO_INIT;
    size_t i;
    return dpr_strategy_parse(name, &i) == DPR_OK ? cli_strategy_at(i) : none;
}

int cli_device(const char *text, void *out) {
    int *device = out;
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (strcmp(text, "cpu") == 0 || strcmp(text, "auto") == 0)
        *device = *text == 'c' ? DPR_DEVICE_CPU : DPR_DEVICE_AUTO;
    else if (errno || *end || !isdigit((unsigned char)*text) || n > 1023)
        return cli_usage("'%s' is no device: use auto, cpu or a GPU's number (0, 1, ...)", text);
    else
        *device = (int)n;
    return CLI_OK;
}

int cli_check_device(int device) {
    if (device < 0) /* counting GPUs starts the driver, which takes a good part of a second */
        return CLI_OK;
    const int devices = dpr_device_count();
    if (devices == 0)
        return cli_error("--device: there is no GPU %d: %s", device, dpr_device_absent());
    if (device >= devices)
        return cli_error("--device: there is no GPU %d: this process can use %d, numbered from 0", device, devices);
    return CLI_OK;
}

int cli_open_device(int device, dpr_ctx **out) {
    const int code = cli_check_device(device);
    if (code != CLI_OK)
        return code;
    return dpr_ctx_create(device, out) == DPR_OK ? CLI_OK : cli_error("%s", dpr_last_error());
}

static const char *memory_at(size_t i) {
    static const char *const names[] = {"host", "pinned", "managed", "device"};
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

const char *cli_memory_name(dpr_memory memory) {
    return memory_at((size_t)(memory - DPR_MEMORY_HOST));
}

int cli_memory(const char *text, void *out) {
    int i = 0;
    const int code = cli_choice(text, memory_at, &i);
    *(dpr_memory *)out = (dpr_memory)(DPR_MEMORY_HOST + i);
    return code;
}

int cli_block(const char *text, void *out) {
    uint64_t block = 0;
    const int code = cli_count(text, &block), fits = block >= 32 && block <= 1024 && (block & (block - 1)) == 0;
    if (code == CLI_OK && fits)
        *(int *)out = (int)block;
    return code != CLI_OK || fits ? code : cli_usage("'%s' is none of 32, 64, 128, 256, 512 and 1024", text);
}

int cli_depth(const char *text, void *out) {
    enum { MOST = 24 }; /* of dpr_launch_options.max_depth */
    uint64_t depth = 0;
    const int code = cli_count(text, &depth);
    if (code != CLI_OK)
        return code;
    if (depth < 1 || depth > MOST)
        return cli_usage("'%s' is no number of launches below each other from 1 to %d", text, MOST);
    *(int *)out = (int)depth;
    return CLI_OK;
}

/* The factor that a suffix stands for; 0 if it is none. */
static double suffix_factor(const char *text) {
    const char *letters = "KMGTP", *at = *text ? strchr(letters, toupper((unsigned char)*text)) : NULL;
    double factor = 1;
    if (at) {
        const int is_binary = text[1] == 'i';
        factor = pow(is_binary ? 1024 : 1000, (double)(at - letters + 1));
        text += 1 + is_binary;
    }
    return !*text || strcmp(text, "B") == 0 ? factor : 0;
}

int cli_count(const char *text, void *out) {
    uint64_t *count = out;
    char *end;
    errno = 0;
    const int is_power = strncmp(text, "2^", 2) == 0;
    const char *digits = is_power ? text + 2 : text;
    const int is_number = isdigit((unsigned char)*digits) && !strpbrk(digits, "xXpn");
    *count = strtoull(digits, &end, 10);
    if (is_number && !is_power && !*end && errno == 0)
        return CLI_OK;
    const double number = strtod(digits, &end), factor = suffix_factor(end);
    const double value = factor * (is_power ? exp2(number) : number);
    if (!is_number || factor == 0)
        return cli_usage("'%s' is no number such as 1000, 1e6, 2^20, 64Ki or 64MiB", text);
    if (!(value < 18446744073709551616.0))
        return cli_usage("'%s' is more than 2^64 - 1", text);
    if (value != floor(value))
        return cli_usage("'%s' is not a whole number", text);
    *count = (uint64_t)value;
    return CLI_OK;
}
