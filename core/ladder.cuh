/* The rungs of the ladder: how a block folds tiles of elements in shared memory. */
#ifndef DPR_CORE_LADDER_CUH
#define DPR_CORE_LADDER_CUH

#include "family.cuh"
#include "finish.cuh"

namespace dpr {

/* Tiles that a block folds side by side, between the same barriers. In shared memory each tile has one word for each
 * thread of the block. `own` are this thread's words, which are in shared memory too. */
template <class M, unsigned Tiles> struct tiles_of {
    using X = partial<M>;
    using T = typename X::type;
    T *x;
    T own[Tiles];

    __device__ T &at(unsigned tile, unsigned thread) const { return x[tile * blockDim.x + thread]; }

    __device__ void store() const {
#pragma unroll
        for (unsigned j = 0; j < Tiles; ++j)
            at(j, threadIdx.x) = own[j];
    }

    __device__ void load() {
#pragma unroll
        for (unsigned j = 0; j < Tiles; ++j)
            own[j] = at(j, threadIdx.x);
    }

    /* Adds the word `s` further on to this thread's word, in each tile. */
    __device__ void add_further_on(unsigned s) {
#pragma unroll
        for (unsigned j = 0; j < Tiles; ++j)
            own[j] = X::combine(own[j], at(j, threadIdx.x + s));
        store();
    }

    /* Adds word i + s to word i, in each tile. */
    __device__ void add_pair(unsigned i, unsigned s) const {
#pragma unroll
        for (unsigned j = 0; j < Tiles; ++j)
            at(j, i) = X::combine(at(j, i), at(j, i + s));
    }
};

/* The folds below fold each tile to the first thread's own word. All threads of the block call them (32, 64, ... or
 * 1024), after a barrier that makes all stored words visible. When a fold returns, no thread reads others' words any
 * more. */

/* Thread t adds the word s further on if t is a multiple of 2s, for s = 1, 2, 4...: with each step fewer threads of
 * every warp work. */
struct fold_neighbored {
    template <class Tiles> static __device__ void fold(Tiles &tiles) {
        for (unsigned s = 1; s < blockDim.x; s *= 2) {
            if (threadIdx.x % (2 * s) == 0)
                tiles.add_further_on(s);
            __syncthreads();
        }
    }
};

/* Neighbouring threads add the same pairs, so that whole warps are done early. But the words that neighbours read are
 * 2s apart, in fewer banks with each step. A thread adds to others' words, so the first thread loads its own at the
 * end. */
struct fold_neighbored_less {
    template <class Tiles> static __device__ void fold(Tiles &tiles) {
        for (unsigned s = 1; s < blockDim.x; s *= 2) {
            const unsigned i = 2 * s * threadIdx.x;
            if (i < blockDim.x)
                tiles.add_pair(i, s);
            __syncthreads();
        }
        if (threadIdx.x == 0)
            tiles.load();
    }
};

/* One step of the folds below: neighbouring threads read neighbours, `s` words from their own. */
template <class Tiles> __device__ void fold_step(Tiles &tiles, unsigned s) {
    if (threadIdx.x < s)
        tiles.add_further_on(s);
}

/* One step each for s = half a block, a quarter, ... 1. */
struct fold_interleaved {
    template <class Tiles> static __device__ void fold(Tiles &tiles) {
        for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
            fold_step(tiles, s);
            __syncthreads();
        }
    }
};

/* The first warp alone does the last steps, without barriers of the block between them. Its threads are not in
 * lockstep, so each step ends with a barrier of the warp. */
template <class Tiles> __device__ void fold_last_warp(Tiles &tiles, unsigned block) {
    if (threadIdx.x < 32) {
#pragma unroll
        for (unsigned s = 32; s > 0; s /= 2) {
            if (block >= 2 * s)
                fold_step(tiles, s);
            __syncwarp();
        }
    }
    __syncthreads();
}

struct fold_unroll_warps {
    template <class Tiles> static __device__ void fold(Tiles &tiles) {
        for (unsigned s = blockDim.x / 2; s > 32; s /= 2) {
            fold_step(tiles, s);
            __syncthreads();
        }
        fold_last_warp(tiles, blockDim.x);
    }
};

/* Every step is written out. `block` is the block's size in threads; if it is a constant, the compiler knows which
 * steps there are. */
template <class Tiles> __device__ void fold_written_out(Tiles &tiles, unsigned block) {
#pragma unroll
    for (unsigned s = most_threads / 2; s > 32; s /= 2) {
        if (block >= 2 * s) {
            fold_step(tiles, s);
            __syncthreads();
        }
    }
    fold_last_warp(tiles, block);
}

struct fold_complete {
    template <class Tiles> static __device__ void fold(Tiles &tiles) { fold_written_out(tiles, blockDim.x); }
};

template <unsigned Block> struct fold_complete_of {
    template <class Tiles> static __device__ void fold(Tiles &tiles) { fold_written_out(tiles, Block); }
};

} // namespace dpr

#endif
