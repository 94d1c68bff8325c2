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

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>

#include "policy.h"
#include "recursion.h"

/* Words that all blocks share. They are zero before and after a run. */
struct dpr_arena {
    unsigned nodes;  /* taken, and more where the arena is full */
    unsigned taken;  /* tasks that lanes have taken from the frontier */
    unsigned chunks; /* taken */
    unsigned solved; /* roots */
    unsigned error;  /* a dpr_status */
    int wrong;
    unsigned deepest, serialised;
    unsigned busy[2];                      /* lanes with tasks at the end of a round, for every other round */
    unsigned begin, end, levels, finished; /* what the first block found: pending nodes, or that nothing is left */
    unsigned long long tasks;
};

namespace dpr {
namespace recursion {

namespace cg = cooperative_groups;

constexpr unsigned no_node = ~0u;

/* Values of node.state other than the number of children. */
enum : unsigned { pending = 0, taken = ~0u - 1, done = ~0u };

template <class P> struct node {
    slot<P> at;
    unsigned parent, first; /* nodes */
    unsigned state;         /* pending, taken, done, or how many children */
    unsigned left;          /* children that are not solved */
    unsigned depth;
};

/* What a lane's stack keeps of the frames below the topmost: how many children, and the number of the next one. */
template <class P> struct header {
    using word = std::conditional_t<P::most_children <= 254, uint8_t, uint32_t>;
    word n, next;
};

/* ---- The arena -------------------------------------------------------------------------------------------------- */

template <class P> struct nodes {
    using task = typename P::task;
    using result = typename P::result;

    const dpr_persistent_args &args;
    const data_of<P> &data;

    __device__ node<P> &operator[](unsigned i) const { return static_cast<node<P> *>(args.nodes)[i]; }

    __device__ void fail(unsigned status, int wrong = 0) const {
        if (atomicCAS(&args.arena->error, 0, status) == 0)
            args.arena->wrong = wrong;
    }
    __device__ bool failed() const { return *reinterpret_cast<volatile unsigned *>(&args.arena->error) != 0; }

    /* Takes `n` nodes next to each other. Returns the first, or no_node if the arena has no room; then nodes that are
     * left at its end are marked as done, for those who look at all nodes. */
    __device__ unsigned take(unsigned n) const {
        if (*reinterpret_cast<volatile unsigned *>(&args.arena->nodes) >= args.capacity)
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
            (*this)[i].state = done;
        return no_node;
    }

    __device__ void make(unsigned i, unsigned parent, unsigned depth, unsigned state) const {
        node<P> &x = (*this)[i];
        x.parent = parent;
        x.depth = depth;
        x.state = state;
    }

    /* Makes node i a parent of n children, of which `left` are not solved. */
    __device__ void make_parent(unsigned i, unsigned first, unsigned n, unsigned left) const {
        node<P> &x = (*this)[i];
        x.first = first;
        x.left = left;
        x.state = n;
    }

    /* Counts node i, whose result is in memory, at its parent. The last child combines the results, and goes on. */
    __device__ void solved(unsigned i) const {
        for (;;) {
            (*this)[i].state = done;
            const unsigned up = (*this)[i].parent;
            if (up == no_node) {
                atomicAdd(&args.arena->solved, 1);
                return;
            }
            node<P> &parent = (*this)[up];
            const cuda::atomic_ref<unsigned, cuda::thread_scope_device> left(parent.left);
            if (left.fetch_sub(1, cuda::memory_order_release) != 1)
                return;
            cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
            const task t = parent.at.task;
            parent.at.result = P::combine(data, t, results<P>(&(*this)[parent.first].at, sizeof(node<P>)),
                                          static_cast<int>(parent.state));
            i = up;
        }
    }

    __device__ void solve(unsigned i, const result &r) const {
        (*this)[i].at.result = r;
        solved(i);
    }
};

/* ---- A lane's stack --------------------------------------------------------------------------------------------- */

/* A saved stack, in a chunk. */
struct chunk {
    unsigned below; /* the chunk that was saved before, or no_node */
    unsigned frames, base, n, next;
};

/* The stack of one lane: slots, one frame's children after another's. Frame 0 has the task that the lane has taken. The
 * task of every other frame is in the slot of its parent whose number is the parent's next - 1. */
template <class P> struct lane {
    using task = typename P::task;
    using result = typename P::result;
    static constexpr unsigned slot_bytes = sizeof(slot<P>);

    nodes<P> arena;
    char *slots;        /* of this lane: another every `stride` bytes */
    header<P> *headers; /* of this lane: another every `lanes` */
    unsigned stride, lanes, room;

    unsigned root = no_node;                        /* the node whose task is in slot 0 */
    unsigned frames = 0, base = 0, n = 0, next = 0; /* topmost frame: its number, first slot, children, next child */
    unsigned saved = no_node, spare = no_node;      /* the latest chunk; chunks of this lane that are free */
    unsigned depth = 0, deepest = 0;                /* of the task in slot 0; of all tasks */
    unsigned long long tasks = 0;

    __device__ slot<P> &at(unsigned i) const { return *reinterpret_cast<slot<P> *>(slots + i * stride); }
    __device__ header<P> &header_of(unsigned i) const { return headers[i * lanes]; }
    __device__ char *chunk_at(unsigned i) const {
        return static_cast<char *>(arena.args.chunk_memory) + static_cast<size_t>(i) * arena.args.chunk_bytes;
    }
    /* Whether the children of any task fit. */
    __device__ bool has_room() const { return base + n + P::most_children <= room; }
    __device__ bool busy() const { return root != no_node; }

    __device__ void start(unsigned i) {
        root = i;
        at(0).task = arena[i].at.task;
        depth = arena[i].depth;
        frames = base = next = 0;
        n = 1;
    }

    /* Combines the topmost frame, whose children are all solved. */
    __device__ void join() {
        const unsigned top = base, children = n;
        const header<P> h = header_of(--frames);
        n = h.n;
        next = h.next;
        base -= n;
        slot<P> &mine = at(base + next - 1);
        const task t = mine.task;
        mine.result = P::combine(arena.data, t, results<P>(&at(top), stride), static_cast<int>(children));
    }

    /* Divides the next child of the topmost frame. Returns false if the stack is too full for its children. */
    __device__ bool descend() {
        const unsigned top = base + n, free = room - top;
        const task t = at(base + next).task;
        const unsigned most = free < static_cast<unsigned>(P::most_children) ? free : P::most_children;
        const int m = P::divide(arena.data, t, children<P>(&at(top), stride, most));
        if (static_cast<unsigned>(m) > most) {
            if (m >= 0 && m <= P::most_children)
                return false;
            arena.fail(DPR_ERR_DIVIDE, m);
            return true;
        }
        ++tasks;
        ++next;
        if (m == 0) {
            at(base + next - 1).result = P::base(arena.data, t);
            deepest = depth + frames > deepest ? depth + frames : deepest;
        } else {
            if (depth + frames >= arena.args.max_depth)
                arena.fail(DPR_ERR_LIMIT);
            header<P> &h = header_of(frames++);
            h.n = n;
            h.next = next;
            base = top;
            n = m;
            next = 0;
        }
        return true;
    }

    /* ---- Ways out ---- */

    /* Writes frames 1 to `last` to the arena. Returns the node of the child of frame `last` that is in progress or, of
     * the topmost frame, is the next one; no_node if the arena is full, and then nothing is done. */
    __device__ unsigned write_out(unsigned last) {
        unsigned total = 0;
        for (unsigned f = 1; f <= last; ++f)
            total += f < frames ? header_of(f).n : n;
        unsigned first = arena.take(total), at_node = root, from = 1;
        if (first == no_node)
            return no_node;
        for (unsigned f = 1; f <= last; ++f) {
            const unsigned count = f < frames ? header_of(f).n : n, begun = f < frames ? header_of(f).next : next;
            const unsigned finished = f < frames ? begun - 1 : begun;
            for (unsigned k = 0; k < count; ++k) {
                arena[first + k].at = at(from + k);
                arena.make(first + k, at_node, depth + f, k < finished ? done : k < begun ? taken : pending);
            }
            arena.make_parent(at_node, first, count, count - finished);
            at_node = first + finished;
            first += count;
            from += count;
        }
        return at_node;
    }

    /* Gives frames 1 to `last` away: the lane keeps only what is above, or the topmost frame's next child. Returns
     * false if the arena is full. */
    __device__ bool give(unsigned last) {
        const unsigned node = write_out(last);
        if (node == no_node)
            return false;
        if (last == frames) {
            arena[node].state = taken;
            start(node);
            return true;
        }
        unsigned end = 1; /* of frame `last` */
        for (unsigned f = 1; f <= last; ++f)
            end += header_of(f).n;
        at(0) = at(end - header_of(last).n + header_of(last).next - 1);
        for (unsigned k = end; k < base + n; ++k)
            at(k - end + 1) = at(k);
        for (unsigned f = last + 1; f < frames; ++f)
            header_of(f - last) = header_of(f);
        header_of(0) = {1, 1};
        root = node;
        depth += last;
        frames -= last;
        base -= end - 1;
        return true;
    }

    /* Makes room on the full stack: gives its lower half away or, if the arena is full, saves the stack. */
    __device__ void overflow() {
        unsigned last = 1, end = 1 + (frames > 1 ? header_of(1).n : n);
        while (last + 1 < frames && end < room / 2)
            end += header_of(++last).n;
        if (saved != no_node || !give(last)) {
            atomicAdd(&arena.args.arena->serialised, 1);
            save();
        }
    }

    /* Gives the lowest frame away that has children which are not begun, unless it is the topmost one. */
    __device__ void share() {
        unsigned f = 1;
        while (f < frames && header_of(f).next == header_of(f).n)
            ++f;
        if (f < frames && saved == no_node)
            give(f);
    }

    /* Saves the stack in a chunk, and goes on with the topmost frame's next child on an empty one. */
    __device__ void save() {
        const dpr_persistent_args &args = arena.args;
        const unsigned i = spare != no_node ? spare : atomicAdd(&args.arena->chunks, 1);
        if (i >= args.chunks) {
            arena.fail(DPR_ERR_OUT_OF_MEMORY);
            return;
        }
        char *to = chunk_at(i);
        spare = spare != no_node ? reinterpret_cast<chunk *>(to)->below : no_node;
        *reinterpret_cast<chunk *>(to) = {saved, frames, base, n, next};
        auto *slots_to = reinterpret_cast<recursion::slot<P> *>(to + 32);
        for (unsigned k = 0; k < base + n; ++k)
            slots_to[k] = at(k);
        auto *headers_to = reinterpret_cast<header<P> *>(slots_to + room);
        for (unsigned k = 0; k < frames; ++k)
            headers_to[k] = header_of(k);
        saved = i;
        at(0) = at(base + next);
        depth += frames;
        frames = base = next = 0;
        n = 1;
    }

    /* Goes on with the stack that was saved last: its topmost frame's next child is solved, in slot 0. */
    __device__ void restore() {
        char *from = chunk_at(saved);
        const auto c = *reinterpret_cast<const chunk *>(from);
        const auto *slots_from = reinterpret_cast<const recursion::slot<P> *>(from + 32);
        const auto *headers_from = reinterpret_cast<const header<P> *>(slots_from + room);
        const recursion::slot<P> solved = at(0);
        for (unsigned k = 0; k < c.base + c.n; ++k)
            at(k) = slots_from[k];
        for (unsigned k = 0; k < c.frames; ++k)
            header_of(k) = headers_from[k];
        reinterpret_cast<chunk *>(from)->below = spare;
        spare = saved;
        saved = c.below;
        depth -= c.frames;
        frames = c.frames;
        base = c.base;
        n = c.n;
        next = c.next;
        at(base + next) = solved;
        ++next;
    }

    /* What happens seldom is a call with a copy of the lane, so that the lane itself can stay in registers. */
    enum class detour { restore, overflow, share };
    static __device__ __noinline__ lane take(detour way, lane l) {
        if (way == detour::restore)
            l.restore();
        else if (way == detour::overflow)
            l.overflow();
        else
            l.share();
        return l;
    }
    __device__ void go(detour way) {
        const lane l = take(way, *this);
        root = l.root;
        frames = l.frames;
        base = l.base;
        n = l.n;
        next = l.next;
        saved = l.saved;
        spare = l.spare;
        depth = l.depth;
        deepest = l.deepest;
        tasks = l.tasks;
    }

    /* One step of a busy lane. */
    __device__ void step() {
        if (next == n) {
            if (frames > 0) {
                join();
            } else if (saved != no_node) {
                go(detour::restore);
            } else {
                arena.solve(root, at(0).result);
                root = no_node;
                return;
            }
        }
        if (next < n && !descend())
            go(detour::overflow);
    }
};

/* ---- Phases ----------------------------------------------------------------------------------------------------- */

/* Divides the pending tasks among nodes begin .. end-1: thread `me` of `threads`. Those for whose children there is no
 * room stay pending. Returns how many tasks it divided or solved. */
template <class P>
__device__ unsigned divide_level(const nodes<P> &arena, lane<P> &own, unsigned begin, unsigned end, unsigned me,
                                 unsigned threads) {
    unsigned divided = 0;
    for (unsigned i = begin + me; i < end; i += threads) {
        if (arena[i].state != pending)
            continue;
        const typename P::task t = arena[i].at.task;
        const int n = P::divide(arena.data, t, children<P>(&own.at(0), own.stride, P::most_children));
        if (static_cast<unsigned>(n) > static_cast<unsigned>(P::most_children)) {
            arena.fail(DPR_ERR_DIVIDE, n);
            return divided;
        }
        const unsigned depth = arena[i].depth;
        own.deepest = depth > own.deepest ? depth : own.deepest;
        if (n == 0) {
            ++divided;
            arena.solve(i, P::base(arena.data, t));
            continue;
        }
        const unsigned first = arena.take(n);
        if (first == no_node)
            continue;
        ++divided;
        if (depth >= arena.args.max_depth)
            arena.fail(DPR_ERR_LIMIT);
        for (int k = 0; k < n; ++k) {
            arena[first + k].at.task = own.at(k).task;
            arena.make(first + k, i, depth + 1, pending);
        }
        arena.make_parent(i, first, n, n);
    }
    return divided;
}

/* Solves tasks, one a lane: the pending ones among nodes begin .. end-1, and those that lanes still have. Returns when
 * none is left to take, after another `budget` steps. Adds the lanes that have tasks then to *busy. All lanes of a warp
 * call it. */
template <class P>
__device__ void solve_tasks(const nodes<P> &arena, lane<P> &own, unsigned begin, unsigned end, unsigned *busy) {
    const dpr_persistent_args &args = arena.args;
    const unsigned mine = threadIdx.x % 32;
    bool dry = begin == end;
    unsigned steps = 0;
    for (unsigned turn = 1;; ++turn) {
        const unsigned idle = __ballot_sync(~0u, !own.busy());
        if (idle != 0 && !dry) {
            unsigned first = 0;
            if (mine == 0)
                first = atomicAdd(&args.arena->taken, __popc(idle));
            first = begin + __shfl_sync(~0u, first, 0);
            dry = first + __popc(idle) >= end;
            const unsigned i = first + __popc(idle & ((1u << mine) - 1));
            if (!own.busy() && i < end && arena[i].state == pending)
                own.start(i);
        } else if (idle == ~0u) {
            return;
        }
        if (own.busy())
            own.step();
        if (dry && ++steps > args.budget)
            break;
        if (turn % 1024 == 0) {
            if (own.tasks > args.max_tasks)
                arena.fail(DPR_ERR_LIMIT);
            if (__any_sync(~0u, arena.failed()))
                return;
        }
    }
    const unsigned working = __ballot_sync(~0u, own.busy());
    if (mine == 0 && working != 0)
        atomicAdd(busy, __popc(working));
    if (own.busy())
        own.go(lane<P>::detour::share);
}

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

/* Puts `words` 32-bit words into the mailbox, from its word `at` on. */
__device__ inline void post(const dpr_persistent_args &args, unsigned at, const uint32_t *from, unsigned words) {
    for (unsigned i = 0; i < words; ++i)
        cuda::atomic_ref<uint64_t, cuda::thread_scope_system>(args.mailbox[at + i])
            .store(uint64_t{args.tag} << 32 | from[i], cuda::memory_order_relaxed);
}

/* Leaves the arena zero, and puts the report and few results into the mailbox, when all else is written. */
template <class P> __device__ void report(const nodes<P> &arena, unsigned rounds, unsigned levels, unsigned widest) {
    constexpr unsigned words = sizeof(dpr_persistent_report) / 4;
    const dpr_persistent_args &args = arena.args;
    dpr_arena &a = *args.arena;
    dpr_persistent_report r = {};
    r.tasks = a.tasks;
    r.error = a.error;
    r.wrong = a.wrong;
    r.deepest = a.deepest;
    r.rounds = rounds;
    r.levels = levels;
    r.widest = widest;
    r.nodes = a.nodes < args.capacity ? a.nodes : args.capacity;
    r.serialised = a.serialised;
    a = dpr_arena{};
    uint32_t results[DPR_PERSISTENT_LETTER / 4] = {};
    if (args.count <= sizeof results / sizeof(typename P::result))
        for (unsigned i = 0; i < args.count; ++i)
            memcpy(reinterpret_cast<char *>(results) + i * sizeof(typename P::result), &arena[i].at.result,
                   sizeof(typename P::result));
    __threadfence_system();
    post(args, 0, reinterpret_cast<const uint32_t *>(&r), words);
    post(args, words, results, DPR_PERSISTENT_LETTER / 4);
}

__device__ inline unsigned end_of(const dpr_persistent_args &args) {
    const unsigned nodes = *reinterpret_cast<volatile unsigned *>(&args.arena->nodes);
    return nodes < args.capacity ? nodes : args.capacity;
}

template <class P> __device__ void place_roots(const nodes<P> &arena, unsigned me, unsigned threads) {
    const void *from = arena.args.roots ? arena.args.roots : arena.args.few_roots;
    const auto *roots = static_cast<const typename P::task *>(from);
    for (unsigned i = me; i < arena.args.count; i += threads) {
        arena[i].at.task = roots[i];
        arena.make(i, no_node, 0, pending);
    }
}

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
    const dpr_persistent_args &args = arena.args;
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

template <class P>
__global__ __launch_bounds__(1024, 1) void persistent(const __grid_constant__ dpr_persistent_args args,
                                                      const __grid_constant__ data_of<P> data) {
    extern __shared__ __align__(16) char shared[];
    const cg::grid_group grid = cg::this_grid();
    const unsigned me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const nodes<P> arena = {args, data};
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
        solve_tasks(arena, own, begin, end, &a.busy[rounds % 2]);
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
        for (unsigned i = me; i < args.count; i += threads)
            static_cast<typename P::result *>(args.out)[i] = arena[i].at.result;
    grid.sync();
    if (me == 0)
        report(arena, rounds, levels, widest);
}

/* ---- For the library ---- */

template <class P> int find_persistent(unsigned shared_bytes, void **function) {
    const auto *kernel = reinterpret_cast<const void *>(persistent<P>);
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    return static_cast<int>(
        error == cudaSuccess ? cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(function), kernel) : error);
}

template <class P>
const dpr_recursion_kernels persistent_table = {find_persistent<P>, sizeof(node<P>), sizeof(slot<P>),
                                                sizeof(header<P>)};

} // namespace recursion
} // namespace dpr

#endif
