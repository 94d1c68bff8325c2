#include "peer_set.h"

#include <stdio.h>
#include <stdlib.h>

#include "layout.h"

const char *peer_group_name(size_t group) {
    static const char *const names[] = {[PEER_CUB] = "cub",
                                        [PEER_CUBLAS] = "cublas",
                                        [PEER_COPY] = "copy",
                                        [PEER_LAUNCH] = "launch",
                                        [PEER_CUSPARSE] = "cusparse"};
    return group < PEER_GROUPS ? names[group] : NULL;
}

/* ---- What all subjects have ------------------------------------------------------------------------------------- */

int peer_note(peer *p, cudaError_t error) {
    if (error == cudaSuccess)
        return 0;
    snprintf(p->caller.why, sizeof p->caller.why, "%.250s", cudaGetErrorString(error));
    (void)cudaGetLastError();
    return (int)error;
}

int peer_wait(peer *p, int code) {
    return code != 0 ? code : peer_note(p, cudaStreamSynchronize(p->set->stream));
}

int peer_check(cudaError_t error, const char *what, char why[BENCH_WHY]) {
    if (error == cudaSuccess)
        return 0;
    snprintf(why, BENCH_WHY, "%s: %s", what, cudaGetErrorString(error));
    (void)cudaGetLastError();
    return -1;
}

/* Copies, because a memset may be a kernel in another stream than the timer's (bench_walk.c: go_to()). */
int peer_memory(void **at, size_t bytes, const void *from) {
    void *zeros = from ? NULL : calloc(bytes + 1, 1);
    (void)cudaFree(*at);
    *at = NULL;
    cudaError_t error = from || zeros ? cudaMalloc(at, bytes + 1) : cudaErrorMemoryAllocation;
    if (error == cudaSuccess)
        error = cudaMemcpy(*at, from ? from : zeros, bytes, cudaMemcpyHostToDevice);
    free(zeros);
    if (error == cudaSuccess)
        return 0;
    (void)cudaGetLastError();
    (void)cudaFree(*at);
    *at = NULL;
    cli_note("there is no memory for a peer: %zu bytes", bytes);
    return -1;
}

/* Peers may round as they like: their results may be off by this many times what pairwise summation may, which is still
 * far less than a missing tile. */
static const double slack = 16;

peer *peer_add(peer_set *s, bench_subject subject) {
    bench_walk *w = s->walk;
    peer *p = &s->peers[w->n];
    *p = (peer){.caller = caller_at(w->ctx, &w->at, NULL), .set = s};
    p->caller.array = w->at.shape ? &w->shaped.array : NULL;
    p->caller.expected = w->expected;
    for (int i = 0; i < p->caller.expected.n; i++)
        p->caller.expected.at[i].tolerance *= slack;
    subject.user = p;
    w->subjects[w->n++] = subject;
    return p;
}

/* ---- dpr -------------------------------------------------------------------------------------------------------- */

/* Subjects of peers at a case, at most. */
enum { MOST_PEERS = 16 };

static int run_plan(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    return caller_note(&p->caller, caller_run(&p->caller, p->plan, in, out, stream));
}

/* Adds the planner's choice (NULL) or a strategy. -1, with the reason in dpr_last_error(), if that cannot run. */
static int add_strategy(peer_set *s, const char *strategy, const char *name) {
    bench_walk *w = s->walk;
    bench_caller caller = caller_at(w->ctx, &w->at, strategy);
    dpr_plan *plan;
    if (caller_plan(&caller, &plan) != DPR_OK)
        return -1;
    peer *p = peer_add(
        s, (bench_subject){.name = name, .enqueue = run_plan, .call = caller_call, .count_wrong = caller_count_wrong});
    p->plan = plan;
    p->caller = caller;
    p->caller.expected = w->expected;
    p->caller.chosen = !strategy;
    return 0;
}

/* The same call without a plan: what is between the two is the host's. */
static void add_planless(peer_set *s) {
    peer *p = peer_add(
        s, (bench_subject){.name = PEERS_OURS ".async", .enqueue = caller_enqueue, .count_wrong = caller_count_wrong});
    p->caller.strategy = s->peers[0].caller.strategy;
    p->caller.expected = s->walk->expected;
}

static int add_ours(peer_set *s, char why[BENCH_WHY]) {
    if (add_strategy(s, NULL, PEERS_OURS) != 0) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    if (s->walk->at.mode == BENCH_STREAM)
        add_planless(s);
    for (size_t i = 0; i < dpr_strategy_count() && s->walk->n < BENCH_SUBJECTS - MOST_PEERS; i++)
        if (axis_has(s->walk->asked->strategies, i))
            (void)add_strategy(s, dpr_strategy_name(i), dpr_strategy_name(i));
    return 0;
}

/* ---- Copies ----------------------------------------------------------------------------------------------------- */

/* Half of the array to as much other memory: as many bytes go through the memory as when all of it is read. */
static size_t copy_bytes(const peer_set *s) {
    return (size_t)s->walk->at.count * dpr_dtype_size(s->walk->at.dtype) / 2;
}

static int enqueue_copy(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    peer_set *s = p->set;
    const size_t bytes = copy_bytes(s);
    (void)out;
    if (s->copies_at > s->copies_bytes || s->copies_bytes - s->copies_at < bytes)
        s->copies_at = 0;
    unsigned char *to = s->copies + s->copies_at;
    s->copies_at += bench_aligned(bytes);
    return peer_note(p, cudaMemcpyAsync(to, in, bytes, cudaMemcpyDeviceToDevice, stream));
}

static int call_copy(void *user, const void *in, void *host_out) {
    peer *p = user;
    return peer_wait(p, enqueue_copy(p, in, host_out, p->set->stream));
}

static void add_copy(peer_set *s) {
    const size_t bytes = copy_bytes(s);
    if (bytes && bytes <= s->copies_bytes)
        peer_add(s, (bench_subject){.name = peer_group_name(PEER_COPY), .enqueue = enqueue_copy, .call = call_copy});
}

/* Room for several times L2, so that copies of small arrays go to other lines each time. */
static int open_copy(peer_set *s, char why[BENCH_WHY]) {
    const size_t least = (size_t)512 << 20, half = walk_largest(s->walk) / 2 + BENCH_ALIGNMENT;
    const size_t wanted = half > least ? half : least;
    size_t free_bytes = 0, total = 0;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total);
    s->copies_bytes = wanted < total / 8 ? wanted : total / 8;
    if (error == cudaSuccess)
        error = cudaMalloc((void **)&s->copies, s->copies_bytes);
    return peer_check(error, "memory for copies", why);
}

/* ---- The set ---------------------------------------------------------------------------------------------------- */

static const peer_group_calls copy = {.open = open_copy, .add = add_copy};

/* NULL: this build has no such library. */
static const peer_group_calls *const groups[PEER_GROUPS] = {[PEER_CUB] = &peer_cub,
#if PEERS_WITH_CUBLAS
                                                            [PEER_CUBLAS] = &peer_cublas,
#endif
#if PEERS_WITH_CUSPARSE
                                                            [PEER_CUSPARSE] = &peer_cusparse,
#endif
                                                            [PEER_COPY] = &copy,
                                                            [PEER_LAUNCH] = &peer_launch};

static const peer_group_calls *asked(const peer_set *s, int group) {
    return axis_has(s->groups, (size_t)group) ? groups[group] : NULL;
}

static void clear(peer_set *s) {
    for (int i = 0; i < s->walk->n; i++)
        dpr_plan_destroy(s->peers[i].plan);
    s->walk->n = 0;
}

/* dpr and its peers for many results. */
static int prepare_shape(peer_set *s) {
    peer *ours = peer_add(s, (bench_subject){.name = PEERS_OURS, .enqueue = caller_enqueue, .call = caller_call});
    ours->caller.strategy = CALLER_PLANNER;
    ours->caller.chosen = 1;
    for (int i = 0; i < PEER_GROUPS; i++) {
        const peer_group_calls *group = asked(s, i);
        void (*add)(peer_set *) = !group                              ? NULL
                                  : s->walk->at.shape->dimensions > 0 ? group->add_axes
                                                                      : group->add_segments;
        if (add)
            add(s);
    }
    return 0;
}

int peer_set_prepare(bench_walk *w, char why[BENCH_WHY]) {
    peer_set *s = w->user;
    clear(s);
    if (w->at.shape)
        return prepare_shape(s);
    if (add_ours(s, why) != 0)
        return -1;
    for (int i = 0; i < PEER_GROUPS; i++)
        if (asked(s, i) && groups[i]->add)
            groups[i]->add(s);
    return 0;
}

int peer_set_open(peer_set *s, char why[BENCH_WHY]) {
    cudaError_t error = cudaSetDevice(dpr_ctx_device(s->walk->ctx));
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc(&s->cub_scratch, PEER_CUB_SCRATCH);
    if (error == cudaSuccess)
        error = cudaMalloc(&s->cublas_scratch, PEER_CUBLAS_SCRATCH);
    if (error == cudaSuccess)
        error = cudaMalloc(&s->result, BENCH_RESULT_STRIDE);
    if (error == cudaSuccess)
        error = cudaMallocHost(&s->mailbox, BENCH_RESULT_STRIDE);
    int status = peer_check(error, "memory for the peers", why);
    for (int i = 0; i < PEER_GROUPS && status == 0; i++)
        if (asked(s, i))
            status = groups[i]->open(s, why);
        else if (axis_has(s->groups, (size_t)i))
            cli_note("this build has no %s to compare with", peer_group_name((size_t)i));
    return status;
}

void peer_set_close(peer_set *s) {
    clear(s);
    for (int i = 0; i < PEER_GROUPS; i++)
        if (asked(s, i) && groups[i]->close)
            groups[i]->close(s);
    (void)cudaFree(s->cub_scratch);
    (void)cudaFree(s->cublas_scratch);
    (void)cudaFree(s->result);
    (void)cudaFree(s->copies);
    (void)cudaFree(s->keys);
    (void)cudaFree(s->unique_keys);
    (void)cudaFree(s->ones);
    (void)cudaFreeHost(s->mailbox);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
}
