#!/bin/sh
# Above src/backend nobody calls a kernel by its symbol: kernels are reached through the table of a
# backend, so that another device can take their place.
#
# usage: check_backend_door.sh PROJECT_ROOT
#
# Of src/backend/cpu the layers above include table/cpu.h alone, and name no function that another
# header of it declares.
set -eu
cd "$1"
above="src/tape src/ops src/diff src/optim src/inspect src/expr src/trace cli"
bad=$(mktemp)
kernels=$(mktemp)
trap 'rm -f "$bad" "$kernels"' EXIT

grep -rnE '#include "backend/cpu/' $above --include='*.[ch]' --include='*.inc' | grep -v '"backend/cpu/table/cpu\.h"' |
    sed 's|^\([^:]*:[0-9]*\):.*"\(.*\)".*|\1 includes \2; of src/backend/cpu include table/cpu.h alone|' >> "$bad" ||
    true

# Functions and tables that headers of the folder declare: "type cot__name(", "extern cot__name[".
find src/backend/cpu -name '*.h' ! -path src/backend/cpu/table/cpu.h | LC_ALL=C sort | xargs cat |
    grep -E '^(static inline|extern|void|bool|int|int64_t|size_t|double|const|cot__)' |
    sed -nE 's/^[^(=[]*[ *](cot__[a-z0-9_]+)[([].*/\1/p' | sort -u > "$kernels"
count=$(wc -l < "$kernels")
[ "$count" -ge 60 ] || echo "only $count kernels found in src/backend/cpu: does this script still read them?" >> "$bad"

pattern=$(tr '\n' '|' < "$kernels" | sed 's/|$//')
grep -rnwE "$pattern" $above --include='*.[ch]' --include='*.inc' |
    sed 's|^\([^:]*:[0-9]*\):.*|\1 names a kernel of the CPU; call it through t->backend (src/backend/backend.h)|' \
        >> "$bad" || true

head -40 "$bad"
[ ! -s "$bad" ]
