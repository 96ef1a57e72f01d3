#!/usr/bin/env bash
# Runs the benchmarks that were built, all or those named: tools/bench.sh [NAME...]. BUILD chooses another build folder.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${BUILD:-build}/bench
status=0
ran=0
for program in "$folder"/* "$folder"/*/*; do
    if [ ! -f "$program" ] || [ ! -x "$program" ] || [[ $program == *CMakeFiles* ]]; then continue; fi
    name=$(basename "$program")
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    printf '\n== %s\n' "$name"
    ran=$((ran + 1))
    "$program" || { status=1; echo "bench: $name failed" >&2; }
done
[ "$ran" -gt 0 ] || { echo "bench: nothing to run in $folder" >&2; exit 1; }
exit $status
