/* revolve.h: which states of a loop to keep, so that its steps can be reversed with few of them.
 *
 * With s states (the first one counts) and each step run at most r times, C(s + r, s) steps can be
 * reversed. This is Griewank's binomial checkpointing: no other choice of states runs fewer steps
 * again. */
#ifndef COT_REVOLVE_H
#define COT_REVOLVE_H

#include <stdint.h>

/* C(s + r, s), or INT64_MAX when that is larger; 0 for r < 0. */
int64_t cot__binomial(int64_t s, int64_t r);
/* `steps` steps (at least 2) that begin at a kept state shall be reversed with s states, this one
 * included. Returns after how many steps the next state should be kept. With s = 1 no other state
 * is kept: all steps but the last. */
int64_t cot__revolve_split(int64_t steps, int64_t s);

#endif
