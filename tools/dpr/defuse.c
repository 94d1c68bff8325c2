#include "defuse.h"

#include <string.h>

/* The forms of a character, by its first byte (Unicode 15.0, table 3-7). */
static const struct {
    unsigned char low, high, second_low, second_high;
    size_t length;
} forms[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
             {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
             {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
enum { FORMS = sizeof forms / sizeof forms[0] };

/* The bytes of the character at `s`; 0 if it is none. The zero at the end of a text is in no character of several
 * bytes, so nothing behind it is read. */
static size_t length_of(const unsigned char *s) {
    size_t f = 0, length = 1;
    while (f < FORMS && (s[0] < forms[f].low || s[0] > forms[f].high))
        f++;
    if (f == FORMS)
        return 0;
    for (; length < forms[f].length; length++) {
        const unsigned char low = length == 1 ? forms[f].second_low : 0x80;
        const unsigned char high = length == 1 ? forms[f].second_high : 0xBF;
        if (s[length] < low || s[length] > high)
            return 0;
    }
    return length;
}

size_t utf8_next(const char *text, uint32_t *out) {
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const unsigned char *s = (const unsigned char *)text;
    const size_t length = length_of(s);
    *out = length ? s[0] & first_bits[length] : UTF8_NONE;
    for (size_t i = 1; i < length; i++)
        *out = *out << 6 | (s[i] & 0x3FU);
    return length ? length : 1;
}

int is_hostile(uint32_t character) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},      {0x200E, 0x200F},
                  {0x2028, 0x202E}, {0x2066, 0x2069}, {UTF8_NONE, UTF8_NONE}};
    size_t i = 0;
    while (i < sizeof ranges / sizeof ranges[0] && (character < ranges[i].first || character > ranges[i].last))
        i++;
    return i < sizeof ranges / sizeof ranges[0];
}

void defuse(char *text) {
    char *to = text;
    uint32_t character;
    for (size_t n; *text; text += n) {
        n = utf8_next(text, &character);
        if (is_hostile(character))
            *to++ = '?';
        else
            to = (char *)memmove(to, text, n) + n;
    }
    *to = 0;
}

void defuse_put(FILE *f, const char *text) {
    uint32_t character;
    for (size_t n; *text; text += n) {
        n = utf8_next(text, &character);
        if (is_hostile(character))
            putc('?', f);
        else
            fwrite(text, 1, n, f);
    }
}

void defuse_lines(FILE *f, char *text) {
    for (char *end; (end = strchr(text, '\n')); text = end + 1) {
        *end = 0;
        defuse_put(f, text);
        putc('\n', f);
    }
}
