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
    dpr_ctx *ctx = NULL;
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.threads";
    dpr_status status = dpr_ctx_create(DPR_DEVICE_CPU, &ctx);
    while (!atomic_load(&stopping) && status == DPR_OK)
        status = dpr_reduce_ex(ctx, zeros, &sum, COUNT, DPR_I32, DPR_SUM, &options);
    dpr_ctx_destroy(ctx);
    return argument;
}

__attribute__((constructor)) static void start(void) {
    if (pthread_create(&thread, NULL, reduce_until_stopped, NULL) != 0)
        atomic_store(&stopping, 1);
}

/* The library must end its own threads after this: now the thread here may be using them. */
__attribute__((destructor)) static void stop(void) {
    if (!atomic_exchange(&stopping, 1))
        (void)pthread_join(thread, NULL);
}
