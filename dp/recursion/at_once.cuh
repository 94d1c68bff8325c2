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

/* What a node has besides its task or result: its children, which lie next to each other. It is read as a whole. */
struct alignas(8) link {
    uint16_t first, n;
    uint16_t begin; /* of node i: the first node of level i */
};
static_assert(sizeof(link) == DPR_TINY_LINK, "the host knows it");

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
        constexpr unsigned letter_bytes = sizeof(letter), node_bytes = sizeof(slot<P>) + sizeof(link), gaps = 32;
        const dpr_recursion_args &args = arena.args;
        const unsigned bytes = round_up((size_t{P::most_children} + 1) * blockDim.x * sizeof(slot<P>));
        const unsigned used = bytes + letter_bytes + gaps;
        const unsigned fitting = args.shared_bytes > used ? (args.shared_bytes - used) / node_bytes : 0;
        mail = reinterpret_cast<letter *>(shared);
        room = reinterpret_cast<slot<P> *>(shared) + threadIdx.x;
        links = reinterpret_cast<link *>(shared + bytes);
        most = fitting < args.first_tasks ? fitting : args.first_tasks;
        at = reinterpret_cast<slot<P> *>(shared + bytes + round_up(letter_bytes + most * sizeof(link)));
    }

    static __device__ unsigned round_up(size_t bytes) { return static_cast<unsigned>(bytes + 15) / 16 * 16; }
    static __device__ unsigned lanes() { return blockDim.x < 32 ? blockDim.x : 32; }

    /* Divides node i, or solves it. Returns how many children are in `room`. */
    __device__ int divide(unsigned i) const {
        const task t = at[i].task;
        const unsigned stride = static_cast<unsigned>(blockDim.x * sizeof(slot<P>));
        const int n = arena.divide(t, children<P>(room, stride, P::most_children));
        if (n == 0)
            at[i].result = arena.base(t);
        return n;
    }

    /* Copies the `count` children that are in `room`. Loads of several small ones do not wait for each other. */
    __device__ void keep_children(unsigned first, unsigned count) const {
        constexpr unsigned few = P::most_children < 4 ? P::most_children : 4, at_a_time = sizeof(task) <= 16 ? few : 1;
        for (unsigned k = 0; k < count; k += at_a_time) {
            task t[at_a_time];
            for (unsigned j = 0; j < at_a_time; ++j)
                if (k + j < count)
                    t[j] = room[(k + j) * blockDim.x].task;
            for (unsigned j = 0; j < at_a_time; ++j)
                if (k + j < count)
                    at[first + k + j].task = t[j];
        }
    }

    /* Divides the nodes from `begin` on. Returns whether all is well. */
    __device__ bool divide_level(unsigned begin, uint64_t deadline) {
        const unsigned last = end;
        bool good = true;
        for (unsigned i = begin + threadIdx.x; i - threadIdx.x < last; i += lanes()) {
            const int n = i < last ? divide(i) : 0;
            const unsigned count = static_cast<unsigned>(n) <= static_cast<unsigned>(P::most_children) ? n : 0;
            good &= static_cast<int>(count) == n;
            const warp_sum sum = sum_over_warp<P::most_children>(count);
            const unsigned first = end + sum.before;
            end += sum.all;
            if (end > most)
                return false;
            keep_children(first, count);
            if (i < last) {
                links[i].first = static_cast<uint16_t>(first);
                links[i].n = static_cast<uint16_t>(count);
            }
        }
        if (threadIdx.x == 0)
            links[levels].begin = static_cast<uint16_t>(begin);
        __syncwarp();
        const bool deep = end > last && levels >= arena.args.max_depth;
        return !__any_sync(~0u, !good || deep || time_now() >= deadline);
    }

    /* Sets the result of node i, which has the `n` children from node `first` on. */
    __device__ void join(unsigned i, unsigned first, unsigned n) const {
        const task t = at[i].task;
        const results<P> of(&at[first], sizeof(slot<P>));
        if constexpr (folds<P>) {
            result sum = part<P>(arena.data, t);
            for (unsigned k = 0; k < n; ++k)
                sum = folded<P>(sum, of[static_cast<int>(k)]);
            at[i].result = sum;
        } else {
            at[i].result = arena.combine(t, of, static_cast<int>(n));
        }
    }

    /* Joins all levels but the last, which has no children. */
    __device__ void join_levels() const {
        unsigned last = links[levels - 1].begin;
        for (unsigned level = levels - 1; level-- > 0;) {
            const unsigned begin = links[level].begin;
            for (unsigned i = begin + threadIdx.x; i < last; i += lanes()) {
                const link l = links[i];
                if (l.n > 0)
                    join(i, l.first, l.n);
            }
            last = begin;
            __syncwarp();
        }
    }

    /* Few roots are read from the kernel's arguments: an address that may be anywhere takes more time. */
    __device__ void place_root(unsigned i) const {
        if constexpr (sizeof(task) <= sizeof arena.args.few_roots)
            if (!arena.args.roots) {
                at[i].task = reinterpret_cast<const task *>(arena.args.few_roots)[i];
                return;
            }
        at[i].task = root_task<P>(arena.args, i);
    }

    /* Solves the roots. Returns false if that is not possible before the deadline. */
    __device__ bool solve(uint64_t deadline) {
        const dpr_recursion_args &args = arena.args;
        if (args.count > most)
            return false;
        for (unsigned i = threadIdx.x; i < args.count; i += lanes())
            place_root(i);
        __syncwarp();
        end = args.count;
        for (unsigned begin = 0, next; begin < end; begin = next, ++levels) {
            next = end;
            if (!divide_level(begin, deadline))
                return false;
        }
        join_levels();
        return end <= args.max_tasks;
    }

    /* Writes results, and the report. */
    __device__ void write_solved() const {
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

    /* The letter lies where lanes have written children. */
    __device__ void write_unsolved() const {
        __syncwarp();
        if (threadIdx.x == 0) {
            mail->outcome = {};
            mail->outcome.status = DPR_ERR_STRATEGY_UNABLE;
        }
    }

    __device__ void send() const {
        __syncwarp();
        if (arena.args.tag != 0)
            post(arena.args, 0, reinterpret_cast<const uint32_t *>(mail), sizeof(letter) / 4, threadIdx.x, lanes());
        else if (threadIdx.x == 0)
            hand_over(arena.args, mail->outcome);
    }

    /* Solves and reports the run. If others may begin anew, a run that is not solved is not reported. Returns whether
     * it is. */
    __device__ bool run(uint64_t deadline) {
        const bool solved = solve(deadline), reported = solved || arena.args.capacity == 0;
        if (solved)
            write_solved();
        else if (reported)
            write_unsolved();
        if (reported)
            send();
        return reported;
    }
};

/* Tries to solve all by the first warp of a block, which has args.shared_bytes at `shared`. Returns whether the run is
 * over: it is reported then, and no word of the arena has changed. */
template <class P> __device__ bool run_at_once(const nodes<P> &arena, char *shared, uint64_t deadline) {
    small_tree<P> tree(arena, shared);
    return __syncthreads_or(threadIdx.x < 32 && tree.run(deadline)) != 0;
}

} // namespace recursion
} // namespace dpr

#endif
