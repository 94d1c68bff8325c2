#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "defuse.h"
#include "listings.h"

typedef struct request {
    int device, json, capture, all;
} request;

static const cli_help help = {
    "Usage: dpr info [OPTION]...\n"
    "Shows what dpr finds on this machine: processors, NUMA nodes, GPUs and which node each is near, the\n"
    "strategies of this build, and how well their kernels fill each GPU. Short runs measure what\n"
    "launches from kernels cost there.\n"
    "\n"
    "Examples:\n"
    "  dpr info                          all of it\n"
    "  dpr info --json                   the same for programs\n"
    "  dpr info --capture > this.caps    to see elsewhere what 'dpr plan' would choose here\n",
    NULL,
    "Occupancy is the share of an SM's threads that the kernel's blocks can fill, by the CUDA toolkit's\n"
    "calculation, and 'limited by' is what leaves no room for one more block.\n"};

static int parse(int argc, char **argv, request *r) {
    const cli_option options[] = {
        {0, "json", NULL, cli_flag, &r->json, "one JSON document, with the occupancy of every kernel"},
        {0, "capture", NULL, cli_flag, &r->capture, "this machine as text for 'dpr plan --machine FILE'"},
        {0, "all", NULL, cli_flag, &r->all, "also the strategies that need a GPU, where there is none"},
        {'d', "device", "DEVICE", cli_device, &r->device,
         "only this device: auto (default: all), cpu, or a GPU's number"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, NULL);
}

/* ---- Occupancy -------------------------------------------------------------------------------------------------- */

/* The table's row for kernels with the occupancy of this one, for the same reason; NULL if there is none. */
static cJSON *find_alike(const cJSON *table, const cJSON *kernel) {
    static const char *const keys[] = {"strategy", "threads", "blocks_per_sm", "limited_by"};
    cJSON *row = NULL;
    cJSON_ArrayForEach(row, table) {
        size_t same = 0;
        while (same < sizeof keys / sizeof *keys
               && cJSON_Compare(cJSON_GetObjectItem(row, keys[same]), cJSON_GetObjectItem(kernel, keys[same]), 1))
            same++;
        if (same == sizeof keys / sizeof *keys)
            break;
    }
    return row;
}

/* Counts the kernel in the table's row of its like, whose other members are those of the first. */
static void add_to_table(cJSON *table, const cJSON *kernel, int registers) {
    cJSON *row = find_alike(table, kernel);
    if (!table) /* when out of memory */
        return;
    if (!row) {
        row = cJSON_Duplicate(kernel, 1);
        cJSON_AddNumberToObject(row, "kernels", 0);
        cli_json_append(table, row);
    }
    cJSON *kernels = cJSON_GetObjectItem(row, "kernels"), *most = cJSON_GetObjectItem(row, "registers");
    cJSON_SetNumberValue(kernels, cJSON_GetNumberValue(kernels) + 1);
    if (cJSON_GetNumberValue(most) < registers)
        cJSON_SetNumberValue(most, registers);
}

static cJSON *add_kernel(cJSON *list, const dpr_problem *problem, const dpr_kernel_info *kernel) {
    cJSON *row = report_row(list);
    report_add(row,
               "strategy=%s op=%s dtype=%s threads=%d registers=%d shared_bytes=%d blocks_per_sm=%d occupancy=%f "
               "limited_by=%s",
               problem->options->strategy, dpr_op_name(problem->op), dpr_dtype_name(problem->dtype), kernel->threads,
               kernel->registers, kernel->shared_bytes, kernel->blocks_per_sm, kernel->occupancy, kernel->limit);
    return row;
}

/* A strategy whose kernels the runtime does not know has a row in the table with its name alone. */
static void look_at_strategy(const dpr_machine *machine, const char *strategy, cJSON *list, cJSON *table) {
    const dpr_options options = {.size = sizeof options, .strategy = strategy};
    dpr_problem problem = {.size = sizeof problem, .count = 1, .options = &options};
    dpr_kernel_info kernel = DPR_KERNEL_INFO_INIT;
    int known = 0;
    for (size_t o = 0; o < dpr_op_count(); o++)
        for (size_t d = 0; d < dpr_dtype_count(); d++) {
            problem.op = dpr_op_at(o);
            problem.dtype = dpr_dtype_at(d);
            if (dpr_kernel_describe(machine, &problem, &kernel) != DPR_OK)
                continue;
            add_to_table(table, add_kernel(list, &problem, &kernel), kernel.registers);
            known = 1;
        }
    if (!known)
        cJSON_AddStringToObject(report_row(table), "strategy", strategy);
}

/* A list with a row for each strategy, operation and type, and a table with kernels of the same occupancy together. */
static void show_occupancies(report_out *out, cJSON *gpu, const dpr_machine *machine) {
    static const report_column columns[] = {{"strategy", "strategy", UNIT_LEFT},
                                            {"occupancy", "occupancy", UNIT_PERCENT},
                                            {"blocks_per_sm", "blocks an SM", UNIT_NONE},
                                            {"threads", "threads", UNIT_NONE},
                                            {"registers", "registers, at most", UNIT_NONE},
                                            {"limited_by", "limited by", UNIT_LEFT},
                                            {"kernels", "kernels", UNIT_NONE},
                                            {"op", "first operation", UNIT_LEFT},
                                            {"dtype", "first type", UNIT_LEFT},
                                            {0}};
    cJSON *list = cJSON_AddArrayToObject(gpu, "kernels"), *table = cJSON_CreateArray();
    for (size_t i = 0; i < dpr_strategy_count(); i++)
        if (cli_strategy_at(i).on_gpu)
            look_at_strategy(machine, dpr_strategy_name(i), list, table);
    report_table(out, "Theoretical occupancy of the kernels", table, 0, columns);
    cJSON_Delete(table);
}

/* ---- Parts of the report ---------------------------------------------------------------------------------------- */

/* Adds the capabilities of one side to its object. Keys begin with "cpu." or "gpu.", which `side` is. */
static void show_capabilities(report_out *out, cJSON *object, const dpr_machine *machine, const char *side) {
    dpr_capability c = DPR_CAPABILITY_INIT;
    for (size_t i = 0; dpr_machine_capability(machine, i, &c) == DPR_OK; i++)
        if (strncmp(c.key, side, strlen(side)) == 0) {
            cJSON_AddNumberToObject(object, c.key + strlen(side), (double)c.value);
            report_text(out, REPORT_NOTE, "  %-52s %" PRId64, c.text, c.value);
        }
}

static void show_nodes(report_out *out, cJSON *cpu) {
    static const report_column columns[] = {
        {"node", "node", UNIT_NONE},       {"memory_bytes", "memory", UNIT_BYTES}, {"cores", "cores", UNIT_NONE},
        {"threads", "threads", UNIT_NONE}, {"cpus", "their numbers", UNIT_LEFT},   {0}};
    cJSON *list = cJSON_AddArrayToObject(cpu, "nodes");
    dpr_node_info node = DPR_NODE_INFO_INIT;
    for (size_t i = 0; dpr_node_describe(i, &node) == DPR_OK; i++) {
        cJSON *row = report_row(list);
        report_add(row, "node=%d memory_bytes=%lu cores=%d threads=%d cpus=%s", node.number, node.memory_bytes,
                   node.cores, node.threads, node.cpus);
    }
    report_table(out, "NUMA nodes", list, 0, columns);
}

static void show_cpu(report_out *out, const dpr_machine *machine) {
    cJSON *cpu = cJSON_AddObjectToObject(out->document, "cpu");
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    (void)dpr_machine_describe(machine, &info);
    cJSON_AddStringToObject(cpu, "name", info.cpu_name);
    report_text(out, REPORT_HEADING, "CPU, %s", info.cpu_name);
    show_capabilities(out, cpu, machine, "cpu.");
    show_nodes(out, cpu);
}

static int show_gpu(report_out *out, cJSON *gpus, int device) {
    cJSON *gpu = report_row(gpus);
    dpr_machine_info info = DPR_MACHINE_INFO_INIT;
    dpr_machine *machine;
    char near[32] = "unknown";
    cJSON_AddNumberToObject(gpu, "device", device);
    if (dpr_machine_read(device, 1, &machine) != DPR_OK) {
        cJSON_AddStringToObject(gpu, "error", dpr_last_error());
        return cli_error("GPU %d: %s", device, dpr_last_error());
    }
    (void)dpr_machine_describe(machine, &info);
    if (info.near_node >= 0)
        snprintf(near, sizeof near, "%d", info.near_node);
    report_add(gpu, "name=%s pci=%s near_node=%d", info.gpu_name, *info.pci ? info.pci : "unknown", info.near_node);
    report_text(out, REPORT_HEADING, "GPU %d, %s, PCI %s, nearest NUMA node %s", device, info.gpu_name,
                *info.pci ? info.pci : "unknown", near);
    show_capabilities(out, gpu, machine, "gpu.");
    show_occupancies(out, gpu, machine);
    dpr_machine_destroy(machine);
    return CLI_OK;
}

static int show_gpus(report_out *out, int device) {
    const int devices = dpr_device_count(), first = device >= 0 ? device : 0;
    const int end = device == DPR_DEVICE_CPU ? 0 : device >= 0 ? device + 1 : devices;
    cJSON *gpus = cJSON_AddArrayToObject(out->document, "gpus");
    int code = CLI_OK;
    for (int d = first; d < end; d++)
        if (show_gpu(out, gpus, d) != CLI_OK)
            code = CLI_FAILED;
    if (devices == 0 && device != DPR_DEVICE_CPU) {
        cJSON_AddStringToObject(out->document, "no_gpu", dpr_device_absent());
        report_text(out, REPORT_NOTE, "No GPU: %s", dpr_device_absent());
    }
    return code;
}

/* The document alone has these lists, because the help texts show most of them. */
static void add_lists(report_out *out) {
    list_ops(out);
    list_dtypes(out);
    cJSON *statuses = cJSON_AddArrayToObject(out->document, "statuses");
    for (int i = 0; strcmp(dpr_status_name((dpr_status)i), dpr_status_name((dpr_status)-1)) != 0; i++) {
        cJSON *row = report_row(statuses);
        report_add(row, "id=%s text=%s", dpr_status_name((dpr_status)i), dpr_status_text((dpr_status)i));
    }
}

static int show(const request *r, const dpr_machine *machine) {
    report_out out = report_begin(stdout, r->json ? REPORT_JSON : REPORT_TABLE);
    cJSON_AddStringToObject(out.document, "version", dpr_version());
    report_text(&out, REPORT_TITLE, "dpr %s", dpr_version());
    show_cpu(&out, machine);
    const int code = show_gpus(&out, r->device);
    list_strategies(&out, r->json || r->all || dpr_device_count() > 0);
    if (r->json)
        add_lists(&out);
    return report_end(&out) == 0 ? code : cli_error("out of memory");
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static int capture(int device) {
    char text[8192];
    size_t length = sizeof text;
    dpr_machine *machine;
    const int usual = dpr_device_count() > 0 ? 0 : DPR_DEVICE_CPU;
    if (dpr_machine_read(device == DPR_DEVICE_AUTO ? usual : device, 1, &machine) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    const dpr_status status = dpr_machine_format(machine, text, &length);
    dpr_machine_destroy(machine);
    if (status != DPR_OK)
        return cli_error("%s", dpr_last_error());
    defuse_lines(stdout, text);
    return CLI_OK;
}

int command_info(int argc, char **argv) {
    request r = {.device = DPR_DEVICE_AUTO};
    int code = parse(argc, argv, &r);
    if (code != CLI_GO_ON)
        return code;
    if (r.capture && r.json)
        return cli_usage("--capture and --json exclude each other");
    code = cli_check_device(r.device);
    if (code != CLI_OK)
        return code;
    if (r.capture)
        return capture(r.device);
    dpr_machine *machine = NULL;
    if (dpr_machine_read(r.device == DPR_DEVICE_AUTO ? DPR_DEVICE_CPU : r.device, 0, &machine) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    code = show(&r, machine);
    dpr_machine_destroy(machine);
    return code;
}
