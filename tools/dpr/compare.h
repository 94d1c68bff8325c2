/* `dpr bench --compare`: reads two files, and reports. */
#ifndef DPR_TOOLS_COMPARE_H
#define DPR_TOOLS_COMPARE_H

#include "cli.h"
#include "outfile.h"

/* Changes of times of up to this share are not relevant; the second, of rows that have steady times in both files.
 * tools/bench/README.md has the measurements behind them. */
#define COMPARE_THRESHOLD 0.03
#define COMPARE_STEADY_THRESHOLD 0.10

/* As the exit code of diff that means trouble. */
enum { COMPARE_UNKNOWN = CLI_USAGE };

typedef struct compare_asked {
    int wanted;       /* 1: --compare */
    double threshold; /* a fraction, of all calls; 0: the two above */
} compare_asked;

/* Compares two files, at most one of which is "-", standard input, and writes the report to `file`. CLI_OK; CLI_FAILED
 * if a row is slower or failed; COMPARE_UNKNOWN after a message, if a file cannot be read, compared or written, or if
 * the comparison says too little (compare_lacks()). */
int compare_files(const char *old, const char *new, const compare_asked *a, outfile *file);

#endif
