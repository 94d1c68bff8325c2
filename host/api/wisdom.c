/* dpr_wisdom_*(): the process's wisdom. */
#include "wisdom.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "log.h"
#include "plan/registry.h"
#include "plan/text.h"
#include "request.h"
#include "wisdom_file.h"

enum { NOTES_BYTES = 2048 };

/* Guarded by `lock`. A child that was forked while a thread held the lock gets a new one: what it guards is changed by
 * a single assignment, after everything else is done. */
static struct {
    pthread_mutex_t lock;
    dpr_wisdom *wisdom;      /* NULL: files have not been read */
    char notes[NOTES_BYTES]; /* lines about files */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void unlock_in_child(void) {
    (void)pthread_mutex_init(&process.lock, NULL);
}

/* Runs when the library is loaded, for the reason that cores.c gives. */
__attribute__((constructor(101))) static void watch_forks(void) {
    (void)pthread_atfork(NULL, NULL, unlock_in_child);
}

/* ---- The process's wisdom ---- */

/* Adds a line to the notes, as far as there is room. */
static void note(const char *what, const char *about) {
    const size_t used = strlen(process.notes);
    (void)snprintf(process.notes + used, NOTES_BYTES - used, "%s: %s\n", what, about);
    if (DPR_LOGS(PLAN))
        dpr_log(DPR_LOG_PLAN, "wisdom %s: %s", what, about);
}

/* Replaces the process's wisdom. */
static void put(dpr_wisdom *made) {
    dpr_wisdom *old = process.wisdom;
    process.wisdom = made;
    dpr_wisdom_release(old);
}

/* Adds what `more` has. */
static dpr_status add(const dpr_wisdom *more) {
    dpr_wisdom *joined;
    const dpr_status status = dpr_wisdom_join(process.wisdom, more, &joined);
    if (status == DPR_OK)
        put(joined);
    return status;
}

static dpr_status add_file(const char *path, int *missing) {
    dpr_wisdom *read = NULL;
    dpr_status status = dpr_wisdom_read(path, &read, missing);
    if (status == DPR_OK)
        status = add(read);
    if (status == DPR_OK)
        note("read", path);
    dpr_wisdom_release(read);
    return status;
}

/* Locks, and reads the process's files if that has not been done. Their errors are notes. NULL if there is no memory,
 * and then nothing is locked. */
static dpr_wisdom *begin(void) {
    char own[DPR_PATH_BYTES];
    const char *paths[2];
    (void)pthread_mutex_lock(&process.lock);
    if (process.wisdom)
        return process.wisdom;
    process.wisdom = dpr_wisdom_none();
    for (int i = 0, n = process.wisdom ? dpr_wisdom_paths(own, paths) : 0; i < n; i++) {
        int missing;
        if (add_file(paths[i], &missing) != DPR_OK && !missing)
            note("refused", dpr_last_error());
    }
    if (!process.wisdom)
        (void)pthread_mutex_unlock(&process.lock);
    return process.wisdom;
}

static void end(void) {
    (void)pthread_mutex_unlock(&process.lock);
}

const dpr_wisdom *dpr_wisdom_current(void) {
    dpr_wisdom *wisdom = begin();
    if (!wisdom)
        return NULL;
    dpr_wisdom_hold(wisdom);
    end();
    return wisdom;
}

dpr_status dpr_wisdom_import(const char *path) {
    char own[DPR_PATH_BYTES];
    const char *paths[2] = {path, NULL};
    const int n = path ? 1 : dpr_wisdom_paths(own, paths);
    dpr_status status = DPR_OK;
    if (!begin())
        return DPR_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < n && status == DPR_OK; i++) {
        int missing;
        status = add_file(paths[i], &missing);
        if (missing && !path)
            status = DPR_OK;
    }
    end();
    return status;
}

void dpr_wisdom_forget(void) {
    dpr_wisdom *none = dpr_wisdom_none();
    if (!none || !begin()) {
        dpr_wisdom_release(none);
        return;
    }
    put(none);
    process.notes[0] = 0;
    end();
}

/* Makes a strategy and a key of a problem whose time was measured. */
static dpr_status take_problem(const dpr_machine *machine, const dpr_problem *problem, int in_stream,
                               const dpr_strategy **strategy, dpr_key *key, size_t *count) {
    dpr_problem adopted;
    dpr_request request;
    dpr_shape shape;
    if (!machine || !problem)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", machine ? "problem" : "machine");
    if (in_stream != 0 && in_stream != 1)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "in_stream is %d; it should be 0 or 1", in_stream);
    const dpr_status status = dpr_request_of_problem(problem, machine->caps.has_gpu, &adopted, &request, &shape);
    if (status != DPR_OK)
        return status;
    if (!request.key.f.strategy)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->options names no strategy, and times are a strategy's");
    *strategy = dpr_strategies[request.key.f.strategy - 1];
    request.key.f.gpu_only = in_stream && (*strategy)->side == DPR_ON_GPU;
    const char *refusal = dpr_refusal(*strategy, &request.key, &machine->caps);
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "strategy \"%s\" cannot run this: %s", (*strategy)->name, refusal);
    *key = request.key;
    *count = request.count;
    return DPR_OK;
}

dpr_status dpr_wisdom_learn(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key,
                            uint64_t count, double seconds) {
    dpr_wisdom *one = NULL;
    dpr_status status = dpr_wisdom_single(machine, strategy, key, count, seconds, &one);
    if (status == DPR_OK && !begin())
        status = DPR_ERR_OUT_OF_MEMORY;
    else if (status == DPR_OK) {
        status = add(one);
        end();
    }
    dpr_wisdom_release(one);
    return status;
}

dpr_status dpr_wisdom_add(const dpr_machine *machine, const dpr_problem *problem, int in_stream, double seconds) {
    const dpr_strategy *strategy = NULL;
    dpr_key key = {.words = {0}};
    size_t count = 0;
    const dpr_status status = take_problem(machine, problem, in_stream, &strategy, &key, &count);
    return status == DPR_OK ? dpr_wisdom_learn(machine, strategy, &key, count, seconds) : status;
}

dpr_status dpr_wisdom_find(const dpr_machine *machine, const dpr_problem *problem, int in_stream, double *seconds) {
    const dpr_strategy *strategy = NULL;
    dpr_key key = {.words = {0}};
    size_t count = 0;
    if (!seconds)
        return dpr_fail(DPR_ERR_NULL_POINTER, "seconds is NULL");
    dpr_status status = take_problem(machine, problem, in_stream, &strategy, &key, &count);
    const dpr_wisdom *wisdom = status == DPR_OK ? dpr_wisdom_current() : NULL;
    if (status != DPR_OK || !wisdom)
        return status != DPR_OK ? status : DPR_ERR_OUT_OF_MEMORY;
    dpr_machine knowing = *machine;
    dpr_wisdom_attach(wisdom, &knowing);
    const dpr_wise_curve known = dpr_wise_find(&knowing, strategy, &key);
    status = DPR_ERR_WISDOM;
    for (size_t i = 0; i < known.n && status != DPR_OK; i++)
        if (known.time[i].count == count) {
            *seconds = 1e-12 * (double)known.time[i].picoseconds;
            status = DPR_OK;
        }
    dpr_wisdom_release(wisdom);
    return status == DPR_OK ? status : dpr_fail(status, "no time of this strategy is known for this problem");
}

/* ---- Status ---- */

static void describe(dpr_text *text, const void *subject) {
    const dpr_wisdom *w = subject;
    dpr_text_add(text, "%zu times of %d processor%s\n", w->times, w->processors, w->processors == 1 ? "" : "s");
    for (int i = 0; i < w->processors; i++)
        dpr_text_add(text, "%s: %s, %zu times\n", w->processor[i].on_gpu ? "gpu" : "cpu", w->processor[i].name,
                     dpr_wise_times_of(w, i));
    dpr_text_add(text, "%s", process.notes);
}

dpr_status dpr_wisdom_status(char *text, size_t *len) {
    if (!len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "len is NULL");
    const dpr_wisdom *wisdom = begin();
    if (!wisdom)
        return DPR_ERR_OUT_OF_MEMORY;
    const dpr_status status = dpr_text_fill(describe, wisdom, text, len);
    end();
    return status;
}

dpr_status dpr_wisdom_export(const char *path) {
    const dpr_wisdom *wisdom = dpr_wisdom_current();
    if (!wisdom)
        return DPR_ERR_OUT_OF_MEMORY;
    const dpr_status status = dpr_wisdom_write(path, wisdom);
    dpr_wisdom_release(wisdom);
    return status;
}

static void write_path(dpr_text *text, const void *path) {
    dpr_text_add(text, "%s", (const char *)path);
}

dpr_status dpr_wisdom_path(char *text, size_t *len) {
    char own[DPR_PATH_BYTES];
    const char *path = NULL;
    if (!len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "len is NULL");
    const dpr_status status = dpr_wisdom_own_path(own, &path);
    return status == DPR_OK ? dpr_text_fill(write_path, path, text, len) : status;
}
