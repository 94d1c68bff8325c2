#define _GNU_SOURCE /* sched_getcpu */
#include "cores.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "caps.h"
#include "environment.h"
#include "quota.h"
#include "topology.h"
#include "uncancelled.h"

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const dpr_topology *) loaded;

/* ---- Reading the system's files --------------------------------------------------------------------------------- */

int dpr_topology_begin_reading(void) {
    const int cancel = dpr_cancel_hold();
    (void)pthread_mutex_lock(&reading);
    return cancel;
}

void dpr_topology_end_reading(int cancel) {
    (void)pthread_mutex_unlock(&reading);
    dpr_cancel_release(cancel);
}

/* A thread that forks waits for a thread that is reading, so that the child finds the lock free and inherits no open
 * file. */
static void before_fork(void) {
    (void)pthread_mutex_lock(&reading);
}
static void after_fork(void) {
    (void)pthread_mutex_unlock(&reading);
}

/* Runs when the library is loaded. If the first call registered the handlers, a child forked during that call would not
 * know whether they are registered, and handlers that are registered twice take the lock twice. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- Loading ---------------------------------------------------------------------------------------------------- */

static hwloc_topology_t load_topology(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

/* Threads may be bound one by one, as OpenMP does; the process may run where any of its threads may. */
static hwloc_cpuset_t process_cpus(hwloc_topology_t topology) {
    hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    if (!cpus)
        return NULL;
    if (hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_fill(cpus);
    (void)hwloc_bitmap_and(cpus, cpus, hwloc_topology_get_allowed_cpuset(topology));
    if (hwloc_bitmap_iszero(cpus))
        (void)hwloc_bitmap_copy(cpus, hwloc_topology_get_allowed_cpuset(topology));
    return cpus;
}

static void free_topology(dpr_topology *t) {
    if (!t)
        return;
    for (int i = 0; i < t->cores && t->core_cpus; i++)
        hwloc_bitmap_free(t->core_cpus[i]);
    free(t->core_cpus);
    free(t->core_of_cpu);
    hwloc_bitmap_free(t->cpus);
    if (t->topology)
        hwloc_topology_destroy(t->topology);
    free(t);
}

/* Adds a core with the process's hardware threads among `cpuset`, if there are any. Returns 0 if out of memory. */
static int add_core(dpr_topology *t, hwloc_const_cpuset_t cpuset) {
    if (!hwloc_bitmap_intersects(cpuset, t->cpus))
        return 1;
    hwloc_bitmap_t cpus = hwloc_bitmap_dup(cpuset);
    if (!cpus)
        return 0;
    (void)hwloc_bitmap_and(cpus, cpus, t->cpus);
    for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu))
        t->core_of_cpu[cpu] = t->cores;
    t->core_cpus[t->cores++] = cpus;
    return 1;
}

/* Finds the cores of t->cpus. Returns 0 if out of memory, or if there are none. */
static int find_cores(dpr_topology *t) {
    /* Some machines show no cores; each hardware thread then counts as a core. */
    int depth = hwloc_get_type_or_below_depth(t->topology, HWLOC_OBJ_CORE);
    unsigned all = hwloc_get_nbobjs_by_depth(t->topology, depth);
    t->cpu_count = hwloc_bitmap_last(t->cpus) + 1;
    t->core_cpus = calloc(all ? all : 1, sizeof(hwloc_cpuset_t));
    t->core_of_cpu = calloc((size_t)t->cpu_count + 1, sizeof(int));
    if (!t->core_cpus || !t->core_of_cpu)
        return 0;
    for (int i = 0; i < t->cpu_count; i++)
        t->core_of_cpu[i] = -1;
    for (unsigned i = 0; i < all; i++)
        if (!add_core(t, hwloc_get_obj_by_depth(t->topology, depth, i)->cpuset))
            return 0;
    return t->cores > 0;
}

static const dpr_topology nothing_known = {.cores = 1};

static const dpr_topology *load_all(void) {
    dpr_topology *t = calloc(1, sizeof *t);
    if (t)
        t->topology = load_topology();
    if (t && t->topology)
        t->cpus = process_cpus(t->topology);
    if (t && t->cpus && find_cores(t))
        return t;
    free_topology(t);
    return &nothing_known;
}

const dpr_topology *dpr_topology_get(void) {
    const dpr_topology *t = atomic_load_explicit(&loaded, memory_order_acquire);
    if (t)
        return t;
    const int cancel = dpr_topology_begin_reading();
    t = atomic_load_explicit(&loaded, memory_order_relaxed);
    if (!t) {
        t = load_all();
        atomic_store_explicit(&loaded, t, memory_order_release);
    }
    dpr_topology_end_reading(cancel);
    return t;
}

void dpr_cores_shutdown(void) {
    const int cancel = dpr_topology_begin_reading();
    const dpr_topology *t = atomic_exchange(&loaded, NULL);
    if (t && t != &nothing_known)
        free_topology((dpr_topology *)(uintptr_t)t);
    dpr_topology_end_reading(cancel);
}

/* ---- Threads and cores ------------------------------------------------------------------------------------------ */

/* The control group's CPU quota in processors; 0 if there is none. */
static int read_quota(void) {
    const int cancel = dpr_topology_begin_reading();
    const int quota = dpr_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    dpr_topology_end_reading(cancel);
    return quota;
}

int dpr_cores_threads(void) {
    int threads = dpr_env_number(DPR_ENV_NUM_THREADS, DPR_THREADS_MAX);
    if (threads > 0)
        return threads;
    int quota = read_quota();
    threads = dpr_topology_get()->cores;
    if (quota > 0 && quota < threads)
        threads = quota;
    return threads < DPR_THREADS_MAX ? threads : DPR_THREADS_MAX;
}

int dpr_cores_count(void) {
    return dpr_topology_get()->cores;
}

void dpr_cores_pin(int core) {
    const dpr_topology *t = dpr_topology_get();
    if (t->topology && core >= 0 && core < t->cores)
        (void)hwloc_set_cpubind(t->topology, t->core_cpus[core], HWLOC_CPUBIND_THREAD);
}

int dpr_cores_here(void) {
    const dpr_topology *t = dpr_topology_get();
    int cpu = sched_getcpu();
    return cpu >= 0 && cpu < t->cpu_count ? t->core_of_cpu[cpu] : -1;
}
