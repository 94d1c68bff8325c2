/* `dpr bench --compare`: verdicts on times, which rows are matched, what is refused, and the report. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_compare.h"
#include "reports.h"
#include "statistics.h"
#include "support.h"

/* ---- Verdicts --------------------------------------------------------------------------------------------------- */

static const compare_rule rule = {.threshold = 0.03, .steady_threshold = 0.1};

/* A time whose interval reaches `below` and `above` from its median, as fractions. */
static compare_time time_of(double median, double below, double above) {
    return (compare_time){
        .median = median, .low = median * (1 - below), .high = median * (1 + above), .bounded = 1, .settled = 1};
}

static compare_verdict verdict_of(compare_time old, compare_time new) {
    const compare_ratio r = compare_times(&old, &new, &rule);
    EXPECT_THAT(r.low <= r.ratio && r.ratio <= r.high, "%g is not from %g to %g", r.ratio, r.low, r.high);
    return r.verdict;
}

static void check(const char *wanted, compare_time old, compare_time new) {
    EXPECT_EQ_STR(wanted, compare_verdict_name(verdict_of(old, new)));
}

TEST(BenchCompare, verdicts_have_names) {
    EXPECT_EQ_STR("same", compare_verdict_name(COMPARE_SAME));
    EXPECT_EQ_STR("failed", compare_verdict_name(COMPARE_FAILED));
    EXPECT_TRUE(compare_verdict_name(COMPARE_VERDICTS) == NULL);
}

TEST(BenchCompare, clear_differences) {
    check("same", time_of(100, .01, .01), time_of(100, .01, .01));
    check("slower", time_of(100, .01, .01), time_of(110, .01, .01));
    check("faster", time_of(100, .01, .01), time_of(90, .01, .01));
    check("slower", time_of(1e-6, .01, .01), time_of(1e12, .01, .01));
    check("faster", time_of(1e12, .01, .01), time_of(1e-6, .01, .01));
}

/* OLD with NEW is the reverse of NEW with OLD. */
TEST(BenchCompare, the_order_of_sides_does_not_matter) {
    static const compare_verdict reverse[] = {[COMPARE_SAME] = COMPARE_SAME,
                                              [COMPARE_FASTER] = COMPARE_SLOWER,
                                              [COMPARE_SLOWER] = COMPARE_FASTER,
                                              [COMPARE_UNSURE] = COMPARE_UNSURE};
    for (int i = 0; i < 150; i++)
        for (int j = 0; j < 30; j++) {
            const double ratio = 0.8 + 0.003 * i, width = 0.007 * j;
            const compare_time a = time_of(100, width, width / 3), b = time_of(100 * ratio, width / 2, width);
            const compare_ratio r = compare_times(&a, &b, &rule), s = compare_times(&b, &a, &rule);
            EXPECT_THAT(s.verdict == reverse[r.verdict], "%g, %g: %s", ratio, width, compare_verdict_name(r.verdict));
            EXPECT_NEAR_F64(1, r.low * s.high, 1e-12);
            EXPECT_NEAR_F64(1, r.high * s.low, 1e-12);
        }
}

/* However certain the times are, a change within the threshold is none, and runs of one build differ. */
TEST(BenchCompare, intervals_without_a_width) {
    const compare_time old = time_of(100, 0, 0);
    check("same", old, old);
    check("same", old, time_of(101, 0, 0));
    check("unsure", old, time_of(102.9, 0, 0));
    check("slower", old, time_of(103.1, 0, 0));
    check("faster", old, time_of(96.9, 0, 0));
    const compare_time new = time_of(100, 0, 0);
    const compare_ratio r = compare_times(&old, &new, &rule);
    EXPECT_THAT(r.high - r.low > 0.02 && r.high - r.low < 0.04, "%g to %g", r.low, r.high);
}

/* 5 % more: the intervals of both touch, overlap, or are apart. */
TEST(BenchCompare, intervals_that_touch_or_overlap) {
    check("slower", time_of(100, 0, .02), time_of(105, .02, 0));
    check("slower", time_of(100, 0, .025), time_of(102.5 / .975, .025, 0)); /* both end at 102.5 */
    check("unsure", time_of(100, 0, .05), time_of(105, .05, 0));
    check("unsure", time_of(100, .04, .04), time_of(105, .04, .04));
    check("unsure", time_of(100, .2, .2), time_of(105, .2, .2));
    /* What is on the other side of the medians tells nothing. */
    check("slower", time_of(100, .3, .01), time_of(110, .01, .3));
    check("unsure", time_of(100, .01, .3), time_of(110, .3, .01));
}

TEST(BenchCompare, intervals_that_are_too_wide_for_the_same) {
    check("same", time_of(100, .03, .03), time_of(100, .03, .03));
    check("unsure", time_of(100, .1, .1), time_of(100, .1, .1));
    check("unsure", time_of(100, .5, .5), time_of(101, .5, .5));
}

TEST(BenchCompare, the_threshold_is_the_users) {
    const compare_time old = time_of(100, .01, .01), new = time_of(108, .01, .01);
    EXPECT_EQ_I64(COMPARE_SLOWER, compare_times(&old, &new, &rule).verdict);
    EXPECT_EQ_I64(COMPARE_UNSURE, compare_times(&old, &new, &(compare_rule){.threshold = 0.09}).verdict);
    EXPECT_EQ_I64(COMPARE_SAME, compare_times(&old, &new, &(compare_rule){.threshold = 0.15}).verdict);
}

/* A machine that was slower as a whole explains as much. */
TEST(BenchCompare, drift_widens_the_interval) {
    const compare_time old = time_of(100, .01, .01), new = time_of(110, .01, .01);
    const compare_ratio r = compare_times(&old, &new, &rule);
    const compare_ratio s = compare_times(&old, &new, &(compare_rule){.threshold = 0.03, .drift = 0.25});
    EXPECT_EQ_I64(COMPARE_SLOWER, r.verdict);
    EXPECT_EQ_I64(COMPARE_UNSURE, s.verdict);
    EXPECT_NEAR_F64(r.low / 1.25, s.low, 1e-12);
    EXPECT_NEAR_F64(r.high * 1.25, s.high, 1e-12);
}

/* A scatter of samples that the interval does not show, because there were many. */
TEST(BenchCompare, scattered_samples_make_it_unsure) {
    compare_time old = time_of(100, .005, .005), new = time_of(110, .005, .005);
    check("slower", old, new);
    new.spread = 0.3;
    check("unsure", old, new);
    old.spread = 0.3;
    check("unsure", old, new);
}

TEST(BenchCompare, reasons_not_to_believe_a_time) {
    compare_time old = time_of(100, .005, .005), new = time_of(150, .005, .005);
    old.settled = 0;
    check("slower", old, new); /* its interval is wide, and that is all */
    old.doubtful = 1;
    compare_ratio r = compare_times(&old, &new, &rule);
    EXPECT_EQ_I64(COMPARE_UNSURE, r.verdict);
    EXPECT_CONTAINS(r.why, "the machine was slower");
    EXPECT_NEAR_F64(1.5, r.ratio, 1e-12);
    check("same", old, time_of(100, .005, .005));
    old.doubtful = 0;
    new.bounded = 0;
    r = compare_times(&old, &new, &rule);
    EXPECT_EQ_I64(COMPARE_UNSURE, r.verdict);
    EXPECT_CONTAINS(r.why, "fewer than 6 samples");
}

/* Medians of independent samples: the interval holds the ratio of the distributions in 95 % of cases at least. */
TEST(BenchCompare, the_interval_holds_the_ratio) {
    enum { RUNS = 2000, N = 31 };
    uint64_t state = 1;
    int held = 0;
    for (int run = 0; run < RUNS; run++) {
        compare_time us[2];
        for (int side = 0; side < 2; side++) {
            double values[N];
            for (int i = 0; i < N; i++) {
                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                values[i] = exp(0.2 * ((double)(state >> 11) * 0x1p-53 - 0.5)); /* a median of 1 */
            }
            const bench_summary s = bench_summarise(values, N);
            us[side] = (compare_time){.median = s.median, .low = s.low, .high = s.high, .bounded = s.bounded};
        }
        const compare_ratio r = compare_times(&us[0], &us[1], &rule);
        held += r.low <= 1 && r.high >= 1;
    }
    EXPECT_THAT(held >= RUNS * 0.95, "%d of %d", held, RUNS);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* A side of a text, which is a document or the rows of one; NULL after a failed check. */
typedef struct side {
    compare_side side;
    cJSON *document;
    char why[COMPARE_WHY];
    int status;
} side;

static void take(side *s, const char *text) {
    char whole[16384];
    snprintf(whole, sizeof whole, *text == '{' && strstr(text, "\"rows\"") ? "%s" : "{\"rows\": [%s]}", text);
    *s = (side){.document = cJSON_Parse(whole)};
    ASSERT_THAT(s->document != NULL, "no JSON: %s", whole);
    s->side = (compare_side){.name = "a file", .document = s->document};
    s->status = compare_read(&s->side, s->why);
}

static void leave(side *s) {
    compare_free_side(&s->side);
    cJSON_Delete(s->document);
}

static void refuse(const char *wanted, const char *text) {
    side s;
    take(&s, text);
    EXPECT_THAT(s.status == -1, "%s was taken", text);
    EXPECT_CONTAINS(s.why, wanted);
    leave(&s);
}

#define TIMES "\"samples\":9,\"median_us\":10,\"low_us\":9.9,\"high_us\":10.1,\"spread\":0.01"
#define ROW(STRATEGY, COUNT, REST)                                                                                     \
    "{\"strategy\":\"" STRATEGY "\",\"op\":\"sum\",\"dtype\":\"f32\",\"count\":" COUNT                                 \
    ",\"mode\":\"blocking\",\"cache\":\"cold\"," REST "}"

TEST(BenchCompare, rows_that_make_no_sense_are_refused) {
    refuse("no list 'rows'", "{\"rows\": []}");
    refuse("no list 'rows'", "{\"rows\": {\"a\": 1}}");
    refuse("no list 'rows'", "{\"rows\": \"rows\"}");
    refuse("row 1: it is no object", "1");
    refuse("row 1: it is no object", "[]");
    refuse("row 1: it is no object", "null");
    refuse("row 2: it is no object", ROW("a", "1", TIMES) ",\"x\"");
    refuse("row 1: it is no object that names a 'strategy'", "{" TIMES "}");
    refuse("names a 'strategy', a 'subject' or an 'engine'", "{\"strategy\":7," TIMES "}");
    refuse("row 1: it has no 'median_us'", ROW("a", "1", "\"low_us\":1"));
    refuse("row 1: it has no 'median_us'", ROW("a", "1", "\"ok\":true"));
    refuse("row 1: its 'median_us' is no finite number above 0", ROW("a", "1", "\"median_us\":0"));
    refuse("its 'median_us' is no finite number above 0", ROW("a", "1", "\"median_us\":-3"));
    refuse("its 'median_us' is no finite number above 0", ROW("a", "1", "\"median_us\":1e999"));
    refuse("its 'median_us' is no finite number above 0", ROW("a", "1", "\"median_us\":null"));
    refuse("its 'median_us' is no finite number above 0", ROW("a", "1", "\"median_us\":\"nan\""));
    refuse("its 'low_us' is no finite number above 0", ROW("a", "1", "\"median_us\":1"));
    refuse("its 'high_us' is no finite number", ROW("a", "1", "\"median_us\":1,\"low_us\":1,\"high_us\":1e999"));
    refuse("not from 'low_us' to 'high_us'",
           ROW("a", "1", "\"samples\":9,\"spread\":0,\"median_us\":1,\"low_us\":2,\"high_us\":3"));
    refuse("not from 'low_us' to 'high_us'",
           ROW("a", "1", "\"samples\":9,\"spread\":0,\"median_us\":3,\"low_us\":1,\"high_us\":2"));
    refuse("its 'steady_us' is not from 'steady_low_us' to 'steady_high_us'",
           ROW("a", "1", TIMES ",\"steady_us\":3,\"steady_low_us\":4,\"steady_high_us\":5"));
    refuse("its 'steady_low_us' is no finite number above 0", ROW("a", "1", TIMES ",\"steady_us\":3"));
    refuse("its 'spread' is no finite number from 0 on",
           ROW("a", "1", "\"samples\":9,\"median_us\":1,\"low_us\":1,\"high_us\":1,\"spread\":-1"));
    refuse("its 'ok' is neither true nor false", ROW("a", "1", TIMES ",\"ok\":\"yes\""));
    refuse("its 'doubtful' is neither true nor false", ROW("a", "1", TIMES ",\"doubtful\":2"));
    refuse("its 'count' is neither", ROW("a", "-1", TIMES));
    refuse("its 'count' is neither", ROW("a", "1.5", TIMES));
    refuse("its 'count' is neither", ROW("a", "1e300", TIMES));
    refuse("its 'count' is neither", ROW("a", "[1]", TIMES));
    refuse("two rows are of a, sum of f32, 2^1 elements, blocking, cold",
           ROW("a", "2", TIMES) "," ROW("b", "2", TIMES) "," ROW("a", "2", TIMES));
}

TEST(BenchCompare, documents_that_are_no_objects_are_refused) {
    static const char *const texts[] = {"[]", "[{\"rows\": []}]", "[[1]]", "7", "null", "\"rows\"", "true"};
    for (size_t i = 0; i < LENGTH(texts); i++) {
        char why[COMPARE_WHY] = "";
        cJSON *document = cJSON_Parse(texts[i]);
        compare_side s = {.document = document};
        EXPECT_EQ_I64(-1, compare_read(&s, why));
        EXPECT_CONTAINS(why, "no list 'rows'");
        compare_free_side(&s);
        cJSON_Delete(document);
    }
}

TEST(BenchCompare, long_names_are_refused) {
    char row[8192], name[4097];
    memset(name, 'x', 4096);
    name[4096] = 0;
    snprintf(row, sizeof row, "{\"strategy\":\"%s\"," TIMES "}", name);
    refuse("row 1: its 'strategy' is neither a text of less than 4096 bytes nor", row);
}

TEST(BenchCompare, calls_that_failed_need_no_time) {
    side s;
    take(&s, ROW("a", "1", "\"ok\":false,\"error\":\"it broke\"") "," ROW("b", "1", TIMES ",\"ok\":false,\"wrong\":3"));
    EXPECT_EQ_I64(0, s.status);
    ASSERT_EQ_I64(2, s.side.count);
    EXPECT_TRUE(!s.side.rows[0].ok && !s.side.rows[1].ok);
    leave(&s);
}

/* ---- Matching --------------------------------------------------------------------------------------------------- */

typedef struct compared {
    side old, new;
    compare_results r;
} compared;

static void compare(compared *c, const char *old, const char *new) {
    take(&c->old, old);
    take(&c->new, new);
    ASSERT_THAT(c->old.status == 0 && c->new.status == 0, "%s%s", c->old.why, c->new.why);
    ASSERT_EQ_I64(0, compare_match(&c->old.side, &c->new.side, &rule, &c->r));
}

static void forget(compared *c) {
    compare_free(&c->r);
    leave(&c->old);
    leave(&c->new);
}

#define SLOW "\"samples\":9,\"median_us\":20,\"low_us\":19.9,\"high_us\":20.1,\"spread\":0.01"

/* A row with a median and a steady time. */
#define STEADY_ROW(US, STEADY)                                                                                         \
    ROW("a", "1",                                                                                                      \
        "\"samples\":20,\"spread\":0.2,\"median_us\":" US ",\"low_us\":" US ",\"high_us\":" US                         \
        ",\"steady_us\":" STEADY ",\"steady_low_us\":" STEADY ",\"steady_high_us\":" STEADY)

/* The verdict on two such rows, and whether it is of the steady times. */
static void check_steady(const char *wanted, int is_steady, const char *old, const char *new) {
    compared c;
    compare(&c, old, new);
    ASSERT_EQ_I64(1, c.r.count);
    EXPECT_THAT(strcmp(wanted, compare_verdict_name(c.r.pairs[0].ratio.verdict)) == 0, "%s: %s", new,
                compare_verdict_name(c.r.pairs[0].ratio.verdict));
    EXPECT_EQ_I64(is_steady, c.r.pairs[0].ratio.is_steady);
    forget(&c);
}

/* compare_match() finds the change of the measured time and that of the steady time, and takes the smaller one. */
TEST(BenchCompare, launches_that_took_longer_are_no_change) {
    const char *old = STEADY_ROW("10", "11");
    check_steady("same", 1, old, STEADY_ROW("13", "11.2"));
    check_steady("same", 1, old, STEADY_ROW("7", "10.8"));
    check_steady("same", 0, old, STEADY_ROW("10", "8"));
    check_steady("slower", 1, old, STEADY_ROW("13", "13"));
    check_steady("unsure", 0, old, STEADY_ROW("13", "7")); /* to which side is not known */
    check_steady("unsure", 0, old, STEADY_ROW("7", "16"));
    check_steady("same", 1, old, STEADY_ROW("9.3", "11.5"));
    check_steady("faster", 1, old, STEADY_ROW("5", "6"));
    check_steady("unsure", 1, old, STEADY_ROW("13", "12"));   /* by 9 % */
    check_steady("unsure", 0, old, STEADY_ROW("12.5", "20")); /* its samples scatter */
    check_steady("slower", 0, old, ROW("a", "1", SLOW));      /* NEW has none */
}

TEST(BenchCompare, rows_are_matched_in_any_order) {
    compared c;
    compare(&c, ROW("a", "1", TIMES) "," ROW("b", "1", TIMES) "," ROW("a", "2", TIMES),
            ROW("c", "1", TIMES) "," ROW("a", "2", SLOW) "," ROW("a", "1", TIMES));
    EXPECT_EQ_U64(2, c.r.both);
    EXPECT_EQ_U64(1, c.r.only_old);
    EXPECT_EQ_U64(1, c.r.only_new);
    EXPECT_EQ_U64(1, c.r.verdicts[COMPARE_SAME]);
    EXPECT_EQ_U64(1, c.r.verdicts[COMPARE_SLOWER]);
    EXPECT_NEAR_F64(sqrt(2), c.r.mean, 1e-12);
    ASSERT_TRUE(c.r.worst != NULL);
    char name[COMPARE_NAME];
    EXPECT_EQ_STR("a, sum of f32, 2^1 elements, blocking, cold", compare_name(c.r.worst->new, name));
    EXPECT_EQ_I64(1, compare_is_worse(&c.r));
    forget(&c);
}

/* Whatever tells rows apart: a member that only one side has makes it another row, and what is measured does not. */
TEST(BenchCompare, what_tells_rows_apart) {
    static const char *const others[] = {"\"block\":64",  "\"depth\":3", "\"axes\":\"Nx3:0\"", "\"segments\":\"ones\"",
                                         "\"results\":7", "\"bytes\":7", "\"subject\":\"cub\""};
    static const char *const measured[] = {"\"calls\":3",      "\"gb_per_s\":7", "\"registers\":9",
                                           "\"over_floor\":2", "\"late\":1",     "\"nested\":{\"launched\":3}"};
    char row[512];
    compared c;
    for (size_t i = 0; i < LENGTH(others) + LENGTH(measured); i++) {
        const int is_other = i < LENGTH(others);
        snprintf(row, sizeof row, ROW("a", "1", TIMES ",%s"), is_other ? others[i] : measured[i - LENGTH(others)]);
        compare(&c, ROW("a", "1", TIMES), row);
        EXPECT_THAT(c.r.both == (size_t)!is_other, "%s", row);
        forget(&c);
    }
}

/* The strategy behind dpr's subject may change. */
TEST(BenchCompare, subjects_are_matched_whatever_strategy_they_had) {
    compared c;
    compare(&c, ROW("a", "1", "\"subject\":\"dpr\"," TIMES), ROW("b", "1", "\"subject\":\"dpr\"," SLOW));
    EXPECT_EQ_U64(1, c.r.verdicts[COMPARE_SLOWER]);
    forget(&c);
}

TEST(BenchCompare, the_planners_choice_is_compared_where_it_changed) {
    compared c;
    compare(&c, ROW("a", "1", TIMES ",\"chosen\":true") "," ROW("b", "1", SLOW ",\"chosen\":false"),
            ROW("a", "1", TIMES ",\"chosen\":false") "," ROW("b", "1", SLOW ",\"chosen\":true"));
    EXPECT_EQ_U64(2, c.r.both);
    EXPECT_EQ_U64(2, c.r.verdicts[COMPARE_SAME]);
    EXPECT_EQ_U64(1, c.r.verdicts[COMPARE_SLOWER]);
    EXPECT_EQ_U64(0, c.r.only_old + c.r.only_new);
    ASSERT_TRUE(c.r.worst && c.r.worst->new->choice);
    EXPECT_EQ_STR("a", c.r.worst->old->choice);
    EXPECT_EQ_STR("b", c.r.worst->new->choice);
    forget(&c);
    compare(&c, ROW("a", "1", TIMES ",\"chosen\":true"), ROW("a", "1", TIMES ",\"chosen\":true"));
    EXPECT_EQ_U64(1, c.r.count);
    forget(&c);
}

TEST(BenchCompare, failures) {
    static const char failed[] = ROW("a", "1", "\"ok\":false,\"error\":\"x\"");
    static const char wrong[] = ROW("a", "1", TIMES ",\"ok\":false"), good[] = ROW("a", "1", TIMES);
    static const struct {
        const char *old, *new;
        compare_verdict verdict;
        int is_worse;
    } cases[] = {{good, failed, COMPARE_FAILED, 1}, {good, wrong, COMPARE_FAILED, 1},
                 {failed, good, COMPARE_UNSURE, 0}, {wrong, good, COMPARE_UNSURE, 0},
                 {wrong, wrong, COMPARE_FAILED, 1}, {good, good, COMPARE_SAME, 0}};
    compared c;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        compare(&c, cases[i].old, cases[i].new);
        EXPECT_THAT(c.r.verdicts[cases[i].verdict] == 1, "case %zu", i);
        EXPECT_EQ_I64(cases[i].is_worse, compare_is_worse(&c.r));
        forget(&c);
    }
    compare(&c, ROW("b", "1", TIMES), failed);
    EXPECT_EQ_U64(1, c.r.only_new);
    EXPECT_EQ_U64(1, c.r.verdicts[COMPARE_FAILED]);
    EXPECT_EQ_I64(1, compare_is_worse(&c.r));
    EXPECT_TRUE(c.r.worst == NULL && c.r.mean == 0);
    forget(&c);
}

/* Known if both runs were on one device and have rates of a fixed piece of work. */
TEST(BenchCompare, drift_of_the_machine) {
    static const struct {
        const char *old, *new;
        double drift;
    } cases[] = {
        {"\"reference\":{\"clock_mhz\":1000,\"read_gb_per_s\":10}",
         "\"reference\":{\"clock_mhz\":1000,\"read_gb_per_s\":8}", 0.25},
        {"\"reference\":{\"clock_mhz\":1000,\"read_gb_per_s\":8}",
         "\"reference\":{\"clock_mhz\":1500,\"read_gb_per_s\":10}", 0.5},
        {"\"reference\":{\"clock_mhz\":1000}", "\"reference\":{\"clock_mhz\":0}", 0},
        {"\"reference\":{\"clock_mhz\":1000}", "\"reference\":{\"clock_mhz\":\"x\"}", 0},
        {"\"reference\":{\"clock_mhz\":1000}", "\"reference\":{\"clock_mhz\":1e999}", 0},
        {"\"reference\":{\"read_gb_per_s\":10}", "\"reference\":{\"read_gb_per_s\":1e308}", 0},
        {"\"reference\":{\"read_gb_per_s\":1e308}", "\"reference\":{\"read_gb_per_s\":1e-300}", 0},
        {"\"reference\":{\"clock_mhz\":1000,\"read_gb_per_s\":1e308}",
         "\"reference\":{\"clock_mhz\":500,\"read_gb_per_s\":10}", 1},
        {"\"reference\":{\"clock_mhz\":1000}", "\"reference\":[1]", 0},
        {"\"reference\":{\"clock_mhz\":1000}", "\"a\":1", 0},
        {"\"reference\":{\"clock_mhz\":1000}", "\"device\":{\"name\":\"other\"},\"reference\":{\"clock_mhz\":500}", 0}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char old[1024], new[1024];
        compared c;
        snprintf(old, sizeof old, "{%s,\"rows\":[" ROW("a", "1", TIMES) "]}", cases[i].old);
        snprintf(new, sizeof new, "{%s,\"rows\":[" ROW("a", "1", TIMES) "]}", cases[i].new);
        compare(&c, old, new);
        EXPECT_THAT(fabs(c.r.rule.drift - cases[i].drift) < 1e-12, "case %zu: %g", i, c.r.rule.drift);
        forget(&c);
    }
}

/* ---- Reports ---------------------------------------------------------------------------------------------------- */

static int write_all(FILE *f, const void *r, report_format format) {
    return compare_write(f, r, format);
}

static const char old_document[] =
    "{\"benchmark\":\"dpr bench\",\"version\":\"1\",\"commit\":\"abc\",\"device\":{\"name\":\"A\",\"sm_count\":2},"
    "\"settings\":{\"accuracy\":0.01,\"pool_bytes\":7},\"interrupted\":true,\"definitions\":{\"cold\":\"x\",\"a\":"
    "\"b\"},"
    "\"rows\":[" ROW("a", "1024", TIMES) "," ROW("b|c", "1024", TIMES ",\"doubtful\":true") "," ROW("gone", "3",
                                                                                                    TIMES) "]}";
static const char new_document[] =
    "{\"benchmark\":\"dpr "
    "bench\",\"version\":\"2\",\"device\":{\"name\":\"B\\u001b\"},\"settings\":{\"accuracy\":0.01},"
    "\"definitions\":{\"cold\":\"y\",\"c\":\"d\"},"
    "\"rows\":[" ROW("a", "1024", SLOW) "," ROW("b|c", "1024", SLOW) "," ROW("e", "3", TIMES) "]}";

TEST(BenchCompare, report_as_text) {
    static const char *const parts[] = {
        "OLD: a file: dpr bench 1 abc, A, 3 rows\n",
        "NEW: a file: dpr bench 2 none, B?, 3 rows\n",
        "Warning: device: name is A in OLD, and B? in NEW\n",
        "Warning: device: sm_count is 2 in OLD, and none in NEW\n",
        "Warning: settings: pool_bytes is 7 in OLD, and none in NEW\n",
        "Warning: definitions: cold is x in OLD, and y in NEW\n",
        "Warning: OLD was interrupted\n",
        "All rows: op sum, type f32, mode blocking, cache cold\n",
        "\nUnsure:\nstrategy  elements  OLD us  NEW us  NEW / OLD            95 %  note\n",
        "\nb|c           2^10   10.0?    20.0      2.000  [1.9",
        "the machine was slower than before\n",
        "\nSlower:\nstrategy  elements  OLD us  NEW us  NEW / OLD            95 %\n",
        "\na             2^10    10.0    20.0      2.000  [1.9",
        "\nOnly in OLD:\nstrategy  elements\ngone             3\n",
        "\nOnly in NEW:\nstrategy  elements\ne                3\n",
        "\nMany rows are unsure.",
        "\nThreshold 3 %;",
        "\n0 same, 0 faster, 1 slower, 1 unsure, 0 failed; 1 only in OLD, 1 only in NEW\n",
        "\nNEW / OLD: geometric mean of 2 rows 2.000; worst 2.000 [1.9",
        NULL};
    static const char *const in_markdown[] = {"### Slower\n", "| b\\|c ", "| a        |     2^10 |", NULL};
    compared c;
    compare(&c, old_document, new_document);
    check_report(write_all, &c.r, REPORT_TABLE, parts);
    check_report(write_all, &c.r, REPORT_MARKDOWN, in_markdown);
    forget(&c);
}

TEST(BenchCompare, report_as_json) {
    compared c;
    compare(&c, old_document, new_document);
    cJSON *document = report_json_of(write_all, &c.r);
    EXPECT_EQ_STR(
        "benchmark,threshold,steady_threshold,drift,old,new,warnings,rows,only_in_old,only_in_new,definitions,summary",
        keys_of(document));
    EXPECT_EQ_STR("file,benchmark,version,commit,device,rows", keys_of(member_of(document, "old")));
    EXPECT_EQ_STR("strategy,op,dtype,count,mode,cache,verdict,old_us,old_low_us,old_high_us,new_us,new_low_us,"
                  "new_high_us,ratio,ratio_low,ratio_high",
                  keys_of(member_of(document, "rows.0")));
    EXPECT_EQ_STR("slower", string_of(document, "rows.0.verdict"));
    EXPECT_EQ_STR("the machine was slower than before", string_of(document, "rows.1.why"));
    EXPECT_NEAR_F64(2, number_of(document, "rows.0.ratio"), 0);
    EXPECT_NEAR_F64(1024, number_of(document, "rows.0.count"), 0);
    EXPECT_EQ_STR("gone", string_of(document, "only_in_old.0.strategy"));
    EXPECT_EQ_STR("e", string_of(document, "only_in_new.0.strategy"));
    EXPECT_NEAR_F64(1, number_of(document, "summary.slower"), 0);
    EXPECT_NEAR_F64(2, number_of(document, "summary.worst.ratio"), 0);
    EXPECT_EQ_STR("B\x1b", string_of(document, "new.device"));
    cJSON_Delete(document);
    forget(&c);
}

TEST(BenchCompare, report_as_csv) {
    static const char *const parts[] = {
        "verdict,subject,strategy,engine,recursion,size,segments,axes,op,dtype,count,",
        ",mode,cache,memory,block,depth,results,bytes,old_us,old_low_us,",
        "\nslower,,a,,,,,,sum,f32,1024,blocking,cold,,,,,,10,9.9,10.1,20,19.9,20.1,2,1.9",
        "\nonly in OLD,,gone,,,,,,sum,f32,3,blocking,cold,,,,,,,,,,,,,,,,,,,,,,,,\n",
        "\nonly in NEW,,e,,,,,,sum,f32,3,",
        NULL};
    compared c;
    compare(&c, old_document, new_document);
    check_report(write_all, &c.r, REPORT_CSV, parts);
    forget(&c);
}

/* Rows that differ in one of them would look the same without its column. */
TEST(BenchCompare, csv_has_whatever_tells_rows_apart) {
    static const char *const parts[] = {"only in NEW,s,,e,r,5,g,x,sum,f32,1,blocking,cold,pinned,64,3,7,28,,",
                                        ",i,2,none,4,allowed\n", NULL};
    compared c;
    compare(&c, ROW("a", "1", TIMES),
            "{\"recursion\":\"r\",\"size\":5,\"input\":\"i\",\"rank\":2,\"cutoff\":\"none\",\"threads\":4,"
            "\"nested\":\"allowed\",\"rows\":[" ROW(
                "a", "1",
                "\"subject\":\"s\",\"engine\":\"e\",\"right\":true,\"segments\":\"g\",\"axes\":\"x\","
                "\"memory\":\"pinned\",\"block\":64,\"depth\":3,\"results\":7,\"bytes\":28," TIMES) "]}");
    check_report(write_all, &c.r, REPORT_CSV, parts);
    forget(&c);
}

/* Such a row has a verdict, although nothing of OLD is compared with it. */
TEST(BenchCompare, rows_of_new_alone_that_failed_are_reported) {
    static const char *const
        in_text[] = {"\nFailed:\nstrategy  OLD us  NEW us  NEW / OLD  95 %  note\nb              -  failed",
                     "  only in NEW, and failed or wrong there\n", "\nOnly in NEW:\nstrategy\nc\n\n",
                     "1 failed; 0 only in OLD, 2 only in NEW\n", NULL},
        *const in_markdown[] = {"\n### Failed\n\n| strategy |", "\n| b        |      - | failed |", NULL},
        *const in_csv[] = {"\nfailed,,b,,", ",\"only in NEW, and failed or wrong there\",", "\nonly in NEW,,c,,", NULL};
    compared c;
    compare(&c, ROW("a", "1", TIMES),
            ROW("c", "1", TIMES) "," ROW("a", "1", TIMES) "," ROW("b", "1", TIMES ",\"ok\":false"));
    check_report(write_all, &c.r, REPORT_TABLE, in_text);
    check_report(write_all, &c.r, REPORT_MARKDOWN, in_markdown);
    check_report(write_all, &c.r, REPORT_CSV, in_csv);
    cJSON *document = report_json_of(write_all, &c.r);
    EXPECT_EQ_I64(1, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_EQ_STR("only in NEW", string_of(document, "only_in_new.0.verdict"));
    EXPECT_EQ_STR("failed", string_of(document, "only_in_new.1.verdict"));
    EXPECT_EQ_STR("only in NEW, and failed or wrong there", string_of(document, "only_in_new.1.why"));
    cJSON_Delete(document);
    forget(&c);
}

/* Text of files is no markup, in paragraphs and in cells. What looks like it and is none stays: marks, intervals. */
TEST(BenchCompare, markdown_shows_the_text_of_files) {
    static const char *const in_markdown[] = {
        "\n\nOLD: a file: dpr bench &lt;img src=x&gt; [a\\](b), \\*A\\*\\_&amp;lt;\\`, 1 rows\n",
        "\n\nWarning: settings: \\_a\\_b is &lt;x&gt; in OLD, and none in NEW\n", "\n| &lt;b&gt;\\|\\\\    |  10.0~ |",
        "| [1.9", NULL};
    static const char *const in_text[] = {"\nOLD: a file: dpr bench <img src=x> [a](b), *A*_&lt;`, 1 rows\n", NULL};
    compared c;
    compare(&c,
            "{\"benchmark\":\"dpr bench\",\"version\":\"<img "
            "src=x>\",\"commit\":\"[a](b)\",\"device\":{\"name\":\"*A*_&lt;`\"},"
            "\"settings\":{\"_a_b\":\"<x>\"},\"rows\":[" ROW("<b>|\\\\", "1", TIMES ",\"settled\":false") "]}",
            ROW("<b>|\\\\", "1", SLOW));
    check_report(write_all, &c.r, REPORT_MARKDOWN, in_markdown);
    check_report(write_all, &c.r, REPORT_TABLE, in_text);
    forget(&c);
}

TEST(BenchCompare, reports_show_steady_times) {
    static const char *const nearer[] = {"steady 11.0 and 13.0\n", "the threshold of such calls is 10 %\n", NULL},
                             *const farther[] = {"the threshold of such calls is 10 %\n", NULL},
                             *const csv[] = {",11,13,,,,,\n", NULL};
    compared c;
    compare(&c, STEADY_ROW("10", "11"), STEADY_ROW("13", "13"));
    check_report(write_all, &c.r, REPORT_TABLE, nearer);
    check_report(write_all, &c.r, REPORT_CSV, csv);
    cJSON *document = report_json_of(write_all, &c.r);
    EXPECT_NEAR_F64(11, number_of(document, "rows.0.old_steady_us"), 0);
    EXPECT_NEAR_F64(13, number_of(document, "rows.0.new_steady_us"), 0);
    EXPECT_NEAR_F64(0.1, number_of(document, "steady_threshold"), 0);
    cJSON_Delete(document);
    forget(&c);
    compare(&c, STEADY_ROW("10", "11"), STEADY_ROW("10", "8")); /* the ratio is that of measured times */
    check_report(write_all, &c.r, REPORT_TABLE, farther);
    document = report_json_of(write_all, &c.r);
    EXPECT_TRUE(member_of(document, "rows.0.old_steady_us") == NULL);
    cJSON_Delete(document);
    forget(&c);
}

/* Many rows of one side are counted, and text names the first of them. */
TEST(BenchCompare, many_rows_of_one_side) {
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"rows\":[" ROW("a", "1", TIMES));
    for (int i = 2; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ",{\"strategy\":\"a\",\"count\":%d," TIMES "}", i);
    snprintf(text + used, sizeof text - used, "]}");
    static const char *const parts[] = {"\nand 18 more\n", "; 38 only in OLD, 0 only in NEW\n", NULL};
    compared c = {.old = {.document = cJSON_Parse(text)}};
    ASSERT_TRUE(c.old.document != NULL);
    c.old.side = (compare_side){.name = "x", .document = c.old.document};
    ASSERT_EQ_I64(0, compare_read(&c.old.side, c.old.why));
    take(&c.new, ROW("a", "1", TIMES));
    ASSERT_EQ_I64(0, compare_match(&c.old.side, &c.new.side, &rule, &c.r));
    check_report(write_all, &c.r, REPORT_TABLE, parts);
    forget(&c);
}
