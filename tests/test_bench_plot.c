/* Plots of `dpr bench --plot`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_plot.h"
#include "support.h"

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

static bench_row row_of(const char *subject, uint64_t count, double us) {
    return (bench_row){.at = {.ops = {1, {DPR_SUM}}, .dtype = DPR_F32, .mode = BENCH_BLOCKING, .count = count},
                       .subject = subject,
                       .strategy = subject,
                       .state = BENCH_DONE,
                       .us = {.n = 9, .median = us, .low = us, .high = us}};
}

/* The plots as text, which the caller frees. */
static char *drawn(bench_row *rows, size_t n, int columns, int utf8) {
    const bench_results r = {.rows = rows, .row_count = n};
    const plot_style style = {columns, utf8};
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!EXPECT_TRUE(f != NULL))
        return NULL;
    EXPECT_EQ_I64(0, plot_write(f, &r, &style));
    EXPECT_EQ_I64(0, fclose(f));
    return text;
}

/* Every line of a plot, which headings are not, has at most so many characters; ASCII alone unless `utf8`. */
static void check_lines(const char *text, int columns, int utf8) {
    int used = 0, is_heading = 0;
    for (const char *at = text; at && *at; at++) {
        const unsigned char byte = (unsigned char)*at;
        used = byte == '\n' ? 0 : used + ((byte & 0xC0) != 0x80);
        is_heading = used == 1 ? byte != ' ' : is_heading;
        const int is_good = byte == '\n' || (byte >= ' ' && byte <= '~') || (byte > '~' && utf8);
        ASSERT_THAT(is_good, "byte %d in %s", byte, text);
        ASSERT_THAT(used <= columns || is_heading, "more than %d columns in %s", columns, text);
    }
}

/* ---- What is drawn ---------------------------------------------------------------------------------------------- */

TEST(BenchPlot, points_lines_and_axes) {
    bench_row rows[] = {row_of("a", 16, 1),    row_of("b", 16, 1),    row_of("a", 1024, 10),
                        row_of("b", 1024, 10), row_of("a", 65536, 1), row_of("b", 65536, 1000)};
    char *text = drawn(rows, LENGTH(rows), 40, 0);
    EXPECT_EQ_STR("\nsum of f32, blocking calls, cold cache, time against elements:\n"
                  " 1.00 ms |                           .x\n"
                  "         |                          ..\n"
                  "         |                         ..\n"
                  "  336 us |                        ..\n"
                  "         |                       ..\n"
                  "         |                      ..\n"
                  "         |                     ..\n"
                  " 78.5 us |                    ..\n"
                  "         |                   ..\n"
                  "         |                  ..\n"
                  "         |                 ..\n"
                  " 18.3 us |                ..\n"
                  "         |               ..\n"
                  "         |             .*.\n"
                  "         |           ...  ..\n"
                  " 4.28 us |         ..       ...\n"
                  "         |      ...           ...\n"
                  "         |    ...               ...\n"
                  "         |  ...                   ...\n"
                  " 1.00 us |*.                         .o\n"
                  "         +-----------------------------\n"
                  "          2^4         2^10         2^16\n"
                  "          o a  x b  * several\n",
                  text);
    check_lines(text, 40, 0);
    free(text);
}

TEST(BenchPlot, utf8) {
    bench_row rows[] = {row_of("a", 16, 1), row_of("a", 1024, 10)};
    char *text = drawn(rows, LENGTH(rows), 60, 1);
    check_lines(text, 60, 1);
    EXPECT_CONTAINS(text, "\u25cf a\n");
    EXPECT_CONTAINS(text, " 10.0 us \u2502");
    EXPECT_CONTAINS(text, "\u2514\u2500\u2500");
    EXPECT_CONTAINS(text, "\xe2\xa0"); /* braille */
    free(text);
}

TEST(BenchPlot, a_plot_for_each_operation_type_mode_and_cache) {
    bench_row rows[] = {row_of("a", 16, 1), row_of("a", 16, 1), row_of("a", 16, 1)};
    rows[1].at.dtype = DPR_U8;
    rows[2].at.dtype = DPR_U8;
    rows[2].at.cache = BENCH_HOT;
    char *text = drawn(rows, LENGTH(rows), 80, 0);
    EXPECT_CONTAINS(text, "\nsum of f32, blocking calls, cold cache, time");
    EXPECT_CONTAINS(text, "\nsum of u8, blocking calls, cold cache, time");
    EXPECT_CONTAINS(text, "\nsum of u8, blocking calls, hot cache, time");
    free(text);
}

TEST(BenchPlot, what_has_no_place_is_left_out) {
    bench_row rows[] = {row_of("a", 0, 1), row_of("wrong", 16, 1), row_of("failed", 16, 1), row_of("zero", 16, 0)};
    rows[1].wrong = 1;
    rows[2].state = BENCH_FAILED;
    char *text = drawn(rows, LENGTH(rows), 80, 0);
    EXPECT_EQ_STR("", text);
    free(text);
    rows[0].at.count = 16;
    text = drawn(rows, LENGTH(rows), 80, 0);
    EXPECT_CONTAINS(text, "\n          o a\n");
    free(text);
    text = drawn(rows, 0, 80, 0);
    EXPECT_EQ_STR("", text);
    free(text);
}

TEST(BenchPlot, one_size_and_one_time_are_in_the_middle) {
    bench_row rows[] = {row_of("a", 1000, 5)};
    char *text = drawn(rows, 1, 41, 0);
    EXPECT_CONTAINS(text, "|               o\n");
    EXPECT_CONTAINS(text, "\n                       1000\n");
    free(text);
}

/* ---- Extremes --------------------------------------------------------------------------------------------------- */

TEST(BenchPlot, extremes_stay_within_the_columns) {
    static const int columns[] = {-1, 0, 1, 40, 79, 80, 200, 100000};
    bench_row rows[] = {row_of("a", 1, 1e-300), row_of("b", 1, 1e9),          row_of("a", 7, 1),
                        row_of("a", 8, 1),      row_of("a", UINT64_MAX, 1e8), row_of("b", UINT64_MAX, 1e-17)};
    for (size_t i = 0; i < LENGTH(columns); i++)
        for (int utf8 = 0; utf8 < 2; utf8++)
            for (size_t n = 2; n <= LENGTH(rows); n++) {
                const int wide = columns[i] < PLOT_LEAST ? PLOT_LEAST : columns[i] > PLOT_MOST ? PLOT_MOST : columns[i];
                char *text = drawn(rows, n, columns[i], utf8);
                check_lines(text, wide, utf8);
                EXPECT_CONTAINS(text, " 2^0");
                free(text);
            }
}

TEST(BenchPlot, as_many_strategies_as_there_can_be) {
    static char names[BENCH_SUBJECTS][16];
    static bench_row rows[2 * BENCH_SUBJECTS];
    for (int i = 0; i < BENCH_SUBJECTS; i++) {
        snprintf(names[i], sizeof names[i], "strategy.%d", i);
        rows[i] = row_of(names[i], 1024, 1 + i);
        rows[BENCH_SUBJECTS + i] = row_of(names[i], 1 << 20, 100 + 10 * i);
    }
    for (int utf8 = 0; utf8 < 2; utf8++) {
        char *text = drawn(rows, LENGTH(rows), 80, utf8);
        check_lines(text, 80, utf8);
        EXPECT_CONTAINS(text, "a strategy.8  b strategy.9");
        EXPECT_CONTAINS(text, "A strategy.34");
        EXPECT_CONTAINS(text, "* several\n");
        free(text);
    }
}
