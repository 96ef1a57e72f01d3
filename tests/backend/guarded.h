/* guarded.h: a second backend: the CPU's kernels on memory that the host may not touch.
 *
 * Its storages lie in pages that can be read and written inside of a call of the backend only.
 * Whoever above src/backend loads an element by its address ends with a segmentation fault. 0-d
 * values are arrays of rank 0 there, too. Whoever hands memory of the host to an entry as operand
 * or result, or the other way round, is told so and ends with abort(). Tests
 * that are run with COT_TEST_BACKEND=guarded do all their work on it (support.c), and
 * test_guarded.c compares its bits with the CPU's. */
#ifndef COT_TEST_GUARDED_H
#define COT_TEST_GUARDED_H

#include "backend/backend.h"

extern const cot__backend guarded_backend;

/* Is p in memory of the backend? */
bool guarded_owns(const void *p);
/* How many calls there were. */
int64_t guarded_calls(void);

#endif
