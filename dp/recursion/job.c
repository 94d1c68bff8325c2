/* Runs of recursions on the GPU: memory, launch and report.
 *
 * A run goes the way of every blocking run (host/cuda/wait.c), or, if it is enqueued, of every run in a stream
 * (host/cuda/run.c), as one of a strategy that is in no list: so it has scratch memory, workspace and a mailbox, and
 * streams, captures and errors are treated as elsewhere. What is enqueued has no mailbox: its kernels write the
 * caller's memory. */
#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "args.h"
#include "clock.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/home.h"
#include "error.h"
#include "nested_args.h"

/* Found on an H200, with fib(40), fib(45) and nqueens(15). */
enum {
    MOST_SLOTS = 255,   /* more do not help */
    FRONTIER = 1 << 20, /* tasks. With 2^18 or 2^22 fib(40) takes a tenth longer */
    FRONTIER_OF_LANE = 4,
    LEAST_FRONTIER = 1 << 13,
    BUDGET = 256,           /* steps */
    ARENA = 1 << 23,        /* nodes, if no arena_tasks are given. fib(40) takes 3 million */
    ARENA_BYTES = 1 << 29,  /* of these, at most */
    LEAST_CHUNKS = 1 << 16, /* for stacks that find the arena full, if so many fit CHUNK_BYTES */
    SMALL_ARENA = 1 << 14,  /* nodes, and chunks, for few tasks */
    SMALL_CHUNKS = 1 << 12,
    TINY = 512,            /* tasks, which one warp does sooner than a block */
    TINY_BYTES = 60 << 10, /* of shared memory, for twice as many of them */
    FIRST_TASKS = 64,      /* that a warp tries to do first, if nobody knows how many there are */
    LANE_CHUNKS = 8,
    CHUNK_BYTES = 1 << 28, /* of all chunks, at most */
    CHUNK_HEAD = 32,       /* bytes of a chunk before its slots */
    MOST_SPANS = 1 << 16,  /* dpr_recursion_options.trace */
};

/* What arrives in the mailbox. */
typedef struct letter {
    dpr_recursion_outcome outcome;
    unsigned char results[DPR_RECURSION_LETTER];
} letter;
_Static_assert(sizeof(letter) <= DPR_MAIL_WORDS * 4, "it fits a mailbox");
_Static_assert(sizeof(dpr_recursion_block) % 16 == 0, "the data behind it are aligned");

const char *dpr_job_refusal(const dpr_recursion_call *call) {
    if (!call->recursion->gpu)
        return "needs a policy that nvcc has compiled";
    if (!dpr_ctx_gpu(call->ctx))
        return "needs a context of a GPU";
    return dpr_ctx_machine(call->ctx)->caps.gpu.memory_pools ? NULL : "needs memory pools";
}

dpr_status dpr_job_explain(const dpr_recursion_call *call, dpr_status status) {
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(call->ctx)->caps.gpu;
    if (status == DPR_OK || dpr_last_cuda_error() != cudaErrorNoKernelImageForDevice)
        return status;
    return dpr_fail_cuda(cudaErrorNoKernelImageForDevice, DPR_ERR_STRATEGY_UNABLE,
                         "recursion \"%s\" has no kernel for device %d of compute capability %d.%d: its policy must be "
                         "compiled for that architecture",
                         call->recursion->name, dpr_ctx_device(call->ctx), (int)gpu->cc_major, (int)gpu->cc_minor);
}

/* ---- Sizes ---- */

static unsigned lanes_of(const dpr_recursion *r, unsigned threads) {
    return r->gpu->teams ? 1 : threads;
}

static size_t stack_bytes(const dpr_recursion_kernels *k, unsigned slots) {
    return (size_t)k->slot_bytes + (size_t)slots * (k->slot_bytes + k->header_bytes);
}

size_t dpr_job_fixed_bytes(const dpr_recursion *r) {
    return 16 + (r->gpu->team_bytes + 15) / 16 * 16;
}

unsigned dpr_job_threads(const dpr_recursion *r, unsigned most_threads, size_t shared, size_t fixed, unsigned *slots) {
    const dpr_recursion_kernels *k = r->gpu;
    const size_t least = (size_t)r->most_children + 2, wanted = least > DPR_SPARE_SLOTS ? least : DPR_SPARE_SLOTS;
    unsigned threads = most_threads;
    shared = shared > fixed ? shared - fixed : 0;
    while (!k->teams && threads > 32 && threads * stack_bytes(k, (unsigned)wanted) > shared)
        threads -= threads > DPR_LANE_STEP ? DPR_LANE_STEP : 32;
    const unsigned lanes = lanes_of(r, threads);
    if (lanes * stack_bytes(k, (unsigned)least) > shared)
        return 0;
    const size_t fitting = (shared / lanes - k->slot_bytes) / (k->slot_bytes + k->header_bytes);
    *slots = fitting > MOST_SLOTS && least <= MOST_SLOTS ? MOST_SLOTS : (unsigned)fitting;
    return threads;
}

static size_t after(size_t *end, size_t bytes) {
    const size_t begin = (*end + 255) / 256 * 256;
    *end = begin + bytes;
    return begin;
}

static size_t result_bytes(const dpr_job *j) {
    return j->call->n * j->call->recursion->result_bytes;
}

/* Whether results come with the report. */
static int come_by_mail(const dpr_job *j) {
    return j->out_on_host && result_bytes(j) <= DPR_RECURSION_LETTER;
}

/* The workspace of a run with nested launches begins with room for a report. */
static dpr_job_layout lay_out(const dpr_job *j) {
    const dpr_recursion *r = j->call->recursion;
    dpr_job_layout at = {.bytes = DPR_REPORT_BYTES};
    if (j->at_once)
        return (dpr_job_layout){0};
    at.block = after(&at.bytes, sizeof(dpr_recursion_block) + r->data_bytes);
    at.roots = after(&at.bytes, j->roots_on_host ? j->call->n * r->task_bytes : 0);
    at.out = after(&at.bytes, j->out_on_host && !come_by_mail(j) ? result_bytes(j) : 0);
    at.sums = after(&at.bytes, r->gpu->folds ? j->call->n * r->result_bytes : 0);
    at.spans = after(&at.bytes, j->args.most_spans * sizeof(dpr_recursion_span));
    at.chunks = after(&at.bytes, (size_t)j->args.chunks * j->args.chunk_bytes);
    at.nodes = after(&at.bytes, (size_t)j->args.capacity * r->gpu->node_bytes);
    return at;
}

static uint32_t least_of(uint64_t a, uint64_t b) {
    return (uint32_t)(a < b ? a : b);
}

int dpr_job_is_small(const dpr_job *j) {
    enum { FEW = 2048 };
    return j->call->tasks > 0 && j->call->tasks <= FEW && !j->call->recursion->gpu->teams;
}

int dpr_job_is_tiny(const dpr_job *j) {
    const dpr_recursion_call *call = j->call;
    const size_t nodes = ((size_t)call->recursion->most_children + 1) * 32 + 2 * call->tasks;
    if (!dpr_job_is_small(j) || call->tasks > TINY || call->options.trace
        || nodes > TINY_BYTES / (call->recursion->gpu->slot_bytes + DPR_TINY_LINK))
        return 0;
    const int has_roots = !j->roots_on_host || call->n * call->recursion->task_bytes <= sizeof j->args.few_roots;
    return has_roots && (!j->out_on_host || come_by_mail(j));
}

/* Tasks that a warp tries to do before others begin. If it succeeds, the caller may free the roots, so no other block
 * may read them: they are so few that one block places them all. */
static uint32_t count_first_tasks(const dpr_job *j) {
    if (j->at_once)
        return DPR_TINY_NODES;
    const int reads_alone = j->call->n < j->threads;
    return j->call->tasks <= FIRST_TASKS && !j->call->options.trace && reads_alone ? FIRST_TASKS : 0;
}

static uint64_t root_of(uint64_t n) {
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit /= 2)
        if ((root + bit) * (root + bit) <= n)
            root += bit;
    return root;
}

/* A larger frontier costs more, and evens out better what lanes do afterwards. With 32 times the root of the number of
 * tasks, fib(30) to fib(40) and nqueens(13) to nqueens(15) are near their best on an H200. */
static uint32_t choose_frontier(const dpr_job *j, uint64_t lanes) {
    const uint64_t wanted = 32 * root_of(j->call->tasks);
    if (j->call->recursion->gpu->teams)
        return UINT32_MAX;
    const uint32_t most = least_of(FRONTIER, FRONTIER_OF_LANE * lanes);
    return j->call->tasks == 0 || wanted > most ? most : wanted < LEAST_FRONTIER ? LEAST_FRONTIER : (uint32_t)wanted;
}

/* The most that a task of the frontier may cost, so that there are about as many as the frontier should have. Where all
 * that cost more are divided, those that are left cost 0.62 of it on average in trees like fib's, and from 0.72 to 0.34
 * where tasks have 2 to 15 equal children: (1 - 1 / n) / ln n. */
static uint64_t find_undivided(const dpr_job *j) {
    const uint64_t cost = j->call->cost, n = j->args.frontier;
    return j->call->recursion->gpu->teams ? 0 : cost / n * 8 / 5 + cost % n * 8 / 5 / n;
}

static uint32_t default_arena(const dpr_job *j) {
    const dpr_recursion_call *call = j->call;
    if (dpr_job_is_small(j))
        return SMALL_ARENA;
    const uint32_t fitting = least_of(ARENA, ARENA_BYTES / call->recursion->gpu->node_bytes);
    return call->n > fitting / 2 ? (uint32_t)call->n * 2 : fitting;
}

/* A lane needs several chunks where recursions are deep. In a small arena few lanes have work: one for each task, or if
 * results are folded a warp, whose lanes share it. If the caller sets the arena's size, the run is not repeated when it
 * has more tasks than expected, so it gets as many chunks as a run of which nothing is expected. */
static uint32_t count_chunks(const dpr_job *j, uint64_t lanes) {
    const uint32_t fitting = CHUNK_BYTES / j->args.chunk_bytes;
    if (dpr_job_is_small(j) && !j->call->options.arena_tasks)
        return least_of(SMALL_CHUNKS, fitting);
    const uint64_t wanted =
        LANE_CHUNKS * least_of(lanes, (uint64_t)j->args.capacity * (j->call->recursion->gpu->folds ? 32 : 1));
    return least_of(wanted > LEAST_CHUNKS ? wanted : LEAST_CHUNKS, fitting);
}

void dpr_job_size(dpr_job *j, size_t fixed) {
    const dpr_recursion_call *call = j->call;
    const dpr_recursion *r = call->recursion;
    const dpr_recursion_options *o = &call->options;
    const int sms = dpr_device_residence(dpr_ctx_gpu(call->ctx)).sms;
    const uint64_t lanes = (uint64_t)lanes_of(r, j->threads) * j->blocks * (uint64_t)sms;
    j->shared_bytes = fixed + lanes_of(r, j->threads) * stack_bytes(r->gpu, j->args.slots);
    j->args.count = (uint32_t)call->n;
    j->args.capacity = j->at_once ? 0 : o->arena_tasks ? (uint32_t)o->arena_tasks : default_arena(j);
    j->args.first_tasks = count_first_tasks(j);
    j->args.frontier = choose_frontier(j, lanes);
    j->args.undivided = find_undivided(j);
    j->args.budget = BUDGET;
    j->args.chunk_bytes =
        (uint32_t)(CHUNK_HEAD + j->args.slots * (r->gpu->slot_bytes + r->gpu->header_bytes) + 15) / 16 * 16;
    j->args.chunks = j->at_once ? 0 : count_chunks(j, lanes);
    j->args.max_depth = least_of(o->max_depth, UINT32_MAX / 2);
    j->args.max_tasks = o->max_tasks ? o->max_tasks : UINT64_MAX;
    j->args.max_ns = (uint64_t)(1e9 * call->max_seconds) + 1;
    j->args.cutoff = call->cutoff;
    j->args.most_spans = o->trace ? MOST_SPANS : 0;
    j->args.threads = j->threads;
    j->args.teams = r->gpu->teams;
    j->args.shared_bytes = (uint32_t)j->shared_bytes;
    j->args.most_blocks = j->blocks * (unsigned)sms;
    j->at = lay_out(j);
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

dpr_status dpr_job_places(dpr_job *j) {
    const dpr_status status = is_on_host(j->call, "roots", j->call->roots, &j->roots_on_host);
    return status == DPR_OK ? is_on_host(j->call, "out", j->call->out, &j->out_on_host) : status;
}

/* ---- Launches ---- */

size_t dpr_job_workspace_bytes(const dpr_run *run) {
    return ((const dpr_job *)run->in)->at.bytes;
}

static cudaError_t copy_roots(const dpr_run *run, const dpr_job *j, dpr_recursion_args *args) {
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

cudaError_t dpr_job_begin(const dpr_run *run, const dpr_job *j, dpr_recursion_args *args) {
    char *memory = run->workspace;
    *args = j->args;
    args->arena = run->scratch;
    args->mailbox = run->out;
    args->tag = run->tag;
    args->out = j->out_on_host ? NULL : j->call->out;
    if (!memory)
        return copy_roots(run, j, args);
    args->block = (dpr_recursion_block *)(memory + j->at.block);
    args->chunk_memory = memory + j->at.chunks;
    args->nodes = memory + j->at.nodes;
    args->sums = memory + j->at.sums;
    args->spans = (dpr_recursion_span *)(memory + j->at.spans);
    if (j->out_on_host && !come_by_mail(j))
        args->out = memory + j->at.out;
    return copy_roots(run, j, args);
}

cudaError_t dpr_job_launch(const dpr_run *run, const dpr_job *j, void *function, unsigned blocks, int cooperative,
                           void **params) {
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    CUlaunchConfig config = {.gridDimX = blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = j->threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = (unsigned)j->shared_bytes,
                             .hStream = run->stream,
                             .attrs = &attribute,
                             .numAttrs = cooperative != 0};
    return (cudaError_t)dpr_driver()->launch_kernel_ex(&config, (CUfunction)function, params, NULL);
}

/* The results do not depend on spans, so an error that concerns these alone is none. */
static void forget_spans(const dpr_job *j) {
    ((dpr_recursion_span *)j->spans)->what = DPR_SPAN_NONE;
    (void)cudaGetLastError();
}

static void copy_spans(const dpr_run *run, const dpr_job *j, const dpr_recursion_args *args) {
    if (cudaMemcpyAsync(j->spans, args->spans, args->most_spans * sizeof *args->spans, cudaMemcpyDefault, run->stream)
        != cudaSuccess)
        forget_spans(j);
}

/* ---- Waiting ---- */

int dpr_job_has_ended(const dpr_run *run) {
    const volatile uint64_t *mail = run->out;
    return (uint32_t)(mail[0] >> 32) == run->tag;
}

/* Asks whether the stream's work is done. If nobody may ask, waits for all work, because what was launched may write
 * *out; with a limit of time, answers that it is not done. */
static cudaError_t ask(const dpr_run *run, const dpr_job *j) {
    const cudaError_t error = dpr_home_ask(run->stream);
    if (error != cudaErrorStreamCaptureImplicit)
        return error;
    return j->call->is_limited ? cudaErrorNotReady : dpr_home_wait();
}

/* Seconds that the host waits for kernels. Kernels look at the clock, but cannot end while a function of the policy
 * does not return. */
static double patience(const dpr_recursion_call *call) {
    return call->is_limited ? 2 * call->max_seconds + 1 : HUGE_VAL;
}

cudaError_t dpr_job_await(const dpr_run *run, const dpr_job *j) {
    while (!dpr_job_has_ended(run)) {
        const cudaError_t error = ask(run, j);
        if (error != cudaErrorNotReady || dpr_recursion_now() - j->began > patience(j->call))
            return error;
    }
    return cudaSuccess;
}

cudaError_t dpr_job_wait(const dpr_run *run) {
    return run->stream ? cudaStreamSynchronize(run->stream) : dpr_home_wait_for_legacy();
}

cudaError_t dpr_job_end(const dpr_run *run, const dpr_job *j, const dpr_recursion_args *args) {
    cudaError_t error = cudaSuccess;
    if (!j->results && !j->spans)
        return cudaSuccess;
    if (j->call->is_limited)
        error = dpr_job_await(run, j);
    if (error != cudaSuccess)
        return error;
    if (j->results)
        error = cudaMemcpyAsync(j->results, args->out, result_bytes(j), cudaMemcpyDefault, run->stream);
    if (error == cudaSuccess && j->spans)
        copy_spans(run, j, args);
    /* The mailbox may be full before copies are done; and after an error other runs may get it. */
    const cudaError_t waited = dpr_job_wait(run);
    if (waited != cudaSuccess && j->spans)
        forget_spans(j);
    return error != cudaSuccess ? error : j->results ? waited : cudaSuccess;
}

/* ---- Runs that are enqueued ---- */

/* Loading is allowed while a stream is captured, in the mode that this sets. */
dpr_status dpr_job_load(dpr_job *j, cudaError_t (*load)(dpr_job *)) {
    dpr_visit visit;
    const dpr_status status = dpr_home_enter_relaxed(dpr_device_home_of(dpr_ctx_gpu(j->call->ctx)), &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = load(j);
    dpr_home_leave(&visit);
    return error == cudaSuccess ? DPR_OK : dpr_job_explain(j->call, dpr_cuda_failed(error, "loading a kernel"));
}

/* On the SMs of the stream, which may be fewer than the device's. */
dpr_status dpr_job_enqueue(const dpr_job *j, const dpr_strategy *strategy, dpr_recursion_outcome *outcome) {
    dpr_device *gpu = dpr_ctx_gpu(j->call->ctx);
    dpr_run run = {.in = j, .out = outcome, .stream = j->call->stream, .sms = dpr_device_residence(gpu).sms};
    dpr_misfit misfit = {0, 0};
    dpr_status status = dpr_device_run(gpu, strategy, &run, &misfit);
    if (status == DPR_ERR_STRATEGY_UNABLE && misfit.sms != 0 && j->condition)
        return dpr_fail(
            DPR_ERR_STRATEGY_UNABLE,
            "engine \"%s\" cannot enqueue a run in stream %p, because a loop of a graph does not keep to the "
            "stream's %d SMs: use engine \"persistent\"",
            strategy->name, (void *)run.stream, misfit.sms);
    if (status == DPR_ERR_STRATEGY_UNABLE && misfit.sms != 0) {
        run.sms = misfit.sms;
        misfit = (dpr_misfit){0, 0};
        status = dpr_device_run(gpu, strategy, &run, &misfit);
    }
    return dpr_job_explain(j->call, status);
}

static int launch_nothing(const dpr_run *run) {
    return (int)cudaMemsetAsync(run->out, 0, sizeof(dpr_recursion_outcome), run->stream);
}

dpr_status dpr_job_enqueue_nothing(const dpr_recursion_call *call, dpr_recursion_outcome *outcome) {
    static const dpr_strategy nothing = {
        .name = "no roots", .text = "writes an outcome of zeros", .side = DPR_ON_GPU, .launch = launch_nothing};
    const dpr_job j = {.call = call};
    return dpr_job_enqueue(&j, &nothing, outcome);
}

/* ---- The run ---- */

/* Runs on the SMs of the stream, which may be fewer than the device's. */
static dpr_status run_on_device(const dpr_job *j, const dpr_strategy *strategy, letter *from) {
    const dpr_recursion_call *call = j->call;
    dpr_device *gpu = dpr_ctx_gpu(call->ctx);
    const double seconds = call->is_limited ? patience(call) : 0;
    dpr_run run = {.in = j,
                   .stream = call->stream,
                   .sms = dpr_device_residence(gpu).sms,
                   .max_pending = call->options.max_pending};
    dpr_misfit misfit = {0, 0};
    dpr_status status = dpr_device_run_limited(gpu, strategy, &run, from, sizeof *from, &misfit, seconds);
    if (status == DPR_ERR_STRATEGY_UNABLE && misfit.sms != 0) {
        run.sms = misfit.sms;
        status = dpr_device_run_limited(gpu, strategy, &run, from, sizeof *from, &misfit, seconds);
    }
    return status;
}

/* Waits until the run's launches meet none that they must not meet. */
static dpr_status take_turn(dpr_job *j, const dpr_strategy *strategy) {
    const double began = dpr_recursion_now();
    const dpr_apart_turn turn = dpr_apart_begin(j->apart, j->call->max_seconds);
    *j->call->waited += dpr_recursion_now() - began;
    if (turn == DPR_APART_LATE)
        return dpr_fail(
            DPR_ERR_LIMIT,
            "recursion \"%s\" has waited for %g seconds, its limit (options->max_seconds), for runs in other "
            "threads to end: launches by kernels of engine \"%s\" must not meet theirs",
            j->call->recursion->name, j->call->max_seconds, strategy->name);
    j->begun = turn == DPR_APART_BEGUN;
    return DPR_OK;
}

/* Nested launches of a run that is given up may stay pending for ever, so no graph launches itself afterwards. A graph
 * that is given up does not block other threads: their nested launches may begin. */
static dpr_status run_in_turn(dpr_job *j, const dpr_strategy *strategy, letter *from) {
    j->began = dpr_recursion_now();
    const dpr_status status = run_on_device(j, strategy, from);
    j->is_given_up = status == DPR_ERR_CUDA && dpr_last_cuda_error() == cudaErrorNotReady;
    if (j->is_given_up && j->apart == DPR_APART_NESTED)
        (void)dpr_apart_launches(1);
    if (j->begun)
        dpr_apart_end(j->apart);
    return status;
}

/* Waits for the work that the run comes after, because time is to be counted from then on. */
static dpr_status wait_for_work_before(const dpr_recursion_call *call) {
    dpr_device *gpu = dpr_ctx_gpu(call->ctx);
    const dpr_place here = {DPR_MEMORY_PINNED, dpr_ctx_device(call->ctx), dpr_device_home_of(gpu)->context};
    return call->stream ? dpr_device_wait_for_stream(gpu, call->stream) : dpr_device_wait(here);
}

static void read_letter(const dpr_job *j, const letter *from, dpr_recursion_report *report) {
    const dpr_recursion_outcome *o = &from->outcome;
    if (j->out_on_host)
        memcpy(j->call->out, j->results ? j->results : from->results, result_bytes(j));
    report->tasks = o->tasks;
    report->deepest = o->deepest;
    report->levels = o->levels;
    report->widest = o->widest;
    report->rounds = o->rounds;
    report->launches = j->launches + o->launched;
    report->handed_out = o->handed_out;
    report->serialised = o->serialised;
}

static void tell_spans(const dpr_job *j, const dpr_recursion_outcome *o) {
    static const char *const names[] = {[DPR_SPAN_DIVIDE] = "divide", [DPR_SPAN_SOLVE] = "solve"};
    const dpr_recursion_options *options = &j->call->options;
    const dpr_recursion_span *spans = j->spans;
    const uint32_t n = spans->what == DPR_SPAN_NONE ? 0 : least_of(o->spans, j->args.most_spans);
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        first = spans[i].begin < first ? spans[i].begin : first;
    for (uint32_t i = 0; i < n; i++) {
        const dpr_recursion_event event = {.what = names[spans[i].what],
                                           .worker = spans[i].worker,
                                           .begin = 1e-9 * (double)(spans[i].begin - first),
                                           .end = 1e-9 * (double)(spans[i].end - first)};
        options->trace(options->trace_user, &event);
    }
}

/* Host memory for what fits no mailbox. Without any for spans, none are kept. */
static dpr_status make_room(dpr_job *j) {
    if (j->out_on_host && !come_by_mail(j)) {
        j->results = malloc(result_bytes(j));
        if (!j->results)
            return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for %zu results", j->call->n);
    }
    if (j->args.most_spans > 0) {
        j->spans = calloc(j->args.most_spans, sizeof(dpr_recursion_span));
        j->args.most_spans = j->spans ? j->args.most_spans : 0;
    }
    return DPR_OK;
}

static dpr_status run_with_memory(dpr_job *j, const dpr_strategy *strategy, dpr_recursion_report *report) {
    letter from;
    dpr_status status = j->call->is_limited ? wait_for_work_before(j->call) : DPR_OK;
    if (status == DPR_OK)
        status = take_turn(j, strategy);
    if (status != DPR_OK)
        return status;
    status = dpr_job_explain(j->call, run_in_turn(j, strategy, &from));
    if (j->is_given_up)
        return dpr_fail_cuda(
            cudaErrorNotReady, DPR_ERR_LIMIT,
            "recursion \"%s\" takes longer than %g seconds, its limit (options->max_seconds), and "
            "kernels of engine \"%s\" are still running: perhaps a function of the policy does not return",
            j->call->recursion->name, j->call->max_seconds, strategy->name);
    j->unsolved = status == DPR_OK && j->at_once && from.outcome.status != DPR_OK;
    if (j->unsolved)
        return DPR_OK;
    if (status == DPR_OK)
        status = dpr_outcome_status(j->call->recursion, &from.outcome, j->call);
    if (status == DPR_OK)
        read_letter(j, &from, report);
    if (status == DPR_OK && j->spans)
        tell_spans(j, &from.outcome);
    return status;
}

dpr_status dpr_job_run(dpr_job *j, const dpr_strategy *strategy, dpr_recursion_report *report) {
    dpr_status status = make_room(j);
    if (status == DPR_OK)
        status = run_with_memory(j, strategy, report);
    free(j->results);
    free(j->spans);
    return status;
}
