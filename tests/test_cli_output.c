/* What the command writes, and where: files put in place whole or not at all, full disks and closed pipes, colour on terminals
 * only, memory that is short. ctest: timeout=300 */
#define _GNU_SOURCE
#include "cli_test.h"
#include "terminal_test.h"

#include <pty.h>
#include <signal.h>

static void trace_writes_files(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --html t.html --dot t.dot"), 0);
    assert_string_equal(last.out, "");
    assert_string_equal(last.err, "cotangent: wrote t.html\ncotangent: wrote t.dot\n");
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --html same --dot same"), 2);
    assert_string_equal(last.err, "cotangent: --html and --dot name the same file; one would replace the other\n");
    assert_int_equal(sh("test -e same"), 1);
    assert_int_equal(sh("grep -c '\"grad\":{\"x\":3,\"y\":2}' t.html; grep -c 'TRACE' t.html; head -c 15 t.html; tail -n 1 t.html; "
                        "grep -c digraph t.dot; ls"),
                     0);
    assert_string_equal(last.out, "1\n0\n<!doctype html></html>\n1\nt.dot\nt.html\n");
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --json --dot u.dot | head -c 20; cmp t.dot u.dot"), 0);
    assert_true(strncmp(last.out, "{\"value\":6,\"grad\":{\"", 20) == 0);
    assert_int_equal(
        sh("cotangent trace 'x*y' x=2 y=3 --dot - | cmp - t.dot && cotangent trace 'x*y' x=2 y=3 --html - | cmp - t.html"), 0);
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --dot /dev/null"), 0);
}

static void what_the_expression_says_cannot_end_the_script(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent trace 'x # </script><!-- ' x=2 --html s.html; grep -o '</script>' s.html | wc -l | tr -d ' '; "
                        "grep -c '<!-- ' s.html"),
                     1);
    assert_string_equal(last.out, "1\n0\n");
    assert_int_equal(sh("grep -c 'x # <\\\\/script>\\\\u003c!-- ' s.html"), 0);
}

static void files_are_replaced_whole_or_stay(void **state) {
    (void)state;
    sh("rm -rf *; echo old > t.html; mkdir folder; ln -s t.html link; chmod 640 t.html");
    fails("cotangent trace 'x*' x=2 --html t.html --dot t.dot", 2, "expected a number, a name or '(', found the end of the text",
          "x*\n  ^\n");
    fails("cotangent trace 'x @ y' x=[1] y=[1,2] --html t.html", 3,
          "[matmul] inner dimensions differ: (1,) @ (2,); the last axis of a must equal the only one of b", "x @ y\n  ^\n");
    fails("cotangent trace x x=1 --html folder", 3, "cannot write folder: it is a directory", "");
    fails("cotangent trace x x=1 --html nowhere/t.html", 3, "cannot write nowhere/t.html: No such file or directory", "");
    fails("cotangent trace x x=1 --html /dev/full", 3, "cannot write /dev/full: No space left on device", "");
    assert_int_equal(sh("trap '' XFSZ; ulimit -f 8; cotangent trace x x=1 --html t.html"), 3); /* full half way */
    assert_string_equal(last.err, "cotangent: cannot write t.html: File too large\n");
    sh("cat t.html; ls");
    assert_string_equal(last.out, "old\nfolder\nlink\nt.html\n");
    assert_int_equal(sh("cotangent trace x x=1 --html link && test -L link && head -c 9 t.html && ls -l t.html | cut -c1-10; ls"),
                     0);
    assert_string_equal(last.out, "<!doctype-rw-r-----\nfolder\nlink\nt.html\n");
}

static void a_failing_write_is_told(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent eval 1 > /dev/full"), 3);
    assert_string_equal(last.err, "cotangent: cannot write the output: No space left on device\n");
    assert_int_equal(sh("cotangent eval 1 >&-"), 3);
    assert_string_equal(last.err, "cotangent: cannot write the output: Bad file descriptor\n");
    /* a closed pipe: status 3, and nobody is told */
    assert_int_equal(sh("{ cotangent eval --json x 'x=uniform(1,[300,300],1)'; echo $? >status; } | true; cat status"), 0);
    assert_string_equal(last.out, "3\n");
    assert_string_equal(last.err, "");
}

/* An interrupt ends it as it should, with nothing printed. */
static void an_interrupt_prints_nothing(void **state) {
    (void)state;
    if (sh("timeout --preserve-status 1 true") != 0) skip();
    assert_int_equal(sh("timeout --preserve-status -s INT 0.3 cotangent hess 'sum(tanh(W @ x)**2)' 'W=uniform(1,[2000,2000],0.1)' "
                        "'x=uniform(2,[2000],1)' --wrt x"),
                     128 + SIGINT);
    assert_string_equal(last.out, "");
    assert_string_equal(last.err, "");
}

/* ---- terminals --------------------------------------------------------------------------------------------------------------- */

/* What the command prints when both its outputs are a terminal of 80 columns. */
static char *on_terminal(const char *line) {
    static char    text[1 << 16];
    size_t         used = 0;
    int            terminal, other;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    char           command[2048];
    snprintf(command, sizeof command, "cd %s; export PATH=%s:$PATH; unset COLUMNS; %s", folder, COT_COMMAND_FOLDER, line);
    take_terminal(&terminal, &other);
    close(terminal);
    close(other);
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    assert_true(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    for (ssize_t got; (got = read(terminal, text + used, sizeof text - used - 1)) > 0 || (got < 0 && errno == EINTR);)
        if (got > 0) used += (size_t)got;
    close(terminal);
    waitpid(child, NULL, 0);
    text[used] = 0;
    return text;
}

static void colour_is_for_terminals(void **state) {
    (void)state;
    assert_non_null(strstr(on_terminal("TERM=xterm cotangent grad 'x*x' x=3"), "\033["));
    assert_string_equal(on_terminal("TERM=xterm NO_COLOR=1 cotangent grad 'x*x' x=3"), "value = 9\r\nd/dx  = 6\r\n");
    assert_string_equal(on_terminal("TERM=dumb cotangent grad 'x*x' x=3"), "value = 9\r\nd/dx  = 6\r\n");
    assert_non_null(strstr(on_terminal("TERM=xterm NO_COLOR= cotangent grad 'x*' x=3"), "\033["));
    assert_null(strchr(on_terminal("TERM=xterm NO_COLOR=1 cotangent grad 'x*' x=3"), '\033'));
    assert_null(strchr(on_terminal("TERM=xterm cotangent grad --json 'x*x' x=3"), '\033'));
    assert_null(
        strchr(on_terminal("TERM=xterm NO_COLOR=1 cotangent --help; TERM=xterm NO_COLOR=1 cotangent trace 'x*x' x=3"), '\033'));
    sh("TERM=xterm cotangent grad 'x*x' x=3");
    assert_null(strchr(last.out, '\033'));
}

/* Long rows break at the width of the terminal. */
static void rows_fit_the_terminal(void **state) {
    (void)state;
    char *text = on_terminal("TERM=dumb cotangent eval 'x' 'x=uniform(1,[30],1)'");
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) assert_true(strlen(line) <= 80);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

static void too_much_memory_is_an_error(void **state) {
    (void)state;
    if (COT_SANITIZED) skip();
    fails("ulimit -v 1000000; cotangent eval x 'x=uniform(1,[100000,10000],1)'", 3, "x: memory is short: 8 GB are needed in one piece", "");
    assert_int_equal(sh("ulimit -v 1000000; cotangent eval 'ones([100000,10000])'"), 3);
    assert_non_null(strstr(last.err, "[ones] memory is short: 8000000000 bytes for a tensor\n"));
    assert_int_equal(sh("ulimit -v 1000000; cotangent eval --json 'ones([100000,10000])'"), 3);
    assert_true(strncmp(last.out, "{\"error\":{\"code\":\"memory\"", 25) == 0);
}

/* Each allocation fails once, alone and with all that follow: the result is there whole, or there is an error and no result. */
static void any_allocation_may_fail(void **state) {
    (void)state;
#ifdef COT_FAIL_MALLOC
    static const char *const lines[] = {
        "cotangent grad --json 'sum(tanh(W @ x))' 'W=uniform(1,[2,2],1)' x=[5,6] --threads 1",
        "cotangent hess 'x**2*y' x=2 y=5 --threads 1",
        "cotangent jac --sparse --json 'x[1:]**2*y' x=[1,2,3] y=5 --threads 1",
        "cotangent hess --sparse 'sum(x**2)*y' x=[1,2] y=5 --threads 1",
        "cotangent trace --json 'x*y + sin(x)' x=1 y=2 --threads 1 --dot t.dot",
        "cotangent check 'x*y' x=1 y=2 --threads 1",
        "cotangent taylor 'sum(x**2*y)' x=[1,2] y=5 --along x=[1,1] --threads 1",
        "cotangent hvp 'x**2*y' x=2 y=5 --tangent y=1 --threads 1",
        "cotangent grad --json 'x*(' x=2",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        int   expected = sh("%s", lines[k]);
        char *whole = strdup(last.out), *told = strdup(last.err);
        for (int keep = 0; keep < 2; keep++) {
            int quiet = 0, n = 1;
            for (; quiet < 3 && n < 3000;
                 n += n < 60 ? 1 : 7) { /* past the last allocation the result is there three times in a row */
                int status = sh("LD_PRELOAD=%s COT_FAIL_AT=%d %s exec %s", COT_FAIL_MALLOC, n,
                                keep ? "COT_FAIL_ON=1" : "COT_UNUSED=1", lines[k]);
                if (status == expected && strcmp(last.out, whole) == 0 && strcmp(last.err, told) == 0) {
                    quiet++;
                    continue;
                }
                quiet = 0;
                if (status == expected && status == 2) continue; /* the caret may be missing */
                if (status != 3) print_error("%s, allocation %d: status %d\n%s%s", lines[k], n, status, last.out, last.err);
                assert_int_equal(status, 3);
                assert_true(last.out[0] == 0 || strncmp(last.out, "{\"error\":", 9) == 0);
            }
            assert_true(n < 3000);
        }
        free(whole);
        free(told);
    }
#else
    skip();
#endif
}

/* ---- completion and manual --------------------------------------------------------------------------------------------------- */

static void bash_completes(void **state) {
    (void)state;
    if (sh("command -v bash") != 0) skip();
    static const struct {
        const char *words, *completed;
    } cases[] = {
        {"cotangent gr", "grad"},         {"cotangent grad --w", "--wrt"},   {"cotangent hess x --mode f", "forward"},
        {"cotangent ops matm", "matmul"}, {"cotangent help exp", "explain"}, {"cotangent eval --se", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            sh("bash -c '. %s/cli/completion/cotangent.bash; COMP_LINE=\"%s\"; COMP_POINT=${#COMP_LINE}; _cotangent;"
               " echo ${COMPREPLY[*]}'",
               COT_SOURCE_FOLDER, cases[i].words),
            0);
        char expected[64];
        snprintf(expected, sizeof expected, "%s\n", cases[i].completed);
        assert_string_equal(last.out, expected);
    }
}

/* groff finds nothing to complain about, where it is installed. */
static void the_manual_page_is_clean(void **state) {
    (void)state;
    if (sh("command -v man && man --version") != 0) skip();
    assert_int_equal(
        sh("LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l %s/docs/man/cotangent.1 > /dev/null", COT_SOURCE_FOLDER), 0);
    assert_string_equal(last.err, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_writes_files),
        cmocka_unit_test(what_the_expression_says_cannot_end_the_script),
        cmocka_unit_test(files_are_replaced_whole_or_stay),
        cmocka_unit_test(a_failing_write_is_told),
        cmocka_unit_test(an_interrupt_prints_nothing),
        cmocka_unit_test(colour_is_for_terminals),
        cmocka_unit_test(rows_fit_the_terminal),
        cmocka_unit_test(too_much_memory_is_an_error),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(bash_completes),
        cmocka_unit_test(the_manual_page_is_clean),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
