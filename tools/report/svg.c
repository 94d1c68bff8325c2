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

static const char *const symbols[PLOT_COLOURS] = {"<circle id=\"m0\" r=\"3\"/>",
                                                  "<path id=\"m1\" d=\"M-3-3H3V3H-3z\"/>",
                                                  "<path id=\"m2\" d=\"M0-4L3.5 2.5H-3.5z\"/>",
                                                  "<path id=\"m3\" d=\"M0 4L3.5-2.5H-3.5z\"/>",
                                                  "<path id=\"m4\" class=\"o\" d=\"M-3-3L3 3M3-3L-3 3\"/>",
                                                  "<path id=\"m5\" class=\"o\" d=\"M-3-3H3V3H-3z\"/>",
                                                  "<circle id=\"m6\" class=\"o\" r=\"3\"/>",
                                                  "<path id=\"m7\" class=\"o\" d=\"M0-4L3.5 2.5H-3.5z\"/>"};

/* Style sheets name these markers, which take no colour from the lines that have them: each has its own. */
static void put_marker(FILE *f, const char *name, const char *class, const char *symbol) {
    fprintf(f, "<marker id=\"k%s\" class=\"%s\" markerUnits=\"userSpaceOnUse\">%s</marker>", name, class, symbol);
}

void svg_symbols(FILE *f) {
    char name[12], class[SVG_CLASS];
    fputs("<defs>", f);
    for (int i = 0; i < PLOT_COLOURS; i++) {
        snprintf(name, sizeof name, "%d", i);
        put_marker(f, name, svg_class(i, class), symbols[i]);
    }
    put_marker(f, "c", svg_class(SERIES_CHOICE, class), "<circle id=\"mc\" class=\"o\" r=\"6\"/>");
    fputs("</defs>", f);
}

void svg_key(FILE *f, int series, int line) {
    char class[SVG_CLASS];
    fprintf(f, "<svg class=\"key %s\" viewBox=\"-14 -7 28 14\" aria-hidden=\"true\">", svg_class(series, class));
    if (series <= SERIES_LEVEL)
        fputs("<path d=\"M-7-6H7V6H-7z\"/>", f);
    else if (line)
        fputs("<path class=\"l\" d=\"M-14 0H14\"/>", f);
    if (series >= 0)
        fprintf(f, "<use href=\"#m%d\"/>", series % PLOT_COLOURS);
    else if (series == SERIES_CHOICE)
        fputs("<use href=\"#mc\"/>", f);
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

/* ---- Paths ------------------------------------------------------------------------------------------------------ */

/* The data of one path, in memory. Lines are relative to where they begin, which takes the fewest digits. Coordinates
 * are in tenths of a unit, which no screen shows better. */
typedef struct trace {
    html data;
    size_t from;  /* what is before it was written already */
    long x, y;    /* where it is */
    int is_moved; /* 1: it has moved there without a word */
    int is_pair;  /* 1: the last command was "l", which the next pair of numbers needs no more */
} trace;

static void put_tenths(trace *t, const char *before, long tenths) {
    const long size = labs(tenths);
    html_put(&t->data, "%s%s", tenths < 0 && strcmp(before, " ") == 0 ? "" : before, tenths < 0 ? "-" : "");
    if (size >= 10 || size == 0)
        html_put(&t->data, "%ld", size / 10);
    if (size % 10)
        html_put(&t->data, ".%ld", size % 10);
}

static void trace_move(trace *t, long x, long y) {
    t->x = x;
    t->y = y;
    t->is_moved = 1;
    t->is_pair = 0;
}

static void trace_line(trace *t, long x, long y) {
    const long across = x - t->x, down = y - t->y;
    const int is_pair = across && down;
    if (t->is_moved) {
        put_tenths(t, "M", t->x);
        put_tenths(t, " ", t->y);
    }
    if (is_pair)
        put_tenths(t, t->is_pair ? " " : "l", across);
    else if (across || !down)
        put_tenths(t, "h", across);
    if (down)
        put_tenths(t, is_pair ? " " : "v", down);
    t->x = x;
    t->y = y;
    t->is_moved = 0;
    t->is_pair = is_pair;
}

static long tenths_of(double x) {
    return fabs(x) < 1e6 ? lround(10 * x) : 0;
}

/* Two numbers of a path. Moves *text behind them, or to `end` if there are none. */
static int next_pair(const char **text, const char *end, long *x, long *y) {
    char *stop;
    *text += strcspn(*text, "0123456789.-");
    if (*text >= end)
        return 0;
    *x = tenths_of(strtod(*text, &stop));
    *text = stop > *text ? stop + strspn(stop, ", ") : *text + 1;
    *y = tenths_of(strtod(*text, &stop));
    *text = stop > *text ? stop : *text + 1;
    return *text <= end;
}

/* gnuplot's paths: "M78.7,263.2 L512.7,263.2". */
static void trace_path(trace *t, const char *value, size_t n) {
    const char *end = value + n;
    long x = 0, y = 0;
    for (int is_first = 1;; is_first = 0) {
        const char *letter = value + strspn(value, " \t\n");
        if (!next_pair(&value, end, &x, &y))
            return;
        if (is_first || *letter == 'M')
            trace_move(t, x, y);
        else
            trace_line(t, x, y);
    }
}

/* gnuplot's polygons: "68.8,40.2 68.8,20.1". */
static void trace_polygon(trace *t, const char *value, size_t n) {
    trace_path(t, value, n);
    html_put(&t->data, "z");
}

static void trace_point(trace *t, double x, double y) {
    if (html_place(&t->data) == t->from && !t->is_moved)
        trace_move(t, tenths_of(x), tenths_of(y));
    else
        trace_line(t, tenths_of(x), tenths_of(y));
}

/* ---- Copying ---------------------------------------------------------------------------------------------------- */

/* Paths of a picture: of the axes, and of a series. */
enum { TRACE_GRID, TRACE_AXES, TRACE_AREA, TRACE_LINE, TRACE_POINTS, TRACES };

/* What is open while a picture is copied. */
typedef struct copying {
    html *h;
    const plot *p;
    trace traces[TRACES];
    int depth, series_depth; /* open groups; at which one a series began, 0: outside of series */
    int series;
    double x, y; /* of the text */
    int turned;
    const char *anchor;
} copying;

/* What was traced since the last time. */
static const char *take(trace *t) {
    const size_t from = t->from;
    t->from = html_place(&t->data);
    t->is_moved = 0;
    return t->from > from ? t->data.text + from : "";
}

/* An element for each path that was traced since the last time. The markers of a line that goes through all points of
 * its series are the points. */
static void put_traces(copying *c) {
    static const char *const classes[TRACES] = {"g", "a", "f", "l", "p"};
    const char *text[TRACES];
    trace *points = &c->traces[TRACE_POINTS];
    if (points->is_moved) /* a single point: markers need a line */
        trace_line(points, points->x, points->y);
    for (int i = 0; i < TRACES; i++)
        text[i] = take(&c->traces[i]);
    const int is_marked = *text[TRACE_LINE] && strcmp(text[TRACE_LINE], text[TRACE_POINTS]) == 0;
    for (int i = 0; i < TRACES; i++)
        if (*text[i] && !(is_marked && i == TRACE_POINTS))
            html_put(c->h, "<path class=\"%s%s\" d=\"%s\"/>", classes[i], is_marked ? " p" : "", text[i]);
}

static void open_group(copying *c, const char *tag, const char *end) {
    size_t n;
    const char *id = attribute(tag, end, "id", &n);
    static const char prefix[] = "gnuplot_plot_";
    char class[SVG_CLASS];
    double turn = 0, unused;
    c->depth++;
    if (id && strncmp(id, prefix, strlen(prefix)) == 0) {
        const long number = strtol(id + strlen(prefix), NULL, 10);
        put_traces(c);
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
        put_traces(c);
        html_put(c->h, "</g>\n");
        c->series_depth = 0;
    }
    c->depth--;
}

static void copy_path(copying *c, const char *tag, const char *end) {
    size_t n;
    const char *d = attribute(tag, end, "d", &n);
    const int is_grid = has_value(tag, end, "class", "gridline");
    if (d)
        trace_path(&c->traces[c->series_depth ? TRACE_LINE : is_grid ? TRACE_GRID : TRACE_AXES], d, n);
}

static void copy_polygon(copying *c, const char *tag, const char *end) {
    size_t n;
    const char *points = attribute(tag, end, "points", &n);
    if (points && c->series_depth)
        trace_polygon(&c->traces[TRACE_AREA], points, n);
}

static void copy_symbol(copying *c, const char *tag, const char *end) {
    double x, y;
    if (c->series_depth && read_pair(tag, end, "translate(", &x, &y))
        trace_point(&c->traces[TRACE_POINTS], x, y);
}

/* The text is of plot_word()'s characters, with gnuplot's entities. */
static void copy_text(const copying *c, const char *text) {
    const char *end = text + strcspn(text, "<");
    if (end == text)
        return;
    html_put(c->h, "<text%s", c->anchor ? c->anchor : "");
    if (c->turned)
        html_put(c->h, " transform=\"translate(%.0f %.0f)rotate(-90)\">", c->x, c->y);
    else
        html_put(c->h, " x=\"%.0f\" y=\"%.0f\">", c->x, c->y);
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

/* 0, or -1 when out of memory. */
static int copy_all(html *h, const plot *p, const char *text) {
    copying c = {.h = h, .p = p};
    int failed = 0;
    for (int i = 0; i < TRACES; i++)
        failed |= html_begin(&c.traces[i].data) != 0;
    if (!failed) {
        copy(&c, text);
        put_traces(&c);
        html_put(h, "%s", c.series_depth ? "</g>" : "");
    }
    for (int i = 0; i < TRACES; i++) {
        failed = failed || html_failed(&c.traces[i].data);
        html_free(&c.traces[i].data);
    }
    return failed ? -1 : 0;
}

int svg_write(html *h, const plot *p, const char *gnuplots, int alone) {
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
    const int failed = copy_all(h, p, gnuplots);
    html_put(h, "</svg>\n");
    return failed || html_failed(h) ? -1 : 0;
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
