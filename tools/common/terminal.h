/* What the terminal behind a stream can show. */
#ifndef DPR_TOOLS_TERMINAL_H
#define DPR_TOOLS_TERMINAL_H

#include <stdio.h>

/* Columns of the terminal; 80 where there is none. */
int terminal_columns(FILE *f);

/* Whether the environment's locale is one of UTF-8: LC_ALL, LC_CTYPE or LANG, the first that is set. */
int terminal_has_utf8(void);

#endif
