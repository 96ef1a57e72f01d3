/* cot__reapply: plays every operation of the tables again, on its own operands, on others, and
 * differentiated. */
/* ctest: timeout=120 */
#include "rules/elementwise_ids.h"
#include "samples/samples.h"
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

/* ---- replaying a part of a tape -------------------------------------------------------------- */

enum { MAX_NODES = 4096, MAX_ARGS = 64 };

static cot_var values[MAX_NODES]; /* of the nodes that were replayed */

static bool overwritten(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version;
}

/* The library writes constants in place where they are zeros: adjoints that are added to part by
 * part, diagonals. */
static cot_var source(cot_tape *t, uint32_t i) {
    return overwritten(t, i) ? cot_zeros(t, cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i)) : VAR(t, i);
}

static cot_var replay_node(cot_tape *t, uint32_t i) {
    cot_var xs[MAX_ARGS];
    int     n = cot__nargs(&t->nodes[i]);
    assert_in_range(n, 0, MAX_ARGS);
    /* the loop that it belongs to plays it */
    if (cot__in_body(&t->nodes[i])) return VAR(t, i);
    if (cot__op_of(t->nodes[i].op)->kind == KIND_SOURCE) return source(t, i);
    for (int k = 0; k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        xs[k] = a == COT__NONE ? (cot_var){0} : values[a];
    }
    return cot__reapply(t, i, xs);
}

static void read_raw(cot_var x, char *out, size_t size) {
    cot__view v = cot__look(x.tape, cot__index(x));
    int64_t   stride[COT_MAX_NDIM];
    assert_true((size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype)) <= size);
    cot__strides(v.ndim, v.shape, stride);
    x.tape->backend->copy_out(&(cot__view){out, v.dtype, v.ndim, v.shape, stride}, &v);
}

static bool same_value(cot_var a, cot_var b) {
    static char p[8192], q[8192];
    cot_shape   sa = cot_shape_of(a), sb = cot_shape_of(b);
    if (cot_dtype_of(a) != cot_dtype_of(b) || !cot__same_shape(&sa, &sb)) return false;
    read_raw(a, p, sizeof p);
    read_raw(b, q, sizeof q);
    return memcmp(p, q, (size_t)(cot__count(sa.ndim, sa.dim) * cot__dtype_size(cot_dtype_of(a)))) == 0;
}

/* Replays nodes from … to - 1 and compares each with the original. All operands have their own
 * values. */
static void replay_and_compare(cot_tape *t, uint32_t from, uint32_t to, const char *name) {
    assert_true(to <= MAX_NODES);
    for (uint32_t i = 0; i < from; i++) values[i] = VAR(t, i);
    for (uint32_t i = from; i < to; i++) {
        values[i] = replay_node(t, i);
        if (!test_tape_ok(t, name)) return;
        if (overwritten(t, i) || cot__in_body(&t->nodes[i])) continue;
        const char *op = cot__op_of(t->nodes[i].op)->name;
        TEST_CHECK(same_value(values[i], VAR(t, i)), "%s: %s (%%%u) is not the same when applied again", name, op, i);
        TEST_CHECK(cot__op_of(t->nodes[i].op)->kind == KIND_SOURCE || cot__index(values[i]) != i,
                   "%s: %s gave the old node back", name, op);
    }
}

/* ---- every sample ---------------------------------------------------------------------------- */

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double *data = (double *)(uintptr_t)f->in[k].data;
        cot_var wide = cot_data(t, COT_F64, f->in[k].shape, data);
        char    raw[TEST_MAX_SIZE * sizeof(double)];
        read_raw(cot_cast(wide, dtype), raw, sizeof raw);
        xs[k] = cot_tensor(t, dtype, f->in[k].shape, raw);
    }
}

static void every_node_of_every_sample(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = 0; d < 2; d++) {
            test_function f = function_of(&samples[i], i, 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS];
            leaves_of(t, &f, d ? COT_F32 : COT_F64, xs);
            uint32_t from = t->count;
            f.f(f.n, xs, f.user);
            if (test_tape_ok(t, f.name)) replay_and_compare(t, from, t->count, f.name);
            char why[256];
            TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s: %s", f.name, why);
            cot_tape_destroy(t);
        }
    test_verdict();
}

/* The nodes that these record depend on the values: on how often a matrix is squared. */
static bool records_by_value(cot_function f) { return f == s_matrix_exp || f == s_matrix_exp_large; }

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

/* Recorded on one point and replayed on another: as if it had been recorded there, values and
 * gradients. */
static void every_sample_on_other_operands(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        if (records_by_value(samples[i].f)) continue;
        test_function f = function_of(&samples[i], i, 0), g = function_of(&samples[i], i, 1);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS], ys[TEST_MAX_INPUTS], grads[2][TEST_MAX_INPUTS];
        leaves_of(t, &f, COT_F64, xs);
        uint32_t from = t->count;
        cot_var  z = f.f(f.n, xs, f.user);
        uint32_t to = t->count;
        leaves_of(t, &g, COT_F64, ys);
        if (!test_tape_ok(t, f.name)) continue;
        for (uint32_t k = 0; k < from; k++) values[k] = VAR(t, k);
        for (int k = 0; k < f.n; k++) values[cot__index(xs[k])] = ys[k];
        for (uint32_t k = from; k < to; k++) values[k] = replay_node(t, k);
        cot_var again = values[cot__index(z)], want = g.f(g.n, ys, g.user);
        if (test_tape_ok(t, f.name)) {
            TEST_CHECK(same_value(again, want),
                       "%s: replayed on another point, the value is not what the function gives there", f.name);
            cot_grad_of(loss(again), f.n, ys, grads[0]);
            cot_grad_of(loss(want), f.n, ys, grads[1]);
            if (test_tape_ok(t, f.name))
                for (int k = 0; k < f.n; k++)
                    TEST_CHECK(same_value(grads[0][k], grads[1][k]),
                               "%s: the gradient of input %d through replayed nodes differs", f.name, k);
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- every elementwise operation ------------------------------------------------------------- */

/* Operand k of an elementwise operation: tensors, scalars, or a plain number in its place. */
static cot_var operand_of(cot_tape *t, cot_dtype dtype, bool tensor, double x) {
    cot_var c = cot_constant(t, x);
    if (tensor) c = cot_broadcast_to(c, COT_SHAPE(2, 3));
    return cot_cast(c, dtype);
}

static void elementwise_case(int op, cot_dtype dtype, bool tensor, int number) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    cot_tape                    *t = cot_tape_create(NULL);
    test_random                  random = test_random_of(e->name, 7);
    double                       x[2][3];
    cot_var                      xs[2][3], want[2];
    char                         name[96];
    snprintf(name, sizeof name, "%s of %s%s, number at %d", e->name, cot_dtype_name(dtype), tensor ? " tensors" : "",
             number);
    test_sample(op, &random, x[0]);
    test_sample(op, &random, x[1]);
    if (number >= 0) x[1][number] = x[0][number]; /* the number is the node's */
    for (int p = 0; p < 2; p++) {
        for (int k = 0; k < e->arity; k++) {
            bool whole = !cot__dtype_is_float(dtype);
            xs[p][k] = k != number ? operand_of(t, op == OP_where && k == 0 ? COT_BOOL : dtype, tensor, x[p][k])
                                   : whole ? cot_integer((int64_t)x[p][k]) : cot_number(x[p][k]);
        }
        uint32_t from = t->count;
        want[p] = test_call(op, xs[p]);
        if (p == 0 && test_tape_ok(t, name)) replay_and_compare(t, from, t->count, name);
    }
    if (test_tape_ok(t, name)) {
        uint32_t to = cot__index(want[0]);
        /* operands that were broadcast or cast are nodes between: replay from the first on */
        for (int k = 0; k < e->arity; k++)
            if (k != number) values[cot__index(xs[0][k])] = xs[1][k];
        uint32_t from = 0;
        for (int k = 0; k < e->arity; k++)
            if (k != number && cot__index(xs[0][k]) + 1 > from) from = cot__index(xs[0][k]) + 1;
        for (uint32_t i = from; i <= to; i++) values[i] = replay_node(t, i);
        if (test_tape_ok(t, name))
            TEST_CHECK(same_value(values[to], want[1]), "%s: replayed on other operands, it is another value", name);
    }
    cot_tape_destroy(t);
}

static void every_elementwise_operation(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_I64, COT_I32, COT_BOOL};
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int d = 0; d < TEST_COUNT(dtypes); d++)
            for (int tensor = 0; tensor < 2; tensor++)
                for (int number = -1;
                     number < (cot__elementwise_table[op].arity == 1 ? 0 : cot__elementwise_table[op].arity); number++)
                    elementwise_case(op, dtypes[d], tensor, number);
    test_verdict();
}

/* ---- numbers in nodes ------------------------------------------------------------------------ */

/* A number beside integers was whole or made f64 of them; on f32 it stays weak. */
static void numbers_keep_their_kind(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   i = cot_data(t, COT_I32, COT_SHAPE(2), (int32_t[]){1, 2}), x = cot_full(t, COT_F64, COT_SHAPE(2), 0.5);
    cot_var   sum = cot_add(i, 3), product = cot_mul(x, 0.1);
    cot_var   again = cot__reapply(t, cot__index(sum), &i), other = cot_cast(x, COT_F32),
            weak = cot__reapply(t, cot__index(product), &other);
    assert_int_equal(cot_dtype_of(again), COT_I32);
    assert_true(same_value(again, sum));
    assert_int_equal(cot_dtype_of(weak), COT_F32);
    assert_true(same_value(weak, cot_mul(other, 0.1)));
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
}

/* ---- in place -------------------------------------------------------------------------------- */

static void writes_are_done_on_a_copy(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_full(t, COT_F64, COT_SHAPE(4), 1), b = cot_full(t, COT_F64, COT_SHAPE(4), 10),
            two = cot_full(t, COT_F64, COT_SHAPE(2), 2), z;
    double    x[4];
    uint32_t  written[3];
    z = cot_copy(a);
    cot_add_into(&z, cot_full(t, COT_F64, COT_SHAPE(4), 5));
    written[0] = cot__index(z);
    cot_update_slice(&z, 0, 0, 4, 2, two);
    written[1] = cot__index(z);
    cot_copy_into(&z, cot_mul(a, 7.0));
    written[2] = cot__index(z);
    cot_var first  = cot__reapply(t, written[0], (cot_var[]){b, b}),
            second = cot__reapply(t, written[1], (cot_var[]){b, two});
    cot_var third = cot__reapply(t, written[2], (cot_var[]){b, a});
    assert_int_equal(cot_read(first, x, 4), COT_OK);
    assert_true(x[0] == 20 && x[3] == 20);
    assert_int_equal(cot_read(second, x, 4), COT_OK);
    assert_true(x[0] == 2 && x[1] == 10 && x[2] == 2 && x[3] == 10);
    assert_int_equal(cot_read(third, x, 4), COT_OK);
    assert_true(x[0] == 1 && x[3] == 1);
    assert_int_equal(cot_read(b, x, 4), COT_OK); /* none of them wrote */
    assert_true(x[0] == 10 && x[1] == 10);
    assert_int_equal(cot_read(z, x, 4), COT_OK);
    assert_true(x[0] == 7 && x[3] == 7);
    cot_tape_destroy(t);
}

/* ---- custom operations ----------------------------------------------------------------------- */

/* y = x0 · x1 + x1², elementwise */
static int product_value(int n, const cot_array *xs, cot_array *y, void *user) {
    const double *a = xs[0].data, *b = xs[1].data;
    (void)n, ++*(int *)user;
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = a[i] * b[i] + b[i] * b[i];
    return 0;
}

static int product_vjp(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                       void *user) {
    const double *a = xs[0].data, *b = xs[1].data, *g = ybar->data;
    (void)n, (void)y, ++*(int *)user;
    for (int64_t i = 0; i < y->size; i++) {
        ((double *)xbars[0].data)[i] = g[i] * b[i];
        ((double *)xbars[1].data)[i] = g[i] * (a[i] + 2 * b[i]);
    }
    return 0;
}

static int product_jvp(int n, const cot_array *xs, const cot_array *y, const cot_array *dxs, cot_array *dy,
                       void *user) {
    const double *a = xs[0].data, *b = xs[1].data, *da = dxs[0].data, *db = dxs[1].data;
    (void)n, (void)y, ++*(int *)user;
    for (int64_t i = 0; i < dy->size; i++)
        ((double *)dy->data)[i] = (da ? da[i] * b[i] : 0) + (db ? db[i] * (a[i] + 2 * b[i]) : 0);
    return 0;
}

static void custom_operations(void **state) {
    (void)state;
    static const cot_custom op = {
        .name = "product", .value = product_value, .vjp_numbers = product_vjp, .jvp_numbers = product_jvp};
    cot_tape *t = cot_tape_create(NULL);
    int       calls = 0;
    cot_var   xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}),
                       cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){-1, 0.5, 4})};
    uint32_t  from = t->count;
    cot_var   y = cot_call(&op, 2, xs, &calls), g[2], dy = y;
    assert_int_equal(cot_grad_of(cot_sum(cot_sin(y), COT_ALL), 2, xs, g), COT_OK);
    cot_var tangent = cot_full(t, COT_F64, COT_SHAPE(3), 0.25);
    for (int both = 0; both < 2; both++) {
        cot_var moving[2] = {xs[1], xs[0]}, tangents[2] = {tangent, tangent};
        dy = cot_jvp(y, 1 + both, moving, tangents);
    }
    int recorded = calls;
    assert_int_equal(recorded, 4);
    replay_and_compare(t, from, t->count, "custom operations");
    assert_true(calls > recorded); /* the user's functions did it */
    assert_true(same_value(values[cot__index(g[0])], g[0]) && same_value(values[cot__index(g[1])], g[1]));
    assert_true(same_value(values[cot__index(dy)], dy));
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    test_verdict();
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_of_every_sample),     cmocka_unit_test(every_sample_on_other_operands),
        cmocka_unit_test(every_elementwise_operation),    cmocka_unit_test(numbers_keep_their_kind),
        cmocka_unit_test(writes_are_done_on_a_copy),      cmocka_unit_test(custom_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
