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
#include "shares.h"

#include <stdatomic.h>
#include <string.h>

_Static_assert(sizeof(dpr_acc[DPR_FUSED_MOST]) <= sizeof(dpr_pool_cell), "a part's accumulators fit a cell");

enum {
    BORDER_BYTES = 4096, /* parts begin at multiples of this many bytes from the array's beginning */
    LOOK_BYTES = 1 << 18 /* that a part folds between two looks at has_ended */
};

typedef struct fold_job {
    const dpr_run *run;
    int parts;
    int may_end;           /* 1: the operations are ALL and ANY, which one element may decide */
    _Atomic int has_ended; /* 1: a part has decided the run */
} fold_job;

/* Index of the first element of part p. Rounding makes parts of whole cache lines and pages, whatever alignment
 * malloc() gives. */
static size_t border(const dpr_run *run, int parts, int p) {
    size_t n = (size_t)parts, i = (size_t)p, grain = BORDER_BYTES / dpr_dtypes[run->key.f.dtype].size;
    if (p == parts)
        return run->count;
    return (run->count / n * i + run->count % n * i / n) / grain * grain;
}

static int may_end(const dpr_run *run) {
    const uint32_t ends = UINT32_C(1) << DPR_ROW(DPR_ALL) | UINT32_C(1) << DPR_ROW(DPR_ANY);
    return (dpr_cpu_ops(&run->key) & ~ends) == 0;
}

static void fold_part(fold_job *job, int part, dpr_acc *accs) {
    const size_t first = border(job->run, job->parts, part), end = border(job->run, job->parts, part + 1);
    const size_t step = job->may_end ? (size_t)LOOK_BYTES / dpr_dtypes[job->run->key.f.dtype].size : end - first;
    dpr_accs_start(job->run, accs);
    for (size_t i = first; i < end && !atomic_load(&job->has_ended); i += step) {
        dpr_accs_fold(job->run, i, end - i < step ? end - i : step, accs);
        if (job->may_end && dpr_accs_are_decided(job->run, accs))
            atomic_store(&job->has_ended, 1);
    }
}

static void task(void *user, int part, dpr_pool_cell *cell) {
    fold_job *job = user;
    dpr_acc accs[DPR_FUSED_MOST];
    fold_part(job, part, accs);
    memcpy(cell->bytes, accs, sizeof *accs * (size_t)dpr_run_ops(job->run));
}

static int parts_for(const dpr_run *run, int threads) {
    size_t bytes = run->count * dpr_dtypes[run->key.f.dtype].size;
    size_t most = (size_t)threads * DPR_POOL_PARTS_PER_THREAD, worth = bytes / DPR_POOL_PART_BYTES;
    return worth >= most ? (int)most : worth > 1 ? (int)worth : 1;
}

static int threads_of(const dpr_run *run) {
    const int threads = run->limits.threads;
    return threads < 1 ? 1 : threads < DPR_THREADS_MAX ? threads : DPR_THREADS_MAX;
}

static int launch_array(const dpr_run *run) {
    const int threads = threads_of(run);
    fold_job job = {.run = run, .parts = parts_for(run, threads), .may_end = may_end(run)};
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
 * Threads take segments until none is left (shares.h). Segments that are too long for one thread are left out, and then
 * divided among all threads, one after another. */

enum {
    LONG_BYTES = 1 << 21,  /* a segment that is longer is divided; one core reads this in some 0.2 ms */
    PIECE_BYTES = 1 << 18, /* of segments that a thread takes at a time */
    MOST_NOTES = 512,      /* 1 GiB in offsets has no more long segments */
};

/* Segments first .. end - 1. */
typedef struct stretch {
    uint64_t first, end;
} stretch;

typedef struct segment_job {
    dpr_shares shares;
    const dpr_run *run;
    dpr_segment_limits limits;
    _Atomic size_t notes;      /* pieces that have long segments; those after MOST_NOTES are only counted */
    stretch noted[MOST_NOTES]; /* read when all threads are done */
} segment_job;

static void note_long(segment_job *job, uint64_t first, uint64_t end) {
    const size_t n = atomic_fetch_add(&job->notes, 1);
    if (n < MOST_NOTES)
        job->noted[n] = (stretch){first, end};
}

static void do_segments(segment_job *job, int thread) {
    uint64_t first, end;
    while (dpr_shares_next(&job->shares, thread, &first, &end))
        if (dpr_cpu_segments(job->run, first, end, job->limits) > 0)
            note_long(job, first, end);
}

static void segment_task(void *user, int part, dpr_pool_cell *cell) {
    (void)cell;
    do_segments(user, part);
}

/* Reduces a long segment, as an array of its own. */
static void do_long(const dpr_run *run, uint64_t i, dpr_range r) {
    const size_t size = dpr_dtypes[run->key.f.dtype].size;
    dpr_run one = *run;
    one.segments = NULL;
    one.in = (const unsigned char *)run->in + r.begin * size;
    one.count = r.end - r.begin;
    one.out = dpr_segment_out(run, i);
    one.first_index = run->first_index + r.begin;
    (void)launch_array(&one);
    if (!run->label && dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX && run->segments->index == DPR_INDEX_IN_ARRAY)
        *(int64_t *)one.out += *(int64_t *)one.out >= 0 ? (int64_t)r.begin : 0;
}

static void do_long_of(const segment_job *job, stretch s) {
    for (uint64_t i = s.first; i < s.end; i++) {
        const dpr_range r = dpr_segment_range(job->run->segments, i);
        if (r.end - r.begin > job->limits.whole)
            do_long(job->run, i, r);
    }
}

static void do_all_long(segment_job *job) {
    const size_t notes = atomic_load(&job->notes);
    if (notes > MOST_NOTES)
        do_long_of(job, (stretch){0, job->run->segments->count});
    for (size_t n = 0; notes <= MOST_NOTES && n < notes; n++)
        do_long_of(job, job->noted[n]);
}

static int launch_segments(const dpr_run *run) {
    const int threads = threads_of(run);
    const size_t size = dpr_dtypes[run->key.f.dtype].size, whole = LONG_BYTES / size;
    dpr_pool *pool = threads > 1 ? dpr_pool_acquire(threads) : NULL;
    segment_job job;
    job.run = run;
    job.limits = (dpr_segment_limits){dpr_cpu_fold_many(&run->key), dpr_cpu_fold(&run->key), DPR_SHORT_SEGMENT, whole};
    atomic_init(&job.notes, 0);
    dpr_shares_begin(&job.shares, run->segments, pool ? threads : 1, PIECE_BYTES / size);
    if (pool) {
        (void)dpr_pool_run(pool, threads, threads, segment_task, &job);
        dpr_pool_release(pool);
    } else {
        do_segments(&job, 0);
    }
    do_all_long(&job);
    return 0;
}

static int launch(const dpr_run *run) {
    if (run->axes)
        return dpr_cpu_axes(run, dpr_cpu_fold_many(&run->key), dpr_cpu_fold(&run->key), threads_of(run));
    return run->segments ? launch_segments(run) : launch_array(run);
}

/* Waking the workers and waiting for the last of them takes cpu.wake_ns. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double threads = (double)caps->cpu.threads;
    return (dpr_cost){.latency = 1e-9 * (double)caps->cpu.wake_ns + dpr_cpu_segment_seconds(key, size) / threads,
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
