/* The engine `persistent` on the host. persistent.cuh has its kernel, and phases.cuh that for policies with teams. */
#include "api/ctx.h"
#include "costs.h"
#include "job.h"

enum {
    SMALL_LANES = 128, /* if few tasks are to be expected */
    TINY_LANES = 32,   /* if one warp does them */
    TEAM = 256,        /* threads */
    MOST_TEAMS = 4     /* of an SM: the kernel's launch bounds */
};

/* Shared memory that blocks are permitted: if it is more than what every kernel may have, then all that the device has,
 * so that no run takes away what another run, or a captured graph, has been permitted. */
static unsigned permitted_bytes(const dpr_job *j) {
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(j->call->ctx)->caps.gpu;
    return (unsigned)((int64_t)j->shared_bytes > gpu->shared_per_block ? (size_t)gpu->shared_per_block_optin
                                                                       : j->shared_bytes);
}

static cudaError_t find_kernel(const dpr_job *j, void **out) {
    *out = j->function;
    return *out ? cudaSuccess : (cudaError_t)j->call->recursion->gpu->persistent(permitted_bytes(j), out);
}

static int launch(const dpr_run *run) {
    const dpr_job *j = run->in;
    const dpr_recursion *r = j->call->recursion;
    dpr_recursion_args args;
    void *function = NULL, *params[] = {&args, (void *)j->call->data};
    cudaError_t error = dpr_job_begin(run, j, &args);
    if (error == cudaSuccess)
        error = find_kernel(j, &function);
    const unsigned blocks = j->at_once || dpr_job_is_small(j) ? 1 : j->blocks * (unsigned)run->sms;
    if (error == cudaSuccess)
        error = dpr_job_launch(run, j, function, blocks, blocks > 1 || r->gpu->teams, params);
    return (int)(error == cudaSuccess ? dpr_job_end(run, j, &args) : error);
}

static const dpr_strategy strategy = {
    .name = "persistent",
    .text = "runs the engine \"persistent\"",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .launch = launch,
    .workspace_bytes = dpr_job_workspace_bytes,
};

/* Bytes of shared memory besides stacks. */
static size_t fixed_bytes(const dpr_recursion *r) {
    return r->gpu->teams ? dpr_job_fixed_bytes(r) : 0;
}

static unsigned choose_threads(const dpr_recursion_call *call, unsigned most_lanes, unsigned *slots) {
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(call->ctx)->caps.gpu;
    const dpr_recursion *r = call->recursion;
    return dpr_job_threads(r, r->gpu->teams ? TEAM : most_lanes,
                           (size_t)(r->gpu->teams ? gpu->shared_per_block : gpu->shared_per_block_optin),
                           fixed_bytes(r), slots);
}

/* Blocks an SM that are there at a time. */
static unsigned count_blocks(const dpr_job *j) {
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(j->call->ctx)->caps.gpu;
    const int64_t fitting = gpu->shared_per_sm / ((int64_t)j->shared_bytes + gpu->shared_reserved_per_block);
    if (!j->call->recursion->gpu->teams || fitting < 1)
        return 1;
    return fitting < MOST_TEAMS ? (unsigned)fitting : MOST_TEAMS;
}

/* Slots of each stack of a warp whose memory is to have DPR_TINY_NODES nodes, and a letter, besides a task's children
 * and a row for one that is out of range. */
static unsigned tiny_slots(const dpr_recursion *r) {
    const unsigned row = TINY_LANES * r->gpu->slot_bytes;
    return (unsigned)r->most_children + 1 + (DPR_TINY_NODES * (r->gpu->slot_bytes + DPR_TINY_LINK) + 256) / row + 1;
}

static void size_job(dpr_job *j, unsigned most_lanes) {
    j->blocks = 1;
    j->threads = choose_threads(j->call, most_lanes, &j->args.slots);
    if (j->at_once && j->args.slots > tiny_slots(j->call->recursion))
        j->args.slots = tiny_slots(j->call->recursion);
    dpr_job_size(j, fixed_bytes(j->call->recursion));
    j->blocks = count_blocks(j);
}

static dpr_status run_sized(dpr_job *j, unsigned most_lanes, dpr_recursion_report *report) {
    size_job(j, most_lanes);
    j->launches++;
    return dpr_job_run(j, &strategy, report);
}

/* What one warp was to solve, and has not, is done as if it had not tried. */
static dpr_status run_persistent(const dpr_recursion_call *call, dpr_recursion_report *report) {
    dpr_job j = {.call = call};
    dpr_status status = dpr_job_places(&j);
    if (status != DPR_OK)
        return status;
    j.at_once = dpr_job_is_tiny(&j);
    if (j.at_once)
        status = run_sized(&j, TINY_LANES, report);
    if (status != DPR_OK || (j.at_once && !j.unsolved))
        return status;
    j.at_once = 0;
    return run_sized(&j, dpr_job_is_small(&j) ? SMALL_LANES : call->recursion->gpu->most_lanes, report);
}

/* ---- Runs that are enqueued ---- */

static cudaError_t load(dpr_job *j) {
    return find_kernel(j, &j->function);
}

/* With sizes for any number of tasks, because the host cannot repeat the run with larger ones. */
static dpr_status enqueue(const dpr_recursion_call *call, dpr_recursion_outcome *outcome) {
    dpr_job j = {.call = call};
    if (call->n == 0)
        return dpr_job_enqueue_nothing(call, outcome);
    size_job(&j, call->recursion->gpu->most_lanes);
    const dpr_status status = dpr_job_load(&j, load);
    return status == DPR_OK ? dpr_job_enqueue(&j, &strategy, outcome) : status;
}

/* ---- The engine ---- */

static const char *refusal(const dpr_recursion_call *call) {
    unsigned slots;
    const char *why = dpr_job_refusal(call);
    if (why)
        return why;
    if (choose_threads(call, call->recursion->gpu->most_lanes, &slots) == 0)
        return "has no room in shared memory for a task's children";
    return dpr_ctx_machine(call->ctx)->caps.gpu.cooperative_launch ? NULL : "needs cooperative launches";
}

/* A launch, and one warp for few tasks. */
static double least_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return dpr_costs_scale(call, 9e-6) + dpr_costs_levels(call, tasks);
}

/* A first run is by a whole grid. Teams do costly tasks, so their number says nothing about the time of one. */
static double likely_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    const dpr_recursion_kernels *gpu = call->recursion->gpu;
    const dpr_costs costs = dpr_costs_here(call);
    unsigned slots;
    return dpr_costs_persistent(&costs, tasks, dpr_engine_levels(call, tasks),
                                gpu->teams ? DPR_MOST_LANES : choose_threads(call, gpu->most_lanes, &slots));
}

const dpr_engine dpr_engine_persistent = {
    .name = "persistent",
    .text = "one kernel, whose lanes solve sub-trees in shared memory and share what is left",
    .on_gpu = 1,
    .refusal = refusal,
    .run = run_persistent,
    .enqueue = enqueue,
    .least_seconds = least_seconds,
    .likely_seconds = likely_seconds,
    .measure = dpr_costs_measure,
};
