/* coop.grid: a cooperative launch. Every block stores its partial result in scratch memory. Then the grid synchronises
 * and each block folds as many partial results as it has threads, in as many rounds as it takes until one is left. */
#include "cost_link.h"
#include "meetings.h"

static const char *probe(const dpr_key *key, const dpr_caps *caps) {
    return caps->gpu.cooperative_launch ? dpr_meeting_probe(key, caps) : "needs cooperative launches";
}

static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 3.20e-6 : 2.70e-6; /* seconds in addition to reading, on an H200 */
    (void)caps;
    return (dpr_cost){.latency = DPR_LAUNCH_SECONDS + ends + dpr_last_look(key), .bytes = dpr_array_bytes(key, size)};
}

static int launch(const dpr_run *run) {
    dpr_launch launch = dpr_meeting_spread(run, DPR_MEET_IN_GRID);
    launch.cooperative = 1;
    return dpr_launch_run(&launch, run);
}

const dpr_strategy dpr_coop_grid = {
    .name = "coop.grid",
    .text = "all SMs read; the grid synchronises, and one block folds partial results",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost,
    .kernel = dpr_meeting_kernel,
    .limits = dpr_meeting_limits,
    .launch = launch,
};
