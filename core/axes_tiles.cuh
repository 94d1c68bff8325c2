/* The kernels of axes.tiles whose threads walk along a result's elements: by vectors or elements of one result
 * (axes.cu), or by units of neighbouring results (axes_columns.cu). */
#ifndef DPR_CORE_AXES_TILES_CUH
#define DPR_CORE_AXES_TILES_CUH

#include "axes.cuh"

namespace dpr {

/* ---- Threads and blocks of a result ---- */

/* Combines the values of the threads of each result. All threads of the block call it; the result is valid in the
 * thread of slice 0. `shared` has room for `N` values of each thread. */
template <class M, int N>
__device__ void combine_slices(const dpr_axes_plan &p, unsigned slice, typename partial<M>::type (&x)[N],
                               typename partial<M>::type *shared) {
    using X = partial<M>;
    unsigned left = p.slice.count, step = p.slice.step;
    if (N == 1 && step == 1 && left % 32 == 0) { /* whole warps, of which each thread has one value */
        x[0] = reduce_group<M>(x[0], 5);
        slice = slice % 32 == 0 ? slice / 32 : left;
        left /= 32;
        step = 32;
    }
#pragma unroll 1
    while (left > 1) {
        const unsigned half = (left + 1) / 2;
        if (slice >= half && slice < left) {
#pragma unroll
            for (int e = 0; e < N; ++e)
                shared[e * DPR_AXES_THREADS + threadIdx.x] = x[e];
        }
        __syncthreads();
        if (slice + half < left) {
#pragma unroll
            for (int e = 0; e < N; ++e)
                x[e] = X::combine(x[e], shared[e * DPR_AXES_THREADS + threadIdx.x + half * step]);
        }
        __syncthreads();
        left = half;
    }
}

/* ---- Walking along results ---- */

/* What a thread does, whose units have `R` results. */
template <class M, int R> struct axes_thread {
    using X = partial<M>;
    using storage = typename M::storage;
    const dpr_axes_args &args;
    const dpr_axes_plan &p;
    const axes_lane lane;

    /* Reads `left` units, of which the first is element `index` of its results. */
    template <class Units>
    __device__ void read_units(typename M::acc *a, const char *at, uint64_t left, uint64_t index) const {
        using unit = typename Units::unit;
        constexpr unsigned n = Units::in_flight;
        const int64_t step = p.walk.count * p.walk_axis.in;
        const uint64_t index_step = p.walk.count * p.walk_axis.weight;
#pragma unroll 1
        while (left > 0) {
            const unsigned some = left < n ? static_cast<unsigned>(left) : n;
            unit u[n];
#pragma unroll
            for (unsigned k = 0; k < n; ++k) {
                if (k < some)
                    u[k] = *reinterpret_cast<const unit *>(at);
                at += step;
            }
            Units::add(a, u, some, index, index_step);
            index += n * index_step;
            left -= some;
        }
    }

    /* Reads the thread's units of one index of the rest, of which there are `extent`. */
    __device__ void read_walk(typename M::acc *a, const char *first, uint64_t extent, uint64_t index,
                              uint64_t part) const {
        const uint64_t before = part * p.walk_share, begin = before + lane.walk();
        const uint64_t end = extent < before + p.walk_share ? extent : before + p.walk_share;
        if (begin >= end)
            return;
        const uint64_t left = divide(end - begin + p.walk.count - 1, p.walk_lanes).q;
        first += static_cast<int64_t>(begin) * p.walk_axis.in;
        index += begin * p.walk_axis.weight;
        if (R == 1 && p.form == DPR_AXES_VECTORS)
            read_units<units_of_vectors<M>>(a, first, left, index);
        else
            read_units<units_of_results<M, R>>(a, first, left, index);
    }

    __device__ const dpr_axes_axis *rest_axes() const {
        return p.axes + p.other_count;
    }

    /* Goes on to the first vector of a row, which has `extent` of them. Reads the elements before it and after the last
     * one, for the first part of the walk. */
    __device__ void read_edges(typename M::acc *a, const char *&row, uint64_t &extent, uint64_t &index,
                               unsigned part) const {
        constexpr unsigned in_vector = packet<storage>::size;
        const unsigned head = (0 - reinterpret_cast<uintptr_t>(row)) % vector_bytes / sizeof(storage);
        extent = (p.row_length - head) / in_vector;
        const unsigned tail = static_cast<unsigned>(p.row_length - head) % in_vector;
#pragma unroll 1
        for (unsigned i = lane.walk(); part == 0 && i < head + tail; i += p.walk.count) {
            const uint64_t in_row = i < head ? i : i + extent * in_vector;
            const storage x = reinterpret_cast<const storage *>(row)[in_row];
            a[0] = M::merge(a[0], X::unpack(X::of_element(x, index + in_row)));
        }
        row += head * sizeof(storage);
        index += head;
    }

    __device__ void read(typename M::acc *a, const char *first, unsigned part) const {
        for_each_of_rest(p, lane, part, [&](axes_offset at, unsigned walk_part) {
            const char *row = first + at.in;
            uint64_t extent = p.walk_axis.extent.n;
            if (R == 1 && p.has_edges)
                read_edges(a, row, extent, at.index, walk_part);
            read_walk(a, row, extent, at.index, walk_part);
        });
    }

    /* Finds the best element of the vector that ARGMIN or ARGMAX have found. */
    __device__ typename M::acc locate(typename M::acc a, const char *first) const {
        const uint64_t row = p.row_length, first_of_row = a.index / row * row;
        if (a.index == M::none)
            return a;
        const auto along = [&](const dpr_axes_axis &axis) {
            const uint64_t i = axis.weight < row ? 0 : a.index / axis.weight % axis.extent.n;
            return static_cast<int64_t>(i) * axis.in;
        };
        first += along(p.walk_axis) - static_cast<int64_t>(first_of_row * sizeof(storage));
#pragma unroll 1
        for (int d = 0; d < p.rest_count; ++d)
            first += along(rest_axes()[d]);
        return M::locate(a, elements_from<storage>{first}, first_of_row + row);
    }

    /* Adds `n` partial results of each result of the unit. */
    template <unsigned n>
    __device__ void add_partials(typename M::acc *a, const typename X::type *from, unsigned step) const {
        typename X::type y[n][R];
#pragma unroll
        for (unsigned k = 0; k < n; ++k)
#pragma unroll
            for (int e = 0; e < R; ++e)
                y[k][e] = from[k * step + e];
#pragma unroll
        for (unsigned k = 0; k < n; ++k)
#pragma unroll
            for (int e = 0; e < R; ++e)
                a[e] = M::merge(a[e], X::unpack(y[k][e]));
    }

    /* Leaves the partial results of the block. Returns true in the block that comes last, with the partial results of
     * all in the same places. */
    __device__ bool meet(typename X::type (&x)[R], uint64_t item, bool exists) const {
        const axes_quotient number = divide(item, p.tiles);
        const uint64_t tile = number.rest, part = number.q;
        const unsigned place = (lane.y() * p.x.count + lane.x()) * R, all = p.tile_columns * p.tile_rows * R;
        typename X::type *partials = static_cast<typename X::type *>(args.run.workspace) + tile * p.parts * all + place;
        const unsigned slice = lane.slice();
#pragma unroll
        for (int e = 0; e < R; ++e)
            if (slice == 0 && exists)
                partials[part * all + e] = x[e];
        if (!last_of_tile(static_cast<unsigned *>(args.run.scratch) + tile, p.parts))
            return false;
        typename M::acc a[R];
#pragma unroll
        for (int e = 0; e < R; ++e)
            a[e] = M::identity();
        constexpr unsigned some = sizeof(typename X::type) * R <= 32 ? 4 : 1; /* in flight */
        unsigned i = exists ? slice : p.parts;
#pragma unroll 1
        for (; i + (some - 1) * p.slice.count < p.parts; i += some * p.slice.count)
            add_partials<some>(a, partials + i * all, p.slice.count * all);
#pragma unroll 1
        for (; i < p.parts; i += p.slice.count)
            add_partials<1>(a, partials + i * all, 0);
#pragma unroll
        for (int e = 0; e < R; ++e)
            x[e] = X::pack(a[e]);
        return true;
    }

    /* Does a part of a tile: item i is part i / tiles of tile i % tiles. The tile is in shared memory, so that it takes
     * no registers. */
    __device__ void reduce(uint64_t item, unsigned part, const axes_tile &tile, unsigned char *shared) const {
        const unsigned x = lane.x(), y = lane.y();
        const bool exists = lane.slice() < p.slice.count && tile.column + x < p.column_axis.extent.n
                            && tile.row + y < p.row_axis.extent.n;
        const char *first = tile.in + x * p.column_axis.in + y * p.row_axis.in;
        typename X::type v[R];
        {
            typename M::acc a[R];
#pragma unroll
            for (int e = 0; e < R; ++e)
                a[e] = M::identity();
            if (exists)
                read(a, first, part);
#pragma unroll
            for (int e = 0; e < R; ++e)
                v[e] = X::pack(a[e]);
        }
#pragma unroll 1
        for (bool met = p.parts == 1;; met = true) {
            combine_slices<M, R>(p, lane.slice(), v, reinterpret_cast<typename X::type *>(shared));
            if (met)
                break;
            if (!meet(v, item, exists))
                return;
        }
        if (!exists || lane.slice() > 0)
            return;
        char *out = tile.out + lane.x() * R * p.column_axis.out + lane.y() * p.row_axis.out;
        if constexpr (R == 1 && M::holds_index) {
            if (p.form == DPR_AXES_VECTORS)
                v[0] = locate(v[0], first);
        }
#pragma unroll
        for (int e = 0; e < R; ++e)
            write_axes_result<M>(args, v[e], first + e * sizeof(storage), out + e * p.column_axis.out);
    }
};

/* Blocks that an SM holds at the same time. More have more loads in flight; with more than these, threads would keep
 * registers in local memory. */
template <class M, int R>
constexpr int axes_blocks = R > 1 ? (sizeof(typename M::storage) == 4 || sizeof(typename partial<M>::type) > 8 ? 3 : 4)
                            : sizeof(typename M::storage) == 4 && sizeof(typename M::acc) <= 8 && M::vectors == 8 ? 4
                            : sizeof(typename M::storage) == 16 || (sizeof(typename M::storage) < 4 && M::holds_index)
                                ? 2
                                : 3;

/* Each block does every gridDim.x-th part of a tile. */
template <class M, int R>
__global__ void __launch_bounds__(DPR_AXES_THREADS, axes_blocks<M, R>)
    axes_kernel(const __grid_constant__ dpr_axes_args args) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ axes_tile tile;
    const dpr_axes_plan &p = args.plan;
    const uint64_t items = p.tiles.n * p.parts;
    const axes_thread<M, R> thread = {args, p, {p}};
    let_next_launch();
    read_ahead(args);
    wait_for_work_before();
#pragma unroll 1
    for (uint64_t i = blockIdx.x; i < items; i += gridDim.x) {
        const axes_quotient part = divide(i, p.tiles);
        if (threadIdx.x == 0)
            tile = axes_tile(args, part.rest);
        __syncthreads();
        thread.reduce(i, static_cast<unsigned>(part.q), tile, shared);
        __syncthreads(); /* before the tile is overwritten */
    }
}

} // namespace dpr

#endif
