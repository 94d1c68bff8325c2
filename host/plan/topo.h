/* What hwloc knows of this machine: the cores this process may use, their NUMA nodes, and which node a GPU is near. */
#ifndef DPR_HOST_PLAN_TOPO_H
#define DPR_HOST_PLAN_TOPO_H

#include <stdint.h>

#include "caps.h"

typedef struct dpr_topo_node {
    int os_index; /* the NUMA node's number in the operating system */
    uint64_t memory_bytes;
    int cores;      /* physical cores of the node that this process may use */
    int threads;    /* hardware threads of the node that this process may use */
    char cpus[128]; /* their numbers as a list, e.g. "0-7,16-23" */
} dpr_topo_node;

/* Fills `cpu` and the model name. Considers the process's cpuset, cgroup CPU quota and DPR_NUM_THREADS. */
void dpr_topo_cpu(dpr_cpu_caps *cpu, char name[64]);

/* Fills up to `max` nodes in the operating system's order and returns how many there are; 1 if hwloc sees none. */
int dpr_topo_nodes(dpr_topo_node *nodes, int max);

/* The NUMA node nearest a PCI device given as "0000:3b:00.0"; -1 if unknown. */
int dpr_topo_pci_node(const char *pci_bus_id);

#endif
