#include "kernels.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "driver.h"
#include "log.h"
#include "module.h"

/* More slots than the library has kernels. A kernel without a slot is looked up at every launch. */
enum { SLOT_BITS = 12, SLOTS = 1 << SLOT_BITS };

/* Entries are added and never changed or removed, so readers need no lock. */
typedef struct slot {
    _Atomic(const void *) entry;
    _Atomic(CUfunction) function; /* NULL until it is known */
} slot;

struct dpr_kernels {
    slot slots[SLOTS];
};

dpr_kernels *dpr_kernels_create(void) {
    return calloc(1, sizeof(dpr_kernels));
}

void dpr_kernels_destroy(dpr_kernels *kernels) {
    free(kernels);
}

/* The kernel's slot, which may be new; NULL if all are taken by others. */
static slot *slot_of(dpr_kernels *kernels, const void *entry) {
    /* Fibonacci hashing: the product's upper bits depend on all bits of the address. */
    const size_t first = (size_t)(((uint64_t)(uintptr_t)entry * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SLOT_BITS));
    for (size_t i = 0; i < SLOTS; i++) {
        slot *s = &kernels->slots[(first + i) % SLOTS];
        const void *there = atomic_load_explicit(&s->entry, memory_order_acquire);
        if (!there && atomic_compare_exchange_strong(&s->entry, &there, entry))
            return s;
        if (there == entry)
            return s;
    }
    return NULL;
}

static cudaError_t find(dpr_kernels *kernels, const dpr_launch *launch, CUfunction *out) {
    const void *entry = launch->entry;
    slot *s = slot_of(kernels, entry);
    *out = s ? atomic_load_explicit(&s->function, memory_order_acquire) : NULL;
    if (*out)
        return cudaSuccess;
    const cudaError_t error =
        launch->module ? dpr_module_function(launch->module, entry, out) : cudaGetFuncBySymbol(out, entry);
    if (error == cudaSuccess && s)
        atomic_store_explicit(&s->function, *out, memory_order_release);
    return error;
}

static void log_kernel(const dpr_run *run, const dpr_launch *launch) {
    dpr_log_line line;
    dpr_log_begin(&line, DPR_LOG_LAUNCH);
    dpr_log_add(&line, "a kernel of %u blocks of %u threads with %d bytes of dynamic shared memory each, in stream %p",
                launch->blocks, launch->threads, launch->shared_bytes, (void *)run->stream);
    if (launch->cluster)
        dpr_log_add(&line, ", in clusters of %u blocks", launch->cluster);
    dpr_log_add(&line, "%s%s", launch->cooperative ? ", cooperative" : "",
                run->programmatic && !launch->cooperative && !launch->module ? ", overlapping the work before" : "");
    dpr_log_end(&line);
}

int dpr_kernels_enqueue(const dpr_run *run, const dpr_launch *launch, dpr_kernel_args *args) {
    CUfunction function;
    const cudaError_t error = find(run->enqueuer, launch, &function);
    if (error != cudaSuccess)
        return (int)error;
    if (DPR_LOGS(LAUNCH))
        log_kernel(run, launch);
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {.gridDimX = launch->blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = launch->threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = (unsigned)launch->shared_bytes,
                             .hStream = run->stream,
                             .attrs = attributes};
    if (launch->cooperative) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[config.numAttrs++].value.cooperative = 1;
    } else if (run->programmatic && !launch->module) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (launch->cluster) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs].value.clusterDim.x = launch->cluster;
        attributes[config.numAttrs].value.clusterDim.y = attributes[config.numAttrs].value.clusterDim.z = 1;
        config.numAttrs++;
    }
    void *params[] = {args};
    return (int)dpr_driver()->launch_kernel_ex(&config, function, params, NULL);
}
