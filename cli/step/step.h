/* step.h: cotangent trace --step, a walk through the tape and the sweep in a terminal. */
#ifndef COT_CLI_STEP_H
#define COT_CLI_STEP_H

#include "inputs/options.h"

int run_step(const options *o, bool colour, failure *f);

#endif
