/* norms.c: layer, rms, group and batch normalisation, the public functions.
 *
 * The first two are operations (normalize.c). A group normalisation is a layer normalisation of
 * another shape. Batch normalisation is composed: its statistics are results that the user sees. */
#include "ops/nn/nn.h"
#include "ops/structural.h"

/* ---- operands -------------------------------------------------------------------------------- */

static const char *const operand_names[3] = {"x", "weight", "bias"};

/* Enters x, weight, bias; the latter two may be absent (given: which of them are there). All get
 * one dtype. */
static cot_tape *enter_parameters(const char *op, cot_var xs[3], bool given[3]) {
    cot_var     list[3];
    const char *names[3];
    uint32_t    index[3];
    int         n = 0;
    for (int k = 0; k < 3; k++)
        if ((given[k] = k == 0 || !cot__is_absent(xs[k]))) names[n] = operand_names[k], list[n++] = xs[k];
    cot_tape *t = cot__enter_all(op, names, n, list, true, index);
    for (int k = 0, i = 0; t && k < 3; k++)
        if (given[k]) xs[k] = VAR(t, index[i]), i++;
    return t;
}

/* Has node i, which messages call `what`, the shape that x asks of it? */
static bool check_parameter(cot_tape *t, const char *op, const char *what, cot_shape x, uint32_t i, cot_shape want) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT], c[COT__SHAPE_TEXT];
    cot_shape s = cot__shape_at(t, i);
    if (cot__same_shape(&s, &want)) return true;
    cot__fail(t, COT_SHAPE, "[%s] x of shape %s needs a %s of shape %s; this one has %s", op,
              cot__shape_text(x.ndim, x.dim, a), what, cot__shape_text(want.ndim, want.dim, b),
              cot__shape_text(s.ndim, s.dim, c));
    return false;
}

static bool check_parameters(cot_tape *t, const char *op, const cot_var xs[3], const bool given[3], cot_shape want) {
    cot_shape x = cot__shape_at(t, cot__index(xs[0]));
    for (int k = 1; k < 3; k++)
        if (given[k] && !check_parameter(t, op, operand_names[k], x, cot__index(xs[k]), want)) return false;
    return true;
}

/* bf16 and f16 are computed in f32. */
static cot_dtype widen(cot_var xs[3], const bool given[3]) {
    cot_dtype d = cot_dtype_of(xs[0]);
    for (int k = 0; k < 3; k++)
        if (given[k]) xs[k] = cot_cast(xs[k], cot__dtype_compute(d));
    return d;
}

/* ---- layer and rms --------------------------------------------------------------------------- */

static cot_var norm(bool rms, cot_var x, cot_var weight, cot_var bias, int axis, double eps) {
    const char *name = rms ? "rms_norm" : "layer_norm";
    cot_var     xs[3] = {x, weight, bias};
    bool        given[3];
    cot_tape   *t = enter_parameters(name, xs, given);
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, cot__index(xs[0]));
    if (!cot__check_eps(t, name, eps) || !cot__check_axis(t, name, axis, shape.ndim, &axis) ||
        !check_parameters(t, name, xs, given, cot__shape_from(shape, axis)))
        return INVALID(t);
    cot_dtype d = widen(xs, given);
    return cot_cast(cot__normalized(xs[0], xs[1], xs[2], axis, rms, eps), d);
}

cot_var cot_layer_norm(cot_var x, cot_var weight, cot_var bias, int axis, double eps) {
    return norm(false, x, weight, bias, axis, eps);
}
cot_var cot_rms_norm(cot_var x, cot_var weight, int axis, double eps) {
    return norm(true, x, weight, COT_NONE, axis, eps);
}

/* ---- group ----------------------------------------------------------------------------------- */

/* z · weight + bias, both (C) along the axes that `shape` has at more than 1 */
static cot_var scaled(cot_var z, const cot_var xs[3], const bool given[3], cot_shape shape) {
    if (given[1]) z = cot_mul(z, cot_reshape(xs[1], shape));
    return given[2] ? cot_add(z, cot_reshape(xs[2], shape)) : z;
}

cot_var cot_group_norm(cot_var x, int64_t groups, cot_var weight, cot_var bias, double eps) {
    static const char name[] = "group_norm";
    cot_var           xs[3] = {x, weight, bias};
    bool              given[3];
    cot_tape         *t = enter_parameters(name, xs, given);
    char              text[COT__SHAPE_TEXT];
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!cot__check_eps(t, name, eps)) return INVALID(t);
    if (s.ndim < 2)
        return cot__fail(t, COT_SHAPE, "[group_norm] x has shape %s; axis 0 is the batch and axis 1 the channels",
                         cot__shape_text(s.ndim, s.dim, text));
    if (groups < 1 || s.dim[1] % groups)
        return cot__fail(t, COT_SHAPE, "[group_norm] %lld channels in %lld groups; the groups must divide the channels",
                         (long long)s.dim[1], (long long)groups);
    if (!check_parameters(t, name, xs, given, COT_SHAPE(s.dim[1]))) return INVALID(t);
    cot_dtype d = widen(xs, given);
    cot_shape grouped = COT_SHAPE(s.dim[0], groups, s.dim[1] / groups * cot__count(s.ndim - 2, s.dim + 2));
    cot_shape channels = cot__kept_shape(s, ~2u);
    cot_var   y = cot__normalized(cot_reshape(xs[0], grouped), COT_NONE, COT_NONE, 2, false, eps);
    return cot_cast(scaled(cot_reshape(y, s), xs, given, channels), d);
}

/* ---- batch ----------------------------------------------------------------------------------- */

/* x's shape with the axes of the mask gone. */
static cot_shape shape_without_axes(cot_shape x, uint32_t mask) {
    cot_shape s;
    cot__reduced_shape(&s, x.ndim, x.dim, mask, false);
    return s;
}

cot_var cot_batch_norm(cot_var x, cot_axes axes, cot_var weight, cot_var bias, double eps, cot_var *mean,
                       cot_var *variance) {
    static const char name[] = "batch_norm";
    cot_var           xs[3] = {x, weight, bias};
    bool              given[3];
    cot_tape         *t = enter_parameters(name, xs, given);
    uint32_t          mask;
    if (mean) *mean = cot__invalid(1, &x);
    if (variance) *variance = cot__invalid(1, &x);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!cot__check_eps(t, name, eps) || !cot__check_axes(t, name, axes, s.ndim, &mask) ||
        !check_parameters(t, name, xs, given, shape_without_axes(s, mask)))
        return INVALID(t);
    axes.keepdims = true;
    cot_dtype d = widen(xs, given);
    cot_var   m = cot_mean(xs[0], axes), away = cot_sub(xs[0], m), v = cot_mean(cot_square(away), axes);
    cot_var   scale = cot_rsqrt(cot_add(v, eps)), z;
    cot_shape kept = cot__kept_shape(s, mask);
    /* a small product instead of a large one */
    if (given[1]) scale = cot_mul(scale, cot_reshape(xs[1], kept)), given[1] = false;
    z = scaled(cot_mul(away, scale), xs, given, kept);
    /* x, over no axes */
    if (mean) *mean = cot__unchanged(cot_cast(cot_reshape(m, shape_without_axes(s, mask)), d), COT__COPY);
    if (variance) *variance = cot_cast(cot_reshape(v, shape_without_axes(s, mask)), d);
    return cot_cast(z, d);
}

cot_var cot_batch_norm_inference(cot_var x, cot_axes axes, cot_var mean, cot_var variance, cot_var weight, cot_var bias,
                                 double eps) {
    static const char        name[] = "batch_norm_inference";
    static const char *const names[2] = {"mean", "variance"};
    cot_var                  xs[3] = {x, weight, bias}, statistics[2] = {mean, variance};
    bool                     given[3];
    cot_tape                *t = enter_parameters(name, xs, given);
    uint32_t                 mask, i;
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, cot__index(xs[0]));
    if (!cot__check_eps(t, name, eps) || !cot__check_axes(t, name, axes, s.ndim, &mask)) return INVALID(t);
    cot_shape want = shape_without_axes(s, mask), kept = cot__kept_shape(s, mask);
    if (!check_parameters(t, name, xs, given, want)) return INVALID(t);
    cot_dtype d = widen(xs, given);
    for (int k = 0; k < 2; k++) {
        if (!cot__enter(t, statistics[k], name, names[k], &i) || !check_parameter(t, name, names[k], s, i, want))
            return INVALID(t);
        statistics[k] = cot_reshape(cot_cast(VAR(t, i), cot__dtype_compute(d)), kept);
    }
    cot_var scale = cot_rsqrt(cot_add(statistics[1], eps));
    if (given[1]) scale = cot_mul(scale, cot_reshape(xs[1], kept)), given[1] = false;
    return cot_cast(scaled(cot_mul(cot_sub(xs[0], statistics[0]), scale), xs, given, kept), d);
}
