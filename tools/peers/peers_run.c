#include "peers_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "peer_set.h"
#include "peers_floors.h"
#include "progress.h"

typedef struct scene {
    const peers_asked *asked;
    const volatile sig_atomic_t *flag;
    peers_results *results;
    dpr_ctx *ctx;
    dpr_ctx *cpu; /* where results to compare with come from */
    bench_timer *timer;
    peer_set set;
    known known;
    bench_case at;
    bench_outcome *outcomes; /* BENCH_SUBJECTS of them */
    size_t cases, done;
    size_t largest; /* bytes of the largest array of all cases */
    double began;
    int code;
} scene;

static size_t saturating_bytes(uint64_t count, dpr_dtype dtype) {
    const size_t size = dpr_dtypes[dtype].size;
    return count > SIZE_MAX / 4 / size ? SIZE_MAX / 4 : (size_t)count * size;
}

static void end(scene *s, const char *why) {
    if (!s->results->ended)
        s->results->ended = why;
}

/* ---- The live line ---------------------------------------------------------------------------------------------- */

static double elapsed(const scene *s) {
    return cli_now() - s->began;
}

static void describe(const bench_case *at, char *text, size_t size) {
    snprintf(text, size, "%s of %s, %s, %s, %llu elements", dpr_ops[at->op].name, dpr_dtypes[at->dtype].name,
             bench_mode_name(at->mode), bench_cache_name(at->cache), (unsigned long long)at->count);
}

static void show_progress(void *user) {
    const scene *s = user;
    const double left = s->asked->budget - elapsed(s);
    char what[120], text[200];
    if (s->asked->quiet)
        return;
    describe(&s->at, what, sizeof what);
    snprintf(text, sizeof text, "%zu of %zu  %s  %.0f s left", s->done, s->cases, what, left > 0 ? left : 0);
    progress_line(text);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static void out_of_memory(scene *s) {
    cli_error("out of memory");
    s->code = CLI_FAILED;
    end(s, "out of memory");
}

static void leave_out(scene *s, const char *why) {
    bench_omission *o = results_add_omission(&s->results->common);
    if (!o) {
        out_of_memory(s);
        return;
    }
    o->at = s->at;
    snprintf(o->why, sizeof o->why, "%.150s", why);
}

static void report_trouble(scene *s, const bench_row *row) {
    char what[120];
    describe(&row->at, what, sizeof what);
    if (row->wrong)
        cli_error("%s, %s: %ld WRONG results of %ld", row->strategy, what, row->wrong, row->checked);
    else
        cli_error("%s, %s: failed: %s", row->strategy, what, row->why);
    s->code = CLI_FAILED;
}

static void keep(scene *s, int i) {
    const bench_outcome *o = &s->outcomes[i];
    const peer *p = &s->set.peers[i];
    if (o->state != BENCH_DONE && o->state != BENCH_FAILED)
        return;
    peers_row *row = peers_add_row(s->results);
    if (!row) {
        out_of_memory(s);
        return;
    }
    row->ran = p->ran;
    row->row = (bench_row){.at = s->at,
                           .strategy = s->set.subjects[i].name,
                           .chosen = i == 0,
                           .state = o->state,
                           .verdict = o->verdict,
                           .calls = o->calls,
                           .late = o->late,
                           .checked = o->checked,
                           .wrong = o->wrong,
                           .slowdown = o->slowdown,
                           .us = o->us};
    if (!p->ran && o->state == BENCH_DONE && s->outcomes[0].state == BENCH_DONE)
        row->ratio = bench_compare(o, &s->outcomes[0]);
    if (o->state == BENCH_FAILED)
        snprintf(row->row.why, sizeof row->row.why, "%.250s", p->why[0] ? p->why : o->why);
    if (o->us.median > 0)
        row->row.gb_per_s = (double)p->bytes / o->us.median * 1e-3;
    if (o->state == BENCH_FAILED || o->wrong)
        report_trouble(s, &row->row);
}

/* ---- One case --------------------------------------------------------------------------------------------------- */

static bench_rule rule_of(const scene *s) {
    bench_rule rule = s->results->common.rule;
    rule.seconds = (s->asked->budget - elapsed(s)) / (double)(s->cases - s->done);
    return rule;
}

static bench_point point_of(const scene *s) {
    bench_point point = {.mode = s->at.mode, .cache = s->at.cache, .bytes = saturating_bytes(s->at.count, s->at.dtype)};
    if (s->known.marked && s->at.count) {
        point.mark = s->known.last.bytes;
        point.mark_bytes = dpr_dtypes[s->at.dtype].size;
        point.mark_at = point.bytes - point.mark_bytes;
    }
    return point;
}

static void measure(scene *s) {
    const bench_point point = point_of(s);
    const bench_rule rule = rule_of(s);
    char why[BENCH_WHY] = "";
    if (bench_fits(s->timer, &point, why) != 0 || peer_set_at(&s->set, &s->at, &s->known, why) != 0) {
        leave_out(s, why);
        return;
    }
    if (bench_run(s->timer, &point, &rule, s->set.subjects, s->set.n, s->outcomes, why) != 0) {
        cli_error("%s", why);
        s->code = CLI_FAILED;
        end(s, "the device failed");
    }
    for (int i = 0; i < s->set.n; i++)
        keep(s, i);
}

static void take_case(scene *s) {
    show_progress(s);
    if (*s->flag)
        end(s, "interrupted");
    else if (elapsed(s) >= s->asked->budget)
        end(s, "the budget was spent");
    if (s->results->ended)
        leave_out(s, s->results->ended);
    else
        measure(s);
    s->done++;
    if (!s->results->ended && s->asked->grown)
        s->asked->grown(s->asked->user);
}

static void count_case(scene *s) {
    const size_t bytes = saturating_bytes(s->at.count, s->at.dtype);
    s->cases++;
    s->largest = bytes > s->largest ? bytes : s->largest;
}

/* Calls visit() for the cases of a pair of operation and type, in order. Returns how many there are. */
static size_t each_case(scene *s, void (*visit)(scene *s)) {
    const peers_asked *a = s->asked;
    size_t n = 0;
    for (int m = 0; m < BENCH_MODES; m++)
        for (int c = 0; c < BENCH_CACHES; c++)
            for (int i = 0; a->modes[m] && a->caches[c] && i < a->counts.n; i++) {
                s->at.mode = (bench_mode)m;
                s->at.cache = (bench_cache)c;
                s->at.count = a->counts.at[i];
                if (a->floors && !floors_want(&s->at))
                    continue;
                n++;
                visit(s);
            }
    return n;
}

/* Makes the data of the pair and measures its cases. */
static void measure_pair(scene *s) {
    char why[BENCH_WHY] = "";
    if (!s->results->ended) {
        const dpr_status status = known_make(&s->known, s->cpu, s->at.op, s->at.dtype);
        if (status != DPR_OK || bench_fill(s->timer, s->known.block, KNOWN_BLOCK, why) != 0) {
            cli_error("%s", status != DPR_OK ? dpr_status_text(status) : why);
            s->code = CLI_FAILED;
            end(s, "its data could not be made");
        }
    }
    (void)each_case(s, take_case);
    known_free(&s->known);
}

static void count_pair(scene *s) {
    (void)each_case(s, count_case);
}

static void ignore_case(scene *s) {
    (void)s;
}

static void each_pair(scene *s, void (*visit)(scene *s)) {
    for (int op = 0; op < DPR_OP_COUNT; op++)
        for (int d = 0; d < DPR_DTYPE_COUNT; d++) {
            if (!s->asked->ops[op] || !s->asked->dtypes[d] || !dpr_supported((dpr_op)op, (dpr_dtype)d))
                continue;
            s->at = (bench_case){.op = (dpr_op)op, .dtype = (dpr_dtype)d};
            if (each_case(s, ignore_case))
                visit(s);
        }
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* Two buffers of the largest array, and enough of the small ones that none is read twice in a batch. */
static size_t wanted_pool(size_t largest) {
    const size_t gib = (size_t)1 << 30;
    return largest > 4 * gib ? 2 * largest : 8 * gib;
}

/* dpr and the peers get their memory first: the pool takes most of what is left. */
static int open_scene(scene *s) {
    char why[BENCH_WHY] = "";
    if (dpr_ctx_create(s->asked->device, &s->ctx) != DPR_OK || dpr_ctx_create(DPR_DEVICE_CPU, &s->cpu) != DPR_OK) {
        cli_error("%s", dpr_last_error());
        return CLI_FAILED;
    }
    const int device = dpr_ctx_device(s->ctx);
    if (device == DPR_DEVICE_CPU) {
        cli_error("there is no GPU: nothing can be compared");
        return CLI_FAILED;
    }
    s->outcomes = calloc(BENCH_SUBJECTS, sizeof *s->outcomes);
    if (!s->outcomes) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (peer_set_open(&s->set, s->ctx, s->asked->strategies, s->asked->groups, s->largest, why) != 0
        || bench_timer_create(device, wanted_pool(s->largest), &s->timer, why) != 0) {
        cli_error("%s", why);
        return CLI_FAILED;
    }
    bench_stop_at(s->timer, s->flag);
    bench_tick_at(s->timer, show_progress, s);
    s->results->common.device = *bench_timer_device(s->timer);
    s->results->common.pool_bytes = bench_pool_bytes(s->timer);
    if (s->asked->groups[PEER_CUB])
        peer_cub_version(s->results->cub);
    peer_cublas_version(&s->set, s->results->cublas);
    return CLI_OK;
}

static int run_scene(scene *s) {
    each_pair(s, count_pair);
    if (s->cases == 0)
        return cli_usage("there is no case for these options");
    const int code = open_scene(s);
    if (code != CLI_OK)
        return code;
    s->began = cli_now();
    each_pair(s, measure_pair);
    progress_clear();
    if (*s->flag)
        end(s, "interrupted");
    s->results->common.interrupted = *s->flag != 0;
    return s->code;
}

int peers_measure(const peers_asked *asked, const volatile sig_atomic_t *flag, peers_results *out) {
    scene *s = calloc(1, sizeof *s);
    *out = (peers_results){.common = {.commit = asked->commit}};
    if (!s) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    out->common.rule = (bench_rule){asked->accuracy, 7, 500, asked->budget};
    s->asked = asked;
    s->flag = flag;
    s->results = out;
    const int code = run_scene(s);
    peer_set_close(&s->set);
    bench_timer_destroy(s->timer);
    dpr_ctx_destroy(s->ctx);
    dpr_ctx_destroy(s->cpu);
    free(s->outcomes);
    free(s);
    return code;
}
