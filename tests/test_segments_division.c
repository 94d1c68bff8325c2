/* How the CPU divides segments among threads (shares.h), and finds runs of keys (runs.h). */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise() */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/runs.h"
#include "cpu/segments.h"
#include "cpu/shares.h"
#include "data.h"
#include "support.h"

enum { SEGMENTS = 1 << 16, FEW = 1024, LONG = 1 << 17, PIECE = 1 << 16, THREADS = 4 };

/* A list and how often each segment was taken. */
typedef struct scene {
    dpr_segment_list list;
    int64_t numbers[2 * SEGMENTS];
    unsigned char taken[SEGMENTS];
} scene;

/* Offsets, or begins and ends, of segments with these lengths. */
static void set_lengths(scene *s, uint64_t (*length)(uint64_t i), int has_ends) {
    int64_t sum = 0;
    memset(s->taken, 0, sizeof s->taken);
    s->list = (dpr_segment_list){.count = SEGMENTS, .begins = s->numbers, .ends = s->numbers + 1, .dtype = DPR_I64};
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        s->numbers[i] = sum;
        sum += (int64_t)length(i);
        s->numbers[has_ends ? SEGMENTS + i : i + 1] = sum;
    }
    if (has_ends)
        s->list.ends = s->numbers + SEGMENTS;
}

static void note(scene *s, uint64_t first, uint64_t end) {
    EXPECT_TRUE(first < end && end <= s->list.count);
    for (uint64_t i = first; i < end && i < SEGMENTS; i++)
        s->taken[i]++;
}

/* What segments take to reduce, in elements. */
static uint64_t work_of(const scene *s, uint64_t first, uint64_t end) {
    uint64_t work = 0;
    for (uint64_t i = first; i < end; i++) {
        const dpr_range r = dpr_segment_range(&s->list, i);
        work += 1 + r.end - r.begin;
    }
    return work;
}

/* The thread that has done least is the next one to take segments. */
static int least_of(const uint64_t *work) {
    int least = 0;
    for (int i = 1; i < THREADS; i++)
        least = work[i] < work[least] ? i : least;
    return least;
}

/* Expects threads that are equally fast to be done at about the same time. */
static void expect_balance(scene *s) {
    dpr_shares *shares = malloc(sizeof *shares);
    uint64_t work[THREADS] = {0}, first, end, most = 0, longest = 0;
    const uint64_t all = work_of(s, 0, s->list.count);
    dpr_shares_begin(shares, &s->list, THREADS, PIECE);
    for (int thread = 0; dpr_shares_next(shares, thread, &first, &end); thread = least_of(work)) {
        note(s, first, end);
        work[thread] += work_of(s, first, end);
        for (uint64_t i = first; i < end; i++)
            longest = work_of(s, i, i + 1) > longest ? work_of(s, i, i + 1) : longest;
    }
    for (int i = 0; i < THREADS; i++)
        most = work[i] > most ? work[i] : most;
    EXPECT_THAT(most <= all / THREADS + longest + PIECE, "a thread has %llu of %llu elements", (unsigned long long)most,
                (unsigned long long)all);
    for (uint64_t i = 0; i < s->list.count; i++)
        EXPECT_EQ_U64(1, s->taken[i]);
    free(shares);
}

static uint64_t long_first(uint64_t i) {
    return i < FEW ? LONG : 1;
}
static uint64_t long_last(uint64_t i) {
    return i < SEGMENTS - FEW ? 1 : LONG;
}
static uint64_t long_here_and_there(uint64_t i) {
    return i % 64 == 33 ? LONG : 1;
}
static uint64_t all_short(uint64_t i) {
    return i % 5;
}
static uint64_t all_empty(uint64_t i) {
    return i * 0;
}

TEST(SegmentsDivision, by_elements) {
    static uint64_t (*const lengths[])(uint64_t i) = {long_first, long_last, long_here_and_there, all_short, all_empty};
    scene *s = malloc(sizeof *s);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (int has_ends = 0; has_ends < 2; has_ends++) {
            set_lengths(s, lengths[i], has_ends);
            expect_balance(s);
        }
    free(s);
}

/* In whatever order threads ask, and if some never do, every segment of the blocks that were taken comes once. */
TEST(SegmentsDivision, each_segment_once) {
    scene *s = malloc(sizeof *s);
    dpr_shares *shares = malloc(sizeof *shares);
    uint64_t seed = 7, first, end;
    for (int round = 0; round < 50; round++) {
        const int threads = 1 + (int)data_below(&seed, DPR_THREADS_MAX), asking = 1 + (int)data_below(&seed, 3);
        set_lengths(s, round % 2 ? long_here_and_there : all_short, round / 2 % 2);
        s->list.count = 1 + data_below(&seed, round % 5 == 0 ? SEGMENTS : 40);
        dpr_shares_begin(shares, &s->list, threads, PIECE);
        while (dpr_shares_next(shares, (int)data_below(&seed, (uint32_t)asking) % threads, &first, &end))
            note(s, first, end);
        for (uint64_t i = 0; i < s->list.count; i++)
            EXPECT_EQ_U64(1, s->taken[i]);
    }
    free(s);
    free(shares);
}

/* A thread that takes segments while others do. */
typedef struct taker {
    scene *scene;
    dpr_shares *shares;
    int number;
} taker;

static void *take_all(void *of) {
    const taker *t = of;
    uint64_t first, end;
    while (dpr_shares_next(t->shares, t->number, &first, &end))
        for (uint64_t i = first; i < end; i++)
            t->scene->taken[i]++;
    return NULL;
}

TEST(SegmentsDivision, by_several_threads_at_once) {
    scene *s = malloc(sizeof *s);
    dpr_shares *shares = malloc(sizeof *shares);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        taker takers[THREADS];
        set_lengths(s, round % 2 ? long_here_and_there : all_short, round / 2 % 2);
        dpr_shares_begin(shares, &s->list, THREADS, PIECE);
        for (int i = 0; i < THREADS; i++) {
            takers[i] = (taker){s, shares, i};
            ASSERT_TRUE(pthread_create(&threads[i], NULL, take_all, &takers[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++)
            EXPECT_TRUE(pthread_join(threads[i], NULL) == 0);
        for (uint64_t i = 0; i < s->list.count; i++)
            EXPECT_EQ_U64(1, s->taken[i]);
    }
    free(s);
    free(shares);
}

/* Memory that is 0, and takes room only where it is written. */
static void *zeros(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The last of more segments than 32 bits count: their numbers and results lie behind 2^32 others, which are empty and
 * counted as taken. */
TEST(SegmentsDivision, more_than_32_bits_count) {
    enum { LAST = 3000 };
    const uint64_t before = UINT64_C(1) << 32, count = before + LAST;
    int32_t *const offsets = zeros((count + 1) * sizeof *offsets);
    uint8_t *const out = zeros(count);
    static uint8_t in[LAST];
    dpr_shares *shares = malloc(sizeof *shares);
    uint64_t first, end, wrong = 0;
    if (offsets && out && shares) {
        const dpr_segment_list list = {.count = count, .begins = offsets, .ends = offsets + 1, .dtype = DPR_I32};
        dpr_run run = {.in = in, .out = out, .count = LAST, .segments = &list};
        run.key.f.op = DPR_ROW(DPR_MAX);
        run.key.f.dtype = DPR_ROW(DPR_U8);
        const dpr_segment_limits limits = {dpr_cpu_fold_many(&run.key), dpr_cpu_fold(&run.key), DPR_SHORT_SEGMENT,
                                           SIZE_MAX};
        for (int i = 0; i < LAST; i++) {
            in[i] = (uint8_t)(i % 251 + 1);
            offsets[before + (uint64_t)i + 1] = i + 1;
        }
        dpr_shares_begin(shares, &list, THREADS, PIECE);
        atomic_store(&shares->next, before);
        for (int thread = 0; dpr_shares_next(shares, thread, &first, &end); thread = (thread + 1) % THREADS)
            EXPECT_EQ_U64(0, dpr_cpu_segments(&run, first, end, limits));
        for (int i = 0; i < LAST; i++)
            wrong += out[before + (uint64_t)i] != in[i];
        EXPECT_EQ_U64(0, wrong);
        EXPECT_EQ_U64(LAST, dpr_segment_elements(&list, 0, count));
    }
    if (offsets)
        (void)munmap(offsets, (count + 1) * sizeof *offsets);
    if (out)
        (void)munmap(out, count);
    free(shares);
    if (!offsets || !out)
        SKIP("needs 20 GiB of address space");
}

/* Where runs begin among more keys than 32 bits count. All keys are 0 but three. */
TEST(RunsOfKeys, more_than_32_bits_count) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    SKIP("a sanitizer needs memory for each of 4 Gi keys");
#else
    const size_t before = (size_t)1 << 32, count = before + 9;
    uint8_t *const keys = zeros(count);
    if (!keys)
        SKIP("needs 4 GiB of address space");
    (void)madvise(keys, count, MADV_HUGEPAGE);
    keys[7] = keys[before + 5] = keys[before + 6] = 3;
    const int64_t known[] = {0, 7, 8, (int64_t)before + 5, (int64_t)before + 7, (int64_t)count};
    dpr_runs runs = {.keys = keys, .key_bytes = 1, .count = count, .threads = THREADS};
    ASSERT_TRUE(dpr_runs_find(&runs));
    ASSERT_EQ_U64(5, runs.number);
    EXPECT_TRUE(memcmp(runs.begins, known, sizeof known) == 0);
    uint8_t unique[6] = {9, 9, 9, 9, 9, 9};
    dpr_runs_keys(&runs, 5, unique);
    EXPECT_TRUE(memcmp(unique, (const uint8_t[]){0, 3, 0, 3, 0, 9}, sizeof unique) == 0);
    free(runs.begins);
    (void)munmap(keys, count);
#endif
}
