/* A context, an array and a place for its sum, on device 0. */
#ifndef DPR_TESTS_ONE_SUM_H
#define DPR_TESTS_ONE_SUM_H

#include "fake_cuda.h"
#include "gpu_memory.h"
#include "support.h"

enum { COUNT = 1000 };
static const int64_t expected_sum = (int64_t)COUNT * (COUNT + 1) / 2;

typedef struct one_sum {
    dpr_ctx *ctx;
    int32_t *in;  /* 1, 2, ... COUNT in device memory */
    int64_t *out; /* pinned memory */
} one_sum;

static inline void one_sum_open(one_sum *s) {
    int32_t host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, sizeof host);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->out);
    ASSERT_TRUE(s->in && s->out && gpu_copy(s->in, host, sizeof host));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static inline void one_sum_close(one_sum *s) {
    dpr_ctx_destroy(s->ctx);
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#endif
