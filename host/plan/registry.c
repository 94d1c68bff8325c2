#include "registry.h"

#include <assert.h>
#include <string.h>

#include "error.h"

static_assert(DPR_STRATEGY_COUNT < 64, "dpr_machine has a bit, and dpr_key one byte, for a strategy's number");

#define DPR_NONE(id)
#define DPR_DECLARE(id) extern const dpr_strategy dpr_##id;
#define DPR_ADDRESS(id) &dpr_##id,

#ifdef DPR_WITH_CUDA
DPR_STRATEGY_LIST(DPR_DECLARE, DPR_DECLARE)
const dpr_strategy *const dpr_strategies[DPR_STRATEGY_COUNT] = {DPR_STRATEGY_LIST(DPR_ADDRESS, DPR_ADDRESS)};
extern const dpr_hook DPR_HOOK;
extern const dpr_strategy dpr_partials, dpr_key_runs, dpr_key_reduce;
const dpr_build dpr_this_build = {&dpr_flat_block, &DPR_HOOK, &dpr_partials, &dpr_key_runs, &dpr_key_reduce};
#else
DPR_STRATEGY_LIST(DPR_DECLARE, DPR_NONE)
const dpr_build dpr_this_build = {NULL, NULL, NULL, NULL, NULL};
const dpr_strategy *const dpr_strategies[DPR_STRATEGY_COUNT] = {DPR_STRATEGY_LIST(DPR_ADDRESS, DPR_NONE)};
#endif

size_t dpr_strategy_count(void) {
    return DPR_STRATEGY_COUNT;
}
const char *dpr_strategy_name(size_t i) {
    return i < dpr_strategy_count() ? dpr_strategies[i]->name : NULL;
}
const char *dpr_strategy_text(size_t i) {
    return i < dpr_strategy_count() ? dpr_strategies[i]->text : NULL;
}

/* Names that strategies had before version 0.2.0. Callers may still use them. */
static const char *const former_names[][2] = {{"flat.lookback", "flat.lastblock"}, {"atomic.tls", "atomic.thread"}};

static const char *name_today(const char *name) {
    for (size_t i = 0; i < sizeof former_names / sizeof *former_names; i++) {
        if (strcmp(name, former_names[i][0]) == 0)
            return former_names[i][1];
    }
    return name;
}

int dpr_strategy_find(const char *name) {
    name = name_today(name);
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        if (strcmp(name, dpr_strategies[i]->name) == 0)
            return (int)i;
    }
    return -1;
}

dpr_status dpr_strategy_parse(const char *name, size_t *out) {
    if (!name || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", name ? "out" : "name");
    const int i = dpr_strategy_find(name);
    if (i < 0)
        return dpr_fail(DPR_ERR_UNKNOWN_STRATEGY, "name is \"%.64s\", and no strategy of this build has that name",
                        name);
    *out = (size_t)i;
    return DPR_OK;
}

size_t dpr_strategy_index(const dpr_strategy *strategy) {
    size_t i = 0;
    while (i + 1 < dpr_strategy_count() && dpr_strategies[i] != strategy)
        i++;
    return i;
}

dpr_status dpr_strategy_check(size_t i) {
    if (i < dpr_strategy_count())
        return DPR_OK;
    return dpr_fail(DPR_ERR_UNKNOWN_STRATEGY, "i is %zu, and this build has %zu strategies", i, dpr_strategy_count());
}

dpr_status dpr_strategy_describe(size_t i, dpr_strategy_info *out) {
    dpr_status status = dpr_check_out("out", out, "DPR_STRATEGY_INFO_INIT");
    if (status == DPR_OK)
        status = dpr_strategy_check(i);
    if (status != DPR_OK)
        return status;
    const dpr_strategy *s = dpr_strategies[i];
    dpr_strategy_info found = DPR_STRATEGY_INFO_INIT;
    found.role = s->role;
    found.on_gpu = s->side == DPR_ON_GPU;
    found.takes_block = s->takes_block;
    return dpr_fill_out(out, &found, sizeof found);
}

int dpr_strategy_width(void) {
    size_t width = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const size_t length = strlen(dpr_strategies[i]->name);
        width = length > width ? length : width;
    }
    return (int)width;
}
