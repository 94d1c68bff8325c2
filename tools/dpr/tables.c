#include "tables.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "lists.h"

const char *tables_domain(int op) {
    return dpr_ops[op].domain == DPR_DOMAIN_ANY       ? "all types"
           : dpr_ops[op].domain == DPR_DOMAIN_ORDERED ? "all but complex"
                                                      : "bool and integers";
}

static void print_ops(void) {
    static const char *const results[] = {[DPR_RESULT_WIDE] = "widened",
                                          [DPR_RESULT_SAME] = "the elements' type",
                                          [DPR_RESULT_INDEX] = "i64",
                                          [DPR_RESULT_NUMBER] = "i64",
                                          [DPR_RESULT_TRUTH] = "bool"};
    puts("\nOperations:");
    for (int i = 0; i < DPR_OP_COUNT; i++) {
        printf("  %-8s %-40s %-18s -> %s\n", dpr_ops[i].name, dpr_ops[i].text, tables_domain(i),
               results[dpr_ops[i].result]);
    }
}

static void print_dtypes(void) {
    puts("\nTypes:");
    for (int i = 0; i < DPR_DTYPE_COUNT; i++)
        printf("  %-8s %-50s .npy: %-4s widened: %s\n", dpr_dtypes[i].name, dpr_dtypes[i].text,
               *dpr_dtypes[i].npy ? dpr_dtypes[i].npy : "-", dpr_dtypes[dpr_dtypes[i].wide].name);
}

void tables_print_pairs(void) {
    print_ops();
    print_dtypes();
}

void tables_print_all(void) {
    tables_print_pairs();
    tables_print_strategies(1);
}

int tables_strategy_width(void) {
    size_t width = 0;
    for (size_t i = 0; dpr_strategy_name(i); i++) {
        const size_t length = strlen(dpr_strategy_name(i));
        width = length > width ? length : width;
    }
    return (int)width;
}

void tables_print_strategies(int with_gpu) {
    const int width = tables_strategy_width();
    puts("\nStrategies of this build:");
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (with_gpu || !cli_strategy_at(i).on_gpu)
            printf("  %-*s %s\n", width, dpr_strategy_name(i), dpr_strategy_text(i));
    if (!with_gpu)
        tables_print_left_out();
}

void tables_print_left_out(void) {
    int on_gpu = 0;
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        on_gpu += cli_strategy_at(i).on_gpu;
    if (on_gpu > 0)
        printf("  %d more strategies run on a GPU ('dpr info --all' lists them)\n", on_gpu);
}
