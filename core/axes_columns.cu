#include "axes_forms.h"

#include "axes_tiles.cuh"
#include "family.cuh"

namespace dpr {
namespace {

template <class M> constexpr int unit_results = DPR_AXES_UNIT_RESULTS(sizeof(typename M::storage));

struct columns_blocks {
    template <class M> static constexpr int of = axes_blocks<M, unit_results<M>>;
};

struct columns_family {
    template <class M> static constexpr axes_entry entry() {
        constexpr int results = unit_results<M>;
        if constexpr (results > 1)
            return axes_kernel<M, results>;
        else
            return nullptr;
    }
};

using columns_instances = instances<columns_family, axes_entry>;

} // namespace

const void *dpr_axes_columns(const dpr_key *key) {
    return columns_instances::of(key);
}

int dpr_axes_columns_blocks(const dpr_key *key) {
    return columns_instances::number_of<columns_blocks>(key);
}

} // namespace dpr
