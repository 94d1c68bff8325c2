/* A sum and an ARGMAX of an array that is spread over the GPUs of one machine, with NCCL and a thread for each GPU:
 *
 *     GPU 0   reduce its part \                    / merge in the GPUs' order, finish
 *     GPU 1   reduce its part / all-gather bytes   \ merge in the GPUs' order, finish
 *
 * The elements and the partial results stay in device memory, and a GPU's work is in one stream, so the host waits only
 * for the result. Every GPU finishes the same bytes in the same order, so all GPUs have the same bits, whatever path
 * NCCL chooses. ARGMAX is the same for any number of GPUs. The sum of doubles is rounded differently if the parts
 * differ, or if the GPUs add them by other strategies, as GPUs of different models may. */
#define _POSIX_C_SOURCE 200809L /* alarm() and clock_gettime() */
#include <cuda_runtime_api.h>
#include <dpr.h>
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXAMPLE_OK = 0, EXAMPLE_WRONG = 1, EXAMPLE_USAGE = 2, EXAMPLE_SKIPPED = 77 };
enum { TIME_LIMIT = 100 /* seconds, for the whole program */, WARM_UP = 20, TIMED = 300 /* calls of each kind */ };

/* Ends the program at once. exit() might not return, because other threads may wait in NCCL for this one. */
static void end_all(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    _Exit(EXAMPLE_WRONG);
}

static void check_cuda(cudaError_t error, const char *call) {
    if (error != cudaSuccess)
        end_all(call, cudaGetErrorString(error));
}

static void check_nccl(ncclResult_t result, const char *call) {
    if (result != ncclSuccess)
        end_all(call, ncclGetErrorString(result));
}

static void check_dpr(dpr_status status, const char *call) {
    if (status != DPR_OK)
        end_all(call, dpr_last_error());
}

#define CUDA(call) check_cuda((call), #call)
#define NCCL(call) check_nccl((call), #call)
#define DPR(call) check_dpr((call), #call)

/* NCCL waits without limit for a GPU that does not arrive. */
static void on_time_limit(int number) {
    static const char text[] = "The GPUs did not finish in time.\n";
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1); /* a signal handler may not use stdio */
    (void)number, (void)written;
    _Exit(EXAMPLE_WRONG);
}

typedef struct result {
    double sum;
    int64_t largest;
} result;

enum { KINDS = 4 };

typedef struct gpu {
    int device, gpus;
    int timed;      /* whether times are measured */
    uint64_t first; /* the index of x[0] in the whole array */
    size_t elements;
    dpr_ctx *ctx;
    ncclComm_t comm;
    cudaStream_t stream;
    double *x; /* device memory, as are the next four */
    void *partial, *all;
    result *out;
    double *own_sum;
    result got; /* on the host */
    double us[KINDS];
} gpu;

/* ---- What is enqueued ---- */

static void reduce_part(gpu *g, dpr_op op) {
    DPR(dpr_reduce_partial_async(g->ctx, g->x, g->partial, g->elements, DPR_F64, op, g->first, NULL, g->stream));
}

/* Finishing merges, too. If there are more partial results to come, dpr_partial_merge_async() merges these to one. */
static void gather_and_finish(gpu *g, dpr_op op, void *out) {
    const size_t size = dpr_partial_size(op, DPR_F64);
    NCCL(ncclAllGather(g->partial, g->all, size, ncclUint8, g->comm, g->stream));
    DPR(dpr_partial_finish_async(g->ctx, g->all, (size_t)g->gpus, DPR_F64, op, NULL, out, g->stream));
}

static void sum_by_partials(gpu *g) {
    reduce_part(g, DPR_SUM);
    gather_and_finish(g, DPR_SUM, &g->out->sum);
}

static void only_gather_and_finish(gpu *g) {
    gather_and_finish(g, DPR_SUM, &g->out->sum);
}

static void only_all_reduce(gpu *g) {
    NCCL(ncclAllReduce(g->own_sum, g->own_sum, 1, ncclFloat64, ncclSum, g->comm, g->stream));
}

static void sum_by_all_reduce(gpu *g) {
    DPR(dpr_reduce_async(g->ctx, g->x, g->own_sum, g->elements, DPR_F64, DPR_SUM, NULL, g->stream));
    only_all_reduce(g);
}

static const struct kind {
    void (*enqueue)(gpu *g);
    const char *text;
} kinds[KINDS] = {{sum_by_partials, "partial results: reduce, ncclAllGather, finish"},
                  {only_gather_and_finish, "  of these ncclAllGather, finish"},
                  {sum_by_all_reduce, "results: reduce, ncclAllReduce of one element"},
                  {only_all_reduce, "  of these ncclAllReduce of one element"}};

/* ---- A GPU's thread ---- */

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median times by the host's clock, from before the first call until the stream is done. The kinds take turns. */
static void measure(gpu *g) {
    double us[KINDS][TIMED];
    for (int i = -WARM_UP; i < TIMED; ++i)
        for (int k = 0; k < KINDS; ++k) {
            const double start = now_us();
            kinds[k].enqueue(g);
            CUDA(cudaStreamSynchronize(g->stream));
            if (i >= 0)
                us[k][i] = now_us() - start;
        }
    for (int k = 0; k < KINDS; ++k) {
        qsort(us[k], TIMED, sizeof us[k][0], compare);
        g->us[k] = us[k][TIMED / 2];
    }
}

static void *work(void *argument) {
    gpu *g = argument;
    CUDA(cudaSetDevice(g->device));
    if (g->timed)
        measure(g);
    sum_by_partials(g);
    reduce_part(g, DPR_ARGMAX);
    gather_and_finish(g, DPR_ARGMAX, &g->out->largest);
    CUDA(cudaStreamSynchronize(g->stream));
    CUDA(cudaMemcpy(&g->got, g->out, sizeof g->got, cudaMemcpyDeviceToHost));
    return NULL;
}

/* ---- Before and after the threads ---- */

static void *allocate(size_t size) {
    void *memory = malloc(size);
    if (memory == NULL)
        end_all("malloc", "there is not enough memory");
    return memory;
}

/* Element i of the array: 1/(1*2), 1/(2*3), 1/(3*4), ..., which begin at count/3 and go on at index 0 after the end.
 * Each is 1/k - 1/(k + 1), so the sum of all is count / (count + 1). The largest is at count/3. */
static double element(uint64_t i, uint64_t count) {
    const uint64_t start = count / 3;
    const double k = (double)(i >= start ? i - start : i + (count - start)) + 1;
    return 1 / (k * (k + 1));
}

static void make_part(gpu *g, uint64_t count) {
    const size_t size = g->elements * sizeof *g->x;
    double *x = allocate(size);
    for (size_t i = 0; i < g->elements; ++i)
        x[i] = element(g->first + i, count);
    CUDA(cudaMalloc((void **)&g->x, size));
    CUDA(cudaMemcpy(g->x, x, size, cudaMemcpyHostToDevice));
    free(x);
}

/* Makes everything that a GPU's thread uses. The first calls are made here, too, because they allocate memory and load
 * kernels, for which CUDA may wait for all work on the device. With NCCL's kernels among this work, which wait for
 * other GPUs, the threads could wait for each other. */
static void open_gpu(gpu *g, uint64_t count) {
    static const dpr_op ops[] = {DPR_SUM, DPR_ARGMAX};
    size_t size = dpr_partial_size(DPR_SUM, DPR_F64);
    if (size < dpr_partial_size(DPR_ARGMAX, DPR_F64))
        size = dpr_partial_size(DPR_ARGMAX, DPR_F64);
    CUDA(cudaSetDevice(g->device));
    DPR(dpr_ctx_create(g->device, &g->ctx));
    CUDA(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking));
    make_part(g, count);
    CUDA(cudaMalloc(&g->partial, size));
    CUDA(cudaMalloc(&g->all, size * (size_t)g->gpus));
    CUDA(cudaMalloc((void **)&g->out, sizeof *g->out));
    CUDA(cudaMalloc((void **)&g->own_sum, sizeof *g->own_sum));
    for (int i = 0; i < 2; ++i) {
        reduce_part(g, ops[i]);
        DPR(dpr_partial_finish_async(g->ctx, g->partial, 1, DPR_F64, ops[i], NULL, g->own_sum, g->stream));
    }
    CUDA(cudaStreamSynchronize(g->stream));
    CUDA(cudaMemset(g->out, 0xff, sizeof *g->out)); /* a result that is not written shows: NaN and -1 */
    CUDA(cudaDeviceSynchronize());
}

static void close_gpu(gpu *g) {
    void *const memory[] = {g->x, g->partial, g->all, g->out, g->own_sum};
    CUDA(cudaSetDevice(g->device));
    NCCL(ncclCommDestroy(g->comm));
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i)
        CUDA(cudaFree(memory[i]));
    CUDA(cudaStreamDestroy(g->stream));
    dpr_ctx_destroy(g->ctx);
}

/* Runs a thread for each GPU, and waits for all of them. */
static void run(gpu *all, int gpus) {
    pthread_t *threads = allocate((size_t)gpus * sizeof *threads);
    for (int i = 0; i < gpus; ++i)
        if (pthread_create(&threads[i], NULL, work, &all[i]) != 0)
            end_all("pthread_create", "there is no further thread");
    for (int i = 0; i < gpus; ++i)
        if (pthread_join(threads[i], NULL) != 0)
            end_all("pthread_join", "the thread cannot be joined");
    free(threads);
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Whether GPU 0 has the known answers, and all others have the same bits. Each element has at most 3 roundings, and
 * adding n numbers in any order has an error of at most n - 1 roundings of the sum of their magnitudes (Higham,
 * Accuracy and Stability of Numerical Algorithms, 4.2), which is less than 1 here. */
static int is_right(const gpu *all, int gpus, uint64_t count) {
    const double n = (double)count, sum = all[0].got.sum;
    int right = fabs(sum - n / (n + 1)) <= (n + 3) * 0x1p-53 && all[0].got.largest == (int64_t)(count / 3);
    for (int i = 1; i < gpus; ++i)
        right &= bits_of(all[i].got.sum) == bits_of(sum) && all[i].got.largest == all[0].got.largest;
    for (int i = 0; i < gpus; ++i)
        printf("GPU %d: sum %.17g, argmax %lld\n", i, all[i].got.sum, (long long)all[i].got.largest);
    puts(right ? "all GPUs have the same bits, and the result is as expected" : "there were wrong results");
    return right;
}

static void print_times(const gpu *all, int gpus) {
    printf("\nA sum on all GPUs: median time of %d calls in us by the host's clock, on the slowest GPU\n", TIMED);
    for (int k = 0; k < KINDS; ++k) {
        double slowest = 0;
        for (int i = 0; i < gpus; ++i)
            slowest = fmax(slowest, all[i].us[k]);
        printf("%-50s %8.1f\n", kinds[k].text, slowest);
    }
}

/* The number of GPUs. Ends the program as skipped if there are too few. */
static int count_gpus(void) {
    int gpus = 0;
    const cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error != cudaSuccess && error != cudaErrorNoDevice && error != cudaErrorInsufficientDriver)
        CUDA(error);
    if (error == cudaSuccess && gpus >= 2)
        return gpus;
    printf("skipped: this needs 2 GPUs, and %d can be used%s%s\n", gpus, error == cudaSuccess ? "" : ": ",
           error == cudaSuccess ? "" : cudaGetErrorString(error));
    exit(EXAMPLE_SKIPPED);
}

int main(int argc, char **argv) {
    const int is_check = argc == 2 && strcmp(argv[1], "--check") == 0;
    if (argc != 1 && !is_check) {
        fprintf(stderr, "usage: %s [--check]\n--check: a small size and no timing\n", argv[0]);
        return EXAMPLE_USAGE;
    }
    const int gpus = count_gpus();
    signal(SIGALRM, on_time_limit);
    alarm(TIME_LIMIT);

    /* Parts of unequal length: the last one is shorter. */
    const uint64_t part = is_check ? 5003 : 1 << 20, count = part * (uint64_t)gpus - 1;
    gpu *all = allocate((size_t)gpus * sizeof *all);
    ncclComm_t *comms = allocate((size_t)gpus * sizeof(ncclComm_t));
    NCCL(ncclCommInitAll(comms, gpus, NULL));
    for (int i = 0; i < gpus; ++i) {
        const uint64_t first = part * (uint64_t)i;
        all[i] = (gpu){.device = i, .gpus = gpus, .timed = !is_check, .first = first, .comm = comms[i]};
        all[i].elements = (size_t)(i + 1 < gpus ? part : count - first);
        open_gpu(&all[i], count);
    }
    run(all, gpus);

    printf("%d GPUs, %llu elements of F64\n", gpus, (unsigned long long)count);
    const int right = is_right(all, gpus, count);
    if (!is_check)
        print_times(all, gpus);
    for (int i = 0; i < gpus; ++i)
        close_gpu(&all[i]);
    free(comms);
    free(all);
    return right ? EXAMPLE_OK : EXAMPLE_WRONG;
}
