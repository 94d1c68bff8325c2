/* Reduces an array with an installed dpr. The argument is the version that it must be. */
#include <dpr.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const double x[] = {1, 2, 4};
    double sum = 0;
    dpr_status status = dpr_reduce(x, &sum, sizeof x / sizeof x[0], DPR_F64, DPR_SUM);
    if (status != DPR_OK) {
        fprintf(stderr, "%s: %s\n", dpr_status_name(status), dpr_last_error());
        return 1;
    }
    printf("dpr %s: the sum is %g\n", dpr_version(), sum);
    return !(argc == 2 && strcmp(dpr_version(), argv[1]) == 0 && sum == 7);
}
