/* dpr_peers_sort: what CUB takes to sort the keys of `dpr recurse mergesort`, and as many numbers as `dpr recurse
 * select` looks at, from call to end, in device memory. */
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct less {
    __device__ bool operator()(uint32_t a, uint32_t b) const { return a < b; }
};

void check(cudaError_t error) {
    if (error == cudaSuccess)
        return;
    std::fprintf(stderr, "dpr_peers_sort: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

/* Device memory, until the program ends. */
void *take(size_t bytes) {
    void *at;
    check(cudaMalloc(&at, bytes));
    return at;
}

/* The keys of examples/recursions/mergesort.cu. */
uint32_t key_of(uint64_t i) {
    uint64_t x = i + 1;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return static_cast<uint32_t>((x ^ x >> 33) >> 32);
}

/* Sorts to `out`, several times, and prints the median. Returns whether the keys are sorted. sort(memory, &bytes) is
 * one of CUB's functions. */
template <class Sort> bool measure(const char *name, const uint32_t *out, size_t n, Sort sort) {
    constexpr int rounds = 25;
    size_t bytes = 0;
    check(sort(nullptr, &bytes));
    void *memory = take(bytes);
    std::vector<double> ms;
    for (int i = 0; i < rounds; ++i) {
        const auto began = std::chrono::steady_clock::now();
        check(sort(memory, &bytes));
        check(cudaDeviceSynchronize());
        ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
    }
    std::sort(ms.begin(), ms.end());
    std::vector<uint32_t> sorted(n);
    check(cudaMemcpy(sorted.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost));
    const bool right = std::is_sorted(sorted.begin(), sorted.end());
    std::printf("%-16s %8.3f ms%s\n", name, ms[rounds / 2], right ? "" : ", and the keys are not sorted");
    return right;
}

/* Returns whether all is sorted. */
bool measure_both(size_t n) {
    std::vector<uint32_t> keys(n);
    for (size_t i = 0; i < n; ++i)
        keys[i] = key_of(i);
    auto *in = static_cast<uint32_t *>(take(n * sizeof *keys.data()));
    auto *out = static_cast<uint32_t *>(take(n * sizeof *keys.data()));
    check(cudaMemcpy(in, keys.data(), n * sizeof *in, cudaMemcpyHostToDevice));
    std::printf("%zu keys of 32 bits, CUB %d.%d.%d\n", n, CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION);
    const bool by_radix = measure("radix sort", out, n, [=](void *memory, size_t *bytes) {
        return cub::DeviceRadixSort::SortKeys(memory, *bytes, in, out, n);
    });
    const bool by_merging = measure("merge sort", out, n, [=](void *memory, size_t *bytes) {
        return cub::DeviceMergeSort::SortKeysCopy(memory, *bytes, in, out, n, less());
    });
    return by_radix && by_merging;
}

} // namespace

int main() {
    constexpr size_t of_mergesort = 1 << 26, of_select = 1 << 28;
    const bool right = measure_both(of_mergesort);
    return measure_both(of_select) && right ? 0 : 1;
}
