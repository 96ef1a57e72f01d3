#!/usr/bin/env bash
# Compares what we write and read with programs of others: runs tests/peers/*.py, each with the
# build folder as its argument: make test-peers. A script names what it needs from PyPI in a line
# "needs: NAME…" of its opening text; all of that is installed into the virtual environment
# build/peers.
#   PEERS_PYTHON  a Python that has it all, instead of that environment
#   ONLY          run the scripts whose names hold this word
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
python=${PEERS_PYTHON:-$build/peers/bin/python}
scripts=(tests/peers/*"${ONLY:-}"*.py)

if [ -z "${PEERS_PYTHON:-}" ]; then
    needs=$(sed -n 's/.*needs: *//p' "${scripts[@]}" | tr ' ' '\n' | sort -u)
    [ -x "$python" ] || python3 -m venv "$build/peers"
    # shellcheck disable=SC2086
    if [ "$(cat "$build/peers/has" 2> /dev/null)" != "$needs" ]; then
        if ! "$build/peers/bin/pip" install --quiet $needs; then
            echo "test-peers: skipped: pip could not install" $needs "(no network?);" \
                "PEERS_PYTHON names a Python that has them"
            exit 0
        fi
        echo "$needs" > "$build/peers/has"
    fi
fi
failed=0
for script in "${scripts[@]}"; do
    echo "== $script"
    "$python" "$script" "$build" || failed=1
done
exit $failed
