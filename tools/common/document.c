#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"

/* What a file may have at most. A row takes some 400 bytes, and a document is four levels deep. */
enum { MOST_BYTES = 32 << 20, MOST_DEPTH = 32 };

const char *document_name(const char *file) {
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
static char *read_text(const char *file, const char *what) {
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
    size_t n = 0;
    char *text = f ? read_bytes(f, &n) : NULL;
    const int bad = !f || ferror(f), error = errno;
    if (f && f != stdin)
        (void)fclose(f);
    if (bad)
        (void)cli_error("%s: cannot be read: %s", document_name(file), strerror(error));
    else if (!text)
        (void)cli_error("%s: cannot be read: memory has run out", document_name(file));
    else if (n > MOST_BYTES)
        (void)cli_error("%s: cannot be %s: it is longer than %d MiB", document_name(file), what, MOST_BYTES >> 20);
    else if (memchr(text, 0, n))
        (void)cli_error("%s: is no JSON: it has a zero byte", document_name(file));
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

cJSON *document_read(const char *file, const char *what) {
    const char *end = NULL;
    cJSON *document = NULL;
    char *text = read_text(file, what);
    if (!text)
        return NULL;
    if (is_deep(text)) {
        (void)cli_error("%s: cannot be %s: it is nested more than %d levels deep", document_name(file), what,
                        MOST_DEPTH);
    } else {
        document = cJSON_ParseWithOpts(text, &end, 1);
        if (cli_json_failed()) {
            cJSON_Delete(document);
            document = NULL;
            (void)cli_error("%s: cannot be read: memory has run out", document_name(file));
        } else if (!document) {
            (void)cli_error("%s: is no JSON: line %d cannot be understood", document_name(file), line_of(text, end));
        }
    }
    free(text);
    return document;
}
