/* A strategy that needs workspace and launches no kernels from kernels: its runs in a stream, blocking and in graphs.
 */
#include <string.h>

#include "workspace_scene.h"

#define WORKSPACE_TEST(NAME)                                                                                           \
    TEST_FIXTURE(GpuWorkspace, NAME, workspace_scene, workspace_scene_open, workspace_scene_close)

static const size_t counts[] = {0, 1, 2, 31, 4095, 4096, 4097, 65536, 300000, WORKSPACE_MOST};

/* Nothing is nested, so the report is all zero. */
static void check_report(const workspace_scene *s, size_t count) {
    const dpr_launch_report none = {0};
    EXPECT_THAT(memcmp(s->report, &none, sizeof none) == 0, "%zu elements: %u launches are reported", count,
                s->report->launched);
}

WORKSPACE_TEST(runs_in_a_stream) {
    const workspace_scene *s = fixture;
    NEED_GPU();
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < LENGTH(counts); i++) {
            *s->out = -1;
            memset(s->report, 0x5a, sizeof *s->report);
            ASSERT_STATUS(DPR_OK, workspace_run(s, counts[i], NULL));
            ASSERT_TRUE(gpu_stream_wait(s->stream));
            EXPECT_EQ_I64(workspace_sum(counts[i]), *s->out);
            check_report(s, counts[i]);
        }
}

WORKSPACE_TEST(blocking_runs) {
    const workspace_scene *s = fixture;
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(counts); i++) {
        int64_t result = -1;
        memset(s->report, 0x5a, sizeof *s->report);
        ASSERT_STATUS(DPR_OK, workspace_run(s, counts[i], &result));
        EXPECT_EQ_I64(workspace_sum(counts[i]), result);
        check_report(s, counts[i]);
    }
}

/* Runs between the replays take workspace from the same pool. */
WORKSPACE_TEST(graphs_keep_their_workspace) {
    const workspace_scene *s = fixture;
    NEED_GPU();
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    EXPECT_STATUS(DPR_OK, workspace_run(s, WORKSPACE_MOST, NULL));
    gpu_graph *graph = gpu_capture_end(s->stream);
    ASSERT_THAT(graph != NULL, "%s", gpu_error());
    for (int replay = 0; replay < 3; replay++) {
        EXPECT_STATUS(DPR_OK, workspace_run(s, 100000, NULL));
        EXPECT_TRUE(gpu_stream_wait(s->stream));
        EXPECT_EQ_I64(workspace_sum(100000), *s->out);
        *s->out = -1;
        memset(s->report, 0x5a, sizeof *s->report);
        EXPECT_TRUE(gpu_graph_launch(graph, s->stream) && gpu_stream_wait(s->stream));
        EXPECT_EQ_I64(workspace_sum(WORKSPACE_MOST), *s->out);
        check_report(s, WORKSPACE_MOST);
    }
    gpu_graph_destroy(graph);
    EXPECT_STATUS(DPR_OK, workspace_run(s, 5, NULL));
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_EQ_I64(workspace_sum(5), *s->out);
}
