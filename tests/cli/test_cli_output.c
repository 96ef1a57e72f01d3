/* ctest: timeout=300 */
/* The files and streams that the command writes: files are complete or unchanged, also on full
 * disks, with closed pipes and when memory is short; colour is for terminals only. */
#define _GNU_SOURCE
#include "support/cli_test.h"
#include "support/terminal_test.h"

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
    assert_int_equal(
        sh("grep -c '\"grad\":{\"x\":3,\"y\":2}' t.html; grep -c 'TRACE' t.html; head -c 15 t.html; tail -n 1 t.html; "
           "grep -c digraph t.dot; ls"),
        0);
    assert_string_equal(last.out, "1\n0\n<!doctype html></html>\n1\nt.dot\nt.html\n");
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --json --dot u.dot | head -c 20; cmp t.dot u.dot"), 0);
    assert_true(strncmp(last.out, "{\"value\":6,\"grad\":{\"", 20) == 0);
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --dot - | cmp - t.dot && cotangent trace 'x*y' x=2 y=3 --html - "
                        "| cmp - t.html"),
                     0);
    assert_int_equal(sh("cotangent trace 'x*y' x=2 y=3 --dot /dev/null"), 0);
}

static void what_the_expression_says_cannot_end_the_script(void **state) {
    (void)state;
    assert_int_equal(
        sh("cotangent trace 'x # </script><!-- ' x=2 --html s.html; grep -o '</script>' s.html | wc -l | tr -d ' '; "
           "grep -c '<!-- ' s.html"),
        1);
    assert_string_equal(last.out, "1\n0\n");
    assert_int_equal(sh("grep -c 'x # <\\\\/script>\\\\u003c!-- ' s.html"), 0);
}

static void files_are_replaced_whole_or_stay(void **state) {
    (void)state;
    sh("rm -rf *; echo old > t.html; mkdir folder; ln -s t.html link; chmod 640 t.html");
    fails("cotangent trace 'x*' x=2 --html t.html --dot t.dot", 2,
          "expected a number, a name or '(', found the end of the text", "x*\n  ^\n");
    fails("cotangent trace 'x @ y' x=[1] y=[1,2] --html t.html", 3,
          "[matmul] inner dimensions differ: (1,) @ (2,); the last axis of a must equal the only one of b",
          "x @ y\n  ^\n");
    fails("cotangent trace x x=1 --html folder", 3, "cannot write folder: it is a directory", "");
    fails("cotangent trace x x=1 --html nowhere/t.html", 3, "cannot write nowhere/t.html: No such file or directory",
          "");
    fails("cotangent trace x x=1 --html /dev/full", 3, "cannot write /dev/full: No space left on device", "");
    /* full half way */
    assert_int_equal(sh("trap '' XFSZ; ulimit -f 8; cotangent trace x x=1 --html t.html"), 3);
    assert_string_equal(last.err, "cotangent: cannot write t.html: File too large\n");
    sh("cat t.html; ls");
    assert_string_equal(last.out, "old\nfolder\nlink\nt.html\n");
    assert_int_equal(
        sh("cotangent trace x x=1 --html link && test -L link && head -c 9 t.html && ls -l t.html | cut -c1-10; ls"),
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
    assert_int_equal(sh("{ cotangent eval --json x 'x=uniform(1,[300,300],1)'; echo $? >status; } | true; cat status"),
                     0);
    assert_string_equal(last.out, "3\n");
    assert_string_equal(last.err, "");
}

/* An interrupt ends it as it should, with nothing printed. */
static void an_interrupt_prints_nothing(void **state) {
    (void)state;
    if (sh("timeout --preserve-status 1 true") != 0) skip();
    assert_int_equal(
        sh("timeout --preserve-status -s INT 0.3 cotangent hess 'sum(tanh(W @ x)**2)' 'W=uniform(1,[2000,2000],0.1)' "
           "'x=uniform(2,[2000],1)' --wrt x"),
        128 + SIGINT);
    assert_string_equal(last.out, "");
    assert_string_equal(last.err, "");
}

/* ---- terminals ------------------------------------------------------------------------------- */

/* What the command prints when both its outputs are a terminal of 80 columns. */
static char *on_terminal(const char *line) {
    static char    text[1 << 16];
    size_t         used = 0;
    int            terminal, other;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    char           command[2048];
    snprintf(command, sizeof command, "cd %s; export PATH=%s:$PATH; unset COLUMNS; %s", folder, COT_COMMAND_FOLDER,
             line);
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
        strchr(on_terminal("TERM=xterm NO_COLOR=1 cotangent --help; TERM=xterm NO_COLOR=1 cotangent trace 'x*x' x=3"),
               '\033'));
    sh("TERM=xterm cotangent grad 'x*x' x=3");
    assert_null(strchr(last.out, '\033'));
}

/* Long rows break at the width of the terminal. */
static void rows_fit_the_terminal(void **state) {
    (void)state;
    char *text = on_terminal("TERM=dumb cotangent eval 'x' 'x=uniform(1,[30],1)'");
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) assert_true(strlen(line) <= 80);
}

/* ---- where files go -------------------------------------------------------------------------- */

/* Every option that writes a file, to `path`. */
static const struct { const char *line, *holds; } written[] = {
    {"cotangent trace x*x x=3 --html %s", "<html"},
    {"cotangent trace x*x x=3 --dot %s", "digraph"},
    {"cotangent fit 'a*x' data.csv a=1 --plot %s", "<svg"},
};

static void write_data(void) { assert_int_equal(sh("printf 'y,x\\n1,1\\n2,2.5\\n' > data.csv"), 0); }

static void links_are_followed_and_stay(void **state) {
    (void)state;
    write_data();
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        char line[256];
        snprintf(line, sizeof line, written[k].line, "l1");
        /* links to a file, to no file yet, through a second link and another folder */
        assert_int_equal(sh("rm -rf d && mkdir d && echo old > d/live && chmod 640 d/live && ln -sf d/live l1 && %s && "
                            "test -L l1 && grep -q '%s' d/live"
                            " && test $(stat -c %%a d/live) = 640",
                            line, written[k].holds),
                         0);
        assert_int_equal(sh("rm -rf d && mkdir d && ln -sf d/l2 l1 && ln -s not-yet d/l2 && %s && test -L l1 && test "
                            "-L d/l2 && grep -q '%s' d/not-yet",
                            line, written[k].holds),
                         0);
        assert_int_equal(sh("rm -rf d && mkdir d && ln -sf \"$PWD/d/new\" l1 && %s && test -L l1 && grep -q '%s' d/new "
                            "&& test $(ls d | wc -l) = 1",
                            line, written[k].holds),
                         0);
        /* to a folder that is not there, and round in a circle: the links stay as they were */
        assert_int_equal(sh("rm -rf d; ln -sf d/nothing l1; %s", line), 3);
        assert_string_equal(last.err, "cotangent: cannot write l1: No such file or directory\n");
        assert_int_equal(sh("ln -sf l3 l1; ln -sf l1 l3; %s", line), 3);
        assert_string_equal(last.err, "cotangent: cannot write l1: Too many levels of symbolic links\n");
        assert_int_equal(sh("test -L l1 && test -L l3 && test $(ls -A | grep -c new) = 0"), 0);
    }
}

static void devices_pipes_and_the_output_are_written_to(void **state) {
    (void)state;
    write_data();
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        char to_output[256], to_null[256], to_pipe[256], to_folder[256];
        snprintf(to_output, sizeof to_output, written[k].line, "/dev/stdout");
        snprintf(to_null, sizeof to_null, written[k].line, "/dev/null");
        snprintf(to_pipe, sizeof to_pipe, written[k].line, "pipe");
        snprintf(to_folder, sizeof to_folder, written[k].line, "folder");
        /* a regular file, here: nothing of it may be lost */
        assert_int_equal(sh("%s", to_output), 0);
        assert_non_null(strstr(last.out, written[k].holds));
        assert_int_equal(sh("echo before; %s; echo after", to_output), 0);
        assert_true(strncmp(last.out, "before\n", 7) == 0 && strstr(last.out, written[k].holds) &&
                    strstr(last.out, "\nafter\n"));
        assert_int_equal(sh("%s | cat", to_output), 0);
        assert_non_null(strstr(last.out, written[k].holds));
        assert_int_equal(sh("%s && test -c /dev/null", to_null), 0);
        assert_int_equal(
            sh("rm -f pipe; mkfifo pipe; cat pipe > piped & %s && wait && test -p pipe && grep -q '%s' piped", to_pipe,
               written[k].holds),
            0);
        assert_int_equal(sh("mkdir -p folder; %s", to_folder), 3);
        assert_string_equal(last.err, "cotangent: cannot write folder: it is a directory\n");
    }
}

/* Root may write everything. So if the tests run as root, another user tries. */
static void what_may_not_be_written_stays(void **state) {
    (void)state;
    if (geteuid() == 0 && sh("command -v setpriv") != 0) {
        print_message("without setpriv root cannot try as somebody else\n");
        skip();
    }
    const char *as = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
    assert_int_equal(sh("chmod 755 . && mkdir open closed && chmod 777 open && echo old > open/kept && chmod 444 "
                        "open/kept && ln -s kept open/l"),
                     0);
    if (sh("%s cotangent --version", as) != 0) skip(); /* it cannot reach the command */
    for (int k = 0; k < 2; k++) {
        const char *path = k ? "open/l" : "open/kept";
        char        expected[128];
        snprintf(expected, sizeof expected, "cotangent: cannot write %s: Permission denied\n", path);
        assert_int_equal(sh("%s cotangent trace x*x x=3 --dot %s", as, path), 3);
        assert_string_equal(last.err, expected);
    }
    assert_int_equal(sh("chmod 555 closed; %s cotangent trace x*x x=3 --dot closed/new", as), 3);
    assert_string_equal(last.err, "cotangent: cannot write closed/new: Permission denied\n");
    assert_int_equal(sh("test $(cat open/kept) = old && test -L open/l && test $(ls open closed | grep -c new) = 0; "
                        "s=$?; chmod 755 closed; exit $s"),
                     0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void too_much_memory_is_an_error(void **state) {
    (void)state;
    if (COT_SANITIZED) skip();
    fails("ulimit -v 1000000; cotangent eval x 'x=uniform(1,[100000,10000],1)'", 3,
          "x: memory is short: 8 GB are needed in one piece", "");
    assert_int_equal(sh("ulimit -v 1000000; cotangent eval 'ones([100000,10000])'"), 3);
    assert_non_null(strstr(last.err, "[ones] memory is short: 8000000000 bytes for a tensor\n"));
    assert_int_equal(sh("ulimit -v 1000000; cotangent eval --json 'ones([100000,10000])'"), 3);
    assert_true(strncmp(last.out, "{\"error\":{\"code\":\"memory\"", 25) == 0);
}

/* ---- completion and manual ------------------------------------------------------------------- */

static void bash_completes(void **state) {
    (void)state;
    if (sh("command -v bash") != 0) skip();
    static const struct {
        const char *words, *completed;
    } cases[] = {
        {"cotangent gr", "grad"},         {"cotangent grad --w", "--wrt"},   {"cotangent hess x --mode f", "forward"},
        {"cotangent ops matm", "matmul"}, {"cotangent help expl", "explain"}, {"cotangent eval --se", ""},
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

static void no_line_ends_in_blanks(void **state) {
    (void)state;
    static const char *const lines[] = {
        "grad 'x*y' x=[1,2] y=3 --seed 1", "jac 'x**2' x=[1,2,3]", "jac --sparse 'x**2' x=[1,2,3]",
        "hess 'x**2*y' x=2 y=1", "taylor 'exp(x)' x=0", "trace 'sum(softmax(W @ x))' W=[[1,2],[3,4]] x=[5,6]",
        "trace --mode forward 'sum(softmax(W @ x))' W=[[1,2],[3,4]] x=[5,6]", "check 'x*y' x=1 y=2",
        "cost 'x*y' x=1 y=2", "cost --inputs 5", "cost --depth 10", "memory 'sum(exp(x)*x)' x=[1,2]",
        "memory --model mnist", "explain 'log(x)' x=0", "grad --rank 'x*y' x=1 y=2", "ops", "ops where",
        "train gcn --steps 2", "help", "help expressions",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        assert_int_equal(sh("cotangent %s", lines[k]), 0);
        for (const char *p = last.out; (p = strchr(p, '\n')); p++)
            if (p > last.out && p[-1] == ' ') fail_msg("cotangent %s: a line ends in a blank", lines[k]);
    }
    prints("cotangent cost --depth 1 | head -n 4", "1 step, a state of 1 × 1 number of 8 bytes\n\n"
                                                   "          states kept  steps run  time in steps  bytes\n"
                                                   "plain               1          1              4      8\n");
    prints("cotangent cost --depth 1 | tail -n 1",
           "binomial: all states, but as loops do: a step runs again on its way back; micro: 1 part\n");
}

/* groff finds nothing to complain about, where it is installed. */
static void the_manual_page_is_clean(void **state) {
    (void)state;
    if (sh("command -v man && man --version") != 0) skip();
    assert_int_equal(sh("LC_ALL=C.UTF-8 MANROFFSEQ= man --warnings -E UTF-8 -l %s/docs/man/cotangent.1 > /dev/null",
                        COT_SOURCE_FOLDER),
                     0);
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
        cmocka_unit_test(no_line_ends_in_blanks),
        cmocka_unit_test(links_are_followed_and_stay),
        cmocka_unit_test(devices_pipes_and_the_output_are_written_to),
        cmocka_unit_test(what_may_not_be_written_stays),
        cmocka_unit_test(too_much_memory_is_an_error),
        cmocka_unit_test(bash_completes),
        cmocka_unit_test(the_manual_page_is_clean),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
