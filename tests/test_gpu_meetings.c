/* Meetings of blocks with accumulators of 1 KiB, and a reader of elements with gaps between them. */
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "gpu_memory.h"
#include "lists.h"
#include "meeting_kernels.h"
#include "reference.h"
#include "support.h"

enum { MOST_BYTES = 1 << 20, MOST_BLOCKS = 96 };

typedef struct scene {
    unsigned char *host, *device; /* the same MOST_BYTES bytes */
    unsigned char *scratch, *workspace;
    uint64_t *out;   /* pinned memory, for a partial result */
    uint64_t *count; /* device memory */
} scene;

static const unsigned char zeros[DPR_SCRATCH_BYTES];

static void scene_open(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    s->host = malloc(MOST_BYTES);
    s->device = gpu_alloc(DPR_MEMORY_DEVICE, MOST_BYTES);
    s->scratch = gpu_alloc(DPR_MEMORY_DEVICE, DPR_SCRATCH_BYTES);
    s->workspace = gpu_alloc(DPR_MEMORY_DEVICE, large_workspace(MOST_BLOCKS));
    s->out = gpu_alloc(DPR_MEMORY_PINNED, LARGE_PARTIAL_WORDS * sizeof *s->out);
    s->count = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *s->count);
    ASSERT_THAT(s->host && s->device && s->scratch && s->workspace && s->out && s->count, "%s", gpu_error());
    ASSERT_TRUE(gpu_copy(s->scratch, zeros, sizeof zeros));
    ASSERT_TRUE(gpu_repeat(s->workspace, large_workspace(MOST_BLOCKS), "\xa5", 1));
}

static void scene_close(void *state) {
    scene *s = state;
    free(s->host);
    if (gpu_unavailable())
        return;
    gpu_free(DPR_MEMORY_DEVICE, s->device);
    gpu_free(DPR_MEMORY_DEVICE, s->scratch);
    gpu_free(DPR_MEMORY_DEVICE, s->workspace);
    gpu_free(DPR_MEMORY_PINNED, s->out);
    gpu_free(DPR_MEMORY_DEVICE, s->count);
}

#define MEETINGS_TEST(NAME) TEST_FIXTURE(GpuMeetings, NAME, scene, scene_open, scene_close)

/* Every run leaves scratch memory zero. */
static void check_scratch(const scene *s) {
    unsigned char after[DPR_SCRATCH_BYTES];
    EXPECT_TRUE(gpu_copy(after, s->scratch, sizeof after) && memcmp(after, zeros, sizeof after) == 0);
}

/* ---- Accumulators of 1 KiB ---- */

static const char *const meeting_names[LARGE_MEETINGS] = {"lastblock", "ticket", "twopass", "grid", "cluster"};

/* Counts `count` bytes from byte `from` on. The kernel finds the number in device memory if `on_device`. */
static void check_counts(const scene *s, large_meeting meeting, size_t from, size_t count, unsigned blocks,
                         uint64_t label, int on_device) {
    const unsigned head = label ? DPR_PARTIAL_HEAD : 0;
    const uint64_t number = count;
    const dpr_run run = {.in = s->device + from,
                         .out = s->out,
                         .count = on_device ? MOST_BYTES - from : count,
                         .device_count = on_device ? s->count : NULL,
                         .key = {.f = {.dtype = DPR_ROW(DPR_U8)}},
                         .label = label,
                         .limits = {.cached_bytes = on_device ? MOST_BYTES : 0},
                         .scratch = s->scratch,
                         .workspace = s->workspace};
    uint64_t expected[LARGE_BINS] = {0};
    for (size_t i = 0; i < count; i++)
        expected[s->host[from + i] % LARGE_BINS]++;
    memset(s->out, 0xff, LARGE_PARTIAL_WORDS * sizeof *s->out);
    ASSERT_TRUE(gpu_copy(s->count, &number, sizeof number));
    const int error = large_count(meeting, &run, blocks);
    ASSERT_THAT(error == 0, "%s of %u blocks: CUDA error %d", meeting_names[meeting], blocks, error);
    ASSERT_THAT(gpu_stream_wait(NULL), "%s of %u blocks: %s", meeting_names[meeting], blocks, gpu_error());
    if (label)
        EXPECT_TRUE(s->out[0] == label && s->out[1] == count);
    EXPECT_THAT(memcmp(s->out + head, expected, sizeof expected) == 0,
                "%s of %u blocks, %zu bytes from byte %zu on: other counts than the host's", meeting_names[meeting],
                blocks, count, from);
    check_scratch(s);
}

static void check_meeting(const scene *s, large_meeting meeting) {
    static const size_t counts[] = {0, 1, 15, 16, 17, 4095, 65536, 300001, MOST_BYTES - 3};
    static const unsigned blocks[] = {8, 40, MOST_BLOCKS};
    const uint64_t label = UINT64_C(0x0123456789abcdef);
    const unsigned most = large_most_blocks(meeting) / 8 * 8;
    uint64_t seed = 1 + (uint64_t)meeting;
    ASSERT_TRUE(most > 0);
    for (size_t i = 0; i < MOST_BYTES; i++)
        s->host[i] = (unsigned char)data_below(&seed, 256);
    ASSERT_TRUE(gpu_copy(s->device, s->host, MOST_BYTES));
    for (size_t i = 0; i < LENGTH(counts); i++)
        for (size_t b = 0; b < LENGTH(blocks); b++)
            check_counts(s, meeting, i % 3, counts[i], blocks[b] < most ? blocks[b] : most, 0, (int)(i + b) % 2);
    if (meeting != LARGE_CLUSTER) /* its kernel writes no partial results */
        check_counts(s, meeting, 1, 65536, 8, label, 0);
}

MEETINGS_TEST(carry_a_kibibyte) {
    NEED_GPU();
    for (int meeting = 0; meeting < LARGE_CLUSTER; meeting++)
        check_meeting(fixture, (large_meeting)meeting);
}

MEETINGS_TEST(carry_a_kibibyte_in_clusters) {
    NEED_GPU();
    if (!large_has_clusters())
        SKIP("device 0 has no thread-block clusters");
    check_meeting(fixture, LARGE_CLUSTER);
}

/* ---- Elements with gaps between them ---- */

/* Reduces `count` elements that are `stride` apart, and compares with the same elements next to each other. With more
 * than one block the kernel finds the number in device memory. */
static void check_strided(const scene *s, dpr_op op, dpr_dtype dtype, int64_t stride, size_t count, unsigned blocks) {
    const size_t size = ref_size(dtype);
    const int64_t start = stride < 0 ? -stride * (int64_t)count : 1;
    const uint64_t number = count;
    const dpr_run run = {.out = s->out,
                         .count = blocks > 1 ? count + 100 : count,
                         .device_count = blocks > 1 ? s->count : NULL,
                         .key = {.f = {.op = DPR_ROW(op), .dtype = DPR_ROW(dtype)}},
                         .scratch = s->scratch};
    unsigned char *together = malloc(count * size + 1);
    ref_state expected;
    char why[200];
    ASSERT_TRUE(together != NULL);
    for (size_t i = 0; i < count; i++)
        memcpy(together + i * size, s->host + (start + (int64_t)i * stride) * (int64_t)size, size);
    ref_reduce(&expected, op, dtype, DPR_NAN_PROPAGATE, together, count);
    free(together);
    memset(s->out, 0xff, DPR_RESULT_BYTES);
    ASSERT_TRUE(gpu_copy(s->count, &number, sizeof number));
    const int error = strided_reduce(s->device + start * (int64_t)size, stride, &run, blocks);
    ASSERT_THAT(error == 0 && gpu_stream_wait(NULL), "CUDA error %d, %s", error, gpu_error());
    EXPECT_THAT(ref_check(&expected, s->out, why, sizeof why), "%s of %s, %zu elements %lld apart, %u blocks: %s",
                dpr_op_name(op), dpr_dtype_name(dtype), count, (long long)stride, blocks, why);
    check_scratch(s);
}

static void check_pair(const scene *s, dpr_op op, dpr_dtype dtype) {
    static const int64_t strides[] = {1, 2, 3, 7, -1, -5};
    static const size_t counts[] = {0, 1, 2, 31, 257, 4096, 9001};
    for (int pattern = 0; pattern < DATA_PATTERNS; pattern++) {
        if (!data_pattern_applies((data_pattern)pattern, op, dtype))
            continue;
        data_fill(s->host, op, dtype, (data_pattern)pattern, MOST_BYTES / ref_size(dtype));
        ASSERT_TRUE(gpu_copy(s->device, s->host, MOST_BYTES));
        for (size_t i = 0; i < LENGTH(strides); i++)
            for (size_t n = 0; n < LENGTH(counts); n++)
                check_strided(s, op, dtype, strides[i], counts[n], n % 2 ? 1 : 5);
    }
}

MEETINGS_TEST(read_elements_with_gaps) {
    const scene *s = fixture;
    NEED_GPU();
#define CHECK(OP, DTYPE) check_pair(s, DPR_##OP, DPR_##DTYPE);
    STRIDED_PAIRS(CHECK)
#undef CHECK
}
