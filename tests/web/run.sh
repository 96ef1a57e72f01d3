#!/usr/bin/env bash
# run.sh PAGE COMMAND: the tests of the page, in Chromium and at the same time in Firefox. What a
# browser's tests said is shown when they are done.
set -uo pipefail
cd "$(dirname "$0")"
page=$(realpath "$OLDPWD/$1") command=$(realpath "$OLDPWD/$2")
log=$(mktemp)
trap 'rm -f "$log"' EXIT

in_browser() { # chromium|firefox
    local failed=0
    python3 test_page.py "$page" "$command" "$1" || failed=1
    python3 test_story.py "$page" "$command" "$1" || failed=1
    python3 test_picture.py "$page" "$1" || failed=1
    return $failed
}

in_browser firefox > "$log" 2>&1 &
firefox=$! failed=0
in_browser chromium || failed=1
python3 test_hostile.py "$page" "$command" || failed=1
wait "$firefox" || failed=1
echo "== the same in Firefox"
cat "$log"
exit "$failed"
