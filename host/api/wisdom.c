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
#include "uncancelled.h"
#include "wisdom_file.h"

enum { NOTES_BYTES = 2 * (DPR_PATH_BYTES + 256), FRESH_MOST = 32 }; /* notes: a line for each of two files */

/* Guarded by `lock`. A child that was forked while a thread held the lock gets a new one, and finds all sets of times
 * whole: they are set by assignments after everything else is done, `known` first, and times that are found in two sets
 * do no harm.
 *
 * Adding a time to a large set would copy it. So times that dpr_wisdom_add() adds wait in sets of their own, each with
 * at least twice as many times as the next one, until somebody wants to know all times. */
static struct {
    pthread_mutex_t lock;
    int cancel;          /* of the thread that holds the lock: what dpr_cancel_release() needs */
    dpr_wisdom *known;   /* all times; NULL: files have not been read */
    dpr_wisdom *learned; /* those of them that dpr_wisdom_add() has added; NULL: none */
    int fresh_sets;
    dpr_wisdom *fresh[FRESH_MOST]; /* what was added since then, the oldest first */
    char notes[NOTES_BYTES];       /* lines about files */
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

static void replace(dpr_wisdom **set, dpr_wisdom *made) {
    dpr_wisdom *old = *set;
    *set = made;
    dpr_wisdom_release(old);
}

/* Adds what `more` has to a set of times. */
static dpr_status add(dpr_wisdom **set, const dpr_wisdom *more) {
    dpr_wisdom *joined;
    const dpr_status status = dpr_wisdom_join(*set, more, &joined);
    if (status == DPR_OK)
        replace(set, joined);
    return status;
}

/* Joins the two newest sets of fresh times. */
static dpr_status join_fresh(void) {
    dpr_wisdom *newer = process.fresh[process.fresh_sets - 1];
    const dpr_status status = add(&process.fresh[process.fresh_sets - 2], newer);
    if (status == DPR_OK) {
        process.fresh_sets--;
        dpr_wisdom_release(newer);
    }
    return status;
}

static void drop_fresh(void) {
    while (process.fresh_sets > 0)
        dpr_wisdom_release(process.fresh[--process.fresh_sets]);
}

/* Adds fresh times to those that are known and learned. */
static dpr_status settle(void) {
    dpr_status status = DPR_OK;
    while (process.fresh_sets > 1 && status == DPR_OK)
        status = join_fresh();
    if (process.fresh_sets == 0 || status != DPR_OK)
        return status;
    status = add(&process.known, process.fresh[0]);
    if (status == DPR_OK && process.learned)
        status = add(&process.learned, process.fresh[0]);
    else if (status == DPR_OK) {
        dpr_wisdom_hold(process.fresh[0]);
        process.learned = process.fresh[0];
    }
    if (status != DPR_ERR_OUT_OF_MEMORY) /* what does not fit would not fit later, either */
        drop_fresh();
    return status;
}

static dpr_status add_file(dpr_wisdom **set, const char *path, int *missing) {
    dpr_wisdom *read = NULL;
    dpr_status status = dpr_wisdom_read(path, &read, missing);
    if (status == DPR_OK)
        status = add(set, read);
    if (status == DPR_OK)
        note("read", path);
    dpr_wisdom_release(read);
    return status;
}

/* Reads the process's files. Their errors are notes. NULL if there is no memory. */
static dpr_wisdom *read_files(void) {
    char own[DPR_PATH_BYTES];
    const char *paths[2];
    dpr_wisdom *wisdom = dpr_wisdom_none();
    process.notes[0] = 0;
    for (int i = 0, n = wisdom ? dpr_wisdom_paths(own, paths) : 0; i < n; i++) {
        int missing;
        if (add_file(&wisdom, paths[i], &missing) != DPR_OK && !missing)
            note("refused", dpr_last_error());
    }
    return wisdom;
}

static void end(void) {
    const int cancel = process.cancel;
    (void)pthread_mutex_unlock(&process.lock);
    dpr_cancel_release(cancel);
}

/* Locks, and reads the process's files if that has not been done. NULL if there is no memory, and then nothing is
 * locked. Fresh times are not among those that it returns. */
static dpr_wisdom *begin_adding(void) {
    const int cancel = dpr_cancel_hold();
    (void)pthread_mutex_lock(&process.lock);
    process.cancel = cancel;
    if (!process.known)
        process.known = read_files();
    if (!process.known)
        end();
    return process.known;
}

/* The same, with fresh times. */
static dpr_wisdom *begin(void) {
    if (!begin_adding())
        return NULL;
    if (settle() != DPR_ERR_OUT_OF_MEMORY)
        return process.known;
    end();
    return NULL;
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
    int missing = 0;
    if (!begin())
        return DPR_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < n && status == DPR_OK; i++) {
        status = add_file(&process.known, paths[i], &missing);
        if (missing && !path)
            status = DPR_OK;
    }
    end();
    return missing && path ? dpr_fail(DPR_ERR_FILE, "%s cannot be read: No such file or directory", path) : status;
}

void dpr_wisdom_forget(void) {
    dpr_wisdom *none = dpr_wisdom_none();
    if (!none || !begin_adding()) {
        dpr_wisdom_release(none);
        return;
    }
    replace(&process.known, none);
    replace(&process.learned, NULL);
    drop_fresh();
    process.notes[0] = 0;
    end();
}

void dpr_wisdom_drop(void) {
    const int cancel = dpr_cancel_hold();
    (void)pthread_mutex_lock(&process.lock);
    process.cancel = cancel;
    replace(&process.known, NULL);
    replace(&process.learned, NULL);
    drop_fresh();
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
    if (shape.keys.dtype != DPR_DTYPE_NONE)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->key_dtype is set, and there are no times of runs of keys");
    if (!request.key.f.strategy)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->options names no strategy, and times are a strategy's");
    *strategy = dpr_strategies[request.key.f.strategy - 1];
    request.key.f.gpu_only = in_stream && (*strategy)->side == DPR_ON_GPU;
    if ((*strategy)->side == DPR_ON_GPU && machine->driver == 0)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "strategy \"%s\" runs on a GPU, and machine is of no context of a GPU",
                        (*strategy)->name);
    const char *refusal = dpr_refusal(*strategy, &request.key, &machine->caps);
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "strategy \"%s\" cannot run this: %s", (*strategy)->name, refusal);
    request.key.f.effort = DPR_EFFORT_DEFAULT; /* times that are added have cold caches */
    *key = request.key;
    *count = request.count;
    return DPR_OK;
}

/* Whether the newest set of fresh times is too large for its place. */
static int is_out_of_order(void) {
    const int n = process.fresh_sets;
    return n > 1 && process.fresh[n - 2]->times < 2 * process.fresh[n - 1]->times;
}

/* Adds one time, and takes it over. There are at most as many sets as the logarithm of their times, unless memory for
 * joining them is lacking. The first one has more than half of these times: where all might not fit, they are settled
 * one by one, and the one that does not fit is dropped. */
static dpr_status add_fresh(dpr_wisdom *one) {
    dpr_status status = process.fresh_sets < FRESH_MOST ? DPR_OK : settle();
    if (status != DPR_OK) {
        dpr_wisdom_release(one);
        return status;
    }
    process.fresh[process.fresh_sets] = one;
    process.fresh_sets++;
    while (is_out_of_order() && join_fresh() == DPR_OK)
        continue;
    if (process.known->times + 2 * process.fresh[0]->times <= DPR_WISE_TIMES)
        return DPR_OK;
    return settle() == DPR_ERR_WISDOM ? DPR_ERR_WISDOM : DPR_OK;
}

dpr_status dpr_wisdom_learn(const dpr_machine *machine, const dpr_strategy *strategy, const dpr_key *key,
                            uint64_t count, double seconds) {
    dpr_wisdom *one = NULL;
    dpr_status status = dpr_wisdom_single(machine, strategy, key, count, seconds, &one);
    if (status != DPR_OK)
        return status;
    if (!begin_adding()) {
        dpr_wisdom_release(one);
        return DPR_ERR_OUT_OF_MEMORY;
    }
    status = add_fresh(one);
    end();
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
    const double found = dpr_wise_seconds(&knowing, strategy, &key, count);
    dpr_wisdom_release(wisdom);
    if (found == 0)
        return dpr_fail(DPR_ERR_WISDOM, "no time of this strategy is known for this problem");
    *seconds = found;
    return DPR_OK;
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
    const dpr_wisdom *known = begin();
    if (!known)
        return DPR_ERR_OUT_OF_MEMORY;
    const dpr_wisdom *learned = process.learned;
    dpr_wisdom_hold(known);
    if (learned)
        dpr_wisdom_hold(learned);
    end();
    const int cancel = dpr_cancel_hold();
    const dpr_status status = dpr_wisdom_write(path, known, learned);
    dpr_cancel_release(cancel);
    dpr_wisdom_release(known);
    dpr_wisdom_release(learned);
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
