/* The log: lines about what the library does, for the categories that DPR_LOG names (environment.def). Nothing is
 * written without it.
 *
 *     if (DPR_LOGS(LAUNCH))
 *         dpr_log(DPR_LOG_LAUNCH, "%s of %zu elements", name, count);
 *
 * A line is written by one call of write(), so lines of several threads do not mix. Functions here change neither errno
 * nor what dpr_last_error() returns, and are no cancellation points. */
#ifndef DPR_CORE_LOG_H
#define DPR_CORE_LOG_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>

#include "environment.def"

#define DPR_LOG_BIT_OF(A, NAME, word) DPR_LOG_BIT_##NAME,
enum { DPR_LOG_LIST(DPR_LOG_BIT_OF, _) DPR_LOG_CATEGORIES };
#undef DPR_LOG_BIT_OF

#define DPR_LOG_FLAG_OF(A, NAME, word) DPR_LOG_##NAME = 1 << DPR_LOG_BIT_##NAME,
typedef enum dpr_log_category {
    DPR_LOG_LIST(DPR_LOG_FLAG_OF, _) DPR_LOG_ALL = (1 << DPR_LOG_CATEGORIES) - 1
} dpr_log_category;
#undef DPR_LOG_FLAG_OF

/* The set of categories that are wanted. All bits: the environment has not been read yet. */
extern _Atomic unsigned dpr_log_wanted;
#define DPR_LOG_UNREAD UINT_MAX

/* Whether the set has the category, after reading the environment if that has not been done. */
int dpr_log_asks(dpr_log_category category);

/* Whether lines of the category are wanted: the only cost of a log that is off. */
#define DPR_LOGS(NAME)                                                                                                 \
    (__builtin_expect((atomic_load_explicit(&dpr_log_wanted, memory_order_relaxed) & DPR_LOG_##NAME) != 0, 0)          \
     && dpr_log_asks(DPR_LOG_##NAME))

/* Bytes of a line with its end; what is longer is cut. Linux writes as many to a pipe at once (PIPE_BUF). */
enum { DPR_LOG_LINE = 4096 };

/* A line that is made piece by piece. */
typedef struct dpr_log_line {
    size_t used;
    char text[DPR_LOG_LINE];
} dpr_log_line;

/* Begins the line: time since the first line, thread, category. */
void dpr_log_begin(dpr_log_line *line, dpr_log_category category);

/* Adds to it. */
void dpr_log_add(dpr_log_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes it. Control characters in it become '?'. */
void dpr_log_end(dpr_log_line *line);

/* A whole line. */
void dpr_log(dpr_log_category category, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The set of categories that a value of DPR_LOG asks for. Words that are none are left out. */
unsigned dpr_log_parse(const char *text);

/* Closes the file; the environment is read again before the next line. No other thread is in the library. */
void dpr_log_shutdown(void);

#endif
