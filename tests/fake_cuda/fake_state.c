#include "fake_state.h"

#include <pthread.h>
#include <string.h>

#include "fake_contexts.h"
#include "fake_cuda.h"
#include "fake_memory.h"
#include "fake_streams.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int objects_alive, calls, fail_at, capture_at, eager, vanishing, faulting;
static cudaError_t fail_with, fault_with, broken;
static const char *failed_call, *captured_call, *violation;
static cudaStream_t to_capture;
static _Thread_local cudaError_t recorded;

/* ---- For the tests ---- */

void fake_fail_call(int call, cudaError_t error) {
    pthread_mutex_lock(&lock);
    fail_at = call;
    fail_with = error;
    if (call > 0) {
        calls = 0;
        failed_call = NULL;
    }
    pthread_mutex_unlock(&lock);
}

void fake_capture_at(int call, cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    capture_at = call;
    to_capture = stream;
    calls = 0;
    captured_call = NULL;
    pthread_mutex_unlock(&lock);
}

const char *fake_captured_call(void) {
    return captured_call;
}

void fake_set_eager(int on) {
    pthread_mutex_lock(&lock);
    eager = on;
    pthread_mutex_unlock(&lock);
}

void fake_drop_kernels(int count) {
    pthread_mutex_lock(&lock);
    vanishing = count;
    pthread_mutex_unlock(&lock);
}

void fake_fault_kernel(cudaError_t error) {
    pthread_mutex_lock(&lock);
    faulting = 1;
    fault_with = error;
    pthread_mutex_unlock(&lock);
}

int fake_calls(void) {
    return calls;
}

const char *fake_failed_call(void) {
    return failed_call;
}

int fake_lost_objects(const char *failed) {
    static const char *const giving_back[] = {"cudaFreeAsync", "cudaEventDestroy", "cudaStreamDestroy"};
    int lost = 0;
    for (size_t i = 0; failed && i < sizeof giving_back / sizeof giving_back[0]; i++)
        lost |= strcmp(failed, giving_back[i]) == 0;
    return lost;
}

const char *fake_violation(void) {
    return violation;
}

void fake_forget_violation(void) {
    violation = NULL;
}

int fake_live_objects(void) {
    return fake_blocks() + objects_alive;
}

cudaError_t fake_last_error(void) {
    return recorded;
}

/* ---- For the parts ---- */

static cudaError_t give(cudaError_t error) {
    if (error != cudaSuccess)
        recorded = error;
    return error;
}

cudaError_t fake_begin_quietly(const char *name) {
    pthread_mutex_lock(&lock);
    calls++;
    cudaError_t error = broken;
    if (calls == capture_at && fake_capture(to_capture) == cudaSuccess)
        captured_call = name;
    if (calls == fail_at) {
        failed_call = name;
        error = fail_with;
    }
    if (error != cudaSuccess)
        pthread_mutex_unlock(&lock);
    return error;
}

cudaError_t fake_begin_in_context(const char *name) {
    const cudaError_t injected = fake_begin_quietly(name);
    if (injected != cudaSuccess || fake_current_context())
        return injected;
    fake_violate("the driver is called in a thread that has no context");
    pthread_mutex_unlock(&lock);
    return cudaErrorDeviceUninitialized;
}

/* The runtime's functions that do without a context, or make one themselves. */
static int needs_context(const char *name) {
    static const char *const others[] = {"cudaGetDevice",
                                         "cudaSetDevice",
                                         "cudaGetDeviceCount",
                                         "cudaGetDeviceProperties",
                                         "cudaDeviceGetAttribute",
                                         "cudaDriverGetVersion",
                                         "cudaGetDriverEntryPointByVersion"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return 0;
    return 1;
}

cudaError_t fake_begin(const char *name) {
    const cudaError_t injected = give(fake_begin_quietly(name));
    if (injected == cudaSuccess && needs_context(name))
        fake_have_context();
    return injected;
}

cudaError_t fake_end(cudaError_t error) {
    if (error == cudaSuccess)
        error = broken;
    pthread_mutex_unlock(&lock);
    return give(error);
}

void fake_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void fake_lock(void) {
    pthread_mutex_lock(&lock);
}

void fake_violate(const char *what) {
    if (!violation)
        violation = what;
}

void fake_count_objects(int change) {
    objects_alive += change;
}

void fake_break(cudaError_t error) {
    broken = error;
}

fake_fate fake_next_fate(cudaError_t *error) {
    if (faulting) {
        faulting = 0;
        *error = fault_with;
        return FAKE_FAULTS;
    }
    if (vanishing == 0)
        return FAKE_RUNS;
    vanishing--;
    return FAKE_VANISHES;
}

int fake_is_eager(void) {
    return eager;
}

/* ---- Errors ---- */

WRAP(cudaGetErrorString);
const char *__wrap_cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "a fake error";
}

WRAP(cudaGetErrorName);
const char *__wrap_cudaGetErrorName(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                              : "cudaErrorFake";
}

WRAP(cudaGetLastError);
cudaError_t __wrap_cudaGetLastError(void) {
    const cudaError_t error = recorded;
    recorded = cudaSuccess;
    return error;
}
