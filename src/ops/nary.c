/* nary.c: sums and dot products over scalars as one node each: worth more than any inlining when a program works on scalars. */
#include "ops/structural.h"

/* All operands must be alive 0-d values of one float dtype; anything else is told to use the tensor forms. */
static bool take_scalars(cot_tape *t, const char *op, const char *what, int n, const cot_var *xs, uint32_t *out, cot_dtype dtype) {
    for (int k = 0; k < n; k++) {
        if (cot__is_number(xs[k])) {
            cot_var c = cot_cast(cot_constant(t, cot__number_value(xs[k])), dtype);
            if (c.id == UINT64_MAX) return false;
            out[k] = cot__index(c);
            continue;
        }
        if (!cot__operand(t, xs[k], op, what, &out[k])) return false;
        if (cot__is_tensor(&t->nodes[out[k]])) {
            cot__fail(t, COT_SHAPE, "[%s] element %d is a tensor; every element must be a scalar, use cot_stack or cot_dot for tensors", op, k);
            return false;
        }
        if ((out[k] = cot__as(t, out[k], dtype)) == COT__NONE) return false;
    }
    return true;
}

static cot_dtype common(const cot_var *xs, int n, cot_dtype d, bool *any) {
    for (int k = 0; k < n; k++)
        if (cot_is_valid(xs[k])) d = *any ? cot__dtype_promote(d, cot_dtype_of(xs[k])) : cot_dtype_of(xs[k]), *any = true;
    return d;
}

static double sum_f64(const cot_tape *t, const uint32_t *x, int n) {
    double s = 0;
    for (int k = 0; k < n; k++) s += t->nodes[x[k]].value.f64;
    return s;
}

static double dot_f64(const cot_tape *t, const uint32_t *x, const uint32_t *y, int n) {
    double s = 0;
    for (int k = 0; k < n; k++) s += t->nodes[x[k]].value.f64 * t->nodes[y[k]].value.f64;
    return s;
}

/* The other dtypes: products and sums in f32, rounded once at the end for bf16 and f16. */
static double slow(const cot_tape *t, const uint32_t *x, const uint32_t *y, int n) {
    float s = 0;
    for (int k = 0; k < n; k++) {
        float a = (float)cot__load_f64(&t->nodes[x[k]].value, cot__dtype_at(&t->nodes[x[k]]));
        float b = y ? (float)cot__load_f64(&t->nodes[y[k]].value, cot__dtype_at(&t->nodes[y[k]])) : 1;
        s += a * b;
    }
    return (double)s;
}

/* The common case in one pass: everything an f64 scalar of one tape. `flags` gathers their activity. */
static bool take_f64(const cot_tape *t, int n, const cot_var *xs, uint32_t *out, uint32_t *flags) {
    for (int k = 0; k < n; k++) {
        uint32_t i = (uint32_t)xs[k].id;
        if (xs[k].tape != t || i >= t->count) return false;
        const cot__node *x = &t->nodes[i];
        if (x->kind != COT_F64 || x->stamp != (uint32_t)(xs[k].id >> 32)) return false;
        *flags |= x->flags;
        out[k] = i;
    }
    return true;
}

static cot_var record_f64(cot_tape *t, int op, uint32_t flags, cot__attr *attr, double value) {
    uint32_t i = t->count++;
    t->nodes[i] = (cot__node){.op = (uint16_t)op, .kind = COT_F64, .flags = (uint8_t)((flags & t->active_mask) | COT__NARY),
                              .stamp = t->stamp, .a = COT__NONE, .b = COT__NONE, .extra.attr = attr, .value.f64 = value};
    return (cot_var){t, (uint64_t)t->stamp << 32 | i};
}

static cot_var record(int op, const char *name, int n, const cot_var *xs, const cot_var *ys) {
    cot_tape *t = cot__tape_of(n > 0 ? n : 0, xs);
    if (!t && ys) t = cot__tape_of(n > 0 ? n : 0, ys);
    if (!t) return cot__invalid(n > 0 ? n : 0, xs);
    cot__attr *attr = cot__attr_make(t, name, 0, NULL, ys ? 2 * n : n, NULL);
    uint32_t   flags = 0;
    if (attr && t->count < t->fast_limit && take_f64(t, n, xs, attr->args, &flags) &&
        (!ys || take_f64(t, n, ys, attr->args + n, &flags)))
        return record_f64(t, op, flags, attr, ys ? dot_f64(t, attr->args, attr->args + n, n) : sum_f64(t, attr->args, n));
    bool      any = false;
    cot_dtype dtype = common(xs, n, COT_F64, &any);
    if (ys) dtype = common(ys, n, dtype, &any);
    if (!cot__dtype_is_float(dtype)) dtype = COT_F64;
    if (!attr || !take_scalars(t, name, "first", n, xs, attr->args, dtype)) return INVALID(t);
    if (ys && !take_scalars(t, name, "second", n, ys, attr->args + n, dtype)) return INVALID(t);
    cot__result r;
    if (!cot__result_open(t, &r, name, dtype, 0, NULL)) return INVALID(t);
    const uint32_t *x = attr->args, *y = ys ? attr->args + n : NULL;
    if (dtype == COT_F64)
        r.scalar.f64 = y ? dot_f64(t, x, y, n) : sum_f64(t, x, n);
    else
        cot__store_f64(&r.scalar, dtype, slow(t, x, y, n));
    return cot__result_push(t, &r, op, (int)attr->nargs, attr->args, attr);
}

cot_var(cot_sum_of)(int n, const cot_var *xs) { return record(OP_sum_of, "sum_of", n, xs, NULL); }
cot_var(cot_dot_of)(int n, const cot_var *xs, const cot_var *ys) { return record(OP_dot_of, "dot_of", n, xs, ys); }

static void sum_of_vjp(cot__rule *r) {
    int n = cot__nargs(cot__rule_node(r));
    for (int k = 0; k < n; k++) cot__give(r, k, r->g);
}

static void dot_of_vjp(cot__rule *r) {
    int half = cot__nargs(cot__rule_node(r)) / 2;
    for (int k = 0; k < half; k++) { /* pair by pair, as the sweep over numbers: an operand may appear in both halves */
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

static cot_var nary_apply(cot__rule *r, const cot_var *xs) {
    int n = cot__nargs(cot__rule_node(r));
    return cot__rule_node(r)->op == OP_sum_of ? cot_sum_of(n, xs) : cot_dot_of(n / 2, xs, xs + n / 2);
}

const cot__op cot__op_sum_of = {.name = "sum_of", .batch = cot__batch_nary, .kind = KIND_GENERIC, .formula = "Σ xs[i]",
                                .vjp = sum_of_vjp, .jvp = sum_of_jvp,
                                .apply = nary_apply};
/* Scalars cannot be overwritten in place, so nothing needs to be noted as saved; the values are read all the same. */
const cot__op cot__op_dot_of = {.name = "dot_of", .batch = cot__batch_nary, .kind = KIND_GENERIC, .formula = "Σ xs[i]·ys[i]",
                                .vjp = dot_of_vjp, .jvp = dot_of_jvp,
                                .apply = nary_apply};
