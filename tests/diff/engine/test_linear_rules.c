/* Rules of the user's that must be transposed must be linear in their tangents or adjoints. The
 * record of each operation says in which operands it is linear. */
/* ctest: timeout=120 */
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"
#include "tape/show.h"

#include <math.h>
#include <string.h>

#define JVP(name)                                                                                                      \
    static int name(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user)
#define IGNORED (void)n, (void)xs, (void)m, (void)ys, (void)dxs, (void)user

/* All have one (2,2) input and one result like it; their value is of no account. */
static int value(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(2.0, xs[0]);
    return 0;
}
/* A number as that result. */
static cot_var spread(cot_var z) { return cot_broadcast_to(z, COT_SHAPE(2, 2)); }
static cot_var flat(cot_var x) { return cot_reshape(x, COT_SHAPE(4)); }
static cot_var scalar_at(cot_var x, int64_t i) { return cot_index(flat(x), 0, i); }

/* ---- curved in the tangent ------------------------------------------------------------------- */

JVP(through_rms_norm) { IGNORED; dys[0] = cot_rms_norm(dxs[0], COT_NONE, 1, 1e-3); return 0; }
JVP(through_layer_norm) { IGNORED; dys[0] = cot_layer_norm(dxs[0], COT_NONE, COT_NONE, 1, 1e-3); return 0; }
JVP(through_cumprod) { IGNORED; dys[0] = cot_cumprod(dxs[0], 0, false); return 0; }
JVP(through_logsumexp) {
    IGNORED;
    dys[0] = spread(cot_sub(cot_logsumexp(dxs[0], COT_ALL), log(4))); /* 0 at 0 */
    return 0;
}
JVP(through_log_softmax) { IGNORED; dys[0] = cot_add(cot_log_softmax(dxs[0], 1), log(2)); return 0; }
JVP(through_softmax) { IGNORED; dys[0] = cot_sub(cot_softmax(dxs[0], 1), 0.5); return 0; }
JVP(through_mse) { IGNORED; dys[0] = spread(cot_mse(dxs[0], cot_number(0))); return 0; }
JVP(through_cross_entropy) {
    IGNORED;
    dys[0] = spread(cot_sub(cot_softmax_cross_entropy(dxs[0], cot_softmax(xs[0], 1)), log(2)));
    return 0;
}
JVP(through_max) { IGNORED; dys[0] = spread(cot_max(dxs[0], COT_ALL)); return 0; }
JVP(through_min) { IGNORED; dys[0] = spread(cot_min(dxs[0], COT_ALL)); return 0; }
JVP(through_norm) { IGNORED; dys[0] = spread(cot_norm(dxs[0], 2, COT_ALL)); return 0; }
JVP(through_eigenvalues) { IGNORED; dys[0] = cot_broadcast_to(cot_eigvalsh(dxs[0]), COT_SHAPE(2, 2)); return 0; }
JVP(through_singular_values) { IGNORED; dys[0] = cot_broadcast_to(cot_svdvals(dxs[0]), COT_SHAPE(2, 2)); return 0; }
JVP(through_cholesky) { IGNORED; dys[0] = cot_cholesky(dxs[0]); return 0; }
JVP(through_qr) { IGNORED; cot_var q; cot_qr(dxs[0], &q, &dys[0]); return 0; }
JVP(through_a_matrix) { IGNORED; dys[0] = cot_triangular_solve(dxs[0], xs[0], 0); return 0; }
JVP(through_queries) { IGNORED; dys[0] = cot_attention(dxs[0], xs[0], xs[0], NULL); return 0; }
JVP(through_logsumexp_of) {
    IGNORED;
    cot_var few[2] = {scalar_at(dxs[0], 0), scalar_at(dxs[0], 1)};
    dys[0] = spread(cot_sub(cot_logsumexp_of(2, few), log(2)));
    return 0;
}
JVP(through_dot_of) {
    IGNORED;
    cot_var few[2] = {scalar_at(dxs[0], 0), scalar_at(xs[0], 1)}, others[2] = {scalar_at(dxs[0], 1), few[1]};
    dys[0] = spread(cot_dot_of(2, few, others));
    return 0;
}
JVP(through_both_factors) { IGNORED; dys[0] = cot_matmul(dxs[0], dxs[0]); return 0; }
JVP(through_whole_numbers) { IGNORED; dys[0] = cot_cast(cot_cast(dxs[0], COT_I64), COT_F64); return 0; }
JVP(through_positions) { IGNORED; dys[0] = cot_sort(dxs[0], 0, false); return 0; }
JVP(through_exp) { IGNORED; dys[0] = cot_expm1(dxs[0]); return 0; }

static int divides(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m;
    y[0] = cot_mul(x[0], cot_add(3.0, *(const cot_var *)user));
    return 0;
}
JVP(through_a_solution) {
    IGNORED;
    cot_var by = dxs[0];
    dys[0] = cot_sub(cot_linear_solve(divides, &by, xs[0], NULL), cot_div(xs[0], 3.0));
    return 0;
}

/* Bodies count like operations, wherever the value enters. */
static int squares(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m, (void)user;
    y[0] = cot_square(x[0]);
    return 0;
}
static int multiplies(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m;
    y[0] = cot_mul(x[0], *(const cot_var *)user);
    return 0;
}
static int halves(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m, (void)user;
    y[0] = cot_mul(0.5, x[0]);
    return 0;
}
static int is_large(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m, (void)user;
    y[0] = cot_greater(cot_sum(x[0], COT_ALL), 1.0);
    return 0;
}
/* (s, x) becomes (s + p, p), where p = x times a capture: curved from the second step on. */
static int follows(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m;
    y[1] = cot_mul(x[1], *(const cot_var *)user);
    y[0] = cot_add(x[0], y[1]);
    return 0;
}
static int checkpoints(int n, const cot_var *x, int m, cot_var *y, void *user) {
    return cot_checkpoint(squares, user, n, x, m, y) != COT_OK;
}
JVP(through_a_checkpoint) { IGNORED; return cot_checkpoint(squares, NULL, 1, dxs, 1, dys) != COT_OK; }
JVP(through_nested_bodies) { IGNORED; return cot_checkpoint(checkpoints, NULL, 1, dxs, 1, dys) != COT_OK; }
JVP(through_a_capture) {
    IGNORED;
    cot_var by = dxs[0];
    return cot_checkpoint(multiplies, &by, 1, dxs, 1, dys) != COT_OK;
}
JVP(through_steps) {
    IGNORED;
    cot_var by = dxs[0], out[2], in[2] = {cot_mul(0.0, xs[0]), xs[0]};
    if (cot_scan(follows, &by, 2, 2, in, 0, NULL, out, 0, NULL, NULL) != COT_OK) return 1;
    dys[0] = out[0];
    return 0;
}
JVP(through_a_condition) {
    IGNORED;
    return cot_cond(cot_sum(dxs[0], COT_ALL), halves, halves, NULL, 1, dxs, 1, dys) != COT_OK;
}
JVP(through_a_test) { IGNORED; return cot_while(is_large, halves, NULL, 1, dxs, dys, NULL) != COT_OK; }

#define CURVED(name, by) {{#name, NULL, name}, by " ("}
static void a_jvp_that_is_curved_in_its_tangent_has_no_transpose(void **state) {
    (void)state;
    static const struct { cot_fn_rules rules; const char *by; } curved[] = {
        CURVED(through_rms_norm, "rms_norm"),
        CURVED(through_layer_norm, "layer_norm"),
        CURVED(through_cumprod, "recurrence"),
        CURVED(through_logsumexp, "logsumexp"),
        CURVED(through_log_softmax, "log_softmax"),
        CURVED(through_softmax, "softmax"),
        CURVED(through_mse, "mse"),
        CURVED(through_cross_entropy, "softmax_cross_entropy"),
        CURVED(through_max, "max"),
        CURVED(through_min, "min"),
        CURVED(through_norm, "norm"),
        CURVED(through_eigenvalues, "eigh"),
        CURVED(through_singular_values, "svd"),
        CURVED(through_cholesky, "cholesky"),
        CURVED(through_qr, "qr"),
        CURVED(through_a_matrix, "triangular_solve"),
        CURVED(through_queries, "attention"),
        CURVED(through_logsumexp_of, "logsumexp_of"),
        CURVED(through_dot_of, "dot_of"),
        CURVED(through_both_factors, "matmul"),
        CURVED(through_whole_numbers, "cast"),
        CURVED(through_positions, "argsort"),
        CURVED(through_exp, "expm1"),
        CURVED(through_a_solution, "linear_solve"),
        CURVED(through_a_checkpoint, "checkpoint"),
        CURVED(through_nested_bodies, "checkpoint"),
        CURVED(through_a_capture, "checkpoint"),
        CURVED(through_steps, "scan"),
        CURVED(through_a_condition, "cond"),
        CURVED(through_a_test, "while"),
    };
    for (int k = 0; k < TEST_COUNT(curved); k++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_var     x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 1, 1, 3}), y, g;
        const char *name = curved[k].rules.name;
        char        want[120];
        cot_custom_fn(&curved[k].rules, value, NULL, 1, &x, 1, &y);
        cot_grad_of(cot_sum(y, COT_ALL), 1, &x, &g);
        snprintf(want, sizeof want, "[%s] its jvp is not linear in dxs, which %s", name, curved[k].by);
        const char *said = cot_tape_message(t);
        TEST_CHECK(cot_tape_status(t) == COT_GRAD && strncmp(said, want, strlen(want)) == 0, "%s: '%s', not '%s'", name,
                   said, want);
        TEST_CHECK(strstr(said, " makes of them: it has no transpose; give a vjp too"), "%s: '%s'", name, said);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- linear in it, though not in everything -------------------------------------------------- */

JVP(by_weights) { IGNORED; dys[0] = cot_layer_norm(xs[0], dxs[0], cot_mul(2.0, dxs[0]), 0, 1e-3); return 0; }
JVP(by_values) { IGNORED; dys[0] = cot_attention(xs[0], xs[0], dxs[0], NULL); return 0; }
JVP(by_sides) {
    IGNORED;
    dys[0] = cot_add(cot_solve(xs[0], dxs[0]), cot_triangular_solve(xs[0], dxs[0], 0));
    return 0;
}
JVP(by_targets) { IGNORED; dys[0] = spread(cot_softmax_cross_entropy(xs[0], dxs[0])); return 0; }
JVP(by_padding) {
    IGNORED;
    dys[0] = cot_pad(cot_slice(dxs[0], 0, 1, 2, 1), COT_SHAPE(1, 0), COT_SHAPE(0, 0), 0);
    return 0;
}
JVP(by_products) {
    IGNORED;
    cot_var few[2]    = {scalar_at(dxs[0], 0), scalar_at(xs[0], 1)};
    cot_var others[2] = {scalar_at(xs[0], 2), scalar_at(dxs[0], 3)};
    dys[0] = spread(cot_dot_of(2, few, others));
    return 0;
}
JVP(by_sums) {
    IGNORED;
    cot_var few[3] = {scalar_at(dxs[0], 0), scalar_at(dxs[0], 2), scalar_at(dxs[0], 2)};
    dys[0] = spread(cot_sum_of(3, few));
    return 0;
}
JVP(by_a_matrix) { IGNORED; dys[0] = cot_matmul(xs[0], cot_matmul(dxs[0], xs[0])); return 0; }
JVP(by_a_solution) { IGNORED; cot_var by = xs[0]; dys[0] = cot_linear_solve(divides, &by, dxs[0], NULL); return 0; }
/* in another order, and in another precision */
JVP(by_copies) { IGNORED; dys[0] = cot_cast(cot_cast(cot_flip(dxs[0], COT_ALL), COT_F32), COT_F64); return 0; }

/* the same steps as above, but the tangent is the factor */
JVP(by_steps) {
    IGNORED;
    cot_var by = xs[0], out[2], in[2] = {cot_mul(2.0, dxs[0]), dxs[0]};
    if (cot_scan(follows, &by, 3, 2, in, 0, NULL, out, 0, NULL, NULL) != COT_OK) return 1;
    dys[0] = cot_add(out[0], out[1]);
    return 0;
}
JVP(by_a_condition) {
    IGNORED;
    return cot_cond(cot_greater(cot_sum(xs[0], COT_ALL), 1.0), halves, halves, NULL, 1, dxs, 1, dys) != COT_OK;
}
JVP(by_a_checkpoint) {
    IGNORED;
    cot_var by = xs[0];
    return cot_checkpoint(multiplies, &by, 1, dxs, 1, dys) != COT_OK;
}

static void a_jvp_that_is_linear_in_its_tangent_is_transposed(void **state) {
    (void)state;
    static const cot_fn_rules straight[] = {
        {"by_weights", NULL, by_weights},   {"by_values", NULL, by_values},     {"by_sides", NULL, by_sides},
        {"by_targets", NULL, by_targets},   {"by_padding", NULL, by_padding},   {"by_products", NULL, by_products},
        {"by_sums", NULL, by_sums},         {"by_a_matrix", NULL, by_a_matrix}, {"by_a_solution", NULL, by_a_solution},
        {"by_copies", NULL, by_copies},     {"by_steps", NULL, by_steps},
        {"by_a_condition", NULL, by_a_condition}, {"by_a_checkpoint", NULL, by_a_checkpoint},
    };
    for (int k = 0; k < TEST_COUNT(straight); k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 1, 0.5, 3}), y, g,
                v = cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){0.5, -1, 2, 0.25});
        cot_custom_fn(&straight[k], value, NULL, 1, &x, 1, &y);
        cot_var dy = cot_jvp(y, 1, &x, &v);
        cot_var c  = cot_data(t, COT_F64, cot_shape_of(dy), (double[]){1, -2, 0.5, 3});
        cot_grad_of(cot_sum(cot_mul(c, y), COT_ALL), 1, &x, &g);
        test_tape_ok(t, straight[k].name);
        double forth = cot_value(cot_sum(cot_mul(dy, c), COT_ALL)), back = cot_value(cot_sum(cot_mul(g, v), COT_ALL));
        /* a handful of roundings each, and those of f32 */
        TEST_CHECK(fabs(forth - back) <= 1e-6 * (1 + fabs(forth)), "%s: %.17g and %.17g", straight[k].name, forth,
                   back);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* So many nodes that marks for them are larger than any block that was used before. */
static int adds_up(int n, const cot_var *x, int m, cot_var *y, void *user) {
    (void)n, (void)m, (void)user;
    y[0] = x[0];
    for (int k = 0; k < 3000; k++) y[0] = cot_add(y[0], x[0]);
    return 0;
}
JVP(by_many_nodes) { IGNORED; return adds_up(1, dxs, 1, dys, NULL); }
JVP(by_a_long_body) { IGNORED; return cot_checkpoint(adds_up, NULL, 1, dxs, 1, dys) != COT_OK; }

static void looking_at_rules_survives_no_memory(void **state) {
    (void)state;
    static const cot_fn_rules rules[] = {{"nodes", NULL, by_many_nodes}, {"body", NULL, by_a_long_body}};
    /* of a body perhaps never: blocks that its program took before are large enough */
    int said = 0;
    for (int k = 0; k < 2; k++)
        for (long left = 0; left < 2000; left++) {
            counting  c = {0};
            cot_tape *t = counted_tape(&c, false);
            cot_var   x = cot_scalar(t, 2), y, g;
            cot_custom_fn(&rules[k], value, NULL, 1, &x, 1, &y);
            let_succeed(&c, left);
            cot_grad_of(y, 1, &x, &g);
            bool failed = c.failed > 0;
            said += strstr(cot_tape_message(t), "] out of memory: marks for what depends on the inputs") != NULL;
            bool spared = test_defers() && cot_tape_status(t) == COT_OK;
            if (failed && !spared) assert_int_equal(cot_tape_status(t), COT_MEMORY);
            if (!failed) assert_ok(t);
            cot_tape_destroy(t);
            assert_int_equal(c.live + c.blocks + c.wrong_size, 0);
            if (!failed) break;
        }
    assert_true(said > 0);
}

/* ---- the library's own rules ----------------------------------------------------------------- */

static int sample_value(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    return 0;
}
static int sample_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
                      void *user) {
    cot_var again;
    (void)ys;
    return cot_fn_jvp(sample_value, user, n, xs, dxs, m, &again, dys) != COT_OK;
}

static void gradients_of(const test_function *f, bool ruled, double *out) {
    static const cot_fn_rules rules = {"sample", NULL, sample_jvp};
    cot_tape                 *t = cot_tape_create(NULL);
    cot_var                   xs[TEST_MAX_INPUTS], y;
    for (int k = 0; k < f->n; k++)
        xs[k] = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                    : cot_scalar(t, f->in[k].data[0]);
    if (ruled)
        cot_custom_fn(&rules, sample_value, (void *)(uintptr_t)f, f->n, xs, 1, &y);
    else
        y = f->f(f->n, xs, f->user);
    cot_backward(cot_sum(cot_mul(cot_cos(y), y), COT_ALL));
    test_tape_ok(t, f->name);
    for (int k = 0; k < f->n && cot_tape_status(t) == COT_OK; k++) {
        cot_var g = cot_grad(xs[k]);
        cot_read(g, out, cot_size(g));
        out += cot_size(g);
    }
    cot_tape_destroy(t);
}

/* The forward rule of every operation, used as a rule of the user's, has its transpose. Only
 * operations whose shape depends on values cannot be in a body. */
static void the_forward_rule_of_every_operation_has_a_transpose(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        if (samples[i].op && strcmp(samples[i].op, "nonzero") == 0) continue;
        test_function f = function_of(&samples[i], i, 0);
        double        plain[1024] = {0}, ruled[1024] = {0};
        gradients_of(&f, false, plain);
        gradients_of(&f, true, ruled);
        for (int k = 0; k < 1024; k++)
            TEST_CHECK(fabs(plain[k] - ruled[k]) <= 1e-8 * (1 + fabs(plain[k])), "%s: element %d is %.17g, not %.17g",
                       f.name, k, ruled[k], plain[k]);
    }
    test_verdict();
}

/* ---- the records ----------------------------------------------------------------------------- */

enum { OPERANDS = 8, MOST = 512 };

/* Observations of an operation: how often differences were taken, and where they were not 0. */
typedef struct seen {
    int  looks;
    bool looked[OPERANDS], curved[OPERANDS], multiplied[OPERANDS];
} seen;

/* The value of a node, with operands k and j moved by da and db (invalid: it rests); their number,
 * 0 where it cannot be had. */
static int64_t value_at(cot_tape *t, uint32_t node, int k, cot_var da, int j, cot_var db, double *out) {
    cot_var  xs[64];
    cot_mark m = cot__mark(t);
    int      n = cot__nargs(&t->nodes[node]);
    for (int i = 0; i < n; i++) xs[i] = VAR(t, cot__arg(&t->nodes[node], i));
    if (da.tape) xs[k] = cot_add(xs[k], da);
    if (db.tape) xs[j] = cot_add(xs[j], db);
    cot_var z = cot__reapply(t, node, xs);
    int64_t size = cot_tape_status(t) == COT_OK && cot_size(z) <= MOST ? cot_size(z) : 0;
    if (size) cot_read(z, out, size);
    cot_tape_clear_error(t);
    cot__rewind(t, m);
    return size;
}

/* Numbers without rounding to whole or short ones, which is not linear, and still there. */
static bool looked_at(const cot_tape *t, uint32_t a) {
    return cot__dtype_at(&t->nodes[a]) == COT_F64 && !cot__is_stale(&t->nodes[a]);
}

/* f(a, b) - f(a, 0) - f(0, b) + f(0, 0) for moves of operands k and j: 0 where the value is linear
 * in both together. -1: it cannot be taken. */
static double mixed_difference(cot_tape *t, uint32_t node, int k, int j) {
    static double f[4][MOST];
    test_random   random = test_random_of("moves", (int)node);
    uint32_t      at[2] = {cot__arg(&t->nodes[node], k), cot__arg(&t->nodes[node], j)};
    cot_var       by[2], rest = COT_NONE;
    double        most = 0, size = 1;
    for (int i = 0; i < 2; i++) {
        double  data[MOST];
        int64_t count = cot__size_at(t, at[i]);
        if (!looked_at(t, at[i]) || count > MOST) return -1;
        for (int64_t e = 0; e < count; e++) data[e] = test_uniform(&random, -2, 2);
        by[i] = cot_data(t, COT_F64, cot__shape_at(t, at[i]), data);
    }
    int64_t n = value_at(t, node, k, by[0], j, by[1], f[0]);
    if (value_at(t, node, k, by[0], j, rest, f[1]) != n || value_at(t, node, k, rest, j, by[1], f[2]) != n ||
        value_at(t, node, k, rest, j, rest, f[3]) != n || n == 0)
        return -1;
    for (int64_t e = 0; e < n; e++) {
        double d = f[0][e] - f[1][e] - f[2][e] + f[3][e];
        for (int i = 0; i < 4; i++) size = fabs(f[i][e]) > size ? fabs(f[i][e]) : size;
        if (!(fabs(d) <= most)) most = fabs(d); /* NaN stays */
    }
    return most / size;
}

static void look_at(cot_tape *t, uint32_t node, seen *s, const char *sample) {
    const cot__op *op = cot__op_of(t->nodes[node].op);
    int            n = cot__nargs(&t->nodes[node]);
    for (int k = 0; k < n && k < OPERANDS; k++)
        for (int j = k; j < n && j < OPERANDS; j++) {
            bool linear = cot__linear_in(op, k) && cot__linear_in(op, j), factors = cot__factor_of(op, k, n) == j;
            if (op->inactive >> k & 1 || op->inactive >> j & 1 || (!linear && j != k)) continue;
            double d = mixed_difference(t, node, k, j);
            if (d == -1) continue;
            s->looks++;
            /* roundings of some hundred terms; solutions are found to 1e-10 */
            bool curved = !(d <= 1e-9);
            if (linear && !factors)
                TEST_CHECK(!curved, "%s, %s: it is not linear in operands %d and %d: %g", sample, op->name, k, j, d);
            s->looked[k] = true;
            if (k == j) s->curved[k] |= curved;
            if (factors) s->multiplied[k] |= curved;
        }
}

/* Not where it depends on functions of the user's. */
static bool says_itself(const cot__op *op) {
    return op->kind != KIND_NONE && op->kind != KIND_SOURCE && op->kind != KIND_PICK && !op->opaque && !op->depends;
}

/* By differences: an operation is linear in the operands that its record names and in no others,
 * except for those that are only multiplied by each other. */
static void records_say_what_their_operations_are_linear_in(void **state) {
    (void)state;
    static seen all[OP_count];
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS];
        for (int k = 0; k < f.n; k++)
            xs[k] = f.in[k].shape.ndim ? cot_tensor(t, COT_F64, f.in[k].shape, f.in[k].data)
                                       : cot_scalar(t, f.in[k].data[0]);
        f.f(f.n, xs, f.user);
        for (uint32_t node = 0, count = t->count; node < count; node++) {
            const cot__op *op = cot__op_of(t->nodes[node].op);
            bool           tells = t->nodes[node].op >= OP_structural && says_itself(op);
            if (tells && !cot__in_body(&t->nodes[node]) && looked_at(t, node))
                look_at(t, node, &all[t->nodes[node].op], f.name);
        }
        test_tape_ok(t, f.name);
        cot_tape_destroy(t);
    }
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        if (!says_itself(o)) continue;
        /* a cast to another dtype rounds */
        TEST_CHECK(all[op].looks > 0 || op == OP_cast, "%s: no sample of tests/samples shows what it is linear in",
                   o->name);
        for (int k = 0; k < OPERANDS; k++) {
            /* with a factorisation beside it, the operand itself is not read */
            bool shows = all[op].looked[k] && !o->inactive;
            TEST_CHECK(!shows || cot__linear_in(o, k) || all[op].curved[k],
                       "%s: linear in operand %d, which its record does not say", o->name, k);
        }
        TEST_CHECK(!(o->factor || o->kind == KIND_BILINEAR) || all[op].multiplied[0] || all[op].multiplied[1],
                   "%s: nothing shows that operands are multiplied", o->name);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_jvp_that_is_curved_in_its_tangent_has_no_transpose),
        cmocka_unit_test(a_jvp_that_is_linear_in_its_tangent_is_transposed),
        cmocka_unit_test(looking_at_rules_survives_no_memory),
        cmocka_unit_test(the_forward_rule_of_every_operation_has_a_transpose),
        cmocka_unit_test(records_say_what_their_operations_are_linear_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
