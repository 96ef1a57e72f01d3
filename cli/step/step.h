/* step.h: cotangent trace --step, a walk through the tape and the sweep in a terminal.
 *
 * May call: traces, io, output, problem. Must not touch: terminals but through its own
 * step_terminal.h. */
#ifndef COT_CLI_STEP_H
#define COT_CLI_STEP_H

#include "problem/options.h"

int run_step(const options *o, bool colour, failure *f);

#endif
