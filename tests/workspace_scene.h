/* Runs of test.workspace on device 0, for tests on a GPU and on the fake runtime. */
#ifndef DPR_TESTS_WORKSPACE_SCENE_H
#define DPR_TESTS_WORKSPACE_SCENE_H

#include <stdlib.h>

#include "api/ctx.h"
#include "gpu_memory.h"
#include "support.h"
#include "workspace_strategy.h"

enum { WORKSPACE_MOST = 300001 };

typedef struct workspace_scene {
    dpr_ctx *ctx;
    int32_t *in;               /* 1, 2, ... WORKSPACE_MOST in device memory */
    int64_t *out;              /* pinned memory */
    dpr_launch_report *report; /* pinned memory */
    dpr_stream stream;
} workspace_scene;

static inline void workspace_scene_open(void *state) {
    workspace_scene *s = state;
    if (gpu_unavailable())
        return;
    int32_t *host = malloc(WORKSPACE_MOST * sizeof *host);
    ASSERT_TRUE(host != NULL);
    for (int i = 0; i < WORKSPACE_MOST; i++)
        host[i] = i + 1;
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, WORKSPACE_MOST * sizeof *s->in);
    s->out = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->out);
    s->report = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->report);
    s->stream = gpu_stream_create();
    EXPECT_TRUE(s->in && s->out && s->report && s->stream && gpu_copy(s->in, host, WORKSPACE_MOST * sizeof *host));
    free(host);
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static inline void workspace_scene_close(void *state) {
    workspace_scene *s = state;
    dpr_ctx_destroy(s->ctx);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    gpu_free(DPR_MEMORY_PINNED, s->report);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
}

/* The choice that the planner would make if the registry had the strategy. */
static inline dpr_choice workspace_choice(const dpr_machine *machine, dpr_memory memory) {
    dpr_choice choice = {.sms = (int)machine->caps.gpu.sm_count, .steps = 1};
    choice.key.f.op = DPR_ROW(DPR_SUM);
    choice.key.f.dtype = DPR_ROW(DPR_I32);
    choice.key.f.in_memory = (uint8_t)memory;
    choice.step[0] =
        (dpr_choice_step){SIZE_MAX, &test_workspace_strategy,
                          test_workspace_strategy.limits(&choice.key, &machine->caps, (dpr_residency){1, 0})};
    return choice;
}

static inline int64_t workspace_sum(size_t count) {
    return (int64_t)count * ((int64_t)count + 1) / 2;
}

/* Runs it for the first `count` elements: in the stream with the result in s->out, or, if `blocking`, through a mailbox
 * to *blocking. Both ways report to s->report. */
static inline dpr_status workspace_run(const workspace_scene *s, size_t count, int64_t *blocking) {
    const dpr_choice choice = workspace_choice(dpr_ctx_machine(s->ctx), DPR_MEMORY_DEVICE);
    const dpr_host_result result = {blocking, sizeof *blocking};
    dpr_run run = {.in = s->in, .out = s->out, .count = count, .key = choice.key};
    run.report = run.launch_report = s->report;
    if (!blocking)
        run.stream = s->stream;
    return dpr_ctx_run(s->ctx, &choice, &run, blocking ? &result : NULL);
}

#endif
