/* dpr_reduce_by_key(), its form for streams, and runs of plans of keys: they check the call, and reduce the runs in one
 * pass; or they find the runs, and reduce them as segments. */
#include "by_key.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/runs.h"
#include "error.h"
#include "key_reduce.h"
#include "key_runs.h"
#include "plan/registry.h"
#include "start.h"

static const dpr_place in_host_memory = {DPR_MEMORY_HOST, -1, NULL};

static size_t key_bytes(const dpr_keyed *k) {
    return dpr_dtype_size(k->known.dtype);
}

/* Whether results go to the caller by way of the device. */
static int has_pageable_out(const dpr_keyed *k) {
    return k->parts.array[DPR_PARTS_OUT].place.memory == DPR_MEMORY_HOST;
}

static dpr_status check_room(const dpr_keyed *k, uint64_t found) {
    if (found <= k->known.room)
        return DPR_OK;
    return dpr_fail(DPR_ERR_BUFFER_TOO_SMALL, "*runs is %llu, and keys has %llu runs",
                    (unsigned long long)k->known.room, (unsigned long long)found);
}

/* Makes the runs, which together are all elements, the segments of the call; `out` has room for them. From now on the
 * call's further arrays are those of segments: where the runs begin, at `place`. */
static void use_runs(dpr_keyed *k, const void *begins, dpr_dtype type, uint64_t runs, dpr_place place) {
    const void *const ends = (const char *)begins + dpr_dtype_size(type);
    const dpr_segment_list list = {.count = runs, .begins = begins, .ends = ends, .dtype = type};
    dpr_parts_array *const more = &k->parts.array[DPR_PARTS_MORE];
    more[0] = (dpr_parts_array){.name = "keys", .at = begins, .place = place};
    more[1] = (dpr_parts_array){.name = "keys", .at = NULL, .place = in_host_memory};
    k->parts.shape = (dpr_shape){.kind = DPR_SHAPE_SEGMENTS, .results = runs, .segments = list};
}

/* Fails if no strategy of the GPU can reduce the runs, before any work is enqueued. */
static dpr_status check_strategy(dpr_ctx *ctx, dpr_keyed *k, int in_stream) {
    k->parts.shape = dpr_shape_of_keys(&k->known, k->parts.request.count);
    return dpr_parts_check(ctx, &k->parts, in_stream);
}

/* ---- On the CPU ---- */

/* The host reaches all arrays (dpr_parts_reach()). */
static dpr_status run_on_cpu(dpr_ctx *ctx, dpr_keyed *k, uint64_t *found) {
    const size_t count = k->parts.request.count;
    dpr_runs runs = {.keys = k->keys, .key_bytes = key_bytes(k), .count = count, .threads = dpr_ctx_threads(ctx)};
    const int is_found = dpr_runs_find(&runs);
    *found = runs.number;
    if (!is_found)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for the beginnings of %llu runs",
                        (unsigned long long)*found);
    dpr_status status = check_room(k, *found);
    if (status == DPR_OK) {
        use_runs(k, runs.begins, dpr_key_runs_type(count), *found, in_host_memory);
        status = dpr_parts_run(ctx, &k->parts, count);
    }
    if (status == DPR_OK && k->unique)
        dpr_runs_keys(&runs, *found, k->unique);
    free(runs.begins);
    return status;
}

/* ---- On the GPU ---- */

static dpr_status pass_once(dpr_ctx *ctx, const dpr_strategy *kernels, dpr_run *run, int sms,
                            const dpr_host_result *count, dpr_misfit *misfit) {
    run->sms = sms;
    return dpr_start_on_gpu(dpr_ctx_gpu(ctx), kernels, run, count, misfit);
}

/* Enqueues a run that looks at keys; with `count`, waits for the number of runs. */
static dpr_status pass(dpr_ctx *ctx, const dpr_strategy *kernels, dpr_run *run, const dpr_host_result *count) {
    dpr_misfit misfit = {0, 0};
    const int sms = (int)dpr_ctx_machine(ctx)->caps.gpu.sm_count;
    const dpr_status status = pass_once(ctx, kernels, run, sms, count, &misfit);
    /* A stream may have fewer SMs, which its scratch memory must know. The kernel runs on any number. */
    return misfit.sms ? pass_once(ctx, kernels, run, misfit.sms, count, &misfit) : status;
}

/* ---- On the GPU, in one pass ---- */

static int is_in_device_memory(const dpr_parts_array *a) {
    return !a->at || a->place.memory == DPR_MEMORY_DEVICE;
}

/* Whether one pass can do the call. */
static int fits_one_pass(const dpr_ctx *ctx, const dpr_keyed *k) {
    const dpr_request *r = &k->parts.request;
    const dpr_parts_array *a = k->parts.array;
    dpr_key key = r->key;
    key.f.in_memory = DPR_MEMORY_DEVICE;
    return is_in_device_memory(&a[DPR_PARTS_IN]) && is_in_device_memory(&a[DPR_PARTS_OUT])
           && is_in_device_memory(&a[DPR_PARTS_MORE]) && is_in_device_memory(&a[DPR_PARTS_MORE + 1])
           && (uintptr_t)k->parts.in % dpr_dtypes[key.f.dtype].size == 0
           && !dpr_refuse_one_pass(&k->known, &key, &dpr_ctx_machine(ctx)->caps, r->count);
}

/* Enqueues the call in a stream. With `count` it waits in the request's stream or in none. `runs` receives the number
 * of runs otherwise. */
static dpr_status reduce_in_one_pass(dpr_ctx *ctx, const dpr_keyed *k, uint64_t *runs, dpr_stream stream,
                                     const dpr_host_result *count) {
    dpr_keyed_run r = {.keys = k->keys, .unique = k->unique, .results = k->parts.out};
    r.key_bytes = (uint32_t)key_bytes(k);
    dpr_request_run(&k->parts.request, &r.run);
    r.run.key.f.in_memory = DPR_MEMORY_DEVICE;
    r.run.in = k->parts.in;
    r.run.out = runs;
    r.run.stream = stream;
    return pass(ctx, dpr_this_build.key_reduce, &r.run, count);
}

/* ---- On the GPU, in several passes ---- */

/* Enqueues a pass over the keys at r.run.in. It counts the runs, for *r.run.out; or, if r.begins is not NULL, writes
 * where they begin, and their keys. With `count` the call waits for the number of runs instead. */
static dpr_status look_at_keys(dpr_ctx *ctx, const dpr_keyed *k, dpr_keys_run r, const dpr_host_result *count) {
    r.room = k->known.room;
    r.run.count = k->parts.request.count;
    r.run.device_count = k->known.device_count;
    r.run.key.f.dtype = DPR_ROW(k->known.dtype);
    return pass(ctx, dpr_this_build.key_runs, &r.run, count);
}

static dpr_place on_device(const dpr_ctx *ctx) {
    return (dpr_place){DPR_MEMORY_DEVICE, dpr_ctx_device(ctx), NULL};
}

/* ---- On the GPU, waiting ---- */

/* What a call has of the device. */
typedef struct held {
    dpr_stream stream; /* what follows the counting is done in it */
    dpr_loan keys;     /* a copy of keys in pageable memory; otherwise NULL */
    dpr_loan counts;   /* as in dpr_keys_run */
    dpr_loan runs;     /* where the runs begin, and then their keys, if these are wanted */
} held;

static void give_back(dpr_ctx *ctx, const held *h) {
    dpr_device *const device = dpr_ctx_gpu(ctx);
    const dpr_loan loans[] = {h->keys, h->counts, h->runs};
    for (int i = 0; i < 3; i++)
        if (loans[i].memory)
            dpr_device_take_back(device, loans[i], h->stream);
}

/* Copies keys in pageable memory to the device, after the work that the call comes after. */
static dpr_status copy_keys(dpr_ctx *ctx, const dpr_keyed *k, held *h) {
    dpr_device *const device = dpr_ctx_gpu(ctx);
    const size_t bytes = k->parts.request.count * key_bytes(k);
    dpr_status status = dpr_parts_wait(device, &k->parts);
    if (status == DPR_OK)
        status = dpr_device_lend(device, bytes, h->stream, &h->keys);
    return status == DPR_OK ? dpr_device_put_in_stream(device, h->stream, h->keys.memory, k->keys, bytes) : status;
}

/* Counts the runs after the work that the call comes after. So the rest of the call may be done in any stream: in the
 * device's own if the caller has named none. */
static dpr_status count_on_gpu(dpr_ctx *ctx, const dpr_keyed *k, held *h, uint64_t *found) {
    dpr_device *const device = dpr_ctx_gpu(ctx);
    dpr_status status = dpr_device_own_stream(device, &h->stream);
    if (status == DPR_OK)
        status = dpr_device_lend(device, DPR_RUNS_WORDS * sizeof(uint64_t), h->stream, &h->counts);
    if (status == DPR_OK) /* the counting is done in another stream */
        status = dpr_device_wait_for_stream(device, h->stream);
    if (status == DPR_OK && k->parts.array[DPR_PARTS_MORE].place.memory == DPR_MEMORY_HOST)
        status = copy_keys(ctx, k, h);
    if (status != DPR_OK)
        return status;
    dpr_keys_run r = {.counts = h->counts.memory};
    r.run.in = h->keys.memory ? h->keys.memory : k->keys;
    r.run.stream = k->parts.request.stream;
    status = look_at_keys(ctx, k, r, &(dpr_host_result){found, sizeof *found});
    if (status == DPR_OK && r.run.stream)
        h->stream = r.run.stream;
    return status;
}

/* Writes where the runs begin, and their keys if they are wanted, behind them. */
static dpr_status write_on_gpu(dpr_ctx *ctx, const dpr_keyed *k, held *h, uint64_t found) {
    const size_t bytes = dpr_key_runs_bytes(k->parts.request.count, found);
    const dpr_status status =
        dpr_device_lend(dpr_ctx_gpu(ctx), bytes + (k->unique ? (size_t)found * key_bytes(k) : 0), h->stream, &h->runs);
    if (status != DPR_OK)
        return status;
    dpr_keys_run r = {.counts = h->counts.memory, .begins = h->runs.memory};
    r.unique = k->unique ? (char *)h->runs.memory + bytes : NULL;
    r.run.in = h->keys.memory ? h->keys.memory : k->keys;
    r.run.stream = h->stream;
    return look_at_keys(ctx, k, r, NULL);
}

/* Reduces the runs that have been written, copies their keys from h->runs to `to`, unless that is NULL, and waits. */
static dpr_status reduce_written(dpr_ctx *ctx, dpr_keyed *k, const held *h, uint64_t found, void *to) {
    const int is_pageable = has_pageable_out(k);
    const void *const unique = (const char *)h->runs.memory + dpr_key_runs_bytes(k->parts.request.count, found);
    use_runs(k, h->runs.memory, dpr_key_runs_type(k->parts.request.count), found, on_device(ctx));
    k->parts.request.stream = h->stream;
    const dpr_status status = is_pageable ? dpr_parts_run(ctx, &k->parts, k->parts.request.count)
                                          : dpr_parts_enqueue(ctx, &k->parts, h->stream);
    if (status != DPR_OK) /* the keys are still being read */
        dpr_device_drain(dpr_ctx_gpu(ctx), h->stream);
    if (status != DPR_OK || (is_pageable && !to))
        return status;
    return dpr_device_put_in_stream(dpr_ctx_gpu(ctx), h->stream, to, unique, (size_t)found * key_bytes(k));
}

/* The same for unique keys in host memory: they are fetched before the results change, and afterwards go to the caller
 * by a copy that cannot fail. */
static dpr_status reduce_for_host(dpr_ctx *ctx, dpr_keyed *k, const held *h, uint64_t found) {
    const void *const unique = (const char *)h->runs.memory + dpr_key_runs_bytes(k->parts.request.count, found);
    const size_t bytes = (size_t)found * key_bytes(k);
    dpr_device *const device = dpr_ctx_gpu(ctx);
    void *const fetched = malloc(bytes);
    if (!fetched) {
        dpr_device_drain(device, h->stream); /* the keys are still being read */
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu bytes of keys", bytes);
    }
    dpr_status status = dpr_device_put_in_stream(device, h->stream, fetched, unique, bytes);
    if (status == DPR_OK)
        status = reduce_written(ctx, k, h, found, NULL);
    if (status == DPR_OK)
        memcpy(k->unique, fetched, bytes);
    free(fetched);
    return status;
}

static dpr_status run_on_gpu(dpr_ctx *ctx, dpr_keyed *k, uint64_t *found) {
    const dpr_memory place = k->parts.array[DPR_PARTS_MORE + 1].place.memory; /* of the unique keys */
    const int for_host = k->unique && (place == DPR_MEMORY_HOST || place == DPR_MEMORY_PINNED);
    held h = {.stream = NULL};
    if (fits_one_pass(ctx, k))
        return reduce_in_one_pass(ctx, k, NULL, k->parts.request.stream, &(dpr_host_result){found, sizeof *found});
    dpr_status status = check_strategy(ctx, k, !has_pageable_out(k));
    if (status == DPR_OK)
        status = count_on_gpu(ctx, k, &h, found);
    if (status == DPR_OK)
        status = check_room(k, *found);
    if (status == DPR_OK)
        status = write_on_gpu(ctx, k, &h, *found);
    if (status == DPR_OK)
        status = for_host ? reduce_for_host(ctx, k, &h, *found) : reduce_written(ctx, k, &h, *found, k->unique);
    give_back(ctx, &h);
    return status;
}

/* ---- On the GPU, in a stream ---- */

/* Enqueues all passes. `memory` has room for the counts, and behind them for where the runs begin. */
static dpr_status enqueue_passes(dpr_ctx *ctx, dpr_keyed *k, uint64_t *memory, uint64_t *runs, dpr_stream stream) {
    dpr_keys_run r = {.counts = memory};
    r.run.in = k->keys;
    r.run.out = runs;
    r.run.stream = stream;
    dpr_status status = look_at_keys(ctx, k, r, NULL);
    if (status != DPR_OK || k->known.room == 0)
        return status;
    r.begins = memory + DPR_RUNS_WORDS;
    r.unique = k->unique;
    status = look_at_keys(ctx, k, r, NULL);
    if (status != DPR_OK)
        return status;
    use_runs(k, r.begins, dpr_key_runs_type(k->parts.request.count), k->known.room, on_device(ctx));
    k->parts.shape.segments.device_count = memory + DPR_RUNS_WRITTEN;
    return dpr_parts_enqueue(ctx, &k->parts, stream);
}

static dpr_status enqueue(dpr_ctx *ctx, dpr_keyed *k, uint64_t *runs, dpr_stream stream) {
    const size_t bytes = DPR_RUNS_WORDS * sizeof(uint64_t) + dpr_key_runs_bytes(k->parts.request.count, k->known.room);
    dpr_loan loan;
    if (fits_one_pass(ctx, k))
        return reduce_in_one_pass(ctx, k, runs, stream, NULL);
    dpr_status status = check_strategy(ctx, k, 1);
    if (status == DPR_OK)
        status = dpr_device_lend(dpr_ctx_gpu(ctx), bytes, stream, &loan);
    if (status != DPR_OK)
        return status;
    status = enqueue_passes(ctx, k, loan.memory, runs, stream);
    dpr_device_take_back(dpr_ctx_gpu(ctx), loan, stream);
    return status;
}

/* ---- The call ---- */

/* Checks what a call with keys needs beyond dpr_parts_make(). `runs` is NULL unless the number of runs goes to memory
 * that a stream reaches. */
static dpr_status prepare(dpr_ctx *ctx, dpr_keyed *k, uint64_t *runs) {
    const size_t count = k->parts.request.count, room = (size_t)dpr_most_runs(&k->known, count);
    const int has_keys = count > 0;
    dpr_status status = dpr_shape_check_keys("key_dtype", k->known.dtype, count);
    if (status == DPR_OK && has_keys)
        status = dpr_shape_check_pointer("keys", k->keys, k->known.dtype);
    if (status == DPR_OK && has_keys && k->unique)
        status = dpr_shape_check_pointer("unique_keys", k->unique, k->known.dtype);
    if (status == DPR_OK && k->known.room > 0)
        status = dpr_request_check(&k->parts.request, k->parts.in, &k->parts.out);
    if (status != DPR_OK)
        return status;
    const dpr_parts_array more[] = {
        {.name = "keys", .at = k->keys, .bytes = count * key_bytes(k)},
        {.name = "unique_keys", .at = k->unique, .bytes = room * key_bytes(k), .is_written = 1},
        {.name = "runs", .at = runs, .bytes = sizeof *runs, .is_written = 1},
        {.name = "device_count", .at = k->known.device_count, .bytes = sizeof *k->known.device_count}};
    k->parts.shape.results = room;
    return dpr_parts_place(ctx, &k->parts, more);
}

dpr_status dpr_reduce_by_key(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in, void *unique_keys,
                             void *out, uint64_t *runs, size_t count, dpr_dtype dtype, dpr_op op,
                             const dpr_options *options) {
    dpr_keyed k = {.keys = keys, .unique = unique_keys, .known.dtype = key_dtype};
    uint64_t found = 0;
    dpr_status status = dpr_shape_check_pointer("runs", runs, DPR_U64);
    if (status != DPR_OK)
        return status;
    k.known.room = *runs;
    status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &k.parts);
    if (status == DPR_OK)
        status = count > 0 ? prepare(ctx, &k, NULL) : dpr_shape_check_keys("key_dtype", key_dtype, count);
    const int on_device = status == DPR_OK && dpr_parts_on_device(&k.parts);
    if (status == DPR_OK && count > 0 && !on_device)
        status = dpr_parts_reach(ctx, &k.parts);
    if (status == DPR_OK && count > 0)
        status = on_device ? run_on_gpu(ctx, &k, &found) : run_on_cpu(ctx, &k, &found);
    if (status == DPR_OK || status == DPR_ERR_BUFFER_TOO_SMALL)
        *runs = found;
    return status;
}

/* The call on the CPU. */
static dpr_status run_at_once(dpr_ctx *ctx, dpr_keyed *k, uint64_t *runs) {
    uint64_t found = 0;
    dpr_status status = dpr_parts_reach(ctx, &k->parts);
    if (status == DPR_OK && k->known.device_count && *k->known.device_count < k->parts.request.count)
        k->parts.request.count = (size_t)*k->known.device_count;
    if (status == DPR_OK && k->parts.request.count > 0)
        status = run_on_cpu(ctx, k, &found);
    if (status != DPR_OK && status != DPR_ERR_BUFFER_TOO_SMALL)
        return status;
    *runs = found;
    return DPR_OK;
}

dpr_status dpr_keyed_enqueue(dpr_ctx *ctx, dpr_keyed *call, int on_cpu, uint64_t *runs, dpr_stream stream) {
    dpr_status status = dpr_shape_check_pointer("runs", runs, DPR_U64);
    if (status == DPR_OK && call->known.device_count)
        status = dpr_shape_check_pointer("device_count", call->known.device_count, DPR_U64);
    call->known.room = dpr_most_runs(&call->known, call->parts.request.count);
    if (status == DPR_OK)
        status = prepare(ctx, call, runs);
    if (status == DPR_OK && on_cpu)
        return run_at_once(ctx, call, runs);
    if (status == DPR_OK)
        status = dpr_parts_reach_stream(&call->parts);
    return status == DPR_OK ? enqueue(ctx, call, runs, stream) : status;
}

dpr_status dpr_reduce_by_key_async(dpr_ctx *ctx, const void *keys, dpr_dtype key_dtype, const void *in,
                                   void *unique_keys, void *out, uint64_t *runs, uint64_t room, size_t count,
                                   const uint64_t *device_count, dpr_dtype dtype, dpr_op op, const dpr_options *options,
                                   dpr_stream stream) {
    dpr_keyed k = {.keys = keys, .unique = unique_keys, .known = {key_dtype, room, device_count}};
    dpr_status status = dpr_parts_make(ctx, in, out, count, dtype, op, options, &k.parts);
    if (status == DPR_OK)
        status = dpr_parts_no_stream(ctx, &k.parts, stream);
    return status == DPR_OK ? dpr_keyed_enqueue(ctx, &k, !dpr_ctx_gpu(ctx), runs, stream) : status;
}
