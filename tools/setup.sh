#!/usr/bin/env bash
# tools/setup.sh build|test|ci: makes sure that what this level needs is there, installing missing Debian packages where it
# may. Calls nothing slow when nothing is missing.
#   build  the library and the examples
#   test   the tests too, with gcc's sanitizers
#   ci     clang as well
set -euo pipefail
level=${1:-build}

has() { command -v "$1" > /dev/null 2>&1; }
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
test | ci)
    need libcmocka-dev compiles '#include <stdarg.h>
        #include <stddef.h>
        #include <setjmp.h>
        #include <stdint.h>
        #include <cmocka.h>'
    need pkg-config has pkg-config
    need g++ has g++
    need binutils has readelf
    need diffutils has diff
    [ "$level" = test ] || need clang has clang
    ;;
*) echo "usage: tools/setup.sh build|test|ci" >&2; exit 2 ;;
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
