/* Wisdom in files, and in the contexts that read them. */
#define _GNU_SOURCE /* mkdtemp(), fork() */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dpr.h>

#include "support.h"
#include "wisdom_files_scene.h"

enum { TEXT = 1 << 14 };

FILE_TEST(files_are_read_back) {
    char text[TEXT];
    size_t size = sizeof text;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_plan *plan = NULL;
    dpr_ctx *later = NULL;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    dpr_wisdom_forget();
    EXPECT_CONTAINS(status_text(), "0 times of 0 processors\n");
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "1 times of 1 processor\n");
    EXPECT_CONTAINS(status_text(), fixture->path);
    problem.count = 1000;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan)); /* the context is older than the wisdom */
    EXPECT_TRUE(strcmp(dpr_plan_strategy(plan), "cpu.serial") != 0);
    dpr_plan_destroy(plan);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &later));
    ASSERT_STATUS(DPR_OK, dpr_plan_create(later, &problem, &plan));
    EXPECT_EQ_STR("cpu.serial", dpr_plan_strategy(plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, "strategy:  cpu.serial, the cheapest by times that were measured here\n");
    EXPECT_CONTAINS(text, "\n* cpu.serial ");
    EXPECT_CONTAINS(text, " 0.001 us, measured\n");
    dpr_plan_destroy(plan);
    dpr_wisdom_forget(); /* the context keeps its own */
    ASSERT_STATUS(DPR_OK, dpr_plan_create(later, &problem, &plan));
    EXPECT_EQ_STR("cpu.serial", dpr_plan_strategy(plan));
    dpr_plan_destroy(plan);
    dpr_ctx_destroy(later);
}

static dpr_options measuring(void) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.effort = DPR_MEASURE;
    return options;
}

static void fill_with_ones(float *in, size_t n) {
    for (size_t i = 0; i < n; i++)
        in[i] = 1;
}

/* A plan that measures runs the quickest strategy, and what it measured is known. */
FILE_TEST(plans_measure) {
    static float in[1 << 16];
    static const uint64_t extent = LENGTH(in);
    dpr_axes axes = DPR_AXES_INIT;
    char text[TEXT];
    size_t size = sizeof text;
    float out = 0, finished = 0;
    double seconds = 0;
    uint64_t partial[8];
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = measuring();
    dpr_plan *plan = NULL;
    fill_with_ones(in, LENGTH(in));
    problem.options = &options;
    problem.count = LENGTH(in);
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_TRUE(strcmp(dpr_plan_strategy(plan), "cpu.serial") != 0);
    EXPECT_STATUS(DPR_OK, dpr_plan_run(plan, in, &out, NULL));
    EXPECT_NEAR_F64(65536, out, 0);
    EXPECT_STATUS(DPR_OK, dpr_plan_run_partial(plan, in, partial, 0, NULL));
    EXPECT_STATUS(DPR_OK, dpr_partial_finish(partial, 1, DPR_F32, DPR_SUM, NULL, &finished));
    EXPECT_NEAR_F64(65536, finished, 0);
    EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
    EXPECT_CONTAINS(text, ", the quickest when the plan was made\n");
    for (int i = 0; i < 3; i++) { /* cpu.serial, cpu.simd and cpu.threads */
        char *time = strstr(text, " us, measured\n");
        ASSERT_TRUE(time != NULL);
        time[1] = '?';
    }
    EXPECT_CONTAINS(status_text(), "3 times of 1 processor\n");
    dpr_plan_destroy(plan);
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.simd", LENGTH(in), 0.5)); /* with cold caches */
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_CONTAINS(status_text(), "4 times of 1 processor\n");
    EXPECT_STATUS(DPR_OK, find(fixture, "cpu.simd", LENGTH(in), &seconds));
    EXPECT_NEAR_F64(0.5, seconds, 1e-12);
    dpr_plan_destroy(plan);
    problem.count = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    dpr_plan_destroy(plan);
    problem.memory = DPR_MEMORY_PINNED; /* which the CPU reads as any other */
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    dpr_plan_destroy(plan);
    problem.memory = DPR_MEMORY_HOST;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_reduce_ex(fixture->ctx, in, &out, LENGTH(in), DPR_F32, DPR_SUM, &options));
    EXPECT_CONTAINS(dpr_last_error(), "options->effort is DPR_MEASURE, which only dpr_plan_create() takes");
    axes.dimensions = 1;
    axes.extents = &extent;
    problem.axes = &axes;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(),
                    "options->effort is DPR_MEASURE, which is not available with segments, keys, axes or gaps");
    problem.axes = NULL;
    options.effort = (dpr_effort)4;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "options->effort is 4, which is no dpr_effort");
}

/* Several operations are measured together. */
FILE_TEST(plans_of_several_operations_measure) {
    static const dpr_op ops[] = {DPR_SUM, DPR_MINMAX};
    static float in[1000];
    float sum = 0, ends[2] = {0, 0};
    void *const outs[] = {&sum, ends};
    dpr_problem problem = DPR_PROBLEM_INIT;
    const dpr_options options = measuring();
    dpr_plan *plan = NULL;
    fill_with_ones(in, LENGTH(in));
    in[7] = -3;
    problem.options = &options;
    problem.count = LENGTH(in);
    problem.ops = ops;
    problem.op_count = LENGTH(ops);
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_STATUS(DPR_OK, dpr_plan_run_fused(plan, in, outs, NULL));
    EXPECT_NEAR_F64(996, sum, 0);
    EXPECT_NEAR_F64(-3, ends[0], 0);
    EXPECT_NEAR_F64(1, ends[1], 0);
    EXPECT_CONTAINS(status_text(), "0 times of 0 processors\n");
    dpr_plan_destroy(plan);
}

FILE_TEST(decisions_keep_wisdom) {
    dpr_ctx *later = NULL;
    dpr_decision *decision = NULL;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_prediction prediction = DPR_PREDICTION_INIT;
    size_t serial = 0;
    EXPECT_STATUS(DPR_OK, dpr_strategy_parse("cpu.serial", &serial));
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &later));
    ASSERT_STATUS(DPR_OK, dpr_decision_create(dpr_ctx_machine(later), &problem, &decision));
    dpr_ctx_destroy(later);
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_decision_predict(decision, serial, 1000, &prediction));
    EXPECT_EQ_I64(1, prediction.measured);
    EXPECT_NEAR_F64(1e-9, prediction.seconds, 1e-15);
    EXPECT_STATUS(DPR_OK, dpr_decision_predict(decision, serial, 1 << 20, &prediction));
    EXPECT_EQ_I64(0, prediction.measured);
    dpr_decision_destroy(decision);
}

/* A machine that is read for `dpr info`, or to be captured, has the rates that were measured on it. */
FILE_TEST(machines_that_are_read_have_measured_rates) {
    const size_t elements = (size_t)1 << 30;
    dpr_machine *machine = NULL;
    dpr_capability rate = DPR_CAPABILITY_INIT;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.simd", elements, 4e-9 * (double)elements / 12.5));
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.threads", elements, 4e-9 * (double)elements / 100));
    ASSERT_STATUS(DPR_OK, dpr_machine_read(DPR_DEVICE_CPU, 0, &machine));
    for (size_t i = 0; !rate.key || strcmp(rate.key, "cpu.core_mb_per_s") != 0; i++)
        ASSERT_STATUS(DPR_OK, dpr_machine_capability(machine, i, &rate));
    EXPECT_EQ_I64(12500, rate.value);
    dpr_machine_destroy(machine);
}

/* A link stays, and the file that it leads to is written. */
FILE_TEST(links_are_followed) {
    char link[112];
    struct stat about;
    (void)snprintf(link, sizeof link, "%s/link", fixture->folder);
    ASSERT_TRUE(symlink(fixture->path, link) == 0);
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(link));
    EXPECT_TRUE(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "1 times of 1 processor\n");
    (void)unlink(link);
}

/* Also if that file is not there yet: a chain of links, the first one with a path from its own folder. */
FILE_TEST(links_to_nothing_are_followed) {
    char link[112], second[112];
    struct stat about;
    (void)snprintf(link, sizeof link, "%s/link", fixture->folder);
    (void)snprintf(second, sizeof second, "%s/second", fixture->folder);
    ASSERT_TRUE(symlink("second", link) == 0 && symlink(fixture->path, second) == 0);
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(link));
    EXPECT_TRUE(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
    EXPECT_TRUE(lstat(second, &about) == 0 && S_ISLNK(about.st_mode));
    EXPECT_TRUE(lstat(fixture->path, &about) == 0 && S_ISREG(about.st_mode));
    EXPECT_TRUE(unlink(second) == 0 && symlink("link", second) == 0); /* a circle */
    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_export(link));
    EXPECT_CONTAINS(dpr_last_error(), "/link cannot be written: Too many levels of symbolic links");
    (void)unlink(link);
    (void)unlink(second);
}

/* A lock that another user has left, as `sudo dpr tune` does. */
FILE_TEST(locks_need_not_be_writable) {
    NEED_A_USER();
    char lock[112];
    int code = -1;
    (void)snprintf(lock, sizeof lock, "%s.lock", fixture->path);
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    ASSERT_TRUE(chmod(lock, 0444) == 0 && chmod(fixture->folder, 0777) == 0);
    const pid_t child = fork();
    if (child == 0) {
        become_a_user();
        _exit(dpr_wisdom_export(fixture->path) == DPR_OK ? 0 : 1);
    }
    ASSERT_TRUE(waitpid(child, &code, 0) == child);
    EXPECT_EQ_I64(0, code);
}

/* Without a lock, in a folder where none can be made. */
FILE_TEST(locks_that_cannot_be_made) {
    NEED_A_USER();
    int code = -1;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    ASSERT_TRUE(chmod(fixture->folder, 0555) == 0);
    const pid_t child = fork();
    if (child == 0) {
        become_a_user();
        _exit(dpr_wisdom_export(fixture->path) == DPR_ERR_FILE
                      && strstr(dpr_last_error(), "wisdom.lock cannot be opened: Permission denied")
                  ? 0
                  : 1);
    }
    ASSERT_TRUE(waitpid(child, &code, 0) == child);
    EXPECT_EQ_I64(0, code);
    EXPECT_TRUE(chmod(fixture->folder, 0755) == 0);
}

/* The array that is measured does not let ALL or ANY end at its first element: no machine reads so many bytes in a
 * microsecond. */
FILE_TEST(plans_measure_whole_arrays) {
    static const dpr_op ops[] = {DPR_ALL, DPR_ANY};
    for (size_t i = 0; i < LENGTH(ops); i++) {
        dpr_problem problem = DPR_PROBLEM_INIT;
        const dpr_options options = measuring();
        dpr_plan *plan = NULL;
        char text[TEXT];
        size_t size = sizeof text;
        problem.op = ops[i];
        problem.dtype = DPR_U8;
        problem.count = (size_t)1 << 22;
        problem.options = &options;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
        EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
        const char *line = strstr(text, "\n* cpu.simd ");
        line = line ? line : strstr(text, "\n  cpu.simd ");
        ASSERT_TRUE(line != NULL);
        char *behind;
        const double us = strtod(line + 12, &behind);
        EXPECT_TRUE(strncmp(behind, " us, measured", 13) == 0);
        EXPECT_THAT(us > 1, "%g us", us);
        dpr_plan_destroy(plan);
    }
}

/* Times that are added are of cold caches, whatever the effort. */
FILE_TEST(added_times_have_no_effort) {
    double seconds = 0;
    dpr_options options;
    const dpr_problem problem = sum_by("cpu.serial", 1000, &options);
    options.effort = DPR_MEASURE;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_add(dpr_ctx_machine(fixture->ctx), &problem, 0, 1e-6));
    EXPECT_STATUS(DPR_OK, find(fixture, "cpu.serial", 1000, &seconds));
    EXPECT_NEAR_F64(1e-6, seconds, 1e-12);
}

FILE_TEST(files_that_cannot_be_read_or_written) {
    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_import(""));
    EXPECT_EQ_STR("path is empty", dpr_last_error());

    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(dpr_last_error(), "cannot be read: No such file or directory");
    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_import(fixture->folder));
    EXPECT_CONTAINS(dpr_last_error(), "is not a regular file");
    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_export("/nowhere/wisdom"));
    EXPECT_CONTAINS(dpr_last_error(), "/nowhere/wisdom.lock cannot be opened: No such file or directory");
    FILE *file = fopen(fixture->path, "we");
    ASSERT_TRUE(file && fputs("a poem\n", file) >= 0 && fclose(file) == 0);
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(dpr_last_error(), "line 1: it should be \"dpr wisdom 1\"");
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_export(fixture->path)); /* what is not understood stays */
    struct stat about;
    EXPECT_TRUE(stat(fixture->path, &about) == 0 && about.st_size == 7);
}

/* A file that cannot be written whole leaves the older one as it is. */
FILE_TEST(a_full_disk_loses_nothing) {
    int code = -1;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 1e-9));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit small = {64, 64};
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &small);
        const int failed = add(fixture, "cpu.simd", 1000, 1e-9) == DPR_OK
                           && dpr_wisdom_export(fixture->path) == DPR_ERR_FILE
                           && strstr(dpr_last_error(), "cannot be written: File too large");
        _exit(failed ? 0 : 1);
    }
    ASSERT_TRUE(waitpid(child, &code, 0) == child);
    EXPECT_EQ_I64(0, code);
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "1 times of 1 processor\n");
}

/* Times that were only read do not replace newer ones of the file; those that were added do. */
FILE_TEST(stale_times_are_not_written) {
    double seconds = 0;
    int code = -1;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    const pid_t child = fork();
    if (child == 0)
        _exit(add(fixture, "cpu.serial", 1000, 0.25) == DPR_OK && dpr_wisdom_export(fixture->path) == DPR_OK ? 0 : 1);
    ASSERT_TRUE(waitpid(child, &code, 0) == child && code == 0);
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 2000, 0.5));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_STATUS(DPR_OK, find(fixture, "cpu.serial", 1000, &seconds));
    EXPECT_NEAR_F64(0.25, seconds, 1e-12);
    EXPECT_CONTAINS(status_text(), "2 times of 1 processor\n");
}

/* A file that others may not read stays so. */
FILE_TEST(permissions_of_a_file_stay) {
    struct stat about;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    EXPECT_TRUE(chmod(fixture->path, 0600) == 0);
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    EXPECT_TRUE(stat(fixture->path, &about) == 0 && (about.st_mode & 0777) == 0600);
}

/* As after `sudo dpr tune`. */
FILE_TEST(root_leaves_a_file_to_its_owner) {
    static const uid_t user = 65534;
    struct stat about;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    if (chown(fixture->path, user, user) != 0)
        SKIP("only root gives files away");
    EXPECT_TRUE(chmod(fixture->path, 0600) == 0);
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    EXPECT_TRUE(stat(fixture->path, &about) == 0 && about.st_uid == user && about.st_gid == user
                && (about.st_mode & 0777) == 0600);
}

/* A writer that was killed may leave what cannot be opened, or waits for a reader. */
FILE_TEST(what_a_killed_writer_left_is_replaced) {
    NEED_A_USER();
    char left[112];
    (void)snprintf(left, sizeof left, "%s.new", fixture->path);
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    ASSERT_TRUE(chmod(fixture->folder, 0777) == 0);
    for (int is_pipe = 0; is_pipe < 2; is_pipe++) {
        int code = -1;
        ASSERT_TRUE(is_pipe ? mkfifo(left, 0666) == 0 : mknod(left, S_IFREG | 0444, 0) == 0);
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(60);
            become_a_user();
            _exit(dpr_wisdom_export(fixture->path) == DPR_OK ? 0 : 1);
        }
        ASSERT_TRUE(waitpid(child, &code, 0) == child);
        EXPECT_EQ_I64(0, code);
        EXPECT_TRUE(access(left, F_OK) != 0);
        ASSERT_TRUE(unlink(fixture->path) == 0);
    }
}

static void *export_when_cancelled(void *path) {
    (void)pthread_cancel(pthread_self());
    const dpr_status status = dpr_wisdom_export(path);
    dpr_wisdom_forget();
    return status == DPR_OK && dpr_wisdom_import(path) == DPR_OK ? path : NULL;
}

/* A thread that is to be cancelled ends no call half-way, and leaves no lock held. */
FILE_TEST(calls_are_no_cancellation_points) {
    pthread_t thread;
    void *result = NULL;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    ASSERT_TRUE(pthread_create(&thread, NULL, export_when_cancelled, fixture->path) == 0);
    EXPECT_TRUE(pthread_join(thread, &result) == 0 && result == fixture->path);
    EXPECT_CONTAINS(status_text(), "1 times of 1 processor\n");
}

/* Adding takes no longer where many times are known. Copying all of them for each would take some 600 us. */
FILE_TEST(adding_is_quick) {
    enum { TIMES = 40000 };
    const double began = test_now();
    for (size_t i = 0; i < TIMES; i++)
        EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", TIMES - i, 1e-3));
    const double us = 1e6 * (test_now() - began) / TIMES;
    test_record("microseconds", "%.2f", us);
    EXPECT_THAT(us < 100 * TEST_SLOWNESS, "%.3g us", us);
    EXPECT_CONTAINS(status_text(), "40000 times of 1 processor\n");
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1, 1e-3));
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.simd", 1, 1e-3));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_export(fixture->path));
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "40001 times of 1 processor\n");
}

/* Of times of the same problem, the last one counts. */
FILE_TEST(the_last_time_counts) {
    double seconds = 0;
    for (int i = 1; i <= 100; i++)
        EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000 + (size_t)i % 3, i));
    for (size_t i = 0; i < 3; i++) {
        EXPECT_STATUS(DPR_OK, find(fixture, "cpu.serial", 1000 + (i + 2) % 3, &seconds));
        EXPECT_NEAR_F64(98 + (double)i, seconds, 1e-9);
    }
}

FILE_TEST(shutdown_gives_wisdom_back) {
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.serial", 1000, 0.5));
    dpr_shutdown();
    EXPECT_CONTAINS(status_text(), "0 times of 0 processors\n");
}

/* Twenty processes write at once, and the file has what all of them wrote. */
FILE_TEST(writers_wait_for_each_other) {
    enum { WRITERS = 20 };
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(add(fixture, "cpu.serial", (size_t)i + 1, 1e-9) == DPR_OK
                          && dpr_wisdom_export(fixture->path) == DPR_OK
                      ? 0
                      : 1);
    }
    for (int i = 0; i < WRITERS; i++) {
        int code = -1;
        EXPECT_TRUE(waitpid(children[i], &code, 0) == children[i]);
        EXPECT_EQ_I64(0, code);
    }
    EXPECT_STATUS(DPR_OK, dpr_wisdom_import(fixture->path));
    EXPECT_CONTAINS(status_text(), "20 times of 1 processor\n");
}

FILE_TEST(bad_arguments) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    const dpr_machine *machine = dpr_ctx_machine(fixture->ctx);
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_wisdom_add(NULL, &problem, 0, 1));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_wisdom_add(machine, NULL, 0, 1));
    problem.count = 1;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_add(machine, &problem, 2, 1));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_add(machine, &problem, 0, 1));
    EXPECT_CONTAINS(dpr_last_error(), "problem->options names no strategy");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, add(fixture, "cpu.serial", 0, 1));
    double seconds = 0;
    options.strategy = "cpu.simd";
    problem.options = &options;
    EXPECT_STATUS(DPR_OK, add(fixture, "cpu.simd", 100, 0.5));
    dpr_problem by_key = problem;
    by_key.key_dtype = DPR_I32;
    by_key.room = 1;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_add(machine, &by_key, 0, 1));
    EXPECT_CONTAINS(dpr_last_error(), "problem->key_dtype is set");
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_find(machine, &by_key, 0, &seconds));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_wisdom_find(machine, &problem, 0, NULL));
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_find(machine, &problem, 0, &seconds));
    EXPECT_EQ_STR("no time of this strategy is known for this problem", dpr_last_error());
    problem.count = 100;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_find(machine, &problem, 0, &seconds));
    EXPECT_NEAR_F64(0.5, seconds, 1e-12);
    dpr_wisdom_forget();
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_wisdom_status(NULL, NULL));
    EXPECT_CONTAINS(status_text(), "0 times of 0 processors\n");
}
