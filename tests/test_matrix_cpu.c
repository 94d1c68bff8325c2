/* Every CPU strategy of the library, over the matrix. */
#include <string.h>

#include "dpr.h"
#include "matrix.h"
#include "shim/shim.h"

TEST_GENERATOR(matrix_cpu) {
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (strncmp(dpr_strategy_name(i), "cpu.", 4) == 0)
            matrix_add("Matrix", dpr_strategy_name(i), 0);
}
