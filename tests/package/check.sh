#!/usr/bin/env bash
# check.sh CHECK PREFIX: one check of an installed copy in PREFIX. CHECK is a function below; `install` comes first.
# In the environment: BUILD (the build tree), CMAKE, GENERATOR, CC, CXX, LIBDIR and DOCDIR (relative to PREFIX) and
# VERSION; of a build with CUDA also NVCC, with its options for the devices that the build is for.
set -euo pipefail
here=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
prefix=$2
lib=$prefix/$LIBDIR/libdpr.so
c11=(-std=c11 -pedantic -Wall -Wextra -Werror)
cxx17=(-std=c++17 -pedantic -Wall -Wextra -Werror)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The shell divides what $(pkg-config) gives at spaces, so pkg-config sees the copy under a name without any.
ln -s "$prefix" "$work/installed"
pc_path=$work/installed/$LIBDIR/pkgconfig
case $VERSION in
0.*) soname=libdpr.so.${VERSION%.*} ;;
*) soname=libdpr.so.${VERSION%%.*} ;;
esac

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# Installed elsewhere and moved here, so that what names the place of installation does not work.
check_install() {
    rm -rf "$prefix" "$prefix.first"
    "$CMAKE" --install "$BUILD" --prefix "$prefix.first"
    mv "$prefix.first" "$prefix"
    ! grep -rIn -e "$prefix" -e "$BUILD" "$prefix" || fail "installed text files name the build tree"
    cmp "$here/../../LICENSE" "$prefix/$DOCDIR/LICENSE" || fail "the licence is not installed"
}

# configure_library SOURCE OPTION...: a build of SOURCE, which is the library or contains it, without CUDA and tests, in
# $work/build.
configure_library() {
    "$CMAKE" -S "$1" -B "$work/build" -G "$GENERATOR" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
        -DDPR_CUDA=OFF -DDPR_BUILD_TESTS=OFF "${@:2}" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
}

# optimised SOURCE ARGUMENT...: whether a build of SOURCE optimises the files with a function for each operation and type.
optimised() {
    local file
    rm -rf "$work/build"
    configure_library "$@" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    for file in many_base many_avx2 segments serial simd_base simd_avx2 simd_avx512; do
        ! grep '"command".*host/cpu/'"$file"'\.c' "$work/build/compile_commands.json" | grep -v -e ' -O[12] ' ||
            fail "$file.c is compiled without optimisation"
    done
    grep -q 'host/cpu/simd_base\.c' "$work/build/compile_commands.json" || fail "there are no commands"
}

# GCC takes 12 GB for one of these files otherwise: in a debug build, and within a project that has no build type.
check_debug_build() {
    optimised "$here/../.." -DCMAKE_BUILD_TYPE=Debug
    optimised "$here/../.." -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-g -O2"
    mkdir "$work/parent"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(parent C)' \
        "add_subdirectory(\"$here/../..\" dpr)" >"$work/parent/CMakeLists.txt"
    optimised "$work/parent"
}

check_header_c11() {
    echo '#include <dpr.h>' >"$work/header.c"
    "$CC" "${c11[@]}" -I"$prefix/include" -fsyntax-only "$work/header.c"
}

check_header_cxx17() {
    echo '#include <dpr.h>' >"$work/header.cpp"
    "$CXX" "${cxx17[@]}" -I"$prefix/include" -fsyntax-only "$work/header.cpp"
}

check_header_plain() {
    printf '#include <%s>\n' stddef.h stdint.h dpr/plain.h >"$work/header.c"
    "$CC" "${c11[@]}" -I"$prefix/include" -fsyntax-only "$work/header.c"
    ! grep -n '^[[:space:]]*#' "$prefix/include/dpr/plain.h" || fail "dpr/plain.h has directives"
}

# declared HEADER: the functions that an installed header declares.
declared() {
    "$CC" -E -P -I"$prefix/include" -x c - <<<"#include <$1>" | grep -oE '\bdpr_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u
}

# What is exported is what dpr.h declares, no more and no less, and dpr/plain.h declares the same.
check_exports() {
    declared dpr.h >"$work/declared"
    declared dpr/plain.h >"$work/plain"
    nm -D --defined-only --format=posix "$lib" | awk '$2 != "A" { sub(/@.*/, "", $1); print $1 }' | sort -u >"$work/exported"
    grep -qx dpr_reduce "$work/declared" || fail "no declarations found in dpr.h"
    diff "$work/declared" "$work/plain" || fail "dpr.h declares what is marked <, dpr/plain.h what is marked >"
    diff "$work/declared" "$work/exported" || fail "dpr.h declares what is marked <, libdpr.so exports what is marked >"
}

# Loads where there is no driver and no CUDA toolkit, and from a C program without a C++ library.
check_needed() {
    local needed entry
    [ "$(readelf -d "$lib" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')" = "$soname" ] || fail "wrong soname"
    needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    for entry in $needed; do
        case $entry in
        libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux* | libgcc_s.so.* | libhwloc.so.*) ;;
        *) fail "libdpr.so needs $entry" ;;
        esac
    done
}

# pc FLAG...: pkg-config on the installed copy.
pc() { PKG_CONFIG_PATH=$pc_path pkg-config "$@" dpr; }

check_pkgconfig_shared() {
    [ "$(pc --modversion)" = "$VERSION" ] || fail "dpr.pc has version $(pc --modversion), not $VERSION"
    # shellcheck disable=SC2046
    "$CC" "${c11[@]}" $(pc --cflags) "$here/consumer/sum.c" -o "$work/sum" $(pc --libs)
    ! "$work/sum" 2>/dev/null || fail "the program does not need $soname"
    LD_LIBRARY_PATH=$prefix/$LIBDIR "$work/sum" "$VERSION"
}

check_pkgconfig_static() {
    mkdir "$work/lib"
    ln -s "$prefix/$LIBDIR/libdpr.a" "$work/lib"
    # shellcheck disable=SC2046
    "$CC" "${c11[@]}" $(pc --cflags) "$here/consumer/sum.c" -o "$work/sum" -L"$work/lib" $(pc --static --libs)
    ! readelf -d "$work/sum" | grep -E 'NEEDED.*(libdpr|libcuda|libstdc)' || fail "the program is not linked statically"
    "$work/sum" "$VERSION"
}

# With hwloc's static library as well, where that and what it needs are installed.
check_pkgconfig_static_hwloc() {
    local hwloc
    hwloc=$(pkg-config --variable=libdir hwloc)/libhwloc.a
    [ -e "$hwloc" ] || skip "there is no static hwloc"
    echo 'int main(void) { return 0; }' >"$work/empty.c"
    # shellcheck disable=SC2046
    "$CC" "$work/empty.c" -o "$work/empty" $(pkg-config --static --libs hwloc) ||
        skip "libraries are not installed that hwloc.pc names for a static hwloc"
    mkdir "$work/lib"
    ln -s "$prefix/$LIBDIR/libdpr.a" "$hwloc" "$work/lib"
    # shellcheck disable=SC2046
    "$CC" "${c11[@]}" $(pc --cflags) "$here/consumer/sum.c" -o "$work/sum" -L"$work/lib" $(pc --static --libs)
    ! readelf -d "$work/sum" | grep -E 'NEEDED.*(libdpr|libhwloc)' || fail "the program is not linked statically"
    "$work/sum" "$VERSION"
}

# finds_folders LIB INCLUDE: whether dpr.pc in LIB names these two folders, which may be relative to the current one.
finds_folders() {
    local flags
    pc_path=$(realpath "$1")/pkgconfig
    eval "flags=($(pc --cflags --libs))"
    [ "${flags[0]#-I}/dpr.h" -ef "$2/dpr.h" ] || fail "the headers are in $2, not in ${flags[0]#-I}"
    [ "${flags[1]#-L}/libdpr.so" -ef "$1/libdpr.so" ] || fail "the libraries are in $1, not in ${flags[1]#-L}"
}

# dpr.pc finds the folders of headers and libraries, each of which may be relative to the prefix or absolute.
check_pkgconfig_folders() {
    local lib include prefix="$work/a prefix"
    mkdir "$work/build"
    cp -a "$BUILD/include" "$BUILD"/libdpr.* "$work/build"
    for lib in lib/of "$work/of/lib"; do
        for include in include/of "$work/of/include"; do
            rm -rf "$prefix" "$work/of"
            configure_library "$here/../.." -DDPR_BUILD_TOOLS=OFF -DDPR_BUILD_EXAMPLES=OFF \
                -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$lib" -DCMAKE_INSTALL_INCLUDEDIR="$include"
            "$CMAKE" --install "$work/build"
            (cd "$prefix" && finds_folders "$lib" "$include")
        done
    done
}

# configure SOURCE OPTION...: a project that uses the installed copy, in $work/build.
configure() {
    "$CMAKE" -G "$GENERATOR" -S "$1" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
        -DCMAKE_CXX_COMPILER="$CXX" "${@:2}"
}

check_cmake_consumer() {
    configure "$here/consumer" -DDPR_EXPECTED_VERSION="$VERSION"
    "$CMAKE" --build "$work/build"
    local program
    for program in c_shared c_static cxx_shared cxx_static; do
        "$work/build/$program" "$VERSION"
    done
    "$work/build/recursion"
}

# A project without C and C++ has the shared library. An unknown component is named.
check_cmake_components() {
    command -v gfortran >/dev/null || skip "there is no gfortran"
    mkdir "$work/fortran"
    # shellcheck disable=SC2016 # CMake's variable
    printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(fortran LANGUAGES Fortran)' \
        'find_package(dpr REQUIRED COMPONENTS shared ${MORE})' 'if(NOT TARGET dpr::dpr OR TARGET dpr::static)' \
        'message(FATAL_ERROR "other libraries")' 'endif()' >"$work/fortran/CMakeLists.txt"
    configure "$work/fortran"
    ! configure "$work/fortran" -DMORE=sharde >"$work/log" 2>&1 || fail "a component sharde was found"
    grep -q 'none of the name "sharde"' "$work/log" || fail "$(cat "$work/log")"
}

# 64 registers are the most that `level` and `naive` can call.
check_recursion_cmake() {
    configure "$here/consumer" -DDPR_EXPECTED_VERSION="$VERSION" -DCONSUMER_CUDA=ON -DCMAKE_CUDA_STANDARD=17 \
        -DCMAKE_CUDA_COMPILER="${NVCC%% *}" -DCMAKE_CUDA_ARCHITECTURES=OFF \
        -DCMAKE_CUDA_FLAGS="${NVCC#* } -maxrregcount=64" -DCMAKE_CUDA_SEPARABLE_COMPILATION=ON
    "$CMAKE" --build "$work/build" --target recursion
    "$work/build/recursion"
}

check_recursion() {
    # shellcheck disable=SC2046
    "$CXX" "${cxx17[@]}" $(pc --cflags) -x c++ "$here/consumer/recursion.cu" -x none -o "$work/recursion" $(pc --libs)
    LD_LIBRARY_PATH=$prefix/$LIBDIR "$work/recursion"
}

check_recursion_nvcc() {
    local options
    for options in "" "-rdc=true -maxrregcount=64"; do
        # shellcheck disable=SC2046,SC2086
        $NVCC -std=c++17 $options -Werror=all-warnings $(pc --cflags) "$here/consumer/recursion.cu" \
            -o "$work/recursion" $(pc --libs)
        LD_LIBRARY_PATH=$prefix/$LIBDIR "$work/recursion"
    done
}

# The files of the tutorial, in $work: a code block is a file if the text before it ends with "`NAME`:".
tutorial=$here/../../dp/recursion/tutorial.md
tutorial_files() {
    awk -v folder="$work/" '
        /^```./ { inside = 1; next }
        /^```/ { inside = 0; file = ""; next }
        inside && file { print >(folder file) }
        !inside && NF { n = split($0, part, "`"); file = part[n] == ":" ? part[n - 1] : "" }' "$tutorial"
}

# tutorial_line NAME COMMAND...: runs the tutorial's line that begins with NAME, with COMMAND instead, in $work.
tutorial_line() {
    local arguments
    arguments=$(sed -n "s/^$1 //p" "$tutorial")
    [ "$arguments" ] || fail "the tutorial has no line that begins with $1"
    (cd "$work" && export PKG_CONFIG_PATH="$pc_path" && eval "\"\${@:2}\" $arguments")
}

# tutorial_is_right PROGRAM
tutorial_is_right() {
    LD_LIBRARY_PATH=$prefix/$LIBDIR "$1" | tee "$work/output"
    grep -q '^the sum is 499999500000, by engine [a-z]' "$work/output" || fail "the tutorial's program gives another sum"
}

check_tutorial() {
    tutorial_files
    tutorial_line gcc "$CC" "${c11[@]}"
    tutorial_line g++ "$CXX" "${cxx17[@]}"
    tutorial_is_right "$work/sum_tree"
}

check_tutorial_nvcc() {
    tutorial_files
    # shellcheck disable=SC2086
    tutorial_line nvcc $NVCC -Werror=all-warnings
    tutorial_is_right "$work/sum_tree"
}

check_tutorial_cmake() {
    tutorial_files
    configure "$work" -DCMAKE_CUDA_COMPILER="${NVCC%% *}" -DCMAKE_CUDA_ARCHITECTURES=OFF -DCMAKE_CUDA_FLAGS="${NVCC#* }"
    "$CMAKE" --build "$work/build"
    tutorial_is_right "$work/build/sum_tree"
}

check_kernels() {
    # shellcheck disable=SC2046,SC2086
    $NVCC -std=c++17 -rdc=true -maxrregcount=64 -Werror=all-warnings $(pc --cflags) "$here/consumer/rows.cu" \
        -o "$work/rows" $(pc --libs) -lcudadevrt
    LD_LIBRARY_PATH=$prefix/$LIBDIR "$work/rows"
}

"check_$1"
