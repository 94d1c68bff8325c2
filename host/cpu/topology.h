/* The machine's processors as hwloc sees them, read once. cores.c has what the pool of threads asks of them, and
 * plan/topo.c what the planner and `dpr info` do. */
#ifndef DPR_HOST_CPU_TOPOLOGY_H
#define DPR_HOST_CPU_TOPOLOGY_H

#include <hwloc.h>

/* Immutable once made. */
typedef struct dpr_topology {
    hwloc_topology_t topology; /* NULL if hwloc could not load it: then there is one core and nothing is known */
    hwloc_cpuset_t cpus;       /* hardware threads that this process may use */
    int cores;
    hwloc_cpuset_t *core_cpus; /* of each core, those in `cpus` */
    int cpu_count;
    int *core_of_cpu; /* by the operating system's number; -1 where this process may not run */
} dpr_topology;

/* Never NULL. Valid until dpr_cores_shutdown(). */
const dpr_topology *dpr_topology_get(void);

/* The calling thread may have files open between these two only: a thread that forks waits for it, and requests to
 * cancel it are held back. */
int dpr_topology_begin_reading(void);
void dpr_topology_end_reading(int cancel);

#endif
