/* The kernels of segments.group for the operations of measures.cuh. */
#include "family.cuh"
#include "operation.cuh"
#include "segments_rounds.cuh"

namespace dpr {
namespace {

constexpr unsigned group_warps = group_threads / 32;

/* What a block does for one operation (segments_rounds.cuh). */
template <class O> struct measure_worker {
    using storage = typename O::M::storage;
    using value = dpr_acc;
    static constexpr int words = O::M::words;
    struct row {
        uint64_t w[words];
    };
    const dpr_segment_args &args;
    uint64_t *of_warp; /* in shared memory: room for an accumulator of each warp */

    using unit = packet<storage>;
    /* Loads of a thread in flight: of elements, and of vectors. More would take too many registers, of which VAR has
     * the fewest to spare. */
    static constexpr bool has_few = O::M::takes_all;
    static constexpr unsigned some = has_few ? 2 : 4, vectors = unit::size < 8 && !has_few ? 2 : 1;

    /* Reads elements, or whole vectors if that is most of the segment. */
    __device__ dpr_acc read(segment_range r, unsigned lane, unsigned step) const {
        const storage *in = static_cast<const storage *>(args.run.in) + r.first;
        const unsigned bytes = reinterpret_cast<uintptr_t>(in) % sizeof(unit),
                       head = (sizeof(unit) - bytes) % sizeof(unit) / sizeof(storage);
        accumulation<O> a;
        uint64_t i = lane, skipped = 0; /* elements in vectors, which begin behind the first `head` */
        if (unit::size > 1 && bytes % sizeof(storage) == 0 && r.count >= uint64_t{vectors + 1} * unit::size * step) {
            const uint64_t n = (r.count - head) / unit::size;
            read_vectors(a, reinterpret_cast<const unit *>(in + head), n, lane, step);
            skipped = n * unit::size;
        } else {
            i = read_most(a, in, r.count, lane, step);
        }
#pragma unroll 1
        for (; i < r.count - skipped; i += step) {
            const storage x = in[i < head ? i : i + skipped];
            a.template add<1>([&](int) { return x; });
        }
        return a.general();
    }

    __device__ static void read_vectors(accumulation<O> &a, const unit *in, uint64_t n, unsigned lane, unsigned step) {
        uint64_t i = lane;
#pragma unroll 1
        for (unsigned at_once = vectors; i < n; i += at_once * step) {
            unit v[vectors];
            at_once = i + (vectors - 1) * step < n ? vectors : 1;
#pragma unroll
            for (unsigned k = 0; k < vectors; ++k)
                if (k < at_once)
                    v[k] = array_view<storage>::template load<false>(in + i + k * step);
#pragma unroll
            for (unsigned k = 0; k < vectors; ++k)
                if (k < at_once)
                    a.template add<unit::size>([&](int e) { return v[k][e]; });
        }
    }

    /* Returns the index of the thread's first element that is left. */
    __device__ static uint64_t read_most(accumulation<O> &a, const storage *in, uint64_t n, unsigned lane,
                                         unsigned step) {
        uint64_t i = lane;
#pragma unroll 1
        for (; i + (some - 1) * step < n; i += some * step) {
            storage e[some];
#pragma unroll
            for (unsigned k = 0; k < some; ++k)
                e[k] = in[i + k * step];
            a.template add<some>([&](int k) { return e[k]; });
        }
        return i;
    }

    /* There is one place that merges, because the code is long. */
    __device__ dpr_acc merge(dpr_acc a, unsigned size) const {
        unsigned n = 1, lanes = size < 32 ? size : 32;
        if (size == 1)
            return a;
#pragma unroll 1
        for (bool of_warps = false;; of_warps = true) {
            a = merge_lanes<O::op, O::dtype>(n, lanes, [&](unsigned) { return a; });
            if (size <= 32 || of_warps)
                return a;
            if (threadIdx.x % 32 == 0)
                dpr_acc_store(O::op, O::dtype, &a, of_warp + threadIdx.x / 32 * words);
            __syncthreads();
            lanes = group_warps;
            n = threadIdx.x < lanes;
            if (n > 0)
                a = dpr_acc_load(O::op, O::dtype, 1, of_warp + threadIdx.x * words);
            __syncthreads(); /* before the next accumulators are stored */
        }
    }

    __device__ dpr_acc gather(row_range<row> rows) const {
        dpr_acc a = dpr_acc_neutral(O::op, O::dtype);
#pragma unroll 1
        for (unsigned i = 0; i < rows.share(); ++i) {
            const dpr_acc next = dpr_acc_load(O::op, O::dtype, 1, rows[i].w);
            dpr_acc_combine(O::op, O::dtype, &a, &next);
        }
        return a;
    }

    __device__ row row_of(const dpr_acc &a) const {
        row r;
        dpr_acc_store(O::op, O::dtype, &a, r.w);
        return r;
    }

    __device__ void write(uint64_t i, segment_range r, const dpr_acc &a) const {
        constexpr int partial_words = DPR_PARTIAL_HEAD + words;
        auto *out = static_cast<result_values<O::op, O::dtype> *>(args.run.out);
        if (args.run.init.present == DPR_PARTIAL_WANTED)
            write_partial_measure<O>(args.run.init, static_cast<uint64_t *>(args.run.out) + i * partial_words, r.count,
                                     a);
        else
            write_measure<O>(args.run.init, out + i, r.count, a);
    }
};

/* Blocks on an SM that have enough registers. With two instead of three, short segments take 1.7 times as long
 * (H100). */
template <dpr_dtype D> constexpr int measure_blocks = element<D>::kind &DPR_KIND_COMPLEX ? 2 : 3;

template <dpr_dtype D, dpr_nan N>
__global__ void __launch_bounds__(group_threads, measure_blocks<D>)
    measures_kernel(const __grid_constant__ dpr_segment_args args) {
    __shared__ uint64_t of_warp[group_warps * DPR_ACC_WORDS];
    const auto work = [&](auto o) { reduce_segments(args, measure_worker<decltype(o)>{args, of_warp}); };
    let_next_launch();
    wait_for_work_before();
    call_operation<true, D, N>(args.op, work);
}

struct measures_family {
    using instance = const void *;
    template <dpr_dtype D, dpr_nan N> static constexpr instance of() {
        return reinterpret_cast<const void *>(&measures_kernel<D, N>);
    }
};

} // namespace

const void *dpr_segments_measures(const dpr_key *key) {
    return *type_instances<measures_family>::of(key);
}

} // namespace dpr
