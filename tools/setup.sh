# shellcheck shell=bash
# Sourced by run.sh, test.sh and .ci/run: installs what is missing and builds. All of it speaks on stderr, so that
# stdout is the command's own.

dpr_root=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dpr_packages=(cmake ninja-build gcc g++ pkg-config python3 libhwloc-dev libcjson-dev libpng-dev libgtest-dev)
# Tests from other languages, the example with MPI, plots of `dpr report` and a browser for its pages; the linters, which
# are of one version everywhere, because each formats a little differently; and the compiler of the fuzzers.
dpr_test_packages=(gfortran python3-cffi python3-numpy libopenmpi-dev openmpi-bin gnuplot-nox chromium
                   clang-format-14 clang-tidy-14 shellcheck clang-14 libclang-rt-14-dev)

dpr_say() { printf '%s\n' "$*" >&2; }

# Prints those of the packages given that are not installed.
dpr_missing_packages() {
    comm -13 <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | sort -u) \
             <(printf '%s\n' "$@" | sort -u)
}

# dpr_apt_get LOG ARGUMENT...: apt-get as root, without questions.
dpr_apt_get() {
    local log=$1 sudo=()
    shift
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q "$@" </dev/null >>"$log" 2>&1
}

# Whether this user can install packages; a sentence where not.
dpr_can_install() {
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        dpr_say "Missing packages: $*. Run this as root, install sudo, or install them yourself."
        return 1
    fi
}

# Installs the packages given; fails with one sentence and the end of apt-get's output.
dpr_install() {
    local log
    dpr_can_install "$@" || return
    dpr_say "Installing $*"
    log=$(mktemp)
    if ! { dpr_apt_get "$log" update && dpr_apt_get "$log" install --no-install-recommends "$@"; }; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        dpr_say "apt-get could not install: $*. Its last lines are above."
        return 1
    fi
    rm -f "$log"
}

# Installs what single tests need, where there are packages of it. Without it these tests are skipped, so this does not
# fail.
dpr_install_for_tests() {
    local missing package offered=()
    mapfile -t missing < <(dpr_missing_packages "${dpr_test_packages[@]}")
    [ ${#missing[@]} != 0 ] && dpr_can_install "${missing[@]}" || return 0
    [ -n "$(apt-cache pkgnames cmake)" ] || dpr_apt_get /dev/null update || true
    for package in "${missing[@]}"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            offered+=("$package")
        fi
    done
    [ ${#offered[@]} = 0 ] || dpr_install "${offered[@]}" || true
}

# dpr_setup build|test: what building and most tests need, and with `test` also what single tests need.
dpr_setup() {
    local missing
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        dpr_say "No apt-get here: going on with what is installed (needed: ${dpr_packages[*]}, or what they are called here)."
        return 0
    fi
    mapfile -t missing < <(dpr_missing_packages "${dpr_packages[@]}")
    [ ${#missing[@]} = 0 ] || dpr_install "${missing[@]}" || return
    [ "$1" != test ] || dpr_install_for_tests
}

# One sentence where there will be no GPU strategies.
dpr_say_without_nvcc() {
    local folder
    for folder in "${CUDA_PATH-}" "${CUDA_HOME-}" /usr/local/cuda; do
        [ ! -x "$folder/bin/nvcc" ] || return 0
    done
    if ! command -v nvcc >/dev/null && [ -z "${CUDACXX-}" ]; then
        dpr_say "No nvcc: building the CPU-only library. For the GPU, install NVIDIA's CUDA toolkit (12.5 or later) so" \
                "that nvcc is on PATH or in /usr/local/cuda/bin, and run this again."
    fi
}

# Shows on a terminal, until it is killed or this script has ended, how much of the build is done that writes to LOG, and how long it has taken.
dpr_show_progress() {
    local start=$SECONDS seconds steps
    while sleep 1 && kill -0 $$ 2>/dev/null; do
        seconds=$((SECONDS - start))
        steps=$(grep -o '^\[[0-9]*/[0-9]*\]' "$1" | tail -n 1 | tr -d '[]') || true
        printf '\r\033[K%s, %d:%02d' "${steps:-configuring}" $((seconds / 60)) $((seconds % 60)) >&2
    done
}

# dpr_build PRESET [TARGET]: configures and builds quietly; shows the output where it fails.
dpr_build() {
    local preset=$1 log progress='' failed=''
    mkdir -p "$dpr_root/build/$preset"
    log=$dpr_root/build/$preset/build.log
    [ -e "$dpr_root/build/$preset/build.ninja" ] || dpr_say "Building (preset $preset; the first time takes minutes)"
    : >>"$log"
    if [ -t 2 ]; then
        dpr_show_progress "$log" >/dev/null &
        progress=$!
    fi
    (
        cd "$dpr_root" || exit
        flock 9
        nice cmake --preset "$preset" && nice cmake --build --preset "$preset" -j "$(nproc)" ${2+--target "$2"}
    ) </dev/null >"$log" 2>&1 9>"$dpr_root/build/$preset/.lock" || failed=1
    if [ -n "$progress" ]; then
        kill "$progress" 2>/dev/null || true
        wait "$progress" 2>/dev/null || true
        printf '\r\033[K' >&2
    fi
    if [ -n "$failed" ]; then
        grep -v -e '^\[[0-9]*/[0-9]*\] Building' -e '^-- ' "$log" | tail -n 60 >&2
        dpr_say "The build failed; its whole output is in $log"
        return 1
    fi
}
