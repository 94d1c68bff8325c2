#include "occupancies.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"

/* Kernels of a strategy with the same occupancy for the same reason. */
typedef struct group {
    dpr_kernel_info kernel; /* the first one's, with the fewest registers of all */
    int registers, kernels; /* most registers; number of kernels */
    char pairs[80];         /* the operations and types of the first ones */
} group;

enum { GROUPS = 256, PAIRS = 3 };

static int alike(const dpr_kernel_info *a, const dpr_kernel_info *b) {
    return a->threads == b->threads && a->blocks_per_sm == b->blocks_per_sm && strcmp(a->limit, b->limit) == 0;
}

/* Adds the kernel to the group of its like. Returns the number of groups, of which there were `n`. */
static int add_to_group(group *groups, int n, const dpr_kernel_info *kernel, const char *pair) {
    int i = 0;
    while (i < n && !alike(&groups[i].kernel, kernel))
        i++;
    group *g = &groups[i];
    if (i == n)
        *g = (group){.kernel = *kernel};
    if (kernel->registers < g->kernel.registers)
        g->kernel.registers = kernel->registers;
    if (kernel->registers > g->registers)
        g->registers = kernel->registers;
    const size_t used = strlen(g->pairs);
    if (g->kernels++ <= PAIRS)
        snprintf(g->pairs + used, sizeof g->pairs - used, "%s%s", used ? ", " : "", g->kernels > PAIRS ? "..." : pair);
    return i < n ? n : n + 1;
}

/* A row with the kernel's members. */
static cJSON *add_row(cJSON *list, const char *strategy, const dpr_kernel_info *kernel) {
    cJSON *row = report_row(list);
    cJSON_AddStringToObject(row, "strategy", strategy);
    cJSON_AddNumberToObject(row, "threads", kernel->threads);
    cJSON_AddNumberToObject(row, "registers", kernel->registers);
    cJSON_AddNumberToObject(row, "shared_bytes", kernel->shared_bytes);
    cJSON_AddNumberToObject(row, "blocks_per_sm", kernel->blocks_per_sm);
    cJSON_AddNumberToObject(row, "occupancy", kernel->occupancy);
    cJSON_AddStringToObject(row, "limited_by", kernel->limit);
    return row;
}

/* A strategy whose kernels the runtime does not know has a row with its name alone. */
static void add_groups(cJSON *table, const char *strategy, const group *groups, int n) {
    if (n == 0)
        cJSON_AddStringToObject(report_row(table), "strategy", strategy);
    for (int i = 0; i < n; i++) {
        cJSON *row = add_row(table, strategy, &groups[i].kernel);
        cJSON_AddNumberToObject(row, "most_registers", groups[i].registers);
        cJSON_AddNumberToObject(row, "kernels", groups[i].kernels);
        cJSON_AddStringToObject(row, "pairs", groups[i].pairs);
    }
}

static void look_at_strategy(const dpr_machine *machine, const char *strategy, cJSON *list, cJSON *table) {
    static group groups[GROUPS];
    int n = 0;
    char pair[32];
    dpr_options options = DPR_OPTIONS_INIT;
    dpr_problem problem = DPR_PROBLEM_INIT;
    dpr_kernel_info kernel = DPR_KERNEL_INFO_INIT;
    options.strategy = strategy;
    problem.options = &options;
    problem.count = 1;
    for (int o = 0; dpr_op_name((dpr_op)o); o++)
        for (int d = 0; dpr_dtype_name((dpr_dtype)d) && n < GROUPS; d++) {
            problem.op = (dpr_op)o;
            problem.dtype = (dpr_dtype)d;
            if (dpr_kernel_describe(machine, &problem, &kernel) != DPR_OK)
                continue;
            cJSON *row = add_row(list, strategy, &kernel);
            cJSON_AddStringToObject(row, "op", dpr_op_name(problem.op));
            cJSON_AddStringToObject(row, "dtype", dpr_dtype_name(problem.dtype));
            snprintf(pair, sizeof pair, "%s %s", dpr_op_name(problem.op), dpr_dtype_name(problem.dtype));
            n = add_to_group(groups, n, &kernel, pair);
        }
    add_groups(table, strategy, groups, n);
}

void occupancies_show(report_out *out, cJSON *gpu, const dpr_machine *machine) {
    static const report_column columns[] = {{"strategy", "strategy", UNIT_LEFT},
                                            {"occupancy", "occupancy", UNIT_PERCENT},
                                            {"blocks_per_sm", "blocks an SM", UNIT_NONE},
                                            {"threads", "threads", UNIT_NONE},
                                            {"registers", "registers", UNIT_NONE},
                                            {"most_registers", "to", UNIT_NONE},
                                            {"limited_by", "limited by", UNIT_LEFT},
                                            {"kernels", "kernels", UNIT_NONE},
                                            {"pairs", "of", UNIT_LEFT},
                                            {0}};
    cJSON *list = cJSON_AddArrayToObject(gpu, "kernels"), *table = cJSON_CreateArray();
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (cli_strategy_at(i).on_gpu)
            look_at_strategy(machine, dpr_strategy_name(i), list, table);
    report_table(out, "Theoretical occupancy of the kernels", table, 0, columns);
    cJSON_Delete(table);
}
