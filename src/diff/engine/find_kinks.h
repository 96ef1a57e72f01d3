/* find_kinks.h: operations that sit exactly where they have no derivative, in sentences; and the
 * refusals of smooth tapes. */
#ifndef COT_FIND_KINKS_H
#define COT_FIND_KINKS_H

#include "diff/engine/kept_adjoints.h"
#include "ops/kinks.h"

/* Does anything that wants a derivative flow into the node? (Operations without derivative are
 * themselves inactive.) */
bool cot__has_active_operand(const cot_tape *t, uint32_t i);
bool cot__operands_are_there(const cot_tape *t, uint32_t i);
/* The kinks that node i sits on, by its value and those of its operands. */
void cot__find_kinks(cot__findings *r, uint32_t i);
/* The kinks of the operations that node i stands for (a called program), if it is such a node. */
void cot__find_kinks_inside(cot__findings *r, uint32_t i);

/* On a smooth tape: does no operation on the way from xs to ys sit on a kink? Otherwise sets the
 * error. Operations in a body that is being recorded, which has no values, are watched
 * (cot__watch). */
bool cot__smooth_between(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs);
/* The same for a step of a loop, nodes from … top, that a sweep goes back through. While cot_report
 * runs (t->kinks.look), on any tape, the kinks are told to it instead. */
bool cot__smooth_step(cot_tape *t, const char *op, uint32_t from, uint32_t top, int64_t step);

#endif
