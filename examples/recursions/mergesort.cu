/* Merge sort: an array is divided into halves, and the sorted halves are merged. A team sorts a portion in the memory
 * that it shares, and merges two ranges of any length, portion by portion.
 *
 * Every thread merges a few keys of the output by itself. It finds by binary search how many keys of either range come
 * before them (merge path: Odeh, Green, Mwassi, Shmueli, Birk: Merge Path - Parallel Merging Made Simple, 2012). */
#include <dpr_recursion.cuh>

#include <algorithm>

#include "example.h"
#include "memory.h"

namespace {

using key = uint32_t;

/* Keys that one thread sorts or merges. The number is odd, so that a warp's threads are in different banks of shared
 * memory. */
constexpr uint32_t few = 15;
constexpr uint32_t portion = 256 * few;
constexpr uint32_t most_portions = 256; /* of which a team looks for the beginnings at a time */

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

/* A team merges ranges of a portion together, which lie in its memory, to another place there. */
DPR_BOTH void merge_portion(const ranges &r, key *out, const dpr::team &team) {
    const uint32_t n = r.a_count + r.b_count;
    for (uint32_t begin = team.rank() * few; begin < n; begin += team.size() * few)
        merge_few(r, begin, least(few, n - begin), out + begin);
}

DPR_BOTH void copy(const key *from, uint32_t n, key *to, const dpr::team &team) {
    for (uint32_t i = team.rank(); i < n; i += team.size())
        to[i] = from[i];
}

/* A team merges ranges of any length. */
DPR_BOTH void merge(const ranges &r, key *out, const dpr::team &team) {
    key *in_place = team.memory<key>(), *merged = in_place + portion, *from_a = merged + portion;
    const uint32_t n = r.a_count + r.b_count;
    for (uint32_t first = 0; first < n; first += most_portions * portion) {
        const uint32_t portions = least((n - first + portion - 1) / portion, most_portions);
        for (uint32_t i = team.rank(); i <= portions; i += team.size())
            from_a[i] = count_of_a(r, least(first + i * portion, n));
        team.sync();
        for (uint32_t i = 0; i < portions; ++i) {
            const uint32_t begin = first + i * portion, count = least(portion, n - begin);
            const uint32_t a = from_a[i], a_count = from_a[i + 1] - a;
            copy(r.a + a, a_count, in_place, team);
            copy(r.b + (begin - a), count - a_count, in_place + a_count, team);
            team.sync();
            merge_portion({in_place, in_place + a_count, a_count, count - a_count}, merged, team);
            team.sync();
            copy(merged, count, out + begin, team);
        }
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

/* ---- The recursion ---- */

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
    static constexpr size_t team_bytes = (2 * portion + most_portions + 1) * sizeof(key);

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
        merge({halves, halves + results[0], results[0], results[1]}, d.buffers[t.into] + t.begin, team);
        return t.count;
    }
};

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

DPR_RECURSION(mergesort, mergesort)

static dpr_status run(dpr_ctx *ctx, uint64_t size, const dpr_recursion_options *options, dpr_recursion_report *report,
                      recursion_answer *answer) {
    key *keys = allocate<key>(ctx, 2 * size);
    if (!keys)
        return DPR_ERR_OUT_OF_MEMORY;
    for (uint64_t i = 0; i < size; ++i)
        keys[i] = static_cast<key>(mix(i + 1) >> 32);
    const uint64_t known = sum_of_mixed(keys, size);
    const mergesort::data data = {{keys, keys + size}};
    const mergesort::task root = {0, static_cast<uint32_t>(size), 1};
    uint32_t result = 0;
    prefetch(ctx, options, keys, 2 * size);
    const dpr_status status = mergesort_run(ctx, &root, 1, &data, &result, options, report, nullptr);
    const key *sorted = keys + size;
    const bool right = std::is_sorted(sorted, sorted + size) && sum_of_mixed(sorted, size) == known && result == size;
    recursion_set_answer(answer, right, "%u keys are sorted", result);
    release(ctx, keys);
    return status;
}

extern "C" const recursion_example recursion_mergesort = {
    "mergesort", "merge sort of 32-bit keys", "how many keys", 1 << 20, 1, 1 << 28, run};
