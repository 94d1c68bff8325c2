/* A small profiler, which a test loads through NVTX_INJECTION64_PATH instead of Nsight Systems. It prints the ranges
 * that the library opens and closes. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static int depth;

static nvtxDomainHandle_t NVTX_API create(const char *name) {
    static char domain;
    printf("domain %s\n", name);
    return (nvtxDomainHandle_t)(void *)&domain;
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
    (void)domain;
    printf("range %d %s\n", depth, event->message.ascii);
    return depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
    (void)domain;
    printf("end of range %d\n", --depth);
    return depth;
}

/* What NVTX looks for. Returns 1 if the profiler is there. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)
        || size <= NVTX_CBID_CORE2_DomainRangePop)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
