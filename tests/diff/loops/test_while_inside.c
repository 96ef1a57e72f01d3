/* test_while_inside.c: recorded derivatives of a cot_while inside other bodies, where its length is
 * not known. They are compared with the same computation in plain C up to third order, and with
 * differences, also under the bound on kept states. */
/* ctest: timeout=240 */
#include "support/pair_test.h"

#include "diff/loops/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the loop: grows by a factor of more than 2 until it is large ---------------------------- */

BODY(grow) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], cot_add(cot_sigmoid(*(cot_var *)user), 2.0)), cot_mul(0.1, cot_sin(xs[0])));
    return 0;
}
BODY(is_small) { UNUSED; ys[0] = cot_less(cot_sum(cot_square(xs[0]), COT_ALL), 40.0); return 0; }

/* xs[0] becomes something from 0.5 to 1.5, and grows. */
BODY(grown) {
    UNUSED;
    cot_var start = cot_add(cot_sigmoid(xs[0]), 0.5);
    cot_while(is_small, grow, user, 1, &start, ys, &(cot_loop_options){.states = 1});
    ys[0] = cot_mul(0.25, ys[0]);
    return 0;
}
static double size_of(cot_var y) { return cot_value(cot_sum(cot_square(cot_cast(y, COT_F64)), COT_ALL)); }
BODY(grown_plain) {
    UNUSED;
    cot_var y = cot_add(cot_sigmoid(xs[0]), 0.5);
    while (size_of(y) < 40) grow(1, &y, 1, &y, user);
    ys[0] = cot_mul(0.25, y);
    return 0;
}

/* ---- inside scan, fori, checkpoint, cond and while ------------------------------------------- */

WHOLE(in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(grown, &a, 3, 1, x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 1});
    return y;
}
BODY(grown_counted) {
    UNUSED;
    cot_var a = cot_add(*(cot_var *)user, cot_mul(0.3, cot_cast(xs[0], cot_dtype_of(xs[1]))));
    return grown(1, xs + 1, 1, ys, &a);
}
WHOLE(in_fori) { IGNORE; cot_var a = x[1], y; cot_fori(grown_counted, &a, 0, 3, 1, x, &y, NULL); return y; }
WHOLE(in_checkpoint) {
    IGNORE;
    cot_var a = x[1], y = x[0];
    for (int k = 0; k < 3; k++) cot_checkpoint(grown, &a, 1, &y, 1, &y);
    return y;
}
WHOLE(three_plain) {
    IGNORE;
    cot_var a = x[1], y = x[0];
    for (int k = 0; k < 3; k++) grown_plain(1, &y, 1, &y, &a);
    return y;
}
WHOLE(counted_plain) {
    IGNORE;
    cot_var y = x[0];
    for (int k = 0; k < 3; k++) {
        cot_var a = cot_add(x[1], 0.3 * k);
        grown_plain(1, &y, 1, &y, &a);
    }
    return y;
}
BODY(other_branch) { UNUSED; ys[0] = cot_sin(xs[0]); return 0; }
WHOLE(in_cond) {
    IGNORE;
    cot_var a = x[1], y, z;
    cot_cond(cot_constant(a.tape, 1), grown, other_branch, &a, 1, x, 1, &y);
    cot_cond(cot_constant(a.tape, 0), grown, other_branch, &a, 1, x, 1, &z);
    return cot_add(y, z);
}
WHOLE(in_cond_plain) { IGNORE; cot_var a = x[1], y; grown_plain(1, x, 1, &y, &a); return cot_add(y, cot_sin(x[0])); }

BODY(below_three) { UNUSED; ys[0] = cot_less(xs[1], 3); return 0; }
BODY(grown_and_counted) { grown(1, xs, 1, ys, user); ys[1] = cot_add(xs[1], 1); UNUSED; return 0; }
static cot_var zero_count(cot_var like) {
    int64_t zero = 0;
    return cot_data(like.tape, COT_I64, COT_SCALAR, &zero);
}
WHOLE(in_while) {
    IGNORE;
    cot_var a = x[1], init[2] = {x[0], zero_count(x[0])}, out[2];
    cot_while(below_three, grown_and_counted, &a, 2, init, out, &(cot_loop_options){.states = 1});
    return out[0];
}
/* The outer loop inside one more body: a way back through a while whose body has a while. */
BODY(in_while_body) { UNUSED; cot_var both[2] = {xs[0], *(cot_var *)user}; ys[0] = in_while(2, both, NULL); return 0; }
WHOLE(in_while_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(in_while_body, &a, 1, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}

/* Carried values of every kind, a captured value that only the test reads, states in a file. */
BODY(mixed_step) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], cot_cast(xs[1], COT_F64)), cot_mul(0.2, cot_sin(xs[0])));
    ys[1] = cot_mul(xs[1], 1.125f);
    ys[2] = cot_add(xs[2], 1);
    return 0;
}
BODY(mixed_test) { UNUSED; ys[0] = cot_less(cot_cast(xs[2], COT_F64), ((cot_var *)user)[0]); return 0; }
BODY(mixed) {
    UNUSED;
    cot_var init[3] = {xs[0], cot_cast(((cot_var *)user)[1], COT_F32), zero_count(xs[0])}, out[3];
    cot_while(mixed_test, mixed_step, user, 3, init, out, &(cot_loop_options){.states = 2, .spill = P_tmpdir});
    ys[0] = cot_sin(cot_mul(out[0], cot_cast(out[1], COT_F64)));
    return 0;
}
WHOLE(mixed_in_scan) {
    IGNORE;
    cot_var both[2] = {cot_add(cot_mul(0.0, x[1]), 4.0), x[1]}, start = cot_cast(x[0], COT_F64), y;
    cot_scan(mixed, both, 2, 1, &start, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(mixed_plain) {
    IGNORE;
    cot_var y = cot_cast(x[0], COT_F64);
    for (int i = 0; i < 2; i++) {
        cot_var s[3] = {y, cot_cast(x[1], COT_F32), zero_count(y)};
        for (int k = 0; k < 4; k++) {
            cot_var next[3];
            mixed_step(3, s, 3, next, NULL);
            memcpy(s, next, sizeof s);
        }
        y = cot_sin(cot_mul(s[0], cot_cast(s[1], COT_F64)));
    }
    return y;
}

/* ---- derivatives inside ---------------------------------------------------------------------- */

BODY(height) { grown(n, xs, m, ys, user); ys[0] = cot_sum(cot_sin(ys[0]), COT_ALL); return 0; }
BODY(height_plain) { grown_plain(n, xs, m, ys, user); ys[0] = cot_sum(cot_sin(ys[0]), COT_ALL); return 0; }
BODY(slope_step) {
    UNUSED;
    cot_var g;
    cot_value_and_grad(height, user, 1, xs, NULL, &g);
    ys[0] = cot_sub(xs[0], cot_mul(0.3, g));
    return 0;
}
BODY(slope_step_plain) {
    UNUSED;
    cot_var g;
    cot_value_and_grad(height_plain, user, 1, xs, NULL, &g);
    ys[0] = cot_sub(xs[0], cot_mul(0.3, g));
    return 0;
}
WHOLE(grad_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(slope_step, &a, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(grad_plain) {
    IGNORE;
    cot_var a = x[1], y = x[0];
    for (int k = 0; k < 2; k++) slope_step_plain(1, &y, 1, &y, &a);
    return y;
}
BODY(hessian_step) {
    UNUSED;
    cot_var h;
    cot_fn_hessian(height, user, 1, xs, NULL, &h);
    ys[0] = cot_matmul(h, xs[0]);
    return 0;
}
WHOLE(hessian_in_checkpoint) { IGNORE; cot_var a = x[1], y; cot_checkpoint(hessian_step, &a, 1, x, 1, &y); return y; }
/* H x: the gradient of <g(u), x> by u, at u = x */
WHOLE(hessian_plain) {
    IGNORE;
    cot_var a = x[1], u = cot_mul(x[0], 1.0), y, g, h;
    height_plain(1, &u, 1, &y, &a);
    cot_grad_of(y, 1, &u, &g);
    cot_grad_of(cot_sum(cot_mul(g, x[0]), COT_ALL), 1, &u, &h);
    return h;
}
BODY(linear_step) {
    UNUSED;
    cot_linear *linear;
    cot_var     y, seed;
    cot_linearize(grown, user, 1, xs, 1, &y, &linear);
    seed = cot_cos(xs[0]);
    cot_linear_vjp(linear, &seed, ys);
    return 0;
}
WHOLE(linearize_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(linear_step, &a, 2, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}
WHOLE(linearize_plain) {
    IGNORE;
    cot_var a = x[1], y = x[0];
    for (int k = 0; k < 2; k++) {
        cot_var seed = cot_cos(y), z, g;
        cot_fn_vjp(grown_plain, &a, 1, &y, 1, &z, &seed, &g);
        y = g;
    }
    return y;
}

/* ---- batches: each element runs as long as it needs ------------------------------------------ */

WHOLE(grad_of_vmap) { IGNORE; cot_var a = x[1], y; cot_vmap(grown, &a, 1, x, NULL, 1, &y, NULL); return y; }
WHOLE(vmap_of_grad) { IGNORE; cot_var a = x[1], y; cot_vmap(slope_step, &a, 1, x, NULL, 1, &y, NULL); return y; }
static cot_var stacked(cot_fn f, const cot_var *x) {
    cot_var a = x[1], rows[8];
    int     extent = (int)cot_shape_of(x[0]).dim[0];
    for (int k = 0; k < extent; k++) {
        cot_var row = cot_index(x[0], 0, k);
        f(1, &row, 1, &rows[k], &a);
    }
    return cot_stack(extent, rows, 0);
}
WHOLE(grown_stacked) { IGNORE; return stacked(grown_plain, x); }
WHOLE(slopes_stacked) { IGNORE; return stacked(slope_step_plain, x); }
BODY(vmap_body) { UNUSED; cot_vmap(slope_step, user, 1, xs, NULL, 1, ys, NULL); return 0; }
WHOLE(vmap_in_scan) {
    IGNORE;
    cot_var a = x[1], y;
    cot_scan(vmap_body, &a, 1, 1, x, 0, NULL, &y, 0, NULL, NULL);
    return y;
}

/* ---- values that solve an equation which has a while in it ----------------------------------- */

/* Heron's way to the root of 1 + θ² + x², three steps: the test reads a count, so the plain one can
 * be written out. */
BODY(heron) {
    UNUSED;
    ys[0] = cot_mul(0.5, cot_add(xs[0], cot_div(*(cot_var *)user, xs[0])));
    ys[1] = cot_add(xs[1], 1);
    return 0;
}
static cot_var radius(const cot_var *xs, bool plain) {
    cot_var what = cot_add(cot_add(cot_square(xs[0]), cot_square(xs[1])), 1.0);
    cot_var s[2] = {cot_add(cot_mul(what, 0.5), 0.5), zero_count(what)};
    if (!plain) cot_while(below_three, heron, &what, 2, s, s, &(cot_loop_options){.states = 1});
    for (int k = 0; plain && k < 3; k++) heron(2, s, 2, s, &what);
    return s[0];
}
BODY(equation) { UNUSED; ys[0] = cot_sub(cot_add(xs[0], cot_mul(0.5, radius(xs, false))), *(cot_var *)user); return 0; }
BODY(equation_plain) {
    UNUSED;
    ys[0] = cot_sub(cot_add(xs[0], cot_mul(0.5, radius(xs, true))), *(cot_var *)user);
    return 0;
}
static cot_var zeros_like(cot_var x) { return cot_zeros(x.tape, cot_dtype_of(x), cot_shape_of(x)); }
WHOLE(in_root) { IGNORE; cot_var b = x[1]; return cot_root(equation, &b, NULL, zeros_like(x[0]), 1, x, NULL); }
WHOLE(in_root_plain) {
    IGNORE;
    cot_var b = x[1];
    return cot_root(equation_plain, &b, NULL, zeros_like(x[0]), 1, x, NULL);
}
BODY(bowl) {
    UNUSED;
    ys[0] = cot_sum(cot_add(radius(xs, false), cot_square(cot_sub(xs[0], *(cot_var *)user))), COT_ALL);
    return 0;
}
BODY(bowl_plain) {
    UNUSED;
    ys[0] = cot_sum(cot_add(radius(xs, true), cot_square(cot_sub(xs[0], *(cot_var *)user))), COT_ALL);
    return 0;
}
WHOLE(in_minimize) { IGNORE; cot_var b = x[1]; return cot_minimize(bowl, &b, NULL, zeros_like(x[0]), 1, x, NULL); }
WHOLE(in_minimize_plain) {
    IGNORE;
    cot_var b = x[1];
    return cot_minimize(bowl_plain, &b, NULL, zeros_like(x[0]), 1, x, NULL);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const pair pairs[] = {
    {"while in scan", in_scan, three_plain, 2, {{1, 2}, {0}}, false},
    {"while in scan, scalars", in_scan, three_plain, 2, {{0}, {0}}, false},
    {"while in fori", in_fori, counted_plain, 2, {{1, 2}, {0}}, false},
    {"while in checkpoint", in_checkpoint, three_plain, 2, {{1, 2}, {0}}, false},
    {"while in cond", in_cond, in_cond_plain, 2, {{1, 2}, {0}}, false},
    {"while in while", in_while, three_plain, 2, {{1, 2}, {0}}, false},
    {"while in while in scan", in_while_in_scan, three_plain, 2, {{1, 2}, {0}}, false},
    {"dtypes mixed", mixed_in_scan, mixed_plain, 2, {{1, 2}, {0}}, true},
    {"grad of while in scan", grad_in_scan, grad_plain, 2, {{1, 2}, {0}}, false},
    {"hessian of while in checkpoint", hessian_in_checkpoint, hessian_plain, 2, {{1, 2}, {0}}, false},
    {"linearize of while in scan", linearize_in_scan, linearize_plain, 2, {{1, 2}, {0}}, false},
    {"grad of vmap", grad_of_vmap, grown_stacked, 2, {{2, 2, 2}, {0}}, false},
    {"vmap of grad", vmap_of_grad, slopes_stacked, 2, {{2, 2, 2}, {0}}, false},
    {"vmap of grad in scan", vmap_in_scan, slopes_stacked, 2, {{2, 2, 2}, {0}}, false},
    {"while in root", in_root, in_root_plain, 2, {{1, 2}, {0}}, false},
    {"while in minimize", in_minimize, in_minimize_plain, 2, {{1, 2}, {0}}, false},
};

static cot_var along(const test_function *f, const cot_var *g, const cot_var *d) {
    cot_var sum = cot_constant(g[0].tape, 0);
    for (int k = 0; k < f->n; k++) sum = cot_add(sum, cot_sum(cot_mul(g[k], d[k]), COT_ALL));
    return sum;
}

/* Value, gradient in numbers, and recorded: gradients of first, second and third order along a
 * direction, and tangents of each. */
static int numbers_of(const test_function *f, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2], g[2], d[2];
    int       n = 0;
    leaves_of(f, t, xs), directions_of(f, t, d);
    cot_var y = f->f(f->n, xs, f->user), loss = cot_sum(cot_mul(y, cot_cos(y)), COT_ALL);
    n = append(y, out, n);
    for (int order = 1; order <= 3; order++) {
        cot_tape_zero_grads(t);
        cot_backward(loss);
        for (int k = 0; k < f->n; k++) n = append(cot_grad(xs[k]), out, n);
        n = append(cot_jvp(loss, f->n, xs, d), out, n);
        cot_grad_of(loss, f->n, xs, g);
        for (int k = 0; k < f->n; k++) n = append(g[k], out, n);
        loss = along(f, g, d);
    }
    tape_is_sound(t, f->name);
    cot_tape_destroy(t);
    return n;
}

static void all_equal_what_is_written_out(void **state) {
    (void)state;
    /* The same sums in another order, of terms as large as the largest number; rounding grows with
     * the loop, by up to 20 a while. Carried f32: its eps. */
    for (int i = 0; i < TEST_COUNT(pairs); i++)
        assert_pair_agrees(&pairs[i], test_small() ? 1 : 4, numbers_of,
                           (allowance){.of_largest = pairs[i].f64_only ? 1e-5 : 1e-11});
    test_verdict();
}

static void all_have_their_derivatives(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(pairs); i++) {
        int smooth = 0;
        if (pairs[i].f64_only) continue;
        for (int round = 0; round < (test_small() ? 3 : 10) && smooth < 2; round++) {
            test_function f = function_at(&pairs[i], round, pairs[i].ours);
            smooth += test_differences(&f, 1) && test_differences(&f, 2) && test_differences(&f, 3);
            test_transpose(&f);
            test_second_order(&f);
            test_numbers_as_recorded(&f);
        }
        TEST_CHECK(smooth >= (test_small() ? 1 : 2), "%s: only %d points look smooth", pairs[i].name, smooth);
    }
    test_verdict();
}

/* ---- the same bits as the way back in numbers ------------------------------------------------ */

BODY(slope) { return UNUSED, cot_value_and_grad(height, user, 1, xs, NULL, ys); }

static void the_operation_gives_the_bits_of_backward(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    numbers[7] = {0.1, -0.4, 0.9, 1.3, -1.2, 0.5, 0.05}, a[7], b[7];
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(7), numbers), c = cot_scalar(t, 0.3), y, g;
    height(1, &x, 1, &y, &c);
    cot_backward(y);
    cot_read(cot_grad(x), a, 7);
    cot_checkpoint(slope, &c, 1, &x, 1, &g);
    cot_read(g, b, 7);
    test_tape_ok(t, "slope in checkpoint");
    test_same_array("gradient", "slope in checkpoint", 7, b, a);
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- the bound on stored states -------------------------------------------------------------- */

typedef struct peak { size_t now, most; } peak;
static void *peak_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    peak *p = user;
    void *fresh = NULL;
    p->now += new_size - old_size;
    if (p->now > p->most) p->most = p->now;
    if (new_size) fresh = realloc(ptr, new_size);
    else free(ptr);
    return fresh;
}

enum { WIDE = 4096, STEPS = 400 };
BODY(wide_step) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], 0.99), cot_mul(*(cot_var *)user, cot_sin(xs[0])));
    ys[1] = cot_add(xs[1], 1);
    return 0;
}
BODY(wide_test) { UNUSED; ys[0] = cot_less(xs[1], STEPS); return 0; }
BODY(wide_loop) {
    UNUSED;
    cot_var init[2] = {xs[0], zero_count(xs[0])}, out[2];
    cot_while(wide_test, wide_step, user, 2, init, out, &(cot_loop_options){.states = 6});
    ys[0] = cot_sum(cot_square(out[0]), COT_ALL);
    return 0;
}
BODY(wide_slope) { return UNUSED, cot_value_and_grad(wide_loop, user, 1, xs, NULL, ys); }

/* Second order, in numbers, of 400 steps that carry 32 kB: all states are 13 MB, and 26 MB with
 * their tangents. */
static void states_stay_under_the_bound(void **state) {
    (void)state;
    peak      p = {0, 0};
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {peak_alloc, &p}});
    double   *numbers = malloc(WIDE * sizeof *numbers);
    assert_non_null(numbers);
    for (int k = 0; k < WIDE; k++) numbers[k] = sin(k);
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(WIDE), numbers), c = cot_scalar(t, 0.01), g;
    free(numbers);
    cot_checkpoint(wide_slope, &c, 1, &x, 1, &g);
    cot_var s = cot_sum(cot_square(g), COT_ALL), one = cot_constant(t, 1);
    cot_backward(s);
    double reverse = cot_grad_value(c), forward = cot_value(cot_jvp(s, 1, &c, &one));
    test_tape_ok(t, "400 wide steps");
    /* sums of 400 steps in two orders */
    TEST_CHECK(fabs(reverse - forward) <= 1e-11 * fabs(forward), "reverse gives %.17g, forward %.17g", reverse,
               forward);
    /* 7 states of the loop, as many of its tangent, which are twice as wide, the memory of one
     * step, idle runs of the programs of bodies, and free blocks: measured 117 to 122. */
    TEST_CHECK(p.most < (size_t)WIDE * 8 * 160, "%zu bytes were in use at once, %zu states", p.most,
               p.most / (WIDE * 8));
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_equal_what_is_written_out),
        cmocka_unit_test(all_have_their_derivatives),
        cmocka_unit_test(the_operation_gives_the_bits_of_backward),
        cmocka_unit_test(states_stay_under_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
