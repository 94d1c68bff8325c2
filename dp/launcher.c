/* Launchers: what the caller's own kernels need for reductions. */
#include "launcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "api/request.h"
#include "error.h"
#include "launcher_memory.h"

static_assert(sizeof(dpr_launcher_state) % 128 == 0 && sizeof(dpr_launch_slot) % 128 == 0,
              "slots lie behind the state, on lines of their own");

static_assert(sizeof(dpr_launcher) == 40, "programs have it in their memory, whatever version of dpr.h they use");

static void set_free(uint32_t *bits, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        bits[i / 32] |= 1u << i % 32;
}

static dpr_status make_memory(const dpr_device *gpu, dpr_launcher *launcher) {
    const size_t prepared = sizeof(dpr_launcher_state) + launcher->launches * sizeof(dpr_launch_slot);
    const size_t queues = (size_t)DPR_LAUNCHER_QUEUES * DPR_LAUNCHER_QUEUE_CALLS * sizeof(dpr_waiting_call);
    dpr_launcher_state *state = calloc(1, prepared);
    if (!state)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a launcher");
    set_free(state->free_slots, launcher->launches);
    set_free(state->free_queues, DPR_LAUNCHER_QUEUES);
    const dpr_status status = dpr_device_upload(gpu, state, prepared, prepared + queues, &launcher->memory);
    free(state);
    return status;
}

dpr_status dpr_launcher_create(dpr_ctx *ctx, int launches, dpr_launcher *out) {
    if (!ctx)
        return dpr_fail(DPR_ERR_NULL_POINTER, "ctx is NULL");
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (launches < DPR_NO_LAUNCHES)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "launches is %d, and neither a number from 0 nor DPR_NO_LAUNCHES",
                        launches);
    if (!dpr_ctx_gpu(ctx))
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "ctx is a context of the CPU, and kernels need a GPU");
    dpr_launcher launcher = {.device = dpr_ctx_device(ctx), .version = DPR_LAUNCHER_VERSION};
    size_t pending = 0;
    dpr_status status = dpr_find_launch_table(ctx, &launcher.table, &pending);
    if (status != DPR_OK)
        return status;
    launcher.launches = dpr_launches_of(pending < DPR_LAUNCHER_LAUNCHES ? pending : DPR_LAUNCHER_LAUNCHES, launches);
    status = make_memory(dpr_ctx_gpu(ctx), &launcher);
    if (status == DPR_OK)
        *out = launcher;
    return status;
}

dpr_status dpr_launcher_report(const dpr_launcher *launcher, dpr_launch_report *out, size_t report_size) {
    dpr_launch_report found;
    size_t size = 0;
    if (!launcher)
        return dpr_fail(DPR_ERR_NULL_POINTER, "launcher is NULL");
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (!launcher->memory)
        return dpr_fail(DPR_ERR_NULL_POINTER, "launcher->memory is NULL: the launcher is not made, or was given back");
    if (launcher->version != DPR_LAUNCHER_VERSION)
        return dpr_fail(DPR_ERR_INVALID_OPTION,
                        "launcher->version is %u, and this library makes launchers of version %d", launcher->version,
                        DPR_LAUNCHER_VERSION);
    dpr_status status = dpr_request_report_size("report_size", report_size, &size);
    if (status == DPR_OK)
        status = dpr_launcher_collect(&((dpr_launcher_state *)launcher->memory)->account, &found);
    if (status != DPR_OK)
        return status;
    const size_t known = size < sizeof found ? size : sizeof found;
    memcpy(out, &found, known);
    memset((char *)out + known, 0, size - known);
    return DPR_OK;
}

void dpr_launcher_destroy(dpr_launcher *launcher) {
    if (!launcher)
        return;
    if (launcher->memory)
        dpr_launcher_free(launcher->memory);
    memset(launcher, 0, sizeof *launcher);
}
