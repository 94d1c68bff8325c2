/* HTML: text that is escaped, and tables. Everything that a result file says goes through html_text(). */
#ifndef DPR_TOOLS_HTML_H
#define DPR_TOOLS_HTML_H

#include <stddef.h>
#include <stdio.h>

/* The page in memory. */
typedef struct html {
    FILE *f;
    char *text; /* up to date after html_place() */
    size_t length;

    /* Private: of the open table. */
    size_t rows, left_out;
} html;

/* 0, or -1 when out of memory. html_free() is due in any case. */
int html_begin(html *h);
void html_free(html *h);

/* Where the next byte goes. Brings `text` and `length` up to date. */
size_t html_place(html *h);

/* Whether memory has run out. */
int html_failed(html *h);

/* Markup of the program's own. */
void html_put(html *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text, for elements and for attributes in double quotes. Bytes that are no UTF-8 and hostile characters (defuse.h)
 * become U+FFFD, and what is longer than HTML_LONGEST characters is cut. NULL and "" are "-". */
enum { HTML_LONGEST = 400 };
void html_text(html *h, const char *text);

/* An element with text alone: html_element(h, "p", "a < b"). */
void html_element(html *h, const char *name, const char *text);

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* A table with n headings, the first of which is that of the rows' names. Readers can sort it. */
void html_table(html *h, const char *caption, const char *const *headings, size_t n);

/* A row, and its name. 0: the table is long enough, and the row is left out; html_table_end() says how many were.
 * `order` is what the row is sorted by; NAN: its name. */
enum { HTML_ROWS = 2000 };
int html_row(html *h, const char *name, double order);

/* Cells. A number that is none (NAN) is "-". `mark` comes behind the number; NULL: nothing. */
void html_cell(html *h, const char *text);
void html_number(html *h, double x, const char *mark);

/* A number that is shown as text, and sorted by its value; NAN: by the text. */
void html_figure(html *h, double x, const char *text);

void html_table_end(html *h);

#endif
