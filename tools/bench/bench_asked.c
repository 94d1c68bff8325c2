#include "bench_asked.h"

#include <string.h>

#include "timing.h"

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

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

void asked_catch_signals(bench_asked *a) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    a->stop = &caught;
}
