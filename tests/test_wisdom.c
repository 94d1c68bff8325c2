/* Wisdom: its text, what the planner makes of it, and its files. */
#define _GNU_SOURCE /* mkdtemp(), fork() */
#include "plan/wisdom.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "lists.h"
#include "machines.h"
#include "plan/registry.h"
#include "recursion/engines.h"
#include "support.h"

enum { TEXT = 1 << 14 };

static dpr_key sum_of_f32(void) {
    dpr_key key = {.words = {0}};
    key.f.op = DPR_ROW(DPR_SUM);
    key.f.dtype = DPR_ROW(DPR_F32);
    key.f.ops = UINT32_C(1) << key.f.op;
    key.f.in_memory = DPR_MEMORY_HOST;
    return key;
}

static const dpr_strategy *strategy_of(const char *name) {
    return dpr_strategies[dpr_strategy_find(name)];
}

/* Adds a time to *wisdom. */
static void learn(dpr_wisdom **wisdom, const dpr_machine *machine, const char *strategy, uint64_t count,
                  double seconds) {
    const dpr_key key = sum_of_f32();
    dpr_wisdom *one = NULL, *joined = NULL;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_single(machine, strategy_of(strategy), &key, count, seconds, &one));
    EXPECT_STATUS(DPR_OK, dpr_wisdom_join(*wisdom, one, &joined));
    dpr_wisdom_release(one);
    dpr_wisdom_release(*wisdom);
    *wisdom = joined;
}

/* Wisdom of a machine with a CPU: three times of two strategies. */
static dpr_wisdom *some_wisdom(dpr_machine *machine) {
    dpr_wisdom *wisdom = dpr_wisdom_none();
    EXPECT_TRUE(machine_load("cpu-only", machine));
    learn(&wisdom, machine, "cpu.simd", 4096, 2e-6);
    learn(&wisdom, machine, "cpu.simd", 1024, 1e-6);
    learn(&wisdom, machine, "cpu.serial", 1024, 5e-7);
    return wisdom;
}

static size_t format(const dpr_wisdom *wisdom, char *text) {
    size_t size = TEXT;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_format(wisdom, text, &size));
    return size - 1;
}

/* ---- Text ---- */

TEST(Wisdom, text_is_read_back) {
    dpr_machine machine;
    char text[TEXT], again[TEXT];
    dpr_wisdom *wisdom = some_wisdom(&machine), *read = NULL;
    const size_t size = format(wisdom, text);
    EXPECT_CONTAINS(text, "dpr wisdom 1\nlibrary ");
    EXPECT_CONTAINS(text, "\ntime cpu.serial sum f32 host call array 1024:500000\n"
                          "time cpu.simd sum f32 host call array 1024:1000000 4096:2000000\nend 5 ");
    ASSERT_STATUS(DPR_OK, dpr_wisdom_parse(text, size, &read));
    EXPECT_EQ_U64(size, format(read, again));
    EXPECT_EQ_STR(text, again);
    dpr_wisdom_release(wisdom);
    dpr_wisdom_release(read);
}

/* No cut, no changed byte and no added byte passes, and every sentence names a line. */
TEST(Wisdom, text_that_is_cut_off_or_changed) {
    dpr_machine machine;
    char text[TEXT];
    dpr_wisdom *wisdom = some_wisdom(&machine), *read = NULL;
    const size_t size = format(wisdom, text);
    for (size_t n = 0; n < size; n++) {
        EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, n, &read));
        EXPECT_CONTAINS(dpr_last_error(), "line ");
    }
    for (size_t i = 0; i < size && !test_failed(); i++) {
        static const char bytes[] = {'\0', '\n', ' ', ':', '0', '9', 'a', 'z', '-', '\xff'};
        const char right = text[i];
        for (size_t b = 0; b < sizeof bytes; b++) {
            text[i] = bytes[b];
            if (bytes[b] != right)
                EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, size, &read));
        }
        text[i] = right;
    }
    memcpy(text + size, "\n", 2);
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, size + 1, &read));
    EXPECT_TRUE(read == NULL);
    dpr_wisdom_release(wisdom);
}

/* FNV-1a, as wisdom.c has it. */
static unsigned long long sign(const char *text, size_t size) {
    uint64_t signature = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        signature = (signature ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return signature;
}

/* Expects text of these lines below the head, rightly signed, to be refused with a sentence. In the text, a zero byte
 * takes the place of each '@'. */
static void expect_refusal(const char *lines, const char *sentence) {
    char text[TEXT];
    dpr_wisdom *none = dpr_wisdom_none(), *read = NULL;
    int count = 2;
    (void)format(none, text);
    char *end = strstr(text, "end ");
    (void)snprintf(end, TEXT / 2, "%s", lines);
    for (const char *c = lines; *c; c++)
        count += *c == '\n';
    size_t size = strlen(text);
    for (char *at = text; (at = memchr(at, '@', size - (size_t)(at - text))) != NULL;)
        *at = 0;
    size += (size_t)snprintf(text + size, TEXT / 4, "end %d %016llx\n", count, sign(text, size));
    EXPECT_STATUS(sentence ? DPR_ERR_WISDOM : DPR_OK, dpr_wisdom_parse(text, size, &read));
    if (sentence)
        EXPECT_EQ_STR(sentence, dpr_last_error());
    dpr_wisdom_release(read);
    dpr_wisdom_release(none);
}

#define CPU "cpu 0123456789abcdef A CPU\n"
#define TIME "time cpu.simd sum f32 host call array "
#define BAD_TIME "line 4: a time should be a number of elements, a colon, and picoseconds, both at least 1"

TEST(Wisdom, text_that_is_refused) {
    expect_refusal(CPU TIME "1:1\n", NULL);
    expect_refusal(CPU TIME "1:1 2:1000000000000000 9007199254740992:1\n", NULL);
    expect_refusal("time cpu.simd sum f32 host call offsets:3 1:1\n", "line 3: no processor stands above it");
    expect_refusal(CPU "time cpu.simd sum f32 host call offsets:3 1:1\n", NULL);
    expect_refusal(CPU TIME "0:1\n", BAD_TIME);
    expect_refusal(CPU TIME "1:0\n", BAD_TIME);
    expect_refusal(CPU TIME "1:01\n", BAD_TIME);
    expect_refusal(CPU TIME "1:1000000000000001\n", BAD_TIME);
    expect_refusal(CPU TIME "9007199254740993:1\n", BAD_TIME);
    expect_refusal(CPU TIME "18446744073709551617:1\n", BAD_TIME);
    expect_refusal(CPU TIME "-1:1\n", BAD_TIME);
    expect_refusal(CPU TIME "1:1:1\n", BAD_TIME);
    expect_refusal(CPU TIME "1:1 \n", BAD_TIME);
    expect_refusal(CPU TIME "1:1  2:1\n", BAD_TIME);
    expect_refusal(CPU TIME "\n", BAD_TIME);
    expect_refusal(CPU TIME "1:5@00\n", BAD_TIME);
    expect_refusal(CPU "time cpu.simd@ sum f32 host call array 1:1\n", "line 4: the strategy is none of this build");
    expect_refusal("cpu 0123456789abcdef A@CPU\n", "line 3: the processor's name is too long, or has a zero byte");
    expect_refusal(CPU TIME "2:1 1:1\n", "line 4: times do not rise by place and by number of elements");
    expect_refusal(CPU TIME "1:1 1:1\n", "line 4: times do not rise by place and by number of elements");
    expect_refusal(CPU TIME "1:1\n" TIME "1:1\n", "line 5: times do not rise by place and by number of elements");
    expect_refusal(CPU "time cpu.simt sum f32 host call array 1:1\n", "line 4: the strategy is none of this build");
    expect_refusal(CPU "time cpu.simd add f32 host call array 1:1\n", "line 4: there is no such operation");
    expect_refusal(CPU "time cpu.simd bor f32 host call array 1:1\n",
                   "line 4: there is no such element type, or the operation has no meaning for it");
    expect_refusal(CPU "time cpu.simd sum f32 heap call array 1:1\n", "line 4: there is no such memory");
    expect_refusal(CPU "time cpu.simd sum f32 host graph array 1:1\n", "line 4: it should say \"call\" or \"stream\"");
    expect_refusal(CPU "time cpu.simd sum f32 host call array:1 1:1\n", "line 4: there is no such shape");
    expect_refusal(CPU "time cpu.simd sum f32 host call axes 1:1\n", "line 4: there is no such shape");
    expect_refusal(CPU "time cpu.simd sum f32 host call axes:64 1:1\n", "line 4: there is no such shape");
    expect_refusal("gpu 0123456789abcdef A GPU\n" TIME "1:1\n", "line 4: the strategy does not run on this processor");
    expect_refusal(CPU CPU, "line 4: the processor stands there twice");
    expect_refusal("cpu 0123456789abcdef\n",
                   "line 3: it should have a space and a name, perhaps an empty one, behind the signature");
    expect_refusal("cpu 0123456789abcdef \n", NULL);
    expect_refusal("cpu 123 A CPU\n", "line 3: it should have a signature of 16 hexadecimal digits");
    expect_refusal("cpu 0123456789ABCDEF A CPU\n", "line 3: it should have a signature of 16 hexadecimal digits");
    expect_refusal("tpu 0123456789abcdef A TPU\n",
                   "line 3: it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
    expect_refusal("\n", "line 3: it should begin with \"cpu\", \"gpu\", \"time\" or \"end\"");
    expect_refusal("cpu 0123456789abcdef 0123456789012345678901234567890123456789012345678901234567890123\n",
                   "line 3: the processor's name is too long, or has a zero byte");
}

TEST(Wisdom, of_another_version) {
    static const char text[] = "dpr wisdom 1\nlibrary 0.0.9 0123456789abcdef\nend 2 0123456789abcdef\n";
    char sentence[100];
    dpr_wisdom *read = NULL;
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, sizeof text - 1, &read));
    (void)snprintf(sentence, sizeof sentence, "line 2: it was written by dpr 0.0.9, and this is dpr %s", dpr_version());
    EXPECT_EQ_STR(sentence, dpr_last_error());
}

/* 10000 times: read in one pass, and found. */
TEST(Wisdom, large_text) {
    enum { LINES = 100, TIMES = 100, BYTES = 1 << 19 };
    char *text = malloc(BYTES);
    dpr_wisdom *none = dpr_wisdom_none(), *read = NULL;
    (void)format(none, text);
    char *at = strstr(text, "end ");
    at += snprintf(at, 100, CPU);
    for (int line = 0; line < LINES; line++) {
        at += snprintf(at, 100, "time cpu.simd sum f32 host call %s:%d", line < 50 ? "offsets" : "ranges", line % 50);
        for (int i = 1; i <= TIMES; i++)
            at += snprintf(at, 100, " %d:%d", i * 1000, 1000000 + line);
        at += snprintf(at, 100, "\n");
    }
    const unsigned long long signature = sign(text, (size_t)(at - text));
    at += snprintf(at, 100, "end %d %016llx\n", 3 + LINES, signature);
    const double began = test_now();
    ASSERT_STATUS(DPR_OK, dpr_wisdom_parse(text, (size_t)(at - text), &read));
    test_record("milliseconds", "%.2f", 1e3 * (test_now() - began));
    EXPECT_EQ_U64(LINES * TIMES, read->times);
    EXPECT_EQ_U64(LINES * TIMES, dpr_wise_times_of(read, 0));
    dpr_wisdom_release(read);
    dpr_wisdom_release(none);
    free(text);
}

/* ---- The planner ---- */

static double expect_seconds(const dpr_machine *machine, const char *strategy, size_t count, int measured) {
    const dpr_key key = sum_of_f32();
    int found = -1;
    const double seconds = dpr_expect(strategy_of(strategy), &key, machine, (dpr_size){count, 1}, &found);
    EXPECT_EQ_I64(measured, found);
    return seconds;
}

static double predicted(const dpr_machine *machine, const char *strategy, size_t count) {
    const dpr_key key = sum_of_f32();
    return dpr_predict(strategy_of(strategy), &key, &machine->caps, (dpr_size){count, 1});
}

TEST(Wisdom, predictions_are_corrected) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    EXPECT_NEAR_F64(predicted(&machine, "cpu.simd", 1024), expect_seconds(&machine, "cpu.simd", 1024, 0), 0);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_NEAR_F64(1e-6, expect_seconds(&machine, "cpu.simd", 1024, 1), 1e-12);
    EXPECT_NEAR_F64(2e-6, expect_seconds(&machine, "cpu.simd", 4096, 1), 1e-12);
    EXPECT_NEAR_F64(5e-7, expect_seconds(&machine, "cpu.serial", 1024, 1), 1e-12);
    EXPECT_NEAR_F64(predicted(&machine, "cpu.threads", 1024), expect_seconds(&machine, "cpu.threads", 1024, 0), 0);
    const double low = 1e-6 / predicted(&machine, "cpu.simd", 1024),
                 high = 2e-6 / predicted(&machine, "cpu.simd", 4096);
    EXPECT_NEAR_F64((low + high) / 2,
                    expect_seconds(&machine, "cpu.simd", 2048, 1) / predicted(&machine, "cpu.simd", 2048), 1e-9);
    EXPECT_NEAR_F64(low, expect_seconds(&machine, "cpu.simd", 0, 1) / predicted(&machine, "cpu.simd", 0), 1e-9);
    EXPECT_NEAR_F64(
        high, expect_seconds(&machine, "cpu.simd", SIZE_MAX / 128, 1) / predicted(&machine, "cpu.simd", SIZE_MAX / 128),
        1e-6);
    dpr_wisdom_release(wisdom);
}

/* Engines of recursions take the time of launches: of the 8.4 us of an H200, or of what wisdom has, here twice that. */
TEST(Wisdom, engines_take_as_long_as_launches) {
    dpr_key key = sum_of_f32();
    dpr_machine machine;
    dpr_wisdom *wisdom;
    key.f.in_memory = DPR_MEMORY_DEVICE;
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_NEAR_F64(9e-6, dpr_engine_seconds_on(&machine, 9e-6), 0);
    if (dpr_strategy_find("flat.block") < 0) /* a build without GPUs knows no times of theirs */
        return;
    ASSERT_STATUS(DPR_OK, dpr_wisdom_single(&machine, strategy_of("flat.block"), &key, 1, 16.8e-6, &wisdom));
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_NEAR_F64(18e-6, dpr_engine_seconds_on(&machine, 9e-6), 1e-11);
    dpr_wisdom_attach(NULL, &machine);
    dpr_wisdom_release(wisdom);
}

/* Sums of long arrays show how fast memory is; of short ones, or by one of the two strategies alone, they do not. */
TEST(Wisdom, rates_of_the_cpu_come_from_long_sums) {
    const size_t elements = (size_t)1 << 30;
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none();
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    const dpr_cpu_caps assumed = machine.caps.cpu;
    learn(&wisdom, &machine, "cpu.simd", elements, 4e-9 * (double)elements / 12.5);
    learn(&wisdom, &machine, "cpu.threads", 1024, 1e-6);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.rates_measured);
    EXPECT_EQ_I64(assumed.core_mb_per_s, machine.caps.cpu.core_mb_per_s);
    EXPECT_EQ_I64(assumed.total_mb_per_s, machine.caps.cpu.total_mb_per_s);
    learn(&wisdom, &machine, "cpu.threads", elements, 4e-9 * (double)elements / 100);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(machine.rates_measured);
    EXPECT_EQ_I64(12500, machine.caps.cpu.core_mb_per_s);
    EXPECT_EQ_I64(100000, machine.caps.cpu.total_mb_per_s);
    learn(&wisdom, &machine, "cpu.threads", (size_t)1 << 53, 1e-9); /* no memory is so fast */
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.rates_measured);
    dpr_wisdom_release(wisdom);
}

/* The cheapest by measured times is chosen; not if estimates are asked for, or by another machine. */
TEST(Wisdom, choices_follow_what_was_measured) {
    dpr_machine machine, other;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    dpr_key key = sum_of_f32();
    dpr_choice choice;
    ASSERT_TRUE(machine_load("one-core", &other));
    learn(&wisdom, &machine, "cpu.serial", 1 << 20, 1e-5);
    learn(&wisdom, &machine, "cpu.simd", 1 << 20, 2e-5);
    learn(&wisdom, &machine, "cpu.threads", 1 << 20, 3e-5);
    dpr_wisdom_attach(wisdom, &machine);
    dpr_wisdom_attach(wisdom, &other);
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_EQ_STR("cpu.serial", dpr_choice_at(&choice, 1 << 20)->strategy->name);
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &other, &choice));
    EXPECT_TRUE(strcmp("cpu.serial", dpr_choice_at(&choice, 1 << 20)->strategy->name) != 0);
    key.f.effort = DPR_ESTIMATE;
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_TRUE(strcmp("cpu.serial", dpr_choice_at(&choice, 1 << 20)->strategy->name) != 0);
    dpr_wisdom_release(wisdom);
}

TEST(Wisdom, measured_strategies_alone) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    dpr_key key = sum_of_f32();
    dpr_choice choice;
    dpr_wisdom_attach(wisdom, &machine);
    key.f.effort = DPR_WISDOM_ONLY;
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    for (int i = 0; i < choice.steps; i++)
        EXPECT_TRUE(strcmp(choice.step[i].strategy->name, "cpu.threads") != 0);
    key.f.dtype = DPR_ROW(DPR_F64);
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_choose(&key, &machine, &choice));
    EXPECT_CONTAINS(dpr_last_error(), "no strategy was measured for this problem");
    dpr_wisdom_release(wisdom);
}

/* Times that change the cheapest strategy from each power of two to the next, and so more often than a choice has
 * steps. */
TEST(Wisdom, noise_does_not_end_a_call) {
    dpr_machine machine;
    const dpr_key key = sum_of_f32();
    dpr_wisdom *wisdom = dpr_wisdom_none();
    dpr_choice choice, plain;
    char text[TEXT];
    size_t size = sizeof text;
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &plain));
    EXPECT_EQ_I64(0, plain.estimated);
    for (uint64_t i = 0; i < 53; i++) {
        learn(&wisdom, &machine, "cpu.serial", UINT64_C(1) << i, i % 2 ? 1e-12 : 9e-12);
        learn(&wisdom, &machine, "cpu.simd", UINT64_C(1) << i, i % 2 ? 9e-12 : 1e-12);
    }
    dpr_wisdom_attach(wisdom, &machine);
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_EQ_I64(1, choice.estimated);
    EXPECT_STATUS(DPR_OK, dpr_explain(&choice, &machine, &(dpr_run){.count = 1024}, text, &size));
    EXPECT_CONTAINS(text, ", the cheapest by prediction\n");
    EXPECT_TRUE(!strstr(text, "us, measured"));
    EXPECT_EQ_I64(plain.steps, choice.steps);
    for (int i = 0; i < plain.steps; i++)
        EXPECT_TRUE(choice.step[i].upto == plain.step[i].upto && choice.step[i].strategy == plain.step[i].strategy);
    dpr_wisdom_release(wisdom);
}

TEST(Wisdom, newer_times_replace_older_ones) {
    dpr_machine machine, other;
    dpr_wisdom *a = some_wisdom(&machine), *b = dpr_wisdom_none(), *joined = NULL;
    ASSERT_TRUE(machine_load("one-core", &other));
    learn(&b, &other, "cpu.simd", 1024, 7e-6);
    learn(&b, &machine, "cpu.simd", 1024, 3e-6);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_join(a, b, &joined));
    dpr_wisdom_attach(joined, &machine);
    dpr_wisdom_attach(joined, &other);
    EXPECT_EQ_U64(4, joined->times);
    EXPECT_NEAR_F64(3e-6, expect_seconds(&machine, "cpu.simd", 1024, 1), 1e-12);
    EXPECT_NEAR_F64(2e-6, expect_seconds(&machine, "cpu.simd", 4096, 1), 1e-12);
    EXPECT_NEAR_F64(7e-6, expect_seconds(&other, "cpu.simd", 1024, 1), 1e-12);
    dpr_wisdom_release(joined);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_join(b, a, &joined));
    dpr_wisdom_attach(joined, &machine);
    EXPECT_NEAR_F64(1e-6, expect_seconds(&machine, "cpu.simd", 1024, 1), 1e-12);
    dpr_wisdom_release(joined);
    dpr_wisdom_release(a);
    dpr_wisdom_release(b);
}

TEST(Wisdom, times_without_meaning) {
    dpr_machine machine;
    dpr_wisdom *one = NULL;
    dpr_key key = sum_of_f32();
    const dpr_strategy *simd = strategy_of("cpu.simd");
    const double bad[] = {0, -1, 1e-13, 1001, 0.0 / (one ? 1.0 : 0.0)};
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    for (size_t i = 0; i < LENGTH(bad); i++)
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_single(&machine, simd, &key, 1, bad[i], &one));
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_single(&machine, simd, &key, 0, 1, &one));
    key.f.fused = 1;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_wisdom_single(&machine, simd, &key, 1, 1, &one));
    EXPECT_TRUE(one == NULL);
}

/* ---- Files ---- */

typedef struct scene {
    char folder[64], path[96];
    dpr_ctx *ctx;
} scene;

static void set_up(void *context) {
    scene *s = context;
    (void)snprintf(s->folder, sizeof s->folder, "/tmp/dpr-wisdom-XXXXXX");
    ASSERT_TRUE(mkdtemp(s->folder) != NULL);
    (void)snprintf(s->path, sizeof s->path, "%s/wisdom", s->folder);
    dpr_wisdom_forget();
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->ctx));
}

static void tear_down(void *context) {
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

static dpr_status add(const scene *s, const char *strategy, size_t count, double seconds) {
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = strategy;
    problem.options = &options;
    problem.count = count;
    return dpr_wisdom_add(dpr_ctx_machine(s->ctx), &problem, 0, seconds);
}

static const char *status_text(void) {
    static char text[TEXT];
    size_t size = sizeof text;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_status(text, &size));
    return text;
}

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
    char text[TEXT];
    size_t size = sizeof text;
    float out = 0, finished = 0;
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
    EXPECT_CONTAINS(status_text(), "3 times of 1 processor\n");
    dpr_plan_destroy(plan);
    problem.count = 0;
    ASSERT_STATUS(DPR_OK, dpr_plan_create(fixture->ctx, &problem, &plan));
    dpr_plan_destroy(plan);
    problem.memory = DPR_MEMORY_PINNED;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_plan_create(fixture->ctx, &problem, &plan));
    EXPECT_CONTAINS(dpr_last_error(), "problem->memory is pinned memory");
    problem.memory = DPR_MEMORY_HOST;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION,
                  dpr_reduce_ex(fixture->ctx, in, &out, LENGTH(in), DPR_F32, DPR_SUM, &options));
    EXPECT_CONTAINS(dpr_last_error(), "options->effort is DPR_MEASURE, which only dpr_plan_create() takes");
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
    dpr_decision_destroy(decision);
}

FILE_TEST(files_that_cannot_be_read_or_written) {
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
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_options options = DPR_OPTIONS_INIT;
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
    options.strategy = "cpu.serial";
    problem.options = &options;
    problem.count = 1000;
    EXPECT_STATUS(DPR_OK, dpr_wisdom_find(dpr_ctx_machine(fixture->ctx), &problem, 0, &seconds));
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
