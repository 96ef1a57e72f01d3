/* loop_batch.c: a loop, condition or checkpoint for a batch, as one operation: the loop that
 * loop_wide.c makes, run, and its results laid out as those of the elements. A condition whose
 * choice is batched plays both bodies and chooses. Functions with derivatives of their own go one
 * by one. */
#include "diff/loops/loop.h"
#include "ops/structural.h"

/* Results as the flat values of the elements: stacked ones have the batch behind the steps, others
 * in front or not at all. */
static cot_var flattened(cot__rule *r, const cot__wide *w, int m, cot_var *results) {
    const cot__loop *l = w->l;
    const bool      *carried = w->is + cot__loop_first_carry(l);
    for (int k = 0; k < m; k++) {
        if (k < l->carry) results[k] = cot__batch_full(&(cot__batch){w->extent, m, carried}, k, results[k]);
        else if (!l->once) results[k] = cot__moved_axis(results[k], 1, 0);
        if (r->t->status != COT_OK) return INVALID(r->t);
        cot_shape s = cot_shape_of(results[k]);
        results[k] = cot_cast(cot_reshape(results[k], COT_SHAPE(w->extent, cot__count(s.ndim - 1, s.dim + 1))),
                              cot__dtype_at(cot__rule_node(r)));
    }
    return cot_concat(m, results, 1);
}

/* The inputs of the one step that a condition, or its derivative, takes: constants, carried values,
 * the only slice of each xs. */
static bool inputs_of(const cot__wide *w, cot_var *in) {
    const cot__loop *l = w->l;
    for (int k = 0; k < l->consts; k++) *in++ = w->x[cot__loop_first_const(l) + k];
    for (int k = cot__loop_first_carry(l); k < cot__loop_first_xs(l); k++)
        *in++ = cot__batch_full(&(cot__batch){w->extent, k + 1, w->given}, k, w->x[k]), w->is[k] = true;
    for (int k = cot__loop_first_xs(l); k < cot__loop_first_capture(l) && w->t->status == COT_OK; k++)
        *in++ = cot_index(w->x[k], w->is[k] ? 1 : 0, 0);
    return w->t->status == COT_OK;
}

/* Both bodies, and of each element the results that it chose. */
static bool choose(cot__wide *w, int m, cot_var *results, cot_var *others) {
    const cot__loop *l = w->l;
    cot_tape        *t = w->t;
    cot_var         *in = cot__arena(t, ((size_t)l->body[0]->n + 1) * sizeof *in, l->name);
    w->is = in ? cot__arena(t, (size_t)cot__loop_operands(l) + 1, l->name) : NULL;
    if (!w->is) return false;
    for (int k = 0; k < cot__loop_operands(l); k++) w->is[k] = w->given[k];
    if (!inputs_of(w, in) || !cot__wide_play(w, in, INVALID(t), results)) return false;
    w->which = 1;
    if (!cot__wide_play(w, in, INVALID(t), others)) return false;
    for (int k = 0; k < m && t->status == COT_OK; k++) {
        results[k] = cot_where(cot__batch_align(cot_not_equal(w->x[0], 0), cot_shape_of(results[k]).ndim - 1),
                               results[k], others[k]);
        /* stacked, as of one step */
        if (k >= l->carry && !l->once) results[k] = cot_expand_dims(results[k], 0);
    }
    return t->status == COT_OK;
}

bool cot__loop_goes_one_by_one(const cot__loop *l, int64_t extent) {
    return l->rules || l->body[0]->m == 0 || (l->test && extent == 0);
}

/* The mask that it may carry stands last among the results of a cot_while, which gives nothing out:
 * there is room for it. */
static bool run_wide(cot__wide *w, cot_var *results) {
    return cot__widen(w) && cot__loop_record(w->t, w->loop, w->args, results) == COT_OK;
}

cot_var cot__loop_batch(cot__rule *r, const cot__batch *b, cot_var *xs) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    cot_tape        *t = r->t;
    int              m = l->body[0]->m;
    if (cot__loop_goes_one_by_one(l, b->extent)) return cot__batch_loop(r, b, xs);
    cot__wide w = {.t = t, .l = l, .extent = b->extent, .x = xs, .given = b->is};
    size_t    bytes = 2 * (size_t)m * sizeof(cot_var);
    cot_var  *results = cot__alloc(&t->al, bytes), z = INVALID(t);
    if (!results) return cot__fail(t, COT_MEMORY, "[vmap] out of memory: a list of %d values", 2 * m);
    bool ok = cot__loop_chosen(l) && b->is[0] ? choose(&w, m, results, results + m) : run_wide(&w, results);
    if (ok) z = flattened(r, &w, m, results);
    cot__free(&t->al, results, bytes);
    return z;
}
