/* CUB's functions along axes. */
#include "peer_axes.h"
#include "peer_set.h"

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    return peer_note(p, (cudaError_t)p->reduce_axes(p->set->cub_scratch, PEER_CUB_SCRATCH, in, out, &p->axes, stream));
}

static int call(void *user, const void *in, void *out) {
    peer *p = user;
    return peer_wait(p, enqueue(p, in, out, p->set->stream));
}

void peer_cub_axes(peer_set *s) {
    const bench_case *at = &s->walk->at;
    const dpr_op op = at->ops.at[0];
    peers_axes axes;
    peers_cub_axes_call *function = op == DPR_SUM   ? peers_cub_axes_sum[DPR_ROW(at->dtype)]
                                    : op == DPR_MAX ? peers_cub_axes_max[DPR_ROW(at->dtype)]
                                                    : NULL;
    if (!function || peer_axes(&s->walk->shaped.array, &axes) != 0)
        return;
    peer *p = peer_add(s, (bench_subject){.name = PEERS_CUB, .enqueue = enqueue, .call = call});
    p->reduce_axes = function;
    p->axes = axes;
}
