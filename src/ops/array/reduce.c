/* reduce.c: reductions over any set of axes.
 *
 * A node keeps the axes as a bit mask and whether they stay at extent 1. Reducing no axis is the
 * identity (or an elementwise operation) and records no reduction. Mean, variance, std and prod are
 * compositions of recorded operations, so every order of derivative follows from theirs. bf16 and
 * f16 go through f32 where there is an intermediate result, so that it neither overflows nor loses
 * the mean. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/kinks.h"
#include "ops/structural.h"
#include "pending/pending.h"

enum { MASK, KEEP, REDUCE_INTS };

/* A checked operand with the axes to reduce. */
typedef struct reduction {
    cot_tape *t;
    uint32_t  x, mask;
    bool      keep;
    cot_dtype dtype;
    int64_t   count; /* elements that go into one result */
} reduction;

static bool enter(const char *op, cot_var x, cot_axes axes, reduction *c) {
    c->t = cot__enter(NULL, x, op, "", &c->x);
    if (!c->t || !cot__check_axes(c->t, op, axes, cot__ndim_at(c->t, c->x), &c->mask)) return false;
    cot__view v = cot__layout_at(c->t, c->x);
    c->keep = axes.keepdims;
    c->dtype = v.dtype;
    c->count = 1;
    for (int k = 0; k < v.ndim; k++)
        if (c->mask >> k & 1) c->count *= v.shape[k];
    return true;
}

/* As enter, for operations on real numbers: integers become f64. */
static bool enter_real(const char *op, cot_var x, cot_axes axes, reduction *c) {
    if (!enter(op, x, axes, c)) return false;
    if (cot__dtype_is_float(c->dtype)) return true;
    c->dtype = COT_F64;
    return (c->x = cot__as(c->t, c->x, COT_F64)) != COT__NONE;
}

/* The same for one reduction to f64, which reads integers block by block, so that no copy of eight
 * bytes for each of them is needed. A row-major array is read in the order in which its copy would
 * be, so the bits are the same; of others a copy is made. */
static bool enter_read_as_real(const char *op, cot_var x, cot_axes axes, reduction *c) {
    if (!enter(op, x, axes, c)) return false;
    cot__view v = cot__layout_at(c->t, c->x);
    if (!c->mask || cot__dtype_is_float(c->dtype) || !cot__is_contiguous(v.ndim, v.shape, v.stride))
        return enter_real(op, x, axes, c);
    c->dtype = COT_F64;
    return true;
}

/* ---- the record: infer and run --------------------------------------------------------------- */

static bool not_empty(const cot__caller *c, int ndim, const int64_t *shape, int64_t count) {
    char text[COT__SHAPE_TEXT];
    return count > 0 ||
           cot__refuse(c, COT_SHAPE, "shape %s has no elements along the reduced axes; an empty %s does not exist",
                       cot__shape_text(ndim, shape, text), c->name);
}

static uint32_t mask_of(const cot__job *j) { return (uint32_t)cot__job_int(j, MASK); }

/* How many elements go into one result. */
static int64_t reduced_count(const cot__job *j) {
    int64_t count = 1;
    for (int k = 0; k < j->x[0].ndim; k++)
        if (mask_of(j) >> k & 1) count *= j->x[0].shape[k];
    return count;
}

static bool reduced(const cot__job *j, cot_dtype dtype, cot__type *z) {
    if (!cot__job_has(j, 1, 1, REDUCE_INTS) || !cot__job_range(j, MASK, 1, (1 << j->x[0].ndim) - 1)) return false;
    z->dtype = dtype;
    cot__reduced_shape(&z->shape, j->x[0].ndim, j->x[0].shape, mask_of(j), cot__job_int(j, KEEP));
    return true;
}

/* A sum of integers is one in i64, or in f64 where a mean is made of it. */
static bool sum_infer(const cot__job *j, cot__type *z) {
    bool real = j->n > 0 && cot__dtype_is_float(j->x[0].dtype);
    return reduced(j, real ? j->x[0].dtype : z->dtype == COT_F64 ? COT_F64 : COT_I64, z);
}
static bool real_infer(const cot__job *j, cot__type *z) {
    return reduced(j, j->n > 0 && cot__dtype_is_float(j->x[0].dtype) ? j->x[0].dtype : COT_F64, z);
}
static bool extreme_infer(const cot__job *j, cot__type *z) {
    return reduced(j, j->n > 0 ? j->x[0].dtype : COT_F64, z) &&
           not_empty(j->caller, j->x[0].ndim, j->x[0].shape, reduced_count(j));
}
static bool position_infer(const cot__job *j, cot__type *z) {
    if (!reduced(j, COT_I64, z)) return false;
    if (mask_of(j) & (mask_of(j) - 1)) return cot__job_illegal(j, "positions along several axes");
    return not_empty(j->caller, j->x[0].ndim, j->x[0].shape, reduced_count(j));
}
static bool truth_infer(const cot__job *j, cot__type *z) { return reduced(j, COT_BOOL, z); }

/* Where the result goes, with the reduced axes at extent 1. */
typedef struct kept_view { cot_shape shape; int64_t stride[COT_MAX_NDIM]; cot__view view; } kept_view;
static void see_kept(kept_view *to, const cot__job *j) {
    cot__reduced_shape(&to->shape, j->x[0].ndim, j->x[0].shape, mask_of(j), true);
    cot__strides(to->shape.ndim, to->shape.dim, to->stride);
    to->view = (cot__view){j->z.data, j->z.dtype, to->shape.ndim, to->shape.dim, to->stride};
}

static void reduce(const cot__job *j, cot__reduction what) {
    kept_view to;
    see_kept(&to, j);
    j->backend->reduce(what, &j->x[0], mask_of(j), &to.view);
}
static void sum_run(const cot__job *j) { reduce(j, COT__SUM); }
static void max_run(const cot__job *j) { reduce(j, COT__MAX); }
static void min_run(const cot__job *j) { reduce(j, COT__MIN); }
static void argmax_run(const cot__job *j) { reduce(j, COT__ARGMAX); }
static void argmin_run(const cot__job *j) { reduce(j, COT__ARGMIN); }
static void any_run(const cot__job *j) { reduce(j, COT__ANY); }
static void all_run(const cot__job *j) { reduce(j, COT__ALL); }
static void norm_run(const cot__job *j) { reduce(j, COT__NORM2); }
static void logsumexp_run(const cot__job *j) { reduce(j, COT__LOGSUMEXP); }

/* ---- recording ------------------------------------------------------------------------------- */

static bool has_elements(const reduction *c, const char *op) {
    cot__caller caller = cot__tape_caller(c->t, op);
    cot__view   v = cot__layout_at(c->t, c->x);
    return not_empty(&caller, v.ndim, v.shape, c->count);
}

/* What waits is reduced as it is computed, if that may be. */
static cot_var push_reduction(int op, cot__reduction what, const reduction *c) {
    cot_tape      *t = c->t;
    const char    *name = cot__op_of(op)->name;
    cot__attr     *attr = cot__attr_make(t, name, REDUCE_INTS, (int64_t[]){c->mask, c->keep}, 0, NULL);
    cot__type      asked;
    cot__recording r;
    kept_view      to;
    cot__ask_dtype(&asked, c->dtype);
    if (!attr || !cot__record_open(&r, t, name, op, 1, &c->x, attr, &asked)) return INVALID(t);
    see_kept(&to, &r.job);
    if (!cot__pending_reduce(t, what, c->x, c->mask, &to.view) && !cot__record_run(&r)) return INVALID(t);
    return cot__record_push(&r);
}

/* ---- for the rules --------------------------------------------------------------------------- */

/* v, shaped like the result, with the reduced axes at extent 1: it broadcasts against x. */
static cot_var kept(cot__rule *r, cot_var v) {
    return cot_reshape(v, cot__kept_shape(cot__rule_shape(r, 0), (uint32_t)cot__rule_attr(r)->ints[MASK]));
}

static cot_axes axes_of(const cot__rule *r) {
    const cot__attr *a = cot__rule_attr(r);
    cot_axes         axes = {0, a->ints[KEEP] != 0, {0}};
    for (int k = 0; k < COT_MAX_NDIM; k++)
        if (a->ints[MASK] >> k & 1) axes.axis[axes.n++] = k;
    return axes;
}

static cot_var norm2(cot_var x, cot_axes axes) {
    reduction c;
    if (!enter_read_as_real("norm", x, axes, &c)) return cot__invalid(1, &x);
    return c.mask ? push_reduction(OP_norm, COT__NORM2, &c) : cot_abs(VAR(c.t, c.x));
}

/* ---- sum, mean, variance --------------------------------------------------------------------- */

cot_var cot_sum(cot_var x, cot_axes axes) {
    reduction c;
    if (!enter("sum", x, axes, &c)) return cot__invalid(1, &x);
    if (!cot__dtype_is_float(c.dtype)) c.dtype = COT_I64;
    return c.mask ? push_reduction(OP_sum, COT__SUM, &c) : cot_cast(x, c.dtype);
}

static void    sum_vjp(cot__rule *r) { cot__give(r, 0, cot_broadcast_to(kept(r, r->g), cot__rule_shape(r, 0))); }

const cot__op cot__op_sum = {
    .name = "sum", .batch = cot__batch_shift, .attrs = "axes:m keepdims:f", .kind = KIND_LINEAR,
    .formula = "z = Σ x; x̄ += z̄ broadcast", .vjp = sum_vjp,
    .infer = sum_infer, .asks = COT__ASKS_DTYPE, .run = sum_run,
    .cost = {.each_x = 1},
    .fold = 1 + COT__SUM,
    .operands = "x"};

cot_var cot_mean(cot_var x, cot_axes axes) {
    reduction c;
    if (!enter_read_as_real("mean", x, axes, &c)) return cot__invalid(1, &x);
    if (!c.mask) return VAR(c.t, c.x);
    if (!cot__dtype_is_float(cot__dtype_at(&c.t->nodes[c.x])))
        return cot_div(push_reduction(OP_sum, COT__SUM, &c), (double)c.count);
    cot_var wide = cot_cast(VAR(c.t, c.x), cot__dtype_compute(c.dtype));
    return cot_cast(cot_div(cot_sum(wide, axes), (double)c.count), c.dtype);
}

/* Σ (x - mean)² / n: stable, because the mean goes first. */
cot_var cot_variance(cot_var x, cot_axes axes) {
    reduction c;
    cot_axes  keep = axes;
    if (!enter_real("variance", x, axes, &c)) return cot__invalid(1, &x);
    keep.keepdims = true;
    cot_var wide = cot_cast(VAR(c.t, c.x), cot__dtype_compute(c.dtype));
    cot_var deviation = cot_sub(wide, cot_mean(wide, keep));
    return cot_cast(cot_mean(cot_square(deviation), axes), c.dtype);
}

/* The norm of the deviations over √n: their squares may be too small or too large for a double. */
cot_var cot_std(cot_var x, cot_axes axes) {
    reduction c;
    cot_axes  keep = axes;
    if (!enter_real("std", x, axes, &c)) return cot__invalid(1, &x);
    keep.keepdims = true;
    cot_var wide = cot_cast(VAR(c.t, c.x), cot__dtype_compute(c.dtype));
    cot_var deviation = cot_sub(wide, cot_mean(wide, keep));
    return cot_cast(cot_div(norm2(deviation, axes), sqrt((double)c.count)), c.dtype);
}

/* ---- prod ------------------------------------------------------------------------------------ */

/* The product along one axis, kept at extent 1: the first half times the second until one is left;
 * an odd one out joins `rest`. */
static cot_var prod_along(cot_var x, int axis, int64_t n) {
    cot_var rest = {0};
    bool    odd = false;
    while (n > 1) {
        int64_t half = n / 2;
        if (n % 2) {
            cot_var last = cot_slice(x, axis, n - 1, n, 1);
            rest = odd ? cot_mul(rest, last) : last;
            odd = true;
        }
        x = cot_mul(cot_slice(x, axis, 0, half, 1), cot_slice(x, axis, half, 2 * half, 1));
        n = half;
    }
    return odd ? cot_mul(x, rest) : x;
}

cot_var cot_prod(cot_var x, cot_axes axes) {
    reduction c;
    if (!enter("prod", x, axes, &c)) return cot__invalid(1, &x);
    cot_tape *t = c.t;
    cot_dtype dtype = cot__dtype_is_float(c.dtype) ? c.dtype : COT_I64;
    cot_shape s = cot__shape_at(t, c.x), z;
    cot__reduced_shape(&z, s.ndim, s.dim, c.mask, c.keep);
    if (c.count == 0) return cot_add(cot_sum(x, axes), 1); /* a function of x still */
    cot_var p = cot_cast(x, c.mask ? cot__dtype_compute(dtype) : dtype);
    if (c.mask == (1u << s.ndim) - 1 && s.ndim > 1) {
        p = cot_reshape(p, COT_SHAPE(c.count));
        p = prod_along(p, 0, c.count);
    } else {
        for (int k = 0; k < s.ndim; k++)
            if (c.mask >> k & 1) p = prod_along(p, k, s.dim[k]);
    }
    return cot_reshape(cot_cast(p, dtype), z);
}

/* ---- max, min -------------------------------------------------------------------------------- */

static cot_var extreme(int op, cot__reduction what, cot_var x, cot_axes axes) {
    reduction c;
    if (!enter(cot__op_of(op)->name, x, axes, &c)) return cot__invalid(1, &x);
    if (!c.mask) return x;
    return push_reduction(op, what, &c);
}

cot_var cot_max(cot_var x, cot_axes axes) { return extreme(OP_max, COT__MAX, x, axes); }
cot_var cot_min(cot_var x, cot_axes axes) { return extreme(OP_min, COT__MIN, x, axes); }

/* Which x = z, and how many, in a dtype that can count them: f16 ends at 65504. */
static cot_var ties(cot__rule *r, bool keep, cot_var *hit) {
    cot_axes axes = axes_of(r);
    axes.keepdims |= keep;
    *hit = cot_equal(cot__rule_x(r, 0), kept(r, cot__rule_z(r)));
    return cot_cast(cot_sum(*hit, axes), cot__dtype_compute(cot__dtype_at(cot__rule_node(r))));
}

/* x̄ += [x = z] z̄ / (number of x = z): ties share equally. */
static void extreme_vjp(cot__rule *r) {
    cot_var hit, n = ties(r, true, &hit);
    cot_var share = cot_cast(cot_sdiv(kept(r, r->g), n), cot__dtype_at(cot__rule_node(r)));
    cot__give(r, 0, cot_where(hit, share, 0.0));
}

/* dz = Σ [x = z] dx / (number of x = z) */
static void extreme_jvp(cot__rule *r) {
    cot_dtype d = cot__dtype_at(cot__rule_node(r));
    cot_var   hit, n = ties(r, false, &hit);
    cot_var   moved = cot_sum(cot_cast(cot_where(hit, r->tangents[0], 0.0), cot__dtype_compute(d)), axes_of(r));
    r->tangent      = cot_cast(cot_sdiv(moved, n), d);
}

const cot__op cot__op_max = {.name     = "max",
                             .batch    = cot__batch_shift,
                             .attrs    = "axes:m keepdims:f",
                             .infer    = extreme_infer,
                             .run      = max_run,
                             .kind     = KIND_GENERIC,
                             .saves    = 1u | COT__SAVES_Z,
                             .vjp      = extreme_vjp,
                             .jvp      = extreme_jvp,
                             .formula  = "z = max x; x̄ += [x = z] z̄ / (number of x = z)",
                             .cost     = {.each_x = 1},
                             .fold     = 1 + COT__MAX,
                             .operands = "x",
                             .kinks    = cot__extreme_kinks};
const cot__op cot__op_min = {.name     = "min",
                             .batch    = cot__batch_shift,
                             .attrs    = "axes:m keepdims:f",
                             .infer    = extreme_infer,
                             .run      = min_run,
                             .kind     = KIND_GENERIC,
                             .saves    = 1u | COT__SAVES_Z,
                             .vjp      = extreme_vjp,
                             .jvp      = extreme_jvp,
                             .formula  = "z = min x; x̄ += [x = z] z̄ / (number of x = z)",
                             .cost     = {.each_x = 1},
                             .fold     = 1 + COT__MIN,
                             .operands = "x",
                             .kinks    = cot__extreme_kinks};

/* ---- positions ------------------------------------------------------------------------------- */

static cot_var position(int op, cot__reduction what, cot_var x, cot_axes axes) {
    const char *name = cot__op_of(op)->name;
    reduction   c;
    if (!enter(name, x, axes, &c)) return cot__invalid(1, &x);
    int ndim = cot__ndim_at(c.t, c.x);
    if (axes.n >= 0 && axes.n != 1)
        return cot__fail(c.t, COT_SHAPE,
                         "[%s] %d axes are listed; positions run along one axis, or along all with COT_ALL", name,
                         axes.n);
    if (!has_elements(&c, name)) return INVALID(c.t);
    if (axes.n >= 0 || ndim == 1) return push_reduction(op, what, &c);
    cot_var   flat = cot_reshape(x, COT_SHAPE(c.count));
    cot_shape ones = {c.keep ? ndim : 0, {0}};
    if (cot__failed(flat)) return flat;
    reduction all = {c.t, cot__index(flat), 1, false, c.dtype, c.count};
    for (int k = 0; k < ones.ndim; k++) ones.dim[k] = 1;
    return cot_reshape(push_reduction(op, what, &all), ones);
}

cot_var cot_argmax(cot_var x, cot_axes axes) { return position(OP_argmax, COT__ARGMAX, x, axes); }
cot_var cot_argmin(cot_var x, cot_axes axes) { return position(OP_argmin, COT__ARGMIN, x, axes); }

const cot__op  cot__op_argmax = {.name     = "argmax",
                                 .batch    = cot__batch_shift,
                                 .infer    = position_infer,
                                 .run      = argmax_run,
                                 .attrs    = "axes:m keepdims:f",
                                 .kind     = KIND_NONE,
                                 .formula  = "z = the first i with x[i] = max x",
                                 .cost     = {.each_x = 1},
                                 /* a block does not know its place */
                                 .fold     = COT__BY_ITSELF,
                                 .operands = "x"};
const cot__op  cot__op_argmin = {.name     = "argmin",
                                 .batch    = cot__batch_shift,
                                 .infer    = position_infer,
                                 .run      = argmin_run,
                                 .attrs    = "axes:m keepdims:f",
                                 .kind     = KIND_NONE,
                                 .formula  = "z = the first i with x[i] = min x",
                                 .cost     = {.each_x = 1},
                                 /* as argmax */
                                 .fold     = COT__BY_ITSELF,
                                 .operands = "x"};

/* ---- the choice of cot_categorical ----------------------------------------------------------- */

/* What status[0] says of the first choice that means nothing. */
enum { IS_NAN = 1, ALL_MINUS_INFINITY };

static bool categorical_infer(const cot__job *j, cot__type *z) {
    return position_infer(j, z) && cot__job_float(j, 0);
}

/* The sums of logits and noise at the chosen places. */
static int64_t categorical_workspace(const cot__job *j) { return cot__room_bytes(&j->z, j->x[0].dtype); }

/* Such a sum is NaN if a logit was NaN, because NaN counts as the largest, and -inf if all logits
 * were -inf. */
static void categorical_run(const cot__job *j) {
    static const int64_t two[1] = {2}, one[1] = {1};
    kept_view            to;
    cot__elements        e;
    int64_t              found[2] = {0, 0};
    int                  axis = 0;
    argmax_run(j);
    if (cot__view_size(&j->z) == 0) return;
    while (!(mask_of(j) >> axis & 1)) axis++;
    see_kept(&to, j);
    cot__view chosen = to.view;
    chosen.data = j->workspace, chosen.dtype = j->x[0].dtype;
    j->backend->take_along(&j->x[0], axis, &to.view, &chosen);
    cot__elements_open(&e, j->backend, &chosen, COT_F64);
    while (!found[0] && cot__elements_next(&e))
        for (int k = 0; k < e.n && !found[0]; k++)
            if (!(e.f64[k] > -INFINITY))
                found[0] = isnan(e.f64[k]) ? IS_NAN : ALL_MINUS_INFINITY, found[1] = e.first + k;
    if (found[0]) j->backend->write(&(cot__view){j->status, COT_I64, 1, two, one}, 0, 2, COT_I64, found);
}

static void categorical_tell(const cot__job *j, const int64_t found[2]) {
    cot__remark(j->caller,
                "the logits of choice %lld of %lld are %s; they give no probabilities, and the choice means nothing",
                (long long)found[1], (long long)cot__view_size(&j->z),
                found[0] == IS_NAN ? "NaN, or one of them is" : "all -inf");
}

cot_var cot__categorical(cot_var sums, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, sums, "categorical", "", &i);
    if (!t) return cot__invalid(1, &sums);
    cot__attr *attr = cot__attr_make(t, "categorical", REDUCE_INTS, (int64_t[]){1 << axis, false}, 0, NULL);
    return attr ? cot__record(t, "categorical", OP_categorical, 1, &i, attr, NULL) : INVALID(t);
}

const cot__op cot__op_categorical = {.name      = "categorical",
                                     .batch     = cot__batch_shift,
                                     .infer     = categorical_infer,
                                     .workspace = categorical_workspace,
                                     .run       = categorical_run,
                                     .tell      = categorical_tell,
                                     .attrs     = "axes:m keepdims:f",
                                     .kind      = KIND_NONE,
                                     .formula   = "z = the first i with x[i] = max x, x: logits and noise",
                                     .cost      = {.each_x = 1},
                                     /* as argmax */
                                     .fold      = COT__BY_ITSELF,
                                     .operands  = "x"};

/* ---- truth ----------------------------------------------------------------------------------- */

static cot_var truth(int op, cot__reduction what, cot_var x, cot_axes axes) {
    reduction c;
    if (!enter(cot__op_of(op)->name, x, axes, &c)) return cot__invalid(1, &x);
    return c.mask ? push_reduction(op, what, &c) : cot_not_equal(x, 0);
}

cot_var cot_any(cot_var x, cot_axes axes) { return truth(OP_any, COT__ANY, x, axes); }
cot_var cot_all(cot_var x, cot_axes axes) { return truth(OP_all, COT__ALL, x, axes); }

const cot__op cot__op_any = {.name     = "any",
                             .batch    = cot__batch_shift,
                             .attrs    = "axes:m keepdims:f",
                             .infer    = truth_infer,
                             .run      = any_run,
                             .kind     = KIND_NONE,
                             .formula  = "z = is any x non-zero?",
                             .cost     = {.each_x = 1},
                             /* groups fold floats */
                             .fold     = COT__BY_ITSELF,
                             .operands = "x"};
const cot__op cot__op_all = {.name     = "all",
                             .batch    = cot__batch_shift,
                             .attrs    = "axes:m keepdims:f",
                             .infer    = truth_infer,
                             .run      = all_run,
                             .kind     = KIND_NONE,
                             .formula  = "z = are all x non-zero?",
                             .cost     = {.each_x = 1},
                             /* groups fold floats */
                             .fold     = COT__BY_ITSELF,
                             .operands = "x"};

/* ---- logsumexp ------------------------------------------------------------------------------- */

cot_var cot_logsumexp(cot_var x, cot_axes axes) {
    reduction c;
    if (!enter_read_as_real("logsumexp", x, axes, &c)) return cot__invalid(1, &x);
    return c.mask ? push_reduction(OP_logsumexp, COT__LOGSUMEXP, &c) : VAR(c.t, c.x);
}

/* exp(x - z), and 0 where all of x is -inf. z is rounded, which exp would magnify by |z|: a shift
 * only, divided out again. */
static cot_var weights(cot__rule *r) {
    cot_axes axes = axes_of(r);
    cot_var  z = cot_detach(kept(r, cot__rule_z(r)));
    cot_var  e = cot_exp(cot_sub(cot__rule_x(r, 0), cot_where(cot_equal(z, -INFINITY), 0.0, z)));
    axes.keepdims = true;
    return cot_sdiv(e, cot_sum(e, axes));
}

static void logsumexp_vjp(cot__rule *r) { cot__give(r, 0, cot_smul(kept(r, r->g), weights(r))); }
static void logsumexp_jvp(cot__rule *r) { r->tangent = cot_sum(cot_smul(r->tangents[0], weights(r)), axes_of(r)); }

const cot__op cot__op_logsumexp = {.name    = "logsumexp",
                                   .batch   = cot__batch_shift,
                                   .infer   = real_infer,
                                   .run     = logsumexp_run,
                                   .attrs   = "axes:m keepdims:f",
                                   .kind    = KIND_GENERIC,
                                   .saves   = 1u | COT__SAVES_Z,
                                   .vjp     = logsumexp_vjp,
                                   .jvp     = logsumexp_jvp,
                                   .formula = "z = log Σ exp(x); x̄ += z̄ exp(x - z)",
                                   /* max, subtract, exp, add; log, add */
                                   .cost     = {.each_x = 4, .each_z = 2},
                                   .fold     = 1 + COT__LOGSUMEXP,
                                   .operands = "x"};

/* ---- norm ------------------------------------------------------------------------------------ */

/* The largest of |x| (of a negative order the smallest), which counts most, where that is a number
 * to divide by, and 1 elsewhere; a constant, as it cancels. Powers of |x| over it neither overflow
 * nor vanish all. */
static cot_var leading(cot_var size, double order, cot_axes axes) {
    axes.keepdims = true;
    cot_var m = cot_detach(size);
    m = order > 0 ? cot_max(m, axes) : cot_min(m, axes);
    return cot_where(cot_logical_and(cot_greater(m, 0), cot_isfinite(m)), m, 1);
}

cot_var cot_norm(cot_var x, double order, cot_axes axes) {
    reduction c;
    if (order == 2) return norm2(x, axes);
    if (!enter_real("norm", x, axes, &c)) return cot__invalid(1, &x);
    if (isnan(order))
        return cot__fail(c.t, COT_VALUE, "[norm] the order is NaN; orders are numbers, INFINITY or -INFINITY");
    cot_var v = VAR(c.t, c.x);
    if (order == 0) return cot_cast(cot_sum(cot_not_equal(v, 0), axes), c.dtype);
    cot_var size = cot_abs(v);
    if (order == 1) return cot_sum(size, axes);
    if (isinf(order) && !has_elements(&c, "norm")) return INVALID(c.t);
    if (isinf(order)) return order > 0 ? cot_max(size, axes) : cot_min(size, axes);
    size = cot_cast(size, cot__dtype_compute(c.dtype));
    if (c.count == 0) return cot_cast(cot_pow(cot_sum(cot_pow(size, order), axes), 1 / order), c.dtype);
    cot_var unit = leading(size, order, axes),
            z    = cot_pow(cot_sum(cot_pow(cot_div(size, unit), order), axes), 1 / order);
    return cot_cast(cot_mul(z, cot_reshape(unit, cot_shape_of(z))), c.dtype);
}

/* x / z, and 0 where all of x is 0 */
static cot_var direction(cot__rule *r) { return cot_sdiv(cot__rule_x(r, 0), kept(r, cot__rule_z(r))); }

static void norm_vjp(cot__rule *r) { cot__give(r, 0, cot_smul(kept(r, r->g), direction(r))); }
static void norm_jvp(cot__rule *r) { r->tangent = cot_sum(cot_smul(r->tangents[0], direction(r)), axes_of(r)); }

const cot__op cot__op_norm = {.name    = "norm",
                              .batch   = cot__batch_shift,
                              .infer   = real_infer,
                              .run     = norm_run,
                              .attrs   = "axes:m keepdims:f",
                              .kind    = KIND_GENERIC,
                              .saves   = 1u | COT__SAVES_Z,
                              .vjp     = norm_vjp,
                              .jvp     = norm_jvp,
                              .formula = "z = sqrt(Σ x²); x̄ += z̄ x / z",
                              /* square, add; root */
                              .cost     = {.each_x = 2, .each_z = 1},
                              .fold     = 1 + COT__NORM2,
                              .operands = "x",
                              .kinks    = cot__norm_kinks};
