/* cuBLAS's reductions: asum and dot beside the sum, iamax beside argmax. */
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer_set.h"

/* What cuBLAS recommends on devices of compute capability 9.0. With a workspace of its own it does not allocate one
 * while a stream is captured. */
enum { WORKSPACE = 32 << 20 };

struct peer_cublas {
    cublasHandle_t handle;
    void *workspace;
    cudaStream_t stream; /* that the handle works in */
    int on_host;         /* 1: results go to host memory, and calls wait for them */
};

struct peer_routine {
    const char *name;
    dpr_op op;
    dpr_dtype dtype;
    cublasStatus_t (*run)(cublasHandle_t handle, int64_t n, const void *x, void *result);
    /* Changes what is expected of dpr's operation to what the routine gives. */
    void (*expect)(const peer_set *s, known_result *expected);
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

/* The data of a sum are not negative. */
static void expect_sum(const peer_set *s, known_result *expected) {
    (void)s;
    (void)expected;
}

/* Counted from 1; of the greatest absolute value, and the data of ARGMAX are not negative. */
static void expect_index(const peer_set *s, known_result *expected) {
    (void)s;
    expected->exact.i64++;
}

static double squares(const peer_set *s, size_t count) {
    const unsigned char *block = s->known->block;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double x;
        float narrow;
        if (s->at.dtype == DPR_F32) {
            memcpy(&narrow, block + i * sizeof narrow, sizeof narrow);
            x = (double)narrow;
        } else {
            memcpy(&x, block + i * sizeof x, sizeof x);
        }
        sum += x * x;
    }
    return sum;
}

/* The array is the block again and again. Squares of numbers up to 1 are no more in sum than the numbers, so the
 * tolerance of the sum will do. */
static void expect_squares(const peer_set *s, known_result *expected) {
    const size_t per_block = KNOWN_BLOCK / dpr_dtype_size(s->at.dtype), count = (size_t)s->at.count;
    const size_t blocks = count / per_block;
    expected->part[0] = (double)blocks * squares(s, per_block) + squares(s, count % per_block);
}

static const peer_routine routines[] = {
    {"cublas.asum", DPR_SUM, DPR_F32, sasum, expect_sum},
    {"cublas.asum", DPR_SUM, DPR_F64, dasum, expect_sum},
    {"cublas.dot", DPR_SUM, DPR_F32, sdot, expect_squares},
    {"cublas.dot", DPR_SUM, DPR_F64, ddot, expect_squares},
    {"cublas.iamax", DPR_ARGMAX, DPR_F32, isamax, expect_index},
    {"cublas.iamax", DPR_ARGMAX, DPR_F64, idamax, expect_index},
};

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static int note(peer *p, cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS)
        snprintf(p->caller.why, sizeof p->caller.why, "cuBLAS: %.200s", cublasGetStatusString(status));
    return (int)status;
}

/* A change of the stream makes cuBLAS forget its workspace. */
static cublasStatus_t prepare(peer_cublas *c, cudaStream_t stream, int on_host) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (c->stream != stream) {
        status = cublasSetStream(c->handle, stream);
        if (status == CUBLAS_STATUS_SUCCESS)
            status = cublasSetWorkspace(c->handle, c->workspace, WORKSPACE);
        if (status == CUBLAS_STATUS_SUCCESS)
            c->stream = stream;
    }
    if (status == CUBLAS_STATUS_SUCCESS && c->on_host != on_host) {
        status = cublasSetPointerMode(c->handle, on_host ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE);
        if (status == CUBLAS_STATUS_SUCCESS)
            c->on_host = on_host;
    }
    return status;
}

static int run(peer *p, const void *in, void *out, cudaStream_t stream, int on_host) {
    peer_cublas *c = p->set->cublas;
    const cublasStatus_t status = prepare(c, stream, on_host);
    return note(p, status != CUBLAS_STATUS_SUCCESS ? status
                                                   : p->routine->run(c->handle, (int64_t)p->caller.count, in, out));
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    return run(user, in, out, stream, 0);
}

static int call(void *user, const void *in, void *host_out) {
    peer *p = user;
    return run(p, in, host_out, p->set->stream, 1);
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

int peer_add_cublas(peer_set *s, char why[BENCH_WHY]) {
    (void)why;
    for (size_t i = 0; i < sizeof routines / sizeof routines[0]; i++) {
        if (routines[i].op != s->at.op || routines[i].dtype != s->at.dtype)
            continue;
        bench_subject *subject = peer_add(s, routines[i].name);
        if (!subject)
            return 0;
        peer *p = subject->user;
        p->routine = &routines[i];
        routines[i].expect(s, &p->caller.expected);
        subject->enqueue = enqueue;
        subject->call = call;
    }
    return 0;
}

int peer_cublas_open(peer_set *s, char why[BENCH_WHY]) {
    s->cublas = calloc(1, sizeof *s->cublas);
    if (!s->cublas) {
        snprintf(why, BENCH_WHY, "no host memory for cuBLAS");
        return -1;
    }
    s->cublas->on_host = 1; /* a handle's default */
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

void peer_cublas_close(peer_set *s) {
    if (!s->cublas)
        return;
    if (s->cublas->handle)
        (void)cublasDestroy(s->cublas->handle);
    (void)cudaFree(s->cublas->workspace);
    free(s->cublas);
    s->cublas = NULL;
}

void peer_cublas_version(const peer_set *s, char text[32]) {
    int major = 0, minor = 0, patch = 0;
    text[0] = 0;
    if (s->cublas && cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS
        && cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS)
        snprintf(text, 32, "%d.%d.%d", major, minor, patch);
}
