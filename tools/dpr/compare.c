#include "compare.h"

#include "bench_compare.h"
#include "cli.h"
#include "document.h"

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Reads a side. 0, or -1 after a message. The document is deleted by the caller. */
static int read_side(const char *file, compare_side *side, cJSON **document) {
    char why[COMPARE_WHY];
    *document = document_read(file, "compared");
    if (!*document)
        return -1;
    *side = (compare_side){.name = document_name(file), .document = *document};
    if (compare_read(side, why) == 0)
        return 0;
    (void)cli_error("%s: cannot be compared: %s", document_name(file), why);
    return -1;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int write_report(void *user, FILE *f, int format) {
    return compare_write(f, user, (report_format)format);
}

static int report(compare_results *r, outfile *file) {
    char why[COMPARE_WHY];
    file->write = write_report;
    file->user = r;
    if (outfile_try(file) != CLI_OK || outfile_finish(file) != CLI_OK)
        return COMPARE_UNKNOWN;
    if (fflush(stdout) != 0 || ferror(stdout)) /* cli_finish() says so */
        return COMPARE_UNKNOWN;
    if (compare_is_worse(r))
        return CLI_FAILED;
    if (!compare_lacks(r, why))
        return CLI_OK;
    (void)cli_error("the comparison says too little: %s", why);
    return COMPARE_UNKNOWN;
}

int compare_files(const char *old, const char *new, const compare_asked *a, outfile *file) {
    const char *const files[] = {old, new};
    compare_side sides[2] = {{.name = NULL}, {.name = NULL}};
    cJSON *documents[2] = {NULL, NULL};
    compare_results r = {.old = NULL};
    const compare_rule rule = {.threshold = a->threshold > 0 ? a->threshold : COMPARE_THRESHOLD,
                               .steady_threshold = a->threshold > 0 ? a->threshold : COMPARE_STEADY_THRESHOLD};
    int code = COMPARE_UNKNOWN;
    if (outfile_refuse_input(file->name, files, 2) != CLI_OK)
        return CLI_USAGE;
    if (read_side(old, &sides[0], &documents[0]) == 0 && read_side(new, &sides[1], &documents[1]) == 0) {
        if (compare_match(&sides[0], &sides[1], &rule, &r) == 0)
            code = report(&r, file);
        else
            (void)cli_error("out of memory");
    }
    compare_free(&r);
    for (int i = 0; i < 2; i++) {
        compare_free_side(&sides[i]);
        cJSON_Delete(documents[i]);
    }
    return code;
}
