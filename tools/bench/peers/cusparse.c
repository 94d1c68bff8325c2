/* Sums of segments as cuSPARSE has them: a sparse matrix, whose rows the segments are, times a vector of ones.
 *
 * The matrix has one column, so that no product waits for its factor; its indices are read all the same. The library is
 * loaded at run time, because it is large and not on every machine. */
#include <cusparse.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer_set.h"

/* X(name): the functions that are used. */
#define SPARSE_FUNCTIONS(X)                                                                                            \
    X(Create)                                                                                                          \
    X(Destroy)                                                                                                         \
    X(GetVersion)                                                                                                      \
    X(GetErrorString)                                                                                                  \
    X(SetStream)                                                                                                       \
    X(CreateCsr)                                                                                                       \
    X(CsrSetPointers)                                                                                                  \
    X(DestroySpMat)                                                                                                    \
    X(CreateDnVec)                                                                                                     \
    X(DnVecSetValues)                                                                                                  \
    X(DestroyDnVec)                                                                                                    \
    X(SpMV_bufferSize)                                                                                                 \
    X(SpMV)

#define SPARSE_MEMBER(name) __typeof__(&cusparse##name) name;

struct peer_sparse {
    void *library;
    SPARSE_FUNCTIONS(SPARSE_MEMBER)
    cusparseHandle_t handle;
    /* Of the case: */
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t ones, results;
    cudaDataType type;
    void *columns, *one, *scratch;
};

#define SPARSE_TEXT(x) #x
#define SPARSE_NAME(version) "libcusparse.so." SPARSE_TEXT(version)

/* ---- The library ------------------------------------------------------------------------------------------------ */

/* Whether all functions are there. */
static int load(struct peer_sparse *s) {
    s->library = dlopen(SPARSE_NAME(CUSPARSE_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return 0;
#define SPARSE_LOAD(name) *(void **)(void *)&s->name = dlsym(s->library, "cusparse" #name);
    SPARSE_FUNCTIONS(SPARSE_LOAD)
#define SPARSE_IS_THERE(name) &&s->name
    return 1 SPARSE_FUNCTIONS(SPARSE_IS_THERE);
}

static void close_sparse(peer_set *s);

/* A machine without the library has no such subjects. */
static int open_sparse(peer_set *s, char why[BENCH_WHY]) {
    int version = 0;
    struct peer_sparse *p = s->sparse = calloc(1, sizeof *p);
    (void)why;
    if (p && load(p) && p->Create(&p->handle) == CUSPARSE_STATUS_SUCCESS
        && p->GetVersion(p->handle, &version) == CUSPARSE_STATUS_SUCCESS) {
        snprintf(s->results->cusparse, sizeof s->results->cusparse, "%d.%d.%d", version / 1000, version / 100 % 10,
                 version % 100);
        return 0;
    }
    cli_note("there is no cuSPARSE to compare with: %s cannot be used", SPARSE_NAME(CUSPARSE_VER_MAJOR));
    close_sparse(s);
    return 0;
}

/* Forgets the case. */
static void forget(struct peer_sparse *p) {
    if (p->matrix)
        (void)p->DestroySpMat(p->matrix);
    if (p->ones)
        (void)p->DestroyDnVec(p->ones);
    if (p->results)
        (void)p->DestroyDnVec(p->results);
    p->matrix = NULL;
    p->ones = p->results = NULL;
}

static void close_sparse(peer_set *s) {
    struct peer_sparse *p = s->sparse;
    if (!p)
        return;
    if (p->handle) {
        forget(p);
        (void)p->Destroy(p->handle);
    }
    (void)cudaFree(p->columns);
    (void)cudaFree(p->one);
    (void)cudaFree(p->scratch);
    if (p->library)
        (void)dlclose(p->library);
    free(p);
    s->sparse = NULL;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

/* Numbers of either type. */
typedef union number {
    float f32;
    double f64;
} number;

static number number_of(cudaDataType type, double x) {
    number n;
    if (type == CUDA_R_32F)
        n.f32 = (float)x;
    else
        n.f64 = x;
    return n;
}

static int enqueue(void *user, const void *in, void *out, dpr_stream stream) {
    peer *c = user;
    struct peer_sparse *p = c->set->sparse;
    unsigned char *values = (unsigned char *)(uintptr_t)in;
    const number one = number_of(p->type, 1), zero = number_of(p->type, 0);
    cusparseStatus_t status = p->SetStream(p->handle, stream);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->CsrSetPointers(p->matrix, values + shaped_offsets_at(c->caller.array, c->caller.dtype), p->columns,
                                   values);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->DnVecSetValues(p->results, out);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->SpMV(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p->matrix, p->ones, &zero, p->results,
                         p->type, CUSPARSE_SPMV_ALG_DEFAULT, p->scratch);
    if (status != CUSPARSE_STATUS_SUCCESS)
        snprintf(c->caller.why, sizeof c->caller.why, "cuSPARSE: %.200s", p->GetErrorString(status));
    return (int)status;
}

static int call(void *user, const void *in, void *out) {
    peer *p = user;
    return peer_wait(p, enqueue(p, in, out, p->set->stream));
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* Index types of the offsets, and of the columns with them. */
static cusparseIndexType_t index_type(dpr_dtype offsets) {
    return offsets == DPR_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
}

/* What a product needs, with places that each call sets anew. Whether all is there. */
static int describe(struct peer_sparse *p, const shape_array *a) {
    const int64_t rows = (int64_t)a->results, elements = (int64_t)a->elements;
    const cusparseIndexType_t indices = index_type(a->offset_dtype);
    const number one = number_of(p->type, 1), zero = number_of(p->type, 0);
    size_t bytes = 0;
    if (peer_memory(&p->columns, (size_t)elements * dpr_dtype_size(a->offset_dtype), NULL) != 0
        || peer_memory(&p->one, sizeof one, &one) != 0)
        return 0;
    return p->CreateCsr(&p->matrix, rows, 1, elements, p->columns, p->columns, p->columns, indices, indices,
                        CUSPARSE_INDEX_BASE_ZERO, p->type)
               == CUSPARSE_STATUS_SUCCESS
           && p->CreateDnVec(&p->ones, 1, p->one, p->type) == CUSPARSE_STATUS_SUCCESS
           && p->CreateDnVec(&p->results, rows, p->columns, p->type) == CUSPARSE_STATUS_SUCCESS
           && p->SpMV_bufferSize(p->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, p->matrix, p->ones, &zero,
                                 p->results, p->type, CUSPARSE_SPMV_ALG_DEFAULT, &bytes)
                  == CUSPARSE_STATUS_SUCCESS
           && peer_memory(&p->scratch, bytes, NULL) == 0;
}

static void add_segments(peer_set *s) {
    const bench_case *at = &s->walk->at;
    const shape_array *a = &s->walk->shaped.array;
    struct peer_sparse *p = s->sparse;
    const int has_types =
        (at->dtype == DPR_F32 || at->dtype == DPR_F64) && (a->offset_dtype == DPR_I32 || a->offset_dtype == DPR_I64);
    if (!p || at->ops.at[0] != DPR_SUM || !has_types)
        return;
    forget(p);
    p->type = at->dtype == DPR_F32 ? CUDA_R_32F : CUDA_R_64F;
    if (describe(p, a))
        peer_add(s, (bench_subject){.name = "cusparse", .enqueue = enqueue, .call = call});
}

const peer_group_calls peer_cusparse = {.open = open_sparse, .add_segments = add_segments, .close = close_sparse};
