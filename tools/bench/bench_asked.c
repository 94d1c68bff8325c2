#include "bench_asked.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The next of a range: more than `count`, or UINT64_MAX past the end of all numbers. */
static uint64_t after(uint64_t count, uint64_t low, int step, const stride *s) {
    if (s->factor <= 0)
        return UINT64_MAX - count > s->addend ? count + s->addend : UINT64_MAX;
    /* From the begin, so that rounding to whole numbers does not add up. */
    const double next = round((double)low * pow(s->factor, step));
    if (next >= 18446744073709551615.0)
        return UINT64_MAX;
    return (uint64_t)next > count ? (uint64_t)next : count;
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
    uint64_t at = low;
    for (int step = 1; at <= high; step++) {
        const uint64_t next = after(at, low, step, &s);
        if (next != at && (code = add_count(c, at)) != CLI_OK)
            return code;
        if (next == UINT64_MAX)
            break;
        at = next;
    }
    return CLI_OK;
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

int axis_parse_set(const char *text, const char *(*name)(size_t i), unsigned char in[AXIS_SET]) {
    char word[CLI_WORD];
    memset(in, 0, AXIS_SET);
    while (text) {
        int code = cli_next_word(&text, ',', word), found = 0;
        for (size_t i = 0; code == CLI_OK && i < AXIS_SET && name(i); i++)
            if (matches(word, name(i)))
                found = in[i] = 1;
        if (code == CLI_OK && !found)
            code = strstr(word, ".*") ? cli_usage("no name is of the family '%s'", word) : cli_unknown(word, name);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

int axis_members(const unsigned char in[AXIS_SET]) {
    int n = 0;
    for (int i = 0; i < AXIS_SET; i++)
        n += in[i];
    return n;
}

void axis_default(unsigned char in[AXIS_SET], int member) {
    in[member] |= (unsigned char)!axis_members(in);
}

int axis_first(const unsigned char in[AXIS_SET]) {
    int i = 0;
    while (i < AXIS_SET - 1 && !in[i])
        i++;
    return i;
}

/* ---- Times and shares ------------------------------------------------------------------------------------------- */

/* A finite number above 0 at the front of the text; *end is behind it. 0 if there is none. */
static double positive(const char *text, char **end) {
    errno = 0;
    const double x = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, end) : 0;
    return errno == 0 && isfinite(x) && x > 0 ? x : 0;
}

int axis_parse_seconds(const char *text, void *out) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end = "";
    const double x = positive(text, &end);
    for (size_t i = 0; x > 0 && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].name) == 0) {
            *(double *)out = x * units[i].seconds;
            return CLI_OK;
        }
    return cli_usage("'%s' is no time such as 60s, 5m or 500ms", text);
}

int axis_parse_share(const char *text, void *out) {
    char *end = "";
    const double x = positive(text, &end);
    if (x <= 0 || x > 100 || (*end && strcmp(end, "%") != 0))
        return cli_usage("'%s' is no share such as 1%% or 0.5%%", text);
    *(double *)out = x / 100;
    return CLI_OK;
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

int asked_take_ops(const char *text, void *in) {
    return axis_parse_set(text, cli_op_name, in);
}

int asked_take_dtypes(const char *text, void *in) {
    return axis_parse_set(text, cli_dtype_name, in);
}

int asked_take_modes(const char *text, void *in) {
    return axis_parse_set(text, bench_mode_name, in);
}

/* "both", after the caches. */
static const char *cache_name(size_t i) {
    return i == BENCH_CACHES ? "both" : bench_cache_name(i);
}

int asked_take_caches(const char *text, void *in) {
    unsigned char named[AXIS_SET], *caches = in;
    const int code = axis_parse_set(text, cache_name, named);
    for (int i = 0; code == CLI_OK && i < BENCH_CACHES; i++)
        caches[i] = named[i] | named[BENCH_CACHES];
    return code;
}

int asked_take_strategies(const char *text, void *asked) {
    bench_asked *a = asked;
    a->strategies_named = strcmp(text, "all") != 0;
    return axis_parse_set(text, dpr_strategy_name, a->strategies);
}

/* The device has the upper limit, and memory. */
static int add_pool(const char *word, void *asked) {
    static const uint64_t least = 16, most = UINT64_C(1) << 24;
    bench_asked *a = asked;
    uint64_t pool;
    const int code = cli_count(word, &pool);
    if (code != CLI_OK)
        return code;
    if (pool < least || pool > most)
        return cli_usage("'%s' is not from %llu to %llu launches", word, (unsigned long long)least,
                         (unsigned long long)most);
    if (a->pool_count == ASKED_POOLS)
        return cli_usage("there are more than %d pools", ASKED_POOLS);
    a->pools[a->pool_count++] = pool;
    return CLI_OK;
}

int asked_take_pools(const char *text, void *asked) {
    ((bench_asked *)asked)->pool_count = 0;
    return cli_each(text, add_pool, asked);
}

/* Whether nothing is asked for, or that alone. */
static int is_open_or(const unsigned char in[AXIS_SET], int only) {
    return !axis_members(in) || (axis_members(in) == 1 && in[only]);
}

int asked_is_cold_graph(const bench_asked *a) {
    return is_open_or(a->modes, BENCH_GRAPH) && is_open_or(a->caches, BENCH_COLD);
}

/* ---- The program ------------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

static void catch_signals(bench_asked *a) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    a->stop = &caught;
}

int asked_run(bench_asked *a, bench_results *results, int (*measure)(void *user), void *user) {
    int code = outfile_try(a->file);
    if (code != CLI_OK)
        return code;
    catch_signals(a);
    code = measure(user);
    if (code != CLI_USAGE && results->device.name[0]) {
        const int written = outfile_finish(a->file);
        code = written != CLI_OK ? written : results->interrupted ? CLI_SIGNAL + *a->stop : code;
    } else {
        outfile_abandon(a->file);
    }
    results_free(results);
    return code;
}
