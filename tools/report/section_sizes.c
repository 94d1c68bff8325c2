/* Time and bandwidth against size: of dpr's strategies, and of other libraries next to dpr. */
#include <math.h>
#include <stdint.h>

#include "cases.h"

/* What a plot of a case shows. */
typedef struct view {
    const char *name;  /* of plots: "time-" */
    const char *title; /* "Time in us" */
    const char *upwards, *note;
    case_value value;
    int logarithmic, has_crossovers;
    const char *choice; /* NULL: rings are not shown */
    double rule;        /* NAN: none; 0: the measured rate of reading memory */
    const char *rule_name;
} view;

static const view times = {"time-", "Time in us", "time, us", NULL, case_time, 1, 1, "the choice of the planner",
                           NAN,     NULL};
static const view peers = {"peers-time-", "Time in us", "time, us", NULL, case_time, 1, 1, NULL, NAN, NULL};
static const view rates = {"bandwidth-",        "Bandwidth in GB/s", "bandwidth, GB/s", NULL, case_rate, 0, 0, NULL, 0,
                           "measured read rate"};
static const view ratios = {"peers-ratio-",
                            "Time compared with dpr's",
                            "time over the time of dpr",
                            "Above 1, dpr takes less time. Ratios are of times in the same rounds.",
                            case_ratio,
                            1,
                            0,
                            NULL,
                            1,
                            "as fast as dpr"};

/* What the plots of a case have in common. */
typedef struct together {
    const palette *colours;
    int several; /* results: titles have the device */
    plot_look look;
} together;

static double rule_of(const view *v, const result *one) {
    return v->rule == 0 ? result_read_rate(one) : v->rule;
}

/* `own` are the rows of one result of the case. */
static void show(page *p, const together *all, const view *v, const result_case *own) {
    const result *one = &p->r->at[own->rows[0]->result];
    double crossovers[CASE_CHOICES];
    int of_columns[GRID_COLUMNS];
    case_choice choices[CASE_CHOICES];
    char name[RESULT_NAME], title[RESULT_NAME + 160], plot_name[RESULT_NAME + 32];
    size_t left_out = 0;
    grid g = {.heading = "elements"};
    page_figure figure = {.name = plot_name, .title = title, .note = v->note, .from = one, .g = &g, .look = all->look};
    case_fill(&g, own, v->value);
    palette_of(all->colours, &g, of_columns);
    result_case_name(own->rows[0], name);
    snprintf(title, sizeof title, "%s: %s%s%.100s", v->title, name, all->several ? "; " : "",
             all->several ? one->device : "");
    snprintf(plot_name, sizeof plot_name, "%s%s", v->name, name);
    figure.look.title = title;
    figure.look.rule = rule_of(v, one);
    figure.look.crossovers = crossovers;
    figure.look.colours = of_columns;
    if (v->has_crossovers) {
        figure.look.crossover_count = case_crossovers(choices, case_choices(own, choices, &left_out), crossovers);
        figure.note = left_out ? "The plot has the first dotted lines alone, because there are too many." : v->note;
    }
    page_show(p, &figure);
    grid_free(&g);
}

/* A new column for a result. Results of one file and device have numbers. */
static int add_column(grid *g, const result *one) {
    char name[GRID_NAME];
    const size_t before = g->columns;
    int column = -1;
    for (int number = 1; g->columns == before && number <= GRID_COLUMNS; number++) {
        const int n = snprintf(name, sizeof name, "%.70s, %.70s", one->device, result_file(one));
        if (number > 1)
            snprintf(name + n, sizeof name - (size_t)n, " (%d)", number);
        column = grid_column_of(g, name);
    }
    return g->columns > before ? column : -1;
}

/* The planner's choice on several machines, or in several files of one. */
static void show_choices(page *p, const result_case *c) {
    char name[RESULT_NAME], title[RESULT_NAME + 64], plot_name[RESULT_NAME + 16], row_name[32];
    grid g = {.heading = "elements"};
    page_figure figure = {.name = plot_name, .title = title, .g = &g};
    const result *const at = p->r->at;
    size_t last = SIZE_MAX;
    int column = -1;
    for (size_t i = 0; i < c->count; i++) {
        const result_row *row = c->rows[i];
        if (!row->chosen || !row->ok || isnan(row->us) || !(row->count >= 0))
            continue;
        column = row->result == last ? column : add_column(&g, &at[row->result]); /* a result's rows are together */
        last = row->result;
        snprintf(row_name, sizeof row_name, "%.0f", row->count);
        grid_set(&g, grid_row_of(&g, row_name, row->count), column, (grid_cell){.value = row->us});
    }
    grid_sort(&g);
    snprintf(title, sizeof title, "Time of the planner's choice in us, by result: %s",
             result_case_name(c->rows[0], name));
    snprintf(plot_name, sizeof plot_name, "%schoices-%s", at[c->rows[0]->result].kind == RESULT_PEERS ? "peers-" : "",
             name);
    figure.look = plot_plain(PLOT_SIZES, title, "elements");
    figure.look.upwards = "time, us";
    figure.look.logarithmic = 1;
    if (g.columns > 1)
        page_show(p, &figure);
    grid_free(&g);
}

static double greatest_rule(const page *p, const result_case *c, const view *v) {
    double greatest = NAN;
    for (size_t i = 0; i < c->count; i++)
        if (case_of_result(c, i).count)
            greatest = fmax(greatest, rule_of(v, &p->r->at[c->rows[i]->result]));
    return greatest;
}

static plot_look look_of(const page *p, const result_case *c, const view *v) {
    plot_look look = plot_plain(PLOT_SIZES, "", "elements");
    look.upwards = v->upwards;
    look.logarithmic = v->logarithmic;
    look.choice = v->choice;
    look.rule_name = v->rule_name;
    case_ranges(c, v->value, greatest_rule(p, c, v), &look);
    return look;
}

static void show_view(page *p, const result_case *c, const view *v, together *all) {
    all->look = look_of(p, c, v);
    for (size_t i = 0; i < c->count; i++) {
        const result_case own = case_of_result(c, i);
        if (own.count)
            show(p, all, v, &own);
    }
}

static void put_choices(page *p, const result_case *c) {
    case_choice choices[CASE_CHOICES];
    for (size_t i = 0; i < c->count; i++) {
        const result_case own = case_of_result(c, i);
        size_t left_out;
        const size_t n = case_choices(&own, choices, &left_out);
        case_put_choices(&p->h, &p->r->at[c->rows[i]->result], choices, n, left_out);
    }
}

static void show_case(page *p, const result_case *c, const view *const views[2], const palette *colours) {
    together all = {.colours = colours, .several = case_of_result(c, 0).count < c->count};
    html_put(&p->h, "<div class=\"side\">\n");
    for (int k = 0; k < 2; k++)
        show_view(p, c, views[k], &all);
    if (all.several)
        show_choices(p, c);
    html_put(&p->h, "</div>\n");
    put_choices(p, c);
}

static void show_cases(page *p, result_kind kind, const view *const views[2]) {
    result_cases cases;
    palette colours;
    palette_fill(&colours, p->r, kind);
    if (result_cases_find(p->r, kind, 0, &cases) != 0)
        p->out_of_memory = 1;
    html_put(&p->h, "<p class=\"note\">%s</p>\n", page_marks);
    if (cases.count > 1)
        html_put(&p->h, "<button class=\"open\" type=\"button\" hidden>Open or close all %zu cases</button>\n",
                 cases.count);
    const size_t main = case_main(&cases);
    for (size_t i = 0; i < cases.count && !p->out_of_memory; i++) {
        case_open(p, &cases.at[i], i == main);
        show_case(p, &cases.at[i], views, &colours);
        case_close(p);
    }
    result_cases_free(&cases);
}

void section_sizes(page *p) {
    static const view *const views[] = {&times, &rates};
    html_put(&p->h, "<p>Each strategy has a line. Rings are the planner's choices, and a dotted line is where the "
                    "choice changes, halfway between two measured sizes. The dashed line is the rate at which the "
                    "device reads memory, if one of the files has measured it.</p>\n");
    show_cases(p, RESULT_BENCH, views);
}

void section_peers(page *p) {
    static const view *const views[] = {&peers, &ratios};
    html_put(&p->h, "<p>Times of dpr, and of other libraries, copies and empty kernels, which took turns with it. "
                    "<code>dpr_peers</code> has measured them.</p>\n");
    show_cases(p, RESULT_PEERS, views);
}
