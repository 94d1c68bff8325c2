/* Wisdom: its text, and what the planner makes of it. */
#include "plan/wisdom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "fnv.h"
#include "machines.h"
#include "support.h"
#include "wisdom_scene.h"

enum { TEXT = 1 << 14 };

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

static double expect_seconds(const dpr_machine *machine, const char *strategy, size_t count, dpr_basis basis) {
    const dpr_key key = sum_of_f32();
    dpr_basis found = DPR_BASIS_PREDICTED;
    const double seconds = dpr_expect(strategy_of(strategy), &key, machine, (dpr_size){count, 1}, &found);
    EXPECT_EQ_I64(basis, found);
    return seconds;
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
    size += (size_t)snprintf(text + size, TEXT / 4, "end %d %016llx\n", count, fnv_1a(text, size));
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
    expect_refusal("cpu 0123456789abcdef A@CPU\n", "line 3: the processor's name has a control character");
    expect_refusal("cpu 0123456789abcdef A\033[2JCPU\n", "line 3: the processor's name has a control character");
    expect_refusal("cpu 0123456789abcdef A\aCPU\n", "line 3: the processor's name has a control character");
    expect_refusal("cpu 0123456789abcdef A\177CPU\n", "line 3: the processor's name has a control character");
    expect_refusal("cpu 0123456789abcdef \303\204 \342\204\242 CPU\n", NULL);
    expect_refusal(CPU TIME "2:1 1:1\n", "line 4: times do not rise by place and by number of elements");
    expect_refusal(CPU TIME "1:1 1:1\n", "line 4: times do not rise by place and by number of elements");
    expect_refusal(CPU TIME "1:1\n" TIME "1:1\n", "line 5: times do not rise by place and by number of elements");
    expect_refusal(CPU "time cpu.simt sum f32 host call array 1:1\n", "line 4: the strategy is none of this build");
    expect_refusal(CPU "time cpu.simd add f32 host call array 1:1\n", "line 4: there is no such operation");
    expect_refusal(CPU "time cpu.simd bor f32 host call array 1:1\n",
                   "line 4: there is no such element type, or the operation has no meaning for it");
    expect_refusal(CPU "time cpu.simd sum f32 heap call array 1:1\n", "line 4: there is no such memory");
    expect_refusal(CPU "time cpu.simd sum f32 host graph array 1:1\n",
                   "line 4: it should say \"call\", \"stream\", \"warm-call\" or \"warm-stream\"");
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
                   "line 3: the processor's name is too long");
}

TEST(Wisdom, text_of_too_many_processors) {
    char lines[TEXT / 2];
    size_t n = 0;
    for (int i = 0; i <= DPR_WISE_PROCESSORS; i++)
        n += (size_t)snprintf(lines + n, sizeof lines - n, "cpu %016x A CPU\n", i);
    expect_refusal(lines, "line 67: there are too many processors");
}

/* Wisdom of a machine whose name has control characters can be read back. */
TEST(Wisdom, names_have_no_control_characters) {
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none(), *read = NULL;
    char text[TEXT];
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    (void)snprintf(machine.caps.cpu_name, sizeof machine.caps.cpu_name, "A\nnew\033 CPU");
    learn(&wisdom, &machine, "cpu.simd", 1024, 1e-6);
    const size_t size = format(wisdom, text);
    EXPECT_CONTAINS(text, " A?new? CPU\n");
    ASSERT_STATUS(DPR_OK, dpr_wisdom_parse(text, size, &read));
    dpr_wisdom_attach(read, &machine);
    (void)expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_MEASURED);
    dpr_wisdom_release(wisdom);
    dpr_wisdom_release(read);
}

TEST(Wisdom, of_another_version) {
    static const char text[] = "dpr wisdom 1\nlibrary 0.0.9 0123456789abcdef\nend 2 0123456789abcdef\n";
    char sentence[100];
    dpr_wisdom *read = NULL;
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, sizeof text - 1, &read));
    (void)snprintf(sentence, sizeof sentence, "line 2: it was written by dpr 0.0.9, and this is dpr %s", dpr_version());
    EXPECT_EQ_STR(sentence, dpr_last_error());
    static const char hostile[] = "dpr wisdom 1\nlibrary 0.\033.9 0123456789abcdef\nend 2 0123456789abcdef\n";
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(hostile, sizeof hostile - 1, &read));
    EXPECT_EQ_STR("line 2: it should begin with \"library\" and a version", dpr_last_error());
}

/* Milliseconds that reading the text takes, in the best of some passes. */
static double milliseconds_to_read(const char *text, size_t size) {
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        dpr_wisdom *read = NULL;
        const double began = test_now();
        EXPECT_STATUS(DPR_OK, dpr_wisdom_parse(text, size, &read));
        best = fmin(best, 1e3 * (test_now() - began));
        dpr_wisdom_release(read);
    }
    return best;
}

/* 10000 times: read in one pass, and found. An EPYC takes 0.8 ms. */
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
    const unsigned long long signature = fnv_1a(text, (size_t)(at - text));
    at += snprintf(at, 100, "end %d %016llx\n", 3 + LINES, signature);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_parse(text, (size_t)(at - text), &read));
    const double ms = milliseconds_to_read(text, (size_t)(at - text));
    test_record("milliseconds", "%.2f", ms);
    EXPECT_THAT(ms < 50 * TEST_SLOWNESS, "%.3g ms", ms);
    EXPECT_EQ_U64(LINES * TIMES, read->times);
    EXPECT_EQ_U64(LINES * TIMES, dpr_wise_times_of(read, 0));
    dpr_wisdom_release(read);
    dpr_wisdom_release(none);
    free(text);
}

/* ---- The planner ---- */

static double predicted(const dpr_machine *machine, const char *strategy, size_t count) {
    const dpr_key key = sum_of_f32();
    return dpr_predict(strategy_of(strategy), &key, &machine->caps, (dpr_size){count, 1});
}

TEST(Wisdom, predictions_are_corrected) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    EXPECT_NEAR_F64(predicted(&machine, "cpu.simd", 1024),
                    expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_PREDICTED), 0);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_NEAR_F64(1e-6, expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(2e-6, expect_seconds(&machine, "cpu.simd", 4096, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(5e-7, expect_seconds(&machine, "cpu.serial", 1024, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(predicted(&machine, "cpu.threads", 1024),
                    expect_seconds(&machine, "cpu.threads", 1024, DPR_BASIS_PREDICTED), 0);
    const double low = 1e-6 / predicted(&machine, "cpu.simd", 1024),
                 high = 2e-6 / predicted(&machine, "cpu.simd", 4096);
    EXPECT_NEAR_F64(
        (low + high) / 2,
        expect_seconds(&machine, "cpu.simd", 2048, DPR_BASIS_MEASURED) / predicted(&machine, "cpu.simd", 2048), 1e-9);
    EXPECT_NEAR_F64(
        low, expect_seconds(&machine, "cpu.simd", 0, DPR_BASIS_EXTRAPOLATED) / predicted(&machine, "cpu.simd", 0),
        1e-9);
    EXPECT_NEAR_F64(high,
                    expect_seconds(&machine, "cpu.simd", SIZE_MAX / 128, DPR_BASIS_EXTRAPOLATED)
                        / predicted(&machine, "cpu.simd", SIZE_MAX / 128),
                    1e-6);
    dpr_wisdom_release(wisdom);
}

/* Up to a factor of two beyond the times that were measured, a figure is called measured. */
TEST(Wisdom, far_from_what_was_measured) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    const dpr_key key = sum_of_f32();
    dpr_choice choice;
    char text[TEXT];
    size_t size = sizeof text;
    dpr_wisdom_attach(wisdom, &machine);
    (void)expect_seconds(&machine, "cpu.simd", 511, DPR_BASIS_EXTRAPOLATED);
    (void)expect_seconds(&machine, "cpu.simd", 512, DPR_BASIS_MEASURED);
    (void)expect_seconds(&machine, "cpu.simd", 8192, DPR_BASIS_MEASURED);
    (void)expect_seconds(&machine, "cpu.simd", 8193, DPR_BASIS_EXTRAPOLATED);
    (void)expect_seconds(&machine, "cpu.simd", SIZE_MAX, DPR_BASIS_EXTRAPOLATED);
    learn(&wisdom, &machine, "cpu.threads", 1024, 1e-9);
    dpr_wisdom_attach(wisdom, &machine);
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_STATUS(DPR_OK, dpr_explain(&choice, &machine, &(dpr_run){.count = 1 << 30}, NULL, text, &size));
    EXPECT_CONTAINS(text, "strategy:  cpu.threads, the cheapest by prediction, extrapolated from times that were "
                          "measured here\n");
    EXPECT_CONTAINS(text, " us, extrapolated from measured times\n");
    EXPECT_TRUE(!strstr(text, "us, measured"));
    dpr_wisdom_release(wisdom);
}

/* Times of short arrays, which caches hold, do not make memory faster for long ones. */
TEST(Wisdom, extrapolated_times_are_no_shorter_than_reading) {
    const size_t elements = (size_t)1 << 30;
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none();
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    learn(&wisdom, &machine, "cpu.threads", 1024, 1e-9);
    dpr_wisdom_attach(wisdom, &machine);
    const double reading = 4 * (double)elements / (1e6 * (double)machine.caps.cpu.total_mb_per_s);
    EXPECT_NEAR_F64(reading, expect_seconds(&machine, "cpu.threads", elements, DPR_BASIS_EXTRAPOLATED), 1e-9);
    EXPECT_NEAR_F64(1e-9, expect_seconds(&machine, "cpu.threads", 1024, DPR_BASIS_MEASURED), 1e-15);
    EXPECT_TRUE(expect_seconds(&machine, "cpu.threads", 1, DPR_BASIS_EXTRAPOLATED) < 1e-9);
    dpr_wisdom_release(wisdom);
}

/* Short sums show what a launch takes; long ones do not. */
TEST(Wisdom, the_time_of_a_launch) {
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none();
    dpr_key key = sum_of_f32();
    key.f.dtype = DPR_ROW(DPR_I32);
    key.f.in_memory = DPR_MEMORY_DEVICE;
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_NEAR_F64(0, machine.launch_seconds, 0);
    if (dpr_strategy_find("flat.block") >= 0) { /* a build without GPUs knows no times of theirs */
        learn_of(key, &wisdom, &machine, "flat.block", 4097, 17e-6);
        dpr_wisdom_attach(wisdom, &machine);
        EXPECT_NEAR_F64(0, machine.launch_seconds, 0);
        learn_of(key, &wisdom, &machine, "flat.block", 256, 7e-6);
        dpr_wisdom_attach(wisdom, &machine);
        EXPECT_NEAR_F64(7e-6, machine.launch_seconds, 1e-12);
    }
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

/* A sum shows it that gives each thread a part of 64 KiB, and that reading does not hide. */
TEST(Wisdom, how_long_threads_take_comes_from_short_sums) {
    const size_t elements = (size_t)1 << 30, part = 65536 / 4;
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none();
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    const int64_t assumed = machine.caps.cpu.wake_ns;
    const size_t threads = (size_t)machine.caps.cpu.threads, least = threads * part;
    ASSERT_TRUE(threads > 1);
    learn(&wisdom, &machine, "cpu.threads", least, 7e-6 + (double)least * 4 / 100e9);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.wake_measured); /* how long reading takes is not known */
    learn(&wisdom, &machine, "cpu.simd", elements, 4e-9 * (double)elements / 100);
    learn(&wisdom, &machine, "cpu.threads", elements, 4e-9 * (double)elements / 100);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(machine.wake_measured);
    EXPECT_NEAR_F64(7000, (double)machine.caps.cpu.wake_ns, 1);
    dpr_wisdom_release(wisdom);

    wisdom = dpr_wisdom_none();
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    learn(&wisdom, &machine, "cpu.simd", elements, 4e-9 * (double)elements / 100);
    learn(&wisdom, &machine, "cpu.threads", elements, 4e-9 * (double)elements / 100);
    learn(&wisdom, &machine, "cpu.threads", least - 1, 3e-6);     /* one thread has no part */
    learn(&wisdom, &machine, "cpu.threads", 8 * least + 1, 3e-2); /* mostly reading */
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(machine.rates_measured && !machine.wake_measured);
    EXPECT_EQ_I64(assumed, machine.caps.cpu.wake_ns);
    learn(&wisdom, &machine, "cpu.threads", least, 1e-9); /* quicker than reading */
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.wake_measured);
    learn(&wisdom, &machine, "cpu.threads", least, 1.1); /* longer than a capability may be */
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.wake_measured);
    EXPECT_EQ_I64(assumed, machine.caps.cpu.wake_ns);
    dpr_wisdom_release(wisdom);
}

/* The explanation of a short sum. */
static const char *explain_sum(const dpr_machine *machine, char text[TEXT]) {
    const dpr_key key = sum_of_f32();
    dpr_choice choice;
    size_t size = TEXT;
    EXPECT_STATUS(DPR_OK, dpr_choose(&key, machine, &choice));
    EXPECT_STATUS(DPR_OK, dpr_explain(&choice, machine, &(dpr_run){.count = 1024}, NULL, text, &size));
    return text;
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

/* The CPU reads pinned memory as pageable memory: its times of that count where there are no others. */
TEST(Wisdom, times_of_pageable_memory_count_for_pinned_memory) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    dpr_key key = sum_of_f32();
    key.f.in_memory = DPR_MEMORY_PINNED;
    learn_of(key, &wisdom, &machine, "cpu.serial", 1024, 7e-7);
    dpr_wisdom_attach(wisdom, &machine);
    const dpr_wise_curve serial = dpr_wise_find(&machine, strategy_of("cpu.serial"), &key);
    ASSERT_TRUE(serial.n == 1);
    EXPECT_EQ_U64(700000, serial.time[0].picoseconds);
    EXPECT_EQ_U64(2, dpr_wise_find(&machine, strategy_of("cpu.simd"), &key).n);
    EXPECT_NEAR_F64(0, dpr_wise_seconds(&machine, strategy_of("cpu.simd"), &key, 1024), 0);
    EXPECT_EQ_U64(0, dpr_wise_find(&machine, strategy_of("cpu.threads"), &key).n);
    key.f.effort = DPR_MEASURE; /* its times are of warm caches */
    learn_of(key, &wisdom, &machine, "cpu.simd", 1024, 9e-7);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_EQ_U64(1, dpr_wise_find(&machine, strategy_of("cpu.simd"), &key).n);
    key.f.effort = DPR_EFFORT_DEFAULT;
    EXPECT_EQ_U64(2, dpr_wise_find(&machine, strategy_of("cpu.simd"), &key).n);
    key.f.in_memory = DPR_MEMORY_DEVICE;
    EXPECT_EQ_U64(0, dpr_wise_find(&machine, strategy_of("cpu.simd"), &key).n);
    dpr_wisdom_release(wisdom);
}

#ifdef DPR_WITH_CUDA
/* Times of both sides decide which one reads pinned memory. */
TEST(Wisdom, choices_between_gpu_and_cpu_follow_what_was_measured) {
    for (int gpu_is_quicker = 0; gpu_is_quicker < 2; gpu_is_quicker++) {
        dpr_machine machine;
        dpr_choice choice;
        dpr_wisdom *wisdom = dpr_wisdom_none();
        dpr_key key = sum_of_f32();
        key.f.in_memory = DPR_MEMORY_PINNED;
        ASSERT_TRUE(machine_load("h100", &machine));
        for (size_t i = 0; i < DPR_STRATEGY_COUNT; i++) {
            const dpr_strategy *s = dpr_strategies[i];
            const double quick = 1e-6 * (double)(i + 1);
            if (s->role == DPR_ROLE_CANDIDATE && !dpr_refusal(s, &key, &machine.caps))
                learn_of(key, &wisdom, &machine, s->name, 4096,
                         (s->side == DPR_ON_GPU) == gpu_is_quicker ? quick : 1e-3);
        }
        dpr_wisdom_attach(wisdom, &machine);
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_EQ_I64(gpu_is_quicker ? DPR_ON_GPU : DPR_ON_CPU, dpr_choice_at(&choice, 4096)->strategy->side);
        dpr_wisdom_release(wisdom);
    }
}
#endif

/* The same CPU with fewer threads has no times, and the explanation says why. */
TEST(Wisdom, of_other_numbers_of_threads) {
    static const char note[] = "  not used: times of this CPU with other cores, threads or vector instructions\n";
    dpr_machine machine, other;
    dpr_wisdom *wisdom = some_wisdom(&machine);
    char text[TEXT];
    ASSERT_TRUE(machine_load("one-core", &other));
    dpr_wisdom_attach(wisdom, &machine);
    dpr_wisdom_attach(wisdom, &other);
    EXPECT_TRUE(!strstr(explain_sum(&machine, text), note));
    EXPECT_TRUE(!strstr(explain_sum(&other, text), note));
    machine.caps.cpu.threads--;
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_CONTAINS(explain_sum(&machine, text), note);
    dpr_wisdom_release(wisdom);
}

/* A strategy is the cheapest at a number of elements that was measured, and not at the powers of two around it. */
TEST(Wisdom, choices_between_powers_of_two) {
    dpr_machine machine;
    dpr_wisdom *wisdom = dpr_wisdom_none();
    const dpr_key key = sum_of_f32();
    dpr_choice choice;
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    static const uint64_t counts[] = {4096, 6000, 8192};
    static const double simd[] = {1e-6, 6e-6, 2e-6}, threads[] = {1.5e-6, 2e-6, 3e-6};
    for (size_t i = 0; i < LENGTH(counts); i++) {
        learn(&wisdom, &machine, "cpu.simd", counts[i], simd[i]);
        learn(&wisdom, &machine, "cpu.threads", counts[i], threads[i]);
    }
    dpr_wisdom_attach(wisdom, &machine);
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    EXPECT_EQ_STR("cpu.simd", dpr_choice_at(&choice, 4096)->strategy->name);
    EXPECT_EQ_STR("cpu.threads", dpr_choice_at(&choice, 6000)->strategy->name);
    EXPECT_EQ_STR("cpu.simd", dpr_choice_at(&choice, 8192)->strategy->name);
    dpr_wisdom_release(wisdom);
}

/* How much longer than the cheapest the chosen strategy takes, of those on the CPU. */
static double regret(const dpr_choice *choice, const dpr_machine *machine, size_t count) {
    static const char *const names[] = {"cpu.serial", "cpu.simd", "cpu.threads"};
    double least = 1e9;
    for (size_t i = 0; i < LENGTH(names); i++)
        least = fmin(least, dpr_expect(strategy_of(names[i]), &choice->key, machine, (dpr_size){count, 1}, NULL));
    const dpr_strategy *chosen = dpr_choice_at(choice, count)->strategy;
    return dpr_expect(chosen, &choice->key, machine, (dpr_size){count, 1}, NULL) / least - 1;
}

/* Times with noise of up to a fifth, at powers of four and at odd numbers of elements: none where a time was measured,
 * and little in between. */
TEST(Wisdom, regret_of_choices) {
    static const char *const names[] = {"cpu.simd", "cpu.threads"};
    const dpr_key key = sum_of_f32();
    uint64_t seed = 1;
    for (int trial = 0; trial < 200; trial++) {
        dpr_machine machine;
        dpr_wisdom *wisdom = dpr_wisdom_none();
        dpr_choice choice;
        double worst = 0;
        ASSERT_TRUE(machine_load("cpu-only", &machine));
        const dpr_machine plain = machine;
        uint64_t measured[12];
        for (size_t i = 0; i < LENGTH(measured); i++) {
            measured[i] = (UINT64_C(1) << 2 * i) + (trial % 2 ? data_next(&seed) % (UINT64_C(1) << 2 * i) : 0);
            for (size_t k = 0; k < LENGTH(names); k++)
                learn(&wisdom, &machine, names[k], measured[i],
                      predicted(&plain, names[k], measured[i]) * (1 + 0.01 * data_below(&seed, 300)));
        }
        dpr_wisdom_attach(wisdom, &machine);
        ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
        EXPECT_EQ_I64(0, choice.estimated);
        for (size_t i = 0; i < LENGTH(measured); i++)
            EXPECT_NEAR_F64(0, regret(&choice, &machine, measured[i]), 1e-12);
        for (int i = 0; i < 1000; i++)
            worst =
                fmax(worst, regret(&choice, &machine, 1 + data_next(&seed) % (UINT64_C(1) << data_below(&seed, 26))));
        EXPECT_THAT(worst < 0.02, "trial %d: %.3g", trial, worst);
        dpr_wisdom_release(wisdom);
    }
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
    EXPECT_STATUS(DPR_OK, dpr_explain(&choice, &machine, &(dpr_run){.count = 1024}, NULL, text, &size));
    EXPECT_CONTAINS(text, ", the cheapest by prediction: times that were measured change too often\n");
    EXPECT_TRUE(!strstr(text, "us, measured"));
    EXPECT_EQ_I64(plain.steps, choice.steps);
    for (int i = 0; i < plain.steps; i++)
        EXPECT_TRUE(choice.step[i].upto == plain.step[i].upto && choice.step[i].strategy == plain.step[i].strategy);
    dpr_wisdom_release(wisdom);
}

/* Times of DPR_MEASURE neither replace others nor change what is expected of other numbers of elements, where there are
 * others; in its own plans they come first. */
TEST(Wisdom, warm_times_are_kept_apart) {
    dpr_machine machine;
    dpr_wisdom *wisdom = some_wisdom(&machine), *read = NULL;
    const dpr_strategy *simd = strategy_of("cpu.simd");
    dpr_key key = sum_of_f32(), warm = sum_of_f32();
    char text[TEXT];
    warm.f.effort = DPR_MEASURE;
    dpr_wisdom_attach(wisdom, &machine);
    const double between = expect_seconds(&machine, "cpu.simd", 2048, DPR_BASIS_MEASURED);
    learn_of(warm, &wisdom, &machine, "cpu.simd", 1024, 1e-9);
    learn_of(warm, &wisdom, &machine, "cpu.simd", 2048, 1e-9);
    learn_of(warm, &wisdom, &machine, "cpu.threads", 1024, 1e-9);
    const size_t size = format(wisdom, text);
    EXPECT_CONTAINS(text, "\ntime cpu.simd sum f32 host call array 1024:1000000 4096:2000000\n"
                          "time cpu.simd sum f32 host warm-call array 1024:1000 2048:1000\n");
    ASSERT_STATUS(DPR_OK, dpr_wisdom_parse(text, size, &read));
    dpr_wisdom_attach(read, &machine);
    EXPECT_NEAR_F64(1e-6, expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(between, expect_seconds(&machine, "cpu.simd", 2048, DPR_BASIS_MEASURED), 0);
    EXPECT_NEAR_F64(1e-9, expect_seconds(&machine, "cpu.threads", 1024, DPR_BASIS_MEASURED), 1e-15);
    EXPECT_NEAR_F64(1e-9, dpr_expect(simd, &warm, &machine, (dpr_size){1024, 1}, NULL), 1e-15);
    EXPECT_NEAR_F64(1e-6, dpr_wise_seconds(&machine, simd, &key, 1024), 1e-12);
    EXPECT_NEAR_F64(0, dpr_wise_seconds(&machine, simd, &key, 2048), 0);
    EXPECT_NEAR_F64(1e-9, dpr_wise_seconds(&machine, simd, &warm, 2048), 1e-15);
    EXPECT_NEAR_F64(0, dpr_wise_seconds(&machine, strategy_of("cpu.threads"), &key, 1024), 0);
    /* Warm sums say nothing about memory. */
    learn_of(warm, &wisdom, &machine, "cpu.simd", UINT64_C(1) << 34, 1);
    learn_of(warm, &wisdom, &machine, "cpu.threads", UINT64_C(1) << 34, 1);
    dpr_wisdom_attach(wisdom, &machine);
    EXPECT_TRUE(!machine.rates_measured);
    dpr_wisdom_release(wisdom);
    dpr_wisdom_release(read);
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
    EXPECT_NEAR_F64(3e-6, expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(2e-6, expect_seconds(&machine, "cpu.simd", 4096, DPR_BASIS_MEASURED), 1e-12);
    EXPECT_NEAR_F64(7e-6, expect_seconds(&other, "cpu.simd", 1024, DPR_BASIS_MEASURED), 1e-12);
    dpr_wisdom_release(joined);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_join(b, a, &joined));
    dpr_wisdom_attach(joined, &machine);
    EXPECT_NEAR_F64(1e-6, expect_seconds(&machine, "cpu.simd", 1024, DPR_BASIS_MEASURED), 1e-12);
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
