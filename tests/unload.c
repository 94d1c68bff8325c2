/* unload stays|goes FILE: opens the shared object FILE, has several threads reduce by the library in it, and closes it
 * without dpr_shutdown(), several times.
 *
 * Exit status 0: all results were right, fork() works afterwards, and the object was then there (stays), or it was gone
 * and its workers with it (goes). */
#define _GNU_SOURCE /* setenv(), usleep() */
#include <dlfcn.h>
#include <dpr.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

enum { COUNT = 3000001, THREADS = 4, ROUNDS = 5 };

static int32_t ones[COUNT];

/* The functions of the object that is open. */
static __typeof__(dpr_ctx_create) *ctx_create;
static __typeof__(dpr_ctx_destroy) *ctx_destroy;
static __typeof__(dpr_reduce_ex) *reduce_ex;

static int find(void *object, const char *name, void *to) {
    void *symbol = dlsym(object, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void *open_object(const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object && find(object, "dpr_ctx_create", &ctx_create) && find(object, "dpr_ctx_destroy", &ctx_destroy)
        && find(object, "dpr_reduce_ex", &reduce_ex))
        return object;
    (void)fprintf(stderr, "%s\n", dlerror());
    return NULL;
}

static void *reduce_often(void *ctx) {
    dpr_options options = DPR_OPTIONS_INIT;
    options.strategy = "cpu.threads";
    for (int i = 0; i < 5; i++) {
        int64_t sum = -1;
        if (reduce_ex(ctx, ones, &sum, COUNT, DPR_I32, DPR_SUM, &options) != DPR_OK || sum != COUNT)
            return NULL;
    }
    return ctx;
}

static int threads_reduce(void) {
    dpr_ctx *ctx = NULL;
    pthread_t thread[THREADS];
    int right = 0;
    if (ctx_create(DPR_DEVICE_CPU, &ctx) != DPR_OK)
        return 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, reduce_often, ctx) != 0)
            return 0;
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        right += pthread_join(thread[i], &result) == 0 && result;
    }
    ctx_destroy(ctx);
    return right == THREADS;
}

/* A thread of the plugin may be about to start them. */
static int workers_come(void) {
    long id;
    for (int i = 0; i < 10000 && count_workers(&id) == 0; i++)
        (void)usleep(1000);
    return count_workers(&id) > 0;
}

static int child_ends(void) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* 1 if all went well; threads whose code is gone crash within some milliseconds. */
static int use_once(const char *path) {
    void *object = open_object(path);
    if (!object)
        return 0;
    if (!threads_reduce() || !workers_come()) {
        (void)fprintf(stderr, "a wrong sum, or no workers\n");
        return 0;
    }
    const int closed = dlclose(object) == 0;
    (void)usleep(20000);
    return closed && child_ends();
}

static int is_there(const char *path) {
    void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return object && dlclose(object) == 0;
}

int main(int argc, char **argv) {
    if (argc != 3 || setenv("DPR_NUM_THREADS", "4", 1) != 0)
        return 2;
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    const int stays = strcmp(argv[1], "stays") == 0;
    for (int i = 0; i < ROUNDS; i++) {
        long id;
        if (!use_once(argv[2]))
            return 1;
        const int there = is_there(argv[2]), workers = count_workers(&id);
        if (there != stays || (!stays && workers != 0)) {
            (void)fprintf(stderr, "the object is %s, and there are %d workers\n", there ? "there" : "gone", workers);
            return 1;
        }
    }
    return 0;
}
