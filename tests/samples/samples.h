/* samples.h: one small example, or more, for every structural operation, for tests that loop over
 * all of them.
 *
 * A new line of ops.def needs a sample here, or in the file of its family (samples.def); without
 * one test_structural_table fails. */
#ifndef COT_SAMPLES_H
#define COT_SAMPLES_H

#include "support/points.h"

#include "ops/kinks.h"
#include "ops/structural.h"

#include <stdio.h>
#include <string.h>

/* ---- samples: each records its operation on f64 leaves; the result is y ---------------------- */

#define SAMPLE(name) static cot_var name(int n, const cot_var *x, void *user)
#define UNUSED (void)n, (void)user

static cot_var indices(cot_tape *t, cot_shape shape, const int64_t *i) { return cot_data(t, COT_I64, shape, i); }

SAMPLE(s_leaf) { UNUSED; return x[0]; }
SAMPLE(s_constant) { UNUSED; return cot_add(x[0], cot_full(x[0].tape, cot_dtype_of(x[0]), COT_SCALAR, 2.5)); }
SAMPLE(s_detach) {
    UNUSED;
    return cot_mul(x[0], cot_detach(cot_full(x[0].tape, cot_dtype_of(x[0]), COT_SHAPE(3), 0.3)));
}
static cot_var watched(cot_var y) {
    if (!cot__failed(y)) cot__watch(y.tape, "watch", cot__index(y));
    return y;
}
SAMPLE(s_watch) {
    UNUSED;
    cot_var y = watched(cot_relu(x[0])), z = watched(cot_maximum(cot_sin(x[0]), 0.5));
    return cot_add(y, cot_mul(z, cot_expand_dims(watched(cot_max(x[0], COT_AXES(1))), 1)));
}
SAMPLE(s_cast) { UNUSED; return cot_cast(cot_cast(x[0], COT_F64), cot_dtype_of(x[0])); }
SAMPLE(s_copy) {
    UNUSED;
    cot_var y = cot_transpose(x[0]);
    return cot__failed(y) ? y : cot__copy_var(x[0].tape, cot__index(y));
}
SAMPLE(s_reshape) { UNUSED; return cot_reshape(x[0], COT_SHAPE(3, -1)); }
SAMPLE(s_reshape_strided) { UNUSED; return cot_reshape(cot_transpose(x[0]), COT_SHAPE(-1)); }
SAMPLE(s_expand) { UNUSED; return cot_squeeze(cot_expand_dims(x[0], 1), COT_ALL); }
SAMPLE(s_permute) { UNUSED; return cot_permute(x[0], COT_AXES(2, 0, 1)); }
SAMPLE(s_broadcast) { UNUSED; return cot_broadcast_to(x[0], COT_SHAPE(4, 2, 3)); }
SAMPLE(s_slice) { UNUSED; return cot_slice(x[0], 1, -1, 0, -2); }
SAMPLE(s_index) { UNUSED; return cot_add(cot_index(x[0], 1, -1), cot_index(x[0], 1, 0)); }
SAMPLE(s_flip) { UNUSED; return cot_flip(x[0], COT_ALL); }
SAMPLE(s_concat) { (void)user; return cot_concat(n, x, 1); }
SAMPLE(s_stack) { (void)user; return cot_stack(n, x, -1); }
SAMPLE(s_concat_twice) { UNUSED; return cot_concat(4, (cot_var[]){x[0], x[1], x[0], x[0]}, 0); }
SAMPLE(s_pad) { UNUSED; return cot_pad(x[0], COT_SHAPE(1, 0), COT_SHAPE(0, 2), 1.5); }
SAMPLE(s_take) { UNUSED; return cot_take(x[0], indices(x[0].tape, COT_SHAPE(2, 2), (int64_t[]){0, 2, -1, 0}), 1); }
SAMPLE(s_take_along) {
    UNUSED;
    return cot_take_along_axis(x[0], indices(x[0].tape, COT_SHAPE(2, 2), (int64_t[]){2, 0, 1, 1}), 1);
}
SAMPLE(s_scatter) {
    UNUSED;
    return cot_scatter_add(x[0], indices(x[0].tape, COT_SHAPE(2), (int64_t[]){1, 1}), x[1], 1);
}
/* the transpose of take_along_axis: in a gradient */
SAMPLE(s_scatter_along) {
    UNUSED;
    cot_var g, y = cot_take_along_axis(x[0], indices(x[0].tape, COT_SHAPE(2, 2), (int64_t[]){2, 0, 1, 1}), 1);
    cot_grad_of(cot_sum(cot_mul(y, cot_mul(y, y)), COT_ALL), 1, x, &g);
    return g;
}
SAMPLE(s_one_hot) {
    UNUSED;
    return cot_mul(x[0], cot_one_hot(indices(x[0].tape, COT_SHAPE(2), (int64_t[]){2, 0}), 3, cot_dtype_of(x[0])));
}
SAMPLE(s_sum) { UNUSED; return cot_sum(x[0], COT_AXES(0)); }
SAMPLE(s_sum_keep) { UNUSED; return cot_sum(x[0], COT_KEEP(-1)); }
SAMPLE(s_mean) { UNUSED; return cot_mean(x[0], COT_AXES(1)); }
SAMPLE(s_prod) { UNUSED; return cot_prod(x[0], COT_AXES(1)); }
SAMPLE(s_variance) { UNUSED; return cot_variance(x[0], COT_AXES(1)); }
SAMPLE(s_std) { UNUSED; return cot_std(x[0], COT_KEEP_ALL); }
SAMPLE(s_max) { UNUSED; return cot_max(x[0], COT_AXES(1)); }
SAMPLE(s_min) { UNUSED; return cot_min(x[0], COT_KEEP(0)); }
SAMPLE(s_argmax) { UNUSED; return cot_take(x[0], cot_argmax(x[0], COT_AXES(1)), 1); }
SAMPLE(s_argmin) { UNUSED; return cot_take(x[0], cot_argmin(x[0], COT_AXES(1)), 1); }
SAMPLE(s_any) { UNUSED; return cot_where(cot_any(cot_greater(x[0], 0.0), COT_KEEP(1)), x[0], cot_mul(x[0], x[0])); }
SAMPLE(s_all) { UNUSED; return cot_where(cot_all(cot_greater(x[0], -9.0), COT_KEEP(1)), x[0], cot_mul(x[0], x[0])); }
SAMPLE(s_norm) { UNUSED; return cot_norm(x[0], 2, COT_AXES(1)); }
SAMPLE(s_norm1) { UNUSED; return cot_norm(x[0], 1, COT_AXES(0)); }
SAMPLE(s_norm3) { UNUSED; return cot_norm(x[0], 3, COT_ALL); }
SAMPLE(s_norm_inf) { UNUSED; return cot_norm(x[0], INFINITY, COT_ALL); }
SAMPLE(s_logsumexp) { UNUSED; return cot_logsumexp(x[0], COT_AXES(1)); }
SAMPLE(s_softmax) { UNUSED; return cot_softmax(x[0], 1); }
SAMPLE(s_log_softmax) { UNUSED; return cot_log_softmax(x[0], 0); }
SAMPLE(s_sce_labels) {
    UNUSED;
    return cot_softmax_cross_entropy(x[0], indices(x[0].tape, COT_SHAPE(2), (int64_t[]){2, 0}));
}
SAMPLE(s_sce) { UNUSED; return cot_softmax_cross_entropy(x[0], cot_sigmoid(x[1])); }
SAMPLE(s_ce_labels) {
    UNUSED;
    return cot_cross_entropy(cot_sigmoid(x[0]), indices(x[0].tape, COT_SHAPE(2), (int64_t[]){2, 0}));
}
SAMPLE(s_ce) { UNUSED; return cot_cross_entropy(cot_sigmoid(x[0]), cot_sigmoid(x[1])); }
SAMPLE(s_mse) { UNUSED; return cot_mse(x[0], x[1]); }
SAMPLE(s_matmul) { UNUSED; return cot_matmul(x[0], x[1]); }
SAMPLE(s_matmul_square) { UNUSED; return cot_matmul(x[0], cot_transpose(x[0])); }
SAMPLE(s_dot) { UNUSED; return cot_dot(x[0], x[1]); }
SAMPLE(s_outer) { UNUSED; return cot_outer(x[0], x[1]); }
SAMPLE(s_sum_of) { (void)user; cot_var more[3] = {x[0], x[1], x[0]}; (void)n; return cot_sum_of(3, more); }
SAMPLE(s_dot_of) { UNUSED; return cot_dot_of(3, (cot_var[]){x[0], x[1], x[0]}, (cot_var[]){x[1], x[1], x[2]}); }
SAMPLE(s_logsumexp_of) { UNUSED; return cot_logsumexp_of(4, (cot_var[]){x[0], x[1], x[0], x[2]}); }
SAMPLE(s_copy_into) {
    UNUSED;
    cot_var z = cot_mul(x[0], 1.0);
    cot_copy_into(&z, cot_sin(x[1]));
    return z;
}
SAMPLE(s_update_slice) {
    UNUSED;
    cot_var z = cot_mul(x[0], 1.0);
    cot_update_slice(&z, 1, 0, COT_END, 2, x[1]);
    return z;
}
SAMPLE(s_update_back) {
    UNUSED;
    cot_var z = cot_mul(x[0], 1.0);
    cot_update_slice(&z, 1, -1, -4, -2, x[1]);
    return z;
}
/* the transpose of slice: in a gradient */
SAMPLE(s_add_slice) {
    UNUSED;
    cot_var g, a = cot_slice(x[0], 1, 0, 2, 1), b = cot_slice(x[0], 1, 1, 3, 1);
    cot_grad_of(cot_sum(cot_mul(a, cot_mul(b, b)), COT_ALL), 1, x, &g);
    return g;
}
SAMPLE(s_add_slice_back) {
    UNUSED;
    cot_var g, a = cot_slice(x[0], 1, -1, -4, -1);
    cot_grad_of(cot_sum(cot_mul(a, cot_mul(a, x[0])), COT_ALL), 1, x, &g);
    return g;
}

/* Families with a file of their own: samples_FAMILY.h holds their functions and, under ROWS, their
 * lines of the table. */
#include "samples/samples.def"

/* The operation must be among the operations that the example records. */
static const struct sample { const char *op; cot_function f; int n; int64_t shapes[3][4]; } samples[] = {
    /* shapes: ndim, extents … for each input */
    {"leaf", s_leaf, 1, {{2, 2, 3}}},
    {"constant", s_constant, 1, {{2, 2, 3}}},
    {"detach", s_detach, 1, {{2, 2, 3}}},
    {"watch", s_watch, 1, {{2, 2, 3}}},
    {"cast", s_cast, 1, {{2, 2, 3}}},
    {"cast", s_cast, 1, {{0}}},
    {"copy", s_copy, 1, {{2, 2, 3}}},
    {"reshape", s_reshape, 1, {{2, 2, 3}}},
    {"reshape", s_reshape_strided, 1, {{2, 2, 3}}},
    {"reshape", s_expand, 1, {{2, 2, 3}}},
    {"permute", s_permute, 1, {{3, 2, 3, 2}}},
    {"broadcast_to", s_broadcast, 1, {{2, 2, 1}}},
    {"broadcast_to", s_broadcast, 1, {{0}}},
    {"slice", s_slice, 1, {{2, 2, 3}}},
    {"slice", s_index, 1, {{2, 2, 3}}},
    {"slice", s_index, 1, {{3, 2, 3, 2}}},
    {"slice", s_flip, 1, {{2, 2, 3}}},
    {"concat", s_concat, 2, {{2, 2, 3}, {2, 2, 1}}},
    {"concat", s_concat, 3, {{2, 2, 3}, {2, 2, 1}, {2, 2, 2}}},
    {"concat", s_concat_twice, 2, {{2, 2, 2}, {2, 1, 2}}},
    {"concat", s_stack, 3, {{1, 2}, {1, 2}, {1, 2}}},
    {"concat", s_stack, 2, {{0}, {0}}},
    {"pad", s_pad, 1, {{2, 2, 3}}},
    {"take", s_take, 1, {{2, 2, 3}}},
    {"take_along_axis", s_take_along, 1, {{2, 2, 3}}},
    {"scatter_add", s_scatter, 2, {{2, 2, 3}, {2, 2, 2}}},
    {"scatter_add_along", s_scatter_along, 1, {{2, 2, 3}}},
    {"one_hot", s_one_hot, 1, {{2, 2, 3}}},
    {"sum", s_sum, 1, {{2, 2, 3}}},
    {"sum", s_sum_keep, 1, {{3, 2, 2, 3}}},
    {"sum", s_mean, 1, {{2, 2, 3}}},
    {"concat", s_stack, 1, {{2, 2, 3}}},
    {"sum", s_variance, 1, {{2, 2, 3}}},
    {"sum", s_std, 1, {{2, 2, 3}}},
    {NULL, s_prod, 1, {{2, 2, 3}}},
    {"max", s_max, 1, {{2, 2, 3}}},
    {"min", s_min, 1, {{2, 2, 3}}},
    {"argmax", s_argmax, 1, {{2, 2, 3}}},
    {"argmin", s_argmin, 1, {{2, 2, 3}}},
    {"any", s_any, 1, {{2, 2, 3}}},
    {"all", s_all, 1, {{2, 2, 3}}},
    {"norm", s_norm, 1, {{2, 2, 3}}},
    {NULL, s_norm1, 1, {{2, 2, 3}}},
    {NULL, s_norm3, 1, {{2, 2, 3}}},
    {NULL, s_norm_inf, 1, {{2, 2, 3}}},
    {"logsumexp", s_logsumexp, 1, {{2, 2, 3}}},
    {"softmax", s_softmax, 1, {{2, 2, 3}}},
    {"log_softmax", s_log_softmax, 1, {{2, 2, 3}}},
    {"softmax_cross_entropy", s_sce_labels, 1, {{2, 2, 3}}},
    {"softmax_cross_entropy", s_sce, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"cross_entropy", s_ce_labels, 1, {{2, 2, 3}}},
    {"cross_entropy", s_ce, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"mse", s_mse, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"mse", s_mse, 2, {{2, 2, 3}, {0}}},
    {"matmul", s_matmul, 2, {{2, 2, 3}, {2, 3, 2}}},
    {"matmul", s_matmul, 2, {{1, 3}, {2, 3, 2}}},
    {"matmul", s_matmul, 2, {{2, 2, 3}, {1, 3}}},
    {"matmul", s_matmul, 2, {{3, 2, 2, 3}, {2, 3, 2}}},
    {"matmul", s_matmul, 2, {{3, 1, 2, 2}, {3, 3, 2, 2}}},
    {"matmul", s_matmul_square, 1, {{2, 2, 3}}},
    {NULL, s_dot, 2, {{1, 4}, {1, 4}}},
    {NULL, s_outer, 2, {{1, 3}, {1, 2}}},
    {"sum_of", s_sum_of, 2, {{0}, {0}}},
    {"dot_of", s_dot_of, 3, {{0}, {0}, {0}}},
    {"copy_into", s_copy_into, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"copy_into", s_copy_into, 2, {{2, 2, 3}, {1, 3}}},
    {"update_slice", s_update_slice, 2, {{2, 2, 3}, {2, 2, 2}}},
    {"update_slice", s_update_slice, 2, {{2, 2, 3}, {0}}},
    {"update_slice", s_update_back, 2, {{2, 2, 3}, {2, 2, 2}}},
    {"add_slice", s_add_slice, 1, {{2, 2, 3}}},
    {"add_slice", s_add_slice_back, 1, {{2, 2, 3}}},
#define ROWS
#include "samples/samples.def"
    {"draw_at", s_draw_at, 2, {{2, 2, 3}, {0}}},
    {"probabilities", s_bernoulli, 1, {{2, 2, 3}}},
    {"categorical", s_categorical, 1, {{2, 2, 3}}},
#undef ROWS
    {"logsumexp_of", s_logsumexp_of, 3, {{0}, {0}, {0}}},
};

/* Which of the rows with this operation is row s of `samples`? Its numbers are drawn by that, so
 * that a new operation changes those of no other. */
static inline int nth_of_its_operation(const struct sample *s) {
    int n = 0;
    for (const struct sample *p = samples; p < s; p++)
        n += p->op == s->op || (p->op && s->op && strcmp(p->op, s->op) == 0);
    return n;
}

static inline test_function function_of(const struct sample *s, int number, int round) {
    static char   name[64];
    test_function f = {.name = name, .f = s->f, .n = s->n};
    snprintf(name, sizeof name, "sample %d (%s)", number, s->op ? s->op : "composed");
    for (int k = 0; k < s->n; k++) {
        f.in[k].shape.ndim = (int)s->shapes[k][0];
        for (int i = 0; i < f.in[k].shape.ndim; i++) f.in[k].shape.dim[i] = s->shapes[k][i + 1];
    }
    test_random random = test_random_of(s->op ? s->op : "composed", 1000 * nth_of_its_operation(s) + round);
    test_fill(&f, &random, -2, 2);
    return f;
}

#endif
