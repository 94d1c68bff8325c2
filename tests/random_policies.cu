#include <dpr_recursion.cuh>

#include <cstring>
#include <vector>

#include "random_bits.h"
#include "random_policies.h"

namespace {

/* ---- Tasks ---- */

/* A task of random words. The lowest byte tells how many levels may be below it. */
template <size_t Bytes> struct words {
    static constexpr int count = Bytes / 4;
    uint32_t at[count];
};

template <size_t Bytes> DPR_BOTH unsigned levels_of(const words<Bytes> &t) {
    return t.at[0] & 255;
}

/* Inlined everywhere, these functions would take a minute to compile, and so would join(). */
template <size_t Bytes> DPR_BOTH __attribute__((noinline)) uint64_t hash_of(const words<Bytes> &t) {
    uint64_t hash = 0;
    for (int i = 0; i < words<Bytes>::count; ++i)
        hash = mixed(hash ^ t.at[i]);
    return hash;
}

template <size_t Bytes> DPR_BOTH __attribute__((noinline)) void fill(words<Bytes> &t, uint64_t seed, unsigned levels) {
    for (int i = 0; i < words<Bytes>::count; ++i)
        t.at[i] = static_cast<uint32_t>(mixed(seed + static_cast<uint64_t>(i)) >> 32);
    t.at[0] = (t.at[0] & ~255u) | levels;
}

/* How many children a task has: about 1.3 on average, so that trees grow slowly, but 1 where there is at most 1. */
template <int Most> DPR_BOTH int count_children(uint64_t hash, unsigned levels) {
    constexpr uint64_t chance = 666 / (Most + 1); /* of 256 */
    return levels == 0 || hash % 256 >= chance ? 0 : 1 + static_cast<int>((hash >> 8) % Most);
}

template <size_t Bytes> DPR_BOTH void make_child(words<Bytes> &child, const words<Bytes> &t, uint64_t hash, int i) {
    fill(child, mixed(hash + static_cast<uint64_t>(i)), levels_of(t) - 1);
}

/* Makes every step-th child, from the first one on. */
template <int Most, size_t Bytes, class Children>
DPR_BOTH int divide_task(const words<Bytes> &t, Children children, unsigned first = 0, unsigned step = 1) {
    const uint64_t hash = hash_of(t);
    const int n = count_children<Most>(hash, levels_of(t));
    for (int i = static_cast<int>(first); i < n; i += static_cast<int>(step))
        make_child(children[i], t, hash, i);
    return n;
}

/* ---- Results ---- */

template <size_t Align>
using number_of =
    std::conditional_t<Align == 1, uint8_t,
                       std::conditional_t<Align == 2, uint16_t, std::conditional_t<Align == 4, float, double>>>;

template <size_t Bytes, size_t Align> struct numbers {
    using number = number_of<Align>;
    static constexpr int count = Bytes / sizeof(number);
    alignas(Align) number at[count];
};

/* Number i of the result of a base case. */
template <class Number> DPR_BOTH Number first_of(uint64_t hash, int i) {
    const uint64_t random = mixed(hash ^ static_cast<uint64_t>(i + 77));
    if constexpr (std::is_floating_point_v<Number>)
        return static_cast<Number>(random % 1009) / 7;
    else
        return static_cast<Number>(random);
}

/* Adds a child's number. The order of the children matters, and the first of Most children still does after the last.
 */
template <int Most, class Number> DPR_BOTH Number joined(Number sum, Number of_child) {
    if constexpr (std::is_floating_point_v<Number>)
        return sum / static_cast<Number>(Most > 8 ? 1.0625 : 3) + of_child;
    else
        return static_cast<Number>(sum * 31 + of_child);
}

template <int Most, class Number, class Results>
DPR_BOTH __attribute__((noinline)) Number join(uint64_t hash, const Results &results, int n, int k) {
    auto sum = first_of<Number>(hash, k);
    for (int i = 0; i < n; ++i)
        sum = joined<Most>(sum, results[i].at[k]);
    return sum;
}

/* ---- Policies ---- */

template <int Most, size_t TaskBytes, size_t Bytes, size_t Align> struct joining {
    using task = words<TaskBytes>;
    using result = numbers<Bytes, Align>;
    using number = typename result::number;
    static constexpr int most_children = Most;

    template <class Children> DPR_POLICY int divide(const dpr::no_data &, const task &t, Children children) {
        return divide_task<Most>(t, children);
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t) {
        const uint64_t hash = hash_of(t);
        result r;
        for (int k = 0; k < result::count; ++k)
            r.at[k] = first_of<number>(hash, k);
        return r;
    }
    template <class Results> DPR_POLICY result combine(const dpr::no_data &, const task &t, Results results, int n) {
        const uint64_t hash = hash_of(t);
        result r;
        for (int k = 0; k < result::count; ++k)
            r.at[k] = join<Most, number>(hash, results, n, k);
        return r;
    }
};

template <int Most, size_t TaskBytes, size_t Bytes, size_t Align>
struct costing : joining<Most, TaskBytes, Bytes, Align> {
    using task = words<TaskBytes>;

    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &t) { return uint64_t{levels_of(t)} * levels_of(t); }
};

/* serial() solves tasks whose children have none. */
template <int Most, size_t TaskBytes, size_t Bytes, size_t Align>
struct serial_too : costing<Most, TaskBytes, Bytes, Align> {
    using plain = joining<Most, TaskBytes, Bytes, Align>;
    using typename plain::number;
    using typename plain::result;
    using typename plain::task;
    static constexpr uint64_t cutoff = 1;

    DPR_POLICY result serial(const dpr::no_data &data, const task &t) {
        const uint64_t hash = hash_of(t);
        const int n = count_children<Most>(hash, levels_of(t));
        result r = plain::base(data, t);
        for (int i = 0; i < n; ++i) {
            task child;
            make_child(child, t, hash, i);
            const result of_child = plain::base(data, child);
            for (int k = 0; k < result::count; ++k)
                r.at[k] = joined<Most>(r.at[k], of_child.at[k]);
        }
        return r;
    }
};

/* Joins results by all threads of a team, which share the numbers. */
template <int Most, class Result, size_t TaskBytes, class Results>
DPR_BOTH Result join_by_team(const words<TaskBytes> &t, const Results &results, int n, const dpr::team &team) {
    const uint64_t hash = hash_of(t);
    auto *shared = team.memory<Result>();
    for (int k = static_cast<int>(team.rank()); k < Result::count; k += static_cast<int>(team.size()))
        shared->at[k] = join<Most, typename Result::number>(hash, results, n, k);
    team.sync();
    return *shared;
}

/* The threads share children and numbers. */
template <int Most, size_t TaskBytes, size_t Bytes, size_t Align> struct by_team {
    using task = words<TaskBytes>;
    using result = numbers<Bytes, Align>;
    static constexpr int most_children = Most;
    static constexpr size_t team_bytes = sizeof(result);

    DPR_POLICY int divide(const dpr::no_data &, const task &t, dpr::children<by_team> children, const dpr::team &team) {
        return divide_task<Most>(t, children, team.rank(), team.size());
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t, const dpr::team &team) {
        return join_by_team<Most, result>(t, dpr::results<by_team>(nullptr, 0), 0, team);
    }
    DPR_POLICY result combine(const dpr::no_data &, const task &t, dpr::results<by_team> results, int n,
                              const dpr::team &team) {
        return join_by_team<Most, result>(t, results, n, team);
    }
};

/* One thread divides a task, solves base cases, and calls serial(). */
template <int Most, size_t TaskBytes, size_t Bytes, size_t Align>
struct joined_by_team : serial_too<Most, TaskBytes, Bytes, Align> {
    using typename serial_too<Most, TaskBytes, Bytes, Align>::result;
    using task = words<TaskBytes>;
    static constexpr size_t team_bytes = sizeof(result);

    DPR_POLICY result combine(const dpr::no_data &, const task &t, dpr::results<joined_by_team> results, int n,
                              const dpr::team &team) {
        return join_by_team<Most, result>(t, results, n, team);
    }
};

template <int Most, size_t TaskBytes> struct folding {
    using task = words<TaskBytes>;
    using result = uint64_t;
    static constexpr int most_children = Most;
    static constexpr dpr_op fold = DPR_SUM;

    template <class Children> DPR_POLICY int divide(const dpr::no_data &, const task &t, Children children) {
        return divide_task<Most>(t, children);
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t) { return mixed(hash_of(t) ^ 1); }
    DPR_POLICY result part(const dpr::no_data &, const task &t) { return mixed(hash_of(t) ^ 2); }
};

template <int Most, size_t TaskBytes> struct folding_serially : folding<Most, TaskBytes> {
    using plain = folding<Most, TaskBytes>;
    using typename plain::result;
    using typename plain::task;
    static constexpr uint64_t cutoff = 1;

    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &t) { return levels_of(t); }
    DPR_POLICY result serial(const dpr::no_data &data, const task &t) {
        const uint64_t hash = hash_of(t);
        const int n = count_children<Most>(hash, levels_of(t));
        result sum = n == 0 ? plain::base(data, t) : plain::part(data, t);
        for (int i = 0; i < n; ++i) {
            task child;
            make_child(child, t, hash, i);
            sum += plain::base(data, child);
        }
        return sum;
    }
};

/* The threads share the words of a base case. */
template <int Most, size_t TaskBytes> struct folding_by_team {
    using task = words<TaskBytes>;
    using result = uint64_t;
    static constexpr int most_children = Most;
    static constexpr dpr_op fold = DPR_SUM;
    static constexpr size_t team_bytes = sizeof(task);

    DPR_POLICY int divide(const dpr::no_data &, const task &t, dpr::children<folding_by_team> children,
                          const dpr::team &team) {
        return divide_task<Most>(t, children, team.rank(), team.size());
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t, const dpr::team &team) {
        auto *shared = team.memory<task>();
        for (int i = static_cast<int>(team.rank()); i < task::count; i += static_cast<int>(team.size()))
            shared->at[i] = t.at[i];
        team.sync();
        return mixed(hash_of(*shared) ^ 1);
    }
    DPR_POLICY result part(const dpr::no_data &, const task &t) { return mixed(hash_of(t) ^ 2); }
};

/* ---- Reference ---- */

template <class P>
typename P::result solve(const typename P::task &t, uint64_t depth, bool whole, random_counts *counts) {
    const uint64_t hash = hash_of(t);
    const bool is_cut = dpr::recursion::is_serial<P>({}, t, whole ? 0 : dpr::recursion::cutoff_of<P>);
    const auto n = static_cast<size_t>(count_children<P::most_children>(hash, levels_of(t)));
    std::vector<typename P::result> results(n);
    random_counts cut = {};
    counts->tasks++;
    counts->deepest = depth > counts->deepest ? depth : counts->deepest;
    for (size_t i = 0; i < n; ++i) {
        typename P::task child;
        make_child(child, t, hash, static_cast<int>(i));
        results[i] = solve<P>(child, depth + 1, whole, is_cut ? &cut : counts);
    }
    if constexpr (dpr::recursion::folds<P>) {
        auto sum = n == 0 ? dpr::recursion::base<P>({}, t, dpr::recursion::team_of_one<P>()) : P::part({}, t);
        for (const auto &r : results)
            sum += r;
        return sum;
    } else {
        typename P::result r;
        for (int k = 0; k < P::result::count; ++k) {
            r.at[k] = first_of<typename P::result::number>(hash, k);
            for (const auto &of_child : results)
                r.at[k] = joined<P::most_children>(r.at[k], of_child.at[k]);
        }
        return r;
    }
}

/* An eighth of the roots are base cases. Chains are the longest trees, and a wide one is soon large. */
template <class P> void make_root(uint64_t seed, void *task) {
    constexpr unsigned most_levels = P::most_children == 1 ? 200 : P::most_children > 8 ? 8 : 20;
    const unsigned levels = seed % 8 == 7 ? 0 : 1 + static_cast<unsigned>(mixed(seed) % most_levels);
    typename P::task t;
    do {
        seed = mixed(seed);
        fill(t, seed, levels);
    } while (levels > 0 && count_children<P::most_children>(hash_of(t), levels) == 0);
    std::memcpy(task, &t, sizeof t);
}

template <class P> void solve_root(const void *root, int whole, void *result, random_counts *counts) {
    const auto r = solve<P>(*static_cast<const typename P::task *>(root), 0, whole != 0, counts);
    std::memcpy(result, &r, sizeof r);
}

template <class P> random_policy describe(const char *name) {
    static const dpr_recursion recursion = dpr::recursion::make<P>(name);
    return {name,
            &recursion,
            P::most_children,
            sizeof(typename P::task),
            sizeof(typename P::result),
            sizeof(dpr::recursion::slot<P>),
            dpr::recursion::has_teams<P>,
            dpr::recursion::has_serial<P>,
            make_root<P>,
            solve_root<P>};
}

} // namespace

/* most_children, bytes of a task and of a result, and its alignment. */
const random_policy *random_policy_at(size_t i) {
    static const random_policy all[] = {
        describe<joining<1, 4, 1, 1>>("joining 1 4 1 1"),
        describe<joining<2, 40, 24, 2>>("joining 2 40 24 2"),
        describe<joining<3, 24, 64, 16>>("joining 3 24 64 16"),
        describe<joining<3, 200, 8, 4>>("joining 3 200 8 4"),
        describe<joining<254, 4, 4, 4>>("joining 254 4 4 4"),
        describe<joining<255, 4, 4, 4>>("joining 255 4 4 4"),
        describe<joining<300, 4, 8, 8>>("joining 300 4 8 8"),
        describe<costing<2, 8, 1, 1>>("costing 2 8 1 1"),
        describe<costing<8, 4, 24, 8>>("costing 8 4 24 8"),
        describe<serial_too<3, 40, 8, 8>>("serial_too 3 40 8 8"),
        describe<by_team<1, 200, 24, 8>>("by_team 1 200 24 8"),
        describe<by_team<300, 40, 64, 16>>("by_team 300 40 64 16"),
        describe<joined_by_team<4, 24, 64, 8>>("joined_by_team 4 24 64 8"),
        describe<folding<2, 4>>("folding 2 4"),
        describe<folding<8, 24>>("folding 8 24"),
        describe<folding_serially<3, 24>>("folding_serially 3 24"),
        describe<folding_by_team<3, 40>>("folding_by_team 3 40"),
    };
    return i < sizeof all / sizeof *all ? &all[i] : nullptr;
}
