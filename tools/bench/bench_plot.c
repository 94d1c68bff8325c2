#include "bench_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "figures.h"

/* The field has ROWS rows, MARGIN columns are left of it, and every LABELS rows there is a label of the time. */
enum { ROWS = 20, MARGIN = 10, LABELS = 4 };

/* A braille character has 2 x 4 dots. */
enum { DOTS_ACROSS = 2, DOTS_DOWN = 4 };

typedef struct plot {
    const plot_style *style;
    const bench_row *rows; /* of one operation, type, mode and cache */
    size_t n;
    int columns;                     /* of the field */
    double left, right, bottom, top; /* logarithms of the elements and of the time at its edges */
    const char *names[BENCH_SUBJECTS];
    int subjects;
    unsigned char marks[ROWS][PLOT_MOST]; /* 1 + the number of a subject; SEVERAL; 0: none */
    unsigned char dots[ROWS][PLOT_MOST];  /* braille; not 0 in ASCII: a line comes by */
} plot;

enum { SEVERAL = 255 };

/* ---- Symbols ---------------------------------------------------------------------------------------------------- */

/* The symbol of a mark. Letters follow where the symbols end. */
static const char *symbol(const plot *p, int mark, char letter[2]) {
    enum { SYMBOLS = 8, ALPHABET = 26 };
    static const char *const symbols[2][SYMBOLS] = {
        {"o", "x", "+", "#", "@", "%", "&", "$"},
        {"\u25cf", "\u25b2", "\u25a0", "\u25c6", "\u25cb", "\u25b3", "\u25a1", "\u25c7"}};
    if (mark == SEVERAL)
        return "*";
    if (mark <= SYMBOLS)
        return symbols[p->style->utf8 != 0][mark - 1];
    const int place = (mark - 1 - SYMBOLS) % (2 * ALPHABET);
    letter[0] = (char)(place < ALPHABET ? 'a' + place : 'A' + place - ALPHABET);
    letter[1] = 0;
    return letter;
}

/* The bit of a dot in a braille character (Unicode 15, U+2800 to U+28FF). */
static unsigned char braille_bit(int across, int down) {
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    return bits[down][across];
}

static void put_braille(FILE *f, unsigned char bits) {
    fprintf(f, "\xe2%c%c", 0xa0 | bits >> 6, 0x80 | (bits & 0x3f));
}

/* ---- Points ----------------------------------------------------------------------------------------------------- */

static int is_shown(const bench_row *row) {
    return results_right(row) && row->at.count > 0 && row->us.median > 0;
}

/* The number of a subject, which is added if it is new. */
static int subject_of(plot *p, const char *name) {
    for (int i = 0; i < p->subjects; i++)
        if (strcmp(p->names[i], name) == 0)
            return i;
    p->names[p->subjects] = name;
    return p->subjects++;
}

/* Finds subjects and edges. Whether there is anything to draw. */
static int measure(plot *p) {
    p->left = p->bottom = INFINITY;
    p->right = p->top = -INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        const bench_row *row = &p->rows[i];
        if (!is_shown(row))
            continue;
        (void)subject_of(p, row->subject);
        p->left = fmin(p->left, log((double)row->at.count));
        p->right = fmax(p->right, log((double)row->at.count));
        p->bottom = fmin(p->bottom, log(row->us.median));
        p->top = fmax(p->top, log(row->us.median));
    }
    return p->subjects > 0;
}

/* The place of a value from 0 to steps - 1; in the middle if there is only one. */
static int place_of(double x, double first, double last, int steps) {
    const double share = last > first ? (x - first) / (last - first) : 0.5;
    return (int)lround(share * (steps - 1));
}

/* In dots from the left, and from the top. */
static int across(const plot *p, const bench_row *row) {
    return place_of(log((double)row->at.count), p->left, p->right, DOTS_ACROSS * p->columns);
}
static int down(const plot *p, const bench_row *row) {
    return DOTS_DOWN * ROWS - 1 - place_of(log(row->us.median), p->bottom, p->top, DOTS_DOWN * ROWS);
}

/* A line, as many dots as it has in the longer direction. */
static void draw_line(plot *p, const bench_row *from, const bench_row *to) {
    const int x = across(p, from), y = down(p, from), dx = across(p, to) - x, dy = down(p, to) - y;
    const int steps = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
    for (int i = 0; i <= steps; i++) {
        const int at_x = x + (steps ? (int)lround((double)dx * i / steps) : 0);
        const int at_y = y + (steps ? (int)lround((double)dy * i / steps) : 0);
        p->dots[at_y / DOTS_DOWN][at_x / DOTS_ACROSS] |= braille_bit(at_x % DOTS_ACROSS, at_y % DOTS_DOWN);
    }
}

static void draw_mark(plot *p, const bench_row *row, int subject) {
    unsigned char *mark = &p->marks[down(p, row) / DOTS_DOWN][across(p, row) / DOTS_ACROSS];
    *mark = *mark && *mark != subject + 1 ? SEVERAL : (unsigned char)(subject + 1);
}

static void draw(plot *p) {
    for (int subject = 0; subject < p->subjects; subject++) {
        const bench_row *before = NULL;
        for (size_t i = 0; i < p->n; i++) {
            const bench_row *row = &p->rows[i];
            if (!is_shown(row) || strcmp(row->subject, p->names[subject]) != 0)
                continue;
            if (before)
                draw_line(p, before, row);
            draw_mark(p, row, subject);
            before = row;
        }
    }
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

static void put_cell(FILE *f, const plot *p, int y, int x) {
    char letter[2];
    if (p->marks[y][x])
        fputs(symbol(p, p->marks[y][x], letter), f);
    else if (p->dots[y][x] && p->style->utf8)
        put_braille(f, p->dots[y][x]);
    else
        fputc(p->dots[y][x] ? '.' : ' ', f);
}

/* Characters behind the last of a row are left out. */
static int used_columns(const plot *p, int y) {
    int n = p->columns;
    while (n > 0 && !p->marks[y][n - 1] && !p->dots[y][n - 1])
        n--;
    return n;
}

static void put_field(FILE *f, const plot *p) {
    for (int y = 0; y < ROWS; y++) {
        const double height = (double)(ROWS - 1 - y) / (ROWS - 1), us = exp(p->bottom + height * (p->top - p->bottom));
        const int has_label = (ROWS - 1 - y) % LABELS == 0 || y == 0;
        char label[32];
        fprintf(f, "%*s %s", MARGIN - 2, has_label ? figure_time(us * 1e-6, label) : "",
                p->style->utf8 ? "\u2502" : "|");
        for (int x = 0; x < used_columns(p, y); x++)
            put_cell(f, p, y, x);
        fputc('\n', f);
    }
}

/* Where the label of a row's size begins: below its point, but within the field. */
static int label_place(const plot *p, const bench_row *row, int length) {
    const int place = across(p, row) / DOTS_ACROSS - length / 2;
    return place < 0 ? 0 : place + length > p->columns ? p->columns - length : place;
}

/* The axis of the elements: the sizes that were measured, as far as there is room for them. */
static void put_axis(FILE *f, const plot *p) {
    enum { GAP = 2 };
    int end = 0, next = 0; /* of the last label, and where another may begin */
    char label[32];
    fprintf(f, "%*s%s", MARGIN - 1, "", p->style->utf8 ? "\u2514" : "+");
    for (int x = 0; x < p->columns; x++)
        fputs(p->style->utf8 ? "\u2500" : "-", f);
    fprintf(f, "\n%*s", MARGIN, "");
    for (size_t i = 0; i < p->n; i++) {
        if (!is_shown(&p->rows[i]))
            continue;
        const int length = (int)strlen(figure_elements(p->rows[i].at.count, label));
        const int begin = label_place(p, &p->rows[i], length);
        if (begin < next)
            continue;
        fprintf(f, "%*s%s", begin - end, "", label);
        end = begin + length;
        next = end + GAP;
    }
    fputc('\n', f);
}

static void put_legend(FILE *f, const plot *p) {
    char letter[2];
    int used = MARGIN, several = 0;
    for (int i = 0; i < ROWS * PLOT_MOST; i++)
        several |= p->marks[i / PLOT_MOST][i % PLOT_MOST] == SEVERAL;
    fprintf(f, "%*s", MARGIN, "");
    for (int i = 0; i < p->subjects + several; i++) {
        const char *name = i < p->subjects ? p->names[i] : "several";
        const int length = 4 + (int)strlen(name);
        if (used + length > MARGIN + p->columns && used > MARGIN) {
            fprintf(f, "\n%*s", MARGIN, "");
            used = MARGIN;
        }
        fprintf(f, "%s%s %s", used > MARGIN ? "  " : "", symbol(p, i < p->subjects ? i + 1 : SEVERAL, letter), name);
        used += length;
    }
    fputc('\n', f);
}

int plot_write(FILE *f, const bench_results *r, const plot_style *style) {
    report_out out = report_begin(f, REPORT_TABLE);
    plot *p = malloc(sizeof *p);
    for (size_t i = 0, n; p && i < r->row_count; i += n) {
        n = results_alike(r, i, 1);
        *p = (plot){.style = style, .rows = &r->rows[i], .n = n};
        p->columns = style->columns < PLOT_LEAST ? PLOT_LEAST : style->columns > PLOT_MOST ? PLOT_MOST : style->columns;
        p->columns -= MARGIN + 1;
        if (!measure(p))
            continue;
        draw(p);
        bench_report_case(&out, &r->rows[i].at, 0, 0, ", time against elements");
        put_field(f, p);
        put_axis(f, p);
        put_legend(f, p);
    }
    const int code = report_end(&out);
    free(p);
    return p ? code : -1;
}
