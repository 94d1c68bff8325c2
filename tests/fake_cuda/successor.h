/* A recursion on the fake device whose tasks are all base cases, for the tests of runs and of runs that are enqueued.
 */
#ifndef DPR_TESTS_FAKE_SUCCESSOR_H
#define DPR_TESTS_FAKE_SUCCESSOR_H

#include <string.h>

#include "fake_recursion.h"

enum { MOST = 1000, ADDEND = 7, MOST_CALLS = 1000, MOST_CHILDREN = 3, CANARY = 0x5a };

typedef struct answer {
    uint64_t sum, task; /* the task and the policy's data, and the task */
} answer;

static inline dpr_frame *solve(dpr_solver *solver, void *slot) {
    uint64_t task, addend;
    memcpy(&task, slot, sizeof task);
    memcpy(&addend, solver->data, sizeof addend);
    const answer result = {task + addend, task};
    memcpy(slot, &result, sizeof result);
    solver->fuel--;
    return NULL;
}

static const dpr_recursion_kernels kernels = {.persistent = fake_recursion_persistent,
                                              .phase = fake_recursion_phase,
                                              .node_bytes = sizeof(answer) + 20,
                                              .slot_bytes = sizeof(answer),
                                              .header_bytes = 16,
                                              .most_lanes = DPR_MOST_LANES};

#define RECURSION(KERNELS, HOST_DATA, COST)                                                                            \
    {                                                                                                                  \
        .size = sizeof(dpr_recursion), .version = DPR_RECURSION_VERSION, .most_children = MOST_CHILDREN,               \
        .name = "successor", .task_bytes = sizeof(uint64_t), .task_align = sizeof(uint64_t),                           \
        .result_bytes = sizeof(answer), .result_align = _Alignof(answer), .data_bytes = sizeof(uint64_t),              \
        .data_align = sizeof(uint64_t), .slot_bytes = sizeof(answer), .solve = solve, .cost = (COST),                  \
        .host_data = (HOST_DATA), .gpu = (KERNELS)                                                                     \
    }

/* Writes n roots: first, first + 3 ... */
static inline void make_roots(uint64_t *roots, uint64_t first, size_t n) {
    for (size_t i = 0; i < n; i++)
        roots[i] = first + 3 * i;
}

/* Whether the results at `got` are those of these roots or, if none are wanted, nothing but canaries. */
static inline int are_answers(const answer *got, uint64_t first, size_t n, int wanted) {
    answer expected[MOST];
    memset(expected, CANARY, sizeof expected);
    for (uint64_t i = 0; i < n && wanted; i++)
        expected[i] = (answer){first + 3 * i + ADDEND, first + 3 * i};
    return memcmp(got, expected, n * sizeof *got) == 0;
}

#endif
