#include "compare.h"

#include <string.h>

#include "bench_compare.h"
#include "cli.h"
#include "document.h"

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* Reads a side. CLI_OK, or CLI_FAILED after a message. The document is deleted by the caller. */
static int read_side(const char *file, compare_side *side, cJSON **document) {
    char why[COMPARE_WHY];
    *document = document_read(file, "compared");
    if (!*document)
        return CLI_FAILED;
    *side = (compare_side){.name = document_name(file), .document = *document};
    if (compare_read(side, why) != 0)
        return cli_error("%s: cannot be compared: %s", document_name(file), why);
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
    const compare_rule rule = {.threshold = a->threshold > 0 ? a->threshold : COMPARE_THRESHOLD,
                               .steady_threshold = a->threshold > 0 ? a->threshold : COMPARE_STEADY_THRESHOLD};
    int code = read_side(old, &sides[0], &documents[0]);
    if (code == CLI_OK)
        code = read_side(new, &sides[1], &documents[1]);
    if (code == CLI_OK && compare_match(&sides[0], &sides[1], &rule, &r))
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
