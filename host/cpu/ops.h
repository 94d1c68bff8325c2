/* Reductions on the CPU in pieces, for callers that divide an array into ranges. Each range is folded into an
 * accumulator of its own, the accumulators are merged in the order of the ranges, and the last one is finished.
 *
 *     dpr_acc whole, part;
 *     dpr_acc_start(&key, &whole);
 *     for each range in order {
 *         dpr_acc_start(&key, &part);
 *         fold(in, first, count, &part);
 *         dpr_acc_merge(&key, &whole, &part);
 *     }
 *     dpr_acc_finish(run, &whole);
 *
 * Only op, dtype and nan of the key matter. The ranges may be folded by different kernels, on different threads. */
#ifndef DPR_HOST_CPU_OPS_H
#define DPR_HOST_CPU_OPS_H

#include "acc.h"
#include "strategy.h"

/* Folds in[first .. first+count-1] into *acc. `in` is aligned for the type; `count` may be 0. */
typedef void (*dpr_fold)(const void *in, size_t first, size_t count, dpr_acc *acc);

/* The folds of one instruction set. */
typedef struct dpr_cpu_kernels {
    const char *name;
    int vector_bytes;
    dpr_fold fold[2][DPR_OP_COUNT][DPR_DTYPE_COUNT]; /* by dpr_nan, dpr_op, dpr_dtype */
} dpr_cpu_kernels;

/* Instruction sets that have a file, best first.   X(A, NAME, supported)   `supported` is an expression. The baseline
 * is the instruction set that the compiler assumes for every machine of the architecture. */
#if defined(__x86_64__)
#define DPR_CPU_KERNELS_LIST(X, A)                                                                                     \
    X(A, avx512,                                                                                                       \
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")    \
          && __builtin_cpu_supports("avx512vl"))                                                                       \
    X(A, avx2, __builtin_cpu_supports("avx2") && has_f16c())                                                           \
    X(A, baseline, 1)
#else
#define DPR_CPU_KERNELS_LIST(X, A) X(A, baseline, 1)
#endif

#define DPR_CPU_KERNELS_DECLARE(A, NAME, supported) extern const dpr_cpu_kernels dpr_cpu_kernels_##NAME;
DPR_CPU_KERNELS_LIST(DPR_CPU_KERNELS_DECLARE, _)
#undef DPR_CPU_KERNELS_DECLARE

/* The kernels of the best instruction set that this processor and its operating system support. The environment
 * variable DPR_CPU_ISA, read once, chooses another supported set by its name; other values mean nothing. */
const dpr_cpu_kernels *dpr_cpu_kernels_best(void);

/* The fold for a key, from the best kernels. */
dpr_fold dpr_cpu_fold(const dpr_key *key);

/* Makes *acc the accumulator of no elements. */
void dpr_acc_start(const dpr_key *key, dpr_acc *acc);

/* *acc becomes the accumulator of its own elements followed by those of *later. */
void dpr_acc_merge(const dpr_key *key, dpr_acc *acc, const dpr_acc *later);

/* Combines *acc with the run's initial value and writes the result to run->out; if the run has a label, writes the
 * partial result. */
void dpr_acc_finish(const dpr_run *run, dpr_acc *acc);

/* Writes the partial result of a run that has a label. */
void dpr_acc_finish_partial(const dpr_run *run, dpr_acc *acc);

/* Bytes a second that one core reads from memory and reduces: the core's bandwidth for most pairs, less if arithmetic
 * is the limit. For cost functions. */
double dpr_cpu_rate(const dpr_key *key, const dpr_cpu_caps *cpu);

/* dpr_strategy.limits of strategies that run on the calling thread alone. */
dpr_launch_limits dpr_cpu_one_thread(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);

#endif
