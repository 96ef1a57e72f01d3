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

calls=$(mktemp)
trap 'rm -f "$calls"' EXIT
nm -A -u "$library" 2> /dev/null | sed -nE "s/^[^:]*:([^:]*):.* U (($inexact)[fl]?)\$/\1 \2/p" | sort -u > "$calls"
nm -A -u "$library" 2> /dev/null | grep -q ' U memcpy' || {
    echo "$library copies nothing: does this script still read what nm prints?"
    exit 1
}

[ -s "$calls" ] || exit 0
sed 's/^\(.*\) \(.*\)$/\1 calls \2; elementary functions are cot__\2 of base\/math\/elementary.h/' "$calls"
exit 1
