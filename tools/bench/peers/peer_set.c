#include "peer_set.h"

#include <stdio.h>
#include <string.h>

#include "peers_results.h"

const char *peer_group_name(size_t group) {
    static const char *const names[] = {
        [PEER_CUB] = "cub", [PEER_CUBLAS] = "cublas", [PEER_COPY] = "copy", [PEER_LAUNCH] = "launch"};
    return group < PEER_GROUPS ? names[group] : NULL;
}

/* ---- What all subjects have ------------------------------------------------------------------------------------- */

int peer_is_blocking(const peer_set *s) {
    return s->at.mode == BENCH_BLOCKING;
}

int peer_note(peer *p, cudaError_t error) {
    if (error == cudaSuccess)
        return 0;
    snprintf(p->caller.why, sizeof p->caller.why, "%.250s", cudaGetErrorString(error));
    (void)cudaGetLastError();
    return (int)error;
}

bench_subject *peer_add(peer_set *s, const char *name) {
    if (s->n == BENCH_SUBJECTS)
        return NULL;
    peer *p = &s->peers[s->n];
    bench_subject *subject = &s->subjects[s->n++];
    *p = (peer){.caller = caller_at(s->ctx, &s->at, NULL), .set = s};
    p->caller.expected = s->expected;
    *subject = (bench_subject){.name = name, .user = p, .count_wrong = caller_count_wrong};
    return subject;
}

/* ---- dpr -------------------------------------------------------------------------------------------------------- */

static int run_plan(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    return caller_note(&p->caller, dpr_plan_run(p->plan, in, out, stream));
}

/* Adds the planner's choice (NULL) or a strategy. -1, with the reason in dpr_last_error(), if that cannot run. */
static int add_strategy(peer_set *s, const char *strategy, const char *name) {
    bench_caller caller = caller_at(s->ctx, &s->at, strategy);
    dpr_plan *plan = NULL;
    if (caller_plan(&caller, &plan) != DPR_OK)
        return -1;
    bench_subject *subject = peer_add(s, name);
    if (!subject) {
        dpr_plan_destroy(plan);
        return 0;
    }
    peer *p = subject->user;
    p->plan = plan;
    p->caller.options = caller.options;
    p->caller.strategy = caller.strategy;
    p->caller.chosen = !strategy;
    subject->enqueue = run_plan;
    subject->call = caller_call;
    return 0;
}

/* The same call without a plan: what is between the two is the host's. */
static void add_planless(peer_set *s) {
    bench_subject *subject = s->at.mode == BENCH_STREAM ? peer_add(s, PEERS_OURS ".async") : NULL;
    if (!subject)
        return;
    peer *p = subject->user;
    p->caller.strategy = s->peers[0].caller.strategy;
    subject->enqueue = caller_enqueue;
}

static int add_ours(peer_set *s, char why[BENCH_WHY]) {
    if (add_strategy(s, NULL, PEERS_OURS) != 0) {
        snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
        return -1;
    }
    add_planless(s);
    for (size_t i = 0; i < AXIS_SET && i < dpr_strategy_count(); i++)
        if (s->strategies[i])
            (void)add_strategy(s, dpr_strategy_name(i), dpr_strategy_name(i));
    return 0;
}

/* ---- Copies ----------------------------------------------------------------------------------------------------- */

static size_t array_bytes(const peer_set *s) {
    return (size_t)s->at.count * dpr_dtype_size(s->at.dtype);
}

/* Half of the array to as much other memory: as many bytes go through the memory as when all of it is read. */
static cudaError_t copy_half(peer *p, const void *in, cudaStream_t stream) {
    peer_set *s = p->set;
    const size_t bytes = array_bytes(s) / 2;
    if (s->copies_bytes - s->copies_at < bytes)
        s->copies_at = 0;
    unsigned char *to = s->copies + s->copies_at;
    s->copies_at += (bytes + BENCH_ALIGNMENT - 1) / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
    if (s->copies_at > s->copies_bytes)
        s->copies_at = 0;
    return cudaMemcpyAsync(to, in, bytes, cudaMemcpyDeviceToDevice, stream);
}

static int enqueue_copy(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    (void)out;
    return peer_note(p, copy_half(p, in, stream));
}

static int call_copy(void *user, const void *in, void *host_out) {
    peer *p = user;
    (void)host_out;
    const cudaError_t error = copy_half(p, in, p->set->stream);
    return peer_note(p, error != cudaSuccess ? error : cudaStreamSynchronize(p->set->stream));
}

int peer_add_copy(peer_set *s, char why[BENCH_WHY]) {
    const size_t bytes = array_bytes(s);
    (void)why;
    if (bytes < 2 || bytes / 2 > s->copies_bytes)
        return 0;
    bench_subject *subject = peer_add(s, peer_group_name(PEER_COPY));
    if (!subject)
        return 0;
    subject->enqueue = enqueue_copy;
    subject->call = call_copy;
    subject->count_wrong = NULL;
    return 0;
}

/* ---- The set ---------------------------------------------------------------------------------------------------- */

static int (*const adders[PEER_GROUPS])(peer_set *s, char why[BENCH_WHY]) = {[PEER_CUB] = peer_add_cub,
                                                                             [PEER_CUBLAS] = peer_add_cublas,
                                                                             [PEER_COPY] = peer_add_copy,
                                                                             [PEER_LAUNCH] = peer_add_launch};

static void clear(peer_set *s) {
    for (int i = 0; i < s->n; i++)
        dpr_plan_destroy(s->peers[i].plan);
    s->n = 0;
}

int peer_set_at(peer_set *s, const bench_case *at, const known *data, const known_result *expected,
                char why[BENCH_WHY]) {
    clear(s);
    s->at = *at;
    s->known = data;
    s->expected = *expected;
    int status = add_ours(s, why);
    s->expected.tolerance *= PEER_SLACK;
    for (int i = 0; i < PEER_GROUPS && status == 0; i++)
        if (s->groups[i])
            status = adders[i](s, why);
    return status;
}

/* Several times L2, so that copies of small arrays go to other lines each time. */
static size_t wanted_copies(size_t largest, size_t memory) {
    const size_t least = (size_t)512 << 20, half = largest / 2 + BENCH_ALIGNMENT;
    const size_t wanted = half > least ? half : least;
    return wanted < memory / 8 ? wanted : memory / 8;
}

static cudaError_t allocate(peer_set *s, size_t largest) {
    size_t free_bytes = 0, total = 0;
    cudaError_t error = cudaSetDevice(dpr_ctx_device(s->ctx));
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc(&s->result, BENCH_RESULT_STRIDE);
    if (error == cudaSuccess)
        error = cudaMallocHost(&s->mailbox, BENCH_RESULT_STRIDE);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&free_bytes, &total);
    if (error != cudaSuccess || !s->groups[PEER_COPY])
        return error;
    s->copies_bytes = wanted_copies(largest, total);
    return cudaMalloc((void **)&s->copies, s->copies_bytes);
}

int peer_set_open(peer_set *s, dpr_ctx *ctx, const unsigned char strategies[AXIS_SET],
                  const unsigned char groups[AXIS_SET], size_t largest, char why[BENCH_WHY]) {
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    memcpy(s->strategies, strategies, AXIS_SET);
    memcpy(s->groups, groups, AXIS_SET);
    const cudaError_t error = allocate(s, largest);
    if (error != cudaSuccess) {
        snprintf(why, BENCH_WHY, "memory for the peers: %s", cudaGetErrorString(error));
        return -1;
    }
    return s->groups[PEER_CUBLAS] ? peer_cublas_open(s, why) : 0;
}

void peer_set_close(peer_set *s) {
    clear(s);
    peer_cublas_close(s);
    (void)cudaFree(s->scratch);
    (void)cudaFree(s->result);
    (void)cudaFree(s->copies);
    (void)cudaFreeHost(s->mailbox);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    memset(s, 0, sizeof *s);
}
