#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench_compare.h"
#include "cli.h"
#include "cli_json.h"

/* What a file may have at most. A row takes some 400 bytes, and a document is four levels deep. */
enum { MOST_BYTES = 32 << 20, MOST_DEPTH = 32 };

static const char *name_of(const char *file) {
    return strcmp(file, "-") == 0 ? "standard input" : file;
}

/* ---- Text ------------------------------------------------------------------------------------------------------- */

/* Reads up to MOST_BYTES + 1 bytes and puts a zero behind them. NULL when out of memory. */
static char *read_bytes(FILE *f, size_t *n) {
    size_t room = 1 << 16, got = 1;
    char *text = malloc(room);
    for (*n = 0; text && got > 0 && *n <= MOST_BYTES; *n += got) {
        if (*n + 1 == room) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
        const size_t space = room - 1 - *n, left = MOST_BYTES + 1 - *n;
        got = text ? fread(text + *n, 1, space < left ? space : left, f) : 0;
    }
    if (text)
        text[*n] = 0;
    return text;
}

/* The text of a file, which the caller frees. NULL after a message. */
static char *read_text(const char *file) {
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    size_t n = 0;
    char *text = f ? read_bytes(f, &n) : NULL;
    const int bad = !f || ferror(f), error = errno;
    if (f && f != stdin)
        (void)fclose(f);
    if (bad)
        (void)cli_error("%s: cannot be read: %s", name_of(file), strerror(error));
    else if (!text)
        (void)cli_error("%s: cannot be read: memory has run out", name_of(file));
    else if (n > MOST_BYTES)
        (void)cli_error("%s: cannot be compared: it is longer than %d MiB", name_of(file), MOST_BYTES >> 20);
    else if (memchr(text, 0, n))
        (void)cli_error("%s: is no JSON: it has a zero byte", name_of(file));
    else
        return text;
    free(text);
    return NULL;
}

/* Whether lists and objects in the text are within each other more than MOST_DEPTH times. */
static int is_deep(const char *text) {
    int depth = 0, deepest = 0, in_string = 0;
    for (; *text; text++) {
        if (in_string && *text == '\\' && text[1])
            text++;
        else if (*text == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (*text == '[' || *text == '{') - (*text == ']' || *text == '}');
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest > MOST_DEPTH;
}

/* ---- Documents -------------------------------------------------------------------------------------------------- */

static int line_of(const char *text, const char *at) {
    int line = 1;
    for (; at && text < at; text++)
        line += *text == '\n';
    return line;
}

/* The document of a file, which the caller deletes. NULL after a message. */
static cJSON *read_document(const char *file) {
    const char *end = NULL;
    cJSON *document = NULL;
    char *text = read_text(file);
    if (!text)
        return NULL;
    if (is_deep(text)) {
        (void)cli_error("%s: cannot be compared: it is nested more than %d levels deep", name_of(file), MOST_DEPTH);
    } else {
        document = cJSON_ParseWithOpts(text, &end, 1);
        if (cli_json_failed()) {
            cJSON_Delete(document);
            document = NULL;
            (void)cli_error("%s: cannot be read: memory has run out", name_of(file));
        } else if (!document) {
            (void)cli_error("%s: is no JSON: line %d cannot be understood", name_of(file), line_of(text, end));
        }
    }
    free(text);
    return document;
}

/* Reads a side. CLI_OK, or CLI_FAILED after a message. The document is deleted by the caller. */
static int read_side(const char *file, compare_side *side, cJSON **document) {
    char why[COMPARE_WHY];
    *document = read_document(file);
    if (!*document)
        return CLI_FAILED;
    *side = (compare_side){.name = name_of(file), .document = *document};
    if (compare_read(side, why) != 0)
        return cli_error("%s: cannot be compared: %s", name_of(file), why);
    return CLI_OK;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int write_report(void *user, FILE *f, int format) {
    return compare_write(f, user, (report_format)format);
}

static int report(compare_results *r, outfile *file) {
    file->write = write_report;
    file->user = r;
    int code = outfile_try(file);
    if (code == CLI_OK)
        code = outfile_finish(file);
    if (code == CLI_OK && r->both == 0)
        return cli_error("no row of %s is in %s", r->new->name, r->old->name);
    return code == CLI_OK && compare_is_worse(r) ? CLI_FAILED : code;
}

int compare_files(const char *old, const char *new, const compare_asked *a, outfile *file) {
    compare_side sides[2] = {{.name = NULL}, {.name = NULL}};
    cJSON *documents[2] = {NULL, NULL};
    compare_results r = {.old = NULL};
    int code = read_side(old, &sides[0], &documents[0]);
    if (code == CLI_OK)
        code = read_side(new, &sides[1], &documents[1]);
    if (code == CLI_OK && compare_match(&sides[0], &sides[1], a->threshold > 0 ? a->threshold : COMPARE_THRESHOLD, &r))
        code = cli_error("out of memory");
    if (code == CLI_OK)
        code = report(&r, file);
    compare_free(&r);
    for (int i = 0; i < 2; i++) {
        compare_free_side(&sides[i]);
        cJSON_Delete(documents[i]);
    }
    return code;
}
