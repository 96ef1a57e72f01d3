/* explain.c: tells why a value is NaN or infinite. It walks back from y over values that are not
 * finite, to the first operation that made one out of finite operands. Recording notes nothing for
 * this: the tape still holds all values. */
#include "rules/elementwise_ids.h"
#include "inspect/inspect.h"

#include <string.h>

/* ---- the walk -------------------------------------------------------------------------------- */

/* next[i]: the node, nearer to y, that took its bad value from node i. COT__NONE: there is none. */
typedef struct trail {
    cot_tape *t;
    uint32_t *next;
    /* the oldest operation that made a value that is not finite from finite operands, and */
    uint32_t  origin;
    int64_t   index;  /* its first element that is not finite */
} trail;

static void follow(trail *w, uint32_t from, uint32_t to) {
    if (w->next[to] == COT__NONE) w->next[to] = from;
}

static bool readable(const cot_tape *t, uint32_t by, uint32_t a) {
    return a != COT__NONE && cot__dtype_is_float(cot__dtype_at(&t->nodes[a])) && !cot__overwritten(t, a, by);
}

/* Compares element by element. An operand is to blame where it is not finite itself, and where()
 * took it. Returns the first element for which no operand is to blame, or -1. */
static int64_t blame_elements(trail *w, uint32_t i) {
    const cot__node *n = &w->t->nodes[i];
    cot__view        z = cot__look(w->t, i), v;
    cot__reader      result, operand[3];
    int              arity = cot__elementwise_arity(n->op);
    int64_t          origin = -1;
    bool             reads[3] = {false, false, false}, choose = n->op == OP_where && !cot__overwritten(w->t, n->a, i);
    for (int k = 0; k < arity; k++) {
        reads[k] = readable(w->t, i, cot__arg(n, k)) || (choose && k == 0);
        if (!reads[k]) continue;
        v = cot__look(w->t, cot__arg(n, k));
        cot__reader_spread(&operand[k], w->t->backend, &v, &z);
    }
    cot__reader_open(&result, w->t->backend, &z);
    while (result.at < result.size) {
        int64_t at = result.at;
        bool    odd = !isfinite(cot__reader_next(&result)), explained = false;
        int     taken = choose ? (cot__reader_next(&operand[0]) != 0 ? 1 : 2) : -1;
        for (int k = choose ? 1 : 0; k < arity; k++) {
            if (!reads[k] || isfinite(cot__reader_next(&operand[k])) || !odd || (taken >= 0 && k != taken)) continue;
            follow(w, i, cot__arg(n, k));
            explained = true;
        }
        if (odd && !explained && origin < 0) origin = at;
    }
    return origin;
}

/* Other operations mix elements, so any operand that is not finite may be to blame. */
static int64_t blame_operands(trail *w, uint32_t i) {
    const cot__node *n = &w->t->nodes[i];
    cot__view        z = cot__look(w->t, i);
    int64_t          count;
    bool             explained = false;
    for (int k = 0, nargs = cot__nargs(n); k < nargs; k++) {
        uint32_t a = cot__arg(n, k);
        if (!readable(w->t, i, a)) continue;
        cot__view v = cot__look(w->t, a);
        if (cot__first_odd(w->t->backend, &v, &count) < 0) continue;
        follow(w, i, a);
        explained = true;
    }
    return explained ? -1 : cot__first_odd(w->t->backend, &z, &count);
}

static void walk(trail *w, uint32_t y) {
    w->next[y] = y;
    for (uint32_t i = y + 1; i-- > 0;) {
        if (w->next[i] == COT__NONE) continue;
        int64_t at = w->t->nodes[i].op < OP_structural ? blame_elements(w, i) : blame_operands(w, i);
        if (at >= 0) w->origin = i, w->index = at;
    }
}

/* ---- the sentences --------------------------------------------------------------------------- */

void cot__show_reads(cot__text *x, const cot_tape *t, uint32_t node, uint32_t mask, const char *before, int64_t index) {
    const cot__node *n = &t->nodes[node];
    char             called[COT__CALLED_TEXT];
    uint32_t         shown[4];
    int              count = 0;
    for (int k = 0; k < 4; k++) {
        if (!(k < 3 ? k < cot__nargs(n) && mask >> k & 1 : mask & COT__SAVES_Z)) continue;
        uint32_t a = k < 3 ? cot__arg(n, k) : node;
        bool again = a == COT__NONE; /* a number stands in the formula itself */
        for (int j = 0; j < count; j++) again = again || shown[j] == a;
        if (again) continue;
        shown[count++] = a;
        cot__putf(x, "%s%s = ", before, cot__called(t, a, called));
        before = ", ";
        if (cot__overwritten(t, a, node)) {
            cot__put(x, "(overwritten)");
        } else if (index < 0) {
            cot__show_value(x, t, a);
        } else {
            cot__view v = cot__look(t, a);
            cot__show_element(x, t->backend, &v, v.ndim ? index : 0);
        }
    }
}

/* Is a plain number beside the operand of an elementwise operation to blame? */
static bool number_is_odd(const cot__node *n) {
    return n->op < OP_structural && cot__nargs(n) == 2 && (n->a == COT__NONE || n->b == COT__NONE) &&
           !isfinite(n->extra.number);
}

static void say_origin(cot__text *x, const trail *w) {
    const cot_tape  *t = w->t;
    uint32_t         i = w->origin;
    const cot__node *n = &t->nodes[i];
    const cot__op   *op = cot__op_of(n->op);
    cot__view        z = cot__look(t, i);
    char             text[COT__FORMULA_TEXT], filled[COT__FILLED_TEXT], place[COT__SHAPE_TEXT];
    int64_t          count;
    cot__first_odd(t->backend, &z, &count);
    if (number_is_odd(n)) {
        cot__put(x, " It comes from ");
        cot__put_number(x, n->extra.number);
        cot__put(x, ", a number that ");
    } else {
        cot__put(x, " The first value that is not finite is ");
    }
    if (z.ndim && !number_is_odd(n)) cot__putf(x, "element %s of ", cot__place(&z, w->index, place));
    cot__put(x, cot__describe(t, i, text, sizeof text));
    cot__put(x, number_is_odd(n) ? " was given: " : ": ");
    if (n->op < OP_structural) {
        cot__formula(n->op, cot__elementwise_table[n->op].value, text, sizeof text);
        cot__put(x, cot__filled(t, i, text, filled, sizeof filled));
        cot__put(x, " = ");
        cot__show_element(x, t->backend, &z, w->index);
        cot__show_reads(x, t, i, 7, " for ", w->index);
    } else {
        cot__show_element(x, t->backend, &z, w->index);
        if (op->kind == KIND_SOURCE) cot__put(x, ", as it was given");
        for (int k = 0, nargs = cot__nargs(n); k < nargs && k < 3; k++) {
            cot__putf(x, "%s%s = ", k ? ", " : " from ", cot__called(t, cot__arg(n, k), text));
            cot__show_value(x, t, cot__arg(n, k));
        }
        if (cot__nargs(n) > 3) cot__put(x, ", …");
    }
    if (count > 1)
        cot__putf(x, "; %lld of its %lld elements are not finite", (long long)count, (long long)cot__size_at(t, i));
    cot__put(x, ".");
}

enum { HEAD = 4, TAIL = 3 }; /* nodes of a long chain that are named */

static void say_chain(cot__text *x, const trail *w, uint32_t y) {
    uint32_t length = 1, at = 0;
    char     called[COT__CALLED_TEXT];
    for (uint32_t i = w->origin; i != y; i = w->next[i]) length++;
    if (length == 1) return;
    cot__put(x, " From there to the result: ");
    for (uint32_t i = w->origin;; i = w->next[i], at++) {
        bool named = length <= HEAD + TAIL + 1 || at < HEAD || at >= length - TAIL;
        if (named)
            cot__putf(x, "%s%s %s", at ? ", " : "", cot__called(w->t, i, called), cot__op_of(w->t->nodes[i].op)->name);
        if (!named && at == HEAD) cot__putf(x, ", … %u more …", length - HEAD - TAIL);
        if (i == y) break;
    }
    cot__put(x, ".");
}

int cot__explain_value(cot__text *x, cot_tape *t, uint32_t y) {
    cot__view v = cot__look(t, y);
    int64_t   count, first = cot__first_odd(t->backend, &v, &count);
    char      text[COT__SHAPE_TEXT];
    if (first < 0) return 0;
    size_t bytes = ((size_t)y + 1) * sizeof(uint32_t);
    trail  w = {.t = t, .next = cot__alloc(&t->al, bytes)};
    if (!w.next) return -1;
    memset(w.next, 0xff, bytes);
    walk(&w, y);
    cot__put(x, "The result, ");
    cot__put(x, cot__describe(t, y, text, sizeof text));
    cot__put(x, ", is ");
    cot__show_element(x, t->backend, &v, first);
    if (v.ndim) cot__putf(x, " at %s", cot__place(&v, first, text));
    cot__put(x, ".");
    say_origin(x, &w);
    say_chain(x, &w, y);
    cot__free(&t->al, w.next, bytes);
    return 1;
}

/* ---- the public face ------------------------------------------------------------------------- */

int cot_explain(cot_var y, char *out, size_t size) {
    cot__text x = cot__text_buffer(out, size);
    cot_tape *t = cot__is_number(y) ? NULL : y.tape;
    if (!cot_is_valid(y)) {
        cot__put(&x, "The result is not a value on a tape");
        if (t && t->status != COT_OK) cot__put(&x, ". The tape's error: "), cot__put(&x, t->errors.message);
        else if (!y.tape)
            cot__put(&x,
                     ": it was never set, or no operand of its operation was on a tape, where the error would stand.");
        else
            cot__put(&x,
                     cot__is_number(y) ? ": it is a plain number." : ": it is invalid, or was forgotten by a rewind.");
        return 0;
    }
    if (!cot__has_values(t, "explain", cot__index(y), "explain a result outside")) {
        cot__put(&x, t->errors.message);
        return 0;
    }
    if (cot__is_stale(&t->nodes[cot__index(y)])) {
        cot__put(&x, "The result was overwritten in place; explain the var that the write returned.");
        return 0;
    }
    int found = cot__explain_value(&x, t, cot__index(y));
    if (found == 0) found = cot__explain_gradient(&x, t, cot__index(y));
    if (found > 0 && t->notes.first[0])
        cot__put(&x, "\n\nThe tape has a note: "), cot__put(&x, t->notes.first), cot__put(&x, ".");
    if (found >= 0) return found;
    x = cot__text_buffer(out, size);
    cot__putf(&x, "There is not enough memory to explain the result: a few bytes for each of %u operations.",
              cot__index(y) + 1);
    return -1;
}
