/* The matrix for the GPU strategies of the registry, which are listed, and skip, in builds without CUDA too. */
#include <string.h>

#include "../host/strategies.def"
#include "matrix.h"
#include "support.h"

/* The registry's identifiers as names: "flat_ticket" is "flat.ticket". */
#define NONE(ID)
#define QUOTE(ID) #ID,
static char names[][32] = {DPR_STRATEGY_LIST(NONE, QUOTE)};
#undef QUOTE
#undef NONE

TEST_GENERATOR(matrix_gpu) {
    const char *strategies[LENGTH(names)];
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *underscore = strchr(names[i], '_');
        if (underscore)
            *underscore = '.';
        strategies[i] = names[i];
    }
    matrix_add("GpuMatrix", strategies, LENGTH(names), 1);
}
