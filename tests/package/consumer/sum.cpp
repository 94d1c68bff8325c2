// Reduces an array with an installed dpr from C++. The argument is the version that it must be.
#include <dpr.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    const std::vector<double> x = {1, 2, 4};
    double sum = 0;
    if (dpr_reduce(x.data(), &sum, x.size(), DPR_F64, DPR_SUM) != DPR_OK) {
        std::fprintf(stderr, "%s\n", dpr_last_error());
        return 1;
    }
    std::printf("dpr %s: the sum is %g\n", dpr_version(), sum);
    return !(argc == 2 && std::string(dpr_version()) == argv[1] && sum == 7);
}
