#!/bin/sh
# check_pages.sh PROJECT_ROOT: every source file is named on the page of its folder,
# docs/architecture/FOLDER.md, and every file that such a page names in the first column of a table
# exists. A page that knows half of its files teaches the wrong half.
set -eu
cd "$1"
bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

for page in docs/architecture/*.md; do
    name=$(basename "$page" .md)
    folders=src/$name
    case $name in cli) folders="cli models web/js" ;; esac
    files=$(find $folders -type f ! -name '*.html')
    [ "$(echo "$files" | wc -l)" -gt 1 ] || echo "$page: no files in $folders; name the page after its folder"
    for file in $files; do
        grep -q "^|.*[\`/]$(basename "$file")\`" "$page" ||
            echo "$page does not name $file; add it to the table of files, with what it holds"
    done
    sed -n 's/^| *\(`[^|]*\)|.*/\1/p' "$page" | grep -o '`[^`]*\.\(c\|h\|inc\|def\|js\)`' | tr -d '`' | sort -u |
        while read -r named; do
            echo "$files" | grep -q "/$named\$" || echo "$page names $named, which is not there; mend or drop its row"
        done
done > "$bad"

cat "$bad"
[ ! -s "$bad" ]
