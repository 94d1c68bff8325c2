#include <dpr_recursion.cuh>

#include <chrono>
#include <thread>

#include "chain_policy.h"
#include "random_bits.h"
#include "recursion_policies.h"

namespace {

struct tree {
    using task = tree_task;
    using result = tree_result;
    using data = tree_shape;
    static constexpr int most_children = TREE_MOST;

    DPR_BOTH static int children_of(const data &shape, const task &t) {
        const uint64_t hash = mixed(t.seed);
        if (t.depth >= shape.deepest || (t.depth > 0 && hash % 256 >= shape.chance))
            return 0;
        return 1 + static_cast<int>((hash >> 8) % shape.most);
    }
    DPR_BOTH static task child(const task &t, int i) {
        return {mixed(t.seed + 1 + static_cast<uint64_t>(i)), t.depth + 1, 0};
    }
    DPR_POLICY int divide(const data &shape, const task &t, dpr::children<tree> children) {
        const int n = children_of(shape, t);
        for (int i = 0; i < n; ++i)
            children[i] = child(t, i);
        return shape.wrong != 0 && t.depth == shape.wrong ? shape.returned : n;
    }
    DPR_POLICY result base(const data &, const task &t) { return {1, static_cast<double>(t.seed % 1000) / 7}; }
    DPR_POLICY result combine(const data &, const task &, dpr::results<tree> results, int n) {
        result r = {1, 0};
        for (int i = 0; i < n; ++i) {
            r.nodes += results[i].nodes;
            r.order = r.order / 3 + results[i].order;
        }
        return r;
    }
};

/* The threads of a team share the children; results go by way of the team's memory. */
struct team_tree {
    using task = tree_task;
    using result = tree_result;
    using data = tree_shape;
    static constexpr int most_children = TREE_MOST;
    static constexpr size_t team_bytes = (TREE_MOST + 1) * sizeof(result);

    DPR_POLICY int divide(const data &shape, const task &t, dpr::children<team_tree> children, const dpr::team &team) {
        const int n = tree::children_of(shape, t), threads = static_cast<int>(team.size());
        for (int i = threads - 1 - static_cast<int>(team.rank()); i < n; i += threads)
            children[i] = tree::child(t, i);
        return shape.wrong != 0 && t.depth == shape.wrong ? shape.returned : n;
    }
    DPR_POLICY result base(const data &shape, const task &t, const dpr::team &team) {
        auto *memory = team.memory<result>();
        if (team.rank() == team.size() / 2)
            memory[0] = tree::base(shape, t);
        team.sync();
        return team.all(memory[0].nodes == 1) ? memory[0] : result{};
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<team_tree> results, int n,
                              const dpr::team &team) {
        auto *memory = team.memory<result>();
        const int threads = static_cast<int>(team.size());
        for (int i = static_cast<int>(team.rank()); i < n; i += threads)
            memory[i] = results[i];
        team.sync();
        if (static_cast<int>(team.rank()) == threads - 1) {
            result r = {1, 0};
            for (int i = 0; i < n; ++i) {
                r.nodes += memory[i].nodes;
                r.order = r.order / 3 + memory[i].order;
            }
            memory[n] = r;
        }
        team.sync();
        return memory[n];
    }
};

struct ladder {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<ladder> children) {
        children[0] = n - 1;
        children[1] = 0;
        return n > 0 ? 2 : 0;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<ladder> results, int) {
        return results[0] + results[1] + 1;
    }
};

struct cut_ladder {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 2;
    static constexpr uint64_t cutoff = 5;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<cut_ladder> children) {
        children[0] = n - 1;
        children[1] = 0;
        return n > 0 ? 2 : 0;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<cut_ladder> results, int) {
        return results[0] + results[1] + 1;
    }
    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &n) { return n; }
    DPR_POLICY result serial(const dpr::no_data &, const task &n) { return 2 * n + 1; }
};

/* ---- Folds ---- */

template <class Result> DPR_BOTH Result fold_value(const tree_task &t) {
    const uint64_t hash = mixed(t.seed ^ 77);
    return static_cast<Result>(hash | 1); /* odd: products do not become 0 */
}

template <dpr_op Op, class Result> struct folding {
    using task = tree_task;
    using result = Result;
    using data = tree_shape;
    static constexpr int most_children = TREE_MOST;
    static constexpr dpr_op fold = Op;

    DPR_POLICY int divide(const data &shape, const task &t, dpr::children<folding> children) {
        const int n = tree::children_of(shape, t);
        for (int i = 0; i < n; ++i)
            children[i] = tree::child(t, i);
        return shape.wrong != 0 && t.depth == shape.wrong ? shape.returned : n;
    }
    DPR_POLICY result base(const data &, const task &t) { return fold_value<Result>(t); }
    DPR_POLICY result part(const data &, const task &t) { return fold_value<Result>(t); }
};

struct team_fold {
    using task = tree_task;
    using result = uint64_t;
    using data = tree_shape;
    static constexpr int most_children = TREE_MOST;
    static constexpr dpr_op fold = DPR_SUM;

    DPR_POLICY int divide(const data &shape, const task &t, dpr::children<team_fold> children, const dpr::team &team) {
        const int n = tree::children_of(shape, t);
        for (int i = static_cast<int>(team.rank()); i < n; i += static_cast<int>(team.size()))
            children[i] = tree::child(t, i);
        return shape.wrong != 0 && t.depth == shape.wrong ? shape.returned : n;
    }
    DPR_POLICY result base(const data &, const task &t) { return fold_value<result>(t); }
    DPR_POLICY result part(const data &, const task &t) { return fold_value<result>(t); }
};

/* ---- Large results ---- */

struct bulk {
    using task = uint64_t;
    using result = bulk_result;
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<bulk> children) {
        if (n == 0)
            return 0;
        children[0] = n - 1;
        children[1] = n / 2;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) {
        result r;
        for (int i = 0; i < BULK; ++i)
            r.at[i] = static_cast<uint32_t>(i);
        return r;
    }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<bulk> results, int) {
        result r;
        for (int i = 0; i < BULK; ++i)
            r.at[i] = 3 * results[0].at[i] + results[1].at[i];
        return r;
    }
};

/* ---- Costs ---- */

struct parts {
    using task = parts_task;
    using result = tree_result;
    static constexpr int most_children = PARTS_MOST;

    template <class Children> DPR_BOTH static int make(const task &t, Children &&children) {
        const uint64_t hash = mixed(t.seed), wanted = 2 + hash % (PARTS_MOST - 1);
        if (t.size < 2)
            return 0;
        const int n = static_cast<int>(wanted < t.size ? wanted : t.size);
        uint64_t left = t.size - static_cast<uint64_t>(n);
        for (int i = 0; i < n; ++i) {
            const uint64_t seed = mixed(hash + static_cast<uint64_t>(i)), more = i < n - 1 ? seed % (left + 1) : left;
            children[i] = {seed, 1 + more};
            left -= more;
        }
        return n;
    }
    DPR_POLICY int divide(const dpr::no_data &, const task &t, dpr::children<parts> children) {
        return make(t, children);
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t) { return {1, static_cast<double>(t.seed % 1000) / 7}; }
    template <class Results> DPR_BOTH static result join(Results &&results, int n) {
        result r = {1, 0};
        for (int i = 0; i < n; ++i) {
            r.nodes += results[i].nodes;
            r.order = r.order / 3 + results[i].order;
        }
        return r;
    }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<parts> results, int n) {
        return join(results, n);
    }
    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &t) { return t.size; }
};

struct parts_sum {
    using task = parts_task;
    using result = uint64_t;
    static constexpr int most_children = PARTS_MOST;
    static constexpr dpr_op fold = DPR_SUM;

    DPR_POLICY int divide(const dpr::no_data &, const task &t, dpr::children<parts_sum> children) {
        return parts::make(t, children);
    }
    DPR_POLICY result base(const dpr::no_data &, const task &t) { return mixed(t.seed); }
    DPR_POLICY uint64_t cost(const dpr::no_data &, const task &t) { return t.size; }
};

/* ---- Others ---- */

struct star {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = STAR_MOST;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<star> children) {
        for (int i = 0; i < static_cast<int>(n); ++i)
            children[i] = 0;
        return static_cast<int>(n);
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<star> results, int n) {
        result sum = 1;
        for (int i = 0; i < n; ++i)
            sum += results[i];
        return sum;
    }
};

struct binary {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<binary> children) {
        if (n == 0)
            return 0;
        children[0] = children[1] = n - 1;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &) { return 1; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<binary> results, int) {
        return 1 + results[0] + results[1];
    }
};

struct stuck {
    using task = uint64_t;
    using result = uint64_t;
    using data = stuck_data;
    static constexpr int most_children = 1;

    DPR_POLICY int divide(const data &, const task &, dpr::children<stuck>) { return 0; }
    DPR_POLICY result base(const data &d, const task &t) {
#ifdef __CUDA_ARCH__
        constexpr uint64_t most_ns = 10'000'000'000;
        const uint64_t began = dpr::recursion::time_now();
        while (*static_cast<const volatile int *>(d.flag) == 0 && dpr::recursion::time_now() - began < most_ns)
            ;
#else
        (void)d;
#endif
        return t;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<stuck>, int) {
        return 0;
    }
};

struct endless {
    using task = uint64_t;
    using result = uint64_t;
    static constexpr int most_children = 2;

    DPR_POLICY int divide(const dpr::no_data &, const task &n, dpr::children<endless> children) {
        children[0] = children[1] = n;
        return 2;
    }
    DPR_POLICY result base(const dpr::no_data &, const task &n) { return n; }
    DPR_POLICY result combine(const dpr::no_data &, const task &, dpr::results<endless> results, int) {
        return results[0] + results[1];
    }
};

struct slow {
    using task = slow_task;
    using result = uint64_t;
    using data = slow_times;
    static constexpr int most_children = 2;

    static DPR_BOTH void wait(uint32_t us) {
#ifndef __CUDA_ARCH__
        if (us > 0)
            std::this_thread::sleep_for(std::chrono::microseconds(us));
#else
        (void)us;
#endif
    }
    DPR_POLICY int divide(const data &, const task &t, dpr::children<slow> children) {
        const uint32_t links = t.links > 0 ? t.links - 1 : 0;
        const int n = t.links > 0 ? 1 : t.levels > 0 ? 2 : 0;
        for (int i = 0; i < n; ++i)
            children[i] = {links, n == 2 ? t.levels - 1 : t.levels};
        return n;
    }
    DPR_POLICY result base(const data &d, const task &) {
        wait(d.base_us);
        return 1;
    }
    DPR_POLICY result combine(const data &d, const task &, dpr::results<slow> results, int n) {
        wait(d.combine_us);
        return n == 2 ? results[0] + results[1] : results[0];
    }
};

struct without_cutoff {
    static constexpr uint64_t cutoff = DPR_NO_CUTOFF;
};
static_assert(dpr::recursion::cutoff_of<without_cutoff> == 0, "means in a policy what it means in options");

} // namespace

DPR_RECURSION(tree, tree)
DPR_RECURSION(team_tree, team_tree)
DPR_RECURSION(chain, chain)
DPR_RECURSION(other_chain, chain)
DPR_RECURSION(ladder, ladder)
DPR_RECURSION(cut_ladder, cut_ladder)
#define FOLD_DEFINE(OP, RESULT)                                                                                        \
    using folding_##OP = folding<OP, RESULT>;                                                                          \
    DPR_RECURSION(fold_##OP, folding_##OP)
FOLDS(FOLD_DEFINE)
DPR_RECURSION(team_fold, team_fold)
DPR_RECURSION(bulk, bulk)
DPR_RECURSION(parts, parts)
DPR_RECURSION(parts_sum, parts_sum)
DPR_RECURSION(star, star)
DPR_RECURSION(binary, binary)
DPR_RECURSION(stuck, stuck)
DPR_RECURSION(endless, endless)
DPR_RECURSION(slow, slow)

/* Folds a task and all below it into *sum. */
template <class Result, class Two>
static void fold_tree(const tree_shape *shape, tree_task task, Result *sum, Two two) {
    const int n = tree::children_of(*shape, task);
    *sum = two(*sum, fold_value<Result>(task));
    for (int i = 0; i < n; ++i)
        fold_tree(shape, tree::child(task, i), sum, two);
}

template <class Result, class Two>
static bool is_fold(const tree_shape *shape, tree_task task, Result first, Two two, int64_t result) {
    fold_tree(shape, task, &first, two);
    return static_cast<int64_t>(first) == result;
}

int is_folded(const tree_shape *shape, tree_task root, dpr_op op, int64_t result) {
    switch (op) {
    case DPR_SUM:
        return is_fold<uint64_t>(
            shape, root, 0, [](uint64_t a, uint64_t b) { return a + b; }, result);
    case DPR_PROD:
        return is_fold<uint32_t>(
            shape, root, 1, [](uint32_t a, uint32_t b) { return a * b; }, result);
    case DPR_MIN:
        return is_fold<int64_t>(
            shape, root, INT64_MAX, [](int64_t a, int64_t b) { return a < b ? a : b; }, result);
    case DPR_MAX:
        return is_fold<int32_t>(
            shape, root, INT32_MIN, [](int32_t a, int32_t b) { return a > b ? a : b; }, result);
    case DPR_BAND:
        return is_fold<uint32_t>(
            shape, root, UINT32_MAX, [](uint32_t a, uint32_t b) { return a & b; }, result);
    case DPR_BOR:
        return is_fold<int64_t>(
            shape, root, 0, [](int64_t a, int64_t b) { return a | b; }, result);
    case DPR_BXOR:
        return is_fold<int32_t>(
            shape, root, 0, [](int32_t a, int32_t b) { return a ^ b; }, result);
    default:
        return 0;
    }
}

tree_result tree_reference(const tree_shape *shape, tree_task task) {
    const int n = tree::children_of(*shape, task);
    if (n == 0)
        return {1, static_cast<double>(task.seed % 1000) / 7};
    tree_result r = {1, 0};
    for (int i = 0; i < n; ++i) {
        const tree_result of_child = tree_reference(shape, tree::child(task, i));
        r.nodes += of_child.nodes;
        r.order = r.order / 3 + of_child.order;
    }
    return r;
}

tree_result parts_reference(parts_task task) {
    parts_task children[PARTS_MOST];
    tree_result results[PARTS_MOST];
    const int n = parts::make(task, children);
    for (int i = 0; i < n; ++i)
        results[i] = parts_reference(children[i]);
    return n == 0 ? parts::base({}, task) : parts::join(results, n);
}

uint64_t parts_sum_reference(parts_task task) {
    parts_task children[PARTS_MOST];
    const int n = parts::make(task, children);
    uint64_t sum = n == 0 ? mixed(task.seed) : 0;
    for (int i = 0; i < n; ++i)
        sum += parts_sum_reference(children[i]);
    return sum;
}
