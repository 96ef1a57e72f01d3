/* Where no derivative can be asked for, a large cot_vmap runs as a program: with the bits of what
 * is recorded, for every sample and choice of batched inputs, whatever the number of threads; with
 * the same errors; and in the memory of what is needed at a time. */
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "backend/recipe.h"
#include "diff/batch/vmap.h"
#include "diff/loops/loop.h"

#include <string.h>

enum { EXTENT = 3, MOST = 4096 };

static int64_t usual_from;

static int set_up(void **state) {
    (void)state;
    usual_from = cot__vmap_program_from;
    cot__vmap_program_from = 0;
    return 0;
}
static int take_down(void **state) {
    (void)state;
    cot__vmap_program_from = usual_from;
    cot_set_threads(0);
    return 0;
}

static bool is_program(cot_var y) {
    const cot__node *n = &y.tape->nodes[cot__operation_at(y.tape, cot__index(y))];
    return n->op == OP_loop && strcmp(((const cot__loop *)n->extra.attr->pointer)->name, "vmap") == 0;
}

/* ---- bits ------------------------------------------------------------------------------------ */

static int call_sample(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    return 0;
}

/* Its shape depends on values. */
static bool has_no_batch(cot_function f) { return f == s_compress || f == s_masked_select; }

/* Constants with room for a batch in front where the subset says so. */
static void constants_of(cot_tape *t, int i, const test_function *f, unsigned subset, cot_var *xs, int *axes) {
    for (int k = 0; k < f->n; k++) {
        double    data[EXTENT * TEST_MAX_SIZE];
        cot_shape s = f->in[k].shape;
        int64_t   n = cot__count(s.ndim, s.dim);
        for (int e = 0; e < EXTENT; e++) {
            test_function g = function_of(&samples[i], i, e);
            memcpy(data + e * n, g.in[k].data, (size_t)n * sizeof *data);
        }
        axes[k] = subset >> k & 1 ? 0 : COT_NOT_BATCHED;
        xs[k] = cot_data(t, COT_F64, axes[k] ? s : cot__batch_shape(t, EXTENT, s), data);
    }
}

typedef struct outcome {
    cot_dtype  dtype;
    cot_shape  shape;
    double     at[MOST];
    cot_status status;
    char       text[600]; /* error and note */
    bool       program;
} outcome;

static void map_sample(int i, unsigned subset, int64_t from, outcome *o) {
    cot_tape     *t = cot_tape_create(NULL);
    test_function f = function_of(&samples[i], i, 0);
    cot_var       xs[TEST_MAX_INPUTS], y;
    int           axes[TEST_MAX_INPUTS];
    char          why[256];
    cot__vmap_program_from = from;
    constants_of(t, i, &f, subset, xs, axes);
    o->status = cot_vmap(call_sample, &f, f.n, xs, axes, 1, &y, NULL);
    snprintf(o->text, sizeof o->text, "%s|%s", cot_tape_message(t), cot_tape_note(t));
    o->program = false;
    if (o->status == COT_OK) {
        o->dtype = cot_dtype_of(y), o->shape = cot_shape_of(y), o->program = is_program(y);
        assert_true(cot__count(o->shape.ndim, o->shape.dim) <= MOST);
        assert_int_equal(cot_read(cot_cast(y, COT_F64), o->at, cot__count(o->shape.ndim, o->shape.dim)), COT_OK);
        assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    }
    cot_tape_destroy(t);
}

static void every_sample_has_the_bits_of_what_is_recorded(void **state) {
    static outcome want, have;
    static const int threads[] = {1, 2, 7};
    int programs = 0, cases = 0;
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (unsigned subset = 1; subset < 1u << samples[i].n && !has_no_batch(samples[i].f); subset++) {
            cot_set_threads(1);
            map_sample(i, subset, INT64_MAX, &want);
            assert_false(want.program);
            for (int k = 0; k < (test_small() ? 1 : 3); k++) {
                cot_set_threads(threads[k]);
                map_sample(i, subset, 0, &have);
                const char *name = samples[i].op ? samples[i].op : "composed";
                TEST_CHECK(have.status == want.status && !strcmp(have.text, want.text), "sample %d (%s): %s, %s", i,
                           name, have.text, want.text);
                if (want.status != COT_OK || have.status != COT_OK) continue;
                TEST_CHECK(have.dtype == want.dtype && cot__same_shape(&have.shape, &want.shape),
                           "sample %d (%s): another type", i, name);
                test_same_array("the batch", name, cot__count(want.shape.ndim, want.shape.dim), have.at, want.at);
                if (k == 0) cases++, programs += have.program;
            }
        }
    /* solvers, functions of the user's and results that are views of inputs are recorded */
    TEST_CHECK(programs * 10 > cases * 8, "%d of %d ran as programs", programs, cases);
    test_verdict();
}

/* ---- when ------------------------------------------------------------------------------------ */

static int chain(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y = xs[0];
    (void)n, (void)m;
    for (int k = 0; k < 20; k++) y = cot_tanh(cot_add(cot_mul(y, *(const cot_var *)user), 0.5));
    ys[0] = y;
    return 0;
}

static void what_may_have_a_derivative_is_recorded(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), w = cot_constant(t, 0.5), leaf = cot_scalar(t, 0.5), y;
    (void)state;
    cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
    assert_false(is_program(y)); /* x is a leaf */
    x = cot_detach(x);
    cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
    assert_true(is_program(y));
    cot_vmap(chain, &leaf, 1, &x, NULL, 1, &y, NULL);
    assert_false(is_program(y)); /* the function has captured a leaf */
    cot_no_grad_open(t);
    cot_vmap(chain, &leaf, 1, &x, NULL, 1, &y, NULL);
    cot_no_grad_close(t);
    assert_true(is_program(y));
    assert_ok(t);
    /* what was lost is told as ever */
    assert_int_equal(cot_jacobian(1, &y, 1, &leaf, COT_REVERSE, (double[6]){0}), COT_GRAD);
    assert_non_null(strstr(cot_tape_message(t), "was computed from the xs without recording gradients"));
    cot_tape_destroy(t);
}

static int sums_of_sums(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_cumsum(cot_cumsum(xs[0], 0, false), 0, false);
    return 0;
}

/* Each time on a tape that has not met it. */
static bool is_program_at_once(cot_fn f, int64_t from) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(10, 7)), w = cot_constant(t, 0.5), y;
    cot__vmap_program_from = from;
    cot_vmap(f, &w, 1, &x, NULL, 1, &y, NULL);
    bool is = is_program(y);
    assert_ok(t);
    cot_tape_destroy(t);
    return is;
}

static void small_work_is_recorded_the_first_time(void **state) {
    (void)state;
    /* 60 elementwise operations, 7 elements for each of ten, which count four times */
    assert_false(is_program_at_once(chain, 4 * 10 * 7 * 60 + 1));
    assert_true(is_program_at_once(chain, 4 * 10 * 7 * 60));
    /* two other operations, which count once */
    assert_true(is_program_at_once(sums_of_sums, 10 * 7 * 2));
    assert_false(is_program_at_once(sums_of_sums, 10 * 7 * 2 + 1));
}

static int cubes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], cot_square(xs[0]));
    return 0;
}
static int slopes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_fn_vjp(cubes, user, n, xs, 1, ys, (cot_var[]){cot_number(1)}, ys + 1) != COT_OK;
}

/* It is differentiated in the body, but depends on no leaf. */
static void a_derivative_at_a_constant_is_a_constant(void **state) {
    static const int64_t from[] = {0, INT64_MAX};
    double               dy[3];
    (void)state;
    for (int k = 0; k < TEST_COUNT(from); k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), c = cot_detach(x), ys[2];
        cot__vmap_program_from = from[k];
        cot_vmap(slopes, NULL, 1, &c, NULL, 2, ys, NULL);
        assert_int_equal(is_program(ys[1]), k == 0);
        for (int i = 0; i < 2; i++) assert_false(cot_requires_grad(ys[i]));
        cot_read(ys[1], dy, 3);
        assert_memory_equal(dy, ((double[]){3, 12, 27}), sizeof dy);
        cot_vmap(slopes, NULL, 1, &x, NULL, 2, ys, NULL);
        for (int i = 0; i < 2; i++) assert_true(cot_requires_grad(ys[i]));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

/* The norm of a product that is never written when it is recorded. */
static int norm_of_product(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sum(cot_square(cot_outer(xs[0], xs[0])), COT_ALL);
    return 0;
}

static void a_product_that_need_not_be_written_is_recorded(void **state) {
    size_t    product_from = cot__product_from;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(4, 8)), small = cot_zeros(t, COT_F64, COT_SHAPE(4, 7)), y;
    (void)state;
    cot__product_from = 4 * 64 * 8;
    cot_vmap(norm_of_product, NULL, 1, &x, NULL, 1, &y, NULL); /* 64 elements of 16 */
    assert_false(is_program(y));
    cot_vmap(norm_of_product, NULL, 1, &small, NULL, 1, &y, NULL); /* 49 of 14 */
    assert_true(is_program(y));
    cot__product_from++; /* what is smaller than this never waits */
    cot_vmap(norm_of_product, NULL, 1, &x, NULL, 1, &y, NULL);
    assert_true(is_program(y));
    cot__product_from = product_from;
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- results, errors, memory ----------------------------------------------------------------- */

/* One result with the batch, one without, an integer, and one of a captured array. */
static int several(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *w = user;
    (void)n, (void)m;
    ys[0] = cot_mul(xs[0], *w);
    ys[1] = cot_exp(xs[1]);
    ys[2] = cot_argmax(xs[0], COT_ALL);
    ys[3] = cot_sum(*w, COT_ALL);
    return 0;
}

static void results_stand_where_they_are_wanted(void **state) {
    double at[2][4][12];
    const int sizes[4] = {12, 1, 4, 4};
    (void)state;
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[2] = {cot_reshape(cot_arange(t, COT_F64, 0, 12, 1), COT_SHAPE(3, 4)), cot_constant(t, 0.7)}, y[4];
        cot_var   w = cot_arange(t, COT_F64, 1, 4, 1);
        cot__vmap_program_from = way ? 0 : INT64_MAX;
        cot_vmap(several, &w, 2, x, (int[]){1, COT_NOT_BATCHED}, 4, y, (int[]){1, COT_NOT_BATCHED, 0, 0});
        assert_ok(t);
        for (int k = 0; k < 4; k++) assert_int_equal(cot_size(y[k]), sizes[k]);
        assert_int_equal(cot_shape_of(y[0]).dim[1], 4);
        assert_int_equal(cot_dtype_of(y[2]), COT_I64);
        for (int k = 0; k < 4; k++) {
            cot_shape s = cot_shape_of(y[k]);
            cot_read(cot_cast(y[k], COT_F64), at[way][k], cot__count(s.ndim, s.dim));
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
    assert_memory_equal(at[0][0], at[1][0], sizeof at[0][0]);
    assert_memory_equal(at[0][1], at[1][1], sizeof(double));
    assert_memory_equal(at[0][2], at[1][2], 4 * sizeof(double));
    assert_memory_equal(at[0][3], at[1][3], 4 * sizeof(double));
}

static int picks(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_take(*(const cot_var *)user, xs[0], 0);
    return 0;
}

static void an_illegal_position_is_told_as_when_it_is_recorded(void **state) {
    char text[2][600];
    (void)state;
    for (int way = 0; way < 2; way++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   at = cot_data(t, COT_I64, COT_SHAPE(3), (int64_t[]){0, 9, 1}), y;
        cot_var   of = cot_arange(t, COT_F64, 0, 4, 1);
        cot__vmap_program_from = way ? 0 : INT64_MAX;
        assert_int_equal(cot_vmap(picks, &of, 1, &at, NULL, 1, &y, NULL), COT_VALUE);
        assert_false(cot_is_valid(y));
        snprintf(text[way], sizeof text[way], "%s", cot_tape_message(t));
        cot_tape_destroy(t);
    }
    assert_string_equal(text[1], text[0]);
}

static void it_holds_its_result_and_no_value_between(void **state) {
    enum { SIZE = 1 << 17 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var x = cot_zeros(t, COT_F64, COT_SHAPE(64, SIZE / 64)), w = cot_constant(t, 0.5), y;
    size_t  before = t->cache.live;
    (void)state;
    cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
    assert_true(is_program(y));
    assert_ok(t);
    /* the result, and what the run keeps for the next time: not 60 arrays */
    assert_true(t->cache.live - before < 3 * SIZE * sizeof(double));
    cot_tape_destroy(t);
}

static void map_again(cot_tape *t, void *user) {
    cot_var x = cot_zeros(t, COT_F64, COT_SHAPE(2, 3)), w = cot_constant(t, 0.5), y;
    (void)user;
    for (int k = 0; k < 3; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
        if (cot_tape_status(t) != COT_OK) return;
        assert_true(is_program(y));
        cot_tape_rewind(t, m);
    }
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(map_again, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_has_the_bits_of_what_is_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(what_may_have_a_derivative_is_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_derivative_at_a_constant_is_a_constant, set_up, take_down),
        cmocka_unit_test_setup_teardown(small_work_is_recorded_the_first_time, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_product_that_need_not_be_written_is_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(results_stand_where_they_are_wanted, set_up, take_down),
        cmocka_unit_test_setup_teardown(an_illegal_position_is_told_as_when_it_is_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(it_holds_its_result_and_no_value_between, set_up, take_down),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, set_up, take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
