#!/usr/bin/env bash
# tools/setup.sh build|test|test-peers|ci|bits|web|test-web|map: makes sure that what this level
# needs is there, installing missing Debian packages where it may. Calls nothing slow when nothing
# is missing.
#   build     the library and the examples
#   test      the tests too, with gcc's sanitizers
#   test-peers  Python too, with virtual environments
#   ci        clang as well, with its sanitizers
#   bits      WebAssembly, and a compiler and an emulator for AArch64
#   web       WebAssembly for the page: clang, lld, wasi-libc
#   test-web  and two browsers to test it in
#   map       graphviz, to draw docs/map.svg
set -euo pipefail
level=${1:-build}

has() { command -v "$1" > /dev/null 2>&1; }
has_firefox() { has firefox-esr || has firefox; }
for_web() { echo "$1" | clang --target=wasm32-wasi -x c -fsyntax-only - 2> /dev/null; }
runtime_for_web() { [ -e "$(clang --target=wasm32-wasi --rtlib=compiler-rt -print-libgcc-file-name 2> /dev/null)" ]; }
sanitizes_with_clang() {
    echo 'int main(void) { return 0; }' | clang -fsanitize=undefined -x c -o /dev/null - 2> /dev/null
}
exports_for_arm() {
    has arm-none-eabi-gcc && echo '#include <math.h>' | arm-none-eabi-gcc -x c -fsyntax-only - 2> /dev/null
}
compiles() { echo "$1" | ${CC:-cc} -x c -fsyntax-only - 2> /dev/null; }

missing=()
need() { # need PACKAGE CHECK...: remembers the package if the check fails
    local package=$1
    shift
    "$@" || missing+=("$package")
}

need cmake has cmake
need make has make
if [ -n "${CC:-}" ]; then
    has "${CC%% *}" || { echo "setup: CC is '$CC', which is not installed" >&2; exit 1; }
else
    need gcc has cc
fi
need libc6-dev compiles '#include <math.h>'
case $level in
build) ;;
map) need graphviz has dot ;;
test | test-peers | ci)
    need libcmocka-dev compiles '#include <stdarg.h>
        #include <stddef.h>
        #include <setjmp.h>
        #include <stdint.h>
        #include <cmocka.h>'
    need pkg-config has pkg-config
    need g++ has g++
    need binutils has readelf
    need diffutils has diff
    # exported C for a bare 32-bit ARM, and something that runs it
    need gcc-arm-none-eabi has arm-none-eabi-gcc
    need libnewlib-arm-none-eabi exports_for_arm
    need qemu-user has qemu-arm
    # localedef makes a locale with a decimal comma of it
    need locales test -e /usr/share/i18n/locales/POSIX
    if [ "$level" = test-peers ]; then
        need python3 has python3
        need python3-venv python3 -c 'import ensurepip'
    fi
    if [ "$level" = ci ]; then
        need clang has clang
        need libclang-rt-dev sanitizes_with_clang
    fi
    ;;
bits | web | test-web)
    need clang has clang
    need lld has wasm-ld
    need wasi-libc for_web '#include <stdlib.h>'
    need libclang-rt-dev-wasm32 runtime_for_web
    need gzip has gzip
    if [ "$level" = bits ]; then
        need gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/math.h
        need qemu-user has qemu-aarch64
        need nodejs has node
    fi
    if [ "$level" = test-web ]; then
        need chromium has chromium
        need chromium-driver has chromedriver
        need firefox-esr has_firefox
        need python3 has python3
    fi
    ;;
*) echo "usage: tools/setup.sh build|test|test-peers|ci|bits|web|test-web|map" >&2; exit 2 ;;
esac

[ ${#missing[@]} -gt 0 ] || exit 0

echo "setup: missing: ${missing[*]}"
install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ! has apt-get; then
    echo "setup: no apt-get here; please install what those Debian packages hold, then try again" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
    if has sudo && sudo -n true 2> /dev/null; then
        as_root=(sudo -n)
    else
        echo "setup: please run this, then try again:" >&2
        echo "    sudo apt-get update && sudo ${install[*]}" >&2
        exit 1
    fi
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@"; }
echo "setup: ${install[*]}"
if ! apt "${install[@]}"; then
    echo "setup: trying again after apt-get update"
    apt apt-get update
    apt "${install[@]}"
fi
