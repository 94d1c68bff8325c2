#include "cost.h"

#include "element.h"

double dpr_results_bytes(const dpr_key *key, dpr_size size) {
    return (double)size.segments * (double)dpr_pair_size(dpr_key_op(key), dpr_key_dtype(key));
}
