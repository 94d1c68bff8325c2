/* What the commands share: options, messages, numbers on the command line. */
#ifndef DPR_TOOLS_CLI_H
#define DPR_TOOLS_CLI_H

#include <limits.h>
#include <stddef.h>

#include "dpr.h"

/* Exit codes, as of grep and diff: 1 when some of the work failed, 2 when the command line makes no sense. After a
 * signal, as shells have it, CLI_SIGNAL and its number; CLI_GO_ON is none. */
enum { CLI_GO_ON = -1, CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };

/* One option of a command. */
typedef struct cli_option {
    char letter;                                  /* short form, 0 if there is none */
    const char *name;                             /* long form, without the dashes */
    const char *argument;                         /* what the help calls its argument, NULL if it takes none */
    int (*take)(const char *argument, void *out); /* CLI_OK, or CLI_USAGE after a message */
    void *out;
    const char *text; /* help; lines after the first begin with '\n' */
} cli_option;

/* The option "help", which each table has before its end, {0}. */
extern const cli_option cli_help_option;

/* The help text: what stands before the list of options, tables that are printed after it (NULL: none), and the rest.
 */
typedef struct cli_help {
    const char *usage;
    void (*tables)(void);
    const char *notes;
} cli_help;

/* What messages begin with: "PROGRAM: " (default: "dpr"), and "PROGRAM: COMMAND: " once a command is set. */
void cli_set_program(const char *name);
void cli_set_command(const char *name);

/* The first thing that a program does: a standard stream that is closed stays unusable, but no file that is opened
 * later takes its place. */
void cli_begin(void);

/* Takes all options and leaves the operands at the end of argv, *operands being the index of the first; NULL: there may
 * be none. CLI_GO_ON if there is something to do; else the exit code: CLI_OK after the help text, CLI_USAGE after a
 * message. */
int cli_parse(int argc, char **argv, const cli_help *help, const cli_option *options, int *operands);

/* The last thing that a program does: `code`, or, if standard output could not be written, at least CLI_FAILED after a
 * message. */
int cli_finish(int code);

/* A message to stderr, defused (defuse.h), which names the option that is being taken; of CLI_OK a note, of CLI_USAGE
 * with where to find help. Returns the code. cli_usage_hint() says the latter alone, and returns CLI_USAGE. */
int cli_message(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define cli_error(...) cli_message(CLI_FAILED, __VA_ARGS__)
#define cli_note(...) (void)cli_message(CLI_OK, __VA_ARGS__)
#define cli_usage(...) cli_message(CLI_USAGE, __VA_ARGS__)
int cli_usage_hint(void);

/* cli_usage() for a word that is none of the names, with all of them. name(i) is NULL at the end. */
int cli_unknown(const char *word, const char *(*name)(size_t i));

/* The number of the name that the word is. CLI_OK, or what cli_unknown() returns. */
int cli_choice(const char *word, const char *(*name)(size_t i), int *out);

/* Copies the text up to the next comma or other separator, and moves *text behind it; to NULL after the last word.
 * CLI_USAGE after a message if it is too long. */
enum { CLI_WORD = 128 };
int cli_next_word(const char **text, char separator, char word[CLI_WORD]);

/* take() for each word of a list separated by commas. CLI_OK, or what it returned instead. */
int cli_each(const char *text, int (*take)(const char *word, void *out), void *out);

/* Names of operations and types by number, NULL past the end; those of strategies are dpr_strategy_name(). */
const char *cli_op_name(size_t i);
const char *cli_dtype_name(size_t i);

/* "host", "pinned", "managed", "device": a dpr_memory that is not DPR_MEMORY_AUTO. */
const char *cli_memory_name(dpr_memory memory);

/* The properties of strategy i, or of the strategy that is called `name`. If there is none: those of a candidate on the
 * CPU. */
dpr_strategy_info cli_strategy_at(size_t i);
dpr_strategy_info cli_strategy_info(const char *name);

/* Where it matters that no device is named: no argument of cli_device(). */
enum { CLI_NO_DEVICE = INT_MIN };

/* Arguments of options. CLI_OK, or CLI_USAGE after a message. The comment has the type of *out. */
int cli_flag(const char *text, void *out);     /* int: 1 */
int cli_text(const char *text, void *out);     /* const char *: the text itself */
int cli_file(const char *text, void *out);     /* const char *: the name of a file, which is not empty */
int cli_op(const char *text, void *out);       /* dpr_op */
int cli_dtype(const char *text, void *out);    /* dpr_dtype */
int cli_nan(const char *text, void *out);      /* dpr_nan */
int cli_strategy(const char *text, void *out); /* const char *: its name */
int cli_device(const char *text, void *out);   /* int: auto, cpu or a CUDA ordinal */
int cli_memory(const char *text, void *out);   /* dpr_memory */
int cli_block(const char *text, void *out);    /* int: threads a block */
int cli_depth(const char *text, void *out);    /* int: nested launches below each other */

/* Whether a device that cli_device() took is there. CLI_OK, or CLI_FAILED after a message. */
int cli_check_device(int device);

/* Makes a context on such a device. CLI_OK, or CLI_FAILED after a message. */
int cli_open_device(int device, dpr_ctx **out);

/* uint64_t: a number of elements or bytes: 1000, 1e6, 1.5e9, 2^20, 64Ki, 64MiB, 64MB (Ki and KiB are 1024; K and KB are
 * 1000, as are the other letters M G T P). */
int cli_count(const char *text, void *out);

#endif
