#include "bench_asked.h"

#include <string.h>

#include "timing.h"

static int take_value(bench_asked *a, char letter, const char *text) {
    switch (letter) {
    case 'd':
        return cli_device(text, &a->device);
    case 'b':
        return axis_parse_seconds("budget", text, &a->budget);
    case 'a':
        return axis_parse_share("accuracy", text, &a->accuracy);
    case 'f':
        return outfile_set_format(a->file, text);
    case 'O':
        a->file->name = text;
        return CLI_OK;
    case 'q':
        a->quiet = 1;
        return CLI_OK;
    default:
        a->commit = text;
        return CLI_OK;
    }
}

int asked_take(bench_asked *a, const cli_option *option, const char *text) {
    switch (option->letter) {
    case 'n':
        return axis_parse_counts(text, &a->counts);
    case 'o':
        return axis_parse_set("operation", text, cli_op_name, a->ops);
    case 't':
        return axis_parse_set("type", text, cli_dtype_name, a->dtypes);
    case 'm':
        return axis_parse_set("mode", text, bench_mode_name, a->modes);
    case 'c':
        return axis_parse_set("cache", text, bench_cache_name, a->caches);
    case 's':
        a->strategies_named = strcmp(text, "all") != 0;
        return axis_parse_set("strategy", text, cli_strategy_name, a->strategies);
    default:
        return take_value(a, option->letter, text);
    }
}

/* The device has the upper limit, and memory. */
static int add_pool(bench_asked *a, const char *word) {
    static const uint64_t least = 16, most = UINT64_C(1) << 24;
    uint64_t pool;
    const int code = cli_count("pool", word, &pool);
    if (code != CLI_OK)
        return code;
    if (pool < least || pool > most)
        return cli_usage("pool '%s' is not from %llu to %llu launches", word, (unsigned long long)least,
                         (unsigned long long)most);
    if (a->pool_count == ASKED_POOLS)
        return cli_usage("there are more than %d pools", ASKED_POOLS);
    a->pools[a->pool_count++] = pool;
    return CLI_OK;
}

int asked_take_pools(bench_asked *a, const char *text) {
    char word[32];
    int code = CLI_OK;
    a->pool_count = 0;
    for (const char *at = text; at && code == CLI_OK;) {
        const size_t length = strcspn(at, ",");
        if (length >= sizeof word)
            return cli_usage("pool '%s' is too long", at);
        memcpy(word, at, length);
        word[length] = 0;
        at = at[length] ? at + length + 1 : NULL;
        code = add_pool(a, word);
    }
    return code;
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
