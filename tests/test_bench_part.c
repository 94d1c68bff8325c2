/* Processes that say what they found in one line. */
#include <stdio.h>

#include "bench_part.h"
#include "support.h"

/* What a shell's script comes to. */
typedef struct script_end {
    int status;
    double seconds;
    char line[PART_LINE], why[BENCH_WHY];
} script_end;

static script_end run_script(const char *script, double seconds, const volatile sig_atomic_t *stop) {
    script_end end = {.line = "", .why = ""};
    char name[] = "sh", option[] = "-c", text[200];
    snprintf(text, sizeof text, "%s", script);
    char *const argv[] = {name, option, text, NULL};
    const double began = test_now();
    end.status = part_run("/bin/sh", argv, seconds, stop, end.line, end.why);
    end.seconds = test_now() - began;
    return end;
}

TEST(BenchPart, the_first_line_is_taken) {
    script_end end = run_script("echo first; echo second", 60, NULL);
    EXPECT_EQ_I64(0, end.status);
    EXPECT_EQ_STR("first", end.line);
    end = run_script("printf fi; sleep 0.2; echo rst", 60, NULL);
    EXPECT_EQ_I64(0, end.status);
    EXPECT_EQ_STR("first", end.line);
    end = run_script("echo first; exit 1", 60, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("first", end.line);
    EXPECT_EQ_STR("its process ended with code 1", end.why);
}

/* A program that hangs on its way out. */
TEST(BenchPart, the_end_is_not_waited_for_long) {
    const script_end end = run_script("echo first; exec sleep 60", 60, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("first", end.line);
    EXPECT_EQ_STR("its process ended with signal 9", end.why);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchPart, programs_without_a_line) {
    static const char *const scripts[][2] = {
        {"exit 3", "its process ended with code 3"},
        {"kill -9 $$", "its process ended with signal 9"},
        {"printf x", "its process wrote no line"},
        {"while :; do echo -n xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
         "its process ended with "}};
    for (size_t i = 0; i < LENGTH(scripts); i++) {
        const script_end end = run_script(scripts[i][0], 60, NULL);
        EXPECT_EQ_I64(-1, end.status);
        EXPECT_EQ_STR("", end.line);
        EXPECT_CONTAINS(end.why, scripts[i][1]);
    }
}

TEST(BenchPart, programs_that_take_too_long) {
    const script_end end = run_script("exec sleep 60", 0.2, NULL);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("its process took more than 0.2 s", end.why);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchPart, interrupted) {
    static const volatile sig_atomic_t stop = 1;
    const script_end end = run_script("exec sleep 60", 60, &stop);
    EXPECT_EQ_I64(-1, end.status);
    EXPECT_EQ_STR("interrupted", end.why);
    EXPECT_THAT(end.seconds < 30, "%g s", end.seconds);
}

TEST(BenchPart, no_program) {
    char name[] = "none", line[PART_LINE], why[BENCH_WHY] = "";
    char *const argv[] = {name, NULL};
    EXPECT_EQ_I64(-1, part_run("/none/such", argv, 60, NULL, line, why));
    EXPECT_CONTAINS(why, "no process: ");
}
