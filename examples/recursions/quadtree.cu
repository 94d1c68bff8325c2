/* A quadtree of bodies: mass and centre of mass of each of its cells, the upward pass of Barnes and Hut's method
 * (1986).
 *
 * The bodies are sorted along Morton's curve, on which a cell is a range. A task is such a range: the smallest cell
 * that has all of its bodies is divided into its quarters, and empty quarters are left out. So each cell has at least
 * two parts. A cell is stored at the index of the first body of its second part. No two cells share that index, because
 * a border between two bodies separates the first two parts of at most one cell.
 *
 * Masses and coordinates are integers, so that every sum is exact, and is compared with prefix sums. */
#include <dpr_recursion.cuh>

#include <algorithm>
#include <cmath>
#include <vector>

#include "example.h"
#include "memory.h"
#include "picture.h"

namespace {

struct body {
    uint32_t code; /* bits of x and y in turn */
    uint16_t x, y;
    uint32_t mass;
};

/* The sums of a cell. Its centre of mass is x / mass, y / mass. */
struct cell {
    uint64_t mass, x, y;
    uint32_t begin, count; /* its bodies */
};

struct quadtree {
    struct task {
        uint32_t begin, end;
    };
    using result = cell;
    struct data {
        const body *bodies;
        cell *cells;
        uint32_t few; /* a range of so many bodies is not divided */
    };
    static constexpr int most_children = 4;
    static constexpr bool host_data = true;

    /* The first body from `begin` on whose code is at least this. */
    DPR_BOTH static uint32_t find(const data &d, uint32_t begin, uint32_t end, uint64_t code) {
        while (begin < end) {
            const uint32_t middle = begin + (end - begin) / 2;
            if (d.bodies[middle].code < code)
                begin = middle + 1;
            else
                end = middle;
        }
        return begin;
    }
    /* How many low bits the codes of a quarter differ in, where the smallest cell with both codes is divided. */
    DPR_BOTH static int quarter_bits(uint32_t first, uint32_t last) {
        int bits = 30;
        while (bits > 0 && (first ^ last) >> bits == 0)
            bits -= 2;
        return bits;
    }

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<quadtree> children) {
        const uint32_t first = d.bodies[t.begin].code, last = d.bodies[t.end - 1].code;
        if (t.end - t.begin <= d.few || first == last)
            return 0;
        const int bits = quarter_bits(first, last);
        int n = 0;
        for (uint32_t begin = t.begin; begin < t.end;) {
            const uint64_t quarter = d.bodies[begin].code >> bits;
            const uint32_t end = find(d, begin, t.end, (quarter + 1) << bits);
            children[n++] = {begin, end};
            begin = end;
        }
        return n;
    }
    DPR_POLICY result base(const data &d, const task &t) {
        result sum = {0, 0, 0, t.begin, t.end - t.begin};
        for (uint32_t i = t.begin; i < t.end; ++i) {
            const body b = d.bodies[i];
            sum.mass += b.mass;
            sum.x += uint64_t{b.mass} * b.x;
            sum.y += uint64_t{b.mass} * b.y;
        }
        return sum;
    }
    DPR_POLICY result combine(const data &d, const task &t, dpr::results<quadtree> results, int n) {
        result sum = {0, 0, 0, t.begin, t.end - t.begin};
        for (int i = 0; i < n; ++i) {
            sum.mass += results[i].mass;
            sum.x += results[i].x;
            sum.y += results[i].y;
        }
        d.cells[results[1].begin] = sum;
        return sum;
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return t.end - t.begin; }
};

/* ---- The bodies: in clusters, of which some are a thousand times as dense as others ---- */

uint32_t interleaved(uint32_t x, uint32_t y) {
    uint32_t code = 0;
    for (int bit = 0; bit < 16; ++bit)
        code |= (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1);
    return code;
}

struct random_numbers { /* Knuth's generator */
    uint64_t state;
    double next() { /* from 0 to 1 */
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return static_cast<double>(state >> 11) * 0x1p-53;
    }
};

uint16_t coordinate(double x) {
    return static_cast<uint16_t>(std::fmin(std::fmax(x, 0), 1) * 65535);
}

void place_bodies(body *bodies, uint32_t n) {
    constexpr int clusters = 40;
    random_numbers random = {2026};
    double x[clusters], y[clusters], radius[clusters];
    for (int i = 0; i < clusters; ++i) {
        x[i] = random.next();
        y[i] = random.next();
        radius[i] = 0.2 * std::pow(0.001, random.next());
    }
    for (uint32_t i = 0; i < n; ++i) {
        const int c = static_cast<int>(random.next() * clusters);
        const double angle = 6.283185307179586 * random.next(), r = radius[c] * random.next() * random.next();
        const uint16_t at_x = coordinate(x[c] + r * std::cos(angle)), at_y = coordinate(y[c] + r * std::sin(angle));
        bodies[i] = {interleaved(at_x, at_y), at_x, at_y, 1 + static_cast<uint32_t>(1000 * random.next())};
    }
    std::sort(bodies, bodies + n, [](const body &a, const body &b) { return a.code < b.code; });
}

/* ---- The check: prefix sums ---- */

/* How many cells a range has, one after another. */
uint32_t count_cells(const quadtree::data &d, const quadtree::task &whole) {
    std::vector<quadtree::task> left = {whole}, children(quadtree::most_children + 1);
    uint32_t cells = 0;
    while (!left.empty()) {
        const quadtree::task t = left.back();
        left.pop_back();
        const int n = quadtree::divide(d, t, {children.data(), sizeof t, quadtree::most_children});
        cells += n > 0;
        left.insert(left.end(), children.begin(), children.begin() + n);
    }
    return cells;
}

/* Whether cells have the sums of their bodies, and all bodies of one square. Counts the cells. */
bool is_right(const quadtree::data &d, uint32_t n, uint32_t *count) {
    std::vector<cell> prefix(n + size_t{1});
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const body &b = d.bodies[i];
        prefix[i + size_t{1}] = {prefix[i].mass + b.mass, prefix[i].x + uint64_t{b.mass} * b.x,
                                 prefix[i].y + uint64_t{b.mass} * b.y, 0, 0};
    }
    *count = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const cell c = d.cells[i];
        if (c.count == 0)
            continue;
        ++*count;
        const cell &from = prefix[c.begin], &to = prefix[c.begin + size_t{c.count}];
        wrong += to.mass - from.mass != c.mass || to.x - from.x != c.x || to.y - from.y != c.y;
        const uint32_t first = d.bodies[c.begin].code, end = c.begin + c.count;
        const uint64_t size = uint64_t{4} << quadtree::quarter_bits(first, d.bodies[end - 1].code);
        const uint64_t square = first / size;
        wrong += c.begin > 0 && d.bodies[c.begin - 1].code / size == square;
        wrong += end < n && d.bodies[end].code / size == square;
    }
    return wrong == 0;
}

/* ---- The picture: bodies, and the borders of cells of at least 8 pixels ---- */

constexpr uint32_t side = 1024, units = 65536 / side; /* of a pixel */

void draw_cell(std::vector<uint8_t> &pixels, const body &corner, int bits) {
    const uint32_t size = 2u << bits / 2, x = (corner.x & ~(size - 1)) / units, y = (corner.y & ~(size - 1)) / units;
    const uint32_t length = size / units;
    for (uint32_t i = 0; length >= 8 && i < length; ++i)
        for (const uint32_t at :
             {y * side + x + i, (y + length - 1) * side + x + i, (y + i) * side + x, (y + i) * side + x + length - 1})
            pixels[size_t{3} * at + 2] = 200;
}

dpr_status draw(const recursion_request *request, const quadtree::data &d, uint32_t n, recursion_answer *answer) {
    std::vector<uint8_t> pixels(size_t{3} * side * side);
    for (uint32_t i = 0; i < n; ++i)
        if (const cell c = d.cells[i]; c.count > 0)
            draw_cell(pixels, d.bodies[c.begin],
                      quadtree::quarter_bits(d.bodies[c.begin].code, d.bodies[c.begin + c.count - 1].code));
    for (uint32_t i = 0; i < n; ++i)
        for (int colour = 0; colour < 2; ++colour) {
            uint8_t &p = pixels[size_t{3} * (d.bodies[i].y / units * side + d.bodies[i].x / units) + colour];
            p = static_cast<uint8_t>(p < 100 ? 100 : p < 251 ? p + 4 : 255);
        }
    return picture_write(request, side, side, pixels.data(), answer);
}

} // namespace

DPR_RECURSION(quadtree, quadtree)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint32_t n = static_cast<uint32_t>(request->size);
    const array<body> bodies(ctx, n);
    const array<cell> cells(ctx, n);
    const quadtree::data data = {bodies.get(), cells.get(), 8};
    const quadtree::task root = {0, n};
    cell whole = {};
    place_bodies(bodies.get(), n);
    std::fill_n(cells.get(), n, cell{});
    prefetch(ctx, request->options, report, bodies.get(), n);
    prefetch(ctx, request->options, report, cells.get(), n);
    const dpr_status status = quadtree_run(ctx, &root, 1, &data, &whole, request->options, report, nullptr);
    if (status != DPR_OK)
        return status;
    uint32_t count = 0;
    const bool right = is_right(data, n, &count) && count == count_cells(data, root) && whole.count == n;
    recursion_set_answer(answer, right, "%u cells; the centre of mass of all is (%.4f, %.4f)", count,
                         static_cast<double>(whole.x) / static_cast<double>(whole.mass) / 65535,
                         static_cast<double>(whole.y) / static_cast<double>(whole.mass) / 65535);
    return request->picture ? draw(request, data, n, answer) : DPR_OK;
}

extern "C" const recursion_example recursion_quadtree = {"quadtree",
                                                         "mass and centre of each cell of a quadtree",
                                                         "how many bodies",
                                                         1000000,
                                                         1,
                                                         1 << 26,
                                                         within_memory<run>,
                                                         nullptr,
                                                         1,
                                                         0};
