#!/bin/sh
# check_layers.sh [ROOT]: nothing includes upward. tools/layers.txt lists the folders, lowest first;
# a file may include its own folder and those before it. Every folder is in the list, has a door
# that opens with what the folder does, may call and must not touch, and few enough files to look
# over.
set -eu
cd "${1:-$(dirname "$0")/..}"
most=24 # files of a folder
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

grep -v '^#' tools/layers.txt | while read -r folder door; do
    head=$(sed -n '1,/\*\//p' "$folder/$door" 2> /dev/null | tr -s '\n *' ' ')
    [ -f "$folder/$door" ] || echo "$folder has no $door; write its door, or name another one in tools/layers.txt"
    for words in 'May call:' 'Must not touch:'; do
        case $head in *"$words"*) ;; *) echo "$folder/$door does not open with a line \"$words …\"" ;; esac
    done
    count=$(find "$folder" -maxdepth 1 -type f | wc -l)
    [ "$count" -le $most ] || echo "$folder has $count files, more than $most; give a part of it a folder of its own"
done > "$bad"

find src cli -name '*.[ch]' -o -name '*.inc' -o -name '*.def' | sed 's,/[^/]*$,,' | sort -u |
    while read -r folder; do
        grep -q "^$folder " tools/layers.txt ||
            echo "$folder is not in tools/layers.txt; give it its place among the layers"
    done >> "$bad"

grep -n '^ *# *include "' -r src cli --include='*.c' --include='*.h' --include='*.inc' --include='*.def' | awk '
    FNR == NR { if ($0 !~ /^#/) rank[$1] = ++n; next }
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
    {
        split($0, part, ":"); file = part[1]; line = part[2]
        name = $0; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
        from = folder_of(file)
        to = index(name, "/") ? folder_of(name) : from
        if (("src/" to) in rank) to = "src/" to
        else if (("cli/" to) in rank) to = "cli/" to
        if (from == to || !(to in rank) || !(from in rank)) next
        if (rank[to] > rank[from])
            printf "%s:%s includes %s, but %s stands above %s; move what it needs down, or the file up\n",
                file, line, name, to, from
    }' tools/layers.txt - >> "$bad"

cat "$bad"
[ ! -s "$bad" ]
