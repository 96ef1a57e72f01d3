/* nary.c: sums, dot products and log-sum-exp over scalars as one node each: worth more than any
 * inlining when a program works on scalars.
 *
 * The sweeps over numbers know these operations by themselves (diff/engine/scalar_sweep.inc,
 * diff/second/dual.c); the rules here are for what is recorded, and take their contributions in the
 * same order. What log-sum-exp keeps with its node for these sweeps is seen by no operation. */
#include "backend/elements.h"
#include "base/math/elementary.h"
#include "ops/costs.h"
#include "ops/structural.h"

#include <limits.h>
#include <math.h>

/* All operands must be alive 0-d values of one float dtype; anything else is told to use the tensor
 * forms. */
static bool take_scalars(cot_tape *t, const char *op, const char *what, int n, const cot_var *xs, uint32_t *out,
                         cot_dtype dtype) {
    for (int k = 0; k < n; k++) {
        if (cot__is_number(xs[k])) {
            cot_var c = cot_cast(cot_constant(t, cot__number_value(xs[k])), dtype);
            if (c.id == UINT64_MAX) return false;
            out[k] = cot__index(c);
            continue;
        }
        if (!cot__operand(t, xs[k], op, what, &out[k])) return false;
        if (cot__has_axes(&t->nodes[out[k]])) {
            cot__fail(
                t, COT_SHAPE,
                "[%s] element %d is a tensor; every element must be a scalar, use cot_stack or cot_dot for tensors", op,
                k);
            return false;
        }
        if ((out[k] = cot__as(t, out[k], dtype)) == COT__NONE) return false;
    }
    return true;
}

static cot_dtype common(const cot_var *xs, int n, cot_dtype d, bool *any) {
    for (int k = 0; k < n; k++)
        if (cot_is_valid(xs[k]))
            d = *any ? cot__dtype_promote(d, cot_dtype_of(xs[k])) : cot_dtype_of(xs[k]), *any = true;
    return d;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Operand k of a list: of f64 nodes, which the fast way reads where they are, of any nodes, or of a
 * job. Functions that take a reader are inlined, and so is the reader. */
typedef double reader(const void *list, int k);
#define INLINED static inline __attribute__((always_inline))

typedef struct listed { const cot_tape *t; const uint32_t *x; } listed;
INLINED double of_node(const void *list, int k) {
    const listed *l = list;
    return l->t->nodes[l->x[k]].value.f64;
}

INLINED double of_any_node(const void *list, int k) {
    const listed    *l = list;
    const cot__node *n = &l->t->nodes[l->x[k]];
    if (LIKELY(!cot__is_tensor(n))) return cot__load_f64(&n->value, cot__dtype_at(n));
    cot__view v = cot__look(l->t, l->x[k]);
    return cot__element_f64(l->t->backend, &v, 0);
}

INLINED double of_job(const void *list, int k) {
    const cot__job *j = list;
    if (LIKELY(cot__on_host(j->backend))) return cot__load_f64(j->x[k].data, j->x[k].dtype);
    return cot__element_f64(j->backend, &j->x[k], 0);
}

INLINED double sum_f64(reader *at, const void *list, int n) {
    double s = 0;
    for (int k = 0; k < n; k++) s += at(list, k);
    return s;
}

/* The second factors stand behind the n first ones. */
INLINED double dot_f64(reader *at, const void *list, int n) {
    double s = 0;
    for (int k = 0; k < n; k++) s += at(list, k) * at(list, k + n);
    return s;
}

/* The other dtypes: products and sums in f32, rounded once at the end for bf16 and f16. */
static double sum_f32(const cot__job *j, int n, bool dot) {
    float s = 0;
    for (int k = 0; k < n; k++) {
        float a = (float)of_job(j, k), b = dot ? (float)of_job(j, k + n) : 1;
        s += a * b;
    }
    return (double)s;
}

/* The largest value; a NaN if there is one. Two selects a value and no jump: where the largest
 * stands cannot be foretold. */
INLINED double top_of(reader *at, const void *list, int n) {
    double top = -INFINITY;
    bool   odd = false;
    for (int k = 0; k < n; k++) {
        const double v = at(list, k);
        top = v > top ? v : top;
        odd |= v != v;
    }
    return odd ? (double)NAN : top;
}

/* What is subtracted before exp: the largest value, but 0 where all are -inf, so that all
 * exponentials are 0 and not NaN. */
static double shift_of(double top) { return top == -INFINITY ? 0 : top; }

/* The derivative is e/s with e = exp(x - shift) and s = Σ e. Both are kept with the node, so the
 * sweeps need no exponential; they are made as the rule below records them, with the same
 * functions, and so have the same bits. e, s NULL: nobody keeps them. */
INLINED double logsumexp_f64(reader *at, const void *list, int n, double *e, double *s) {
    double       top = top_of(at, list, n), sum = 0;
    const double shift = shift_of(top);
    for (int k = 0; k < n; k++) {
        double v = cot__exp(at(list, k) - shift);
        sum += v;
        if (e) e[k] = v;
    }
    if (s) *s = sum;
    return isfinite(top) ? top + cot__log(sum) : top;
}

static double logsumexp_f32(const cot__job *j, double *e, double *s) {
    double      top = top_of(of_job, j, j->n);
    const float shift = (float)shift_of(top);
    float       sum = 0;
    for (int k = 0; k < j->n; k++) {
        float v = cot__expf((float)of_job(j, k) - shift);
        sum += v;
        if (e) e[k] = (double)v;
    }
    if (s) *s = (double)sum;
    return isfinite(top) ? (double)((float)top + cot__logf(sum)) : top;
}

/* ---- running without a tape ------------------------------------------------------------------ */

/* Scalars of one float dtype. */
static bool list_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, INT_MAX, 0) || !cot__job_float(j, 0)) return false;
    *z = (cot__type){j->x[0].dtype, {0}};
    for (int k = 0; k < j->n; k++) {
        if (LIKELY(j->x[k].dtype == z->dtype && j->x[k].ndim == 0)) continue;
        return cot__job_dtype(j, k, z->dtype) && cot__job_shape(j, k, 0, NULL);
    }
    return true;
}

static bool dot_of_infer(const cot__job *j, cot__type *z) {
    return j->n % 2 == 0 ? list_infer(j, z) : cot__job_illegal(j, "%d operands, which are no pairs", j->n);
}

static void store(const cot__job *j, double value) { cot__set_f64(j->backend, &j->z, value); }

static void sum_of_run(const cot__job *j) {
    store(j, j->z.dtype == COT_F64 ? sum_f64(of_job, j, j->n) : sum_f32(j, j->n, false));
}

static void dot_of_run(const cot__job *j) {
    store(j, j->z.dtype == COT_F64 ? dot_f64(of_job, j, j->n / 2) : sum_f32(j, j->n / 2, true));
}

static void logsumexp_keeping(const cot__job *j, double *e, double *s) {
    store(j, j->z.dtype == COT_F64 ? logsumexp_f64(of_job, j, j->n, e, s) : logsumexp_f32(j, e, s));
}
static void logsumexp_of_run(const cot__job *j) { logsumexp_keeping(j, NULL, NULL); }

/* ---- recording ------------------------------------------------------------------------------- */

/* A list of operands, before it `numbers` doubles that the operation keeps. */
static cot__attr *list_make(cot_tape *t, const char *op, size_t nargs, size_t numbers) {
    cot__attr *a = cot__arena(t, sizeof *a + numbers * sizeof(double) + nargs * sizeof(uint32_t), op);
    if (!a) return NULL;
    *a = (cot__attr){.nargs = (uint32_t)nargs, .pointer = a->ints, .args = (uint32_t *)((double *)a->ints + numbers)};
    return a;
}
static double *numbers_of(cot__attr *a) { return (double *)a->ints; }

/* The common case in one pass: everything an f64 scalar of one tape. `flags` gathers their
 * activity. */
static bool take_f64(const cot_tape *t, int n, const cot_var *xs, uint32_t *out, uint32_t *flags) {
    uint32_t f = 0, count = t->count;
    for (int k = 0; k < n; k++) {
        uint32_t i = (uint32_t)xs[k].id;
        if (xs[k].tape != t || i >= count) return false;
        const cot__node *x = &t->nodes[i];
        if (x->kind != COT_F64 || x->stamp != (uint32_t)(xs[k].id >> 32)) return false;
        f |= x->flags;
        out[k] = i;
    }
    *flags |= f;
    return true;
}

static double value_f64(const cot_tape *t, int op, cot__attr *list, int n) {
    const listed of = {t, list->args};
    return op == OP_dot_of   ? dot_f64(of_node, &of, n)
           : op == OP_sum_of ? sum_f64(of_node, &of, n)
                             : logsumexp_f64(of_node, &of, n, numbers_of(list), &list->number);
}

static cot_var record_f64(cot_tape *t, int op, uint32_t flags, cot__attr *list, double value) {
    uint32_t i = t->count++;
    t->nodes[i] = (cot__node){.op         = (uint16_t)op,
                              .kind       = COT_F64,
                              .flags      = (uint8_t)((flags & t->active_mask) | COT__NARY),
                              .stamp      = t->stamp,
                              .a          = COT__NONE,
                              .b          = COT__NONE,
                              .extra.attr = list,
                              .value.f64  = value};
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

static __attribute__((noinline)) cot_var record_other(cot_tape *t, int op, const char *name, int n, const cot_var *xs,
                                                      const cot_var *ys, cot__attr *list) {
    bool      any = false;
    cot_dtype dtype = common(xs, n, COT_F64, &any);
    if (ys) dtype = common(ys, n, dtype, &any);
    if (!cot__dtype_is_float(dtype)) dtype = COT_F64;
    if (!take_scalars(t, name, "first", n, xs, list->args, dtype)) return INVALID(t);
    if (ys && !take_scalars(t, name, "second", n, ys, list->args + n, dtype)) return INVALID(t);
    int nargs = (int)list->nargs;
    if (op != OP_logsumexp_of) return cot__record(t, name, op, nargs, list->args, list, NULL);
    cot__recording r;
    if (!cot__record_open(&r, t, name, op, nargs, list->args, list, NULL)) return INVALID(t);
    if (!cot__recording_read(&r)) return INVALID(t);
    logsumexp_keeping(&r.job, numbers_of(list), &list->number);
    return cot__record_push(&r);
}

INLINED cot_var record(int op, const char *name, int n, const cot_var *xs, const cot_var *ys) {
    cot_tape *t = cot__tape_of(n > 0 ? n : 0, xs);
    if (!t && ys) t = cot__tape_of(n > 0 ? n : 0, ys);
    if (!t) return cot__invalid(n > 0 ? n : 0, xs);
    cot__attr *list = list_make(t, name, (ys ? 2 : 1) * (size_t)n, op == OP_logsumexp_of ? (size_t)n : 0);
    if (!list) return INVALID(t);
    uint32_t flags = 0;
    if (LIKELY(t->count < t->fast_limit && take_f64(t, n, xs, list->args, &flags) &&
               (!ys || take_f64(t, n, ys, list->args + n, &flags))))
        return record_f64(t, op, flags, list, value_f64(t, op, list, n));
    return record_other(t, op, name, n, xs, ys, list);
}

cot_var(cot_sum_of)(int n, const cot_var *xs) { return record(OP_sum_of, "sum_of", n, xs, NULL); }
cot_var(cot_dot_of)(int n, const cot_var *xs, const cot_var *ys) {
    if (LIKELY((xs && ys) || n <= 0)) return record(OP_dot_of, "dot_of", n, xs, ys);
    cot_tape *t = cot__tape_of(n, xs ? xs : ys);
    if (t) cot__list_given(t, "dot_of", xs ? "ys" : "xs", n, NULL);
    return cot__invalid(n, xs ? xs : ys);
}
cot_var(cot_logsumexp_of)(int n, const cot_var *xs) { return record(OP_logsumexp_of, "logsumexp_of", n, xs, NULL); }

/* ---- rules ----------------------------------------------------------------------------------- */

static void sum_of_vjp(cot__rule *r) {
    int n = cot__nargs(cot__rule_node(r));
    for (int k = 0; k < n; k++) cot__give(r, k, r->g);
}

static void dot_of_vjp(cot__rule *r) {
    int half = cot__nargs(cot__rule_node(r)) / 2;
    for (int k = 0; k < half; k++) {
        /* pair by pair, as the sweep over numbers: an operand may appear in both halves */
        if (cot__rule_wants(r, k)) cot__give(r, k, cot_smul(r->g, cot__rule_x(r, k + half)));
        if (cot__rule_wants(r, k + half)) cot__give(r, k + half, cot_smul(r->g, cot__rule_x(r, k)));
    }
}

static void sum_of_jvp(cot__rule *r) {
    cot_var sum = INVALID(r->t);
    int     n = cot__nargs(cot__rule_node(r));
    for (int k = 0; k < n; k++)
        if (!cot__failed(r->tangents[k])) sum = cot__failed(sum) ? r->tangents[k] : cot_add(sum, r->tangents[k]);
    r->tangent = sum;
}

static void dot_of_jvp(cot__rule *r) {
    cot_var sum = INVALID(r->t);
    int     n = cot__nargs(cot__rule_node(r));
    for (int k = 0; k < n; k++) {
        if (cot__failed(r->tangents[k])) continue;
        cot_var term = cot_smul(r->tangents[k], cot__rule_x(r, k < n / 2 ? k + n / 2 : k - n / 2));
        sum = cot__failed(sum) ? term : cot_add(sum, term);
    }
    r->tangent = sum;
}

/* The same shift as an operation, for a body, which is recorded once and for other values too. It
 * has no derivative: what it takes from every exponent it takes from none of the quotients. */
static cot_var recorded_shift(cot__rule *r, int n) {
    cot_var top = cot_detach(cot__rule_x(r, 0));
    for (int k = 1; k < n; k++) top = cot_maximum(top, cot_detach(cot__rule_x(r, k)));
    return cot_where(cot_equal(top, -INFINITY), 0.0, top);
}

/* Recorded: the exponentials, in the tape's arena, and their sum. */
static cot_var *exponentials(cot__rule *r, cot_var *s) {
    const cot__node *node = cot__rule_node(r);
    const uint32_t  *x = node->extra.attr->args;
    const int        n = cot__nargs(node);
    cot_var         *e = cot__arena(r->t, (size_t)n * sizeof *e, "logsumexp_of");
    if (!e) return NULL;
    double        top = top_of(of_any_node, &(listed){r->t, x}, n);
    const cot_var shift = r->t->mode.body ? recorded_shift(r, n) : cot_number(shift_of(top));
    for (int k = 0; k < n; k++) e[k] = cot_exp(cot_sub(cot__rule_x(r, k), shift));
    *s = cot_sum_of(n, e);
    return e;
}

static void logsumexp_of_vjp(cot__rule *r) {
    const int      n = cot__nargs(cot__rule_node(r));
    cot_var        s;
    const cot_var *e = exponentials(r, &s);
    if (!e) return;
    const cot_var g = cot_sdiv(r->g, s);
    for (int k = 0; k < n; k++)
        if (cot__rule_wants(r, k)) cot__give(r, k, cot_smul(g, e[k]));
}

static void logsumexp_of_jvp(cot__rule *r) {
    const int      n = cot__nargs(cot__rule_node(r));
    cot_var        s, sum = INVALID(r->t);
    const cot_var *e = exponentials(r, &s);
    if (!e) return;
    for (int k = 0; k < n; k++) {
        if (cot__failed(r->tangents[k])) continue;
        cot_var term = cot_smul(r->tangents[k], e[k]);
        sum = cot__failed(sum) ? term : cot_add(sum, term);
    }
    r->tangent = cot__failed(sum) ? sum : cot_sdiv(sum, s);
}

/* As lists, which the sweeps over numbers read, and with the exponentials. */
static cot_var nary_apply(cot__rule *r, const cot_var *xs) {
    int n = cot__nargs(cot__rule_node(r));
    int op = cot__rule_node(r)->op;
    return op == OP_sum_of         ? cot_sum_of(n, xs)
           : op == OP_logsumexp_of ? cot_logsumexp_of(n, xs)
                                   : cot_dot_of(n / 2, xs, xs + n / 2);
}

/* n - 1 sums of n operands; of dot_of, n products and n - 1 sums of 2n operands. */
static double sum_of_cost(const cot_tape *t, uint32_t node) { return cot__nargs(&t->nodes[node]) - 1; }
/* As logsumexp: max, subtract, exp and add for each operand; log, add. */
static double logsumexp_of_cost(const cot_tape *t, uint32_t node) { return 4 * cot__nargs(&t->nodes[node]) + 2; }

const cot__op cot__op_sum_of = {.name     = "sum_of",
                                .batch    = cot__batch_nary,
                                .kind     = KIND_GENERIC,
                                .formula  = "z = Σ x[i]; x̄[i] += z̄",
                                .vjp      = sum_of_vjp,
                                .jvp      = sum_of_jvp,
                                .apply    = nary_apply,
                                .infer    = list_infer,
                                .run      = sum_of_run,
                                .cost     = {.more = sum_of_cost},
                                .linear   = 0x7fu,
                                .operands = "x*"};
/* x[i] is multiplied by y[i]. */
static int dot_of_factor(int k, int n) { return k < n / 2 ? k + n / 2 : k - n / 2; }

/* Scalars cannot be overwritten in place, so nothing needs to be noted as saved; the values are
 * read all the same. */
const cot__op cot__op_dot_of       = {.name         = "dot_of",
                                      .sweeps_alone = true,
                                      .batch        = cot__batch_nary,
                                      .kind         = KIND_GENERIC,
                                      .formula      = "z = Σ x[i]·y[i]; x̄[i] += z̄·y[i], ȳ[i] += z̄·x[i]",
                                      .vjp          = dot_of_vjp,
                                      .jvp          = dot_of_jvp,
                                      .apply        = nary_apply,
                                      .infer        = dot_of_infer,
                                      .run          = dot_of_run,
                                      .cost         = {.more = sum_of_cost},
                                      .linear       = 0x7fu,
                                      .factor       = dot_of_factor,
                                      .operands     = "x* y*",
                                      .unwatched    = 0x7fu};
const cot__op cot__op_logsumexp_of = {.name         = "logsumexp_of",
                                      .sweeps_alone = true,
                                      .batch        = cot__batch_nary,
                                      .kind         = KIND_GENERIC,
                                      .formula      = "z = log Σ exp(xs[i]); x̄s[i] += z̄ exp(xs[i] - z)",
                                      .vjp          = logsumexp_of_vjp,
                                      .jvp          = logsumexp_of_jvp,
                                      .apply        = nary_apply,
                                      .infer        = list_infer,
                                      .run          = logsumexp_of_run,
                                      .cost         = {.more = logsumexp_of_cost},
                                      .operands     = "x*",
                                      .unwatched    = 0x7fu};
