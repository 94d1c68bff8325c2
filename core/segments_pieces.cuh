/* How demonstrations reduce long segments piece by piece. The values of a segment's pieces have neighbouring places. A
 * segment that finds too few places is reduced piece by piece by the block or warp that has met it, in the same order:
 * so its result is the same, whichever segments found places. */
#ifndef DPR_CORE_SEGMENTS_PIECES_CUH
#define DPR_CORE_SEGMENTS_PIECES_CUH

#include <cuda/atomic>

#include "segments.cuh"
#include "segments_pieces.h"

namespace dpr {

/* Piece number `piece` of a range. */
__device__ inline segment_range range_of_piece(segment_range whole, uint64_t piece) {
    const uint64_t before = piece * DPR_PIECE, left = whole.count - before;
    return {whole.first + before, left < DPR_PIECE ? left : DPR_PIECE};
}

constexpr unsigned no_place = ~0u;

/* Takes `n` neighbouring ones of `room` places, of which *taken are taken. Returns the number of the first of them, or
 * no_place if fewer are left. */
__device__ inline unsigned take_places(unsigned *taken, uint64_t n, unsigned room) {
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> word(*taken);
    unsigned before = word.load(cuda::memory_order_relaxed);
    do {
        if (n > room - before)
            return no_place;
    } while (!word.compare_exchange_weak(before, before + static_cast<unsigned>(n), cuda::memory_order_relaxed));
    return before;
}

/* The value that lane 0 of the warp has. All lanes call it. */
template <class X> __device__ X of_first_lane(X x) {
    words_of<X> words(x);
#pragma unroll
    for (int i = 0; i < words.size; ++i)
        words.w[i] = __shfl_sync(~0u, words.w[i], 0);
    return words.value();
}

/* The value of a thread's share of values 0 to n - 1: number `lane` and every `step`-th after it, one after another. */
template <class M>
__device__ typename partial<M>::type merge_share(const typename partial<M>::type *values, unsigned n, unsigned lane,
                                                 unsigned step) {
    typename M::acc a = M::identity();
#pragma unroll 4
    for (unsigned i = lane; i < n; i += step)
        a = M::merge(a, partial<M>::unpack(values[i]));
    return partial<M>::pack(a);
}

} // namespace dpr

#endif
