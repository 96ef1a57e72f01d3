/* taylor.c: cot_taylor and cot_taylor_values: checks the arguments, runs the walk, gives the
 * derivatives. */
#include "diff/taylor/taylor.h"

#include "diff/engine/find_kinks.h"

#include <math.h>
#include <string.h>

#include "ops/structural.h"

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* The arguments, checked. The curve is a list of nodes: derivative j of input k is at [j * n + k],
 * COT__NONE stands for zero. */
typedef struct question {
    const char *op; /* the public function that was called */
    cot_tape *t;
    uint32_t  y;
    int       n, degree, order;
    uint32_t *xs, *curve;
    size_t    bytes;
} question;

static bool in_range(cot_tape *t, const char *op, int degree, int order, const void *curve, const void *out) {
    if (order < 0 || order > COT__TAYLOR_ORDERS)
        cot__fail(t, COT_VALUE, "[%s] order %d; orders run from 0 to %d", op, order, COT__TAYLOR_ORDERS);
    else if (degree < 0 || degree > COT__TAYLOR_ORDERS)
        cot__fail(t, COT_VALUE, "[%s] a curve of degree %d; degrees run from 0 to %d, and 1 is a line", op, degree,
                  COT__TAYLOR_ORDERS);
    else if (!curve && degree > 0)
        cot__fail(t, COT_VALUE, "[%s] the curve is NULL; it holds a derivative of each input for each of its %d orders",
                  op, degree);
    else if (!out)
        cot__fail(t, COT_VALUE, "[%s] the place for the derivatives is NULL; there are %d of them", op, order + 1);
    return t->status == COT_OK;
}

static bool open_question(bool recorded, question *q, cot_var y, int n, const cot_var *xs, int degree,
                          const void *curve, int order, const void *out) {
    const char *op = recorded ? "taylor" : "taylor_values";
    char        text[160];
    uint32_t    yi;
    cot_tape   *t = cot__tape_beside(op, "y", 1, &y, n, xs);
    if (t && !cot__enter(t, y, op, "", &yi)) t = NULL;
    *q = (question){.t = t, .op = op, .n = n, .degree = degree, .order = order};
    if (!t) return false;
    q->y = yi;
    if (!(recorded ? cot__may_sweep(t, op) : cot__may_sweep_numbers(t, op, yi))) return false;
    if (!in_range(t, op, degree, order, curve, out)) return false;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[yi]))) {
        cot__fail(t, COT_DTYPE, "[%s] %s has dtype %s; only floats have derivatives", op,
                  cot__describe(t, yi, text, sizeof text), cot__dtype_name(cot__dtype_at(&t->nodes[yi])));
        return false;
    }
    q->bytes = n > 0 ? (size_t)n * (1 + (size_t)degree) * sizeof *q->xs : 0;
    q->xs = q->bytes ? cot__alloc(&t->al, q->bytes) : NULL;
    if (q->bytes && !q->xs) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes", op, q->bytes);
        return false;
    }
    q->curve = q->bytes ? q->xs + n : NULL;
    return cot__check_inputs(t, op, n, xs, q->xs);
}

static void close_question(question *q) {
    if (q->t) cot__free(&q->t->al, q->xs, q->bytes);
}

/* Checks curve[at], given as v for input number k: it must have the dtype and shape of input x. */
static bool take_curve(cot_tape *t, int at, int k, uint32_t x, cot_var v, uint32_t *out) {
    char which[40], a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    *out = COT__NONE;
    if (!v.tape && v.id == 0) return true; /* COT_NONE */
    if (cot__is_number(v)) /* a number stands for all elements */
        v = cot_full(t, cot__dtype_at(&t->nodes[x]), cot__shape_at(t, x), cot__number_value(v));
    snprintf(which, sizeof which, "curve[%d]", at);
    if (t->status != COT_OK || !cot__operand(t, v, "taylor", which, out)) return false;
    cot_shape have = cot__shape_at(t, *out), want = cot__shape_at(t, x);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[taylor] curve[%d] has shape %s, xs[%d] has %s; they must be equal", at,
                  cot__shape_text_at(t, *out, a), k, cot__shape_text_at(t, x, b));
        return false;
    }
    *out = cot__as(t, *out, cot__dtype_at(&t->nodes[x]));
    return *out != COT__NONE;
}

/* Gives the inputs their series: derivatives divided by factorials. The series of an input that is
 * listed twice are added. */
static bool give_inputs(cot__taylor_walk *w, const question *q) {
    cot__taylor *s = &w->work;
    cot_tape    *t = s->t;
    bool         ok = true;
    for (int k = 0; k < q->n && ok; k++) {
        uint32_t x = q->xs[k];
        if (x > w->top || !w->needed[x - s->from]) continue;
        cot_mark m = cot__mark(t);
        s->base = t->count;
        uint32_t e = cot__taylor_load(w, x);
        double   scale = 1;
        for (int j = 1; j <= q->degree && j <= q->order && e != COT__NONE; j++) {
            uint32_t c = q->curve[(size_t)(j - 1) * (size_t)q->n + (size_t)k];
            scale *= j;
            if (c == COT__NONE) continue;
            cot_var v = j > 1 ? cot_div(VAR(t, c), cot_number(scale)) : VAR(t, c);
            if (cot__taylor_coefficients(s, e)[j] != COT__NONE)
                v = cot_add(v, VAR(t, cot__taylor_coefficients(s, e)[j]));
            if (t->status != COT_OK) break;
            cot__taylor_coefficients(s, e)[j] = cot__index(v);
        }
        ok = e != COT__NONE && t->status == COT_OK && cot__taylor_keep(w, x, e);
        cot__taylor_clear(s);
        if (!w->recording) cot__rewind(t, m);
    }
    return ok;
}

/* m! times coefficient m. The factors are multiplied in one by one, so that nothing overflows
 * before the result does. */
static cot_var derivative(cot__taylor_walk *w, int m) {
    cot_var v = cot__taylor_loaded(w, w->top, m);
    for (int k = 2; k <= m && !cot__failed(v);) {
        double factor = 1;
        while (k <= m && factor < 1e3) factor *= k++;
        v = cot_mul(v, cot_number(factor));
    }
    return v;
}

/* Runs the whole walk. `give` takes each derivative; an invalid one stands for zero. */
static bool answer(const question *q, bool recording, bool (*give)(cot__taylor_walk *w, int m, cot_var v, void *out),
                   void *out) {
    cot_tape        *t = q->t;
    cot__taylor_walk w = {.work = {.t = t, .order = q->order, .from = q->y}, .recording = recording, .top = q->y};
    const char      *before = cot__ask(t, q->op);
    for (int k = 0; k < q->n; k++) w.work.from = q->xs[k] < w.work.from ? q->xs[k] : w.work.from;
    /* rules leave out what is not active */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    cot__mark_wanted(t, q->n, q->xs, true);
    bool ok = cot__smooth_between(t, q->op, 1, &q->y, q->n, q->xs) && cot__taylor_open(&w);
    ok = ok && give_inputs(&w, q) && (q->order == 0 || cot__taylor_run(&w));
    cot__mark_wanted(t, q->n, q->xs, false);
    for (int m = 1; m <= q->order && ok; m++) {
        cot_var v = derivative(&w, m);
        t->active_mask = scope.active_mask;
        ok = t->status == COT_OK && give(&w, m, v, out);
        t->active_mask = COT__ACTIVE;
    }
    cot__scope_close(t, &scope);
    cot__asked(t, before);
    cot__taylor_close(&w);
    return ok;
}

/* ---- cot_taylor ------------------------------------------------------------------------------ */

static bool give_var(cot__taylor_walk *w, int m, cot_var v, void *out) {
    cot_tape *t = w->work.t;
    cot_var  *to = (cot_var *)out + m;
    *to = cot__failed(v)   ? cot_zeros(t, cot__dtype_at(&t->nodes[w->top]), cot__shape_at(t, w->top))
          /* for y = x the derivative is a var of the curve */
          : t->active_mask ? cot__unchanged(v, COT__COPY)
                           : cot_detach(v);
    return t->status == COT_OK;
}

cot_status cot_taylor(cot_var y, int n, const cot_var *xs, int degree, const cot_var *curve, int order, cot_var *out) {
    question q;
    /* an order that is refused says nothing about the length of `out` */
    int      given = out && order <= COT__TAYLOR_ORDERS ? order : -1;
    for (int m = 0; m <= given; m++) out[m] = cot__invalid(1, &y);
    bool ok = open_question(true, &q, y, n, xs, degree, curve, order, out);
    for (int64_t at = 0; ok && at < (int64_t)n * degree; at++)
        ok = take_curve(q.t, (int)at, (int)(at % n), q.xs[at % n], curve[at], &q.curve[at]);
    ok = ok && answer(&q, true, give_var, out) && !cot__failed(out[0] = cot__unchanged(y, COT__COPY));
    for (int m = 0; !ok && m <= given; m++) out[m] = cot__invalid(1, &y);
    close_question(&q);
    return cot__status_of(1, &y);
}

static bool give_numbers(cot__taylor_walk *w, int m, cot_var v, void *out) {
    int64_t size = cot__size_at(w->work.t, w->top);
    double *to = (double *)out + (int64_t)m * size;
    if (!cot__failed(v)) return cot_read(v, to, size) == COT_OK;
    for (int64_t k = 0; k < size; k++) to[k] = 0;
    return true;
}

/* Makes constants of a curve that is given as numbers. */
static bool curve_of_numbers(question *q, const double *curve) {
    cot_tape *t = q->t;
    for (int64_t at = 0; at < (int64_t)q->n * q->degree; at++) {
        uint32_t x = q->xs[at % q->n];
        cot_var  v = cot_data(t, COT_F64, cot__shape_at(t, x), curve);
        curve += cot__size_at(t, x);
        if (cot__failed(v) || (q->curve[at] = cot__as(t, cot__index(v), cot__dtype_at(&t->nodes[x]))) == COT__NONE)
            return false;
    }
    return true;
}

cot_status cot_taylor_values(cot_var y, int n, const cot_var *xs, int degree, const double *curve, int order,
                             double *out) {
    question q;
    bool     ok = open_question(false, &q, y, n, xs, degree, curve, order, out);
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
