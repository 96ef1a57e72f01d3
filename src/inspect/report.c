/* report.c: tells where a derivative rests on a convention: at operations that sit exactly on a
 * kink of kinks.def, and where an adjoint of zero met an infinite or NaN partial and won. */
#include "diff/engine/find_kinks.h"
#include "tape/show.h"

typedef struct report {
    cot__findings f;
    cot_tape     *t;
    cot__kept_adjoints    w;
    bool          swept, short_of_memory;
} report;

/* ---- strong zeros ---------------------------------------------------------------------------- */

/* Computes partial k of node i for an adjoint of 1, at elements where the adjoint is 0. */
static void find_strong_zeros_of(report *r, uint32_t i, int k, const cot__view *g) {
    cot__view   c;
    cot__reader adjoint, partial;
    int64_t     stride[COT_MAX_NDIM], first = -1, count = 0;
    double      value = 0, seed = 1;
    char        text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT], called[COT__CALLED_TEXT], bar[COT__CALLED_TEXT + 2];
    cot__view   unit = cot__number_view(&seed, COT_F64);
    void *data = cot__contribution(r->t, i, k, &unit, &c, stride);
    if (!data) {
        r->short_of_memory = true;
        return;
    }
    if (g) cot__reader_spread(&adjoint, r->t->backend, g, &c);
    cot__reader_open(&partial, r->t->backend, &c);
    while (partial.at < partial.size) {
        double v = cot__reader_next(&partial), a = g ? cot__reader_next(&adjoint) : 0;
        if (a == 0 && !isfinite(v) && count++ == 0) first = partial.at - 1, value = v;
    }
    if (count) {
        int op = r->t->nodes[i].op;
        cot__finding_begin(&r->f, i);
        cot__put(&r->f.x, " has the partial ");
        cot__put_number(&r->f.x, value);
        cot__finding_where(&r->f, &c, first, count);
        cot__formula(op, cot__elementwise_table[op].partial[k], text, sizeof text);
        cot__with_bar(cot__called(r->t, i, called), bar, sizeof bar);
        cot__putf(&r->f.x, ", by the rule %s, but the adjoint %s is 0: the zero wins.",
                  cot__filled_bar(r->t, i, text, bar, filled, sizeof filled), bar);
    }
    cot__contribution_free(r->t, data, &c);
}

static void find_strong_zeros(report *r, uint32_t i) {
    const cot__node *n = &r->t->nodes[i];
    cot__view        g;
    if (n->op >= OP_structural || !(n->flags & COT__ACTIVE) || !cot__operands_are_there(r->t, i) ||
        cot__is_stale(n))
        return;
    bool arrived = cot__kept_adjoint(&r->w, i, &g);
    for (int k = 0; k < cot__elementwise_arity(n->op); k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !cot__elementwise_table[n->op].partial[k] || !(r->t->nodes[a].flags & COT__ACTIVE))
            continue;
        find_strong_zeros_of(r, i, k, arrived ? &g : NULL);
    }
}

/* ---- the public face ------------------------------------------------------------------------- */

int cot_report(cot_var y, char *out, size_t size) {
    report r = {.f.x = cot__text_buffer(out, size)};
    if (!cot_is_valid(y)) {
        cot__put(&r.f.x, "y is not a value on a tape.");
        return 0;
    }
    uint32_t top = cot__index(y);
    r.t = r.f.t = y.tape;
    if (!cot__has_values(r.t, "report", top, "look at a result outside")) {
        cot__put(&r.f.x, r.t->errors.message);
        return 0;
    }
    /* the sweep of a loop reports the kinks of its steps */
    r.t->kinks.look = &r.f;
    r.swept = cot__kept_adjoints_open(&r.w, r.t, top, NULL);
    r.t->kinks.look = NULL;
    r.f.where[0] = 0;
    cot__calling_open(r.t);
    uint8_t *ancestor = cot__ancestors(r.t, top);
    for (uint32_t i = 0; ancestor && i <= top; i++)
        if (ancestor[i] && cot__has_active_operand(r.t, i)) {
            cot__find_kinks(&r.f, i);
            /* on a smooth tape the derivative of a called program looks for itself */
            if (!r.t->options.smooth) cot__find_kinks_inside(&r.f, i);
        }
    for (uint32_t i = top + 1; ancestor && r.swept && i-- > 0;)
        if (ancestor[i]) find_strong_zeros(&r, i);
    cot__list_free(r.t, ancestor, (size_t)top + 1);
    cot__calling_close(r.t);
    r.short_of_memory = r.short_of_memory || !ancestor || r.w.short_of_memory;
    if (!r.swept && r.f.found) cot__put(&r.f.x, "\n");
    if (!r.swept) cot__put(&r.f.x, "The reverse sweep cannot run: "), cot__put(&r.f.x, r.w.why);
    cot__kept_adjoints_close(&r.w);
    if (!r.short_of_memory) return r.f.found;
    r.f.x = cot__text_buffer(out, size);
    cot__put(&r.f.x, "There is not enough memory to look at the tape.");
    return -1;
}
