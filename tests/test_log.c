/* The log: what DPR_LOG and DPR_LOG_FILE ask for, whole lines from several threads and processes, and nothing without
 * them. Each case has a process of its own. And the list of environment variables. */
#define _GNU_SOURCE /* mkstemp(), setenv() */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/ops.h"
#include "environment.h"
#include "support.h"

/* ---- The list ---- */

static size_t index_of(const char *name) {
    dpr_env_info info = DPR_ENV_INFO_INIT;
    size_t i = 0;
    while (dpr_env_describe(i, &info) == DPR_OK && strcmp(info.name, name) != 0)
        i++;
    return i;
}

static dpr_env_info described(const char *name) {
    dpr_env_info info = DPR_ENV_INFO_INIT;
    EXPECT_STATUS(DPR_OK, dpr_env_describe(index_of(name), &info));
    return info;
}

TEST(Env, every_variable_is_described) {
    dpr_env_info info = DPR_ENV_INFO_INIT;
    EXPECT_TRUE(dpr_env_count() >= 4);
    for (size_t i = 0; i < dpr_env_count(); i++) {
        ASSERT_STATUS(DPR_OK, dpr_env_describe(i, &info));
        EXPECT_TRUE(strncmp(info.name, "DPR_", 4) == 0 && *info.text && *info.values && *info.by_default);
        EXPECT_EQ_U64(i, index_of(info.name));
    }
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_env_describe(dpr_env_count(), &info));
    EXPECT_CONTAINS(dpr_last_error(), "environment variables");
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_env_describe(0, NULL));
}

static const struct {
    const char *name, *value;
    int understood;
} values[] = {
    {"DPR_NUM_THREADS", "1", 1},
    {"DPR_NUM_THREADS", "99999999999999999999", 1},
    {"DPR_NUM_THREADS", "0", 0},
    {"DPR_NUM_THREADS", "-1", 0},
    {"DPR_NUM_THREADS", " 4", 0},
    {"DPR_NUM_THREADS", "4x", 0},
    {"DPR_NUM_THREADS", "many", 0},
    {"DPR_CPU_ISA", "baseline", 1},
    {"DPR_CPU_ISA", "avx2,baseline", 0},
    {"DPR_CPU_ISA", "AVX2", 0},
    {"DPR_CPU_ISA", "avx", 0},
    {"DPR_LOG", "plan", 1},
    {"DPR_LOG", "plan, launch ,,memory", 1},
    {"DPR_LOG", "all", 1},
    {"DPR_LOG", "plan,plans", 0},
    {"DPR_LOG", "1", 0},
    {"DPR_LOG_FILE", "/nowhere/at all", 1},
};

TEST(Env, values_that_are_understood) {
    for (size_t i = 0; i < LENGTH(values); i++) {
        ASSERT_EQ_I64(0, setenv(values[i].name, values[i].value, 1));
        const dpr_env_info info = described(values[i].name);
        EXPECT_EQ_STR(values[i].value, info.value);
        EXPECT_THAT(info.understood == values[i].understood, "%s=%s", values[i].name, values[i].value);
        ASSERT_EQ_I64(0, setenv(values[i].name, "", 1));
        EXPECT_TRUE(described(values[i].name).value == NULL && described(values[i].name).understood);
        ASSERT_EQ_I64(0, unsetenv(values[i].name));
        EXPECT_TRUE(described(values[i].name).value == NULL && described(values[i].name).understood);
    }
}

/* The words in the list are those of the instruction sets, of which another architecture has fewer. */
TEST(Env, instruction_sets) {
#define CHECK(A, NAME, supported) EXPECT_TRUE(dpr_env_is_understood(DPR_ENV_CPU_ISA, #NAME));
    DPR_CPU_KERNELS_LIST(CHECK, _)
#undef CHECK
}

/* Whether /proc/cpuinfo has all of the processor's flags, the list of which ends with NULL. */
static int has_flags(const char *const *flags) {
    char line[8192] = "", flag[32];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file) && strncmp(line, "flags", 5) != 0)
        line[0] = 0;
    if (file)
        (void)fclose(file);
    if (strchr(line, '\n'))
        *strchr(line, '\n') = ' ';
    for (; *flags; flags++) {
        (void)snprintf(flag, sizeof flag, " %s ", *flags);
        if (!strstr(line, flag))
            return 0;
    }
    return 1;
}

TEST(Env, instruction_sets_that_the_processor_lacks_are_ignored) {
    static const struct {
        const char *name, *flags[5];
    } sets[] = {{"baseline", {NULL}},
                {"avx2", {"avx2", "f16c", NULL}},
                {"avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", NULL}}};
    for (size_t i = 0; i < LENGTH(sets); i++) {
        ASSERT_EQ_I64(0, setenv("DPR_CPU_ISA", sets[i].name, 1));
        EXPECT_THAT(described("DPR_CPU_ISA").understood == has_flags(sets[i].flags), "%s", sets[i].name);
    }
    ASSERT_EQ_I64(0, unsetenv("DPR_CPU_ISA"));
}

TEST(Env, categories) {
    EXPECT_EQ_U64(DPR_LOG_PLAN, dpr_log_parse("plan"));
    EXPECT_EQ_U64(DPR_LOG_PLAN | DPR_LOG_ERROR, dpr_log_parse("error,plan"));
    EXPECT_EQ_U64(DPR_LOG_LAUNCH | DPR_LOG_MEMORY, dpr_log_parse(" launch ,, memory,"));
    EXPECT_EQ_U64(DPR_LOG_RECURSION, dpr_log_parse("recursions,recursion,rec"));
    EXPECT_EQ_U64(DPR_LOG_ALL, dpr_log_parse("all"));
    EXPECT_EQ_U64(DPR_LOG_ALL, dpr_log_parse("plan,all"));
    EXPECT_EQ_U64(0, dpr_log_parse(""));
    EXPECT_EQ_U64(0, dpr_log_parse(" , ,"));
    EXPECT_EQ_U64(0, dpr_log_parse("ALL"));
}

/* ---- Processes with a log ---- */

enum { MOST_TEXT = 4 << 20 };

/* Reads a file from its beginning. */
static void read_all(int fd, char *text) {
    ssize_t n;
    size_t used = 0;
    while (used < MOST_TEXT - 1 && (n = pread(fd, text + used, MOST_TEXT - 1 - used, (off_t)used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
}

static int set(const char *name, const char *value) {
    return value ? setenv(name, value, 1) : unsetenv(name);
}

/* A new file and its name, of which the last six letters are replaced. Regular files have a position that threads share
 * without overwriting each other's text; memory files do not. */
static int new_file(char *path) {
    const int made = mkstemp(path);
    EXPECT_TRUE(made >= 0);
    return made;
}

/* Runs `body` in a child in which the variables are set; NULL: not set. Returns what the child wrote to standard error,
 * in static storage. */
static const char *logged(const char *log, const char *file, int (*body)(void)) {
    static char text[MOST_TEXT];
    char path[] = "/tmp/dpr-stderr-XXXXXX";
    const int errors = new_file(path);
    (void)unlink(path);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        dpr_shutdown(); /* the environment is read again */
        if (set("DPR_LOG", log) != 0 || set("DPR_LOG_FILE", file) != 0 || dup2(errors, STDERR_FILENO) < 0)
            _exit(2);
        _exit(body());
    }
    int status = -1;
    EXPECT_TRUE(child > 0 && waitpid(child, &status, 0) == child);
    read_all(errors, text);
    (void)close(errors);
    EXPECT_THAT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status 0x%x and wrote:\n%s",
                (unsigned)status, text);
    return text;
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Whether a line, which ends with a line feed, has the form of the log's. */
static int is_line(const char *line) {
    static const char *const words[] = {"plan", "launch", "memory", "recursion", "error"};
    char word[16] = "", end = 0;
    if (sscanf(line, "dpr: %*[0-9.] us, thread %*[0-9], %15[a-z]:%c", word, &end) != 2)
        return 0;
    for (size_t i = 0; i < LENGTH(words); i++)
        if (strcmp(word, words[i]) == 0)
            return end == ' ' && strcspn(line, "\n") > 30;
    return 0;
}

/* The number of lines, all of which must be whole. */
static int count_lines(const char *text) {
    int count = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (!strchr(line, '\n') || !is_line(line)) {
            EXPECT_THAT(0, "no line of a log: %.200s", line);
            return -1;
        }
        count++;
    }
    return count;
}

static int32_t ones[100];

static int reduce(void) {
    int64_t sum = 0;
    for (size_t i = 0; i < LENGTH(ones); i++)
        ones[i] = 1;
    return dpr_reduce(ones, &sum, LENGTH(ones), DPR_I32, DPR_SUM) != DPR_OK || sum != 100;
}

static int reduce_with_threads(void) {
    static float many[1 << 20];
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    float sum = -1;
    options.strategy = "cpu.threads";
    if (setenv("DPR_NUM_THREADS", "3", 1) != 0 || dpr_ctx_create(DPR_DEVICE_CPU, &ctx) != DPR_OK
        || dpr_reduce_ex(ctx, many, &sum, LENGTH(many), DPR_F32, DPR_SUM, &options) != DPR_OK)
        return 1;
    dpr_ctx_destroy(ctx);
    dpr_shutdown();
    return sum != 0;
}

static int fail(void) {
    return dpr_reduce(NULL, NULL, 3, DPR_I32, DPR_SUM) != DPR_ERR_NULL_POINTER;
}

TEST(Log, is_off_without_the_variable) {
    EXPECT_EQ_STR("", logged(NULL, NULL, reduce));
    EXPECT_EQ_STR("", logged("", NULL, reduce));
    EXPECT_EQ_STR("", logged(NULL, "/nowhere/at all", reduce));
    EXPECT_EQ_STR("", logged(NULL, NULL, fail));
    EXPECT_EQ_STR("", logged("recursion", NULL, reduce));
}

TEST(Log, of_choices) {
    const char *text = logged("plan", NULL, reduce);
    EXPECT_EQ_I64(1, count_lines(text));
    EXPECT_CONTAINS(text, ", plan: sum of i32 in host memory");
    EXPECT_CONTAINS(text, ": cpu.serial up to ");
    EXPECT_CONTAINS(text, " beyond");
}

TEST(Log, of_runs) {
    const char *text = logged("launch", NULL, reduce);
    EXPECT_EQ_I64(1, count_lines(text));
    EXPECT_CONTAINS(text, ", launch: cpu.");
    EXPECT_CONTAINS(text, ": sum of 100 i32, from host memory at 0x");
    EXPECT_CONTAINS(text, " to host memory at 0x");
}

/* Sums of 999 segments of which number 501 has nearly all elements: by offsets, then by begins and ends. */
static int reduce_uneven_segments(void) {
    enum { SEGMENTS = 999, LONG = 1 << 24, LONG_AT = 501 };
    static int64_t begins[SEGMENTS + 1], ends[SEGMENTS];
    static uint64_t sums[SEGMENTS];
    unsigned char *in = calloc(SEGMENTS + LONG, 1);
    dpr_ctx *ctx = NULL;
    dpr_segments segments = DPR_SEGMENTS_INIT;
    dpr_status status = DPR_OK;
    for (int i = 0; i < SEGMENTS; i++)
        ends[i] = begins[i + 1] = begins[i] + (i == LONG_AT ? LONG : 1);
    segments.count = SEGMENTS;
    segments.begins = begins;
    if (!in || setenv("DPR_NUM_THREADS", "3", 1) != 0 || dpr_ctx_create(DPR_DEVICE_CPU, &ctx) != DPR_OK)
        return 1;
    for (int i = 0; i < 2 && status == DPR_OK; i++) {
        status = dpr_reduce_segments(ctx, in, sums, SEGMENTS + LONG, DPR_U8, DPR_SUM, &segments, NULL);
        segments.ends = ends;
    }
    dpr_ctx_destroy(ctx);
    free(in);
    return status != DPR_OK;
}

TEST(Log, of_segments_one_of_which_is_long) {
    const char *text = logged("launch", NULL, reduce_uneven_segments);
    EXPECT_EQ_I64(2, count_of(text, ", launch: cpu.threads"));
}

TEST(Log, of_memory_and_threads) {
    const char *text = logged("memory", NULL, reduce_with_threads);
    EXPECT_EQ_I64(2, count_lines(text));
    EXPECT_CONTAINS(text, ", memory: a pool of 3 threads has started\n");
    EXPECT_CONTAINS(text, ", memory: a pool of 3 threads has ended\n");
}

TEST(Log, of_errors) {
    const char *text = logged("error", NULL, fail);
    EXPECT_EQ_I64(1, count_lines(text));
    EXPECT_CONTAINS(text, ", error: in is NULL, and count is 3\n");
}

TEST(Log, of_everything) {
    const char *text = logged("all", NULL, reduce_with_threads);
    EXPECT_EQ_I64(4, count_lines(text));
    EXPECT_CONTAINS(text, ", plan: sum of f32 in host memory: cpu.threads by name\n");
    EXPECT_CONTAINS(text, ", launch: cpu.threads: sum of 1048576 f32, ");
}

static int choose_none(void) {
    int64_t sum;
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_launch_options launch = DPR_LAUNCH_OPTIONS_INIT;
    options.launch = &launch;
    launch.block = 64;
    if (dpr_ctx_create(DPR_DEVICE_CPU, &ctx) != DPR_OK)
        return 1;
    const dpr_status status = dpr_reduce_ex(ctx, ones, &sum, LENGTH(ones), DPR_I32, DPR_SUM, &options);
    dpr_ctx_destroy(ctx);
    return status != DPR_ERR_STRATEGY_UNABLE;
}

TEST(Log, of_a_choice_that_fails) {
    const char *text = logged("plan", NULL, choose_none);
    EXPECT_EQ_I64(1, count_lines(text));
    EXPECT_CONTAINS(text, "in host memory, in blocks of 64 threads: no choice, because ");
}

TEST(Log, names_words_that_are_no_category) {
    const char *text = logged("lunch,plan,al", NULL, reduce);
    EXPECT_CONTAINS(text, "dpr: DPR_LOG: 'lunch' is none of plan, launch, memory, recursion, error, all\n");
    EXPECT_CONTAINS(text, "dpr: DPR_LOG: 'al' is none of ");
    EXPECT_EQ_I64(3, count_of(text, "\n"));
    EXPECT_EQ_I64(1, count_of(text, ", plan: sum of i32"));
    EXPECT_EQ_I64(1, count_of(logged("lunch", NULL, reduce_with_threads), "\n"));
}

/* ---- Files ---- */

static int reduce_twice(void) {
    return reduce() || reduce();
}

/* Another process writes to the same file, one that has begun before or after the first line. */
static int reduce_in_a_child_too(void) {
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(reduce_twice());
        int status = -1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || reduce() != 0)
            return 1;
    }
    return 0;
}

static void read_path(const char *path, char *text) {
    FILE *file = fopen(path, "re");
    ASSERT_TRUE(file != NULL);
    read_all(fileno(file), text);
    (void)fclose(file);
}

TEST(Log, to_a_file) {
    static char text[MOST_TEXT];
    char path[] = "/tmp/dpr-log-XXXXXX";
    (void)close(new_file(path));
    EXPECT_EQ_STR("", logged("launch", path, reduce_twice));
    read_path(path, text);
    EXPECT_EQ_I64(2, count_lines(text));
    EXPECT_EQ_STR("", logged("launch", path, reduce_in_a_child_too));
    read_path(path, text);
    EXPECT_EQ_I64(2 + 6, count_lines(text));
    (void)unlink(path);
}

TEST(Log, to_a_file_that_cannot_be_opened) {
    const char *text = logged("launch", "/nowhere/at all", reduce_twice);
    EXPECT_EQ_I64(3, count_of(text, "\n"));
    EXPECT_EQ_I64(2, count_of(text, ", launch: cpu."));
    EXPECT_CONTAINS(text, "dpr: DPR_LOG_FILE: '/nowhere/at all' cannot be opened (No such file or directory); the log "
                          "goes to standard error\n");
}

/* A pipe that nobody reads does not stop the program. */
TEST(Log, to_a_pipe_without_a_reader) {
    char path[] = "/tmp/dpr-log-XXXXXX";
    (void)close(new_file(path));
    ASSERT_TRUE(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    const char *text = logged("launch", path, reduce_twice);
    EXPECT_CONTAINS(text, " cannot be opened (No such device or address); the log goes to standard error\n");
    EXPECT_EQ_I64(3, count_of(text, "\n"));
    (void)unlink(path);
}

static int is_pending(int number) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

/* Reduces, with a log that goes to a pipe, before and after the pipe's reader ends. A SIGPIPE that the program itself
 * has pending stays pending. */
static const char *pipe_path;
static int reduce_beyond_a_reader(void) {
    sigset_t broken_pipe;
    (void)signal(SIGPIPE, SIG_DFL);
    const int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
    char text[64];
    int failed = reader < 0 || reduce() || read(reader, text, sizeof text) <= 0 || close(reader) != 0;
    failed = failed || reduce() || is_pending(SIGPIPE);
    (void)sigemptyset(&broken_pipe);
    (void)sigaddset(&broken_pipe, SIGPIPE);
    failed = failed || pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL) != 0 || reduce() || is_pending(SIGPIPE);
    return failed || raise(SIGPIPE) != 0 || reduce() || !is_pending(SIGPIPE);
}

TEST(Log, to_a_pipe_whose_reader_ends) {
    char path[] = "/tmp/dpr-log-XXXXXX";
    (void)close(new_file(path));
    ASSERT_TRUE(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    pipe_path = path;
    EXPECT_EQ_STR("", logged("launch", path, reduce_beyond_a_reader));
    pipe_path = NULL;
    (void)unlink(path);
}

/* The file does not take the place of a standard stream that is closed. */
static int reduce_without_streams(void) {
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    return reduce() || write(STDOUT_FILENO, "x", 1) >= 0 || write(STDERR_FILENO, "x", 1) >= 0;
}

TEST(Log, where_standard_streams_are_closed) {
    static char text[MOST_TEXT];
    char path[] = "/tmp/dpr-log-XXXXXX";
    (void)close(new_file(path));
    EXPECT_EQ_STR("", logged("launch", path, reduce_without_streams));
    read_path(path, text);
    EXPECT_EQ_I64(1, count_lines(text));
    (void)unlink(path);
    EXPECT_EQ_STR("", logged("launch", NULL, reduce_without_streams));
}

/* ---- Lines ---- */

enum { THREADS = 8, CALLS = 300 };

static void *reduce_often(void *failed) {
    int64_t sum = 0;
    for (int i = 0; i < CALLS; i++)
        if (dpr_reduce(ones, &sum, 1 + (size_t)i % LENGTH(ones), DPR_I32, DPR_SUM) != DPR_OK)
            *(int *)failed = 1;
    return NULL;
}

static int reduce_in_threads(void) {
    pthread_t threads[THREADS];
    int failed[THREADS] = {0}, failures = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, reduce_often, &failed[i]) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        failures += failed[i];
    }
    return failures;
}

/* Threads that begin at once open the file once and complain once. */
TEST(Log, lines_of_threads_do_not_mix) {
    static char text[MOST_TEXT];
    char path[] = "/tmp/dpr-log-XXXXXX";
    (void)close(new_file(path));
    EXPECT_EQ_I64(1, count_of(logged("launch,lunch", path, reduce_in_threads), "\n"));
    read_path(path, text);
    EXPECT_EQ_I64(THREADS * CALLS, count_lines(text));
    (void)unlink(path);
    const char *lines = logged("launch", NULL, reduce_in_threads);
    EXPECT_EQ_I64(THREADS * CALLS, count_lines(lines));
}

static int write_odd_lines(void) {
    static char text[2 * DPR_LOG_LINE];
    memset(text, 'x', sizeof text - 1);
    errno = ERANGE;
    if (DPR_LOGS(PLAN)) {
        dpr_log(DPR_LOG_PLAN, "%s", text);
        dpr_log(DPR_LOG_PLAN, "two\nlines\x1b[31m and \x7f");
        dpr_log(DPR_LOG_PLAN, "\x9b"
                              "31m, \xc2\x9b"
                              "31m, \xc5\x9b and \xc3\xa9");
    }
    return errno != ERANGE || DPR_LOGS(LAUNCH);
}

TEST(Log, long_lines_are_cut_and_control_characters_replaced) {
    const char *text = logged("plan", NULL, write_odd_lines);
    EXPECT_EQ_I64(3, count_lines(text));
    EXPECT_EQ_U64(DPR_LOG_LINE - 1, strcspn(text, "\n"));
    EXPECT_CONTAINS(text, "xxx ...\n");
    EXPECT_CONTAINS(text, "plan: two?lines?[31m and ?\n");
    EXPECT_CONTAINS(text, "plan: ?31m, \xc2?31m, \xc5\x9b and \xc3\xa9\n"); /* s and e with accents */
}
