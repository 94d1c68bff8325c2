#include "plots.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double plot_levels[PLOT_LEVELS] = {0, 1, 5, 20, 50};

/* Colours in pictures without style sheets: Okabe and Ito's, which people with any colour vision tell apart. */
static const char *const colours[PLOT_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#b8860b", "#56b4e9", "#7a4fbf", "#555555"};
static const char *const levels[PLOT_LEVELS] = {"#eaf5ea", "#f0cc62", "#f0a04b", "#d35a35", "#861530"};
/* gnuplot's symbols: crosses, squares, circles and triangles, empty and filled. */
static const int symbols[PLOT_COLOURS] = {7, 5, 9, 11, 1, 4, 6, 8};

/* ---- Names ------------------------------------------------------------------------------------------------------ */

const char *plot_word(const char *text, size_t most, char word[PLOT_WORD]) {
    size_t n = 0;
    for (; text[n] && n < most && n < PLOT_WORD - 4; n++)
        word[n] = (char)(isalnum((unsigned char)text[n]) || strchr(" .,:;+-_/^()*=<>", text[n]) ? text[n] : '?');
    snprintf(word + n, PLOT_WORD - n, "%s", text[n] ? "..." : "");
    return word;
}

static int is_taken(const plots *all, const char *name) {
    size_t i = 0;
    while (i < all->count && strcmp(all->at[i].name, name) != 0)
        i++;
    return i < all->count;
}

/* Letters and digits of the text in lower case, with '-' between them, and a number if there is such a name. */
static void make_name(const plots *all, const char *text, char name[PLOT_NAME]) {
    enum { NUMBER = 12 };
    char base[PLOT_NAME - NUMBER];
    size_t n = 0;
    for (; *text && n < sizeof base - 1; text++) {
        if (isalnum((unsigned char)*text) || *text == '.')
            base[n++] = (char)tolower((unsigned char)*text);
        else if (n > 0 && base[n - 1] != '-')
            base[n++] = '-';
    }
    while (n > 0 && base[n - 1] == '-')
        n--;
    base[n] = 0;
    snprintf(name, PLOT_NAME, "%s", base);
    for (int i = 2; is_taken(all, name); i++)
        snprintf(name, PLOT_NAME, "%s-%d", base, i);
}

/* ---- Axes ------------------------------------------------------------------------------------------------------- */

plot_look plot_plain(plot_form form, const char *title, const char *across) {
    return (plot_look){.form = form,
                       .title = title,
                       .across = across,
                       .upwards = "",
                       .rule = NAN,
                       .low = NAN,
                       .high = NAN,
                       .left = NAN,
                       .right = NAN};
}

/* Whether a plot has a place for the row. */
static int has_place(const grid *g, size_t row, const plot_look *look) {
    return look->form != PLOT_SIZES || g->row[row].at >= 0;
}

static double log2_of(double count) {
    return count > 0 ? log2(count) : -1; /* an array without elements is left of one with one */
}

/* Tics at powers of two, at most some ten. */
static void put_size_axis(FILE *f, double left, double right) {
    const int first = (int)ceil(left), last = (int)floor(right), step = (last - first) / 8 + 1;
    fprintf(f, "set xrange [%.4f:%.4f]\nset xtics (", left - 0.4, right + 0.4);
    const char *between = "";
    for (int i = first > 0 ? (first + step - 1) / step * step : 0; i <= last; i += step, between = ", ")
        fprintf(f, "%s'2^%d' %d", between, i, i);
    fprintf(f, "%s)\n", *between ? "" : "'' 0");
}

/* Tics at powers of ten, and at 2 and 5 times these where there are few. */
static void put_decades(FILE *f, char axis, double low, double high) {
    const int is_short = log10(high / low) < 2.5, step = (int)(log10(high / low) / 8) + 1;
    const char *between = "";
    fprintf(f, "set logscale %c\nset %crange [%.6g:%.6g]\nset %ctics (", axis, axis, low, high, axis);
    for (int e = (int)floor(log10(low)); e <= (int)ceil(log10(high)); e += step)
        for (int k = 1; k <= (is_short ? 5 : 1); k += k == 2 ? 3 : 1, between = ", ")
            fprintf(f, "%s'%g' %g", between, k * pow(10, e), k * pow(10, e));
    fprintf(f, ")\n");
}

/* Tics from 0 on, in steps of 1, 2 or 5 times a power of ten: some six, whose labels have room next to each other. */
static void put_steps(FILE *f, char axis, double high) {
    const double power = pow(10, floor(log10(high / 6)));
    const double step = power * (high / power <= 6 ? 1 : high / power <= 12 ? 2 : high / power <= 30 ? 5 : 10);
    fprintf(f, "set %crange [0:%.6g]\nset %ctics %.6g\nset format %c '%%g'\n", axis, high, axis, step, axis);
}

static void put_value_axis(FILE *f, char axis, const plot_look *look) {
    if (look->logarithmic)
        put_decades(f, axis, look->low, look->high);
    else
        put_steps(f, axis, look->high);
}

/* Rows from the top; their names at the left. */
static void put_row_axis(FILE *f, const grid *g) {
    char word[PLOT_WORD];
    fprintf(f, "set yrange [%zu.5:-0.5]\nset ytics (", g->rows ? g->rows - 1 : 0);
    for (size_t i = 0; i < g->rows; i++)
        fprintf(f, "%s'%s' %zu", i ? ", " : "", plot_word(g->row[i].name, 34, word), i);
    fprintf(f, ")\n");
}

/* ---- Data ------------------------------------------------------------------------------------------------------- */

static int is_drawn(const plot_look *look, const grid_cell *cell) {
    return cell && cell->value >= 0 && (!look->logarithmic || cell->value > 0);
}

static void put_column(FILE *f, const grid *g, const plot_look *look, size_t column, int chosen) {
    fprintf(f, "$d%zu << E\n", chosen ? GRID_COLUMNS : column);
    int any = 0;
    for (size_t i = 0; i < g->rows; i++)
        for (size_t k = chosen ? 0 : column; k < (chosen ? g->columns : column + 1); k++) {
            const grid_cell *cell = grid_at(g, i, k);
            if (!has_place(g, i, look) || !is_drawn(look, cell) || (chosen && !cell->chosen))
                continue;
            any = 1;
            if (look->form == PLOT_SIZES)
                fprintf(f, "%.6g %.6g\n", log2_of(g->row[i].at), cell->value);
            else
                fprintf(f, "%.6g %zu\n", cell->value, i);
        }
    /* gnuplot warns of data without a point. */
    fprintf(f, "%sE\n", any ? "" : "NaN NaN\n");
}

static void put_rules(FILE *f, const plot_look *look) {
    fprintf(f, "$none << E\nNaN NaN\nE\n$crossovers << E\nNaN NaN\n");
    for (size_t i = 0; i < look->crossover_count; i++)
        fprintf(f, "%.4f %.6g\n%.4f %.6g\n\n", log2_of(look->crossovers[i]), look->low, log2_of(look->crossovers[i]),
                look->high);
    fprintf(f, "E\n");
    if (!isfinite(look->rule))
        return;
    if (look->form == PLOT_SIZES)
        fprintf(f, "$rule << E\n%.4f %.6g\n%.4f %.6g\nE\n", look->left - 0.4, look->rule, look->right + 0.4,
                look->rule);
    else
        fprintf(f, "$rule << E\n%.6g -0.5\n%.6g 1e4\nE\n", look->rule, look->rule);
}

/* ---- Drawing ---------------------------------------------------------------------------------------------------- */

/* Titles of series are their classes in SVG (svg.h), and what the key of a picture by itself shows. */
static void draw_rules(FILE *f, const plot_look *look) {
    fprintf(f, "plot $crossovers using 1:2 with lines lw 1 dt 3 lc rgb '#888888' %s, \\\n",
            look->crossover_count ? "title 'the planner chooses another strategy'" : "notitle");
    if (isfinite(look->rule))
        fprintf(f, "  $rule using 1:2 with lines lw 1.5 dt 2 lc rgb '#666666' title '%s', \\\n", look->rule_name);
    else
        fprintf(f, "  $none using 1:2 with lines notitle, \\\n");
}

int plot_dash(int colour) {
    return colour / PLOT_COLOURS < PLOT_DASHES ? colour / PLOT_COLOURS : PLOT_DASHES - 1;
}

static int colour_of(const plot_look *look, size_t column) {
    return look->colours ? look->colours[column] : (int)column;
}

static void draw_columns(FILE *f, const grid *g, const plot_look *look) {
    static const int dashes[PLOT_DASHES] = {1, 2, 4}; /* gnuplot's: whole, dashes, dashes and dots */
    char word[PLOT_WORD];
    for (size_t i = 0; i < g->columns; i++) {
        const int colour = colour_of(look, i);
        const char *rgb = colours[colour % PLOT_COLOURS];
        fprintf(f, "  $d%zu using ", i);
        if (look->form == PLOT_BARS)
            fprintf(f, "(0):2:(0):1:($2-0.35):($2+0.35) with boxxyerror fs solid noborder lc rgb '%s'", rgb);
        else
            fprintf(f, "1:2 with %s pt %d ps 0.6 lw 1.5 dt %d lc rgb '%s'",
                    look->form == PLOT_SIZES ? "linespoints" : "points", symbols[colour % PLOT_COLOURS],
                    dashes[plot_dash(colour)], rgb);
        fprintf(f, " title '%s', \\\n", plot_word(g->column[i], 30, word));
    }
}

static void draw_choice(FILE *f, const plot_look *look) {
    if (look->choice)
        fprintf(f, "  $d%d using 1:2 with points pt 6 ps 1.3 lc rgb '#222222' title '%s'\n", GRID_COLUMNS,
                look->choice);
    else
        fprintf(f, "  $none using 1:2 with lines notitle\n");
}

static int level_of(double value) {
    int level = PLOT_LEVELS - 1;
    while (level > 0 && value < plot_levels[level])
        level--;
    return level;
}

/* One series for each level. */
static void put_heat(FILE *f, const grid *g) {
    char word[PLOT_WORD];
    size_t letters = 0;
    for (size_t i = 0; i < g->columns; i++)
        letters += strlen(g->column[i]);
    const size_t step = letters / 20 + 1; /* so that labels have room */
    fprintf(f, "set xrange [-0.5:%zu.5]\nset xtics (", g->columns - 1);
    for (size_t i = 0; i < g->columns; i += step)
        fprintf(f, "%s'%s' %zu", i ? ", " : "", plot_word(g->column[i], 12, word), i);
    fprintf(f, ")\nunset grid\n");
    for (int level = 0; level < PLOT_LEVELS; level++) {
        fprintf(f, "$d%d << E\nNaN NaN\n", level);
        for (size_t i = 0; i < g->rows; i++)
            for (size_t k = 0; k < g->columns; k++) {
                const grid_cell *cell = grid_at(g, i, k);
                if (cell && cell->value >= 0 && level_of(cell->value) == level)
                    fprintf(f, "%zu %zu\n", k, i);
            }
        fprintf(f, "E\n");
    }
    for (int level = 0; level < PLOT_LEVELS; level++)
        fprintf(f,
                "%s $d%d using 1:2:($1-0.46):($1+0.46):($2-0.46):($2+0.46) with boxxyerror fs solid noborder lc rgb "
                "'%s' title 'from %g %%'%s\n",
                level ? " " : "plot", level, levels[level], plot_levels[level], level < PLOT_LEVELS - 1 ? ", \\" : "");
}

/* ---- Scripts ---------------------------------------------------------------------------------------------------- */

/* What gnuplot's series are, in the order of the plot command. */
static void list_series(plot *p, const grid *g, const plot_look *look) {
    int *n = &p->series_count;
    for (int level = 0; look->form == PLOT_HEAT && level < PLOT_LEVELS; level++)
        p->series[(*n)++] = SERIES_LEVEL - level;
    if (look->form == PLOT_HEAT)
        return;
    p->series[(*n)++] = SERIES_CROSSOVERS;
    p->series[(*n)++] = SERIES_RULE;
    for (size_t i = 0; i < g->columns; i++)
        p->series[(*n)++] = colour_of(look, i);
    p->series[(*n)++] = SERIES_CHOICE;
}

/* Completes the ranges of the axes. 0 if there is nothing to draw. */
static int complete(const grid *g, plot_look *look) {
    double low, high, left = INFINITY, right = -INFINITY;
    if (!grid_range(g, look->logarithmic ? 0 : -1, &low, &high) || g->rows == 0)
        return 0;
    if (!isfinite(look->low))
        look->low = look->logarithmic ? low / 1.4 : 0;
    if (!isfinite(look->high))
        look->high = look->logarithmic ? high * 1.4 : 1.08 * (isfinite(look->rule) ? fmax(high, look->rule) : high);
    look->high = look->high > look->low ? look->high : look->low + 1;
    for (size_t i = 0; i < g->rows; i++) {
        if (!has_place(g, i, look))
            continue;
        left = fmin(left, log2_of(g->row[i].at));
        right = fmax(right, log2_of(g->row[i].at));
    }
    look->left = isfinite(look->left) ? log2_of(look->left) : left;
    look->right = isfinite(look->right) ? log2_of(look->right) : right;
    return look->form != PLOT_SIZES || look->right > look->left;
}

static void put_script(FILE *f, const grid *g, const plot_look *look) {
    fprintf(f, "set border 3\nset grid\nset tics nomirror scale 0\nset xlabel '%s'\nset ylabel '%s'\n", look->across,
            look->upwards);
    if (look->form == PLOT_SIZES) {
        put_size_axis(f, look->left, look->right);
        put_value_axis(f, 'y', look);
    } else {
        put_row_axis(f, g);
    }
    if (look->form == PLOT_HEAT) {
        put_heat(f, g);
        return;
    }
    if (look->form != PLOT_SIZES)
        put_value_axis(f, 'x', look);
    for (size_t i = 0; i < g->columns; i++)
        put_column(f, g, look, i, 0);
    if (look->choice)
        put_column(f, g, look, 0, 1);
    put_rules(f, look);
    draw_rules(f, look);
    draw_columns(f, g, look);
    draw_choice(f, look);
}

/* What a screen reader says of the picture. */
static void describe(plot *p, const grid *g, const plot_look *look) {
    static const char *const forms[] = {[PLOT_SIZES] = "Lines",
                                        [PLOT_DOTS] = "Dots",
                                        [PLOT_BARS] = "Bars",
                                        [PLOT_HEAT] = "Squares, coloured by level,"};
    snprintf(
        p->description, sizeof p->description,
        "%s show %zu row%s and %zu column%s of values. The horizontal axis shows: %s.%s%s%s The table of this figure "
        "has all values.",
        forms[look->form], g->rows, g->rows == 1 ? "" : "s", g->columns, g->columns == 1 ? "" : "s", look->across,
        *look->upwards ? " The vertical axis shows: " : "", look->upwards, *look->upwards ? "." : "");
}

int plot_is_too_long(const grid *g, const plot_look *look) {
    return look->form != PLOT_SIZES && g->rows > PLOT_LINES;
}

const plot *plot_add(plots *all, const char *name, const grid *g, const plot_look *look, size_t place) {
    plot_look whole = *look;
    const int has_lines = look->form != PLOT_SIZES;
    if (!complete(g, &whole) || plot_is_too_long(g, look))
        return NULL;
    if (all->count + all->reserved >= PLOT_MOST) {
        all->left_out++;
        return NULL;
    }
    plot *p = &all->at[all->count];
    size_t length = 0;
    *p = (plot){.width = 540, .height = has_lines ? 90 + 19 * (int)g->rows : 340, .place = place};
    make_name(all, name, p->name);
    list_series(p, g, &whole);
    describe(p, g, &whole);
    snprintf(p->title, sizeof p->title, "%s", look->title);
    FILE *f = open_memstream(&p->script, &length);
    if (f)
        put_script(f, g, &whole);
    if (!f || ferror(f) | (fclose(f) != 0)) {
        free(p->script);
        all->failed = 1;
        return NULL;
    }
    all->count++;
    return p;
}

void plots_free(plots *all) {
    for (size_t i = 0; i < all->count; i++)
        free(all->at[i].script);
    all->count = 0;
}
