/* taylor.c: cot_taylor: the walk up the tape, with the series of every value that moves (taylor_rules.c computes them, a node at a time).
 *
 * A series is kept until the last node that reads it. Where only numbers are wanted, what was recorded for a node is forgotten after it, and its
 * coefficients stay as plain numbers, or as references on storages. */
#include "diff/taylor.h"

#include <math.h>
#include <string.h>

#include "ops/structural.h"

typedef union coefficient {
    uint32_t  node;   /* recording */
    double    number; /* of a scalar */
    cot__acc *tensor;
} coefficient;

typedef struct series {
    uint64_t    present; /* bit m: there is a coefficient m */
    coefficient at[];    /* 1 … order */
} series;

typedef struct walk {
    cot__taylor work;
    bool        recording;
    uint32_t    top;
    series    **kept; /* of nodes from … top */
    uint32_t   *uses; /* of nodes from … top: operands of needed nodes that are still to come */
    uint8_t    *needed;
} walk;

static size_t span_of(const walk *w) { return (size_t)w->top - w->work.from + 1; }
static size_t series_bytes(const walk *w) { return sizeof(series) + (size_t)w->work.order * sizeof(coefficient); }

/* ---- series ----------------------------------------------------------------------------------------------------------------------- */

static void drop(walk *w, uint32_t i) {
    cot_tape *t = w->work.t;
    series   *s = w->kept[i - w->work.from];
    if (!s) return;
    for (int m = 1; m <= w->work.order && !w->recording && cot__is_tensor(&t->nodes[i]); m++)
        if (s->present >> m & 1) {
            cot__storage_release(t, s->at[m - 1].tensor->storage);
            cot__free(&t->al, s->at[m - 1].tensor, sizeof(cot__acc));
        }
    cot__free(&t->al, s, series_bytes(w));
    w->kept[i - w->work.from] = NULL;
}

static bool keep_coefficient(walk *w, uint32_t i, series *s, int m, uint32_t c) {
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
        x->storage->refs++;
        a->storage = x->storage;
        a->offset = x->offset;
        memcpy(a->stride, x->dims + x->ndim, (size_t)x->ndim * sizeof *a->stride);
        s->at[m - 1].tensor = a;
    }
    s->present |= UINT64_C(1) << m;
    return true;
}

/* Keeps the series of entry e as that of node i. */
static bool keep(walk *w, uint32_t i, uint32_t e) {
    cot_tape       *t = w->work.t;
    const uint32_t *c = cot__taylor_coefficients(&w->work, e);
    bool            any = false, ok = true;
    drop(w, i);
    for (int m = 1; m <= w->work.order; m++) any |= c[m] != COT__NONE;
    if (!any) return true;
    series *s = cot__alloc(&t->al, series_bytes(w));
    if (!s) return cot__taylor_memory(t, series_bytes(w));
    s->present = 0;
    w->kept[i - w->work.from] = s;
    for (int m = 1; m <= w->work.order && ok; m++)
        if (c[m] != COT__NONE) ok = keep_coefficient(w, i, s, m, c[m]);
    return ok;
}

/* Coefficient m of the kept series of node i, as a var; invalid where absent, or after a failure. */
static cot_var load_coefficient(walk *w, uint32_t i, int m) {
    cot_tape *t = w->work.t;
    series   *s = w->kept[i - w->work.from];
    cot_dtype dtype = cot__dtype_at(&t->nodes[i]);
    cot_var   v;
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
    if (!cot__failed(v)) t->nodes[cot__index(v)].flags |= COT__ACTIVE; /* as it would be if it were recorded */
    return v;
}

/* An entry for node i, with what is kept of it. */
static uint32_t load(walk *w, uint32_t i) {
    uint32_t e = cot__taylor_enter(&w->work, i);
    for (int m = 1; m <= w->work.order && e != COT__NONE; m++) {
        cot_var v = load_coefficient(w, i, m);
        if (!cot__failed(v)) cot__taylor_coefficients(&w->work, e)[m] = cot__index(v);
    }
    if (e != COT__NONE) w->work.entries[e].known = w->work.order;
    return w->work.t->status == COT_OK ? e : COT__NONE;
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------------------ */

/* Is what the product or quotient of node i reads still what it was? Other rules look by themselves. */
static bool intact(walk *w, uint32_t i) {
    cot_tape *t = w->work.t;
    int       op = t->nodes[i].op;
    if (op >= OP_elementwise_count) return true;
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (e->partial[k] && a != COT__NONE && a >= w->work.from && w->kept[a - w->work.from] && !cot__saves_intact(t, i, e->saves[k])) return false;
    }
    return true;
}

/* Computes and keeps the series of node i; a given one (of an input) is added. */
static bool compute(walk *w, uint32_t i) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    bool         moves = false, given = t->nodes[i].flags & COT__WANTED;
    s->base = t->count;
    uint32_t z = cot__taylor_enter(s, i);
    if (z == COT__NONE || !intact(w, i)) return false;
    for (int k = 0, n = cot__nargs(&t->nodes[i]); k < n; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (a == COT__NONE || a < s->from || !w->kept[a - s->from]) continue;
        moves = true;
        if (!s->where[a - s->from] && load(w, a) == COT__NONE) return false;
    }
    if (!moves) return true;
    if (!cot__taylor_advance(s, z, s->order)) return false;
    for (int m = 1; m <= s->order && given; m++) {
        cot_var  v = load_coefficient(w, i, m);
        uint32_t c = cot__taylor_coefficients(s, z)[m];
        if (!cot__failed(v) && c != COT__NONE) v = cot_add(VAR(t, c), v);
        if (t->status != COT_OK) return false;
        if (!cot__failed(v)) cot__taylor_coefficients(s, z)[m] = cot__index(v);
    }
    return keep(w, i, z);
}

static bool visit(walk *w, uint32_t i) {
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

static bool walk_up(walk *w) {
    cot_tape *t = w->work.t;
    uint32_t  from = w->work.from;
    for (uint32_t i = from; i <= w->top; i++) {
        const cot__node *n = &t->nodes[i];
        if (!w->needed[i - from] || !(n->flags & COT__ACTIVE)) continue;
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            uint32_t a = cot__arg(n, k);
            if (a != COT__NONE && a >= from) w->uses[a - from]++;
        }
    }
    w->uses[w->top - from]++;
    for (uint32_t i = from; i <= w->top; i++)
        if (w->needed[i - from] && (t->nodes[i].flags & COT__ACTIVE) && t->nodes[i].op != OP_leaf && !visit(w, i)) return false;
    return true;
}

static bool open_walk(walk *w) {
    cot_tape *t = w->work.t;
    size_t    span = span_of(w);
    w->needed = cot__needed(t, w->work.from, w->top, 1, &w->top);
    w->kept = cot__alloc(&t->al, span * sizeof *w->kept);
    w->uses = cot__alloc(&t->al, span * sizeof *w->uses);
    if (w->kept) memset(w->kept, 0, span * sizeof *w->kept);
    if (w->uses) memset(w->uses, 0, span * sizeof *w->uses);
    if (w->needed && w->kept && w->uses) return true;
    return cot__taylor_memory(t, span * (1 + sizeof *w->kept + sizeof *w->uses));
}

static void close_walk(walk *w) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    size_t       span = span_of(w);
    for (uint32_t i = s->from; w->kept && i <= w->top; i++) drop(w, i);
    cot__free(&t->al, w->needed, span);
    cot__free(&t->al, w->kept, span * sizeof *w->kept);
    cot__free(&t->al, w->uses, span * sizeof *w->uses);
    cot__free(&t->al, s->where, s->where_capacity * sizeof *s->where);
    cot__free(&t->al, s->entries, s->capacity * sizeof *s->entries);
    cot__free(&t->al, s->coefficients, s->coefficient_capacity * sizeof *s->coefficients);
}

/* ---- inputs and outputs --------------------------------------------------------------------------------------------------------------- */

/* What is asked for: the curve as vars (k-th input, j-th derivative: [j * n + k]; COT__NONE: zero). */
typedef struct question {
    cot_tape *t;
    uint32_t  y;
    int       n, degree, order;
    uint32_t *xs, *curve;
    size_t    bytes;
} question;

static bool in_range(cot_tape *t, int degree, int order, const void *curve, const void *out) {
    if (order < 0 || order > COT__TAYLOR_ORDERS)
        cot__fail(t, COT_VALUE, "[taylor] order %d; orders run from 0 to %d", order, COT__TAYLOR_ORDERS);
    else if (degree < 0 || degree > COT__TAYLOR_ORDERS)
        cot__fail(t, COT_VALUE, "[taylor] a curve of degree %d; degrees run from 0 to %d, and 1 is a line", degree, COT__TAYLOR_ORDERS);
    else if (!curve && degree > 0)
        cot__fail(t, COT_VALUE, "[taylor] the curve is NULL; it holds a derivative of each input for each of its %d orders", degree);
    else if (!out)
        cot__fail(t, COT_VALUE, "[taylor] the place for the derivatives is NULL; there are %d of them", order + 1);
    return t->status == COT_OK;
}

static bool open_question(question *q, cot_var y, int n, const cot_var *xs, int degree, const void *curve, int order, const void *out) {
    char text[160];
    uint32_t  yi;
    cot_tape *t = cot__enter(NULL, y, "taylor", "", &yi);
    *q = (question){.t = t, .n = n, .degree = degree, .order = order};
    if (!t) return false;
    q->y = yi;
    if (!cot__may_sweep(t, "taylor") || !in_range(t, degree, order, curve, out)) return false;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[yi]))) {
        cot__fail(t, COT_DTYPE, "[taylor] %s has dtype %s; only floats have derivatives", cot__describe(t, yi, text, sizeof text),
                  cot__dtype_name(cot__dtype_at(&t->nodes[yi])));
        return false;
    }
    q->bytes = n > 0 ? (size_t)n * (1 + (size_t)degree) * sizeof *q->xs : 0;
    q->xs = q->bytes ? cot__alloc(&t->al, q->bytes) : NULL;
    if (q->bytes && !q->xs) return cot__taylor_memory(t, q->bytes);
    q->curve = q->bytes ? q->xs + n : NULL;
    return cot__check_inputs(t, "taylor", n, xs, q->xs);
}

static void close_question(question *q) {
    if (q->t) cot__free(&q->t->al, q->xs, q->bytes);
}

/* curve[at], given as v: like input x. */
static bool take_curve(cot_tape *t, int at, int k, uint32_t x, cot_var v, uint32_t *out) {
    char which[40], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    *out = COT__NONE;
    if (!v.tape && v.id == 0) return true; /* COT_NONE */
    if (cot__is_number(v) && cot__ndim_at(t, x) == 0) v = cot_constant(t, cot__number_value(v));
    snprintf(which, sizeof which, "curve[%d]", at);
    if (!cot__operand(t, v, "taylor", which, out)) return false;
    cot_shape have = cot__shape_at(t, *out), want = cot__shape_at(t, x);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[taylor] curve[%d] has shape %s, xs[%d] has %s; they must be equal", at, cot__shape_text_at(t, *out, a), k,
                  cot__shape_text_at(t, x, b));
        return false;
    }
    *out = cot__as(t, *out, cot__dtype_at(&t->nodes[x]));
    return *out != COT__NONE;
}

/* The series of the inputs: derivatives over factorials. One that is listed twice moves by both. */
static bool give_inputs(walk *w, const question *q) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    bool         ok = true;
    for (int k = 0; k < q->n && ok; k++) {
        uint32_t x = q->xs[k];
        if (x > w->top || !w->needed[x - s->from]) continue;
        cot_mark m = cot__mark(t);
        s->base = t->count;
        uint32_t e = load(w, x);
        double   scale = 1;
        for (int j = 1; j <= q->degree && j <= q->order && e != COT__NONE; j++) {
            uint32_t c = q->curve[(size_t)(j - 1) * (size_t)q->n + (size_t)k];
            scale *= j;
            if (c == COT__NONE) continue;
            cot_var v = j > 1 ? cot_div(VAR(t, c), cot_number(scale)) : VAR(t, c);
            if (cot__taylor_coefficients(s, e)[j] != COT__NONE) v = cot_add(v, VAR(t, cot__taylor_coefficients(s, e)[j]));
            if (t->status != COT_OK) break;
            cot__taylor_coefficients(s, e)[j] = cot__index(v);
        }
        ok = e != COT__NONE && t->status == COT_OK && keep(w, x, e);
        cot__taylor_clear(s);
        if (!w->recording) cot__rewind(t, m);
    }
    return ok;
}

/* m! times the coefficient, by factors, so that nothing overflows before the result does. */
static cot_var derivative(walk *w, int m) {
    cot_var v = load_coefficient(w, w->top, m);
    for (int k = 2; k <= m && !cot__failed(v);) {
        double factor = 1;
        while (k <= m && factor < 1e3) factor *= k++;
        v = cot_mul(v, cot_number(factor));
    }
    return v;
}

/* Runs the whole walk; `give` takes each derivative (invalid: zero). */
static bool answer(const question *q, bool recording, bool (*give)(walk *w, int m, cot_var v, void *out), void *out) {
    cot_tape *t = q->t;
    walk      w = {.work = {.t = t, .order = q->order, .from = q->y}, .recording = recording, .top = q->y};
    uint8_t   mask = t->active_mask;
    for (int k = 0; k < q->n; k++) w.work.from = q->xs[k] < w.work.from ? q->xs[k] : w.work.from;
    t->active_mask = COT__ACTIVE; /* rules leave out what is not active */
    cot__mark_wanted(t, q->n, q->xs, true);
    bool ok = open_walk(&w) && give_inputs(&w, q) && (q->order == 0 || walk_up(&w));
    cot__mark_wanted(t, q->n, q->xs, false);
    for (int m = 1; m <= q->order && ok; m++) {
        cot_var v = derivative(&w, m);
        t->active_mask = mask;
        ok = t->status == COT_OK && give(&w, m, v, out);
        t->active_mask = COT__ACTIVE;
    }
    t->active_mask = mask;
    close_walk(&w);
    return ok;
}

/* ---- cot_taylor ------------------------------------------------------------------------------------------------------------------------- */

static bool give_var(walk *w, int m, cot_var v, void *out) {
    cot_tape *t = w->work.t;
    cot_var  *to = (cot_var *)out + m;
    *to = cot__failed(v) ? cot_zeros(t, cot__dtype_at(&t->nodes[w->top]), cot__shape_at(t, w->top)) : t->active_mask ? v : cot_detach(v);
    return t->status == COT_OK;
}

cot_status cot_taylor(cot_var y, int n, const cot_var *xs, int degree, const cot_var *curve, int order, cot_var *out) {
    question q;
    for (int m = 0; out && m <= order && m <= COT__TAYLOR_ORDERS; m++) out[m] = cot__invalid(1, &y);
    bool ok = open_question(&q, y, n, xs, degree, curve, order, out);
    for (int64_t at = 0; ok && at < (int64_t)n * degree; at++)
        ok = take_curve(q.t, (int)at, (int)(at % n), q.xs[at % n], curve[at], &q.curve[at]);
    ok = ok && answer(&q, true, give_var, out);
    if (ok) out[0] = y;
    for (int m = 1; out && !ok && m <= order && m <= COT__TAYLOR_ORDERS; m++) out[m] = cot__invalid(1, &y);
    close_question(&q);
    return cot__status_of(1, &y);
}

static bool give_numbers(walk *w, int m, cot_var v, void *out) {
    int64_t size = cot__size_at(w->work.t, w->top);
    double *to = (double *)out + (int64_t)m * size;
    if (!cot__failed(v)) return cot_read(v, to, size) == COT_OK;
    for (int64_t k = 0; k < size; k++) to[k] = 0;
    return true;
}

/* The curve as constants. */
static bool curve_of_numbers(question *q, const double *curve) {
    cot_tape *t = q->t;
    for (int64_t at = 0; at < (int64_t)q->n * q->degree; at++) {
        uint32_t x = q->xs[at % q->n];
        cot_var  v = cot_data(t, COT_F64, cot__shape_at(t, x), curve);
        curve += cot__size_at(t, x);
        if (cot__failed(v) || (q->curve[at] = cot__as(t, cot__index(v), cot__dtype_at(&t->nodes[x]))) == COT__NONE) return false;
    }
    return true;
}

cot_status cot_taylor_values(cot_var y, int n, const cot_var *xs, int degree, const double *curve, int order, double *out) {
    question q;
    bool     ok = open_question(&q, y, n, xs, degree, curve, order, out);
    int64_t  size = cot_size(y);
    if (ok) {
        cot_mark m = cot__mark(q.t);
        ok = cot_read(y, out, size) == COT_OK && curve_of_numbers(&q, curve) && answer(&q, false, give_numbers, out);
        cot__rewind(q.t, m);
    }
    for (int64_t k = 0; !ok && out && order <= COT__TAYLOR_ORDERS && k < size * (order + 1); k++) out[k] = NAN;
    close_question(&q);
    return cot__status_of(1, &y);
}
