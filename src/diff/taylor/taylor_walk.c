/* taylor_walk.c: the walk up the tape, which computes the series of every value that moves, one
 * node at a time (taylor_rules.c).
 *
 * A series is kept until the last node that reads it. If only numbers are wanted, the nodes
 * recorded for one node's series are forgotten after it. Its coefficients stay as plain numbers, or
 * as references to storages. */
#include "diff/taylor/taylor.h"

#include <string.h>

#include "ops/structural.h"

typedef union coefficient {
    uint32_t  node;   /* if recording */
    double    number; /* of a scalar */
    cot__acc *tensor;
} coefficient;

struct cot__series {
    uint64_t    present; /* bit m: there is a coefficient m */
    coefficient at[];    /* 1 … order */
};

static size_t span_of(const cot__taylor_walk *w) { return (size_t)w->top - w->work.from + 1; }
static size_t series_bytes(const cot__taylor_walk *w) {
    return sizeof(cot__series) + (size_t)w->work.order * sizeof(coefficient);
}

/* ---- series ---------------------------------------------------------------------------------- */

static void drop(cot__taylor_walk *w, uint32_t i) {
    cot_tape    *t = w->work.t;
    cot__series *s = w->kept[i - w->work.from];
    if (!s) return;
    for (int m = 1; m <= w->work.order && !w->recording && cot__is_tensor(&t->nodes[i]); m++)
        if (s->present >> m & 1) {
            cot__storage_release(t, s->at[m - 1].tensor->storage);
            cot__free(&t->al, s->at[m - 1].tensor, sizeof(cot__acc));
        }
    cot__free(&t->al, s, series_bytes(w));
    w->kept[i - w->work.from] = NULL;
}

static bool keep_coefficient(cot__taylor_walk *w, uint32_t i, cot__series *s, int m, uint32_t c) {
    cot_tape        *t = w->work.t;
    const cot__node *n = &t->nodes[c];
    if (w->recording)
        s->at[m - 1].node = c;
    else if (!cot__is_tensor(&t->nodes[i]))
        s->at[m - 1].number = cot__load_f64(&n->value, cot__dtype_at(n));
    else {
        cot__tensor *x = n->value.tensor;
        cot__acc    *a = cot__alloc(&t->al, sizeof *a);
        if (!a) return cot__taylor_memory(t, sizeof *a);
        if (!cot__storage_share(t, x->storage)) return cot__free(&t->al, a, sizeof *a), false;
        a->storage = x->storage;
        a->offset = x->offset;
        memcpy(a->stride, x->dims + x->ndim, (size_t)x->ndim * sizeof *a->stride);
        s->at[m - 1].tensor = a;
    }
    s->present |= UINT64_C(1) << m;
    return true;
}

bool cot__taylor_keep(cot__taylor_walk *w, uint32_t i, uint32_t e) {
    cot_tape       *t = w->work.t;
    const uint32_t *c = cot__taylor_coefficients(&w->work, e);
    bool            any = false, ok = true;
    drop(w, i);
    for (int m = 1; m <= w->work.order; m++) any |= c[m] != COT__NONE;
    if (!any) return true;
    cot__series *s = cot__alloc(&t->al, series_bytes(w));
    if (!s) return cot__taylor_memory(t, series_bytes(w));
    s->present = 0;
    w->kept[i - w->work.from] = s;
    for (int m = 1; m <= w->work.order && ok; m++)
        if (c[m] != COT__NONE) ok = keep_coefficient(w, i, s, m, c[m]);
    return ok;
}

cot_var cot__taylor_loaded(cot__taylor_walk *w, uint32_t i, int m) {
    cot_tape    *t = w->work.t;
    cot__series *s = w->kept[i - w->work.from];
    cot_dtype    dtype = cot__dtype_at(&t->nodes[i]);
    cot_var      v;
    if (!s || !(s->present >> m & 1)) return INVALID(t);
    if (w->recording) return VAR(t, s->at[m - 1].node);
    if (!cot__is_tensor(&t->nodes[i])) {
        cot__result r;
        if (!cot__result_open(t, &r, "taylor", dtype, 0, NULL)) return INVALID(t);
        cot__store_f64(&r.scalar, dtype, s->at[m - 1].number);
        v = cot__result_push(t, &r, OP_constant, 0, NULL, NULL);
    } else {
        cot__acc    *a = s->at[m - 1].tensor;
        cot__tensor *x = t->nodes[i].value.tensor;
        a->storage->refs++;
        if (!cot__storage_keep(t, a->storage, "taylor")) return INVALID(t);
        v = cot__push_storage(t, OP_constant, a->storage, dtype, x->ndim, x->dims, a->stride, a->offset, 0, NULL);
    }
    /* active, as it would be if it had been recorded */
    if (!cot__failed(v)) t->nodes[cot__index(v)].flags |= COT__ACTIVE;
    return v;
}

uint32_t cot__taylor_load(cot__taylor_walk *w, uint32_t i) {
    uint32_t e = cot__taylor_enter(&w->work, i);
    for (int m = 1; m <= w->work.order && e != COT__NONE; m++) {
        cot_var v = cot__taylor_loaded(w, i, m);
        if (!cot__failed(v)) cot__taylor_coefficients(&w->work, e)[m] = cot__index(v);
    }
    if (e != COT__NONE) w->work.entries[e].known = w->work.order;
    return w->work.t->status == COT_OK ? e : COT__NONE;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Product and quotient read values of their operands here. Are these values still the ones of the
 * recording? Other operations have rules that check this. */
static bool intact(cot__taylor_walk *w, uint32_t i) {
    cot_tape *t = w->work.t;
    int       op = t->nodes[i].op;
    if (op >= OP_structural) return true;
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (e->partial[k] && a != COT__NONE && a >= w->work.from && w->kept[a - w->work.from] &&
            !cot__saves_intact(t, i, e->saves[k]))
            return false;
    }
    return true;
}

/* Computes and keeps the series of node i, entry z. If i is an input, its given series is added. */
static bool finish(cot__taylor_walk *w, uint32_t i, uint32_t z) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    bool         given = t->nodes[i].flags & COT__WANTED;
    if (cot__size_at(t, i) == 0) return true; /* no element moves */
    if (!cot__taylor_advance(s, z, s->order)) return false;
    for (int m = 1; m <= s->order && given; m++) {
        cot_var  v = cot__taylor_loaded(w, i, m);
        uint32_t c = cot__taylor_coefficients(s, z)[m];
        if (!cot__failed(v) && c != COT__NONE) v = cot_add(VAR(t, c), v);
        if (t->status != COT_OK) return false;
        if (!cot__failed(v)) cot__taylor_coefficients(s, z)[m] = cot__index(v);
    }
    return cot__taylor_keep(w, i, z);
}

/* The series of node i and of its further results. */
static bool compute(cot__taylor_walk *w, uint32_t i) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    bool         moves = false;
    s->base = t->count;
    if (t->nodes[i].op == OP_pick) return true; /* it has its series already */
    int results = cot__results_at(t, i);
    if (results == 1 && cot__size_at(t, i) == 0) return true;
    /* the rule may read any result, so each has an entry, one behind the other */
    uint32_t z = cot__taylor_enter(s, i);
    for (int k = 1; k < results && z != COT__NONE; k++)
        if (cot__taylor_enter(s, i + (uint32_t)k) == COT__NONE) return false;
    if (z == COT__NONE || !intact(w, i)) return false;
    for (int k = 0, n = cot__nargs(&t->nodes[i]); k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a == COT__NONE || a < s->from || !w->kept[a - s->from]) continue;
        moves = true;
        if (!s->where[a - s->from] && cot__taylor_load(w, a) == COT__NONE) return false;
    }
    if (!moves) return true;
    if (!finish(w, i, z)) return false;
    for (uint32_t k = i + 1; k < i + (uint32_t)results && k <= w->top; k++)
        if (w->needed[k - s->from] && (t->nodes[k].flags & COT__ACTIVE) && !finish(w, k, z + (k - i))) return false;
    return true;
}

static bool visit(cot__taylor_walk *w, uint32_t i) {
    cot_tape *t = w->work.t;
    cot_mark  m = cot__mark(t);
    bool      ok = compute(w, i);
    cot__taylor_clear(&w->work);
    if (!w->recording) cot__rewind(t, m);
    for (int k = 0, n = cot__nargs(&t->nodes[i]); k < n && ok; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a != COT__NONE && a >= w->work.from && --w->uses[a - w->work.from] == 0) drop(w, a);
    }
    return ok && t->status == COT_OK;
}

bool cot__taylor_run(cot__taylor_walk *w) {
    cot_tape *t = w->work.t;
    uint32_t  from = w->work.from, last = from;
    for (uint32_t i = from; i <= w->top; i++) {
        cot__windows_up(t, i, w->top, &last);
        const cot__node *n = &t->nodes[i];
        if (!w->needed[i - from] || !(n->flags & COT__ACTIVE)) continue;
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            uint32_t a = cot__arg(n, k);
            if (a != COT__NONE && a >= from) w->uses[a - from]++;
        }
    }
    w->uses[w->top - from]++;
    last = from;
    for (uint32_t i = from; i <= w->top; i++) {
        cot__windows_up(t, i, w->top, &last);
        if (w->needed[i - from] && (t->nodes[i].flags & COT__ACTIVE) && t->nodes[i].op != OP_leaf && !visit(w, i))
            return false;
    }
    return true;
}

bool cot__taylor_open(cot__taylor_walk *w) {
    cot_tape *t = w->work.t;
    size_t    span = span_of(w);
    w->needed = cot__needed(t, w->work.from, w->top, 1, &w->top, COT__EDGES_MOVING);
    w->kept = cot__list_zeros(t, span * sizeof *w->kept);
    w->uses = cot__list_zeros(t, span * sizeof *w->uses);
    if (w->needed && w->kept && w->uses) return true;
    return cot__taylor_memory(t, span * (1 + sizeof *w->kept + sizeof *w->uses));
}

void cot__taylor_close(cot__taylor_walk *w) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    size_t       span = span_of(w);
    uint32_t     last = s->from;
    for (uint32_t i = s->from; w->kept && i <= w->top; i++) {
        cot__windows_up(t, i, w->top, &last);
        drop(w, i);
    }
    cot__list_free(t, w->needed, span);
    cot__list_free(t, w->kept, span * sizeof *w->kept);
    cot__list_free(t, w->uses, span * sizeof *w->uses);
    cot__list_free(t, s->where, s->where_capacity * sizeof *s->where);
    cot__list_free(t, s->entries, s->capacity * sizeof *s->entries);
    cot__list_free(t, s->coefficients, s->coefficient_capacity * sizeof *s->coefficients);
}
