#define _GNU_SOURCE /* sched_getcpu */
#include "topo.h"

#include <ctype.h>
#include <hwloc.h>
#include <hwloc/linux.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ops.h"
#include "cpu_quota.h"
#include "uncancelled.h"

/* Memory bandwidth cannot be asked for, so it is estimated: from what one core of a 16-core Xeon read, and from how the
 * sum of a large array scaled there from 1 to 2, 4, 8 and 16 threads (14.7, 29, 54, 101, 152 GB/s). Each further core
 * of a node slows all of that node by 3.65 %, which is right within 8 % at these points. */
enum { CORE_MB_PER_S = 14700, SHARING_PER_100000 = 3650 };

/* What is kept of the topology. Immutable once made. */
typedef struct topo {
    hwloc_topology_t topology; /* NULL if hwloc could not load it: then there is one core and nothing is known */
    hwloc_cpuset_t cpus;       /* hardware threads that this process may use */
    int cores;
    hwloc_cpuset_t *core_cpus; /* of each core, those in `cpus` */
    int cpu_count;
    int *core_of_cpu; /* by the operating system's number; -1 where this process may not run */
} topo;

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const topo *) loaded;

/* ---- Reading the system's files --------------------------------------------------------------------------------- */

/* The calling thread's files are open between these two only. */
static int begin_reading(void) {
    const int cancel = dpr_cancel_hold();
    (void)pthread_mutex_lock(&reading);
    return cancel;
}

static void end_reading(int cancel) {
    (void)pthread_mutex_unlock(&reading);
    dpr_cancel_release(cancel);
}

/* A thread that forks while another one reads waits for it, so that the child finds the lock free and inherits no open
 * file. */
static void before_fork(void) {
    (void)pthread_mutex_lock(&reading);
}
static void after_fork(void) {
    (void)pthread_mutex_unlock(&reading);
}

/* When the library is loaded. If the first call did it, a child forked during that call would not know whether it has
 * been done; handlers that are registered twice take the lock twice. */
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

static void free_topo(topo *t) {
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

/* Adds a core with the process's hardware threads among `cpuset`, if there are any. 0 when out of memory. */
static int add_core(topo *t, hwloc_const_cpuset_t cpuset) {
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

/* Finds the cores of t->cpus. 0 when out of memory. */
static int find_cores(topo *t) {
    /* Some machines show no cores; each hardware thread counts as one then. */
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

static const topo nothing_known = {.cores = 1};

static const topo *load_topo(void) {
    topo *t = calloc(1, sizeof *t);
    if (t)
        t->topology = load_topology();
    if (t && t->topology)
        t->cpus = process_cpus(t->topology);
    if (t && t->cpus && find_cores(t))
        return t;
    free_topo(t);
    return &nothing_known;
}

static const topo *get(void) {
    const topo *t = atomic_load_explicit(&loaded, memory_order_acquire);
    if (t)
        return t;
    const int cancel = begin_reading();
    t = atomic_load_explicit(&loaded, memory_order_relaxed);
    if (!t) {
        t = load_topo();
        atomic_store_explicit(&loaded, t, memory_order_release);
    }
    end_reading(cancel);
    return t;
}

void dpr_topo_shutdown(void) {
    const int cancel = begin_reading();
    const topo *t = atomic_exchange(&loaded, NULL);
    if (t && t != &nothing_known)
        free_topo((topo *)(uintptr_t)t);
    end_reading(cancel);
}

/* ---- Threads and cores ------------------------------------------------------------------------------------------ */

/* DPR_NUM_THREADS, or 0 if it is no positive integer. */
static int wanted_threads(void) {
    const char *text = getenv("DPR_NUM_THREADS");
    if (!text || *text < '0' || *text > '9')
        return 0;
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end != '\0')
        return 0;
    return n < DPR_THREADS_MAX ? (int)n : DPR_THREADS_MAX;
}

/* The control group's CPU quota in processors, 0 for none. */
static int read_quota(void) {
    const int cancel = begin_reading();
    const int quota = dpr_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    end_reading(cancel);
    return quota;
}

int dpr_topo_threads(void) {
    int threads = wanted_threads();
    if (threads > 0)
        return threads;
    int quota = read_quota();
    threads = get()->cores;
    if (quota > 0 && quota < threads)
        threads = quota;
    return threads < DPR_THREADS_MAX ? threads : DPR_THREADS_MAX;
}

int dpr_topo_cores(void) {
    return get()->cores;
}

void dpr_topo_pin(int core) {
    const topo *t = get();
    if (t->topology && core >= 0 && core < t->cores)
        (void)hwloc_set_cpubind(t->topology, t->core_cpus[core], HWLOC_CPUBIND_THREAD);
}

int dpr_topo_here(void) {
    const topo *t = get();
    int cpu = sched_getcpu();
    return cpu >= 0 && cpu < t->cpu_count ? t->core_of_cpu[cpu] : -1;
}

/* ---- Capabilities ----------------------------------------------------------------------------------------------- */

static int objects_here(const topo *t, hwloc_obj_type_t type, uint64_t *cache_bytes) {
    int found = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t->topology, type, o));) {
        if (!o->cpuset || !hwloc_bitmap_intersects(o->cpuset, t->cpus))
            continue;
        found++;
        if (cache_bytes)
            *cache_bytes += o->attr->cache.size;
    }
    return found;
}

/* All the caches of the last level that there is. */
static int64_t cache_bytes(const topo *t) {
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (objects_here(t, levels[i], &bytes) > 0)
            break;
    return (int64_t)bytes;
}

static const char *model_name(const topo *t) {
    hwloc_obj_t package = t->topology ? hwloc_get_obj_by_type(t->topology, HWLOC_OBJ_PACKAGE, 0) : NULL;
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (!model && t->topology)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t->topology), "CPUModel");
    return model && *model ? model : "unknown CPU";
}

void dpr_topo_cpu(dpr_cpu_caps *cpu, char name[64]) {
    const topo *t = get();
    int nodes = t->topology ? objects_here(t, HWLOC_OBJ_NUMANODE, NULL) : 0;
    *cpu = (dpr_cpu_caps){
        .cores = t->cores,
        .threads = dpr_topo_threads(),
        .numa_nodes = nodes > 0 ? nodes : 1,
        .cache_bytes = t->topology ? cache_bytes(t) : 0,
        .vector_bytes = dpr_cpu_kernels_best()->vector_bytes,
        .core_mb_per_s = CORE_MB_PER_S,
    };
    int64_t used = cpu->threads < cpu->cores ? cpu->threads : cpu->cores;
    int64_t sharing = (used + cpu->numa_nodes - 1) / cpu->numa_nodes - 1;
    cpu->total_mb_per_s = used * CORE_MB_PER_S * 100000 / (100000 + sharing * SHARING_PER_100000);
    (void)snprintf(name, 64, "%s", model_name(t));
}

/* ---- NUMA nodes ------------------------------------------------------------------------------------------------- */

static dpr_topo_node node_of(const topo *t, hwloc_obj_t numa) {
    dpr_topo_node node = {.os_index = (int)numa->os_index, .memory_bytes = numa->attr->numanode.local_memory};
    hwloc_bitmap_t cpus = hwloc_bitmap_dup(numa->cpuset);
    if (!cpus)
        return node;
    (void)hwloc_bitmap_and(cpus, cpus, t->cpus);
    node.threads = hwloc_bitmap_weight(cpus);
    for (int i = 0; i < t->cores; i++)
        node.cores += hwloc_bitmap_intersects(t->core_cpus[i], cpus);
    (void)hwloc_bitmap_list_snprintf(node.cpus, sizeof node.cpus, cpus);
    hwloc_bitmap_free(cpus);
    return node;
}

int dpr_topo_nodes(dpr_topo_node *nodes, int max) {
    const topo *t = get();
    int found = 0;
    hwloc_const_nodeset_t set = t->topology ? hwloc_topology_get_topology_nodeset(t->topology) : NULL;
    for (int os = set ? hwloc_bitmap_first(set) : -1; os >= 0; os = hwloc_bitmap_next(set, os)) {
        hwloc_obj_t numa = hwloc_get_numanode_obj_by_os_index(t->topology, (unsigned)os);
        if (numa && found < max)
            nodes[found] = node_of(t, numa);
        found += numa != NULL;
    }
    if (found == 0 && max > 0)
        nodes[0] = (dpr_topo_node){.cores = t->cores, .threads = t->cores};
    return found > 0 ? found : 1;
}

/* The bus id as the names in sysfs have it: in lower case. 0 if it is none. */
static int sysfs_name(const char *pci_bus_id, char *name, size_t size) {
    size_t length = strspn(pci_bus_id, "0123456789abcdefABCDEF:.");
    if (length == 0 || length >= size || pci_bus_id[length] != '\0' || pci_bus_id[0] == '.')
        return 0;
    for (size_t i = 0; i <= length; i++)
        name[i] = (char)tolower((unsigned char)pci_bus_id[i]);
    return 1;
}

/* The system says which hardware threads a PCI device is near: that is what hwloc's own helpers for GPUs read. Having
 * hwloc find all devices instead takes three times as long as the rest of the topology. */
static int read_local_cpus(const char *name, hwloc_cpuset_t cpus) {
    char path[80];
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpus", name);
    const int cancel = begin_reading();
    const int found = hwloc_linux_read_path_as_cpumask(path, cpus) == 0;
    end_reading(cancel);
    return found;
}

int dpr_topo_pci_node(const char *pci_bus_id) {
    const topo *t = get();
    char name[16];
    int node = -1;
    if (!t->topology || !sysfs_name(pci_bus_id, name, sizeof name))
        return -1;
    hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    if (cpus && nodes && read_local_cpus(name, cpus)) {
        (void)hwloc_cpuset_to_nodeset(t->topology, cpus, nodes);
        /* A device that is as near to several nodes is near to none of them. */
        if (hwloc_bitmap_weight(nodes) == 1)
            node = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(cpus);
    return node;
}
