/* CUB's functions for segments and for runs of equal keys, and dpr's for these runs. */
#include <stdlib.h>

#include "peer_set.h"

/* Those for the case's operation; NULL: CUB has none here. */
static peers_cub_segments_call *segments_function(const bench_case *at, dpr_dtype offsets) {
    const dpr_op op = at->ops.at[0];
    const peers_cub_segments_table *table = op == DPR_SUM   ? &peers_cub_segments_sum
                                            : op == DPR_MAX ? &peers_cub_segments_max
                                                            : NULL;
    if (!table || (offsets != DPR_I32 && offsets != DPR_I64))
        return NULL;
    return (*table)[offsets == DPR_I64][DPR_ROW(at->dtype)];
}

static peers_cub_by_key_call *by_key_function(const bench_case *at) {
    const dpr_op op = at->ops.at[0];
    return op == DPR_SUM   ? peers_cub_by_key_sum[DPR_ROW(at->dtype)]
           : op == DPR_MAX ? peers_cub_by_key_max[DPR_ROW(at->dtype)]
                           : NULL;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    const shape_array *a = p->caller.array;
    const unsigned char *offsets = (const unsigned char *)in + shaped_offsets_at(a, p->caller.dtype);
    return peer_note(
        p, (cudaError_t)p->segments(p->set->cub_scratch, PEER_CUB_SCRATCH, in, offsets, out, a->results, stream));
}

static int call(void *user, const void *in, void *out) {
    peer *p = user;
    return peer_wait(p, enqueue(p, in, out, p->set->stream));
}

static int enqueue_by_key(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    const peer_set *s = p->set;
    return peer_note(p, (cudaError_t)p->by_key(s->cub_scratch, PEER_CUB_SCRATCH, s->keys, in, s->unique_keys, out,
                                               s->result, p->caller.array->elements, stream));
}

static int call_by_key(void *user, const void *in, void *out) {
    peer *p = user;
    return peer_wait(p, enqueue_by_key(p, in, out, p->set->stream));
}

/* The call is not told how many runs there are, as CUB is not: it gets room for a run of each element. The array of
 * results is shorter, because how many runs there are is known here. */
static int enqueue_our_by_key(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    const peer_set *s = p->set;
    const shape_array *a = p->caller.array;
    return caller_note(&p->caller, dpr_reduce_by_key_async(p->caller.ctx, s->keys, DPR_I32, in, s->unique_keys, out,
                                                           s->result, a->elements, (size_t)a->elements, NULL,
                                                           p->caller.dtype, p->caller.ops.at[0], NULL, stream));
}

static int call_our_by_key(void *user, const void *in, void *out) {
    peer *p = user;
    const peer_set *s = p->set;
    const shape_array *a = p->caller.array;
    uint64_t runs = a->elements;
    return caller_note(&p->caller, dpr_reduce_by_key(p->caller.ctx, s->keys, DPR_I32, in, s->unique_keys, out, &runs,
                                                     (size_t)a->elements, p->caller.dtype, p->caller.ops.at[0], NULL));
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* Each element's key is the number of its segment. 0, or -1 if there is no memory. */
static int make_keys(peer_set *s) {
    const shape_array *a = &s->walk->shaped.array;
    const size_t bytes = (size_t)a->elements * sizeof(int32_t);
    int32_t *keys = malloc(bytes + 1);
    for (uint64_t i = 0; keys && i < a->results; i++)
        for (uint64_t at = shape_offset(a, i); at < shape_offset(a, i + 1); at++)
            keys[at] = (int32_t)i;
    int status = keys ? peer_memory((void **)&s->keys, bytes, keys) : -1;
    if (status == 0)
        status = peer_memory((void **)&s->unique_keys, bytes, NULL);
    free(keys);
    return status;
}

/* An empty segment has no key, so its result would be missing. */
void peer_cub_segments(peer_set *s) {
    const bench_case *at = &s->walk->at;
    const shape_array *a = &s->walk->shaped.array;
    peers_cub_segments_call *segments = segments_function(at, a->offset_dtype);
    peers_cub_by_key_call *by_key = a->empty == 0 && a->results <= INT32_MAX ? by_key_function(at) : NULL;
    if (segments)
        peer_add(s, (bench_subject){.name = PEERS_CUB, .enqueue = enqueue, .call = call})->segments = segments;
    if (!by_key || make_keys(s) != 0)
        return;
    peer_add(s, (bench_subject){.name = PEERS_CUB ".bykey", .enqueue = enqueue_by_key, .call = call_by_key})->by_key =
        by_key;
    (void)peer_add(
        s, (bench_subject){.name = PEERS_OURS ".bykey", .enqueue = enqueue_our_by_key, .call = call_our_by_key});
}
