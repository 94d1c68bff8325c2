/* Unbalanced tree search: counts the nodes of a tree that is known only as one goes along (S. Olivier and others, UTS:
 * an unbalanced tree search benchmark, 2006). A node is a state of 160 bits; a child's state is the SHA-1 hash of its
 * parent's with the child's number, and the hash decides how many children there are. Of two trees the sizes are
 * published: T1 is geometric, ten levels deep, and T3 binomial, with a few branches that are very deep. */
#include <dpr_recursion.cuh>

#include <cmath>
#include <utility>
#include <vector>

#include "example.h"

namespace {

/* ---- The generator ---- */

struct state {
    uint32_t words[5];
};

DPR_BOTH uint32_t rotated(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

/* Round I of SHA-1 (FIPS 180-4). The five variables stay where they are, and change their roles from round to round. */
template <int I> DPR_BOTH void sha1_round(uint32_t (&w)[16], uint32_t (&v)[5]) {
    constexpr int from = 5 - I % 5;
    const uint32_t a = v[from % 5], c = v[(from + 2) % 5], d = v[(from + 3) % 5];
    uint32_t &b = v[(from + 1) % 5], &e = v[(from + 4) % 5];
    if (I >= 16)
        w[I % 16] = rotated(w[(I + 13) % 16] ^ w[(I + 8) % 16] ^ w[(I + 2) % 16] ^ w[I % 16], 1);
    constexpr uint32_t k = I < 20 ? 0x5a827999 : I < 40 ? 0x6ed9eba1 : I < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    const uint32_t choice = (b & c) | (~b & d), parity = b ^ c ^ d, majority = (b & c) | (b & d) | (c & d);
    const uint32_t f = I < 20 ? choice : I >= 40 && I < 60 ? majority : parity;
    e += rotated(a, 5) + f + k + w[I % 16];
    b = rotated(b, 30);
}

template <int... I> DPR_BOTH void sha1_rounds(uint32_t (&w)[16], uint32_t (&v)[5], std::integer_sequence<int, I...>) {
    (sha1_round<I>(w, v), ...);
}

/* The hash of a message that fits one block, `w`, which it changes. */
DPR_BOTH state sha1(uint32_t (&w)[16]) {
    const state begin = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
    state s = begin;
    sha1_rounds(w, s.words, std::make_integer_sequence<int, 80>{});
    for (int i = 0; i < 5; ++i)
        s.words[i] += begin.words[i];
    return s;
}

state root_state(uint32_t seed) {
    uint32_t w[16] = {0, 0, 0, 0, seed, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 160};
    return sha1(w);
}

DPR_BOTH state child_state(const state &s, uint32_t i) {
    uint32_t w[16] = {s.words[0], s.words[1], s.words[2], s.words[3], s.words[4], i, 0x80000000, 0,
                      0,          0,          0,          0,          0,          0, 0,          192};
    return sha1(w);
}

/* ---- The trees ---- */

enum : uint32_t { most_children_of_node = 100 };

/* A node has `step` children for each bound that its random number of 31 bits reaches, and none at depth `deepest`.
 * `flip` turns random numbers around, for nodes that have children if the number is small. The number of bounds that a
 * number reaches is about `scale` times the logarithm to base 2 of 1 minus the number over 2^31. */
struct tree {
    uint32_t bounds[most_children_of_node];
    uint32_t count, step, deepest, flip;
    float scale;
};

/* The guess saves most of the search. Logarithms differ between the host and a GPU, and the bounds decide. */
DPR_BOTH uint32_t children_of(const tree &t, const state &s, uint32_t depth) {
    const uint32_t random = (s.words[4] ^ t.flip) & 0x7fffffff;
    const float guess = t.scale * std::log2(static_cast<float>(0x80000000 - random) / 2147483648.0f);
    uint32_t n = guess < static_cast<float>(t.count) ? static_cast<uint32_t>(guess) : t.count;
    while (n > 0 && random < t.bounds[n - 1])
        --n;
    while (n < t.count && random >= t.bounds[n])
        ++n;
    return depth < t.deepest ? n * t.step : 0;
}

/* The logarithm by which numbers of children are distributed in a geometric tree. */
double log_of_geometric(double mean) {
    return std::log(1 - 1 / (1 + mean));
}

/* The least random number with which a node of a geometric tree has n children. */
uint32_t geometric_bound(double mean, uint32_t n) {
    const double scale = log_of_geometric(mean);
    uint32_t low = 0, high = 1u << 31;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (std::floor(std::log(1 - middle / 2147483648.0) / scale) >= n)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

tree geometric(uint32_t deepest) {
    constexpr double mean = 4;
    tree t = {{}, most_children_of_node, 1, deepest, 0, static_cast<float>(std::log(2.0) / log_of_geometric(mean))};
    for (uint32_t i = 0; i < t.count; ++i)
        t.bounds[i] = geometric_bound(mean, i + 1);
    return t;
}

tree binomial() {
    tree t = {{}, 1, 8, UINT32_MAX, 0x7fffffff, 0};
    t.bounds[0] = (1u << 31) - static_cast<uint32_t>(std::ceil(0.124875 * 2147483648.0));
    return t;
}

/* ---- The recursion ---- */

/* Children number `first` to first + count - 1 of a node, at this depth, or at most_depth if they are deeper. Lanes
 * have their stacks in shared memory, where three words of 8 bytes lie in other banks for each lane; eight words of 4
 * bytes would have lanes wait for each other. */
struct alignas(8) siblings {
    state parent;
    uint32_t first : 12, count : 12, depth : 8;
};
constexpr uint32_t most_depth = 255;
static_assert(sizeof(siblings) == 24);

/* Divides siblings into as many parts as P has children at most, of about the same size. */
template <class P>
DPR_BOTH int divide_siblings(const state &parent, uint32_t first, uint32_t count, uint32_t depth,
                             dpr::children<P> children) {
    constexpr uint32_t most = P::most_children;
    const uint32_t n = count < most ? count : most, each = count <= most ? 1 : count / most, longer = count - n * each;
    for (uint32_t i = 0; i < n; ++i)
        children[static_cast<int>(i)] = {parent, first + i * each + (i < longer ? i : longer), each + (i < longer),
                                         depth};
    return static_cast<int>(n);
}

/* A task is a node, or several siblings: these are divided into parts. So a task has eight children at most, however
 * many a node has. With two or four there are more levels, and a GPU takes 1.9 or 1.25 times as long. */
struct search {
    using task = siblings;
    using result = uint32_t; /* nodes */
    using data = tree;
    static constexpr int most_children = 8;
    static constexpr bool host_data = true;

    template <class P> DPR_BOTH static int divide_for(const data &d, const task &t, dpr::children<P> children) {
        if (t.count > 1)
            return divide_siblings<P>(t.parent, t.first, t.count, t.depth, children);
        const state s = child_state(t.parent, t.first);
        const uint32_t below = t.depth < most_depth ? t.depth + 1 : most_depth;
        return divide_siblings<P>(s, 0, children_of(d, s, t.depth), below, children);
    }
    DPR_POLICY int divide(const data &d, const task &t, dpr::children<search> children) {
        return divide_for<search>(d, t, children);
    }
    DPR_POLICY result base(const data &, const task &) { return 1; }
    DPR_POLICY result combine(const data &, const task &t, dpr::results<search> results, int n) {
        uint32_t nodes = t.count == 1;
        for (int i = 0; i < n; ++i)
            nodes += results[i];
        return nodes;
    }
};

/* The same for a tree that is very deep: nodes are only counted. Joining results would take longer than finding them: a
 * lane that solves the last node of a deep branch would have to join its way up, while the others wait. */
struct deep_search {
    using task = siblings;
    using result = uint32_t;
    using data = tree;
    static constexpr int most_children = 8;
    static constexpr bool host_data = true;
    static constexpr dpr_op fold = DPR_SUM;

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<deep_search> children) {
        return search::divide_for<deep_search>(d, t, children);
    }
    DPR_POLICY result base(const data &, const task &) { return 1; }
    DPR_POLICY result part(const data &, const task &t) { return t.count == 1; }
};

/* Counts nodes one after another. */
uint32_t count_nodes(const tree &t, const siblings &root) {
    std::vector<siblings> left = {root};
    uint32_t nodes = 0;
    while (!left.empty()) {
        siblings &last = left.back();
        const state s = child_state(last.parent, last.first++);
        const uint32_t depth = last.depth;
        if (--last.count == 0)
            left.pop_back();
        ++nodes;
        const uint32_t n = children_of(t, s, depth);
        if (n > 0)
            left.push_back({s, 0, n, depth + 1});
    }
    return nodes;
}

} // namespace

DPR_RECURSION(uts, search)
DPR_RECURSION(uts_t3, deep_search)

/* A tree, and how many nodes it is known to have; if that is 0, they are counted. */
struct problem {
    decltype(&uts_run) run;
    tree shape;
    siblings root;
    uint32_t nodes;
};

static dpr_status solve(const problem &p, dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                        recursion_answer *answer) {
    uint32_t nodes = 0;
    const dpr_status status = p.run(ctx, &p.root, 1, &p.shape, &nodes, request->options, report, nullptr);
    if (status == DPR_OK)
        recursion_set_answer(answer, nodes == (p.nodes > 0 ? p.nodes - 1 : count_nodes(p.shape, p.root)), "%u nodes",
                             nodes + 1);
    return status;
}

static dpr_status run_geometric(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                                recursion_answer *answer) {
    const tree t = geometric(static_cast<uint32_t>(request->size));
    const state root = root_state(19);
    const problem p = {uts_run, t, {root, 0, children_of(t, root, 0), 1}, request->size == 10 ? 4130071u : 0};
    return solve(p, ctx, request, report, answer);
}

static dpr_status run_binomial(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                               recursion_answer *answer) {
    const siblings root = {root_state(42), 0, static_cast<uint32_t>(request->size), 1};
    const problem p = {uts_t3_run, binomial(), root, request->size == 2000 ? 4112897u : 0};
    return solve(p, ctx, request, report, answer);
}

extern "C" const recursion_example recursion_uts = {"uts",
                                                    "nodes of the unbalanced tree T1, which hashes describe",
                                                    "levels below the root",
                                                    10,
                                                    1,
                                                    12,
                                                    run_geometric,
                                                    nullptr,
                                                    0,
                                                    0};
extern "C" const recursion_example recursion_uts_t3 = {
    "uts_t3",
    "nodes of the unbalanced tree T3, of which few branches are deep",
    "children of the root",
    2000,
    1,
    2000,
    run_binomial,
    nullptr,
    0,
    0};
