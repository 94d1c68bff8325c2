/* What this process's control groups leave of the machine. On systems other than Linux they never limit anything. */
#ifndef DPR_HOST_CPU_QUOTA_H
#define DPR_HOST_CPU_QUOTA_H

#include <stdint.h>

/* The least CPU quota of this process's control groups and those above them, in processors, rounded up: cpu.max in
 * version 2, cpu.cfs_quota_us / cpu.cfs_period_us in version 1. 0 if there is no limit.
 *
 * @param cgroup_file  lists the process's groups, as /proc/self/cgroup does.
 * @param mount        where control groups are mounted, as /sys/fs/cgroup. */
int dpr_cpu_quota(const char *cgroup_file, const char *mount);

/* Bytes of memory that the process may use, whatever is in use: those of the machine, or the least limit of its groups
 * (memory.max in version 2, memory.limit_in_bytes in version 1), if that is less. Takes the same files. */
uint64_t dpr_memory_limit(const char *cgroup_file, const char *mount);

#endif
