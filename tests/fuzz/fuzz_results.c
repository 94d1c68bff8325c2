/* Files of results: what `dpr report` and `dpr bench --compare` make of them. */
#define _POSIX_C_SOURCE 200809L /* open_memstream() */
#include <stdlib.h>
#include <string.h>

#include "bench_compare.h"
#include "cli.h"
#include "document.h"
#include "fuzz.h"
#include "page.h"

/* A stream whose text the caller takes with close_text(), and frees. */
typedef struct stream {
    FILE *f;
    char *text;
    size_t size;
} stream;

static void open_text(stream *s) {
    *s = (stream){NULL, NULL, 0};
    s->f = open_memstream(&s->text, &s->size);
    FUZZ_CHECK(s->f != NULL, "no memory");
}

static char *close_text(stream *s) {
    FUZZ_CHECK(fclose(s->f) == 0 && strlen(s->text) == s->size, "zero bytes in the text");
    return s->text;
}

/* ---- The page --------------------------------------------------------------------------------------------------- */

/* Text of files is escaped: the page has one script, its own, and no control characters. */
static void check_page(const results *r) {
    page p;
    stream s;
    FUZZ_CHECK(page_write(&p, r, "there is none") == 0, "no memory");
    open_text(&s);
    FUZZ_CHECK(page_finish(&p, NULL, s.f) == 0, "no memory");
    char *html = close_text(&s), *script = strstr(html, "<script");
    FUZZ_CHECK(script && !strstr(script + 1, "<script"), "scripts in the page");
    FUZZ_CHECK(strcmp(html + s.size - 8, "</html>\n") == 0, "the page has no end");
    fuzz_check_text(html, 1);
    free(html);
    page_free(&p);
}

static void show(const char *path) {
    results r = {.at = NULL};
    fuzz_listen();
    int code = page_results_read(&r, path);
    if (code == CLI_OK)
        code = page_results_complete(&r);
    const char *message = fuzz_heard();
    if (code == CLI_OK)
        check_page(&r);
    else
        fuzz_check_text(message, 1);
    page_results_free(&r);
}

/* ---- Comparisons ------------------------------------------------------------------------------------------------ */

static void check_reports(const compare_results *r) {
    for (int format = 0; format < REPORT_FORMATS; format++) {
        stream s;
        open_text(&s);
        FUZZ_CHECK(compare_write(s.f, r, (report_format)format) == 0, "no memory");
        char *text = close_text(&s);
        fuzz_check_text(text, 1);
        if (format == REPORT_JSON) {
            cJSON *json = cJSON_Parse(text);
            FUZZ_CHECK(json != NULL, "no JSON: %s", text);
            cJSON_Delete(json);
        }
        free(text);
    }
}

/* No file is faster or slower than itself, and all rows find each other. */
static void check_itself(compare_side sides[2]) {
    compare_results r = {.old = NULL};
    FUZZ_CHECK(compare_match(&sides[0], &sides[1], &(compare_rule){0.03, 0.1, 0}, &r) == 0, "no memory");
    FUZZ_CHECK(r.verdicts[COMPARE_FASTER] == 0 && r.verdicts[COMPARE_SLOWER] == 0, "a row differs from itself");
    FUZZ_CHECK(r.only_old == 0 && r.only_new == 0 && r.both == sides[0].in_file, "rows do not find themselves");
    FUZZ_CHECK(compare_is_worse(&r) == (r.verdicts[COMPARE_FAILED] > 0), "worse than itself");
    check_reports(&r);
    compare_free(&r);
}

static void compare(const char *path) {
    char why[COMPARE_WHY] = "";
    fuzz_listen();
    cJSON *document = document_read(path, "compared");
    const char *message = fuzz_heard();
    compare_side sides[2] = {{.name = "old", .document = document}, {.name = "new", .document = document}};
    if (!document)
        fuzz_check_text(message, 1);
    else if (compare_read(&sides[0], why) != 0)
        FUZZ_CHECK(*why, "no reason");
    else if (compare_read(&sides[1], why) == 0)
        check_itself(sides);
    else
        FUZZ_CHECK(0, "refused the second time: %s", why);
    compare_free_side(&sides[0]);
    compare_free_side(&sides[1]);
    cJSON_Delete(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *path = fuzz_file(bytes, size);
    show(path);
    compare(path);
    return 0;
}
