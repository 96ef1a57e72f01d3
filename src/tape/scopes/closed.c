/* closed.c: cot_scope_open and cot_scope_close.
 *
 * Closing gives all nodes of the scope a new stamp, so that no var of the user's fits them any more
 * but those that are kept, which are written again. The memory of a value goes if no rule reads it:
 * its shape stays, and its version is none that a storage has, so who reads it all the same finds a
 * stale value. What rules read stays, as bf16 if the tape's policy says so (src/memory/pack.c). */
#include "tape/scopes/closed.h"

#include <string.h>

/* What a scope may do with a storage that was made in it. */
enum { OLDER, HELD, FREE, RULES };

/* ---- scopes that are open -------------------------------------------------------------------- */

void cot_scope_open(cot_tape *t, const char *name) {
    if (!t || t->status != COT_OK) return;
    if (t->scopes.depth == COT__DEEPEST_SCOPE) {
        cot__fail(t, COT_LIMIT, "[scope_open] %d scopes are open; there may be so many", COT__DEEPEST_SCOPE);
        return;
    }
    if (!name) {
        cot__fail(t, COT_VALUE, "[scope_open] the name is NULL; it is told when a value of the scope is used later");
        return;
    }
    cot__open_scope *s = &t->scopes.open[t->scopes.depth++];
    *s = (cot__open_scope){.from = t->count, .storages = t->storages.count, .names = t->names.count,
                           .stamp = t->stamp, .low = UINT32_MAX, .packs = cot__packs(t), .body = t->mode.body};
    snprintf(s->name, sizeof s->name, "%s", name);
}

/* The scope to close; NULL after setting the error. */
static const cot__open_scope *to_close(cot_tape *t) {
    const cot__open_scope *s = t->scopes.depth > 0 ? &t->scopes.open[t->scopes.depth - 1] : NULL;
    if (!s) cot__fail(t, COT_VALUE, "[scope_close] no scope is open; each close belongs to an open before it");
    else if (s->body != t->mode.body)
        cot__fail(t, COT_VALUE, "[scope_close] scope \"%s\" was opened outside of the body that is recorded; close it "
                                "where it was opened", s->name);
    return t->status == COT_OK ? s : NULL;
}

/* ---- scopes that are closed ------------------------------------------------------------------ */

static bool is_there(const cot_tape *t, const cot__closed *c) {
    return c->to <= t->count && c->to > c->from && t->nodes[c->from].stamp == c->stamp;
}

const char *cot__closed_scope(const cot_tape *t, uint32_t i) {
    for (uint32_t k = t->scopes.count; k-- > 0;) {
        const cot__closed *c = &t->scopes.closed[k];
        if (i >= c->from && i < c->to && is_there(t, c)) return c->name;
    }
    return NULL;
}

static bool remember(cot_tape *t, const cot__open_scope *s, uint32_t stamp) {
    while (t->scopes.count > 0 && !is_there(t, &t->scopes.closed[t->scopes.count - 1])) t->scopes.count--;
    void *list = t->scopes.closed;
    if (!cot__grow(t, &list, &t->scopes.capacity, t->scopes.count, sizeof *t->scopes.closed, "scope_close"))
        return false;
    t->scopes.closed = list;
    cot__closed *c = &t->scopes.closed[t->scopes.count++];
    *c = (cot__closed){.from = s->from, .to = t->count, .stamp = stamp};
    memcpy(c->name, s->name, sizeof c->name);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void mark(cot_tape *t, uint32_t i, uint8_t as) {
    if (i != COT__NONE && cot__is_tensor(&t->nodes[i]) && t->nodes[i].value.tensor->storage->scoped)
        t->nodes[i].value.tensor->storage->scoped = as;
}

/* What rules read of node i, alone: RULES. */
static void mark_saved(cot_tape *t, uint32_t i) {
    const cot__node *x = &t->nodes[i];
    uint32_t         mask = x->op == OP_pick ? 0 : cot__saved_mask(t, i);
    for (int k = 0, count = mask ? cot__nargs(x) : 0; k < count; k++)
        if (cot__saves_operand(mask, k)) mark(t, cot__arg(x, k), RULES);
    /* rules may read any result where there are several: the statistics of a norm, say */
    int  results = x->op == OP_pick ? 0 : cot__results_at(t, i);
    bool all = (mask & COT__SAVES_Z) || (results > 1 && (x->flags & COT__ACTIVE));
    for (int k = 0; all && k < results; k++) mark(t, i + (uint32_t)k, RULES);
}

/* Marks the storages of values that were made in the scope: RULES if rules read them, otherwise
 * FREE; but HELD where they are kept, borrowed, written in place, leaves, or constants of
 * bodies. */
static void mark_all(cot_tape *t, const cot__open_scope *s, int n, const cot_var *keep) {
    for (uint32_t k = s->storages; k < t->storages.count; k++) t->storages.list[k]->scoped = HELD;
    for (uint32_t i = s->from; i < t->count; i++) mark(t, i, FREE);
    for (uint32_t i = s->from; i < t->count; i++) mark_saved(t, i);
    for (uint32_t i = s->from; i < t->count; i++) {
        const cot__node *x = &t->nodes[i];
        if (x->op == OP_leaf || cot__in_body(x) || (x->flags & COT__IN_PLACE) ||
            (cot__is_tensor(x) && x->value.tensor->storage->borrowed))
            mark(t, i, HELD);
    }
    for (int k = 0; k < n; k++)
        if (!cot__is_number(keep[k])) mark(t, cot__index(keep[k]), HELD);
}

static void hold(cot_tape *t, uint32_t i) {
    if (i != COT__NONE && cot__is_tensor(&t->nodes[i]) && t->nodes[i].value.tensor->storage->scoped == RULES)
        mark(t, i, HELD);
}

/* Which operands of an operation must stay as they are, as a save mask: all, unless it is linear or
 * takes rounded ones; of elementwise ones those that a partial reads. */
static uint32_t exact_operands(int op) {
    const cot__op *o = cot__op_of(op);
    if (o->rounds || o->kind == KIND_LINEAR) return 0;
    return op < OP_structural && o->kind != KIND_NONE ? o->saves : ~0u;
}

/* Of what rules read, the values that are not to be rounded: those of operations that do not allow
 * it (cot__op.rounds), second results, which are statistics, and what does not depend on leaves: a
 * mask is a factor of everything. */
static void hold_some(cot_tape *t, const cot__open_scope *s) {
    for (uint32_t i = s->from; i < t->count; i++) {
        const cot__node *x = &t->nodes[i];
        if (!(x->flags & COT__ACTIVE) || x->op == OP_pick) hold(t, i);
        uint32_t exact = x->op == OP_pick ? 0 : exact_operands(x->op);
        for (int k = 0, count = exact ? cot__nargs(x) : 0; k < count; k++)
            if (cot__saves_operand(exact, k)) hold(t, cot__arg(x, k));
        if (exact && (cot__saved_mask(t, i) & COT__SAVES_Z)) hold(t, i);
    }
}

/* Of what stays, the f32 values that rules alone read. */
static void pack(cot_tape *t, const cot__open_scope *s) {
    hold_some(t, s);
    for (uint32_t i = s->from; i < t->count; i++) {
        const cot__node *x = &t->nodes[i];
        if (!cot__is_tensor(x) || x->value.tensor->storage->scoped != RULES) continue;
        if (cot__dtype_at(x) == COT_F32) cot__pack(t, x->value.tensor->storage);
        x->value.tensor->storage->scoped = HELD; /* once is enough */
    }
}

/* Lets the marked ones go; where they were there is `none`, whose version no value has. */
static void let_go(cot_tape *t, const cot__open_scope *s, cot__storage *none) {
    none->version = 1;
    for (uint32_t i = s->from; i < t->count; i++) {
        cot__node *x = &t->nodes[i];
        if (!cot__is_tensor(x) || x->value.tensor->storage->scoped != FREE) continue;
        x->value.tensor->storage = none;
        x->value.tensor->version = 0;
    }
    for (uint32_t k = s->storages; k < t->storages.count; k++) {
        cot__storage *old = t->storages.list[k];
        bool          goes = old->scoped == FREE;
        old->scoped = OLDER;
        if (!goes) continue;
        cot__storage_release(t, old);
        t->storages.list[k] = none;
        none->refs++;
    }
}

/* ---- closing --------------------------------------------------------------------------------- */

/* The nodes of the scope get the tape's new stamp, and so do the times of leaves and constants that
 * were assigned in it: who read one before its assignment is found as it was. Of an assignment that
 * a rewind has outlived, the nodes before it count, not those that were there. */
static void stamp_again(cot_tape *t, const cot__open_scope *s) {
    for (uint32_t i = s->low; i < s->high && i < t->count; i++) {
        cot__node *x = &t->nodes[i];
        if (!cot__was_assigned(x) || x->b / COT__ASSIGNERS < s->stamp) continue;
        uint32_t older = cot__older_nodes(t, x);
        if (older >= s->from) x->a = older, x->b = t->stamp * COT__ASSIGNERS + x->b % COT__ASSIGNERS;
    }
    for (uint32_t i = s->from; i < t->count; i++)
        t->nodes[i].stamp = t->stamp | (t->nodes[i].stamp & COT__BODY_STAMP);
}

/* Only what is kept is found by its name from now on. */
static void close_names(cot_tape *t, const cot__open_scope *s, int n, const cot_var *keep) {
    for (uint32_t k = s->names; k < t->names.count; k++) {
        cot__named *name = &t->names.list[k];
        bool        kept = name->node < s->from;
        for (int j = 0; j < n && !kept; j++) kept = !cot__is_number(keep[j]) && cot__index(keep[j]) == name->node;
        name->closed |= !kept;
    }
}

/* Are all of them values? Otherwise sets the error. */
static bool are_values(cot_tape *t, int n, const cot_var *keep) {
    uint32_t i;
    if (n < 0) return cot__fail(t, COT_VALUE, "[scope_close] a negative number of values to keep: %d", n), false;
    if (!cot__list_given(t, "scope_close", "values to keep", n, keep)) return false;
    for (int k = 0; k < n; k++)
        if (!cot__is_number(keep[k]) && !cot__operand(t, keep[k], "scope_close", "kept", &i)) return false;
    return true;
}

cot_status cot_scope_close(cot_tape *t, int n, cot_var *keep) {
    if (!t) return COT_MEMORY;
    const cot__open_scope *s = t->status == COT_OK && are_values(t, n, keep) ? to_close(t) : NULL;
    if (!s) return t->status;
    t->scopes.depth--;
    if (s->body || s->from == t->count) return t->status; /* the values of a body are examples */
    cot__storage *none = cot__storage_create(t, 0, "scope_close");
    uint32_t      made = t->storages.count;
    if (!none || !cot__storage_keep(t, none, "scope_close")) return t->status;
    none->refs++; /* while it is not certain that somebody needs it */
    cot__next_stamp(t);
    if (remember(t, s, t->stamp)) {
        /* Under a limit everything may go and is made again from what is let go here. */
        bool limited = cot__limited(t);
        t->storages.count = made; /* it is not a value's */
        if (!limited) {
            mark_all(t, s, n, keep);
            if (s->packs) pack(t, s);
            let_go(t, s, none);
        }
        t->storages.count = made + 1;
        stamp_again(t, s);
        close_names(t, s, n, keep);
        for (int k = 0; k < n; k++)
            if (!cot__is_number(keep[k])) keep[k] = VAR(t, cot__index(keep[k]));
    }
    cot__storage_release(t, none);
    return t->status;
}
