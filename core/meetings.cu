#include "meetings.cuh"

namespace dpr {
namespace {

struct meetings_family {
    template <class M> static constexpr kernel_entry entry() { return meetings_kernel<M>; }
};

using strategy = block_per_sm<meetings_family, most_partials>;
static_assert(most_partials <= most_tickets(largest_small));

} // namespace
} // namespace dpr

const char *dpr_meeting_probe(const dpr_key *key, const dpr_caps *caps) {
    return dpr::strategy::probe(key, caps);
}

dpr_kernel dpr_meeting_kernel(const dpr_key *key) {
    return dpr::strategy::kernel(key);
}

dpr_launch_limits dpr_meeting_limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    return dpr::strategy::limits(key, caps, resident);
}

dpr_launch dpr_meeting_spread(const dpr_run *run, uint32_t meeting) {
    dpr_launch launch = dpr::strategy::spread(run);
    launch.meeting = meeting;
    return launch;
}
