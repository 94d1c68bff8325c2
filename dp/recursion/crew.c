/* The engines `cpu` and `serial`: threads that solve tasks and hand each other what they have not begun.
 *
 * A thread solves a task by plain recursion (solve.h). What it writes out are frames, which wait in the thread's queue
 * until all their children are begun. The thread itself takes the next child of the frame that came last, so that few
 * frames wait at a time; a thread without work takes one of the frame that has waited longest, which has the largest
 * sub-trees. Whoever solves the last child of a frame combines the results, in the order of the children.
 *
 * The run ends. Each solved task is counted once at its frame, and frames are finite: a thread looks for work until the
 * frame of the roots is finished or an error is noted, and every thread that has work goes on with it. A thread without
 * work holds no lock and no frame. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "caps.h"
#include "clock.h"
#include "cpu/float_mode.h"
#include "cpu/pool.h"
#include "cpu/quota.h"
#include "engines.h"
#include "error.h"

/* Limits other than that of the depth, and of the memory for frames. */
enum { TOO_MANY = -1, TOO_LONG = -2, TOO_LARGE = -3 };

/* Frames may always take so many bytes, and nobody looks how much memory there is. */
static const uint64_t FEW_BYTES = UINT64_C(1) << 28;

static _Atomic uint64_t bytes_of_all; /* of the frames of all runs */
static atomic_uint forks;             /* between the first process and this one */

/* A child has only the thread that forked. What other threads' runs had is never freed there, so it must not count; nor
 * do frames that the forking thread has, which goes on with its run. */
static void forget_frames(void) {
    atomic_store(&bytes_of_all, 0);
    atomic_fetch_add(&forks, 1);
}

/* Runs when the library is loaded, for the reason that host/cpu/cores.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, forget_frames);
}

/* At most FUEL tasks lie between two looks at what others need and at the clock, or TIMED_FUEL if the call limits the
 * time, and up to 30 more that solve.h inlines; fewer if they take longer than LOOK seconds. If tasks become slow after
 * quick ones, a thread without work asks for a look that is late. */
enum { FUEL = 256, TIMED_FUEL = 64 };
static const double LOOK = 1e-3;

typedef struct frame {
    dpr_frame seen; /* what solve.h sees */
    struct frame *parent;
    uint64_t place;               /* its task's slot in the parent */
    uint64_t depth;               /* of the children */
    _Atomic uint64_t left;        /* children that are not solved */
    struct frame *older, *newer;  /* in the queue */
    struct frame *before, *after; /* among all frames that its maker made */
    int maker;
    _Alignas(16) unsigned char slots[];
} frame;

/* The times in which a thread had work, for dpr_recursion_options.trace. */
typedef struct span_list {
    struct {
        double begin, end;
    } * at;
    size_t count, room;
    int open; /* 1: the last span has not ended */
} span_list;

typedef struct thread {
    dpr_solver solver;
    struct crew *crew;
    int number;
    void *room;            /* what make_room() made */
    int64_t given;         /* fuel set at the last look */
    _Atomic double looked; /* time of the last look, in seconds */
    uint64_t tasks, steals, handed_out, serialised;
    uint64_t seed; /* of the order in which it asks others */
    span_list spans;

    _Alignas(64) pthread_mutex_t lock; /* of what follows */
    frame *newest, *oldest;            /* frames with children that are not begun */
    frame *made;                       /* all frames that it made and that exist */
} thread;

typedef struct crew {
    const dpr_recursion_call *call;
    int threads;
    thread *thread;
    frame *roots;
    unsigned forks;           /* as the run began */
    uint64_t room;            /* tasks in frames above which nothing is written out for others */
    _Atomic uint64_t waiting; /* tasks in frames */
    _Atomic uint64_t most;    /* of the frames of all runs; 0: nobody has looked */
    _Atomic uint64_t tasks;   /* that threads have solved, as far as they have looked; only if they are limited */
    atomic_int hungry;        /* threads without work */
    atomic_int done;          /* 1: the roots are solved */
    atomic_int status;        /* a dpr_status */
    atomic_llong wrong;       /* what divide() returned; the depth of the task that is too deep, or TOO_... */
} crew;

static const dpr_recursion *recursion_of(const thread *t) {
    return t->crew->call->recursion;
}

/* Notes the first error. */
static void fail(crew *c, dpr_status status, long long what) {
    int none = DPR_OK;
    if (atomic_compare_exchange_strong(&c->status, &none, (int)status))
        atomic_store(&c->wrong, what);
}

static int is_over(crew *c) {
    return atomic_load(&c->done) || atomic_load(&c->status) != DPR_OK;
}

/* Ends the run if it takes too long. */
static void check_time(crew *c, double now) {
    if (now - c->call->began > c->call->max_seconds)
        fail(c, DPR_ERR_LIMIT, TOO_LONG);
}

/* ---- Frames ---- */

/* Adds a frame to those that the thread made. */
static void list(thread *t, frame *f) {
    (void)pthread_mutex_lock(&t->lock);
    f->maker = t->number;
    f->before = NULL;
    f->after = t->made;
    if (t->made)
        t->made->before = f;
    t->made = f;
    (void)pthread_mutex_unlock(&t->lock);
}

static void unlist(crew *c, frame *f) {
    thread *maker = &c->thread[f->maker];
    (void)pthread_mutex_lock(&maker->lock);
    *(f->before ? &f->before->after : &maker->made) = f->after;
    if (f->after)
        f->after->before = f->before;
    (void)pthread_mutex_unlock(&maker->lock);
}

/* SIZE_MAX if there is no such number. */
static size_t frame_bytes(const crew *c, uint64_t count) {
    const size_t slot = c->call->recursion->slot_bytes, head = sizeof(frame) + 16;
    return count <= (SIZE_MAX - head) / slot ? head + count * slot : SIZE_MAX;
}

/* No longer counts bytes, unless the run began before a fork, which forgot them. */
static void uncount(const crew *c, size_t bytes) {
    if (c->forks == atomic_load(&forks))
        atomic_fetch_sub(&bytes_of_all, bytes);
}

static void free_frame(const crew *c, frame *f) {
    uncount(c, frame_bytes(c, f->seen.count));
    free(f);
}

static void release(crew *c, frame *f) {
    unlist(c, f);
    atomic_fetch_sub(&c->waiting, f->seen.count);
    free_frame(c, f);
}

/* Linux grants more memory than there is, and kills a process that uses it: so frames take half of it at most. A task
 * that divides for ever, with many children, comes to that long before the limit of the depth. */
static int have_room(crew *c, uint64_t bytes) {
    if (bytes <= FEW_BYTES)
        return 1;
    uint64_t most = atomic_load_explicit(&c->most, memory_order_relaxed);
    if (most == 0) {
        most = dpr_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup") / 2;
        atomic_store_explicit(&c->most, most, memory_order_relaxed);
    }
    return bytes <= most;
}

static dpr_frame *make_frame(dpr_solver *solver, uint64_t count) {
    thread *t = (thread *)solver;
    const size_t bytes = frame_bytes(t->crew, count);
    const int has_room = have_room(t->crew, atomic_fetch_add(&bytes_of_all, bytes) + bytes);
    frame *f = has_room && bytes < SIZE_MAX ? malloc(bytes) : NULL;
    if (!f) {
        uncount(t->crew, bytes);
        fail(t->crew, DPR_ERR_OUT_OF_MEMORY, has_room ? 0 : TOO_LARGE);
        return solver->stop;
    }
    *f = (frame){.seen = {.slots = f->slots, .count = count}};
    atomic_fetch_add(&t->crew->waiting, count);
    list(t, f);
    return &f->seen;
}

static void *make_room(dpr_solver *solver, uint64_t count) {
    thread *t = (thread *)solver;
    if (!t->room)
        t->room = calloc(count, recursion_of(t)->slot_bytes);
    if (!t->room)
        fail(t->crew, DPR_ERR_OUT_OF_MEMORY, 0);
    return t->room;
}

/* ---- The queue of a thread ---- */

static void put(thread *t, frame *f) {
    (void)pthread_mutex_lock(&t->lock);
    f->newer = NULL;
    f->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = f;
    t->newest = f;
    (void)pthread_mutex_unlock(&t->lock);
}

static void leave(thread *t, frame *f) {
    *(f->older ? &f->older->newer : &t->oldest) = f->newer;
    *(f->newer ? &f->newer->older : &t->newest) = f->older;
}

/* Children of a frame that a thread takes at a time. */
typedef struct batch {
    frame *of; /* NULL: none */
    uint64_t first, count;
} batch;

/* How many of `left` children to take: one, but several of a frame with so many that enough are left for all. */
static uint64_t batch_size(const crew *c, uint64_t left) {
    enum { MOST = 16 };
    const uint64_t share = left / (8 * (uint64_t)c->threads);
    return share < 1 ? 1 : share > MOST ? MOST : share;
}

/* Takes children of the newest or the oldest frame. */
static batch take(thread *t, int oldest) {
    batch b = {0};
    (void)pthread_mutex_lock(&t->lock);
    frame *f = oldest ? t->oldest : t->newest;
    if (f) {
        b = (batch){f, f->seen.next, batch_size(t->crew, f->seen.count - f->seen.next)};
        f->seen.next += b.count;
        if (f->seen.next == f->seen.count)
            leave(t, f);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return b;
}

static int has_queue(thread *t) {
    (void)pthread_mutex_lock(&t->lock);
    const int has = t->newest != NULL;
    (void)pthread_mutex_unlock(&t->lock);
    return has;
}

/* ---- What solve.h calls ---- */

/* Ends the run if all threads together have solved too many tasks, of which `tasks` are new. */
static void check_tasks(crew *c, uint64_t tasks) {
    const uint64_t most = c->call->options.max_tasks;
    if (most != 0 && atomic_fetch_add_explicit(&c->tasks, tasks, memory_order_relaxed) + tasks > most)
        fail(c, DPR_ERR_LIMIT, TOO_MANY);
}

/* Counts what the thread has solved since its last look, and sets the fuel until the next one. */
static void look(thread *t, double now) {
    const uint64_t tasks = (uint64_t)(t->given - t->solver.fuel);
    t->tasks += tasks;
    check_tasks(t->crew, tasks);
    const int64_t most = t->crew->call->options.max_seconds > 0 ? TIMED_FUEL : FUEL;
    const double looked = atomic_load_explicit(&t->looked, memory_order_relaxed);
    t->given = now - looked > LOOK ? 1 : t->given < most ? 2 * t->given : most;
    t->solver.fuel = t->given;
    atomic_store_explicit(&t->looked, now, memory_order_relaxed);
    __atomic_store_n(&t->solver.asked, 0, __ATOMIC_RELAXED);
}

/* Asks the threads whose look is late for one: also those that wait, which then begin with a look. */
static void ask(crew *c, double now) {
    for (int i = 0; i < c->threads; i++) {
        thread *t = &c->thread[i];
        if (now - atomic_load_explicit(&t->looked, memory_order_relaxed) > LOOK
            && !__atomic_load_n(&t->solver.asked, __ATOMIC_RELAXED))
            __atomic_store_n(&t->solver.asked, 1, __ATOMIC_RELAXED);
    }
}

static int refuel(dpr_solver *solver) {
    thread *t = (thread *)solver;
    crew *c = t->crew;
    const double now = dpr_recursion_now();
    look(t, now);
    check_time(c, now);
    if (atomic_load_explicit(&c->status, memory_order_relaxed) != DPR_OK)
        return 0;
    if (atomic_load_explicit(&c->hungry, memory_order_relaxed) == 0 || has_queue(t))
        return 1;
    const int has_room = atomic_load_explicit(&c->waiting, memory_order_relaxed) < c->room;
    t->serialised += !has_room;
    return !has_room;
}

static dpr_frame *wrong(dpr_solver *solver, int n) {
    fail(((thread *)solver)->crew, DPR_ERR_DIVIDE, n);
    return solver->stop;
}

/* ---- Solving ---- */

/* Puts the frames that solve() wrote out into the queue, and gives them their parents. The task at `place` of `parent`
 * is that of the first. The outermost frame becomes the oldest. */
static void hand_out(thread *t, dpr_frame *first, frame *parent, uint64_t place) {
    uint64_t depth = parent->depth;
    for (dpr_frame *seen = first; seen; seen = seen->inner) {
        frame *f = (frame *)seen;
        f->parent = parent;
        f->place = place;
        f->depth = ++depth;
        atomic_init(&f->left, seen->count - seen->next + (seen->inner != NULL));
        parent = f;
        place = seen->next - 1;
    }
    for (dpr_frame *seen = first, *inner; seen; seen = inner) {
        inner = seen->inner; /* once the frame is in the queue, others may finish it */
        t->handed_out += seen->count - seen->next;
        if (seen->next < seen->count)
            put(t, (frame *)seen);
    }
}

/* Counts a solved child at its frame, and combines frames that are finished. */
static void count_solved(thread *t, frame *f) {
    crew *c = t->crew;
    while (atomic_fetch_sub(&f->left, 1) == 1) {
        frame *parent = f->parent;
        if (!parent) {
            atomic_store(&c->done, 1);
            return;
        }
        unsigned char *slots = parent->seen.slots;
        recursion_of(t)->combine(c->call->data, slots + f->place * recursion_of(t)->slot_bytes, &f->seen);
        release(c, f);
        f = parent;
        check_time(c, dpr_recursion_now());
        if (is_over(c))
            return;
    }
}

/* Solves the task at a place of a frame, or writes out what is not solved. */
static void solve(thread *t, frame *f, uint64_t place) {
    crew *c = t->crew;
    const uint64_t most = c->call->options.max_depth;
    if (f->depth > most) {
        fail(c, DPR_ERR_LIMIT, (long long)f->depth);
        return;
    }
    dpr_frame *out = t->solver.unsolved;
    t->solver.depth = f->depth;
    t->solver.levels = most - f->depth < 1024 ? (int)(most - f->depth) + 1 : 1024;
    while (out == t->solver.unsolved && !is_over(c))
        out = recursion_of(t)->solve(&t->solver, (unsigned char *)f->seen.slots + place * recursion_of(t)->slot_bytes);
    if (!out)
        count_solved(t, f);
    else if (out != t->solver.unsolved && out != t->solver.stop)
        hand_out(t, out, f, place);
}

/* ---- Threads ---- */

/* Takes tasks from another thread. */
static batch steal(thread *t) {
    const crew *c = t->crew;
    batch b = {0};
    t->seed = t->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's generator */
    const int first = (int)((t->seed >> 33) % (uint64_t)c->threads);
    for (int i = 0; i < c->threads && !b.of; i++) {
        thread *other = &c->thread[(first + i) % c->threads];
        if (other != t)
            b = take(other, 1);
    }
    t->steals += b.count;
    return b;
}

/* Waits for tasks of another thread's. There are none if the run is over. */
static batch wait_for_tasks(thread *t) {
    crew *c = t->crew;
    batch b = {0};
    atomic_fetch_add(&c->hungry, 1);
    while (!b.of && !is_over(c)) {
        b = steal(t);
        if (!b.of) {
            const double now = dpr_recursion_now();
            check_time(c, now);
            ask(c, now);
            (void)sched_yield();
        }
    }
    atomic_fetch_sub(&c->hungry, 1);
    return b;
}

/* ---- Spans of time ---- */

/* Begins a span, if the call asks for them. Without memory the span is left out. */
static void begin_span(thread *t) {
    span_list *s = &t->spans;
    s->open = 0;
    if (!t->crew->call->options.trace)
        return;
    if (s->count == s->room) {
        const size_t room = 2 * s->room + 64;
        void *at = realloc(s->at, room * sizeof *s->at);
        if (!at)
            return;
        s->at = at;
        s->room = room;
    }
    s->at[s->count].begin = s->at[s->count].end = dpr_recursion_now();
    s->count++;
    s->open = 1;
}

static void end_span(thread *t) {
    if (t->spans.open)
        t->spans.at[t->spans.count - 1].end = dpr_recursion_now();
}

static void tell_spans(const thread *t) {
    const dpr_recursion_call *call = t->crew->call;
    for (size_t i = 0; i < t->spans.count; i++) {
        const dpr_recursion_event event = {.what = "solve",
                                           .worker = t->number,
                                           .begin = t->spans.at[i].begin - call->began,
                                           .end = t->spans.at[i].end - call->began};
        call->options.trace(call->options.trace_user, &event);
    }
}

/* ---- The work of a thread ---- */

static void work(thread *t) {
    begin_span(t);
    while (!is_over(t->crew)) {
        batch b = take(t, 0);
        if (!b.of) {
            end_span(t);
            b = wait_for_tasks(t);
            begin_span(t);
        }
        for (uint64_t i = 0; i < b.count && !is_over(t->crew); i++)
            solve(t, b.of, b.first + i);
    }
    end_span(t);
    look(t, atomic_load_explicit(&t->looked, memory_order_relaxed));
}

/* A part of the pool's work. */
static void work_part(void *user, int part, dpr_pool_cell *cell) {
    crew *c = user;
    (void)cell;
    work(&c->thread[part]);
}

static void run_threads(crew *c) {
    dpr_pool *pool = c->threads > 1 ? dpr_pool_acquire(c->threads) : NULL;
    if (pool) {
        (void)dpr_pool_run(pool, c->threads, c->threads, work_part, c);
        dpr_pool_release(pool);
    } else {
        c->threads = 1;
        work(&c->thread[0]);
    }
}

/* ---- The crew ---- */

static void open_thread(crew *c, int number) {
    static dpr_frame unsolved, stop;
    thread *t = &c->thread[number];
    *t = (thread){.crew = c, .number = number, .seed = (uint64_t)number, .given = 1, .looked = c->call->began};
    t->solver = (dpr_solver){.data = c->call->data,
                             .cutoff = c->call->cutoff,
                             .fuel = t->given,
                             .unsolved = &unsolved,
                             .stop = &stop,
                             .refuel = refuel,
                             .frame = make_frame,
                             .room = make_room,
                             .wrong = wrong};
    (void)pthread_mutex_init(&t->lock, NULL);
}

static void close_thread(thread *t) {
    for (frame *f = t->made, *after; f; f = after) {
        after = f->after;
        free_frame(t->crew, f);
    }
    free(t->room);
    free(t->spans.at);
    (void)pthread_mutex_destroy(&t->lock);
}

/* Makes the frame of the roots, and puts it into the first thread's queue. */
static void begin(crew *c) {
    const dpr_recursion_call *call = c->call;
    const dpr_recursion *r = call->recursion;
    dpr_frame *seen = make_frame(&c->thread[0].solver, call->n);
    if (seen == c->thread[0].solver.stop)
        return;
    c->roots = (frame *)seen;
    atomic_init(&c->roots->left, call->n);
    for (size_t i = 0; i < call->n; i++)
        memcpy((char *)seen->slots + i * r->slot_bytes, (const char *)call->roots + i * r->task_bytes, r->task_bytes);
    put(&c->thread[0], c->roots);
}

static dpr_status end(crew *c, dpr_recursion_report *report) {
    const dpr_recursion_call *call = c->call;
    const dpr_recursion *r = call->recursion;
    const dpr_status status = (dpr_status)atomic_load(&c->status);
    const long long what = atomic_load(&c->wrong);
    if (status == DPR_ERR_DIVIDE)
        return dpr_fail(status, "divide() of recursion \"%s\" returned %lld, and must return 0 to %d", r->name, what,
                        r->most_children);
    if (status == DPR_ERR_LIMIT && what == TOO_LONG)
        return dpr_engine_took_too_long(call);
    if (status == DPR_ERR_LIMIT && what >= 0)
        return dpr_fail(status, "recursion \"%s\" has a task at depth %lld, and options->max_depth is %llu", r->name,
                        what, (unsigned long long)call->options.max_depth);
    if (status == DPR_ERR_LIMIT)
        return dpr_fail(status, "recursion \"%s\" has more tasks than options->max_tasks, which is %llu", r->name,
                        (unsigned long long)call->options.max_tasks);
    if (status != DPR_OK && what == TOO_LARGE)
        return dpr_fail(status,
                        "waiting tasks of recursion \"%s\" and of all other runs take %llu bytes, half of the host's "
                        "memory: does a task divide for ever?",
                        r->name, (unsigned long long)atomic_load(&bytes_of_all));
    if (status != DPR_OK)
        return dpr_fail(status, "no host memory for the tasks of recursion \"%s\"", r->name);
    for (size_t i = 0; i < call->n; i++)
        memcpy((char *)call->out + i * r->result_bytes, (const char *)c->roots->seen.slots + i * r->slot_bytes,
               r->result_bytes);
    for (int i = 0; i < c->threads; i++) {
        const thread *t = &c->thread[i];
        report->tasks += t->tasks;
        report->deepest = t->solver.deepest > report->deepest ? t->solver.deepest : report->deepest;
        report->steals += t->steals;
        report->handed_out += t->handed_out;
        report->serialised += t->serialised;
        tell_spans(t);
    }
    return DPR_OK;
}

static dpr_status run_crew(const dpr_recursion_call *call, int threads, dpr_recursion_report *report) {
    crew c = {.call = call, .threads = threads, .forks = atomic_load(&forks)};
    c.room = call->options.arena_tasks ? call->options.arena_tasks : (uint64_t)1 << 22;
    c.thread = aligned_alloc(64, sizeof *c.thread * (size_t)threads);
    if (!c.thread)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %d threads", threads);
    for (int i = 0; i < threads; i++)
        open_thread(&c, i);
    begin(&c);
    if (!is_over(&c)) {
        const uint64_t mode = dpr_float_mode_enter(); /* that of the other threads */
        run_threads(&c);
        dpr_float_mode_leave(mode);
        check_time(&c, dpr_recursion_now());
    }
    const dpr_status status = end(&c, report);
    for (int i = 0; i < threads; i++)
        close_thread(&c.thread[i]);
    free(c.thread);
    return status;
}

/* ---- The engines ---- */

static const char *refuse_none(const dpr_recursion_call *call) {
    (void)call;
    return NULL;
}

static dpr_status run_serial(const dpr_recursion_call *call, dpr_recursion_report *report) {
    return run_crew(call, 1, report);
}

static dpr_status run_cpu(const dpr_recursion_call *call, dpr_recursion_report *report) {
    return run_crew(call, call->options.threads ? call->options.threads : dpr_ctx_threads(call->ctx), report);
}

/* Seconds of one thread for a small task: at least as many as those of fib take, 88 ms for 126 million (an EPYC); and
 * about as many as tasks of other recursions do. */
static const double least_task_seconds = 0.7e-9, likely_task_seconds = 4e-9;

/* A task that is worth a team of the GPU takes longer than `of_small` seconds. */
static double serial_seconds(const dpr_recursion_call *call, uint64_t tasks, double of_small) {
    const int teams = call->recursion->gpu && call->recursion->gpu->teams && dpr_ctx_gpu(call->ctx);
    return (teams ? 100e-6 : of_small) * (double)tasks;
}

/* Levels are done one after another, so each takes the time of a task, however many threads there are. For them the
 * least time is no bound that would help: threads do not make chains faster. */
static double cpu_seconds(const dpr_recursion_call *call, uint64_t tasks, double of_small) {
    const int threads = call->options.threads ? call->options.threads : dpr_ctx_threads(call->ctx);
    const double work = serial_seconds(call, tasks, of_small) / threads,
                 levels = likely_task_seconds * dpr_engine_levels(call, tasks);
    return work > levels ? work : levels;
}

static double least_serial_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return serial_seconds(call, tasks, least_task_seconds);
}

static double likely_serial_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return serial_seconds(call, tasks, likely_task_seconds);
}

/* The threads take some microseconds to begin. */
static double least_cpu_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return 3e-6 + cpu_seconds(call, tasks, least_task_seconds);
}

/* 20 us pass until all threads have begun: fib(5) takes 16 threads of a Xeon 22 us. */
static double likely_cpu_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return 20e-6 + cpu_seconds(call, tasks, likely_task_seconds);
}

const dpr_engine dpr_engine_cpu = {
    .name = "cpu",
    .text = "a thread on each core of the CPU; threads without work take tasks from others",
    .refusal = refuse_none,
    .why_not_enqueued = "runs on threads of the host",
    .run = run_cpu,
    .least_seconds = least_cpu_seconds,
    .likely_seconds = likely_cpu_seconds,
};

const dpr_engine dpr_engine_serial = {
    .name = "serial",
    .text = "the calling thread alone",
    .refusal = refuse_none,
    .why_not_enqueued = "runs on threads of the host",
    .run = run_serial,
    .least_seconds = least_serial_seconds,
    .likely_seconds = likely_serial_seconds,
};
