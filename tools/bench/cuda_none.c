/* A build without CUDA has no device but the CPU, and launches nothing. */
#include "backend.h"

const bench_backend bench_cuda = {.open = NULL};
