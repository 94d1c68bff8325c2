/* Limits of the control groups that this process is in. On systems other than Linux there is never a limit. */
#ifndef DPR_HOST_CPU_CGROUP_H
#define DPR_HOST_CPU_CGROUP_H

#include <stdint.h>

enum { DPR_CGROUP_PATH = 4096 };

/* A resource that groups limit. Both functions return the limit of the group at `folder`; -1 if it has none. */
typedef struct dpr_cgroup_resource {
    const char *controller; /* its name in version 1 */
    int64_t (*of_v1)(const char *folder), (*of_v2)(const char *folder);
} dpr_cgroup_resource;

/* The least limit of this process's groups and of the groups above them; -1 if none has a limit.
 *
 * @param cgroup_file  lists the process's groups, as /proc/self/cgroup does.
 * @param mount        where control groups are mounted, as /sys/fs/cgroup. */
int64_t dpr_cgroup_least(const dpr_cgroup_resource *resource, const char *cgroup_file, const char *mount);

/* Reads up to `count` numbers at the beginning of the file `name` in a folder. Returns how many it has read. */
int dpr_cgroup_numbers(const char *folder, const char *name, int64_t *out, int count);

#endif
