/* spawn.c: see spawn.h. Two processes, one inside the other:
 *
 *   host -- watcher -- compiler
 *
 * The watcher is made by clone() with no signal for its end, so wait() and SIGCHLD of the host do
 * not see it; it does not call exec, after which they would. The compiler is a child of the
 * watcher's, which waits for it and kills it when its time is over. Both share the memory of the
 * host until they end or call exec (as with vfork), so nothing is copied, however much memory the
 * host has. The thread that calls sleeps meanwhile, so the watcher may use its errno. In these
 * processes nothing is called but the kernel. */
#define _GNU_SOURCE /* clone */
#include "native/native.h"
#include "native/spawn.h"

#if COT__HAS_NATIVE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 32768, LOOK_NS = 5000000, MOST_FILES = 65536 };

typedef struct pair {
    cot__spawned *s;
    _Alignas(64) char watcher[STACK], compiler[STACK];
} pair;

/* All but the first `kept` files: a pipe of the host's would otherwise stay open as long as
 * this. */
static void close_files(unsigned kept) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, kept, ~0U, 0) == 0) return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    if (most < 0 || most > MOST_FILES) most = MOST_FILES;
    for (long fd = (long)kept; fd < most; fd++) close((int)fd);
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* Handlers of the host's must not run here, and nothing that it ignores shall be ignored. */
static void reset_signals(void) {
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t         none;
    for (int k = 1; k < NSIG; k++) sigaction(k, &plain, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int compiler_main(void *arg) {
    cot__spawned *s = ((pair *)arg)->s;
    int           null = open("/dev/null", O_RDWR);
    setpgid(0, 0); /* a group of its own, so that all of it can be killed */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    /* the watcher has the log as file 0 */
    if (dup2(0, 2) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) _exit(127);
    close_files(3);
    execve(s->path, s->arguments, s->environment);
    s->ending = COT__NOT_STARTED;
    s->detail = errno;
    _exit(127);
}

/* ---- the watcher ----------------------------------------------------------------------------- */

static bool is_over(const struct timespec *start, int64_t milliseconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000 >= milliseconds;
}

static void note_end(cot__spawned *s, int status) {
    if (s->ending == COT__NOT_STARTED && s->detail) return; /* exec has failed and said so */
    s->ending = WIFEXITED(status) ? COT__ENDED : COT__SIGNALLED;
    s->detail = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

static void wait_for(cot__spawned *s, pid_t compiler) {
    const struct timespec pause = {0, LOOK_NS};
    struct timespec       start;
    int                   status = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        pid_t ended = waitpid(compiler, &status, WNOHANG);
        if (ended == compiler) {
            note_end(s, status);
            return;
        }
        if (ended < 0 && errno != EINTR) return;
        if (is_over(&start, s->milliseconds)) break;
        nanosleep(&pause, NULL);
    }
    kill(-compiler, SIGKILL);
    while (waitpid(compiler, &status, 0) < 0 && errno == EINTR) {}
    s->ending = COT__TIMED_OUT;
}

static int watcher_main(void *arg) {
    pair            *p = arg;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* where the host lets its children go unwaited for; this process has a table of its own */
    sigaction(SIGCHLD, &plain, NULL);
    dup2(p->s->log, 0);
    close_files(1);
    pid_t compiler = clone(compiler_main, p->compiler + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, p);
    if (compiler < 0) p->s->detail = errno;
    else wait_for(p->s, compiler);
    _exit(0);
}

/* ---- the host -------------------------------------------------------------------------------- */

void cot__spawn(cot__spawned *s) {
    pair p;
    p.s = s;
    s->ending = COT__NOT_STARTED;
    s->detail = 0;
    pid_t watcher = clone(watcher_main, p.watcher + STACK, CLONE_VM | CLONE_VFORK, &p);
    if (watcher < 0) s->detail = errno;
    while (watcher > 0 && waitpid(watcher, NULL, __WCLONE) < 0 && errno == EINTR) {}
}
#endif
