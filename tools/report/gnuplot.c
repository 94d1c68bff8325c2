#include "gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's standard streams: files that have no names, so that nothing is left behind however this ends, and nobody
 * waits for somebody who waits. */
enum { STREAMS = 3 };

static int open_streams(FILE *streams[STREAMS]) {
    int good = 1;
    for (int i = 0; i < STREAMS; i++)
        good &= (streams[i] = tmpfile()) != NULL;
    return good;
}

static void close_streams(FILE *streams[STREAMS]) {
    for (int i = 0; i < STREAMS; i++)
        if (streams[i])
            (void)fclose(streams[i]);
}

/* 0, or the errno. */
static int spawn(char *const argv[], FILE *streams[STREAMS], pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    for (int i = 0; i < STREAMS && error == 0; i++)
        error = posix_spawn_file_actions_adddup2(&actions, fileno(streams[i]), i);
    if (error == 0)
        error = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The last line that the child complained with. gnuplot echoes a line of the script before it. */
static void read_complaint(FILE *f, char why[GNUPLOT_WHY]) {
    char line[GNUPLOT_WHY - 32], last[GNUPLOT_WHY - 32] = "";
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[strspn(line, " \t")])
            snprintf(last, sizeof last, "%s", line);
    }
    snprintf(why, GNUPLOT_WHY, "gnuplot failed%s%s", *last ? ": " : "", last);
}

/* Runs the child on its streams. 0, or -1 with a clause. */
static int run(char *const argv[], FILE *streams[STREAMS], char why[GNUPLOT_WHY]) {
    pid_t pid;
    int status = 0;
    const int error = spawn(argv, streams, &pid);
    if (error) {
        snprintf(why, GNUPLOT_WHY, "%s",
                 error == ENOENT ? "gnuplot is not installed (package gnuplot-nox)" : strerror(error));
        return -1;
    }
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    if (ended < 0) {
        snprintf(why, GNUPLOT_WHY, "gnuplot's exit status is unknown: %s", strerror(errno));
        return -1;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    read_complaint(streams[STDERR_FILENO], why);
    return -1;
}

/* All of a file, with a zero behind it. NULL when out of memory, or if it cannot be read. */
static char *read_all(FILE *f, size_t *length) {
    const long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = size >= 0 ? malloc((size_t)size + 1) : NULL;
    rewind(f);
    *length = text ? fread(text, 1, (size_t)size, f) : 0;
    if (text)
        text[*length] = 0;
    return text;
}

int gnuplot_is_there(char why[GNUPLOT_WHY]) {
    static char name[] = "gnuplot", option[] = "--version";
    char *const argv[] = {name, option, NULL};
    FILE *streams[STREAMS] = {NULL};
    int there = 0;
    if (open_streams(streams))
        there = run(argv, streams, why) == 0;
    else
        snprintf(why, GNUPLOT_WHY, "no file for gnuplot: %s", strerror(errno));
    close_streams(streams);
    return there;
}

/* ---- Drawing ---------------------------------------------------------------------------------------------------- */

int gnuplot_height(const plot *p, int key) {
    return p->height + (key ? 16 * (p->series_count / 2 + 1) : 0);
}

static void put_plot(FILE *f, const plot *p, picture_format format, int key) {
    const int height = gnuplot_height(p, key);
    if (format == PICTURE_SVG)
        fprintf(f, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13'\n", p->width, height);
    else
        fprintf(f,
                "set terminal pngcairo size %d,%d noenhanced font 'Sans,13' fontscale 1.6 pointscale 2 linewidth 1.6\n",
                2 * p->width, 2 * height);
    fprintf(f, "reset\nset encoding utf8\n%s\n%s",
            key ? "set key below left reverse Left samplen 2 maxcols 2" : "unset key", p->script);
}

/* How many whole pictures there are. PNG has one plot at most. */
static size_t count_pictures(const char *text, size_t length, picture_format format) {
    static const char end[] = "</svg>";
    size_t n = 0;
    if (format == PICTURE_PNG)
        return length > 0;
    for (const char *at = text; (at = strstr(at, end)); at += strlen(end))
        n++;
    return n;
}

/* What gnuplot wrote, if it has all n pictures. */
static char *read_pictures(FILE *f, size_t n, picture_format format, size_t *length, char why[GNUPLOT_WHY]) {
    char *text = read_all(f, length);
    const size_t drawn = text ? count_pictures(text, *length, format) : 0;
    if (text && drawn >= n)
        return text;
    if (text)
        snprintf(why, GNUPLOT_WHY, "gnuplot drew %zu of %zu plot%s", drawn, n, n == 1 ? "" : "s");
    else
        snprintf(why, GNUPLOT_WHY, "gnuplot's pictures cannot be read");
    free(text);
    *length = 0;
    return NULL;
}

char *gnuplot_draw(const plot *drawn, size_t n, picture_format format, int key, size_t *length, char why[GNUPLOT_WHY]) {
    /* -d: the user's own settings are not read. */
    static char name[] = "gnuplot", option[] = "-d";
    char *const argv[] = {name, option, NULL};
    FILE *streams[STREAMS] = {NULL};
    char *text = NULL;
    *length = 0;
    snprintf(why, GNUPLOT_WHY, "no file for gnuplot");
    if (open_streams(streams)) {
        for (size_t i = 0; i < n; i++)
            put_plot(streams[STDIN_FILENO], &drawn[i], format, key);
        const int bad = ferror(streams[STDIN_FILENO]) | (fflush(streams[STDIN_FILENO]) != 0);
        rewind(streams[STDIN_FILENO]);
        if (bad)
            snprintf(why, GNUPLOT_WHY, "no room for gnuplot's file: %s", strerror(errno));
        else if (run(argv, streams, why) == 0)
            text = read_pictures(streams[STDOUT_FILENO], n, format, length, why);
    }
    close_streams(streams);
    return text;
}
