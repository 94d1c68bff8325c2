/* What the commands share: options, messages, numbers on the command line. */
#ifndef DPR_TOOLS_CLI_H
#define DPR_TOOLS_CLI_H

#include <stddef.h>
#include <stdint.h>

#include "dpr.h"

/* Exit codes, as of grep and diff: 1 when some of the work failed, 2 when the command line makes no sense. After a
 * signal, as shells have it, CLI_SIGNAL and its number; CLI_GO_ON is none. */
enum { CLI_GO_ON = -1, CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };

/* One option. Tables of options come from one list per command, which also gives the option's number. */
typedef struct cli_option {
    char letter;          /* short form, 0 if there is none */
    const char *name;     /* long form, without the dashes */
    const char *argument; /* what the help calls its argument, NULL if it takes none */
    const char *text;     /* help; lines after the first begin with '\n' */
} cli_option;

#define CLI_OPTION_ENUM(ID, ...) OPTION_##ID,
#define CLI_OPTION_ENTRY(ID, letter, name, argument, text) {letter, name, argument, text},

/* The options of a command. */
typedef struct cli_syntax {
    const cli_option *options;
    int count;
    void (*help)(void); /* prints the help text, for the option "help" */
    /* Takes any other option. CLI_OK, or CLI_USAGE after a message. */
    int (*take)(void *user, int number, const char *argument);
} cli_syntax;

/* What messages begin with: "PROGRAM: " (default: "dpr"), and "PROGRAM: COMMAND: " once a command is set. */
void cli_set_program(const char *name);
void cli_set_command(const char *name);

/* The first thing that a program does: a standard stream that is closed stays unusable, but no file that is opened
 * later takes its place. */
void cli_begin(void);

/* Calls take() for each option and leaves the operands at the end of argv, *operands being the index of the first;
 * NULL: there may be none. CLI_GO_ON if there is something to do; else the exit code: CLI_OK after the help text,
 * CLI_USAGE after a message. */
int cli_parse(int argc, char **argv, const cli_syntax *syntax, void *user, int *operands);

/* The last thing that a program does: `code`, or, if standard output could not be written, at least CLI_FAILED after a
 * message. */
int cli_finish(int code);

/* Messages to stderr, defused (defuse.h). cli_error() returns CLI_FAILED. cli_usage() adds where to find
 * help, as cli_usage_hint() does alone; both return CLI_USAGE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage_hint(void);

/* cli_usage() for a word that is none of the names: "unknown WHAT 'WORD' (did you mean 'NAME'?)". name(i) is NULL at
 * the end. */
int cli_unknown(const char *what, const char *word, const char *(*name)(size_t i));

/* The number of the name that the word is. CLI_OK, or what cli_unknown() returns. */
int cli_choice(const char *what, const char *word, const char *(*name)(size_t i), size_t *out);

/* Prints the list of options for a help text. */
void cli_print_options(const cli_option *options, int count);

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
int cli_strategy(const char *text, const char **out); /* its name */
int cli_device(const char *text, int *out);           /* auto, cpu or a CUDA ordinal */
int cli_block(const char *text, int *out);            /* threads a block */
int cli_depth(const char *text, int *out);            /* nested launches; the library has the upper limit */

#endif
