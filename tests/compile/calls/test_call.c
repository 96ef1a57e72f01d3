/* Programs called on a tape: one operation, whose value and first derivatives, in both modes, have
 * the bits of the function recorded there; higher ones add up in another order. */
/* ctest: labels=threads */
#include "call_test.h"

#include "tape/tape.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ------------------------------------------------------------------------------- */

enum { N = 6 };

static const cot_type types[3] = {{COT_F64, {2, {N, N}}}, {COT_F64, {1, {N}}}, {COT_F64, {0, {0}}}};

BODY(mixed) {
    UNUSED;
    vector_and_number(xs, ys);
    return 0;
}

/* The same, with what is no float first, and a part without a gradient. */
BODY(numbered) {
    UNUSED;
    cot_var two[2];
    mixed(n, xs, 2, two, user);
    ys[0] = cot_argmax(two[0], COT_AXES(0));
    cot_no_grad_open(xs[0].tape);
    cot_var weight = cot_square(two[1]);
    cot_no_grad_close(xs[0].tape);
    ys[1] = cot_mul(two[0], weight);
    return 0;
}

typedef struct point { double a[N * N], b[N], c; } point;

static point point_of(int seed) {
    point p;
    for (int i = 0; i < N * N; i++) p.a[i] = 0.4 * sin(seed * 31 + i);
    for (int i = 0; i < N; i++) p.b[i] = cos(seed * 17 + 3 * i);
    p.c = 0.1 * seed;
    return p;
}

static void leaves(cot_tape *t, const point *p, cot_var *xs) {
    xs[0] = cot_tensor(t, COT_F64, types[0].shape, p->a);
    xs[1] = cot_tensor(t, COT_F64, types[1].shape, p->b);
    xs[2] = cot_scalar(t, p->c);
}

static void pair_of(cot_fn f, int m, either two[2]) { make_pair(f, 3, types, m, two); }

static void same(cot_var a, cot_var b, const char *what) {
    double  x[N * N * 4], y[N * N * 4];
    int64_t n = cot_size(a);
    assert_ok(a.tape);
    assert_ok(b.tape);
    assert_int_equal(n, cot_size(b));
    cot_read(a, x, n);
    cot_read(b, y, n);
    if (memcmp(x, y, (size_t)n * sizeof *x))
        for (int64_t i = 0; i < n; i++)
            if (x[i] != y[i]) fail_msg("%s: element %d is %.17g, by a program %.17g", what, (int)i, x[i], y[i]);
}

/* Runs `use` on the function and on its program, each on a tape of its own, and compares all that
 * it gives. */
typedef int (*usage)(either *e, cot_tape *t, const cot_var *xs, cot_var *out);

static void compare(cot_fn f, int m, usage use, const char *what) {
    either two[2];
    pair_of(f, m, two);
    for (int seed = 1; seed <= 2; seed++) {
        cot_tape *t[2];
        cot_var   out[2][8];
        int       count = 0;
        for (int k = 0; k < 2; k++) {
            cot_var xs[3];
            point   p = point_of(seed);
            t[k] = cot_tape_create(NULL);
            leaves(t[k], &p, xs);
            count = use(&two[k], t[k], xs, out[k]);
            assert_ok(t[k]);
        }
        for (int i = 0; i < count; i++) same(out[0][i], out[1][i], what);
        for (int k = 0; k < 2; k++) cot_tape_destroy(t[k]);
    }
    cot_program_destroy(two[1].p);
}

/* Writes in place, which a program holds as operations of their own. */
BODY(written) {
    UNUSED;
    cot_var z = cot_mul(xs[1], 2);
    cot_update_slice(&z, 0, 1, 3, 1, cot_slice(xs[1], 0, 0, 2, 1));
    ys[0] = cot_mul(z, cot_sum(xs[0], COT_AXES(1)));
    ys[1] = xs[2];
    return 0;
}

/* ---- values and first derivatives ------------------------------------------------------------ */

static int values(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    (void)t;
    run_either(3, xs, 2, out, e);
    return 2;
}

/* A loss of both results, then only of one of them. */
static int backward(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var ys[2];
    run_either(3, xs, 2, ys, e);
    cot_backward(cot_add(cot_sum(cot_square(ys[0]), COT_ALL), ys[1]));
    for (int k = 0; k < 3; k++) out[k] = cot_grad(xs[k]);
    cot_tape_zero_grads(t);
    cot_backward(cot_sum(cot_square(ys[0]), COT_ALL));
    for (int k = 0; k < 3; k++) out[3 + k] = cot_grad(xs[k]);
    return 6;
}

/* Only the vector is active. */
static int partly_active(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var in[3] = {cot_detach(xs[0]), xs[1], cot_detach(xs[2])}, ys[2];
    (void)t;
    run_either(3, in, 2, ys, e);
    cot_grad_of(cot_add(cot_sum(ys[0], COT_ALL), ys[1]), 1, &xs[1], out);
    return 1;
}

static int forward(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var tangents[3] = {cot_mul(xs[0], 2.0), COT_NONE, cot_constant(t, 1.5)}, ys[2];
    cot_fn_jvp(run_either, e, 3, xs, tangents, 2, ys, out);
    return 2;
}

static void values_and_derivatives_have_the_bits_of_the_function(void **state) {
    (void)state;
    compare(mixed, 2, values, "values");
    compare(mixed, 2, backward, "gradients");
    compare(mixed, 2, partly_active, "gradient by one input");
    compare(mixed, 2, forward, "tangents");
}

/* ---- higher order ---------------------------------------------------------------------------- */

/* The gradient of the norm of the gradient, and the same once more. */
static int twice(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var ys[2], g[3], h[3];
    (void)t;
    run_either(3, xs, 2, ys, e);
    cot_grad_of(cot_add(cot_sum(cot_square(ys[0]), COT_ALL), ys[1]), 3, xs, g);
    cot_grad_of(cot_sum(cot_square(g[0]), COT_ALL), 3, xs, h);
    for (int k = 0; k < 3; k++) out[k] = h[k];
    cot_grad_of(cot_sum(cot_square(h[1]), COT_ALL), 3, xs, out + 3);
    return 6;
}

static int hessian_product(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    double  v[N * N + N + 1], hv[N * N + N + 1];
    cot_var ys[2];
    for (int i = 0; i < N * N + N + 1; i++) v[i] = sin(i);
    run_either(3, xs, 2, ys, e);
    cot_hvp(cot_add(cot_sum(cot_square(ys[0]), COT_ALL), ys[1]), 3, xs, v, hv);
    out[0] = cot_data(t, COT_F64, COT_SHAPE(N * N + N + 1), hv);
    return 1;
}

static void near_each_other(cot_fn f, usage use, double tolerance) {
    either  two[2];
    double  x[2][6][N * N + N + 1];
    int64_t size[6];
    int     count = 0;
    pair_of(f, 2, two);
    for (int k = 0; k < 2; k++) {
        cot_var   xs[3], out[8];
        point     p = point_of(3);
        cot_tape *t = cot_tape_create(NULL);
        leaves(t, &p, xs);
        count = use(&two[k], t, xs, out);
        for (int i = 0; i < count; i++) cot_read(out[i], x[k][i], size[i] = cot_size(out[i]));
        assert_ok(t);
        cot_tape_destroy(t);
    }
    for (int i = 0; i < count; i++)
        for (int64_t j = 0; j < size[i]; j++) assert_near(x[1][i][j], x[0][i][j], tolerance);
    cot_program_destroy(two[1].p);
}

/* Contributions meet in another order there, so the last digits differ: some hundred additions of
 * numbers up to ten times as large as their sum. */
static void derivatives_of_derivatives_are_right(void **state) {
    (void)state;
    near_each_other(mixed, twice, 1e-12);
    near_each_other(mixed, hessian_product, 1e-12);
}

/* ---- what is no float, and what has no gradient ---------------------------------------------- */

static int numbered_gradients(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var ys[2];
    (void)t;
    run_either(3, xs, 2, ys, e);
    out[0] = ys[0], out[1] = ys[1];
    cot_grad_of(cot_sum(ys[1], COT_ALL), 3, xs, out + 2);
    return 5;
}

static void integers_and_parts_without_gradient_keep_their_meaning(void **state) {
    (void)state;
    compare(numbered, 2, numbered_gradients, "a part without gradient");
}

/* ---- in other functions ---------------------------------------------------------------------- */

BODY(step) {
    either *e = user;
    cot_var two[2];
    (void)n, (void)m;
    if (run_either(3, (cot_var[]){xs[0], xs[1], xs[2]}, 2, two, e)) return 1;
    ys[0] = xs[0], ys[1] = cot_mul(two[0], 0.9), ys[2] = cot_mul(two[1], 0.1);
    return 0;
}

static int in_a_loop(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var last[3];
    (void)t;
    cot_scan(step, e, 4, 3, xs, 0, NULL, last, 0, NULL, NULL);
    cot_grad_of(cot_add(cot_sum(last[1], COT_ALL), last[2]), 3, xs, out);
    return 3;
}

static int in_a_batch(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var many = cot_stack(3, (cot_var[]){xs[1], cot_mul(xs[1], 2.0), cot_neg(xs[1])}, 0);
    cot_var in[3] = {xs[0], many, xs[2]};
    (void)t;
    cot_vmap(run_either, e, 3, in, (int[]){COT_NOT_BATCHED, 0, COT_NOT_BATCHED}, 2, out, NULL);
    return 2;
}

static int in_a_checkpoint(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var ys[2];
    (void)t;
    cot_checkpoint(run_either, e, 3, xs, 2, ys);
    cot_grad_of(cot_add(cot_sum(ys[0], COT_ALL), ys[1]), 3, xs, out);
    return 3;
}

static void calls_work_in_loops_batches_and_checkpoints(void **state) {
    (void)state;
    compare(mixed, 2, in_a_loop, "in a loop");
    compare(mixed, 2, in_a_batch, "in a batch");
    compare(mixed, 2, in_a_checkpoint, "in a checkpoint");
}

BODY(gradient_of_call) {
    cot_var grads[3];
    (void)m;
    cot_program *p = user;
    cot_var      two[2];
    if (cot_program_call(p, n, xs, 2, two) != COT_OK) return 1;
    if (cot_grad_of(cot_add(cot_sum(two[0], COT_ALL), two[1]), 3, xs, grads) != COT_OK) return 1;
    for (int k = 0; k < 3; k++) ys[k] = grads[k];
    return 0;
}

static void a_program_may_call_another(void **state) {
    (void)state;
    cot_program *inner = cot_compile(mixed, NULL, 3, types, 2, NULL);
    cot_program *outer = cot_compile(gradient_of_call, inner, 3, types, 3, NULL);
    cot_run     *r = cot_run_create(outer);
    point        p = point_of(5);
    double       a[N * N], b[N], c;
    cot_program_destroy(inner);
    assert_string_equal(cot_run_message(r), "");
    assert_int_equal(cot_program_run(r, (const void *[]){p.a, p.b, &p.c}, (void *[]){a, b, &c}), COT_OK);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3], ys[2], g[3];
    double    want[N * N];
    leaves(t, &p, xs);
    mixed(3, xs, 2, ys, NULL);
    cot_grad_of(cot_add(cot_sum(ys[0], COT_ALL), ys[1]), 3, xs, g);
    cot_read(g[0], want, N * N);
    assert_memory_equal(a, want, sizeof want);
    cot_read(g[1], want, N);
    assert_memory_equal(b, want, sizeof b);
    assert_true(c == cot_value(g[2]));
    cot_tape_destroy(t);
    cot_run_destroy(r);
    cot_program_destroy(outer);
}

/* Operations whose rules read what they keep beside their value, or whose derivatives no program
 * holds yet. */
BODY(unusual) {
    UNUSED;
    cot_var parts[2] = {cot_sum(xs[1], COT_ALL), xs[2]};
    ys[0] = cot_layer_norm(xs[0], COT_NONE, COT_NONE, -1, 1e-5);
    ys[1] = cot_add(cot_logsumexp_of(2, parts), cot_det(cot_add(xs[0], cot_eye(xs[0].tape, COT_F64, N, N))));
    return 0;
}

static void unusual_operations_are_differentiated_too(void **state) {
    (void)state;
    compare(unusual, 2, values, "values of unusual operations");
    compare(unusual, 2, backward, "gradients of unusual operations");
}

/* ---- strided operands, errors, memory -------------------------------------------------------- */

static int of_a_transpose(either *e, cot_tape *t, const cot_var *xs, cot_var *out) {
    cot_var in[3] = {cot_transpose(xs[0]), cot_slice(cot_concat(2, (cot_var[]){xs[1], xs[1]}, 0), 0, 0, COT_END, 2),
                     xs[2]}, ys[2];
    (void)t;
    run_either(3, in, 2, ys, e);
    out[0] = ys[0];
    cot_grad_of(cot_add(cot_sum(ys[0], COT_ALL), ys[1]), 3, xs, out + 1);
    return 4;
}

static void operands_may_lie_anywhere(void **state) {
    (void)state;
    compare(mixed, 2, of_a_transpose, "strided operands");
}

static void wrong_operands_are_told(void **state) {
    (void)state;
    cot_program *p = cot_compile(mixed, NULL, 3, types, 2, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    point        at = point_of(1);
    cot_var      xs[3], ys[2];
    leaves(t, &at, xs);
#define expect(code, text) do { assert_error(t, code, text); cot_tape_clear_error(t); } while (0)
    cot_program_call(p, 2, xs, 2, ys);
    expect(COT_VALUE, "[program_call] 2 inputs and 2 outputs, but the program has 3 and 2");
    cot_program_call(NULL, 3, xs, 2, ys);
    expect(COT_VALUE, "[program_call] the program is NULL");
    cot_program_call(p, 3, (cot_var[]){xs[0], xs[0], xs[2]}, 2, ys);
    expect(COT_SHAPE, "[program_call] xs[1] is f64 (6,6), but input 1 of the program is f64 (6,); they must be equal");
    cot_program_call(p, 3, (cot_var[]){cot_cast(xs[0], COT_F32), xs[1], xs[2]}, 2, ys);
    expect(COT_DTYPE,
           "[program_call] xs[0] is f32 (6,6), but input 0 of the program is f64 (6,6); they must be equal");
    assert_false(cot_is_valid(ys[0]));
    assert_int_equal(cot_program_call(p, 3, (cot_var[]){xs[0], xs[1], cot_number(2)}, 2, ys), COT_OK);
    assert_ok(t);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

/* ---- what a call may be like ----------------------------------------------------------------- */

BODY(looks) { UNUSED; cot_take(xs[0], xs[1], 0); return 0; }
BODY(scaled) { UNUSED; ys[0] = cot_mul(xs[0], xs[1]); return 0; }
BODY(bent) { UNUSED; ys[0] = cot_relu(xs[0]); return 0; }
BODY(squashed) { UNUSED; ys[0] = cot_tanh(xs[0]); return 0; }

static void a_program_without_outputs_leaves_no_node(void **state) {
    (void)state;
    cot_type     in[2] = {{COT_F64, COT_SHAPE(3)}, {COT_I64, COT_SHAPE(1)}};
    cot_program *p = cot_compile(looks, NULL, 2, in, 0, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    int64_t      at = 1;
    cot_var      xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}),
                          cot_data(t, COT_I64, COT_SHAPE(1), &at)};
    assert_int_equal(cot_program_call(p, 2, xs, 0, NULL), COT_OK);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

static void numbers_take_the_dtype_of_their_input(void **state) {
    (void)state;
    cot_type     in[2] = {{COT_F32, COT_SHAPE(2)}, {COT_F32, COT_SCALAR}};
    cot_program *p = cot_compile(scaled, NULL, 2, in, 1, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[2] = {cot_tensor(t, COT_F32, COT_SHAPE(2), (float[]){1, 2}), cot_number(0.5)};
    double       y[2];
    /* the result goes where an operand was */
    assert_int_equal(cot_program_call(p, 2, xs, 1, xs), COT_OK);
    cot_read(xs[0], y, 2);
    assert_true(y[0] == 0.5 && y[1] == 1);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

static void smooth_tapes_see_the_kinks_of_a_program(void **state) {
    (void)state;
    cot_type     in = {COT_F64, COT_SCALAR};
    cot_program *p = cot_compile(bent, NULL, 1, &in, 1, NULL);
    cot_tape    *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var      x = cot_scalar(t, 0), y;
    assert_int_equal(cot_program_call(p, 1, &x, 1, &y), COT_OK);
    assert_int_equal(t->count, 2); /* one operation */
    assert_int_equal(cot_backward(y), COT_GRAD);
    assert_non_null(strstr(cot_tape_message(t), "as this tape was asked to: In a body of [program_call]: "));
    cot_tape_clear_error(t);
    assert_false(cot_is_valid(cot_jvp(y, 1, &x, (cot_var[]){cot_number(1)})));
    assert_int_equal(cot_tape_status(t), COT_GRAD);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* relu of the first is the one result, the square of both the other. */
static int half_bent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_relu(xs[0]);
    ys[1] = cot_square(cot_add(xs[0], xs[1]));
    return 0;
}

/* As where the operations are recorded one by one. */
static void a_kink_that_no_derivative_goes_through_is_none(void **state) {
    (void)state;
    cot_type     in[2] = {{COT_F64, COT_SCALAR}, {COT_F64, COT_SCALAR}};
    cot_program *p = cot_compile(half_bent, NULL, 2, in, 2, NULL);
    cot_tape    *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_var      x[2] = {cot_scalar(t, 0), cot_scalar(t, 3)}, still[2] = {cot_detach(x[0]), x[1]}, ys[2], g, h;
    assert_int_equal(cot_program_call(p, 2, x, 2, ys), COT_OK);
    assert_int_equal(cot_grad_of(ys[1], 1, x, &g), COT_OK); /* not through the first result */
    assert_true(cot_value(g) == 6);
    assert_int_equal(cot_grad_of(g, 1, x + 1, &h), COT_OK); /* of every order */
    assert_true(cot_value(h) == 2);
    assert_int_equal(cot_grad_of(cot_add(ys[0], ys[1]), 1, x, &g), COT_GRAD);
    cot_tape_clear_error(t);
    assert_int_equal(cot_program_call(p, 2, still, 2, ys), COT_OK);
    /* nor by the first input */
    assert_int_equal(cot_grad_of(cot_add(ys[0], ys[1]), 1, x + 1, &g), COT_OK);
    assert_true(cot_value(g) == 6);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* ---- what has no gradient, kinks, patterns --------------------------------------------------- */

BODY(half_active) {
    UNUSED;
    cot_no_grad_open(xs[0].tape);
    ys[0] = cot_square(xs[1]);
    cot_no_grad_close(xs[0].tape);
    ys[1] = cot_mul(xs[1], ys[0]);
    return 0;
}

static void what_has_no_gradient_in_a_program_is_refused_as_ever(void **state) {
    (void)state;
    either two[2];
    char   message[2][512];
    pair_of(half_active, 2, two);
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        point     at = point_of(1);
        cot_var   xs[3], ys[2];
        leaves(t, &at, xs);
        run_either(3, xs, 2, ys, &two[k]);
        assert_false(cot_requires_grad(ys[0]));
        assert_true(cot_requires_grad(ys[1]));
        cot_backward(cot_sum(ys[1], COT_ALL));
        assert_ok(t);
        cot_backward(cot_index(ys[0], 0, 0));
        snprintf(message[k], sizeof message[k], "%s", cot_tape_message(t));
        assert_int_equal(cot_tape_status(t), COT_GRAD);
        cot_tape_destroy(t);
    }
    assert_int_equal(strncmp(message[0], message[1], 30), 0);
    cot_program_destroy(two[1].p);
}

BODY(kinked) { UNUSED; ys[0] = cot_sum(cot_relu(cot_sub(xs[0], 1)), COT_ALL); return 0; }

static void a_report_tells_the_kinks_of_a_called_program(void **state) {
    (void)state;
    cot_program *p = cot_compile(kinked, NULL, 1, &(cot_type){COT_F64, COT_SHAPE(3)}, 1, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    double       x[3] = {0, 1, 2};
    char         text[1000];
    cot_var      y, leaf = cot_tensor(t, COT_F64, COT_SHAPE(3), x);
    cot_program_call(p, 1, &leaf, 1, &y);
    int64_t before = cot_tape_length(t);
    assert_int_equal(cot_report(y, text, sizeof text), 1);
    assert_non_null(strstr(text, "In a called program: relu "));
    assert_int_equal(cot_tape_length(t), before);
    assert_ok(t);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* Neighbours, then a product with a fixed matrix that has two entries. */
BODY(banded) {
    UNUSED;
    cot_var a = cot_slice(xs[0], 0, 1, 8, 1), b = cot_slice(xs[0], 0, 0, 7, 1);
    ys[0] = cot_mul(cot_sin(a), cot_square(b));
    return 0;
}
BODY(banded_sum) { banded(n, xs, m, ys, user); ys[0] = cot_sum(ys[0], COT_ALL); return 0; }

static void sparse_plans_see_the_pattern_of_a_called_program(void **state) {
    (void)state;
    cot_type     eight = {COT_F64, COT_SHAPE(8)};
    cot_program *p = cot_compile(banded, NULL, 1, &eight, 1, NULL);
    cot_program *q = cot_compile(banded_sum, NULL, 1, &eight, 1, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    double       x[8], direct[14], called[14];
    for (int i = 0; i < 8; i++) x[i] = 0.3 * i;
    cot_var leaf = cot_tensor(t, COT_F64, COT_SHAPE(8), x), y, z, s;
    banded(1, &leaf, 1, &y, NULL);
    cot_program_call(p, 1, &leaf, 1, &z);
    cot_sparse_plan *a = cot_sparse_jacobian_plan(1, &y, 1, &leaf, COT_AUTO);
    cot_sparse_plan *b = cot_sparse_jacobian_plan(1, &z, 1, &leaf, COT_AUTO);
    assert_ok(t);
    assert_int_equal(cot_sparse_plan_info(b).nnz, 14);
    cot_sparse_jacobian(a, 1, &y, 1, &leaf, direct);
    cot_sparse_jacobian(b, 1, &z, 1, &leaf, called);
    assert_memory_equal(direct, called, sizeof direct);
    cot_program_call(q, 1, &leaf, 1, &s);
    cot_sparse_plan *h = cot_sparse_hessian_plan(s, 1, &leaf);
    assert_ok(t);
    assert_int_equal(cot_sparse_plan_info(h).nnz, 8 + 14);
    cot_sparse_plan_destroy(a), cot_sparse_plan_destroy(b), cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
    cot_program_destroy(p), cot_program_destroy(q);
}

/* A smooth tape records the operations themselves. */
static void writes_in_place_are_recorded_on_copies(void **state) {
    (void)state;
    cot_program *p = cot_compile(written, NULL, 3, types, 2, NULL);
    cot_tape    *t = cot_tape_create(&(cot_options){.smooth = true});
    point        at = point_of(3);
    cot_var      xs[3], ys[2], zs[2], g[2], want[2];
    leaves(t, &at, xs);
    assert_int_equal(cot_program_call(p, 3, xs, 2, ys), COT_OK);
    written(3, xs, 2, zs, NULL);
    same(zs[0], ys[0], "the value");
    cot_grad_of(cot_sum(ys[0], COT_ALL), 2, xs, g);
    cot_grad_of(cot_sum(zs[0], COT_ALL), 2, xs, want);
    for (int k = 0; k < 2; k++) same(want[k], g[k], "the gradient");
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* tanh is differentiated by its result. */
static void a_result_that_the_way_back_reads_is_kept_once(void **state) {
    (void)state;
    cot_type     in = {COT_F64, COT_SHAPE(1000)};
    cot_program *p = cot_compile(squashed, NULL, 1, &in, 1, NULL);
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_tensor(t, COT_F64, COT_SHAPE(1000), NULL), y;
    cot_program_call(p, 1, &x, 1, &y);
    assert_int_equal(t->count, 2);
    cot_backward(cot_sum(y, COT_ALL));
    assert_ok(t);
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* An operation that counts how often its derivative is recorded. */
static int count_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y;
    ++*(int *)user;
    xbars[0] = cot_mul(ybar, cot_mul(xs[0], 2));
    return 0;
}
static int squared(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int i = 0; i < 3; i++) ((double *)y->data)[i] = ((double *)xs[0].data)[i] * ((double *)xs[0].data)[i];
    return 0;
}
static const cot_custom counted = {.name = "counted", .value = squared, .vjp = count_vjp};

/* The second input is read by nobody, the third for the sake of a truth alone. */
BODY(reads_some) {
    UNUSED;
    ys[0] = cot_sum(cot_call(&counted, 1, xs, user), COT_ALL);
    if (n > 2) ys[0] = cot_where(cot_less(xs[2], 0), ys[0], cot_mul(ys[0], 3));
    return 0;
}

/* What nothing is known to depend on is left out before the derivative is recorded, not after. */
static void a_derivative_is_made_once_though_an_operand_is_unread(void **state) {
    (void)state;
    const cot_type vectors[3] = {{COT_F64, COT_SHAPE(3)}, {COT_F64, COT_SHAPE(3)}, {COT_F64, COT_SCALAR}};
    for (int n = 1; n <= 3; n++) {
        int          count = 0;
        cot_program *p = cot_compile(reads_some, &count, n, vectors, 1, NULL);
        cot_tape    *t = cot_tape_create(NULL);
        const double at[] = {1, 2, 3};
        double       g[3];
        cot_var      y, xs[3] = {cot_tensor(t, COT_F64, COT_SHAPE(3), at), cot_tensor(t, COT_F64, COT_SHAPE(3), at),
                                 cot_scalar(t, 1)};
        assert_int_equal(cot_program_call(p, n, xs, 1, &y), COT_OK);
        assert_int_equal(cot_backward(y), COT_OK);
        assert_int_equal(count, 1);
        cot_read_grad(xs[0], g, 3);
        for (int i = 0; i < 3; i++) assert_true(g[i] == 2 * at[i] * (n == 3 ? 3 : 1));
        for (int k = 1; k < n; k++) assert_true(cot_read_grad(xs[k], g, k == 1 ? 3 : 1) == COT_OK && g[0] == 0);
        cot_tape_destroy(t);
        cot_program_destroy(p);
    }
}

static void the_tape_keeps_the_program_alive(void **state) {
    (void)state;
    counting     c = {0};
    cot_program *p = cot_compile(mixed, NULL, 3, types, 2, &(cot_compile_options){.allocator = {counting_alloc, &c}});
    cot_tape    *t = cot_tape_create(NULL);
    point        at = point_of(1);
    cot_var      xs[3], ys[2];
    leaves(t, &at, xs);
    cot_mark m = cot_tape_mark(t);
    cot_program_call(p, 3, xs, 2, ys);
    cot_program_destroy(p);
    cot_backward(ys[1]);
    assert_ok(t);
    assert_true(c.live > 0);
    cot_tape_rewind(t, m);
    assert_int_equal(c.live, 0);
    cot_tape_destroy(t);
}

static void steady_calls_make_nothing_new(void **state) {
    (void)state;
    counting     c = {0};
    cot_program *p = cot_compile(mixed, NULL, 3, types, 2, &(cot_compile_options){.allocator = {counting_alloc, &c}});
    cot_tape    *t = cot_tape_create(NULL);
    point        at = point_of(1);
    cot_var      xs[3], ys[2];
    long         before = 0;
    leaves(t, &at, xs);
    cot_mark m = cot_tape_mark(t);
    for (int i = 0; i < 5; i++) {
        cot_program_call(p, 3, xs, 2, ys);
        cot_backward(cot_add(cot_sum(ys[0], COT_ALL), ys[1]));
        assert_ok(t);
        cot_tape_rewind(t, m);
        if (i == 0) before = c.requests;
    }
    assert_int_equal(c.requests, before);
    cot_tape_destroy(t);
    cot_program_destroy(p);
    assert_int_equal(c.live, 0);
}

static void call_and_sweep(cot_tape *t, void *user) {
    cot_var xs[3], ys[2];
    point   at = point_of(2);
    leaves(t, &at, xs);
    cot_program_call(user, 3, xs, 2, ys);
    if (cot_tape_status(t) == COT_OK) cot_backward(ys[1]);
}

static void memory_of_the_tape_may_fail(void **state) {
    (void)state;
    cot_program *p = cot_compile(mixed, NULL, 3, types, 2, NULL);
    assert_survives_no_memory(call_and_sweep, p, 0, NULL);
    cot_program_destroy(p);
}

static void *sweep_often(void *program) {
    double sum = 0;
    for (int i = 0; i < 20; i++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[3], ys[2];
        point     at = point_of(2);
        leaves(t, &at, xs);
        cot_program_call(program, 3, xs, 2, ys);
        cot_backward(ys[1]);
        sum += cot_grad_value(xs[2]);
        cot_tape_destroy(t);
    }
    double *answer = malloc(sizeof *answer);
    *answer = sum;
    return answer;
}

static void threads_make_a_derivative_once(void **state) {
    (void)state;
    cot_program *p = cot_compile(mixed, NULL, 3, types, 2, NULL);
    pthread_t    thread[3];
    double      *answer[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, sweep_often, p), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], (void **)&answer[i]);
    assert_true(*answer[0] == *answer[1] && *answer[1] == *answer[2] && *answer[0] != 0);
    for (int i = 0; i < 3; i++) free(answer[i]);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_derivatives_have_the_bits_of_the_function),
        cmocka_unit_test(derivatives_of_derivatives_are_right),
        cmocka_unit_test(integers_and_parts_without_gradient_keep_their_meaning),
        cmocka_unit_test(calls_work_in_loops_batches_and_checkpoints),
        cmocka_unit_test(a_program_may_call_another),
        cmocka_unit_test(unusual_operations_are_differentiated_too),
        cmocka_unit_test(operands_may_lie_anywhere),
        cmocka_unit_test(wrong_operands_are_told),
        cmocka_unit_test(a_program_without_outputs_leaves_no_node),
        cmocka_unit_test(numbers_take_the_dtype_of_their_input),
        cmocka_unit_test(smooth_tapes_see_the_kinks_of_a_program),
        cmocka_unit_test(what_has_no_gradient_in_a_program_is_refused_as_ever),
        cmocka_unit_test(a_report_tells_the_kinks_of_a_called_program),
        cmocka_unit_test(sparse_plans_see_the_pattern_of_a_called_program),
        cmocka_unit_test(writes_in_place_are_recorded_on_copies),
        cmocka_unit_test(a_kink_that_no_derivative_goes_through_is_none),
        cmocka_unit_test(a_result_that_the_way_back_reads_is_kept_once),
        cmocka_unit_test(a_derivative_is_made_once_though_an_operand_is_unread),
        cmocka_unit_test(the_tape_keeps_the_program_alive),
        cmocka_unit_test(steady_calls_make_nothing_new),
        cmocka_unit_test(memory_of_the_tape_may_fail),
        cmocka_unit_test(threads_make_a_derivative_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
