/* What the parts of the fake runtime share. Each of the runtime's functions is `__wrap_<name>` in one of them: the same
 * type as the real one, or the declarations clash. */
#ifndef DPR_TESTS_FAKE_STATE_H
#define DPR_TESTS_FAKE_STATE_H

#include <cuda_runtime_api.h>

#define WRAP(NAME) extern __typeof__(NAME) __wrap_##NAME

/* Takes the fake's lock and counts the call. An error, with the lock released, if it is the call to fail or if a kernel
 * has faulted; the second form does not keep the error for cudaGetLastError(). */
cudaError_t fake_begin(const char *name);
cudaError_t fake_begin_quietly(const char *name);

/* The second form for a function of the driver's that needs a context, without which it is a violation. */
cudaError_t fake_begin_in_context(const char *name);

/* Releases the lock; returns `error`, or that of a kernel that has faulted, and keeps it for cudaGetLastError(). */
cudaError_t fake_end(cudaError_t error);

/* Begins a wrapped function that does nothing when it is made to fail. */
#define FAKE_BEGIN()                                                                                                   \
    do {                                                                                                               \
        const cudaError_t injected = fake_begin(__func__ + sizeof "__wrap_" - 1);                                      \
        if (injected != cudaSuccess)                                                                                   \
            return injected;                                                                                           \
    } while (0)

/* ---- With the lock held ---- */

/* Lets go of the lock around a call back into the library, which takes its own. */
void fake_unlock(void);
void fake_lock(void);

void fake_violate(const char *what);

/* fake_set_busy(), with the lock held. */
void fake_make_busy(int on);

/* Streams, graphs and user objects that come and go. */
void fake_count_objects(int change);

/* Every call from here on returns the error. */
void fake_break(cudaError_t error);

/* What is to become of the kernel whose turn it is. */
typedef enum { FAKE_RUNS, FAKE_VANISHES, FAKE_FAULTS } fake_fate;
fake_fate fake_next_fate(cudaError_t *error);

/* Whether work is done when it is enqueued. */
int fake_is_eager(void);

#endif
