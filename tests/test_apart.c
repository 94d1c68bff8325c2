/* Nested launches and graphs that launch themselves are not in flight together. What nested launches do forever is not
 * undone, so each test is for a process of its own, as ctest runs it. */
#include "apart.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support.h"

enum { THREADS = 8, RUNS = 2000 };

/* Runs in flight and runs that have ended, and what was found wrong. */
static atomic_int running[DPR_APART_KINDS], ended, wrong;

/* Waits as long as it takes. */
static int begins(dpr_apart kind) {
    return dpr_apart_begin(kind, HUGE_VAL) == DPR_APART_BEGUN;
}

TEST(Apart, it_is_quiet_while_no_run_is_in_flight) {
    static const dpr_apart kinds[] = {DPR_APART_NESTED, DPR_APART_GRAPH};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        EXPECT_TRUE(dpr_apart_is_quiet());
        ASSERT_TRUE(begins(kinds[i]));
        EXPECT_TRUE(!dpr_apart_is_quiet());
        dpr_apart_end(kinds[i]);
    }
    EXPECT_TRUE(dpr_apart_is_quiet());
}

static void run_once(dpr_apart kind) {
    const dpr_apart other = kind == DPR_APART_GRAPH ? DPR_APART_NESTED : DPR_APART_GRAPH;
    if (!begins(kind))
        return;
    running[kind]++;
    sched_yield();
    wrong += running[other] != 0;
    running[kind]--;
    dpr_apart_end(kind);
    ended++;
}

static void *run_nested(void *unused) {
    for (int i = 0; i < RUNS; i++)
        run_once(DPR_APART_NESTED);
    return unused;
}

static void *run_graphs(void *unused) {
    for (int i = 0; i < RUNS; i++)
        run_once(DPR_APART_GRAPH);
    return unused;
}

TEST(Apart, never_both) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_create(&threads[i], NULL, i % 2 ? run_nested : run_graphs, NULL));
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_join(threads[i], NULL));
    EXPECT_EQ_I64(0, wrong);
    EXPECT_EQ_I64(THREADS * RUNS, ended);
}

TEST(Apart, runs_of_one_kind_go_together) {
    for (int kind = DPR_APART_NONE; kind < DPR_APART_KINDS; kind++) {
        EXPECT_TRUE(begins((dpr_apart)kind));
        EXPECT_TRUE(begins((dpr_apart)kind));
        dpr_apart_end((dpr_apart)kind);
        dpr_apart_end((dpr_apart)kind);
    }
}

static atomic_int has_begun;

/* Begins a graph, and says so. */
static void *begin_graph(void *unused) {
    has_begun = begins(DPR_APART_GRAPH) ? 1 : -1;
    if (has_begun == 1)
        dpr_apart_end(DPR_APART_GRAPH);
    return unused;
}

/* A thread that waits to begin a graph, in `body`, while a nested run is in flight. */
static pthread_t wait_for_nested(void *(*body)(void *)) {
    pthread_t thread;
    EXPECT_TRUE(begins(DPR_APART_NESTED));
    EXPECT_EQ_I64(0, pthread_create(&thread, NULL, body, NULL));
    while (!has_begun && dpr_apart_begin(DPR_APART_NESTED, 0) == DPR_APART_BEGUN) { /* until a graph's turn is next */
        dpr_apart_end(DPR_APART_NESTED);
        sched_yield();
    }
    EXPECT_EQ_I64(0, has_begun);
    return thread;
}

static atomic_int is_next, nested_has_begun;

static void *begin_nested_behind_a_graph(void *unused) {
    is_next = 1;
    (void)begins(DPR_APART_NESTED);
    nested_has_begun = 1;
    wrong += has_begun != 1; /* the graph has waited longer */
    dpr_apart_end(DPR_APART_NESTED);
    return unused;
}

/* Nested runs do not keep a graph out by going on and on. */
TEST(Apart, kinds_take_turns) {
    const pthread_t graph = wait_for_nested(begin_graph);
    pthread_t nested;
    EXPECT_EQ_I64(0, pthread_create(&nested, NULL, begin_nested_behind_a_graph, NULL));
    for (int i = 0; i < 10000 || !is_next; i++)
        sched_yield();
    EXPECT_EQ_I64(0, nested_has_begun);
    dpr_apart_end(DPR_APART_NESTED);
    EXPECT_EQ_I64(0, pthread_join(graph, NULL));
    EXPECT_EQ_I64(0, pthread_join(nested, NULL));
    EXPECT_EQ_I64(0, wrong);
}

/* The run in flight ends as it would have, and its kind was not kept out by the one that gave up. */
TEST(Apart, waiting_has_a_limit) {
    const dpr_apart kinds[] = {DPR_APART_NESTED, DPR_APART_GRAPH};
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(begins(kinds[i]));
        EXPECT_EQ_I64(DPR_APART_LATE, dpr_apart_begin(kinds[1 - i], 0.01));
        EXPECT_EQ_I64(DPR_APART_LATE, dpr_apart_begin(kinds[1 - i], 0));
        EXPECT_TRUE(begins(kinds[i]));
        dpr_apart_end(kinds[i]);
        dpr_apart_end(kinds[i]);
        EXPECT_EQ_I64(DPR_APART_BEGUN, dpr_apart_begin(kinds[1 - i], 0));
        dpr_apart_end(kinds[1 - i]);
    }
}

static void *begin_graph_soon(void *unused) {
    has_begun = dpr_apart_begin(DPR_APART_GRAPH, 0.2) == DPR_APART_LATE ? -1 : 1;
    return unused;
}

/* A nested run that waits only because a graph's turn is next goes on when the graph gives up. */
TEST(Apart, giving_up_lets_others_go) {
    const pthread_t thread = wait_for_nested(begin_graph_soon);
    EXPECT_TRUE(begins(DPR_APART_NESTED));
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
    EXPECT_EQ_I64(-1, has_begun);
    dpr_apart_end(DPR_APART_NESTED);
    dpr_apart_end(DPR_APART_NESTED);
}

TEST(Apart, cancelled_threads_keep_nobody_out) {
    const pthread_t thread = wait_for_nested(begin_graph);
    EXPECT_EQ_I64(0, pthread_cancel(thread));
    dpr_apart_end(DPR_APART_NESTED);
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
    EXPECT_TRUE(begins(DPR_APART_NESTED));
    dpr_apart_end(DPR_APART_NESTED);
}

TEST(Apart, nested_launches_that_nobody_ends_let_graphs_go) {
    const pthread_t thread = wait_for_nested(begin_graph);
    EXPECT_EQ_I64(0, dpr_apart_launches(0)); /* none, so nothing is pending */
    EXPECT_EQ_I64(0, has_begun);
    EXPECT_EQ_I64(7, dpr_apart_launches(7));
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
    EXPECT_EQ_I64(-1, has_begun);
    dpr_apart_end(DPR_APART_NESTED);
    EXPECT_EQ_I64(DPR_APART_REFUSED, dpr_apart_begin(DPR_APART_GRAPH, HUGE_VAL));
    EXPECT_TRUE(begins(DPR_APART_NESTED));
    dpr_apart_end(DPR_APART_NESTED);
}

static void *nested_forever(void *unused) {
    dpr_apart_nested_forever();
    wrong += running[DPR_APART_GRAPH] != 0;
    return unused;
}

TEST(Apart, nested_launches_wait_for_graphs) {
    pthread_t thread;
    ASSERT_TRUE(begins(DPR_APART_GRAPH));
    running[DPR_APART_GRAPH]++;
    EXPECT_EQ_I64(0, pthread_create(&thread, NULL, nested_forever, NULL));
    for (int i = 0; i < 1000; i++)
        sched_yield();
    EXPECT_EQ_I64(0, dpr_apart_launches(7)); /* in a stream, where nobody waits */
    running[DPR_APART_GRAPH]--;
    dpr_apart_end(DPR_APART_GRAPH);
    EXPECT_EQ_I64(0, pthread_join(thread, NULL));
    EXPECT_EQ_I64(0, wrong);
    EXPECT_EQ_I64(DPR_APART_REFUSED, dpr_apart_begin(DPR_APART_GRAPH, HUGE_VAL));
}
