/* The engine `persistent`: one cooperative kernel, whose blocks stay until everything is solved.
 *
 * The arena is an array of nodes in global memory. A node is a task, and its result when that is known. The children of
 * a node lie next to each other. The kernel works in rounds of two phases:
 *
 * - Frontier: the grid divides tasks level by level, until enough are pending to keep all lanes busy. If it is known
 *   what all roots cost, tasks that cost little are not divided, so that lanes have tasks of about the same size.
 * - Lanes: each lane takes a pending task, and solves it depth first on a stack in shared memory. In each step a lane
 *   divides one task, and before that joins the results of a finished one. When no task is left to take, lanes go on
 *   for `budget` steps or patience_ns. Then each gives the lowest frame of its stack away that has children which are
 *   not begun: it writes the frame to the arena, where these children are the next round's pending tasks. A lane whose
 *   stack is full gives its lower half away. If few lanes have tasks, lanes of a warp share them, the round is short,
 *   and they give everything away: the next round has a frontier. If the policy folds results, lanes of a warp share
 *   what they have in every round, and only the first round has a frontier: later, few tasks are spread over all
 *   blocks.
 *
 * Whoever solves a node counts it at its parent. The last one combines the parent's results, in the order of the
 * children, and so on upwards.
 *
 * If the arena is full, tasks stay where they are: a lane solves them alone, and saves a full stack to a chunk of
 * memory. If the chunks are used up, too, the run ends with an error.
 *
 * Between two phases all blocks meet, and the last to come decides what is next.
 *
 * The kernel ends. A round in which no lane has a task at the end, and which left none, is the last. A round solves or
 * divides each task that is pending at its beginning, and no task twice, so there are at most as many rounds as tasks.
 * A lane's loop ends when its tasks are solved. A recursion that goes on for ever comes to the limit of the depth,
 * which every run has, to that of the tasks, if one is set, or to the end of the run's time, a day unless the call sets
 * another limit; and lanes look for errors of others. Blocks wait for each other at meetings and barriers of the grid
 * alone, at which all of them arrive, because a cooperative launch has all of them on the device: a wait is as long as
 * the others' loops. Only a function of the policy that does not return can make it longer, and then the host gives the
 * run up (job.c). */
#ifndef DPR_DP_PERSISTENT_CUH
#define DPR_DP_PERSISTENT_CUH

#include "at_once.cuh"
#include "lane.cuh"

namespace dpr {
namespace recursion {

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

/* Waits for all blocks. A grid of one need not be launched as a cooperative one, which takes longer. */
__device__ inline void wait_for_grid() {
    if (gridDim.x == 1)
        __syncthreads();
    else
        cg::this_grid().sync();
}

/* What all blocks know between two meetings. */
struct turn {
    unsigned begin, end; /* pending nodes */
    bool finished, few;  /* few lanes have tasks, or will */
    unsigned steps;      /* of a round, when no task is left to take */
};

/* A meeting: all blocks wait, and then read what decide() has written, which the last one calls. This takes one barrier
 * instead of two. `number` counts the meetings. */
template <class Decide> __device__ turn meet(const dpr_recursion_args &args, unsigned *number, Decide decide) {
    dpr_arena &a = *args.arena;
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(a.ticket), held(a.meetings);
    ++*number;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
            a.ticket = 0;
            decide(a);
            held.store(*number, cuda::memory_order_release);
        }
        while (held.load(cuda::memory_order_acquire) != *number)
            ;
    }
    __syncthreads();
    return {a.begin, a.end, a.finished != 0, a.few != 0, a.steps};
}

/* Levels between two looks at the clock and for errors, for which all blocks wait. */
constexpr unsigned levels_until_look = 16;

/* A level was divided into the tasks of nodes begin .. end-1. Each node is a task, but those who divide levels add
 * their tasks to the run's only later. */
__device__ inline void note_level(const dpr_recursion_args &args, unsigned begin, unsigned end) {
    dpr_arena &a = *args.arena;
    ++a.levels;
    a.widest = end - begin > a.widest ? end - begin : a.widest;
    check_tasks(args, end);
}

/* The end of a level: the next one is pending. Where the arena is full, tasks of this level may be left. */
struct end_of_level {
    const dpr_recursion_args &args;

    __device__ void operator()(dpr_arena &a) const {
        const unsigned to = end_of(args);
        note_level(args, a.end, to);
        a.begin = to < args.capacity ? a.end : a.begin;
        a.end = to;
        if (a.levels % levels_until_look == 0) {
            check_time(a);
            a.finished = a.error != DPR_OK;
        }
    }
};

/* The same, when one block has done the last levels. */
struct end_of_levels {
    __device__ void operator()(dpr_arena &a) const {
        a.begin = a.ahead_begin;
        a.end = a.ahead_end;
        a.finished = a.error != DPR_OK;
    }
};

/* The end of a round. */
template <class P> struct end_of_round {
    const dpr_recursion_args &args;

    __device__ void operator()(dpr_arena &a) const {
        a.begin = a.end;
        a.end = end_of(args);
        const unsigned tasks = a.busy + (a.end - a.begin);
        check_time(a);
        a.few = a.end < args.capacity && are_few(tasks, gridDim.x * blockDim.x);
        a.steps = a.few ? steps_of_few<P>(args, a.end) : tasks > very_few ? args.budget : args.budget / 4;
        a.finished = a.solved == args.count || a.error != DPR_OK || (a.begin == a.end && a.busy == 0);
        a.taken = a.busy = 0;
        ++a.phases;
    }
};

/* The run is reported, and all blocks know it: the last one leaves the arena zero. */
__device__ inline void clear_arena(dpr_arena &a) {
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> arrived(a.ticket);
    __syncthreads(); /* all threads have read it */
    if (threadIdx.x == 0 && arrived.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1)
        a = dpr_arena{};
}

/* Levels from nodes begin .. end-1 on, while a block has a thread for each task: one block alone needs no meetings.
 * Leaves the words for end_of_levels(). */
template <class P>
__device__ void divide_in_block(const nodes<P> &arena, lane<P> &own, unsigned begin, unsigned end, uint64_t undivided) {
    const dpr_recursion_args &args = arena.args;
    const uint64_t began = begin_span(args);
    unsigned levels = 0;
    bool failed = false;
    while (!failed && begin < end && end < args.capacity && end - begin <= blockDim.x && levels < most_levels<P>) {
        divide_level(arena, own, begin, end, threadIdx.x, blockDim.x, undivided);
        ++levels;
        if (threadIdx.x == 0 && levels % levels_until_look == 0)
            check_time(*args.arena);
        __threadfence();
        __syncthreads();
        const unsigned to = end_of(args);
        if (threadIdx.x == 0)
            note_level(args, end, to);
        begin = to < args.capacity ? end : begin; /* where the arena is full, tasks of this level may be left */
        end = to;
        /* Thread 0 decides for all, after note_level(): threads that left at different levels would miss barriers. */
        failed = __syncthreads_or(threadIdx.x == 0 && levels % levels_until_look == 0 && arena.failed()) != 0;
    }
    end_span(args, began, DPR_SPAN_DIVIDE, blockIdx.x);
    if (threadIdx.x == 0) {
        dpr_arena &a = *args.arena;
        a.ahead_begin = begin;
        a.ahead_end = end;
    }
}

/* Places few roots, and begins, by one block. */
template <class P> __device__ void begin_in_block(const nodes<P> &arena, lane<P> &own) {
    const dpr_recursion_args &args = arena.args;
    dpr_arena &a = *args.arena;
    place_roots(arena, threadIdx.x, blockDim.x);
    __threadfence();
    __syncthreads();
    divide_in_block(arena, own, 0, args.count, args.undivided);
    own.hand_in();
    __syncthreads();
    if (threadIdx.x == 0) {
        end_of_levels()(a);
        a.finished = a.solved == args.count || arena.failed();
    }
}

/* One frontier: levels of pending tasks, until there are `enough`, or none that costs more than `undivided`. */
template <class P>
__device__ turn widen(const nodes<P> &arena, lane<P> &own, turn now, unsigned enough, uint64_t undivided,
                      unsigned *meetings) {
    const unsigned me = thread_in_grid(), threads = gridDim.x * blockDim.x;
    for (unsigned levels = 0; levels < most_levels<P> && !now.finished; ++levels) {
        const unsigned width = now.end - now.begin;
        if (width == 0 || width >= enough || now.end == arena.args.capacity)
            return now;
        if (width <= blockDim.x) {
            if (blockIdx.x == 0)
                divide_in_block(arena, own, now.begin, now.end, undivided);
            now = meet(arena.args, meetings, end_of_levels());
            if (folds<P>)
                return now; /* the block has divided enough levels */
            continue;
        }
        const uint64_t began = begin_span(arena.args);
        divide_level(arena, own, now.begin, now.end, me, threads, undivided);
        end_span(arena.args, began, DPR_SPAN_DIVIDE, blockIdx.x);
        now = meet(arena.args, meetings, end_of_level{arena.args});
    }
    return now;
}

/* One round of lanes. Afterwards those that have tasks share them. */
template <class P> __device__ void solve_round(const nodes<P> &arena, lane<P> &own, turn now) {
    const uint64_t began = begin_span(arena.args);
    solve_tasks(arena, own, now.begin, now.end, folds<P> && now.few,
                {now.steps, patience_ns, folds<P> || now.few ? share_soon : share_never});
    if (own.busy())
        own.go(now.few ? lane<P>::detour::leave : lane<P>::detour::share);
    own.hand_in();
    const unsigned working = __ballot_sync(~0u, own.busy());
    if (threadIdx.x % 32 == 0 && working != 0)
        atomicAdd(&arena.args.arena->busy, __popc(working));
    end_span(arena.args, began, DPR_SPAN_SOLVE, blockIdx.x);
}

/* Lanes of a block, at most: as many as fit the shared memory of a block of the GPUs that have most of it, 227 KiB. The
 * fewer there are, the more registers each may have. */
template <class P> constexpr unsigned count_most_lanes() {
    constexpr unsigned shared = 227 << 10, step = DPR_LANE_STEP, most = DPR_MOST_LANES, spare = DPR_SPARE_SLOTS,
                       least = P::most_children + 2u, slots = least > spare ? least : spare;
    constexpr size_t bytes = sizeof(slot<P>) + slots * (sizeof(slot<P>) + sizeof(header<P>));
    constexpr unsigned fitting = static_cast<unsigned>(shared / bytes) / step * step;
    return fitting < step ? step : fitting < most ? fitting : most;
}

template <class P>
__global__ __launch_bounds__(count_most_lanes<P>(), 1) void persistent(const __grid_constant__ dpr_recursion_args args,
                                                                       const __grid_constant__ data_of<P> data) {
    extern __shared__ __align__(16) char shared[];
    const unsigned me = thread_in_grid(), threads = gridDim.x * blockDim.x;
    const nodes<P> arena = {args, data, nullptr};
    lane<P> own = {arena,
                   shared + threadIdx.x * sizeof(slot<P>),
                   reinterpret_cast<header<P> *>(shared + (args.slots + 1) * blockDim.x * sizeof(slot<P>))
                       + threadIdx.x,
                   static_cast<unsigned>(blockDim.x * sizeof(slot<P>)),
                   blockDim.x,
                   args.slots};
    dpr_arena &a = *args.arena;
    unsigned meetings = 0;
    const uint64_t deadline = time_now() + args.max_ns;
    const bool reported = blockIdx.x == 0 && args.first_tasks > 0 && run_at_once(arena, shared, deadline);
    if (reported && gridDim.x == 1)
        return;
    if (me == 0) {
        a.nodes = a.end = args.count;
        a.steps = args.budget;
        a.deadline = deadline;
        a.reported = reported;
    }
    if (args.count >= blockDim.x)
        place_roots(arena, me, threads);
    else if (blockIdx.x == 0 && !reported)
        begin_in_block(arena, own);
    wait_for_grid();
    if (a.reported) {
        clear_arena(a);
        return;
    }
    turn now = {a.begin, a.end, a.finished != 0, false, a.steps};
    if (!now.finished)
        now = widen(arena, own, now, args.frontier, args.undivided, &meetings);
    if (args.undivided > 0)
        now.begin = 0; /* tasks of all levels may be pending */
    if (folds<P> && now.end < args.capacity && are_few(now.end - now.begin, threads)) {
        now.few = true;
        now.steps = steps_of_few<P>(args, now.end);
    }
    while (!now.finished) {
        const bool few = now.few;
        solve_round(arena, own, now);
        now = meet(args, &meetings, end_of_round<P>{args});
        if (!folds<P> && few && now.few && !now.finished) {
            const unsigned begin = now.begin;
            now = widen(arena, own, now, threads, args.undivided, &meetings);
            if (args.undivided > 0)
                now.begin = begin; /* tasks of the levels that were divided may be pending */
            now.few = now.end - now.begin < threads / 4;
            now.steps = now.few ? now.steps : args.budget;
        }
    }
    if (me == 0 && a.solved != args.count)
        arena.fail(DPR_ERR_CUDA); /* tasks are lost, unless it has failed before */
    if (own.deepest > 0)
        atomicMax(&a.deepest, own.deepest);
    if (a.solved == args.count && !arena.failed())
        copy_results(arena, me, threads);
    wait_for_grid();
    if (me == 0)
        report(arena, a.phases, a.levels, a.widest);
}

} // namespace recursion
} // namespace dpr

#endif
