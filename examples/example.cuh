/* Code that the CUDA examples share: exit codes, errors, options, parts left out, test data and timing. */
#ifndef DPR_EXAMPLE_CUH
#define DPR_EXAMPLE_CUH

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

/* 77 is what automake and CTest take for "skipped". */
enum { EXAMPLE_OK = 0, EXAMPLE_WRONG = 1, EXAMPLE_USAGE = 2, EXAMPLE_SKIPPED = 77 };

/* Ends the program with a sentence if a call of the CUDA runtime fails. */
#define TRY(call) example_try((call), #call, __FILE__, __LINE__)

inline void example_try(cudaError_t error, const char *call, const char *file, int line) {
    if (error == cudaSuccess)
        return;
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
        std::fputs("this program was built for another GPU: configure with CMAKE_CUDA_ARCHITECTURES set to the compute "
                   "capability of this one\n",
                   stderr);
    std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    std::exit(EXAMPLE_WRONG);
}

/* What example_end() makes the exit code of. */
inline bool example_checks = false;   /* run with --check */
inline int example_wrong_results = 0; /* noted by expect() */
inline int example_left_out = 0;      /* noted by leave_out() */

/* Takes note of a result that should be. Returns whether it is. */
inline bool expect(bool right, const char *what) {
    if (!right) {
        ++example_wrong_results;
        std::fprintf(stderr, "wrong: %s\n", what);
    }
    return right;
}

/* Says and takes note that a part of the example cannot run here. */
inline void leave_out(const char *what, const char *why) {
    ++example_left_out;
    std::printf("%s is left out: %s\n", what, why);
}

/* The last line, and the exit code. To a test, a part left out makes the whole a skipped one: it has not passed. */
inline int example_end() {
    if (example_wrong_results != 0) {
        std::puts("there were wrong results");
        return EXAMPLE_WRONG;
    }
    std::puts(example_left_out == 0 ? "every result is as expected" : "every result of what could run is as expected");
    return example_checks && example_left_out != 0 ? EXAMPLE_SKIPPED : EXAMPLE_OK;
}

/* Whether the command line is "--check": small sizes and no timing, for tests. No argument gives false; anything else
 * prints `what` the example shows, and ends the program. */
inline bool example_is_check(int argc, char **argv, const char *what) {
    example_checks = argc == 2 && std::strcmp(argv[1], "--check") == 0;
    if (argc == 1 || example_checks)
        return example_checks;
    const bool help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
    std::fprintf(help ? stdout : stderr, "usage: %s [--check]\n%s\n--check: small sizes and no timing\n", argv[0],
                 what);
    std::exit(help ? EXAMPLE_OK : EXAMPLE_USAGE);
}

/* The first GPU, which becomes the current one. Ends the program as skipped, with the reason, if there is none or if
 * its compute capability is less than major.minor. */
inline cudaDeviceProp example_device(int major, int minor) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || (error == cudaSuccess && count == 0)) {
        std::printf("skipped: no GPU (%s)\n", error != cudaSuccess ? cudaGetErrorString(error) : "none is visible");
        std::exit(EXAMPLE_SKIPPED);
    }
    TRY(error);
    cudaDeviceProp device;
    TRY(cudaSetDevice(0));
    TRY(cudaGetDeviceProperties(&device, 0));
    if (device.major < major || (device.major == major && device.minor < minor)) {
        std::printf("skipped: %s has compute capability %d.%d, and this needs %d.%d\n", device.name, device.major,
                    device.minor, major, minor);
        std::exit(EXAMPLE_SKIPPED);
    }
    return device;
}

/* Test data without a pattern: the product with 2^32 over the golden ratio, of which the upper bits are the best mixed
 * (Knuth's multiplicative hashing). Different indices give different values, as the factor is odd. */
__host__ __device__ inline unsigned scatter(size_t i) {
    return static_cast<unsigned>(i) * 2654435761u;
}

/* The same as numbers of at most three digits, from -500 to 523. */
__host__ __device__ inline int small_number(size_t i) {
    return static_cast<int>(scatter(i) >> 12 & 1023) - 500;
}

/* The sum over the threads of a full warp, in its first lane. */
template <class T> __device__ T warp_sum(T sum) {
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    return sum;
}

/* Median microseconds of `runs` runs of run(), which enqueues work in the default stream; one more warms up. */
template <class Run> double example_median_us(int runs, Run run) {
    cudaEvent_t start, stop;
    TRY(cudaEventCreate(&start));
    TRY(cudaEventCreate(&stop));
    std::vector<float> ms;
    for (int i = -1; i < runs; ++i) {
        float time = 0;
        TRY(cudaEventRecord(start));
        run();
        TRY(cudaGetLastError());
        TRY(cudaEventRecord(stop));
        TRY(cudaEventSynchronize(stop));
        TRY(cudaEventElapsedTime(&time, start, stop));
        if (i >= 0)
            ms.push_back(time);
    }
    TRY(cudaEventDestroy(start));
    TRY(cudaEventDestroy(stop));
    std::nth_element(ms.begin(), ms.begin() + ms.size() / 2, ms.end());
    return 1e3 * ms[ms.size() / 2];
}

#endif
