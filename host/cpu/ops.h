/* Reductions on the CPU in pieces, for callers that divide an array into ranges. Each range is folded into accumulators
 * of its own, one for each operation of the run. They are merged in the order of the ranges, and the last ones are
 * finished.
 *
 *     dpr_acc whole[DPR_FUSED_MOST], part[DPR_FUSED_MOST];
 *     dpr_accs_start(run, whole);
 *     for each range in order {
 *         dpr_accs_start(run, part);
 *         dpr_accs_fold(run, first, count, part);
 *         dpr_accs_merge(run, whole, part);
 *     }
 *     dpr_accs_finish(run, whole);
 *
 * The ranges may be folded on different threads. */
#ifndef DPR_HOST_CPU_OPS_H
#define DPR_HOST_CPU_OPS_H

#include "acc.h"
#include "strategy.h"

/* Folds in[first .. first+count-1] into *acc. `in` is aligned for the type; `count` may be 0. */
typedef void (*dpr_fold)(const void *in, size_t first, size_t count, dpr_acc *acc);

/* Elements of a segment of dpr_many_segments, at most. */
enum { DPR_MANY_LONGEST = 64 };

/* Short segments of an array. Segment i has lengths[i] elements from number begins[i] on. */
typedef struct dpr_many_segments {
    const unsigned char *in, *in_end; /* memory from `in` to `in_end` may be read, also where it is of no segment;
                                         segments may lie behind it */
    const uint64_t *begins, *lengths;
    size_t count;
    unsigned char *out;    /* results, one behind the other. Indices count from the segment's first element */
    unsigned char *unsure; /* of NORM2 and VAR: one for each segment, set to 1 if another loop must find its result */
    const dpr_init *init;
} dpr_many_segments;

/* Rows of elements, the columns of which are reduced: element k of row i is number offsets[i] + k of `in`. Rows may
 * come in several calls, and accumulators stay in `space` from one to the next. */
typedef struct dpr_many_columns {
    const unsigned char *in;
    const int64_t *offsets;
    size_t rows, columns; /* columns: at least a vector of elements */
    size_t first;         /* index of the first row; with the others it fits 31 bits */
    size_t folded;        /* rows so far, with these; for MEAN */
    int begins, ends;     /* 1: these are the first rows; the last rows */
    unsigned char *space; /* 16 bytes for each column, and two vectors */
    unsigned char *out;   /* results of all columns, one behind the other; may be `space` */
    dpr_acc *accs;        /* NULL, or accumulators of all columns, which take the elements instead of `out` */
    const dpr_init *init;
} dpr_many_columns;

/* What a pair has loops for. */
enum { DPR_MANY_SEGMENTS = 1, DPR_MANY_COLUMNS = 2 };

/* Folds segments and columns, either of which may be NULL, and leaves alone what the pair has no loops for. Returns the
 * set of DPR_MANY_* that it has; 0 if there are none. */
typedef int (*dpr_fold_many)(const dpr_many_segments *segments, const dpr_many_columns *columns);

/* The folds of one instruction set, by dpr_nan, dpr_op, dpr_dtype. */
typedef struct dpr_cpu_many {
    dpr_fold_many fold[2][DPR_OP_COUNT][DPR_DTYPE_COUNT];
} dpr_cpu_many;
typedef struct dpr_cpu_kernels {
    const char *name;
    int vector_bytes;
    const dpr_cpu_many *many;
    dpr_fold fold[2][DPR_OP_COUNT][DPR_DTYPE_COUNT];
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
extern const dpr_cpu_many dpr_cpu_many_baseline, dpr_cpu_many_avx2;

/* The kernels of the instruction set with this name; NULL as a name stands for the best one. NULL if there is no such
 * set, or if this processor or its operating system does not support it. */
const dpr_cpu_kernels *dpr_cpu_kernels_find(const char *name);

/* The kernels of the best instruction set that this processor and its operating system support. The environment
 * variable DPR_CPU_ISA, read once, chooses another supported set by its name; other values mean nothing. */
const dpr_cpu_kernels *dpr_cpu_kernels_best(void);

/* The fold for a key, from the best kernels. */
dpr_fold dpr_cpu_fold(const dpr_key *key);

/* The loops over many results for a key, from the same kernels; NULL if there are none. MINMAX has those of MIN: it is
 * found as two runs (dpr_run_extreme()). */
dpr_fold_many dpr_cpu_fold_many(const dpr_key *key);

/* The number of the run's operations. */
static inline int dpr_run_ops(const dpr_run *run) {
    return run->fused ? run->fused->count : 1;
}

/* The run of MIN (i is 0) or MAX (1) that finds those results of a run of MINMAX. Its first one is at `out`. */
dpr_run dpr_run_extreme(const dpr_run *run, int i);

/* Copies n results of `size` bytes, at most 16, to places that are `step` results apart. */
void dpr_results_spread(unsigned char *to, int64_t step, const unsigned char *from, size_t n, size_t size);

/* The run of operation i alone. */
dpr_run dpr_run_alone(const dpr_run *run, int i);

/* Makes accs[i] the accumulator of no elements for operation i of the run. */
void dpr_accs_start(const dpr_run *run, dpr_acc *accs);

/* Whether more elements would not change the accumulators: those of ALL and ANY after an element that decides. */
int dpr_accs_are_decided(const dpr_run *run, const dpr_acc *accs);

/* Folds elements first .. first+count-1 of the run's array into accs. If there are several operations, they take turns
 * at chunks that stay in the cache. Ends when the accumulators are decided. */
void dpr_accs_fold(const dpr_run *run, size_t first, size_t count, dpr_acc *accs);

/* accs become the accumulators of their own elements followed by those of `later`. */
void dpr_accs_merge(const dpr_run *run, dpr_acc *accs, const dpr_acc *later);

/* Combines accs with the run's initial value and writes the results; if the run has a label, writes the partial result.
 */
void dpr_accs_finish(const dpr_run *run, dpr_acc *accs);

/* Writes the partial result of `count` elements of a run that has a label. An index counts from the run's first
 * element. */
void dpr_acc_finish_partial(const dpr_run *run, uint64_t count, dpr_acc *acc, void *out);

/* The operations of a key: bit i is row i of dpr_ops. */
static inline uint32_t dpr_cpu_ops(const dpr_key *key) {
    return key->f.ops | UINT32_C(1) << key->f.op;
}

/* Bytes a second that one core reads from memory and reduces: the core's bandwidth for most pairs, less if arithmetic
 * is the limit. For cost functions. */
double dpr_cpu_rate(const dpr_key *key, const dpr_cpu_caps *cpu);

/* dpr_strategy.limits of strategies that run on the calling thread alone. */
dpr_launch_limits dpr_cpu_one_thread(const dpr_key *key, const dpr_caps *caps, dpr_residency resident);

#endif
