/* unload stays|goes FILE: opens the shared object FILE, has several threads reduce by its dpr_reduce(), and closes it
 * without dpr_shutdown(), several times.
 *
 * Exit status 0: all results were right, and the object was then there (stays) or not, its threads included (goes). */
#define _GNU_SOURCE /* setenv(), usleep() */
#include <dlfcn.h>
#include <dpr.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 3000001, THREADS = 4, ROUNDS = 5 };

static int32_t ones[COUNT];
static __typeof__(dpr_reduce) *reduce;

static void *reduce_often(void *argument) {
    for (int i = 0; i < 5; i++) {
        int64_t sum = -1;
        if (reduce(ones, &sum, COUNT, DPR_I32, DPR_SUM) != DPR_OK || sum != COUNT)
            return NULL;
    }
    return argument;
}

static int threads_reduce(void) {
    pthread_t thread[THREADS];
    int right = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, reduce_often, ones) != 0)
            return 0;
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        right += pthread_join(thread[i], &result) == 0 && result;
    }
    return right == THREADS;
}

static int count_threads(void) {
    return test_count_entries("/proc/self/task");
}

static int use_once(const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = object ? dlsym(object, "dpr_reduce") : NULL;
    if (!symbol) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 0;
    }
    memcpy(&reduce, &symbol, sizeof symbol);
    if (!threads_reduce() || count_threads() <= THREADS) {
        (void)fprintf(stderr, "a wrong sum, or no workers\n");
        return 0;
    }
    if (dlclose(object) != 0)
        return 0;
    (void)usleep(20000); /* for threads whose code is gone */
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3 || setenv("DPR_NUM_THREADS", "4", 1) != 0)
        return 2;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    const int stays = strcmp(argv[1], "stays") == 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (!use_once(argv[2]))
            return 1;
        const int is_there = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD) != NULL;
        if (is_there != stays || (!stays && count_threads() != 1)) {
            (void)fprintf(stderr, "the object is %s, and there are %d threads\n", is_there ? "still there" : "gone",
                          count_threads());
            return 1;
        }
    }
    return 0;
}
