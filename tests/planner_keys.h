/* Keys of calls, for tests of the planner. */
#ifndef DPR_TESTS_PLANNER_KEYS_H
#define DPR_TESTS_PLANNER_KEYS_H

#include "lists.h"
#include "strategy.h"

/* Where the array lies, and whether the call is in a stream. */
static const struct place {
    const char *name;
    dpr_memory memory;
    int gpu_only;
} places[] = {
    {"host", DPR_MEMORY_HOST, 0},
    {"pinned", DPR_MEMORY_PINNED, 0},
    {"pinned-stream", DPR_MEMORY_PINNED, 1},
    {"managed", DPR_MEMORY_MANAGED, 0},
    {"managed-stream", DPR_MEMORY_MANAGED, 1},
    {"device", DPR_MEMORY_DEVICE, 0},
    {"device-stream", DPR_MEMORY_DEVICE, 1},
};

static inline dpr_key key_of(const struct place *place, dpr_op op, dpr_dtype dtype) {
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(op);
    key.f.dtype = DPR_ROW(dtype);
    key.f.in_memory = (uint8_t)place->memory;
    key.f.gpu_only = place->gpu_only & 1;
    return key;
}

#endif
