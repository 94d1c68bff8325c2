/* A recursion of a project's own, with an installed dpr: on the CPU, where every machine can run it. */
#include <dpr_recursion.cuh>

#include <cstdio>

namespace {

struct fib {
    using task = int32_t;
    using result = uint64_t;
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<fib> children) {
        if (n < 2)
            return 0;
        children[0] = n - 1;
        children[1] = n - 2;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &n) { return n; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<fib> results, int) {
        return results[0] + results[1];
    }
};

} // namespace

DPR_RECURSION(fib, fib)

int main() {
    dpr_ctx *ctx;
    const int32_t root = 25;
    uint64_t result = 0;
    dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    if (status == DPR_OK)
        status = fib_run(ctx, &root, 1, nullptr, &result, nullptr, nullptr, nullptr);
    if (status != DPR_OK) {
        std::fprintf(stderr, "%s\n", dpr_last_error());
        return 1;
    }
    dpr_ctx_destroy(ctx);
    std::printf("fib(%d) = %llu\n", root, static_cast<unsigned long long>(result));
    return result != 75025;
}
