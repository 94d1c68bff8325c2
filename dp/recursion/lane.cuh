/* A lane: a thread of the GPU that solves tasks depth first, on a stack in shared memory. */
#ifndef DPR_DP_LANE_CUH
#define DPR_DP_LANE_CUH

#include "arena.cuh"

namespace dpr {
namespace recursion {

/* What a lane's stack keeps of the frames below the topmost: how many children, and the number of the next one. */
template <class P> struct header { header_word<P> n, next; };

/* A saved stack, in a chunk. */
struct chunk {
    unsigned below; /* the chunk that was saved before, or the next one of a list of free ones; or no_node */
    struct {
        unsigned frames, base, n, next;
    } kept;
};

/* What a lane has folded. Nothing, if the policy joins results. */
template <class P, bool = folds<P>> struct tally {};
template <class P> struct tally<P, true> {
    unsigned root = no_node; /* whose results they are */
    unsigned solved = 0;     /* tasks less their children, modulo 2^32 */
    typename P::result sum = nothing_folded<P>();
};

/* The stack of one lane: slots, one frame's children after another's. Frame 0 has the task that the lane has taken. The
 * task of every other frame is in the slot of its parent whose number is the parent's next - 1, if results are joined.
 */
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
    unsigned tasks = 0;                             /* counted since the last add_tasks() */
    tally<P> kept = {};

    __device__ slot<P> &at(unsigned i) const { return *reinterpret_cast<slot<P> *>(slots + i * stride); }
    __device__ header<P> &header_of(unsigned i) const { return headers[i * lanes]; }
    __device__ char *chunk_at(unsigned i) const {
        return static_cast<char *>(arena.args.chunk_memory) + static_cast<size_t>(i) * arena.args.chunk_bytes;
    }
    /* Whether the children of any task fit. */
    __device__ bool has_room() const { return base + n + P::most_children <= room; }
    __device__ bool busy() const { return root != no_node; }
    /* Whether a busy lane's task is solved, so that finish() is due. */
    __device__ bool is_solved() const { return next == n && frames == 0 && saved == no_node; }

    /* Begins with a task at this depth, of node i or below it, for the root `of` if results are folded. */
    __device__ void begin(unsigned i, const task &t, unsigned at_depth, unsigned of) {
        root = i;
        at(0).task = t;
        depth = at_depth;
        frames = base = next = 0;
        n = 1;
        if constexpr (folds<P>)
            keep_for(of);
    }
    __device__ void start(unsigned i) { begin(i, arena[i].at.task, arena[i].depth, arena[i].parent); }

    /* Counts a task that was divided into n, or solved if n is 0. */
    __device__ void count(const task &t, int children) {
        ++tasks;
        if constexpr (folds<P>)
            kept.solved += 1 - static_cast<unsigned>(children);
        if constexpr (has_part<P>)
            if (children > 0)
                kept.sum = folded<P>(kept.sum, P::part(arena.data, t));
    }

    /* Adds the tasks that were counted to the run's, together with other lanes of the warp. Ends the run if it has too
     * many. */
    __device__ void add_tasks() {
        const cg::coalesced_group all = cg::coalesced_threads();
        const unsigned long long sum = cg::reduce(all, tasks, cg::plus<unsigned>());
        tasks = 0;
        if (all.thread_rank() == 0 && sum > 0)
            check_tasks(arena.args, atomicAdd(&arena.args.arena->tasks, sum) + sum);
    }

    /* ---- Folding ---- */

    struct fold_two {
        __device__ result operator()(result a, result b) const { return folded<P>(a, b); }
    };

    /* Makes `of` the root that the lane folds for. Hands in what it has folded for another one. */
    __device__ void keep_for(unsigned of) {
        if (kept.root != of && kept.root != no_node)
            arena.fold(kept.root, kept.sum);
        if (kept.root != of)
            kept.sum = nothing_folded<P>();
        kept.root = of;
    }

    /* Adds what the lane keeps to the arena's words, together with other lanes of the warp. */
    __device__ void hand_in() {
        add_tasks();
        if constexpr (folds<P>) {
            if (kept.root != no_node) {
                const auto alike = cg::labeled_partition(cg::coalesced_threads(), kept.root);
                const result sum = cg::reduce(alike, kept.sum, fold_two());
                if (alike.thread_rank() == 0)
                    arena.fold(kept.root, sum);
            }
            const cg::coalesced_group all = cg::coalesced_threads();
            const unsigned solved = cg::reduce(all, kept.solved, cg::plus<unsigned>());
            if (all.thread_rank() == 0 && solved != 0)
                atomicAdd(&arena.args.arena->solved, solved);
            kept.solved = 0;
            kept.sum = nothing_folded<P>();
            kept.root = busy() ? kept.root : no_node;
        }
    }

    /* Solves node i, and sets its result. */
    __device__ void solve(unsigned i, const result &r) {
        if constexpr (folds<P>) {
            keep_for(arena[i].parent);
            kept.sum = folded<P>(kept.sum, r);
            arena.set_state(i, done);
        } else {
            arena.solve(i, r);
        }
    }

    /* ---- Steps ---- */

    /* The task in slot 0 is solved. This waits for memory, for all lanes of the warp, so it is not a part of step():
     * what lanes finish in a few steps they finish together. */
    __device__ void finish() {
        if constexpr (folds<P>)
            arena.set_state(root, done);
        else
            arena.solve(root, at(0).result);
        root = no_node;
    }

    /* Leaves the topmost frame, whose children are all solved, and combines their results. */
    __device__ void join() {
        const unsigned top = base, children = n;
        const header<P> h = header_of(--frames);
        n = h.n;
        next = h.next;
        base -= n;
        if constexpr (!folds<P>) {
            slot<P> &mine = at(base + next - 1);
            const task t = mine.task;
            mine.result = arena.combine(t, results<P>(&at(top), stride), static_cast<int>(children));
        }
    }

    /* Divides the next child of the topmost frame. Returns false if the stack is too full for its children. */
    __device__ bool descend() {
        const unsigned top = base + n, free = room - top;
        const task t = at(base + next).task;
        const unsigned most = free < static_cast<unsigned>(P::most_children) ? free : P::most_children;
        const int m = arena.divide(t, children<P>(&at(top), stride, most));
        if (static_cast<unsigned>(m) > most) {
            if (m >= 0 && m <= P::most_children)
                return false;
            arena.fail(DPR_ERR_DIVIDE, m);
            return true;
        }
        count(t, m);
        ++next;
        if (m == 0) {
            if constexpr (folds<P>)
                kept.sum = folded<P>(kept.sum, arena.base(t));
            else
                at(base + next - 1).result = arena.base(t);
            deepest = depth + frames > deepest ? depth + frames : deepest;
        } else {
            if (depth + frames >= arena.args.max_depth)
                arena.fail(DPR_ERR_LIMIT, DPR_LIMIT_OF_DEPTH);
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

    /* write_out() for policies that fold: writes only tasks that are not begun. If `last` is the topmost frame, returns
     * the node of its next child. Otherwise returns the lane's root, because the child in progress needs no node.
     * Returns no_node if the arena is full. */
    __device__ unsigned write_out_tasks(unsigned last) {
        unsigned total = 0, from = 1, node = root;
        for (unsigned f = 1; f <= last; ++f)
            total += f < frames ? header_of(f).n - header_of(f).next : n - next;
        unsigned first = total > 0 ? arena.take(total, arena.has_room()) : 0;
        if (first == no_node)
            return no_node;
        arena.set_state(root, done);
        for (unsigned f = 1; f <= last; ++f) {
            const unsigned count = f < frames ? header_of(f).n : n, begun = f < frames ? header_of(f).next : next;
            if (f == frames)
                node = first;
            for (unsigned k = begun; k < count; ++k, ++first) {
                arena[first].at.task = at(from + k).task;
                arena.make(first, kept.root, depth + f, pending);
            }
            from += count;
        }
        return node;
    }

    /* Writes frames 1 to `last` to the arena. Returns the node of the child of frame `last` that is in progress or, of
     * the topmost frame, is the next one; no_node if the arena is full, and then nothing is done. */
    __device__ unsigned write_out(unsigned last) {
        unsigned total = 0;
        for (unsigned f = 1; f <= last; ++f)
            total += f < frames ? header_of(f).n : n;
        unsigned first = arena.take(total, arena.has_room()), at_node = root, from = 1;
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
        unsigned node;
        if constexpr (folds<P>)
            node = write_out_tasks(last);
        else
            node = write_out(last);
        if (node == no_node)
            return false;
        if (last == frames) {
            arena.set_state(node, taken);
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

    /* Makes room on the full stack: gives its lower half away or, if the arena is full or nobody would take it,
     * saves the stack. */
    __device__ void overflow() {
        unsigned last = 1, end = 1 + (frames > 1 ? header_of(1).n : n);
        while (last + 1 < frames && end < room / 2)
            end += header_of(++last).n;
        if (arena.args.keeps || saved != no_node || !give(last)) {
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

    /* Gives all away that is not begun, or solves the little that is left. Afterwards the lane is idle, unless the
     * arena is full or it has saved a stack. */
    __device__ void leave() {
        while (next == n && frames > 0)
            join();
        if (next == n && saved == no_node) {
            finish();
        } else if (next < n && saved == no_node && (frames == 0 || give(frames))) {
            arena.set_state(root, pending);
            root = no_node;
        }
    }

    /* ---- Chunks ---- */

    __device__ unsigned &below(unsigned i) const { return reinterpret_cast<chunk *>(chunk_at(i))->below; }
    /* Lanes that try to take a chunk may read the word. */
    __device__ void set_below(unsigned i, unsigned other) const {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device>(below(i)).store(other, cuda::memory_order_relaxed);
    }
    /* dpr_arena.free_chunks, when it was `before`, with another first chunk. */
    static __device__ uint64_t list_from(unsigned first, uint64_t before) {
        return ((before >> 32) + 1) << 32 | (first + 1);
    }

    /* Makes a chunk spare that another lane has given back, or else a new one. */
    __device__ void take_chunk() {
        const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> list(arena.args.arena->free_chunks);
        uint64_t before = list.load(cuda::memory_order_acquire);
        for (unsigned i; (i = static_cast<unsigned>(before) - 1) != no_node;) {
            /* If another lane takes the chunk meanwhile, its word is of no use, but then the list has changed. */
            if (!list.compare_exchange_weak(before, list_from(now_of(below(i)), before), cuda::memory_order_acquire))
                continue;
            set_below(i, no_node);
            spare = i;
            return;
        }
        const unsigned i = atomicAdd(&arena.args.arena->chunks, 1);
        if (i >= arena.args.chunks) {
            arena.fail(DPR_ERR_OUT_OF_MEMORY);
            return;
        }
        set_below(i, no_node);
        spare = i;
    }

    /* Gives the spare chunks back, for lanes of other launches. */
    __device__ void give_chunks() {
        if (spare == no_node)
            return;
        unsigned last = spare;
        while (below(last) != no_node)
            last = below(last);
        const cuda::atomic_ref<uint64_t, cuda::thread_scope_device> list(arena.args.arena->free_chunks);
        uint64_t before = list.load(cuda::memory_order_relaxed);
        do
            set_below(last, static_cast<unsigned>(before) - 1);
        while (!list.compare_exchange_weak(before, list_from(spare, before), cuda::memory_order_release));
        spare = no_node;
    }

    /* Saves the stack in a chunk, and goes on with the topmost frame's next child on an empty one. */
    __device__ void save() {
        if (spare == no_node)
            take_chunk();
        if (spare == no_node)
            return;
        const unsigned i = spare;
        char *to = chunk_at(i);
        spare = below(i);
        set_below(i, saved);
        reinterpret_cast<chunk *>(to)->kept = {frames, base, n, next};
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
        const auto c = reinterpret_cast<const chunk *>(from)->kept;
        const auto *slots_from = reinterpret_cast<const recursion::slot<P> *>(from + 32);
        const auto *headers_from = reinterpret_cast<const header<P> *>(slots_from + room);
        const recursion::slot<P> solved = at(0);
        for (unsigned k = 0; k < c.base + c.n; ++k)
            at(k) = slots_from[k];
        for (unsigned k = 0; k < c.frames; ++k)
            header_of(k) = headers_from[k];
        const unsigned i = saved;
        saved = below(i);
        set_below(i, spare);
        spare = i;
        depth -= c.frames;
        frames = c.frames;
        base = c.base;
        n = c.n;
        next = c.next;
        at(base + next) = solved;
        ++next;
    }

    /* What happens seldom is a call with a copy of the lane, so that the lane itself can stay in registers. */
    enum class detour { restore, overflow, share, leave };
    static __device__ __noinline__ lane after(detour way, lane l) {
        if (way == detour::restore)
            l.restore();
        else if (way == detour::overflow)
            l.overflow();
        else if (way == detour::share)
            l.share();
        else
            l.leave();
        return l;
    }
    __device__ void go(detour way) {
        const lane l = after(way, *this);
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
        kept = l.kept;
    }

    /* One step of a busy lane. Nothing is left to do when its task is solved. */
    __device__ void step() {
        if (next == n && frames > 0)
            do
                join();
            while (folds<P> && next == n && frames > 0); /* nothing is joined, so that is not a step */
        else if (next == n && saved != no_node)
            go(detour::restore);
        if (next < n && !descend())
            go(detour::overflow);
    }

    /* ---- Within a warp ---- */

    /* Children that other lanes may take: those that are not begun, of the lowest frame that has any. The topmost one's
     * children are the lane's own; but if results are folded, only the next one is. */
    struct offer {
        unsigned frame, from, count; /* the frame, the slot of the first one, and how many */
    };
    __device__ offer find_offer() const {
        unsigned f = 1, from = 1;
        for (; f < frames; ++f) {
            const header<P> h = header_of(f);
            if (h.next < h.n)
                return {f, from + h.next, static_cast<unsigned>(h.n - h.next)};
            from += h.n;
        }
        const bool has_spare = folds<P> && f == frames && next + 1 < n;
        return {f, from + next, has_spare ? n - next - 1 : 0};
    }

    /* Which lane takes which child: lanes that have no task, and children on offer, both in the order of the warp. */
    struct match {
        unsigned wanted, rank;  /* lanes without a task: all, and those before this one */
        unsigned offered, mine; /* children: all, and those that lanes before this one offer */
        unsigned from;          /* the lane that offers child number `rank`, if there are as many */

        /* How many of the `count` children that this lane offers are taken by other lanes. */
        __device__ unsigned given(unsigned count) const {
            const unsigned left = wanted > mine ? wanted - mine : 0;
            return left < count ? left : count;
        }
    };

    /* All lanes of a warp call it: those in `idle` have no task, and each offers `count` children, at most 31. */
    static __device__ match match_lanes(unsigned idle, unsigned count) {
        const unsigned below = (1u << threadIdx.x % 32) - 1;
        const warp_sum offers = sum_over_warp<31>(count);
        match m = {static_cast<unsigned>(__popc(idle)), static_cast<unsigned>(__popc(idle & below)), offers.all,
                   offers.before, 0};
        const unsigned end = m.mine + count;
        for (unsigned half = 16; half > 0; half /= 2) /* how many lanes' offers end before */
            m.from += __shfl_sync(~0u, end, static_cast<int>(m.from + half - 1)) <= m.rank ? half : 0;
        return m;
    }

    /* Takes a child from the other lane's stack. No node is made for it: the lane has the same root as the other one,
     * and both say at the end that it is done. */
    __device__ void take_task(const match &m, const offer &o, bool takes) {
        const int other = static_cast<int>(m.from), away = other - static_cast<int>(threadIdx.x % 32);
        const unsigned i = __shfl_sync(~0u, o.from - m.mine, other) + m.rank;
        const unsigned above = __shfl_sync(~0u, root, other), of = __shfl_sync(~0u, kept.root, other);
        const unsigned at_depth = __shfl_sync(~0u, depth + o.frame, other);
        __syncwarp(); /* the other lane's writes come before, and its next ones after */
        if (takes) {
            const char *there = slots + away * static_cast<int>(slot_bytes) + i * stride;
            begin(above, reinterpret_cast<const slot<P> *>(there)->task, at_depth, of);
        }
        __syncwarp();
        if (o.frame < frames)
            header_of(o.frame).next += m.given(o.count);
        else
            next += m.given(o.count);
    }

    /* Takes a child that the other lane makes a node. */
    __device__ void take_node(const match &m, const offer &o, bool takes) {
        const unsigned before = root;
        if (m.given(o.count) > 0)
            go(detour::share);
        __syncwarp();
        const unsigned gave = __ballot_sync(~0u, root != before);
        const unsigned i = __shfl_sync(~0u, root + 1 - m.mine, static_cast<int>(m.from)) + m.rank;
        if (takes && (gave >> m.from & 1) != 0) {
            arena.set_state(i, taken);
            start(i);
        }
    }

    /* Lanes that have no task, those in `idle`, take children of other lanes. All lanes of the warp call it. */
    __device__ void take_from_others(unsigned idle) {
        offer o = find_offer();
        if (!folds<P> && (saved != no_node || !arena.has_room()))
            o.count = 0; /* share() would do nothing */
        o.count = o.count < 31 ? o.count : 31;
        const match m = match_lanes(idle, o.count);
        if (m.offered == 0)
            return;
        const bool takes = !busy() && m.rank < m.offered;
        if constexpr (folds<P>)
            take_task(m, o, takes);
        else
            take_node(m, o, takes);
    }
};

/* ---- Phases ----------------------------------------------------------------------------------------------------- */

/* Makes the first n slots of `own` the children of node i. Returns false if there is no room: the node stays pending.
 */
template <class P>
__device__ bool make_children(const nodes<P> &arena, const lane<P> &own, unsigned i, int n, bool had_room) {
    const unsigned depth = arena[i].depth, parent = folds<P> ? arena[i].parent : i, first = arena.take(n, had_room);
    if (first == no_node)
        return false;
    if (depth >= arena.args.max_depth)
        arena.fail(DPR_ERR_LIMIT, DPR_LIMIT_OF_DEPTH);
    for (int k = 0; k < n; ++k) {
        arena[first + k].at.task = own.at(k).task;
        arena.make(first + k, parent, depth + 1, pending);
    }
    arena.make_parent(i, first, n, n);
    return true;
}

/* Whether a task is so small that it is not divided for a frontier. */
template <class P>
__device__ bool is_left_to_lanes(const nodes<P> &arena, const typename P::task &t, uint64_t undivided) {
    if constexpr (has_cost<P>)
        return undivided > 0 && P::cost(arena.data, t) <= undivided;
    return false;
}

/* Divides the pending tasks among nodes begin .. end-1: thread `me` of `threads`. Those for whose children there is no
 * room stay pending, and those that cost at most `undivided`. All that a task needs is read at once, because narrow
 * levels wait for nothing but memory. */
template <class P>
__device__ void divide_level(const nodes<P> &arena, lane<P> &own, unsigned begin, unsigned end, unsigned me,
                             unsigned threads, uint64_t undivided = 0) {
    for (unsigned i = begin + me; i < end; i += threads) {
        if (i >= begin + threads) { /* the thread's second task, or a later one */
            check_time(*arena.args.arena);
            if (arena.failed())
                return;
        }
        const bool had_room = arena.has_room();
        const typename P::task t = arena[i].at.task;
        const unsigned depth = arena[i].depth;
        if (arena.state_of(i) != pending || is_left_to_lanes(arena, t, undivided))
            continue;
        const int n = arena.divide(t, children<P>(&own.at(0), own.stride, P::most_children));
        if (!arena.is_count(n))
            return;
        own.deepest = depth > own.deepest ? depth : own.deepest;
        if (n == 0)
            own.solve(i, arena.base(t));
        if constexpr (has_part<P>)
            own.keep_for(arena[i].parent);
        if (n == 0 || make_children(arena, own, i, n, had_room))
            own.count(t, n);
    }
}

/* For how long lanes go on when no task is left to take, at most. Steps differ between policies: one of fib takes 1.3
 * us where all lanes of an SM are busy, one of quadrature 3.5 us (H100). */
constexpr uint32_t patience_ns = 100000;

/* Whether so few tasks are left that lanes go on for a few steps only, after which the tasks are spread again. With
 * very few, as in a chain, a lane does best alone. */
constexpr unsigned very_few = 16;
__device__ inline bool are_few(unsigned tasks, unsigned lanes) {
    return tasks < lanes / 4 && tasks > very_few;
}

/* Whether the nodes before `end` are so many that lanes should write out less often. */
__device__ inline bool is_filling(const dpr_recursion_args &args, unsigned end) {
    return end > args.capacity / 4;
}

/* Steps of a round with few tasks. Policies that fold have many such rounds, after each of which lanes write out what
 * they have. */
template <class P> __device__ unsigned steps_of_few(const dpr_recursion_args &args, unsigned end) {
    return !folds<P> ? 16 : is_filling(args, end) ? 64 : 8;
}

/* Levels that are divided before lanes begin, at most. A tree with few tasks in each level may be very deep, and if
 * results are folded, lanes are faster than levels then. */
template <class P> constexpr unsigned most_levels = folds<P> ? 32 : 64;

/* Few tasks are for the first warps of each block: one for each scheduler of an SM, or more, so that each lane gets one
 * at most. */
__device__ inline unsigned threads_for_few() {
    const unsigned wanted = blockDim.x < 512 ? 128 : blockDim.x / 4;
    return wanted < blockDim.x ? wanted : blockDim.x;
}

/* How many of few tasks a warp takes at a time, so that all warps that take some get about as many. */
__device__ inline unsigned share_of_few(unsigned tasks) {
    const unsigned warps = gridDim.x * ((threads_for_few() + 31) / 32);
    return (tasks + warps - 1) / warps;
}

/* How many lanes of a warp have no task when they take some from the others. If results are joined, nodes are written
 * for that: it pays soon where tasks are few; late for `host`, `level` and `graph`, whose lanes write out everything at
 * the end of a phase; and not for `persistent` otherwise. */
enum : unsigned { share_soon = 8, share_late = 24, share_never = 33 };

/* What lanes do when no task is left to take. */
struct endgame {
    unsigned steps, ns; /* they make at most so many steps, and go on for at most so many nanoseconds */
    unsigned share_at;  /* if so many lanes of a warp have no task, they take some from the others */
};

/* Solves tasks, one a lane: the pending ones among nodes begin .. end-1, and those that lanes still have. If they are
 * few, they are spread over all blocks. All lanes of a warp call it. */
template <class P>
__device__ void solve_tasks(const nodes<P> &arena, lane<P> &own, unsigned begin, unsigned end, bool few,
                            const endgame &then) {
    const dpr_recursion_args &args = arena.args;
    const unsigned mine = threadIdx.x % 32, at_a_time = few ? share_of_few(end - begin) : 32;
    bool dry = begin == end || (few && threadIdx.x >= threads_for_few());
    unsigned steps = 0;
    uint32_t dry_since = 0;
    for (unsigned turn = 1;; ++turn) {
        const unsigned idle = __ballot_sync(~0u, !own.busy());
        if (idle != 0 && !dry) {
            const unsigned without = __popc(idle), wanted = without < at_a_time ? without : at_a_time;
            unsigned first = 0;
            if (mine == 0)
                first = atomicAdd(&args.arena->taken, wanted);
            first = begin + __shfl_sync(~0u, first, 0);
            dry = first + wanted >= end || (few && wanted == at_a_time);
            const unsigned rank = __popc(idle & ((1u << mine) - 1)), i = first + rank;
            if (!own.busy() && rank < wanted && i < end && arena.state_of(i) == pending)
                own.start(i);
        } else if (idle == ~0u) {
            return;
        } else if (__popc(idle) >= then.share_at) {
            own.take_from_others(idle);
        }
        /* A look for lanes without a task takes as long as a step. But where tasks are found in the stacks of others, a
         * lane should not wait for them. */
        const unsigned steps_at_once = folds<P> && dry ? 1 : 4;
#pragma unroll 1
        for (unsigned i = 0; i < steps_at_once; ++i)
            if (own.busy())
                own.step();
        if (own.busy() && own.is_solved())
            own.finish();
        if (dry) {
            const uint32_t now = __shfl_sync(~0u, static_cast<uint32_t>(time_now()), 0);
            dry_since = steps == 0 ? now : dry_since;
            steps += steps_at_once;
            if (steps > then.steps || now - dry_since > then.ns)
                return;
        }
        if (turn % 64 == 0) {
            own.add_tasks();
            check_time(*args.arena);
            if (__any_sync(~0u, arena.failed()))
                return;
        }
    }
}

} // namespace recursion
} // namespace dpr

#endif
