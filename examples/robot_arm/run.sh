#!/bin/sh
# run.sh COTANGENT COMPILER [RUNNER]: exports the gradient of reach.txt, compiles it with main.c,
# and runs it; what it prints is compared with ../expected/robot_arm.txt.
set -eu
here=$(cd "$(dirname "$0")" && pwd) cotangent=$1 compiler=$2 runner=${3-}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
# any angles do: the values tell that all names are numbers
"$cotangent" compile -f "$here/reach.txt" q1=0 q2=0 q3=0 l1=1 l2=1 l3=1 x=0 y=0 \
    --grad --wrt q1,q2,q3 --dtype f32 -o reach.c 2> messages || { cat messages; exit 1; }
$compiler -std=c99 -Wall -Wextra -Werror -pedantic -Wconversion -I. "$here/main.c" reach.c -o arm -lm
$runner ./arm > printed
diff "$here/../expected/robot_arm.txt" printed
