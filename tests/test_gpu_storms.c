/* Storms: every thread of kernels in several streams asks for reductions, while strategies dp.* run in the same
 * streams. The pools of pending launches have four sizes. Every result is checked, no launch may fail, and the device
 * must not hang. */
#include <stdlib.h>

#include "data.h"
#include "gpu_pools.h"
#include "gpu_watch.h"
#include "storm_kernels.h"

enum { LARGEST = 1 << 22, MOST_THREADS = 20000, MOST_STREAMS = 6, LEVELS = 1 + STORM_MOST_AGAIN, MOST_ROW = 200000 };

/* Of one stream. */
typedef struct lane {
    dpr_stream stream;
    storm_row *rows;      /* host memory: MOST_THREADS */
    storm_row *sent;      /* device memory: the same */
    int64_t *sums, *come; /* device and host memory: LEVELS * MOST_THREADS */
    unsigned n;
    dpr_launch_report *report; /* pinned memory: what the run of a strategy reports */
    int64_t *sum;              /* pinned memory: its result */
    size_t count;              /* and its elements; 0: there is none */
} lane;

typedef struct scene {
    int32_t *in;   /* device memory: LARGEST small integers */
    int64_t *sums; /* of the first i of them */
    atomic_uint *done;
    dpr_stream stream;
    lane lane[MOST_STREAMS];
    uint64_t launched, refused, in_line, failed, calls, waves;
    double seconds;
} scene;

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t n) {
    return data_below(&random_state, n);
}

static int fill_array(scene *s) {
    int32_t *host = malloc(LARGEST * sizeof *host);
    s->sums = calloc(LARGEST + 1, sizeof *s->sums);
    s->in = gpu_alloc(DPR_MEMORY_DEVICE, LARGEST * sizeof *host);
    for (size_t i = 0; i < LARGEST && host && s->sums; i++) {
        host[i] = (int32_t)random_below(7) - 3;
        s->sums[i + 1] = s->sums[i] + host[i];
    }
    const int good = host && s->sums && s->in && gpu_copy(s->in, host, LARGEST * sizeof *host);
    free(host);
    return good;
}

static int open_lane(lane *l) {
    const size_t bytes = (size_t)LEVELS * MOST_THREADS * sizeof(int64_t);
    l->stream = gpu_stream_create();
    l->rows = calloc(MOST_THREADS, sizeof *l->rows);
    l->come = malloc(bytes);
    l->sent = gpu_alloc(DPR_MEMORY_DEVICE, MOST_THREADS * sizeof *l->sent);
    l->sums = gpu_alloc(DPR_MEMORY_DEVICE, bytes);
    l->report = gpu_alloc(DPR_MEMORY_PINNED, sizeof *l->report);
    l->sum = gpu_alloc(DPR_MEMORY_PINNED, sizeof *l->sum);
    return l->stream && l->rows && l->come && l->sent && l->sums && l->report && l->sum;
}

static void scene_open(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    s->done = gpu_alloc(DPR_MEMORY_PINNED, sizeof *s->done);
    s->stream = gpu_stream_create();
    ASSERT_THAT(s->done && s->stream && fill_array(s), "%s", gpu_error());
    for (int i = 0; i < MOST_STREAMS; i++)
        ASSERT_THAT(open_lane(&s->lane[i]), "%s", gpu_error());
}

static void scene_close(void *state) {
    scene *s = state;
    if (gpu_unavailable())
        return;
    for (int i = 0; i < MOST_STREAMS; i++) {
        const lane *l = &s->lane[i];
        EXPECT_TRUE(gpu_stream_destroy(l->stream));
        free(l->rows);
        free(l->come);
        gpu_free(DPR_MEMORY_DEVICE, l->sent);
        gpu_free(DPR_MEMORY_DEVICE, l->sums);
        gpu_free(DPR_MEMORY_PINNED, l->report);
        gpu_free(DPR_MEMORY_PINNED, l->sum);
    }
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    gpu_free(DPR_MEMORY_DEVICE, s->in);
    gpu_free(DPR_MEMORY_PINNED, s->done);
    free(s->sums);
}

/* ---- One wave: a kernel in each of some streams, and in some a strategy after it ---- */

static void plan_rows(lane *l) {
    const uint32_t longest = 1u << random_below(19), most = longest < MOST_ROW ? longest : MOST_ROW;
    const uint32_t one_in = 1 + random_below(8);
    l->n = 1 + random_below(1u << (5 + random_below(11)));
    l->n = l->n < MOST_THREADS ? l->n : MOST_THREADS;
    for (unsigned i = 0; i < l->n; i++) {
        l->rows[i].count = random_below(most + 1);
        l->rows[i].first = random_below(LARGEST - l->rows[i].count);
        l->rows[i].again = random_below(one_in) == 0 ? random_below(LEVELS) : 0;
    }
}

static int ask(const scene *s, const dpr_launcher *launcher, lane *l) {
    plan_rows(l);
    const size_t bytes = (size_t)LEVELS * l->n * sizeof *l->sums;
    const unsigned block = 32u << random_below(6);
    return gpu_copy(l->sent, l->rows, l->n * sizeof *l->sent) && gpu_fill_async(l->sums, 0x5a, bytes, l->stream)
           && EXPECT_EQ_I64(0, storm_ask(launcher, s->in, l->sent, l->n, block, l->sums, l->stream));
}

static void run_strategy(const scene *s, dpr_ctx *ctx, lane *l) {
    static const char *const forms[] = {"dp.recursive", "dp.nosync", "dp.recursive2", "dp.tree"};
    const dpr_launch_options launch = {.size = sizeof launch, .report = l->report};
    dpr_options options = DPR_OPTIONS_INIT;
    l->count = 0;
    if (random_below(3) != 0)
        return;
    l->count = 1 + random_below(1u << random_below(20));
    options.strategy = forms[random_below(LENGTH(forms))];
    options.launch = &launch;
    EXPECT_STATUS(DPR_OK, dpr_reduce_async(ctx, s->in, l->sum, l->count, DPR_I32, DPR_SUM, &options, l->stream));
}

static int64_t sum_of(const scene *s, const storm_row *row) {
    return s->sums[row->first + row->count] - s->sums[row->first];
}

static void check_lane(scene *s, const lane *l) {
    ASSERT_THAT(gpu_copy(l->come, l->sums, (size_t)LEVELS * l->n * sizeof *l->come), "%s", gpu_error());
    for (unsigned i = 0; i < l->n; i++) {
        for (unsigned level = 0; level <= l->rows[i].again; level++) {
            const storm_row *row = &l->rows[storm_row_of(i, level, l->n)];
            const int64_t got = l->come[(size_t)level * l->n + i], want = sum_of(s, row);
            ASSERT_THAT(got == want, "thread %u, sum %u of %u elements from %llu: %lld, expected %lld", i, level,
                        row->count, (unsigned long long)row->first, (long long)got, (long long)want);
            s->calls++;
        }
    }
    if (l->count == 0)
        return;
    EXPECT_EQ_I64(s->sums[l->count], *l->sum);
    s->failed += l->report->failed;
}

static void wave(scene *s, dpr_ctx *ctx, const dpr_launcher *launcher) {
    const unsigned streams = 1 + random_below(MOST_STREAMS);
    dpr_launch_report report;
    const double start = test_now();
    for (unsigned i = 0; i < streams; i++) {
        ASSERT_THAT(ask(s, launcher, &s->lane[i]), "%s", gpu_error());
        run_strategy(s, ctx, &s->lane[i]);
        ASSERT_TRUE(gpu_stream_after(s->stream, s->lane[i].stream));
    }
    gpu_watch(s->stream, s->done, 60, "a storm");
    s->seconds += test_now() - start;
    for (unsigned i = 0; i < streams && !test_failed(); i++)
        check_lane(s, &s->lane[i]);
    ASSERT_STATUS(DPR_OK, dpr_launcher_report(launcher, &report, sizeof report));
    s->launched += report.launched;
    s->refused += report.refused;
    s->in_line += report.in_line;
    s->failed += report.failed;
    s->waves++;
}

/* ---- The storms ---- */

/* DPR_TEST_STORM_SECONDS: how long, all pools together. */
static double storm_seconds(void) {
    const char *text = getenv("DPR_TEST_STORM_SECONDS");
    return text ? strtod(text, NULL) : 6;
}

static void storm_in(scene *s, size_t pool, double seconds) {
    const double end = test_now() + seconds;
    dpr_launcher launcher;
    dpr_ctx *ctx = context_of(pool);
    ASSERT_TRUE(ctx != NULL);
    ASSERT_STATUS(DPR_OK, dpr_launcher_create(ctx, 0, &launcher));
    while (test_now() < end && !test_failed())
        wave(s, ctx, &launcher);
    dpr_launcher_destroy(&launcher);
    dpr_ctx_destroy(ctx);
}

TEST_FIXTURE(GpuStorms, nothing_fails_or_hangs_in_pools_of_all_sizes, scene, scene_open, scene_close) {
    static const size_t pools[] = {128, 4096, 512, 2048};
    scene *s = fixture;
    NEED_GPU();
    const size_t count = LENGTH(pools);
    for (size_t p = 0; p < count && !test_failed(); p++)
        storm_in(s, pools[p], storm_seconds() / (double)count);
    test_record("calls", "%llu in %llu waves", (unsigned long long)s->calls, (unsigned long long)s->waves);
    test_record("launched", "%llu, %.0f a second", (unsigned long long)s->launched, (double)s->launched / s->seconds);
    test_record("refused", "%llu", (unsigned long long)s->refused);
    test_record("in_line", "%llu", (unsigned long long)s->in_line);
    EXPECT_EQ_U64(0, s->failed);
    EXPECT_TRUE(s->launched > 0 && s->refused > 0);
}
