/* flat.twopass: every block stores its partial result in scratch memory. A second launch, of one block, starts while
 * the first is still running, waits for its end and folds the partial results. No block waits for another. */
#include "cost_link.h"
#include "meetings.h"

enum { FOLD_THREADS = 256 };

static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 2.10e-6 : 1.40e-6; /* seconds in addition to reading, on an H200 */
    (void)caps;
    return (dpr_cost){.latency = DPR_LAUNCH_SECONDS + ends + dpr_last_look(key), .bytes = dpr_array_bytes(key, size)};
}

static int launch(const dpr_run *run) {
    dpr_launch launch = dpr_meeting_spread(run, DPR_MEET_LATER);
    const int error = dpr_launch_run(&launch, run);
    if (error)
        return error;
    launch.meeting = DPR_MEET_NOW;
    launch.partials = launch.blocks;
    launch.blocks = 1;
    launch.threads = FOLD_THREADS;
    return dpr_launch_run(&launch, run);
}

const dpr_strategy dpr_flat_twopass = {
    .name = "flat.twopass",
    .text = "all SMs read; a second, dependent launch folds the partial results",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr_meeting_probe,
    .cost = cost,
    .kernel = dpr_meeting_kernel,
    .limits = dpr_meeting_limits,
    .launch = launch,
};
