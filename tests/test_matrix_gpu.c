/* The matrix for the GPU strategies of the registry, which are listed, and skip, in builds without CUDA too. */
#include <string.h>

#include "matrix.h"
#include "plan/strategies.def"
#include "support.h"

/* The registry's identifiers as names: "flat_ticket" is "flat.ticket". */
#define NONE(ID)
#define QUOTE(ID) #ID,
static char names[][32] = {DPR_STRATEGY_LIST(NONE, QUOTE)};
#undef QUOTE
#undef NONE

static int begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Strategies that are there to be looked at take a few pairs. What runs sums also runs means that are divided sums. */
static int takes(const char *strategy, dpr_op op, dpr_dtype dtype) {
    const int of_words = dtype == DPR_I32 || dtype == DPR_I64 || dtype == DPR_U32 || dtype == DPR_U64,
              is_float = dtype == DPR_F32 || dtype == DPR_F64,
              of_types = dtype == DPR_I32 || dtype == DPR_I64 || is_float,
              is_mean = op == DPR_MEAN && (dtype <= DPR_U16 || dtype >= DPR_F16),
              is_usual = of_types && (op == DPR_SUM || op == DPR_MIN || op == DPR_MAX || is_mean),
              is_bitwise = op == DPR_BAND || op == DPR_BOR || op == DPR_BXOR;
    if (strcmp(strategy, "coop.tile") == 0)
        return is_usual || (is_bitwise && of_words);
    if (begins(strategy, "axes.") || begins(strategy, "segments.") || strcmp(strategy, "dp.segments") == 0)
        return 0; /* many results: test_gpu_axes.c, test_gpu_segments.c */
    if (begins(strategy, "atomic."))
        return is_usual && !(is_float && (op == DPR_SUM || is_mean));
    if (begins(strategy, "ladder.") || strcmp(strategy, "coop.async") == 0 || begins(strategy, "dp.recursive")
        || strcmp(strategy, "dp.nosync") == 0)
        return is_usual;
    if (is_mean && strcmp(strategy, "coop.cluster") == 0)
        return 0;
    return op < DPR_SUMSQ || is_mean || strcmp(strategy, "flat.fused") == 0; /* which alone runs the others */
}

TEST_GENERATOR(matrix_gpu) {
    const char *strategies[LENGTH(names)];
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *underscore = strchr(names[i], '_');
        if (underscore)
            *underscore = '.';
        strategies[i] = names[i];
    }
    matrix_add("GpuMatrix", strategies, LENGTH(names), 1, takes);
}
