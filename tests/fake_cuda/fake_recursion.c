#include "fake_recursion.h"

#include <stdatomic.h>
#include <string.h>

#include "fake_device.h"
#include "fake_memory.h"
#include "fake_modules.h"
#include "fake_state.h"
#include "strategy.h"

enum { MOST_SLOT = 64, FIRST_NS = 1000 };

/* A kernel's handle is the address of its entry here. */
static struct { unsigned shared_bytes; /* that a block may have */ } persistent, phase;

fake_recursion_state fake_recursion;

int fake_recursion_persistent(unsigned shared_bytes, void **function) {
    persistent.shared_bytes = shared_bytes;
    *function = &persistent;
    return (int)fake_recursion.missing;
}

int fake_recursion_phase(void **function, size_t *stack_bytes) {
    phase.shared_bytes = (unsigned)fake_machine()->gpu.shared_per_block;
    *function = &phase;
    *stack_bytes = 0;
    return (int)fake_recursion.missing;
}

int fake_recursion_has(const void *kernel) {
    return kernel == &persistent || kernel == &phase;
}

/* ---- Launches ---- */

static const char *check_launch(const cudaLaunchConfig_t *config, int cooperative, const fake_recursion_launch *l) {
    const int is_persistent = l->kernel == &persistent;
    if (config->blockDim.x != l->args.threads || config->dynamicSmemBytes != l->args.shared_bytes)
        return "a recursion's kernel is launched with other blocks than its arguments say";
    if (config->dynamicSmemBytes > (is_persistent ? persistent : phase).shared_bytes)
        return "a recursion's kernel has more shared memory than it is allowed";
    if (cooperative != (is_persistent && config->gridDim.x > 1))
        return "a grid whose blocks wait for each other is cooperative, and no other";
    const int is_tiny = is_persistent && l->args.capacity == 0 && l->args.first_tasks > 0;
    if (l->args.count == 0 || (l->args.capacity < l->args.count && !is_tiny))
        return "the arena has no room for the roots";
    return NULL;
}

const char *fake_recursion_prepare(const cudaLaunchConfig_t *config, int cooperative, const void *kernel,
                                   void **arguments, fake_recursion_launch *out) {
    const dpr_recursion *r = fake_recursion.of;
    if (r->data_bytes > sizeof out->data || r->slot_bytes > MOST_SLOT)
        return "the fake device has no room for the recursion's data or tasks";
    out->kernel = kernel;
    memcpy(&out->args, arguments[0], sizeof out->args);
    memcpy(out->data, arguments[1], r->data_bytes);
    if (kernel == &phase)
        memcpy(&out->what, arguments[2], sizeof out->what);
    fake_recursion.blocks = config->gridDim.x;
    fake_recursion.threads = config->blockDim.x;
    fake_recursion.cooperative = cooperative;
    fake_recursion.chunks = out->args.chunks;
    fake_recursion.capacity = out->args.capacity;
    if (fake_recursion.is_stuck)
        fake_make_busy(1);
    return check_launch(config, cooperative, out);
}

/* ---- Memory ---- */

typedef struct part {
    const void *at;
    size_t bytes;
} part;

static int overlap(const part *a, const part *b) {
    const uintptr_t x = (uintptr_t)a->at, y = (uintptr_t)b->at;
    return a->bytes > 0 && b->bytes > 0 && x < y + b->bytes && y < x + a->bytes;
}

static const char *check_parts(const dpr_recursion *r, const dpr_recursion_args *a) {
    const part parts[] = {
        {a->arena, DPR_SCRATCH_BYTES},
        {a->block, a->capacity > 0 ? sizeof *a->block + r->data_bytes : 0},
        {a->nodes, (size_t)a->capacity * r->gpu->node_bytes},
        {a->chunk_memory, (size_t)a->chunks * a->chunk_bytes},
        {a->roots, a->roots ? a->count * r->task_bytes : 0},
        {a->out, a->out ? a->count * r->result_bytes : 0},
        {a->sums, r->gpu->folds ? a->count * r->result_bytes : 0},
        {a->spans, a->most_spans * sizeof *a->spans},
    };
    const size_t count = sizeof parts / sizeof parts[0];
    for (size_t i = 0; i < count; i++) {
        if (parts[i].bytes > 0 && !fake_find(parts[i].at, parts[i].bytes))
            return "a recursion's kernel is given memory that it cannot reach";
        for (size_t k = 0; k < i; k++)
            if (overlap(&parts[i], &parts[k]))
                return "two parts of a recursion's memory overlap";
    }
    return NULL;
}

static const char *check_memory(const dpr_recursion *r, const dpr_recursion_args *a) {
    if (a->tag == 0 && (!a->out || !a->roots))
        return "roots or results of a run that nobody waits for are not in the caller's memory";
    if (!a->out && a->count * r->result_bytes > DPR_RECURSION_LETTER)
        return "results that do not fit the mailbox have no memory";
    if (!a->roots && a->count * r->task_bytes > sizeof a->few_roots)
        return "roots that do not fit the arguments are not in memory";
    return check_parts(r, a);
}

/* A word with a later tag is of a run that got the mailbox while this one could still write it. */
static const char *check_mailbox(const dpr_recursion_args *a) {
    if (a->tag == 0)
        return fake_find(a->mailbox, sizeof(dpr_recursion_outcome)) ? NULL : "an outcome is out of reach of its kernel";
    const fake_block *block = fake_find(a->mailbox, DPR_MAIL_WORDS * sizeof *a->mailbox);
    if (!block || block->kind != FAKE_PINNED)
        return "a mailbox is no live pinned memory";
    for (int i = 0; i < DPR_MAIL_WORDS; i++)
        if (atomic_load((_Atomic(uint64_t) *)&a->mailbox[i]) >> 32 >= a->tag)
            return "a mailbox belongs to a later run, or has this one's outcome already";
    return NULL;
}

static const char *check_arena(const dpr_recursion_args *a) {
    static const unsigned char zeros[DPR_SCRATCH_BYTES];
    return memcmp(a->arena, zeros, sizeof zeros) == 0 ? NULL : "the arena is not zero when a run begins";
}

/* ---- What kernels do ---- */

static void solve_roots(const dpr_recursion *r, const fake_recursion_launch *l, unsigned char *out) {
    const unsigned char *roots = l->args.roots ? l->args.roots : (const void *)l->args.few_roots;
    dpr_solver solver = {.data = l->data, .levels = 1};
    for (size_t i = 0; i < l->args.count; i++) {
        _Alignas(16) unsigned char slot[MOST_SLOT];
        memcpy(slot, roots + i * r->task_bytes, r->task_bytes);
        (void)r->solve(&solver, slot);
        memcpy(out + i * r->result_bytes, slot, r->result_bytes);
    }
}

/* The span that began first is the last one. */
static void write_spans(const dpr_recursion_args *a) {
    const uint32_t spans = fake_recursion.outcome.spans;
    for (uint32_t i = 0; i < spans && i < a->most_spans; i++) {
        const uint64_t begin = FIRST_NS + (i + 1 == spans || i + 1 == a->most_spans ? 0 : i + 1);
        a->spans[i] = (dpr_recursion_span){begin, begin + 1, i % 2 ? DPR_SPAN_SOLVE : DPR_SPAN_DIVIDE, i};
    }
}

/* As post() of arena.cuh. */
static void post(const dpr_recursion_args *a, size_t at, const void *from, size_t bytes) {
    for (size_t i = 0; i * sizeof(uint32_t) < bytes; i++) {
        uint32_t word;
        memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
        atomic_store((_Atomic(uint64_t) *)&a->mailbox[at + i], (uint64_t)a->tag << 32 | word);
    }
}

/* Writes results and report, as kernels do at the end of a run. */
static const char *finish(const dpr_recursion *r, const fake_recursion_launch *l) {
    dpr_recursion_outcome outcome = fake_recursion.outcome;
    const size_t bytes = l->args.count * r->result_bytes;
    const char *wrong = check_mailbox(&l->args);
    unsigned char letter[DPR_RECURSION_LETTER] = {0};
    if (wrong)
        return wrong;
    if (l->args.capacity == 0 && fake_recursion.is_large)
        outcome.status = DPR_ERR_STRATEGY_UNABLE;
    if (l->args.capacity > 0 && l->args.capacity < fake_recursion.least_capacity)
        outcome.status = DPR_ERR_OUT_OF_MEMORY;
    if (outcome.status == DPR_OK)
        solve_roots(r, l, l->args.out ? l->args.out : letter);
    if (outcome.status == DPR_OK && l->args.out && bytes <= sizeof letter)
        memcpy(letter, l->args.out, bytes);
    write_spans(&l->args);
    memset(l->args.arena, 0, DPR_SCRATCH_BYTES);
    if (l->args.tag == 0) {
        memcpy(l->args.mailbox, &outcome, sizeof outcome);
        return NULL;
    }
    post(&l->args, 0, &outcome, sizeof outcome);
    post(&l->args, sizeof outcome / sizeof(uint32_t), letter, sizeof letter);
    return NULL;
}

int fake_recursion_is_unfinished(const void *arena) {
    return *(const uint32_t *)arena <= fake_recursion.phases;
}

/* The first word of the arena counts the phases, from 1 on, so that a run that breaks off leaves it behind. */
static const char *run_phase(const dpr_recursion *r, const fake_recursion_launch *l) {
    uint32_t *done = (uint32_t *)l->args.arena;
    if (l->what == DPR_LAUNCH_END && fake_recursion_is_unfinished(done))
        return "a run in phases ends before they are done";
    if (l->what == DPR_LAUNCH_END || (l->what == DPR_LAUNCH_END_IF_DUE && !fake_recursion_is_unfinished(done)))
        return finish(r, l);
    const char *wrong = l->what == DPR_LAUNCH_BEGIN ? check_arena(&l->args) : NULL;
    *done += l->what != DPR_LAUNCH_END_IF_DUE;
    return wrong;
}

const char *fake_recursion_run(const fake_recursion_launch *l) {
    const dpr_recursion *r = fake_recursion.of;
    const char *wrong = check_memory(r, &l->args);
    if (wrong)
        return wrong;
    if (l->kernel == &phase)
        return run_phase(r, l);
    wrong = check_arena(&l->args);
    return wrong ? wrong : finish(r, l);
}

/* ---- The kernel that measures costs ---- */

const char *fake_probe_prepare(const cudaLaunchConfig_t *config, int cooperative, const dpr_probe_args *args) {
    fake_recursion.probes += args->rounds > 0;
    return cooperative == (config->gridDim.x > 1)
               ? NULL
               : "a grid whose blocks wait for each other is cooperative, and no other";
}

const char *fake_probe_run(const dpr_probe_args *args) {
    const dpr_recursion_args a = {.arena = args->run.scratch, .mailbox = args->run.out, .tag = args->run.tag};
    const char *wrong = check_mailbox(&a);
    if (!wrong)
        wrong = check_arena(&a);
    if (!wrong)
        post(&a, 0, &fake_recursion.times, sizeof fake_recursion.times);
    return wrong;
}

/* ---- The kernels that measure what a graph takes that launches itself ---- */

static const uint64_t device_clock = UINT64_C(3) << 40;

int fake_relaunch_has(const void *kernel) {
    return fake_module_gave(kernel) && strcmp(kernel, "dpr_relaunch_tell") == 0;
}

const char *fake_relaunch_prepare(const dpr_relaunch_args *args) {
    fake_recursion.relaunches += args->rounds > 0;
    return args->rounds == 0 || (args->deadline > device_clock && args->deadline < device_clock + 1000000000)
               ? NULL
               : "a graph that launches itself has no deadline, or one that is far away";
}

const char *fake_relaunch_run(const dpr_relaunch_args *args) {
    const dpr_recursion_args a = {.arena = args->run.scratch, .mailbox = args->run.out, .tag = args->run.tag};
    const dpr_relaunch_times times = {.rounds_ns = args->rounds > 0 ? fake_recursion.relaunch_ns : 0,
                                      .now_low = (uint32_t)device_clock,
                                      .now_high = (uint32_t)(device_clock >> 32)};
    const char *wrong = check_mailbox(&a);
    if (!wrong)
        wrong = check_arena(&a);
    if (!wrong && !(fake_recursion.has_no_end && args->rounds > 0))
        post(&a, 0, &times, sizeof times);
    return wrong;
}
