/* The engines `host`, `level`, `graph` and `naive` on the host. phases.cuh and nested.cu have their kernels.
 *
 * The host launches a policy's kernel to begin, then what the engine is about, and then the policy's kernel to write
 * the results. Engines `host`, `level` and `graph` do phases. Whatever launches of `level` and `graph` leave undone,
 * because a launch was refused or a limit of depth was reached, the host launches: all phases are done when the outcome
 * is in the mailbox. */
#include "api/ctx.h"
#include "args.h"
#include "costs.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/home.h"
#include "cuda/module.h"
#include "error.h"
#include "graphs.h"
#include "job.h"
#include "log.h"
#include "loop.h"
#include "nested_host.h"

enum {
    MOST_THREADS = 256,
    LAUNCHES = 8,           /* phases that the host launches before it looks how far the device is */
    MOST_LAUNCHES = 128,    /* the same, later in a run */
    LAUNCHER_STACK = 512,   /* bytes of stack that kernels of the library, and act() of phases.cuh, take more than a
                               policy's own kernel */
    LAUNCHER_SHARED = 4096, /* bytes of static shared memory, at most, that a block of these kernels has */
};

/* Entries of dpr_recursion_table (nested.cu). */
enum { LEVEL, NAIVE };

static const char go_on[] = "dpr_go_on";

/* A run's arguments, and the policy's kernel. */
typedef struct scene {
    dpr_run run;
    dpr_job *job;
    dpr_recursion_args args;
    void *kernel;
    unsigned blocks;
} scene;

static cudaError_t launch_policy(scene *s, unsigned what) {
    void *params[] = {&s->args, (void *)s->job->call->data, &what};
    s->job->launches++;
    return dpr_job_launch(&s->run, s->job, s->kernel, s->blocks, 0, params);
}

/* Launches the kernel that all nested launches are of, to begin with a function of the table. */
static cudaError_t launch_nested(scene *s, int which, unsigned blocks) {
    const dpr_recursion_call *call = s->job->call;
    const int64_t deepest = dpr_ctx_machine(call->ctx)->caps.gpu.nesting_depth, wanted = call->options.max_nesting;
    dpr_launch launch = {.entry = go_on,
                         .module = &dpr_dp_module,
                         .blocks = blocks,
                         .threads = s->job->threads,
                         .shared_bytes = (int)s->job->shared_bytes};
    dpr_nested_args args = {.launches = s->run.launches,
                            .max_depth = (uint32_t)(wanted > 0 && wanted < deepest ? wanted : deepest),
                            .run = {.in = s->args.block}};
    void *from, *table[2];
    cudaError_t error = dpr_module_variable(&dpr_dp_module, "dpr_recursion_table", &from);
    if (error == cudaSuccess)
        error = dpr_home_copy_apart(table, from, sizeof table);
    if (error != cudaSuccess)
        return error;
    args.go_on = table[which];
    s->job->launches++;
    return (cudaError_t)s->run.enqueue(&s->run, &launch, &args.run);
}

/* ---- host: a launch for each phase ---- */

/* Launches phases until all are done. */
static cudaError_t launch_phases(scene *s) {
    cudaError_t error = cudaSuccess;
    for (unsigned launches = LAUNCHES; error == cudaSuccess && !dpr_job_has_ended(&s->run);
         launches = launches < MOST_LAUNCHES ? 2 * launches : launches) {
        for (unsigned i = 0; i < launches && error == cudaSuccess; i++)
            error = launch_policy(s, DPR_LAUNCH_PHASE);
        if (error == cudaSuccess)
            error = launch_policy(s, DPR_LAUNCH_END_IF_DUE);
        if (error == cudaSuccess)
            error = dpr_job_await(&s->run, s->job);
    }
    return error;
}

static cudaError_t run_host(scene *s) {
    return launch_phases(s);
}

/* ---- level: a nested launch for each phase ---- */

static cudaError_t finish_phases(scene *s) {
    cudaError_t error = launch_policy(s, DPR_LAUNCH_END_IF_DUE);
    if (error == cudaSuccess)
        error = dpr_job_await(&s->run, s->job);
    return error == cudaSuccess ? launch_phases(s) : error;
}

static cudaError_t run_level(scene *s) {
    const cudaError_t error = launch_nested(s, LEVEL, s->blocks);
    return error == cudaSuccess ? finish_phases(s) : error;
}

/* ---- graph: a graph that launches itself again for each phase ---- */

static dpr_graphs *graphs_of(const scene *s) {
    return dpr_dp_graphs(dpr_ctx_gpu(s->job->call->ctx));
}

/* A phase as a node of a graph; `params` has room for its three parameters. */
static CUDA_KERNEL_NODE_PARAMS phase_node(scene *s, unsigned *what, void **params) {
    *what = DPR_LAUNCH_PHASE;
    params[0] = &s->args;
    params[1] = (void *)s->job->call->data;
    params[2] = what;
    return dpr_kernel_node((CUfunction)s->kernel, s->blocks, s->job->threads, s->job->shared_bytes, params);
}

/* A phase, and the kernel that launches the graph again. */
static cudaError_t take_graph(scene *s, dpr_kept_graph **out) {
    unsigned what;
    void *phase[3], *again[] = {&s->args.block};
    CUDA_KERNEL_NODE_PARAMS kernels[] = {phase_node(s, &what, phase), dpr_kernel_node(NULL, 1, 1, 0, again)};
    const cudaError_t error = dpr_module_function(&dpr_dp_module, "dpr_recursion_again", &kernels[1].func);
    return error == cudaSuccess ? dpr_graphs_take(graphs_of(s), kernels, out) : error;
}

static cudaError_t run_graph(scene *s) {
    dpr_kept_graph *graph;
    if (!s->job->begun || s->run.launches == 0) {
        if (DPR_LOGS(RECURSION))
            dpr_log(DPR_LOG_RECURSION, "%s: %s, so the host launches the phases of graph",
                    s->job->call->recursion->name,
                    s->job->begun ? "kernels may launch nothing" : "nested launches may be pending");
        return launch_phases(s);
    }
    cudaError_t error = take_graph(s, &graph);
    if (error != cudaSuccess)
        return error;
    error = cudaGraphUpload(graph->executable, s->run.stream);
    if (error == cudaSuccess)
        error = cudaGraphLaunch(graph->executable, s->run.stream);
    s->job->launches++;
    if (error == cudaSuccess)
        error = finish_phases(s);
    if (error == cudaErrorNotReady) { /* the run is given up */
        dpr_graphs_abandon(graphs_of(s), graph);
        return error;
    }
    const cudaError_t last = dpr_graphs_give_back(graphs_of(s), graph, error == cudaSuccess);
    return error == cudaSuccess ? last : error;
}

/* ---- naive: a nested launch for each task ---- */

static cudaError_t run_naive(scene *s) {
    const cudaError_t error = launch_nested(s, NAIVE, s->args.count);
    return error == cudaSuccess ? launch_policy(s, DPR_LAUNCH_END) : error;
}

/* ---- Runs ---- */

static cudaError_t launch_all(const dpr_run *run, cudaError_t (*engine)(scene *)) {
    scene s = {.run = *run, .job = (dpr_job *)run->in};
    size_t stack;
    s.run.programmatic = 0; /* each kernel needs what the one before has written */
    s.blocks = s.job->blocks * (unsigned)run->sms;
    s.job->launches = 0;
    cudaError_t error = dpr_job_begin(run, s.job, &s.args);
    s.args.keeps = engine == run_naive;
    if (error == cudaSuccess)
        error = (cudaError_t)s.job->call->recursion->gpu->phase(&s.kernel, &stack);
    if (error == cudaSuccess)
        error = launch_policy(&s, DPR_LAUNCH_BEGIN);
    if (error == cudaSuccess)
        error = engine(&s);
    if (error == cudaSuccess)
        return dpr_job_end(run, s.job, &s.args);
    if (error != cudaErrorNotReady) /* it is not given up */
        (void)dpr_job_wait(run);    /* what was launched must end before a run of the other kind begins (apart.h) */
    return error;
}

/* ---- host in a captured graph: a loop of the graph's ---- */

static cudaError_t capture_phases(scene *s) {
    unsigned what;
    void *params[3];
    const CUDA_KERNEL_NODE_PARAMS phase = phase_node(s, &what, params);
    return dpr_loop_capture(s->run.stream, &phase, (CUfunction)s->job->condition, s->args.arena);
}

/* A graph with a part of a run may never end, or leave scratch memory that is not zero. A question about a stream that
 * is being captured, which CUDA forbids, invalidates the capture. */
static void spoil_capture(cudaStream_t stream) {
    if (cudaStreamQuery(stream) != cudaSuccess)
        (void)cudaGetLastError();
}

static int launch_captured(const dpr_run *run) {
    scene s = {.run = *run, .job = (dpr_job *)run->in};
    s.blocks = s.job->blocks * (unsigned)run->sms;
    s.kernel = s.job->function;
    cudaError_t error = dpr_job_begin(run, s.job, &s.args);
    if (error == cudaSuccess)
        error = launch_policy(&s, DPR_LAUNCH_BEGIN);
    if (error != cudaSuccess)
        return (int)error;
    error = capture_phases(&s);
    if (error == cudaSuccess)
        error = launch_policy(&s, DPR_LAUNCH_END);
    if (error != cudaSuccess)
        spoil_capture(run->stream);
    return (int)error;
}

static const dpr_strategy captured = {
    .name = "host",
    .text = "a loop of a graph, with a kernel for each level of the recursion",
    .side = DPR_ON_GPU,
    .scratch_bytes = DPR_SCRATCH_BYTES,
    .launch = launch_captured,
    .workspace_bytes = dpr_job_workspace_bytes,
};

static cudaError_t load_captured(dpr_job *j) {
    size_t stack;
    cudaFunction_t condition = NULL;
    cudaError_t error = (cudaError_t)j->call->recursion->gpu->phase(&j->function, &stack);
    if (error == cudaSuccess)
        error = cudaGetFuncBySymbol(&condition, dpr_loop_condition());
    j->condition = condition;
    return error;
}

/* Checks that the stream is being captured. A stream about which CUDA does not answer is refused later. */
static dpr_status check_captured(const dpr_recursion_call *call) {
    dpr_visit visit;
    unsigned long long id;
    cudaGraph_t graph = NULL;
    const dpr_status status = dpr_home_enter(dpr_device_home_of(dpr_ctx_gpu(call->ctx)), &visit);
    if (status != DPR_OK)
        return status;
    const cudaError_t error = dpr_home_identify(call->stream, &id, &graph);
    dpr_home_leave(&visit);
    if (error != cudaSuccess || graph)
        return DPR_OK;
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                    "engine \"host\" cannot enqueue a run in stream %p, because it is not being captured and the host "
                    "would have to launch each level: use engine \"persistent\"",
                    (void *)call->stream);
}

/* ---- Jobs ---- */

/* Checks that the policy's functions have room on the stack, and loads the kernels that call them. */
static dpr_status prepare_nested(const dpr_recursion_call *call, const char *engine) {
    dpr_residence at = dpr_device_residence(dpr_ctx_gpu(call->ctx));
    const dpr_kernel kernel = {.entry = go_on, .threads = MOST_THREADS, .module = &dpr_dp_module};
    dpr_residency unused;
    dpr_visit visit;
    size_t stack = 0, limit = 0;
    void *function;
    dpr_status status = dpr_device_resident(&at, &kernel, &unused);
    if (status == DPR_OK)
        status = dpr_home_enter_relaxed(dpr_device_home_of(dpr_ctx_gpu(call->ctx)), &visit);
    if (status != DPR_OK)
        return status;
    cudaError_t error = (cudaError_t)call->recursion->gpu->phase(&function, &stack);
    if (error == cudaSuccess)
        error = cudaDeviceGetLimit(&limit, cudaLimitStackSize);
    dpr_home_leave(&visit);
    if (error != cudaSuccess)
        return dpr_job_explain(call, dpr_cuda_failed(error, "asking for the stack of threads"));
    if (stack + LAUNCHER_STACK <= limit)
        return DPR_OK;
    return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                    "engine \"%s\" needs %zu bytes of stack a thread for recursion \"%s\", and device %d gives %zu "
                    "(cudaLimitStackSize)",
                    engine, stack + LAUNCHER_STACK, call->recursion->name, dpr_ctx_device(call->ctx), limit);
}

static unsigned choose_threads(const dpr_recursion_call *call, unsigned most, unsigned *slots) {
    const dpr_recursion *r = call->recursion;
    return dpr_job_threads(r, r->gpu->teams ? MOST_THREADS : most,
                           (size_t)dpr_ctx_machine(call->ctx)->caps.gpu.shared_per_block - LAUNCHER_SHARED,
                           dpr_job_fixed_bytes(r), slots);
}

/* Blocks an SM that are there at a time. */
static unsigned count_blocks(const dpr_job *j) {
    const dpr_gpu_caps *gpu = &dpr_ctx_machine(j->call->ctx)->caps.gpu;
    const int64_t by_memory = gpu->shared_per_sm / ((int64_t)j->shared_bytes + gpu->shared_reserved_per_block),
                  by_registers = gpu->registers_per_sm / (64 * (int64_t)j->threads),
                  least = by_memory < by_registers ? by_memory : by_registers;
    return least < 1 ? 1 : (unsigned)(least < gpu->max_blocks_per_sm ? least : gpu->max_blocks_per_sm);
}

static void size_job(dpr_job *j, unsigned most_threads) {
    const dpr_recursion_call *call = j->call;
    j->blocks = 1;
    j->threads = choose_threads(call, most_threads, &j->args.slots);
    dpr_job_size(j, dpr_job_fixed_bytes(call->recursion));
    j->blocks = count_blocks(j);
    dpr_job_size(j, dpr_job_fixed_bytes(call->recursion));
}

static dpr_status run_job(const dpr_recursion_call *call, const dpr_strategy *strategy, unsigned most_threads,
                          dpr_apart apart, dpr_recursion_report *report) {
    dpr_job j = {.call = call, .apart = apart};
    dpr_status status = dpr_job_places(&j);
    if (status == DPR_OK && strategy->role == DPR_ROLE_NESTED)
        status = prepare_nested(call, strategy->name);
    if (status != DPR_OK)
        return status;
    size_job(&j, most_threads);
    return dpr_job_run(&j, strategy, report);
}

static dpr_status enqueue_host(const dpr_recursion_call *call, dpr_recursion_outcome *outcome) {
    dpr_job j = {.call = call};
    const char *why = dpr_loop_refusal();
    if (why)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE,
                        "engine \"host\" cannot enqueue a run here, because it %s: use engine \"persistent\"", why);
    dpr_status status = check_captured(call);
    if (status == DPR_OK && call->n == 0)
        return dpr_job_enqueue_nothing(call, outcome);
    size_job(&j, MOST_THREADS);
    if (status == DPR_OK)
        status = dpr_job_load(&j, load_captured);
    return status == DPR_OK ? dpr_job_enqueue(&j, &captured, outcome) : status;
}

/* Why an engine cannot run, whose blocks have at most so many threads, or NULL. */
static const char *refuse_host(const dpr_recursion_call *call, unsigned threads) {
    unsigned slots;
    const char *why = dpr_job_refusal(call);
    return why                                     ? why
           : choose_threads(call, threads, &slots) ? NULL
                                                   : "has no room in shared memory for a task's children";
}

static const char *refuse_graph(const dpr_recursion_call *call, unsigned threads) {
    const char *why = refuse_host(call, threads);
    return why ? why : dpr_nested_refusal(&dpr_ctx_machine(call->ctx)->caps.gpu);
}

static const char *refuse_nested(const dpr_recursion_call *call, unsigned threads) {
    const char *why = refuse_graph(call, threads);
    if (why)
        return why;
    return call->recursion->gpu->relocatable ? NULL : "needs a policy that nvcc has compiled with -rdc=true";
}

/* Ten launches. */
static double least_host_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    return dpr_costs_scale(call, 25e-6) + dpr_costs_levels(call, tasks);
}

/* A launch by the host, and ten phases. */
static double least_level_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    const dpr_costs costs = dpr_costs_here(call);
    return costs.launch + 10 * costs.nested + dpr_costs_levels(call, tasks);
}

static double least_graph_seconds(const dpr_recursion_call *call, uint64_t tasks) {
    const dpr_costs costs = dpr_costs_here(call);
    return costs.launch + 10 * costs.relaunch + dpr_costs_levels(call, tasks);
}

/* ---- The engines ---- */

#define ENGINE(NAME, ROLE, THREADS, APART, REFUSAL, ENQUEUE, LEAST, MEASURE, TEXT)                                     \
    static int launch_##NAME(const dpr_run *run) {                                                                     \
        return (int)launch_all(run, run_##NAME);                                                                       \
    }                                                                                                                  \
    static const dpr_strategy NAME = {                                                                                 \
        .name = #NAME,                                                                                                 \
        .text = TEXT,                                                                                                  \
        .side = DPR_ON_GPU,                                                                                            \
        .role = ROLE,                                                                                                  \
        .scratch_bytes = DPR_SCRATCH_BYTES,                                                                            \
        .launch = launch_##NAME,                                                                                       \
        .workspace_bytes = dpr_job_workspace_bytes,                                                                    \
    };                                                                                                                 \
    static dpr_status run_engine_##NAME(const dpr_recursion_call *call, dpr_recursion_report *report) {                \
        return run_job(call, &NAME, THREADS, APART, report);                                                           \
    }                                                                                                                  \
    static const char *refuse_engine_##NAME(const dpr_recursion_call *call) {                                          \
        return REFUSAL(call, THREADS);                                                                                 \
    }                                                                                                                  \
    const dpr_engine dpr_engine_##NAME = {.name = #NAME,                                                               \
                                          .text = TEXT,                                                                \
                                          .on_gpu = 1,                                                                 \
                                          .nested = (APART) != DPR_APART_NONE,                                         \
                                          .refusal = refuse_engine_##NAME,                                             \
                                          .run = run_engine_##NAME,                                                    \
                                          .enqueue = ENQUEUE,                                                          \
                                          .why_not_enqueued = "launches kernels from kernels, and the host has to "    \
                                                              "launch what these leave undone",                        \
                                          .least_seconds = LEAST,                                                      \
                                          .measure = MEASURE};

ENGINE(host, DPR_ROLE_CANDIDATE, MOST_THREADS, DPR_APART_NONE, refuse_host, enqueue_host, least_host_seconds, NULL,
       "a launch by the host for each wide level, or for narrow ones in a row")
ENGINE(level, DPR_ROLE_NESTED, MOST_THREADS, DPR_APART_NESTED, refuse_nested, NULL, least_level_seconds,
       dpr_costs_measure_nested, "a nested launch for each wide level, or for narrow ones in a row")
ENGINE(graph, DPR_ROLE_NESTED, MOST_THREADS, DPR_APART_GRAPH, refuse_graph, NULL, least_graph_seconds,
       dpr_costs_measure_nested, "a graph that launches itself for each wide level, or for narrow ones in a row")
ENGINE(naive, DPR_ROLE_NESTED, 1, DPR_APART_NESTED, refuse_nested, NULL, NULL, NULL,
       "a nested launch for each task, to learn from")
