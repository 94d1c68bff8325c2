#include "processors.h"

#include <ctype.h>
#include <hwloc/linux.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cores.h"
#include "cpu/ops.h"
#include "cpu/topology.h"

/* Memory bandwidth cannot be asked for, so it is estimated: from what one core of a 16-core Xeon read, and from how the
 * sum of a large array scaled there from 1 to 2, 4, 8 and 16 threads (14.7, 29, 54, 101, 152 GB/s). Each further core
 * of a node slows all of that node by 3.65 %, which is right within 8 % at these points. */
enum { CORE_MB_PER_S = 14700, SHARING_PER_100000 = 3650 };

/* Nor can how long threads take to begin and to end: 10.8 us for the 16 of that Xeon, and 5 to 6 us for the two of a
 * virtual EPYC, in calls one after another. */
enum { WAKE_NS = 5000, WAKE_NS_OF_THREAD = 400 };

/* ---- Capabilities ----------------------------------------------------------------------------------------------- */

static int objects_here(const dpr_topology *t, hwloc_obj_type_t type, uint64_t *cache_bytes) {
    int found = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t->topology, type, o));) {
        if (!o->cpuset || !hwloc_bitmap_intersects(o->cpuset, t->cpus))
            continue;
        found++;
        if (cache_bytes)
            *cache_bytes += o->attr->cache.size;
    }
    return found;
}

/* Size of all caches of the last level, in bytes. */
static int64_t cache_bytes(const dpr_topology *t) {
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (objects_here(t, levels[i], &bytes) > 0)
            break;
    return (int64_t)bytes;
}

static const char *model_name(const dpr_topology *t) {
    hwloc_obj_t package = t->topology ? hwloc_get_obj_by_type(t->topology, HWLOC_OBJ_PACKAGE, 0) : NULL;
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (!model && t->topology)
        model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(t->topology), "CPUModel");
    return model && *model ? model : "unknown CPU";
}

void dpr_read_processors(dpr_cpu_caps *cpu, char name[64]) {
    const dpr_topology *t = dpr_topology_get();
    int nodes = t->topology ? objects_here(t, HWLOC_OBJ_NUMANODE, NULL) : 0;
    *cpu = (dpr_cpu_caps){
        .cores = t->cores,
        .threads = dpr_cores_threads(),
        .numa_nodes = nodes > 0 ? nodes : 1,
        .cache_bytes = t->topology ? cache_bytes(t) : 0,
        .vector_bytes = dpr_cpu_kernels_best()->vector_bytes,
        .core_mb_per_s = CORE_MB_PER_S,
        .wake_ns = WAKE_NS + WAKE_NS_OF_THREAD * dpr_cores_threads(),
    };
    int64_t used = cpu->threads < cpu->cores ? cpu->threads : cpu->cores;
    int64_t sharing = (used + cpu->numa_nodes - 1) / cpu->numa_nodes - 1;
    cpu->total_mb_per_s = used * CORE_MB_PER_S * 100000 / (100000 + sharing * SHARING_PER_100000);
    (void)snprintf(name, 64, "%s", model_name(t));
}

/* ---- NUMA nodes ------------------------------------------------------------------------------------------------- */

static void describe(const dpr_topology *t, hwloc_obj_t numa, dpr_node_info *out) {
    out->number = (int)numa->os_index;
    out->memory_bytes = numa->attr->numanode.local_memory;
    hwloc_bitmap_t cpus = hwloc_bitmap_dup(numa->cpuset);
    if (!cpus)
        return;
    (void)hwloc_bitmap_and(cpus, cpus, t->cpus);
    out->threads = hwloc_bitmap_weight(cpus);
    for (int i = 0; i < t->cores; i++)
        out->cores += hwloc_bitmap_intersects(t->core_cpus[i], cpus);
    (void)hwloc_bitmap_list_snprintf(out->cpus, sizeof out->cpus, cpus);
    hwloc_bitmap_free(cpus);
}

int dpr_numa_node(size_t i, dpr_node_info *out) {
    const dpr_topology *t = dpr_topology_get();
    size_t found = 0;
    hwloc_const_nodeset_t set = t->topology ? hwloc_topology_get_topology_nodeset(t->topology) : NULL;
    *out = (dpr_node_info){.size = out->size};
    for (int os = set ? hwloc_bitmap_first(set) : -1; os >= 0; os = hwloc_bitmap_next(set, os)) {
        hwloc_obj_t numa = hwloc_get_numanode_obj_by_os_index(t->topology, (unsigned)os);
        if (numa && found++ == i) {
            describe(t, numa, out);
            return 1;
        }
    }
    out->cores = out->threads = t->cores;
    return found == 0 && i == 0;
}

/* Writes the bus id as names in sysfs have it, in lower case. Returns 0 if it is no bus id. */
static int sysfs_name(const char *pci_bus_id, char *name, size_t size) {
    size_t length = strspn(pci_bus_id, "0123456789abcdefABCDEF:.");
    if (length == 0 || length >= size || pci_bus_id[length] != '\0' || pci_bus_id[0] == '.')
        return 0;
    for (size_t i = 0; i <= length; i++)
        name[i] = (char)tolower((unsigned char)pci_bus_id[i]);
    return 1;
}

/* Reads which hardware threads a PCI device is near, from the file that hwloc's own helpers for GPUs read. If hwloc
 * found all devices instead, that would take three times as long as the rest of the topology. */
static int read_local_cpus(const char *name, hwloc_cpuset_t cpus) {
    char path[80];
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpus", name);
    const int cancel = dpr_topology_begin_reading();
    const int found = hwloc_linux_read_path_as_cpumask(path, cpus) == 0;
    dpr_topology_end_reading(cancel);
    return found;
}

int dpr_numa_node_of_pci(const char *pci_bus_id) {
    const dpr_topology *t = dpr_topology_get();
    char name[16];
    int node = -1;
    if (!t->topology || !sysfs_name(pci_bus_id, name, sizeof name))
        return -1;
    hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    if (cpus && nodes && read_local_cpus(name, cpus)) {
        (void)hwloc_cpuset_to_nodeset(t->topology, cpus, nodes);
        /* A device that is equally near to several nodes has no nearest one. */
        if (hwloc_bitmap_weight(nodes) == 1)
            node = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(cpus);
    return node;
}
