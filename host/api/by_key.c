/* dpr_reduce_by_key(): checks the call, finds the runs, and reduces them as segments. */
#include <stdlib.h>
#include <string.h>

#include "cpu/runs.h"
#include "error.h"
#include "key_runs.h"
#include "parts.h"
#include "plan/registry.h"
#include "start.h"

/* A checked call. */
typedef struct keyed {
    dpr_parts parts;
    const void *keys;
    void *unique; /* NULL: they are not wanted */
    dpr_dtype dtype;
    size_t key_bytes;
    uint64_t room; /* in runs */
} keyed;

static const dpr_place in_host_memory = {DPR_MEMORY_HOST, -1, NULL};

static dpr_status check_keys(const char *name, const void *keys, dpr_dtype dtype) {
    if ((unsigned)dtype - DPR_FIRST_DTYPE >= DPR_DTYPE_COUNT || !(dpr_dtypes[DPR_ROW(dtype)].kind & DPR_DOMAIN_BITS))
        return dpr_fail(DPR_ERR_INVALID_DTYPE, "key_dtype is %d; it should be DPR_BOOL or a type of integers",
                        (int)dtype);
    return dpr_shape_check_pointer(name, keys, dtype);
}

static dpr_status check_room(const keyed *k, uint64_t found) {
    if (found <= k->room)
        return DPR_OK;
    return dpr_fail(DPR_ERR_BUFFER_TOO_SMALL, "*runs is %llu, and keys has %llu runs", (unsigned long long)k->room,
                    (unsigned long long)found);
}

/* Reduces the runs, which together are all elements; `out` has room for them. From now on the call's further arrays are
 * those of segments: where the runs begin, at `place`. */
static dpr_status reduce_runs(dpr_ctx *ctx, keyed *k, const void *begins, dpr_dtype type, uint64_t runs,
                              dpr_place place) {
    const void *const ends = (const char *)begins + dpr_dtype_size(type);
    const dpr_segment_list list = {.count = runs, .begins = begins, .ends = ends, .dtype = type};
    dpr_parts_array *const more = &k->parts.array[DPR_PARTS_MORE];
    more[0] = (dpr_parts_array){.name = "keys", .at = begins, .place = place};
    more[1] = (dpr_parts_array){.name = "keys", .at = NULL, .place = in_host_memory};
    k->parts.shape = (dpr_shape){.kind = DPR_SHAPE_SEGMENTS, .results = runs, .segments = list};
    return dpr_parts_run(ctx, &k->parts, k->parts.request.count);
}

/* ---- On the CPU ---- */

static dpr_status run_on_cpu(dpr_ctx *ctx, keyed *k, uint64_t *found) {
    dpr_status status = dpr_parts_reach(ctx, &k->parts);
    if (status != DPR_OK)
        return status;
    int64_t *begins = dpr_runs_find(k->keys, k->key_bytes, k->parts.request.count, found);
    if (!begins)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for the beginnings of %llu runs",
                        (unsigned long long)*found);
    status = check_room(k, *found);
    if (status == DPR_OK)
        status = reduce_runs(ctx, k, begins, DPR_I64, *found, in_host_memory);
    if (status == DPR_OK && k->unique)
        dpr_runs_keys(k->keys, k->key_bytes, begins, *found, k->unique);
    free(begins);
    return status;
}

/* ---- On the GPU ---- */

/* Device memory of a call. */
typedef struct held {
    void *keys;   /* a copy of keys in pageable memory; otherwise NULL */
    void *counts; /* as in dpr_keys_run */
    void *runs;   /* where the runs begin, and then their keys, if these are wanted */
} held;

static void free_held(dpr_device *device, const held *h) {
    if (h->keys)
        dpr_device_free(device, h->keys);
    if (h->counts)
        dpr_device_give_back(device, h->counts);
    if (h->runs)
        dpr_device_give_back(device, h->runs);
}

/* Bytes of where the runs begin, a multiple of 8, because keys of up to 8 bytes may follow. */
static size_t begins_bytes(const keyed *k, uint64_t found) {
    const size_t bytes = (size_t)(found + 1) * dpr_dtype_size(dpr_key_runs_type(k->parts.request.count));
    return (bytes + 7) / 8 * 8;
}

/* Counts the runs, whose number is then in *count, if h->runs is NULL. Otherwise writes where the `found` runs begin,
 * and their keys if they are wanted. Blocking. */
static dpr_status find_runs(dpr_ctx *ctx, const keyed *k, const held *h, const dpr_host_result *count, uint64_t found) {
    dpr_misfit misfit = {0, 0};
    dpr_keys_run r = {.counts = h->counts, .begins = h->runs};
    r.run.in = h->keys ? h->keys : k->keys;
    r.run.count = k->parts.request.count;
    r.run.key.f.dtype = DPR_ROW(k->dtype);
    r.run.stream = k->parts.request.stream;
    if (h->runs && k->unique)
        r.unique = (char *)h->runs + begins_bytes(k, found);
    return dpr_start_on_gpu(dpr_ctx_gpu(ctx), dpr_this_build.key_runs, &r.run, count, &misfit);
}

/* Copies keys in pageable memory to the device, after the work that the call comes after. */
static dpr_status copy_keys(dpr_ctx *ctx, const keyed *k, held *h) {
    dpr_device *const device = dpr_ctx_gpu(ctx);
    const dpr_stream stream = k->parts.request.stream;
    const size_t bytes = k->parts.request.count * k->key_bytes;
    const dpr_status status =
        stream ? dpr_device_wait_for_stream(device, stream) : dpr_device_wait(k->parts.array[DPR_PARTS_IN].place);
    return status == DPR_OK ? dpr_device_upload(device, k->keys, bytes, bytes, &h->keys) : status;
}

static dpr_status count_on_gpu(dpr_ctx *ctx, const keyed *k, held *h, uint64_t *found) {
    dpr_status status = DPR_OK;
    if (k->parts.array[DPR_PARTS_MORE].place.memory == DPR_MEMORY_HOST)
        status = copy_keys(ctx, k, h);
    if (status == DPR_OK)
        status = dpr_device_borrow(dpr_ctx_gpu(ctx), DPR_RUNS_WORDS * sizeof(uint64_t), sizeof(uint64_t), &h->counts);
    return status == DPR_OK ? find_runs(ctx, k, h, &(dpr_host_result){found, sizeof *found}, 0) : status;
}

/* Copies keys of runs from the device. */
static dpr_status put_keys(dpr_ctx *ctx, const keyed *k, dpr_place place, void *to, const void *from, size_t bytes) {
    const dpr_stream stream = k->parts.request.stream;
    return stream ? dpr_device_put_in_stream(dpr_ctx_gpu(ctx), stream, to, from, bytes)
                  : dpr_device_put(place, to, from, bytes);
}

/* The same to memory of the call's own, before the results change. Afterwards the keys go to the caller's host memory
 * by a copy that cannot fail. */
static dpr_status fetch_keys(dpr_ctx *ctx, const keyed *k, const void *from, size_t bytes, void **out) {
    const dpr_place on_device = {DPR_MEMORY_DEVICE, dpr_ctx_device(ctx), NULL};
    *out = malloc(bytes);
    if (!*out)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu bytes of keys", bytes);
    return put_keys(ctx, k, on_device, *out, from, bytes);
}

/* Reduces the runs that have been written, and gives the caller their keys. */
static dpr_status reduce_written(dpr_ctx *ctx, keyed *k, const held *h, uint64_t found) {
    const dpr_place on_device = {DPR_MEMORY_DEVICE, dpr_ctx_device(ctx), NULL};
    const dpr_place place = k->parts.array[DPR_PARTS_MORE + 1].place; /* of the unique keys */
    const int in_host = place.memory == DPR_MEMORY_HOST || place.memory == DPR_MEMORY_PINNED;
    const void *const unique = (const char *)h->runs + begins_bytes(k, found);
    const size_t bytes = (size_t)found * k->key_bytes;
    void *fetched = NULL;
    dpr_status status = k->unique && in_host ? fetch_keys(ctx, k, unique, bytes, &fetched) : DPR_OK;
    if (status == DPR_OK)
        status = reduce_runs(ctx, k, h->runs, dpr_key_runs_type(k->parts.request.count), found, on_device);
    if (status == DPR_OK && fetched)
        memcpy(k->unique, fetched, bytes);
    else if (status == DPR_OK && k->unique)
        status = put_keys(ctx, k, place, k->unique, unique, bytes);
    free(fetched);
    return status;
}

static dpr_status reduce_on_gpu(dpr_ctx *ctx, keyed *k, held *h, uint64_t found) {
    const size_t bytes = begins_bytes(k, found) + (k->unique ? (size_t)found * k->key_bytes : 0);
    dpr_status status = dpr_device_borrow(dpr_ctx_gpu(ctx), bytes, 0, &h->runs);
    if (status == DPR_OK)
        status = find_runs(ctx, k, h, &(dpr_host_result){NULL, 0}, found);
    return status == DPR_OK ? reduce_written(ctx, k, h, found) : status;
}

static dpr_status run_on_gpu(dpr_ctx *ctx, keyed *k, uint64_t *found) {
    held h = {NULL, NULL, NULL};
    dpr_status status = count_on_gpu(ctx, k, &h, found);
    if (status == DPR_OK)
        status = check_room(k, *found);
    if (status == DPR_OK)
        status = reduce_on_gpu(ctx, k, &h, *found);
    free_held(dpr_ctx_gpu(ctx), &h);
    return status;
}

/* ---- The call ---- */

/* Checks what a call with keys needs beyond dpr_parts_make(). */
static dpr_status prepare(dpr_ctx *ctx, keyed *k) {
    static const char *const names[] = {"keys", "unique_keys"};
    dpr_status status = check_keys("keys", k->keys, k->dtype);
    if (status == DPR_OK && k->unique)
        status = check_keys("unique_keys", k->unique, k->dtype);
    if (status == DPR_OK && k->room > 0)
        status = dpr_request_check(&k->parts.request, k->parts.in, &k->parts.out);
    return status == DPR_OK ? dpr_parts_place(ctx, &k->parts, names, (const void *const[]){k->keys, k->unique})
                            : status;
}

dpr_status dpr_reduce_by_key(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in, void *unique_keys,
                             void *out, uint64_t *runs, size_t count, dpr_dtype dtype, dpr_op op,
                             const dpr_options *options) {
    keyed k = {.keys = keys, .unique = unique_keys, .dtype = key_dtype, .key_bytes = dpr_dtype_size(key_dtype)};
    uint64_t found = 0;
    if (!runs)
        return dpr_fail(DPR_ERR_NULL_POINTER, "runs is NULL");
    k.room = *runs;
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &k.parts);
    if (status == DPR_OK && count > 0)
        status = prepare(ctx, &k);
    if (status == DPR_OK && count > 0)
        status = dpr_parts_on_device(&k.parts) ? run_on_gpu(ctx, &k, &found) : run_on_cpu(ctx, &k, &found);
    if (status == DPR_OK || status == DPR_ERR_BUFFER_TOO_SMALL)
        *runs = found;
    return status;
}
