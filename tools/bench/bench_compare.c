#include "bench_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_json.h"
#include "figures.h"
#include "statistics.h"

/* ---- Times ------------------------------------------------------------------------------------------------------ */

const char *compare_verdict_name(size_t verdict) {
    static const char *const names[] = {[COMPARE_SAME] = "same",
                                        [COMPARE_FASTER] = "faster",
                                        [COMPARE_SLOWER] = "slower",
                                        [COMPARE_UNSURE] = "unsure",
                                        [COMPARE_FAILED] = "failed"};
    return verdict < COMPARE_VERDICTS ? names[verdict] : NULL;
}

/* Medians of the same work at two times differ by up to 1.5 % on an idle H200: 484 pairs of copies of equal size in
 * graphs, in h200-peers.json of tests/results. Each side has a share of it, as squares. */
static const double RUNS_DIFFER = 0.01;

/* The same for steady times, from which is taken what makes samples scatter, the host's speed at the moment. With it,
 * and with what the samples say, the intervals of 247 of 250 pairs contain 1, which are of two sweeps of one build on
 * an H200. */
static const double STEADY_RUNS_DIFFER = 0.03;

/* Half the width of an interval of the logarithm, for what samples of one run do not show: they were taken within
 * seconds, and what lasts longer hits all of them (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM
 * 2013: runs have to be repeated). A file has one run only. The scatter of its samples tells how much the machine
 * disturbs them, so the median of another run is taken to be up to one spread away. tools/bench/README.md has the
 * measurements behind this. */
static double between_runs(const compare_time *us) {
    return us->is_steady ? STEADY_RUNS_DIFFER : hypot(RUNS_DIFFER, log1p(us->spread));
}

/* The distance of the ratio's bound from the ratio, as logarithms, from those of both medians' bounds. If they are
 * independent, the distances add as squares, for each side by itself: the method of variance estimates recovery (Zou
 * and Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008), here for the
 * difference of logarithms. Sums instead ([new low / old high, new high / old low]) would make it a 99 % interval. */
static double recover(double runs, double new_bound, double old_bound) {
    return hypot(runs, hypot(new_bound, old_bound));
}

/* `low` to `high` is the interval of the logarithm of the ratio, `band` that of the threshold. */
static compare_verdict judge(double low, double centre, double high, double band) {
    static const double wide = 3; /* thresholds: an interval beyond them is too wide for "same" */
    const int contains_1 = low <= 0 && high >= 0;
    if (low >= -band && high <= band)
        return COMPARE_SAME;
    if (contains_1 && fabs(centre) <= band && low >= -wide * band && high <= wide * band)
        return COMPARE_SAME;
    if (contains_1 || fabs(centre) <= band)
        return COMPARE_UNSURE;
    return centre > 0 ? COMPARE_SLOWER : COMPARE_FASTER;
}

/* The drift is no scatter: it comes on top. */
compare_ratio compare_times(const compare_time *old, const compare_time *new, const compare_rule *rule) {
    const double centre = log(new->median / old->median), drift = log1p(rule->drift);
    const double runs = hypot(between_runs(old), between_runs(new));
    const double low = centre - drift - recover(runs, log(new->median / new->low), log(old->high / old->median));
    const double high = centre + drift + recover(runs, log(new->high / new->median), log(old->median / old->low));
    compare_ratio r = {exp(centre), exp(low),      exp(high), judge(low, centre, high, log1p(rule->threshold)),
                       NULL,        old->is_steady};
    if (!old->bounded || !new->bounded)
        r.why = "fewer than 6 samples bound no median with 95 %";
    else if ((old->doubtful || new->doubtful) && (r.verdict == COMPARE_SLOWER || r.verdict == COMPARE_FASTER))
        r.why = "the machine was slower than before";
    if (r.why)
        r.verdict = COMPARE_UNSURE;
    return r;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* What tells a row from others. Properties of the kernel are not here, because a build may change them; bytes and
 * results are, because they tell arrays with many results from others of one name. */
static const char *const identity_keys[] = {
    "subject", "strategy", "engine", "recursion", "size", "input", "rank",   "cutoff", "threads", "nested",  "segments",
    "axes",    "op",       "dtype",  "count",     "mode", "cache", "memory", "block",  "depth",   "results", "bytes"};
enum { IDENTITY_KEYS = sizeof identity_keys / sizeof *identity_keys, IDENTITY_TEXT = 4096 };

static const cJSON *member(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static int out_of_memory(char why[COMPARE_WHY]) {
    snprintf(why, COMPARE_WHY, "memory has run out");
    return -1;
}

/* The list of a document's rows; those of `dpr recurse` are engines. NULL if it has none. */
static const cJSON *rows_of(const cJSON *document) {
    const cJSON *rows = member(document, "rows"), *engines = member(document, "engines");
    return cJSON_IsArray(rows) ? rows : cJSON_IsArray(engines) ? engines : NULL;
}

/* A document of one recursion says which it is, and how it was asked for; its rows, of engines, do not. */
static const cJSON *member_of_row(const cJSON *document, const cJSON *row, const char *key) {
    static const char *const common[] = {"recursion", "size", "input", "rank", "cutoff", "threads", "nested"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(key, common[i]) == 0)
            return member(document, key);
    return member(row, key);
}

static int is_whole(const cJSON *item) {
    return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 18446744073709551616.0
           && item->valuedouble == floor(item->valuedouble);
}

/* Takes a member to the row's identity, if it is there. 0, or -1 with a clause in `why`. */
static int take_identity(cJSON *identity, const cJSON *item, const char *key, char why[COMPARE_WHY]) {
    char digits[32];
    if (!item)
        return 0;
    if (is_whole(item)) {
        snprintf(digits, sizeof digits, "%.0f", item->valuedouble);
        cli_json_add(identity, key, cli_json_digits(digits));
    } else if (cJSON_IsString(item) && strlen(item->valuestring) < IDENTITY_TEXT) {
        cJSON_AddStringToObject(identity, key, item->valuestring);
    } else {
        snprintf(why, COMPARE_WHY, "its '%s' is neither a text of less than %d bytes nor a whole number", key,
                 IDENTITY_TEXT);
        return -1;
    }
    return 0;
}

/* The row's identity; of the planner's choice with `choice`. The strategy behind a subject that has a name of its own
 * is the planner's choice, which may change. 0, or -1 with a clause in `why`. */
static int read_identity(compare_row *row, const cJSON *document, const cJSON *json, const char *choice,
                         char why[COMPARE_WHY]) {
    row->identity = cJSON_CreateObject();
    row->choice = choice;
    for (size_t i = 0; i < IDENTITY_KEYS; i++) {
        const char *key = identity_keys[i];
        const int is_strategy = strcmp(key, "strategy") == 0;
        if (is_strategy && choice)
            cJSON_AddStringToObject(row->identity, key, COMPARE_CHOICE);
        else if (!(is_strategy && member(json, "subject"))
                 && take_identity(row->identity, member_of_row(document, json, key), key, why) != 0)
            return -1;
    }
    row->key = cJSON_PrintUnformatted(row->identity);
    return row->key ? 0 : out_of_memory(why);
}

/* A member that is true or false, or `other` if there is none. 0, or -1 with a clause in `why`. */
static int read_truth(const cJSON *row, const char *key, int other, int *out, char why[COMPARE_WHY]) {
    const cJSON *item = member(row, key);
    *out = item ? cJSON_IsTrue(item) : other;
    if (!item || cJSON_IsBool(item))
        return 0;
    snprintf(why, COMPARE_WHY, "its '%s' is neither true nor false", key);
    return -1;
}

/* A finite number that is more than 0, or with `zero` at least 0. 0, or -1 with a clause in `why`. */
static int read_positive(const cJSON *row, const char *key, int zero, double *out, char why[COMPARE_WHY]) {
    const cJSON *item = member(row, key);
    const int is_number = cJSON_IsNumber(item) && isfinite(item->valuedouble);
    *out = is_number ? item->valuedouble : 0;
    if (is_number && (*out > 0 || (zero && *out == 0)))
        return 0;
    snprintf(why, COMPARE_WHY, "its '%s' is no finite number %s", key, zero ? "from 0 on" : "above 0");
    return -1;
}

/* A median and its interval, by the names of their members. */
static int read_median(const cJSON *json, const char *const keys[3], compare_time *us, char why[COMPARE_WHY]) {
    if (read_positive(json, keys[0], 0, &us->median, why) != 0 || read_positive(json, keys[1], 0, &us->low, why) != 0
        || read_positive(json, keys[2], 0, &us->high, why) != 0)
        return -1;
    if (us->low <= us->median && us->median <= us->high)
        return 0;
    snprintf(why, COMPARE_WHY, "its '%s' is not from '%s' to '%s'", keys[0], keys[1], keys[2]);
    return -1;
}

static int read_time(compare_row *row, const cJSON *json, char why[COMPARE_WHY]) {
    static const char *const measured[] = {"median_us", "low_us", "high_us"}, *const steady[] = {"steady_us",
                                                                                                 "steady_low_us",
                                                                                                 "steady_high_us"};
    static const int enough = 20; /* samples, which bound a median for certain */
    compare_time *us = &row->us;
    double samples = 0;
    if (read_median(json, measured, us, why) != 0 || read_positive(json, "spread", 1, &us->spread, why) != 0
        || read_positive(json, "samples", 0, &samples, why) != 0
        || read_truth(json, "settled", 1, &us->settled, why) != 0
        || read_truth(json, "doubtful", 0, &us->doubtful, why) != 0)
        return -1;
    us->bounded = bench_median_rank(samples < enough ? (int)samples : enough) > 0;
    row->steady = *us;
    row->steady.is_steady = member(json, steady[0]) != NULL;
    return row->steady.is_steady ? read_median(json, steady, &row->steady, why) : 0;
}

const char *compare_subject(const cJSON *row) {
    static const char *const keys[] = {"subject", "strategy", "engine"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (member(row, keys[i]))
            return cJSON_GetStringValue(member(row, keys[i]));
    return NULL;
}

/* Whether the row is of an engine that cannot run there, and has nothing to compare. */
static int is_unable(const cJSON *row) {
    return cJSON_IsTrue(member(row, "unable"));
}

/* Whether the row has a right result. An engine of `dpr recurse` that failed says nothing of it. */
static int read_ok(compare_row *row, const cJSON *json, char why[COMPARE_WHY]) {
    return member(json, "engine") ? read_truth(json, "right", 0, &row->ok, why)
                                  : read_truth(json, "ok", 1, &row->ok, why);
}

static int read_row(compare_row *row, const cJSON *document, const cJSON *json, char why[COMPARE_WHY]) {
    const int is_timed = member(json, "median_us") != NULL;
    if (!compare_subject(json)) {
        snprintf(why, COMPARE_WHY, "it is no object that names a 'strategy', a 'subject' or an 'engine'");
        return -1;
    }
    if (read_identity(row, document, json, NULL, why) != 0 || read_ok(row, json, why) != 0)
        return -1;
    if (!is_timed && row->ok) {
        snprintf(why, COMPARE_WHY, "it has no 'median_us'");
        return -1;
    }
    return is_timed ? read_time(row, json, why) : 0;
}

/* A second row for a strategy that is the planner's choice, if it is known by its own name alone. */
static int add_choice(compare_side *side, const cJSON *document, const cJSON *json, char why[COMPARE_WHY]) {
    const compare_row *row = &side->rows[side->count - 1];
    const char *strategy = cJSON_GetStringValue(member(json, "strategy"));
    if (!cJSON_IsTrue(member(json, "chosen")) || member(json, "subject") || !strategy)
        return 0;
    side->rows[side->count++] = (compare_row){.ok = row->ok, .us = row->us, .steady = row->steady};
    return read_identity(&side->rows[side->count - 1], document, json, strategy, why);
}

static int by_key(const void *a, const void *b) {
    const compare_row *x = *(compare_row *const *)a, *y = *(compare_row *const *)b;
    return strcmp(x->key, y->key);
}

/* Sorts the rows, of which no two may have the same identity. */
static int sort_rows(compare_side *side, char why[COMPARE_WHY]) {
    char name[COMPARE_NAME];
    side->sorted = malloc(side->count * sizeof(compare_row *));
    if (!side->sorted)
        return out_of_memory(why);
    for (size_t i = 0; i < side->count; i++)
        side->sorted[i] = &side->rows[i];
    qsort(side->sorted, side->count, sizeof(compare_row *), by_key);
    for (size_t i = 1; i < side->count; i++)
        if (by_key(&side->sorted[i - 1], &side->sorted[i]) == 0) {
            snprintf(why, COMPARE_WHY, "two rows are of %s", compare_name(side->sorted[i], name));
            return -1;
        }
    return 0;
}

static int read_rows(compare_side *side, const cJSON *document, char why[COMPARE_WHY]) {
    const cJSON *row = NULL;
    char clause[COMPARE_WHY] = "";
    cJSON_ArrayForEach(row, rows_of(document)) {
        if (is_unable(row))
            continue;
        side->in_file++;
        side->count++;
        if (read_row(&side->rows[side->count - 1], document, row, clause) != 0
            || add_choice(side, document, row, clause) != 0) {
            snprintf(why, COMPARE_WHY, "row %zu: %.400s", side->in_file, clause);
            return -1;
        }
    }
    return 0;
}

/* A file is a document, or a list of them, of which the first tells what machine and commit they are of. */
int compare_read(compare_side *side, char why[COMPARE_WHY]) {
    const int is_list = cJSON_IsArray(side->document);
    const cJSON *first = is_list ? side->document->child : side->document;
    size_t n = 0;
    for (const cJSON *d = first; d; d = is_list ? d->next : NULL)
        n += (size_t)cJSON_GetArraySize(rows_of(d));
    if (n == 0) {
        snprintf(why, COMPARE_WHY, "it has no list 'rows' or 'engines' with rows in it");
        return -1;
    }
    side->rows = calloc(2 * n, sizeof *side->rows);
    if (!side->rows)
        return out_of_memory(why);
    for (const cJSON *d = first; d; d = is_list ? d->next : NULL)
        if (read_rows(side, d, why) != 0)
            return -1;
    side->document = first;
    return cli_json_failed() ? out_of_memory(why) : sort_rows(side, why);
}

void compare_free_side(compare_side *side) {
    for (size_t i = 0; i < side->count; i++) {
        cJSON_Delete(side->rows[i].identity);
        cJSON_free(side->rows[i].key);
    }
    free(side->rows);
    free(side->sorted);
    side->rows = NULL;
    side->sorted = NULL;
    side->count = side->in_file = 0;
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(member(object, key));
    return text ? text : "";
}

/* Appends `before`, the member if the identity has it, and `after`. */
static void append(char text[COMPARE_NAME], const cJSON *identity, const char *before, const char *key,
                   const char *after) {
    const cJSON *item = member(identity, key);
    const size_t used = strlen(text);
    char elements[32];
    const char *shown = item ? item->valuestring : NULL; /* of numbers, too: their digits */
    if (shown && strcmp(key, "count") == 0)
        shown = figure_elements(strtoull(shown, NULL, 10), elements);
    if (shown)
        snprintf(text + used, COMPARE_NAME - used, "%s%s%s", before, shown, after);
}

const char *compare_name(const compare_row *row, char text[COMPARE_NAME]) {
    const cJSON *of = row->identity;
    snprintf(text, COMPARE_NAME, "%s", compare_subject(of));
    append(text, of, ", ", "recursion", "");
    append(text, of, " ", "size", "");
    append(text, of, " ", "input", "");
    append(text, of, ", rank ", "rank", "");
    append(text, of, ", cutoff ", "cutoff", "");
    append(text, of, ", ", "threads", " threads");
    append(text, of, ", nested launches ", "nested", "");
    append(text, of, ", ", "op", "");
    append(text, of, " of ", "dtype", "");
    append(text, of, ", ", "segments", "");
    append(text, of, ", ", "axes", "");
    append(text, of, ", ", "count", " elements");
    append(text, of, ", ", "bytes", " bytes");
    append(text, of, ", ", "mode", "");
    append(text, of, ", ", "cache", "");
    append(text, of, ", ", "memory", " memory");
    append(text, of, ", block ", "block", "");
    append(text, of, ", depth ", "depth", "");
    return text;
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------ */

/* Where the device limits a call, and not the host, its time changes less than that of a launch, and its steady time
 * the other way. Nobody knows which it is, so the smaller change counts; and if one is faster and the other slower, it
 * may be none. */
static compare_ratio compare_steadily(const compare_row *old, const compare_row *new, const compare_rule *rule) {
    const compare_rule of_host = {.threshold = rule->steady_threshold, .drift = rule->drift};
    const compare_ratio measured = compare_times(&old->us, &new->us, &of_host);
    const compare_ratio steady = compare_times(&old->steady, &new->steady, &of_host);
    compare_ratio r = fabs(log(steady.ratio)) < fabs(log(measured.ratio)) ? steady : measured;
    if ((measured.ratio < 1) == (steady.ratio < 1) || (r.verdict != COMPARE_FASTER && r.verdict != COMPARE_SLOWER))
        return r;
    r.verdict = COMPARE_UNSURE;
    r.why = "its steady time changed the other way";
    return r;
}

static compare_ratio compare_rows(const compare_row *old, const compare_row *new, const compare_rule *rule) {
    if (!new->ok)
        return (compare_ratio){.verdict = COMPARE_FAILED, .why = "it failed or gave a wrong result"};
    if (!old->ok)
        return (compare_ratio){.verdict = COMPARE_UNSURE, .why = "it failed or gave a wrong result in OLD"};
    return compare_has_steady(old, new) ? compare_steadily(old, new, rule) : compare_times(&old->us, &new->us, rule);
}

static const compare_row *find(const compare_side *side, const compare_row *like) {
    compare_row *const *found = bsearch(&like, side->sorted, side->count, sizeof(compare_row *), by_key);
    return found ? *found : NULL;
}

/* Whether the pair says nothing that other pairs do not say: the planner's choice where it did not change. */
static int is_idle(const compare_pair *p) {
    const char *old = p->old ? p->old->choice : NULL, *new = p->new ? p->new->choice : NULL;
    return (old || new) && (!old || !new || strcmp(old, new) == 0);
}

/* Whether the row of OLD was the planner's choice, and NEW has a choice for this case, which is compared with it. The
 * row of a choice follows that of its strategy. */
static int is_compared_as_choice(const compare_results *r, const compare_row *old) {
    const compare_row *next = old + 1;
    return next < r->old->rows + r->old->count && next->choice && find(r->new, next);
}

/* Compares the pair and counts it. *logs is the sum of the logarithms of ratios. */
static void count_pair(compare_results *r, compare_pair *p, double *logs) {
    if (!p->old || !p->new) {
        r->only_old += !p->new;
        r->lacking += !p->new && !is_compared_as_choice(r, p->old);
        r->only_new += !p->old;
        if (compare_has_verdict(p)) {
            p->ratio = (compare_ratio){.verdict = COMPARE_FAILED, .why = "only in NEW, and failed or wrong there"};
            r->verdicts[COMPARE_FAILED]++;
        }
        return;
    }
    p->ratio = compare_rows(p->old, p->new, &r->rule);
    r->verdicts[p->ratio.verdict]++;
    r->both += !p->new->choice;
    if (p->ratio.ratio <= 0)
        return;
    r->timed++;
    *logs += log(p->ratio.ratio);
    if (!r->worst || p->ratio.ratio > r->worst->ratio.ratio)
        r->worst = p;
}

static void add_pair(compare_results *r, const compare_row *old, const compare_row *new) {
    const compare_pair pair = {.old = old, .new = new};
    if (!is_idle(&pair))
        r->pairs[r->count++] = pair;
}

/* The greater of two rates over the other; 1 if one of them is not known, or makes no sense next to the other. */
static double factor_of(const cJSON *before, const cJSON *after) {
    static const double most = 1000; /* the clock and the memory of no device vary by as much */
    const double x = cJSON_IsNumber(before) ? before->valuedouble : 0;
    const double y = cJSON_IsNumber(after) ? after->valuedouble : 0;
    const double factor = x > 0 && y > 0 ? fmax(x, y) / fmin(x, y) : 1;
    return factor <= most ? factor : 1;
}

/* How much slower the machine was in one of the runs, by the rate that changed more. */
static double drift_of(const cJSON *old, const cJSON *new) {
    static const char *const rates[] = {"clock_mhz", "read_gb_per_s"};
    const char *device = text_of(member(old, "device"), "name");
    double drift = 0;
    for (size_t i = 0; i < 2 && strcmp(device, text_of(member(new, "device"), "name")) == 0; i++) {
        const cJSON *before = member(member(old, "reference"), rates[i]);
        const cJSON *after = member(member(new, "reference"), rates[i]);
        drift = fmax(drift, factor_of(before, after) - 1);
    }
    return drift;
}

int compare_match(const compare_side *old, const compare_side *new, const compare_rule *rule, compare_results *out) {
    double logs = 0;
    *out = (compare_results){.old = old, .new = new, .rule = *rule};
    out->rule.drift = drift_of(old->document, new->document);
    out->pairs = calloc(old->count + new->count, sizeof *out->pairs);
    if (!out->pairs)
        return -1;
    for (size_t i = 0; i < new->count; i++)
        add_pair(out, find(old, &new->rows[i]), &new->rows[i]);
    for (size_t i = 0; i < old->count; i++)
        if (!find(new, &old->rows[i]))
            add_pair(out, &old->rows[i], NULL);
    for (size_t i = 0; i < out->count; i++)
        count_pair(out, &out->pairs[i], &logs);
    out->mean = out->timed ? exp(logs / (double)out->timed) : 0;
    return 0;
}

void compare_free(compare_results *r) {
    free(r->pairs);
    *r = (compare_results){.old = NULL};
}

int compare_is_worse(const compare_results *r) {
    return r->verdicts[COMPARE_SLOWER] + r->verdicts[COMPARE_FAILED] > 0;
}

int compare_is_interrupted(const compare_side *side) {
    for (const cJSON *d = side->document; d; d = d->next)
        if (cJSON_IsTrue(member(d, "interrupted")))
            return 1;
    return 0;
}

const char *compare_lacks(const compare_results *r, char why[COMPARE_WHY]) {
    const size_t unsure = r->verdicts[COMPARE_UNSURE];
    size_t all = 0;
    for (size_t v = 0; v < COMPARE_VERDICTS; v++)
        all += r->verdicts[v];
    if (all == 0)
        snprintf(why, COMPARE_WHY, "no row of %.200s is in %.200s", r->new->name, r->old->name);
    else if (compare_is_interrupted(r->new))
        snprintf(why, COMPARE_WHY, "%.400s was interrupted", r->new->name);
    else if (r->lacking > 0)
        snprintf(why, COMPARE_WHY, "%.400s lacks %zu of %zu rows", r->new->name, r->lacking, r->old->in_file);
    else if (2 * unsure > all)
        snprintf(why, COMPARE_WHY, "%zu of %zu rows are unsure", unsure, all);
    else
        return NULL;
    return why;
}
