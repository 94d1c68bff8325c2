/* A part of a measurement that has a process of its own, which a device that hangs may keep, and that says what it
 * found in one line. */
#ifndef DPR_TOOLS_BENCH_PART_H
#define DPR_TOOLS_BENCH_PART_H

#include "timing.h"

/* Bytes of a part's line, at most, with the zero at its end. */
enum { PART_LINE = 32 * 1024 };

/* Runs a program and takes the first line that it writes to standard output, without its end. `argv` as of execv().
 * After `seconds`, or when *stop becomes not 0 (NULL: it does not), the program is killed. What it does after its line
 * is not waited for long.
 *
 * 0 if a line came and the program ended well; else -1 with the reason in `why`, and the line if there is one, else "".
 */
int part_run(const char *program, char *const argv[], double seconds, const volatile sig_atomic_t *stop,
             char line[PART_LINE], char why[BENCH_WHY]);

#endif
