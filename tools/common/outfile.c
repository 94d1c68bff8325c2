#include "outfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "available.h"
#include "cli.h"
#include "newfile.h"
#include "report.h"

static int failed_to_write(const char *file) {
    return cli_error("%s: cannot be written: %s", file, strerror(errno));
}

static int write_to(const outfile *o, FILE *f, int format) {
    return o->write(o->user, f, format) == 0 ? CLI_OK : cli_error("out of memory");
}

static int write_and_close(const outfile *o, FILE *f) {
    const int code = write_to(o, f, o->format), bad = ferror(f);
    return (fclose(f) != 0) | bad ? failed_to_write(o->name) : code;
}

static int save(outfile *o) {
    newfile file = {.name = o->name};
    FILE *f = newfile_open(&file);
    int code = f ? write_and_close(o, f) : failed_to_write(o->name);
    if (code == CLI_OK && newfile_put(&file) != 0)
        code = failed_to_write(o->name);
    newfile_drop(&file);
    o->made &= code != CLI_OK;
    o->saved = seconds_now();
    return code;
}

int outfile_is_replaceable(const char *file) {
    struct stat s;
    return stat(file, &s) != 0 || S_ISREG(s.st_mode) || S_ISDIR(s.st_mode);
}

/* Writing to a character device overwrites nothing. */
static int overwrites(const char *name, const char *input) {
    struct stat out, in;
    const int status = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(input, &in);
    return status == 0 && stat(name, &out) == 0 && !S_ISCHR(out.st_mode) && in.st_dev == out.st_dev
           && in.st_ino == out.st_ino;
}

int outfile_refuse_input(const char *name, const char *const *inputs, size_t n) {
    for (size_t i = 0; name && i < n; i++)
        if (inputs[i] && overwrites(name, inputs[i]))
            return cli_usage("--output: '%s' would be overwritten: it is the same file as the input '%s'", name,
                             inputs[i]);
    return CLI_OK;
}

int outfile_set_format(const char *text, void *out) {
    outfile *o = out;
    return cli_choice(text, report_format_name, &o->format);
}

static int ends_in(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static int guess_format(const outfile *o) {
    static const char *const ends[REPORT_FORMATS] = {
        [REPORT_CSV] = ".csv", [REPORT_JSON] = ".json", [REPORT_MARKDOWN] = ".md"};
    for (int format = 0; o->name && format < REPORT_FORMATS; format++)
        if (ends[format] && ends_in(o->name, ends[format]))
            return format;
    return REPORT_TABLE;
}

int outfile_try(outfile *o) {
    if (o->format == OUTFILE_GUESS)
        o->format = guess_format(o);
    o->saved = seconds_now();
    if (!o->name || !outfile_is_replaceable(o->name))
        return CLI_OK;
    struct stat s;
    const int is_there = lstat(o->name, &s) == 0;
    FILE *f = fopen(o->name, "a");
    o->made = f && !is_there;
    return f && fclose(f) == 0 ? CLI_OK : failed_to_write(o->name);
}

void outfile_abandon(outfile *o) {
    if (o->made)
        (void)remove(o->name);
    o->made = 0;
}

void outfile_refresh(outfile *o) {
    static const double seconds = 5;
    if (o->name && seconds_now() - o->saved > seconds && outfile_is_replaceable(o->name))
        (void)save(o);
}

int outfile_finish(outfile *o) {
    if (!o->name)
        return write_to(o, stdout, o->format);
    const int code = save(o);
    if (code != CLI_OK)
        outfile_abandon(o);
    return code == CLI_OK && o->shows_table && o->format != REPORT_TABLE ? write_to(o, stdout, REPORT_TABLE) : code;
}
