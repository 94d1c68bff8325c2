/* dp.recursive, dp.nosync and dp.recursive2, on the host. */
#include <stdio.h>

#include "means.h"
#include "nested_host.h"

/* Words of a tile: the block size that the caller asks for, or that of the literature (core/README.md). */
enum { LITERATURE_BLOCK = 512 };

/* Most words that recurse. In longer arrays each word has several elements. */
enum { MOST_WORDS = 1 << 24 };

typedef enum { RECURSIVE, NOSYNC, RECURSIVE2, FOLD_TILES, KERNELS } book_kernel;

#define NAME(FORM, OP, DTYPE, NAN) "dpr_" #FORM "_" #OP "_" #DTYPE "_" #NAN
#define NAMES_OF_INTEGER(FORM, OP, DTYPE) [DPR_ROW(DPR_##DTYPE)] = {NAME(FORM, OP, DTYPE, 0), NAME(FORM, OP, DTYPE, 0)}
#define NAMES_OF_FLOAT(FORM, OP, DTYPE) [DPR_ROW(DPR_##DTYPE)] = {NAME(FORM, OP, DTYPE, 0), NAME(FORM, OP, DTYPE, 1)}
#define NAMES_OF_OP(FORM, OP)                                                                                          \
    [DPR_ROW(DPR_##OP)] = {NAMES_OF_INTEGER(FORM, OP, I32), NAMES_OF_INTEGER(FORM, OP, I64),                           \
                           NAMES_OF_FLOAT(FORM, OP, F32), NAMES_OF_FLOAT(FORM, OP, F64)}
#define NAMES_OF_FORM(FORM)                                                                                            \
    { NAMES_OF_OP(FORM, SUM), NAMES_OF_OP(FORM, MIN), NAMES_OF_OP(FORM, MAX) }

/* The kernel's name; NULL for pairs without a kernel. */
static const char *entry(book_kernel kernel, const dpr_key *key) {
    static const char *const names[KERNELS][DPR_OP_COUNT][DPR_DTYPE_COUNT][2] = {
        [RECURSIVE] = NAMES_OF_FORM(recursive),
        [NOSYNC] = NAMES_OF_FORM(nosync),
        [RECURSIVE2] = NAMES_OF_FORM(recursive2),
        [FOLD_TILES] = NAMES_OF_FORM(fold_tiles),
    };
    return names[kernel][dpr_kernel_row(key)][key->f.dtype][key->f.nan];
}

static int block_of(const dpr_key *key) {
    return key->f.block ? 1 << key->f.block : LITERATURE_BLOCK;
}

/* Threads a block of the first kernel. dp.recursive2 has, as in the literature, a thread for each pair of words to add,
 * in whole warps. */
static int threads_of(book_kernel which, int block) {
    return which == RECURSIVE2 && block > 32 ? block / 2 : block;
}

static uint32_t tiles_of(size_t count, int block) {
    const size_t words = count < MOST_WORDS ? count : MOST_WORDS;
    return words == 0 ? 1 : (uint32_t)((words + (size_t)block - 1) / (size_t)block);
}

static const char *probe(const dpr_key *key, const dpr_caps *caps) {
    if (!entry(RECURSIVE, key))
        return "it is there to show sums, minima and maxima of i32, i64, f32 and f64";
    if (caps->gpu.max_threads_per_block < block_of(key))
        return "its blocks have too many threads";
    return dpr_nested_probe(key, &caps->gpu);
}

static dpr_kernel kernel_of(book_kernel which, const dpr_key *key) {
    return (dpr_kernel){.entry = entry(which, key),
                        .threads = threads_of(which, block_of(key)),
                        .min_blocks = 1,
                        .module = &dpr_dp_module};
}

static dpr_launch_limits shape_of(book_kernel which, const dpr_key *key, const dpr_caps *caps) {
    const int block = block_of(key);
    return dpr_nested_limits(key, caps, threads_of(which, block), MOST_WORDS / block, dpr_level_seconds(&caps->gpu));
}

/* In addition to the report, half as many words as the tiles have, and the words for returned values. */
static size_t workspace_bytes(const dpr_run *run) {
    const size_t block = (size_t)block_of(&run->key), tiles = tiles_of(run->count, block_of(&run->key));
    return DPR_REPORT_BYTES + tiles * (block / 2 + DPR_RECURSIVE_DEPTHS) * DPR_RECURSIVE_BYTES;
}

/* Launches the first kernel and a second one, of one block, which starts after everything that the first has launched,
 * and folds the tiles' results. */
static int launch_form(book_kernel form, const dpr_run *run) {
    const int block = block_of(&run->key);
    dpr_launch launch = {.entry = entry(form, &run->key),
                         .module = &dpr_dp_module,
                         .blocks = tiles_of(run->count, block),
                         .threads = (unsigned)run->limits.threads};
    dpr_nested_args args = dpr_nested_args_of(&launch, run);
    args.tiles = launch.blocks;
    args.block = (uint32_t)block;
    const int error = run->enqueue(run, &launch, &args.run);
    if (error)
        return error;
    launch.entry = entry(FOLD_TILES, &run->key);
    launch.blocks = 1;
    launch.threads = 1024;
    args.words = form == RECURSIVE;
    return run->enqueue(run, &launch, &args.run);
}

/* Describes the levels of launches that a whole tile takes, and how many of them are done in line. */
static void describe_levels(const dpr_run *run, const char *launches, char *text, size_t size) {
    const uint32_t block = (uint32_t)block_of(&run->key), tiles = tiles_of(run->count, block_of(&run->key));
    const uint32_t words = dpr_words_of_tile(run->count, block, 0), halvings = dpr_halvings(words);
    const uint32_t wanted = halvings > 1 ? halvings - 1 : 0, most = (uint32_t)run->limits.max_depth;
    const uint32_t launched = wanted < most ? wanted : most;
    snprintf(text, size, "%u tile%s of up to %u words, %u level%s of launches, %s; %u further halvings in line", tiles,
             tiles == 1 ? "" : "s", words, launched, launched == 1 ? "" : "s", launches, wanted - launched);
}

/* Launches below each other: one for each halving but the first, as far as the limit of depth allows. */
static double depth_of(const dpr_key *key, const dpr_caps *caps) {
    const int limit = key->f.depth ? key->f.depth : (int)caps->gpu.nesting_depth;
    const int depth = (int)dpr_halvings((uint32_t)block_of(key)) - 1;
    return depth < limit ? depth : limit;
}

/* The cost with nested launches that take so many seconds. */
static dpr_cost cost_with(const dpr_key *key, const dpr_caps *caps, dpr_size size, double launches) {
    return (dpr_cost){.latency = 2 * DPR_LAUNCH_SECONDS + dpr_first_nested_seconds(&caps->gpu) + launches,
                      .bytes = dpr_array_bytes(key, size),
                      .rate = 0.5 * dpr_memory_rate(&caps->gpu)};
}

/* A run makes at most as many launches for its tiles as the pool has places. The launches of one tile follow one
 * another. In dp.recursive as many continuations follow them. These take 2 us each on an H200, because they were
 * launched long before. Tiles for which no launch is left are done in line, 17 ns each on the H200's 132 SMs. */
static double seconds_of_tiles(const dpr_key *key, const dpr_caps *caps, dpr_size size, double each) {
    const double depth = depth_of(key, caps), tiles = tiles_of(size.elements, block_of(key));
    const double wanted = each * depth * tiles, most = (double)caps->gpu.pending_launches;
    const double made = wanted < most ? wanted : most, in_line = depth > 0 ? tiles - made / (each * depth) : tiles;
    const double chain = depth * (dpr_level_seconds(&caps->gpu) + (each - 1) * 2e-6);
    return chain + made * dpr_fan_seconds(&caps->gpu) + in_line * 2.2e-6 / (double)caps->gpu.sm_count;
}

/* ---- The three forms ---- */

static dpr_cost cost_recursive(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return cost_with(key, caps, size, seconds_of_tiles(key, caps, size, 2));
}

static dpr_kernel kernel_recursive(const dpr_key *key) {
    return kernel_of(RECURSIVE, key);
}

static dpr_launch_limits shape_recursive(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)resident;
    return shape_of(RECURSIVE, key, caps);
}

static int launch_recursive(const dpr_run *run) {
    return launch_form(RECURSIVE, run);
}

static void describe_recursive(const dpr_run *run, char *text, size_t size) {
    describe_levels(run, "two for each tile", text, size);
}

const dpr_strategy dpr_dp_recursive = {
    .name = "dp.recursive",
    .text = "each block halves, launches one for the rest, and one to go on after it",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_NESTED,
    .takes_block = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost_recursive,
    .kernel = kernel_recursive,
    .limits = shape_recursive,
    .launch = launch_recursive,
    .workspace_bytes = workspace_bytes,
    .describe = describe_recursive,
};

static dpr_cost cost_nosync(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return cost_with(key, caps, size, seconds_of_tiles(key, caps, size, 1));
}

static dpr_kernel kernel_nosync(const dpr_key *key) {
    return kernel_of(NOSYNC, key);
}

static dpr_launch_limits shape_nosync(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)resident;
    return shape_of(NOSYNC, key, caps);
}

static int launch_nosync(const dpr_run *run) {
    return launch_form(NOSYNC, run);
}

static void describe_nosync(const dpr_run *run, char *text, size_t size) {
    describe_levels(run, "one for each tile", text, size);
}

const dpr_strategy dpr_dp_nosync = {
    .name = "dp.nosync",
    .text = "each block halves and launches one for the rest: nobody waits",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_NESTED,
    .takes_block = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost_nosync,
    .kernel = kernel_nosync,
    .limits = shape_nosync,
    .launch = launch_nosync,
    .workspace_bytes = workspace_bytes,
    .describe = describe_nosync,
};

/* The first kernel has a block for each tile, however little it does. A block takes 5 ns on an H200. Levels have fewer
 * blocks. */
static dpr_cost cost_recursive2(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double levels = depth_of(key, caps) * dpr_level_seconds(&caps->gpu);
    return cost_with(key, caps, size, levels + 5e-9 * tiles_of(size.elements, block_of(key)));
}

static dpr_kernel kernel_recursive2(const dpr_key *key) {
    return kernel_of(RECURSIVE2, key);
}

static dpr_launch_limits shape_recursive2(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)resident;
    return shape_of(RECURSIVE2, key, caps);
}

static int launch_recursive2(const dpr_run *run) {
    return launch_form(RECURSIVE2, run);
}

static void describe_recursive2(const dpr_run *run, char *text, size_t size) {
    describe_levels(run, "one for all tiles", text, size);
}

const dpr_strategy dpr_dp_recursive2 = {
    .name = "dp.recursive2",
    .text = "all blocks halve; the last to be done launches the next grid, for all tiles",
    .side = DPR_ON_GPU,
    .role = DPR_ROLE_NESTED,
    .takes_block = 1,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .probe = probe,
    .cost = cost_recursive2,
    .kernel = kernel_recursive2,
    .limits = shape_recursive2,
    .launch = launch_recursive2,
    .workspace_bytes = workspace_bytes,
    .describe = describe_recursive2,
};
