/* flat.packed: every block adds its partial result and, in the upper bits of the same 64-bit word, its arrival. The
 * block that arrives last has the result; no partial results are stored or read again. The strategy takes sums of
 * integers and operations that count, because these do not depend on the order. */
#include "cost.h"
#include "family.cuh"
#include "finish.cuh"

namespace dpr {
namespace {

/* A word has the number of arrivals in the upper bits, and the sum of what they have added in the lower bits. */
constexpr int arrival_shift = 52;
constexpr uint64_t arrival = uint64_t{1} << arrival_shift;
constexpr int most_arrivals = 1 << (64 - arrival_shift - 1);

/* Adds this block's part, and returns the word's new value. */
__device__ uint64_t arrive(uint64_t *word, uint64_t part) {
    const uint64_t added = arrival + part;
    return cuda::atomic_ref<uint64_t, cuda::thread_scope_device>(*word).fetch_add(added, cuda::memory_order_relaxed)
           + added;
}

__device__ bool is_complete(uint64_t word) {
    return word >> arrival_shift == gridDim.x;
}

__device__ uint64_t sum_in(uint64_t word) {
    return word & (arrival - 1);
}

/* How an operation's accumulators are added: not at all, in one word, or, because they may take all 64 bits, in two
 * words, each for 32 of the bits. There 2^11 blocks add up to at most 2^43. */
enum class packing { none, whole, halves };

template <class M> constexpr packing packing_of = packing::none;
template <dpr_dtype D, dpr_nan N>
constexpr packing packing_of<monoid<DPR_SUM, D, N>> = is_float<D> || is_complex<D> ? packing::none : packing::halves;
template <dpr_dtype D, dpr_nan N> constexpr packing packing_of<monoid<DPR_COUNT, D, N>> = packing::whole;
template <dpr_dtype D, dpr_nan N> constexpr packing packing_of<monoid<DPR_ALL, D, N>> = packing::whole;
template <dpr_dtype D, dpr_nan N> constexpr packing packing_of<monoid<DPR_ANY, D, N>> = packing::whole;

/* Adds the block's accumulator; the last block to arrive writes the result. One thread of each block calls it. */
template <class M> __device__ void add_up(const dpr_kernel_args &args, uint64_t count, typename M::acc a) {
    constexpr bool halves = packing_of<M> == packing::halves;
    uint64_t *words = static_cast<uint64_t *>(args.scratch);
    uint64_t high = 0;
    if constexpr (halves)
        high = arrive(&words[1], static_cast<uint64_t>(a) >> 32);
    const uint64_t low = arrive(&words[0], halves ? a & 0xffffffff : a);
    if (!is_complete(low))
        return;
    uint64_t sum = sum_in(low);
    if constexpr (halves) {
        /* All other blocks have added to the upper word before the lower one, but it may take a moment until that is
         * visible. */
        const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> word(words[1]);
        while (!is_complete(high))
            high = word.load(cuda::memory_order_relaxed);
        sum += sum_in(high) << 32;
        words[1] = 0;
    }
    words[0] = 0;
    write_result<M>(args, count, static_cast<typename M::acc>(sum));
}

template <class M>
__global__ void __launch_bounds__(most_threads, 1) packed_kernel(const __grid_constant__ dpr_kernel_args args) {
    const thread_slice<M> mine = begin<M>(args);
    const auto x = reduce_block<M>(reduce_slice<M>(args, mine));
    if (threadIdx.x == 0)
        add_up<M>(args, mine.d.count, partial<M>::unpack(x));
}

struct packed_family {
    template <class M> static constexpr kernel_entry entry() {
        if constexpr (packing_of<M> != packing::none)
            return packed_kernel<M>;
        else
            return nullptr;
    }
};

using strategy = block_per_sm<packed_family, most_arrivals>;

const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!instances<packed_family>::of(key))
        return "the operation's partial results are not integers that add up";
    return strategy::probe(key, caps);
}

dpr_cost cost(const dpr_key *key, const dpr_caps *, dpr_size size) {
    const double ends = 0.68e-6; /* seconds in addition to reading, on an H200 */
    return {DPR_LAUNCH_SECONDS + ends, dpr_array_bytes(key, size), 0};
}

} // namespace
} // namespace dpr

extern "C" const dpr_strategy dpr_flat_packed;
const dpr_strategy dpr_flat_packed = {
    .name = "flat.packed",
    .text = "all SMs read; one atomic addition carries a partial result and counts arrivals",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_CANDIDATE,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = dpr::probe,
    .cost = dpr::cost,
    .kernel = dpr::strategy::kernel,
    .limits = dpr::strategy::limits,
    .launch = dpr::strategy::launch,
};
