/* replay.h: operations done once more: on other operands (reapply.c), and for a batch at once by
 * the rules that records name (ops/batch.h).
 *
 * May call: base, rules, backend, tape, the checks of structural.h and the operations themselves.
 * Must not touch: derivatives; a rule is found in its record. */
#ifndef COT_REPLAY_H
#define COT_REPLAY_H

#include "ops/batch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/structural.h"

#endif
