#include "start.h"

#include <inttypes.h>

#include "cpu/float_mode.h"
#include "cuda/range.h"
#include "lists.h"
#include "log.h"
#include "plan/choice_log.h"
#include "plan/registry.h"

/* ---- Lines in the log ------------------------------------------------------------------------------------------- */

static void add_array(dpr_log_line *line, const char *before, const void *at) {
    dpr_place place;
    if (at && dpr_device_place(at, "", &place) == DPR_OK)
        dpr_log_add(line, "%s %s memory at %p", before, dpr_memory_name(place.memory), at);
    else
        dpr_log_add(line, "%s %p", before, at);
}

static void add_problem(dpr_log_line *line, const dpr_strategy *strategy, const dpr_run *run) {
    dpr_log_add(line, "%s: ", strategy->name);
    if (strategy != dpr_this_build.key_runs) { /* which looks at keys, and reduces nothing */
        dpr_log_add_ops(line, &run->key);
        dpr_log_add(line, " of ");
    }
    dpr_log_add(line, "%s%zu %s", run->device_count ? "at most " : "", run->count, dpr_dtypes[run->key.f.dtype].name);
    if (run->segments)
        dpr_log_add(line, " in %s%" PRIu64 " segments", run->segments->device_count ? "at most " : "",
                    run->segments->count);
    if (run->axes)
        dpr_log_add(line, " to %" PRIu64 " results", run->axes->outputs);
}

static void log_cpu(const dpr_strategy *strategy, const dpr_run *run) {
    dpr_log_line line;
    dpr_log_begin(&line, DPR_LOG_LAUNCH);
    add_problem(&line, strategy, run);
    add_array(&line, ", from", run->count > 0 ? run->in : NULL);
    add_array(&line, " to", run->fused ? run->fused->out[0] : run->out);
    dpr_log_add(&line, run->limits.threads > 1 ? ", in at most %d threads" : ", in %d thread", run->limits.threads);
    dpr_log_end(&line);
}

static void log_gpu(const dpr_device *device, const dpr_strategy *strategy, const dpr_run *run,
                    const dpr_host_result *result) {
    dpr_log_line line;
    void *out = result && result->out ? result->out : run->fused ? run->fused->out[0] : run->out;
    dpr_log_begin(&line, DPR_LOG_LAUNCH);
    add_problem(&line, strategy, run);
    add_array(&line, ", from", run->count > 0 ? run->in : NULL);
    add_array(&line, " to", out);
    if (run->limits.max_blocks > 0) /* not of strategies that are not in the registry */
        dpr_log_add(&line, ", at most %d blocks of %d threads", run->limits.max_blocks, run->limits.threads);
    dpr_log_add(&line, ", in stream %p of device %d%s", (void *)run->stream, dpr_device_home_of(device)->ordinal,
                result ? ", waiting for the result" : "");
    dpr_log_end(&line);
}

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

void dpr_start_on_cpu(const dpr_strategy *strategy, const dpr_run *run) {
    if (DPR_LOGS(LAUNCH))
        log_cpu(strategy, run);
    dpr_range_begin(strategy->name);
    const uint64_t mode = dpr_float_mode_enter();
    (void)strategy->launch(run);
    dpr_float_mode_leave(mode);
    dpr_range_end();
}

dpr_status dpr_start_on_gpu(dpr_device *device, const dpr_strategy *strategy, dpr_run *run,
                            const dpr_host_result *result, dpr_misfit *misfit) {
    if (DPR_LOGS(LAUNCH))
        log_gpu(device, strategy, run, result);
    dpr_range_begin(strategy->name);
    const dpr_status status = result
                                  ? dpr_device_run_blocking(device, strategy, run, result->out, result->bytes, misfit)
                                  : dpr_device_run(device, strategy, run, misfit);
    dpr_range_end();
    return status;
}
