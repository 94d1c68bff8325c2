/* The device code of recursions on threads of the host (device_on_host/), with random schedules: queues, counters of
 * children, the arena, and meetings of blocks, in arenas and stacks of any size. */
#include <atomic>

#include "device_runs.h"

namespace dpr {
namespace recursion {
__thread __attribute__((aligned(16))) char shared[1 << 16];
} // namespace recursion
} // namespace dpr

namespace {

using namespace device_runs;

template <class P> void expect_all(void (*expect)(const sizes &, uint64_t, unsigned)) {
    uint64_t seed = 0;
    for (const unsigned blocks : {1u, 2u, 5u})
        for (const unsigned slots : {7u, 20u})
            for (const unsigned frontier : {1u, 6u, 1000u})
                for (const unsigned budget : {1u, 8u, 256u})
                    for (const unsigned capacity : {3u, 7u, 40u, 5000u}) {
                        ++seed;
                        expect({blocks, slots, frontier, budget, capacity, 0}, seed,
                               1 + static_cast<unsigned>(seed % 3));
                    }
}

/* A lane that leaves is idle, also if it has not begun its task: its stack has other uses then. */
TEST(DeviceRecursion, lanes_leave_what_they_have_not_begun) {
    const run<tree> r({1, 20, 1, 1, 10, 0}, 3, 1);
    const nodes<tree> arena = {r.args, none, nullptr};
    lane<tree> own = {
        arena, shared, reinterpret_cast<header<tree> *>(shared + 21 * sizeof(slot<tree>)), sizeof(slot<tree>), 1, 20};
    place_roots(arena, 0, 1);
    own.start(0);
    arena.set_state(0, taken);
    own.leave();
    EXPECT_FALSE(own.busy());
    EXPECT_EQ(unsigned{pending}, arena.state_of(0));
}

/* ---- A warp that solves the roots at once: here it has one lane ---- */

/* With a given number of first tasks. Returns whether nothing else was needed. */
template <class P>
bool run_tiny(const sizes &s, uint64_t seed, uint64_t max_tasks, unsigned max_depth, unsigned shared_bytes) {
    run<P> r(s, seed, 1);
    r.args.shared_bytes = shared_bytes;
    r.args.max_tasks = max_tasks;
    r.args.max_depth = max_depth;
    r.args.out = s.capacity > 0 || seed % 2 ? r.args.out : nullptr;
    r.launch(seed, [&] { persistent<P>(r.args, none); });
    EXPECT_TRUE(r.has_ended());
    EXPECT_TRUE(r.is_clean());
    const letter l = r.read_letter();
    if (s.capacity == 0 && l.outcome.status != 0) {
        EXPECT_EQ(uint32_t{DPR_ERR_STRATEGY_UNABLE}, l.outcome.status);
        EXPECT_EQ(0u, r.out[0]);
        return false;
    }
    if (!r.args.out)
        std::memcpy(r.out.data(), l.results, 8);
    r.check();
    return l.outcome.levels == 0;
}

/* Of trees of all sizes, in grids that can go on with what is left, and in a block that cannot. */
template <class P> void expect_tiny() {
    for (const unsigned blocks : {1u, 3u})
        for (const unsigned capacity : {0u, 2000u}) {
            unsigned at_once = 0;
            for (uint64_t seed = 0; seed < 200 && (blocks == 1 || capacity > 0); ++seed) {
                uint64_t tasks = 0;
                const run<P> trees({blocks, 20, 1, 1, 1, 0}, seed, 1);
                (void)reference(trees.roots[0], folds<P>, &tasks);
                const bool done = run_tiny<P>({blocks, 60, 8, 8, capacity, 40}, seed, ~0ull, 1000, sizeof shared);
                EXPECT_EQ(tasks <= 40, done) << tasks << " tasks";
                at_once += done;
            }
            EXPECT_TRUE((blocks > 1 && capacity == 0) || (at_once > 20 && at_once < 180)) << at_once;
        }
}

TEST(DeviceRecursion, a_warp_solves_few_tasks_at_once) {
    expect_tiny<tree>();
    expect_tiny<fold_tree>();
}

/* What a limit forbids, or there is no room for, the warp leaves alone. */
TEST(DeviceRecursion, a_warp_that_solves_at_once_keeps_to_limits) {
    uint64_t seed = 0, tasks = 0;
    for (; tasks < 8 || tasks > 30; ++seed) {
        const run<tree> trees({1, 20, 1, 1, 1, 0}, seed, 1);
        tasks = 0;
        (void)reference(trees.roots[0], false, &tasks);
    }
    --seed;
    const sizes s = {1, 60, 8, 8, 0, 60};
    EXPECT_TRUE(run_tiny<tree>(s, seed, tasks, 1000, sizeof shared));
    EXPECT_FALSE(run_tiny<tree>(s, seed, tasks - 1, 1000, sizeof shared));
    EXPECT_FALSE(run_tiny<tree>(s, seed, ~0ull, 0, sizeof shared));
    EXPECT_FALSE(run_tiny<tree>(s, seed, ~0ull, 1000, 0));
    EXPECT_FALSE(run_tiny<tree>(s, seed, ~0ull, 1000, 400));
}

/* Children that divide() writes out of range change nothing. */
TEST(DeviceRecursion, children_out_of_range_are_written_nowhere) {
    expect_tiny<wild_tree>();
    for (uint64_t seed = 1; seed < 40; ++seed)
        for (const unsigned slots : {7u, 20u})
            for (const unsigned capacity : {3u, 40u, 5000u}) {
                expect_persistent<wild_tree>({2, slots, 6, 8, capacity, 0}, seed, 2);
                expect_phases<wild_tree>({2, slots, 6, 8, capacity, 0}, seed, 2);
            }
}

TEST(DeviceRecursion, many_children_of_two_bytes) {
    for (const unsigned slots : {302u, 303u, 601u})
        for (const unsigned capacity : {4u, 400u, 50000u})
            for (uint64_t seed = 0; seed < 4; ++seed) {
                expect_persistent<wide_tree>({2, slots, 6, 8, capacity, 0}, seed, 4);
                expect_phases<wide_tree>({2, slots, 6, 8, capacity, 0}, seed, 4);
            }
}

/* Lanes that solve sub-trees alone, as those of engine `naive` do, use the same chunks again and again. */
TEST(DeviceRecursion, chunks_come_back) {
    constexpr unsigned roots = 3, levels = 12, times = 100;
    for (uint64_t seed = 0; seed < 30; ++seed) {
        run<tree> r({roots, 7, 1, 1, roots, 0}, seed, roots);
        r.args.chunks = roots * levels;
        r.args.keeps = 1;
        r.arena.deadline = 1; /* no kernel begins the run */
        r.launch(seed, [&] {
            for (unsigned i = 0; i < times; ++i) {
                worker<tree> w(r.args, none, shared);
                place_roots(w.arena, blockIdx.x, roots);
                w.solve_alone(blockIdx.x);
            }
        });
        uint64_t tasks = 0;
        EXPECT_EQ(0u, r.arena.error);
        EXPECT_LE(r.arena.chunks, roots * levels);
        for (unsigned i = 0; i < roots; ++i)
            EXPECT_EQ(reference(r.roots[i], false, &tasks), r.nodes[i].at.result);
    }
}

/* Lanes that take and give chunks all the time: no chunk has two owners, although a lane may read a chunk's word when
 * others have taken that chunk and given it back. */
TEST(DeviceRecursion, a_chunk_has_one_owner) {
    constexpr unsigned lanes = 4, times = 20000;
    const run<tree> r({lanes, 7, 1, 1, 10, 0}, 1, 1);
    std::atomic<unsigned> owners[r.most_chunks] = {}, wrong{0};
    const auto take = [&](lane<tree> &own) {
        own.take_chunk();
        wrong += owners[own.spare]++ != 0;
        const unsigned i = own.spare;
        own.spare = no_node;
        return i;
    };
    const auto give = [&](lane<tree> &own, unsigned i) {
        --owners[i];
        own.spare = i;
        own.give_chunks();
    };
    r.launch(1, [&] {
        worker<tree> w(r.args, none, shared);
        for (unsigned i = 0; i < times && wrong == 0; ++i) {
            const unsigned first = take(w.own), second = take(w.own);
            give(w.own, first);
            give(w.own, second);
        }
    });
    EXPECT_EQ(0u, wrong);
    EXPECT_LE(r.arena.chunks, 2 * lanes);
}

/* ---- Runs that take too long, because they may take no time ---- */

template <class P> void expect_too_long(const run<P> &r) {
    const letter l = r.read_letter();
    ASSERT_TRUE(r.has_ended());
    EXPECT_EQ(uint32_t{DPR_ERR_LIMIT}, l.outcome.status);
    EXPECT_EQ(int32_t{DPR_LIMIT_OF_TIME}, l.outcome.wrong);
    EXPECT_TRUE(r.is_clean());
}

template <class P> void expect_too_long_by_persistent(const sizes &s, uint64_t seed) {
    run<P> r(s, seed, 3);
    r.args.max_ns = 0;
    r.launch(seed, [&] { launch_persistent<P>(r.args); });
    expect_too_long(r);
}

template <class P> void expect_too_long_in_phases(const sizes &s, uint64_t seed) {
    run<P> r(s, seed, 3);
    r.args.max_ns = 0;
    for (const unsigned what : {DPR_LAUNCH_BEGIN, DPR_LAUNCH_PHASE, DPR_LAUNCH_END_IF_DUE})
        r.launch(seed, [&] { phase_kernel<P>(r.args, none, what); });
    expect_too_long(r);
}

template <class P> void expect_limit_of_time() {
    for (uint64_t seed = 0; seed < 20; ++seed)
        for (const unsigned capacity : {7u, 5000u}) {
            const sizes s = {2, 20, 6, 8, capacity, 0};
            expect_too_long_by_persistent<P>(s, seed);
            expect_too_long_in_phases<P>(s, seed);
        }
}

/* The root of a large tree. */
tree::task large_root() {
    constexpr uint64_t least = 20000;
    for (uint64_t seed = 0;; ++seed) {
        const tree::task root = {seed, 0, 30};
        uint64_t tasks = 0;
        (void)reference(root, false, &tasks);
        if (tasks > least)
            return root;
    }
}

/* Runs a loop over tasks by one thread, with as many nodes as roots. */
template <class P, class Loop> void expect_look(const tree::task &root, Loop loop) {
    constexpr unsigned count = 200;
    run<P> r({1, 20, 1, 8, count, 0}, 1, count);
    std::fill(r.roots.begin(), r.roots.end(), root);
    r.arena.deadline = 0;
    r.arena.nodes = count;
    r.launch(1, [&] {
        worker<P> w(r.args, none, shared);
        place_roots(w.arena, 0, 1);
        loop(w, count);
        EXPECT_LT(w.own.tasks, 10000u);
    });
    EXPECT_EQ(unsigned{DPR_ERR_LIMIT}, r.arena.error);
}

TEST(DeviceRecursion, loops_look_at_the_clock) {
    const tree::task root = large_root();
    const auto alone = [](auto &w, unsigned) { w.solve_alone(0); };
    const auto solve = [](auto &w, unsigned end) { w.solve_all(0, end); };
    const auto solve_one = [](auto &w, unsigned) { w.solve_all(0, 1); };
    const auto divide = [](auto &w, unsigned end) { w.divide_tasks(0, end, w.me, w.threads); };
    expect_look<tree>(root, alone);
    expect_look<tree>(root, solve);
    expect_look<tree>(root, solve_one);
    expect_look<tree>(root, divide);
    expect_look<team_tree>(root, alone);
    expect_look<team_tree>(root, solve);
    expect_look<team_tree>(root, divide);
}

TEST(DeviceRecursion, a_warp_that_solves_at_once_looks_at_the_clock) {
    run<tree> r({1, 20, 1, 1, 0, 512}, 1, 1);
    r.args.max_ns = 0;
    r.launch(1, [&] { persistent<tree>(r.args, none); });
    EXPECT_EQ(uint32_t{DPR_ERR_STRATEGY_UNABLE}, r.read_letter().outcome.status);
}

/* ---- Runs for which no host waits: their kernels write the caller's outcome, and leave the arena as it was ---- */

constexpr uint64_t canary = 0x5a5a5a5a5a5a5a5a;

/* A run that is enqueued, by one kernel or in a loop of phases. */
template <class P> dpr_recursion_outcome run_enqueued(run<P> &r, uint64_t seed, bool in_phases) {
    dpr_recursion_outcome outcome;
    r.args.tag = 0;
    std::fill(r.mail.begin(), r.mail.end(), canary);
    std::fill(r.out.begin(), r.out.end(), typename P::result{7});
    if (in_phases) {
        r.launch(seed, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_BEGIN); });
        for (uint64_t i = 0; is_unfinished(r.arena); ++i)
            r.launch(seed + i, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_PHASE); });
        r.launch(seed, [&] { phase_kernel<P>(r.args, none, DPR_LAUNCH_END); });
    } else {
        r.launch(seed, [&] { launch_persistent<P>(r.args); });
    }
    EXPECT_TRUE(r.is_clean());
    std::memcpy(&outcome, r.mail.data(), sizeof outcome);
    for (size_t i = sizeof outcome / sizeof canary; i < r.mail.size(); ++i)
        EXPECT_EQ(canary, r.mail[i]);
    return outcome;
}

/* Whether the run succeeds, also after one that has failed. */
template <class P> void expect_enqueued(run<P> &r, uint64_t seed, bool in_phases) {
    uint64_t tasks = 0;
    const dpr_recursion_outcome outcome = run_enqueued(r, seed, in_phases);
    EXPECT_EQ(uint32_t{DPR_OK}, outcome.status);
    for (size_t i = 0; i < r.roots.size(); ++i)
        EXPECT_EQ(reference(r.roots[i], folds<P>, &tasks), r.out[i]);
    EXPECT_EQ(tasks, outcome.tasks);
}

/* Whether the run fails and writes no results; and the next one with these arguments before the change succeeds. */
template <class P, class Change>
void expect_error(run<P> &r, uint64_t seed, bool in_phases, dpr_status status, Change change) {
    const dpr_recursion_args args = r.args;
    change(r.args);
    const dpr_recursion_outcome outcome = run_enqueued(r, seed, in_phases);
    EXPECT_EQ(uint32_t{status}, outcome.status);
    for (const typename P::result &result : r.out)
        EXPECT_EQ(typename P::result{7}, result);
    r.args = args;
    expect_enqueued(r, seed, in_phases);
}

template <class P> void expect_all_enqueued(bool in_phases) {
    const uint64_t large = large_root().seed;
    uint64_t seed = 0;
    for (const unsigned blocks : {1u, 3u})
        for (const unsigned capacity : {3u, 40u, 5000u})
            for (const unsigned first_tasks : {0u, 64u})
                for (unsigned i = 0; i < 3; ++i, ++seed) {
                    run<P> r({blocks, 20, 6, 8, capacity, in_phases ? 0 : first_tasks}, seed, 1 + i % 3);
                    for (auto &root : r.roots)
                        root = {large, 0, 8};
                    expect_enqueued(r, seed, in_phases);
                    expect_error(r, seed, in_phases, DPR_ERR_LIMIT, [](auto &args) { args.max_ns = 0; });
                    expect_error(r, seed, in_phases, DPR_ERR_LIMIT, [](auto &args) { args.max_depth = 3; });
                    expect_error(r, seed, in_phases, DPR_ERR_LIMIT, [](auto &args) { args.max_tasks = 1; });
                }
}

template <class P> void expect_enqueued_with_full_memory(bool in_phases) {
    const uint64_t large = large_root().seed;
    for (uint64_t seed = 0; seed < 2; ++seed) {
        run<P> r({2, 7, 1, 8, 2, 0}, seed, 2);
        for (auto &root : r.roots)
            root = {large, 0, 14};
        expect_error(r, seed, in_phases, DPR_ERR_OUT_OF_MEMORY, [](auto &args) { args.chunks = 0; });
    }
}

TEST(DeviceRecursion, a_warp_hands_over_what_it_solves_at_once) {
    for (const unsigned blocks : {1u, 3u})
        for (uint64_t seed = 0; seed < 100; ++seed) {
            constexpr unsigned first_tasks = 40;
            run<tree> r({blocks, 60, 8, 8, 2000, first_tasks}, seed, 1);
            uint64_t tasks = 0;
            const uint64_t wanted = reference(r.roots[0], false, &tasks);
            const dpr_recursion_outcome outcome = run_enqueued(r, seed, false);
            EXPECT_EQ(uint32_t{DPR_OK}, outcome.status);
            EXPECT_EQ(tasks, outcome.tasks);
            EXPECT_EQ(tasks <= first_tasks, outcome.levels == 0);
            EXPECT_EQ(wanted, r.out[0]);
        }
}

TEST(DeviceRecursion, enqueued_runs_leave_the_arena_for_the_next) {
    for (const bool in_phases : {false, true}) {
        expect_all_enqueued<tree>(in_phases);
        expect_all_enqueued<fold_tree>(in_phases);
        expect_all_enqueued<team_tree>(in_phases);
        expect_enqueued_with_full_memory<tree>(in_phases);
        expect_enqueued_with_full_memory<fold_tree>(in_phases);
        expect_enqueued_with_full_memory<team_tree>(in_phases);
    }
}

TEST(DeviceRecursion, limit_of_time) {
    expect_limit_of_time<tree>();
    expect_limit_of_time<fold_tree>();
    expect_limit_of_time<team_tree>();
}

TEST(DeviceRecursion, persistent_joins) {
    expect_all<tree>(expect_persistent<tree>);
}
TEST(DeviceRecursion, persistent_folds) {
    expect_all<fold_tree>(expect_persistent<fold_tree>);
}
TEST(DeviceRecursion, persistent_teams) {
    expect_all<team_tree>(expect_persistent<team_tree>);
}
TEST(DeviceRecursion, phases_join) {
    expect_all<tree>(expect_phases<tree>);
}
TEST(DeviceRecursion, phases_fold) {
    expect_all<fold_tree>(expect_phases<fold_tree>);
}
TEST(DeviceRecursion, phases_of_teams) {
    expect_all<team_tree>(expect_phases<team_tree>);
}

} // namespace
