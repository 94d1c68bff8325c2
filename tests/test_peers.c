/* The part of dpr_peers that measures nothing: results as text. */
#include <stdio.h>
#include <string.h>

#include "peer_axes.h"
#include "peers_report.h"
#include "reports.h"
#include "support.h"

static const bench_case sum_f32 = {{1, {DPR_SUM}}, DPR_F32, BENCH_GRAPH, BENCH_COLD, DPR_MEMORY_AUTO, 1, NULL};

static bench_case at(bench_case like, uint64_t count) {
    like.count = count;
    return like;
}

static bench_summary around(double x) {
    return (bench_summary){.n = 9, .median = x, .low = 0.99 * x, .high = 1.01 * x, .p10 = x, .p90 = x};
}

static void add(bench_results *r, const bench_case *where, const char *subject, double us) {
    bench_row *row = results_add_row(r);
    *row = (bench_row){.at = *where,
                       .subject = subject,
                       .state = BENCH_DONE,
                       .verdict = BENCH_SETTLED,
                       .calls = 10,
                       .checked = 90,
                       .us = around(us),
                       .gb_per_s = (double)where->count * 4 / us * 1e-3};
    if (strcmp(subject, PEERS_OURS) == 0)
        row->strategy = "flat.ticket";
    else
        row->ratio = around(us);
}

/* dpr takes 1 us there, CUB `ratio` times that. */
static void add_pair(bench_results *r, bench_case like, uint64_t count, double ratio) {
    const bench_case where = at(like, count);
    add(r, &where, PEERS_OURS, 1);
    add(r, &where, PEERS_CUB, ratio);
}

static bench_results no_results(void) {
    return (bench_results){.commit = "abc", .device = {.name = "A GPU"}, .rule = {0.005, 7, 500, 60}};
}

static int write_peers(FILE *f, const void *what, report_format format) {
    return peers_write(f, what, format);
}

static peers_results some_results(void) {
    peers_results r = {.common = no_results(), .cub = "3.0.1"};
    add_pair(&r.common, sum_f32, 1 << 13, 1.5);
    add_pair(&r.common, sum_f32, 5000, 1.25);
    add_pair(&r.common, (bench_case){{1, {DPR_MAX}}, DPR_F32, BENCH_STREAM, BENCH_COLD, DPR_MEMORY_AUTO, 0, NULL}, 64,
             3);
    const bench_case where = at(sum_f32, 1 << 13);
    bench_omission *o = results_add_omission(&r.common);
    *o = (bench_omission){where, "too \"large\""};
    return r;
}

/* dpr takes 10 us for many results, in which 1 MB could be read, and CUB twice that. */
static peers_results results_of_many(const bench_shape *shape) {
    peers_results r = {.common = no_results(), .cub = "3.6.0", .cusparse = "12.6.3"};
    bench_case where = at(sum_f32, 1 << 16);
    where.shape = shape;
    add(&r.common, &where, PEERS_OURS, 10);
    add(&r.common, &where, PEERS_CUB, 20);
    for (size_t i = 0; i < r.common.row_count; i++) {
        r.common.rows[i].results = 1000;
        r.common.rows[i].bytes = 500000;
    }
    r.common.read_gb_per_s = 100;
    return r;
}

TEST(PeersReport, tables) {
    static const char *const parts[] = {"A GPU, dpr ",
                                        ", CUB 3.0.1\n",
                                        "\nsum of f32, calls in a graph, cold cache:\n",
                                        "\nmax of f32, calls into a stream, cold cache:\n",
                                        "\nelements     bytes          dpr          cub       choice\n",
                                        "\n    2^13  32.0 KiB  1.00* \u00b10.0%   1.50 \u00b10.0%  flat.ticket\n",
                                        "\n    5000  19.5 KiB  1.250 [1.238, 1.262]\n",
                                        "\nWithout cuBLAS.\n",
                                        "too \"large\"\n",
                                        "5000 elements: cub gave 3 WRONG results of 90\n",
                                        NULL};
    peers_results r = some_results();
    r.common.rows[0].chosen = r.common.rows[2].chosen = 1;
    r.common.rows[1].ratio.median = 1.3;
    r.common.rows[3].wrong = 3;
    check_report(write_peers, &r, REPORT_TABLE, parts);
    results_free(&r.common);
}

TEST(PeersReport, csv) {
    static const char *const parts[] = {
        "subject,strategy,op,dtype,count,mode,cache,samples,calls,median_us,low_us,high_us,spread,gb_per_s,ratio,ratio_"
        "low,"
        "ratio_high,ok,settled,doubtful,why\n",
        "\ncub,,sum,f32,8192,graph,cold,9,10,1.5,1.485,1.515,0,21.8453,1.5,1.485,1.515,1,1,0,\n", NULL};
    peers_results r = some_results();
    check_report(write_peers, &r, REPORT_CSV, parts);
    results_free(&r.common);
}

TEST(PeersReport, json) {
    peers_results r = some_results();
    cJSON *document = report_json_of(write_peers, &r);
    EXPECT_EQ_STR(
        "benchmark,version,commit,device,settings,interrupted,definitions,libraries,ended_early,rows,left_out",
        keys_of(document));
    EXPECT_EQ_STR("dpr,cub", keys_of(member_of(document, "libraries")));
    EXPECT_EQ_STR(DEFINITION_KEYS
                  ",ratio,dpr,dpr.async,cub,cub.memcpy,cub.pinned,cub.native,cub.transform,cublas.dot,copy,launch",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("subject,strategy,op,dtype,count,mode,cache," FIGURE_KEYS, keys_of(member_of(document, "rows.0")));
    EXPECT_EQ_STR("subject,op,dtype,count,mode,cache," FIGURE_KEYS ",ratio,ratio_low,ratio_high",
                  keys_of(member_of(document, "rows.1")));
    EXPECT_TRUE(cJSON_IsNull(member_of(document, "ended_early")));
    EXPECT_EQ_I64(6, cJSON_GetArraySize(member_of(document, "rows")));
    EXPECT_NEAR_F64(1.5, number_of(document, "rows.1.ratio"), 1e-9);
    EXPECT_EQ_STR("flat.ticket", string_of(document, "rows.0.strategy"));
    EXPECT_EQ_STR("too \"large\"", string_of(document, "left_out.0.why"));
    cJSON_Delete(document);
    results_free(&r.common);
}

TEST(PeersReport, segments) {
    static const char *const table[] = {", CUB 3.6.0, cuSPARSE 12.6.3\n",
                                        "\nsegments  elements  results",
                                        "\nzipf          2^16     1000  10.0 \u00b10.0%  20.0 \u00b10.0%",
                                        "\nTime over that of reading as many bytes",
                                        "\nzipf          2^16     1000  2.00  4.00\n",
                                        NULL};
    static const char *const csv[] = {"subject,strategy,op,dtype,segments,axes,count,results,bytes,",
                                      "\ncub,,sum,f32,zipf,,65536,1000,500000,graph,cold,9,10,20,", NULL};
    static const bench_shape zipf = {.name = "zipf"};
    peers_results r = results_of_many(&zipf);
    check_report(write_peers, &r, REPORT_TABLE, table);
    check_report(write_peers, &r, REPORT_CSV, csv);
    cJSON *document = report_json_of(write_peers, &r);
    EXPECT_EQ_STR("dpr,cub,cusparse", keys_of(member_of(document, "libraries")));
    EXPECT_EQ_STR("zipf", string_of(document, "rows.1.segments"));
    EXPECT_NEAR_F64(4, number_of(document, "rows.1.over_floor"), 1e-9);
    EXPECT_NEAR_F64(100, number_of(document, "read_gb_per_s"), 1e-9);
    cJSON_Delete(document);
    results_free(&r.common);
}

TEST(PeersReport, axes) {
    static const char *const table[] = {"\nWithout cuBLAS.\n", "\nNx16:1", NULL};
    static const char *const csv[] = {"\ncub,,sum,f32,,Nx16:1,65536,1000,500000,graph,cold,9,10,20,", NULL};
    static const bench_shape rows = {.name = "Nx16:1", .dimensions = 2, .reduced = 2, .extents = {0, 16}};
    peers_results r = results_of_many(&rows);
    check_report(write_peers, &r, REPORT_TABLE, table);
    check_report(write_peers, &r, REPORT_CSV, csv);
    cJSON *document = report_json_of(write_peers, &r);
    EXPECT_EQ_STR(DEFINITION_KEYS ",ratio,dpr,cub,cublas.gemv,bytes,over_floor",
                  keys_of(member_of(document, "definitions")));
    EXPECT_EQ_STR("Nx16:1", string_of(document, "rows.1.axes"));
    cJSON_Delete(document);
    results_free(&r.common);
}

/* ---- Dimensions ------------------------------------------------------------------------------------------------- */

static shape_array array_of(const char *text, uint64_t count) {
    static bench_shapes shapes;
    EXPECT_EQ_I64(0, shapes_take_axes(text, &shapes));
    return shape_measures(&shapes.at[0], count, DPR_I32);
}

/* The place of element j of result i, by the extents and strides of all dimensions. */
static int64_t place_of(const shape_array *a, uint64_t i, uint64_t j) {
    int64_t place = 0;
    for (int d = a->shape->dimensions - 1; d >= 0; d--) {
        uint64_t *rest = a->shape->reduced >> d & 1 ? &j : &i;
        place += (int64_t)(*rest % a->extents[d]) * a->strides[d];
        *rest /= a->extents[d];
    }
    return place;
}

static int64_t place_in(const peers_axes *x, uint64_t number) {
    int64_t place = 0;
    for (int d = PEERS_AXES_DIMENSIONS - 1; d >= 0; d--) {
        place += (int64_t)(number % x->extents[d]) * x->strides[d];
        number /= x->extents[d];
    }
    return place;
}

static void check_places(const char *text) {
    const shape_array a = array_of(text, 5000);
    peers_axes x;
    ASSERT_EQ_I64(0, peer_axes(&a, &x));
    EXPECT_EQ_U64(a.results, x.results);
    EXPECT_EQ_U64(a.elements, x.results * x.length);
    for (uint64_t n = 0; n < a.elements; n++) {
        const int64_t place = place_of(&a, n / x.length, n % x.length);
        ASSERT_EQ_I64(place, place_in(&x, n));
        ASSERT_TRUE(!x.are_rows || place == (int64_t)n);
    }
}

TEST(PeerAxes, elements_have_their_places) {
    for (size_t i = 0; shape_axes_name(i); i++)
        check_places(shape_axes_name(i));
    check_places("4x5x6:0,1,2");
    check_places("4x5x6:0,1");
    check_places("4x5x6:1,2");
    check_places("7x1x9:2");
}

TEST(PeerAxes, dimensions_that_lie_as_one_are_one) {
    static const struct {
        const char *text;
        int kept, reduced, are_rows;
    } cases[] = {{"40x16:1", 1, 1, 1}, {"40x16:0", 1, 1, 0},   {"4x5x6:2", 1, 1, 1},
                 {"4x5x6:1", 2, 1, 0}, {"4x5x6:0,2", 1, 2, 0}, {"4x5/8x6:1", 2, 1, 0},
                 {"4x6/8:1", 1, 1, 0}, {"4x6/8:0,1", 0, 2, 0}, {"4x6:0,1", 0, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape_array a = array_of(cases[i].text, 1);
        peers_axes x;
        ASSERT_EQ_I64(0, peer_axes(&a, &x));
        EXPECT_EQ_I64(cases[i].kept, x.kept);
        EXPECT_EQ_I64(cases[i].reduced, x.reduced);
        EXPECT_EQ_I64(cases[i].are_rows, x.are_rows);
    }
}

TEST(PeerAxes, arrays_that_peers_cannot_take) {
    static const char *const texts[] = {"2x3x4x5:1,3", "65536x65536:1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const shape_array a = array_of(texts[i], UINT64_C(1) << 32);
        peers_axes x;
        EXPECT_EQ_I64(-1, peer_axes(&a, &x));
    }
}
