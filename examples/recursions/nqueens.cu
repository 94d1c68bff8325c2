/* In how many ways n queens stand on a board of n rows and columns so that none attacks another. A task is a board with
 * some rows filled; its children are the boards with one more queen, in the next row. */
#include <dpr_recursion.cuh>

#include "example.h"

namespace {

struct nqueens {
    /* The squares of the next row that queens above attack: along columns, and along both diagonals. */
    struct task {
        uint32_t columns, left, right;
    };
    using result = uint32_t; /* up to 17 queens: 95 815 104 */
    using data = uint32_t;   /* a bit for each column */
    static constexpr int most_children = 17;
    static constexpr bool host_data = true;

    DPR_BOTH static task with_queen(const task &t, uint32_t queen) {
        return {t.columns | queen, (t.left | queen) << 1, (t.right | queen) >> 1};
    }
    DPR_POLICY int divide(const data &all, const task &t, dpr::children<nqueens> children) {
        int n = 0;
        for (uint32_t free = all & ~(t.columns | t.left | t.right); free != 0; free &= free - 1) {
            const uint32_t queen = free & (0 - free);
            children[n++] = with_queen(t, queen);
        }
        return n;
    }
    DPR_POLICY result base(const data &all, const task &t) { return t.columns == all; }
    DPR_POLICY result combine(const data &, const task &, dpr::results<nqueens> results, int n) {
        result sum = 0;
        for (int i = 0; i < n; ++i)
            sum += results[i];
        return sum;
    }
    /* A whole sub-tree by one thread: `--cutoff N` of `dpr recurse` has it solve tasks that cost at most N. */
    DPR_POLICY result serial(const data &all, const task &t) {
        task rows[18];
        uint32_t free[18]; /* columns that are left to be tried in a row */
        result ways = 0;
        int row = 0;
        rows[0] = t;
        free[0] = all & ~(t.columns | t.left | t.right);
        while (row >= 0) {
            const uint32_t queen = free[row] & (0 - free[row]);
            if (queen == 0) {
                ways += rows[row].columns == all;
                --row;
                continue;
            }
            free[row] ^= queen;
            const task below = with_queen(rows[row], queen);
            rows[++row] = below;
            free[row] = all & ~(below.columns | below.left | below.right);
        }
        return ways;
    }
    /* A row more makes five times as many tasks. */
    DPR_POLICY uint64_t cost(const data &all, const task &t) {
        uint64_t tasks = 1;
        for (uint32_t left = all & ~t.columns; left != 0; left &= left - 1)
            tasks *= 5;
        return tasks;
    }
};

} // namespace

DPR_RECURSION(nqueens, nqueens)

static dpr_status run(dpr_ctx *ctx, const recursion_request *request, dpr_recursion_report *report,
                      recursion_answer *answer) {
    const uint64_t size = request->size;
    /* https://oeis.org/A000170 */
    static const uint32_t known[] = {1,   1,   0,    0,     2,     10,     4,       40,       92,
                                     352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512, 95815104};
    const uint32_t all = (1u << size) - 1;
    const nqueens::task root = {0, 0, 0};
    uint32_t result = 0;
    const dpr_status status = nqueens_run(ctx, &root, 1, &all, &result, request->options, report, nullptr);
    recursion_set_answer(answer, result == known[size], "%u ways for %d queens", result, static_cast<int>(size));
    return status;
}

extern "C" const recursion_example recursion_nqueens = {
    "nqueens", "queens on a board, none of which attacks another", "how many", 12, 1, 17, run, nullptr, 0, 0};
