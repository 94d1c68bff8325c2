#include "occupancies.h"

#include <stdio.h>
#include <string.h>

#include "cli_json.h"
#include "cuda/device.h"
#include "lists.h"
#include "plan/occupancy.h"
#include "plan/registry.h"

#ifdef DPR_WITH_CUDA

typedef struct measured {
    dpr_op op;
    dpr_dtype dtype;
    dpr_kernel_use use;
    dpr_occupancy occupancy;
} measured;

enum { MOST_KERNELS = DPR_OP_COUNT * DPR_DTYPE_COUNT };

int occupancies_of(int device, const dpr_gpu_caps *gpu, const dpr_strategy *strategy, const dpr_key *key,
                   dpr_kernel_use *use, dpr_occupancy *occupancy) {
    const dpr_kernel kernel = strategy->kernel(key);
    if (dpr_device_kernel_use(device, &kernel, use) != DPR_OK)
        return -1;
    *occupancy = dpr_occupancy_of(gpu, *use);
    return 0;
}

/* The kernels of a strategy on a device; fewer than it has when the runtime does not know some. */
static int measure(int device, const dpr_gpu_caps *gpu, const dpr_strategy *strategy, measured *out) {
    int count = 0;
    for (int o = 0; o < DPR_OP_COUNT; o++)
        for (int d = 0; d < DPR_DTYPE_COUNT; d++) {
            measured m = {.op = (dpr_op)o, .dtype = (dpr_dtype)d};
            dpr_key key = {.word = 0};
            dpr_caps caps = {.has_gpu = 1, .gpu = *gpu};
            key.f.op = (uint8_t)o;
            key.f.dtype = (uint8_t)d;
            key.f.in_memory = DPR_MEMORY_DEVICE;
            key.f.strategy = (uint8_t)(dpr_strategy_find(strategy->name) + 1);
            if (!dpr_supported(m.op, m.dtype) || (strategy->probe && strategy->probe(&key, &caps)))
                continue;
            if (occupancies_of(device, gpu, strategy, &key, &m.use, &m.occupancy) == 0)
                out[count++] = m;
        }
    return count;
}

static int alike(const measured *a, const measured *b) {
    return a->use.threads == b->use.threads && a->occupancy.blocks_per_sm == b->occupancy.blocks_per_sm
           && strcmp(a->occupancy.limit, b->occupancy.limit) == 0;
}

/* One line for all that are like the first of them, and the range of what they use. */
static void print_group(const measured *list, int count, int first, char *shown) {
    enum { EXAMPLES = 3 };
    const measured *m = &list[first];
    int members = 0, registers[] = {m->use.registers, m->use.registers};
    char examples[128] = "";
    for (int i = first; i < count; i++) {
        if (!alike(m, &list[i]))
            continue;
        shown[i] = 1;
        registers[0] = list[i].use.registers < registers[0] ? list[i].use.registers : registers[0];
        registers[1] = list[i].use.registers > registers[1] ? list[i].use.registers : registers[1];
        size_t used = strlen(examples);
        if (members++ < EXAMPLES)
            snprintf(examples + used, sizeof examples - used, "%s%s %s", used ? ", " : "", dpr_ops[list[i].op].name,
                     dpr_dtypes[list[i].dtype].name);
    }
    printf("      %3.0f %%  %2d blocks of %4d threads, %d to %d registers, limited by %s: %d kernel%s (%s%s)\n",
           100 * m->occupancy.fraction, m->occupancy.blocks_per_sm, m->use.threads, registers[0], registers[1],
           m->occupancy.limit, members, members == 1 ? "" : "s", examples, members > EXAMPLES ? ", ..." : "");
}

void occupancies_print(int device, const dpr_gpu_caps *gpu) {
    static measured list[MOST_KERNELS];
    printf("  Theoretical occupancy of the kernels, an SM:\n");
    for (size_t s = 0; s < dpr_strategy_count(); s++) {
        char shown[MOST_KERNELS] = {0};
        if (dpr_strategies[s]->side != DPR_ON_GPU)
            continue;
        int count = measure(device, gpu, dpr_strategies[s], list);
        printf("    %s%s\n", dpr_strategies[s]->name, count ? "" : ": unknown, as the runtime does not tell");
        for (int i = 0; i < count; i++)
            if (!shown[i])
                print_group(list, count, i, shown);
    }
}

static cJSON *kernel_json(const dpr_strategy *strategy, const measured *m) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "strategy", strategy->name);
    cJSON_AddStringToObject(object, "op", dpr_ops[m->op].name);
    cJSON_AddStringToObject(object, "dtype", dpr_dtypes[m->dtype].name);
    cJSON_AddNumberToObject(object, "threads", m->use.threads);
    cJSON_AddNumberToObject(object, "registers", m->use.registers);
    cJSON_AddNumberToObject(object, "shared_bytes", m->use.shared_bytes);
    cJSON_AddNumberToObject(object, "blocks_per_sm", m->occupancy.blocks_per_sm);
    cJSON_AddNumberToObject(object, "occupancy", m->occupancy.fraction);
    cJSON_AddStringToObject(object, "limited_by", m->occupancy.limit);
    return object;
}

cJSON *occupancies_json(int device, const dpr_gpu_caps *gpu) {
    static measured list[MOST_KERNELS];
    cJSON *array = cJSON_CreateArray();
    for (size_t s = 0; s < dpr_strategy_count(); s++) {
        int count = dpr_strategies[s]->side == DPR_ON_GPU ? measure(device, gpu, dpr_strategies[s], list) : 0;
        for (int i = 0; i < count; i++)
            cli_json_append(array, kernel_json(dpr_strategies[s], &list[i]));
    }
    return array;
}

#else /* there is no device to ask about */

int occupancies_of(int device, const dpr_gpu_caps *gpu, const dpr_strategy *strategy, const dpr_key *key,
                   dpr_kernel_use *use, dpr_occupancy *occupancy) {
    (void)device, (void)gpu, (void)strategy, (void)key, (void)use, (void)occupancy;
    return -1;
}

void occupancies_print(int device, const dpr_gpu_caps *gpu) {
    (void)device, (void)gpu;
}

cJSON *occupancies_json(int device, const dpr_gpu_caps *gpu) {
    (void)device, (void)gpu;
    return cJSON_CreateArray();
}

#endif
