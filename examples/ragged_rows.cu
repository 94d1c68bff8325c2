/* Sums of the rows of a ragged table, of which a few are ten thousand times as long as the others. With one warp for
 * each row, all wait for the warps that have the long ones:
 *
 *     warp 0   ##
 *     warp 1   #
 *     warp 2   ##################################################...
 *     warp 3   ##
 *
 * Here a warp that meets a long row asks dpr to reduce the row by a grid of its own, and goes on. */
#include <dpr.h>
#include <dpr_nested.cuh>

#include "example.cuh"

namespace {

/* Rows from so many elements on get a grid of their own: a warp takes longer to read them than a grid to start. */
constexpr uint64_t long_row = 16384;

constexpr unsigned block = 256;

/* Row r is x[begin[r] .. begin[r + 1] - 1], in device memory. */
struct table {
    const int32_t *x;
    const uint64_t *begin;
    unsigned rows;
};

/* ---- One warp for each row ---- */

__device__ void sum_by_warp(const table &t, unsigned row, int64_t *sums) {
    const uint64_t end = t.begin[row + 1];
    int64_t sum = 0;
#pragma unroll 8
    for (uint64_t i = t.begin[row] + threadIdx.x % 32; i < end; i += 32)
        sum += t.x[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        sums[row] = sum;
}

__global__ void one_warp_each(table t, int64_t *sums) {
    const unsigned row = (blockIdx.x * block + threadIdx.x) / 32;
    if (row < t.rows)
        sum_by_warp(t, row, sums);
}

/* ---- A grid for each long row ---- */

/* What follows a long row: one thread calls it, once the sum is there. */
struct count_row {
    unsigned *finished;
    __device__ void operator()(int64_t) const { atomicAdd(finished, 1); }
};

__global__ void grid_for_long_rows(table t, int64_t *sums, dpr_launcher launcher, count_row then) {
    const unsigned row = (blockIdx.x * block + threadIdx.x) / 32;
    if (row >= t.rows)
        return;
    const uint64_t begin = t.begin[row], count = t.begin[row + 1] - begin;
    if (count < long_row)
        sum_by_warp(t, row, sums);
    else if (threadIdx.x % 32 == 0) /* one thread asks; nobody waits */
        dpr::nested_reduce<DPR_SUM, DPR_I32>(launcher, t.x + begin, sums + row, count, then);
}

/* ---- The host ---- */

void check(dpr_status status, const char *call) {
    if (status == DPR_OK)
        return;
    std::fprintf(stderr, "%s: %s\n", call, dpr_last_error());
    std::exit(EXAMPLE_WRONG);
}

#define DPR(call) check((call), #call)

struct ragged {
    std::vector<int32_t> x;
    std::vector<uint64_t> begin = {0};
    unsigned long_rows = 0;
};

/* Of every `spacing` rows one has `most` elements; the others have 10 to 100. */
ragged make_rows(unsigned rows, unsigned spacing, uint64_t most) {
    ragged r;
    for (unsigned row = 0; row < rows; ++row) {
        const bool is_long = row % spacing == spacing / 2;
        r.long_rows += is_long;
        r.begin.push_back(r.begin.back() + (is_long ? most : 10 + (scatter(row) >> 8) % 91));
    }
    r.x.resize(r.begin.back());
    for (size_t i = 0; i < r.x.size(); ++i)
        r.x[i] = small_number(i);
    return r;
}

template <class T> T *on_device(const std::vector<T> &host) {
    T *memory;
    TRY(cudaMalloc(&memory, host.size() * sizeof(T)));
    TRY(cudaMemcpy(memory, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

/* Whether the sums are right, which are made wrong for the next time. */
void expect_sums(const ragged &r, int64_t *sums, const char *what) {
    std::vector<int64_t> got(r.begin.size() - 1);
    TRY(cudaMemcpy(got.data(), sums, got.size() * sizeof(int64_t), cudaMemcpyDeviceToHost));
    TRY(cudaMemset(sums, 0xff, got.size() * sizeof(int64_t)));
    bool right = true;
    for (size_t row = 0; row < got.size(); ++row) {
        int64_t sum = 0;
        for (uint64_t i = r.begin[row]; i < r.begin[row + 1]; ++i)
            sum += r.x[i];
        right = right && got[row] == sum;
    }
    expect(right, what);
}

void run(const ragged &r, const dpr_launcher &launcher) {
    const table t = {on_device(r.x), on_device(r.begin), static_cast<unsigned>(r.begin.size() - 1)};
    int64_t *sums = on_device(std::vector<int64_t>(t.rows, -1));
    const count_row then = {on_device(std::vector<unsigned>(1, 0))};
    const unsigned blocks = (t.rows * 32 + block - 1) / block;
    const auto by_warps = [&] { one_warp_each<<<blocks, block>>>(t, sums); };
    const auto by_grids = [&] { grid_for_long_rows<<<blocks, block>>>(t, sums, launcher, then); };

    by_warps();
    expect_sums(r, sums, "the sums by one warp for each row"); /* copying waits for the kernel */
    by_grids();
    expect_sums(r, sums, "the sums with a grid for each long row"); /* and for all that it has launched */
    unsigned finished;
    dpr_launch_report report;
    TRY(cudaMemcpy(&finished, then.finished, sizeof finished, cudaMemcpyDeviceToHost));
    expect(finished == r.long_rows, "each long row was followed once");
    DPR(dpr_launcher_report(&launcher, &report, sizeof report));
    expect(report.failed == 0, "no launch failed");
    expect(report.launched + report.in_line == r.long_rows, "each long row was launched or done in line");
    std::printf("%u rows, %u of them long: %u launches, %u rows in line\n", t.rows, r.long_rows, report.launched,
                report.in_line);
    if (!example_checks) {
        std::printf("\n%-28s %10.1f us\n", "one warp for each row", example_median_us(11, by_warps));
        std::printf("%-28s %10.1f us\n", "a grid for each long row", example_median_us(11, by_grids));
        expect_sums(r, sums, "the sums of the last run that was timed");
    }
    for (const void *memory : {static_cast<const void *>(t.x), static_cast<const void *>(t.begin),
                               static_cast<const void *>(sums), static_cast<const void *>(then.finished)})
        TRY(cudaFree(const_cast<void *>(memory)));
}

} // namespace

int main(int argc, char **argv) {
    example_is_check(argc, argv, "Sums of rows, of which long ones get a grid of their own.");
    const cudaDeviceProp device = example_device(7, 0);
    dpr_ctx *ctx;
    dpr_launcher launcher;
    DPR(dpr_ctx_create(0, &ctx));
    const dpr_status status = dpr_launcher_create(ctx, 0, &launcher);
    if (status == DPR_ERR_STRATEGY_UNABLE) {
        std::printf("skipped: %s\n", dpr_last_error());
        return EXAMPLE_SKIPPED;
    }
    check(status, "dpr_launcher_create");
    std::printf("%s\n", device.name);
    if (example_checks)
        run(make_rows(2000, 250, 1 << 16), launcher);
    else
        run(make_rows(100000, 3125, 1 << 20), launcher);
    dpr_launcher_destroy(&launcher);
    dpr_ctx_destroy(ctx);
    return example_end();
}
