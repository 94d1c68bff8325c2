/* The algebra of acc.h for run-time keys. */
#include "ops.h"

#include "partial.h"

void dpr_acc_start(const dpr_key *key, dpr_acc *acc) {
    *acc = dpr_acc_neutral(dpr_key_op(key), dpr_key_dtype(key));
}

void dpr_acc_merge(const dpr_key *key, dpr_acc *acc, const dpr_acc *later) {
    dpr_acc_combine(dpr_key_op(key), dpr_key_dtype(key), acc, later);
}

void dpr_acc_finish(const dpr_run *run, dpr_acc *acc) {
    const dpr_op op = dpr_key_op(&run->key);
    const dpr_dtype dtype = dpr_key_dtype(&run->key);
    if (run->label) {
        dpr_acc_finish_partial(run, acc);
        return;
    }
    dpr_acc_add_init(op, dtype, (dpr_nan)run->key.f.nan, acc, &run->init);
    dpr_acc_write(op, dtype, acc, run->out);
}

void dpr_acc_finish_partial(const dpr_run *run, dpr_acc *acc) {
    const int is_index = dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX;
    if (is_index && acc->index >= 0)
        acc->index += (int64_t)run->first_index;
    dpr_partial_store(run->label, run->count, acc, run->out);
}

dpr_launch_limits dpr_cpu_one_thread(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)key;
    (void)caps;
    (void)resident;
    return (dpr_launch_limits){.threads = 1, .max_blocks = 1};
}
