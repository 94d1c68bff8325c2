# Before project(): DPR_FUZZ takes Clang, whose libFuzzer drives the harnesses of tests/fuzz. CMAKE_C_COMPILER and
# CMAKE_CXX_COMPILER may name another one than the version that the linters have.

option(DPR_FUZZ "Build the fuzzers of tests/fuzz (needs Clang)" OFF)
if(DPR_FUZZ AND NOT CMAKE_C_COMPILER)
    find_program(DPR_CLANG NAMES clang-14 clang)
    find_program(DPR_CLANGXX NAMES clang++-14 clang++)
    mark_as_advanced(DPR_CLANG DPR_CLANGXX)
    if(NOT DPR_CLANG OR NOT DPR_CLANGXX)
        message(FATAL_ERROR "Clang was not found, and the fuzzers need it: install it with its runtime libraries "
                            "(Debian and Ubuntu: clang-14 libclang-rt-14-dev)")
    endif()
    set(CMAKE_C_COMPILER ${DPR_CLANG})
    set(CMAKE_CXX_COMPILER ${DPR_CLANGXX})
endif()
