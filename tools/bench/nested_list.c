#include "nested.h"

static const struct {
    const char *name, *text;
} launches[] = {
#define LAUNCH_ENTRY(ID, name, text) {name, text},
    BENCH_LAUNCH_LIST(LAUNCH_ENTRY)};

const char *bench_launch_name(size_t launch) {
    return launch < BENCH_LAUNCHES ? launches[launch].name : NULL;
}

const char *bench_launch_text(size_t launch) {
    return launch < BENCH_LAUNCHES ? launches[launch].text : NULL;
}
