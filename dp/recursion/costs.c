/* What engines of the GPU cost on the GPU at hand. */
#include "engines.h"
#include "plan/registry.h"
#include "plan/wisdom.h"

/* A sum of few numbers in a call that blocks is a launch, and the way of its answer to the host. On an H200 flat.block
 * takes 8.5 to 8.9 us for 1 to 4096 numbers (tests/results/h200-peers.json, sums of i32). */
enum { FEW = 4096 };
static const double launch_on_h200 = 8.6e-6;

double dpr_engine_seconds_on(const dpr_machine *machine, double on_h200) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_I32), .in_memory = DPR_MEMORY_DEVICE}};
    const int sum = dpr_strategy_find("flat.block");
    if (sum < 0)
        return on_h200;
    const dpr_wise_curve known = dpr_wise_find(machine, dpr_strategies[sum], &key);
    if (known.n == 0 || known.time[0].count > FEW)
        return on_h200;
    return on_h200 * (1e-12 * (double)known.time[0].picoseconds / launch_on_h200);
}
