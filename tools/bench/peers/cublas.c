/* cuBLAS's reductions: asum and dot next to the sum, iamax next to argmax; along axes a matrix times a vector of ones.
 */
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer_axes.h"
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

/* Has cuBLAS work in the stream, with numbers and results in memory of that kind. A change of the stream makes it
 * forget its workspace, without which it would allocate one while the stream is captured. */
static cublasStatus_t enter(peer_set *s, cudaStream_t stream, cublasPointerMode_t memory) {
    cublasStatus_t status = cublasSetPointerMode(s->cublas, memory);
    if (s->cublas_stream == stream)
        return status;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetStream(s->cublas, stream);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasSetWorkspace(s->cublas, s->cublas_scratch, PEER_CUBLAS_SCRATCH);
    if (status == CUBLAS_STATUS_SUCCESS)
        s->cublas_stream = stream;
    return status;
}

/* Results of blocking calls go to host memory. */
static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    cublasStatus_t status =
        enter(p->set, stream, stream == p->set->stream ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE);
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

/* ---- Along axes ------------------------------------------------------------------------------------------------- */

/* Matrices in cuBLAS's order, in which columns lie one behind the other, and how it multiplies them. */
typedef struct matrices {
    cublasOperation_t operation;
    int64_t rows, columns, pitch; /* elements from column to column */
    int64_t count, step;          /* of matrices, and elements from one to the next */
} matrices;

/* The array, if it has one reduced dimension next to one or two others, and elements of the reduced one, or of the last
 * of the others, lie one behind the other. Otherwise no matrix. */
static matrices matrices_of(const peers_axes *x) {
    enum { MANY, KEPT, REDUCED };
    const int is_transposed = x->strides[REDUCED] == 1;
    const int inner = is_transposed ? REDUCED : KEPT, outer = is_transposed ? KEPT : REDUCED;
    if (x->reduced != 1 || x->kept == 0 || x->strides[inner] != 1)
        return (matrices){.count = 0};
    return (matrices){.operation = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      .rows = x->extents[inner],
                      .columns = x->extents[outer],
                      .pitch = x->strides[outer],
                      .count = x->extents[MANY],
                      .step = x->strides[MANY]};
}

/* Each is multiplied by the same vector, whose step is 0. */
static cublasStatus_t multiply(const peer *p, const void *in, void *out) {
    const cublasHandle_t cublas = p->set->cublas;
    const matrices m = matrices_of(&p->axes);
    const int64_t results = p->axes.extents[1];
    if (p->caller.dtype == DPR_F32) {
        const float *one = p->set->ones, *zero = one + p->axes.length;
        return cublasSgemvStridedBatched_64(cublas, m.operation, m.rows, m.columns, one, in, m.pitch, m.step, one, 1, 0,
                                            zero, out, 1, results, m.count);
    }
    const double *one = p->set->ones, *zero = one + p->axes.length;
    return cublasDgemvStridedBatched_64(cublas, m.operation, m.rows, m.columns, one, in, m.pitch, m.step, one, 1, 0,
                                        zero, out, 1, results, m.count);
}

static int enqueue_product(void *user, const void *in, void *out, dpr_stream stream) {
    peer *p = user;
    cublasStatus_t status = enter(p->set, stream, CUBLAS_POINTER_MODE_DEVICE);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = multiply(p, in, out);
    return note(p, status);
}

static int call_product(void *user, const void *in, void *out) {
    peer *p = user;
    return peer_wait(p, enqueue_product(p, in, out, p->set->stream));
}

/* 0, or -1 if there is no memory. */
static int make_ones(peer_set *s, size_t n, dpr_dtype dtype) {
    const size_t bytes = (n + 1) * dpr_dtype_size(dtype);
    void *ones = calloc(n + 1, dpr_dtype_size(dtype));
    for (size_t i = 0; ones && i < n; i++)
        if (dtype == DPR_F32)
            ((float *)ones)[i] = 1;
        else
            ((double *)ones)[i] = 1;
    const int status = ones ? peer_memory(&s->ones, bytes, ones) : -1;
    free(ones);
    return status;
}

static void add_axes(peer_set *s) {
    const bench_case *at = &s->walk->at;
    peers_axes axes;
    if (at->ops.at[0] != DPR_SUM || (at->dtype != DPR_F32 && at->dtype != DPR_F64)
        || peer_axes(&s->walk->shaped.array, &axes) != 0 || matrices_of(&axes).count == 0
        || make_ones(s, (size_t)axes.length, at->dtype) != 0)
        return;
    peer_add(s, (bench_subject){.name = "cublas.gemv", .enqueue = enqueue_product, .call = call_product})->axes = axes;
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

const peer_group_calls peer_cublas = {.open = start, .add = add, .add_axes = add_axes, .close = end};
