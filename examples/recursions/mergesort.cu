/* Merge sort. A piece of an array is divided into halves, and the sorted halves are merged; a team sorts a portion in
 * the memory that it shares, and merges two halves portion by portion. All pieces are the roots of one run. A team
 * would take long to merge longer ranges, so that is a recursion of its own: a merge is divided into merges of parts of
 * the ranges. Each further run makes of two sorted ranges one.
 *
 * Every thread merges a few keys of the output by itself. It finds by binary search how many keys of either range come
 * before them (merge path: Odeh, Green, Mwassi, Shmueli, Birk: Merge Path - Parallel Merging Made Simple, 2012). */
#include <dpr_recursion.cuh>

#include <algorithm>
#include <vector>

#include "example.h"
#include "memory.h"

namespace {

using key = uint32_t;

/* Keys that one thread sorts or merges. The number is odd, so that a warp's threads are in different banks of shared
 * memory. */
constexpr uint32_t few = 15;
constexpr uint32_t portion = 256 * few;
constexpr uint32_t piece_portions = 16;
constexpr uint32_t piece = piece_portions * portion;

DPR_BOTH uint32_t least(uint32_t x, uint32_t y) {
    return x < y ? x : y;
}

/* ---- Two sorted ranges, to be merged ---- */

struct ranges {
    const key *a, *b;
    uint32_t a_count, b_count;
};

/* How many of the first n keys of the output come from a. Of equal keys those of a come first. */
DPR_BOTH uint32_t count_of_a(const ranges &r, uint32_t n) {
    uint32_t low = n > r.b_count ? n - r.b_count : 0, high = least(n, r.a_count);
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (r.a[middle] <= r.b[n - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One thread writes the `count` keys of the output from `begin` on. */
DPR_BOTH void merge_few(const ranges &r, uint32_t begin, uint32_t count, key *out) {
    uint32_t a = count_of_a(r, begin), b = begin - a;
    for (uint32_t i = 0; i < count; ++i) {
        const bool takes_a = b >= r.b_count || (a < r.a_count && r.a[a] <= r.b[b]);
        out[i] = takes_a ? r.a[a++] : r.b[b++];
    }
}

DPR_BOTH void copy(const key *from, uint32_t n, key *to, const dpr::team &team) {
    for (uint32_t i = team.rank(); i < n; i += team.size())
        to[i] = from[i];
}

/* A team merges ranges that are at most a portion together. */
DPR_BOTH void merge_portion(const ranges &r, key *out, const dpr::team &team) {
    key *a = team.memory<key>(), *b = a + r.a_count, *merged = a + portion;
    const uint32_t n = r.a_count + r.b_count;
    copy(r.a, r.a_count, a, team);
    copy(r.b, r.b_count, b, team);
    team.sync();
    for (uint32_t begin = team.rank() * few; begin < n; begin += team.size() * few)
        merge_few({a, b, r.a_count, r.b_count}, begin, least(few, n - begin), merged + begin);
    team.sync();
    copy(merged, n, out, team);
}

/* The ranges whose merge is the output from `begin` to `end`, where so many keys come from a before either. */
DPR_BOTH ranges part(const ranges &r, uint32_t begin, uint32_t end, uint32_t a_begin, uint32_t a_end) {
    return {r.a + a_begin, r.b + (begin - a_begin), a_end - a_begin, (end - a_end) - (begin - a_begin)};
}

/* A team merges ranges that are at most a piece together. */
DPR_BOTH void merge_piece(const ranges &r, key *out, const dpr::team &team) {
    key *from_a = team.memory<key>() + 2 * portion;
    const uint32_t n = r.a_count + r.b_count, portions = (n + portion - 1) / portion;
    for (uint32_t i = team.rank(); i <= portions; i += team.size())
        from_a[i] = count_of_a(r, least(i * portion, n));
    team.sync();
    for (uint32_t i = 0; i < portions; ++i) {
        const uint32_t begin = i * portion, end = least(begin + portion, n);
        merge_portion(part(r, begin, end, from_a[i], from_a[i + 1]), out + begin, team);
    }
}

/* ---- Sorting a portion ---- */

/* One thread sorts at most `few` keys, in registers: odd and even neighbours take turns to change places. */
DPR_BOTH void sort_few(key *keys, uint32_t count) {
    key own[few];
    for (uint32_t i = 0; i < few; ++i)
        own[i] = i < count ? keys[i] : UINT32_MAX;
    for (uint32_t turn = 0; turn < few; ++turn)
        for (uint32_t i = turn % 2; i + 1 < few; i += 2) {
            const key x = own[i], y = own[i + 1];
            own[i] = x < y ? x : y;
            own[i + 1] = x < y ? y : x;
        }
    for (uint32_t i = 0; i < few; ++i)
        if (i < count)
            keys[i] = own[i];
}

DPR_BOTH void sort_portion(const key *in, uint32_t n, key *out, const dpr::team &team) {
    key *from = team.memory<key>(), *to = from + portion;
    copy(in, n, from, team);
    team.sync();
    for (uint32_t begin = team.rank() * few; begin < n; begin += team.size() * few)
        sort_few(from + begin, least(few, n - begin));
    team.sync();
    for (uint32_t sorted = few; sorted < n; sorted *= 2) {
        for (uint32_t begin = team.rank() * few; begin < n; begin += team.size() * few) {
            const uint32_t pair = begin / (2 * sorted) * (2 * sorted); /* where two sorted ranges begin */
            const uint32_t a_count = least(sorted, n - pair), b_count = least(sorted, n - pair - a_count);
            const ranges r = {from + pair, from + pair + a_count, a_count, b_count};
            merge_few(r, begin - pair, least(few, n - begin), to + begin);
        }
        team.sync();
        key *other = from;
        from = to;
        to = other;
    }
    copy(from, n, out, team);
}

/* ---- The recursions ---- */

struct mergesort {
    /* Keys of buffer 0, which are to be sorted to buffer `into`. Their halves go to the other buffer first. */
    struct task {
        uint32_t begin, count, into;
    };
    using result = uint32_t; /* sorted keys */
    struct data {
        key *buffers[2];
    };
    static constexpr int most_children = 2;
    static constexpr bool host_data = true;
    static constexpr size_t team_bytes = (2 * portion + piece_portions + 1) * sizeof(key);

    DPR_POLICY int divide(const data &, const task &t, dpr::children<mergesort> children) {
        if (t.count <= portion)
            return 0;
        /* The left half is of whole portions, so that all but the last are full. */
        const uint32_t left = (t.count + 2 * portion - 1) / (2 * portion) * portion;
        children[0] = {t.begin, left, 1 - t.into};
        children[1] = {t.begin + left, t.count - left, 1 - t.into};
        return 2;
    }
    DPR_POLICY result base(const data &d, const task &t, const dpr::team &team) {
        sort_portion(d.buffers[0] + t.begin, t.count, d.buffers[t.into] + t.begin, team);
        return t.count;
    }
    DPR_POLICY result combine(const data &d, const task &t, dpr::results<mergesort> results, int,
                              const dpr::team &team) {
        const key *halves = d.buffers[1 - t.into] + t.begin;
        merge_piece({halves, halves + results[0], results[0], results[1]}, d.buffers[t.into] + t.begin, team);
        return t.count;
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return t.count; }
};

struct merging {
    struct task {
        uint32_t a, a_count, b, b_count; /* ranges of `from` */
        uint32_t out;                    /* where the output begins in `to` */
    };
    using result = uint32_t; /* merged keys */
    struct data {
        const key *from;
        key *to;
    };
    static constexpr int most_children = 32;
    static constexpr bool host_data = true;
    static constexpr size_t team_bytes = 2 * portion * sizeof(key);

    DPR_BOTH static ranges ranges_of(const data &d, const task &t) {
        return {d.from + t.a, d.from + t.b, t.a_count, t.b_count};
    }
    /* Each thread looks for where a child's ranges begin and end. */
    DPR_POLICY int divide(const data &d, const task &t, dpr::children<merging> children, const dpr::team &team) {
        const uint32_t n = t.a_count + t.b_count;
        if (n <= portion)
            return 0;
        const ranges r = ranges_of(d, t);
        const uint32_t step = (n - 1) / (most_children * portion) * portion + portion; /* whole portions */
        const uint32_t parts = (n + step - 1) / step;
        for (uint32_t i = team.rank(); i < parts; i += team.size()) {
            const uint32_t begin = i * step, end = least(begin + step, n);
            const uint32_t a_begin = count_of_a(r, begin), a_end = count_of_a(r, end);
            const ranges p = part(r, begin, end, a_begin, a_end);
            children[static_cast<int>(i)] = {t.a + a_begin, p.a_count, t.b + begin - a_begin, p.b_count, t.out + begin};
        }
        return static_cast<int>(parts);
    }
    DPR_POLICY result base(const data &d, const task &t, const dpr::team &team) {
        merge_portion(ranges_of(d, t), d.to + t.out, team);
        return t.a_count + t.b_count;
    }
    DPR_POLICY result combine(const data &, const task &, dpr::results<merging> results, int n) {
        result sum = 0;
        for (int i = 0; i < n; ++i)
            sum += results[i];
        return sum;
    }
    DPR_POLICY uint64_t cost(const data &, const task &t) { return uint64_t{t.a_count} + t.b_count; }
};

} // namespace

DPR_RECURSION(mergesort, mergesort)
DPR_RECURSION(merging, merging)

/* ---- The runs ---- */

namespace {

struct problem {
    dpr_ctx *ctx;
    const dpr_recursion_options *options;
    dpr_recursion_report *report; /* of all runs together */
    mergesort::data data;
    uint32_t n;
};

/* Sorts each piece of buffer 0 to buffer 1. */
dpr_status sort_pieces(const problem &p) {
    std::vector<mergesort::task> roots;
    for (uint32_t begin = 0; begin < p.n; begin += piece)
        roots.push_back({begin, least(piece, p.n - begin), 1});
    std::vector<uint32_t> counts(roots.size());
    return mergesort_run(p.ctx, roots.data(), roots.size(), &p.data, counts.data(), p.options, p.report, nullptr);
}

/* Merges each two ranges of `sorted` keys. */
dpr_status merge_all(const problem &p, uint32_t sorted, const merging::data &data) {
    std::vector<merging::task> roots;
    for (uint32_t a = 0; a < p.n; a += 2 * sorted) {
        const uint32_t a_count = least(sorted, p.n - a), b = a + a_count, b_count = least(sorted, p.n - b);
        roots.push_back({a, a_count, b, b_count, a});
    }
    std::vector<uint32_t> counts(roots.size());
    dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    const dpr_status status =
        merging_run(p.ctx, roots.data(), roots.size(), &data, counts.data(), p.options, &report, nullptr);
    recursion_add_report(p.report, &report);
    return status;
}

/* Sorts buffer 0. Sets *sorted to the buffer with the output. */
dpr_status sort(const problem &p, const key **sorted) {
    int from = 1;
    dpr_status status = sort_pieces(p);
    for (uint32_t count = piece; count < p.n && status == DPR_OK; count *= 2, from = 1 - from)
        status = merge_all(p, count, {p.data.buffers[from], p.data.buffers[1 - from]});
    *sorted = p.data.buffers[from];
    return status;
}

/* ---- Keys, and what is known of them ---- */

/* A permutation of the 64-bit numbers that looks random (the finaliser of MurmurHash3, by Austin Appleby). */
uint64_t mix(uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

/* The same for the same keys in any order, and hardly for any others. */
uint64_t sum_of_mixed(const key *keys, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += mix(keys[i] + 1ull);
    return sum;
}

} // namespace

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    const array<key> buffers(ctx, 2 * size);
    key *keys = buffers.get();
    for (uint64_t i = 0; i < size; ++i)
        keys[i] = static_cast<key>(mix(i + 1) >> 32);
    const uint64_t known = sum_of_mixed(keys, size);
    const key *sorted;
    prefetch(ctx, request->options, report, keys, 2 * size);
    const dpr_status status =
        sort({ctx, request->options, report, {{keys, keys + size}}, static_cast<uint32_t>(size)}, &sorted);
    if (status == DPR_OK)
        recursion_set_answer(answer, std::is_sorted(sorted, sorted + size) && sum_of_mixed(sorted, size) == known,
                             "the median is %u", sorted[size / 2]);
    return status;
}

extern "C" const recursion_example recursion_mergesort = {
    "mergesort", "merge sort of 32-bit keys", "how many keys", 1 << 20, 1, 1 << 28, within_memory<run>, nullptr, 0, 0};
