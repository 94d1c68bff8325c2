/* The algebra of acc.h for run-time keys. */
#include "ops.h"

#include "acc.h"

static dpr_op op_of(const dpr_key *key) {
    return dpr_key_op(key);
}
static dpr_dtype dtype_of(const dpr_key *key) {
    return dpr_key_dtype(key);
}

void dpr_acc_start(const dpr_key *key, dpr_acc *acc) {
    *acc = dpr_acc_neutral(op_of(key), dtype_of(key));
}

void dpr_acc_merge(const dpr_key *key, dpr_acc *acc, const dpr_acc *later) {
    dpr_acc_combine(op_of(key), dtype_of(key), acc, later);
}

void dpr_acc_finish(const dpr_key *key, dpr_acc *acc, const dpr_init *init, void *out) {
    dpr_acc_add_init(op_of(key), dtype_of(key), (dpr_nan)key->f.nan, acc, init);
    dpr_acc_write(op_of(key), dtype_of(key), acc, out);
}

dpr_launch_limits dpr_cpu_one_thread(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)key;
    (void)caps;
    (void)resident;
    return (dpr_launch_limits){.threads = 1, .max_blocks = 1};
}
