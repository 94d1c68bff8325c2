/* What engines of the GPU cost on the GPU at hand. */
#include "api/ctx.h"
#include "engines.h"

/* flat.block takes an H200 8.5 to 8.9 us for 1 to 4096 numbers (tests/results/h200-peers.json, sums of i32). */
static const double launch_on_h200 = 8.6e-6;

double dpr_engine_seconds_here(const dpr_recursion_call *call, double on_h200) {
    const double launch = dpr_ctx_machine(call->ctx)->launch_seconds;
    return launch > 0 ? on_h200 * (launch / launch_on_h200) : on_h200;
}
