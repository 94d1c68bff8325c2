/* What the control groups allow that this process is in. Linux; elsewhere there is never a limit. */
#ifndef DPR_HOST_CPU_CGROUP_H
#define DPR_HOST_CPU_CGROUP_H

#include <stdint.h>

enum { DPR_CGROUP_PATH = 4096 };

/* Something that groups limit. Both functions tell what the group at `folder` allows; -1 if it has no limit. */
typedef struct dpr_cgroup_resource {
    const char *controller; /* its name in version 1 */
    int64_t (*of_v1)(const char *folder), (*of_v2)(const char *folder);
} dpr_cgroup_resource;

/* The least of what the groups of this process and those above them allow; -1 if none has a limit.
 *
 * @param cgroup_file  lists the process's groups, as /proc/self/cgroup does.
 * @param mount        where control groups are mounted, as /sys/fs/cgroup. */
int64_t dpr_cgroup_least(const dpr_cgroup_resource *resource, const char *cgroup_file, const char *mount);

/* Reads up to `count` numbers at the begin of the file `name` in a folder. How many there are. */
int dpr_cgroup_numbers(const char *folder, const char *name, int64_t *out, int count);

#endif
