/* Calls with many results: segments and axes. */
#include <math.h>

#include "cases.h"

static void show(page *p, const result_case *own) {
    const result *one = &p->r->at[own->rows[0]->result];
    char name[RESULT_NAME], title[RESULT_NAME + 64], plot_name[RESULT_NAME + 32];
    grid g = {.heading = "shape"};
    page_figure figure = {.name = plot_name, .title = title, .from = one, .g = &g};
    case_fill(&g, own, case_rate);
    result_case_name(own->rows[0], name);
    snprintf(title, sizeof title, "Bandwidth in GB/s: %s", name);
    snprintf(plot_name, sizeof plot_name, "bandwidth-%s", name);
    figure.look = plot_plain(PLOT_DOTS, title, "GB/s");
    figure.look.rule = result_read_rate(one);
    figure.look.rule_name = "measured read rate";
    page_show(p, &figure);
    grid_free(&g);
}

static void show_times(page *p, const result_case *own) {
    char name[RESULT_NAME], caption[RESULT_NAME + 64];
    grid g = {.heading = "shape"};
    case_fill(&g, own, case_time);
    snprintf(caption, sizeof caption, "Time in us: %s", result_case_name(own->rows[0], name));
    html_put(&p->h, "<details><summary>Times</summary>\n");
    grid_table(&g, &p->h, caption);
    html_put(&p->h, "</details>\n");
    p->out_of_memory |= g.failed;
    grid_free(&g);
}

static void show_cases(page *p, result_kind kind) {
    result_cases cases;
    if (result_cases_find(p->r, kind, 1, &cases) != 0)
        p->out_of_memory = 1;
    for (size_t i = 0; i < cases.count && !p->out_of_memory; i++)
        for (size_t k = 0; k < cases.at[i].count; k++) {
            const result_case own = case_of_result(&cases.at[i], k);
            if (own.count == 0)
                continue;
            html_put(&p->h, "<div>");
            show(p, &own);
            show_times(p, &own);
            html_put(&p->h, "</div>\n");
        }
    result_cases_free(&cases);
}

void section_shapes(page *p) {
    html_put(&p->h, "<p>Calls with a result for each segment of an array, or for each row along axes. GB/s are of "
                    "elements, offsets and results. <code>planner</code> is the planner's choice, whichever strategy "
                    "that is.</p>\n<div class=\"side\">\n");
    show_cases(p, RESULT_BENCH);
    show_cases(p, RESULT_PEERS);
    html_put(&p->h, "</div>\n");
}
