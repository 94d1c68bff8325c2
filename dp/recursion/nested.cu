/* The kernels of the engines `level`, `graph` and `naive`, which launch kernels. They call a policy's act()
 * (phases.cuh) by its address. Engines `level` and `naive` launch the one kernel that all nested launches are of
 * (dp/README.md); what is refused, the parent does, or the host. */
#include "arena.cuh"
#include "run_launches.cuh"

namespace dpr {
namespace {

static_assert(sizeof(dpr_arena) <= DPR_SCRATCH_BYTES, "it lies in the run's scratch memory");

using act_function = unsigned (*)(const dpr_recursion_block *, unsigned shared, unsigned what, unsigned i,
                                  unsigned *first);

__device__ const dpr_recursion_block &block_of(const dpr_nested_args &args) {
    return *static_cast<const dpr_recursion_block *>(args.run.in);
}

__device__ unsigned act(const dpr_recursion_block &block, unsigned what, unsigned i, unsigned *first) {
    extern __shared__ __align__(16) char shared[];
    return reinterpret_cast<act_function>(block.act)(&block, static_cast<unsigned>(__cvta_generic_to_shared(shared)),
                                                     what, i, first);
}

/* Launches a grid that goes on with node `tile`, or with the next phase. */
__device__ bool launch(const dpr_nested_args &args, continuation go_on, unsigned tile, unsigned blocks,
                       cudaStream_t stream) {
    const dpr_recursion_args &recursion = block_of(args).args;
    if (args.depth >= args.max_depth)
        return false;
    return launch_noted(&recursion.arena->nested, args.depth, [&] {
        return launch_filled(
            dpr_go_on, blocks, recursion.threads, stream,
            [&](dpr_nested_args &filled) {
                filled = args;
                filled.depth = args.depth + 1;
                filled.tile = tile;
                filled.go_on = reinterpret_cast<void *>(go_on);
            },
            recursion.shared_bytes);
    });
}

/* ---- level ---- */

/* The phase's last block launches the next phase. If it cannot, the host launches it. */
__device__ void do_level(const dpr_nested_args &args) {
    if (act(block_of(args), DPR_ACT_PHASE, 0, nullptr) == 0)
        return;
    const dpr_recursion_args &recursion = block_of(args).args;
    const dpr_arena &arena = *recursion.arena;
    const unsigned width = arena.end - arena.begin,
                   wanted = recursion.teams ? width : (width - 1) / recursion.threads + 1;
    if (args.launches > 0)
        (void)launch(args, do_level, 0, wanted < recursion.most_blocks ? wanted : recursion.most_blocks,
                     cudaStreamTailLaunch);
}

/* ---- naive ---- */

__device__ void do_node(const dpr_nested_args &args);

/* Launches a block for the node if fewer than args.launches are pending. */
__device__ bool launch_node(const dpr_nested_args &args, unsigned node) {
    dpr_arena &arena = *block_of(args).args.arena;
    if (take_free(&arena.held, 1, args.launches) == 0)
        return false;
    const bool launched = launch(args, do_node, node, 1, cudaStreamFireAndForget);
    if (!launched)
        atomicSub(&arena.held, 1);
    return launched;
}

/* Divides the node, or solves it. Each child gets a launch; when one is refused, the rest is solved here. A kernel of
 * the host's has a block for each root. */
__device__ void do_node(const dpr_nested_args &args) {
    __shared__ unsigned first, made, launched;
    unsigned at = 0;
    const unsigned n = act(block_of(args), DPR_ACT_VISIT, args.depth == 0 ? blockIdx.x : args.tile, &at);
    if (threadIdx.x == 0) {
        launched = 0;
        first = at;
        made = n;
        while (launched < made && launch_node(args, first + launched))
            ++launched;
    }
    __syncthreads();
    for (unsigned k = launched; k < made; ++k)
        (void)act(block_of(args), DPR_ACT_ALONE, first + k, &at);
    if (threadIdx.x == 0 && args.depth > 0)
        atomicSub(&block_of(args).args.arena->held, 1);
}

} // namespace
} // namespace dpr

/* What the host lets dpr_go_on() begin with: engines `level` and `naive`. That kernel has as many registers as a
 * policy's functions may use. */
extern "C" __device__ dpr::continuation dpr_recursion_table[2];
__device__ dpr::continuation dpr_recursion_table[2] = {dpr::do_level, dpr::do_node};

/* The last kernel of a graph, which launches itself again if there is another phase. */
extern "C" __global__ void dpr_recursion_again(const dpr_recursion_block *block) {
    const bool another = dpr::recursion::is_unfinished(*block->args.arena);
    if constexpr (dpr::makes_launches)
        if (another)
            (void)cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
