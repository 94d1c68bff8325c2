#include "quota.h"

#include <unistd.h>

#include "cgroup.h"

/* Processors, rounded up, for `quota` microseconds of CPU time in every `period` microseconds; -1: no limit. */
static int64_t processors(int64_t quota, int64_t period) {
    enum { MOST = 1 << 20 };
    if (quota <= 0 || period <= 0)
        return -1;
    const int64_t whole = quota / period + (quota % period != 0);
    return whole < MOST ? whole : MOST;
}

/* If there is no limit, cpu.max holds "max 100000", and cpu.cfs_quota_us -1. */
static int64_t quota_v2(const char *folder) {
    int64_t of[2];
    return dpr_cgroup_numbers(folder, "cpu.max", of, 2) == 2 ? processors(of[0], of[1]) : -1;
}

static int64_t quota_v1(const char *folder) {
    int64_t quota, period;
    if (dpr_cgroup_numbers(folder, "cpu.cfs_quota_us", &quota, 1) != 1
        || dpr_cgroup_numbers(folder, "cpu.cfs_period_us", &period, 1) != 1)
        return -1;
    return processors(quota, period);
}

int dpr_cpu_quota(const char *cgroup_file, const char *mount) {
    static const dpr_cgroup_resource cpu = {"cpu", quota_v1, quota_v2};
    const int64_t least = dpr_cgroup_least(&cpu, cgroup_file, mount);
    return least > 0 ? (int)least : 0;
}

static int64_t first_number(const char *folder, const char *name) {
    int64_t n;
    return dpr_cgroup_numbers(folder, name, &n, 1) == 1 ? n : -1;
}

/* Where there is no limit memory.max holds "max", and memory.limit_in_bytes a number that no machine has. */
static int64_t memory_v2(const char *folder) {
    return first_number(folder, "memory.max");
}

static int64_t memory_v1(const char *folder) {
    return first_number(folder, "memory.limit_in_bytes");
}

uint64_t dpr_memory_limit(const char *cgroup_file, const char *mount) {
    static const dpr_cgroup_resource memory = {"memory", memory_v1, memory_v2};
    const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const int64_t least = dpr_cgroup_least(&memory, cgroup_file, mount);
    return least >= 0 && (uint64_t)least < all ? (uint64_t)least : all;
}
