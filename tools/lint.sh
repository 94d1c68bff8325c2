#!/usr/bin/env bash
# tools/lint.sh format       reports what clang-format would change in any source file
# tools/lint.sh reformat     changes it
# tools/lint.sh tidy BUILD [FOLDER]
#                            clang-tidy on the C files, of the folder, that BUILD/compile_commands.json knows
# tools/lint.sh shell        shellcheck on the scripts
#
# Exit code 0: clean. 1: findings, on stdout. 77: the linter is not installed in the version that the sources follow.
set -euo pipefail
CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.."
clang_version=14

# Prints the name of the LLVM tool in that version.
find_tool() {
    local name
    for name in "$1-$clang_version" "$1"; do
        if "$name" --version 2>/dev/null | grep -q "version $clang_version\."; then
            echo "$name"
            return
        fi
    done
    echo "skipped: $1 $clang_version is not installed" >&2
    exit 77
}

# find's tests in, NUL-terminated names out. A folder without files does not exist in a clone.
sources() {
    local folder folders=()
    for folder in core coop dp host tests examples tools; do
        [ ! -d "$folder" ] || folders+=("$folder")
    done
    find "${folders[@]}" -type f \( "$@" \) -print0 | sort -z
}

clang_format() {
    local tool
    tool=$(find_tool clang-format)
    sources -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' |
        xargs -0 "$tool" "$@" 2>&1
}

clang_tidy() {
    local tool database=$1 file known=()
    tool=$(find_tool clang-tidy)
    while IFS= read -r -d '' file; do
        if grep -qF "\"file\": \"$PWD/$file\"" "$database/compile_commands.json"; then
            known+=("$file")
        fi
    done < <(sources -path "${2:+$2/}*" -name '*.c')
    if [ ${#known[@]} = 0 ]; then
        echo "$database/compile_commands.json has no C file${2:+ of $2}"
        return 1
    fi
    printf '%s\0' "${known[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tool" --quiet -p "$database" 2>/dev/null
}

case ${1-} in
format) clang_format --dry-run -Werror ;;
reformat) clang_format -i ;;
tidy) clang_tidy "${2:?tools/lint.sh tidy needs a build directory}" "${3-}" ;;
shell)
    command -v shellcheck >/dev/null || { echo "skipped: shellcheck is not installed" >&2; exit 77; }
    shellcheck -x tools/*.sh tests/*/*.sh .ci/run
    ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' tools/lint.sh >&2
    exit 2
    ;;
esac
