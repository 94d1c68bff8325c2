/* Filters an array (compaction): keeps the elements that satisfy a condition, next to each other in the output.
 *
 * Every thread that keeps an element needs a place for it that no other thread has. atomicAdd(count, 1) gives one: it
 * returns the value that count had before, and no two calls return the same. Afterwards, count is the number of
 * elements kept. The price is one atomic per element kept, all on one word. With aggregation by warp, the threads of a
 * warp that keep an element ask together: one of them adds their number, and passes the old value to the others, which
 * take the places after it in the order of their lanes.
 *
 *   per element             one atomicAdd per element kept, as written; the compiler may combine those of a warp itself
 *   per element, separate   the same, in a way that hides from the compiler that all the atomics are on one word
 *   per warp, ballot        one atomic per warp, by warp functions: ballot, rank in the ballot, shuffle
 *   per warp, group         one atomic per warp, by the group of the threads that took the branch
 *
 * How to read the output: there is one table for each share of elements kept. "in order" says whether the last output
 * had the order of the input, if anything was kept. None of these kernels promises it, because a place depends on which
 * warp came first. "ratio" is the time / that of the fastest kernel. The array is twice as large as the L2 cache, so
 * that a run cannot find in the cache everything that the run before has read.
 */
#include "example.cuh"

#include <cooperative_groups.h>

namespace {

namespace cg = cooperative_groups;

constexpr unsigned threads_per_block = 256;
constexpr unsigned all_lanes = 0xffffffff;
constexpr unsigned nothing = 0xffffffff; /* what the output holds where nothing was written; never kept */

/* The condition. A larger limit keeps more. */
__device__ bool is_kept(unsigned x, unsigned limit) {
    return x < limit;
}

__device__ unsigned first_element() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ unsigned elements_per_step() {
    return gridDim.x * blockDim.x;
}

struct problem {
    const unsigned *x;
    unsigned n;
    unsigned limit;
    unsigned *out;
    unsigned *count;
    unsigned spread; /* 0, which only the host knows */
};

__global__ void per_element(problem p) {
    for (unsigned i = first_element(); i < p.n; i += elements_per_step()) {
        const unsigned x = p.x[i];
        if (is_kept(x, p.limit))
            p.out[atomicAdd(p.count, 1)] = x;
    }
}

/* The address is the same for all threads, as `spread` is 0. The compiler does not know, and has to leave each thread
 * its own atomic. */
__global__ void per_element_separate(problem p) {
    for (unsigned i = first_element(); i < p.n; i += elements_per_step()) {
        const unsigned x = p.x[i];
        if (is_kept(x, p.limit))
            p.out[atomicAdd(p.count + (threadIdx.x & p.spread), 1)] = x;
    }
}

/* All the lanes of a warp have to take part in a ballot with a full mask, also those past the end: hence a loop over
 * the first element of the warp, which is the same for all its lanes. */
__global__ void per_warp_ballot(problem p) {
    const unsigned lane = threadIdx.x % warpSize;
    for (unsigned warp_first = first_element() - lane; warp_first < p.n; warp_first += elements_per_step()) {
        const unsigned i = warp_first + lane;
        const unsigned x = i < p.n ? p.x[i] : 0;
        const bool kept = i < p.n && is_kept(x, p.limit);
        const unsigned keepers = __ballot_sync(all_lanes, kept); /* one bit for each lane */
        if (keepers == 0)
            continue;
        const unsigned leader = __ffs(keepers) - 1;
        unsigned base = 0;
        if (lane == leader)
            base = atomicAdd(p.count, __popc(keepers));
        base = __shfl_sync(all_lanes, base, leader);
        const unsigned lanes_before = (1u << lane) - 1;
        if (kept)
            p.out[base + __popc(keepers & lanes_before)] = x;
    }
}

/* The same steps in the words of cooperative groups. A coalesced group is the threads of a warp that are active at this
 * line together; they may be fewer than took the branch, which costs an atomic more but changes nothing else. */
__global__ void per_warp_group(problem p) {
    for (unsigned i = first_element(); i < p.n; i += elements_per_step()) {
        const unsigned x = p.x[i];
        if (!is_kept(x, p.limit))
            continue;
        const cg::coalesced_group keepers = cg::coalesced_threads();
        unsigned base = 0;
        if (keepers.thread_rank() == 0)
            base = atomicAdd(p.count, keepers.size());
        p.out[keepers.shfl(base, 0) + keepers.thread_rank()] = x;
    }
}

struct form {
    const char *name;
    void (*kernel)(problem p);
    double us;
    bool in_order;
};

/* Different values in no order: each step can be undone, so no two indices give the same. */
unsigned scramble(unsigned i) {
    i = scatter(i);
    i ^= i >> 16;
    i = scatter(i);
    return i ^ i >> 16;
}

/* The index whose value is x: the same steps undone, the last one first. */
unsigned unscramble(unsigned x) {
    const unsigned inverse = 244002641; /* of the factor in scatter(), modulo 2^32 */
    x ^= x >> 16;
    x *= inverse;
    x ^= x >> 16;
    return x * inverse;
}

/* Whether `out` begins with the `kept` elements that satisfy the condition, each once, and holds nothing else. */
bool is_right(const problem &p, const std::vector<unsigned> &out, unsigned kept) {
    std::vector<bool> seen(p.n);
    for (unsigned k = 0; k < kept; ++k) {
        const unsigned i = unscramble(out[k]);
        if (out[k] >= p.limit || i >= p.n || seen[i])
            return false;
        seen[i] = true;
    }
    return std::all_of(out.begin() + kept, out.end(), [](unsigned x) { return x == nothing; });
}

/* Runs the form `runs` times and once more on an output that holds nothing, and checks the last result. Every run has a
 * count of its own, so that none has to be reset. */
void run(form &f, int runs, unsigned blocks, problem p, unsigned kept) {
    unsigned *counts;
    TRY(cudaMalloc(&counts, (runs + 1) * sizeof *counts));
    TRY(cudaMemset(counts, 0, (runs + 1) * sizeof *counts));
    TRY(cudaMemset(p.out, 0xff, p.n * sizeof *p.out)); /* `nothing`, byte by byte */
    p.count = counts;
    const auto launch = [&] {
        f.kernel<<<blocks, threads_per_block>>>(p);
        ++p.count;
    };
    if (runs > 0) {
        f.us = example_median_us(runs, launch);
    } else {
        launch();
        TRY(cudaGetLastError());
    }

    std::vector<unsigned> all_counts(runs + 1), out(p.n);
    TRY(cudaMemcpy(all_counts.data(), counts, all_counts.size() * sizeof counts[0], cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(out.data(), p.out, out.size() * sizeof out[0], cudaMemcpyDeviceToHost));
    TRY(cudaFree(counts));
    const auto is_kept_count = [kept](unsigned count) { return count == kept; };
    expect(std::all_of(all_counts.begin(), all_counts.end(), is_kept_count) && is_right(p, out, kept), f.name);
    const auto before = [](unsigned a, unsigned b) { return unscramble(a) < unscramble(b); };
    f.in_order = std::is_sorted(out.begin(), out.begin() + kept, before);
}

void print_table(const std::vector<form> &forms, unsigned kept, unsigned n, bool check) {
    const auto faster = [](const form &a, const form &b) { return a.us < b.us; };
    const double best = std::min_element(forms.begin(), forms.end(), faster)->us;
    char title[64];
    std::snprintf(title, sizeof title, "%u kept (%.1f %%)", kept, 100.0 * kept / n);
    std::printf("\n%-24s %8s%s\n", title, "in order", check ? "" : "   median us   ratio");
    for (const form &f : forms) {
        const char *in_order = f.in_order ? "yes" : "no";
        std::printf("%-24s %8s", f.name, kept == 0 ? "-" : in_order);
        if (!check)
            std::printf(" %11.1f %7.2f", f.us, f.us / best);
        std::puts("");
    }
}

} // namespace

int main(int argc, char **argv) {
    const bool check =
        example_is_check(argc, argv, "Shows how to keep some elements of an array by the index that atomicAdd gives.");
    const cudaDeviceProp device = example_device(7, 0);

    const unsigned in_cache = static_cast<unsigned>(device.l2CacheSize / sizeof(unsigned));
    const unsigned n = check ? 50021 : std::max(1u << 22, 2 * in_cache);
    const int runs = check ? 0 : 11;
    const unsigned blocks = check ? 16 : 8 * device.multiProcessorCount;
    std::vector<unsigned> host(n);
    for (unsigned i = 0; i < n; ++i)
        host[i] = scramble(i);
    unsigned *x, *out;
    TRY(cudaMalloc(&x, n * sizeof *x));
    TRY(cudaMalloc(&out, n * sizeof *out));
    TRY(cudaMemcpy(x, host.data(), n * sizeof *x, cudaMemcpyHostToDevice));
    std::printf("%s, %u elements, %u blocks of %u threads\n", device.name, n, blocks, threads_per_block);

    std::vector<form> forms = {
        {"per element", per_element, 0, false},
        {"per element, separate", per_element_separate, 0, false},
        {"per warp, ballot", per_warp_ballot, 0, false},
        {"per warp, group", per_warp_group, 0, false},
    };
    /* None, which leaves the time of the reading; then about two, 16 and 30 of the 32 elements of a warp. */
    for (unsigned sixteenths : {0u, 1u, 8u, 15u}) {
        const unsigned limit = sixteenths << 28;
        const auto below_limit = [limit](unsigned value) { return value < limit; };
        const unsigned kept = static_cast<unsigned>(std::count_if(host.begin(), host.end(), below_limit));
        for (form &f : forms)
            run(f, runs, blocks, problem{x, n, limit, out, nullptr, 0}, kept);
        print_table(forms, kept, n, check);
    }
    TRY(cudaFree(x));
    TRY(cudaFree(out));

    std::printf("\nAn element's place depends on which warp came first: the order is luck, the set is not.\n");
    if (!check) /* the last share: where aggregation has most to save */
        std::printf("With nearly all kept, separate atomics take %.2f times as long as one per warp (ballot); "
                    "plain atomicAdd takes %.2f times.\n",
                    forms[1].us / forms[2].us, forms[0].us / forms[2].us);
    return example_end();
}
