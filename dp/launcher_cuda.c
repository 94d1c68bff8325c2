#include "launcher.h"

#include "apart.h"
#include "api/ctx.h"
#include "cuda/home.h"
#include "cuda/module.h"
#include "error.h"
#include "nested_host.h"
#include "pending.h"

extern const dpr_strategy dpr_dp_tree;

/* Loads the module: that happens when one of its kernels is asked for. */
static dpr_status load(dpr_ctx *ctx) {
    const char *refusal = dpr_nested_refusal(&dpr_ctx_machine(ctx)->caps.gpu);
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "a launcher cannot be made for device %d: it %s", dpr_ctx_device(ctx),
                        refusal);
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_F32)}};
    const dpr_kernel kernel = dpr_dp_tree.kernel(&key);
    dpr_residence at = dpr_device_residence(dpr_ctx_gpu(ctx));
    dpr_residency unused;
    return dpr_device_resident(&at, &kernel, &unused);
}

/* Bytes of stack a thread: what the launched kernel itself uses, and at least as much for continuations
 * (dpr_nested.cuh). */
enum { LEAST_STACK = 1024 };

static dpr_status check_stack(int ordinal) {
    size_t stack = 0;
    int is_enough = 0;
    cudaError_t error = cudaDeviceGetLimit(&stack, cudaLimitStackSize);
    if (error == cudaSuccess)
        error = dpr_module_has_stack(&dpr_dp_module, &is_enough);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "asking for the stack of threads");
    if (stack < LEAST_STACK)
        return dpr_fail(
            DPR_ERR_STRATEGY_UNABLE,
            "reductions from kernels need %d bytes of stack a thread, and device %d gives %zu (cudaLimitStackSize)",
            LEAST_STACK, ordinal, stack);
    if (is_enough)
        return DPR_OK;
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                    "kernels cannot launch others on device %d, because it gives %zu bytes of stack a thread "
                    "(cudaLimitStackSize), and gave more when the code for nested launches was loaded",
                    ordinal, stack);
}

static dpr_status find_table(int ordinal, void **table, size_t *pending) {
    const dpr_status status = check_stack(ordinal);
    if (status != DPR_OK)
        return status;
    cudaError_t error = dpr_module_variable(&dpr_dp_module, "dpr_launch_table", table);
    if (error == cudaSuccess)
        error = dpr_pending_count(pending);
    return error == cudaSuccess ? DPR_OK : dpr_cuda_failed(error, "asking for the pool of pending launches");
}

dpr_status dpr_find_launch_table(dpr_ctx *ctx, void **table, size_t *pending) {
    dpr_visit visit;
    dpr_status status = load(ctx);
    if (status == DPR_OK)
        status = dpr_home_enter_relaxed(dpr_device_home_of(dpr_ctx_gpu(ctx)), &visit);
    if (status != DPR_OK)
        return status;
    status = find_table(dpr_ctx_device(ctx), table, pending);
    dpr_home_leave(&visit);
    if (status == DPR_OK)
        dpr_apart_nested_forever();
    return status;
}

/* Enters the CUDA context that the launcher's memory belongs to. */
static dpr_status enter(const void *memory, dpr_visit *visit) {
    dpr_place place;
    dpr_home home;
    dpr_status status = dpr_device_place(memory, "launcher->memory", &place);
    if (status == DPR_OK && place.memory != DPR_MEMORY_DEVICE)
        status = dpr_fail(DPR_ERR_MEMORY_KIND, "launcher->memory is %p, which is no device memory", memory);
    if (status == DPR_OK)
        status = dpr_device_home_owning(&place, &home);
    return status == DPR_OK ? dpr_home_enter_relaxed(&home, visit) : status;
}

static cudaError_t collect(dpr_launch_report *account, dpr_launch_report *found) {
    cudaError_t error = dpr_home_wait_for_legacy();
    if (error == cudaSuccess)
        error = dpr_home_copy_apart(found, account, sizeof *found);
    if (error == cudaSuccess)
        error = dpr_home_copy_apart(account, &(dpr_launch_report){0}, sizeof *account);
    return error;
}

dpr_status dpr_launcher_collect(dpr_launch_report *account, dpr_launch_report *out) {
    dpr_visit visit;
    dpr_launch_report found;
    const dpr_status status = enter(account, &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = collect(account, &found);
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_cuda_failed(error, "reading a launcher's account");
    *out = found;
    return DPR_OK;
}

void dpr_launcher_free(void *memory) {
    dpr_visit visit;
    if (enter(memory, &visit) != DPR_OK)
        return;
    if (cudaFree(memory) != cudaSuccess)
        (void)cudaGetLastError();
    dpr_home_leave(&visit);
}
