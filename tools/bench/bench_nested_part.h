/* Parts of `dpr bench --nested` that have a process of their own: as the size of the pool of pending launches is
 * settled when a process first launches from a kernel, and a device that hangs may take a process with it. What a part
 * has measured comes back as one line of JSON. */
#ifndef DPR_TOOLS_BENCH_NESTED_PART_H
#define DPR_TOOLS_BENCH_NESTED_PART_H

#include <stdio.h>

#include "nested.h"

/* Bytes of a part's line, at most. */
enum { PART_LINE = 16 * 1024 };

typedef struct nested_part {
    uint64_t asked; /* the pool's size that it was to have; 0: as it was found */
    int there;      /* 1: `costs` hold */
    bench_costs costs;
    char why[256]; /* why they do not; "": it was not tried */
} nested_part;

/* Writes the line of a part that has measured, or failed. 0, or -1 when out of memory. */
int part_write(FILE *f, const bench_costs *costs);
int part_write_failure(FILE *f, const char *why);

/* Reads a line: sets `there` and `costs`, or `why`. 0, or -1 if it is none, with `out` as it was. */
int part_read(const char *line, nested_part *out);

/* Runs a program and takes the first line that it writes to standard output, without its end. `argv` as of execv().
 * After `seconds`, or when *stop becomes not 0 (NULL: it does not), the program is killed.
 *
 * 0; -1 with the reason in `why` if no line came. What the program does after its line is not waited for long. */
int part_run(const char *program, char *const argv[], double seconds, const volatile sig_atomic_t *stop,
             char line[PART_LINE], char why[BENCH_WHY]);

#endif
