#include "runs.h"

#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "element.h"
#include "pool.h"

DPR_INLINE uint64_t key_at(const void *keys, size_t key_bytes, size_t i) {
    switch (key_bytes) {
    case 1:
        return ((const uint8_t *)keys)[i];
    case 2:
        return ((const uint16_t *)keys)[i];
    case 4:
        return ((const uint32_t *)keys)[i];
    default:
        return ((const uint64_t *)keys)[i];
    }
}

/* ---- Loops over keys of a constant size ---- */

/* Runs that begin at keys from + 1 to end - 1. */
DPR_INLINE uint64_t count_changes(const void *keys, size_t key_bytes, size_t from, size_t end) {
    uint64_t n = 0;
    for (size_t i = from + 1; i < end; i++)
        n += key_at(keys, key_bytes, i) != key_at(keys, key_bytes, i - 1);
    return n;
}

/* Writes where they begin. Returns how many there are. */
DPR_INLINE uint64_t write_changes(const void *keys, size_t key_bytes, size_t from, size_t end, int64_t *to) {
    uint64_t n = 0;
    for (size_t i = from + 1; i < end; i++)
        if (key_at(keys, key_bytes, i) != key_at(keys, key_bytes, i - 1))
            to[n++] = (int64_t)i;
    return n;
}

/* Counts the runs, or, if `to` is not NULL, also writes where they begin. */
DPR_INLINE uint64_t scan(const void *keys, size_t key_bytes, size_t from, size_t end, int64_t *to) {
    return to ? write_changes(keys, key_bytes, from, end, to) : count_changes(keys, key_bytes, from, end);
}

static uint64_t scan_keys(const void *keys, size_t key_bytes, size_t from, size_t end, int64_t *to) {
    switch (key_bytes) {
    case 1:
        return scan(keys, 1, from, end, to);
    case 2:
        return scan(keys, 2, from, end, to);
    case 4:
        return scan(keys, 4, from, end, to);
    default:
        return scan(keys, 8, from, end, to);
    }
}

/* ---- Parts ---- */

enum { MOST_PARTS = DPR_THREADS_MAX * DPR_POOL_PARTS_PER_THREAD };

typedef struct job {
    const void *keys;
    size_t key_bytes, count;
    int threads, parts;
    dpr_pool *pool;   /* NULL: the calling thread does all parts */
    int64_t *begins;  /* NULL while runs are counted */
    uint64_t *before; /* of each part: how many runs it has; later, how many begin before it */
} job;

/* Part p compares each key of its range but the first, and the first key of the next range, with the key before it. */
static void do_part(job *j, int p) {
    const size_t n = (size_t)j->parts, share = j->count / n, rest = j->count % n, i = (size_t)p;
    const size_t from = share * i + (i < rest ? i : rest), length = share + (i < rest);
    const size_t end = p + 1 < j->parts ? from + length + 1 : j->count;
    if (j->begins)
        (void)scan_keys(j->keys, j->key_bytes, from, end, j->begins + j->before[p]);
    else
        j->before[p] = scan_keys(j->keys, j->key_bytes, from, end, NULL);
}

static void task(void *user, int part, dpr_pool_cell *cell) {
    (void)cell;
    do_part(user, part);
}

static void do_parts(job *j) {
    if (j->pool)
        (void)dpr_pool_run(j->pool, j->threads, j->parts, task, j);
    for (int p = 0; !j->pool && p < j->parts; p++)
        do_part(j, p);
}

/* Counts the runs, and turns the counts of parts into numbers of runs before them. The first key begins a run. */
static uint64_t count_runs(job *j) {
    uint64_t runs = 1;
    do_parts(j);
    for (int p = 0; p < j->parts; p++) {
        const uint64_t of_part = j->before[p];
        j->before[p] = runs;
        runs += of_part;
    }
    return runs;
}

int64_t *dpr_runs_find(const void *keys, size_t key_bytes, size_t count, int threads, uint64_t *runs) {
    uint64_t before[MOST_PARTS];
    job j = {.keys = keys, .key_bytes = key_bytes, .count = count, .threads = threads, .before = before};
    const size_t most = (size_t)j.threads * DPR_POOL_PARTS_PER_THREAD,
                 worth = count / (DPR_POOL_PART_BYTES / key_bytes);
    j.parts = worth >= most ? (int)most : worth > 1 ? (int)worth : 1;
    j.pool = j.threads > 1 && j.parts > 1 ? dpr_pool_acquire(j.threads) : NULL;
    *runs = count_runs(&j);
    j.begins = malloc((size_t)(*runs + 1) * sizeof *j.begins);
    if (j.begins) {
        j.begins[0] = 0;
        j.begins[*runs] = (int64_t)count;
        do_parts(&j);
    }
    if (j.pool)
        dpr_pool_release(j.pool);
    return j.begins;
}

void dpr_runs_keys(const void *keys, size_t key_bytes, const int64_t *begins, uint64_t runs, void *to) {
    for (uint64_t i = 0; i < runs; i++)
        memcpy((unsigned char *)to + i * key_bytes, (const unsigned char *)keys + (size_t)begins[i] * key_bytes,
               key_bytes);
}
