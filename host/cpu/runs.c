#define _DEFAULT_SOURCE /* madvise() */

#include "runs.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "caps.h"
#include "element.h"
#include "key_runs.h"
#include "lists.h"
#include "pool.h"

enum {
    MOST_PARTS = DPR_THREADS_MAX * DPR_POOL_PARTS_PER_THREAD,
    LOOK = 64,          /* keys among which runs are counted before they are written; mostly none, if runs are long */
    HUGE_PAGE = 1 << 21 /* bytes */
};

/* A pass over the keys, or over the runs. */
typedef struct job {
    const dpr_runs *runs;
    size_t count; /* of keys or runs */
    int parts;
    uint64_t *before; /* of each part: how many runs it has; later, how many begin before it */
    void *to;         /* receives the key of each run */
} job;

/* ---- Loops over numbers whose sizes are constants ---- */

DPR_INLINE uint64_t number_at(const void *numbers, size_t bytes, size_t i) {
    switch (bytes) {
    case 1:
        return ((const uint8_t *)numbers)[i];
    case 2:
        return ((const uint16_t *)numbers)[i];
    case 4:
        return ((const uint32_t *)numbers)[i];
    default:
        return ((const uint64_t *)numbers)[i];
    }
}

DPR_INLINE void put_number(void *numbers, size_t bytes, size_t i, uint64_t number) {
    switch (bytes) {
    case 1:
        ((uint8_t *)numbers)[i] = (uint8_t)number;
        break;
    case 2:
        ((uint16_t *)numbers)[i] = (uint16_t)number;
        break;
    case 4:
        ((uint32_t *)numbers)[i] = (uint32_t)number;
        break;
    default:
        ((uint64_t *)numbers)[i] = number;
        break;
    }
}

DPR_INLINE uint64_t begins_run(const void *keys, size_t key_bytes, size_t i) {
    return number_at(keys, key_bytes, i) != number_at(keys, key_bytes, i - 1);
}

/* Runs that begin at keys i .. end - 1. The loop has no branch, so that vector instructions can do it. */
DPR_INLINE uint64_t count_begins(const void *keys, size_t key_bytes, size_t i, size_t end) {
    uint64_t n = 0;
    for (; i < end; i++)
        n += begins_run(keys, key_bytes, i);
    return n;
}

/* Writes where they begin, the first to to[n]. Every key is written, and the next one over it if it begins no run:
 * where keys differ often, a branch would be predicted wrongly. */
DPR_INLINE void write_begins(const void *keys, size_t key_bytes, size_t i, size_t end, void *to, size_t begin_bytes,
                             uint64_t n) {
    for (size_t next; i < end; i = next) {
        next = end - i < LOOK ? end : i + LOOK;
        const uint64_t stop = n + count_begins(keys, key_bytes, i, next);
        for (; n < stop; i++) {
            put_number(to, begin_bytes, n, i);
            n += begins_run(keys, key_bytes, i);
        }
    }
}

/* ---- Parts ---- */

typedef struct range {
    size_t from, end;
} range;

static range range_of(const job *j, int part) {
    const size_t n = (size_t)j->parts, share = j->count / n, rest = j->count % n, i = (size_t)part;
    const size_t from = share * i + (i < rest ? i : rest);
    return (range){from, from + share + (i < rest)};
}

/* The first key of all begins a run, which no part counts. */
DPR_INLINE void count_part(const job *j, int part, size_t key_bytes) {
    const range r = range_of(j, part);
    j->before[part] = count_begins(j->runs->keys, key_bytes, r.from + (r.from == 0), r.end);
}

DPR_INLINE void write_part(const job *j, int part, size_t key_bytes, size_t begin_bytes) {
    const range r = range_of(j, part);
    write_begins(j->runs->keys, key_bytes, r.from + (r.from == 0), r.end, j->runs->begins, begin_bytes,
                 j->before[part]);
}

DPR_INLINE void copy_part(const job *j, int part, size_t key_bytes, size_t begin_bytes) {
    const range r = range_of(j, part);
    for (size_t i = r.from; i < r.end; i++)
        put_number(j->to, key_bytes, i,
                   number_at(j->runs->keys, key_bytes, (size_t)number_at(j->runs->begins, begin_bytes, i)));
}

typedef struct tasks {
    dpr_pool_task count, write, copy;
} tasks;

#define DPR_TASKS_DEFINE(KEY, BEGIN)                                                                                   \
    static void count_##KEY##_##BEGIN(void *user, int part, dpr_pool_cell *cell) {                                     \
        (void)cell;                                                                                                    \
        count_part(user, part, KEY);                                                                                   \
    }                                                                                                                  \
    static void write_##KEY##_##BEGIN(void *user, int part, dpr_pool_cell *cell) {                                     \
        (void)cell;                                                                                                    \
        write_part(user, part, KEY, BEGIN);                                                                            \
    }                                                                                                                  \
    static void copy_##KEY##_##BEGIN(void *user, int part, dpr_pool_cell *cell) {                                      \
        (void)cell;                                                                                                    \
        copy_part(user, part, KEY, BEGIN);                                                                             \
    }
DPR_TASKS_DEFINE(1, 4)
DPR_TASKS_DEFINE(2, 4)
DPR_TASKS_DEFINE(4, 4)
DPR_TASKS_DEFINE(8, 4)
DPR_TASKS_DEFINE(1, 8)
DPR_TASKS_DEFINE(2, 8)
DPR_TASKS_DEFINE(4, 8)
DPR_TASKS_DEFINE(8, 8)

static size_t begin_bytes_of(const dpr_runs *r) {
    return dpr_dtypes[DPR_ROW(dpr_key_runs_type(r->count))].size;
}

static const tasks *tasks_for(const dpr_runs *r) {
#define DPR_TASKS(KEY, BEGIN)                                                                                          \
    { count_##KEY##_##BEGIN, write_##KEY##_##BEGIN, copy_##KEY##_##BEGIN }
    static const tasks of[2][4] = {{DPR_TASKS(1, 4), DPR_TASKS(2, 4), DPR_TASKS(4, 4), DPR_TASKS(8, 4)},
                                   {DPR_TASKS(1, 8), DPR_TASKS(2, 8), DPR_TASKS(4, 8), DPR_TASKS(8, 8)}};
    const size_t b = r->key_bytes;
    return &of[begin_bytes_of(r) == 8][b == 1 ? 0 : b == 2 ? 1 : b == 4 ? 2 : 3];
}

/* ---- Threads ---- */

static void divide(job *j, size_t count) {
    const size_t most = (size_t)j->runs->threads * DPR_POOL_PARTS_PER_THREAD;
    const size_t worth = count / (DPR_POOL_PART_BYTES / j->runs->key_bytes);
    j->count = count;
    j->parts = worth >= most ? (int)most : worth > 1 ? (int)worth : 1;
}

static void do_parts(job *j, dpr_pool *pool, dpr_pool_task task) {
    if (pool)
        (void)dpr_pool_run(pool, j->runs->threads, j->parts, task, j);
    for (int part = 0; !pool && part < j->parts; part++)
        task(j, part, NULL);
}

static dpr_pool *pool_for(const job *j) {
    return j->runs->threads > 1 && j->parts > 1 ? dpr_pool_acquire(j->runs->threads) : NULL;
}

/* Turns the counts of parts into numbers of runs before them. */
static uint64_t add_up(const job *j) {
    uint64_t runs = 1;
    for (int part = 0; part < j->parts; part++) {
        const uint64_t of_part = j->before[part];
        j->before[part] = runs;
        runs += of_part;
    }
    return runs;
}

/* Memory whose first use takes little time: where a page of 4 KiB takes 1.7 us, one of 2 MiB takes some 200. */
static void *large_memory(size_t bytes) {
    if (bytes < 2 * HUGE_PAGE)
        return malloc(bytes);
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *const memory = aligned_alloc(HUGE_PAGE, bytes);
    if (memory)
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

int dpr_runs_find(dpr_runs *r) {
    uint64_t before[MOST_PARTS];
    job j = {.runs = r, .before = before};
    divide(&j, r->count);
    dpr_pool *const pool = pool_for(&j);
    do_parts(&j, pool, tasks_for(r)->count);
    r->number = add_up(&j);
    const size_t bytes = begin_bytes_of(r);
    r->begins = large_memory((size_t)(r->number + 1) * bytes);
    if (r->begins) {
        put_number(r->begins, bytes, 0, 0);
        put_number(r->begins, bytes, r->number, r->count);
        do_parts(&j, pool, tasks_for(r)->write);
    }
    if (pool)
        dpr_pool_release(pool);
    return r->begins != NULL;
}

void dpr_runs_keys(const dpr_runs *r, uint64_t runs, void *to) {
    job j = {.runs = r, .to = to};
    divide(&j, (size_t)runs);
    dpr_pool *const pool = pool_for(&j);
    do_parts(&j, pool, tasks_for(r)->copy);
    if (pool)
        dpr_pool_release(pool);
}
