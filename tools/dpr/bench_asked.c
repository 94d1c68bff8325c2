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

int asked_take_block(bench_asked *a, const char *text) {
    uint64_t block;
    const int code = cli_count("block", text, &block);
    if (code != CLI_OK)
        return code;
    if (block < 32 || block > 1024 || (block & (block - 1)) != 0)
        return cli_usage("block '%s' is none of 32, 64, 128, 256, 512 and 1024", text);
    a->block = (int)block;
    return CLI_OK;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

void asked_catch_signals(bench_asked *a) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    a->stop = &interrupted;
}
