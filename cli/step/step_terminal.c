/* step_terminal.c: termios, ANSI sequences and signals.
 *
 * Signals are blocked except while the program waits for a key or computes (terminal_busy), so no
 * handler ever runs in the middle of an escape sequence. Handlers call only functions that POSIX
 * allows in a handler. */
#include "step/step_terminal.h"

#include <stdlib.h>
#include <string.h>

#include "io/system.h"

#ifdef __wasi__
bool terminal_usable(failure *f) {
    return failure_usage(f, "trace --step needs a terminal, and here is none; leave out --step");
}
bool terminal_open(failure *f) { return terminal_usable(f); }
void terminal_close(void) {}
void terminal_size(int *rows, int *columns) { *rows = 24, *columns = 80; }
bool terminal_write(const char *bytes, size_t n) { return bytes == NULL && n == 0; }
int  terminal_key(void) { return TERMINAL_END; }
bool terminal_has_more(void) { return false; }
void terminal_busy(bool busy) { (void)busy; }
#else

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include "step/step_keys.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Switches to the other screen, without cursor and without wrapping at the right edge; and back. */
static const char on[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char off[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static struct sigaction      before[COUNT(watched)];
static struct termios        cooked, raw;
/* the signal mask before, used while waiting and computing */
static sigset_t              outside;
static volatile sig_atomic_t taken, computing, interrupted, changed;

bool terminal_usable(failure *f) {
    const char *type = getenv("TERM");
    bool        in = system_is_terminal(stdin), out = system_is_terminal(stdout);
    if (!in || !out)
        return failure_usage(
            f,
            "trace --step is interactive, and the standard %s is not a terminal; leave out --step to print the tables",
            in ? "output" : "input");
    if (!type || !*type || strcmp(type, "dumb") == 0)
        return failure_usage(f,
                             "trace --step moves the cursor, and a terminal of type '%s' (TERM) cannot; leave out "
                             "--step to print the tables",
                             type && *type ? type : "unknown");
    return true;
}

bool terminal_write(const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* ---- taking and giving back; both may run in a handler --------------------------------------- */

static bool take(void) {
    int answer;
    do answer = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    while (answer != 0 && errno == EINTR);
    taken = answer == 0;
    return answer == 0 && terminal_write(on, sizeof on - 1);
}

static void give_back(void) {
    if (!taken) return;
    taken = 0;
    terminal_write(off, sizeof off - 1);
    while (tcsetattr(STDIN_FILENO, TCSADRAIN, &cooked) != 0 && errno == EINTR) {}
}

static void die_of(int signal_number) {
    struct sigaction fall = {.sa_handler = SIG_DFL};
    sigset_t         only;
    give_back();
    sigaction(signal_number, &fall, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static void handle(int signal_number);

static sigset_t all_watched(void) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t k = 0; k < COUNT(watched); k++) sigaddset(&set, watched[k]);
    return set;
}

/* Only one handler runs at a time. */
static void install(int signal_number) {
    struct sigaction action = {.sa_handler = handle, .sa_mask = all_watched()};
    sigaction(signal_number, &action, NULL);
}

/* Stops as it would have without a handler, and takes the terminal again when it goes on. */
static void stop(void) {
    struct sigaction fall = {.sa_handler = SIG_DFL};
    sigset_t         only;
    give_back();
    sigaction(SIGTSTP, &fall, NULL);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    raise(SIGTSTP);
    /* the process stops here */
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    install(SIGTSTP);
    take();
    changed = 1;
}

static void handle(int signal_number) {
    int error = errno;
    switch (signal_number) {
    case SIGWINCH: changed = 1; break;
    case SIGTSTP: stop(); break;
    /* after a SIGSTOP, which cannot be handled */
    case SIGCONT:
        if (taken) take();
        changed = 1;
        break;
    case SIGINT:
        interrupted = 1;
        if (computing) die_of(signal_number);
        break;
    default: die_of(signal_number);
    }
    errno = error;
}

/* ---- opening and closing --------------------------------------------------------------------- */

bool terminal_open(failure *f) {
    sigset_t ours = all_watched();
    if (tcgetattr(STDIN_FILENO, &cooked) != 0)
        return failure_set(f, EXIT_RUN, "terminal", "cannot read the settings of the terminal: %s", strerror(errno));
    raw = cooked;
    /* Ctrl-C and Ctrl-Z remain signals, so they work while the program computes */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    /* keys typed before Ctrl-C or Ctrl-Z are not lost */
    raw.c_lflag |= NOFLSH;
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    interrupted = changed = computing = 0;
    sigprocmask(SIG_BLOCK, &ours, &outside);
    for (size_t k = 0; k < COUNT(watched); k++) {
        sigaction(watched[k], NULL, &before[k]);
        /* ignored signals stay ignored (nohup, or no shell that could continue the process) */
        if (before[k].sa_handler != SIG_IGN || watched[k] == SIGINT) install(watched[k]);
    }
    if (take()) return true;
    int error = errno;
    terminal_close();
    return failure_set(f, EXIT_RUN, "terminal", "cannot set the terminal: %s", strerror(error));
}

void terminal_close(void) {
    give_back();
    for (size_t k = 0; k < COUNT(watched); k++) sigaction(watched[k], &before[k], NULL);
    sigprocmask(SIG_SETMASK, &outside, NULL);
}

void terminal_size(int *rows, int *columns) {
    struct winsize size = {0};
    bool           known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
    *rows = known ? size.ws_row : 24;
    *columns = !known ? 80 : size.ws_col > 1000 ? 1000 : size.ws_col;
}

void terminal_busy(bool busy) {
    sigset_t ours = all_watched();
    computing = busy;
    if (busy) sigprocmask(SIG_SETMASK, &outside, NULL);
    else sigprocmask(SIG_BLOCK, &ours, NULL);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Is there input to read? Waits up to so many milliseconds, or for ever (-1). -1: a signal came. */
static int wait_for_input(int milliseconds) {
    struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    fd_set          input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    return pselect(STDIN_FILENO + 1, &input, NULL, NULL, milliseconds < 0 ? NULL : &limit, &outside);
}

static step_keys keys; /* bytes read but not yet turned into keys */

bool terminal_has_more(void) {
    struct timespec none = {0};
    fd_set          input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    return keys_pending(&keys) || pselect(STDIN_FILENO + 1, &input, NULL, NULL, &none, NULL) > 0;
}

int terminal_key(void) {
    for (;;) {
        if (interrupted) return TERMINAL_END;
        if (changed) {
            changed = 0;
            return TERMINAL_REDRAW;
        }
        int key = keys_next(&keys);
        if (key >= 0) return key;
        int ready = wait_for_input(keys_pending(&keys) ? 50 : -1);
        if (ready < 0 && errno != EINTR) return TERMINAL_END;
        /* an escape with nothing behind it is the escape key */
        if (ready == 0) keys_settle(&keys);
        if (ready <= 0) continue;
        char    bytes[KEYS_ROOM];
        ssize_t got = read(STDIN_FILENO, bytes, keys_room(&keys));
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return TERMINAL_END;
        keys_add(&keys, bytes, (size_t)got);
    }
}
#endif
