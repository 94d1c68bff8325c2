/* A recursion of a project's own, with an installed dpr: on the CPU, and on a GPU where there is one. */
#include <dpr_recursion.cuh>

#include <cstdio>
#include <cstring>

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

static bool is(const char *engine, const char *name) {
    return std::strcmp(engine, name) == 0;
}

#ifdef __CUDACC__
static constexpr bool for_gpus = true;
#else
static constexpr bool for_gpus = false;
#endif
#ifdef __CUDACC_RDC__
static constexpr bool is_relocatable = true;
#else
static constexpr bool is_relocatable = false;
#endif

/* Whether the engine should run what this compiler makes of the policy, by the rules of dpr_recursion.cuh. */
static bool should_run(const char *engine, bool has_gpu) {
    if (is(engine, "cpu") || is(engine, "serial"))
        return true;
    const bool is_nested = is(engine, "level") || is(engine, "naive");
    return has_gpu && for_gpus && (is_relocatable || !is_nested);
}

/* Runs by the engine, NULL: by the one that the library chooses. */
static bool is_right(dpr_ctx *ctx, const char *engine, bool runs) {
    dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    const int32_t root = 25;
    uint64_t result = 0;
    options.engine = engine;
    const dpr_status status = fib_run(ctx, &root, 1, nullptr, &result, &options, &report, nullptr);
    if (status == DPR_OK)
        std::printf("fib(%d) by %s: %llu\n", root, report.engine, static_cast<unsigned long long>(result));
    else
        std::printf("%s: %s\n", engine ? engine : "the library's choice", dpr_last_error());
    if (!runs)
        return status == DPR_ERR_STRATEGY_UNABLE;
    return status == DPR_OK && result == 75025 && (!engine || is(engine, report.engine));
}

int main() {
    dpr_ctx *ctx;
    if (dpr_ctx_create(DPR_DEVICE_AUTO, &ctx) != DPR_OK) {
        std::fprintf(stderr, "%s\n", dpr_last_error());
        return 1;
    }
    const bool has_gpu = dpr_ctx_device(ctx) != DPR_DEVICE_CPU;
    int wrong = !is_right(ctx, nullptr, true);
    for (size_t i = 0; i < dpr_engine_count(); i++)
        wrong += !is_right(ctx, dpr_engine_name(i), should_run(dpr_engine_name(i), has_gpu));
    dpr_ctx_destroy(ctx);
    return wrong;
}
