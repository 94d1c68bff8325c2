/* cuBLAS's reductions: asum and dot next to the sum, iamax next to argmax. */
#include <cublas_v2.h>
#include <stdio.h>

#include "peer_set.h"

/* What a routine gives, in terms of dpr's operation. The data of a sum and of ARGMAX are not negative. */
typedef enum meaning {
    THE_SAME,
    FROM_ONE, /* an index that is counted from 1 */
    SQUARES   /* the sum of squares */
} meaning;

struct peer_routine {
    const char *name;
    dpr_op op;
    dpr_dtype dtype;
    cublasStatus_t (*run)(cublasHandle_t handle, int64_t n, const void *x, void *result);
    meaning gives;
};

/* ---- Routines --------------------------------------------------------------------------------------------------- */

static cublasStatus_t sasum(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasSasum_64(handle, n, x, 1, result);
}
static cublasStatus_t dasum(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasDasum_64(handle, n, x, 1, result);
}
static cublasStatus_t sdot(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasSdot_64(handle, n, x, 1, x, 1, result);
}
static cublasStatus_t ddot(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasDdot_64(handle, n, x, 1, x, 1, result);
}
static cublasStatus_t isamax(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasIsamax_64(handle, n, x, 1, result);
}
static cublasStatus_t idamax(cublasHandle_t handle, int64_t n, const void *x, void *result) {
    return cublasIdamax_64(handle, n, x, 1, result);
}

static const peer_routine routines[] = {
    {"cublas.asum", DPR_SUM, DPR_F32, sasum, THE_SAME},      {"cublas.asum", DPR_SUM, DPR_F64, dasum, THE_SAME},
    {"cublas.dot", DPR_SUM, DPR_F32, sdot, SQUARES},         {"cublas.dot", DPR_SUM, DPR_F64, ddot, SQUARES},
    {"cublas.iamax", DPR_ARGMAX, DPR_F32, isamax, FROM_ONE}, {"cublas.iamax", DPR_ARGMAX, DPR_F64, idamax, FROM_ONE},
};

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int note(peer *p, cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS)
        snprintf(p->caller.why, sizeof p->caller.why, "cuBLAS: %.200s", cublasGetStatusString(status));
    return (int)status;
}

/* Has cuBLAS work in the stream; in that of blocking calls its results go to host memory. A change of the stream makes
 * it forget its workspace, without which it would allocate one while the stream is captured. */
static cublasStatus_t enter(peer_set *s, cudaStream_t stream) {
    if (s->cublas_stream == stream)
        return CUBLAS_STATUS_SUCCESS;
    cublasStatus_t status = cublasSetStream(s->cublas, stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetWorkspace(s->cublas, s->cublas_scratch, PEER_CUBLAS_SCRATCH);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetPointerMode(s->cublas,
                                      stream == s->stream ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE);
    if (status == CUBLAS_STATUS_SUCCESS)
        s->cublas_stream = stream;
    return status;
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    cublasStatus_t status = enter(p->set, stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = p->routine->run(p->set->cublas, (int64_t)p->caller.count, in, out);
    return note(p, status);
}

/* The result goes to host memory, so the routine waits for it. */
static int call(void *user, const void *in, void *host_out) {
    return enqueue(user, in, host_out, ((const peer *)user)->set->stream);
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

static double squares(const known *k, size_t count) {
    const size_t size = dpr_dtype_size(k->dtype);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double x = dpr_element_load(k->dtype, k->block + i * size).re;
        sum += x * x;
    }
    return sum;
}

/* Changes what is expected of dpr's operation to what the routine gives. The array is the block again and again.
 * Squares of numbers up to 1 are no more in sum than the numbers, so the tolerance of the sum will do. */
static void expect(const bench_walk *w, meaning gives, known_result *expected) {
    const size_t per_block = KNOWN_BLOCK / dpr_dtype_size(w->at.dtype), count = (size_t)w->at.count;
    const size_t blocks = count / per_block;
    if (gives == FROM_ONE)
        expected->exact.i64++;
    else if (gives == SQUARES)
        expected->part[0] = (double)blocks * squares(&w->known, per_block) + squares(&w->known, count % per_block);
}

static void add(peer_set *s) {
    const bench_walk *w = s->walk;
    for (size_t i = 0; i < sizeof routines / sizeof routines[0]; i++) {
        const peer_routine *r = &routines[i];
        if (w->at.ops.n > 1 || r->op != w->at.ops.at[0] || r->dtype != w->at.dtype)
            continue;
        peer *p = peer_add(
            s, (bench_subject){.name = r->name, .enqueue = enqueue, .call = call, .count_wrong = caller_count_wrong});
        p->routine = r;
        expect(w, r->gives, &p->caller.expected.at[0]);
    }
}

static void note_version(peer_set *s) {
    int major = 0, minor = 0, patch = 0;
    if (cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(s->results->cublas, sizeof s->results->cublas, "%d.%d.%d", major, minor, patch);
}

static int start(peer_set *s, char why[BENCH_WHY]) {
    const cublasStatus_t status = cublasCreate(&s->cublas);
    if (status != CUBLAS_STATUS_SUCCESS) {
        s->cublas = NULL;
        snprintf(why, BENCH_WHY, "cuBLAS: %s", cublasGetStatusString(status));
        return -1;
    }
    note_version(s);
    return 0;
}

static void end(peer_set *s) {
    if (s->cublas)
        (void)cublasDestroy(s->cublas);
}

const peer_group_calls peer_cublas = {.open = start, .add = add, .close = end};
