/* Runs of equal keys on a GPU: types of keys, numbers of keys, lengths of runs and places of arrays against the CPU's
 * results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "close.h"
#include "data.h"
#include "gpu_memory.h"
#include "support.h"

enum { MOST = 3 << 20, MOST_KEY = 8, SHIFT = 1 }; /* elements; bytes of a key; elements that come before the arrays */

typedef struct scene {
    dpr_ctx *gpu, *cpu;
    dpr_stream stream;
    unsigned char *keys, *unique, *keys_device, *unique_device, *unique_known, *unique_got;
    int32_t *in, *in_device;
    int64_t *known, *got, *out_device;
    uint64_t *runs_device;
} scene;

static void open_scene(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->gpu));
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu));
    s->stream = gpu_stream_create();
    s->keys = gpu_alloc(DPR_MEMORY_HOST, (MOST + SHIFT) * MOST_KEY);
    s->unique_known = gpu_alloc(DPR_MEMORY_HOST, MOST * MOST_KEY);
    s->unique_got = gpu_alloc(DPR_MEMORY_HOST, (MOST + SHIFT) * MOST_KEY);
    s->in = gpu_alloc(DPR_MEMORY_HOST, MOST * sizeof *s->in);
    s->known = gpu_alloc(DPR_MEMORY_HOST, MOST * sizeof *s->known);
    s->got = gpu_alloc(DPR_MEMORY_HOST, MOST * sizeof *s->got);
    s->keys_device = gpu_alloc(DPR_MEMORY_DEVICE, (MOST + SHIFT) * MOST_KEY);
    s->unique_device = gpu_alloc(DPR_MEMORY_DEVICE, (MOST + SHIFT) * MOST_KEY);
    s->in_device = gpu_alloc(DPR_MEMORY_DEVICE, MOST * sizeof *s->in);
    s->out_device = gpu_alloc(DPR_MEMORY_DEVICE, MOST * sizeof *s->got);
    s->runs_device = gpu_alloc(DPR_MEMORY_DEVICE, sizeof *s->runs_device);
    ASSERT_TRUE(s->stream && s->keys && s->unique_known && s->unique_got && s->in && s->known && s->got);
    ASSERT_TRUE(s->keys_device && s->unique_device && s->in_device && s->out_device && s->runs_device);
    data_fill(s->in, DPR_SUM, DPR_I32, DATA_RANDOM, MOST);
    ASSERT_TRUE(gpu_copy(s->in_device, s->in, MOST * sizeof *s->in));
}

static void close_scene(void *state) {
    scene *s = state;
    void *const host[] = {s->keys, s->unique_known, s->unique_got, s->in, s->known, s->got};
    void *const device[] = {s->keys_device, s->unique_device, s->in_device, s->out_device, s->runs_device};
    if (gpu_unavailable())
        return;
    for (size_t i = 0; i < LENGTH(host); i++)
        gpu_free(DPR_MEMORY_HOST, host[i]);
    for (size_t i = 0; i < LENGTH(device); i++)
        gpu_free(DPR_MEMORY_DEVICE, device[i]);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    dpr_ctx_destroy(s->gpu);
    dpr_ctx_destroy(s->cpu);
}

#define KEYS_TEST(NAME) TEST_FIXTURE(GpuKeys, NAME, scene, open_scene, close_scene)

/* One call. */
typedef struct call {
    dpr_dtype dtype; /* of the keys */
    dpr_dtype in;    /* of the elements; 0: I32 */
    dpr_op op;
    size_t count, shift; /* keys; keys before both arrays of keys, which then begin at an odd element */
    int keys_in_host, results_in_host, in_stream;
} call;

static dpr_dtype elements_of(const call *c) {
    return c->in ? c->in : DPR_I32;
}

/* Keys of neighbouring runs differ in one of their bytes. Some `chance` of a hundred keys begin a run. */
static void make_keys(const scene *s, const call *c, uint32_t chance) {
    const size_t bytes = dpr_dtype_size(c->dtype);
    uint64_t seed = bytes + c->count + chance;
    unsigned char key[MOST_KEY] = {0};
    memset(s->keys, 0, (MOST + SHIFT) * bytes);
    for (size_t i = 0; i < c->count; i++) {
        if (data_below(&seed, 100) < chance)
            key[data_below(&seed, (uint32_t)bytes)] ^= (unsigned char)(1 + data_below(&seed, 255));
        memcpy(s->keys + (c->shift + i) * bytes, key, bytes);
    }
    EXPECT_TRUE(gpu_copy(s->keys_device, s->keys, (MOST + SHIFT) * bytes));
}

/* Fills the arrays of results with 0x5a. */
static void clear_results(const scene *s) {
    memset(s->unique_got, 0x5a, (MOST + SHIFT) * MOST_KEY);
    memset(s->got, 0x5a, MOST * sizeof *s->got);
    EXPECT_TRUE(gpu_copy(s->unique_device, s->unique_got, (MOST + SHIFT) * MOST_KEY));
    EXPECT_TRUE(gpu_copy(s->out_device, s->got, MOST * sizeof *s->got));
}

static void fetch_results(const scene *s, const unsigned char *unique, const int64_t *out) {
    EXPECT_TRUE(gpu_copy(s->unique_got, unique, (MOST + SHIFT) * MOST_KEY));
    EXPECT_TRUE(gpu_copy(s->got, out, MOST * sizeof *s->got));
}

/* Reduces on the GPU. Results come to s->got and s->unique_got, which have 0x5a in other places. */
static dpr_status run_on_gpu(const scene *s, const call *c, uint64_t *runs) {
    const size_t before = c->shift * dpr_dtype_size(c->dtype);
    unsigned char *const unique = c->results_in_host ? s->unique_got : s->unique_device;
    int64_t *const out = c->results_in_host ? s->got : s->out_device;
    dpr_options options = DPR_OPTIONS_INIT;
    options.stream = c->in_stream ? s->stream : NULL;
    clear_results(s);
    const dpr_status status =
        dpr_reduce_by_key(s->gpu, (c->keys_in_host ? s->keys : s->keys_device) + before, c->dtype, s->in_device,
                          unique + before, out, runs, c->count, elements_of(c), c->op, &options);
    fetch_results(s, unique, out);
    return status;
}

static dpr_status enqueue(const scene *s, const call *c, uint64_t room) {
    const size_t before = c->shift * dpr_dtype_size(c->dtype);
    return dpr_reduce_by_key_async(s->gpu, s->keys_device + before, c->dtype, s->in_device, s->unique_device + before,
                                   s->out_device, s->runs_device, room, c->count, NULL, elements_of(c), c->op, NULL,
                                   s->stream);
}

/* Whether `bytes` bytes from `at` on are 0x5a. */
static int is_untouched(const void *at, size_t bytes) {
    const unsigned char *p = at;
    size_t i = 0;
    while (i < bytes && p[i] == 0x5a)
        i++;
    return i == bytes;
}

/* Results of the CPU, for keys that make_keys() makes. Returns the number of runs. */
static uint64_t know(const scene *s, const call *c, uint32_t chance) {
    const size_t before = c->shift * dpr_dtype_size(c->dtype);
    uint64_t known = c->count;
    make_keys(s, c, chance);
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->cpu, s->keys + before, c->dtype, s->in, s->unique_known, s->known,
                                            &known, c->count, elements_of(c), c->op, NULL));
    return known;
}

/* Whether the first `runs` results and keys are those of the CPU, and the others untouched. */
static void expect_results(const scene *s, const call *c, uint64_t runs) {
    const size_t bytes = dpr_dtype_size(c->dtype), before = c->shift * bytes;
    const size_t result_bytes = dpr_result_values(c->op) * dpr_dtype_size(dpr_result_dtype(c->op, elements_of(c)));
    EXPECT_TRUE(memcmp(s->known, s->got, runs * result_bytes) == 0);
    EXPECT_TRUE(memcmp(s->unique_known, s->unique_got + before, runs * bytes) == 0);
    EXPECT_TRUE(
        is_untouched((unsigned char *)s->got + runs * result_bytes, MOST * sizeof *s->got - runs * result_bytes));
    EXPECT_TRUE(is_untouched(s->unique_got, before));
    EXPECT_TRUE(is_untouched(s->unique_got + before + runs * bytes, MOST * MOST_KEY - runs * bytes));
}

/* After work of the stream: the number of runs, of which `written` have results. */
static void expect_enqueued(const scene *s, const call *c, uint64_t known, uint64_t written) {
    uint64_t runs = 0;
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&runs, s->runs_device, sizeof runs));
    EXPECT_EQ_U64(known, runs);
    fetch_results(s, s->unique_device, s->out_device);
    expect_results(s, c, written);
}

static void expect_same(const scene *s, const call *c, uint32_t chance) {
    const uint64_t known = know(s, c, chance);
    uint64_t runs = known; /* room for no more */
    EXPECT_STATUS(DPR_OK, run_on_gpu(s, c, &runs));
    ASSERT_EQ_U64(known, runs);
    expect_results(s, c, known);
    runs = c->count; /* room for all that there can be */
    EXPECT_STATUS(DPR_OK, run_on_gpu(s, c, &runs));
    ASSERT_EQ_U64(known, runs);
    expect_results(s, c, known);
    runs = known - 1;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, run_on_gpu(s, c, &runs));
    EXPECT_EQ_U64(known, runs);
    expect_results(s, c, 0);
    const uint64_t rooms[] = {known, known - 1, c->count};
    for (size_t i = 0; i < LENGTH(rooms) && !c->keys_in_host && !c->results_in_host; i++) {
        clear_results(s);
        EXPECT_STATUS(DPR_OK, enqueue(s, c, rooms[i]));
        expect_enqueued(s, c, known, rooms[i] < known ? 0 : known);
    }
    EXPECT_THAT(!test_failed(), "%zu keys of %s, %u of a hundred begin a run, shift %zu, places %d%d%d", c->count,
                dpr_dtype_name(c->dtype), chance, c->shift, c->keys_in_host, c->results_in_host, c->in_stream);
}

/* The numbers of keys are near 256, which a warp loads at a time, 2048 (a block) and 2^21 (the whole grid). */
KEYS_TEST(numbers_and_types_of_keys) {
    NEED_GPU();
    static const dpr_dtype types[] = {DPR_BOOL, DPR_I8, DPR_U16, DPR_I32, DPR_U64};
    static const size_t counts[] = {1, 2, 31, 255, 256, 257, 2047, 2049, 65536, (2 << 20) - 1, (2 << 20) + 1, MOST};
    static const uint32_t chances[] = {0, 1, 30, 100};
    const scene *s = fixture;
    for (size_t i = 0; i < LENGTH(types); i++)
        for (size_t k = 0; k < LENGTH(counts) * LENGTH(chances) && !test_failed(); k++) {
            const call c = {.dtype = types[i], .op = DPR_SUM, .count = counts[k / LENGTH(chances)], .shift = k % 2};
            expect_same(s, &c, chances[k % LENGTH(chances)]);
        }
}

KEYS_TEST(places_and_operations) {
    NEED_GPU();
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMAX, DPR_MIN, DPR_BXOR, DPR_SUMSQ, DPR_MEAN, DPR_MINMAX, DPR_MEAN};
    const scene *s = fixture;
    for (int i = 0; i < 8 * (int)LENGTH(ops) && !test_failed(); i++) {
        const call c = {.dtype = DPR_U32,
                        .in = i / 8 < (int)LENGTH(ops) - 1 ? DPR_I32 : DPR_I16, /* kernels of SUM run means of I16 */
                        .op = ops[i / 8],
                        .count = 100000,
                        .keys_in_host = i & 1,
                        .results_in_host = i >> 1 & 1,
                        .in_stream = i >> 2 & 1};
        expect_same(s, &c, 10);
    }
}

/* A graph follows the keys, whose runs are more or fewer than there is room for. */
KEYS_TEST(graphs) {
    NEED_GPU();
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMIN, DPR_MEAN};
    static const uint32_t chances[] = {10, 30, 100, 0, 29};
    const scene *s = fixture;
    static const size_t counts[] = {1 << 20, 3000, 1 << 20, 100000};
    for (size_t i = 0; i < LENGTH(counts) * LENGTH(ops); i++) {
        const size_t at = i % LENGTH(counts);
        const call c = {.dtype = DPR_I64, .op = ops[i / LENGTH(counts)], .count = counts[at]};
        const uint64_t room = at < 2 ? c.count / 3 : c.count; /* sums in one pass */
        EXPECT_STATUS(DPR_OK, enqueue(s, &c, room));          /* the workspace and the kernels are there afterwards */
        ASSERT_TRUE(gpu_stream_wait(s->stream) && gpu_capture_begin(s->stream));
        EXPECT_STATUS(DPR_OK, enqueue(s, &c, room));
        gpu_graph *const graph = gpu_capture_end(s->stream);
        ASSERT_TRUE(graph != NULL);
        for (size_t k = 0; k < LENGTH(chances); k++) {
            const uint64_t known = know(s, &c, chances[k]);
            clear_results(s);
            EXPECT_TRUE(gpu_graph_launch(graph, s->stream));
            expect_enqueued(s, &c, known, known <= room ? known : 0);
            EXPECT_THAT(!test_failed(), "%s of %zu keys, %u of a hundred begin a run", dpr_op_name(c.op), c.count,
                        chances[k]);
        }
        gpu_graph_destroy(graph);
    }
}

/* A plan does what it explains: one pass for sums with room for a result of each key, and otherwise several. */
KEYS_TEST(plans) {
    NEED_GPU();
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMIN, DPR_MEAN};
    static const uint32_t chances[] = {10, 30, 100, 0};
    static const char one_pass[] = "runs of keys in one pass";
    const scene *s = fixture;
    for (size_t i = 0; i < 2 * LENGTH(ops) && !test_failed(); i++) {
        const call c = {.dtype = DPR_I64, .op = ops[i / 2], .count = 300000};
        dpr_problem problem = DPR_PROBLEM_INIT;
        dpr_plan *plan = NULL;
        char text[8192];
        size_t size = sizeof text;
        problem.op = c.op;
        problem.dtype = DPR_I32;
        problem.count = c.count;
        problem.key_dtype = c.dtype;
        problem.room = i % 2 ? c.count / 3 : c.count;
        ASSERT_STATUS(DPR_OK, dpr_plan_create(s->gpu, &problem, &plan));
        EXPECT_EQ_I64(i == 0, strcmp(dpr_plan_strategy(plan), one_pass) == 0); /* sums, with room for all */
        EXPECT_STATUS(DPR_OK, dpr_plan_explain(plan, text, &size));
        char line[80];
        (void)snprintf(line, sizeof line, "\nstrategy:  %s, ", dpr_plan_strategy(plan));
        EXPECT_CONTAINS(text, line);
        for (size_t k = 0; k < LENGTH(chances); k++) {
            const uint64_t known = know(s, &c, chances[k]);
            clear_results(s);
            EXPECT_STATUS(DPR_OK, dpr_plan_run_by_key(plan, s->keys_device, s->in_device, s->unique_device,
                                                      s->out_device, s->runs_device, s->stream));
            expect_enqueued(s, &c, known, known <= problem.room ? known : 0);
        }
        dpr_plan_destroy(plan);
    }
}

/* A graph follows the number of keys, which is more than there are, none, or of a part of them. */
KEYS_TEST(a_number_of_keys_on_the_device) {
    NEED_GPU();
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMIN};
    static const uint64_t numbers[] = {MOST, 0, 1, 2047, 300000, MOST - 1, MOST + 1, UINT64_MAX};
    const scene *s = fixture;
    uint64_t *const number = gpu_alloc(DPR_MEMORY_PINNED, sizeof *number);
    ASSERT_TRUE(number != NULL);
    for (size_t i = 0; i < 2 * LENGTH(ops) && !test_failed(); i++) {
        const dpr_op op = ops[i / 2];
        const uint64_t room = i % 2 ? 20000 : MOST;
        ASSERT_TRUE(gpu_capture_begin(s->stream));
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(s->gpu, s->keys_device, DPR_I32, s->in_device, s->unique_device,
                                                      s->out_device, s->runs_device, room, MOST, number, DPR_I32, op,
                                                      NULL, s->stream));
        gpu_graph *const graph = gpu_capture_end(s->stream);
        ASSERT_TRUE(graph != NULL);
        for (size_t k = 0; k < LENGTH(numbers) && !test_failed(); k++) {
            const call c = {.dtype = DPR_I32, .op = op, .count = numbers[k] < MOST ? (size_t)numbers[k] : MOST};
            const uint64_t known = know(s, &c, 10);
            *number = numbers[k];
            clear_results(s);
            EXPECT_TRUE(gpu_graph_launch(graph, s->stream));
            expect_enqueued(s, &c, known, known <= room ? known : 0);
            EXPECT_THAT(!test_failed(), "%s of %zu keys, room for %zu runs", dpr_op_name(op), c.count, (size_t)room);
        }
        gpu_graph_destroy(graph);
    }
    gpu_free(DPR_MEMORY_PINNED, number);
}

/* ---- In one pass, where there is room for all results that there can be ---- */

/* A call of any pair. Elements begin `shift` elements behind a boundary of 256 bytes. */
typedef struct pair_call {
    dpr_op op;
    dpr_dtype dtype;
    size_t count, shift;
    const dpr_options *options;
} pair_call;

/* Reduces on the CPU; magnitudes come to s->unique_known if sums are to be compared. Returns the number of runs. */
static uint64_t know_pair(const scene *s, const pair_call *c, const unsigned char *in) {
    uint64_t runs = c->count, same = c->count;
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->cpu, s->keys, DPR_U16, in, NULL, s->known, &runs, c->count, c->dtype,
                                            c->op, c->options));
    if (c->op == DPR_SUM)
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->cpu, s->keys, DPR_U16, in, NULL, s->unique_known, &same, c->count,
                                                c->dtype, DPR_NORM1, NULL));
    return runs;
}

/* Fills the results that there can be with 0x5a. */
static void clear_pair(const scene *s, const pair_call *c) {
    const size_t bytes = c->count * dpr_dtype_size(dpr_result_dtype(c->op, c->dtype));
    memset(s->got, 0x5a, bytes);
    EXPECT_TRUE(gpu_copy(s->out_device, s->got, bytes));
}

static void expect_close(const scene *s, const pair_call *c, uint64_t runs) {
    const dpr_dtype type = dpr_result_dtype(c->op, c->dtype);
    const size_t size = dpr_dtype_size(type);
    size_t wrong = 0;
    EXPECT_TRUE(gpu_copy(s->got, s->out_device, c->count * size));
    for (size_t i = 0; i < runs; i++)
        wrong += !results_are_close(c->op, type, (char *)s->got + i * size, (char *)s->known + i * size, size, c->count,
                                    c->op == DPR_SUM ? magnitude_at(c->dtype, s->unique_known, i) : 0);
    EXPECT_TRUE(is_untouched((char *)s->got + runs * size, (c->count - runs) * size));
    EXPECT_THAT(wrong == 0, "%zu results of %s of %s are wrong, %zu elements, shift %zu", wrong, dpr_op_name(c->op),
                dpr_dtype_name(c->dtype), c->count, c->shift);
}

static void expect_pair(const scene *s, const pair_call *c) {
    const size_t before = c->shift * dpr_dtype_size(c->dtype);
    const call keys = {.dtype = DPR_U16, .count = c->count};
    unsigned char *const in = (unsigned char *)s->in + before, *const in_device =
                                                                   (unsigned char *)s->in_device + before;
    if (c->op == DPR_PROD && (c->dtype == DPR_C64 || c->dtype == DPR_C128))
        fill_with_units(c->dtype, s->in, c->count + c->shift);
    else
        data_fill(s->in, c->op, c->dtype, DATA_RANDOM, c->count + c->shift);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, (c->count + c->shift) * dpr_dtype_size(c->dtype)));
    static const uint32_t chances[] = {0, 1, 41, 100};
    for (size_t i = 0; i < LENGTH(chances); i++) {
        const uint32_t chance = chances[i];
        uint64_t runs = c->count, enqueued = 0;
        make_keys(s, &keys, chance);
        const uint64_t known = know_pair(s, c, in);
        clear_pair(s, c);
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_U16, in_device, NULL, s->out_device, &runs,
                                                c->count, c->dtype, c->op, c->options));
        EXPECT_EQ_U64(known, runs);
        expect_close(s, c, known);
        clear_pair(s, c);
        EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(s->gpu, s->keys_device, DPR_U16, in_device, NULL, s->out_device,
                                                      s->runs_device, c->count, c->count, NULL, c->dtype, c->op,
                                                      c->options, s->stream));
        EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&enqueued, s->runs_device, sizeof enqueued));
        EXPECT_EQ_U64(known, enqueued);
        expect_close(s, c, known);
    }
}

/* The same, with the first result as the initial value. */
static void expect_pair_with_init(const scene *s, const pair_call *c) {
    dpr_options options = *c->options;
    pair_call with_init = *c;
    unsigned char init[16];
    memcpy(init, s->known, sizeof init);
    options.init = init;
    with_init.options = &options;
    expect_pair(s, &with_init);
}

KEYS_TEST(every_pair_in_one_pass) {
    static const size_t counts[] = {1, 777, 20479, 20481, 200003};
    const scene *s = fixture;
    NEED_GPU();
    for (size_t i = 0; i < dpr_op_count() * dpr_dtype_count() && !test_failed(); i++) {
        const dpr_op op = dpr_op_at(i / dpr_dtype_count());
        const dpr_dtype dtype = dpr_dtype_at(i % dpr_dtype_count());
        for (size_t k = 0; k < LENGTH(counts) && op < DPR_SUMSQ && dpr_supported(op, dtype); k++) {
            dpr_options options = DPR_OPTIONS_INIT;
            options.nan = k % 2 ? DPR_NAN_IGNORE : DPR_NAN_PROPAGATE;
            const pair_call c = {
                .op = op, .dtype = dtype, .count = counts[k], .shift = (i + k) % 5, .options = &options};
            expect_pair(s, &c);
            if (k == 1 && op != DPR_ARGMIN && op != DPR_ARGMAX)
                expect_pair_with_init(s, &c);
        }
    }
    data_fill(s->in, DPR_SUM, DPR_I32, DATA_RANDOM, MOST);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST * sizeof *s->in));
}

/* Makes elements whose sum is 0 but for what is lost where a tile of 5120 elements, of which two warps have one that is
 * not 0, is rounded. */
static void make_what_tiles_round(float *x) {
    const size_t tile = 5120, warp = 640;
    memset(x, 0, MOST * sizeof *x);
    for (size_t first = 0; first + tile <= MOST; first += tile) {
        x[first + 6 * warp] = 1;
        x[first + 7 * warp] = 0x1p-24F + 0x1p-30F;
        x[MOST - 1] -= 1;
    }
}

/* Sums of floats that round differently in another order; runs of all lengths, and one over the whole array. */
KEYS_TEST(one_pass_has_the_same_bits_in_each_run) {
    enum { RUNS = 40 };
    const scene *s = fixture;
    NEED_GPU();
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t chance = k < 3 ? k : 0;
        const call c = {.dtype = DPR_I32, .count = MOST};
        if (k < 3)
            data_fill(s->in, DPR_SUM, DPR_F32, DATA_RANDOM, MOST);
        else
            make_what_tiles_round((float *)s->in);
        EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST * sizeof *s->in));
        make_keys(s, &c, chance);
        for (uint64_t bytes = MOST * sizeof(float), i = 0; i < RUNS && !test_failed(); i++) {
            EXPECT_STATUS(DPR_OK,
                          dpr_reduce_by_key_async(s->gpu, s->keys_device, DPR_I32, s->in_device, NULL, s->out_device,
                                                  s->runs_device, MOST, MOST, NULL, DPR_F32, DPR_SUM, NULL, s->stream));
            EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(i ? s->got : s->known, s->out_device, bytes));
            EXPECT_THAT(i == 0 || memcmp(s->got, s->known, bytes) == 0, "run %d differs, chance %u", (int)i, chance);
        }
    }
    data_fill(s->in, DPR_SUM, DPR_I32, DATA_RANDOM, MOST);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST * sizeof *s->in));
}

/* The error of a sum of F32 over the run of elements first .. first+count-1, over what dpr.h allows. */
static double excess_in_one_pass(const scene *s, size_t first, size_t count) {
    const uint64_t all = first + count;
    float *const x = (float *)s->in, got[2] = {0, 0};
    uint64_t runs = all;
    double exact = 0;
    for (size_t i = 0; i < all; i++) {
        x[i] = 0x1p-24F * (1 + 0x1p-10F);
        s->keys[i] = i >= first;
    }
    x[first] = 1;
    for (size_t i = first; i < all; i++)
        exact += (double)x[i];
    EXPECT_TRUE(gpu_copy(s->in_device, x, all * sizeof *x) && gpu_copy(s->keys_device, s->keys, all));
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_U8, s->in_device, NULL, s->out_device, &runs,
                                            all, DPR_F32, DPR_SUM, NULL));
    EXPECT_EQ_U64(first > 0 ? 2 : 1, runs);
    EXPECT_TRUE(gpu_copy(got, s->out_device, runs * sizeof *got));
    return fabs((double)got[runs - 1] - exact) / ((log2((double)count) + 8) * 0x1p-24 * exact);
}

/* Each of these elements rounds the sum up. */
KEYS_TEST(one_pass_keeps_the_bound_of_sums) {
    static const size_t firsts[] = {0, 3, 13, 27, 5090, 5119};
    const scene *s = fixture;
    NEED_GPU();
    for (size_t i = 0; i < LENGTH(firsts); i++)
        for (size_t count = 2; count <= 6000; count += count < 45 ? 1 : count / 3) {
            const double excess = excess_in_one_pass(s, firsts[i], count);
            EXPECT_THAT(excess <= 1, "%zu elements from number %zu on: %g times the error that is allowed", count,
                        firsts[i], excess);
        }
    data_fill(s->in, DPR_SUM, DPR_I32, DATA_RANDOM, MOST);
    EXPECT_TRUE(gpu_copy(s->in_device, s->in, MOST * sizeof *s->in));
}

KEYS_TEST(no_keys_in_a_stream) {
    NEED_GPU();
    const scene *s = fixture;
    const uint64_t canary = 77;
    uint64_t runs = canary;
    EXPECT_TRUE(gpu_copy(s->runs_device, &canary, sizeof canary));
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key_async(s->gpu, NULL, DPR_I32, NULL, NULL, NULL, s->runs_device, 5, 0, NULL,
                                                  DPR_I32, DPR_SUM, NULL, s->stream));
    EXPECT_TRUE(gpu_stream_wait(s->stream) && gpu_copy(&runs, s->runs_device, sizeof runs));
    EXPECT_EQ_U64(0, runs);
}

/* The next call works after each of these. */
KEYS_TEST(mistakes) {
    NEED_GPU();
    const scene *s = fixture;
    const call good = {.dtype = DPR_I32, .op = DPR_SUM, .count = 1000};
    uint64_t runs = MOST;
    make_keys(s, &good, 50);
    EXPECT_STATUS(DPR_ERR_MEMORY_KIND, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_I32, s->in, NULL, s->got, &runs,
                                                         1000, DPR_I32, DPR_SUM, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "keys is in memory of device ");
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "segments.merge";
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_I32, s->in_device, NULL,
                                                             s->out_device, &runs, 1000, DPR_I32, DPR_VAR, &options));
    EXPECT_EQ_U64(MOST, runs);
    EXPECT_STATUS(DPR_OK, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_I32, s->in_device, NULL, s->out_device, &runs,
                                            1000, DPR_I32, DPR_SUM, NULL)); /* the keys are not wanted */
    EXPECT_TRUE(runs > 300 && runs < 700);
    runs = 0;
    EXPECT_STATUS(DPR_ERR_BUFFER_TOO_SMALL, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_I32, s->in_device, NULL, NULL,
                                                              &runs, 1000, DPR_I32, DPR_SUM, NULL));
    EXPECT_TRUE(runs > 300 && runs < 700);
    ASSERT_TRUE(gpu_capture_begin(s->stream));
    const call captured = {.dtype = DPR_I32, .op = DPR_SUM, .count = 1000, .in_stream = 1};
    options.strategy = NULL;
    options.stream = s->stream;
    EXPECT_STATUS(DPR_ERR_INVALID_OPTION, dpr_reduce_by_key(s->gpu, s->keys_device, DPR_I32, s->in_device, NULL,
                                                            s->out_device, &runs, 1000, DPR_I32, DPR_SUM, &options));
    gpu_graph *const graph = gpu_capture_end(s->stream);
    EXPECT_TRUE(graph != NULL); /* the capture was not spoilt */
    gpu_graph_destroy(graph);
    expect_same(s, &good, 50);
    expect_same(s, &captured, 50);
}
