#include <string.h>

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "parts_scene.h"
#include "support.h"

const int32_t parts_offsets[SEGMENTS + 1] = {0, 10, 10, 1000, COUNT};
const int64_t parts_known[SEGMENTS] = {10, 0, 990, COUNT - 1000}, parts_canaries[SEGMENTS] = {77, 77, 77, 77};

void parts_open(void *state) {
    parts_scene *s = state;
    int32_t ones[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof ones);
    s->offsets = gpu_alloc(DPR_MEMORY_DEVICE, sizeof parts_offsets);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof parts_known);
    s->stream = gpu_stream_create();
    ASSERT_TRUE(s->in && s->offsets && s->out && s->stream);
    ASSERT_TRUE(gpu_copy(s->in, ones, sizeof ones) && gpu_copy(s->offsets, parts_offsets, sizeof parts_offsets));
    memcpy(s->out, parts_canaries, sizeof parts_canaries);
}

void parts_close(void *state) {
    parts_scene *s = state;
    dpr_ctx_destroy(s->ctx);
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_DEVICE, s->offsets);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

void parts_elsewhere_open(parts_elsewhere *e) {
    e->stream = gpu_stream_create();
    e->byte = gpu_alloc(DPR_MEMORY_PINNED, 1);
    ASSERT_TRUE(e->stream && e->byte);
}

void parts_elsewhere_close(parts_elsewhere *e) {
    gpu_free(DPR_MEMORY_PINNED, e->byte);
    EXPECT_TRUE(gpu_stream_destroy(e->stream));
}

void parts_elsewhere_begin(parts_elsewhere *e) {
    EXPECT_TRUE(gpu_stream_wait(e->stream));
    *e->byte = 0;
    EXPECT_TRUE(gpu_fill_async(e->byte, 1, 1, e->stream));
}

int parts_elsewhere_is_left(const parts_elsewhere *e) {
    return *e->byte == 0;
}

void parts_fail_every_call(parts_scene *s, dpr_status (*run_once)(const parts_scene *, int64_t *),
                           const int64_t *expected, int in_stream) {
    int fail = 0, is_over = 0;
    while (!is_over && ++fail < MOST_CALLS && !test_failed()) {
        int64_t pageable[SEGMENTS];
        int64_t *results = in_stream ? s->out : pageable;
        memcpy(results, parts_canaries, sizeof parts_canaries);
        fake_fail_call(fail, cudaErrorUnknown);
        const dpr_status status = run_once(s, results);
        const char *failed = fake_failed_call();
        fake_fail_call(0, cudaSuccess);
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        is_over = failed == NULL;
        const int is_right = memcmp(results, status == DPR_OK ? expected : parts_canaries, sizeof parts_canaries) == 0
                             && (failed || status == DPR_OK);
        EXPECT_THAT(is_right, "call %d, %s: %s", fail, failed ? failed : "none", dpr_status_name(status));
        EXPECT_STATUS(DPR_OK, run_once(s, results));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && memcmp(results, expected, sizeof parts_canaries) == 0);
    }
    EXPECT_THAT(fail > 3 && fail < MOST_CALLS, "%d calls", fail);
}
