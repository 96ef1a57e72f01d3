/* bits_ops.c: every operation of the tables, on scalars and small tensors, with its derivatives. */
#include "bits/bits.h"
#include "rules/elementwise_ids.h"
#include "samples/samples.h"

#include <float.h>
#include <math.h>

/* Numbers at which functions do something else. Each is a double, and becomes what it becomes in
 * the other dtypes. */
static const double special[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -2.5,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 (double)NAN,
                                 1e-320,
                                 5e-324,
                                 DBL_MIN,
                                 1e-40,
                                 1e-9,
                                 -3e-5,
                                 1e4,
                                 -1e5,
                                 1e22,
                                 6.5e4,
                                 3.3e38,
                                 1e300,
                                 DBL_MAX,
                                 709.5,
                                 -745.2,
                                 88.9,
                                 -103.5,
                                 2147483648.0,
                                 9007199254740993.0};

/* ---- casts ----------------------------------------------------------------------------------- */

void bits_family_casts(void) {
    for (int a = 0; a < COT_DTYPE_COUNT; a++)
        for (int b = 0; b < COT_DTYPE_COUNT; b++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(TEST_COUNT(special)), special), (cot_dtype)a);
            bits_item("%s to %s", cot_dtype_name((cot_dtype)a), cot_dtype_name((cot_dtype)b));
            bits_var(cot_cast(x, (cot_dtype)b));
            bits_var(cot_cast(bits_leaf(t, (cot_dtype)a, COT_SHAPE(100), 1, -300, 300), (cot_dtype)b));
            bits_close(t);
        }
}

/* ---- elementwise ----------------------------------------------------------------------------- */

enum { POINTS = 67, AT = TEST_COUNT(special) };

/* Points of the domain, then special numbers against special numbers. */
static void points_of(int op, double x[3][POINTS + AT]) {
    test_random random = test_random_of(cot__op_of(op)->name, 7);
    for (int i = 0; i < POINTS + AT; i++) {
        double p[3];
        test_sample(op, &random, p);
        for (int k = 0; k < 3; k++) x[k][i] = i < POINTS ? p[k] : special[(i - POINTS) * (2 * k + 1) % AT];
    }
}

static void elementwise_item(int op, cot_dtype dtype, const double x[3][POINTS + AT]) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    cot_tape                    *t = cot_tape_create(NULL);
    cot_var                      xs[3];
    for (int k = 0; k < e->arity; k++)
        xs[k] = cot_leaf(cot_cast(cot_data(t, COT_F64, COT_SHAPE(POINTS + AT), x[k]), dtype));
    bits_item("%s %s", cot__op_of(op)->name, cot_dtype_name(dtype));
    bits_derivatives(test_call(op, xs), e->arity, xs);
    bits_close(t);
}

static void scalar_items(int op, cot_dtype dtype, const double x[3][POINTS + AT]) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    bits_item("%s %s", cot__op_of(op)->name, cot_dtype_name(dtype));
    for (int i = 0; i < POINTS + AT; i += i < POINTS - 8 ? 8 : 1) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[3];
        for (int k = 0; k < e->arity; k++) xs[k] = cot_scalar_of(t, dtype, x[k][i]);
        bits_derivatives(test_call(op, xs), e->arity, xs);
        bits_close(t);
    }
}

static void each_elementwise(void (*item)(int op, cot_dtype dtype, const double x[3][POINTS + AT])) {
    static double x[3][POINTS + AT];
    for (int op = 0; op < OP_elementwise_count; op++) {
        points_of(op, x);
        for (int d = 0; d < BITS_DTYPE_COUNT; d++) item(op, BITS_DTYPES[d], (const double(*)[POINTS + AT]) x);
    }
}

/* Operations on integers wrap, and some become floats. */
static void integer_items(void) {
    static const cot_dtype dtypes[] = {COT_I64, COT_I32, COT_U8, COT_BOOL};
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int d = 0; d < TEST_COUNT(dtypes); d++) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   xs[3];
            for (int k = 0; k < 3; k++) xs[k] = bits_leaf(t, dtypes[d], COT_SHAPE(40), k, -20, 200);
            bits_item("%s %s", cot__op_of(op)->name, cot_dtype_name(dtypes[d]));
            bits_var(test_call(op, xs));
            bits_close(t);
        }
}

void bits_family_elementwise(void) {
    each_elementwise(elementwise_item);
    integer_items();
}
void bits_family_elementwise_scalars(void) { each_elementwise(scalar_items); }

/* ---- structural ------------------------------------------------------------------------------ */

void bits_family_structural(void) {
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
            test_function f = function_of(&samples[i], nth_of_its_operation(&samples[i]), 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS];
            for (int k = 0; k < f.n; k++) xs[k] = test_input_of(t, BITS_DTYPES[d], &f.in[k], f.in[k].data);
            bits_item("%s %s", f.name, cot_dtype_name(BITS_DTYPES[d]));
            bits_derivatives(f.f(f.n, xs, f.user), f.n, xs);
            bits_close(t);
        }
}
