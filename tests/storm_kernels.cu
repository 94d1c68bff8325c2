#include "storm_kernels.h"

#include "dpr_nested.cuh"

namespace {

/* What the threads of one storm share. */
struct storm {
    const int32_t *x;
    const storm_row *rows;
    int64_t *sums;
    unsigned n;
};

/* A continuation that asks for the thread's next sum. */
struct once_more {
    storm of;
    unsigned thread, level; /* sums that came before */

    __device__ void operator()(int64_t, const dpr_launcher &launcher) const;
};

__device__ void ask(const dpr_launcher &launcher, const once_more &by) {
    const storm_row &row = by.of.rows[storm_row_of(by.thread, by.level, by.of.n)];
    const int32_t *in = by.of.x + row.first;
    int64_t *out = by.of.sums + static_cast<size_t>(by.level) * by.of.n + by.thread;
    if (by.level < by.of.rows[by.thread].again)
        dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, out, row.count, once_more{by.of, by.thread, by.level + 1});
    else
        dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, in, out, row.count);
}

__device__ void once_more::operator()(int64_t, const dpr_launcher &launcher) const {
    ask(launcher, *this);
}

__global__ void ask_all(dpr_launcher launcher, storm of) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread < of.n)
        ask(launcher, {of, thread, 0});
}

} // namespace

int storm_ask(const dpr_launcher *launcher, const int32_t *x, const storm_row *rows, unsigned n, unsigned block,
              int64_t *sums, dpr_stream stream) {
    ask_all<<<(n + block - 1) / block, block, 0, stream>>>(*launcher, {x, rows, sums, n});
    return static_cast<int>(cudaGetLastError());
}
