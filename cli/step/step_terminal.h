/* step_terminal.h: takes over the terminal for a while, and gives it back as it was in all cases:
 * at the end, on a deadly signal, while stopped. All parts of the walk that depend on the system
 * are behind this header. */
#ifndef COT_CLI_STEP_TERMINAL_H
#define COT_CLI_STEP_TERMINAL_H

#include <stddef.h>

#include "io/failure.h"

/* Can the terminal be used? If not, f says why, and that --step can be left out. */
bool terminal_usable(failure *f);
/* Opens: raw keys, the other screen, no cursor. After a failure nothing needs to be closed. */
bool terminal_open(failure *f);
void terminal_close(void);

void terminal_size(int *rows, int *columns);
/* False when the terminal is gone. */
bool terminal_write(const char *bytes, size_t n);

/* Waits for a key. TERMINAL_REDRAW: the screen must be drawn again. TERMINAL_END: no more keys will
 * come, or a signal ended the walk. */
enum { TERMINAL_REDRAW = -1, TERMINAL_END = -2 };
int terminal_key(void);
/* Has more been typed already? Then drawing can be left for later. */
bool terminal_has_more(void);

/* Encloses work that may take long: during it Ctrl-C ends the command and Ctrl-Z stops it at
 * once. */
void terminal_busy(bool busy);

#endif
