/* A progress bar on stderr: only when that is a terminal, and only once the work has taken over a second. */
#ifndef DPR_TOOLS_PROGRESS_H
#define DPR_TOOLS_PROGRESS_H

#include <stdint.h>

/* Starts the clock; `total` is 0 when it is not known how many bytes there are. */
void progress_start(const char *name, uint64_t total);

/* Shows that `done` bytes are done, at most some ten times a second. */
void progress_show(uint64_t done);

/* Shows a line of text in place of the bar, at most some ten times a second; from the first second on, and without
 * progress_start(). Cut at 120 bytes. */
void progress_line(const char *text);

/* Takes the bar away, so that other text can be written. */
void progress_clear(void);

#endif
