/* What control groups allow, and the memory that there is: from files of the tests' own. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "available.h"
#include "cpu/quota.h"
#include "support.h"

enum { MOST_PATHS = 32, PATH_BYTES = 200 };

/* A folder, and what was made in it, in that order. */
typedef struct place {
    char folder[64];
    char paths[MOST_PATHS][PATH_BYTES];
    int n;
    char meminfo[PATH_BYTES], groups[PATH_BYTES]; /* files that are there or not */
} place;

static void set_up(void *state) {
    place *p = state;
    snprintf(p->folder, sizeof p->folder, "/tmp/dpr-cgroups-XXXXXX");
    ASSERT_TRUE(mkdtemp(p->folder) != NULL);
    snprintf(p->meminfo, sizeof p->meminfo, "%s/meminfo", p->folder);
    snprintf(p->groups, sizeof p->groups, "%s/groups", p->folder);
}

static void tear_down(void *state) {
    place *p = state;
    while (p->n > 0)
        (void)remove(p->paths[--p->n]);
    (void)remove(p->folder);
}

#define PLACE_TEST(NAME) TEST_FIXTURE(Cgroups, NAME, place, set_up, tear_down)

/* A file in the folder, and the folders that it lies in. */
static void put(place *p, const char *name, const char *text) {
    char path[PATH_BYTES];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%s/%.*s", p->folder, (int)(slash - name), name);
        if (mkdir(path, 0700) == 0)
            memcpy(p->paths[p->n++], path, sizeof path);
    }
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    FILE *f = fopen(path, "w");
    ASSERT_TRUE(f != NULL && p->n < MOST_PATHS);
    (void)fputs(text, f);
    (void)fclose(f);
    memcpy(p->paths[p->n++], path, sizeof path);
}

static int quota(const place *p) {
    return dpr_cpu_quota(p->groups, p->folder);
}

static uint64_t available(const place *p) {
    return memory_available_by(p->meminfo, p->groups, p->folder);
}

static const char meminfo[] = "MemTotal:       8000 kB\nMemFree:        1 kB\nMemAvailable:   4000 kB\nCached: 7 kB\n";

PLACE_TEST(processors_of_version_2) {
    EXPECT_EQ_I64(0, quota(fixture));
    put(fixture, "groups", "0::/a/b\n");
    EXPECT_EQ_I64(0, quota(fixture));
    put(fixture, "a/b/cpu.max", "max 100000\n");
    EXPECT_EQ_I64(0, quota(fixture));
    put(fixture, "a/cpu.max", "250000 100000\n");
    EXPECT_EQ_I64(3, quota(fixture));
    put(fixture, "a/b/cpu.max", "50000 100000\n");
    EXPECT_EQ_I64(1, quota(fixture));
    put(fixture, "a/b/cpu.max", "900000 100000\n");
    EXPECT_EQ_I64(3, quota(fixture));
    put(fixture, "a/cpu.max", "9000000000000000000 1\n");
    put(fixture, "a/b/cpu.max", "0 0\n");
    EXPECT_EQ_I64(1 << 20, quota(fixture));
}

PLACE_TEST(processors_of_version_1) {
    put(fixture, "groups", "2:cpuset:/c\n1:cpuacct,cpu:/a\nnonsense\n0::/\n");
    put(fixture, "cpuset/c/cpu.cfs_quota_us", "100000\n");
    put(fixture, "cpuset/c/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ_I64(0, quota(fixture));
    put(fixture, "cpuacct,cpu/a/cpu.cfs_quota_us", "-1\n");
    put(fixture, "cpuacct,cpu/a/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ_I64(0, quota(fixture));
    put(fixture, "cpuacct,cpu/a/cpu.cfs_quota_us", "150000\n");
    EXPECT_EQ_I64(2, quota(fixture));
}

static uint64_t limit(const place *p) {
    return dpr_memory_limit(p->groups, p->folder);
}

PLACE_TEST(memory_that_groups_limit) {
    const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    EXPECT_EQ_U64(all, limit(fixture));
    put(fixture, "groups", "0::/a/b\n");
    put(fixture, "a/b/memory.max", "max\n");
    EXPECT_EQ_U64(all, limit(fixture));
    put(fixture, "a/memory.max", "1000000\n");
    EXPECT_EQ_U64(1000000, limit(fixture));
    put(fixture, "a/b/memory.max", "5000\n");
    EXPECT_EQ_U64(5000, limit(fixture));
    put(fixture, "groups", "4:memory:/c\n");
    put(fixture, "memory/c/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ_U64(all, limit(fixture));
    put(fixture, "memory/c/memory.limit_in_bytes", "70000\n");
    EXPECT_EQ_U64(70000, limit(fixture));
}

PLACE_TEST(memory_of_the_machine) {
    put(fixture, "meminfo", meminfo);
    EXPECT_EQ_U64(4000 * 1024, available(fixture));
    put(fixture, "meminfo", "MemTotal: 8000 kB\nMemAvailableX: 5 kB\n"); /* as before Linux 3.14 */
    EXPECT_TRUE(available(fixture) == (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

PLACE_TEST(memory_that_version_2_leaves) {
    put(fixture, "meminfo", meminfo);
    put(fixture, "groups", "0::/a/b\n");
    put(fixture, "a/b/memory.max", "max\n");
    put(fixture, "a/b/memory.current", "1000\n");
    EXPECT_EQ_U64(4000 * 1024, available(fixture));
    put(fixture, "a/memory.max", "1000000\n");
    put(fixture, "a/memory.current", "300000\n");
    EXPECT_EQ_U64(700000, available(fixture));
    put(fixture, "a/b/memory.max", "5000\n");
    EXPECT_EQ_U64(4000, available(fixture));
    put(fixture, "a/b/memory.stat", "file 900\nactive_file 100\ninactive_file 800\ninactive_filex 1\n");
    EXPECT_EQ_U64(4800, available(fixture));
    put(fixture, "a/b/memory.stat", "inactive_file 99999\n");
    EXPECT_EQ_U64(5000, available(fixture));
    put(fixture, "a/b/memory.max", "0\n");
    EXPECT_EQ_U64(0, available(fixture));
}

PLACE_TEST(memory_that_version_1_leaves) {
    put(fixture, "meminfo", meminfo);
    put(fixture, "groups", "4:memory:/a\n0::/\n");
    put(fixture, "memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    put(fixture, "memory/a/memory.usage_in_bytes", "3000\n");
    EXPECT_EQ_U64(4000 * 1024, available(fixture));
    put(fixture, "memory/a/memory.limit_in_bytes", "10000\n");
    EXPECT_EQ_U64(7000, available(fixture));
    put(fixture, "memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n");
    EXPECT_EQ_U64(9000, available(fixture));
    put(fixture, "memory/a/memory.usage_in_bytes", "99999\n");
    EXPECT_EQ_U64(0, available(fixture));
}
