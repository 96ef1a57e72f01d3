/* loop_wide.c: makes the loop of all elements of a batch from the loop of one. The body of the wide
 * loop plays the old body by the batching rules.
 *
 * First find which carried values need a batch: those whose initial value has one, and those to
 * which some step gives one. Values that the steps go through have the batch behind the steps. If
 * the test of a cot_while reads no batch, all elements take the same number of steps. Otherwise the
 * wide loop goes on while any element does, and carries a mask of the elements that go on. The body
 * must not see the state of an element that has ended: the body may fail there (x[i] past the end),
 * give NaN whose derivative times 0 is NaN, or never end (a loop inside). So an ended element
 * borrows, without derivative, the state and all other batched inputs of the first element that
 * goes on. After the body it gets its own state back:
 *
 *     x    = where(mask, state, detach(state[argmax(mask)]))
 *     next = where(mask, body(x), state)
 *     mask = test(next) */
#include "diff/loops/loop.h"
#include "diff/batch/vmap.h"
#include "ops/structural.h"

#include <string.h>

/* ---- places ---------------------------------------------------------------------------------- */

/* The operand that is input k of the body (constants, [count], carried values, slices). -1: input k
 * is the count. */
static int input_operand(const cot__loop *l, int k) {
    if (k < l->consts || !l->counts) return cot__loop_first_const(l) + k;
    return k == l->consts ? -1 : cot__loop_first_const(l) + k - 1;
}

static int capture_operand(const cot__wide *w, int k) {
    return cot__loop_first_capture(w->l) + (w->which ? w->l->body[0]->captures : 0) + k;
}

static int tested_operand(const cot__wide *w, int k) {
    const cot__region *test = w->l->test;
    return k < test->n ? cot__loop_first_carry(w->l) + k : cot__loop_operands(w->l) - test->captures + k - test->n;
}

static cot_var *vars(const cot__wide *w, int n) {
    return cot__arena(w->t, ((size_t)n + 1) * sizeof(cot_var), w->l->name);
}
static bool    *flags(const cot__wide *w, int n) { return cot__arena(w->t, (size_t)n + 1, w->l->name); }

/* ---- bodies ---------------------------------------------------------------------------------- */

static cot_var chosen(cot_var mask, cot_var x, cot_var y) {
    return x.tape->status == COT_OK ? cot_where(cot__batch_align(mask, cot_shape_of(x).ndim - 1), x, y) : x;
}

/* x for the elements that go on. Ended elements borrow the x of element number `like`, which goes
 * on. */
static cot_var lent(cot_var mask, cot_var like, cot_var x) {
    return cot__failed(mask) ? x : chosen(mask, x, cot_detach(cot_take(x, like, 0)));
}

bool cot__wide_play(cot__wide *w, const cot_var *xs, cot_var mask, cot_var *ys) {
    const cot__loop   *l = w->l;
    const cot__region *r = l->body[w->which];
    cot_var *values = vars(w, r->n + r->captures), like = cot__failed(mask) ? mask : cot_argmax(mask, COT_ALL);
    bool    *given = values ? flags(w, r->n + r->captures + r->m) : NULL, *is = cot__behind(given, r->n + r->captures);
    if (!given) return false;
    for (int k = 0; k < r->n + r->captures; k++) {
        int operand = k < r->n ? input_operand(l, k) : capture_operand(w, k - r->n);
        given[k] = operand >= 0 && w->is[operand];
        values[k] = k < r->n ? xs[k] : w->x[operand];
        if (given[k]) values[k] = lent(mask, like, values[k]);
    }
    bool ok = w->t->status == COT_OK && cot__play_batched(w->t, l->name, r, values, given, w->extent, ys, is);
    for (int k = 0; ok && k < r->m; k++) {
        if (k >= l->carry || w->is[cot__loop_first_carry(l) + k])
            ys[k] = cot__batch_full(&(cot__batch){w->extent, r->m, is}, k, ys[k]);
        ok = !cot__failed(ys[k]);
    }
    return ok;
}

/* Should the loop go on? One answer for all elements or, with a mask, one for each. */
static cot_var tested(const cot__wide *w, const cot_var *carry) {
    const cot__region *test = w->l->test;
    cot_var           *values = vars(w, test->n + test->captures), go;
    bool              *given = values ? flags(w, test->n + test->captures) : NULL, is;
    if (!given) return INVALID(w->t);
    for (int k = 0; k < test->n + test->captures; k++) {
        given[k] = w->is[tested_operand(w, k)];
        values[k] = k < test->n ? carry[k] : w->x[tested_operand(w, k)];
    }
    if (!cot__play_batched(w->t, w->l->name, test, values, given, w->extent, &go, &is)) return INVALID(w->t);
    return w->masked ? cot_not_equal(go, 0) : go;
}

static int plain_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return (void)n, (void)m, !cot__wide_play(user, xs, INVALID(((cot__wide *)user)->t), ys);
}
static int plain_test(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return (void)n, (void)m, ys[0] = tested(user, xs), 0;
}

static int masked_body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot__wide *w = user;
    cot_var    mask = xs[n - 1];
    (void)m;
    if (!cot__wide_play(w, xs, mask, ys)) return 1;
    for (int k = 0; k < w->l->carry; k++) ys[k] = chosen(mask, ys[k], xs[w->l->consts + k]);
    ys[w->l->carry] = w->t->status == COT_OK ? tested(w, ys) : INVALID(w->t);
    return 0;
}
static int masked_test(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return (void)m, (void)user, ys[0] = cot_any(xs[n - 1], COT_ALL), 0;
}

/* ---- which carried values have a batch ------------------------------------------------------- */

/* Goes through the body once: does a step give a batch to a carried value that had none? */
static bool spread(cot__wide *w, bool *given, bool *more) {
    const cot__loop   *l = w->l;
    const cot__region *r = l->body[w->which];
    bool              *out = given + r->n + r->captures;
    for (int k = 0; k < r->n + r->captures; k++) {
        int operand = k < r->n ? input_operand(l, k) : capture_operand(w, k - r->n);
        given[k] = operand >= 0 && w->is[operand];
    }
    if (!cot__batch_reaches(w->t, r, given, out)) return false;
    for (int k = 0; k < l->carry; k++) {
        bool *is = &w->is[cot__loop_first_carry(l) + k];
        *more |= out[k] && !*is;
        *is |= out[k];
    }
    return true;
}

static bool find_carried(cot__wide *w) {
    const cot__loop *l = w->l;
    int              most = 1;
    const cot__region *const all[3] = {l->body[0], l->body[1], l->test};
    for (int k = 0; k < 3; k++)
        if (all[k] && all[k]->n + all[k]->captures + all[k]->m > most) most = all[k]->n + all[k]->captures + all[k]->m;
    bool *given = flags(w, most), more = given != NULL;
    while (more) {
        more = false;
        for (w->which = 0; w->which < 2 && l->body[w->which]; w->which++)
            if (!spread(w, given, &more)) return false;
    }
    if (!given || !l->test) return given != NULL;
    for (int k = 0; k < l->test->n + l->test->captures; k++) given[k] = w->is[tested_operand(w, k)];
    if (!cot__batch_reaches(w->t, l->test, given, &w->masked)) return false;
    for (int k = 0; w->masked && k < l->carry; k++) w->is[cot__loop_first_carry(l) + k] = true;
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Examples for the inputs of the wide body, from the operands x of the wide loop. */
static bool examples_of(const cot__wide *w, const cot__loop *wide, const cot_var *x, cot_var *examples) {
    for (int k = 0; k < wide->consts; k++) *examples++ = x[cot__loop_first_const(wide) + k];
    if (wide->counts) *examples++ = cot_data(w->t, COT_I64, COT_SCALAR, &wide->first);
    for (int k = 0; k < wide->carry; k++) *examples++ = x[cot__loop_first_carry(wide) + k];
    for (int k = 0; k < wide->nxs && w->t->status == COT_OK; k++)
        *examples++ = cot__first_slice(w->t, x[cot__loop_first_xs(wide) + k]);
    return w->t->status == COT_OK;
}

/* The operands of the wide loop, without captures. */
static bool operands_of(const cot__wide *w, const cot__loop *wide, cot_var *x) {
    const cot__loop *l = w->l;
    int              carry = cot__loop_first_carry(l), xs = cot__loop_first_xs(l);
    memcpy(x, w->x, (size_t)carry * sizeof *x);
    for (int k = carry; k < xs; k++)
        x[k] = w->given[k] || !w->is[k] ? w->x[k] : cot__batch_full(&(cot__batch){w->extent, xs, w->given}, k, w->x[k]);
    if (w->t->status == COT_OK && w->masked) x[xs] = tested(w, x + carry);
    for (int k = 0; k < l->nxs && w->t->status == COT_OK; k++)
        x[cot__loop_first_xs(wide) + k] = w->is[xs + k] ? cot__moved_axis(w->x[xs + k], 0, 1) : w->x[xs + k];
    return w->t->status == COT_OK;
}

bool cot__widen(cot__wide *w) {
    const cot__loop *l = w->l;
    cot_tape        *t = w->t;
    w->is = flags(w, cot__loop_operands(l));
    cot__loop *wide = w->is ? cot__arena(t, sizeof *wide, l->name) : NULL;
    if (!wide) return false;
    memcpy(w->is, w->given, (size_t)cot__loop_operands(l));
    if (!find_carried(w)) return false;
    *wide = *l;
    wide->carry += w->masked;
    int      given = cot__loop_first_capture(wide), n = l->body[0]->n + w->masked, m = l->body[0]->m + w->masked;
    cot_fn   body = w->masked ? masked_body : plain_body, test = w->masked ? masked_test : plain_test;
    cot_var *x = vars(w, given + n), *examples = cot__behind(x, given);
    if (!x || !operands_of(w, wide, x)) return false;
    uint32_t from = t->count;
    if (!examples_of(w, wide, x, examples)) return false;
    uint32_t to = t->count;
    for (w->which = 0; w->which < 2 && l->body[w->which]; w->which++)
        if (!(wide->body[w->which] = cot__region_record(t, l->name, body, w, n, examples, m))) return false;
    if (l->test)
        wide->test = cot__region_record_part(t, l->name, "test", test, w, wide->carry, x + cot__loop_first_carry(l), 1);
    cot__examples_over(t, from, to);
    if (l->test && !wide->test) return false;
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(wide) + 1) * sizeof *args, l->name);
    if (!args) return false;
    for (int k = 0; k < given; k++)
        if (!cot__operand(t, x[k], l->name, "batched", &args[k])) return false;
    for (int b = 0; b < 2 && wide->body[b]; b++)
        for (int k = 0; k < wide->body[b]->captures; k++) args[given++] = wide->body[b]->captured[k];
    for (int k = 0; wide->test && k < wide->test->captures; k++) args[given++] = wide->test->captured[k];
    w->loop = wide;
    w->args = args;
    return true;
}
