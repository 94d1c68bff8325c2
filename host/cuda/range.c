#include "range.h"

#include <nvtx3/nvToolsExt.h>

#include "uncancelled.h"

enum { DETACHED, ATTACHED, UNKNOWN };

atomic_int dpr_ranges = UNKNOWN;

static _Atomic(nvtxDomainHandle_t) domain;

/* NVTX looks for a profiler at its first call, and gives a domain if there is one. Threads that come here at once may
 * make a domain each; the first one's is used. */
static int look(void) {
    nvtxDomainHandle_t there = NULL, made;
    int state = atomic_load_explicit(&dpr_ranges, memory_order_acquire);
    if (state != UNKNOWN)
        return state;
    const int cancel = dpr_cancel_hold(); /* NVTX opens a library */
    made = nvtxDomainCreateA("dpr");
    dpr_cancel_release(cancel);
    if (made)
        (void)atomic_compare_exchange_strong(&domain, &there, made);
    state = made ? ATTACHED : DETACHED;
    atomic_store_explicit(&dpr_ranges, state, memory_order_release);
    return state;
}

void dpr_range_open(const char *name) {
    if (look() != ATTACHED)
        return;
    const nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                              .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                              .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                              .message.ascii = name};
    (void)nvtxDomainRangePushEx(atomic_load(&domain), &attributes);
}

void dpr_range_close(void) {
    if (look() == ATTACHED)
        (void)nvtxDomainRangePop(atomic_load(&domain));
}
