/* Where a report goes: a file that is whole at any time, or standard output. */
#ifndef DPR_TOOLS_OUTFILE_H
#define DPR_TOOLS_OUTFILE_H

#include <stdio.h>

typedef struct outfile {
    const char *name; /* NULL: standard output */
    int format;       /* a report_format, or OUTFILE_GUESS */
    int shows_table;  /* 1: a table also goes to standard output where the file has another format */
    /* Writes all of the report. Errors of the file are looked for afterwards. 0, or -1 when out of memory. */
    int (*write)(void *user, FILE *f, int format);
    void *user;

    /* Private. */
    double saved; /* when the file was last written */
    int made;     /* 1: outfile_try() has made it, and nothing was written since */
} outfile;

/* As a format: json, csv or markdown for a file whose name ends in .json, .csv or .md; else table. */
enum { OUTFILE_GUESS = -1 };

/* Whether a file is written anew, and another may come next to it. A device or a pipe is written to. A folder can be
 * neither, which outfile_try() finds out. */
int outfile_is_replaceable(const char *file);

/* As an option (cli.h) for an outfile: takes the name of a format. CLI_OK, or CLI_USAGE after a message. */
int outfile_set_format(const char *text, void *out);

/* Refuses a file `name` that is one of the n inputs, which may have another name, or be "-", standard input. Each may
 * be NULL: there is none. CLI_OK, or CLI_USAGE after a message. */
int outfile_refuse_input(const char *name, const char *const *inputs, size_t n);

/* Settles the format and finds out, before there is anything to report, whether the file can be written. CLI_OK, or
 * CLI_FAILED after a message. */
int outfile_try(outfile *o);

/* Writes the file once in some seconds, in case that the program is killed or the device hangs; nothing to what is no
 * regular file, or to standard output. */
void outfile_refresh(outfile *o);

/* Where there is no report: removes the file again if it is outfile_try()'s. */
void outfile_abandon(outfile *o);

/* Writes the report. CLI_OK, or CLI_FAILED after a message; errors of standard output are for cli_finish(). */
int outfile_finish(outfile *o);

#endif
