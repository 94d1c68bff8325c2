/* The median of an array of floats, without sorting it. Floats are ordered like integers that are made of their bits,
 * and the integer of the median is found in three runs: first its highest 12 bits, then 10 more, then the last 10. Each
 * run counts how often every value of these bits occurs, among the elements whose higher bits are known to be those of
 * the median.
 *
 * The second run also keeps these elements for the third, if they are at most a quarter of the array. So the runs
 * together read and write at most three times as many elements as the array has, even if all of them are equal. */
#include <dpr_recursion.cuh>

#include <cmath>
#include <cstring>

#include "example.h"
#include "memory.h"

namespace {

/* Elements are read four at a time. */
struct alignas(16) vector {
    float x[4];
};

DPR_BOTH float &element(vector *in, uint32_t i) {
    return in[i / 4].x[i % 4];
}

/* Integers in the order of the floats. -0 comes before 0; there are no NaNs. */
DPR_BOTH uint32_t ordered(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

float from_ordered(uint32_t i) {
    const uint32_t bits = i >> 31 ? i ^ 1u << 31 : ~i;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adds to a counter of a team, or of all teams, and returns what it was. On the CPU a team is one thread. */
DPR_BOTH uint32_t add_in_team(uint32_t *counter, uint32_t n) {
#ifdef __CUDA_ARCH__
    return atomicAdd(counter, n);
#else
    *counter += n;
    return *counter - n;
#endif
}

DPR_BOTH uint32_t add_of_all(uint32_t *counter, uint32_t n) {
#ifdef __CUDA_ARCH__
    return atomicAdd(counter, n);
#else
    return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
#endif
}

/* ---- The recursion: a pass over an array ---- */

constexpr uint32_t most_values = 4096;
constexpr uint32_t tile = 2048;         /* elements that a team reads before it writes what it keeps */
constexpr uint32_t portion = 16 * tile; /* elements of a task that is not divided */

struct counters {
    uint32_t values[most_values];
    uint32_t kept;
};

struct selection {
    struct task {
        uint32_t begin, end; /* elements */
    };
    using result = uint32_t; /* elements that count */
    struct data {
        vector *in, *kept; /* kept: NULL if nothing is to be kept */
        counters *all;
        uint32_t mask, bits; /* an element counts if these bits of its integer are as given */
        uint32_t shift, values;
    };
    static constexpr int most_children = 32;
    static constexpr bool host_data = true;

    /* What a team shares. */
    struct shared {
        counters own;
        uint32_t counting, place;
        float kept[tile];
    };
    static constexpr size_t team_bytes = sizeof(shared);

    DPR_POLICY int divide(const data &, const task &t, dpr::children<selection> children) {
        const uint32_t count = t.end - t.begin;
        if (count <= portion)
            return 0;
        const uint32_t step = (count - 1) / (most_children * portion) * portion + portion; /* whole portions */
        int n = 0;
        for (uint32_t done = 0; done < count; done += step)
            children[n++] = {t.begin + done, count - done < step ? t.end : t.begin + done + step};
        return n;
    }

    /* One thread counts a vector's elements before `end`. Returns how many count. */
    DPR_BOTH static uint32_t count_vector(const data &d, const vector &v, uint32_t begin, uint32_t end, shared *s) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < 4; ++k) {
            const uint32_t i = ordered(v.x[k]);
            if (begin + k >= end || (i & d.mask) != d.bits)
                continue;
            ++n;
            (void)add_in_team(&s->own.values[i >> d.shift & (d.values - 1)], 1);
            if (d.kept)
                s->kept[add_in_team(&s->own.kept, 1)] = v.x[k];
        }
        return n;
    }
    /* Two vectors are on their way to each thread at a time. */
    DPR_BOTH static uint32_t count_tile(const data &d, uint32_t begin, uint32_t end, shared *s, const dpr::team &team) {
        const uint32_t last = (end + 3) / 4;
        uint32_t n = 0;
        for (uint32_t i = begin / 4 + team.rank(); i < last; i += 2 * team.size()) {
            const uint32_t k = i + team.size();
            const vector one = d.in[i], two = d.in[k < last ? k : i];
            n += count_vector(d, one, 4 * i, end, s);
            n += k < last ? count_vector(d, two, 4 * k, end, s) : 0;
        }
        return n;
    }
    /* Writes what the team keeps of a tile to where no other team writes. */
    DPR_BOTH static void keep(const data &d, shared *s, const dpr::team &team) {
        team.sync();
        const uint32_t n = s->own.kept;
        if (team.rank() == 0 && n > 0)
            s->place = add_of_all(&d.all->kept, n);
        team.sync();
        for (uint32_t i = team.rank(); i < n; i += team.size())
            element(d.kept, s->place + i) = s->kept[i];
        if (team.rank() == 0)
            s->own.kept = 0;
        team.sync();
    }
    DPR_POLICY result base(const data &d, const task &t, const dpr::team &team) {
        shared *s = team.memory<shared>();
        for (uint32_t i = team.rank(); i < d.values; i += team.size())
            s->own.values[i] = 0;
        if (team.rank() == 0)
            s->own.kept = s->counting = 0;
        team.sync();
        uint32_t n = 0;
        for (uint32_t begin = t.begin; begin < t.end; begin += tile) {
            n += count_tile(d, begin, t.end - begin < tile ? t.end : begin + tile, s, team);
            if (d.kept)
                keep(d, s, team);
        }
        (void)add_in_team(&s->counting, n);
        team.sync();
        for (uint32_t i = team.rank(); i < d.values; i += team.size())
            if (s->own.values[i] > 0)
                (void)add_of_all(&d.all->values[i], s->own.values[i]);
        return s->counting;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<selection> results, int n) {
        result sum = 0;
        for (int i = 0; i < n; ++i)
            sum += results[i];
        return sum;
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return t.end - t.begin; }
};

} // namespace

DPR_RECURSION(selection, selection)

/* ---- The three runs ---- */

namespace {

/* What all runs take and give. */
struct problem {
    dpr_ctx *ctx;
    const dpr_recursion_options *options;
    dpr_recursion_report *report; /* of all runs together */
    vector *in, *kept;
    counters *all;
    uint32_t n;
};

/* Runs one pass over n elements. Sets *counting to how many count. */
dpr_status pass(const problem &p, const selection::data &d, uint32_t n, uint32_t *counting) {
    const selection::task root = {0, n};
    dpr_recursion_report one = DPR_RECURSION_REPORT_INIT;
    *p.all = {};
    prefetch(p.ctx, p.options, p.report, p.all, 1);
    const dpr_status status = selection_run(p.ctx, &root, 1, &d, counting, p.options, &one, nullptr);
    recursion_add_report(p.report, &one);
    return status;
}

/* The value of the digit of the element that has k others before it, among those that were counted. Subtracts those
 * with lower values from *k. */
uint32_t find_value(const counters &all, uint32_t *k) {
    uint32_t value = 0;
    for (; value < most_values - 1 && *k >= all.values[value]; ++value)
        *k -= all.values[value];
    return value;
}

/* Finds the element that has k others before it in the array's order. */
dpr_status find_element(const problem &p, uint32_t k, float *out) {
    static const uint32_t digits[] = {12, 10, 10}; /* bits, from the highest on */
    selection::data d = {p.in, nullptr, p.all, 0, 0, 32, 0};
    uint32_t n = p.n, left = p.n; /* elements to read, and those that may be it */
    for (uint32_t bits : digits) {
        d.shift -= bits;
        d.values = 1u << bits;
        d.kept = d.shift == 10 && left <= p.n / 4 ? p.kept : nullptr;
        const dpr_status status = pass(p, d, n, &left);
        if (status != DPR_OK)
            return status;
        if (d.kept) {
            d.in = d.kept;
            n = left;
        }
        const uint32_t value = find_value(*p.all, &k);
        left = p.all->values[value];
        d.mask |= (d.values - 1) << d.shift;
        d.bits |= value << d.shift;
    }
    *out = from_ordered(d.bits);
    return DPR_OK;
}

/* Numbers from -0.2 to 0.8. Among them are zeros with either sign, and infinities. */
float number(uint32_t i) {
    static const float special[] = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF};
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15; /* SplitMix64, by Sebastiano Vigna */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return i % 64 == 63 ? special[i / 64 % 4] : static_cast<float>(x >> 40) / 16777216 - 0.2f;
}

/* Whether sorting would bring the number to place k. */
bool belongs_to_place(float number, uint32_t k, vector *in, uint32_t n) {
    uint32_t lower = 0, equal = 0;
    for (uint32_t i = 0; i < n; ++i) {
        lower += element(in, i) < number;
        equal += element(in, i) == number;
    }
    return lower <= k && k - lower < equal;
}

dpr_status find_median(const problem &p, recursion_answer *answer) {
    float median = 0;
    for (uint32_t i = 0; i < p.n; ++i)
        element(p.in, i) = number(i);
    prefetch(p.ctx, p.options, p.report, p.in, p.n / 4 + 1);
    prefetch(p.ctx, p.options, p.report, p.kept, p.n / 16 + 1);
    const dpr_status status = find_element(p, p.n / 2, &median);
    recursion_set_answer(answer, belongs_to_place(median, p.n / 2, p.in, p.n), "the median is %.7g", median);
    return status;
}

} // namespace

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    const dpr_recursion_report none = DPR_RECURSION_REPORT_INIT;
    problem p = {ctx, request->options, report, nullptr, nullptr, nullptr, static_cast<uint32_t>(size)};
    p.in = allocate<vector>(ctx, size / 4 + 1);
    p.kept = allocate<vector>(ctx, size / 16 + 1);
    p.all = allocate<counters>(ctx, 1);
    *report = none;
    const dpr_status status = p.in && p.kept && p.all ? find_median(p, answer) : DPR_ERR_OUT_OF_MEMORY;
    release(ctx, p.in);
    release(ctx, p.kept);
    release(ctx, p.all);
    return status;
}

extern "C" const recursion_example recursion_select = {
    "select", "the median of floats, without sorting them", "how many elements", 1 << 20, 1, 1 << 28, run, nullptr, 0};
