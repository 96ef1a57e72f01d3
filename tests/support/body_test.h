/* body_test.h: how tests write functions: as cot_fn (a body), of lists of values, and as
 * cot_function, with one result. */
#ifndef COT_BODY_TEST_H
#define COT_BODY_TEST_H

#include <cotangent.h>

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED (void)n, (void)xs, (void)m, (void)ys, (void)user
#define WHOLE(name) static cot_var name(int n, const cot_var *x, void *user)
#define IGNORE (void)n, (void)user

#endif
