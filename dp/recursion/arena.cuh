/* The arena of a recursion on the GPU: an array of nodes in global memory. A node is a task, and its result when that
 * is known. The children of a node lie next to each other.
 *
 * Whoever solves a node counts it at its parent. The last one combines the parent's results, in the order of the
 * children, and so on upwards. If the policy folds results, nodes are not joined: a node knows the root above it, for
 * which there is a sum. */
#ifndef DPR_DP_ARENA_CUH
#define DPR_DP_ARENA_CUH

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>

#include "policy.h"
#include "recursion.h"

/* Words that all blocks share. They are zero before and after a run. */
struct dpr_arena {
    unsigned nodes;  /* taken, and more where the arena is full */
    unsigned taken;  /* tasks that lanes have taken from the frontier */
    unsigned chunks; /* taken, also if they were given back */
    unsigned solved; /* roots. If the policy folds: tasks less the children of tasks, modulo 2^32, which are as many as
                        roots when no task is left */
    unsigned error;  /* a dpr_status */
    int wrong;
    unsigned deepest, serialised;
    unsigned busy;                   /* lanes with tasks at the end of a round */
    unsigned begin, end;             /* the nodes that a level, round or phase is for */
    unsigned ahead_begin, ahead_end; /* these words are persistent.cuh's */
    unsigned finished, few, steps, meetings, reported;
    unsigned phase, phases, levels, widest, ticket;
    unsigned held;            /* launches by kernels that are pending */
    unsigned spans;           /* written */
    dpr_launch_report nested; /* of these launches */
    unsigned long long tasks; /* that were divided or solved, as far as lanes have added theirs */
    uint64_t deadline;        /* in time_now(): a check at or after it ends the run. Set before the first check */
    uint64_t free_chunks; /* a list of those given back, by chunk.below (lane.cuh): the first, plus 1, in the lower half
                             (0: none), and a number that each change of the list increases in the upper half */
};

namespace dpr {
namespace recursion {

namespace cg = cooperative_groups;

constexpr unsigned no_node = ~0u;

/* Nanoseconds of the device's clock. */
__device__ inline uint64_t time_now() {
    uint64_t t = 0;
#ifdef __CUDA_ARCH__
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
#endif
    return t;
}

/* The first error of a run counts. */
__device__ inline void fail(dpr_arena &a, unsigned status, int wrong) {
    if (atomicCAS(&a.error, 0, status) == 0)
        a.wrong = wrong;
}

/* Ends the run if it takes too long. */
__device__ inline void check_time(dpr_arena &a) {
    if (time_now() >= a.deadline)
        fail(a, DPR_ERR_LIMIT, DPR_LIMIT_OF_TIME);
}

/* Ends the run if it has more tasks than it may. */
__device__ inline void check_tasks(const dpr_recursion_args &args, unsigned long long tasks) {
    if (tasks > args.max_tasks)
        fail(*args.arena, DPR_ERR_LIMIT, DPR_LIMIT_OF_TASKS);
}

/* This thread's number in the grid, whose blocks have less than 32 threads or a multiple of that. The first threads are
 * the first warps of all blocks, not all warps of the first block: few tasks then have an SM for each warp. */
__device__ inline unsigned thread_in_grid() {
    const unsigned lanes = blockDim.x < 32 ? blockDim.x : 32;
    return (threadIdx.x / 32 * gridDim.x + blockIdx.x) * lanes + threadIdx.x % 32;
}

/* Sums of a number that each lane of a warp has: over the lanes before this one, and over all. */
struct warp_sum {
    unsigned before, all;
};

/* All lanes of a warp call it with a `count` of at most Most. Its ballots do not wait for each other, as the steps of a
 * scan do. */
template <unsigned Most> __device__ inline warp_sum sum_over_warp(unsigned count) {
    const unsigned below = (1u << threadIdx.x % 32) - 1;
    warp_sum sum = {0, 0};
    for (unsigned bit = 0; Most >> bit > 0; ++bit) {
        const unsigned having = __ballot_sync(~0u, (count >> bit & 1) != 0);
        sum.before += static_cast<unsigned>(__popc(having & below)) << bit;
        sum.all += static_cast<unsigned>(__popc(having)) << bit;
    }
    return sum;
}

/* Values of node.state other than the number of children. */
enum : unsigned { pending = 0, taken = ~0u - 1, done = ~0u };

/* A word that other threads may be changing. */
__device__ inline unsigned now_of(unsigned &word) {
    return cuda::atomic_ref<unsigned, cuda::thread_scope_device>(word).load(cuda::memory_order_relaxed);
}

template <class P> struct node {
    slot<P> at;
    unsigned parent, first; /* nodes; if the policy folds, `parent` is the root */
    unsigned state;         /* pending, taken, done, or how many children */
    unsigned left;          /* children that are not solved */
    unsigned depth;
};

/* The functions of a policy that take a team, each compiled once. `address` is that of the team's memory in shared
 * memory. The copies are in registers, although what is copied may be anywhere. */
__device__ inline team team_of(unsigned address, bool alone) {
    return {alone ? 0 : threadIdx.x, alone ? 1 : blockDim.x, __cvta_shared_to_generic(address)};
}
template <class P>
__device__ __noinline__ int divide_by_team(const data_of<P> &data, const typename P::task &task, children<P> into,
                                           unsigned address, bool alone) {
    const data_of<P> d = data;
    const typename P::task t = task;
    return P::divide(d, t, into, team_of(address, alone));
}
template <class P>
__device__ __noinline__ typename P::result base_by_team(const data_of<P> &data, const typename P::task &task,
                                                        unsigned address, bool alone) {
    const data_of<P> d = data;
    const typename P::task t = task;
    return P::base(d, t, team_of(address, alone));
}
template <class P>
__device__ __noinline__ typename P::result combine_by_team(const data_of<P> &data, const typename P::task &task,
                                                           results<P> of, int n, unsigned address, bool alone) {
    const data_of<P> d = data;
    const typename P::task t = task;
    return P::combine(d, t, of, n, team_of(address, alone));
}

template <class P> struct nodes {
    using task = typename P::task;
    using result = typename P::result;

    const dpr_recursion_args &args;
    const data_of<P> &data;
    void *memory; /* of a team */

    /* The policy's functions, by the calling thread alone or by its block. */
    __device__ int divide(const task &t, children<P> into, bool alone = true) const {
        if (is_serial<P>(data, t, args.cutoff))
            return 0;
        if constexpr (team_divides<P>)
            return divide_by_team<P>(data, t, into, address(), alone);
        else
            return P::divide(data, t, into);
    }
    __device__ result base(const task &t, bool alone = true) const {
        if constexpr (has_serial<P>)
            if (is_serial<P>(data, t, args.cutoff))
                return alone || threadIdx.x == 0 ? P::serial(data, t) : result{};
        if constexpr (team_bases<P>)
            return base_by_team<P>(data, t, address(), alone);
        else
            return P::base(data, t);
    }
    __device__ result combine(const task &t, results<P> of, int n, bool alone = true) const {
        if constexpr (folds<P>)
            return result{}; /* nobody calls it */
        else if constexpr (team_combines<P>)
            return combine_by_team<P>(data, t, of, n, address(), alone);
        else
            return P::combine(data, t, of, n);
    }
    __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(memory)); }

    __device__ node<P> &operator[](unsigned i) const { return static_cast<node<P> *>(args.nodes)[i]; }

    /* The result of a root. */
    __device__ result &result_of(unsigned root) const {
        return folds<P> ? static_cast<result *>(args.sums)[root] : (*this)[root].at.result;
    }

    /* Folds a result into that of a root. */
    __device__ void fold(unsigned root, result r) const {
        const cuda::atomic_ref<result, cuda::thread_scope_device> sum(result_of(root));
        constexpr auto relaxed = cuda::memory_order_relaxed;
        if constexpr (fold_of<P> == DPR_SUM)
            sum.fetch_add(r, relaxed);
        else if constexpr (fold_of<P> == DPR_MIN)
            sum.fetch_min(r, relaxed);
        else if constexpr (fold_of<P> == DPR_MAX)
            sum.fetch_max(r, relaxed);
        else if constexpr (fold_of<P> == DPR_BAND)
            sum.fetch_and(r, relaxed);
        else if constexpr (fold_of<P> == DPR_BOR)
            sum.fetch_or(r, relaxed);
        else if constexpr (fold_of<P> == DPR_BXOR)
            sum.fetch_xor(r, relaxed);
        else
            for (result before = sum.load(relaxed); !sum.compare_exchange_weak(before, folded<P>(before, r), relaxed);)
                ;
    }

    __device__ void fail(unsigned status, int wrong = 0) const { recursion::fail(*args.arena, status, wrong); }
    /* Whether divide() may return n. */
    __device__ bool is_count(int n) const {
        if (static_cast<unsigned>(n) <= static_cast<unsigned>(P::most_children))
            return true;
        fail(DPR_ERR_DIVIDE, n);
        return false;
    }
    __device__ bool failed() const { return now_of(args.arena->error) != 0; }

    /* Whether nodes are left. Callers of take() ask first: each lane then exceeds the capacity at most once, and
     * `nodes` cannot wrap around. */
    __device__ bool has_room() const { return now_of(args.arena->nodes) < args.capacity; }

    /* Takes `n` nodes next to each other. Returns the first, or no_node if the arena has no room; then nodes that are
     * left at its end are marked as done, for those who look at all nodes. */
    __device__ unsigned take(unsigned n, bool had_room) const {
        if (!had_room)
            return no_node;
        const cg::coalesced_group group = cg::coalesced_threads(); /* one atomic for all */
        const unsigned before = cg::exclusive_scan(group, n);
        unsigned first = 0;
        if (group.thread_rank() + 1 == group.size())
            first = atomicAdd(&args.arena->nodes, before + n);
        first = group.shfl(first, group.size() - 1) + before;
        if (first < args.capacity && n <= args.capacity - first)
            return first;
        for (unsigned i = first; i < args.capacity; ++i)
            set_state(i, done);
        return no_node;
    }

    /* A node's state. Where the arena is full, a level may have nodes that other threads are solving. */
    __device__ unsigned state_of(unsigned i) const { return now_of((*this)[i].state); }
    __device__ void set_state(unsigned i, unsigned state) const {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device>((*this)[i].state)
            .store(state, cuda::memory_order_relaxed);
    }

    __device__ void make(unsigned i, unsigned parent, unsigned depth, unsigned state) const {
        node<P> &x = (*this)[i];
        x.parent = parent;
        x.depth = depth;
        set_state(i, state);
    }

    /* Makes node i a parent of n children, of which `left` are not solved. */
    __device__ void make_parent(unsigned i, unsigned first, unsigned n, unsigned left) const {
        node<P> &x = (*this)[i];
        x.first = first;
        x.left = left;
        set_state(i, n);
    }

    /* Counts a solved child of node `up`. Returns whether it was the last one: all children's results are in memory. */
    __device__ bool was_last_child(unsigned up) const {
        const cuda::atomic_ref<unsigned, cuda::thread_scope_device> left((*this)[up].left);
        if (left.fetch_sub(1, cuda::memory_order_release) != 1)
            return false;
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        return true;
    }

    /* Counts node i, whose result is in memory, at its parent. Returns the parent if all its children are solved,
     * otherwise no_node. */
    __device__ unsigned count_solved(unsigned i) const {
        set_state(i, done);
        const unsigned up = (*this)[i].parent;
        if (up == no_node)
            atomicAdd(&args.arena->solved, 1);
        return up != no_node && was_last_child(up) ? up : no_node;
    }

    /* The same; and who counts the last child combines the parent's results, and goes on with it. What does not
     * change in the parent is read before the child is counted, so that the last one need not wait for it. */
    __device__ void solved(unsigned i) const {
        unsigned up = (*this)[i].parent;
        while (up != no_node) {
            node<P> &parent = (*this)[up];
            const task t = parent.at.task;
            const unsigned above = parent.parent, first = parent.first, n = parent.state;
            set_state(i, done);
            if (!was_last_child(up))
                return;
            parent.at.result = combine(t, results<P>(&(*this)[first].at, sizeof(node<P>)), static_cast<int>(n));
            i = up;
            up = above;
        }
        set_state(i, done);
        atomicAdd(&args.arena->solved, 1);
    }

    __device__ void solve(unsigned i, const result &r) const {
        (*this)[i].at.result = r;
        solved(i);
    }
};

/* What a phase is for (phases.cuh). */
enum : unsigned { phase_none, phase_dividing, phase_solving, phase_writing };

/* Whether tasks are left to be divided or solved. */
__device__ inline bool is_unfinished(const dpr_arena &arena) {
    return arena.phase == phase_dividing || arena.phase == phase_solving;
}

/* The end of the nodes that are taken. */
__device__ inline unsigned end_of(const dpr_recursion_args &args) {
    const unsigned nodes = now_of(args.arena->nodes);
    return nodes < args.capacity ? nodes : args.capacity;
}

template <class P> __device__ const typename P::task &root_task(const dpr_recursion_args &args, unsigned i) {
    return static_cast<const typename P::task *>(args.roots ? args.roots : args.few_roots)[i];
}

template <class P> __device__ void place_roots(const nodes<P> &arena, unsigned me, unsigned threads) {
    for (unsigned i = me; i < arena.args.count; i += threads) {
        arena[i].at.task = root_task<P>(arena.args, i);
        arena.make(i, folds<P> ? i : no_node, 0, pending);
        if constexpr (folds<P>)
            arena.result_of(i) = nothing_folded<P>();
    }
}

/* Thread `me` of `threads` copies results of roots, which are all solved. */
template <class P> __device__ void copy_results(const nodes<P> &arena, unsigned me, unsigned threads) {
    for (unsigned i = me; i < arena.args.count && arena.args.out; i += threads)
        static_cast<typename P::result *>(arena.args.out)[i] = arena.result_of(i);
}

/* ---- Spans of time, if the call asks for them ---- */

/* A place of the device where one warp works at a time: blocks of a launch by a kernel all have the same number. */
__device__ inline unsigned warp_place() {
    unsigned sm = 0, warp = 0;
#ifdef __CUDA_ARCH__
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %warpid;" : "=r"(warp));
#endif
    return sm * 64 + warp;
}

__device__ inline uint64_t begin_span(const dpr_recursion_args &args) {
    return args.most_spans == 0 ? 0 : time_now();
}

/* All threads of the block call it, when they have done their part. */
__device__ inline void end_span(const dpr_recursion_args &args, uint64_t begin, unsigned what, unsigned worker) {
    if (args.most_spans == 0)
        return;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    const unsigned i = atomicAdd(&args.arena->spans, 1);
    if (i < args.most_spans)
        args.spans[i] = {begin, time_now(), what, worker};
}

/* Puts 32-bit words number `first`, first + step, ... of `words` into the mailbox, from its word `at` on. */
__device__ inline void post(const dpr_recursion_args &args, unsigned at, const uint32_t *from, unsigned words,
                            unsigned first = 0, unsigned step = 1) {
    for (unsigned i = first; i < words; i += step)
        cuda::atomic_ref<uint64_t, cuda::thread_scope_system>(args.mailbox[at + i])
            .store(uint64_t{args.tag} << 32 | from[i], cuda::memory_order_relaxed);
}

/* Writes the outcome of a run for which no host waits to the caller's memory, when all else is written. */
__device__ inline void hand_over(const dpr_recursion_args &args, const dpr_recursion_outcome &outcome) {
    __threadfence_system();
    *reinterpret_cast<dpr_recursion_outcome *>(args.mailbox) = outcome;
}

/* Leaves the arena zero, and puts the report and few results into the mailbox, when all else is written. */
template <class P> __device__ void report(const nodes<P> &arena, unsigned rounds, unsigned levels, unsigned widest) {
    constexpr unsigned words = sizeof(dpr_recursion_outcome) / 4;
    const dpr_recursion_args &args = arena.args;
    dpr_arena &a = *args.arena;
    dpr_recursion_outcome r = {};
    r.tasks = a.tasks;
    r.status = a.error;
    r.wrong = a.wrong;
    r.deepest = a.deepest;
    r.rounds = rounds;
    r.levels = levels;
    r.widest = widest;
    r.handed_out = a.nodes < args.capacity ? a.nodes : args.capacity;
    r.serialised = a.serialised;
    r.launched = a.nested.launched;
    r.spans = a.spans;
    a = dpr_arena{};
    if (args.tag == 0) {
        hand_over(args, r);
        return;
    }
    uint32_t results[DPR_RECURSION_LETTER / 4] = {};
    if (args.count * sizeof(typename P::result) <= sizeof results)
        for (unsigned i = 0; i < args.count; ++i)
            memcpy(reinterpret_cast<char *>(results) + i * sizeof(typename P::result), &arena.result_of(i),
                   sizeof(typename P::result));
    __threadfence_system();
    post(args, 0, reinterpret_cast<const uint32_t *>(&r), words);
    post(args, words, results, DPR_RECURSION_LETTER / 4);
}

} // namespace recursion
} // namespace dpr

#endif
