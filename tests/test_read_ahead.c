/* What a kernel of segments brings to L2 before the work ahead of it is done: all memory that it may read. */
#include "launch.h"
#include "lists.h"
#include "support.h"

enum { ELEMENTS = 5000, SEGMENTS = 700 };

typedef struct scene {
    dpr_segment_list list;
    dpr_run run;
    dpr_launch launch;
} scene;

static void expect_ahead(const scene *s, uint64_t elements, uint64_t begins, uint64_t ends) {
    dpr_run run = s->run;
    run.segments = &s->list;
    const dpr_segment_ahead ahead = dpr_segments_ahead(&s->launch, &run);
    EXPECT_EQ_U64(elements, ahead.elements);
    EXPECT_EQ_U64(begins, ahead.begins);
    EXPECT_EQ_U64(ends, ahead.ends);
}

static scene of_device_memory(void) {
    scene s = {.list = {.count = SEGMENTS, .dtype = DPR_I32, .on_device = 1},
               .run = {.count = ELEMENTS},
               .launch = {.blocks = 1}};
    s.run.key.f.dtype = DPR_ROW(DPR_F64);
    s.run.key.f.in_memory = DPR_MEMORY_DEVICE;
    return s;
}

TEST(ReadAhead, the_array_and_all_numbers) {
    scene s = of_device_memory();
    expect_ahead(&s, 8 * ELEMENTS, 4 * (SEGMENTS + 1), 0);
    s.list.dtype = DPR_U64;
    expect_ahead(&s, 8 * ELEMENTS, 8 * (SEGMENTS + 1), 0);
    s.run.key.f.ranges = 1;
    expect_ahead(&s, 8 * ELEMENTS, 8 * SEGMENTS, 8 * SEGMENTS);
}

TEST(ReadAhead, nothing_where_the_host_does_not_know_how_much) {
    const uint64_t count = 1;
    scene s = of_device_memory();
    s.list.device_count = &count;
    expect_ahead(&s, 0, 0, 0);
    s.list.device_count = NULL;
    s.run.device_count = &count;
    expect_ahead(&s, 0, 0, 0);
}

TEST(ReadAhead, nothing_from_other_memory) {
    scene s = of_device_memory();
    s.run.key.f.in_memory = DPR_MEMORY_PINNED;
    expect_ahead(&s, 0, 0, 0);
    s.run.key.f.in_memory = DPR_MEMORY_MANAGED;
    expect_ahead(&s, 0, 0, 0);
    s = of_device_memory();
    s.list.on_device = 0;
    expect_ahead(&s, 0, 0, 0);
}

/* Few blocks bring up to DPR_PREFETCH_OF_FEW bytes together. */
TEST(ReadAhead, no_more_than_the_blocks_share) {
    scene s = of_device_memory();
    const uint64_t numbers = 4 * (SEGMENTS + 1);
    s.run.count = (DPR_PREFETCH_OF_FEW - numbers) / 8;
    expect_ahead(&s, 8 * s.run.count, numbers, 0);
    s.run.count++;
    expect_ahead(&s, 0, 0, 0);
    s.launch.blocks = DPR_PREFETCH_OF_FEW / DPR_PREFETCH_BYTES + 1;
    expect_ahead(&s, 8 * s.run.count, numbers, 0);
    s.run.count += DPR_PREFETCH_BYTES / 8;
    expect_ahead(&s, 0, 0, 0);
}
