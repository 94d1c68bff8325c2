/* Nests: what the caller's own kernels need for reductions. */
#include "nest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "error.h"
#include "slots.h"

static_assert(sizeof(dpr_nest_state) % 128 == 0 && sizeof(dpr_nest_slot) % 128 == 0,
              "slots lie behind the state, on lines of their own");

static void set_free(uint32_t *bits, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        bits[i / 32] |= 1u << i % 32;
}

static dpr_status make_memory(const dpr_device *gpu, dpr_nest *nest) {
    const size_t prepared = sizeof(dpr_nest_state) + nest->launches * sizeof(dpr_nest_slot);
    const size_t queues = (size_t)DPR_NEST_QUEUES * DPR_NEST_QUEUE_CALLS * sizeof(dpr_nest_call);
    dpr_nest_state *state = calloc(1, prepared);
    if (!state)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a nest");
    set_free(state->free_slots, nest->launches);
    set_free(state->free_queues, DPR_NEST_QUEUES);
    const dpr_status status = dpr_device_upload(gpu, state, prepared, prepared + queues, &nest->memory);
    free(state);
    return status;
}

dpr_status dpr_nest_create(dpr_ctx *ctx, int launches, dpr_nest *out) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (launches < DPR_NO_LAUNCHES)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "launches is %d, and neither a number from 0 nor DPR_NO_LAUNCHES",
                        launches);
    if (!dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "ctx is a context of the CPU, and kernels need a GPU");
    dpr_nest nest = {.device = dpr_ctx_device(ctx)};
    size_t pending = 0;
    dpr_status status = dpr_nest_launcher(ctx, &nest.launcher, &pending);
    if (status != DPR_OK)
        return status;
    nest.launches = dpr_launches_of(pending < DPR_NEST_LAUNCHES ? pending : DPR_NEST_LAUNCHES, launches);
    status = make_memory(dpr_ctx_gpu(ctx), &nest);
    if (status == DPR_OK)
        *out = nest;
    return status;
}

dpr_status dpr_nest_report(const dpr_nest *nest, dpr_nested *out) {
    if (!nest)
        return dpr_fail(DPR_ERR_NULL_POINTER, "nest is NULL");
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (!nest->memory)
        return dpr_fail(DPR_ERR_NULL_POINTER, "nest->memory is NULL: the nest is not made, or was given back");
    return dpr_nest_collect(&((dpr_nest_state *)nest->memory)->account, out);
}

void dpr_nest_destroy(dpr_nest *nest) {
    if (!nest)
        return;
    if (nest->memory)
        dpr_nest_free(nest->memory);
    memset(nest, 0, sizeof *nest);
}
