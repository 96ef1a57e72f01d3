/* inplace_test.h: what the tests of writes in place share: leaves of known elements, and what is
 * read of them. */
#ifndef COT_INPLACE_TEST_H
#define COT_INPLACE_TEST_H

#include "support/body_test.h"
#include "support/tape_test.h"

static const double start[4] = {1.5, -2.0, 0.75, 3.0}, other[4] = {0.5, 4.0, -1.25, 2.0};

static inline cot_tape *open_tape(void) { return cot_tape_create(NULL); }

static inline cot_var leaf(cot_tape *t, int n, const double *v) { return cot_tensor(t, COT_F64, COT_SHAPE(n), v); }

static inline void assert_values(cot_var x, int n, const double *want) {
    double got[64];
    assert_int_equal(cot_read(x, got, n), COT_OK);
    for (int i = 0; i < n; i++) assert_near(got[i], want[i], 1e-13);
}

static inline void assert_grads(cot_var x, int n, const double *want) {
    double got[64];
    assert_int_equal(cot_read_grad(x, got, n), COT_OK);
    for (int i = 0; i < n; i++) assert_near(got[i], want[i], 1e-12);
}

#endif
