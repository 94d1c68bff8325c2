/* What engines of the GPU cost on the GPU at hand. */
#include "engines.h"
#include "plan/registry.h"

/* A sum of one number in a call that blocks is a launch, and the way of its answer to the host. On an H200 flat.block
 * takes 8.4 us for it (tests/results/h200-peers.json). */
static const double launch_on_h200 = 8.4e-6;

double dpr_engine_seconds_on(const dpr_machine *machine, double on_h200) {
    dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_F32), .in_memory = DPR_MEMORY_DEVICE}};
    const int sum = dpr_strategy_find("flat.block");
    int measured = 0;
    if (sum < 0)
        return on_h200;
    key.f.ops = UINT32_C(1) << key.f.op;
    const double launch = dpr_expect(dpr_strategies[sum], &key, machine, (dpr_size){1, 1}, &measured);
    return measured ? on_h200 * (launch / launch_on_h200) : on_h200;
}
