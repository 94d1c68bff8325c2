/* What the machine has: memory to take, a clock, capabilities. */
#ifndef DPR_TOOLS_AVAILABLE_H
#define DPR_TOOLS_AVAILABLE_H

#include <stdint.h>

#include "dpr.h"

/* Bytes that this process can take before the system has to swap or to kill: MemAvailable of /proc/meminfo, or what the
 * process's control groups leave if that is less. All of the machine's memory where the system does not tell. */
uint64_t memory_available(void);

/* The same from other files than /proc/meminfo, /proc/self/cgroup, and those in /sys/fs/cgroup. */
uint64_t memory_available_by(const char *meminfo, const char *cgroup_file, const char *mount);

/* The value of the machine's capability that has this key (dpr_capability); 0 if it has none. */
int64_t machine_value(const dpr_machine *machine, const char *key);

/* Seconds of a clock that only goes forward. */
double seconds_now(void);

#endif
