/* random.c: random values as constants, and what is made of them.
 *
 * Nothing here has a state: a call is a function of its key. Samples have no derivative; a
 * distribution with parameters is written with them, mean + scale · cot_normal(…), and is
 * differentiable in them. */
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "backend/elements.h"
#include "base/random.h"

#include <string.h>

static bool check_float(cot_tape *t, const char *op, cot_dtype dtype) {
    if (!cot__check_dtype(t, op, dtype)) return false;
    if (cot__dtype_is_float(dtype)) return true;
    cot__fail(t, COT_DTYPE, "[%s] numbers of dtype %s; they must be floats", op, cot__dtype_name(dtype));
    return false;
}

/* A permutation is drawn like numbers, except for its dtype. */
enum { PERMUTATION = COT__KEEP + 1 };

static void draw(const cot__backend *b, int kind, cot_key key, const cot__view *z, double low, double high) {
    if (kind == PERMUTATION) b->permutation(key, z);
    else b->draw((cot__draw_kind)kind, key, z, low, high);
}

static bool has_step(cot_key key) { return key.step.tape || key.step.id; }

static cot_var at_step(cot_tape *t, const char *op, int kind, cot_key key, cot_dtype dtype, const cot_shape *shape,
                       double low, double high);

/* What a draw needs to be made again. */
typedef struct draw_again { cot__made_so given; int kind; cot_key key; double low, high; } draw_again;

static void give_drawn(const cot__made_so *g, const cot__backend *b, const cot__view *z) {
    const draw_again *d = (const draw_again *)g;
    draw(b, d->kind, d->key, z, d->low, d->high);
}

static cot_var drawn(cot_tape *t, const char *op, int kind, cot_key key, cot_dtype dtype, const cot_shape *shape,
                     double low, double high) {
    cot__result r;
    if (!cot__usable(t) || (kind != PERMUTATION && !check_float(t, op, dtype))) return INVALID(t);
    if (has_step(key)) return at_step(t, op, kind, key, dtype, shape, low, high);
    if (t->mode.compiling)
        return cot__fail(t, COT_VALUE,
                         "[%s] draws from a plain key in a function that is compiled, which would give the same "
                         "numbers in every run; use cot_key_at with an integer input",
                         op);
    if (!cot__constant_open(t, &r, op, dtype, shape)) return INVALID(t);
    draw(t->backend, kind, key, &r.view, low, high);
    draw_again again = {{give_drawn}, kind, key, low, high};
    return cot__note_made_so(t, cot__constant_push(t, &r), &again.given, sizeof again);
}

static double rounded(double v, cot_dtype dtype) {
    uint64_t element = 0;
    cot__store_f64(&element, dtype, v);
    return cot__load_f64(&element, dtype);
}

static bool check_ends(cot_tape *t, const char *op, double lo, double hi, double low, double high, cot_dtype dtype) {
    if (low < high && !isinf(low) && !isinf(high)) return true;
    cot__fail(t, COT_VALUE, "[%s] from %g to %g in %s; the ends must be finite and the first below the second", op, lo,
              hi, cot__dtype_name(dtype));
    return false;
}

cot_var cot_uniform(cot_tape *t, cot_key key, cot_dtype dtype, cot_shape shape, double lo, double hi) {
    if (!cot__usable(t) || !check_float(t, "uniform", dtype)) return INVALID(t);
    double low = rounded(lo, dtype), high = rounded(hi, dtype);
    return check_ends(t, "uniform", lo, hi, low, high, dtype)
               ? drawn(t, "uniform", COT__UNIFORM, key, dtype, &shape, low, high)
               : INVALID(t);
}

cot_var cot_normal(cot_tape *t, cot_key key, cot_dtype dtype, cot_shape shape) {
    return drawn(t, "normal", COT__NORMAL, key, dtype, &shape, 0, 0);
}

cot_var cot_gumbel(cot_tape *t, cot_key key, cot_dtype dtype, cot_shape shape) {
    return drawn(t, "gumbel", COT__GUMBEL, key, dtype, &shape, 0, 0);
}

/* ---- by step --------------------------------------------------------------------------------- */

/* Draws once for each element of an integer array of steps, from the key folded with the step; the
 * draw has new axes behind the array's own. It is an operation on the steps and not a constant. So
 * a body that is played again, for another step or for the same one in a reverse sweep, draws the
 * numbers of that step. */
enum { AT_KIND, AT_KEY, AT_LOW = AT_KEY + 2, AT_HIGH, AT_SHAPE };

static int64_t bits_of(double v) {
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double number_of(int64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static int draw_ndim(const cot__job *j) { return (int)j->attr->nints - AT_SHAPE; }

/* Floats of any dtype, or a permutation, which is a vector of positions. */
static bool draw_at_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, AT_SHAPE) || !cot__job_integers(j, 0, "steps")) return false;
    if (!cot__job_range(j, AT_KIND, 0, PERMUTATION) || !cot__job_range(j, AT_KEY, 0, UINT32_MAX) ||
        !cot__job_range(j, AT_KEY + 1, 0, UINT32_MAX))
        return false;
    bool permutation = cot__job_int(j, AT_KIND) == PERMUTATION, known = (unsigned)z->dtype < COT_DTYPE_COUNT;
    if (permutation ? z->dtype != COT_I64 || draw_ndim(j) != 1 : !known || !cot__dtype_is_float(z->dtype))
        return cot__job_illegal(j, permutation ? "a permutation that is no vector of i64" : "numbers, but no floats");
    int ndim = draw_ndim(j);
    z->shape = cot__view_extents(&j->x[0]);
    if (z->shape.ndim + ndim > COT_MAX_NDIM)
        return cot__refuse(j->caller, COT_LIMIT, "a draw of %d axes for steps of %d; there are at most %d", ndim,
                           z->shape.ndim, COT_MAX_NDIM);
    for (int k = 0; k < ndim; k++) z->shape.dim[z->shape.ndim++] = cot__job_int(j, AT_SHAPE + k);
    return true;
}

static void draw_at_run(const cot__job *j) {
    const int64_t *ints = j->attr->ints;
    const cot_key  key = {.word = {(uint32_t)ints[AT_KEY], (uint32_t)ints[AT_KEY + 1]}};
    int64_t        stride[COT_MAX_NDIM], size = cot__count(draw_ndim(j), ints + AT_SHAPE);
    cot__view      part = {NULL, j->z.dtype, draw_ndim(j), ints + AT_SHAPE, stride};
    cot__elements  e;
    cot__strides(part.ndim, part.shape, stride);
    cot__elements_open(&e, j->backend, &j->x[0], COT_I64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) {
            part.data = (char *)j->z.data + (e.first + k) * size * cot__dtype_size(part.dtype);
            draw(j->backend, (int)ints[AT_KIND], cot_key_fold(key, (uint64_t)e.i64[k]), &part,
                 number_of(ints[AT_LOW]), number_of(ints[AT_HIGH]));
        }
}

const cot__op cot__op_draw_at = {.name = "draw_at", .batch = cot__batch_shift, .kind = KIND_NONE,
                                 .attrs = "kind:d key:l",
                                 .formula = "random numbers of the key folded with the step",
                                 .infer = draw_at_infer, .asks = COT__ASKS_DTYPE, .run = draw_at_run,
                                 .cost = {.none = "draws are not counted"},
                                 .operands = "x"};

static cot_var at_step(cot_tape *t, const char *op, int kind, cot_key key, cot_dtype dtype, const cot_shape *shape,
                       double low, double high) {
    int64_t  ints[AT_SHAPE + COT_MAX_NDIM] = {kind, key.word[0], key.word[1], bits_of(low), bits_of(high)};
    char     text[COT__SHAPE_TEXT];
    uint32_t step;
    if (!cot__enter(t, key.step, op, "key's step as", &step)) return INVALID(t);
    cot_dtype d = cot__dtype_at(&t->nodes[step]);
    if (cot__dtype_is_float(d) || d == COT_BOOL)
        return cot__fail(t, COT_DTYPE, "[%s] the step of the key has dtype %s; it must be an integer", op,
                         cot__dtype_name(d));
    if (cot__ndim_at(t, step) != 0)
        return cot__fail(t, COT_SHAPE, "[%s] the step of the key has shape %s; it is one integer", op,
                         cot__shape_text_at(t, step, text));
    if (!cot__check_shape(t, op, shape)) return INVALID(t);
    for (int k = 0; k < shape->ndim; k++) ints[AT_SHAPE + k] = shape->dim[k];
    cot__attr *attr = cot__attr_make(t, op, AT_SHAPE + shape->ndim, ints, 0, NULL);
    cot__type  asked = {.dtype = dtype};
    return attr ? cot__record(t, op, OP_draw_at, 1, &step, attr, &asked) : INVALID(t);
}

cot_key cot_key_at(cot_key key, cot_var step) {
    bool has_one = has_step(key);
    if (has_one) step = cot__invalid(2, (cot_var[]){step, key.step});
    if (has_one && step.tape)
        cot__fail(
            step.tape, COT_VALUE,
            "[key_at] the key has a step already; of two loops it is one integer, outer * steps of the inner + inner");
    key.step = step;
    /* no step at all: an error when it draws */
    if (!step.tape) key.step.id = UINT64_MAX;
    return key;
}

/* ---- choices --------------------------------------------------------------------------------- */

/* z = p, whose elements are within 0 and 1. Values of a body are examples, which may not be so. */
static bool probabilities_check(const cot__job *j) {
    cot__elements e;
    cot__elements_open(&e, j->backend, &j->x[0], COT_F64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) {
            if (e.f64[k] >= 0 && e.f64[k] <= 1) continue;
            if (j->caller->excuse && j->caller->excuse(j->caller, 0)) return true;
            return cot__refuse(j->caller, COT_VALUE, "element %lld of the probabilities is %g; they run from 0 to 1",
                               (long long)(e.first + k), e.f64[k]);
        }
    return true;
}

static void probabilities_run(const cot__job *j) { j->backend->copy(&j->z, &j->x[0]); }

const cot__op cot__op_probabilities = {.name = "probabilities", .batch = cot__batch_shift, .kind = KIND_NONE,
                                       .called = "bernoulli",
                                       .formula = "z = x, where 0 <= x <= 1",
                                       .infer = cot__infer_same, .check = probabilities_check,
                                       .run = probabilities_run,
                                       .cost = {.none = "moves data"},
                                       .operands = "x"};

/* u < p with the 53 bits of f64, so that 0 is never and 1 always true. */
cot_var(cot_bernoulli)(cot_tape *t, cot_key key, cot_var p, cot_shape shape) {
    uint32_t i;
    if (!t) cot__fail(cot__tape_of(1, &p), COT_VAR, "[bernoulli] the tape is NULL; it is where p is");
    if (!cot__usable(t) || !cot__enter(t, p, "bernoulli", "p", &i)) return INVALID(t);
    cot_var wide = cot__record(t, "bernoulli", OP_probabilities, 1, &i, NULL, NULL);
    wide = cot__broadcast_as("bernoulli", wide, shape);
    return cot_less(drawn(t, "bernoulli", COT__UNIFORM, key, COT_F64, &shape, 0, 1), wide);
}

/* The largest of logit + Gumbel noise is position i with probability softmax(logits)[i]. */
cot_var cot_categorical(cot_key key, cot_var logits, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, logits, "categorical", "", &i);
    if (!t) return cot__invalid(1, &logits);
    cot_shape shape = cot__shape_at(t, i);
    char      text[COT__SHAPE_TEXT];
    if (!cot__check_axis(t, "categorical", axis, shape.ndim, &axis)) return INVALID(t);
    if (shape.dim[axis] == 0)
        return cot__fail(t, COT_SHAPE, "[categorical] axis %d of shape %s is empty; there is nothing to choose from",
                         axis, cot__shape_text(shape.ndim, shape.dim, text));
    cot_dtype d = cot__dtype_at(&t->nodes[i]);
    /* halves use f32, otherwise many would tie */
    d = cot__dtype_is_float(d) ? cot__dtype_compute(d) : COT_F64;
    cot_var noise = drawn(t, "categorical", COT__GUMBEL, key, d, &shape, 0, 0),
            sum   = cot_add(cot_detach(VAR(t, i)), noise);
    return cot__categorical(sum, axis);
}

static cot_var permutation(cot_tape *t, const char *op, cot_key key, int64_t n) {
    return drawn(t, op, PERMUTATION, key, COT_I64, &(cot_shape){1, {n}}, 0, 0);
}

cot_var cot_permutation(cot_tape *t, cot_key key, int64_t n) { return permutation(t, "permutation", key, n); }

cot_var cot_shuffle(cot_key key, cot_var x, int axis) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "shuffle", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!cot__check_axis(t, "shuffle", axis, cot__ndim_at(t, i), &axis)) return INVALID(t);
    return cot_take(VAR(t, i), permutation(t, "shuffle", key, cot__shape_at(t, i).dim[axis]), axis);
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* The mask is a constant on the tape, or a function of the step alone: 0 or 1/(1 - rate), so every
 * derivative sees the same one; a dropped inf or NaN is 0. */
cot_var cot_dropout(cot_var x, double rate, cot_key key) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "dropout", "", &i);
    if (!t) return cot__invalid(1, &x);
    if (!(rate >= 0 && rate <= 1))
        return cot__fail(t, COT_VALUE, "[dropout] the rate is %g; it runs from 0 to 1", rate);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[i])) && (i = cot__as(t, i, COT_F64)) == COT__NONE)
        return INVALID(t);
    if (rate == 0) return VAR(t, i);
    cot_dtype d = cot__dtype_at(&t->nodes[i]), wide = cot__dtype_compute(d);
    cot_shape shape = cot__shape_at(t, i);
    cot_var   mask = drawn(t, "dropout", COT__KEEP, key, wide, &shape, rate, rate < 1 ? 1 / (1 - rate) : 0);
    return cot_cast(cot_smul(cot_cast(VAR(t, i), wide), mask), d);
}
