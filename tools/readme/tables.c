/* Prints one of the README's tables, made from the lists: `tables ops|dtypes|strategies|statuses`. */
#include <stdio.h>
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
    fputs("usage: tables ops|dtypes|strategies|statuses\n", stderr);
    return 2;
}
