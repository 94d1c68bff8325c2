#include <stdio.h>

#include "cuda/driver.h"
#include "peer_set.h"

/* Larger arrays take so much longer than a launch that it does not matter. */
enum { LARGEST_BYTES = 8 << 20 };

/* ---- Calls, launched as dpr's are ------------------------------------------------------------------------------- */

static int launch(peer *p, int programmatic, uint64_t *word, cudaStream_t stream) {
    void *params[] = {&word};
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    const CUlaunchConfig config = {.gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = stream,
                                   .attrs = &attribute,
                                   .numAttrs = programmatic ? 1 : 0};
    return peer_note(p, (cudaError_t)dpr_driver()->launch_kernel_ex(&config, p->set->kernel, params, NULL));
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    (void)in;
    (void)out;
    return launch(p, p->set->programmatic, NULL, stream);
}

/* In the legacy default stream, as a blocking call of dpr. The host waits for a word that the kernel writes to its
 * memory, but not for ever. */
static int call(void *user, const void *in, void *host_out) {
    enum { LOOKS = 1 << 24 };
    peer *p = user;
    uint64_t *word = p->set->mailbox;
    (void)in;
    (void)host_out;
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    const int code = launch(p, 0, word, NULL);
    if (code != 0)
        return code;
    for (long i = 0; i < LOOKS; i++)
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 0)
            return 0;
    const cudaError_t waited = cudaDeviceSynchronize();
    return peer_note(p, waited != cudaSuccess ? waited : cudaErrorTimeout);
}

/* ---- The subject ------------------------------------------------------------------------------------------------ */

static void add(peer_set *s) {
    const bench_case *at = &s->walk->at;
    if (at->count <= LARGEST_BYTES / dpr_dtype_size(at->dtype))
        peer_add(s, (bench_subject){.name = peer_group_name(PEER_LAUNCH), .enqueue = enqueue, .call = call})
            ->caller.reads_nothing = 1;
}

static int find_kernel(peer_set *s, char why[BENCH_WHY]) {
    struct cudaFuncAttributes attributes = {0};
    cudaError_t error = cudaFuncGetAttributes(&attributes, peers_post_kernel());
    if (error == cudaSuccess)
        error = cudaGetFuncBySymbol(&s->kernel, peers_post_kernel());
    s->programmatic = attributes.ptxVersion >= 90; /* compiled for less it does not wait */
    return peer_check(error, "an empty kernel", why);
}

const peer_group_calls peer_launch = {.open = find_kernel, .add = add};
