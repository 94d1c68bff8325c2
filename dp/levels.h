/* The arithmetic of nested launches: pure functions of integers, with which the host plans and kernels compute. */
#ifndef DPR_DP_LEVELS_H
#define DPR_DP_LEVELS_H

#include <stdint.h>

#ifdef __CUDACC__
#define DPR_BOTH_SIDES __host__ __device__
#else
#define DPR_BOTH_SIDES
#endif

/* ---- Halving: dp.recursive, dp.nosync and dp.recursive2 ---- */

/* Words that are left of `words` when word i + s has been added to word i wherever both exist; s is the result. */
DPR_BOTH_SIDES static inline uint32_t dpr_halved(uint32_t words) {
    return words - words / 2;
}

/* How many times `words` must be halved until one is left: its logarithm to base 2, rounded up. */
DPR_BOTH_SIDES static inline uint32_t dpr_halvings(uint32_t words) {
    return words < 2 ? 0 : 32 - (uint32_t)__builtin_clz(words - 1);
}

/* How many tiles of `words` words (at least 2) a block halves together, if it has `places` places (a power of two) for
 * pairs of words to add. Each tile takes 2^(dpr_halvings(words) - 1) places. */
DPR_BOTH_SIDES static inline uint32_t dpr_tiles_together(uint32_t words, uint32_t places) {
    const uint32_t tiles = places >> (dpr_halvings(words) - 1);
    return tiles > 0 ? tiles : 1;
}

/* Words of tile number `tile`, whose size is at most `block`, for `count` elements: as many as there are elements left,
 * but at least one, which is then the identity. If there are more elements than words, words have several elements
 * each. */
DPR_BOTH_SIDES static inline uint32_t dpr_words_of_tile(uint64_t count, uint32_t block, uint64_t tile) {
    const uint64_t before = tile * block;
    const uint64_t left = count > before ? count - before : 1;
    return left < block ? (uint32_t)left : block;
}

/* How many of `tiles` tiles have elements; at least 1. */
DPR_BOTH_SIDES static inline uint32_t dpr_tiles_filled(uint64_t count, uint32_t block, uint32_t tiles) {
    const uint64_t filled = count / block + (count % block != 0);
    return filled == 0 ? 1 : filled < tiles ? (uint32_t)filled : tiles;
}

/* ---- The tree ---- */

/* Leaves are neighbouring vectors of the array. A node above has `fan` children, the last of its level perhaps fewer,
 * and the last level has one node. */
typedef struct dpr_tree {
    uint64_t leaf;   /* most vectors of 16 bytes a leaf */
    uint32_t leaves; /* at least 1 */
    uint32_t fan;    /* at least 2 */
    uint32_t levels; /* number of levels, that of the leaves included */
} dpr_tree;

/* Nodes of the level above a level of `width` nodes. */
DPR_BOTH_SIDES static inline uint32_t dpr_tree_above(uint32_t width, uint32_t fan) {
    return width / fan + (width % fan != 0);
}

/* Levels from `leaves` leaves to one node. */
static inline uint32_t dpr_tree_levels(uint32_t leaves, uint32_t fan) {
    uint32_t levels = 1;
    for (; leaves > 1; leaves = dpr_tree_above(leaves, fan))
        levels++;
    return levels;
}

/* Nodes of all levels but the last, which is the number of partial results in memory before that of the root. */
static inline uint64_t dpr_tree_partials(const dpr_tree *tree) {
    uint64_t partials = 0;
    for (uint32_t width = tree->leaves; width > 1; width = dpr_tree_above(width, tree->fan))
        partials += width;
    return partials;
}

enum { DPR_TREE_LEAST_FAN = 2, DPR_TREE_MOST_LEAVES = 1 << 16 };

/* The tree of `vectors` vectors that takes the least time in addition to reading, among those with at most `max_depth`
 * (at least 1) levels above the leaves. Each of these levels costs `per_level` seconds, and each child of a node
 * `per_child` seconds. A leaf has `unit` vectors, or a multiple of that if there would be more than
 * DPR_TREE_MOST_LEAVES leaves. */
static inline dpr_tree dpr_tree_of(uint64_t vectors, uint64_t unit, uint32_t max_depth, double per_level,
                                   double per_child) {
    dpr_tree tree = {unit, 1, DPR_TREE_LEAST_FAN, 1};
    const uint64_t units = vectors / unit + (vectors % unit != 0);
    const uint64_t each = units / DPR_TREE_MOST_LEAVES + (units % DPR_TREE_MOST_LEAVES != 0);
    if (units < 2)
        return tree;
    tree.leaf = each * unit;
    tree.leaves = (uint32_t)(units / each + (units % each != 0));
    double least = 0;
    for (uint32_t fan = DPR_TREE_LEAST_FAN; fan <= DPR_TREE_MOST_LEAVES; fan *= 2) {
        const uint32_t levels = dpr_tree_levels(tree.leaves, fan);
        const double seconds = (levels - 1) * (per_level + per_child * (fan < tree.leaves ? fan : tree.leaves));
        if (levels - 1 > max_depth || (least > 0 && seconds >= least))
            continue;
        least = seconds;
        tree.fan = fan;
        tree.levels = levels;
    }
    return tree;
}

#endif
