/* atomic.*: threads add to one word of device memory by atomics. The strategies differ in how much is added up before.
 * They take only operations whose result does not depend on the order, because the order differs from run to run. */
#include <cuda/atomic>

#include "demonstration.cuh"
#include "finish.cuh"
#include "strided.cuh"

namespace dpr {
namespace {

/* How the word represents an accumulator. Zero means "nothing yet": sums are stored as they are, minima and maxima as
 * their distance from the worst key. */
template <class M> struct word_form;

template <dpr_dtype D, dpr_nan N> struct word_form<monoid<DPR_SUM, D, N>> {
    using acc = typename monoid<DPR_SUM, D, N>::acc;
    static __device__ uint64_t of(acc a) { return a; }
    static __device__ acc value(uint64_t word) { return word; }

    template <cuda::thread_scope Scope> static __device__ void add(uint64_t *word, acc a) {
        cuda::atomic_ref<uint64_t, Scope>(*word).fetch_add(of(a), cuda::memory_order_relaxed);
    }
};

template <bool Least, dpr_dtype D, dpr_nan N> struct extreme_form {
    using by = order<Least, D>;
    using acc = typename by::key;

    static __device__ uint64_t of(acc a) {
        const auto key = static_cast<uint64_t>(static_cast<int64_t>(a));
        const auto worst = static_cast<uint64_t>(static_cast<int64_t>(by::worst));
        return Least ? worst - key : key - worst;
    }

    static __device__ acc value(uint64_t word) {
        const auto worst = static_cast<uint64_t>(static_cast<int64_t>(by::worst));
        return static_cast<acc>(Least ? worst - word : worst + word);
    }

    template <cuda::thread_scope Scope> static __device__ void add(uint64_t *word, acc a) {
        cuda::atomic_ref<uint64_t, Scope>(*word).fetch_max(of(a), cuda::memory_order_relaxed);
    }
};

template <dpr_dtype D, dpr_nan N> struct word_form<monoid<DPR_MIN, D, N>> : extreme_form<true, D, N> {};
template <dpr_dtype D, dpr_nan N> struct word_form<monoid<DPR_MAX, D, N>> : extreme_form<false, D, N> {};

template <class M> constexpr bool is_ordered_sum = false;
template <dpr_dtype D, dpr_nan N> constexpr bool is_ordered_sum<monoid<DPR_SUM, D, N>> = is_float<D>;

/* ---- What is added up before the atomic ---- */

/* All threads of the grid call give(), which calls add(a) in each thread that has a value `a` for the word. */

/* Adds every element by itself. */
struct each_element {
    template <class M, class Add> static __device__ void give(const typename M::storage *in, uint64_t count, Add add) {
        using X = partial<M>;
        for (uint64_t i = thread_of_grid(); i < count; i += threads_of_grid())
            add(X::unpack(X::of_element(in[i], i)));
    }
};

constexpr unsigned loads = 16; /* loads in flight a thread */

template <class M> __device__ typename M::acc of_thread(const typename M::storage *in, uint64_t count) {
    using X = partial<M>;
    const unsigned stride = threads_of_grid();
    typename M::acc a = M::identity();
    typename X::type sum[1];
    uint64_t i = thread_of_grid();
    /* i | 31 is the index of the warp's last thread, so that the warp stays together. */
    while (strides_on(i | 31, loads - 1, stride) < count) {
        strided<M, loads> mine;
        mine.load(in, i, stride);
        __syncwarp(); /* without this, the compiler waits for the first load before it issues the last */
        mine.sums(sum);
        a = M::merge(a, X::unpack(sum[0]));
        i = strides_on(i, loads, stride);
    }
    sums_of_last<M, loads>(sum, in, i, stride, count);
    return M::merge(a, X::unpack(sum[0]));
}

/* Adds what each thread has added up in registers. */
struct each_thread {
    template <class M, class Add> static __device__ void give(const typename M::storage *in, uint64_t count, Add add) {
        add(of_thread<M>(in, count));
    }
};

/* Adds up the elements of a warp. The hardware's sums have 32 bits, so the upper and the lower 16 bits are added up
 * separately, which cannot overflow. It is a template, because devices before compute capability 8.0 do not have the
 * instruction. */
template <class T> __device__ uint64_t sum_in_hardware(T x) {
    static_assert(sizeof x == sizeof(int32_t));
    const uint64_t low = __reduce_add_sync(~0u, static_cast<cuda::std::make_unsigned_t<T>>(x) & 0xffff);
    const int64_t high = __reduce_add_sync(~0u, x >> 16);
    return (static_cast<uint64_t>(high) << 16) + low;
}

/* Adds sums of 32 elements, which a warp has read together. */
struct each_warp {
    template <class M, class Add> static __device__ void give(const typename M::storage *in, uint64_t count, Add add) {
        using X = partial<M>;
        const unsigned lane = threadIdx.x % 32;
        for (uint64_t first = thread_of_grid() - lane; first < count; first += threads_of_grid()) {
            const bool there = first + lane < count;
            typename M::acc a;
            if constexpr (has_redux && is_sum_of_i32<M>)
                a = sum_in_hardware(there ? in[first + lane] : 0);
            else
                a = X::unpack(reduce_warp<M>(there ? X::of_element(in[first + lane], first + lane) : X::identity()));
            if (lane == 0)
                add(a);
        }
    }
};

/* Adds what each block has added up by atomics in shared memory. */
struct each_block {
    template <class M, class Add> static __device__ void give(const typename M::storage *in, uint64_t count, Add add) {
        __shared__ uint64_t word;
        if (threadIdx.x == 0)
            word = 0;
        __syncthreads();
        word_form<M>::template add<cuda::thread_scope_block>(&word, of_thread<M>(in, count));
        __syncthreads();
        if (threadIdx.x == 0)
            add(word_form<M>::value(word));
    }
};

/* Adds what each block has added up by shuffles. */
struct each_reduced_block {
    template <class M, class Add> static __device__ void give(const typename M::storage *in, uint64_t count, Add add) {
        const auto x = reduce_block<M>(partial<M>::pack(of_thread<M>(in, count)));
        if (threadIdx.x == 0)
            add(partial<M>::unpack(x));
    }
};

/* ---- How a value is added to the word ---- */

struct natively {
    template <class M> static __device__ void add(uint64_t *word, typename M::acc a) {
        word_form<M>::template add<cuda::thread_scope_device>(word, a);
    }
};

/* Adds by a loop of compare-and-swap, which works for any operation: a thread calculates the new word and stores it if
 * no other thread has changed the word meanwhile. */
struct by_compare_and_swap {
    template <class M> static __device__ void add(uint64_t *word, typename M::acc a) {
        using form = word_form<M>;
        const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> at(*word);
        uint64_t old = at.load(cuda::memory_order_relaxed);
        while (!at.compare_exchange_weak(old, form::of(M::merge(form::value(old), a)), cuda::memory_order_relaxed)) {}
    }
};

/* Scratch memory has the word, and the number of blocks that have arrived. */
template <class M, class Before, class How>
__global__ void __launch_bounds__(most_threads, 1) atomic_kernel(const __grid_constant__ dpr_kernel_args args) {
    let_next_launch();
    wait_for_work_before();
    const uint64_t count = elements(args);
    uint64_t *word = static_cast<uint64_t *>(args.scratch), *arrived = word + 1;
    Before::template give<M>(static_cast<const typename M::storage *>(args.in), count,
                             [&](typename M::acc a) { How::template add<M>(word, a); });
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> arrivals(*arrived), sum(*word);
    if (arrivals.fetch_add(1, cuda::memory_order_acq_rel) != gridDim.x - 1)
        return;
    const typename M::acc a = word_form<M>::value(sum.load(cuda::memory_order_relaxed));
    *word = 0;
    *arrived = 0;
    write_result<M>(args, count, a);
}

template <class Before, class How> struct form : demonstrated_form {
    template <class M> static constexpr kernel_entry entry() {
        if constexpr (is_demonstrated<M> && !is_ordered_sum<M>)
            return atomic_kernel<M, Before, How>;
        else
            return nullptr;
    }
    static const void *of(const dpr_key *key) { return instances<form>::of(key); }
    static const char *why_not(const dpr_key *key) {
        const bool float_sum =
            dpr_kernel_row(key) == DPR_ROW(DPR_SUM) && (dpr_key_dtype(key) == DPR_F32 || dpr_key_dtype(key) == DPR_F64);
        return float_sum ? "atomics add in another order each time, and a sum of floats depends on it"
                         : why_not_demonstrated;
    }
};

/* Bytes of the smallest element: there are as many threads as elements before any thread gets a second one. */
constexpr unsigned bytes_of_atomics = sizeof(int32_t);

template <class Before, class How, int ThreadsPerSm = 0>
using strategy = demonstration<form<Before, How>, bytes_of_atomics, INT32_MAX, ThreadsPerSm>;

/* Most threads an SM where the number of atomics grows with that of threads or blocks: as many as reading needs, an
 * estimate. Atomics on one word wait for each other. */
constexpr int enough_to_read = 512;

using global = strategy<each_element, natively>;
using in_thread = strategy<each_thread, natively, enough_to_read>;
using warp = strategy<each_warp, natively>;
using block = strategy<each_block, natively, enough_to_read>;
using cas = strategy<each_reduced_block, by_compare_and_swap, enough_to_read>;

} // namespace
} // namespace dpr

DPR_DEMONSTRATION(atomic_global, "atomic.global", dpr::global, 0.001, "every element by an atomic of its own")
DPR_DEMONSTRATION(atomic_thread, "atomic.thread", dpr::in_thread, 0.8,
                  "threads add up in registers, and make one atomic each")
DPR_DEMONSTRATION(atomic_warp, "atomic.warp", dpr::warp, 0.035, "warps add up 32 elements, and make one atomic of it")
DPR_DEMONSTRATION(atomic_block, "atomic.block", dpr::block, 0.93,
                  "blocks add up by atomics in shared memory, and make one in device memory")
DPR_DEMONSTRATION(atomic_cas, "atomic.cas", dpr::cas, 0.83,
                  "blocks add up by shuffles, and make one compare-and-swap: for any operation")
