/* The cores that this process may use, for the pool of worker threads. They are numbered from 0 in hwloc's order: the
 * cores of a NUMA node follow one another. */
#ifndef DPR_HOST_CPU_CORES_H
#define DPR_HOST_CPU_CORES_H

/* Number of threads of cpu.threads and of the recursions' engine cpu: DPR_NUM_THREADS if it is a positive integer,
 * otherwise one for each core that this process may use, but no more than the processors of its control group's CPU
 * quota. From 1 to DPR_THREADS_MAX. */
int dpr_cores_threads(void);

/* Number of physical cores that this process may use. At least 1. The process's cpuset is read once. */
int dpr_cores_count(void);

/* Binds the calling thread to a core, if that is possible. */
void dpr_cores_pin(int core);

/* The core that the calling thread runs on at this moment, -1 if unknown. */
int dpr_cores_here(void);

/* Frees what is known of the machine's processors; it is read again when it is needed. No other call may be running. */
void dpr_cores_shutdown(void);

#endif
