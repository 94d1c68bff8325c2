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

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* The command line of a result, while it is written. */
typedef struct command {
    html *h;
    const result *one;
    const cJSON *rows; /* of the document, or of its regret, if that is all that it kept */
    int incomplete;    /* 1: the measurement had more than the command asks for */
} command;

static command command_of(html *h, const result *one) {
    return (command){.h = h,
                     .one = one,
                     .rows = json_member(one->document, one->count || one->kind != RESULT_BENCH ? "rows" : "regret")};
}

static int is_of_regret(const command *c) {
    return c->one->kind == RESULT_BENCH && c->one->count == 0;
}

static const cJSON *settings_of(const command *c) {
    return json_member(c->one->document, "settings");
}

static void put_words(command *c, const char *option, const words *w) {
    c->incomplete |= w->incomplete;
    if (*w->text) {
        html_put(c->h, " %s ", option);
        fputs(w->text, c->h->f); /* as is_plain() has it */
    }
}

static void put_list(command *c, const char *option, const char *key) {
    words w = {.text = ""};
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, c->rows) {
        add_word(&w, json_text(row, key));
    }
    put_words(c, option, &w);
}

/* The count of a row; NAN: none that -n could ask for. */
static double count_of(const cJSON *row) {
    const double count = json_number(row, "count");
    return count >= 0 && count < 0x1p63 ? count : NAN;
}

/* The array whose counts are what -n asked for, or nearest to it: that of the largest count. Only arrays with an N have
 * a size to ask for, and those with several N stay below the count. NULL: no array has an N. */
static const char *main_axes(const cJSON *rows) {
    const cJSON *row = NULL, *largest = NULL;
    cJSON_ArrayForEach(row, rows) {
        if (strchr(json_text(row, "axes"), 'N') && count_of(row) >= 0
            && (!largest || count_of(row) > count_of(largest)))
            largest = row;
    }
    return largest ? json_text(largest, "axes") : NULL;
}

/* Whether -n asked for the row's count. */
static int is_asked(const cJSON *row, const char *main) {
    const char *axes = json_text(row, "axes");
    return count_of(row) >= 0 && (!*axes || (main && strcmp(axes, main) == 0));
}

static void put_counts(command *c) {
    words w = {.text = ""};
    char text[32];
    const char *axes = main_axes(c->rows);
    double *counts = calloc((size_t)cJSON_GetArraySize(c->rows) + 1, sizeof *counts);
    const cJSON *row = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(row, c->rows) {
        if (counts && is_asked(row, axes))
            counts[n++] = count_of(row);
    }
    if (counts)
        qsort(counts, n, sizeof *counts, figure_compare);
    for (size_t i = 0; i < n; i++) {
        w.last = NULL;
        if (i == 0 || counts[i] != counts[i - 1])
            add_word(&w, figure_elements((uint64_t)counts[i], text));
    }
    c->incomplete |= !counts;
    free(counts);
    put_words(c, "-n", &w);
}

/* "planner" is a subject, and no strategy to ask for. Regret names the quickest strategy of a case, and not those that
 * it was compared with. */
static void put_strategies(command *c) {
    words w = {.text = "", .incomplete = is_of_regret(c)};
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, c->rows) {
        if (strcmp(json_text(row, "strategy"), "planner") != 0)
            add_word(&w, json_text(row, "strategy"));
    }
    put_words(c, "-s", &w);
}

/* An option that takes one number, which is a member of the rows that it concerns. */
static void put_number(command *c, const char *option, const char *key) {
    double first = NAN;
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, c->rows) {
        const double x = json_number(row, key);
        if (!(x >= 0 && x < 1e9))
            continue;
        c->incomplete |= isfinite(first) && x != first;
        first = isfinite(first) ? first : x;
    }
    if (isfinite(first))
        html_put(c->h, " %s %.0f", option, first);
}

static void put_settings(const command *c) {
    const cJSON *settings = settings_of(c);
    const double accuracy = json_number(settings, "accuracy"), budget = json_number(settings, "budget_seconds");
    if (accuracy > 0 && accuracy < 1)
        html_put(c->h, " -a %g%%", 100 * accuracy);
    if (budget > 0 && budget < 1e9)
        html_put(c->h, " -b %.0fs", ceil(budget));
}

static void put_pools(const command *c) {
    const char *between = " --pools ";
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, json_member(c->one->document, "pools")) {
        const double asked = json_number(row, "asked");
        if (!(asked > 0 && asked < 1e9))
            continue;
        html_put(c->h, "%s%.0f", between, asked);
        between = ",";
    }
}

static void put_offsets(command *c) {
    words w = {.text = ""};
    add_word(&w, json_text(settings_of(c), "offsets"));
    put_words(c, "--offsets", &w);
}

/* The planner's choice depends on it. */
static void put_wisdom(command *c) {
    const char *wisdom = json_text(settings_of(c), "wisdom");
    c->incomplete |= *wisdom && !is_plain(wisdom);
    if (is_plain(wisdom))
        html_put(c->h, "DPR_WISDOM=%s ", wisdom);
}

static void put_problem(command *c) {
    put_list(c, "--segments", "segments");
    put_offsets(c);
    put_list(c, "--axes", "axes");
    put_list(c, "-o", "op");
    put_list(c, "-t", "dtype");
    put_counts(c);
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

/* dpr recurse names the processor in both members when no GPU took part. */
static int is_of_cpu(const result *one) {
    const cJSON *device = json_member(one->document, "device");
    const char *kind = json_text(device, "kind"), *cpu = json_text(device, "cpu");
    if (one->kind == RESULT_RECURSION && *cpu)
        return strcmp(json_text(device, "name"), cpu) == 0;
    return strcmp(kind, "cpu") == 0;
}

/* Writes an option with the document's member `key`, a number or a word. A word that is not plain is left out, and the
 * command is marked incomplete. */
static void put_member(command *c, const char *option, const char *key) {
    const double number = json_number(c->one->document, key);
    const char *word = json_text(c->one->document, key);
    if (number >= 0)
        html_put(c->h, " %s %.0f", option, number);
    else if (is_plain(word))
        html_put(c->h, " %s %s", option, word);
    c->incomplete |= *word && !is_plain(word);
}

static void put_recursion(command *c) {
    const cJSON *document = c->one->document;
    const char *name = json_text(document, "recursion");
    const int is_known = is_plain(name);
    c->incomplete |= !is_known;
    html_put(c->h, "dpr recurse %s%s", is_known ? name : "NAME", is_of_cpu(c->one) ? " -d cpu" : "");
    put_member(c, "--size", "size");
    if (*json_text(document, "input")) {
        c->incomplete = 1; /* another machine has the file elsewhere, or lacks it */
        html_put(c->h, " --input FILE");
    }
    put_member(c, "--rank", "rank");
    put_member(c, "--cutoff", "cutoff");
    put_member(c, "--threads", "threads");
    html_put(c->h, "%s --engine all --json", *json_text(document, "nested") ? " --nested" : "");
}

static void put_options(command *c) {
    const result_kind kind = c->one->kind;
    if (kind == RESULT_BENCH && is_of_cpu(c->one))
        html_put(c->h, " -d cpu");
    put_problem(c);
    if (kind == RESULT_BENCH)
        put_strategies(c);
    if (kind != RESULT_PEERS)
        put_number(c, "--block", "block");
    if (kind == RESULT_BENCH || kind == RESULT_PEERS) {
        put_list(c, "-m", "mode");
        put_list(c, "-c", "cache");
        put_list(c, "--memory", "memory");
    }
    if (kind == RESULT_NESTED) {
        put_number(c, "--depth", "depth");
        put_pools(c);
    }
    put_settings(c);
    html_put(c->h, " -f json");
}

static void put_command(html *h, const result *one) {
    command c = command_of(h, one);
    if (one->kind == RESULT_RECURSION) {
        put_recursion(&c);
    } else {
        put_wisdom(&c);
        html_put(h, "%s", result_program(one->kind));
        if (one->kind != RESULT_CPU)
            put_options(&c);
    }
    html_put(h, "%s\n", c.incomplete ? " # (incomplete)" : "");
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
    html_put(h, "<h3 id=\"r%zu\">", page_result_number(one));
    html_text(h, result_file(one));
    html_put(h, "</h3>\n<p>It was measured on ");
    html_text(h, one->device);
    html_put(h, " at commit ");
    html_text(h, json_text(one->document, "commit"));
    html_put(h, ":</p>\n<pre><code>");
    for (; i < end; i++)
        put_command(h, &p->r->at[i]);
    html_put(h, "</code></pre>\n");
    put_definitions(h, one);
}

void section_reproduce(page *p) {
    html_put(
        &p->h,
        "<p>Each figure names its file and its plot. These commands measure what is in the files, with the "
        "operations, types, sizes and settings that the files name; a file that several calls were put "
        "together for has what all of them measured. A command with <code>(incomplete)</code> is not the whole one: a "
        "shell could misunderstand some words of its file, one call cannot have them all, or the file does not say all "
        "that was asked for. <code>dpr report FILE... -O page.html</code> makes the page, and <code>dpr report FILE... "
        "--svg PLOT</code> or <code>--png PLOT</code> one plot.</p>\n");
    for (size_t i = 0, end; i < p->r->count; i = end) {
        end = result_group_end(p->r, i);
        show(p, i, end);
    }
}
