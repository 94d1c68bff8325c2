/* The arithmetic of nested forms, which the host plans with and kernels compute with: pure functions of integers. */
#ifndef DPR_DP_FORMS_H
#define DPR_DP_FORMS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define DPR_BOTH_SIDES __host__ __device__
#else
#define DPR_BOTH_SIDES
#endif

/* ---- Halving: the book's forms ---- */

/* Words that are left of `words` after word i + s was added to word i wherever both are, s being the result. */
DPR_BOTH_SIDES static inline uint32_t dpr_halved(uint32_t words) {
    return words - words / 2;
}

/* Times that `words` must be halved until one is left: the logarithm to base 2, rounded up. */
DPR_BOTH_SIDES static inline uint32_t dpr_halvings(uint32_t words) {
    return words < 2 ? 0 : 32 - (uint32_t)__builtin_clz(words - 1);
}

/* Tiles of `words` words, at least 2, that a block halves together, with `places` places for pairs of words to add, a
 * power of two. Each tile has 2^(dpr_halvings(words) - 1) of them. */
DPR_BOTH_SIDES static inline uint32_t dpr_tiles_together(uint32_t words, uint32_t places) {
    const uint32_t tiles = places >> (dpr_halvings(words) - 1);
    return tiles > 0 ? tiles : 1;
}

/* Words that tile number `tile` of `tiles`, each of up to `block`, has of `count` elements: as many as there are, but
 * always one, which is then the identity. Where there are more elements than words, words have several each. */
DPR_BOTH_SIDES static inline uint32_t dpr_words_of_tile(uint64_t count, uint32_t block, uint64_t tile) {
    const uint64_t before = tile * block;
    const uint64_t left = count > before ? count - before : 1;
    return left < block ? (uint32_t)left : block;
}

/* Tiles, of `tiles`, that have elements; at least 1. */
DPR_BOTH_SIDES static inline uint32_t dpr_tiles_filled(uint64_t count, uint32_t block, uint32_t tiles) {
    const uint64_t filled = count / block + (count % block != 0);
    return filled == 0 ? 1 : filled < tiles ? (uint32_t)filled : tiles;
}

/* ---- The tree ---- */

/* Leaves are neighbouring vectors of the array; a node above has `fan` children, the last of its level perhaps fewer,
 * and the last level has one node. */
typedef struct dpr_tree {
    uint64_t leaf;   /* vectors of 16 bytes a leaf, at most */
    uint32_t leaves; /* at least 1 */
    uint32_t fan;    /* at least 2 */
    uint32_t levels; /* that of the leaves included */
} dpr_tree;

/* Nodes of the level above one of `width` nodes. */
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

/* Nodes of all levels but the last: partial results before that of the root. */
static inline uint64_t dpr_tree_partials(const dpr_tree *tree) {
    uint64_t partials = 0;
    for (uint32_t width = tree->leaves; width > 1; width = dpr_tree_above(width, tree->fan))
        partials += width;
    return partials;
}

enum { DPR_TREE_LEAST_FAN = 2, DPR_TREE_MOST_LEAVES = 1 << 16 };

/* The tree of `vectors` vectors that takes the least time beside reading, of those with at most `max_depth` levels
 * above the leaves (at least 1): `per_level` seconds for each of these, and `per_child` for each child of a node. A
 * leaf has a multiple of `unit` vectors, more than one where there were more than DPR_TREE_MOST_LEAVES of them else. */
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
