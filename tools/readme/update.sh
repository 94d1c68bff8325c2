#!/usr/bin/env bash
# Puts the generated tables into README.md, between "<!-- table: NAME -->" or "<!-- table: NAME FILE -->" and
# "<!-- end -->". FILE is relative to the project.
#
#   update.sh TABLES_PROGRAM [--check]
#
# With --check README.md is left alone, and the exit code is 1 if it is out of date.
set -euo pipefail

tables=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readme=$root/README.md
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

inside=0
while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line =~ ^'<!-- table: '([a-z]+)( ([^ ]+))?' -->'$ ]]; then
        printf '%s\n' "$line"
        "$tables" "${BASH_REMATCH[1]}" ${BASH_REMATCH[3]:+"$root/${BASH_REMATCH[3]}"}
        inside=1
    elif [ "$line" = '<!-- end -->' ]; then
        inside=0
    fi
    [ "$inside" = 1 ] || printf '%s\n' "$line"
done <"$readme" >"$fresh"

if [ "${2:-}" = --check ]; then
    diff -u "$readme" "$fresh" || {
        echo "README.md is out of date: run tools/readme/update.sh $tables" >&2
        exit 1
    }
else
    cat "$fresh" >"$readme"
fi
