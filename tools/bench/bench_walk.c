#include "bench_walk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "available.h"
#include "figures.h"
#include "progress.h"

/* Bytes of an array, or of the buffer of one with many results. */
static size_t saturating_bytes(const bench_walk *w, const bench_case *at) {
    const size_t size = dpr_dtype_size(at->dtype);
    if (at->shape)
        return shaped_touched(at, w->asked->offsets, exact_result_bytes(at->ops.at[0], at->dtype));
    return at->count > SIZE_MAX / 4 / size ? SIZE_MAX / 4 : (size_t)at->count * size;
}

static void end(bench_walk *w, const char *why) {
    if (!w->results->ended)
        w->results->ended = why;
}

/* ---- The live line ---------------------------------------------------------------------------------------------- */

static double elapsed(const bench_walk *w) {
    return seconds_now() - w->began;
}

static int is_over(const bench_walk *w) {
    return asked_stopped(w->asked) || elapsed(w) >= w->most_seconds;
}

static void end_if_over(bench_walk *w) {
    if (is_over(w))
        end(w, asked_stopped(w->asked) ? "interrupted" : "the budget was spent");
}

/* Seconds until the end: as the cases so far took, and no more than the budget has. */
static double time_left(const bench_walk *w) {
    const double spent = elapsed(w), budget = w->most_seconds - spent;
    const double left = w->done ? spent / (double)w->done * (double)(w->cases - w->done) : budget;
    return left < budget ? left : budget > 0 ? budget : 0;
}

static void show_progress(void *user) {
    const bench_walk *w = user;
    char what[RESULTS_TEXT], text[RESULTS_TEXT];
    if (w->asked->quiet || elapsed(w) < 1)
        return;
    snprintf(text, sizeof text, "%zu of %zu  %.120s  %.0f s left", w->done, w->cases, results_name(&w->at, what),
             time_left(w));
    progress_line(text);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static void out_of_memory(bench_walk *w) {
    w->code = cli_error("out of memory");
    end(w, "out of memory");
}

static void leave_out(bench_walk *w, const char *why) {
    bench_omission *o = results_add_omission(w->results);
    if (!o) {
        out_of_memory(w);
        return;
    }
    o->at = w->at;
    snprintf(o->why, sizeof o->why, "%.150s", why);
}

/* Whether the caller's strategy is of the CPU, which launches nothing. */
static int is_of_cpu(const bench_caller *c) {
    return c->strategy && strcmp(c->strategy, CALLER_PLANNER) != 0 && !cli_strategy_info(c->strategy).on_gpu;
}

/* `launch` has the case's empty launches; NULL: there are none. */
static void keep(bench_walk *w, int i, const bench_outcome *launch) {
    const bench_outcome *o = &w->outcomes[i], *first = &w->outcomes[0];
    const bench_caller *c = w->subjects[i].user;
    char trouble[RESULTS_TEXT];
    if (o->state != BENCH_DONE && o->state != BENCH_FAILED)
        return;
    if (o->state == BENCH_FAILED && c->array && c->unable && w->unable) {
        w->unable(w, c->strategy, c->why);
        return;
    }
    bench_row *row = results_add_row(w->results);
    if (!row) {
        out_of_memory(w);
        return;
    }
    *row = (bench_row){.at = w->at,
                       .subject = w->subjects[i].name,
                       .strategy = c->strategy,
                       .block = c->launch.block,
                       .chosen = c->chosen,
                       .state = o->state,
                       .verdict = o->verdict,
                       .calls = o->calls,
                       .visit = w->visit,
                       .late = o->late,
                       .checked = o->checked,
                       .wrong = o->wrong,
                       .slowdown = o->slowdown,
                       .us = o->us,
                       .results = w->at.shape ? w->shaped.array.results : 0,
                       .bytes = w->at.shape ? shaped_bytes(&w->shaped) : saturating_bytes(w, &w->at),
                       .kernels = c->kernels};
    if (o->state == BENCH_FAILED)
        snprintf(row->why, sizeof row->why, "%.250s", c->why[0] ? c->why : o->why);
    if (launch && launch->state == BENCH_DONE && o->state == BENCH_DONE && !is_of_cpu(c)) {
        row->steady = bench_steady(o, launch, w->at.mode);
        row->launch_us = launch->us.median;
    }
    if (o->us.median > 0 && !c->reads_nothing)
        row->gb_per_s = (double)row->bytes / o->us.median * 1e-3;
    if (!c->strategy && o->state == BENCH_DONE && first->state == BENCH_DONE)
        row->ratio = bench_compare(o, first);
    if (*results_trouble(row, trouble))
        w->code = cli_error("%s", trouble);
}

void walk_refuse(bench_walk *w, const char *strategy, const char *why) {
    bench_row *row = results_add_row(w->results);
    if (!row) {
        out_of_memory(w);
        return;
    }
    *row =
        (bench_row){.at = w->at, .subject = strategy, .strategy = strategy, .state = BENCH_REFUSED, .visit = w->visit};
    snprintf(row->why, sizeof row->why, "%.250s", why);
}

/* ---- Subjects --------------------------------------------------------------------------------------------------- */

/* Takes the library's reason. Returns -1. */
static int take_reason(char why[BENCH_WHY]) {
    snprintf(why, BENCH_WHY, "%.500s", dpr_last_error());
    return -1;
}

int walk_choose(bench_walk *w, char why[BENCH_WHY]) {
    bench_caller choice = caller_at(w->ctx, &w->at, NULL);
    w->n = 0;
    w->choice = CALLER_PLANNER;
    if (w->at.shape)
        return 0;
    if (caller_choose(&choice, w->at.mode) != DPR_OK)
        return take_reason(why);
    w->choice = choice.strategy;
    return 0;
}

/* The most runs in a graph; 0: no limit. Graphs with more runs whose kernels launch kernels keep the host, on an H200,
 * until they are done. */
static int most_captured(const char *strategy) {
    enum { MOST_NESTED_RUNS = 16 };
    return cli_strategy_info(strategy).role == DPR_ROLE_NESTED ? MOST_NESTED_RUNS : 0;
}

/* Adds a caller for an array with many results. NULL with the reason if the strategy is none of the device's. */
static bench_caller *add_shaped(bench_walk *w, const char *strategy, char why[BENCH_WHY]) {
    const int chosen = strcmp(strategy, CALLER_PLANNER) == 0;
    bench_caller *c = &w->callers[w->n];
    if (!chosen && cli_strategy_info(strategy).on_gpu != (dpr_ctx_device(w->ctx) != DPR_DEVICE_CPU)) {
        snprintf(why, BENCH_WHY, "%s is not of this device", strategy);
        return NULL;
    }
    *c = caller_at(w->ctx, &w->at, chosen ? NULL : strategy);
    c->array = &w->shaped.array;
    c->strategy = strategy;
    c->chosen = chosen;
    w->subjects[w->n++] = (bench_subject){.name = strategy,
                                          .user = c,
                                          .enqueue = caller_enqueue,
                                          .call = caller_call,
                                          .most_captured = chosen ? 0 : most_captured(strategy)};
    return c;
}

bench_caller *walk_add(bench_walk *w, const char *strategy, int as_asked, char why[BENCH_WHY]) {
    bench_caller *c = &w->callers[w->n];
    if (w->at.shape)
        return add_shaped(w, strategy, why);
    *c = caller_at(w->ctx, &w->at, strategy);
    if (as_asked) {
        caller_set_block(c, w->asked->block);
        c->launch.max_depth = w->asked->depth;
    }
    if (caller_choose(c, w->at.mode) != DPR_OK) {
        (void)take_reason(why);
        return NULL;
    }
    c->expected = w->expected;
    c->chosen = strcmp(strategy, w->choice) == 0 && !c->launch.block;
    w->subjects[w->n++] = (bench_subject){.name = c->strategy,
                                          .user = c,
                                          .enqueue = caller_enqueue,
                                          .call = caller_call,
                                          .count_wrong = caller_count_wrong,
                                          .most_captured = most_captured(c->strategy)};
    return c;
}

/* ---- One case --------------------------------------------------------------------------------------------------- */

static bench_rule rule_of(const bench_walk *w) {
    bench_rule rule = w->results->rule;
    rule.seconds = (w->most_seconds - elapsed(w)) / (double)(w->cases - w->done);
    return rule;
}

/* Whether the device has room for the array, with the reason if it has not, as far as that can be told. */
static int has_room(const bench_walk *w, char why[BENCH_WHY]) {
    const size_t size = dpr_dtype_size(w->at.dtype);
    char array[32] = "16 EiB or more", room[32];
    if (w->most == 0 || saturating_bytes(w, &w->at) <= w->most)
        return 1;
    if (w->at.shape)
        (void)figure_bytes(saturating_bytes(w, &w->at), array);
    else if (w->at.count <= UINT64_MAX / size)
        (void)figure_bytes(w->at.count * size, array);
    snprintf(why, BENCH_WHY, "the array has %s, and there is memory for %s", array, figure_bytes(w->most, room));
    return 0;
}

/* The case's data and results. 0, or -1 with the reason why it cannot be measured. */
static int set_point(bench_walk *w, bench_point *point, char why[BENCH_WHY]) {
    *point = (bench_point){.mode = w->at.mode, .cache = w->at.cache};
    if (w->at.shape)
        return shaped_make(&w->shaped, &w->at, w->asked->offsets, point, why);
    point->bytes = saturating_bytes(w, &w->at);
    point->result_stride = caller_stride(&w->at.ops);
    point->mark = known_mark(&w->known, (size_t)w->at.count, &point->mark_bytes);
    const dpr_status status = known_expect(&w->known, (size_t)w->at.count, &w->expected);
    if (status == DPR_ERR_EMPTY) {
        char ops[OPS_TEXT];
        snprintf(why, BENCH_WHY, "%s has no result for zero elements", ops_name(&w->at.ops, ops));
        return -1;
    }
    return status == DPR_OK ? 0 : take_reason(why);
}

/* What the case needs. 0, or -1 with the reason why it cannot be measured. */
static int set_up(bench_walk *w, bench_point *point, char why[BENCH_WHY]) {
    return has_room(w, why) && set_point(w, point, why) == 0 ? w->prepare(w, why) : -1;
}

/* Leaves the case out if no subject has a sample because the measurement has ended, maybe while their data was made;
 * else names those that have none. */
static void say_stopped(bench_walk *w) {
    const char *made = asked_stopped(w->asked) ? "" : w->outcomes[0].why;
    char why[BENCH_WHY + 64], name[RESULTS_TEXT];
    int missing = 0;
    for (int i = 0; i < w->n; i++)
        missing += w->outcomes[i].state == BENCH_INTERRUPTED;
    if (missing == 0 || w->visit > 1)
        return;
    end_if_over(w);
    end(w, "the budget was spent");
    if (missing == w->n) {
        snprintf(why, sizeof why, "%s%s%s", w->results->ended, *made ? " when " : "", made);
        leave_out(w, why);
        return;
    }
    results_name(&w->at, name);
    for (int i = 0; i < w->n && !w->asked->quiet; i++)
        if (w->outcomes[i].state == BENCH_INTERRUPTED)
            cli_note("%s: %s was not measured: %s", name, w->subjects[i].name, w->results->ended);
}

/* Has empty launches take turns with the case's subjects, after the last of them, if the host's clock times the calls,
 * which depend on how long a launch takes. Whether they do. */
static int add_launches(bench_walk *w) {
    const bench_subject *launch = bench_timer_launch(w->timer);
    if (!launch || w->without_launches || w->at.mode == BENCH_GRAPH || w->n >= BENCH_SUBJECTS)
        return 0;
    w->subjects[w->n] = *launch;
    return 1;
}

static void measure(bench_walk *w) {
    bench_point point;
    char why[BENCH_WHY] = "";
    int status = set_up(w, &point, why) == 0 ? 0 : 1;
    const bench_rule rule = rule_of(w);
    const int has_launches = status == 0 && add_launches(w);
    if (status == 0)
        status = bench_run(w->timer, &point, &rule, w->subjects, w->n + has_launches, w->outcomes, why);
    if (status > 0) {
        leave_out(w, why);
        return;
    }
    if (status < 0) {
        w->code = cli_error("%s", why);
        end(w, "the device failed");
    }
    const bench_reference best = bench_timer_best(w->timer);
    w->results->read_gb_per_s = best.read_gb_per_s;
    w->results->clock_mhz = best.clock_mhz;
    for (int i = 0; i < w->n; i++)
        keep(w, i, has_launches ? &w->outcomes[w->n] : NULL);
    if (status == 0)
        say_stopped(w);
}

/* Has the buffers hold the data of the case's operation and type, if it has many results. */
static int make_shaped_data(bench_walk *w, char why[BENCH_WHY]) {
    const bench_exact *e = &w->shaped.exact;
    if (e->block && e->op == w->at.ops.at[0] && e->dtype == w->at.dtype)
        return 0;
    if (shaped_data(&w->shaped, w->cpu, &w->at, why) != 0)
        return -1;
    return bench_fill(w->timer, e->block, EXACT_BLOCK, why);
}

static void data_failed(bench_walk *w, const char *why) {
    w->code = cli_error("%s", why);
    end(w, "its data could not be made");
}

/* Has the buffers hold the data of the case's operations and type. */
static void make_data(bench_walk *w) {
    char why[BENCH_WHY] = "";
    if (w->at.shape) {
        if (make_shaped_data(w, why) != 0)
            data_failed(w, why);
        return;
    }
    if (w->known.block && ops_same(&w->known.ops, &w->at.ops) && w->known.dtype == w->at.dtype)
        return;
    known_free(&w->known);
    const dpr_status status = known_make(&w->known, w->cpu, &w->at.ops, w->at.dtype);
    if (status != DPR_OK || bench_fill(w->timer, w->known.block, KNOWN_BLOCK, why) != 0)
        data_failed(w, status != DPR_OK ? dpr_status_text(status) : why);
}

/* Measures again the case whose n rows begin at `first`. */
static void measure_again(bench_walk *w, size_t first, size_t n, int only_if_calmer) {
    bench_results *r = w->results;
    const size_t rows = r->row_count, omissions = r->omission_count;
    w->at = r->rows[first].at;
    show_progress(w);
    make_data(w);
    if (!r->ended)
        measure(w);
    w->done++;
    results_keep_later(r, first, n, rows, only_if_calmer);
    r->omission_count = omissions;
}

/* bench_row.visit of choices that seemed slow, and of the last time that disturbed cases are measured. */
enum { VISIT_OF_SLOW_CHOICES = 2, LAST_VISIT = 5 };

/* Measures the case whose rows begin at `first` a second time if its choice seems slow: the second rows count also if
 * they are not calmer, because the first were chosen by their times. At once, because graphs come before all else
 * (go_to()). */
static void confirm_regret(bench_walk *w, size_t first) {
    const size_t n = w->results->row_count - first;
    if (w->results->ended || is_over(w) || n == 0 || !results_choice_seems_slow(w->results, first, n))
        return;
    w->cases++;
    w->visit = VISIT_OF_SLOW_CHOICES;
    measure_again(w, first, n, 0);
    w->visit = 1;
}

static void take_case(bench_walk *w) {
    const size_t first = w->results->row_count;
    show_progress(w);
    end_if_over(w);
    if (!w->results->ended)
        make_data(w);
    if (w->results->ended)
        leave_out(w, w->results->ended);
    else
        measure(w);
    w->done++;
    confirm_regret(w, first);
    if (!w->results->ended)
        outfile_refresh(w->asked->file);
    if (w->after)
        w->after(w);
}

/* ---- All cases -------------------------------------------------------------------------------------------------- */

/* The last digit of *number in the base `n`, which it loses. */
static int take_digit(size_t *number, int n) {
    const int digit = (int)(*number % (size_t)n);
    *number /= (size_t)n;
    return digit;
}

static int shape_count(const bench_asked *a) {
    return a->segments.n + a->axes.n;
}

/* Has the case be that of the shape, if there is one, and its number of elements what that makes of it. Whether it is a
 * case: a shape whose extents are all numbers has one number of elements. */
static int take_shape(bench_walk *w, int shape, int is_first_count) {
    bench_case *at = &w->at;
    at->shape = asked_shape(w->asked, shape);
    if (!at->shape)
        return 1;
    const shape_array a = shape_measures(at->shape, at->count, w->asked->offsets);
    at->count = a.elements ? a.elements : at->count;
    return (is_first_count || shape_scales(at->shape)) && exact_can(at->ops.at[0], at->dtype);
}

static int pass_count(const bench_walk *w) {
    return w->is_later ? 2 : 1;
}

/* Goes to combination i of the axes, of which the counts change first. All graphs come first: once a process has
 * launched kernels in two streams, as blocking calls do next to the timer's, an H200 takes 0.2 to 0.35 us longer from
 * one kernel of a graph to the next, except for programmatic launches. Whether the combination is a case. */
static int go_to(bench_walk *w, size_t i) {
    const bench_asked *a = w->asked;
    bench_case *at = &w->at;
    const int count = take_digit(&i, a->counts.n), shapes = shape_count(a);
    at->memory = a->memory;
    const int shape = take_digit(&i, shapes ? shapes : 1);
    at->count = a->counts.at[count];
    at->cache = (bench_cache)take_digit(&i, BENCH_CACHES);
    at->dtype = dpr_dtype_at((size_t)take_digit(&i, DPR_DTYPE_COUNT));
    at->ops = a->ops.at[take_digit(&i, a->ops.n)];
    const int pass = take_digit(&i, pass_count(w));
    at->mode = (bench_mode)i;
    return axis_has(a->modes, at->mode) && axis_has(a->dtypes, DPR_ROW(at->dtype)) && axis_has(a->caches, at->cache)
           && ops_unsupported(&at->ops, at->dtype) == DPR_OP_NONE && take_shape(w, shape, count == 0)
           && (!w->is_later || w->is_later(w->user, at) == pass) && (!w->wants || w->wants(w->user, at));
}

/* Goes to the next case from combination *next on. 0 if there is none. */
static int next_case(bench_walk *w, size_t *next) {
    const size_t all = (size_t)w->asked->counts.n * BENCH_CACHES * DPR_DTYPE_COUNT * (size_t)w->asked->ops.n
                       * BENCH_MODES * (size_t)(shape_count(w->asked) ? shape_count(w->asked) : 1)
                       * (size_t)pass_count(w);
    while (*next < all)
        if (go_to(w, (*next)++))
            return 1;
    return 0;
}

/* ---- Once more -------------------------------------------------------------------------------------------------- */

/* Measures all disturbed cases again, while there is time. How many there were. */
static size_t visit_disturbed(bench_walk *w) {
    bench_results *r = w->results;
    size_t found = 0;
    for (size_t i = 0; i < r->row_count; i += results_alike(r, i, 0))
        found += (size_t)results_disturbed(r, i, results_alike(r, i, 0));
    w->cases = w->done + found;
    for (size_t i = 0, n; i < r->row_count && !r->ended && !is_over(w); i += n) {
        n = results_alike(r, i, 0);
        if (!results_disturbed(r, i, n))
            continue;
        measure_again(w, i, n, 1);
        if (!r->ended)
            outfile_refresh(w->asked->file);
    }
    return found;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

int walk_open(bench_walk *w) {
    w->results->commit = w->asked->commit;
    w->results->offsets = w->asked->segments.n ? w->asked->offsets : DPR_DTYPE_NONE;
    w->results->rule = (bench_rule){w->asked->accuracy, 7, 500, w->asked->budget};
    w->outcomes = calloc(BENCH_SUBJECTS, sizeof *w->outcomes);
    if (!w->outcomes)
        return cli_error("out of memory");
    if (cli_open_device(w->asked->device, &w->ctx) != CLI_OK || cli_open_device(DPR_DEVICE_CPU, &w->cpu) != CLI_OK)
        return CLI_FAILED;
    (void)wisdom_files_read(w->results->wisdom);
    return CLI_OK;
}

const char *walk_why_no_gpu(void) {
    const char *absent = dpr_device_absent();
    return absent ? absent : "none can be used";
}

int walk_refuse_memory(const bench_asked *a) {
    const char *memory = cli_memory_name(a->memory);
    return a->device == DPR_DEVICE_CPU
               ? cli_usage("--memory: %s memory is a GPU's, and --device is cpu", memory)
               : cli_error("--memory: %s memory is a GPU's, and there is none: %s", memory, walk_why_no_gpu());
}

size_t walk_largest(bench_walk *w) {
    size_t largest = 0;
    w->most = bench_pool_most(dpr_ctx_device(w->ctx), w->asked->memory) / KNOWN_BLOCK * KNOWN_BLOCK;
    w->cases = 0;
    for (size_t next = 0; next_case(w, &next); w->cases++) {
        const size_t bytes = saturating_bytes(w, &w->at);
        largest = bytes > largest && bytes <= w->most ? bytes : largest;
    }
    return largest;
}

size_t walk_cases(bench_walk *w) {
    (void)walk_largest(w);
    return w->cases;
}

/* Room for the largest array in whole blocks, on a GPU twice, and for small ones; in pinned memory, which takes long to
 * take and to fill, for as many of these as on the CPU. */
static size_t wanted_pool(bench_walk *w) {
    const int on_gpu = dpr_ctx_device(w->ctx) != DPR_DEVICE_CPU;
    const size_t cache = (size_t)machine_value(dpr_ctx_machine(w->cpu), "cpu.cache_bytes");
    const size_t enough = bench_pool_enough(on_gpu && w->asked->memory != DPR_MEMORY_PINNED, cache);
    const size_t blocks = (walk_largest(w) + KNOWN_BLOCK - 1) / KNOWN_BLOCK;
    const size_t largest = blocks * KNOWN_BLOCK * (on_gpu ? 2 : 1);
    return largest > enough ? largest : enough;
}

/* Sets are written out, so one that has no meaning for a type is a mistake. CLI_OK, or CLI_USAGE after a message. */
static int check_sets(const bench_asked *a) {
    for (int i = 0; i < a->ops.n; i++)
        for (size_t dtype = 0; dtype < dpr_dtype_count(); dtype++) {
            const bench_ops *ops = &a->ops.at[i];
            const dpr_op odd = ops_unsupported(ops, dpr_dtype_at(dtype));
            char text[OPS_TEXT];
            if (ops->n > 1 && axis_has(a->dtypes, dtype) && odd != DPR_OP_NONE)
                return cli_usage("--op: '%s': %s has no meaning for %s", ops_name(ops, text), dpr_op_name(odd),
                                 cli_dtype_name(dtype));
        }
    return CLI_OK;
}

static void set_end(bench_walk *w, double seconds) {
    w->most_seconds = seconds;
    bench_timer_watch(w->timer)->end = w->began + seconds;
}

/* Where no time is left: making a timer would take some. */
static int leave_all_out(bench_walk *w) {
    end(w, "the budget was spent");
    for (size_t next = 0; next_case(w, &next);)
        leave_out(w, w->results->ended);
    return w->code;
}

int walk_run(bench_walk *w) {
    char why[BENCH_WHY] = "";
    const int code = check_sets(w->asked);
    if (code != CLI_OK)
        return code;
    const size_t pool = wanted_pool(w);
    if (w->cases == 0)
        return cli_usage("no operation that is asked for has a meaning for a type that is");
    if (w->asked->budget <= 0)
        return leave_all_out(w);
    if (bench_timer_create(dpr_ctx_device(w->ctx), w->asked->memory, pool, &w->timer, why) != 0)
        return cli_error("%s", why);
    w->results->device = *bench_timer_device(w->timer);
    w->began = seconds_now();
    *bench_timer_watch(w->timer) = (bench_watch){w->asked->stop, 0, show_progress, w};
    set_end(w, w->asked->budget);
    w->visit = 1;
    for (size_t next = 0; next_case(w, &next);)
        take_case(w);
    set_end(w, fmin(w->asked->budget, 2 * elapsed(w)));
    w->visit = VISIT_OF_SLOW_CHOICES;
    do
        w->visit++;
    while (w->visit <= LAST_VISIT && !w->results->ended && visit_disturbed(w) > 0);
    progress_clear();
    if (asked_stopped(w->asked))
        end(w, "interrupted");
    w->results->interrupted = asked_stopped(w->asked);
    return w->code;
}

void walk_close(bench_walk *w) {
    bench_timer_destroy(w->timer);
    known_free(&w->known);
    shaped_free(&w->shaped);
    dpr_ctx_destroy(w->ctx);
    dpr_ctx_destroy(w->cpu);
    free(w->outcomes);
}
