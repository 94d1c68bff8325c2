#define _GNU_SOURCE /* syscall, gettid, pthread_setname_np */
#include "pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cores.h"
#include "float_mode.h"
#include "log.h"
#include "uncancelled.h"

/* How often a thread reads a word that another core will write before it goes to sleep. This takes some 20 to 50 us,
 * about as long as sleeping and waking up. */
enum { SPINS = 1000 };

typedef _Atomic uint32_t futex_word;
_Static_assert(sizeof(futex_word) == sizeof(uint32_t), "a futex is 32 bits");

/* The parts of one thread that nobody has taken: job number << 32 | next << 16 | end. A thread takes a part by
 * compare-and-swap, which fails if the thread expects an earlier job. So a thread that has taken a part can rely on the
 * pool's description of the job, which changes only when all parts are done. */
typedef struct seat {
    _Alignas(64) _Atomic uint64_t parts;
} seat;

typedef struct worker {
    dpr_pool *pool;
    pthread_t thread;
    _Atomic pid_t id; /* the operating system's thread id; 0 before the thread runs */
    int seat;
} worker;

/* Words that many cores read, on cache lines of their own. */
typedef struct start_line {
    _Alignas(64) futex_word job; /* counts the jobs; workers sleep on it */
    atomic_uint sleepers;
    atomic_int stopping;
} start_line;

typedef struct finish_line {
    _Alignas(64) futex_word undone; /* number of parts not done; the caller sleeps on it */
    atomic_int caller_sleeps;
} finish_line;

struct dpr_pool {
    start_line start;
    finish_line finish;

    seat *seat;
    dpr_pool_cell *cells;
    worker *worker;
    dpr_pool *abandoned; /* the parent's pool, in a child process */
    int seats;           /* number of threads that it was made for */
    int workers;         /* number of threads that exist: fewer if some could not be created */

    /* The job, which the caller writes while no part is left to take. Late workers may read `threads`, `caller_seat`
     * and `spins` of another job. That does no harm, because they find no parts of their own job. */
    _Atomic int threads, caller_seat, spins;
    dpr_pool_task task;
    void *user;
};

static atomic_int taken; /* 1 while a caller or dpr_pool_shutdown() has the pool, and once this code may be unmapped */
static dpr_pool *the_pool; /* belongs to the thread that has set `taken` */

/* ---- Waiting ---------------------------------------------------------------------------------------------------- */

static void futex_wait(futex_word *word, uint32_t value) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(futex_word *word, int threads) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns the word when it is no longer `value`, or after reading it `spins` times. */
static uint32_t spin_while(futex_word *word, uint32_t value, int spins) {
    uint32_t now = atomic_load(word);
    for (int i = 0; i < spins && now == value; i++) {
        pause_briefly();
        now = atomic_load(word);
    }
    return now;
}

static uint32_t await_job(dpr_pool *pool, uint32_t last, int spins) {
    uint32_t job = spin_while(&pool->start.job, last, spins);
    if (job != last)
        return job;
    (void)atomic_fetch_add(&pool->start.sleepers, 1);
    while ((job = atomic_load(&pool->start.job)) == last)
        futex_wait(&pool->start.job, last);
    (void)atomic_fetch_sub(&pool->start.sleepers, 1);
    return job;
}

static void await_parts(dpr_pool *pool) {
    uint32_t undone = atomic_load(&pool->finish.undone);
    for (int i = 0, spins = atomic_load(&pool->spins); i < spins && undone != 0; i++)
        undone = spin_while(&pool->finish.undone, undone, 1);
    if (undone == 0)
        return;
    atomic_store(&pool->finish.caller_sleeps, 1);
    while ((undone = atomic_load(&pool->finish.undone)) != 0)
        futex_wait(&pool->finish.undone, undone);
    atomic_store(&pool->finish.caller_sleeps, 0);
}

/* ---- Working ---------------------------------------------------------------------------------------------------- */

static uint64_t pack(uint32_t job, int next, int end) {
    return (uint64_t)job << 32 | (uint64_t)next << 16 | (uint64_t)end;
}

/* Takes a part from a seat. Returns its number, or -1 if the job has none left there. */
static int take_part(seat *from, uint32_t job) {
    uint64_t parts = atomic_load(&from->parts);
    while ((uint32_t)(parts >> 32) == job) {
        int next = (int)(parts >> 16 & 0xffff), end = (int)(parts & 0xffff);
        if (next >= end)
            return -1;
        if (atomic_compare_exchange_weak(&from->parts, &parts, pack(job, next + 1, end)))
            return next;
    }
    return -1;
}

/* Does parts until none is left, first those of the thread's own seat, then those of the following seats. */
static void work(dpr_pool *pool, int own, uint32_t job) {
    for (int i = 0; i < pool->seats; i++) {
        int part;
        while ((part = take_part(&pool->seat[(own + i) % pool->seats], job)) >= 0) {
            pool->task(pool->user, part, &pool->cells[part]);
            if (atomic_fetch_sub(&pool->finish.undone, 1) == 1 && atomic_load(&pool->finish.caller_sleeps))
                futex_wake(&pool->finish.undone, 1);
        }
    }
}

/* The core of a seat. Seats are spread over all cores in order, so that neighbouring parts are near in memory. */
static int core_of(const dpr_pool *pool, int seat_number) {
    return (int)((int64_t)seat_number * dpr_cores_count() / pool->seats);
}

/* Threads that share cores keep each other from working while they read. */
static int spins_of(int threads) {
    return threads <= dpr_cores_count() ? SPINS : 0;
}

/* The seat of thread i of a job. The threads of a job may be fewer than seats, and sit on all cores, too. */
static int seat_of(const dpr_pool *pool, int threads, int i) {
    return (int)((int64_t)i * pool->seats / threads);
}

/* Whether a job with so many threads has one in the seat. */
static int is_wanted(const dpr_pool *pool, int threads, int seat_number) {
    const int i = (int)(((int64_t)seat_number * threads + pool->seats - 1) / pool->seats);
    return i < threads && seat_of(pool, threads, i) == seat_number;
}

static void *worker_main(void *argument) {
    worker *self = argument;
    dpr_pool *pool = self->pool;
    char name[16];
    uint32_t job = 0;
    int spins = spins_of(pool->seats);
    (void)dpr_float_mode_enter();
    atomic_store(&self->id, gettid());
    dpr_cores_pin(core_of(pool, self->seat));
    (void)snprintf(name, sizeof name, "dpr-%d", self->seat);
    (void)pthread_setname_np(pthread_self(), name);
    for (;;) {
        job = await_job(pool, job, spins);
        if (atomic_load(&pool->start.stopping))
            return NULL;
        /* The caller is on this core, or the job has fewer threads: sleep at once. */
        const int unwanted =
            self->seat == atomic_load(&pool->caller_seat) || !is_wanted(pool, atomic_load(&pool->threads), self->seat);
        spins = unwanted ? 0 : atomic_load(&pool->spins);
        if (!unwanted)
            work(pool, self->seat, job);
    }
}

const dpr_pool_cell *dpr_pool_run(dpr_pool *pool, int threads, int parts, dpr_pool_task task, void *user) {
    int here = dpr_cores_here(), caller_seat = seat_of(pool, threads, threads - 1);
    uint32_t job = atomic_load(&pool->start.job) + 1;
    for (int i = 0; i < threads; i++)
        if (core_of(pool, seat_of(pool, threads, i)) == here) {
            caller_seat = seat_of(pool, threads, i);
            break;
        }
    pool->task = task;
    pool->user = user;
    atomic_store(&pool->threads, threads);
    atomic_store(&pool->caller_seat, caller_seat);
    atomic_store(&pool->spins, spins_of(threads));
    atomic_store(&pool->finish.undone, (uint32_t)parts);
    for (int i = 0; i < threads; i++)
        atomic_store(&pool->seat[seat_of(pool, threads, i)].parts,
                     pack(job, i * parts / threads, (i + 1) * parts / threads));
    atomic_store(&pool->start.job, job);
    if (atomic_load(&pool->start.sleepers) > 0)
        futex_wake(&pool->start.job, INT_MAX);
    work(pool, caller_seat, job);
    await_parts(pool);
    return pool->cells;
}

/* ---- Starting and ending ---------------------------------------------------------------------------------------- */

static void free_pool(dpr_pool *pool) {
    if (!pool)
        return;
    free(pool->seat);
    free(pool->cells);
    free(pool->worker);
    free(pool);
}

static dpr_pool *allocate_pool(int seats) {
    size_t n = (size_t)seats;
    dpr_pool *pool = aligned_alloc(_Alignof(dpr_pool), sizeof *pool);
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->seats = seats;
    pool->seat = aligned_alloc(_Alignof(seat), n * sizeof(seat));
    pool->cells = aligned_alloc(_Alignof(dpr_pool_cell), n * DPR_POOL_PARTS_PER_THREAD * sizeof(dpr_pool_cell));
    pool->worker = calloc(n, sizeof(worker));
    if (!pool->seat || !pool->cells || !pool->worker) {
        free_pool(pool);
        return NULL;
    }
    memset(pool->seat, 0, n * sizeof(seat));
    return pool;
}

static dpr_pool *start_pool(int seats) {
    sigset_t all, before;
    dpr_pool *pool = allocate_pool(seats);
    if (!pool)
        return NULL;
    /* The program's signals are for its own threads. Faults are not blocked: the program may handle faults of memory
     * that it passes in, such as SIGBUS of a mapped file, and a blocked fault ends the process. */
    (void)sigfillset(&all);
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        (void)sigdelset(&all, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < seats; i++) {
        worker *w = &pool->worker[pool->workers];
        w->pool = pool;
        w->seat = i;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
            break;
        pool->workers++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "a pool of %d threads has started", pool->workers);
    return pool;
}

static void stop_workers(dpr_pool *pool) {
    atomic_store(&pool->start.stopping, 1);
    (void)atomic_fetch_add(&pool->start.job, 1);
    futex_wake(&pool->start.job, INT_MAX);
}

static void end_pool(dpr_pool *pool) {
    if (!pool)
        return;
    stop_workers(pool);
    for (int i = 0; i < pool->workers; i++)
        (void)pthread_join(pool->worker[i].thread, NULL);
    if (DPR_LOGS(MEMORY))
        dpr_log(DPR_LOG_MEMORY, "a pool of %d threads has ended", pool->workers);
    free_pool(pool);
}

/* Replaces the pool with one of `seats` threads; 0: with none. The caller has set `taken`. */
static void restart_pool(int seats) {
    const int cancel = dpr_cancel_hold();
    dpr_pool *old = the_pool;
    the_pool = NULL; /* before end_pool(): a process forked meanwhile must not see it */
    end_pool(old);
    if (seats > 0)
        the_pool = start_pool(seats);
    dpr_cancel_release(cancel);
}

/* The parent's threads do not exist in the child, and its pool may be in any state. */
static void in_child(void) {
    static dpr_pool *abandoned;
    if (the_pool) {
        the_pool->abandoned = abandoned;
        abandoned = the_pool;
    }
    the_pool = NULL;
    atomic_store(&taken, 0);
}

/* Runs when the library is loaded, for the reason that cores.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, in_child);
}

dpr_pool *dpr_pool_acquire(int threads) {
    if (atomic_exchange(&taken, 1))
        return NULL;
    if (!the_pool || the_pool->seats < threads)
        restart_pool(threads);
    dpr_pool *pool = the_pool;
    if (!pool)
        atomic_store(&taken, 0);
    return pool;
}

void dpr_pool_release(dpr_pool *pool) {
    (void)pool;
    atomic_store(&taken, 0);
}

int dpr_pool_shutdown(void) {
    if (atomic_exchange(&taken, 1))
        return 0;
    restart_pool(0);
    atomic_store(&taken, 0);
    return 1;
}

/* ---- Unloading -------------------------------------------------------------------------------------------------- */

/* The longest wait: 2 s, and more if the system's timers are late. Threads that were told to end need far less, unless
 * the waiting thread holds a lock that they need. */
enum { NAPS = 20000, NAP_NS = 100000 };

/* Whether the operating system has ended the worker's thread. Before that, the thread may still return through this
 * code. The calling thread counts as gone, because it will not. */
static int is_gone(const worker *w) {
    const pid_t id = atomic_load(&w->id);
    return id == gettid() || (id != 0 && syscall(SYS_tgkill, getpid(), id, 0) != 0);
}

static void await_ends(const worker *w, int workers) {
    static const struct timespec nap = {.tv_nsec = NAP_NS};
    for (int i = 0, naps = 0; i < workers && naps < NAPS;) {
        if (is_gone(&w[i])) {
            i++;
        } else {
            (void)nanosleep(&nap, NULL);
            naps++;
        }
    }
}

/* Ends the workers before this code is unmapped, and lets no others start. exit() runs this, too, and may be called
 * anywhere: by a signal handler in the middle of a call or of malloc(), or on a worker. So a pool that is in use stays
 * as it is, every wait has a limit, and nothing is joined or freed. The priority makes this the last destructor: others
 * may still reduce, or end threads that do. */
__attribute__((destructor(101))) static void end_workers(void) {
    if (atomic_exchange(&taken, 1) || !the_pool)
        return;
    const int cancel = dpr_cancel_hold();
    for (int i = 0; i < the_pool->workers; i++)
        (void)pthread_detach(the_pool->worker[i].thread);
    stop_workers(the_pool);
    await_ends(the_pool->worker, the_pool->workers);
    dpr_cancel_release(cancel);
}
