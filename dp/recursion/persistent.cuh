/* The engine `persistent`: one cooperative kernel, whose blocks stay until everything is solved.
 *
 * The arena is an array of nodes in global memory. A node is a task, and its result when that is known. The children of
 * a node lie next to each other. The kernel works in rounds of two phases:
 *
 * - Frontier: the grid divides tasks level by level, until enough are pending to keep all lanes busy.
 * - Lanes: each lane takes a pending task, and solves it depth first on a stack in shared memory. In each step a lane
 *   divides one task, and before that combines one. When no task is left to take, lanes go on for `budget` steps. Then
 *   each gives the lowest frame of its stack away that has children which are not begun: it writes the frame to the
 *   arena, where these children are the next round's pending tasks. A lane whose stack is full gives its lower half
 *   away.
 *
 * Whoever solves a node counts it at its parent. The last one combines the parent's results, in the order of the
 * children, and so on upwards.
 *
 * If the arena is full, tasks stay where they are: a lane solves them alone, and saves a full stack to a chunk of
 * memory. If the chunks are used up, too, the run ends with an error.
 *
 * The kernel ends. A round in which no lane has a task at the end, and which left none, is the last. A round solves or
 * divides each task that is pending at its beginning, and no task twice, so there are at most as many rounds as tasks.
 * A lane's loop ends with `max_tasks` at the latest, or when another lane has set the error. Blocks wait for each other
 * at the barriers of the grid alone, at which all of them arrive. */
#ifndef DPR_DP_PERSISTENT_CUH
#define DPR_DP_PERSISTENT_CUH

#include "lane.cuh"

namespace dpr {
namespace recursion {

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

/* A few steps of the first warp, one lane a root: that is all that a tiny problem takes. Roots that are not solved then
 * are left as if they had not been begun, because lanes solve the tasks of a frontier with equal depths sooner. */
template <class P> __device__ void solve_few(const nodes<P> &arena, lane<P> &own) {
    constexpr int steps = 32;
    if (threadIdx.x < arena.args.count)
        own.start(threadIdx.x);
    for (int i = 0; i < steps && __any_sync(~0u, own.busy()); ++i)
        if (own.busy() && own.has_room())
            own.step();
    if (own.busy()) {
        own.root = no_node;
        own.tasks = 0;
    }
}

/* The first levels, by the first block alone: a barrier of the block takes less time than one of the grid. */
template <class P> __device__ void begin_in_block(const nodes<P> &arena, lane<P> &own) {
    constexpr unsigned most_levels = 64;
    const dpr_recursion_args &args = arena.args;
    dpr_arena &a = *args.arena;
    __syncthreads();
    if (args.count <= 32 && threadIdx.x < 32)
        solve_few(arena, own);
    __threadfence();
    __syncthreads();
    unsigned begin = 0, end = end_of(args), levels = 0;
    while (begin < end && end < args.capacity && end - begin < blockDim.x && levels < most_levels) {
        __syncthreads(); /* all have read end_of() */
        own.tasks += divide_level(arena, own, begin, end, threadIdx.x, blockDim.x);
        ++levels;
        __threadfence();
        __syncthreads();
        const unsigned to = end_of(args);
        begin = to < args.capacity ? end : begin; /* where the arena is full, tasks of this level may be left */
        end = to;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        a.begin = begin;
        a.end = end;
        a.levels = levels;
        a.finished = a.solved == args.count || arena.failed();
    }
}

/* One frontier: levels of pending tasks from node `begin` on, until there are enough of them. */
template <class P>
__device__ void widen(const nodes<P> &arena, lane<P> &own, unsigned *begin, unsigned *end, unsigned me,
                      unsigned threads, unsigned *levels) {
    const cg::grid_group grid = cg::this_grid();
    for (int level = 0; level < 64 && *begin < *end && *end - *begin < arena.args.frontier; ++level) {
        if (*end == arena.args.capacity)
            return;
        own.tasks += divide_level(arena, own, *begin, *end, me, threads);
        ++*levels;
        grid.sync();
        const unsigned to = end_of(arena.args);
        grid.sync();
        *begin = to < arena.args.capacity ? *end : *begin; /* as in begin_in_block() */
        *end = to;
    }
}

/* The end of a round: adds the lanes that have tasks to *busy, and shares these. All lanes of a warp call it. */
template <class P> __device__ void share_tasks(lane<P> &own, unsigned *busy) {
    const unsigned working = __ballot_sync(~0u, own.busy());
    if (threadIdx.x % 32 == 0 && working != 0)
        atomicAdd(busy, __popc(working));
    if (own.busy())
        own.go(lane<P>::detour::share);
}

template <class P>
__global__ __launch_bounds__(1024, 1) void persistent(const __grid_constant__ dpr_recursion_args args,
                                                      const __grid_constant__ data_of<P> data) {
    extern __shared__ __align__(16) char shared[];
    const cg::grid_group grid = cg::this_grid();
    const unsigned me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const nodes<P> arena = {args, data, nullptr};
    lane<P> own = {arena,
                   shared + threadIdx.x * sizeof(slot<P>),
                   reinterpret_cast<header<P> *>(shared + (args.slots + 1) * blockDim.x * sizeof(slot<P>))
                       + threadIdx.x,
                   static_cast<unsigned>(blockDim.x * sizeof(slot<P>)),
                   blockDim.x,
                   args.slots};
    dpr_arena &a = *args.arena;
    if (me == 0)
        a.nodes = a.end = args.count;
    if (args.count >= blockDim.x) {
        place_roots(arena, me, threads);
    } else if (blockIdx.x == 0) {
        place_roots(arena, me, blockDim.x);
        begin_in_block(arena, own);
    }
    grid.sync();
    unsigned begin = a.begin, end = a.end, levels = a.levels, rounds = 0, widest = 0; /* nobody changes these */
    bool finished = a.finished;
    if (!finished) {
        widen(arena, own, &begin, &end, me, threads, &levels);
        widest = end - begin;
    }
    while (!finished) {
        solve_tasks(arena, own, begin, end);
        share_tasks(own, &a.busy[rounds % 2]);
        if (own.tasks > args.max_tasks)
            arena.fail(DPR_ERR_LIMIT);
        grid.sync(); /* until the next barrier nobody changes what is read here */
        begin = end;
        end = end_of(args);
        const bool stuck = begin == end && a.busy[rounds % 2] == 0;
        finished = a.solved == args.count || arena.failed() || stuck;
        ++rounds;
        if (me == 0) {
            a.taken = 0;
            a.busy[rounds % 2] = 0;
        }
        grid.sync();
    }
    if (me == 0 && a.solved != args.count)
        arena.fail(DPR_ERR_STRATEGY_UNABLE); /* unless it has failed before */
    const unsigned long long tasks = own.tasks;
    if (tasks > 0)
        atomicAdd(&a.tasks, tasks);
    if (own.deepest > 0)
        atomicMax(&a.deepest, own.deepest);
    if (a.solved == args.count && !arena.failed())
        copy_results(arena, me, threads);
    grid.sync();
    if (me == 0)
        report(arena, rounds, levels, widest);
}

} // namespace recursion
} // namespace dpr

#endif
