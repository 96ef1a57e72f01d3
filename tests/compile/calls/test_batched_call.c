/* Programs called in a function that cot_vmap records: one operation, a call of the batched
 * program, whose values and derivatives have the bits of cot_vmap of the function itself. */
/* ctest: labels=threads */
#include "call_test.h"
#include "rules/structural_ids.h"

#include "tape/tape.h"

#include <cotangent_transform.h>

#include <pthread.h>
#include <string.h>

enum { N = 5, B = 4, INPUTS = 3, MOST = B * B * N * N };

static const cot_type types[INPUTS] = {{COT_F64, {2, {N, N}}}, {COT_F64, {1, {N}}}, {COT_F64, {0, {0}}}};

/* ---- functions ------------------------------------------------------------------------------- */

/* The last result depends on the number alone. */
BODY(mixed) {
    UNUSED;
    vector_and_number(xs, ys);
    ys[2] = cot_sin(xs[2]);
    return 0;
}

/* What is no float comes first, and a part has no gradient. */
BODY(numbered) {
    UNUSED;
    cot_var of[3];
    mixed(n, xs, 3, of, user);
    ys[0] = cot_argmax(of[0], COT_AXES(0));
    cot_no_grad_open(xs[0].tape);
    ys[2] = cot_square(of[1]);
    cot_no_grad_close(xs[0].tape);
    ys[1] = cot_mul(of[0], ys[2]);
    return 0;
}

static void pair_of(cot_fn f, either two[2]) { make_pair(f, INPUTS, types, 3, two); }

/* ---- batches of inputs ----------------------------------------------------------------------- */

/* Leaves of which those in the mask have `batches` axes in front. */
static void leaves(cot_tape *t, int mask, int batches, cot_var *xs, int *axes) {
    double data[MOST];
    for (int k = 0; k < INPUTS; k++) {
        cot_shape s = types[k].shape;
        bool      is = mask >> k & 1;
        for (int b = 0; is && b < batches; b++) {
            memmove(s.dim + 1, s.dim, (size_t)s.ndim++ * sizeof *s.dim);
            s.dim[0] = B;
        }
        for (int i = 0; i < MOST; i++) data[i] = 0.4 * sin(17 * k + 3 * i + 1);
        xs[k] = cot_tensor(t, COT_F64, s, data);
        axes[k] = is ? 0 : COT_NOT_BATCHED;
    }
}

static int calls_on(const cot_tape *t) {
    int count = 0;
    for (uint32_t i = 0; i < t->count; i++) count += t->nodes[i].op == OP_call && !cot__in_body(&t->nodes[i]);
    return count;
}

/* Uses the function, or its program, on a batch, and gives what is to be compared. calls: how many
 * calls are recorded outside of bodies. */
typedef int (*usage)(either *e, const cot_var *xs, const int *axes, cot_var *out);

static void same(cot_var a, cot_var b, const char *what, int mask, int i) {
    double  x[MOST], y[MOST];
    int64_t n = cot_size(a);
    assert_ok(a.tape);
    assert_ok(b.tape);
    assert_int_equal(n, cot_size(b));
    cot_read(a, x, n);
    cot_read(b, y, n);
    for (int64_t j = 0; j < n; j++)
        if (memcmp(&x[j], &y[j], sizeof *x))
            fail_msg("%s, batch %d, output %d: element %d is %.17g, by a program %.17g", what, mask, i, (int)j, x[j],
                     y[j]);
}

static void compare(cot_fn f, int batches, usage use, int calls, const char *what) {
    either two[2];
    pair_of(f, two);
    for (int mask = 1; mask < 1 << INPUTS; mask++) {
        cot_tape *t[2];
        cot_var   out[2][8], xs[INPUTS];
        int       count = 0, axes[INPUTS];
        for (int k = 0; k < 2; k++) {
            t[k] = cot_tape_create(NULL);
            leaves(t[k], mask, batches, xs, axes);
            count = use(&two[k], xs, axes, out[k]);
            assert_ok(t[k]);
        }
        assert_int_equal(calls_on(t[0]), 0);
        if (calls >= 0) assert_int_equal(calls_on(t[1]), calls);
        for (int i = 0; i < count; i++) same(out[0][i], out[1][i], what, mask, i);
        for (int k = 0; k < 2; k++) cot_tape_destroy(t[k]);
    }
    cot_program_destroy(two[1].p);
}

/* ---- values and gradients -------------------------------------------------------------------- */

static int values(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_vmap(run_either, e, INPUTS, xs, axes, 3, out, NULL);
    return 3;
}

static cot_var total(const cot_var *ys) {
    return cot_add(cot_sum(cot_square(ys[0]), COT_ALL), cot_add(cot_sum(ys[1], COT_ALL), cot_sum(ys[2], COT_ALL)));
}

static int gradients(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_var ys[3];
    cot_vmap(run_either, e, INPUTS, xs, axes, 3, ys, NULL);
    cot_backward(total(ys));
    for (int k = 0; k < INPUTS; k++) out[k] = cot_grad(xs[k]);
    return INPUTS;
}

static int numbered_gradients(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_vmap(run_either, e, INPUTS, xs, axes, 3, out, NULL);
    cot_grad_of(cot_sum(out[1], COT_ALL), INPUTS, xs, out + 3);
    return 3 + INPUTS;
}

static int tangents(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_var ys[3];
    cot_vmap(run_either, e, INPUTS, xs, axes, 3, ys, NULL);
    for (int k = 0; k < 3; k++)
        out[k] = cot_jvp(ys[k], INPUTS, xs, (cot_var[]){cot_mul(xs[0], 2.0), cot_cos(xs[1]), cot_sin(xs[2])});
    return 3;
}

static void a_batch_of_calls_is_one_operation_with_the_bits_of_the_function(void **state) {
    (void)state;
    compare(mixed, 1, values, 1, "values");
    compare(mixed, 1, gradients, 1, "gradients");
    compare(mixed, 1, tangents, -1, "tangents");
    compare(numbered, 1, numbered_gradients, -1, "what is no float, or has no gradient");
}

static void nothing_else_is_recorded(void **state) {
    (void)state;
    either    two[2];
    int       axes[INPUTS];
    cot_var   xs[INPUTS], ys[3];
    cot_tape *t = cot_tape_create(NULL);
    pair_of(mixed, two);
    leaves(t, 7, 1, xs, axes);
    cot_vmap(run_either, &two[1], INPUTS, xs, axes, 3, ys, NULL);
    assert_ok(t);
    for (uint32_t i = 0; i < t->count; i++) {
        const cot__node *n = &t->nodes[i];
        bool             moves = n->op == OP_permute || n->op == OP_reshape || n->op == OP_slice;
        assert_true(cot__in_body(n) || moves || n->op == OP_leaf || n->op == OP_call || n->op == OP_pick);
    }
    cot_tape_destroy(t);
    cot_program_destroy(two[1].p);
}

/* ---- derivatives inside, batches of batches -------------------------------------------------- */

BODY(gradient_inside) {
    cot_var of[3];
    (void)m;
    if (run_either(n, xs, 3, of, user)) return 1;
    return cot_grad_of(total(of), INPUTS, xs, ys) != COT_OK;
}

BODY(value_and_gradient_inside) {
    cot_var of[3], g[INPUTS];
    (void)m;
    if (run_either(n, xs, 3, of, user)) return 1;
    if (cot_grad_of(total(of), INPUTS, xs, g) != COT_OK) return 1;
    ys[0] = of[1], ys[1] = cot_sum(cot_square(g[0]), COT_ALL), ys[2] = g[1];
    return 0;
}

static int of_each(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_vmap(gradient_inside, e, INPUTS, xs, axes, 3, out, NULL);
    return 3;
}

static int of_each_with_value(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_vmap(value_and_gradient_inside, e, INPUTS, xs, axes, 3, out, NULL);
    return 3;
}

static void gradients_of_each_element_are_calls_too(void **state) {
    (void)state;
    compare(mixed, 1, of_each, 2, "gradients of each element");
    compare(mixed, 1, of_each_with_value, 2, "values and gradients of each element");
}

BODY(run_batch) { return cot_vmap(run_either, user, n, xs, NULL, m, ys, NULL) != COT_OK; }

static int of_batches(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_var in[INPUTS];
    int     front[INPUTS] = {0, 0, 0};
    for (int k = 0; k < INPUTS; k++) {
        cot_shape s = types[k].shape;
        for (int b = 0; b < 2; b++) memmove(s.dim + 1, s.dim, (size_t)s.ndim++ * sizeof *s.dim), s.dim[0] = B;
        in[k] = axes[k] ? cot_broadcast_to(xs[k], s) : xs[k];
    }
    cot_vmap(run_batch, e, INPUTS, in, front, 3, out, NULL);
    cot_grad_of(total(out), INPUTS, xs, out + 3);
    return 6;
}

static void batches_nest(void **state) {
    (void)state;
    compare(mixed, 2, of_batches, -1, "a batch of batches");
}

/* The gradient of the norm of the gradients of all elements, and of the gradient of the batch. */
static int twice(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_var ys[3], g[INPUTS];
    cot_vmap(gradient_inside, e, INPUTS, xs, axes, 3, ys, NULL);
    cot_grad_of(total(ys), INPUTS, xs, out);
    cot_vmap(run_either, e, INPUTS, xs, axes, 3, ys, NULL);
    cot_grad_of(total(ys), INPUTS, xs, g);
    cot_grad_of(total(g), INPUTS, xs, out + 3);
    return 6;
}

/* Contributions meet in another order there: some hundred additions of numbers up to ten times as
 * large as their sum. */
static void derivatives_of_derivatives_are_right(void **state) {
    (void)state;
    either two[2];
    pair_of(mixed, two);
    for (int mask = 1; mask < 1 << INPUTS; mask++) {
        cot_tape *t[2];
        cot_var   out[2][6], xs[INPUTS];
        int       axes[INPUTS];
        double    a[MOST], b[MOST];
        for (int k = 0; k < 2; k++) {
            t[k] = cot_tape_create(NULL);
            leaves(t[k], mask, 1, xs, axes);
            twice(&two[k], xs, axes, out[k]);
            assert_ok(t[k]);
        }
        for (int i = 0; i < 6; i++) {
            int64_t n = cot_size(out[0][i]);
            cot_read(out[0][i], a, n), cot_read(out[1][i], b, n);
            for (int64_t j = 0; j < n; j++) assert_near(b[j], a[j], 1e-12);
        }
        for (int k = 0; k < 2; k++) cot_tape_destroy(t[k]);
    }
    cot_program_destroy(two[1].p);
}

/* ---- in other bodies, and what is not a call after all --------------------------------------- */

BODY(step) {
    either *e = user;
    cot_var of[3], row = cot_reshape(xs[1], COT_SHAPE(1, N));
    (void)n, (void)m;
    int     axes[INPUTS] = {COT_NOT_BATCHED, 0, COT_NOT_BATCHED};
    if (cot_vmap(run_either, e, INPUTS, (cot_var[]){xs[0], row, xs[2]}, axes, 3, of, NULL) != COT_OK) return 1;
    ys[0] = xs[0], ys[1] = cot_mul(cot_reshape(of[0], COT_SHAPE(N)), 0.9), ys[2] = cot_mul(xs[2], 0.5);
    return 0;
}

BODY(raised) {
    UNUSED;
    cot_shape s = {COT_MAX_NDIM, {2}};
    for (int k = 1; k < COT_MAX_NDIM; k++) s.dim[k] = 1;
    ys[0] = cot_exp(cot_reshape(xs[0], s));
    return 0;
}

static int in_a_loop(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    (void)axes;
    cot_scan(step, e, 3, INPUTS, xs, 0, NULL, out, 0, NULL, NULL);
    cot_grad_of(cot_add(cot_sum(out[1], COT_ALL), out[2]), INPUTS, xs, out + 3);
    return 6;
}

BODY(loop) { (void)n, (void)m; return cot_scan(step, user, 2, INPUTS, xs, 0, NULL, ys, 0, NULL, NULL) != COT_OK; }

static int around_a_loop(either *e, const cot_var *xs, const int *axes, cot_var *out) {
    cot_vmap(loop, e, INPUTS, xs, axes, 3, out, NULL);
    return 3;
}

static void batches_in_loops_and_loops_in_batches_work(void **state) {
    (void)state;
    compare(mixed, 0, in_a_loop, 0, "a batch in a loop");
    compare(mixed, 1, around_a_loop, 0, "a loop in a batch");
}

/* There can be no program: what is recorded instead tells why. */
static void a_batch_with_too_many_axes_is_refused_as_ever(void **state) {
    (void)state;
    char     message[2][512];
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        either    e = {raised, k ? cot_compile(raised, NULL, 1, &(cot_type){COT_F64, COT_SHAPE(2)}, 1, NULL) : NULL};
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3, 2), NULL), y;
        assert_int_equal(cot_vmap(run_either, &e, 1, &x, NULL, 1, &y, NULL), COT_LIMIT);
        snprintf(message[k], sizeof message[k], "%s", cot_tape_message(t));
        cot_program_destroy(e.p);
        cot_tape_destroy(t);
    }
    assert_string_equal(message[0], message[1]);
}

static void a_result_without_the_batch_stays_without(void **state) {
    (void)state;
    either    two[2];
    int       axes[INPUTS], out[3] = {0, 0, COT_NOT_BATCHED};
    cot_var   xs[INPUTS], ys[3];
    cot_tape *t = cot_tape_create(NULL);
    pair_of(mixed, two);
    leaves(t, 3, 1, xs, axes);
    assert_int_equal(cot_vmap(run_either, &two[1], INPUTS, xs, axes, 3, ys, out), COT_OK);
    assert_int_equal(cot_size(ys[2]), 1);
    assert_true(cot_value(ys[2]) == cot_value(cot_sin(xs[2])));
    axes[2] = COT_NOT_BATCHED, axes[0] = axes[1] = COT_NOT_BATCHED;
    leaves(t, 4, 1, xs, axes);
    assert_int_equal(cot_vmap(run_either, &two[1], INPUTS, xs, axes, 3, ys, out), COT_VALUE);
    cot_tape_destroy(t);
    cot_program_destroy(two[1].p);
}

BODY(picked) { UNUSED; ys[0] = cot_take(xs[0], xs[1], 0); return 0; }

static void a_batch_is_checked_when_it_runs(void **state) {
    (void)state;
    cot_type     in[2] = {{COT_F64, COT_SHAPE(3)}, {COT_I64, COT_SHAPE(1)}};
    int64_t      at[3] = {1, 2, 3};
    cot_program *p = cot_compile(picked, NULL, 2, in, 1, NULL);
    either       e = {picked, p};
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}),
                          cot_data(t, COT_I64, COT_SHAPE(3, 1), at)}, y;
    assert_int_equal(cot_vmap(run_either, &e, 2, xs, (int[]){COT_NOT_BATCHED, 0}, 1, &y, NULL), COT_VALUE);
    assert_false(cot_is_valid(y));
    cot_tape_destroy(t);
    cot_program_destroy(p);
}

/* ---- memory, threads ------------------------------------------------------------------------- */

static void call_of_extent(cot_tape *t, cot_program *p, int64_t extent) {
    either  e = {NULL, p};
    double  data[64 * N] = {0};
    cot_var xs[INPUTS] = {cot_tensor(t, COT_F64, types[0].shape, data),
                          cot_tensor(t, COT_F64, COT_SHAPE(extent, N), data), cot_scalar(t, 0.5)}, ys[3];
    cot_vmap(run_either, &e, INPUTS, xs, (int[]){COT_NOT_BATCHED, 0, COT_NOT_BATCHED}, 3, ys, NULL);
    if (cot_tape_status(t) == COT_OK) cot_backward(total(ys));
}

/* An extent of 0 is one, too. */
static void only_the_last_programs_are_kept(void **state) {
    (void)state;
    counting     c = {0};
    cot_program *p = cot_compile(mixed, NULL, INPUTS, types, 3,
                                 &(cot_compile_options){.allocator = {counting_alloc, &c}});
    size_t       most = 0;
    for (int extent = 0; extent < 40; extent++) {
        cot_tape *t = cot_tape_create(NULL);
        call_of_extent(t, p, extent);
        assert_ok(t);
        cot_tape_destroy(t);
        if (extent == 24) most = c.live;
    }
    assert_true(c.live < most + most / 4);
    cot_tape *t = cot_tape_create(NULL);
    long      before = c.requests;
    call_of_extent(t, p, 39);
    assert_int_equal(c.requests, before); /* it is known */
    assert_ok(t);
    cot_program_destroy(p);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

static void call_a_batch(cot_tape *t, void *user) { call_of_extent(t, user, 3); }

static void memory_of_the_tape_may_fail(void **state) {
    (void)state;
    cot_program *p = cot_compile(mixed, NULL, INPUTS, types, 3, NULL);
    assert_survives_no_memory(call_a_batch, p, 0, NULL);
    cot_program_destroy(p);
}

/* A request of the program's fails: the call does, and the next one succeeds. */
static void memory_of_the_program_may_fail(void **state) {
    (void)state;
    counting c = {0};
    long     needed = 1;
    for (long at = 1; at <= needed; at += 1 + at / 16) {
        c = (counting){0};
        cot_program *p = cot_compile(mixed, NULL, INPUTS, types, 3,
                                     &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_tape    *t = cot_tape_create(NULL);
        long         before = c.requests;
        c.fail_at = at == 1 ? 0 : before + at - 1;
        call_of_extent(t, p, 3);
        assert_true(cot_tape_status(t) == COT_OK || cot_tape_status(t) == COT_MEMORY);
        if (at == 1) needed = c.requests - before;
        else assert_true(c.failed > 0);
        c.fail_at = 0;
        cot_tape_clear_error(t);
        call_of_extent(t, p, 3);
        assert_ok(t);
        cot_tape_destroy(t);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
    }
    assert_true(needed > 100);
}

static void *call_often(void *program) {
    for (int i = 0; i < 40; i++) {
        cot_tape *t = cot_tape_create(NULL);
        call_of_extent(t, program, 1 + i % 20);
        bool      ok = cot_tape_status(t) == COT_OK;
        cot_tape_destroy(t);
        if (!ok) return program;
    }
    return NULL;
}

static void threads_share_the_programs_of_batches(void **state) {
    (void)state;
    cot_program *p = cot_compile(mixed, NULL, INPUTS, types, 3, NULL);
    pthread_t    thread[3];
    void        *failed;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, call_often, p), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_of_calls_is_one_operation_with_the_bits_of_the_function),
        cmocka_unit_test(nothing_else_is_recorded),
        cmocka_unit_test(gradients_of_each_element_are_calls_too),
        cmocka_unit_test(batches_nest),
        cmocka_unit_test(derivatives_of_derivatives_are_right),
        cmocka_unit_test(batches_in_loops_and_loops_in_batches_work),
        cmocka_unit_test(a_batch_with_too_many_axes_is_refused_as_ever),
        cmocka_unit_test(a_result_without_the_batch_stays_without),
        cmocka_unit_test(a_batch_is_checked_when_it_runs),
        cmocka_unit_test(only_the_last_programs_are_kept),
        cmocka_unit_test(memory_of_the_tape_may_fail),
        cmocka_unit_test(memory_of_the_program_may_fail),
        cmocka_unit_test(threads_share_the_programs_of_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
