/* Prints one of the README's tables, made from the lists and from measured results:
 *
 *     dpr_readme_tables ops|dtypes|strategies|statuses
 *     dpr_readme_tables gpu|cpu FILE.json        a file that dpr_bench_gpu or dpr_bench_cpu wrote
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"
#include "registry.h"

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

static cJSON *read_json(const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[length] = '\0';
    return cJSON_Parse(text);
}

static double number_of(const cJSON *object, const char *name) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static const char *string_of(const cJSON *object, const char *name) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return value ? value : "?";
}

static void print_gpu(const cJSON *results) {
    const cJSON *run = NULL;
    printf("%s, %s:\n\n", string_of(results, "device"), string_of(results, "mode"));
    puts("| strategy | problem | elements | time | bandwidth |\n|---|---|---|---|---|");
    cJSON_ArrayForEach(run, cJSON_GetObjectItemCaseSensitive(results, "runs")) {
        const int size = (int)number_of(run, "log2_count");
        const int is_sum_of_f32 =
            strcmp(string_of(run, "op"), "sum") == 0 && strcmp(string_of(run, "dtype"), "f32") == 0;
        const int is_wanted = is_sum_of_f32 ? size % 4 == 0 : size == 28;
        if (!is_wanted)
            continue;
        printf("| `%s` | %s of %s | 2^%d | %.4g us | %.3g TB/s |\n", string_of(run, "strategy"), string_of(run, "op"),
               string_of(run, "dtype"), size, number_of(run, "median_us"), number_of(run, "tb_per_s"));
    }
}

static void print_cpu(const cJSON *results) {
    const int gpus = (int)number_of(results, "gpus");
    printf("%s, %d threads, sum of %.0f MiB of F32, beside OpenMP loops (`simd reduction`) with the same flags in the "
           "same run:\n\n",
           string_of(results, "device"), (int)number_of(results, "threads"), number_of(results, "bytes") / (1 << 20));
    puts("| strategy | GB/s | ratio to OpenMP |\n|---|---|---|");
    printf("| `cpu.threads` | %.1f | %.2f |\n", number_of(results, "cpu.threads_gb_per_s"),
           number_of(results, "threads_ratio"));
    printf("| `cpu.simd` | %.1f | %.2f |\n", number_of(results, "cpu.simd_gb_per_s"), number_of(results, "simd_ratio"));
    printf("\nA call of `dpr_reduce()` on 16 doubles in host memory takes %.0f ns there (%d GPU%s), the bare loop %.0f "
           "ns.\n",
           number_of(results, "small_call_ns"), gpus, gpus == 1 ? "" : "s", number_of(results, "small_loop_ns"));
}

static int print_results(const char *kind, const char *path) {
    cJSON *results = read_json(path);
    if (!results) {
        fprintf(stderr, "%s: no JSON\n", path);
        return 1;
    }
    if (strcmp(kind, "gpu") == 0)
        print_gpu(results);
    else
        print_cpu(results);
    cJSON_Delete(results);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*print)(void);
    } tables[] = {
        {"ops", print_ops}, {"dtypes", print_dtypes}, {"strategies", print_strategies}, {"statuses", print_statuses}};
    for (size_t i = 0; argc == 2 && i < sizeof tables / sizeof tables[0]; i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print();
            return 0;
        }
    }
    if (argc == 3 && (strcmp(argv[1], "gpu") == 0 || strcmp(argv[1], "cpu") == 0))
        return print_results(argv[1], argv[2]);
    fputs("usage: dpr_readme_tables ops|dtypes|strategies|statuses, or gpu|cpu FILE\n", stderr);
    return 2;
}
