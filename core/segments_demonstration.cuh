/* What demonstrations for segments share on the host. */
#ifndef DPR_CORE_SEGMENTS_DEMONSTRATION_CUH
#define DPR_CORE_SEGMENTS_DEMONSTRATION_CUH

#include "demonstration.cuh"
#include "segments_cost.h"

namespace dpr {

/* probe(), kernel() and limits() of a demonstration for segments. Form is as for demonstration<>; Form::of(key) returns
 * its kernel. */
template <class Form> struct of_segments : demonstration<Form, 1, INT32_MAX> {
    static const char *probe(const dpr_key *key, const dpr_caps *caps) {
        if (!key->f.segments)
            return "reduces segments alone";
        if (key->f.partial)
            return "writes no partial results";
        if (dpr_is_divided_sum(key))
            return "writes no means";
        return demonstration<Form, 1, INT32_MAX>::probe(key, caps);
    }
};

/* Launches the kernel with a block for each `of_block` of so many items, up to the limit. */
template <class Form>
int launch_for_segments(const dpr_run *run, uint64_t items, uint64_t of_block, dpr_segment_groups groups) {
    const uint64_t wanted = items / of_block + (items % of_block > 0),
                   most = static_cast<uint64_t>(run->limits.max_blocks);
    dpr_launch launch = {};
    launch.entry = Form::of(&run->key);
    launch.blocks = static_cast<unsigned>(std::clamp(wanted, uint64_t{1}, most));
    launch.threads = static_cast<unsigned>(run->limits.threads);
    return dpr_launch_segments(&launch, run, groups);
}

/* The cost of one that reads at `share` of the memory's rate, and takes `each` seconds more for every segment. Both are
 * estimates. */
inline dpr_cost segments_demonstration_cost(const dpr_key *key, const dpr_caps *caps, dpr_size size, double share,
                                            double each) {
    return {DPR_LAUNCH_SECONDS + 4e-6 + each * static_cast<double>(size.segments), dpr_segment_bytes(key, size),
            share * dpr_memory_rate(&caps->gpu)};
}

/* The table of a demonstration for segments. SCRATCH and WORKSPACE are its scratch_bytes and workspace_bytes. */
#define DPR_SEGMENTS_DEMONSTRATION(ID, NAME, FORM, SHARE, EACH, SCRATCH, WORKSPACE, TEXT)                              \
    extern "C" const dpr_strategy dpr_##ID;                                                                            \
    const dpr_strategy dpr_##ID = {                                                                                    \
        .name = NAME,                                                                                                  \
        .text = TEXT,                                                                                                  \
        .side = DPR_ON_GPU,                                                                                            \
        .role = DPR_ROLE_DEMONSTRATION,                                                                                \
        .takes_block = 1,                                                                                              \
        .segmented = 1,                                                                                                \
        .scratch_bytes = SCRATCH,                                                                                      \
        .probe = FORM::probe,                                                                                          \
        .cost = [](const dpr_key *key, const dpr_caps *caps,                                                           \
                   dpr_size size) { return dpr::segments_demonstration_cost(key, caps, size, SHARE, EACH); },          \
        .kernel = FORM::kernel,                                                                                        \
        .limits = FORM::limits,                                                                                        \
        .launch = FORM::launch,                                                                                        \
        .workspace_bytes = WORKSPACE,                                                                                  \
    };

} // namespace dpr

#endif
