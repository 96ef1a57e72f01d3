/* fail_malloc.h: an allocator that fails on demand, linked into a test. */
#ifndef COT_FAIL_MALLOC_H
#define COT_FAIL_MALLOC_H

#include <stdbool.h>

/* Allocation number `at` from now on fails, counted from 1, and all later ones if asked; 0:
 * none. */
void fail_malloc(long at, bool later_too);
/* Has it come to that? */
bool fail_malloc_did(void);

#endif
