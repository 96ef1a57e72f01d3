/* step_change.h: an input gets another value, and the trace is made again. */
#ifndef COT_CLI_STEP_CHANGE_H
#define COT_CLI_STEP_CHANGE_H

#include "problem/traced.h"

/* "name = value", the value as on the command line. False with a reason in `why` when it cannot be:
 * then everything is as it was. A failure in f, instead, means that not even that could be had
 * again, and x has no trace. */
bool step_change(traced *x, const char *text, failure *why, failure *f);

#endif
