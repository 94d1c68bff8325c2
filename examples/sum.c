#include <dpr.h>
#include <stdio.h>

int main(void) {
    const double x[] = {1, 2, -1, 8};
    double sum;

    if (dpr_reduce(x, &sum, 4, DPR_F64, DPR_SUM) != DPR_OK) {
        fprintf(stderr, "%s\n", dpr_last_error());
        return 1;
    }
    printf("sum: %g\n", sum);
    return 0;
}
