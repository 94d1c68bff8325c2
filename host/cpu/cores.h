/* The cores that this process may use, for the pool of worker threads. They are numbered from 0 in hwloc's order: those
 * of a NUMA node together. */
#ifndef DPR_HOST_CPU_CORES_H
#define DPR_HOST_CPU_CORES_H

/* Worker threads of cpu.threads: DPR_NUM_THREADS if it is a positive integer, else one for each core this process may
 * use, but no more than its control group's CPU quota is worth. At least 1. */
int dpr_cores_threads(void);

/* Physical cores that this process may use. At least 1. The process's cpuset is looked at once. */
int dpr_cores_count(void);

/* Binds the calling thread to a core. Leaves it as it is where that cannot be done. */
void dpr_cores_pin(int core);

/* The core that the calling thread runs on at this moment, -1 if unknown. */
int dpr_cores_here(void);

/* Gives back what is known of the machine's processors; it is read again when it is needed. No other call may be
 * running. */
void dpr_cores_shutdown(void);

#endif
