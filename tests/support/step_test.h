/* step_test.h: runs the command in a pseudo-terminal. Its output goes to a screen. Tests wait for
 * contents of the screen, not for a time. */
#ifndef COT_STEP_TEST_H
#define COT_STEP_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#include "support/cli_test.h"
#include "support/screen.h"
#include "support/terminal_test.h"

enum { PATIENCE = 30 }; /* seconds to wait at most, also on a busy machine */

static screen         seen;
static int            master = -1, slave = -1;
static pid_t          child;
static struct termios settings; /* settings of the terminal before the command ran */

static inline void set_size(int rows, int columns) {
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
}

static inline void open_terminal(int rows, int columns) {
    take_terminal(&master, &slave);
    set_size(rows, columns);
    assert_int_equal(tcgetattr(slave, &settings), 0);
    screen_start(&seen, rows, columns);
}

static inline void close_terminal(void) {
    if (master >= 0) close(master);
    close(slave);
    master = slave = -1;
}

/* In the child: the pseudo-terminal becomes its terminal. */
static inline void enter_terminal(void) {
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++) dup2(slave, fd);
}

/* cotangent trace --step with these arguments, up to NULL; variables are "NAME=value" or "NAME",
 * which removes it. */
static inline void run_command(const char *const *arguments, const char *const *variables) {
    char *words[16] = {(char *)(uintptr_t) "cotangent", (char *)(uintptr_t) "trace", (char *)(uintptr_t) "--step"};
    for (int k = 0; arguments[k]; k++) words[3 + k] = (char *)(uintptr_t)arguments[k];
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    unsetenv("COLUMNS");
    for (int k = 0; variables && variables[k]; k++) putenv((char *)(uintptr_t)variables[k]);
    execv(COT_COMMAND_FOLDER "/cotangent", words);
    _exit(127);
}

static inline void begin(int rows, int columns, const char *const *arguments, const char *const *variables) {
    open_terminal(rows, columns);
    child = fork();
    assert_true(child >= 0);
    if (child) return;
    enter_terminal();
    run_command(arguments, variables);
}

/* Takes the command's output so far, and waits a little for more. False at its end. */
static inline bool take_output(int milliseconds) {
    struct pollfd from = {.fd = master, .events = POLLIN};
    char          bytes[4096];
    if (poll(&from, 1, milliseconds) <= 0) return false;
    ssize_t got = read(master, bytes, sizeof bytes);
    if (got <= 0) return false;
    screen_feed(&seen, bytes, (size_t)got);
    return true;
}

static inline void send(const char *keys) {
    for (size_t n = strlen(keys); n > 0;) {
        ssize_t done = write(master, keys, n);
        assert_true(done > 0);
        keys += done;
        n -= (size_t)done;
    }
}

/* Sends keys, and waits for the answer on the screen. */
static inline void press(const char *keys) {
    send(keys);
    assert_true(take_output(1000 * PATIENCE));
    while (take_output(0)) {}
}

/* Waits long enough that an escape sent before is a key of its own. */
static inline void rest(void) {
    while (take_output(400)) {}
}

static inline void show(const char *wanted) {
    char line[4096];
    print_error("not seen: %s\n", wanted);
    for (int r = 1; r <= seen.rows; r++) print_error("%2d|%s\n", r, screen_line(&seen, r, line, sizeof line));
}

typedef bool (*condition)(const char *wanted, int row);

/* Waits until the condition holds, or patience ends. */
static inline void wait_until(condition holds, const char *wanted, int row) {
    for (double left = PATIENCE * 20; !holds(wanted, row); left--) {
        if (left < 0) {
            show(wanted);
            fail_msg("patience ended");
        }
        while (take_output(holds(wanted, row) ? 0 : 50)) {}
    }
    if (seen.fault[0]) fail_msg("%s", seen.fault);
}

static inline bool line_is(const char *wanted, int row) {
    char line[4096];
    return strcmp(screen_line(&seen, row, line, sizeof line), wanted) == 0;
}
static inline bool some_line_has(const char *wanted, int row) {
    char line[4096];
    (void)row;
    for (int r = 1; r <= seen.rows; r++)
        if (strstr(screen_line(&seen, r, line, sizeof line), wanted)) return true;
    return false;
}
static inline bool last_line_begins(const char *wanted, int row) {
    char line[4096];
    (void)row;
    return strncmp(screen_line(&seen, seen.rows, line, sizeof line), wanted, strlen(wanted)) == 0;
}
static inline bool screen_left(const char *wanted, int row) {
    (void)wanted, (void)row;
    return !seen.alternate;
}

/* Waits until the last line shows this step: "step 3/12". */
static inline void at_step(const char *step) {
    char begins[64];
    snprintf(begins, sizeof begins, "%s ", step);
    wait_until(last_line_begins, begins, 0);
}
static inline void sees(const char *text) { wait_until(some_line_has, text, 0); }
static inline void sees_line(int row, const char *line) { wait_until(line_is, line, row); }

/* Checks that the terminal is as before: settings, screen, cursor, wrapping. */
static inline void is_restored(void) {
    struct termios now;
    assert_int_equal(tcgetattr(slave, &now), 0);
    assert_int_equal(now.c_iflag, settings.c_iflag);
    assert_int_equal(now.c_oflag, settings.c_oflag);
    assert_int_equal(now.c_cflag, settings.c_cflag);
    assert_int_equal(now.c_lflag, settings.c_lflag);
    assert_memory_equal(now.c_cc, settings.c_cc, sizeof now.c_cc);
    wait_until(screen_left, "the first screen", 0);
    assert_true(seen.cursor);
    assert_true(seen.wraps);
}

/* Waits for the end of the command, and takes its remaining output. Returns the status of
 * waitpid. */
static inline int finish(void) {
    int status = 0;
    for (int k = 0; k < PATIENCE * 50; k++) {
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child) {
            while (master >= 0 && take_output(0)) {}
            return status;
        }
        if (master >= 0) take_output(20);
        else poll(NULL, 0, 20);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    fail_msg("the command does not end");
    return -1;
}

static inline void ends_well(void) {
    int status = finish();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    is_restored();
    close_terminal();
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Starts the worked example, at its first step. */
static inline void begin_example(int rows, int columns) {
    begin(rows, columns, WORDS("x1*x2+sin(x1)", "x1=2", "x2=5"), NULL);
    if (rows > 1 && columns > 12) at_step("step 1/12");
}

#endif
