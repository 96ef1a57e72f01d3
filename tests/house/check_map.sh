#!/bin/sh
# check_map.sh ROOT: docs/map.dot and docs/map.svg show the folders as they are.
set -eu
cd "$1"
if ! tools/map.sh | diff docs/map.dot - > /dev/null; then
    tools/map.sh | diff docs/map.dot - || true
    echo "docs/map.dot is not what tools/map.sh prints; make map writes it and draws docs/map.svg"
    exit 1
fi
if ! grep -q "cksum $(cksum < docs/map.dot) " docs/map.svg; then
    echo "docs/map.svg was drawn of another docs/map.dot; make map draws it"
    exit 1
fi
