/* Plots as scripts for gnuplot. A script has numbers and words of the program's own; names from files come in through
 * plot_word() alone, which leaves nothing that gnuplot could take for more than text. */
#ifndef DPR_TOOLS_PLOTS_H
#define DPR_TOOLS_PLOTS_H

#include <stddef.h>

#include "grid.h"

/* How a grid is drawn. */
typedef enum plot_form {
    PLOT_SIZES, /* a line for each column; rows are numbers of elements, the axis is logarithmic */
    PLOT_DOTS,  /* a line of the plot for each row, a dot for each column */
    PLOT_BARS,  /* the same with a bar, of the first column */
    PLOT_HEAT   /* a square for each cell, rows upwards, coloured by level */
} plot_form;

/* Levels of PLOT_HEAT, by the least value of each. */
enum { PLOT_LEVELS = 5 };
extern const double plot_levels[PLOT_LEVELS];

/* Series of one plot: columns, and what is added to them. The colours of columns repeat after PLOT_COLOURS, with
 * another dash pattern each time, of which there are PLOT_DASHES. */
enum { PLOT_COLOURS = 8, PLOT_DASHES = 3, PLOT_NAME = 96 };

typedef struct plot_look {
    plot_form form;
    const char *title;            /* for readers of the picture alone, and screen readers */
    const char *across, *upwards; /* what the axes show, of the program's own words */
    int logarithmic;              /* 1: the axis of the values */
    const char *choice;           /* what chosen cells are, which get rings; NULL: none do */
    double rule;                  /* a value to compare with, drawn as a line; NAN: none */
    const char *rule_name;        /* what it is */
    const double *crossovers;     /* places on the axis of sizes */
    size_t crossover_count;
    double low, high;   /* the axis of the values; NAN: as the grid's */
    double left, right; /* the axis of sizes; NAN: likewise */
    const int *colours; /* numbers of the columns' colours; NULL: as they come */
} plot_look;

/* A plot without a rule, and with the axes of its grid. */
plot_look plot_plain(plot_form form, const char *title, const char *across);

/* The dash pattern of a column with that colour, from 0 on, which is a whole line. */
int plot_dash(int colour);

/* What a series of a plot is. Numbers from 0 on are colours of columns. */
enum { SERIES_CROSSOVERS = -1, SERIES_RULE = -2, SERIES_CHOICE = -3, SERIES_LEVEL = -10 /* and less by the level */ };
enum { PLOT_SERIES = GRID_COLUMNS + 3 };

/* A plot of the page. */
typedef struct plot {
    char name[PLOT_NAME]; /* letters, digits, '-' and '.'; unique */
    char title[512], description[256];
    char *script;
    int width, height;
    int series[PLOT_SERIES], series_count; /* in gnuplot's order */
    size_t place;                          /* of the page's text, where it goes */
} plot;

/* A page has at most PLOT_MOST plots. Each section leaves PLOT_SHARE of them to each one behind it. */
enum { PLOT_MOST = 460, PLOT_SHARE = 20 };

typedef struct plots {
    plot at[PLOT_MOST];
    size_t count;
    size_t reserved; /* for sections behind this one; at most PLOT_MOST */
    size_t left_out; /* had no room */
    int failed;      /* 1: memory has run out */
} plots;

/* Adds a plot of the grid, whose name is made of `name`. NULL if there is no room, or nothing to draw. */
const plot *plot_add(plots *all, const char *name, const grid *g, const plot_look *look, size_t place);

/* Whether the grid has more rows of dots, bars or squares than a plot has room for. */
enum { PLOT_LINES = 60 };
int plot_is_too_long(const grid *g, const plot_look *look);

void plots_free(plots *all);

/* A copy of the text, cut to `most` characters, in which everything is '?' but letters, digits and a few marks that
 * mean nothing to gnuplot within quotes. '%' is not among them: labels of tics are formats. The text is returned. */
enum { PLOT_WORD = 40 };
const char *plot_word(const char *text, size_t most, char word[PLOT_WORD]);

#endif
