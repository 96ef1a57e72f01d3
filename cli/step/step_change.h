/* step_change.h: gives an input another value, and makes the trace again. */
#ifndef COT_CLI_STEP_CHANGE_H
#define COT_CLI_STEP_CHANGE_H

#include "problem/traced.h"

/* `text` is "name = value", with the value as on the command line. False, with a reason in `why`,
 * when the change is not possible; then everything is as it was. If a failure is set in f, the old
 * trace could not be made again, and x has no trace. */
bool step_change(traced *x, const char *text, failure *why, failure *f);

#endif
