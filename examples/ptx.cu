/* Inline PTX, instructions written by hand, compared with the intrinsic or the operator that means the same.
 *
 * Each computation has two forms, which differ only in their operations:
 *
 *   warp_sums  the sum of a warp, again and again: __reduce_add_sync() and redux.sync.add
 *   array_sum  each thread adds up its share of an array: + and add.u32
 *   same_step  one number is added 16 times in each round of a loop: + and add.u32
 *
 * The compiler knows what an operator or an intrinsic means, and may use something better instead. It knows only the
 * inputs and outputs of inline PTX. The assembler, which makes machine code from PTX, does see the instruction, but
 * works on a smaller scale. To see the machine code of each form, use
 *
 *   cuobjdump -sass build/<preset>/examples/ptx
 *
 * which names the functions as below. In warp_sums_intrinsic and warp_sums_ptx look for REDUX, in array_sum_operator
 * and array_sum_ptx for IADD or IADD3 behind the load, LDG. In the largest loop of same_step_operator and of
 * same_step_ptx count the additions (IADD, IADD3) and multiplications (IMAD): which of the two has fewer instructions
 * for a round? The option -fun with a function's name shows only that function; -ptx instead of -sass shows the input
 * of the assembler, if the program contains PTX. examples/README.md has the loops as one compiler made them. */
#include "example.cuh"

namespace {

enum { block_threads = 256, warp_threads = 32, steps = 16 };

struct by_compiler {
    static __device__ unsigned add(unsigned a, unsigned b) { return a + b; }
    static __device__ unsigned warp_sum(unsigned x) {
#if __CUDA_ARCH__ >= 800
        return __reduce_add_sync(0xffffffffu, x);
#else
        return x; /* not run: main() asks what it was compiled for */
#endif
    }
};

struct by_hand {
    static __device__ unsigned add(unsigned a, unsigned b) {
        unsigned sum;
        asm("add.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
        return sum;
    }
    /* volatile, because the threads of the warp meet here: the compiler must not drop it or move it elsewhere. */
    static __device__ unsigned warp_sum(unsigned x) {
#if __CUDA_ARCH__ >= 800
        unsigned sum;
        asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(x));
        return sum;
#else
        return x;
#endif
    }
};

__device__ unsigned here() {
    return blockIdx.x * block_threads + threadIdx.x;
}

template <class Operations> __device__ void warp_sums(const unsigned *x, unsigned *out, unsigned rounds) {
    const unsigned element = x[here()];
    unsigned value = element;
    for (unsigned round = 0; round < rounds; ++round)
        value = element + round + Operations::warp_sum(value);
    out[here()] = value;
}

template <class Operations> __device__ void array_sum(const unsigned *x, unsigned *out, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = here(); i < n; i += gridDim.x * block_threads)
        sum = Operations::add(sum, x[i]);
    out[here()] = sum;
}

template <class Operations> __device__ void same_step(const unsigned *x, unsigned *out, unsigned rounds) {
    const unsigned step = x[here()];
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round)
        for (int k = 0; k < steps; ++k)
            sum = Operations::add(sum, step);
    out[here()] = sum;
}

/* extern "C", so that the names in the machine code are these. */
extern "C" {
__global__ void warp_sums_intrinsic(const unsigned *x, unsigned *out, unsigned n) {
    warp_sums<by_compiler>(x, out, n);
}
__global__ void warp_sums_ptx(const unsigned *x, unsigned *out, unsigned n) {
    warp_sums<by_hand>(x, out, n);
}
__global__ void array_sum_operator(const unsigned *x, unsigned *out, unsigned n) {
    array_sum<by_compiler>(x, out, n);
}
__global__ void array_sum_ptx(const unsigned *x, unsigned *out, unsigned n) {
    array_sum<by_hand>(x, out, n);
}
__global__ void same_step_operator(const unsigned *x, unsigned *out, unsigned n) {
    same_step<by_compiler>(x, out, n);
}
__global__ void same_step_ptx(const unsigned *x, unsigned *out, unsigned n) {
    same_step<by_hand>(x, out, n);
}
}

/* The same on the host, for all threads at once. */
void warp_sums_on_host(const std::vector<unsigned> &x, std::vector<unsigned> &out, unsigned rounds) {
    for (size_t first = 0; first < out.size(); first += warp_threads) {
        std::copy_n(&x[first], warp_threads, &out[first]);
        for (unsigned round = 0; round < rounds; ++round) {
            unsigned sum = 0;
            for (size_t i = first; i < first + warp_threads; ++i)
                sum += out[i];
            for (size_t i = first; i < first + warp_threads; ++i)
                out[i] = x[i] + round + sum;
        }
    }
}

void array_sum_on_host(const std::vector<unsigned> &x, std::vector<unsigned> &out, unsigned n) {
    std::fill(out.begin(), out.end(), 0);
    for (size_t i = 0; i < n; ++i)
        out[i % out.size()] += x[i];
}

void same_step_on_host(const std::vector<unsigned> &x, std::vector<unsigned> &out, unsigned rounds) {
    for (size_t i = 0; i < out.size(); ++i)
        out[i] = x[i] * steps * rounds;
}

struct computation {
    const char *names[2];
    void (*forms[2])(const unsigned *, unsigned *, unsigned); /* by the compiler, by hand */
    void (*on_host)(const std::vector<unsigned> &, std::vector<unsigned> &, unsigned);
    unsigned count;
};

struct arrays {
    std::vector<unsigned> x, out, expected;
    unsigned *device_x, *device_out;
    bool check;
};

/* Runs both forms, prints a line for each, and returns the time by hand over that by the compiler (0 with --check). */
double compare(const computation &c, arrays &a) {
    const size_t bytes = a.out.size() * sizeof(unsigned);
    const unsigned blocks = static_cast<unsigned>(a.out.size() / block_threads);
    double us[2] = {};
    c.on_host(a.x, a.expected, c.count);
    for (int form = 0; form < 2; ++form) {
        const auto launch = [&] { c.forms[form]<<<blocks, block_threads>>>(a.device_x, a.device_out, c.count); };
        TRY(cudaMemset(a.device_out, 0, bytes));
        launch();
        TRY(cudaGetLastError());
        TRY(cudaMemcpy(a.out.data(), a.device_out, bytes, cudaMemcpyDeviceToHost));
        const bool right = expect(a.out == a.expected, c.names[form]);
        cudaFuncAttributes made;
        TRY(cudaFuncGetAttributes(&made, c.forms[form]));
        std::printf("%-20s %9d %7d.%d %7d.%d  %s", c.names[form], made.numRegs, made.ptxVersion / 10,
                    made.ptxVersion % 10, made.binaryVersion / 10, made.binaryVersion % 10, right ? "right" : "WRONG");
        us[form] = a.check ? 0 : example_median_us(11, launch);
        if (!a.check)
            std::printf(" %10.1f us", us[form]);
        std::puts("");
    }
    return a.check ? 0 : us[1] / us[0];
}

} // namespace

int main(int argc, char **argv) {
    arrays a = {};
    a.check = example_is_check(argc, argv, "Inline PTX beside intrinsics and operators.");
    const cudaDeviceProp device = example_device(8, 0);
    cudaFuncAttributes made;
    TRY(cudaFuncGetAttributes(&made, warp_sums_ptx));
    if (made.ptxVersion < 80) { /* an old program can run on a new device, but without redux.sync */
        std::puts("skipped: compiled for a compute capability below 8.0");
        return EXAMPLE_SKIPPED;
    }
    const unsigned n = a.check ? 1 << 14 : 1 << 25, threads = a.check ? 1 << 11 : 1 << 18;
    const computation computations[] = {
        {{"warp_sums_intrinsic", "warp_sums_ptx"},
         {warp_sums_intrinsic, warp_sums_ptx},
         warp_sums_on_host,
         a.check ? 5u : 256u},
        {{"array_sum_operator", "array_sum_ptx"}, {array_sum_operator, array_sum_ptx}, array_sum_on_host, n},
        {{"same_step_operator", "same_step_ptx"},
         {same_step_operator, same_step_ptx},
         same_step_on_host,
         a.check ? 101u : 4096u},
    };
    a.x.resize(n);
    a.out.resize(threads);
    a.expected.resize(threads);
    for (unsigned i = 0; i < n; ++i)
        a.x[i] = scatter(i) >> 7;
    TRY(cudaMalloc(&a.device_x, n * sizeof(unsigned)));
    TRY(cudaMalloc(&a.device_out, threads * sizeof(unsigned)));
    TRY(cudaMemcpy(a.device_x, a.x.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));

    std::printf("%s, compute capability %d.%d, %u threads\n\n%-20s %9s %9s %9s  result\n", device.name, device.major,
                device.minor, threads, "kernel", "registers", "PTX for", "made for");
    const double sums = compare(computations[0], a), array = compare(computations[1], a);
    const double step = compare(computations[2], a);
    if (!a.check) {
        std::printf("\nThe time of inline PTX over that of the intrinsic: %.2f in warp_sums; over that of +: %.2f in ",
                    sums, array);
        std::printf("array_sum,\n%.2f in same_step. ", step);
        std::puts(step > 1.2 ? "There the compiler, which knows what + means, found something better than adding;\n"
                               "PTX by hand is for what has no operator, no intrinsic and no function in cuda::ptx."
                             : "Prefer the operator or the intrinsic: those the compiler understands.");
    }
    TRY(cudaFree(a.device_x));
    TRY(cudaFree(a.device_out));
    return example_end();
}
