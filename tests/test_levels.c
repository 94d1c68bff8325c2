/* The arithmetic of nested forms, by its properties over many sizes. */
#include "levels.h"
#include "support.h"

static uint64_t state = 0x9e3779b97f4a7c15u;

/* As many small numbers as large ones, below 2^bits. */
static uint64_t random_number(unsigned bits) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> (64 - 1 - state % bits);
}

/* ---- Halving ---- */

TEST(Forms, halving_pairs_every_word) {
    for (uint32_t words = 1; words <= 5000; words++) {
        const uint32_t s = dpr_halved(words);
        EXPECT_TRUE(s >= 1 && 2 * s >= words && 2 * (s - 1) < words);
        /* Word i + s is added to word i: each word past s is added to one before it. */
        EXPECT_TRUE(words - s <= s);
    }
}

TEST(Forms, halvings_are_the_logarithm) {
    for (uint32_t words = 1; words <= 5000; words++) {
        uint32_t left = words, times = 0;
        for (; left > 1; left = dpr_halved(left))
            times++;
        EXPECT_EQ_U64(times, dpr_halvings(words));
    }
    EXPECT_EQ_U64(0, dpr_halvings(0));
    EXPECT_EQ_U64(0, dpr_halvings(1));
    for (uint32_t log = 0; log < 31; log++) {
        EXPECT_EQ_U64(log, dpr_halvings(1u << log));
        EXPECT_EQ_U64(log + 1, dpr_halvings((1u << log) + 1));
    }
}

TEST(Forms, tiles_together_have_a_place_for_each_pair) {
    for (uint32_t words = 2; words <= 5000; words++)
        for (uint32_t places = 32; places <= 1024; places *= 2) {
            const uint32_t tiles = dpr_tiles_together(words, places), of_tile = 1u << (dpr_halvings(words) - 1);
            EXPECT_TRUE(of_tile >= words - dpr_halved(words));
            EXPECT_TRUE(tiles >= 1 && (tiles + 1) * of_tile > places);
            EXPECT_TRUE(tiles == 1 || tiles * of_tile <= places);
        }
}

TEST(Forms, tiles_past_the_filled_ones_have_no_elements) {
    for (int i = 0; i < 20000; i++) {
        const uint32_t block = 32u << i % 6, tiles = 1 + (uint32_t)random_number(12);
        const uint64_t count = random_number(20);
        const uint32_t filled = dpr_tiles_filled(count, block, tiles);
        EXPECT_TRUE(filled >= 1 && filled <= tiles);
        EXPECT_TRUE(filled == tiles || (uint64_t)filled * block >= count);
        EXPECT_TRUE(filled == 1 || (uint64_t)(filled - 1) * block < count);
        /* All filled tiles but the last are full. */
        EXPECT_TRUE(filled == 1 || dpr_words_of_tile(count, block, filled - 2) == block);
    }
}

TEST(Forms, tiles_have_all_elements) {
    for (int i = 0; i < 2000; i++) {
        const uint32_t block = 32u << i % 6;
        const uint64_t count = random_number(20), tiles = count / block + 2;
        uint64_t words = 0;
        for (uint64_t tile = 0; tile < tiles; tile++) {
            const uint32_t here = dpr_words_of_tile(count, block, tile);
            EXPECT_TRUE(here >= 1 && here <= block);
            words += tile * block < count ? here : 0;
        }
        EXPECT_EQ_U64(count, words);
    }
}

/* ---- The tree ---- */

/* Each level has a node for every `fan` nodes below, and the last has one. */
static void check_levels(const dpr_tree *tree) {
    uint32_t width = tree->leaves, levels = 1;
    uint64_t partials = 0;
    while (width > 1 && levels < 100) {
        const uint32_t above = dpr_tree_above(width, tree->fan);
        EXPECT_TRUE(above < width && (uint64_t)above * tree->fan >= width && (uint64_t)(above - 1) * tree->fan < width);
        partials += width;
        width = above;
        levels++;
    }
    EXPECT_EQ_U64(tree->levels, levels);
    EXPECT_EQ_U64(partials, dpr_tree_partials(tree));
}

TEST(Forms, trees_have_all_vectors_and_fit_the_depth) {
    for (int i = 0; i < 20000; i++) {
        const uint64_t vectors = random_number(50), unit = 1 + random_number(14);
        const uint32_t depth = 1 + (uint32_t)random_number(5) % 24;
        const double per_level = 1e-6 * (double)(1 + random_number(6)), per_child = 1e-10 * (double)random_number(8);
        const dpr_tree tree = dpr_tree_of(vectors, unit, depth, per_level, per_child);
        EXPECT_TRUE(tree.leaves >= 1 && tree.leaves <= DPR_TREE_MOST_LEAVES && tree.leaf % unit == 0);
        EXPECT_TRUE(tree.leaf * tree.leaves >= vectors
                    && (tree.leaves == 1 || tree.leaf * (tree.leaves - 1) < vectors));
        EXPECT_TRUE(tree.fan >= 2 && tree.levels - 1 <= depth);
        EXPECT_TRUE((tree.levels == 1) == (tree.leaves == 1));
        check_levels(&tree);
    }
}

TEST(Forms, deeper_trees_are_for_cheaper_launches) {
    const uint64_t vectors = 1 << 20, unit = 256; /* 4096 leaves */
    /* A launch that costs nothing leaves only what children cost: ever fewer of them a node. */
    const dpr_tree deep = dpr_tree_of(vectors, unit, 24, 0, 1e-9), flat = dpr_tree_of(vectors, unit, 24, 1, 1e-9);
    EXPECT_EQ_U64(4096, deep.leaves);
    EXPECT_EQ_U64(2, flat.levels);
    EXPECT_TRUE(deep.levels > flat.levels);
    /* The limit of depth takes precedence over cost. */
    EXPECT_EQ_U64(2, dpr_tree_of(vectors, unit, 1, 0, 1e-9).levels);
    EXPECT_EQ_U64(3, dpr_tree_of(vectors, unit, 2, 0, 1e-9).levels);
}
