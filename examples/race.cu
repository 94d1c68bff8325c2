/* Many threads add to one variable: a race that loses updates, and three repairs.
 *
 * `s[0] += x` looks like one step but is three: read s[0], add x, write s[0]. When two threads read the same old value,
 * both write their own sum, and the second write erases the first: an update is lost. The program shows the total that
 * such a kernel reaches, then three kernels that are right, and what each costs:
 *
 *   per element  one atomicAdd for each element, which does the three steps as one
 *   per thread   each thread first adds its elements in a register, then makes one atomicAdd
 *   per block    the threads add their sums in shared memory, and one thread of each block adds the block's sum in
 *                global memory, both by cuda::atomic_ref, whose scope says which threads take part
 *
 * If all threads of a warp add to one word, the compiler may change this: the warp adds first, and one of its threads
 * makes the atomic for all. Each repair has two forms: as written, so that this may happen, and "separate", which hides
 * from the compiler that there is only one word, so that each thread makes its own atomic.
 *
 * How to read the output: "lowest" and "highest" are the smallest and the largest total of several runs. All terms are
 * positive, so a lost update makes a total too small. "ratio" is the time / that of the fastest right kernel.
 */
#include "example.cuh"

#include <cuda/atomic>

namespace {

constexpr unsigned threads_per_block = 256;

__device__ size_t first_element() {
    return size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

__device__ size_t elements_per_step() {
    return size_t{gridDim.x} * blockDim.x;
}

/* The data race, on purpose. The language gives a race no meaning; what the hardware does with it is lose updates.
 * volatile makes the compiler read and write memory at each step, as the line says: the losses are not its doing. */
__global__ void add_without_atomics(const unsigned *x, size_t n, unsigned *s, unsigned) {
    volatile unsigned *total = s;
    for (size_t i = first_element(); i < n; i += elements_per_step())
        total[0] += x[i];
}

/* The first word, for every thread alike: `spread` is 0. But only the host knows, so that with Separate the compiler
 * has to expect that the threads of a warp want different words. */
template <bool Separate> __device__ unsigned *word(unsigned *first, unsigned spread) {
    return Separate ? first + (threadIdx.x & spread) : first;
}

template <bool Separate> __global__ void per_element(const unsigned *x, size_t n, unsigned *s, unsigned spread) {
    for (size_t i = first_element(); i < n; i += elements_per_step())
        atomicAdd(word<Separate>(s, spread), x[i]);
}

/* A register belongs to one thread, so adding there needs no atomic. */
__device__ unsigned sum_of_thread(const unsigned *x, size_t n) {
    unsigned sum = 0;
    for (size_t i = first_element(); i < n; i += elements_per_step())
        sum += x[i];
    return sum;
}

template <bool Separate> __global__ void per_thread(const unsigned *x, size_t n, unsigned *s, unsigned spread) {
    atomicAdd(word<Separate>(s, spread), sum_of_thread(x, n));
}

/* A scope is a promise about who else uses the word at the same time. Block scope is enough for the block's total,
 * which no other block can reach. For s[0] it would be wrong: blocks on other multiprocessors add to it too, hence
 * device scope.
 *
 * The memory order is relaxed: an add has to be indivisible, but it does not announce other data. What orders the adds
 * before the read of the block's total is the barrier. The default order is the strictest and costs fences. */
template <bool Separate> __global__ void per_block(const unsigned *x, size_t n, unsigned *s, unsigned spread) {
    using block_atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
    using device_atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
    __shared__ unsigned of_block[32]; /* only the first is used; of an array of one, any index would be known to be 0 */
    if (threadIdx.x == 0)
        of_block[0] = 0;
    __syncthreads();
    block_atomic(*word<Separate>(of_block, spread)).fetch_add(sum_of_thread(x, n), cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x == 0)
        device_atomic(s[0]).fetch_add(of_block[0], cuda::memory_order_relaxed);
}

struct form {
    const char *name;
    void (*kernel)(const unsigned *x, size_t n, unsigned *s, unsigned spread);
    unsigned lowest, highest; /* total */
    double us;
};

/* Runs the form `runs` times and once more, each time on a word of its own, so that every total can be looked at. */
void run(form &f, bool check, int runs, unsigned blocks, const unsigned *x, size_t n) {
    unsigned *totals;
    TRY(cudaMalloc(&totals, (runs + 1) * sizeof *totals));
    TRY(cudaMemset(totals, 0, (runs + 1) * sizeof *totals));
    int launches = 0;
    const auto launch = [&] { f.kernel<<<blocks, threads_per_block>>>(x, n, totals + launches++, 0); };
    if (check) {
        for (int i = 0; i < runs + 1; ++i)
            launch();
        TRY(cudaGetLastError());
    } else {
        f.us = example_median_us(runs, launch);
    }

    std::vector<unsigned> all(runs + 1);
    TRY(cudaMemcpy(all.data(), totals, all.size() * sizeof all[0], cudaMemcpyDeviceToHost));
    TRY(cudaFree(totals));
    f.lowest = *std::min_element(all.begin(), all.end());
    f.highest = *std::max_element(all.begin(), all.end());
}

void print(const form &f, double best_us) {
    std::printf("%-24s %11u %11u", f.name, f.lowest, f.highest);
    if (best_us > 0)
        std::printf(" %11.1f %7.2f", f.us, f.us / best_us);
    std::printf("\n");
}

} // namespace

int main(int argc, char **argv) {
    const bool check =
        example_is_check(argc, argv, "Shows how adding without atomics loses updates, and what three repairs cost.");
    const cudaDeviceProp device = example_device(7, 0);

    /* With --check, the size is no multiple of anything, so that a wrong bound would show. */
    const size_t n = check ? 100003 : size_t{1} << 26;
    const int runs = check ? 2 : 11;
    const unsigned blocks = check ? 16 : 8 * device.multiProcessorCount;
    std::vector<unsigned> host(n);
    unsigned wanted = 0; /* terms of 1 to 8: at most 2^29 */
    for (size_t i = 0; i < n; ++i) {
        host[i] = 1 + (scatter(i) >> 29);
        wanted += host[i];
    }
    unsigned *x;
    TRY(cudaMalloc(&x, n * sizeof *x));
    TRY(cudaMemcpy(x, host.data(), n * sizeof *x, cudaMemcpyHostToDevice));
    std::printf("%s, %zu elements, %u blocks of %u threads, %d runs\nthe sum is %u\n\n", device.name, n, blocks,
                threads_per_block, runs + 1, wanted);

    form race = {"s[0] += x, a race", add_without_atomics, 0, 0, 0};
    run(race, check, runs, blocks, x, n);
    /* The threads of a warp write to the word at once, and one of the values stays. What is written is a sum of
     * different terms. */
    expect(race.lowest < wanted, "the race loses updates");
    expect(race.lowest >= 1 && race.highest <= wanted, "the race keeps some of the terms, each at most once");

    form repairs[] = {
        {"per element", per_element<false>, 0, 0, 0}, {"per element, separate", per_element<true>, 0, 0, 0},
        {"per thread", per_thread<false>, 0, 0, 0},   {"per thread, separate", per_thread<true>, 0, 0, 0},
        {"per block", per_block<false>, 0, 0, 0},     {"per block, separate", per_block<true>, 0, 0, 0},
    };
    for (form &f : repairs) {
        run(f, check, runs, blocks, x, n);
        expect(f.lowest == wanted && f.highest == wanted, f.name);
    }
    TRY(cudaFree(x));

    const auto faster = [](const form &a, const form &b) { return a.us < b.us; };
    const form &best = *std::min_element(std::begin(repairs), std::end(repairs), faster);
    const form &worst = *std::max_element(std::begin(repairs), std::end(repairs), faster);
    std::printf("%-24s %11s %11s%s\n", "", "lowest", "highest", check ? "" : "   median us   ratio");
    print(race, best.us);
    for (const form &f : repairs)
        print(f, best.us);

    if (race.lowest < wanted)
        std::printf("\nWithout atomics updates were lost: between %.4f %% and %.4f %% of the sum was kept.\n",
                    100.0 * race.lowest / wanted, 100.0 * race.highest / wanted);
    else
        std::printf("\nWithout atomics, no update was lost here.\n");
    if (!check)
        std::printf("Of the repairs, \"%s\" is the fastest here, and \"%s\" takes %.2f times as long.\n", best.name,
                    worst.name, worst.us / best.us);
    return example_end();
}
