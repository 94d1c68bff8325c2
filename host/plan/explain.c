#include "cuda/device.h"
#include "key_runs.h"
#include "lists.h"
#include "planner.h"
#include "registry.h"
#include "text.h"
#include "wisdom.h"

static void explain_machine(dpr_text *text, const dpr_caps *caps) {
    if (caps->has_gpu)
        dpr_text_add(text, "machine:   %s (CC %lld.%lld, %lld SMs) and %s (%lld cores)\n", caps->gpu_name,
                     (long long)caps->gpu.cc_major, (long long)caps->gpu.cc_minor, (long long)caps->gpu.sm_count,
                     caps->cpu_name, (long long)caps->cpu.cores);
    else
        dpr_text_add(text, "machine:   %s (%lld cores), no GPU\n", caps->cpu_name, (long long)caps->cpu.cores);
}

typedef struct explanation {
    const dpr_choice *choice;
    const dpr_machine *machine;
    const dpr_run *run;
    const dpr_keys *keys;    /* NULL: there are none */
    const char *why_not_one; /* why runs of keys are not reduced in one pass; NULL: they are, or there are none */
} explanation;

static int is_one_pass(const explanation *of) {
    return of->keys && !of->why_not_one;
}

/* The run whose memory and launches are explained. */
static dpr_run run_of(const dpr_choice_step *step, const explanation *of) {
    dpr_run run = *of->run;
    run.key = of->choice->key;
    run.limits = step->limits;
    run.sms = of->choice->sms;
    return run;
}

/* The number of results: of segments, or along axes. */
static uint64_t results_of(const explanation *of) {
    return of->run->segments ? of->run->segments->count : of->run->axes ? of->run->axes->outputs : 1;
}

static void explain_shape(dpr_text *text, const explanation *of) {
    const dpr_key *key = &of->choice->key;
    const unsigned long long results = results_of(of);
    if (of->keys)
        dpr_text_add(text, " by keys of %s, with room for %llu run%s,", dpr_dtypes[DPR_ROW(of->keys->dtype)].name,
                     (unsigned long long)of->keys->room, of->keys->room == 1 ? "" : "s");
    else if (of->run->segments)
        dpr_text_add(text, " in %llu segment%s,", results, results == 1 ? "" : "s");
    else if (key->f.strided)
        dpr_text_add(text, " along axes, %llu result%s,", results, results == 1 ? "" : "s");
}

static void explain_launch(dpr_text *text, const dpr_choice_step *step, const explanation *of) {
    const dpr_strategy *strategy = step->strategy;
    const dpr_run run = run_of(step, of);
    if (strategy->side == DPR_ON_CPU) {
        dpr_text_add(text, "launch:    %d thread%s\n", step->limits.threads, step->limits.threads == 1 ? "" : "s");
        return;
    }
    dpr_text_add(text, "launch:    up to %d blocks of %d threads, %zu bytes of scratch memory", step->limits.max_blocks,
                 step->limits.threads, strategy->scratch_bytes);
    if (strategy->workspace_bytes && results_of(of) > 0)
        dpr_text_add(text, ", %zu bytes of workspace", strategy->workspace_bytes(&run));
    dpr_text_add(text, "\n");
}

/* What one pass over keys and elements takes. */
static void explain_one_pass(dpr_text *text, const explanation *of) {
    const dpr_strategy *const one = dpr_this_build.key_reduce;
    dpr_run run = *of->run;
    run.key = of->choice->key;
    dpr_text_add(text, "strategy:  %s, which is used wherever it can be\n", one->name);
    dpr_text_add(text, "launch:    %zu bytes of scratch memory, %zu bytes of workspace\n", one->scratch_bytes,
                 one->workspace_bytes(&run));
}

/* How the runs are found that the strategy then reduces. Calls that wait have the GPU find runs of elements in device
 * memory alone. */
static void explain_keys(dpr_text *text, const explanation *of) {
    const dpr_key *key = &of->choice->key;
    const uint64_t most = dpr_most_runs(of->keys, of->run->count);
    if (key->f.in_memory == DPR_MEMORY_DEVICE || key->f.gpu_only)
        dpr_text_add(text, "keys:      %s, with up to %zu bytes of workspace",
                     most > 0 ? "two passes find the runs first" : "one pass counts the runs, of which none fits",
                     DPR_RUNS_WORDS * sizeof(uint64_t) + dpr_key_runs_bytes(of->run->count, most));
    else
        dpr_text_add(text, "keys:      threads of the CPU find the runs first; a strategy is chosen for their number");
    dpr_text_add(text, "; one pass is refused: %s\n", of->why_not_one);
}

static void explain_nesting(dpr_text *text, const dpr_choice_step *step, const explanation *of) {
    const dpr_run run = run_of(step, of);
    const dpr_gpu_caps *gpu = &of->machine->caps.gpu;
    const uint32_t launches = dpr_launches_of((size_t)gpu->pending_launches, of->run->max_pending);
    char form[160];
    if (step->strategy->role != DPR_ROLE_NESTED)
        return;
    step->strategy->describe(&run, form, sizeof form);
    dpr_text_add(text, "nesting:   %s\n", form);
    dpr_text_add(text, "limits:    %d launches deep%s; at most %u launches%s, and the device's pool holds %lld\n",
                 step->limits.max_depth, of->choice->key.f.depth ? " (asked for)" : "", launches,
                 launches < gpu->pending_launches ? " (asked for)" : "", (long long)gpu->pending_launches);
    dpr_text_add(text, "costs:     %.3g us a level of launches (%s), %.0f MiB of memory for code and pool (%s)\n",
                 1e6 * step->limits.launch_seconds, step->limits.measured ? "measured" : "assumed",
                 (double)gpu->nested_bytes / (1 << 20), gpu->nested_bytes_measured ? "measured" : "assumed");
}

static void explain_sizes(dpr_text *text, const dpr_choice *choice) {
    dpr_text_add(text, "by size:  ");
    for (int i = 0; i < choice->steps; i++) {
        const dpr_choice_step *step = &choice->step[i];
        if (i < choice->steps - 1)
            dpr_text_add(text, " %s up to %zu,", step->strategy->name, step->upto);
        else
            dpr_text_add(text, " %s%s\n", step->strategy->name, i > 0 ? " beyond" : " for every size");
    }
}

static void explain_time(dpr_text *text, const dpr_strategy *strategy, int chosen, const explanation *of) {
    static const char *const marks[] = {[DPR_BASIS_PREDICTED] = "",
                                        [DPR_BASIS_MEASURED] = ", measured",
                                        [DPR_BASIS_EXTRAPOLATED] = ", extrapolated from measured times"};
    dpr_basis basis;
    const double seconds =
        dpr_expect(strategy, &of->choice->key, of->machine, (dpr_size){of->run->count, results_of(of)}, &basis);
    dpr_text_add(text, "%c %-*s %.3g us%s\n", chosen ? '*' : ' ', dpr_strategy_width(), strategy->name, 1e6 * seconds,
                 marks[basis]);
}

static const char *source_of(int measured) {
    return measured ? "measured" : "assumed, not measured";
}

/* If there is no GPU, one line counts the strategies that need one. */
static void explain_strategies(dpr_text *text, const dpr_strategy *chosen, const explanation *of) {
    const dpr_key *key = &of->choice->key;
    const dpr_caps *caps = &of->machine->caps;
    const int width = dpr_strategy_width();
    int without_gpu = 0, on_cpu = 0;
    if (of->keys)
        dpr_text_add(text, "strategies that can reduce the runs after they are found:\n");
    for (size_t i = 0; i < dpr_strategy_count(); i++) {
        const dpr_strategy *strategy = dpr_strategies[i];
        const char *refusal = dpr_refusal(strategy, key, caps);
        if (strategy->side == DPR_ON_GPU && !caps->has_gpu)
            without_gpu++;
        else if (refusal)
            dpr_text_add(text, "  %-*s refused: %s\n", width, strategy->name, refusal);
        else
            explain_time(text, strategy, strategy == chosen, of);
        on_cpu |= !refusal && strategy->side == DPR_ON_CPU;
    }
    if (without_gpu > 0)
        dpr_text_add(text, "  %d more strategies run on a GPU\n", without_gpu);
    if (on_cpu) {
        dpr_text_add(text, "  %s: one core reads %.1f GB/s, and cpu.threads %.1f with %lld thread%s\n",
                     source_of(of->machine->rates_measured), 1e-3 * (double)caps->cpu.core_mb_per_s,
                     1e-3 * (double)caps->cpu.total_mb_per_s, (long long)caps->cpu.threads,
                     caps->cpu.threads == 1 ? "" : "s");
        if (dpr_wise_of_other_threads(of->machine))
            dpr_text_add(text, "  not used: times of this CPU with other cores, threads or vector instructions\n");
        dpr_text_add(text, "  %s: these threads take %.1f us to begin and to end\n",
                     source_of(of->machine->wake_measured), 1e-3 * (double)caps->cpu.wake_ns);
    }
}

/* What the step's strategy was chosen by. */
static const char *reason_of(const dpr_choice_step *step, const explanation *of) {
    const dpr_key *key = &of->choice->key;
    dpr_basis basis;
    if (key->f.effort == DPR_MEASURE)
        return "the quickest when the plan was made";
    if (key->f.strategy)
        return "asked for by name";
    (void)dpr_expect(step->strategy, key, of->machine, (dpr_size){of->run->count, results_of(of)}, &basis);
    if (basis == DPR_BASIS_MEASURED)
        return "the cheapest by times that were measured here";
    if (basis == DPR_BASIS_EXTRAPOLATED)
        return "the cheapest by prediction, extrapolated from times that were measured here";
    return of->choice->estimated ? "the cheapest by prediction: times that were measured change too often"
                                 : "the cheapest by prediction";
}

static void explain(dpr_text *text, const void *subject) {
    const explanation *of = subject;
    const dpr_caps *caps = &of->machine->caps;
    const dpr_key *key = &of->choice->key;
    const dpr_choice_step *step = dpr_choice_at(of->choice, of->run->count);
    dpr_text_add(text, "problem:   %s", dpr_ops[key->f.op].name);
    for (uint32_t others = key->f.ops & ~(UINT32_C(1) << key->f.op); others != 0; others &= others - 1)
        dpr_text_add(text, ", %s", dpr_ops[__builtin_ctz(others)].name);
    dpr_text_add(text, " of %zu %s", of->run->count, dpr_dtypes[key->f.dtype].name);
    explain_shape(text, of);
    dpr_text_add(text, " in %s memory%s%s\n", dpr_memory_name((dpr_memory)key->f.in_memory),
                 key->f.nan == DPR_NAN_IGNORE ? ", NaN ignored" : "", key->f.gpu_only ? ", in a stream" : "");
    if (key->f.block)
        dpr_text_add(text, "asked for: blocks of %d threads\n", 1 << key->f.block);
    explain_machine(text, caps);
    if (is_one_pass(of)) {
        explain_one_pass(text, of);
        explain_strategies(text, NULL, of);
        return;
    }
    dpr_text_add(text, "strategy:  %s, %s\n", step->strategy->name, reason_of(step, of));
    if (of->keys)
        explain_keys(text, of);
    explain_launch(text, step, of);
    explain_nesting(text, step, of);
    explain_sizes(text, of->choice);
    explain_strategies(text, step->strategy, of);
}

dpr_status dpr_explain(const dpr_choice *choice, const dpr_machine *machine, const dpr_run *run, const dpr_keys *keys,
                       char *text, size_t *len) {
    dpr_machine known;
    const dpr_status status = dpr_machine_known(machine, 0, &known);
    if (status != DPR_OK)
        return status;
    if (choice->estimated)
        known.wisdom = NULL;
    explanation of = {choice, &known, run, NULL, NULL};
    if (keys && keys->dtype != DPR_DTYPE_NONE) {
        of.keys = keys;
        of.why_not_one = dpr_refuse_one_pass(keys, &choice->key, &known.caps, run->count);
    }
    return dpr_text_fill(explain, &of, text, len);
}
