/* cot_check_grads passes right derivatives, of every shape and order, and catches wrong ones:
 * signs, factors, missing terms, second order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cotangent.h>

#define ARRAY(memory, ...)                                                                                             \
    ((cot_array){COT_F64, COT_SHAPE(__VA_ARGS__), (int64_t)(sizeof(memory) / sizeof(double)), (memory)})

/* ---- what is right passes -------------------------------------------------------------------- */

static cot_var smooth_unary(int n, const cot_var *xs, void *user) {
    return (void)n, ((cot_var(*const *)(cot_var))user)[0](xs[0]);
}

static void smooth_functions_pass_at_order_2(void **state) {
    (void)state;
    static cot_var (*const functions[])(cot_var) = {(cot_sin),  (cot_exp), (cot_tanh),   (cot_log),
                                                    (cot_sqrt), (cot_erf), (cot_square), (cot_sigmoid)};
    double x[] = {0.3, 1.7, 2.5, 40.0};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        cot_check_report report;
        cot_var (*one[1])(cot_var) = {functions[i]};
        cot_array  at = ARRAY(x, 2, 2);
        cot_status status = cot_check_grads(smooth_unary, one, 1, &at, 2, &report);
        if (status != COT_OK) fail_msg("function %d: %s", (int)i, report.message);
        assert_string_equal(report.message, "");
        assert_true(report.jvp_error <= 1 && report.vjp_error <= 1 && report.second_error <= 1);
    }
}

static cot_var matmul_softmax(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_softmax(cot_add(cot_matmul(xs[0], xs[1]), xs[2]), 1); /* (3,4) (4,2) (2,) -> (3,2) */
}
static cot_var scalar_mix(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_div(cot_mul(xs[0], cot_log(xs[1])), cot_add(xs[0], xs[1]));
}
static cot_var reductions(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    cot_var l = cot_logsumexp(xs[0], COT_AXES(1)), m = cot_max(xs[0], COT_AXES(1)),
            s = cot_norm(cot_transpose(xs[0]), 2, COT_AXES(0));
    return cot_mul(cot_add(l, m), s);
}
static cot_var indexing(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    cot_var  index = cot_data(xs[0].tape, COT_I64, COT_SHAPE(3), (int64_t[]){1, 0, 1});
    cot_var  rows = cot_square(cot_take(xs[0], index, 0)), part = cot_slice(xs[0], 1, 1, COT_END, 2);
    return cot_add(cot_sum(rows, COT_ALL), cot_sum(cot_exp(part), COT_ALL));
}
static cot_var linear(int n, const cot_var *xs, void *user) {
    return (void)n, (void)user, cot_mul(3.0, cot_transpose(xs[0]));
}
static cot_var same(int n, const cot_var *xs, void *user) { return (void)n, (void)user, xs[0]; }
static cot_var constant(int n, const cot_var *xs, void *user) {
    return (void)n, (void)user, cot_ones(xs[0].tape, COT_F64, COT_SHAPE(2));
}
static cot_var steep(int n, const cot_var *xs, void *user) {
    return (void)n, (void)user, cot_sin(cot_mul(1000.0, xs[0]));
}
/* Its value loses ten digits, its derivative none. */
static cot_var noisy(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_sub(cot_add(cot_sin(xs[0]), 1e6), 1e6);
}

static void tensors_scalars_and_awkward_functions_pass_at_order_2(void **state) {
    (void)state;
    double a[12], b[8], c[2] = {0.1, -0.2}, s1[1] = {1.5}, s2[1] = {2.5}, big[1] = {1e6}, small[2] = {1e-7, -3e-9},
                        zero[2] = {0, 0};
    for (int i = 0; i < 12; i++) a[i] = sin(i * 1.3) * 2;
    for (int i = 0; i < 8; i++) b[i] = cos(i * 0.7);
    cot_array dense[3] = {ARRAY(a, 3, 4), ARRAY(b, 4, 2), ARRAY(c, 2)};
    cot_array scalars[2] = {{COT_F64, COT_SCALAR, 1, s1}, {COT_F64, COT_SCALAR, 1, s2}},
              large[2]   = {{COT_F64, COT_SCALAR, 1, big}, scalars[1]};
    cot_array tiny[1] = {ARRAY(small, 2)}, zeros[1] = {ARRAY(zero, 2)};
    const struct { const char *name; cot_function f; int n; const cot_array *xs;
    } cases[] = {
        {"matmul, softmax", matmul_softmax, 3, dense},
        {"scalars", scalar_mix, 2, scalars},
        {"a large scalar", scalar_mix, 2, large},
        {"reductions", reductions, 1, dense},
        {"indexing", indexing, 1, dense},
        {"linear", linear, 1, dense},
        {"identity", same, 1, dense},
        {"constant", constant, 1, dense},
        {"steep", steep, 1, scalars},
        {"noisy", noisy, 1, scalars},
        {"tiny inputs", steep, 1, tiny},
        {"at zero", steep, 1, zeros},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cot_check_report report;
        cot_status       status = cot_check_grads(cases[i].f, NULL, cases[i].n, cases[i].xs, 2, &report);
        if (status != COT_OK || report.message[0])
            fail_msg("%s: %s: %s", cases[i].name, cot_status_name(status), report.message);
        /* no report asked for */
        assert_int_equal(cot_check_grads(cases[i].f, NULL, cases[i].n, cases[i].xs, 1, NULL), COT_OK);
    }
}

/* ---- what is wrong does not ------------------------------------------------------------------ */

/* y = x0³ x1, elementwise, with rules that are off by a factor, and a second derivative that is. */
typedef struct faults { double jvp0, jvp1, vjp0, vjp1; bool second, numbers, no_jvp, no_vjp; } faults;

static int cube_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    const double *a = xs[0].data, *b = xs[1].data;
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = a[i] * a[i] * a[i] * b[i];
    return 0;
}
static cot_var slope0(const cot_var *xs, bool detached) {
    cot_var x = detached ? cot_detach(xs[0]) : xs[0];
    return cot_mul(3.0, cot_mul(cot_square(x), xs[1]));
}
static cot_var slope1(const cot_var *xs) { return cot_mul(cot_square(xs[0]), xs[0]); }
static int cube_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    const faults *f = user;
    (void)n, (void)y;
    xbars[0] = cot_mul(f->vjp0, cot_mul(ybar, slope0(xs, f->second)));
    if (f->vjp1 != 0) xbars[1] = cot_mul(f->vjp1, cot_mul(ybar, slope1(xs)));
    return 0;
}
static int cube_jvp(int n, const cot_var *xs, cot_var y, const cot_var *dxs, cot_var *dy, void *user) {
    const faults *f = user;
    (void)n, (void)y;
    if (cot_is_valid(dxs[0])) *dy = cot_mul(f->jvp0, cot_mul(dxs[0], slope0(xs, f->second)));
    cot_var second = cot_is_valid(dxs[1]) ? cot_mul(f->jvp1, cot_mul(dxs[1], slope1(xs))) : dxs[1];
    if (cot_is_valid(second)) *dy = cot_is_valid(*dy) ? cot_add(*dy, second) : second;
    return 0;
}
static int cube_vjp_numbers(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                            void *user) {
    const faults *f = user;
    const double *a = xs[0].data, *b = xs[1].data, *g = ybar->data;
    (void)n;
    for (int64_t i = 0; i < y->size; i++) {
        ((double *)xbars[0].data)[i] = f->vjp0 * g[i] * 3 * a[i] * a[i] * b[i];
        ((double *)xbars[1].data)[i] = f->vjp1 * g[i] * a[i] * a[i] * a[i];
    }
    return 0;
}
static int cube_jvp_numbers(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy,
                            void *user) {
    const faults *f = user;
    const double *a = xs[0].data, *b = xs[1].data, *da = dxs[0].data, *db = dxs[1].data;
    (void)n;
    for (int64_t i = 0; i < y->size; i++)
        ((double *)dy->data)[i] =
            (da ? f->jvp0 * da[i] * 3 * a[i] * a[i] * b[i] : 0) + (db ? f->jvp1 * db[i] * a[i] * a[i] * a[i] : 0);
    return 0;
}

static cot_var cube(int n, const cot_var *xs, void *user) {
    static const cot_custom kinds[2][2][2] = {
        {{{.name = "cube", .value = cube_value, .vjp = cube_vjp, .jvp = cube_jvp},
          {.name = "cube", .value = cube_value, .jvp = cube_jvp}},
         {{.name = "cube", .value = cube_value, .vjp = cube_vjp}, {.name = "cube", .value = cube_value}}},
        {{{.name = "cube", .value = cube_value, .vjp_numbers = cube_vjp_numbers, .jvp_numbers = cube_jvp_numbers},
          {.name = "cube", .value = cube_value, .jvp_numbers = cube_jvp_numbers}},
         {{.name = "cube", .value = cube_value, .vjp_numbers = cube_vjp_numbers},
          {.name = "cube", .value = cube_value}}},
    };
    const faults *f = user;
    return cot_call(&kinds[f->numbers][f->no_jvp][f->no_vjp], n, xs, user);
}

static void wrong_rules_are_caught_and_the_report_says_where(void **state) {
    (void)state;
    static const struct { faults f; int order; cot_status status; const char *says[3];
    } cases[] = {
        /* right ones, every combination */
        {{1, 1, 1, 1, .second = false}, 2, COT_OK, {""}},
        {{1, 1, 1, 1, .no_jvp = true}, 2, COT_OK, {""}},
        {{1, 1, 1, 1, .no_vjp = true}, 2, COT_OK, {""}},
        {{1, 1, 1, 1, .numbers = true}, 1, COT_OK, {""}},
        {{1, 1, 1, 1, .numbers = true, .no_jvp = true}, 1, COT_OK, {""}},
        {{1, 1, 1, 1, .numbers = true, .no_vjp = true}, 1, COT_OK, {""}},
        /* a sign */
        {{-1, 1, -1, 1, .second = false}, 1, COT_GRAD, {"xs[0] along direction 0", "jvp gives", "central differences"}},
        {{1, 1, -1, 1, .second = false}, 1, COT_GRAD, {"xs[0] along direction 0", "<w, jvp(v)>", "<vjp(w), v>"}},
        {{1, -1, 1, -1, .second = false}, 1, COT_GRAD, {"xs[1] along direction 1", "jvp gives", "central differences"}},
        {{1, 1, 1, -1, .no_jvp = true}, 1, COT_GRAD, {"xs[1] along direction 1", "jvp gives", "central differences"}},
        {{-1, 1, 1, 1, .no_vjp = true}, 1, COT_GRAD, {"xs[0] along direction 0", "jvp gives", "central differences"}},
        {{1, 1, -1, 1, .numbers = true}, 1, COT_GRAD, {"xs[0] along direction 0", "vjp against jvp", ""}},
        {{1, 1, -1, 1, .numbers = true, .no_jvp = true},
         1,
         COT_GRAD,
         {"xs[0] along direction 0", "vjp against differences", ""}},
        {{1, -1, 1, 1, .numbers = true, .no_vjp = true}, 1, COT_GRAD, {"xs[1] along direction 1", "jvp gives", ""}},
        /* a factor that is nearly right, a term that was forgotten, a NaN */
        {{1 + 1e-6, 1, 1 + 1e-6, 1, .second = false}, 1, COT_GRAD, {"xs[0] along direction 0", "jvp gives", ""}},
        {{1, 1, 1 + 1e-11, 1, .second = false}, 1, COT_GRAD, {"xs[0] along direction 0", "vjp against jvp", ""}},
        {{1, 1, 1, 0, .second = false}, 1, COT_GRAD, {"xs[1] along direction 1", "vjp against jvp", ""}},
        {{1, (double)NAN, 1, 1, .second = false}, 1, COT_GRAD, {"xs[1] along direction 1", "jvp gives", "nan"}},
        {{1, 1, 1, (double)NAN, .second = false}, 1, COT_GRAD, {"xs[1] along direction 1", "vjp against jvp", "nan"}},
        /* right to first order only */
        {{1, 1, 1, 1, .second = true}, 1, COT_OK, {""}},
        {{1, 1, 1, 1, .second = true},
         2,
         COT_GRAD,
         {"second order: xs[0] along direction 0", "of the gradient of xs[0]", "jvp gives"}},
        {{1, 1, 1, 1, .numbers = true},
         2,
         COT_GRAD,
         {"second order: [cube] has only vjp_numbers and jvp_numbers", "differentiated again", ""}},
        /* nothing at all */
        {{1, 1, 1, 1, .no_jvp = true, .no_vjp = true}, 1, COT_GRAD, {"[cube] has no derivative", "", ""}},
    };
    double    a[3] = {0.5, -1.25, 2}, b[3] = {1.5, 0.75, -3}, p[1] = {1.5}, q[1] = {-0.5};
    cot_array tensors[2] = {ARRAY(a, 3), ARRAY(b, 3)},
              scalars[2] = {{COT_F64, COT_SCALAR, 1, p}, {COT_F64, COT_SCALAR, 1, q}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int scalar = 0; scalar < 2; scalar++) {
            cot_check_report report;
            faults           f = cases[i].f;
            cot_status       status = cot_check_grads(cube, &f, 2, scalar ? scalars : tensors, cases[i].order, &report);
            if (status != cases[i].status) fail_msg("case %d: %s: %s", (int)i, cot_status_name(status), report.message);
            if (status == COT_OK) assert_string_equal(report.message, "");
            for (int k = 0; k < 3 && cases[i].says[k]; k++)
                if (!strstr(report.message, cases[i].says[k]))
                    fail_msg("case %d: \"%s\" is not in: %s", (int)i, cases[i].says[k], report.message);
            bool worse = report.jvp_error > 1 || report.vjp_error > 1 || report.second_error > 1;
            if (strstr(report.message, "along direction")) assert_true(worse);
            if (status == COT_OK) assert_false(worse);
        }
}

static cot_var detached(int n, const cot_var *xs, void *user) {
    return (void)n, (void)user, cot_mul(xs[0], cot_detach(xs[0]));
}
static cot_var kink(int n, const cot_var *xs, void *user) { return (void)n, (void)user, cot_relu(xs[0]); }
static cot_var not_a_number(int n, const cot_var *xs, void *user) {
    return (void)n, (void)user, cot_log(cot_neg(xs[0]));
}
static cot_var stateful(int n, const cot_var *xs, void *user) {
    return (void)n, cot_mul(xs[0], (*(double *)user += 1));
}
static cot_var growing(int n, const cot_var *xs, void *user) {
    (void)n;
    return cot_slice(xs[0], 0, 0, 1 + (int64_t)(*(double *)user += 1) % 2, 1);
}
static cot_var broken(int n, const cot_var *xs, void *user) { return (void)n, (void)user, cot_matmul(xs[0], xs[0]); }
static cot_var nothing(int n, const cot_var *xs, void *user) { return (void)n, (void)xs, (void)user, cot_number(1); }
static cot_var single(int n, const cot_var *xs, void *user) { return (void)n, (void)user, cot_cast(xs[0], COT_F32); }

static void functions_that_cannot_be_checked_say_why(void **state) {
    (void)state;
    double    x[6] = {1, 2, 3, 4, 5, 6}, zero[1] = {0}, counter = 0;
    cot_array at = ARRAY(x, 2, 3), origin = ARRAY(zero, 1), wrong = at, other = at;
    wrong.size = 5;
    other.dtype = COT_F32;
    const struct { cot_function f; const cot_array *at; int order; cot_status status; const char *says; } cases[] = {
        {detached, &at, 1, COT_GRAD, "jvp gives"},
        {kink, &origin, 1, COT_GRAD, "jvp gives"},
        {not_a_number, &at, 1, COT_GRAD, "there are no central differences: no numbers on both sides of this point"},
        {stateful, &at, 1, COT_VALUE, "f is not a function of its xs alone"},
        {growing, &at, 1, COT_SHAPE, " elements where it returned "},
        {broken, &at, 1, COT_SHAPE, "[matmul]"},
        {nothing, &at, 1, COT_VAR, "[check_grads] f returned no value of the tape that its xs are on"},
        {single, &at, 1, COT_DTYPE, "[check_grads] f returned f32; derivatives are checked in f64"},
        {same, &wrong, 1, COT_SHAPE, "xs[0] has size 5"},
        {same, &other, 1, COT_DTYPE, "xs[0] has dtype f32"},
        {same, &at, 3, COT_VALUE, "order = 3"},
        {NULL, &at, 1, COT_VALUE, "f NULL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cot_check_report report;
        cot_status       status = cot_check_grads(cases[i].f, &counter, 1, cases[i].at, cases[i].order, &report);
        if (status != cases[i].status || !strstr(report.message, cases[i].says))
            fail_msg("case %d: %s: %s", (int)i, cot_status_name(status), report.message);
    }
    assert_int_equal(cot_check_grads(same, NULL, 0, &at, 1, NULL), COT_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smooth_functions_pass_at_order_2),
        cmocka_unit_test(tensors_scalars_and_awkward_functions_pass_at_order_2),
        cmocka_unit_test(wrong_rules_are_caught_and_the_report_says_where),
        cmocka_unit_test(functions_that_cannot_be_checked_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
