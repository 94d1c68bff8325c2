#include <stdio.h>
#include <string.h>

#include "peer_set.h"
#include "peers_report.h"

/* Bytes of temporary storage, some hundred times what CUB needs on an H200: a partial result for each block. */
enum { SCRATCH = 16 << 20 };

/* By operation; NULL: CUB has no function for it. */
static const peers_cub_table *const tables[DPR_OP_COUNT] = {
    [DPR_SUM] = &peers_cub_sum,       [DPR_MIN] = &peers_cub_min,     [DPR_MAX] = &peers_cub_max,
    [DPR_ARGMIN] = &peers_cub_argmin, [DPR_ALL] = &peers_cub_all,     [DPR_ARGMAX] = &peers_cub_argmax,
    [DPR_ANY] = &peers_cub_any,       [DPR_COUNT] = &peers_cub_count,
};

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    size_t bytes = SCRATCH;
    return peer_note(p, (cudaError_t)p->reduce(p->set->scratch, &bytes, in, out, p->caller.count, stream));
}

static size_t result_bytes(const peer *p) {
    return dpr_dtype_size(p->caller.expected.dtype);
}

/* As torch and others do: a copy in the stream, and waiting for that. */
static int call_and_copy(void *user, const void *in, void *host_out) {
    peer *p = user;
    const peer_set *s = p->set;
    const int code = enqueue(p, in, s->result, s->stream);
    if (code != 0)
        return code;
    const cudaError_t error = cudaMemcpyAsync(host_out, s->result, result_bytes(p), cudaMemcpyDeviceToHost, s->stream);
    return peer_note(p, error != cudaSuccess ? error : cudaStreamSynchronize(s->stream));
}

/* With the copy that waits by itself, for the legacy default stream. */
static int call_and_memcpy(void *user, const void *in, void *host_out) {
    peer *p = user;
    void *result = p->set->result;
    const int code = enqueue(p, in, result, NULL);
    return code != 0 ? code : peer_note(p, cudaMemcpy(host_out, result, result_bytes(p), cudaMemcpyDeviceToHost));
}

/* Without a copy: CUB's kernel writes to pinned memory. */
static int call_to_pinned(void *user, const void *in, void *host_out) {
    peer *p = user;
    const peer_set *s = p->set;
    int code = enqueue(p, in, s->mailbox, s->stream);
    if (code == 0)
        code = peer_note(p, cudaStreamSynchronize(s->stream));
    if (code == 0)
        memcpy(host_out, s->mailbox, result_bytes(p));
    return code;
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

enum { ANY_MODE = BENCH_MODES };

/* A way to call CUB. */
typedef struct form {
    const char *name;
    const peers_cub_table *sums; /* of sums alone; NULL: the operation's table */
    int mode;                    /* a bench_mode, or ANY_MODE */
    int (*call)(void *user, const void *in, void *host_out);
} form;

static const form forms[] = {{PEERS_CUB, NULL, ANY_MODE, call_and_copy},
                             {PEERS_CUB ".memcpy", NULL, BENCH_BLOCKING, call_and_memcpy},
                             {PEERS_CUB ".pinned", NULL, BENCH_BLOCKING, call_to_pinned},
                             {PEERS_CUB ".native", &peers_cub_sum_native, ANY_MODE, call_and_copy},
                             {PEERS_CUB ".transform", &peers_cub_sum_transform, BENCH_GRAPH, call_and_copy}};

/* The function for the case; NULL: there is none. */
static peers_cub_call *function_of(const form *f, const bench_case *at) {
    const peers_cub_table *table = !f->sums ? tables[at->op] : at->op == DPR_SUM ? f->sums : NULL;
    return table && (f->mode == ANY_MODE || f->mode == (int)at->mode) ? (*table)[at->dtype] : NULL;
}

static cudaError_t add_form(peer_set *s, const form *f, peers_cub_call *function) {
    bench_subject *subject = peer_add(s, f->name);
    size_t bytes = 0;
    if (!subject)
        return cudaSuccess;
    peer *p = subject->user;
    p->reduce = function;
    if (f->sums == &peers_cub_sum_native)
        p->caller.expected.dtype = s->walk->at.dtype; /* the low half of the sum */
    subject->enqueue = enqueue;
    subject->call = f->call;
    const cudaError_t error = (cudaError_t)function(NULL, &bytes, s->mailbox, s->result, p->caller.count, s->stream);
    return error == cudaSuccess && bytes > SCRATCH ? cudaErrorMemoryAllocation : error;
}

static int add(peer_set *s, char why[BENCH_WHY]) {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && error == cudaSuccess; i++) {
        peers_cub_call *function = function_of(&forms[i], &s->walk->at);
        error = function ? add_form(s, &forms[i], function) : cudaSuccess;
    }
    return peer_check(error, "CUB's temporary storage", why);
}

static int allocate(peer_set *s, char why[BENCH_WHY]) {
    return peer_check(cudaMalloc(&s->scratch, SCRATCH), "CUB's temporary storage", why);
}

static void version(char text[32]) {
    const int v = peers_cub_version();
    snprintf(text, 32, "%d.%d.%d", v / 100000, v / 100 % 1000, v % 100);
}

const peer_group_calls peer_cub = {.open = allocate, .add = add, .version = version};
