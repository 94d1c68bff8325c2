#include "axes_measures.h"

#include "axes.cuh"
#include "family.cuh"
#include "operation.cuh"

namespace dpr {
namespace {

/* What a thread does for one operation. All threads of a block call the functions together. */
template <class O> struct measure_thread {
    using storage = typename O::M::storage;
    static constexpr int words = O::M::words;
    const dpr_axes_args &args;
    const dpr_axes_plan &p;
    const axes_lane lane;
    uint64_t *shared; /* room for an accumulator of each thread */

    /* The words number i of all threads' accumulators lie next to each other in shared memory, which avoids conflicts
     * of banks. */
    static __device__ void put(uint64_t *to, const dpr_acc &a) {
        uint64_t w[words];
        dpr_acc_store(O::op, O::dtype, &a, w);
#pragma unroll
        for (int i = 0; i < words; ++i)
            to[i * DPR_AXES_THREADS] = w[i];
    }

    static __device__ dpr_acc take(const uint64_t *from) {
        uint64_t w[words];
#pragma unroll
        for (int i = 0; i < words; ++i)
            w[i] = from[i * DPR_AXES_THREADS];
        return dpr_acc_load(O::op, O::dtype, 1, w);
    }

    /* Reads the thread's elements of one index of the rest, as axes_thread::read_walk() (axes_tiles.cuh) finds them. */
    __device__ void read_walk(accumulation<O> &a, const char *first, unsigned part) const {
        constexpr unsigned some = 4; /* in flight */
        const uint64_t before = part * p.walk_share, begin = before + lane.walk(), extent = p.walk_axis.extent.n;
        const uint64_t end = extent - before < p.walk_share ? extent : before + p.walk_share;
        if (before >= extent || begin >= end)
            return;
        const char *at = first + static_cast<int64_t>(begin) * p.walk_axis.in;
        const int64_t step = p.walk.count * p.walk_axis.in;
        uint64_t left = divide(end - begin + p.walk.count - 1, p.walk_lanes).q;
#pragma unroll 1
        for (; left >= some; left -= some) {
            storage e[some];
#pragma unroll
            for (unsigned k = 0; k < some; ++k) {
                e[k] = *reinterpret_cast<const storage *>(at);
                at += step;
            }
            a.template add<some>([&](int k) { return e[k]; });
        }
#pragma unroll 1
        for (; left > 0; --left) {
            const storage x = *reinterpret_cast<const storage *>(at);
            at += step;
            a.template add<1>([&](int) { return x; });
        }
    }

    __device__ dpr_acc read(const char *first, unsigned part, bool exists) const {
        accumulation<O> a;
        if (exists)
            for_each_of_rest(p, lane, part, [&](const axes_offset &at, unsigned walk_part) {
                read_walk(a, first + at.in, walk_part);
            });
        return a.general();
    }

    /* Combines the accumulators of the threads of each result, as combine_slices() (axes_tiles.cuh) does. The result is
     * valid in the thread of slice 0. */
    __device__ void combine(dpr_acc &a) const {
        unsigned slice = lane.slice(), left = p.slice.count, step = p.slice.step;
        const unsigned lanes = left < 32 ? left : 32;
        if (step == 1 && (lanes & (lanes - 1)) == 0 && left % lanes == 0) {
            if (lanes > 1)
                a = merge_lanes<O::op, O::dtype>(1, lanes, [&](unsigned) { return a; });
            slice = slice % lanes == 0 ? slice / lanes : left;
            left /= lanes;
            step = lanes;
        }
#pragma unroll 1
        while (left > 1) {
            const unsigned half = (left + 1) / 2;
            if (slice >= half && slice < left)
                put(shared + threadIdx.x, a);
            __syncthreads();
            if (slice + half < left) {
                const dpr_acc other = take(shared + threadIdx.x + half * step);
                dpr_acc_combine(O::op, O::dtype, &a, &other);
            }
            __syncthreads();
            left = half;
        }
    }

    /* Leaves the partial results of the block. Returns true in the block that comes last, which has then those of all
     * parts, divided among its threads as elements are. */
    __device__ bool meet(dpr_acc &a, uint64_t item, bool exists) const {
        const axes_quotient number = divide(item, p.tiles);
        const uint64_t tile = number.rest, part = number.q;
        const unsigned all = p.tile_columns * p.tile_rows, place = lane.y() * p.x.count + lane.x();
        uint64_t *partials = static_cast<uint64_t *>(args.run.workspace) + (tile * p.parts * all + place) * words;
        const unsigned slice = lane.slice();
        if (exists && slice == 0)
            dpr_acc_store(O::op, O::dtype, &a, partials + part * all * words);
        if (!last_of_tile(static_cast<unsigned *>(args.run.scratch) + tile, p.parts))
            return false;
        a = dpr_acc_neutral(O::op, O::dtype);
#pragma unroll 1
        for (unsigned i = slice; exists && i < p.parts; i += p.slice.count) {
            const dpr_acc other = dpr_acc_load(O::op, O::dtype, 1, partials + static_cast<uint64_t>(i) * all * words);
            dpr_acc_combine(O::op, O::dtype, &a, &other);
        }
        return true;
    }

    /* Does a part of a tile: item i is part i / tiles of tile i % tiles. */
    __device__ void reduce(uint64_t item, unsigned part, const axes_tile &tile) const {
        const unsigned x = lane.x(), y = lane.y();
        const bool exists = lane.slice() < p.slice.count && tile.column + x < p.column_axis.extent.n
                            && tile.row + y < p.row_axis.extent.n;
        dpr_acc a = read(tile.in + x * p.column_axis.in + y * p.row_axis.in, part, exists);
#pragma unroll 1
        for (bool met = p.parts == 1;; met = true) {
            combine(a);
            if (met)
                break;
            if (!meet(a, item, exists))
                return;
        }
        if (exists && lane.slice() == 0)
            write_measure<O>(args.run.init, tile.out + lane.x() * p.column_axis.out + lane.y() * p.row_axis.out, p.each,
                             a);
    }

    /* Each block does every gridDim.x-th part of a tile, as in axes_kernel (axes_tiles.cuh). */
    __device__ void reduce_all(axes_tile &tile) const {
        const uint64_t items = p.tiles.n * p.parts;
#pragma unroll 1
        for (uint64_t i = blockIdx.x; i < items; i += gridDim.x) {
            const axes_quotient part = divide(i, p.tiles);
            if (threadIdx.x == 0)
                tile = axes_tile(args, part.rest);
            __syncthreads();
            reduce(i, static_cast<unsigned>(part.q), tile);
            __syncthreads(); /* before the tile is overwritten */
        }
    }
};

template <dpr_dtype D, dpr_nan N>
__global__ void __launch_bounds__(DPR_AXES_THREADS, 2)
    axes_measures_kernel(const __grid_constant__ dpr_axes_args args) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ axes_tile tile;
    const auto work = [&](auto o) {
        measure_thread<decltype(o)>{args, args.plan, {args.plan}, reinterpret_cast<uint64_t *>(shared)}.reduce_all(
            tile);
    };
    let_next_launch();
    read_ahead(args);
    wait_for_work_before();
    call_operation<true, D, N>(args.op, work);
}

struct measures_family {
    using instance = const void *;
    template <dpr_dtype D, dpr_nan N> static constexpr instance of() {
        return reinterpret_cast<const void *>(&axes_measures_kernel<D, N>);
    }
};

} // namespace

const void *dpr_axes_measures(const dpr_key *key) {
    return *type_instances<measures_family>::of(key);
}

} // namespace dpr
