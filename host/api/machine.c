/* Machines as callers see them: read or captured, their names and capabilities, and the kernels of their GPUs. */
#include <ctype.h>
#include <stdlib.h>

#include "cuda/device.h"
#include "error.h"
#include "plan/caps_read.h"
#include "plan/caps_text.h"
#include "plan/occupancy.h"
#include "plan/planner.h"
#include "plan/processors.h"
#include "plan/registry.h"
#include "request.h"
#include "wisdom.h"

/* ---- Machines of the caller's ---- */

static dpr_status hand_over(const dpr_machine *made, dpr_machine **out) {
    dpr_machine *machine = malloc(sizeof *machine);
    if (!machine)
        return dpr_fail(DPR_ERR_OUT_OF_MEMORY, "no host memory for a machine");
    *machine = *made;
    *out = machine;
    return DPR_OK;
}

/* Rates of the CPU that wisdom has take the place of those that are assumed. Times are for contexts alone. */
static void take_rates(dpr_machine *machine) {
    dpr_machine knowing = *machine;
    const dpr_wisdom *wisdom = dpr_wisdom_current();
    dpr_wisdom_attach(wisdom, &knowing);
    machine->caps.cpu = knowing.caps.cpu;
    machine->rates_measured = knowing.rates_measured;
    machine->wake_measured = knowing.wake_measured;
    dpr_wisdom_release(wisdom);
}

dpr_status dpr_machine_read(int device, int measure, dpr_machine **out) {
    dpr_machine made = {.device = device};
    if (!out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "out is NULL");
    if (measure != 0 && measure != 1)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "measure is %d; it should be 0 or 1", measure);
    const dpr_status status = measure ? dpr_caps_measure(device, &made.caps) : dpr_caps_read(device, &made.caps);
    if (status != DPR_OK)
        return status;
    take_rates(&made);
    return hand_over(&made, out);
}

dpr_status dpr_machine_parse(const char *text, dpr_machine **out) {
    dpr_machine made = {.device = DPR_DEVICE_CPU};
    if (!text || !out)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", text ? "out" : "text");
    const dpr_status status = dpr_caps_parse(text, &made.caps);
    return status == DPR_OK ? hand_over(&made, out) : status;
}

void dpr_machine_destroy(dpr_machine *machine) {
    free(machine);
}

/* ---- What is known of a machine ---- */

dpr_status dpr_machine_format(const dpr_machine *machine, char *text, size_t *len) {
    dpr_machine known;
    if (!machine || !len)
        return dpr_fail(DPR_ERR_NULL_POINTER, "%s is NULL", machine ? "len" : "machine");
    const dpr_status status = dpr_machine_known(machine, 0, &known);
    return status == DPR_OK ? dpr_caps_format(&known.caps, text, len) : status;
}

static dpr_status check(const dpr_machine *machine, const void *out, const char *init) {
    return machine ? dpr_check_out("out", out, init) : dpr_fail(DPR_ERR_NULL_POINTER, "machine is NULL");
}

dpr_status dpr_machine_describe(const dpr_machine *machine, dpr_machine_info *out) {
    const dpr_status status = check(machine, out, "DPR_MACHINE_INFO_INIT");
    if (status != DPR_OK)
        return status;
    const dpr_caps *caps = &machine->caps;
    dpr_machine_info info = {.cpu_name = caps->cpu_name, .near_node = -1};
    if (caps->has_gpu && machine->device >= 0 && dpr_device_pci(machine->device, info.pci) == DPR_OK)
        info.near_node = dpr_numa_node_of_pci(info.pci);
    for (char *c = info.pci; *c; c++) /* CUDA writes capitals, the kernel's files and other tools do not */
        *c = (char)tolower((unsigned char)*c);
    if (caps->has_gpu)
        info.gpu_name = caps->gpu_name;
    if (caps->has_gpu && info.near_node < 0)
        info.near_node = (int)caps->gpu.numa_node;
    return dpr_fill_out(out, &info, sizeof info);
}

dpr_status dpr_machine_capability(const dpr_machine *machine, size_t i, dpr_capability *out) {
    dpr_machine known;
    dpr_status status = check(machine, out, "DPR_CAPABILITY_INIT");
    if (status == DPR_OK)
        status = dpr_machine_known(machine, 0, &known);
    if (status != DPR_OK)
        return status;
    const size_t count = dpr_caps_count(&known.caps);
    if (i >= count)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "i is %zu, and the machine has %zu capabilities", i, count);
    dpr_capability found = DPR_CAPABILITY_INIT;
    dpr_caps_entry(&known.caps, i, &found);
    return dpr_fill_out(out, &found, sizeof found);
}

dpr_status dpr_node_describe(size_t i, dpr_node_info *out) {
    const dpr_status status = dpr_check_out("out", out, "DPR_NODE_INFO_INIT");
    if (status != DPR_OK)
        return status;
    dpr_node_info info = DPR_NODE_INFO_INIT;
    if (!dpr_numa_node(i, &info))
        return dpr_fail(DPR_ERR_INVALID_OPTION, "i is %zu, and there is no such NUMA node", i);
    return dpr_fill_out(out, &info, sizeof info);
}

/* ---- Kernels ---- */

/* Fails if the strategy that is asked for by name has no kernel for the request, or if none is asked for. */
static dpr_status check_strategy(const dpr_request *request, const dpr_caps *caps) {
    if (!request->key.f.strategy)
        return dpr_fail(DPR_ERR_INVALID_OPTION, "problem->options names no strategy, and only strategies have kernels");
    const dpr_strategy *strategy = dpr_strategies[request->key.f.strategy - 1];
    const char *refusal = strategy->kernel ? dpr_refusal(strategy, &request->key, caps) : "the CPU has no kernels";
    if (refusal)
        return dpr_fail(DPR_ERR_STRATEGY_UNABLE, "strategy \"%s\" has no kernel for this: %s", strategy->name, refusal);
    return DPR_OK;
}

dpr_status dpr_kernel_describe(const dpr_machine *machine, const dpr_problem *problem, dpr_kernel_info *out) {
    dpr_problem adopted;
    dpr_request request;
    dpr_shape shape;
    dpr_kernel_use use;
    dpr_status status = check(machine, out, "DPR_KERNEL_INFO_INIT");
    if (status == DPR_OK && !problem)
        status = dpr_fail(DPR_ERR_NULL_POINTER, "problem is NULL");
    if (status == DPR_OK)
        status = dpr_request_of_problem(problem, machine->caps.has_gpu, &adopted, &request, &shape);
    if (status == DPR_OK)
        status = check_strategy(&request, &machine->caps);
    if (status != DPR_OK)
        return status;
    if (machine->device < 0)
        return dpr_fail(DPR_ERR_NO_DEVICE, "machine is a captured one, and there is no GPU to ask about kernels");
    const dpr_kernel kernel = dpr_strategies[request.key.f.strategy - 1]->kernel(&request.key);
    status = dpr_device_kernel_use(machine->device, &kernel, &use);
    if (status != DPR_OK)
        return status;
    const dpr_occupancy o = dpr_occupancy_of(&machine->caps.gpu, use);
    const dpr_kernel_info found = {
        .threads = use.threads,
        .registers = use.registers,
        .shared_bytes = use.shared_bytes,
        .blocks_per_sm = o.blocks_per_sm,
        .occupancy = o.fraction,
        .limit = o.limit,
    };
    return dpr_fill_out(out, &found, sizeof found);
}
