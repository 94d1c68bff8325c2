/* The timing engine's pure parts: statistics, the stopping rule, and which buffers a batch reads. */
#include <string.h>

#include "layout.h"
#include "statistics.h"
#include "support.h"

/* ---- Statistics ------------------------------------------------------------------------------------------------- */

/* P(X <= k) for X binomial with n and p = 1/2, by Pascal's triangle. */
static double binomial(int n, int k) {
    double row[64] = {1}, sum = 0;
    for (int i = 1; i <= n; i++)
        for (int j = i; j >= 0; j--)
            row[j] = (row[j] + (j > 0 ? row[j - 1] : 0)) / 2;
    for (int j = 0; j <= k; j++)
        sum += row[j];
    return sum;
}

TEST(BenchStatistics, ranks_enclose_the_median_with_95_percent) {
    for (int n = 1; n < 64; n++) {
        const int rank = bench_median_rank(n);
        ASSERT_TRUE(rank >= 0 && rank <= n / 2);
        if (rank > 0)
            EXPECT_THAT(1 - 2 * binomial(n, rank - 1) >= 0.95, "rank %d of %d encloses too little", rank, n);
        if (rank < n / 2)
            EXPECT_THAT(1 - 2 * binomial(n, rank) < 0.95, "rank %d of %d could be greater", rank, n);
    }
    EXPECT_EQ_I64(0, bench_median_rank(5));
    EXPECT_EQ_I64(1, bench_median_rank(6));
    EXPECT_EQ_I64(40, bench_median_rank(100)); /* the usual table's */
    EXPECT_TRUE(bench_median_rank(1000) > 460 && bench_median_rank(1000) < 500);
}

TEST(BenchStatistics, quantiles) {
    const double one[] = {7}, five[] = {1, 2, 3, 4, 10};
    EXPECT_NEAR_F64(7, bench_quantile(one, 1, 0.9), 0);
    EXPECT_NEAR_F64(3, bench_quantile(five, 5, 0.5), 0);
    EXPECT_NEAR_F64(1, bench_quantile(five, 5, 0), 0);
    EXPECT_NEAR_F64(10, bench_quantile(five, 5, 1), 0);
    EXPECT_NEAR_F64(7.6, bench_quantile(five, 5, 0.9), 1e-12);
}

TEST(BenchStatistics, summaries) {
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = 1 + (i * 37 + 11) % 100; /* 1 to 100, not in order */
    const bench_summary s = bench_summarise(values, 100);
    EXPECT_EQ_I64(100, s.n);
    EXPECT_EQ_I64(1, s.bounded);
    EXPECT_NEAR_F64(50.5, s.median, 0);
    EXPECT_NEAR_F64(1, s.least, 0);
    EXPECT_NEAR_F64(40, s.low, 0);
    EXPECT_NEAR_F64(61, s.high, 0);
    EXPECT_NEAR_F64(10.5 / 50.5, s.half_width, 1e-12);
    EXPECT_NEAR_F64((90.1 - 10.9) / 50.5, s.spread, 1e-12);
    EXPECT_NEAR_F64(12, values[0], 0);
}

TEST(BenchStatistics, few_values_bound_nothing) {
    const double values[] = {5, 1, 3};
    const bench_summary s = bench_summarise(values, 3), none = bench_summarise(values, 0);
    EXPECT_EQ_I64(0, s.bounded);
    EXPECT_NEAR_F64(1, s.low, 0);
    EXPECT_NEAR_F64(5, s.high, 0);
    EXPECT_EQ_I64(0, none.n);
    const double zeros[8] = {0};
    EXPECT_NEAR_F64(0, bench_summarise(zeros, 8).half_width, 0);
}

TEST(BenchStatistics, ratios_of_pairs_do_not_see_drift) {
    static bench_outcome a = {.us.n = 20}, b = {.us.n = 21};
    for (int i = 0; i < 20; i++) {
        b.samples[i] = 1 + 0.1 * i;
        a.samples[i] = 3 * b.samples[i];
    }
    const bench_summary s = bench_compare(&a, &b);
    EXPECT_EQ_I64(20, s.n);
    EXPECT_NEAR_F64(3, s.median, 1e-12);
    EXPECT_NEAR_F64(0, s.spread, 1e-12);
}

TEST(BenchStatistics, steady_times_do_not_see_how_fast_the_host_is) {
    static bench_outcome launch = {.us = {.n = 20, .median = 4}}, stream = {.us = {.n = 21, .median = 8}},
                         blocking = {.us = {.n = 19, .median = 11}}, none = {.us.median = 4};
    for (int i = 0; i < 20; i++) {
        launch.samples[i] = 3 + 0.1 * i;
        stream.samples[i] = 2 * launch.samples[i];
        blocking.samples[i] = launch.samples[i] + 7;
    }
    bench_summary s = bench_steady(&stream, &launch, BENCH_STREAM);
    EXPECT_EQ_I64(20, s.n);
    EXPECT_NEAR_F64(7, s.median, 1e-12); /* twice 3500 ns */
    EXPECT_NEAR_F64(0, s.spread, 1e-12);
    s = bench_steady(&blocking, &launch, BENCH_BLOCKING);
    EXPECT_EQ_I64(19, s.n);
    EXPECT_NEAR_F64(17, s.median, 1e-12); /* 7 us beyond 10 */
    EXPECT_NEAR_F64(0, s.spread, 1e-12);
    launch.samples[3] = 1e6;
    EXPECT_TRUE(bench_steady(&blocking, &launch, BENCH_BLOCKING).least > 0);
    EXPECT_EQ_I64(0, bench_steady(&stream, &launch, BENCH_GRAPH).n);
    EXPECT_EQ_I64(0, bench_steady(&stream, &none, BENCH_STREAM).n);
    none.us.n = 5; /* too few for an interval */
    EXPECT_EQ_I64(0, bench_steady(&none, &launch, BENCH_STREAM).n);
    stream.us.median = 4.1 * launch.us.median; /* the device limits it */
    EXPECT_EQ_I64(0, bench_steady(&stream, &launch, BENCH_STREAM).n);
    blocking.us.median = stream.us.median;
    EXPECT_EQ_I64(0, bench_steady(&blocking, &launch, BENCH_BLOCKING).n);
}

TEST(BenchStatistics, verdicts) {
    const bench_rule rule = {.half_width = 0.01, .min_samples = 7, .max_samples = 50, .seconds = 2};
    bench_summary s = {.n = 6, .bounded = 1, .median = 1};
    EXPECT_EQ_I64(BENCH_MORE, bench_judge(&rule, &s, 100)); /* too few, however late it is */
    s.n = 7;
    EXPECT_EQ_I64(BENCH_SETTLED, bench_judge(&rule, &s, 0));
    s.half_width = 0.02;
    EXPECT_EQ_I64(BENCH_MORE, bench_judge(&rule, &s, 1.9));
    EXPECT_EQ_I64(BENCH_OUT_OF_TIME, bench_judge(&rule, &s, 2));
    s.n = 50;
    EXPECT_EQ_I64(BENCH_OUT_OF_SAMPLES, bench_judge(&rule, &s, 1));
    s = (bench_summary){.n = 7, .bounded = 0, .median = 1};
    EXPECT_EQ_I64(BENCH_MORE, bench_judge(&rule, &s, 0)); /* a width of 0 that bounds nothing */
}

/* ---- Layouts ---------------------------------------------------------------------------------------------------- */

enum { KIB = 1 << 10, MIB = 1 << 20 };
static const size_t gib = (size_t)1 << 30;

static bench_layout lay(const bench_room *room, bench_mode mode, bench_cache cache, size_t bytes) {
    const bench_point point = {.mode = mode, .cache = cache, .bytes = bytes};
    bench_layout layout = {0};
    char why[BENCH_WHY] = "";
    EXPECT_THAT(bench_lay(room, &point, &layout, why) == 0, "%zu bytes: %s", bytes, why);
    return layout;
}

/* All buffers lie in the pool, and a batch reads each at most once, or so much that it clears the cache itself. */
static void check_cold(const bench_room *room, bench_mode mode, size_t bytes) {
    static unsigned char seen[1 << 17];
    const bench_layout l = lay(room, mode, BENCH_COLD, bytes);
    int again = 0;
    ASSERT_TRUE(l.calls >= 1 && l.calls <= BENCH_CALLS);
    ASSERT_TRUE(l.buffers >= 1 && l.buffers <= sizeof seen);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < l.calls; i++) {
        const size_t at = bench_offset(&l, (size_t)i);
        ASSERT_TRUE(at % l.stride == 0 && at % room->block_bytes == 0);
        ASSERT_TRUE(at + bytes <= room->pool_bytes);
        again |= seen[at / l.stride];
        seen[at / l.stride] = 1;
    }
    EXPECT_THAT(!again || l.buffers * bytes >= 4 * room->cache_bytes, "%zu bytes are read again", bytes);
}

TEST(BenchLayout, cold_batches_read_no_buffer_twice) {
    const bench_room rooms[] = {{1, 8 * gib, 64 * KIB, (size_t)60 * MIB},
                                {1, gib, 64 * KIB, (size_t)128 * MIB},
                                {1, (size_t)16 * MIB, 64 * KIB, (size_t)4 * MIB},
                                {0, gib, 64 * KIB, (size_t)256 * MIB}};
    for (size_t r = 0; r < LENGTH(rooms); r++)
        for (int mode = rooms[r].on_gpu ? BENCH_GRAPH : BENCH_BLOCKING; mode < BENCH_MODES; mode++)
            for (size_t bytes = 0; bytes <= rooms[r].pool_bytes; bytes = bytes ? bytes * 3 : 1)
                check_cold(&rooms[r], (bench_mode)mode, bytes);
}

TEST(BenchLayout, small_calls_are_far_apart_and_many) {
    const bench_room room = {1, 8 * gib, 64 * KIB, (size_t)60 * MIB};
    const bench_layout l = lay(&room, BENCH_GRAPH, BENCH_COLD, 4096);
    EXPECT_EQ_I64(100, l.calls);
    EXPECT_EQ_U64(64 * KIB, l.stride);
    EXPECT_EQ_U64(8 * gib / (64 * KIB) / 100 * (64 * KIB), bench_offset(&l, 1));
    EXPECT_TRUE(lay(&room, BENCH_GRAPH, BENCH_COLD, 8 * gib).calls == 5);
    EXPECT_TRUE(lay(&room, BENCH_STREAM, BENCH_COLD, 4096).calls >= 200);
}

/* A larger pool is there for larger arrays. */
TEST(BenchLayout, small_arrays_of_the_cpu_have_no_more_buffers_than_they_need) {
    const bench_room small = {0, gib, 64 * KIB, (size_t)60 * MIB}, large = {0, 16 * gib, 64 * KIB, (size_t)60 * MIB};
    EXPECT_EQ_U64((size_t)240 * MIB, bench_pool_enough(0, small.cache_bytes));
    for (size_t bytes = 1; bytes <= gib; bytes *= 2) {
        const bench_layout a = lay(&small, BENCH_BLOCKING, BENCH_COLD, bytes);
        const bench_layout b = lay(&large, BENCH_BLOCKING, BENCH_COLD, bytes);
        EXPECT_EQ_U64(a.buffers, b.buffers);
        EXPECT_EQ_I64(a.calls, b.calls);
        EXPECT_TRUE(a.buffers == 1 || a.buffers * a.stride <= (size_t)240 * MIB);
    }
}

TEST(BenchLayout, hot_calls_read_one_buffer) {
    const bench_room room = {1, gib, 64 * KIB, (size_t)60 * MIB};
    const bench_layout l = lay(&room, BENCH_GRAPH, BENCH_HOT, MIB);
    for (size_t i = 0; i < (size_t)l.calls; i++)
        EXPECT_EQ_U64(0, bench_offset(&l, i));
}

TEST(BenchLayout, what_does_not_fit_is_refused_with_a_reason) {
    const bench_room gpu = {1, gib, 64 * KIB, (size_t)60 * MIB}, cpu = {0, gib, 64 * KIB, (size_t)60 * MIB};
    const bench_room empty = {0, gib, 0, (size_t)60 * MIB};
    const struct {
        const bench_room *room;
        bench_point point;
        const char *why;
    } cases[] = {{&gpu, {.mode = BENCH_GRAPH, .bytes = gib + 1}, "memory for"},
                 {&gpu, {.mode = BENCH_GRAPH, .cache = BENCH_HOT, .bytes = (size_t)50 * MIB}, "stay in a cache"},
                 {&cpu, {.mode = BENCH_STREAM, .bytes = 1}, "blocking calls only"},
                 {&gpu, {.mode = BENCH_GRAPH, .bytes = 8, .mark_bytes = 9}, "mark"},
                 {&empty, {.mode = BENCH_BLOCKING, .bytes = 8}, "not filled"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        bench_layout layout = {.calls = -7};
        char why[BENCH_WHY] = "";
        EXPECT_EQ_I64(-1, bench_lay(cases[i].room, &cases[i].point, &layout, why));
        EXPECT_CONTAINS(why, cases[i].why);
        EXPECT_EQ_I64(-7, layout.calls);
    }
}

TEST(BenchLayout, slow_calls_make_smaller_batches) {
    const bench_layout l = {.calls = 100};
    EXPECT_EQ_I64(100, bench_calls(&l, 1e-6, 1));
    EXPECT_EQ_I64(10, bench_calls(&l, 0.1, 1.001));
    EXPECT_EQ_I64(1, bench_calls(&l, 5, 1));
    EXPECT_EQ_I64(100, bench_calls(&l, 0, 0));
    EXPECT_EQ_I64(10, bench_calls(&l, 9.99e-5, 0)); /* never less than 1 ms, budget or not */
}
