#include "available.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cgroup.h"

/* The number behind a word at the begin of a line; 0 if there is no such line. */
static uint64_t number_of(const char *path, const char *word) {
    char line[256];
    uint64_t number = 0;
    const size_t length = strlen(word);
    FILE *f = fopen(path, "re");
    while (f && number == 0 && fgets(line, sizeof line, f))
        if (strncmp(line, word, length) == 0 && (line[length] == ' ' || line[length] == '\t'))
            (void)sscanf(line + length, "%19" SCNu64, &number); /* NOLINT(cert-err34-c): 19 digits fit */
    if (f)
        (void)fclose(f);
    return number;
}

/* What a group leaves of its limit. Its use has pages of files that were read in it, which the system takes back when
 * memory is short; those that were not used again count as free, as they do in MemAvailable. */
static int64_t left_of(const char *folder, const char *limit_file, const char *use_file, const char *files_word) {
    char stat[DPR_CGROUP_PATH + 64];
    int64_t limit, use;
    if (dpr_cgroup_numbers(folder, limit_file, &limit, 1) != 1 || dpr_cgroup_numbers(folder, use_file, &use, 1) != 1)
        return -1;
    (void)snprintf(stat, sizeof stat, "%s/memory.stat", folder);
    const int64_t files = (int64_t)number_of(stat, files_word);
    use -= files < use ? files : use;
    return use < limit ? limit - use : 0;
}

/* Where there is no limit memory.max holds "max", and memory.limit_in_bytes a number that no machine has. */
static int64_t left_v2(const char *folder) {
    return left_of(folder, "memory.max", "memory.current", "inactive_file");
}

static int64_t left_v1(const char *folder) {
    return left_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file");
}

uint64_t memory_available_by(const char *meminfo, const char *cgroup_file, const char *mount) {
    static const dpr_cgroup_resource memory = {"memory", left_v1, left_v2};
    const int64_t left = dpr_cgroup_least(&memory, cgroup_file, mount);
    uint64_t bytes = 1024 * number_of(meminfo, "MemAvailable:");
    if (bytes == 0)
        bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return left >= 0 && (uint64_t)left < bytes ? (uint64_t)left : bytes;
}

uint64_t memory_available(void) {
    return memory_available_by("/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup");
}

int64_t machine_value(const dpr_machine *machine, const char *key) {
    dpr_capability c = DPR_CAPABILITY_INIT;
    for (size_t i = 0; dpr_machine_capability(machine, i, &c) == DPR_OK; i++)
        if (strcmp(c.key, key) == 0)
            return c.value;
    return 0;
}

double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
