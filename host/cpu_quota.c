#include "cpu_quota.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* Processors for `quota` microseconds in every `period`. */
static int processors(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return 0;
    long long whole = quota / period + (quota % period != 0);
    return whole < 1 << 20 ? (int)whole : 1 << 20;
}

/* Reads the first number of a file; 0 where there is none. */
static int read_number(const char *path, long long *out) {
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int found = fscanf(file, "%19lld", out) == 1; /* NOLINT(cert-err34-c): 19 digits fit */
    (void)fclose(file);
    return found;
}

/* Both return 0 for no limit. cpu.max holds "max 100000" then, cpu.cfs_quota_us -1. */
static int quota_v2(const char *folder) {
    char path[PATH_BYTES + 32];
    long long quota = 0, period = 0;
    (void)snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int found = fscanf(file, "%19lld %19lld", &quota, &period) == 2; /* NOLINT(cert-err34-c): 19 digits fit */
    (void)fclose(file);
    return found ? processors(quota, period) : 0;
}

static int quota_v1(const char *folder) {
    char path[PATH_BYTES + 32];
    long long quota = 0, period = 0;
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_number(path, &quota))
        return 0;
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_number(path, &period) ? processors(quota, period) : 0;
}

/* The least limit of the group at `folder` and of those above it, down to the first `root` bytes of the path. Groups
 * that a container does not see are skipped: their files are not there. */
static int least_upwards(char *folder, size_t root, int (*quota_of)(const char *folder)) {
    int least = 0;
    for (;;) {
        int limit = quota_of(folder);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root)
            return least;
        *slash = '\0';
    }
}

/* Whether "cpu" is in a list such as "cpu,cpuacct". */
static int has_cpu(const char *controllers) {
    for (const char *at = controllers; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0'))
            return 1;
    }
    return 0;
}

static int limit_of(const char *mount, const char *controllers, const char *group, int (*quota_of)(const char *)) {
    char folder[PATH_BYTES];
    int root = snprintf(folder, sizeof folder, "%s%s%s", mount, *controllers ? "/" : "", controllers);
    int length = snprintf(folder, sizeof folder, "%s%s%s%s", mount, *controllers ? "/" : "", controllers, group);
    if (root < 0 || length < 0 || (size_t)length >= sizeof folder)
        return 0;
    if (folder[length - 1] == '/')
        folder[length - 1] = '\0';
    return least_upwards(folder, (size_t)root, quota_of);
}

int dpr_cpu_quota(const char *cgroup_file, const char *mount) {
    char line[PATH_BYTES];
    int least = 0;
    FILE *file = fopen(cgroup_file, "re");
    if (!file)
        return 0;
    /* Lines are ID:CONTROLLERS:GROUP; version 2 has no controllers. */
    while (fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        line[strcspn(line, "\n")] = '\0';
        *controllers++ = '\0';
        *group++ = '\0';
        int limit = 0;
        if (*controllers == '\0')
            limit = limit_of(mount, "", group, quota_v2);
        else if (has_cpu(controllers))
            limit = limit_of(mount, controllers, group, quota_v1);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
    }
    (void)fclose(file);
    return least;
}
