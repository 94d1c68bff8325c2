/* The command behind each result, from what the result says of itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "page.h"

/* ---- Lists of words --------------------------------------------------------------------------------------------- */

/* Words of one option. A reader may paste them into a shell, so only those are taken that mean nothing to it. */
typedef struct words {
    char text[1024];
    const char *last; /* most rows repeat the word before */
    int incomplete;   /* 1: a word was no name, or there was no room */
} words;

static int is_plain(const char *word) {
    return *word
           && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+^:,/-") == strlen(word)
           && *word != '-';
}

/* Whether the list has the word already. */
static int has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
            return 1;
    return 0;
}

static void add_word(words *w, const char *word) {
    const size_t used = strlen(w->text);
    if (w->last && strcmp(w->last, word) == 0)
        return;
    w->last = word;
    if (!is_plain(word) || used + strlen(word) + 2 > sizeof w->text)
        w->incomplete |= *word != 0;
    else if (!has_word(w->text, word))
        snprintf(w->text + used, sizeof w->text - used, "%s%s", used ? "," : "", word);
}

static void put_words(html *h, const char *option, const words *w) {
    if (*w->text) {
        html_put(h, " %s ", option);
        fputs(w->text, h->f); /* as is_plain() has it */
    }
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static void put_list(html *h, const result *one, const char *option, const char *key) {
    words w = {.text = ""};
    for (size_t i = 0; i < one->count; i++)
        add_word(&w, json_text(one->rows[i].json, key));
    put_words(h, option, &w);
}

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_counts(html *h, const result *one) {
    words w = {.text = ""};
    char text[32];
    double *counts = calloc(one->count + 1, sizeof *counts);
    size_t n = 0;
    for (size_t i = 0; counts && i < one->count; i++)
        if (one->rows[i].count >= 0 && one->rows[i].count < 0x1p63)
            counts[n++] = one->rows[i].count;
    if (counts)
        qsort(counts, n, sizeof *counts, compare_numbers);
    for (size_t i = 0; i < n; i++) {
        w.last = NULL;
        if (i == 0 || counts[i] != counts[i - 1])
            add_word(&w, figure_elements((uint64_t)counts[i], text));
    }
    free(counts);
    put_words(h, "-n", &w);
}

/* "planner" is a subject, and no strategy to ask for. */
static void put_strategies(html *h, const result *one) {
    words w = {.text = ""};
    for (size_t i = 0; i < one->count; i++)
        if (strcmp(one->rows[i].strategy, "planner") != 0)
            add_word(&w, one->rows[i].strategy);
    put_words(h, "-s", &w);
}

static void put_settings(html *h, const result *one) {
    const cJSON *settings = json_member(one->document, "settings");
    const double accuracy = json_number(settings, "accuracy"), budget = json_number(settings, "budget_seconds");
    if (accuracy > 0 && accuracy < 1)
        html_put(h, " -a %g%%", 100 * accuracy);
    if (budget > 0 && budget < 1e9)
        html_put(h, " -b %.0fs", ceil(budget));
}

static void put_pools(html *h, const result *one) {
    const char *between = " --pools ";
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, json_member(one->document, "pools")) {
        const double asked = json_number(row, "asked");
        if (!(asked > 0 && asked < 1e9))
            continue;
        html_put(h, "%s%.0f", between, asked);
        between = ",";
    }
}

static void put_problem(html *h, const result *one) {
    put_list(h, one, "--segments", "segments");
    put_list(h, one, "--axes", "axes");
    put_list(h, one, "-o", "op");
    put_list(h, one, "-t", "dtype");
    put_counts(h, one);
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

static void put_recursion(html *h, const result *one) {
    const char *name = json_text(one->document, "recursion");
    const double size = json_number(one->document, "size");
    html_put(h, "dpr recurse %s", is_plain(name) ? name : "NAME");
    if (size >= 0)
        html_put(h, " --size %.0f", size);
    html_put(h, " --engine all --json");
}

static void put_command(html *h, const result *one) {
    if (one->kind == RESULT_RECURSION) {
        put_recursion(h, one);
        return;
    }
    html_put(h, "%s", result_program(one->kind));
    if (one->kind == RESULT_CPU)
        return;
    put_problem(h, one);
    if (one->kind == RESULT_BENCH)
        put_strategies(h, one);
    if (one->kind == RESULT_BENCH || one->kind == RESULT_PEERS) {
        put_list(h, one, "-m", "mode");
        put_list(h, one, "-c", "cache");
    }
    if (one->kind == RESULT_NESTED)
        put_pools(h, one);
    put_settings(h, one);
    html_put(h, " -f json");
}

static void put_definitions(html *h, const result *one) {
    static const char *const headings[] = {"word", "meaning"};
    const cJSON *item = NULL, *definitions = json_member(one->document, "definitions");
    if (!cJSON_IsObject(definitions) || !definitions->child)
        return;
    html_put(h, "<details><summary>What its words mean</summary>\n");
    html_table(h, "Words of the result", headings, 2);
    cJSON_ArrayForEach(item, definitions) {
        if (html_row(h, item->string, NAN))
            html_cell(h, cJSON_GetStringValue(item));
    }
    html_table_end(h);
    html_put(h, "</details>\n");
}

/* Results of one file, from number i to end - 1. */
static void show(page *p, size_t i, size_t end) {
    html *h = &p->h;
    const result *one = &p->r->at[i];
    html_put(h, "<h3 id=\"r%zu\">", page_result_number(p, one));
    html_text(h, result_file(one));
    html_put(h, "</h3>\n<p>On ");
    html_text(h, one->device);
    html_put(h, ", at commit ");
    html_text(h, json_text(one->document, "commit"));
    html_put(h, ":</p>\n<pre><code>");
    for (; i < end; i++) {
        put_command(h, &p->r->at[i]);
        html_put(h, "\n");
    }
    html_put(h, "</code></pre>\n");
    put_definitions(h, one);
}

void section_reproduce(page *p) {
    html_put(&p->h, "<p>Each figure names its file and its plot. These commands measure what is in the files, with the "
                    "operations, types, sizes and settings that the files name; a file that several calls were put "
                    "together for has what all of them measured. <code>dpr report FILE... -O page.html</code> makes "
                    "the page, and <code>dpr report FILE... --svg PLOT</code> or <code>--png PLOT</code> one "
                    "plot.</p>\n");
    for (size_t i = 0, end; i < p->r->count; i = end) {
        end = result_group_end(p->r, i);
        show(p, i, end);
    }
}
