#include "defuse.h"

#include <string.h>

size_t utf8_next(const char *text, uint32_t *out) {
    /* By the bytes of a character: the least value that takes so many, and the bits of the first byte that count. */
    static const uint32_t least[] = {UTF8_NONE, 0, 0x80, 0x800, 0x10000}, first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const unsigned char *s = (const unsigned char *)text;
    const size_t length = *s < 0x80 ? 1 : *s < 0xC0 ? 0 : *s < 0xE0 ? 2 : *s < 0xF0 ? 3 : *s < 0xF8 ? 4 : 0;
    uint32_t character = *s & first_bits[length];
    size_t i = 1;
    /* The zero at the end of the text continues no character, so nothing behind it is read. */
    for (; i < length && (s[i] & 0xC0) == 0x80; i++)
        character = character << 6 | (s[i] & 0x3FU);
    const int is_surrogate = character >= 0xD800 && character <= 0xDFFF;
    const int is_character = i >= length && character >= least[length] && character <= 0x10FFFF && !is_surrogate;
    *out = is_character ? character : UTF8_NONE;
    return is_character ? length : 1;
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

void defuse_lines(FILE *f, char *text) {
    for (char *end; (end = strchr(text, '\n')); text = end + 1) {
        *end = 0;
        defuse(text);
        fprintf(f, "%s\n", text);
    }
}
