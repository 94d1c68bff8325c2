/* The scene of tests of calls with many results on the fake device: ones, and offsets of four segments of them. */
#ifndef DPR_TESTS_PARTS_SCENE_H
#define DPR_TESTS_PARTS_SCENE_H

#include "dpr.h"

enum { COUNT = 5000, SEGMENTS = 4, MOST_CALLS = 200 };

extern const int32_t parts_offsets[SEGMENTS + 1];
extern const int64_t parts_known[SEGMENTS];    /* sums of the segments */
extern const int64_t parts_canaries[SEGMENTS]; /* results before a run */

typedef struct parts_scene {
    dpr_ctx *ctx;
    int32_t *in, *offsets; /* ones, and offsets, in device memory */
    int64_t *out;          /* pinned memory */
    dpr_stream stream;
} parts_scene;

/* For TEST_FIXTURE(). */
void parts_open(void *state);
void parts_close(void *state);

/* A stream that nothing waits for, and a byte that work in it is to set. */
typedef struct parts_elsewhere {
    dpr_stream stream;
    unsigned char *byte; /* pinned memory */
} parts_elsewhere;
void parts_elsewhere_open(parts_elsewhere *e);
void parts_elsewhere_close(parts_elsewhere *e);

/* Enqueues that work; and whether nobody has waited for it. */
void parts_elsewhere_begin(parts_elsewhere *e);
int parts_elsewhere_is_left(const parts_elsewhere *e);

/* Lets each CUDA call of `run_once` fail in turn. A failed run leaves the results as they were, and the next run gives
 * `expected`. in_stream: results go to s->out, otherwise to pageable memory. */
void parts_fail_every_call(parts_scene *s, dpr_status (*run_once)(const parts_scene *, int64_t *),
                           const int64_t *expected, int in_stream);

#endif
