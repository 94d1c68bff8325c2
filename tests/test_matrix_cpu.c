/* Every CPU strategy of the library, over the matrix. */
#include <stdlib.h>
#include <string.h>

#include "dpr.h"
#include "matrix.h"
#include "shim/shim.h"

TEST_GENERATOR(matrix_cpu) {
    const char **strategies = calloc(dpr_strategy_count(), sizeof *strategies);
    size_t count = 0;
    for (size_t i = 0; strategies && i < dpr_strategy_count(); i++)
        if (strncmp(dpr_strategy_name(i), "cpu.", 4) == 0)
            strategies[count++] = dpr_strategy_name(i);
    matrix_add("Matrix", strategies, count, 0, NULL);
    free(strategies);
}
