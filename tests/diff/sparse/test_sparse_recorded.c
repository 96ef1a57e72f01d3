/* Sparse derivatives of functions, recorded: the entries that the sweeps give, differentiable, in
 * batches, in programs, and the errors when a plan does not fit. */
/* ctest: timeout=120 */
#define _GNU_SOURCE
#include "support/support.h"

#include <cotangent_program.h>

#include <math.h>
#include <string.h>

#include "samples/samples.h"
#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED_BODY (void)n, (void)m, (void)user
#include "support/tape_test.h"

enum { MOST = 4096 };

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        cot_var x = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                        : cot_scalar(t, f->in[k].data[0]);
        xs[k] = dtype == COT_F64 ? x : cot_leaf(cot_cast(x, dtype));
    }
}

BODY(sample) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    return 0;
}
BODY(loss_of_sample) {
    const test_function *f = user;
    (void)m;
    ys[0] = cot_sum(cot_sin(f->f(n, xs, f->user)), COT_ALL);
    return 0;
}

/* Second derivatives of these are sums that a batch makes in another order than sweeps do. */
static bool has_other_sums(const char *name) {
    return strstr(name, "(layer_norm)") || strstr(name, "(rms_norm)") || strstr(name, "(conv)");
}

/* The sign of a zero is not promised between sweeps and recorded derivatives (docs/bits.md). */
static void same_entries(const char *name, cot_var values, const double *want, int64_t nnz, bool second) {
    static double have[MOST];
    double        unit = cot_dtype_of(values) == COT_F64 ? 0x1p-52 : 0x1p-23, most = 0;
    if (!test_tape_ok(values.tape, name)) return;
    TEST_CHECK(cot_size(values) == nnz, "%s: %lld entries", name, (long long)cot_size(values));
    cot_read(values, have, nnz);
    for (int64_t k = 0; k < nnz; k++) most = isfinite(want[k]) ? fmax(most, fabs(want[k])) : most;
    double allowed = second && has_other_sums(name) ? 64 * unit * most : 0;
    for (int64_t k = 0; k < nnz; k++)
        TEST_CHECK(have[k] == want[k] || fabs(have[k] - want[k]) <= allowed || (isnan(have[k]) && isnan(want[k])),
                   "%s: entry %lld is %.17g, not %.17g", name, (long long)k, have[k], want[k]);
}

static void every_sample_has_the_bits_of_the_sweeps(void **state) {
    (void)state;
    static double want[MOST];
    for (int dtype = COT_F64; dtype <= COT_F32; dtype++)
        for (int i = 0; i < TEST_COUNT(samples); i++) {
            test_function f = function_of(&samples[i], i, 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS], values = COT_NONE;
            leaves_of(t, &f, (cot_dtype)dtype, xs);
            for (int mode = COT_REVERSE; mode <= COT_FORWARD; mode++) {
                cot_sparse_plan *p = cot_sparse_jacobian_plan_of(sample, &f, f.n, xs, 1, (cot_mode)mode);
                cot_sparse_jacobian_of(p, sample, &f, f.n, xs, 1, want);
                cot_fn_sparse_jacobian(p, sample, &f, f.n, xs, 1, NULL, &values);
                same_entries(f.name, values, want, cot_sparse_plan_info(p).nnz, false);
                cot_sparse_plan_destroy(p);
            }
            cot_sparse_plan *p = cot_sparse_hessian_plan_of(loss_of_sample, &f, f.n, xs);
            cot_sparse_hessian_of(p, loss_of_sample, &f, f.n, xs, want);
            cot_fn_sparse_hessian(p, loss_of_sample, &f, f.n, xs, NULL, &values);
            same_entries(f.name, values, want, cot_sparse_plan_info(p).nnz, true);
            cot_sparse_plan_destroy(p);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* ---- a chain --------------------------------------------------------------------------------- */

/* y[i] = x[i + 1]² b - x[i]; and the sum of its squares. */
BODY(chain) {
    UNUSED_BODY;
    cot_var x = xs[0];
    int64_t size = cot_size(x);
    ys[0] = cot_sub(cot_mul(cot_square(cot_slice(x, 0, 1, size, 1)), xs[1]), cot_slice(x, 0, 0, size - 1, 1));
    return 0;
}
BODY(energy) {
    cot_var y;
    chain(n, xs, m, &y, user);
    ys[0] = cot_sum(cot_square(y), COT_ALL);
    return 0;
}

typedef struct plans { cot_sparse_plan *jacobian, *hessian; } plans;

static plans plans_of(cot_tape *t, const cot_var *xs) {
    plans p = {cot_sparse_jacobian_plan_of(chain, NULL, 2, xs, 1, COT_AUTO),
               cot_sparse_hessian_plan_of(energy, NULL, 2, xs)};
    assert_ok(t);
    return p;
}

static void forget(plans *p) {
    cot_sparse_plan_destroy(p->jacobian);
    cot_sparse_plan_destroy(p->hessian);
}

static const double points[6] = {0.5, -1.25, 2, 0.75, 1.5, -0.5};

/* value, entries, energy, entries */
BODY(everything) {
    const plans *p = user;
    (void)m;
    cot_fn_sparse_jacobian(p->jacobian, chain, NULL, n, xs, 1, &ys[0], &ys[1]);
    cot_fn_sparse_hessian(p->hessian, energy, NULL, n, xs, &ys[2], &ys[3]);
    return 0;
}

static void a_program_runs_them_without_a_tape(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    b = 3, jacobian[MOST], hessian[MOST], have[2][MOST], value[5], energy_;
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), points), cot_scalar(t, b)};
    plans     p = plans_of(t, xs);
    int64_t   nnz[2] = {cot_sparse_plan_info(p.jacobian).nnz, cot_sparse_plan_info(p.hessian).nnz};
    cot_sparse_jacobian_of(p.jacobian, chain, NULL, 2, xs, 1, jacobian);
    cot_sparse_hessian_of(p.hessian, energy, NULL, 2, xs, hessian);
    cot_type     types[2] = {{COT_F64, COT_SHAPE(6)}, {COT_F64, {0}}};
    cot_program *program = cot_compile(everything, &p, 2, types, 4, NULL);
    cot_run     *run = cot_run_create(program);
    cot_program_run(run, (const void *[]){points, &b}, (void *[]){value, have[0], &energy_, have[1]});
    assert_string_equal(cot_run_message(run), "");
    assert_int_equal(nnz[0], 15);
    assert_memory_equal(have[0], jacobian, (size_t)nnz[0] * sizeof(double));
    assert_memory_equal(have[1], hessian, (size_t)nnz[1] * sizeof(double));
    cot_run_destroy(run);
    cot_program_destroy(program);
    forget(&p);
    cot_tape_destroy(t);
}

/* Entries of the Jacobian are 2 x[i + 1] b, -1 and x[i + 1]²: the gradient of their sum by x[j] is
 * 2 b + 2 x[j], but 0 for j = 0, and by b it is 2 Σ x[i + 1]. */
static void entries_can_be_differentiated(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), points), cot_scalar(t, 3)}, values, gradient[2];
    plans     p = plans_of(t, xs);
    double    by_x[6], by_b = 0;
    cot_fn_sparse_jacobian(p.jacobian, chain, NULL, 2, xs, 1, NULL, &values);
    cot_grad_of(cot_sum(values, COT_ALL), 2, xs, gradient);
    cot_read(gradient[0], by_x, 6);
    assert_ok(t);
    for (int k = 0; k < 6; k++) assert_near(by_x[k], k ? 6 + 2 * points[k] : 0, 0);
    for (int k = 1; k < 6; k++) by_b += 2 * points[k];
    assert_near(cot_value(gradient[1]), by_b, 0);
    forget(&p);
    cot_tape_destroy(t);
}

static void they_stand_in_batches(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    two[12], one[MOST], both[MOST];
    for (int k = 0; k < 12; k++) two[k] = points[k % 6] + (k / 6);
    cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), points), cot_scalar(t, 3)}, ys[4];
    cot_var batch[2] = {cot_tensor(t, COT_F64, COT_SHAPE(2, 6), two), xs[1]};
    plans   p = plans_of(t, xs);
    int64_t nnz = cot_sparse_plan_info(p.hessian).nnz;
    cot_vmap(everything, &p, 2, batch, (int[]){0, COT_NOT_BATCHED}, 4, ys, NULL);
    cot_read(ys[3], both, 2 * nnz);
    assert_ok(t);
    for (int k = 0; k < 2; k++) {
        cot_var x[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), two + 6 * k), xs[1]};
        cot_sparse_hessian_of(p.hessian, energy, NULL, 2, x, one);
        assert_ok(t);
        assert_memory_equal(both + k * nnz, one, (size_t)nnz * sizeof(double));
    }
    forget(&p);
    cot_tape_destroy(t);
}

BODY(whole) { UNUSED_BODY; ys[0] = cot_cast(xs[0], COT_I64); return 0; }

static void refused(cot_tape *t, cot_var values, cot_status code, const char *text) {
    assert_error(t, code, text);
    assert_false(cot_is_valid(values));
    cot_tape_clear_error(t);
}

static void mistakes_are_sentences(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), points), cot_scalar(t, 3)}, v, y;
    cot_var   shorter[2] = {cot_tensor(t, COT_F64, COT_SHAPE(5), points), xs[1]};
    cot_var   integers[2] = {cot_cast(xs[0], COT_I64), xs[1]};
    plans     p = plans_of(t, xs);
    cot_fn_sparse_jacobian(NULL, chain, NULL, 2, xs, 1, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_jacobian] the plan is NULL; make one first");
    cot_fn_sparse_jacobian(p.hessian, chain, NULL, 2, xs, 1, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_jacobian] the plan is for a Hessian; make one for a Jacobian");
    cot_fn_sparse_hessian(p.jacobian, energy, NULL, 2, xs, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_hessian] the plan is for a Jacobian; make one for a Hessian");
    cot_fn_sparse_jacobian(p.jacobian, chain, NULL, 2, shorter, 1, &y, &v);
    refused(t, v, COT_SHAPE, "[fn_sparse_jacobian] the plan is for (5,7), the matrix is (4,6); make a plan for these "
                             "outputs and inputs");
    cot_fn_sparse_hessian(p.hessian, chain, NULL, 2, xs, &y, &v);
    refused(t, v, COT_SHAPE, "[fn_sparse_hessian] the function gives f64 of shape (5,); a Hessian is of one float, use "
                             "cot_fn_sparse_jacobian");
    cot_fn_sparse_hessian(p.hessian, energy, NULL, 2, integers, &y, &v);
    refused(t, v, COT_DTYPE, "[fn_sparse_hessian] xs[0] is i64; derivatives are those of floats by floats");
    cot_fn_sparse_jacobian(p.jacobian, chain, NULL, 2, integers, 1, &y, &v);
    refused(t, v, COT_DTYPE, "[fn_sparse_jacobian] xs[0] is i64; derivatives are those of floats by floats");
    cot_fn_sparse_jacobian(p.jacobian, whole, NULL, 2, xs, 1, &y, &v);
    refused(t, v, COT_DTYPE, "[fn_sparse_jacobian] ys[0] is i64; derivatives are those of floats by floats");
    cot_fn_sparse_jacobian(p.jacobian, NULL, NULL, 2, xs, 1, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_jacobian] the function is NULL");
    cot_fn_sparse_hessian(p.hessian, NULL, NULL, 2, xs, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_hessian] the function is NULL");
    cot_fn_sparse_jacobian(p.jacobian, chain, NULL, 2, xs, -1, &y, &v);
    refused(t, v, COT_VALUE, "[fn_sparse_jacobian] a negative number of values: -1");
    cot_fn_sparse_hessian(p.hessian, energy, NULL, 2, xs, &y, NULL);
    assert_error(t, COT_VALUE, "[fn_sparse_hessian] a list of 1 values is NULL");
    assert_int_equal(cot_fn_sparse_jacobian(p.jacobian, chain, NULL, 0, NULL, 1, &y, &v), COT_VAR);
    forget(&p);
    cot_tape_destroy(t);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    cot_tape *other = cot_tape_create(NULL);
    cot_var   made[2] = {cot_tensor(other, COT_F64, COT_SHAPE(6), points), cot_scalar(other, 3)};
    plans     p = plans_of(other, made);
    bool heard = false;
    for (long n = 2;; n++) {
        counting  c = {.fail_at = n, .fail_for_good = true};
        cot_tape *t = counted_tape(&c, false);
        cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(6), points), cot_scalar(t, 3)}, ys[4];
        everything(2, xs, 4, ys, &p);
        double sum = cot_value(cot_sum(ys[3], COT_ALL));
        bool   ok = cot_tape_status(t) == COT_OK;
        if (!ok) assert_non_null(strstr(cot_tape_message(t), "] out of memory"));
        heard |= strcmp(cot_tape_message(t), "[fn_sparse_jacobian] out of memory: the positions of 15 entries") == 0;
        if (ok) assert_true(isfinite(sum));
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
        assert_false(c.wrong_size);
        if (ok) break;
    }
    assert_true(heard);
    forget(&p);
    cot_tape_destroy(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_has_the_bits_of_the_sweeps),
        cmocka_unit_test(a_program_runs_them_without_a_tape),
        cmocka_unit_test(entries_can_be_differentiated),
        cmocka_unit_test(they_stand_in_batches),
        cmocka_unit_test(mistakes_are_sentences),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
