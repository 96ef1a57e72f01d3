/* spawn.h: a program of the system is run to its end, without a shell, and without the host
 * noticing: neither its wait() nor SIGCHLD see a child. */
#ifndef COT_NATIVE_SPAWN_H
#define COT_NATIVE_SPAWN_H

#include <stdint.h>

typedef enum cot__ending {
    COT__ENDED,       /* detail: its exit status */
    COT__SIGNALLED,   /* detail: the signal */
    COT__TIMED_OUT,   /* it was killed, with all it had started */
    COT__NOT_STARTED  /* detail: errno */
} cot__ending;

typedef struct cot__spawned {
    const char  *path; /* absolute */
    char *const *arguments, *const *environment;
    int          log; /* a file for what it says on its standard error */
    int64_t      milliseconds;
    cot__ending  ending;
    int          detail;
} cot__spawned;

/* Returns when it has ended. All signals of the calling thread must be blocked, and the thread must
 * be one that nobody else waits for. If the host ends, the program is killed. */
void cot__spawn(cot__spawned *s);

#endif
