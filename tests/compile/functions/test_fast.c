/* Programs that may do what IEEE does not allow (`fast`): their results are close, with fewer
 * operations; derivatives too; and nothing of it happens unasked. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include "compile/variants.h"
#include "rules/elementwise_ids.h"

#include <cotangent_program.h>

#include <float.h>
#include <string.h>
#include <unistd.h>

enum { N = 300 };

static const cot_type types[2] = {{COT_F64, {1, {N}}}, {COT_F64, {0, {0}}}};

/* Quotients by one value, a power, a number beside a number: all positive, and nothing is
 * subtracted. */
BODY(curve) {
    UNUSED;
    cot_var a = cot_div(cot_pow(xs[0], 3.0), xs[1]), b = cot_mul(cot_mul(xs[0], 0.3), 7.0);
    ys[0] = cot_div(cot_add(cot_mul(a, xs[0]), cot_mul(b, xs[0])), cot_add(xs[0], 1.0));
    return 0;
}

static void fill(double x[N], double shift) {
    for (int i = 0; i < N; i++) x[i] = 0.5 + shift + (double)(i * 37 % N) / N;
}

static cot_program *compile(cot_fn f, int n, int m, bool fast) {
    cot_program *p = cot_compile(f, NULL, n, types, m, &(cot_compile_options){.fast = fast});
    assert_string_equal(cot_program_message(p), "");
    return p;
}

static void run(cot_program *p, double y[N]) {
    double   x[N], s = 1.7;
    cot_run *r = cot_run_create(p);
    fill(x, 0);
    assert_int_equal(cot_program_run(r, (const void *[]){x, &s}, (void *[]){y}), COT_OK);
    cot_run_destroy(r);
}

static int64_t operations_of(cot_program *p) {
    cot_program_facts f;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    return f.operations - f.views;
}

/* Fewer roundings than this many, each of a unit of the result, since all terms are positive. */
enum { ROUNDINGS = 20 };

static void assert_close(int n, const double *got, const double *want) {
    for (int i = 0; i < n; i++) assert_true(fabs(got[i] - want[i]) <= ROUNDINGS * DBL_EPSILON * fabs(want[i]));
}

static void off_by_default_it_has_the_bits_of_the_function(void **state) {
    double    x[N], want[N], got[N];
    cot_tape *t = cot_tape_create(NULL);
    (void)state;
    fill(x, 0);
    cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(N), x), cot_scalar(t, 1.7)}, y;
    curve(2, xs, 1, &y, NULL);
    cot_read(y, want, N);
    cot_program *p = cot_compile(curve, NULL, 2, types, 1, NULL);
    run(p, got);
    assert_memory_equal(got, want, sizeof got);
    cot_program_destroy(p);
    cot_tape_destroy(t);
}

static void results_are_close_and_operations_are_gone(void **state) {
    double       want[N], got[N];
    cot_program *exact = compile(curve, 2, 1, false), *fast = compile(curve, 2, 1, true);
    (void)state;
    run(exact, want);
    run(fast, got);
    assert_close(N, got, want);
    assert_true(memcmp(got, want, sizeof got) != 0);
    assert_int_equal(operations_of(exact), 9);
    assert_int_equal(operations_of(fast), 8);
    char  text[4096] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    cot_program_print(fast, f);
    fclose(f);
    assert_null(strstr(text, "pow")); /* what is left is cheap */
    cot_program_destroy(exact);
    cot_program_destroy(fast);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

static void gradient_of(cot_program *p, double *x, double *g) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(N), x), cot_scalar(t, 1.7)}, y;
    assert_int_equal(cot_program_call(p, 2, xs, 1, &y), COT_OK);
    cot_backward(cot_sum(y, COT_ALL));
    cot_read(cot_grad(xs[0]), g, N);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void forget(const cot__caller *c, cot_status code, const char *text) { (void)c, (void)code, (void)text; }
static void ignore(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* Divisions and powers of arrays on the way back. */
static int dear_operations(cot_program *p) {
    cot__caller         caller = {"test", NULL, forget, ignore, NULL};
    const bool          inputs[2] = {true, true}, results[1] = {true};
    const cot__variant *v = cot__variant_of(p, COT__SPLIT, false, inputs, results, &caller);
    assert_non_null(v);
    const cot__program *back = v->backward->runs;
    int                 dear = 0;
    for (uint32_t k = 0; k < back->operations; k++) {
        int op = back->operation[k].op;
        dear += (op == OP_div || op == OP_sdiv || op == OP_pow || op == OP_reciprocal) &&
                cot__value_view(back, back->operation[k].result).ndim > 0;
    }
    return dear;
}

static void derivatives_are_fast_too(void **state) {
    double       x[N], want[N], got[N];
    cot_program *exact = compile(curve, 2, 1, false), *fast = compile(curve, 2, 1, true);
    (void)state;
    fill(x, 0);
    gradient_of(exact, x, want);
    gradient_of(fast, x, got);
    /* one term of the quotient's derivative is subtracted, from one twice as large or more */
    for (int i = 0; i < N; i++) assert_true(fabs(got[i] - want[i]) <= 4 * ROUNDINGS * DBL_EPSILON * fabs(want[i]));
    assert_true(memcmp(got, want, sizeof got) != 0);
    assert_int_equal(dear_operations(exact), 5);
    assert_int_equal(dear_operations(fast), 1); /* one reciprocal is left */
    cot_program_destroy(exact);
    cot_program_destroy(fast);
}

/* Where x <= 0 the branch of the root is not taken, and its partial is infinite or NaN. */
BODY(guarded) {
    UNUSED;
    ys[0] = cot_where(cot_greater(xs[0], 0.0), cot_mul(cot_sqrt(xs[0]), cot_pow(xs[0], -2.0)), xs[1]);
    return 0;
}

static void branches_that_are_not_taken_leave_no_nan(void **state) {
    double       x[N], g[N];
    cot_program *p = compile(guarded, 2, 1, true);
    (void)state;
    for (int i = 0; i < N; i++) x[i] = i % 3 - 1;
    gradient_of(p, x, g);
    for (int i = 0; i < N; i++) assert_true(x[i] > 0 ? fabs(g[i] + 1.5) < 1e-12 : g[i] == 0);
    cot_program_destroy(p);
}

/* The second input stands behind in one product, and in the other, beside a pole, in front. */
BODY(zero_beside_a_pole) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], xs[1]), cot_smul(xs[1], cot_log(xs[2])));
    return 0;
}

static void joined_products_keep_their_strong_zero(void **state) {
    static const cot_type three[3] = {{COT_F64, {1, {2}}}, {COT_F64, {1, {2}}}, {COT_F64, {1, {2}}}};
    double       x[2] = {0, 2}, a[2] = {3, 3}, pole[2] = {0, 1}, y[2];
    cot_program *p = cot_compile(zero_beside_a_pole, NULL, 3, three, 1, &(cot_compile_options){.fast = true});
    cot_run     *r = cot_run_create(p);
    (void)state;
    assert_int_equal(cot_program_run(r, (const void *[]){a, x, pole}, (void *[]){y}), COT_OK);
    assert_true(y[0] == 0 && y[1] == 6);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* |x|, whose slope at 0 is a pole times a zero: the zero stands behind. */
BODY(root_of_square) {
    UNUSED;
    ys[0] = cot_sum(cot_sqrt(cot_square(xs[0])), COT_ALL);
    return 0;
}
BODY(slope_of_root) {
    cot_var value;
    UNUSED;
    return cot_value_and_grad(root_of_square, NULL, 1, xs, &value, ys) != COT_OK;
}

static void a_zero_behind_a_pole_stays_strong(void **state) {
    double       x[N], g[N];
    cot_program *p = compile(slope_of_root, 1, 1, true);
    cot_run     *r = cot_run_create(p);
    (void)state;
    for (int i = 0; i < N; i++) x[i] = i % 3 - 1;
    assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){g}), COT_OK);
    for (int i = 0; i < N; i++) assert_true(g[i] == x[i]);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- beside other options -------------------------------------------------------------------- */

static void a_plain_program_is_as_it_was_recorded(void **state) {
    cot_program *p = cot_compile(curve, NULL, 2, types, 1, &(cot_compile_options){.fast = true, .plain = true});
    (void)state;
    assert_ptr_equal(p->source, p->runs);
    cot_program_destroy(p);
}

static void verifying_it_is_refused(void **state) {
    cot_program *p = cot_compile(curve, NULL, 2, types, 1, &(cot_compile_options){.fast = true, .verify = true});
    (void)state;
    assert_int_equal(cot_program_status(p), COT_VALUE);
    assert_string_equal(cot_program_message(p),
                        "[compile] verify compares bits, which fast does not keep; ask for one of them");
    cot_program_destroy(p);
}

/* What is saved is the function, and who loads it says how. */
static void a_saved_program_is_exact(void **state) {
    static const char path[] = "/tmp/cotangent-test-fast.cot";
    double            want[N], got[N], exact[N];
    cot_program      *p = compile(curve, 2, 1, true);
    (void)state;
    assert_int_equal(cot_program_save(p, path, NULL, 0), COT_OK);
    run(p, want);
    cot_program_destroy(p);
    p = cot_program_load(path, &(cot_compile_options){.fast = true});
    run(p, got);
    assert_memory_equal(got, want, sizeof got);
    cot_program_destroy(p);
    p = compile(curve, 2, 1, false);
    run(p, exact);
    cot_program_destroy(p);
    p = cot_program_load(path, NULL);
    run(p, got);
    assert_memory_equal(got, exact, sizeof got);
    cot_program_destroy(p);
    unlink(path);
}

static void any_number_of_threads_gives_the_same_bits(void **state) {
    double       want[N], got[N];
    cot_program *p = compile(curve, 2, 1, true);
    int64_t      usual = cot__grain;
    (void)state;
    run(p, want);
    cot__grain = 1;
    for (int threads = 1; threads <= 7; threads += 3) {
        cot_set_threads(threads);
        run(p, got);
        assert_memory_equal(got, want, sizeof got);
    }
    cot_set_threads(0);
    cot__grain = usual;
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_by_default_it_has_the_bits_of_the_function),
        cmocka_unit_test(results_are_close_and_operations_are_gone),
        cmocka_unit_test(derivatives_are_fast_too),
        cmocka_unit_test(branches_that_are_not_taken_leave_no_nan),
        cmocka_unit_test(joined_products_keep_their_strong_zero),
        cmocka_unit_test(a_zero_behind_a_pole_stays_strong),
        cmocka_unit_test(a_plain_program_is_as_it_was_recorded),
        cmocka_unit_test(verifying_it_is_refused),
        cmocka_unit_test(a_saved_program_is_exact),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
