#!/bin/sh
# check_rebuild.sh BUILD: one more operation has at most a fifth of the files of the library and the
# command compiled again. The compiler has written beside each object which files it was made from.
set -eu
cd "$1"
made() {
    cd CMakeFiles && find cotangent_objects.dir cotangent_front.dir cotangent_cli.dir -name '*.o.d' "$@"
}
all=$(made | wc -l)
if [ "$all" -eq 0 ]; then
    echo "this build keeps no .d files; nothing is known"
    exit 77
fi
for table in rules/ops.def rules/rules.def; do
    count=$(made -exec grep -l "$table" {} + | wc -l)
    echo "$table: $count of $all files"
    if [ $((count * 5)) -gt "$all" ]; then
        echo "more than a fifth of them include it; include rules/op_numbers.h where no other number is needed"
        exit 1
    fi
done
