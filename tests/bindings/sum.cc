// A sum and the index of the greatest element from C++17. Exit code 0: both are right.
#include <dpr.h>

#include <cstdint>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

namespace {

int failed = 0;

void expect(bool right, const char *what) {
    if (right)
        return;
    std::cerr << "FAILED: " << what << ": " << dpr_last_error() << "\n";
    failed = 1;
}

} // namespace

int main() {
    std::vector<double> x(1000);
    std::iota(x.begin(), x.end(), 1);
    double sum = 0;
    expect(dpr_reduce(x.data(), &sum, x.size(), DPR_F64, DPR_SUM) == DPR_OK && sum == 500500, "the sum");

    const std::vector<float> y = {3, 1, 4, 1, 5, 9, 2, 6};
    std::int64_t where = -1;
    expect(dpr_reduce(y.data(), &where, y.size(), DPR_F32, DPR_ARGMAX) == DPR_OK && where == 5, "the argmax");

    expect(dpr_reduce(y.data(), nullptr, y.size(), DPR_F32, DPR_ARGMAX) == DPR_ERR_NULL_POINTER
               && std::string(dpr_last_error()).find("out is NULL") != std::string::npos,
           "the sentence of an error");
    std::cout << "sum " << sum << ", greatest at " << where << "\n";
    return failed;
}
