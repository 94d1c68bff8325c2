#include "gpu_recursion_scene.h"

#include <stdlib.h>

void set_up(scene *s, const char *engine) {
    const dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    const dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    s->options = options;
    s->report = report;
    s->options.engine = engine;
    s->ctx = NULL; /* stays so if the device is lost */
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

void tear_down(scene *s) {
    dpr_ctx_destroy(s->ctx);
}

void expect_trees_by(scene *s, int teams, const tree_shape *shape, uint64_t seed, size_t n) {
    tree_task *roots = calloc(n, sizeof *roots);
    tree_result *results = calloc(n, sizeof *results);
    uint64_t nodes = 0, wrong = 0;
    for (size_t i = 0; i < n; i++)
        roots[i] = (tree_task){seed + 1000 * (uint64_t)i, 0, 0};
    EXPECT_STATUS(DPR_OK,
                  (teams ? team_tree_run : tree_run)(s->ctx, roots, n, shape, results, &s->options, &s->report, NULL));
    for (size_t i = 0; i < n; i++) {
        wrong += !same(tree_reference(shape, roots[i]), results[i]);
        nodes += results[i].nodes;
    }
    EXPECT_EQ_U64(0, wrong);
    EXPECT_EQ_U64(nodes, s->report.tasks);
    EXPECT_TRUE(s->report.deepest <= shape->deepest);
    EXPECT_EQ_STR(s->options.engine ? s->options.engine : s->report.engine, s->report.engine);
    free(roots);
    free(results);
}

void expect_trees(scene *s, const tree_shape *shape, uint64_t seed, size_t n) {
    expect_trees_by(s, 0, shape, seed, n);
    expect_trees_by(s, 1, shape, seed, (n + 49) / 50);
}
