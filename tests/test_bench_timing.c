/* The timing engine on the CPU, with subjects that note what happens to them. */
#include <string.h>

#include "support.h"
#include "timing.h"

enum { BLOCK = 4096, MARK_AT = 3 * BLOCK - 1, POOL = 16 << 20 };

/* What a subject saw. */
typedef struct witness {
    long calls;
    const unsigned char *first, *last; /* buffers */
    int moved;                         /* 1: calls read other buffers than the first */
    int bad_data, marked;              /* calls whose buffer was not as filled; that saw the mark */
    int fails_at, answers;             /* fails at that call, from 1; 1: gives a result */
    long spins, growth;                /* of the first call; how many more each later one has */
    volatile sig_atomic_t *stops;      /* set when it has failed or come to stops_at */
    long stops_at;
} witness;

typedef struct engine {
    bench_timer *timer;
    unsigned char block[BLOCK];
    char why[BENCH_WHY];
} engine;

static const uint32_t answer = 0x12345678;

static int call(void *user, const void *in, void *host_out) {
    witness *w = user;
    const unsigned char *data = in;
    w->calls++;
    if (!w->first)
        w->first = data;
    w->moved |= data != w->first;
    w->last = data;
    w->bad_data += data[0] != 1 || data[BLOCK - 1] != (unsigned char)BLOCK || data[BLOCK] != 1;
    w->marked += data[MARK_AT] == 0xEE;
    for (volatile long i = 0; i < w->spins + w->growth * w->calls; i++) {}
    if (w->answers)
        memcpy(host_out, &answer, sizeof answer);
    if (w->stops && w->calls >= w->stops_at)
        *w->stops = 1;
    return w->fails_at && w->calls >= w->fails_at ? 42 : 0;
}

static int count_wrong(void *user, const void *results, int n) {
    (void)user;
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += memcmp((const char *)results + (size_t)i * BENCH_RESULT_STRIDE, &answer, sizeof answer) != 0;
    return wrong;
}

static bench_subject subject(witness *w) {
    return (bench_subject){.name = "witness", .user = w, .call = call, .count_wrong = count_wrong};
}

static void set_up(void *state) {
    engine *e = state;
    for (size_t i = 0; i < BLOCK; i++)
        e->block[i] = (unsigned char)(i + 1);
    ASSERT_THAT(bench_timer_create(DPR_DEVICE_CPU, DPR_MEMORY_AUTO, POOL, &e->timer, e->why) == 0, "%s", e->why);
    ASSERT_THAT(bench_fill(e->timer, e->block, BLOCK, e->why) == 0, "%s", e->why);
}

static void tear_down(void *state) {
    bench_timer_destroy(((engine *)state)->timer);
}

#define ENGINE_TEST(NAME) TEST_FIXTURE(BenchTiming, NAME, engine, set_up, tear_down)

static const bench_rule rule = {.half_width = 0.05, .min_samples = 7, .max_samples = 40, .seconds = 0.2};
static const bench_point cold = {.mode = BENCH_BLOCKING, .cache = BENCH_COLD, .bytes = 3 * BLOCK};

/* Outcomes are large. */
static bench_outcome outcomes[4];

static int run(engine *e, const bench_point *point, const bench_subject *subjects, int n) {
    return bench_run(e->timer, point, &rule, subjects, n, outcomes, e->why);
}

ENGINE_TEST(device_is_described) {
    const bench_device *d = bench_timer_device(fixture->timer);
    EXPECT_EQ_I64(DPR_DEVICE_CPU, d->ordinal);
    EXPECT_TRUE(d->sm_count >= 1);
    EXPECT_TRUE(d->cache_bytes > 0);
    EXPECT_TRUE(d->pool_bytes >= POOL);
}

ENGINE_TEST(cold_calls_rotate_and_are_all_checked) {
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_DONE, outcomes[0].state);
    EXPECT_TRUE(outcomes[0].us.n >= 7 && outcomes[0].us.n <= 40);
    EXPECT_TRUE(outcomes[0].us.median > 0 && outcomes[0].us.low <= outcomes[0].us.median);
    EXPECT_EQ_I64((long)outcomes[0].us.n * outcomes[0].calls, outcomes[0].checked);
    EXPECT_EQ_I64(0, outcomes[0].wrong);
    EXPECT_TRUE(w.moved);
    EXPECT_EQ_I64(0, w.bad_data);
}

ENGINE_TEST(hot_calls_stay) {
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    bench_point hot = cold;
    hot.cache = BENCH_HOT;
    ASSERT_THAT(run(fixture, &hot, &s, 1) == 0, "%s", fixture->why);
    EXPECT_TRUE(!w.moved && w.calls > 7);
}

ENGINE_TEST(results_that_are_not_written_are_wrong) {
    witness good = {.answers = 1}, silent = {.answers = 0};
    const bench_subject s[] = {subject(&good), subject(&silent)};
    ASSERT_THAT(run(fixture, &cold, s, 2) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(0, outcomes[0].wrong);
    EXPECT_TRUE(outcomes[1].checked > 0);
    EXPECT_EQ_I64(outcomes[1].checked, outcomes[1].wrong);
}

/* ---- Arrays of results ------------------------------------------------------------------------------------------ */

enum { ARRAY = 2 * BLOCK + 1000 };

static unsigned char array[ARRAY];

/* Writes the array but for its last `misses` bytes. */
typedef struct writer {
    int misses, calls, misplaced;
} writer;

static int write_array(void *user, const void *in, void *out) {
    writer *w = user;
    w->calls++;
    w->misplaced += (const unsigned char *)out != (const unsigned char *)in + 3 * BLOCK;
    memcpy(out, array, (size_t)(ARRAY - w->misses));
    return 0;
}

/* The point of calls that read three blocks, of which the mark is longer than one. */
static bench_point with_array(bench_cache cache) {
    static unsigned char mark[BLOCK + 1];
    bench_point point = cold;
    memset(mark, 0xEE, sizeof mark);
    for (size_t i = 0; i < sizeof array; i++)
        array[i] = (unsigned char)(7 * i);
    point.cache = cache;
    point.mark = mark;
    point.mark_bytes = sizeof mark;
    point.array_bytes = sizeof array;
    point.expected = array;
    return point;
}

static void check_arrays(engine *e, bench_cache cache) {
    writer good = {.misses = 0}, short_one = {.misses = 1};
    witness silent = {.calls = 0};
    bench_subject s[] = {{.name = "good", .user = &good, .call = write_array},
                         {.name = "short", .user = &short_one, .call = write_array},
                         subject(&silent)};
    const bench_point point = with_array(cache);
    ASSERT_THAT(run(e, &point, s, 3) == 0, "%s", e->why);
    EXPECT_EQ_I64(0, good.misplaced + outcomes[0].wrong);
    EXPECT_TRUE(good.calls > 7 && silent.calls > 7);
    EXPECT_EQ_I64(silent.calls, silent.marked);
    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(outcomes[i].checked >= outcomes[i].us.n);
    EXPECT_EQ_I64(outcomes[1].checked, outcomes[1].wrong);
    EXPECT_EQ_I64(outcomes[2].checked, outcomes[2].wrong);
    witness after = {.answers = 1};
    s[0] = subject(&after);
    ASSERT_THAT(run(e, &cold, s, 1) == 0, "%s", e->why);
    EXPECT_EQ_I64(0, after.marked + after.bad_data);
}

ENGINE_TEST(arrays_of_results_are_compared_in_cold_calls) {
    check_arrays(fixture, BENCH_COLD);
}

ENGINE_TEST(arrays_of_results_are_compared_in_hot_calls) {
    check_arrays(fixture, BENCH_HOT);
}

ENGINE_TEST(marks_are_in_every_buffer_and_gone_afterwards) {
    const unsigned char mark = 0xEE;
    witness w = {.answers = 1}, after = {.answers = 1};
    bench_subject s = subject(&w);
    bench_point marked = cold;
    marked.mark = &mark;
    marked.mark_bytes = 1;
    ASSERT_THAT(run(fixture, &marked, &s, 1) == 0, "%s", fixture->why);
    EXPECT_TRUE(w.calls > 0 && w.moved);
    EXPECT_EQ_I64(w.calls, w.marked);
    s = subject(&after);
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(0, after.marked + after.bad_data);
}

ENGINE_TEST(a_subject_that_fails_leaves_the_others_alone) {
    witness good = {.answers = 1}, early = {.fails_at = 1}, late = {.fails_at = 2000, .answers = 1};
    const bench_subject s[] = {subject(&early), subject(&good), subject(&late)};
    ASSERT_THAT(run(fixture, &cold, s, 3) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_FAILED, outcomes[0].state);
    EXPECT_CONTAINS(outcomes[0].why, "42");
    EXPECT_EQ_I64(BENCH_DONE, outcomes[1].state);
    EXPECT_EQ_I64(BENCH_FAILED, outcomes[2].state);
}

ENGINE_TEST(subjects_take_turns_and_are_compared) {
    witness quick = {.answers = 1, .spins = 2000}, slow = {.answers = 1, .spins = 8000};
    const bench_subject s[] = {subject(&quick), subject(&slow)};
    ASSERT_THAT(run(fixture, &cold, s, 2) == 0, "%s", fixture->why);
    const bench_summary ratio = bench_compare(&outcomes[1], &outcomes[0]);
    EXPECT_TRUE(ratio.n >= 7);
    /* Other programs on the machine may make either slower. */
    EXPECT_THAT(ratio.median > 1.5, "four times as long came out as %g times", ratio.median);
}

/* The samples of one subject grow, so that their median is never certain to 10 %, and those of the other do not. The
 * one that accompanies has as many samples as the other wants, whichever it is. */
ENGINE_TEST(a_subject_that_accompanies_others_goes_on_with_them) {
    const bench_rule loose = {.half_width = 0.1, .min_samples = 7, .max_samples = 30, .seconds = 60};
    for (int grows = 0; grows < 2; grows++) {
        witness other = {.answers = 1, .spins = 2000, .growth = grows ? 50 : 0},
                companion = {.answers = 1, .spins = 2000, .growth = grows ? 0 : 50};
        bench_subject s[] = {subject(&other), subject(&companion)};
        s[1].accompanies = 1;
        ASSERT_THAT(bench_run(fixture->timer, &cold, &loose, s, 2, outcomes, fixture->why) == 0, "%s", fixture->why);
        EXPECT_TRUE(!grows || outcomes[0].verdict == BENCH_OUT_OF_SAMPLES);
        EXPECT_EQ_I64(outcomes[0].us.n, outcomes[1].us.n);
    }
}

ENGINE_TEST(an_interrupt_keeps_what_there_is) {
    volatile sig_atomic_t flag = 0;
    witness w = {.answers = 1, .stops = &flag, .stops_at = 1}, never = {.answers = 1};
    const bench_subject s[] = {subject(&w), subject(&never)};
    bench_timer_watch(fixture->timer)->stop = &flag;
    ASSERT_THAT(run(fixture, &cold, s, 2) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_INTERRUPTED, outcomes[0].state);
    EXPECT_EQ_I64(BENCH_INTERRUPTED, outcomes[1].state);
    EXPECT_EQ_I64(0, never.calls);
    flag = 0;
    w = (witness){.answers = 1, .stops = &flag, .stops_at = 4}; /* in the first sample: three calls warm up */
    ASSERT_THAT(run(fixture, &cold, s, 1) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_DONE, outcomes[0].state);
    EXPECT_EQ_I64(BENCH_MORE, outcomes[0].verdict);
    EXPECT_EQ_I64(1, outcomes[0].us.n);
    EXPECT_TRUE(outcomes[0].us.median > 0);
}

/* A subject that looks at all that it is to read. */
typedef struct reader {
    const unsigned char *block;
    size_t bytes;
    long calls, bad;
} reader;

static int read_all(void *user, const void *in, void *host_out) {
    reader *r = user;
    (void)host_out;
    r->calls++;
    for (size_t at = 0; at < r->bytes; at += BLOCK)
        r->bad += memcmp((const char *)in + at, r->block, r->bytes - at < BLOCK ? r->bytes - at : BLOCK) != 0;
    return 0;
}

static void tick(void *user) {
    ++*(long *)user;
}

ENGINE_TEST(ticks_come_with_every_sample) {
    long ticks = 0;
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    *bench_timer_watch(fixture->timer) = (bench_watch){.tick = tick, .tick_user = &ticks};
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    EXPECT_TRUE(ticks >= outcomes[0].us.n);
}

/* Calls see the block's bytes in all of the array, whatever was made for smaller ones before. */
ENGINE_TEST(data_is_made_as_far_as_arrays_reach) {
    static const size_t sizes[] = {100, BLOCK + 100, 2 * BLOCK, 100, 3 * BLOCK, 5 * BLOCK, (2 << 20) + 1, 3 * BLOCK};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        reader r = {.block = fixture->block, .bytes = sizes[i]};
        const bench_subject s = {.name = "reader", .user = &r, .call = read_all};
        bench_point point = cold;
        point.bytes = sizes[i];
        ASSERT_THAT(run(fixture, &point, &s, 1) == 0, "%s", fixture->why);
        EXPECT_TRUE(r.calls > 7 && r.bad == 0);
    }
}

/* A mark may begin at the end of one repetition of the block. */
ENGINE_TEST(marks_across_repetitions_are_gone_afterwards) {
    const unsigned char mark[2] = {0xEE, 0xEE};
    reader r = {.block = fixture->block, .bytes = 2 * BLOCK + 1};
    const bench_subject s = {.name = "reader", .user = &r, .call = read_all};
    bench_point point = cold;
    point.bytes = r.bytes;
    point.mark = mark;
    point.mark_bytes = sizeof mark;
    ASSERT_THAT(run(fixture, &point, &s, 1) == 0, "%s", fixture->why);
    EXPECT_TRUE(r.calls > 7 && r.bad == 2 * r.calls);
    r.calls = r.bad = 0;
    point.mark_bytes = 0;
    ASSERT_THAT(run(fixture, &point, &s, 1) == 0, "%s", fixture->why);
    EXPECT_TRUE(r.calls > 7 && r.bad == 0);
}

static void check_stopped(engine *e, const witness *w) {
    EXPECT_EQ_I64(0, w->calls);
    EXPECT_EQ_I64(BENCH_INTERRUPTED, outcomes[0].state);
    EXPECT_CONTAINS(outcomes[0].why, "MiB of memory were filled");
    *bench_timer_watch(e->timer) = (bench_watch){.end = 0};
}

ENGINE_TEST(making_data_can_be_stopped) {
    volatile sig_atomic_t flag = 2;
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    bench_timer_watch(fixture->timer)->stop = &flag;
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    check_stopped(fixture, &w);
    bench_timer_watch(fixture->timer)->end = seconds_now();
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    check_stopped(fixture, &w);
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_DONE, outcomes[0].state);
    EXPECT_EQ_I64(0, w.bad_data);
}

/* As soon as data is made that a tick stops. */
static void stop(void *user) {
    *(volatile sig_atomic_t *)user = 1;
}

ENGINE_TEST(making_data_ticks) {
    volatile sig_atomic_t flag = 0;
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    *bench_timer_watch(fixture->timer) =
        (bench_watch){.stop = &flag, .tick = stop, .tick_user = (void *)(uintptr_t)&flag};
    ASSERT_THAT(run(fixture, &cold, &s, 1) == 0, "%s", fixture->why);
    check_stopped(fixture, &w);
}

/* Time that is over once a subject has made more calls than warm it up. */
typedef struct hourglass {
    bench_timer *timer;
    const witness *w;
} hourglass;

static void look_at_calls(void *user) {
    const hourglass *h = user;
    if (h->w->calls > 3)
        bench_timer_watch(h->timer)->end = seconds_now();
}

ENGINE_TEST(sampling_ends_with_the_time) {
    witness w = {.answers = 1};
    hourglass h = {fixture->timer, &w};
    const bench_subject s = subject(&w);
    const bench_rule endless = {.half_width = 1e-9, .min_samples = 1000, .max_samples = 1000, .seconds = 1e6};
    *bench_timer_watch(fixture->timer) = (bench_watch){.tick = look_at_calls, .tick_user = &h};
    ASSERT_THAT(bench_run(fixture->timer, &cold, &endless, &s, 1, outcomes, fixture->why) == 0, "%s", fixture->why);
    EXPECT_EQ_I64(BENCH_DONE, outcomes[0].state);
    EXPECT_EQ_I64(BENCH_MORE, outcomes[0].verdict);
    EXPECT_EQ_I64(1, outcomes[0].us.n);
}

ENGINE_TEST(points_that_cannot_be_timed_are_refused) {
    witness w = {.answers = 1};
    const bench_subject s = subject(&w);
    const bench_point graph = {.mode = BENCH_GRAPH, .bytes = 1};
    EXPECT_EQ_I64(1, run(fixture, &graph, &s, 1));
    EXPECT_CONTAINS(fixture->why, "blocking");
    EXPECT_EQ_I64(-1, run(fixture, &cold, &s, 0));
    EXPECT_EQ_I64(-1, run(fixture, &cold, &s, BENCH_SUBJECTS + 1));
    EXPECT_EQ_I64(-1, bench_fill(fixture->timer, fixture->block, 100, fixture->why));
    EXPECT_EQ_I64(0, w.calls);
}

ENGINE_TEST(the_reference_is_measured_and_compared) {
    bench_reference now = {0};
    ASSERT_THAT(bench_look(fixture->timer, &now, fixture->why) == 0, "%s", fixture->why);
    EXPECT_TRUE(now.clock_mhz > 10 && now.clock_mhz < 1e5);
    EXPECT_TRUE(now.read_gb_per_s > 0.01);
    const bench_reference before = {1000, 100}, slower = {970, 80}, quicker = {1200, 110};
    EXPECT_NEAR_F64(0.2, bench_slowdown(&before, &slower), 1e-12);
    EXPECT_NEAR_F64(0, bench_slowdown(&before, &quicker), 0);
}

TEST(BenchTiming, names) {
    EXPECT_EQ_STR("graph", bench_mode_name(BENCH_GRAPH));
    EXPECT_EQ_STR("blocking", bench_mode_name(BENCH_BLOCKING));
    EXPECT_EQ_STR("hot", bench_cache_name(BENCH_HOT));
    EXPECT_TRUE(bench_mode_name(BENCH_MODES) == NULL && bench_cache_name(BENCH_CACHES) == NULL);
}
