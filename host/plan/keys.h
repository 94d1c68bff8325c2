/* Calls by key: how the runs of equal keys are reduced. */
#ifndef DPR_HOST_PLAN_KEYS_H
#define DPR_HOST_PLAN_KEYS_H

#include "strategy.h"

typedef struct dpr_keys {
    dpr_dtype dtype;              /* of the keys; DPR_DTYPE_NONE: the problem has none */
    uint64_t room;                /* in runs */
    const uint64_t *device_count; /* as in dpr_reduce_by_key_async() */
} dpr_keys;

/* The most runs of `count` keys that have room, or that there can be. */
static inline uint64_t dpr_most_runs(const dpr_keys *keys, uint64_t count) {
    return keys->room < count ? keys->room : count;
}

/* Why the GPU does not find and reduce the runs of `count` keys in one pass (core/key_reduce.cu), or NULL if it does.
 * All arrays lie in key->f.in_memory, aligned to their elements. */
const char *dpr_refuse_one_pass(const dpr_keys *keys, const dpr_key *key, const dpr_caps *caps, size_t count);

#endif
