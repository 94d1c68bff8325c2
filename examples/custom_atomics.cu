/* Atomics that the hardware does not have, made with compare-and-swap, from which any atomic can be made.
 *
 * atomicCAS(word, assumed, wanted) writes `wanted` if the word still holds `assumed`, and returns the value that it
 * held. So: read the word, compute the new value, swap it in if nobody was faster, otherwise try again with the value
 * that is there by then. This makes multiplication, addition of floats and the maximum of floats. If a native atomic
 * exists, it is the better choice: it does not try again. The program measures what that is worth:
 *
 *   multiply    no native atomic
 *   float add   atomicAdd
 *   float max   atomicMax takes no floats, but atomicMax and atomicMin can do it on the bits, taken as integers
 *
 * How to read the output: every update goes to one of `words` words. On one word all threads compete; on many words
 * they seldom do. "ns each" is the time of the kernel / the number of updates, and "ratio" the time of the loop / that
 * of the native form.
 */
#include "example.cuh"

#include <cmath>
#include <cuda/atomic>
#include <iterator>
#include <limits>

namespace {

constexpr unsigned threads_per_block = 256;
constexpr unsigned minus_infinity = 0xff800000; /* the bits of the float */

/* Replaces the word by change(word). A swap fails only where another thread's has succeeded, and the updates of all
 * threads are so many and no more: the loop ends. It compares bits, never floats: a NaN differs from itself, and would
 * try for ever.
 *
 * It does not matter if the word changed and changed back in between, as the new value depends on the old one only. */
template <class Change> __device__ void update(unsigned *word, Change change) {
    unsigned held = cuda::atomic_ref<unsigned, cuda::thread_scope_device>(*word).load(cuda::memory_order_relaxed);
    unsigned assumed;
    do {
        assumed = held;
        held = atomicCAS(word, assumed, change(assumed));
    } while (held != assumed);
}

/* Each operation is apply(word, bits of the operand) on a 32-bit word. */
struct multiply_loop {
    static __device__ void apply(unsigned *word, unsigned x) {
        update(word, [x](unsigned held) { return held * x; });
    }
};

struct float_add_loop {
    static __device__ void apply(unsigned *word, unsigned x) {
        update(word, [x](unsigned held) { return __float_as_uint(__uint_as_float(held) + __uint_as_float(x)); });
    }
};

/* In global memory, unlike the loop, it takes floats too small for a normal exponent (subnormal ones) for zero. */
struct float_add_native {
    static __device__ void apply(unsigned *word, unsigned x) {
        atomicAdd(reinterpret_cast<float *>(word), __uint_as_float(x));
    }
};

/* fmaxf of a number and a NaN is the number: a NaN is skipped. As the word begins at minus infinity and never becomes a
 * NaN, the maximum of nothing but NaNs is minus infinity.
 *
 * Most updates leave the maximum as it is, and a test before the swap could skip them. The swap is always made here, as
 * the native form always makes its atomic: the two are compared at the same work. */
struct float_max_loop {
    static __device__ void apply(unsigned *word, unsigned x) {
        update(word, [x](unsigned held) { return __float_as_uint(fmaxf(__uint_as_float(held), __uint_as_float(x))); });
    }
};

/* The bits of floats without the sign bit set are in the order of the floats when taken as signed integers, where all
 * floats with the sign bit are below them: a maximum. Those with the sign bit are in the reverse order when taken as
 * unsigned integers, where all floats without it are below them: a minimum. Both kinds may meet on one word. The sign
 * bit decides, not `x < 0`, which is false for -0. The bits of a NaN would beat every number, so it is skipped here. */
struct float_max_native {
    static __device__ void apply(unsigned *word, unsigned x) {
        if (isnan(__uint_as_float(x)))
            return;
        if (x >> 31 == 0)
            atomicMax(reinterpret_cast<int *>(word), static_cast<int>(x));
        else
            atomicMin(word, x);
    }
};

/* Update i goes to word i modulo `count`, a power of two. */
template <class Operation> __global__ void apply_all(unsigned *words, unsigned count, const unsigned *x, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        Operation::apply(&words[i & (count - 1)], x[i]);
}

using kernel = void (*)(unsigned *words, unsigned count, const unsigned *x, unsigned n);

unsigned bits_of(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

float float_of(unsigned bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

unsigned host_multiply(unsigned held, unsigned x) {
    return held * x;
}
unsigned host_add(unsigned held, unsigned x) {
    return bits_of(float_of(held) + float_of(x));
}
unsigned host_max(unsigned held, unsigned x) {
    return float_of(x) > float_of(held) ? x : held;
}

/* The operands are such that the result does not depend on the order, and that one lost update shows in it:
 * odd factors modulo 2^32, each of which has an inverse; and small integers, whose sums a float holds exactly. */
unsigned odd_factor(unsigned i) {
    return 2 * i + 3;
}

unsigned small_integer(unsigned i) {
    return bits_of(1.0f + i % 8);
}

/* Between -1000 and 0 for even i, so for every other word where there are many; between -500 and 500 for odd i. */
unsigned signed_number(unsigned i) {
    const float below = (scatter(i) >> 8) / 16777216.0f * -1000.0f;
    return bits_of(i % 2 == 0 ? below : below + 500.0f);
}

struct operation {
    const char *name;
    kernel loop, native; /* native may be null */
    unsigned start;      /* what a word holds before the first update */
    unsigned (*operand)(unsigned i);
    unsigned (*on_host)(unsigned held, unsigned x);
};

const operation multiply = {"multiply", apply_all<multiply_loop>, nullptr, 1, odd_factor, host_multiply};
const operation float_add = {"float add", apply_all<float_add_loop>, apply_all<float_add_native>, 0, small_integer,
                             host_add};
const operation float_max = {
    "float max", apply_all<float_max_loop>, apply_all<float_max_native>, minus_infinity, signed_number, host_max};

/* How the updates are shared out. */
struct load {
    unsigned words, blocks;
};

struct outcome {
    double us;                   /* median time; 0 without timing */
    std::vector<unsigned> words; /* of the last run */
};

/* Makes the updates x `runs` times and once more, each time on words of its own, and checks them all. Without runs,
 * there is that one without timing. */
outcome run(kernel k, const operation &o, load l, const std::vector<unsigned> &x, int runs, const char *what) {
    std::vector<unsigned> wanted(l.words, o.start);
    for (size_t i = 0; i < x.size(); ++i)
        wanted[i % l.words] = o.on_host(wanted[i % l.words], x[i]);

    std::vector<unsigned> words(size_t(runs + 1) * l.words, o.start);
    unsigned *device_words, *device_x;
    TRY(cudaMalloc(&device_words, words.size() * sizeof words[0]));
    TRY(cudaMalloc(&device_x, x.size() * sizeof x[0]));
    TRY(cudaMemcpy(device_words, words.data(), words.size() * sizeof words[0], cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(device_x, x.data(), x.size() * sizeof x[0], cudaMemcpyHostToDevice));

    unsigned *next = device_words;
    const auto launch = [&] {
        k<<<l.blocks, threads_per_block>>>(next, l.words, device_x, static_cast<unsigned>(x.size()));
        next += l.words;
    };
    outcome made = {};
    if (runs > 0) {
        made.us = example_median_us(runs, launch);
    } else {
        launch();
        TRY(cudaGetLastError());
    }

    TRY(cudaMemcpy(words.data(), device_words, words.size() * sizeof words[0], cudaMemcpyDeviceToHost));
    TRY(cudaFree(device_words));
    TRY(cudaFree(device_x));
    bool right = true;
    for (size_t i = 0; i < words.size(); ++i)
        right = right && words[i] == wanted[i % l.words];
    expect(right, what);
    made.words.assign(words.end() - l.words, words.end());
    return made;
}

void print_floats(const char *what, const unsigned *bits) {
    std::printf("%-14s", what);
    for (int i = 0; i < 4; ++i)
        std::printf(" %6g", float_of(bits[i]));
    std::puts("");
}

/* Where the two forms of the maximum could go wrong. Update i goes to word i modulo 4, so a column is a word: only
 * negative numbers; both signs with a NaN; only NaNs; a zero with sign above negative numbers. */
void show_special_values() {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const float values[4][4] = {
        {-3.0f, nan, nan, -2.0f}, {-1.5f, 4.0f, -nan, -0.0f}, {-inf, -7.0f, nan, -1.0f}, {-2.0f, -nan, nan, -inf}};
    const std::vector<unsigned> maxima = {bits_of(-1.5f), bits_of(4.0f), minus_infinity, bits_of(-0.0f)};
    std::vector<unsigned> x;
    for (const auto &row : values)
        std::transform(row, row + 4, std::back_inserter(x), bits_of);
    const load four = {4, 1};
    const outcome loop = run(float_max.loop, float_max, four, x, 0, "float max of special values by the loop");
    const outcome native =
        run(float_max.native, float_max, four, x, 0, "float max of special values by native atomics");
    expect(loop.words == maxima && native.words == maxima, "the maxima of special values are those found by hand");

    std::puts("\nfloat max of special values: a column is a word and its four updates");
    for (size_t i = 0; i < x.size(); i += 4)
        print_floats("", &x[i]);
    print_floats("swap loop", loop.words.data());
    print_floats("native atomic", native.words.data());
}

/* Shows the loop and the native form side by side. Returns the ratio of their times; 0 if there is none. */
double compare(const operation &o, load l, unsigned updates, int runs) {
    std::vector<unsigned> x(updates);
    for (unsigned i = 0; i < updates; ++i)
        x[i] = o.operand(i);
    const double loop_us = run(o.loop, o, l, x, runs, o.name).us;
    const double native_us = o.native ? run(o.native, o, l, x, runs, o.name).us : 0;
    const double ratio = native_us > 0 ? loop_us / native_us : 0;

    std::printf("%-10s %8u %8u %10u %14s", o.name, l.words, l.blocks * threads_per_block, updates, "swap loop");
    if (runs > 0)
        std::printf(" %11.4f", 1e3 * loop_us / updates);
    if (ratio > 0)
        std::printf(" %8.2f", ratio);
    std::printf("\n%-10s %8s %8s %10s %14s", "", "", "", "", o.native ? "native atomic" : "no native one");
    if (ratio > 0)
        std::printf(" %11.4f %8.2f", 1e3 * native_us / updates, 1.0);
    std::puts("");
    return ratio;
}

} // namespace

int main(int argc, char **argv) {
    const bool check = example_is_check(
        argc, argv, "Shows how to make atomics of compare-and-swap, and what they cost beside native ones.");
    const cudaDeviceProp device = example_device(7, 0);
    const int runs = check ? 0 : 5;
    /* On one word, a swap that succeeds makes all those fail that are under way. Few threads keep that in bounds; with
     * many updates for each, the time is not that of the launch. */
    const load one = {1, 4}, many = {check ? 1024 : 1u << 18, check ? 16 : 8u * device.multiProcessorCount};
    const unsigned on_one = check ? 5000 : 1u << 16, on_many = check ? 10000 : 1u << 24;

    std::printf("%s\n\n%-10s %8s %8s %10s %14s%s\n", device.name, "", "words", "threads", "updates", "",
                check ? "" : "     ns each    ratio");
    compare(multiply, one, on_one, runs);
    const double add_on_one = compare(float_add, one, on_one, runs), max_on_one = compare(float_max, one, on_one, runs);
    compare(multiply, many, on_many, runs);
    const double add_on_many = compare(float_add, many, on_many, runs);
    const double max_on_many = compare(float_max, many, on_many, runs);
    if (!check) {
        std::printf("\nOn one word, the loop takes %.1f times as long as native atomics for float add, and %.1f times "
                    "for float max;\non %u words, %.1f and %.1f times.\n",
                    add_on_one, max_on_one, many.words, add_on_many, max_on_many);
        const double us = example_median_us(
            runs, [&] { float_add.native<<<one.blocks, threads_per_block>>>(nullptr, 1, nullptr, 0); });
        std::printf(
            "The %u updates of one word include %.4f ns each for the launch: a kernel without updates takes %.1f us.\n",
            on_one, 1e3 * us / on_one, us);
    }
    show_special_values();
    return example_end();
}
