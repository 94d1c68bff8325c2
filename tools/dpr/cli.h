/* What the commands share: options, messages, numbers on the command line, JSON numbers. */
#ifndef DPR_TOOLS_CLI_H
#define DPR_TOOLS_CLI_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "dpr.h"

/* Exit codes, as of grep and diff: 1 when some of the work failed, 2 when the command line makes no sense. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* One option. Tables of options come from one list per command, which also gives the option's number. */
typedef struct cli_option {
    char letter;          /* short form, 0 if there is none */
    const char *name;     /* long form, without the dashes */
    const char *argument; /* what the help calls its argument, NULL if it takes none */
    const char *text;     /* help; lines after the first begin with '\n' */
} cli_option;

#define CLI_OPTION_ENUM(ID, ...) OPTION_##ID,
#define CLI_OPTION_ENTRY(ID, letter, name, argument, text) {letter, name, argument, text},

/* What the command is called in messages: "dpr: NAME: ...". */
void cli_set_command(const char *name);

/* Calls take(user, number, argument) for each option and leaves the operands at the end of argv, *operands being the
 * index of the first. CLI_OK, or CLI_USAGE after a message. `take` returns the same codes. */
int cli_parse(int argc, char **argv, const cli_option *options, int count,
              int (*take)(void *user, int number, const char *argument), void *user, int *operands);

/* Messages to stderr, control characters shown as '?'. cli_usage() adds where to find help, as cli_usage_hint() does
 * alone; both return CLI_USAGE. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage_hint(void);

/* cli_usage() for a word that is none of the names: "unknown WHAT 'WORD' (did you mean 'NAME'?)". name(i) is NULL at
 * the end. */
int cli_unknown(const char *what, const char *word, const char *(*name)(size_t i));

/* Prints the list of options for a help text. */
void cli_print_options(const cli_option *options, int count);

/* Replaces control characters, which terminals obey and file names may hold, by '?'. */
void cli_defuse(char *text);

/* Prints a file's name to stdout, control characters as '?'. */
void cli_print_name(const char *name);

/* Names of operations, types and strategies by number, NULL past the end. */
const char *cli_op_name(size_t i);
const char *cli_dtype_name(size_t i);
const char *cli_strategy_name(size_t i);

/* A number of elements or bytes: 1000, 1e6, 1.5e9, 2^20, 64Ki, 64MiB, 64MB (Ki and KiB are 1024; K and KB are 1000, as
 * are the other letters M G T P). CLI_USAGE after a message that calls it `what`. */
int cli_count(const char *what, const char *text, uint64_t *out);

/* Options that several commands have. CLI_OK, or CLI_USAGE after a message. */
int cli_op(const char *text, dpr_op *out);
int cli_dtype(const char *text, dpr_dtype *out);
int cli_nan(const char *text, dpr_nan *out);
int cli_device(const char *text, int *out); /* auto, cpu or a CUDA ordinal */

/* "1.5 GiB"; the buffer's text is returned. */
const char *cli_bytes(uint64_t bytes, char text[32]);
/* "12.3 us". */
const char *cli_time(double seconds, char text[32]);

/* A JSON integer that keeps all its digits: cJSON's own numbers are doubles. */
void cli_json_integer(cJSON *object, const char *key, uint64_t value);
/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
void cli_json_string(cJSON *object, const char *key, const char *text);
/* Prints the document to stdout and deletes it. CLI_OK, or CLI_FAILED after a message. */
int cli_json_print(cJSON *document);

/* Seconds of a clock that only goes forward. */
double cli_now(void);

#endif
