/* structural_test.h: the common part of tests of structural operations: operands in one line, and
 * results compared with a list. */
#ifndef COT_STRUCTURAL_TEST_H
#define COT_STRUCTURAL_TEST_H

#include "support/tape_test.h"

enum { MAX_SIZE = 256 }; /* most elements of a result that is compared */

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define S COT_SHAPE
#define O COT_SCALAR
#define REALS(shape, ...) cot_data(t, COT_F64, shape, (const double[]){__VA_ARGS__})
#define INTS(shape, ...) cot_data(t, COT_I64, shape, (const int64_t[]){__VA_ARGS__})
#define STACK(n, axis, ...) cot_stack(n, (cot_var[]){__VA_ARGS__}, axis)
#define CONCAT(n, axis, ...) cot_concat(n, (cot_var[]){__VA_ARGS__}, axis)

static inline int64_t size_of(cot_shape s) {
    int64_t n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    return n;
}

static inline bool near(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * (1 + fabs(b)) || (isnan(a) && isnan(b));
}

static inline void assert_shape(cot_var x, cot_shape s) {
    cot_shape z = cot_shape_of(x);
    assert_int_equal(z.ndim, s.ndim);
    for (int k = 0; k < s.ndim; k++) assert_int_equal(z.dim[k], s.dim[k]);
}

/* The elements of x equal the list, to within rounding. */
static inline void assert_values(cot_var x, cot_shape shape, const double *want) {
    double  have[MAX_SIZE];
    int64_t n = size_of(shape);
    assert_ok(x.tape);
    assert_shape(x, shape);
    assert_int_equal(cot_read(x, have, n), COT_OK);
    for (int64_t i = 0; i < n; i++)
        if (!(have[i] == want[i] || near(have[i], want[i], 1e-14)))
            fail_msg("element %d is %.17g, not %.17g", (int)i, have[i], want[i]);
}
#define VALUES(x, shape, ...) assert_values(x, shape, (const double[]){__VA_ARGS__})

static inline cot_var iota(cot_tape *t, cot_shape shape) {
    return cot_reshape(cot_arange(t, COT_F64, 0, (double)size_of(shape), 1), shape);
}

#endif
