#!/bin/sh
# map.sh [ROOT]: the folders of the library and of the command and which of them includes which, for
# graphviz. An arrow goes from a folder to one that it uses; `make map` draws docs/map.svg of it.
set -eu
cd "${1:-$(dirname "$0")/..}"
export LC_ALL=C

cat << 'END'
// Made by tools/map.sh; `make map` writes it and draws docs/map.svg.
digraph map {
    rankdir = TB; ranksep = 0.5; nodesep = 0.25; fontname = "sans-serif"; fontsize = 12
    node [shape = box, style = "rounded,filled", fillcolor = "#f4f6fb", color = "#5b6b8c"]
    node [fontname = "sans-serif", fontsize = 11]
    edge [color = "#8a97b1", arrowsize = 0.6]
END
grep -v '^#' tools/layers.txt | while read -r folder door; do
    printf '    "%s" [label = "%s\\n%s"]\n' "$folder" "$folder" "$door"
done
grep '^ *# *include "' -r src cli --include='*.c' --include='*.h' --include='*.inc' --include='*.def' | awk '
    FNR == NR { if ($0 !~ /^#/) known[$1]; next }
    function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
    {
        file = $0; sub(/:.*/, "", file); from = folder_of(file)
        name = $0; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
        to = index(name, "/") ? folder_of(name) : from
        if (("src/" to) in known) to = "src/" to
        else if (("cli/" to) in known) to = "cli/" to
        if (from != to && (to in known)) printf "    \"%s\" -> \"%s\"\n", from, to
    }' tools/layers.txt - | sort -u
echo '}'
