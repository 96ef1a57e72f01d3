/* guarded.h: a second backend: the CPU's kernels on memory that the host may not touch.
 *
 * Its storages lie in pages that can be read and written only during a call of the backend. If code
 * above src/backend loads an element by its address, it ends with a segmentation fault. 0-d values
 * are arrays of rank 0 on this backend. If code hands memory of the host to an entry as an operand
 * or a result, or memory of the backend as memory of the host, the entry says so and aborts. With
 * COT_TEST_BACKEND=guarded a test does all its work on this backend (support.c), and test_guarded.c
 * compares its bits with the CPU's. */
#ifndef COT_TEST_GUARDED_H
#define COT_TEST_GUARDED_H

#include "backend/backend.h"

extern const cot__backend guarded_backend;

/* Is p in memory of the backend? */
bool guarded_owns(const void *p);
/* The number of calls so far. */
int64_t guarded_calls(void);

#endif
