/* The public API on a GPU: memory of every kind, errors, plans, devices. Bodies skip where there is no GPU. */
#include "gpu_memory.h"
#include "gpu_strategies.h"
#include "lists.h"
#include "support.h"

enum { COUNT = 5000 };

static const dpr_memory all_kinds[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_DEVICE};

/* A context and arrays 1, 2, ... COUNT of I32 on device 0. */
typedef struct gpu_fixture {
    dpr_ctx *ctx;
    int32_t host[COUNT];
    int32_t *in;  /* device memory */
    int64_t *out; /* device memory */
} gpu_fixture;

static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2;

static void gpu_setup(void *state) {
    gpu_fixture *f = state;
    for (int i = 0; i < COUNT; i++)
        f->host[i] = i + 1;
    if (gpu_unavailable())
        return;
    f->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof f->host);
    f->out = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *f->out);
    ASSERT_THAT(f->in && f->out && gpu_copy(f->in, f->host, sizeof f->host), "%s", gpu_error());
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &f->ctx));
}

static void gpu_teardown(void *state) {
    gpu_fixture *f = state;
    dpr_ctx_destroy(f->ctx);
    if (f->in)
        gpu_free(DPR_MEMORY_DEVICE, f->in);
    if (f->out)
        gpu_free(DPR_MEMORY_DEVICE, f->out);
}

#define GPU_TEST(NAME) TEST_FIXTURE(Gpu, NAME, gpu_fixture, gpu_setup, gpu_teardown)

static int64_t fetch(const int64_t *device) {
    int64_t value = -1;
    EXPECT_TRUE(gpu_copy(&value, device, sizeof value));
    return value;
}

GPU_TEST(simple_call_takes_memory_of_every_kind) {
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(all_kinds); i++)
        for (size_t o = 0; o < LENGTH(all_kinds); o++) {
            int32_t *in = gpu_alloc(all_kinds[i], sizeof fixture->host);
            int64_t *out = gpu_alloc(all_kinds[o], sizeof *out), result = -1;
            if (EXPECT_THAT(in && out && gpu_copy(in, fixture->host, sizeof fixture->host), "%s", gpu_error())) {
                EXPECT_STATUS(DPR_OK, dpr_reduce(in, out, COUNT, DPR_I32, DPR_SUM));
                EXPECT_TRUE(gpu_copy(&result, out, sizeof result));
                EXPECT_THAT(result == expected_sum, "in memory %d, out memory %d: %lld, not %lld", (int)all_kinds[i],
                            (int)all_kinds[o], (long long)result, (long long)expected_sum);
            }
            gpu_free(all_kinds[i], in);
            gpu_free(all_kinds[o], out);
        }
    dpr_shutdown();
}

GPU_TEST(current_device_stays) {
    NEED_GPU();
    const int last = gpu_count() - 1;
    ASSERT_TRUE(gpu_use(last));
    EXPECT_STATUS(DPR_OK, dpr_reduce(fixture->in, fixture->out, COUNT, DPR_I32, DPR_SUM));
    EXPECT_STATUS(DPR_OK,
                  dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, COUNT, DPR_I32, DPR_SUM, NULL, NULL));
    EXPECT_EQ_I64(last, gpu_current());
    ASSERT_TRUE(gpu_use(0));
    EXPECT_EQ_I64(expected_sum, fetch(fixture->out));
    dpr_shutdown();
}

GPU_TEST(contexts_know_their_device) {
    NEED_GPU();
    EXPECT_EQ_I64(0, dpr_ctx_device(fixture->ctx));
    dpr_ctx *ctx = NULL;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_AUTO, &ctx));
    EXPECT_EQ_I64(gpu_current(), dpr_ctx_device(ctx));
    dpr_ctx_destroy(ctx);
    ctx = NULL;
    EXPECT_STATUS(DPR_ERR_NO_DEVICE, dpr_ctx_create(gpu_count(), &ctx));
    EXPECT_TRUE(ctx == NULL);
}

GPU_TEST(cpu_context_refuses_device_memory) {
    NEED_GPU();
    dpr_ctx *cpu = NULL;
    int64_t out = 77;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &cpu));
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce_ex(cpu, fixture->in, &out, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "in ");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce_ex(cpu, fixture->host, fixture->out, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "out ");
    EXPECT_EQ_I64(77, out);
    EXPECT_STATUS(DPR_OK, dpr_reduce_ex(cpu, fixture->host, &out, COUNT, DPR_I32, DPR_SUM, NULL));
    EXPECT_EQ_I64(expected_sum, out);
    dpr_ctx_destroy(cpu);
}

GPU_TEST(pageable_memory_is_out_of_reach_of_streams) {
    NEED_GPU();
    int64_t out = 77;
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_reduce_async(fixture->ctx, fixture->host, fixture->out, COUNT, DPR_I32, DPR_SUM, NULL, NULL));
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND,
                  dpr_reduce_async(fixture->ctx, fixture->in, &out, COUNT, DPR_I32, DPR_SUM, NULL, NULL));
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "flat.block";
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                  dpr_reduce_ex(fixture->ctx, fixture->host, &out, COUNT, DPR_I32, DPR_SUM, &options));
    options.strategy = "cpu.serial";
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE,
                  dpr_reduce_ex(fixture->ctx, fixture->in, &out, COUNT, DPR_I32, DPR_SUM, &options));
    EXPECT_EQ_I64(77, out);
}

GPU_TEST(freed_memory_is_refused) {
    NEED_GPU();
    const size_t size = (size_t)64 << 20; /* large enough that its addresses go back with it */
    int64_t out = 77;
    void *gone = gpu_alloc(DPR_MEMORY_DEVICE, size);
    ASSERT_THAT(gone != NULL, "%s", gpu_error());
    gpu_free(DPR_MEMORY_DEVICE, gone);
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce(gone, &out, size / 4, DPR_I32, DPR_SUM));
    EXPECT_CONTAINS(dpr_last_error(), "in is 0x");
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce(fixture->in, gone, COUNT, DPR_I32, DPR_SUM));
    EXPECT_CONTAINS(dpr_last_error(), "out is 0x");
    EXPECT_EQ_I64(77, out);
    EXPECT_STATUS(DPR_OK, dpr_reduce(fixture->in, &out, COUNT, DPR_I32, DPR_SUM));
    EXPECT_EQ_I64(expected_sum, out);
    dpr_shutdown();
}

GPU_TEST(memory_of_another_device_is_refused) {
    NEED_GPU();
    if (gpu_count() < 2)
        SKIP("needs two CUDA devices");
    ASSERT_TRUE(gpu_use(1));
    int64_t *far = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *far), host = 77;
    ASSERT_TRUE(far && gpu_copy(far, &host, sizeof host) && gpu_use(0));
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, dpr_reduce(fixture->in, far, COUNT, DPR_I32, DPR_SUM));
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE, dpr_reduce_ex(fixture->ctx, far, &host, 1, DPR_I64, DPR_SUM, NULL));
    EXPECT_STATUS(DPR_ERR_WRONG_DEVICE,
                  dpr_reduce_async(fixture->ctx, fixture->in, far, COUNT, DPR_I32, DPR_SUM, NULL, NULL));
    EXPECT_EQ_I64(77, fetch(far));
    EXPECT_EQ_I64(77, host);
    EXPECT_STATUS(DPR_OK, dpr_reduce(far, far, 1, DPR_I64, DPR_SUM)); /* in its own device, in place */
    EXPECT_EQ_I64(77, fetch(far));
    gpu_free(DPR_MEMORY_DEVICE, far);
    dpr_shutdown();
}

GPU_TEST(stream_of_another_device_is_refused) {
    NEED_GPU();
    if (gpu_count() < 2)
        SKIP("needs two CUDA devices");
    ASSERT_TRUE(gpu_use(1));
    dpr_stream far = gpu_stream_create();
    ASSERT_TRUE(far && gpu_use(0));
    for (size_t s = 0; s < gpu_strategy_count(); s++) {
        const int64_t canary = 77;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        ASSERT_TRUE(gpu_copy(fixture->out, &canary, sizeof canary));
        EXPECT_THAT(dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, COUNT, DPR_I32, DPR_SUM, &options, far)
                        == DPR_ERR_WRONG_DEVICE,
                    "%s: %s", options.strategy, dpr_last_error());
        EXPECT_EQ_I64(canary, fetch(fixture->out));
        EXPECT_STATUS(
            DPR_OK, dpr_reduce_async(fixture->ctx, fixture->in, fixture->out, COUNT, DPR_I32, DPR_SUM, &options, NULL));
        EXPECT_EQ_I64(expected_sum, fetch(fixture->out));
    }
    EXPECT_TRUE(gpu_use(1) && gpu_stream_destroy(far) && gpu_use(0));
}

GPU_TEST(result_may_overlap_the_input) {
    NEED_GPU();
    for (size_t s = 0; s < gpu_strategy_count(); s++) {
        int64_t host[COUNT];
        for (int i = 0; i < COUNT; i++)
            host[i] = i + 1;
        int64_t *both = gpu_alloc(DPR_MEMORY_DEVICE, sizeof host);
        ASSERT_TRUE(both && gpu_copy(both, host, sizeof host));
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, both, both, COUNT, DPR_I64, DPR_SUM, &options));
        EXPECT_EQ_I64(expected_sum, fetch(both));
        gpu_free(DPR_MEMORY_DEVICE, both);
    }
}

GPU_TEST(plans_run) {
    NEED_GPU();
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    for (size_t s = 0; s <= gpu_strategy_count(); s++) { /* the last without a name */
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        problem.options = &options;
        dpr_plan *plan = NULL;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
        if (options.strategy)
            EXPECT_EQ_STR(options.strategy, dpr_plan_strategy(plan));
        for (int again = 0; again < 3; again++) {
            const int64_t zero = 0;
            EXPECT_TRUE(gpu_copy(fixture->out, &zero, sizeof zero));
            EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, fixture->out, NULL));
            EXPECT_TRUE(gpu_stream_wait(NULL));
            EXPECT_EQ_I64(expected_sum, fetch(fixture->out));
        }
        char text[4096];
        size_t len = sizeof text;
        EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &len));
        EXPECT_CONTAINS(text, dpr_plan_strategy(plan));
        EXPECT_CONTAINS(text, "refused");
        dpr_plan_destroy(plan);
    }
}

GPU_TEST(plans_keep_their_initial_value) {
    NEED_GPU();
    int64_t init = 1000;
    dpr_options options = DPR_OPTIONS_INIT;
    options.init = &init;
    dpr_problem problem = DPR_PROBLEM_INIT;
    problem.dtype = DPR_I32;
    problem.count = COUNT;
    problem.options = &options;
    dpr_plan *plan = NULL;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    init = 5;
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, fixture->in, fixture->out, NULL));
    EXPECT_TRUE(gpu_stream_wait(NULL));
    EXPECT_EQ_I64(expected_sum + 1000, fetch(fixture->out));
    dpr_plan_destroy(plan);
}

static void expect_no_local_memory(const dpr_strategy *strategy, const dpr_key *key) {
    const dpr_kernel kernel = strategy->kernel(key);
    const void *const entries[] = {kernel.entry, kernel.others[0], kernel.others[1]};
    for (size_t i = 0; i < LENGTH(entries) && !kernel.module; i++) {
        const long bytes = entries[i] ? gpu_kernel_local_bytes(entries[i]) : 0;
        EXPECT_THAT(bytes == 0, "%s %s %s, NaN policy %d, kernel %zu: %ld bytes of local memory", strategy->name,
                    dpr_op_name(dpr_key_op(key)), dpr_dtype_name(dpr_key_dtype(key)), key->f.nan, i, bytes);
    }
}

/* The budget of every kernel for one result and for segments, as the code for this device has it. The runtime does not
 * know a module's kernels: check_kernels.cmake looks at those. */
TEST(Gpu, kernels_use_no_local_memory) {
    NEED_GPU();
    dpr_caps caps;
    ASSERT_STATUS(DPR_OK, dpr_caps_read(0, &caps));
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        for (int key_index = 0; key_index < DPR_OP_COUNT * DPR_DTYPE_COUNT * 2 * 2; key_index++) {
            dpr_key key = {.words = {0}};
            key.f.segments = key_index / 2 / DPR_DTYPE_COUNT / DPR_OP_COUNT != 0;
            key.f.op = (uint8_t)(key_index / 2 / DPR_DTYPE_COUNT % DPR_OP_COUNT);
            key.f.dtype = (uint8_t)(key_index / 2 % DPR_DTYPE_COUNT);
            key.f.nan = (uint8_t)(key_index % 2);
            key.f.in_memory = DPR_MEMORY_DEVICE;
            if (dpr_strategies[i]->side != DPR_ON_GPU || !dpr_supported(dpr_key_op(&key), dpr_key_dtype(&key))
                || dpr_refusal(dpr_strategies[i], &key, &caps))
                continue;
            expect_no_local_memory(dpr_strategies[i], &key);
        }
}

GPU_TEST(float_sums_have_the_same_bits_every_time) {
    NEED_GPU();
    enum { MANY = 3000017, TIMES = 20 };
    static float host[MANY];
    float *in = gpu_alloc(DPR_MEMORY_DEVICE, MANY * sizeof *in);
    ASSERT_TRUE(in != NULL);
    for (int i = 0; i < MANY; i++)
        host[i] = (float)(i % 1013) * 1.37e-3F - 0.5F;
    EXPECT_TRUE(gpu_copy(in, host, MANY * sizeof *in));
    for (size_t s = 0; s < gpu_strategy_count(); s++) {
        float first = 0, again = 0;
        dpr_options options = DPR_OPTIONS_INIT;
        options.strategy = gpu_strategy(s);
        if (!gpu_strategy_runs(s, DPR_SUM, DPR_F32))
            continue;
        EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, in, &first, MANY, DPR_F32, DPR_SUM, &options));
        for (int i = 0; i < TIMES && !test_failed(); i++) {
            EXPECT_STATUS(DPR_OK, dpr_reduce_ex(fixture->ctx, in, &again, MANY, DPR_F32, DPR_SUM, &options));
            EXPECT_EQ_BYTES(&first, &again, sizeof first);
        }
    }
    gpu_free(DPR_MEMORY_DEVICE, in);
}
