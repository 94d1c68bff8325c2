#include "cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int dpr_cgroup_numbers(const char *folder, const char *name, int64_t *out, int count) {
    char path[DPR_CGROUP_PATH + 64];
    int found = 0;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    while (file && found < count
           && fscanf(file, "%19" SCNd64, &out[found]) == 1) /* NOLINT(cert-err34-c): 19 digits fit */
        found++;
    if (file)
        (void)fclose(file);
    return found;
}

static int64_t lesser(int64_t a, int64_t b) {
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* The least limit of the group at `folder` and of the groups above it, up to the folder whose path has `root` bytes.
 * Groups that a container does not see are skipped, because their files do not exist. */
static int64_t least_upwards(char *folder, size_t root, int64_t (*limit_of)(const char *folder)) {
    int64_t least = -1;
    for (;;) {
        least = lesser(least, limit_of(folder));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root)
            return least;
        *slash = '\0';
    }
}

/* Whether the name is in a list such as "cpu,cpuacct". */
static int has_name(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    }
    return 0;
}

static int64_t least_of(const char *mount, const char *controllers, const char *group,
                        int64_t (*limit_of)(const char *)) {
    char folder[DPR_CGROUP_PATH];
    int root = snprintf(folder, sizeof folder, "%s%s%s", mount, *controllers ? "/" : "", controllers);
    int length = snprintf(folder, sizeof folder, "%s%s%s%s", mount, *controllers ? "/" : "", controllers, group);
    if (root < 0 || length < 0 || (size_t)length >= sizeof folder)
        return -1;
    if (folder[length - 1] == '/')
        folder[length - 1] = '\0';
    return least_upwards(folder, (size_t)root, limit_of);
}

/* A line is ID:CONTROLLERS:GROUP; version 2 has no controllers. */
static int64_t least_of_line(const dpr_cgroup_resource *resource, char *line, const char *mount) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return -1;
    line[strcspn(line, "\n")] = '\0';
    *controllers++ = '\0';
    *group++ = '\0';
    if (*controllers == '\0')
        return least_of(mount, "", group, resource->of_v2);
    return has_name(controllers, resource->controller) ? least_of(mount, controllers, group, resource->of_v1) : -1;
}

int64_t dpr_cgroup_least(const dpr_cgroup_resource *resource, const char *cgroup_file, const char *mount) {
    char line[DPR_CGROUP_PATH];
    int64_t least = -1;
    FILE *file = fopen(cgroup_file, "re");
    while (file && fgets(line, sizeof line, file))
        least = lesser(least, least_of_line(resource, line, mount));
    if (file)
        (void)fclose(file);
    return least;
}
