/* explain_gradient.c: tells why the gradient of a leaf is zero or not finite.
 *
 * One walk goes down the tape beside the adjoints of a sweep. Each node tells its operands which
 * node is to blame. It blames itself if it turned a finite adjoint into one that is not finite, or
 * a nonzero adjoint into zeros. Otherwise it passes on the node that is to blame for its own
 * adjoint. */
#include "rules/structural_ids.h"
#include "inspect/inspect.h"

#include <string.h>

typedef struct blame {
    uint32_t odd;   /* the node that made the adjoint of this one not finite */
    uint32_t maybe; /* the same, where an operation that is not elementwise is only suspected */
    uint32_t cut;   /* the node that let nothing through */
} blame;

typedef struct search {
    cot__text *x;
    cot_tape  *t;
    uint32_t   y;
    cot__kept_adjoints w;
    uint8_t   *ancestor;
    blame     *who;
} search;

static void accuse(uint32_t *whom, uint32_t i) {
    if (*whom == COT__NONE) *whom = i;
}

/* The first element that is not finite in c although g is finite there. -1: there is none. -2:
 * there is none, but c has such elements where g has. */
static int64_t first_made_odd(const search *s, const cot__view *g, const cot__view *c) {
    cot__reader in, out;
    int64_t     answer = -1;
    cot__reader_spread(&in, s->t->backend, g, c);
    cot__reader_open(&out, s->t->backend, c);
    while (out.at < out.size) {
        double adjoint = cot__reader_next(&in);
        if (isfinite(cot__reader_next(&out))) continue;
        if (isfinite(adjoint)) return out.at - 1;
        answer = -2;
    }
    return answer;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Finds what node i, with adjoint g, does to the adjoint of its operand k. */
static bool visit_operand(search *s, uint32_t i, int k, const cot__view *g, bool odd) {
    const cot__node *n = &s->t->nodes[i];
    uint32_t         a = cot__arg(n, k);
    blame           *to = &s->who[a];
    cot__view        c;
    int64_t          stride[COT_MAX_NDIM], count;
    if (n->op < OP_structural) {
        void *data = cot__contribution(s->t, i, k, g, &c, stride);
        if (!data) return false;
        int64_t made = first_made_odd(s, g, &c);
        if (made != -1) accuse(&to->odd, made >= 0 ? i : s->who[i].odd);
        if (cot__all_zero(s->t->backend, &c)) accuse(&to->cut, i);
        cot__contribution_free(s->t, data, &c);
        return true;
    }
    bool arrived = cot__kept_adjoint(&s->w, a, &c);
    if (!arrived || cot__all_zero(s->t->backend, &c))
        accuse(&to->cut, i);
    else if (cot__first_odd(s->t->backend, &c, &count) >= 0)
        accuse(&to->maybe, odd ? s->who[i].odd : i);
    return true;
}

/* Adds up what is to be said of the adjoints of a node and of its further results. */
static void look(const search *s, uint32_t i, cot__view *g, bool *zero, bool *odd) {
    uint32_t end = i + (s->t->nodes[i].op == OP_pick ? 1 : (uint32_t)cot__results_at(s->t, i));
    *zero = true, *odd = false;
    for (uint32_t k = end < s->y + 1 ? end : s->y + 1; k-- > i;) {
        int64_t count;
        if (!(s->t->nodes[k].flags & COT__ACTIVE) || !cot__kept_adjoint(&s->w, k, g)) continue;
        *zero = *zero && cot__all_zero(s->t->backend, g);
        *odd = *odd || cot__first_odd(s->t->backend, g, &count) >= 0;
    }
}

/* A pick hands what it got to its operation. */
static bool visit_pick(search *s, uint32_t i, bool active, bool zero, bool odd) {
    uint32_t of = s->t->nodes[i].a;
    if (odd) accuse(&s->who[of].odd, s->who[i].odd);
    if (zero) accuse(&s->who[of].cut, active ? s->who[i].cut : i);
    return true;
}

static bool visit(search *s, uint32_t i) {
    const cot__node *n = &s->t->nodes[i];
    const cot__op   *op = cot__op_of(n->op);
    cot__view        g;
    bool             active = n->flags & COT__ACTIVE, zero, odd;
    look(s, i, &g, &zero, &odd);
    if (odd) accuse(&s->who[i].odd, s->who[i].maybe != COT__NONE ? s->who[i].maybe : i);
    if (active && zero) accuse(&s->who[i].cut, i); /* the contributions cancelled */
    if (n->op == OP_pick) return visit_pick(s, i, active, zero, odd);
    for (int k = 0, nargs = cot__nargs(n); k < nargs; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || !(s->t->nodes[a].flags & COT__ACTIVE)) continue;
        if (!active || (k < 32 && op->inactive >> k & 1))
            accuse(&s->who[a].cut, i);
        else if (zero)
            accuse(&s->who[a].cut, s->who[i].cut);
        else if (!visit_operand(s, i, k, &g, odd))
            return false;
    }
    return true;
}

/* ---- the sentences --------------------------------------------------------------------------- */

/* Writes "its rule v̄₁/(2·v₁) gives inf for the adjoint v̄₁ = 1, v₁ = 0", for an operand of
 * elementwise node i that shows it. */
static bool say_rule(search *s, uint32_t i, bool zero) {
    const cot__elementwise_info *e = &cot__elementwise_table[s->t->nodes[i].op];
    cot__text                   *x = s->x;
    char                         text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT], place[COT__SHAPE_TEXT];
    char                         called[COT__CALLED_TEXT], bar[COT__CALLED_TEXT + 2];
    cot__view                    g, c;
    int64_t                      stride[COT_MAX_NDIM];
    bool                         said = false;
    if (!cot__kept_adjoint(&s->w, i, &g)) return true;
    cot__with_bar(cot__called(s->t, i, called), bar, sizeof bar);
    for (int k = 0; k < e->arity && !said; k++) {
        uint32_t a = cot__arg(&s->t->nodes[i], k);
        if (a == COT__NONE || !e->partial[k] || !(s->t->nodes[a].flags & COT__ACTIVE)) continue;
        void *data = cot__contribution(s->t, i, k, &g, &c, stride);
        if (!data) return false;
        int64_t at = zero ? (cot__all_zero(s->t->backend, &c) ? 0 : -1) : first_made_odd(s, &g, &c);
        if (at >= 0) {
            said = true;
            cot__formula(s->t->nodes[i].op, e->partial[k], text, sizeof text);
            cot__putf(x, ": its rule %s gives ", cot__filled_bar(s->t, i, text, bar, filled, sizeof filled));
            cot__show_element(x, s->t->backend, &c, at);
            if (zero) cot__put(x, c.ndim ? " everywhere for " : " for ");
            else if (c.ndim) cot__putf(x, " at %s for ", cot__place(&c, at, place));
            else cot__put(x, " for ");
            cot__putf(x, "the adjoint %s = ", bar);
            if (zero) cot__show_values(x, s->t->backend, &g);
            else cot__show_element(x, s->t->backend, &g, at);
            cot__show_reads(x, s->t, i, e->saves[k], ", ", zero ? -1 : at);
        }
        cot__contribution_free(s->t, data, &c);
    }
    cot__put(x, ".");
    return true;
}

static void name_leaf(search *s, uint32_t leaf) {
    char text[200];
    cot__putf(s->x, "The gradient of %s is ", cot__describe(s->t, leaf, text, sizeof text));
}

static bool say_odd(search *s, uint32_t leaf, const cot__view *g) {
    char     text[200];
    int64_t  count, at = cot__first_odd(s->t->backend, g, &count);
    uint32_t by = s->who[leaf].odd;
    name_leaf(s, leaf);
    cot__show_element(s->x, s->t->backend, g, at);
    if (g->ndim) cot__putf(s->x, " at %s", cot__place(g, at, text));
    if (count > 1)
        cot__putf(s->x, " (%lld of %lld elements are not finite)", (long long)count,
                  (long long)cot__count(g->ndim, g->shape));
    const cot__op *op = cot__op_of(s->t->nodes[by].op);
    /* otherwise `by` is the leaf itself, where finite contributions overflowed */
    bool           passes = op->kind != KIND_SOURCE;
    cot__putf(s->x, ". It became so at %s", cot__describe(s->t, by, text, sizeof text));
    if (passes && s->t->nodes[by].op < OP_structural) return say_rule(s, by, false);
    cot__put(s->x, passes ? ", whose adjoint is finite: " : ": the contributions to it are finite, their sum is not.");
    if (passes) cot__put(s->x, op->formula ? op->formula : "its rule gives values that are not"), cot__put(s->x, ".");
    return true;
}

/* Tells why nothing flows through an inactive node. */
static void say_inactive(search *s, uint32_t i) {
    const cot__node *n = &s->t->nodes[i];
    if (n->op == OP_detach)
        cot__put(s->x, ", through which no gradient flows.");
    else if (cot__op_of(n->op)->kind == KIND_NONE)
        cot__put(s->x, ", which has no derivative.");
    else if (!cot__dtype_is_float(cot__dtype_at(n)))
        cot__putf(s->x, ", whose dtype, %s, has no derivative.", cot__dtype_name(cot__dtype_at(n)));
    else
        cot__put(s->x, ", which was recorded without gradients.");
}

/* An operand of node i without elements, so that nothing comes through it; COT__NONE: none is. */
static uint32_t empty_operand(const search *s, uint32_t i) {
    const cot__node *n = &s->t->nodes[i];
    for (int k = 0; k < cot__nargs(n); k++)
        if (cot__arg(n, k) != COT__NONE && cot__size_at(s->t, cot__arg(n, k)) == 0) return cot__arg(n, k);
    return COT__NONE;
}

static bool say_zero(search *s, uint32_t leaf) {
    char             text[200];
    cot__view        g;
    uint32_t         by = s->who[leaf].cut;
    const cot__node *n = &s->t->nodes[by];
    name_leaf(s, leaf);
    cot__put(s->x, cot__has_axes(&s->t->nodes[leaf]) ? "zero everywhere" : "zero");
    if (by == leaf) {
        cot__put(s->x, ": what its uses contribute cancels.");
        return true;
    }
    if (empty_operand(s, by) != COT__NONE) {
        cot__putf(s->x, ": it is used for %s, which has no elements.",
                  cot__describe(s->t, empty_operand(s, by), text, sizeof text));
        return true;
    }
    /* an operation that mixes elements may have received zeros already */
    bool mixes = (n->flags & COT__ACTIVE) && n->op >= OP_structural;
    cot__putf(s->x, mixes ? ". It gets only zeros from %s" : ". It is cut at %s",
              cot__describe(s->t, by, text, sizeof text));
    if (!(n->flags & COT__ACTIVE)) {
        say_inactive(s, by);
        return true;
    }
    if (!cot__kept_adjoint(&s->w, by, &g) || cot__all_zero(s->t->backend, &g)) {
        cot__put(s->x, ": what its uses contribute cancels.");
        return true;
    }
    if (n->op < OP_structural) return say_rule(s, by, true);
    cot__put(s->x, ", whose own adjoint is not all zero");
    if (cot__op_of(n->op)->formula) cot__put(s->x, ": "), cot__put(s->x, cot__op_of(n->op)->formula);
    cot__put(s->x, ".");
    return true;
}

static int say_findings(search *s) {
    int      found = 0;
    uint32_t leaves = 0, empty = 0;
    for (uint32_t i = 0; i <= s->y; i++) {
        const cot__node *n = &s->t->nodes[i];
        cot__view        g;
        int64_t          count;
        if (!s->ancestor[i] || n->op != OP_leaf || !(n->flags & COT__ACTIVE)) continue;
        empty += cot__size_at(s->t, i) == 0;
        if (cot__size_at(s->t, i) == 0) continue;
        leaves++;
        bool arrived = cot__kept_adjoint(&s->w, i, &g), zero = !arrived || cot__all_zero(s->t->backend, &g);
        if (!zero && cot__first_odd(s->t->backend, &g, &count) < 0) continue;
        if (found++) cot__put(s->x, "\n\n");
        if (!(zero ? say_zero(s, i) : say_odd(s, i, &g))) return -1;
    }
    if (leaves == 0) {
        char text[200];
        cot__putf(s->x,
                  empty ? "The result, %s, depends on leaves without elements alone, so their gradients have none."
                        : "The result, %s, depends on no leaf, so there is no gradient.",
                  cot__describe(s->t, s->y, text, sizeof text));
        return 1;
    }
    if (found == 0 && leaves == 1)
        cot__put(s->x, "The result is finite, and the gradient of its leaf is finite and not zero.");
    if (found == 0 && leaves > 1)
        cot__putf(s->x, "The result is finite, and the gradients of its %u leaves are finite and not zero.", leaves);
    return found;
}

/* Keeps the adjoints of a sweep, walks, and writes the sentences. */
static int run(search *s) {
    if (!cot__kept_adjoints_open(&s->w, s->t, s->y, NULL)) {
        if (s->w.short_of_memory) return -1;
        cot__put(s->x, "The result is finite, but its reverse sweep cannot run: ");
        cot__put(s->x, s->w.why);
        cot__put(s->x, ".");
        return 0;
    }
    memset(s->who, 0xff, ((size_t)s->y + 1) * sizeof *s->who);
    for (uint32_t i = s->y + 1; i-- > 0;)
        if (s->ancestor[i] && !visit(s, i)) return -1;
    return say_findings(s);
}

int cot__explain_gradient(cot__text *x, cot_tape *t, uint32_t y) {
    size_t nodes = (size_t)y + 1;
    search s = {.x = x, .t = t, .y = y, .w = {.sweep = {.t = t, .lo = 1}}};
    s.ancestor = cot__ancestors(t, y);
    s.who = s.ancestor ? cot__alloc(&t->al, nodes * sizeof *s.who) : NULL;
    int found = s.who ? run(&s) : -1;
    cot__kept_adjoints_close(&s.w);
    cot__free(&t->al, s.who, nodes * sizeof *s.who);
    cot__list_free(t, s.ancestor, nodes);
    return found;
}
