/* What hwloc knows of this machine: the cores this process may use, their NUMA nodes, and which node a GPU is near. */
#ifndef DPR_HOST_TOPO_H
#define DPR_HOST_TOPO_H

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

/* Fills up to `max` nodes in the operating system's order and returns how many there are; 1 where hwloc sees none. */
int dpr_topo_nodes(dpr_topo_node *nodes, int max);

/* The NUMA node nearest a PCI device given as "0000:3b:00.0"; -1 if unknown. */
int dpr_topo_pci_node(const char *pci_bus_id);

/* Gives back what the other functions keep; they start again when called. No other call may be running. */
void dpr_topo_shutdown(void);

/* ---- For the pool of worker threads. Cores are numbered from 0 in hwloc's order: those of a node together. ------ */

/* Threads that DPR_NUM_THREADS may ask for at most; greater numbers are taken as this one. */
enum { DPR_THREADS_MAX = 1024 };

/* Worker threads of cpu.threads: DPR_NUM_THREADS if it is a positive integer, else one for each core this process may
 * use, but no more than its control group's CPU quota is worth. At least 1. */
int dpr_topo_threads(void);

/* Physical cores that this process may use. At least 1. The process's cpuset is looked at once. */
int dpr_topo_cores(void);

/* Binds the calling thread to a core. Leaves it as it is where that cannot be done. */
void dpr_topo_pin(int core);

/* The core that the calling thread runs on at this moment, -1 if unknown. */
int dpr_topo_here(void);

#endif
