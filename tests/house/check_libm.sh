#!/bin/sh
# No machine's libm shows in a result: of libm the library calls functions that are exact or rounded
# once, which have the same bits everywhere. Elementary functions are those of
# src/base/math/elementary.h.
#
# usage: check_libm.sh STATIC_LIBRARY
set -eu
library=$1
# With any of the suffixes of float and long double. Not here, since exact: sqrt, fabs, fma, floor,
# ceil, rint, trunc, copysign, fmod, ldexp, frexp, ilogb, nextafter, fmin, fmax.
inexact='exp|exp2|exp10|expm1|log|log2|log10|log1p|sin|cos|sincos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh'
inexact="$inexact|atanh|pow|hypot|cbrt|erf|erfc|lgamma|lgamma_r|tgamma|cexp|clog|cabs|carg|j0|j1|y0|y1"

# Objects that may still call some of them.
allowed='
adamw.c.o pow
linalg_exp.c.o log2
'

calls=$(mktemp)
trap 'rm -f "$calls"' EXIT
nm -A -u "$library" 2> /dev/null | sed -nE "s/^[^:]*:([^:]*):.* U (($inexact)[fl]?)\$/\1 \2/p" | sort -u > "$calls"
nm -A -u "$library" 2> /dev/null | grep -q ' U ldexp' || {
    echo "$library calls no ldexp: does this script still read what nm prints?"
    exit 1
}

bad=0
while read -r object function; do
    if ! echo "$allowed" | grep -E "^$object( |$)" | grep -qw "$function"; then
        echo "$object calls $function; elementary functions are cot__$function of base/math/elementary.h"
        bad=1
    fi
done < "$calls"
exit $bad
