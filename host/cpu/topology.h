/* The machine's processors as hwloc sees them, read once. cores.c uses them for the pool of threads, and
 * plan/processors.c for the planner and `dpr info`. */
#ifndef DPR_HOST_CPU_TOPOLOGY_H
#define DPR_HOST_CPU_TOPOLOGY_H

#include <hwloc.h>

/* Immutable once made. */
typedef struct dpr_topology {
    hwloc_topology_t topology; /* NULL if hwloc could not load it; `cores` is then 1, and nothing else is known */
    hwloc_cpuset_t cpus;       /* hardware threads that this process may use */
    int cores;
    hwloc_cpuset_t *core_cpus; /* for each core, its hardware threads in `cpus` */
    int cpu_count;
    int *core_of_cpu; /* by the operating system's number of a hardware thread; -1 if this process may not use it */
} dpr_topology;

/* Never NULL. Valid until dpr_cores_shutdown(). */
const dpr_topology *dpr_topology_get(void);

/* The calling thread may have files open only between these two calls. Meanwhile a thread that forks waits for it, and
 * requests to cancel it are held back. */
int dpr_topology_begin_reading(void);
void dpr_topology_end_reading(int cancel);

#endif
