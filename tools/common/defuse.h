/* Text from outside: arguments, names of files and devices, what files hold and libraries say. A terminal would obey
 * control characters in it, and show it in disguise after characters that change the direction of writing. */
#ifndef DPR_TOOLS_DEFUSE_H
#define DPR_TOOLS_DEFUSE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What utf8_next() finds at a byte that begins no character of UTF-8. */
#define UTF8_NONE UINT32_MAX

/* The first character of the text, which is not empty, in *out. Returns its bytes; 1 for UTF8_NONE. Overlong forms,
 * surrogates and values past U+10FFFF are no characters. */
size_t utf8_next(const char *text, uint32_t *out);

/* Whether the character controls a terminal (U+0000 to U+001F, U+007F to U+009F), ends a line (U+2028, U+2029) or
 * changes the direction of writing (Unicode's property Bidi_Control); also UTF8_NONE. */
int is_hostile(uint32_t character);

/* Replaces each hostile character by '?'. */
void defuse(char *text);

/* Writes a text of lines, all of which have an end, with '?' for each other hostile character. Changes the text. */
void defuse_lines(FILE *f, char *text);

#endif
