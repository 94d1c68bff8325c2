/* One operation of a kernel that runs operations which it gets as arguments: how a thread's accumulator takes elements,
 * how the lanes of a warp merge their accumulators with the algebra of acc.h, and how one becomes a result. */
#ifndef DPR_CORE_OPERATION_CUH
#define DPR_CORE_OPERATION_CUH

#include "domain.cuh"
#include "measures.cuh"

namespace dpr {

template <dpr_op O, dpr_dtype D> constexpr bool is_valid = domain_has(O, element<D>::kind);
template <dpr_op O> constexpr bool is_measure = !has_own_kernels(O);

/* One operation of the kernel. An accumulator of a thread may lie in shared memory: `words` words that are 32 apart,
 * because the words of the other threads of its warp lie between them. */
template <dpr_op O, dpr_dtype D, dpr_nan N> struct operation {
    using M = monoid<O, D, N>;
    using A = typename M::acc;
    static constexpr dpr_op op = O;
    static constexpr dpr_dtype dtype = D;
    static constexpr dpr_nan nan = N;
    static constexpr int words = (sizeof(A) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    static_assert(M::words == dpr_acc_words(O, D));

    static __device__ A load(const uint64_t *own) {
        uint64_t w[words];
        A a;
#pragma unroll
        for (int i = 0; i < words; ++i)
            w[i] = own[i * 32];
        memcpy(&a, w, sizeof a);
        return a;
    }

    static __device__ void store(uint64_t *own, const A &a) {
        uint64_t w[words] = {};
        memcpy(w, &a, sizeof a);
#pragma unroll
        for (int i = 0; i < words; ++i)
            own[i * 32] = w[i];
    }

    static __device__ tile_of<M> tile_after(const A &a) {
        if constexpr (M::takes_all)
            return tile_of<M>(a);
        else
            return {};
    }

    static __device__ A with_element(const A &a, typename M::storage x, uint64_t index) {
        if constexpr (M::takes_all)
            return M::add(a, x);
        else
            return M::merge(a, partial<M>::unpack(partial<M>::of_element(x, index)));
    }

    /* Adds K elements, of which at(k) is number k. Not for ARGMIN and ARGMAX, which need indices. */
    template <int K, class Elements> static __device__ A with_elements(const A &a, Elements at) {
        if constexpr (M::takes_all) {
            return M::template with<K>(a, at);
        } else {
            typename M::lane l = M::lane_identity();
#pragma unroll
            for (int k = 0; k < K; ++k)
                l = M::add(l, at(k));
            return M::fold(a, l);
        }
    }

    /* False if no element of these K vectors can take the place of the one that ARGMIN or ARGMAX has found. That is so
     * for most tiles, and the best element alone takes fewer instructions than its index. `first` is the lowest index
     * of the vectors. */
    template <int K>
    static __device__ bool may_change(const A &a, const packet<typename M::storage> *p, uint64_t first) {
        using extremum = monoid<O == DPR_ARGMIN ? DPR_MIN : DPR_MAX, D, N>;
        tile_of<extremum> tile;
        add_vectors<K, extremum>(tile, p, 0);
        const A best = {tile.fold_into(extremum::identity(), 0), first};
        return M::merge(a, best).index != a.index;
    }

    /* The accumulator in the form of acc.h. An index is still that of a vector's first element (locate() in
     * flat_fused.cu). */
    static __device__ dpr_acc general(const A &a) {
        uint64_t w[M::words];
        if constexpr (M::holds_index)
            M::store(a, w, 0);
        else
            M::store(a, w);
        return dpr_acc_load(O, D, 1, w);
    }
};

/* Calls f(operation) if the operation is valid for the type. */
template <dpr_op O, dpr_dtype D, dpr_nan N, class F> __device__ void call_valid(F &f) {
    if constexpr (is_valid<O, D>)
        f(operation<O, D, N>());
}

/* The same for the operation of this row; if MeasuresAlone, only if it is one of measures.cuh. It jumps to the code,
 * because with branches the SM would load the code of all other operations, too. */
template <bool MeasuresAlone, dpr_dtype D, dpr_nan N, class F> __device__ void call_operation(unsigned row, F f) {
    switch (row) {
#define DPR_CASE_CALL(A, NAME, ...)                                                                                    \
    case DPR_ROW(DPR_##NAME):                                                                                          \
        if constexpr (!MeasuresAlone || is_measure<DPR_##NAME>)                                                        \
            call_valid<DPR_##NAME, D, N>(f);                                                                           \
        break;
        DPR_OP_LIST(DPR_CASE_CALL, _)
#undef DPR_CASE_CALL
    }
}

/* ---- Reading ---- */

/* The accumulator of a thread that reads elements a few at a time. */
template <class O> class accumulation {
    typename O::A a = O::M::identity();
    uint64_t seen = 0, next_recentring = 1; /* elements */

  public:
    /* Adds K elements, of which at(k) is number k. */
    template <int K, class Elements> __device__ void add(Elements at) {
        if constexpr (O::M::takes_all) { /* moves the point of VAR to the mean of the elements so far (measures.cuh) */
            if (seen >= next_recentring) {
                a = O::M::recentred(a);
                next_recentring = 4 * seen;
            }
            seen += K;
        }
        a = O::template with_elements<K>(a, at);
    }

    __device__ dpr_acc general() const { return O::general(a); }
};

/* ---- Merging ---- */

template <dpr_op O, dpr_dtype D, class At> __device__ dpr_acc merge_as_tree(unsigned n, unsigned lanes, At at) {
    constexpr int words = dpr_acc_words(O, D);
    dpr_acc a = dpr_acc_neutral(O, D);
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        const dpr_acc next = at(i);
        dpr_acc_combine(O, D, &a, &next);
    }
#pragma unroll 1
    for (unsigned delta = lanes / 2; delta > 0; delta /= 2) {
        uint64_t w[words];
        dpr_acc_store(O, D, &a, w);
#pragma unroll
        for (int i = 0; i < words; ++i)
            w[i] = __shfl_down_sync(~0u, w[i], delta);
        const dpr_acc next = dpr_acc_load(O, D, 1, w);
        dpr_acc_combine(O, D, &a, &next);
    }
    return a;
}

/* Merges accumulators in a warp in an order that depends only on their number: each lane has `n`, which at(i) returns,
 * and the first `lanes` lanes (a power of two) have all of them. The result is valid in lane 0. If all lanes have some,
 * each group of `lanes` neighbours merges its own, and the results are valid in the first lane of each group. */
template <dpr_op O, dpr_dtype D, class At> __device__ dpr_acc merge_lanes(unsigned n, unsigned lanes, At at) {
    if constexpr (O == DPR_VAR)
        return merge_variances<D>(n, lanes, at);
    else
        return merge_as_tree<O, D>(n, lanes, at);
}

/* ---- Finishing ---- */

/* Completes the accumulator of `count` elements: counts the elements of a mean, and makes the variance of infinities
 * NaN. */
template <dpr_op O, dpr_dtype D, dpr_nan N> __device__ void complete(uint64_t count, dpr_acc &acc) {
    if (O == DPR_MEAN && (N == DPR_NAN_PROPAGATE || is_whole<D>))
        acc.present = count;
    if (O == DPR_VAR && is_narrow<D> && !isfinite(acc.squares))
        acc.squares = NAN;
}

/* The result of an operation, as it lies in memory. */
template <dpr_op O, dpr_dtype D> struct result_values { storage_of<dpr_pair_result(O, D)> value[dpr_op_values(O)]; };

/* Completes `acc`, which has `count` elements, and writes its partial result to `to`. `init` holds a dpr_wanted. */
template <class O>
__device__ void write_partial_measure(const dpr_init &init, uint64_t *to, uint64_t count, dpr_acc acc) {
    dpr_wanted wanted;
    memcpy(&wanted, init.bytes, sizeof wanted);
    complete<O::op, O::dtype, O::nan>(count, acc);
    to[0] = wanted.label;
    to[1] = count;
    dpr_acc_store(O::op, O::dtype, &acc, to + DPR_PARTIAL_HEAD);
}

/* Completes `acc`, which has `count` elements, and writes its result to `to`. Not for ARGMIN, ARGMAX and PROD. */
template <class O> __device__ void write_measure(const dpr_init &init, void *to, uint64_t count, dpr_acc acc) {
    result_values<O::op, O::dtype> result;
    complete<O::op, O::dtype, O::nan>(count, acc);
    dpr_acc_add_init(O::op, O::dtype, O::nan, &acc, &init);
    dpr_acc_write(O::op, O::dtype, &acc, &init, result.value);
    *static_cast<result_values<O::op, O::dtype> *>(to) = result;
}

} // namespace dpr

#endif
