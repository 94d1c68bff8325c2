/* cpu.simd: one thread, with the best instruction set that the processor has. */
#include "axes.h"
#include "cost.h"
#include "ops.h"
#include "segments.h"

/* Bytes of the array that several operations fold in turn: they fit the L2 cache of every core. */
enum { CHUNK_BYTES = 65536 };

static void fold_chunk(const dpr_run *run, size_t first, size_t count, dpr_acc *accs) {
    for (int i = 0; i < run->fused->count; i++) {
        dpr_key key = run->key;
        key.f.op = run->fused->op[i];
        dpr_cpu_fold (&key)(run->in, first, count, &accs[i]);
    }
}

void dpr_accs_fold(const dpr_run *run, size_t first, size_t count, dpr_acc *accs) {
    const size_t chunk = CHUNK_BYTES / dpr_dtypes[run->key.f.dtype].size;
    if (!run->fused) {
        dpr_cpu_fold (&run->key)(run->in, first, count, accs);
        return;
    }
    for (size_t i = 0; i < count && !dpr_accs_are_decided(run, accs); i += chunk)
        fold_chunk(run, first + i, count - i < chunk ? count - i : chunk, accs);
}

/* Products of one-byte integers read 8 to 12 GB/s with AVX2 from the L1 cache of an EPYC 7003, whose cores read 14.7
 * GB/s from memory. All other pairs are faster than memory: the slowest, products of 16-bit floats and of C64, read 24
 * GB/s with AVX2 on a Xeon of 3 GHz. On a Xeon of 2.8 GHz with AVX-512, a SUM of F32 reads 9.1 GB/s from memory, VAR
 * 3.4, and the other operations with FUSED in ops.def 4.8 or more. Magnitudes of complex numbers are slower (1.8 for
 * C64). The rate of each further operation of several is assumed. */
double dpr_cpu_rate(const dpr_key *key, const dpr_cpu_caps *cpu) {
    const dpr_dtype_row *type = &dpr_dtypes[key->f.dtype];
    const int is_slow = dpr_key_op(key) == DPR_PROD && (type->kind & DPR_DOMAIN_BITS) && type->size == 1;
    const double of_fused = dpr_key_op(key) == DPR_VAR ? 0.37 : 0.5;
    const double factor = is_slow ? 0.6 : dpr_ops[key->f.op].fused_only ? of_fused : 1;
    const double rate = 1e6 * (double)cpu->core_mb_per_s * factor;
    const int further = __builtin_popcount(key->f.ops) - 1;
    return further > 0 ? rate / (1 + 0.5 * further) : rate;
}

/* 15 ns is the time of a call before the first element. VAR also merges its lanes with divisions at the end, which
 * takes 0.1 us on an EPYC 7003. Long segments merge theirs, too, which is not counted: one thread and several do the
 * same. */
static dpr_cost cost(const dpr_key *key, const dpr_caps *caps, dpr_size size) {
    const double latency = dpr_cpu_ops(key) >> DPR_ROW(DPR_VAR) & 1 ? 115e-9 : 15e-9;
    return (dpr_cost){.latency = latency + dpr_cpu_segment_seconds(key, size),
                      .bytes = dpr_array_bytes(key, size),
                      .rate = dpr_cpu_rate(key, &caps->cpu)};
}

static int launch(const dpr_run *run) {
    if (run->axes)
        return dpr_cpu_axes(run, dpr_cpu_fold_many(&run->key), dpr_cpu_fold(&run->key), 1);
    if (run->segments) {
        const dpr_segment_limits limits = {dpr_cpu_fold_many(&run->key), dpr_cpu_fold(&run->key), DPR_SHORT_SEGMENT,
                                           SIZE_MAX};
        (void)dpr_cpu_segments(run, 0, run->segments->count, limits);
        return 0;
    }
    dpr_acc accs[DPR_FUSED_MOST];
    dpr_accs_start(run, accs);
    dpr_accs_fold(run, 0, run->count, accs);
    dpr_accs_finish(run, accs);
    return 0;
}

const dpr_strategy dpr_cpu_simd = {
    .name = "cpu.simd",
    .text = "vector instructions, one thread",
    .side = DPR_ON_CPU,
    .role = DPR_ROLE_CANDIDATE,
    .fuses = 1,
    .segmented = 1,
    .strided = 1,
    .cost = cost,
    .limits = dpr_cpu_one_thread,
    .launch = launch,
};
