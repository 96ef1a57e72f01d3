/* body_test.h: how tests write functions: of lists of values, as cot_fn (a body), and of one
 * result, as cot_function (the whole). */
#ifndef COT_BODY_TEST_H
#define COT_BODY_TEST_H

#include <cotangent.h>

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED (void)n, (void)xs, (void)m, (void)ys, (void)user
#define WHOLE(name) static cot_var name(int n, const cot_var *x, void *user)
#define IGNORE (void)n, (void)user

#endif
