/* A run of few tasks, by one warp: they are nodes in shared memory, so nothing waits for memory, other warps or blocks.
 * The warp divides them level by level, and then joins them upwards. It ends because levels do: there is room for
 * `first_tasks` nodes at most. If that is not enough, or anything is wrong, nothing has changed, and others begin anew:
 * divide() and base() of policies without teams may be called more than once. */
#ifndef DPR_DP_AT_ONCE_CUH
#define DPR_DP_AT_ONCE_CUH

#include "arena.cuh"

namespace dpr {
namespace recursion {

/* A report of few roots, and their results. */
struct letter {
    dpr_recursion_outcome outcome;
    char results[DPR_RECURSION_LETTER];
};

/* What a node has besides its task or result: its children, which lie next to each other. */
struct link {
    uint16_t first, n;
    uint16_t begin; /* of node i: the first node of level i */
};

template <class P> struct small_tree {
    using task = typename P::task;
    using result = typename P::result;

    nodes<P> arena; /* of which only the policy's functions are used */
    letter *mail;   /* where `room` and `links` were, when they are not needed any more */
    slot<P> *room;  /* for the children of the task that a lane divides, and for one that is out of range */
    link *links;
    slot<P> *at;
    unsigned most; /* nodes */
    unsigned end = 0, levels = 0;

    /* After room for children come links, and then nodes, of which none lies where the letter will. */
    __device__ small_tree(const nodes<P> &of, char *shared) : arena(of) {
        const dpr_recursion_args &args = arena.args;
        const unsigned bytes = round_up((size_t{P::most_children} + 1) * blockDim.x * sizeof(slot<P>));
        const unsigned left = args.shared_bytes > bytes + sizeof(letter) + 32 ? args.shared_bytes - bytes : 0;
        const unsigned fitting = left == 0 ? 0 : (left - sizeof(letter) - 32) / (sizeof(slot<P>) + sizeof(link));
        mail = reinterpret_cast<letter *>(shared);
        room = reinterpret_cast<slot<P> *>(shared) + threadIdx.x;
        links = reinterpret_cast<link *>(shared + bytes);
        most = fitting < args.first_tasks ? fitting : args.first_tasks;
        at = reinterpret_cast<slot<P> *>(shared + bytes + round_up(sizeof(letter) + most * sizeof(link)));
    }

    static __device__ unsigned round_up(size_t bytes) { return static_cast<unsigned>(bytes + 15) / 16 * 16; }
    static __device__ unsigned lanes() { return blockDim.x < 32 ? blockDim.x : 32; }
    static __device__ auto warp() { return cg::tiled_partition<32>(cg::this_thread_block()); }

    /* Divides node i, or solves it. Returns how many children are in `room`. */
    __device__ int divide(unsigned i) const {
        const task t = at[i].task;
        const unsigned stride = static_cast<unsigned>(blockDim.x * sizeof(slot<P>));
        const int n = arena.divide(t, children<P>(room, stride, P::most_children));
        if (n == 0)
            at[i].result = arena.base(t);
        return n;
    }

    /* Divides the nodes from `begin` on. Returns whether all is well. */
    __device__ bool divide_level(unsigned begin) {
        const unsigned last = end;
        bool good = true;
        for (unsigned i = begin + threadIdx.x; i - threadIdx.x < last; i += lanes()) {
            const int n = i < last ? divide(i) : 0;
            const unsigned count = static_cast<unsigned>(n) <= static_cast<unsigned>(P::most_children) ? n : 0;
            good &= static_cast<int>(count) == n && (n == 0 || levels < arena.args.max_depth);
            const unsigned before = cg::exclusive_scan(warp(), count), first = end + before;
            end += warp().shfl(before + count, warp().size() - 1);
            if (end > most)
                return false;
            for (unsigned k = 0; k < count; ++k)
                at[first + k].task = room[k * blockDim.x].task;
            if (i < last) {
                links[i].first = static_cast<uint16_t>(first);
                links[i].n = static_cast<uint16_t>(count);
            }
        }
        if (threadIdx.x == 0)
            links[levels].begin = static_cast<uint16_t>(begin);
        __syncwarp();
        return !__any_sync(~0u, !good);
    }

    /* Sets the result of node i, which has children. */
    __device__ void join(unsigned i) const {
        const task t = at[i].task;
        const results<P> of(&at[links[i].first], sizeof(slot<P>));
        const unsigned n = links[i].n;
        if constexpr (folds<P>) {
            result sum = part<P>(arena.data, t);
            for (unsigned k = 0; k < n; ++k)
                sum = folded<P>(sum, of[static_cast<int>(k)]);
            at[i].result = sum;
        } else {
            at[i].result = arena.combine(t, of, static_cast<int>(n));
        }
    }

    /* Solves the roots. Returns false if that is not possible before the deadline. */
    __device__ bool solve(uint64_t deadline) {
        const dpr_recursion_args &args = arena.args;
        if (args.count > most)
            return false;
        for (unsigned i = threadIdx.x; i < args.count; i += lanes())
            at[i].task = root_task<P>(args, i);
        __syncwarp();
        end = args.count;
        for (unsigned begin = 0, next; begin < end; begin = next, ++levels) {
            next = end;
            if (!divide_level(begin) || __any_sync(~0u, time_now() >= deadline))
                return false;
        }
        for (unsigned level = levels - 1, last = end; level-- > 0;) { /* the last one has no children */
            last = links[level + 1].begin;
            for (unsigned i = links[level].begin + threadIdx.x; i < last; i += lanes())
                if (links[i].n > 0)
                    join(i);
            __syncwarp();
        }
        return end <= args.max_tasks;
    }

    /* Writes results, and what is to be posted. */
    __device__ void write() const {
        const dpr_recursion_args &args = arena.args;
        if (threadIdx.x == 0) {
            mail->outcome = {};
            mail->outcome.tasks = end;
            mail->outcome.deepest = levels - 1;
            mail->outcome.handed_out = args.count;
        }
        for (unsigned i = threadIdx.x; i < args.count; i += lanes()) {
            const result r = at[i].result;
            if (args.count * sizeof r <= sizeof mail->results)
                memcpy(mail->results + i * sizeof r, &r, sizeof r);
            if (args.out)
                static_cast<result *>(args.out)[i] = r;
        }
        if (args.out)
            __threadfence_system();
    }
};

/* Tries to solve all by the first warp of a block, which has args.shared_bytes at `shared`. Returns whether the run is
 * over: it is reported then, and no word of the arena has changed. */
template <class P> __device__ bool run_at_once(const nodes<P> &arena, char *shared, uint64_t deadline) {
    const dpr_recursion_args &args = arena.args;
    small_tree<P> tree(arena, shared);
    bool solved = false;
    if (threadIdx.x < 32)
        solved = tree.solve(deadline);
    if (solved)
        tree.write();
    solved = __syncthreads_or(solved) != 0;
    if (!solved && args.capacity > 0)
        return false;
    if (!solved && threadIdx.x == 0) {
        tree.mail->outcome = {};
        tree.mail->outcome.status = DPR_ERR_STRATEGY_UNABLE;
    }
    __syncthreads();
    if (args.tag != 0)
        post(args, 0, reinterpret_cast<const uint32_t *>(tree.mail), sizeof(letter) / 4, threadIdx.x, blockDim.x);
    else if (threadIdx.x == 0)
        hand_over(args, tree.mail->outcome);
    return true;
}

} // namespace recursion
} // namespace dpr

#endif
