#include "launcher_kernels.h"

#include <cuda_runtime.h>

#include "dpr_nested.cuh"

namespace {

static_assert(static_cast<int>(dpr::outcome::launched) == LAUNCHER_LAUNCHED
              && static_cast<int>(dpr::outcome::in_line) == LAUNCHER_IN_LINE
              && static_cast<int>(dpr::outcome::left) == LAUNCHER_LEFT
              && static_cast<int>(dpr::outcome::waiting) == LAUNCHER_WAITING);

constexpr unsigned block = 128;

unsigned blocks_for(unsigned n) {
    return (n + block - 1) / block;
}

__device__ unsigned thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

/* Compares what it is told with what is in memory. */
template <class R> struct check {
    launcher_call *call;

    __device__ void operator()(R told) const {
        R found;
        memcpy(&found, call->result, sizeof found);
        const auto *a = reinterpret_cast<const unsigned char *>(&told);
        const auto *b = reinterpret_cast<const unsigned char *>(&found);
        bool same = true;
        for (size_t i = 0; i < sizeof(R); ++i)
            same &= a[i] == b[i];
        atomicAdd(same ? &call->followed : &call->misled, 1);
    }
};

template <dpr_op O, dpr_dtype D, dpr_nan N>
__global__ void ask(dpr_launcher launcher, launcher_form form, launcher_call *calls, unsigned n) {
    using R = dpr::result_of<O, D>;
    if (thread() >= n)
        return;
    launcher_call &call = calls[thread()];
    const auto *in = static_cast<const dpr::storage_of<D> *>(call.in);
    R *out = reinterpret_cast<R *>(call.result);
    const dpr::outcome came =
        form == LAUNCHER_AT_ONCE
            ? dpr::nested_reduce<O, D, N>(launcher, in, out, call.count, check<R>{&call})
            : dpr::tail_reduce<O, D, N>(launcher, &call.ticket, in, out, call.count, check<R>{&call});
    call.outcome = static_cast<uint32_t>(came);
}

__global__ void ask_for_written(dpr_launcher launcher, launcher_call *call) {
    auto *to = static_cast<int32_t *>(const_cast<void *>(call->in));
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const unsigned mine = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    for (uint64_t i = mine * blockDim.x + threadIdx.x; i < call->count; i += blocks * blockDim.x)
        to[i] = static_cast<int32_t>(i);
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    auto *out = reinterpret_cast<int64_t *>(call->result);
    const dpr::outcome came =
        dpr::tail_reduce<DPR_SUM, DPR_I32>(launcher, &call->ticket, to, out, call->count, check<int64_t>{call});
    if (came != dpr::outcome::left)
        call->outcome = static_cast<uint32_t>(came);
}

/* Asks for the same sum again. */
struct once_more {
    launcher_call *call;

    __device__ void operator()(int64_t, const dpr_launcher &launcher) const {
        const auto *in = static_cast<const int32_t *>(call->in);
        auto *out = reinterpret_cast<int64_t *>(call->result);
        call->outcome = static_cast<uint32_t>(
            dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, out, call->count, check<int64_t>{call}));
    }
};

__global__ void ask_twice(dpr_launcher launcher, launcher_call *calls, unsigned n, int64_t *sums) {
    if (thread() >= n)
        return;
    launcher_call &call = calls[thread()];
    const auto *in = static_cast<const int32_t *>(call.in);
    dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, sums + thread(), call.count, once_more{&call});
}

struct sum_of_sums {
    const int64_t *sums;
    unsigned *arrived;
    unsigned n;
    launcher_call *total;

    __device__ void operator()(int64_t, const dpr_launcher &launcher) const {
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrivals(*arrived);
        if (arrivals.fetch_add(1, cuda::memory_order_acq_rel) != n - 1)
            return;
        auto *out = reinterpret_cast<int64_t *>(total->result);
        total->outcome =
            static_cast<uint32_t>(dpr::nested_reduce<DPR_SUM, DPR_I64>(launcher, sums, out, n, check<int64_t>{total}));
    }
};

__global__ void ask_in_two_steps(dpr_launcher launcher, sum_of_sums then, const launcher_call *calls, int64_t *sums) {
    if (thread() >= then.n)
        return;
    const launcher_call &call = calls[thread()];
    const auto *in = static_cast<const int32_t *>(call.in);
    dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, sums + thread(), call.count, then);
}

/* ---- Down by continuations ---- */

/* Results go where nobody reads them but the continuation, which is told them. */
struct way_down {
    const int32_t *in;
    unsigned long long *sums;
    unsigned left, fan; /* levels */
    launcher_side side;

    __device__ void operator()(int64_t sum, const dpr_launcher &launcher) const {
        atomicAdd(&sums[0], static_cast<unsigned long long>(sum));
        atomicAdd(&sums[1], 1ull);
        for (unsigned i = 0; i < fan && left > 0; ++i) {
            const bool goes_on = side == LAUNCHER_EVEN || i == (side == LAUNCHER_DEEP_FIRST ? 0 : fan - 1);
            ask(launcher, goes_on ? left - 1 : 0);
        }
    }

    __device__ void ask(const dpr_launcher &launcher, unsigned levels) const {
        way_down next = *this;
        next.left = levels;
        dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, reinterpret_cast<int64_t *>(sums + 2), 2, next);
    }
};

__global__ void go_down(dpr_launcher launcher, way_down from, unsigned threads) {
    if (thread() < threads)
        from.ask(launcher, from.left);
}

/* ---- The pairs ---- */

#define PAIRS_OF_NUMBERS(X, DTYPE)                                                                                     \
    X(SUM, DTYPE, PROPAGATE)                                                                                           \
    X(MIN, DTYPE, PROPAGATE)                                                                                           \
    X(MAX, DTYPE, PROPAGATE)                                                                                           \
    X(ARGMIN, DTYPE, PROPAGATE)                                                                                        \
    X(COUNT, DTYPE, PROPAGATE)
#define PAIRS(X)                                                                                                       \
    PAIRS_OF_NUMBERS(X, U8)                                                                                            \
    PAIRS_OF_NUMBERS(X, I32)                                                                                           \
    PAIRS_OF_NUMBERS(X, F32)                                                                                           \
    PAIRS_OF_NUMBERS(X, F64)                                                                                           \
    X(SUM, C64, PROPAGATE)                                                                                             \
    X(COUNT, C64, PROPAGATE)                                                                                           \
    X(SUM, C128, PROPAGATE)                                                                                            \
    X(SUM, F16, PROPAGATE)                                                                                             \
    X(MIN, F16, IGNORE)                                                                                                \
    X(SUM, BF16, IGNORE)                                                                                               \
    X(ARGMAX, BF16, PROPAGATE)                                                                                         \
    X(SUM, F32, IGNORE)                                                                                                \
    X(ARGMIN, F32, IGNORE)                                                                                             \
    X(MAX, F64, IGNORE)                                                                                                \
    X(COUNT, F64, IGNORE)                                                                                              \
    X(PROD, I64, PROPAGATE)                                                                                            \
    X(PROD, F64, PROPAGATE)

#define PAIR(OP, DTYPE, NAN_POLICY) {DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN_POLICY},
const launcher_pair pairs[] = {PAIRS(PAIR)};

#define KERNEL(OP, DTYPE, NAN_POLICY) ask<DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN_POLICY>,
using ask_kernel = void (*)(dpr_launcher, launcher_form, launcher_call *, unsigned);
const ask_kernel kernels[] = {PAIRS(KERNEL)};

} // namespace

const launcher_pair *launcher_pairs(size_t *count) {
    *count = sizeof pairs / sizeof pairs[0];
    return pairs;
}

int launcher_ask(const dpr_launcher *launcher, const launcher_pair *pair, launcher_form form, launcher_call *calls,
                 unsigned n, dpr_stream stream) {
    kernels[pair - pairs]<<<blocks_for(n), block, 0, stream>>>(*launcher, form, calls, n);
    return static_cast<int>(cudaGetLastError());
}

int launcher_ask_for_written(const dpr_launcher *launcher, launcher_call *call, dpr_stream stream) {
    ask_for_written<<<dim3(66, 2, 2), block, 0, stream>>>(*launcher, call);
    return static_cast<int>(cudaGetLastError());
}

int launcher_ask_twice(const dpr_launcher *launcher, launcher_call *calls, unsigned n, int64_t *sums,
                       dpr_stream stream) {
    ask_twice<<<blocks_for(n), block, 0, stream>>>(*launcher, calls, n, sums);
    return static_cast<int>(cudaGetLastError());
}

int launcher_go_down(const dpr_launcher *launcher, const int32_t *in, unsigned threads, unsigned depth, unsigned fan,
                     launcher_side side, int64_t *sums, dpr_stream stream) {
    const way_down from = {in, reinterpret_cast<unsigned long long *>(sums), depth, fan, side};
    go_down<<<blocks_for(threads), block, 0, stream>>>(*launcher, from, threads);
    return static_cast<int>(cudaGetLastError());
}

int launcher_ask_in_two_steps(const dpr_launcher *launcher, launcher_call *calls, unsigned n, int64_t *sums,
                              unsigned *arrived, launcher_call *total, dpr_stream stream) {
    ask_in_two_steps<<<blocks_for(n), block, 0, stream>>>(*launcher, {sums, arrived, n, total}, calls, sums);
    return static_cast<int>(cudaGetLastError());
}
