/* The k-th smallest of an array of floats, such as the median, without sorting it. Floats are ordered like integers
 * that are made of their bits. A run is for an interval of these integers: it counts the elements below it and, in 1024
 * buckets, those inside. So the bucket that has the element is known, and it is the next run's interval, until that has
 * one value.
 *
 * The first runs read 2^18 elements in places far apart, and give an interval that most likely has the element but few
 * of the others. The next one reads the whole array, and keeps the elements inside for the last runs. If the interval
 * has not the element, because the few elements were not like the others, the array is read once more. */
#include <dpr_recursion.cuh>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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

/* A place in an array for each thread that calls it: threads of a warp count together. */
DPR_BOTH uint32_t place_of_all(uint32_t *counter) {
#ifdef __CUDA_ARCH__
    const cooperative_groups::coalesced_group group = cooperative_groups::coalesced_threads();
    uint32_t first = 0;
    if (group.thread_rank() == 0)
        first = atomicAdd(counter, group.size());
    return group.shfl(first, 0) + group.thread_rank();
#else
    return add_of_all(counter, 1);
#endif
}

/* ---- The recursion: a pass over an array ---- */

constexpr uint32_t most_buckets = 1024;
constexpr uint32_t least_portion = 8192; /* elements of a task that is not divided */

struct counters {
    uint32_t buckets[most_buckets];
    uint32_t kept;
};

struct selection {
    struct task {
        uint32_t begin, end; /* elements */
    };
    using result = uint32_t; /* elements below the interval */
    struct data {
        const vector *in;
        uint32_t stride; /* of the vectors that are read: 1 if all are */
        vector *kept;    /* NULL if nothing is to be kept */
        uint32_t room;   /* elements there */
        counters *all;
        uint32_t first, width; /* the interval: integers first to first + width */
        uint32_t shift;        /* a bucket has 2^shift integers */
        uint32_t portion;
    };
    static constexpr int most_children = 64;
    static constexpr bool host_data = true;
    static constexpr dpr_op fold = DPR_SUM;

    /* What a team shares. */
    struct shared {
        counters own;
        uint32_t below, place;
        float kept[2048];
    };
    static constexpr size_t team_bytes = sizeof(shared);

    DPR_POLICY int divide(const data &d, const task &t, dpr::children<selection> children) {
        const uint32_t count = t.end - t.begin;
        if (count <= d.portion)
            return 0;
        const uint32_t step = (count - 1) / (most_children * d.portion) * d.portion + d.portion; /* whole portions */
        int n = 0;
        for (uint32_t done = 0; done < count; done += step)
            children[n++] = {t.begin + done, count - done < step ? t.end : t.begin + done + step};
        return n;
    }

    /* Keeps an element for the team or, if that has no room left, writes it to where no other thread writes. */
    DPR_BOTH static void keep(const data &d, float x, shared *s) {
        constexpr uint32_t room = sizeof s->kept / sizeof *s->kept;
        const uint32_t own = add_in_team(&s->own.kept, 1);
        if (own < room) {
            s->kept[own] = x;
            return;
        }
        const uint32_t place = place_of_all(&d.all->kept);
        if (place < d.room)
            element(d.kept, place) = x;
    }
    /* One thread counts a vector's elements before `end`. Returns how many are below the interval. */
    DPR_BOTH static uint32_t count_vector(const data &d, const vector &v, uint32_t begin, uint32_t end, shared *s) {
        uint32_t below = 0;
        for (uint32_t k = 0; k < 4; ++k) {
            const uint32_t i = ordered(v.x[k]);
            if (begin + k >= end)
                continue;
            below += i < d.first;
            if (i - d.first > d.width)
                continue;
            (void)add_in_team(&s->own.buckets[(i - d.first) >> d.shift], 1);
            if (d.kept)
                keep(d, v.x[k], s);
        }
        return below;
    }
    /* Four vectors are on their way to each thread at a time. */
    DPR_BOTH static uint32_t count_all(const data &d, const task &t, shared *s, const dpr::team &team) {
        constexpr uint32_t most = 4;
        const uint32_t last = (t.end + 3) / 4;
        uint32_t below = 0;
        for (uint32_t i = t.begin / 4 + team.rank(); i < last; i += most * team.size()) {
            vector v[most];
            for (uint32_t k = 0; k < most; ++k) {
                const uint32_t number = i + k * team.size();
                v[k] = d.in[(number < last ? number : i) * d.stride];
            }
            for (uint32_t k = 0; k < most; ++k) {
                const uint32_t number = i + k * team.size();
                below += number < last ? count_vector(d, v[k], 4 * number, t.end, s) : 0;
            }
        }
        return below;
    }
    /* Adds what the team has counted, and writes what it has kept, to where no other team writes. */
    DPR_BOTH static void hand_in(const data &d, shared *s, const dpr::team &team) {
        constexpr uint32_t room = sizeof s->kept / sizeof *s->kept;
        const uint32_t kept = s->own.kept < room ? s->own.kept : room;
        if (team.rank() == 0 && kept > 0)
            s->place = add_of_all(&d.all->kept, kept);
        for (uint32_t i = team.rank(); i <= d.width >> d.shift; i += team.size())
            if (s->own.buckets[i] > 0)
                (void)add_of_all(&d.all->buckets[i], s->own.buckets[i]);
        team.sync();
        for (uint32_t i = team.rank(); i < kept && s->place + i < d.room; i += team.size())
            element(d.kept, s->place + i) = s->kept[i];
    }
    DPR_POLICY result base(const data &d, const task &t, const dpr::team &team) {
        shared *s = team.memory<shared>();
        for (uint32_t i = team.rank(); i <= d.width >> d.shift; i += team.size())
            s->own.buckets[i] = 0;
        if (team.rank() == 0)
            s->own.kept = s->below = 0;
        team.sync();
        (void)add_in_team(&s->below, count_all(d, t, s, team));
        team.sync();
        hand_in(d, s, team);
        return s->below;
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return t.end - t.begin; }
};

} // namespace

DPR_RECURSION(selection, selection)

/* ---- The runs ---- */

namespace {

/* Integers from `first` to `last`. */
struct interval {
    uint32_t first, last;
};

/* Buckets of 2^shift integers are as many as there may be. */
uint32_t shift_of(const interval &of) {
    uint32_t shift = 0;
    while ((of.last - of.first) >> shift >= most_buckets)
        ++shift;
    return shift;
}

/* What all runs take and give. */
struct problem {
    dpr_ctx *ctx;
    const dpr_recursion_options *options;
    dpr_recursion_report *report; /* of all runs together */
    vector *in, *kept;
    counters *all;
    uint32_t n;
    uint32_t room; /* elements, for those that are kept */
};

/* Completes the data of a pass over n elements for the interval, and runs it. Sets *below. */
dpr_status pass(const problem &p, selection::data d, uint32_t n, const interval &of, uint32_t *below) {
    constexpr uint32_t most_portions = 64 * 64; /* so that tasks are divided twice at most */
    const selection::task root = {0, n};
    dpr_recursion_report one = DPR_RECURSION_REPORT_INIT;
    d.first = of.first;
    d.width = of.last - of.first;
    d.shift = shift_of(of);
    d.portion = (n / most_portions / least_portion + 1) * least_portion;
    d.room = p.room;
    d.all = p.all;
    *p.all = {};
    prefetch(p.ctx, p.options, p.report, p.all, 1);
    const dpr_status status = selection_run(p.ctx, &root, 1, &d, below, p.options, &one, nullptr);
    recursion_add_report(p.report, &one);
    return status;
}

/* The part of the interval with these two of its buckets and all between them. */
interval part_of(const interval &all, uint32_t from, uint32_t to) {
    const uint32_t shift = shift_of(all);
    const uint64_t first = all.first + (uint64_t{from} << shift), last = all.first + (uint64_t{to + 1} << shift) - 1;
    return {static_cast<uint32_t>(first), last < all.last ? static_cast<uint32_t>(last) : all.last};
}

/* The bucket of the element that has k others before it, among those that were counted; the last one if there are not
 * so many. Subtracts those before the bucket from *k. */
uint32_t find_bucket(const counters &all, uint32_t *k) {
    uint32_t bucket = 0;
    for (; bucket < most_buckets - 1 && *k >= all.buckets[bucket]; ++bucket)
        *k -= all.buckets[bucket];
    return bucket;
}

uint32_t count(const counters &all, uint32_t from = 0, uint32_t to = most_buckets - 1) {
    uint32_t n = 0;
    for (uint32_t i = from; i <= to; ++i)
        n += all.buckets[i];
    return n;
}

/* An interval that most likely has the element with k others before it, and about how many elements are inside. */
struct guess {
    interval in;
    uint32_t count;
};

/* Makes a guess by looking at few elements, in an odd distance of each other, so that nothing periodic goes unseen. */
dpr_status look_at_few(const problem &p, uint32_t k, guess *out) {
    constexpr uint32_t few = 1 << 18, margin = 1280; /* five standard deviations of the median's place among them */
    const uint32_t middle = static_cast<uint32_t>(uint64_t{k} * few / p.n);
    const uint32_t from = middle > margin ? middle - margin : 0, to = middle + margin < few ? middle + margin : few - 1;
    selection::data d = {};
    interval before;
    uint32_t inside;
    if (p.n < 16 * few)
        return DPR_OK;
    d.in = p.in;
    d.stride = (p.n / few - 1) | 1;
    do {
        uint32_t below = 0;
        const dpr_status status = pass(p, d, few, out->in, &below);
        if (status != DPR_OK)
            return status;
        uint32_t k_from = from - below, k_to = to - below;
        const uint32_t first = find_bucket(*p.all, &k_from), last = find_bucket(*p.all, &k_to);
        inside = count(*p.all, first, last);
        before = out->in;
        out->in = part_of(before, first, last);
    } while (inside > few / 64 && (out->in.first != before.first || out->in.last != before.last));
    out->count = static_cast<uint32_t>(uint64_t{inside} * p.n / few);
    return DPR_OK;
}

/* Finds the element that has k others before it in the array's order. */
dpr_status find_element(const problem &p, uint32_t k, float *out) {
    interval sure = {0, UINT32_MAX}; /* has the element */
    guess likely = {sure, p.n};
    dpr_status status = look_at_few(p, k, &likely);
    selection::data d = {};
    uint32_t n = p.n;
    d.in = p.in;
    d.stride = 1;
    while (status == DPR_OK && sure.first < sure.last) {
        uint32_t below = 0;
        d.kept = d.in == p.in && likely.count <= n / 64 ? p.kept : nullptr;
        status = pass(p, d, n, likely.in, &below);
        const uint32_t inside = count(*p.all);
        if (k < below || k - below >= inside) {
            sure = k < below ? interval{sure.first, likely.in.first - 1} : interval{likely.in.last + 1, sure.last};
            likely = {sure, n};
            continue;
        }
        uint32_t left = k - below;
        const uint32_t bucket = find_bucket(*p.all, &left);
        sure = part_of(likely.in, bucket, bucket);
        likely = {sure, p.all->buckets[bucket]};
        if (d.kept && p.all->kept <= p.room) {
            d.in = d.kept;
            n = p.all->kept;
            k -= below;
        }
    }
    *out = from_ordered(sure.first);
    return status;
}

/* Numbers from -0.2 to 0.8, but from 0.8 to 1.8 in every sixteenth part of 2^18 elements: of 2^22 elements it is the
 * last one, at which look_at_few() does not look. Among them are zeros with either sign, and infinities. */
float number(uint32_t i) {
    static const float special[] = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF};
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15; /* SplitMix64, by Sebastiano Vigna */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    if (i % 64 == 63)
        return special[i / 64 % 4];
    return static_cast<float>(x >> 40) / 16777216 + ((i >> 18 & 15) == 15 ? 0.8f : -0.2f);
}

/* Whether sorting brings the number to place k. Many elements would take long to sort, so these are only counted. */
bool belongs_to_place(float number, uint32_t k, vector *in, uint32_t n) {
    constexpr uint32_t most_sorted = 1 << 22;
    uint32_t lower = 0, equal = 0;
    if (n <= most_sorted) {
        std::vector<float> sorted(n);
        for (uint32_t i = 0; i < n; ++i)
            sorted[i] = element(in, i);
        std::sort(sorted.begin(), sorted.end());
        return sorted[k] == number;
    }
    for (uint32_t i = 0; i < n; ++i) {
        lower += element(in, i) < number;
        equal += element(in, i) == number;
    }
    return lower <= k && k - lower < equal;
}

/* The same for a number that is found again and again, in an array that is the same each time: what belongs to a place
 * is looked for once. */
bool is_right(float number, uint32_t k, vector *in, uint32_t n) {
    static struct {
        uint32_t n, k; /* n is 0 at first, which no array has */
        float number;
    } known;
    if (known.n == n && known.k == k)
        return known.number == number;
    const bool right = belongs_to_place(number, k, in, n);
    if (right)
        known = {n, k, number};
    return right;
}

/* Finds the element of the request's rank, or the median. */
dpr_status find_asked(const problem &p, const recursion_request *request, recursion_answer *answer) {
    const uint32_t k = request->has_rank ? static_cast<uint32_t>(request->rank) : p.n / 2;
    float found = 0;
    for (uint32_t i = 0; i < p.n; ++i)
        element(p.in, i) = number(i);
    prefetch(p.ctx, p.options, p.report, p.in, p.n / 4 + 1);
    prefetch(p.ctx, p.options, p.report, p.kept, p.room / 4 + 1);
    const dpr_status status = find_element(p, k, &found);
    const bool right = is_right(found, k, p.in, p.n);
    if (request->has_rank)
        recursion_set_answer(answer, right, "element %u in ascending order is %.7g", k, found);
    else
        recursion_set_answer(answer, right, "the median is %.7g", found);
    return status;
}

} // namespace

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const dpr_recursion_report none = DPR_RECURSION_REPORT_INIT;
    const uint32_t n = static_cast<uint32_t>(request->size), room = n / 32;
    const array<vector> in(ctx, n / 4 + 1), kept(ctx, room / 4 + 1);
    const array<counters> all(ctx, 1);
    *report = none;
    return find_asked({ctx, request->options, report, in.get(), kept.get(), all.get(), n, room}, request, answer);
}

extern "C" const recursion_example recursion_select = {"select",
                                                       "the k-th smallest of floats, such as their median",
                                                       "how many elements",
                                                       1 << 20,
                                                       1,
                                                       1 << 28,
                                                       within_memory<run>,
                                                       nullptr,
                                                       0,
                                                       1};
