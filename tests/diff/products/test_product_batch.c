/* Directions in batches (diff/products/product_batch.c): the same bits as one by one, for every
 * operation of the tables. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "samples/samples.h"
#include "support/support.h"

#include "diff/products/products.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 9, MAX_ELEMENTS = TEST_MAX_INPUTS * TEST_MAX_SIZE, MANY = 4096 };

static void one_by_one(bool on) { cot__batch_from = on ? INT64_MAX : 1; }

/* The same bits; zeros may differ in their sign, since a sweep in numbers passes over zero adjoints
 * and a recorded one does not. */
static void equal_arrays(const char *what, const char *name, int64_t n, const double *a, const double *b) {
    for (int64_t i = 0; i < n; i++)
        if (!test_equal(a[i], b[i])) {
            test_note("%s: %s: element %lld: %.17g and %.17g", name, what, (long long)i, a[i], b[i]);
            return;
        }
}

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        cot_var wide = cot_data(t, COT_F64, f->in[k].shape, f->in[k].data);
        xs[k] = cot_leaf(cot_cast(wide, dtype));
    }
}

static int64_t elements(int n, const cot_var *xs) {
    int64_t size = 0;
    for (int k = 0; k < n; k++) size += cot_size(xs[k]);
    return size;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Both ways of multiplying; whether the batch was one. */
static bool compare_products(const char *name, bool reverse, cot_var y, int n, const cot_var *xs) {
    static double in[LANES * MANY], out[2][LANES * MANY];
    cot_tape     *t = y.tape;
    cot__side     ys, inputs;
    test_random   random = test_random_of(name, reverse);
    bool          batched = false, ok = cot__side_open(&ys, t, "vjps", false, 1, &y);
    ok = cot__side_open(&inputs, t, "vjps", true, n, xs) && ok;
    int64_t seeds = reverse ? ys.size : inputs.size, products = reverse ? inputs.size : ys.size;
    assert_true(seeds <= MANY && products <= MANY);
    for (int64_t i = 0; i < LANES * seeds; i++)
        /* with zeros, as unit directions have */
        in[i] = i / seeds % 2 && i % 3 ? 0 : test_f32(test_uniform(&random, -1, 1));
    if (ok) {
        one_by_one(true);
        cot__products("vjps", reverse, LANES, 1, &y, n, xs, in, out[0]);
        one_by_one(false);
        cot__directions d = {.lanes = LANES, .in = in, .out = out[1]};
        int64_t         nodes = cot_tape_length(t), bytes = cot_tape_storage_bytes(t);
        memset(out[1], 0xff, sizeof out[1]);
        batched = cot__products_batched("vjps", reverse, reverse ? &ys : &inputs, reverse ? &inputs : &ys, &d);
        TEST_CHECK(cot_tape_length(t) == nodes && cot_tape_storage_bytes(t) == bytes, "%s: a batch stays on the tape",
                   name);
        if (batched) equal_arrays(reverse ? "vjps" : "jvps", name, LANES * products, out[0], out[1]);
    }
    cot__side_close(&ys);
    cot__side_close(&inputs);
    test_tape_ok(t, name);
    return batched;
}

static void a_batch_of_products_has_the_bits_of_each_alone(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    int                    batched = 0;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = 0; d < TEST_COUNT(dtypes); d++) {
            test_function f = function_of(&samples[i], i, 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS];
            leaves_of(t, &f, dtypes[d], xs);
            cot_var y = f.f(f.n, xs, f.user);
            /* some operations that rules record know f64 and f32 alone */
            bool refused = d >= 2 && cot_tape_status(t) == COT_VALUE;
            if (!refused && test_tape_ok(t, f.name) && cot__dtype_is_float(cot_dtype_of(y))) {
                batched += compare_products(f.name, true, y, f.n, xs);
                batched += compare_products(f.name, false, y, f.n, xs);
            }
            cot_tape_destroy(t);
        }
    /* only loops, solvers and operations without a batch of their own are left out */
    TEST_CHECK(batched > 4 * TEST_COUNT(samples), "only %d of %d products went in batches", batched,
               8 * TEST_COUNT(samples));
    test_verdict();
}

static void elementwise_operations_too(void **state) {
    (void)state;
    int batched = 0, count = 0;
    for (int op = 0; op < OP_elementwise_count; op++) {
        const cot__elementwise_info *e = &cot__elementwise_table[op];
        test_random                  random = test_random_of(e->name, 0);
        cot_tape                    *t = cot_tape_create(NULL);
        double                       x[3], data[3][5];
        cot_var                      xs[3], leaves[3], y;
        int                          n = 0;
        for (int i = 0; i < 5; i++) {
            test_sample(op, &random, x);
            for (int k = 0; k < 3; k++) data[k][i] = x[k];
        }
        for (int k = 0; k < e->arity; k++) {
            xs[k] = cot_tensor(t, COT_F64, COT_SHAPE(5), data[k]);
            if (!(op == OP_where && k == 0)) leaves[n++] = xs[k];
            else xs[k] = cot_greater(xs[k], 0.5);
        }
        y = cot_mul(test_call(op, xs), 2.0);
        if (test_tape_ok(t, e->name) && cot__dtype_is_float(cot_dtype_of(y))) {
            count += 2;
            batched += compare_products(e->name, true, y, n, leaves);
            batched += compare_products(e->name, false, y, n, leaves);
        }
        cot_tape_destroy(t);
    }
    TEST_CHECK(batched == count, "only %d of %d products went in batches", batched, count);
    test_verdict();
}

/* ---- matrices -------------------------------------------------------------------------------- */

static void matrices_have_the_bits_of_directions_one_by_one(void **state) {
    (void)state;
    static double out[2][MAX_ELEMENTS * MANY];
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS];
        leaves_of(t, &f, COT_F64, xs);
        cot_var y = f.f(f.n, xs, f.user);
        int64_t n = elements(f.n, xs), m = cot_size(y);
        if (!test_tape_ok(t, f.name) || !cot__dtype_is_float(cot_dtype_of(y)) || m > MANY) {
            cot_tape_destroy(t);
            continue;
        }
        cot_var loss = cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL);
        for (int mode = COT_REVERSE; mode <= COT_FORWARD; mode++) {
            for (int way = 0; way < 2; way++) {
                one_by_one(way);
                cot_jacobian(1, &y, f.n, xs, (cot_mode)mode, out[way]);
            }
            if (test_tape_ok(t, f.name)) equal_arrays("jacobian", f.name, n * m, out[0], out[1]);
        }
        for (int way = 0; way < 2; way++) {
            one_by_one(way);
            cot_hessian(loss, f.n, xs, out[way]);
        }
        if (test_tape_ok(t, f.name)) equal_arrays("hessian", f.name, n * n, out[0], out[1]);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* Several groups of batches, the last one not full; inputs listed twice, outputs that are inputs,
 * outputs that do not move. */
static void groups_and_lists(void **state) {
    (void)state;
    enum { N = 150 };
    static double out[2][3 * N * 2 * N], data[N];
    cot_tape     *t = cot_tape_create(NULL);
    for (int i = 0; i < N; i++) data[i] = 0.01 * i - 0.7;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N), data), z = cot_tensor(t, COT_F64, COT_SHAPE(N), data);
    cot_var ys[3] = {cot_mul(cot_cumsum(cot_tanh(x), 0, false), x), x, cot_exp(z)}, twice[2] = {x, x};
    cot__batch_elements = 40 * N; /* 40 directions a batch */
    for (int mode = COT_REVERSE; mode <= COT_FORWARD; mode++) {
        for (int way = 0; way < 2; way++) {
            one_by_one(way);
            cot_jacobian(3, ys, 2, twice, (cot_mode)mode, out[way]);
        }
        assert_string_equal(cot_tape_message(t), "");
        equal_arrays("jacobian", mode == COT_FORWARD ? "forward" : "reverse", 3 * N * 2 * N, out[0], out[1]);
    }
    cot__batch_elements = 1 << 17;
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- where a batch does not apply ------------------------------------------------------------ */

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(xs[0]);
    return 0;
}

static bool batches(cot_var y, cot_var x) {
    static double in[LANES * MANY], out[LANES * MANY];
    cot__side     ys, xs;
    assert_true(cot__side_open(&ys, y.tape, "vjps", false, 1, &y) && cot__side_open(&xs, y.tape, "vjps", true, 1, &x));
    bool is = cot__products_batched("vjps", true, &ys, &xs, &(cot__directions){.lanes = LANES, .in = in, .out = out});
    cot__side_close(&ys);
    cot__side_close(&xs);
    return is;
}

static void what_would_differ_or_not_pay_is_swept_one_by_one(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   half = cot_leaf(cot_zeros(t, COT_F16, COT_SHAPE(4))), x = cot_leaf(cot_zeros(t, COT_F64, COT_SHAPE(4)));
    cot_var   looped, large = cot_leaf(cot_zeros(t, COT_F64, COT_SHAPE(400))), s = cot_scalar(t, 1);
    cot_var   square = cot_leaf(cot_eye(t, COT_F64, 3, 3));
    cot__batch_from = 8;
    assert_true(batches(cot_sin(x), x));
    assert_true(batches(cot_sin(half), half));
    assert_false(batches(cot_mul(s, x), x) && batches(cot_mul(s, x), s));
    assert_false(batches(cot_inv(square), square)); /* it may leave a note about one matrix */
    cot_checkpoint(step, NULL, 1, &x, 1, &looped);
    assert_false(batches(looped, x));
    assert_false(batches(cot_sin(large), large));
    cot_var y = cot_matmul(cot_zeros(t, COT_F64, COT_SHAPE(2, 400)), large);
    assert_true(batches(y, large));
    cot__batch_elements = 7 * 400;
    assert_false(batches(y, large));
    cot__batch_elements = 1 << 17;
    cot_var chain = y;
    for (int i = 0; i < 200000; i++) chain = cot_sin(chain);
    assert_false(batches(chain, large)); /* all of its values would lie side by side */
    assert_string_equal(cot_tape_message(t), "");
    cot_tape_destroy(t);
}

/* 0 times infinity: a scalar that does not move stops a sweep in numbers. */
static void an_infinity_beside_a_zero_direction_is_passed_over(void **state) {
    (void)state;
    double    jacobian[2][9 * 10], b[9] = {1, 2, (double)INFINITY, 3, 4, 5, 6, 7, 8};
    cot_tape *t = cot_tape_create(NULL);
    cot_var   s = cot_scalar(t, 2), v = cot_leaf(cot_zeros(t, COT_F64, COT_SHAPE(3, 3)));
    cot_var   a = cot_full(t, COT_F64, COT_SHAPE(3, 3), 1.5), xs[2] = {s, v};
    cot_var   y = cot_add(cot_matmul(cot_mul(s, a), cot_data(t, COT_F64, COT_SHAPE(3, 3), b)), v);
    for (int way = 0; way < 2; way++) {
        one_by_one(way);
        assert_int_equal(cot_jacobian(1, &y, 2, xs, COT_FORWARD, jacobian[way]), COT_OK);
    }
    equal_arrays("jacobian", "an infinity", 90, jacobian[0], jacobian[1]);
    assert_true(jacobian[0][2 * 10 + 1 + 2] == 1);
    cot_tape_destroy(t);
    test_verdict();
}

/* Equal eigenvalues: both ways leave the same note. */
static void notes_are_those_of_single_sweeps(void **state) {
    (void)state;
    double jacobian[81];
    char   said[2][512];
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_leaf(cot_eye(t, COT_F64, 3, 3)), values, vectors;
        cot_eigh(x, &values, &vectors);
        one_by_one(way);
        cot_jacobian(1, &vectors, 1, &x, COT_FORWARD, jacobian);
        snprintf(said[way], sizeof said[way], "%s", cot_tape_note(t));
        cot_tape_destroy(t);
    }
    assert_string_equal(said[0], said[1]);
    assert_non_null(strstr(said[0], "equal eigenvalues"));
}

/* An error inside a batch is the error of a single sweep: the message does not speak of batches. */
static void errors_are_those_of_single_sweeps(void **state) {
    (void)state;
    double    jacobian[64], data[8] = {0};
    char      said[2][512];
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(8), data), h = cot_exp(x), y = cot_sin(h);
        cot_add_into(&h, 1.0);
        one_by_one(way);
        assert_int_equal(cot_jacobian(1, &y, 1, &x, COT_REVERSE, jacobian), COT_STALE);
        snprintf(said[way], sizeof said[way], "%s", cot_tape_message(t));
        for (int i = 0; i < 64; i++) assert_true(jacobian[i] != jacobian[i]);
        cot_tape_destroy(t);
    }
    assert_string_equal(said[0], said[1]);
    assert_non_null(strstr(said[0], "sin"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_of_products_has_the_bits_of_each_alone),
        cmocka_unit_test(elementwise_operations_too),
        cmocka_unit_test(matrices_have_the_bits_of_directions_one_by_one),
        cmocka_unit_test(groups_and_lists),
        cmocka_unit_test(what_would_differ_or_not_pay_is_swept_one_by_one),
        cmocka_unit_test(an_infinity_beside_a_zero_direction_is_passed_over),
        cmocka_unit_test(notes_are_those_of_single_sweeps),
        cmocka_unit_test(errors_are_those_of_single_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
