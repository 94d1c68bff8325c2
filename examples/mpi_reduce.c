/* A sum and an ARGMAX of an array that is spread over the ranks of an MPI program:
 *
 *     rank 0   reduce its part \                    / merge all in rank order, finish
 *     rank 1   reduce its part  | all-gather bytes |  merge all in rank order, finish
 *     rank 2   reduce its part /                    \ merge all in rank order, finish
 *
 * Every rank finishes the same bytes in the same order, so all ranks have the same bits, whatever the network did.
 * MPI_Allreduce() may add in another order on each run and rank. ARGMAX is the same for any number of ranks. The sum of
 * doubles is rounded differently if the parts differ, or if the ranks add them by other strategies or with other
 * numbers of threads. */
#include <dpr.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends all ranks. Failures of MPI do so by themselves, because that is how MPI's communicators begin. */
static void end_all(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void check(dpr_status status, const char *call) {
    if (status != DPR_OK)
        end_all(call, dpr_last_error());
}

#define DPR(call) check((call), #call)

static void *allocate(size_t size) {
    void *memory = malloc(size > 0 ? size : 1); /* malloc(0) may give NULL */
    if (memory == NULL)
        end_all("malloc", "there is not enough memory");
    return memory;
}

/* A rank's piece of the array of `count` elements. */
typedef struct part {
    dpr_ctx *ctx;
    double *x;
    uint64_t first; /* the index of x[0] in the whole array */
    size_t elements;
} part;

/* Reduces the whole array. Every rank gets the result, and calls this with the same type and operation. */
static void reduce_all(const part *mine, int ranks, uint64_t count, dpr_op op, void *result) {
    const size_t size = dpr_partial_size(op, DPR_F64);
    void *partial = allocate(size), *all = allocate(size * (size_t)ranks);
    dpr_partial_info info = DPR_PARTIAL_INFO_INIT;

    DPR(dpr_reduce_partial(mine->ctx, mine->x, partial, mine->elements, DPR_F64, op, mine->first, NULL));
    MPI_Allgather(partial, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD);
    DPR(dpr_partial_merge(all, (size_t)ranks, DPR_F64, op, NULL, partial));
    DPR(dpr_partial_describe(partial, &info));
    if (info.count != count)
        end_all("wrong", "the partial results are not of all elements");
    DPR(dpr_partial_finish(partial, 1, DPR_F64, op, NULL, result));
    free(all);
    free(partial);
}

/* The index of a rank's first element. Parts grow with the rank, and rank 0 has no elements unless it is alone. */
static uint64_t first_of(int rank, int ranks, uint64_t count) {
    const uint64_t r = (uint64_t)rank, n = (uint64_t)ranks;
    if (rank == 0 || rank == ranks)
        return rank == 0 ? 0 : count;
    return count / (n * (n - 1)) * (r * (r - 1));
}

/* Element i of the array: 1/(1*2), 1/(2*3), 1/(3*4), ..., which begin at count/3 and go on at index 0 after the end.
 * Each is 1/k - 1/(k + 1), so the sum of all is count / (count + 1). The largest is at count/3. */
static double element(uint64_t i, uint64_t count) {
    const uint64_t start = count / 3;
    const double k = (double)(i >= start ? i - start : i + (count - start)) + 1;
    return 1 / (k * (k + 1));
}

/* Whether all ranks have the same bits: each bit is then the same in their AND and their OR. */
static int same_everywhere(const void *result) {
    uint64_t bits, in_all, in_any;
    memcpy(&bits, result, sizeof bits);
    MPI_Allreduce(&bits, &in_all, 1, MPI_UINT64_T, MPI_BAND, MPI_COMM_WORLD);
    MPI_Allreduce(&bits, &in_any, 1, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
    return in_all == in_any;
}

/* The known answers. Each element has at most 3 roundings, and adding n numbers in any order has an error of at most
 * n - 1 roundings of the sum of their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), which
 * is less than 1 here. */
static int is_right(double sum, int64_t largest, uint64_t count) {
    const double n = (double)count;
    return fabs(sum - n / (n + 1)) <= (n + 3) * 0x1p-53 && largest == (int64_t)(count / 3);
}

/* The number after "-n", 1000003 without arguments, or 0 if the arguments are something else. */
static uint64_t count_of(int argc, char **argv) {
    char *end;
    if (argc == 1)
        return 1000003;
    if (argc != 3 || strcmp(argv[1], "-n") != 0 || argv[2][0] < '0' || argv[2][0] > '9')
        return 0;
    const unsigned long long count = strtoull(argv[2], &end, 10);
    return *end != '\0' || count > UINT64_C(1) << 48 ? 0 : count;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const uint64_t count = count_of(argc, argv);
    if (count == 0) {
        if (rank == 0)
            fprintf(stderr, "usage: %s [-n COUNT]\nCOUNT: elements of all ranks together, from 1\n", argv[0]);
        MPI_Finalize();
        return 2;
    }

    part mine = {NULL, NULL, first_of(rank, ranks, count), 0};
    mine.elements = (size_t)(first_of(rank + 1, ranks, count) - mine.first);
    mine.x = allocate(mine.elements * sizeof *mine.x);
    for (size_t i = 0; i < mine.elements; ++i)
        mine.x[i] = element(mine.first + i, count);
    DPR(dpr_ctx_create(DPR_DEVICE_CPU, &mine.ctx)); /* the parts lie in host memory */

    double sum;
    int64_t largest;
    reduce_all(&mine, ranks, count, DPR_SUM, &sum);
    reduce_all(&mine, ranks, count, DPR_ARGMAX, &largest);

    const int same = same_everywhere(&sum) & same_everywhere(&largest); /* both are called on every rank */
    const int right = is_right(sum, largest, count);
    if (!right)
        fprintf(stderr, "wrong: rank %d has sum %.17g and argmax %lld\n", rank, sum, (long long)largest);
    if (rank == 0)
        printf("ranks: %d, sum: %.17g, argmax: %lld, %s\n", ranks, sum, (long long)largest,
               same ? "the same bits on all ranks" : "different bits on some ranks");
    dpr_ctx_destroy(mine.ctx);
    free(mine.x);
    MPI_Finalize();
    return same && right ? 0 : 1;
}
