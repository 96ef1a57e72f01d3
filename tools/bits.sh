#!/usr/bin/env bash
# tools/bits.sh: do all processors give the same bits? Builds the library for this machine (what
# `make test` has built is taken as it is), for AArch64 and for WebAssembly, and prints the hashes
# of many results by family, those that are expected first. A dash: the same. Fails where one is
# another.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

build() { # build FOLDER OPTIONS…
    local folder=$1
    shift
    cmake -B "$folder" "$@" > "$out/log" && cmake --build "$folder" -j "$jobs" --target bits_hash > "$out/log" 2>&1 ||
        { cat "$out/log"; exit 1; }
}
library=(-S . -DCMAKE_BUILD_TYPE=Release -DCOT_BUILD_TESTS=OFF -DCOT_BUILD_BITS=ON -DCOT_BUILD_EXAMPLES=OFF
    -DCOT_BUILD_BENCH=OFF -DCOT_WERROR="${WERROR:-OFF}")

names=()
hash() { # hash NAME COMMAND…: the hashes of one platform
    names+=("$1")
    "${@:2}" --families > "$out/$1"
}

native=build-bits
# what `make test` has built is compiled the same way
if grep -qs '^CMAKE_BUILD_TYPE:STRING=Release$' build/CMakeCache.txt &&
    grep -q '^COT_BUILD_TESTS:BOOL=ON$' build/CMakeCache.txt; then
    cmake --build build -j "$jobs" --target bits_hash > "$out/log" 2>&1 || { cat "$out/log"; exit 1; }
    native=build
else
    build $native "${library[@]}"
fi
native=$native/tests/bits/bits_hash
if [ "$(uname -m)" = x86_64 ]; then
    for isa in avx512 avx2; do # what this processor has not gives the best it has
        hash $isa env COTANGENT_ISA=$isa $native
    done
    hash sse2 env COTANGENT_ISA=sse2 COTANGENT_BITS=portable $native
else
    hash native $native
fi
build build-aarch64 "${library[@]}" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake"
hash neon qemu-aarch64 -L /usr/aarch64-linux-gnu build-aarch64/tests/bits/bits_hash
build build-web -S web -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/wasi.cmake" -DCMAKE_BUILD_TYPE=None \
    -DCOT_WERROR="${WERROR:-OFF}"
hash wasm node --no-warnings tests/bits/run_wasi.mjs build-web/bits_hash.wasm

# The last word of a line is a hash, those before it its name.
awk -v names="${names[*]}" '
    FNR == 1 { file++ }
    { h = $NF; sub(/ [^ ]*$/, ""); if (file == 1) { family[++n] = $0; want[$0] = h } else got[file, $0] = h }
    END {
        count = split(names, name, " ")
        printf "%-20s %-16s", "", "expected"
        for (k = 1; k <= count; k++) printf "  %-16s", name[k]
        printf "\n"
        for (i = 1; i <= n; i++) {
            printf "%-20s %s", family[i], want[family[i]]
            for (k = 1; k <= count; k++) {
                same = got[k + 1, family[i]] == want[family[i]]
                bad += !same
                printf "  %-16s", same ? "-" : got[k + 1, family[i]]
            }
            printf "\n"
        }
        exit bad > 0
    }' tests/bits/expected.txt "${names[@]/#/$out/}"
