// Reduces from a kernel with an installed dpr, where there is a GPU; else sees that this is said.
#include <dpr_nested.cuh>

#include <cstdio>

__global__ void sum_rows(dpr_launcher launcher, const double *x, unsigned count, double *sums) {
    const unsigned from = threadIdx.x * count;
    dpr::nested_reduce<DPR_SUM, DPR_F64>(launcher, x + from, sums + threadIdx.x, count);
}

static int fail(const char *what) {
    std::fprintf(stderr, "%s: %s\n", what, dpr_last_error());
    return 1;
}

static int sums_are_right(const dpr_launcher &launcher) {
    double *memory = nullptr, sums[2] = {};
    const double x[6] = {1, 2, 4, 8, 16, 32};
    if (cudaMalloc(&memory, sizeof x + sizeof sums) != cudaSuccess
        || cudaMemcpy(memory, x, sizeof x, cudaMemcpyHostToDevice) != cudaSuccess)
        return 0;
    sum_rows<<<1, 2>>>(launcher, memory, 3, memory + 6);
    return cudaMemcpy(sums, memory + 6, sizeof sums, cudaMemcpyDeviceToHost) == cudaSuccess
           && cudaFree(memory) == cudaSuccess && sums[0] == 7 && sums[1] == 56;
}

int main() {
    dpr_ctx *ctx;
    dpr_launcher launcher;
    if (dpr_ctx_create(DPR_DEVICE_AUTO, &ctx) != DPR_OK)
        return fail("dpr_ctx_create");
    const dpr_status status = dpr_launcher_create(ctx, 0, &launcher);
    if (dpr_ctx_device(ctx) == DPR_DEVICE_CPU) {
        std::printf("%s\n", dpr_last_error());
        return status != DPR_ERR_STRATEGY_UNABLE;
    }
    if (status != DPR_OK)
        return fail("dpr_launcher_create");
    if (!sums_are_right(launcher))
        return fail("the sums are wrong, or CUDA has failed");
    dpr_launcher_destroy(&launcher);
    dpr_ctx_destroy(ctx);
    return 0;
}
