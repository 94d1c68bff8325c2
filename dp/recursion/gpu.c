/* The engine `persistent` on the host: memory, launch and report. persistent.cuh has the kernel.
 *
 * The run goes the way of every blocking run (host/cuda/wait.c), as one of a strategy that is in no list: so it has
 * scratch memory, workspace and a mailbox, and streams, captures and errors are treated as elsewhere. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "args.h"
#include "cuda/driver.h"
#include "cuda/home.h"
#include "engines.h"
#include "error.h"
#include "strategy.h"

/* Found on an H200, with fib(40), fib(45) and nqueens(15). */
enum {
    MOST_LANES = 1024,      /* in the one block of an SM */
    LANE_STEP = 128,        /* lanes are a multiple of this */
    SPARE_SLOTS = 24,       /* slots of a stack, at least, with which lanes seldom have to give frames away */
    MOST_SLOTS = 255,       /* more do not help */
    FRONTIER = 1 << 20,     /* tasks: eight for each lane. With 2^18 or 2^22 fib(40) takes a tenth longer */
    BUDGET = 256,           /* steps */
    ARENA = 1 << 23,        /* nodes, if no arena_tasks are given. fib(40) takes 3 million */
    ARENA_BYTES = 1 << 29,  /* of these, at most */
    LEAST_CHUNKS = 1 << 16, /* for stacks that find the arena full */
    LANE_CHUNKS = 8,
    CHUNK_BYTES = 1 << 28, /* of all chunks, at most, if they are more than LEAST_CHUNKS */
    CHUNK_HEAD = 32,       /* bytes of a chunk before its slots */
};

typedef struct layout {
    size_t roots, out, chunks, nodes, bytes; /* where they begin in the workspace; its size */
} layout;

/* What launch() needs beyond the run. `call` is run->in. */
typedef struct job {
    const dpr_recursion_call *call;
    dpr_persistent_args args; /* all but pointers */
    layout at;
    unsigned lanes;
    size_t shared_bytes;
    int roots_on_host, out_on_host;
    void *results; /* host memory for results that fit no mailbox, or NULL */
} job;

/* What arrives in the mailbox. */
typedef struct letter {
    dpr_persistent_report report;
    unsigned char results[DPR_PERSISTENT_LETTER];
} letter;
_Static_assert(sizeof(letter) <= DPR_MAIL_WORDS * 4, "it fits a mailbox");

/* ---- Sizes ---- */

static size_t stack_bytes(const dpr_recursion_kernels *k, unsigned slots) {
    return (size_t)k->slot_bytes + (size_t)slots * (k->slot_bytes + k->header_bytes);
}

/* The most lanes whose stacks have enough slots. Sets *slots. 0 if a task's children do not fit. */
static unsigned choose_lanes(const dpr_recursion *r, size_t shared, unsigned *slots) {
    const dpr_recursion_kernels *k = r->gpu;
    const size_t least = (size_t)r->most_children + 2, wanted = least > SPARE_SLOTS ? least : SPARE_SLOTS;
    unsigned lanes = MOST_LANES;
    while (lanes > 32 && lanes * stack_bytes(k, (unsigned)wanted) > shared)
        lanes -= lanes > LANE_STEP ? LANE_STEP : 32;
    if (lanes * stack_bytes(k, (unsigned)least) > shared)
        return 0;
    const size_t fitting = (shared / lanes - k->slot_bytes) / (k->slot_bytes + k->header_bytes);
    *slots = fitting > MOST_SLOTS && least <= MOST_SLOTS ? MOST_SLOTS : (unsigned)fitting;
    return lanes;
}

static size_t after(size_t *end, size_t bytes) {
    const size_t begin = (*end + 255) / 256 * 256;
    *end = begin + bytes;
    return begin;
}

static layout lay_out(const job *j) {
    const dpr_recursion *r = j->call->recursion;
    layout at = {0};
    at.roots = after(&at.bytes, j->roots_on_host ? j->call->n * r->task_bytes : 0);
    at.out = after(&at.bytes, j->out_on_host ? j->call->n * r->result_bytes : 0);
    at.chunks = after(&at.bytes, (size_t)j->args.chunks * j->args.chunk_bytes);
    at.nodes = after(&at.bytes, (size_t)j->args.capacity * r->gpu->node_bytes);
    return at;
}

static uint32_t least_of(uint64_t a, uint64_t b) {
    return (uint32_t)(a < b ? a : b);
}

static uint32_t default_arena(const dpr_recursion_call *call) {
    const uint32_t fitting = least_of(ARENA, ARENA_BYTES / call->recursion->gpu->node_bytes);
    return call->n > fitting / 2 ? (uint32_t)call->n * 2 : fitting;
}

/* A lane needs several chunks where recursions are deep, but in a small arena few lanes have work. */
static uint32_t count_chunks(const job *j, int sms) {
    const uint64_t lanes = (uint64_t)j->lanes * (uint64_t)sms;
    const uint32_t wanted = least_of(LANE_CHUNKS * lanes, CHUNK_BYTES / j->args.chunk_bytes);
    return wanted > LEAST_CHUNKS && j->args.capacity > lanes ? wanted : LEAST_CHUNKS;
}

static void size_up(const dpr_recursion_call *call, job *j) {
    const dpr_recursion *r = call->recursion;
    const dpr_recursion_options *o = &call->options;
    const size_t shared = (size_t)dpr_ctx_machine(call->ctx)->caps.gpu.shared_per_block_optin;
    j->lanes = choose_lanes(r, shared, &j->args.slots);
    j->shared_bytes = j->lanes * stack_bytes(r->gpu, j->args.slots);
    j->args.count = (uint32_t)call->n;
    j->args.capacity = o->arena_tasks ? (uint32_t)o->arena_tasks : default_arena(call);
    j->args.frontier = FRONTIER;
    j->args.budget = BUDGET;
    j->args.chunk_bytes =
        (uint32_t)(CHUNK_HEAD + j->args.slots * (r->gpu->slot_bytes + r->gpu->header_bytes) + 15) / 16 * 16;
    j->args.chunks = count_chunks(j, dpr_device_residence(dpr_ctx_gpu(call->ctx)).sms);
    j->args.max_depth = least_of(o->max_depth, UINT32_MAX / 2);
    j->args.max_tasks = o->max_tasks ? o->max_tasks : UINT64_MAX;
    j->at = lay_out(j);
}

/* ---- The run ---- */

static size_t workspace_bytes(const dpr_run *run) {
    return ((const job *)run->in)->at.bytes;
}

static cudaError_t copy_roots(const dpr_run *run, const job *j, dpr_persistent_args *args) {
    const size_t bytes = j->call->n * j->call->recursion->task_bytes;
    args->roots = j->call->roots;
    if (!j->roots_on_host)
        return cudaSuccess;
    args->roots = NULL;
    if (bytes <= sizeof args->few_roots) {
        memcpy(args->few_roots, j->call->roots, bytes);
        return cudaSuccess;
    }
    args->roots = (char *)run->workspace + j->at.roots;
    return cudaMemcpyAsync((void *)args->roots, j->call->roots, bytes, cudaMemcpyDefault, run->stream);
}

static cudaError_t launch_kernel(const dpr_run *run, const job *j, dpr_persistent_args *args) {
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    CUlaunchConfig config = {.gridDimX = (unsigned)run->sms,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = j->lanes,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = (unsigned)j->shared_bytes,
                             .hStream = run->stream,
                             .attrs = &cooperative,
                             .numAttrs = 1};
    void *function = NULL, *params[] = {args, (void *)j->call->data};
    const int error = j->call->recursion->gpu->persistent((unsigned)j->shared_bytes, &function);
    return error ? (cudaError_t)error
                 : (cudaError_t)dpr_driver()->launch_kernel_ex(&config, (CUfunction)function, params, NULL);
}

static int launch(const dpr_run *run) {
    const job *j = run->in;
    const dpr_recursion *r = j->call->recursion;
    dpr_persistent_args args = j->args;
    args.arena = run->scratch;
    args.chunk_memory = (char *)run->workspace + j->at.chunks;
    args.nodes = (char *)run->workspace + j->at.nodes;
    args.mailbox = run->out;
    args.tag = run->tag;
    args.out = j->out_on_host ? (char *)run->workspace + j->at.out : (char *)j->call->out;
    cudaError_t error = copy_roots(run, j, &args);
    if (error == cudaSuccess)
        error = launch_kernel(run, j, &args);
    if (error == cudaSuccess && j->results)
        error = cudaMemcpyAsync(j->results, args.out, j->call->n * r->result_bytes, cudaMemcpyDefault, run->stream);
    return (int)error;
}

static const dpr_strategy strategy = {
    .name = "recursion",
    .text = "runs the engine \"persistent\"",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .launch = launch,
    .workspace_bytes = workspace_bytes,
};

/* Runs on the SMs of the stream, which may be fewer than the device's. */
static dpr_status run_job(const dpr_recursion_call *call, job *j, letter *from) {
    dpr_device *gpu = dpr_ctx_gpu(call->ctx);
    dpr_run run = {.in = j, .stream = call->stream, .sms = dpr_device_residence(gpu).sms};
    dpr_misfit misfit = {0, 0};
    dpr_status status = dpr_device_run_blocking(gpu, &strategy, &run, from, sizeof *from, &misfit);
    if (status == DPR_ERR_STRATEGY_UNABLE && misfit.sms != 0) {
        run.sms = misfit.sms;
        status = dpr_device_run_blocking(gpu, &strategy, &run, from, sizeof *from, &misfit);
    }
    return status;
}

static dpr_status read_letter(const dpr_recursion_call *call, const job *j, const letter *from,
                              dpr_recursion_report *report) {
    const dpr_persistent_report *r = &from->report;
    const dpr_recursion *recursion = call->recursion;
    if (r->error == DPR_ERR_DIVIDE)
        return dpr_fail(DPR_ERR_DIVIDE, "divide() of recursion \"%s\" returned %d, and must return 0 to %d",
                        recursion->name, r->wrong, recursion->most_children);
    if (r->error == DPR_ERR_LIMIT)
        return dpr_fail(
            DPR_ERR_LIMIT,
            "recursion \"%s\" has a task deeper than options->max_depth, which is %llu, or a lane has solved "
            "more than options->max_tasks, which is %llu",
            recursion->name, (unsigned long long)call->options.max_depth, (unsigned long long)call->options.max_tasks);
    if (r->error == DPR_ERR_STRATEGY_UNABLE)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "engine \"persistent\" lost tasks of recursion \"%s\"",
                        recursion->name);
    if (r->error != DPR_OK)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY,
                        "the stacks of recursion \"%s\" need more than %u pieces of memory, because "
                        "options->arena_tasks, which is %llu, is too small",
                        recursion->name, j->args.chunks, (unsigned long long)call->options.arena_tasks);
    if (j->out_on_host)
        memcpy(call->out, j->results ? j->results : from->results, call->n * recursion->result_bytes);
    report->tasks = r->tasks;
    report->deepest = r->deepest;
    report->levels = r->levels;
    report->widest = r->widest;
    report->rounds = r->rounds;
    report->launches = 1;
    report->handed_out = r->nodes;
    report->serialised = r->serialised;
    return DPR_OK;
}

/* Whether a kernel cannot reach the memory. */
static dpr_status is_on_host(const dpr_recursion_call *call, const char *name, const void *at, int *out) {
    dpr_place place;
    dpr_status status = dpr_device_place(at, name, &place);
    if (status == DPR_OK)
        status = dpr_ctx_reaches(call->ctx, name, place);
    *out = place.memory == DPR_MEMORY_HOST;
    return status;
}

static dpr_status run_persistent(const dpr_recursion_call *call, dpr_recursion_report *report) {
    job j = {.call = call};
    letter from;
    dpr_status status = is_on_host(call, "roots", call->roots, &j.roots_on_host);
    if (status == DPR_OK)
        status = is_on_host(call, "out", call->out, &j.out_on_host);
    if (status != DPR_OK)
        return status;
    size_up(call, &j);
    const size_t bytes = call->n * call->recursion->result_bytes;
    if (j.out_on_host && bytes > sizeof from.results) {
        j.results = malloc(bytes);
        if (!j.results)
            return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu results", call->n);
    }
    status = run_job(call, &j, &from);
    if (status == DPR_OK)
        status = read_letter(call, &j, &from, report);
    free(j.results);
    return status;
}

/* ---- The engine ---- */

static const char *refusal(const dpr_recursion_call *call) {
    if (!call->recursion->gpu)
        return "needs a policy that nvcc has compiled";
    if (!dpr_ctx_gpu(call->ctx))
        return "needs a context of a GPU";
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(call->ctx)->caps.gpu;
    unsigned slots;
    if (choose_lanes(call->recursion, (size_t)gpu->shared_per_block_optin, &slots) == 0)
        return "has no room in shared memory for a task's children";
    return !gpu->cooperative_launch ? "needs cooperative launches" : !gpu->memory_pools ? "needs memory pools" : NULL;
}

const dpr_engine dpr_engine_persistent = {
    .name = "persistent",
    .text = "one kernel, whose lanes solve sub-trees in shared memory and share what is left",
    .on_gpu = 1,
    .refusal = refusal,
    .run = run_persistent,
};
