#include "peers_run.h"

#include <stdlib.h>

#include "bench_walk.h"
#include "peer_set.h"

typedef struct scene {
    bench_walk walk;
    peer_set set;
} scene;

static int prepare(bench_walk *w, char why[BENCH_WHY]) {
    peer_set *set = &((scene *)w->user)->set;
    const int status = peer_set_at(set, &w->at, &w->known, &w->expected, why);
    w->subjects = set->subjects;
    w->n = set->n;
    return status;
}

/* dpr and the peers get their memory first: the pool takes most of what is left. */
static int run_scene(scene *s, const peers_asked *asked, peers_results *out) {
    char why[BENCH_WHY] = "";
    bench_walk *w = &s->walk;
    if (walk_count(w) == 0)
        return cli_usage("there is no case for these options");
    const int code = walk_open(w);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(w->ctx) == DPR_DEVICE_CPU)
        return cli_error("there is no GPU: nothing can be compared");
    if (peer_set_open(&s->set, w->ctx, asked->common.strategies, asked->groups, walk_largest(w), why) != 0)
        return cli_error("%s", why);
    if (asked->groups[PEER_CUB])
        peer_cub_version(out->cub);
    peer_cublas_version(&s->set, out->cublas);
    return walk_run(w);
}

int peers_measure(const peers_asked *asked, peers_results *out) {
    scene *s = calloc(1, sizeof *s);
    *out = (peers_results){0};
    if (!s)
        return cli_error("out of memory");
    s->walk = (bench_walk){.asked = &asked->common, .results = &out->common, .prepare = prepare, .user = s};
    const int code = run_scene(s, asked, out);
    peer_set_close(&s->set);
    walk_close(&s->walk);
    free(s);
    return code;
}
