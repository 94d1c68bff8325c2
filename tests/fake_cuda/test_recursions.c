/* The host's half of the engines of recursions on the GPU: memory, launches, outcomes, and CUDA calls that fail. */
#define _GNU_SOURCE /* fork() */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apart.h"
#include "cuda/module.h"
#include "fake_cuda.h"
#include "fake_recursion.h"
#include "gpu_contexts.h"
#include "gpu_memory.h"
#include "graphs.h"
#include "nested_host.h"
#include "recursion/engines.h"
#include "successor.h"
#include "support.h"

/* Every task costs the same, so runs with as many roots have as many tasks. */
static uint64_t cost(const void *data, const void *task) {
    (void)data, (void)task;
    return 1;
}

/* With two roots and two threads, so much that neither CPU nor GPU is clearly the faster one: costs are measured. */
static uint64_t middle_cost(const void *data, const void *task) {
    (void)data, (void)task;
    return 50000;
}

/* Engines `level` and `naive` run no others. */
static const dpr_recursion_kernels relocatable_kernels = {.persistent = fake_recursion_persistent,
                                                          .phase = fake_recursion_phase,
                                                          .node_bytes = sizeof(answer) + 20,
                                                          .slot_bytes = sizeof(answer),
                                                          .header_bytes = 16,
                                                          .most_lanes = DPR_MOST_LANES,
                                                          .relocatable = 1};

static const dpr_recursion successor = RECURSION(&kernels, 0, NULL),
                           relocatable = RECURSION(&relocatable_kernels, 0, NULL),
                           with_host_data = RECURSION(&kernels, 1, NULL), with_cost = RECURSION(&kernels, 0, cost),
                           of_any_engine = RECURSION(&kernels, 1, middle_cost);

/* A recursion of which no run is known. */
static const dpr_recursion *new_recursion(void) {
    static dpr_recursion made[2 * MOST_CALLS];
    static int count;
    dpr_recursion *r = &made[count++ % (2 * MOST_CALLS)];
    *r = of_any_engine;
    return r;
}

/* ---- The scene ---- */

typedef struct scene {
    dpr_ctx *ctx;
    dpr_stream stream;
    const dpr_recursion *recursion;
    dpr_recursion_options options;
    dpr_recursion_report report;
    dpr_memory in_memory, out_memory;
    size_t n;
    uint64_t *in;
    answer *out;
} scene;

static const char *const engines[] = {"persistent", "host"};
static const char *const all_engines[] = {"persistent", "host", "graph", "level", "naive"};
static const dpr_memory memories[] = {DPR_MEMORY_HOST, DPR_MEMORY_PINNED, DPR_MEMORY_MANAGED, DPR_MEMORY_DEVICE};

/* Gets memory for `n` roots and results, and fills the roots in. */
static void place(scene *s, dpr_memory in, dpr_memory out, size_t n) {
    uint64_t roots[MOST];
    s->in_memory = in;
    s->out_memory = out;
    s->n = n;
    s->in = gpu_alloc(in, n * sizeof *s->in);
    s->out = gpu_alloc(out, n * sizeof *s->out);
    make_roots(roots, 1, n);
    EXPECT_TRUE(s->in && s->out && gpu_copy(s->in, roots, n * sizeof *s->in));
}

static void displace(scene *s) {
    gpu_free(s->in_memory, s->in);
    gpu_free(s->out_memory, s->out);
}

static void open_scene(void *state) {
    scene *s = state;
    const dpr_recursion_options options = DPR_RECURSION_OPTIONS_INIT;
    const dpr_recursion_report report = DPR_RECURSION_REPORT_INIT;
    s->options = options;
    s->report = report;
    s->options.engine = "persistent";
    s->recursion = &successor;
    s->stream = gpu_stream_create();
    fake_recursion = (fake_recursion_state){.of = &successor, .phases = 11};
    place(s, DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
}

static void close_scene(void *state) {
    scene *s = state;
    dpr_ctx_destroy(s->ctx);
    displace(s);
    EXPECT_TRUE(gpu_stream_destroy(s->stream));
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

#define RECURSION_TEST(NAME) TEST_FIXTURE(Recursions, NAME, scene, open_scene, close_scene)

static void clear_results(const scene *s) {
    answer canaries[MOST];
    memset(canaries, CANARY, sizeof canaries);
    EXPECT_TRUE(gpu_copy(s->out, canaries, s->n * sizeof *canaries));
}

static dpr_status call(scene *s, dpr_stream stream) {
    static const uint64_t addend = ADDEND;
    return dpr_recursion_run(s->ctx, s->recursion, s->in, s->n, &addend, s->out, &s->options, &s->report, stream);
}

static dpr_status run(scene *s, dpr_stream stream) {
    clear_results(s);
    return call(s, stream);
}

/* Whether the results are right, or those that clear_results() left where there are to be none. */
static int has_results(const scene *s, int wanted) {
    answer got[MOST];
    EXPECT_TRUE(gpu_copy(got, s->out, s->n * sizeof *got));
    return are_answers(got, 1, s->n, wanted);
}

/* Checks that a run succeeds, and leaves nothing behind. */
static void expect_run(scene *s, dpr_stream stream) {
    EXPECT_STATUS(DPR_OK, run(s, stream));
    EXPECT_THAT(has_results(s, 1), "%s: %zu results in memory %d are wrong, of roots in memory %d",
                s->options.engine ? s->options.engine : s->report.engine, s->n, (int)s->out_memory, (int)s->in_memory);
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
}

/* Checks that a run fails with `part` in its sentence and leaves the results alone, and that the next one succeeds. */
static void expect_failure(scene *s, dpr_stream stream, dpr_status expected, const char *part) {
    const dpr_recursion_options options = s->options;
    const dpr_recursion_outcome outcome = fake_recursion.outcome;
    EXPECT_STATUS(expected, run(s, stream));
    EXPECT_CONTAINS(dpr_last_error(), part);
    EXPECT_TRUE(has_results(s, 0));
    EXPECT_EQ_I64(cudaSuccess, fake_last_error());
    s->options.arena_tasks = 0;
    fake_recursion.outcome.status = DPR_OK;
    fake_recursion.missing = cudaSuccess;
    expect_run(s, s->stream);
    s->options = options;
    fake_recursion.outcome = outcome;
}

/* ---- Results ---- */

/* Up to 8 roots are arguments of the kernel, and up to 4 results fit a mailbox. */
static void run_sizes(scene *s, dpr_memory in, dpr_memory out) {
    static const size_t sizes[] = {1, 4, 5, 8, 9, MOST};
    for (size_t i = 0; i < LENGTH(sizes) && !test_failed(); i++) {
        displace(s);
        place(s, in, out, sizes[i]);
        expect_run(s, NULL);
        expect_run(s, s->stream);
    }
}

RECURSION_TEST(results_arrive_in_any_memory) {
    for (size_t e = 0; e < LENGTH(engines); e++)
        for (size_t in = 0; in < LENGTH(memories); in++)
            for (size_t out = 0; out < LENGTH(memories); out++) {
                fixture->options.engine = engines[e];
                run_sizes(fixture, memories[in], memories[out]);
            }
}

RECURSION_TEST(work_is_done_at_once) {
    fake_set_eager(1);
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        run_sizes(fixture, DPR_MEMORY_HOST, DPR_MEMORY_HOST);
    }
    fake_set_eager(0);
}

RECURSION_TEST(the_report_has_what_the_device_counted) {
    const dpr_recursion_report *r = &fixture->report;
    fake_recursion.outcome = (dpr_recursion_outcome){.tasks = UINT64_C(1) << 40,
                                                     .deepest = 2,
                                                     .rounds = 3,
                                                     .levels = 4,
                                                     .widest = 5,
                                                     .handed_out = 6,
                                                     .serialised = 7,
                                                     .launched = 8};
    expect_run(fixture, NULL);
    EXPECT_EQ_STR("persistent", r->engine);
    EXPECT_EQ_U64(UINT64_C(1) << 40, r->tasks);
    EXPECT_EQ_U64(2, r->deepest);
    EXPECT_EQ_U64(3, r->rounds);
    EXPECT_EQ_U64(4, r->levels);
    EXPECT_EQ_U64(5, r->widest);
    EXPECT_EQ_U64(6, r->handed_out);
    EXPECT_EQ_U64(7, r->serialised);
    EXPECT_EQ_U64(1 + 8, r->launches);
    EXPECT_EQ_U64(0, r->steals);
    fixture->options.engine = "host";
    expect_run(fixture, NULL);
    EXPECT_EQ_U64(1 + (8 + 1) + (16 + 1) + 8, r->launches); /* one to begin; twice phases, of which 11 are needed */
}

/* ---- Timelines ---- */

typedef struct timeline {
    uint32_t count, wrong, first;
} timeline;

static void trace(void *user, const dpr_recursion_event *event) {
    timeline *t = user;
    const char *what = event->worker % 2 ? "solve" : "divide";
    t->wrong += event->begin < 0 || event->end <= event->begin || strcmp(event->what, what) != 0;
    t->first += event->begin == 0;
    t->count++;
}

RECURSION_TEST(spans_are_told_from_the_first_on) {
    enum { KEPT = 65536 };
    static const uint32_t counts[] = {0, 1, 100, KEPT, KEPT + 1};
    for (size_t i = 0; i < 2 * LENGTH(counts); i++) {
        timeline told = {0};
        const uint32_t count = counts[i / 2];
        fixture->options.engine = engines[i % 2];
        fixture->options.trace = trace;
        fixture->options.trace_user = &told;
        fake_recursion.outcome.spans = count;
        expect_run(fixture, NULL);
        EXPECT_EQ_U64(count < KEPT ? count : KEPT, told.count);
        EXPECT_EQ_U64(0, told.wrong);
        EXPECT_EQ_U64(count > 0, told.first);
    }
}

/* ---- Few tasks ---- */

/* A run of a recursion whose cost tells that there will be as few tasks as in the run before. */
static void expect_tiny_run(scene *s, dpr_stream stream, int is_tiny) {
    expect_run(s, stream);
    EXPECT_EQ_I64(is_tiny, fake_recursion.capacity == 0);
    EXPECT_EQ_U64(1, s->report.launches);
    if (is_tiny) {
        EXPECT_EQ_U64(1, fake_recursion.blocks);
        EXPECT_EQ_U64(32, fake_recursion.threads);
    }
}

/* Costs are known of roots in host memory, and the arguments of a kernel take 8 of them. */
RECURSION_TEST(a_warp_solves_few_tasks) {
    static const size_t sizes[] = {1, 4, 5, 8, 9, 32, 33};
    fixture->recursion = &with_cost;
    fake_recursion.outcome.tasks = 512;
    for (size_t i = 0; i < LENGTH(sizes) * LENGTH(memories); i++) {
        const size_t n = sizes[i / LENGTH(memories)];
        const dpr_memory out = memories[i % LENGTH(memories)];
        displace(fixture);
        place(fixture, DPR_MEMORY_HOST, out, n);
        expect_run(fixture, NULL);
        expect_tiny_run(fixture, NULL, n <= (out == DPR_MEMORY_HOST ? 4 : 8));
        expect_tiny_run(fixture, fixture->stream, n <= (out == DPR_MEMORY_HOST ? 4 : 8));
    }
    EXPECT_EQ_U64(512, fixture->report.tasks);
}

/* Sizes are chosen for as many tasks as the run before had. If these are too small, the run is done with others. */
RECURSION_TEST(more_tasks_than_expected_have_room) {
    displace(fixture);
    place(fixture, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2);
    fixture->recursion = &with_cost;
    fake_recursion.outcome.tasks = 100;
    expect_run(fixture, NULL);
    fake_recursion.is_large = 1;
    fake_recursion.least_capacity = 100000;
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        expect_run(fixture, fixture->stream);
        EXPECT_TRUE(fake_recursion.capacity >= 100000);
    }
    fixture->options.arena_tasks = 99999;
    EXPECT_STATUS(DPR_ERR_OUT_OF_MEMORY, run(fixture, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "arena_tasks, which is 99999");
}

/* Runs whose roots cost as much together may have had fewer tasks than this one has roots. */
RECURSION_TEST(more_roots_than_expected_tasks_have_room) {
    enum { MANY = 20000 };
    static const uint64_t addend = ADDEND;
    static uint64_t roots[MANY];
    static answer results[MANY];
    make_roots(roots, 1, MANY);
    fake_recursion.outcome.tasks = 100;
    for (size_t e = 0; e < 2 * LENGTH(engines); e++) {
        fixture->options.engine = engines[e / 2];
        if (e % 2 == 0)
            fixture->recursion = new_recursion();
        EXPECT_STATUS(DPR_OK, dpr_recursion_run(fixture->ctx, fixture->recursion, roots, MANY, &addend, results,
                                                &fixture->options, NULL, NULL));
        EXPECT_TRUE(fake_recursion.capacity >= 2 * MANY);
        EXPECT_EQ_U64(roots[MANY - 1], results[MANY - 1].task);
    }
}

/* With an arena of the caller's size, stacks have as much room as in a first run. */
RECURSION_TEST(stacks_in_a_callers_arena_have_room) {
    displace(fixture);
    place(fixture, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2);
    fixture->recursion = new_recursion();
    fixture->options.engine = "host";
    fixture->options.arena_tasks = 64;
    fake_recursion.outcome.tasks = 100;
    expect_run(fixture, NULL);
    const uint32_t first = fake_recursion.chunks;
    expect_run(fixture, NULL);
    EXPECT_EQ_U64(first, fake_recursion.chunks);
    fixture->options.arena_tasks = 0;
    expect_run(fixture, NULL);
    EXPECT_TRUE(fake_recursion.chunks < first);
}

/* Engines that the library may not choose have run by name. */
RECURSION_TEST(the_fastest_candidate_is_chosen) {
    const char *reason;
    dpr_recursion_call call = {.ctx = fixture->ctx, .recursion = &successor, .n = 1};
    const struct {
        const dpr_engine *engine;
        double seconds;
    } ran[] = {{&dpr_engine_persistent, 5e-3},
               {&dpr_engine_host, 1e-3},
               {&dpr_engine_serial, 1e-9},
               {&dpr_engine_graph, 1e-6}};
    for (size_t i = 0; i < 4 * LENGTH(ran); i++) {
        const dpr_recursion_report report = {.tasks = 15, .seconds = ran[i / 4].seconds};
        dpr_engine_note(&call, ran[i / 4].engine, &report);
    }
    EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_host);
    EXPECT_CONTAINS(reason, "the fastest for similar roots");
}

/* ---- Nested launches that a call allows ---- */

/* Makes known of a new recursion that all engines have run for so many seconds but those with nested launches. */
static void note_others(scene *s, double seconds) {
    static const dpr_engine *const others[] = {&dpr_engine_persistent, &dpr_engine_cpu, &dpr_engine_serial,
                                               &dpr_engine_host};
    enum { RUNS = 4 };
    s->recursion = new_recursion();
    dpr_recursion_call similar = {
        .ctx = s->ctx, .recursion = s->recursion, .roots = s->in, .n = s->n, .options.threads = s->options.threads};
    dpr_engine_size(&similar);
    for (size_t i = 0; i < RUNS * LENGTH(others); i++) {
        const dpr_recursion_report report = {.tasks = fake_recursion.outcome.tasks, .seconds = seconds};
        dpr_engine_note(&similar, others[i / RUNS], &report);
    }
}

/* Other engines seem to be so slow that a graph would be the fastest. */
static void allow_nested(scene *s, int allow) {
    displace(s);
    place(s, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2);
    fake_recursion.outcome.tasks = 10;
    s->options.engine = NULL;
    s->options.allow_nested = allow;
    note_others(s, 1.0);
}

/* A graph is tried, and is then the fastest. Without leave it is not chosen for that. */
RECURSION_TEST(graphs_are_chosen_where_they_are_allowed) {
    allow_nested(fixture, 0);
    expect_run(fixture, NULL);
    EXPECT_TRUE(strcmp("graph", fixture->report.engine) != 0);
    allow_nested(fixture, 1);
    for (int i = 0; i < 4; i++) {
        expect_run(fixture, fixture->stream);
        EXPECT_EQ_STR("graph", fixture->report.engine);
        if (i != 1) /* it depends on how long the first run took */
            EXPECT_CONTAINS(fixture->report.reason, i == 0 ? "it could be faster" : "it was the fastest");
    }
    fixture->options.allow_nested = 0;
    expect_run(fixture, fixture->stream);
    EXPECT_TRUE(strcmp("graph", fixture->report.engine) != 0);
    EXPECT_CONTAINS(fixture->report.reason, "it was the fastest");
}

RECURSION_TEST(leave_for_nested_launches_is_yes_or_no) {
    static const int wrong[] = {-1, 2, 256};
    fixture->options.engine = NULL;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        char part[64];
        (void)snprintf(part, sizeof part, "options->allow_nested is %d; it should be 0 or 1", wrong[i]);
        fixture->options.allow_nested = wrong[i];
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, run(fixture, NULL));
        EXPECT_CONTAINS(dpr_last_error(), part);
        EXPECT_TRUE(has_results(fixture, 0));
    }
}

/* The module of nested launches finds no room, which is no failure of the call, and is not tried again. */
RECURSION_TEST(others_run_without_memory_for_nested_launches) {
    size_t available, total;
    if (fake_module_loads() > 0)
        SKIP("the module was loaded before, by another test in this process");
    allow_nested(fixture, 1);
    ASSERT_EQ_I64(cudaSuccess, cudaMemGetInfo(&available, &total));
    fake_set_memory(total - available + ((size_t)120 << 20));
    for (int i = 0; i < 3; i++) {
        expect_run(fixture, NULL);
        EXPECT_TRUE(strcmp("graph", fixture->report.engine) != 0);
        EXPECT_CONTAINS(fixture->report.reason, "it was the fastest");
        EXPECT_EQ_I64(0, fake_module_loads());
    }
    fake_set_memory((size_t)1 << 30);
}

/* Work in the default stream may write what the policy's data point to, wherever roots and results are. */
RECURSION_TEST(engines_of_the_cpu_wait_for_the_default_stream) {
    unsigned char *words = gpu_alloc(DPR_MEMORY_PINNED, 16);
    ASSERT_TRUE(words != NULL);
    fixture->options.engine = "serial";
    EXPECT_EQ_I64(cudaSuccess, cudaMemcpyAsync(words, words + 8, 8, cudaMemcpyDefault, NULL));
    EXPECT_TRUE(fake_is_working());
    EXPECT_STATUS(DPR_OK, call(fixture, NULL));
    EXPECT_TRUE(!fake_is_working());
    gpu_free(DPR_MEMORY_PINNED, words);
}

RECURSION_TEST(more_tasks_take_more_than_a_warp) {
    timeline told = {0};
    displace(fixture);
    place(fixture, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2);
    fixture->recursion = &with_cost;
    fake_recursion.outcome.tasks = 513;
    expect_run(fixture, NULL);
    expect_tiny_run(fixture, NULL, 0);
    EXPECT_EQ_U64(1, fake_recursion.blocks); /* one block does them */
    fake_recursion.outcome.tasks = 512;
    expect_run(fixture, NULL);
    fixture->options.trace = trace; /* the warp alone keeps no spans */
    fixture->options.trace_user = &told;
    expect_tiny_run(fixture, NULL, 0);
}

/* What a warp alone cannot solve is begun anew, and errors are found then. */
RECURSION_TEST(a_warp_may_try_in_vain) {
    displace(fixture);
    place(fixture, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2);
    fixture->recursion = &with_cost;
    fake_recursion.outcome.tasks = 10;
    expect_run(fixture, NULL);
    fake_recursion.is_large = 1;
    expect_run(fixture, NULL);
    EXPECT_EQ_U64(2, fixture->report.launches);
    EXPECT_TRUE(fake_recursion.capacity > 0);
    fake_recursion.outcome.status = DPR_ERR_DIVIDE;
    expect_failure(fixture, NULL, DPR_ERR_DIVIDE, "divide() of recursion");
    fake_recursion.is_large = 0;
    expect_failure(fixture, NULL, DPR_ERR_DIVIDE, "divide() of recursion");
}

/* ---- Outcomes ---- */

RECURSION_TEST(outcomes_become_statuses) {
    static const struct {
        dpr_recursion_outcome outcome;
        dpr_status status;
        const char *part;
    } all[] = {
        {{.status = DPR_ERR_DIVIDE, .wrong = -4}, DPR_ERR_DIVIDE, "\"successor\" returned -4, and must return 0 to 3"},
        {{.status = DPR_ERR_LIMIT, .wrong = DPR_LIMIT_OF_DEPTH}, DPR_ERR_LIMIT, "max_depth, which is 17"},
        {{.status = DPR_ERR_LIMIT, .wrong = DPR_LIMIT_OF_TASKS}, DPR_ERR_LIMIT, "max_tasks, which is 1234"},
        {{.status = DPR_ERR_LIMIT, .wrong = DPR_LIMIT_OF_TIME}, DPR_ERR_LIMIT, "takes longer than 86400 seconds"},
        {{.status = DPR_ERR_OUT_OF_MEMORY}, DPR_ERR_OUT_OF_MEMORY, "the stacks of recursion \"successor\" need more"},
        {{.status = DPR_ERR_OUT_OF_MEMORY}, DPR_ERR_OUT_OF_MEMORY, "arena_tasks, which is 1001"},
        {{.status = DPR_ERR_CUDA}, DPR_ERR_CUDA, "lost tasks of recursion \"successor\""},
    };
    fixture->options.max_depth = 17;
    fixture->options.max_tasks = 1234;
    fixture->options.arena_tasks = MOST + 1;
    for (size_t i = 0; i < 4 * LENGTH(all); i++) {
        fixture->options.engine = engines[i % 2];
        displace(fixture);
        place(fixture, DPR_MEMORY_HOST, i % 4 < 2 ? DPR_MEMORY_HOST : DPR_MEMORY_DEVICE, i % 3 ? 2 : MOST);
        fake_recursion.outcome = all[i / 4].outcome;
        expect_failure(fixture, NULL, all[i / 4].status, all[i / 4].part);
    }
}

/* Two thousandths of a second and a second pass, and the run ends without its kernels. */
RECURSION_TEST(a_run_is_given_up) {
    for (size_t i = 0; i < 2 * LENGTH(engines); i++) {
        dpr_stream stream = i % 2 ? fixture->stream : NULL;
        fixture->options.engine = engines[i / 2];
        fixture->options.max_seconds = 1e-3;
        fake_recursion.is_stuck = 1;
        EXPECT_STATUS(DPR_ERR_LIMIT, run(fixture, stream));
        EXPECT_CONTAINS(dpr_last_error(), "are still running");
        EXPECT_EQ_I64(cudaErrorNotReady, dpr_last_cuda_error());
        EXPECT_TRUE(fake_is_working());
        fake_recursion.is_stuck = 0;
        fake_set_busy(0);
        EXPECT_TRUE(has_results(fixture, 0));
        expect_run(fixture, stream);
    }
}

/* Its kernels write their mailbox when other runs, in another stream, have ended. */
RECURSION_TEST(a_run_that_is_given_up_keeps_its_mailbox) {
    dpr_stream other = gpu_stream_create();
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        fixture->options.max_seconds = 1e-3;
        fake_recursion.is_stuck = 1;
        EXPECT_STATUS(DPR_ERR_LIMIT, run(fixture, fixture->stream));
        fake_recursion.is_stuck = 0;
        fake_set_busy(0);
        fixture->options.max_seconds = 0;
        expect_run(fixture, other);
        EXPECT_TRUE(fake_is_working());
        EXPECT_TRUE(gpu_stream_wait(fixture->stream));
        expect_run(fixture, other);
    }
    EXPECT_TRUE(gpu_stream_destroy(other));
}

RECURSION_TEST(a_kernel_without_an_outcome_is_a_status) {
    for (int i = 0; i < 3; i++) {
        fake_drop_kernels(1);
        expect_failure(fixture, i % 2 ? fixture->stream : NULL, DPR_ERR_CUDA, "without a result");
    }
}

/* ---- Memory ---- */

RECURSION_TEST(an_arena_has_room_for_the_roots) {
    fixture->options.arena_tasks = MOST - 1;
    expect_failure(fixture, NULL, DPR_ERR_INVALID_OPTION, "options->arena_tasks is 999, and there are 1000 roots");
    fixture->options.arena_tasks = MOST;
    expect_run(fixture, NULL);
}

RECURSION_TEST(an_arena_may_be_larger_than_the_memory) {
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        fixture->options.arena_tasks = UINT64_C(1) << 30;
        expect_failure(fixture, NULL, DPR_ERR_OUT_OF_MEMORY, "out of memory");
        EXPECT_EQ_I64(cudaErrorMemoryAllocation, dpr_last_cuda_error());
    }
}

/* ---- Streams ---- */

/* The fake device has no kernels that launch kernels, so engines `level` and `naive` do not run on it. */
RECURSION_TEST(a_captured_stream_is_refused) {
    fixture->recursion = &relocatable;
    for (size_t e = 0; e < LENGTH(all_engines); e++) {
        fixture->options.engine = all_engines[e];
        clear_results(fixture);
        ASSERT_TRUE(gpu_capture_begin(fixture->stream));
        EXPECT_STATUS(DPR_ERR_INVALID_OPTION, call(fixture, fixture->stream));
        EXPECT_CONTAINS(dpr_last_error(), "which is being captured");
        gpu_graph *graph = gpu_capture_end(fixture->stream);
        EXPECT_TRUE(graph != NULL);
        gpu_graph_destroy(graph);
        EXPECT_TRUE(has_results(fixture, 0));
        if (strcmp("level", all_engines[e]) != 0 && strcmp("naive", all_engines[e]) != 0)
            expect_run(fixture, fixture->stream);
    }
}

/* Without a stream, a call keeps away from the legacy default stream, whose use would spoil the capture. */
RECURSION_TEST(runs_while_another_stream_is_captured) {
    dpr_stream blocking = gpu_blocking_stream_create();
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        clear_results(fixture);
        ASSERT_TRUE(gpu_capture_begin(blocking));
        EXPECT_STATUS(DPR_OK, call(fixture, NULL));
        gpu_graph *graph = gpu_capture_end(blocking);
        EXPECT_TRUE(graph != NULL);
        gpu_graph_destroy(graph);
        EXPECT_TRUE(has_results(fixture, 1));
    }
    EXPECT_TRUE(gpu_stream_destroy(blocking));
}

RECURSION_TEST(a_stream_of_another_device_is_refused) {
    ASSERT_TRUE(gpu_use(1));
    dpr_stream far = gpu_stream_create();
    ASSERT_TRUE(gpu_use(0));
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        expect_failure(fixture, far, DPR_ERR_WRONG_DEVICE, "does not belong to the CUDA context of ctx");
    }
    EXPECT_TRUE(gpu_use(1) && gpu_stream_destroy(far) && gpu_use(0));
}

RECURSION_TEST(grids_fit_a_stream_with_few_sms) {
    enum { FEW = 8 };
    gpu_context *green = gpu_green_create(0, FEW);
    ASSERT_TRUE(green && gpu_context_push(green));
    dpr_stream narrow = gpu_stream_create();
    ASSERT_TRUE(narrow && gpu_context_pop());
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        expect_run(fixture, fixture->stream);
        const unsigned blocks = fake_recursion.blocks;
        expect_run(fixture, narrow);
        EXPECT_EQ_U64(blocks / 132 * FEW, fake_recursion.blocks);
        EXPECT_EQ_I64(e == 0, fake_recursion.cooperative);
        expect_run(fixture, fixture->stream);
        EXPECT_EQ_U64(blocks, fake_recursion.blocks);
    }
    EXPECT_TRUE(gpu_stream_destroy(narrow) && gpu_context_destroy(green));
}

/* ---- Captures ---- */

/* A run without a stream, before whose call number `at` another thread begins to capture a blocking stream. Returns
 * that call's name; NULL if the run makes fewer calls. */
static const char *capture_at(scene *s, int at, dpr_stream blocking) {
    clear_results(s);
    fake_capture_at(at, blocking);
    const dpr_status status = call(s, NULL);
    const char *began = fake_captured_call();
    fake_capture_at(0, NULL);
    gpu_graph *graph = began ? gpu_capture_end(blocking) : NULL;
    EXPECT_THAT(has_results(s, status == DPR_OK), "%s: before %s: %s", s->options.engine, began ? began : "nothing",
                dpr_status_name(status));
    EXPECT_THAT(status == DPR_OK || (status == DPR_ERR_CUDA && !graph), "before %s: %s", began ? began : "nothing",
                dpr_last_error());
    gpu_graph_destroy(graph);
    expect_run(s, s->stream);
    return began;
}

/* Whoever uses the legacy default stream then fails, and spoils the capture. */
RECURSION_TEST(captures_may_begin_at_any_time) {
    static const struct {
        const char *engine;
        dpr_memory memory;
    } cases[] = {{"persistent", DPR_MEMORY_HOST}, {"host", DPR_MEMORY_HOST}, {"host", DPR_MEMORY_DEVICE}};
    dpr_stream blocking = gpu_blocking_stream_create();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        int at = 1;
        displace(fixture);
        place(fixture, cases[i].memory, cases[i].memory, MOST);
        fixture->options.engine = cases[i].engine;
        while (at < MOST_CALLS && !test_failed() && capture_at(fixture, at, blocking))
            at++;
        EXPECT_TRUE(at > 10 && at < MOST_CALLS);
    }
    EXPECT_TRUE(gpu_stream_destroy(blocking));
}

/* ---- Other architectures ---- */

static const char no_kernel[] = "recursion \"successor\" has no kernel for device 0 of compute capability 9.0";

RECURSION_TEST(a_policy_for_another_architecture_is_explained) {
    fixture->recursion = &relocatable;
    for (size_t e = 0; e < LENGTH(all_engines); e++) {
        fixture->options.engine = all_engines[e];
        fake_recursion.missing = cudaErrorNoKernelImageForDevice;
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, run(fixture, NULL));
        EXPECT_CONTAINS(dpr_last_error(), no_kernel);
        EXPECT_EQ_I64(cudaErrorNoKernelImageForDevice, dpr_last_cuda_error());
        EXPECT_TRUE(has_results(fixture, 0));
        EXPECT_EQ_I64(cudaSuccess, fake_last_error());
    }
    fake_recursion.missing = cudaSuccess;
    fixture->options.engine = "host";
    expect_run(fixture, NULL);
}

/* The library may choose the CPU instead, if that reaches the data. */
RECURSION_TEST(a_policy_for_another_architecture_runs_on_the_cpu) {
    fixture->options.engine = NULL;
    fake_recursion.missing = cudaErrorNoKernelImageForDevice;
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, run(fixture, NULL));
    EXPECT_CONTAINS(dpr_last_error(), no_kernel);
    EXPECT_TRUE(has_results(fixture, 0));
    fixture->recursion = &with_host_data;
    displace(fixture);
    place(fixture, DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, MOST);
    expect_run(fixture, fixture->stream);
    EXPECT_EQ_STR("cpu", fixture->report.engine);
    EXPECT_CONTAINS(fixture->report.reason, "could not run it");
}

/* Where no engine of the GPU can run a policy, the CPU does if that reaches the data. */
RECURSION_TEST(tasks_too_large_for_the_gpu_need_data_that_the_host_reaches) {
    static const dpr_recursion_kernels large = {.slot_bytes = 1 << 20, .most_lanes = DPR_MOST_LANES};
    static const dpr_recursion of_the_gpu = RECURSION(&large, 0, NULL), of_both = RECURSION(&large, 1, NULL);
    fixture->options.engine = NULL;
    fixture->recursion = &of_the_gpu;
    EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, run(fixture, NULL));
    EXPECT_CONTAINS(dpr_last_error(), "has no room in shared memory for a task's children");
    EXPECT_TRUE(has_results(fixture, 0));
    fixture->recursion = &of_both;
    expect_run(fixture, NULL);
    EXPECT_EQ_STR("cpu", fixture->report.engine);
}

/* ---- Under MPS ---- */

RECURSION_TEST(engines_with_nested_launches_do_not_run_under_mps) {
    static const char *const nested[] = {"level", "graph", "naive"};
    dpr_ctx_destroy(fixture->ctx);
    fake_set_mps(1);
    ASSERT_STATUS(DPR_OK, dpr_ctx_create(0, &fixture->ctx));
    for (size_t e = 0; e < LENGTH(nested); e++) {
        fixture->options.engine = nested[e];
        EXPECT_STATUS(DPR_ERR_STRATEGY_UNABLE, run(fixture, NULL));
        EXPECT_CONTAINS(dpr_last_error(), "here: it needs kernels that launch kernels, which MPS does not permit");
        EXPECT_TRUE(has_results(fixture, 0));
    }
    for (size_t e = 0; e < LENGTH(engines); e++) {
        fixture->options.engine = engines[e];
        expect_run(fixture, NULL);
    }
    fake_set_mps(0);
}

/* ---- Graphs ---- */

/* A graph is made once, and later runs use it again. */
RECURSION_TEST(a_graph_is_kept_for_the_next_run) {
    fixture->options.engine = "graph";
    expect_run(fixture, NULL);
    const int made = fake_graphs_made();
    EXPECT_TRUE(made > 0);
    expect_run(fixture, NULL);
    expect_run(fixture, fixture->stream);
    EXPECT_EQ_I64(made, fake_graphs_made());
    fixture->options.engine = "host";
    expect_run(fixture, NULL);
}

/* Runs whose launches must not meet do not wait for each other for ever. */
RECURSION_TEST(waiting_for_runs_of_another_kind_has_a_limit) {
    fixture->options.engine = "graph";
    fixture->options.max_seconds = 0.05;
    ASSERT_EQ_I64(DPR_APART_BEGUN, dpr_apart_begin(DPR_APART_NESTED, 0));
    EXPECT_STATUS(DPR_ERR_LIMIT, run(fixture, NULL));
    EXPECT_CONTAINS(dpr_last_error(),
                    "has waited for 0.05 seconds, its limit (options->max_seconds), for runs in other "
                    "threads to end: launches by kernels of engine \"graph\"");
    EXPECT_TRUE(has_results(fixture, 0));
    dpr_apart_end(DPR_APART_NESTED);
    fixture->options.max_seconds = 60;
    expect_run(fixture, NULL);
}

static void *end_nested_run(void *unused) {
    (void)usleep(300 * 1000);
    dpr_apart_end(DPR_APART_NESTED);
    return unused;
}

/* Waiting for runs of other threads says nothing about an engine, so it does not count in the choice. */
RECURSION_TEST(an_engine_that_has_waited_is_not_slow) {
    static const dpr_engine *const others[] = {&dpr_engine_persistent, &dpr_engine_host, &dpr_engine_level,
                                               &dpr_engine_cpu, &dpr_engine_serial};
    const char *reason;
    pthread_t thread;
    dpr_recursion_call call = {
        .ctx = fixture->ctx, .recursion = fixture->recursion, .n = fixture->n, .options.allow_nested = 1};
    fake_recursion.outcome.tasks = 15;
    if (dpr_apart_begin(DPR_APART_GRAPH, 0) == DPR_APART_REFUSED)
        SKIP("an earlier test's nested launches may be pending, so no graph launches itself");
    dpr_apart_end(DPR_APART_GRAPH);
    dpr_engine_size(&call);
    for (size_t i = 0; i < 4 * LENGTH(others); i++) {
        const dpr_recursion_report report = {.tasks = 15, .seconds = 0.2};
        dpr_engine_note(&call, others[i / 4], &report);
    }
    fixture->options.engine = "graph";
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ_I64(DPR_APART_BEGUN, dpr_apart_begin(DPR_APART_NESTED, 0));
        ASSERT_EQ_I64(0, pthread_create(&thread, NULL, end_nested_run, NULL));
        expect_run(fixture, NULL);
        EXPECT_EQ_I64(0, pthread_join(thread, NULL));
        EXPECT_TRUE(fixture->report.seconds > 0.2);
    }
    EXPECT_TRUE(dpr_engine_choose(&call, &reason) == &dpr_engine_graph);
}

/* The phases of graph are launched by the host where kernels may launch nothing, here also because a thread has less
 * stack than when the code was loaded. */
RECURSION_TEST(without_launches_no_graph_is_made) {
    fixture->options.engine = "graph";
    fixture->options.max_pending = DPR_NO_LAUNCHES;
    expect_run(fixture, NULL);
    EXPECT_EQ_I64(0, fake_graphs_made());
    fixture->options.max_pending = 0;
    fake_set_stack(1023);
    expect_run(fixture, fixture->stream);
    EXPECT_EQ_I64(0, fake_graphs_made());
    fake_set_stack(1024);
    expect_run(fixture, fixture->stream);
    EXPECT_TRUE(fake_graphs_made() > 0);
}

/* Graphs of a kernel that does nothing here. */
RECURSION_TEST(graphs_are_for_one_run_at_a_time) {
    enum { KEPT = 16, AT_ONCE = KEPT + 3 };
    const int before = fake_graphs_made(), objects = fake_live_objects();
    CUDA_KERNEL_NODE_PARAMS two[DPR_KEPT_KERNELS] = {{.gridDimX = 1}, {.gridDimX = 1}};
    dpr_kept_graph *taken[AT_ONCE];
    dpr_graphs *graphs = dpr_graphs_create();
    ASSERT_TRUE(fixture->ctx && graphs && gpu_use(0));
    ASSERT_EQ_I64(cudaSuccess, dpr_module_function(&dpr_dp_module, "dpr_recursion_again", &two[0].func));
    two[1].func = two[0].func;
    for (int i = 0; i < AT_ONCE; i++)
        ASSERT_EQ_I64(cudaSuccess, dpr_graphs_take(graphs, two, &taken[i]));
    EXPECT_EQ_I64(before + AT_ONCE, fake_graphs_made());
    for (int i = 0; i < AT_ONCE; i++)
        EXPECT_EQ_I64(cudaSuccess, dpr_graphs_give_back(graphs, taken[i], 1));
    EXPECT_EQ_I64(objects + 2 * KEPT, fake_live_objects());
    for (int i = 0; i < AT_ONCE; i++)
        EXPECT_EQ_I64(cudaSuccess, dpr_graphs_take(graphs, two, &taken[i]));
    EXPECT_EQ_I64(before + AT_ONCE + AT_ONCE - KEPT, fake_graphs_made());
    for (int i = 0; i < AT_ONCE; i++)
        EXPECT_EQ_I64(cudaSuccess, dpr_graphs_give_back(graphs, taken[i], i % 2));
    EXPECT_EQ_I64(objects + 2 * (AT_ONCE / 2), fake_live_objects());
    dpr_graphs_destroy(graphs, 1);
    EXPECT_EQ_I64(objects, fake_live_objects());
}

/* ---- Faults, in processes of their own, which find the driver anew ---- */

/* Runs the body there, for a minute at most. */
static void expect_in_child(void (*body)(const void *), const void *context) {
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        body(context);
        (void)fflush(NULL);
        _exit(test_failed());
    }
    int status = -1;
    ASSERT_EQ_I64(child, waitpid(child, &status, 0));
    EXPECT_THAT(status == 0, "the child ended with 0x%x", (unsigned)status);
}

/* No call works after a fault, and the results are in host memory. */
static void run_faulting_kernel(const void *engine) {
    scene s = {0};
    open_scene(&s);
    s.options.engine = engine;
    clear_results(&s);
    fake_fault_kernel(cudaErrorIllegalAddress);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(DPR_ERR_CUDA, call(&s, s.stream));
        EXPECT_EQ_I64(cudaErrorIllegalAddress, dpr_last_cuda_error());
        EXPECT_EQ_U64(UINT64_C(0x0101010101010101) * CANARY, s.out->sum);
    }
    dpr_ctx_destroy(s.ctx);
    EXPECT_THAT(fake_violation() == NULL, "%s", fake_violation());
}

TEST(RecursionFaults, of_a_kernel) {
    for (size_t e = 0; e < LENGTH(engines); e++)
        expect_in_child(run_faulting_kernel, engines[e]);
}

/* ---- Calls that fail, in such processes, too ---- */

typedef struct variant {
    const char *name, *engine;
    dpr_memory in, out;
    size_t n;
    int in_stream, traced, is_tiny, allow_nested;
} variant;

static const variant variants[] = {
    {"persistent_few_roots", "persistent", DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2, 1, 0, 0, 0},
    {"persistent_host", "persistent", DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST, 1, 0, 0, 0},
    {"persistent_device", "persistent", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, MOST, 1, 0, 0, 0},
    {"persistent_host_legacy", "persistent", DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST, 0, 1, 0, 0},
    {"persistent_device_traced", "persistent", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, MOST, 1, 1, 0, 0},
    {"persistent_few_tasks", "persistent", DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2, 1, 0, 1, 0},
    {"persistent_few_tasks_legacy", "persistent", DPR_MEMORY_HOST, DPR_MEMORY_DEVICE, 2, 0, 0, 1, 0},
    {"host_few_roots", "host", DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2, 1, 0, 0, 0},
    {"host_host", "host", DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST, 1, 0, 0, 0},
    {"host_device", "host", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, MOST, 1, 0, 0, 0},
    {"host_host_legacy", "host", DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST, 0, 1, 0, 0},
    {"graph_host", "graph", DPR_MEMORY_HOST, DPR_MEMORY_HOST, MOST, 1, 0, 0, 0},
    {"graph_device_legacy", "graph", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, 2, 0, 0, 0, 0},
    {"host_device_traced", "host", DPR_MEMORY_DEVICE, DPR_MEMORY_DEVICE, MOST, 1, 1, 0, 0},
    {"measured", NULL, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2, 1, 0, 0, 0},
    {"measured_legacy", NULL, DPR_MEMORY_HOST, DPR_MEMORY_DEVICE, 2, 0, 0, 0, 0},
    {"measured_graph", NULL, DPR_MEMORY_HOST, DPR_MEMORY_HOST, 2, 1, 0, 0, 1},
};

/* So many that a graph may be faster, and may not be: what it takes is measured. */
static const double SECONDS_OF_OTHERS = 1e-4;

/* A run in which call number `fail` fails. Returns that call's name; NULL if the run makes fewer calls. */
static const char *fail_call(scene *s, const variant *v, int fail, cudaError_t error) {
    clear_results(s);
    if (!v->engine)
        s->recursion = new_recursion();
    if (v->allow_nested)
        note_others(s, SECONDS_OF_OTHERS);
    fake_fail_call(fail, error);
    const dpr_status status = call(s, v->in_stream ? s->stream : NULL);
    const char *failed = fake_failed_call();
    fake_fail_call(0, cudaSuccess);
    EXPECT_THAT(has_results(s, status == DPR_OK) && (status == DPR_OK || (failed && dpr_last_error()[0]))
                    && fake_last_error() == cudaSuccess,
                "%s: call %d, %s, failing: %s, CUDA's last error %d", v->name, fail, failed ? failed : "none",
                dpr_status_name(status), (int)fake_last_error());
    expect_run(s, NULL); /* while the stream may have work of the run that failed */
    clear_results(s);
    EXPECT_TRUE(gpu_stream_wait(s->stream));
    EXPECT_THAT(has_results(s, 0), "%s: call %d, %s, failing: results come late", v->name, fail,
                failed ? failed : "none");
    return failed;
}

/* In a context of its own, which has no pool yet. Only what is given back by the failing call itself may stay. */
static const char *fail_in_new_context(scene *s, const variant *v, int fail, cudaError_t error) {
    const int before = fake_live_objects();
    EXPECT_STATUS(DPR_OK, dpr_ctx_create(0, &s->ctx));
    const char *failed = fail_call(s, v, fail, error);
    dpr_ctx_destroy(s->ctx);
    s->ctx = NULL;
    EXPECT_THAT(fake_live_objects() == before + fake_lost_objects(failed), "%s: %d objects before, %d after %s failed",
                v->name, before, fake_live_objects(), failed ? failed : "nothing");
    return failed;
}

static void fail_every_call(const void *context) {
    static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    const variant *v = context;
    scene s = {0};
    timeline told = {0};
    open_scene(&s);
    fake_set_memory((size_t)1 << 34); /* because memory is lost with a call that gives it back */
    dpr_ctx_destroy(s.ctx);           /* which has found the driver */
    s.ctx = NULL;
    displace(&s);
    place(&s, v->in, v->out, v->n);
    s.options.engine = v->engine;
    s.options.trace = v->traced ? trace : NULL;
    s.options.trace_user = &told;
    fake_recursion.outcome.spans = 10;
    fake_recursion.outcome.tasks = 10;
    s.options.threads = v->engine ? 0 : 2;
    s.options.allow_nested = v->allow_nested;
    fake_recursion.relaunch_ns = 32 * 5000;
    s.recursion = v->is_tiny ? &with_cost : &successor;
    for (size_t e = 0; e < LENGTH(errors); e++) {
        int fail = 1;
        while (fail < MOST_CALLS && !test_failed() && fail_in_new_context(&s, v, fail, errors[e]))
            fail++;
        EXPECT_THAT(fail > 3 && fail < MOST_CALLS, "%s: %d calls", v->name, fail);
    }
    EXPECT_EQ_U64(0, told.wrong);
    EXPECT_EQ_I64(v->engine == NULL && !v->allow_nested, fake_recursion.probes > 0);
    EXPECT_EQ_I64(v->allow_nested, fake_recursion.relaunches > 0);
    close_scene(&s);
}

static void fail_every_call_in_child(void *context) {
    expect_in_child(fail_every_call, context);
}

TEST_GENERATOR(recursion_faults) {
    for (size_t i = 0; i < LENGTH(variants); i++)
        test_add(&(test_case){"RecursionFaults", variants[i].name, __FILE__, __LINE__, fail_every_call_in_child,
                              (void *)(uintptr_t)&variants[i], 0, NULL, NULL});
}
