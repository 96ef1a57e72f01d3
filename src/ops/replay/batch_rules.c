/* batch_rules.c: batches of the operations that are not merely shifted: see batch.c.
 *
 * Each is written in other operations, so it can be differentiated like them. */
#include "rules/structural_ids.h"
#include "ops/replay/replay.h"

#include <string.h>

static cot_shape shape_at(const cot__rule *r, int k) { return cot__shape_at(r->t, cot__rule_arg(r, k)); }

/* The node's own shape, with the batch in front. */
static cot_shape result_shape(const cot__rule *r, int64_t extent) {
    return cot__batch_shape(r->t, extent, cot__shape_at(r->t, r->node));
}

/* Axes first … first + n - 1 of x with those given in other extents. */
static cot_var reshaped_front(cot_var x, int drop, int n, const int64_t *extents) {
    cot_shape s = cot_shape_of(x), z = {n + s.ndim - drop, {0}};
    for (int k = 0; k < z.ndim; k++) z.dim[k] = k < n ? extents[k] : s.dim[k - n + drop];
    return cot_reshape(x, z);
}

static cot_var folded(cot_var x) { /* the first two axes as one */
    cot_shape s = cot_shape_of(x);
    return reshaped_front(x, 2, 1, (int64_t[]){s.dim[0] * s.dim[1]});
}

static cot_var unfolded(cot_var x, int64_t first, int64_t second) {
    return reshaped_front(x, 1, 2, (int64_t[]){first, second});
}

/* ---- shapes ---------------------------------------------------------------------------------- */

cot_var cot__batch_broadcast(cot__rule *r, const cot__batch *b, cot_var *xs) {
    xs[0] = cot__batch_align(xs[0], cot__ndim_at(r->t, r->node));
    return cot__batch_apply(r, b->extent, xs);
}

/* ---- positions ------------------------------------------------------------------------------- */

enum { VALUES, POSITIONS, UPDATES };

/* Element i of the batch, positions (batch, …) on an axis of extent n, as positions on all of these
 * axes one after the other; those that are on none of them are refused for who asks, before another
 * element's are meant. */
static cot_var global_positions(cot__asker who, cot_var index, int64_t n) {
    cot_shape s = cot_shape_of(index), column = s;
    for (int k = 1; k < s.ndim; k++) column.dim[k] = 1;
    cot_var place = cot__places_for(who, index, n), base = cot_arange(index.tape, COT_I64, 0, (double)s.dim[0], 1);
    return cot_add(place, cot_reshape(cot_mul(base, n), column));
}

/* x (batch, a…, i…, c…) with `ahead` axes a and `many` axes i as (batch, i…, a…, c…), or back. */
static cot_var swapped_runs(cot_var x, int ahead, int many) {
    cot_axes order = {cot_shape_of(x).ndim, false, {0}};
    for (int k = 0; k < order.n; k++) order.axis[k] = k < 1 || k > ahead + many ? k : k <= many ? k + ahead : k - many;
    return cot_permute(x, order);
}

cot_var cot__batch_take(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int     axis = (int)cot__rule_attr(r)->ints[0], many = shape_at(r, POSITIONS).ndim;
    int64_t n = shape_at(r, VALUES).dim[axis];
    cot__asker who = cot__rule_asker(r);
    if (!b->is[POSITIONS]) return cot__take_for(who, xs[VALUES], xs[POSITIONS], axis + 1);
    if (!b->is[VALUES]) return cot__moved_axis(cot__take_for(who, xs[VALUES], xs[POSITIONS], axis), axis, 0);
    cot_var rows = folded(cot__moved_axis(xs[VALUES], axis + 1, 1));
    return swapped_runs(cot_take(rows, global_positions(who, xs[POSITIONS], n), 0), many, axis);
}

cot_var cot__batch_scatter(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int     axis = (int)cot__rule_attr(r)->ints[0], many = shape_at(r, POSITIONS).ndim;
    int64_t n = shape_at(r, VALUES).dim[axis];
    cot_var x = cot__batch_full(b, VALUES, xs[VALUES]), u = cot__batch_full(b, UPDATES, xs[UPDATES]);
    if (!b->is[POSITIONS]) return cot__scatter_add_for(cot__rule_asker(r), x, xs[POSITIONS], u, axis + 1);
    cot_var rows = folded(cot__moved_axis(x, axis + 1, 1));
    cot_var places = global_positions(cot__rule_asker(r), xs[POSITIONS], n);
    cot_var z = cot_scatter_add(rows, places, swapped_runs(u, axis, many), 0);
    return cot__moved_axis(unfolded(z, b->extent, n), 1, axis + 1);
}

/* The last of all updates that goes to a place of all places is one of its own element's; counted
 * from that element's first. */
cot_var cot__batch_last_writer(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int64_t   n = cot__rule_attr(r)->ints[0], count = cot__size_at(r->t, cot__rule_arg(r, 0));
    cot__rule all = *r;
    cot__attr *attr = cot__attr_make(r->t, r->op->name, 1, (int64_t[]){n * b->extent}, 0, NULL);
    if (!attr) return INVALID(r->t);
    all.attr = attr;
    cot_var index = global_positions(cot__rule_asker(r), xs[0], n);
    cot_var z = cot_reshape(cot__apply(&all, &index), COT_SHAPE(b->extent, n));
    cot_var first =
        cot_mul(cot_reshape(cot_arange(r->t, COT_I64, 0, (double)b->extent, 1), COT_SHAPE(b->extent, 1)), count);
    return cot_where(cot_less(z, 0), z, cot_sub(z, first));
}

cot_var cot__batch_searchsorted(cot__rule *r, const cot__batch *b, cot_var *xs) {
    return b->is[0] ? cot__batch_loop(r, b, xs) : cot__apply(r, xs);
}

/* ---- products and sums ----------------------------------------------------------------------- */

/* Vectors as matrices, a row on the left and a column on the right. A single matrix beside a batch
 * is multiplied once, by all rows of it. But a product of one element each has an order of its own,
 * which many rows at once do not keep: those stay a batch of products. */
cot_var cot__batch_matmul(cot__rule *r, const cot__batch *b, cot_var *xs) {
    cot_shape left = shape_at(r, 0), right = shape_at(r, 1);
    bool      dot = (left.ndim == 1 || left.dim[left.ndim - 2] == 1) &&
               (right.ndim == 1 || right.dim[right.ndim - 1] == 1);
    cot_var   z, x = dot ? cot__batch_full(b, 0, xs[0]) : xs[0], y = dot ? cot__batch_full(b, 1, xs[1]) : xs[1];
    if (shape_at(r, 0).ndim == 1) x = cot_expand_dims(x, -2);
    if (shape_at(r, 1).ndim == 1) y = cot_expand_dims(y, -1);
    if (!dot && !b->is[0] && cot_shape_of(x).ndim == 2)
        z = cot__swap_last(cot_matmul(cot__swap_last(y), cot__swap_last(x)));
    else z = cot_matmul(x, y);
    cot_shape shape = result_shape(r, b->extent);
    return r->t->status == COT_OK ? cot_reshape(z, shape) : INVALID(r->t);
}

/* sum_of and dot_of, which take scalars: (batch, operands), summed. */
cot_var cot__batch_nary(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int n = cot__rule_node(r)->op == OP_dot_of ? b->n / 2 : b->n;
    for (int k = 0; k < b->n; k++) xs[k] = cot__batch_full(b, k, xs[k]);
    cot_var all = cot_stack(n, xs, 1);
    if (n < b->n) all = cot_mul(all, cot_stack(n, xs + n, 1));
    return cot__rule_node(r)->op == OP_logsumexp_of ? cot_logsumexp(all, COT_AXES(1)) : cot_sum(all, COT_AXES(1));
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* The mean of all but the batch, in the node's dtype. */
static cot_var mean_of_each(cot__rule *r, cot_var x) {
    cot_axes rest = {cot_shape_of(x).ndim - 1, false, {0}};
    for (int k = 0; k < rest.n; k++) rest.axis[k] = k + 1;
    return cot_cast(cot_mean(x, rest), cot__dtype_at(cot__rule_node(r)));
}

cot_var cot__batch_loss(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int     op = cot__rule_node(r)->op;
    cot_var x = cot__batch_full(b, 0, xs[0]), y = cot__batch_full(b, 1, xs[1]);
    if (r->t->status != COT_OK) return INVALID(r->t);
    cot_dtype wide = cot__dtype_compute(cot_dtype_of(x));
    x = cot_cast(x, wide);
    if (op == OP_mse) return mean_of_each(r, cot_square(cot_sub(x, cot_cast(y, wide))));
    if (op == OP_softmax_cross_entropy) x = cot_log_softmax(x, -1);
    if (!cot__dtype_is_float(cot_dtype_of(y))) {
        x = cot__take_along_for(cot__rule_asker(r), x, cot_expand_dims(y, -1), -1);
        return mean_of_each(r, cot_neg(op == OP_cross_entropy ? cot_log(x) : x));
    }
    if (op == OP_cross_entropy) x = cot_log(x);
    /* a target of 0 counts nothing */
    return mean_of_each(r, cot_neg(cot_sum(cot_smul(cot_cast(y, wide), x), COT_AXES(-1))));
}

/* ---- normalisation --------------------------------------------------------------------------- */

/* Weights that are the same for all stay operands; a batch of them is applied outside. layer_norm,
 * rms_norm (x, weight, bias), norm_known (x, statistics, weight, bias), norm_back (x, g,
 * statistics, weight). */
cot_var cot__batch_norm(cot__rule *r, const cot__batch *b, cot_var *xs) {
    int     op = cot__rule_node(r)->op, ndim = shape_at(r, 0).ndim;
    int     w = op == OP_norm_back ? 3 : op == OP_norm_known ? 2 : 1;
    bool    outside = false;
    cot_var all[4] = {COT_NONE, COT_NONE, COT_NONE, COT_NONE};
    for (int k = w; k < b->n; k++)
        if (b->is[k]) outside = true, xs[k] = cot__batch_align(xs[k], ndim);
    for (int k = 0; k < b->n; k++) all[k] = k < w ? cot__batch_full(b, k, xs[k]) : outside ? COT_NONE : xs[k];
    if (op == OP_norm_back && outside) all[1] = cot_smul(all[1], xs[w]);
    cot_var z = cot__batch_apply(r, b->extent, all);
    if (op == OP_norm_back || !outside) return z;
    z = cot_mul(z, xs[w]);
    return b->n > w + 1 ? cot_add(z, xs[w + 1]) : z;
}

/* (Σ g y, Σ g) over the rows of each element. */
cot_var cot__batch_norm_weights(cot__rule *r, const cot__batch *b, cot_var *xs) {
    const cot__attr *a = cot__rule_attr(r);
    cot_var          x = cot__batch_full(b, 0, xs[0]), g = cot__batch_full(b, 1, xs[1]);
    cot_axes         rows = {(int)a->ints[0], false, {0}};
    bool             rms = a->ints[1] != 0;
    double           eps = a->number;
    cot_shape        shape = result_shape(r, b->extent), row = {2, {b->extent, shape.dim[shape.ndim - 1]}};
    for (int k = 0; k < rows.n; k++) rows.axis[k] = k + 1;
    cot_var y =
        rms ? cot_rms_norm(x, COT_NONE, rows.n + 1, eps) : cot_layer_norm(x, COT_NONE, COT_NONE, rows.n + 1, eps);
    cot_var gy = cot_reshape(cot_sum(cot_smul(g, y), rows), row), sum = cot_reshape(cot_sum(g, rows), row);
    return cot_stack(2, (cot_var[]){gy, sum}, 1);
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* Images of all elements together, (batch, N, C, …) as (N, batch·C, …): one group, or as many as
 * there were, for each element. */
static cot_var side_by_side(cot_var x) {
    x = cot__moved_axis(x, 0, 1);
    cot_shape s = cot_shape_of(x);
    return s.ndim < 3 ? x : reshaped_front(x, 3, 2, (int64_t[]){s.dim[0], s.dim[1] * s.dim[2]});
}

/* One kernel for all: more images. Else each element's channels are groups of their own. */
cot_var cot__batch_conv(cot__rule *r, const cot__batch *b, cot_var *xs) {
    const cot__attr *of = cot__rule_attr(r);
    int              op = cot__rule_node(r)->op;
    cot_shape        z = cot__shape_at(r->t, r->node);
    if (b->extent == 0) return cot__batch_loop(r, b, xs);
    if (!b->is[1] && op != OP_conv_weight) {
        xs[0] = folded(xs[0]);
        return unfolded(cot__apply(r, xs), b->extent, z.dim[0]);
    }
    /* all read the same channels: no groups needed */
    bool       shared = !b->is[0] && of->ints[0] == 1 && op != OP_conv_transpose;
    cot__rule  grouped = *r;
    cot__attr *attr = cot__attr_make(r->t, r->op->name, (int)of->nints, of->ints, 0, NULL);
    if (!attr) return INVALID(r->t);
    if (!shared) attr->ints[0] *= b->extent;
    grouped.attr = attr;
    cot_var left = shared ? xs[0] : side_by_side(cot__batch_full(b, 0, xs[0])), right = cot__batch_full(b, 1, xs[1]);
    right = op == OP_conv_weight ? side_by_side(right) : folded(right);
    cot_var y = cot__apply(&grouped, (cot_var[]){left, right});
    if (op == OP_conv_weight) return unfolded(y, b->extent, z.dim[0]);
    return cot__moved_axis(reshaped_front(y, 2, 3, (int64_t[]){z.dim[0], b->extent, z.dim[1]}), 1, 0);
}
