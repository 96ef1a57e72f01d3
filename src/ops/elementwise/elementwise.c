/* elementwise.c: recording an elementwise operation on any mix of scalars, tensors and numbers.
 *
 * Promotion and broadcasting become explicit cast and broadcast_to nodes, so that their derivatives
 * are written once. What remains here is then simple: operands of one compute type, each of the
 * result's shape or an inactive 0-d value that repeats. The fast path for scalars is in
 * scalar.c. */
#include "rules/elementwise_ids.h"
#include "backend/cpu/table/cpu.h"
#include "backend/elements.h"
#include "ops/elementwise/elementwise.h"
#include "pending/pending.h"
#include "tape/examples.h"

#include <string.h>

static const char *const which_of[3][3] = {{""}, {"left", "right"}, {"first", "second", "third"}};

/* The dtype in which the operation is done: promotion over the vars; numbers are weak. */
static cot_dtype common_dtype(const cot_tape *t, int op, int n, const cot_var *xs) {
    int  found = -1;
    bool fraction = false, number = false;
    for (int k = 0; k < n; k++) {
        if (op == OP_where && k == 0) continue;
        if (cot__is_number(xs[k])) {
            fraction |= (uintptr_t)xs[k].tape == 1;
            number = true;
            continue;
        }
        cot_dtype d = cot__dtype_at(&t->nodes[cot__index(xs[k])]);
        found = found < 0 ? (int)d : (int)cot__dtype_promote((cot_dtype)found, d);
    }
    if (found < 0) return fraction ? COT_F64 : COT_I64; /* where(c, 1, 0) */
    bool real = cot__elementwise_table[op].class == REAL;
    if (!cot__dtype_is_float((cot_dtype)found) && (real || fraction)) return COT_F64;
    /* True + 1 is 2 */
    if (found == COT_BOOL && number && cot__elementwise_table[op].class == ARITH) return COT_I64;
    return (cot_dtype)found;
}

static bool broadcast_shapes(cot_tape *t, const char *name, int n, const cot_var *xs, cot_shape *out) {
    out->ndim = 0;
    for (int k = 0; k < n; k++) {
        if (cot__is_number(xs[k])) continue;
        cot__view s = cot__layout_at(t, cot__index(xs[k]));
        if (s.ndim > out->ndim) {
            int shift = s.ndim - out->ndim;
            memmove(out->dim + shift, out->dim, (size_t)out->ndim * sizeof *out->dim);
            for (int i = 0; i < shift; i++) out->dim[i] = 1;
            out->ndim = s.ndim;
        }
        for (int i = 0; i < s.ndim; i++) {
            int64_t *d = &out->dim[out->ndim - s.ndim + i];
            if (*d == s.shape[i] || s.shape[i] == 1) continue;
            if (*d != 1) {
                char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
                cot_shape before;
                broadcast_shapes(t, name, k, xs, &before);
                cot__fail(t, COT_SHAPE,
                          "[%s] shapes %s and %s do not broadcast; counted from the end, extents must be equal or 1",
                          name, cot__shape_text(before.ndim, before.dim, a), cot__shape_text(s.ndim, s.shape, b));
                return false;
            }
            *d = s.shape[i];
        }
    }
    return true;
}

/* A number becomes an immediate where the node has room for it (binary operations), else a 0-d
 * constant. */
static uint32_t take_number(cot_tape *t, int n, cot_var x, cot_dtype dtype, double *immediate) {
    double v = cot__number_value(x);
    bool   exact = (uintptr_t)x.tape == 1 || (x.id + (UINT64_C(1) << 53)) <= (UINT64_C(1) << 54);
    if (n == 2 && exact) {
        *immediate = v;
        return COT__NONE;
    }
    cot__result r;
    if (!cot__result_open(t, &r, "constant", dtype, 0, NULL)) return COT__NONE;
    if ((uintptr_t)x.tape == 2)
        cot__set_i64(t->backend, &r.view, (int64_t)x.id);
    else
        cot__set_f64(t->backend, &r.view, v);
    return cot__index(cot__result_push(t, &r, OP_constant, 0, NULL, NULL));
}

/* The operand as the kernel wants it: right dtype, right shape (or an inactive 0-d value). */
static uint32_t take_var(cot_tape *t, cot_var x, cot_dtype dtype, const cot_shape *shape) {
    cot__node *n = &t->nodes[cot__index(x)];
    if (cot__dtype_at(n) != dtype) x = cot_cast(x, dtype);
    if (t->status != COT_OK) return COT__NONE;
    n = &t->nodes[cot__index(x)];
    bool repeats = !cot__has_axes(n) && !(n->flags & COT__ACTIVE);
    if (!repeats && !cot__has_shape(t, cot__index(x), shape)) x = cot_broadcast_to(x, *shape);
    return cot__index(x);
}

/* The common case: every operand already has the dtype and the shape of the result, so nothing is
 * promoted or broadcast. */
static bool is_uniform(const cot_tape *t, int op, int n, const cot_var *xs, const uint32_t *args) {
    const cot__node *first = &t->nodes[args[0]];
    if (op == OP_where || cot__is_number(xs[0])) return false;
    if (cot__elementwise_table[op].class == REAL && !cot__dtype_is_float(cot__dtype_at(first))) return false;
    for (int k = 1; k < n; k++) {
        const cot__node *other = cot__is_number(xs[k]) ? NULL : &t->nodes[args[k]];
        if (!other || other->kind != first->kind) return false;
        if (!cot__is_tensor(first)) continue;
        const cot__tensor *a = first->value.tensor, *b = other->value.tensor;
        if (a->ndim != b->ndim || memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) != 0) return false;
    }
    return true;
}

/* Brings the operands to one dtype and shape by recorded casts and broadcasts; numbers become
 * immediates or constants. */
static bool unify(cot_tape *t, int op, int n, const cot_var *xs, uint32_t *args, cot_dtype *dtype, cot_shape *shape,
                  double *immediate) {
    *dtype = common_dtype(t, op, n, xs);
    if (!broadcast_shapes(t, cot__elementwise_table[op].name, n, xs, shape)) return false;
    for (int k = 0; k < n; k++) {
        cot_dtype d = op == OP_where && k == 0 ? COT_BOOL : *dtype;
        args[k] = cot__is_number(xs[k]) ? take_number(t, n, xs[k], d, immediate) : take_var(t, xs[k], d, shape);
        if (t->status != COT_OK) return false;
    }
    return true;
}

static bool all_numbers(int n, const cot_var *xs) {
    for (int k = 0; k < n; k++)
        if (!cot__is_number(xs[k])) return false;
    return true;
}

cot_var cot__fold(int op, cot_dtype compute, int n, const cot_var *xs) {
    cot__value v[3] = {{0}}, z = {0};
    for (int k = 0; k < n; k++) {
        if (compute == COT_I64)
            v[k].i64 = (int64_t)xs[k].id;
        else
            cot__store_f64(&v[k], compute, cot__number_value(xs[k]));
    }
    cot__host_value(op, compute, &v[0], &v[1], &v[2], &z);
    return compute == COT_I64 ? cot_integer(z.i64) : cot_number(cot__load_f64(&z, compute));
}

/* Numbers alone make a number: an integer where all are and the operation keeps integers. */
static cot_var fold_numbers(int op, int n, const cot_var *xs) {
    bool whole = cot__takes_integers(op);
    for (int k = 0; k < n; k++) whole &= (uintptr_t)xs[k].tape == 2;
    cot_dtype compute = whole ? COT_I64 : COT_F64;
    return cot__fold(op, compute, n, xs);
}

/* Short arrays are done at once, with no word to the work that waits. */
static void compute_result(cot_tape *t, const cot__result *r, int op, cot_dtype compute, int n, const uint32_t *args,
                           const cot__value *number, int64_t size) {
    if (LIKELY(size < cot__pending_from && !t->pending.patients)) {
        cot__view x[3];
        for (int k = 0; k < n; k++)
            x[k] = args[k] == COT__NONE ? cot__number_view(number, compute) : cot__look(t, args[k]);
        cot__run_value(t->backend, op, compute, n, x, &r->view);
        return;
    }
    cot__bound x[3], z = {r->view, r->tensor ? r->tensor->storage : NULL};
    for (int k = 0; k < n; k++)
        x[k] = args[k] == COT__NONE ? (cot__bound){cot__number_view(number, compute), NULL} : cot__bound_at(t, args[k]);
    if (!t->pending.patients || !cot__pending_extend(t, op, n, x, &z)) cot__pending_value(t, op, compute, n, x, &z);
}

cot_var cot__elementwise(int op, int n, const cot_var *xs) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    cot_tape                    *t = cot__tape_of(n, xs);
    if (!t) return all_numbers(n, xs) ? fold_numbers(op, n, xs) : cot__invalid(n, xs);
    uint32_t args[3] = {COT__NONE, COT__NONE, COT__NONE};
    for (int k = 0; k < n; k++)
        if (!cot__is_number(xs[k]) && !cot__operand(t, xs[k], e->name, which_of[n - 1][k], &args[k])) return INVALID(t);

    cot_dtype      dtype;
    cot_shape      shape;
    const int64_t *dims = shape.dim;
    int            ndim;
    int64_t        size;
    double         immediate = 0;
    if (is_uniform(t, op, n, xs, args)) {
        cot__view v = cot__layout_at(t, args[0]);
        dtype = v.dtype;
        ndim = v.ndim;
        dims = v.shape; /* of the operand's record, which does not move */
        size = cot__size_at(t, args[0]);
    } else {
        if (!unify(t, op, n, xs, args, &dtype, &shape, &immediate)) return INVALID(t);
        ndim = shape.ndim;
        if ((size = cot__checked_size(t, e->name, dtype, ndim, dims)) < 0) return INVALID(t);
    }

    cot__result r;
    cot_dtype   compute = cot__dtype_compute(dtype), result = e->class == TEST ? COT_BOOL : dtype;
    if (!cot__result_open_sized(t, &r, e->name, result, ndim, dims, size)) return INVALID(t);
    cot__value number;
    cot__store_f64(&number, compute, immediate);
    if (UNLIKELY(cot__has_examples(t, n, args))) cot__result_is_example(t, &r);
    else compute_result(t, &r, op, compute, n, args, &number, size);
    cot_var z = cot__result_push(t, &r, op, n, args, NULL);
    if (n == 2 && z.id != UINT64_MAX) t->nodes[cot__index(z)].extra.number = immediate;
    return z;
}
