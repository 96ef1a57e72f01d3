/* fail_malloc.h: an allocator that fails on demand, linked into a test. */
#ifndef COT_FAIL_MALLOC_H
#define COT_FAIL_MALLOC_H

#include <stdbool.h>

/* Allocation number `at` from now on fails, counted from 1; with later_too all later ones fail as
 * well. 0: none fails. */
void fail_malloc(long at, bool later_too);
/* Has an allocation failed? */
bool fail_malloc_did(void);

#endif
