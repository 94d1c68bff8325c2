#include "launch.h"

#include "peer_set.h"

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    (void)in;
    (void)out;
    return peer_note(user, (cudaError_t)peers_launch_empty(stream));
}

/* The host waits for a word that the kernel writes to its memory, but not for ever. */
static int call(void *user, const void *in, void *host_out) {
    enum { LOOKS = 1 << 24 };
    peer *p = user;
    uint64_t *word = p->set->mailbox;
    (void)in;
    (void)host_out;
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    const cudaError_t error = (cudaError_t)peers_launch_post(word, 1, p->set->stream);
    if (error != cudaSuccess)
        return peer_note(p, error);
    for (long i = 0; i < LOOKS; i++)
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 0)
            return 0;
    return peer_note(p, cudaStreamSynchronize(p->set->stream));
}

/* ---- The subject ------------------------------------------------------------------------------------------------ */

int peer_add_launch(peer_set *s, char why[BENCH_WHY]) {
    (void)why;
    bench_subject *subject = peer_add(s, peer_group_name(PEER_LAUNCH));
    if (!subject)
        return 0;
    subject->enqueue = enqueue;
    subject->call = call;
    subject->count_wrong = NULL;
    return 0;
}
