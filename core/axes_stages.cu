#include "axes_stages.h"

#include "axes.cuh"
#include "family.cuh"

namespace dpr {
namespace {

struct stages_family {
    template <class M> static constexpr axes_entry entry() { return axes_stages_kernel<M>; }
};

} // namespace

/* Blocks go on from tile to tile, so that copies of the next ones are under way: as many as the device holds. If it
 * holds fewer, the others start later. */
void dpr_axes_stages(const dpr_run *run, uint64_t tiles, dpr_launch *launch) {
    const int element = dpr_dtypes[run->key.f.dtype].size;
    const uint64_t most = static_cast<uint64_t>(run->sms) * static_cast<uint64_t>(axes_stage_blocks(element));
    launch->entry = instances<stages_family, axes_entry>::of(&run->key);
    launch->blocks = static_cast<unsigned>(tiles < most ? tiles : most);
    launch->shared_bytes = static_cast<int>(axes_stages * stage_bytes);
}

} // namespace dpr
