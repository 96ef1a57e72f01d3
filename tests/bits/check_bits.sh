#!/bin/sh
# check_bits.sh BITS_HASH EXPECTED VARIANT…: does the program print the hashes of the file EXPECTED
# in every variant? A variant is words: settings of the environment, then arguments of the program.
# Without one the program is run as it is.
program=$1 expected=$2 failed=0
shift 2
[ $# -gt 0 ] || set -- ""
for variant; do
    settings=$(printf '%s\n' $variant | grep = | tr '\n' ' ')
    arguments=$(printf '%s\n' $variant | grep -v = | tr '\n' ' ')
    # shellcheck disable=SC2086 # words
    got=$(env $settings "$program" --families $arguments) || got=crashed
    [ "$got" = "$(cat "$expected")" ] && continue
    echo "with '$variant':"
    printf '%s\n' "$got" | diff "$expected" - | sed -n 's/^>/    now       /p; s/^</    expected  /p'
    failed=1
done
[ $failed = 0 ] && exit 0
cat << END

These results have other bits than docs/bits.md promises; '$program --items' names each.
If they differ between processors or numbers of threads, that is an error. If all of them changed
alike and on purpose, say in docs/bits.md what changed, raise the version there and in
include/cotangent.h (COT_BITS), and write the new hashes:
    $program --families > tests/bits/expected.txt
END
exit 1
