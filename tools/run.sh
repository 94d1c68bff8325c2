#!/usr/bin/env bash
# Builds the command dpr, with all the set-up that takes, and runs it.
#
#   tools/run.sh                 reduces the series in examples/data, then 64 MiB of generated data by every strategy
#   tools/run.sh ARGUMENT...     runs: dpr ARGUMENT...
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

dpr_setup build
dpr_say_without_nvcc
dpr_build dev tools/dpr
dpr=$dpr_root/build/dev/tools/dpr

if [ $# -gt 0 ]; then
    exec "$dpr" "$@"
fi

# Shows a command and runs it.
show() {
    printf '\n$ dpr'
    printf ' %s' "$@"
    printf '\n'
    "$dpr" "$@"
}

cd "$dpr_root"
printf '\n%s\n' "count: values that are neither zero nor NaN (three years had no sunspots, and the CO2 series has gaps)"
show reduce examples/data/*.npy --op sum,min,argmax,count --nan ignore
show plan --op sum --dtype f32 -n 16777216
show reduce --generate 64MiB --dtype f32 --op sum --strategy all
