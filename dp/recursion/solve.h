/* Solving a task on a CPU thread: plain recursion on the thread's stack for a limited number of levels. When these are
 * used up, or other threads have nothing to do, the recursion returns, and every level on the way writes its frame to
 * the heap, where any thread can go on. So the stack stays small however deep the recursion is. */
#ifndef DPR_DP_SOLVE_H
#define DPR_DP_SOLVE_H

#include <utility>

#include "policy.h"
#include "recursion.h"

#define DPR_INLINED_ __attribute__((always_inline)) static inline

namespace dpr {
namespace recursion {

template <class P> uint64_t cost_of(const void *data, const void *task) {
    return P::cost(*static_cast<const data_of<P> *>(data), *static_cast<const typename P::task *>(task));
}

template <class P> struct solving {
    using task = typename P::task;
    using result = typename P::result;
    using data = data_of<P>;
    static constexpr size_t most = P::most_children;

    /* Whether variables of code that is inlined at several places share their places on the stack. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    static constexpr bool shares_stack = true;
#else
    static constexpr bool shares_stack = false;
#endif
    static constexpr bool is_small = sizeof(slot<P>) <= 8;
    using passed = std::conditional_t<sizeof(task) <= 8, const task, const task &>; /* in a register, or by address */

    /* Bytes of stack, at most, that a level takes, and of all levels together. */
    static constexpr size_t level_bytes = (most + 1) * sizeof(task) + most * sizeof(result) + 192, stack_bytes = 65536;
    static constexpr bool on_heap = level_bytes > stack_bytes / 8;
    static constexpr int levels = on_heap ? 0 : stack_bytes / level_bytes < 256 ? stack_bytes / level_bytes : 256;

    static slot<P> &slot_of(const dpr_frame *frame, size_t i) {
        return static_cast<slot<P> *>(frame->slots)[i];
    }

    /* The children of a task, and the results of those that are solved. */
    struct family {
        task tasks[most + 1];
        result results[most];
    };

    /* Writes a level's frame. Children before i are solved; `inner` is what solve_child() returned for child i. Takes a
     * copy of a small family, so that the family itself may be in registers. */
    using written = std::conditional_t<is_small, family, const family &>;
    __attribute__((noinline, cold)) static dpr_frame *write_out(dpr_solver *s, written f, int n, int i,
                                                                dpr_frame *inner) {
        dpr_frame *frame = inner == s->stop ? inner : s->frame(s, static_cast<uint64_t>(n));
        if (frame == s->stop)
            return frame;
        for (int k = 0; k < i; ++k)
            slot_of(frame, static_cast<size_t>(k)).result = f.results[k];
        for (int k = i; k < n; ++k)
            slot_of(frame, static_cast<size_t>(k)).task = f.tasks[k];
        frame->inner = inner == s->unsolved ? nullptr : inner;
        frame->next = static_cast<uint64_t>(i) + (frame->inner != nullptr);
        return frame;
    }

    /* ---- Levels ---- */

    struct state {
        dpr_solver *s;
        const data &d;
        int64_t fuel; /* as in dpr_solver; here it stays in a register */
    };

    /* How many levels are inlined in the one above them: as many as have at most `inlined_tasks` tasks together with
     * it. Otherwise calls would take most of the time of tasks as small as those of fib. Larger tasks are not solved
     * sooner so. */
    static constexpr size_t inlined_tasks = shares_stack && is_small ? 31 : 1;
    static constexpr int count_inlined() {
        int n = 0;
        for (size_t width = most, tasks = 1 + width; tasks <= inlined_tasks && n < 4; width *= most, tasks += width)
            ++n;
        return n;
    }
    static constexpr int inlined = count_inlined();

    /* What a call returns: what dpr_recursion.solve() does, or NULL, and the fuel that is left. */
    struct outcome {
        dpr_frame *frame;
        int64_t fuel;
    };

    /* Whether the thread may go on. Otherwise all that is on its stack is to be written out. */
    DPR_INLINED_ bool goes_on(state &at) {
        if (at.fuel > 0 && __atomic_load_n(&at.s->asked, __ATOMIC_RELAXED) == 0)
            return true;
        at.s->fuel = at.fuel;
        const bool yes = at.s->refuel(at.s) != 0;
        at.fuel = at.s->fuel;
        return yes;
    }

    /* Divides a task; a base case is solved, and has 0 children. */
    DPR_INLINED_ int divide_or_solve(state &at, const task &t, children<P> into, result *out) {
        --at.fuel;
        if constexpr (has_serial<P>) {
            if (is_serial<P>(at.d, t, at.s->cutoff)) {
                *out = P::serial(at.d, t);
                return 0;
            }
        }
        const int n = divide<P>(at.d, t, into, team_of_one<P>());
        if (n == 0)
            *out = base<P>(at.d, t, team_of_one<P>());
        return n;
    }
    DPR_INLINED_ int divide_or_solve(state &at, const task &t, family &f, result *out) {
        return divide_or_solve(at, t, children<P>(f.tasks, sizeof(task), most), out);
    }

    DPR_INLINED_ dpr_frame *after(state &at, outcome call) {
        at.fuel = call.fuel;
        return call.frame;
    }

    /* Solves a child with `left` levels. Where no levels are inlined it is divided here, into `below`, because a base
     * case then takes no call. Returns what dpr_recursion.solve() does, or NULL. */
    template <int Inlined>
    DPR_INLINED_ dpr_frame *solve_child(state &at, const task &t, family &below, result *out, int left) {
        if constexpr (Inlined > 0) {
            return solve_level<Inlined - 1>(at, t, out, left);
        } else if constexpr (inlined > 0) {
            return after(at, descend(at.s, at.d, t, out, left, at.fuel));
        } else {
            if (left <= 0 || !goes_on(at))
                return at.s->unsolved;
            const int n = divide_or_solve(at, t, below, out);
            return n == 0 ? nullptr : after(at, descend_from(at.s, at.d, t, below, n, out, left, at.fuel));
        }
    }

    /* Solves n children, until one is not solved, and counts those that are. */
    template <int Inlined, size_t... I>
    DPR_INLINED_ dpr_frame *solve_children(state &at, family &f, int n, int left, int *solved,
                                           std::index_sequence<I...>) {
        dpr_frame *inner = nullptr;
        family below;
        if constexpr (Inlined > 0) /* with constants for indices, so that tasks and results may be in registers */
            (void)((static_cast<int>(I) < n
                    && !(inner = solve_child<Inlined>(at, f.tasks[I], below, &f.results[I], left)) && ++*solved)
                   && ...);
        else
            while (*solved < n && !(inner = solve_child<0>(at, f.tasks[*solved], below, &f.results[*solved], left)))
                ++*solved;
        return inner;
    }

    /* Solves a task that was divided into n children. Reports n if it is no number of children. */
    template <int Inlined>
    DPR_INLINED_ dpr_frame *solve_from(state &at, const task &t, family &f, int n, result *out, int left) {
        if (n < 0 || static_cast<size_t>(n) > most)
            return at.s->wrong(at.s, n);
        int solved = 0;
        if (left - 1 < at.s->lowest) /* here rather than at the children, which are more */
            at.s->lowest = left - 1;
        dpr_frame *inner =
            solve_children<Inlined>(at, f, n, left - 1, &solved, std::make_index_sequence<(Inlined > 0 ? most : 0)>());
        if (inner)
            return write_out(at.s, f, n, solved, inner);
        *out = recursion::combine<P>(at.d, t, results<P>(f.results, sizeof(result)), n, team_of_one<P>());
        return nullptr;
    }

    template <int Inlined> DPR_INLINED_ dpr_frame *solve_level(state &at, const task &t, result *out, int left) {
        family f;
        const int n = divide_or_solve(at, t, f, out);
        return n == 0 ? nullptr : solve_from<Inlined>(at, t, f, n, out, left);
    }

    /* Solves a task with `left` levels. */
    __attribute__((noinline)) static outcome descend(dpr_solver *s, const data &d, passed t, result *out, int left,
                                                     int64_t fuel) {
        state at = {s, d, fuel};
        if (left <= 0 || !goes_on(at))
            return {s->unsolved, at.fuel};
        dpr_frame *frame = left > inlined ? solve_level<inlined>(at, t, out, left) : solve_level<0>(at, t, out, left);
        return {frame, at.fuel};
    }

    /* The same for a task that is divided already. One child and two are constants in code of their own, because
     * processors guess wrong how often short loops run. */
    __attribute__((noinline)) static outcome descend_from(dpr_solver *s, const data &d, passed t, family &f, int n,
                                                          result *out, int left, int64_t fuel) {
        state at = {s, d, fuel};
        dpr_frame *frame;
        if (shares_stack && n == 1)
            frame = solve_from<0>(at, t, f, 1, out, left);
        else if (shares_stack && n == 2 && most >= 2)
            frame = solve_from<0>(at, t, f, 2, out, left);
        else
            frame = solve_from<0>(at, t, f, n, out, left);
        return {frame, at.fuel};
    }

    /* For tasks with very many children: divides the task on the heap. */
    static dpr_frame *expand(dpr_solver *s, const data &d, const task &t, result *out) {
        state at = {s, d, s->fuel};
        (void)goes_on(at);
        auto *room = static_cast<slot<P> *>(s->room(s, most + 1));
        if (!room)
            return s->stop;
        const int n = divide_or_solve(at, t, children<P>(room, sizeof(slot<P>), most), out);
        s->fuel = at.fuel;
        if (n == 0)
            return nullptr;
        if (n < 0 || static_cast<size_t>(n) > most)
            return s->wrong(s, n);
        dpr_frame *frame = s->frame(s, static_cast<uint64_t>(n));
        for (int i = 0; i < n && frame != s->stop; ++i)
            slot_of(frame, static_cast<size_t>(i)) = room[i];
        return frame;
    }

    static dpr_frame *solve(dpr_solver *s, void *place) {
        auto *at = static_cast<slot<P> *>(place);
        const task t = at->task;
        const data &d = *static_cast<const data *>(s->data);
        result r = {};
        const int own = s->levels < levels ? s->levels : levels;
        dpr_frame *frame;
        s->lowest = own;
        if constexpr (on_heap) {
            frame = expand(s, d, t, &r);
        } else {
            const outcome all = descend(s, d, t, &r, own, s->fuel);
            frame = all.frame;
            s->fuel = all.fuel;
        }
        const uint64_t deepest = s->depth + static_cast<uint64_t>(own - s->lowest);
        s->deepest = deepest > s->deepest ? deepest : s->deepest;
        if (!frame)
            at->result = r;
        return frame;
    }

    static void combine(const void *d, void *place, const dpr_frame *frame) {
        auto *at = static_cast<slot<P> *>(place);
        const task t = at->task;
        at->result = recursion::combine<P>(*static_cast<const data *>(d), t, results<P>(frame->slots, sizeof(slot<P>)),
                                           static_cast<int>(frame->count), team_of_one<P>());
    }
};

} // namespace recursion
} // namespace dpr

#undef DPR_INLINED_

#endif
