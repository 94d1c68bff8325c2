#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnuplot.h"
#include "page_files.h"

/* ---- Classes and symbols ---------------------------------------------------------------------------------------- */

const char *svg_class(int series, char text[SVG_CLASS]) {
    static const char *const dashes[PLOT_DASHES] = {"", " d", " dd"};
    if (series >= 0)
        snprintf(text, SVG_CLASS, "s%d%s", series % PLOT_COLOURS, dashes[plot_dash(series)]);
    else if (series <= SERIES_LEVEL)
        snprintf(text, SVG_CLASS, "h%d", SERIES_LEVEL - series);
    else
        snprintf(text, SVG_CLASS, "%s", series == SERIES_CROSSOVERS ? "x" : series == SERIES_RULE ? "r" : "c");
    return text;
}

static void put_symbol_name(FILE *f, int series) {
    if (series >= 0)
        fprintf(f, "m%d", series % PLOT_COLOURS);
    else
        fputs("mc", f);
}

void svg_symbols(FILE *f) {
    fputs("<defs>"
          "<circle id=\"m0\" r=\"3\"/>"
          "<path id=\"m1\" d=\"M-3-3H3V3H-3z\"/>"
          "<path id=\"m2\" d=\"M0-4L3.5 2.5H-3.5z\"/>"
          "<path id=\"m3\" d=\"M0 4L3.5-2.5H-3.5z\"/>"
          "<path id=\"m4\" class=\"o\" d=\"M-3-3L3 3M3-3L-3 3\"/>"
          "<path id=\"m5\" class=\"o\" d=\"M-3-3H3V3H-3z\"/>"
          "<circle id=\"m6\" class=\"o\" r=\"3\"/>"
          "<path id=\"m7\" class=\"o\" d=\"M0-4L3.5 2.5H-3.5z\"/>"
          "<circle id=\"mc\" class=\"o\" r=\"6\"/>"
          "</defs>",
          f);
}

void svg_key(FILE *f, int series, int line) {
    char class[SVG_CLASS];
    fprintf(f, "<svg class=\"key %s\" viewBox=\"-14 -7 28 14\" aria-hidden=\"true\">", svg_class(series, class));
    if (series <= SERIES_LEVEL)
        fputs("<path d=\"M-7-6H7V6H-7z\"/>", f);
    else if (line)
        fputs("<path class=\"l\" d=\"M-14 0H14\"/>", f);
    if (series >= 0 || series == SERIES_CHOICE) {
        fputs("<use href=\"#", f);
        put_symbol_name(f, series);
        fputs("\"/>", f);
    }
    fputs("</svg>", f);
}

/* ---- Reading gnuplot's elements --------------------------------------------------------------------------------- */

/* The value of an attribute of the tag that begins at `tag` and ends before `end`, with its length; NULL: none.
 * gnuplot's quotes are of both kinds, and some '=' have blanks around them. */
static const char *attribute(const char *tag, const char *end, const char *name, size_t *length) {
    const size_t n = strlen(name);
    for (const char *at = tag; at + n < end; at++) {
        if (strncmp(at, name, n) != 0 || !strchr(" \t\n", at[-1]))
            continue;
        const char *value = at + n + strspn(at + n, " =");
        const char *stop = *value == '\'' || *value == '"' ? strchr(value + 1, *value) : NULL;
        if (!stop || stop > end)
            continue;
        *length = (size_t)(stop - value - 1);
        return value + 1;
    }
    *length = 0;
    return NULL;
}

static int has_value(const char *tag, const char *end, const char *name, const char *wanted) {
    size_t n;
    const char *value = attribute(tag, end, name, &n);
    return value && n == strlen(wanted) && strncmp(value, wanted, n) == 0;
}

/* Two numbers behind a word: "translate(1.5,2)". */
static int read_pair(const char *tag, const char *end, const char *word, double *x, double *y) {
    size_t n;
    const char *value = attribute(tag, end, "transform", &n), *at = value ? strstr(value, word) : NULL;
    char *stop;
    if (!at || at >= value + n)
        return 0;
    *x = strtod(at + strlen(word), &stop);
    *y = *stop == ',' ? strtod(stop + 1, &stop) : 0;
    return 1;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* A coordinate with a tenth of a unit, which no screen shows better. */
static void put_coordinate(FILE *f, double x) {
    const double tenths = round(10 * x);
    if (tenths == 10 * round(x))
        fprintf(f, "%.0f", round(x) + 0.0);
    else
        fprintf(f, "%.1f", tenths / 10);
}

/* Letters of paths and numbers; nothing else of the value is written. */
static void put_path(FILE *f, const char *value, size_t n) {
    for (const char *end = value + n; value < end;) {
        char *stop;
        if (strchr("0123456789.-", *value)) {
            put_coordinate(f, strtod(value, &stop));
            value = stop > value ? stop : value + 1;
        } else {
            if (strchr("MLHVZz, ", *value) && !(*value == ' ' && (value + 1 == end || value[1] == ' ')))
                fputc(*value, f);
            value++;
        }
    }
}

/* What is open while a picture is copied. */
typedef struct copying {
    html *h;
    const plot *p;
    int depth, series_depth; /* open groups; at which one a series began, 0: outside of series */
    int series;
    double x, y; /* of the text */
    int turned;
    const char *anchor;
} copying;

static void open_group(copying *c, const char *tag, const char *end) {
    size_t n;
    const char *id = attribute(tag, end, "id", &n);
    static const char prefix[] = "gnuplot_plot_";
    char class[SVG_CLASS];
    double turn = 0, unused;
    c->depth++;
    if (id && strncmp(id, prefix, strlen(prefix)) == 0) {
        const long number = strtol(id + strlen(prefix), NULL, 10);
        c->series = number >= 1 && number <= c->p->series_count ? c->p->series[number - 1] : SERIES_CROSSOVERS;
        c->series_depth = c->depth;
        html_put(c->h, "<g class=\"%s\">", svg_class(c->series, class));
    }
    if (read_pair(tag, end, "translate(", &c->x, &c->y)) {
        c->turned = read_pair(tag, end, "rotate(", &turn, &unused) && turn != 0;
        c->anchor = has_value(tag, end, "text-anchor", "middle") ? " class=\"m\""
                    : has_value(tag, end, "text-anchor", "end")  ? " class=\"e\""
                                                                 : "";
    }
}

static void close_group(copying *c) {
    if (c->series_depth && c->depth == c->series_depth) {
        html_put(c->h, "</g>\n");
        c->series_depth = 0;
    }
    c->depth--;
}

static void copy_path(const copying *c, const char *tag, const char *end) {
    size_t n;
    const char *d = attribute(tag, end, "d", &n);
    const char *class = c->series_depth ? "l" : has_value(tag, end, "class", "gridline") ? "g" : "a";
    if (!d)
        return;
    html_put(c->h, "<path class=\"%s\" d=\"", class);
    put_path(c->h->f, d, n);
    html_put(c->h, "\"/>");
}

static void copy_polygon(const copying *c, const char *tag, const char *end) {
    size_t n;
    const char *points = attribute(tag, end, "points", &n);
    if (!points || !c->series_depth)
        return;
    html_put(c->h, "<polygon points=\"");
    put_path(c->h->f, points, n);
    html_put(c->h, "\"/>");
}

static void copy_symbol(const copying *c, const char *tag, const char *end) {
    double x, y;
    if (!c->series_depth || !read_pair(tag, end, "translate(", &x, &y))
        return;
    html_put(c->h, "<use href=\"#");
    put_symbol_name(c->h->f, c->series);
    html_put(c->h, "\" x=\"");
    put_coordinate(c->h->f, x);
    html_put(c->h, "\" y=\"");
    put_coordinate(c->h->f, y);
    html_put(c->h, "\"/>");
}

/* The text is of plot_word()'s characters, with gnuplot's entities. */
static void copy_text(const copying *c, const char *text) {
    const char *end = text + strcspn(text, "<");
    html_put(c->h, "<text%s", c->anchor ? c->anchor : "");
    if (c->turned)
        html_put(c->h, " transform=\"translate(%.1f %.1f) rotate(-90)\">", c->x, c->y);
    else
        html_put(c->h, " x=\"%.1f\" y=\"%.1f\">", c->x, c->y);
    for (const char *at = text; at < end; at++) {
        static const char *const entities[] = {"&lt;", "&gt;", "&amp;"};
        size_t i = 0;
        while (i < 3 && strncmp(at, entities[i], strlen(entities[i])) != 0)
            i++;
        if (i < 3)
            html_put(c->h, "%s", entities[i]);
        else
            html_put(c->h, "%c", *at == '&' ? '?' : *at);
        at += i < 3 ? strlen(entities[i]) - 1 : 0;
    }
    html_put(c->h, "</text>");
}

/* gnuplot's elements one after another, without what it defines. */
static void copy(copying *c, const char *text) {
    const char *begin = strstr(text, "</defs>");
    for (const char *tag = begin ? begin + 7 : text, *end; (tag = strchr(tag, '<')) && (end = strchr(tag, '>'));
         tag = end) {
        if (strncmp(tag, "<g ", 3) == 0 || strncmp(tag, "<g>", 3) == 0)
            open_group(c, tag, end);
        else if (strncmp(tag, "</g>", 4) == 0)
            close_group(c);
        else if (strncmp(tag, "<path ", 6) == 0)
            copy_path(c, tag, end);
        else if (strncmp(tag, "<polygon ", 9) == 0)
            copy_polygon(c, tag, end);
        else if (strncmp(tag, "<use ", 5) == 0)
            copy_symbol(c, tag, end);
        else if (strncmp(tag, "<text>", 6) == 0 || strncmp(tag, "<text ", 6) == 0)
            copy_text(c, end + 1);
    }
}

void svg_write(html *h, const plot *p, const char *gnuplots, int alone) {
    copying c = {.h = h, .p = p};
    html_put(h, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t-%s d-%s\"%s>\n", p->width,
             gnuplot_height(p, alone), p->name, p->name, alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "");
    html_put(h, "<title id=\"t-%s\">", p->name);
    html_text(h, p->title);
    html_put(h, "</title><desc id=\"d-%s\">%s</desc>", p->name, p->description);
    if (alone) {
        html_put(h, "<style>");
        fwrite(plot_css, 1, strlen(plot_css), h->f);
        html_put(h, "</style>");
        svg_symbols(h->f);
    }
    copy(&c, gnuplots);
    if (c.series_depth)
        html_put(h, "</g>");
    html_put(h, "</svg>\n");
}

char *svg_next(char **text) {
    static const char last[] = "</svg>";
    char *begin = strstr(*text, "<svg"), *end = begin ? strstr(begin, last) : NULL;
    if (!end)
        return NULL;
    *end = 0;
    *text = end + strlen(last);
    return begin;
}
