/* The CPU quota of this process's control groups. On systems other than Linux there is never a limit. */
#ifndef DPR_HOST_CPU_QUOTA_H
#define DPR_HOST_CPU_QUOTA_H

/* The least CPU quota of this process's control groups and those above them, in processors, rounded up: cpu.max in
 * version 2, cpu.cfs_quota_us / cpu.cfs_period_us in version 1. 0 if there is no limit.
 *
 * @param cgroup_file  lists the process's groups, as /proc/self/cgroup does.
 * @param mount        where control groups are mounted, as /sys/fs/cgroup. */
int dpr_cpu_quota(const char *cgroup_file, const char *mount);

#endif
