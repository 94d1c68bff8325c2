#!/usr/bin/env bash
# Builds everything, with all the set-up that takes, and passes the tests. Arguments go to ctest: tools/test.sh -R cpu
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

dpr_setup test
dpr_say_without_nvcc
dpr_build dev
cd "$dpr_root"
dpr_say "Set up and built in $SECONDS s. libdpr.so: $(du -hL build/dev/libdpr.so | cut -f1), build/dev: $(du -sh build/dev | cut -f1)."
exec ctest --preset dev -j "$(nproc)" "$@"
