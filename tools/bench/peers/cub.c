#include <stdio.h>
#include <string.h>

#include "peer_set.h"

/* By operation; NULL: CUB has no function for it. */
static const peers_cub_table *const tables[DPR_OP_COUNT] = {
    [DPR_ROW(DPR_SUM)] = &peers_cub_sum, [DPR_ROW(DPR_MIN)] = &peers_cub_min,
    [DPR_ROW(DPR_MAX)] = &peers_cub_max, [DPR_ROW(DPR_ARGMIN)] = &peers_cub_argmin,
    [DPR_ROW(DPR_ALL)] = &peers_cub_all, [DPR_ROW(DPR_ARGMAX)] = &peers_cub_argmax,
    [DPR_ROW(DPR_ANY)] = &peers_cub_any, [DPR_ROW(DPR_COUNT)] = &peers_cub_count,
};

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    return peer_note(p,
                     (cudaError_t)p->reduce(p->set->cub_scratch, PEER_CUB_SCRATCH, in, out, p->caller.count, stream));
}

static size_t result_bytes(const peer *p) {
    return dpr_dtype_size(p->caller.expected.at[0].dtype);
}

/* As torch and others do: a copy in the stream, and waiting for that. */
static int call_and_copy(void *user, const void *in, void *host_out) {
    peer *p = user;
    const peer_set *s = p->set;
    int code = enqueue(p, in, s->result, s->stream);
    if (code == 0)
        code = peer_note(p, cudaMemcpyAsync(host_out, s->result, result_bytes(p), cudaMemcpyDeviceToHost, s->stream));
    return peer_wait(p, code);
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
    const int code = peer_wait(p, enqueue(p, in, p->set->mailbox, p->set->stream));
    if (code == 0)
        memcpy(host_out, p->set->mailbox, result_bytes(p));
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
    const dpr_op op = at->ops.at[0];
    const peers_cub_table *table = !f->sums ? tables[DPR_ROW(op)] : op == DPR_SUM ? f->sums : NULL;
    const int is_for_mode = f->mode == ANY_MODE || f->mode == (int)at->mode;
    return table && at->ops.n == 1 && is_for_mode ? (*table)[DPR_ROW(at->dtype)] : NULL;
}

static void add(peer_set *s) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        peers_cub_call *function = function_of(f, &s->walk->at);
        if (!function)
            continue;
        peer *p = peer_add(
            s,
            (bench_subject){.name = f->name, .enqueue = enqueue, .call = f->call, .count_wrong = caller_count_wrong});
        p->reduce = function;
        if (f->sums == &peers_cub_sum_native)
            p->caller.expected.at[0].dtype = s->walk->at.dtype; /* the low half of the sum */
    }
}

static int note_version(peer_set *s, char why[BENCH_WHY]) {
    const int v = peers_cub_version();
    (void)why;
    snprintf(s->results->cub, sizeof s->results->cub, "%d.%d.%d", v / 100000, v / 100 % 1000, v % 100);
    return 0;
}

const peer_group_calls peer_cub = {
    .open = note_version, .add = add, .add_segments = peer_cub_segments, .add_axes = peer_cub_axes};
