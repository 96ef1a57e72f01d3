/* One set of elementary functions: for every elementwise operation a recorded scalar, an element of
 * a tensor and a plain number have the same bits, values and gradients, on every instruction set,
 * also where arguments are hard: not finite, subnormal, huge, next to multiples of pi/2 and to the
 * points where formulas change. */
/* ctest: timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "base/cpu.h"

#include <math.h>
#include <stdio.h>

#define INFO(op) (&cot__elementwise_table[op])
#define EACH_OP(op) for (int op = 0; op < OP_elementwise_count; op++)
#define EACH_ISA(isa) for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1))

static const double hard[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 2, 3, -3, 0x1p-1074, -0x1p-1070, 0x1p-1022, 0x1p-149, 0x1p-126, 1e-30, -1e-10,
    1.5707963267948966, -3.141592653589793, 11, 355, 0x1p16, 65537.25, 0x1p20, 1048577.5, -3e7, 1e22,
    0x1.6ac5b262ca1ffp849, -1e300, 0x1.fffffffffffffp1023, 3.4e38, 88.75, 89.3, -88.7, -104, 40, -40, 709.7, 710.2,
    -745, -650, -751, 0.625, 0.75, 0.9999999999999999, 1.0000000000000002, 1.0625, 20, 28, 39, (double)INFINITY,
    -(double)INFINITY, (double)NAN};
static const double seeds[] = {1, -1.25, 0, -0.0, 0x1.921fb54442d18p1};
enum { HARD = TEST_COUNT(hard), POINTS = 1200 };

typedef struct results {
    double z[POINTS], g[3][POINTS];
} results;
static double  x[3][POINTS], seed[POINTS];
static results first, ours;

/* Each hard argument meets some others; the rest are samples of the domain. */
static void fill(int op) {
    test_random r = test_random_of(INFO(op)->name, 7);
    for (int i = 0; i < POINTS; i++) {
        double p[3] = {hard[i % HARD], hard[i * 7 / HARD % HARD], hard[i * 11 / HARD % HARD]};
        if (i >= 1000) test_sample(op, &r, p);
        for (int k = 0; k < 3; k++) x[k][i] = p[k];
        seed[i] = seeds[i % TEST_COUNT(seeds)];
    }
}

static cot_var tensor_of(cot_tape *t, cot_dtype d, const double *data) {
    return cot_leaf(cot_cast(cot_data(t, COT_F64, COT_SHAPE(POINTS), data), d));
}

static bool differentiable(int op) { return INFO(op)->partial[0] || INFO(op)->partial[1] || INFO(op)->partial[2]; }

static void as_tensors(int op, cot_dtype d, results *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3], y;
    for (int k = 0; k < INFO(op)->arity; k++) xs[k] = tensor_of(t, d, x[k]);
    y = test_call(op, xs);
    cot_read(y, to->z, POINTS);
    if (differentiable(op)) cot_backward_seeded(y, tensor_of(t, d, seed));
    for (int k = 0; k < INFO(op)->arity && INFO(op)->partial[k]; k++) cot_read_grad(xs[k], to->g[k], POINTS);
    test_tape_ok(t, INFO(op)->name);
    cot_tape_destroy(t);
}

static void as_scalars(int op, cot_dtype d, results *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_mark  m = cot_tape_mark(t);
    for (int i = 0; i < POINTS; i++) {
        cot_var xs[3], y;
        for (int k = 0; k < INFO(op)->arity; k++) xs[k] = cot_scalar_of(t, d, x[k][i]);
        y = test_call(op, xs);
        to->z[i] = cot_value(y);
        if (differentiable(op)) cot_backward_seeded(y, cot_scalar_of(t, d, seed[i]));
        for (int k = 0; k < INFO(op)->arity && INFO(op)->partial[k]; k++) to->g[k][i] = cot_grad_value(xs[k]);
        test_tape_ok(t, INFO(op)->name);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
}

static void compare(int op, const char *what, cot_dtype d, bool gradients) {
    for (int i = 0; i < POINTS; i++) {
        TEST_CHECK(test_same(ours.z[i], first.z[i]), "%s of %s in %s, %s, at (%a, %a, %a): %a, a plain tensor %a", what,
                   INFO(op)->name, cot_dtype_name(d), cot__isa_name(cot__cpu_isa()), x[0][i], x[1][i], x[2][i],
                   ours.z[i], first.z[i]);
        for (int k = 0; gradients && k < INFO(op)->arity && INFO(op)->partial[k]; k++)
            /* a sweep over scalars passes over zeros, whatever their sign */
            TEST_CHECK(test_equal(ours.g[k][i], first.g[k][i]),
                       "%s of %s in %s, %s, gradient %d of %a at (%a, %a, %a): %a, a plain tensor %a", what,
                       INFO(op)->name, cot_dtype_name(d), cot__isa_name(cot__cpu_isa()), k, seed[i], x[0][i], x[1][i],
                       x[2][i], ours.g[k][i], first.g[k][i]);
    }
}

static void each_dtype(int op, cot_dtype d) {
    fill(op);
    assert_true(cot__cpu_use(COT__ISA_PLAIN));
    as_tensors(op, d, &first);
    EACH_ISA(isa) {
        assert_true(cot__cpu_use(isa));
        as_tensors(op, d, &ours);
        compare(op, "an element", d, true);
        as_scalars(op, d, &ours);
        compare(op, "a scalar", d, true);
    }
    cot__cpu_use(cot__cpu_best());
}

static void scalars_elements_and_instruction_sets_agree_in_f64(void **state) {
    (void)state;
    EACH_OP(op) each_dtype(op, COT_F64);
    test_verdict();
}

static void scalars_elements_and_instruction_sets_agree_in_f32(void **state) {
    (void)state;
    EACH_OP(op) each_dtype(op, COT_F32);
    test_verdict();
}

/* Numbers alone make a number. */
static void plain_numbers_have_the_same_bits(void **state) {
    (void)state;
    EACH_OP(op) {
        fill(op);
        as_tensors(op, COT_F64, &first);
        for (int i = 0; i < POINTS; i++) {
            cot_var xs[3];
            for (int k = 0; k < INFO(op)->arity; k++) xs[k] = cot_number(x[k][i]);
            ours.z[i] = cot_value(test_call(op, xs));
        }
        compare(op, "a number", COT_F64, false);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_elements_and_instruction_sets_agree_in_f64),
        cmocka_unit_test(scalars_elements_and_instruction_sets_agree_in_f32),
        cmocka_unit_test(plain_numbers_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
