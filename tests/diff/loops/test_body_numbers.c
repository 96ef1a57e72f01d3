/* test_body_numbers.c: while a body is recorded, no function gives numbers of its values: an
 * example stands for every step, and has no number of its own. */
#include "support/body_test.h"
#include "support/tape_test.h"

BODY(cubes) { UNUSED; ys[0] = cot_mul(xs[0], cot_square(xs[0])); return 0; }
BODY(sum_of_cubes) { cubes(n, xs, m, ys, user); ys[0] = cot_sum(ys[0], COT_ALL); return 0; }

enum { SIZE = 3 };
static double           got[64];
static cot_sparse_plan *jacobian_plan, *hessian_plan; /* made outside */
static const double     ones[SIZE] = {1, 1, 1};
static char             text[512];

static cot_var y_of(cot_fn f, const cot_var *x) {
    cot_var y;
    f(1, x, 1, &y, NULL);
    return y;
}

/* Each function, its name in messages, and the advice that it gives. */
#define READ "choose by values with cot_where or cot_cond"
#define MATRIX "record the derivatives with cot_fn_jacobian"
#define SQUARE "record the derivatives with cot_fn_hessian"
#define CALLS(CALL)                                                                                                    \
    CALL(value, READ, cot_value(y_of(sum_of_cubes, x)))                                                                \
    CALL(value_i64, READ, (double)cot_value_i64(y_of(sum_of_cubes, x)))                                                \
    CALL(read, READ, cot_read(*x, got, SIZE))                                                                          \
    CALL(read_as, READ, cot_read_as(*x, COT_F64, got, SIZE))                                                           \
    CALL(vjps, "record the product with cot_vjp or cot_fn_vjp",                                                        \
         (y = y_of(cubes, x), cot_vjps(1, 1, &y, ones, 1, x, got)))                                                    \
    CALL(jvps, "record the product with cot_jvp or cot_fn_jvp",                                                        \
         (y = y_of(cubes, x), cot_jvps(1, 1, x, ones, 1, &y, got)))                                                    \
    CALL(jacobian, MATRIX, (y = y_of(cubes, x), cot_jacobian(1, &y, 1, x, COT_AUTO, got)))                             \
    CALL(hessian, SQUARE, cot_hessian(y_of(sum_of_cubes, x), 1, x, got))                                               \
    CALL(hvp, "record the product with cot_fn_jvp of a gradient", cot_hvp(y_of(sum_of_cubes, x), 1, x, ones, got))     \
    CALL(taylor_values, "record the derivatives with cot_taylor",                                                      \
         cot_taylor_values(y_of(cubes, x), 1, x, 1, ones, 2, got))                                                     \
    CALL(sparse_jacobian_plan, MATRIX,                                                                                 \
         (y = y_of(cubes, x), (plan = cot_sparse_jacobian_plan(1, &y, 1, x, COT_AUTO)) != NULL))                       \
    CALL(sparse_jacobian_plan_of, MATRIX,                                                                              \
         (plan = cot_sparse_jacobian_plan_of(cubes, NULL, 1, x, 1, COT_AUTO)) != NULL)                                 \
    CALL(sparse_hessian_plan, SQUARE, (plan = cot_sparse_hessian_plan(y_of(sum_of_cubes, x), 1, x)) != NULL)           \
    CALL(sparse_hessian_plan_of, SQUARE, (plan = cot_sparse_hessian_plan_of(sum_of_cubes, NULL, 1, x)) != NULL)        \
    CALL(sparse_jacobian, MATRIX, (y = y_of(cubes, x), cot_sparse_jacobian(jacobian_plan, 1, &y, 1, x, got)))          \
    CALL(sparse_jacobian_of, MATRIX, cot_sparse_jacobian_of(jacobian_plan, cubes, NULL, 1, x, 1, got))                 \
    CALL(sparse_hessian, SQUARE, cot_sparse_hessian(hessian_plan, y_of(sum_of_cubes, x), 1, x, got))                   \
    CALL(sparse_hessian_of, SQUARE, cot_sparse_hessian_of(hessian_plan, sum_of_cubes, NULL, 1, x, got))                \
    CALL(sparse_check, MATRIX, (y = y_of(cubes, x), cot_sparse_check(jacobian_plan, 1, &y, 1, x, ones, 1)))            \
    CALL(explain, "explain a result outside", cot_explain(y_of(sum_of_cubes, x), text, sizeof text))                   \
    CALL(report, "look at a result outside", cot_report(y_of(sum_of_cubes, x), text, sizeof text))                     \
    CALL(print_sweep, "sweep from a result outside", (cot_tape_print_sweep(y_of(sum_of_cubes, x), sink), 0))

static FILE *sink;

/* Asks for the one of the list that is next. */
static int which;
BODY(asks) {
    const cot_var   *x = xs;
    cot_sparse_plan *plan = NULL;
    cot_var          y;
    int              at = 0;
    UNUSED;
    (void)y;
#define CALL(name, instead, what)                                                                                      \
    if (at++ == which) (void)(what);
    CALLS(CALL)
#undef CALL
    cot_sparse_plan_destroy(plan);
    ys[0] = xs[0];
    return 0;
}

static const struct { const char *name, *instead; } said[] = {
#define CALL(name, instead, what) {#name, instead},
    CALLS(CALL)
#undef CALL
};

typedef cot_status (*around)(cot_var x, cot_var *y);
static cot_status in_scan(cot_var x, cot_var *y) { return cot_scan(asks, NULL, 2, 1, &x, 0, NULL, y, 0, NULL, NULL); }
static cot_status in_checkpoint(cot_var x, cot_var *y) { return cot_checkpoint(asks, NULL, 1, &x, 1, y); }
static cot_status in_cond(cot_var x, cot_var *y) {
    return cot_cond(cot_constant(x.tape, 1), asks, asks, NULL, 1, &x, 1, y);
}
static cot_status in_vmap(cot_var x, cot_var *y) {
    cot_var rows[2] = {x, x}, both = cot_stack(2, rows, 0);
    return cot_vmap(asks, NULL, 1, &both, NULL, 1, y, NULL);
}

static void bodies_give_no_numbers(void **state) {
    static const struct { const char *name; around of; const char *where; } places[] = {{"scan", in_scan, ""},
        {"checkpoint", in_checkpoint, ""}, {"cond", in_cond, " (in the then branch of [cond])"}, {"vmap", in_vmap, ""}};
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), (double[]){1, 2, 3}), y;
    sink = tmpfile();
    jacobian_plan = cot_sparse_jacobian_plan_of(cubes, NULL, 1, &x, 1, COT_AUTO);
    hessian_plan = cot_sparse_hessian_plan_of(sum_of_cubes, NULL, 1, &x);
    assert_ok(t);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (which = 0; which < (int)(sizeof said / sizeof *said); which++) {
            char want[512];
            snprintf(want, sizeof want,
                     "[%s] asked for while the body of [%s] is recorded, which stands for every step and has no "
                     "values yet; %s%s",
                     said[which].name, places[p].name, said[which].instead, places[p].where);
            for (int k = 0; k < 64; k++) got[k] = (double)NAN;
            assert_int_equal(places[p].of(x, &y), COT_VALUE);
            assert_error(t, COT_VALUE, want);
            for (int k = 0; k < 64; k++) assert_true(isnan(got[k])); /* not one number */
            cot_tape_clear_error(t);
        }
    cot_sparse_plan_destroy(jacobian_plan);
    cot_sparse_plan_destroy(hessian_plan);
    fclose(sink);
    cot_tape_destroy(t);
}

/* Values recorded before the body can be read, and so can their derivatives. */
static cot_var outside_y;
BODY(jacobian_of_outside) { UNUSED; cot_jacobian(1, &outside_y, 1, user, COT_AUTO, got); ys[0] = xs[0]; return 0; }

static void values_from_outside_have_derivatives(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y;
    outside_y = cot_square(x);
    cot_scan(jacobian_of_outside, &x, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    assert_ok(t);
    assert_near(got[0], 4, 0);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_give_no_numbers),
        cmocka_unit_test(values_from_outside_have_derivatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
