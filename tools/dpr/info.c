#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_json.h"
#include "commands.h"
#include "cuda/device.h"
#include "defuse.h"
#include "figures.h"
#include "lists.h"
#include "occupancies.h"
#include "plan/caps_read.h"
#include "plan/machine.h"
#include "plan/topo.h"
#include "tables.h"

typedef struct request {
    int device, json, capture, all;
} request;

enum { MOST_NODES = 64 };

/* The capabilities of either list as rows, to be printed or made JSON. */
typedef struct row {
    const char *key, *text;
    int64_t value;
} row;
#define ROW(CAPS, NAME, LEAST, MOST, text) {#NAME, text, (CAPS)->NAME},
#define ATTRIBUTE_ROW(CAPS, NAME, ATTRIBUTE, LEAST, MOST, text) {#NAME, text, (CAPS)->NAME},
#define ROWS(list) (sizeof(list) / sizeof *(list))

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

/* ---- Text ------------------------------------------------------------------------------------------------------- */

static void print_rows(const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        printf("    %-52s %" PRId64 "\n", rows[i].text, rows[i].value);
}

static void print_cpu(const dpr_caps *caps) {
    static dpr_topo_node nodes[MOST_NODES];
    char bytes[32];
    int n = dpr_topo_nodes(nodes, MOST_NODES);
    const row rows[] = {DPR_CPU_CAPS_LIST(ROW, &caps->cpu)};
    fputs("CPU: ", stdout);
    defuse_put(stdout, caps->cpu_name);
    putchar('\n');
    print_rows(rows, ROWS(rows));
    for (int i = 0; i < n && i < MOST_NODES; i++)
        printf("  NUMA node %d: %s, %d core%s, %d thread%s (%s)\n", nodes[i].os_index,
               figure_bytes(nodes[i].memory_bytes, bytes), nodes[i].cores, nodes[i].cores == 1 ? "" : "s",
               nodes[i].threads, nodes[i].threads == 1 ? "" : "s", nodes[i].cpus);
}

/* The NUMA node near a GPU: hwloc's answer, or else what the driver said. */
static int near_node(int device, const dpr_gpu_caps *gpu, char bus[16]) {
    if (dpr_device_pci(device, bus) != DPR_OK) {
        strcpy(bus, "unknown");
        return (int)gpu->numa_node;
    }
    int node = dpr_topo_pci_node(bus);
    return node >= 0 ? node : (int)gpu->numa_node;
}

static int print_gpu(int device) {
    dpr_caps caps;
    char bus[16], memory[32];
    if (dpr_caps_measure(device, &caps) != DPR_OK)
        return cli_error("GPU %d: %s", device, dpr_last_error());
    int node = near_node(device, &caps.gpu, bus);
    defuse(caps.gpu_name);
    printf("\nGPU %d: %s, %s, PCI %s, ", device, caps.gpu_name, figure_bytes((size_t)caps.gpu.memory_bytes, memory),
           bus);
    if (node >= 0)
        printf("near NUMA node %d\n", node);
    else
        printf("nearest NUMA node unknown\n");
    const row rows[] = {DPR_GPU_CAPS_LIST(ATTRIBUTE_ROW, &caps.gpu) DPR_NESTED_CAPS_LIST(ROW, &caps.gpu)};
    print_rows(rows, ROWS(rows));
    occupancies_print(device, &caps.gpu);
    return CLI_OK;
}

/* Devices from *first to below *end, as the request wants them. */
static void device_range(const request *r, int *first, int *end) {
    *first = r->device >= 0 ? r->device : 0;
    *end = r->device == DPR_DEVICE_CPU ? 0 : r->device >= 0 ? r->device + 1 : dpr_device_count();
}

static int print_all(const request *r, const dpr_caps *cpu) {
    int first, end, code = CLI_OK;
    device_range(r, &first, &end);
    printf("dpr %s\n\n", dpr_version());
    print_cpu(cpu);
    if (end == 0 && r->device != DPR_DEVICE_CPU) {
        fputs("\nGPU: none, as ", stdout);
        defuse_put(stdout, dpr_device_absent());
        putchar('\n');
    }
    for (int d = first; d < end; d++)
        if (print_gpu(d) != CLI_OK)
            code = CLI_FAILED;
    tables_print_strategies(r->all || dpr_device_count() > 0);
    return code;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void json_rows(cJSON *object, const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        cli_json_signed(object, rows[i].key, rows[i].value);
}

static void json_cpu(cJSON *document, const dpr_caps *caps) {
    static dpr_topo_node nodes[MOST_NODES];
    int n = dpr_topo_nodes(nodes, MOST_NODES);
    cJSON *cpu = cJSON_AddObjectToObject(document, "cpu");
    cJSON_AddStringToObject(cpu, "name", caps->cpu_name);
    const row rows[] = {DPR_CPU_CAPS_LIST(ROW, &caps->cpu)};
    json_rows(cpu, rows, ROWS(rows));
    cJSON *list = cJSON_AddArrayToObject(cpu, "nodes");
    for (int i = 0; i < n && i < MOST_NODES; i++) {
        cJSON *node = cJSON_CreateObject();
        cli_json_signed(node, "node", nodes[i].os_index);
        cli_json_integer(node, "memory_bytes", nodes[i].memory_bytes);
        cli_json_signed(node, "cores", nodes[i].cores);
        cli_json_signed(node, "threads", nodes[i].threads);
        cJSON_AddStringToObject(node, "cpus", nodes[i].cpus);
        cli_json_append(list, node);
    }
}

static cJSON *json_gpu(int device) {
    dpr_caps caps;
    char bus[16];
    cJSON *gpu = cJSON_CreateObject();
    cli_json_signed(gpu, "device", device);
    if (dpr_caps_measure(device, &caps) != DPR_OK) {
        cJSON_AddStringToObject(gpu, "error", dpr_last_error());
        return gpu;
    }
    int node = near_node(device, &caps.gpu, bus);
    cJSON_AddStringToObject(gpu, "name", caps.gpu_name);
    cJSON_AddStringToObject(gpu, "pci", bus);
    cli_json_signed(gpu, "near_node", node);
    const row rows[] = {DPR_GPU_CAPS_LIST(ATTRIBUTE_ROW, &caps.gpu) DPR_NESTED_CAPS_LIST(ROW, &caps.gpu)};
    json_rows(gpu, rows, ROWS(rows));
    cli_json_add(gpu, "kernels", occupancies_json(device, &caps.gpu));
    return gpu;
}

/* The lists of operations, types and statuses. */
static void json_lists(cJSON *document) {
    cJSON *ops = cJSON_AddArrayToObject(document, "ops");
    cJSON *dtypes = cJSON_AddArrayToObject(document, "dtypes");
    cJSON *statuses = cJSON_AddArrayToObject(document, "statuses");
    for (int i = 0; i < DPR_OP_COUNT; i++) {
        cJSON *op = cJSON_CreateObject();
        cJSON_AddStringToObject(op, "name", dpr_ops[i].name);
        cJSON_AddStringToObject(op, "id", dpr_ops[i].id);
        cJSON_AddStringToObject(op, "text", dpr_ops[i].text);
        cJSON_AddStringToObject(op, "types", tables_domain(i));
        cli_json_append(ops, op);
    }
    for (int i = 0; i < DPR_DTYPE_COUNT; i++) {
        cJSON *dtype = cJSON_CreateObject();
        cJSON_AddStringToObject(dtype, "name", dpr_dtypes[i].name);
        cJSON_AddStringToObject(dtype, "id", dpr_dtypes[i].id);
        cJSON_AddStringToObject(dtype, "text", dpr_dtypes[i].text);
        cli_json_integer(dtype, "bytes", dpr_dtypes[i].size);
        cJSON_AddStringToObject(dtype, "sum", dpr_dtypes[dpr_dtypes[i].wide].name);
        cli_json_append(dtypes, dtype);
    }
    for (int i = 0; i < DPR_STATUS_COUNT; i++) {
        cJSON *status = cJSON_CreateObject();
        cJSON_AddStringToObject(status, "id", dpr_status_name((dpr_status)i));
        cJSON_AddStringToObject(status, "text", dpr_status_text((dpr_status)i));
        cli_json_append(statuses, status);
    }
}

static int print_json(const request *r, const dpr_caps *cpu) {
    int first, end;
    device_range(r, &first, &end);
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "version", dpr_version());
    json_cpu(document, cpu);
    cJSON *gpus = cJSON_AddArrayToObject(document, "gpus");
    for (int d = first; d < end; d++)
        cli_json_append(gpus, json_gpu(d));
    if (end == 0 && r->device != DPR_DEVICE_CPU)
        cJSON_AddStringToObject(document, "no_gpu", dpr_device_absent());
    cJSON *strategies = cJSON_AddArrayToObject(document, "strategies");
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        cJSON *s = cJSON_CreateObject();
        cJSON_AddStringToObject(s, "name", dpr_strategy_name(i));
        cJSON_AddStringToObject(s, "text", dpr_strategy_text(i));
        cJSON_AddStringToObject(s, "side", cli_strategy_at(i).on_gpu ? "gpu" : "cpu");
        cli_json_append(strategies, s);
    }
    json_lists(document);
    return cli_json_print(document);
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

static int capture(const request *r) {
    dpr_caps caps;
    char text[8192];
    size_t length = sizeof text;
    int device = r->device != DPR_DEVICE_AUTO ? r->device : dpr_device_count() > 0 ? 0 : DPR_DEVICE_CPU;
    if (dpr_caps_measure(device, &caps) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    defuse(caps.cpu_name);
    defuse(caps.gpu_name);
    if (dpr_machine_format(&caps, text, &length) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    fputs(text, stdout);
    return CLI_OK;
}

int command_info(int argc, char **argv) {
    request r = {.device = DPR_DEVICE_AUTO};
    dpr_caps cpu;
    const int code = parse(argc, argv, &r);
    if (code != CLI_GO_ON)
        return code;
    if (r.capture && r.json)
        return cli_usage("--capture and --json exclude each other");
    if (r.capture)
        return capture(&r);
    if (dpr_caps_read(DPR_DEVICE_CPU, &cpu) != DPR_OK)
        return cli_error("%s", dpr_last_error());
    if (r.device >= 0 && r.device >= dpr_device_count()) {
        if (dpr_device_count() == 0)
            cli_error("there is no GPU %d, as %s", r.device, dpr_device_absent());
        else
            cli_error("there is no GPU %d; the last one is %d", r.device, dpr_device_count() - 1);
        return CLI_FAILED;
    }
    return r.json ? print_json(&r, &cpu) : print_all(&r, &cpu);
}
