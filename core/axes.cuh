/* What the kernels of axes.tiles share. The host divides the work (axes.h); here are places in arrays, the units that
 * threads read, and how results are written. */
#ifndef DPR_CORE_AXES_CUH
#define DPR_CORE_AXES_CUH

#include "axes.h"
#include "finish.cuh"

namespace dpr {

using axes_entry = void (*)(dpr_axes_args);

/* ---- Places ---- */

struct axes_quotient {
    uint64_t q, rest;
};

__device__ inline axes_quotient divide(uint64_t a, const dpr_axes_divisor &by) {
    if (a < by.n) /* often, and a block waits for several divisions before it can read */
        return {0, a};
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
        out = static_cast<char *>(args.run.out) + p.out_first + other.out
              + static_cast<int64_t>(column * p.in_unit) * p.column_axis.out
              + static_cast<int64_t>(row) * p.row_axis.out;
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
        /* Spares short rows two conversions. Zero is added, because the sum of negative zeros alone is zero. */
        if (!args.run.init.present) {
            place_writer{args.run, out}.write(M::join(x, M::lane_identity()));
            return;
        }
    }
    typename M::acc a = partial<M>::unpack(x);
    if constexpr (!M::has_neutral) {
        if (args.plan.each == 1)
            a = M::lift(*reinterpret_cast<const typename M::storage *>(first));
    }
    write_completed<M, false, true>(place_writer{args.run, out}, args.plan.each, a);
}

/* ---- Units: what a thread reads at a time ---- */

/* Reads elements number 0, 1, ... from an address on, for locate(). */
template <class T> struct elements_from {
    const char *first;
    __device__ T element(uint64_t i) const { return reinterpret_cast<const T *>(first)[i]; }
};

/* Units of `R` neighbouring results that a thread has in flight. */
template <class M, int R>
constexpr unsigned results_in_flight =
    sizeof(typename M::storage) == 16
            || (R > 1 && (M::holds_index || (sizeof(typename M::storage) > 1 && sizeof(typename partial<M>::type) > 4)))
        ? 4
        : 8;

/* Units of `R` neighbouring results: each has one element of each. */
template <class M, int R, unsigned InFlight = results_in_flight<M, R>> struct units_of_results {
    using storage = typename M::storage;
    using unit = cuda::std::conditional_t<R == 1, storage, packet<storage, R * sizeof(storage)>>;
    static constexpr unsigned in_flight = InFlight;

    static __device__ storage element(const unit &u, int r) {
        if constexpr (R == 1)
            return u;
        else
            return u[r];
    }

    /* The value of the first `n` of some units, for result number `r` of them: a lane, or what ARGMIN and ARGMAX have
     * found. Unit k is element `index + k * step` of its results. */
    static __device__ auto value(const unit (&u)[in_flight], unsigned n, int r, uint64_t index, uint64_t step) {
        if constexpr (M::holds_index) {
            auto best = M::by::worst;
            unsigned at = M::none_of_some;
#pragma unroll
            for (unsigned k = 0; k < in_flight; ++k)
                if (k < n)
                    M::take_better(best, at, element(u[k], r), k);
            return at == M::none_of_some ? M::identity() : typename M::acc{best, index + at * step};
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
            return M::join(M::join(l[0], l[1]), M::join(l[2], l[3]));
        }
    }

    /* Adds the first `n` of some units. */
    static __device__ void add(typename M::acc *a, const unit (&u)[in_flight], unsigned n, uint64_t index,
                               uint64_t step) {
#pragma unroll
        for (int r = 0; r < R; ++r) {
            if constexpr (M::holds_index)
                a[r] = M::merge(a[r], value(u, n, r, index, step));
            else
                a[r] = M::fold(a[r], value(u, n, r, index, step));
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

/* ---- Grids ---- */

/* The grid brings to L2 what it will read. */
__device__ inline void read_ahead(const dpr_axes_args &args) {
    prefetch_lines(args.ahead.first, args.ahead.bytes);
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

} // namespace dpr

#endif
