/* step_terminal.h: a terminal taken over for a while, and given back as it was whatever happens: on
 * leaving, on a deadly signal, while stopped. Everything of the walk that depends on the system is
 * behind this. */
#ifndef COT_CLI_STEP_TERMINAL_H
#define COT_CLI_STEP_TERMINAL_H

#include <stddef.h>

#include "io/failure.h"

/* Could it be done? Says why not, and that --step can be left out. */
bool terminal_usable(failure *f);
/* Raw keys, the other screen, no cursor. On failure nothing is left to close. */
bool terminal_open(failure *f);
void terminal_close(void);

void terminal_size(int *rows, int *columns);
/* False when there is nobody to write for. */
bool terminal_write(const char *bytes, size_t n);

/* Waits for a key. TERMINAL_REDRAW: the screen has to be drawn again; TERMINAL_END: no more keys
 * will come, or it was interrupted. */
enum { TERMINAL_REDRAW = -1, TERMINAL_END = -2 };
int terminal_key(void);
/* Has more been typed already? Then drawing can wait. */
bool terminal_has_more(void);

/* Around what may take long: in between, Ctrl-C ends the command and Ctrl-Z stops it at once. */
void terminal_busy(bool busy);

#endif
