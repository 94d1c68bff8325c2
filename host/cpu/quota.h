/* The CPU time that control groups grant this process. Linux; elsewhere there is never a limit. */
#ifndef DPR_HOST_CPU_QUOTA_H
#define DPR_HOST_CPU_QUOTA_H

/* The whole number of processors, rounded up, that the quota of this process's control group and of those above it
 * amounts to: cpu.max of version 2, cpu.cfs_quota_us over cpu.cfs_period_us of version 1. 0 if there is no limit.
 *
 * @param cgroup_file  lists the process's groups, as /proc/self/cgroup does.
 * @param mount        where control groups are mounted, as /sys/fs/cgroup. */
int dpr_cpu_quota(const char *cgroup_file, const char *mount);

#endif
