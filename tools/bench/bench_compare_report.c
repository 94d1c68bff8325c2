/* The report of a comparison. */
#include <stdlib.h>
#include <string.h>

#include "bench_compare.h"
#include "cli_json.h"
#include "figures.h"

/* ---- What differs in the sides' beginnings ---------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The value as a short text; "none" for no value. */
static const char *shown(const cJSON *item, char text[64]) {
    const char *string = cJSON_GetStringValue(item);
    char *json = item && !string ? cJSON_PrintUnformatted(item) : NULL;
    snprintf(text, 64, "%s", string ? string : json ? json : "none");
    cJSON_free(json);
    return text;
}

static void warn(report_out *out, cJSON *warnings, const char *text) {
    cli_json_append(warnings, cJSON_CreateString(text));
    report_text(out, REPORT_NOTE, "Warning: %s", text);
}

/* Warns of a member that differs. One that is not there is the same as the text "none": older files lack some. */
static void warn_of_member(report_out *out, cJSON *warnings, const char *what, const char *key, const cJSON *old,
                           const cJSON *new) {
    char text[320], a[64], b[64];
    if ((!old && !new) || cJSON_Compare(old, new, 1))
        return;
    shown(old, a);
    shown(new, b);
    if ((!old || !new) && strcmp(a, b) == 0)
        return;
    snprintf(text, sizeof text, "%s%s%.64s is %s in OLD, and %s in NEW", what, *what ? ": " : "", key, a, b);
    warn(out, warnings, text);
}

/* Members of an object that are looked at, which are more than any report has. */
enum { MOST_MEMBERS = 64 };

/* Warns of members of an object that differ; with `lacking`, also of members that only one side has. */
static void warn_of_members(report_out *out, cJSON *warnings, const compare_results *r, const char *what, int lacking) {
    const cJSON *old = member(r->old->document, what), *new = member(r->new->document, what);
    const cJSON *item = cJSON_IsObject(old) ? old->child : NULL;
    for (int i = 0; item && i < MOST_MEMBERS; i++, item = item->next) {
        const cJSON *other = member(new, item->string);
        if (other || lacking)
            warn_of_member(out, warnings, what, item->string, item, other);
    }
    item = cJSON_IsObject(new) && lacking ? new->child : NULL;
    for (int i = 0; item && i < MOST_MEMBERS; i++, item = item->next)
        if (!member(old, item->string))
            warn_of_member(out, warnings, what, item->string, NULL, item);
}

static void warn_of_end(report_out *out, cJSON *warnings, const compare_side *side, const char *which) {
    const cJSON *ended = NULL;
    char text[160], why[64];
    for (const cJSON *d = side->document; d && !cJSON_IsString(ended); d = d->next)
        ended = member(d, "ended_early");
    if (compare_is_interrupted(side)) {
        snprintf(text, sizeof text, "%s was interrupted", which);
        warn(out, warnings, text);
    } else if (cJSON_IsString(ended)) {
        snprintf(text, sizeof text, "%s ended early: %s", which, shown(ended, why));
        warn(out, warnings, text);
    }
}

static void write_warnings(report_out *out, const compare_results *r) {
    char text[160];
    cJSON *warnings = cJSON_AddArrayToObject(out->document, "warnings");
    const cJSON *old = r->old->document, *new = r->new->document;
    warn_of_member(out, warnings, "", "benchmark", member(old, "benchmark"), member(new, "benchmark"));
    warn_of_members(out, warnings, r, "device", 1);
    warn_of_members(out, warnings, r, "settings", 1);
    warn_of_members(out, warnings, r, "definitions", 0);
    if (r->rule.drift > 0.01) {
        snprintf(text, sizeof text,
                 "a fixed piece of work ran %.3g %% slower in one of the runs; all intervals include this",
                 100 * r->rule.drift);
        warn(out, warnings, text);
    }
    warn_of_end(out, warnings, r->old, "OLD");
    warn_of_end(out, warnings, r->new, "NEW");
}

static void write_side(report_out *out, const compare_side *side, const char *key, const char *title) {
    static const char *const members[] = {"benchmark", "version", "commit", NULL};
    cJSON *object = cJSON_AddObjectToObject(out->document, key);
    const cJSON *device = member(member(side->document, "device"), "name");
    char text[4][64];
    cJSON_AddStringToObject(object, "file", side->name);
    for (int i = 0; members[i]; i++) {
        const cJSON *item = member(side->document, members[i]);
        shown(item, text[i]);
        if (cJSON_IsString(item))
            cJSON_AddStringToObject(object, members[i], item->valuestring);
    }
    if (cJSON_IsString(device))
        cJSON_AddStringToObject(object, "device", device->valuestring);
    report_add(object, "rows=%lu", (uint64_t)side->in_file);
    report_text(out, REPORT_NOTE, "%s: %s: %s %s %s, %s, %zu rows", title, side->name, text[0], text[1], text[2],
                shown(device, text[3]), side->in_file);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* Adds a row's identity, which has text and digits. */
static void add_identity(cJSON *row, const compare_row *from) {
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, from->identity) {
        cli_json_add(row, item->string, cJSON_Duplicate(item, 1));
    }
}

static void add_time(cJSON *row, const char *side, const compare_row *from) {
    char key[32];
    const struct {
        const char *name;
        double us;
    } members[] = {{"us", from->us.median}, {"low_us", from->us.low}, {"high_us", from->us.high}};
    for (size_t i = 0; from->ok && i < sizeof members / sizeof *members; i++) {
        snprintf(key, sizeof key, "%s_%s", side, members[i].name);
        report_known(row, key, members[i].us);
    }
}

/* OLD's row; if it has none, one without an identity and a time. */
static const compare_row *old_of(const compare_pair *p) {
    static const compare_row none = {.ok = 0};
    return p->old ? p->old : &none;
}

/* A time with marks. */
static void add_cell(cJSON *row, const char *key, const compare_row *from) {
    char text[64], digits[32];
    snprintf(text, sizeof text, "%s%s%s", figure_digits(from->us.median, digits), from->us.settled ? "" : "~",
             from->us.doubtful ? "?" : "");
    cJSON_AddStringToObject(row, key, from->ok ? text : from->identity ? "failed" : "-");
}

static int has_note(const compare_pair *p) {
    return p->ratio.why || p->ratio.is_steady || p->new->choice;
}

enum { NOTE = 512 };

static void add_clause(char note[NOTE], const char *clause) {
    const size_t used = strlen(note);
    snprintf(note + used, NOTE - used, "%s%.300s", used ? "; " : "", clause);
}

/* What else there is to say of a pair. */
static void add_note(cJSON *row, const compare_pair *p) {
    char note[NOTE] = "", clause[300], old[32], new[32];
    if (p->ratio.why)
        add_clause(note, p->ratio.why);
    if (p->ratio.is_steady) {
        snprintf(clause, sizeof clause, "steady %s and %s", figure_digits(old_of(p)->steady.median, old),
                 figure_digits(p->new->steady.median, new));
        add_clause(note, clause);
    }
    if (p->new->choice) {
        snprintf(clause, sizeof clause, "it was %.120s and is %.120s", old_of(p)->choice, p->new->choice);
        add_clause(note, clause);
    }
    cJSON_AddStringToObject(row, "note", note);
}

/* Cells of tables: the times, the ratio with its interval, and a note. */
static void add_cells(cJSON *row, const compare_pair *p) {
    char text[64];
    add_cell(row, "old", old_of(p));
    add_cell(row, "new", p->new);
    if (p->ratio.ratio > 0) {
        snprintf(text, sizeof text, "%.3f", p->ratio.ratio);
        cJSON_AddStringToObject(row, "change", text);
        snprintf(text, sizeof text, "[%.3f, %.3f]", p->ratio.low, p->ratio.high);
        cJSON_AddStringToObject(row, "interval", text);
    }
    add_note(row, p);
}

/* Adds a pair's row to the list. Returns it. */
static cJSON *add_pair(const report_out *out, cJSON *list, const compare_pair *p) {
    const compare_row *old = old_of(p);
    cJSON *row = report_row(list);
    add_identity(row, p->new);
    report_add(row, "verdict=%s", compare_verdict_name(p->ratio.verdict));
    add_time(row, "old", old);
    add_time(row, "new", p->new);
    if (p->ratio.ratio > 0)
        report_add(row, "ratio=%g ratio_low=%g ratio_high=%g", p->ratio.ratio, p->ratio.low, p->ratio.high);
    if (p->ratio.is_steady)
        report_add(row, "old_steady_us=%g new_steady_us=%g", old->steady.median, p->new->steady.median);
    if (p->new->choice)
        report_add(row, "old_choice=%s new_choice=%s", old->choice, p->new->choice);
    if (p->ratio.why)
        cJSON_AddStringToObject(row, "why", p->ratio.why);
    if (report_is_text(out))
        add_cells(row, p);
    return row;
}

/* The columns of tables that tell rows apart. A column is left out if all rows have the same in it, except the first.
 */
static const report_column identities[] = {{"name", "strategy", UNIT_LEFT},
                                           {"recursion", "recursion", UNIT_LEFT},
                                           {"size", "size", UNIT_NONE},
                                           {"input", "input", UNIT_LEFT},
                                           {"rank", "rank", UNIT_NONE},
                                           {"cutoff", "cutoff", UNIT_NONE},
                                           {"threads", "threads", UNIT_NONE},
                                           {"nested", "nested", UNIT_LEFT},
                                           {"segments", "segments", UNIT_LEFT},
                                           {"axes", "axes", UNIT_LEFT},
                                           {"op", "op", UNIT_LEFT},
                                           {"dtype", "type", UNIT_LEFT},
                                           {"mode", "mode", UNIT_LEFT},
                                           {"cache", "cache", UNIT_LEFT},
                                           {"memory", "memory", UNIT_LEFT},
                                           {"block", "block", UNIT_NONE},
                                           {"depth", "depth", UNIT_NONE},
                                           {"count", "elements", UNIT_ELEMENTS}};
enum { IDENTITIES = sizeof identities / sizeof *identities };

static const report_column times[] = {{"old", "OLD us", UNIT_NONE},
                                      {"new", "NEW us", UNIT_NONE},
                                      {"change", "NEW / OLD", UNIT_NONE},
                                      {"interval", "95 %", UNIT_NONE},
                                      {"note", "note", UNIT_LEFT}};
enum { TIMES = sizeof times / sizeof *times };

static const compare_row *row_of(const compare_pair *p) {
    return p->new ? p->new : p->old;
}

/* Whether all rows agree on a member. */
static int is_common(const compare_results *r, const char *key) {
    const cJSON *first = r->count > 0 ? member(row_of(&r->pairs[0])->identity, key) : NULL;
    for (size_t i = 1; i < r->count; i++) {
        const cJSON *other = member(row_of(&r->pairs[i])->identity, key);
        if ((first || other) && (!first || !other || strcmp(first->valuestring, other->valuestring) != 0))
            return 0;
    }
    return 1;
}

static const char csv[] = "verdict,subject,strategy,engine,recursion,size,segments,axes,op,dtype,count,mode,cache,"
                          "memory,block,depth,results,bytes,old_us,old_low_us,old_high_us,new_us,"
                          "new_low_us,new_high_us,ratio,ratio_low,ratio_high,old_choice,new_choice,why,old_steady_us,"
                          "new_steady_us,input,rank,cutoff,threads,nested";

/* The columns that rows need; with `has_note` also a note. */
static void choose_columns(const compare_results *r, int with_times, int has_note,
                           report_column out[IDENTITIES + TIMES + 1]) {
    int n = 0;
    for (int i = 0; i < IDENTITIES; i++)
        if (i == 0 || !is_common(r, identities[i].key))
            out[n++] = identities[i];
    for (int i = 0; with_times && i < TIMES - !has_note; i++)
        out[n++] = times[i];
    out[n] = (report_column){0};
}

/* Says what all rows agree on. */
static void say_common(report_out *out, const compare_results *r) {
    char text[512] = "", digits[32];
    for (int i = 1; r->count > 0 && i < IDENTITIES; i++) {
        const cJSON *item = member(row_of(&r->pairs[0])->identity, identities[i].key);
        const size_t used = strlen(text);
        const char *value = item ? item->valuestring : "";
        if (item && identities[i].unit == UNIT_ELEMENTS)
            value = figure_elements(strtoull(value, NULL, 10), digits);
        if (item && is_common(r, identities[i].key))
            snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "", identities[i].heading, value);
    }
    if (*text)
        report_text(out, REPORT_NOTE, "All rows: %s", text);
}

/* The name that a row has in tables. */
static void add_name(cJSON *row, const compare_row *from) {
    cJSON_AddStringToObject(row, "name", compare_subject(from->identity));
}

static void write_table(report_out *out, const compare_results *r, compare_verdict verdict) {
    static const char *const titles[] = {[COMPARE_SAME] = "Same",
                                         [COMPARE_FASTER] = "Faster",
                                         [COMPARE_SLOWER] = "Slower",
                                         [COMPARE_UNSURE] = "Unsure",
                                         [COMPARE_FAILED] = "Failed"};
    report_column columns[IDENTITIES + TIMES + 1];
    cJSON *list = cJSON_CreateArray();
    int any_note = 0;
    for (size_t i = 0; i < r->count; i++) {
        const compare_pair *p = &r->pairs[i];
        if (!compare_has_verdict(p) || p->ratio.verdict != verdict)
            continue;
        add_name(add_pair(out, list, p), p->new);
        any_note |= has_note(p);
    }
    choose_columns(r, 1, any_note, columns);
    report_table(out, titles[verdict], list, 0, columns);
    cJSON_Delete(list);
}

/* Whether one side alone has the row. */
static int is_only(const compare_pair *p, int of_new) {
    return of_new ? !p->old : !p->new;
}

/* Adds the row of one side to the list. */
static void add_only(const report_out *out, cJSON *list, const compare_pair *p) {
    const compare_row *from = row_of(p);
    cJSON *row = report_row(list);
    add_identity(row, from);
    cJSON_AddStringToObject(row, "verdict",
                            compare_has_verdict(p) ? compare_verdict_name(p->ratio.verdict)
                            : p->new               ? "only in NEW"
                                                   : "only in OLD");
    cJSON_AddBoolToObject(row, "ok", from->ok);
    if (p->ratio.why)
        cJSON_AddStringToObject(row, "why", p->ratio.why);
    if (report_is_text(out))
        add_name(row, from);
}

/* Rows of one side. Text names the first of those without a verdict, which other tables show; documents and CSV have
 * all. */
static void write_only(report_out *out, const compare_results *r, int of_new) {
    enum { NAMED = 20 };
    report_column columns[IDENTITIES + TIMES + 1];
    cJSON *list = cJSON_AddArrayToObject(out->document, of_new ? "only_in_new" : "only_in_old");
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const compare_pair *p = &r->pairs[i];
        if (!is_only(p, of_new) || (report_is_text(out) && (compare_has_verdict(p) || n++ >= NAMED)))
            continue;
        add_only(out, list, p);
    }
    choose_columns(r, 0, 0, columns);
    report_csv(out, csv, list);
    report_table(out, of_new ? "Only in NEW" : "Only in OLD", list, 0, columns);
    if (n > NAMED)
        report_text(out, REPORT_NOTE, "and %zu more", n - NAMED);
}

/* ---- The summary ------------------------------------------------------------------------------------------------ */

static void write_summary(report_out *out, const compare_results *r) {
    cJSON *summary = cJSON_AddObjectToObject(out->document, "summary");
    char name[COMPARE_NAME];
    for (size_t v = 0; v < COMPARE_VERDICTS; v++)
        cJSON_AddNumberToObject(summary, compare_verdict_name(v), (double)r->verdicts[v]);
    report_add(summary, "only_in_old=%lu only_in_new=%lu", (uint64_t)r->only_old, (uint64_t)r->only_new);
    report_text(out, REPORT_NOTE,
                "%zu same, %zu faster, %zu slower, %zu unsure, %zu failed; %zu only in OLD, %zu only in NEW",
                r->verdicts[COMPARE_SAME], r->verdicts[COMPARE_FASTER], r->verdicts[COMPARE_SLOWER],
                r->verdicts[COMPARE_UNSURE], r->verdicts[COMPARE_FAILED], r->only_old, r->only_new);
    if (r->verdicts[COMPARE_UNSURE] > r->both / 10)
        report_text(out, REPORT_NOTE,
                    "Many rows are unsure. Measure both builds again while the machine does nothing else, or raise "
                    "--threshold.");
    if (!r->worst)
        return;
    const compare_ratio *ratio = &r->worst->ratio;
    report_known(summary, "geometric_mean", r->mean);
    cJSON *worst = cJSON_AddObjectToObject(summary, "worst");
    compare_name(r->worst->new, name);
    report_add(worst, "name=%s ratio=%g ratio_low=%g ratio_high=%g verdict=%s", name, ratio->ratio, ratio->low,
               ratio->high, compare_verdict_name(ratio->verdict));
    report_text(out, REPORT_NOTE, "NEW / OLD: geometric mean of %zu row%s %.3f; worst %.3f [%.3f, %.3f], %s: %s",
                r->timed, r->timed == 1 ? "" : "s", r->mean, ratio->ratio, ratio->low, ratio->high,
                compare_verdict_name(ratio->verdict), name);
}

static void define(report_out *out, const compare_results *r) {
    cJSON *object = cJSON_AddObjectToObject(out->document, "definitions");
    int has_steady = 0;
    cJSON_AddStringToObject(object, "ratio", "NEW's median over OLD's; above 1, NEW is slower");
    cJSON_AddStringToObject(object, "interval",
                            "ratio_low to ratio_high is a 95 % interval of the ratio, which includes how runs of one "
                            "build differ");
    cJSON_AddStringToObject(object, "steady",
                            "what short calls would take if an empty launch took as long in both runs, and limited "
                            "them; ratio is that of these times where it is nearer to 1");
    cJSON_AddStringToObject(object, "drift",
                            "how much slower a fixed piece of work ran in one of the runs than in the other; the "
                            "intervals include it");
    cJSON_AddStringToObject(object, "verdict",
                            "same, faster or slower by more than the threshold, unsure, or failed: no result or a "
                            "wrong one in NEW");
    for (size_t i = 0; i < r->count; i++)
        has_steady |= compare_has_steady(r->pairs[i].old, r->pairs[i].new);
    if (has_steady)
        report_text(out, REPORT_NOTE,
                    "Steady: what short calls would take if an empty launch took as long in both runs. NEW / OLD is "
                    "that of steady times where these differ less; the threshold of such calls is %.3g %%",
                    100 * r->rule.steady_threshold);
    report_text(out, REPORT_NOTE,
                "Threshold %.3g %%; the 95 %% intervals include how runs of one build differ. Marks: ~ the median is "
                "not as certain as was asked; ? the machine was slower than before",
                100 * r->rule.threshold);
}

int compare_write(FILE *f, const compare_results *r, report_format format) {
    static const compare_verdict order[] = {COMPARE_SAME, COMPARE_UNSURE, COMPARE_FASTER, COMPARE_FAILED,
                                            COMPARE_SLOWER};
    report_out out = report_begin(f, format);
    report_add(out.document, "benchmark=%s threshold=%g steady_threshold=%g drift=%g", "dpr bench --compare",
               r->rule.threshold, r->rule.steady_threshold, r->rule.drift);
    report_text(&out, REPORT_TITLE, "NEW compared with OLD");
    write_side(&out, r->old, "old", "OLD");
    write_side(&out, r->new, "new", "NEW");
    write_warnings(&out, r);
    say_common(&out, r);
    cJSON *rows = cJSON_AddArrayToObject(out.document, "rows");
    for (size_t i = 0; i < r->count; i++)
        if (r->pairs[i].old && r->pairs[i].new && !report_is_text(&out))
            (void)add_pair(&out, rows, &r->pairs[i]);
    report_csv(&out, csv, rows);
    for (size_t i = 0; i < COMPARE_VERDICTS; i++)
        write_table(&out, r, order[i]);
    write_only(&out, r, 0);
    write_only(&out, r, 1);
    define(&out, r);
    write_summary(&out, r);
    return report_end(&out);
}
