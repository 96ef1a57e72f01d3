#!/bin/sh
# check_numbers.sh SOURCE_FOLDER: nothing but src/base/number.c writes or reads floating-point
# numbers with functions of the C library that follow the locale. (tests/base/test_locale.c sees
# what comes out; this sees what no test prints.) compiled_main.c and src/trace/code*.c hold the
# text of programs that set no locale.
cd "$1" || exit 2
find src cli -name '*.[ch]' -o -name '*.inc' |
    grep -v -e '^src/base/number\.c$' -e '^cli/compiled/compiled_main\.c$' -e '^src/trace/code.*\.c$' | xargs awk '
    BEGIN { printing = "(^|[^a-z_])(v|f|s|vs|as|vas|sn|vsn|vf|d)?(printf|scanf) *\\(" }
    FNR == 1 { statement = "" }
    { sub(/\/\*.*\*\//, ""); statement = statement " " $0 }
    /[;{}]$/ {
        if (statement ~ /(^|[^a-z_])(strtod|strtof|strtold|atof|setlocale|uselocale|localeconv) *\(/ ||
            statement ~ /(^|[^a-z_])(tolower|toupper|isalpha|isalnum|isspace) *\(/ ||
            statement ~ printing ".*%[-+# 0]*[0-9*]*([.][0-9*]+)?l?[aefgAEFG]") {
            print FILENAME ":" FNR ": " statement; bad = 1
        }
        statement = ""
    }
    END { if (bad) print "these follow the locale; see src/base/number.h"; exit bad }'
