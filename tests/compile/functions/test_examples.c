/* While a function is compiled, what depends on its inputs is recorded and not computed; what does
 * not is a constant of the program, and is. Nobody sees a value that was not computed. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include "backend/cpu/table/cpu.h"
#include "tape/tape.h"

#include <cotangent_program.h>

#include <stdlib.h>

enum { N = 300 };

static cot__backend counter;
static int          products, stages;

static void count_product(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    products++;
    cot__cpu_backend.matmul(a, b, c, m, n, scratch);
}
static void count_stage(cot__stage *work) {
    stages++;
    cot__cpu_backend.elementwise(work);
}

/* How many products and stages of elementwise work compiling takes. */
static cot_program *compile_counted(cot_fn f, int n, const cot_type *types, int m) {
    const cot__backend *usual = cot__new_tape_backend;
    counter = cot__cpu_backend;
    counter.matmul = count_product, counter.elementwise = count_stage;
    products = stages = 0;
    cot__new_tape_backend = &counter;
    cot_program *p = cot_compile(f, NULL, n, types, m, NULL);
    cot__new_tape_backend = usual;
    return p;
}

BODY(loss) {
    UNUSED;
    cot_var h = cot_tanh(cot_matmul(xs[0], xs[1]));
    ys[0] = cot_sum(cot_mul(h, cot_exp(cot_sub(h, cot_index(cot_index(h, 0, 1), 0, 2)))), COT_ALL);
    return 0;
}
BODY(slope) {
    UNUSED;
    return cot_value_and_grad(loss, NULL, 2, xs, &ys[0], ys + 1) != COT_OK;
}

static void compiling_computes_no_product(void **state) {
    (void)state;
    cot_type     types[2] = {{COT_F64, COT_SHAPE(N, N)}, {COT_F64, COT_SHAPE(N, N)}};
    cot_program *p = compile_counted(slope, 2, types, 3);
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(products, 0);
    cot_program_destroy(p);
}

/* A norm reads dense operands: its own copy of a transposed array is an example as well, and so is
 * what a gradient of slices is written to, zeros at first. */
BODY(normal) {
    UNUSED;
    cot_var x = cot_layer_norm(cot_transpose(xs[0]), COT_NONE, COT_NONE, 1, 1e-5);
    cot_var half = cot_slice(x, 0, 0, N / 2, 1), rest = cot_slice(x, 0, N / 2, N, 1);
    ys[0] = cot_sum(cot_matmul(cot_transpose(half), cot_tanh(rest)), COT_ALL);
    return 0;
}
BODY(normal_slope) {
    UNUSED;
    return cot_value_and_grad(normal, NULL, 1, xs, &ys[0], ys + 1) != COT_OK;
}

static void copies_of_examples_are_examples(void **state) {
    (void)state;
    cot_type     type = {COT_F64, COT_SHAPE(N, N)};
    cot_program *p = compile_counted(normal_slope, 1, &type, 2);
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(products, 0);
    assert_int_equal(stages, 0);
    cot_program_destroy(p);
}

/* c c ᵀ of a constant c, computed; then a product with the input, not computed. */
BODY(with_constant) {
    double c[6] = {1, 2, 3, 4, 5, 6};
    UNUSED;
    cot_var a = cot_data(xs[0].tape, COT_F64, COT_SHAPE(2, 3), c), square = cot_matmul(a, cot_transpose(a));
    ys[0] = cot_matmul(xs[0], cot_add(square, cot_exp(cot_mul(0.0, square))));
    return 0;
}

static void constants_are_computed(void **state) {
    (void)state;
    cot_type     type = {COT_F64, COT_SHAPE(1, 2)};
    cot_program *p = compile_counted(with_constant, 1, &type, 1);
    cot_run     *r = cot_run_create(p);
    double       x[2] = {1, 10}, y[2] = {0};
    assert_int_equal(products, 1);
    assert_true(stages > 0);
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){y}), COT_OK);
    /* (14 32; 32 77), and 1 more of each */
    assert_true(y[0] == 15 + 330 && y[1] == 33 + 780);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* Positions that are constants are looked at now, others when the program runs. */
BODY(beyond) {
    UNUSED;
    ys[0] = cot_take(xs[0], cot_data(xs[0].tape, COT_I64, COT_SHAPE(2), (int64_t[]){0, N}), 0);
    return 0;
}
BODY(found) {
    UNUSED;
    cot_var steps = cot_cumsum(cot_square(xs[0]), 0, false);
    ys[0] = cot_take(xs[0], cot_searchsorted(cot_sort(steps, 0, false), steps, false), 0);
    return 0;
}

static void what_is_known_is_checked(void **state) {
    (void)state;
    cot_type     type = {COT_F64, COT_SHAPE(N)};
    cot_program *p = cot_compile(beyond, NULL, 1, &type, 1, NULL), *q = cot_compile(found, NULL, 1, &type, 1, NULL);
    assert_non_null(strstr(cot_program_message(p), "[take]"));
    assert_string_equal(cot_program_message(q), "");
    cot_program_destroy(p);
    cot_program_destroy(q);
}

/* In the function itself values that are written over in place stay examples. */
BODY(written) {
    UNUSED;
    cot_var y = cot_mul(xs[0], 2.0);
    cot_add_into(&y, cot_full(xs[0].tape, COT_F64, COT_SHAPE(N), 3.0));
    ys[0] = cot_add(y, cot_where(cot_less(xs[0], 0.5), xs[0], cot_full_like(xs[0], 7.0)));
    return 0;
}

static void writes_in_place_are_operations(void **state) {
    (void)state;
    cot_type     type = {COT_F64, COT_SHAPE(N)};
    cot_program *p = cot_compile(written, NULL, 1, &type, 1, NULL);
    cot_run     *r = cot_run_create(p);
    double       x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = i / 100.0;
    assert_string_equal(cot_run_message(r), "");
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){y}), COT_OK);
    for (int i = 0; i < N; i++) assert_true(y[i] == 2 * x[i] + 3 + (x[i] < 0.5 ? x[i] : 7));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiling_computes_no_product),
        cmocka_unit_test(copies_of_examples_are_examples),
        cmocka_unit_test(constants_are_computed),
        cmocka_unit_test(what_is_known_is_checked),
        cmocka_unit_test(writes_in_place_are_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
