#include "keys.h"

#include "cuda/device.h"
#include "registry.h"

const char *dpr_refuse_one_pass(const dpr_keys *keys, const dpr_key *key, const dpr_caps *caps, size_t count) {
    if (!caps->has_gpu)
        return "needs a GPU";
    if (!dpr_this_build.key_reduce)
        return "needs a build with CUDA";
    if (key->f.in_memory != DPR_MEMORY_DEVICE)
        return "needs all arrays in device memory";
    if (key->f.strategy != 0)
        return "another strategy is asked for by name";
    if (key->f.block != 0)
        return "a block size is asked for";
    if (key->f.effort == DPR_WISDOM_ONLY || key->f.effort == DPR_MEASURE)
        return "has no measured times, by which options->effort wants to decide";
    if (keys->device_count)
        return "needs the number of keys before the run, which device_count has";
    if (count > keys->room)
        return "needs room for as many runs as there are keys";
    if (count == 0)
        return "there is nothing to reduce";
    if (count > UINT32_MAX)
        return "takes fewer than 2^32 elements";
    return dpr_this_build.key_reduce->probe(key, caps);
}
