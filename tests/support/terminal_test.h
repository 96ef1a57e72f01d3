/* terminal_test.h: pseudo-terminals for tests. A system may have none, as in a bare chroot without
 * /dev/pts; then tests that need one say so and are skipped. Include it after _GNU_SOURCE and
 * cmocka.h. */
#ifndef COT_TERMINAL_TEST_H
#define COT_TERMINAL_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens both ends. False, with errno, if that fails. */
static inline bool try_terminal(int *master, int *slave) {
    *slave = -1;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master >= 0 && grantpt(*master) == 0 && unlockpt(*master) == 0)
        *slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave >= 0) return true;
    int reason = errno;
    if (*master >= 0) close(*master);
    *master = -1;
    errno = reason;
    return false;
}

/* Skips the test if there are no pseudo-terminals. A lack of descriptors is the test's own
 * mistake. */
static inline void take_terminal(int *master, int *slave) {
    if (try_terminal(master, slave)) return;
    assert_true(errno != EMFILE && errno != ENFILE && errno != ENOMEM);
    print_message(
        "skipped: no pseudo-terminal can be opened here (%s); that takes /dev/ptmx, and devpts mounted on /dev/pts\n",
        strerror(errno));
    skip();
}

#endif
