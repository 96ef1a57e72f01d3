/* gradients.c: gradients of leaves between backward and step: scaled, set, added to, and clipped.
 *
 * They are written in place; nothing is recorded. A gradient is row-major in the leaf's dtype, that
 * of a 0-d value in a node a double that the dtype holds exactly. */
#include "optim/optim.h"
#include "pending/pending.h"
#include "ops/structural.h"
#include "rules/elementwise_ids.h"

#include "backend/elements.h"
#include "base/math/elementary.h"
#include "tape/tape.h"

static double rounded(double x, cot_dtype d) {
    cot__value v;
    cot__store_f64(&v, d, x);
    return cot__load_f64(&v, d);
}

/* The gradient of tensor leaf i, which has one. */
static cot__view gradient_view(cot_tape *t, uint32_t i, int64_t *stride) {
    cot__view v = cot__look(t, i);
    cot__strides(v.ndim, v.shape, stride);
    v.data = t->nodes[i].extra.grad->data;
    v.stride = stride;
    return v;
}

/* gradient = gradient op number, in the type in which its dtype computes. */
static void combine(cot_tape *t, uint32_t i, int op, double number) {
    cot__node *n = &t->nodes[i];
    cot_dtype  d = cot__dtype_at(n), compute = cot__dtype_compute(d);
    if (!cot__is_tensor(n)) {
        n->extra.number = rounded(op == OP_mul ? n->extra.number * number : n->extra.number + number, d);
        return;
    }
    int64_t    stride[COT_MAX_NDIM];
    cot__value v;
    cot__store_f64(&v, compute, number);
    cot__view to = gradient_view(t, i, stride), pair[2] = {to, cot__number_view(&v, compute)};
    cot__run_value(t->backend, op, compute, 2, pair, &to);
}

static bool enter(cot_var x, const char *op, cot_tape **t, uint32_t *i) {
    char text[160];
    *t = cot__is_number(x) ? NULL : cot__usable(x.tape);
    if (!*t || !cot__operand(*t, x, op, "", i)) return false;
    if ((*t)->nodes[*i].op == OP_leaf) return true;
    cot__fail(*t, COT_VALUE, "[%s] %s is not a leaf; only gradients of leaves are written", op,
              cot__describe(*t, *i, text, sizeof text));
    return false;
}

cot_status cot_grad_scale(cot_var x, double factor) {
    cot_tape *t;
    uint32_t  i;
    if (!enter(x, "grad_scale", &t, &i)) return cot__status_of(1, &x);
    if (t->nodes[i].flags & COT__HAS_GRAD) combine(t, i, OP_mul, factor);
    return t->status;
}

/* Every element of the gradient of leaf i, which has one, becomes this number. */
static void fill(cot_tape *t, uint32_t i, double number) {
    cot__node *n = &t->nodes[i];
    int64_t    stride[COT_MAX_NDIM];
    if (!cot__is_tensor(n)) {
        n->extra.number = rounded(number, cot__dtype_at(n));
        return;
    }
    cot__view v = gradient_view(t, i, stride);
    t->backend->fill(&v, number);
}

/* Gives leaf i a gradient of zeros if it has none. */
static bool have_gradient(cot_tape *t, uint32_t i, const char *op) {
    cot__node *n = &t->nodes[i];
    if (n->flags & COT__HAS_GRAD) return true;
    if (cot__is_tensor(n)) {
        size_t        bytes = (size_t)(cot__size_at(t, i) * cot__dtype_size(cot__dtype_at(n)));
        cot__storage *fresh = cot__storage_create_aside(t, bytes, op);
        if (!fresh) return false;
        n->extra.grad = fresh;
    }
    fill(t, i, 0);
    n->flags |= COT__HAS_GRAD;
    return true;
}

/* The value v of leaf i's shape and dtype becomes its gradient, or is added to it. */
static void take(cot_tape *t, uint32_t i, uint32_t v, bool adds) {
    cot__node *n = &t->nodes[i];
    cot__view  from = cot__look(t, v);
    if (!cot__is_tensor(n)) {
        double x = cot__element_f64(t->backend, &from, 0);
        n->extra.number = rounded(adds ? n->extra.number + x : x, cot__dtype_at(n));
        return;
    }
    int64_t   stride[COT_MAX_NDIM];
    cot__view to = gradient_view(t, i, stride), pair[2] = {to, from};
    if (adds) cot__run_value(t->backend, OP_add, cot__dtype_compute(to.dtype), 2, pair, &to);
    else t->backend->copy(&to, &from);
}

static cot_status write(cot_var x, cot_var value, const char *op, bool adds) {
    cot_tape *t;
    uint32_t  i, v;
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot__tape_beside(op, "the leaf", 1, &x, 1, &value);
    if (!enter(x, op, &t, &i)) return cot__status_of(1, &x);
    if (cot__is_number(value)) {
        if (!have_gradient(t, i, op)) return t->status;
        if (adds) combine(t, i, OP_add, cot__number_value(value));
        else fill(t, i, cot__number_value(value));
        return t->status;
    }
    if (!cot__operand(t, value, op, "new", &v)) return t->status;
    cot_shape want = cot__shape_at(t, i), have = cot__shape_at(t, v);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[%s] the value has shape %s, the leaf %s; they must be equal", op,
                  cot__shape_text_at(t, v, b), cot__shape_text_at(t, i, a));
        return t->status;
    }
    cot_mark m = cot__mark(t);
    if (cot__dtype_at(&t->nodes[v]) != cot__dtype_at(&t->nodes[i])) {
        cot_no_grad_open(t);
        cot_var same = cot_cast(value, cot__dtype_at(&t->nodes[i]));
        cot_no_grad_close(t);
        v = cot__index(same);
    }
    if (t->status == COT_OK && have_gradient(t, i, op)) take(t, i, v, adds);
    cot__rewind(t, m);
    return t->status;
}

cot_status(cot_grad_set)(cot_var x, cot_var value) { return write(x, value, "grad_set", false); }
cot_status(cot_grad_add)(cot_var x, cot_var value) { return write(x, value, "grad_add", true); }

/* ---- clipping -------------------------------------------------------------------------------- */

/* The norm of the gradient of leaf i, without overflow or underflow in between; NaN after a
 * failure, which a norm may be too. */
static double norm_of(cot_tape *t, uint32_t i) {
    cot__node *n = &t->nodes[i];
    int64_t    stride[COT_MAX_NDIM], ones[COT_MAX_NDIM], zero[COT_MAX_NDIM] = {0};
    if (!(n->flags & COT__HAS_GRAD)) return 0;
    if (!cot__is_tensor(n)) return fabs(n->extra.number);
    cot__storage *place = cot__storage_create(t, sizeof(double), "clip_grad_norm");
    if (!place) return (double)NAN;
    cot__view x = gradient_view(t, i, stride), z = {place->data, COT_F64, x.ndim, ones, zero};
    for (int k = 0; k < x.ndim; k++) ones[k] = 1;
    t->backend->reduce(COT__NORM2, &x, (1u << x.ndim) - 1, &z);
    z.ndim = 0;
    double norm = cot__element_f64(t->backend, &z, 0);
    cot__storage_release(t, place);
    return norm;
}

double cot_clip_grad_norm(cot_params *p, double most) {
    int            n = 0;
    cot_tape      *t = cot__usable(cot_params_tape(p));
    const cot_var *xs = t ? cot_params_vars(p, &n) : NULL;
    double         norm = 0;
    if (!t || t->status != COT_OK) return (double)NAN;
    if (!(most > 0)) {
        cot__fail(t, COT_VALUE, "[clip_grad_norm] the norm is to be at most %g; it must be positive", most);
        return (double)NAN;
    }
    for (int k = 0; k < n && t->status == COT_OK; k++) norm = cot__hypot(norm, norm_of(t, cot__index(xs[k])));
    double factor = most / (norm + 1e-6);
    for (int k = 0; k < n && t->status == COT_OK && !(factor >= 1); k++)
        if (t->nodes[cot__index(xs[k])].flags & COT__HAS_GRAD) combine(t, cot__index(xs[k]), OP_mul, factor);
    return t->status == COT_OK ? norm : (double)NAN;
}

/* ---- losses times a number ------------------------------------------------------------------- */

static const double FIRST_SCALE = 65536, LARGEST_SCALE = 16777216;
enum { USUAL_INTERVAL = 2000 };

/* False after an error on the tape. */
static bool has_scale(cot_tape *t, const char *op, cot_loss_scale *s) {
    if (s->scale == 0) s->scale = FIRST_SCALE;
    if (s->scale > 0 && isfinite(s->scale)) return true;
    if (t) cot__fail(t, COT_VALUE, "[%s] a scale of %g; it must be a number above 0, or 0 to begin with", op, s->scale);
    return false;
}

cot_var cot_loss_scaled(cot_loss_scale *s, cot_var loss) {
    cot_tape *t = cot__tape_of(1, &loss);
    if (!s && t) cot__fail(t, COT_VALUE, "[loss_scaled] the scale is NULL; {0} is a good start");
    return s && has_scale(t, "loss_scaled", s) ? cot_mul(loss, s->scale) : cot__invalid(1, &loss);
}

bool cot_unscale_grads(cot_params *p, cot_loss_scale *s) {
    int            n = 0;
    cot_tape      *t = cot__usable(cot_params_tape(p));
    if (!s && t) cot__fail(t, COT_VALUE, "[unscale_grads] the scale is NULL; it is the one that scaled the loss");
    if (!s || !has_scale(t, "unscale_grads", s)) return false;
    const cot_var *xs = t ? cot_params_vars(p, &n) : NULL;
    bool           finite = t && t->status == COT_OK;
    if (!finite) return false;
    for (int k = 0; k < n && finite; k++) finite = isfinite(norm_of(t, cot__index(xs[k])));
    if (t->status != COT_OK) return false;
    double scale = s->scale;
    if (!finite) {
        s->skipped++;
        s->good = 0;
        s->scale = scale > 2 ? scale / 2 : 1;
        return false;
    }
    for (int k = 0; k < n; k++)
        if (t->nodes[cot__index(xs[k])].flags & COT__HAS_GRAD) combine(t, cot__index(xs[k]), OP_mul, 1 / scale);
    if (++s->good >= (s->interval > 0 ? s->interval : USUAL_INTERVAL)) {
        s->good = 0;
        s->scale = scale * 2 < LARGEST_SCALE ? scale * 2 : scale < LARGEST_SCALE ? LARGEST_SCALE : scale;
    }
    return true;
}
