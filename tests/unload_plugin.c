/* A plugin that contains the static library, and a thread that reduces until the plugin is unloaded. */
#include <dpr.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { COUNT = 3000001 };

static int32_t zeros[COUNT];
static pthread_t thread;
static atomic_int stopping;

static void *reduce_until_stopped(void *argument) {
    int64_t sum;
    while (!atomic_load(&stopping) && dpr_reduce(zeros, &sum, COUNT, DPR_I32, DPR_SUM) == DPR_OK) {
    }
    return argument;
}

__attribute__((constructor)) static void start(void) {
    if (pthread_create(&thread, NULL, reduce_until_stopped, NULL) != 0)
        atomic_store(&stopping, 1);
}

/* The library must not end its own threads before: this one may have them at the moment. */
__attribute__((destructor)) static void stop(void) {
    if (!atomic_exchange(&stopping, 1))
        (void)pthread_join(thread, NULL);
}
