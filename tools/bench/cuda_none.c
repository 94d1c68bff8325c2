/* A build without CUDA has no device but the CPU, so that nothing of this is called. */
#include "backend.h"

const bench_backend bench_cuda = {.open = NULL};
