/* The sum of a matrix by two-dimensional blocks shows the effects of the shape of a block.
 *
 * A warp is 32 successive threads, counted along x first, and the rows of the matrix lie along x. So the width of a
 * block says what a warp reads at once: one piece of a row (width 32), two shorter ones (16), or, with width 1, a piece
 * of a column, whose elements are a row apart. Memory is read in sectors of 32 bytes, and the cache looks up lines of
 * 128: the fewer of each a warp touches, the less there is to do for the same 32 elements.
 *
 * The size of a block determines how many fit on an SM. One block of 1024 threads leaves a third of an SM with room for
 * 1536 threads idle, and it makes room for the next only when the last of its warps is done. Small blocks free their
 * room in smaller parts.
 *
 * The size also determines the number of blocks: a thread reads one element, so a block with a quarter of the threads
 * makes four times as many blocks, each of which must be started, folded and ended. The program measures the time for
 * this with the same grid on an empty matrix, where all threads do the same but read nothing.
 *
 * Each row of the tables is a shape, as x times y. "GB/s" counts the matrix once, however much was read.
 */
#include "example.cuh"

#include <set>

namespace {

constexpr unsigned warp = 32;

struct matrix {
    unsigned rows, columns;
};

/* A thread reads one element, and a block writes the sum of its own: 1024 elements of at most three digits fit an int.
 * Threads beyond the edges take part with a zero, because all threads of a block must come to its barrier. */
__global__ void __launch_bounds__(1024) sum_blocks(const int *x, matrix m, int *of_block) {
    __shared__ int of_warp[1024 / warp];
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x, warps = blockDim.x * blockDim.y / warp;

    int sum = warp_sum(row < m.rows && column < m.columns ? x[size_t{row} * m.columns + column] : 0);
    if (thread % warp == 0)
        of_warp[thread / warp] = sum;
    __syncthreads();
    if (thread < warp) {
        sum = warp_sum(thread < warps ? of_warp[thread] : 0);
        if (thread == 0)
            of_block[size_t{blockIdx.y} * gridDim.x + blockIdx.x] = sum;
    }
}

struct shape {
    unsigned x, y;
};

constexpr shape shapes[] = {{32, 32}, {32, 16}, {16, 32}, {16, 16}, {1, 256}};
constexpr int good_shapes = 4; /* the last one is there to show columns */

/* Pieces of memory of `bytes` that a warp's load touches, on average over a part of the matrix that every shape
 * divides. */
double touched(shape block, matrix m, size_t bytes) {
    constexpr unsigned side = 256;
    const unsigned threads = block.x * block.y;
    size_t pieces = 0;
    for (unsigned top = 0; top < side; top += block.y) {
        for (unsigned left = 0; left < side; left += block.x) {
            for (unsigned first = 0; first < threads; first += warp) {
                std::set<size_t> of_warp;
                for (unsigned thread = first; thread < first + warp; ++thread) {
                    const size_t row = top + thread / block.x, column = left + thread % block.x;
                    of_warp.insert((row * m.columns + column) * sizeof(int) / bytes);
                }
                pieces += of_warp.size();
            }
        }
    }
    return 1.0 * pieces * warp / (side * side);
}

struct device_matrix {
    matrix m;
    int *x, *of_block;
    long long sum; /* calculated on the host */
};

/* Blocks that cover the matrix. */
dim3 grid_of(matrix m, shape s) {
    return {(m.columns + s.x - 1) / s.x, (m.rows + s.y - 1) / s.y, 1};
}

device_matrix make_matrix(matrix m) {
    const size_t count = size_t{m.rows} * m.columns;
    device_matrix d = {m, nullptr, nullptr, 0};
    std::vector<int> host(count);
    for (size_t i = 0; i < count; ++i)
        d.sum += host[i] = small_number(i);
    size_t blocks = 0;
    for (const shape s : shapes)
        blocks = std::max(blocks, size_t{grid_of(m, s).x} * grid_of(m, s).y);
    TRY(cudaMalloc(&d.x, count * sizeof *d.x));
    TRY(cudaMalloc(&d.of_block, blocks * sizeof *d.of_block));
    TRY(cudaMemcpy(d.x, host.data(), count * sizeof *d.x, cudaMemcpyHostToDevice));
    return d;
}

void free_matrix(const device_matrix &d) {
    TRY(cudaFree(d.x));
    TRY(cudaFree(d.of_block));
}

/* One kernel, and the sum of what the blocks wrote: the host adds that up. */
void check_sum(const device_matrix &d, shape s) {
    const dim3 grid = grid_of(d.m, s);
    std::vector<int> of_block(size_t{grid.x} * grid.y);
    const size_t bytes = of_block.size() * sizeof(int);
    TRY(cudaMemset(d.of_block, 0x7f, bytes)); /* no block has a sum like that, so one that did not write shows */
    sum_blocks<<<grid, dim3(s.x, s.y)>>>(d.x, d.m, d.of_block);
    TRY(cudaGetLastError());
    TRY(cudaMemcpy(of_block.data(), d.of_block, bytes, cudaMemcpyDeviceToHost));
    long long sum = 0;
    for (const int part : of_block)
        sum += part;
    if (!expect(sum == d.sum, "the sum of a matrix"))
        std::fprintf(stderr, "%u x %u elements, blocks of %u x %u\n", d.m.columns, d.m.rows, s.x, s.y);
}

/* Median microseconds of the blocks that cover the matrix, reading `m`: the matrix, or an empty one. */
double measure_us(const device_matrix &d, shape s, matrix m) {
    return example_median_us(9, [&] { sum_blocks<<<grid_of(d.m, s), dim3(s.x, s.y)>>>(d.x, m, d.of_block); });
}

/* One row. Returns GB/s, or 0 without timing. */
double show_shape(const cudaDeviceProp &gpu, bool check, const device_matrix &d, shape s) {
    const int threads = static_cast<int>(s.x * s.y);
    const dim3 grid = grid_of(d.m, s);
    int resident;
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, sum_blocks, threads, 0));
    expect(resident >= 1 && resident * threads <= gpu.maxThreadsPerMultiProcessor, "blocks fit on an SM");
    check_sum(d, s);
    std::printf("%4u x %-3u %9u %9d %8.0f %% %15.1f %13.1f ", s.x, s.y, grid.x * grid.y, resident,
                100.0 * resident * threads / gpu.maxThreadsPerMultiProcessor, touched(s, d.m, 32),
                touched(s, d.m, 128));
    if (check) {
        std::printf("%8s %12s %8s\n", "-", "-", "-");
        return 0;
    }
    const double us = measure_us(d, s, d.m), rate = 1.0 * d.m.rows * d.m.columns * sizeof(int) / us / 1e3;
    std::printf("%8.1f %12.1f %8.0f\n", us, measure_us(d, s, {0, 0}), rate);
    return rate;
}

void show_matrix(const cudaDeviceProp &gpu, bool check, matrix m) {
    const device_matrix d = make_matrix(m);
    double rates[good_shapes + 1] = {};
    std::printf("\n%u x %u elements\n%10s %9s %9s %10s %15s %13s %8s %12s %8s\n", m.columns, m.rows, "shape", "blocks",
                "on an SM", "occupancy", "sectors a warp", "lines a warp", "us", "no reads, us", "GB/s");
    for (int i = 0; i <= good_shapes; ++i)
        rates[i] = show_shape(gpu, check, d, shapes[i]);
    free_matrix(d);
    if (check)
        return;
    const auto range = std::minmax_element(rates, rates + good_shapes);
    const shape slowest = shapes[range.first - rates], fastest = shapes[range.second - rates];
    std::printf("Fastest of the first four: %u x %u, at %.2f times the rate of %u x %u.\n", fastest.x, fastest.y,
                *range.second / *range.first, slowest.x, slowest.y);
    std::printf("Warps that read columns (1 x 256): %.2f times the rate of the fastest.\n",
                rates[good_shapes] / *range.second);
}

} // namespace

int main(int argc, char **argv) {
    const bool check = example_is_check(argc, argv, "The sum of a matrix by two-dimensional blocks of several shapes.");
    const cudaDeviceProp gpu = example_device(7, 0);

    /* Sides that are multiples of no block's, and less than one block. */
    const matrix small[] = {{1, 1}, {17, 33}, {1000, 777}, {1, 4099}, {4099, 1}, {512, 512}, {31, 257}};
    for (const matrix m : small) {
        const device_matrix d = make_matrix(m);
        for (const shape s : shapes)
            check_sum(d, s);
        free_matrix(d);
    }
    /* Where each row begins with a sector, a warp's 128 bytes are 4 sectors if they are pieces of at least 8 elements,
     * and 32 sectors if no two elements are in the same row. */
    for (const shape s : shapes)
        expect(touched(s, {256, 1024}, 32) == (s.x >= 8 ? 4 : 32), "the sectors that a warp touches");

    std::printf("%s: an SM holds %d threads\n", gpu.name, gpu.maxThreadsPerMultiProcessor);
    const unsigned side = check ? 1024 : 16384;
    show_matrix(gpu, check, {side, side});
    show_matrix(gpu, check, {side - 3, side - 3}); /* rows begin anywhere in a sector */
    return example_end();
}
