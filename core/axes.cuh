/* The kernel that reduces along axes. The host divides the work (axes.h); here are the ways in which threads read, and
 * how the threads and blocks of a result meet. */
#ifndef DPR_CORE_AXES_CUH
#define DPR_CORE_AXES_CUH

#include <cuda_pipeline.h>

#include "axes.h"
#include "finish.cuh"

namespace dpr {

using axes_entry = void (*)(dpr_axes_args);

/* ---- Places ---- */

struct axes_quotient {
    uint64_t q, rest;
};

__device__ inline axes_quotient divide(uint64_t a, const dpr_axes_divisor &by) {
    const uint64_t q = __umul64hi(a, by.reciprocal); /* rounded down, or one less */
    const uint64_t rest = a - q * by.n;
    return rest >= by.n ? axes_quotient{q + 1, rest - by.n} : axes_quotient{q, rest};
}

/* Distances along several axes: bytes in the array and in the results, and elements of a result. */
struct axes_offset {
    int64_t in = 0, out = 0;
    uint64_t index = 0;
};

/* The place of index `i` in the product of `n` axes, of which the last runs fastest. */
__device__ inline axes_offset offset_along(const dpr_axes_axis *axes, int n, uint64_t i) {
    axes_offset at;
#pragma unroll 1
    for (int d = n - 1; d >= 0; --d) {
        const axes_quotient k = divide(i, axes[d].extent);
        i = k.q;
        at.in += static_cast<int64_t>(k.rest) * axes[d].in;
        at.out += static_cast<int64_t>(k.rest) * axes[d].out;
        at.index += k.rest * axes[d].weight;
    }
    return at;
}

/* A tile: the first indices along its two axes, and the place of their element and result. */
struct axes_tile {
    uint64_t column, row;
    const char *in;
    char *out;

    __device__ axes_tile() {}
    __device__ axes_tile(const dpr_axes_args &args, uint64_t tile) {
        const dpr_axes_plan &p = args.plan;
        const axes_quotient columns = divide(tile, p.column_tiles), rows = divide(columns.q, p.row_tiles);
        column = columns.rest * p.tile_columns;
        row = rows.rest * p.tile_rows;
        const axes_offset other = offset_along(p.axes, p.other_count, rows.q);
        in = static_cast<const char *>(args.run.in) + p.in_first + other.in
             + static_cast<int64_t>(column) * p.column_axis.in + static_cast<int64_t>(row) * p.row_axis.in;
        out = static_cast<char *>(args.run.out) + p.out_first + other.out + static_cast<int64_t>(row) * p.row_axis.out;
    }
};

__device__ inline unsigned lane_of(const dpr_axes_lanes &lanes) {
    const unsigned i = threadIdx.x * lanes.of_step >> 16;
    return i - (i * lanes.of_count >> 16) * lanes.count;
}

/* The digits of the thread's number (axes.h). They are calculated where they are needed, which takes less registers. */
struct axes_lane {
    const dpr_axes_plan &p;

    __device__ unsigned x() const { return lane_of(p.x); }
    __device__ unsigned y() const { return lane_of(p.y); }
    __device__ unsigned walk() const { return lane_of(p.walk); }
    __device__ unsigned rest() const { return lane_of(p.rest); }

    /* A thread that is not needed has a number behind those of all slices. */
    __device__ unsigned slice() const {
        return threadIdx.x < p.x.count * p.y.count * p.slice.count ? lane_of(p.slice) : p.slice.count;
    }
};

/* Calls f(at, walk_part) for the thread's indices of the rest, where `at` is their place and `walk_part` the block's
 * part of the walk. */
template <class F> __device__ void for_each_of_rest(const dpr_axes_plan &p, const axes_lane &lane, unsigned part, F f) {
    const unsigned rest_part = part / p.walk_parts, walk_part = part - rest_part * p.walk_parts;
    const uint64_t begin = rest_part * p.rest_share;
    const uint64_t end = begin + p.rest_share < p.rest_extent ? begin + p.rest_share : p.rest_extent;
#pragma unroll 1
    for (uint64_t i = begin + lane.rest(); i < end; i += p.rest.count)
        f(offset_along(p.axes + p.other_count, p.rest_count, i), walk_part);
}

/* ---- Results ---- */

/* Writes one result. `first` is its first element, if it has any. */
template <class M>
__device__ void write_axes_result(const dpr_axes_args &args, typename partial<M>::type x, const char *first,
                                  char *out) {
    if constexpr (cuda::std::is_same_v<typename M::lane, typename M::result> && M::exchanges_lanes) {
        /* Spares short rows two conversions. */
        if (!args.run.init.present) {
            place_writer{args.run, out}.write(x);
            return;
        }
    }
    typename M::acc a = partial<M>::unpack(x);
    if constexpr (!M::has_neutral) {
        if (args.plan.each == 1)
            a = M::lift(*reinterpret_cast<const typename M::storage *>(first));
    }
    write_with_init<M>(place_writer{args.run, out}, args.plan.each, a);
}

/* ---- Units: what a thread reads at a time ---- */

/* Reads elements number 0, 1, ... from an address on, for locate(). */
template <class T> struct elements_from {
    const char *first;
    __device__ T element(uint64_t i) const { return reinterpret_cast<const T *>(first)[i]; }
};

/* Results of a word. */
template <class M>
constexpr int axes_word_results = sizeof(typename M::storage) < 4 ? 4 / sizeof(typename M::storage) : 1;

/* Units of `R` neighbouring results: each has one element of each. */
template <class M, int R> struct units_of_results {
    using storage = typename M::storage;
    using unit = cuda::std::conditional_t<R == 1, storage, uint32_t>;
    static constexpr bool light = R == 1 && sizeof(storage) <= 4 && !M::holds_index;
    static constexpr unsigned in_flight = light ? 8 : sizeof(storage) == 16 || (R > 1 && M::holds_index) ? 4 : 8;

    static __device__ storage element(const unit &u, int r) {
        if constexpr (R == 1)
            return u;
        else
            return static_cast<storage>(u >> r * 8 * sizeof(storage));
    }

    /* Adds the first `n` of some units. Unit k is element `index + k * step` of its results. */
    static __device__ void add(typename M::acc *a, const unit (&u)[in_flight], unsigned n, uint64_t index,
                               uint64_t step) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if constexpr (M::holds_index) {
                auto best = M::by::worst;
                unsigned at = M::none_of_some;
#pragma unroll
                for (unsigned k = 0; k < in_flight; ++k)
                    if (k < n)
                        M::take_better(best, at, element(u[k], r), k);
                if (at != M::none_of_some)
                    a[r] = M::merge(a[r], typename M::acc{best, index + at * step});
            } else {
                constexpr unsigned lanes = 4;
                typename M::lane l[lanes];
#pragma unroll
                for (unsigned k = 0; k < lanes; ++k)
                    l[k] = M::lane_identity();
#pragma unroll
                for (unsigned k = 0; k < in_flight; ++k)
                    if (k < n)
                        l[k % lanes] = M::add(l[k % lanes], element(u[k], r));
                a[r] = M::fold(a[r], M::join(M::join(l[0], l[1]), M::join(l[2], l[3])));
            }
        }
    }
};

/* Units of one result: vectors. */
template <class M> struct units_of_vectors {
    using storage = typename M::storage;
    using unit = packet<storage>;
    static constexpr unsigned in_flight = M::vectors < 4 ? M::vectors : 4;

    /* As above; the first element of unit k is element `index + k * step`. */
    static __device__ void add(typename M::acc *a, const unit (&u)[in_flight], unsigned n, uint64_t index,
                               uint64_t step) {
        tile_of<M> t;
#pragma unroll
        for (int k = in_flight - 1; k >= 0; --k)
            if (static_cast<unsigned>(k) < n)
                t.add(u[k], k);
        const auto index_of = [&](unsigned k) { return index + k * step; };
        if constexpr (M::holds_index)
            a[0] = M::merge(a[0], t.fold_into(M::identity(), index_of));
        else
            a[0] = t.fold_into(a[0], index_of);
    }
};

/* ---- Threads and blocks of a result ---- */

/* Combines the values of the threads of each result. All threads of the block call it; the result is valid in the
 * thread of slice 0. `shared` has room for `N` values of each thread. */
template <class M, int N>
__device__ void combine_slices(const dpr_axes_plan &p, unsigned slice, typename partial<M>::type (&x)[N],
                               typename partial<M>::type *shared) {
    using X = partial<M>;
    unsigned left = p.slice.count, step = p.slice.step;
    if (step == 1 && left % 32 == 0) {
        x[0] = reduce_group<M>(x[0], 5); /* threads of one result are neighbours only if units have one result */
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

/* Takes the block's ticket for a tile. Returns true in all threads of the block that is the last of `parts`, which then
 * sees what all of them have written; the ticket is zero again. */
__device__ inline bool last_of_tile(unsigned *ticket, unsigned parts) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        last = take_ticket(ticket, parts);
        if (last)
            *ticket = 0;
    }
    __syncthreads();
    return last;
}

/* ---- Tiles that are read from the array itself ---- */

template <class M> struct axes_thread {
    using X = partial<M>;
    using storage = typename M::storage;
    static constexpr int results = axes_word_results<M>; /* of a unit, at most */
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

    /* Reads the thread's units of one index of the rest. */
    __device__ void read_walk(typename M::acc *a, const char *first, uint64_t index, uint64_t part) const {
        const uint64_t begin = part * p.walk_share + lane.walk(), extent = p.walk_axis.extent.n;
        const uint64_t end = extent - part * p.walk_share < p.walk_share ? extent : (part + 1) * p.walk_share;
        if (part * p.walk_share >= extent || begin >= end)
            return;
        const uint64_t left = divide(end - begin + p.walk.count - 1, p.walk_lanes).q;
        first += static_cast<int64_t>(begin) * p.walk_axis.in;
        index += begin * p.walk_axis.weight;
        if (p.form == DPR_AXES_VECTORS)
            read_units<units_of_vectors<M>>(a, first, left, index);
        else if (results > 1 && p.form == DPR_AXES_WORDS)
            read_units<units_of_results<M, results>>(a, first, left, index);
        else
            read_units<units_of_results<M, 1>>(a, first, left, index);
    }

    __device__ const dpr_axes_axis *rest_axes() const {
        return p.axes + p.other_count;
    }

    /* Reads the elements of a row before its first vector and after its last one. */
    __device__ void read_edges(typename M::acc *a, const char *row, uint64_t index) const {
        const unsigned edges = p.head + p.tail;
#pragma unroll 1
        for (unsigned i = lane.walk(); i < edges; i += p.walk.count) {
            const uint64_t in_row = i < p.head ? i : p.row_length - edges + i;
            const storage x = reinterpret_cast<const storage *>(row)[in_row];
            a[0] = M::merge(a[0], X::unpack(X::of_element(x, index + in_row)));
        }
    }

    __device__ void read(typename M::acc *a, const char *first, unsigned part) const {
        for_each_of_rest(p, lane, part, [&](const axes_offset &at, unsigned walk_part) {
            read_walk(a, first + at.in + p.head * sizeof(storage), p.head + at.index, walk_part);
            if (walk_part == 0)
                read_edges(a, first + at.in, at.index);
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

    /* Leaves the partial results of the block. Returns true in the block that comes last, with the partial results of
     * all in the same places. */
    __device__ bool meet(typename X::type (&x)[results], uint64_t item, bool exists) const {
        const axes_quotient number = divide(item, p.tiles);
        const uint64_t tile = number.rest, part = number.q;
        const unsigned place = (lane.y() * p.x.count + lane.x()) * (p.form == DPR_AXES_WORDS ? results : 1);
        const unsigned all = p.tile_columns * p.tile_rows * (p.form == DPR_AXES_WORDS ? results : 1);
        typename X::type *partials = static_cast<typename X::type *>(args.run.workspace) + tile * p.parts * all + place;
        const unsigned slice = lane.slice();
        const int mine = !exists ? 0 : p.form == DPR_AXES_WORDS ? results : 1;
#pragma unroll
        for (int e = 0; e < results; ++e)
            if (slice == 0 && e < mine)
                partials[part * all + e] = x[e];
        if (!last_of_tile(static_cast<unsigned *>(args.run.scratch) + tile, p.parts))
            return false;
        typename M::acc a[results];
#pragma unroll
        for (int e = 0; e < results; ++e)
            a[e] = M::identity();
#pragma unroll 1
        for (unsigned i = slice; i < p.parts; i += p.slice.count) {
#pragma unroll
            for (int e = 0; e < results; ++e)
                if (e < mine)
                    a[e] = M::merge(a[e], X::unpack(partials[i * all + e]));
        }
#pragma unroll
        for (int e = 0; e < results; ++e)
            x[e] = X::pack(a[e]);
        return true;
    }

    /* Does a part of a tile: item i is part i / tiles of tile i % tiles. The tile is in shared
     * memory, so that it takes no registers. */
    __device__ void reduce(uint64_t item, unsigned part, const axes_tile &tile, unsigned char *shared) const {
        const unsigned x = lane.x(), y = lane.y(), in_unit = p.form == DPR_AXES_WORDS ? results : 1;
        const bool exists = lane.slice() < p.slice.count && tile.column + x < p.column_axis.extent.n
                            && tile.row + y < p.row_axis.extent.n;
        const char *first = tile.in + x * p.column_axis.in + y * p.row_axis.in;
        typename X::type v[results];
        {
            typename M::acc a[results];
#pragma unroll
            for (int e = 0; e < results; ++e)
                a[e] = M::identity();
            if (exists)
                read(a, first, part);
#pragma unroll
            for (int e = 0; e < results; ++e)
                v[e] = X::pack(a[e]);
        }
#pragma unroll 1
        for (bool met = p.parts == 1;; met = true) {
            combine_slices<M, results>(p, lane.slice(), v, reinterpret_cast<typename X::type *>(shared));
            if (met)
                break;
            if (!meet(v, item, exists))
                return;
        }
        if (!exists || lane.slice() > 0)
            return;
        char *out = tile.out + static_cast<int64_t>((tile.column + lane.x()) * in_unit) * p.column_axis.out
                    + lane.y() * p.row_axis.out;
        if constexpr (M::holds_index) {
            if (p.form == DPR_AXES_VECTORS)
                v[0] = locate(v[0], first);
        }
#pragma unroll
        for (int e = 0; e < results; ++e) {
            if (e > 0 && in_unit == 1)
                break;
            write_axes_result<M>(args, v[e], first + e * sizeof(storage), out + e * p.column_axis.out);
        }
    }
};

/* ---- Stages ---- */

/* The elements of a tile lie in a stage as in the array, from a boundary of 16 bytes on, with 16 bytes left out after
 * every 128: so threads that read vectors at distances of a power of two do not meet in the same banks. */
__host__ __device__ constexpr unsigned padded(unsigned offset) {
    return offset + (offset / 8 & ~15u);
}
constexpr unsigned stage_bytes = padded(DPR_AXES_STAGE_BYTES + 2 * vector_bytes) + vector_bytes;
constexpr int axes_stages = 3;

/* Blocks on an SM: as many as its shared memory and registers have room for. */
__host__ __device__ constexpr int axes_stage_blocks(size_t element) {
    return element >= 8 ? 4 : 5;
}

template <class M> struct axes_stage {
    using storage = typename M::storage;
    using X = partial<M>;
    const dpr_axes_args &args;
    const dpr_axes_plan &p;

    __device__ unsigned columns_of(const axes_tile &tile) const {
        const uint64_t left = p.column_axis.extent.n - tile.column;
        return left < p.tile_columns ? static_cast<unsigned>(left) : p.tile_columns;
    }

    __device__ unsigned rows_of(const axes_tile &tile) const {
        const uint64_t left = p.row_axis.extent.n - tile.row;
        return left < p.tile_rows ? static_cast<unsigned>(left) : p.tile_rows;
    }

    static __device__ unsigned skipped(const axes_tile &tile) {
        return reinterpret_cast<uintptr_t>(tile.in) % vector_bytes;
    }

    /* Starts to copy the elements of a tile: whole vectors asynchronously, and the elements of each piece that lie
     * before and after them one by one. All pieces begin equally far from a boundary of vectors. */
    __device__ void fetch(const axes_tile &tile, unsigned char *stage) const {
        const unsigned columns = columns_of(tile), before = skipped(tile);
        const unsigned first = before > 0 ? vector_bytes : 0, end = before + piece_bytes(tile, columns);
        const unsigned last = end / vector_bytes * vector_bytes;
        const unsigned vectors = last > first ? (last - first) / vector_bytes : 0;
        const char *from = tile.in - before;
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < p.segments * vectors; i += DPR_AXES_THREADS) {
            const unsigned k = p.segments == 1 ? 0 : i / vectors, at = first + (i - k * vectors) * vector_bytes;
            __pipeline_memcpy_async(stage + padded(k * p.segment_pitch + at), from + k * p.walk_axis.in + at,
                                    vector_bytes);
        }
        const unsigned heads = before > 0 ? ((end < first ? end : first) - before) / sizeof(storage) : 0;
        const unsigned edges = heads + (last >= first ? (end - last) / sizeof(storage) : 0);
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < p.segments * edges; i += DPR_AXES_THREADS) {
            const unsigned k = i / edges, e = i - k * edges;
            const unsigned at = e < heads ? before + e * sizeof(storage) : last + (e - heads) * sizeof(storage);
            *reinterpret_cast<storage *>(stage + padded(k * p.segment_pitch + at)) =
                *reinterpret_cast<const storage *>(from + k * p.walk_axis.in + at);
        }
    }

    /* Bytes of a piece of the array that a tile is in. */
    __device__ unsigned piece_bytes(const axes_tile &tile, unsigned columns) const {
        if (p.segments > 1)
            return columns * sizeof(storage);
        return (columns - 1) * static_cast<unsigned>(p.column_axis.in)
               + (rows_of(tile) - 1) * static_cast<unsigned>(p.row_axis.in)
               + (static_cast<unsigned>(p.each) - 1) * static_cast<unsigned>(p.walk_axis.in) + sizeof(storage);
    }

    /* Reduces vectors `lane`, `lane + group` ... of the row that begins at `row`. */
    __device__ typename X::type reduce_vectors(const unsigned char *stage, unsigned row, unsigned lane) const {
        constexpr unsigned in_vector = vector_bytes / sizeof(storage);
        const unsigned n = static_cast<unsigned>(p.each) / in_vector;
        const auto vector = [&](unsigned v) {
            return *reinterpret_cast<const packet<storage> *>(stage + padded(row + v * vector_bytes));
        };
        tile_of<M> t;
        if (lane < n) {
#pragma unroll 1
            for (unsigned v = lane + ((n - 1 - lane) >> p.log_group << p.log_group);; v -= 1u << p.log_group) {
                t.add(vector(v), v);
                if (v < 1u << p.log_group)
                    break;
            }
        }
        if constexpr (M::exchanges_lanes) {
            return t.total();
        } else if constexpr (M::holds_index) {
            typename M::acc a = t.fold_into(M::identity(), [](unsigned v) { return uint64_t{v}; });
            if (a.index != M::none) {
                const packet<storage> found = vector(static_cast<unsigned>(a.index));
                unsigned at = 0;
#pragma unroll
                for (int e = in_vector - 1; e >= 0; --e)
                    at = M::has_key(found[e], a.key) ? e : at;
                a.index = a.index * in_vector + at;
            }
            return a;
        } else {
            return X::pack(t.fold_into(M::identity(), [](unsigned) { return uint64_t{0}; }));
        }
    }

    /* Reduces elements `lane`, `lane + group` ... of the row. */
    __device__ typename X::type reduce_elements(const unsigned char *stage, unsigned row, unsigned lane) const {
        constexpr unsigned some = 4;
        const unsigned distance = p.segments == 1 ? static_cast<unsigned>(p.walk_axis.in) : p.segment_pitch;
        const unsigned n = static_cast<unsigned>(p.each), step = distance << p.log_group;
        unsigned at = row + lane * distance;
        auto x = X::identity();
#pragma unroll 1
        for (unsigned i = lane; i < n; i += some << p.log_group) {
            storage e[some];
#pragma unroll
            for (unsigned k = 0; k < some; ++k) {
                if (i + (k << p.log_group) < n)
                    e[k] = *reinterpret_cast<const storage *>(stage + padded(at));
                at += step;
            }
            x = X::combine(x, reduce_some(e, i, n));
        }
        return x;
    }

    /* Reduces those of some elements that exist: number i, i + group ... below n. */
    template <int K> __device__ typename X::type reduce_some(const storage (&e)[K], unsigned i, unsigned n) const {
        if constexpr (M::holds_index) {
            auto best = M::by::worst;
            unsigned at = M::none_of_some;
#pragma unroll
            for (unsigned k = 0; k < K; ++k)
                if (i + (k << p.log_group) < n)
                    M::take_better(best, at, e[k], i + (k << p.log_group));
            return at == M::none_of_some ? M::identity() : typename M::acc{best, at};
        } else {
            typename M::lane l = M::add(M::lane_identity(), e[0]);
#pragma unroll
            for (unsigned k = 1; k < K; ++k)
                if (i + (k << p.log_group) < n)
                    l = M::add(l, e[k]);
            if constexpr (M::exchanges_lanes)
                return l;
            else
                return X::pack(M::fold(M::identity(), l));
        }
    }

    /* Reduces a tile, which has arrived. */
    __device__ void reduce(const axes_tile &tile, const unsigned char *stage) const {
        const unsigned columns = columns_of(tile), results = columns * rows_of(tile);
        const unsigned lane = threadIdx.x & ((1u << p.log_group) - 1), of_warp = 32u >> p.log_group;
#pragma unroll 1
        for (unsigned first = threadIdx.x / 32 * of_warp; first < results; first += DPR_AXES_THREADS >> p.log_group) {
            const unsigned i = first + (threadIdx.x % 32 >> p.log_group);
            const unsigned row = p.tile_rows > 1 ? __umulhi(i, p.of_columns) : 0, column = i - row * columns;
            const unsigned offset =
                column * static_cast<unsigned>(p.column_axis.in) + row * static_cast<unsigned>(p.row_axis.in);
            auto x = X::identity();
            if (i < results)
                x = p.in_vectors ? reduce_vectors(stage, skipped(tile) + offset, lane)
                                 : reduce_elements(stage, skipped(tile) + offset, lane);
            x = reduce_group<M>(x, p.log_group);
            if (i < results && lane == 0)
                write_axes_result<M>(args, x, tile.in + offset,
                                     tile.out + static_cast<int64_t>(tile.column + column) * p.column_axis.out
                                         + row * p.row_axis.out);
        }
    }
};

/* ---- The kernels ---- */

/* Blocks that an SM holds at the same time. More have more loads in flight; with more than these, threads would keep
 * registers in local memory. */
template <class M>
constexpr int axes_blocks = sizeof(typename M::storage) == 4 && sizeof(typename M::acc) <= 8 && M::vectors == 8 ? 4
                            : sizeof(typename M::storage) == 16 || (axes_word_results<M> > 1 && M::holds_index) ? 2
                                                                                                                : 3;

/* The grid brings to L2 what it will read. */
__device__ inline void read_ahead(const dpr_axes_args &args) {
    prefetch_lines(args.ahead.first, args.ahead.bytes);
}

/* Each block does every gridDim.x-th part of a tile. */
template <class M>
__global__ void __launch_bounds__(DPR_AXES_THREADS, axes_blocks<M>)
    axes_kernel(const __grid_constant__ dpr_axes_args args) {
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ axes_tile tile;
    const dpr_axes_plan &p = args.plan;
    const uint64_t items = p.tiles.n * p.parts;
    const axes_thread<M> thread = {args, p, {p}};
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

/* Each block does every gridDim.x-th tile, and copies later ones meanwhile. One thread calculates where the tile after
 * those is. */
template <class M>
__global__ void __launch_bounds__(DPR_AXES_THREADS, axes_stage_blocks(sizeof(typename M::storage)))
    axes_stages_kernel(const __grid_constant__ dpr_axes_args args) {
    extern __shared__ __align__(16) unsigned char shared[];
    constexpr unsigned places = axes_stages + 1;
    __shared__ axes_tile tiles[places];
    const uint64_t count = args.plan.tiles.n;
    const axes_stage<M> stages = {args, args.plan};
    let_next_launch();
    read_ahead(args);
    if (threadIdx.x == 0)
        tiles[0] = axes_tile(args, blockIdx.x);
    wait_for_work_before();
    __syncthreads();
    /* Places of the tile that is fetched, and of that which is reduced; and their stages. */
    unsigned next = 0, to = 0, done = 0, from = 0, missing = axes_stages;
    uint64_t i = blockIdx.x; /* of the tile that is fetched */
#pragma unroll 1
    for (uint64_t left = (count - i + gridDim.x - 1) / gridDim.x; left > 0; i += gridDim.x) {
        if (i < count)
            stages.fetch(tiles[next], shared + to * stage_bytes);
        __pipeline_commit();
        next = next + 1 < places ? next + 1 : 0;
        to = to + 1 < axes_stages ? to + 1 : 0;
        if (threadIdx.x == 0 && i + gridDim.x < count)
            tiles[next] = axes_tile(args, i + gridDim.x);
        if (missing > 0 && --missing > 0) {
            __syncthreads(); /* for the tile that is fetched next */
            continue;
        }
        __pipeline_wait_prior(axes_stages - 1);
        __syncthreads();
        stages.reduce(tiles[done], shared + from * stage_bytes);
        __syncthreads(); /* before this stage is overwritten */
        done = done + 1 < places ? done + 1 : 0;
        from = from + 1 < axes_stages ? from + 1 : 0;
        --left;
    }
}

} // namespace dpr

#endif
