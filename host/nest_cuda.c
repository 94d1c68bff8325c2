#include "nest.h"

#include "ctx.h"
#include "current.h"
#include "error.h"
#include "module.h"
#include "nested_host.h"
#include "nesting.h"

extern const dpr_strategy dpr_dp_tree;

/* Loads the module, which takes asking for one of its kernels. */
static dpr_status load(dpr_ctx *ctx) {
    const char *refusal = dpr_nested_refusal(&dpr_ctx_machine(ctx)->caps.gpu);
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "reductions from kernels do not work on device %d: %s",
                        dpr_ctx_device(ctx), refusal);
    const dpr_key key = {.f = {.op = DPR_SUM, .dtype = DPR_F32}};
    const dpr_kernel kernel = dpr_dp_tree.kernel(&key);
    dpr_residency unused;
    return dpr_device_resident(dpr_ctx_gpu(ctx), &kernel, &unused);
}

dpr_status dpr_nest_launcher(dpr_ctx *ctx, void **launcher, uint32_t *credits) {
    const dpr_status status = load(ctx);
    if (status != DPR_OK)
        return status;
    int previous;
    cudaError_t error = dpr_current_enter(dpr_ctx_device(ctx), &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    error = dpr_module_variable(&dpr_dp_module, "dpr_launcher", launcher);
    if (error == cudaSuccess)
        error = dpr_nesting_credits(credits);
    dpr_current_leave(dpr_ctx_device(ctx), previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "asking for the pool of pending launches");
    return DPR_OK;
}

dpr_status dpr_nest_collect(int ordinal, dpr_nested *account, dpr_nested *out) {
    int previous;
    dpr_nested found;
    cudaError_t error = dpr_current_enter(ordinal, &previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "cudaSetDevice");
    error = cudaMemcpy(&found, account, sizeof found, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(account, 0, sizeof *account, NULL);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(NULL);
    dpr_current_leave(ordinal, previous);
    if (error != cudaSuccess)
        return dpr_current_failed(error, "reading a nest's account");
    *out = found;
    return DPR_OK;
}

void dpr_nest_free(int ordinal, void *memory) {
    int previous;
    if (dpr_current_enter(ordinal, &previous) != cudaSuccess)
        return;
    const cudaError_t waited = cudaDeviceSynchronize();
    if (cudaFree(memory) != cudaSuccess || waited != cudaSuccess)
        (void)cudaGetLastError();
    dpr_current_leave(ordinal, previous);
}
