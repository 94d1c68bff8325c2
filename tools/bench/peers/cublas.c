/* cuBLAS's reductions: asum and dot next to the sum, iamax next to argmax. */
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer_set.h"

/* What cuBLAS recommends on devices of compute capability 9.0. With a workspace of its own it does not allocate one
 * while a stream is captured. */
enum { WORKSPACE = 32 << 20 };

struct peer_handle {
    cublasHandle_t handle;
    void *workspace;
    cudaStream_t stream; /* that the handle works in */
};

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

/* A change of the stream makes cuBLAS forget its workspace. */
static cublasStatus_t enter(peer_handle *c, cudaStream_t stream) {
    if (c->stream == stream)
        return CUBLAS_STATUS_SUCCESS;
    cublasStatus_t status = cublasSetStream(c->handle, stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetWorkspace(c->handle, c->workspace, WORKSPACE);
    if (status == CUBLAS_STATUS_SUCCESS)
        c->stream = stream;
    return status;
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    peer_handle *c = p->set->cublas;
    const cublasStatus_t status = enter(c, stream);
    return note(p, status != CUBLAS_STATUS_SUCCESS ? status
                                                   : p->routine->run(c->handle, (int64_t)p->caller.count, in, out));
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

static int add(peer_set *s, char why[BENCH_WHY]) {
    const bench_walk *w = s->walk;
    const cublasStatus_t status = cublasSetPointerMode(
        s->cublas->handle, w->at.mode == BENCH_BLOCKING ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE);
    snprintf(why, BENCH_WHY, "cuBLAS: %s", cublasGetStatusString(status));
    for (size_t i = 0; i < sizeof routines / sizeof routines[0] && status == CUBLAS_STATUS_SUCCESS; i++) {
        const peer_routine *r = &routines[i];
        bench_subject *subject = r->op == w->at.op && r->dtype == w->at.dtype ? peer_add(s, r->name) : NULL;
        if (!subject)
            continue;
        peer *p = subject->user;
        p->routine = r;
        expect(w, r->gives, &p->caller.expected);
        subject->enqueue = enqueue;
        subject->call = call;
    }
    return status == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

static int allocate(peer_set *s, char why[BENCH_WHY]) {
    s->cublas = calloc(1, sizeof *s->cublas);
    if (!s->cublas) {
        snprintf(why, BENCH_WHY, "no host memory for cuBLAS");
        return -1;
    }
    cublasStatus_t status = cublasCreate(&s->cublas->handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        s->cublas->handle = NULL;
    else if (cudaMalloc(&s->cublas->workspace, WORKSPACE) != cudaSuccess)
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(why, BENCH_WHY, "cuBLAS: %s", cublasGetStatusString(status));
    return -1;
}

static void release(peer_set *s) {
    if (!s->cublas)
        return;
    if (s->cublas->handle)
        (void)cublasDestroy(s->cublas->handle);
    (void)cudaFree(s->cublas->workspace);
    free(s->cublas);
    s->cublas = NULL;
}

static void version(char text[32]) {
    int major = 0, minor = 0, patch = 0;
    if (cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(text, 32, "%d.%d.%d", major, minor, patch);
}

const peer_group_calls peer_cublas = {.open = allocate, .add = add, .close = release, .version = version};
