/* dpr_peers measures dpr, CUB, cuBLAS, plain copies and empty kernels in turn, in one process on one GPU. */
#include <stdio.h>

#include "cli_json.h"
#include "dpr_commit.h"
#include "peer_set.h"

typedef struct request {
    bench_asked asked;
    peers_results results;
    outfile file;
    bench_walk walk;
    peer_set set;
} request;

static const cli_help help = {
    "Usage: dpr_peers [OPTION]...\n"
    "Compares dpr's times with those of CUB, cuBLAS, copies and empty kernels. They take turns on one GPU, on the\n"
    "same rotating buffers.\n"
    "Every result is checked.\n"
    "\n"
    "Examples:\n"
    "  dpr_peers                                     sum of f32\n"
    "  dpr_peers -o sum,max -t f32,f64 -m all -c both -b 10m -O peers.json\n"
    "  dpr_peers -n 2^20 -s 'flat.*' -p cub          strategies by name too\n"
    "  dpr_peers --segments all -n 2^20,2^28 -m all  sums of segments: nine distributions of their lengths\n"
    "  dpr_peers --axes all                          sums along axes of twelve arrays of several dimensions\n",
    NULL,
    "Subjects:\n"
    "  dpr             the planner's choice, as a plan; dpr_reduce_ex() in blocking mode\n"
    "  dpr.async       the same through dpr_reduce_async() (stream mode)\n"
    "  cub             CUB's function for it, accumulating as dpr does; in blocking mode with a copy in the stream\n"
    "  cub.memcpy      with cudaMemcpy() in its place; cub.pinned: with the result in pinned memory (blocking)\n"
    "  cub.native      sums of 32-bit integers in 32 bits; cub.transform: widened by a transform iterator (graph)\n"
    "  cublas.asum, cublas.dot (with itself), cublas.iamax\n"
    "                  for sums and argmax of f32 and f64\n"
    "  copy            of half the array to other device memory: as many bytes read and written as others read;\n"
    "                  not of more than a quarter of the device's memory\n"
    "  launch          a kernel of one thread that reads nothing, launched as dpr's are: the least time of a call;\n"
    "                  for arrays of up to 8 MiB\n"
    "\n"
    "Subjects of --segments:\n"
    "  dpr             dpr_reduce_segments_async(), dpr_reduce_segments() in blocking mode\n"
    "  cub             DeviceSegmentedReduce, for sum and max of f32, f64 and i32, and offsets of i32 and i64\n"
    "  cub.bykey       DeviceReduce::ReduceByKey, where no segment is empty; it reads keys in addition\n"
    "  dpr.bykey       dpr_reduce_by_key_async() with the keys of cub.bykey, dpr_reduce_by_key() in blocking mode\n"
    "  cusparse        a sparse matrix times a vector of ones, for sums of f32 and f64; it reads the indices of\n"
    "                  columns in addition\n"
    "\n"
    "Subjects of --axes:\n"
    "  dpr             dpr_reduce_axes_async(), dpr_reduce_axes() in blocking mode\n"
    "  cub             DeviceSegmentedReduce, for sum and max of f32, f64 and i32 in at most three dimensions once\n"
    "                  those that lie as one are one; where a result's elements have others between them, it reads\n"
    "                  them through an iterator that computes where each is\n"
    "  cublas.gemv     a matrix, or several, times a vector of ones, for sums of f32 and f64 along one of two\n"
    "                  dimensions, or of three; it reads the vector in addition\n"
    "\n"
    "Modes: see 'dpr bench --help'. An interrupt (Ctrl-C) ends the measurement and shows what there is.\n"
    "\n"
    "Exit status: 0 if all went well, 1 if a subject failed or gave a wrong result, 2 if the command line makes\n"
    "no sense, 130 after an interrupt, 143 after SIGTERM, 129 after SIGHUP.\n"};

/* ---- Options ---------------------------------------------------------------------------------------------------- */

static int parse(int argc, char **argv, request *r) {
    bench_asked *a = &r->asked;
    const cli_option options[] = {
        {'n', "count", "N,...", axis_parse_counts, &a->counts,
         "numbers of elements, and ranges of them: 2^10:2^30:x4,\n1000:5000:+1000 (default: 2^0:2^33:x2)"},
        {'o', "op", "OP,...", asked_take_ops, &a->ops,
         "operations, sets in one pass such as sum+var, or 'all'\n(default: sum); CUB and cuBLAS have no sets"},
        {'t', "dtype", "TYPE,...", axis_take_names, &(axis_names){cli_dtype_name, &a->dtypes},
         "types of the elements, or 'all' (default: f32)"},
        {'m', "mode", "MODE,...", axis_take_names, &(axis_names){bench_mode_name, &a->modes},
         "graph (default), stream, blocking, or 'all'"},
        {'c', "cache", "CACHE", asked_take_caches, &a->caches, "cold (default), hot, or both"},
        {'p', "peer", "PEER,...", axis_take_names, &(axis_names){peer_group_name, &r->set.groups},
         "cub, cublas, copy, launch, cusparse, or 'all' (default: all)"},
        {0, "segments", "NAME,...", shapes_take_segments, &a->segments,
         "calls with a result for each segment: distributions of\nlengths as in 'dpr bench', or 'all'"},
        {0, "axes", "ARRAY,...", shapes_take_axes, &a->axes,
         "calls that reduce along axes: arrays as in 'dpr bench',\nor 'all'"},
        {0, "offsets", "TYPE", asked_take_offsets, &a->offsets, "with --segments: i32 (default), u32, i64 or u64"},
        {'s', "strategy", "NAME,...", asked_take_strategies, a,
         "strategies to time in addition to the planner's choice, or families\nsuch as 'flat.*' (default: none)"},
        {'d', "device", "DEVICE", cli_device, &a->device, "auto (default), or a GPU's number"},
        {'b', "budget", "TIME", axis_parse_seconds, &a->budget, "for all together: 60s, 5m, 1h (default: 60s)"},
        {'a', "accuracy", "SHARE", axis_parse_share, &a->accuracy, "how certain medians shall be (default: 0.5%)"},
        {'f', "format", "FORMAT", outfile_set_format, a->file,
         "table, csv, json or markdown (default: as FILE ends:\n.csv, .json, .md; else table)"},
        {'O', "output", "FILE", cli_file, &a->file->name,
         "write there; with another format than 'table' the table\nstill goes to standard output"},
        {0, "commit", "TEXT", cli_text, &a->commit, "what JSON names as the commit\n(default: the one that was built)"},
        {'q', "quiet", NULL, cli_flag, &a->quiet, "no live line"},
        cli_help_option,
        {0}};
    return cli_parse(argc, argv, &help, options, NULL);
}

/* Defaults take the place of lists that are not asked for. */
static int complete(request *r) {
    bench_asked *a = &r->asked;
    asked_default_op(&a->ops);
    a->offsets = a->offsets == DPR_DTYPE_NONE ? DPR_I32 : a->offsets;
    if (asked_check_shapes(a) != CLI_OK)
        return CLI_USAGE;
    axis_default(&a->dtypes, DPR_ROW(DPR_F32));
    axis_default(&a->modes, BENCH_GRAPH);
    axis_default(&a->caches, BENCH_COLD);
    if (!r->set.groups)
        r->set.groups = axis_one(PEER_GROUPS) - 1;
    return a->counts.n > 0 ? CLI_OK : axis_parse_counts(asked_shape_option(a) ? "2^28" : "2^0:2^33:x2", &a->counts);
}

/* ---- The program ------------------------------------------------------------------------------------------------ */

static int write_report(void *user, FILE *f, int format) {
    const request *r = user;
    return peers_write(f, &r->results, (report_format)format);
}

/* dpr and the peers get their memory first: the pool takes most of what is left. */
static int measure_all(request *r) {
    char why[BENCH_WHY] = "";
    const int code = walk_open(&r->walk);
    if (code != CLI_OK)
        return code;
    if (dpr_ctx_device(r->walk.ctx) == DPR_DEVICE_CPU)
        return cli_error("there is no GPU: nothing can be compared");
    if (peer_set_open(&r->set, why) != 0)
        return cli_error("%s", why);
    return walk_run(&r->walk);
}

static int measure(void *user) {
    request *r = user;
    const int code = measure_all(r);
    peer_set_close(&r->set);
    walk_close(&r->walk);
    return code;
}

static int start(int argc, char **argv, request *r) {
    r->file = (outfile){.format = OUTFILE_GUESS, .shows_table = 1, .write = write_report, .user = r};
    r->asked = (bench_asked){
        .device = DPR_DEVICE_AUTO, .budget = 60, .accuracy = 0.005, .commit = DPR_COMMIT, .file = &r->file};
    r->walk =
        (bench_walk){.asked = &r->asked, .results = &r->results.common, .prepare = peer_set_prepare, .user = &r->set};
    r->set.walk = &r->walk;
    r->set.results = &r->results;
    int code = parse(argc, argv, r);
    if (code == CLI_GO_ON && (code = complete(r)) == CLI_OK)
        code = asked_run(&r->asked, &r->results.common, measure, r);
    return code;
}

int main(int argc, char **argv) {
    static request r;
    cli_begin();
    cli_set_program("dpr_peers");
    cli_json_watch();
    return cli_finish(start(argc, argv, &r));
}
