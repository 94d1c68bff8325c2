#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "defuse.h"
#include "figures.h"
#include "timing.h"

static struct {
    char name[41];
    uint64_t total;
    double start, shown; /* `shown` is when the bar was last drawn */
    int visible, terminal;
} bar;

void progress_start(const char *name, uint64_t total) {
    progress_clear();
    snprintf(bar.name, sizeof bar.name, "%s", name);
    defuse(bar.name);
    bar.total = total;
    bar.start = bench_now();
    bar.shown = 0;
    bar.terminal = isatty(STDERR_FILENO);
}

void progress_show(uint64_t done) {
    enum { WIDTH = 24 };
    double now = bench_now();
    if (!bar.terminal || now - bar.start < 1 || now - bar.shown < 0.1)
        return;
    bar.shown = now;
    bar.visible = 1;
    char a[32], b[32], filled[WIDTH + 1];
    double rate = (double)done / (now - bar.start) / 1e9;
    if (!bar.total) {
        fprintf(stderr, "\r\033[K%s  %s  %.2f GB/s", bar.name, figure_bytes(done, a), rate);
        return;
    }
    double part = (double)done / (double)bar.total;
    for (int i = 0; i < WIDTH; i++)
        filled[i] = i < (int)(part * WIDTH) ? '#' : '.';
    filled[WIDTH] = 0;
    fprintf(stderr, "\r\033[K%s  [%s] %3.0f %%  %s of %s  %.2f GB/s", bar.name, filled, part * 100,
            figure_bytes(done, a), figure_bytes(bar.total, b), rate);
}

void progress_line(const char *text) {
    double now = bench_now();
    if (now - bar.shown < 0.1 || !isatty(STDERR_FILENO))
        return;
    bar.shown = now;
    bar.visible = 1;
    fprintf(stderr, "\r\033[K%.120s", text);
}

void progress_clear(void) {
    if (bar.visible)
        fputs("\r\033[K", stderr);
    bar.visible = 0;
}
