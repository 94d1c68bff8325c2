/* Recursions on the GPU for tests: a context, the options of an engine, and trees whose results are checked. */
#ifndef DPR_TESTS_GPU_RECURSION_SCENE_H
#define DPR_TESTS_GPU_RECURSION_SCENE_H

#include <string.h>

#include "recursion_checks.h"
#include "support.h"

typedef struct scene {
    dpr_ctx *ctx;
    dpr_recursion_options options;
    dpr_recursion_report report;
} scene;

/* Makes a context of device 0, and options that name the engine. */
void set_up(scene *s, const char *engine);
void tear_down(scene *s);

static inline int is_engine(const scene *s, const char *name) {
    return strcmp(s->options.engine, name) == 0;
}

/* For each X(engine). */
#define ENGINES(X, NAME) X(persistent, NAME) X(host, NAME) X(level, NAME) X(graph, NAME) X(naive, NAME)

#define ENGINE_TEST(ENGINE, NAME)                                                                                      \
    TEST(GpuRecursion, NAME##_##ENGINE) {                                                                              \
        scene s;                                                                                                       \
        NEED_GPU();                                                                                                    \
        set_up(&s, #ENGINE);                                                                                           \
        NAME(&s);                                                                                                      \
        tear_down(&s);                                                                                                 \
    }

/* A test of every engine. */
#define GPU_TEST(NAME)                                                                                                 \
    static void NAME(scene *s);                                                                                        \
    ENGINES(ENGINE_TEST, NAME)                                                                                         \
    static void NAME(scene *s)

/* Solves `n` trees as roots of one run, and compares them with the reference. */
void expect_trees_by(scene *s, int teams, const tree_shape *shape, uint64_t seed, size_t n);

/* By lanes, and by teams: these take a hundred times as long for small tasks. */
void expect_trees(scene *s, const tree_shape *shape, uint64_t seed, size_t n);

#endif
