/* How much wisdom there may be. */
#define _POSIX_C_SOURCE 200809L /* mkstemp(), ftruncate() */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/wisdom_file.h"
#include "machines.h"
#include "plan/wisdom_parts.h"
#include "wisdom_scene.h"

/* Wisdom of a CPU that differs from others by its number of threads. */
static void learn_with_threads(dpr_wisdom **wisdom, int threads) {
    dpr_machine machine;
    EXPECT_TRUE(machine_load("cpu-only", &machine));
    machine.caps.cpu.threads = threads;
    learn(wisdom, &machine, "cpu.simd", 1024, 1e-6);
}

static int is_known_with_threads(const dpr_wisdom *wisdom, int threads) {
    const dpr_key key = sum_of_f32();
    dpr_machine machine;
    EXPECT_TRUE(machine_load("cpu-only", &machine));
    machine.caps.cpu.threads = threads;
    dpr_wisdom_attach(wisdom, &machine);
    return dpr_wise_find(&machine, strategy_of("cpu.simd"), &key).n > 0;
}

/* The processors whose times were added the longest time ago make room. */
TEST(WisdomLimits, more_processors_than_fit) {
    dpr_wisdom *wisdom = dpr_wisdom_none();
    for (int threads = 1; threads <= DPR_WISE_PROCESSORS + 1; threads++)
        learn_with_threads(&wisdom, threads);
    EXPECT_EQ_I64(DPR_WISE_PROCESSORS, wisdom->processors);
    EXPECT_EQ_U64(DPR_WISE_PROCESSORS, wisdom->times);
    EXPECT_TRUE(!is_known_with_threads(wisdom, 1));
    learn_with_threads(&wisdom, 2);
    learn_with_threads(&wisdom, 1);
    EXPECT_EQ_I64(DPR_WISE_PROCESSORS, wisdom->processors);
    EXPECT_TRUE(!is_known_with_threads(wisdom, 3));
    for (int threads = 1; threads <= DPR_WISE_PROCESSORS + 1; threads++)
        EXPECT_THAT(threads == 3 || is_known_with_threads(wisdom, threads), "%d threads", threads);
    dpr_wisdom_release(wisdom);
}

/* `n` times of the machine's CPU, for which the caller fills in places and counts that differ. */
static dpr_wisdom *wisdom_of(const dpr_machine *machine, size_t n) {
    dpr_wisdom *made = dpr_wisdom_make(n);
    made->processor[made->processors++] = dpr_wise_processor_of(machine, DPR_ON_CPU);
    for (; made->times < n; made->times++)
        made->time[made->times] = (dpr_wise_time){0, DPR_WISE_MOST, DPR_WISE_LONGEST};
    return made;
}

/* Sums by cpu.simd of 1, 2, 3, ... elements. */
static dpr_wisdom *many_sums(const dpr_machine *machine, size_t n) {
    const dpr_wise_place place = {.strategy = (uint8_t)dpr_strategy_find("cpu.simd"),
                                  .op = DPR_ROW(DPR_SUM),
                                  .dtype = DPR_ROW(DPR_F32),
                                  .memory = DPR_MEMORY_HOST};
    dpr_wisdom *made = wisdom_of(machine, n);
    for (size_t i = 0; i < n; i++)
        made->time[i] = (dpr_wise_time){dpr_wise_pack(place), i + 1, 1000};
    return made;
}

TEST(WisdomLimits, more_times_than_fit) {
    dpr_machine machine, other;
    dpr_key key = sum_of_f32();
    dpr_wisdom *one = NULL, *joined = NULL, *read = NULL;
    size_t size = 0;
    ASSERT_TRUE(machine_load("cpu-only", &machine) && machine_load("one-core", &other));
    dpr_wisdom *full = many_sums(&machine, DPR_WISE_TIMES), *more = many_sums(&machine, DPR_WISE_TIMES + 1);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_single(&machine, strategy_of("cpu.serial"), &key, 1, 1, &one));
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_join(full, one, &joined));
    EXPECT_EQ_STR("there are more than 1048576 times of the processors that are measured; begin a new file, or call "
                  "dpr_wisdom_forget()",
                  dpr_last_error());
    dpr_wisdom_release(one);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_single(&other, strategy_of("cpu.serial"), &key, 1, 1, &one));
    ASSERT_STATUS(DPR_OK, dpr_wisdom_join(full, one, &joined)); /* those of the other processor make room */
    EXPECT_EQ_U64(1, joined->times);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_format(more, NULL, &size));
    char *text = malloc(size);
    ASSERT_STATUS(DPR_OK, dpr_wisdom_format(more, text, &size));
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_parse(text, size - 1, &read));
    EXPECT_EQ_STR("line 4: there are too many times", dpr_last_error());
    free(text);
    dpr_wisdom_release(full);
    dpr_wisdom_release(more);
    dpr_wisdom_release(one);
    dpr_wisdom_release(joined);
}

/* A choice looks at few of many times. Looking at all would take 200 ms. */
TEST(WisdomLimits, choices_are_quick) {
    const dpr_key key = sum_of_f32();
    dpr_machine machine;
    dpr_choice choice;
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    dpr_wisdom *wisdom = many_sums(&machine, DPR_WISE_TIMES);
    dpr_wisdom_attach(wisdom, &machine);
    const double began = test_now();
    ASSERT_STATUS(DPR_OK, dpr_choose(&key, &machine, &choice));
    const double ms = 1e3 * (test_now() - began);
    test_record("milliseconds", "%.3f", ms);
    EXPECT_THAT(ms < 30 * TEST_SLOWNESS, "%.3g ms", ms);
    EXPECT_EQ_STR("cpu.simd", dpr_choice_at(&choice, 1 << 19)->strategy->name); /* 1 ns, as all of them */
    dpr_wisdom_release(wisdom);
}

/* The i-th of many kinds of calls, with long names. */
static dpr_wise_place place_at(size_t i) {
    dpr_wise_place place = {.segments = (uint8_t)(1 + i % 64), .strategy = (uint8_t)dpr_strategy_find("cpu.threads")};
    place.shape = (uint8_t)(DPR_WISE_OFFSETS + i / 64 % (DPR_WISE_SHAPES - DPR_WISE_OFFSETS));
    place.run = (uint8_t)(i / 192 % DPR_WISE_RUNS);
    place.memory = (uint8_t)(DPR_MEMORY_HOST + i / 768 % 4);
    place.dtype = (uint8_t)(i / 3072 % DPR_DTYPE_COUNT);
    place.op = (uint8_t)(i / 3072 / DPR_DTYPE_COUNT % DPR_OP_COUNT);
    return place;
}

TEST(WisdomLimits, more_text_than_a_file_has) {
    enum { TIMES = 900000 };
    char path[] = "/tmp/dpr-wisdom-XXXXXX", lock[40];
    dpr_machine machine;
    dpr_wisdom *read = NULL;
    int missing;
    const int file = mkstemp(path);
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    ASSERT_TRUE(file >= 0 && unlink(path) == 0 && machine_load("cpu-only", &machine));
    dpr_wisdom *large = wisdom_of(&machine, TIMES);
    for (size_t i = 0; i < TIMES; i++)
        large->time[i].place = dpr_wise_pack(place_at(i));
    EXPECT_STATUS(DPR_ERR_WISDOM, dpr_wisdom_write(path, large, NULL));
    EXPECT_EQ_STR("the text of all times has more than 64 MiB; begin a new file", dpr_last_error());
    EXPECT_TRUE(access(path, F_OK) != 0);
    dpr_wisdom_release(large);
    FILE *sparse = fopen(path, "we");
    ASSERT_TRUE(sparse && ftruncate(fileno(sparse), (64 << 20) + 1) == 0 && fclose(sparse) == 0);
    EXPECT_STATUS(DPR_ERR_FILE, dpr_wisdom_read(path, &read, &missing));
    EXPECT_CONTAINS(dpr_last_error(), " is not a regular file, or has more than 64 MiB");
    (void)close(file);
    (void)unlink(path);
    (void)unlink(lock);
}
