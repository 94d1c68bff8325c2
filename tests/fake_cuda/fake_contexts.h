/* CUDA contexts of the fake devices. The caller holds the fake's lock, unless it says otherwise. */
#ifndef DPR_TESTS_FAKE_CONTEXTS_H
#define DPR_TESTS_FAKE_CONTEXTS_H

#include <cuda.h>

struct CUctx_st {
    struct CUctx_st *next;
    unsigned long long id; /* 0: a primary context that is not made */
    int device;
    int sms;           /* on which its work runs */
    CUcontext regular; /* itself, or what a green context was made from */
    int gone;
};

/* The calling thread's; NULL if it has none. Without the lock. */
CUcontext fake_current_context(void);

/* The device of that, or where there is none the one that the runtime would take. Without the lock. */
int fake_current_device(void);

/* Gives the calling thread the context that a call of the runtime gives it, unless it has one. */
void fake_have_context(void);

/* The driver's. */
CUresult CUDAAPI fake_ctx_get_current(CUcontext *context);
CUresult CUDAAPI fake_ctx_get_device(CUdevice *device);
CUresult CUDAAPI fake_ctx_get_id(CUcontext context, unsigned long long *id);
CUresult CUDAAPI fake_ctx_push_current(CUcontext context);
CUresult CUDAAPI fake_ctx_pop_current(CUcontext *context);
CUresult CUDAAPI fake_primary_retain(CUcontext *context, CUdevice device);
CUresult CUDAAPI fake_stream_get_contexts(CUstream stream, CUcontext *regular, CUgreenCtx *green);
CUresult CUDAAPI fake_ctx_get_resource(CUcontext context, CUdevResource *resource, CUdevResourceType type);
CUresult CUDAAPI fake_green_get_resource(CUgreenCtx context, CUdevResource *resource, CUdevResourceType type);

#endif
