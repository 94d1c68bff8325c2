/* What became of the files of wisdom that the process reads. */
#ifndef DPR_TOOLS_WISDOM_FILES_H
#define DPR_TOOLS_WISDOM_FILES_H

enum { WISDOM_FILES = 2 * 4096 + 16 };

/* Hands on each line of dpr_wisdom_status(), and one more, "missing: PATH", if DPR_WISDOM names a file that does not
 * exist. 0, or -1 when out of memory. */
int wisdom_each_line(void (*take)(void *user, const char *line), void *user);

/* Names the files whose times the process has read, with ", " between them; "none" if there are none. The text is
 * returned. */
const char *wisdom_files_read(char text[WISDOM_FILES]);

/* A note to standard error on each file that is refused or missing. */
void wisdom_note_unused(void);

#endif
