/* cpu.serial, the reference: reduces one element after another with the algebra of acc.h. */
#include <math.h>

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
        dpr_acc_finish_partial(run, run->count, &acc, run->out);
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

/* Seconds for an element of an operation (a row of dpr_ops). An EPYC 7003 takes, for elements in its cache: 0.4 to 1.4
 * ns for most pairs; 2.2 to 2.8 for sums of F64; 1.6 to 5 for 16-bit floats, which it converts; and 18 to 34 for VAR,
 * which divides. For elements in memory it takes up to 2.7 ns for most pairs, and 4 to 5.5 for 16-bit floats. Complex
 * elements have two parts, each of which takes that. */
static double element_seconds(size_t op, const dpr_dtype_row *type) {
    const int is_complex = type->kind == DPR_KIND_COMPLEX, is_real = is_complex || type->kind == DPR_KIND_FLOAT;
    const size_t part = is_complex ? type->size / 2 : type->size;
    const double seconds = op == DPR_ROW(DPR_VAR) ? 20e-9
                           : is_real && part == 2 ? 4e-9
                           : is_real && part == 8 ? 2e-9
                                                  : 1.5e-9;
    return is_complex ? 2 * seconds : seconds;
}

/* Several operations take one pass each. cpu.simd is predicted to be faster on long arrays, however slow memory is. */
static double rate_of(const dpr_key *key, const dpr_cpu_caps *cpu) {
    const dpr_dtype_row *type = &dpr_dtypes[key->f.dtype];
    double seconds = 0;
    for (uint32_t left = dpr_cpu_ops(key); left != 0; left &= left - 1)
        seconds += element_seconds((size_t)__builtin_ctz(left), type);
    return fmin(type->size / seconds, 0.9 * dpr_cpu_rate(key, cpu));
}

/* 5 ns is the time of a call through a table. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    return (dpr_cost){.latency = 5e-9 + dpr_cpu_segment_seconds(key, size),
                      .bytes = dpr_array_bytes(key, size),
                      .rate = rate_of(key, &caps->cpu)};
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
