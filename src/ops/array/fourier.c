/* fourier.c: discrete Fourier transforms along one axis, and convolution by way of them.
 *
 * Complex values are kept as a last axis of extent 2, so everything here is a linear map of real
 * arrays, and its transpose too. Cutting and padding to n points are operations of their own. What
 * is left are three records, transposes of each other:
 *
 *     fft    z = s F x, F[k,j] = exp(∓2πi jk/n), symmetric: the transpose on pairs is s conj(F),
 *            the other sign and the same scale
 *     rfft   z[k] = w[k] Σ x[j] exp(-2πi jk/n)          for the k <= n/2 that are kept
 *     irfft  z[j] = Σ w[k] Re(x[k] exp(+2πi jk/n))      its transpose, with the same w: 1, or the
 *                                                       weights of NumPy's irfft */
#include "rules/structural_ids.h"
#include "ops/costs.h"
#include "ops/structural.h"

#include <string.h>

enum { AXIS, SCALED, INVERSE };

/* ---- infer and run --------------------------------------------------------------------------- */

static bool has_pairs(const cot__caller *c, const cot__view *v) {
    char text[COT__SHAPE_TEXT];
    return (v->ndim > 0 && v->shape[v->ndim - 1] == 2) ||
           cot__refuse(
               c, COT_SHAPE,
               "the operand has shape %s; complex values have a last axis of extent 2, real and imaginary part",
               cot__shape_text(v->ndim, v->shape, text));
}

static bool has_points(const cot__caller *c, int64_t n) {
    return n > 0 || cot__refuse(c, COT_SHAPE, "the axis has no points; a transform has at least one, give n");
}

/* What the three have in common; is_complex: operands are pairs. */
static bool transformed(const cot__job *j, int ints, bool is_complex, cot__type *z) {
    if (!cot__job_has(j, 1, 1, ints) || !cot__job_float(j, 0) || (is_complex && !has_pairs(j->caller, &j->x[0])) ||
        !cot__job_axis(j, AXIS, j->x[0].ndim - is_complex))
        return false;
    z->dtype = j->x[0].dtype;
    return true;
}

static int64_t extent_of(const cot__job *j) { return j->x[0].shape[cot__job_int(j, AXIS)]; }

static bool fft_infer(const cot__job *j, cot__type *z) {
    if (!transformed(j, 3, true, z)) return false;
    z->shape = cot__view_extents(&j->x[0]);
    return has_points(j->caller, extent_of(j));
}

static bool rfft_infer(const cot__job *j, cot__type *z) {
    if (!transformed(j, 2, false, z)) return false;
    z->shape = cot__view_extents(&j->x[0]);
    z->shape.dim[cot__job_int(j, AXIS)] = extent_of(j) / 2 + 1;
    if (z->shape.ndim < COT_MAX_NDIM) z->shape.dim[z->shape.ndim] = 2;
    z->shape.ndim++; /* a shape of too many axes is refused */
    return has_points(j->caller, extent_of(j));
}

/* The number of points is asked for: two have as many bins. */
static bool irfft_infer(const cot__job *j, cot__type *z) {
    if (!transformed(j, 2, true, z)) return false;
    cot_shape s = cot__view_extents(&j->x[0]);
    int64_t   axis = cot__job_int(j, AXIS), n = axis < z->shape.ndim ? z->shape.dim[axis] : 0;
    if (n > 0 && n / 2 + 1 != s.dim[axis])
        return cot__job_illegal(j, "%lld bins for %lld points", (long long)s.dim[axis], (long long)n);
    s.ndim--;
    s.dim[axis] = n;
    z->shape = s;
    return has_points(j->caller, n);
}

/* The transform that a job of one of the three is; z: the shape of its result. */
static cot__fft_job fft_of(const cot__job *j) {
    int axis = (int)cot__job_int(j, AXIS);
    switch (j->op) {
    case OP_fft:
        return (cot__fft_job){COT__FFT_COMPLEX, axis, extent_of(j), cot__job_int(j, INVERSE), cot__job_int(j, SCALED)};
    case OP_rfft: return (cot__fft_job){COT__FFT_REAL, axis, extent_of(j), false, cot__job_int(j, SCALED)};
    default: return (cot__fft_job){COT__FFT_HALF, axis, j->z.shape[axis], true, cot__job_int(j, SCALED)};
    }
}
static int64_t transform_workspace(const cot__job *j) {
    cot__fft_job job = fft_of(j);
    return j->backend->fft_workspace(&job, &j->x[0]);
}
static void transform_run(const cot__job *j) {
    cot__fft_job job = fft_of(j);
    j->backend->fft(&job, &j->x[0], &j->z, j->workspace);
}

/* ---- recording ------------------------------------------------------------------------------- */

static cot_var push(cot_tape *t, int op, uint32_t x, const int64_t *ints, const cot__type *asked) {
    const char *name = cot__op_of(op)->name;
    cot__attr  *attr = cot__attr_make(t, name, op == OP_fft ? 3 : 2, ints, 0, NULL);
    return attr ? cot__record(t, name, op, 1, &x, attr, asked) : INVALID(t);
}

static cot_var push_fft(cot_tape *t, uint32_t x, int axis, bool inverse, bool scaled) {
    return push(t, OP_fft, x, (int64_t[]){axis, scaled, inverse}, NULL);
}

static cot_var push_rfft(cot_tape *t, uint32_t x, int axis, bool scaled) {
    return push(t, OP_rfft, x, (int64_t[]){axis, scaled}, NULL);
}

static cot_var push_irfft(cot_tape *t, uint32_t x, int axis, int64_t n, bool scaled) {
    cot__type asked = {.shape = cot__shape_at(t, x)};
    asked.shape.ndim--;
    asked.shape.dim[axis] = n;
    return push(t, OP_irfft, x, (int64_t[]){axis, scaled}, &asked);
}

/* ---- the records ----------------------------------------------------------------------------- */

/* x as an operand of a rule: its index, or COT__NONE. */
static uint32_t entered(cot__rule *r, cot_var x) {
    uint32_t i;
    return cot__enter(r->t, x, cot__op_of(cot__rule_node(r)->op)->name, "", &i) ? i : COT__NONE;
}

static void fft_vjp(cot__rule *r) {
    const int64_t *a = cot__rule_attr(r)->ints;
    uint32_t       g = entered(r, r->g);
    if (g != COT__NONE) cot__give(r, 0, push_fft(r->t, g, (int)a[AXIS], !a[INVERSE], a[SCALED]));
}

static void rfft_vjp(cot__rule *r) {
    const int64_t *a = cot__rule_attr(r)->ints;
    uint32_t       g = entered(r, r->g);
    if (g != COT__NONE)
        cot__give(r, 0, push_irfft(r->t, g, (int)a[AXIS], cot__rule_shape(r, 0).dim[a[AXIS]], a[SCALED]));
}

static void irfft_vjp(cot__rule *r) {
    const int64_t *a = cot__rule_attr(r)->ints;
    uint32_t       g = entered(r, r->g);
    if (g != COT__NONE) cot__give(r, 0, push_rfft(r->t, g, (int)a[AXIS], a[SCALED]));
}

/* 5 n log n for n complex numbers, half of that for real ones. */
static double transform_cost(const cot_tape *t, uint32_t node) {
    cot_shape z = cot__shape_at(t, node);
    int       axis = (int)t->nodes[node].extra.attr->ints[AXIS];
    double    in = cot__operand_extent(t, node, 0, axis), out = axis < z.ndim ? (double)z.dim[axis] : 1;
    double    from = cot__operand_size(t, node, 0), to = (double)cot__size_at(t, node);
    return 2.5 * (to > from ? to : from) * cot__halvings(in > out ? in : out);
}

const cot__op cot__op_fft = {
    .name     = "fft",
    .batch    = cot__batch_shift,
    .attrs    = "axis:a scaled:f inverse:f",
    .kind     = KIND_LINEAR,
    .formula  = "z[k] = Σ x[j] exp(∓2πi jk/n), over n if scaled; x̄ += the same of z̄ with the other sign",
    .vjp      = fft_vjp,
    .infer    = fft_infer,
    .workspace = transform_workspace,
    .run      = transform_run,
    .cost     = {.more = transform_cost},
    .operands = "x"};
const cot__op cot__op_rfft  = {.name     = "rfft",
                               .batch    = cot__batch_shift,
                               .attrs    = "axis:a scaled:f",
                               .kind     = KIND_LINEAR,
                               .formula =
                                   "z[k] = w[k] Σ x[j] exp(-2πi jk/n), k <= n/2; x̄[j] += Σ w[k] Re(z̄[k] exp(2πi jk/n))",
                               .vjp      = rfft_vjp,
                               .infer    = rfft_infer,
                               .workspace = transform_workspace,
                               .run      = transform_run,
                               .cost     = {.more = transform_cost},
                               .operands = "x"};
const cot__op cot__op_irfft = {.name     = "irfft",
                               .batch    = cot__batch_shift,
                               .attrs    = "axis:a scaled:f",
                               .kind     = KIND_LINEAR,
                               .formula =
                                   "z[j] = Σ w[k] Re(x[k] exp(2πi jk/n)); x̄[k] += w[k] Σ z̄[j] exp(-2πi jk/n), k <= n/2",
                               .vjp      = irfft_vjp,
                               .infer    = irfft_infer,
                               .asks     = COT__ASKS_SHAPE,
                               .workspace = transform_workspace,
                               .run      = transform_run,
                               .cost     = {.more = transform_cost},
                               .operands = "x"};

/* ---- the public functions -------------------------------------------------------------------- */

/* Enters x as a float array; for complex ones checks the last axis. The axis is counted from the
 * front, without that one. */
static cot_tape *enter(const char *op, cot_var x, bool is_complex, int *axis, uint32_t *index) {
    cot_tape *t = cot__enter(NULL, x, op, "", index);
    if (!t) return NULL;
    cot__caller caller = cot__tape_caller(t, op);
    cot__view   v = cot__layout_at(t, *index);
    if (is_complex && !has_pairs(&caller, &v)) return NULL;
    if (!cot__check_axis(t, op, *axis, v.ndim - is_complex, axis)) return NULL;
    if (!cot__dtype_is_float(v.dtype) && (*index = cot__as(t, *index, COT_F64)) == COT__NONE) return NULL;
    return t;
}

/* The points of the transform: n as given, or for 0 what the axis has. */
static bool check_points(cot_tape *t, const char *op, int64_t *n, int64_t extent) {
    cot__caller caller = cot__tape_caller(t, op);
    if (*n < 0)
        return cot__refuse(&caller, COT_VALUE, "n is %lld; it is the number of points, or 0 for those of the axis",
                           (long long)*n);
    if (*n == 0) *n = extent;
    return has_points(&caller, *n);
}

/* The axis cut to its first n elements, or continued by zeros. */
static cot_var fitted(cot_tape *t, const char *op, uint32_t x, int axis, int64_t n) {
    cot_shape s = cot__shape_at(t, x), before = {s.ndim, {0}}, after = {s.ndim, {0}};
    if (n <= s.dim[axis]) return cot_slice(VAR(t, x), axis, 0, n, 1);
    after.dim[axis] = n - s.dim[axis];
    s.dim[axis] = n;
    if (!cot__check_shape(t, op, &s)) return INVALID(t);
    return cot_pad(VAR(t, x), before, after, 0);
}

static cot_var transform(const char *op, cot_var x, int64_t n, int axis, bool inverse) {
    uint32_t  i;
    cot_tape *t = enter(op, x, true, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    if (!check_points(t, op, &n, cot__shape_at(t, i).dim[axis])) return INVALID(t);
    cot_var z = fitted(t, op, i, axis, n);
    return cot__failed(z) ? z : push_fft(t, cot__index(z), axis, inverse, inverse);
}

cot_var cot_fft(cot_var x, int64_t n, int axis) { return transform("fft", x, n, axis, false); }
cot_var cot_ifft(cot_var x, int64_t n, int axis) { return transform("ifft", x, n, axis, true); }

cot_var cot_rfft(cot_var x, int64_t n, int axis) {
    uint32_t  i;
    cot_tape *t = enter("rfft", x, false, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    if (!check_points(t, "rfft", &n, cot__shape_at(t, i).dim[axis])) return INVALID(t);
    cot_var z = fitted(t, "rfft", i, axis, n);
    return cot__failed(z) ? z : push_rfft(t, cot__index(z), axis, false);
}

cot_var cot_irfft(cot_var x, int64_t n, int axis) {
    uint32_t  i;
    cot_tape *t = enter("irfft", x, true, &axis, &i);
    if (!t) return cot__invalid(1, &x);
    int64_t bins = cot__shape_at(t, i).dim[axis];
    if (n == 0 && bins == 1)
        return cot__fail(t, COT_SHAPE,
                         "[irfft] the axis has one bin, and without n that is a transform of 2 · (1 - 1) points; give "
                         "n, 1 for the constant");
    if (!check_points(t, "irfft", &n, bins > 1 ? 2 * (bins - 1) : 0)) return INVALID(t);
    cot_var z = fitted(t, "irfft", i, axis, n / 2 + 1);
    return cot__failed(z) ? z : push_irfft(t, cot__index(z), axis, n, true);
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* The product of complex values. */
static cot_var complex_product(cot_var x, cot_var y) {
    cot_var a = cot_index(x, -1, 0), b = cot_index(x, -1, 1), c = cot_index(y, -1, 0), d = cot_index(y, -1, 1);
    cot_var ac = cot_mul(a, c), bd = cot_mul(b, d), ad = cot_mul(a, d), bc = cot_mul(b, c);
    cot_var re = cot_sub(ac, bd), im = cot_add(ad, bc);
    return cot_stack(2, (cot_var[]){re, im}, -1);
}

/* Which part of the full convolution of a and b points a mode keeps. */
static bool mode_part(cot_tape *t, const char *mode, int64_t a, int64_t b, int64_t *first, int64_t *length) {
    if (!mode) mode = "NULL";
    bool    full = strcmp(mode, "full") == 0, same = strcmp(mode, "same") == 0, valid = strcmp(mode, "valid") == 0;
    int64_t less = a < b ? a : b;
    *first = full ? 0 : same ? (b - 1) / 2 : less - 1;
    *length = full ? a + b - 1 : same ? a : (a < b ? b : a) - less + 1;
    if (!full && !same && !valid)
        cot__fail(t, COT_VALUE, "[fft_convolve] the mode is \"%s\"; modes are \"full\", \"same\" and \"valid\"", mode);
    return full || same || valid;
}

/* h with its one axis where x has `axis`, or as it is; then all other extents are equal or 1. */
static cot_var aligned(cot_tape *t, cot_var x, cot_var h, int axis) {
    cot_shape s = cot_shape_of(x), k = cot_shape_of(h), wide = {s.ndim, {0}};
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    bool      fits = k.ndim == s.ndim || k.ndim == 1;
    if (fits && k.ndim != s.ndim) {
        for (int i = 0; i < s.ndim; i++) wide.dim[i] = i == axis ? k.dim[0] : 1;
        k = wide;
    }
    for (int i = 0; fits && i < s.ndim; i++) fits = i == axis || s.dim[i] == k.dim[i] || s.dim[i] == 1 || k.dim[i] == 1;
    if (!fits) {
        cot_shape given = cot_shape_of(h);
        return cot__fail(
            t, COT_SHAPE,
            "[fft_convolve] x has shape %s and h %s; h has one axis, or the rank of x and extents that are equal or 1 "
            "beside the axis",
            cot__shape_text(s.ndim, s.dim, a), cot__shape_text(given.ndim, given.dim, b));
    }
    if (s.dim[axis] == 0 || k.dim[axis] == 0)
        return cot__fail(t, COT_SHAPE,
                         "[fft_convolve] x has %lld points along the axis and h has %lld; both need one at least",
                         (long long)s.dim[axis], (long long)k.dim[axis]);
    return cot_reshape(h, k);
}

cot_var cot_fft_convolve(cot_var x, cot_var h, int axis, const char *mode) {
    static const char *const names[] = {"first", "second"};
    uint32_t  index[2];
    int64_t   first, length;
    cot_tape *t = cot__enter_all("fft_convolve", names, 2, (cot_var[]){x, h}, true, index);
    if (!t) return cot__invalid(2, (cot_var[]){x, h});
    if (!cot__check_axis(t, "fft_convolve", axis, cot__ndim_at(t, index[0]), &axis)) return INVALID(t);
    cot_dtype narrow = cot__dtype_at(&t->nodes[index[0]]), wide = cot__dtype_compute(narrow);
    h = aligned(t, VAR(t, index[0]), VAR(t, index[1]), axis);
    if (cot__failed(h)) return h;
    x = cot_cast(VAR(t, index[0]), wide), h = cot_cast(h, wide); /* rounded once, at the end */
    int64_t a = cot_shape_of(x).dim[axis], b = cot_shape_of(h).dim[axis];
    if (!mode_part(t, mode, a, b, &first, &length)) return INVALID(t);
    int64_t n = cot__fft_fast_length(a + b - 1);
    cot_var fx = cot_rfft(x, n, axis), fh = cot_rfft(h, n, axis);
    cot_var z = cot_irfft(complex_product(fx, fh), n, axis);
    return cot_cast(cot_slice(z, axis, first, first + length, 1), narrow);
}
