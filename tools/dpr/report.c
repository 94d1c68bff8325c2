/* dpr report: a page from files of results, or one plot of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "gnuplot.h"
#include "outfile.h"
#include "page.h"
#include "svg.h"

static const cli_help help = {
    "Usage: dpr report FILE... [OPTION]...\n"
    "Makes one HTML page from files of results: plots, tables, facts of the devices, and how each figure is\n"
    "measured again. The page needs no network and no other file.\n"
    "\n"
    "Examples:\n"
    "  dpr report gpu.json ladder.json -O page.html\n"
    "  dpr report tests/results/*.json -O page.html\n"
    "  dpr report mine.json theirs.json -O both.html     two machines side by side\n"
    "  dpr bench -d cpu -f json | dpr report - > cpu.html\n"
    "  dpr report gpu.json --svg time-sum-of-f32-graph-cold-cache -O time.svg\n",
    NULL,
    "FILE is JSON that 'dpr bench' (also with --ladder, --nested, --segments or --axes), 'dpr recurse --json',\n"
    "dpr_peers or dpr_bench_cpu has written, or a list of such documents; '-' is standard input.\n"
    "\n"
    "gnuplot draws the plots (package gnuplot-nox). Without it the page has all tables and no plots.\n"
    "\n"
    "Exit status: 0 if all went well, 1 if a file is no result or cannot be written, or if there is no gnuplot for\n"
    "--svg or --png, 2 if the command line makes no sense.\n"};

typedef struct request {
    const char *svg, *png; /* names of plots; NULL: the page */
    int list;
    outfile file;
    results results;
    page page;
    char *drawn; /* what gnuplot wrote */
    size_t length;
    const plot *one;       /* the plot that is asked for */
    char why[GNUPLOT_WHY]; /* why there are no plots; the page refers to it */
} request;

static int parse(int argc, char **argv, request *r, int *first) {
    const cli_option options[] = {
        {'O', "output", "FILE", cli_file, &r->file.name, "write there, and not to standard output"},
        {0, "svg", "PLOT", cli_text, &r->svg, "one plot alone, as SVG; the page has the plots' names"},
        {0, "png", "PLOT", cli_text, &r->png, "one plot alone, as PNG"},
        {0, "list", NULL, cli_flag, &r->list, "the names of all plots"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, first);
}

static int check(const request *r, int files, const char *const *names) {
    int inputs = 0;
    for (int i = 0; i < files; i++)
        inputs += strcmp(names[i], "-") == 0;
    if (files == 0)
        return cli_usage("no file of results is named");
    if (inputs > 1)
        return cli_usage("standard input ('-') is named twice");
    if ((r->svg != NULL) + (r->png != NULL) + r->list > 1)
        return cli_usage("--svg, --png and --list exclude each other");
    if (r->png && !r->file.name && isatty(STDOUT_FILENO))
        return cli_usage("--png: a terminal cannot show the picture: name a file with --output");
    return outfile_refuse_input(r->file.name, names, (size_t)files);
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static int write_page(void *user, FILE *f, int format) {
    const request *r = user;
    (void)format;
    return page_finish(&r->page, r->drawn, f);
}

static int write_svg(void *user, FILE *f, int format) {
    const request *r = user;
    html h;
    char *text = r->drawn;
    const char *picture = svg_next(&text);
    int failed = html_begin(&h) != 0;
    (void)format;
    if (!failed && picture) {
        failed = svg_write(&h, r->one, picture, 1) != 0;
        fwrite(h.text, 1, html_place(&h), f);
    }
    html_free(&h);
    return failed ? -1 : 0;
}

static int write_png(void *user, FILE *f, int format) {
    const request *r = user;
    (void)format;
    fwrite(r->drawn, 1, r->length, f);
    return 0;
}

static int save(request *r, int (*write)(void *user, FILE *f, int format)) {
    r->file.write = write;
    r->file.user = r;
    int code = outfile_try(&r->file);
    if (code == CLI_OK)
        code = outfile_finish(&r->file);
    if (code != CLI_OK)
        outfile_abandon(&r->file);
    return code;
}

/* ---- The page, and single plots --------------------------------------------------------------------------------- */

static int write_text(request *r, const char *no_plots) {
    return page_write(&r->page, &r->results, no_plots) == 0 ? CLI_OK : cli_error("out of memory");
}

/* If the plots cannot be drawn, the text is written again: it says why, and its tables are open. */
static int make_page(request *r) {
    const plots *all = &r->page.plots;
    int code = CLI_OK;
    if (all->count && !r->page.no_plots) {
        r->drawn = gnuplot_draw(all->at, all->count, PICTURE_SVG, 0, &r->length, r->why);
        if (!r->drawn) {
            page_free(&r->page);
            code = write_text(r, r->why);
        }
    }
    if (r->page.no_plots)
        cli_note("the page has no plots: %s", r->page.no_plots);
    return code == CLI_OK ? save(r, write_page) : code;
}

static int list_plots(const request *r) {
    for (size_t i = 0; i < r->page.plots.count; i++)
        printf("%s\n", r->page.plots.at[i].name);
    return CLI_OK;
}

static int make_plot(request *r) {
    const char *name = r->svg ? r->svg : r->png;
    const plots *all = &r->page.plots;
    for (size_t i = 0; i < all->count && !r->one; i++)
        r->one = strcmp(all->at[i].name, name) == 0 ? &all->at[i] : NULL;
    if (!r->one)
        return cli_usage("--%s: there is no plot '%s' in these files; --list shows those that are",
                         r->svg ? "svg" : "png", name);
    if (r->page.no_plots)
        return cli_error("plots need gnuplot: %s", r->page.no_plots);
    r->drawn = gnuplot_draw(r->one, 1, r->svg ? PICTURE_SVG : PICTURE_PNG, 1, &r->length, r->why);
    if (!r->drawn)
        return cli_error("the plot cannot be drawn: %s", r->why);
    return save(r, r->svg ? write_svg : write_png);
}

static int make(request *r) {
    const int has_gnuplot = r->list || gnuplot_is_there(r->why);
    const int code = write_text(r, has_gnuplot ? NULL : r->why);
    if (code != CLI_OK)
        return code;
    return r->list ? list_plots(r) : r->svg || r->png ? make_plot(r) : make_page(r);
}

int command_report(int argc, char **argv) {
    static request r;
    int first = 0, code = parse(argc, argv, &r, &first);
    if (code != CLI_GO_ON)
        return code;
    code = check(&r, argc - first, (const char *const *)argv + first);
    for (int i = first; i < argc && code == CLI_OK; i++)
        code = page_results_read(&r.results, argv[i]);
    if (code == CLI_OK)
        code = page_results_complete(&r.results);
    if (code == CLI_OK)
        code = make(&r);
    page_free(&r.page);
    page_results_free(&r.results);
    free(r.drawn);
    return code;
}
