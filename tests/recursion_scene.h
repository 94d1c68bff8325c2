/* A context of the CPU, with what a run of a recursion takes and gives, for tests. */
#ifndef DPR_TESTS_RECURSION_SCENE_H
#define DPR_TESTS_RECURSION_SCENE_H

#include <dpr.h>

#include "support.h"

typedef struct scene {
    dpr_ctx *ctx;
    dpr_recursion_options options;
    dpr_recursion_report report;
} scene;

static inline scene begin(const char *engine) {
    const dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    const dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    scene s = {.options = options, .report = report};
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s.ctx));
    s.options.engine = engine;
    return s;
}

static inline void end(scene *s) {
    dpr_ctx_destroy(s->ctx);
}

#endif
