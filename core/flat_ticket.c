/* flat.ticket: every block stores its partial result in scratch memory and takes a ticket; the block with the last one
 * folds them in a fixed order. A run takes one launch, and blocks may start in any order. */
#include "cost_link.h"
#include "meetings.h"

static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double ends = dpr_seeks_index(key) ? 2.20e-6 : 1.75e-6; /* seconds in addition to reading, on an H200 */
    (void)caps;
    return (dpr_cost){.latency = DPR_LAUNCH_SECONDS + ends + dpr_last_look(key), .bytes = dpr_array_bytes(key, size)};
}

static int launch(const dpr_run *run) {
    const dpr_launch launch = dpr_meeting_spread(run, DPR_MEET_BY_TICKET);
    return dpr_launch_run(&launch, run);
}

const dpr_strategy dpr_flat_ticket = {
    .name = "flat.ticket",
    .text = "all SMs read; the block that finishes last folds the partial results",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr_meeting_probe,
    .cost = cost,
    .kernel = dpr_meeting_kernel,
    .limits = dpr_meeting_limits,
    .launch = launch,
};
