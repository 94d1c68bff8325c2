/* Captured machines: what is read, written and refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "machines.h"
#include "plan/caps_text.h"
#include "plan/processors.h"
#include "plan/registry.h"
#include "support.h"

static void check_round_trip(const char *name) {
    dpr_machine machine;
    dpr_caps again;
    char text[4096];
    size_t len = sizeof text;
    ASSERT_TRUE(machine_load(name, &machine));
    ASSERT_STATUS(DPR_OK, dpr_caps_format(&machine.caps, text, &len));
    EXPECT_EQ_U64(strlen(text) + 1, len);
    ASSERT_STATUS(DPR_OK, dpr_caps_parse(text, &again));
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
    "cpu.total_mb_per_s = 1\ncpu.wake_ns = 1\n"

TEST(Machine, forms_that_are_read) {
    dpr_caps caps;
    EXPECT_STATUS(DPR_OK, dpr_caps_parse("cpu.cores=3\n" CPU_FIELDS_BUT_CORES, &caps));
    EXPECT_EQ_I64(3, caps.cpu.cores);
    EXPECT_EQ_STR("", caps.cpu_name);
    EXPECT_STATUS(DPR_OK, dpr_caps_parse(CPU_FIELDS_BUT_CORES "\n\n  # c = d\n \t cpu.cores  =  4 # four\r\n"
                                                              "cpu_name =  a b \n",
                                         &caps));
    EXPECT_EQ_I64(4, caps.cpu.cores);
    EXPECT_EQ_STR("a b", caps.cpu_name);
    EXPECT_STATUS(
        DPR_OK,
        dpr_caps_parse("cpu_name = Card #2 # x\n  # cpu_name = y\ncpu.cores = 4 # four = 4\n" CPU_FIELDS_BUT_CORES,
                       &caps));
    EXPECT_EQ_STR("Card #2 # x", caps.cpu_name);
    EXPECT_STATUS(DPR_OK, dpr_caps_parse(CPU_FIELDS_BUT_CORES "cpu.cores = 5", &caps)); /* no end of line */
    EXPECT_EQ_I64(5, caps.cpu.cores);
}

static void expect_refused(const char *text, const char *says) {
    dpr_caps caps, canary;
    memset(&caps, 0xa5, sizeof caps);
    memset(&canary, 0xa5, sizeof canary);
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_caps_parse(text, &caps));
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
    expect_refused("\x1b[2J\x7f\xc2\x9b = 3\n", "line 1: \"?[2J???\" is no key");
    expect_refused("\xc3\xa9\xc2\xa0 = 3\n", "line 1: \"\xc3\xa9\xc2\xa0\" is no key");
}

/* ---- Ranges ----------------------------------------------------------------------------------------------------- */

typedef struct field {
    const char *key;
    size_t offset;
    int64_t least, most;
} field;

#define GPU_FIELD(A, NAME, LEAST, MOST, text) {"gpu." #NAME, offsetof(dpr_caps, gpu.NAME), LEAST, MOST},
#define GPU_ATTRIBUTE(A, NAME, ATTRIBUTE, ...) GPU_FIELD(A, NAME, __VA_ARGS__)
#define CPU_FIELD(A, NAME, LEAST, MOST, text) {"cpu." #NAME, offsetof(dpr_caps, cpu.NAME), LEAST, MOST},
static const field fields[] = {DPR_CPU_CAPS_LIST(CPU_FIELD, _) DPR_GPU_CAPS_LIST(GPU_ATTRIBUTE, _)
                                   DPR_NESTED_CAPS_LIST(GPU_FIELD, _)};

/* Whether machines without a GPU have it, too. */
static int is_there(const field *f, const dpr_caps *caps) {
    return caps->has_gpu || f->offset >= offsetof(dpr_caps, cpu);
}

static void set_field(dpr_caps *caps, const field *f, int64_t value) {
    memcpy((char *)caps + f->offset, &value, sizeof value);
}

/* The text of the machine with another value of the field. */
static void text_with(const dpr_caps *caps, const field *f, int64_t value, char text[4096]) {
    dpr_caps other = *caps;
    size_t len = 4096;
    set_field(&other, f, value);
    ASSERT_STATUS(DPR_OK, dpr_caps_format(&other, text, &len));
}

static int line_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    int line = 1;
    for (; at && text < at; text++)
        line += *text == '\n';
    return line;
}

static void check_refused(const dpr_caps *caps, const field *f, int64_t value) {
    char text[4096], says[200];
    text_with(caps, f, value, text);
    snprintf(says, sizeof says, "line %d: %s is %lld; it should be from %lld to %lld", line_of(text, f->key), f->key,
             (long long)value, (long long)f->least, (long long)f->most);
    expect_refused(text, says);
}

static void check_ranges(const char *name) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load(name, &machine));
    for (size_t i = 0; i < LENGTH(fields); i++) {
        if (!is_there(&fields[i], &machine.caps))
            continue;
        check_refused(&machine.caps, &fields[i], fields[i].least - 1);
        check_refused(&machine.caps, &fields[i], fields[i].most + 1);
        check_refused(&machine.caps, &fields[i], INT64_MIN);
        check_refused(&machine.caps, &fields[i], INT64_MAX);
    }
}

TEST(Machine, values_out_of_range_are_refused) {
    check_ranges("h200");
    check_ranges("cpu-only");
    expect_refused("\ncpu.cores = 99999999999999999999\n",
                   "line 2: cpu.cores is 99999999999999999999; it should be from");
    expect_refused("cpu.cores = -99999999999999999999\n",
                   "line 1: cpu.cores is -99999999999999999999; it should be from");
}

/* Every strategy that can run the key takes a time for every size, and the machine can be explained. */
static void check_costs(const dpr_key *key, const dpr_machine *machine, const char *what) {
    static const size_t counts[] = {0, 1, 1000, 1 << 20, (size_t)1 << 30, (size_t)1 << 40, SIZE_MAX / 128};
    dpr_choice choice;
    size_t len = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        for (size_t c = 0; !dpr_refusal(dpr_strategies[i], key, &machine->caps) && c < LENGTH(counts); c++) {
            const double seconds = dpr_predict(dpr_strategies[i], key, &machine->caps, (dpr_size){counts[c], 1});
            EXPECT_THAT(isfinite(seconds) && seconds > 0, "%s: %s takes %g s for %zu elements", what,
                        dpr_strategies[i]->name, seconds, counts[c]);
        }
    const dpr_status status = dpr_choose(key, machine, &choice);
    if (status == DPR_ERR_MEMORY_KIND || status == DPR_ERR_STRATEGY_UNABLE)
        return;
    EXPECT_THAT(status == DPR_OK, "%s: %s", what, dpr_last_error());
    for (size_t c = 0; status == DPR_OK && c < LENGTH(counts); c++) {
        const dpr_launch_limits *limits = &dpr_choice_at(&choice, counts[c])->limits;
        EXPECT_THAT(limits->threads > 0 && limits->max_blocks > 0, "%s: %d blocks of %d threads", what,
                    limits->max_blocks, limits->threads);
        EXPECT_STATUS(DPR_OK, dpr_explain(&choice, machine, &(dpr_run){.count = counts[c]}, NULL, NULL, &len));
    }
}

static void check_plans(const dpr_machine *machine, const char *what) {
    static const struct {
        dpr_op op;
        dpr_dtype dtype;
    } pairs[] = {{DPR_SUM, DPR_I32}, {DPR_ARGMAX, DPR_F64}, {DPR_PROD, DPR_C128}, {DPR_MAX, DPR_U8}};
    for (size_t p = 0; p < LENGTH(pairs); p++)
        for (int memory = DPR_MEMORY_HOST; memory <= DPR_MEMORY_DEVICE; memory++) {
            dpr_key key = {.words = {0}};
            key.f.op = DPR_ROW(pairs[p].op);
            key.f.dtype = DPR_ROW(pairs[p].dtype);
            key.f.in_memory = (uint8_t)memory;
            check_costs(&key, machine, what);
            for (size_t s = 0; p == 0 && memory == DPR_MEMORY_DEVICE && s < dpr_strategy_count(); s++) {
                key.f.strategy = (uint8_t)(s + 1);
                check_costs(&key, machine, what);
            }
        }
}

static void check_end(const dpr_machine *machine, const field *f, int64_t value) {
    dpr_machine other = {.resident = NULL};
    char text[4096], what[100];
    text_with(&machine->caps, f, value, text);
    snprintf(what, sizeof what, "%s = %lld", f->key, (long long)value);
    if (EXPECT_STATUS(DPR_OK, dpr_caps_parse(text, &other.caps)))
        check_plans(&other, what);
}

static void check_ends(const char *name) {
    dpr_machine machine;
    ASSERT_TRUE(machine_load(name, &machine));
    for (size_t i = 0; i < LENGTH(fields); i++) {
        if (!is_there(&fields[i], &machine.caps))
            continue;
        check_end(&machine, &fields[i], fields[i].least);
        check_end(&machine, &fields[i], fields[i].most);
    }
}

#define ENDS(ID, NAME)                                                                                                 \
    TEST(Machine, plans_at_both_ends_of_every_range_##ID) {                                                            \
        check_ends(NAME);                                                                                              \
    }
MACHINE_LIST(ENDS)

TEST(Machine, all_fields_at_one_end) {
    for (int most = 0; most < 2; most++) {
        dpr_machine machine = {.caps = {.has_gpu = 1}};
        for (size_t i = 0; i < LENGTH(fields); i++)
            set_field(&machine.caps, &fields[i], most ? fields[i].most : fields[i].least);
        check_plans(&machine, most ? "all at their most" : "all at their least");
    }
}

TEST(Machine, what_is_out_of_range_is_confined) {
    dpr_caps caps, without = {.cpu = {.cores = 1}};
    memset(&caps, 0, sizeof caps);
    caps.has_gpu = 1;
    caps.gpu.numa_node = INT64_MIN;
    caps.gpu.sm_count = INT64_MAX;
    caps.gpu.cc_major = 9;
    dpr_caps_confine(&caps);
    EXPECT_EQ_I64(-1, caps.gpu.numa_node);
    EXPECT_EQ_I64(65536, caps.gpu.sm_count);
    EXPECT_EQ_I64(9, caps.gpu.cc_major);
    EXPECT_EQ_I64(32, caps.gpu.warp_size);
    EXPECT_TRUE(caps.gpu.memory_clock_khz > 0 && caps.gpu.memory_bus_bits > 0 && caps.cpu.core_mb_per_s > 0);
    dpr_caps_confine(&without);
    EXPECT_EQ_I64(0, without.gpu.memory_clock_khz);
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

TEST(Machine, short_buffers) {
    dpr_machine machine;
    char text[4096];
    size_t needed = 0, len = 0;
    ASSERT_TRUE(machine_load("h200", &machine));
    EXPECT_STATUS(DPR_OK, dpr_caps_format(&machine.caps, NULL, &needed));
    len = needed - 1;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_caps_format(&machine.caps, text, &len));
    EXPECT_EQ_U64(needed, len);
}
