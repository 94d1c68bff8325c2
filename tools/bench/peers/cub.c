#include "cub.h"

#include <stdio.h>
#include <string.h>

#include "peer_set.h"
#include "peers_results.h"

typedef peers_cub_call *const *cub_table;

/* By operation; NULL: CUB has no function for it. */
static const cub_table tables[DPR_OP_COUNT] = {
    [DPR_SUM] = peers_cub_sum,       [DPR_MIN] = peers_cub_min,     [DPR_MAX] = peers_cub_max,
    [DPR_ARGMIN] = peers_cub_argmin, [DPR_ALL] = peers_cub_all,     [DPR_ARGMAX] = peers_cub_argmax,
    [DPR_ANY] = peers_cub_any,       [DPR_COUNT] = peers_cub_count,
};

void peer_cub_version(char text[32]) {
    const int v = peers_cub_version();
    snprintf(text, 32, "%d.%d.%d", v / 100000, v / 100 % 1000, v % 100);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int reduce(peer *p, const void *in, void *out, cudaStream_t stream) {
    size_t bytes = p->scratch_bytes;
    return p->reduce(p->set->scratch, &bytes, in, out, p->caller.count, stream);
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    return peer_note(p, (cudaError_t)reduce(p, in, out, stream));
}

static size_t result_bytes(const peer *p) {
    return dpr_dtype_size(p->caller.expected.dtype);
}

/* As torch and others do: a copy in the stream, and waiting for that. */
static int call_and_copy(void *user, const void *in, void *host_out) {
    peer *p = user;
    const peer_set *s = p->set;
    cudaError_t error = (cudaError_t)reduce(p, in, s->result, s->stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(host_out, s->result, result_bytes(p), cudaMemcpyDeviceToHost, s->stream);
    return peer_note(p, error != cudaSuccess ? error : cudaStreamSynchronize(s->stream));
}

/* With the copy that waits by itself, for the legacy default stream. */
static int call_and_memcpy(void *user, const void *in, void *host_out) {
    peer *p = user;
    const cudaError_t error = (cudaError_t)reduce(p, in, p->set->result, NULL);
    return peer_note(p, error != cudaSuccess
                            ? error
                            : cudaMemcpy(host_out, p->set->result, result_bytes(p), cudaMemcpyDeviceToHost));
}

/* Without a copy: CUB's kernel writes to pinned memory. */
static int call_to_pinned(void *user, const void *in, void *host_out) {
    peer *p = user;
    const peer_set *s = p->set;
    const cudaError_t error = (cudaError_t)reduce(p, in, s->mailbox, s->stream);
    const int code = peer_note(p, error != cudaSuccess ? error : cudaStreamSynchronize(s->stream));
    if (code == 0)
        memcpy(host_out, s->mailbox, result_bytes(p));
    return code;
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

static cudaError_t grow_scratch(peer_set *s, size_t bytes) {
    if (bytes <= s->scratch_bytes)
        return cudaSuccess;
    (void)cudaFree(s->scratch);
    s->scratch = NULL;
    s->scratch_bytes = 0;
    const cudaError_t error = cudaMalloc(&s->scratch, bytes);
    if (error == cudaSuccess)
        s->scratch_bytes = bytes;
    return error;
}

/* Adds one way to call CUB; nothing where the table has none. */
static cudaError_t add(peer_set *s, cub_table table, const char *name,
                       int (*call)(void *user, const void *in, void *host_out)) {
    peers_cub_call *function = table ? table[s->at.dtype] : NULL;
    bench_subject *subject = function ? peer_add(s, name) : NULL;
    if (!subject)
        return cudaSuccess;
    peer *p = subject->user;
    p->reduce = function;
    subject->enqueue = enqueue;
    subject->call = call;
    const cudaError_t error =
        (cudaError_t)function(NULL, &p->scratch_bytes, s->mailbox, s->result, p->caller.count, s->stream);
    return error != cudaSuccess ? error : grow_scratch(s, p->scratch_bytes);
}

/* The low half of the sum. */
static cudaError_t add_native(peer_set *s) {
    const int before = s->n;
    const cudaError_t error = add(s, peers_cub_sum_native, PEERS_CUB ".native", call_and_copy);
    if (s->n > before)
        s->peers[before].caller.expected.dtype = s->at.dtype;
    return error;
}

int peer_add_cub(peer_set *s, char why[BENCH_WHY]) {
    const cub_table table = tables[s->at.op];
    cudaError_t error = add(s, table, PEERS_CUB, call_and_copy);
    if (error == cudaSuccess && peer_is_blocking(s)) {
        error = add(s, table, PEERS_CUB ".memcpy", call_and_memcpy);
        if (error == cudaSuccess)
            error = add(s, table, PEERS_CUB ".pinned", call_to_pinned);
    }
    if (error == cudaSuccess && s->at.op == DPR_SUM) {
        error = add_native(s);
        if (error == cudaSuccess && s->at.mode == BENCH_GRAPH)
            error = add(s, peers_cub_sum_transform, PEERS_CUB ".transform", call_and_copy);
    }
    if (error == cudaSuccess)
        return 0;
    snprintf(why, BENCH_WHY, "CUB's temporary storage: %s", cudaGetErrorString(error));
    (void)cudaGetLastError();
    return -1;
}
