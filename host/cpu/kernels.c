/* The loops of the best instruction set that the processor has. */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <string.h>

#include "environment.h"
#include "ops.h"

#if defined(__x86_64__)
/* Clang's __builtin_cpu_supports() does not know F16C. The operating system supports it if it supports AVX. */
static int has_f16c(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}
#endif

const dpr_cpu_kernels *dpr_cpu_kernels_find(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
#define DPR_TRY(A, NAME, supported)                                                                                    \
    if ((supported) && (!name || strcmp(name, #NAME) == 0))                                                            \
        return &dpr_cpu_kernels_##NAME;
    DPR_CPU_KERNELS_LIST(DPR_TRY, _)
#undef DPR_TRY
    return NULL;
}

static const dpr_cpu_kernels *choose(void) {
    const dpr_cpu_kernels *wanted = dpr_cpu_kernels_find(dpr_env_value(DPR_ENV_CPU_ISA));
    return wanted ? wanted : dpr_cpu_kernels_find(NULL);
}

const dpr_cpu_kernels *dpr_cpu_kernels_best(void) {
    static _Atomic(const dpr_cpu_kernels *) chosen;
    const dpr_cpu_kernels *kernels = atomic_load_explicit(&chosen, memory_order_acquire);
    if (!kernels) {
        kernels = choose(); /* threads that come here at once get the same result */
        atomic_store_explicit(&chosen, kernels, memory_order_release);
    }
    return kernels;
}

dpr_fold dpr_cpu_fold(const dpr_key *key) {
    return dpr_cpu_kernels_best()->fold[key->f.nan][key->f.op][key->f.dtype];
}

dpr_fold_many dpr_cpu_fold_many(const dpr_key *key) {
    const int op = key->f.op == DPR_ROW(DPR_MINMAX) ? DPR_ROW(DPR_MIN) : key->f.op;
    const dpr_fold_many fold = dpr_cpu_kernels_best()->many->fold[key->f.nan][op][key->f.dtype];
    return fold && fold(NULL, NULL) ? fold : NULL;
}
