/* The algebra of acc.h for run-time keys. */
#include "ops.h"

#include <string.h>

#include "partial.h"

static dpr_op op_of(const dpr_run *run, int i) {
    return (dpr_op)(DPR_FIRST_OP + (run->fused ? run->fused->op[i] : run->key.f.op));
}

dpr_run dpr_run_extreme(const dpr_run *run, int i) {
    const size_t size = dpr_dtypes[run->key.f.dtype].size;
    dpr_run one = *run;
    one.key.f.op = DPR_ROW(i == 0 ? DPR_MIN : DPR_MAX);
    one.key.f.ops = UINT32_C(1) << one.key.f.op;
    one.out = (unsigned char *)run->out + (size_t)i * size;
    memcpy(one.init.bytes, run->init.bytes + (size_t)i * size, size);
    return one;
}

DPR_INLINE void spread(unsigned char *to, int64_t step, const unsigned char *from, size_t n, size_t size) {
    for (size_t i = 0; i < n; i++)
        memcpy(to + (int64_t)i * step * (int64_t)size, from + i * size, size);
}

void dpr_results_spread(unsigned char *to, int64_t step, const unsigned char *from, size_t n, size_t size) {
    switch (size) { /* copies of known sizes take no calls */
    case 1:
        spread(to, step, from, n, 1);
        break;
    case 2:
        spread(to, step, from, n, 2);
        break;
    case 4:
        spread(to, step, from, n, 4);
        break;
    case 8:
        spread(to, step, from, n, 8);
        break;
    default:
        spread(to, step, from, n, size);
        break;
    }
}

dpr_run dpr_run_alone(const dpr_run *run, int i) {
    dpr_run one = *run;
    if (run->fused) {
        one.key.f.op = run->fused->op[i];
        one.out = run->fused->out[i];
        one.fused = NULL;
    }
    return one;
}

static int is_decided(dpr_op op, const dpr_acc *acc) {
    return (op == DPR_ALL && !(acc->bits & 1)) || (op == DPR_ANY && (acc->bits & 1));
}

int dpr_accs_are_decided(const dpr_run *run, const dpr_acc *accs) {
    int are_decided = 1;
    for (int i = 0; i < dpr_run_ops(run) && are_decided; i++)
        are_decided = is_decided(op_of(run, i), &accs[i]);
    return are_decided;
}

void dpr_accs_start(const dpr_run *run, dpr_acc *accs) {
    for (int i = 0; i < dpr_run_ops(run); i++)
        accs[i] = dpr_acc_neutral(op_of(run, i), dpr_key_dtype(&run->key));
}

void dpr_accs_merge(const dpr_run *run, dpr_acc *accs, const dpr_acc *later) {
    for (int i = 0; i < dpr_run_ops(run); i++)
        dpr_acc_combine(op_of(run, i), dpr_key_dtype(&run->key), &accs[i], &later[i]);
}

static void finish(const dpr_run *run, dpr_op op, dpr_acc *acc, void *out) {
    const dpr_dtype dtype = dpr_key_dtype(&run->key);
    dpr_acc_add_init(op, dtype, (dpr_nan)run->key.f.nan, acc, &run->init);
    dpr_acc_write(op, dtype, acc, &run->init, out);
}

void dpr_accs_finish(const dpr_run *run, dpr_acc *accs) {
    if (run->label)
        dpr_acc_finish_partial(run, run->count, accs, run->out);
    else
        for (int i = 0; i < dpr_run_ops(run); i++)
            finish(run, op_of(run, i), &accs[i], run->fused ? run->fused->out[i] : run->out);
}

void dpr_acc_finish_partial(const dpr_run *run, uint64_t count, dpr_acc *acc, void *out) {
    const int is_index = dpr_ops[run->key.f.op].result == DPR_RESULT_INDEX;
    if (is_index && acc->index >= 0)
        acc->index += (int64_t)run->first_index;
    dpr_partial_store(run->label, count, acc, out);
}

dpr_launch_limits dpr_cpu_one_thread(const dpr_key *key, const dpr_caps *caps, dpr_residency resident) {
    (void)key;
    (void)caps;
    (void)resident;
    return (dpr_launch_limits){.threads = 1, .max_blocks = 1};
}
