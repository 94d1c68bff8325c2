#include "html.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "defuse.h"

int html_begin(html *h) {
    *h = (html){.f = NULL};
    h->f = open_memstream(&h->text, &h->length);
    return h->f ? 0 : -1;
}

void html_free(html *h) {
    if (h->f)
        (void)fclose(h->f);
    free(h->text);
    *h = (html){.f = NULL};
}

size_t html_place(html *h) {
    (void)fflush(h->f);
    return h->length;
}

int html_failed(html *h) {
    return fflush(h->f) != 0 || ferror(h->f);
}

void html_put(html *h, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(h->f, format, arguments);
    va_end(arguments);
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

static const char *entity(uint32_t character) {
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        /* U+FFFE, U+FFFF and their like are no characters, and XML has no place for them. */
        return is_hostile(character) || (character & 0xFFFE) == 0xFFFE ? "\xEF\xBF\xBD" : NULL;
    }
}

void html_text(html *h, const char *text) {
    uint32_t character;
    size_t n, characters = 0;
    for (text = text && *text ? text : "-"; *text && characters < HTML_LONGEST; text += n, characters++) {
        n = utf8_next(text, &character);
        const char *instead = entity(character);
        if (instead)
            fputs(instead, h->f);
        else
            fwrite(text, 1, n, h->f);
    }
    if (*text)
        fputs("...", h->f);
}

void html_element(html *h, const char *name, const char *text) {
    html_put(h, "<%s>", name);
    html_text(h, text);
    html_put(h, "</%s>\n", name);
}

/* ---- Tables ----------------------------------------------------------------------------------------------------- */

/* The end tags of rows and cells are optional (HTML, 13.1.2.4), and so are quotes around words and numbers (13.1.2.3).
 * A page has tens of thousands of them. */

void html_table(html *h, const char *caption, const char *const *headings, size_t n) {
    h->rows = h->left_out = 0;
    html_put(h, "<div class=wide><table>");
    html_element(h, "caption", caption);
    html_put(h, "<thead><tr>");
    for (size_t i = 0; i < n; i++) {
        html_put(h, "<th scope=col>");
        html_text(h, headings[i]);
    }
    html_put(h, "</thead>\n<tbody>");
}

/* Whether the script reads the number from the text: "1024" or "2^10". */
static int says_number(const char *text, double x) {
    char digits[32];
    int exponent;
    snprintf(digits, sizeof digits, "%.15g", x);
    if (text && strcmp(text, digits) == 0)
        return 1;
    snprintf(digits, sizeof digits, "2^%d", frexp(x, &exponent) == 0.5 ? exponent - 1 : -1);
    return text && strcmp(text, digits) == 0;
}

/* What a cell is sorted by, if its text does not say it, and the end of its tag. */
static void put_order(html *h, double order, const char *text) {
    if (isfinite(order) && !says_number(text, order))
        html_put(h, " data-v=%.15g>", order);
    else
        html_put(h, ">");
}

int html_row(html *h, const char *name, double order) {
    if (h->rows == HTML_ROWS) {
        h->left_out++;
        return 0;
    }
    h->rows++;
    html_put(h, "\n<tr>");
    html_put(h, "<th scope=row");
    put_order(h, order, name);
    html_text(h, name);
    return 1;
}

void html_cell(html *h, const char *text) {
    html_put(h, "<td class=t>");
    html_text(h, text);
}

/* At least three digits that are not leading zeros. */
static void round_number(double x, char text[32]) {
    const double size = fabs(x);
    if (x == floor(x) && size < 1e15)
        snprintf(text, 32, "%.0f", x);
    else if (size < 0.01 || size >= 1e15)
        snprintf(text, 32, "%.3g", x);
    else
        snprintf(text, 32, "%.*f", size < 0.1 ? 4 : size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0, x);
}

/* Rows are sorted by the whole value, and not by what is left after rounding. */
void html_number(html *h, double x, const char *mark) {
    char shown[32], whole[32];
    if (!isfinite(x)) {
        html_put(h, "<td>-");
        return;
    }
    round_number(x, shown);
    snprintf(whole, sizeof whole, "%.15g", x);
    if (strtod(shown, NULL) == strtod(whole, NULL))
        html_put(h, "<td>%s%s", shown, mark ? mark : "");
    else
        html_put(h, "<td data-v=%s>%s%s", whole, shown, mark ? mark : "");
}

void html_figure(html *h, double x, const char *text) {
    html_put(h, "<td");
    put_order(h, x, text);
    html_text(h, text);
}

void html_table_end(html *h) {
    html_put(h, "</table></div>\n");
    if (h->left_out)
        html_put(h, "<p class=\"note\">The table is cut: %zu more rows are in the file.</p>\n", h->left_out);
}
