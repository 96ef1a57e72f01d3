/* loop_batch.c: a loop, condition or checkpoint for a batch: one whose body does what the old body did, for all elements at once.
 *
 * The new body plays the old one by the batching rules. Carried values and results have the batch in front, whether they need
 * it or not; what the steps go through has it behind the steps. A condition whose choice is batched plays both bodies and
 * chooses. Functions with derivatives of their own go one by one; so does cot_while, whose length differs from element to element:
 * played on for those whose test has said no, its body might fail (x[i] past the end) or never end (a loop inside). */
#include "diff/loop.h"
#include "diff/vmap.h"
#include "ops/structural.h"

#include <string.h>

typedef struct batched {
    const cot__loop  *l;
    const cot__batch *b;
    const cot_var    *x;     /* operands, with the batch in front where b says so */
    int               which; /* body */
} batched;

static int first_capture(const batched *c) { return cot__loop_first_capture(c->l) + (c->which ? c->l->body[0]->captures : 0); }

/* Does input k of the body (constants, [count], carried values, slices) come with a batch? */
static bool input_is(const batched *c, int k) {
    const cot__loop *l = c->l;
    if (k < l->consts) return c->b->is[cot__loop_first_const(l) + k];
    k -= l->consts;
    if (l->counts && k == 0) return false;
    k -= l->counts;
    return k < l->carry || c->b->is[cot__loop_first_xs(l) + k - l->carry];
}

/* Plays the old body on xs: a cot_fn. */
static int play(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    batched           *c = user;
    const cot__region *r = c->l->body[c->which];
    cot_tape          *t = c->x[0].tape;
    size_t             inputs = (size_t)(r->n + r->captures);
    cot_var           *values = cot__arena(t, (inputs + 1) * sizeof *values, c->l->name);
    bool              *given = values ? cot__arena(t, inputs + (size_t)m + 1, c->l->name) : NULL, *is = given + inputs;
    if (!given) return 1;
    for (int k = 0; k < n; k++) values[k] = xs[k], given[k] = input_is(c, k);
    for (int k = 0; k < r->captures; k++)
        values[n + k] = c->x[first_capture(c) + k], given[n + k] = c->b->is[first_capture(c) + k];
    bool ok = cot__play_batched(t, c->l->name, r, values, given, c->b->extent, ys, is);
    for (int k = 0; ok && k < m; k++) {
        ys[k] = cot__batch_full(&(cot__batch){c->b->extent, m, is}, k, ys[k]);
        ok = !cot__failed(ys[k]);
    }
    return !ok;
}

/* Results with the batch in front, or behind the steps, as the flat values of the elements. */
static cot_var flattened(cot__rule *r, const cot__loop *l, int64_t extent, int m, cot_var *results) {
    for (int k = 0; k < m; k++) {
        if (k >= l->carry && !l->once) results[k] = cot__moved_axis(results[k], 1, 0);
        if (r->t->status != COT_OK) return INVALID(r->t);
        cot_shape s = cot_shape_of(results[k]);
        results[k] = cot_cast(cot_reshape(results[k], COT_SHAPE(extent, cot__count(s.ndim - 1, s.dim + 1))),
                              cot__dtype_at(cot__rule_node(r)));
    }
    return cot_concat(m, results, 1);
}

/* Examples of the inputs of the body. */
static bool examples_of(cot_tape *t, const batched *c, const cot_var *x, cot_var *examples) {
    const cot__loop *l = c->l;
    for (int k = 0; k < l->consts; k++) *examples++ = x[cot__loop_first_const(l) + k];
    if (l->counts) *examples++ = cot_data(t, COT_I64, COT_SCALAR, &l->first);
    for (int k = 0; k < l->carry; k++) *examples++ = x[cot__loop_first_carry(l) + k];
    for (int k = 0; k < l->nxs && t->status == COT_OK; k++) *examples++ = cot__first_slice(t, x[cot__loop_first_xs(l) + k]);
    return t->status == COT_OK;
}

/* The loop with the new bodies. */
static bool record(cot_tape *t, batched *c, cot_var *results) {
    const cot__loop *l = c->l;
    int              given = cot__loop_first_capture(l), n = l->body[0]->n, m = l->body[0]->m;
    cot__loop       *wide = cot__arena(t, sizeof *wide, l->name);
    cot_var         *x = wide ? cot__arena(t, (size_t)(given + n + 1) * sizeof *x, l->name) : NULL, *examples = x + given;
    if (!x) return false;
    memcpy(x, c->x, (size_t)given * sizeof *x);
    for (int k = cot__loop_first_carry(l); k < cot__loop_first_xs(l); k++) x[k] = cot__batch_full(c->b, k, x[k]);
    for (int k = cot__loop_first_xs(l); k < given && t->status == COT_OK; k++)
        if (c->b->is[k]) x[k] = cot__moved_axis(x[k], 0, 1);
    if (t->status != COT_OK || !examples_of(t, c, x, examples)) return false;
    *wide = *l;
    for (c->which = 0; c->which < 2 && l->body[c->which]; c->which++)
        if (!(wide->body[c->which] = cot__region_record(t, l->name, play, c, n, examples, m))) return false;
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(wide) + 1) * sizeof *args, l->name);
    if (!args) return false;
    for (int k = 0; k < given; k++)
        if (!cot__operand(t, x[k], l->name, "batched", &args[k])) return false;
    for (int b = 0; b < 2 && wide->body[b]; b++)
        for (int k = 0; k < wide->body[b]->captures; k++) args[given++] = wide->body[b]->captured[k];
    return cot__loop_record(t, wide, args, results) == COT_OK;
}

/* The inputs of the one step that a condition, or its derivative, takes: constants, carried values, the only slice of each xs. */
static bool inputs_of(cot_tape *t, const batched *c, cot_var *in) {
    const cot__loop *l = c->l;
    for (int k = 0; k < l->consts; k++) *in++ = c->x[cot__loop_first_const(l) + k];
    for (int k = cot__loop_first_carry(l); k < cot__loop_first_xs(l); k++) *in++ = cot__batch_full(c->b, k, c->x[k]);
    for (int k = cot__loop_first_xs(l); k < cot__loop_first_capture(l) && t->status == COT_OK; k++)
        *in++ = cot_index(c->x[k], c->b->is[k] ? 1 : 0, 0);
    return t->status == COT_OK;
}

/* Both bodies, and of each element the results that it chose. */
static bool choose(cot_tape *t, batched *c, int m, cot_var *results, cot_var *others) {
    const cot__loop *l = c->l;
    int              n = l->body[0]->n;
    cot_var         *in = cot__arena(t, ((size_t)n + 1) * sizeof *in, l->name);
    if (!in || !inputs_of(t, c, in)) return false;
    if (play(n, in, m, results, c)) return false;
    c->which = 1;
    if (play(n, in, m, others, c)) return false;
    for (int k = 0; k < m && t->status == COT_OK; k++) {
        results[k] = cot_where(cot__batch_align(cot_not_equal(c->x[0], 0), cot_shape_of(results[k]).ndim - 1), results[k],
                               others[k]);
        if (k >= l->carry && !l->once) results[k] = cot_expand_dims(results[k], 0); /* stacked, as of one step */
    }
    return t->status == COT_OK;
}

cot_var cot__loop_batch(cot__rule *r, const cot__batch *b, cot_var *xs) {
    const cot__loop *l = cot__rule_attr(r)->pointer;
    cot_tape        *t = r->t;
    int              m = l->body[0]->m;
    if (l->test || l->rules || m == 0) return cot__batch_loop(r, b, xs);
    batched  c = {l, b, xs, 0};
    size_t   bytes = 2 * (size_t)m * sizeof(cot_var);
    cot_var *results = cot__alloc(&t->al, bytes), z = INVALID(t);
    if (!results) return cot__fail(t, COT_MEMORY, "[vmap] out of memory: a list of %d values", 2 * m);
    bool ok = cot__loop_chosen(l) && b->is[0] ? choose(t, &c, m, results, results + m) : record(t, &c, results);
    if (ok) z = flattened(r, l, b->extent, m, results);
    cot__free(&t->al, results, bytes);
    return z;
}
