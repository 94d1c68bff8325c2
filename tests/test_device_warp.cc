/* The device code of recursions in a warp whose lanes are threads of the host (device_on_host/): lanes take tasks from
 * each other. */
#include <algorithm>

#include "device_runs.h"

namespace dpr {
namespace recursion {
__attribute__((aligned(16))) char shared[1 << 16];
} // namespace recursion
} // namespace dpr

namespace {

using namespace device_runs;

constexpr unsigned lanes = 32;

/* ---- Which lane takes which child ---- */

using match = lane<tree>::match;

/* Lanes without a task and children, both in the order of lanes, one after another. */
std::vector<match> match_one_by_one(unsigned idle, const std::vector<unsigned> &counts) {
    std::vector<match> all(lanes);
    std::vector<unsigned> from;
    unsigned wanted = 0;
    for (unsigned i = 0; i < lanes; ++i) {
        all[i].rank = wanted;
        all[i].mine = static_cast<unsigned>(from.size());
        wanted += idle >> i & 1;
        from.insert(from.end(), counts[i], i);
    }
    for (match &m : all) {
        m.wanted = wanted;
        m.offered = static_cast<unsigned>(from.size());
        m.from = m.rank < from.size() ? from[m.rank] : lanes;
    }
    return all;
}

TEST(DeviceWarp, lanes_without_a_task_are_matched_with_children) {
    const run<tree> r({1, 20, 1, 1, 10, 0}, 1, 1);
    for (uint64_t seed = 0; seed < 60; ++seed) {
        const unsigned idle = static_cast<unsigned>(tree::mixed(seed) | (seed % 3 ? 0 : tree::mixed(seed + 99)) << 1),
                       most = std::vector<unsigned>{1, 2, 5, 31}[seed % 4];
        std::vector<unsigned> counts(lanes);
        for (unsigned i = 0; i < lanes; ++i)
            counts[i] = idle >> i & 1 ? 0 : static_cast<unsigned>(tree::mixed(seed * lanes + i) >> 9) % (most + 1);
        const std::vector<match> wanted = match_one_by_one(idle, counts);
        std::vector<match> got(lanes);
        r.launch(seed, [&] { got[threadIdx.x] = lane<tree>::match_lanes(idle, counts[threadIdx.x]); });
        unsigned given = 0;
        for (unsigned i = 0; i < lanes; ++i) {
            EXPECT_EQ(wanted[i].wanted, got[i].wanted);
            EXPECT_EQ(wanted[i].rank, got[i].rank);
            EXPECT_EQ(wanted[i].offered, got[i].offered);
            EXPECT_EQ(wanted[i].mine, got[i].mine);
            EXPECT_TRUE(wanted[i].from == lanes || wanted[i].from == got[i].from);
            EXPECT_LE(got[i].given(counts[i]), counts[i]);
            given += got[i].given(counts[i]);
        }
        EXPECT_EQ(std::min(wanted[0].wanted, wanted[0].offered), given);
    }
}

/* ---- A task that one lane takes, and others share ---- */

/* The root of a tree of 500 to 2000 tasks. */
tree::task medium_root(uint64_t seed) {
    for (;; ++seed) {
        const tree::task root = {seed, 0, 12};
        uint64_t tasks = 0;
        (void)reference(root, false, &tasks);
        if (tasks >= 500 && tasks <= 2000)
            return root;
    }
}

/* Solves the root by a warp whose lanes share tasks if `share_at` of them have none. Returns how many lanes had any. */
template <class P> unsigned solve_by_warp(uint64_t seed, unsigned capacity, unsigned share_at) {
    constexpr unsigned slots = 64; /* no stack is ever full, so nothing is given away for that */
    run<P> r({1, slots, 1, 1, capacity, 0}, seed, 1);
    bool worked[lanes] = {};
    uint64_t tasks = 0;
    r.roots[0] = medium_root(seed);
    const uint64_t wanted = reference(r.roots[0], folds<P>, &tasks);
    r.arena.deadline = 1;
    r.arena.nodes = 1;
    r.launch(seed, [&] {
        worker<P> w(r.args, none, shared);
        place_roots(w.arena, threadIdx.x, lanes);
        __syncthreads();
        for (unsigned begin = 0, end = 1; begin < end;) {
            solve_tasks(w.arena, w.own, begin, end, false, {~0u, ~0u, share_at});
            if (threadIdx.x == 0)
                r.arena.taken = 0;
            __syncthreads();
            begin = end; /* what was given away, and nobody has taken */
            end = end_of(r.args);
            __syncthreads();
        }
        worked[threadIdx.x] = w.own.deepest > 0;
        w.own.hand_in();
    });
    EXPECT_EQ(0u, r.arena.error);
    EXPECT_EQ(1u, r.arena.solved);
    EXPECT_EQ(tasks, r.arena.tasks);
    EXPECT_EQ(wanted, folds<P> ? r.sums[0] : r.nodes[0].at.result);
    return static_cast<unsigned>(std::count(worked, worked + lanes, true));
}

template <class P> void expect_shared(unsigned share_at, unsigned capacity) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
        EXPECT_LE(8u, solve_by_warp<P>(1000 * seed, capacity, share_at));
        EXPECT_EQ(1u, solve_by_warp<P>(1000 * seed, capacity, share_never));
    }
}

TEST(DeviceWarp, lanes_take_what_is_folded_from_each_other) {
    expect_shared<fold_tree>(share_soon, 1);
}
TEST(DeviceWarp, lanes_take_what_is_joined_as_nodes) {
    expect_shared<tree>(share_soon, 5000);
    expect_shared<tree>(share_late, 5000);
}

/* Where the arena is full, nothing can be given as a node. */
TEST(DeviceWarp, a_lane_with_a_full_arena_keeps_its_tasks) {
    EXPECT_EQ(1u, solve_by_warp<tree>(1, 1, share_soon));
}

/* ---- Whole runs ---- */

void expect_runs(void (*expect)(const sizes &, uint64_t, unsigned)) {
    uint64_t seed = 0;
    for (const unsigned slots : {7u, 20u})
        for (const unsigned frontier : {1u, 40u})
            for (const unsigned budget : {8u, 256u})
                for (const unsigned capacity : {3u, 40u, 5000u}) {
                    ++seed;
                    expect({1, slots, frontier, budget, capacity, 0}, seed, 1 + static_cast<unsigned>(seed % 3));
                }
}

TEST(DeviceWarp, persistent) {
    expect_runs(expect_persistent<tree>);
    expect_runs(expect_persistent<fold_tree>);
    expect_runs(expect_persistent<team_tree>);
}

/* Trees of any size, of which the warp solves those with at most 100 tasks at once. Without an arena it can do nothing
 * else; without a place for results these come with the report; and with the tag 0 the outcome is the caller's. */
template <class P> void expect_at_once(unsigned capacity, bool has_out, uint32_t tag) {
    constexpr unsigned first_tasks = 100;
    unsigned solved = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        run<P> r({1, 60, 8, 8, capacity, first_tasks}, seed, 1);
        uint64_t tasks = 0;
        const uint64_t wanted = reference(r.roots[0], folds<P>, &tasks);
        r.args.out = has_out ? r.out.data() : nullptr;
        r.args.tag = tag;
        r.launch(seed, [&] { persistent<P>(r.args, none); });
        letter l = r.read_letter();
        if (tag == 0)
            std::memcpy(static_cast<void *>(&l.outcome), r.mail.data(), sizeof l.outcome);
        const bool fits = tasks <= first_tasks, fails = capacity == 0 && !fits;
        EXPECT_EQ(uint32_t{fails ? DPR_ERR_STRATEGY_UNABLE : DPR_OK}, l.outcome.status);
        EXPECT_TRUE(r.is_clean());
        if (fails)
            continue;
        EXPECT_EQ(fits, l.outcome.levels == 0);
        EXPECT_EQ(tasks, l.outcome.tasks);
        EXPECT_EQ(0, std::memcmp(&wanted, has_out ? static_cast<void *>(r.out.data()) : l.results, sizeof wanted));
        solved += fits;
    }
    EXPECT_TRUE(solved > 10 && solved < 35) << solved;
}

template <class P> void expect_all_at_once() {
    expect_at_once<P>(0, false, 1);
    expect_at_once<P>(0, true, 1);
    expect_at_once<P>(5000, false, 1);
    expect_at_once<P>(5000, true, 0);
}

TEST(DeviceWarp, few_tasks_at_once) {
    expect_all_at_once<tree>();
    expect_all_at_once<fold_tree>();
}

TEST(DeviceWarp, phases) {
    expect_runs(expect_phases<tree>);
    expect_runs(expect_phases<fold_tree>);
    expect_runs(expect_phases<team_tree>);
}

/* ---- Runs that come to a limit ---- */

/* An endless chain: an even task has the next even one and a leaf as children. */
struct endless {
    struct task {
        uint64_t number;
    };
    using result = uint64_t;
    static constexpr int most_children = 2;

    static int divide(const dpr::no_data &, const task &t, dpr::children<endless> c) {
        if (t.number % 2 != 0)
            return 0;
        c[0] = {t.number + 2};
        c[1] = {1};
        return 2;
    }
    static result base(const dpr::no_data &, const task &t) { return t.number; }
    static result combine(const dpr::no_data &, const task &, dpr::results<endless> results, int) {
        return results[0] + results[1];
    }
};

endless::task root_of(uint64_t, unsigned, const endless::task *) {
    return {0};
}

/* All lanes leave a level at once in which one of them comes to a limit; levels at which the warp looks are 16 apart.
 */
TEST(DeviceWarp, limits_end_all_lanes) {
    for (const unsigned most : {1u, 30u, 31u, 32u, 33u, 63u, 64u, 65u, 160u, 800u})
        for (uint64_t seed = 0; seed < 3; ++seed)
            for (const unsigned capacity : {40u, 5000u}) {
                run<endless> r({1, 20, 40, 8, capacity, 0}, seed, 1);
                r.args.undivided = 0;
                r.args.max_tasks = most;
                r.launch(seed, [&] { persistent<endless>(r.args, none); });
                ASSERT_TRUE(r.has_ended());
                const dpr_recursion_outcome outcome = r.read_letter().outcome;
                EXPECT_EQ(uint32_t{DPR_ERR_LIMIT}, outcome.status);
                EXPECT_EQ(int32_t{DPR_LIMIT_OF_TASKS}, outcome.wrong);
                EXPECT_TRUE(r.is_clean());
            }
}

} // namespace
