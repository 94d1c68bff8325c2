/* Kernels of graphs, and those that launch graphs. Apart from nested.cu, as a graph that a kernel launches may hold no
 * kernel that launches kernels. */
#include "nested_kernels.h"

namespace {

__device__ void take_note(bench_account *account, cudaError_t error) {
    if (error != cudaSuccess)
        atomicCAS(&account->error, 0, static_cast<int>(error));
}

} // namespace

extern "C" __global__ void bench_graph_nothing() {}

extern "C" __global__ void bench_graph_leaf(bench_account *account) {
    atomicAdd(&account->ran, 1);
}

extern "C" __global__ void bench_graph_launch(bench_graph_args args) {
    const auto *graphs = static_cast<const cudaGraphExec_t *>(args.graphs);
    for (unsigned i = 0; i < args.count; ++i)
        take_note(args.account, cudaGraphLaunch(graphs[i], cudaStreamGraphFireAndForget));
}

extern "C" __global__ void bench_graph_again(bench_account *account) {
    if (++account->ran < account->wanted)
        take_note(account, cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch));
}
