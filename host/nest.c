/* Nests: what kernels of the caller's need for reductions of their own. */
#include "nest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ctx.h"
#include "error.h"
#include "slots.h"

static_assert(sizeof(dpr_nest_state) % 128 == 0 && sizeof(dpr_nest_slot) % 128 == 0,
              "slots lie behind the state, on lines of their own");

/* The launches that may be pending at a time: slots, of which the last words of the state's bits have none. */
static void set_free(dpr_nest_state *state, uint32_t launches) {
    for (uint32_t i = 0; i < launches; i++)
        state->free_slots[i / 32] |= 1u << i % 32;
}

static dpr_status make_memory(dpr_nest *nest) {
    const size_t bytes = sizeof(dpr_nest_state) + nest->launches * sizeof(dpr_nest_slot);
    dpr_nest_state *state = calloc(1, bytes);
    if (!state)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a nest");
    set_free(state, nest->launches);
    dpr_status status = dpr_device_upload(nest->device, state, bytes, &nest->memory);
    free(state);
    if (status != DPR_OK)
        return status;
    /* Kernels in streams that do not wait for the default one may use it next. */
    status = dpr_device_wait(nest->device);
    if (status != DPR_OK)
        dpr_device_free(nest->device, nest->memory);
    return status;
}

static void set_limits(dpr_nest *nest, int launches, uint32_t credits) {
    uint32_t most = credits < DPR_NEST_LAUNCHES ? credits : DPR_NEST_LAUNCHES;
    if (launches == DPR_NO_LAUNCHES)
        most = 0;
    else if (launches > 0 && (uint32_t)launches < most)
        most = (uint32_t)launches;
    nest->credits = credits;
    nest->launches = most;
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
    uint32_t credits = 0;
    dpr_status status = dpr_nest_launcher(ctx, &nest.launcher, &credits);
    if (status != DPR_OK)
        return status;
    set_limits(&nest, launches, credits);
    status = make_memory(&nest);
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
    return dpr_nest_collect(nest->device, &((dpr_nest_state *)nest->memory)->account, out);
}

void dpr_nest_destroy(dpr_nest *nest) {
    if (!nest)
        return;
    if (nest->memory)
        dpr_nest_free(nest->device, nest->memory);
    memset(nest, 0, sizeof *nest);
}
