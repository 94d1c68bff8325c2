/* cpu.threads divides the array into contiguous parts, which the kernels of cpu.simd fold on threads of the pool.
 *
 * The parts depend only on the number of threads, the count and the element size, and their accumulators are merged in
 * order. So the bits of the result depend only on these, and on whether the run has several operations, which take
 * turns at chunks (dpr_accs_fold()). A caller that finds the pool in use by another thread does all parts itself, with
 * the same result. It does not wait, because the cores are busy anyway. */
#include "axes.h"
#include "cost.h"
#include "ops.h"
#include "pool.h"
#include "segments.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(dpr_acc[DPR_FUSED_MOST]) <= sizeof(dpr_pool_cell), "a part's accumulators fit a cell");

enum {
    PART_BYTES = 65536,  /* bytes; for less, handing a part to another thread does not pay */
    BORDER_BYTES = 4096, /* parts begin at multiples of this many bytes from the array's beginning */
};

typedef struct fold_job {
    const dpr_run *run;
    int parts;
} fold_job;

/* Index of the first element of part p. Rounding makes parts of whole cache lines and pages, whatever alignment
 * malloc() gives. */
static size_t border(const dpr_run *run, int parts, int p) {
    size_t n = (size_t)parts, i = (size_t)p, grain = BORDER_BYTES / dpr_dtypes[run->key.f.dtype].size;
    if (p == parts)
        return run->count;
    return (run->count / n * i + run->count % n * i / n) / grain * grain;
}

static void fold_part(const fold_job *job, int part, dpr_acc *accs) {
    size_t first = border(job->run, job->parts, part), end = border(job->run, job->parts, part + 1);
    dpr_accs_start(job->run, accs);
    dpr_accs_fold(job->run, first, end - first, accs);
}

static void task(void *user, int part, dpr_pool_cell *cell) {
    const fold_job *job = user;
    dpr_acc accs[DPR_FUSED_MOST];
    fold_part(job, part, accs);
    memcpy(cell->bytes, accs, sizeof *accs * (size_t)dpr_run_ops(job->run));
}

static int parts_for(const dpr_run *run, int threads) {
    size_t bytes = run->count * dpr_dtypes[run->key.f.dtype].size;
    size_t most = (size_t)threads * DPR_POOL_PARTS_PER_THREAD, worth = bytes / PART_BYTES;
    return worth >= most ? (int)most : worth > 1 ? (int)worth : 1;
}

static int threads_of(const dpr_run *run) {
    const int threads = run->limits.threads;
    return threads < 1 ? 1 : threads < DPR_THREADS_MAX ? threads : DPR_THREADS_MAX;
}

static int launch_array(const dpr_run *run) {
    const int threads = threads_of(run);
    fold_job job = {.run = run, .parts = parts_for(run, threads)};
    dpr_pool *pool = threads > 1 && job.parts > 1 ? dpr_pool_acquire(threads) : NULL;
    const dpr_pool_cell *cells = pool ? dpr_pool_run(pool, threads, job.parts, task, &job) : NULL;
    dpr_acc whole[DPR_FUSED_MOST], part[DPR_FUSED_MOST];
    dpr_accs_start(run, whole);
    for (int i = 0; i < job.parts; i++) {
        if (cells)
            memcpy(part, cells[i].bytes, sizeof *part * (size_t)dpr_run_ops(run));
        else
            fold_part(&job, i, part);
        dpr_accs_merge(run, whole, part);
    }
    if (pool)
        dpr_pool_release(pool);
    dpr_accs_finish(run, whole);
    return 0;
}

/* ---- Segments ----
 *
 * Each thread takes the next block of segments until none is left. It notes segments that are too long for one thread;
 * their parts are then shared among all threads. */

enum {
    LONG_BYTES = 1 << 21,  /* a segment that is longer is divided; one core reads this in some 0.1 ms */
    BLOCK_BYTES = 1 << 18, /* elements of a block, which threads aim at by what their last block had */
    LEAST_BLOCK = 16,      /* segments of a thread's first block */
    MOST_BLOCK = 4096,     /* segments, at most, that a thread takes at a time */
    BLOCKS = 16,           /* at least this many blocks a thread, if there are enough segments */
    MOST_LONG = 256,       /* long segments that are noted; a thread that comes across another one reduces it alone */
};

typedef struct long_segment {
    uint64_t number;
    dpr_range range;
    size_t first; /* number of its first part among those of all long segments */
} long_segment;

typedef struct segment_job {
    const dpr_run *run;
    int threads;
    dpr_segment_limits limits;
    uint64_t most;         /* segments of a block */
    _Atomic uint64_t next; /* first segment that nobody has taken */
    _Atomic size_t found;  /* long segments, those that are not noted among them */
    long_segment noted[MOST_LONG];
    dpr_acc *accs;            /* of the parts of all noted segments */
    size_t parts;             /* how many these are */
    _Atomic size_t next_part; /* the first that nobody has taken */
} segment_job;

/* A long segment as an array of its own. */
static dpr_run run_of(const segment_job *job, const long_segment *s) {
    dpr_run one = *job->run;
    one.segments = NULL;
    one.in = (const unsigned char *)one.in + s->range.begin * dpr_dtypes[one.key.f.dtype].size;
    one.count = s->range.end - s->range.begin;
    one.out = dpr_segment_out(job->run, s->number);
    return one;
}

/* Merges the parts of a long segment and writes its result. Without job->accs, also folds the parts. */
static void finish_long(const segment_job *job, const long_segment *s) {
    const dpr_run one = run_of(job, s);
    const fold_job fold = {&one, parts_for(&one, job->threads)};
    dpr_acc whole, part;
    dpr_accs_start(&one, &whole);
    for (int i = 0; i < fold.parts; i++) {
        if (job->accs)
            part = job->accs[s->first + (size_t)i];
        else
            fold_part(&fold, i, &part);
        dpr_accs_merge(&one, &whole, &part);
    }
    if (job->run->segments->index == DPR_INDEX_IN_ARRAY && whole.index >= 0
        && dpr_ops[one.key.f.op].result == DPR_RESULT_INDEX)
        whole.index += (int64_t)s->range.begin;
    dpr_accs_finish(&one, &whole);
}

static void note_long(void *user, uint64_t number, dpr_range range) {
    segment_job *job = user;
    const long_segment s = {number, range, 0};
    const size_t i = atomic_fetch_add(&job->found, 1);
    if (i < MOST_LONG)
        job->noted[i] = s;
    else
        finish_long(job, &s);
}

static void do_segments(segment_job *job) {
    const uint64_t count = job->run->segments->count, size = dpr_dtypes[job->run->key.f.dtype].size;
    uint64_t block = job->most < LEAST_BLOCK ? job->most : LEAST_BLOCK;
    for (uint64_t first; (first = atomic_fetch_add(&job->next, block)) < count;) {
        const uint64_t end = count - first < block ? count : first + block;
        const uint64_t bytes = size * dpr_cpu_segments(job->run, first, end, job->limits, note_long, job);
        if (bytes < BLOCK_BYTES / 2 && block * 2 <= job->most)
            block *= 2;
        if (bytes > BLOCK_BYTES * 2 && block > 1)
            block /= 2;
    }
}

static void segment_task(void *user, int part, dpr_pool_cell *cell) {
    (void)part;
    (void)cell;
    do_segments(user);
}

static void long_task(void *user, int part, dpr_pool_cell *cell) {
    segment_job *job = user;
    const long_segment *s = job->noted;
    (void)part;
    (void)cell;
    for (size_t p; (p = atomic_fetch_add(&job->next_part, 1)) < job->parts;) {
        while (s < &job->noted[job->found - 1] && p >= s[1].first)
            s++;
        const dpr_run one = run_of(job, s);
        fold_part(&(fold_job){&one, parts_for(&one, job->threads)}, (int)(p - s->first), &job->accs[p]);
    }
}

/* Reduces the noted segments; without a pool, or without memory for the parts, one part after another. */
static void do_long(segment_job *job, dpr_pool *pool) {
    const size_t found = job->found < MOST_LONG ? job->found : MOST_LONG;
    job->found = found;
    for (size_t i = 0; i < found; i++) {
        const dpr_run one = run_of(job, &job->noted[i]);
        job->noted[i].first = job->parts;
        job->parts += (size_t)parts_for(&one, job->threads);
    }
    job->accs = pool && found > 0 ? malloc(job->parts * sizeof *job->accs) : NULL;
    if (job->accs)
        (void)dpr_pool_run(pool, job->threads, job->threads, long_task, job);
    for (size_t i = 0; i < found; i++)
        finish_long(job, &job->noted[i]);
    free(job->accs);
}

static int launch_segments(const dpr_run *run) {
    const int threads = threads_of(run);
    const uint64_t share = run->segments->count / ((uint64_t)threads * BLOCKS);
    segment_job job = {.run = run,
                       .threads = threads,
                       .limits = dpr_cpu_segment_limits(&run->key, LONG_BYTES / dpr_dtypes[run->key.f.dtype].size),
                       .most = share < 1            ? 1
                               : share < MOST_BLOCK ? share
                                                    : MOST_BLOCK};
    dpr_pool *pool = threads > 1 ? dpr_pool_acquire(threads) : NULL;
    if (pool)
        (void)dpr_pool_run(pool, threads, threads, segment_task, &job);
    else
        do_segments(&job);
    do_long(&job, pool);
    if (pool)
        dpr_pool_release(pool);
    return 0;
}

static int launch(const dpr_run *run) {
    if (run->axes)
        return dpr_cpu_axes(run, threads_of(run));
    return run->segments ? launch_segments(run) : launch_array(run);
}

/* Waking the workers and waiting for the last of them takes 10 us, and 0.5 us for each. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double threads = (double)caps->cpu.threads;
    return (dpr_cost){.latency = 10e-6 + 0.5e-6 * threads + dpr_cpu_segment_seconds(key, size) / threads,
                      .bytes = dpr_array_bytes(key, size),
                      .rate = dpr_cpu_rate(key, &caps->cpu) * threads};
}

static dpr_launch_limits limits(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)key;
    (void)resident;
    return (dpr_launch_limits){.threads = (int)caps->cpu.threads, .max_blocks = 1};
}

const dpr_strategy dpr_cpu_threads = {
    .name = "cpu.threads",
    .text = "vector instructions on one thread for each core",
    .side = DPR_ON_CPU,
    .role = DPR_ROLE_CANDIDATE,
    .fuses = 1,
    .segmented = 1,
    .strided = 1,
    .cost = cost,
    .limits = limits,
    .launch = launch,
};
