/* Recursions for tests of device code on threads of the host (device_on_host/): policies, and the memory and arguments
 * of a run. */
#ifndef DPR_TESTS_DEVICE_RUNS_H
#define DPR_TESTS_DEVICE_RUNS_H

#include <gtest/gtest.h>

#include <pthread.h>

#include <functional>
#include <thread>
#include <vector>

#pragma GCC diagnostic ignored "-Wshadow" /* of shared memory, which has one name everywhere */
#include "persistent.cuh"
#include "phases.cuh"

namespace device_runs {

using namespace dpr::recursion;

inline const dpr::no_data none;

/* A tree that a hash describes. Its result depends on the order of children. */
struct tree {
    struct task {
        uint64_t seed;
        uint32_t depth, deepest;
    };
    using result = uint64_t;
    static constexpr int most_children = 5;

    static uint64_t mixed(uint64_t x) {
        x = (x ^ x >> 31) * 0x7fb5d329728ea185;
        return x ^ x >> 27;
    }
    template <class P> static int divide_for(const task &t, dpr::children<P> children) {
        const uint64_t hash = mixed(t.seed + 1);
        const int n = t.depth >= t.deepest || (t.depth > 0 && hash % 8 < 4) ? 0 : 1 + static_cast<int>(hash / 8 % 5);
        for (int i = 0; i < n; ++i)
            children[i] = {mixed(hash + static_cast<uint64_t>(i)), t.depth + 1, t.deepest};
        return n;
    }
    static int divide(const dpr::no_data &, const task &t, dpr::children<tree> c) { return divide_for<tree>(t, c); }
    static uint64_t cost(const dpr::no_data &, const task &t) { return uint64_t{1} << (t.deepest - t.depth); }
    static result base(const dpr::no_data &, const task &t) { return t.seed; }
    template <class P> static result combine_for(const task &t, dpr::results<P> results, int n) {
        result r = t.depth;
        for (int i = 0; i < n; ++i)
            r = mixed(r) + results[i];
        return r;
    }
    static result combine(const dpr::no_data &, const task &t, dpr::results<tree> results, int n) {
        return combine_for<tree>(t, results, n);
    }
};

/* The same tree; each node counts. */
struct fold_tree {
    using task = tree::task;
    using result = uint64_t;
    static constexpr int most_children = 5;
    static constexpr dpr_op fold = DPR_SUM;

    static int divide(const dpr::no_data &, const task &t, dpr::children<fold_tree> c) {
        return tree::divide_for<fold_tree>(t, c);
    }
    static result base(const dpr::no_data &, const task &t) { return t.seed; }
    static result part(const dpr::no_data &, const task &t) { return t.seed; }
    static uint64_t cost(const dpr::no_data &d, const task &t) { return tree::cost(d, t); }
};

/* The same tree, by teams, whose threads share the children. */
struct team_tree {
    using task = tree::task;
    using result = uint64_t;
    static constexpr int most_children = 5;

    static int divide(const dpr::no_data &, const task &t, dpr::children<team_tree> c, const dpr::team &team) {
        task all[most_children];
        const int n = tree::divide_for<tree>(t, {all, sizeof t, most_children});
        for (int i = static_cast<int>(team.rank()); i < n; i += static_cast<int>(team.size()))
            c[i] = all[i];
        return n;
    }
    static result base(const dpr::no_data &d, const task &t, const dpr::team &) { return tree::base(d, t); }
    static result combine(const dpr::no_data &, const task &t, dpr::results<team_tree> results, int n,
                          const dpr::team &) {
        return tree::combine_for<team_tree>(t, results, n);
    }
};

/* The same tree; divide() also writes children out of range, before and after the others. */
struct wild_tree {
    using task = tree::task;
    using result = uint64_t;
    static constexpr int most_children = 5;

    static int divide(const dpr::no_data &, const task &t, dpr::children<wild_tree> c) {
        c[-1] = c[INT32_MIN] = {1, 2, 3};
        const int n = tree::divide_for<wild_tree>(t, c);
        c[most_children] = c[most_children + 1] = c[INT32_MAX] = {4, 5, 6};
        return n;
    }
    static result base(const dpr::no_data &d, const task &t) { return tree::base(d, t); }
    static result combine(const dpr::no_data &, const task &t, dpr::results<wild_tree> results, int n) {
        return tree::combine_for<wild_tree>(t, results, n);
    }
};

/* Task t > 0 has 256 + t children: some t - 1, and zeros. Slots have two bytes, and numbers of children need four. */
struct wide_tree {
    using task = uint16_t;
    using result = uint16_t;
    static constexpr int most_children = 300;

    static int divide(const dpr::no_data &, const task &t, dpr::children<wide_tree> c) {
        for (int i = 0; t > 0 && i < 256 + t; ++i)
            c[i] = static_cast<task>(i % 97 == 5 ? t - 1 : 0);
        return t > 0 ? 256 + t : 0;
    }
    static result base(const dpr::no_data &, const task &) { return 1; }
    static result combine(const dpr::no_data &, const task &, dpr::results<wide_tree> results, int n) {
        uint32_t r = 0;
        for (int i = 0; i < n; ++i)
            r = 3 * r + results[i];
        return static_cast<result>(r);
    }
};

/* By a plain recursive function: the result, or the sum, and how many tasks there are. */
inline uint64_t reference(const tree::task &t, bool folds, uint64_t *tasks) {
    std::vector<tree::task> children(tree::most_children);
    const int n = tree::divide_for<tree>(t, {children.data(), sizeof t, tree::most_children});
    ++*tasks;
    uint64_t r = folds || n == 0 ? t.seed : t.depth;
    for (int i = 0; i < n; ++i) {
        const uint64_t below = reference(children[static_cast<size_t>(i)], folds, tasks);
        r = folds ? r + below : tree::mixed(r) + below;
    }
    return r;
}

inline uint16_t reference(uint16_t t, bool, uint64_t *tasks) {
    std::vector<uint16_t> children(wide_tree::most_children + size_t{1}), results;
    const int n = wide_tree::divide({}, t, {children.data(), sizeof t, wide_tree::most_children});
    ++*tasks;
    for (int i = 0; i < n; ++i)
        results.push_back(reference(children[static_cast<size_t>(i)], false, tasks));
    return n == 0 ? wide_tree::base({}, t) : wide_tree::combine({}, t, {results.data(), sizeof t}, n);
}

/* Root i of a run with a seed. */
inline tree::task root_of(uint64_t seed, unsigned i, const tree::task *) {
    return {tree::mixed(seed + 1000 * i), 0, 2 + static_cast<uint32_t>(seed % 9)};
}
inline uint16_t root_of(uint64_t seed, unsigned i, const uint16_t *) {
    return static_cast<uint16_t>((seed + i) % 4);
}

struct sizes {
    unsigned blocks, slots, frontier, budget, capacity, first_tasks;
};

/* A run: its memory and its arguments. */
template <class P> struct run {
    static constexpr unsigned most_chunks = 4096;
    dpr_arena arena = {};
    dpr_recursion_args args = {};
    std::vector<node<P>> nodes;
    std::vector<uint64_t> chunks, mail = std::vector<uint64_t>(64);
    std::vector<typename P::result> sums, out;
    std::vector<typename P::task> roots;
    std::vector<uint64_t> block = std::vector<uint64_t>(sizeof(dpr_recursion_block) / 8 + 2);

    run(const sizes &s, uint64_t seed, unsigned count) : nodes(s.capacity), sums(count), out(count) {
        for (unsigned i = 0; i < count; ++i)
            roots.push_back(root_of(seed, i, static_cast<const typename P::task *>(nullptr)));
        if (s.capacity > 0)
            std::memset(static_cast<void *>(nodes.data()), 0x5a, nodes.size() * sizeof nodes[0]);
        args.arena = &arena;
        args.block = reinterpret_cast<dpr_recursion_block *>(block.data());
        args.nodes = nodes.data();
        args.chunk_bytes = static_cast<uint32_t>(32 + s.slots * (sizeof(slot<P>) + sizeof(header<P>)) + 15) / 16 * 16;
        args.chunks = most_chunks;
        chunks.resize(size_t{most_chunks} * args.chunk_bytes / 8);
        args.chunk_memory = chunks.data();
        args.roots = roots.data();
        args.out = out.data();
        args.sums = sums.data();
        args.mailbox = mail.data();
        args.tag = 1;
        args.count = count;
        args.capacity = s.capacity;
        args.frontier = has_teams<P> ? ~0u : s.frontier;
        const uint64_t dice = tree::mixed(seed ^ 0x5eed) >> 8;
        args.undivided = dice % 3 == 0 ? 0 : uint64_t{1} << dice / 3 % 8;
        args.slots = s.slots;
        args.budget = s.budget;
        args.max_depth = 1000;
        args.max_tasks = ~0ull;
        args.max_ns = 1; /* which never pass: the clock says 0 */
        args.first_tasks = s.first_tasks;
        args.shared_bytes = sizeof shared;
        gridDim.x = s.blocks;
        (void)pthread_barrier_init(&device_on_host::barrier, nullptr, s.blocks * blockDim.x);
    }
    ~run() { (void)pthread_barrier_destroy(&device_on_host::barrier); }

    /* Launches a kernel: a thread for each lane. */
    void launch(uint64_t seed, const std::function<void()> &kernel) const {
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i)
            threads.emplace_back([&, i] {
                blockIdx.x = i / blockDim.x;
                threadIdx.x = i % blockDim.x;
                device_on_host::random_state = seed + i;
                kernel();
            });
        for (std::thread &t : threads)
            t.join();
    }

    /* Whether the outcome and the results that fit are in the mailbox. */
    bool has_ended() const {
        for (size_t i = 0; i < sizeof(letter) / 4; ++i)
            if (mail[i] >> 32 != 1)
                return false;
        return true;
    }

    /* Whether all words of the arena are zero again. */
    bool is_clean() const {
        const dpr_arena zero = {};
        return std::memcmp(&arena, &zero, sizeof zero) == 0;
    }

    letter read_letter() const {
        letter l;
        uint32_t words[sizeof l / 4];
        for (size_t i = 0; i < sizeof l / 4; ++i)
            words[i] = static_cast<uint32_t>(mail[i]);
        std::memcpy(&l, words, sizeof l);
        return l;
    }

    void check() {
        const letter l = read_letter();
        uint64_t tasks = 0;
        EXPECT_EQ(0u, l.outcome.status);
        for (size_t i = 0; i < roots.size(); ++i) {
            const typename P::result wanted = reference(roots[i], folds<P>, &tasks);
            EXPECT_EQ(wanted, out[i]);
            EXPECT_EQ(0, std::memcmp(&wanted, l.results + i * sizeof wanted, sizeof wanted));
        }
        EXPECT_EQ(tasks, l.outcome.tasks);
        EXPECT_TRUE(is_clean());
    }
};

template <class P> void launch_persistent(const dpr_recursion_args &args) {
    if constexpr (has_teams<P>)
        persistent_teams<P>(args, none);
    else
        persistent<P>(args, none);
}

template <class P> void expect_persistent(const sizes &s, uint64_t seed, unsigned count) {
    run<P> r(s, seed, count);
    r.launch(seed, [&] { launch_persistent<P>(r.args); });
    ASSERT_TRUE(r.has_ended());
    r.check();
}

template <class P> void expect_phases(const sizes &s, uint64_t seed, unsigned count) {
    constexpr unsigned most_phases = 100000;
    run<P> r(s, seed, count);
    r.launch(seed, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_BEGIN); });
    unsigned launches = 0;
    for (; launches < most_phases && is_unfinished(r.arena); ++launches) {
        r.launch(seed + 77 * uint64_t{launches}, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_PHASE); });
        /* The last block goes on by itself while levels are narrow. */
        EXPECT_FALSE(r.arena.phase == phase_dividing && r.arena.end - r.arena.begin == 1);
    }
    for (unsigned i = 0; i < seed % 4; ++i) /* the host launches some too many */
        r.launch(seed, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_PHASE); });
    r.launch(seed, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_END_IF_DUE); });
    ASSERT_TRUE(r.has_ended());
    EXPECT_LE(launches, r.read_letter().outcome.rounds);
    r.check();
}

} // namespace device_runs

#endif
