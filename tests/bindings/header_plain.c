/* Compiles the plain header alone. It needs only the names of C's integer types before it. */
#include <stddef.h>
#include <stdint.h>

#include "dpr/plain.h"

size_t header_plain(void);

size_t header_plain(void) {
    const dpr_problem problem = {.size = sizeof problem, .op = DPR_SUM, .dtype = DPR_F32};
    return problem.size;
}
