/* Divergence: the cost of a branch when the threads of one warp go both ways.
 *
 * The threads of a warp share their instructions. If some of them take one side of a branch and some the other, the
 * warp runs both sides, one after the other, each with a part of its threads. If all of them go the same way, it runs
 * that side alone. So the time of the same work depends on which threads do which part:
 *
 *   all A, all B  all threads take the same side: no divergence. Ratios are to the mean of these two kernels' times
 *   by warp       even warps take side A and odd ones side B: half of the work is A and half B, and no warp is split
 *   by thread     even threads take side A and odd ones side B: again half and half, and every warp is split
 *
 * Each of these has three kinds of body:
 *
 *   short, once      a few instructions for each element, between a load and a store
 *   short, repeated  the same in a loop in which the threads take turns at the sides
 *   loops            a loop in each side
 *
 * For a short body, a compiler need not branch: either every thread computes both sides and selects a result, or the
 * instructions carry a predicate that says for which threads they count. All threads then pay for both sides, so it
 * does not matter which thread takes which side. With a loop in each side, that would not pay. To see what the compiler
 * made of each, use
 *
 *   cuobjdump -sass build/<preset>/examples/divergence
 *
 * and look at the functions with short_once, short_repeated and loops in their names; E3 after "who" means by thread.
 * SEL selects, instructions that begin with @P or @!P are predicated, and if a warp may be split, BSSY and BSYNC around
 * the branch say where its threads meet again. */
#include "example.cuh"

namespace {

enum who { all_a, all_b, by_warp, by_thread, whos };

enum { block_threads = 256, warp_threads = 32, period = 1024, runs = 11 };

/* The two sides: equally long, but of different instructions, or the compiler could make one of both. */
__host__ __device__ unsigned side_a(unsigned x) {
    return (x | 1u) * 1664525u + 1013904223u;
}

__host__ __device__ unsigned side_b(unsigned x) {
    return (x ^ 0x9e3779b9u) * 22695477u + 1u;
}

/* Whether thread i takes side A in this round. */
template <who W> __host__ __device__ bool takes_a(unsigned i, unsigned round) {
    if (W == by_warp)
        return (i / warp_threads + round) % 2 == 0;
    return W == by_thread ? (i + round) % 2 == 0 : W == all_a;
}

struct short_once {
    static const char *name() { return "short, once"; }
    template <who W> static __host__ __device__ unsigned of(unsigned x, unsigned i, unsigned) {
        if (takes_a<W>(i, 0))
            x = side_a(x);
        else
            x = side_b(x);
        return x;
    }
};

struct short_repeated {
    static const char *name() { return "short, repeated"; }
    template <who W> static __host__ __device__ unsigned of(unsigned x, unsigned i, unsigned rounds) {
        for (unsigned round = 0; round < rounds; ++round) {
            if (takes_a<W>(i, round))
                x = side_a(x);
            else
                x = side_b(x);
        }
        return x;
    }
};

struct loops {
    static const char *name() { return "loops"; }
    template <who W> static __host__ __device__ unsigned of(unsigned x, unsigned i, unsigned rounds) {
        if (takes_a<W>(i, 0))
            for (unsigned round = 0; round < rounds; ++round)
                x = side_a(x);
        else
            for (unsigned round = 0; round < rounds; ++round)
                x = side_b(x);
        return x;
    }
};

template <class Body, who W> __global__ void branch(const unsigned *x, unsigned *y, unsigned rounds) {
    const unsigned i = blockIdx.x * block_threads + threadIdx.x;
    y[i] = Body::template of<W>(x[i], i, rounds);
}

struct arrays {
    std::vector<unsigned> x, y;
    unsigned *device_x, *device_y, rounds;
    bool check;
};

/* Runs a kernel, checks what it wrote, and returns its median time, or 0 with --check. */
template <class Body, who W> double run(arrays &a) {
    const size_t n = a.x.size();
    const auto launch = [&] {
        branch<Body, W><<<static_cast<unsigned>(n / block_threads), block_threads>>>(a.device_x, a.device_y, a.rounds);
    };
    TRY(cudaMemset(a.device_y, 0, n * sizeof(unsigned)));
    launch();
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(a.y.data(), a.device_y, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned expected[period]; /* x and the sides taken repeat after so many elements */
    for (unsigned i = 0; i < period; ++i)
        expected[i] = Body::template of<W>(a.x[i], i, a.rounds);
    bool right = true;
    for (size_t i = 0; i < n; ++i)
        right = right && a.y[i] == expected[i % period];
    expect(right, Body::name());
    return a.check ? 0 : example_median_us(runs, launch);
}

struct ratios {
    double by_warp, by_thread;
};

template <class Body> ratios compare(arrays &a) {
    const int wrong = example_wrong_results;
    const double us[whos] = {run<Body, all_a>(a), run<Body, all_b>(a), run<Body, by_warp>(a), run<Body, by_thread>(a)};
    if (a.check) {
        std::printf("%-16s %s\n", Body::name(), example_wrong_results == wrong ? "right" : "WRONG");
        return {};
    }
    const double mean = (us[all_a] + us[all_b]) / 2;
    const ratios r = {us[by_warp] / mean, us[by_thread] / mean};
    std::printf("%-16s %10.1f %10.1f %10.1f %6.2f %10.1f %6.2f\n", Body::name(), us[all_a], us[all_b], us[by_warp],
                r.by_warp, us[by_thread], r.by_thread);
    return r;
}

/* What the ratios say on this device. */
void conclude(const ratios &repeated, const ratios &loop) {
    const double split_short = repeated.by_thread / repeated.by_warp, split_long = loop.by_thread / loop.by_warp;
    std::printf(
        "\nBy thread took %.2f times as long as by warp with a loop in each side, and %.2f times with short sides "
        "in a loop:\n",
        split_long, split_short);
    if (split_long < 1.2)
        std::puts("here it hardly matters which threads take which side.");
    else if (split_short < 1.2)
        std::puts("let whole warps go the same way where the sides are long; a short branch may follow the data.");
    else
        std::puts("let whole warps go the same way, even where the sides are short.");
    if (repeated.by_warp > 1.2)
        std::printf(
            "No branch is free, though: short sides took %.2f times as long as one of them alone even by warp, for "
            "the choice\nis work too, and without a branch every thread works on both sides.\n",
            repeated.by_warp);
}

} // namespace

int main(int argc, char **argv) {
    arrays a = {};
    a.check = example_is_check(argc, argv, "Divergence: branches that split warps, and branches that do not.");
    const cudaDeviceProp device = example_device(7, 0);
    const size_t n = a.check ? 1 << 13 : 1 << 22, bytes = n * sizeof(unsigned);
    a.rounds = a.check ? 8 : 256;
    a.x.resize(n);
    a.y.resize(n);
    for (size_t i = 0; i < n; ++i)
        a.x[i] = scatter(i % period);
    TRY(cudaMalloc(&a.device_x, bytes));
    TRY(cudaMalloc(&a.device_y, bytes));
    TRY(cudaMemcpy(a.device_x, a.x.data(), bytes, cudaMemcpyHostToDevice));

    std::printf("%s, %zu elements, %u rounds in each loop\n\n", device.name, n, a.rounds);
    if (!a.check)
        std::printf("%-16s %10s %10s %10s %6s %10s %6s\n", "body", "all A us", "all B us", "by warp us", "ratio",
                    "thread us", "ratio");
    compare<short_once>(a);
    const ratios repeated = compare<short_repeated>(a), loop = compare<loops>(a);
    if (!a.check)
        conclude(repeated, loop);
    TRY(cudaFree(a.device_x));
    TRY(cudaFree(a.device_y));
    return example_end();
}
