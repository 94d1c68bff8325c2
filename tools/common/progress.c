#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "available.h"
#include "defuse.h"
#include "figures.h"

static struct {
    char name[41];
    uint64_t total;
    double start, shown; /* `shown` is when the bar was last drawn */
    int visible;
} bar;

void progress_start(const char *name, uint64_t total) {
    progress_clear();
    snprintf(bar.name, sizeof bar.name, "%s", name);
    defuse(bar.name);
    bar.total = total;
    bar.start = seconds_now();
}

void progress_show(uint64_t done) {
    enum { WIDTH = 24 };
    static const char bars[] = "########################", dots[] = "........................";
    const double seconds = seconds_now() - bar.start, part = bar.total ? (double)done / (double)bar.total : 0;
    const int filled = (int)(part * WIDTH);
    char text[160], a[32], b[32];
    if (seconds < 1)
        return;
    if (bar.total)
        snprintf(text, sizeof text, "%s  [%.*s%s] %3.0f %%  %s of %s  %.2f GB/s", bar.name, filled, bars, dots + filled,
                 part * 100, figure_bytes(done, a), figure_bytes(bar.total, b), (double)done / seconds / 1e9);
    else
        snprintf(text, sizeof text, "%s  %s  %.2f GB/s", bar.name, figure_bytes(done, a), (double)done / seconds / 1e9);
    progress_line(text);
}

void progress_line(const char *text) {
    double now = seconds_now();
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
