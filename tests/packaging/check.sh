#!/bin/sh
# check.sh WHAT STAGE: one packaging check. `install` fills STAGE/prefix, the others look at it.
# Set by ctest: CMAKE, CC, BUILD (the build tree), LIBDIR (relative to the prefix).
set -eu
unset DESTDIR
what=$1
stage=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=$stage/prefix
said=$stage/said-$what # checks run side by side
libdir=$prefix/$LIBDIR
library=$libdir/libcotangent.so
export PKG_CONFIG_PATH="$libdir/pkgconfig"

say_fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# run PROGRAM with nothing but the installed shared library to find
run() { LD_LIBRARY_PATH=$libdir "$@"; }

# compile COMPILER STANDARD SOURCE PROGRAM: builds and runs it with pkg-config's flags, against the
# shared and the static library. The header must pass a strict user's warnings: -isystem would hide
# them, -I does not.
compile() {
    strict="-std=$2 -Wall -Wextra -Wpedantic -Wshadow -Werror"
    echo "-- $1 $strict $(basename "$3"), shared"
    "$1" $strict $(pkg-config --cflags cotangent) "$3" -o "$4" $(pkg-config --libs cotangent) -lm
    run "$4"
    readelf -d "$4" | grep -q 'NEEDED.*libcotangent' || say_fail "$4 does not use the shared library"
    echo "-- $1 $strict $(basename "$3"), static"
    "$1" $strict $(pkg-config --cflags cotangent) "$3" -o "$4-static" \
        $(pkg-config --static --libs cotangent | sed 's/-lcotangent/-l:libcotangent.a/')
    "$4-static"
    if readelf -d "$4-static" | grep 'NEEDED.*libcotangent'; then say_fail "$4-static uses the shared library"; fi
}

skip() { # ctest knows 77
    echo "SKIPPED: $*"
    exit 77
}

# configure FOLDER COMPILER OPTION...: the library alone, as users configure it
configure() {
    folder=$1 compiler=$2
    shift 2
    "$CMAKE" -S "$root" -B "$folder" -DCMAKE_C_COMPILER="$compiler" -DCOT_BUILD_TESTS=OFF -DCOT_BUILD_EXAMPLES=OFF \
        -DCOT_BUILD_BENCH=OFF "$@" > "$said" || { cat "$said"; say_fail "it cannot be configured"; }
}

case $what in
install) # installed in one place, moved to another: nothing in it may know where it was
    rm -rf "$stage"
    mkdir -p "$stage"
    "$CMAKE" --install "$BUILD" --prefix "$stage/before"
    mv "$stage/before" "$prefix"
    if grep -rIl "$stage/before" "$prefix"; then say_fail "these files hold the path they were installed to"; fi
    ;;
pkg_config)
    pkg-config --validate cotangent
    pkg-config --modversion cotangent
    compile "$CC" c11 "$here/consumer.c" "$stage/c"
    ;;
find_package)
    rm -rf "$stage/find_package"
    "$CMAKE" -S "$here/find_package" -B "$stage/find_package" -DCMAKE_C_COMPILER="$CC" -DCMAKE_PREFIX_PATH="$prefix" \
        -DVERSION="$(pkg-config --modversion cotangent)"
    "$CMAKE" --build "$stage/find_package"
    run "$stage/find_package/consumer"
    "$stage/find_package/consumer_static"
    ;;
# a program without any shared library: the linker has nothing to say, and no LAPACK is missed
static)
    if nm "$libdir/libcotangent.a" 2> /dev/null | grep -w dlopen; then say_fail "the static library asks for dlopen"; fi
    nothing='int main(void) { return 0; }'
    echo "$nothing" | "$CC" -static -x c - -o "$stage/nothing" 2> /dev/null || skip "no static libc is installed"
    "$CC" -std=c11 -static $(pkg-config --cflags cotangent) "$here/static.c" -o "$stage/all-static" \
        $(pkg-config --static --libs cotangent) > "$said" 2>&1 && linked=yes || linked=no
    cat "$said"
    [ $linked = yes ] || say_fail "it cannot be linked -static"
    [ ! -s "$said" ] || say_fail "linking -static says something"
    if readelf -d "$stage/all-static" | grep NEEDED; then say_fail "it needs shared libraries"; fi
    "$stage/all-static"
    COTANGENT_LAPACK=liblapack.so.3 "$stage/all-static"
    ;;
# lapack.c, zlib.c and native/load.c alone load libraries, and nothing is built from the first with
# COT_LAPACK_AT_RUN_TIME=OFF
without_lapack)
    rm -rf "$stage/without_lapack"
    for choice in ON OFF; do
        configure "$stage/without_lapack" "$CC" -DCOT_LAPACK_AT_RUN_TIME=$choice -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
        used=$(grep -c '"file".*/lapack\.c"' "$stage/without_lapack/compile_commands.json") || true
        echo "COT_LAPACK_AT_RUN_TIME=$choice: $used of lapack.c"
        [ "$used" = "$([ $choice = ON ] && echo 1 || echo 0)" ] || say_fail "that is wrong"
    done
    loaders=$(grep -rlE 'dlfcn\.h|dlopen *\(' "$root/src" "$root/cli" | LC_ALL=C sort | tr '\n' ' ')
    [ "$loaders" = "$root/src/backend/cpu/linalg/lapack.c $root/src/data/file/zlib.c $root/src/native/load.c " ] ||
        say_fail "these load libraries: $loaders"
    ;;
musl) # its loader may not know packed relocations: a shared library that has them crashes there
    command -v musl-gcc > /dev/null || skip "musl-gcc is not installed"
    rm -rf "$stage/musl"
    configure "$stage/musl" musl-gcc -G "Unix Makefiles"
    link=$stage/musl/CMakeFiles/cotangent.dir/link.txt
    grep -q musl-gcc "$link" || say_fail "this is not how the shared library is linked: $(cat "$link")"
    if grep -q pack-relative-relocs "$link"; then say_fail "the shared library has packed relocations"; fi
    ;;
cxx)
    found=no
    for cxx in g++ clang++; do
        if command -v "$cxx" > /dev/null; then
            found=yes
            compile "$cxx" c++11 "$here/consumer.cpp" "$stage/cxx-$cxx"
        fi
    done
    [ $found = yes ] || say_fail "neither g++ nor clang++ is installed"
    ;;
# every macro is used, with every warning that users may have on, in every C and C++ there is; any
# header may come first
headers)
    headers=$(pkg-config --variable=includedir cotangent)
    names='s/^ *#define (COT_[A-Z][A-Z_]*|cot_[a-z0-9_]+)[( ].*/\1/p'
    for macro in $(sed -nE "$names" "$headers/cotangent.h" "$headers/cotangent_transform.h" \
        "$headers/cotangent_macros.h" | sort -u); do
        grep -qw "$macro" "$here/macros.h" || say_fail "macros.h does not use $macro"
    done
    mkdir -p "$stage/macros"
    # cot_atan2(y, x) becomes  y = cot_atan2(x, 2);  with numbers at other places too
    define='^#define (cot_[a-z0-9_]+)' two='\([a-z]+, [a-z]+\) COT__' three='\([a-z]+, [a-z]+, [a-z]+\) COT__'
    sed -nE "s/$define$two.*/    y = \\1(x, 2), y = \\1(0.5, x), y = \\1(x, y);/p
             s/$define$three.*/    y = \\1(x, 2, 0.5f), y = \\1(y, x, x);/p" \
        "$headers/cotangent_ops.h" > "$stage/macros/elementwise.h"
    [ "$(wc -l < "$stage/macros/elementwise.h")" -gt 25 ] || say_fail "elementwise.h misses macros"
    warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Wundef -Wcast-qual
              -Wwrite-strings -Wmissing-declarations -Wmissing-field-initializers -Werror"
    accepts() { echo 'int nothing;' | "$1" "-std=$2" -x "$3" -fsyntax-only - 2> /dev/null; }
    each() { # each COMPILER LANGUAGE SOURCE EXTRA-WARNINGS STANDARD...
        compiler=$1 language=$2 source=$3 extra=$4
        shift 4
        for standard; do
            accepts "$compiler" "$standard" "$language" || continue
            for mode in -DUSUAL -DCOT_PLAIN -DCOT_SOURCE_LINES; do
                echo "-- $compiler -std=$standard $mode"
                "$compiler" "-std=$standard" $mode $warnings $extra -fsyntax-only -I"$headers" -I"$stage/macros" \
                    "$source"
            done
        done
    }
    for header in "$headers"/cotangent*.h; do
        for language in c c++; do
            compiler=$CC
            [ $language = c ] || compiler=g++
            command -v "$compiler" > /dev/null || continue
            echo "-- $compiler -x $language $(basename "$header"), first"
            printf '#include <%s>\n#include <cotangent.h>\ncot_params *p;\n' "$(basename "$header")" |
                "$compiler" $warnings -x $language -fsyntax-only -I"$headers" - ||
                say_fail "$(basename "$header") cannot be included first"
        done
    done
    for compiler in gcc clang; do
        ! command -v "$compiler" > /dev/null ||
            each "$compiler" c "$here/macros.c" "-Wstrict-prototypes" c11 c17 gnu11 c2x
    done
    for compiler in g++ clang++; do
        ! command -v "$compiler" > /dev/null || each "$compiler" c++ "$here/macros.cpp" \
            "-Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi" c++11 c++14 c++17 c++20
    done
    ;;
symbols) # libcotangent shares a process with other libraries: it takes no name but its own
    nm -D --defined-only "$library" | awk '{ print $NF }' > "$stage/symbols.txt"
    grep -q '^cot_version$' "$stage/symbols.txt" || say_fail "cot_version is not exported"
    if grep -v '^cot_' "$stage/symbols.txt"; then say_fail "these exported symbols do not begin with cot_"; fi
    echo "$(wc -l < "$stage/symbols.txt") symbols, all cot_"
    ;;
needed)
    readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' > "$stage/needed.txt"
    cat "$stage/needed.txt"
    if grep -Ev '^(libc\.so|libm\.so|libpthread\.so|ld-linux)' "$stage/needed.txt"; then
        say_fail "the shared library needs more than libc, libm and libpthread"
    fi
    ;;
size)
    strip -o "$stage/stripped.so" "$library"
    bytes=$(wc -c < "$stage/stripped.so")
    echo "stripped shared library: $bytes bytes"
    limit=2500000
    [ "$bytes" -lt "$limit" ] || say_fail "that is not below 2.5 MB"
    ;;
command) # it runs alone, from wherever it lies, and brings its manual and completions
    env -i "$prefix/bin/cotangent" --version
    [ "$(env -i "$prefix/bin/cotangent" grad --json 'x*y + sin(x)' x=0 y=3)" = '{"value":0,"grad":{"x":4,"y":0}}' ] ||
        say_fail "the gradient is wrong"
    if readelf -d "$prefix/bin/cotangent" | grep 'NEEDED.*libcotangent'; then
        say_fail "the command needs the shared library"
    fi
    for file in share/man/man1/cotangent.1 share/bash-completion/completions/cotangent \
        share/zsh/site-functions/_cotangent; do
        [ -s "$prefix/$file" ] || say_fail "$file is missing"
    done
    ;;
*) say_fail "unknown check '$what'" ;;
esac
