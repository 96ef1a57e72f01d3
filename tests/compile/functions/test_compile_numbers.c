/* Functions of the user's whose derivatives are in numbers (vjp_numbers, jvp_numbers), in compiled
 * functions: the bits of the tape, the same errors, no memory in a run. */
#include "support/body_test.h"
#include "support/support.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>

enum { INPUTS = 2, ELEMENTS = 6 + 3 };
static const cot_type TYPES[INPUTS] = {{COT_F64, {2, {2, 3}}}, {COT_F64, {1, {3}}}};

/* y[i][k] = c x[k][i] w[k]: of a matrix (3, 2) that is a transposed one, and a vector. */
typedef struct asked { double c; int vjp, jvp, code; } asked;
static asked mine;

static const double *at(const cot_array *x) { return x->data; }

static int scaled(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    for (int k = 0; k < 6; k++) ((double *)y->data)[k] = ((asked *)user)->c * at(&xs[0])[k] * at(&xs[1])[k / 2];
    return 0;
}
/* It adds to what it is given, which must be zeros, also where nobody wants it. */
static int scaled_vjp(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                      void *user) {
    asked *a = user;
    (void)n, (void)y;
    a->vjp++;
    for (int k = 0; k < 6; k++) {
        ((double *)xbars[0].data)[k] += a->c * at(ybar)[k] * at(&xs[1])[k / 2];
        ((double *)xbars[1].data)[k / 2] += a->c * at(ybar)[k] * at(&xs[0])[k];
    }
    return a->code;
}
static int scaled_jvp(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy,
                      void *user) {
    asked *a = user;
    (void)n, (void)y;
    a->jvp++;
    for (int k = 0; k < 6; k++) {
        double *to = (double *)dy->data + k;
        if (dxs[0].data) *to += a->c * at(&dxs[0])[k] * at(&xs[1])[k / 2];
        if (dxs[1].data) *to += a->c * at(&xs[0])[k] * at(&dxs[1])[k / 2];
    }
    return a->code;
}
static const cot_custom scaling = {.name = "scaled", .value = scaled, .vjp_numbers = scaled_vjp,
                                   .jvp_numbers = scaled_jvp};

static cot_var call_it(cot_var x, cot_var w) {
    return cot_call(&scaling, 2, ((cot_var[]){cot_transpose(x), w}), &mine);
}
BODY(loss) { UNUSED; ys[0] = cot_sum(cot_sin(call_it(xs[0], xs[1])), COT_ALL); return 0; }
BODY(step) { UNUSED; ys[0] = cot_mul(cot_sum(call_it(*(cot_var *)user, xs[1]), COT_AXES(1)), 0.3); return 0; }

/* Gradients by both and by one, tangents along both and along one, and through a loop. */
enum { OUTPUTS = 6 };
BODY(gradients) { UNUSED; return cot_value_and_grad(loss, NULL, n, xs, &ys[0], ys + 1) != COT_OK; }
BODY(one_gradient) {
    UNUSED;
    cot_var x = cot_detach(xs[0]), y;
    loss(2, (cot_var[]){x, xs[1]}, 1, &y, NULL);
    ys[0] = y;
    return cot_grad_of(y, 1, &xs[1], &ys[1]) != COT_OK;
}
BODY(tangents) {
    UNUSED;
    cot_var y = call_it(xs[0], xs[1]);
    ys[0] = cot_jvp(y, 2, xs, (cot_var[]){cot_cos(xs[0]), cot_sin(xs[1])});
    ys[1] = cot_jvp(y, 1, &xs[1], (cot_var[]){cot_cos(xs[1])});
    return 0;
}
BODY(looped) {
    UNUSED;
    cot_var x = xs[0], y;
    cot_fori(step, &x, 0, 3, 1, &xs[1], &y, NULL);
    ys[0] = cot_sum(cot_square(y), COT_ALL);
    return cot_grad_of(ys[0], 2, xs, ys + 1) != COT_OK;
}

static const struct { const char *name; cot_fn f; int m, size[OUTPUTS]; } functions[] = {
    {"gradients", gradients, 3, {1, 6, 3}}, {"one gradient", one_gradient, 2, {1, 3}},
    {"tangents", tangents, 2, {6, 6}}, {"a loop", looped, 3, {1, 6, 3}},
};

static void point(int round, double x[ELEMENTS]) {
    for (int k = 0; k < ELEMENTS; k++) x[k] = 0.4 * sin(1.3 * k + round + 0.2);
}

static void on_tape(int k, const double *x, double *to) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS] = {cot_tensor(t, COT_F64, TYPES[0].shape, x), cot_tensor(t, COT_F64, TYPES[1].shape, x + 6)};
    cot_var   ys[OUTPUTS];
    functions[k].f(INPUTS, xs, functions[k].m, ys, NULL);
    assert_ok(t);
    for (int i = 0; i < functions[k].m; to += functions[k].size[i++]) cot_read(ys[i], to, functions[k].size[i]);
    assert_ok(t);
    cot_tape_destroy(t);
}

static int go(int k, cot_run *r, const double *x, double *to) {
    void *out[OUTPUTS];
    for (int i = 0; i < functions[k].m; to += functions[k].size[i++]) out[i] = to;
    return cot_program_run(r, (const void *[]){x, x + 6}, out);
}

static int elements(int k) {
    int n = 0;
    for (int i = 0; i < functions[k].m; i++) n += functions[k].size[i];
    return n;
}

static void derivatives_in_numbers_have_the_bits_of_the_tape(void **state) {
    (void)state;
    mine = (asked){.c = 1.7};
    for (int k = 0; k < TEST_COUNT(functions); k++) {
        counting     c = {0};
        cot_program *p = cot_compile(functions[k].f, NULL, INPUTS, TYPES, functions[k].m,
                                     &(cot_compile_options){.allocator = {counting_alloc, &c}});
        assert_string_equal(cot_program_message(p), "");
        cot_run *r = cot_run_create(p);
        long     before = c.requests;
        for (int round = 0; round < 3; round++) {
            double x[ELEMENTS], want[16], got[16];
            point(round, x);
            on_tape(k, x, want);
            assert_int_equal(go(k, r, x, got), COT_OK);
            for (int i = 0; i < elements(k); i++)
                if (!test_same(got[i], want[i]))
                    fail_msg("%s, number %d: %.17g is not %.17g", functions[k].name, i, got[i], want[i]);
        }
        assert_int_equal(c.requests, before);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
    }
}

static void a_derivative_that_fails_is_refused(void **state) {
    double x[ELEMENTS], z[16];
    char   why[256];
    (void)state;
    point(1, x);
    for (int k = 0; k < 3; k += 2) {
        mine = (asked){.c = 1};
        cot_program *p = cot_compile(functions[k].f, NULL, INPUTS, TYPES, functions[k].m, NULL);
        cot_run     *r = cot_run_create(p);
        mine.code = 5;
        assert_int_equal(go(k, r, x, z), COT_CUSTOM);
        assert_string_equal(cot_run_message(r), k ? "[scaled] jvp_numbers failed with code 5"
                                                  : "[scaled] vjp_numbers failed with code 5");
        mine.code = 0;
        assert_int_equal(go(k, r, x, z), COT_OK);
        assert_int_equal(cot_program_save(p, "/nowhere", why, sizeof why), COT_VALUE);
        assert_non_null(strstr(why, "'scaled' is bound to this process"));
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
}

/* A call has the gradient of the function, and none of that gradient: as on the tape. */
static void a_call_has_its_gradient_once(void **state) {
    cot_program *p = cot_compile(loss, NULL, INPUTS, TYPES, 1, NULL);
    double       x[ELEMENTS], want[10], got[10];
    (void)state;
    point(2, x);
    mine = (asked){.c = 1.3};
    on_tape(0, x, want);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[INPUTS] = {cot_tensor(t, COT_F64, TYPES[0].shape, x), cot_tensor(t, COT_F64, TYPES[1].shape, x + 6)};
    cot_var   y, g[INPUTS], h[INPUTS];
    cot_program_call(p, INPUTS, xs, 1, &y);
    cot_grad_of(y, INPUTS, xs, g);
    assert_ok(t);
    cot_read(y, got, 1), cot_read(g[0], got + 1, 6), cot_read(g[1], got + 7, 3);
    for (int k = 0; k < 10; k++) assert_near(got[k], want[k], 1e-15);
    cot_grad_of(cot_sum(g[0], COT_ALL), INPUTS, xs, h);
    assert_int_equal(cot_tape_status(t), COT_GRAD);
    assert_non_null(strstr(cot_tape_message(t), "cannot be recorded to be differentiated again"));
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    mine = (asked){.c = 1};
    for (int k = 0; k < 3; k += 2)
        for (long at = 1;; at++) {
            counting     c = {.fail_at = at, .fail_for_good = true};
            cot_program *p = cot_compile(functions[k].f, NULL, INPUTS, TYPES, functions[k].m,
                                         &(cot_compile_options){.allocator = {counting_alloc, &c}});
            cot_run     *r = cot_run_create(p);
            bool         made = r && cot_run_status(r) == COT_OK;
            cot_run_destroy(r);
            cot_program_destroy(p);
            assert_int_equal(c.live, 0);
            if (made) break;
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_in_numbers_have_the_bits_of_the_tape),
        cmocka_unit_test(a_derivative_that_fails_is_refused),
        cmocka_unit_test(a_call_has_its_gradient_once),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
