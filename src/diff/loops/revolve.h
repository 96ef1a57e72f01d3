/* revolve.h: which states of a loop to keep, so that its steps can be taken back in reverse order
 * with few of them.
 *
 * With s states (the first one counts) and each step run at most r times, C(s + r, s) steps can be
 * reversed: Griewank's binomial checkpointing, whose total number of steps run again is the least
 * possible. */
#ifndef COT_REVOLVE_H
#define COT_REVOLVE_H

#include <stdint.h>

/* C(s + r, s), or INT64_MAX when that is larger; 0 for r < 0. */
int64_t cot__binomial(int64_t s, int64_t r);
/* From a kept state, `steps` steps (at least 2) shall be reversed with s states, this one included:
 * after how many steps to keep the next one. s = 1: all but the last, where nothing more is
 * kept. */
int64_t cot__revolve_split(int64_t steps, int64_t s);

#endif
