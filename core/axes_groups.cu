/* Results of few elements: each by a group of lanes of one warp. Threads share nothing but what the lanes of a group
 * exchange. */
#include "axes.cuh"
#include "axes_forms.h"
#include "family.cuh"

namespace dpr {
namespace {

/* Columns and rows of a tile, counted up to the edge of the array. */
__device__ unsigned columns_in(const dpr_axes_plan &p, const axes_tile &tile) {
    const uint64_t left = p.column_axis.extent.n - tile.column;
    return left < p.tile_columns ? static_cast<unsigned>(left) : p.tile_columns;
}
__device__ unsigned rows_in(const dpr_axes_plan &p, const axes_tile &tile) {
    const uint64_t left = p.row_axis.extent.n - tile.row;
    return left < p.tile_rows ? static_cast<unsigned>(left) : p.tile_rows;
}

/* A result: its first element, its place, and its column in the tile. */
struct group_place {
    const char *in;
    char *out;
    unsigned column;

    __device__ group_place() {}
    __device__ group_place(const dpr_axes_plan &p, const axes_tile &tile, unsigned number) {
        const unsigned row = p.tile_rows > 1 ? __umulhi(number, p.column_reciprocal) : 0;
        column = number - row * p.tile_columns;
        in = tile.in + column * p.column_axis.in + row * p.row_axis.in;
        out = tile.out + column * p.column_axis.out + row * p.row_axis.out;
    }

    /* Goes on to the group's next result. */
    __device__ void go_on(const dpr_axes_step &step) {
        in += step.in;
        out += step.out;
        column += step.columns;
        if (column >= step.all_columns) {
            in += step.wrap_in;
            out += step.wrap_out;
            column -= step.all_columns;
        }
    }
};

/* What a thread does: in a group that reads vectors, or elements. */
template <class M, bool Vectors> struct axes_group {
    using X = partial<M>;
    using storage = typename M::storage;
    using vector = packet<storage>;
    static constexpr unsigned log_threads = 8;
    static_assert(DPR_AXES_THREADS == 1 << log_threads);
    /* Results that a group has in flight, and blocks on an SM: as many as registers allow. */
    static constexpr unsigned some = sizeof(typename X::type) <= 8 && (Vectors || sizeof(storage) <= 4) ? 4 : 2;
    static constexpr int blocks = sizeof(storage) + sizeof(typename X::type) >= 24 || sizeof(storage) == 16 ? 2
                                  : Vectors && sizeof(typename X::type) <= 4                                ? 4
                                                                                                            : 3;
    const dpr_axes_args &args;
    const dpr_axes_plan &p;
    const unsigned lane = threadIdx.x & ((1u << p.log_group) - 1);

    /* The value of a vector, whose first element is number `index` of its result. */
    static __device__ typename X::type of_vector(const vector &u, unsigned index) {
        if constexpr (M::holds_index) {
            storage e[vector::size];
#pragma unroll
            for (int k = 0; k < vector::size; ++k)
                e[k] = u[k];
            return units_of_results<M, 1, vector::size>::value(e, vector::size, 0, index, 1);
        } else if constexpr (M::exchanges_lanes && cuda::std::is_void_v<typename M::tile>) {
            return lane_set<M>(u).total();
        } else {
            tile_of<M> t;
            t.add(u, 0);
            return X::pack(t.fold_into(M::identity(), [](unsigned) { return uint64_t{0}; }));
        }
    }

    /* Reads the lane's vector of each of the group's next results: of `some` of them, or of `n` if these are fewer. */
    __device__ void read_vectors(typename X::type (&x)[some], group_place &at, unsigned n) const {
        vector u[some];
#pragma unroll
        for (unsigned r = 0; r < some; ++r) {
            if (r < n && lane < p.units)
                u[r] = reinterpret_cast<const vector *>(at.in)[lane];
            at.go_on(p.step);
        }
#pragma unroll
        for (unsigned r = 0; r < some; ++r)
            x[r] = r < n && lane < p.units ? of_vector(u[r], lane * vector::size) : X::identity();
    }

    /* The same by elements: number `lane`, `lane + group` ... of each result. `at` stays in lanes that have none. */
    __device__ void read_elements(typename X::type (&x)[some], group_place &at, unsigned n) const {
        using units = units_of_results<M, 1, DPR_AXES_GROUP_UNITS>;
        const int64_t step = p.walk_axis.in * (1 << p.log_group);
        const group_place first = at;
#pragma unroll
        for (unsigned r = 0; r < some; ++r)
            x[r] = X::identity();
#pragma unroll 1
        for (unsigned i = lane; i < p.units; i += DPR_AXES_GROUP_UNITS << p.log_group) {
            const unsigned left = ((p.units - 1 - i) >> p.log_group) + 1;
            storage u[some][DPR_AXES_GROUP_UNITS];
            at = first;
#pragma unroll
            for (unsigned r = 0; r < some; ++r) {
                const char *in = at.in + i * p.walk_axis.in;
#pragma unroll
                for (unsigned k = 0; k < DPR_AXES_GROUP_UNITS; ++k) {
                    if (r < n && k < left)
                        u[r][k] = *reinterpret_cast<const storage *>(in);
                    in += step;
                }
                at.go_on(p.step);
            }
#pragma unroll
            for (unsigned r = 0; r < some; ++r) {
                const auto value = units::value(u[r], r < n ? left : 0, 0, i, uint64_t{1} << p.log_group);
                if constexpr (M::holds_index || M::exchanges_lanes)
                    x[r] = X::combine(x[r], value);
                else
                    x[r] = X::pack(M::fold(X::unpack(x[r]), value));
            }
        }
    }

    /* Reduces the results of a tile. All threads of the block call it. */
    __device__ void reduce(const axes_tile &tile) const {
        const unsigned results = columns_in(p, tile) * rows_in(p, tile), number = threadIdx.x >> p.log_group;
        /* How many results the group has whose first one is number `first`. */
        const auto of_group = [&](unsigned first) {
            return first < results ? ((results - 1 - first) >> (log_threads - p.log_group)) + 1 : 0;
        };
        group_place next(p, tile, number), written = next;
        unsigned left = of_group(number);
        /* The first group of a warp has the most. */
#pragma unroll 1
        for (unsigned most = of_group(threadIdx.x / 32 * 32 >> p.log_group); most > 0;
             most = most > some ? most - some : 0) {
            typename X::type x[some];
            if constexpr (Vectors)
                read_vectors(x, next, left);
            else
                read_elements(x, next, left);
#pragma unroll 1
            for (unsigned delta = 1u << p.log_group >> 1; delta > 0; delta /= 2) {
#pragma unroll
                for (unsigned r = 0; r < some; ++r)
                    x[r] = X::combine(x[r], shuffle_down(x[r], delta));
            }
#pragma unroll
            for (unsigned r = 0; r < some; ++r) {
                if (r < left && lane == 0)
                    write_axes_result<M>(args, x[r], written.in, written.out);
                written.go_on(p.step);
            }
            left = left > some ? left - some : 0;
        }
    }
};

/* Each block does every gridDim.x-th tile. */
template <class M, bool Vectors>
__global__ void __launch_bounds__(DPR_AXES_THREADS, (axes_group<M, Vectors>::blocks))
    axes_groups_kernel(const __grid_constant__ dpr_axes_args args) {
    const axes_group<M, Vectors> group = {args, args.plan};
    let_next_launch();
    read_ahead(args);
    wait_for_work_before();
#pragma unroll 1
    for (uint64_t i = blockIdx.x; i < args.plan.tiles.n; i += gridDim.x)
        group.reduce(axes_tile(args, i));
}

template <bool Vectors> struct groups_family {
    template <class M> static constexpr axes_entry entry() { return axes_groups_kernel<M, Vectors>; }
};

} // namespace

const void *dpr_axes_groups(const dpr_key *key, bool in_vectors) {
    return in_vectors ? instances<groups_family<true>, axes_entry>::of(key)
                      : instances<groups_family<false>, axes_entry>::of(key);
}

} // namespace dpr
