/* Prints one of the README's tables, made from the lists and from measured results:
 *
 *     dpr_readme_tables ops|dtypes|strategies|statuses
 *     dpr_readme_tables gpu|ladder|nested|peers|cpu FILE.json
 *                                  a file that dpr bench, dpr bench --ladder, dpr bench --nested, dpr_peers or
 *                                  dpr_bench_cpu wrote
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "defuse.h"
#include "figures.h"
#include "lists.h"
#include "plan/registry.h"

static void print_ops(void) {
    puts("| operation | `enum dpr_op` | result | element types |\n|---|---|---|---|");
    for (int i = 0; i < DPR_OP_COUNT; i++) {
        const char *types = dpr_ops[i].domain == DPR_DOMAIN_ANY       ? "all"
                            : dpr_ops[i].domain == DPR_DOMAIN_ORDERED ? "all but complex"
                                                                      : "truth values and integers";
        printf("| `%s` | `%s` | %s | %s |\n", dpr_ops[i].name, dpr_ops[i].id, dpr_ops[i].text, types);
    }
}

static void print_dtypes(void) {
    puts("| type | `enum dpr_dtype` | element | bytes | type of a sum |\n|---|---|---|---|---|");
    for (int i = 0; i < DPR_DTYPE_COUNT; i++)
        printf("| `%s` | `%s` | %s | %d | `%s` |\n", dpr_dtypes[i].name, dpr_dtypes[i].id, dpr_dtypes[i].text,
               dpr_dtypes[i].size, dpr_dtype_name(dpr_dtypes[i].wide));
}

static void print_strategies(void) {
    puts("| strategy | runs on | how |\n|---|---|---|");
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        printf("| `%s` | %s | %s |\n", dpr_strategies[i]->name, dpr_strategies[i]->side == DPR_ON_GPU ? "GPU" : "CPU",
               dpr_strategies[i]->text);
}

static void print_statuses(void) {
    puts("| status | meaning |\n|---|---|");
    for (int i = 0; i < DPR_STATUS_COUNT; i++)
        printf("| `%s` | %s |\n", dpr_status_name((dpr_status)i), dpr_status_text((dpr_status)i));
}

/* ---- Measured results ---- */

/* The whole file; NULL if it cannot be read or memory runs out. */
static char *read_text(FILE *file) {
    size_t length = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text) {
        length += fread(text + length, 1, room - 1 - length, file);
        if (length < room - 1)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    if (text && !ferror(file)) {
        text[length] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* Defuses all strings of a document; NULL is none. */
static void defuse_strings(cJSON *item) {
    for (; item; item = item->next) {
        if (cJSON_IsString(item))
            defuse(item->valuestring);
        defuse_strings(item->child);
    }
}

static cJSON *read_json(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = read_text(file);
    (void)fclose(file);
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    free(text);
    defuse_strings(json);
    return json;
}

static const cJSON *item_of(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double number_of(const cJSON *object, const char *name) {
    return cJSON_GetNumberValue(item_of(object, name));
}

static const char *string_of(const cJSON *object, const char *name) {
    const char *value = cJSON_GetStringValue(item_of(object, name));
    return value ? value : "?";
}

static int is_true(const cJSON *object, const char *name) {
    return cJSON_IsTrue(item_of(object, name));
}

static int is_string(const cJSON *object, const char *name, const char *value) {
    return strcmp(string_of(object, name), value) == 0;
}

/* ---- dpr bench and dpr_peers ---- */

/* Exponents of the numbers of elements that tables of sizes show. */
static const int exponents[] = {0, 4, 8, 12, 16, 20, 24, 28, 30};
enum { EXPONENTS = sizeof exponents / sizeof exponents[0] };

/* What rows are looked for by, beside their number of elements. */
typedef struct table {
    const cJSON *rows;
    const char *op, *dtype, *mode, *cache;
} table;

static int is_of(const table *t, const cJSON *row, int exponent) {
    return is_string(row, "op", t->op) && is_string(row, "dtype", t->dtype) && is_string(row, "mode", t->mode)
           && is_string(row, "cache", t->cache) && number_of(row, "count") == (double)(UINT64_C(1) << exponent);
}

static const cJSON *chosen_at(const table *t, int exponent) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, t->rows) {
        if (is_of(t, row, exponent) && is_true(row, "chosen"))
            return row;
    }
    return NULL;
}

static const cJSON *quickest_at(const table *t, int exponent) {
    const cJSON *row = NULL, *best = NULL;
    cJSON_ArrayForEach(row, t->rows) {
        if (is_of(t, row, exponent) && is_true(row, "ok")
            && (!best || number_of(row, "median_us") < number_of(best, "median_us")))
            best = row;
    }
    return best;
}

static const cJSON *subject_at(const table *t, int exponent, const char *subject) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, t->rows) {
        if (is_of(t, row, exponent) && is_string(row, "subject", subject))
            return row;
    }
    return NULL;
}

/* Cells: the time of a row, and whether it is to be believed. */
static void print_time(const cJSON *row, const char *unit) {
    if (!row)
        fputs(" - |", stdout);
    else if (!is_true(row, "ok"))
        fputs(" failed |", stdout);
    else
        printf(" %.4g%s%s |", number_of(row, "median_us"), unit, is_true(row, "doubtful") ? " (doubtful)" : "");
}

static void print_rate(const cJSON *row) {
    if (row && is_true(row, "ok"))
        printf(" %.4g |", number_of(row, "gb_per_s"));
    else
        fputs(" - |", stdout);
}

static void print_strategy(const cJSON *row) {
    if (row)
        printf(" `%s` |", string_of(row, "strategy"));
    else
        fputs(" - |", stdout);
}

static void print_commit(const cJSON *results) {
    printf("%s, commit %s", string_of(item_of(results, "device"), "name"), string_of(results, "commit"));
}

static void print_gpu_sizes(const table *t) {
    puts("| elements | planner's choice | time | GB/s | quickest | its time |\n|---|---|---|---|---|---|");
    for (int i = 0; i < EXPONENTS; i++) {
        const cJSON *chosen = chosen_at(t, exponents[i]), *quickest = quickest_at(t, exponents[i]);
        printf("| 2^%d |", exponents[i]);
        print_strategy(chosen);
        print_time(chosen, " us");
        print_rate(chosen);
        print_strategy(quickest);
        print_time(quickest, " us");
        puts("");
    }
}

static void print_gpu_pair(const table *t) {
    static const int columns[] = {20, 28};
    const cJSON *row[2] = {chosen_at(t, columns[0]), chosen_at(t, columns[1])};
    if (!row[0] && !row[1])
        return;
    printf("| %s of %s |", t->op, t->dtype);
    for (int i = 0; i < 2; i++) {
        print_strategy(row[i]);
        print_time(row[i], " us");
        print_rate(row[i]);
    }
    puts("");
}

/* What dpr bench wrote. */
static int print_gpu(const cJSON *results) {
    table t = {item_of(results, "rows"), "sum", "f32", "graph", "cold"};
    if (!is_string(results, "benchmark", "dpr bench") || !cJSON_IsArray(t.rows))
        return -1;
    print_commit(results);
    printf("; sum of f32%s:\n\n", is_true(results, "interrupted") ? ", interrupted" : "");
    print_gpu_sizes(&t);
    puts("\nThe planner's choice for others, at 2^20 and at 2^28 elements:\n\n"
         "| problem | 2^20 | time | GB/s | 2^28 | time | GB/s |\n|---|---|---|---|---|---|---|");
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int dtype = 0; dtype < DPR_DTYPE_COUNT; dtype++) {
            t.op = dpr_ops[op].name;
            t.dtype = dpr_dtypes[dtype].name;
            if (op != DPR_SUM || dtype != DPR_F32)
                print_gpu_pair(&t);
        }
    return 0;
}

static void print_count(const cJSON *object, const char *name) {
    char text[32];
    fputs(figure_elements((uint64_t)number_of(object, name), text), stdout);
}

/* A cell: a number of the row with so many decimals; "-" where it has none. */
static void print_figure(const cJSON *row, const char *name, int decimals) {
    if (cJSON_IsNumber(item_of(row, name)))
        printf(" %.*f |", decimals, number_of(row, name));
    else
        fputs(" - |", stdout);
}

/* The same in percent, and with one decimal at least where it is less than ten. */
static void print_share(const cJSON *row, const char *name, int decimals) {
    const double percent = 100 * number_of(row, name);
    if (cJSON_IsNumber(item_of(row, name)))
        printf(" %.*f %% |", percent < 9.95 && decimals < 1 ? 1 : decimals, percent);
    else
        fputs(" - |", stdout);
}

/* Strategies that launch fewer blocks than the SMs hold, which is not to be seen from what the kernel uses. */
static void print_grids(const cJSON *rows) {
    const cJSON *row = NULL;
    const char *separator = "\nFewer blocks than the SMs hold are launched by ";
    cJSON_ArrayForEach(row, rows) {
        if (!is_string(row, "limited_by", "grid"))
            continue;
        printf("%s`%s` (%.0f)", separator, string_of(row, "strategy"), number_of(row, "blocks"));
        separator = ", ";
    }
    if (*separator == ',')
        puts(", at most.");
}

/* What dpr bench --ladder wrote. */
static int print_ladder(const cJSON *results) {
    const cJSON *rows = item_of(results, "rows"), *first = cJSON_GetArrayItem(rows, 0), *row = NULL;
    if (!is_string(results, "benchmark", "dpr bench --ladder") || !first)
        return -1;
    print_commit(results);
    printf("; %s of ", string_of(first, "op"));
    print_count(first, "count");
    printf(" %s", string_of(first, "dtype"));
    if (cJSON_IsNumber(item_of(first, "threads")))
        printf(" in blocks of %.0f", number_of(first, "threads"));
    if (cJSON_IsNumber(item_of(results, "read_gb_per_s")))
        printf("; this GPU reads %.0f GB/s at best", number_of(results, "read_gb_per_s"));
    printf("%s:\n\n", is_true(results, "interrupted") ? "; interrupted" : "");
    puts("| strategy | us | GB/s | of bandwidth | speed-up | registers | shared bytes | occupancy | what it changes |\n"
         "|---|---|---|---|---|---|---|---|---|");
    cJSON_ArrayForEach(row, rows) {
        printf("| `%s` |", string_of(row, "strategy"));
        print_time(row, "");
        print_rate(row);
        print_share(row, "share", 1);
        print_figure(row, "speedup", 2);
        print_figure(row, "registers", 0);
        print_figure(row, "shared_bytes", 0);
        print_share(row, "occupancy", 0);
        printf(" %s |\n", string_of(row, "text"));
    }
    print_grids(rows);
    return 0;
}

/* Cells: a median in microseconds, with three digits or so, and its spread; or why there is none. */
static void print_cost(const cJSON *cost) {
    char number[32];
    if (!cJSON_IsNumber(item_of(cost, "median_us"))) {
        printf(" - | %s |", string_of(cost, "why"));
        return;
    }
    printf(" %s |", figure_digits(number_of(cost, "median_us"), number));
    print_share(cost, "spread", 1);
}

static void print_memory(const cJSON *object) {
    char bytes[32];
    const double all = number_of(object, "loaded_bytes") + number_of(object, "reserved_bytes");
    fputs(all > 0 ? figure_bytes((uint64_t)all, bytes) : "-", stdout);
}

static void print_nested_pools(const cJSON *pools) {
    const cJSON *pool = NULL;
    puts("\n| pending launches, at most | device memory | tail launch, us | spread |\n|---|---|---|---|");
    cJSON_ArrayForEach(pool, pools) {
        printf("| %.0f | ", number_of(pool, cJSON_IsNumber(item_of(pool, "pending")) ? "pending" : "asked"));
        print_memory(pool);
        fputs(" |", stdout);
        print_cost(pool);
        puts("");
    }
}

static void print_nested_row(const cJSON *row) {
    static const char *const counts[] = {"launched", "refused", "in_line", "deepest"};
    char number[32];
    const cJSON *nested = item_of(row, "nested");
    fputs("| ", stdout);
    print_count(row, "count");
    printf(" | `%s` | %s%s |", string_of(row, "strategy"),
           is_true(row, "ok") ? figure_digits(number_of(row, "median_us"), number) : "failed",
           is_true(row, "doubtful") ? " (doubtful)" : "");
    print_figure(row, "ratio", 1);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        print_figure(nested, counts[i], 0);
    printf(" %s |\n", string_of(row, "text"));
}

/* What dpr bench --nested wrote. */
static int print_nested(const cJSON *results) {
    const cJSON *rows = item_of(results, "rows"), *launches = item_of(results, "launches"), *item = NULL;
    const cJSON *first = cJSON_GetArrayItem(rows, 0);
    if (!is_string(results, "benchmark", "dpr bench --nested") || !first || !cJSON_IsArray(launches))
        return -1;
    print_commit(results);
    printf("; %.0f launches may be pending%s:\n\n", number_of(results, "pending"),
           is_true(results, "interrupted") ? "; interrupted" : "");
    puts("| launch | us | spread | what it is |\n|---|---|---|---|");
    cJSON_ArrayForEach(item, launches) {
        printf("| `%s` |", string_of(item, "launch"));
        print_cost(item);
        printf(" %s |\n", string_of(item, "text"));
    }
    print_nested_pools(item_of(results, "pools"));
    printf("\n%s of %s, with what the launches of a call came to:\n\n", string_of(first, "op"),
           string_of(first, "dtype"));
    puts("| elements | strategy | us | ratio | launched | refused | in line | deepest | how |\n"
         "|---|---|---|---|---|---|---|---|---|");
    cJSON_ArrayForEach(item, rows) {
        print_nested_row(item);
    }
    return 0;
}

static void print_peers_mode(table t, const char *mode, int exponent) {
    t.mode = mode;
    const cJSON *cub = subject_at(&t, exponent, "cub");
    print_time(subject_at(&t, exponent, "dpr"), "");
    print_time(cub, "");
    if (cub && cJSON_IsNumber(item_of(cub, "ratio")))
        printf(" %.3g |", number_of(cub, "ratio"));
    else
        fputs(" - |", stdout);
    print_time(subject_at(&t, exponent, "launch"), "");
}

static void print_peers_sizes(const table *t) {
    static const char *const modes[] = {"graph", "stream", "blocking"};
    enum { MODES = sizeof modes / sizeof modes[0] };
    fputs("| elements |", stdout);
    for (int m = 0; m < MODES; m++)
        printf(" %s: dpr | CUB | ratio | launch |", modes[m]);
    fputs("\n|---|", stdout);
    for (int m = 0; m < MODES; m++)
        fputs("---|---|---|---|", stdout);
    puts("");
    for (int i = 0; i < EXPONENTS; i++) {
        printf("| 2^%d |", exponents[i]);
        for (int m = 0; m < MODES; m++)
            print_peers_mode(*t, modes[m], exponents[i]);
        puts("");
    }
}

/* ---- Floors ---- */

static int is_at_most(const cJSON *floor) {
    return is_string(floor, "what", "us") || is_string(floor, "what", "growth");
}

/* Whether two floors differ in nothing but the operation and the type. */
static int is_same_floor(const cJSON *a, const cJSON *b) {
    return is_string(a, "mode", string_of(b, "mode")) && is_string(a, "cache", string_of(b, "cache"))
           && is_string(a, "what", string_of(b, "what")) && number_of(a, "low_count") == number_of(b, "low_count")
           && number_of(a, "high_count") == number_of(b, "high_count")
           && number_of(a, "bound") == number_of(b, "bound");
}

static int is_first_of_its_kind(const cJSON *floors, const cJSON *floor) {
    const cJSON *before = NULL;
    cJSON_ArrayForEach(before, floors) {
        if (before == floor)
            return 1;
        if (is_same_floor(before, floor))
            return 0;
    }
    return 1;
}

/* The worst of one pair, in bold where the floor is missed. */
static void print_worst(const cJSON *floor) {
    const char *bold = number_of(floor, "missed") > 0 ? "**" : "";
    printf("%s%s of %s ", bold, string_of(floor, "op"), string_of(floor, "dtype"));
    if (number_of(floor, "counts") == 0)
        fputs("not measured", stdout);
    else if (!cJSON_IsNumber(item_of(floor, "worst")))
        fputs("failed", stdout);
    else {
        printf("%.4g at ", number_of(floor, "worst"));
        print_count(floor, "worst_count");
    }
    fputs(bold, stdout);
}

static void print_floor_line(const cJSON *floors, const cJSON *floor) {
    const cJSON *other = NULL;
    const char *separator = "";
    printf("| %s, %s | ", string_of(floor, "mode"), string_of(floor, "cache"));
    print_count(floor, "low_count");
    if (number_of(floor, "high_count") > number_of(floor, "low_count")) {
        fputs(" to ", stdout);
        print_count(floor, "high_count");
    }
    printf(" | %s at %s %.4g | ", string_of(floor, "what"), is_at_most(floor) ? "most" : "least",
           number_of(floor, "bound"));
    cJSON_ArrayForEach(other, floors) {
        if (!is_same_floor(floor, other))
            continue;
        fputs(separator, stdout);
        print_worst(other);
        separator = ", ";
    }
    puts(" |");
}

static void print_floors(const cJSON *floors) {
    const cJSON *floor = NULL;
    int held = 0, missed = 0, unmeasured = 0;
    cJSON_ArrayForEach(floor, floors) {
        unmeasured += number_of(floor, "counts") == 0;
        missed += number_of(floor, "missed") > 0;
    }
    held = cJSON_GetArraySize(floors) - missed - unmeasured;
    printf("\nFloors: %d held, %d missed, %d not measured. The worst of each, missed ones in bold:\n\n", held, missed,
           unmeasured);
    puts("| calls | elements | floor | worst |\n|---|---|---|---|");
    cJSON_ArrayForEach(floor, floors) {
        if (is_first_of_its_kind(floors, floor))
            print_floor_line(floors, floor);
    }
}

/* What dpr_peers wrote. */
static int print_peers(const cJSON *results) {
    const table t = {item_of(results, "rows"), "sum", "f32", "graph", "cold"};
    const char *ended = cJSON_GetStringValue(item_of(results, "ended_early"));
    if (!is_string(results, "benchmark", "dpr peers") || !cJSON_IsArray(t.rows))
        return -1;
    print_commit(results);
    printf("; sum of f32 beside CUB %s, in microseconds%s%s:\n\n", string_of(item_of(results, "libraries"), "cub"),
           ended ? "; ended early: " : "", ended ? ended : "");
    print_peers_sizes(&t);
    if (cJSON_IsArray(item_of(results, "floors")))
        print_floors(item_of(results, "floors"));
    return 0;
}

/* ---- dpr_bench_cpu ---- */

static int print_cpu(const cJSON *results) {
    if (!item_of(results, "threads_ratio"))
        return -1;
    const int gpus = (int)number_of(results, "gpus");
    printf(
        "An %s with %d threads sums %.0f MiB of F32. The ratio compares dpr with OpenMP loops (`simd reduction`) that "
        "are compiled with the same flags and take turns with it:\n\n",
        string_of(results, "device"), (int)number_of(results, "threads"), number_of(results, "bytes") / (1 << 20));
    puts("| strategy | GB/s | ratio to OpenMP |\n|---|---|---|");
    printf("| `cpu.threads` | %.1f | %.2f |\n", number_of(results, "cpu.threads_gb_per_s"),
           number_of(results, "threads_ratio"));
    printf("| `cpu.simd` | %.1f | %.2f |\n", number_of(results, "cpu.simd_gb_per_s"), number_of(results, "simd_ratio"));
    printf("\n`dpr_reduce()` takes %.0f ns to sum 16 doubles that are in the L1 cache on this machine, which has %d "
           "GPU%s; "
           "a bare loop takes %.0f ns (medians of calls one after another).\n",
           number_of(results, "small_call_ns"), gpus, gpus == 1 ? "" : "s", number_of(results, "small_loop_ns"));
    return 0;
}

static const struct {
    const char *name;
    int (*print)(const cJSON *results); /* -1 if they are of another program */
} files[] = {
    {"gpu", print_gpu}, {"ladder", print_ladder}, {"nested", print_nested}, {"peers", print_peers}, {"cpu", print_cpu}};

/* The exit code. */
static int print_results(size_t kind, const char *path) {
    cJSON *results = read_json(path);
    const int status = results ? files[kind].print(results) : -1;
    if (status != 0)
        cli_error("%s: %s", path, results ? "not what this table is made from" : "no JSON");
    cJSON_Delete(results);
    return cli_finish(status == 0 ? CLI_OK : CLI_FAILED);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*print)(void);
    } tables[] = {
        {"ops", print_ops}, {"dtypes", print_dtypes}, {"strategies", print_strategies}, {"statuses", print_statuses}};
    cli_set_program("dpr_readme_tables");
    for (size_t i = 0; argc == 2 && i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print();
            return cli_finish(CLI_OK);
        }
    }
    for (size_t i = 0; argc == 3 && i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(argv[1], files[i].name) == 0)
            return print_results(i, argv[2]);
    }
    fputs("usage: dpr_readme_tables ops|dtypes|strategies|statuses, or gpu|ladder|nested|peers|cpu FILE\n", stderr);
    return 2;
}
