/* loop_batch.c: a loop, condition or checkpoint on a batch, as one operation. loop_wide.c makes the
 * loop of all elements; this file runs it and brings the batch of each result to the front. A
 * condition whose choice is batched plays both bodies and chooses by element. Functions
 * with derivatives of the user's are played for one element after the other. */
#include "diff/loops/loop.h"
#include "ops/structural.h"

/* Result k of the wide loop with the batch in front. Results stacked over steps have it behind the
 * steps; carried values have it in front or not at all. */
static cot_var in_front(const cot__wide *w, int k, cot_var result) {
    const cot__loop *l = w->l;
    const bool      *carried = w->is + cot__loop_first_carry(l);
    if (k < l->carry) return cot__batch_full(&(cot__batch){w->extent, l->carry, carried}, k, result);
    return l->once ? result : cot__moved_axis(result, 1, 0);
}

/* Hands the results out in the order that they have on the tape. */
static cot_var hand_out(cot__rule *r, const cot__wide *w, int m, const cot_var *results) {
    cot_tape *t = r->t;
    cot_var   z = INVALID(t);
    int      *at = cot__arena(t, ((size_t)m + 1) * sizeof *at, w->l->name);
    if (!at) return z;
    cot__loop_order(t, w->l, at);
    for (int k = 0; k < m && t->status == COT_OK; k++) {
        cot_var y = in_front(w, k, results[k]);
        if (at[k] == 0) z = y;
        else if (r->more) r->more[at[k] - 1] = y;
    }
    return z;
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

/* Plays both bodies, and takes for each element the results of the body that it chose. */
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
        /* one step, stacked like the steps of a longer loop */
        if (k >= l->carry && !l->once) results[k] = cot_expand_dims(results[k], 0);
    }
    return t->status == COT_OK;
}

bool cot__loop_goes_one_by_one(const cot__loop *l, int64_t extent) {
    return l->rules || l->body[0]->m == 0 || (l->test && extent == 0);
}

/* The wide loop may carry a mask as its last result. Only a cot_while does so, and it gives nothing
 * out, so `results`, with room for 2 m values, can hold the mask too. */
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
    if (ok) z = hand_out(r, &w, m, results);
    cot__free(&t->al, results, bytes);
    return z;
}
