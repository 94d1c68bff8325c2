/* Engines in phases: the same work as that of `persistent`, but cut where its blocks would wait for each other. A phase
 * is what a grid does in one launch, and who launches the next is all that differs: the host (engine `host`), the last
 * block (engine `level`) or a device graph (engine `graph`). For policies with teams the engine `persistent` works in
 * phases, too, by one grid that stays.
 *
 * - Dividing: a thread, or a block if the policy has teams, divides each task of a level. If it is known what all roots
 *   cost, tasks that cost little are not divided. If the next level is so narrow that one block does it as soon as a
 *   grid, the last block goes on with it in the same launch.
 * - Solving, when there are enough tasks, or the arena is full; and after most_levels if the policy folds results and
 *   has no teams. Each lane takes tasks and solves them. When no task is left to take, lanes go on for a number of
 *   steps, or for some time, and then write out what is left: that is the next phase's. They go on for longer when much
 *   of the arena is used.
 * - Writing: the results, and the report.
 *
 * The phases end: a level without new tasks ends the dividing; a phase of solving solves every task that is pending at
 * its beginning, in the first of them also those that were not divided; and no task is done twice. So there are at most
 * as many phases as tasks, and one more. A lane's loop ends for the same reasons as in persistent.cuh. No block waits
 * for another one.
 *
 * The engine `naive` has no phases: a launched thread or block divides one task, and launches one for each child. It
 * waits for nothing, and ends because no task is divided twice. After an error, or when the run's time is up, launched
 * blocks divide and launch nothing. */
#ifndef DPR_DP_PHASES_CUH
#define DPR_DP_PHASES_CUH

#include "lane.cuh"

namespace dpr {
namespace recursion {

/* A thread's view of a grid that works on a phase. */
template <class P> struct worker {
    unsigned *word; /* of the block, in shared memory */
    nodes<P> arena;
    lane<P> own; /* the lane of the thread; of a block that is a team only the first thread's is used */
    unsigned me, threads;

    /* Memory for `slots` slots of every lane, after 16 bytes for `word` and the team's memory. */
    __device__ worker(const dpr_recursion_args &args, const data_of<P> &data, char *shared)
        : word(reinterpret_cast<unsigned *>(shared)), arena{args, data, shared + 16},
          own{arena,
              stacks(shared) + lane_number() * sizeof(slot<P>),
              reinterpret_cast<header<P> *>(stacks(shared) + (args.slots + 1) * lanes() * sizeof(slot<P>))
                  + lane_number(),
              static_cast<unsigned>(lanes() * sizeof(slot<P>)),
              lanes(),
              args.slots},
          me(thread_in_grid()), threads(gridDim.x * blockDim.x) {}

    static __device__ unsigned lanes() { return has_teams<P> ? 1 : blockDim.x; }
    static __device__ unsigned lane_number() { return has_teams<P> ? 0 : threadIdx.x; }
    static __device__ char *stacks(char *shared) { return shared + 16 + (team_bytes<P> + 15) / 16 * 16; }

    /* The first thread's value, in all threads of the block. */
    __device__ unsigned broadcast(unsigned value) const {
        if (threadIdx.x == 0)
            *word = value;
        __syncthreads();
        const unsigned got = *word;
        __syncthreads();
        return got;
    }

    /* ---- A block that is a team ---- */

    /* Counts node i, whose result is `r` in the first thread, as nodes::solved() does. */
    __device__ void solve(unsigned i, typename P::result r) {
        if (folds<P> && threadIdx.x == 0)
            own.solve(i, r);
        while (!folds<P>) {
            __syncthreads();
            unsigned up = no_node;
            if (threadIdx.x == 0)
                up = finish(i, r);
            i = broadcast(up);
            if (i == no_node)
                return;
            const typename P::task t = arena[i].at.task;
            const results<P> of(&arena[arena[i].first].at, sizeof(node<P>));
            if (team_combines<P> || threadIdx.x == 0)
                r = arena.combine(t, of, static_cast<int>(arena[i].state), !team_combines<P>);
        }
    }

    /* Writes the result of node i. Returns its parent, if all children of this are solved. */
    __device__ unsigned finish(unsigned i, const typename P::result &r) const {
        arena[i].at.result = r;
        return arena.count_solved(i);
    }

    /* Divides node i, or solves it. */
    __device__ void divide_node(unsigned i) {
        const typename P::task t = arena[i].at.task;
        const children<P> into(&own.at(0), own.stride, P::most_children);
        int n = 0;
        if (team_divides<P> || threadIdx.x == 0)
            n = arena.divide(t, into, !team_divides<P>);
        n = static_cast<int>(broadcast(static_cast<unsigned>(n)));
        if (threadIdx.x == 0 && arena[i].depth > own.deepest)
            own.deepest = arena[i].depth;
        if (n == 0) {
            typename P::result r = {};
            if (team_bases<P> || threadIdx.x == 0)
                r = arena.base(t, !team_bases<P>);
            if (threadIdx.x == 0)
                own.count(t, 0);
            solve(i, r);
        } else if (threadIdx.x == 0 && arena.is_count(n) && make_children(arena, own, i, n, arena.has_room())) {
            if constexpr (has_part<P>)
                own.keep_for(arena[i].parent);
            own.count(t, n);
        }
        __syncthreads(); /* `own` has room for the next children */
    }

    /* ---- Phases ---- */

    /* Whether the run goes on: it has no error, and time is left. All threads of the block call it, and all get the
     * same. */
    __device__ bool may_go_on() const {
        if (threadIdx.x == 0)
            check_time(*arena.args.arena);
        return broadcast(arena.failed()) == 0;
    }

    /* Thread `of` of `all` divides its share. */
    __device__ void divide_tasks(unsigned begin, unsigned end, unsigned of, unsigned all) {
        if constexpr (has_teams<P>) {
            for (;;) {
                const unsigned i = begin + broadcast(threadIdx.x == 0 ? atomicAdd(&arena.args.arena->taken, 1) : 0);
                if (i >= end || !may_go_on())
                    return;
                if (broadcast(arena.state_of(i) == pending))
                    divide_node(i);
            }
        } else {
            divide_level(arena, own, begin, end, of, all, arena.args.undivided);
        }
    }

    /* Solves node i and all below it, by this thread alone. Afterwards the lane has no chunks. */
    __device__ void solve_alone(unsigned i) {
        own.start(i);
        for (unsigned turn = 1; own.busy(); ++turn) {
            own.step();
            if (own.is_solved())
                own.finish();
            if (turn % 64 != 0)
                continue;
            own.add_tasks();
            check_time(*arena.args.arena);
            if (arena.failed())
                return;
        }
        own.give_chunks();
    }

    /* Divides node i, or solves it, by this block, which is one thread if the policy has no teams. */
    __device__ void visit(unsigned i) {
        if constexpr (has_teams<P>)
            divide_node(i);
        else
            divide_level(arena, own, i, i + 1, 0, 1);
    }

    /* Returns how many children node i has, and sets the first of them. If it is still pending, solves it. */
    __device__ unsigned settle(unsigned i, unsigned *first) {
        const unsigned state = arena.state_of(i);
        check_time(*arena.args.arena);
        if (state == pending && !arena.failed()) {
            atomicAdd(&arena.args.arena->serialised, 1);
            solve_alone(i);
        }
        *first = arena[i].first;
        return state == pending || state == taken || state == done ? 0 : state;
    }

    __device__ void solve_all(unsigned begin, unsigned end) {
        if constexpr (has_teams<P>) {
            while (threadIdx.x == 0) {
                const unsigned i = begin + atomicAdd(&arena.args.arena->taken, 1);
                own.add_tasks();
                check_time(*arena.args.arena);
                if (i >= end || arena.failed())
                    return;
                if (arena.state_of(i) == pending) {
                    atomicAdd(&arena.args.arena->serialised, 1);
                    solve_alone(i);
                }
            }
        } else {
            const bool few = folds<P> && are_few(end - begin, threads);
            const unsigned times = is_filling(arena.args, end) ? 8 : 1;
            const endgame then = {times * arena.args.budget, times * patience_ns, folds<P> ? share_soon : share_late};
            const unsigned steps = few ? steps_of_few<P>(arena.args, end) : then.steps;
            solve_tasks(arena, own, begin, end, few, {steps, then.ns, then.share_at});
            while (__any_sync(~0u, own.busy()) && !__any_sync(~0u, arena.failed())) {
                own.add_tasks();
                check_time(*arena.args.arena);
                if (own.busy())
                    own.go(lane<P>::detour::leave);
                solve_tasks(arena, own, end, end, false, then);
            }
        }
    }

    /* Adds what the thread has counted to the arena's words. */
    __device__ void count() {
        own.hand_in();
        if (own.deepest > 0)
            atomicMax(&arena.args.arena->deepest, own.deepest);
    }

    /* The part of this thread, number `of` of `all`, in a phase of dividing or solving. Nobody changes what it reads of
     * the arena's words. */
    __device__ void work(unsigned of, unsigned all) {
        const dpr_arena &a = *arena.args.arena;
        const unsigned begin = a.begin, end = a.end, phase = a.phase;
        const uint64_t began = begin_span(arena.args);
        if (phase == phase_dividing)
            divide_tasks(begin, end, of, all);
        else if (phase == phase_solving)
            solve_all(begin, end);
        else
            return;
        count();
        end_span(arena.args, began, phase == phase_dividing ? DPR_SPAN_DIVIDE : DPR_SPAN_SOLVE, blockIdx.x);
    }

    /* Places the roots. */
    __device__ void begin() {
        place_roots(arena, me, threads);
        if (me == 0) {
            dpr_arena &a = *arena.args.arena;
            a.nodes = a.end = arena.args.count;
            a.phase = phase_dividing;
            a.deadline = time_now() + arena.args.max_ns;
        }
    }

    /* Copies the results, if all roots are solved. */
    __device__ void write() {
        const dpr_arena &a = *arena.args.arena;
        if (me == 0 && a.solved != arena.args.count)
            arena.fail(DPR_ERR_CUDA); /* tasks are lost, unless it has failed before */
        if (a.solved == arena.args.count && !arena.failed())
            copy_results(arena, me, threads);
    }

    /* Whether this block is the last of the grid to come here; in all of its threads. */
    __device__ bool is_last() const {
        __threadfence();
        __syncthreads();
        unsigned before = 0;
        if (threadIdx.x == 0)
            before = atomicAdd(&arena.args.arena->ticket, 1);
        const bool last = broadcast(before) == gridDim.x - 1;
        if (last)
            __threadfence();
        return last;
    }
};

/* What the next phase is. One thread decides, when the whole grid is done with this one. */
template <class P> __device__ void decide(const dpr_recursion_args &args) {
    dpr_arena &a = *args.arena;
    const unsigned to = end_of(args);
    const bool full = to == args.capacity;
    if (!is_unfinished(a)) { /* the host launches several phases before it looks */
        a.ticket = 0;
        return;
    }
    a.taken = a.chunks = a.ticket = 0;
    a.free_chunks = 0;
    ++a.phases;
    a.levels += a.phase == phase_dividing;
    if (a.phase == phase_solving || !full)
        a.begin = a.end; /* else tasks of this level may be left */
    a.end = to;
    const unsigned width = a.end - a.begin;
    if (a.phase == phase_dividing)
        a.widest = width > a.widest ? width : a.widest;
    check_time(a);
    check_tasks(args, to);
    const bool is_frontier =
        full || width == 0 || width >= args.frontier || (folds<P> && !has_teams<P> && a.levels >= most_levels<P>);
    const bool has_left = a.phase == phase_dividing && args.undivided > 0; /* tasks of all levels may be pending */
    if (a.error != DPR_OK || a.solved == args.count || (width == 0 && !has_left)) {
        a.phase = phase_writing;
    } else if (is_frontier) {
        a.begin = has_left ? 0 : a.begin;
        a.phase = phase_solving;
    }
}

/* Whether the phase divides so few tasks that one block does it as soon as a grid. */
template <class P> __device__ bool is_narrow(const dpr_arena &a) {
    return a.phase == phase_dividing && a.end - a.begin <= (has_teams<P> ? 1 : blockDim.x);
}

/* One phase by the whole grid. The last block goes on with the phases that follow while they are narrow: all others are
 * done, so nobody else reads or writes the arena. True in the first thread of one block if another must follow. */
template <class P> __device__ bool do_phase(worker<P> &w) {
    const dpr_arena &a = *w.arena.args.arena;
    for (bool is_alone = false;; is_alone = true) {
        w.work(is_alone ? threadIdx.x : w.me, is_alone ? blockDim.x : w.threads);
        if (is_alone)
            __syncthreads();
        else if (!w.is_last())
            return false;
        if (threadIdx.x == 0)
            decide<P>(w.arena.args);
        __syncthreads();
        if (!is_narrow<P>(a))
            break;
    }
    __threadfence();
    return threadIdx.x == 0 && is_unfinished(a);
}

/* The last launch of a run, by the host: results and report. */
template <class P> __device__ void end_run(worker<P> &w) {
    const dpr_arena &a = *w.arena.args.arena;
    w.write();
    if (w.is_last() && threadIdx.x == 0)
        report(w.arena, a.phases, a.levels, a.widest);
}

/* ---- By address ------------------------------------------------------------------------------------------------- */

#ifdef __CUDACC_RDC__
/* Does a phase (`what` is DPR_ACT_PHASE): returns 1 in the first thread of one block if another must follow, otherwise
 * 0. Or divides or solves node i (DPR_ACT_VISIT) by the calling thread or block: returns, in the first thread, how many
 * children it has made, and sets the first of them. Or solves node i (DPR_ACT_ALONE) by the first thread, with all
 * below it.
 *
 * Kernels of the library call it by its address: whatever the policy, it is the same kernel that kernels launch (see
 * dp/README.md). Only relocatable code can be called from another module. `shared` is an address in shared memory. */
template <class P>
__device__ __noinline__ unsigned act(const dpr_recursion_block *block, unsigned shared, unsigned what, unsigned i,
                                     unsigned *first) {
    worker<P> w(block->args, *reinterpret_cast<const data_of<P> *>(block + 1),
                static_cast<char *>(__cvta_shared_to_generic(shared)));
    if (what == DPR_ACT_PHASE)
        return do_phase(w);
    const uint64_t began = begin_span(block->args);
    if (what == DPR_ACT_VISIT && w.may_go_on())
        w.visit(i);
    unsigned made = 0;
    if (threadIdx.x == 0)
        made = w.settle(i, first);
    w.count();
    __syncthreads();
    end_span(block->args, began, what == DPR_ACT_VISIT ? DPR_SPAN_DIVIDE : DPR_SPAN_SOLVE, warp_place());
    return made;
}
#endif

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

/* Copies what launched kernels need. */
template <class P>
__device__ void fill_block(dpr_recursion_block &block, const dpr_recursion_args &args, const data_of<P> &data) {
    block.args = args;
    block.act = nullptr;
#ifdef __CUDACC_RDC__
    block.act = reinterpret_cast<void *>(act<P>);
#endif
    memcpy(&block + 1, &data, sizeof data);
}

/* A launch by the host. `what` is a DPR_LAUNCH_*. */
template <class P>
__global__ __launch_bounds__(256, 4) void phase_kernel(const __grid_constant__ dpr_recursion_args args,
                                                       const __grid_constant__ data_of<P> data, unsigned what) {
    extern __shared__ __align__(16) char shared[];
    worker<P> w(args, data, shared);
    if (what == DPR_LAUNCH_BEGIN) {
        w.begin();
        if (w.me == 0)
            fill_block<P>(*args.block, args, data);
    } else if (what == DPR_LAUNCH_PHASE) {
        (void)do_phase(w);
    } else if (what == DPR_LAUNCH_END || args.arena->phase == phase_writing) {
        end_run(w);
    }
}

/* The engine `persistent` for policies with teams. The whole grid is on the device at a time. */
template <class P>
__global__ __launch_bounds__(256, 4) void persistent_teams(const __grid_constant__ dpr_recursion_args args,
                                                           const __grid_constant__ data_of<P> data) {
    extern __shared__ __align__(16) char shared[];
    const cg::grid_group grid = cg::this_grid();
    const dpr_arena &a = *args.arena;
    worker<P> w(args, data, shared);
    w.begin();
    grid.sync();
    while (is_unfinished(a)) {
        w.work(w.me, w.threads);
        grid.sync();
        if (w.me == 0)
            decide<P>(args);
        grid.sync();
    }
    w.write();
    grid.sync();
    if (w.me == 0)
        report(w.arena, a.phases, a.levels, a.widest);
}

} // namespace recursion
} // namespace dpr

#endif
