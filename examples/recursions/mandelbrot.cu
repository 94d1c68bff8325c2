/* The Mandelbrot set by Mariani and Silver's way: if all pixels on the border of a rectangle have the same dwell, the
 * pixels inside are filled with it; otherwise the inside is divided into four. A team computes a border, or all pixels
 * of a small rectangle.
 *
 * The dwell of a point is the number of steps that z^2 + c stays in the circle of radius 2. The points of at least some
 * dwell are one connected region without holes, around the set. So filling is right for borders that are lines, unless
 * they surround the whole set. A thin thread of a higher dwell could pass unseen between two pixels of a border. None
 * did in any of the images of 1 to 8192 pixels a side that were tried, but nothing excludes it, so the example compares
 * every pixel with its dwell. */
#include <dpr_recursion.cuh>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "example.h"
#include "memory.h"
#include "picture.h"

namespace {

struct mandelbrot {
    struct task {
        uint32_t x, y, width, height;
    };
    using result = uint32_t; /* pixels that were filled */
    struct data {
        uint16_t *image;
        uint32_t side; /* pixels of a row, and rows */
        float left, top, step;
    };
    static constexpr int most_children = 4;
    static constexpr bool host_data = true;
    static constexpr uint32_t most_steps = 4096;
    static constexpr uint32_t small = 32;  /* pixels a side: all of them are computed */
    static constexpr uint32_t large = 128; /* pixels a side: divided at once, because one team would take long */

    /* float takes additions and multiplications alone, which round alike on the GPU and on the CPU. Even with 16384
     * pixels a side neighbours are a thousand roundings apart. */
    DPR_BOTH static uint16_t dwell(const data &d, uint32_t x, uint32_t y) {
        const float a = d.left + static_cast<float>(x) * d.step, b = d.top - static_cast<float>(y) * d.step;
        float re = 0, im = 0, re2 = 0, im2 = 0;
        uint16_t steps = 0;
        for (; steps < most_steps && re2 + im2 <= 4; ++steps) {
            im = 2 * re * im + b;
            re = re2 - im2 + a;
            re2 = re * re;
            im2 = im * im;
        }
        return steps;
    }
    DPR_BOTH static uint16_t &pixel(const data &d, uint32_t x, uint32_t y) {
        return d.image[static_cast<size_t>(y) * d.side + x];
    }

    /* Computes the border. Returns whether it has one dwell. */
    DPR_BOTH static bool is_uniform(const data &d, const task &t, const dpr::team &team) {
        const uint32_t sides = 2 * t.width, all = sides + 2 * (t.height - 2);
        uint16_t least = most_steps, most = 0;
        for (uint32_t i = team.rank(); i < all; i += team.size()) {
            const uint32_t k = i - sides; /* the border's top, its bottom, its left and right pixel in each row */
            const uint32_t x = t.x + (i < sides ? i % t.width : k % 2 * (t.width - 1));
            const uint32_t y = t.y + (i < sides ? i / t.width * (t.height - 1) : k / 2 + 1);
            const uint16_t steps = dwell(d, x, y);
            pixel(d, x, y) = steps;
            least = steps < least ? steps : least;
            most = steps > most ? steps : most;
        }
        team.sync();
        const uint16_t corner = pixel(d, t.x, t.y);
        return team.all(least >= corner && most <= corner);
    }

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<mandelbrot> children, const dpr::team &team) {
        if (t.width <= small || t.height <= small)
            return 0;
        const uint32_t margin = t.width <= large && t.height <= large; /* the border, which is known then */
        if (margin != 0 && is_uniform(d, t, team))
            return 0;
        if (team.rank() != 0)
            return 4;
        const uint32_t x = t.x + margin, y = t.y + margin, width = t.width - 2 * margin, height = t.height - 2 * margin;
        children[0] = {x, y, width / 2, height / 2};
        children[1] = {x + width / 2, y, width - width / 2, height / 2};
        children[2] = {x, y + height / 2, width / 2, height - height / 2};
        children[3] = {x + width / 2, y + height / 2, width - width / 2, height - height / 2};
        return 4;
    }
    DPR_BOTH static void compute(const data &d, const task &t, const dpr::team &team) {
        for (uint32_t i = team.rank(); i < t.width * t.height; i += team.size()) {
            const uint32_t x = t.x + i % t.width, y = t.y + i / t.width;
            pixel(d, x, y) = dwell(d, x, y);
        }
    }
    /* A rectangle that is not small has a border of one dwell. */
    DPR_POLICY result base(const data &d, const task &t, const dpr::team &team) {
        if (t.width <= small || t.height <= small) {
            compute(d, t, team);
            return 0;
        }
        const uint32_t width = t.width - 2, height = t.height - 2;
        const uint16_t corner = pixel(d, t.x, t.y);
        for (uint32_t i = team.rank(); i < width * height; i += team.size())
            pixel(d, t.x + 1 + i % width, t.y + 1 + i / width) = corner;
        return width * height;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<mandelbrot> results, int) {
        return results[0] + results[1] + results[2] + results[3];
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return uint64_t{t.width} * t.height; }
};

/* ---- The check: every pixel by itself ---- */

void check_rows(const mandelbrot::data &d, std::atomic<uint32_t> &next, std::atomic<uint32_t> &wrong) {
    for (uint32_t y = next++; y < d.side; y = next++)
        for (uint32_t x = 0; x < d.side; ++x)
            if (mandelbrot::pixel(d, x, y) != mandelbrot::dwell(d, x, y))
                ++wrong;
}

uint32_t count_wrong_on_cpu(const mandelbrot::data &d) {
    std::atomic<uint32_t> next{0}, wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
        threads.emplace_back(check_rows, std::cref(d), std::ref(next), std::ref(wrong));
    check_rows(d, next, wrong);
    for (std::thread &thread : threads)
        thread.join();
    return wrong;
}

#ifdef __CUDACC__
__global__ void check_pixels(mandelbrot::data d, uint32_t *wrong) {
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < d.side && mandelbrot::pixel(d, x, y) != mandelbrot::dwell(d, x, y))
        atomicAdd(wrong, 1);
}

uint32_t count_wrong_on_gpu(const dpr_ctx *ctx, const mandelbrot::data &d, float *milliseconds) {
    const array<uint32_t> wrong(ctx, 1);
    uint32_t n = 1;
    cudaEvent_t begin, end;
    wrong[0] = 0;
    (void)cudaEventCreate(&begin);
    (void)cudaEventCreate(&end);
    (void)cudaEventRecord(begin);
    check_pixels<<<dim3((d.side + 127) / 128, d.side), 128>>>(d, wrong.get());
    (void)cudaEventRecord(end);
    if (cudaDeviceSynchronize() == cudaSuccess && cudaEventElapsedTime(milliseconds, begin, end) == cudaSuccess)
        n = wrong[0];
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
    return n;
}
#endif

/* Sets the milliseconds that a GPU takes for all pixels; 0 on the CPU. */
uint32_t count_wrong(const dpr_ctx *ctx, const mandelbrot::data &d, float *milliseconds) {
    *milliseconds = 0;
#ifdef __CUDACC__
    if (dpr_ctx_device(ctx) != DPR_DEVICE_CPU)
        return count_wrong_on_gpu(ctx, d, milliseconds);
#endif
    (void)ctx;
    return count_wrong_on_cpu(d);
}

/* ---- The picture ---- */

dpr_status draw(const recursion_request *request, const mandelbrot::data &d, recursion_answer *answer) {
    std::vector<uint8_t> colours(3 * (mandelbrot::most_steps + 1)), pixels(size_t{3} * d.side * d.side);
    for (uint32_t steps = 0; steps < mandelbrot::most_steps; ++steps)
        for (uint32_t i = 0; i < 3; ++i) {
            const double turns = 0.35 * std::log2(1.0 + steps) + 0.1 * i + 0.4;
            colours[3 * steps + i] = static_cast<uint8_t>(127.5 + 127.5 * std::cos(6.283185307179586 * turns));
        }
    for (size_t at = 0; at < pixels.size(); ++at)
        pixels[at] = colours[3 * d.image[at / 3] + at % 3];
    return picture_write(request, d.side, d.side, pixels.data(), answer);
}

} // namespace

DPR_RECURSION(mandelbrot, mandelbrot)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    const uint32_t side = static_cast<uint32_t>(size);
    const size_t pixels = size * size;
    const array<uint16_t> image(ctx, pixels);
    const mandelbrot::data data = {image.get(), side, -2.0f, 1.5f, 3.0f / static_cast<float>(side)};
    const mandelbrot::task root = {0, 0, side, side};
    uint32_t filled = 0;
    prefetch(ctx, request->options, report, image.get(), pixels);
    dpr_status status = mandelbrot_run(ctx, &root, 1, &data, &filled, request->options, report, nullptr);
    if (status == DPR_OK) {
        float milliseconds;
        const bool right = count_wrong(ctx, data, &milliseconds) == 0;
        if (milliseconds > 0)
            recursion_set_answer(answer, right, "%u of %zu pixels were filled; a kernel takes %.2f ms for all", filled,
                                 pixels, static_cast<double>(milliseconds));
        else
            recursion_set_answer(answer, right, "%u of %zu pixels were filled", filled, pixels);
    }
    if (status == DPR_OK && request->picture)
        status = draw(request, data, answer);
    return status;
}

extern "C" const recursion_example recursion_mandelbrot = {"mandelbrot",
                                                           "the Mandelbrot set; areas of one colour are filled",
                                                           "pixels a side",
                                                           1024,
                                                           1,
                                                           16384,
                                                           within_memory<run>,
                                                           nullptr,
                                                           1,
                                                           0};
