/* The files of wisdom that a process reads and writes by itself, and what wisdom costs its calls. */
#define _GNU_SOURCE /* mkdtemp(), fork() */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dpr.h>

#include "api/wisdom_file.h"
#include "support.h"
#include "wisdom_files_scene.h"

/* ---- The user's file ---- */

/* Runs `what` in a process whose home is the scene's folder. It returns 0, or the line of a check that failed. */
static void run_at_home(const scene *s, int (*what)(const scene *s)) {
    int code = -1;
    const pid_t child = fork();
    if (child == 0) {
        (void)setenv("HOME", s->folder, 1);
        (void)unsetenv("XDG_STATE_HOME");
        (void)unsetenv("DPR_WISDOM");
        dpr_shutdown();
        _exit(what(s));
    }
    ASSERT_TRUE(waitpid(child, &code, 0) == child);
    EXPECT_THAT(WIFEXITED(code) && WEXITSTATUS(code) == 0, "wait status %d, the check in line %d failed", code,
                WEXITSTATUS(code));
}

#define CHECK(CONDITION)                                                                                               \
    do {                                                                                                               \
        if (!(CONDITION))                                                                                              \
            return __LINE__;                                                                                           \
    } while (0)

static int calls_work(const scene *s) {
    const float in[2] = {1, 2};
    float out = 0;
    return dpr_reduce_ex(s->ctx, in, &out, 2, DPR_F32, DPR_SUM, NULL) == DPR_OK && out == 3;
}

static int be_without_home(const scene *s) {
    static const char sentence[] = "there is no file of the user's: HOME and XDG_STATE_HOME name no folder";
    char text[100];
    size_t size = sizeof text;
    (void)unsetenv("HOME");
    CHECK(add(s, "cpu.serial", 1000, 1e-9) == DPR_OK);
    CHECK(dpr_wisdom_path(text, &size) == DPR_ERR_FILE && strcmp(dpr_last_error(), sentence) == 0);
    CHECK(dpr_wisdom_export(NULL) == DPR_ERR_FILE && strcmp(dpr_last_error(), sentence) == 0);
    CHECK(dpr_wisdom_import(NULL) == DPR_OK);
    CHECK(calls_work(s));
    return 0;
}

FILE_TEST(without_a_home) {
    run_at_home(fixture, be_without_home);
}

static int be_in_a_read_only_home(const scene *s) {
    char sentence[120];
    (void)snprintf(sentence, sizeof sentence, "the folder %s/.local cannot be made: Permission denied", s->folder);
    CHECK(chmod(s->folder, 0555) == 0);
    become_a_user();
    CHECK(add(s, "cpu.serial", 1000, 1e-9) == DPR_OK);
    CHECK(dpr_wisdom_export(NULL) == DPR_ERR_FILE && strcmp(dpr_last_error(), sentence) == 0);
    CHECK(dpr_wisdom_import(NULL) == DPR_OK);
    CHECK(calls_work(s));
    return 0;
}

FILE_TEST(in_a_read_only_home) {
    NEED_A_USER();
    run_at_home(fixture, be_in_a_read_only_home);
    EXPECT_TRUE(chmod(fixture->folder, 0755) == 0);
}

/* Removes the user's file and its folders. */
static void clear_home(const scene *s) {
    static const char *const names[] = {".local/state/dpr/wisdom", ".local/state/dpr/wisdom.lock", ".local/state/dpr",
                                        ".local/state", ".local"};
    char path[200];
    for (size_t i = 0; i < LENGTH(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        (void)remove(path);
    }
}

/* The file is read when wisdom is first needed, and then no more, until that is asked for. */
static int read_the_users_file(const scene *s) {
    double seconds = 0;
    char own[DPR_PATH_BYTES];
    const char *paths[2];
    CHECK(dpr_wisdom_paths(own, paths) == 2); /* that of the site, and then that of the user, whose times replace it */
    CHECK(strcmp(paths[0], "/etc/dpr/wisdom") == 0 && strstr(paths[1], "/.local/state/dpr/wisdom"));
    CHECK(add(s, "cpu.serial", 1000, 0.5) == DPR_OK && dpr_wisdom_export(NULL) == DPR_OK);
    dpr_shutdown();
    CHECK(find(s, "cpu.serial", 1000, &seconds) == DPR_OK && seconds == 0.5);
    CHECK(add(s, "cpu.serial", 1000, 0.25) == DPR_OK && dpr_wisdom_export(NULL) == DPR_OK);
    dpr_wisdom_forget();
    CHECK(find(s, "cpu.serial", 1000, &seconds) == DPR_ERR_WISDOM);
    CHECK(dpr_wisdom_import(NULL) == DPR_OK);
    CHECK(find(s, "cpu.serial", 1000, &seconds) == DPR_OK && seconds == 0.25);
    return 0;
}

FILE_TEST(of_the_user) {
    run_at_home(fixture, read_the_users_file);
    clear_home(fixture);
}

static int read_the_named_file(const scene *s) {
    double seconds = 0;
    (void)setenv("DPR_WISDOM", s->path, 1);
    CHECK(add(s, "cpu.serial", 1000, 0.5) == DPR_OK && dpr_wisdom_export(NULL) == DPR_OK);
    CHECK(access(s->path, R_OK) == 0);
    dpr_wisdom_forget();
    CHECK(dpr_wisdom_import(NULL) == DPR_OK);
    CHECK(find(s, "cpu.serial", 1000, &seconds) == DPR_OK && seconds == 0.5);
    return 0;
}

FILE_TEST(that_is_named) {
    run_at_home(fixture, read_the_named_file);
}

/* Files from the future and from the beginning of time are read and written as any other. */
FILE_TEST(after_the_clock_was_set_back) {
    static const time_t at[] = {0, 4102444800};
    char lock[112];
    (void)snprintf(lock, sizeof lock, "%s.lock", fixture->path);
    for (size_t i = 0; i < LENGTH(at); i++) {
        const struct timespec times[2] = {{at[i], 0}, {at[i], 0}};
        EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000 + 2 * i, 0.5));
        EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
        EXPECT_TRUE(utimensat(AT_FDCWD, fixture->path, times, 0) == 0 && utimensat(AT_FDCWD, lock, times, 0) == 0);
        EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1001 + 2 * i, 0.5));
        EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    }
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "4 times of 1 processor\n");
}

/* ---- Costs ---- */

static dpr_plan *plan_of(dpr_ctx *ctx) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_plan *plan = NULL;
    options.strategy = "cpu.serial";
    problem.options = &options;
    problem.count = 4;
    EXPECT_STATUS(DPR_OK, dpr_plan_create(ctx, &problem, &plan));
    return plan;
}

static double seconds_of(dpr_plan *plan) {
    const float in[4] = {1, 2, 3, 4};
    float out = 0;
    const double began = test_now();
    for (int i = 0; i < 100; i++)
        EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
    return test_now() - began;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The runs take turns. They are of the same strategy, so that only noise tells them apart. */
FILE_TEST(runs_of_plans_do_not_look_at_wisdom) {
    enum { SAMPLES = 501 };
    static double samples[2][SAMPLES];
    dpr_ctx *wise = NULL;
    for (size_t i = 1; i <= 10000; i++)
        EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", i, 1e-9));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &wise));
    dpr_plan *plans[2] = {plan_of(fixture->ctx), plan_of(wise)};
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < 2; k++)
            samples[k][i] = seconds_of(plans[k]);
    for (int k = 0; k < 2; k++)
        qsort(samples[k], SAMPLES, sizeof samples[k][0], compare_doubles);
    const double ratio = samples[1][SAMPLES / 2] / samples[0][SAMPLES / 2];
    test_record("ratio", "%.3f", ratio);
    EXPECT_THAT(ratio < 1.5, "with wisdom a call takes %.3g times as long", ratio);
    dpr_plan_destroy(plans[0]);
    dpr_plan_destroy(plans[1]);
    dpr_ctx_destroy(wise);
}
