/* Modules as the fake driver has them: the functions that it is asked for. */
#ifndef DPR_TESTS_FAKE_MODULES_H
#define DPR_TESTS_FAKE_MODULES_H

#include <cuda.h>

CUresult CUDAAPI fake_library_load_data(CUlibrary *library, const void *code, CUjit_option *jit_options,
                                        void **jit_values, unsigned jit_count, CUlibraryOption *options, void **values,
                                        unsigned count);
CUresult CUDAAPI fake_library_get_kernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult CUDAAPI fake_library_get_global(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name);
CUresult CUDAAPI fake_kernel_get_function(CUfunction *function, CUkernel kernel);
CUresult CUDAAPI fake_func_get_attribute(int *value, CUfunction_attribute attribute, CUfunction function);

/* Whether the handle is one that a module gave out for a kernel. With the fake's lock held. */
int fake_module_gave(const void *kernel);

/* Device memory that modules take. With the fake's lock held. */
size_t fake_module_bytes(int device);

#endif
