/* The fake itself: what it notes, and what it does in which order. */

#include "cuda/driver.h"
#include "fake_cuda.h"
#include "gpu_memory.h"
#include "plan/registry.h"
#include "support.h"

TEST(FakeCuda, notes_violations) {
    ASSERT_TRUE(fake_violation() == NULL);
    ASSERT_TRUE(dpr_device_count() > 0);
    ASSERT_EQ_I64(cudaSuccess, cudaSetDevice(0));
    const CUlaunchConfig config = {.gridDimX = 1};
    int nothing = 0;
    void *arguments[] = {&nothing};
    EXPECT_TRUE(dpr_driver()->launch_kernel_ex(&config, (CUfunction)(void *)&nothing, arguments, NULL) != CUDA_SUCCESS);
    EXPECT_CONTAINS(fake_violation(), "no strategy");
    fake_forget_violation();
}

TEST(FakeCuda, fails_the_call_asked_for) {
    int device = -1;
    fake_fail_call(2, cudaErrorUnknown);
    EXPECT_EQ_I64(cudaSuccess, cudaGetDevice(&device));
    EXPECT_EQ_I64(0, device);
    device = -1;
    EXPECT_EQ_I64(cudaErrorUnknown, cudaGetDevice(&device));
    EXPECT_EQ_I64(-1, device);
    EXPECT_EQ_STR("cudaGetDevice", fake_failed_call());
    EXPECT_EQ_I64(cudaErrorUnknown, cudaGetLastError());
    EXPECT_EQ_I64(cudaSuccess, cudaGetDevice(&device));
    EXPECT_EQ_I64(3, fake_calls());
    fake_fail_call(0, cudaSuccess);
}

/* ---- Memory in stream order ---- */

typedef struct scene {
    cudaMemPool_t pool;
    cudaStream_t stream;
    int before; /* objects alive */
} scene;

static void scene_open(void *state) {
    scene *s = state;
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    ASSERT_EQ_I64(cudaSuccess, cudaSetDevice(0));
    s->before = fake_live_objects();
    s->stream = gpu_stream_create();
    ASSERT_EQ_I64(cudaSuccess, cudaMemPoolCreate(&s->pool, &properties));
    ASSERT_TRUE(s->stream != NULL);
}

static void scene_close(void *state) {
    scene *s = state;
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_EQ_I64(cudaSuccess, cudaMemPoolDestroy(s->pool));
    EXPECT_EQ_I64(s->before, fake_live_objects());
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define POOL_TEST(NAME) TEST_FIXTURE(FakeCuda, NAME, scene, scene_open, scene_close)

static void expect_violation(const char *part) {
    EXPECT_CONTAINS(fake_violation() ? fake_violation() : "", part);
    fake_forget_violation();
    (void)cudaGetLastError();
}

POOL_TEST(memory_goes_when_its_turn_comes) {
    int value = 7, out = 0;
    int *memory = NULL, *pinned = gpu_alloc(DPR_MEMORY_PINNED, sizeof *pinned);
    const int taken = fake_live_objects() + 1;
    ASSERT_EQ_I64(cudaSuccess,
                  cudaMallocFromPoolAsync((void **)&memory, sizeof *memory, fixture->pool, fixture->stream));
    EXPECT_EQ_I64(taken, fake_live_objects());
    EXPECT_TRUE(gpu_copy_async(memory, &value, sizeof value, fixture->stream));
    EXPECT_TRUE(gpu_copy_async(pinned, memory, sizeof value, fixture->stream));
    EXPECT_EQ_I64(cudaSuccess, cudaFreeAsync(memory, fixture->stream));
    EXPECT_EQ_I64(taken, fake_live_objects());
    EXPECT_EQ_I64(0, *pinned);
    value = 8; /* pageable memory was read by the call */
    EXPECT_TRUE(gpu_stream_wait(fixture->stream));
    EXPECT_EQ_I64(7, *pinned);
    EXPECT_EQ_I64(taken - 1, fake_live_objects());
    ASSERT_EQ_I64(cudaSuccess,
                  cudaMallocFromPoolAsync((void **)&memory, sizeof *memory, fixture->pool, fixture->stream));
    EXPECT_TRUE(gpu_copy_async(memory, pinned, sizeof value, fixture->stream));
    EXPECT_TRUE(gpu_copy_async(&out, memory, sizeof out, fixture->stream));
    EXPECT_EQ_I64(7, out); /* and is written by it */
    EXPECT_EQ_I64(cudaSuccess, cudaFreeAsync(memory, fixture->stream));
    EXPECT_TRUE(gpu_stream_wait(fixture->stream));
    gpu_free(DPR_MEMORY_PINNED, pinned);
}

POOL_TEST(memory_is_given_back_once) {
    void *memory = NULL;
    int local;
    ASSERT_EQ_I64(cudaSuccess, cudaMallocFromPoolAsync(&memory, 64, fixture->pool, fixture->stream));
    EXPECT_EQ_I64(cudaSuccess, cudaFreeAsync(memory, fixture->stream));
    EXPECT_TRUE(cudaFreeAsync(memory, fixture->stream) != cudaSuccess);
    expect_violation("or twice");
    EXPECT_TRUE(gpu_stream_wait(fixture->stream));
    EXPECT_TRUE(cudaFreeAsync(memory, fixture->stream) != cudaSuccess);
    expect_violation("no pool");
    EXPECT_TRUE(cudaFreeAsync(&local, fixture->stream) != cudaSuccess);
    expect_violation("no pool");
}

/* A wait that fails loses work, and no memory. */
POOL_TEST(lost_work_gives_its_memory_back) {
    void *memory = NULL;
    const int before = fake_live_objects();
    ASSERT_EQ_I64(cudaSuccess, cudaMallocFromPoolAsync(&memory, 64, fixture->pool, fixture->stream));
    EXPECT_EQ_I64(cudaSuccess, cudaFreeAsync(memory, fixture->stream));
    fake_fail_call(1, cudaErrorUnknown);
    EXPECT_TRUE(!gpu_stream_wait(fixture->stream));
    fake_fail_call(0, cudaSuccess);
    EXPECT_EQ_I64(before, fake_live_objects());
}

POOL_TEST(memory_is_not_captured) {
    void *memory = NULL, *before = NULL;
    ASSERT_EQ_I64(cudaSuccess, cudaMallocFromPoolAsync(&before, 64, fixture->pool, fixture->stream));
    EXPECT_TRUE(gpu_capture_begin(fixture->stream));
    EXPECT_TRUE(cudaMallocFromPoolAsync(&memory, 64, fixture->pool, fixture->stream) != cudaSuccess);
    expect_violation("being captured");
    EXPECT_TRUE(cudaFreeAsync(before, fixture->stream) != cudaSuccess);
    expect_violation("being captured");
    gpu_graph_destroy(gpu_capture_end(fixture->stream));
    EXPECT_EQ_I64(cudaSuccess, cudaFree(before)); /* which needs no order */
    EXPECT_EQ_I64(cudaErrorInvalidValue, cudaFree(before));
    (void)cudaGetLastError();
}

/* ---- Modules ---- */

static const dpr_strategy *strategy_named(const char *name) {
    const int i = dpr_strategy_find(name);
    return i < 0 ? NULL : dpr_strategies[i];
}

/* A launch of a kernel of dp.tree with arguments that are all 0. */
static CUresult launch(const void *kernel, CUlaunchAttribute *attribute) {
    unsigned char nothing[1024] = {0};
    void *arguments[] = {nothing};
    const CUlaunchConfig config = {.gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 512,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .attrs = attribute,
                                   .numAttrs = attribute != NULL};
    return dpr_driver()->launch_kernel_ex(&config, (CUfunction)(uintptr_t)kernel, arguments, NULL);
}

TEST(FakeCuda, notes_wrong_launches_of_kernels_of_modules) {
    const dpr_key key = {.f = {.op = DPR_ROW(DPR_SUM), .dtype = DPR_ROW(DPR_F32)}};
    const dpr_strategy *tree = strategy_named("dp.tree");
    ASSERT_TRUE(tree && dpr_device_count() > 0);
    ASSERT_EQ_I64(cudaSuccess, cudaSetDevice(0));
    const dpr_kernel declared = tree->kernel(&key);
    EXPECT_TRUE(launch(declared.entry, NULL) != CUDA_SUCCESS);
    expect_violation("nobody has asked it for");
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    const char copy[] = "dpr_tree_SUM_F32_0";
    EXPECT_TRUE(dpr_driver()->library_get_kernel(&kernel, (CUlibrary)(uintptr_t)declared.module->image, copy)
                != CUDA_SUCCESS);
    expect_violation("not loaded");
    ASSERT_EQ_I64(CUDA_SUCCESS,
                  dpr_driver()->library_load_data(&library, declared.module->image, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT_EQ_I64(1, fake_module_loads());
    ASSERT_EQ_I64(CUDA_SUCCESS, dpr_driver()->library_get_kernel(&kernel, library, copy));
    ASSERT_EQ_I64(CUDA_SUCCESS, dpr_driver()->kernel_get_function(&function, kernel));
    EXPECT_EQ_PTR(declared.entry, function);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {.programmaticStreamSerializationAllowed = 1}};
    EXPECT_TRUE(launch(function, &attribute) != CUDA_SUCCESS);
    expect_violation("before its end");
    attribute = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    EXPECT_TRUE(launch(function, &attribute) != CUDA_SUCCESS);
    expect_violation("cooperatively");
    EXPECT_TRUE(cudaGetFuncBySymbol(&function, declared.entry) != cudaSuccess);
    (void)cudaGetLastError();
}
