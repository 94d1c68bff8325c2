#include "shares.h"

#include "segments.h"

enum {
    COUNT_BITS = 16, /* of a share, for the number of segments */
    BLOCK = 1024,    /* segments, at most, of a block */
    BLOCKS = 16,     /* at least this many blocks a thread, if there are enough segments */
    PIECE = 256,     /* segments, at most, of a piece */
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void dpr_shares_begin(dpr_shares *s, const dpr_segment_list *list, int threads, uint64_t elements) {
    const uint64_t block = least(list->count / ((uint64_t)threads * BLOCKS), BLOCK);
    s->list = list;
    s->threads = threads;
    s->block = block > 0 ? block : 1;
    s->elements = elements;
    atomic_init(&s->next, 0);
    for (int i = 0; i < threads; i++)
        atomic_init(&s->of[i].left, 0);
}

/* The number of segments from `first` on, of `count`, that are a piece. */
static uint64_t piece_of(const dpr_shares *s, uint64_t first, uint64_t count) {
    uint64_t n = least(count, PIECE);
    while (n > 1 && dpr_segment_elements(s->list, first, first + n) > s->elements)
        n /= 2;
    return n;
}

/* Takes a piece of a thread's block; returns 0 if nothing is left of it. A share never has the same value twice,
 * because first segments only rise. So the exchange fails if the share has changed since it was read. */
static int take_piece(dpr_shares *s, int thread, uint64_t *first, uint64_t *end) {
    uint64_t left = atomic_load(&s->of[thread].left), count;
    while ((count = left & ((1 << COUNT_BITS) - 1)) > 0) {
        *first = left >> COUNT_BITS;
        const uint64_t n = piece_of(s, *first, count);
        *end = *first + n;
        if (atomic_compare_exchange_weak(&s->of[thread].left, &left, *end << COUNT_BITS | (count - n)))
            return 1;
    }
    return 0;
}

/* Takes a block for a thread that has nothing left of the one before; returns 0 if there is none. */
static int take_block(dpr_shares *s, int thread) {
    const uint64_t first = atomic_fetch_add(&s->next, s->block), count = s->list->count;
    if (first >= count)
        return 0;
    atomic_store(&s->of[thread].left, first << COUNT_BITS | least(count - first, s->block));
    return 1;
}

int dpr_shares_next(dpr_shares *s, int thread, uint64_t *first, uint64_t *end) {
    do {
        if (take_piece(s, thread, first, end))
            return 1;
    } while (take_block(s, thread));
    for (int i = 1; i < s->threads; i++)
        if (take_piece(s, (thread + i) % s->threads, first, end))
            return 1;
    return 0;
}
