#!/bin/sh
# check_jobs.sh ROOT: make builds and tests with as many jobs as it is asked for, by JOBS or by -j.
set -eu
cd "$1"
unset MAKEFLAGS MFLAGS MAKELEVEL JOBS
for asked in JOBS=1 -j1 JOBS=3 -j3 '-k -j3'; do
    count=${asked#*=} count=${count#*-j}
    for goal in build test web asan fuzz; do
        # shellcheck disable=SC2086 # two words
        plan=$(make -n $asked "$goal" 2> /dev/null)
        if printf '%s\n' "$plan" | grep -E '(cmake --build|ctest|fuzz\.sh) ' |
            grep -vqE -- "(-j |JOBS=)$count( |$)"; then
            printf '%s\n' "$plan"
            echo "make $asked $goal runs another number of jobs than $count"
            exit 1
        fi
    done
done
