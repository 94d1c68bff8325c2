/* What hwloc knows of this machine: the cores this process may use, their NUMA nodes, and which node a GPU is near. */
#ifndef DPR_HOST_PLAN_PROCESSORS_H
#define DPR_HOST_PLAN_PROCESSORS_H

#include "caps.h"
#include "dpr.h"

/* Fills `cpu` and the model name. Considers the process's cpuset, cgroup CPU quota and DPR_NUM_THREADS. */
void dpr_read_processors(dpr_cpu_caps *cpu, char name[64]);

/* Fills in all of NUMA node i except its size, in the operating system's order. Returns 0 if there is none. If hwloc
 * sees no nodes, there is one with all cores. */
int dpr_numa_node(size_t i, dpr_node_info *out);

/* The NUMA node nearest a PCI device given as "0000:3b:00.0"; -1 if unknown. */
int dpr_numa_node_of_pci(const char *pci_bus_id);

#endif
