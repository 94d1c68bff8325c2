#include "nested_stage.h"

#include <stdio.h>
#include <time.h>

#include "cuda/driver.h"
#include "cuda/module.h"
#include "kernels.h"

extern const dpr_module bench_nested_module, bench_graph_module;

/* How long the device may take for what takes milliseconds. */
static const double patience = 10;

/* ---- Waiting ---------------------------------------------------------------------------------------------------- */

static void nap(void) {
    const struct timespec ms = {.tv_nsec = 1000000};
    (void)nanosleep(&ms, NULL);
}

cudaError_t stage_wait(bench_stage *s) {
    const double begin = bench_now();
    cudaError_t error;
    while ((error = cudaStreamQuery(s->stream)) == cudaErrorNotReady) {
        const double passed = bench_now() - begin;
        if (passed > patience) {
            s->hung = 1;
            s->step = "the device does not end its work";
            return cudaErrorLaunchTimeout;
        }
        if (passed > 0.01)
            nap();
    }
    return error;
}

/* ---- The account ------------------------------------------------------------------------------------------------ */

cudaError_t stage_set_account(bench_stage *s, unsigned wanted) {
    *s->seen = (bench_account){.wanted = wanted};
    s->expected = 0;
    s->step = "the account";
    return cudaMemcpyAsync(s->account, s->seen, sizeof *s->seen, cudaMemcpyHostToDevice, s->stream);
}

cudaError_t stage_read_account(bench_stage *s) {
    return cudaMemcpyAsync(s->seen, s->account, sizeof *s->seen, cudaMemcpyDeviceToHost, s->stream);
}

int stage_blame(const bench_stage *s, cudaError_t error, char *why, size_t size) {
    (void)cudaGetLastError();
    if (s->hung || error == cudaErrorNotReady)
        snprintf(why, size, "%s", s->step);
    else if (error != cudaSuccess)
        snprintf(why, size, "%s: %s (%s)", s->step, cudaGetErrorString(error), cudaGetErrorName(error));
    else if (s->seen->error != 0)
        snprintf(why, size, "a launch from a kernel: %s (%s)", cudaGetErrorString((cudaError_t)s->seen->error),
                 cudaGetErrorName((cudaError_t)s->seen->error));
    else if (s->seen->ran != s->expected)
        snprintf(why, size, "%u of %u launches ran", s->seen->ran, s->expected);
    else
        return 0;
    return -1;
}

/* ---- Launches --------------------------------------------------------------------------------------------------- */

static cudaError_t launch(const bench_stage *s, CUfunction function, unsigned blocks, void *args) {
    const CUlaunchConfig config = {.gridDimX = blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = s->stream};
    void *params[] = {args};
    return (cudaError_t)dpr_driver()->launch_kernel_ex(&config, function, args ? params : NULL, NULL);
}

cudaError_t stage_nothing(bench_stage *s, unsigned times) {
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < times && error == cudaSuccess; i++)
        error = launch(s, s->nothing, 1, NULL);
    return error;
}

static cudaError_t run_chain(bench_stage *s, unsigned length, bench_nested_stream stream) {
    bench_chain_args args = {s->account, length, length, stream};
    s->expected = length;
    return launch(s, s->chain, 1, &args);
}

cudaError_t stage_tail_chain(bench_stage *s, unsigned length) {
    return run_chain(s, length, BENCH_TAIL);
}

cudaError_t stage_forget_chain(bench_stage *s, unsigned length) {
    return run_chain(s, length, BENCH_FORGET);
}

static cudaError_t run_fan(bench_stage *s, unsigned each, bench_nested_stream stream) {
    bench_fan_args args = {s->account, each, stream};
    s->expected = s->blocks * each;
    return launch(s, s->fan, s->blocks, &args);
}

cudaError_t stage_forget_fan(bench_stage *s, unsigned each) {
    return run_fan(s, each, BENCH_FORGET);
}

cudaError_t stage_block_fan(bench_stage *s, unsigned each) {
    return run_fan(s, each, BENCH_BLOCK_STREAM);
}

cudaError_t stage_tail_fan(bench_stage *s, unsigned each) {
    return run_fan(s, each, BENCH_TAIL);
}

cudaError_t stage_nodes(bench_stage *s, unsigned nodes) {
    return cudaGraphLaunch(s->nodes[nodes == STAGE_MORE], s->stream);
}

cudaError_t stage_graphs(bench_stage *s, unsigned times) {
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < times && error == cudaSuccess; i++)
        error = cudaGraphLaunch(s->single, s->stream);
    return error;
}

cudaError_t stage_device_graphs(bench_stage *s, unsigned graphs) {
    s->expected = graphs;
    return cudaGraphLaunch(s->launchers[graphs == STAGE_MORE], s->stream);
}

cudaError_t stage_repeated_graph(bench_stage *s, unsigned times) {
    s->expected = times;
    return cudaGraphLaunch(s->repeated, s->stream);
}

/* ---- Graphs ----------------------------------------------------------------------------------------------------- */

static cudaError_t capture_leaf(bench_stage *s, unsigned unused) {
    (void)unused;
    return launch(s, s->leaf, 1, &s->account);
}

static cudaError_t capture_launcher(bench_stage *s, unsigned graphs) {
    bench_graph_args args = {s->account, s->handles, graphs};
    return launch(s, s->launcher, 1, &args);
}

static cudaError_t capture_again(bench_stage *s, unsigned unused) {
    (void)unused;
    return launch(s, s->again, 1, &s->account);
}

/* A graph of what `enqueue` enqueues, ready to be launched. */
static cudaError_t make_graph(bench_stage *s, cudaError_t (*enqueue)(bench_stage *s, unsigned amount), unsigned amount,
                              unsigned flags, cudaGraphExec_t *out) {
    cudaGraph_t graph = NULL;
    s->step = "capturing a graph";
    cudaError_t error = cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return error;
    const cudaError_t enqueued = enqueue(s, amount);
    error = cudaStreamEndCapture(s->stream, &graph);
    error = enqueued != cudaSuccess ? enqueued : error;
    if (error == cudaSuccess) {
        s->step = flags ? "making a graph that kernels can launch" : "making a graph";
        error = cudaGraphInstantiate(out, graph, flags);
    }
    if (error == cudaSuccess)
        error = cudaGraphUpload(*out, s->stream);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return error;
}

cudaError_t stage_make_nodes(bench_stage *s) {
    cudaError_t error = make_graph(s, stage_nothing, STAGE_FEWER, 0, &s->nodes[0]);
    return error == cudaSuccess ? make_graph(s, stage_nothing, STAGE_MORE, 0, &s->nodes[1]) : error;
}

cudaError_t stage_make_single(bench_stage *s) {
    return make_graph(s, stage_nothing, 1, 0, &s->single);
}

/* A graph may not be launched while it runs, so there is one for each launch. */
cudaError_t stage_make_device_graphs(bench_stage *s) {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < STAGE_MORE && error == cudaSuccess; i++)
        error = make_graph(s, capture_leaf, 0, cudaGraphInstantiateFlagDeviceLaunch, &s->leaves[i]);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(s->handles, s->leaves, sizeof s->leaves, cudaMemcpyHostToDevice, s->stream);
    if (error == cudaSuccess)
        error = make_graph(s, capture_launcher, STAGE_FEWER, 0, &s->launchers[0]);
    return error == cudaSuccess ? make_graph(s, capture_launcher, STAGE_MORE, 0, &s->launchers[1]) : error;
}

cudaError_t stage_make_repeated_graph(bench_stage *s) {
    return make_graph(s, capture_again, 0, cudaGraphInstantiateFlagDeviceLaunch, &s->repeated);
}

static void destroy_graph(cudaGraphExec_t graph) {
    if (graph)
        (void)cudaGraphExecDestroy(graph);
}

/* ---- Opening and closing ---------------------------------------------------------------------------------------- */

/* The first error of several steps. */
static void tried(bench_stage *s, cudaError_t error, const char *step, cudaError_t *first) {
    if (*first != cudaSuccess || error == cudaSuccess)
        return;
    *first = error;
    s->step = s->hung ? s->step : step;
}

/* Clocks rise when there is work. */
static cudaError_t wake(bench_stage *s) {
    const double begin = bench_now();
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && bench_now() - begin < 0.3) {
        error = (cudaError_t)bench_launch_clock(500000, s->ticks, s->stream);
        if (error == cudaSuccess)
            error = stage_wait(s);
    }
    return error;
}

static cudaError_t set_pool(const bench_costs_asked *asked, bench_costs *out) {
    cudaError_t error = cudaSuccess;
    if (asked->pending > 0)
        error = cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, asked->pending);
    return error == cudaSuccess ? cudaDeviceGetLimit(&out->pending, cudaLimitDevRuntimePendingLaunchCount) : error;
}

cudaError_t stage_open(bench_stage *s, const bench_costs_asked *asked, bench_costs *out) {
    cudaError_t e = cudaSuccess;
    tried(s, cudaSetDevice(asked->device), "cudaSetDevice", &e);
    if (e == cudaSuccess)
        tried(s, set_pool(asked, out), "the size of the pool of pending launches", &e);
    if (e != cudaSuccess)
        return e;
    tried(s, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "cudaStreamCreate", &e);
    tried(s, cudaEventCreate(&s->begin), "cudaEventCreate", &e);
    tried(s, cudaEventCreate(&s->end), "cudaEventCreate", &e);
    tried(s, cudaMalloc((void **)&s->ticks, 2 * sizeof *s->ticks), "device memory", &e);
    tried(s, cudaMalloc((void **)&s->account, sizeof *s->account), "device memory", &e);
    tried(s, cudaMalloc((void **)&s->handles, sizeof s->leaves), "device memory", &e);
    tried(s, cudaMallocHost((void **)&s->seen, sizeof *s->seen), "pinned memory", &e);
    if (e == cudaSuccess)
        tried(s, wake(s), "the first kernel", &e);
    s->lead_cycles = 100000;
    return e;
}

static cudaError_t load(bench_stage *s, const dpr_module *module, const char *kernel, CUfunction *out) {
    s->step = module->name;
    return dpr_module_function(module, kernel, out);
}

static cudaError_t free_bytes(size_t *out) {
    size_t total;
    return cudaMemGetInfo(out, &total);
}

static size_t taken(size_t before, size_t after) {
    return before > after ? before - after : 0;
}

static void fit_pool(bench_stage *s, bench_costs *out) {
    const size_t half = out->pending / 2;
    s->length = half < STAGE_MORE ? (unsigned)half : STAGE_MORE;
    s->blocks = half / STAGE_EACH_MORE < STAGE_BLOCKS ? (unsigned)(half / STAGE_EACH_MORE) : STAGE_BLOCKS;
    out->length = (int)s->length;
    out->blocks = (int)s->blocks;
    out->each = STAGE_EACH_MORE;
}

static cudaError_t run_first(bench_stage *s) {
    cudaError_t error = stage_set_account(s, 0);
    s->step = "the first kernel that launches one";
    if (error == cudaSuccess)
        error = stage_tail_chain(s, 1);
    if (error == cudaSuccess)
        error = stage_read_account(s);
    const cudaError_t ended = stage_wait(s);
    return error == cudaSuccess ? ended : error;
}

void stage_start_nesting(bench_stage *s, bench_costs *out) {
    size_t before = 0, loaded = 0, after = 0;
    fit_pool(s, out);
    s->step = "the device's free memory";
    cudaError_t error = free_bytes(&before);
    if (error == cudaSuccess)
        error = load(s, &bench_nested_module, "bench_nested_chain", &s->chain);
    if (error == cudaSuccess)
        error = load(s, &bench_nested_module, "bench_nested_fan", &s->fan);
    if (error == cudaSuccess)
        error = free_bytes(&loaded);
    if (error == cudaSuccess)
        error = run_first(s);
    if (error == cudaSuccess)
        error = free_bytes(&after);
    if (stage_blame(s, error, s->no_nesting, sizeof s->no_nesting) != 0)
        return;
    out->loaded_bytes = taken(before, loaded);
    out->reserved_bytes = taken(loaded, after);
}

cudaError_t stage_load_graph_kernels(bench_stage *s) {
    static const char *const names[] = {"bench_graph_nothing", "bench_graph_leaf", "bench_graph_launch",
                                        "bench_graph_again"};
    CUfunction *const functions[] = {&s->nothing, &s->leaf, &s->launcher, &s->again};
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && error == cudaSuccess; i++)
        error = load(s, &bench_graph_module, names[i], functions[i]);
    return error;
}

void stage_close(bench_stage *s) {
    if (s->hung)
        return;
    for (int i = 0; i < STAGE_MORE; i++)
        destroy_graph(s->leaves[i]);
    for (int i = 0; i < 2; i++) {
        destroy_graph(s->nodes[i]);
        destroy_graph(s->launchers[i]);
    }
    destroy_graph(s->single);
    destroy_graph(s->repeated);
    (void)cudaFree(s->ticks);
    (void)cudaFree(s->account);
    (void)cudaFree(s->handles);
    (void)cudaFreeHost(s->seen);
    if (s->begin)
        (void)cudaEventDestroy(s->begin);
    if (s->end)
        (void)cudaEventDestroy(s->end);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    (void)cudaGetLastError();
}
