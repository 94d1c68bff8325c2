/* Captured machines: what is read, written and refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "machines.h"
#include "support.h"

static void check_round_trip(const char *name) {
    dpr_machine machine;
    dpr_caps again;
    char text[4096];
    size_t len = sizeof text;
    ASSERT_TRUE(machine_load(name, &machine));
    ASSERT_STATUS(DPR_OK, dpr_machine_format(&machine.caps, text, &len));
    EXPECT_EQ_U64(strlen(text) + 1, len);
    ASSERT_STATUS(DPR_OK, dpr_machine_parse(text, &again));
    EXPECT_EQ_I64(machine.caps.has_gpu, again.has_gpu);
    EXPECT_EQ_STR(machine.caps.gpu_name, again.gpu_name);
    EXPECT_EQ_STR(machine.caps.cpu_name, again.cpu_name);
    EXPECT_EQ_BYTES(&machine.caps.gpu, &again.gpu, sizeof again.gpu);
    EXPECT_EQ_BYTES(&machine.caps.cpu, &again.cpu, sizeof again.cpu);
}

#define ROUND_TRIP(ID, NAME)                                                                                           \
    TEST(Machine, round_trip_##ID) {                                                                                   \
        check_round_trip(NAME);                                                                                        \
    }
MACHINE_LIST(ROUND_TRIP)

TEST(Machine, fields_are_read) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_EQ_I64(1, machine.caps.has_gpu);
    EXPECT_EQ_STR("NVIDIA H200", machine.caps.gpu_name);
    EXPECT_EQ_I64(132, machine.caps.gpu.sm_count);
    EXPECT_EQ_I64(233472, machine.caps.gpu.shared_per_sm);
    EXPECT_EQ_I64(152000, machine.caps.cpu.total_mb_per_s);
    ASSERT_TRUE(machine_load("rtx5060ti", &machine));
    EXPECT_EQ_I64(-1, machine.caps.gpu.numa_node);
    ASSERT_TRUE(machine_load("cpu-only", &machine));
    EXPECT_EQ_I64(0, machine.caps.has_gpu);
    EXPECT_EQ_I64(0, machine.caps.gpu.sm_count);
}

#define CPU_FIELDS_BUT_CORES                                                                                           \
    "cpu.threads = 1\ncpu.numa_nodes = 1\ncpu.cache_bytes = 1\ncpu.vector_bytes = 16\ncpu.core_mb_per_s = 1\n"         \
    "cpu.total_mb_per_s = 1\n"

TEST(Machine, forms_that_are_read) {
    dpr_caps caps;
    EXPECT_STATUS(DPR_OK, dpr_machine_parse("cpu.cores=3\n" CPU_FIELDS_BUT_CORES, &caps));
    EXPECT_EQ_I64(3, caps.cpu.cores);
    EXPECT_EQ_STR("", caps.cpu_name);
    EXPECT_STATUS(DPR_OK, dpr_machine_parse(CPU_FIELDS_BUT_CORES "\n\n  # c = d\n \t cpu.cores  =  4 # four\r\n"
                                                                 "cpu_name =  a b \n",
                                            &caps));
    EXPECT_EQ_I64(4, caps.cpu.cores);
    EXPECT_EQ_STR("a b", caps.cpu_name);
    EXPECT_STATUS(
        DPR_OK,
        dpr_machine_parse("cpu_name = Card #2 # x\n  # cpu_name = y\ncpu.cores = 4 # four = 4\n" CPU_FIELDS_BUT_CORES,
                          &caps));
    EXPECT_EQ_STR("Card #2 # x", caps.cpu_name);
    EXPECT_STATUS(DPR_OK, dpr_machine_parse(CPU_FIELDS_BUT_CORES "cpu.cores = 5", &caps)); /* no end of line */
    EXPECT_EQ_I64(5, caps.cpu.cores);
}

static void expect_refused(const char *text, const char *says) {
    dpr_caps caps, canary;
    memset(&caps, 0xa5, sizeof caps);
    memset(&canary, 0xa5, sizeof canary);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_machine_parse(text, &caps));
    EXPECT_CONTAINS(dpr_last_error(), says);
    EXPECT_EQ_BYTES(&canary, &caps, sizeof caps);
}

TEST(Machine, text_that_is_refused) {
    expect_refused("", "cpu.cores is missing");
    expect_refused(CPU_FIELDS_BUT_CORES, "cpu.cores is missing");
    expect_refused("cpu.core = 3\n" CPU_FIELDS_BUT_CORES, "line 1: \"cpu.core\"");
    expect_refused("# one\n\ncpu.cores = three\n", "line 3: cpu.cores is \"three\"");
    expect_refused("cpu.cores = 3x\n", "line 1");
    expect_refused("cpu.cores = 3.5\n", "line 1");
    expect_refused("cpu.cores =\n", "line 1");
    expect_refused("cpu.cores = 99999999999999999999\n", "line 1");
    expect_refused("cpu.cores = 1\ncpu.cores = 1\n", "line 2: cpu.cores");
    expect_refused("cpu.cores\n", "line 1");
    expect_refused("= 3\n", "line 1");
    expect_refused("cpu.cores = 1\ngpu.sm_count = 4\n" CPU_FIELDS_BUT_CORES, "gpu_name is not");
    expect_refused("cpu.cores = 1\ngpu_name = x\n" CPU_FIELDS_BUT_CORES, "is missing");
    expect_refused("\x01\xff = 3\n", "line 1");
}

TEST(Machine, costs_that_are_refused) {
    static const char *const keys[] = {"gpu.nested_level_ns", "gpu.nested_tail_ns", "gpu.nested_first_ns",
                                       "gpu.nested_fan_ns", "gpu.nested_bytes"};
    for (size_t i = 0; i < LENGTH(keys); i++) {
        dpr_machine machine;
        char text[4096], bad[4200], says[64];
        size_t len = sizeof text;
        ASSERT_TRUE(machine_load("h200", &machine));
        ASSERT_STATUS(DPR_OK, dpr_machine_format(&machine.caps, text, &len));
        char *value = strstr(text, keys[i]);
        ASSERT_TRUE(value != NULL);
        value += strlen(keys[i]) + strlen(" = ");
        snprintf(bad, sizeof bad, "%.*s-%s", (int)(value - text), text, value);
        snprintf(says, sizeof says, "%s is -", keys[i]);
        expect_refused(bad, says);
    }
}

TEST(Machine, long_lines_are_refused) {
    static char text[100000];
    memset(text, 'x', sizeof text - 1);
    expect_refused(text, "line 1");
    text[10] = '=';
    expect_refused(text, "line 1");
    for (int i = 0; i < 11; i++)
        text[i] = "cpu_name = "[i];
    expect_refused(text, "line 1");
}

TEST(Machine, null_and_short_buffers) {
    dpr_machine machine;
    char text[4096];
    size_t needed = 0, len = 0;
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_parse(NULL, &machine.caps));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_parse("", NULL));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_format(NULL, text, &len));
    EXPECT_STATUS(DPR_ERR_NULL_POINTER, dpr_machine_format(&machine.caps, text, NULL));
    EXPECT_STATUS(DPR_OK, dpr_machine_format(&machine.caps, NULL, &needed));
    len = needed - 1;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_machine_format(&machine.caps, text, &len));
    EXPECT_EQ_U64(needed, len);
}
