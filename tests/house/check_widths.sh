#!/bin/sh
# check_widths.sh PROJECT_ROOT: in C files, scripts and build files a comment ends by column 100
# and code by column 120, so that two files fit side by side and a diff needs no scrolling.
#
# A column is a character. Continuation bytes of UTF-8 and combining marks take no column.
# Left alone are
#   rows of tables in .def files, of which one row is one line, and columns are read downward
#   (comments between the rows are held to the rule), and
#   whatever is not a program: golden numbers, corpora, expected outputs, pages, styles.
set -eu
cd "$1"
find .ci CMakeLists.txt Makefile bench cli cmake examples include models src tests tools web -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.inc' -o -name '*.def' -o -name '*.cpp' -o -name '*.js' \
    -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o -name Makefile -o -path '.ci/*' \) |
    LC_ALL=C sort | LC_ALL=C xargs awk '
    # columns of a text in bytes: combining marks (U+0300 to U+036F) and continuation bytes go first
    function columns(s) {
        gsub(/\314[\200-\277]|\315[\200-\257]/, "", s)
        gsub(/[\200-\277]/, "", s)
        return length(s)
    }
    # the byte at which the last comment of a line ends, 0 without one; inside: we are in /* */
    function c_comment(s,    at, end, c) {
        end = 0
        at = 1
        while (at <= length(s)) {
            if (inside) {
                c = index(substr(s, at), "*/")
                if (!c) return length(s)
                at += c + 1
                end = at - 1
                inside = 0
            } else if (match(substr(s, at), /["`\047]|\/\*|\/\//)) {
                at += RSTART - 1
                c = substr(s, at, 1)
                if (c == "/" && substr(s, at + 1, 1) == "/") return length(s)
                if (c == "/") { inside = 1; at += 2 }
                else at = past_quote(s, at, c)
            } else return end
        }
        return inside ? length(s) : end
    }
    # the place behind the literal that begins at `at`; one without an end (a digit separator) is
    # one character
    function past_quote(s, at, quote,    k, c) {
        for (k = at + 1; k <= length(s); k++) {
            c = substr(s, k, 1)
            if (c == "\\") k++
            else if (c == quote) return k + 1
        }
        return at + 1
    }
    # the same for comments that begin with # and for the docstrings of Python
    function hash_comment(s,    at, c, before) {
        if (python && (inside || s ~ /^[ \t]*"""/)) {
            c = s
            inside = (gsub(/"""/, "", c) + inside) % 2
            return length(s)
        }
        for (at = 1; at <= length(s); at++) {
            c = substr(s, at, 1)
            before = at == 1 ? " " : substr(s, at - 1, 1)
            if (c == "#" && before ~ /[ \t]/) return length(s)
            if (c == "\\") at++
            else if (c == "\"" || c == "\047") at = past_quote(s, at, c) - 1
        }
        return 0
    }
    function tell(what, width, limit, advice) {
        printf "%s:%d: %s ends at column %d; ", FILENAME, FNR, what, width
        printf "%s ends by column %d: %s\n", what, limit, advice
        bad = 1
    }
    FNR == 1 {
        files++
        inside = 0
        hash = FILENAME !~ /\.(c|h|inc|def|cpp|js)$/
        python = FILENAME ~ /\.py$/
        table = FILENAME ~ /\.def$/
    }
    {
        sub(/[ \t\r]+$/, "")
        end = hash ? hash_comment($0) : c_comment($0)
        width = end > 100 ? columns(substr($0, 1, end)) : 0
        if (width > 100) tell("a comment", width, 100, "wrap it, or put it above its line")
        else if (!table && length($0) > 120 && (width = columns($0)) > 120)
            tell("code", width, 120, "break it, or give a part of it a name")
    }
    END {
        if (files < 500) { print "only " files + 0 " files were read: does this script still find them?"; bad = 1 }
        exit bad
    }'
