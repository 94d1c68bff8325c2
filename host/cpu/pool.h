/* The pool of worker threads of cpu.threads: one for each core, bound to it.
 *
 * It starts with the first dpr_pool_acquire() and serves one caller at a time. The caller works too, in the place of
 * the worker of the core that it happens to run on; its own binding is left alone. Work is shared out in parts: each
 * thread has parts of its own, and takes over those of others when it is done, so that parts of a worker that has not
 * come (it wakes late, or its thread could not be created) are done by whoever is there.
 *
 * A process that forks has no pool in the child, which starts one of its own when it needs it, whatever the threads of
 * the parent were doing. Workers block all signals but those that a fault of their own raises.
 *
 * When the program ends, or unloads the plugin that the library is part of, a pool that nobody uses ends its threads.
 * Later callers do all the parts themselves. */
#ifndef DPR_HOST_CPU_POOL_H
#define DPR_HOST_CPU_POOL_H

typedef struct dpr_pool dpr_pool;

/* Room for the result of one part, on a cache line of its own. */
typedef struct dpr_pool_cell {
    _Alignas(64) unsigned char bytes[64];
} dpr_pool_cell;

/* Parts that each thread has of its own, at most. */
enum { DPR_POOL_PARTS_PER_THREAD = 4 };

/* What is done for one part: writes cells[part]. Runs on any thread of the pool. */
typedef void (*dpr_pool_task)(void *user, int part, dpr_pool_cell *cell);

/* The pool, for this caller alone until dpr_pool_release(); NULL if another caller has it, or if there is no memory
 * for it. Never waits. The first call, and the first with more threads than before, creates threads.
 *
 * @param threads  1 to DPR_THREADS_MAX, the caller included. */
dpr_pool *dpr_pool_acquire(int threads);
void dpr_pool_release(dpr_pool *pool);

/* Does the parts 0 .. parts-1, each once, on up to `threads` threads, and returns their results when all are done. The
 * cells hold until the pool is released. `threads` is what dpr_pool_acquire() was given, or less; `parts` is at most
 * DPR_POOL_PARTS_PER_THREAD times that. */
const dpr_pool_cell *dpr_pool_run(dpr_pool *pool, int threads, int parts, dpr_pool_task task, void *user);

/* Ends the threads and gives the memory back; the next dpr_pool_acquire() starts anew. Returns 0 and does nothing while
 * somebody has the pool: a call that never returns because exit() was called in it, another dpr_shutdown(), or the end
 * of the program. */
int dpr_pool_shutdown(void);

#endif
