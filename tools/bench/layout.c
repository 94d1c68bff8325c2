#include "layout.h"

#include <stdio.h>

/* How far a batch goes: as many calls as read `bytes`, within limits. One of the GPU's is long against the resolution
 * of events (0.5 us) and a call's way through the queue (10 us), one of the CPU's against that of the clock (30 ns). */
typedef struct extent {
    size_t bytes;
    size_t least, most;
} extent;

static const size_t mib = (size_t)1 << 20;

static extent extent_of(const bench_room *room, bench_mode mode) {
    if (!room->on_gpu)
        return (extent){4 * mib, 1, BENCH_CALLS};
    switch (mode) {
    case BENCH_GRAPH:
        return (extent){2048 * mib, 5, 100};
    case BENCH_STREAM:
        return (extent){8192 * mib, 8, 400};
    default:
        return (extent){1024 * mib, 4, 50};
    }
}

size_t bench_pool_enough(int on_gpu, size_t cache_bytes) {
    const size_t least = 64 * mib, most = 1024 * mib, wanted = 4 * cache_bytes;
    if (on_gpu)
        return 8192 * mib;
    return wanted < least ? least : wanted > most ? most : wanted;
}

/* On the CPU, where data takes long to make, arrays have no more buffers than they need. */
static size_t buffers_of(const bench_room *room, size_t stride) {
    const size_t enough = bench_pool_enough(room->on_gpu, room->cache_bytes);
    const size_t bytes = room->on_gpu || room->pool_bytes < enough ? room->pool_bytes : enough;
    return bytes > stride ? bytes / stride : 1;
}

static size_t wanted_calls(const bench_room *room, const bench_point *point) {
    const extent e = extent_of(room, point->mode);
    const size_t bytes = bench_touched(point), calls = bytes ? e.bytes / bytes : e.most;
    return calls < e.least ? e.least : calls > e.most ? e.most : calls;
}

static int refusal(const bench_room *room, const bench_point *point, char why[BENCH_WHY]) {
    const size_t whole = room->block_bytes ? room->pool_bytes / room->block_bytes * room->block_bytes : 0;
    const size_t bytes = bench_touched(point);
    if (!room->on_gpu && point->mode != BENCH_BLOCKING)
        snprintf(why, BENCH_WHY, "the CPU has blocking calls only");
    else if (room->block_bytes == 0)
        snprintf(why, BENCH_WHY, "the buffers are not filled");
    else if (bytes > whole)
        snprintf(why, BENCH_WHY, "the array has %zu bytes, and there is memory for %zu", bytes, whole);
    else if (point->cache == BENCH_HOT && bytes > room->cache_bytes / 3 * 2)
        snprintf(why, BENCH_WHY, "the array has %zu bytes, which do not stay in a cache of %zu", bytes,
                 room->cache_bytes);
    else if (point->mark_bytes > point->bytes)
        snprintf(why, BENCH_WHY, "the mark is not in the array");
    else
        return 0;
    return -1;
}

/* The buffers of a batch are spread, but not over all of a large pool: then most of a short call would be the address
 * translation of memory that no program uses side by side. */
static size_t hop_of(const bench_layout *l, size_t calls) {
    static const size_t spread = (size_t)8 << 30;
    const size_t near = spread / l->stride < l->buffers ? spread / l->stride : l->buffers;
    return near > calls ? near / calls : 1;
}

int bench_lay(const bench_room *room, const bench_point *point, bench_layout *out, char why[BENCH_WHY]) {
    if (refusal(room, point, why) != 0)
        return -1;
    const size_t bytes = bench_touched(point), blocks = bytes ? (bytes - 1) / room->block_bytes + 1 : 1;
    bench_layout l = {.stride = blocks * room->block_bytes};
    l.buffers = buffers_of(room, l.stride);
    l.flush = bytes < 4 * room->cache_bytes / l.buffers;
    size_t calls = wanted_calls(room, point);
    if (point->cache == BENCH_COLD) {
        if (calls > l.buffers && l.flush)
            calls = l.buffers;
        l.hop = room->on_gpu ? hop_of(&l, calls) : 1;
    }
    l.calls = (int)calls;
    l.read = l.hop == 0 ? 1 : room->on_gpu && calls < l.buffers ? calls : l.buffers;
    *out = l;
    return 0;
}

size_t bench_aligned(size_t bytes) {
    return (bytes + BENCH_ALIGNMENT - 1) / BENCH_ALIGNMENT * BENCH_ALIGNMENT;
}

size_t bench_array_at(const bench_point *point) {
    return bench_aligned(point->bytes);
}

size_t bench_touched(const bench_point *point) {
    return point->array_bytes ? bench_array_at(point) + point->array_bytes : point->bytes;
}

size_t bench_arrays(const bench_layout *layout, int calls) {
    return (size_t)calls < layout->read ? (size_t)calls : layout->read;
}

size_t bench_offset(const bench_layout *layout, size_t i) {
    return i * layout->hop % layout->buffers * layout->stride;
}

int bench_calls(const bench_layout *layout, double call_seconds, double batch_seconds) {
    /* What a batch has at least, so that what starts and ends it stays small. */
    static const double least = 1e-3;
    const double seconds = batch_seconds > least ? batch_seconds : least;
    const double calls = call_seconds > 0 ? seconds / call_seconds : layout->calls;
    return calls >= layout->calls ? layout->calls : calls < 1 ? 1 : (int)calls;
}
