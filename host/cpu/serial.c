/* cpu.serial, the reference: reduces one element after another with the algebra of acc.h. */
#include "cost.h"
#include "ops.h"
#include "pairs.h"
#include "segments.h"

DPR_INLINE void reduce(dpr_op op, dpr_dtype dtype, dpr_nan nan, const dpr_run *run) {
    const unsigned char *in = run->in;
    dpr_acc acc = dpr_acc_neutral(op, dtype);
    for (size_t i = 0; i < run->count; i++)
        dpr_acc_add(op, dtype, nan, &acc, dpr_element_load(dtype, in + i * dpr_element_size(dtype)), i);
    if (run->label) {
        dpr_acc_finish_partial(run, &acc);
        return;
    }
    dpr_acc_add_init(op, dtype, nan, &acc, &run->init);
    dpr_acc_write(op, dtype, &acc, &run->init, run->out);
}

#define DPR_PAIR_DEFINE(OP, DTYPE, NAN)                                                                                \
    static void DPR_PAIR_NAME(OP, DTYPE, NAN)(const dpr_run *run) {                                                    \
        if (DPR_PAIR_IS_VALID(OP, DTYPE))                                                                              \
            reduce(DPR_##OP, DPR_##DTYPE, DPR_NAN_##NAN, run);                                                         \
    }
DPR_PAIRS

static void (*const reduce_pair[2][DPR_OP_COUNT][DPR_DTYPE_COUNT])(const dpr_run *run) = DPR_PAIRS_TABLE;

/* A call through a table, and for each part of each element one pass of a loop with a dependent addition or comparison.
 * A sum of 16 elements takes 25 ns on an EPYC 7003 and on a Xeon of 3 GHz, and one of 16 complex elements 46 ns. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const dpr_dtype_row *type = &dpr_dtypes[key->f.dtype];
    const int parts = type->kind == DPR_KIND_COMPLEX ? 2 : 1;
    (void)caps;
    return (dpr_cost){.latency = 5e-9 + dpr_cpu_segment_seconds(key, size),
                      .bytes = dpr_array_bytes(key, size),
                      .rate = type->size / (1.5e-9 * parts)};
}

static int launch(const dpr_run *run) {
    if (run->segments) {
        (void)dpr_cpu_segments(run, 0, run->segments->count, (dpr_segment_limits){NULL, NULL, SIZE_MAX, SIZE_MAX});
        return 0;
    }
    for (int i = 0; i < dpr_run_ops(run); i++) {
        const dpr_run one = dpr_run_alone(run, i);
        reduce_pair[one.key.f.nan][one.key.f.op][one.key.f.dtype](&one);
    }
    return 0;
}

const dpr_strategy dpr_cpu_serial = {
    .name = "cpu.serial",
    .text = "one element after another: the reference",
    .side = DPR_ON_CPU,
    .role = DPR_ROLE_CANDIDATE,
    .fuses = 1,
    .segmented = 1,
    .cost = cost,
    .limits = dpr_cpu_one_thread,
    .launch = launch,
};
