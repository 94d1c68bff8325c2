/* Nested launches and graphs that launch themselves are not in flight together. */
#include "apart.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support.h"

enum { THREADS = 8, RUNS = 2000 };

/* Runs in flight. */
static atomic_int nested, graphs, wrong;

static void *run_nested(void *unused) {
    for (int i = 0; i < RUNS; i++) {
        dpr_apart_begin_nested();
        atomic_fetch_add(&nested, 1);
        sched_yield();
        wrong += atomic_load(&graphs) != 0;
        atomic_fetch_sub(&nested, 1);
        dpr_apart_end_nested();
    }
    return unused;
}

static void *run_graphs(void *unused) {
    for (int i = 0; i < RUNS && dpr_apart_begin_graph(); i++) {
        atomic_fetch_add(&graphs, 1);
        sched_yield();
        wrong += atomic_load(&nested) != 0;
        atomic_fetch_sub(&graphs, 1);
        dpr_apart_end_graph();
    }
    return unused;
}

static void *nested_forever(void *unused) {
    dpr_apart_nested_forever();
    wrong += atomic_load(&graphs) != 0;
    return unused;
}

/* All of it in one test, because what is done forever is not undone. */
TEST(Apart, graphs_and_nested_launches) {
    pthread_t threads[THREADS], other;
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_create(&threads[i], NULL, i % 2 ? run_nested : run_graphs, NULL));
    for (int i = 0; i < THREADS; i++)
        ASSERT_EQ_I64(0, pthread_join(threads[i], NULL));
    EXPECT_EQ_I64(0, wrong);

    ASSERT_TRUE(dpr_apart_begin_graph());
    EXPECT_EQ_I64(0, dpr_apart_launches(7)); /* a graph runs */
    atomic_fetch_add(&graphs, 1);
    ASSERT_EQ_I64(0, pthread_create(&other, NULL, nested_forever, NULL));
    for (int i = 0; i < 1000; i++)
        sched_yield();
    atomic_fetch_sub(&graphs, 1);
    dpr_apart_end_graph();
    ASSERT_EQ_I64(0, pthread_join(other, NULL));
    EXPECT_EQ_I64(0, wrong);
    EXPECT_EQ_I64(7, dpr_apart_launches(7));
    EXPECT_TRUE(!dpr_apart_begin_graph());
    dpr_apart_begin_nested();
    dpr_apart_end_nested();
}
