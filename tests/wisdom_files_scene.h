/* A folder for files of wisdom, and a context of the CPU that is older than all wisdom. */
#ifndef DPR_TESTS_WISDOM_FILES_SCENE_H
#define DPR_TESTS_WISDOM_FILES_SCENE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dpr.h>

#include "support.h"

typedef struct scene {
    char folder[64], path[96];
    dpr_ctx *ctx;
} scene;

static inline void set_up(void *context) {
    scene *s = context;
    (void)snprintf(s->folder, sizeof s->folder, "/tmp/dpr-wisdom-XXXXXX");
    ASSERT_TRUE(mkdtemp(s->folder) != NULL);
    (void)snprintf(s->path, sizeof s->path, "%s/wisdom", s->folder);
    dpr_wisdom_forget();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->ctx));
}

static inline void tear_down(void *context) {
    scene *s = context;
    char lock[112];
    (void)snprintf(lock, sizeof lock, "%s.lock", s->path);
    dpr_ctx_destroy(s->ctx);
    dpr_wisdom_forget();
    (void)unlink(s->path);
    (void)unlink(lock);
    EXPECT_THAT(rmdir(s->folder) == 0, "other files are left in %s", s->folder);
}

#define FILE_TEST(NAME) TEST_FIXTURE(Wisdom, NAME, scene, set_up, tear_down)

static inline dpr_problem sum_by(const char *strategy, size_t count, dpr_options *options) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options_init(options, sizeof *options);
    options->strategy = strategy;
    problem.options = options;
    problem.count = count;
    return problem;
}

static inline dpr_status add(const scene *s, const char *strategy, size_t count, double seconds) {
    dpr_options options;
    const dpr_problem problem = sum_by(strategy, count, &options);
    return dpr_wisdom_add(dpr_ctx_machine(s->ctx), &problem, 0, seconds);
}

static inline dpr_status find(const scene *s, const char *strategy, size_t count, double *seconds) {
    dpr_options options;
    const dpr_problem problem = sum_by(strategy, count, &options);
    return dpr_wisdom_find(dpr_ctx_machine(s->ctx), &problem, 0, seconds);
}

static inline const char *status_text(void) {
    static char text[1 << 14];
    size_t size = sizeof text;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_status(text, &size));
    return text;
}

/* Ends the test as skipped unless a process can give up root's rights. */
#define NEED_A_USER()                                                                                                  \
    do {                                                                                                               \
        if (geteuid() == 0 && (seteuid(65534) != 0 || seteuid(0) != 0))                                                \
            SKIP("root cannot become a user here");                                                                    \
    } while (0)

static inline void become_a_user(void) {
    if (geteuid() == 0 && seteuid(65534) != 0)
        abort();
}

#endif
