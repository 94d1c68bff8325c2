/* The axes of `dpr bench` as arguments of options (cli.h): CLI_OK, or CLI_USAGE after a message; the comment has the
 * type of *out. */
#ifndef DPR_TOOLS_BENCH_AXES_H
#define DPR_TOOLS_BENCH_AXES_H

#include <stddef.h>
#include <stdint.h>

enum { AXIS_COUNTS = 1024, AXIS_SET = 64 };

/* Numbers of elements, ascending, each once. */
typedef struct axis_counts {
    int n;
    uint64_t at[AXIS_COUNTS];
} axis_counts;

/* axis_counts: a list of counts and of ranges LOW:HIGH:xFACTOR, LOW:HIGH:+STEP, LOW:HIGH (factor 4), in the numbers of
 * cli_count(). HIGH is in the range only if a step meets it. */
int axis_parse_counts(const char *text, void *out);

/* A set of the names name(0), name(1), ... (NULL past the end, at most AXIS_SET): in[i] is 1 for those in the list. A
 * word is a name, a family "PREFIX.*", or "all", which is every name. */
int axis_parse_set(const char *text, const char *(*name)(size_t i), unsigned char in[AXIS_SET]);

/* How many members a set has, and its first, which there must be. */
int axis_members(const unsigned char in[AXIS_SET]);
int axis_first(const unsigned char in[AXIS_SET]);

/* double: a time: 60s, 1.5m, 1h, 500ms; without a unit, seconds. More than 0. */
int axis_parse_seconds(const char *text, void *out);

/* double: a share: 1%, 0.5%; without a sign also percent. More than 0, at most 100. *out is a fraction. */
int axis_parse_share(const char *text, void *out);

#endif
