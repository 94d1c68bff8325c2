/* Solving a task on a CPU thread: plain recursion on the thread's stack for a limited number of levels. When these are
 * used up, or other threads have nothing to do, the recursion returns, and every level on the way writes its frame to
 * the heap, where any thread can go on. So the stack stays small however deep the recursion is. */
#ifndef DPR_DP_SOLVE_H
#define DPR_DP_SOLVE_H

#include "policy.h"
#include "recursion.h"

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

    /* Bytes of stack, at most, that a level takes, and of all levels together. */
    static constexpr size_t level_bytes = most * (sizeof(task) + sizeof(result)) + 192, stack_bytes = 65536;
    static constexpr bool on_heap = level_bytes > stack_bytes / 8;
    static constexpr int levels = on_heap ? 0 : stack_bytes / level_bytes < 256 ? stack_bytes / level_bytes : 256;

    static slot<P> &slot_of(const dpr_frame *frame, size_t i) { return static_cast<slot<P> *>(frame->slots)[i]; }

    /* Writes a level's frame. Children before i are solved; `inner` is what came of child i. */
    __attribute__((noinline, cold)) static dpr_frame *write_out(dpr_solver *s, task *tasks, result *results, int n,
                                                                int i, dpr_frame *inner) {
        dpr_frame *frame = inner == s->stop ? inner : s->frame(s, static_cast<uint64_t>(n));
        if (frame == s->stop)
            return frame;
        for (int k = 0; k < i; ++k)
            slot_of(frame, k).result = results[k];
        for (int k = i; k < n; ++k)
            slot_of(frame, k).task = tasks[k];
        frame->inner = inner == s->unsolved ? nullptr : inner;
        frame->next = static_cast<uint64_t>(i) + (frame->inner != nullptr);
        return frame;
    }

    /* What dpr_recursion.solve() returns, or NULL; and the fuel that is left, which stays in a register. */
    struct outcome {
        dpr_frame *frame;
        uint64_t fuel;
    };

    /* Solves a task with `left` levels. */
    static outcome descend(dpr_solver *s, const data &d, const task &t, result *out, int left, uint64_t fuel) {
        if (left <= 0)
            return {s->unsolved, fuel};
        if (fuel == 0) {
            const bool goes_on = s->refuel(s) != 0;
            fuel = s->fuel;
            if (!goes_on)
                return {s->unsolved, fuel};
        }
        --fuel;
        task tasks[most + 1];
        const int n = divide<P>(d, t, children<P>(tasks, sizeof(task), most), team_of_one<P>(), s->cutoff);
        if (n == 0) {
            if (left < s->lowest)
                s->lowest = left;
            *out = base<P>(d, t, team_of_one<P>(), s->cutoff);
            return {nullptr, fuel};
        }
        if (n < 0 || static_cast<size_t>(n) > most)
            return {s->wrong(s, n), fuel};
        result solved[most];
        for (int i = 0; i < n; ++i) {
            const outcome child = descend(s, d, tasks[i], &solved[i], left - 1, fuel);
            fuel = child.fuel;
            if (child.frame)
                return {write_out(s, tasks, solved, n, i, child.frame), fuel};
        }
        *out = recursion::combine<P>(d, t, results<P>(solved, sizeof(result)), n, team_of_one<P>());
        return {nullptr, fuel};
    }

    /* For tasks with very many children: divides the task on the heap. */
    static dpr_frame *expand(dpr_solver *s, const data &d, const task &t, result *out) {
        if (s->fuel == 0)
            (void)s->refuel(s);
        --s->fuel;
        auto *room = static_cast<slot<P> *>(s->room(s, most + 1));
        if (!room)
            return s->stop;
        const int n = divide<P>(d, t, children<P>(room, sizeof(slot<P>), most), team_of_one<P>(), s->cutoff);
        if (n == 0) {
            *out = base<P>(d, t, team_of_one<P>(), s->cutoff);
            return nullptr;
        }
        if (n < 0 || static_cast<size_t>(n) > most)
            return s->wrong(s, n);
        dpr_frame *frame = s->frame(s, static_cast<uint64_t>(n));
        for (int i = 0; i < n && frame != s->stop; ++i)
            slot_of(frame, i) = room[i];
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

#endif
