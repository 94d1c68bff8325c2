#include "bench_nested.h"

#include <string.h>

#include "api/request.h"
#include "cli.h"
#include "cuda/device.h"
#include "lists.h"
#include "plan/registry.h"

/* ---- What is asked for ------------------------------------------------------------------------------------------ */

static int check(const bench_asked *a) {
    if (a->ladder)
        return cli_usage("--nested and --ladder are measured one at a time");
    if (a->device == DPR_DEVICE_CPU)
        return cli_usage("--nested is of a GPU's strategies: the CPU has none of them");
    if (!asked_is_cold_graph(a))
        return cli_usage("--nested is of calls in a graph with a cold cache: leave --mode and --cache out");
    if (axis_members(a->strategies))
        return cli_usage("--nested has all strategies with nested launches: leave --strategy out");
    if (axis_members(a->ops) > 1 || axis_members(a->dtypes) > 1)
        return cli_usage("--nested is of one operation and one type");
    if (a->counts.n > NESTED_SIZES)
        return cli_usage("--nested is of at most %d sizes, and --count has %d", NESTED_SIZES, a->counts.n);
    return CLI_OK;
}

/* What the library says of the pair and of the depth. */
static int check_problem(const bench_asked *a) {
    const int op = axis_first(a->ops), dtype = axis_first(a->dtypes);
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_request request;
    options.max_depth = a->depth;
    if (!dpr_supported((dpr_op)op, (dpr_dtype)dtype))
        return cli_usage("%s has no meaning for %s", dpr_ops[op].name, dpr_dtypes[dtype].name);
    if (dpr_request_make((dpr_op)op, (dpr_dtype)dtype, 1, &options, &request) != DPR_OK)
        return cli_usage("depth '%d': %s", a->depth, dpr_last_error());
    return CLI_OK;
}

int nested_complete(bench_asked *a) {
    static const uint64_t pools[] = {64, 512, 2048, 4096, 65536};
    const int code = check(a);
    if (code != CLI_OK)
        return code;
    if (a->counts.n == 0)
        a->counts = (axis_counts){.n = 2, .at = {UINT64_C(1) << 20, UINT64_C(1) << 24}};
    if (!axis_members(a->ops))
        a->ops[DPR_SUM] = 1;
    if (!axis_members(a->dtypes))
        a->dtypes[DPR_I32] = 1;
    a->modes[BENCH_GRAPH] = a->caches[BENCH_COLD] = 1;
    if (a->pool_count == 0) {
        a->pool_count = sizeof pools / sizeof pools[0];
        memcpy(a->pools, pools, sizeof pools);
    }
    return check_problem(a);
}

int nested_order(const dpr_strategy *out[NESTED_STRATEGIES]) {
    int n = 0;
    for (size_t i = 0; i < dpr_strategy_count() && n < NESTED_STRATEGIES; i++)
        if (dpr_strategies[i]->side == DPR_ON_GPU && dpr_strategies[i]->workspace_bytes)
            out[n++] = dpr_strategies[i];
    return n;
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

const bench_row *nested_row(const nested_results *n, int size, int strategy) {
    return results_find(&n->bench, &n->at[size], n->strategies[strategy]->name);
}

const bench_row *nested_choice(const nested_results *n, int size) {
    for (size_t i = 0; i < n->bench.row_count; i++)
        if (n->bench.rows[i].chosen && results_same_case(&n->bench.rows[i].at, &n->at[size]))
            return &n->bench.rows[i];
    return NULL;
}

const char *nested_why_none(const nested_results *n, int size) {
    const bench_results *r = &n->bench;
    for (size_t i = 0; i < r->omission_count; i++)
        if (results_same_case(&r->omissions[i].at, &n->at[size]))
            return r->omissions[i].why;
    return NULL;
}

const char *nested_why_not(const nested_results *n, int size, int strategy) {
    const char *none = nested_why_none(n, size);
    if (n->cells[size][strategy].refusal[0])
        return n->cells[size][strategy].refusal;
    if (none)
        return none;
    return n->bench.ended ? n->bench.ended : "it was not measured";
}

double nested_ratio(const nested_results *n, int size, const bench_row *row) {
    const bench_row *choice = nested_choice(n, size);
    if (!choice || !results_right(choice) || !results_right(row) || choice->us.median <= 0)
        return 0;
    return row->us.median / choice->us.median;
}
