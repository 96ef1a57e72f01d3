/* elementwise.c: recording an elementwise operation on any mix of scalars, tensors and numbers.
 *
 * Promotion and broadcasting become explicit cast and broadcast_to nodes, so that their derivatives are written once. What remains
 * here is then simple: operands of one compute type, each of the result's shape or an inactive 0-d value that repeats.
 * The fast path for scalars is in scalar.c. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"
#include "ops/elementwise.h"

#include <string.h>

static const char *const which_of[3][3] = {{""}, {"left", "right"}, {"first", "second", "third"}};

/* ---- running ------------------------------------------------------------------------------------------------------------- */

static const int64_t zero_strides[COT_MAX_NDIM];

static bool is_plain(const cot__view *v, cot_dtype compute) {
    return v->dtype == compute && cot__is_contiguous(v->ndim, v->shape, v->stride);
}

/* A 0-d operand next to a tensor is that tensor's shape with strides 0. */
static cot__view spread(const cot__view *x, const cot__view *z) {
    return x->ndim == z->ndim ? *x : (cot__view){x->data, x->dtype, z->ndim, z->shape, zero_strides};
}

/* Blocks of every operand and a buffer for each that is not already a plain array of the compute type. */
typedef struct feed {
    int         n;
    cot__cursor cursor[7];
    union { double f64[COT__BLOCK]; int64_t i64[COT__BLOCK]; } buffer[7];
} feed;

static void feed_add(feed *f, const cot__view *v, const cot__view *z, cot_dtype compute) {
    cot__view full = spread(v, z);
    cot__cursor_open(&f->cursor[f->n++], &full, compute);
}

static const void *feed_next(feed *f, int k, int n) { return cot__cursor_load(&f->cursor[k], n, &f->buffer[k]); }

/* A run of elementwise kernels over one set of operands: z = value(xs), or for each output out (+)= partial(g, xs, z). Shared out in parts
 * of whole blocks. */
typedef struct output {
    cot__partial_kernel partial;
    cot__view           to;
    bool                accumulate;
    bool                direct; /* a plain array that is only written: the kernel may write there itself */
    int                 g;      /* which of the views is g */
} output;

typedef struct run {
    cot__value_kernel value; /* NULL: partials */
    cot_dtype         compute;
    int               n, arity, outputs; /* views: xs, or xs, z, and the gs */
    cot__view         x[7];
    output            out[3];
    bool              plain, simple; /* all of it plain arrays, one direct output; see is_simple */
    int64_t           size, parts;
} run;

typedef union block { double f64[COT__BLOCK]; int64_t i64[COT__BLOCK]; } block;

static void call(const run *r, int k, int n, const void *const *p, void *to) {
    if (r->value) r->value(n, p[0], p[1], p[2], to);
    else r->out[k].partial(n, p[r->out[k].g], p[0], r->arity > 1 ? p[1] : NULL, r->arity > 2 ? p[2] : NULL, p[r->arity], to);
}

/* All plain arrays: one call, unless the number of elements is too large for it. */
static void run_plain(const run *r, int64_t start, int64_t stop) {
    int64_t size = cot__dtype_size(r->compute), most = 1 << 30;
    for (int64_t at = start; at < stop; at += most) {
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++) p[k] = (const char *)r->x[k].data + at * size;
        call(r, 0, (int)(stop - at < most ? stop - at : most), p, (char *)r->out[0].to.data + at * size);
    }
}

/* All kernels on one block, the first one last, then what is written from buffers: the first output may be one of the operands, and others may
 * add to it. */
static void run_blocks(const run *r, int64_t start, int64_t stop) {
    feed        f;
    cot__cursor to[3];
    block       result[3];
    int64_t     size = cot__dtype_size(r->compute), most = (int64_t)sizeof(block) / size;
    f.n = 0; /* not the rest: zeroing the buffers would cost more than a short vector's work */
    for (int k = 0; k < r->n; k++) feed_add(&f, &r->x[k], &r->out[0].to, r->compute);
    for (int k = 0; k < r->outputs; k++) cot__cursor_open(&to[k], &r->out[k].to, r->compute);
    if (start > 0) {
        for (int k = 0; k < r->n; k++) cot__cursor_seek(&f.cursor[k], start);
        for (int k = 0; k < r->outputs; k++) cot__cursor_seek(&to[k], start);
    }
    for (int64_t at = start; at < stop; at += most) {
        int         m = (int)(stop - at < most ? stop - at : most);
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++) p[k] = feed_next(&f, k, m);
        for (int k = r->outputs - 1; k >= 0; k--) call(r, k, m, p, r->out[k].direct ? (char *)r->out[k].to.data + at * size : (char *)&result[k]);
        for (int k = 0; k < r->outputs; k++) {
            if (r->out[k].direct) continue;
            if (r->out[k].accumulate) cot__cursor_add(&to[k], m, &result[k]);
            else cot__cursor_store(&to[k], m, &result[k]);
        }
    }
}

/* The same where every view is a plain array or a number that repeats: longer blocks, and no cursors. */
enum { LONG = 512, REPEATS = 2 };

static void run_simple(const run *r, int64_t start, int64_t stop) {
    union { double f64[LONG]; int64_t i64[LONG]; } result[3], repeated[REPEATS];
    int64_t     size = cot__dtype_size(r->compute), most = (int64_t)sizeof *result / size;
    const void *base[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    int         buffers = 0, used = (int)(stop - start < most ? stop - start : most);
    for (int k = 0; k < r->n; k++) {
        if (r->x[k].ndim > 0) continue;
        base[k] = &repeated[buffers++];
        cot__strip(r->compute, r->x[k].dtype)(&repeated[buffers - 1], 1, r->x[k].data, 0, used);
    }
    for (int64_t at = start; at < stop; at += most) {
        int         m = (int)(stop - at < most ? stop - at : most);
        const void *p[7] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
        for (int k = 0; k < r->n; k++) p[k] = base[k] ? base[k] : (const char *)r->x[k].data + at * size;
        for (int k = r->outputs - 1; k >= 0; k--) call(r, k, m, p, r->out[k].direct ? (char *)r->out[k].to.data + at * size : (char *)&result[k]);
        for (int k = 0; k < r->outputs; k++)
            if (!r->out[k].direct) cot__strip_add((char *)r->out[k].to.data + at * size, r->compute, 1, &result[k], r->compute, 1, m);
    }
}

/* Operands that are plain or repeat (a view with strides 0 counts), outputs that are plain and written directly or added to. */
static bool is_simple(run *r) {
    int repeats = 0;
    for (int k = 0; k < r->outputs; k++)
        if (!is_plain(&r->out[k].to, r->compute) || (!r->out[k].direct && !r->out[k].accumulate)) return false;
    for (int k = 0; k < r->n; k++) {
        cot__view *x = &r->x[k];
        bool       same = true;
        for (int i = 0; i < x->ndim; i++) same &= x->stride[i] == 0 || x->shape[i] == 1;
        if (x->ndim == r->out[0].to.ndim && is_plain(x, r->compute) && !(same && r->size > 1)) continue;
        if (!same || ++repeats > REPEATS) return false;
        x->ndim = 0;
    }
    return true;
}

static void run_part(void *ctx, int64_t part) {
    const run *r = ctx;
    int64_t    blocks = (r->size + COT__BLOCK - 1) / COT__BLOCK;
    int64_t    start = cot__part_start(blocks, r->parts, part) * COT__BLOCK, stop = cot__part_start(blocks, r->parts, part + 1) * COT__BLOCK;
    if (stop > r->size) stop = r->size;
    if (r->plain) run_plain(r, start, stop);
    else if (r->simple) run_simple(r, start, stop);
    else run_blocks(r, start, stop);
}

/* A transcendental function costs about eight additions. */
static void run_all(run *r, int op) {
    r->size = cot__count(r->out[0].to.ndim, r->out[0].to.shape);
    r->parts = cot__parts(r->size, cot__elementwise_table[op].class == REAL ? 8 : 1, 64);
    for (int k = 0; k < r->outputs; k++) {
        output *o = &r->out[k];
        o->direct = !o->accumulate && is_plain(&o->to, r->compute);
        for (int i = 0; i < r->n && k > 0; i++) o->direct &= r->x[i].data != o->to.data; /* the first may replace an operand: it is done last */
    }
    r->plain = r->outputs == 1 && r->out[0].direct;
    for (int k = 0; k < r->n && r->plain; k++) r->plain = r->x[k].ndim == r->out[0].to.ndim && is_plain(&r->x[k], r->compute); /* 0-d values repeat */
    r->simple = !r->plain && r->size >= LONG && is_simple(r);
    if (r->parts > 1) cot__parallel(r->parts, run_part, r);
    else run_part(r, 0);
}

static const cot__block_kernels *kernels(int op, cot_dtype compute, int ndim) {
    return ndim == 0 ? cot__plain_blocks(op, compute) : cot__blocks(op, compute);
}

void cot__run_elementwise(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z) {
    run r;
    r.value = kernels(op, compute, z->ndim)->value;
    r.compute = compute;
    r.n = r.arity = n;
    r.outputs = 1;
    r.out[0] = (output){.to = *z};
    for (int k = 0; k < n; k++) r.x[k] = xs[k];
    run_all(&r, op);
}

static bool same_view(const cot__view *a, const cot__view *b) {
    return a->data == b->data && a->ndim == b->ndim && memcmp(a->stride, b->stride, (size_t)a->ndim * sizeof *a->stride) == 0;
}

void cot__run_partials(int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, int count, const cot__term *terms) {
    run r;
    r.value = NULL;
    r.compute = compute;
    r.n = n + 1;
    r.arity = n;
    r.outputs = count;
    for (int i = 0; i < n; i++) r.x[i] = xs[i];
    r.x[n] = *z;
    for (int i = 0; i < count; i++) {
        bool again = i > 0 && same_view(&terms[i].g, &terms[i - 1].g);
        r.out[i] = (output){.partial = kernels(op, compute, terms[i].out.ndim)->partial[terms[i].k], .to = terms[i].out,
                            .accumulate = terms[i].accumulate, .g = again ? r.n - 1 : r.n};
        if (!again) r.x[r.n++] = terms[i].g;
    }
    run_all(&r, op);
}

/* ---- recording ----------------------------------------------------------------------------------------------------------- */

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
    if (found == COT_BOOL && number && cot__elementwise_table[op].class == ARITH) return COT_I64; /* True + 1 is 2 */
    return (cot_dtype)found;
}

static bool broadcast_shapes(cot_tape *t, const char *name, int n, const cot_var *xs, cot_shape *out) {
    *out = (cot_shape){0};
    for (int k = 0; k < n; k++) {
        if (cot__is_number(xs[k])) continue;
        cot_shape s = cot__shape_at(t, cot__index(xs[k])), before = *out;
        if (s.ndim > out->ndim) {
            int shift = s.ndim - out->ndim;
            memmove(out->dim + shift, out->dim, (size_t)out->ndim * sizeof *out->dim);
            for (int i = 0; i < shift; i++) out->dim[i] = 1;
            out->ndim = s.ndim;
        }
        for (int i = 0; i < s.ndim; i++) {
            int64_t *d = &out->dim[out->ndim - s.ndim + i];
            if (*d == s.dim[i] || s.dim[i] == 1) continue;
            if (*d != 1) {
                char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
                cot__fail(t, COT_SHAPE, "[%s] shapes %s and %s do not broadcast; counted from the end, extents must be equal or 1",
                          name, cot__shape_text(before.ndim, before.dim, a), cot__shape_text(s.ndim, s.dim, b));
                return false;
            }
            *d = s.dim[i];
        }
    }
    return true;
}

static bool same_shape(const cot_tape *t, uint32_t i, const cot_shape *s) {
    cot__view v = cot__view_of(t, i);
    return v.ndim == s->ndim && memcmp(v.shape, s->dim, (size_t)v.ndim * sizeof *v.shape) == 0;
}

/* A number becomes an immediate where the node has room for it (binary operations), else a 0-d constant. */
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
        cot__store_i64(&r.scalar, dtype, (int64_t)x.id);
    else
        cot__store_f64(&r.scalar, dtype, v);
    return cot__index(cot__result_push(t, &r, OP_constant, 0, NULL, NULL));
}

/* The operand as the kernel wants it: right dtype, right shape (or an inactive 0-d value). */
static uint32_t take_var(cot_tape *t, cot_var x, cot_dtype dtype, const cot_shape *shape) {
    cot__node *n = &t->nodes[cot__index(x)];
    if (cot__dtype_at(n) != dtype) x = cot_cast(x, dtype);
    if (t->status != COT_OK) return COT__NONE;
    n = &t->nodes[cot__index(x)];
    bool repeats = !cot__is_tensor(n) && !(n->flags & COT__ACTIVE);
    if (!repeats && !same_shape(t, cot__index(x), shape)) x = cot_broadcast_to(x, *shape);
    return cot__index(x);
}

/* The common case: every operand already has the dtype and the shape of the result, so nothing is promoted or broadcast. */
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

/* Brings the operands to one dtype and shape by recorded casts and broadcasts; numbers become immediates or constants. */
static bool unify(cot_tape *t, int op, int n, const cot_var *xs, uint32_t *args, cot_dtype *dtype, cot_shape *shape, double *immediate) {
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

cot_var cot__fold(const cot__block_kernels *kernels, cot_dtype compute, int n, const cot_var *xs) {
    cot__value v[3] = {{0}}, z = {0};
    for (int k = 0; k < n; k++) {
        if (compute == COT_I64)
            v[k].i64 = (int64_t)xs[k].id;
        else
            cot__store_f64(&v[k], compute, cot__number_value(xs[k]));
    }
    kernels->value(1, &v[0], &v[1], &v[2], &z);
    return compute == COT_I64 ? cot_integer(z.i64) : cot_number(cot__load_f64(&z, compute));
}

/* Numbers alone make a number: an integer where all are and the operation keeps integers. */
static cot_var fold_numbers(int op, int n, const cot_var *xs) {
    bool whole = cot__blocks_i64[op].value != NULL;
    for (int k = 0; k < n; k++) whole &= (uintptr_t)xs[k].tape == 2;
    cot_dtype compute = whole ? COT_I64 : COT_F64;
    return cot__fold(cot__plain_blocks(op, compute), compute, n, xs);
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
    double         immediate = 0;
    if (is_uniform(t, op, n, xs, args)) {
        cot__view v = cot__view_of(t, args[0]);
        dtype = v.dtype;
        ndim = v.ndim;
        dims = v.shape; /* of the operand's record, which does not move */
    } else {
        if (!unify(t, op, n, xs, args, &dtype, &shape, &immediate)) return INVALID(t);
        ndim = shape.ndim;
    }

    cot__result r;
    cot_dtype   compute = cot__dtype_compute(dtype), result = e->class == TEST ? COT_BOOL : dtype;
    if (!cot__result_open(t, &r, e->name, result, ndim, dims)) return INVALID(t);
    cot__view  views[3];
    cot__value number;
    for (int k = 0; k < n; k++) {
        if (args[k] == COT__NONE) {
            cot__store_f64(&number, compute, immediate);
            views[k] = (cot__view){&number, compute, 0, zero_strides, zero_strides};
        } else
            views[k] = cot__view_of(t, args[k]);
    }
    cot__run_elementwise(op, compute, n, views, &r.view);
    cot_var z = cot__result_push(t, &r, op, n, args, NULL);
    if (n == 2 && z.id != UINT64_MAX) t->nodes[cot__index(z)].extra.number = immediate;
    return z;
}
