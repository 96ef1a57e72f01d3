/* A function written for one point, at many points: a program of its cot_vmap is one group of
 * operations on whole arrays, and has the bits of the scalar program run point by point; so has the
 * scalar program called under cot_vmap. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>
#include <cotangent_transform.h>

#include <string.h>

enum { POINTS = 5000, TURNS = 3 };

static const cot_type one[3] = {{COT_F64, {0, {0}}}, {COT_F64, {0, {0}}}, {COT_F64, {0, {0}}}};
static const cot_type many[3] = {{COT_F64, {1, {POINTS}}}, {COT_F64, {1, {POINTS}}}, {COT_F64, {1, {POINTS}}}};

BODY(at_point) {
    UNUSED;
    cot_var a = cot_add(cot_mul(xs[0], xs[1]), xs[2]), b = cot_sub(xs[0], cot_mul(xs[1], xs[2]));
    for (int k = 0; k < TURNS; k++) {
        cot_var c = cot_add(cot_mul(a, 0.5), cot_mul(b, xs[0]));
        b = cot_sub(b, cot_mul(c, xs[1]));
        a = c;
    }
    ys[0] = cot_add(cot_mul(cot_exp(cot_neg(cot_mul(a, a))), cot_sin(b)), cot_log(cot_add(cot_mul(b, b), 1.0)));
    return 0;
}
BODY(at_points) { return cot_vmap(at_point, user, n, xs, NULL, m, ys, NULL) != COT_OK; }
BODY(call_point) { return cot_program_call(user, n, xs, m, ys) != COT_OK; }

static double x[3][POINTS], want[POINTS];

static cot_program *compile(cot_fn f, const cot_type *types) {
    cot_program *p = cot_compile(f, NULL, 3, types, 1, NULL);
    assert_string_equal(cot_program_message(p), "");
    return p;
}

static int compute_point_by_point(void **state) {
    cot_program *p = compile(at_point, one);
    cot_run     *r = cot_run_create(p);
    (void)state;
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 3; k++) x[k][i] = sin(3.0 * i + k);
        cot_program_run(r, (const void *[]){&x[0][i], &x[1][i], &x[2][i]}, (void *[]){&want[i]});
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
    return 0;
}

static void a_program_of_many_points_is_one_group(void **state) {
    cot_program_facts f;
    cot_program      *p = compile(at_points, many);
    (void)state;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    assert_int_equal(f.groups, 1);
    assert_int_equal(f.fused, f.operations);
    assert_int_equal(f.fused, 4 + 5 * TURNS + 9);
    cot_program_destroy(p);
}

static void it_has_the_bits_of_single_points(void **state) {
    static double y[POINTS];
    cot_program  *p = compile(at_points, many);
    cot_run      *r = cot_run_create(p);
    (void)state;
    assert_int_equal(cot_program_run(r, (const void *[]){x[0], x[1], x[2]}, (void *[]){y}), COT_OK);
    assert_memory_equal(y, want, sizeof y);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void a_call_for_many_points_has_the_bits_of_single_ones(void **state) {
    static double y[POINTS];
    cot_program  *p = compile(at_point, one);
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       xs[3], z;
    (void)state;
    for (int k = 0; k < 3; k++) xs[k] = cot_data(t, COT_F64, many[k].shape, x[k]);
    assert_int_equal(cot_vmap(call_point, p, 3, xs, NULL, 1, &z, NULL), COT_OK);
    cot_read(z, y, POINTS);
    assert_ok(t);
    assert_memory_equal(y, want, sizeof y);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_of_many_points_is_one_group),
        cmocka_unit_test(it_has_the_bits_of_single_points),
        cmocka_unit_test(a_call_for_many_points_has_the_bits_of_single_ones),
    };
    return cmocka_run_group_tests(tests, compute_point_by_point, NULL);
}
