#include "bench_asked.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_exact.h"

/* ---- Counts ----------------------------------------------------------------------------------------------------- */

static int add_count(axis_counts *c, uint64_t count) {
    if (c->n == AXIS_COUNTS)
        return cli_usage("there are more than %d counts", AXIS_COUNTS);
    c->at[c->n++] = count;
    return CLI_OK;
}

/* How a range goes on: by a factor above 1, or by an addend from 1. */
typedef struct stride {
    double factor; /* 0: by the addend */
    uint64_t addend;
} stride;

static int parse_stride(const char *text, stride *out) {
    char *end = "";
    *out = (stride){4, 0};
    if (!text)
        return CLI_OK;
    if (*text == '+') {
        out->factor = 0;
        const int code = cli_count(text + 1, &out->addend);
        return code == CLI_OK && out->addend == 0 ? cli_usage("a step of 0 goes nowhere") : code;
    }
    errno = 0;
    out->factor = *text == 'x' && isdigit((unsigned char)text[1]) ? strtod(text + 1, &end) : 0;
    if (out->factor <= 0 || *end || errno || !isfinite(out->factor))
        return cli_usage("'%s' is no step: use a factor such as x4, or an addend such as +1000", text);
    return out->factor > 1 ? CLI_OK : cli_usage("the factor '%s' must be more than 1", text);
}

/* Adds low, and what follows it up to high. The text of the factor is for messages. */
static int add_steps(axis_counts *c, uint64_t low, uint64_t high, stride s, const char *text) {
    enum { STEPS = 1 << 17 }; /* at most; small counts rise by less than 1 in many of them */
    for (int step = 0; step < STEPS; step++) {
        /* From the begin, so that rounding to whole numbers does not add up. A long double holds any count exactly. */
        const long double x = s.factor > 0 ? roundl((long double)low * powl((long double)s.factor, step))
                                           : (long double)low + (long double)s.addend * step;
        if (x > (long double)high)
            return CLI_OK;
        if (step > 0 && (uint64_t)x == c->at[c->n - 1])
            continue;
        const int code = add_count(c, (uint64_t)x);
        if (code != CLI_OK)
            return code;
    }
    return cli_usage("the factor '%s' is too close to 1", text);
}

static int add_range(axis_counts *c, const char *text) {
    char low_text[CLI_WORD], high_text[CLI_WORD];
    uint64_t low, high;
    stride s;
    int code = cli_next_word(&text, ':', low_text);
    if (code == CLI_OK)
        code = cli_next_word(&text, ':', high_text);
    if (code == CLI_OK)
        code = cli_count(low_text, &low);
    if (code == CLI_OK)
        code = cli_count(high_text, &high);
    if (code == CLI_OK)
        code = parse_stride(text, &s);
    if (code != CLI_OK)
        return code;
    if (low > high)
        return cli_usage("the range %s:%s goes down", low_text, high_text);
    if (low == 0 && s.factor > 0)
        return cli_usage("a range by a factor cannot begin at 0");
    return add_steps(c, low, high, s, text);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_once(axis_counts *c) {
    int kept = 0;
    qsort(c->at, (size_t)c->n, sizeof c->at[0], by_size);
    for (int i = 0; i < c->n; i++)
        if (kept == 0 || c->at[kept - 1] != c->at[i])
            c->at[kept++] = c->at[i];
    c->n = kept;
}

static int add_word(const char *word, void *out) {
    uint64_t count;
    if (strchr(word, ':'))
        return add_range(out, word);
    const int code = cli_count(word, &count);
    return code == CLI_OK ? add_count(out, count) : code;
}

int axis_parse_counts(const char *text, void *out) {
    axis_counts *counts = out;
    counts->n = 0;
    const int code = cli_each(text, add_word, counts);
    sort_once(counts);
    return code;
}

/* ---- Sets of names ---------------------------------------------------------------------------------------------- */

/* Whether the word stands for the name: it is the name, "all", or "PREFIX.*". */
static int matches(const char *word, const char *name) {
    const size_t length = strlen(word);
    if (strcmp(word, name) == 0 || strcmp(word, "all") == 0)
        return 1;
    return length > 2 && strcmp(word + length - 2, ".*") == 0 && strncmp(word, name, length - 1) == 0;
}

static int add_names(const char *word, void *out) {
    const axis_names *n = out;
    int found = 0;
    for (int i = 0; i < AXIS_SET && n->name((size_t)i); i++)
        if (matches(word, n->name((size_t)i))) {
            *n->set |= axis_one(i);
            found = 1;
        }
    if (found)
        return CLI_OK;
    return strstr(word, ".*") ? cli_usage("no name is of the family '%s'", word) : cli_unknown(word, n->name);
}

int axis_take_names(const char *text, void *names) {
    *((axis_names *)names)->set = 0;
    return cli_each(text, add_names, names);
}

/* ---- Times and shares ------------------------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* A finite number above 0 with one of the units, which end with the name NULL. 0 if it is none. */
static double positive(const char *text, const unit *units) {
    char *end = "";
    errno = 0;
    const double x = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : 0;
    while (units->name && strcmp(end, units->name) != 0)
        units++;
    return units->name && errno == 0 && isfinite(x) && x > 0 ? x * units->factor : 0;
}

int axis_parse_seconds(const char *text, void *out) {
    static const unit units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}, {NULL, 0}};
    *(double *)out = positive(text, units);
    return *(double *)out > 0 ? CLI_OK : cli_usage("'%s' is no time such as 60s, 5m or 500ms", text);
}

int axis_parse_share(const char *text, void *out) {
    static const unit units[] = {{"", 0.01}, {"%", 0.01}, {NULL, 0}};
    const double share = *(double *)out = positive(text, units);
    return share > 0 && share <= 1 ? CLI_OK : cli_usage("'%s' is no share such as 1%% or 0.5%%", text);
}

/* ---- Operations ------------------------------------------------------------------------------------------------- */

int axis_add_ops(axis_ops *a, const bench_ops *ops) {
    int i = 0;
    while (i < a->n && !ops_same(&a->at[i], ops))
        i++;
    if (i == AXIS_SET)
        return cli_usage("there are more than %d operations and sets of them", AXIS_SET);
    a->at[i] = *ops;
    a->n += i == a->n;
    return CLI_OK;
}

static int add_all_ops(axis_ops *a) {
    int code = CLI_OK;
    for (size_t i = 0; i < dpr_op_count() && code == CLI_OK; i++) {
        const bench_ops one = ops_of(dpr_op_at(i));
        code = axis_add_ops(a, &one);
    }
    return code;
}

static int add_ops(const char *word, void *out) {
    bench_ops ops;
    if (strcmp(word, "all") == 0)
        return add_all_ops(out);
    const int code = ops_parse(word, &ops);
    return code == CLI_OK ? axis_add_ops(out, &ops) : code;
}

int asked_take_ops(const char *text, void *out) {
    ((axis_ops *)out)->n = 0;
    return cli_each(text, add_ops, out);
}

void asked_default_op(axis_ops *a) {
    const bench_ops sum = ops_of(DPR_SUM);
    if (a->n == 0)
        (void)axis_add_ops(a, &sum);
}

/* ---- Arrays with many results ----------------------------------------------------------------------------------- */

static const dpr_dtype offset_types[] = {DPR_I32, DPR_U32, DPR_I64, DPR_U64};

static const char *offset_type_name(size_t i) {
    return i < sizeof offset_types / sizeof *offset_types ? dpr_dtype_name(offset_types[i]) : NULL;
}

int asked_take_offsets(const char *text, void *out) {
    int i;
    const int code = cli_choice(text, offset_type_name, &i);
    if (code == CLI_OK)
        *(dpr_dtype *)out = offset_types[i];
    return code;
}

const bench_shape *asked_shape(const bench_asked *a, int i) {
    const int of_axes = i - a->segments.n;
    if (of_axes < 0)
        return &a->segments.at[i];
    return of_axes < a->axes.n ? &a->axes.at[of_axes] : NULL;
}

const char *asked_shape_option(const bench_asked *a) {
    return a->segments.n ? "--segments" : a->axes.n ? "--axes" : NULL;
}

int asked_check_shapes(const bench_asked *a) {
    const char *option = asked_shape_option(a);
    if (!option)
        return CLI_OK;
    if (a->segments.n && a->axes.n)
        return cli_usage("--segments and --axes are measured one at a time");
    int exact = a->ops.n == 0;
    for (int i = 0; i < a->ops.n; i++) {
        char text[OPS_TEXT];
        if (a->ops.at[i].n > 1)
            return cli_usage("%s is of single operations, and %s is a set", option, ops_name(&a->ops.at[i], text));
        exact |= exact_can(a->ops.at[i].at[0], DPR_I32);
    }
    return exact ? CLI_OK
                 : cli_usage("%s is of operations with exact results: sum, min, max, argmin, argmax, all, any, band, "
                             "bor, bxor, count, mean, minmax",
                             option);
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* "both", after the caches. */
static const char *cache_name(size_t i) {
    return i == BENCH_CACHES ? "both" : bench_cache_name(i);
}

int asked_take_caches(const char *text, void *out) {
    const axis_set both = axis_one(BENCH_CACHES);
    axis_set *caches = out;
    const int code = axis_take_names(text, &(axis_names){cache_name, caches});
    *caches = *caches & both ? both - 1 : *caches;
    return code;
}

int asked_take_strategies(const char *text, void *asked) {
    bench_asked *a = asked;
    a->strategies_named = strcmp(text, "all") != 0;
    return axis_take_names(text, &(axis_names){dpr_strategy_name, &a->strategies});
}

/* The device has the upper limit, and memory. */
int asked_take_pools(const char *text, void *out) {
    static const uint64_t least = 16, most = UINT64_C(1) << 24;
    const axis_counts *pools = out;
    const int code = axis_parse_counts(text, out);
    if (code != CLI_OK)
        return code;
    if (pools->at[0] < least || pools->at[pools->n - 1] > most)
        return cli_usage("'%s' is not from %llu to %llu launches", text, (unsigned long long)least,
                         (unsigned long long)most);
    return pools->n <= ASKED_POOLS ? CLI_OK : cli_usage("there are more than %d pools", ASKED_POOLS);
}

/* ---- The program ------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

void asked_catch_signals(bench_asked *a) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before;
        if (sigaction(signals[i], NULL, &before) == 0
            && before.sa_handler != SIG_IGN) /* by nohup, or by `&` in a shell */
            sigaction(signals[i], &action, NULL);
    }
    a->stop = &caught;
}

int asked_run(bench_asked *a, bench_results *results, int (*measure)(void *user), void *user) {
    int code = outfile_try(a->file);
    if (code != CLI_OK)
        return code;
    asked_catch_signals(a);
    results->is_partial = 1;
    code = measure(user);
    results->is_partial = 0;
    if (code != CLI_USAGE && results->device.name[0]) {
        int written = outfile_finish(a->file);
        if (written == CLI_OK && a->show)
            written = a->show(user);
        code = written != CLI_OK ? written : results->interrupted ? CLI_SIGNAL + *a->stop : code;
    } else {
        outfile_abandon(a->file);
    }
    results_free(results);
    return code;
}
