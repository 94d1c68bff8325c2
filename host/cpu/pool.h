/* The pool of worker threads of cpu.threads. Each worker is bound to a core.
 *
 * The pool starts with the first dpr_pool_acquire() and serves one caller at a time. The caller works, too: it replaces
 * the worker of the core that it runs on, and its own binding stays as it is. Work is divided into parts. Each thread
 * has parts of its own, and takes over those of others when it is done. So the parts of a worker that is missing (it
 * wakes late, or its thread could not be created) are done by the others.
 *
 * A child process has no pool after fork(), whatever the parent's threads were doing, and starts one when it needs it.
 * Workers block all signals except those that a fault of their own raises.
 *
 * When the program ends, or unloads the plugin that the library is part of, a pool that nobody uses ends its threads.
 * Later callers do all parts themselves. */
#ifndef DPR_HOST_CPU_POOL_H
#define DPR_HOST_CPU_POOL_H

typedef struct dpr_pool dpr_pool;

/* Memory for the result of one part, on cache lines of its own. */
typedef struct dpr_pool_cell {
    _Alignas(64) unsigned char bytes[640];
} dpr_pool_cell;

enum {
    DPR_POOL_PARTS_PER_THREAD = 4, /* the most that a thread has of its own */
    DPR_POOL_PART_BYTES = 65536    /* of an array; for less, handing a part to another thread does not pay */
};

/* Does one part and writes its result to *cell. Runs on any thread of the pool, or on the caller's. */
typedef void (*dpr_pool_task)(void *user, int part, dpr_pool_cell *cell);

/* Takes the pool for this caller alone, until dpr_pool_release(). NULL if another caller has it, or if there is no
 * memory for it. Never waits for another caller. The first call, and a call with more threads than before, creates
 * threads.
 *
 * @param threads  1 to DPR_THREADS_MAX, the caller included. */
dpr_pool *dpr_pool_acquire(int threads);
void dpr_pool_release(dpr_pool *pool);

/* Does the parts 0 .. parts-1, each once, on up to `threads` threads, and returns their results when all are done. The
 * cells are valid until the pool is released. `threads` is at most the number given to dpr_pool_acquire(), and `parts`
 * at most DPR_POOL_PARTS_PER_THREAD * threads. */
const dpr_pool_cell *dpr_pool_run(dpr_pool *pool, int threads, int parts, dpr_pool_task task, void *user);

/* Ends the threads and frees the memory; the next dpr_pool_acquire() starts a new pool. Returns 1, or 0 without doing
 * anything if the pool is taken: by a call that never returns because exit() was called in it, by another
 * dpr_shutdown(), or by the end of the program. */
int dpr_pool_shutdown(void);

#endif
