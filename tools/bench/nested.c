/* Each figure is the difference of two times, of more launches and of fewer, so that what starts and ends a measurement
 * is in neither. Times are between two events in a stream, behind work that keeps the device busy while the host
 * launches; or by the host's clock until the stream is idle. The kinds of launches take turns, as subjects do in
 * timing.h. After each time the kernels' account is looked at: how many came to their end.
 *
 * Launches that are pending at a time are at most half of the device's pool, because overrunning it can hang the
 * device. All waits are bounded. */
#include "nested.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench_asked.h"
#include "bench_report.h"
#include "cli.h"
#include "cli_json.h"
#include "cuda/driver.h"
#include "cuda/module.h"
#include "kernels.h"
#include "nested_kernels.h"
#include "timing.h"

extern const dpr_module bench_nested_module, bench_graph_module;

/* How long the device may take for what takes milliseconds. */
static const double patience = 10;

/* Launches of a time, more and fewer. In one run of its own graph a kernel may launch 120 graphs that it forgets (CUDA
 * programming guide). */
enum { MORE = 72, FEWER = 8 };

/* Most blocks of a fan-out, and launches from each block, more and fewer. */
enum { MOST_BLOCKS = 64, EACH_MORE = 8, EACH_FEWER = 1 };

/* The first times load and set up what later ones find. */
enum { WARM_UPS = 2 };

typedef enum kernel_id { CHAIN, FAN, NOTHING, LEAF, LAUNCHER, AGAIN, KERNELS } kernel_id;

/* `amount` launches: of NOTHING, by the host; by CHAIN, each block of FAN, LAUNCHER or AGAIN, which the host launches
 * once. LEAF makes none. */
typedef struct work {
    kernel_id kernel;
    unsigned amount;
} work;

/* How the host launches: the work in a stream, timed by events or by the host's clock; a graph of the work; a graph of
 * one launch, `amount` times, timed by the host's clock; a graph that launches itself. */
typedef enum launch_form { IN_STREAM, BY_CLOCK, IN_GRAPH, GRAPHS_BY_CLOCK, ITSELF } launch_form;

/* The difference between `more` of one kernel and `fewer`, of it or of another one. */
typedef struct launch_kind {
    const char *name;
    launch_form form;
    kernel_id base;
    unsigned fewer;
    kernel_id kernel;
    unsigned more;
    bench_nested_stream to;
    const char *text;
} launch_kind;

static const launch_kind kinds[] = {
    {"empty", IN_STREAM, NOTHING, 0, NOTHING, 1, BENCH_FORGET, "a kernel that does nothing, in a stream"},
    {"host", BY_CLOCK, NOTHING, FEWER, NOTHING, MORE, BENCH_FORGET,
     "one of many such kernels that the host launches back to back"},
    {"graph.node", IN_GRAPH, NOTHING, FEWER, NOTHING, MORE, BENCH_FORGET, "one such kernel of a graph's chain of them"},
    {"graph", GRAPHS_BY_CLOCK, NOTHING, FEWER, NOTHING, MORE, BENCH_FORGET,
     "one of many launches of a graph of one such kernel, back to back"},
    {"first.tail", IN_STREAM, NOTHING, 1, CHAIN, 1, BENCH_TAIL,
     "a kernel that tail-launches one, over one that does nothing"},
    {"first.forget", IN_STREAM, NOTHING, 1, CHAIN, 1, BENCH_FORGET,
     "a kernel that launches one and forgets it, over one that does nothing"},
    {"chain.tail", IN_STREAM, CHAIN, FEWER, CHAIN, MORE, BENCH_TAIL,
     "a level of a chain in which each kernel tail-launches the next"},
    {"chain.forget", IN_STREAM, CHAIN, FEWER, CHAIN, MORE, BENCH_FORGET,
     "a level of a chain in which each kernel launches the next and forgets it"},
    {"fan.forget", IN_STREAM, FAN, EACH_FEWER, FAN, EACH_MORE, BENCH_FORGET,
     "one of many launches from many blocks, fire-and-forget"},
    {"fan.block", IN_STREAM, FAN, EACH_FEWER, FAN, EACH_MORE, BENCH_BLOCK_STREAM,
     "one of many launches from many blocks, each into its block's stream (NULL)"},
    {"fan.tail", IN_STREAM, FAN, EACH_FEWER, FAN, EACH_MORE, BENCH_TAIL,
     "one of many tail launches from many blocks, which run one after another"},
    {"device_graph", IN_GRAPH, LAUNCHER, FEWER, LAUNCHER, MORE, BENCH_FORGET,
     "a graph of one kernel that a kernel launches, fire-and-forget"},
    {"device_graph.tail", ITSELF, AGAIN, FEWER, AGAIN, MORE, BENCH_TAIL,
     "a graph of one kernel that launches itself again when it is done"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What is measured with other sizes of the pool. */
static const char with_pools[] = "chain.tail";

/* A kind of launches that is measured. */
typedef struct subject {
    const launch_kind *kind;
    cudaGraphExec_t graphs[2]; /* fewer, more */
    bench_outcome outcome;     /* its `why` is "" if it can be measured */
} subject;

/* The measurement, and what the process has on the device, which stays there until the process ends. */
typedef struct stage {
    subject subjects[KINDS];
    int n;
    bench_rule rule;
    double began;

    cudaStream_t stream;
    cudaEvent_t begin, end;
    CUfunction kernels[KERNELS];
    cudaGraphExec_t leaves[MORE];
    cudaGraphExec_t *handles; /* `leaves` in device memory */
    uint64_t *ticks;          /* of bench_launch_clock() */
    bench_account *account;   /* device memory */
    bench_account *seen;      /* pinned: what the account is set to, and what is found in it */
    unsigned expected;        /* launches of the last run that the account counts */
    uint64_t lead_cycles;     /* of the work ahead; grows where the host is slower */
    size_t pending, loaded_bytes, reserved_bytes;
    unsigned length;            /* of a chain of kernels: MORE, or half of the pool if that is less */
    unsigned blocks;            /* of fan-outs; 0: the pool is too small */
    char no_nesting[BENCH_WHY]; /* why kernels launch none; "": they do */
    char nothing[BENCH_WHY];    /* why nothing can be measured; "": something can */
    int hung;                   /* 1: the device has not ended its work in time */
    cudaError_t error;          /* of a step that failed */
    const char *step;
} stage;

/* Whether a step went well. The stage keeps the first error, and the name of the step, until blame(). */
static int good(stage *s, cudaError_t error, const char *step) {
    if (error == cudaSuccess)
        return 1;
    (void)cudaGetLastError();
    if (s->error == cudaSuccess)
        s->step = step;
    s->error = s->error == cudaSuccess ? error : s->error;
    return 0;
}

static int wait_idle(stage *s) {
    static const struct timespec ms = {.tv_nsec = 1000000};
    const double begin = seconds_now();
    cudaError_t error;
    while ((error = cudaStreamQuery(s->stream)) == cudaErrorNotReady && !s->hung) {
        const double passed = seconds_now() - begin;
        s->hung = passed > patience;
        if (passed > 0.01)
            (void)nanosleep(&ms, NULL);
    }
    return good(s, error, s->hung ? "the device does not end its work" : "a launch");
}

/* ---- The account ------------------------------------------------------------------------------------------------ */

/* Begins a run. The copy before it has left `seen` when the stream is idle. */
static int set_account(stage *s, unsigned wanted, unsigned expected) {
    if (!wait_idle(s))
        return 0;
    *s->seen = (bench_account){.wanted = wanted};
    s->expected = expected;
    return good(s, cudaMemcpyAsync(s->account, s->seen, sizeof *s->seen, cudaMemcpyHostToDevice, s->stream),
                "the account");
}

/* Ends it: whether all launches ran. */
static int read_account(stage *s) {
    return good(s, cudaMemcpyAsync(s->seen, s->account, sizeof *s->seen, cudaMemcpyDeviceToHost, s->stream),
                "the account")
           && wait_idle(s) && s->seen->error == 0 && s->seen->ran == s->expected;
}

/* Says why a run failed: an error of the host's, or else what the account says. */
static void blame(stage *s, char why[BENCH_WHY]) {
    const cudaError_t error = s->error != cudaSuccess ? s->error : (cudaError_t)s->seen->error;
    const char *step = s->error != cudaSuccess ? s->step : "a launch from a kernel";
    if (error == cudaErrorNotReady)
        snprintf(why, BENCH_WHY, "%s", step);
    else if (error != cudaSuccess)
        snprintf(why, BENCH_WHY, "%s: %s (%s)", step, cudaGetErrorString(error), cudaGetErrorName(error));
    else
        snprintf(why, BENCH_WHY, "%u of %u launches ran", s->seen->ran, s->expected);
    s->error = cudaSuccess;
}

/* ---- Launches --------------------------------------------------------------------------------------------------- */

/* Launches by the kernel go to `to`. */
static int enqueue(stage *s, work w, bench_nested_stream to) {
    bench_chain_args chain = {s->account, w.amount, w.amount, to};
    bench_fan_args fan = {s->account, w.amount, to};
    bench_graph_args graphs = {s->account, s->handles, w.amount};
    void *const args[KERNELS] = {
        [CHAIN] = &chain, [FAN] = &fan, [LEAF] = &s->account, [LAUNCHER] = &graphs, [AGAIN] = &s->account};
    void *params[] = {args[w.kernel]};
    const CUlaunchConfig config = {.gridDimX = w.kernel == FAN ? s->blocks : 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 1,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = s->stream};
    CUresult error = CUDA_SUCCESS;
    for (unsigned i = 0; i < (w.kernel == NOTHING ? w.amount : 1) && error == CUDA_SUCCESS; i++)
        error = dpr_driver()->launch_kernel_ex(&config, s->kernels[w.kernel], params[0] ? params : NULL, NULL);
    return good(s, (cudaError_t)error, "a launch");
}

/* The work as the pool allows it: a kernel of a chain counts as pending until those that it has launched are done, for
 * all that is known. */
static work work_of(const stage *s, const launch_kind *k, int more) {
    work w = more ? (work){k->kernel, k->more} : (work){k->base, k->fewer};
    w.amount = w.kernel == CHAIN && w.amount > s->length ? s->length : w.amount;
    return w;
}

/* Launches of the work that the account counts. */
static unsigned counted(const stage *s, work w) {
    return w.kernel == NOTHING ? 0 : w.kernel == FAN ? w.amount * s->blocks : w.amount;
}

/* Launches by which the two times differ. */
static int difference(const stage *s, const launch_kind *k) {
    const work fewer = work_of(s, k, 0), more = work_of(s, k, 1);
    return more.kernel == NOTHING ? (int)(more.amount - fewer.amount) : (int)counted(s, more) - (int)counted(s, fewer);
}

/* ---- Graphs ----------------------------------------------------------------------------------------------------- */

/* A graph of the work, ready to be launched. */
static int make_graph(stage *s, work w, unsigned flags, cudaGraphExec_t *out) {
    cudaGraph_t graph = NULL;
    if (!good(s, cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal), "capturing a graph"))
        return 0;
    const int enqueued = enqueue(s, w, BENCH_FORGET);
    const int ok = good(s, cudaStreamEndCapture(s->stream, &graph), "capturing a graph") && enqueued
                   && good(s, cudaGraphInstantiate(out, graph, flags),
                           flags ? "making a graph that kernels can launch" : "making a graph")
                   && good(s, cudaGraphUpload(*out, s->stream), "uploading a graph");
    if (graph)
        (void)cudaGraphDestroy(graph);
    return ok;
}

/* A graph may not be launched while it runs, so there is one for each launch. */
static int make_leaves(stage *s) {
    int ok = 1;
    for (int i = 0; i < MORE && ok; i++)
        ok = make_graph(s, (work){LEAF, 1}, cudaGraphInstantiateFlagDeviceLaunch, &s->leaves[i]);
    return ok
           && good(s, cudaMemcpyAsync(s->handles, s->leaves, sizeof s->leaves, cudaMemcpyHostToDevice, s->stream),
                   "the graphs' handles");
}

static int make_graphs(stage *s, subject *j) {
    const launch_kind *k = j->kind;
    int ok = k->kernel != LAUNCHER || make_leaves(s);
    for (int i = 0; i < 2 && ok && k->form >= IN_GRAPH; i++)
        ok = make_graph(s, k->form == GRAPHS_BY_CLOCK ? (work){NOTHING, 1} : work_of(s, k, i),
                        k->form == ITSELF ? cudaGraphInstantiateFlagDeviceLaunch : 0, &j->graphs[i]);
    return ok;
}

/* ---- Times ------------------------------------------------------------------------------------------------------ */

static int run(stage *s, const subject *j, int more) {
    const launch_kind *k = j->kind;
    const work w = work_of(s, k, more);
    int ok = 1;
    if (k->form < IN_GRAPH)
        return enqueue(s, w, k->to);
    for (unsigned i = 0; i < (k->form == GRAPHS_BY_CLOCK ? w.amount : 1) && ok; i++)
        ok = good(s, cudaGraphLaunch(j->graphs[more], s->stream), "a launch of a graph");
    return ok;
}

/* Times a run: by the host's clock, or between events behind work of the device. *late: that was done before all was
 * launched. */
static int time_run(stage *s, const subject *j, int more, double *us, int *late) {
    const int by_clock = j->kind->form == BY_CLOCK || j->kind->form == GRAPHS_BY_CLOCK;
    float ms = 0;
    int ok = by_clock ? wait_idle(s)
                      : good(s, (cudaError_t)bench_launch_clock(s->lead_cycles, s->ticks, s->stream), "the work ahead")
                            && good(s, cudaEventRecord(s->begin, s->stream), "an event");
    const double began = seconds_now();
    ok = ok && run(s, j, more) && (by_clock ? wait_idle(s) : good(s, cudaEventRecord(s->end, s->stream), "an event"));
    *us = 1e6 * (seconds_now() - began);
    *late = !by_clock && cudaEventQuery(s->begin) == cudaSuccess;
    (void)cudaGetLastError(); /* that it was not ready is no error */
    ok = ok && read_account(s) && (by_clock || good(s, cudaEventElapsedTime(&ms, s->begin, s->end), "the time"));
    *us = by_clock ? *us : 1e3 * (double)ms;
    return ok;
}

static int time_work(stage *s, const subject *j, int more, double *us) {
    enum { TRIES = 10 };
    static const uint64_t most_cycles = 20000000;
    const work w = work_of(s, j->kind, more);
    int late = 0;
    for (int i = 0; i < TRIES; i++) {
        if (!set_account(s, w.amount, counted(s, w)) || !time_run(s, j, more, us, &late))
            return 0;
        if (!late)
            return 1;
        s->lead_cycles = s->lead_cycles < most_cycles / 2 ? 2 * s->lead_cycles : most_cycles;
    }
    return good(s, cudaErrorNotReady, "the host launches too slowly: the device was idle before each try");
}

/* ---- Samples ---------------------------------------------------------------------------------------------------- */

/* Takes one sample, or says why there is none. */
static int sample(stage *s, subject *j, double *us) {
    double fewer, more;
    if (!time_work(s, j, 1, &more) || !time_work(s, j, 0, &fewer)) {
        blame(s, j->outcome.why);
        return 0;
    }
    *us = (more - fewer) / difference(s, j->kind);
    return 1;
}

/* Makes a kind ready, or says why it cannot be. */
static void start(stage *s, subject *j) {
    const kernel_id kernel = j->kind->kernel;
    char *why = j->outcome.why;
    double us;
    if (s->nothing[0] || kernel == CHAIN || kernel == FAN)
        memcpy(why, s->nothing[0] ? s->nothing : s->no_nesting, BENCH_WHY);
    if (!why[0] && difference(s, j->kind) < 1)
        snprintf(why, BENCH_WHY, "half of the pool is too little for it");
    if (!why[0] && !make_graphs(s, j))
        blame(s, why);
    for (int i = 0; i < WARM_UPS && !why[0]; i++)
        (void)sample(s, j, &us);
}

/* Takes one sample of subject i, for bench_take_turns(). */
static int take(void *user, int i) {
    stage *s = user;
    subject *j = &s->subjects[i];
    double us;
    return !s->hung && !j->outcome.why[0] && sample(s, j, &us) && bench_keep(&j->outcome, us, &s->rule, s->began);
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

/* Clocks rise when there is work. */
static int wake(stage *s) {
    const double begin = seconds_now();
    int ok = 1;
    while (ok && seconds_now() - begin < 0.3)
        ok = good(s, (cudaError_t)bench_launch_clock(500000, s->ticks, s->stream), "the first kernel") && wait_idle(s);
    s->lead_cycles = 100000;
    return ok;
}

static int set_pool(stage *s, size_t pending) {
    static const char step[] = "the size of the pool of pending launches";
    if (pending > 0 && !good(s, cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, pending), step))
        return 0;
    if (!good(s, cudaDeviceGetLimit(&s->pending, cudaLimitDevRuntimePendingLaunchCount), step))
        return 0;
    const size_t half = s->pending / 2;
    s->length = half < MORE ? (unsigned)half : MORE;
    s->blocks = half / EACH_MORE < MOST_BLOCKS ? (unsigned)(half / EACH_MORE) : MOST_BLOCKS;
    return 1;
}

static int open_stage(stage *s, int device, size_t pending) {
    return good(s, cudaSetDevice(device), "cudaSetDevice") && set_pool(s, pending)
           && good(s, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "a stream")
           && good(s, cudaEventCreate(&s->begin), "an event") && good(s, cudaEventCreate(&s->end), "an event")
           && good(s, cudaMalloc((void **)&s->ticks, 2 * sizeof *s->ticks), "device memory")
           && good(s, cudaMalloc((void **)&s->account, sizeof *s->account), "device memory")
           && good(s, cudaMalloc((void **)&s->handles, sizeof s->leaves), "device memory")
           && good(s, cudaMallocHost((void **)&s->seen, sizeof *s->seen), "pinned memory") && wake(s);
}

/* Loads kernels from number `first` to before `end`. */
static int load(stage *s, kernel_id first, kernel_id end) {
    static const char *const names[] = {
        [CHAIN] = "bench_nested_chain", [FAN] = "bench_nested_fan",        [NOTHING] = "bench_graph_nothing",
        [LEAF] = "bench_graph_leaf",    [LAUNCHER] = "bench_graph_launch", [AGAIN] = "bench_graph_again"};
    int ok = 1;
    for (int k = (int)first; k < (int)end && ok; k++) {
        const dpr_module *module = k <= FAN ? &bench_nested_module : &bench_graph_module;
        ok = good(s, dpr_module_function(module, names[k], &s->kernels[k]), module->name);
    }
    return ok;
}

static int free_bytes(stage *s, size_t *out) {
    size_t total;
    return good(s, cudaMemGetInfo(out, &total), "the device's free memory");
}

/* Loads the kernels that launch kernels, runs the first, and finds out what both have taken. */
static int start_nesting(stage *s) {
    size_t before, loaded, after;
    if (!free_bytes(s, &before) || !load(s, CHAIN, NOTHING) || !free_bytes(s, &loaded) || !set_account(s, 0, 1)
        || !enqueue(s, (work){CHAIN, 1}, BENCH_TAIL) || !read_account(s) || !free_bytes(s, &after))
        return 0;
    s->loaded_bytes = before > loaded ? before - loaded : 0;
    s->reserved_bytes = loaded > after ? loaded - after : 0;
    return 1;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* The library finds the driver's functions when it is asked for devices. */
static void measure(stage *s, int device, size_t pending) {
    if (dpr_device_count() == 0)
        snprintf(s->nothing, BENCH_WHY, "no GPU: %.100s", dpr_device_absent());
    else if (!open_stage(s, device, pending))
        blame(s, s->nothing);
    else if (!start_nesting(s))
        blame(s, s->hung ? s->nothing : s->no_nesting);
    if (!s->nothing[0] && !load(s, NOTHING, KERNELS))
        blame(s, s->nothing);
    s->began = seconds_now();
    for (int i = 0; i < s->n && !s->hung; i++)
        start(s, &s->subjects[i]);
    (void)bench_take_turns(s->n, take, s);
}

static void add_pool(cJSON *object, const stage *s) {
    report_add(object, "pending=%lu loaded_bytes=%lu reserved_bytes=%lu device_bytes=%lu", s->pending, s->loaded_bytes,
               s->reserved_bytes, s->loaded_bytes + s->reserved_bytes);
}

static void add_row(cJSON *rows, const stage *s, const subject *j) {
    const bench_outcome *o = &j->outcome;
    const bench_summary us = bench_summarise(o->samples, o->us.n);
    cJSON *row = report_row(rows);
    const char *why = o->why[0]        ? o->why
                      : us.n == 0      ? "the device has not ended the launches before it"
                      : us.median <= 0 ? "it takes less than can be told from the difference of two times"
                                       : NULL;
    cJSON_AddStringToObject(row, "launch", j->kind->name);
    if (s->pending > 0)
        add_pool(row, s);
    if (why) {
        cJSON_AddStringToObject(row, "why", why);
    } else {
        cJSON_AddNumberToObject(row, "samples", us.n);
        bench_json_times(row, &us);
        cJSON_AddBoolToObject(row, "settled", o->verdict == BENCH_SETTLED);
    }
    cJSON_AddStringToObject(row, "text", j->kind->text);
}

static cJSON *results(const stage *s) {
    const int fan_out[] = {(int)s->blocks, EACH_MORE};
    cJSON *object = cJSON_CreateObject();
    add_pool(object, s);
    cJSON_AddNumberToObject(object, "length", s->length);
    cli_json_add(object, "fan", cJSON_CreateIntArray(fan_out, 2));
    cJSON *rows = cJSON_AddArrayToObject(object, "launches");
    for (int i = 0; i < s->n; i++)
        add_row(rows, s, &s->subjects[i]);
    return object;
}

/* At the end of a process, what is usually done would wait for a device that hangs. */
int nested_part_main(int argc, char **argv) {
    static stage s = {.rule = {.min_samples = 7, .max_samples = 500}};
    uint64_t pending;
    int device;
    if (argc != 6)
        return cli_usage(NESTED_PART " takes DEVICE PENDING SECONDS ACCURACY");
    if (cli_device(argv[2], &device) != CLI_OK || cli_count(argv[3], &pending) != CLI_OK
        || axis_parse_seconds(argv[4], &s.rule.seconds) != CLI_OK
        || axis_parse_share(argv[5], &s.rule.half_width) != CLI_OK)
        return CLI_USAGE;
    for (int i = 0; i < KINDS; i++)
        if (pending == 0 || strcmp(kinds[i].name, with_pools) == 0)
            s.subjects[s.n++].kind = &kinds[i];
    measure(&s, device, (size_t)pending);
    if (s.hung)
        (void)cli_error("the device does not end its work");
    char *text = cli_json_take(results(&s));
    cli_json_put(stdout, text ? text : "");
    _exit(putchar('\n') == '\n' && fflush(stdout) == 0 && text && !s.hung ? CLI_OK : CLI_FAILED);
}
